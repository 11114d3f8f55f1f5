"""ROS bags without ROS: the same numbers, joints by name, header clock, refusals."""

import json
import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest
from rosbags.rosbag1 import Writer as Ros1Writer
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from steelyard.errors import MissingExtra, UnclearEffort, UnknownName, UnreadableFile
from steelyard.io import read, recording_blocks, write
from steelyard.io._wrist import SensorDescription
from steelyard.recording._columns import Requested
from steelyard.robot import load_robot
from steelyard.verdict import DoubtKind
from steelyard.workflow._data import Run
from steelyard.wrist import WristRecording

STORE = get_typestore(Stores.ROS2_HUMBLE)
START_NS = 1_700_000_000_123_456_789
ARM = ("shoulder", "elbow", "wrist")
UR = tuple(load_robot("ur10e").joint_names)
TORQUE = {"tau": "effort"}


def message(kind, *fields):
    return STORE.types[kind](*fields)


def header(ns, frame=""):
    stamp = message("builtin_interfaces/msg/Time", int(ns // 10**9), int(ns % 10**9))
    return message("std_msgs/msg/Header", stamp, frame)


def joint_state(ns, names, q, v=(), effort=()):
    numbers = (np.array(x, dtype=float) for x in (q, v, effort))
    return message("sensor_msgs/msg/JointState", header(ns), list(names), *numbers)


def wrench(ns, values, frame="tool0"):
    force, torque = (
        message("geometry_msgs/msg/Vector3", *map(float, part)) for part in (values[:3], values[3:])
    )
    return message(
        "geometry_msgs/msg/WrenchStamped",
        header(ns, frame),
        message("geometry_msgs/msg/Wrench", force, torque),
    )


def write_bag(path, messages, *, plugin=StoragePlugin.SQLITE3, compressed=None):
    """A bag with (topic, when the recorder got it [ns], message) in this order."""
    writer = Writer(path, version=9, storage_plugin=plugin)
    if compressed is not None:
        writer.set_compression(compressed, CompressionFormat.ZSTD)
    with writer:
        connections = {}
        for topic, received, item in messages:
            kind = item.__msgtype__
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=STORE)
            writer.write(connections[topic], int(received), STORE.serialize_cdr(item, kind))
    return path


@dataclass
class Motion:
    """Synthetic states of three joints at about 500 Hz, with jitter and a recording delay."""

    rng: np.random.Generator
    names: tuple = ARM
    rows: int = 60
    ns: np.ndarray = field(init=False)

    def __post_init__(self):
        n = len(self.names)
        self.ns = START_NS + np.cumsum(self.rng.integers(1_900_000, 2_100_000, self.rows))
        self.delay = self.rng.integers(100_000, 900_000, self.rows)
        self.q, self.v, self.effort = self.rng.standard_normal((3, self.rows, n))

    def states(self, topic="/joint_states", *, order=None, stamped=True):
        order = order or [list(range(len(self.names)))] * self.rows
        for k, ns in enumerate(self.ns):
            p = order[k]
            names = [self.names[i] for i in p]
            state = joint_state(
                ns if stamped else 0, names, self.q[k, p], self.v[k, p], self.effort[k, p]
            )
            yield topic, ns + self.delay[k], state

    def require_same(self, recording, channel="tau"):
        np.testing.assert_array_equal(recording.q, self.q)
        np.testing.assert_array_equal(recording.v, self.v)
        np.testing.assert_array_equal(getattr(recording, channel), self.effort)
        np.testing.assert_array_equal(recording.t, (self.ns - self.ns[0]) / 1e9)


@pytest.fixture
def motion(rng):
    return Motion(rng)


@pytest.mark.parametrize("plugin", list(StoragePlugin))
@pytest.mark.parametrize("whole", [True, False])
def test_numbers_order_and_clock_come_back(tmp_path, motion, plugin, whole):
    path = write_bag(tmp_path / "bag", motion.states(), plugin=plugin)
    if not whole:
        path = next(file for file in path.iterdir() if file.suffix in (".db3", ".mcap"))
    recording = read(path, columns=TORQUE)
    motion.require_same(recording)
    assert recording.joint_names == ARM
    assert recording.current is None
    assert recording.epoch_s == pytest.approx(motion.ns[0] / 1e9, abs=1e-6)
    assert recording.source == path.name
    assert recording.notes == (
        "q is from /joint_states, the only JointState topic",
        "joints are in the order of the messages: shoulder, elbow, wrist",
        "tau is the effort of /joint_states, as requested",
    )


def test_a_gripper_is_a_topic_of_one_number_without_stamps(tmp_path, motion):
    """Each row has the last state that was received before the row was."""
    changes = [(5, True), (20, False), (40, True)]
    states = list(motion.states())
    pulses = [
        ("/closed", states[k][1] - 1, message("std_msgs/msg/Bool", value)) for k, value in changes
    ]
    path = write_bag(tmp_path / "bag", sorted([*states, *pulses], key=lambda one: one[1]))
    found = read(path, columns={**TORQUE, "gripper": "/closed"})
    expected = np.full(60, np.nan)
    expected[5:20] = 1.0
    expected[20:40] = 0.0
    expected[40:] = 1.0
    np.testing.assert_array_equal(found.gripper[:, 0], expected)
    assert "the gripper is /closed; each row has its last state before" in found.notes


def test_a_gripper_is_a_joint_of_the_same_topic(tmp_path, motion):
    states = list(motion.states())
    fingers = [
        ("/joint_states", states[k][1] - 1, joint_state(motion.ns[k] - 1, ["finger"], [position]))
        for k, position in [(0, 0.1), (30, 0.7)]
    ]
    path = write_bag(tmp_path / "bag", sorted([*states, *fingers], key=lambda one: one[1]))
    found = read(path, columns={**TORQUE, "gripper": "finger"}, joint_names=ARM)
    np.testing.assert_array_equal(found.gripper[:, 0], [0.1] * 30 + [0.7] * 30)
    with pytest.raises(UnknownName, match=r"no gripper 'thumb'.*there are none.*elbow, finger"):
        read(path, columns={**TORQUE, "gripper": "thumb"}, joint_names=ARM)


def test_a_bag_of_ros1(tmp_path, motion):
    path = tmp_path / "old.bag"
    store = get_typestore(Stores.ROS1_NOETIC)
    kind = "sensor_msgs/msg/JointState"
    with Ros1Writer(path) as writer:
        connection = writer.add_connection("/joint_states", kind, typestore=store)
        for k, (_, received, item) in enumerate(motion.states()):
            stamp = store.types["builtin_interfaces/msg/Time"](
                item.header.stamp.sec, item.header.stamp.nanosec
            )
            head = store.types["std_msgs/msg/Header"](k, stamp, "")
            state = store.types[kind](head, item.name, item.position, item.velocity, item.effort)
            writer.write(connection, int(received), store.serialize_ros1(state, kind))
    recording = read(path, columns=TORQUE)
    motion.require_same(recording)
    assert recording.joint_names == ARM
    (tmp_path / "cut.bag").write_bytes(path.read_bytes()[:3000])
    with pytest.raises(UnreadableFile, match=r"cut\.bag: the bag is damaged .*rosbag reindex"):
        read(tmp_path / "cut.bag", columns=TORQUE)


def test_joints_of_another_prefix_are_those_of_the_arm(tmp_path, rng):
    motion = Motion(rng, tuple(f"fer_joint{k}" for k in (1, 2, 3)))
    path = write_bag(tmp_path / "bag", motion.states())
    wanted = ("panda_joint1", "panda_joint3", "panda_joint2")
    recording = read(path, columns=TORQUE, joint_names=wanted)
    assert recording.joint_names == wanted
    np.testing.assert_array_equal(recording.q, motion.q[:, [0, 2, 1]])
    assert any("fer_joint1 is panda_joint1" in note for note in recording.notes)
    for other in (("left_joint1", "left_joint2", "left_joint3"), ("panda_joint1", "panda_joint2")):
        with pytest.raises(UnreadableFile, match="no message of /joint_states has all of"):
            read(path, columns=TORQUE, joint_names=other)


@pytest.mark.parametrize("mode", [CompressionMode.FILE, CompressionMode.MESSAGE])
def test_compressed_bags(tmp_path, motion, mode):
    path = write_bag(tmp_path / "bag", motion.states(), compressed=mode)
    motion.require_same(read(path, columns=TORQUE))


def test_a_bag_becomes_parquet_and_blocks(tmp_path, motion):
    path = write_bag(tmp_path / "bag", motion.states())
    recording = read(path, columns={"current": "effort"})
    motion.require_same(recording, "current")
    write(recording, tmp_path / "a.parquet")
    motion.require_same(read(tmp_path / "a.parquet"), "current")
    blocks = list(recording_blocks(path, block_s=0.05, overlap_s=0.0, requested=Requested(TORQUE)))
    assert sum(map(len, blocks)) == len(recording)


def test_joints_go_by_name_in_whatever_order_each_message_has(tmp_path, motion, rng):
    order = [list(rng.permutation(3)) for _ in range(motion.rows)]
    path = write_bag(tmp_path / "bag", motion.states(order=order))
    motion.require_same(read(path, columns=TORQUE, joint_names=ARM))
    first = read(path, columns=TORQUE)
    assert first.joint_names == tuple(ARM[i] for i in order[0])
    np.testing.assert_array_equal(first.tau, motion.effort[:, order[0]])


def test_some_of_the_joints(tmp_path, motion):
    path = write_bag(tmp_path / "bag", motion.states())
    recording = read(path, columns=TORQUE, joint_names=("wrist", "shoulder"))
    np.testing.assert_array_equal(recording.q, motion.q[:, [2, 0]])
    with pytest.raises(
        UnreadableFile, match=r"has all of wrist, finger; there are shoulder, elbow, wrist \(60"
    ):
        read(path, columns=TORQUE, joint_names=("wrist", "finger"))
    with pytest.raises(UnreadableFile, match=r"`joint_names=\['wrist', 'shoulder'\]`$"):
        read(path, columns=TORQUE, joint_names=("left_wrist", "left_shoulder"))


def test_a_gripper_on_the_same_topic_is_left_out_and_counted(tmp_path, motion):
    gripper = [
        ("/joint_states", ns, joint_state(ns, ["finger"], [0.04])) for ns in motion.ns[::3] + 1000
    ]
    both = sorted([*motion.states(), *gripper], key=lambda item: item[1])
    path = write_bag(tmp_path / "bag", both)
    with pytest.raises(
        UnreadableFile, match=r"about different joints: .*finger \(20 messages\).*joint_names"
    ):
        read(path, columns=TORQUE)
    recording = read(path, columns=TORQUE, joint_names=ARM)
    motion.require_same(recording)
    assert "left out 20 messages of /joint_states about other joints" in recording.notes
    unstamped = sorted([*motion.states(stamped=False), *gripper], key=lambda item: item[1])
    path = write_bag(tmp_path / "unstamped", unstamped)
    recording = read(path, columns=TORQUE, joint_names=ARM)
    np.testing.assert_array_equal(recording.q, motion.q)
    assert any(note.startswith("stamps are zero") for note in recording.notes)


def test_the_topic_is_named_where_there_are_several(tmp_path, motion, rng):
    other = Motion(rng)
    both = sorted([*motion.states("/left"), *other.states("/right")], key=lambda item: item[1])
    path = write_bag(tmp_path / "bag", both)
    with pytest.raises(
        UnreadableFile, match=r"2 topics hold JointState: /left, /right; choose one with `columns="
    ):
        read(path, columns=TORQUE)
    other.require_same(read(path, columns={"q": "/right", **TORQUE}))
    with pytest.raises(
        UnknownName, match=r"no JointState topic '/middle'; the bag holds /left \(sensor_msgs/msg"
    ):
        read(path, columns={"q": "/middle", **TORQUE})


def test_what_effort_is_must_be_said(tmp_path, motion):
    path = write_bag(tmp_path / "bag", motion.states())
    with pytest.raises(
        UnreadableFile,
        match=r"a torque or a current depending on the driver; give `columns=\{'tau': 'effort'\}",
    ):
        read(path)
    recording = read(path, columns={"tau": []})
    assert recording.channels == ("q", "v")
    with pytest.raises(UnreadableFile, match="effort cannot be both tau and current"):
        read(path, columns={"tau": "effort", "current": "effort"})


def test_positions_alone(tmp_path, motion):
    states = [
        ("/js", ns, joint_state(ns, ARM, q)) for ns, q in zip(motion.ns, motion.q, strict=True)
    ]
    path = write_bag(tmp_path / "bag", states)
    recording = read(path)
    assert recording.channels == ("q",)
    assert "/js has no velocity of each joint" in recording.notes
    with pytest.raises(UnreadableFile, match="/js has no effort; nothing can be read as tau"):
        read(path, columns=TORQUE)


def test_a_message_without_effort_is_a_row_of_nan(tmp_path, motion):
    states = list(motion.states())
    topic, received, _ = states[7]
    states[7] = (topic, received, joint_state(motion.ns[7], ARM, motion.q[7], motion.v[7]))
    recording = read(write_bag(tmp_path / "bag", states), columns=TORQUE)
    assert np.isnan(recording.tau[7]).all()
    assert np.isfinite(np.delete(recording.tau, 7, axis=0)).all()


@pytest.mark.parametrize(
    ("columns", "error", "text"),
    [
        ({"tau": "torque"}, UnknownName, "tau of a bag is 'effort' of a JointState, got 'torque'"),
        ({"q_commanded": "/x"}, UnknownName, "a bag gives no channel 'q_commanded'; it gives q"),
        ({"q": ["/a", "/b"]}, UnknownName, "q of a bag is a topic, got 2 names"),
        ({"q": []}, UnknownName, "q of a bag is a topic, got 0 names"),
    ],
)
def test_wishes_that_no_bag_fulfils(tmp_path, motion, columns, error, text):
    path = write_bag(tmp_path / "bag", motion.states())
    with pytest.raises(error, match=text):
        read(path, columns=columns)


def test_degrees_are_refused(tmp_path, motion):
    path = write_bag(tmp_path / "bag", motion.states())
    with pytest.raises(UnreadableFile, match="a JointState is in radians"):
        read(path, columns=TORQUE, degrees=True)


def test_broken_messages(tmp_path, motion):
    good = list(motion.states())
    for name, state, text in (
        (
            "twice",
            joint_state(motion.ns[0], ("a", "a", "b"), [1, 2, 3]),
            "name a joint twice or none",
        ),
        (
            "short",
            joint_state(motion.ns[0], ARM, [1, 2]),
            "message 1 .* 3 joints but has 2 values of position",
        ),
    ):
        path = write_bag(tmp_path / name, [("/joint_states", START_NS, state), *good])
        with pytest.raises(UnreadableFile, match=text):
            read(path, columns=TORQUE)
    empty = [
        ("/joint_states", ns, joint_state(ns, ARM, [], [1, 2, 3], [1, 2, 3])) for ns in motion.ns
    ]
    with pytest.raises(UnreadableFile, match="/joint_states has no positions"):
        read(write_bag(tmp_path / "empty", empty), columns=TORQUE)


def test_without_stamps_the_receiving_times_count_and_are_reported(tmp_path, motion):
    path = write_bag(tmp_path / "bag", motion.states(stamped=False))
    recording = read(path, columns=TORQUE)
    received = motion.ns + motion.delay
    np.testing.assert_array_equal(recording.t, (received - received[0]) / 1e9)
    assert "stamps are zero: times are those of reception, delays included" in recording.notes


def test_some_stamps_of_zero_are_left_out(tmp_path, motion):
    states = list(motion.states())
    for k in (0, 1):
        states[k] = (
            states[k][0],
            states[k][1],
            joint_state(0, ARM, motion.q[k], motion.v[k], motion.effort[k]),
        )
    recording = read(write_bag(tmp_path / "bag", states), columns=TORQUE)
    np.testing.assert_array_equal(recording.q, motion.q[2:])
    assert any(note.startswith("left out 2 messages of /joint_states") for note in recording.notes)


def test_late_messages_are_sorted_and_a_clock_that_was_set_is_refused(tmp_path, motion):
    states = list(motion.states())
    exchanged = [*states[:10], states[11], states[10], *states[12:]]
    arrivals = sorted(item[1] for item in states)
    exchanged = [
        (topic, when, item) for (topic, _, item), when in zip(exchanged, arrivals, strict=True)
    ]
    recording = read(write_bag(tmp_path / "late", exchanged), columns=TORQUE)
    motion.require_same(recording)
    assert any("out of order by up to" in note for note in recording.notes)
    motion.ns[30:] -= 10**9
    motion.delay[30:] += 10**9
    path = write_bag(tmp_path / "set", motion.states())
    with pytest.raises(
        UnreadableFile, match=r"set: the stamps of /joint_states go back by 0\.9\d+ s"
    ):
        read(path, columns=TORQUE)


# Universal Robots


@pytest.fixture
def ur(rng):
    return Motion(rng, names=UR)


def described(switch):
    param = f'<param name="use_currents_as_efforts">{switch}</param>'
    text = f'<robot name="ur10e"><ros2_control><hardware>{param}</hardware></ros2_control></robot>'
    return ("/robot_description", START_NS - 10**6, message("std_msgs/msg/String", text))


@pytest.mark.parametrize("prefix", ["", "left_"])
def test_the_effort_of_a_ur_is_no_torque(tmp_path, rng, prefix):
    ur = Motion(rng, names=tuple(prefix + name for name in UR))
    path = write_bag(tmp_path / "bag", ur.states())
    reason = (
        "effort is never the joint torque: it is actual_current_as_torque .*subtracts"
        " gravity.*'current': 'effort'"
    )
    with pytest.raises(UnreadableFile, match=reason):
        read(path, columns=TORQUE)
    with pytest.raises(UnreadableFile, match="effort is never the joint torque"):
        read(path, columns=TORQUE, joint_names=ur.names[1:4])
    with pytest.raises(UnclearEffort, match="publishes motor currents") as refused:
        read(path)
    assert "'tau': 'effort'" not in str(refused.value)  # which would be refused
    trusted = read(path, columns={"tau": "effort=torque"})
    ur.require_same(trusted, "tau")
    (doubt,) = Run("log", trusted).doubts
    assert (doubt.kind, doubt.blocks) == (DoubtKind.ASSUMED, False)
    assert "because the user vouches for it" in doubt.words
    recording = read(path, columns={"current": "effort"})
    ur.require_same(recording, "current")
    assert any(
        "a current only with use_currents_as_efforts:=true" in note for note in recording.notes
    )


def test_a_ur_that_says_what_its_effort_is(tmp_path, ur):
    path = write_bag(tmp_path / "off", [described("false"), *ur.states()])
    with pytest.raises(
        UnreadableFile, match="robot_description says that use_currents_as_efforts is off"
    ):
        read(path, columns={"current": "effort"})
    assert read(path, columns={"current": []}).channels == ("q", "v")
    path = write_bag(tmp_path / "on", [described("true"), *ur.states()])
    recording = read(path, columns={"current": "effort"})
    ur.require_same(recording, "current")
    assert not any("a current only with" in note for note in recording.notes)


@pytest.mark.parametrize("channel", ["tau", "current"])
def test_the_gravity_compensated_torque_by_its_name(tmp_path, motion, channel):
    path = write_bag(tmp_path / "bag", motion.states("/rtde/actual_current_as_torque"))
    with pytest.raises(
        UnreadableFile, match=rf"/rtde/actual_current_as_torque cannot serve as {channel}: the con"
    ):
        read(path, columns={channel: "effort"})
    with pytest.raises(
        UnreadableFile, match=rf"actual_current_as_torque cannot serve as {channel}: the controller"
    ):
        read(path, columns={channel: "actual_current_as_torque"})


# A wrist sensor beside the joints


def with_wrench(motion, rng, *, step_ns=1_000_000, frame="tool0", topic="/ft"):
    ns = np.arange(motion.ns[0] - 5 * step_ns, motion.ns[-1] + 5 * step_ns, step_ns)
    values = rng.standard_normal((len(ns), 6))
    readings = [
        (topic, when, wrench(when, row, frame)) for when, row in zip(ns, values, strict=True)
    ]
    return sorted([*motion.states(), *readings], key=lambda item: item[1]), ns, values


def test_each_row_has_the_nearest_wrench(tmp_path, motion, rng):
    messages, ns, values = with_wrench(motion, rng)
    path = write_bag(tmp_path / "bag", messages)
    recording = read(path, columns=TORQUE, wrench_convention="sensor_on_load")
    nearest = np.abs(ns[None, :] - motion.ns[:, None]).argmin(axis=1)
    np.testing.assert_array_equal(recording.wrench, values[nearest])
    assert (recording.wrench_frame, recording.wrench_convention) == ("tool0", "sensor_on_load")
    assert "wrench is from /ft, the only WrenchStamped topic" in recording.notes
    assert any("nearest in time" in note for note in recording.notes)
    motion.require_same(recording)


def test_the_wrench_needs_its_convention_and_one_frame(tmp_path, motion, rng):
    messages, _, _ = with_wrench(motion, rng)
    path = write_bag(tmp_path / "bag", messages)
    with pytest.raises(UnreadableFile, match="does not state its sign; give `wrench_convention`"):
        read(path, columns={"wrench": "/ft", **TORQUE})
    recording = read(path, columns=TORQUE)
    assert recording.wrench is None
    assert "not read: the wrench on /ft" in recording.notes
    named = read(path, columns=TORQUE, wrench_frame="sensor", wrench_convention="load_on_sensor")
    assert named.wrench_frame == "sensor"
    assert "the frame of the wrench is sensor, as requested; its headers name tool0" in named.notes
    messages, _, _ = with_wrench(motion, rng, frame="")
    path = write_bag(tmp_path / "nameless", messages)
    with pytest.raises(
        UnreadableFile, match=r"name 1 frames \(''\) instead of one; give `wrench_frame`"
    ):
        read(path, columns=TORQUE, wrench_convention="load_on_sensor")


def test_rows_without_a_wrench_nearby_are_nan(tmp_path, motion, rng):
    messages, _, _ = with_wrench(motion, rng)
    gap = (motion.ns[20], motion.ns[40])
    kept = [item for item in messages if item[0] != "/ft" or not gap[0] < item[1] < gap[1]]
    recording = read(
        write_bag(tmp_path / "bag", kept), columns=TORQUE, wrench_convention="load_on_sensor"
    )
    assert np.isnan(recording.wrench[23:38]).all()
    assert np.isfinite(recording.wrench[:20]).all()
    assert any("rows have none within 1.5 ms" in note for note in recording.notes)


def test_two_wrenches_and_clocks_that_differ(tmp_path, motion, rng):
    messages, _, _ = with_wrench(motion, rng)
    more, _, _ = with_wrench(motion, rng, topic="/base_ft")
    path = write_bag(tmp_path / "two", sorted([*messages, *more[:5]], key=lambda item: item[1]))
    with pytest.raises(
        UnreadableFile, match=r"2 topics hold WrenchStamped: /base_ft, /ft; choose one with"
    ):
        read(path, columns=TORQUE, wrench_convention="load_on_sensor")
    unstamped = [
        (topic, when, wrench(0, np.arange(6)) if topic == "/ft" else item)
        for topic, when, item in messages
    ]
    recording = read(
        write_bag(tmp_path / "unstamped", unstamped),
        columns=TORQUE,
        wrench_convention="load_on_sensor",
    )
    received = motion.ns + motion.delay
    np.testing.assert_array_equal(recording.t, (received - received[0]) / 1e9)
    np.testing.assert_array_equal(recording.wrench[3], np.arange(6))


def test_a_bag_with_joints_becomes_a_wrench_recording(tmp_path, ur, rng):
    messages, _, _ = with_wrench(ur, rng)
    path = write_bag(tmp_path / "bag", messages)
    robot = load_robot("ur10e")
    recording = read(
        path, columns={"tau": []}, joint_names=robot.joint_names, wrench_convention="sensor_on_load"
    )
    made = WristRecording.of_joints(recording, robot)
    np.testing.assert_array_equal(made.wrench, -recording.wrench)
    assert any("actual_TCP_force" in note for note in recording.notes)
    with pytest.raises(
        UnreadableFile, match="a wrench in a bag has no orientation; give a `robot`"
    ):
        SensorDescription(columns={"wrench": ["/ft"]}).recording(path)


# Files that are no whole bag


@pytest.mark.parametrize("plugin", list(StoragePlugin))
@pytest.mark.parametrize("left", [0.5, 0.95])
def test_a_file_cut_short_is_refused_in_one_line(tmp_path, motion, plugin, left):
    path = write_bag(tmp_path / "bag", motion.states(), plugin=plugin)
    file = next(file for file in path.iterdir() if file.suffix != ".yaml")
    file.write_bytes(file.read_bytes()[: int(left * file.stat().st_size)])
    for which in (path, file):
        with pytest.raises(UnreadableFile, match="its recorder did not finish it") as refusal:
            read(which, columns=TORQUE)
        assert "\n" not in str(refusal.value)


def test_bytes_overwritten_in_the_middle(tmp_path, motion):
    path = write_bag(tmp_path / "bag", motion.states(), plugin=StoragePlugin.MCAP)
    file = path / "bag.mcap"
    data = bytearray(file.read_bytes())
    data[2000:6000] = bytes(4000)
    file.write_bytes(data)
    with pytest.raises(UnreadableFile, match="the bag is damaged"):
        read(file, columns=TORQUE)


def test_missing_messages_are_reported(tmp_path, motion):
    path = write_bag(tmp_path / "bag", motion.states())
    metadata = path / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace("message_count: 60", "message_count: 63"))
    recording = read(path, columns=TORQUE)
    text = "incomplete: the index of the bag lists 63 messages of /joint_states, but 60 exist"
    assert text in recording.notes


