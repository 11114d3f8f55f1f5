"""`ros2://HOST[:PORT]`: an arm under ROS 2, through `foxglove_bridge` on its side; no ROS on ours.

`ros2-node:` is the same without a bridge, where ROS 2 is on our side, too (`_ros2_node`).

Rows are messages of sensor_msgs/JointState, with the time of their headers. Joints go by name, in
the order of the arm where it is known. The address must say what the effort is, as for a bag
(`steelyard.io._rosbag`):

    ros2://robot?current=effort
    ros2://robot:8765?joints=/arm/joint_states&tau=effort&wrench=/ft&names=joint1,joint2,joint3
    ros2://robot?current=effort&gripper=/gripper/closed

The modes of a Universal Robots driver are read where it publishes them; they decide which rows are
fit for weighing, as in `_ur_modes`. A payload goes to the driver's service `set_payload`, which
answers whether it was set. No topic reports the payload that is set, so there is no old one to show
or to restore.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple
from urllib.parse import parse_qsl

from steelyard.errors import SourceFailed, UnknownName
from steelyard.io._rosbag import EffortChoice
from steelyard.live._controller import (
    Capabilities,
    Controller,
    ControllerPayload,
    ControllerStatus,
    PayloadRequest,
    SettingOutcome,
    SettingState,
)
from steelyard.live._foxglove import Service
from steelyard.live._ros2_connection import (
    MODE_MESSAGES,
    Ros2Connection,
    ServiceFailed,
    UrDriverJudge,
)
from steelyard.live._ros2_publisher import PAYLOAD_TOPIC, Ros2Publisher
from steelyard.live._source import Judge, Stream
from steelyard.live._ur_modes import command_obstacle
from steelyard.payload import Payload
from steelyard.recording._columns import Requested

PORT = 8765
_PARAMETERS = ("joints", "wrench", "names", "tau", "current", "gripper")  # of an address
_PAYLOAD_SERVICE = "SetPayload"  # ending of the service's kind
_CDR_HEADER = b"\0\1\0\0"  # of every message: little-endian
_INERTIA_FIELDS = ("payload", "inertia")  # names of a field of type geometry_msgs/Inertia
_NUMBERS = {"float32": "f", "float64": "d"}
_MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")  # in the order of `ControllerPayload`
_TRANSITION = "transition_time"


@dataclass(frozen=True)
class Ros2Controller(Controller):
    """An arm behind a bridge.

    It is moved by a program of its own: nothing here starts or stops a motion.

    Attributes:
        host: name or address of the bridge
        port: port of the bridge
        joints: topic of the JointState messages; /joint_states, or the only one, by default
        effort: what the effort is, 'tau' or 'current'; empty to leave it out, None where the
            address does not say
        wrench: topic of the WrenchStamped messages; empty to leave it out, None for the only one,
            except on a UR
        joint_names: in the order of the arm; empty for the order of the messages
        timeout_s: longest time without any row, [s]; then the connection counts as lost
        pauses_s: pause before each attempt to connect again, [s]
        in_process: whether a node of this process takes the place of a bridge
        gripper: topic of one number (std_msgs), or a joint of the JointState messages; None to read
            none
    """

    host: str
    port: int = PORT
    joints: str | None = None
    effort: str | None = None
    wrench: str | None = None
    joint_names: tuple[str, ...] = ()
    timeout_s: float = 2.0
    pauses_s: tuple[float, ...] = (1.0, 2.0, 5.0)
    in_process: bool = False
    gripper: str | None = None

    capabilities: ClassVar[Capabilities] = Capabilities(sets_payload_while_streaming=True)
    export_format: ClassVar[str] = "ur"

    @classmethod
    def of(
        cls, host: str, port: int, query: str, *, joint_names: Sequence[str] = ()
    ) -> Ros2Controller:
        """The arm that an address names.

        Args:
            host: name or address; empty for a node of this process
            port: number of the port
            query: the part after the question mark, as 'tau=effort&wrench=/ft'
            joint_names: of the arm, where it is known and the address does not name them
        """
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        place = f"ros2://{host}:{port}"
        if not host:
            place = "ros2-node:"
        for word in parameters:
            if word not in _PARAMETERS:
                raise UnknownName(
                    f"{place}: an address has no '{word}'; known are {', '.join(_PARAMETERS)}"
                )
        columns: dict[str, str | Sequence[str]] = {
            name: parameters[name] for name in ("tau", "current") if name in parameters
        }
        names = tuple(name for name in parameters.get("names", "").split(",") if name)
        return cls(
            host,
            port,
            joints=parameters.get("joints"),
            effort=EffortChoice.of(Requested(columns), place).effort,
            wrench=parameters.get("wrench"),
            gripper=parameters.get("gripper") or None,
            joint_names=names or tuple(joint_names),
            in_process=not host,
        )

    def __str__(self) -> str:
        if self.in_process:
            return "ros2-node:"
        return f"ros2://{self.host}:{self.port}"

    # --- rows

    def connect(self) -> Ros2Connection:
        """A connection that has received the first message of the joints."""
        return Ros2Connection(self)

    def judge(self, columns: Sequence[str]) -> Judge:
        """A judge that knows the modes of a UR driver, where they are published."""
        return UrDriverJudge(columns)

    def publisher(self, topic: str) -> Ros2Publisher:
        """A publisher of what is weighed.

        Args:
            topic: of the payload
        """
        return Ros2Publisher(self, topic=topic)

    def joint_speeds(self, row: Mapping[str, float]) -> Sequence[float]:
        """Joint speeds, (n,) [rad/s]; empty where the messages do not contain them."""
        return [value for name, value in row.items() if name.startswith("v.")]

    def obstacle(self, row: Mapping[str, float]) -> str:
        """Modes that are unknown or not fit, and any but the normal safety mode."""
        unknown = [name for name in MODE_MESSAGES if name not in row]
        if unknown:
            return (
                "it does not report the mode of the arm:"
                f" {' and '.join(unknown)} of a UR driver are not published"
            )
        return command_obstacle(row, tuple(MODE_MESSAGES))

    # --- payload

    def status(self) -> ControllerStatus:
        """Facts about an arm that is ready; raises `SourceFailed` where it is not."""
        with Stream(self) as stream:
            self.ready_row(stream)
        connection = self.connect()
        try:
            service = connection.service(_PAYLOAD_SERVICE)
        finally:
            connection.close()
        return ControllerStatus(
            payload=None,
            takes_inertia=_takes_inertia(service),
            note=f"{self} does not report its payload, so the old one cannot be restored",
        )

    def set_payload(self, request: PayloadRequest) -> SettingOutcome:
        """Sets a payload by the driver's service, whose answer is the only confirmation."""
        payload = request.payload
        with Stream(self) as stream:
            self.ready_row(stream)
        connection = self.connect()
        try:
            service = connection.service(_PAYLOAD_SERVICE)
            message = _payload_request(service, payload, request.transition_s)
            answer = connection.call(service, message)
        except ServiceFailed as error:
            words = f"it is not known whether the payload was set: {error}"
            return SettingOutcome(SettingState.NOT_KNOWN, words)
        finally:
            connection.close()
        if not answer[len(_CDR_HEADER) :].strip(b"\0"):
            words = f"{service.name} of {self} answers that the payload was not set"
            return SettingOutcome(SettingState.NOT_SET, words)
        words = f"{service.name} answers that {payload.mass:.3f} kg were set; no topic reports it"
        return SettingOutcome(SettingState.SET, words)


