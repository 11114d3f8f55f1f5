"""Tracking under ROS 2: what is published, by a bridge and by a node of this process."""

import importlib.util
import json
import struct
import sys
import threading
import time
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from rosbags.typesys import get_types_from_msg

from conftest import steelyard
from live_helpers import loaded_panda, rows_of, taken, weighed
from ros2_bridge import (
    ARM,
    JOINT_STATE,
    ROBOT_MODE,
    SAFETY_MODE,
    STORE,
    UR,
    bridge,
    joint_state,
    mode,
    source,
)
from steelyard.errors import SourceFailed, UnknownName
from steelyard.inertia import InertialParameters
from steelyard.live import (
    ReplaySource,
    Ros2Controller,
    Ros2Publisher,
    SettingState,
    Stream,
    source_of,
)
from steelyard.live._ros2_node import NodeSocket, RosClient
from steelyard.live._ros2_publisher import ERROR, OK, STALE, WARN, facts_of, status_of
from steelyard.live._setting import Proposal
from steelyard.payload import Payload
from steelyard.picking import Decision, Measured, Pick
from steelyard.twin._controller import SERIAL_NUMBER
from steelyard.verdict import Doubt, DoubtKind, Verdict
from waiting import PATIENCE_S, wait_until

LAUNCH = Path(__file__).parents[2] / "ros2/steelyard_ros/launch/track.launch.py"
INERTIA_STAMPED = "geometry_msgs/msg/InertiaStamped"
DIAGNOSTICS = "diagnostic_msgs/msg/DiagnosticArray"
BODY = InertialParameters.from_com(2.5, [0.01, -0.02, 0.06], 0.01 * np.eye(3))
DOUBTED = Verdict("", (Doubt(DoubtKind.TOO_UNCERTAIN, "it hardly moved"),))


GOOD = Verdict("good")


def payload(verdict=GOOD, body=BODY):
    return Payload(body, body, np.diag(np.full(10, 1e-4)), np.ones(6), verdict)


def snapshot(found, *, converged=True, waiting=""):
    return SimpleNamespace(
        payload=found, converged=converged, waiting=waiting, next_step="swing joint 2",
        t=100.25, rows=7, missing=1, dropped=0,
    )  # fmt: skip


# --- what is said


def test_levels_say_whether_the_payload_may_be_used():
    assert status_of(snapshot(payload()))[0] == OK
    assert status_of(snapshot(payload(), converged=False))[0] == WARN
    assert status_of(snapshot(payload(DOUBTED))) == (
        ERROR,
        "do not use the payload: it hardly moved",
    )
    assert status_of(snapshot(payload(), waiting="protective stop")) == (
        STALE,
        "nothing is weighed: protective stop",
    )
    assert status_of(snapshot(None))[0] == STALE


def test_levels_are_those_of_a_diagnostic_status():
    of_ros = STORE.types["diagnostic_msgs/msg/DiagnosticStatus"]
    assert (OK, WARN, ERROR, STALE) == (of_ros.OK, of_ros.WARN, of_ros.ERROR, of_ros.STALE)


def test_facts_name_the_mass_with_its_half_width_and_the_doubts():
    facts = facts_of(snapshot(payload(DOUBTED)))
    assert facts["mass [kg]"] == "2.5000"
    assert facts["95 % half-width [kg]"] == "0.0196"
    assert facts["doubts"] == "too_uncertain"
    assert facts["next"] == "swing joint 2"
    assert set(facts_of(snapshot(None))) == {"rows", "missing", "dropped"}


def received(arm, count):
    wait_until(lambda: len(arm.received) >= count)
    return [(topic, kind, STORE.deserialize_cdr(data, kind)) for topic, kind, data in arm.received]


def test_a_usable_payload_and_its_status_are_published_and_a_doubtful_one_is_not():
    with (
        bridge(accepts_messages=True) as arm,
        Ros2Publisher(source(arm), topic="/arm/payload") as publisher,
    ):
        publisher.publish_snapshot(snapshot(payload()))
        publisher.publish_snapshot(snapshot(payload(DOUBTED)))
        publisher.publish_snapshot(snapshot(payload(), converged=False))
        got = received(arm, 5)
    topics = [topic for topic, _, _ in got]
    assert topics == [
        "/arm/payload",
        "/diagnostics",
        "/diagnostics",
        "/arm/payload",
        "/diagnostics",
    ]
    _, kind, first = got[0]
    assert kind == INERTIA_STAMPED
    assert (first.header.stamp.sec, first.header.stamp.nanosec) == (100, 250_000_000)
    assert first.header.frame_id == BODY.frame
    assert first.inertia.m == 2.5
    assert (first.inertia.com.x, first.inertia.com.y, first.inertia.com.z) == (0.01, -0.02, 0.06)
    levels = [message.status[0].level for _, kind, message in got if kind == DIAGNOSTICS]
    assert levels == [OK, ERROR, WARN]
    status = got[1][2].status[0]
    assert status.name == "steelyard: payload"
    assert {pair.key: pair.value for pair in status.values}["rows"] == "7"


