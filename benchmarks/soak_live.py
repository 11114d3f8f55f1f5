"""Random faults on a simulated arm: does it stop, and is every sentence true?

Each trial starts a motion, or sets a payload, in another process, and causes one fault at a random
moment. The simulated arm is measured at every control step. A trial is wrong when the arm is not at
rest 0.5 s after the fault (1 s after `kill -9` and where rows come ever later), when an
acceleration of the simulated arm itself exceeds 1.2 times the limit, or when a sentence of the
client contradicts the simulated controller.

Every trial begins with the payload that the arm carries set on the controller: none, or 9 kg on
every second controller. With a wrong payload the arm makes accelerations that were not commanded.

Several trials run at once, each with a controller and a client of its own. Their clock is that of
the simulated arm (`virtual_clock`): it stands still while a process computes, so that a busy
machine is not taken for a slow program, and a quiet one does not wait.

Usage: python benchmarks/soak_live.py [--faults 1000] [--seed 0] [--controllers 3]
       [--harsh] [--first 0] [--results FILE]
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from held_network import HeldNetwork
from virtual_clock import Ticker, share_clock

from steelyard.errors import SteelyardError
from steelyard.inertia import InertialParameters
from steelyard.live import MotionFailed, MotionRequest, UrController, move, stop
from steelyard.live._controller import ControllerPayload
from steelyard.live._setting import Proposal
from steelyard.robot import RobotModel, load_robot
from steelyard.trajectory import FourierTrajectory
from steelyard.twin._backend import NOMINAL_GAINS, SimulatedArm
from steelyard.twin._controller import SERIAL_NUMBER, SimulatedController
from steelyard.twin._server import ControllerServer

START = np.array([0.0, -1.3, 1.2, -1.4, -1.2, 0.3])
PERIOD_S = 2.5
TOOL_SPEED = 2.0  # [m/s]
ACCELERATION_LIMIT = 8.0  # [rad/s^2]
MAX_REST_S = 0.5
MAX_REST_AFTER_KILL_S = 1.0
WATCHED_S = 0.2  # after the longest time to rest
FIRST_TIME_S = 1000.0  # of the clocks
CARRIED = ControllerPayload(9.0, (0.0, 0.0, 0.1), (0.05, 0.05, 0.05, 0.0, 0.0, 0.0))
REST_SPEED = 0.01  # [rad/s]
MIN_SPEED = 0.018  # of an arm that moves, [rad/s]
LATEST_FAULT_S = 3.0  # after the start of a trial
ANSWER_TIMEOUT_S = 30.0
GROWING_DELAY = "later:0.6"
STREAM_FAULTS = (
    *("stall:0.3", "stall:1", "mute", "close", "reset", "reboot", "late:0.5"),
    *(GROWING_DELAY, "clock:5", "clock:-5"),
)
MODE_FAULTS = ("protective-stop", "local", "busy", "reduced")
CLIENT_FAULTS = ("kill", "interrupt", "freeze", "stop")
HARSH_FAULTS = (
    "network:0.15",
    "network:0.3",
    "network:2",
    "frozen:0.1",
    "frozen:0.3",
    "frozen:2",
    "interrupt twice",
    "interrupt, then kill",
)
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
        time_s: `time.monotonic`, [s]
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
    arm = load_robot("ur10e").with_serial(SERIAL_NUMBER)
    exact = replace(arm.drive, gain=np.array(NOMINAL_GAINS), gain_std=np.zeros(6))
    return arm.with_drive(exact)


def swing(seed: int) -> FourierTrajectory:
    """A random motion that begins and ends at rest in the start posture."""
    b = np.random.default_rng(seed).normal(size=(6, 3))
    b[:, 2] = -(b[:, 0] + 2 * b[:, 1]) / 3
    b /= np.abs(b).sum(axis=1, keepdims=True)
    still = FourierTrajectory(np.zeros((6, 3)), b, np.zeros(6), PERIOD_S)
    return replace(still, offset=START - still.at([0.0])[0][0])


def client(pipe: Connection, host: str, port: int, clock: Any) -> None:
    """Carries out requests until the pipe is closed."""
    share_clock(clock, is_other=True)
    arm = robot()
    source = UrController(host, port, timeout_s=1.0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # between two requests
    pipe.send("ready")
    while True:
        kind, seed, wait_s = pipe.recv()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if kind == "move":
            answer = moved(source, arm, seed, wait_s)
        else:
            answer = setting(source, seed)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        pipe.send(answer)


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
        proposal = Proposal.to(source, ControllerPayload(mass), arm=robot().arm)
        outcome = proposal.send(transition_s=0.0)
    except SteelyardError as error:
        return Answer(time.monotonic(), f"refused: {error}")
    except KeyboardInterrupt:
        return Answer(time.monotonic(), "interrupted")
    return Answer(time.monotonic(), outcome.words, setting=str(outcome.state))


def process_context() -> Any:
    """Makes processes that have imported most modules already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["steelyard.twin._server", "steelyard.excitation._certificate"])
    return context


