"""An arm as MJCF, MuJoCo's own format.

A body's frame is its joint's frame. Inertias are written as principal moments, computed from the
second moments x, y, z of the mass about its centre as (y + z, x + z, x + y), so that they satisfy
MuJoCo's A + B >= C to the last bit. The format holds rotor inertia (armature), linear viscous
friction (damping) and Coulomb friction (frictionloss); where motors turn several joints, these
belong to a fixed tendon for each motor, whose length is the drive's own motion u = U q. Comments
list what the format cannot hold: offsets, other friction laws, limits of speed.

In MuJoCo frictionloss is a soft constraint: it is the full Coulomb friction while a joint slides,
and less while it creeps.

`MjcfFile` is a user's own MJCF, in which only inertials, armature, damping and frictionloss are
changed.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array
from steelyard.errors import InvalidRobot
from steelyard.export._simulators import digits, remark
from steelyard.inertia import InertialParameters
from steelyard.io._markup import Element, Markup
from steelyard.robot import DriveModel, RobotModel

if TYPE_CHECKING:
    from steelyard.simulation._mjcf import ArmInMjcf

_UNITS_NOTE = (
    "Units: m, rad, kg, kg m^2, Nm, N, s; inertia about the centre of mass, along the axes of quat"
)

_ROS2_USE = (
    "For mujoco_ros2_control: name this file in the parameter mujoco_model of the plugin"
    " mujoco_ros2_control/MujocoSystemInterface, and give each joint the command interface effort;"
    " position and velocity need gains in pids_config_file"
)

_OTHER_INERTIALS = ("fullinertia", "axisangle", "euler", "xyaxes", "zaxis")


def mjcf_text(robot: RobotModel, *, remarks: Sequence[str] = ()) -> str:
    """The text of an arm as MJCF, with remarks as comments; all links must be physical."""
    return _as_text(_mjcf_root(robot, remarks))


def mujoco_ros2_text(robot: RobotModel, *, remarks: Sequence[str] = ()) -> str:
    """The same with a motor for each joint, for the system interface of mujoco_ros2_control.

    It finds the actuator of a joint by the joint's name, and passes the effort of a controller on
    as the motor's torque.

    Args:
        robot: the arm; all links must be physical
        remarks: for comments
    """
    root = _mjcf_root(robot, (*remarks, _ROS2_USE))
    actuators = ET.SubElement(root, "actuator")
    for name, most in zip(robot.joint_names, robot.limits.tau_max, strict=True):
        motor = ET.SubElement(actuators, "motor", name=name, joint=name)
        if np.isfinite(most):
            motor.set("ctrlrange", digits([-most, most]))
    return _as_text(root)


def _as_text(root: ET.Element) -> str:
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _mjcf_root(robot: RobotModel, remarks: Sequence[str]) -> ET.Element:
    """The elements of an arm, with remarks as comments."""
    robot.require_real("MuJoCo")
    root = ET.Element("mujoco", model=robot.name)
    for words in (*_facts(robot), *remarks):
        remark(root, words)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true", fusestatic="false")
    ET.SubElement(root, "option", gravity=digits(robot.gravity_base))
    last = _append_chain(ET.SubElement(root, "worldbody"), robot)
    if robot.flange not in robot.link_names:
        remark(last, "the flange: payloads are fixed to it and expressed in it")
        ET.SubElement(last, "body", {"name": robot.flange} | _pose(robot.T_joint_flange))
    if robot.drive.coupling is not None:
        _append_drives(root, robot)
    return root


class MjcfFile:
    """A user's own MJCF, to be patched."""

    rotors = True
    """Whether the format holds rotor inertia."""

    def __init__(self, path: Path, *, replaced: str, locked: Mapping[str, float]) -> None:
        """Reads it.

        Args:
            path: of the file
            replaced: name of the payload; one of an earlier patch is removed
            locked: position of each joint that shall not move, by name [rad or m]
        """
        self._path = path
        self._locked = locked
        self._replaced = replaced
        self._xml = Markup(path.read_bytes(), path.name, root="mujoco")
        if any(
            "settotalmass" in compiler.attributes for compiler in self._xml.root.every("compiler")
        ):
            raise InvalidRobot(
                f"{path.name} has <compiler settotalmass>, which rescales masses; remove it"
            )
        self._earlier = self._payload(replaced)

    def robot(self, joint_names: Sequence[str], flange: str) -> RobotModel:
        """The arm with only the bodies that a patch leaves unchanged: all but those of its joints.

        Args:
            joint_names: of the arm
            flange: its name; where the file does not have it, a common one
        """
        self._arm = self._read(joint_names)
        return self._arm.robot(flange, without=self._replaced)

    def _read(self, joint_names: Sequence[str]) -> ArmInMjcf:
        from steelyard.simulation._mjcf import ArmInMjcf

        return ArmInMjcf(self._path, joint_names, locked=self._locked)

    def set_link(self, joint: str, body: InertialParameters) -> None:
        """Sets the inertial of the body that a joint moves, in the frame of the body."""
        element = self.link_of(joint)
        values = _inertial(body)
        inertial = element.child("inertial")
        if inertial is None:
            self._xml.insert(element, ET.Element("inertial", values), first=True)
        else:
            self._xml.set(inertial, {**dict.fromkeys(_OTHER_INERTIALS), **values})

    def set_drive(self, joint: str, *, damping: float, friction: float, rotor: float) -> None:
        """Sets damping, friction and rotor inertia of a joint.

        Args:
            damping: [Nm s/rad or N s/m]
            friction: [Nm or N]
            rotor: inertia, [kg m^2 or kg]
        """
        values = {
            "damping": digits(damping),
            "frictionloss": digits(friction),
            "armature": digits(rotor),
        }
        self._xml.set(self._element("joint", joint), values)

    def link_of(self, joint: str) -> Element:
        """The body that a joint moves."""
        return _body_around(self._element("joint", joint))

    def payload_frame(self, flange: str) -> str:
        """The frame that gets the payload: the flange."""
        return flange

    def link_of_frame(self, frame: str) -> tuple[Element, Array]:
        """The body that is a frame or has it as a site, and the frame in that body, (4, 4)."""
        for tag in ("body", "site"):
            element = self._xml.root.named(tag, frame)
            if element is not None:
                T = self._read(()).frame_in_its_body(frame)
                return element if tag == "body" else _body_around(element), T
        raise InvalidRobot(f"{self._path.name} has no body or site '{frame}' for the payload")

    def fix(
        self, name: str, body: InertialParameters, words: Sequence[str], to: Element, T: Array
    ) -> str:
        """Adds a payload as a body; returns a description of its place.

        Args:
            name: of the body
            body: in its own frame
            words: for comments
            to: the body that it is fixed to
            T: its frame in that body, (4, 4)
        """
        made = ET.Element("body", {"name": name} | _pose(T))
        for sentence in words:
            remark(made, sentence)
        _append_inertial(made, body)
        for element in self._earlier:
            self._xml.remove(element)
        self._xml.insert(to, made)
        return f"body '{name}', in the body '{to.attributes.get('name', 'without a name')}'"

    def text(self, words: list[str]) -> str:
        """The patched text, with sentences in a comment at its head."""
        self._xml.head(words)
        return self._xml.text()

    def _element(self, tag: str, name: str) -> Element:
        world = self._xml.root.child("worldbody")
        if world is None:
            element = None
        else:
            element = world.named(tag, name)
        if element is None:
            raise InvalidRobot(
                f"{self._path.name} has no {tag} '{name}' in its <worldbody>; included files are"
                " not patched: give the file that contains the arm"
            )
        return element

    def _payload(self, name: str) -> list[Element]:
        """The body of the payload that an earlier patch has added to the file."""
        body = self._xml.root.named("body", name)
        if body is None:
            return []
        if any(child.tag != "inertial" for child in body.children):
            raise InvalidRobot(
                f"{self._path.name} already has a body '{name}' that is not a payload:"
                " give the payload another `name`"
            )
        return [body]


