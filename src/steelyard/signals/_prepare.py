"""From a Recording to Samples: select, resample, filter, differentiate, reject, decimate, trim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.quality import check
from steelyard.quality._check import AT_LIMIT, saturated, without_impossible
from steelyard.recording import Preparation, Recording, Samples
from steelyard.robot import DriveModel, JointLimits
from steelyard.signals._cutoff import chosen_cutoff_hz
from steelyard.signals._filters import (
    central_differences,
    low_pass,
    moving_mean,
    noise_gains,
    noise_of_differences,
    resample,
    uniform_clock,
)


@dataclass(frozen=True)
class _Signals:
    """Signals on their way.

    Attributes:
        t: time, (N,) [s]
        tau: torque, (N, n)
        motion: position, and velocity and acceleration where they were commanded, each (N, n)
        steps: what was done, one sentence each
    """

    t: Array
    tau: Array
    motion: tuple[Array, ...]
    steps: tuple[str, ...]

    @property
    def rate_hz(self) -> float:
        """Samples per second, [Hz]."""
        return float(1.0 / (self.t[1] - self.t[0]))

    def changed(self, change: Callable[[Array], Array], step: str) -> _Signals:
        """The same change made to every signal."""
        motion = tuple(change(x) for x in self.motion)
        return replace(self, tau=change(self.tau), motion=motion, steps=(*self.steps, step))


def prepare(
    recording: Recording,
    preparation: Preparation | None = None,
    *,
    drive: DriveModel | None = None,
    limits: JointLimits | None = None,
) -> Samples:
    """The samples of a recording, ready to fit.

    The quality of the recording is checked: errors are raised, warnings stay with the samples.
    Torques are motor currents times the gains of the drives where drives are given, else those that
    were measured. A recording that begins or ends in motion has doubtful accelerations there: give
    `trim_s`.

    Args:
        preparation: how; the defaults of `Preparation` otherwise
        drive: that makes torques of motor currents (`robot.drive`); needed where only currents were
            recorded
        limits: of the joints (`robot.limits`), which make the check of the recording sharper
    """
    if not isinstance(recording, Recording):
        raise InvalidSamples(
            f"prepare() wants a Recording, got {type(recording).__name__}: read a file with"
            " steelyard.read first"
        )
    how = preparation or Preparation()
    report = check(recording, limits=limits, gain=None if drive is None else drive.gain)
    report.require_ok()
    recording = without_impossible(recording)
    signals = _uniform(_select(recording, how, joint_torque(recording, drive), _origin(drive)), how)
    rate_hz = signals.rate_hz
    if how.cutoff_hz == "auto":
        how = replace(how, cutoff_hz=chosen_cutoff_hz([(signals.motion[0], rate_hz)]))
    a_noise = _noise_of_accelerations(signals, how)
    signals = _filter(signals, how, rate_hz)
    q, v, a, derived = _differentiate(signals, how, rate_hz)
    signals, usable = _in_time(signals, how, v)
    usable &= ~_saturated(recording, drive, limits, signals.t, how.lag_s)
    usable &= np.abs(v) >= how.lowest_speed
    steps = [*signals.steps, derived]
    if how.lowest_speed > 0:
        steps.append(
            f"torques below {how.lowest_speed:g} rad/s do not count ({1 - usable.mean():.0%})"
        )
    cut = _cut(len(q), how, rate_hz, steps)
    return Samples(
        q=q[cut],
        v=v[cut],
        a=a[cut],
        tau=signals.tau[cut],
        rate_hz=rate_hz / how.decimate,
        joint_names=recording.joint_names,
        kinematics=how.kinematics,
        usable=usable[cut],
        made_by=tuple(steps),
        start_s=float(signals.t[cut][0]),
        warnings=report.warnings,
        gain=None if drive is None else drive.gain,
        preparation=how,
        a_noise=a_noise,
    )


def with_chosen_cutoff(preparation: Preparation, recordings: Iterable[Recording]) -> Preparation:
    """The preparation with its cut-off as a number: what recordings of one arm ask for where it is 'auto'."""
    if preparation.cutoff_hz != "auto":
        return preparation
    parts = [_uniform(_select(each, preparation, each.q, ""), preparation) for each in recordings]
    if not parts:
        return preparation
    return replace(preparation, cutoff_hz=chosen_cutoff_hz((x.motion[0], x.rate_hz) for x in parts))


def joint_torque(recording: Recording, drive: DriveModel | None = None) -> Array:
    """The torques of a recording, (N, n) [Nm or N]: of motor currents where drives are given."""
    if drive is None:
        if recording.tau is not None:
            return recording.tau
        if recording.current is None:
            why = "".join(f"; {note}" for note in recording.notes)
            raise InvalidRecording(f"the recording has neither torques nor motor currents{why}")
        raise InvalidRecording(
            "the recording has motor currents only: give drives with gains in Nm/A"
            " (drive=robot.drive)"
        )
    if recording.current is None:
        raise InvalidRecording("drives were given, but the recording has no motor currents")
    gain = drive.gain
    if gain is None or gain.shape != (recording.n,) or not gain.all():
        raise InvalidSamples(
            f"the drives need {recording.n} gains other than 0 [Nm/A], got {gain};"
            " give them with dataclasses.replace(robot.drive, gain=...)"
        )
    return drive.torque_from_current(recording.current)


def _origin(drive: DriveModel | None) -> str:
    if drive is None:
        return "measured torques"
    return f"motor currents times {np.array2string(np.asarray(drive.gain), precision=4)} Nm/A"


def _select(recording: Recording, how: Preparation, tau: Array, origin: str) -> _Signals:
    """The signals of whole rows with times of their own; torques are said to be of some origin."""
    motion = how.motion_of(recording)
    signals = _Signals(recording.t, tau, motion, (f"{how.kinematics} positions, {origin}",))
    whole = np.isfinite(np.hstack([tau, *motion])).all(axis=1)
    fresh = np.concatenate([[True], np.diff(recording.t) > 0])
    keep = whole & fresh
    if keep.sum() < 4:
        raise InvalidRecording(f"only {keep.sum()} rows are whole; at least 4 are needed")
    if keep.all():
        return signals
    words = (
        f"left out {np.sum(~whole)} rows with NaN and {np.sum(whole & ~fresh)} with a repeated time"
    )
    return replace(signals.changed(lambda x: x[keep], words), t=recording.t[keep])


def _uniform(signals: _Signals, how: Preparation) -> _Signals:
    grid = uniform_clock(signals.t, rate_hz=how.rate_hz, longest_gap_s=how.longest_gap_s)
    if grid is signals.t:
        return signals
    words = (
        f"resampled at {1 / (grid[1] - grid[0]):.6g} Hz: motion by cubic splines, torques by"
        " straight lines"
    )
    return _Signals(
        grid,
        resample(signals.t, signals.tau, grid, smooth=False),
        tuple(resample(signals.t, x, grid) for x in signals.motion),
        (*signals.steps, words),
    )


def _filter(signals: _Signals, how: Preparation, rate_hz: float) -> _Signals:
    if how.mean_length > 1:
        words = f"moving mean of {how.mean_length} samples on every signal"
        signals = signals.changed(lambda x: moving_mean(x, how.mean_length), words)
    motion = signals.motion
    tau = signals.tau
    steps = list(signals.steps)
    if isinstance(cutoff := how.cutoff_hz, float | int):
        motion = tuple(low_pass(x, cutoff, rate_hz, order=how.order) for x in motion)
        steps.append(
            f"zero-phase Butterworth low-pass of order {how.order} at {cutoff:g} Hz on the motion"
        )
    if (cutoff := how.torque_cutoff_hz) is not None:
        tau = low_pass(tau, cutoff, rate_hz, order=how.order)
        steps.append(
            f"zero-phase Butterworth low-pass of order {how.order} at {cutoff:g} Hz on the torques"
        )
    return replace(signals, motion=motion, tau=tau, steps=tuple(steps))


def _differentiate(
    signals: _Signals, how: Preparation, rate_hz: float
) -> tuple[Array, Array, Array, str]:
    q, *commanded = signals.motion
    if how.fourier_period_s is not None:
        from steelyard.trajectory import FourierTrajectory

        series = FourierTrajectory.fitted(
            signals.t, q, period_s=how.fourier_period_s, harmonics=how.fourier_harmonics
        )
        words = (
            f"derivatives of a Fourier series of {series.harmonics} harmonics over"
            f" {series.period_s:g} s"
        )
        return *series.at(signals.t), words
    if not commanded:
        return q, *central_differences(q, rate_hz), "derivatives by central differences"
    if len(commanded) == 1:
        (v,) = commanded
        return (
            q,
            v,
            central_differences(v, rate_hz)[0],
            "commanded velocity, acceleration by central differences",
        )
    v, a = commanded
    return q, v, a, "commanded velocity and acceleration"


def _noise_of_accelerations(signals: _Signals, how: Preparation) -> Array | None:
    """What white noise of the positions, as of encoder steps, leaves in accelerations, (n,) [rad/s^2]."""
    if len(signals.motion) > 1 or how.fourier_period_s is not None or len(signals.t) < 8:
        return None
    if isinstance(how.cutoff_hz, float | int):
        cutoff_hz = how.cutoff_hz
    else:
        cutoff_hz = None
    _, _, gain = noise_gains(cutoff_hz, signals.rate_hz)
    return np.asarray(noise_of_differences(signals.motion[0]) * np.sqrt(gain))


def _in_time(signals: _Signals, how: Preparation, v: Array) -> tuple[_Signals, Mask]:
    """Torques at the time of their motion, and which of them are known, (N, n).

    Near a reversal friction jumps from one torque to the next: what lies between them is no torque.
    """
    usable = np.ones(v.shape, dtype=bool)
    if how.lag_s is None or not any(how.lag_s):
        return signals, usable
    if len(how.lag_s) != v.shape[1]:
        raise InvalidSamples(
            f"lag_s has {len(how.lag_s)} numbers, the recording has {v.shape[1]} joints"
        )
    t = signals.t
    tau = np.empty_like(signals.tau)
    for j, lag in enumerate(how.lag_s):
        tau[:, j] = np.interp(t + lag, t, signals.tau[:, j])
        usable[:, j] = (t + lag >= t[0]) & (t + lag <= t[-1])
        if lag:
            turns = np.diff(np.sign(v[:, j])) != 0
            usable[1:, j] &= ~turns
            usable[:-1, j] &= ~turns
    words = (
        f"torques taken {', '.join(f'{1e3 * lag:.3g}' for lag in how.lag_s)} ms later than the"
        " motion"
    )
    return replace(signals, tau=tau, steps=(*signals.steps, words)), usable


def _saturated(
    recording: Recording,
    drive: DriveModel | None,
    limits: JointLimits | None,
    t: Array,
    lag_s: Sequence[float] | None,
) -> Mask:
    """Which torques are those of saturated drives, at times t, (N, n)."""
    if drive is None:
        values = recording.tau
    else:
        values = recording.current
    if values is None:
        found = np.zeros(recording.q.shape, bool)
    else:
        found = saturated(values, recording.q)
    if (
        values is not None
        and drive is None
        and limits is not None
        and limits.tau_max.shape == (recording.n,)
    ):
        found |= np.abs(values) >= AT_LIMIT * limits.tau_max
    if not found.any():
        return np.zeros((len(t), recording.n), bool)
    if drive is not None:  # a drive may turn several joints
        found = found @ (drive.transmission.matrix != 0)
    if lag_s is None:
        late = np.zeros(recording.n)
    else:
        late = np.array(lag_s)
    at = [np.interp(t + late[j], recording.t, found[:, j]) for j in range(recording.n)]
    return np.asarray(np.column_stack(at) > 0)


def _cut(count: int, how: Preparation, rate_hz: float, steps: list[str]) -> slice:
    """The samples to keep; says so in `steps`."""
    if how.decimate > 1:
        slow = rate_hz / how.decimate / 2
        if how.torque_cutoff_hz is None or how.torque_cutoff_hz > slow:
            raise InvalidSamples(
                f"keeping every {how.decimate}. sample folds torques faster than {slow:.4g} Hz;"
                " set torque_cutoff_hz at or below that"
            )
        steps.append(f"every {how.decimate}. sample kept")
    edge = round(how.trim_s * rate_hz)
    if count - 2 * edge < 1:
        raise InvalidSamples(
            f"trim_s {how.trim_s:g} leaves nothing of {(count - 1) / rate_hz:.3g} s"
        )
    if edge:
        steps.append(f"{how.trim_s:g} s trimmed at both ends")
    return slice(edge, count - edge, how.decimate)
