"""What liu2025 prints: Table II (values and absolute errors) and Table III."""

from __future__ import annotations

TABLE_2: dict[str, tuple[float | None, float | None, float | None, float | None]] = {
    "m": (40.173, 40.542, 40.098, 40.164),
    "mx": (0.0, 0.144, -6.97e-3, 5.69e-3),
    "my": (0.0, -0.135, 1.14e-2, -8.38e-3),
    "mz": (0.905, 1.053, 0.853, 0.893),
    "Ixx": (3.24, None, 3.453, 3.205),
    "Iyy": (0.809, None, 0.837, 0.833),
    "Izz": (4.049, None, 4.176, 4.013),
    "U": (None, 2.642, None, 1.824),
    "V": (None, -4.943, None, 2.326),
}
"""By parameter: reference, Method 1, Method 2, proposed; angles in degrees."""

TABLE_2_ERRORS: dict[str, tuple[float | None, float | None, float]] = {
    "m": (0.370, 0.075, 9.3e-3),
    "mx": (0.144, 6.97e-3, 5.69e-3),
    "my": (0.135, 1.14e-2, 8.38e-3),
    "mz": (0.148, 0.052, 0.012),
    "Ixx": (None, 0.213, 0.035),
    "Iyy": (None, 0.028, 0.024),
    "Izz": (None, 0.127, 0.036),
}
"""By parameter: absolute error of Method 1, Method 2, proposed."""

TABLE_3: dict[str, dict[str, tuple[float, ...]]] = {
    "high": {
        "method_1": (68.57, 67.34, 2.17, 14.21, 14.18, 2.22),
        "method_2": (21.46, 21.41, 0.20, 1.18, 1.59, 0.53),
        "proposed": (8.36, 8.33, 0.24, 0.45, 0.55, 0.17),
    },
    "low": {
        "method_1": (65.11, 65.38, 1.21, 13.45, 13.60, 0.39),
        "method_2": (21.36, 21.58, 1.06, 1.73, 1.87, 0.33),
        "proposed": (8.33, 8.60, 1.04, 0.35, 0.70, 0.35),
    },
}
"""By speed and method: force at t = 0, its mean and deviation [N], the same of the torque [Nm]."""

TABLE_2_DIGIT = 5e-4
"""Half of the last digit of mass, first moments and inertia by the proposed method."""

FORCE_DIGIT_N = 0.005
"""Half of the last digit of a force, [N]; of a torque the same number, [Nm]."""

PEAKS = (3.03, 1.67)
"""Largest force [N] and torque [Nm] of an axis after compensation, low speed (Fig. 13)."""