def _body_around(element: Element) -> Element:
    while element.tag not in ("body", "worldbody") and element.parent is not None:
        element = element.parent
    return element


def _facts(robot: RobotModel) -> list[str]:
    drive = robot.drive
    facts = [f"{robot.name}, written by steelyard. Source: {robot.source}", _UNITS_NOTE]
    others = {
        "gains of the drives [Nm/A]": drive.gain,
        "offsets B [Nm]": drive.offset,
        "load-dependent friction [Nm/Nm]": drive.load_coulomb,
        "Stribeck friction Fs [Nm]": drive.stribeck,
        "Stribeck speeds vs [rad/s]": drive.stribeck_speed if drive.stribeck.any() else None,
        "differences of friction by direction Fa [Nm s/rad]": drive.asymmetry,
        "exponents alpha of viscous friction": drive.exponent
        if (drive.exponent != 1).any()
        else None,
        "speed limits [rad/s or m/s]": robot.limits.v_max
        if np.isfinite(robot.limits.v_max).any()
        else None,
    }
    facts += [
        f"Not in MJCF: {name} {digits(values)}"
        for name, values in others.items()
        if values is not None and values.any()
    ]
    if (drive.exponent != 1).any():
        facts.append(
            f"Not in MJCF: viscous friction Fv [Nm (s/rad)^alpha] {digits(drive.viscous)};"
            " joints whose exponent is not 1 have no damping here"
        )
    if drive.sign_width > 0:
        facts.append(f"Not in MJCF: Coulomb friction is Fc tanh(v / {drive.sign_width!r} rad/s)")
    if (drive.coulomb < 0).any() or (drive.viscous < 0).any():
        facts.append(
            "MuJoCo has no negative friction; negative values are written as 0:"
            f" Fc {digits(drive.coulomb)} Nm, Fv {digits(drive.viscous)} Nm s/rad"
        )
    return facts


