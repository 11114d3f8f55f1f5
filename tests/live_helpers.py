"""A simulated controller for tests: quick, without MuJoCo, and with the test as its clock."""

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import numpy as np

from conftest import steelyard
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.live import Row, Stream, UrController
from steelyard.payload import Payload
from steelyard.recording import ArmIdentity
from steelyard.robot import load_robot
from steelyard.signals import prepare
from steelyard.simulation import SimulationOptions, simulate
from steelyard.trajectory import FourierTrajectory
from steelyard.twin._controller import SERIAL_NUMBER, SimulatedController
from steelyard.twin._server import ControllerServer
from steelyard.verdict import Verdict
from waiting import PATIENCE_S

START = np.array([0.0, -1.3, 1.2, -1.4, -1.2, 0.3])


def swing(seed=3, period_s=2.5, start=START, speed=1.0):
    """A motion that begins and ends at rest in a posture."""
    b = np.random.default_rng(seed).normal(size=(6, 3))
    b[:, 2] = -(b[:, 0] + 2 * b[:, 1]) / 3  # no acceleration at the start
    b *= speed / np.abs(b).sum(axis=1, keepdims=True)
    still = FourierTrajectory(np.zeros((6, 3)), b, np.zeros(6), period_s)
    return replace(still, offset=start - still.at([0.0])[0][0])


class Rows:
    """A world whose rows can be recognised: row k has q = k + (0, 0.1, ...)."""

    def __init__(self, times=None, *, rate_hz=500.0):
        self.rate_hz, self.robot, self.over, self._k = rate_hz, None, False, -1
        self.speed = 0.0
        self._times = times

    def place(self, q):
        """It cannot be moved."""

    def step(self, target, believed):
        self._k += 1
        times = self._times
        t = self._k / self.rate_hz if times is None else times[min(self._k, len(times) - 1)]
        q = (self._k + 0.1 * np.arange(6)).tolist()
        return t, {"actual_q": q, "actual_qd": [self.speed] * 6, "actual_current": [0.5] * 6}


@contextmanager
def served(world=None, **options):
    """A controller that sends a row when `send` is called."""
    with ControllerServer(
        SimulatedController(world or Rows()), **{"speed": 0.0, **options}
    ) as found:
        yield found


def sent(found, rows):
    """Sends rows no faster than a client can read them."""
    while rows > 0:
        found.send(min(rows, 25))
        rows -= 25
        time.sleep(0.003)


def source(found, **options):
    return UrController(
        found.host, found.port, **{"pauses_s": (0.02,), "timeout_s": 2.0, **options}
    )


def taken(stream, *, rows=0, until=None, within_s=20.0):
    """Takes from a stream until `rows` rows have come, or `until` accepts one item."""
    found, end = [], time.monotonic() + within_s
    while time.monotonic() < end and not stream.ended:
        found += stream.take(0.05)
        if until is not None and any(until(x) for x in found):
            return found
        if until is None and sum(isinstance(x, Row) for x in found) >= rows:
            return found
    return found


def rows_of(found):
    return [x for x in found if isinstance(x, Row)]


def event_kinds(found):
    return [str(x.kind) for x in found if not isinstance(x, Row)]


def opened(found, **options):
    return Stream(source(found), **options)


def weighed(mass=2.5, share=0.01, verdict=None):
    """A payload as if it had been weighed."""
    body = InertialParameters.from_com(
        mass, [0.001, -0.002, 0.05], np.diag([0.01, 0.011, 0.006]), "flange"
    )
    covariance = np.diag(np.r_[share * mass, [share * mass * 0.01] * 3, [1e-4] * 6] ** 2)
    arm = ArmIdentity("ur10e", SERIAL_NUMBER)
    return Payload(body, body, covariance, np.ones(6), verdict or Verdict("fine"), arm=arm)


@cache
def loaded_panda():
    """The model of an arm with torque sensors and seven joints, and 3 s of it with 1.5 kg."""
    robot = load_robot("panda")
    load = InertialParameters.from_com(1.5, [0.01, 0, 0.06], 0.002 * np.eye(3), robot.flange)

    def run(seed, payload=None):
        motion = FourierTrajectory.random(
            robot.home, reach=0.6, speed=1.0, period_s=3.0, harmonics=3, seed=seed
        )
        how = SimulationOptions(step_s=0.002)
        return simulate(
            robot, motion, payload=payload, seed=seed, rate_hz=125.0, options=how
        ).recording

    return identify(robot, prepare(run(0))), run(1, load)


def watched_panda(folder, address, send, wait_for_listener):
    """The facts that a live command prints for the rows of `loaded_panda`, and its exit code.

    The rows come four times as fast as they were measured; `wait_for_listener` gets the seconds
    that it may take.
    """
    model, loaded = loaded_panda()
    model.save(folder / "model.json")

    def play():
        wait_for_listener(PATIENCE_S)
        for row in zip(loaded.t, loaded.q, loaded.v, loaded.tau, strict=True):
            send(*row)
            time.sleep(0.002)

    player = threading.Thread(target=play)
    player.start()
    done = steelyard(
        "track", address, "--model", "model.json", "--seconds", "3", "--json", cwd=folder
    )
    player.join()
    return json.loads(done.stdout) if done.stdout else {}, done
