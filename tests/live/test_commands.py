"""Commands to a controller: payloads with their echo, motions, and refusals beforehand."""

import json
import re
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import steelyard as sy
from conftest import steelyard
from live_helpers import START, Rows, served, swing, weighed
from steelyard.errors import (
    InvalidInertia,
    InvalidRobot,
    InvalidTrajectory,
    SourceFailed,
    UnreadableFile,
)
from steelyard.export import ErrorLimits
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.io import read
from steelyard.live import (
    Controller,
    FrankaController,
    MotionFailed,
    MotionProgress,
    MotionRequest,
    MotionRun,
    MotionState,
    Moved,
    PayloadChange,
    PayloadHistory,
    ReplaySource,
    Ros2Controller,
    Row,
    SettingState,
    Stream,
    UrController,
    WeighingRequest,
    _ur,
    move,
    restore_payload,
    set_payload,
    stop,
    weigh_live,
)
from steelyard.live._controller import (
    ControllerPayload,
    Observation,
    PayloadRequest,
    ProgramState,
    controller_of,
    movable_of,
)
from steelyard.live._motion import MotionPlan
from steelyard.live._setting import Proposal
from steelyard.recording import ArmIdentity
from steelyard.robot import load_robot
from steelyard.signals import prepare
from steelyard.simulation import SimulationOptions, simulate
from steelyard.trajectory import FourierTrajectory
from steelyard.twin._backend import NOMINAL_GAINS, SimulatedArm
from steelyard.twin._controller import SERIAL_NUMBER, SimulatedController
from steelyard.twin._server import ControllerServer
from steelyard.verdict import Doubt, DoubtKind, Verdict
from waiting import wait_until

FAST = MotionRequest(tool_speed=2.0)


@contextmanager
def controller(**more):
    """One that runs by itself, with an arm that the dashboard calls a UR10."""
    world = Rows()
    with served(world, speed=1.0, **more) as found:
        found.controller.backend.robot = load_robot("ur10e")
        yield found, UrController(found.host, found.port)


# --- payloads


def test_a_payload_is_set_echoed_and_put_back(tmp_path):
    with controller() as (found, source):
        found.controller.fault("payload:1")
        proposal = Proposal.of(source, weighed())
        assert proposal.old == ControllerPayload(1.0)
        assert found.controller.payload == ControllerPayload(1.0)  # nothing is sent by a proposal
        history = tmp_path / "undo.json"
        assert proposal.carry_out(history, transition_s=0.1).is_set
        assert found.controller.payload.mass == 2.5
        np.testing.assert_allclose(
            found.controller.payload.inertia, [0.01, 0.011, 0.006, 0, 0, 0], atol=1e-9
        )
        back = Proposal.undo(source, history)
        assert (back.old.mass, back.new) == (2.5, ControllerPayload(1.0))
        found.controller.fault("payload:3")
        with pytest.raises(SourceFailed, match=r"reports 3 kg now, not the 2\.5 kg that were set"):
            Proposal.undo(source, history)
        with pytest.raises(
            SourceFailed, match=r"nothing was sent: \S+ reports 3 kg now and reported"
        ):
            back.carry_out(history)  # a person has set another payload since the question
        assert found.controller.payload == ControllerPayload(3.0)
        with pytest.raises(
            SourceFailed, match=r"undo\.json is of ur://127\.0\.0\.1:\d+, not of ur://elsewhere"
        ):
            Proposal.undo(UrController("elsewhere"), history)
    states = [entry.state for entry in PayloadHistory.load(history).entries]
    assert states == ["sent", "set", "sent", "not set"]


def test_the_history_of_payloads_is_only_added_to(tmp_path):
    history = tmp_path / "undo.json"
    with controller() as (found, source):
        for mass in (2.0, 3.0):
            done = set_payload(
                source,
                weighed(mass),
                confirm=lambda proposal: True,
                history_file=history,
                transition_s=0.0,
            )
            assert done.is_set
        for mass in (2.0, 0.0):  # undoing twice goes back by two
            back = restore_payload(source, history, confirm=lambda x: True, transition_s=0.0)
            assert back.is_set
            assert found.controller.payload.mass == pytest.approx(mass)
        with pytest.raises(SourceFailed, match="every change was restored already"):
            restore_payload(source, history, confirm=lambda x: True)
    entries = PayloadHistory.load(history).entries
    assert [entry.new.mass for entry in entries[::2]] == [2.0, 3.0, 2.0, 0.0]
    assert entries[0].arm == ArmIdentity("ur10e", found.controller.serial_number)
    with pytest.raises(SourceFailed, match=r"there is no file .*x\.json"):
        Proposal.undo(source, tmp_path / "x.json")
    history.write_text("{}")
    with pytest.raises(UnreadableFile):
        PayloadHistory.append(history, entries[0])
    assert history.read_text() == "{}"


