"""An arm under ROS 2: topics, joints by name, meaning of effort, wrenches, modes, messages."""

import json
import sys
import threading
from collections import deque
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from conftest import steelyard
from live_helpers import event_kinds, loaded_panda, rows_of, taken, watched_panda
from ros2_bridge import (
    ARM,
    JOINT_STATE,
    ROBOT_MODE,
    SAFETY_MODE,
    STORE,
    UR,
    WRENCH,
    bridge,
    joint_state,
    mode,
    source,
    text,
    wrench,
)
from steelyard.errors import MissingExtra, SourceFailed, UnknownName, UnreadableFile
from steelyard.io import read
from steelyard.live import EventKind, Recorder, Ros2Controller, Stream, source_of
from steelyard.live._foxglove import Bridge, WrenchRows
from steelyard.robot import load_robot
from waiting import wait_until

STATES = {"/joint_states": JOINT_STATE}
UR_ORDER = load_robot("ur10e").joint_names


def sent(arm, rows, start=1):
    for k in range(start, start + rows):
        arm.publish("/joint_states", arm.row(k, 100 + k / 500))


# --- addresses


def test_addresses_say_topics_joints_and_what_the_effort_is():
    assert source_of("ros2://arm") == Ros2Controller("arm", 8765)
    assert source_of("ros2://arm?current=effort", joint_names=ARM) == Ros2Controller(
        "arm", effort="current", joint_names=ARM
    )
    found = source_of("ros2://arm:9?joints=/a&wrench=/ft&tau=effort&names=x,y", joint_names=ARM)
    assert found == Ros2Controller("arm", 9, "/a", "tau", "/ft", ("x", "y"))
    assert source_of("ros2://arm?tau=&wrench=") == Ros2Controller("arm", effort="", wrench="")
    assert str(found) == "ros2://arm:9"
    assert source_of("ros2://arm?gripper=/closed") == Ros2Controller("arm", gripper="/closed")


def test_addresses_that_mean_nothing_are_refused():
    with pytest.raises(
        UnknownName, match=r"an address has no 'torque'; known are joints, wrench, names"
    ):
        source_of("ros2://arm?torque=effort")
    with pytest.raises(
        UnknownName, match=r"tau of a bag is 'effort' of a JointState, got 'torque'"
    ):
        source_of("ros2://arm?tau=torque")
    with pytest.raises(UnreadableFile, match="effort cannot be both tau and current"):
        source_of("ros2://arm?tau=effort&current=effort")
    with pytest.raises(UnreadableFile, match="actual_current_as_torque cannot serve as tau"):
        source_of("ros2://arm?tau=actual_current_as_torque")
    for address in ("ros2://", "ros2://arm:x", "ur://arm?tau=effort"):
        with pytest.raises(UnknownName, match=r"a source is ur://HOST, .*ros2://HOST:PORT"):
            source_of(address)


# --- rows


def test_joints_go_by_name_in_the_order_of_the_arm():
    with bridge() as arm, Stream(source(arm)) as stream:
        sent(arm, 5)
        rows = rows_of(taken(stream, rows=5))
    assert stream.columns == (
        "t",
        *(f"{word}.{name}" for word in ("q", "v", "tau") for name in ARM),
    )
    q = np.array([1.0, 1.1, 1.2])
    np.testing.assert_allclose(rows[0].values, [100.002, *q, *2 * q, *3 * q], atol=1e-9)
    assert rows[0].wrench is None


def test_joints_of_a_ur_are_in_their_order_where_no_arm_is_known():
    with bridge(names=UR) as arm, Stream(source(arm, effort="current", joint_names=())) as stream:
        assert stream.columns[1:7] == tuple(f"q.{name}" for name in UR_ORDER)
        seen = taken(stream, until=lambda x: x[0] is EventKind.TEXT)
    assert (
        "the effort of a UR is a current only with use_currents_as_efforts:=true" in seen[-1].words
    )


def test_messages_about_other_joints_and_overtaken_ones_are_left_out():
    with bridge() as arm, Stream(source(arm)) as stream:
        sent(arm, 30)
        arm.publish("/joint_states", joint_state(100.0601, ["gripper"], [0.1]))
        arm.publish("/joint_states", arm.row(99, 100.05))
        sent(arm, 5, start=31)
        seen = taken(stream, rows=35)
    assert [round(row.values[1]) for row in rows_of(seen)] == list(range(1, 36))
    (said,) = [x.words for x in seen if x[0] is EventKind.TEXT]
    assert "1 messages of /joint_states came late, after others" in said


