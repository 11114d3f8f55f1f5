"""Payloads for Franka and ROS 2 arms: set, echoed, restored, and refused as for a UR."""

import json
import struct
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from conftest import steelyard
from live_helpers import weighed
from steelyard.errors import InvalidInertia, InvalidRobot, InvalidTrajectory, SourceFailed
from steelyard.live import (
    FrankaController,
    MotionRequest,
    ReplaySource,
    Ros2Controller,
    SettingState,
    WeighingRequest,
    publish_payload,
)
from steelyard.live._controller import ControllerPayload
from steelyard.live._setting import Proposal
from steelyard.twin._controller import SERIAL_NUMBER
from waiting import wait_until

INERTIA = [0.01, 0.011, 0.006, 0, 0, 0]

# --- Franka


@contextmanager
def franka(how=""):
    pytest.importorskip("pylibfranka")
    from franka_controller import Fake

    with Fake(how) as fake:
        fake.say("auto on")
        yield fake, FrankaController(fake.host, timeout_s=5.0)


def proposed(source, payload, **options):
    """A proposal for a controller that does not report the serial number of its arm."""
    return Proposal.of(source, payload, serial=SERIAL_NUMBER, **options)


def test_a_controller_without_a_serial_number_gets_nothing_unless_it_is_stated():
    with ros2() as (source, asked):
        words = r"ros2://\S+: the serial number of the arm is unknown, .*: state its number"
        with pytest.raises(InvalidRobot, match=words):
            Proposal.of(source, weighed(), rating_kg=10.0)
        with pytest.raises(InvalidRobot, match="belongs to another arm"):
            Proposal.of(source, weighed(), rating_kg=10.0, serial="1")
        assert not asked


def test_a_load_is_set_on_a_franka_echoed_and_put_back(tmp_path):
    with franka() as (fake, source):
        proposal = proposed(source, weighed(2.0))
        assert (proposal.old, proposal.new.mass) == (ControllerPayload(), 2.0)
        assert proposal.note == "the controller adds its end effector of 0.700 kg to the payload"
        done = proposal.carry_out(tmp_path / "undo.json")
        assert done.outcome.words == "the controller reports a payload of 2.000 kg"
        mass, *com = (float(x) for x in fake.heard("load")[:4])
        assert (mass, com) == (2.0, pytest.approx([0.001, -0.002, 0.05]))
        back = Proposal.undo(source, tmp_path / "undo.json", serial=SERIAL_NUMBER)
        np.testing.assert_allclose(back.old.inertia, INERTIA, atol=1e-8)
        assert back.new == ControllerPayload()
        back.send()
        assert float(fake.heard("load")[0]) == 0


def test_a_franka_that_is_not_ready_or_would_carry_too_much_is_refused():
    with franka() as (fake, source):
        with pytest.raises(
            InvalidInertia, match=r"2\.5 kg is above the rating of this arm, 2\.3 kg"
        ):
            proposed(source, weighed(2.5))
        with pytest.raises(InvalidInertia, match="the mass is known to"):
            proposed(source, weighed(share=0.2))
        fake.say("speed 0.2")
        with pytest.raises(
            SourceFailed, match=r"franka://.* moves \(0\.2 rad/s\): stop the arm first"
        ):
            proposed(source, weighed(2.0))
        for mode, words in [(4, "reflex"), (0, "other")]:
            fake.say(f"mode {mode}")
            with pytest.raises(SourceFailed, match=f"is not ready: {words}"):
                proposed(source, weighed(2.0))


@pytest.mark.parametrize(
    ("how", "words"), [("refuses", "refuses the load: "), ("deaf", "still reports 0.000 kg")]
)
def test_a_franka_that_does_not_take_a_load_is_noticed(how, words):
    with franka(how) as (_, source):
        outcome = proposed(source, weighed(2.0)).send()
        assert outcome.state is SettingState.NOT_SET
        assert words in outcome.words


# --- ROS 2

PLAIN = "float32 mass\ngeometry_msgs/Vector3 center_of_gravity"
NEWER = "geometry_msgs/Inertia payload\nfloat64 transition_time # [s]"
NEWEST = "geometry_msgs/msg/Inertia inertia"
MIXED = "float64 transition_time\nfloat32 mass\ngeometry_msgs/Vector3 center_of_gravity"


