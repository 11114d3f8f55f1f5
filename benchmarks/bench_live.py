"""Live: a simulated controller at 500 Hz in its own process, read, recorded and weighed.

Delays are from the moment when the controller sends a row to the moment when the estimate holds it,
on one clock. Picks are simulated without sockets, as fast as it goes: the same controller, rows and
weigher.

LIVE_PARTS=latency measures the delays without the page only, LIVE_PARTS=latency,page also with it;
LIVE_SECONDS is the duration.
"""

from __future__ import annotations

import importlib.util
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from figure import Figure

import steelyard as sy
from steelyard._computing import ROWS_PRIORITY
from steelyard._units import NORMAL_95
from steelyard.identification import DynamicModel, identify
from steelyard.inertia import InertialParameters
from steelyard.live import (
    Event,
    EventKind,
    FrankaController,
    LivePage,
    LiveWeigher,
    PageOptions,
    Recorder,
    Ros2Controller,
    Row,
    Source,
    Stream,
    TorqueSetup,
    UrController,
    snapshots_of,
)
from steelyard.live._motion import payload_motion
from steelyard.robot import RobotModel, load_robot
from steelyard.signals import prepare
from steelyard.simulation import simulate
from steelyard.torque.tracking import TorqueTrackerOptions
from steelyard.trajectory import FourierTrajectory
from steelyard.twin._backend import NOMINAL_GAINS, RecordedArm, SimulatedArm
from steelyard.twin._controller import SimulatedController
from steelyard.twin._server import CLOCK_OUTPUT

SECONDS = float(os.environ.get("LIVE_SECONDS", "60"))
PARTS = os.environ.get("LIVE_PARTS", "latency,page,picks,pushes,real,sources").split(",")
CONTROLLER_PRIORITY = ROWS_PRIORITY + 1
WARM_S = 10.0  # until libraries are loaded, and files and plots begun
UPDATES_HZ = 30.0
SEEDS = int(os.environ.get("SEEDS", "20"))
PUSH_SEEDS = int(os.environ.get("PUSH_SEEDS", "4"))
POSTURE = np.array([0.0, -1.3, 1.2, -1.4, -1.2, 0.3])
ROOT = Path(__file__).parents[1]
REAL = ROOT.parent / "shared" / "data" / "ur10e"
FRANKA = "127.0.13.37"  # an address of its own for a port that cannot be chosen
COLUMNS = tuple(
    name
    for word in ("timestamp", "actual_q", "actual_current")
    for name in ([word] if word == "timestamp" else [f"{word}_{k}" for k in range(6)])
)


def arm() -> RobotModel:
    robot = load_robot("ur10e")
    return robot.with_drive(
        replace(robot.drive, gain=np.array(NOMINAL_GAINS), gain_std=np.zeros(6))
    )


def model_of(robot: RobotModel, *, first: int = 0) -> DynamicModel:
    """From two runs; their noise has the seeds from `first` on."""
    runs = [
        simulate(robot, FourierTrajectory.load("xu2024"), seed=first + k).recording
        for k in range(2)
    ]
    return identify(robot, [prepare(run, drive=robot.drive) for run in runs])


IN_REAL_TIME = """
import os, sys
try:
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(int(sys.argv[1])))
except (AttributeError, PermissionError):
    pass
os.execv(sys.argv[2], sys.argv[2:])
"""


def real_time_words(words: list[str], priority: int) -> list[str]:
    """A command line with a real-time priority, where this user may have one.

    A real controller is a machine of its own: other work on this one does not hold it up.
    """
    return [sys.executable, "-c", IN_REAL_TIME, str(priority), *words]


@contextmanager
def controller(*options: str) -> Iterator[UrController]:
    words = [
        sys.executable,
        "-m",
        "steelyard",
        "serve",
        "ur10e",
        "--rtde",
        "127.0.0.1:0",
    ]
    words = real_time_words([*words, *options], CONTROLLER_PRIORITY)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        try:
            port = int(re.search(r"RTDE (\d+)", child.stdout.readline())[1])
            yield UrController("127.0.0.1", port)
        finally:
            child.terminate()


SLEEPER = """
import sys, time
late, due, end = [], time.monotonic() + 0.002, time.monotonic() + float(sys.argv[1])
while due < end:
    time.sleep(max(due - time.monotonic(), 0))
    late.append(time.monotonic() - due)
    due += 0.002
print(sorted(late)[len(late) * 999 // 1000])
"""


