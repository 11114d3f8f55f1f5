"""What the sensors of a simulated arm make of the truth: steps, noise and drift.

Encoders round to whole steps. The measured velocity is the difference of two encoder readings over
a short window that ends now, so it is rough and half a window late, as that of a drive is. Torque
noise is white, or AR(1): for rows T_r apart and a correlation time T_c

    x_k = rho x_{k-1} + sqrt(1 - rho^2) std e_k,   rho = exp(-T_r / T_c),   e_k ~ N(0, 1)

which has the given standard deviation at every row. A wrench has white noise and a constant drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.signal import lfilter

from steelyard._arrays import Array, read_only
from steelyard.errors import InvalidRobot

_ARRAYS = ("encoder_step", "torque_std", "wrench_std", "wrench_drift")


@dataclass(frozen=True, eq=False)
class SensorModel:
    """Errors of encoders, torque or current sensing, and a wrist force/torque sensor.

    A single number counts for every joint.

    Attributes:
        encoder_step: smallest difference of positions, () or (n,) [rad or m]; 0 for none
        velocity_window_s: time over which encoder readings are differenced, [s]; 0 gives the true
            velocity
        torque_std: standard deviation of the torque noise, () or (n,) [Nm or N]
        torque_correlation_s: correlation time of the torque noise, [s]; 0 is white
        torque_side: 'motor' for the torque of the drive with friction, rotor inertia and offset
            (and the current, where gains are known); 'link' for a torque sensor behind the gear
        wrist_sensor: whether there is a force/torque sensor at the flange
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
        for name in _ARRAYS:
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
        """Sensors without any error."""
        return cls(0.0, 0.0, 0.0, torque_side=torque_side, wrench_std=(0.0,) * 6)

    def require_fit(self, n: int) -> None:
        """Refuses a sensor model for another number of joints than n."""
        for name in ("encoder_step", "torque_std"):
            size = np.size(getattr(self, name))
            if np.ndim(getattr(self, name)) == 1 and size != n:
                raise InvalidRobot(
                    f"{name} has {size} numbers, the robot {n} joints; give {n} or one for all"
                )

    def encoder(self, q: Array) -> Array:
        """Positions as encoders read them, of true ones q, (..., n) [rad or m]."""
        step = np.asarray(self.encoder_step)
        whole = np.round(q / np.where(step > 0, step, 1.0)) * step
        return np.where(step > 0, whole, q)

    def velocity(self, q: Array, v_start: Array, *, step_s: float) -> Array | None:
        """Velocities from encoder readings, (K, n) [rad/s or m/s]; None where they are not measured so.

        True positions q are (K, n) [rad or m], step_s [s] apart; before the first the speed is
        v_start, (n,).
        """
        if self.velocity_window_s == 0:
            return None
        back = max(1, round(self.velocity_window_s / step_s))
        before = q[0] + np.outer(np.arange(-back, 0) * step_s, v_start)
        reading = self.encoder(np.concatenate([before, q]))
        return np.asarray((reading[back:] - reading[:-back]) / (back * step_s))

    def noisy_torque(self, tau: Array, period_s: float, generator: np.random.Generator) -> Array:
        """Torques as they are measured every `period_s` [s], of true ones tau, (N, n) [Nm or N]."""
        unit = ar1_noise(
            tau.shape, period_s, correlation_s=self.torque_correlation_s, generator=generator
        )
        return np.asarray(tau + self.torque_std * unit)

    def noisy_wrench(self, wrench: Array, generator: np.random.Generator) -> Array:
        """Wrenches as they are measured, of a true wrench, (N, 6) [N, Nm]."""
        noise = np.asarray(self.wrench_std) * generator.standard_normal(wrench.shape)
        return np.asarray(wrench + noise + self.wrench_drift)


def ar1_noise(
    shape: tuple[int, ...], period_s: float, *, correlation_s: float, generator: np.random.Generator
) -> Array:
    """Noise of unit standard deviation in rows `period_s` [s] apart, stationary from the first, (N, n).

    Its correlation time is `correlation_s` [s]; 0 is white.
    """
    white = generator.standard_normal(shape)
    if correlation_s == 0:
        return white
    rho = np.exp(-period_s / correlation_s)
    white[1:] *= np.sqrt(1 - rho**2)
    return np.asarray(lfilter([1.0], [1.0, -rho], white, axis=0))
