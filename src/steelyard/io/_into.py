"""Patches an identified arm, or a payload, into a user's own URDF or MJCF.

The file and the model describe the same arm if the joints have the same names and the same axes at
q = 0, in the base frame or with the flange as the common frame. The frames of a link in model and
file then differ by a constant transform.

Other bodies that are fixed to a link of the file (a flange, a camera, a gripper that is held still)
keep their masses: with `kept` the ten numbers of these bodies, the link gets the physical body that
explains the data best together with them,

    |R_1 K (phi + kept) - z|^2  =  |R_1 K phi - (z - R_1 K kept)|^2

so that the sum is the identified arm and no link gets a negative mass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidRobot, UnknownName, UnreadableFile
from steelyard.export import Load
from steelyard.inertia import InertialParameters
from steelyard.io._mjcf import MjcfFile
from steelyard.io._urdf import UrdfFile
from steelyard.robot import RobotModel

_FILES: dict[str, type[UrdfFile] | type[MjcfFile]] = {"urdf": UrdfFile, "mjcf": MjcfFile}
_MAX_AXIS_DISTANCE = 1e-3  # [m] between joint axes of the same arm
_MAX_AXIS_ANGLE = 1e-3  # [rad] between joint axes of the same arm
_UNITS_NOTE = "kg; m; kg m^2. Inertia is about the centre of mass"


@dataclass(frozen=True, eq=False)
class EditedFile:
    """A user's own file with the arm of a model, and a payload to add to it.

    Attributes:
        path: of the file
        target: its kind
        locked: position of each joint that shall not move, by name [rad or m]
        T_there_link: each link frame of the model in the link frame of the file, (n, 4, 4)
        T_there_flange: the flange of the model in the file's last link, (4, 4)
        flange: name of the flange in the file; None if it has none in this place
        kept: bodies of each link that remain unchanged, in the link frames of the file
        load: a payload, in the frame of the flange
        name: of the payload in the file
    """

    path: Path
    target: str
    locked: Mapping[str, float]
    T_there_link: Array
    T_there_flange: Array
    flange: str | None
    kept: tuple[InertialParameters, ...]
    load: Load | None
    name: str

    @classmethod
    def of(
        cls,
        path: Path,
        target: str,
        robot: RobotModel,
        load: Load | None,
        locked: Mapping[str, float],
    ) -> EditedFile:
        """The file, which must describe the same arm.

        Args:
            path: of the file
            target: its kind, 'urdf' or 'mjcf'
            robot: the arm of the model
            load: a payload in the frame of its flange, or None
            locked: position of each joint of the file that shall not move, by name [rad or m]
        """
        if load is None:
            name = "payload"
        else:
            name = load.name
        there = _open(path, target, name, locked).robot(robot.joint_names, robot.flange)
        T_base = _common_base(robot, there, path.name)
        ours, theirs = (_link_frames(arm) for arm in (robot, there))
        T_flange = T_base @ robot.forward_kinematics(np.zeros(robot.n))
        apart = np.linalg.inv(there.forward_kinematics(np.zeros(there.n))) @ T_flange
        return cls(
            path, target, locked,
            _rounded(np.linalg.inv(theirs) @ T_base @ ours),
            _rounded(np.linalg.inv(theirs[-1]) @ T_flange),
            there.flange if np.allclose(apart, np.eye(4), atol=_MAX_AXIS_DISTANCE) else None,
            there.links, load, name,
        )  # fmt: skip

    def text(
        self, own: Sequence[InertialParameters], arm: RobotModel, remarks: Sequence[str]
    ) -> str:
        """The patched text.

        Args:
            own: new bodies of the file's links, in the link frames of the model
            arm: joints and drives, with linear friction
            remarks: for the head of the file
        """
        file = _open(self.path, self.target, self.name, self.locked)
        coupled = arm.drive.coupling is not None
        for j, joint in enumerate(arm.joint_names):
            file.set_link(joint, own[j].in_frame(self.kept[j].frame, self.T_there_link[j]))
            if not coupled:
                friction, damping, rotor = (
                    max(float(values[j]), 0.0)
                    for values in (arm.drive.coulomb, arm.drive.viscous, arm.drive.rotor_inertia)
                )
                file.set_drive(joint, damping=damping, friction=friction, rotor=rotor)
        words = [f"Patched: the inertials of the links of {', '.join(arm.joint_names)}."]
        if file.rotors:
            what = "damping, friction and rotor inertia"
        else:
            what = "damping and friction"
        words.append(
            f"Not patched: {what}, because the motors are coupled; see the JSON beside this file."
            if coupled
            else f"Patched: {what} of these joints."
        )
        words += [
            f"Unchanged: {body.mass:.4g} kg of bodies that are fixed to the link of {joint}; its"
            " inertial does not include them."
            for joint, body in zip(arm.joint_names, self.kept, strict=True)
            if body.mass > 0
        ]
        if self.load is not None:
            to = file.link_of(arm.joint_names[-1])
            T = self.T_there_flange
            if self.flange is not None:
                to, T = file.link_of_frame(self.flange)
            place = file.fix(
                self.name, self.load.body, self.load.head(self.path.name, _UNITS_NOTE), to, T
            )
            words.append(f"Added: the payload, {place}.")
        return file.text([*words, *remarks])


def file_format(path: Path) -> str:
    """The format of a user's file, 'urdf' or 'mjcf', by its root element."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UnreadableFile.of(path, error) from error
    without_comments = re.sub(rb"<!--.*?-->", b"", text, flags=re.DOTALL)
    first = re.search(rb"<(robot|mujoco)[\s>]", without_comments)  # a URDF may hold <mujoco> inside
    if first is not None and first[1] == b"mujoco":
        return "mjcf"
    return "urdf"


