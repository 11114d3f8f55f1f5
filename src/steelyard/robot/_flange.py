"""The flange of a URDF: which frame a payload is expressed in, by rule.

1. Joints of grippers are no joints of the arm: those that mimic others, those that are mimicked,
   and those whose names say finger, gripper, jaw and so on, as long as only such joints follow.
2. A link that is named as a flange, as an end effector or as a tool frame, in this order, is the
   flange. Of several with equally good names the one nearest to the last joint is taken.
3. Without such a name the arm goes on where most joints follow, and then along fixed joints for as
   long as they do not branch and no joint of a gripper follows.

A URDF with several arms is refused: which arm is meant is for the user to say.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import pinocchio as pin

from steelyard.errors import InvalidRobot, UnknownName

_MIN_ARM_JOINTS = 3  # a shorter chain is a finger
_LISTED = 4  # other frames that a message names

_GRIPPER_LINKS = {"finger", "fingers", "jaw", "thumb", "knuckle", "claw"}
_GRIPPER_JOINTS = {*_GRIPPER_LINKS, "gripper", "hand"}
_WRIST = {"wrist", "roll", "pitch", "yaw"}  # "hand_yaw" is the last joint of an arm
_SENSORS = {"camera", "optical", "imu", "laser", "depth", "rgb", "ft", "sensor"}
_FRANKA_FLANGE = re.compile(r"(panda|fr3|fer)_link8$")  # the manufacturer's name of the flange


class _FrameRank(IntEnum):
    """What the name of a frame says, the best first."""

    TOOL0 = 0
    FLANGE = 1
    END_EFFECTOR = 2
    TOOL = 3


_REASONS = {
    _FrameRank.TOOL0: "named tool0",
    _FrameRank.FLANGE: "named as the flange",
    _FrameRank.END_EFFECTOR: "named as the end effector",
    _FrameRank.TOOL: "named as a tool frame",
}


@dataclass(frozen=True)
class FlangeChoice:
    """The flange of an arm and the joints on the way to it.

    Attributes:
        frame: name of the flange
        way: names of the joints between base and flange
        reason: why this frame was chosen, in words; empty where the user named it
    """

    frame: str
    way: tuple[str, ...]
    reason: str = ""

    @classmethod
    def of(
        cls, root: ET.Element, model: pin.Model, requested: str | None, source: str
    ) -> FlangeChoice:
        """The flange by the rule above, or the requested frame.

        Args:
            root: of the URDF
            model: the Pinocchio model of it, without locked joints
            requested: name of the frame; None for the rule
            source: where the URDF comes from, for messages
        """
        tree = _Tree(root, model)
        if requested is not None:
            joint = tree.joint_of_frame(requested)
            if joint is None:
                known = dict.fromkeys([*tree.named_frames(), *tree.ends()])
                raise UnknownName(
                    f"{source} has no frame '{requested}'; candidates are {_options(known)}"
                )
            return cls(requested, tree.way(joint))
        named = tree.named_frames()
        if named:
            return _best_named(tree, named, source)
        joint = tree.longest(source)
        return cls(tree.end_of(joint), tree.way(joint), "the last link of the arm")

    def sentence(self, others: Sequence[str]) -> str:
        """The choice in words, with other frames behind the last joint; empty if it was requested.

        Args:
            others: frames behind the last joint
        """
        if not self.reason:
            return ""
        words = f"Flange: '{self.frame}' ({self.reason})"
        others = [name for name in others if name != self.frame]
        if not others:
            return words
        more = ""
        if len(others) > _LISTED:
            more = f" and {len(others) - _LISTED} more"
        return f"{words}; other choices: {_options(others[:_LISTED])}{more}"


def _best_named(tree: _Tree, named: Mapping[str, _FrameRank], source: str) -> FlangeChoice:
    """The frame with the best name, nearest to its joint; several arms are refused."""
    joints = {frame: tree.frame_joints[frame] for frame in named}
    ends = {
        joint
        for joint in joints.values()
        if not any(joint != other and joint in tree.supports(other) for other in joints.values())
    }
    arms = [
        min(
            (frame for frame in named if joints[frame] == end),
            key=lambda frame: (named[frame], tree.depth(frame)),
        )
        for end in sorted(ends)
        if len(tree.way(end)) >= _MIN_ARM_JOINTS
    ]
    if len(arms) > 1:
        raise _several_arms(source, arms)
    best = min(named, key=lambda frame: (named[frame], -joints[frame], tree.depth(frame)))
    return FlangeChoice(best, tree.way(joints[best]), _REASONS[named[best]])


def _several_arms(source: str, frames: Sequence[str]) -> InvalidRobot:
    return InvalidRobot(
        f"{source} has several arms; name the flange of one of them: {_options(frames)}"
    )


def _options(frames: Iterable[str]) -> str:
    return ", ".join(f"`flange='{name}'`" for name in frames)


class _Tree:
    """Joints, links and frames of a URDF, by what their names say."""

    def __init__(self, root: ET.Element, model: pin.Model) -> None:
        self.model = model
        self.names = list(model.names)
        self.parents = list(model.parents)
        self.children: dict[str, list[tuple[str, str]]] = {}  # joint and link, by parent link
        self.parent_link: dict[str, str] = {}
        self.movable: dict[str, ET.Element] = {}
        for joint in root.findall("joint"):
            name = joint.get("name", "")
            parent = _link(joint, "parent")
            child = _link(joint, "child")
            self.children.setdefault(parent, []).append((name, child))
            self.parent_link[child] = parent
            if name in self.names:
                self.movable[name] = joint
        self.grippers = self._gripper_joints()
        self.frame_joints = {
            frame.name: int(frame.parentJoint)
            for frame in model.frames
            if frame.type == pin.FrameType.BODY
        }

    def supports(self, joint: int) -> tuple[int, ...]:
        """Numbers of the joints from the base to a joint, itself included."""
        return tuple(self.model.supports[joint])[1:]

    def way(self, joint: int) -> tuple[str, ...]:
        """Names of the joints from the base to a joint."""
        return tuple(self.names[i] for i in self.supports(joint))

    def joint_of_frame(self, name: str) -> int | None:
        """Number of the joint that carries a frame of any kind; None where there is none."""
        if name in self.frame_joints:
            return self.frame_joints[name]
        return next((int(f.parentJoint) for f in self.model.frames if f.name == name), None)

    def depth(self, frame: str) -> int:
        """Number of joints of any kind between a link and the base, held ones included."""
        count = 0
        while frame in self.parent_link:
            frame = self.parent_link[frame]
            count += 1
        return count

    def named_frames(self) -> dict[str, _FrameRank]:
        """Links whose names say flange, end effector or tool, on chains without a gripper joint."""
        found = {}
        longest = max((len(self._arm_way(joint)) for joint in range(1, len(self.names))), default=0)
        for frame, joint in self.frame_joints.items():
            meaning = _meaning(frame)
            way = self.way(joint)
            if meaning is None or len(way) < min(_MIN_ARM_JOINTS, longest) or not way:
                continue
            if not self.grippers.intersection(way):
                found[frame] = meaning
        return found

    def ends(self) -> list[str]:
        """The last link of each chain that is as long as an arm, or of the longest one."""
        leaves = [i for i in range(1, len(self.names)) if not self._followers(i)]
        leaves = [i for i in leaves if self.names[i] not in self.grippers]
        arms = [i for i in leaves if len(self.way(i)) >= _MIN_ARM_JOINTS]
        return [self.end_of(i) for i in arms or leaves]

    def longest(self, source: str) -> int:
        """The last joint of the arm, where the way goes on where most joints follow."""
        after = [0] * len(self.names)
        for i in range(len(self.names) - 1, 0, -1):
            after[i] += self.names[i] not in self.grippers
            after[self.parents[i]] = max(after[self.parents[i]], after[i])
        at = 0
        while branches := sorted(self._followers(at), key=lambda i: -after[i]):
            most = after[branches[0]]
            equal = [i for i in branches if after[i] == most]
            if len(equal) > 1 and most >= _MIN_ARM_JOINTS:
                raise _several_arms(source, self.ends())
            if len(equal) > 1 and at:
                return at
            at = branches[0]
        return at

    def end_of(self, joint: int) -> str:
        """The last link behind a joint before fixed joints branch or a gripper follows."""
        if joint == 0:
            return str(self.model.frames[-1].name)
        link = _link(self.movable[self.names[joint]], "child")
        while True:
            following = self.children.get(link, [])
            if any(name in self.movable for name, _ in following):
                return link
            onwards = [child for _, child in following if not _words(child) & _SENSORS]
            if len(onwards) != 1 or _words(onwards[0]) & _GRIPPER_LINKS:
                return link
            link = onwards[0]

    def _followers(self, joint: int) -> list[int]:
        """Joints of the arm that follow a joint."""
        return [
            i
            for i in range(1, len(self.names))
            if self.parents[i] == joint and self.names[i] not in self.grippers
        ]

    def _arm_way(self, joint: int) -> tuple[str, ...]:
        return tuple(name for name in self.way(joint) if name not in self.grippers)

    def _gripper_joints(self) -> set[str]:
        """Joints that mimic, are mimicked, or are named so, and that only such joints follow."""
        mimics = {
            name: mimic.get("joint", "")
            for name, joint in self.movable.items()
            if (mimic := joint.find("mimic")) is not None
        }
        wanted = {*mimics, *mimics.values()}
        wanted |= {name for name, joint in self.movable.items() if _is_gripper(name, joint)}
        found: set[str] = set()
        for i in range(len(self.names) - 1, 0, -1):
            following = {self.names[k] for k in range(1, len(self.names)) if self.parents[k] == i}
            if self.names[i] in wanted and following <= found:
                found.add(self.names[i])
        if len(found) == len(self.movable):
            return {name for name in found if name in mimics}
        return found


def _meaning(frame: str) -> _FrameRank | None:
    """What the name of a link says; None where it names neither flange nor tool."""
    words = _words(frame)
    if words & (_SENSORS - {"ft"}) or words & _GRIPPER_LINKS:
        return None
    if frame == "tool0":
        return _FrameRank.TOOL0
    if "flange" in words or "tool0" in words or _FRANKA_FLANGE.search(frame):
        return _FrameRank.FLANGE
    if {"end", "effector"} <= words or words & {"ee", "eef", "endeffector"}:
        return _FrameRank.END_EFFECTOR
    if words & {"tool", "tcp"}:
        return _FrameRank.TOOL
    return None


def _is_gripper(name: str, joint: ET.Element) -> bool:
    """Whether the name of a joint, or that of the link it moves, says that it is in a gripper."""
    words = _words(name)
    if words & _WRIST and not words & _GRIPPER_LINKS:
        return False
    return bool(words & _GRIPPER_JOINTS or _words(_link(joint, "child")) & _GRIPPER_LINKS)


def _words(name: str) -> set[str]:
    """The words in a name, in lower case: of 'moving_jawTip1' moving, jaw, tip1 and tip."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    words = {word.lower() for word in re.split(r"[^A-Za-z0-9]+", spaced) if word}
    return words | {word.rstrip("0123456789") for word in words}


def _link(joint: ET.Element, end: str) -> str:
    element = joint.find(end)
    if element is None:
        return ""
    return element.get("link", "")
