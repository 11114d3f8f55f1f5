"""RTDE without sockets: bytes, packages, and both sides of a connection."""

import struct

import numpy as np
import pytest

from live_helpers import Rows
from steelyard.errors import SourceFailed
from steelyard.live._rtde import Package, PackageKind, Recipe, RtdeClient
from steelyard.twin._controller import SimulatedController
from steelyard.twin._rtde_server import RtdeServer

NAMES = ("timestamp", "actual_q", "actual_current")


def client(*optional, rate_hz=500.0):
    return RtdeClient(NAMES, optional, rate_hz=rate_hz)


def talk(ours, server, *, change=lambda data: data):
    """Both sides until nothing more is to be said; what the client got."""
    rows = []
    while data := ours.to_send():
        rows += ours.receive(change(server.receive(data)))
    return rows


def connected(*optional, rate_hz=500.0, world=None, version=(5, 12, 4, 0)):
    controller = SimulatedController(world or Rows(), version=version)
    ours, server = client(*optional, rate_hz=rate_hz), RtdeServer(controller)
    talk(ours, server)
    return controller, ours, server


def cut(data):
    return Package.cut(bytearray(data))


def asked(server, kind, content=b""):
    return cut(server.receive(Package(kind, content).encoded()))


def outputs(server, names, rate_hz=500.0):
    return asked(server, PackageKind.OUTPUTS, struct.pack(">d", rate_hz) + names.encode())


def test_a_small_connection_byte_by_byte():
    """The bytes of a stored guide."""
    ours = RtdeClient(("timestamp", "actual_q"), ())
    assert ours.to_send() == bytes.fromhex("0005560002")
    ours.receive(bytes.fromhex("00045601"))
    assert ours.to_send() == bytes.fromhex("000376")
    ours.receive(bytes.fromhex("0013760000000500000019 0000000100000000"))
    assert ours.controller == (5, 25, 1, 0)
    assert ours.to_send() == bytes.fromhex("001d4f407f400000000000") + b"timestamp,actual_q"
    ours.receive(bytes.fromhex("00134f01") + b"DOUBLE,VECTOR6D")
    assert ours.to_send() == bytes.fromhex("000353")
    ours.receive(bytes.fromhex("00045301"))
    assert ours.started
    (row,) = ours.receive(bytes.fromhex("003c5501") + struct.pack(">7d", 40.002, 1, 2, 3, 4, 5, 6))
    assert row == (40.002, 1, 2, 3, 4, 5, 6)
    assert ours.recipe.columns[:2] == ("timestamp", "actual_q_0")


@pytest.mark.parametrize(
    "kind", ["BOOL", "UINT8", "UINT32", "INT32", "UINT64", "DOUBLE", "VECTOR3D"]
)
def test_every_type_comes_back(kind):
    recipe = Recipe(("a", "b"), (kind, "VECTOR6INT32"), 7)
    values = (1,) * (3 if kind == "VECTOR3D" else 1) + (-1, 2, -3, 4, -5, 6)
    assert recipe.values(recipe.package(values).content) == values
    assert len(recipe.columns) == len(values)
    assert Recipe(("a",), ("DOUBLE",), 8).values(recipe.package(values).content) is None
    with pytest.raises(SourceFailed, match="a data package has 9 bytes, its recipe"):
        recipe.values(b"\x07" + bytes(8))


