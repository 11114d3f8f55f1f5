"""The simulated controller: scripts, dashboard, MuJoCo."""

import socket

import numpy as np
import pytest

from live_helpers import Rows, rows_of, served, taken
from steelyard.errors import InvalidRobot, SourceFailed
from steelyard.inertia import InertialParameters
from steelyard.live import Stream, UrController
from steelyard.live._controller import ControllerPayload
from steelyard.live._ur import DASHBOARD_PORT, SCRIPT_PORT
from steelyard.live._ur_programs import payload_program
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.twin._backend import RecordedArm, SimulatedArm
from steelyard.twin._controller import SimulatedController
from steelyard.twin._server import ControllerServer
from waiting import wait_until

WEIGHED = ControllerPayload(2.498, (0.001, -0.002, 0.05), (0.01, 0.011, 0.005, 0.0, -0.001, 0.0))
HOME = np.array([0.0, -1.57, 0.0, -1.57, 0.0, 0.0])


def port_of(found, usual):
    return UrController(found.host, found.port).shifted_port(usual)


def line_to(found, words):
    with socket.create_connection(
        (found.host, port_of(found, DASHBOARD_PORT)), timeout=2
    ) as connection:
        file = connection.makefile("rw")
        assert "Universal Robots Dashboard Server" in file.readline()
        file.write(words + "\n")
        file.flush()
        return file.readline().strip()


def send_script(found, text, *, read=79):
    with socket.create_connection(
        (found.host, port_of(found, SCRIPT_PORT)), timeout=2
    ) as connection:
        connection.sendall(text.encode())
        while read > 0:
            read -= len(connection.recv(read))


def logged(found, words):
    return wait_until(lambda: any(words in line for line in found.controller.log))


# --- scripts


def test_a_script_is_written_as_controllers_want_it():
    assert payload_program(WEIGHED, transition_s=0.5) == (
        "sec steelyard_payload():\n"
        " set_target_payload(2.498, [0.001, -0.002, 0.05], [0.01, 0.011, 0.005, 0, -0.001, 0],"
        " 0.5)\n"
        "end\n"
    )


# --- ports


def test_a_payload_is_taken_beside_the_running_program_and_echoed():
    with served() as found, Stream(UrController(found.host, found.port)) as stream:
        send_script(found, "def f():\n sleep(100)\nend\n")
        assert logged(found, "def f runs")
        send_script(found, payload_program(WEIGHED, transition_s=0.5))
        assert logged(found, "sec steelyard_payload runs")
        found.send(2)
        row = rows_of(taken(stream, rows=2))[-1]
        said = dict(zip(stream.columns, row.values, strict=True))
        assert (said["payload"], said["payload_cog_2"], said["payload_inertia_1"]) == (
            2.498,
            0.05,
            0.011,
        )
        assert said["runtime_state"] == 2


def test_a_script_without_reading_79_bytes_is_discarded():
    with served() as found:
        with socket.create_connection(
            (found.host, port_of(found, SCRIPT_PORT)), timeout=2
        ) as connection:
            connection.sendall(payload_program(WEIGHED, transition_s=0.5).encode())
        assert logged(found, "discarded")
        assert found.controller.payload == ControllerPayload()


def test_scripts_are_ignored_in_local_control_and_refused_where_they_are_not_understood():
    with served() as found:
        send_script(found, "def f():\n explode(1)\nend\n")
        assert logged(found, "refused: line 2: there is no function 'explode'")
        assert line_to(found, "fault local") == "Fault: on"
        assert line_to(found, "is in remote control") == "false"
        send_script(found, payload_program(WEIGHED, transition_s=0.5))
        assert logged(found, "ignored: not in remote control")
        assert found.controller.payload == ControllerPayload()


def test_the_status_bits_say_whether_a_program_runs():
    controller = SimulatedController(Rows())
    controller.step()
    assert controller.outputs["robot_status_bits"] == (1,)  # switched on
    controller.run("def f():\n sleep(9)\nend\n")
    controller.step()
    assert controller.outputs["robot_status_bits"] == (3,)
    assert controller.dashboard("stop") == "Stopped"
    controller.step()
    assert controller.outputs["robot_status_bits"] == (1,)


def test_the_dashboard_answers():
    with served() as found:
        assert line_to(found, "PolyscopeVersion") == "URSoftware 5.12.4.1101661 (simulated)"
        assert line_to(found, "robotmode") == "Robotmode: RUNNING"
        assert line_to(found, "get serial number").isdecimal()
        assert line_to(found, "sing") == "could not understand: 'sing'"
        assert line_to(found, "fault explode").startswith("there is no fault 'explode'")
        send_script(found, "def f():\n sleep(100)\nend\n")
        logged(found, "def f runs")
        found.send()
        assert line_to(found, "running") == "Program running: true"
        assert line_to(found, "stop") == "Stopped"
        found.send()
        assert line_to(found, "programState") == "STOPPED f"


