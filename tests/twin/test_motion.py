"""Motions of the simulated controller: what a program commands, and how the arm stops."""

from functools import cache

import numpy as np
import pytest

from steelyard.robot import load_robot
from steelyard.twin import SimulatedArm, SimulatedController
from steelyard.twin._motion import DEFAULT_DECELERATION, Trapezoid

START = np.array([0.0, -1.3, 1.2, -1.4, -1.2, 0.3])
STEP_S = 0.002
HEARTBEAT = """def beating():
 missed = 0
 last = 0
 v = 0.5
 q = get_target_joint_positions()
 while missed < 10:
  beat = read_input_integer_register(24)
  if beat == last:
   missed = missed + 1
  else:
   missed = 0
  end
  last = beat
  q[0] = q[0] + v * get_steptime()
  q[3] = q[3] - v * get_steptime()
  servoj(q, t=get_steptime(), lookahead_time=0.1, gain=300)
 end
 stopj(3)
 textmsg("no heartbeat")
end
"""


@cache
def robot():
    return load_robot("ur10e")


def arm_controller():
    return SimulatedController(SimulatedArm(robot(), start=START))


def motion(controller, steps, before_step=None):
    """Targets and measured signals of `steps` steps, (N, 6) each, and the runtime states."""
    names = ("target_q", "target_qd", "target_qdd", "actual_q", "actual_qd", "runtime_state")
    rows = {name: [] for name in names}
    for k in range(steps):
        if before_step is not None:
            before_step(k)
        controller.step()
        for name in names:
            rows[name].append(controller.outputs[name])
    return {name: np.array(values) for name, values in rows.items()}


def movej(goal, **options):
    words = "".join(f", {name}={value}" for name, value in options.items())
    return f"def f():\n movej({list(map(float, goal))}{words})\nend\n"


def acceleration(v):
    """The largest acceleration of measured velocities over windows of 20 ms, [rad/s^2]."""
    return np.abs(v[10:] - v[:-10]).max() / (10 * STEP_S)


def test_movej_has_its_speed_and_acceleration_and_reaches_the_goal():
    controller = arm_controller()
    goal = START + np.array([0.8, 0.1, -0.2, 0, 0, 0])
    controller.run(movej(goal, a=2.0, v=0.8))
    run = motion(controller, 800)
    assert np.abs(run["target_qd"]).max() == pytest.approx(0.8, rel=1e-6)
    assert np.abs(run["target_qdd"]).max() == pytest.approx(2.0, rel=1e-6)
    np.testing.assert_allclose(run["target_q"][-1], goal, atol=1e-9)
    np.testing.assert_allclose(run["actual_q"][-1], goal, atol=1e-3)
    duration_s = 0.8 / 0.8 + 0.8 / 2.0
    playing = (run["runtime_state"][:, 0] == 2).sum() * STEP_S
    assert playing == pytest.approx(duration_s, abs=2 * STEP_S)


@pytest.mark.parametrize("deceleration", [1.0, 4.0])
def test_stopj_decelerates_every_joint_along_its_path(deceleration):
    controller = arm_controller()
    v = [0.6, 0.3, 0, -0.2, 0, 0.1]
    controller.run(f"def f():\n speedj({v}, 3, t=0.5)\n stopj({deceleration})\nend\n")
    run = motion(controller, 800)
    stopping = run["target_qd"][250:]
    moving = stopping[np.abs(stopping[:, 0]) > 1e-6]
    assert len(moving) * STEP_S == pytest.approx(0.6 / deceleration, abs=2 * STEP_S)
    np.testing.assert_allclose(moving / moving[:, :1], np.tile(np.array(v) / 0.6, (len(moving), 1)))
    assert np.abs(run["actual_qd"][-50:]).max() < 1e-2
    assert acceleration(run["actual_qd"][260:]) < 1.2 * deceleration


ENDS = {
    "the program ends": lambda controller: None,
    "stop": lambda controller: controller.dashboard("stop"),
    "pause": lambda controller: controller.dashboard("pause"),
    "another program": lambda controller: controller.run("def g():\n sleep(1)\nend\n"),
    "protective stop": lambda controller: controller.fault("protective-stop"),
    "reboot": lambda controller: controller.fault("reboot"),
}


@pytest.mark.parametrize("end", ENDS)
def test_an_arm_without_a_motion_decelerates_and_never_jumps(end):
    controller = arm_controller()
    controller.run("def f():\n speedj([0.8, 0, 0, 0.4, 0, 0], 4, t=0.4)\nend\n")
    run = motion(controller, 500, lambda k: k == 200 and ENDS[end](controller))
    v = run["target_qd"]
    assert v[199, 0] == pytest.approx(0.8)
    assert np.abs(np.diff(v, axis=0)).max() / STEP_S <= DEFAULT_DECELERATION * (1 + 1e-6)
    at_rest = int(np.flatnonzero(np.abs(v[200:]).max(axis=1) == 0)[0]) * STEP_S
    assert at_rest == pytest.approx(0.8 / DEFAULT_DECELERATION, abs=2 * STEP_S)
    assert acceleration(run["actual_qd"][200:]) < 1.2 * DEFAULT_DECELERATION
    assert np.abs(run["actual_qd"][200 + 150 :]).max() < 1e-2
    if end != "pause" and end != "another program":
        assert run["runtime_state"][205, 0] == 0  # stopping
        assert run["runtime_state"][-1, 0] == 1