def test_two_programs_that_set_payloads_lose_no_entry(tmp_path):
    history = tmp_path / "undo.json"
    arm = ArmIdentity("ur10e", "1")

    def add(program):
        for number in range(20):
            new = ControllerPayload(100.0 * program + number)
            entry = PayloadChange.sent_to(
                "ur://arm", arm, old=ControllerPayload(), new=new, restores=False
            )
            PayloadHistory.append(history, entry)

    programs = [threading.Thread(target=add, args=(number,)) for number in (1, 2, 3)]
    for program in programs:
        program.start()
    for program in programs:
        program.join()
    masses = [entry.new.mass for entry in PayloadHistory.load(history).entries]
    assert sorted(masses) == [100.0 * p + number for p in (1, 2, 3) for number in range(20)]
    assert [file.name for file in tmp_path.iterdir()] == ["undo.json"]


def test_the_outcome_of_another_program_is_not_taken_for_ones_own():
    arm = ArmIdentity("ur10e", "1")
    first, second = (
        PayloadChange.sent_to(
            "ur://arm", arm, old=ControllerPayload(), new=ControllerPayload(mass), restores=False
        )
        for mass in (1.0, 2.0)
    )
    not_set = second.with_outcome(SettingState.NOT_SET, first.new)
    is_set = first.with_outcome(SettingState.SET, first.new)
    history = PayloadHistory((second, first, is_set, not_set))
    assert history.last_change == first
    assert PayloadHistory((first, second, not_set, is_set)).last_change == first
    assert PayloadHistory((first, second, is_set, not_set)).last_change == first
    assert PayloadHistory((second, first, is_set)).last_change == first


@pytest.mark.parametrize("error_kg", [0.1, -0.249, 0.001])
def test_an_echo_of_another_payload_is_not_taken(error_kg, tmp_path):
    with controller() as (found, source):
        found.controller.fault("payload:1")
        found.controller.fault(f"wrong-echo:{error_kg}")
        done = Proposal.of(source, weighed()).carry_out(tmp_path / "u.json", transition_s=0.0)
        assert not done.is_set
        assert done.outcome.state is SettingState.NOT_KNOWN
        assert done.outcome.words.endswith(f"the controller now says {2.5 + error_kg:.3f} kg")
    last = PayloadHistory.load(tmp_path / "u.json").entries[-1]
    assert (last.state, last.reported.mass) == ("not known", pytest.approx(2.5 + error_kg))


def test_a_second_setter_is_noticed():
    with controller() as (found, source):
        proposal = Proposal.of(source, weighed())

        def set_another():
            wait_until(lambda: found.controller.payload.mass == 2.5)
            rows_with_ours = found.sent + 50
            wait_until(lambda: found.sent >= rows_with_ours)
            found.controller.fault("payload:4")

        thread = threading.Thread(target=set_another)
        thread.start()
        outcome = proposal.send(transition_s=0.0)
        thread.join()
        assert outcome.state is SettingState.NOT_KNOWN
        assert outcome.words.endswith("the controller now says 4.000 kg")


def test_a_stream_that_ends_leaves_the_setting_unknown():
    with controller() as (found, source):
        proposal = Proposal.of(replace(source, timeout_s=0.5), weighed())
        run = found.controller.run

        def run_and_stop(text, **more):
            run(text, **more)
            found.controller.fault("mute")

        found.controller.run = run_and_stop
        outcome = proposal.send(transition_s=0.0)
        assert outcome.state is SettingState.NOT_KNOWN
        assert outcome.words.startswith("it is not known whether the payload was set: ")


@pytest.mark.parametrize("fault", ["model:UR5", "serial:20991234567"])
def test_a_payload_of_another_arm_is_refused(fault, tmp_path):
    with controller() as (found, source):
        arm = source.identity((5, 12))
        assert arm == ArmIdentity("ur10e", found.controller.serial_number)
        assert Proposal.to(source, ControllerPayload(1.0), arm=arm).arm == arm
        done = Proposal.of(source, weighed()).carry_out(tmp_path / "u.json", transition_s=0.0)
        assert done.is_set
        found.controller.fault(fault)
        with pytest.raises(InvalidRobot, match="belongs to another arm: it is of ur10e, number"):
            Proposal.to(source, ControllerPayload(1.0), arm=arm)
        with pytest.raises(InvalidRobot, match="belongs to another arm"):
            Proposal.undo(source, tmp_path / "u.json")
        with pytest.raises(InvalidRobot, match="the payload belongs to another arm"):
            Proposal.of(source, replace(weighed(), arm=arm))
        assert found.controller.payload.mass == 2.5


@pytest.mark.parametrize(
    "output",
    [
        "safety_mode",
        "robot_mode",
        "joint_mode",
        "robot_status_bits",
        "actual_qd",
        "runtime_state",
        "payload_cog",
    ],
)
def test_what_the_stream_does_not_tell_counts_as_not_fine(output):
    with controller() as (found, source):
        found.controller.fault(f"missing:{output}")
        with pytest.raises(SourceFailed, match="does not"):
            Proposal.of(source, weighed())
        assert found.controller.payload == ControllerPayload()


