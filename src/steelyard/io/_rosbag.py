"""Recordings in ROS bags: sensor_msgs/JointState, and geometry_msgs/WrenchStamped beside it.

    read("bag", columns={"tau": "effort"}, joint_names=robot.joint_names)
    read("bag.mcap", columns={"q": "/arm/joint_states", "current": "effort"})
    read("bag", columns={"tau": [], "wrench": "/ft"}, wrench_convention="load_on_sensor")
    read("bag", columns={"tau": "effort", "gripper": "/gripper/closed"})

The argument `columns` provides facts that a bag does not contain. `q` is a topic; a single
JointState topic needs no name. ROS defines `effort` as a torque, but drivers publish other values
there, too: the caller names it `tau` (torque) or `current`; it is never guessed. A Universal Robots
arm never publishes its torque there: it is the motor current with older drivers and with
`use_currents_as_efforts`, otherwise RTDE's `actual_current_as_torque`, from which the controller
has subtracted gravity, of its configured payload too.

Joints are matched by name. A message has them in the order of its publisher, often alphabetical:
`joint_names` selects and orders them. Messages of other joints on the same topic (of a gripper) are
left out and counted.

Times are the stamps in the headers, when the state was measured, not when it was received. A
wrench has its own stamps: each row gets the wrench nearest in time. Interpolation would reduce its
noise. A gripper is a topic of one number (std_msgs/Bool, Float64 and the like), which has no stamp,
or a joint of the JointState topic: each row gets the last state that was received before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidRecording, UnclearEffort, UnknownName, UnreadableFile
from steelyard.io._ros_messages import (
    JOINT_STATE,
    NUMBERS,
    TEXT,
    WRENCH,
    Bag,
    Integers,
    JointStates,
    NumberMessages,
    Wrenches,
)
from steelyard.recording import Recording
from steelyard.recording._columns import EFFORT_IS_TORQUE, REFUSED, Requested
from steelyard.recording._joints import joints_by_prefix
from steelyard.recording._notes import Note, NoteKind

_KNOWN = {
    "q": "a topic",
    "v": "'velocity'",
    "tau": "'effort'",
    "current": "'effort'",
    "wrench": "a topic",
    "gripper": "a topic or a joint",
}
_FIELDS = {"v": "velocity", "tau": "effort", "current": "effort"}
_CURRENT_AS_TORQUE = "actual_current_as_torque"
UR_JOINTS = (
    "shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint",
    "wrist_1_joint", "wrist_2_joint", "wrist_3_joint",
)  # fmt: skip
"""Joints of a UR from the base outwards; messages often have them sorted by name."""

_UR_SWITCH = re.compile(r"""name\s*=\s*["']use_currents_as_efforts["']\s*>\s*(\w*)\s*<""")
_MAX_LATE_NS = 500_000_000  # [ns] of messages out of order; more means that a clock was set


@dataclass(frozen=True)
class EffortChoice:
    """The caller's choices for JointState messages; None if not stated, empty if left out.

    Attributes:
        place: bag or bridge, for messages
        topic: of the joints
        effort: 'tau' or 'current'
        velocity: whether it is read
        wrench: its topic
        gripper: its topic, or its joint
        effort_is_torque: whether the user vouches for a torque where a driver publishes none
    """

    place: str
    topic: str | None
    effort: str | None
    velocity: bool
    wrench: str | None
    effort_is_torque: bool = False
    gripper: str | None = None

    @classmethod
    def of(cls, requested: Requested, place: str) -> EffortChoice:
        """The choices in the caller's statements, checked.

        Args:
            requested: statements of the caller
            place: bag or bridge, for messages
        """
        columns = {
            name: _one_word(name, wanted, place) for name, wanted in requested.columns.items()
        }
        trusted = columns.get("tau") == EFFORT_IS_TORQUE
        if trusted:
            columns["tau"] = "effort"
        for name, word in columns.items():
            if word == _CURRENT_AS_TORQUE:
                raise UnreadableFile(f"{place}: {word} cannot serve as {name}: {REFUSED[word]}")
            if word and name in _FIELDS and word != _FIELDS[name]:
                raise UnknownName(
                    f"{place}: {name} of a bag is {_KNOWN[name]} of a JointState, got '{word}'"
                )
        if requested.degrees:
            raise UnreadableFile(
                f"{place}: a JointState is in radians (REP 103); do not give `degrees`"
            )
        said = [name for name in ("tau", "current") if columns.get(name)]
        if len(said) > 1:
            raise UnreadableFile(f"{place}: effort cannot be both tau and current; name one")
        if "tau" in columns or "current" in columns:
            silent = ""
        else:
            silent = None
        effort = said[0] if said else silent
        velocity = columns.get("v", "velocity") != ""
        return cls(
            place,
            columns.get("q"),
            effort,
            velocity,
            columns.get("wrench"),
            trusted,
            columns.get("gripper") or None,
        )

    def refusal(self, words: str) -> UnreadableFile:
        """An error that names the place."""
        return UnreadableFile(f"{self.place}: {words}")

    def require_effort_named(self, topic: str, *, there: bool, how: str) -> None:
        """Raises an error for an effort without a stated meaning, or one that is missing.

        Args:
            topic: of the messages
            there: whether they have an effort
            how: to state the meaning, for the message
        """
        if not there and self.effort:
            raise self.refusal(f"{topic} has no effort; nothing can be read as {self.effort}")
        if there and self.effort is None:
            raise UnclearEffort(
                f"{self.place}: {topic} has an effort, which is a torque or a current depending on"
                f" the driver; give {how}"
            )

    def require_usable_effort(
        self, topic: str, orders: Sequence[Sequence[str]], descriptions: Sequence[str]
    ) -> list[str]:
        """Raises an error where the effort of a UR is not the stated signal.

        Args:
            topic: of the messages
            orders: names of joints, as messages have them
            descriptions: of the robot (URDF), where there are any

        Returns:
            notes
        """
        if _CURRENT_AS_TORQUE in topic:
            raise self.refusal(
                f"{topic} cannot serve as {self.effort}: {REFUSED[_CURRENT_AS_TORQUE]}"
            )
        if not any(is_ur(names) for names in orders):
            return []
        if self.effort == "tau" and self.effort_is_torque:
            words = (
                "the effort of a Universal Robots arm was read as a torque because the user vouches"
                " for it; its drivers do not publish torques there"
            )
            return [Note(words, NoteKind.TRUSTED)]
        if self.effort == "tau":
            raise self.refusal(
                "these are the joints of a Universal Robots arm, whose effort is never the joint"
                f" torque: it is {_CURRENT_AS_TORQUE} (the controller subtracts gravity of the arm"
                " and of its configured payload) or, with use_currents_as_efforts:=true, the motor"
                " current; record the current and read it with `columns={'current': 'effort'}`; if"
                " your driver does publish torques, state"
                f" `columns={{'tau': '{EFFORT_IS_TORQUE}'}}`"
            )
        switches = {match.lower() for text in descriptions for match in _UR_SWITCH.findall(text)}
        if switches and switches != {"true"}:
            raise self.refusal(
                "its robot_description says that use_currents_as_efforts is off: the effort is"
                f" {_CURRENT_AS_TORQUE}, and {REFUSED[_CURRENT_AS_TORQUE]}; record with"
                " use_currents_as_efforts:=true"
            )
        if switches:
            return []
        return [
            "the effort of a UR is a current only with use_currents_as_efforts:=true or an old"
            " driver; the bag does not show whether this is the case"
        ]


def read_bag(path: Path, requested: Requested) -> Recording:
    """The recording in a ROS bag."""
    return _Reader(path, requested).recording()


class _Reader:
    """Reads one bag; notes describe its decisions."""

    def __init__(self, path: Path, requested: Requested) -> None:
        self.path = path
        self.place = str(path)
        self.requested = requested.of_foreign
        self.choice = EffortChoice.of(self.requested, self.place)
        self.refusal = self.choice.refusal
        self.notes: list[str] = []

    def recording(self) -> Recording:
        with Bag.opened(self.path) as bag:
            topic = self.topic(bag, JOINT_STATE, self.choice.topic, "q")
            states = bag.joint_states(topic)
            if (said := bag.announced(topic)) != (found := len(states)):
                self.notes.append(
                    f"incomplete: the index of the bag lists {said} messages of {topic}, but"
                    f" {found} exist"
                )
            wrenches = self.wrenches(bag)
            gripper = self.gripper(bag, states)
            described = [name for name in bag.topics(TEXT) if "robot_description" in name]
            descriptions = [_first_text(bag, name) for name in described]
        states, joints, rows = self.joints(states)
        by_receipt = states.unstamped(rows) or (wrenches is not None and wrenches.unstamped())
        if by_receipt:
            self.notes.append("stamps are zero: times are those of reception, delays included")
        rows, clock_ns = self.clock(states, rows, by_receipt=by_receipt)
        facts: dict[str, Any] = {**self.signals(states, joints, rows)}
        if "tau" in facts or "current" in facts:
            self.notes += self.choice.require_usable_effort(
                states.topic, states.orders, descriptions
            )
        if wrenches is not None:
            facts["wrench"] = self.nearest(wrenches, clock_ns, by_receipt=by_receipt)
            facts |= self.wrench_facts(wrenches, joints)
        if gripper is not None:
            facts["gripper"] = gripper.last_before(states.received[rows])[:, None]
        facts |= {"joint_names": joints, "source": self.path.name, "epoch_s": clock_ns[0] / 1e9}
        try:
            return Recording(t=(clock_ns - clock_ns[0]) / 1e9, notes=self.notes, **facts)
        except InvalidRecording as error:
            raise self.refusal(str(error)) from error

    def topic(self, bag: Bag, kind: str, wanted: str | None, channel: str) -> str:
        """The topic to read; noted if the caller has not named it."""
        there = bag.topics(kind)
        short = kind.rsplit("/", 1)[-1]
        held = (
            ", ".join(f"{topic} ({own})" for topic, own in sorted(bag.kinds.items())) or "nothing"
        )
        if wanted is not None:
            if bag.kinds.get(wanted) != kind:
                raise UnknownName(
                    f"{self.place}: there is no {short} topic '{wanted}'; the bag holds {held}"
                )
            return wanted
        if not there:
            raise self.refusal(f"no topic holds {kind}; the bag holds {held}")
        if len(there) > 1:
            raise self.refusal(
                f"{len(there)} topics hold {short}: {', '.join(there)};"
                f" choose one with `columns={{'{channel}': '{there[0]}'}}`"
            )
        self.notes.append(f"{channel} is from {there[0]}, the only {short} topic")
        return there[0]

    def wrenches(self, bag: Bag) -> Wrenches | None:
        asked = (
            self.requested.wrench_frame is not None or self.requested.wrench_convention is not None
        )
        if self.choice.wrench == "" or (self.choice.wrench is None and not asked):
            there = bag.topics(WRENCH)
            self.notes += [f"not read: the wrench on {', '.join(there)}"] if there else []
            return None
        if self.requested.wrench_convention is None:
            raise self.refusal(
                "a WrenchStamped does not state its sign; give `wrench_convention`"
                " ('load_on_sensor' or 'sensor_on_load')"
            )
        return bag.wrenches(self.topic(bag, WRENCH, self.choice.wrench, "wrench"))

    def gripper(self, bag: Bag, states: JointStates) -> NumberMessages | None:
        """The states of the gripper; None where it is not requested."""
        wanted = self.choice.gripper
        if wanted is None:
            return None
        if bag.kinds.get(wanted) in NUMBERS:
            found: NumberMessages | None = bag.numbers(wanted)
        else:
            found = states.positions_of(wanted)
        if found is None:
            topics = sorted(topic for topic, kind in bag.kinds.items() if kind in NUMBERS)
            joints = sorted({name for names in states.orders for name in names})
            raise UnknownName(
                f"{self.place}: no gripper '{wanted}': it is neither a topic of one number"
                f" ({', '.join(topics) or 'there are none'}) nor a joint of {states.topic}"
                f" ({', '.join(joints)})"
            )
        self.notes.append(f"the gripper is {wanted}; each row has its last state before")
        return found

    def alias(self, joints: Sequence[str], sets: Sequence[tuple[str, ...]]) -> Mapping[str, str]:
        """The wanted name of each joint of the messages, where names differ by a prefix."""
        if any(set(joints) <= set(names) for names in sets):
            return {}
        found = [same for names in sets if (same := joints_by_prefix(names, joints))]
        if len(found) != 1:
            return {}
        pairs = ", ".join(f"{theirs} is {mine}" for mine, theirs in found[0].items())
        self.notes.append(f"joints are called by the names of the arm: {pairs}")
        return {theirs: mine for mine, theirs in found[0].items()}

    def joints(self, states: JointStates) -> tuple[JointStates, tuple[str, ...], Integers]:
        """The messages, their joints in order, and the indices of those that have all of them."""
        wanted = self.requested.joint_names
        sets = states.sets()
        there = "; ".join(f"{', '.join(names)} ({count} messages)" for names, count in sets.items())
        if any(len(set(names)) < len(names) or not names for names in states.orders):
            raise self.refusal(f"messages of {states.topic} name a joint twice or none: {there}")
        if not wanted and len(sets) > 1:
            raise self.refusal(
                f"the messages of {states.topic} are about different joints: {there};"
                " choose joints, in the order of the arm, with `joint_names`"
            )
        joints = tuple(wanted) or states.orders[0]
        alias = self.alias(joints, list(sets))
        states = states.renamed(alias)
        complete = np.array([set(joints) <= set(names) for names in states.orders])
        rows = np.flatnonzero(complete[states.which])
        if not rows.size:
            raise self.refusal(
                f"no message of {states.topic} has all of {', '.join(joints)}; there are {there}."
                " Name the joints in the order of the arm with"
                f" `joint_names={_similar_names(joints, list(sets))}`"
            )
        left = len(states) - len(rows)
        self.notes += (
            [f"left out {left} messages of {states.topic} about other joints"] if left else []
        )
        self.notes += (
            [] if wanted else [f"joints are in the order of the messages: {', '.join(joints)}"]
        )
        return states, joints, rows

    def clock(
        self, messages: JointStates | Wrenches, rows: Integers, *, by_receipt: bool
    ) -> tuple[Integers, Integers]:
        """The messages in the order of time, and their times, (N,) [ns]."""
        if by_receipt:
            return rows, messages.received[rows]
        topic = messages.topic
        named = messages.header[rows] != 0
        if not named.all():
            self.notes.append(f"left out {np.sum(~named)} messages of {topic} with a stamp of zero")
            rows = rows[named]
        ns = messages.header[rows]
        late = int((np.maximum.accumulate(ns) - ns).max())
        if late > _MAX_LATE_NS:
            raise self.refusal(
                f"the stamps of {topic} go back by {late / 1e9:.3f} s; a clock was set,"
                " or two publishers differ; split the bag there"
            )
        if late:
            self.notes.append(
                f"messages of {topic} were out of order by up to {late / 1e6:.3g} ms; sorted"
            )
        order = np.argsort(ns, kind="stable")
        return rows[order], ns[order]

    def signals(
        self, states: JointStates, joints: Sequence[str], rows: Integers
    ) -> dict[str, Array]:
        choice = self.choice
        q = states.column("position", joints, rows)
        if choice.velocity:
            v = states.column("velocity", joints, rows)
        else:
            v = None
        effort = states.column("effort", joints, rows)
        if q is None:
            raise self.refusal(f"{states.topic} has no positions; another topic may have them")
        if v is None or np.isnan(v).all(axis=0).any():
            missing = f"{states.topic} has no velocity of each joint"
            self.notes.append(missing if choice.velocity else "velocity is not read")
        how = (
            "`columns={'tau': 'effort'}` for a torque [Nm], `columns={'current': 'effort'}` for a"
            " motor current [A], or `columns={'tau': []}` to leave it out"
        )
        if is_ur(joints):
            how = (
                "`columns={'current': 'effort'}` (a Universal Robots arm publishes motor currents"
                " [A] with use_currents_as_efforts:=true, and never torques),"
                f" `columns={{'tau': '{EFFORT_IS_TORQUE}'}}` if your driver does publish torques,"
                " or `columns={'tau': []}` to leave it out"
            )
        choice.require_effort_named(states.topic, there=effort is not None, how=how)
        signals = {"q": q}
        if v is not None and not np.isnan(v).all(axis=0).any():
            signals["v"] = v
        if effort is not None and choice.effort:
            signals[choice.effort] = effort
            self.notes.append(f"{choice.effort} is the effort of {states.topic}, as requested")
        return signals

    def nearest(self, wrenches: Wrenches, clock_ns: Integers, *, by_receipt: bool) -> Array:
        """The wrench nearest in time for each row, (N, 6); NaN beyond 1.5 of its steps."""
        order, when = self.clock(wrenches, np.arange(len(wrenches)), by_receipt=by_receipt)
        after = np.searchsorted(when, clock_ns).clip(max=len(when) - 1)
        before = (after - 1).clip(min=0)
        nearer_after = np.abs(when[after] - clock_ns) < np.abs(when[before] - clock_ns)
        index = np.where(nearer_after, after, before)
        apart = np.abs(when[index] - clock_ns)
        steps = np.diff(when)
        if (steps > 0).any():
            reach = 1.5 * np.median(steps[steps > 0])
        else:
            reach = 0.0
        values = wrenches.values[order][index]
        values[apart > reach] = np.nan
        lost = int((apart > reach).sum())
        self.notes.append(
            f"each row has the wrench of {wrenches.topic} nearest in time"
            f" ({np.median(apart) / 1e6:.3g} ms away in the median)"
            + (f"; {lost} rows have none within {reach / 1e6:.3g} ms" if lost else "")
        )
        return values

    def wrench_facts(self, wrenches: Wrenches, joints: Sequence[str]) -> dict[str, Any]:
        named = sorted(wrenches.frames)
        frame = self.requested.wrench_frame or (named[0] if len(named) == 1 else "")
        if not frame:
            raise self.refusal(
                f"the headers of {wrenches.topic} name {len(named)} frames"
                f" ({', '.join(map(repr, named))}) instead of one; give `wrench_frame`"
            )
        if named != [frame]:
            self.notes.append(
                f"the frame of the wrench is {frame}, as requested; its headers name"
                f" {', '.join(named)}"
            )
        if is_ur(joints):
            self.notes.append(
                "if the wrench is the UR driver's own, it is actual_TCP_force:"
                f" {REFUSED['actual_TCP_force']}"
            )
        return {"wrench_frame": frame, "wrench_convention": self.requested.wrench_convention}


def _one_word(name: str, wanted: str | Sequence[str], place: str) -> str:
    if name not in _KNOWN:
        known = ", ".join(f"{channel} ({what})" for channel, what in _KNOWN.items())
        raise UnknownName(f"{place}: a bag gives no channel '{name}'; it gives {known}")
    if isinstance(wanted, str):
        words = [wanted]
    else:
        words = list(wanted)
    if len(words) > 1 or (not words and name == "q"):
        raise UnknownName(f"{place}: {name} of a bag is {_KNOWN[name]}, got {len(words)} names")
    if words:
        return words[0]
    return ""


def _similar_names(joints: Sequence[str], sets: Sequence[tuple[str, ...]]) -> list[str]:
    """The joints of messages whose names end like the wanted ones, as a proposal to the user.

    Args:
        joints: wanted names
        sets: the names in each kind of message
    """
    for names in sets:
        groups = [[name for name in names if name.endswith(x) or x.endswith(name)] for x in joints]
        if all(len(group) == 1 for group in groups) and len({g[0] for g in groups}) == len(joints):
            return [group[0] for group in groups]
    return ["A", "B", "..."]


def is_ur(names: Sequence[str]) -> bool:
    """Whether these are the joints of a Universal Robots arm."""
    return all(any(name.endswith(joint) for name in names) for joint in UR_JOINTS)


def _first_text(bag: Bag, topic: str) -> str:
    return next((str(message.data) for _, message in bag.messages(topic)), "")
