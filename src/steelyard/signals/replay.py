"""A recording as a stream: its rows one after the other, as an estimator on the arm would have seen them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import InvalidRecording
from steelyard.recording import Recording, Samples
from steelyard.robot import DriveModel
from steelyard.signals.prepare import Preparation, joint_torque
from steelyard.signals.stream import CausalPath, OnlineSample, RawRow


def replay(
    source: Recording | Samples, preparation: Preparation | None = None, *, drive: DriveModel | None = None
) -> Iterator[OnlineSample]:
    """The samples of a recording one at a time, each made from what came before it and a short time after.

    Samples, which are prepared already, come as they are. Rows of a recording go through a `CausalPath`;
    those that cannot be used go on as samples that an estimator counts and skips. Time is the recording's.

    Args:
        source: what was recorded
        preparation: how samples were made that the model was fitted to; the defaults otherwise
        drive: that makes torques of motor currents; needed where only currents were recorded
    """
    if isinstance(source, Samples):
        return (
            OnlineSample(*row) for row in zip(source.t, source.q, source.v, source.a, source.tau, strict=True)
        )
    path = path_of(source, preparation or Preparation())
    return _through(path, _rows_of(source, path, joint_torque(source, drive)))


def path_of(recording: Recording, preparation: Preparation) -> CausalPath:
    """The causal path of a recording's rows.

    Args:
        recording: as measured
        preparation: how samples were made that the model was fitted to
    """
    rate_hz = preparation.rate_hz or recording.rate_hz
    if not rate_hz > 0:
        raise InvalidRecording("the clock of the recording stands still: there is nothing to replay")
    return CausalPath(recording.n, rate_hz, preparation, len(_motion(recording, preparation)))


def paced(
    samples: Iterable[OnlineSample], *, sleep: Callable[[float], None] = time.sleep
) -> Iterator[OnlineSample]:
    """The same samples, not faster than their own clock.

    Args:
        samples: in the order of time
        sleep: waits for so many seconds
    """
    ahead_s = None
    for sample in samples:
        now = time.monotonic()
        if np.isfinite(sample.t):
            ahead_s = sample.t - now if ahead_s is None else ahead_s
            if (wait := sample.t - now - ahead_s) > 0:
                sleep(wait)
        yield sample


def _through(path: CausalPath, rows: Iterable[RawRow]) -> Iterator[OnlineSample]:
    state = path.init()
    for row in rows:
        state, ready = path.step(state, row)
        yield from ready


def _rows_of(recording: Recording, path: CausalPath, tau: Array) -> Iterator[RawRow]:
    motion = np.stack(_motion(recording, path.preparation), axis=1)
    return (RawRow(float(t), x, torque) for t, x, torque in zip(recording.t, motion, tau, strict=True))


def _motion(recording: Recording, how: Preparation) -> list[Array]:
    """Position, and velocity and acceleration where they were commanded, each (N, n)."""
    if how.kinematics == "measured":
        return [recording.q]
    if recording.q_commanded is None:
        raise InvalidRecording("the recording has no commanded positions, but the model was fitted to them")
    motion = [recording.q_commanded]
    for more in (recording.v_commanded, recording.a_commanded):
        if more is None:
            break
        motion.append(more)
    return motion
