"""Robots by name (the bundled arms), from a TOML file in their format, or from a URDF."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from steelyard import _saved
from steelyard._arrays import Array
from steelyard._codec import Value
from steelyard._kinds import INFINITE, NOT_NEGATIVE, Shape
from steelyard.errors import InvalidRobot, UnknownName
from steelyard.inertia import InertialParameters
from steelyard.robot._chain import JointLimits
from steelyard.robot._dh import Convention, DHTable, JointType
from steelyard.robot._drive import DriveModel
from steelyard.robot._model import RobotModel

_ARMS = resources.files("steelyard.robot") / "arms"

_LIMITS = ("q_min", "q_max", "v_max", "a_max", "tau_max")
_DH = ("alpha", "a", "d", "theta")


@dataclass(frozen=True, eq=False)
class _Link(Value, error=InvalidRobot, partial=True):
    """The link that a joint moves, in its DH frame, as a file describes it."""

    mass: Annotated[float, NOT_NEGATIVE]
    com: Annotated[Array, Shape(3)]
    inertia_com: Annotated[Array | None, Shape(3, 3)] = None
    inertia_com_diagonal: Annotated[Array | None, Shape(3), NOT_NEGATIVE] = None

    def body(self, frame: str) -> InertialParameters:
        """Its inertial parameters in a frame."""
        if (self.inertia_com is None) == (self.inertia_com_diagonal is None):
            raise InvalidRobot(f"{frame} needs mass, com, and inertia_com or inertia_com_diagonal")
        if self.inertia_com is None:
            inertia = np.diag(np.asarray(self.inertia_com_diagonal))
        else:
            inertia = self.inertia_com
        return InertialParameters.from_com(self.mass, self.com, inertia, frame)


@dataclass(frozen=True, eq=False)
class _Joint(Value, error=InvalidRobot, partial=True):
    """A joint as a file describes it; infinite limits are none."""

    alpha: float
    a: float
    d: float
    theta: float
    name: str | None = None
    type: JointType = "revolute"
    q_min: Annotated[float, INFINITE] = -np.inf
    q_max: Annotated[float, INFINITE] = np.inf
    v_max: Annotated[float, INFINITE] = np.inf
    a_max: Annotated[float, INFINITE] = np.inf
    tau_max: Annotated[float, INFINITE] = np.inf
    link: _Link | None = None


@dataclass(frozen=True, eq=False)
class _ArmFile(Value, error=InvalidRobot, partial=True):
    """An arm as a TOML file describes it; [drive] has the fields of a `DriveModel`."""

    joint: Annotated[tuple[_Joint, ...], Shape("n")] = ()
    title: str = ""
    source: str = ""
    link_source: str = ""
    convention: Convention = "modified"
    gravity_base: Annotated[Array | None, Shape(3)] = None
    flange_translation: Annotated[Array, Shape(3)] = field(default_factory=lambda: np.zeros(3))
    flange_rpy: Annotated[Array, Shape(3)] = field(default_factory=lambda: np.zeros(3))
    flange_source: str = ""
    home: Annotated[Array | None, Shape("n")] = None
    drive: Mapping[str, Any] = field(default_factory=dict)
    terms: tuple[str, ...] = ()

    @property
    def joint_names(self) -> list[str]:
        """Their names; joint1, joint2, ... where none are given."""
        return [joint.name or f"joint{i + 1}" for i, joint in enumerate(self.joint)]

    @property
    def words(self) -> str:
        """Where its numbers come from."""
        given = (self.title, self.source, self._flange_words, self.link_source)
        return "".join(f"{words.rstrip('.')}. " for words in given if words).strip()

    @property
    def _flange_words(self) -> str:
        if not self.flange_source:
            return ""
        return f"Flange: {self.flange_source[0].lower()}{self.flange_source[1:]}"

    @property
    def T_link_flange(self) -> Array:
        """The flange in the last frame of the table, (4, 4); angles as in a URDF."""
        from scipy.spatial.transform import Rotation  # slow to import

        T = np.eye(4)
        T[:3, :3] = Rotation.from_euler("xyz", self.flange_rpy).as_matrix()
        T[:3, 3] = self.flange_translation
        return T

    def column(self, name: str) -> Array:
        """A number of each joint, (n,)."""
        return np.array([getattr(joint, name) for joint in self.joint])


@cache
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
        flange: frame for payloads; that of the table, or as in `RobotModel.from_urdf` by default
    """
    path = Path(name)
    if path.suffix in (".urdf", ".xml"):
        return RobotModel.from_urdf(path, flange=flange, locked=locked)
    robot = _from_table(name)
    if flange is not None:
        robot = _with_flange(robot, flange)
    if locked:
        return robot.with_locked(locked)
    return robot


def _with_flange(robot: RobotModel, flange: str) -> RobotModel:
    """The arm of a table with its own flange, or with the last frame of the table as the flange."""
    known = (robot.flange, *robot.last_links)
    if flange not in known:
        raise UnknownName(
            f"the flange of {robot.name} is '{known[0]}', or '{known[1]}' for the last frame of its"
            f" table; got '{flange}'"
        )
    return replace(robot, flange=flange)


def _from_table(name: str | Path) -> RobotModel:
    text = str(name)
    path = Path(name)
    if text in robot_names():
        return replace(_bundled(text))  # a copy has work space of its own, so threads may use it
    if path.suffix == ".toml":
        return _checked(_saved.read_toml(path), path.stem)
    raise UnknownName(
        f"no robot '{text}': bundled are {', '.join(robot_names())}; or give a .urdf or .toml file"
    )


@cache
def _bundled(name: str) -> RobotModel:
    """A bundled arm. Reading and checking its file takes milliseconds, so it is done once."""
    return _checked(tomllib.loads((_ARMS / f"{name}.toml").read_text(encoding="utf-8")), name)


def _checked(content: dict[str, Any], name: str) -> RobotModel:
    try:
        return _robot(_ArmFile.from_dict(content), name)
    except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError) as error:
        raise InvalidRobot(f"robot file '{name}': {error}") from error


def _robot(arm: _ArmFile, name: str) -> RobotModel:
    if not arm.joint:
        raise InvalidRobot("it has no [[joint]]")
    limits = {key: arm.column(key) for key in _LIMITS}
    JointLimits.require_order(limits["q_min"], limits["q_max"], arm.joint_names)
    columns = {key: arm.column(key) for key in _DH}
    types = tuple(joint.type for joint in arm.joint)
    robot = RobotModel.from_dh(
        DHTable(**columns, convention=arm.convention, joint_types=types),
        name=name,
        joint_names=arm.joint_names,
        links=[_body(joint.link, f"link{i + 1}") for i, joint in enumerate(arm.joint)],
        limits=JointLimits(**limits),
        drive=_drive(arm),
        T_link_flange=arm.T_link_flange,
    )
    if arm.gravity_base is not None:
        robot = robot.with_gravity(arm.gravity_base)
    home = robot.home if arm.home is None else arm.home
    robot = robot.with_terms(arm.terms)
    return replace(robot, home=home, source=arm.words or f"robot file '{name}'")


def _body(link: _Link | None, frame: str) -> InertialParameters:
    if link is None:
        return InertialParameters.nothing(frame)
    return link.body(frame)


def _drive(arm: _ArmFile) -> DriveModel:
    ideal = DriveModel.ideal(len(arm.joint))
    try:
        return DriveModel.from_dict({**ideal.to_dict(), **arm.drive})
    except InvalidRobot as error:
        raise InvalidRobot(f"[drive]: {error}") from error
