"""A URDF as a Pinocchio model of joints in a row."""

from __future__ import annotations

import math
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin

from steelyard._arrays import Array
from steelyard.errors import InvalidRobot, UnknownName, UnreadableFile
from steelyard.robot._chain import JointLimits, links_behind_last_joint, locked_chain
from steelyard.robot._flange import FlangeChoice

_MOVABLE = ("revolute", "prismatic", "continuous")
_UNLIMITED = "1e9"
_MAX_LISTED = 6  # held joints that a message names
_INERTIA_KEYS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def _listed(texts: Sequence[str]) -> str:
    """The first texts with commas, and how many more there are."""
    shown = ", ".join(texts[:_MAX_LISTED])
    if len(texts) > _MAX_LISTED:
        return f"{shown} and {len(texts) - _MAX_LISTED} more"
    return shown


@dataclass(frozen=True)
class ParsedURDF:
    """A chain of joints that was read from a URDF.

    Attributes:
        model: the Pinocchio model, unlocked joints only
        limits: of its joints
        link_names: name of the link that each joint moves
        choice: the frame for payloads, and why it was chosen
        friction: Coulomb [Nm or N] and viscous [Nm s/rad or N s/m] friction of <dynamics>, (2, n)
        held: position of each joint that stands still because it is not on the way to the flange
            [rad or m]
    """

    model: pin.Model
    limits: JointLimits
    link_names: tuple[str, ...]
    choice: FlangeChoice
    friction: Array
    held: Mapping[str, float]

    @property
    def words(self) -> str:
        """What was chosen: flange and held joints, each with a full stop before it."""
        sentences = [self.choice.sentence(links_behind_last_joint(self.model))]
        if self.held:
            still = _listed([f"{name} = {x:g}" for name, x in self.held.items()])
            flange = self.choice.frame
            sentences.append(f"Held still, not on the way to the flange '{flange}': {still}")
        return "".join(f". {sentence}" for sentence in sentences if sentence)

    @classmethod
    def of(
        cls, text: str, source: str, *, locked: Mapping[str, float], flange: str | None
    ) -> ParsedURDF:
        """The chain of joints in a URDF, up to its flange; fingers and other branches stand still.

        Args:
            source: where it comes from, for messages
            locked: position of each joint that shall not move, by name [rad or m]
            flange: frame for payloads; by the rule of `steelyard.robot._flange` by default
        """
        root = _xml(text, source)
        joints = {j.get("name", ""): j for j in root.findall("joint") if j.get("type") != "fixed"}
        _require_known_types(joints, source)
        _require_readable_inertials(root, source)
        unlimited = _free_continuous_joints(joints)
        limits = {name: _limits(joint, source) for name, joint in joints.items()}
        try:
            model = pin.buildModelFromXML(ET.tostring(root, encoding="unicode"))
        except (ValueError, RuntimeError) as error:
            raise InvalidRobot(f"{source} is not a usable URDF: {_one_line(error)}") from error
        model = locked_chain(model, locked, source)
        choice = FlangeChoice.of(root, model, flange, source)
        off_way = [name for name in tuple(model.names)[1:] if name not in choice.way]
        ranges = {name: limits[name][:2] for name in off_way}
        held = _standing(ranges, locked, joints)
        model = locked_chain(model, held, source)
        if model.nv == 0:
            raise InvalidRobot(f"{source} has no movable joint left")
        names = tuple(model.names)[1:]
        _require_independent(names, joints, source)
        columns = np.array([limits[name] for name in names]).T
        columns[:, [name in unlimited for name in names]] *= np.array(
            [[np.inf], [np.inf], [1], [1]]
        )
        q_min, q_max, v_max, tau_max = columns
        JointLimits.require_order(q_min, q_max, names)
        made = JointLimits(q_min, q_max, v_max, np.full(len(names), np.inf), tau_max)
        friction = np.array([_friction(joints[name], source) for name in names]).T
        _require_behind_last_joint(model, choice.frame, source)
        return cls(model, made, _link_names(model, joints), choice, friction, held)


