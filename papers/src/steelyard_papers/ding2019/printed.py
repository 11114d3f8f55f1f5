"""Printed values of ding2019: Table III with the names of steelyard, and Table IV."""

from __future__ import annotations

from steelyard.robot import Parameter, ParameterKind

TABLE_3: dict[str, float] = {
    "Izz1": 0.04321749,
    "Ixx2": 0.00011890,
    "Ixy2": -0.00005448,
    "Ixz2": 0.00001574,
    "Iyz2": 0.00001514,
    "Izz2": 0.19433783,
    "mx2": -0.02840552,
    "my2": -0.07866784,
    "Ixx3": 0.00020267,
    "Ixy3": -0.00002137,
    "Ixz3": 0.00002862,
    "Iyz3": 0.00006026,
    "Izz3": -0.02466123,
    "mx3": -0.00007316,
    "my3": -0.00003898,
    "Ia3": 0.00001347,
    "Ixx4": -0.00000520,
    "Ixy4": 0.00003434,
    "Ixz4": 0.00001264,
    "Iyz4": 0.00015267,
    "Izz4": 0.00009299,
    "mx4": -0.00001283,
    "my4": -0.00000220,
    "Ia4": -0.00001949,
    "Ixx5": -0.00000407,
    "Ixy5": -0.00000685,
    "Ixz5": -0.00001448,
    "Iyz5": -0.00004171,
    "Izz5": 0.00002194,
    "mx5": -0.00000127,
    "my5": -0.00000712,
    "Ia5": -0.00000525,
    "Ixx6": 0.00001158,
    "Ixy6": 0.00000707,
    "Ixz6": 0.00002757,
    "Iyz6": 0.00001885,
    "Izz6": 0.05113364,
    "mx6": 0.00250705,
    "my6": 0.00199335,
    "Ia6": 0.00361501,
    "Fc1": 8.78771015,
    "Fv1": 0.27721979,
    "Fc2": -0.63765100,
    "Fv2": 0.29601563,
    "Fc3": 6.74296618,
    "Fv3": 0.14146487,
    "Fc4": 2.70550530,
    "Fv4": 0.03098004,
    "Fc5": 3.63556095,
    "Fv5": 0.04879572,
    "Fc6": 0.18253124,
    "Fv6": 0.02397583,
}
"""The identified minimum set, by parameter; the paper's r for 'regrouped' is left out."""

RMS = (3.4320, 22.3964, 5.3226, 0.8863, 1.7324, 1.5140)
"""Table IV: residual of each joint's torque, as printed (no unit; Nm where it is a torque)."""

CORRELATION = (0.9916, 0.8252, 0.9460, 0.9815, 0.9668, 0.7536)
"""Table IV: correlation of measured and estimated torque of each joint."""

_DRIVE_UNITS = {
    ParameterKind.COULOMB: "Nm",
    ParameterKind.VISCOUS: "Nm s/rad",
    ParameterKind.OFFSET: "Nm",
}


def unit_of(name: str) -> str:
    """The unit of a parameter.

    Args:
        name: as in `TABLE_3`
    """
    kind = Parameter.parse(name).kind
    if kind in _DRIVE_UNITS:
        return _DRIVE_UNITS[kind]
    if kind in (ParameterKind.MOMENT_X, ParameterKind.MOMENT_Y, ParameterKind.MOMENT_Z):
        return "kg m"
    return "kg m²"


DIGIT = 5e-5
"""Half of the last digit of every number in Table IV."""