def test_a_script_without_an_answer_is_judged_by_the_echo(monkeypatch, tmp_path):
    received = _ur.receive_until

    def lost(connection, enough, end_s):
        data = received(connection, enough, end_s)
        if len(data) >= 79:  # the state messages after a script
            raise TimeoutError("timed out")
        return data

    monkeypatch.setattr(_ur, "receive_until", lost)
    with controller() as (found, source):
        done = Proposal.of(source, weighed(2.5)).carry_out(tmp_path / "undo.json")
        assert done.outcome.state is SettingState.SET
        assert found.controller.payload.mass == 2.5
        with pytest.raises(SourceFailed, match="it is not known whether it runs: timed out"):
            source.send_script("def f():\n sleep(1)\nend\n")


def test_a_wait_for_the_echo_that_is_interrupted_leaves_the_payload_unknown():
    def named_row():
        raise KeyboardInterrupt

    request = PayloadRequest(ControllerPayload(2.0), ControllerPayload(), 0.5)
    stream = SimpleNamespace(named_row=named_row)
    outcome = UrController("127.0.0.1").setting_outcome(stream, request, timeout_s=1.0)
    assert outcome.state is SettingState.NOT_KNOWN
    assert outcome.words == "it is not known whether the payload was set: interrupted"


@pytest.mark.parametrize("moment", ["send_script", "require_unchanged"])
def test_ctrl_c_at_any_moment_of_setting_leaves_the_payload_unknown(monkeypatch, tmp_path, moment):
    with controller() as (found, source):
        proposal = Proposal.of(source, weighed())
        plain = getattr(UrController, moment)

        def interrupted(*args):
            plain(*args)
            raise KeyboardInterrupt

        monkeypatch.setattr(UrController, moment, interrupted)
        done = proposal.carry_out(tmp_path / "undo.json", transition_s=0.0)
        assert done.outcome.state is SettingState.NOT_KNOWN
        assert done.outcome.words == "it is not known whether the payload was set: interrupted"
        is_sent = moment == "send_script"
        wait_until(lambda: found.controller.payload.mass == (2.5 if is_sent else 0.0))
    states = [entry.state for entry in PayloadHistory.load(tmp_path / "undo.json").entries]
    assert states == ["sent", "not known"]


def test_a_second_ctrl_c_says_that_nothing_is_known(monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("steelyard.live._playing.watch_rest", interrupted)
    calls = []
    reports = []
    link = SimpleNamespace(
        request_stop=lambda: calls.append("stop"), close=lambda: calls.append("close")
    )
    plan = SimpleNamespace(controller=None, braking_s=0.2)
    run = MotionRun(plan, SimpleNamespace(on_rows=None), on_stop=reports.append)
    run._link = link
    run.progress = MotionProgress(2.0, state=MotionState.MOVING)
    with pytest.raises(KeyboardInterrupt), run:
        raise KeyboardInterrupt
    assert calls == ["stop", "close"]
    (report,) = reports
    assert report.sentence == (
        "it is not known whether the arm moves (the wait for its rest was interrupted): look at it"
    )


def test_payloads_that_no_export_writes_are_refused():
    doubted = Verdict("", (Doubt(DoubtKind.NOT_PHYSICAL, "no real body fits"),))
    with controller() as (_, source):
        with pytest.raises(
            InvalidInertia, match="not exported: the estimate has a doubt: no real body"
        ):
            Proposal.of(source, weighed(verdict=doubted))
        with pytest.raises(InvalidInertia, match="the mass is known to"):
            Proposal.of(source, weighed(share=0.2))
        with pytest.raises(InvalidInertia, match="the mass is known to"):
            Proposal.of(source, weighed(), limits=ErrorLimits(mass=0.005))


def test_a_mass_above_the_rating_is_refused():
    with controller() as (found, source):
        with pytest.raises(
            InvalidInertia, match=r"13 kg is above the rating of this arm, 12\.5 kg"
        ):
            Proposal.of(source, weighed(13.0))
        with pytest.raises(InvalidInertia, match=r"2\.5 kg is above the rating of this arm, 2 kg"):
            Proposal.of(source, weighed(), rating_kg=2.0)
        found.controller.backend.robot = None
        with pytest.raises(
            InvalidInertia, match="does not report the rating of the arm: give its rating"
        ):
            Proposal.of(source, weighed())
        assert Proposal.of(source, weighed(), rating_kg=5.0).new.mass == 2.5


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("protective-stop", "is not ready: protective stop"),
        ("power-off", "is not ready: the arm is not powered"),
        ("local", "is not in remote control and ignores commands"),
        ("hand", "is not ready: a hand guides the arm"),
        ("late:0.3", r"is not ready: its rows come 0\.\d+ s late"),
    ],
)
def test_controllers_that_are_not_ready_are_refused(fault, words):
    with controller() as (found, source):
        found.controller.fault(fault)
        with pytest.raises(SourceFailed, match=words):
            Proposal.of(source, weighed())
        assert found.controller.payload == ControllerPayload()


