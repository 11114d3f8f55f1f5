"""Random faults on a simulated arm: does it stop, and is every sentence true?

Each trial starts a motion, or sets a payload, in another process, and causes one fault at a random
moment. The simulated arm is measured at every control step. A trial is wrong when the arm is not at
rest 1 s after the fault, when a joint accelerates beyond 1.2 times the limit, or when a sentence of
the client contradicts the simulated controller.

Usage: python benchmarks/soak_live.py [--faults 1000] [--seed 0]
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import os
import signal
import time
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.live import MotionFailed, MotionRequest, UrController, move, stop
from steelyard.live._controller import ControllerPayload
from steelyard.live._setting import Proposal
from steelyard.robot import RobotModel, load_robot
from steelyard.trajectory import FourierTrajectory
from steelyard.twin._backend import NOMINAL_GAINS, SimulatedArm
from steelyard.twin._controller import SimulatedController
from steelyard.twin._server import ControllerServer

START = np.array([0.0, -1.3, 1.2, -1.4, -1.2, 0.3])
PERIOD_S = 2.5
TOOL_SPEED = 2.0  # [m/s]
ACCELERATION_LIMIT = 8.0  # [rad/s^2]
SPAN = 10  # steps of an acceleration; within one step friction that turns over makes peaks
MAX_REST_S = 1.0
REST_SPEED = 0.01  # [rad/s]
MIN_SPEED = 0.018  # of an arm that moves, [rad/s]
LATEST_FAULT_S = 3.0  # after the start of a trial
ANSWER_TIMEOUT_S = 30.0
STREAM_FAULTS = ("stall:0.3", "stall:1", "mute", "close", "reset", "reboot", "late:0.5")
MODE_FAULTS = ("protective-stop", "local", "busy")
CLIENT_FAULTS = ("kill", "interrupt", "freeze", "stop")
CONTROLLER_STOPS = ("stop", "protective-stop", "busy")  # with the controller's own deceleration
POSTURE_FAULTS = ("moved:0.05", "moved:0.3")
ECHO_FAULTS = (
    "wrong-echo:0.1",
    "wrong-echo:-0.249",
    "payload:4",
    "mute",
    "close",
    "reboot",
    "local",
)


@dataclass(frozen=True)
class Answer:
    """What a client said, and when.

    Attributes:
        time_s: `time.monotonic` of this machine, [s]
        words: its sentence
        moved: 'moved', 'did not move', 'not known', or empty
        rest: 'at rest', 'still moving', 'not known', or empty
        setting: 'set', 'not set', 'not known', or empty
    """

    time_s: float
    words: str
    moved: str = ""
    rest: str = ""
    setting: str = ""


# --- the client, in a process of its own


def robot() -> RobotModel:
    """The arm with known gains."""
    arm = load_robot("ur10e")
    exact = replace(arm.drive, gain=np.array(NOMINAL_GAINS), gain_std=np.zeros(6))
    return arm.with_drive(exact)


def swing(seed: int) -> FourierTrajectory:
    """A random motion that begins and ends at rest in the start posture."""
    b = np.random.default_rng(seed).normal(size=(6, 3))
    b[:, 2] = -(b[:, 0] + 2 * b[:, 1]) / 3
    b /= np.abs(b).sum(axis=1, keepdims=True)
    still = FourierTrajectory(np.zeros((6, 3)), b, np.zeros(6), PERIOD_S)
    return replace(still, offset=START - still.at([0.0])[0][0])


def client(pipe: Connection, host: str, port: int) -> None:
    """Carries out requests until the pipe is closed."""
    arm = robot()
    source = UrController(host, port, timeout_s=1.0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pipe.send("ready")
    while True:
        kind, seed, wait_s = pipe.recv()
        if kind == "move":
            pipe.send(moved(source, arm, seed, wait_s))
        else:
            pipe.send(setting(source, seed))


def moved(source: UrController, arm: RobotModel, seed: int, wait_s: float) -> Answer:
    """The answer to a motion whose question is answered after a while."""
    reports: list[Any] = []

    def confirm(plan: object) -> bool:
        time.sleep(wait_s)
        return True

    try:
        done = move(
            source,
            arm,
            swing(seed),
            confirm=confirm,
            request=MotionRequest(tool_speed=TOOL_SPEED),
            on_stop=reports.append,
        )
    except MotionFailed as error:
        return Answer(time.monotonic(), str(error), str(error.moved), str(error.report.state))
    except SteelyardError as error:
        return Answer(time.monotonic(), f"refused: {error}")
    except KeyboardInterrupt:
        rest = str(reports[0].state) if reports else ""
        return Answer(time.monotonic(), "interrupted", rest=rest)
    return Answer(time.monotonic(), "finished", str(done.moved))


def setting(source: UrController, seed: int) -> Answer:
    """The answer to a payload."""
    mass = float(np.random.default_rng(seed).uniform(0.5, 9.0))
    try:
        outcome = Proposal.to(source, ControllerPayload(mass)).send(transition_s=0.0)
    except SteelyardError as error:
        return Answer(time.monotonic(), f"refused: {error}")
    except KeyboardInterrupt:
        return Answer(time.monotonic(), "interrupted")
    return Answer(time.monotonic(), outcome.words, setting=str(outcome.state))


class Client:
    """A process with a client; a new one after it was killed."""

    def __init__(self, host: str, port: int) -> None:
        self._place = (host, port)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["steelyard.live", "steelyard.excitation"])
        self._start()

    def _start(self) -> None:
        self.pipe, other = self._context.Pipe()
        self._process = self._context.Process(
            target=client, args=(other, *self._place), daemon=True
        )
        self._process.start()
        other.close()
        self.pipe.recv()

    def signal(self, number: int) -> None:
        os.kill(self._process.pid or 0, number)

    def renew(self) -> None:
        """Ends the process for good and starts another."""
        self._process.kill()
        self._process.join()
        self._start()


# --- the measured arm


class Probe:
    """Machine time, controller's time, position and speed at every control step."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, ...]] = []

    def __call__(self, controller: SimulatedController) -> None:
        out = controller.outputs
        joints = (*out["actual_q"], *out["actual_qd"])
        self.rows.append((time.monotonic(), controller.seconds, *joints))

    @property
    def speed(self) -> float:
        return max(map(abs, self.rows[-1][8:14]))

    def since(self, machine_s: float) -> np.ndarray:
        """The rows since a time of the machine, (N, 14)."""
        return np.array([row for row in self.rows if row[0] >= machine_s])


