"""Robots by name (the bundled arms), from a TOML file in their format, or from a URDF."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from steelyard import fields, saved
from steelyard._arrays import Array, finite
from steelyard.errors import InvalidRobot, UnknownName
from steelyard.inertia import InertialParameters
from steelyard.robot._chain import JointLimits
from steelyard.robot._dh import DHTable
from steelyard.robot._drive import FORMAT as DRIVE
from steelyard.robot._drive import DriveModel
from steelyard.robot._model import RobotModel

_ARMS = resources.files("steelyard.robot") / "arms"

_LIMITS = {"q_min": -np.inf, "q_max": np.inf, "v_max": np.inf, "a_max": np.inf, "tau_max": np.inf}
_DH = ("alpha", "a", "d", "theta")
_ABOUT = ("title", "source", "link_source")
_LINK = {
    "mass": fields.number(0.0),
    "com": fields.numbers(3),
    "inertia_com": fields.numbers(3, 3),
    "inertia_com_diagonal": fields.numbers(3, low=0.0),
}
_JOINT = {
    **{name: fields.number() for name in _DH},  # required, without a default
    **{name: fields.optional(fields.number(finite=False)) for name in _LIMITS},
    "name": fields.optional(fields.TEXT),
    "type": fields.optional(fields.one_of("revolute", "prismatic", "continuous")),
    "link": fields.optional(fields.table(_LINK, partial=True)),
}
_SHARED = {"sign_width": fields.number(0.0), "gain_drift": fields.number(0.0)}
_MATRICES = {"coupling": fields.numbers("n", "n"), "gain_common": fields.anything}
_EACH = {name for name in DRIVE if name not in (*_SHARED, *_MATRICES)}
_FORMAT = {
    **dict.fromkeys((*_ABOUT, "convention"), fields.TEXT),
    **{name: fields.numbers(3) for name in ("gravity_base", "flange_translation")},
    "home": fields.numbers("n"),
    "joint": fields.each(fields.table(_JOINT)),
    "drive": fields.table(
        {**{name: fields.each_or_all("n") for name in _EACH}, **_SHARED, **_MATRICES}, partial=True
    ),
}


def robot_names() -> tuple[str, ...]:
    """The names of the bundled arms."""
    return tuple(
        sorted(p.name.removesuffix(".toml") for p in _ARMS.iterdir() if p.name.endswith(".toml"))
    )


def load_robot(
    name: str | Path, *, locked: Mapping[str, float] | None = None, flange: str | None = None
) -> RobotModel:
    """A bundled arm by name, one of `robot_names()`, or the arm in a .urdf or .toml file.

    Args:
        locked: position of each joint that shall not move, by name [rad or m]
        flange: frame for payloads of a URDF; as in `RobotModel.from_urdf` by default
    """
    path = Path(name)
    if path.suffix in (".urdf", ".xml"):
        return RobotModel.from_urdf(path, flange=flange, locked=locked)
    robot = _from_table(name)
    if flange not in (None, robot.flange):
        raise UnknownName(f"{robot.name} has no other flange than '{robot.flange}'; got '{flange}'")
    if locked:
        return robot.with_locked(locked)
    return robot


def _from_table(name: str | Path) -> RobotModel:
    text = str(name)
    path = Path(name)
    if text in robot_names():
        return _checked(tomllib.loads((_ARMS / f"{text}.toml").read_text(encoding="utf-8")), text)
    if path.suffix == ".toml":
        return _checked(saved.read_toml(path), path.stem)
    raise UnknownName(
        f"no robot '{text}': bundled are {', '.join(robot_names())}; or give a .urdf or .toml file"
    )


def _checked(content: dict[str, Any], name: str) -> RobotModel:
    try:
        robot = _robot(content, name)
        fields.table(_FORMAT, partial=True)(content, "", {"n": robot.n})
        return robot
    except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError) as error:
        raise InvalidRobot(f"robot file '{name}': {error}") from error


def _robot(content: dict[str, Any], name: str) -> RobotModel:
    _require_keys(content, set(_FORMAT), "the file")
    joints = content.get("joint", [])
    if not joints:
        raise InvalidRobot("it has no [[joint]]")
    for joint in joints:
        _require_keys(joint, set(_JOINT), f"joint '{joint.get('name', '?')}'")
        for key in _DH:
            if key not in joint:
                raise InvalidRobot(
                    f"joint '{joint.get('name', '?')}' has no '{key}'; write 0.0 for zero"
                )
    columns: dict[str, Any] = {key: _column(joints, key, 0.0) for key in _DH}
    names = [j.get("name", f"joint{i + 1}") for i, j in enumerate(joints)]
    types = tuple(j.get("type", "revolute") for j in joints)
    limits = {key: _column(joints, key, none) for key, none in _LIMITS.items()}
    JointLimits.require_order(limits["q_min"], limits["q_max"], names)
    T_link_flange = np.eye(4)
    T_link_flange[:3, 3] = finite(
        content.get("flange_translation", (0, 0, 0)), (3,), "flange_translation", InvalidRobot
    )
    robot = RobotModel.from_dh(
        DHTable(**columns, convention=content.get("convention", "modified"), joint_types=types),
        name=name,
        joint_names=names,
        links=[_link(j.get("link"), f"link{i + 1}") for i, j in enumerate(joints)],
        limits=JointLimits(**limits),
        drive=_drive(content.get("drive", {}), len(joints)),
        T_link_flange=T_link_flange,
    )
    robot = robot.with_gravity(content.get("gravity_base", robot.gravity_base))
    home = finite(content.get("home", robot.home), (robot.n,), "home", InvalidRobot)
    given = [content[key].rstrip(".") for key in _ABOUT if key in content]
    source = "".join(f"{sentence}. " for sentence in given).strip()
    return replace(robot, home=home, source=source or f"robot file '{name}'")


def _link(link: dict[str, Any] | None, frame: str) -> InertialParameters:
    if link is None:
        return InertialParameters.nothing(frame)
    _require_keys(link, set(_LINK), frame)
    if not ({"mass", "com"} <= set(link) and len(link) == 3):
        raise InvalidRobot(f"{frame} needs mass, com, and inertia_com or inertia_com_diagonal")
    if "inertia_com" in link:
        inertia = link["inertia_com"]
    else:
        inertia = np.diag(link["inertia_com_diagonal"])
    return InertialParameters.from_com(link["mass"], link["com"], inertia, frame)


def _drive(drive: dict[str, Any], n: int) -> DriveModel:
    known = {item for item in DriveModel.__dataclass_fields__ if not item.startswith("_")}
    _require_keys(drive, known, "[drive]")
    return DriveModel(**{"rotor_inertia": np.zeros(n), **drive})


def _column(joints: list[dict[str, Any]], key: str, default: float) -> Array:
    return np.array([float(j.get(key, default)) for j in joints])


def _require_keys(table: dict[str, Any], known: set[str], place: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise InvalidRobot(
            f"{place} has an unknown key '{unknown[0]}'; known are {', '.join(sorted(known))}"
        )