def test_a_speed_that_is_no_number_may_be_a_motion():
    columns = ("runtime_state", *(f"actual_qd_{k}" for k in range(6)))
    motion = UrController("arm").motion_in(columns)
    assert motion((1, 0.0, np.nan, 0.0, 0.0, 0.0, 0.0)) == ("a joint speed is no number", False)
    assert motion((1, *[0.0] * 6)) == ("", True)


def test_an_arm_that_moves_or_is_reduced_is_refused():
    with controller() as (found, source):
        found.controller.backend.speed = 0.2
        with pytest.raises(SourceFailed, match=r"moves \(0\.2 rad/s\): stop the arm first"):
            Proposal.of(source, weighed())
        found.controller.modes = found.controller.modes._replace(safety=2)
        with pytest.raises(SourceFailed, match="its safety mode is reduced, not normal"):
            Proposal.of(source, weighed())


@pytest.mark.parametrize("output", ["payload", "payload_cog"])
def test_a_payload_that_the_stream_does_not_contain_is_not_replaced(output):
    with controller() as (found, source):
        found.controller.fault(f"missing:{output}")
        with pytest.raises(SourceFailed, match="does not report its payload with mass and"):
            Proposal.of(source, weighed())
        assert "sec steelyard_payload runs" not in found.controller.log


def test_an_inertia_that_the_stream_does_not_contain_is_not_sent():
    """The rows could not tell whether it was taken, and it could not be restored."""
    with controller() as (found, source):
        found.controller.fault("missing:payload_inertia")
        proposal = Proposal.of(source, weighed())
        assert not proposal.with_inertia
        assert proposal.send(transition_s=0.0).state is SettingState.SET
        assert found.controller.payload.mass == 2.5


@pytest.mark.parametrize(
    ("fault", "words"),
    [("serial:7", "reports ur10e, number 7 now and reported ur10e, number"), ("serial:-", "now")],
)
def test_a_payload_is_not_sent_to_an_arm_that_was_swapped_since_the_question(fault, words):
    with controller() as (found, source):
        proposal = Proposal.of(source, weighed())
        found.controller.fault(fault)
        with pytest.raises(SourceFailed, match=f"nothing was sent: .*{words}"):
            proposal.send()
        assert "sec steelyard_payload runs" not in found.controller.log
        assert found.controller.payload == ControllerPayload()


def test_a_controller_that_does_nothing_is_noticed(monkeypatch):
    with controller() as (_, source):
        monkeypatch.setattr(SimulatedController, "run", lambda self, text: None)
        outcome = Proposal.of(source, weighed()).send(transition_s=0.0)
        assert outcome.state is SettingState.NOT_SET
        assert outcome.words.endswith("still reports 0.000 kg")


def test_older_controllers_get_mass_and_centre_only(monkeypatch):
    monkeypatch.setattr(
        "live_helpers.SimulatedController",
        lambda world: SimulatedController(world, version=(5, 9, 0, 0)),
    )
    with controller() as (found, source):
        proposal = Proposal.of(source, weighed())
        assert not proposal.with_inertia
        proposal.send()
        assert found.controller.payload == ControllerPayload(2.5, proposal.new.cog)


def test_only_controllers_can_be_commanded():
    with pytest.raises(
        SourceFailed, match=r"replay:x\.parquet cannot be commanded: give ur://HOST, ros2://HOST"
    ):
        controller_of(ReplaySource("x.parquet"))
    for source in (ReplaySource("x.parquet"), Ros2Controller("arm"), FrankaController("arm")):
        with pytest.raises(SourceFailed, match="cannot be moved from here: give ur://HOST"):
            movable_of(source)


@pytest.mark.parametrize(
    "controller", [UrController("arm"), Ros2Controller("arm"), FrankaController("arm")], ids=str
)
def test_capabilities_agree_with_the_interface(controller):
    able = controller.capabilities
    assert able.moves == able.stops == (controller.movable is not None)
    reports = type(controller).payload_in is not Controller.payload_in
    assert able.reports_payload == reports
    assert controller.controller is controller


def test_a_payload_is_set_from_python_after_a_question(tmp_path):
    with controller() as (found, source):
        refused = set_payload(source, weighed(), confirm=lambda proposal: False, rating_kg=5.0)
        assert (refused.sent, refused.proposal.new.mass) == (False, 2.5)
        assert found.controller.payload == ControllerPayload()
        asked = []
        done = set_payload(
            source,
            weighed(),
            confirm=lambda proposal: not asked.append(proposal),
            history_file=tmp_path / "undo.json",
            transition_s=0.0,
        )
        assert done.proposal is asked[0]
        assert done.outcome.words == "the controller reports a payload of 2.500 kg"
        assert done.history_file == tmp_path / "undo.json"
        assert found.controller.payload.mass == 2.5


