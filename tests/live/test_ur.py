"""A UR arm on a socket: what goes wrong in one clear line, and which rows are fit for weighing."""

import math
import socket
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from live_helpers import Rows, event_kinds, opened, rows_of, sent, served, source, taken
from steelyard.errors import SourceFailed, UnknownName
from steelyard.live import (
    EventKind,
    ReplaySource,
    Row,
    Stream,
    UrController,
    _ur_lateness,
    source_of,
)
from steelyard.live._rtde import Package, RtdeClient
from steelyard.live._tcp import open_connection
from steelyard.live._ur_modes import MODE_OUTPUTS, UrJudge
from steelyard.twin._controller import SimulatedController
from steelyard.twin._rtde_server import RtdeServer


@contextmanager
def answering(answer):
    """A port where something else answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run():
            connection, _ = listener.accept()
            with connection:
                answer(connection)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield UrController("127.0.0.1", listener.getsockname()[1], timeout_s=0.2)
        thread.join(5)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("ur://192.168.0.3", UrController("192.168.0.3")),
        ("ur://arm.local:30014", UrController("arm.local", 30014)),
        ("replay:a/b.parquet", ReplaySource("a/b.parquet")),
    ],
)
def test_an_address_is_a_source(address, expected):
    assert source_of(address) == expected
    assert str(expected) == address


@pytest.mark.parametrize(
    "address", ["ur:", "ur://", "http://x", "log.parquet", "ur://host:port", "replay:"]
)
def test_other_addresses_are_refused(address):
    with pytest.raises(UnknownName, match="a source is ur://HOST"):
        source_of(address)


def test_a_dead_controller():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(SourceFailed, match="the connection was refused: is the controller on"):
        Stream(UrController("127.0.0.1", port))


def test_a_wrong_host():
    with pytest.raises(SourceFailed, match=r"there is no host 'no-such-arm\.invalid'"):
        Stream(UrController("no-such-arm.invalid"))


@pytest.mark.parametrize("port", [-1, 0, 65536])
def test_a_port_that_does_not_exist_is_not_a_missing_host(port):
    """The other ports of a controller are counted from that of RTDE."""
    with pytest.raises(SourceFailed, match=rf"127\.0\.0\.1, port {port}: there is no such port"):
        open_connection("127.0.0.1", port, "is it on?", timeout_s=1.0)


def test_a_host_that_is_not_in_the_network(monkeypatch):
    def late(*_, **__):
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", late)
    with pytest.raises(SourceFailed, match="does not answer within 2 s: is the controller on"):
        Stream(UrController("10.255.255.1"))


@pytest.mark.parametrize(
    "greeting", [b"SSH-2.0-OpenSSH\r\n", b"Connected: Universal Robots\n", bytes(100)]
)
def test_a_port_that_answers_something_else(greeting):
    with (
        answering(lambda connection: connection.sendall(greeting)) as found,
        pytest.raises(SourceFailed, match=r"ur://127\.0\.0\.1:\d+: this is not RTDE: b'"),
    ):
        Stream(found)


def test_a_mute_server():
    wait = threading.Event()
    with answering(lambda connection: wait.wait(5)) as found:
        with pytest.raises(SourceFailed, match=r"is connected, but nothing came for 0\.2 s$"):
            Stream(found)
        wait.set()


@pytest.mark.parametrize("answers", range(5))
def test_a_controller_that_closes_at_any_stage(answers):
    def answer(connection):
        server = RtdeServer(SimulatedController(Rows()))
        for _ in range(answers):
            connection.sendall(server.receive(connection.recv(1 << 16)))

    with answering(answer) as found:
        if answers < 4:
            with pytest.raises(SourceFailed, match=r"has closed the connection|was lost"):
                Stream(found)
        else:
            with Stream(found) as stream:
                assert "lost" in event_kinds(taken(stream, until=lambda x: x[0] is EventKind.LOST))


def test_a_controller_that_falls_silent_is_lost():
    with served() as found, Stream(source(found, timeout_s=0.1)) as stream:
        found.send(10)
        taken(stream, rows=10)
        seen = taken(stream, until=lambda x: x[0] is EventKind.LOST)
        assert "nothing came for 0.1 s" in seen[-1].words


def test_two_clients_at_once_see_the_same():
    with served() as found, opened(found) as one, opened(found) as other:
        sent(found, 100)
        first, second = (rows_of(taken(stream, rows=100)) for stream in (one, other))
    assert [row.values for row in first] == [row.values for row in second]


def test_a_client_that_does_not_read_loses_rows_and_the_others_none():
    with served() as found, opened(found) as ours, socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect((found.host, found.port))
        client = RtdeClient(("timestamp", "actual_q", "target_q"), ("actual_TCP_pose",))
        while data := client.to_send():
            lazy.sendall(data)
            client.receive(lazy.recv(1 << 16))
        seen = []
        while not found.dropped and len(seen) < 20000:
            found.send(100)
            seen += rows_of(taken(ours, rows=100))
        assert found.dropped > 0
        assert len(seen) == found.sent
        lazy.settimeout(0.2)
        client.receive(lazy.recv(1 << 22))  # whole packages still: none was cut


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("protective-stop", "protective stop"),
        ("emergency-stop", "robot emergency stop"),
        ("power-off", "the arm is not powered or not released (power off)"),
        ("hand", "a hand guides the arm (teach button)"),
    ],
)
def test_rows_that_are_unfit_for_weighing_say_why(fault, words):
    with served() as found, opened(found) as stream:
        sent(found, 50)
        found.controller.fault(fault)
        sent(found, 50)
        found.controller.fault("normal")
        sent(found, 400)
        seen = taken(stream, rows=500)
    waiting = [row.waiting for row in rows_of(seen)]
    assert set(waiting[:50]) == {""}
    (said,) = set(waiting[50:100])
    assert said == words
    assert set(waiting[100:350]) == {"just started again"}
    assert set(waiting[351:]) == {""}
    modes = [x.words for x in seen if x[0] is EventKind.MODE]
    assert modes == [said, "the arm runs"]


@pytest.mark.parametrize(
    ("output", "value", "words"),
    [
        ("safety_mode", 3, "protective stop"),
        ("safety_mode", 99, "safety mode 99"),
        ("robot_mode", 3, "the arm is not powered or not released (power off)"),
        ("robot_mode", 99, "the arm is not powered or not released (robot mode 99)"),
        ("joint_mode_2", 238, "elbow_joint does not run (backdrive)"),
        ("robot_status_bits", 4, "a hand guides the arm (teach button)"),
    ],
)
def test_each_mode_counts_by_itself(output, value, words):
    """Whichever other outputs a controller sends, rows are unfit and no command goes out."""
    normal = {"runtime_state": 1} | {f"actual_qd_{k}": 0.0 for k in range(6)}
    normal |= {"robot_mode": 7, "safety_mode": 1, "robot_status_bits": 3}
    normal |= {f"joint_mode_{k}": 253 for k in range(6)}
    bad = normal | {output: value}
    others = [name for name in MODE_OUTPUTS if name != output]
    assert UrController("arm").obstacle(normal) == ""
    assert UrController("arm").obstacle(bad) == words
    for left_out in [(), *((name,) for name in others), tuple(others)]:
        row = {"timestamp": 1.0} | {k: v for k, v in bad.items() if k not in left_out}
        assert UrJudge(tuple(row)).judged(tuple(row.values())) == words
        if left_out:
            assert UrController("arm").obstacle(row).startswith(f"it does not send {left_out[0]}")
    row = {"timestamp": 1.0} | {k: v for k, v in normal.items() if k != output}
    assert UrJudge(tuple(row)).judged(tuple(row.values())) == ""
    unknown = normal | {output: math.nan}
    assert UrController("arm").obstacle(unknown) == f"it does not send {output}"


def test_the_payload_of_the_controller_and_marks_are_events():
    with served() as found, opened(found) as stream:
        sent(found, 5)
        found.controller.fault("payload:2.5")
        found.controller.fault("slider:0.5")
        sent(found, 5)
        seen = taken(stream, rows=10)
    payloads = [x.words for x in seen if x[0] is EventKind.PAYLOAD]
    assert payloads[-1] == "the controller's payload is 2.500 kg at 0.0 0.0 0.0 mm"
    assert len(payloads) == 2
    assert "temperature" in event_kinds(seen)
    assert rows_of(seen)[-1].values[stream.columns.index("speed_scaling")] == 0.5


def test_texts_of_the_controller_are_events():
    def answer(connection):
        server = RtdeServer(SimulatedController(Rows()))
        for _ in range(4):
            connection.sendall(server.receive(connection.recv(1 << 16)))
        connection.sendall(
            Package.text("SafetySetup has not been confirmed yet", version=2).encoded()
        )

    with answering(answer) as found, Stream(found) as stream:
        seen = taken(stream, until=lambda x: x[0] is EventKind.TEXT)
    assert "SafetySetup has not been confirmed yet" in [x.words for x in seen]


def test_unknown_faults_are_refused():
    controller = SimulatedController(Rows())
    for request in ("explode", "skip", "skip:many"):
        with pytest.raises(
            UnknownName, match=f"there is no fault '{request}'; there are skip:NUMBER"
        ):
            controller.fault(request)


def test_skipped_rows_are_a_gap():
    with served() as found, opened(found) as stream:
        sent(found, 50)
        found.controller.fault("skip:5")
        sent(found, 50)
        seen = taken(stream, rows=95)
    assert [x.rows for x in seen if x[0] is EventKind.GAP] == [5]


@pytest.mark.parametrize(
    ("first_t", "received_s", "is_prompt"),
    [(7.0, 50.09, True), (7.0, 50.12, False), (6.95, 50.12, True), (math.nan, 50.0, False)],
)
def test_rows_are_late_by_the_clock_of_the_controller(monkeypatch, first_t, received_s, is_prompt):
    """The first row of a second connection was asked for at 50 s, the newest one was made at 7 s.

    A time that is not a number says nothing, which is not fine.
    """
    asked = _ur_lateness._FirstRow(50.0, first_t)
    monkeypatch.setattr(_ur_lateness, "_first_row", lambda controller: asked)
    monkeypatch.setattr(_ur_lateness, "_PATIENCE_S", 0.0)
    stream = SimpleNamespace(row=lambda: Row(7.0, (7.0,), received_s=received_s))
    if is_prompt:
        _ur_lateness.require_prompt(UrController("arm"), stream)
        return
    with pytest.raises(SourceFailed, match=r"ur://arm is not ready: its rows come .* s late"):
        _ur_lateness.require_prompt(UrController("arm"), stream)