def test_an_inertia_that_no_body_has_is_left_out():
    unphysical = InertialParameters.from_com(2.5, [0, 0, 0.1], np.diag([0.01, 0.01, 0.05]))
    found = snapshot(payload(body=unphysical))
    assert facts_of(found)["inertia"] == "left out: no body has these numbers"
    assert facts_of(snapshot(payload()))["inertia"] == "published"
    with bridge(accepts_messages=True) as arm, Ros2Publisher(source(arm)) as publisher:
        publisher.publish_snapshot(found)
        (_, _, load), _ = received(arm, 2)
    assert (load.inertia.m, load.inertia.com.z) == (2.5, 0.1)
    assert load.inertia.ixx == load.inertia.izz == 0.0


def test_picks_are_published_as_json_with_their_status():
    picks = [
        Pick(1, 2.0, 4.5, Decision.GOOD, "lid", "lid", Measured(0.5, 0.01)),
        Pick(2, 6.0, 8.5, Decision.MISSING, "lid", reasons=("nothing carried",)),
        Pick(3, 9.0, 9.5, Decision.NOT_WEIGHED, mass=Measured(0.4, np.inf)),
    ]
    with (
        bridge(accepts_messages=True) as arm,
        Ros2Publisher(source(arm), topic="/picks") as publisher,
    ):
        for pick in picks:
            publisher.publish_pick(pick)
        got = received(arm, 6)
    assert [topic for topic, _, _ in got] == 3 * ["/picks", "/diagnostics"]
    rows = [json.loads(message.data) for _, _, message in got[0::2]]
    assert [row["decision"] for row in rows] == ["good", "missing", "not weighed"]
    assert rows[0]["mass"] == 0.5
    assert rows[1]["alarm"] is True
    assert rows[2]["mass_half_width"] is None
    statuses = [message.status[0] for _, _, message in got[1::2]]
    assert [status.level for status in statuses] == [OK, ERROR, WARN]
    assert statuses[1].message == "missing; nothing carried"
    assert statuses[0].name == "steelyard: picks"


def test_a_source_without_topics_cannot_publish():
    with pytest.raises(UnknownName, match=r"replay:x has no topics to publish on: use ros2://HOST"):
        ReplaySource("x").publisher("/payload")


def test_the_command_tracks_and_publishes(tmp_path):
    """What `ros2 launch` starts, with a bridge in the place of ROS 2."""
    model, loaded = loaded_panda()
    names = model.robot.joint_names
    model.save(tmp_path / "model.json")
    with bridge(names=names, accepts_messages=True) as arm:

        def play():
            assert arm.subscribed.wait(PATIENCE_S)
            for t, q, v, tau in zip(loaded.t, loaded.q, loaded.v, loaded.tau, strict=True):
                arm.publish("/joint_states", joint_state(100 + t, names, q, v, tau))
                time.sleep(0.002)

        player = threading.Thread(target=play)
        player.start()
        values = launch_values(model="model.json", effort="tau", seconds="3", topic="/load")
        _, track, address, *more = launch_module().words(values, bridge=True)
        address = address.replace("localhost:8765", f"127.0.0.1:{arm.port}")
        done = steelyard(track, address, *more, "--json", cwd=tmp_path)
        player.join()
        got = received(arm, 2)
    facts = json.loads(done.stdout)
    loads = [message for topic, _, message in got if topic == "/load"]
    states = [message.status[0] for _, kind, message in got if kind == DIAGNOSTICS]
    assert states[0].level in (STALE, ERROR)
    assert states[-1].level in (OK, WARN)
    assert loads[-1].inertia.m == pytest.approx(facts["mass"], rel=0.02)
    assert loads[-1].inertia.m == pytest.approx(1.5, rel=0.1)


