"""Robots by name (the bundled arms), from a TOML file in their format, a URDF, or a saved dictionary."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from steelyard.arrays import Array, read_only
from steelyard.errors import InvalidRobot, UnknownName, UnreadableFile
from steelyard.inertia import InertialParameters
from steelyard.robot.chain import JointLimits, checked_gravity
from steelyard.robot.dh import DHTable
from steelyard.robot.drive import DriveModel
from steelyard.robot.model import RobotModel

_ARMS = resources.files("steelyard.robot") / "arms"
_TOP_KEYS = {
    "title",
    "source",
    "link_source",
    "convention",
    "gravity_base",
    "home",
    "flange_translation",
    "joint",
    "drive",
}
_JOINT_KEYS = {
    "name",
    "type",
    "alpha",
    "a",
    "d",
    "theta",
    "q_min",
    "q_max",
    "v_max",
    "a_max",
    "tau_max",
    "link",
}
_LINK_KEYS = {"mass", "com", "inertia_com", "inertia_com_diagonal"}
_LIMITS = ("q_min", "q_max", "v_max", "a_max", "tau_max")
_DH = ("alpha", "a", "d", "theta")


def robot_names() -> tuple[str, ...]:
    """The names of the bundled arms."""
    return tuple(sorted(p.name.removesuffix(".toml") for p in _ARMS.iterdir() if p.name.endswith(".toml")))


def load_robot(
    name: str | Path, *, locked: Mapping[str, float] | None = None, flange: str | None = None
) -> RobotModel:
    """A bundled arm by name, or the arm in a .urdf or .toml file.

    Args:
        name: one of `robot_names()`, or a path
        locked: position of each joint that shall not move, by name [rad or m]
        flange: frame for payloads of a URDF; as in `RobotModel.from_urdf` by default
    """
    path = Path(name)
    if path.suffix in (".urdf", ".xml"):
        return RobotModel.from_urdf(path, flange=flange, locked=locked)
    robot = _from_table(name)
    if flange not in (None, robot.flange):
        raise UnknownName(f"{robot.name} has no other flange than '{robot.flange}'; got '{flange}'")
    return robot.with_locked(locked) if locked else robot


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
        return _saved_robot(content)
    except (KeyError, TypeError) as error:
        raise InvalidRobot(f"a saved robot is incomplete: {type(error).__name__} {error}") from error


def _from_table(name: str | Path) -> RobotModel:
    text, path = str(name), Path(name)
    if text in robot_names():
        return _from_toml((_ARMS / f"{text}.toml").read_text(encoding="utf-8"), text)
    if path.suffix == ".toml":
        try:
            return _from_toml(path.read_text(encoding="utf-8"), path.stem)
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableFile(f"cannot read robot file {path}: {error}") from error
    raise UnknownName(
        f"no robot '{text}': bundled are {', '.join(robot_names())}; or give a .urdf or .toml file"
    )


def _from_toml(text: str, name: str) -> RobotModel:
    try:
        return _robot(tomllib.loads(text), name)
    except tomllib.TOMLDecodeError as error:
        raise InvalidRobot(f"robot file '{name}' is not valid TOML: {error}") from error
    except (TypeError, ValueError) as error:
        raise InvalidRobot(f"robot file '{name}': {error}") from error


def _robot(content: dict[str, Any], name: str) -> RobotModel:
    _require_keys(content, _TOP_KEYS, "the file")
    joints = content.get("joint", [])
    if not joints:
        raise InvalidRobot("it has no [[joint]]")
    for joint in joints:
        _require_keys(joint, _JOINT_KEYS, f"joint '{joint.get('name', '?')}'")
    T_link_flange = np.eye(4)
    T_link_flange[:3, 3] = _numbers(content.get("flange_translation", (0, 0, 0)), 3, "flange_translation")
    robot = RobotModel.from_dh(
        _dh(content, joints),
        name=name,
        joint_names=[j.get("name", f"joint{i + 1}") for i, j in enumerate(joints)],
        links=[_link(j.get("link"), f"link{i + 1}") for i, j in enumerate(joints)],
        limits=_limits(joints),
        drive=_drive(content.get("drive", {}), len(joints)),
        T_link_flange=T_link_flange,
    )
    robot = robot.with_gravity(content.get("gravity_base", robot.gravity_base))
    home = _numbers(content.get("home", robot.home), robot.n, "home")
    given = [content[key].rstrip(".") for key in ("title", "source", "link_source") if key in content]
    source = "".join(f"{sentence}. " for sentence in given).strip()
    return replace(robot, home=home, source=source or f"robot file '{name}'")


def _dh(content: dict[str, Any], joints: list[dict[str, Any]]) -> DHTable:
    alpha, a, d, theta = (_column(joints, key, 0.0) for key in ("alpha", "a", "d", "theta"))
    types = tuple(j.get("type", "revolute") for j in joints)
    return DHTable(alpha, a, d, theta, content.get("convention", "modified"), types)


def _limits(joints: list[dict[str, Any]]) -> JointLimits:
    positive = (_column(joints, key, np.inf) for key in ("v_max", "a_max", "tau_max"))
    return JointLimits(_column(joints, "q_min", -np.inf), _column(joints, "q_max", np.inf), *positive)


def _link(link: dict[str, Any] | None, frame: str) -> InertialParameters:
    if link is None:
        return InertialParameters.nothing(frame)
    _require_keys(link, _LINK_KEYS, frame)
    if not ({"mass", "com"} <= set(link) and len(link) == 3):
        raise InvalidRobot(f"{frame} needs mass, com, and inertia_com or inertia_com_diagonal")
    inertia = link["inertia_com"] if "inertia_com" in link else np.diag(link["inertia_com_diagonal"])
    return InertialParameters.from_com(link["mass"], link["com"], inertia, frame)


def _drive(drive: dict[str, Any], n: int) -> DriveModel:
    known = {item for item in DriveModel.__dataclass_fields__ if not item.startswith("_")}
    _require_keys(drive, known, "[drive]")
    return DriveModel(**{"rotor_inertia": np.zeros(n), **drive})


def _column(joints: list[dict[str, Any]], key: str, default: float) -> Array:
    return np.array([float(j.get(key, default)) for j in joints])


def _numbers(values: ArrayLike, count: int, name: str) -> Array:
    array = np.array(values, dtype=float)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise InvalidRobot(f"{name} must hold {count} finite numbers, got {array}")
    return read_only(array)


def _require_keys(table: dict[str, Any], known: set[str], place: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise InvalidRobot(f"{place} has an unknown key '{unknown[0]}'; known are {', '.join(sorted(known))}")


def _saved_robot(content: dict[str, Any]) -> RobotModel:
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
        home=read_only(content["home"]),
        source=content["source"],
        _pin=model,
        _data=model.createData(),
        _T_joint_link=read_only(content["T_joint_link"]),
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


def _finite(values: Array) -> list[float | None]:
    return [float(x) if np.isfinite(x) else None for x in values]


def _infinite(values: list[float | None], name: str) -> Array:
    missing = -np.inf if name == "q_min" else np.inf
    return np.array([missing if x is None else x for x in values])
