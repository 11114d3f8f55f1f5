"""Which controllers and programs a payload can be written for, and the one door to all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from numpy.typing import ArrayLike

from steelyard.errors import InvalidInertia, UnknownName
from steelyard.io.export.abb import rapid
from steelyard.io.export.fanuc import payload_schedule
from steelyard.io.export.franka import desk
from steelyard.io.export.franka import ros2 as franka_ros2
from steelyard.io.export.ft_yaml import calibration
from steelyard.io.export.kuka import krl
from steelyard.io.export.load import ErrorLimits, Load, doubts_about, load_of
from steelyard.io.export.mecademic import set_payload
from steelyard.io.export.simulators import mjcf_body, urdf_link
from steelyard.io.export.universal_robots import ros2 as ur_ros2
from steelyard.io.export.universal_robots import urscript
from steelyard.payload import Payload
from steelyard.wrist.payload import WrenchPayload


@dataclass(frozen=True)
class Target:
    """A form that a payload can be written in.

    Attributes:
        words: what reads it
        write: the text of a load
        inertia: whether it is told the inertia
        in_sensor_frame: whether it is told the body and the zero drift in the frame of a wrist sensor
    """

    words: str
    write: Callable[[Load], str]
    inertia: bool = True
    in_sensor_frame: bool = False


EXPORTS: dict[str, Target] = {
    "ur": Target("Universal Robots, URScript set_target_payload", urscript),
    "ur-ros2": Target("Universal Robots, ROS 2 service ur_msgs/srv/SetPayload", ur_ros2),
    "franka": Target("Franka Desk, endeffector-config.json", desk),
    "franka-ros2": Target("franka_ros2 service SetLoad, libfranka setLoad", franka_ros2),
    "abb": Target("ABB RAPID, loaddata", rapid),
    "kuka": Target("KUKA KRL, LOAD_DATA", krl),
    "fanuc": Target("FANUC payload schedule, to be typed in", payload_schedule),
    "mecademic": Target("Mecademic, SetPayload", set_payload, inertia=False),
    "urdf": Target("URDF, a link fixed to the flange", urdf_link),
    "mjcf": Target("MuJoCo, a body", mjcf_body),
    "ft-yaml": Target("force_torque_tools (ROS), YAML", calibration, inertia=False, in_sensor_frame=True),
}
"""The targets by name."""


def export_payload(
    payload: Payload | WrenchPayload,
    *,
    to: str,
    T_target_payload: ArrayLike | None = None,
    name: str = "payload",
    number: int = 1,
    limits: ErrorLimits | None = None,
    force: bool = False,
) -> str:
    """The text of a payload for a controller or a simulator, with frame, units and doubts as comments.

    Args:
        payload: from joint torques, or from a wrist sensor
        to: one of `EXPORTS`
        T_target_payload: the frame that the payload was weighed in (flange or sensor), in the frame that the
            target wants, (4, 4); by default they are the same, which for a wrist sensor must be said
        name: what the payload is called where a format names it
        number: of the payload where a format counts them
        limits: how uncertain it may be; 10 % of the mass and 20 mm by default
        force: write it in spite of doubts, which the text then repeats
    """
    load = load_for(payload, to=to, T_target_payload=T_target_payload, name=name, number=number)
    doubts = doubts_of(load, to, limits or ErrorLimits())
    if doubts and not force:
        raise InvalidInertia(f"not exported: {'; '.join(doubts)}; weigh again, or use force")
    return export_load(load, to, forced=doubts)


def load_for(
    payload: Payload | WrenchPayload,
    *,
    to: str,
    T_target_payload: ArrayLike | None = None,
    name: str = "payload",
    number: int = 1,
) -> Load:
    """A payload in the frame that a target wants.

    Args:
        payload: from joint torques, or from a wrist sensor
        to: one of `EXPORTS`
        T_target_payload: as in `export_payload`
        name: as in `export_payload`
        number: as in `export_payload`
    """
    target = target_named(to)
    return load_of(
        payload,
        T_target_payload=T_target_payload,
        in_sensor_frame=target.in_sensor_frame,
        name=name,
        number=number,
    )


def doubts_of(load: Load, to: str, limits: ErrorLimits) -> list[str]:
    """Why a load should not go to a target, a sentence each; empty when nothing speaks against it.

    Args:
        load: in the frame of the target
        to: one of `EXPORTS`
        limits: how uncertain it may be
    """
    target = target_named(to)
    return doubts_about(load, limits, inertia=target.inertia, bias=target.in_sensor_frame)


def export_load(load: Load, to: str, *, forced: list[str]) -> str:
    """The text of a load for a target.

    Args:
        load: in the frame of the target
        to: one of `EXPORTS`
        forced: doubts that are overruled; the text repeats them
    """
    return target_named(to).write(replace(load, forced=tuple(forced)))


def target_named(to: str) -> Target:
    """The target of a name.

    Args:
        to: one of `EXPORTS`
    """
    if to not in EXPORTS:
        raise UnknownName(f"payloads are not exported to '{to}'; there are {', '.join(EXPORTS)}")
    return EXPORTS[to]