# --- a node of this process


class FakeNode:
    """The methods of an rclpy node that are used, with their arguments."""

    def __init__(self, topics):
        self.topics = dict(topics)
        self.subscriptions, self.publishers, self.timers = {}, {}, []
        self.services, self.version = {}, ""

    def get_topic_names_and_types(self):
        return [(topic, [kind]) for topic, kind in self.topics.items()]

    def get_service_names_and_types(self):
        return [(name, [kind]) for name, kind in self.services.items()]

    def get_publishers_info_by_topic(self, topic):
        return [SimpleNamespace(qos_profile=f"as offered on {topic}")]

    def create_timer(self, period_s, callback):
        self.timers.append(callback)

    def create_subscription(self, kind, topic, callback, quality, *, raw):
        assert raw
        self.subscriptions[topic] = (kind, callback, quality)

    def create_publisher(self, kind, topic, depth):
        sent = self.publishers.setdefault(topic, [])
        return SimpleNamespace(publish=lambda data: sent.append((kind, bytes(data))))


def node_socket(topics):
    node = FakeNode(topics)
    stopped = []
    return node, NodeSocket(ros_client(node, lambda: stopped.append(True))), stopped


def ros_client(node, stop):
    """What a node needs of ROS 2, by the messages of rosbags."""
    return RosClient(
        node,
        message_type=lambda kind: f"class of {kind}",
        service_type=partial(service_type, node.version),
        serialize=lambda answer: STORE.serialize_cdr(answer, ANSWER),
        deserialize=lambda data, request: STORE.deserialize_cdr(data, request.kind),
        quality=lambda publishers: publishers[0].qos_profile,
        stop=stop,
    )


def test_a_node_streams_rows_like_a_bridge(monkeypatch):
    node, socket, stopped = node_socket({"/joint_states": JOINT_STATE, "/rosout": "x/msg/Log"})
    monkeypatch.setattr(NodeSocket, "opened", classmethod(lambda cls: socket))
    arm = source_of("ros2-node:?tau=effort", joint_names=ARM)
    assert arm == Ros2Controller("", 0, effort="tau", joint_names=ARM, in_process=True)
    assert str(arm) == "ros2-node:"

    def state(k):
        return joint_state(100 + k / 500, ARM, [k, k + 0.1, k + 0.2], [0, 0, 0], [1, 2, 3])

    def answer():
        wait_until(lambda: "/joint_states" in node.subscriptions)
        node.subscriptions["/joint_states"][1](state(0))

    thread = threading.Thread(target=answer)
    thread.start()
    with Stream(arm) as stream:
        thread.join()
        kind, receive, quality = node.subscriptions["/joint_states"]
        assert kind == f"class of {JOINT_STATE}"
        assert quality == "as offered on /joint_states"
        for k in range(1, 5):
            receive(state(k))
        rows = rows_of(taken(stream, rows=4))
    assert [row.values[1] for row in rows] == [1, 2, 3, 4]
    assert stopped


SET_PAYLOAD, ANSWER = "ur_msgs/srv/SetPayload", "ur_msgs/msg/SetPayloadAnswer"
REQUESTS = {
    "older": "float32 mass\ngeometry_msgs/Vector3 center_of_gravity",
    "newer": "geometry_msgs/Inertia payload\nbuiltin_interfaces/Duration transition_time",
}
for _name, _text in {**REQUESTS, "Answer": "bool success"}.items():
    STORE.register(get_types_from_msg(_text, f"ur_msgs/msg/SetPayload{_name}"))


def service_type(version, kind):
    """The class of a driver's service, as rosidl generates it."""
    if kind != SET_PAYLOAD:
        raise ModuleNotFoundError(f"No module named '{kind}'")
    of_rclpy = {"float32": "float", "float64": "double"}
    pairs = [line.split() for line in REQUESTS[version].splitlines()]
    fields = {name: of_rclpy.get(of_kind, of_kind) for of_kind, name in pairs}
    request = SimpleNamespace(
        kind=f"ur_msgs/msg/SetPayload{version}", get_fields_and_field_types=lambda: fields
    )
    return SimpleNamespace(Request=request)


