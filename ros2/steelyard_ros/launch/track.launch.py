"""Weighs what the arm carries while it moves, and publishes the payload.

    ros2 launch steelyard_ros track.launch.py model:=model.json effort:=current

Every argument is an option of `steelyard track`, of `steelyard track-wrist` (with `sensor:=...`),
or a part of the address. With `bridge:=true` the launch file also starts a foxglove_bridge and the
command reads that. Use it where steelyard is installed in another Python than that of ROS 2.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

ADDRESS = {
    "joints": "Topic of sensor_msgs/JointState; /joint_states, or the only one, by default.",
    "wrench": "Topic of geometry_msgs/WrenchStamped, for a wrist sensor.",
    "names": "Names of the joints in the order of the arm, separated by commas.",
}
"""Parts of the address, with their descriptions."""

TORQUE_OPTIONS = {
    "model": "The identified empty arm (.json): weigh with joint torques or motor currents.",
    "kinematics": "measured or commanded motion.",
    "tracker": "direct, or xu2024.",
}
"""Options of `steelyard track`, with their descriptions."""

WRIST_OPTIONS = {
    "sensor": "A wrist sensor (.toml): weigh with its wrench.",
    "robot": "The arm, for a wrist sensor.",
}
"""Options of `steelyard track-wrist`, with their descriptions."""

OPTIONS = {
    "accuracy": "Requested 95 % half-width of the mass [%].",
    "cutoff": "Of the low-pass filter [Hz].",
    "resume": "A saved state to continue from.",
    "save-state": "File for the state (.json).",
    "output": "File for the payload (.json).",
    "record": "File for every row (.parquet or .arrows).",
    "seconds": "How long [s].",
    "page": "Port of a page in the browser.",
}
"""Options of both commands."""

EFFORT = "What the effort of the joints is: tau, current, or nothing."
BRIDGE_PORT = "8765"


def address(values, *, bridge):
    """The address of the stream.

    Args:
        values: of the launch arguments, by name
        bridge: whether a bridge is read
    """
    query = [f"{name}={values[name]}" for name in ADDRESS if values[name]]
    if values["effort"]:
        query.append(f"{values['effort']}=effort")
    place = f"ros2://localhost:{BRIDGE_PORT}" if bridge else "ros2-node:"
    return place + ("?" + "&".join(query) if query else "")


def words(values, *, bridge):
    """The command and its options.

    Args:
        values: of the launch arguments, by name
        bridge: whether a bridge is read
    """
    by_sensor = bool(values["sensor"] or values["robot"])
    verb = "track-wrist" if by_sensor else "track"
    command = [values["steelyard"], verb, address(values, bridge=bridge)]
    for name in (*(WRIST_OPTIONS if by_sensor else TORQUE_OPTIONS), *OPTIONS):
        if values[name]:
            command += [f"--{name}", values[name]]
    if by_sensor and values["level"] == "true":
        command.append("--level")
    return [*command, "--publish", values["topic"]]


def started(context):
    """What is started: the command, and with `bridge:=true` a bridge before it."""
    names = [*ADDRESS, *TORQUE_OPTIONS, *WRIST_OPTIONS, *OPTIONS]
    names += ["effort", "level", "topic", "steelyard", "bridge"]
    values = {name: LaunchConfiguration(name).perform(context) for name in names}
    bridge = values["bridge"] == "true"
    actions = []
    if bridge:
        parameters = [{"port": int(BRIDGE_PORT), "capabilities": ["clientPublish", "services"]}]
        actions.append(
            Node(package="foxglove_bridge", executable="foxglove_bridge", parameters=parameters)
        )
    command = words(values, bridge=bridge)
    actions.append(ExecuteProcess(cmd=command, name="steelyard", output="screen"))
    return actions


def generate_launch_description():
    """The description that `ros2 launch` asks for."""
    described = {
        **ADDRESS,
        **TORQUE_OPTIONS,
        **WRIST_OPTIONS,
        **OPTIONS,
        "effort": EFFORT,
        "level": "true where the base below a wrist sensor is known to be level.",
    }
    arguments = [
        DeclareLaunchArgument(name, default_value="", description=text)
        for name, text in described.items()
    ]
    arguments += [
        DeclareLaunchArgument(
            "topic", default_value="/payload", description="Topic of the payload."
        ),
        DeclareLaunchArgument(
            "steelyard", default_value="steelyard", description="The command, or its path."
        ),
        DeclareLaunchArgument(
            "bridge", default_value="false", description="true to read a foxglove_bridge."
        ),
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=started)])