class Client:
    """A process with a client; a new one after it was killed."""

    def __init__(self, host: str, port: int, clock: Any) -> None:
        self._place = (host, port, clock)
        self._context = process_context()
        self._start()

    def _start(self) -> None:
        self.pipe, other = self._context.Pipe()
        self._process = self._context.Process(
            target=client, args=(other, *self._place), daemon=True
        )
        self._process.start()
        other.close()
        self.pipe.recv()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid or 0

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def request(self, what: tuple[str, int, float]) -> None:
        """Sends a request, to another process where an interrupt has ended this one."""
        try:
            self.pipe.send(what)
        except OSError:
            self.renew()
            self.pipe.send(what)

    def end(self) -> None:
        """Ends the process for good."""
        self._process.kill()
        self._process.join()

    def renew(self) -> None:
        """Ends the process and starts another."""
        self.end()
        self._start()


# --- the measured arm


class Probe:
    """The simulated arm at every control step.

    A row holds the machine's time, the time by control steps, and for each joint position, speed,
    commanded acceleration and acceleration.
    """

    Q = slice(2, 8)
    V = slice(8, 14)
    COMMANDED = slice(14, 20)
    A = slice(20, 26)

    def __init__(self, arm: SimulatedArm) -> None:
        self.rows: list[tuple[float, ...]] = []
        self._arm = arm
        self._step = 0

    def __call__(self, controller: SimulatedController) -> None:
        out = controller.outputs
        joints = (*out["actual_q"], *out["actual_qd"], *out["target_qdd"], *self._arm.acceleration)
        self._step += 1
        self.rows.append((time.monotonic(), self._step * controller.arm.step_s, *joints))

    @property
    def speed(self) -> float:
        return max(map(abs, self.rows[-1][self.V]))

    def since(self, machine_s: float) -> np.ndarray:
        """The rows since a time of the machine, (N, 26)."""
        return np.array([row for row in list(self.rows) if row[0] >= machine_s])

    def until_rest(self, steps: int) -> None:
        """Waits until the arm has been at rest for a number of control steps."""
        begun = len(self.rows)
        while len(self.rows) < begun + steps or any(
            max(map(abs, row[self.V])) >= REST_SPEED for row in self.rows[-steps:]
        ):
            time.sleep(0.01)


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
    def random(cls, rng: np.random.Generator, *, is_harsh: bool = False) -> Trial:
        """A random one; one in five sets a payload. Harsh ones happen to the computer."""
        seed = int(rng.integers(1000))
        setting_faults: tuple[str, ...] = ECHO_FAULTS
        faults: tuple[str, ...] = (*STREAM_FAULTS, *MODE_FAULTS, *CLIENT_FAULTS, *POSTURE_FAULTS)
        if is_harsh:
            setting_faults = faults = HARSH_FAULTS
        if rng.random() < 0.2:
            return cls("set", str(rng.choice(setting_faults)), float(rng.uniform(0, 1)), 0.0, seed)
        fault = str(rng.choice(faults))
        if fault in POSTURE_FAULTS:  # while the question waits
            return cls("move", fault, float(rng.uniform(0, 1.2)), 1.5, seed)
        wait_s = float(rng.choice([0.0, 0.3]))
        return cls("move", fault, float(rng.uniform(0, LATEST_FAULT_S)), wait_s, seed)

    @property
    def max_rest_s(self) -> float:
        """Longest time from the fault to rest, [s]."""
        if self.fault in ("kill", "freeze", GROWING_DELAY, *HARSH_FAULTS):
            return MAX_REST_AFTER_KILL_S
        return MAX_REST_S


