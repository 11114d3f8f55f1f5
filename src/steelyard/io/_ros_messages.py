"""The messages in a ROS 2 bag, without ROS: which topics there are, and two kinds of message as arrays.

A bag is a folder with metadata.yaml, or one of its files (.db3, .mcap). The package `rosbags` reads
the bytes. The two kinds (sensor_msgs/JointState, geometry_msgs/WrenchStamped) are the same in every
ROS 2.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._arrays import Array
from steelyard.errors import MissingExtra, SteelyardError, UnreadableFile

Integers = NDArray[np.int64]

JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH = "geometry_msgs/msg/WrenchStamped"
TEXT = "std_msgs/msg/String"

_KINDS = ("position", "velocity", "effort")


@dataclass(frozen=True, eq=False)
class _Messages:
    """The messages of a topic; their times are whole numbers, in nanoseconds since an epoch.

    Attributes:
        topic: its name
        header: when the N messages were made, as their headers say, (N,) [ns]; 0 where nobody
            filled it in
        received: when the recorder got them, (N,) [ns]
    """

    topic: str
    header: Integers
    received: Integers

    def __len__(self) -> int:
        return len(self.header)

    def unstamped(self, rows: Integers | None = None) -> bool:
        """Whether nobody filled in the headers of some messages, or of all."""
        return not (self.header if rows is None else self.header[rows]).any()


@dataclass(frozen=True, eq=False)
class JointStates(_Messages):
    """The messages of a JointState topic as they came.

    Attributes:
        orders: the lists of joints that messages have
        which: which of these lists each message has, (N,)
        values: of 'position', 'velocity' and 'effort' the numbers of all messages one after the
            other, and how many each has, (N,); a message may lack them
    """

    orders: Sequence[tuple[str, ...]]
    which: Integers
    values: Mapping[str, tuple[Array, Integers]]

    def sets(self) -> dict[tuple[str, ...], int]:
        """How many messages there are of each set of joints, whatever their order."""
        counts: dict[frozenset[str], int] = {}
        first: dict[frozenset[str], tuple[str, ...]] = {}
        for k, names in enumerate(self.orders):
            key = frozenset(names)
            first.setdefault(key, names)
            counts[key] = counts.get(key, 0) + int((self.which == k).sum())
        return {first[key]: count for key, count in counts.items()}

    def column(self, kind: str, joints: Sequence[str], rows: Integers) -> Array | None:
        """A signal of some joints in some messages, (N, n); NaN where a message lacks it, None where all do.

        Args:
            kind: 'position', 'velocity' or 'effort'
            rows: numbers of the messages
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
        frames: the frames that the headers name
        values: force and torque, (N, 6) [N, Nm]
    """

    frames: frozenset[str]
    values: Array


@dataclass(frozen=True, eq=False)
class Bag:
    """An open bag.

    Attributes:
        place: the path, for messages
        reader: of the package rosbags
        store: the kinds of message it knows
    """

    place: str
    reader: Any
    store: Any

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of message of each topic, as 'sensor_msgs/msg/JointState'."""
        return {c.topic: c.msgtype for c in self.reader.connections}

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator[Bag]:
        """The open bag (a folder or a file); what its damaged bytes make the reader say becomes one line."""
        try:
            from rosbags.rosbag2 import Reader
            from rosbags.typesys import Stores, get_typestore
        except ImportError as error:
            raise MissingExtra("rosbags", "io") from error
        try:
            with Reader(path) as reader:
                yield cls(str(path), reader, get_typestore(Stores.LATEST))
        except (SteelyardError, GeneratorExit, KeyboardInterrupt):
            raise
        except (
            Exception
        ) as error:  # damaged bytes: the reader fails with whatever its parsers meet first
            reason = " ".join(str(error).split()) or type(error).__name__
            raise UnreadableFile(
                f"{path}: the bag is damaged or was not finished by its recorder ({reason});"
                " copy it again, or repair it where ROS is (ros2 bag reindex, mcap recover)"
            ) from error

    def topics(self, kind: str) -> list[str]:
        """Names of the topics with one kind of message, as 'sensor_msgs/msg/JointState'."""
        return sorted(topic for topic, own in self.kinds.items() if own == kind)

    def messages(self, topic: str) -> Iterator[tuple[int, Any]]:
        """When the recorder got each message of a topic [ns], and the message."""
        connections = [c for c in self.reader.connections if c.topic == topic]
        for connection, received, data in self.reader.messages(connections):
            yield received, self.store.deserialize_cdr(data, connection.msgtype)

    def joint_states(self, topic: str) -> JointStates:
        """Every message of a JointState topic."""
        header = []
        received = []
        which = []
        orders: dict[tuple[str, ...], int] = {}
        flat = {kind: array("d") for kind in _KINDS}
        length: dict[str, list[int]] = {kind: [] for kind in _KINDS}
        for when, message in self.messages(topic):
            header.append(_nanoseconds(message))
            received.append(when)
            names = tuple(message.name)
            which.append(orders.setdefault(names, len(orders)))
            for kind in _KINDS:
                numbers = getattr(message, kind)
                if len(numbers) not in (0, len(names)):
                    raise UnreadableFile(
                        f"{self.place}: message {len(which)} of {topic} names {len(names)} joints,"
                        " but has"
                        f" {len(numbers)} values of {kind}; is its publisher broken?"
                    )
                flat[kind].frombytes(numbers.tobytes())
                length[kind].append(len(numbers))
        self._require_messages(topic, len(which))
        values = {kind: (np.array(flat[kind]), np.array(length[kind])) for kind in _KINDS}
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

    def announced(self, topic: str) -> int:
        """How many messages of a topic the bag says that it has."""
        return sum(int(c.msgcount) for c in self.reader.connections if c.topic == topic)

    def _require_messages(self, topic: str, count: int) -> None:
        if count == 0:
            raise UnreadableFile(
                f"{self.place}: {topic} has no messages; nothing was recorded on it"
            )


def _nanoseconds(message: Any) -> int:
    stamp = message.header.stamp
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)
