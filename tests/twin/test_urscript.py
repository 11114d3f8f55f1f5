"""URScript on the simulated controller: syntax, scopes, threads, refusals and runtime errors."""

import socket
import threading

import numpy as np
import pytest

from live_helpers import Rows
from steelyard.errors import SourceFailed
from steelyard.live._controller import ControllerPayload
from steelyard.live._ur_programs import payload_program
from steelyard.twin._controller import SimulatedController
from steelyard.twin._syntax import Program

WEIGHED = ControllerPayload(2.498, (0.001, -0.002, 0.05), (0.01, 0.011, 0.005, 0.0, -0.001, 0.0))


def executed(body, *, steps=5, controller=None):
    """A controller after a number of steps of `def f(): ... end`."""
    controller = controller or SimulatedController(Rows())
    controller.run(f"def f():\n{body}\nend\n")
    for _ in range(steps):
        controller.step()
    return controller


def said(body, **options):
    """The texts that a program sends by `textmsg`."""
    controller = executed(body, **options)
    assert not controller.program_error
    return controller.messages


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3 - 4 / 8", "6.5"),
        ("(1 + 2) * -3", "-9"),
        ("7 % 4", "3"),
        ("0x1F", "31"),
        ("1.5e-3 < .002", "True"),
        ("not 1 == 2 and 2 >= 2", "True"),
        ("False or 3 != 3 or False", "False"),
        ("True xor True", "False"),
        ("[1, 2.5, [3, 4]][2][1]", "4"),
        ("norm([3, 4])", "5.0"),
        ("length([1, 2, 3])", "3"),
        ("p[1, 2, 3, 0, 0, 0][1]", "2"),
        ("pose_trans(p[1, 0, 0, 0, 0, 0], p[0, 2, 0, 0, 0, 0])[1]", "2.0"),
        ("'a text'", "a text"),
        ("get_steptime()", "0.002"),
    ],
)
def test_expressions(expression, value):
    assert said(f" textmsg({expression})") == [value]


def test_a_value_may_stand_on_the_next_line_as_ur_rtde_writes_it():
    assert said(" global x = # an offset\n0    global y = 2\n textmsg(x)\n textmsg(y)") == [
        "0",
        "2",
    ]


def test_conditions_loops_break_and_continue():
    body = """
    k = 0
    while True:
        k = k + 1
        if k == 2:
            continue
        elif k > 4:
            break
        else:
            textmsg("k=", k)
        end
    end"""
    assert said(body) == ["k=1", "k=3", "k=4"]


def test_functions_have_parameters_defaults_and_scopes_of_their_own():
    body = """
    global total = 0
    inner = 1
    def add(x, y=10):
        local inner = x + y
        total = total + inner
        return inner
    end
    textmsg(add(1))
    textmsg(add(1, y=2))
    textmsg(total)
    textmsg(inner)"""
    assert said(body) == ["11", "3", "14", "1"]


def test_a_variable_named_p_has_elements_and_lists_are_copied():
    body = """
    def first(p):
        p[0] = 7
        return p[0]
    end
    a = [1, 2]
    b = a
    b[0] = 5
    textmsg(a[0], b[0])
    textmsg(first([3, 4]))"""
    assert said(body) == ["15", "7"]


def test_threads_run_beside_the_program_and_end_with_it():
    body = """
    global count = 0
    thread counter():
        while True:
            count = count + 1
            sync()
        end
    end
    handle = run counter()
    sleep(0.01)
    kill handle
    textmsg(count)
    sleep(0.01)
    textmsg(count)
    run counter()"""
    controller = executed(body, steps=20)
    assert controller.messages == ["4", "4"]
    assert controller.program_state == "STOPPED"


def test_join_waits_for_a_thread():
    body = """
    thread slow():
        sleep(0.01)
        textmsg("thread")
    end
    handle = run slow()
    join handle
    textmsg("program")"""
    assert said(body, steps=20) == ["thread", "program"]


def test_halt_ends_the_whole_program():
    controller = executed(" textmsg(1)\n halt\n textmsg(2)")
    assert controller.messages == ["1"]
    assert controller.program_state == "STOPPED"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: a program has at least one statement"),
        ("def f():\n sleep(1)\n", "'end' is missing"),
        ("def f():\n while True:\nend\n", "'end' is missing"),
        ("def f():\n sleep(1\nend\n", r"line 3: .\). is expected before .end."),
        ("def f():\n x = 2 @ 3\nend\n", "line 2: '@' is not understood"),
        ("def f():\n 3 = x\nend\n", "line 2: only a variable or an element"),
        ("def f():\n x\nend\n", "line 3: '=' is expected before 'end'"),
        ("def f():\n sleep(1)\nend\ng()\n", "something follows the end of the program 'f'"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(text, words):
    with pytest.raises(SourceFailed, match=words):
        Program.parsed(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f():\n explode(1)\nend\n", "refused: line 2: there is no function 'explode'"),
        ("sec f():\n movej([0,0,0,0,0,0])\nend\n", "refused: line 2: movej takes time"),
        ("def f():\n movej([0,0,0])\nend\n", "line 2: movej: it takes six numbers"),
        ("def f():\n movej([0,0,0,0,0,0], a=0)\nend\n", "line 2: movej: speed and acceleration"),
        ("def f():\n sleep(1, 2)\nend\n", "line 2: sleep: .* positional argument"),
        ("def f():\n sleep('long')\nend\n", "line 2: sleep: could not convert"),
        ("def f():\n textmsg(y)\nend\n", "line 2: there is no variable 'y'"),
        ("def f():\n textmsg([1][3])\nend\n", "line 2: there is no element 3"),
        ("def f():\n textmsg(1 / 0)\nend\n", "line 2: division by zero"),
        ("def f():\n write_output_integer_register(99, 1)\nend\n", "there is no int register 99"),
        ("def f():\n while True:\n x = 1\n end\nend\n", "a loop never waits"),
        ("sec f():\n set_payload(1, [0])\nend\n", "a mass, a centre of gravity of three"),
        ("sec f():\n set_target_payload(-1, [0,0,0])\nend\n", "no mass and no moment is negative"),
        (
            "sec f():\n set_target_payload(1, [0,0,0], [134,0,0,0,0,0])\nend\n",
            "no inertia above 133",
        ),
    ],
)
def test_a_program_that_fails_is_ended_with_its_line(text, words):
    controller = SimulatedController(Rows())
    controller.run(text)
    controller.step()
    assert controller.program_state == "STOPPED"
    assert controller.payload == ControllerPayload()
    with pytest.raises(SourceFailed, match=words):
        raise SourceFailed(controller.program_error)