@dataclass(frozen=True)
class Result:
    """What happened in a trial.

    Attributes:
        number: of the trial
        trial: the trial
        problems: what went wrong, for people
        said: what the client said, in short; empty where it said nothing
        carried: mass of the payload, [kg]
        speed: of the fastest joint at the fault, [rad/s]
        rest_s: from the fault to rest, [s]; NaN where the fault did not stop a motion
        commanded: largest commanded acceleration after the fault, [rad/s^2]; NaN as `rest_s`
        acceleration: largest acceleration of the simulated arm, [rad/s^2]; NaN as `rest_s`
    """

    number: int
    trial: Trial
    problems: tuple[str, ...]
    said: str = ""
    carried: float = 0.0
    speed: float = 0.0
    rest_s: float = float("nan")
    commanded: float = float("nan")
    acceleration: float = float("nan")


class Soak:
    """Trials on one simulated controller.

    Args:
        carried: the payload of the arm, which the controller knows
        clock: of this process and its client
        is_harsh: whether the network between them may be lost
    """

    def __init__(self, carried: ControllerPayload, clock: Any, *, is_harsh: bool) -> None:
        timers = share_clock(clock, is_other=False)
        model = robot()
        payloads = {}
        if carried.mass:
            payloads[0.0] = InertialParameters.from_com(
                carried.mass, np.array(carried.cog), carried.inertia_matrix, model.flange
            )
        arm = SimulatedArm(model, payloads, start=START)
        self._carried = carried
        self.probe = Probe(arm)
        controller = SimulatedController(arm)
        self.server = ControllerServer(controller, speed=0.0, on_step=self.probe)
        self._network = HeldNetwork(self.server)
        port = self._network.port if is_harsh else self.server.port
        self.client = Client(self.server.host, port, clock)
        Ticker(
            timers,
            clock,
            controller.arm.step_s,
            on_step=self.server.send,
            other=lambda: self.client.pid,
            unread=self.server.has_unread,
        )

    def result(self, number: int, trial: Trial) -> Result:
        """What happens in a trial."""
        self._reset()
        controller = self.server.controller
        before = controller.payload
        begun_s = time.monotonic()
        self.client.request((trial.kind, trial.seed, trial.wait_s))
        time.sleep(trial.at_s)
        at_fault = controller.payload
        fault_s = time.monotonic()
        speed = self.probe.speed
        self._cause(trial.fault)
        answer = self._answer(trial)
        while time.monotonic() < fault_s + trial.max_rest_s + WATCHED_S:
            time.sleep(0.02)
        result = Result(number, trial, (), _in_short(answer), before.mass, speed)
        if trial.kind == "set":
            present = controller.payload
            if answer is not None and answer.time_s < fault_s:
                present = at_fault
            return replace(result, problems=_false_setting(answer, before, present))
        false = self._false_sentences(answer, begun_s)
        return self._measured(replace(result, problems=false), fault_s, answer)

    def _reset(self) -> None:
        """An arm at rest at the start, whose controller knows its payload and has no fault."""
        controller = self.server.controller
        controller.fault("normal")
        controller.dashboard("stop")
        if controller.payload != self._carried:
            controller.set_payload(self._carried)
        self.probe.until_rest(50)
        controller.place(START)
        del self.probe.rows[:-100]
        self.probe.until_rest(50)

    def _cause(self, fault: str) -> None:
        if fault == "kill":
            self.client.signal(signal.SIGKILL)
        elif fault == "interrupt":
            self.client.signal(signal.SIGINT)
        elif fault == "freeze":
            self.client.signal(signal.SIGSTOP)
        elif fault.startswith("interrupt"):
            self.client.signal(signal.SIGINT)
            time.sleep(0.05)
            self.client.signal(signal.SIGINT if fault.endswith("twice") else signal.SIGKILL)
        elif fault.startswith("network"):
            self._network.hold(float(fault.partition(":")[2]))
        elif fault.startswith("frozen"):
            self.client.signal(signal.SIGSTOP)
            time.sleep(float(fault.partition(":")[2]))
            self.client.signal(signal.SIGCONT)
        elif fault == "stop":
            stop(UrController(self.server.host, self.server.port, timeout_s=1.0))
        else:
            self.server.controller.fault(fault)

    def _answer(self, trial: Trial) -> Answer | None:
        """What the client says; None from a client that cannot speak any more."""
        if trial.fault in ("kill", "freeze"):
            time.sleep(trial.max_rest_s + WATCHED_S)
            self.client.renew()
            return None
        end_s = time.monotonic() + ANSWER_TIMEOUT_S
        while not self.client.pipe.poll(0.001) and time.monotonic() < end_s:
            pass
        if not self.client.pipe.poll():
            self.client.renew()
            return Answer(time.monotonic(), "no answer")
        try:
            answer: Answer = self.client.pipe.recv()
        except (EOFError, ConnectionError):  # the interrupt hit the client before or after its work
            self.client.renew()
            return None
        if trial.fault in ("interrupt twice", "interrupt, then kill"):
            self.client.renew()
        return answer

    def _measured(self, result: Result, fault_s: float, answer: Answer | None) -> Result:
        """The result with how soon the arm came to rest, and how gently."""
        problems = list(result.problems)
        if self.probe.speed >= REST_SPEED:
            problems.append("it moves after the end")
        trial = result.trial
        finished = answer is not None and answer.words == "finished"
        if finished or trial.fault in POSTURE_FAULTS:
            return replace(result, problems=tuple(problems))
        rows = self.probe.since(fault_s)
        moving = np.flatnonzero(np.abs(rows[:, Probe.V]).max(axis=1) >= REST_SPEED)
        rest_s = 0.0
        if moving.size:
            rest_s = float(rows[moving[-1], 1] - rows[0, 1])
        commanded = float(np.abs(rows[:, Probe.COMMANDED]).max())
        acceleration = float(np.abs(rows[:, Probe.A]).max())
        if rest_s > trial.max_rest_s:
            problems.append(f"at rest after {rest_s:.2f} s only")
        if acceleration > 1.2 * ACCELERATION_LIMIT:
            problems.append(f"{acceleration:.1f} rad/s^2, {commanded:.1f} commanded")
        return replace(
            result,
            problems=tuple(problems),
            rest_s=rest_s,
            commanded=commanded,
            acceleration=acceleration,
        )

    def _false_sentences(self, answer: Answer | None, begun_s: float) -> tuple[str, ...]:
        """Sentences of the client that the simulated arm contradicts."""
        if answer is None:
            return ()
        if answer.words == "no answer":
            return ("the client hangs",)
        rows = self.probe.since(begun_s)
        until = rows[rows[:, 0] <= answer.time_s]
        has_moved = bool((np.abs(until[:, Probe.V]).max(axis=1) >= MIN_SPEED).any())
        at_answer = float(np.abs(until[-1, Probe.V]).max())
        found = []
        if answer.moved == "moved" and not has_moved:
            found.append("says that it moved")
        if answer.moved == "did not move" and has_moved:
            found.append("says that it did not move")
        if answer.words.startswith("refused") and has_moved:
            found.append("says that nothing was sent")
        if answer.words == "interrupted" and has_moved and not answer.rest:
            found.append("says nothing about an arm that moves")
        if answer.rest == "at rest" and at_answer > 2 * REST_SPEED:
            found.append("says that it is at rest")
        if answer.words == "finished" and np.ptp(until[[0, -1], Probe.Q], axis=0).max() > 0.35:
            found.append("says that it came back")
        return tuple(f"{words}: {answer.words}" for words in found)


