"""Faults of the simulated controller, as clients see them; the dashboard's commands."""

import time

import numpy as np
import pytest

from live_helpers import Rows, opened, rows_of, sent, served, source, taken
from steelyard.cli.serve import timed
from steelyard.errors import UnknownName
from steelyard.live._controller import ControllerPayload
from steelyard.live._ur_programs import payload_program
from steelyard.twin import FAULTS, SimulatedController
from steelyard.twin._faults import checked_fault
from steelyard.twin._rtde_server import RtdeServer

PAYLOAD = ControllerPayload(2.5, (0.0, 0.0, 0.05), (0.01, 0.01, 0.01, 0.0, 0.0, 0.0))


def test_a_stall_is_a_gap_of_its_length():
    with served() as found, opened(found) as stream:
        sent(found, 50)
        found.controller.fault("stall:0.1")
        sent(found, 150)
        rows = rows_of(taken(stream, rows=150))
    steps = np.diff([row.t for row in rows])
    assert steps.max() == pytest.approx(0.1 + 0.002, abs=1e-6)
    assert (steps > 0.003).sum() == 1


def test_the_clock_jumps_once_and_never_below_zero():
    controller = SimulatedController(Rows())
    before_s = controller.outputs["timestamp"][0]
    controller.fault("clock:5")
    controller.step()
    assert controller.outputs["timestamp"][0] == pytest.approx(before_s + 5.002)
    controller.fault("clock:-1e6")
    controller.step()
    assert controller.outputs["timestamp"][0] == pytest.approx(0.002)


def test_rows_come_later_by_a_share_of_the_time():
    controller = SimulatedController(Rows())
    controller.fault("later:0.5")
    begun_s = controller.modes.late_from_s
    assert controller.modes.delay_s(begun_s) == 0.0
    assert controller.modes.delay_s(begun_s + 2.0) == pytest.approx(1.0)
    controller.fault("normal")
    assert controller.modes.delay_s(begun_s + 2.0) == 0.0


def test_late_rows_come_whole_and_in_order():
    with served(speed=1.0) as found, opened(found) as stream:
        taken(stream, rows=20)
        found.controller.fault("late:0.3")
        stream.take(0.0)
        begin = time.monotonic()
        while time.monotonic() < begin + 0.15:
            stream.take(0.01)  # what was sent before
        assert not stream.take(0.01)
        rows = rows_of(taken(stream, rows=50))
        found.controller.fault("normal")
    np.testing.assert_allclose(np.diff([row.t for row in rows]), 0.002, atol=1e-6)


def test_a_wrong_echo_is_another_payload():
    controller = SimulatedController(Rows())
    controller.fault("wrong-echo:0.25")
    controller.run(payload_program(PAYLOAD, transition_s=0.5))
    controller.step()
    assert controller.outputs["payload"] == (2.75,)
    controller.fault("normal")
    controller.run(payload_program(PAYLOAD, transition_s=0.5))
    assert controller.payload == PAYLOAD


@pytest.mark.parametrize("name", ["safety_mode", "robot_mode", "actual_qd"])
def test_a_missing_output_is_not_offered(name):
    with served() as found:
        found.controller.fault(f"missing:{name}")
        with opened(found) as stream:
            assert not [column for column in stream.columns if column.startswith(name)]
        found.controller.fault("normal")
        with opened(found) as stream:
            assert [column for column in stream.columns if column.startswith(name)]


def test_another_arm_has_another_name_and_number():
    with served() as found:
        asked = source(found).ask_dashboard
        found.controller.fault("model:UR5")
        found.controller.fault("serial:20990000042")
        assert asked("get robot model") == "UR5"
        assert asked("get serial number") == "20990000042"
    other = SimulatedController(Rows(), serial_number="7", model="UR3")
    assert other.dashboard("get serial number") == "7"
    assert other.dashboard("get robot model") == "UR3"


def test_another_program_runs_even_in_local_control():
    controller = SimulatedController(Rows())
    controller.fault("local")
    controller.fault("busy")
    controller.step()
    assert controller.dashboard("programState") == "PLAYING other_program"
    assert controller.dashboard("get loaded program") == "Loaded program: other_program"
    assert controller.outputs["runtime_state"] == (2,)
    assert controller.dashboard("stop") == "Failed to execute: stop"
    assert controller.program_state == "PLAYING"


