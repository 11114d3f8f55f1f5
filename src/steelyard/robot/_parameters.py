"""Parameters of an arm's dynamics as values, and tables of them with named groups.

A parameter is known by its kind and its joint. Its name is the symbol of the kind, the number of
the joint (from 1), and an 'r' where other parameters are regrouped into it: 'Izz2r', 'Fc6'. Names
are for printing and for files; `Parameter.parse` is the only place that reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Self, overload

import numpy as np

from steelyard import _units
from steelyard._arrays import Array, Indices, Mask
from steelyard.errors import UnknownName
from steelyard.inertia import PARAMETER_NAMES


class ParameterKind(Enum):
    """What a parameter describes; the value is its symbol."""

    MASS = "m"
    MOMENT_X = "mx"
    MOMENT_Y = "my"
    MOMENT_Z = "mz"
    INERTIA_XX = "Ixx"
    INERTIA_XY = "Ixy"
    INERTIA_YY = "Iyy"
    INERTIA_XZ = "Ixz"
    INERTIA_YZ = "Iyz"
    INERTIA_ZZ = "Izz"
    ROTOR_INERTIA = "Ia"
    COULOMB = "Fc"
    VISCOUS = "Fv"
    OFFSET = "B"
    STRIBECK = "Fs"
    ASYMMETRY = "Fa"
    LOAD_SHARE = "Fl"
    TERM = "X"  # coefficient of a column that a plug-in gives; counted by columns, not joints

    @property
    def symbol(self) -> str:
        """The letters that stand for it in names and equations."""
        return self.value

    @property
    def unit(self) -> str:
        """The symbol of its SI unit at a revolute joint."""
        return _UNIT[self]


LINK_KINDS = tuple(ParameterKind(symbol) for symbol in PARAMETER_NAMES)
"""The ten inertial parameters of a link, in the order of the regressor's columns."""

DRIVE_KINDS = (
    ParameterKind.ROTOR_INERTIA,
    ParameterKind.COULOMB,
    ParameterKind.VISCOUS,
    ParameterKind.OFFSET,
)
"""The linear parameters of a drive, in the order of the regressor's columns."""

_FRICTION_KINDS = (
    ParameterKind.COULOMB,
    ParameterKind.VISCOUS,
    ParameterKind.STRIBECK,
    ParameterKind.ASYMMETRY,
    ParameterKind.LOAD_SHARE,
)
FRICTION_AND_OFFSET_KINDS = (*_FRICTION_KINDS, ParameterKind.OFFSET)
"""What may differ from run to run."""

_DAILY_KINDS = (
    ParameterKind.COULOMB,
    ParameterKind.VISCOUS,
    ParameterKind.STRIBECK,
    ParameterKind.ASYMMETRY,
    ParameterKind.OFFSET,
)
_UNIT = {
    ParameterKind.MASS: _units.KILOGRAM,
    ParameterKind.MOMENT_X: _units.FIRST_MOMENT,
    ParameterKind.MOMENT_Y: _units.FIRST_MOMENT,
    ParameterKind.MOMENT_Z: _units.FIRST_MOMENT,
    ParameterKind.INERTIA_XX: _units.INERTIA,
    ParameterKind.INERTIA_XY: _units.INERTIA,
    ParameterKind.INERTIA_YY: _units.INERTIA,
    ParameterKind.INERTIA_XZ: _units.INERTIA,
    ParameterKind.INERTIA_YZ: _units.INERTIA,
    ParameterKind.INERTIA_ZZ: _units.INERTIA,
    ParameterKind.ROTOR_INERTIA: _units.INERTIA,
    ParameterKind.COULOMB: _units.NEWTON_METRE,
    ParameterKind.VISCOUS: _units.POWER_LAW_FRICTION,
    ParameterKind.OFFSET: _units.NEWTON_METRE,
    ParameterKind.STRIBECK: _units.NEWTON_METRE,
    ParameterKind.ASYMMETRY: _units.VISCOUS_FRICTION,
    ParameterKind.LOAD_SHARE: _units.TORQUE_RATIO,
    ParameterKind.TERM: _units.NEWTON_METRE,
}
_NAME = re.compile(r"(?P<symbol>[A-Za-z]+)(?P<number>[1-9][0-9]*)(?P<regrouped>r?)")


