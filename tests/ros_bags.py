"""ROS 2 bags of joint states for tests, written without ROS."""

from pathlib import Path

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_HUMBLE)
JOINT_STATE = "sensor_msgs/msg/JointState"
START_NS = 1_700_000_000_000_000_000


def write_joint_states(path: Path, names, t, q, effort) -> Path:
    """A bag with positions and efforts of an arm on /joint_states.

    Args:
        path: of the bag, a folder
        names: of the joints, n
        t: times, (N,) [s]
        q: positions, (N, n)
        effort: as the driver publishes it, (N, n)
    """
    kinds = ("builtin_interfaces/msg/Time", "std_msgs/msg/Header", JOINT_STATE)
    time, header, state = (STORE.types[kind] for kind in kinds)
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topic = writer.add_connection("/joint_states", JOINT_STATE, typestore=STORE)
        for when, position, row in zip(t, q, effort, strict=True):
            ns = START_NS + round(1e9 * when)
            stamp = header(time(ns // 10**9, ns % 10**9), "")
            message = state(stamp, list(names), position, np.zeros(0), row)
            writer.write(topic, ns, STORE.serialize_cdr(message, JOINT_STATE))
    return path