@contextmanager
def ros2(
    request=PLAIN,
    *,
    done=True,
    robot=7,
    safety=1,
    speed=0.0,
    modes=("robot_mode", "safety_mode"),
    service=True,
):
    """A UR under ROS 2 that stands, with the driver's service; and what was asked of it."""
    from foxglove import Schema
    from foxglove.websocket import MessageSchema, Service, ServiceSchema

    from ros2_bridge import (
        JOINT_STATE,
        ROBOT_MODE,
        SAFETY_MODE,
        UR,
        bridge,
        joint_state,
        mode,
        source,
    )

    asked = []

    def answer(call):
        asked.append(call.payload)
        if done is None:
            raise RuntimeError("the controller is gone")
        return b"\0\1\0\0" + bytes([bool(done)])

    def schema(text):
        return MessageSchema(
            encoding="cdr", schema=Schema(name="x", encoding="ros2msg", data=text.encode())
        )

    kind = ServiceSchema(
        "ur_msgs/srv/SetPayload", request=schema(request), response=schema("bool success")
    )
    other = ServiceSchema(
        "std_srvs/srv/Trigger", request=schema(""), response=schema("bool success")
    )
    services = [Service("/io/zero_ftsensor", schema=other, handler=answer)]
    services += [Service("/io/set_payload", schema=kind, handler=answer)] if service else []
    topics = {"/joint_states": JOINT_STATE}
    kinds = {"robot_mode": ROBOT_MODE, "safety_mode": SAFETY_MODE}
    numbers = {"robot_mode": robot, "safety_mode": safety}
    topics |= {f"/io/{name}": kinds[name] for name in modes}
    latched = {f"/io/{name}": mode(numbers[name]) for name in modes}
    over = threading.Event()
    with bridge(topics, latched=latched, services=services, names=UR) as arm:

        def publish():
            k = 0
            while not over.wait(0.01):
                k += 1
                arm.publish(
                    "/joint_states",
                    joint_state(101 + k / 100, UR, [1] * 6, [0, speed, 0, 0, 0, 0], [0] * 6),
                )

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            yield source(arm, effort="current", joint_names=()), asked
        finally:
            over.set()
            thread.join()


@pytest.mark.parametrize("request_text", [PLAIN, NEWER, NEWEST])
def test_the_service_of_a_ur_driver_is_asked(request_text, tmp_path):
    from ros2_bridge import STORE

    vector, inertia = (
        STORE.types["geometry_msgs/msg/Vector3"],
        STORE.types["geometry_msgs/msg/Inertia"],
    )
    com = vector(0.001, -0.002, 0.05)
    with ros2(request_text) as (source, asked):
        proposal = proposed(source, weighed(2.5), rating_kg=10.0)
        assert proposal.old is None
        assert {cell[1] for cell in proposal.cells} == {"not reported"}
        assert "does not report its payload" in proposal.note
        assert proposal.with_inertia is (request_text != PLAIN)
        done = proposal.carry_out(tmp_path / "u.json", transition_s=0.25)
        assert "/io/set_payload answers that 2.500 kg were set" in done.outcome.words
        assert (done.is_set, done.history_file) == (True, None)
        with pytest.raises(SourceFailed, match="nothing can be restored"):
            Proposal.undo(source, tmp_path / "u.json")
    (data,) = asked
    if request_text == PLAIN:
        assert np.frombuffer(data[4:8], "<f4") == np.float32(2.5)
        np.testing.assert_allclose(np.frombuffer(data[12:], "<f8"), [0.001, -0.002, 0.05])
        return
    back = STORE.deserialize_cdr(data[: 4 + 80], "geometry_msgs/msg/Inertia")
    assert (back.m, back.com.x, back.com.y, back.com.z) == pytest.approx((2.5, com.x, com.y, com.z))
    assert isinstance(back, inertia)
    assert (back.ixx, back.iyy, back.izz) == pytest.approx(INERTIA[:3])
    assert data[84:] == (np.float64(0.25).tobytes() if request_text == NEWER else b"")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"safety": 3}, "is not ready: protective stop"),
        ({"safety": 2}, "its safety mode is reduced, not normal"),
        ({"speed": 0.2}, r"moves \(0\.2 rad/s\): stop the arm first"),
        ({"robot": 3}, r"is not ready: the arm is not powered or not released \(power off\)"),
        ({"speed": np.nan}, r"moves \(nan rad/s\): stop the arm first"),
        ({"modes": ()}, "does not report the mode of the arm: robot_mode and safety_mode of a UR"),
        ({"modes": ["safety_mode"]}, "does not report the mode of the arm: robot_mode of a UR"),
        ({"modes": ["safety_mode"], "safety": 3}, "is not ready: protective stop"),
        ({"modes": ["robot_mode"]}, "does not report the mode of the arm: safety_mode of a UR"),
        ({"modes": ["robot_mode"], "robot": 3}, "is not ready: the arm is not powered"),
        (
            {"service": False},
            "there is no service of the kind SetPayload; there are: /io/zero_ftsensor",
        ),
        ({"request": "float64 x"}, "/io/set_payload takes float64 x: such a driver is not known"),
    ],
)
def test_arms_under_ros_2_that_are_not_ready_are_refused(options, words):
    with ros2(**options) as (source, asked):
        with pytest.raises(SourceFailed, match=words):
            proposed(source, weighed(), rating_kg=10.0)
        assert not asked