def publish_payload(
    controller: Ros2Controller, payload: Payload, *, topic: str = PAYLOAD_TOPIC
) -> None:
    """Publishes a weighed payload as `geometry_msgs/InertiaStamped`, once.

    The inertia is about the centre of mass, as ROS has it; the frame is the payload's.

    Args:
        controller: the arm behind a bridge that accepts messages
        payload: the payload
        topic: name of the topic
    """
    with Ros2Publisher(controller, topic=topic) as publisher:
        publisher.publish_payload(payload)


class _RequestField(NamedTuple):
    """A field of a request to set a payload.

    Attributes:
        kind: type of the field, without '/msg'
        name: name of the field
    """

    kind: str
    name: str

    @property
    def is_inertia(self) -> bool:
        """Whether it takes mass, centre and inertia together."""
        return self.kind == "geometry_msgs/Inertia" and self.name in _INERTIA_FIELDS

    @property
    def is_moment(self) -> bool:
        """Whether it takes one number of the inertia."""
        return self.kind in _NUMBERS and self.name in _MOMENTS

    def packed(self, payload: ControllerPayload, transition_s: float) -> _PackedField | None:
        """Its values as bytes; None for a field that is not known."""
        if self.is_inertia:
            xx, yy, zz, xy, xz, yz = payload.inertia
            values = (payload.mass, *payload.cog, xx, xy, xz, yy, yz, zz)
            return _PackedField.of("d", values)
        if self.kind == "geometry_msgs/Vector3" and self.name == "center_of_gravity":
            return _PackedField.of("d", payload.cog)
        if self.kind == "builtin_interfaces/Duration" and self.name == _TRANSITION:
            seconds, nanoseconds = divmod(round(transition_s * 1e9), 10**9)
            return _PackedField(4, struct.pack("<iI", seconds, nanoseconds))
        if self.kind not in _NUMBERS:
            return None
        numbers = dict(zip(_MOMENTS, payload.inertia, strict=True))
        numbers |= {"mass": payload.mass, _TRANSITION: transition_s}
        if self.name not in numbers:
            return None
        return _PackedField.of(_NUMBERS[self.kind], (numbers[self.name],))


