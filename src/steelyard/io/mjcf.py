"""An arm as MJCF, MuJoCo's own format.

A body's frame is its joint's frame. Masses are given by principal moments, computed from the second moments
x, y, z of the mass about its centre as (y + z, x + z, x + y), so that they keep MuJoCo's A + B >= C to the
last bit. Held are rotor inertia (armature), linear viscous friction (damping) and Coulomb friction
(frictionloss); where motors turn several joints, these belong to a fixed tendon for each motor, whose length
is the drive's own motion u = U q. What has no place there stands in comments: offsets, other friction laws,
limits of speed.

MuJoCo makes frictionloss a soft constraint: it is the full Coulomb friction while a joint slides, and less
while it creeps.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard.arrays import Array
from steelyard.export.simulators import digits, remark
from steelyard.inertia import InertialParameters
from steelyard.robot import DriveModel, RobotModel

_UNITS = "Units: m, rad, kg, kg m^2, Nm, N, s; inertia about the centre of mass, along the axes of quat"


def mjcf_text(robot: RobotModel, *, remarks: Sequence[str] = ()) -> str:
    """The text of an arm as MJCF, every link a real body, with more remarks at its head."""
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
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _facts(robot: RobotModel) -> list[str]:
    drive = robot.drive
    facts = [f"{robot.name}, written by steelyard. Source: {robot.source}", _UNITS]
    others = {
        "gains of the drives [Nm/A]": drive.gain,
        "offsets B [Nm]": drive.offset,
        "load-dependent friction [Nm/Nm]": drive.load_coulomb,
        "Stribeck friction Fs [Nm]": drive.stribeck,
        "Stribeck speeds vs [rad/s]": drive.stribeck_speed if drive.stribeck.any() else None,
        "exponents alpha of viscous friction": drive.exponent if (drive.exponent != 1).any() else None,
        "speed limits [rad/s or m/s]": robot.limits.v_max if np.isfinite(robot.limits.v_max).any() else None,
    }
    facts += [
        f"Not held by MJCF: {name} {digits(values)}"
        for name, values in others.items()
        if values is not None and values.any()
    ]
    if (drive.exponent != 1).any():
        facts.append(
            f"Not held by MJCF: viscous friction Fv [Nm (s/rad)^alpha] {digits(drive.viscous)};"
            " joints whose exponent is not 1 have no damping here"
        )
    if drive.sign_width > 0:
        facts.append(f"Not held by MJCF: Coulomb friction is Fc tanh(v / {drive.sign_width!r} rad/s)")
    if (drive.coulomb < 0).any() or (drive.viscous < 0).any():
        facts.append(
            "MuJoCo has no negative friction; 0 stands for what is below it in"
            f" Fc {digits(drive.coulomb)} Nm, Fv {digits(drive.viscous)} Nm s/rad"
        )
    return facts


def _append_chain(parent: ET.Element, robot: RobotModel) -> ET.Element:
    """Adds a body and a joint for each link and gives the last body."""
    coupled = robot.drive.coupling is not None
    for j, body in enumerate(robot.links):
        parent = ET.SubElement(parent, "body", {"name": body.frame} | _pose(robot.joint_placements[j]))
        slides = robot.joint_types[j] == "prismatic"
        joint = ET.SubElement(parent, "joint", name=robot.joint_names[j], type="slide" if slides else "hinge")
        joint.set("axis", digits(robot.joint_axes[j]))
        ends = np.array([robot.limits.q_min[j], robot.limits.q_max[j]])
        if np.isfinite(ends).all():
            joint.set("range", digits(ends))
        elif np.isfinite(ends).any():
            remark(parent, f"not held by MJCF: the one limit of {robot.joint_names[j]}, {digits(ends)}")
        if np.isfinite(robot.limits.tau_max[j]):
            joint.set("actuatorfrcrange", digits([-robot.limits.tau_max[j], robot.limits.tau_max[j]]))
        if not coupled:
            _set_drive(joint, robot.drive, j)
        _append_inertial(parent, body.in_frame(body.frame, robot.T_joint_link[j]))
    return parent


def _append_drives(root: ET.Element, robot: RobotModel) -> None:
    """A fixed tendon for each motor: its length is the drive's own motion, in joint units."""
    tendons = ET.SubElement(root, "tendon")
    for i, row in enumerate(robot.drive.transmission.matrix):
        tendon = ET.SubElement(tendons, "fixed", name=f"drive{i + 1}")
        _set_drive(tendon, robot.drive, i)
        for j in np.flatnonzero(row):
            ET.SubElement(tendon, "joint", joint=robot.joint_names[j], coef=digits(row[j]))


def _set_drive(element: ET.Element, drive: DriveModel, j: int) -> None:
    viscous = drive.viscous[j] if drive.exponent[j] == 1 else 0.0
    for key, value in (
        ("armature", drive.rotor_inertia[j]),
        ("damping", viscous),
        ("frictionloss", drive.coulomb[j]),
    ):
        if value > 0:
            element.set(key, digits(value))


def _append_inertial(parent: ET.Element, body: InertialParameters) -> None:
    spread = body.pseudo_inertia[:3, :3] - np.outer(body.first_moment, body.com)
    values, axes = np.linalg.eigh(spread)
    x, y, z = np.maximum(values, 0.0)
    axes = axes * np.array([1.0, 1.0, np.sign(np.linalg.det(axes))])
    ET.SubElement(
        parent,
        "inertial",
        pos=digits(body.com),
        quat=_quaternion(axes),
        mass=digits(body.mass),
        diaginertia=digits([y + z, x + z, x + y]),
    )


def _pose(T: Array) -> dict[str, str]:
    return {"pos": digits(T[:3, 3]), "quat": _quaternion(T[:3, :3])}


def _quaternion(R: Array) -> str:
    return digits(Rotation.from_matrix(R).as_quat()[[3, 0, 1, 2]])
