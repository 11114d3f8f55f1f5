"""A node of ROS 2 in this process, with the protocol of a Foxglove bridge as its interface.

Where `rclpy` is installed, `ros2-node:` needs no bridge: a `NodeSocket` is read and written like
the WebSocket to one, and everything above it is the code for a bridge (`_ros2_connection`,
`_ros2_publisher`). Messages stay the bytes that ROS 2 sends (CDR): subscriptions are raw, and
bytes are published as they are.

    rclpy -> NodeSocket -> recv(): serverInfo, advertise, advertiseServices, messages, answers
                        <- send(): subscribe, advertise, messages, calls of services

A topic is subscribed to with the reliability and durability of its first publisher, so that a
latched message comes, too. A service is called by a client of its own; its fields are those of its
definition on this machine, and none where that is not installed.
"""

from __future__ import annotations

import json
import queue
import struct
import threading
import time
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

from steelyard.errors import SourceFailed

_NODE_NAME = "steelyard"
_DISCOVERY_STEP_S = 0.2  # between two looks at the topics
_MAX_QUEUED_MESSAGES = 4096  # then messages are dropped
_QUEUED_PER_TOPIC = 100
_MESSAGE_HEAD = struct.Struct("<BIQ")
_PUBLISH_HEAD = struct.Struct("<BI")
_CALL_HEAD = struct.Struct("<BIII")
_MESSAGE = 1  # first byte of a published message
_CALL = 2  # first byte of a call of a service
_ANSWER = 3  # first byte of its answer
_CDR = b"cdr"
_END = b""  # in the queue after the last message
_SERVICE_TIMEOUT_S = 2.0  # for a client to find its service
_NUMBER_KINDS = {"float": "float32", "double": "float64"}  # of rclpy, as in a definition
_names = count()


class RosClient(NamedTuple):
    """What a node of this process needs of ROS 2.

    Attributes:
        node: of rclpy
        message_type: gives the class of a kind of message, as 'sensor_msgs/msg/JointState'
        service_type: gives the class of a kind of service, as 'ur_msgs/srv/SetPayload'
        serialize: gives the bytes of a message
        deserialize: gives a message from its bytes and its class
        quality: gives the quality of service for a topic with given publishers
        stop: ends the thread that calls back, and the node
    """

    node: Any
    message_type: Any
    service_type: Any
    serialize: Any
    deserialize: Any
    quality: Any
    stop: Any