@dataclass(frozen=True)
class Trial:
    """One fault.

    Attributes:
        kind: 'move' or 'set'
        fault: as on the dashboard, or what happens to the client
        at_s: when, after the start of the trial, [s]
        wait_s: how long the question of a motion waits for its answer, [s]
        seed: of motion and payload
    """

    kind: str
    fault: str
    at_s: float
    wait_s: float
    seed: int

    @classmethod
    def random(cls, rng: np.random.Generator) -> Trial:
        """A random one; one in five sets a payload."""
        seed = int(rng.integers(1000))
        if rng.random() < 0.2:
            return cls("set", str(rng.choice(ECHO_FAULTS)), float(rng.uniform(0, 1)), 0.0, seed)
        faults = (*STREAM_FAULTS, *MODE_FAULTS, *CLIENT_FAULTS, *POSTURE_FAULTS)
        fault = str(rng.choice(faults))
        if fault in POSTURE_FAULTS:  # while the question waits
            return cls("move", fault, float(rng.uniform(0, 1.2)), 1.5, seed)
        wait_s = float(rng.choice([0.0, 0.3]))
        return cls("move", fault, float(rng.uniform(0, LATEST_FAULT_S)), wait_s, seed)


class Soak:
    """Trials on one simulated controller."""

    def __init__(self) -> None:
        self.probe = Probe()
        controller = SimulatedController(SimulatedArm(robot(), start=START))
        self.server = ControllerServer(controller, on_step=self.probe)
        self.client = Client(self.server.host, self.server.port)
        self.rest_s: list[float] = []
        self.acceleration: list[float] = []
        self.controller_acceleration: list[float] = []
        self.said: collections.Counter[str] = collections.Counter()

    def wrong(self, trial: Trial) -> list[str]:
        """What went wrong in a trial."""
        self._reset()
        controller = self.server.controller
        before = controller.payload
        begun_s = time.monotonic()
        self.client.pipe.send((trial.kind, trial.seed, trial.wait_s))
        time.sleep(trial.at_s)
        at_fault = controller.payload
        fault_s = time.monotonic()
        self._cause(trial.fault)
        answer = self._answer(trial)
        if trial.kind == "set":
            present = controller.payload
            if answer is not None and answer.time_s < fault_s:
                present = at_fault
            return _false_setting(answer, before, present)
        end_s = time.monotonic()
        while time.monotonic() < end_s + MAX_REST_S + 0.2:
            time.sleep(0.05)
        return [
            *self._not_at_rest(trial, max(fault_s, begun_s), answer),
            *self._false_sentences(answer, begun_s),
        ]

    def _reset(self) -> None:
        controller = self.server.controller
        controller.fault("normal")
        controller.dashboard("stop")
        time.sleep(0.3)
        controller.place(START)
        del self.probe.rows[:-10]
        time.sleep(0.8)

    def _cause(self, fault: str) -> None:
        if fault == "kill":
            self.client.signal(signal.SIGKILL)
        elif fault == "interrupt":
            self.client.signal(signal.SIGINT)
        elif fault == "freeze":
            self.client.signal(signal.SIGSTOP)
        elif fault == "stop":
            stop(UrController(self.server.host, self.server.port, timeout_s=1.0))
        else:
            self.server.controller.fault(fault)

    def _answer(self, trial: Trial) -> Answer | None:
        """What the client says; None from a client that cannot speak any more."""
        if trial.fault in ("kill", "freeze"):
            time.sleep(MAX_REST_S)
            self.client.renew()
            return None
        if not self.client.pipe.poll(ANSWER_TIMEOUT_S):
            self.client.renew()
            return Answer(time.monotonic(), "no answer")
        try:
            answer: Answer = self.client.pipe.recv()
        except EOFError:  # the interrupt hit the client before or after its work
            self.client.renew()
            return None
        self.said[f"{answer.moved or answer.setting or '-'}, {answer.rest or '-'}"] += 1
        return answer

    def _not_at_rest(self, trial: Trial, fault_s: float, answer: Answer | None) -> list[str]:
        """Whether the arm came to rest in time and gently."""
        rows = self.probe.since(fault_s)
        if answer is not None and answer.words == "finished":
            return [] if self.probe.speed < REST_SPEED else ["it moves after the end"]
        moving = np.flatnonzero(np.abs(rows[:, 8:14]).max(axis=1) >= REST_SPEED)
        rest_s = float(rows[moving[-1], 1] - rows[0, 1]) if moving.size else 0.0
        if trial.fault in POSTURE_FAULTS or trial.fault == "reboot":
            return [] if self.probe.speed < REST_SPEED else ["it moves after the end"]
        steps_s = (rows[SPAN:, 1] - rows[:-SPAN, 1])[:, None]
        changes = rows[SPAN:, 8:14] - rows[:-SPAN, 8:14]
        acceleration = float(np.abs(changes / steps_s).max())
        found = []
        if rest_s > MAX_REST_S:
            found.append(f"at rest after {rest_s:.2f} s only")
        if trial.fault in CONTROLLER_STOPS:
            self.controller_acceleration.append(acceleration)
        else:
            self.acceleration.append(acceleration)
            if acceleration > 1.2 * ACCELERATION_LIMIT:
                found.append(f"{acceleration:.1f} rad/s^2")
        self.rest_s.append(rest_s)
        return found

    def _false_sentences(self, answer: Answer | None, begun_s: float) -> list[str]:
        """Sentences of the client that the simulated arm contradicts."""
        if answer is None:
            return []
        if answer.words == "no answer":
            return ["the client hangs"]
        rows = self.probe.since(begun_s)
        until = rows[rows[:, 0] <= answer.time_s]
        path = np.abs(until[:, 8:14]).max(axis=1) >= MIN_SPEED
        at_answer = float(np.abs(until[-1, 8:14]).max())
        found = []
        if answer.moved == "moved" and not path.any():
            found.append("says that it moved")
        if answer.moved == "did not move" and path.any():
            found.append("says that it did not move")
        if answer.rest == "at rest" and at_answer > 2 * REST_SPEED:
            found.append("says that it is at rest")
        if answer.words == "finished" and np.abs(until[-1, 2:8] - until[0, 2:8]).max() > 0.35:
            found.append("says that it came back")
        return [f"{words}: {answer.words}" for words in found]


