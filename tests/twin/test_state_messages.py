"""Packages of the primary, secondary and real-time ports: sizes, places and values."""

import socket
import struct
from contextlib import suppress

import pytest

from live_helpers import Rows, served
from steelyard.live import UrController
from steelyard.twin import SimulatedController
from steelyard.twin._server import PRIMARY_PORT, REAL_TIME_PORT
from steelyard.twin._state_messages import real_time_state, robot_state, version_message

SIZES = {0: 47, 1: 251, 2: 37, 3: 74, 4: 101, 7: 61, 8: 9}  # as UR publishes them for 5.12


def parts(message):
    """The sub-packages of a state, by their types."""
    size, kind = struct.unpack(">iB", message[:5])
    assert (size, kind) == (len(message), 16)
    found, rest = {}, message[5:]
    while rest:
        size, kind = struct.unpack(">iB", rest[:5])
        found[kind], rest = rest[5:size], rest[size:]
    return found


def test_the_parts_of_a_state_have_the_published_sizes():
    found = parts(robot_state(SimulatedController(Rows())))
    assert {kind: len(content) + 5 for kind, content in found.items()} == SIZES
    on_cb3 = parts(robot_state(SimulatedController(Rows(), version=(3, 15, 8, 1))))
    assert len(on_cb3[0]) + 5 == 46


def test_modes_joints_and_outputs_are_in_their_places():
    controller = SimulatedController(Rows())
    controller.run("def f():\n set_standard_digital_out(5, True)\n sleep(9)\nend\n")
    controller.step()
    found = parts(robot_state(controller))
    flags = struct.unpack(">Q???????BB", found[0][:17])
    assert flags == (100_002_000, True, True, True, False, False, True, False, 7, 0)
    joint = struct.unpack(">3d4fB", found[1][2 * 41 : 3 * 41])
    assert joint == (pytest.approx(1.2), pytest.approx(1.2), 0.0, 0.5, 48.0, 30.0, 30.0, 253)
    assert struct.unpack(">ii", found[3][:8]) == (0, 1 << 5)
    controller.fault("protective-stop")
    flags = struct.unpack(">Q???????BB", parts(robot_state(controller))[0][:17])
    assert flags[5:8] == (True, False, False)


@pytest.mark.parametrize(("major", "size"), [(5, 1220), (3, 1116)])
def test_the_real_time_package_has_its_size_and_places(major, size):
    controller = SimulatedController(Rows(), version=(major, 15, 8, 1))
    controller.fault("payload:2.5")
    controller.step()
    package = real_time_state(controller)
    assert struct.unpack(">i", package[:4]) == (size,) == (len(package),)
    values = struct.unpack(f">{(size - 4) // 8}d", package[4:])
    assert values[0] == pytest.approx(100.002)
    assert values[31:37] == pytest.approx([1.0, 1.1, 1.2, 1.3, 1.4, 1.5])  # actual q
    assert values[43:49] == (0.5,) * 6  # actual current
    assert values[94] == 7  # robot mode
    assert values[95:101] == (253,) * 6  # joint modes
    assert values[101] == 1  # safety mode
    assert values[131] == 1  # program state
    if major == 5:
        assert values[142] == 2.5  # payload


def test_the_version_is_the_first_message():
    message = version_message(SimulatedController(Rows(), version=(5, 12, 4, 1101661)))
    size, kind, _, _, message_kind, length = struct.unpack(">iBQbbb", message[:16])
    assert (size, kind, message_kind) == (len(message), 20, 3)
    assert message[16 : 16 + length] == b"URControl"
    place = 16 + length
    assert struct.unpack(">BBii", message[place : place + 10]) == (5, 12, 4, 1101661)


def received(connection, until, size=1 << 20):
    data = b""
    while until not in data and len(data) < size:
        data += connection.recv(1 << 16)
    return data


def test_the_primary_port_reports_texts_and_failures():
    with served() as found:
        port = UrController(found.host, found.port).shifted_port(PRIMARY_PORT)
        with socket.create_connection((found.host, port), timeout=5) as connection:
            received(connection, b"URControl")
            found.controller.run("def f():\n textmsg('hello', 3)\n explode = 1 / 0\nend\n")
            found.send()
            data = received(connection, b"division by zero")
    assert b"hello3" in data
    place = data.index(b"line 3: division by zero")
    assert b"def f stopped: " in data[place - 20 : place]


def test_the_real_time_port_sends_every_step_and_takes_scripts():
    with served() as found:
        port = UrController(found.host, found.port).shifted_port(REAL_TIME_PORT)
        with socket.create_connection((found.host, port), timeout=0.1) as connection:
            connection.sendall(b"def f():\n sleep(1)\nend\n")
            data = b""
            while "def f runs" not in found.controller.log:
                found.send()
                with suppress(TimeoutError):  # until the server has accepted the connection
                    data += connection.recv(1 << 16)
            while len(data) % 1220:
                data += connection.recv(1 << 16)
    packages = [data[k : k + 1220] for k in range(0, len(data), 1220)]
    times = [struct.unpack(">d", package[4:12])[0] for package in packages]
    assert times == sorted(times)
