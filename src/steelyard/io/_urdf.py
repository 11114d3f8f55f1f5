"""An arm as a URDF, for every program that reads one.

In a URDF a link's frame is its joint's frame. The inertia of each link is written about its centre
of mass, along the axes of that frame. Where the link frame of the arm is another one (classic DH),
it is written as a fixed link without mass, and so is the flange. Numbers have enough digits to be
read back exactly.

Comments list what a URDF cannot hold: gravity, rotor inertia, offsets, friction laws other than
Coulomb and linear, limits of acceleration, gains and coupling of the drives.

`UrdfFile` is a user's own URDF, in which only inertials and <dynamics> are changed.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from steelyard._arrays import Array
from steelyard._saved import write_text
from steelyard._units import GRAVITY_DOWN
from steelyard.errors import InvalidRobot, UnreadableFile
from steelyard.export._simulators import append_inertial, digits, remark, roll_pitch_yaw
from steelyard.inertia import InertialParameters
from steelyard.io._markup import Element, Markup
from steelyard.robot import RobotModel

_SUFFIXES = (".urdf", ".xml")
_UNLIMITED = 1e9  # written in place of an infinite limit
_UNITS_NOTE = (
    "Units: m, rad, kg, kg m^2, Nm, N, s; inertia about the centre of mass, along the axes of"
    " the link"
)


def write_urdf(robot: RobotModel, path: str | Path, *, allow_unphysical: bool = False) -> None:
    """Writes an arm as a URDF, atomically.

    The file holds links, joints, limits, the flange, Coulomb friction and linear viscous friction;
    comments list what a URDF cannot hold.

    Args:
        allow_unphysical: accept links that are not physical, which many programs refuse
    """
    path = Path(path)
    if path.suffix.lower() not in _SUFFIXES:
        raise UnreadableFile(
            f"{path}: a URDF is written to {' or '.join(_SUFFIXES)}, not '{path.suffix}'"
        )
    write_text(path, urdf_text(robot, allow_unphysical=allow_unphysical))


def urdf_text(
    robot: RobotModel, *, allow_unphysical: bool = False, remarks: Sequence[str] = ()
) -> str:
    """The text of an arm as a URDF, as `write_urdf` writes it, with remarks as comments."""
    if not allow_unphysical:
        _require_physical(robot)
    root = _robot(robot, remarks)
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode", xml_declaration=False)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


class UrdfFile:
    """A user's own URDF, to be patched."""

    rotors = False
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
        self._xml = Markup(path.read_bytes(), path.name, root="robot")
        for tag in ("link", "joint"):
            names = [
                each.attributes.get("name") for each in self._xml.root.children if each.tag == tag
            ]
            twice = {name for name in names if names.count(name) > 1}
            if twice:
                raise UnreadableFile(f"{path.name} has two {tag}s called '{twice.pop()}'")
        self._require_links()
        self._earlier = self._payload(replaced)

    def _require_links(self) -> None:
        """Raises an error if a joint names a link that does not exist."""
        links = [
            each.attributes.get("name") for each in self._xml.root.children if each.tag == "link"
        ]
        for joint in self._xml.root.children:
            if joint.tag != "joint":
                continue
            for end in (joint.child("parent"), joint.child("child")):
                if end is None:
                    name = None
                else:
                    name = end.attributes.get("link")
                if name not in links:
                    raise InvalidRobot(
                        f"{self._path.name}: joint '{joint.attributes.get('name')}' names the link"
                        f" '{name}', which is missing"
                    )

    def robot(self, joint_names: Sequence[str], flange: str) -> RobotModel:
        """The arm with only the bodies that a patch leaves unchanged: all but its own links.

        Args:
            joint_names: of the arm; not used, because the way to the flange determines them
            flange: its name; the default of the file if it does not have this frame
        """
        rest = Markup(self._xml.source, self._xml.name, root="robot")
        for element in self._earlier:
            rest.remove(_named(rest, element.tag, element.attributes["name"]))
        if rest.root.named("link", flange):
            flange_there = flange
        else:
            flange_there = None
        whole = self._read(rest, flange_there)
        for name in whole.link_names:
            inertial = _named(rest, "link", name).child("inertial")
            if inertial is not None:
                rest.remove(inertial)
        return self._read(rest, flange_there)

    def _read(self, markup: Markup, flange: str | None) -> RobotModel:
        return RobotModel.from_urdf_text(
            markup.text(), flange=flange, locked=self._locked, source=self._path.name
        )

    def set_link(self, joint: str, body: InertialParameters) -> None:
        """Sets the inertial of the link that a joint moves, in the frame of the link."""
        link = self.link_of(joint)
        made = ET.Element("link")
        append_inertial(made, body.mass, body.com, body.inertia_com)
        inertial = link.child("inertial")
        if inertial is None:
            self._xml.insert(link, made[0], first=True)
            return
        for new in made[0]:
            old = inertial.child(new.tag)
            if old is None:
                self._xml.insert(inertial, new, first=True)
            else:
                self._xml.set(old, new.attrib)

    def set_drive(self, joint: str, *, damping: float, friction: float, rotor: float) -> None:
        """Sets the <dynamics> of a joint.

        Args:
            damping: [Nm s/rad or N s/m]
            friction: [Nm or N]
            rotor: inertia, [kg m^2 or kg]; not used, because a URDF cannot hold it
        """
        values = {"damping": digits(damping), "friction": digits(friction)}
        element = _named(self._xml, "joint", joint)
        dynamics = element.child("dynamics")
        if dynamics is None:
            self._xml.insert(element, ET.Element("dynamics", values))
        else:
            self._xml.set(dynamics, values)

    def link_of(self, joint: str) -> Element:
        """The link that a joint moves."""
        child = _named(self._xml, "joint", joint).child("child")
        return _named(self._xml, "link", "" if child is None else child.attributes.get("link", ""))

    def payload_frame(self, flange: str) -> str:
        """The frame that gets the payload: the flange, or the default of a file without it."""
        return self.robot((), flange).flange

    def link_of_frame(self, frame: str) -> tuple[Element, Array]:
        """The link that is a frame, and the frame in that link, (4, 4)."""
        return _named(self._xml, "link", frame), np.eye(4)

    def fix(
        self, name: str, body: InertialParameters, words: Sequence[str], to: Element, T: Array
    ) -> str:
        """Adds a payload as a link; returns a description of its place.

        Args:
            name: of the link
            body: in its own frame
            words: for comments
            to: the link that it is fixed to
            T: its frame in that link, (4, 4)
        """
        link = ET.Element("link", name=name)
        for sentence in words:
            remark(link, sentence)
        append_inertial(link, body.mass, body.com, body.inertia_com)
        joint = ET.Element("joint", name=f"{name}_fixed", type="fixed")
        _append_ends(joint, to.attributes["name"], name, T)
        for element in self._earlier:
            self._xml.remove(element)
        self._xml.insert(self._xml.root, link, joint)
        return f"link '{name}', fixed to link '{to.attributes['name']}' by the joint '{name}_fixed'"

    def text(self, words: list[str]) -> str:
        """The patched text, with sentences in a comment at its head."""
        self._xml.head(words)
        return self._xml.text()

    def _payload(self, name: str) -> list[Element]:
        """Link and joint of the payload that an earlier patch has added to the file."""
        link = self._xml.root.named("link", name)
        joint = self._xml.root.named("joint", f"{name}_fixed")
        if link is None:
            return []
        ours = joint is not None and joint.attributes.get("type") == "fixed"
        if not ours or any(child.tag != "inertial" for child in link.children):
            raise InvalidRobot(
                f"{self._path.name} already has a link '{name}' that is not a payload:"
                " give the payload another `name`"
            )
        if joint is not None:
            return [link, joint]
        return []


