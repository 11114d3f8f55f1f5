"""Samples, the signals that are fitted, and the settings that derive them from a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Annotated, Literal

import numpy as np

from steelyard._arrays import Array, Mask, finite
from steelyard._codec import Value
from steelyard._kinds import NOT_NEGATIVE, POSITIVE, Range
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.recording._recording import Recording

DEFAULT_CUTOFF_HZ = 20.0
"""Default cut-off of the filter on the signals of a wrist sensor, [Hz]."""


@dataclass(frozen=True)
class Preparation(Value, error=InvalidSamples):
    """Settings for making Samples of a recording.

    Attributes:
        rate_hz: of the samples before decimation, [Hz]; None for the recording's own mean rate
        cutoff_hz: of the zero-phase low-pass filter on the motion, [Hz]; 'auto' to derive it from
            the spectrum of the motion (`steelyard.signals._cutoff`); None for no filter
        torque_cutoff_hz: of the same filter on the torques, [Hz]; None by default, because friction
            jumps at reversals, and a filter smears the jump in the torques but not in the regressor
        order: of both filters
        mean_length: length of a moving mean on motion and torques, odd [samples]; 1 for none
        kinematics: use the 'measured' or the 'commanded' motion
        fourier_period_s: period of a Fourier series fitted to the positions, whose derivatives are
            used, [s]; None for central differences
        fourier_harmonics: number of its harmonics
        lowest_speed: torques of slower joints are not used, because friction at rest is unknown
            within its limits, [rad/s]; 0 to use all, for example with torque sensors behind the
            gears
        decimate: keep every k-th sample
        trim_s: time to remove at both ends, where filters are inaccurate, [s]
        longest_gap_s: longest gap that is interpolated, [s]; longer ones are refused; None for
            5 median steps or 0.05 s, whichever is longer
        lag_s: delay of the torques of each joint relative to its motion, n numbers [s]; None if
            unknown: nothing is shifted, and `steelyard.identify` estimates it
    """

    rate_hz: Annotated[float | None, POSITIVE] = None
    cutoff_hz: Annotated[float, POSITIVE] | Literal["auto"] | None = "auto"
    torque_cutoff_hz: Annotated[float | None, POSITIVE] = None
    order: Annotated[int, Range(1)] = 4
    mean_length: Annotated[int, Range(1)] = 1
    kinematics: Literal["measured", "commanded"] = "measured"
    fourier_period_s: Annotated[float | None, POSITIVE] = None
    fourier_harmonics: Annotated[int, Range(1)] = 5
    lowest_speed: Annotated[float, NOT_NEGATIVE] = 0.01
    decimate: Annotated[int, Range(1)] = 1
    trim_s: Annotated[float, NOT_NEGATIVE] = 0.0
    longest_gap_s: Annotated[float | None, POSITIVE] = None
    lag_s: tuple[float, ...] | None = None

    @property
    def turning_s(self) -> float:
        """Time on either side of a reversal in which torques do not count, [s].

        The low-pass filter spreads a reversal of a joint, and with it the jump of friction in the
        regressor, over half the period of its cut-off frequency. The torques are not filtered and
        jump at once. The difference has the same sign at every start and stop of a motion, so it
        does not average out, and makes a payload too heavy. Torques that are filtered too jump as
        slowly as the motion turns, and all of them count.
        """
        if isinstance(self.cutoff_hz, str) or self.cutoff_hz is None:
            return 0.0
        if self.lowest_speed == 0 or self.torque_cutoff_hz is not None:
            return 0.0
        return 0.5 / self.cutoff_hz

    def is_clear(self, v: Array, a: Array) -> Mask:
        """Whether each joint moves and is not close to a reversal, same shape as v.

        Near a reversal the acceleration is constant, so within a time t of it the speed is below
        the acceleration times t.

        Args:
            v: joint velocities, (..., n) [rad/s or m/s]
            a: joint accelerations, (..., n) [rad/s^2 or m/s^2]
        """
        return np.asarray(np.abs(v) >= self.lowest_speed + self.turning_s * np.abs(a))

    def motion_of(self, recording: Recording) -> tuple[Array, ...]:
        """Position, with commanded velocity and acceleration where recorded, each (N, n)."""
        if self.kinematics == "measured":
            return (recording.q,)
        if recording.q_commanded is None:
            raise InvalidRecording(
                "the recording has no commanded positions; use kinematics='measured' and a model"
                " fitted to it"
            )
        derived = takewhile(lambda x: x is not None, (recording.v_commanded, recording.a_commanded))
        return (recording.q_commanded, *(x for x in derived if x is not None))


@dataclass(frozen=True, eq=False)
class Samples:
    """Signals ready to fit: uniform in time, finite, differentiated.

    Attributes:
        q: joint position, (N, n) [rad or m]
        v: joint velocity, (N, n) [rad/s or m/s]
        a: joint acceleration, (N, n) [rad/s^2 or m/s^2]
        tau: torque that the drive applies to the joint, (N, n) [Nm or N]
        rate_hz: samples per second, [Hz]
        joint_names: n names
        kinematics: whether q, v, a are 'measured' or 'commanded'
        usable: torques to use in a fit (those at low speed may be excluded), (N, n); None for all
        made_by: description of the preparation, one sentence for each step
        start_s: time of the first sample on the recording's clock, [s]
        warnings: of the quality check of the recording, one sentence each
        gain: of the drives, where torques come from motor currents, (n,) [Nm/A]; None for measured
            torques
        preparation: settings, with a numeric cut-off; None where samples were made otherwise
        a_noise: standard deviation of the noise of a, (n,) [rad/s^2 or m/s^2]; None if unknown
    """

    q: Array
    v: Array
    a: Array
    tau: Array
    rate_hz: float
    joint_names: Sequence[str]
    kinematics: Literal["measured", "commanded"]
    usable: Mask | None = None
    made_by: Sequence[str] = ()
    start_s: float = 0.0
    warnings: Sequence[str] = ()
    gain: Array | None = None
    preparation: Preparation | None = None
    a_noise: Array | None = None

    def __post_init__(self) -> None:
        shape = np.shape(self.q)
        if len(shape) != 2 or shape[0] == 0 or len(tuple(self.joint_names)) != shape[1]:
            raise InvalidSamples(
                f"samples are (N, n) with n = {len(tuple(self.joint_names))} names, got {shape}"
            )
        if not (np.isfinite(self.rate_hz) and self.rate_hz > 0):
            raise InvalidSamples(f"rate_hz must be positive, got {self.rate_hz}")
        if self.kinematics not in ("measured", "commanded"):
            raise InvalidSamples(
                f"kinematics must be 'measured' or 'commanded', got '{self.kinematics}'"
            )
        for name in ("q", "v", "a", "tau"):
            object.__setattr__(self, name, finite(getattr(self, name), shape, name, InvalidSamples))
        if self.gain is not None:
            object.__setattr__(self, "gain", finite(self.gain, shape[1:], "gain", InvalidSamples))
        if self.usable is None:
            usable = np.ones(shape, bool)
        else:
            usable = np.array(self.usable, dtype=bool)
        if usable.shape != shape:
            raise InvalidSamples(f"usable must be {shape}, got {usable.shape}")
        usable.setflags(write=False)
        object.__setattr__(self, "usable", usable)
        object.__setattr__(self, "joint_names", tuple(self.joint_names))
        object.__setattr__(self, "made_by", tuple(self.made_by))
        object.__setattr__(self, "warnings", tuple(self.warnings))

    def __len__(self) -> int:
        return len(self.q)

    def __repr__(self) -> str:
        return (
            f"<Samples: {len(self)} at {self.rate_hz:g} Hz, {self.n} joints, {self.kinematics}"
            " motion>"
        )

    @property
    def n(self) -> int:
        """Number of joints."""
        return int(self.q.shape[1])

    @property
    def t(self) -> Array:
        """Time of each sample on the recording's clock, (N,) [s]."""
        return self.start_s + np.arange(len(self)) / self.rate_hz

    @property
    def mask(self) -> Mask:
        """Which torques count in a fit, (N, n)."""
        assert self.usable is not None  # noqa: S101 - set by __post_init__
        return self.usable

    def away_from_reversals(self) -> Samples:
        """The samples without torques near reversals, see `Preparation.turning_s`."""
        if self.preparation is None:
            return self
        counting = self.preparation.is_clear(self.v, self.a)
        return replace(self, usable=self.mask & counting)

    def rows(self, which: slice) -> Samples:
        """A contiguous part of the samples, selected by a slice without a step."""
        if which.step not in (None, 1):
            raise InvalidSamples(
                "samples must stay uniform: use a slice without a step, or decimate"
            )
        start = which.indices(len(self))[0]
        cut = {name: getattr(self, name)[which] for name in ("q", "v", "a", "tau", "usable")}
        return replace(self, start_s=self.start_s + start / self.rate_hz, **cut)