def payload_into(load: Load, path: Path, target: str, locked: Mapping[str, float]) -> str:
    """A user's own URDF or MJCF with a payload at its flange, otherwise unchanged.

    Args:
        load: in the frame of the flange
        path: of the file
        target: its kind, 'urdf' or 'mjcf'
        locked: position of each joint that shall not move, by name [rad or m]
    """
    file = _open(path, target, load.name, locked)
    to, T = file.link_of_frame(file.payload_frame(load.body.frame))
    place = file.fix(load.name, load.body, load.head(path.name, _UNITS_NOTE), to, T)
    return file.text([f"Added: the payload, {place}."])


def _open(path: Path, target: str, name: str, locked: Mapping[str, float]) -> UrdfFile | MjcfFile:
    if target not in _FILES:
        raise UnknownName(f"files for {' and '.join(_FILES)} can be patched, not for '{target}'")
    try:
        return _FILES[target](path, replaced=name, locked=locked)
    except OSError as error:
        raise UnreadableFile.of(path, error) from error


def _common_base(ours: RobotModel, theirs: RobotModel, source: str) -> Array:
    """T_theirs_ours of the base frames, (4, 4); the arms must be the same."""
    if ours.joint_names != theirs.joint_names:
        raise InvalidRobot(
            f"{source} describes another arm: its joints are {', '.join(theirs.joint_names)}, those"
            f" of the model {', '.join(ours.joint_names)}"
        )
    zero = np.zeros(ours.n)
    by_flange = theirs.forward_kinematics(zero) @ np.linalg.inv(ours.forward_kinematics(zero))
    differences = []
    for T in (np.eye(4), by_flange):
        words = _difference(ours, theirs, T)
        if not words:
            return T
        differences.append(words)
    raise InvalidRobot(f"{source} describes another arm: {differences[0]}")


def _difference(ours: RobotModel, theirs: RobotModel, T: Array) -> str:
    """The first difference between the axes of two arms at q = 0; empty if there is none."""
    zero = np.zeros(ours.n)
    frames = T @ ours.joint_frames(zero)[1:]
    others = theirs.joint_frames(zero)[1:]
    for j, name in enumerate(ours.joint_names):
        axis = frames[j, :3, :3] @ ours.joint_axes[j]
        other = others[j, :3, :3] @ theirs.joint_axes[j]
        angle = np.arctan2(np.linalg.norm(np.cross(axis, other)), axis @ other)
        apart = others[j, :3, 3] - frames[j, :3, 3]
        beside = float(np.linalg.norm(apart - (apart @ axis) * axis))
        slides = [arm.joint_types[j] == "prismatic" for arm in (ours, theirs)]
        if slides[0] != slides[1]:
            return f"joint {name} slides in one and turns in the other"
        if angle > _MAX_AXIS_ANGLE or (beside > _MAX_AXIS_DISTANCE and not slides[0]):
            return (
                f"the axis of joint {name} is {1e3 * beside:.3g} mm and {np.degrees(angle):.3g}"
                " degrees away from the model's, all joints at zero"
            )
    if ours.flange == theirs.flange:
        apart = np.linalg.inv(theirs.forward_kinematics(zero)) @ T @ ours.forward_kinematics(zero)
        if not np.allclose(apart, np.eye(4), atol=_MAX_AXIS_DISTANCE):
            return f"the flange '{ours.flange}' is not where the model has it"
    return ""


def _link_frames(robot: RobotModel) -> Array:
    """T_base_link of each link at q = 0, (n, 4, 4)."""
    return np.asarray(robot.joint_frames(np.zeros(robot.n))[1:] @ robot.T_joint_link)


def _rounded(T: Array) -> Array:
    """Transforms, (..., 4, 4), with the exact identity in place of a rounded one."""
    same = (np.abs(T - np.eye(4)).max(axis=(-1, -2), keepdims=True)) < 1e-9
    return np.where(same, np.eye(4), T)