@dataclass(frozen=True)
class Parameter:
    """One parameter of the dynamics.

    Attributes:
        kind: what it describes
        joint: index of its joint, from 0
        regrouped: whether other parameters are regrouped into it
    """

    kind: ParameterKind
    joint: int
    regrouped: bool = False

    @classmethod
    def parse(cls, name: str) -> Parameter:
        """The parameter that prints as a name.

        Args:
            name: as in 'Izz2r'
        """
        match = _NAME.fullmatch(name)
        try:
            if match is None:
                raise ValueError(name)
            kind = ParameterKind(match["symbol"])
        except ValueError:
            raise UnknownName(
                f"'{name}' is no parameter: names look like Izz2, Fc1 or mx3r"
            ) from None
        return cls(kind, int(match["number"]) - 1, bool(match["regrouped"]))

    @property
    def symbol(self) -> str:
        """Kind and number of the joint without the mark of regrouping, as in 'Izz2'."""
        return f"{self.kind.symbol}{self.joint + 1}"

    @property
    def unit(self) -> str:
        """The symbol of its SI unit at a revolute joint."""
        return self.kind.unit

    def __str__(self) -> str:
        if self.regrouped:
            return f"{self.symbol}r"
        return self.symbol


@dataclass(frozen=True)
class ParameterTable(Sequence[Parameter]):
    """Parameters in a fixed order, with masks, (p,), of named groups.

    `links`, `rotors`, `friction` and `offsets` are disjoint, and complete but for terms of
    plug-ins.

    Attributes:
        parameters: in the order of a vector of their values
    """

    parameters: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(self.parameters))

    @classmethod
    def parse(cls, names: Iterable[str]) -> ParameterTable:
        """The table of parameters with these names."""
        return cls(tuple(Parameter.parse(name) for name in names))

    @overload
    def __getitem__(self, index: int) -> Parameter: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Parameter | Self:
        if isinstance(index, slice):
            return type(self)(self.parameters[index])
        return self.parameters[index]

    def __len__(self) -> int:
        return len(self.parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.parameters)

    def take(self, which: Mask | Indices) -> ParameterTable:
        """The parameters of a mask, (p,), or of indices in their order."""
        indices = np.arange(len(self))[which]
        return ParameterTable(tuple(self.parameters[i] for i in indices.tolist()))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each parameter."""
        return tuple(str(parameter) for parameter in self.parameters)

    @cached_property
    def joints(self) -> Indices:
        """The index of each parameter's joint, (p,)."""
        joints = np.array([parameter.joint for parameter in self.parameters], dtype=np.intp)
        joints.setflags(write=False)
        return joints

    def of_kind(self, *kinds: ParameterKind) -> Mask:
        """Which parameters are of any of these kinds, (p,)."""
        mask = np.array([parameter.kind in kinds for parameter in self.parameters], dtype=bool)
        mask.setflags(write=False)
        return mask

    def of_joint(self, joint: int) -> Mask:
        """Which parameters belong to the joint with an index, (p,)."""
        return np.asarray(self.joints == joint)

    def of_kinds_by_joint(self, values: Array, kinds: Sequence[ParameterKind], n: int) -> Array:
        """Values by kind and joint, (len(kinds), n), zero where the table has no such parameter.

        Args:
            values: of the parameters of the table, (p,)
            kinds: wanted, in the order of the rows
            n: number of joints
        """
        out = np.zeros((len(kinds), n))
        for row, kind in zip(out, kinds, strict=True):
            which = self.of_kind(kind)
            row[self.joints[which]] = values[which]
        return out

    @cached_property
    def links(self) -> Mask:
        """Inertial parameters of links."""
        return self.of_kind(*LINK_KINDS)

    @cached_property
    def rotors(self) -> Mask:
        """Inertias of rotors."""
        return self.of_kind(ParameterKind.ROTOR_INERTIA)

    @cached_property
    def friction(self) -> Mask:
        """Coefficients of friction, which act only in motion."""
        return self.of_kind(*_FRICTION_KINDS)

    @cached_property
    def offsets(self) -> Mask:
        """Torque offsets of drives."""
        return self.of_kind(ParameterKind.OFFSET)

    @cached_property
    def rigid(self) -> Mask:
        """Links and rotors: the rigid-body dynamics."""
        return self.of_kind(*LINK_KINDS, ParameterKind.ROTOR_INERTIA)

    @cached_property
    def friction_and_offsets(self) -> Mask:
        """Friction and offsets: everything but the rigid-body dynamics."""
        return self.of_kind(*FRICTION_AND_OFFSET_KINDS)

    @cached_property
    def daily(self) -> Mask:
        """What changes from day to day and with temperature and load.

        These are friction and offsets without the share of the carried torque, which a gear keeps.
        """
        return self.of_kind(*_DAILY_KINDS)