def test_messages_without_stamps_have_the_time_of_the_bridge():
    with bridge() as arm:
        arm.latched["/joint_states"] = joint_state(0, ARM, [0, 0, 0], effort=[0, 0, 0])
        with Stream(source(arm)) as stream:
            arm.publish("/joint_states", joint_state(0, ARM, [1, 2, 3], effort=[1, 1, 1]))
            seen = taken(stream, rows=1)
    assert rows_of(seen)[0].t > 1e9
    assert stream.columns == ("t", *(f"{word}.{name}" for word in ("q", "tau") for name in ARM))
    assert any(
        "has no stamps: time is when the bridge sent" in x.words for x in seen if x[0] == "text"
    )


def test_each_row_has_the_wrench_nearest_in_time():
    with bridge(STATES | {"/ft": WRENCH}) as arm, Stream(source(arm)) as stream:
        wait_until(lambda: {"/joint_states", "/ft"} <= arm.wanted_topics)
        for k in range(1, 61):
            arm.publish("/joint_states", arm.row(k, 100 + k / 500))
            if k % 2 == 0:
                arm.publish("/ft", wrench(100 + k / 500 + 3e-4, [k, 2, 3, 4, 5, 6]))
        rows = rows_of(taken(stream, rows=60))
        assert [row.wrench[0] for row in rows[:4]] == [2, 2, 2, 4]
        assert rows[0].wrench[1:] == (2, 3, 4, 5, 6)
        assert stream.columns[-6:] == tuple(
            f"wrench_stamped.{axis}" for axis in ("fx", "fy", "fz", "tx", "ty", "tz")
        )
        sent(arm, 60, start=61)  # a silent sensor: rows wait at most 50 ms
        late = rows_of(taken(stream, rows=30))
        assert len(late) >= 30
        assert late[-1].wrench is None


def test_a_wrench_counts_for_one_and_a_half_of_its_own_steps():
    """The step is the median of twenty; before, a wrench counts as long as rows wait."""
    axes = SimpleNamespace(x=1.0, y=2.0, z=3.0)
    wrenches = WrenchRows("/ft")

    def joined(stamp_ns):
        pending = deque([(stamp_ns, (7.0,))])
        wrenches.add(message(stamp_ns + 10**9), 0)  # a later one, so that the row need not wait
        return wrenches.joined(pending)[0][1]

    def message(stamp_ns):
        stamp = SimpleNamespace(sec=0, nanosec=stamp_ns)
        return SimpleNamespace(
            header=SimpleNamespace(stamp=stamp),
            wrench=SimpleNamespace(force=axes, torque=axes),
        )

    for k in range(1, 20):
        wrenches.add(message(k * 2_000_000), 0)
    assert joined(38_000_000 + 30_000_000) == 1.0
    for k in range(5):
        wrenches.add(message(2 * 10**9 + k * 2_000_000), 0)
    last_ns = 2 * 10**9 + 8_000_000
    assert joined(last_ns + 2_900_000) == 1.0
    assert np.isnan(joined(last_ns + 3_100_000))


@pytest.mark.parametrize(("kind", "value"), [("Bool", True), ("Float64", 0.037), ("UInt8", 200)])
def test_a_gripper_is_a_topic_of_one_number(kind, value):
    name = f"std_msgs/msg/{kind}"
    message = bytes(STORE.serialize_cdr(STORE.types[name](value), name))
    topics = {**STATES, "/closed": name}
    with bridge(topics) as arm, Stream(source(arm, gripper="/closed")) as stream:
        wait_until(lambda: "/closed" in arm.wanted_topics)
        sent(arm, 1)
        before = rows_of(taken(stream, rows=1))
        arm.publish("/closed", message)
        sent(arm, 2, start=2)
        after = rows_of(taken(stream, rows=2))
    place = stream.columns.index("gripper")
    assert np.isnan(before[-1].values[place])
    assert [row.values[place] for row in after] == [float(value)] * 2


