"""A template for plug-ins: a term of the torques, a friction law, a reader of files."""

from pathlib import Path

import numpy as np

ANCHOR = 0.5  # [m], from axis 2 to where the cylinder is fixed
ARM = 0.4  # [m], from axis 2 to where it pulls


def counterbalance(robot, q, v):
    """The torque of a cylinder at axis 2 for a force of 1 N, (N, n, 1) [Nm].

    With the angle b between anchor and arm, the cylinder has the length
    l = sqrt(A^2 + r^2 - 2 A r cos b), and a force along it the lever A r sin(b) / l.

    Args:
        robot: the arm, a steelyard.RobotModel
        q: positions, (N, n) [rad or m]
        v: velocities, (N, n) [rad/s or m/s]
    """
    b = q[:, 1] + np.pi / 2
    length = np.sqrt(ANCHOR**2 + ARM**2 - 2 * ANCHOR * ARM * np.cos(b))
    columns = np.zeros((*q.shape, 1))
    columns[:, 1, 0] = ANCHOR * ARM * np.sin(b) / length
    return columns


SMOOTH_STRIBECK_LOAD = ("smooth", True, True, True)
"""A friction law: direction (exact, band, smooth, presliding), curved, stribeck, load."""


def read_xlog(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file whose lines are 'time | q ... | tau ...'; angles in radians."""
    lines = [line.split("|") for line in path.read_text().splitlines() if line]
    parts = [
        np.array([field.split() for field in column], float) for column in zip(*lines, strict=True)
    ]
    t, q, tau = parts
    return {"t": t[:, 0], "q": q, "tau": tau}
