"""Numbers printed in xu2024: the appendix, Tables II, VI, VII, VIII, IX, and figures."""

from __future__ import annotations

import numpy as np

from steelyard._arrays import Array
from steelyard.inertia import InertialParameters
from steelyard_papers.xu2024.arm import FLANGE

CONDITION_NUMBER = 79.67
CONVERGED_S = 6.59

PI = (
    """
Ia1 + Izz1 + Iyy2 + Iyy3 + Iyy4 + 2*d4*mz4 + a3**2*m3 + (a3**2 + a4**2 + d4**2)*M4
Ixx2 - Iyy2 - a3**2*M3
Ixy2
Ixz2 - a3*(mz3 + mz4 + d4*M4)
Iyz2
Ia2 + Izz2 + a3**2*M3
mx2 + a3*M3
my2
Ixx3 - Iyy3 - a4**2*M4
Ixy3
Ixz3 - a4*mz4 - a4*d4*M4
Iyz3
Izz3 + a4**2*M4
mx3 + a4*M4
my3
Ixx4 - Iyy4 + Iyy5 + 2*d5*mz5 + d5**2*M5
Ixy4
Ixz4
Iyz4
Izz4 + Iyy5 + 2*d5*mz5 + d5**2*M5
mx4
my4 + mz5 + d5*M5
Ixx5 - Iyy5 + Iyy6 + 2*d6*mz6 + d6**2*m6
Ixy5
Ixz5
Iyz5
Izz5 + Iyy6 + 2*d6*mz6 + d6**2*m6
mx5
my5 - mz6 - d6*m6
Ixx6 - Iyy6
Iyy6
Ixz6
Iyz6
Izz6
mx6
my6
""".strip().splitlines()
    + [
        f"{kind}{j}"
        for kind, first in (("Ia", 3), ("Fc", 1), ("Fv", 1), ("B", 1))
        for j in range(first, 7)
    ]
)
"""The 58 base parameters as printed, in our letters; M4 stands for m4 + m5 + m6."""

EPSILON = {
    1: "(d4**2 + a4**2 + a3**2)*m",
    2: "-a3**2*m",
    4: "-a3*d4*m",
    6: "a3**2*m",
    7: "a3*m",
    9: "-a4**2*m",
    11: "-a4*d4*m",
    13: "a4**2*m",
    14: "a4*m",
    16: "d5**2*m",
    20: "d5**2*m",
    22: "d5*m",
    23: "Iyy + 2*d6*mz + d6**2*m",
    27: "Iyy + 2*d6*mz + d6**2*m",
    29: "-mz - d6*m",
    30: "Ixx - Iyy",
    31: "Ixy",
    32: "Ixz",
    33: "Iyz",
    34: "Izz",
    35: "mx",
    36: "my",
}
"""How a payload changes each row of pi."""

TABLE_6 = np.array(
    [
        *(8.9808, -4.6873, -0.0131, -1.0510, 0.1458, 6.4621, 8.1662, -0.0811, -2.1302, -0.0096),
        *(-0.5125, -0.0379, 2.1103, 3.8882, -0.0026, 0.0596, 0.0395, 0.0314, 0.0253, 0.0435),
        *(0.0118, 0.2863, -0.0047, 0.0016, -0.0008, -0.0142, -0.0057, 0.0017, -0.0587, 0.0012),
        *(-0.0002, -0.0013, -0.0028, 0.0096, -0.0048, -0.0048, 0.2141, -0.3865, -0.3508, -0.2697),
        *(10.0037, -0.1240, 5.1803, 2.7800, 2.0115, 1.7533, 21.6084, 26.4096, 15.1400, 2.7746),
        *(3.4578, 3.5335, -0.3426, 0.0582, 0.1780, 0.6453, 0.6725, 0.5685),
    ]
)

TRUTH = InertialParameters.from_vector(
    [3.5256, 0.0, 0.0, 3.5256 * 0.0296, 0.0064, 0.0, 0.0064, 0.0, 0.0, 0.0045], FLANGE
)
"""The payload of Table VII; its inertia is about the origin of frame 6 (footnote 2)."""

TABLE_7: dict[str, tuple[float, float | None, float | None, float]] = {
    "m": (3.5256, 3.3807, 3.5581, 3.5242),
    "cx": (0.0, -0.0145, -0.0069, -0.0213),
    "cy": (0.0, 0.0082, -0.0068, 0.0016),
    "cz": (0.0296, 0.0577, 0.0449, 0.0516),
    "Ixx": (0.0064, 0.1122, None, 0.0023),
    "Ixy": (0.0, 0.0077, None, -0.0289),
    "Iyy": (0.0064, 0.0557, None, -0.0958),
    "Ixz": (0.0, -0.0012, None, -0.0480),
    "Iyz": (0.0, 0.0126, None, 0.0265),
    "Izz": (0.0045, -0.1545, None, -0.0501),
}
"""By number: truth, Algorithm 1, Algorithm 2, proposed."""

TABLE_7_UNITS = {key: {"m": "kg", "c": "m", "I": "kg m²"}[key[0]] for key in TABLE_7}
"""Units, by number."""

TABLE_7_DIGIT = 5e-5
"""Half of the last digit of every number in Table VII."""


def in_paper_words(vector: Array) -> dict[str, float]:
    """Mass, centre of mass, and inertia about the origin of frame 6, by the names of Table VII.

    Args:
        vector: the ten numbers of a payload, (10,)
    """
    m = vector[0]
    return dict(zip(TABLE_7, (m, *(vector[1:4] / m), *vector[4:]), strict=True))


TABLE_2 = np.array([3.7817, 4.1789, 3.0339, 1.7334, 1.0670, 0.9896])

TABLE_8 = {
    ("without", "linear"): np.array([1.7499, 3.0599, 1.4170, 0.3913, 0.2965, 0.3726]),
    ("without", "power"): np.array([1.3102, 2.5186, 1.1437, 0.3914, 0.2793, 0.3325]),
    ("with", "linear"): np.array([1.6726, 4.7629, 2.3821, 0.4182, 0.3712, 0.3782]),
    ("with", "power"): np.array([1.1982, 4.2579, 1.8470, 0.4176, 0.3603, 0.3333]),
}

ALPHA = {
    "without": np.array([0.5758, 0.2723, 0.6093, 0.9995, 0.8031, 0.7209]),
    "with": np.array([0.5430, 0.2603, 0.3984, 0.9568, 0.8151, 0.6969]),
}
"""Table IX."""

JOINT_2 = {
    ("without", "linear"): (15.07, 10.73, 8.77e-3),
    ("without", "power"): (-0.1240, 26.4096, 0.0582),
    ("with", "linear"): (15.87, 10.77, 6.47e-8),
    ("with", "power"): (-0.5500, 27.7899, -0.1836),
}
"""Fc, Fv, B of joint 2 in Fig. 7."""
