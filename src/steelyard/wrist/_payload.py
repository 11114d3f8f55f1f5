"""What a wrist sensor has weighed: at rest, and as a payload with zero drift and tilt of the base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from steelyard import fields
from steelyard._arrays import Array, freeze
from steelyard.export import Load
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.payload import Evidence, Payload, Quantity, judge
from steelyard.payload._payload import FORMAT
from steelyard.verdict import Doubt, DoubtKind, Verdict
from steelyard.wrist._regressor import BaseGravity, wrench_regressor
from steelyard.wrist._rest import Postures

STATIC_NAMES = ("m", "mx", "my", "mz", "fx0", "fy0", "fz0", "tx0", "ty0", "tz0", "U", "V")
"""The order of the twelve numbers of the static stage."""

_AXES = ("fx", "fy", "fz", "tx", "ty", "tz")
_UNITS = ("N", "N", "N", "Nm", "Nm", "Nm")
_HOLDS = "what hangs on the wrist sensor; the sensor itself is not in it"
_WEAK = 0.2  # of a typical moment of inertia: a larger standard deviation is worth knowing
_MOST_TILTED = 10.0  # [degrees]
_SIGNIFICANT = 4.5  # standard deviations of one of six trends before a moving drift is believed
_ARRAYS = (
    "full_covariance", "noise", "drift", "inclination", "nominal_gravity", "trend", "trend_std",
    "T_flange_sensor",
)  # fmt: skip


_FORMAT = {
    **FORMAT,
    "full_covariance": fields.numbers(18, 18, finite=False, covariance=True),
    "channels": fields.one_of(6),
    **{name: fields.numbers(6) for name in ("noise", "drift")},
    **{name: fields.numbers(6, finite=False) for name in ("trend", "trend_std")},
    "inclination": fields.numbers(2),
    "nominal_gravity": fields.numbers(3),
    "T_flange_sensor": fields.numbers(4, 4, rigid=True),
    "made_by": fields.each(fields.TEXT),
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WristPayload(Payload):
    """A payload weighed by a wrist sensor, in the sensor frame.

    Attributes:
        full_covariance: of eighteen numbers: ten of the body, six zero drifts, tilt U and V, (18,
            18); infinite where unknown, zero where taken as known
        noise: root mean square of the residuals, (6,) [N, Nm]
        drift: what the sensor shows without a load, (6,) [N, Nm], in the sensor frame
        inclination: tilt U, V of the base, (2,) [rad]
        nominal_gravity: gravity without a tilt, (3,) [m/s^2], in the base frame
        trend: how fast the zero drift moves, (6,) [N/s, Nm/s]; NaN where unknown
        trend_std: its standard deviation, (6,)
        T_flange_sensor: the sensor in the flange frame, (4, 4)
        made_by: how its samples were made, a sentence for each step
    """

    covariance: Array = field(init=False)
    full_covariance: Array
    drift: Array
    inclination: Array
    nominal_gravity: Array
    trend: Array
    trend_std: Array
    T_flange_sensor: Array = field(default_factory=lambda: np.eye(4))
    made_by: Sequence[str] = ()
    _KIND: ClassVar[str] = "wrist payload"

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "covariance", np.asarray(self.full_covariance, dtype=float)[:10, :10]
        )
        object.__setattr__(self, "inclination", _wrapped(self.inclination))
        super().__post_init__()
        freeze(self, *_ARRAYS)
        object.__setattr__(self, "made_by", tuple(self.made_by))

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
        return BaseGravity(self.nominal_gravity).tilted(self.inclination)

    @property
    def knows_inertia(self) -> bool:
        """Whether the inertia was estimated, not only mass and centre of mass."""
        return bool(np.isfinite(np.diag(self.covariance)[4:]).all())

    def wrench(self, x: Array) -> Array:
        """The wrench of the load at features x, (N, 12), without drift, (N, 6) [N, Nm], sensor frame."""
        return np.asarray(wrench_regressor(x) @ self.body.vector)

    def slope(self, x: Array, R_base_sensor: Array) -> Array:
        """The derivative of load and drift by the eighteen numbers, (N, 6, 18), at features x, (N, 12).

        Args:
            R_base_sensor: orientation of the sensor, (N, 3, 3)
        """
        tilt = BaseGravity(self.nominal_gravity).tilt_columns(
            self.body.vector, R_base_sensor, self.inclination
        )
        return np.concatenate(
            [wrench_regressor(x), np.tile(np.eye(6), (len(x), 1, 1)), tilt], axis=2
        )

    def in_flange(self, flange: str = "flange") -> Payload:
        """The payload in the flange frame; the zero drift of the sensor is no part of it."""
        T = self.T_flange_sensor
        body, plain = (x.in_frame(flange, T) for x in (self.body, self.unconstrained))
        covariance = InertialParameters.moved_covariance(self.covariance, T)
        return Payload(body, plain, covariance, self.noise, self.verdict, self.method)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Mass, centre of mass, inertia, zero drift and tilt of the base, as people read them."""
        rows = list(super().quantities)
        for axis, x, std, unit in zip(_AXES, self.drift, self.drift_std, _UNITS, strict=True):
            rows.append(Quantity(f"zero drift {axis}", float(x), float(std), unit))
        for name, x, std in zip("UV", self.inclination, self.inclination_std, strict=True):
            angle, error = np.degrees([x, std])
            rows.append(Quantity(f"tilt of the base {name}", float(angle), float(error), "degree"))
        return tuple(rows)

    def together_with(self, tool: Payload) -> Payload:
        """The tool and this part as one load; the zero drift of the sensor is no part of it.

        Args:
            tool: in the sensor frame too
        """
        plain = Payload(
            self.body, self.unconstrained, self.covariance, self.noise, self.verdict, self.method
        )
        return plain.together_with(tool)

    def as_load(self, *, name: str = "payload", number: int = 1) -> Load:
        """What an export writes, in the sensor frame: say where the sensor sits in that of the target."""
        return Load(self.body, self.covariance, self.verdict, _HOLDS, self.drift, name, number)

    def to_dict(self) -> dict[str, Any]:
        """Everything there is to know, as texts, numbers and arrays."""
        return {
            **super().to_dict(),
            **{name: getattr(self, name) for name in _ARRAYS},
            "made_by": list(self.made_by),
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """The payload that `to_dict` has written."""
        fields.check(content, _FORMAT)
        body, plain = (
            InertialParameters.from_vector(content[name], content["frame"])
            for name in ("vector", "unconstrained")
        )
        arrays: dict[str, Any] = {name: np.array(content[name], dtype=float) for name in _ARRAYS}
        return cls(
            body,
            plain,
            verdict=Verdict.from_dict(content["verdict"]),
            method=content["method"],
            made_by=content["made_by"],
            **arrays,
        )


@dataclass(frozen=True, eq=False)
class StaticWeight:
    """What postures at rest determine.

    Attributes:
        value: twelve numbers in the order of `STATIC_NAMES`, (12,) [kg, kg m, N, Nm, rad]
        covariance: theirs, (12, 12); infinite where the postures say nothing
        nominal_gravity: gravity without a tilt, (3,) [m/s^2], in the base frame
        postures: those used
        residual: of each, (N, 6) [N, Nm]
        freedom: equations less unknowns
        trend: how fast the zero drift moves, (6,) [N/s, Nm/s]; NaN where time is not known
        trend_std: its standard deviation, (6,)
        yaw: rotation of the sensor about the flange axis that was found, [rad]; 0 where it was
            known
        yaw_std: its standard deviation, [rad]
        verdict: whether it may be used, and what counts against it
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
        object.__setattr__(self, "value", np.append(self.value[:10], _wrapped(self.value[10:])))
        freeze(self, "value", "covariance", "nominal_gravity", "residual", "trend", "trend_std")

    @property
    def mass(self) -> float:
        """[kg]."""
        return float(self.value[0])

    @property
    def com(self) -> Array:
        """Centre of mass, (3,) [m], in the sensor frame."""
        return np.asarray(self.value[1:4] / self.value[0])

    @property
    def drift(self) -> Array:
        """What the sensor shows without a load, (6,) [N, Nm], in the sensor frame."""
        return self.value[4:10]

    @property
    def inclination(self) -> Array:
        """The tilt U, V of the base, (2,) [rad]."""
        return self.value[10:]

    @property
    def gravity_base(self) -> Array:
        """Where things fall, tilt included, (3,) [m/s^2], in the base frame."""
        return BaseGravity(self.nominal_gravity).tilted(self.inclination)

    @property
    def std(self) -> Array:
        """Standard deviation of the twelve numbers, (12,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def interval(self, level: float = 0.95) -> Array:
        """Lower and upper end of the interval of each number that has a level of probability, (12, 2)."""
        from scipy.special import stdtrit

        half = stdtrit(max(self.freedom, 1), 0.5 + level / 2) * self.std
        return np.column_stack([self.value - half, self.value + half])

    def payload(self, T_flange_sensor: Array | None = None) -> WristPayload:
        """Mass and centre of mass as a payload; its inertia is that of a point, and unknown.

        Args:
            T_flange_sensor: the sensor in the flange frame, (4, 4); the flange by default
        """
        point = InertialParameters.from_com(self.mass, self.com, np.zeros((3, 3)), "sensor")
        full = np.zeros((18, 18))
        known = [0, 1, 2, 3, *range(10, 18)]
        full[np.ix_(known, known)] = self.covariance
        full[range(4, 10), range(4, 10)] = np.inf
        evidence = Evidence(
            point,
            full[:10, :10],
            np.isinf(np.diag(full)[:10]),
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
    """A doubt where the zero of the sensor moves significantly.

    Args:
        trend: how fast it moves, (6,) [N/s, Nm/s]; NaN where unknown
        trend_std: its standard deviation, (6,)
        modelled: the drift given is that of the present time, so that it does not forbid the use
    """
    if not (np.abs(trend) > _SIGNIFICANT * trend_std).any():
        return None
    axis = int(np.abs(trend / trend_std).argmax())
    given = "the drift given is that in the middle of the run, measure it again before use"
    words = (
        f"the zero drift moves during the run, {_AXES[axis]} by {60 * trend[axis]:.3g}"
        f" {_UNITS[axis]} per"
        f" minute; {'the drift given is that at the end' if modelled else given}"
    )
    return Doubt(DoubtKind.DRIFT_MOVES, words, blocks=not modelled)


def tilt_doubt(inclination: Array, nominal_gravity: Array) -> Doubt | None:
    """A doubt where the base is tilted by more than anybody mounts unknowingly.

    Args:
        inclination: tilt U, V of the base, (2,) [rad]
        nominal_gravity: gravity without a tilt, (3,) [m/s^2], in the base frame
    """
    tilt = float(np.degrees(np.arccos(np.cos(inclination).prod())))
    if tilt <= _MOST_TILTED:
        return None
    falls = ",".join(f"{x:.2f}" for x in BaseGravity(nominal_gravity).tilted(inclination) + 0.0)
    words = (
        f"the base came out tilted by {tilt:.0f} degrees: how is it mounted? If so, give --gravity"
        f" {falls}"
        " (gravity_base in the description of the sensor); else the orientation, the frame or the"
        " sign of the"
        " wrench is not as stated"
    )
    return Doubt(DoubtKind.TILTED_BASE, words)


def _wrapped(angles: Array) -> Array:
    """The same angles in (-pi, pi]."""
    x = np.asarray(angles, dtype=float)
    return np.where(np.abs(x) < np.pi, x, np.pi - (np.pi - x) % (2 * np.pi))


def weak_inertia_doubt(body: InertialParameters, covariance: Array) -> Doubt | None:
    """A doubt, worth knowing, where a motion hardly shows some numbers of a real body's inertia.

    Args:
        covariance: of the ten numbers, (10, 10)
    """
    size = float(np.trace(body.inertia) / 3)
    weak = np.array(PARAMETER_NAMES[4:])[np.sqrt(np.diag(covariance)[4:]) > _WEAK * size]
    if not weak.size or not body.is_physical:
        return None
    return Doubt(
        DoubtKind.NOT_EXCITED, f"the motion hardly excites {', '.join(weak)}", blocks=False
    )