def test_a_paused_motion_is_resumed_to_its_goal():
    controller = arm_controller()
    goal = START + np.array([0.5, 0, 0, 0, 0, 0])
    controller.run(movej(goal, a=2.0, v=0.8))
    motion(controller, 150)
    assert controller.dashboard("pause") == "Pausing program"
    run = motion(controller, 200)
    assert run["runtime_state"][-1, 0] == 4
    assert np.abs(run["actual_qd"][-1]).max() < 1e-2
    assert np.abs(run["actual_q"][-1] - goal).max() > 0.05
    assert controller.dashboard("play") == "Starting program"
    np.testing.assert_allclose(motion(controller, 700)["actual_q"][-1], goal, atol=1e-3)


def test_the_speed_slider_slows_a_movej_smoothly():
    controller = arm_controller()
    goal = START + np.array([1.0, 0, 0, 0, 0, 0])
    controller.run(movej(goal, a=2.0, v=0.8))
    run = motion(controller, 900, lambda k: k == 300 and controller.fault("slider:0.25"))
    assert run["target_qd"][250, 0] == pytest.approx(0.8)
    assert run["target_qd"][550, 0] == pytest.approx(0.2)
    assert np.abs(np.diff(run["target_qd"], axis=0)).max() / STEP_S < 2.5


def test_a_program_with_a_heartbeat_moves_while_it_beats_and_then_stops():
    controller = arm_controller()
    controller.run(HEARTBEAT)
    last_beat = 400

    def beat(k):
        if k < last_beat:
            controller.receive_inputs({"input_int_register_24": k + 1})

    run = motion(controller, 800, beat)
    assert controller.messages == ["no heartbeat"]
    np.testing.assert_allclose(run["actual_qd"][last_beat, [0, 3]], [0.5, -0.5], atol=0.01)
    stopped_s = (0.5 / 3) + 10 * STEP_S
    at_rest = int(np.flatnonzero(np.abs(run["target_qd"][last_beat:]).max(axis=1) == 0)[0])
    assert at_rest * STEP_S == pytest.approx(stopped_s, abs=3 * STEP_S)
    assert acceleration(run["actual_qd"][last_beat:]) < 1.2 * 3
    assert np.abs(run["actual_qd"][-100:]).max() < 1e-2


def test_two_threads_cannot_move_the_arm():
    controller = arm_controller()
    body = " thread other():\n  speedj([0.1,0,0,0,0,0], 1, t=1)\n end\n run other()\n sleep(0.1)\n"
    controller.run(f"def f():\n{body} speedj([0,0.1,0,0,0,0], 1, t=1)\nend\n")
    motion(controller, 100)
    assert "another thread moves the arm already" in controller.program_error
    assert controller.program_state == "STOPPED"


def test_movel_is_straight_and_speedl_has_its_velocity():
    controller = arm_controller()
    start = controller.kinematics.pose(START)
    goal = start + np.array([0.05, -0.1, 0.08, 0, 0, 0])
    pose = ", ".join(map(repr, goal.tolist()))
    controller.run(f"def f():\n movel(p[{pose}], a=0.5, v=0.2)\nend\n")
    run = motion(controller, 700)
    poses = np.array([controller.kinematics.pose(q) for q in run["target_q"][::20]])
    way = (goal - start)[:3] / np.linalg.norm((goal - start)[:3])
    away = (poses - start)[:, :3] - np.outer((poses - start)[:, :3] @ way, way)
    assert np.abs(away).max() < 1e-6
    np.testing.assert_allclose(poses[-1], goal, atol=1e-6)
    controller.run("def f():\n speedl([0, 0.1, 0, 0, 0, 0], 1.0, t=0.3)\n stopl(1)\nend\n")
    run = motion(controller, 400)
    q, v = run["target_q"][140], run["target_qd"][140]
    np.testing.assert_allclose(
        controller.kinematics.jacobian(q) @ v, [0, 0.1, 0, 0, 0, 0], atol=1e-4
    )
    assert np.abs(run["actual_qd"][-1]).max() < 1e-2


def test_an_arm_that_was_moved_by_hand_stands_there():
    controller = arm_controller()
    controller.fault("moved:0.2")
    run = motion(controller, 100)
    np.testing.assert_allclose(run["actual_q"], np.tile(START + 0.2, (100, 1)), atol=1e-3)
    assert np.abs(run["actual_qd"]).max() < 1e-2


def test_a_trapezoid_has_the_given_duration():
    path = Trapezoid(2.0, 0.5, 1.0, 10.0)
    assert path.duration_s == 10.0
    assert path.at(10.0)[0] == pytest.approx(2.0)
    t = np.linspace(0, 10, 2001)
    x, v, _ = np.array([path.at(time) for time in t]).T
    np.testing.assert_allclose(np.gradient(x, t)[1:-1], v[1:-1], atol=1e-3)