def test_packages_may_be_cut_at_every_byte_or_come_twenty_at_once():
    controller, ours, server = connected()
    data = b""
    for _ in range(20):
        controller.step()
        data += server.row()
    whole = ours.receive(data)
    assert len(whole) == 20
    for at in range(len(data) // 20 + 1):
        assert ours.receive(data[:at]) + ours.receive(data[at:]) == whole
    assert [row for k in range(len(data)) for row in ours.receive(data[k : k + 1])] == whole
    np.testing.assert_allclose([row[1] for row in whole], np.arange(1, 21))


@pytest.mark.parametrize(
    "data", [b"\0\2V", b"HTTP/1.1 400", b"Connected: Universal Robots", b"\0\4X\0"]
)
def test_what_is_not_rtde_is_refused_with_what_it_said(data):
    with pytest.raises(SourceFailed, match="this is not RTDE: b'"):
        client().receive(data)
    with pytest.raises(SourceFailed, match="this is not RTDE"):
        RtdeServer(SimulatedController(Rows())).receive(data)


@pytest.mark.parametrize("version", [1, 2])
def test_texts_may_come_between_request_and_answer(version):
    controller, ours = SimulatedController(Rows()), client()
    server = RtdeServer(controller)
    accepts = iter([version == 2, True])

    def noisy(data):
        packages = cut(data)
        spoken = version if ours.controller or packages[0].kind is not PackageKind.VERSION else 1
        if packages[0].kind is PackageKind.VERSION:
            packages[0] = Package(PackageKind.VERSION, bytes([next(accepts)]))
        return b"".join(p.encoded() for p in (Package.text("careful", version=spoken), *packages))

    talk(ours, server, change=noisy)
    assert set(ours.texts) == {"careful"}
    assert ours.started
    assert (ours.recipe.number is None) == (version == 1)
    controller.step()
    assert ours.receive(server.row())[0][1] == 1


def test_version_1_sends_every_row_without_number_or_rate():
    server = RtdeServer(SimulatedController(Rows()))
    assert asked(server, PackageKind.VERSION, b"\0\1") == [(PackageKind.VERSION, b"\1")]
    assert asked(server, PackageKind.OUTPUTS, b"timestamp") == [(PackageKind.OUTPUTS, b"DOUBLE")]
    assert asked(server, PackageKind.START) == [(PackageKind.START, b"\1")]
    (row,) = cut(server.row())
    assert struct.unpack(">d", row.content) == (100.0,)


def test_version_3_is_refused_and_a_client_that_gets_neither_gives_up():
    assert asked(RtdeServer(SimulatedController(Rows())), PackageKind.VERSION, b"\0\3") == [
        (PackageKind.VERSION, b"\0")
    ]
    ours = client()
    ours.receive(Package(PackageKind.VERSION, b"\0").encoded())
    with pytest.raises(SourceFailed, match="refuses versions 2 and 1"):
        ours.receive(Package(PackageKind.VERSION, b"\0").encoded())


def test_unknown_outputs_are_left_out_unless_they_are_needed():
    _, ours, _ = connected("payload", "made_up", "robot_mode")
    assert ours.recipe.names == (*NAMES, "payload", "robot_mode")
    ours = RtdeClient(("timestamp", "made_up"), ())
    with pytest.raises(SourceFailed, match="the controller does not send made_up"):
        talk(ours, RtdeServer(SimulatedController(Rows())))


def test_answers_that_do_not_fit_are_refused():
    ours = client()
    ours.receive(Package(PackageKind.VERSION, b"\1").encoded())
    with pytest.raises(SourceFailed, match="the controller's version has 3 bytes"):
        ours.receive(Package(PackageKind.CONTROLLER, b"abc").encoded())
    with pytest.raises(SourceFailed, match="3 outputs were asked for, 1 types came back"):
        ours.receive(Package(PackageKind.OUTPUTS, b"\1DOUBLE").encoded())
    with pytest.raises(SourceFailed, match="refuses to start"):
        ours.receive(Package(PackageKind.START, b"\0").encoded())


def test_a_recipe_with_an_unknown_name_sends_nothing_and_a_comma_at_the_end_is_no_name():
    _, _, server = connected()
    assert outputs(server, "timestamp,made_up") == [(PackageKind.OUTPUTS, b"\1DOUBLE,NOT_FOUND")]
    assert asked(server, PackageKind.START) == [(PackageKind.START, b"\0")]
    assert server.row() == b""
    assert outputs(server, "timestamp,actual_q,") == [(PackageKind.OUTPUTS, b"\1DOUBLE,VECTOR6D")]


def test_names_beyond_2048_bytes_are_refused_with_a_text():
    _, _, server = connected()
    text, answer = outputs(server, ",".join(["timestamp"] * 210))
    assert b"longer than 2048 bytes" in text.content
    assert set(answer.content[1:].decode().split(",")) == {"NOT_FOUND"}


def test_a_second_recipe_replaces_the_first_and_a_start_without_one_is_refused():
    server = RtdeServer(SimulatedController(Rows()))
    assert asked(server, PackageKind.START) == [(PackageKind.START, b"\0")]
    _, _, server = connected()
    outputs(server, "timestamp")
    assert server.row() == b""
    asked(server, PackageKind.START)
    assert len(server.row()) == 4 + 8
    asked(server, PackageKind.PAUSE)
    assert server.row() == b""


@pytest.mark.parametrize(
    ("of_controller", "asked_for", "expected"),
    [
        (500, 500, 500),
        (500, 300, 500),
        (500, 200, 250),
        (500, 125, 125),
        (500, 9999, 500),
        (125, 500, 125),
    ],
)
def test_the_rate_is_every_so_many_steps(of_controller, asked_for, expected):
    controller, ours, server = connected(rate_hz=asked_for, world=Rows(rate_hz=of_controller))
    rows = []
    for _ in range(of_controller):
        controller.step()
        rows += ours.receive(server.row())
    assert len(rows) == expected
    assert 1 / (rows[1][0] - rows[0][0]) == pytest.approx(expected)


def test_an_input_has_one_writer():
    controller = SimulatedController(Rows())
    one, other = RtdeServer(controller), RtdeServer(controller)
    name = b"input_double_register_24"
    assert asked(one, PackageKind.INPUTS, name) == [(PackageKind.INPUTS, b"\1DOUBLE")]
    assert asked(other, PackageKind.INPUTS, name) == [(PackageKind.INPUTS, b"\0IN_USE")]
    assert asked(other, PackageKind.INPUTS, b"made_up") == [(PackageKind.INPUTS, b"\0NOT_FOUND")]
    one.close()
    assert asked(other, PackageKind.INPUTS, name) == [(PackageKind.INPUTS, b"\1DOUBLE")]


def test_a_client_can_pause():
    _, ours, server = connected()
    ours.pause()
    talk(ours, server)
    assert server.row() == b""
