"""From a Recording to Samples: select, resample, filter, differentiate, reject, decimate, trim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.quality import check
from steelyard.quality._check import (
    SATURATED_TORQUE,
    saturated,
    unmeasured_efforts,
    with_zeros_for_unmeasured,
    without_impossible,
)
from steelyard.quality._jolts import Jolt, find_jolts
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

_CLOCK_SETTINGS = ("kinematics", "rate_hz", "longest_gap_s")


@dataclass(frozen=True)
class _Signals:
    """Signals between two processing steps.

    Attributes:
        t: time, (N,) [s]
        tau: torque, (N, n) [Nm or N]
        motion: position, and commanded velocity and acceleration where available, each (N, n)
        steps: descriptions of the processing so far, one sentence each
    """

    t: Array
    tau: Array
    motion: tuple[Array, ...]
    steps: tuple[str, ...]

    @property
    def rate_hz(self) -> float:
        """Samples per second, [Hz]."""
        return float(1.0 / (self.t[1] - self.t[0]))

    def mapped(self, function: Callable[[Array], Array], step: str) -> _Signals:
        """The signals after one function was applied to each; `step` describes it."""
        motion = tuple(function(x) for x in self.motion)
        return replace(self, tau=function(self.tau), motion=motion, steps=(*self.steps, step))


class _FilteredSignals(NamedTuple):
    """Filtered signals with derivatives of the motion, before torques are shifted.

    Attributes:
        signals: filtered torque and motion
        q: position, (N, n) [rad or m]
        v: velocity, (N, n) [rad/s or m/s]
        a: acceleration, (N, n) [rad/s^2 or m/s^2]
        derivation: description of the derivatives
        a_noise: standard deviation of the noise of `a`, (n,); None if unknown
    """

    signals: _Signals
    q: Array
    v: Array
    a: Array
    derivation: str
    a_noise: Array | None


@dataclass(frozen=True, eq=False)
class UniformRecording:
    """A recording that passed the quality check, on a uniform clock, before any filter.

    Samples for several filters, selections and lags come from it without further checks.

    Attributes:
        recording: signals as measured, without impossible values
        clock: settings that selected and resampled the signals
        drive: drives whose gains convert motor currents to torques; None for measured torques
        limits: limits of the joints; None if unknown
        warnings: warnings of the quality check
        signals: torque and motion on the uniform clock
        unmeasured: joints that move but whose torque was not measured, (n,)
        jolts: around which torques do not count
    """

    recording: Recording
    clock: Preparation
    drive: DriveModel | None
    limits: JointLimits | None
    warnings: tuple[str, ...]
    signals: _Signals
    unmeasured: Mask
    jolts: tuple[Jolt, ...] = ()
    _filtered: dict[Preparation, _FilteredSignals] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        recording: Recording,
        clock: Preparation,
        *,
        drive: DriveModel | None = None,
        limits: JointLimits | None = None,
    ) -> UniformRecording:
        """The checked recording on a uniform clock; errors of the quality check are raised.

        Args:
            recording: signals as measured
            clock: settings, of which kinematics, rate and longest gap count
            drive: drives whose gains convert motor currents to torques
            limits: limits of the joints for the quality check
        """
        gain = None if drive is None else drive.gain
        report = check(recording, limits=limits, gain=gain)
        report.require_ok()
        recording = without_impossible(recording)
        unmeasured = _unmeasured_torques(recording, drive)
        recording = with_zeros_for_unmeasured(recording)
        tau = joint_torque(recording, drive)
        signals = _uniform(_select(recording, clock, tau, _torque_source(drive)), clock)
        jolts = find_jolts(recording)
        return cls(recording, clock, drive, limits, report.warnings, signals, unmeasured, jolts)

    def has_clock_of(self, settings: Preparation) -> bool:
        """Whether other settings select and resample the recording in the same way."""
        return all(getattr(self.clock, name) == getattr(settings, name) for name in _CLOCK_SETTINGS)

    def samples(self, settings: Preparation) -> Samples:
        """The samples for filter settings with the same clock, see `has_clock_of`.

        Args:
            settings: filter and selection settings
        """
        rate_hz = self.signals.rate_hz
        if settings.cutoff_hz == "auto":
            cutoff_hz = chosen_cutoff_hz([(self.signals.motion[0], rate_hz)])
            settings = replace(settings, cutoff_hz=cutoff_hz)
        motion = self._motion(replace(settings, lag_s=None))
        signals, usable = _synchronised(motion.signals, settings, motion.v)
        usable &= ~_saturated(self.recording, self.drive, self.limits, signals.t, settings.lag_s)
        usable &= np.abs(motion.v) >= settings.lowest_speed
        usable &= ~self.unmeasured
        for jolt in self.jolts:
            usable[jolt.covers(signals.t, settings.turning_s)] = False
        steps = [*signals.steps, motion.derivation]
        if settings.lowest_speed > 0:
            unused = 1 - usable.mean()
            steps.append(
                f"torques below {settings.lowest_speed:g} rad/s do not count ({unused:.0%})"
            )
        kept = _kept_samples(len(motion.q), settings, rate_hz, steps)
        return Samples(
            q=motion.q[kept],
            v=motion.v[kept],
            a=motion.a[kept],
            tau=signals.tau[kept],
            rate_hz=rate_hz / settings.decimate,
            joint_names=self.recording.joint_names,
            kinematics=settings.kinematics,
            usable=usable[kept],
            made_by=tuple(steps),
            start_s=float(signals.t[kept][0]),
            warnings=self.warnings,
            gain=None if self.drive is None else self.drive.gain,
            preparation=settings,
            a_noise=motion.a_noise,
        )

    def _motion(self, settings: Preparation) -> _FilteredSignals:
        """The filtered signals and derivatives, computed once for each settings without lag."""
        if settings not in self._filtered:
            rate_hz = self.signals.rate_hz
            a_noise = _acceleration_noise(self.signals, settings)
            signals = _filter(self.signals, settings, rate_hz)
            q, v, a, derivation = _differentiate(signals, settings, rate_hz)
            self._filtered[settings] = _FilteredSignals(signals, q, v, a, derivation, a_noise)
        return self._filtered[settings]


def prepare(
    recording: Recording,
    preparation: Preparation | None = None,
    *,
    drive: DriveModel | None = None,
    limits: JointLimits | None = None,
) -> Samples:
    """The samples of a recording, ready to fit.

    The function checks the quality of the recording; errors are raised, warnings stay with the
    samples. With `drive`, torques are motor currents times the gains; otherwise they are the
    measured torques. Accelerations are unreliable at an end at which the arm moves: use `trim_s`
    there.

    Args:
        recording: signals as measured
        preparation: filter and selection settings; the defaults of `Preparation` if None
        drive: drives whose gains convert motor currents to torques (`robot.drive`); required if
            only currents were recorded
        limits: limits of the joints (`robot.limits`) for the quality check
    """
    if not isinstance(recording, Recording):
        raise InvalidSamples(
            f"prepare() wants a Recording, got {type(recording).__name__}: read a file with"
            " steelyard.read first"
        )
    settings = preparation or Preparation()
    return UniformRecording.of(recording, settings, drive=drive, limits=limits).samples(settings)


def with_chosen_cutoff(preparation: Preparation, recordings: Iterable[Recording]) -> Preparation:
    """The preparation with a numeric cut-off; 'auto' is resolved from recordings of one arm."""
    if preparation.cutoff_hz != "auto":
        return preparation
    parts = [_uniform(_select(each, preparation, each.q, ""), preparation) for each in recordings]
    if not parts:
        return preparation
    return replace(preparation, cutoff_hz=chosen_cutoff_hz((x.motion[0], x.rate_hz) for x in parts))


def joint_torque(recording: Recording, drive: DriveModel | None = None) -> Array:
    """The torques of a recording, (N, n) [Nm or N]; from motor currents if `drive` is given."""
    if drive is None:
        if recording.tau is not None:
            return recording.tau
        if recording.current is None:
            reasons = "".join(f"; {note}" for note in recording.notes)
            raise InvalidRecording(
                f"the recording has neither torques nor motor currents{reasons}; if a column holds"
                " them, name it with `columns={'tau': 'NAME'}` or `columns={'current': 'NAME'}`"
            )
        raise InvalidRecording(
            "the recording has motor currents only: give drives with gains in Nm/A"
            " (drive=robot.drive)"
        )
    if recording.current is None:
        raise InvalidRecording("drives were given, but the recording has no motor currents")
    gain = drive.gain
    if gain is None or gain.shape != (recording.n,) or not gain.all():
        raise InvalidSamples(
            f"the drives need {recording.n} gains other than 0 [Nm/A], got {gain}: state the gains"
        )
    return drive.torque_from_current(recording.current)


def _unmeasured_torques(recording: Recording, drive: DriveModel | None) -> Mask:
    """Which joints move without a measured torque, (n,); none if no joint has one."""
    dead = unmeasured_efforts(recording, "tau" if drive is None else "current")
    if dead.all():
        return np.zeros_like(dead)
    if drive is not None:  # one drive may turn several joints
        return np.asarray(dead @ (drive.transmission.matrix != 0))
    return dead


def _torque_source(drive: DriveModel | None) -> str:
    """How torques were obtained, for the description of the samples."""
    if drive is None:
        return "measured torques"
    return f"motor currents times {np.array2string(np.asarray(drive.gain), precision=4)} Nm/A"


def _select(
    recording: Recording, settings: Preparation, tau: Array, torque_source: str
) -> _Signals:
    """The signals of complete rows with distinct times."""
    motion = settings.motion_of(recording)
    description = f"{settings.kinematics} positions, {torque_source}"
    signals = _Signals(recording.t, tau, motion, (description,))
    complete = np.isfinite(np.hstack([tau, *motion])).all(axis=1)
    later = np.concatenate([[True], np.diff(recording.t) > 0])
    keep = complete & later
    if keep.sum() < 4:
        raise InvalidRecording(f"only {keep.sum()} rows are complete; at least 4 are needed")
    if keep.all():
        return signals
    step = (
        f"left out {np.sum(~complete)} rows with NaN and {np.sum(complete & ~later)} with a"
        " repeated time"
    )
    return replace(signals.mapped(lambda x: x[keep], step), t=recording.t[keep])


def _uniform(signals: _Signals, settings: Preparation) -> _Signals:
    """The signals on a uniform clock."""
    grid = uniform_clock(signals.t, rate_hz=settings.rate_hz, longest_gap_s=settings.longest_gap_s)
    if grid is signals.t:
        return signals
    step = (
        f"resampled at {1 / (grid[1] - grid[0]):.6g} Hz: motion by cubic splines, torques by"
        " straight lines"
    )
    return _Signals(
        grid,
        resample(signals.t, signals.tau, grid, smooth=False),
        tuple(resample(signals.t, x, grid) for x in signals.motion),
        (*signals.steps, step),
    )


def _filter(signals: _Signals, settings: Preparation, rate_hz: float) -> _Signals:
    """The signals after the moving mean and the low-pass filters."""
    if settings.mean_length > 1:
        step = f"moving mean of {settings.mean_length} samples on every signal"
        signals = signals.mapped(lambda x: moving_mean(x, settings.mean_length), step)
    order = settings.order
    motion = signals.motion
    tau = signals.tau
    steps = list(signals.steps)
    if isinstance(cutoff := settings.cutoff_hz, float | int):
        motion = tuple(low_pass(x, cutoff, rate_hz, order=order) for x in motion)
        steps.append(
            f"zero-phase Butterworth low-pass of order {order} at {cutoff:g} Hz on the motion"
        )
    if (cutoff := settings.torque_cutoff_hz) is not None:
        tau = low_pass(tau, cutoff, rate_hz, order=order)
        steps.append(
            f"zero-phase Butterworth low-pass of order {order} at {cutoff:g} Hz on the torques"
        )
    return replace(signals, motion=motion, tau=tau, steps=tuple(steps))


def _differentiate(
    signals: _Signals, settings: Preparation, rate_hz: float
) -> tuple[Array, Array, Array, str]:
    """Position, velocity and acceleration, each (N, n), and a description of the derivatives."""
    q, *commanded = signals.motion
    if settings.fourier_period_s is not None:
        from steelyard.trajectory import FourierTrajectory

        series = FourierTrajectory.fitted(
            signals.t,
            q,
            period_s=settings.fourier_period_s,
            harmonics=settings.fourier_harmonics,
        )
        description = (
            f"derivatives of a Fourier series of {series.harmonics} harmonics over"
            f" {series.period_s:g} s"
        )
        return *series.at(signals.t), description
    if not commanded:
        return q, *central_differences(q, rate_hz), "derivatives by central differences"
    if len(commanded) == 1:
        (v,) = commanded
        a, _ = central_differences(v, rate_hz)
        return q, v, a, "commanded velocity, acceleration by central differences"
    v, a = commanded
    return q, v, a, "commanded velocity and acceleration"


def _acceleration_noise(signals: _Signals, settings: Preparation) -> Array | None:
    """Standard deviation of accelerations from white noise of the positions, (n,) [rad/s^2].

    Encoder steps are such noise. None where accelerations do not come from measured positions.
    """
    if len(signals.motion) > 1 or settings.fourier_period_s is not None or len(signals.t) < 8:
        return None
    cutoff_hz = None
    if isinstance(settings.cutoff_hz, float | int):
        cutoff_hz = settings.cutoff_hz
    _, _, gain = noise_gains(cutoff_hz, signals.rate_hz)
    return np.asarray(noise_of_differences(signals.motion[0]) * np.sqrt(gain))


def _synchronised(signals: _Signals, settings: Preparation, v: Array) -> tuple[_Signals, Mask]:
    """Signals whose torques are shifted by their lag, and a mask of the known torques, (N, n).

    Friction jumps at a reversal, so a torque that is interpolated across one is not used.
    """
    usable = np.ones(v.shape, dtype=bool)
    if settings.lag_s is None or not any(settings.lag_s):
        return signals, usable
    if len(settings.lag_s) != v.shape[1]:
        raise InvalidSamples(
            f"lag_s has {len(settings.lag_s)} numbers, the recording has {v.shape[1]} joints"
        )
    t = signals.t
    tau = np.empty_like(signals.tau)
    for j, lag in enumerate(settings.lag_s):
        tau[:, j] = np.interp(t + lag, t, signals.tau[:, j])
        usable[:, j] = (t + lag >= t[0]) & (t + lag <= t[-1])
        if lag:
            reversals = np.diff(np.sign(v[:, j])) != 0
            usable[1:, j] &= ~reversals
            usable[:-1, j] &= ~reversals
    lags_ms = ", ".join(f"{1e3 * lag:.3g}" for lag in settings.lag_s)
    step = f"torques taken {lags_ms} ms later than the motion"
    return replace(signals, tau=tau, steps=(*signals.steps, step)), usable


def _saturated(
    recording: Recording,
    drive: DriveModel | None,
    limits: JointLimits | None,
    t: Array,
    lag_s: Sequence[float] | None,
) -> Mask:
    """A mask of the torques of saturated drives at times t, (N, n)."""
    values = recording.tau if drive is None else recording.current
    if values is None:
        return np.zeros((len(t), recording.n), bool)
    at_limit = saturated(values, recording.q)
    if drive is None and limits is not None and limits.tau_max.shape == (recording.n,):
        at_limit |= np.abs(values) >= SATURATED_TORQUE * limits.tau_max
    if not at_limit.any():
        return np.zeros((len(t), recording.n), bool)
    if drive is not None:  # one drive may turn several joints
        at_limit = at_limit @ (drive.transmission.matrix != 0)
    lags = np.zeros(recording.n) if lag_s is None else np.array(lag_s)
    columns = [np.interp(t + lags[j], recording.t, at_limit[:, j]) for j in range(recording.n)]
    return np.asarray(np.column_stack(columns) > 0)


def _kept_samples(count: int, settings: Preparation, rate_hz: float, steps: list[str]) -> slice:
    """The samples to keep after trimming and decimation; describes both in `steps`."""
    if settings.decimate > 1:
        nyquist_hz = rate_hz / settings.decimate / 2
        if settings.torque_cutoff_hz is None or settings.torque_cutoff_hz > nyquist_hz:
            raise InvalidSamples(
                f"decimate={settings.decimate} aliases torques above {nyquist_hz:.4g} Hz;"
                " set torque_cutoff_hz at or below that"
            )
        steps.append(f"decimated by {settings.decimate}")
    edge = round(settings.trim_s * rate_hz)
    if count - 2 * edge < 1:
        raise InvalidSamples(
            f"trim_s={settings.trim_s:g} removes all of {(count - 1) / rate_hz:.3g} s"
        )
    if edge:
        steps.append(f"{settings.trim_s:g} s trimmed at both ends")
    return slice(edge, count - edge, settings.decimate)
