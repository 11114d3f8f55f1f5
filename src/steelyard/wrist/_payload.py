"""Results of a wrist sensor: the static stage, and the payload with zero drift and tilt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Annotated

import numpy as np

from steelyard._arrays import Array, freeze, read_only
from steelyard._kinds import COVARIANCE, INFINITE, NOT_NEGATIVE, RIGID, Shape
from steelyard.export import Load
from steelyard.inertia import FIRST_MOMENT, INERTIA, MASS, PARAMETER_NAMES, InertialParameters
from steelyard.payload import Evidence, Payload, Quantity, judge
from steelyard.payload._payload import DERIVED
from steelyard.verdict import Aspect, Doubt, DoubtKind, Verdict
from steelyard.wrist._regressor import BODY, DRIFT, TILT, BaseGravity, wrench_regressor
from steelyard.wrist._rest import Postures

STATIC_NAMES = ("m", "mx", "my", "mz", "fx0", "fy0", "fz0", "tx0", "ty0", "tz0", "U", "V")
"""The order of the twelve numbers of the static stage."""

STATIC_INDICES = [0, 1, 2, 3, *range(DRIFT.start, TILT.stop)]
"""The twelve numbers of the static stage among the eighteen of the dynamic stage."""

STATIC_DRIFT = slice(4, 10)
"""The zero drifts among the twelve numbers of the static stage."""

STATIC_TILT = slice(10, 12)
"""The tilt of the base among the twelve numbers of the static stage."""

_AXES = ("fx", "fy", "fz", "tx", "ty", "tz")
_WRENCH_UNITS = ("N", "N", "N", "Nm", "Nm", "Nm")
_EXPORT_CONTENT = "the load on the wrist sensor, without the sensor itself"
_MAX_INERTIA_STD = 0.2  # of the mean moment of inertia; larger ones give a doubt
_MAX_TILT_DEGREES = 10.0  # beyond a plausible mounting error
_MIN_TREND_SIGMA = 4.5  # standard deviations of one of six trends, for a doubt about drift


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WristPayload(
    Payload, kind="wrist payload", derived={**DERIVED, "covariance": attrgetter("covariance")}
):
    """A payload weighed by a wrist sensor, in the sensor frame.

    Attributes:
        full_covariance: of eighteen numbers: ten of the body, six zero drifts, tilt U and V, (18,
            18); infinite where unknown, zero where assumed to be known
        noise: root mean square of the residuals, (6,) [N, Nm]
        drift: reading of the sensor without a load, (6,) [N, Nm], in the sensor frame
        inclination: tilt U, V of the base, (2,) [rad]
        nominal_gravity: gravity without a tilt, (3,) [m/s^2], in the base frame
        trend: rate of the zero drift, (6,) [N/s, Nm/s]; NaN if unknown
        trend_std: standard deviation of the rate, (6,) [N/s, Nm/s]
        T_flange_sensor: pose of the sensor in the flange frame, (4, 4)
        made_by: preparation of its samples, a sentence for each step
    """

    covariance: Array = field(init=False)
    full_covariance: Annotated[Array, Shape(18, 18), INFINITE, COVARIANCE]
    noise: Annotated[Array, Shape(6), NOT_NEGATIVE]
    drift: Annotated[Array, Shape(6)]
    inclination: Annotated[Array, Shape(2)]
    nominal_gravity: Annotated[Array, Shape(3)]
    trend: Annotated[Array, Shape(6), INFINITE]
    trend_std: Annotated[Array, Shape(6), INFINITE]
    T_flange_sensor: Annotated[Array, Shape(4, 4), RIGID] = field(default_factory=lambda: np.eye(4))
    made_by: Sequence[str] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "inclination", read_only(_wrapped(self.inclination)))
        object.__setattr__(self, "covariance", self.full_covariance[BODY, BODY])

    @property
    def drift_std(self) -> Array:
        """Standard deviation of the zero drift, (6,) [N, Nm]."""
        return np.asarray(np.sqrt(np.diag(self.full_covariance)[DRIFT]))

    @property
    def inclination_std(self) -> Array:
        """Standard deviation of U and V, (2,) [rad]."""
        return np.asarray(np.sqrt(np.diag(self.full_covariance)[TILT]))

    @property
    def gravity_base(self) -> Array:
        """Gravity including the tilt, (3,) [m/s^2], in the base frame."""
        return BaseGravity(self.nominal_gravity).tilted(self.inclination)

    @property
    def knows_inertia(self) -> bool:
        """Whether the inertia was estimated, not only mass and centre of mass."""
        if not self.gives_intervals:
            return True
        return bool(np.isfinite(np.diag(self.covariance)[INERTIA]).all())

    def wrench(self, x: Array) -> Array:
        """The wrench of the load without drift, (N, 6) [N, Nm], in the sensor frame.

        Args:
            x: features of the motion, (N, 12)
        """
        return np.asarray(wrench_regressor(x) @ self.body.vector)

    def slope(self, x: Array, R_base_sensor: Array) -> Array:
        """The derivative of the wrench of load and drift by the eighteen numbers, (N, 6, 18).

        Args:
            x: features of the motion, (N, 12)
            R_base_sensor: orientation of the sensor, (N, 3, 3)
        """
        tilt = BaseGravity(self.nominal_gravity).tilt_columns(
            self.body.vector, R_base_sensor, self.inclination
        )
        return np.concatenate(
            [wrench_regressor(x), np.tile(np.eye(6), (len(x), 1, 1)), tilt], axis=2
        )

    @property
    def T_flange_frame(self) -> Array:
        """The frame of the body, that of the sensor, in the flange frame, (4, 4)."""
        return self.T_flange_sensor

    def in_flange(self, flange: str = "flange") -> Payload:
        """The payload in the flange frame, without the zero drift of the sensor.

        Args:
            flange: name of the frame
        """
        T = self.T_flange_sensor
        body, plain = (x.in_frame(flange, T) for x in (self.body, self.unconstrained))
        covariance = InertialParameters.moved_covariance(self.covariance, T)
        return Payload(
            body,
            plain,
            covariance,
            self.noise,
            self.verdict,
            self.method,
            gives_intervals=self.gives_intervals,
        )

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Mass, centre of mass, inertia, zero drift and tilt of the base, in units of reports."""
        rows = []
        for axis, x, std, unit in zip(
            _AXES, self.drift, self.drift_std, _WRENCH_UNITS, strict=True
        ):
            rows.append(Quantity(f"zero drift {axis}", float(x), float(std), unit))
        for name, x, std in zip("UV", self.inclination, self.inclination_std, strict=True):
            angle, error = np.degrees([x, std])
            rows.append(Quantity(f"tilt of the base {name}", float(angle), float(error), "degree"))
        return (*super().quantities, *self._shown(rows))

    def together_with(self, tool: Payload) -> Payload:
        """The tool and this part as one load, without the zero drift of the sensor.

        Args:
            tool: in the sensor frame
        """
        plain = Payload(
            self.body,
            self.unconstrained,
            self.covariance,
            self.noise,
            self.verdict,
            self.method,
            gives_intervals=self.gives_intervals,
        )
        return plain.together_with(tool)

    def as_load(self, *, name: str = "payload", number: int = 1) -> Load:
        """The load that an export writes, in the sensor frame.

        Args:
            name: of the payload, in formats with names
            number: of the payload, in formats with numbers
        """
        return Load(
            self.body, self.covariance, self.verdict, _EXPORT_CONTENT, self.drift, name, number
        )