@pytest.mark.parametrize("name", ["robot_mode", "safety_mode"])
def test_a_mode_of_an_arm_under_ros_2_that_is_no_number_is_not_known(name):
    row = {"robot_mode": 7.0, "safety_mode": 1.0}
    assert Ros2Controller("arm").obstacle(row) == ""
    row[name] = float("nan")
    assert Ros2Controller("arm").obstacle(row) == f"it does not send {name}"


def test_what_the_arm_may_carry_must_be_given_and_a_refusal_of_the_driver_is_said():
    with ros2(done=False) as (source, asked):
        with pytest.raises(
            InvalidInertia, match="does not report the rating of the arm: give its rating"
        ):
            proposed(source, weighed())
        outcome = proposed(source, weighed(), rating_kg=10.0).send()
        assert outcome.state is SettingState.NOT_SET
        assert outcome.words.endswith("answers that the payload was not set")
        assert len(asked) == 1
    with ros2(done=None) as (source, _):
        outcome = proposed(source, weighed(), rating_kg=10.0).send()
        assert outcome.state is SettingState.NOT_KNOWN
        assert "the controller is gone" in outcome.words


def test_recordings_cannot_be_set():
    assert ReplaySource("x").controller is None
    assert not FrankaController("x").capabilities.sets_payload_while_streaming
    with pytest.raises(
        SourceFailed, match=r"replay:x cannot be commanded: give ur://HOST, ros2://HOST or"
    ):
        Proposal.of(ReplaySource("x"), weighed())


def test_the_verb_sets_both_kinds(tmp_path):
    weighed(2.0).save(tmp_path / "payload.json")
    with franka() as (fake, source):
        words = ("set-payload", str(source), "payload.json", "--yes", "--serial", SERIAL_NUMBER)
        done = steelyard(*words, cwd=tmp_path)
        assert "Note: the controller adds its end effector of 0.700 kg" in done.stdout, done.stderr
        assert "The controller reports a payload of 2.000 kg." in done.stdout
        assert float(fake.heard("load")[0]) == 2.0
        done = steelyard(*words, "--undo", "--json", cwd=tmp_path)
        assert json.loads(done.stdout)["new"]["mass"] == 0.0
    with ros2() as (source, asked):
        words = (
            "set-payload",
            f"{source}?current=effort",
            "payload.json",
            "--rating",
            "10",
            "--yes",
            "--serial",
            SERIAL_NUMBER,
        )
        refused = steelyard(*words[:-2], cwd=tmp_path)
        assert "the serial number of the arm is unknown" in refused.stderr
        assert refused.stderr.endswith("state its number with --serial\n")
        assert not asked
        done = steelyard(*words, cwd=tmp_path)
        assert "/io/set_payload answers that 2.000 kg were set" in done.stdout, done.stderr
        assert len(asked) == 1


def test_the_order_of_the_fields_of_a_driver_does_not_matter():
    with ros2(MIXED) as (source, asked):
        proposal = proposed(source, weighed(2.5), rating_kg=10.0)
        assert not proposal.with_inertia
        proposal.send(transition_s=0.25)
    (data,) = asked
    assert struct.unpack("<df4x3d", data[4:]) == pytest.approx((0.25, 2.5, 0.001, -0.002, 0.05))


