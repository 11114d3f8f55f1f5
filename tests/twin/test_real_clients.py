"""Real clients of Universal Robots controllers on the simulated one: `ur_rtde` and `urx`.

They know the usual ports only, so each server listens on a loopback address of its own. A client
runs in a process of its own, because it may hang or crash.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

from live_helpers import Rows, rows_of
from steelyard.live import Stream, UrController
from steelyard.live._controller import ControllerPayload
from steelyard.robot import load_robot
from steelyard.twin import ControllerServer, SimulatedArm, SimulatedController
from waiting import wait_until

START = [0.0, -1.3, 1.2, -1.4, -1.2, 0.3]


def own_host():
    a, b, c = np.random.default_rng().integers(1, 250, 3)
    return f"127.{a}.{b}.{c}"


def client_output(program, host, timeout=120):
    words = [sys.executable, "-c", program, host]
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def arm_controller(**options):
    arm = SimulatedArm(load_robot("ur10e"), start=START)
    return SimulatedController(arm, **options)


JUDGE = """
import sys, rtde_receive
judge = rtde_receive.RTDEReceiveInterface(sys.argv[1], 500.0)
seen = {}
while len(seen) < 100:
    t = judge.getTimestamp()
    row = (
        judge.getActualQ(),
        judge.getActualCurrent(),
        [judge.getPayload()],
        [judge.getRobotMode()],
    )
    if judge.getTimestamp() == t:
        seen[t] = row
for t, row in seen.items():
    print(repr(t), *(repr(x) for values in row for x in values))
judge.disconnect()
"""


def test_ur_rtde_reads_the_numbers_that_our_client_reads():
    pytest.importorskip("rtde_receive", reason="the judge is not installed")
    controller = SimulatedController(Rows())
    controller.fault("payload:2.5")
    with (
        ControllerServer(controller, host=own_host(), port=30004) as found,
        Stream(UrController(found.host)) as stream,
    ):
        output = client_output(JUDGE, found.host)
        ours = {row.t: row.values for row in rows_of(stream.take())}
    at = [
        stream.columns.index(f"{name}_{k}")
        for name in ("actual_q", "actual_current")
        for k in range(6)
    ]
    at += [stream.columns.index(name) for name in ("payload", "robot_mode")]
    lines = [
        tuple(map(float, line.split())) for line in output.splitlines() if line[:1].isdecimal()
    ]
    assert len(lines) == 100
    same = [ours[t] for t, *_ in lines if t in ours]
    assert len(same) >= 95  # the first ones may have come before us
    theirs = [row for t, *row in lines if t in ours]
    np.testing.assert_array_equal([[row[k] for k in at] for row in same], theirs)


CONTROL = """
import json, sys, time
import rtde_control, rtde_receive

control = rtde_control.RTDEControlInterface(sys.argv[1])
receive = rtde_receive.RTDEReceiveInterface(sys.argv[1])
found = {"start": receive.getActualQ()}

def noted(name, result):
    found[name] = [result, receive.getActualQ(), receive.getActualQd()]

def wait(seconds):  # by the controller's clock
    end = receive.getTimestamp() + seconds
    while receive.getTimestamp() < end:
        time.sleep(0.01)

goal = [x + 0.2 for x in found["start"]]
result = control.moveJ(goal, 1.0, 2.0)
wait(0.2)
noted("moveJ", result)

result = control.speedJ([0.3, 0, 0, 0, 0, -0.2], 2.0, 0.0)
wait(0.5)
noted("speedJ", result)
result = control.speedStop(4.0)
wait(0.2)
noted("speedStop", result)

begin = receive.getActualQ()
result = True
for k in range(200):
    position = list(begin)
    position[0] += 0.0005 * k
    result = control.servoJ(position, 0.5, 0.5, 0.002, 0.1, 300) and result
    wait(0.002)
wait(0.3)
noted("servoJ", [result, position])
result = control.servoStop(5.0)
wait(0.2)
noted("servoStop", result)

control.moveJ(found["start"], 0.5, 1.0, True)
wait(0.4)
noted("moving", True)
control.stopJ(3.0)
wait(0.3)
noted("stopJ", True)