def _named(markup: Markup, tag: str, name: str) -> Element:
    element = next(
        (
            each
            for each in markup.root.children
            if each.tag == tag and each.attributes.get("name") == name
        ),
        None,
    )
    if element is None:
        raise InvalidRobot(f"{markup.name} has no {tag} '{name}'")
    return element


def _require_physical(robot: RobotModel) -> None:
    for body in robot.links:
        if body.vector.any() and not body.is_physical:
            raise InvalidRobot(
                f"link '{body.frame}' of {robot.name} is not physical: {body.why_not_physical};"
                " identify feasible parameters, or write it anyway with `allow_unphysical=True`"
            )


def _robot(robot: RobotModel, remarks: Sequence[str]) -> ET.Element:
    root = ET.Element("robot", name=robot.name)
    for words in (*_facts(robot), *remarks):
        remark(root, words)
    base = _new_name("base_link", {*robot.link_names, robot.flange})
    ET.SubElement(root, "link", name=base)
    parents = (base, *robot.link_names)
    for j, name in enumerate(robot.link_names):
        _append_link(root, robot.links[j], robot.T_joint_link[j])
        _append_joint(root, robot, j, parents[j])
        if not np.array_equal(robot.T_joint_link[j], np.eye(4)):
            remark(root, f"the frame that the arm's own description gives {name}")
            frame = _new_name(f"{name}_frame", {*robot.link_names, robot.flange})
            _append_fixed(root, frame, name, robot.T_joint_link[j])
    if robot.flange not in robot.link_names:
        remark(root, "the flange: payloads are fixed to it and expressed in it")
        _append_fixed(root, robot.flange, robot.link_names[-1], robot.T_joint_flange)
    return root


def _facts(robot: RobotModel) -> list[str]:
    """Comments for the head: origin, units, and what a URDF cannot hold."""
    facts = [f"{robot.name}, written by steelyard. Source: {robot.source}", _UNITS_NOTE]
    if not np.array_equal(robot.gravity_base, GRAVITY_DOWN):
        facts.append(
            f"Not in this URDF: gravity is ({digits(robot.gravity_base)}) m/s^2 in the base"
            " frame; give it again when this file is read"
        )
    if robot.drive.gain is not None:
        facts.append(f"Not in this URDF: gains of the drives ({digits(robot.drive.gain)}) Nm/A")
    if robot.drive.coupling is not None:
        rows = "; ".join(digits(row) for row in robot.drive.coupling)
        facts.append(
            "Not in this URDF: coupled drives, motor positions = C joint positions with C ="
            f" [{rows}]; rotor inertia and friction below are those of the drives"
        )
    if robot.drive.sign_width > 0:
        facts.append(
            f"Not in this URDF: Coulomb friction is Fc tanh(v / {robot.drive.sign_width!r} rad/s)"
        )
    return facts