def _in_short(answer: Answer | None) -> str:
    if answer is None:
        return ""
    if answer.words.startswith("refused"):
        return "refused"
    return f"{answer.moved or answer.setting or answer.words}, {answer.rest or '-'}"


def _false_setting(
    answer: Answer | None, before: ControllerPayload, present: ControllerPayload
) -> tuple[str, ...]:
    """A sentence about a payload that the simulated controller contradicts."""
    if answer is None or answer.words.startswith("interrupted"):
        return ()
    reported = f"{present.mass:.3f} kg"
    if answer.setting in ("set", "not set") and reported not in answer.words:
        return (f"{answer.words}, but it has {reported}",)
    if answer.setting == "not set" and present != before:
        return (f"{answer.words}, but it was set to {reported}",)
    if "now says" in answer.words and reported not in answer.words:
        return (f"{answer.words}, but it has {reported}",)
    return ()


# --- several controllers at once


def worker(
    trials: Any, results: Any, carried: ControllerPayload, clock: Any, is_harsh: bool
) -> None:
    """Carries out trials until None comes."""
    soak = Soak(carried, clock, is_harsh=is_harsh)
    while (task := trials.get()) is not None:
        results.put(soak.result(*task))
    soak.client.end()
    results.close()
    results.join_thread()
    os._exit(0)  # without waiting for threads whose clock has stopped