VIEWER = """
import sys, msgspec, viser
from viser._messages import ViewerCameraMessage
from websockets.sync.client import connect
camera = ViewerCameraMessage(
    (1, 0, 0, 0), (1, 1, 1), 1.0, 0.1, 100.0, 900, 1440, (0, 0, 0), (0, 0, 1)
)
version = f"viser-v{viser.__version__}"
origin = "http" + sys.argv[1][2:]
with connect(sys.argv[1], origin=origin, subprotocols=[version], max_size=None) as page:
    page.send(msgspec.msgpack.encode(camera.as_serializable_dict()))
    page.recv()
    print(flush=True)
    for _ in page:
        pass
"""


@contextmanager
def opened_page(model: DynamicModel, source: Source) -> Iterator[LivePage]:
    """A page with a viewer in a process of its own, which draws nothing."""
    with Stream(source) as probe:
        setup = TorqueSetup(model, probe.columns)
    with LivePage(setup, source, PageOptions(port=0)) as page:
        place = page.url.replace("http", "ws")
        words = [sys.executable, "-c", VIEWER, place]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as viewer:
            viewer.stdout.readline()
            yield page
            viewer.terminate()


class TimedWeigher(LiveWeigher):
    """Measures the processor time of its rows.

    Attributes:
        worked_s: for each row since the last `restart`, [s]
    """

    def __init__(self, setup: TorqueSetup) -> None:
        super().__init__(setup)
        self.restart()

    def restart(self) -> None:
        self.worked_s: list[float] = []

    def take(self, item: Row | Event) -> None:
        began_s = time.thread_time()
        super().take(item)
        self.worked_s.append(time.thread_time() - began_s)

    def updates_s(self, count: int = 200) -> list[float]:
        """Processor time of estimates of the present state, [s]."""
        found = []
        for _ in range(count):
            began_s = time.thread_time()
            self.snapshot()
            found.append(time.thread_time() - began_s)
        return found


def loopback(model: DynamicModel, *, page: bool) -> Iterator[Figure]:
    """Reading, weighing, recording and updates, alone or with a page and its viewer."""
    delays = np.full(round(1000 * SECONDS), np.nan)
    rows = 0
    missing = 0  # memory that is there before
    with ExitStack() as open_now:
        source = open_now.enter_context(controller("--trajectory", "xu2024", "--mass", "2.5"))
        shown = None
        if page:
            shown = open_now.enter_context(opened_page(model, source))
        stream = open_now.enter_context(Stream(source))
        folder = open_now.enter_context(tempfile.TemporaryDirectory())
        recorder = open_now.enter_context(Recorder(Path(folder) / "log.parquet", stream.columns))
        weigher = TimedWeigher(TorqueSetup(model, stream.columns))
        sent = stream.columns.index(CLOCK_OUTPUT)
        for _ in snapshots_of(stream.items(WARM_S), weigher, recorder=recorder, page=shown):
            pass
        memory = _memory_mb(shown)
        worked = _busy_s(shown)
        taken = _taken_away_s()
        words = [sys.executable, "-c", SLEEPER, str(SECONDS)]
        words = real_time_words(words, ROWS_PRIORITY)
        sleeper = open_now.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        began = time.monotonic()
        weigher.restart()

        def measured() -> Iterator[Row | Event]:
            nonlocal rows, missing
            for item in stream.items(SECONDS):
                yield item
                if isinstance(item, Row):  # it has been weighed
                    delays[rows] = time.monotonic() - item.values[sent]
                    rows += 1
                else:
                    missing += item.rows

        for _ in snapshots_of(
            measured(), weigher, every_s=1 / UPDATES_HZ, recorder=recorder, page=shown
        ):
            pass
        elapsed = time.monotonic() - began
        share = 100 * (_busy_s(shown) - worked) / elapsed
        grown = _memory_mb(shown) - memory
        away = 100 * (_taken_away_s() - taken) / (elapsed * os.cpu_count())
        asleep = 1e3 * float(sleeper.stdout.read())
    of_row = 1e3 * np.percentile(weigher.worked_s, [50, 99.9])
    of_update = 1e3 * np.percentile(weigher.updates_s(), 50)
    late = 1e3 * np.percentile(delays[:rows], [50, 99, 99.9])
    if page:
        name, words = ("page_", ", with the page open")
    else:
        name, words = ("", "")
    yield Figure(
        f"{name}lost",
        f"rows lost in {SECONDS:.0f} s at 500 Hz (of {rows}){words}",
        missing,
        "rows",
        0,
    )
    yield Figure(f"{name}delay", "from sent to weighed, median", late[0], "ms")
    yield Figure(f"{name}delay_99", "the same, 99th percentile", late[1], "ms")
    yield Figure(f"{name}delay_999", "the same, 99.9th percentile", late[2], "ms", 5.0)
    yield Figure(
        f"{name}asleep",
        "a loop of the same priority that only sleeps for 2 ms is late by, 99.9 %",
        asleep,
        "ms",
    )
    yield Figure(
        f"{name}away", "of this machine's processors its host took away meanwhile", away, "%"
    )
    yield Figure(f"{name}load", "load average of this machine at the end", os.getloadavg()[0], "")
    yield Figure(f"{name}row", "processor time for a row, median", of_row[0], "ms")
    yield Figure(f"{name}row_999", "the same, 99.9th percentile", of_row[1], "ms")
    yield Figure(f"{name}update", "processor time for an update, median", of_update, "ms")
    yield Figure(
        f"{name}core",
        f"reading, weighing, recording, updates at 30 Hz{words}: of one core",
        share,
        "%",
        50.0,
    )
    yield Figure(f"{name}memory", "growth of memory meanwhile, the page's too", grown, "MB", 30.0)


