"""A maker of controllers that another package adds: rows, recordings, payloads, refusals."""

import socket
import threading
from contextlib import contextmanager, suppress

import numpy as np
import pytest

import plug_in_template
from live_helpers import rows_of, taken, weighed
from steelyard.errors import SourceFailed, UnknownName
from steelyard.io import read
from steelyard.live import (
    EventKind,
    Recorder,
    SettingState,
    Source,
    Stream,
    record,
    set_payload,
    source_of,
)
from steelyard.twin._controller import SERIAL_NUMBER

STEP_S = 0.004
HEAD = "t q_0 q_1 v_0 v_1 tau_0 tau_1 payload_mass payload_x payload_y payload_z"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    with plug_in_template.installed(tmp_path, monkeypatch):
        yield


class Acme:
    """An arm at rest that sends a row every 4 ms and takes payloads."""

    def __init__(self, *, takes_payload=True):
        self.takes_payload = takes_payload
        self.payload = (0.5, 0.0, 0.0, 0.01)
        self.connections = []
        self.rows = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"acme://127.0.0.1:{self._listening.getsockname()[1]}"
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        said = b""
        try:
            connection.sendall(f"{HEAD}\n".encode())
            connection.settimeout(STEP_S)
            while True:
                self.rows += 1
                k = self.rows
                numbers = (k * STEP_S, k, -k, 0.0, 0.0, 2.0 * k, 3.0, *self.payload)
                connection.sendall((" ".join(map(repr, numbers)) + "\n").encode())
                try:
                    said += connection.recv(1000)
                except TimeoutError:
                    continue
                if said.endswith(b"\n") and self.takes_payload:
                    self.payload = tuple(map(float, said.split()[1:]))
        except OSError:
            return

    def lose(self):
        """Ends the connections."""
        for connection in self.connections:
            with suppress(OSError):  # the other side may be gone
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self.connections.clear()

    def close(self):
        """Ends the arm."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # which ends `accept`
        self._listening.close()
        self._accepting.join(5.0)
        self.lose()


@contextmanager
def acme(**options):
    arm = Acme(**options)
    try:
        yield arm
    finally:
        arm.close()


def test_rows_come_in_order_and_are_recorded(installed, tmp_path):
    with acme() as arm, Stream(source_of(arm.address)) as stream:
        assert str(stream.source) == arm.address
        assert stream.columns == tuple(HEAD.split())
        items = taken(stream, rows=50)
        with Recorder(tmp_path / "log.parquet", stream.columns) as recorder:
            list(record(items, recorder))
    rows = rows_of(items)
    np.testing.assert_allclose(np.diff([row.values[1] for row in rows]), 1.0)
    recording = read(tmp_path / "log.parquet")
    assert len(recording) == len(rows)
    np.testing.assert_allclose(recording.t, (recording.q[:, 0] - recording.q[0, 0]) * STEP_S)
    np.testing.assert_array_equal(recording.tau, [(row.values[5], 3.0) for row in rows])


def test_a_lost_connection_is_made_again(installed):
    with acme() as arm, Stream(source_of(arm.address)) as stream:
        taken(stream, rows=5)
        arm.lose()
        seen = taken(stream, until=lambda item: item[0] is EventKind.CONNECTED)
        assert [item.kind for item in seen if item[0] is EventKind.LOST] == [EventKind.LOST]
        assert rows_of(taken(stream, rows=1))


def test_a_payload_is_set_and_confirmed(installed):
    with acme() as arm:
        done = set_payload(
            source_of(arm.address),
            weighed(2.5),
            confirm=lambda proposal: True,
            serial=SERIAL_NUMBER,
        )
        assert done.outcome.state is SettingState.SET
        assert done.proposal.old.mass == 0.5
        assert arm.payload == (2.5, 0.001, -0.002, 0.05)


def test_a_payload_that_the_arm_ignores_is_not_set(installed, monkeypatch):
    monkeypatch.setattr("steelyard_plug_in_maker.ECHO_TIMEOUT_S", 0.2)
    with acme(takes_payload=False) as arm:
        done = set_payload(
            source_of(arm.address),
            weighed(2.5),
            confirm=lambda proposal: True,
            serial=SERIAL_NUMBER,
        )
        assert done.outcome.state is SettingState.NOT_SET


def test_addresses_that_no_maker_knows_list_those_of_plug_ins(installed):
    with pytest.raises(UnknownName, match=r"replay:FILE or acme://\.\.\., got 'emca://arm'"):
        source_of("emca://arm")
    with pytest.raises(SourceFailed, match=r"an arm of Acme is acme://HOST\[:PORT\], got"):
        source_of("acme://")
    with acme() as arm:
        arm.close()
        with pytest.raises(SourceFailed, match="is the arm on, and in this network"):
            source_of(arm.address).connect()


def test_whatever_a_maker_of_another_package_raises_is_one_line(installed, monkeypatch):
    import steelyard_plug_in_maker

    def fail(address):
        raise RuntimeError("no licence\nfor this arm")

    monkeypatch.setattr(steelyard_plug_in_maker, "acme_arm", fail)
    with pytest.raises(
        SourceFailed, match=r"^the plug-in 'acme' .* failed for 'acme://x' \(no licence\); check"
    ):
        source_of("acme://x")
    monkeypatch.setattr(steelyard_plug_in_maker, "acme_arm", lambda address: 3)
    with pytest.raises(SourceFailed, match=r"must make a steelyard\.live\.Source, got int"):
        source_of("acme://x")


def test_the_joint_names_of_the_arm_reach_the_source(installed, monkeypatch):
    import steelyard_plug_in_maker

    seen = []

    class Named(Source):
        def connect(self):
            raise SourceFailed("not here")

        def with_joints(self, joint_names):
            seen.append(joint_names)
            return self

    monkeypatch.setattr(steelyard_plug_in_maker, "acme_arm", lambda address: Named())
    source_of("acme://x", joint_names=["a", "b"])
    assert seen == [("a", "b")]