def test_the_verb_shows_asks_sets_and_undoes(tmp_path):
    weighed().save(tmp_path / "payload.json")
    with controller() as (found, source):
        shown = steelyard("set-payload", source, "payload.json", cwd=tmp_path)
        assert shown.returncode == 0, shown.stderr
        assert "Nothing was sent; --yes sends it." in shown.stdout
        assert found.controller.payload == ControllerPayload()
        done = steelyard(
            "set-payload", source, "payload.json", "--yes", "--transition", "0", cwd=tmp_path
        )
        assert "The controller reports a payload of 2.500 kg." in done.stdout, done.stderr
        words = ("set-payload", source, "payload.json", "--undo", "--yes", "--json")
        facts = json.loads(steelyard(*words, cwd=tmp_path).stdout)
        assert facts["state"] == "set"
        assert facts["new"]["mass"] == 0
        assert found.controller.payload == ControllerPayload()
        found.controller.fault("wrong-echo:0.1")
        done = steelyard("set-payload", source, "payload.json", "--yes", cwd=tmp_path)
        assert done.returncode == 1
        assert "It is not known what was set: the controller now says 2.600 kg." in done.stdout


# --- motions


@pytest.fixture(scope="module")
def arm():
    robot = load_robot("ur10e").with_serial(SERIAL_NUMBER)
    return robot.with_drive(
        replace(robot.drive, gain=np.array(NOMINAL_GAINS), gain_std=np.zeros(6))
    )


@pytest.fixture(scope="module")
def carrying(arm):
    """A controller in MuJoCo whose arm carries something that it does not believe in.

    Its clock goes slower on a busy machine, and rows that come late do not end a motion.
    """
    load = InertialParameters.from_com(2.5, [0, 0, 0.05], 0.004 * np.eye(3), arm.flange)
    world = SimulatedArm(arm, {0.0: load}, start=START)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("steelyard.twin._server._MAX_LAG_S", 0.01)
        patch.setattr("steelyard.live._playing._STALL_S", 20.0)
        patch.setattr("steelyard.live._playing._START_STALL_S", 20.0)
        with ControllerServer(SimulatedController(world)) as found:
            yield found, UrController(found.host, found.port, timeout_s=20.0)


def wait_at_rest(source, place=None):
    """Returns when the arm has stood for a while, in a posture where one is given."""
    still, end = 0, time.monotonic() + 30
    with Stream(source) as stream:
        while still < 10 and time.monotonic() < end:
            said = dict(zip(stream.columns, stream.row().values, strict=True))
            q, v = (
                np.array([said[f"{name}_{k}"] for k in range(6)])
                for name in ("actual_q", "actual_qd")
            )
            away = 0.0 if place is None else np.abs(q - place).max()
            still = still + 1 if np.abs(v).max() < 5e-3 and away < 2e-3 else 0
            time.sleep(0.02)


def test_a_motion_goes_from_where_the_arm_stands_and_back(arm, carrying):
    _, source = carrying
    core = swing()
    with Stream(source) as stream:
        plan = MotionPlan.of(stream, arm, core, FAST)
    path = plan.path
    np.testing.assert_allclose(path.q[[0, -1]], [START, START], atol=1e-4)
    spacing_s = path.steps_per_point / path.rate_hz
    assert (len(path.q) - 1) * spacing_s == pytest.approx(plan.trajectory.duration_s, abs=spacing_s)
    t = np.arange(0, plan.trajectory.duration_s, 1e-3)
    between = [np.interp(t, spacing_s * np.arange(len(path.q)), q) for q in path.q.T]
    np.testing.assert_allclose(np.transpose(between), plan.trajectory.at(t)[0], atol=1e-4)
    entry = plan.trajectory.entry_s
    inside = core.at([0.5])[0][0]
    np.testing.assert_allclose(plan.trajectory.at([entry + 0.5])[0][0], inside, atol=1e-9)


def test_motions_that_must_not_start_are_refused(arm, carrying):
    found, source = carrying
    with Stream(source) as stream:
        far = swing(start=START + np.array([0, 1.0, 0, 0, 0, 0]))
        with pytest.raises(
            InvalidTrajectory, match=r"shoulder_lift_joint stands 1\.00 rad from where"
        ):
            MotionPlan.of(stream, arm, far)
        fast = swing(speed=9.0)
        with pytest.raises(InvalidTrajectory, match="the motion breaks a limit of ur10e"):
            MotionPlan.of(stream, arm, fast)
        with pytest.raises(InvalidRobot, match="is not the arm of the model"):
            MotionPlan.of(stream, load_robot("ur10").with_serial(SERIAL_NUMBER), swing())
        found.controller.fault("model:UR5")
        with pytest.raises(InvalidRobot, match="the motion belongs to another arm: it is of ur10e"):
            MotionPlan.of(stream, arm, swing())
        found.controller.fault("model:UR10")
        with pytest.raises(InvalidTrajectory, match=r"for planar2r with 2 joints, ur://\S+ has 6"):
            MotionPlan.of(stream, load_robot("planar2r"), swing())
        for fault, words in (
            ("protective-stop", "protective stop"),
            ("local", "not in remote control"),
        ):
            found.controller.fault(fault)
            while fault == "protective-stop" and not stream.row().waiting:
                pass
            with pytest.raises(SourceFailed, match=words):
                MotionPlan.of(stream, arm, swing())
            found.controller.fault("normal")
            while stream.row().waiting:
                pass


