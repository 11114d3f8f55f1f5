"""A payload as a URDF link that is fixed to the flange, and as a MuJoCo body; every digit is kept."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from steelyard.io.export.load import Load
from steelyard.io.export.principal import is_point, require_moments
from steelyard.io.export.words import ABOUT_INERTIA, head
from steelyard.io.urdf import digits, remark

_UNITS = f"kg; m; kg m^2. {ABOUT_INERTIA}, along the axes of this frame"


def urdf_link(load: Load) -> str:
    """A URDF of the payload alone: a flange, and a link fixed to it.

    Args:
        load: in the flange frame
    """
    require_moments(load.body)
    flange = load.body.frame
    notes = [
        f"Copy the link '{load.name}' and its joint into the arm's URDF; '{flange}' stands for the flange."
    ]
    root = ET.Element("robot", name=load.name)
    for words in head(load, "URDF", _UNITS, notes=notes):
        remark(root, words)
    ET.SubElement(root, "link", name=flange)
    inertial = ET.SubElement(ET.SubElement(root, "link", name=load.name), "inertial")
    ET.SubElement(inertial, "origin", xyz=digits(load.body.com), rpy="0 0 0")
    ET.SubElement(inertial, "mass", value=digits(load.body.mass))
    xx, yy, zz, xy, xz, yz = (digits(entry) for entry in load.inertia_com)
    ET.SubElement(inertial, "inertia", ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)
    joint = ET.SubElement(root, "joint", name=f"{load.name}_fixed", type="fixed")
    ET.SubElement(joint, "parent", link=flange)
    ET.SubElement(joint, "child", link=load.name)
    ET.SubElement(joint, "origin", xyz="0 0 0", rpy="0 0 0")
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def mjcf_body(load: Load) -> str:
    """An MJCF of the payload alone: a body without a joint.

    Args:
        load: in the flange frame
    """
    require_moments(load.body)
    notes = [f"Copy or attach the body '{load.name}' into the body that is the arm's flange."]
    root = ET.Element("mujoco", model=load.name)
    for words in head(load, "MuJoCo (MJCF)", _UNITS, notes=notes):
        remark(root, words)
    body = ET.SubElement(ET.SubElement(root, "worldbody"), "body", name=load.name)
    inertial = ET.SubElement(body, "inertial", pos=digits(load.body.com), mass=digits(load.body.mass))
    if is_point(load.body):
        inertial.set("diaginertia", "0 0 0")
    else:
        inertial.set("fullinertia", digits(load.inertia_com))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"
