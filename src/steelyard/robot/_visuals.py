"""The look of an arm: the <visual> shapes of its URDF, on the joints of a model.

A saved model has joints and a flange, but not the other links of its URDF. A shape is fixed to the
last joint before it that the model has; joints that the model lacks (of a gripper, or locked) stand
at zero. The file must still describe the same chain: with all joints at zero, every joint frame is
where the model has it.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import coal  # type: ignore[import-untyped]
import numpy as np
import pinocchio as pin

from steelyard.errors import InvalidRobot, UnreadableFile
from steelyard.robot._geometry import Body
from steelyard.robot._model import RobotModel
from steelyard.robot._urdf import read_urdf, with_found_meshes

_SAME_PLACE = 1e-5  # [m or rad]
_DRAWABLE = (coal.Box, coal.Sphere, coal.Cylinder, coal.Capsule, coal.BVHModelBase)


@dataclass(frozen=True, eq=False)
class Visual:
    """A shape with its colour.

    Attributes:
        body: the shape on its joint frame
        colour: red, green and blue, 0 to 1; None where the URDF gives none
    """

    body: Body
    colour: tuple[float, float, float] | None


@dataclass(frozen=True, eq=False)
class Look:
    """What an arm looks like.

    Attributes:
        file: name of its URDF; empty where it has none, or one that is of another arm
        visuals: shapes that were found
        missing: names of meshes that were not found
    """

    file: str = ""
    visuals: tuple[Visual, ...] = ()
    missing: tuple[str, ...] = ()

    @classmethod
    def of(cls, robot: RobotModel) -> Look:
        """The look of an arm by the URDF that it was read from, as far as it is found."""
        path = Path(robot.urdf_file)
        if not robot.urdf_file or not path.is_file():
            return cls()
        try:
            text, missing = with_found_meshes(path, "visual", ())
            model = pin.buildModelFromXML(read_urdf(path))
            shapes = pin.buildGeomFromUrdfString(model, text, pin.VISUAL)
        except (ValueError, RuntimeError, ET.ParseError, InvalidRobot, UnreadableFile):
            return cls()  # the arm is drawn as capsules
        data = model.createData()
        pin.forwardKinematics(model, data, pin.neutral(model))
        if not _same_chain(robot, model, data):
            return cls()
        colours = _stated_colours(text)
        visuals = tuple(
            _visual(robot, model, data, item, colours)
            for item in shapes.geometryObjects
            if isinstance(item.geometry, _DRAWABLE)
        )
        return cls(path.name, visuals, tuple(Path(file).name for _, file in missing))


def _same_chain(robot: RobotModel, model: pin.Model, data: pin.Data) -> bool:
    """Whether a URDF has the joints of an arm, at the same places."""
    if not all(model.existJointName(name) for name in robot.joint_names):
        return False
    ours = robot.joint_frames(np.zeros(robot.n))[1:]
    theirs = [data.oMi[model.getJointId(name)].homogeneous for name in robot.joint_names]
    return bool(np.allclose(ours, theirs, atol=_SAME_PLACE))


def _visual(
    robot: RobotModel,
    model: pin.Model,
    data: pin.Data,
    item: pin.GeometryObject,
    colours: frozenset[str],
) -> Visual:
    joint = int(item.parentJoint)
    anchor = joint
    while anchor and model.names[anchor] not in robot.joint_names:
        anchor = int(model.parents[anchor])
    placement = data.oMi[anchor].inverse() * data.oMi[joint] * item.placement
    number = 0
    if anchor:
        number = robot.joint_names.index(model.names[anchor]) + 1
    link = model.frames[item.parentFrame].name
    body = Body(link, number, placement.homogeneous, item.geometry)
    if link not in colours:
        return Visual(body, None)
    red, green, blue = (float(x) for x in item.meshColor[:3])
    return Visual(body, (red, green, blue))


def _stated_colours(text: str) -> frozenset[str]:
    """Names of the links whose <visual> has a material with a colour."""
    root = ET.fromstring(text)
    named = {item.get("name") for item in root.iter("material") if item.find("color") is not None}
    found = set()
    for link in root.findall("link"):
        if any(item.get("name") in named for item in link.findall("visual/material")):
            found.add(link.get("name", ""))
    return frozenset(found)
