"""The calibration of force_torque_tools (ROS): bias and gripper in the frame of the wrist sensor.

That package takes a reading for bias + m g, the weight that pulls at the sensor, g where things fall: what
the load does to the sensor. The zero drift of a weighed payload has the same sign.
"""

from __future__ import annotations

import numpy as np

from steelyard.io.export.load import Load
from steelyard.io.export.words import decimal, decimals, head


def calibration(load: Load) -> str:
    """The YAML file with bias, frame, centre of mass and mass.

    Args:
        load: in the frame of the wrist sensor
    """
    bias = np.zeros(6) if load.bias is None else load.bias
    notes = [
        "bias: what the sensor shows without a load, where it shows what the load does to it; negate all six"
        " where the driver shows the reverse.",
        "gripper_com_pose: x y z of the centre of mass; its three angles have no meaning and are 0.",
        f"gripper_com_frame_id: '{load.body.frame}' stands for the frame_id of the sensor's messages; put"
        " yours in.",
    ]
    units = "kg; m, N and Nm in the frame of the sensor"
    told = head(load, "force_torque_tools", units, notes=notes, left_out="the inertia")
    fields = [
        f"bias: [{', '.join(decimals(bias, 6))}]",
        f"gripper_com_frame_id: {load.body.frame}",
        f"gripper_com_pose: [{', '.join(decimals(load.body.com, 7))}, 0.0, 0.0, 0.0]",
        f"gripper_mass: {decimal(load.body.mass, 6)}",
    ]
    return "\n".join([*(f"# {words}" for words in told), *fields, ""])
