"""`ros2://HOST[:PORT]`: an arm under ROS 2, through `foxglove_bridge` on its side; no ROS on ours.

Rows are messages of sensor_msgs/JointState, with the time of their headers. Joints go by name, in
the order of the arm where it is known. What the effort is must be said, as of a bag
(`steelyard.io._rosbag`):

    ros2://robot?current=effort
    ros2://robot:8765?joints=/arm/joint_states&tau=effort&wrench=/ft&names=joint1,joint2,joint3

Of a Universal Robots driver the modes are read too, where it publishes them: what is not fit for
weighing by them is the same as in `ur`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from steelyard.errors import MissingExtra, SourceFailed, SteelyardError, UnknownName
from steelyard.io._ros_messages import JOINT_STATE, TEXT, WRENCH
from steelyard.io._rosbag import Choice, is_ur
from steelyard.live._foxglove import SUBPROTOCOLS, Bridge, Message, Service, StateRows, WrenchRows
from steelyard.live._source import Connection, Judge, ModeJudge, Source, Values
from steelyard.live._ur import connected, fault_of
from steelyard.recording import AXES
from steelyard.recording._columns import REFUSED, Requested

PORT = 8765
_JOINTS = "/joint_states"
_MODES = {
    "robot_mode": "ur_dashboard_msgs/msg/RobotMode",
    "safety_mode": "ur_dashboard_msgs/msg/SafetyMode",
}
_WORDS = ("joints", "wrench", "names", "tau", "current")  # that an address may have
_QUEUE = 1024  # messages that wait for us at most, before the bridge drops some
_LATCHED_S = 1.0  # what was published once comes within this time
_HOW = (
    "so in the address: ?tau=effort for a torque [Nm], ?current=effort for a motor current [A],"
    " ?tau= to leave it out"
)


@dataclass(frozen=True)
class Ros2Source(Source):
    """An arm behind a bridge.

    Attributes:
        host: of the bridge, name or address
        port: of the bridge
        joints: topic of the JointState messages; /joint_states, or the only one, by default
        effort: what the effort is, 'tau' or 'current'; empty to leave it out, None where it was not
            said
        wrench: topic of the WrenchStamped messages; empty to leave it out, None for the only one,
            except on a UR
        joint_names: in the order of the arm; empty for that of the messages
        timeout_s: without any row, until it counts as lost, [s]
        pauses_s: before each attempt to connect again, [s]
    """

    host: str
    port: int = PORT
    joints: str | None = None
    effort: str | None = None
    wrench: str | None = None
    joint_names: tuple[str, ...] = ()
    timeout_s: float = 2.0
    pauses_s: tuple[float, ...] = (1.0, 2.0, 5.0)

    @classmethod
    def of(cls, host: str, port: int, query: str, *, joint_names: Sequence[str] = ()) -> Ros2Source:
        """The source that an address names.

        Args:
            host: name or address
            port: number
            query: what follows the question mark, as 'tau=effort&wrench=/ft'
            joint_names: of the arm, where it is known and the address does not name them
        """
        said = dict(parse_qsl(query, keep_blank_values=True))
        place = f"ros2://{host}:{port}"
        for word in said:
            if word not in _WORDS:
                raise UnknownName(
                    f"{place}: an address has no '{word}'; known are {', '.join(_WORDS)}"
                )
        columns: dict[str, str | Sequence[str]] = {
            x: said[x] for x in ("tau", "current") if x in said
        }
        names = tuple(name for name in said.get("names", "").split(",") if name)
        effort = Choice.of(Requested(columns), place).effort
        return cls(
            host, port, said.get("joints"), effort, said.get("wrench"), names or tuple(joint_names)
        )

    def __str__(self) -> str:
        return f"ros2://{self.host}:{self.port}"

    def connect(self) -> Ros2Connection:
        """A connection that has seen the first message of the joints."""
        return Ros2Connection(self)

    def judge(self, columns: Sequence[str]) -> Judge:
        """One that knows the modes of a UR driver, where they are there."""
        if set(_MODES) <= set(columns):
            return _Ros2Judge(columns)
        return Judge()


class Ros2Connection(Connection):
    """A WebSocket with a bridge behind it; topics are chosen and joints are known before it is there.

    Args:
        source: the arm
    """

    def __init__(self, source: Ros2Source) -> None:
        self._source, self._place, self._texts = source, str(source), list[str]()
        self.bridge = Bridge()
        self._store = _typestore()
        self._socket = _opened(source)
        try:
            self._begin()
        except SteelyardError as error:
            self.close()
            known = isinstance(error, SourceFailed)
            raise error if known else SourceFailed(str(error)) from error

    # --- before the first row

    def _begin(self) -> None:
        bridge = self.bridge
        limit_s = self._source.timeout_s
        self._wait(lambda: bool(bridge.name), limit_s)
        if not bridge.name:
            raise SourceFailed(
                f"{self._place} answers, but it does not say that it is a Foxglove bridge"
            )
        wanted = self._source.joints or _JOINTS
        self._wait(
            lambda: wanted in bridge.channels, limit_s if self._source.joints else _LATCHED_S
        )
        topic = self._topic()
        self._modes = {
            name: found[0] for name, kind in _MODES.items() if (found := bridge.topics(kind))
        }
        described = [name for name in bridge.topics(TEXT) if "robot_description" in name]
        self._send(bridge.subscription([topic, *self._modes.values(), *described]))
        self._states = StateRows(topic, self._source.joint_names)
        self._latched: dict[str, Any] = {}
        self._pending: deque[tuple[int, Values]] = deque()
        self._wrench: WrenchRows | None = None
        self._wait(lambda: self._states.order is not None, limit_s)
        if not self._states.order:
            raise SourceFailed(f"{self._place}: {self._states.missing(limit_s)}")
        once = {*self._modes.values(), *described}
        self._wait(lambda: once <= set(self._latched), _LATCHED_S)
        self._modes = {name: x for name, x in self._modes.items() if x in self._latched}
        self._choose_columns(
            topic, [str(self._latched[x]) for x in described if x in self._latched]
        )
        self._pending.clear()  # rows from here on have all columns

    def _topic(self) -> str:
        """The topic of the joints."""
        there = self.bridge.topics(JOINT_STATE)
        asked = self._source.joints
        if asked is None and len(there) == 1:
            found = there[0]
        else:
            found = asked or _JOINTS
        if found not in there and len(there) > 1 and asked is None:
            raise SourceFailed(
                f"{self._place}: {len(there)} topics hold JointState: {', '.join(there)};"
                f" choose with ?joints={there[0]}"
            )
        if found not in there:
            held = ", ".join(
                f"{x.topic} ({x.kind})" for _, x in sorted(self.bridge.channels.items())
            )
            raise SourceFailed(
                f"{self._place}: there is no JointState topic '{found}'; the bridge has"
                f" {held or 'no topics'}"
            )
        if (encoding := self.bridge.channels[found].encoding) != "cdr":
            raise SourceFailed(
                f"{self._place}: {found} comes as {encoding}, not as CDR: is this ROS 1?"
            )
        return found

    def _choose_columns(self, topic: str, descriptions: Sequence[str]) -> None:
        """What a row has, by the first message and by what was said about it."""
        states = self._states
        source = self._source
        choice = Choice(self._place, topic, source.effort, velocity=True, wrench=source.wrench)
        choice.require_effort_named(topic, there=states.has("effort"), how=_HOW)
        if choice.effort:
            self._texts += choice.require_usable_effort(topic, [states.names], descriptions)
        words = {"q": "position"} | ({"v": "velocity"} if states.has("velocity") else {})
        words |= {choice.effort: "effort"} if choice.effort else {}
        states.fields = tuple(words.values())
        columns = [
            "t",
            *(f"{word}.{name}" for word in words for name in states.names),
            *self._modes,
        ]
        if wrench := self._wrench_topic():
            self._wrench = WrenchRows(wrench)
            self._send(self.bridge.subscription([wrench]))
            columns += [f"wrench_stamped.{axis}" for axis in AXES]
        self.columns = tuple(columns)

    def _wrench_topic(self) -> str:
        there = self.bridge.topics(WRENCH)
        asked = self._source.wrench
        if asked is not None:
            if asked and asked not in there:
                held = ", ".join(there) or "none"
                raise SourceFailed(
                    f"{self._place}: there is no WrenchStamped topic '{asked}'; there are {held}"
                )
            return asked
        own = f"that of a UR's own driver is actual_TCP_force: {REFUSED['actual_TCP_force']}"
        sure = len(there) == 1 and not is_ur(self._states.names)
        if there and not sure:
            if is_ur(self._states.names):
                why = f"; {own}"
            else:
                why = ""
            self._texts.append(
                f"no wrench is read: choose with ?wrench= one of {', '.join(there)}{why}"
            )
        if sure:
            return there[0]
        return ""

    def _wait(self, done: Callable[[], bool], limit_s: float) -> None:
        """Takes messages until something is done or the time is over."""
        end = time.monotonic() + limit_s
        while not done() and (left_s := end - time.monotonic()) > 0:
            self._take(left_s)

    # --- rows

    def read(self) -> Sequence[Values]:
        """The rows since the last call."""
        if self._texts:
            return ()  # they are taken at once
        if not self._take(self._source.timeout_s):
            raise SourceFailed(
                f"{self._place} is connected, but nothing came for {self._source.timeout_s:g} s"
            )
        if self._wrench is None:
            rows = [row for _, row in self._pending]
            self._pending.clear()
            return rows
        return self._wrench.joined(self._pending)

    def texts(self) -> Sequence[str]:
        """Messages of the bridge, and what is odd about its topics."""
        texts = [*self._texts, *self.bridge.texts, *self._states.texts()]
        self._texts = []
        self.bridge.texts = []
        return texts

    def close(self) -> None:
        """Ends it; a second time does nothing."""
        with suppress(Exception):  # whatever a broken connection says to being closed
            self._socket.close()

    def service(self, ending: str) -> Service:
        """The service of a kind, or a refusal that says which there are.

        Args:
            ending: of the kind's name, as 'SetPayload'
        """

        def found() -> list[Service]:
            return [x for x in self.bridge.services.values() if x.kind.endswith(f"/{ending}")]

        self._wait(lambda: bool(found()), _LATCHED_S)
        if len(services := found()) == 1:
            return services[0]
        there = (
            ", ".join(sorted(x.name for x in services or self.bridge.services.values())) or "none"
        )
        if services:
            count = "several services"
        else:
            count = "no service"
        raise SourceFailed(
            f"{self._place}: there is {count} of the kind {ending}; there are: {there}"
        )

    def call(self, service: Service, request: bytes, *, within_s: float = 5.0) -> bytes:
        """The answer of a service.

        Args:
            service: that the bridge has
            request: its bytes, in CDR
            within_s: how long to wait for the answer, [s]
        """
        number, data = self.bridge.call(service, request)
        self._send(data)
        self._wait(lambda: number in self.bridge.answers, within_s)
        answer = self.bridge.answers.pop(number, None)
        if isinstance(answer, bytes):
            return answer
        why = answer or f"no answer within {within_s:g} s"
        raise SourceFailed(f"{self._place}: {service.name} failed: {why}")

    def _take(self, timeout_s: float) -> bool:
        """Takes one message, if one comes within some time."""
        from websockets.exceptions import ConnectionClosed

        try:
            received = self._socket.recv(timeout_s)
        except TimeoutError:
            return False
        except (ConnectionClosed, OSError) as error:
            raise SourceFailed(f"{self._place} has closed the connection") from error
        try:
            message = self.bridge.receive(received)
        except SourceFailed as error:
            raise SourceFailed(f"{self._place}: {error}") from error
        if message is not None:
            self._took(message)
        return True

    def _took(self, message: Message) -> None:
        topic = message.topic
        if topic == self._states.topic:
            found = self._states.row(self._decoded(message, JOINT_STATE), message.sent_ns)
            if found is not None:
                stamp, values = found
                modes = tuple(self._latched.get(x, 0) for x in self._modes.values())
                self._pending.append((stamp, (stamp / 1e9, *values, *modes)))
        elif self._wrench is not None and topic == self._wrench.topic:
            self._wrench.add(self._decoded(message, WRENCH), message.sent_ns)
        elif topic in self._modes.values():
            self._latched[topic] = int.from_bytes(message.data[4:5], "little", signed=True)
        else:
            self._latched[topic] = self._decoded(message, TEXT).data

    def _decoded(self, message: Message, kind: str) -> Any:
        try:
            return self._store.deserialize_cdr(message.data, kind)
        except Exception as error:  # damaged bytes: the parser fails with whatever it meets first
            raise SourceFailed(
                f"{self._place}: a message of {message.topic} is no {kind}"
            ) from error

    def _send(self, data: str | bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            self._socket.send(data)
        except (ConnectionClosed, OSError) as error:
            raise SourceFailed(f"{self._place} has closed the connection") from error


class _Ros2Judge(ModeJudge):
    """Knows the modes that a UR driver publishes."""

    def __init__(self, columns: Sequence[str]) -> None:
        super().__init__()
        self._at = [columns.index(name) for name in _MODES]

    def fault(self, values: Values) -> str:
        robot, safety = (int(values[k]) for k in self._at)
        return fault_of(robot, safety)


def _opened(source: Ros2Source) -> Any:
    """A WebSocket with one of the protocol's names agreed on, or one clear line."""
    try:
        from websockets.exceptions import InvalidHandshake
        from websockets.sync.client import connect
        from websockets.typing import Subprotocol
    except ImportError as error:
        raise MissingExtra("websockets", "ros2") from error
    ask = "does foxglove_bridge run there (ros2 launch foxglove_bridge foxglove_bridge_launch.xml)?"
    socket = connected(source.host, source.port, ask, timeout_s=source.timeout_s)
    socket.settimeout(None)  # a bridge may be silent; `read` knows how long
    try:
        found = connect(
            f"ws://{source.host}:{source.port}",
            sock=socket,
            subprotocols=[Subprotocol(name) for name in SUBPROTOCOLS],
            compression=None,
            max_size=None,
            max_queue=_QUEUE,
            open_timeout=source.timeout_s,
            close_timeout=0.5,
        )
    except (InvalidHandshake, OSError, EOFError) as error:
        socket.close()
        raise SourceFailed(
            f"{source.host}, port {source.port} answers, but not as a Foxglove bridge: {ask}"
        ) from error
    if found.subprotocol is None:
        found.close_socket()
        raise SourceFailed(f"{source} is a WebSocket of another kind, not a Foxglove bridge: {ask}")
    return found


def _typestore() -> Any:
    try:
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise MissingExtra("rosbags", "ros2") from error
    return get_typestore(Stores.LATEST)