def test_folders_and_names(tmp_path, motion):
    path = write_bag(tmp_path / "bag", motion.states())
    (path / "metadata.yaml").rename(tmp_path / "metadata.txt")
    with pytest.raises(
        UnreadableFile, match=r"metadata.yaml is missing.*give the file itself \(bag\.db3\)"
    ):
        read(path, columns=TORQUE)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(UnreadableFile, match="it is a folder, but not a ROS 2 bag"):
        read(tmp_path / "nothing")
    with pytest.raises(UnreadableFile, match=r"elsewhere: no such file \(in the folder"):
        read(tmp_path / "elsewhere")
    (path / "bag.db3").rename(tmp_path / "bag.csv")
    with pytest.raises(UnreadableFile, match="looks like an SQLite database, as bags"):
        read(tmp_path / "bag.csv")
    (tmp_path / "bag.mcap").write_text("t,q_0\n0,1\n")
    with pytest.raises(UnreadableFile, match="looks like neither Parquet nor NPZ nor a bag"):
        read(tmp_path / "bag.mcap")


def test_a_bag_without_joints_or_without_messages(tmp_path, motion, rng):
    only = [("/ft", ns, wrench(ns, np.arange(6))) for ns in motion.ns]
    path = write_bag(tmp_path / "ft", only)
    with pytest.raises(
        UnreadableFile, match=r"no topic holds sensor_msgs/msg/JointState; the bag holds /ft"
    ):
        read(path)
    with Writer(tmp_path / "none", version=9) as writer:
        writer.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=STORE)
    with pytest.raises(UnreadableFile, match="/joint_states has no messages"):
        read(tmp_path / "none")