class NodeSocket:
    """A node that is read and written like the WebSocket to a bridge.

    Args:
        client: the node
    """

    def __init__(self, client: RosClient) -> None:
        self._client = client
        self._queue: queue.Queue[str | bytes] = queue.Queue(_MAX_QUEUED_MESSAGES)
        self._channels: dict[str, tuple[int, str]] = {}  # number and kind by topic
        self._publishers: dict[int, Any] = {}
        self._services: dict[str, tuple[int, str]] = {}  # number and kind by name
        capabilities = ["clientPublish", "services"]
        self._put({"op": "serverInfo", "name": _NODE_NAME, "capabilities": capabilities})
        self._discover()
        self._timer = client.node.create_timer(_DISCOVERY_STEP_S, self._discover)

    @classmethod
    def opened(cls) -> NodeSocket:
        """A socket to the topics that this machine sees."""
        return cls(_ros_client())

    def recv(self, timeout: float | None = None) -> str | bytes:
        """The next message; raises TimeoutError where none comes in time.

        Args:
            timeout: longest wait, [s]; None for ever

        Raises:
            ConnectionError: the node was ended
        """
        try:
            received = self._queue.get(timeout=timeout)
        except queue.Empty as error:
            raise TimeoutError from error
        if received == _END:
            raise ConnectionError("the node was ended")
        return received

    def send(self, data: str | bytes) -> None:
        """Takes a message of the protocol.

        Args:
            data: text for subscriptions and announcements, bytes for a message to publish or a call
        """
        if isinstance(data, bytes) and data[0] == _CALL:
            self._call(data)
            return
        if isinstance(data, bytes):
            _, number = _PUBLISH_HEAD.unpack_from(data)
            self._publishers[number].publish(data[_PUBLISH_HEAD.size :])
            return
        content = json.loads(data)
        if content["op"] == "subscribe":
            for item in content["subscriptions"]:
                self._subscribe(int(item["id"]), int(item["channelId"]))
        elif content["op"] == "advertise":
            for channel in content["channels"]:
                kind = self._client.message_type(channel["schemaName"])
                publisher = self._client.node.create_publisher(kind, channel["topic"], 10)
                self._publishers[int(channel["id"])] = publisher

    def close(self) -> None:
        """Ends the node; a second call does nothing."""
        self._client.stop()
        with suppress(queue.Full):
            self._queue.put_nowait(_END)  # for a reader that waits

    def _discover(self) -> None:
        """Announces topics and services that have appeared."""
        self._discover_topics()
        self._discover_services()

    def _discover_topics(self) -> None:
        channels = []
        for topic, kinds in self._client.node.get_topic_names_and_types():
            if topic in self._channels or not kinds:
                continue
            number = len(self._channels) + 1
            self._channels[topic] = (number, kinds[0])
            channel = {"id": number, "topic": topic, "encoding": "cdr", "schemaName": kinds[0]}
            channels.append(channel)
        if channels:
            self._put({"op": "advertise", "channels": channels})

    def _discover_services(self) -> None:
        services = []
        for name, kinds in self._client.node.get_service_names_and_types():
            if name in self._services or not kinds:
                continue
            number = len(self._services) + 1
            self._services[name] = (number, kinds[0])
            schema = self._request_schema(kinds[0])
            services.append({"id": number, "name": name, "type": kinds[0], "requestSchema": schema})
        if services:
            self._put({"op": "advertiseServices", "services": services})

    def _request_schema(self, kind: str) -> str:
        """The fields of a request, one to a line; empty where its definition is not installed."""
        try:
            fields = self._client.service_type(kind).Request.get_fields_and_field_types()
        except Exception:  # each package that is missing or broken raises in its own way
            return ""
        lines = (
            f"{_NUMBER_KINDS.get(of_kind, of_kind)} {name}" for name, of_kind in fields.items()
        )
        return "\n".join(lines)

    def _call(self, data: bytes) -> None:
        """Calls a service; its answer, or why there is none, comes as a message."""
        _, number, call, encoding_size = _CALL_HEAD.unpack_from(data)
        request = data[_CALL_HEAD.size + encoding_size :]
        ((name, kind),) = [
            (name, kind) for name, (known, kind) in self._services.items() if known == number
        ]

        def answer(future: Any) -> None:
            try:
                response = self._client.serialize(future.result())
            except Exception as error:  # whatever the service or rclpy has raised
                self._put_failure(call, error)
                return
            head = _CALL_HEAD.pack(_ANSWER, number, call, len(_CDR))
            self._queue.put(head + _CDR + bytes(response))

        try:
            service_type = self._client.service_type(kind)
            client = self._client.node.create_client(service_type, name)
            if not client.wait_for_service(timeout_sec=_SERVICE_TIMEOUT_S):
                raise TimeoutError(f"it was not there within {_SERVICE_TIMEOUT_S:g} s")
            message = self._client.deserialize(request, service_type.Request)
            client.call_async(message).add_done_callback(answer)
        except Exception as error:  # rclpy raises many kinds
            self._put_failure(call, error)

    def _put_failure(self, call: int, error: Exception) -> None:
        self._put({"op": "serviceCallFailure", "callId": call, "message": str(error)})

    def _subscribe(self, subscription: int, channel: int) -> None:
        ((topic, kind),) = [
            (topic, kind) for topic, (number, kind) in self._channels.items() if number == channel
        ]
        node = self._client.node

        def receive(message: bytes) -> None:
            head = _MESSAGE_HEAD.pack(_MESSAGE, subscription, time.time_ns())
            with suppress(queue.Full):  # as a bridge drops messages
                self._queue.put_nowait(head + bytes(message))

        quality = self._client.quality(node.get_publishers_info_by_topic(topic))
        node.create_subscription(self._client.message_type(kind), topic, receive, quality, raw=True)

    def _put(self, content: dict[str, Any]) -> None:
        self._queue.put(json.dumps(content))


def _ros_client() -> RosClient:
    """A node of its own that is spun by a thread; one clear line where there is no ROS 2."""
    try:
        import rclpy
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.qos import QoSProfile
        from rclpy.serialization import deserialize_message, serialize_message
        from rosidl_runtime_py.utilities import get_message, get_service
    except ImportError as error:
        raise SourceFailed(
            "ros2-node: needs rclpy, the Python package of ROS 2: source its setup file, and use a"
            " Python of the same version; or use ros2://HOST with foxglove_bridge"
        ) from error
    if not rclpy.ok():
        rclpy.init(args=[])
    number = next(_names)
    node = rclpy.create_node(f"{_NODE_NAME}_{number}" if number else _NODE_NAME)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    thread = threading.Thread(target=executor.spin, name="rclpy", daemon=True)
    thread.start()

    def quality(publishers: Any) -> Any:
        if not publishers:
            return QoSProfile(depth=_QUEUED_PER_TOPIC)
        offered = publishers[0].qos_profile
        return QoSProfile(
            depth=_QUEUED_PER_TOPIC,
            reliability=offered.reliability,
            durability=offered.durability,
        )

    def stop() -> None:
        executor.shutdown()
        node.destroy_node()

    return RosClient(
        node,
        message_type=get_message,
        service_type=get_service,
        serialize=serialize_message,
        deserialize=deserialize_message,
        quality=quality,
        stop=stop,
    )