@dataclass(frozen=True, eq=False)
class StaticFit:
    """The result of the static stage: what postures at rest determine.

    Attributes:
        value: twelve numbers in the order of `STATIC_NAMES`, (12,) [kg, kg m, N, Nm, rad]
        covariance: of these numbers, (12, 12); infinite where the postures do not determine them
        nominal_gravity: gravity without a tilt, (3,) [m/s^2], in the base frame
        postures: that were used
        residual: of each posture, (N, 6) [N, Nm]
        freedom: number of equations less number of unknowns
        trend: rate of the zero drift, (6,) [N/s, Nm/s]; NaN if times are unknown
        trend_std: standard deviation of the rate, (6,) [N/s, Nm/s]
        yaw: estimated rotation of the sensor about the flange axis, [rad]; 0 if it was known
        yaw_std: standard deviation of the yaw, [rad]
        verdict: whether it may be used, and the doubts about it
    """

    value: Array
    covariance: Array
    nominal_gravity: Array
    postures: Postures
    residual: Array
    freedom: int
    trend: Array
    trend_std: Array
    yaw: float
    yaw_std: float
    verdict: Verdict

    def __post_init__(self) -> None:
        object.__setattr__(
            self,
            "value",
            np.append(self.value[: STATIC_TILT.start], _wrapped(self.value[STATIC_TILT])),
        )
        freeze(self, "value", "covariance", "nominal_gravity", "residual", "trend", "trend_std")

    @property
    def mass(self) -> float:
        """Mass, [kg]."""
        return float(self.value[0])

    @property
    def com(self) -> Array:
        """Centre of mass, (3,) [m], in the sensor frame."""
        return np.asarray(self.value[FIRST_MOMENT] / self.value[MASS])

    @property
    def drift(self) -> Array:
        """Reading of the sensor without a load, (6,) [N, Nm], in the sensor frame."""
        return self.value[STATIC_DRIFT]

    @property
    def inclination(self) -> Array:
        """The tilt U, V of the base, (2,) [rad]."""
        return self.value[STATIC_TILT]

    @property
    def gravity_base(self) -> Array:
        """Gravity including the tilt, (3,) [m/s^2], in the base frame."""
        return BaseGravity(self.nominal_gravity).tilted(self.inclination)

    @property
    def std(self) -> Array:
        """Standard deviation of the twelve numbers, (12,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def interval(self, level: float = 0.95) -> Array:
        """Lower and upper end of the interval of each number, (12, 2).

        Args:
            level: probability that it contains the truth
        """
        from scipy.special import stdtrit

        half = stdtrit(max(self.freedom, 1), 0.5 + level / 2) * self.std
        return np.column_stack([self.value - half, self.value + half])

    def payload(self, T_flange_sensor: Array | None = None) -> WristPayload:
        """Mass and centre of mass as a payload with unknown inertia.

        Args:
            T_flange_sensor: pose of the sensor in the flange frame, (4, 4); the identity by default
        """
        point = InertialParameters.from_com(self.mass, self.com, np.zeros((3, 3)), "sensor")
        full = np.zeros((18, 18))
        full[np.ix_(STATIC_INDICES, STATIC_INDICES)] = self.covariance
        full[range(4, 10), range(4, 10)] = np.inf
        evidence = Evidence(
            point,
            full[BODY, BODY],
            np.isinf(np.diag(full)[BODY]),
            expected="postures at rest say nothing about the inertia",
            doubts=self.verdict.doubts,
            beyond_empty_arm=False,
        )
        body, verdict = judge(evidence)
        return WristPayload(
            body,
            point,
            verdict=replace(verdict, summary=self.verdict.summary),
            method="postures at rest",
            noise=np.sqrt((self.residual**2).mean(axis=0)),
            full_covariance=full,
            drift=self.drift,
            inclination=self.inclination,
            nominal_gravity=self.nominal_gravity,
            trend=self.trend,
            trend_std=self.trend_std,
            T_flange_sensor=np.eye(4) if T_flange_sensor is None else T_flange_sensor,
            made_by=self.postures.notes,
        )


def drift_doubt(trend: Array, trend_std: Array, *, modelled: bool = False) -> Doubt | None:
    """A doubt if the zero of the sensor drifts significantly during the run.

    The fit contains the drift, so that the payload is not concerned, but the zero itself is.

    Args:
        trend: rate of the drift, (6,) [N/s, Nm/s]; NaN if unknown
        trend_std: standard deviation of the rate, (6,) [N/s, Nm/s]
        modelled: whether the stated drift is that at the end of the run
    """
    if not (np.abs(trend) > _MIN_TREND_SIGMA * trend_std).any():
        return None
    axis = int(np.abs(trend / trend_std).argmax())
    if modelled:
        stated = "the stated drift is that at the end"
    else:
        stated = "the stated drift is that in the middle of the run: measure it again before use"
    rate = f"{60 * trend[axis]:.3g} {_WRENCH_UNITS[axis]} per minute"
    words = f"the zero drift changes during the run, {_AXES[axis]} by {rate}; {stated}"
    return Doubt(DoubtKind.DRIFT_MOVES, words, blocks=False, concerns=())


def tilt_doubt(inclination: Array, nominal_gravity: Array) -> Doubt | None:
    """A doubt if the tilt of the base is beyond a plausible mounting error.

    Args:
        inclination: tilt U, V of the base, (2,) [rad]
        nominal_gravity: gravity without a tilt, (3,) [m/s^2], in the base frame
    """
    tilt = float(np.degrees(np.arccos(np.cos(inclination).prod())))
    if tilt <= _MAX_TILT_DEGREES:
        return None
    tilted = BaseGravity(nominal_gravity).tilted(inclination) + 0.0
    gravity = ", ".join(f"{x:.2f}" for x in tilted)
    words = (
        f"the base appears to be tilted by {tilt:.0f} degrees: state `gravity_base=({gravity})` if"
        " it is mounted so; else check the orientation, the frame and the sign of the wrench"
    )
    return Doubt(DoubtKind.TILTED_BASE, words)


def _wrapped(angles: Array) -> Array:
    """The same angles in (-pi, pi]."""
    x = np.asarray(angles, dtype=float)
    return np.where(np.abs(x) < np.pi, x, np.pi - (np.pi - x) % (2 * np.pi))


def weak_inertia_doubt(body: InertialParameters, covariance: Array) -> Doubt | None:
    """A doubt, which does not block, if a motion hardly excites the inertia of a real body.

    Args:
        body: the estimate
        covariance: of the ten numbers, (10, 10)
    """
    size = float(np.trace(body.inertia) / 3)
    std = np.sqrt(np.diag(covariance)[INERTIA])
    weak = np.array(PARAMETER_NAMES[INERTIA])[std > _MAX_INERTIA_STD * size]
    if not weak.size or not body.is_physical:
        return None
    return Doubt(
        DoubtKind.NOT_EXCITED,
        f"the motion hardly excites {', '.join(weak)}",
        blocks=False,
        concerns=(Aspect.INERTIA,),
    )
