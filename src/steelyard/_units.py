"""Constants and symbols of units that several packages share."""

NORMAL_95 = 1.96
"""Half-width of a 95 % interval of a normal distribution, in standard deviations."""

STANDARD_GRAVITY = 9.81
"""Default magnitude of gravity, [m/s^2]."""

GRAVITY_DOWN = (0.0, 0.0, -STANDARD_GRAVITY)
"""Gravity of an upright base, (3,) [m/s^2], in the base frame."""

KILOGRAM = "kg"
FIRST_MOMENT = "kg m"
INERTIA = "kg m²"
NEWTON_METRE = "Nm"
VISCOUS_FRICTION = "Nm s/rad"
POWER_LAW_FRICTION = "Nm (s/rad)^α"
TORQUE_RATIO = "Nm/Nm"