def test_a_reboot_forgets_program_payload_and_registers():
    controller = SimulatedController(Rows())
    controller.receive_inputs({"input_int_register_24": 9})
    controller.run(
        "def f():\n set_payload(2)\n write_output_integer_register(24, 5)\n sleep(9)\nend"
    )
    controller.step()
    assert controller.outputs["output_int_register_24"] == (5,)
    controller.fault("reboot")
    controller.step()
    assert controller.seconds < 1.0
    assert controller.payload == ControllerPayload()
    assert controller.program_state == "STOPPED"
    assert controller.registers.input("int", 24) == 0
    assert "output_int_register_24" not in controller.outputs
    controller.run("def f():\n write_output_integer_register(24, 6)\n sleep(9)\nend")
    controller.step()
    assert controller.outputs["output_int_register_24"] == (6,)


def test_modes_on_the_dashboard_and_in_the_outputs():
    controller = SimulatedController(Rows())
    controller.fault("reduced")
    controller.step()
    assert controller.outputs["safety_mode"] == (2,)
    assert controller.dashboard("safetymode") == "Safetymode: REDUCED"
    controller.fault("protective-stop")
    assert controller.dashboard("safetystatus") == "Safetystatus: PROTECTIVE_STOP"
    controller.run("def f():\n sleep(9)\nend\n")
    assert "refused: the arm is not ready" in controller.program_error
    assert controller.dashboard("unlock protective stop") == "Protective stop releasing"
    assert controller.dashboard("safetystatus") == "Safetystatus: NORMAL"
    assert controller.dashboard("power off") == "Powering off"
    assert controller.dashboard("robotmode") == "Robotmode: POWER_OFF"
    assert controller.dashboard("power on") == "Powering on"
    assert controller.dashboard("version") == "5.12.4.1101661"


def test_play_pause_and_popups():
    controller = SimulatedController(Rows())
    assert controller.dashboard("play") == "Failed to execute: play"
    assert controller.dashboard("pause") == "Failed to execute: pause"
    assert controller.dashboard("get loaded program") == "No program loaded"
    controller.run("def f():\n sleep(0.01)\n popup('done')\nend\n")
    assert controller.dashboard("pause") == "Pausing program"
    for _ in range(20):
        controller.step()
    assert controller.dashboard("programState") == "PAUSED f"
    assert controller.dashboard("play") == "Starting program"
    for _ in range(20):
        controller.step()
    assert controller.popup == "done"
    assert controller.dashboard("close popup") == "closing popup"
    assert controller.popup == ""
    assert controller.dashboard("popup hello there") == "showing popup"
    assert controller.popup == "hello there"
    assert controller.dashboard("play") == "Starting program"  # once more
    assert controller.dashboard("running") == "Program running: true"


def test_inputs_of_a_client_arrive_and_a_second_writer_is_refused():
    controller = SimulatedController(Rows())
    first, second = RtdeServer(controller), RtdeServer(controller)
    names = b"input_int_register_24,input_double_register_24"
    assert first.receive(package(b"I", names))[3:] == b"\1INT32,DOUBLE"
    assert second.receive(package(b"I", names))[3:] == b"\0IN_USE,IN_USE"
    first.receive(package(b"U", b"\1" + (7).to_bytes(4, "big") + b"\x3f\xe0" + bytes(6)))
    assert controller.registers.input("int", 24) == 7
    assert controller.registers.input("double", 24) == 0.5
    first.close()
    assert second.receive(package(b"I", names))[3:] == b"\1INT32,DOUBLE"


def package(letter, content):
    return (3 + len(content)).to_bytes(2, "big") + letter + content


def test_every_fault_can_be_switched_on_and_says_so():
    for name, fault in FAULTS.items():
        controller = SimulatedController(Rows())
        arguments = {"": "", "number": ":0.5", "word": ":payload"}
        request = name + arguments[fault.argument]
        controller.fault(request)
        controller.step()
        assert f"fault: {request}" in controller.log


@pytest.mark.parametrize("request_", ["skip:nan", "stall:inf", "skip:x", "skip", "skip:"])
def test_numbers_of_faults_are_finite(request_):
    with pytest.raises(UnknownName, match=f"there is no fault '{request_}'; there are"):
        checked_fault(request_)


def test_times_of_faults_are_finite():
    with pytest.raises(UnknownName, match="S=NAME; got 'inf=skip:5'"):
        timed("inf=skip:5", "S=NAME")
