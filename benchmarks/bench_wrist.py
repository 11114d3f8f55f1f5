"""The payload from a wrist sensor: liu2025 in MuJoCo, strong noise, real data.

The arm is a KUKA KR60HA that turns joints 4 to 6, recorded at 250 Hz: 15 postures at rest, 10 s of
excitation, 10 s of test motion at high and at low speed. Each of 50 seeds has its own excitation,
noise, zero drifts and encoder phases; five sets of postures and test motions take turns. The
wrench's noise is the effective resolution of the ATI Omega160 (0.5 N, 0.05 Nm); encoders have 20
bits. liu2025 prints diag(3.24, 0.809, 4.049) kg m^2: about the sensor's origin no body has it (a
plate of no thickness, off its plane), so it is taken about the centre of mass, of a plate 10 mm
thick.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from figure import Figure
from scipy.signal import detrend

from steelyard.control._contact_force import contact_force
from steelyard.inertia import InertialParameters
from steelyard.io._wrist import SensorDescription
from steelyard.live import track_wrist
from steelyard.recording import Recording
from steelyard.robot import RobotModel, load_robot
from steelyard.simulation import SensorModel, SimulationOptions, simulate
from steelyard.simulation._run import Truth
from steelyard.trajectory import FourierTrajectory
from steelyard.workflow import WristTrackingOptions
from steelyard.wrist import (
    Postures,
    WrenchSamples,
    WristPayload,
    WristRecording,
    WristSensor,
    weigh_dynamic,
    weigh_static,
)
from steelyard.wrist._regressor import BaseGravity
from steelyard.wrist.estimators import ESTIMATORS, RecursiveRestricted
from steelyard.wrist.tracking import WristPath, WristTracker
from steelyard_papers.liu2025.comparison_methods import (
    method_1,
    method_2,
    moving_postures,
    regression_of_ten,
)

DATA = Path(__file__).parents[2] / "shared" / "data"
MOTIONS = 5
SEEDS = 50
PLATE = 40.173 * 0.01**2 / 12
LOAD = InertialParameters.from_com(
    40.173, [0.0, 0.0, 0.905 / 40.173], np.diag([3.24 + PLATE, 0.809 + PLATE, 4.049])
)
TILT = np.radians([1.824, 2.326])
UPRIGHT = np.array([0.0, 0.0, -9.81])
GRAVITY = BaseGravity(UPRIGHT).tilted(TILT)
NOISE = np.array([0.5, 0.5, 0.5, 0.05, 0.05, 0.05])
STEP = 2 * np.pi / 2**20
COARSE_STEP = 2 * np.pi / 2**18
SENSOR = WristSensor(
    "ATI Omega160", reach=np.array([2500.0, 2500, 6250, 400, 400, 400]), noise=NOISE
)
TABLE_2 = {"m": 0.0093, "mz": 0.012, "Ixx": 0.035, "Iyy": 0.024, "Izz": 0.036}
ROW = {"m": 0, "mz": 3, "Ixx": 4, "Iyy": 6, "Izz": 9}


@dataclass(frozen=True)
class FromRest:
    """A Fourier motion that begins at rest, after a second of standing still."""

    series: FourierTrajectory
    stand_s: float = 1.0
    ramp_s: float = 1.0
    duration_s: float = 10.0

    def at(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x = np.clip((np.asarray(t) - self.stand_s) / self.ramp_s, 0.0, None)
        inside = np.minimum(x, 1.0)
        s = self.ramp_s * np.where(x < 1, inside**4 * (2.5 - 3 * inside + inside**2), x - 0.5)
        ds = inside**3 * (10 - 15 * inside + 6 * inside**2)
        dds = 30 * inside**2 * (1 - inside) ** 2 / self.ramp_s
        q, v, a = self.series.at(s)
        return q, v * ds[:, None], a * ds[:, None] ** 2 + v * dds[:, None]


@dataclass(frozen=True)
class Visits:
    """Postures, one after the other: 1.3 s of rest and 0.7 s of motion each."""

    postures: np.ndarray
    rest_s: float = 1.3
    move_s: float = 0.7

    @property
    def duration_s(self) -> float:
        return len(self.postures) * (self.rest_s + self.move_s) - self.move_s

    def at(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        period = self.rest_s + self.move_s
        k = np.minimum((np.asarray(t) // period).astype(int), len(self.postures) - 1)
        x = np.clip((t - k * period - self.rest_s) / self.move_s, 0.0, 1.0)[:, None]
        way = self.postures[np.minimum(k + 1, len(self.postures) - 1)] - self.postures[k]
        first = (30 * x**2 - 60 * x**3 + 30 * x**4) / self.move_s
        second = (60 * x - 180 * x**2 + 120 * x**3) / self.move_s**2
        return (
            self.postures[k] + (10 * x**3 - 15 * x**4 + 6 * x**5) * way,
            first * way,
            second * way,
        )


@dataclass(frozen=True)
class Motion:
    """What really happened in one set of motions."""

    postures: Truth
    fast: Truth
    slow: Truth


@cache
def arm() -> RobotModel:
    return load_robot("kr60ha")


CENTRE = np.array([0.0, 0.0, 0.0, 0.0, 0.8, 0.0])


def run(path: object) -> Truth:
    options = SimulationOptions(gravity_base=GRAVITY, step_s=0.002)
    ideal = SensorModel.ideal()
    load = {"payload": LOAD, "sensors": ideal}
    return simulate(arm(), path, rate_hz=250, options=options, **load).truth


def wrist(seed: int, speed: float) -> FromRest:
    series = FourierTrajectory.random(
        arm().home + CENTRE,
        reach=[1e-9] * 3 + [1.2, 0.9, 1.5],
        speed=[1e-9] * 3 + [2.0 * speed, 2.0 * speed, 2.5 * speed],
        period_s=10.0,
        harmonics=5,
        seed=seed,
    )
    return FromRest(series)


@cache
def motion(k: int) -> Motion:
    turns = np.random.default_rng(k).uniform([-1.2, -1.2, -1.5], [1.2, 0.8, 1.5], size=(15, 3))
    postures = arm().home + CENTRE + np.column_stack([np.zeros((15, 3)), turns])
    return Motion(run(Visits(postures)), run(wrist(200 + k, 1.0)), run(wrist(300 + k, 0.25)))


@cache
def excitation(seed: int) -> Truth:
    return run(wrist(1000 + seed, 1.0))


def measured(
    truth: Truth, drift: np.ndarray, rng: np.random.Generator, *, step: float = STEP
) -> Recording:
    """Measurements of the truth: encoders with their own phase, a noisy wrench with drift."""
    phase = rng.uniform(-0.5, 0.5, truth.q.shape[1]) * step
    return Recording(
        truth.t,
        np.round((truth.q + phase) / step) * step,
        arm().joint_names,
        wrench=truth.wrench + drift + NOISE * rng.standard_normal(truth.wrench.shape),
        wrench_frame="flange",
        wrench_convention="load_on_sensor",
    )


@dataclass(frozen=True)
class Seed:
    """The answers of every method for one seed."""

    two_stage: WristPayload
    alone: WristPayload  # from the motion alone
    online: WristPayload
    method_2: WristPayload
    method_1: WristPayload
    method_1_moving: WristPayload
    static_error: np.ndarray
    static_covered: np.ndarray
    drift: np.ndarray
    recordings: tuple[Recording, Recording]


@cache
def answers(seed: int) -> Seed:
    m = motion(seed % MOTIONS)
    rng = np.random.default_rng(1000 + seed)
    drift = rng.normal(size=6) * [10, 10, 20, 1, 1, 1]
    at_rest = WristRecording.of_joints(measured(m.postures, drift, rng), arm(), SENSOR)
    postures = Postures.of(at_rest)
    static = weigh_static(postures)
    moving = measured(excitation(seed), drift, rng)
    offline = WrenchSamples.from_joints(arm(), moving, SENSOR)
    causal = WrenchSamples.from_pose_causal(WristRecording.of_joints(moving, arm(), SENSOR))
    truth = np.concatenate([LOAD.vector[:4], drift, TILT])
    low, high = static.interval().T
    return Seed(
        weigh_dynamic(offline, static),
        weigh_dynamic(offline),
        weigh_dynamic(causal, static, estimator=ESTIMATORS["rrtls"]),
        method_2(causal, static),
        method_1(postures, gravity_base=UPRIGHT),
        method_1(moving_postures(causal, every=10), gravity_base=UPRIGHT),
        static.value - truth,
        (truth > low) & (truth < high),
        drift,
        (measured(m.fast, drift, rng), measured(m.slow, drift, rng)),
    )


def median(values: object) -> float:
    return float(np.median(np.abs(np.asarray(list(values)))))  # type: ignore[call-overload]


def coverage_figure(name: str, what: str, covered: object) -> Figure:
    share = 100 * float(np.mean(covered))  # type: ignore[arg-type]
    return Figure(
        name, f"{what}: 95 % intervals cover {share:.1f} %, off by", abs(share - 95.0), "%", 3.0
    )


def table_2() -> Iterator[Figure]:
    seeds = [answers(k) for k in range(SEEDS)]
    for kind, what in (
        ("two_stage", "two stages, offline"),
        ("online", "two stages, recursive, causal"),
    ):
        errors = np.array([getattr(s, kind).unconstrained.vector - LOAD.vector for s in seeds])
        for name, row in ROW.items():
            words = f"liu2025 Table II, {what}: error of {name} / the paper's"
            yield Figure(f"{kind}_{name}", words, median(errors[:, row]), "SI", 1.0, TABLE_2[name])
        tilts = np.degrees([getattr(s, kind).inclination - TILT for s in seeds])
        yield Figure(
            f"{kind}_tilt", f"{what}: error of U, V", median(np.abs(tilts).max(1)), "deg", 0.05
        )
    mass = {
        kind: median([getattr(s, kind).unconstrained.mass - LOAD.mass for s in seeds])
        for kind in ("two_stage", "online", "method_2", "method_1", "method_1_moving")
    }
    yield Figure(
        "order_2",
        "mass: two stages / Method 2 (0.075 kg)",
        mass["online"],
        "kg",
        1.0,
        mass["method_2"],
    )
    words = "mass: Method 2 / Method 1 on moving data (0.370 kg)"
    yield Figure("order_1", words, mass["method_2"], "kg", 1.0, mass["method_1_moving"])
    yield Figure(
        "method_1_rest", "mass: Method 1 on 15 postures really at rest", mass["method_1"], "kg"
    )
    for name, kind, what in (
        ("coverage", "two_stage", "two stages, offline"),
        ("alone_coverage", "alone", "motion alone"),
    ):
        found = [getattr(s, kind) for s in seeds]
        covered = [np.abs(x.unconstrained.vector - LOAD.vector) < 1.96 * x.std for x in found]
        yield coverage_figure(name, what, covered)
    covered = [s.static_covered for s in seeds]
    yield coverage_figure("static_coverage", "static stage", covered)


def noisy_samples(seed: int, *, clean: bool) -> tuple[WrenchSamples, np.ndarray]:
    rng = np.random.default_rng(5000 + seed)
    drift = rng.normal(size=6) * [10, 10, 20, 1, 1, 1]
    if clean:
        recording = measured(excitation(seed), drift, rng, step=1e-12)
        return WrenchSamples.from_joints(arm(), recording, SENSOR), drift
    recording = measured(excitation(seed), drift, rng, step=COARSE_STEP)
    return WrenchSamples.from_joints(arm(), recording, SENSOR, cutoff_hz=None), drift


def strong_noise() -> Iterator[Figure]:
    names = ("ls", "tls", "wls", "restricted", "rrtls", "ml")
    inertia = {n: [] for n in names}
    com = {n: [] for n in names}
    covered = []
    clean = {n: [] for n in ("wls", "restricted", "ml")}
    for seed in range(SEEDS):
        samples, drift = noisy_samples(seed, clean=False)
        rest = measured(motion(seed % MOTIONS).postures, drift, np.random.default_rng(seed))
        static = weigh_static(Postures.of(WristRecording.of_joints(rest, arm(), SENSOR)))
        regression = regression_of_ten(samples, static)
        for name in names:
            if name == "ml":
                payload = weigh_dynamic(samples, static)
                value = payload.unconstrained.vector
                covered.append(np.abs(value - LOAD.vector) < 1.96 * payload.std)
            else:
                value = ESTIMATORS[name].estimate(regression).value
            inertia[name].append(np.linalg.norm(value[4:] - LOAD.vector[4:]))
            com[name].append(np.linalg.norm(value[1:4] / value[0] - LOAD.com))
        samples, _ = noisy_samples(seed, clean=True)
        for name in clean:
            body = weigh_dynamic(samples, estimator=ESTIMATORS[name], tilt=True).unconstrained
            clean[name].append(np.linalg.norm(body.vector[4:] - LOAD.vector[4:]))
    for name in ("restricted", "rrtls", "ml"):
        for what, errors, unit, scale in (
            ("inertia", inertia, "kg m^2", 1.0),
            ("CoM", com, "mm", 1e3),
        ):
            best = min(median(errors["ls"]), median(errors["tls"]))
            words = f"strong noise, {what}: {ESTIMATORS[name].name} / best of LS and TLS"
            yield Figure(
                f"noisy_{name}_{what}", words, scale * median(errors[name]), unit, 0.2, scale * best
            )
    yield Figure("noisy_wls", "strong noise, inertia: WLS", median(inertia["wls"]), "kg m^2")
    for name in ("restricted", "ml"):
        words = f"clean motion, inertia: {ESTIMATORS[name].name} / WLS"
        yield Figure(
            f"clean_{name}", words, median(clean[name]), "kg m^2", 1.05, median(clean["wls"])
        )
    yield coverage_figure("noisy_coverage", "strong noise, maximum likelihood", covered)


def contact() -> Iterator[Figure]:
    kinds = {"method_1": "Method 1", "method_2": "Method 2", "online": "two stages, causal"}
    paper = {
        "method_1": ((67.34, 2.17, 14.18, 2.22), (65.38, 1.21, 13.60, 0.39)),
        "method_2": ((21.41, 0.20, 1.59, 0.53), (21.58, 1.06, 1.87, 0.33)),
        "online": ((8.33, 0.24, 0.55, 0.17), (8.60, 1.04, 0.70, 0.35)),
    }
    sizes: dict[tuple[str, int], list[np.ndarray]] = {}
    peaks: dict[int, list[np.ndarray]] = {0: [], 1: []}
    for seed in range(0, SEEDS, 5):
        s = answers(seed)
        for speed, recording in enumerate(s.recordings):
            samples = WrenchSamples.from_pose_causal(
                WristRecording.of_joints(recording, arm(), SENSOR), settle_s=0.3
            )
            for kind in kinds:
                force = contact_force(getattr(s, kind), samples)
                row = [
                    force.force.mean(),
                    force.force.std(),
                    force.torque.mean(),
                    force.torque.std(),
                ]
                sizes.setdefault((kind, speed), []).append(np.array(row))
            zeroed = contact_force(s.online, samples, rezero="start")
            peaks[speed].append(np.abs(zeroed.external[zeroed.t > zeroed.zeroed_at[0]]).max(axis=0))
    for speed, how in enumerate(("high-speed", "low-speed")):
        for kind, words in kinds.items():
            row = np.median(sizes[kind, speed], axis=0)
            printed = paper[kind][speed]
            for k, (what, unit) in enumerate((("force", "N"), ("torque", "Nm"))):
                text = (
                    f"Table III, {how}, {words}: mean {what} (+- {row[2 * k + 1]:.3g}) / the"
                    " paper's"
                )
                if kind == "online":
                    goal = 1.0
                else:
                    goal = None
                yield Figure(f"{how}_{kind}_{what}", text, row[2 * k], unit, goal, printed[2 * k])
        for a, b in (("online", "method_2"), ("method_2", "method_1")):
            ratio = np.median(sizes[a, speed], axis=0)[2]
            words = f"{how}: mean torque, {kinds[a]} / {kinds[b]}"
            yield Figure(
                f"{how}_{a}", words, ratio, "Nm", 1.0, np.median(sizes[b, speed], axis=0)[2]
            )
        peak = np.median(peaks[speed], axis=0)
        words = f"{how}, after the second compensation: largest"
        goals = (3.03, 1.67)
        yield Figure(f"{how}_peak_force", f"{words} force", peak[:3].max(), "N", goals[0])
        yield Figure(f"{how}_peak_torque", f"{words} torque", peak[3:].max(), "Nm", goals[1])


def real() -> Iterator[Figure]:
    if not DATA.is_dir():
        return
    wrench = ["Fx_N", "Fy_N", "Fz_N", "Tx_Nm", "Ty_Nm", "Tz_Nm"]
    columns = {"wrench": wrench, "quaternion": ["qx", "qy", "qz", "qw"]}
    seven = SensorDescription(WristSensor(frame="base"), None, columns, postures=True)
    static = weigh_static(Postures.of(seven.recording(DATA / "ft_static/static_7_poses.csv")))
    off = 100 * abs(static.mass * 9.81 / 10.804 - 1)
    yield Figure(
        "seven_weight", "real, 7 postures: weight, off the published 10.804 N by", off, "%", 0.5
    )
    off = 1e3 * abs(static.com[2] - 0.05197)
    yield Figure(
        "seven_com", "real, 7 postures: CoM z, off the published 51.97 mm by", off, "mm", 1.0
    )
    series = SensorDescription(WristSensor(), None, {"t": ["t_s"], **columns})
    found = Postures.of(series.recording(DATA / "ft_static/timeseries_10hz.csv"))
    static = weigh_static(found, tilt=False)
    words = (
        f"real, 10 Hz series: {len(found)} rests found, {len(static.postures)} different; weight"
    )
    yield Figure("series_weight", words, static.mass * 9.81, "N")
    runs = {}
    for name in ("run1", "run3"):
        samples = panda(name)
        runs[name] = weigh_dynamic(samples)
        live = track_wrist(panda_recording(name), options=WristTrackingOptions(cutoff_hz=5.0))
        off = 100 * abs(live.payload.unconstrained.mass / runs[name].unconstrained.mass - 1)
        yield Figure(
            f"{name}_online", f"real, {name}: mass online at the end, off batch by", off, "%", 1.0
        )
        known = [point for point in live.points if np.isfinite(point.mass_std)]
        apart = [abs(x.mass - runs[name].unconstrained.mass) > 1.96 * x.mass_std for x in known]
        words = f"real, {name}: points at which the interval does not hold batch's mass"
        yield Figure(f"{name}_online_outside", words, 100 * float(np.mean(apart)), "%", 5.0)
        still = weigh_static(moving_postures(samples, 10)).payload()
        for kind, payload in (("with", runs[name]), ("without", still)):
            force = detrend(contact_force(payload, samples).external[:, :3], axis=0)
            rms = float(np.sqrt((force**2).sum(axis=1).mean()))
            words = f"real, {name}: residual force less a linear drift, {kind} dynamics"
            yield Figure(f"{name}_{kind}", words, rms, "N")
    one = runs["run1"].body
    three = runs["run3"].body
    words = f"real, run1 {one.mass:.3f} kg and run3 {three.mass:.3f} kg: mass apart by"
    yield Figure("panda_mass", words, 100 * abs(one.mass / three.mass - 1), "%", 5.0)
    apart = 1e3 * float(np.linalg.norm(one.com - three.com))
    yield Figure("panda_com", "real, run1 and run3: CoM apart by", apart, "mm", 5.0)


def panda(name: str) -> WrenchSamples:
    return WrenchSamples.from_imu(panda_recording(name), cutoff_hz=5.0)


def panda_recording(name: str) -> WristRecording:
    columns = {
        "wrench": ["wrench"],
        "quaternion": ["quat_wxyz_RlinkT"],
        "acceleration": ["acc_nograv"],
        "angular_velocity": ["gyro_raw"],
    }
    description = SensorDescription(
        WristSensor(convention="sensor_on_load"),
        None,
        columns,
        {"angular_velocity": 57.3},
        rate_hz=1000.0,
        quaternion_order="wxyz",
        quaternion_of="sensor_from_base",
    )
    return description.recording(DATA / f"ft_panda/{name}.npz")


def step_time() -> Iterator[Figure]:
    rng = np.random.default_rng(0)
    recursion = RecursiveRestricted(NOISE)
    state = recursion.init(LOAD.vector)
    x = rng.normal(size=(5000, 12))
    wrench = rng.normal(size=(5000, 6))
    covariance = 1e-3 * np.eye(12)
    times = []
    for k in range(5000):
        began = time.perf_counter()
        state = recursion.step(state, x[k], covariance, wrench[k])
        times.append(time.perf_counter() - began)
    words = "recursive step, 10 parameters, 6 rows, regressor and noise included: median"
    yield Figure("step", words, 1e6 * statistics.median(times), "us", 40.0)


def online_rows(seed: int) -> tuple[list[tuple[float, np.ndarray, np.ndarray]], float]:
    """Postures at rest, then the excitation: time, joints and wrench; when the motion begins."""
    rng = np.random.default_rng(9000 + seed)
    drift = rng.normal(size=6) * [10, 10, 20, 1, 1, 1]
    rows = []
    start_s = 0.0
    for truth in (motion(seed % MOTIONS).postures, excitation(seed)):
        recording = measured(truth, drift, rng)
        times = (recording.t + start_s).tolist()
        rows += zip(times, recording.q, recording.wrench, strict=True)
        began_s = start_s
        start_s = start_s + float(recording.t[-1]) + 1.0
    return rows, began_s


def online() -> Iterator[Figure]:
    """Row by row at 250 Hz: the time of a row, the accuracy, the coverage of intervals."""
    times = []
    covered = []
    early = []
    errors = []
    sizes = []
    for seed in range(0, SEEDS, 4):
        rows, began_s = online_rows(seed)
        first = (np.array(part) for part in zip(*rows[:250], strict=True))
        path = WristPath.calibrated(*first, SENSOR, robot=arm())
        estimator = WristTracker(path.noise, SENSOR)
        state = estimator.init()
        of_path = path.init()
        due_s = 2.0
        for row in rows:
            before = time.thread_time()
            of_path, ready = path.step(of_path, *row)
            for sample in ready:
                state = estimator.step(state, sample)
            times.append(time.thread_time() - before)
            if row[0] >= due_s:
                due_s += 2.0
                found = estimator.estimate(state, physical=False)
                known = np.isfinite(found.std)
                inside = (
                    np.abs(found.unconstrained.vector - LOAD.vector)[known]
                    < 1.96 * found.std[known]
                )
                (covered if row.t > began_s + 5 else early).extend(inside.tolist())
        sizes.append(len(json.dumps(state.to_dict())))
        errors.append(estimator.estimate(state, physical=False).unconstrained.vector - LOAD.vector)
    words = "online, a row of joints and wrench to an updated estimate, processor time:"
    yield Figure("online_median", f"{words} median", 1e6 * statistics.median(times), "us", 400.0)
    yield Figure(
        "online_99", f"{words} 99th percentile", 1e3 * float(np.percentile(times, 99)), "ms", 2.0
    )
    yield Figure("online_state", "online, saved state", max(sizes) / 1e3, "kB", 400.0)
    for name, row in ROW.items():
        what = f"online, 15 rests and 10 s of motion: error of {name} / the paper's"
        yield Figure(
            f"live_{name}", what, median(np.array(errors)[:, row]), "SI", 1.0, TABLE_2[name]
        )
    for name, what, inside in (
        ("early", "before 5 s of motion", early),
        ("late", "after", covered),
    ):
        share = 100 * float(np.mean(inside))
        text = f"online, {what}: 95 % intervals cover (92 is the least)"
        yield Figure(f"live_coverage_{name}", text, 100 - share, "% outside", 8.0)


def figures() -> Iterator[Figure]:
    yield from step_time()
    yield from online()
    yield from real()
    yield from table_2()
    yield from contact()
    yield from strong_noise()
