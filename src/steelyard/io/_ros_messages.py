"""Messages in ROS bags, read without ROS: topics, joint states and wrenches as arrays.

A bag of ROS 2 is a folder with metadata.yaml, or one of its files (.db3, .mcap); a bag of ROS 1 is
a file (.bag). The package `rosbags` reads the bytes. Both kinds (sensor_msgs/JointState,
geometry_msgs/WrenchStamped) are the same in all versions of ROS, apart from their encoding.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._arrays import Array
from steelyard._saved import parsing
from steelyard.errors import MissingExtra, UnreadableFile

Integers = NDArray[np.int64]

JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH = "geometry_msgs/msg/WrenchStamped"
TEXT = "std_msgs/msg/String"
NUMBERS = tuple(
    f"std_msgs/msg/{name}"
    for name in (
        *("Bool", "Byte", "Char", "Float32", "Float64"),
        *("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
    )
)
"""Kinds of messages with one number, which may be the state of a gripper."""

_JOINT_STATE_FIELDS = ("position", "velocity", "effort")


@dataclass(frozen=True, eq=False)
class _Messages:
    """The messages of a topic; their times are whole numbers, in nanoseconds since an epoch.

    Attributes:
        topic: its name
        header: stamps in the headers of the N messages, (N,) [ns]; 0 where not set
        received: times at which the recorder received them, (N,) [ns]
    """

    topic: str
    header: Integers
    received: Integers

    def __len__(self) -> int:
        return len(self.header)

    def unstamped(self, rows: Integers | None = None) -> bool:
        """Whether the stamps of some messages (all by default) are not set."""
        return not (self.header if rows is None else self.header[rows]).any()


@dataclass(frozen=True, eq=False)
class JointStates(_Messages):
    """The messages of a JointState topic in their order.

    Attributes:
        orders: the different lists of joint names
        which: index of the list of each message, (N,)
        values: for 'position', 'velocity' and 'effort', the concatenated numbers of all messages,
            and their count in each message, (N,), which may be 0
    """

    orders: Sequence[tuple[str, ...]]
    which: Integers
    values: Mapping[str, tuple[Array, Integers]]

    def renamed(self, alias: Mapping[str, str]) -> JointStates:
        """The messages with other names for some of the joints.

        Args:
            alias: new names by those in the messages
        """
        orders = [tuple(alias.get(name, name) for name in names) for names in self.orders]
        return replace(self, orders=orders)

    def sets(self) -> dict[tuple[str, ...], int]:
        """The number of messages for each set of joints, in any order."""
        counts: dict[frozenset[str], int] = {}
        first: dict[frozenset[str], tuple[str, ...]] = {}
        for k, names in enumerate(self.orders):
            key = frozenset(names)
            first.setdefault(key, names)
            counts[key] = counts.get(key, 0) + int((self.which == k).sum())
        return {first[key]: count for key, count in counts.items()}

    def positions_of(self, joint: str) -> NumberMessages | None:
        """The positions of one joint in all messages that have it; None if none does."""
        having = np.array([joint in names for names in self.orders])
        rows = np.flatnonzero(having[self.which])
        if not rows.size:
            return None
        q = self.column("position", [joint], rows)
        if q is None:
            return None
        order = np.argsort(self.received[rows], kind="stable")
        return NumberMessages(self.topic, self.received[rows][order], q[order, 0])

    def column(self, kind: str, joints: Sequence[str], rows: Integers) -> Array | None:
        """A signal of joints in messages, (N, n); NaN where a message lacks it, None if all do.

        Args:
            kind: 'position', 'velocity' or 'effort'
            joints: names in the order of the columns
            rows: indices of the messages, (N,)
        """
        numbers, length = self.values[kind]
        start = (np.cumsum(length) - length)[rows]
        there = length[rows] > 0
        out = np.full((len(rows), len(joints)), np.nan)
        for k, names in enumerate(self.orders):
            chosen = there & (self.which[rows] == k)
            if chosen.any():
                places = np.array([names.index(joint) for joint in joints])
                out[chosen] = numbers[start[chosen, None] + places]
        if np.isnan(out).all():
            return None
        return out


@dataclass(frozen=True, eq=False)
class Wrenches(_Messages):
    """The messages of a WrenchStamped topic.

    Attributes:
        frames: names of frames in the headers
        values: force and torque, (N, 6) [N, Nm]
    """

    frames: frozenset[str]
    values: Array


@dataclass(frozen=True, eq=False)
class NumberMessages:
    """The messages of a topic with one number each.

    Attributes:
        topic: its name
        received: times at which the recorder received them, (N,) [ns], in the order of time
        values: the numbers, (N,)
    """

    topic: str
    received: Integers
    values: Array

    def last_before(self, received: Integers) -> Array:
        """The last number before each time of reception, (N,); NaN before the first one."""
        place = np.searchsorted(self.received, received, side="right") - 1
        return np.where(place >= 0, self.values[np.maximum(place, 0)], np.nan)


@dataclass(frozen=True, eq=False)
class Bag:
    """An open bag.

    Attributes:
        place: the path, for messages
        reader: of the package rosbags
        store: known types of messages
        of_ros1: whether it is of ROS 1, which encodes messages otherwise
    """

    place: str
    reader: Any
    store: Any
    of_ros1: bool = False

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of message of each topic, as 'sensor_msgs/msg/JointState'."""
        return {c.topic: c.msgtype for c in self.reader.connections}

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator[Bag]:
        """The open bag, a folder or a file; failures of its reader become one error."""
        try:
            from rosbags.rosbag1 import Reader as Ros1Reader
            from rosbags.rosbag2 import Reader as Ros2Reader
            from rosbags.typesys import Stores, get_typestore
        except ImportError as error:
            raise MissingExtra.of("rosbags", "io") from error
        of_ros1 = path.suffix.lower() == ".bag"
        make: Any = Ros1Reader if of_ros1 else Ros2Reader
        store = get_typestore(Stores.ROS1_NOETIC if of_ros1 else Stores.LATEST)
        fault = f"{path}: the bag is damaged or its recorder did not finish it"
        advice = (
            "copy it again, or repair it with the tools of ROS (ros2 bag reindex, mcap recover,"
            " rosbag reindex)"
        )
        with parsing(fault, advice), make(path) as reader:
            yield cls(str(path), reader, store, of_ros1=of_ros1)

    def topics(self, kind: str) -> list[str]:
        """Names of the topics with one kind of message, as 'sensor_msgs/msg/JointState'."""
        return sorted(topic for topic, own in self.kinds.items() if own == kind)

    def messages(self, topic: str) -> Iterator[tuple[int, Any]]:
        """Time of reception [ns] and content of each message of a topic."""
        connections = [c for c in self.reader.connections if c.topic == topic]
        decode = self.store.deserialize_ros1 if self.of_ros1 else self.store.deserialize_cdr
        for connection, received, data in self.reader.messages(connections):
            yield received, decode(data, connection.msgtype)

    def joint_states(self, topic: str) -> JointStates:
        """Every message of a JointState topic."""
        header = []
        received = []
        which = []
        orders: dict[tuple[str, ...], int] = {}
        flat = {kind: array("d") for kind in _JOINT_STATE_FIELDS}
        length: dict[str, list[int]] = {kind: [] for kind in _JOINT_STATE_FIELDS}
        for when, message in self.messages(topic):
            header.append(_nanoseconds(message))
            received.append(when)
            names = tuple(message.name)
            which.append(orders.setdefault(names, len(orders)))
            for kind in _JOINT_STATE_FIELDS:
                numbers = getattr(message, kind)
                if len(numbers) not in (0, len(names)):
                    raise UnreadableFile(
                        f"{self.place}: message {len(which)} of {topic} names {len(names)} joints"
                        f" but has {len(numbers)} values of {kind}; check its publisher"
                    )
                flat[kind].frombytes(numbers.tobytes())
                length[kind].append(len(numbers))
        self._require_messages(topic, len(which))
        values = {
            kind: (np.array(flat[kind]), np.array(length[kind])) for kind in _JOINT_STATE_FIELDS
        }
        return JointStates(
            topic, np.array(header), np.array(received), list(orders), np.array(which), values
        )

    def wrenches(self, topic: str) -> Wrenches:
        """Every message of a WrenchStamped topic."""
        header = []
        received = []
        rows = []
        frames = set()
        for when, message in self.messages(topic):
            header.append(_nanoseconds(message))
            received.append(when)
            frames.add(message.header.frame_id)
            parts = (message.wrench.force, message.wrench.torque)
            rows.append([getattr(part, axis) for part in parts for axis in "xyz"])
        self._require_messages(topic, len(rows))
        return Wrenches(
            topic,
            np.array(header),
            np.array(received),
            frozenset(frames),
            np.array(rows, dtype=float),
        )

    def numbers(self, topic: str) -> NumberMessages:
        """Every message of a topic with one number each."""
        found = [(received, float(message.data)) for received, message in self.messages(topic)]
        self._require_messages(topic, len(found))
        found.sort()
        return NumberMessages(
            topic,
            np.array([received for received, _ in found]),
            np.array([value for _, value in found]),
        )

    def announced(self, topic: str) -> int:
        """The number of messages of a topic according to the bag's own index."""
        return sum(int(c.msgcount) for c in self.reader.connections if c.topic == topic)

    def _require_messages(self, topic: str, count: int) -> None:
        if count == 0:
            raise UnreadableFile(
                f"{self.place}: {topic} has no messages; nothing was recorded on it"
            )


def _nanoseconds(message: Any) -> int:
    stamp = message.header.stamp
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)