def test_a_motion_that_is_stopped_or_never_starts_says_so(arm, carrying, monkeypatch):
    found, source = carrying

    def stop_it(report):
        if report.rows > 600:
            found.controller.fault("protective-stop")

    try:
        with pytest.raises(
            MotionFailed, match="the motion was interrupted: protective stop"
        ) as hit:
            move(source, arm, swing(), confirm=agree, request=FAST, on_report=stop_it)
        assert hit.value.moved is Moved.YES
    finally:
        found.controller.fault("normal")
    found.controller.place(START)
    wait_at_rest(source, START)
    monkeypatch.setattr("steelyard.live._playing._MAX_DELAY_S", 0.5)
    with Stream(source) as stream:
        while stream.row().waiting:
            pass
        plan = MotionPlan.of(stream, arm, swing(), FAST)
        found.controller.fault("local")
        with (
            MotionRun(plan, stream) as run,
            pytest.raises(MotionFailed, match="did not start the motion: is it in remote") as hit,
        ):
            list(run)
    assert hit.value.moved is Moved.NO
    assert "a script was ignored: not in remote control" in found.controller.log[-3:]
    found.controller.fault("normal")


def agree(plan):
    return True


def followed(*rows, duration_s=2.0):
    """The states of a motion along rows of (time [s], program, why it waits)."""
    progress, states, last_s, seen = MotionProgress(duration_s), [], rows[0][0], None
    for t, program, waiting in rows:
        for between_s in np.arange(last_s + 0.1, t - 0.05, 0.1):
            progress = progress.after(Row(between_s, (between_s,)), seen)
        seen = Observation(program, 0.5 * (program is RUNS), (), "why")
        progress = progress.after(Row(t, (t,), waiting=waiting), seen)
        states.append(progress.state)
        last_s = t
    return states, progress


RUNS, UNSEEN = ProgramState.MOVING, ProgramState.UNSEEN
FINISHED, WAITS = ProgramState.FINISHED, ProgramState.WAITING
SENT, MOVING = MotionState.SENT, MotionState.MOVING


@pytest.mark.parametrize(
    ("rows", "states", "moved"),
    [
        (
            [(100.0, UNSEEN, ""), (100.5, RUNS, ""), (102.5, RUNS, ""), (102.6, FINISHED, "")],
            [SENT, MOVING, MOVING, MotionState.FINISHED],
            Moved.YES,
        ),
        (
            [(100.0, UNSEEN, ""), (103.0, WAITS, ""), (103.1, UNSEEN, "")],
            [SENT, SENT, MotionState.NOT_STARTED],
            Moved.NO,
        ),
        (
            [(100.0, UNSEEN, ""), (100.1, ProgramState.REFUSED, "")],
            [SENT, MotionState.NOT_STARTED],
            Moved.NO,
        ),
        (
            [(100.0, RUNS, ""), (101.0, RUNS, "protective stop")],
            [MOVING, MotionState.INTERRUPTED],
            Moved.YES,
        ),
        (
            [(100.0, RUNS, ""), (101.0, ProgramState.STOPPED, "")],
            [MOVING, MotionState.INTERRUPTED],
            Moved.YES,
        ),
        (
            [(100.0, RUNS, ""), (101.0, UNSEEN, "")],
            [MOVING, MotionState.INTERRUPTED],
            Moved.YES,
        ),
        (
            [(100.0, RUNS, ""), (108.0, RUNS, ""), (108.1, RUNS, "")],
            [MOVING, MOVING, MotionState.OVERDUE],
            Moved.YES,
        ),
        (
            [(100.0, UNSEEN, "just started again"), (100.1, WAITS, "")],
            [SENT, SENT],
            Moved.NOT_KNOWN,
        ),
    ],
    ids=[
        "finished",
        "not started",
        "refused",
        "mode",
        "stopped",
        "replaced",
        "overdue",
        "not known",
    ],
)
def test_the_states_of_a_motion(rows, states, moved):
    found, progress = followed(*rows)
    assert found == states
    assert progress.moved is moved
    assert progress.ongoing is (states[-1] in (SENT, MOVING))
    if states[-1] is MotionState.OVERDUE:
        assert progress.failure(UrController("arm")) == "the motion did not end within 8 s"


def test_rows_from_before_the_program_was_sent_do_not_count():
    """An answer to the question that takes long must not start the clock."""
    progress = MotionProgress(2.0, sent_s=50.0)
    early = Row(10.0, (10.0,), received_s=40.0)
    late = Row(20.0, (20.0,), received_s=51.0)
    seen = Observation(UNSEEN, 0.0, ())
    assert progress.after(early, seen) is progress
    assert progress.after(early, seen).after(late, seen).start_s == 20.0