def test_a_gripper_is_a_joint_of_other_messages_or_of_the_same():
    finger = [joint_state(100.001, ["finger"], [0.4]), joint_state(100.003, ["finger"], [0.7])]
    both = joint_state(100.0, [*ARM, "finger"], [0, 0, 0, 0.1], (), [0] * 4)
    with (
        bridge(latched={"/joint_states": both}) as arm,
        Stream(source(arm, gripper="finger")) as stream,
    ):
        for k, message in enumerate(finger, start=1):
            arm.publish("/joint_states", message)
            sent(arm, 1, start=k)
        rows = rows_of(taken(stream, rows=2))
    place = stream.columns.index("gripper")
    assert [row.values[place] for row in rows[-2:]] == [0.4, 0.7]


def test_a_gripper_that_is_not_there_is_refused_with_what_is():
    topics = {**STATES, "/closed": "std_msgs/msg/Bool"}
    with bridge(topics) as arm, pytest.raises(SourceFailed, match="no gripper '/open'") as found:
        Stream(source(arm, gripper="/open"))
    assert "(/closed)" in str(found.value)
    assert "(a, b, c)" in str(found.value)


def test_several_wrenches_are_not_guessed_and_one_can_be_left_out():
    topics = STATES | {"/ft": WRENCH, "/ft2": WRENCH}
    with bridge(topics) as arm:
        with Stream(source(arm)) as stream:
            seen = taken(stream, until=lambda x: x[0] is EventKind.TEXT)
            assert "no wrench is read: choose with ?wrench= one of /ft, /ft2" in seen[-1].words
            assert "wrench_stamped.fx" not in stream.columns
        for asked, there in (("/ft2", True), ("", False)):
            with Stream(source(arm, wrench=asked)) as stream:
                assert ("wrench_stamped.fx" in stream.columns) is there
        with pytest.raises(
            SourceFailed, match="there is no WrenchStamped topic '/x'; there are /ft, /ft2"
        ):
            Stream(source(arm, wrench="/x"))


def test_the_wrench_of_a_ur_driver_is_read_only_where_it_is_asked_for():
    with bridge(STATES | {"/ft": WRENCH}, names=UR) as arm:
        options = {"effort": "current", "joint_names": ()}
        with Stream(source(arm, **options)) as stream:
            seen = taken(stream, until=lambda x: "no wrench is read" in x.words)
            assert "one of /ft; the UR driver publishes actual_TCP_force" in seen[-1].words
            assert "wrench_stamped.fx" not in stream.columns
        with Stream(source(arm, **options, wrench="/ft")) as stream:
            assert "wrench_stamped.fx" in stream.columns


def test_modes_of_a_ur_driver_make_rows_wait():
    topics = STATES | {"/io/robot_mode": ROBOT_MODE, "/io/safety_mode": SAFETY_MODE}
    latched = {"/io/robot_mode": mode(7), "/io/safety_mode": mode(1)}
    with bridge(topics, latched=latched) as arm, Stream(source(arm)) as stream:
        assert stream.columns[-2:] == ("robot_mode", "safety_mode")
        sent(arm, 10)
        assert {row.waiting for row in rows_of(taken(stream, rows=10))} == {""}
        arm.publish("/io/safety_mode", mode(3))
        sent(arm, 10, start=11)
        seen = taken(stream, rows=10)
        assert {row.waiting for row in rows_of(seen)} == {"protective stop"}
        assert event_kinds(seen) == ["mode"]
        arm.publish("/io/safety_mode", mode(1))
        sent(arm, 10, start=21)
        assert {row.waiting for row in rows_of(taken(stream, rows=10))} == {"just started again"}
        arm.publish("/joint_states", arm.row(40, 101.0))
        assert rows_of(taken(stream, rows=1))[0].waiting == ""


def test_what_is_recorded_can_be_read(tmp_path):
    path = tmp_path / "log.parquet"
    with (
        bridge(STATES | {"/ft": WRENCH}) as arm,
        Stream(source(arm)) as stream,
        Recorder(path, stream.columns) as recorder,
    ):
        early, rows = 0, []
        while all(
            row.wrench is None for row in rows
        ):  # topics are subscribed to one after the other
            early += 1
            arm.publish("/joint_states", arm.row(0, 90 + early / 500))
            arm.publish("/ft", wrench(90 + early / 500, [1, 2, 3, 4, 5, 6]))
            rows = rows_of(stream.take(0.2))
        for k in range(1, 30):
            arm.publish("/joint_states", arm.row(k, 100 + k / 500))
            arm.publish("/ft", wrench(100 + k / 500, [k, 2, 3, 4, 5, 6]))
        rows = []
        while len(rows) < 29:
            rows += [row for row in rows_of(stream.take(5.0)) if row.t > 100]
        for row in rows:
            recorder.add(row)
    back = read(path)
    assert back.joint_names == ARM
    np.testing.assert_allclose(back.tau[:, 1], 3 * (np.arange(1, 30) + 0.1))
    facts = {"wrench_frame": "tool0", "wrench_convention": "load_on_sensor"}
    back = read(path, columns={"wrench": "wrench_stamped"}, **facts)
    np.testing.assert_allclose(back.wrench[:, 0], np.arange(1, 30))


