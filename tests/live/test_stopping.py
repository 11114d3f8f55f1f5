"""Motions stop for every reason: the simulated arm is measured from the fault to rest."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from conftest import steelyard
from live_helpers import START, swing
from steelyard.errors import InvalidRobot, InvalidTrajectory, SourceFailed
from steelyard.excitation import DesignLimits
from steelyard.live import (
    MotionFailed,
    MotionPlan,
    MotionRequest,
    Moved,
    RestState,
    Stream,
    UrController,
    move,
    stop,
)
from steelyard.live._motion import braking_time_s, motion_limits
from steelyard.live._rtde import PORT, RtdeClient
from steelyard.live._ur_motion import UrMotionLink, _RegisterChannel
from steelyard.recording import ArmIdentity
from steelyard.robot import load_robot
from steelyard.twin._backend import NOMINAL_GAINS, SimulatedArm
from steelyard.twin._controller import SERIAL_NUMBER, SimulatedController
from steelyard.twin._server import ControllerServer
from tiers import thorough_but
from waiting import wait_until

ACCELERATION_LIMIT = 8.0  # [rad/s^2], of an arm whose description has none
FAST = MotionRequest(tool_speed=2.0)
REST = 0.01  # [rad/s]
RATE_HZ = 500.0  # of the control steps
ATTEMPTS = 10
PAUSE_S = 0.05  # at rest before a motion
TURNING = "def other():\n while True:\n  speedj([0.3,0,0,0,0,0], 1, 0.1)\n end\nend\n"


class Probe:
    """Time, position, speed and acceleration of the simulated arm at every control step.

    Time is that of the arm, which no fault of the controller's clock changes.
    """

    def __init__(self):
        self.rows = []

    def __call__(self, controller):
        out = controller.outputs
        motion = (*out["actual_q"], *out["actual_qd"], *controller.backend.acceleration)
        self.rows.append((len(self.rows) / RATE_HZ, *motion))

    @property
    def t(self):
        return self.rows[-1][0]

    @property
    def speed(self):
        return max(map(abs, self.rows[-1][7:13]))

    def moving(self, speed=0.5):
        """Returns when the arm is fast."""
        wait_until(lambda: self.speed >= speed)

    def passes(self, seconds):
        """Returns when so much time has passed on the clock of the arm."""
        end = self.t + seconds
        wait_until(lambda: self.t >= end)

    def at_rest(self, rest_s=0.2):
        """Returns when the arm has rested for a while on its own clock."""
        count = round(rest_s * RATE_HZ)
        self.passes(rest_s)
        wait_until(lambda: all(max(map(abs, row[7:13])) < REST for row in self.rows[-count:]))

    def after(self, t):
        """Seconds from an instant to rest for good, and the largest acceleration since then."""
        rows = np.array([row for row in list(self.rows) if row[0] >= t])
        speeds = np.abs(rows[:, 7:13]).max(axis=1)
        assert speeds[-1] < REST, "it still moves"
        moving = np.flatnonzero(speeds >= REST)
        rest_s = rows[moving[-1], 0] - t if moving.size else 0.0
        return rest_s, np.abs(rows[:, 13:]).max()


@pytest.fixture(scope="module")
def arm():
    robot = load_robot("ur10e").with_serial(SERIAL_NUMBER)
    return robot.with_drive(
        replace(robot.drive, gain=np.array(NOMINAL_GAINS), gain_std=np.zeros(6))
    )


@pytest.fixture(scope="module")
def served_arm(arm):
    """A controller whose clock goes slower on a busy machine, and never hurries to catch up."""
    probe = Probe()
    world = SimulatedArm(arm, start=START)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("steelyard.twin._server._MAX_LAG_S", 0.01)
        with ControllerServer(SimulatedController(world), on_step=probe) as found:
            wait_until(lambda: probe.rows)
            yield found, UrController(found.host, found.port, timeout_s=1.0), probe


@pytest.fixture
def moving(served_arm):
    """A controller whose arm stands at the start, without faults."""
    found, _, probe = served_arm
    to_the_start(found, probe)
    return served_arm


@pytest.fixture
def patient(moving, monkeypatch):
    """The same controller; rows that a busy machine keeps back do not end a motion."""
    found, _, probe = moving
    monkeypatch.setattr("steelyard.live._playing._STALL_S", 20.0)
    monkeypatch.setattr("steelyard.live._playing._START_STALL_S", 20.0)
    monkeypatch.setattr("steelyard.live._playing.MAX_ANSWER_S", 20.0)
    monkeypatch.setattr("steelyard.live._ur_motion.MAX_ANSWER_S", 20.0)
    return found, UrController(found.host, found.port, timeout_s=20.0), probe


def to_the_start(found, probe):
    found.controller.fault("normal")
    found.controller.dashboard("stop")
    probe.at_rest(PAUSE_S)
    found.controller.place(START)
    probe.at_rest(PAUSE_S)


@contextmanager
def during(probe, action, speed=0.5):
    """Carries an action out on another thread while the arm moves; gives its instant."""
    instants = []
    ended = threading.Event()

    def act():
        wait_until(lambda: probe.speed >= speed or ended.is_set())
        if not ended.is_set():
            instants.append(probe.t)
            action()

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield instants
    finally:
        ended.set()
        thread.join()


def failed_motion(arm, moving, fault, confirm=lambda plan: True, motion=None):
    """A motion that a fault of the controller ends: its error, and the instant of the fault.

    The fault is its name, or a function. A machine so busy that the motion fails before the fault
    begins it again.
    """
    found, source, probe = moving

    def cause():
        fault() if callable(fault) else found.controller.fault(fault)

    for _ in range(ATTEMPTS):
        with (
            during(probe, cause) as instants,
            pytest.raises(MotionFailed) as raised,
        ):
            move(source, arm, motion or swing(), confirm=confirm, request=FAST)
        probe.at_rest()
        if instants:
            return raised.value, instants[0]
        to_the_start(found, probe)
    return pytest.fail("the machine is too busy to begin a motion")


@pytest.mark.parametrize(
    "fault",
    [
        "stall:1.5",
        "late:0.5",
        "close",
        *(pytest.param(fault, marks=pytest.mark.thorough) for fault in ("mute", "reset")),
    ],
)
def test_a_stream_that_fails_stops_the_arm(arm, moving, fault):
    _, _, probe = moving
    error, failed = failed_motion(arm, moving, fault)
    rest_s, acceleration = probe.after(failed)
    assert rest_s < 0.5
    assert acceleration < 1.2 * ACCELERATION_LIMIT
    assert error.moved is Moved.YES
    if error.report.state is not RestState.NOT_KNOWN:
        assert error.report.at_rest


def sent_to(found, usual_port, text):
    """Sends a script to a port of a controller, and waits for its first answer."""
    place = (found.host, found.port + usual_port - PORT)
    with socket.create_connection(place, timeout=20.0) as connection:
        connection.sendall(text.encode())
        answered = b""
        while len(answered) < 79:
            answered += connection.recv(4096)


@pytest.mark.parametrize(
    "starts",
    [
        lambda found: sent_to(found, 30002, TURNING),
        lambda found: sent_to(found, 30003, TURNING),
        lambda found: found.controller.fault("busy"),
    ],
    ids=["secondary port", "real-time port", "operator"],
)
def test_a_program_that_replaces_ours_is_noticed_and_stopped(arm, moving, starts):
    """Its output register says for ever that the program of the motion moves the arm."""
    found, _, probe = moving
    error, replaced = failed_motion(arm, moving, lambda: starts(found))
    said = probe.t
    assert "another program took its place; the arm has moved; the arm is at rest" in str(error)
    assert found.controller.program_state == "STOPPED"
    rest_s, _ = probe.after(replaced)
    assert rest_s < 0.6
    assert said - replaced < 1.5  # `at_rest` takes a part of it


@pytest.mark.parametrize("fault", thorough_but(["late:0.3"], ["late:0.5", "late:0.3"]))
def test_an_arm_whose_rows_come_late_by_now_does_not_start(arm, moving, monkeypatch, fault):
    """The program awaits its first beat, and gets probes until one is confirmed in time."""
    found, source, probe = moving
    plain = UrMotionLink.start
    sent = []

    def start(link):
        plain(link)
        found.controller.fault(fault)
        sent.append(probe.t)

    monkeypatch.setattr(UrMotionLink, "start", start)
    with pytest.raises(
        MotionFailed, match=r"did not start .*: its rows come 0\.\d\d s late"
    ) as hit:
        move(source, arm, swing(), confirm=lambda plan: True, request=FAST)
    assert hit.value.moved is Moved.NO
    found.controller.fault("normal")
    probe.at_rest()
    assert max(max(map(abs, row[7:13])) for row in probe.rows if row[0] >= sent[0]) < REST


def test_beats_that_do_not_arrive_are_no_other_program(arm, moving, monkeypatch):
    """The rows go on, and the program that brakes confirms no beat either."""
    _, _, probe = moving

    def lost():
        monkeypatch.setattr(_RegisterChannel, "send", lambda *_: None)

    error, failed = failed_motion(arm, moving, lost)
    assert "interrupted: the robot heard nothing from this computer for 120 ms" in str(error)
    rest_s, _ = probe.after(failed)
    assert rest_s < 0.5


def test_a_motion_that_is_paused_on_the_controller_is_ended(arm, moving):
    """Who presses play later must not find the rest of a motion that was given up."""
    found, _, probe = moving
    error, paused = failed_motion(arm, moving, lambda: found.controller.dashboard("pause"))
    assert "interrupted: its program was paused on the controller; the arm has moved" in str(error)
    assert error.report.at_rest
    assert found.controller.program_state == "STOPPED"
    rest_s, _ = probe.after(paused)
    assert rest_s < 0.5


def test_rows_that_come_ever_later_stop_the_arm(arm, moving):
    """They come regularly, and so do the beats; but what they show is long over."""
    _, _, probe = moving
    error, failed = failed_motion(arm, moving, "later:0.6")
    assert re.search(r"interrupted: its rows come 0\.[12]\d s late; the arm has moved", str(error))
    rest_s, acceleration = probe.after(failed)
    first_late_s = 0.15 * 1.6 / 0.6  # when the first row comes that is too late
    assert rest_s < first_late_s + 0.5
    assert acceleration < 1.2 * ACCELERATION_LIMIT


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("clock:5", r"the controller's clock went on by 5\.0 s without a row"),
        ("clock:-5", r"the controller's clock went back by 5\.0 s"),
        ("reduced", "its safety mode is reduced, not normal"),
    ],
)
def test_a_clock_that_jumps_and_reduced_mode_stop_the_arm(arm, moving, fault, words):
    _, _, probe = moving
    error, failed = failed_motion(arm, moving, fault)
    sentence = f"interrupted: {words}; the arm has moved; the arm is at rest"
    assert re.search(sentence, str(error))
    rest_s, acceleration = probe.after(failed)
    assert rest_s < 0.5
    assert acceleration < 1.2 * ACCELERATION_LIMIT


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError("a bug")])
def test_an_exception_and_ctrl_c_stop_the_arm(arm, patient, error):
    _, source, probe = patient
    instants, reports = [], []

    def on_report(report):
        if probe.speed > 0.5:
            instants.append(probe.t)
            raise error

    with pytest.raises((KeyboardInterrupt, RuntimeError)):
        move(
            source,
            arm,
            swing(),
            confirm=lambda plan: True,
            request=FAST,
            on_report=on_report,
            on_stop=reports.append,
        )
    assert probe.speed < REST  # the call returns with an arm at rest
    assert [report.state for report in reports] == [RestState.AT_REST]
    rest_s, acceleration = probe.after(instants[0])
    assert rest_s < 0.5
    assert rest_s < reports[0].seconds + 0.1
    assert acceleration < 1.2 * ACCELERATION_LIMIT


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_program_that_cannot_be_sent_is_a_motion_that_failed(arm, patient, monkeypatch, is_sent):
    """What became of the arm is said, whether or not the controller has received the program."""
    _, source, probe = patient
    plain = UrMotionLink.start

    def start(link):
        if is_sent:
            plain(link)
        raise SourceFailed("the script port was closed")

    monkeypatch.setattr(UrMotionLink, "start", start)
    with pytest.raises(
        MotionFailed, match=r"^the script port was closed; it is not known"
    ) as raised:
        move(source, arm, swing(), confirm=lambda plan: True)
    assert raised.value.report.at_rest
    assert raised.value.moved is Moved.NOT_KNOWN
    probe.at_rest()


def test_a_main_thread_that_hangs_stops_the_arm(arm, patient):
    """The thread that reads rows lives on, and could send beats for ever.

    The arm rests later than after other events: 0.3 s until the beats end, 0.12 s until the program
    misses them, and 0.25 s to brake.
    """
    _, source, probe = patient
    instants = []

    def on_report(report):
        if probe.speed > 0.5 and not instants:
            instants.append(probe.t)
            probe.passes(0.5)
            probe.at_rest()

    with pytest.raises(MotionFailed, match="the robot heard nothing from this computer"):
        move(source, arm, swing(), confirm=lambda plan: True, request=FAST, on_report=on_report)
    rest_s, acceleration = probe.after(instants[0])
    assert rest_s < 0.7
    assert acceleration < 1.2 * ACCELERATION_LIMIT


def test_no_beat_goes_out_before_the_program_was_sent(arm, patient, monkeypatch):
    """The arm does not start while this computer still waits for the controller's answer."""
    _, source, probe = patient
    sent = []
    plain = UrMotionLink.start
    speeds = []

    def start(link):
        plain(link)
        probe.passes(0.3)
        speeds.append(probe.speed)
        sent.append(link._count)

    monkeypatch.setattr(UrMotionLink, "start", start)
    move(source, arm, swing(period_s=0.8, speed=0.3), confirm=lambda plan: True, request=FAST)
    assert sent == [0]
    assert speeds[0] < REST