class UrNode(FakeNode):
    """A node beside the driver of a UR that stands.

    Args:
        version: of the driver
        kind: of its service
        outcome: what the service answers; an exception is raised, None means never
    """

    def __init__(self, version, kind, outcome):
        super().__init__(
            {"/joint_states": JOINT_STATE, "/robot": ROBOT_MODE, "/safety": SAFETY_MODE}
        )
        self.version = version
        self.services = {"/io/set_payload": kind, "/other": "missing_package/srv/Other"}
        self.requests, self.over = [], threading.Event()
        self.outcome = outcome

    def create_subscription(self, kind, topic, callback, quality, *, raw):
        if topic == "/joint_states":
            threading.Thread(target=self._publish, args=(callback,)).start()
        else:
            callback(mode({"/robot": 7, "/safety": 1}[topic]))

    def _publish(self, callback):
        k = 0
        while not self.over.wait(0.005):
            k += 1
            callback(joint_state(100 + k / 200, UR, [1] * 6, [0] * 6, [0] * 6))

    def create_client(self, kind, name):
        return SimpleNamespace(
            wait_for_service=lambda timeout_sec: self.outcome is not None,
            call_async=self._call,
        )

    def _call(self, request):
        self.requests.append(request)
        return SimpleNamespace(
            result=self._result,
            add_done_callback=lambda done: done(SimpleNamespace(result=self._result)),
        )

    def _result(self):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return STORE.types[ANSWER](self.outcome)


@pytest.fixture
def ur_nodes(monkeypatch):
    """A function that gives the nodes which are opened from then on, beside a certain driver."""
    nodes = []

    def of(version, *, kind=SET_PAYLOAD, outcome=True):
        def opened(cls):
            node = UrNode(version, kind, outcome)
            nodes.append(node)
            return NodeSocket(ros_client(node, node.over.set))

        monkeypatch.setattr(NodeSocket, "opened", classmethod(opened))
        return nodes

    yield of
    for node in nodes:
        node.over.set()


def proposed_by_node():
    source = source_of("ros2-node:?current=effort")
    return Proposal.of(source, weighed(), rating_kg=10.0, serial=SERIAL_NUMBER)


@pytest.mark.parametrize("version", REQUESTS)
def test_a_node_sets_a_payload_by_the_service_of_the_driver(ur_nodes, version):
    nodes = ur_nodes(version)
    proposal = proposed_by_node()
    assert proposal.with_inertia is (version == "newer")
    outcome = proposal.send(transition_s=0.25)
    assert outcome.state is SettingState.SET
    (request,) = [request for node in nodes for request in node.requests]
    if version == "older":
        com = request.center_of_gravity
        assert (request.mass, com.x, com.y, com.z) == (2.5, 0.001, -0.002, 0.05)
    else:
        body = request.payload
        assert (body.m, body.com.z, body.iyy) == pytest.approx((2.5, 0.05, 0.011))
        assert request.transition_time.nanosec == 250_000_000


@pytest.mark.parametrize(
    ("outcome", "state", "words"),
    [
        (False, SettingState.NOT_SET, "answers that the payload was not set"),
        (RuntimeError("the driver is gone"), SettingState.NOT_KNOWN, "the driver is gone"),
        (None, SettingState.NOT_KNOWN, "it was not there within 2 s"),
    ],
)
def test_a_driver_that_does_not_set_a_payload_for_a_node_is_noticed(
    ur_nodes, outcome, state, words
):
    ur_nodes("older", outcome=outcome)
    found = proposed_by_node().send(transition_s=0.25)
    assert found.state is state
    assert words in found.words


def test_a_driver_whose_messages_are_not_installed_is_refused(ur_nodes):
    nodes = ur_nodes("older", kind="other_msgs/srv/SetPayload")
    words = r"fields of /io/set_payload are not known: install the package other_msgs"
    with pytest.raises(SourceFailed, match=words):
        proposed_by_node()
    assert not [request for node in nodes for request in node.requests]


def test_a_node_announces_topics_that_appear_later():
    node, socket, _ = node_socket({})
    assert json.loads(socket.recv(1.0))["op"] == "serverInfo"
    with pytest.raises(TimeoutError):
        socket.recv(0.01)
    node.topics["/late"] = JOINT_STATE
    node.timers[0]()
    (channel,) = json.loads(socket.recv(1.0))["channels"]
    assert (channel["topic"], channel["encoding"]) == ("/late", "cdr")
    node.timers[0]()
    with pytest.raises(TimeoutError):
        socket.recv(0.01)


