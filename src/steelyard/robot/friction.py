"""Friction behind one interface: which terms a law has, the shapes of its curves, and its columns.

For a drive that moves at speed v, at position u, and carries the torque L, friction is linear in
coefficients,

    f = Fc s + Fv |v|^alpha sign(v) + B + Fs exp(-(v / vs)^2) s + Fl |L| s

with shapes that are not: the exponent alpha (xu2024 eq. (2); 1 is linear), the Stribeck speed vs, and what
the direction s is where a joint turns round or rests:

    exact       sign(v)
    band        sign(v), but 0 for |v| < width [rad/s]                                        (ding2019)
    smooth      tanh(v / width), width in rad/s
    presliding  dz = (sign(du) - z) |du| / width, width in rad: the direction follows the way travelled, as
                asperities and teeth bend before they slip (Dahl 1968). It remembers, so at rest it keeps the
                torque of the last motion, which no function of speed can.

Fl is the share of the carried torque that a gear turns into friction (harmonic drives do).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import InvalidRobot, UnknownName

Direction = Literal["exact", "band", "smooth", "presliding"]

_BOUNDS = {
    "exponent": (0.05, 2.0),
    "smooth": (1e-3, 0.3),
    "presliding": (1e-5, 0.1),
    "stribeck_speed": (5e-3, 2.0),
}
_FIRST_STRIBECK = (0.05, 0.15, 0.5)  # [rad/s]
_FIRST_WIDTH = {"exact": 1.0, "band": 0.02, "smooth": 0.02, "presliding": 1e-3}


@dataclass(frozen=True, eq=False)
class FrictionLaw:
    """A friction law of n drives: its terms and shapes.

    Attributes:
        name: of the law
        direction: how it treats rest and reversal
        curved: whether the speed law has an exponent of its own
        stribeck: whether friction falls with speed from rest
        load: whether friction grows with the carried torque
        exponent: alpha of each drive, (n,)
        width: of the direction, (n,) [rad/s, or rad for presliding]
        stribeck_speed: vs, (n,) [rad/s]
        fixed: whether the shapes are given, not found
    """

    name: str
    direction: Direction
    curved: bool
    stribeck: bool
    load: bool
    exponent: Array
    width: Array
    stribeck_speed: Array
    fixed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Everything, as texts, numbers and arrays."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> FrictionLaw:
        """The law that `to_dict` has written.

        Args:
            content: what it wrote
        """
        shapes = ("exponent", "width", "stribeck_speed")
        values: dict[str, Any] = {k: np.array(v) if k in shapes else v for k, v in content.items()}
        return cls(**values)

    @property
    def extra_names(self) -> tuple[str, ...]:
        """Names of the coefficients beyond Fc, Fv and B: Fs1 ... Fl1 ..."""
        kinds = [*(["Fs"] if self.stribeck else []), *(["Fl"] if self.load else [])]
        return tuple(f"{kind}{j + 1}" for kind in kinds for j in range(len(self.exponent)))

    @property
    def free_shapes(self) -> tuple[str, ...]:
        """Which shapes are found from data."""
        if self.fixed:
            return ()
        names = [*(["exponent"] if self.curved else []), *(["stribeck_speed"] if self.stribeck else [])]
        return (*names, *(["width"] if self.direction in ("smooth", "presliding") else []))

    @property
    def starts(self) -> tuple[FrictionLaw, ...]:
        """Where to start looking for the shapes; a Stribeck curve has several valleys, the others one."""
        if not self.stribeck or self.fixed:
            return (self,)
        return tuple(replace(self, stribeck_speed=np.full(len(self.exponent), v)) for v in _FIRST_STRIBECK)

    def with_log_shapes(self, values: Array) -> FrictionLaw:
        """The same law with other shapes, held within their bounds.

        Args:
            values: logarithms of the free shapes, one row a shape, (len(free_shapes), n)
        """
        changes = {}
        for name, row in zip(self.free_shapes, values, strict=True):
            low, high = _BOUNDS[self.direction if name == "width" else name]
            changes[name] = np.clip(np.exp(row), low, high)
        return replace(self, **changes)

    @property
    def log_shapes(self) -> Array:
        """Logarithms of the free shapes, (len(free_shapes), n)."""
        rows = [np.log(getattr(self, name)) for name in self.free_shapes]
        return np.array(rows).reshape(-1, len(self.exponent))

    def directions(self, u: Array, v: Array) -> Array:
        """The direction s of friction along a motion in the order of time, (N, n), between -1 and 1.

        Args:
            u: positions of the drives, (N, n) [rad or m]
            v: speeds of the drives, (N, n) [rad/s or m/s]
        """
        if self.direction == "smooth":
            return np.asarray(np.tanh(v / self.width))
        if self.direction == "presliding":
            return _presliding(u, self.width)
        sign = np.sign(v)
        return np.where(np.abs(v) < self.width, 0.0, sign) if self.direction == "band" else sign

    def columns(self, u: Array, v: Array, load: Array) -> tuple[Array, Array, list[Array]]:
        """The columns of Fc and Fv and of the extra coefficients, each (N, n), one column a drive.

        Args:
            u: positions of the drives, in the order of time, (N, n) [rad or m]
            v: speeds of the drives, (N, n) [rad/s or m/s]
            load: torque that each gear carries, (N, n) [Nm or N]
        """
        s = self.directions(u, v)
        viscous = v if not self.curved else np.abs(v) ** self.exponent * np.sign(v)
        extra = []
        if self.stribeck:
            extra.append(np.exp(-((v / self.stribeck_speed) ** 2)) * s)
        if self.load:
            extra.append(np.abs(load) * s)
        return s, viscous, extra


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


def friction_law(
    name: str, n: int, *, exponent: Array | None = None, width: Array | None = None
) -> FrictionLaw:
    """A law by name, with shapes to start from.

    Args:
        name: one of `FRICTION_MODELS`
        n: number of drives
        exponent: to start from, (n,); 0.7 by default where the law is curved
        width: to start from, (n,) [rad/s, or rad for presliding]
    """
    if name not in FRICTION_MODELS:
        raise UnknownName(f"no friction law '{name}'; there are {', '.join(FRICTION_MODELS)}")
    direction, curved, stribeck, load = FRICTION_MODELS[name]
    first = np.full(n, 0.7 if curved else 1.0) if exponent is None else np.array(exponent, dtype=float)
    widths = np.full(n, _FIRST_WIDTH[direction]) if width is None else np.array(width, dtype=float)
    if first.shape != (n,) or widths.shape != (n,) or not (first > 0).all() or not (widths > 0).all():
        raise InvalidRobot(f"exponent and width of a friction law must be {n} positive numbers")
    return FrictionLaw(name, direction, curved, stribeck, load, first, widths, np.full(n, 0.1))


def _presliding(u: Array, width: Array) -> Array:
    """The state z of bent asperities; exact for motion that is monotone between samples. It starts at 0."""
    du = np.diff(u, axis=0)
    ahead = np.sign(du)
    kept = np.exp(-np.abs(du) / width)
    pulled = ahead * (1.0 - kept)
    z = np.zeros_like(u)
    state = z[0]
    for i in range(len(du)):
        state = kept[i] * state + pulled[i]
        z[i + 1] = state
    return z