@pytest.mark.parametrize("dashboard", [True, False], ids=["dashboard", "program"])
def test_stop_ends_a_motion_and_awaits_rest(carrying, dashboard, monkeypatch):
    found, source = carrying
    goal = (START + np.array([0.6, 0, 0, 0, 0, 0])).tolist()
    found.controller.run(f"def far():\n movej({goal}, a=0.5, v=0.2)\nend\n")
    if not dashboard:
        monkeypatch.setattr(UrController, "ask_dashboard", lambda self, command: "")
    with Stream(source) as stream:
        motion_in = source.motion_in(stream.columns)
        end = time.monotonic() + 20
        while abs(stream.named_row()["actual_qd_0"]) < 0.05:
            assert time.monotonic() < end
        assert motion_in(stream.row().values).reason
        assert stop(source).at_rest
        stopped_s = found.controller.outputs["timestamp"][0]
        wait_until(lambda: stream.row().t >= stopped_s)  # rows of this stream may come later
        assert not motion_in(stream.row().values).reason
        assert np.abs(source.posture(stream.named_row()) - goal).max() > 0.02
    found.controller.place(START)
    wait_at_rest(source, START)


@pytest.fixture(scope="module")
def model(arm):
    """The identified empty arm."""
    options = SimulationOptions(step_s=0.004)
    lively = FourierTrajectory.random(
        arm.home, reach=1.0, speed=1.2, period_s=6.0, harmonics=4, seed=0
    )
    empty = simulate(arm, lively, rate_hz=125.0, options=options)
    return identify(arm, prepare(empty.recording, drive=arm.drive))


def stand_at_start(found, source):
    found.controller.run(f"def back():\n movej({START.tolist()}, a=2, v=1)\nend\n")
    wait_at_rest(source, START)


