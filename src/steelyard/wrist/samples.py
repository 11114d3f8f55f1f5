"""Wrench and motion of a sensor, ready to fit: uniform, finite, differentiated, with the noise of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.signals import low_pass, resample
from steelyard.wrist.regressor import feature_covariance, features
from steelyard.wrist.sensor import WristSensor

_LONGEST_GAP_S = 0.05
_GAP_STEPS = 5
_KEPT_SHARE, _KEPT_VARIANCE = 0.96, 0.793


@dataclass(frozen=True, eq=False)
class WrenchSamples:
    """What the dynamic stage fits; wrench and motion have gone through the same filter.

    Attributes:
        t: time, (N,) [s]
        wrench: what the load does to the sensor, (N, 6) [N, Nm], in the sensor frame
        wrench_covariance: of its noise, (6, 6)
        R_base_sensor: orientation of the sensor, (N, 3, 3)
        acceleration: of the sensor's origin, gravity not included, (N, 3) [m/s^2], in the sensor frame
        angular_velocity: (N, 3) [rad/s], in the sensor frame
        angular_acceleration: (N, 3) [rad/s^2], in the sensor frame
        covariance: of the noise of (acceleration, angular velocity, angular acceleration), (N, 9, 9)
        sensor: what is known about the sensor
        made_by: how it was made, a sentence a step
    """

    t: Array
    wrench: Array
    wrench_covariance: Array
    R_base_sensor: Array
    acceleration: Array
    angular_velocity: Array
    angular_acceleration: Array
    covariance: Array
    sensor: WristSensor
    made_by: Sequence[str] = ()

    def __post_init__(self) -> None:
        N = len(self.t)
        shapes = {
            "t": (N,), "wrench": (N, 6), "wrench_covariance": (6, 6), "R_base_sensor": (N, 3, 3),
            "acceleration": (N, 3), "angular_velocity": (N, 3), "angular_acceleration": (N, 3),
            "covariance": (N, 9, 9),
        }  # fmt: skip
        for name, shape in shapes.items():
            array = np.array(getattr(self, name), dtype=float)
            if array.shape != shape or N == 0 or not np.isfinite(array).all():
                raise InvalidSamples(f"{name} must be {shape} finite numbers, got shape {array.shape}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "made_by", tuple(self.made_by))

    def __len__(self) -> int:
        return len(self.t)

    def gravity_sensor(self, gravity_base: Array) -> Array:
        """Gravity in the sensor frame, (N, 3) [m/s^2].

        Args:
            gravity_base: (3,) [m/s^2], in the base frame
        """
        return np.asarray(np.einsum("nji,j->ni", self.R_base_sensor, gravity_base))

    def features(self, gravity_base: Array) -> Array:
        """The twelve features of the motion, (N, 12).

        Args:
            gravity_base: (3,) [m/s^2], in the base frame
        """
        return features(
            self.gravity_sensor(gravity_base),
            self.acceleration,
            self.angular_velocity,
            self.angular_acceleration,
            self.covariance[:, 3:6, 3:6],
        )

    @property
    def feature_covariance(self) -> Array:
        """Of the errors of the features, (N, 12, 12)."""
        return feature_covariance(self.angular_velocity, self.covariance)


def on_uniform_clock(t: Array, signals: Sequence[Array]) -> tuple[Array, list[Array], str]:
    """Uniform times, the signals there (the first by a cubic spline, the others linearly), a sentence.

    Args:
        t: times, (N,) [s]
        signals: each (N, ...); the first is smooth
    """
    fresh = np.concatenate([[True], np.diff(t) > 0])
    t, rows = t[fresh], [np.asarray(x)[fresh] for x in signals]
    steps = np.diff(t)
    if len(steps) < 8:
        raise InvalidSamples(f"only {len(t)} rows with different times; a motion needs more")
    median = float(np.median(steps))
    longest = max(_GAP_STEPS * median, _LONGEST_GAP_S)
    if steps.max() > longest:
        i = int(steps.argmax())
        raise InvalidRecording(
            f"{steps[i]:.3f} s are missing after t = {t[i]:.3f} s (longest allowed: {longest:.3f} s);"
            " split the recording there"
        )
    if np.ptp(steps) < 1e-3 * median:
        return t, rows, "uniform clock"
    grid = np.linspace(t[0], t[-1], len(t))
    moved = [resample(t, rows[0], grid)]
    for x in rows[1:]:
        flat = resample(t, x.reshape(len(t), -1), grid, smooth=False)
        moved.append(flat.reshape(x.shape))
    return grid, moved, f"resampled at {1 / (grid[1] - grid[0]):.6g} Hz"


def noise_of_differences(x: Array) -> Array:
    """The standard deviation of white noise on a smooth signal, from its fourth differences, (n,).

    The largest 4 % are left out, because a motion may jump (friction where a joint turns round); of normal
    noise the others have 0.793 of its variance.

    Args:
        x: signal, (N, n)
    """
    squares = np.sort(np.diff(x, 4, axis=0) ** 2, axis=0)
    kept = squares[: max(1, int(np.ceil(_KEPT_SHARE * len(squares))))]
    return np.asarray(np.sqrt(kept.mean(axis=0) / _KEPT_VARIANCE / 70.0))


def zero_phase_gain(cutoff_hz: float | None, rate_hz: float) -> tuple[float, float, float]:
    """What the zero-phase low-pass makes of white noise of unit variance: of value, slope, and curvature.

    The variances of the filtered signal and of its first two derivatives by central differences.

    Args:
        cutoff_hz: of the filter, [Hz]; None for no filter
        rate_hz: samples for each second, [Hz]
    """
    half = 8 if cutoff_hz is None else int(np.ceil(8 * rate_hz / cutoff_hz)) + 8
    h = np.zeros((2 * half + 1, 1))
    h[half] = 1.0
    if cutoff_hz is not None:
        h = low_pass(h, cutoff_hz, rate_hz)
    first = (h[2:] - h[:-2]) * rate_hz / 2
    second = (h[2:] - 2 * h[1:-1] + h[:-2]) * rate_hz**2
    return float((h**2).sum()), float((first**2).sum()), float((second**2).sum())
