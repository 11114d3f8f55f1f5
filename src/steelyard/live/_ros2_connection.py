"""A connection to a Foxglove bridge: chooses topics, and makes rows of the messages on them."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from steelyard.errors import MissingExtra, SourceFailed, SteelyardError
from steelyard.io._ros_messages import JOINT_STATE, NUMBERS, TEXT, WRENCH
from steelyard.io._rosbag import EffortChoice, is_ur
from steelyard.live._foxglove import SUBPROTOCOLS, Bridge, Message, Service, StateRows, WrenchRows
from steelyard.live._ros2_node import NodeSocket
from steelyard.live._source import Connection, ModeJudge, Values
from steelyard.live._tcp import open_connection
from steelyard.live._ur_modes import fault_in
from steelyard.recording import AXES
from steelyard.recording._columns import REFUSED

if TYPE_CHECKING:
    from steelyard.live._ros2 import Ros2Controller

MODE_MESSAGES = {
    "robot_mode": "ur_dashboard_msgs/msg/RobotMode",
    "safety_mode": "ur_dashboard_msgs/msg/SafetyMode",
}
"""Modes that a UR driver publishes, and the kinds of their messages."""

_JOINTS_TOPIC = "/joint_states"
_MAX_QUEUED_MESSAGES = 1024  # then the bridge drops some
_LATCHED_TIMEOUT_S = 1.0  # for messages that were published once
_EFFORT_HINT = (
    "it in the address: ?tau=effort for a torque [Nm], ?current=effort for a motor current [A],"
    " ?tau= to leave it out"
)


class Ros2Connection(Connection):
    """A WebSocket to a bridge; the constructor chooses topics and awaits the first message.

    Args:
        controller: the arm
    """

    def __init__(self, controller: Ros2Controller) -> None:
        self._controller = controller
        self._place = str(controller)
        self._texts: list[str] = []
        self._gripper = float("nan")
        self.bridge = Bridge()
        self._store = typestore()
        self._socket = open_socket(controller)
        try:
            self._subscribe()
        except SourceFailed:
            self.close()
            raise
        except SteelyardError as error:
            self.close()
            raise SourceFailed(str(error)) from error

    # --- before the first row

    def _subscribe(self) -> None:
        """Subscribes to the topics of joints, modes and descriptions, and chooses the columns."""
        bridge = self.bridge
        timeout_s = self._controller.timeout_s
        topic = self._await_joints_topic(timeout_s)
        self._modes = {
            name: topics[0]
            for name, kind in MODE_MESSAGES.items()
            if (topics := bridge.topics(kind))
        }
        descriptions = [name for name in bridge.topics(TEXT) if "robot_description" in name]
        self._send(bridge.subscription([topic, *self._modes.values(), *descriptions]))
        self._states = StateRows(topic, self._controller.joint_names)
        self._latched: dict[str, Any] = {}
        self._pending: deque[tuple[int, Values]] = deque()
        self._wrench: WrenchRows | None = None
        self._wait(lambda: self._states.order is not None, timeout_s)
        if not self._states.order:
            raise SourceFailed(f"{self._place}: {self._states.missing(timeout_s)}")
        latched = {*self._modes.values(), *descriptions}
        self._wait(lambda: latched <= set(self._latched), _LATCHED_TIMEOUT_S)
        self._modes = {name: x for name, x in self._modes.items() if x in self._latched}
        self._choose_columns(
            topic, [str(self._latched[x]) for x in descriptions if x in self._latched]
        )
        self._pending.clear()  # rows from here on have all columns

    def _await_joints_topic(self, timeout_s: float) -> str:
        """The topic of the joints, once the bridge has listed its topics."""
        bridge = self.bridge
        self._wait(lambda: bool(bridge.name), timeout_s)
        if not bridge.name:
            raise SourceFailed(
                f"{self._place} answers, but it does not say that it is a Foxglove bridge"
            )
        requested = self._controller.joints
        if requested is None:
            self._wait(lambda: _JOINTS_TOPIC in bridge.channels, _LATCHED_TIMEOUT_S)
        else:
            self._wait(lambda: requested in bridge.channels, timeout_s)
        return self._joints_topic()

    def _joints_topic(self) -> str:
        """The topic of the joints, or a refusal that lists those that exist."""
        topics = self.bridge.topics(JOINT_STATE)
        requested = self._controller.joints
        topic = requested or _JOINTS_TOPIC
        if requested is None and len(topics) == 1:
            topic = topics[0]
        if topic not in topics and len(topics) > 1 and requested is None:
            raise SourceFailed(
                f"{self._place}: {len(topics)} topics hold JointState: {', '.join(topics)};"
                f" choose with ?joints={topics[0]}"
            )
        if topic not in topics:
            channels = sorted(self.bridge.channels.items())
            listed = ", ".join(f"{x.topic} ({x.kind})" for _, x in channels)
            raise SourceFailed(
                f"{self._place}: there is no JointState topic '{topic}'; the bridge has"
                f" {listed or 'no topics'}"
            )
        if (encoding := self.bridge.channels[topic].encoding) != "cdr":
            raise SourceFailed(
                f"{self._place}: {topic} comes as {encoding}, not as CDR: is this ROS 1?"
            )
        return topic

    def _choose_columns(self, topic: str, descriptions: Sequence[str]) -> None:
        """Chooses the columns of a row, by the first message and by the address."""
        states = self._states
        effort = self._controller.effort
        wrench_topic = self._controller.wrench
        choice = EffortChoice(self._place, topic, effort, velocity=True, wrench=wrench_topic)
        choice.require_effort_named(topic, there=states.has("effort"), how=_EFFORT_HINT)
        if choice.effort:
            self._texts += choice.require_usable_effort(topic, [states.names], descriptions)
        fields = {"q": "position"}
        if states.has("velocity"):
            fields["v"] = "velocity"
        if choice.effort:
            fields[choice.effort] = "effort"
        states.fields = tuple(fields.values())
        joints = (f"{channel}.{name}" for channel in fields for name in states.names)
        columns = ["t", *joints, *self._modes]
        if self._controller.gripper is not None:
            self._subscribe_gripper(self._controller.gripper)
            columns.append("gripper")
        if wrench := self._wrench_topic():
            self._wrench = WrenchRows(wrench)
            self._send(self.bridge.subscription([wrench]))
            columns += [f"wrench_stamped.{axis}" for axis in AXES]
        self.columns = tuple(columns)

    def _subscribe_gripper(self, gripper: str) -> None:
        """Subscribes to the topic of the gripper, unless it is a joint that has come already."""
        if gripper in self._states.seen:
            return
        channel = self.bridge.channels.get(gripper)
        if channel is None or channel.kind not in NUMBERS:
            topics = [topic for kind in NUMBERS for topic in self.bridge.topics(kind)]
            raise SourceFailed(
                f"{self._place}: no gripper '{gripper}': it is neither a topic of one number"
                f" ({', '.join(sorted(topics)) or 'there are none'}) nor a joint of"
                f" {self._states.topic} ({', '.join(sorted(self._states.seen))})"
            )
        self._send(self.bridge.subscription([gripper]))

    def _wrench_topic(self) -> str:
        """The topic of the wrench; empty where none is read."""
        topics = self.bridge.topics(WRENCH)
        requested = self._controller.wrench
        if requested is not None:
            if requested and requested not in topics:
                listed = ", ".join(topics) or "none"
                raise SourceFailed(
                    f"{self._place}: there is no WrenchStamped topic '{requested}'; there are"
                    f" {listed}"
                )
            return requested
        if not topics:
            return ""
        if is_ur(self._states.names):
            reason = f"; the UR driver publishes actual_TCP_force: {REFUSED['actual_TCP_force']}"
        elif len(topics) == 1:
            return topics[0]
        else:
            reason = ""
        self._texts.append(
            f"no wrench is read: choose with ?wrench= one of {', '.join(topics)}{reason}"
        )
        return ""

    def _wait(self, done: Callable[[], bool], limit_s: float) -> None:
        """Takes messages until a condition holds or the time is over."""
        end = time.monotonic() + limit_s
        while not done() and (left_s := end - time.monotonic()) > 0:
            self._take(left_s)

    # --- rows

    def read(self) -> Sequence[Values]:
        """The rows since the last call."""
        if self._texts:
            return ()  # the stream takes the texts at once
        if not self._take(self._controller.timeout_s):
            raise SourceFailed(
                f"{self._place} is connected, but nothing came for {self._controller.timeout_s:g} s"
            )
        if self._wrench is None:
            rows = [row for _, row in self._pending]
            self._pending.clear()
            return rows
        return self._wrench.joined(self._pending)

    def texts(self) -> Sequence[str]:
        """Messages of the bridge, and remarks about its topics."""
        texts = [*self._texts, *self.bridge.texts, *self._states.texts()]
        self._texts = []
        self.bridge.texts = []
        return texts

    def close(self) -> None:
        """Closes the connection; a second call does nothing."""
        with suppress(Exception):  # a broken connection may raise anything when it is closed
            self._socket.close()

    def service(self, ending: str) -> Service:
        """The only service of a kind, or a refusal that lists those that exist.

        Args:
            ending: of the kind's name, as 'SetPayload'
        """

        def of_kind() -> list[Service]:
            return [x for x in self.bridge.services.values() if x.kind.endswith(f"/{ending}")]

        self._wait(lambda: bool(of_kind()), _LATCHED_TIMEOUT_S)
        services = of_kind()
        if len(services) == 1:
            return services[0]
        listed = sorted(x.name for x in services or self.bridge.services.values())
        if services:
            count = "several services"
        else:
            count = "no service"
        raise SourceFailed(
            f"{self._place}: there is {count} of the kind {ending};"
            f" there are: {', '.join(listed) or 'none'}"
        )

    def call(self, service: Service, request: bytes, *, within_s: float = 5.0) -> bytes:
        """The answer of a service.

        Args:
            service: one that the bridge offers
            request: its bytes, in CDR
            within_s: longest wait for the answer, [s]
        """
        number, data = self.bridge.call(service, request)
        self._send(data)
        self._wait(lambda: number in self.bridge.answers, within_s)
        answer = self.bridge.answers.pop(number, None)
        if isinstance(answer, bytes):
            return answer
        reason = answer or f"no answer within {within_s:g} s"
        raise ServiceFailed(f"{self._place}: {service.name} failed: {reason}")

    def _take(self, timeout_s: float) -> bool:
        """Takes one message; False where none came in time."""
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
            self._sort(message)
        return True

    def _sort(self, message: Message) -> None:
        """Puts a message where it belongs, by its topic."""
        topic = message.topic
        if topic == self._states.topic:
            states = self._decoded(message, JOINT_STATE)
            self._note_gripper_joint(states)
            row = self._states.row(states, message.sent_ns)
            if row is not None:
                stamp, values = row
                self._pending.append((stamp, (stamp / 1e9, *values, *self._others())))
        elif topic == self._controller.gripper:
            kind = self.bridge.channels[topic].kind
            self._gripper = float(self._decoded(message, kind).data)
        elif self._wrench is not None and topic == self._wrench.topic:
            self._wrench.add(self._decoded(message, WRENCH), message.sent_ns)
        elif topic in self._modes.values():
            self._latched[topic] = int.from_bytes(message.data[4:5], "little", signed=True)
        else:
            self._latched[topic] = self._decoded(message, TEXT).data

    def _others(self) -> Values:
        """What a row has beside the joints: modes, and the last state of the gripper."""
        modes = tuple(self._latched.get(topic, 0) for topic in self._modes.values())
        if self._controller.gripper is None:
            return modes
        return (*modes, self._gripper)

    def _note_gripper_joint(self, states: Any) -> None:
        """Keeps the position of the gripper where it is a joint of the message."""
        gripper = self._controller.gripper
        if gripper is not None and gripper in states.name:
            place = list(states.name).index(gripper)
            if place < len(states.position):
                self._gripper = float(states.position[place])

    def _decoded(self, message: Message, kind: str) -> Any:
        try:
            return self._store.deserialize_cdr(message.data, kind)
        except Exception as error:  # the parser raises many kinds on damaged bytes
            raise SourceFailed(
                f"{self._place}: a message of {message.topic} is no {kind}"
            ) from error

    def _send(self, data: str | bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            self._socket.send(data)
        except (ConnectionClosed, OSError) as error:
            raise SourceFailed(f"{self._place} has closed the connection") from error


class ServiceFailed(SourceFailed):
    """A service was called and gave no answer; what it did is not known."""


class UrDriverJudge(ModeJudge):
    """Knows the modes that a UR driver publishes.

    Args:
        columns: names of the values in a row; each mode among them is judged by itself
    """

    def __init__(self, columns: Sequence[str]) -> None:
        super().__init__()
        self._places = {name: columns.index(name) for name in MODE_MESSAGES if name in columns}

    def fault(self, values: Values) -> str:
        """Why rows in these modes are not fit for weighing."""
        return fault_in({name: values[place] for name, place in self._places.items()})


def open_socket(controller: Ros2Controller) -> Any:
    """A socket for the protocol: a WebSocket, or a node in this process.

    Args:
        controller: whose address it is
    """
    if controller.in_process:
        return NodeSocket.opened()
    return _open_websocket(controller)


def _open_websocket(controller: Ros2Controller) -> Any:
    """A WebSocket that uses one version of the protocol, or one clear line."""
    try:
        from websockets.sync.client import connect
        from websockets.typing import Subprotocol
    except ImportError as error:
        raise MissingExtra.of("websockets", "ros2") from error
    hint = (
        "does foxglove_bridge run there (ros2 launch foxglove_bridge foxglove_bridge_launch.xml)?"
    )
    host = controller.host
    port = controller.port
    tcp = open_connection(host, port, hint, timeout_s=controller.timeout_s)
    tcp.settimeout(None)  # a bridge may send nothing for long; `read` has a timeout of its own
    try:
        websocket = connect(
            f"ws://{host}:{port}",
            sock=tcp,
            subprotocols=[Subprotocol(name) for name in SUBPROTOCOLS],
            compression=None,
            max_size=None,
            max_queue=_MAX_QUEUED_MESSAGES,
            open_timeout=controller.timeout_s,
            close_timeout=0.5,
            logger=_quiet_logger(),
        )
    except Exception as error:  # the library raises many kinds on what is no handshake
        tcp.close()
        raise SourceFailed(
            f"{host}, port {port} answers, but not as a Foxglove bridge: {hint}"
        ) from error
    if websocket.subprotocol is None:
        websocket.close_socket()
        raise SourceFailed(
            f"{controller} is a WebSocket of another kind, not a Foxglove bridge: {hint}"
        )
    return websocket


def _quiet_logger() -> logging.Logger:
    """A logger that prints nothing: errors of the connection become one line of ours."""
    logger = logging.getLogger("steelyard.live.websocket")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return logger


def typestore() -> Any:
    """The message types of ROS 2, by the package rosbags."""
    try:
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise MissingExtra.of("rosbags", "ros2") from error
    return get_typestore(Stores.LATEST)
