"""A whole recording through an observer: the rows it can use, and what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from steelyard.arrays import Array
from steelyard.control.collision.observer import Observer, ObserverSample, ObserverState
from steelyard.errors import InvalidRecording
from steelyard.quality import check_quality
from steelyard.recording import Recording
from steelyard.robot import DriveModel, RobotModel
from steelyard.signals import joint_torque


@dataclass(frozen=True, eq=False)
class Residuals:
    """What an observer makes of a recording, row by row.

    Attributes:
        t: time, (N,) [s]
        q: joint position, (N, n) [rad or m]
        v: joint velocity, (N, n) [rad/s or m/s]
        a: joint acceleration behind the observer's filter, (N, n) [rad/s^2 or m/s^2]
        direction: of friction at the drives, between -1 and 1, (N, n)
        residual: external torque at the joints, (N, m) [Nm or N], or power [W]
        slack: how much of it unknown friction may be, downwards and upwards, (N, 2, m)
        names: what each residual belongs to
        unit: of the residual
        states: of the observer, one a row
    """

    t: Array
    q: Array
    v: Array
    a: Array
    direction: Array
    residual: Array
    slack: Array
    names: tuple[str, ...]
    unit: str
    states: tuple[ObserverState, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.t)

    @property
    def beyond_friction(self) -> Array:
        """The part of the residual that no friction at rest explains, (N, m)."""
        return np.asarray(self.residual - np.clip(self.residual, -self.slack[:, 0], self.slack[:, 1]))

    @classmethod
    def of(
        cls, observer: Observer, samples: Sequence[ObserverSample], states: Sequence[ObserverState]
    ) -> Residuals:
        """The rows of a run, stacked.

        Args:
            observer: that ran
            samples: that it saw
            states: that it went through, one a sample
        """
        return cls(
            t=np.array([state.t for state in states]),
            q=np.array([sample.q for sample in samples], dtype=float),
            v=np.array([state.v for state in states]),
            a=np.array([state.a for state in states]),
            direction=np.array([state.memory[0] for state in states]),
            residual=np.array([state.residual for state in states]),
            slack=np.array([state.slack for state in states]),
            names=observer.names,
            unit=observer.unit,
            states=tuple(states),
        )


def observe(observer: Observer, recording: Recording, *, drive: DriveModel | None = None) -> Residuals:
    """The residuals along a recording, the same as step by step.

    Args:
        observer: of the arm
        recording: as measured; its steps may vary, a hole is refused
        drive: that makes torques of motor currents; needed where only currents were recorded
    """
    return observe_samples(observer, observer_samples(recording, observer.arm.robot, drive=drive))


def observe_samples(observer: Observer, samples: Sequence[ObserverSample]) -> Residuals:
    """The residuals along samples.

    Args:
        observer: of the arm
        samples: in the order of time
    """
    return Residuals.of(observer, samples, list(_states(observer, samples)))


def observer_samples(
    recording: Recording, robot: RobotModel, *, drive: DriveModel | None = None
) -> Sequence[ObserverSample]:
    """The rows of a recording that an observer can use: whole ones with a new time.

    Velocity is measured; where it is not, it is the difference to the position before, half a step late. A
    recording that is not fit for use, or of other joints, is refused.

    Args:
        recording: as measured
        robot: the arm, said to be that of the recording
        drive: that makes torques of motor currents; needed where only currents were recorded
    """
    _require_same_joints(recording, robot)
    tau = joint_torque(recording, drive)
    check_quality(recording, limits=robot.limits).require_ok()
    v = recording.v
    signals = [recording.q, tau] if v is None else [recording.q, tau, v]
    whole = np.isfinite(np.hstack(signals)).all(axis=1)
    keep = np.flatnonzero(whole)
    keep = keep[np.diff(recording.t[keep], prepend=-1.0) > 0]
    if len(keep) < 2:
        raise InvalidRecording(f"only {len(keep)} rows are whole; an observer needs at least 2")
    t, q = recording.t[keep], recording.q[keep]
    if v is None:
        slope = np.diff(q, axis=0) / np.diff(t)[:, None]
        speed = np.concatenate([slope[:1], slope])
    else:
        speed = v[keep]
    return [ObserverSample(float(t[i]), q[i], speed[i], tau[k]) for i, k in enumerate(keep)]


def _require_same_joints(recording: Recording, robot: RobotModel) -> None:
    if recording.n != robot.n:
        raise InvalidRecording(f"the arm has {robot.n} joints, the recording {recording.n}")
    named, given = tuple(robot.joint_names), tuple(recording.joint_names)
    if named != given and sorted(named) == sorted(given):
        raise InvalidRecording(
            f"the joints of {robot.name} are in the order {', '.join(named)}, those of the recording"
            f" {', '.join(given)}: bring the columns into the order of the arm"
        )


def _states(observer: Observer, samples: Sequence[ObserverSample]) -> Iterator[ObserverState]:
    state = observer.init(samples[0])
    yield state
    for sample in samples[1:]:
        state = observer.step(state, sample)
        yield state
