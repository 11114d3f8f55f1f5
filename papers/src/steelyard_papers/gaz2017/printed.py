"""What gaz2017 prints: coefficients, payloads and bounds, in the order of the paper's equations."""

from __future__ import annotations

import numpy as np

from steelyard.inertia import InertialParameters

PI_34 = np.array([0.1112, 0.6, 0.04, 1.3651, 3.2, 0.03])
PI_LOADED_34 = np.array([0.6144, 1.8, 0.19, 2.1152, 4.7, 0.03])
DIFFERENCE_34 = np.array([0.5032, 1.2, 0.15, 0.75, 1.5])
PAYLOAD_35 = np.array([1.5, 0.45, 0.15, 0.1814])
"""m, mx, my, Izz of the planar arm's payload."""

FEASIBLE_NAMES = ("m1", "m2", "Izz1", "Izz2", "cx1", "cy1", "cx2", "cy2")
LOWER_36 = (0.0, 0.0, 0.0, 0.0, -1.0, -0.02, -0.5, -0.02)
UPPER_36 = (5.0, 3.0, 2.0, 1.0, 0.0, 0.02, 0.0, 0.02)
FEASIBLE_37 = (1.5064, 2.4598, 0.2965, 0.2374, -0.5086, 0.0199, -0.2561, 0.0163)

GRAVITY_38 = (
    "my7",
    "mx7",
    "mx6",
    "mz6 + mz7",
    "mz5 - my6",
    "mx5",
    "my5 + mz4 + d5*(m5 + m6 + m7)",
    "mx4",
    "my4 + mz3",
    "mx2",
    "mx3",
    "mz2 - my3 + d3*(m3 + m4 + m5 + m6 + m7)",
)
"""Gravity coefficients of the LWR 4+: mx7 is the first moment of link 7 along x."""

GRAVITY_42 = np.array(
    [
        1.6136e-5,
        -0.0013,
        -0.0046,
        0.0315,
        -0.0417,
        0.0054,
        1.3544,
        0.0183,
        -0.0036,
        0.0271,
        -0.0129,
        3.4459,
    ]
)
GRAVITY_LOADED_42 = np.array(
    [
        0.0016,
        -0.0021,
        -0.0093,
        0.3983,
        -0.0409,
        0.0033,
        2.5458,
        0.005,
        -0.0032,
        0.0629,
        -0.0028,
        4.6775,
    ]
)
DIFFERENCE_43 = np.array([0.0016, -8.13e-4, 0.3667, 1.1914, 1.2316])
"""Of the rows 1, 2, 4, 7 and 12."""

HEAVY = (3.028, (0.0, 0.0, 0.1190))
"""Nominal mass [kg] and centre of mass [m] of the medium payload (39); no nominal inertia."""
HEAVY_44 = (3.067, (-2.6e-4, 5e-4, 0.1196))
HEAVY_47 = (3.059, (-2.8e-3, 1.1e-2, 0.1283))
HEAVY_46 = InertialParameters(
    3.041,
    3.041 * np.array([-7.5e-4, -3.8e-3, 0.1212]),
    np.array(
        [
            [0.157831, 0.000795, -0.007835],
            [0.000795, 0.044259, -0.019714],
            [-0.007835, -0.019714, 0.003716],
        ]
    ),
)
LIGHT = (0.144, (0.0, 0.0, 0.1146))
LIGHT_TABLE_1 = (0.143, (0.003, 0.002, 0.1124))
VALIDATION_NM = (1.5, 3.0)
"""Fig. 5: torque errors stay below these, by joint, the text says."""
