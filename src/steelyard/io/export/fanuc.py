"""FANUC: the numbers of a payload schedule, to be typed in; moments about its own axes, products are lost."""

from __future__ import annotations

import numpy as np

from steelyard.io.export.load import Load
from steelyard.io.export.principal import require_moments
from steelyard.io.export.words import UNCHECKED, decimal, decimals, head

KGF_CM_S2 = 0.0980665
"""One kgf cm s^2 in kg m^2: 9.80665 N times 0.01 m times 1 s^2."""

_UNITS = (
    "kg; cm; kgf cm s^2 (1 of them is 0.0980665 kg m^2). Moments about axes through the centre of mass,"
    " along X, Y and Z of this frame"
)


def payload_schedule(load: Load) -> str:
    """The fields of a payload schedule with their values.

    Args:
        load: in the frame of the schedule: X up, Y right, Z out of the flange
    """
    require_moments(load.body)
    inertia = load.inertia_com
    products = ", ".join(
        f"{name} {x:.3g}" for name, x in zip(("Ixy", "Ixz", "Iyz"), inertia[3:], strict=True)
    )
    share = np.abs(inertia[3:]).max() / max(inertia[:3].max(), 1e-300)
    lost = f"the products of inertia ({products} kg m^2, up to {100 * share:.2g} % of the largest moment)"
    notes = [
        "Of the schedule's frame only this was known: X up, Y right, Z out of the flange.",
        UNCHECKED,
    ]
    told = head(load, "a FANUC payload schedule", _UNITS, notes=notes, left_out=lost)
    com = decimals(1e2 * load.body.com, 5)
    moments = decimals(inertia[:3].clip(min=0.0) / KGF_CM_S2, 9)
    rows = [
        f"PAYLOAD [kg]: {decimal(load.body.mass, 6)}",
        *(f"PAYLOAD CENTER {axis} [cm]: {value}" for axis, value in zip("XYZ", com, strict=True)),
        *(
            f"PAYLOAD INERTIA {axis} [kgf cm s^2]: {value}"
            for axis, value in zip("XYZ", moments, strict=True)
        ),
    ]
    return "\n".join([*(f"! {words}" for words in told), f"SCHEDULE No [{load.number}]", *rows, ""])