def _append_link(root: ET.Element, body: InertialParameters, T_joint_link: Array) -> None:
    link = ET.SubElement(root, "link", name=body.frame)
    if not body.vector.any():
        remark(link, "the mass is unknown")
        return
    there = body.in_frame(body.frame, T_joint_link)
    if there.mass:
        com, inertia = (there.com, there.inertia_com)
    else:
        com, inertia = (np.zeros(3), there.inertia)
    if not body.is_physical:
        remark(link, f"not physical: {body.why_not_physical}")
    append_inertial(link, there.mass, com, inertia)


def _append_joint(root: ET.Element, robot: RobotModel, j: int, parent: str) -> None:
    kind = robot.joint_types[j]
    free = kind != "prismatic" and np.isinf([robot.limits.q_min[j], robot.limits.q_max[j]]).all()
    if free:
        written = "continuous"
    elif kind == "continuous":
        written = "revolute"
    else:
        written = kind
    joint = ET.SubElement(root, "joint", name=robot.joint_names[j], type=written)
    _append_ends(joint, parent, robot.link_names[j], robot.joint_placements[j])
    ET.SubElement(joint, "axis", xyz=digits(robot.joint_axes[j]))
    _append_limit(joint, robot, j, free=bool(free))
    _append_dynamics(joint, robot, j)


def _append_limit(joint: ET.Element, robot: RobotModel, j: int, *, free: bool) -> None:
    limits = robot.limits
    values = {"velocity": limits.v_max[j], "effort": limits.tau_max[j]}
    if not free:
        values |= {"lower": limits.q_min[j], "upper": limits.q_max[j]}
    open_ends = [name for name, value in values.items() if np.isinf(value)]
    if open_ends:
        remark(
            joint, f"no limit of {', '.join(open_ends)} is known: {_UNLIMITED:g} means unlimited"
        )
    if np.isfinite(limits.a_max[j]):
        remark(
            joint,
            f"not in this URDF: acceleration up to {digits(limits.a_max[j])} (rad or m)/s^2",
        )
    finite = {
        name: digits(np.clip(value, -_UNLIMITED, _UNLIMITED)) for name, value in values.items()
    }
    joint.append(ET.Element("limit", finite))


def _append_dynamics(joint: ET.Element, robot: RobotModel, j: int) -> None:
    drive = robot.drive
    linear = drive.exponent[j] == 1.0
    if linear:
        damping = drive.viscous[j]
    else:
        damping = 0.0
    friction = drive.coulomb[j]
    others = {
        "rotor inertia Ia [kg m^2]": drive.rotor_inertia[j],
        "offset B [Nm]": drive.offset[j],
        "load-dependent friction [Nm/Nm]": drive.load_coulomb[j],
        "Stribeck friction Fs [Nm]": drive.stribeck[j],
        "Stribeck speed vs [rad/s]": drive.stribeck_speed[j] if drive.stribeck[j] else 0.0,
        "difference of friction by direction Fa [Nm s/rad]": drive.asymmetry[j],
        "viscous friction Fv [Nm (s/rad)^alpha]": 0.0 if linear else drive.viscous[j],
        "exponent alpha": 0.0 if linear else drive.exponent[j],
    }
    words = ", ".join(f"{name} {digits(value)}" for name, value in others.items() if value)
    if words:
        remark(joint, f"not in this URDF: {words}")
    if friction < 0 or damping < 0:
        words = f"Fc {digits(friction)} Nm, Fv {digits(damping)} Nm s/rad"
        remark(joint, f"a URDF has no negative friction; negative values are written as 0: {words}")
    if damping or friction:
        kept = {"damping": digits(max(damping, 0.0)), "friction": digits(max(friction, 0.0))}
        joint.append(ET.Element("dynamics", kept))


def _append_fixed(root: ET.Element, frame: str, parent: str, T_parent_frame: Array) -> None:
    ET.SubElement(root, "link", name=frame)
    taken = {joint.get("name", "") for joint in root.findall("joint")}
    joint = ET.SubElement(root, "joint", name=_new_name(f"{frame}_fixed", taken), type="fixed")
    _append_ends(joint, parent, frame, T_parent_frame)


def _append_ends(joint: ET.Element, parent: str, child: str, T_parent_child: Array) -> None:
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=child)
    rpy = roll_pitch_yaw(T_parent_child[:3, :3])
    ET.SubElement(joint, "origin", xyz=digits(T_parent_child[:3, 3]), rpy=digits(rpy))


def _new_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