def test_the_verb_records(tmp_path):
    with bridge(names=UR) as arm:
        over = threading.Event()

        def publish():
            k = 0
            while not over.wait(0.002):
                k += 1
                arm.publish("/joint_states", arm.row(k, 100 + k / 500))

        thread = threading.Thread(target=publish)
        thread.start()
        address = f"ros2://127.0.0.1:{arm.port}"
        done = steelyard(
            "record",
            f"{address}?current=effort",
            "-o",
            "x.parquet",
            "--seconds",
            "0.5",
            cwd=tmp_path,
        )
        failed = steelyard("record", address, "-o", "y.parquet", cwd=tmp_path)
        over.set()
        thread.join()
    assert "0 missing, 0 dropped here" in done.stdout, done.stderr
    assert read(tmp_path / "x.parquet").joint_names == tuple(UR_ORDER)
    assert "?current=effort for a motor current [A]" in failed.stderr
    assert (failed.returncode, len(failed.stderr.splitlines())) == (2, 1)


def test_watch_weighs_what_the_arm_carries(tmp_path):
    names = loaded_panda()[0].robot.joint_names
    with bridge(names=names) as arm:

        def send(t, q, v, tau):
            arm.publish("/joint_states", joint_state(100 + t, names, q, v, tau))

        address = f"ros2://127.0.0.1:{arm.port}?tau=effort"
        found, done = watched_panda(tmp_path, address, send, arm.subscribed.wait)
    assert done.returncode == 0, done.stderr
    assert found["mass"] == pytest.approx(1.5, rel=0.1)
    assert found["rows"] > 100  # all of them on a machine that keeps up


# --- what is refused


def test_an_effort_is_never_guessed():
    with bridge() as arm:
        with pytest.raises(
            SourceFailed,
            match="a torque or a current depending on the driver; give it in the address",
        ):
            Stream(source(arm, effort=None))
        with Stream(source(arm, effort="")) as stream:
            assert not any("tau" in name or "effort" in name for name in stream.columns)
        arm.latched["/joint_states"] = joint_state(100, ARM, [0, 0, 0])
        with pytest.raises(SourceFailed, match="has no effort; nothing can be read as tau"):
            Stream(source(arm))
    with (
        bridge(names=UR) as arm,
        pytest.raises(SourceFailed, match="whose effort is never the joint torque"),
    ):
        Stream(source(arm))
    described = text('<param name="use_currents_as_efforts">false</param>')
    topics = STATES | {"/robot_description": "std_msgs/msg/String"}
    with (
        bridge(topics, latched={"/robot_description": described}, names=UR) as arm,
        pytest.raises(SourceFailed, match="says that use_currents_as_efforts is off"),
    ):
        Stream(source(arm, effort="current"))


def test_missing_topics_and_joints_are_named_with_those_that_there_are():
    with bridge({"/a": JOINT_STATE, "/b": JOINT_STATE, "/ft": WRENCH}) as arm:
        with pytest.raises(
            SourceFailed, match=r"2 topics hold JointState: /a, /b; choose with \?joints=/a"
        ):
            Stream(source(arm, wrench=""))
        with pytest.raises(
            SourceFailed, match=r"no JointState topic '/ft'; the bridge has /a \(sensor_msgs"
        ):
            Stream(source(arm, joints="/ft", timeout_s=0.2))
        with pytest.raises(SourceFailed, match=r"nothing came on /a for 0\.2 s"):
            Stream(source(arm, joints="/a", timeout_s=0.2))
    with bridge() as arm:
        other = source(arm, joint_names=("x", "y"), timeout_s=0.2)
        with pytest.raises(
            SourceFailed, match=r"no message of /joint_states has all of x, y; there are a, b, c"
        ):
            Stream(other)
        arm.channels["/ros1"] = arm._channel("/ros1", JOINT_STATE, encoding="ros1")
        with pytest.raises(SourceFailed, match="/ros1 comes as ros1, not as CDR: is this ROS 1"):
            Stream(source(arm, joints="/ros1"))
        arm.latched["/joint_states"] = b"\0\1\0\0nonsense"
        with pytest.raises(
            SourceFailed, match="a message of /joint_states is no sensor_msgs/msg/JointState"
        ):
            Stream(source(arm))