def _busy_s(page: LivePage | None) -> float:
    """Processor time of this process and of a page's, [s]."""
    if page is None:
        return time.process_time()
    words = Path(f"/proc/{page.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return time.process_time() + (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _taken_away_s() -> float:
    """Processor time that the host gave to other machines (steal) [s]."""
    return int(Path("/proc/stat").read_text().split(maxsplit=9)[8]) / os.sysconf("SC_CLK_TCK")


def _memory_mb(page: LivePage | None) -> float:
    """Memory of this process and of a page's, [MB]."""
    if page is None:
        both = ["self"]
    else:
        both = ["self", str(page.pid)]
    pages = sum(int(Path(f"/proc/{name}/statm").read_text().split()[1]) for name in both)
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def rows_of(
    world: SimulatedArm | RecordedArm, control: SimulatedController, seconds: float
) -> Iterator[Row]:
    for _ in range(int(seconds * world.rate_hz)):
        control.step()
        out = control.outputs
        values = (*out["timestamp"], *out["actual_q"], *out["actual_current"])
        yield Row(values[0], values, waiting="" if control.modes.run else "over")


class WithRests:
    """A motion, and a second of rest after it."""

    def __init__(self, core: FourierTrajectory) -> None:
        self.core = core
        self.duration_s = core.duration_s + 1.0

    def at(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q, v, a = self.core.at(np.minimum(t, self.core.duration_s))
        moving = (np.asarray(t) < self.core.duration_s)[:, None]
        return q, v * moving, a * moving


def picks(robot: RobotModel, *, at_rest: bool) -> Iterator[Figure]:
    """Parts of 1 to 5 kg, taken at rest or in motion, and weighed after three seconds of motion.

    Each has a posture and motion of its own, and a model from runs of its own; friction that
    changes with the load is drawn as the interval assumes it, and gravity is that of a known place.
    """
    errors = []
    ratios = []
    unseen = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        mass = rng.uniform(1, 5)
        com = rng.uniform([-0.05, -0.05, 0.02], [0.05, 0.05, 0.12])
        body = InertialParameters.from_com(mass, com, mass * 0.1**2 / 6 * np.eye(3), robot.flange)
        if at_rest:
            at_s = 6.5
        else:
            at_s = 6.0 + rng.uniform(0, 6)
        posture = POSTURE + rng.uniform(-0.5, 0.5, 6)
        true = robot.with_gravity((0.0, 0.0, -rng.uniform(9.78, 9.832)))
        model = model_of(true, first=2 * seed)
        core = payload_motion(model, posture, period_s=6.0).trajectory
        world = SimulatedArm(true, {at_s: body}, start=posture, seed=seed)
        drive = true.drive
        change = (
            TorqueTrackerOptions().friction_change
            * (drive.coulomb + drive.viscous)
            * rng.normal(size=(3, 6))
        )
        loaded = replace(
            drive,
            coulomb=np.maximum(drive.coulomb + change[0], 0.0),
            viscous=np.maximum(drive.viscous + change[1], 0.0),
            offset=drive.offset + change[2],
        )
        world._plants = SimulatedArm(true.with_drive(loaded), {at_s: body}, start=posture)._plants
        control = SimulatedController(world)
        weigher = LiveWeigher(TorqueSetup(model, COLUMNS))
        control.repeat(WithRests(core) if at_rest else core)
        for row in rows_of(world, control, at_s + 3.1 + 0.5 * at_rest):
            weigher.take(row)
        found = weigher.snapshot().payload
        unseen += len(weigher.state.history) != 1
        errors.append(100 * abs(found.mass / mass - 1))
        ratios.append((found.mass - mass) / found.std[0])
    if at_rest:
        name, where = ("rest", "at rest")
    else:
        name, where = ("motion", "in motion")
    high = float(np.percentile(errors, 95))
    outside = 100 * float(np.mean(np.abs(ratios) > NORMAL_95))
    yield Figure(
        f"picks_{name}_unseen", f"{SEEDS} picks of 1-5 kg {where}: not seen", unseen, "", 0
    )
    yield Figure(
        f"picks_{name}_error", "error of the mass 3 s later, 95th percentile", high, "%", 2.0
    )
    yield Figure(f"picks_{name}_worst", "the same, worst", max(errors), "%")
    yield Figure(f"picks_{name}_outside", "outside of their 95 % interval", outside, "%", 10.0)
    rms = float(np.sqrt(np.mean(np.square(ratios))))
    yield Figure(f"picks_{name}_ratio", "error over its standard deviation, RMS", rms, "")


def pushes(robot: RobotModel, model: DynamicModel) -> Iterator[Figure]:
    """Half a second of 10 to 40 Nm on a drive, five times in each run, and the same runs without.

    In every other run friction is up to 25 % and gains are 1 % unlike the model's.
    """
    false = 0
    seen = 0
    elsewhere = 0
    pushed = 0
    gains = np.array(NOMINAL_GAINS)
    for seed in range(9000, 9000 + PUSH_SEEDS):
        rng = np.random.default_rng(seed)
        drive = robot.drive
        mass = rng.uniform(0.5, 5)
        com = rng.uniform([-0.05, -0.05, 0.02], [0.05, 0.05, 0.12])
        body = InertialParameters.from_com(mass, com, mass * 0.1**2 / 6 * np.eye(3), robot.flange)
        if seed % 2:
            coulomb = drive.coulomb * rng.uniform(0.85, 1.2)
            viscous = drive.viscous * rng.uniform(0.8, 1.25)
            off = 1 + 0.01 * rng.normal(size=6)
            drive = replace(drive, coulomb=coulomb, viscous=viscous, gain=drive.gain * off)
        world = SimulatedArm(robot.with_drive(drive), {0.0: body}, start=POSTURE, seed=seed)
        control = SimulatedController(world)
        control.repeat(
            FourierTrajectory.random(
                POSTURE,
                reach=[0.7] * 6,
                speed=[float(rng.uniform(0.5, 1.5))] * 6,
                period_s=float(rng.uniform(6, 14)),
                harmonics=int(rng.integers(2, 6)),
                seed=seed,
            )
        )
        rows = list(rows_of(world, control, 75.0))
        times = rows[0].t + 30.0 + 9.0 * np.arange(5) + rng.uniform(0, 6, size=5)
        drives = rng.integers(0, 4, size=5)
        sizes = rng.choice([-1, 1], size=5) * rng.choice([10, 20, 40], 5)
        false += len(contacts(model, rows))
        found = contacts(
            model, [_pushed(row, times, drives, sizes / gains[drives]) for row in rows]
        )
        near = np.array([(times - 0.1 <= t) & (t <= times + 1.2) for t in found]).reshape(-1, 5)
        seen = seen + near.any(axis=0).sum()
        elsewhere = elsewhere + (~near.any(axis=1)).sum()
        pushed = pushed + 5
    minutes = PUSH_SEEDS * 75 / 60
    yield Figure("pushes_false", f"contact events without a push in {minutes:.0f} min", false, "")
    yield Figure(
        "pushes_unseen", f"{pushed} pushes of 10-40 Nm for 0.5 s: not seen", pushed - seen, ""
    )
    yield Figure("pushes_elsewhere", "events more than 1.2 s after a push", elsewhere, "")


def _pushed(row: Row, times: np.ndarray, drives: np.ndarray, amperes: np.ndarray) -> Row:
    values = list(row.values)
    for k in np.flatnonzero((times < row.t) & (row.t < times + 0.5)):
        values[7 + drives[k]] += amperes[k]
    return row._replace(values=tuple(values))


def contacts(model: DynamicModel, rows: list[Row]) -> list[float]:
    """When contacts are seen, [s] of the sender's clock."""
    weigher = LiveWeigher(TorqueSetup(model, COLUMNS))
    for row in rows:
        weigher.take(row)
    return [event.t for event in weigher.rows_seen().events if event.kind is EventKind.CONTACT]


def real() -> Iterator[Figure]:
    """Real recordings behind the simulated controller, against the same weighed offline."""
    if not REAL.is_dir():
        return
    robot = load_robot("ur10e")
    empty = [REAL / "unloaded" / f"{name}.npz" for name in ("ur-20_02_19_14harm50sec",)]
    model = sy.identify(robot, empty, friction="power")
    for path in sorted((REAL / "loaded").glob("*.npz")):
        recording = sy.read(path)
        offline = sy.track(recording, model=model).payload
        world = RecordedArm(recording)
        control = SimulatedController(world)
        weigher = LiveWeigher(TorqueSetup(model, COLUMNS))
        for row in rows_of(world, control, len(recording) / world.rate_hz - 2 / world.rate_hz):
            weigher.take(row)
        live = weigher.payload()
        share = abs(live.mass - offline.mass) / (1.96 * offline.std[0])
        yield Figure(
            f"real_{path.stem}", f"{path.stem}: live - offline, over the interval", share, "", 0.5
        )


ROS2_ARM = """
import time, foxglove, numpy as np
from rosbags.typesys import Stores, get_typestore
kind, store = "sensor_msgs/msg/JointState", get_typestore(Stores.LATEST)
schema = foxglove.Schema(name=kind, encoding="ros2msg", data=b"")
channel = foxglove.Channel("/joint_states", schema=schema, message_encoding="cdr")
print(foxglove.start_server(port=0).port, flush=True)
names, zero, k, began = [f"joint{j}" for j in range(6)], np.zeros(6), 0, time.monotonic()
while True:
    k += 1
    stamp = store.types["builtin_interfaces/msg/Time"](100 + k // 500, k % 500 * 2_000_000)
    head = store.types["std_msgs/msg/Header"](stamp, "")
    message = store.types[kind](head, names, zero + k, zero, zero)
    channel.log(bytes(store.serialize_cdr(message, kind)))
    time.sleep(max(began + k / 500 - time.monotonic(), 0))
"""


def other_sources() -> Iterator[Figure]:
    """An arm under ROS 2 behind the server of foxglove-sdk and a fake Franka arm; reading only."""
    if importlib.util.find_spec("foxglove") is not None:
        with subprocess.Popen(
            [sys.executable, "-c", ROS2_ARM], stdout=subprocess.PIPE, text=True
        ) as child:
            port = int(child.stdout.readline())
            yield from taken(
                "ros2",
                "ROS 2, JointState at 500 Hz",
                Ros2Controller("127.0.0.1", port, effort="tau"),
            )
            child.kill()
    if importlib.util.find_spec("pylibfranka") is not None:
        words = [sys.executable, str(ROOT / "tests" / "franka_controller.py"), FRANKA, ""]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(words, **pipes) as child:
            child.stdout.readline()
            print("auto on", file=child.stdin, flush=True)
            yield from taken("franka", "Franka, by libfranka at 1 kHz", FrankaController(FRANKA))
            child.kill()


def taken(name: str, words: str, source: Source) -> Iterator[Figure]:
    """Rows lost, and the share of a core of this process and its children."""
    missing = 0
    rows = 0
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    with Stream(source) as stream:
        began = time.monotonic()
        worked = time.process_time()
        for item in stream.items(SECONDS / 3):
            rows += isinstance(item, Row)
            missing += 0 if isinstance(item, Row) else item.rows
        elapsed = time.monotonic() - began
        worked = time.process_time() - worked
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked += after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    yield Figure(
        f"{name}_lost", f"{words}: rows lost in {elapsed:.0f} s (of {rows})", missing, "rows"
    )
    yield Figure(f"{name}_core", "reading: of one core", 100 * worked / elapsed, "%", 20.0)


def figures() -> Iterator[Figure]:
    robot = arm()
    model = model_of(robot)
    if "latency" in PARTS:
        yield from loopback(model, page=False)
    if "page" in PARTS and importlib.util.find_spec("viser") is not None:
        yield from loopback(model, page=True)
    if "picks" in PARTS:
        yield from picks(robot, at_rest=True)
        yield from picks(robot, at_rest=False)
    if "pushes" in PARTS:
        yield from pushes(robot, model)
    if "real" in PARTS:
        yield from real()
    if "sources" in PARTS:
        yield from other_sources()
