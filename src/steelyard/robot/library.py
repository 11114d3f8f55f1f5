"""Robots by name or from a file: the bundled arms, a TOML file in their format, or a URDF."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import InvalidRobot, UnknownName, UnreadableFile
from steelyard.inertia import InertialParameters
from steelyard.robot.dh import DHTable, translation
from steelyard.robot.drive import DriveModel
from steelyard.robot.limits import JointLimits
from steelyard.robot.model import RobotModel

__all__ = ["load_robot", "robot_names"]

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


def robot_names() -> tuple[str, ...]:
    """The names of the bundled arms."""
    return tuple(sorted(p.name.removesuffix(".toml") for p in _ARMS.iterdir() if p.name.endswith(".toml")))


def load_robot(name: str | Path) -> RobotModel:
    """A bundled arm by name, or the arm in a .urdf or .toml file.

    Args:
        name: one of `robot_names()`, or a path
    """
    text = str(name)
    if text in robot_names():
        return _from_toml((_ARMS / f"{text}.toml").read_text(encoding="utf-8"), text)
    path = Path(name)
    if path.suffix in (".urdf", ".xml"):
        return RobotModel.from_urdf(path)
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
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidRobot(f"robot file '{name}' is not valid TOML: {error}") from error
    joints = content.get("joint", [])
    if not joints:
        raise InvalidRobot(f"robot file '{name}' has no [[joint]]")
    _require_keys(content, _TOP_KEYS, f"robot file '{name}'")
    for joint in joints:
        _require_keys(joint, _JOINT_KEYS, f"robot file '{name}', joint '{joint.get('name', '?')}'")
    dh = DHTable(
        *(np.array([float(j.get(key, 0.0)) for j in joints]) for key in ("alpha", "a", "d", "theta")),
        convention=content.get("convention", "modified"),
        joint_types=tuple(j.get("type", "revolute") for j in joints),
    )
    robot = RobotModel.from_dh(
        dh,
        name=name,
        joint_names=[j.get("name", f"joint{i + 1}") for i, j in enumerate(joints)],
        links=[_link(j.get("link"), f"link{i + 1}") for i, j in enumerate(joints)],
        limits=_limits(joints),
        drive=DriveModel(**{"rotor_inertia": np.zeros(len(joints)), **_drive(content, name)}),
        T_link_flange=translation(*content.get("flange_translation", (0, 0, 0))),
    )
    robot = robot.with_gravity(content.get("gravity_base", robot.gravity_base))
    home = np.array(content.get("home", robot.home), dtype=float)
    home.setflags(write=False)
    source = " ".join(content[key] for key in ("source", "link_source") if key in content)
    return replace(robot, home=home, source=source or f"robot file '{name}'")


def _limits(joints: list[dict[str, Any]]) -> JointLimits:
    def column(key: str, default: float) -> NDArray[np.float64]:
        return np.array([float(j.get(key, default)) for j in joints])

    positive = (column(key, np.inf) for key in ("v_max", "a_max", "tau_max"))
    return JointLimits(column("q_min", -np.inf), column("q_max", np.inf), *positive)


def _link(link: dict[str, Any] | None, frame: str) -> InertialParameters:
    if link is None:
        return InertialParameters.nothing(frame)
    inertia = np.diag(link["inertia_com_diagonal"]) if "inertia_com_diagonal" in link else link["inertia_com"]
    return InertialParameters.from_com(link["mass"], link["com"], inertia, frame)


def _drive(content: dict[str, Any], name: str) -> dict[str, Any]:
    drive = content.get("drive", {})
    known = {item for item in DriveModel.__dataclass_fields__ if not item.startswith("_")}
    _require_keys(drive, known, f"robot file '{name}', [drive]")
    return {
        key: value if key == "sign_width" else np.array(value, dtype=float) for key, value in drive.items()
    }


def _require_keys(table: dict[str, Any], known: set[str], place: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise InvalidRobot(f"{place}: unknown key '{unknown[0]}'; known are {', '.join(sorted(known))}")
