"""The runs of `bench_gates.py`: empty and loaded arms in worlds with various friction.

MuJoCo or Pinocchio alone makes the motion and its torques. Friction that no law of steelyard
contains is added to the torques of both, since the feedback of an arm would supply just that:

    asymmetric  Coulomb and viscous friction differ by direction, by 15 and 25 %
    heating     viscous friction falls by a third while the arm warms up, over all runs
    memory      Stribeck friction whose speed is delayed by 40 ms, so that it forms a loop
    ripple      Coulomb friction varies by 15 % over the position, 9 to 23 times per turn
    efficiency  a gear loses 4 % of the torque that it carries, and up to 4 % more of large ones
    all         a third to a half of each of them

What an interval of the mass claims to hold is drawn, too: gravity of the place (0.15 %, the robot
file has the nominal one), and friction of the day (3 % of Coulomb, 6 % of viscous friction of each
joint in each run; between runs of weeks, 1 to 4 and 1.5 to 10 % were seen on a real arm).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from gates_arms import Arm, arm
from scipy.signal import lfilter

from steelyard.inertia import InertialParameters
from steelyard.recording import Recording
from steelyard.robot import RobotModel
from steelyard.simulation import SensorModel, simulate
from steelyard.trajectory import FourierTrajectory
from steelyard.wrist._regressor import features, wrench_regressor

RUN_S = 10.0
RATE_HZ = 100.0
WARM_UP_S = 20.0
ENCODER_STEP = 1e-5  # [rad]
GRAVITY = 9.81
GRAVITY_STD = 0.0015  # relative, over the Earth
DAILY_COULOMB_STD = 0.03  # relative
DAILY_VISCOUS_STD = 0.06  # relative
LOST_SHARE = 0.2  # of a load that falls off half way
LOSS = "a fifth of the load lost half way"
WRENCH_STD = np.array([0.3, 0.3, 0.3, 0.01, 0.01, 0.01])  # [N, Nm] for a load of 2.5 kg

WORLDS = {
    "law": {},
    "asymmetric": {"asymmetric": 1.0},
    "heating": {"heating": 1.0},
    "memory": {"memory": 1.0},
    "ripple": {"ripple": 1.0},
    "efficiency": {"efficiency": 1.0},
    "all": {
        "asymmetric": 0.5,
        "heating": 0.5,
        "memory": 0.5,
        "ripple": 0.33,
        "efficiency": 0.33,
    },
}
"""Worlds by name: how strong each kind of friction is that no law contains."""


@dataclass(frozen=True)
class Place:
    """Where runs come from: an arm, a world, an engine, and a seed.

    Attributes:
        arm: name of the arm
        world: name of the friction
        engine: 'mujoco' or 'pinocchio'
        seed: of motion and noise
        empty_runs: number of runs of the empty arm
    """

    arm: str
    world: str
    engine: str
    seed: int
    empty_runs: int

    @property
    def key(self) -> str:
        return f"{self.arm}.{self.world}.{self.engine}.{self.seed}.{self.empty_runs}"


@dataclass(frozen=True, eq=False)
class Run:
    """One simulated run.

    Attributes:
        recording: of positions and torques
        v: true velocity, (N, n)
        a: true acceleration, (N, n)
        wrench: of the load on a sensor at the flange, (N, 6), with noise
    """

    recording: Recording
    v: np.ndarray
    a: np.ndarray
    wrench: np.ndarray


def motion(robot: RobotModel, seed: int) -> FourierTrajectory:
    """A random motion as `steelyard simulate` makes it, around a posture of its own."""
    rng = np.random.default_rng(seed)
    low = np.maximum(robot.limits.q_min, -2.5)
    high = np.minimum(robot.limits.q_max, 2.5)
    middle = (low + high) / 2
    centre = np.clip(robot.home + rng.uniform(-0.6, 0.6, robot.n), middle - 1.2, middle + 1.2)
    centre = np.clip(centre, low + 0.5, high - 0.5)
    space = np.minimum(high - centre, centre - low)
    return FourierTrajectory.random(
        centre,
        reach=np.clip(0.8 * space, 0.05, 1.0),
        speed=np.minimum(0.6 * robot.limits.v_max, 1.5),
        period_s=RUN_S,
        harmonics=5,
        seed=seed,
    )


def runs(place: Place) -> tuple[list[Run], Run]:
    """The empty runs and the loaded one of a place."""
    made = []
    for k in range(place.empty_runs + 1):
        loaded = k == place.empty_runs
        made.append(_run(place, 1000 * place.seed + k, k * (RUN_S + 5.0), loaded=loaded))
    return made[:-1], made[-1]


def another_loaded_run(place: Place, k: int) -> Run:
    """One more loaded run of a place, on another motion, by Pinocchio alone.

    Args:
        place: arm, world and seed
        k: number of the run
    """
    quick = replace(place, engine="pinocchio")
    start_s = (place.empty_runs + k) * (RUN_S + 5.0)
    return _run(quick, 1000 * place.seed + 100 + k, start_s, loaded=True)


def _run(place: Place, seed: int, start_s: float, *, loaded: bool) -> Run:
    there = arm(place.arm)
    robot = _of_today(there.robot, place.seed, seed)
    body = there.payload if loaded else None
    path = motion(robot, seed)
    rng = np.random.default_rng(seed)
    if place.engine == "mujoco":
        sensors = SensorModel(torque_std=there.torque_std, encoder_step=ENCODER_STEP)
        simulated = simulate(robot, path, payload=body, sensors=sensors, rate_hz=RATE_HZ, seed=seed)
        truth = simulated.truth
        q, v, a = truth.q, truth.v, truth.a
        tau = np.array(simulated.recording.tau)
    else:
        q, v, a = path.at(np.arange(int(RUN_S * RATE_HZ)) / RATE_HZ)
        carried = robot if body is None else robot.with_payload(body)
        tau = carried.torque(q, v, a) + there.torque_std * rng.normal(size=q.shape)
    tau = tau + _unknown_friction(place.world, there, q, v, a, start_s, body, place.seed)
    t = np.arange(len(q)) / RATE_HZ
    measured = np.round(q / ENCODER_STEP) * ENCODER_STEP
    recording = Recording(t=t, q=measured, joint_names=robot.joint_names, tau=tau)
    return Run(recording, v, a, _wrench(there.robot, body, q, v, a, rng))


def _of_today(robot: RobotModel, place_seed: int, run_seed: int) -> RobotModel:
    """The arm in the gravity of its place, with friction of a run."""
    local = 1.0 + GRAVITY_STD * np.random.default_rng(7000 + place_seed).normal()
    rng = np.random.default_rng(8_000_000 + run_seed)
    drive = robot.drive
    coulomb = drive.coulomb * (1.0 + DAILY_COULOMB_STD * rng.normal(size=robot.n))
    viscous = drive.viscous * (1.0 + DAILY_VISCOUS_STD * rng.normal(size=robot.n))
    today = robot.with_drive(replace(drive, coulomb=coulomb, viscous=viscous))
    return today.with_gravity(local * robot.gravity_base)


def _unknown_friction(
    world: str,
    there: Arm,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    start_s: float,
    body: InertialParameters | None,
    seed: int,
) -> np.ndarray:
    """Torque of friction that no law contains, (N, n); its details depend on the seed."""
    strength = WORLDS[world]
    drive = there.robot.drive
    rng = np.random.default_rng(900 + seed)
    n = there.robot.n
    signs = rng.choice([-1.0, 1.0], n)
    phases = rng.uniform(0, 2 * np.pi, n)
    cycles = rng.integers(9, 24, n)
    direction = np.tanh(v / 0.02)
    speed_torque = drive.viscous * v
    t = start_s + np.arange(len(q))[:, None] / RATE_HZ
    carried = there.robot if body is None else there.robot.with_payload(body)
    load = carried.inverse_dynamics(q, v, a)
    size = np.abs(load) / np.maximum(np.abs(load).max(axis=0), 1e-9)
    parts = {
        "asymmetric": signs
        * (0.15 * drive.coulomb * np.abs(direction) + 0.25 * np.abs(speed_torque)),
        "heating": -speed_torque / 3 * (1 - np.exp(-t / WARM_UP_S)),
        "memory": 0.4 * drive.coulomb * np.exp(-((_delayed(v, 0.04) / 0.15) ** 2)) * direction,
        "ripple": 0.15 * drive.coulomb * np.sin(cycles * q + phases) * direction,
        "efficiency": (0.04 + 0.04 * size**0.5) * np.abs(load) * direction,
    }
    return sum((strength.get(name, 0.0) * part for name, part in parts.items()), np.zeros_like(q))


def _delayed(x: np.ndarray, time_s: float) -> np.ndarray:
    """A signal behind a low-pass filter of first order."""
    keep = np.exp(-1 / (RATE_HZ * time_s))
    return np.asarray(lfilter([1 - keep], [1, -keep], x, axis=0, zi=keep * x[:1])[0])


def _wrench(
    robot: RobotModel,
    body: InertialParameters | None,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """The wrench of a load on a sensor at the flange, with noise and a zero drift, (N, 6)."""
    if body is None:
        return np.zeros((len(q), 6))
    size = body.mass / 2.5
    drift = size * np.array([5.0, -3.0, 9.0, 0.2, -0.3, 0.1])
    noise = size * WRENCH_STD * rng.normal(size=(len(q), 6))
    return np.asarray(_load_on_sensor(robot, body, q, v, a) + drift + noise)


def _load_on_sensor(
    robot: RobotModel, body: InertialParameters, q: np.ndarray, v: np.ndarray, a: np.ndarray
) -> np.ndarray:
    """The wrench of a load on a sensor at the flange, (N, 6)."""
    turn = robot.forward_kinematics(q)[:, :3, :3]
    moved = robot.frame_motion(q, v, a)
    g = np.einsum("nji,j->ni", turn, robot.gravity_base)
    x = features(g, moved.linear_acceleration, moved.angular_velocity, moved.angular_acceleration)
    return np.asarray(wrench_regressor(x) @ body.vector)


# --- corruptions of a loaded run


def _scaled(factor: float, there: Arm, run: Run) -> Recording:
    return replace(run.recording, tau=factor * run.recording.tau)


def _one_scaled(there: Arm, run: Run) -> Recording:
    factor = np.ones(run.recording.n)
    factor[1] = 0.93
    return replace(run.recording, tau=factor * run.recording.tau)


def _pushed(newtons: float, first_s: float, last_s: float, there: Arm, run: Run) -> Recording:
    """A hand that pushes the flange down; the force is that for a load of 2.5 kg."""
    recording = run.recording
    q = np.asarray(recording.q)
    still = np.zeros_like(q)
    weight = there.robot.payload_regressor(q, still, still)[:, :, 0] / GRAVITY
    force = newtons * there.payload.mass / 2.5
    acting = (recording.t >= first_s) & (recording.t < last_s)
    return replace(recording, tau=recording.tau + force * weight * acting[:, None])


def _tilted(degrees: float, there: Arm, run: Run) -> Recording:
    robot = there.robot.with_payload(there.payload)
    q = np.asarray(run.recording.q)
    down = there.robot.gravity_base
    across = np.cross(down, [0.0, 0.6, 0.8])
    across *= np.linalg.norm(down) / np.linalg.norm(across)
    angle = np.radians(degrees)
    leaning = robot.with_gravity(np.cos(angle) * down + np.sin(angle) * across)
    change = leaning.gravity_torque(q) - robot.gravity_torque(q)
    return replace(run.recording, tau=run.recording.tau + change)


def _faster(factor: float, there: Arm, run: Run) -> Recording:
    return replace(run.recording, t=factor * run.recording.t)


def _load_lost(there: Arm, run: Run) -> Recording:
    """A fifth of the load falls off half way."""
    recording = run.recording
    load = there.robot.payload_regressor(recording.q, run.v, run.a) @ there.payload.vector
    later = (recording.t > 0.5 * RUN_S)[:, None]
    return replace(recording, tau=recording.tau - LOST_SHARE * load * later)


def _rows_lost(there: Arm, run: Run) -> Recording:
    """A fifth of the rows is lost in the second half, and the clock counts those that are left."""
    recording = run.recording
    rng = np.random.default_rng(5)
    kept = (rng.random(len(recording)) >= 0.4) | (recording.t < 0.5 * RUN_S)
    return replace(
        recording, t=recording.t[: kept.sum()], q=recording.q[kept], tau=recording.tau[kept]
    )


def _swinging(there: Arm, run: Run) -> Recording:
    """The centre of the load swings by its own distance, 1.2 times in a second."""
    recording = run.recording
    Y = there.robot.payload_regressor(recording.q, run.v, run.a)[:, :, 1:4]
    swing = there.payload.vector[1:4] * np.sin(2 * np.pi * 1.2 * recording.t)[:, None]
    return replace(recording, tau=recording.tau + np.einsum("njk,nk->nj", Y, swing))


def _drifting(there: Arm, run: Run) -> Recording:
    recording = run.recording
    rms = np.sqrt(np.mean(recording.tau**2, axis=0))
    return replace(recording, tau=recording.tau + 0.05 * rms * (recording.t / RUN_S)[:, None])


def _truncated_torques(there: Arm, run: Run) -> Recording:
    """Integers of a unit that is a hundredth of the largest torque, such as whole newton metres."""
    step = 0.01 * np.abs(run.recording.tau).max()
    return replace(run.recording, tau=np.trunc(run.recording.tau / step) * step)


def _joints_swapped(there: Arm, run: Run) -> Recording:
    order = [0, 2, 1, *range(3, run.recording.n)]
    return replace(run.recording, tau=run.recording.tau[:, order])


def _sign_flipped(there: Arm, run: Run) -> Recording:
    signs = np.ones(run.recording.n)
    signs[3] = -1.0
    return replace(run.recording, tau=signs * run.recording.tau)


def _clean(there: Arm, run: Run) -> Recording:
    return run.recording


Corruption = Callable[[Arm, Run], Recording]

LOADED: dict[str, Corruption] = {
    "clean": _clean,
    "loaded torques x1.05": partial(_scaled, 1.05),
    "loaded torques x0.95": partial(_scaled, 0.95),
    "loaded torques x1.02": partial(_scaled, 1.02),
    "loaded torques of joint 2 x0.93": _one_scaled,
    "hand of 5 N": partial(_pushed, 5.0, 0.0, 99.0),
    "hand of 10 N": partial(_pushed, 10.0, 0.0, 99.0),
    "hand of 10 N for 3 s": partial(_pushed, 10.0, 4.0, 7.0),
    "base tilted 3 degrees, loaded": partial(_tilted, 3.0),
    "clock of the loaded run x1.1": partial(_faster, 1.1),
    LOSS: _load_lost,
    "a fifth of the rows lost half way": _rows_lost,
    "load swings": _swinging,
    "offsets drift by 5 %": _drifting,
    "torques truncated": _truncated_torques,
    "torques of joints 2 and 3 swapped": _joints_swapped,
    "sign of joint 4 flipped": _sign_flipped,
}
"""Changes of the loaded run; 'clean' is none."""

TRACKED = ("clean", "loaded torques x1.05", "hand of 10 N", LOSS)
"""Those that are weighed sample by sample, too."""


def _heavier(there: Arm, run: Run) -> Recording:
    more = 0.05 * there.robot.inverse_dynamics(run.recording.q, run.v, run.a)
    return replace(run.recording, tau=run.recording.tau + more)


EMPTY: dict[str, Corruption] = {"empty arm 5 % heavier": _heavier}
"""Changes of the empty runs."""


# --- wrist sensors


def _unchanged(wrench: np.ndarray, mass: float) -> np.ndarray:
    return wrench


def _swapped(first: int, second: int, wrench: np.ndarray, mass: float) -> np.ndarray:
    order = list(range(6))
    order[first], order[second] = second, first
    return wrench[:, order]


def _units(force: float, torque: float, wrench: np.ndarray, mass: float) -> np.ndarray:
    return np.concatenate([force * wrench[:, :3], torque * wrench[:, 3:]], axis=1)


def _stronger_axis(wrench: np.ndarray, mass: float) -> np.ndarray:
    return np.asarray(wrench * [1.1, 1, 1, 1, 1, 1])


def _truncated(wrench: np.ndarray, mass: float) -> np.ndarray:
    step = mass / 2.5 * np.array([2.0, 2.0, 2.0, 0.1, 0.1, 0.1])
    return np.asarray(np.trunc(wrench / step) * step)


WRENCHES: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "clean": _unchanged,
    "fx and fy swapped": partial(_swapped, 0, 1),
    "tx and tz swapped": partial(_swapped, 3, 5),
    "torques in Nmm": partial(_units, 1.0, 1e3),
    "forces in mN": partial(_units, 1e3, 1.0),
    "fx x1.1": _stronger_axis,
    "readings truncated": _truncated,
}
"""Changes of the readings of a wrist sensor; the clock is changed in addition."""
WRIST_CLOCK = "clock of the wrist run x1.1"


def wrist_recording(there: Arm, run: Run, kind: str) -> Recording:
    """The recording of a wrist sensor with a corruption."""
    recording = run.recording
    t = recording.t * (1.1 if kind == WRIST_CLOCK else 1.0)
    change = WRENCHES.get(kind, _unchanged)
    wrench = run.wrench
    if kind == LOSS:
        wrench = _wrench_with_loss(there, run)
    return Recording(
        t,
        recording.q,
        recording.joint_names,
        wrench=change(wrench, there.payload.mass),
        wrench_frame="flange",
        wrench_convention="load_on_sensor",
    )


def _wrench_with_loss(there: Arm, run: Run) -> np.ndarray:
    """The readings if a fifth of the load falls off half way."""
    later = (run.recording.t > 0.5 * RUN_S)[:, None]
    load = _load_on_sensor(there.robot, there.payload, run.recording.q, run.v, run.a)
    return np.asarray(run.wrench - LOST_SHARE * load * later)