def test_a_payload_comes_back_from_its_own_script():
    controller = SimulatedController(Rows())
    controller.run(payload_program(WEIGHED, transition_s=0.5))
    assert controller.payload == WEIGHED
    controller.run(payload_program(WEIGHED, transition_s=0.5, with_inertia=False))
    assert controller.payload == ControllerPayload(WEIGHED.mass, WEIGHED.cog)
    controller.run("set_payload_mass(1.5)\n")
    controller.step()
    assert controller.payload == ControllerPayload(1.5, WEIGHED.cog)


def test_registers_outputs_and_the_speed_are_written_and_read():
    controller = SimulatedController(Rows())
    controller.receive_inputs(
        {
            "input_int_register_24": 7,
            "input_double_register_3": 0.25,
            "input_bit_registers32_to_63": 4,
            "input_bit_register_70": True,
            "speed_slider_mask": 1,
            "speed_slider_fraction": 0.5,
            "standard_digital_output_mask": 3,
            "standard_digital_output": 6,
            "standard_analog_output_mask": 2,
            "standard_analog_output_1": 0.75,
        }
    )
    body = """
    write_output_integer_register(24, read_input_integer_register(24) + 1)
    write_output_float_register(5, 2 * read_input_float_register(3))
    write_output_boolean_register(33, read_input_boolean_register(34))
    write_output_boolean_register(70, read_input_boolean_register(70))
    set_configurable_digital_out(1, True)"""
    executed(body, controller=controller)
    outputs = controller.outputs
    assert outputs["output_int_register_24"] == (8,)
    assert outputs["output_double_register_5"] == (0.5,)
    assert outputs["output_bit_registers32_to_63"] == (2,)
    assert outputs["output_bit_register_70"] == (True,)
    words = [name for name in outputs if name.startswith("output_bit_registers")]
    assert words == ["output_bit_registers32_to_63"]
    assert outputs["actual_digital_output_bits"] == (2 + (1 << 9),)  # 4 is masked out
    assert outputs["standard_analog_output1"] == (0.75,)
    assert outputs["target_speed_fraction"] == (0.5,)


@pytest.mark.parametrize("mask", [{}, {"speed_slider_mask": 0}])
def test_the_speed_slider_is_only_moved_with_its_mask(mask):
    controller = SimulatedController(Rows())
    controller.receive_inputs({"speed_slider_fraction": 0.5, **mask})
    controller.step()
    assert controller.outputs["target_speed_fraction"] == (1.0,)
    controller.receive_inputs({"speed_slider_mask": 1})  # takes effect with the next fraction
    controller.step()
    assert controller.outputs["target_speed_fraction"] == (1.0,)


def test_a_program_talks_to_a_server_by_a_socket():
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    received = []

    def serve():
        connection, _ = server.accept()
        received.append(connection.recv(100))
        connection.sendall(b"(1.5, 2)")
        connection.sendall((77).to_bytes(4, "big") + b"hello\n")
        received.append(connection.recv(100))
        connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    body = f"""
    if socket_open("127.0.0.1", {port}):
        socket_send_line("ready")
        textmsg(socket_read_ascii_float(2))
        textmsg(socket_read_binary_integer(1))
        textmsg(socket_read_line())
        socket_send_byte(65)
        textmsg(socket_read_line(timeout=0.5))
    end
    textmsg(socket_open("127.0.0.1", 1))"""
    controller = SimulatedController(Rows())
    controller.run(f"def f():\n{body}\nend\n")
    for _ in range(4000):
        controller.step()
        if controller.program_state == "STOPPED":
            break
        threading.Event().wait(0.001)
    thread.join(5)
    server.close()
    assert received == [b"ready\n", b"A"]
    assert controller.messages == ["[2, 1.5, 2.0]", "[1, 77]", "hello", "", "False"]


def test_a_watchdog_stops_the_program_when_its_input_stays_out():
    controller = SimulatedController(Rows())
    controller.run(
        'def f():\n rtde_set_watchdog("input_int_register_0", 50, "stop")\n sleep(100)\nend\n'
    )
    states = []
    for k in range(60):
        if k < 40:
            controller.receive_inputs({"input_int_register_0": k})
        controller.step()
        states.append(controller.program_state)
    assert states.index("STOPPED") == pytest.approx(40 + 10, abs=1)
    assert "input_int_register_0 stayed out" in controller.log[-1]


def test_the_target_of_a_program_is_a_list_of_numbers():
    controller = executed(" textmsg(get_target_joint_positions())")
    np.testing.assert_allclose(
        [float(x) for x in controller.messages[0].strip("[]").split(",")],
        0.1 * np.arange(6),
        atol=1e-12,
    )