def _false_setting(
    answer: Answer | None, before: ControllerPayload, present: ControllerPayload
) -> list[str]:
    """A sentence about a payload that the simulated controller contradicts."""
    if answer is None or answer.words.startswith(("refused", "interrupted")):
        return []
    reported = f"{present.mass:.3f} kg"
    if answer.setting in ("set", "not set") and reported not in answer.words:
        return [f"{answer.words}, but it has {reported}"]
    if answer.setting == "not set" and present != before:
        return [f"{answer.words}, but it was set to {reported}"]
    if "now says" in answer.words and reported not in answer.words:
        return [f"{answer.words}, but it has {reported}"]
    return []


def main() -> int:
    """The number of trials that went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    soak = Soak()
    wrong = 0
    for number in range(options.faults):
        trial = Trial.random(rng)
        if problems := soak.wrong(trial):
            wrong += 1
            print(f"{number}: {trial}: {'; '.join(problems)}", flush=True)
        if number % 20 == 19:
            print(f"{number + 1} faults, {wrong} wrong", flush=True)
    rest_s = np.array(soak.rest_s)
    print(f"{options.faults} faults, {wrong} wrong")
    print(f"to rest: median {np.median(rest_s):.2f} s, longest {rest_s.max():.2f} s")
    print(f"largest acceleration {max(soak.acceleration, default=0.0):.1f} rad/s^2")
    own = max(soak.controller_acceleration, default=0.0)
    print(f"where the controller stopped the arm itself {own:.1f} rad/s^2")
    for said, count in sorted(soak.said.items()):
        print(f"  {count:4d} answers: {said}")
    soak.server.close()
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