def test_a_port_that_is_taken():
    with (
        served() as found,
        pytest.raises(SourceFailed, match=rf"cannot listen on 127\.0\.0\.1, port {found.port}"),
    ):
        ControllerServer(SimulatedController(Rows()), port=found.port)


def test_any_free_port_is_tried_again_where_a_neighbour_is_taken(monkeypatch):
    create = socket.create_server
    asked = []

    def taken_at_first(address):
        asked.append(address)
        if len(asked) == 2:
            raise OSError("address already in use")
        return create(address)

    monkeypatch.setattr(socket, "create_server", taken_at_first)
    with ControllerServer(SimulatedController(Rows()), port=0) as found:
        assert found.port > 0
    # Any port is asked for again after the refusal; more often where another program is in the way.
    assert [port for _, port in asked].count(0) >= 2


def test_ports_are_not_tried_for_ever(monkeypatch):
    def taken(address):
        raise OSError("address already in use")

    monkeypatch.setattr(socket, "create_server", taken)
    with pytest.raises(SourceFailed, match=r"cannot listen on 127\.0\.0\.1, port 0: address"):
        ControllerServer(SimulatedController(Rows()), port=0)


# --- the arm behind it


def played(world, text, seconds):
    """The signals of a controller that runs a script, (N, 6) each."""
    controller, rows = SimulatedController(world), []
    controller.run(text)
    for _ in range(int(seconds * 500)):
        controller.step()
        rows.append(controller.outputs)
    return {
        name: np.array([row[name] for row in rows])
        for name in rows[0]
        if name.startswith(("actual", "target"))
    }


def test_the_arm_in_mujoco_follows_and_its_payload_shows_in_the_currents():
    robot = load_robot("ur10e")
    load = InertialParameters.from_com(2.5, [0, 0, 0.05], 0.004 * np.eye(3), robot.flange)
    goal = [0.4, -1.0, 0.8, -1.2, 0.5, 0.5]
    script = f"def f():\n movej({goal}, a=2, v=1)\nend\n"
    empty, loaded = (
        played(SimulatedArm(robot, {0.2: body}, start=HOME), script, 1.8) for body in (None, load)
    )
    for run in (empty, loaded):
        assert np.abs(run["actual_q"] - run["target_q"]).max() < 0.02
        slope = np.diff(run["target_q"], axis=0) * 500
        np.testing.assert_allclose(
            slope, (run["target_qd"][1:] + run["target_qd"][:-1]) / 2, atol=1e-3
        )
    np.testing.assert_allclose(empty["actual_q"][-1], goal, atol=2e-3)
    moving = slice(250, 600)
    q, v, a = (loaded[f"target_{x}"][moving] for x in ("q", "qd", "qdd"))
    expected = robot.with_payload(load).inverse_dynamics(q, v, a) - robot.inverse_dynamics(q, v, a)
    gain = [14.73, 14.33, 11.55, 11.25, 11.5, 11.5]
    shown = (loaded["actual_current"] - empty["actual_current"])[moving] * gain
    assert np.abs(shown - expected)[:, 1:3].mean() < 0.1 * np.abs(expected[:, 1:3]).mean()


def test_a_payload_that_it_believes_in_is_in_its_targets():
    robot = load_robot("ur10e")
    controller = SimulatedController(SimulatedArm(robot, start=[0, -0.8, 0.8, 0, 0, 0]))
    before = np.array(controller.outputs["target_moment"])
    controller.run(
        payload_program(
            ControllerPayload(3.0, (0, 0, 0.1), (0.01,) * 3 + (0.0,) * 3), transition_s=0.0
        )
    )
    controller.step()
    q = np.array([0, -0.8, 0.8, 0, 0, 0])
    body = InertialParameters.from_com(3.0, [0, 0, 0.1], 0.01 * np.eye(3), robot.flange)
    expected = robot.with_payload(body).gravity_torque(q) - robot.gravity_torque(q)
    np.testing.assert_allclose(controller.outputs["target_moment"] - before, expected, atol=1e-9)


def test_a_recording_is_played_with_its_own_clock_and_then_switched_off():
    t = np.delete(np.arange(20), [7, 8]) / 125
    q = np.random.default_rng(0).normal(size=(18, 6))
    controller = SimulatedController(RecordedArm(Recording(t, q, current=2 * q)))
    times, modes = [controller.outputs["timestamp"][0]], []
    for _ in range(19):
        controller.step()
        times.append(controller.outputs["timestamp"][0])
        modes.append(controller.outputs["robot_mode"][0])
    np.testing.assert_allclose(times[:18], 100 + t)
    assert modes[16:] == [7, 3, 3]
    assert "the recording has ended" in controller.log[-1]


def test_arms_and_recordings_that_no_ur_controller_has_are_refused():
    with pytest.raises(InvalidRobot, match="a UR arm has 6 joints, planar2r has 2"):
        SimulatedArm(load_robot("planar2r"))
    with pytest.raises(
        InvalidRobot, match=r"motor currents of 6 joints; the recording has 2 joints and q, tau"
    ):
        RecordedArm(Recording([0, 1], np.zeros((2, 2)), tau=np.zeros((2, 2))))
