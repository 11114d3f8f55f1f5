"""A fake Franka controller for the real libfranka: `python franka_controller.py HOST [MODE]`.

TCP 1337, version 10 of the protocol; states by UDP. Lines on stdin command it: `row K T` sends a
state whose numbers can be recognised (q = K + (0, 0.1, ...), at T seconds), `state T Q V TAU` any
other, `mode M`, `speed V`, `run` sends 1,000 per second from now on, `auto on` does so for all who
connect, `close` ends the connection. On stdout it says that it listens, that a client has
connected, and what load was set.
"""

# ruff: noqa: T201
import contextlib
import socket
import struct
import subprocess
import sys
import threading
import time

_FIELDS = {  # of a state, in their order, as floats
    "O_T_EE": 16, "O_T_EE_d": 16, "F_T_EE": 16, "EE_T_K": 16, "F_T_NE": 16, "NE_T_EE": 16,
    "m_ee": 1, "I_ee": 9, "F_x_Cee": 3, "m_load": 1, "I_load": 9, "F_x_Cload": 3,
    "elbow": 2, "elbow_d": 2,
    "tau_J": 7, "tau_J_d": 7, "dtau_J": 7, "q": 7, "q_d": 7, "dq": 7, "dq_d": 7, "ddq_d": 7,
}  # fmt: skip
_MODE_AT, _SIZE = 1372, 1388  # bytes
_CONNECT, _SET_LOAD, _GET_MODEL = 0, 9, 11
_JOINT = (
    '<joint name="fr3_joint{}"><limit effort="87" velocity="2" lower="-2.7" upper="2.7"/>'
    '<position_based_velocity_limits velocity_offset="0.3" deceleration_limit="6"/></joint>'
)
_MODEL = f'<robot name="fr3">{"".join(_JOINT.format(k) for k in range(1, 8))}</robot>'.encode()


class Controller:
    """One client at a time."""

    def __init__(self, host, how):
        self.how, self.load, self.mode, self.speed, self.auto = how, [0.0] * 13, 1, 0.0, False
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((host, 0))
        self.address, self.client, self.connected = None, None, threading.Event()
        self.server = socket.create_server((host, 1337))
        print("listening", flush=True)

    def serve(self):
        while True:
            self.client, peer = self.server.accept()
            with contextlib.suppress(OSError), self.client:
                self.talk(peer[0])
            self.connected.clear()

    def talk(self, peer):
        while head := self.client.recv(12, socket.MSG_WAITALL):
            command, number, size = struct.unpack("<III", head)
            body = self.client.recv(size - 12, socket.MSG_WAITALL) if size > 12 else b""
            if self.how == "mute":
                continue
            if command == _CONNECT:
                version, port = struct.unpack("<HH", body)
                self.address, answer = (peer, port), struct.pack("<BH", self.how == "old", version)
            elif command == _SET_LOAD:
                refused = self.how == "refuses"
                deaf = self.how in ("refuses", "deaf")
                self.load = self.load if deaf else list(struct.unpack("<13d", body))
                answer = bytes([2 * refused])
                print("load", *self.load, flush=True)
            else:
                answer = b"\0" + (_MODEL if command == _GET_MODEL else b"")
            self.client.sendall(struct.pack("<III", command, number, 12 + len(answer)) + answer)
            if command == _CONNECT:
                self.state(0, 99.999)
            if command == _GET_MODEL:
                self.connected.set()
                self.state(0, 100.0)
                print("connected", flush=True)
                if self.auto:
                    threading.Thread(target=self.run, daemon=True).start()

    def state(self, k, t):
        """Sends one state that can be recognised."""
        joints = [k + 0.1 * j for j in range(7)]
        self.send(t, joints, [self.speed] * 7, [2 * x for x in joints])

    def send(self, t, joints, speeds, torques):
        """Sends one state."""
        eye = [float(i % 5 == 0) for i in range(16)]
        values = {"O_T_EE": [0.0] * 16, "F_T_EE": eye, "q": joints, "tau_J": torques}
        values |= {
            "dq": speeds,
            "m_ee": [0.7],
            "m_load": self.load[:1],
            "F_x_Cload": self.load[1:4],
        }
        values |= {"I_load": self.load[4:], "q_d": joints}
        numbers = [x for name, n in _FIELDS.items() for x in values.get(name, [0.0] * n)]
        data = bytearray(
            struct.pack(f"<Q{len(numbers)}f", round(1e3 * t), *numbers).ljust(_SIZE, b"\0")
        )
        data[_MODE_AT] = self.mode
        self.last = bytes(data)
        self.udp.sendto(self.last, self.address)

    def keep_alive(self):
        """Sends the last state repeatedly: libfranka drops it but does not count it as lost."""
        while True:
            time.sleep(0.1)
            if self.connected.is_set():
                self.udp.sendto(self.last, self.address)

    def run(self):
        began, k = time.monotonic(), 0
        while self.connected.is_set():
            k += 1
            self.state(k, 100 + k / 1000)
            time.sleep(max(began + k / 1000 - time.monotonic(), 0))

    def command(self, line):
        word, *rest = line.split()
        if word == "row":
            self.state(int(rest[0]), float(rest[1]))
        elif word == "state":
            t, *numbers = map(float, rest)
            self.send(t, numbers[:7], numbers[7:14], numbers[14:])
        elif word == "mode":
            self.mode = int(rest[0])
        elif word == "speed":
            self.speed = float(rest[0])
        elif word == "auto":
            self.auto = rest == ["on"]
        elif word == "run":
            threading.Thread(target=self.run, daemon=True).start()
        elif word == "close":
            self.connected.clear()
            self.client.shutdown(socket.SHUT_RDWR)


class Fake:
    """The same in a process of its own, on an address of its own."""

    def __init__(self, how="", host=""):
        self.host = (
            host
            or f"127.0.{time.monotonic_ns() % 200 + 20}.{time.monotonic_ns() // 1000 % 200 + 20}"
        )
        words = [sys.executable, __file__, self.host, how]
        self.child = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.heard("listening")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()
        self.child.stdin.close()
        self.child.stdout.close()

    def heard(self, word):
        """The next line that begins with a word."""
        for line in self.child.stdout:
            if line.startswith(word):
                return line.split()[1:]
        raise RuntimeError(f"the fake ended before it said '{word}'")

    def say(self, line):
        self.child.stdin.write(f"{line}\n")
        self.child.stdin.flush()


def counted(fake, **options):
    """The source of a fake controller, and a function that waits for a number of its rows."""
    import pytest

    pytest.importorskip("pylibfranka")
    from steelyard.live import FrankaController

    rows = []

    class Counted(FrankaController):
        def connect(self):
            connection = super().connect()
            read = connection.read

            def kept():
                rows.extend(found := read())
                return found

            connection.read = kept
            return connection

    def came(count, within_s=10.0):
        end = time.monotonic() + within_s
        while len(rows) < count and time.monotonic() < end:
            time.sleep(2e-4)

    return Counted(fake.host, **{"timeout_s": 5.0, "pauses_s": (0.02,), **options}), came


if __name__ == "__main__":
    found = Controller(*sys.argv[1:3])
    for work in (found.serve, found.keep_alive):
        threading.Thread(target=work, daemon=True).start()
    for request in sys.stdin:
        found.command(request)