class _PackedField(NamedTuple):
    """The bytes of a field.

    Attributes:
        alignment: its first byte lies at a multiple of this
        data: little-endian
    """

    alignment: int
    data: bytes

    @classmethod
    def of(cls, code: str, values: Sequence[float]) -> _PackedField:
        """Numbers of one kind.

        Args:
            code: of the kind, as in `struct`
            values: the numbers
        """
        return cls(struct.calcsize(code), struct.pack(f"<{len(values)}{code}", *values))


def _request_fields(service: Service) -> tuple[_RequestField, ...]:
    """The fields of a request; a refusal where one of them is not known, or the mass is missing."""
    if not service.fields:
        package = service.kind.partition("/")[0]
        raise SourceFailed(
            f"the fields of {service.name} are not known: install the package {package}, and source"
            " its setup file, where the bridge or the node runs"
        )
    fields = []
    for line in service.fields:
        kind, _, name = line.replace("/msg/", "/").partition(" ")
        fields.append(_RequestField(kind, name))
    known = all(field.packed(ControllerPayload(), 0.0) is not None for field in fields)
    takes_mass = any(field.is_inertia or field.name == "mass" for field in fields)
    if not (known and takes_mass):
        listed = ", ".join(f"{field.kind} {field.name}" for field in fields)
        raise SourceFailed(f"{service.name} takes {listed}: such a driver is not known")
    return tuple(fields)


def _takes_inertia(service: Service) -> bool:
    fields = _request_fields(service)
    if any(field.is_inertia for field in fields):
        return True
    return {field.name for field in fields if field.is_moment} == set(_MOMENTS)


def _payload_request(service: Service, payload: ControllerPayload, transition_s: float) -> bytes:
    """The bytes of a request to set a payload: little-endian, numbers aligned to their size."""
    data = b""
    for field in _request_fields(service):
        packed = field.packed(payload, transition_s)
        if packed is not None:
            data += bytes(-len(data) % packed.alignment) + packed.data
    return _CDR_HEADER + data