def test_the_whole_cycle_moves_weighs_and_sets(model, carrying, tmp_path):
    found, source = carrying
    stand_at_start(found, source)
    model.save(tmp_path / "model.json")
    lively = swing(period_s=3.0, speed=1.5)
    lively.save(tmp_path / "motion.json")
    words = (
        "weigh-live",
        source,
        "--model",
        "model.json",
        "--motion",
        "motion.json",
        "--yes",
        "--set",
        "--speed",
        "2",
    )
    words = (*words, "-o", "p.json", "--record", "log.parquet", "--accuracy", "3")
    done = steelyard(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    payload = sy.Payload.load(tmp_path / "p.json")
    assert payload.arm == ArmIdentity("ur10e", found.controller.serial_number)
    assert abs(payload.mass - 2.5) < 3 * 1.96 * payload.std[0]
    assert found.controller.payload.mass == pytest.approx(payload.mass, abs=1e-5)
    again = sy.track(tmp_path / "log.parquet", model=tmp_path / "model.json")
    assert again.payload.mass == pytest.approx(payload.mass, rel=1e-6)
    assert (tmp_path / "p.undo.json").exists()


@pytest.mark.thorough
def test_the_arm_is_weighed_from_python_after_a_question(model, carrying, tmp_path):
    found, source = carrying
    stand_at_start(found, source)
    request = WeighingRequest(motion=swing(), tool_speed=2.0, accuracy=0.03)
    programs = len(found.controller.log)
    payload_before = found.controller.payload
    with pytest.raises(InvalidTrajectory, match="nothing was moved: the motion was not confirmed"):
        weigh_live(source, model, confirm=lambda plan: False, request=request)
    assert len(found.controller.log) == programs
    snapshots = []
    done = weigh_live(
        source,
        model,
        confirm=lambda plan: plan.robot is model.robot,
        request=request,
        output=tmp_path / "log.parquet",
        on_snapshot=snapshots.append,
    )
    assert done.files == (tmp_path / "log.parquet",)
    assert done.rows == snapshots[-1].rows > 400 * done.plan.trajectory.duration_s
    assert done.payload.arm == ArmIdentity("ur10e", found.controller.serial_number)
    assert abs(done.payload.mass - 2.5) < 3 * 1.96 * done.payload.std[0]
    again = sy.track(tmp_path / "log.parquet", model=model)
    assert again.payload.mass == pytest.approx(done.payload.mass, rel=1e-6)
    assert found.controller.payload == payload_before  # setting is another function


@pytest.mark.parametrize(
    ("fault", "end", "words"),
    [
        ("busy", "stop", "runs the program .*other_program.*: stop it first"),
        ("serial:999", f"fault serial:{SERIAL_NUMBER}", "another arm: .* number 999"),
        ("local", "fault normal", "not in remote control"),
    ],
)
def test_an_arm_that_must_not_move_is_refused_before_a_motion_is_designed(
    model, carrying, monkeypatch, fault, end, words
):
    found, source = carrying
    monkeypatch.setattr("steelyard.live._weigh_live.payload_motion", _no_design)
    log = len(found.controller.log)
    found.controller.fault(fault)
    with pytest.raises((SourceFailed, InvalidRobot), match=words) as raised:
        weigh_live(source, model, confirm=lambda plan: True)
    found.controller.fault("normal")
    found.controller.dashboard(end)
    assert "\n" not in str(raised.value)
    assert not [line for line in found.controller.log[log:] if "steelyard_motion" in line]


def _no_design(*_, **__):
    raise AssertionError("a motion is designed")


def test_limits_of_weigh_live_act_on_a_given_and_on_a_designed_motion(
    model, carrying, monkeypatch, tmp_path
):
    found, source = carrying
    stand_at_start(found, source)
    model.save(tmp_path / "model.json")
    swing(period_s=3.0, speed=1.5).save(tmp_path / "motion.json")
    (tmp_path / "limits.toml").write_text(
        "[[surroundings.wall]]\npoint = [0, 0, 1.05]\nnormal = [0, 0, -1]\n"
    )
    words = ("weigh-live", source, "--model", "model.json", "--yes", "--limits", "limits.toml")
    log = len(found.controller.log)
    refused = steelyard(*words, "--motion", "motion.json", cwd=tmp_path)
    assert refused.returncode == 2
    assert re.search(r"breaks a limit of ur10e: link \d and wall 1", refused.stderr)
    designs = []

    def designed(*_, limits, **__):
        designs.append(limits)
        raise InvalidTrajectory("no motion was found")

    monkeypatch.setattr("steelyard.live._weigh_live.payload_motion", designed)
    refused = steelyard(*words, cwd=tmp_path)
    assert "no motion was found" in refused.stderr
    assert [body.name for body in designs[0].surroundings.obstacles] == ["wall 1"]
    assert not [line for line in found.controller.log[log:] if "steelyard_motion" in line]


def test_what_is_requested_acts_on_a_given_motion(model):
    motion = swing(period_s=2.5)
    slow = WeighingRequest(motion=motion, period_s=5.0).trajectory(model, START)
    q, v, _ = motion.at([0.7])
    slow_q, slow_v, _ = slow.at([1.4])
    np.testing.assert_allclose(slow_q, q, atol=1e-12)
    np.testing.assert_allclose(slow_v, v / 2, atol=1e-12)
    furthest = np.abs(motion.at(np.linspace(0, 2.5, 500))[0] - START).max()
    enough = WeighingRequest(motion=motion, reach=1.01 * furthest)
    assert enough.trajectory(model, START) is motion
    with pytest.raises(InvalidTrajectory, match=r"takes \w+ 0\.\d+ rad from where it stands, more"):
        WeighingRequest(motion=motion, reach=0.9 * furthest).trajectory(model, START)
    with pytest.raises(InvalidTrajectory, match=r"`period_s` must be a number above 0.*got 0"):
        WeighingRequest(period_s=0.0)


def test_the_arm_moves_from_python_after_a_question(arm, carrying, tmp_path):
    found, source = carrying
    wait_at_rest(source)
    core, reports = swing(period_s=0.8, speed=0.5), []
    log = len(found.controller.log)
    with pytest.raises(InvalidTrajectory, match="nothing was moved: the motion was not confirmed"):
        move(source, arm, core, confirm=lambda plan: False)
    assert len(found.controller.log) == log
    done = move(
        source,
        arm,
        core,
        confirm=lambda plan: plan.robot is arm,
        request=FAST,
        output=tmp_path / "log.parquet",
        on_report=reports.append,
    )
    assert done.files == (tmp_path / "log.parquet",)
    assert len(read(done.files[0])) == done.rows == reports[-1].rows
    assert done.rows > 400 * done.plan.trajectory.duration_s


def test_the_command_move_records_the_motion(carrying, tmp_path):
    _, source = carrying
    wait_at_rest(source)
    swing(period_s=0.8, speed=0.5).save(tmp_path / "motion.json")
    refused = steelyard("move", source, "motion.json", "--yes", cwd=tmp_path)
    assert "does not say which arm it is for: give --robot" in refused.stderr
    words = ("move", source, "motion.json", "--robot", "ur10e", "--serial", SERIAL_NUMBER)
    refused = steelyard(*words, cwd=tmp_path)
    assert "nothing was moved: --yes moves the arm" in refused.stderr
    words = ("move", source, "motion.json", "--robot", "ur10e", "--yes", "-o", "log.parquet")
    refused = steelyard(*words, cwd=tmp_path)
    assert "the motion: the serial number of the arm is unknown, so it may be another" in (
        refused.stderr
    )
    words = (*words, "--serial", SERIAL_NUMBER)
    done = steelyard(*words, "--speed", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    back = read(tmp_path / "log.parquet")
    assert back.arm == ArmIdentity("ur10e", SERIAL_NUMBER)
    assert np.ptp(back.q, axis=0).max() > 0.05
    content = {**json.loads((tmp_path / "motion.json").read_text()), "robot": "ur10"}
    (tmp_path / "other.json").write_text(json.dumps(content))
    refused = steelyard("move", source, "other.json", "--robot", "ur10e", "--yes", cwd=tmp_path)
    assert "other.json is a motion for ur10, not for ur10e" in refused.stderr
    refused = steelyard("move", source, "motion.json", "--robot", "planar2r", "--yes", cwd=tmp_path)
    assert "motion.json moves 6 joints, planar2r has 2" in refused.stderr
