"""The Foxglove WebSocket protocol of `foxglove_bridge`, and rows from its messages; no sockets.

A server identifies itself (`serverInfo`) and lists its channels (`advertise`: a number, a topic and
a kind of message each) and its services. A client subscribes to channels by numbers of its own;
what is published there comes as binary messages: 1, the subscription (uint32), when it was sent
(uint64, ns), the bytes of the message. A call of a service is 2, service, call, length of the
encoding (uint32 each), encoding, request; its answer begins with 3, or is a text
`serviceCallFailure`.

Of the two names of the protocol, bridges from 3.0 on take the first and older ones the second.

A row is a message about all joints. A wrench has stamps of its own: each row has the one nearest in
time, and waits for the next, but never longer than 50 ms; in between the two it would lose part of
its noise.
"""

from __future__ import annotations

import json
import struct
from collections import deque
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, NamedTuple

from steelyard.errors import SourceFailed
from steelyard.io._rosbag import UR_JOINTS, is_ur
from steelyard.live._source import Values

SUBPROTOCOLS = ("foxglove.sdk.v1", "foxglove.websocket.v1")
_MESSAGE = 1
_ANSWER = 3
_CALL = 2  # first byte; a call goes the other way
_DATA_HEAD = struct.Struct("<BIQ")
_CALL_HEAD = struct.Struct("<BIII")
_PUBLISH_HEAD = struct.Struct("<BI")
_PUBLISH = 1  # first byte of a message to the server
_CLIENT_PUBLISH = "clientPublish"  # capability of a server
_CDR = b"cdr"
_SERIOUS = 2  # level of a status that is an error
_LATE_NS = 500_000_000  # a stamp that goes back by less is of a message that was overtaken
_HOLD_NS = 50_000_000  # that a row waits for a wrench at most
_STEPS = 20  # of the wrench, whose median is its step


class Channel(NamedTuple):
    """A topic that a server offers.

    Attributes:
        number: of the channel
        topic: its name
        kind: of its messages, as 'sensor_msgs/msg/JointState'
        encoding: of their bytes
    """

    number: int
    topic: str
    kind: str
    encoding: str


class Service(NamedTuple):
    """What a server can be asked for.

    Attributes:
        number: of the service
        name: as '/io_and_status_controller/set_payload'
        kind: as 'ur_msgs/srv/SetPayload'
        fields: of a request, each as 'float32 mass'
    """

    number: int
    name: str
    kind: str
    fields: tuple[str, ...]


class Message(NamedTuple):
    """What was published.

    Attributes:
        topic: where
        sent_ns: when the server sent it, [ns]
        data: its bytes
    """

    topic: str
    sent_ns: int
    data: bytes


