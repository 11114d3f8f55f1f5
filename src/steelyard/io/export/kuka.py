"""KUKA KRL: LOAD_DATA with principal moments, and the angles A, B, C of their axes, R = Rz(A) Ry(B) Rx(C)."""

from __future__ import annotations

import numpy as np

from steelyard.io.export.load import Load
from steelyard.io.export.principal import principal_inertia
from steelyard.io.export.words import UNCHECKED, decimal, decimals, head
from steelyard.io.urdf import roll_pitch_yaw

_UNITS = (
    "kg; X Y Z in mm from the flange; A B C in degrees (Z, Y', X''), the principal axes in this frame;"
    " J: principal moments in kg m^2 about the centre of mass"
)


def krl(load: Load) -> str:
    """The assignment of LOAD_DATA[number].

    Args:
        load: in the flange frame
    """
    moments, axes = principal_inertia(load.body)
    told = [f"; {words}" for words in head(load, "KUKA KRL", _UNITS, notes=[UNCHECKED])]
    com = zip("XYZ", decimals(1e3 * load.body.com, 4), strict=True)
    angles = zip("ABC", decimals(np.degrees(roll_pitch_yaw(axes)[::-1]), 7), strict=True)
    inertia = zip("XYZ", decimals(moments, 9), strict=True)
    place, spin = (",".join(f"{key} {value}" for key, value in pairs) for pairs in ([*com, *angles], inertia))
    data = f"{{M {decimal(load.body.mass, 6)},CM {{{place}}},J {{{spin}}}}}"
    return "\n".join([*told, f"LOAD_DATA[{load.number}]={data}", ""])
