"""A robot as plain numbers and words, and back: what files hold of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from steelyard.errors import InvalidRobot
from steelyard.inertia import InertialParameters
from steelyard.robot.chain import checked_gravity
from steelyard.robot.dh import DHTable
from steelyard.robot.drive import DriveModel
from steelyard.robot.limits import JointLimits
from steelyard.robot.model import RobotModel

_LIMITS = ("q_min", "q_max", "v_max", "a_max", "tau_max")
_DH = ("alpha", "a", "d", "theta")


def robot_to_dict(robot: RobotModel) -> dict[str, Any]:
    """The robot as lists, numbers and words, all there is to know; infinite limits become None.

    Args:
        robot: any
    """
    drive = {name: getattr(robot.drive, name) for name in DriveModel.__dataclass_fields__ if name[0] != "_"}
    return {
        "name": robot.name,
        "source": robot.source,
        "flange": robot.flange,
        "gravity_base": robot.gravity_base.tolist(),
        "home": robot.home.tolist(),
        "joint_names": list(robot.joint_names),
        "joint_types": list(robot.joint_types),
        "link_names": list(robot.link_names),
        "joint_placements": robot.joint_placements.tolist(),
        "joint_axes": robot.joint_axes.tolist(),
        "T_joint_link": robot.T_joint_link.tolist(),
        "T_joint_flange": robot.T_joint_flange.tolist(),
        "links": [body.vector.tolist() for body in robot.links],
        "limits": {name: _finite(getattr(robot.limits, name)) for name in _LIMITS},
        "drive": {key: v.tolist() if isinstance(v, np.ndarray) else v for key, v in drive.items()},
        "dh": None if robot.dh is None else _table(robot.dh),
    }


def robot_from_dict(content: dict[str, Any]) -> RobotModel:
    """The robot that `robot_to_dict` wrote down.

    Args:
        content: of the dictionary
    """
    try:
        return _robot(content)
    except (KeyError, TypeError) as error:
        raise InvalidRobot(f"a saved robot is incomplete: {type(error).__name__} {error}") from error


def _robot(content: dict[str, Any]) -> RobotModel:
    model = _chain(content)
    model.gravity.linear = checked_gravity(content["gravity_base"])
    limits = {name: _infinite(values, name) for name, values in content["limits"].items()}
    drive: dict[str, Any] = {
        k: np.array(v) if isinstance(v, list) else v for k, v in content["drive"].items()
    }
    dh: dict[str, Any] = {k: np.array(v) if k in _DH else v for k, v in (content["dh"] or {}).items()}
    made = RobotModel(
        name=content["name"],
        flange=content["flange"],
        limits=JointLimits(**limits),
        drive=DriveModel(**drive),
        dh=DHTable(**dh) if dh else None,
        home=_frozen(content["home"]),
        source=content["source"],
        _pin=model,
        _data=model.createData(),
        _T_joint_link=_frozen(content["T_joint_link"]),
        _link_names=tuple(content["link_names"]),
    )
    links = zip(content["links"], made.link_names, strict=True)
    return made.with_links([InertialParameters.from_vector(vector, name) for vector, name in links])


def _chain(content: dict[str, Any]) -> pin.Model:
    """The massless joints in a row, with a frame for each link and one for the flange."""
    model = pin.Model()
    model.name = content["name"]
    before = 0  # the frame that the next one hangs from
    keys = ("joint_names", "joint_types", "joint_axes", "joint_placements", "T_joint_link", "link_names")
    for i, (name, kind, axis, T, T_link, link) in enumerate(zip(*(content[k] for k in keys), strict=True)):
        make = pin.JointModelPrismaticUnaligned if kind == "prismatic" else pin.JointModelRevoluteUnaligned
        model.addJoint(i, make(np.array(axis)), pin.SE3(np.array(T)), name)
        before = model.addJointFrame(i + 1, before)
        before = model.addFrame(pin.Frame(link, i + 1, before, pin.SE3(np.array(T_link)), pin.FrameType.BODY))
    if not model.existFrame(content["flange"]):
        T_flange = pin.SE3(np.array(content["T_joint_flange"]))
        model.addFrame(pin.Frame(content["flange"], model.nv, before, T_flange, pin.FrameType.OP_FRAME))
    return model


def _table(dh: DHTable) -> dict[str, Any]:
    columns = {name: getattr(dh, name).tolist() for name in _DH}
    return {**columns, "convention": dh.convention, "joint_types": list(dh.joint_types)}


def _finite(values: np.ndarray[Any, Any]) -> list[float | None]:
    return [float(x) if np.isfinite(x) else None for x in values]


def _infinite(values: list[float | None], name: str) -> np.ndarray[Any, Any]:
    missing = -np.inf if name == "q_min" else np.inf
    return np.array([missing if x is None else x for x in values])


def _frozen(values: Any) -> np.ndarray[Any, Any]:
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array