def _append_chain(parent: ET.Element, robot: RobotModel) -> ET.Element:
    """Adds a body and a joint for each link; returns the last body."""
    coupled = robot.drive.coupling is not None
    for j, body in enumerate(robot.links):
        parent = ET.SubElement(
            parent, "body", {"name": body.frame} | _pose(robot.joint_placements[j])
        )
        slides = robot.joint_types[j] == "prismatic"
        joint = ET.SubElement(
            parent, "joint", name=robot.joint_names[j], type="slide" if slides else "hinge"
        )
        joint.set("axis", digits(robot.joint_axes[j]))
        ends = np.array([robot.limits.q_min[j], robot.limits.q_max[j]])
        if np.isfinite(ends).all():
            joint.set("range", digits(ends))
        elif np.isfinite(ends).any():
            remark(parent, f"not in MJCF: the one limit of {robot.joint_names[j]}, {digits(ends)}")
        if np.isfinite(robot.limits.tau_max[j]):
            joint.set(
                "actuatorfrcrange", digits([-robot.limits.tau_max[j], robot.limits.tau_max[j]])
            )
        if not coupled:
            _set_drive(joint, robot.drive, j)
        _append_inertial(parent, body.in_frame(body.frame, robot.T_joint_link[j]))
    return parent


def _append_drives(root: ET.Element, robot: RobotModel) -> None:
    """Adds a fixed tendon for each motor, whose length is the motion of the drive."""
    tendons = ET.SubElement(root, "tendon")
    for i, row in enumerate(robot.drive.transmission.matrix):
        tendon = ET.SubElement(tendons, "fixed", name=f"drive{i + 1}")
        _set_drive(tendon, robot.drive, i)
        for j in np.flatnonzero(row):
            ET.SubElement(tendon, "joint", joint=robot.joint_names[j], coef=digits(row[j]))


def _set_drive(element: ET.Element, drive: DriveModel, j: int) -> None:
    if drive.exponent[j] == 1:
        viscous = drive.viscous[j]
    else:
        viscous = 0.0
    for key, value in (
        ("armature", drive.rotor_inertia[j]),
        ("damping", viscous),
        ("frictionloss", drive.coulomb[j]),
    ):
        if value > 0:
            element.set(key, digits(value))


def _append_inertial(parent: ET.Element, body: InertialParameters) -> None:
    ET.SubElement(parent, "inertial", _inertial(body))


def _inertial(body: InertialParameters) -> dict[str, str]:
    spread = body.pseudo_inertia[:3, :3] - np.outer(body.first_moment, body.com)
    values, axes = np.linalg.eigh(spread)
    x, y, z = np.maximum(values, 0.0)
    axes = axes * np.array([1.0, 1.0, np.sign(np.linalg.det(axes))])
    return {
        "pos": digits(body.com),
        "quat": _quaternion(axes),
        "mass": digits(body.mass),
        "diaginertia": digits([y + z, x + z, x + y]),
    }


def _pose(T: Array) -> dict[str, str]:
    return {"pos": digits(T[:3, 3]), "quat": _quaternion(T[:3, :3])}


def _quaternion(R: Array) -> str:
    return digits(Rotation.from_matrix(R).as_quat()[[3, 0, 1, 2]])
