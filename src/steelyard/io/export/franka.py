"""Franka: the end effector of Desk, and the load of libfranka and franka_ros2.

Matrices are written column by column. JSON has no comments, so Desk's file has a key 'comment' for them.
"""

from __future__ import annotations

import json

import numpy as np

from steelyard.io.export.load import Load
from steelyard.io.export.principal import require_moments
from steelyard.io.export.words import ABOUT_INERTIA, decimal, decimals, head

_UNITS = f"kg; m in the flange frame; kg m^2. {ABOUT_INERTIA}, along the axes of the flange, column by column"


def desk(load: Load) -> str:
    """The file endeffector-config.json.

    Args:
        load: in the flange frame
    """
    notes = [
        "The transformation from the flange to the tool centre point is not part of a payload: the identity"
        " stands for it; put yours in.",
        "It replaces the end effector: the mass must be all that hangs on the flange.",
        "The key 'comment' is not part of Franka's form; take it out where Desk refuses it.",
    ]
    content = {
        "comment": head(load, "Franka Desk (endeffector-config.json)", _UNITS, notes=notes),
        "id": load.name,
        "name": load.name,
        "color": "#808080",
        "mass": float(decimal(load.body.mass, 6)),
        "centerOfMass": [float(text) for text in decimals(load.body.com, 7)],
        "transformation": np.eye(4).ravel(order="F").tolist(),
        "inertia": [float(text) for text in _columns(load)],
    }
    return json.dumps(content, indent=2) + "\n"


def ros2(load: Load) -> str:
    """The request of franka_msgs/srv/SetLoad as YAML, and the same as a call of libfranka.

    Args:
        load: in the flange frame
    """
    mass, com, inertia = decimal(load.body.mass, 6), ", ".join(decimals(load.body.com, 7)), _columns(load)
    notes = [
        "A request of the type franka_msgs/srv/SetLoad: ros2 service call SERVICE franka_msgs/srv/SetLoad"
        ' "$(cat FILE)".',
        "The load comes on top of the end effector that Desk is told about: it must not hold its mass again.",
        f"libfranka: robot.setLoad({mass}, {{{{{com}}}}}, {{{{{', '.join(inertia)}}}}});",
    ]
    told = [f"# {words}" for words in head(load, "franka_ros2 and libfranka", _UNITS, notes=notes)]
    fields = [f"mass: {mass}", f"center_of_mass: [{com}]", f"load_inertia: [{', '.join(inertia)}]"]
    return "\n".join([*told, *fields, ""])


def _columns(load: Load) -> list[str]:
    require_moments(load.body)
    return decimals(load.body.inertia_com.ravel(order="F"), 9)
