"""What a wrist sensor has weighed: a body in the sensor frame, the zero drift, the tilt of the base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from steelyard.arrays import Array, freeze
from steelyard.inertia import InertialParameters, frame_change_matrix
from steelyard.wrist.regressor import tilt_columns, tilted_gravity, wrench_regressor
from steelyard.wrist.static import StaticWeight

UNKNOWNS = (
    "m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz",
    "fx0", "fy0", "fz0", "tx0", "ty0", "tz0", "U", "V",
)  # fmt: skip
"""The order of the eighteen numbers: ten of the body, six zero drifts, two angles of the base."""


@dataclass(frozen=True, eq=False)
class WrenchPayload:
    """A payload weighed by a wrist sensor.

    Attributes:
        body: the answer, in the sensor frame; physical where all ten numbers were excited
        unconstrained: the plain estimate, in the sensor frame, which no real body may have
        drift: what the sensor shows without a load, (6,) [N, Nm], in the sensor frame
        inclination: tilt U, V of the base, (2,) [rad]
        nominal_gravity: gravity without a tilt, (3,) [m/s^2], in the base frame
        full_covariance: of the numbers in the order of `UNKNOWNS`, (18, 18); infinite where unknown, zero
            where taken as known
        noise: root mean square of the residuals, (6,) [N, Nm]
        trend: how fast the zero drift moves, (6,) [N/s, Nm/s]; NaN where it cannot be told
        trend_std: its standard deviation, (6,)
        T_flange_sensor: the sensor in the flange frame, (4, 4)
        method: how it was estimated, in words
        status: how good it is, a sentence
        made_by: how its samples were made, a sentence a step
    """

    body: InertialParameters
    unconstrained: InertialParameters
    drift: Array
    inclination: Array
    nominal_gravity: Array
    full_covariance: Array
    noise: Array
    trend: Array
    trend_std: Array
    T_flange_sensor: Array = field(default_factory=lambda: np.eye(4))
    method: str = ""
    status: str = ""
    made_by: Sequence[str] = ()

    def __post_init__(self) -> None:
        freeze(
            self, "drift", "inclination", "nominal_gravity", "full_covariance", "noise", "trend", "trend_std",
            "T_flange_sensor",
        )  # fmt: skip
        object.__setattr__(self, "made_by", tuple(self.made_by))

    @property
    def covariance(self) -> Array:
        """Of the ten numbers of the body, (10, 10); infinite where unknown."""
        return self.full_covariance[:10, :10]

    @property
    def std(self) -> Array:
        """Standard deviation of the ten numbers of the body, (10,) [SI]."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def com_std(self) -> Array:
        """Standard deviation of the centre of mass, (3,) [m]."""
        slope = np.column_stack([-self.body.com, np.eye(3)]) / self.body.mass
        return np.asarray(np.sqrt(np.diag(slope @ self.covariance[:4, :4] @ slope.T)))

    @property
    def drift_std(self) -> Array:
        """Standard deviation of the zero drift, (6,) [N, Nm]."""
        return np.asarray(np.sqrt(np.diag(self.full_covariance)[10:16]))

    @property
    def inclination_std(self) -> Array:
        """Standard deviation of U and V, (2,) [rad]."""
        return np.asarray(np.sqrt(np.diag(self.full_covariance)[16:]))

    @property
    def gravity_base(self) -> Array:
        """Where things fall, tilt included, (3,) [m/s^2], in the base frame."""
        return tilted_gravity(self.nominal_gravity, self.inclination)

    @property
    def knows_inertia(self) -> bool:
        """Whether the inertia was estimated, not only mass and centre of mass."""
        return bool(np.isfinite(np.diag(self.covariance)[4:]).all())

    def wrench(self, x: Array) -> Array:
        """What the load does to the sensor, without drift, (N, 6) [N, Nm], in the sensor frame.

        Args:
            x: features of the motion under `gravity_base`, (N, 12)
        """
        return np.asarray(wrench_regressor(x) @ self.body.vector)

    def slope(self, x: Array, R_base_sensor: Array) -> Array:
        """The derivative of load and drift together by the eighteen numbers, (N, 6, 18).

        Args:
            x: features of the motion under `gravity_base`, (N, 12)
            R_base_sensor: (N, 3, 3)
        """
        tilt = tilt_columns(self.body.vector, R_base_sensor, self.nominal_gravity, self.inclination)
        return np.concatenate([wrench_regressor(x), np.tile(np.eye(6), (len(x), 1, 1)), tilt], axis=2)

    def in_flange(self, flange: str = "flange") -> tuple[InertialParameters, Array]:
        """The body in the flange frame, and the covariance of its ten numbers there, (10, 10).

        Args:
            flange: name of that frame
        """
        A = frame_change_matrix(self.T_flange_sensor)
        return self.body.in_frame(flange, self.T_flange_sensor), np.asarray(A @ self.covariance @ A.T)


def payload_at_rest(static: StaticWeight, T_flange_sensor: Array | None = None) -> WrenchPayload:
    """The payload that postures at rest tell: mass and centre of mass; its inertia is that of a point.

    Args:
        static: what they tell
        T_flange_sensor: the sensor in the flange frame, (4, 4); the flange by default
    """
    point = InertialParameters.from_com(static.mass, static.com, np.zeros((3, 3)), "sensor")
    full = np.zeros((18, 18))
    known = [0, 1, 2, 3, *range(10, 18)]
    full[np.ix_(known, known)] = static.covariance
    full[range(4, 10), range(4, 10)] = np.inf
    return WrenchPayload(
        body=point,
        unconstrained=point,
        drift=static.drift,
        inclination=static.inclination,
        nominal_gravity=static.nominal_gravity,
        full_covariance=full,
        noise=np.sqrt((static.residual**2).mean(axis=0)),
        trend=static.trend,
        trend_std=static.trend_std,
        T_flange_sensor=np.eye(4) if T_flange_sensor is None else T_flange_sensor,
        method="postures at rest",
        status=f"postures at rest say nothing about the inertia; {static.status}",
        made_by=static.postures.notes,
    )