def test_a_reader_of_a_node_that_is_ended_does_not_wait():
    _, socket, _ = node_socket({})
    socket.recv(1.0)
    closing = threading.Timer(0.02, socket.close)
    closing.start()
    with pytest.raises(ConnectionError, match="the node was ended"):
        socket.recv(PATIENCE_S)
    closing.join()


def test_a_node_publishes_the_bytes_of_messages(monkeypatch):
    node, socket, stopped = node_socket({})
    monkeypatch.setattr(NodeSocket, "opened", classmethod(lambda cls: socket))
    with Ros2Publisher(source_of("ros2-node:")) as publisher:
        publisher.publish_snapshot(snapshot(payload()))
        publisher.publish_snapshot(snapshot(payload()))
    assert stopped
    loads = node.publishers["/payload"]
    assert [kind for kind, _ in loads] == [f"class of {INERTIA_STAMPED}"] * 2
    back = STORE.deserialize_cdr(loads[1][1], INERTIA_STAMPED)
    assert back.inertia.m == 2.5
    assert len(node.publishers["/diagnostics"]) == 2
    assert struct.unpack_from("<4B", loads[0][1]) == (0, 1, 0, 0)


def test_without_ros_2_one_line_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "rclpy", None)
    with pytest.raises(SourceFailed, match=r"ros2-node: needs rclpy.*or use ros2://HOST"):
        Stream(source_of("ros2-node:?tau=effort"))


# --- the launch file


def launch_module(monkeypatch=None):
    """The launch file, with stand-ins for the packages of ROS 2 that it imports."""

    class Made:
        def __init__(self, *given, **named):
            self.given, self.named = given, named

    names = {
        "launch": ["LaunchDescription"],
        "launch.actions": ["DeclareLaunchArgument", "ExecuteProcess", "OpaqueFunction"],
        "launch.substitutions": ["LaunchConfiguration"],
        "launch_ros": [],
        "launch_ros.actions": ["Node"],
    }
    before = {name: sys.modules.get(name) for name in names}
    try:
        for name, classes in names.items():
            module = ModuleType(name)
            for each in classes:
                setattr(module, each, type(each, (Made,), {}))
            sys.modules[name] = module
        spec = importlib.util.spec_from_file_location("track_launch", LAUNCH)
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
        return found
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def launch_values(**given):
    module = launch_module()
    names = [*module.ADDRESS, *module.TORQUE_OPTIONS, *module.WRIST_OPTIONS, *module.OPTIONS]
    names += ["effort", "level"]
    plain = {"topic": "/payload", "steelyard": "steelyard", "bridge": "false"}
    return dict.fromkeys(names, "") | plain | given


def test_launch_arguments_are_options_of_the_command():
    from typer.main import get_command

    from steelyard.cli import _app

    def known(verb):
        params = get_command(_app(verb)).commands[verb].params
        return {option for parameter in params for option in parameter.opts}

    def named(*groups):
        return {f"--{name}" for group in groups for name in group} | {"--publish"}

    module = launch_module()
    assert named(module.TORQUE_OPTIONS, module.OPTIONS) <= known("track")
    assert named(module.WRIST_OPTIONS, module.OPTIONS, ["level"]) <= known("track-wrist")
    values = launch_values(model="m.json", effort="current", joints="/a")
    assert module.words(values, bridge=False) == [
        "steelyard", "track", "ros2-node:?joints=/a&current=effort", "--model", "m.json",
        "--publish", "/payload",
    ]  # fmt: skip
    values = launch_values(sensor="s.toml", robot="ur10", wrench="/ft", level="true")
    assert module.words(values, bridge=False) == [
        "steelyard", "track-wrist", "ros2-node:?wrench=/ft", "--sensor", "s.toml",
        "--robot", "ur10", "--level", "--publish", "/payload",
    ]  # fmt: skip
    assert module.address(launch_values(), bridge=True) == "ros2://localhost:8765"


def test_a_launch_declares_every_argument_and_starts_the_command():
    module = launch_module()
    (actions,) = module.generate_launch_description().given
    declared = {action.given[0] for action in actions[:-1]}
    assert declared == set(launch_values())
    assert actions[-1].named["function"] is module.started
    values = launch_values(bridge="true", effort="tau")
    module.LaunchConfiguration.perform = lambda self, context: values[self.given[0]]
    node, process = module.started(None)
    assert node.named["package"] == "foxglove_bridge"
    assert "clientPublish" in node.named["parameters"][0]["capabilities"]
    assert process.named["cmd"][2] == "ros2://localhost:8765?tau=effort"
