"""Streams and recorders under bad conditions: slow handshakes and disks, broken rows, typos."""

import math
import socket
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from conftest import steelyard
from live_helpers import Rows, event_kinds, rows_of, sent, served, source, taken
from steelyard.errors import InvalidSamples, SourceFailed, UnknownName
from steelyard.io import read
from steelyard.live import (
    EventKind,
    Recorder,
    ReplaySource,
    Row,
    Source,
    Stream,
    UrController,
    _ur,
    record,
    source_of,
)
from steelyard.live import _recorder as recorder_module
from steelyard.live._rtde import Package, PackageKind
from steelyard.live._source import Connection
from steelyard.recording._columns import Requested
from waiting import PATIENCE_S

COLUMNS = ("timestamp", "actual_q_0")


@contextmanager
def dripping(answers=()):
    """A server that answers some requests, and then sends a text every 50 ms."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run():
            connection, _ = listener.accept()
            with connection:
                for answer in answers:
                    connection.recv(4096)
                    connection.sendall(answer.encoded())
                while not over.wait(0.05):
                    try:
                        connection.sendall(Package.text("wait", version=2).encoded())
                    except OSError:
                        return

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield UrController("127.0.0.1", listener.getsockname()[1], timeout_s=0.3)
        over.set()
        thread.join()


def test_a_handshake_that_drips_texts_ends():
    with (
        dripping() as controller,
        pytest.raises(SourceFailed, match=r"starts to send no rows \(its last message: "),
    ):
        controller.connect()


def test_a_connection_that_drips_texts_instead_of_rows_is_lost():
    answers = (
        Package(PackageKind.VERSION, b"\1"),
        Package(PackageKind.CONTROLLER, bytes(12) + b"\0\0\0\5"),
        Package(PackageKind.OUTPUTS, b"\1" + b",".join([b"DOUBLE"] * 3)),
        Package(PackageKind.START, b"\1"),
    )
    with dripping(answers) as controller:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_ur, "_OPTIONAL", ())
            connection = controller.connect()
        with pytest.raises(SourceFailed, match=r"sends no rows for 0\.3 s"):
            read_for(connection, 3.0)
        connection.close()


def test_whatever_a_web_socket_raises_is_one_line(monkeypatch):
    """The library raises even AssertionError where what comes is no handshake."""

    def connect(*_, **__):
        raise AssertionError

    monkeypatch.setattr("websockets.sync.client.connect", connect)
    with (
        dripping() as controller,
        pytest.raises(SourceFailed, match="answers, but not as a Foxglove bridge"),
    ):
        source_of(f"ros2://127.0.0.1:{controller.port}?tau=effort").connect()


def read_for(connection, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection.read()


def test_one_row_without_a_time_does_not_cost_the_recording(tmp_path):
    times = [0.002 * k for k in range(60)]
    times[30] = math.nan
    with served(Rows(times)) as found, Stream(source(found)) as stream:
        with Recorder(tmp_path / "log.parquet", stream.columns) as recorder:
            sent(found, 55)
            items = taken(stream, rows=50)
            list(record(items, recorder))
        assert "gap" in event_kinds(items)
        assert all(math.isfinite(row.t) for row in rows_of(items))
    assert len(read(tmp_path / "log.parquet")) == len(rows_of(items))


def test_the_time_of_a_stream_is_not_negative(tmp_path):
    np.savez(tmp_path / "log.npz", t=[0.0, 1.0], q=[[1.0], [1.1]], tau=[[1.0], [1.1]])
    with (
        Stream(ReplaySource(str(tmp_path / "log.npz"))) as stream,
        pytest.raises(InvalidSamples, match="`seconds` must not be negative, got -1"),
    ):
        stream.items(-1.0)
    for words in ("record ur://127.0.0.1:1 -o x.parquet", "track x.npz --model m.json"):
        done = steelyard(*words.split(), "--seconds", "-1", cwd=tmp_path)
        assert done.returncode == 2
        assert "'--seconds': Input should be greater than or equal to 0" in done.stderr


def test_a_replay_puts_joints_into_the_order_of_the_arm(tmp_path):
    q = np.array([[1.0, 2.0], [1.1, 2.1]])
    np.savez(tmp_path / "log.npz", t=[0.0, 1.0], q=q, tau=q)
    arm = ("lift", "elbow")
    for joints, expected in (((), q), (("elbow", "lift"), q[:, ::-1])):
        replayed = ReplaySource(str(tmp_path / "log.npz"), joint_names=arm)
        replayed = replayed.read_with(Requested(joint_names=joints))
        np.testing.assert_array_equal(replayed.recording.q, expected)
    addressed = source_of(f"replay:{tmp_path / 'log.npz'}", joint_names=arm)
    assert addressed.joint_names == arm
    with pytest.raises(SourceFailed, match="a, b are not the joints of the arm"):
        replayed = replayed.read_with(Requested(joint_names=("a", "b"))).recording


def test_an_empty_file_does_not_block_its_name(tmp_path):
    (tmp_path / "log.arrows").touch()
    with Recorder(tmp_path / "log.parquet", COLUMNS) as recorder:
        recorder.add(Row(0.0, (0.0, 1.0)))
    assert [path.name for path in recorder.files] == ["log.parquet"]
    assert not (tmp_path / "log.arrows").exists()


class _Broken(Source):
    """A source whose connection has a bug."""

    def connect(self):
        return _BrokenConnection()

    def __str__(self):
        return "broken"


class _BrokenConnection(Connection):
    columns = COLUMNS

    def read(self):
        raise RuntimeError("a bug")

    def close(self):
        pass


def test_a_reader_thread_that_fails_says_so():
    with Stream(_Broken()) as stream:
        items = taken(stream, until=lambda x: x.kind is EventKind.ENDED)
        assert items[-1].words == "reading broken failed: RuntimeError: a bug"
        assert stream.ended


def test_a_slow_disk_costs_rows_that_are_counted_but_no_memory(tmp_path, monkeypatch):
    hanging = threading.Event()
    released = threading.Event()

    def hang(number):
        hanging.set()
        released.wait(PATIENCE_S)

    monkeypatch.setattr(recorder_module, "_MAX_WAITING_ROWS", 10)
    monkeypatch.setattr(recorder_module, "_BATCH_S", 0.01)
    monkeypatch.setattr(recorder_module.os, "fsync", hang)
    with Recorder(tmp_path / "log.arrows", COLUMNS) as recorder:
        recorder.add(Row(0.0, (0.0, 0.0)))
        assert hanging.wait(PATIENCE_S)
        rows = [Row(0.002 * k, (0.002 * k, 0.0)) for k in range(1, 31)]
        *_, last = record(rows, recorder)
        released.set()
        assert (recorder.rows, recorder.dropped) == (11, 20)
        assert last.dropped == 20
        assert last.events[-1].words == "20 rows were not recorded: the disk is too slow"
    assert recorder.rows == 11


def test_a_new_clock_does_not_wait_for_the_conversion(tmp_path, monkeypatch):
    convert = recorder_module._File._convert
    added = threading.Event()
    waits = []

    def after_the_next_row(file):
        waits.append(added.wait(20.0))
        convert(file)

    monkeypatch.setattr(recorder_module._File, "_convert", after_the_next_row)
    with Recorder(tmp_path / "log.parquet", COLUMNS) as recorder:
        recorder.add(Row(5.0, (5.0, 0.0)))
        recorder.add(Row(0.0, (0.0, 0.0), clock=1))
        added.set()
    assert waits == [True, True]
    assert [path.name for path in recorder.files] == ["log.parquet", "log-2.parquet"]
    assert all(path.exists() for path in recorder.files)


@pytest.mark.parametrize(
    "address",
    [
        "ur://192.168..3",
        "ros2://192.168..3?tau=effort",
        "franka://192.168..3",
        "ur://host:99999",
        "ur://host:0",
        "ros2://host:abc",
        "ur://a b",
        "ur://",
    ],
)
def test_a_typo_in_an_address_is_one_line(address):
    with pytest.raises(UnknownName, match="a source is ur://HOST"):
        source_of(address)


def test_a_typo_in_an_address_ends_the_command_with_code_2(tmp_path):
    done = steelyard("record", "ur://192.168..3", "-o", "log.parquet", cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("host", ["192.168..3", "a" * 70])
def test_a_host_that_cannot_exist_is_refused(host):
    with pytest.raises(SourceFailed, match="there is no host"):
        UrController(host).connect()