def test_places_without_a_bridge_are_one_clear_line():
    with pytest.raises(
        SourceFailed, match=r"the connection was refused: does foxglove_bridge run there"
    ):
        Stream(Ros2Controller("127.0.0.1", 9))
    with pytest.raises(SourceFailed, match=r"there is no host 'no\.such\.host\.invalid'"):
        Stream(Ros2Controller("no.such.host.invalid"))
    from live_helpers import served

    with (
        served() as found,
        pytest.raises(SourceFailed, match="answers, but not as a Foxglove bridge"),
    ):
        Stream(Ros2Controller(found.host, found.port, timeout_s=0.5))


# --- older bridges


@contextmanager
def older(messages, names=("foxglove.websocket.v1",)):
    """A server with the protocol's older name, which sends some messages."""
    from websockets.sync.server import serve

    def talk(socket):
        for message in messages:
            socket.send(message)
        for request in socket:
            for item in json.loads(request)["subscriptions"]:
                head = b"\x01" + int(item["id"]).to_bytes(4, "little") + bytes(8)
                socket.send(head + joint_state(100.0, ARM, [1, 2, 3]))

    with serve(talk, "127.0.0.1", 0, subprotocols=names or None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Ros2Controller("127.0.0.1", server.socket.getsockname()[1], timeout_s=0.5)
        server.shutdown()
        thread.join()


INFO = json.dumps({"op": "serverInfo", "name": "old", "capabilities": []})
CHANNEL = {
    "id": 5,
    "topic": "/joint_states",
    "encoding": "cdr",
    "schemaName": JOINT_STATE,
    "schema": "",
}


def test_older_bridges_are_understood():
    said = [INFO, json.dumps({"op": "advertise", "channels": [CHANNEL]})]
    with older(said) as found, Stream(found) as stream:
        assert stream.columns == ("t", "q.b", "q.a", "q.c")


def test_servers_that_talk_of_something_else_are_refused():
    with (
        older([]) as found,
        pytest.raises(SourceFailed, match="does not say that it is a Foxglove bridge"),
    ):
        Stream(found)
    broken = '{"op": "advertise"}'
    with (
        older([broken]) as found,
        pytest.raises(SourceFailed, match="it sends what no Foxglove bridge"),
    ):
        Stream(found)

    with (
        older([], names=()) as found,
        pytest.raises(SourceFailed, match="is a WebSocket of another kind"),
    ):
        Stream(found)


def test_a_bridge_that_falls_silent_is_lost():
    with bridge() as arm, Stream(source(arm, timeout_s=0.3)) as stream:
        seen = taken(stream, until=lambda x: x[0] is EventKind.LOST)
    assert "is connected, but nothing came for 0.3 s" in seen[-1].words


@pytest.mark.parametrize("package", ["websockets.sync.client", "rosbags.typesys"])
def test_without_its_packages_the_extra_is_named(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingExtra, match=rf"this needs {package.split('.')[0]}: .*steelyard\[ros2\]"
    ):
        Stream(Ros2Controller("127.0.0.1", 9))


def test_a_bridge_is_what_its_messages_show():
    found = Bridge()
    found.receive(json.dumps({"op": "advertise", "channels": [CHANNEL]}))
    found.receive(json.dumps({"op": "status", "level": 2, "message": "queue full"}))
    found.receive(json.dumps({"op": "status", "level": 0, "message": "hello"}))
    assert found.texts == ["queue full"]
    schema = "float32 mass # [kg]\n\ngeometry_msgs/Vector3 cog\nint8 A=1\n===\nfloat64 x"
    service = {
        "id": 3,
        "name": "/set",
        "type": "x/srv/Set",
        "requestSchema": schema,
        "responseSchema": "",
    }
    found.receive(json.dumps({"op": "advertiseServices", "services": [service]}))
    assert found.services["/set"].fields == ("float32 mass", "geometry_msgs/Vector3 cog")
    found.receive(json.dumps({"op": "unadvertise", "channelIds": [5]}))
    assert found.channels == {}
