"""Sensor errors of a simulated arm: quantisation, noise and drift.

Encoders round to whole steps. The measured velocity is the difference of two encoder readings over
a short window that ends now; it is quantised and half a window late, like the velocity of a real
drive. Torque noise is white, or AR(1): for rows T_r apart and a correlation time T_c

    x_k = rho x_{k-1} + sqrt(1 - rho^2) std e_k,   rho = exp(-T_r / T_c),   e_k ~ N(0, 1)

which has the given standard deviation at every row. Wrenches have white noise and a constant drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from steelyard._arrays import Array, read_only
from steelyard.errors import InvalidRobot

_ARRAY_FIELDS = ("encoder_step", "torque_std", "wrench_std", "wrench_drift")


@dataclass(frozen=True, eq=False)
class SensorModel:
    """Errors of encoders, torque or current sensing, and a wrist force/torque sensor.

    A single number applies to every joint.

    Attributes:
        encoder_step: resolution of the positions, () or (n,) [rad or m]; 0 for exact positions
        velocity_window_s: time over which encoder readings are differenced, [s]; 0 gives the true
            velocity
        torque_std: standard deviation of the torque noise, () or (n,) [Nm or N]
        torque_correlation_s: correlation time of the torque noise, [s]; 0 is white
        torque_side: 'motor' for the torque of the drive with friction, rotor inertia and offset
            (and the current, where gains are known); 'link' for a torque sensor behind the gear
        wrist_sensor: whether the arm has a force/torque sensor at the flange
        wrench_std: standard deviation of its noise, (6,) [N, Nm]
        wrench_drift: constant error of the wrench, (6,) [N, Nm]
    """

    encoder_step: Array | float = 1e-5
    velocity_window_s: float = 0.002
    torque_std: Array | float = 0.2
    torque_correlation_s: float = 0.0
    torque_side: Literal["motor", "link"] = "motor"
    wrist_sensor: bool = True
    wrench_std: Array | tuple[float, ...] = (0.3, 0.3, 0.3, 0.01, 0.01, 0.01)
    wrench_drift: Array | tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        for name in _ARRAY_FIELDS:
            array = np.array(getattr(self, name), dtype=float)
            if not np.isfinite(array).all() or (name != "wrench_drift" and (array < 0).any()):
                raise InvalidRobot(f"{name} must be finite and not negative, got {array}")
            if array.ndim > 1 or (name.startswith("wrench") and array.shape != (6,)):
                raise InvalidRobot(
                    f"{name} has the wrong shape {array.shape}: six numbers for a wrench"
                )
            object.__setattr__(self, name, read_only(array))
        for name in ("velocity_window_s", "torque_correlation_s"):
            if not 0 <= getattr(self, name) < np.inf:
                raise InvalidRobot(f"{name} must not be negative, got {getattr(self, name)}")
        if self.torque_side not in ("motor", "link"):
            raise InvalidRobot(f"torque_side must be 'motor' or 'link', got '{self.torque_side}'")

    @classmethod
    def ideal(cls, torque_side: Literal["motor", "link"] = "motor") -> SensorModel:
        """Sensors without errors."""
        return cls(0.0, 0.0, 0.0, torque_side=torque_side, wrench_std=(0.0,) * 6)

    def require_fit(self, n: int) -> None:
        """Raises an error if the sensor model is for another number of joints than n."""
        for name in ("encoder_step", "torque_std"):
            size = np.size(getattr(self, name))
            if np.ndim(getattr(self, name)) == 1 and size != n:
                raise InvalidRobot(
                    f"{name} has {size} numbers, the robot {n} joints; give {n} or one for all"
                )

    def encoder(self, q: Array) -> Array:
        """Encoder readings of true positions q, (..., n) [rad or m]."""
        step = np.asarray(self.encoder_step)
        whole = np.round(q / np.where(step > 0, step, 1.0)) * step
        return np.where(step > 0, whole, q)

    def velocity(self, q: Array, v_start: Array, *, step_s: float) -> Array | None:
        """Velocities from encoder readings, (K, n) [rad/s or m/s]; None for exact velocities.

        Args:
            q: true positions, (K, n) [rad or m]
            v_start: velocity before the first position, (n,) [rad/s or m/s]
            step_s: time between two positions, [s]
        """
        if self.velocity_window_s == 0:
            return None
        back = max(1, round(self.velocity_window_s / step_s))
        before = q[0] + np.outer(np.arange(-back, 0) * step_s, v_start)
        reading = self.encoder(np.concatenate([before, q]))
        return np.asarray((reading[back:] - reading[:-back]) / (back * step_s))

    def noisy_torque(self, tau: Array, period_s: float, generator: np.random.Generator) -> Array:
        """Measured torques of true torques tau, (N, n) [Nm or N], in rows `period_s` [s] apart."""
        unit = ar1_noise(
            tau.shape, period_s, correlation_s=self.torque_correlation_s, generator=generator
        )
        return np.asarray(tau + self.torque_std * unit)

    def noisy_wrench(self, wrench: Array, generator: np.random.Generator) -> Array:
        """What the sensor measures of each true wrench, (N, 6) [N, Nm]."""
        noise = np.asarray(self.wrench_std) * generator.standard_normal(wrench.shape)
        return np.asarray(wrench + noise + self.wrench_drift)


def ar1_noise(
    shape: tuple[int, ...], period_s: float, *, correlation_s: float, generator: np.random.Generator
) -> Array:
    """Noise of unit standard deviation, stationary from the first row, (N, n).

    Args:
        shape: N rows, n columns
        period_s: time between two rows, [s]
        correlation_s: correlation time, [s]; 0 for white noise
        generator: random generator
    """
    white = generator.standard_normal(shape)
    if correlation_s == 0:
        return white
    from scipy.signal import lfilter  # slow to import, and only correlated noise needs it

    rho = np.exp(-period_s / correlation_s)
    white[1:] *= np.sqrt(1 - rho**2)
    return np.asarray(lfilter([1.0], [1.0, -rho], white, axis=0))
