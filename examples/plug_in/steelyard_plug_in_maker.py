"""A template for makers of controllers: acme://HOST[:PORT], an arm that sends lines of text by TCP.

The first line names the columns: `t` [s], `q_0` ..., `v_0` ..., `tau_0` ..., then the payload that
is set. Each further line is one row. The line `payload MASS X Y Z` sets a payload.
"""

import socket
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlsplit

from steelyard.errors import SourceFailed
from steelyard.live import (
    Capabilities,
    Connection,
    Controller,
    ControllerPayload,
    ControllerStatus,
    Stream,
)

PORT = 5555
PAYLOAD_COLUMNS = ("payload_mass", "payload_x", "payload_y", "payload_z")  # [kg, m]
ECHO_TIMEOUT_S = 2.0
RATING_KG = 5.0  # largest payload of the arm


class AcmeConnection(Connection):
    """A connection whose columns are known; the rows follow."""

    def __init__(self, arm):
        self._place = str(arm)
        self._rest = b""
        self._waiting = []
        try:
            self._socket = socket.create_connection((arm.host, arm.port), arm.timeout_s)
        except OSError as error:
            raise SourceFailed(f"{arm}: {error}; is the arm on, and in this network?") from error
        try:
            while not self._waiting:
                self._waiting = self._lines()
        except SourceFailed:
            self.close()
            raise
        self.columns = tuple(self._waiting.pop(0).decode().split())

    def _lines(self):
        """The whole lines that have come, after a wait for the first one."""
        try:
            data = self._socket.recv(1 << 16)
        except OSError as error:
            raise SourceFailed(f"{self._place} was lost: {error}") from error
        if not data:
            raise SourceFailed(f"{self._place} has closed the connection")
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines

    def read(self):
        """The rows since the last call."""
        lines = self._waiting or self._lines()
        self._waiting = []
        return [tuple(map(float, line.split())) for line in lines]

    def close(self):
        """Closes the connection; a second call does nothing."""
        self._socket.close()

    def send_payload(self, payload):
        """Sends mass and centre of gravity."""
        numbers = " ".join(map(repr, (payload.mass, *payload.cog)))
        self._socket.sendall(f"payload {numbers}\n".encode())


@dataclass(frozen=True)
class AcmeArm(Controller):
    """An arm that accepts a payload; an arm that only sends rows is a `steelyard.live.Source`.

    Attributes:
        host: name or address
        port: of the arm
        timeout_s: longest time without a row [s]
    """

    host: str
    port: int = PORT
    timeout_s: float = 2.0

    capabilities: ClassVar[Capabilities] = Capabilities(reports_payload=True)
    export_format: ClassVar[str] = "ur"  # whose checks of a payload apply, see steelyard.export

    def __str__(self):
        return f"acme://{self.host}:{self.port}"

    def connect(self):
        """A new connection."""
        return AcmeConnection(self)

    def joint_speeds(self, row):
        """Joint speeds in a row [rad/s]."""
        return [value for name, value in row.items() if name.startswith("v_")]

    def payload_in(self, row):
        """The payload that a row reports."""
        mass, *cog = (row[name] for name in PAYLOAD_COLUMNS)
        return ControllerPayload(mass, tuple(cog))

    def status(self):
        """Facts about an arm that stands still."""
        with Stream(self) as stream:
            self.ready_row(stream)
            return ControllerStatus(self.payload(stream), RATING_KG, takes_inertia=False)

    def set_payload(self, request):
        """Sends a payload and waits until the rows report it."""
        connection = self.connect()
        with Stream(self, connection=connection) as stream:
            self.ready_row(stream)
            self.require_unchanged(stream, request.before)
            connection.send_payload(request.payload)
            return self.setting_outcome(stream, request, timeout_s=ECHO_TIMEOUT_S)


def acme_arm(address):
    """The arm at an address acme://HOST[:PORT]; the entry point names this function."""
    parts = urlsplit(address)
    if not parts.hostname:
        raise SourceFailed(f"an arm of Acme is acme://HOST[:PORT], got '{address}'")
    return AcmeArm(parts.hostname, parts.port or PORT)