def read_urdf(path: str | Path) -> str:
    """The text of a URDF file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableFile.of(path, error) from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path} is not a URDF: it is not text") from error
    if not text.strip():
        raise UnreadableFile(f"{path} is empty")
    return text


def with_found_meshes(
    path: str | Path, word: str, package_folders: Sequence[str]
) -> tuple[str, list[tuple[str, str]]]:
    """The URDF with full paths of meshes, and link and file of each mesh not found.

    Args:
        word: 'collision' or 'visual', whose meshes count
        package_folders: where 'package://' paths begin, besides ROS's folders, the URDF's and those
            above it
    """
    folders = [*map(Path, package_folders), *_ros_folders(), *Path(path).absolute().parents]
    root = _xml(read_urdf(path), str(path))
    missing = []
    for link in root.findall("link"):
        for part in link.findall(word):
            mesh = part.find("geometry/mesh")
            if mesh is None:
                continue
            name = mesh.get("filename", "")
            found = next((file for file in _mesh_paths(name, folders) if file.is_file()), None)
            if found is None:
                link.remove(part)
                missing.append((link.get("name", ""), name))
            else:
                mesh.set("filename", str(found))
    return ET.tostring(root, encoding="unicode"), missing


def _ros_folders() -> Iterator[Path]:
    """Where ROS finds packages."""
    for name, inside in (("ROS_PACKAGE_PATH", ""), ("AMENT_PREFIX_PATH", "share")):
        yield from (Path(one) / inside for one in os.environ.get(name, "").split(os.pathsep) if one)


def _mesh_paths(name: str, folders: Sequence[Path]) -> Iterator[Path]:
    """Possible paths of a mesh of a URDF, the most likely first."""
    scheme, _, rest = name.rpartition("://")
    for folder in folders:
        yield folder / rest
        package, _, inside = rest.partition("/")
        if scheme in ("package", "model") and folder.name == package:
            yield folder / inside


def _require_behind_last_joint(model: pin.Model, flange: str, source: str) -> None:
    """Refuses a flange that no joint moves."""
    on_last = [frame.name for frame in model.frames if frame.parentJoint == model.nv]
    if flange not in on_last:
        raise UnknownName(
            f"{source}: '{flange}' is no frame behind the last joint; those are"
            f" {', '.join(on_last)}"
        )


def _xml(text: str, source: str) -> ET.Element:
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise InvalidRobot(f"{source} does not parse as XML: {error}") from error
    if root.tag != "robot":
        raise InvalidRobot(f"{source} is not a URDF: its root is <{root.tag}>, not <robot>")
    return root


def _require_known_types(joints: Mapping[str, ET.Element], source: str) -> None:
    for name, joint in joints.items():
        kind = joint.get("type")
        axis = joint.find("axis")
        if kind not in _MOVABLE:
            raise InvalidRobot(
                f"{source}: joint '{name}' is of type '{kind}'; known are fixed,"
                f" {', '.join(_MOVABLE)}"
            )
        if axis is not None and not any(_numbers(axis.get("xyz", "").split())):
            raise InvalidRobot(
                f"{source}: the axis of joint '{name}' is zero or missing: {axis.attrib}"
            )


def _require_readable_inertials(root: ET.Element, source: str) -> None:
    """Refuses links whose inertia the URDF parser would silently leave out."""
    for link in root.findall("link"):
        inertial = link.find("inertial")
        if inertial is None:
            continue
        mass = inertial.find("mass")
        inertia = inertial.find("inertia")
        texts = [None if mass is None else mass.get("value")]
        texts += [None if inertia is None else inertia.get(key) for key in _INERTIA_KEYS]
        if not np.isfinite(_numbers(texts)).all():
            raise InvalidRobot(
                f"{source}: the <inertial> of link '{link.get('name')}' needs a finite <mass value>"
                f" and <inertia> with {', '.join(_INERTIA_KEYS)}"
            )


def _numbers(texts: Sequence[str | None]) -> list[float]:
    """The texts as numbers; NaN where one is missing or no number."""
    numbers = []
    for text in texts:
        try:
            numbers.append(math.nan if text is None else float(text))
        except ValueError:
            numbers.append(math.nan)
    return numbers


def _free_continuous_joints(joints: Mapping[str, ET.Element]) -> set[str]:
    """Continuous joints become revolute joints with very wide limits."""
    free = {name for name, joint in joints.items() if joint.get("type") == "continuous"}
    for name in free:
        joints[name].set("type", "revolute")
        limit = joints[name].find("limit")
        if limit is None:
            limit = ET.SubElement(joints[name], "limit", effort="0", velocity="0")
        limit.set("lower", "-" + _UNLIMITED)
        limit.set("upper", _UNLIMITED)
    return free


def _limits(joint: ET.Element, source: str) -> tuple[float, float, float, float]:
    name = joint.get("name")
    limit = joint.find("limit")
    if limit is None:
        raise InvalidRobot(
            f"{source}: joint '{name}' has no <limit>; add one or make it continuous"
        )
    keys = ("lower", "upper", "velocity", "effort")
    values = _numbers([limit.get(key, "0") for key in keys])
    for key, value in zip(keys, values, strict=True):
        if not math.isfinite(value):
            raise InvalidRobot(
                f"{source}: joint '{name}' has {key} '{limit.get(key)}'; it must be finite"
            )
    lower, upper, speed, effort = values
    return lower, upper, speed or math.inf, effort or math.inf


def _standing(
    ranges: Mapping[str, tuple[float, float]],
    locked: Mapping[str, float],
    joints: Mapping[str, ET.Element],
) -> dict[str, float]:
    """Positions of joints off the way: nearest to zero, or as those that they mimic."""
    held = {name: float(np.clip(0.0, *ends)) for name, ends in ranges.items()}
    at = {**held, **locked}
    for name in held:
        mimic = joints[name].find("mimic")
        if mimic is not None and (leader := mimic.get("joint", "")) in at:
            multiplier, offset = _numbers([mimic.get("multiplier", "1"), mimic.get("offset", "0")])
            held[name] = multiplier * at[leader] + offset + 0.0  # no -0
    return held


def _require_independent(
    names: Sequence[str], joints: Mapping[str, ET.Element], source: str
) -> None:
    """Refuses joints of the arm that follow others: its dynamics would be those of another arm."""
    for name in names:
        mimic = joints[name].find("mimic")
        if mimic is not None:
            raise InvalidRobot(
                f"{source}: joint '{name}' of the arm follows '{mimic.get('joint')}' (<mimic>), but"
                f" the joints of an arm must be independent; hold it still with"
                f" `locked={{'{name}': 0.0}}`, or remove <mimic> if it has a drive of its own"
            )


def _friction(joint: ET.Element, source: str) -> tuple[float, float]:
    """Coulomb and viscous friction of a joint's <dynamics>; zero where it has none."""
    dynamics = joint.find("dynamics")
    if dynamics is None:
        return 0.0, 0.0
    coulomb, viscous = _numbers([dynamics.get(key, "0") for key in ("friction", "damping")])
    if not (math.isfinite(coulomb + viscous) and min(coulomb, viscous) >= 0):
        raise InvalidRobot(
            f"{source}: the <dynamics> of joint '{joint.get('name')}' must have a friction and"
            f" damping of at least 0, got {dynamics.attrib}"
        )
    return coulomb, viscous


def _link_names(model: pin.Model, joints: Mapping[str, ET.Element]) -> tuple[str, ...]:
    children = {name: joint.find("child") for name, joint in joints.items()}
    return tuple(
        str(c.get("link")) if (c := children[n]) is not None else n for n in model.names[1:]
    )


def _one_line(error: Exception) -> str:
    return re.sub(r"\s+", " ", str(error)).strip()
