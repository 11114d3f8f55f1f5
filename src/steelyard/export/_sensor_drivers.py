"""A payload for programs that subtract its weight from the readings of a wrist sensor.

All of them hold mass and centre of mass in the frame of the sensor, and model a reading as the
wrench of the load on the sensor, with g pointing where things fall:

    force = zero + m g,   torque = zero + c x m g

- force_torque_tools (ROS): the zero too, as the bias. That of a weighed payload has the same sign.
- control_toolbox (ros2_control): the filter control_filters/GravityCompensationWrench, with mass
  and field of gravity. Older versions hold the weight m g instead (`CoG.force`).
- cartesian_controllers (FZI): the maps `gravity` and `tool` of the force and the compliance
  controller. Only the versions for ROS 1 read them.
"""

from __future__ import annotations

import numpy as np

from steelyard._units import GRAVITY_DOWN
from steelyard.export._load import Load, Target
from steelyard.export._text import commented, decimal, decimals

_LEVEL_BASE_NOTE = (
    "gravity is that of a level base; for a tilted or hanging arm turn it into the frame of the"
    " base, and use the size of g with which the payload was weighed."
)
_ZERO = (
    "The format has no zero of the sensor: tare it beforehand, so that its reading is that of the"
    " load alone."
)
_SIGN = (
    "The weight is subtracted as the wrench of the load on the sensor; a driver that reports the"
    " opposite sign needs a negative field of gravity."
)


def _sensor_calibration(load: Load) -> str:
    """The YAML file with bias, frame, centre of mass and mass."""
    notes = [
        "bias: reading without a load, as the wrench of the load on the sensor; negate all six"
        " numbers if the driver reports the opposite sign.",
        "gripper_com_pose: x y z of the centre of mass; its three angles have no meaning and are"
        " 0.",
        f"gripper_com_frame_id: replace '{load.body.frame}' with the frame_id of the sensor's"
        " messages.",
    ]
    units = "kg; m, N and Nm in the frame of the sensor"
    if load.bias is None:
        bias = np.zeros(6)
    else:
        bias = load.bias
    return commented(
        "#",
        load.head("force_torque_tools", units, notes=notes, left_out="the inertia"),
        f"bias: [{', '.join(decimals(bias, 6))}]",
        f"gripper_com_frame_id: {load.body.frame}",
        f"gripper_com_pose: [{', '.join(decimals(load.body.com, 7))}, 0.0, 0.0, 0.0]",
        f"gripper_mass: {decimal(load.body.mass, 6)}",
    )


def _gravity_filter(load: Load) -> str:
    """The parameters of control_filters/GravityCompensationWrench in a chain of filters."""
    frame = load.body.frame
    mass = decimal(load.body.mass, 6)
    com = ", ".join(decimals(load.body.com, 7))
    weight = ", ".join(decimals(load.body.mass * np.array(GRAVITY_DOWN), 6))
    field = ", ".join(decimals(GRAVITY_DOWN, 6))
    notes = [
        "Put the block below sensor_filter_chain into the ros__parameters of the node that has the"
        " chain, say force_torque_sensor_broadcaster.",
        f"world_frame, sensor_frame: replace 'world' and '{frame}' with the frames of your tf tree;"
        f" {_LEVEL_BASE_NOTE}",
        _SIGN,
        _ZERO,
        "Older versions of control_toolbox want the weight: instead of tool write"
        f" CoG: {{pos: [{com}], force: [{weight}]}}.",
    ]
    units = "kg; m in the frame of the sensor; m/s^2 in the world frame"
    return commented(
        "#",
        load.head("control_toolbox (ros2_control)", units, notes=notes, left_out="the inertia"),
        "/**:",
        "  ros__parameters:",
        "    sensor_filter_chain:",
        "      filter1:",
        "        name: gravity_compensation",
        "        type: control_filters/GravityCompensationWrench",
        "        params:",
        "          world_frame: world",
        f"          sensor_frame: {frame}",
        "          tool:",
        f"            CoG: [{com}]",
        f"            gravity_field: [{field}]",
        f"            mass: {mass}",
    )


def _cartesian_controllers(load: Load) -> str:
    """The maps gravity and tool of a CartesianForceController or CartesianComplianceController."""
    notes = [
        "Put these two maps into the configuration of the controller; ft_sensor_ref_link must be"
        f" the frame of tool, '{load.body.frame}' here.",
        f"gravity: in the frame of robot_base_link; {_LEVEL_BASE_NOTE}",
        "Call the service signal_taring of the controller after the sensor was tared.",
        "The versions for ROS 2 do not read these maps: compensate the wrench before it reaches"
        " the controller (export to gravity-filter).",
    ]
    axes = dict(zip("xyz", decimals(GRAVITY_DOWN, 6), strict=True))
    com = zip("xyz", decimals(load.body.com, 7), strict=True)
    units = "kg; m in the frame of the sensor; m/s^2 in the frame of the base"
    return commented(
        "#",
        load.head("cartesian_controllers (FZI)", units, notes=notes, left_out="the inertia"),
        f"gravity: {{x: {axes['x']}, y: {axes['y']}, z: {axes['z']}}}",
        "tool:",
        f"  mass: {decimal(load.body.mass, 6)}",
        *(f"  com_{axis}: {value}" for axis, value in com),
    )


SENSOR_DRIVERS = {
    "ft-yaml": Target(
        "force_torque_tools (ROS), YAML",
        _sensor_calibration,
        inertia=False,
        in_sensor_frame=True,
        holds_zero=True,
    ),
    "gravity-filter": Target(
        "control_toolbox (ros2_control), filter GravityCompensationWrench",
        _gravity_filter,
        inertia=False,
        in_sensor_frame=True,
    ),
    "cartesian-controllers": Target(
        "cartesian_controllers (FZI), maps gravity and tool",
        _cartesian_controllers,
        inertia=False,
        in_sensor_frame=True,
    ),
}
"""Formats of programs that compensate the weight on a wrist sensor, by name."""
