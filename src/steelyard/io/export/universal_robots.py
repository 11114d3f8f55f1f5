"""Universal Robots: a line of URScript, and the request of the ROS 2 driver's service.

Inertia about the centre of gravity along the axes of the tool flange, in the order xx, yy, zz, xy, xz, yz.
The controller refuses components above 133 kg m^2 and negative moments.
"""

from __future__ import annotations

import numpy as np

from steelyard.errors import InvalidInertia
from steelyard.io.export.load import Load
from steelyard.io.export.principal import require_moments
from steelyard.io.export.words import ABOUT_INERTIA, decimal, decimals, head

_LARGEST = 133.0  # [kg m^2]
_UNITS = f"kg; m from the tool flange; kg m^2. {ABOUT_INERTIA}, along the axes of the tool flange"
_SWITCH = "The payload changes at once (transition time 0 s); give a time where the arm shall change softly."


def urscript(load: Load) -> str:
    """The call of set_target_payload.

    Args:
        load: in the frame of the tool flange
    """
    inertia = _accepted(load)
    notes = [
        "set_target_payload(m, cog, inertia [Ixx, Iyy, Izz, Ixy, Ixz, Iyz], transition time [s]).",
        "It also zeroes the force/torque reading: call it when nothing touches the tool.",
        _SWITCH,
    ]
    told = [f"# {words}" for words in head(load, "URScript", _UNITS, notes=notes)]
    lists = [", ".join(decimals(load.body.com, 7)), ", ".join(decimals(inertia, 9))]
    call = f"set_target_payload({decimal(load.body.mass, 6)}, [{lists[0]}], [{lists[1]}], 0.0)"
    return "\n".join([*told, call, ""])


def ros2(load: Load) -> str:
    """The request of ur_msgs/srv/SetPayload as YAML.

    Args:
        load: in the frame of the tool flange
    """
    inertia = decimals(_accepted(load), 9)
    notes = [
        "A request of the type ur_msgs/srv/SetPayload: ros2 service call SERVICE ur_msgs/srv/SetPayload"
        ' "$(cat FILE)".',
        "Older drivers know mass and center_of_gravity only: leave out the rest, and with it the inertia.",
        _SWITCH,
    ]
    told = [f"# {words}" for words in head(load, "the ROS 2 driver of Universal Robots", _UNITS, notes=notes)]
    x, y, z = decimals(load.body.com, 7)
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    fields = [
        f"mass: {decimal(load.body.mass, 6)}",
        f"center_of_gravity: {{x: {x}, y: {y}, z: {z}}}",
        *(f"{name}: {value}" for name, value in zip(names, inertia, strict=True)),
        "transition_time: 0.0",
    ]
    return "\n".join([*told, *fields, ""])


def _accepted(load: Load) -> np.ndarray:
    require_moments(load.body)
    inertia = load.inertia_com
    if np.abs(inertia).max() > _LARGEST:
        raise InvalidInertia(
            f"the inertia has a component of {np.abs(inertia).max():.4g} kg m^2; the controller takes at most"
            f" {_LARGEST:g}"
        )
    inertia[:3] = inertia[:3].clip(min=0.0)
    return inertia