@pytest.mark.parametrize("seed", [3, 5])
def test_the_arm_brakes_on_its_path_and_at_the_pace_of_the_plan(arm, moving, seed):
    """Joints that brake each for itself leave the path by 5 mrad; on it, all slow down alike."""
    _, _, probe = moving
    plans = []

    def confirm(plan):
        plans.append(plan)
        return True

    _, failed = failed_motion(arm, moving, "mute", confirm, motion=swing(seed))
    path, speeds, _ = plans[-1].trajectory.at(np.arange(0, plans[-1].trajectory.duration_s, 5e-4))
    rows = np.array([row for row in probe.rows if row[0] > failed])
    rows = rows[np.abs(rows[:, 7:13]).max(axis=1) >= REST]
    distances = np.array([np.abs(path - q).max(axis=1) for q in rows[:, 1:7]])
    assert distances.min(axis=1).max() < 0.0015
    planned = speeds[distances.argmin(axis=1)]
    pace = np.linalg.norm(rows[:, 7:13], axis=1) / np.linalg.norm(planned, axis=1)
    begin_s, end_s = (rows[np.flatnonzero(pace > share)[-1], 0] for share in (0.9, 0.1))
    assert 0.8 < (end_s - begin_s) / plans[-1].braking_s < 1.6
    assert np.abs(rows[:, 13:]).max() < 1.2 * ACCELERATION_LIMIT