def all_results(
    trials: Sequence[tuple[int, Trial]], controllers: int, *, is_harsh: bool
) -> Iterator[Result]:
    """The results of numbered trials, as they come."""
    context = process_context()
    tasks = context.Queue()
    results = context.Queue()
    for task in trials:
        tasks.put(task)
    workers = []
    for k in range(controllers):
        carried = (ControllerPayload(), CARRIED)[k % 2]
        clock = context.RawArray("d", [FIRST_TIME_S, 0.0, np.inf])
        args = (tasks, results, carried, clock, is_harsh)
        workers.append(context.Process(target=worker, args=args))
    for process in workers:
        tasks.put(None)
        process.start()
    for _ in trials:
        yield results.get()
    for process in workers:
        process.join()


def summary(results: Sequence[Result]) -> Iterator[str]:
    """Lines about all trials."""
    wrong = sum(bool(result.problems) for result in results)
    yield f"{len(results)} faults, {wrong} wrong"
    groups = {
        "kill -9 and SIGSTOP": ("kill", "freeze"),
        "the controller stops the arm": CONTROLLER_STOPS,
        "network and computer": HARSH_FAULTS,
        "all others": (*STREAM_FAULTS, "local", "reduced", "interrupt"),
    }
    for name, faults in groups.items():
        stopped = [r for r in results if r.trial.fault in faults and r.rest_s > 0]
        if stopped:
            rest_s = np.array([r.rest_s for r in stopped])
            yield (
                f"{name}: {len(stopped)} stopped; to rest median {np.median(rest_s):.2f} s,"
                f" longest {rest_s.max():.2f} s; commanded up to"
                f" {max(r.commanded for r in stopped):.1f} rad/s^2, simulated arm up to"
                f" {max(r.acceleration for r in stopped):.1f} rad/s^2"
            )
    said = collections.Counter(f"{r.trial.kind}: {r.said}" for r in results if r.said)
    for words, count in sorted(said.items()):
        yield f"  {count:4d} answers: {words}"


def main() -> int:
    """1 where a trial went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--harsh", action="store_true", help="faults of computer and network")
    parser.add_argument("--first", type=int, default=0, help="begin with this one")
    parser.add_argument("--controllers", type=int, default=3, help="trials at once")
    parser.add_argument("--results", type=Path, help="file for every result, one JSON per line")
    options = parser.parse_args()
    os.environ["STEELYARD_REAL_TIME"] = "0"  # with its own clock, the soak needs no priority
    rng = np.random.default_rng(options.seed)
    drawn = [Trial.random(rng, is_harsh=options.harsh) for _ in range(options.faults)]
    trials = list(enumerate(drawn))[options.first :]
    results: list[Result] = []
    for result in all_results(trials, options.controllers, is_harsh=options.harsh):
        results.append(result)
        if options.results is not None:
            with options.results.open("a") as file:
                print(json.dumps(asdict(result)), file=file)
        if result.problems:
            print(f"{result.number}: {'; '.join(result.problems)}: {result}", flush=True)
        if len(results) % 20 == 0:
            wrong = sum(bool(result.problems) for result in results)
            print(f"{len(results)} faults, {wrong} wrong", flush=True)
    for line in summary(results):
        print(line)
    return int(any(result.problems for result in results))


if __name__ == "__main__":
    raise SystemExit(main())