class Bridge:
    """A server as its messages show it.

    Attributes:
        name: of the server; empty before it has said it
        accepts_messages: whether clients may publish
        channels: by topic
        services: by name
        answers: of services, by the number of the call: bytes, or words where it failed
        texts: of the server, errors and warnings, since they were taken
    """

    def __init__(self) -> None:
        self.name = ""
        self.accepts_messages = False
        self.channels: dict[str, Channel] = {}
        self.services: dict[str, Service] = {}
        self.answers: dict[int, bytes | str] = {}
        self.texts: list[str] = []
        self._topics: dict[int, str] = {}  # by subscription
        self._calls = 0
        self._published: dict[str, int] = {}  # channel of each topic that is published

    def receive(self, received: str | bytes) -> Message | None:
        """Takes one message of the server; gives what was published, where it is that.

        Args:
            received: as it came
        """
        try:
            if isinstance(received, bytes):
                return self._binary(received)
            self._text(json.loads(received))
            return None
        except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
            raise SourceFailed("it sends what no Foxglove bridge sends") from error

    def topics(self, kind: str) -> list[str]:
        """The topics with one kind of message, sorted.

        Args:
            kind: as 'sensor_msgs/msg/JointState'
        """
        return sorted(channel.topic for channel in self.channels.values() if channel.kind == kind)

    def subscription(self, topics: Iterable[str]) -> str:
        """What to send for the messages of some topics.

        Args:
            topics: that the server offers
        """
        wanted = []
        for topic in topics:
            number = len(self._topics)
            self._topics[number] = topic
            wanted.append({"id": number, "channelId": self.channels[topic].number})
        return json.dumps({"op": "subscribe", "subscriptions": wanted})

    def call(self, service: Service, request: bytes) -> tuple[int, bytes]:
        """The number of a new call, and what to send for it.

        Args:
            service: that the server offers
            request: its bytes, in CDR
        """
        self._calls += 1
        head = _CALL_HEAD.pack(_CALL, service.number, self._calls, len(_CDR))
        return self._calls, head + _CDR + request

    def publication(self, topic: str, kind: str, message: bytes) -> list[str | bytes]:
        """What to send to publish a message: its topic is announced before the first one.

        Args:
            topic: name of the topic
            kind: kind of the message, as 'geometry_msgs/msg/InertiaStamped'
            message: its bytes, in CDR
        """
        parts: list[str | bytes] = []
        if topic not in self._published:
            number = len(self._published) + 1
            self._published[topic] = number
            channel = {"id": number, "topic": topic, "encoding": "cdr", "schemaName": kind}
            parts.append(json.dumps({"op": "advertise", "channels": [channel]}))
        parts.append(_PUBLISH_HEAD.pack(_PUBLISH, self._published[topic]) + message)
        return parts

    def _binary(self, data: bytes) -> Message | None:
        if data[0] == _ANSWER:
            _, _, call, length = _CALL_HEAD.unpack_from(data)
            self.answers[call] = data[_CALL_HEAD.size + length :]
        if data[0] != _MESSAGE:
            return None
        _, number, sent_ns = _DATA_HEAD.unpack_from(data)
        return Message(self._topics[number], sent_ns, data[_DATA_HEAD.size :])

    def _text(self, content: dict[str, Any]) -> None:
        match content["op"]:
            case "serverInfo":
                self.name = str(content.get("name") or "a bridge")
                self.accepts_messages = _CLIENT_PUBLISH in content.get("capabilities", ())
            case "advertise":
                for item in content["channels"]:
                    kind = str(item["schemaName"])
                    encoding = str(item["encoding"])
                    channel = Channel(int(item["id"]), str(item["topic"]), kind, encoding)
                    self.channels[channel.topic] = channel
            case "unadvertise":
                gone = set(content["channelIds"])
                self.channels = {k: x for k, x in self.channels.items() if x.number not in gone}
            case "advertiseServices":
                for item in content["services"]:
                    self.services[item["name"]] = _service(item)
            case "serviceCallFailure":
                self.answers[int(content["callId"])] = str(content["message"])
            case "status" if int(content["level"]) >= _SERIOUS:
                self.texts.append(str(content["message"]))


def _service(item: dict[str, Any]) -> Service:
    """A service with the fields of its request: the lines before other kinds, without comments."""
    if "requestSchema" in item:
        text = item["requestSchema"]
    else:
        text = (item.get("request") or {}).get("schema", "")
    own = text.split("\n===")[0].splitlines()
    lines = [" ".join(line.split("#")[0].split()) for line in own]
    fields = tuple(line for line in lines if line and "=" not in line)
    return Service(int(item["id"]), str(item["name"]), str(item["type"]), fields)