PATIENT_COMMAND = """
import sys
from steelyard.__main__ import main
from steelyard.live import _playing, _ur_motion

_playing._STALL_S = 20.0
_playing._START_STALL_S = 20.0
_playing.MAX_ANSWER_S = _ur_motion.MAX_ANSWER_S = 20.0
sys.exit(main())
"""


@pytest.fixture
def started(moving, tmp_path):
    """A process that moves the arm, which has begun; rows that come late do not end its motion."""
    _, source, probe = moving
    swing().save(tmp_path / "motion.json")
    words = ("move", str(source), "motion.json", "--robot", "ur10e", "--yes", "--speed", "2")
    words = (*words, "--serial", SERIAL_NUMBER)
    process = subprocess.Popen(
        [sys.executable, "-c", PATIENT_COMMAND, *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    probe.moving()
    yield process, source, probe
    process.kill()
    process.communicate()


def test_a_killed_process_stops_the_arm(started):
    process, _, probe = started
    killed = probe.t
    os.kill(process.pid, signal.SIGKILL)
    probe.at_rest()
    rest_s, acceleration = probe.after(killed)
    assert rest_s < 1.0
    assert acceleration < 1.2 * ACCELERATION_LIMIT


def test_ctrl_c_stops_the_arm_and_says_what_was_seen(started):
    process, _, probe = started
    interrupted = probe.t
    os.kill(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    assert probe.speed < REST
    rest_s, acceleration = probe.after(interrupted)
    assert rest_s < 0.5
    assert acceleration < 1.2 * ACCELERATION_LIMIT
    assert re.search(r"The arm is at rest, \d\.\d+ s after the request\.", stderr)
    assert process.returncode == 130
    assert "stopped" not in stderr


def test_the_command_stop_stops_a_motion_of_another_process(started):
    process, source, probe = started
    done = steelyard("stop", source, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "at rest"
    assert probe.speed < REST
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "the motion was interrupted: its program was ended on the controller" in stderr
    assert "the arm has moved; the arm is at rest" in stderr


def test_stop_says_what_it_saw(moving):
    found, source, probe = moving
    found.controller.run(TURNING)
    probe.moving(0.2)
    found.controller.fault("local")  # scripts and the dashboard are ignored
    report = stop(source, timeout_s=0.5)
    assert report.state is RestState.STILL_MOVING
    assert "press the emergency stop" in report.sentence
    found.controller.fault("mute")
    report = stop(source, timeout_s=0.5)  # the controller stops the arm, but sends no rows
    assert report.state is RestState.NOT_KNOWN
    assert "it is not known whether the arm moves" in report.sentence
    found.controller.fault("normal")
    report = stop(source)
    assert report.at_rest
    assert report.seconds < 1.0
    assert stop(UrController("127.0.0.1", 9)).state is RestState.NOT_KNOWN
    found.controller.place(START)


@pytest.mark.parametrize("output", ["actual_qd", "runtime_state"])
def test_a_stop_that_no_row_can_confirm_is_not_known(moving, output):
    found, source, probe = moving
    found.controller.run(TURNING)
    probe.moving(0.2)
    found.controller.fault(f"missing:{output}")
    report = stop(source)
    assert report.state is RestState.NOT_KNOWN
    sentence = r"not known whether the arm moves \(ur://\S+ does not send {}.*\): look at it"
    assert re.search(sentence.format(output), report.sentence)
    probe.at_rest()  # it was stopped nevertheless
    found.controller.fault("normal")


IMPORTED_AT_FIRST_CONNECTION = """
import socket, sys

def create_connection(*args, **kwargs):
    heavy = "scipy pinocchio viser websockets pyarrow matplotlib steelyard.robot steelyard.io"
    with open("modules.txt", "w") as file:
        file.write(" ".join(name for name in heavy.split() if name in sys.modules) or "none")
    raise ConnectionRefusedError("no server")

socket.create_connection = create_connection
from steelyard.__main__ import main
main()
"""


def test_the_command_stop_sends_before_anything_heavy_is_imported(tmp_path):
    words = [sys.executable, "-c", IMPORTED_AT_FIRST_CONNECTION, "stop", "ur://127.0.0.1:9"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "modules.txt").read_text() == "none"


def test_a_stop_does_not_wait_for_a_dashboard_that_never_answers(moving, monkeypatch):
    found, _, probe = moving
    monkeypatch.setattr("steelyard.twin._clients.DashboardClient.receive", lambda *_: None)
    found.controller.run(TURNING)
    probe.moving(0.2)
    asked = probe.t
    report = stop(UrController(found.host, found.port, timeout_s=5.0))
    assert report.at_rest
    rest_s, _ = probe.after(asked)
    assert rest_s < 1.0


def test_a_stop_by_the_dashboard_is_enough_where_no_script_can_be_sent(moving, monkeypatch):
    found, source, probe = moving

    def refused(controller, program):
        raise SourceFailed("the script was not sent")

    monkeypatch.setattr(UrController, "send_script", refused)
    found.controller.run(TURNING)
    probe.moving(0.2)
    assert stop(source).at_rest
    monkeypatch.setattr(UrController, "ask_dashboard", lambda *_: "")
    with pytest.raises(SourceFailed, match="the script was not sent"):
        source.send_stop()


def test_the_beats_go_by_a_socket_where_all_registers_are_taken(arm, moving, patient):
    found, source, probe = patient
    registers = ",".join(f"input_int_register_{k}" for k in range(48))
    client = RtdeClient(("timestamp",), (), inputs=(registers,), rate_hz=1.0)
    with socket.create_connection((found.host, found.port)) as taker:
        while not client.started:
            taker.sendall(client.to_send())
            client.receive(taker.recv(4096))
        done = move(source, arm, swing(period_s=0.8, speed=0.3), confirm=lambda plan: True)
        assert done.moved is Moved.YES
        _, failed = failed_motion(arm, moving, "mute")
        rest_s, _ = probe.after(failed)
        assert rest_s < 0.5


# --- before it moves


def test_a_posture_that_changed_since_the_question_is_asked_about_again(arm, patient):
    found, source, probe = patient
    plans = []

    def confirm(plan):
        plans.append(plan)
        if len(plans) == 1:
            found.controller.place(START + 0.1)
            probe.at_rest(0.5)
        return True

    begun = probe.t
    move(source, arm, swing(speed=0.3), confirm=confirm, request=FAST)
    assert len(plans) == 2
    np.testing.assert_allclose(plans[1].trajectory.posture, START + 0.1, atol=1e-3)
    rows = np.array([row for row in probe.rows if row[0] >= begun + 0.5])
    assert np.abs(rows[:, 13:]).max() < 1.2 * ACCELERATION_LIMIT


def test_a_tool_that_changed_since_the_question_is_asked_about_again(arm, patient):
    found, source, _ = patient
    tool = (0.0, 0.0, 0.4, 0.0, 0.0, 0.0)
    plans = []

    def confirm(plan):
        plans.append(plan)
        if len(plans) == 1:
            found.controller.tcp = tool
            with Stream(source) as stream:
                wait_until(lambda: stream.named_row()["tcp_offset_2"] == tool[2])
            return True
        return False

    try:
        with pytest.raises(InvalidTrajectory, match="not confirmed"):
            move(source, arm, swing(), confirm=confirm, request=FAST)
    finally:
        found.controller.tcp = (0.0,) * 6
    assert len(plans) == 2
    assert plans[1].tool.tolist() == list(tool[:3])
    assert plans[1].extent.box[0, 2] < plans[0].extent.box[0, 2] - 0.3


@pytest.mark.parametrize("before", [SERIAL_NUMBER, ""])
def test_an_arm_that_was_swapped_since_the_question_gets_nothing(arm, moving, before):
    found, source, _ = moving
    log = len(found.controller.log)

    def confirm(plan):
        found.controller.serial_number = "7"
        return True

    found.controller.serial_number = before
    stated = MotionRequest(serial=SERIAL_NUMBER)
    try:
        with pytest.raises(InvalidRobot, match=r"belongs to another arm: .* is ur10e, number 7"):
            move(source, arm, swing(), confirm=confirm, request=stated)
    finally:
        found.controller.serial_number = SERIAL_NUMBER
    assert not [line for line in found.controller.log[log:] if "steelyard_motion" in line]


def test_an_arm_that_tells_its_number_only_after_the_question_is_asked_about_again(arm, moving):
    found, source, _ = moving
    plans = []

    def confirm(plan):
        plans.append(plan)
        found.controller.serial_number = SERIAL_NUMBER
        return len(plans) == 1

    found.controller.serial_number = ""
    with pytest.raises(InvalidTrajectory, match="not confirmed"):
        move(source, arm, swing(), confirm=confirm, request=MotionRequest(serial=SERIAL_NUMBER))
    assert len(plans) == 2


def test_a_tool_offset_that_is_no_number_is_not_known(moving):
    _, source, _ = moving
    row = {"tcp_offset_0": 0.0, "tcp_offset_1": float("nan"), "tcp_offset_2": 0.1}
    with pytest.raises(SourceFailed, match="the speed of the tool is not known"):
        source.tool_offset(row)


@pytest.mark.parametrize("name", ["ur5e", "somebodys_arm"])
def test_an_arm_of_unknown_kind_needs_the_pose_of_its_flange(moving, monkeypatch, name):
    """Without a dashboard, a stated serial number says nothing about the kind of the arm."""
    found, source, probe = moving
    other = load_robot("ur5e")
    other = replace(other, name=name)
    stated = MotionRequest(serial=SERIAL_NUMBER)
    monkeypatch.setattr(UrController, "ask_dashboard", lambda *_: "")
    with Stream(source) as stream, pytest.raises(InvalidRobot, match="is not the arm of the model"):
        MotionPlan.of(stream, other, swing(), stated)
    for output in ("actual_TCP_pose", "tcp_offset"):
        found.controller.fault(f"missing:{output}")
        probe.passes(0.1)
        with (
            Stream(source) as stream,
            pytest.raises(InvalidRobot, match=r"it is not known whether \S+ is "),
        ):
            MotionPlan.of(stream, other, swing(), stated)
        found.controller.fault("normal")


def test_a_known_kind_needs_no_pose_and_a_pose_no_known_kind(arm, moving, monkeypatch):
    found, source, probe = moving
    found.controller.fault("missing:actual_TCP_pose")
    probe.passes(0.1)
    with Stream(source) as stream:
        assert MotionPlan.of(stream, arm, swing()).arm.kind == "ur10e"
    found.controller.fault("normal")
    monkeypatch.setattr(UrController, "ask_dashboard", lambda *_: "")
    with Stream(source) as stream:
        plan = MotionPlan.of(stream, arm, swing(), MotionRequest(serial=SERIAL_NUMBER))
    assert plan.arm == ArmIdentity(serial=SERIAL_NUMBER)


CEILING = """
[[surroundings.wall]]
point = [0, 0, 1.05]
normal = [0, 0, -1]
"""


def test_a_motion_through_a_wall_is_refused_and_nothing_is_sent(moving, tmp_path):
    found, source, probe = moving
    swing().save(tmp_path / "motion.json")
    (tmp_path / "limits.toml").write_text(CEILING)
    words = ("move", source, "motion.json", "--robot", "ur10e", "--serial", SERIAL_NUMBER)
    log = len(found.controller.log)
    refused = steelyard(*words, "--yes", "--limits", "limits.toml", cwd=tmp_path)
    assert refused.returncode == 2
    assert re.search(r"breaks a limit of ur10e: link \d and wall 1: clearance", refused.stderr)
    assert not [line for line in found.controller.log[log:] if "steelyard_motion" in line]
    assert probe.speed < REST


def test_the_question_says_which_surroundings_were_checked(moving, tmp_path):
    _, source, _ = moving
    swing().save(tmp_path / "motion.json")
    words = ("move", source, "motion.json", "--robot", "ur10e", "--serial", SERIAL_NUMBER)
    asked = steelyard(*words, cwd=tmp_path)
    assert "The surroundings of the arm (floor, walls) were not checked" in asked.stdout
    (tmp_path / "limits.toml").write_text("v_max = 3.0\n[surroundings]\nfloor = -1.0\n")
    asked = steelyard(*words, "--limits", "limits.toml", cwd=tmp_path)
    assert "The arm keeps clear of floor; what it carries" in asked.stdout
    (tmp_path / "limits.toml").write_text("v_max = 3.0\n")
    asked = steelyard(*words, "--limits", "limits.toml", cwd=tmp_path)
    assert "were not checked; --limits describes them" in asked.stdout


def test_given_limits_come_beside_those_of_the_arm(arm):
    wide = DesignLimits(replace(arm.limits, v_max=arm.limits.v_max * 9))
    found = motion_limits(arm, wide)
    np.testing.assert_array_equal(found.joints.v_max, arm.limits.v_max)
    assert found.surroundings.self_collision


def test_an_arm_that_was_not_seen_moving_is_not_said_to_have_moved(patient, tmp_path):
    _, source, _ = patient
    swing(period_s=0.8, speed=0.01).save(tmp_path / "motion.json")
    words = ("move", source, "motion.json", "--robot", "ur10e", "--serial", SERIAL_NUMBER)
    done = steelyard(*words, "--yes", cwd=tmp_path)
    assert "whether the arm has moved: not known" in done.stdout
    assert "The arm moved for" not in done.stdout
    assert done.returncode == 1


def test_the_program_refuses_to_start_elsewhere(arm, moving, monkeypatch):
    found, source, probe = moving
    monkeypatch.setattr(MotionPlan, "renewed", lambda plan, stream: plan)

    def confirm(plan):
        found.controller.place(START + 0.1)
        probe.at_rest(0.5)
        return True

    with pytest.raises(MotionFailed, match="no longer where the motion begins") as raised:
        move(source, arm, swing(), confirm=confirm, request=FAST)
    assert raised.value.moved is Moved.NO
    assert "the arm did not move" in str(raised.value)
    assert probe.speed < REST


def test_an_answer_may_take_its_time(arm, patient, monkeypatch):
    _, source, probe = patient
    monkeypatch.setattr("steelyard.live._playing._MAX_DELAY_S", 0.6)

    def confirm(plan):
        probe.passes(1.2)
        return True

    done = move(source, arm, swing(period_s=0.8, speed=0.3), confirm=confirm, request=FAST)
    assert done.moved is Moved.YES


def test_a_motion_says_how_far_and_how_fast_it_goes(arm, moving):
    _, source, _ = moving
    with Stream(source) as stream:
        slow = MotionPlan.of(stream, arm, swing())
        fast = MotionPlan.of(stream, arm, swing(), FAST)
    assert slow.extent.tool_speed == pytest.approx(0.25)
    assert fast.extent.tool_speed > 1.0
    for plan in (slow, fast):
        step_s = 1e-3
        q, _, _ = plan.trajectory.at(np.arange(0, plan.trajectory.duration_s, step_s))
        points = np.array([arm.forward_kinematics(x)[:3, 3] for x in q])
        speed = np.linalg.norm(np.diff(points, axis=0), axis=1).max() / step_s
        assert plan.extent.tool_speed == pytest.approx(speed, rel=1e-3)
        np.testing.assert_allclose(plan.extent.box, [points.min(0), points.max(0)], atol=1e-4)
        np.testing.assert_allclose(plan.extent.travel, np.ptp(q, axis=0), atol=1e-4)
    assert slow.trajectory.duration_s == pytest.approx(
        fast.trajectory.duration_s * fast.extent.tool_speed / 0.25
    )


def test_a_motion_too_fast_to_brake_is_refused(arm, moving):
    _, source, _ = moving
    with Stream(source) as stream:
        plan = MotionPlan.of(stream, arm, swing(), FAST)
        with pytest.raises(InvalidTrajectory, match=r"too fast to brake within 0\.25 s"):
            MotionPlan.of(stream, arm, swing(period_s=1.3, speed=1.9), MotionRequest(tool_speed=9))
    _, v, a = plan.trajectory.at(np.arange(0, plan.trajectory.duration_s, 0.002))
    assert (np.abs(a) + np.abs(v) / plan.braking_s).max() <= ACCELERATION_LIMIT * (1 + 1e-9)
    assert plan.braking_s == braking_time_s(arm, plan.trajectory, rate_hz=500.0)


def test_a_running_program_is_replaced_only_on_request(arm, patient):
    found, source, probe = patient
    found.controller.fault("busy")
    probe.passes(0.1)
    refused = r"runs the program .*other_program.*: stop it first, or .* `replace_program`"
    with pytest.raises(SourceFailed, match=refused):
        move(source, arm, swing(), confirm=lambda plan: True)
    plans = []
    request = replace(FAST, replace_program=True)
    done = move(
        source,
        arm,
        swing(period_s=0.8, speed=0.3),
        confirm=lambda plan: not plans.append(plan),
        request=request,
    )
    assert "other_program" in plans[0].replaces
    assert done.moved is Moved.YES


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("local", "not in remote control"),
        ("protective-stop", "protective stop"),
        ("reduced", "its safety mode is reduced"),
        ("missing:safety_mode", "does not send safety_mode"),
        ("missing:robot_mode", "does not send robot_mode"),
        ("missing:joint_mode", "does not send joint_mode_0"),
        ("missing:robot_status_bits", "does not send robot_status_bits"),
        ("missing:actual_qd", "does not send actual_qd_0"),
        ("missing:runtime_state", "does not send runtime_state"),
        ("missing:tcp_offset", "does not send tcp_offset, so the speed of the tool is not known"),
        ("missing:output_int_register_47", "does not send output_int_register_47"),
    ],
)
def test_controllers_that_are_not_ready_get_no_motion(arm, moving, fault, words):
    found, source, probe = moving
    log = len(found.controller.log)
    found.controller.fault(fault)
    probe.passes(0.1)
    with pytest.raises(SourceFailed, match=words) as raised:
        move(source, arm, swing(), confirm=lambda plan: True)
    assert "\n" not in str(raised.value)
    assert not [line for line in found.controller.log[log:] if "steelyard_motion" in line]
    assert probe.speed < REST
    found.controller.fault("normal")


@pytest.mark.parametrize(
    ("when", "fault"),
    thorough_but(
        [("before the question", "late:0.4"), ("before the answer", "later:0.2")],
        product(("before the question", "before the answer"), ("late:0.4", "later:0.2")),
    ),
)
def test_rows_that_come_late_are_noticed_before_anything_is_sent(arm, moving, when, fault):
    """They come regularly, so that no beat would be missing while the arm moves."""
    found, _, probe = moving
    source = UrController(found.host, found.port, timeout_s=5.0)
    log = len(found.controller.log)

    def late():
        found.controller.fault(fault)
        probe.passes(1.0)

    def confirm(plan):
        late()
        return True

    if when == "before the question":
        late()
    with pytest.raises(SourceFailed, match=r"its rows come \d\.\d+ s late") as raised:
        move(source, arm, swing(), confirm=confirm)
    found.controller.fault("normal")
    assert "\n" not in str(raised.value)
    assert not [line for line in found.controller.log[log:] if "steelyard_motion" in line]
    assert probe.speed < REST