def test_without_the_extra_it_says_which(tmp_path, motion, monkeypatch):
    path = write_bag(tmp_path / "bag", motion.states())
    monkeypatch.setitem(sys.modules, "rosbags.rosbag2", None)
    with pytest.raises(MissingExtra, match=r"this needs rosbags: pip install 'steelyard\[io\]'"):
        read(path, columns=TORQUE)


# The command line


def steelyard(*arguments):
    command = [sys.executable, "-m", "steelyard", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.thorough
def test_the_command_line_reads_a_bag_in_the_order_of_the_arm(tmp_path, rng):
    ur = Motion(rng, names=UR, rows=30)
    alphabetical = [sorted(range(6), key=lambda i: UR[i])] * ur.rows
    path = write_bag(tmp_path / "bag", ur.states(order=alphabetical))
    done = steelyard("check", path, "--robot", "ur10e", "--column", "current=effort", "--json")
    result = json.loads(done.stdout)
    assert "current is the effort of /joint_states, as requested" in result["notes"]
    assert not any("order of the messages" in note for note in result["notes"])
    done = steelyard(
        "check", path, "--column", "current=effort", "--joints", "elbow_joint,wrist_1_joint"
    )
    assert "30 rows, 2 joints" in done.stdout
    assert "note  current is the effort of /joint_states" in done.stdout
    table = tmp_path / "a.csv"
    table.write_text(
        "t,pos_a,ft_0,ft_1,ft_2,ft_3,ft_4,ft_5\n"
        + "".join(f"{k},0.{k},1,2,3,4,5,{k}\n" for k in range(9))
    )
    requests = ("--column", "q=pos_a", "--column", "wrench=ft_0,ft_1,ft_2,ft_3,ft_4,ft_5")
    done = steelyard(
        "check", table, *requests, "--wrench-convention", "load_on_sensor", "--wrench-frame", "ft"
    )
    assert "signals: q, wrench" in done.stdout
    done = steelyard("check", path, "--column", "effort")
    assert (done.returncode, done.stderr) == (
        2,
        "error: --column is SIGNAL=NAME, say tau=effort; got 'effort'\n",
    )
