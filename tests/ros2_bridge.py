"""An arm behind the real server of foxglove-sdk; the test is its clock."""

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

foxglove = pytest.importorskip("foxglove")
from foxglove import websocket  # noqa: E402
from rosbags.typesys import Stores, get_typestore  # noqa: E402

from steelyard.live import Ros2Controller  # noqa: E402

STORE = get_typestore(Stores.LATEST)
JOINT_STATE, WRENCH = "sensor_msgs/msg/JointState", "geometry_msgs/msg/WrenchStamped"
ROBOT_MODE, SAFETY_MODE = "ur_dashboard_msgs/msg/RobotMode", "ur_dashboard_msgs/msg/SafetyMode"
ARM = ("b", "a", "c")  # of the arm, in its order
UR = (
    *("elbow_joint", "shoulder_lift_joint", "shoulder_pan_joint"),
    *("wrist_1_joint", "wrist_2_joint", "wrist_3_joint"),
)  # sorted, as a broadcaster does


def header(t, frame=""):
    ns = round(t * 1e9)
    stamp = STORE.types["builtin_interfaces/msg/Time"](ns // 10**9, ns % 10**9)
    return STORE.types["std_msgs/msg/Header"](stamp, frame)


def joint_state(t, names, q, v=(), effort=()):
    numbers = (np.array(x, dtype=float) for x in (q, v, effort))
    message = STORE.types[JOINT_STATE](header(t), list(names), *numbers)
    return bytes(STORE.serialize_cdr(message, JOINT_STATE))


def wrench(t, values, frame="tool0"):
    vector = STORE.types["geometry_msgs/msg/Vector3"]
    parts = (vector(*map(float, part)) for part in (values[:3], values[3:]))
    message = STORE.types[WRENCH](header(t, frame), STORE.types["geometry_msgs/msg/Wrench"](*parts))
    return bytes(STORE.serialize_cdr(message, WRENCH))


def text(words):
    message = STORE.types["std_msgs/msg/String"](words)
    return bytes(STORE.serialize_cdr(message, "std_msgs/msg/String"))


def mode(number):
    return b"\0\1\0\0" + bytes([number % 256])


class Arm:
    """Publishes what it is told to. `latched` is sent again to everybody who subscribes.

    Args:
        topics: the kind of message of each
        latched: messages by topic
        services: of the bridge
    """

    def __init__(self, topics, latched=None, services=(), names=ARM, accepts_messages=False):
        self.context, self.latched, self.names = foxglove.Context(), dict(latched or {}), names
        self.channels = {topic: self._channel(topic, kind) for topic, kind in topics.items()}
        self.services, self.port, self.server = list(services), 0, None
        self.capabilities = [websocket.Capability.Services]
        if accepts_messages:
            self.capabilities.append(websocket.Capability.ClientPublish)
        self.announced, self.received = {}, []
        self.subscribed = threading.Event()
        self.wanted_topics = set()
        self.start()

    def _channel(self, topic, kind, encoding="cdr"):
        schema = foxglove.Schema(name=kind, encoding="ros2msg", data=b"")
        return foxglove.Channel(
            topic, schema=schema, message_encoding=encoding, context=self.context
        )

    def start(self):
        """Starts the server; its port may be taken for a moment after a stop."""
        end = time.monotonic() + 10.0
        while True:
            try:
                self.server = self._started()
                break
            except RuntimeError:
                if not self.port or time.monotonic() > end:
                    raise
                time.sleep(0.05)
        self.port = self.server.port

    def _started(self):
        return foxglove.start_server(
            host="127.0.0.1",
            port=self.port,
            context=self.context,
            server_listener=self,
            capabilities=self.capabilities,
            supported_encodings=["cdr"],
            services=self.services,
        )

    def stop(self):
        self.server.stop()

    def on_subscribe(self, client, channel):
        if (message := self.latched.get(channel.topic)) is not None:
            self.channels[channel.topic].log(message)
        self.wanted_topics.add(channel.topic)
        self.subscribed.set()

    def on_unsubscribe(self, client, channel):
        pass

    def on_client_advertise(self, client, channel):
        self.announced[channel.id] = (channel.topic, channel.schema_name)

    def on_client_unadvertise(self, client, client_channel_id):
        pass

    def on_message_data(self, client, client_channel_id, data):
        self.received.append((*self.announced[client_channel_id], data))

    def publish(self, topic, message):
        self.channels[topic].log(message)

    def row(self, k, t):
        """A recognisable row: q = k + (0, 0.1, 0.2) of the arm's joints, sent sorted by name."""
        order = sorted(range(len(self.names)), key=lambda j: self.names[j])
        q = k + 0.1 * np.arange(len(self.names))
        names = [self.names[j] for j in order]
        return joint_state(t, names, q[order], 2 * q[order], 3 * q[order])


@contextmanager
def bridge(topics=None, *, latched=None, services=(), names=ARM, accepts_messages=False):
    """A bridge with an arm behind it that has sent its first row to the subscriber."""
    topics = topics or {"/joint_states": JOINT_STATE}
    arm = Arm(topics, latched, services, names, accepts_messages)
    arm.latched.setdefault("/joint_states", arm.row(0, 100.0))
    try:
        yield arm
    finally:
        arm.stop()


def source(arm, **options):
    options = {
        "effort": "tau",
        "joint_names": arm.names,
        "pauses_s": (0.02,),
        "timeout_s": 2.0,
        **options,
    }
    return Ros2Controller("127.0.0.1", arm.port, **options)
