"""A payload as a URDF link that is fixed to the flange, or as a MuJoCo body, in full precision.

Whole arms (`steelyard.io`) are written with the same pieces of XML.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array
from steelyard.export._load import Load, Target

_UNITS_NOTE = "kg; m; kg m^2. Inertia is about the centre of mass, along the axes of this frame"


def digits(values: ArrayLike) -> str:
    """One or more numbers as the shortest texts that are read back exactly."""
    return " ".join(repr(float(value) + 0.0) for value in np.atleast_1d(values))


def remark(parent: ET.Element, words: str) -> None:
    """Appends a comment; two hyphens in a row would end it."""
    while "--" in words:
        words = words.replace("--", "- -")
    parent.append(ET.Comment(f" {words} "))


def append_inertial(link: ET.Element, mass: float, com: Array, inertia: Array) -> None:
    """Appends the inertial element of a URDF to a link.

    Args:
        mass: [kg]
        com: the centre of mass, (3,) [m], in the link frame
        inertia: about the centre of mass, (3, 3) [kg m^2], along the axes of the link frame
    """
    inertial = ET.SubElement(link, "inertial")
    ET.SubElement(inertial, "origin", xyz=digits(com), rpy="0 0 0")
    ET.SubElement(inertial, "mass", value=digits(mass))
    entries = {
        f"i{'xyz'[i]}{'xyz'[k]}": digits(inertia[i, k]) for i in range(3) for k in range(i, 3)
    }
    inertial.append(ET.Element("inertia", entries))


def roll_pitch_yaw(R: Array) -> Array:
    """Roll, pitch and yaw of R (3, 3) = RotZ(yaw) RotY(pitch) RotX(roll), (3,) [rad].

    The yaw is computed first, then roll and pitch from RotZ(-yaw) R, which stays accurate where the
    pitch is a right angle and the yaw is arbitrary.
    """
    yaw = math.atan2(R[1, 0], R[0, 0])
    c = math.cos(yaw)
    s = math.sin(yaw)
    rest = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ R
    return np.array([math.atan2(-rest[1, 2], rest[1, 1]), math.atan2(-rest[2, 0], rest[0, 0]), yaw])


def _urdf_link(load: Load) -> str:
    """A URDF of the payload alone: a flange, and a link fixed to it."""
    flange = load.body.frame
    notes = [
        f"Copy the link '{load.name}' and its joint into the arm's URDF; '{flange}' is the flange."
    ]
    root = ET.Element("robot", name=load.name)
    for words in load.head("URDF", _UNITS_NOTE, notes=notes):
        remark(root, words)
    ET.SubElement(root, "link", name=flange)
    link = ET.SubElement(root, "link", name=load.name)
    append_inertial(link, load.body.mass, load.body.com, load.body.inertia_com)
    joint = ET.SubElement(root, "joint", name=f"{load.name}_fixed", type="fixed")
    ET.SubElement(joint, "parent", link=flange)
    ET.SubElement(joint, "child", link=load.name)
    ET.SubElement(joint, "origin", xyz="0 0 0", rpy="0 0 0")
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _mjcf_body(load: Load) -> str:
    """An MJCF of the payload alone: a body without a joint."""
    notes = [f"Copy or attach the body '{load.name}' into the body that is the arm's flange."]
    root = ET.Element("mujoco", model=load.name)
    for words in load.head("MuJoCo (MJCF)", _UNITS_NOTE, notes=notes):
        remark(root, words)
    body = ET.SubElement(ET.SubElement(root, "worldbody"), "body", name=load.name)
    inertial = ET.SubElement(
        body, "inertial", pos=digits(load.body.com), mass=digits(load.body.mass)
    )
    if load.is_point:
        inertial.set("diaginertia", "0 0 0")
    else:
        inertial.set("fullinertia", digits(load.inertia_com))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


SIMULATORS = {
    "urdf": Target("URDF, a link fixed to the flange", _urdf_link, has_name=True),
    "mjcf": Target("MuJoCo, a body", _mjcf_body, has_name=True),
}
"""Formats of simulators, by name."""