pose = receive.getActualTCPPose()
pose[2] += 0.03
result = control.moveL(pose, 0.1, 0.5)
wait(0.2)
found["moveL"] = [result, pose, receive.getActualTCPPose()]
found["setPayload"] = control.setPayload(1.25, [0.0, 0.01, 0.05])
wait(0.05)
found["payload"] = [receive.getPayload(), receive.getPayloadCog()]
control.stopScript()
print(json.dumps(found))
"""


@pytest.mark.thorough
def test_ur_rtde_moves_the_arm_stops_it_and_sets_a_payload():
    pytest.importorskip("rtde_control", reason="ur_rtde is not installed")
    with ControllerServer(arm_controller(), host=own_host(), port=30004) as found:
        output = client_output(CONTROL, found.host)
        assert not found.controller.program_error
    said = json.loads(output.splitlines()[-1])
    result, q, _ = said["moveJ"]
    assert result
    np.testing.assert_allclose(q, np.array(START) + 0.2, atol=2e-3)
    result, _, v = said["speedJ"]
    assert result
    np.testing.assert_allclose(v, [0.3, 0, 0, 0, 0, -0.2], atol=0.02)
    (result, commanded), q, _ = said["servoJ"]
    assert result
    np.testing.assert_allclose(q, commanded, atol=2e-3)
    assert np.abs(said["moving"][2]).max() > 0.2
    for stopped in ("speedStop", "servoStop", "stopJ"):
        result, _, v = said[stopped]
        assert result, stopped
        assert np.abs(v).max() < 0.02, stopped
    assert np.abs(np.array(said["stopJ"][1]) - START).max() > 0.02  # not at the goal
    result, commanded, pose = said["moveL"]
    assert result
    np.testing.assert_allclose(pose, commanded, atol=2e-3)
    assert said["setPayload"]
    assert said["payload"] == [1.25, [0.0, 0.01, 0.05]]
    assert found.controller.payload == ControllerPayload(1.25, (0.0, 0.01, 0.05))


IO = """
import sys, time
import rtde_io, rtde_receive
io = rtde_io.RTDEIOInterface(sys.argv[1])
receive = rtde_receive.RTDEReceiveInterface(sys.argv[1])
print(io.setStandardDigitalOut(3, True), io.setConfigurableDigitalOut(1, True))
print(io.setSpeedSlider(0.5), io.setInputIntRegister(20, 11))
print(io.setAnalogOutputVoltage(1, 0.25))
end = time.monotonic() + 20
state = (0, 0)
while state != (520, 0.5) and time.monotonic() < end:
    time.sleep(0.01)
    state = receive.getActualDigitalOutputBits(), receive.getTargetSpeedFraction()
print("state", *state)
"""


def test_ur_rtde_writes_outputs_registers_and_the_speed():
    pytest.importorskip("rtde_io", reason="ur_rtde is not installed")
    with ControllerServer(arm_controller(), host=own_host(), port=30004) as found:
        output = client_output(IO, found.host)
        registers = found.controller.registers
    assert output.splitlines()[-1] == "state 520 0.5"  # outputs 3 and 9
    assert "False" not in output
    assert registers.input("int", 20) == 11
    assert registers.analog[1] == 0.25


URX = """
import json, sys, time
import urx

def wait_until(condition):
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)

robot = urx.URRobot(sys.argv[1], use_rt=True)
robot.send_program("set_digital_out(2, True)")
wait_until(lambda: robot.secmon.get_digital_out(2))
found = {
    "running": robot.is_running(),
    "q": robot.getj(),
    "pose": robot.getl(),
    "output": robot.secmon.get_digital_out(2),
    "q real time": robot.rtmon.q_actual(wait=True).tolist(),
}
goal = list(found["q"])
goal[0] += 0.1
robot.movej(goal, acc=1.0, vel=0.5)
wait_until(lambda: abs(robot.getj()[0] - goal[0]) < 1e-3)
found["moved"] = robot.getj()
robot.set_payload(1.5)
print(json.dumps(found))
sys.stdout.flush()
robot.close()
"""


def test_urx_reads_the_state_and_moves_the_arm():
    pytest.importorskip("urx", reason="urx is not installed")
    controller = arm_controller(version=(3, 15, 8, 106339))  # it knows software 3 only
    with ControllerServer(controller, host=own_host(), port=30004) as found:
        output = client_output(URX, found.host)
        wait_until(lambda: controller.payload.mass == 1.5)
    said = json.loads(output.splitlines()[-1])
    assert said["running"]
    np.testing.assert_allclose(said["q"], START, atol=1e-3)
    np.testing.assert_allclose(said["q real time"], START, atol=1e-3)
    expected = controller.kinematics.pose(np.array(START))
    np.testing.assert_allclose(said["pose"], expected, atol=1e-3)
    assert said["output"] == 1
    np.testing.assert_allclose(said["moved"], [0.1, *START[1:]], atol=2e-3)
