"""The friction law of drives: columns for a batch, or row by row with memory.

For a drive that moves at speed v, at position u, and carries the torque L, friction is linear in
coefficients,

    f = Fc s + Fv |v|^alpha sign(v) + B + Fs exp(-(v / vs)^2) s + Fa |v| + Fl |L| s

with shapes that are not: the exponent alpha (xu2024 eq. (2); 1 is linear), the Stribeck speed vs,
and what the direction s is where a joint turns round or rests:

    exact       sign(v)
    band        sign(v), but 0 for |v| < width [rad/s]   (ding2019)
    smooth      tanh(v / width), width in rad/s
    presliding  dz = (sign(du) - z) |du| / width, width in rad: the direction follows the distance
                travelled, as asperities and teeth bend before they slip (Dahl 1968). It has a
                memory, so at rest it keeps the torque of the last motion, which no function of
                speed can.

Fa is by how much friction differs by direction. The difference of the Coulomb friction of both
directions belongs to B, and Fa |v| is the next term of the difference as a function of the speed,
whatever that function is: friction is Fv + Fa forwards and Fv - Fa backwards where alpha is 1.

Fl is the share of the carried torque that a gear turns into friction (harmonic drives do). Where
only the torque tau of a drive is known, L follows from it,

    tau = L + f_0 + Fl |L| s   =>   L = (tau - f_0) / (1 + Fl s sign(tau - f_0))

    with f_0 all other friction.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import Annotated, Any, Literal, get_args

import numpy as np

from steelyard._arrays import Array, Mask, read_only
from steelyard._codec import Value
from steelyard._kinds import NOT_NEGATIVE, POSITIVE, Shape
from steelyard.errors import InvalidRobot, UnknownName
from steelyard.robot._parameters import Parameter, ParameterKind, ParameterTable

Direction = Literal["exact", "band", "smooth", "presliding"]

FRICTION_MODELS: dict[str, tuple[Direction, bool, bool, bool]] = {
    "linear": ("exact", False, False, False),
    "band": ("band", False, False, False),
    "power": ("exact", True, False, False),
    "smooth": ("smooth", False, False, False),
    "smooth-power": ("smooth", True, False, False),
    "stribeck": ("smooth", False, True, False),
    "load": ("smooth", True, False, True),
    "presliding": ("presliding", False, False, False),
    "presliding-power": ("presliding", True, False, False),
    "presliding-load": ("presliding", True, False, True),
}
"""The laws by name: direction, curved, stribeck, load."""

ASYMMETRIC = "-asymmetric"
"""Ending of the name of a law with friction that differs by direction; any law may have it."""

_BOUNDS = {
    "exponent": (0.05, 2.0),
    "smooth": (1e-3, 0.3),
    "presliding": (1e-5, 0.1),
    "stribeck_speed": (5e-3, 2.0),
}
_STRIBECK_STARTS = (0.05, 0.15, 0.5)  # [rad/s]
_WIDTH_STARTS = {"exact": 1.0, "band": 0.02, "smooth": 0.02, "presliding": 1e-3}
_LOG_SHAPE_STEP = 1e-4  # step of numerical derivatives
_MIN_SLIDING_SPEED = 0.01  # [rad/s]; a faster drive has its sliding direction


LAW_GROUP = "steelyard.friction_laws"
"""Entry points of laws of other packages: a tuple as in `FRICTION_MODELS`."""


def _features(name: str) -> tuple[Direction, bool, bool, bool]:
    """Direction, curved, stribeck and load of a law, ours or that of an installed package."""
    if name in FRICTION_MODELS:
        return FRICTION_MODELS[name]
    others = {entry.name: entry for entry in entry_points(group=LAW_GROUP)}
    if name not in others:
        known = ", ".join([*FRICTION_MODELS, *sorted(others)])
        raise UnknownName(
            f"no friction law '{name}'; there are {known}, each also with '{ASYMMETRIC}'"
        )
    direction, *features = others[name].load()
    if direction not in get_args(Direction) or len(features) != 3:
        raise InvalidRobot(
            f"the friction law '{name}' of a plug-in must be a direction"
            f" ({', '.join(get_args(Direction))}) and three truths: curved, stribeck, load"
        )
    curved, stribeck, load = map(bool, features)
    return direction, curved, stribeck, load


@dataclass(frozen=True, eq=False)
class FrictionLaw(Value, error=InvalidRobot):
    """A friction law of n drives: its terms and shapes.

    A motion is positions u [rad or m] and speeds v [rad/s or m/s] of the drives, and the load that
    each gear carries [Nm or N], None for none: (N, n) each in the order of time, or (n,) for one
    row.

    Attributes:
        name: of the law
        direction: how it treats rest and reversal
        curved: whether the speed law has an exponent of its own
        stribeck: whether friction falls with speed from rest
        load: whether friction grows with the carried torque
        exponent: alpha of each drive, (n,)
        width: of the direction, (n,) [rad/s, or rad for presliding]
        stribeck_speed: vs, (n,) [rad/s]
        fixed: whether the shapes are given, not fitted
        smooth_speed: whether the speed law is `|v|^alpha s`, as in `DriveModel`, or
            `|v|^alpha sign(v)`
        carrying: 1 for drives whose friction grows with the carried torque, 0 for others, (n,); all
            when None
        asymmetric: whether friction differs by direction
    """

    name: str
    direction: Direction
    curved: bool
    stribeck: bool
    load: bool
    exponent: Annotated[Array, Shape("n"), POSITIVE]
    width: Annotated[Array, Shape("n"), NOT_NEGATIVE]
    stribeck_speed: Annotated[Array, Shape("n"), POSITIVE]
    fixed: bool = False
    smooth_speed: bool = False
    carrying: Annotated[Array | None, Shape("n")] = None
    asymmetric: bool = False

    @classmethod
    def named(
        cls, name: str, n: int, *, exponent: Array | None = None, width: Array | None = None
    ) -> FrictionLaw:
        """A law by name, one of `FRICTION_MODELS` or of an installed package, for n drives.

        Args:
            name: of the law; with `ASYMMETRIC` at its end friction differs by direction
            exponent: to start from, (n,); 0.7 by default where the law is curved
            width: to start from, (n,) [rad/s, or rad for presliding]
        """
        direction, curved, stribeck, load = _features(name.removesuffix(ASYMMETRIC))
        if exponent is None:
            first = np.full(n, 0.7 if curved else 1.0)
        else:
            first = np.array(exponent, dtype=float)
        if width is None:
            widths = np.full(n, _WIDTH_STARTS[direction])
        else:
            widths = np.array(width, dtype=float)
        if (
            first.shape != (n,)
            or widths.shape != (n,)
            or not (first > 0).all()
            or not (widths > 0).all()
        ):
            raise InvalidRobot(f"exponent and width of a friction law must be {n} positive numbers")
        return cls(
            name,
            direction,
            curved,
            stribeck,
            load,
            first,
            widths,
            np.full(n, 0.1),
            asymmetric=name.endswith(ASYMMETRIC),
        )

    @property
    def by_direction(self) -> FrictionLaw:
        """The same law with friction that differs by direction."""
        return replace(self, name=f"{self.name}{ASYMMETRIC}", asymmetric=True)

    @property
    def terms(self) -> tuple[ParameterKind, ...]:
        """The kinds of its coefficients in the order of `columns`: Fc, Fv, then Fs, Fa, Fl."""
        terms = [ParameterKind.COULOMB, ParameterKind.VISCOUS]
        if self.stribeck:
            terms.append(ParameterKind.STRIBECK)
        if self.asymmetric:
            terms.append(ParameterKind.ASYMMETRY)
        if self.load:
            terms.append(ParameterKind.LOAD_SHARE)
        return tuple(terms)

    @property
    def extra_parameters(self) -> tuple[Parameter, ...]:
        """The coefficients beyond Fc, Fv and B: Fs of all drives, then Fa, then Fl."""
        drives = range(len(self.exponent))
        return tuple(Parameter(kind, j) for kind in self.terms[2:] for j in drives)

    def coefficients(self, parameters: ParameterTable, values: Array) -> Array:
        """The coefficients of its terms, (terms, n), zero for those that are not in the table.

        Args:
            parameters: a table that holds coefficients of friction
            values: of the parameters, (p,) [SI]
        """
        return parameters.of_kinds_by_joint(values, self.terms, len(self.exponent))

    @property
    def free_shapes(self) -> tuple[str, ...]:
        """The shapes that are fitted to data."""
        if self.fixed:
            return ()
        names = [
            *(["exponent"] if self.curved else []),
            *(["stribeck_speed"] if self.stribeck else []),
        ]
        return (*names, *(["width"] if self.direction in ("smooth", "presliding") else []))

    @property
    def starts(self) -> tuple[FrictionLaw, ...]:
        """Start points for fitting the shapes; only a Stribeck curve needs several."""
        if not self.stribeck or self.fixed:
            return (self,)
        return tuple(
            replace(self, stribeck_speed=np.full(len(self.exponent), v)) for v in _STRIBECK_STARTS
        )

    def with_log_shapes(self, values: Array) -> FrictionLaw:
        """The same law with free shapes exp(`values`), (len(free_shapes), n), within bounds."""
        law = copy(self)  # without the checks of a new law: the bounds are positive
        for name, row in zip(self.free_shapes, values, strict=True):
            low, high = self._bounds(name)
            shape = np.minimum(np.maximum(np.exp(row), low), high)
            object.__setattr__(law, name, read_only(shape))
        return law

    @property
    def at_bounds(self) -> Mask:
        """Which free shapes lie at an end of their range, (len(free_shapes), n)."""
        out = np.zeros((len(self.free_shapes), len(self.exponent)), dtype=bool)
        for row, name in zip(out, self.free_shapes, strict=True):
            low, high = self._bounds(name)
            row[:] = np.isclose(getattr(self, name), low) | np.isclose(getattr(self, name), high)
        return out

    def _bounds(self, shape: str) -> tuple[float, float]:
        return _BOUNDS[self.direction if shape == "width" else shape]

    @property
    def log_shapes(self) -> Array:
        """Logarithms of the free shapes, (len(free_shapes), n)."""
        rows = [np.log(getattr(self, name)) for name in self.free_shapes]
        return np.array(rows).reshape(-1, len(self.exponent))

    def columns(self, u: Array, v: Array, load: Array | None = None) -> Array:
        """The columns of its coefficients along a motion u, v, load: (terms, N, n)."""
        return self.step(self.init(u[0]), u, v, load)[1]

    def slopes(
        self, u: Array, v: Array, load: Array | None, here: Array, coefficients: Array
    ) -> Array:
        """The derivative of friction by the logarithm of each free shape, (shapes, N, n) [Nm].

        Args:
            u: positions of the drives, (N, n) [rad or m]
            v: speeds of the drives, (N, n) [rad/s or m/s]
            load: torque that each gear carries, (N, n) [Nm or N]; None for none
            here: `columns` of the same motion, (terms, N, n)
            coefficients: of its terms, (terms, n)
        """
        out = np.empty((len(self.free_shapes), *v.shape))
        for k, name in enumerate(self.free_shapes):
            log_shapes = self.log_shapes
            log_shapes[k] += _LOG_SHAPE_STEP
            moved = self.with_log_shapes(log_shapes)
            if name == "width":
                columns = moved.columns(u, v, load)
            else:
                columns = moved.at(v, load, here[0])
            out[k] = np.einsum("tj,tkj->kj", coefficients, columns - here) / _LOG_SHAPE_STEP
        return out

    def init(self, u: Array, v: Array | None = None) -> Array:
        """The memory before the first row at u, (2, n): direction and position of drives.

        A drive that slides at speed v already has its direction; without v directions are unknown.
        """
        if v is None:
            s = np.zeros_like(u)
        else:
            s = np.sign(v) * (np.abs(v) > _MIN_SLIDING_SPEED)
        return np.array([s, u])

    def step(
        self, memory: Array, u: Array, v: Array, load: Array | None = None
    ) -> tuple[Array, Array]:
        """The memory after one or more rows of u, v, load, (2, n), and the columns of these rows.

        The memory is as `init` or `step` gave it; columns are (terms, n), or (terms, k, n) for k
        rows.
        """
        if self.direction == "presliding":
            s = self._bent(memory, u)
        else:
            s = self._turned(v)
        after = np.empty_like(memory)
        if u.ndim == 1:
            after[0], after[1] = (s, u)
        else:
            after[0], after[1] = (s[-1], u[-1])
        return after, self.at(v, load, s)

    def at(self, v: Any, load: Any = None, s: Any = None, xp: Any = np) -> Any:
        """The columns at single instants of speed v and load, (terms, ..., n).

        Args:
            s: direction of friction, like v; by default that of steady motion at speed v
            xp: numpy or jax.numpy, whose arrays these are
        """
        if s is None:
            s = self._turned(v)
        if xp is not np:
            return xp.stack(list(self._terms(v, load, s, xp)))
        out = np.empty((2 + self.stribeck + self.asymmetric + self.load, *v.shape))
        for k, column in enumerate(self._terms(v, load, s, np)):
            out[k] = column
        return out

    def _terms(self, v: Any, load: Any, s: Any, xp: Any) -> Iterator[Any]:
        """The law: the column of each coefficient, in the order of `terms`."""
        yield s
        if self.curved:
            yield xp.abs(v) ** self.exponent * (s if self.smooth_speed else xp.sign(v))
        else:
            yield xp.abs(v) * s if self.smooth_speed else v
        if self.stribeck:
            yield xp.exp(-((v / self.stribeck_speed) ** 2)) * s
        if self.asymmetric:
            yield xp.abs(v)
        if self.load:
            share = 1.0 if self.carrying is None else self.carrying
            yield xp.zeros_like(s) if load is None else xp.abs(load) * s * share

    @staticmethod
    def carried_torque(rest: Array, share: Array, s: Array) -> tuple[Array, Array]:
        """The torque L that gears carry, like rest, and Fl s sign(L): how much of it friction adds.

        Args:
            rest: torque of the drives less all friction that does not grow with L, (..., n) [Nm or
                N]
            share: Fl, (n,)
            s: direction of friction, like rest
        """
        slope = share * s * np.sign(rest)
        return rest / (1.0 + slope), slope

    def breakaway(self, speed: float | Array, load: Array | None = None) -> Array:
        """The columns of drives that break away forwards, (terms, n), at a low speed and a load."""
        ones = np.ones(len(self.exponent))
        out: Array = self.at(speed * ones, load, ones)
        if self.stribeck:
            out[2] = 1.0
        return out

    def _turned(self, v: Array) -> Array:
        """The direction from the speed alone; for presliding that of a drive after a long slide."""
        if self.direction == "smooth":
            return np.asarray(np.tanh(v / self.width))
        sign = np.sign(v)
        if self.direction == "band":
            return np.where(np.abs(v) < self.width, 0.0, sign)
        return sign

    def _bent(self, memory: Array, u: Array) -> Array:
        """The state z of bent asperities; exact for motion that is monotone between rows."""
        z, before = memory
        if u.ndim > 1:
            before = np.concatenate([before[None], u[:-1]])
        way = u - before
        kept = np.exp(np.abs(way) / -self.width)
        s = np.sign(way) * (1.0 - kept)
        if u.ndim == 1:
            return np.asarray(s + kept * z)
        s[0] += kept[0] * z
        step = 1
        while step < len(s):  # z[i] = s[i] + kept[i] z[i - 1], over steps of 1, 2, 4, ... rows
            s[step:] += kept[step:] * s[:-step]
            kept[step:] *= kept[:-step].copy()
            step *= 2
        if (way == 0).any():  # at rest nothing changes, not even by rounding
            moving = np.where(way == 0, 0, np.arange(len(s))[:, None])
            s = np.take_along_axis(s, np.maximum.accumulate(moving, axis=0), axis=0)
        return np.asarray(s)