class StateRows:
    """Messages of the joints: which numbers of them make up a row.

    Args:
        topic: of the messages
        wanted: names of the joints in their order; empty for that of the messages, or of a UR

    Attributes:
        names: of the joints in a row
        fields: of a message that make up a row
        order: of the joints in the first message that has them all; None before it has come
    """

    def __init__(self, topic: str, wanted: Sequence[str]) -> None:
        self.topic = topic
        self.names = tuple(wanted)
        self.fields: tuple[str, ...] = ("position",)
        self.order: list[int] | None = None
        self._orders: dict[tuple[str, ...], list[int] | None] = {}
        self._first: Any = None
        self._last_ns = 0
        self._late = 0
        self._texts: list[str] = []
        self._stamped = True

    def row(self, message: Any, sent_ns: int) -> tuple[int, Values] | None:
        """Time [ns] and numbers of a message; None if it is about other joints or out of order.

        Args:
            message: sensor_msgs/JointState
            sent_ns: when it was sent, for one without a stamp, [ns]
        """
        names = tuple(message.name)
        if names not in self._orders:
            self._orders[names] = self._order(names)
        order = self._orders[names]
        if order is None:
            return None
        if self._first is None:
            self._first = message
            self.order = order
        stamp = int(message.header.stamp.sec) * 10**9 + int(message.header.stamp.nanosec)
        if stamp == 0:
            stamp = sent_ns
            if self._stamped:
                self._texts.append(
                    f"{self.topic} has no stamps: time is when the bridge sent the messages"
                )
            self._stamped = False
        if 0 <= self._last_ns - stamp < _LATE_NS:
            self._late += 1
            return None
        self._last_ns = stamp
        values: list[float] = []
        for field in self.fields:
            numbers = getattr(message, field).tolist()
            complete = len(numbers) == len(names)
            values += [numbers[k] for k in order] if complete else [float("nan")] * len(order)
        return stamp, tuple(values)

    def has(self, field: str) -> bool:
        """Whether the first message has numbers of a field.

        Args:
            field: 'velocity' or 'effort'
        """
        numbers = getattr(self._first, field)
        return len(numbers) == len(self._first.name) and bool((numbers == numbers).all())

    @property
    def seen(self) -> set[str]:
        """Names of all joints in the messages so far."""
        return {name for names in self._orders for name in names}

    def missing(self, limit_s: float) -> str:
        """Why no message was of use.

        Args:
            limit_s: how long they were waited for, [s]
        """
        there = "; ".join(", ".join(names) or "no joints" for names in self._orders)
        if not there:
            return f"nothing came on {self.topic} for {limit_s:g} s"
        return f"no message of {self.topic} has all of {', '.join(self.names)}; there are {there}"

    def texts(self) -> list[str]:
        """What is odd about the messages, once."""
        found = self._texts
        self._texts = []
        if self._late:
            found.append(
                f"{self._late} messages of {self.topic} came late, after others, and are left out"
            )
            self._late = 0
        return found

    def _order(self, names: tuple[str, ...]) -> list[int] | None:
        if not self.names and names:
            ur = tuple(name for joint in UR_JOINTS for name in names if name.endswith(joint))
            if is_ur(names) and len(ur) == len(names):
                self.names = ur
            else:
                self.names = names
        known = len(set(names)) == len(names) and set(self.names) <= set(names) and names
        if known:
            return [names.index(name) for name in self.names]
        return None


class WrenchRows:
    """Wrenches with stamps of their own, and the rows that wait for them.

    Args:
        topic: of the messages
    """

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self._last: deque[tuple[int, Values]] = deque(maxlen=200)
        self._steps: list[int] = []
        self._reach_ns = _HOLD_NS

    def add(self, message: Any, sent_ns: int) -> None:
        """Takes the next wrench.

        Args:
            message: geometry_msgs/WrenchStamped
            sent_ns: when it was sent, for one without a stamp, [ns]
        """
        stamp = int(message.header.stamp.sec) * 10**9 + int(message.header.stamp.nanosec) or sent_ns
        parts = (message.wrench.force, message.wrench.torque)
        if self._last and len(self._steps) < _STEPS:
            self._steps.append(stamp - self._last[-1][0])
            if len(self._steps) == _STEPS:
                self._reach_ns = min(max(round(1.5 * median(self._steps)), 1), _HOLD_NS)
        self._last.append((stamp, tuple(float(getattr(x, axis)) for x in parts for axis in "xyz")))

    def joined(self, pending: deque[tuple[int, Values]]) -> list[Values]:
        """The rows that need wait no longer, each with the wrench nearest in time, or NaN.

        Args:
            pending: times [ns] and values of rows; those that need wait no longer are taken out
        """
        rows = []
        if self._last:
            newest = self._last[-1][0]
        else:
            newest = 0
        while pending and (newest >= pending[0][0] or pending[-1][0] - pending[0][0] > _HOLD_NS):
            stamp, values = pending.popleft()
            near = min(self._last, key=lambda x: abs(x[0] - stamp), default=(0, ()))
            if near[1] and abs(near[0] - stamp) <= self._reach_ns:
                found = near[1]
            else:
                found = (float("nan"),) * 6
            rows.append((*values, *found))
        return rows