@pytest.mark.parametrize("duration", [False, True])
def test_a_driver_with_the_six_moments_beside_mass_and_centre_gets_them(duration):
    """The definition of ur_msgs for Humble to Kilted since 2026."""
    time_field = "builtin_interfaces/Duration" if duration else "float64"
    moments = "\n".join(f"float64 {name}" for name in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    with ros2(f"{PLAIN}\n{moments}\n{time_field} transition_time") as (source, asked):
        proposal = proposed(source, weighed(2.5), rating_kg=10.0)
        assert proposal.with_inertia
        proposal.send(transition_s=0.25)
    (data,) = asked
    form = "<f4x3d6diI" if duration else "<f4x3d6dd"
    found = struct.unpack(form, data[4:])
    assert found[:4] == pytest.approx((2.5, 0.001, -0.002, 0.05))
    assert found[4:10] == pytest.approx(INERTIA, abs=1e-12)
    assert found[10:] == ((0, 250_000_000) if duration else (0.25,))


def test_a_driver_with_some_of_the_moments_is_not_given_an_inertia():
    with ros2(f"{PLAIN}\nfloat64 ixx") as (source, _):
        assert not proposed(source, weighed(2.5), rating_kg=10.0).with_inertia


def test_a_payload_is_published_as_a_stamped_inertia():
    from ros2_bridge import STORE, bridge, source

    payload = weighed(2.5)
    with (
        bridge() as arm,
        pytest.raises(SourceFailed, match="accepts no messages: start the bridge"),
    ):
        publish_payload(source(arm), payload)
    with bridge(accepts_messages=True) as arm:
        publish_payload(source(arm), payload, topic="/arm/payload")
        wait_until(lambda: arm.received)
    ((topic, kind, data),) = arm.received
    assert (topic, kind) == ("/arm/payload", "geometry_msgs/msg/InertiaStamped")
    back = STORE.deserialize_cdr(data, kind)
    assert back.header.frame_id == "flange"
    found = back.inertia
    centre = (found.com.x, found.com.y, found.com.z)
    assert (found.m, *centre) == pytest.approx((2.5, 0.001, -0.002, 0.05))
    moments = (found.ixx, found.iyy, found.izz, found.ixy, found.ixz, found.iyz)
    assert moments == pytest.approx(INERTIA, abs=1e-12)


@pytest.mark.parametrize(
    ("change", "agrees"),
    [
        ({"mass": 2.10005}, True),
        ({"mass": 2.2}, False),
        ({"mass": 2.1002}, False),
        ({"cog": (0.01, 0.0, 0.05002)}, False),
        ({"cog": (0.01, 0.0, 0.050005)}, True),
        ({"inertia": (0.01, 0.01, 0.01, 0.0, 0.0, 2e-5)}, False),
    ],
)
def test_an_echo_is_the_payload_that_was_sent(change, agrees):
    """Within the resolution of a controller's outputs: 0.1 g, 0.01 mm, 1e-5 kg m^2."""
    sent = ControllerPayload(2.1, (0.01, 0.0, 0.05), (0.01, 0.01, 0.01, 0.0, 0.0, 0.0))
    echo = sent._replace(**change)
    assert sent.is_close(echo) is agrees
    assert sent.is_close(echo, with_inertia=False) is (agrees or "inertia" in change)


@pytest.mark.parametrize("rating_kg", [float("nan"), float("inf"), -1.0, 0.0, 1e308])
def test_a_rating_is_that_of_an_arm(rating_kg):
    """NaN is not below any mass: a payload above the rating would pass."""
    heavy = ControllerPayload(500.0)
    with pytest.raises(InvalidInertia, match="`rating_kg` must be a number above 0, up to 5000"):
        Proposal.to(FrankaController("127.0.0.1"), heavy, rating_kg=rating_kg)


@pytest.mark.parametrize("transition_s", [float("nan"), float("inf"), -0.1, 61.0])
def test_a_transition_takes_a_minute_at_most(transition_s):
    proposal = Proposal(FrankaController("127.0.0.1"), None, ControllerPayload(1.0))
    with pytest.raises(InvalidInertia, match="`transition_s` must be a number from 0 to 60"):
        proposal.send(transition_s=transition_s)


@pytest.mark.parametrize(
    "request_of",
    [
        lambda: MotionRequest(tool_speed=float("inf")),
        lambda: MotionRequest(tool_speed=0.0),
        lambda: MotionRequest(periods=0),
        lambda: WeighingRequest(reach=float("inf")),
        lambda: WeighingRequest(accuracy=float("nan")),
    ],
)
def test_numbers_of_a_motion_are_those_of_an_arm(request_of):
    with pytest.raises(InvalidTrajectory, match=r"`\w+` must be a number .*, got"):
        request_of()
