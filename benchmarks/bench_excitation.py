"""Excitation design: how informative, how quick, and whether a limit was ever broken.

Every design is checked again here, by code of its own: a denser grid, Pinocchio for torque and
frames, and closed formulas for the rest. Times include compilation; each timed design runs in a
fresh process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

import numpy as np
from figure import Figure

from steelyard.errors import SteelyardError
from steelyard.excitation import (
    ConditionNumber,
    Design,
    DesignLimits,
    DesignSettings,
    DOptimal,
    Liu2025,
    Objective,
    OrientationWorkspace,
    PayloadOptimal,
    Surroundings,
    design,
)
from steelyard.robot import JointLimits, RobotModel, load_robot
from steelyard.robot._geometry import Body
from steelyard.trajectory import FourierTrajectory

NOISE = [
    1.3102,
    2.5186,
    1.1437,
    0.3914,
    0.2793,
    0.3325,
]  # xu2024 Table VIII, nonlinear, without payload [Nm]
RANDOM_DESIGNS = 200
ARMS = ("ur10", "ur10e", "panda", "tx60", "kr60ha", "lwr4")

TIMED = """
import json, sys
import numpy as np
from steelyard import _saved
from steelyard.excitation import *
from steelyard.robot import JointLimits, load_robot
from steelyard.trajectory import FourierTrajectory
case = sys.argv[1]
if case == "ur10e":
    arm = load_robot("ur10e")
    own = arm.limits
    bounds = JointLimits(own.q_min, own.q_max, own.v_max, np.full(6, 4.0), np.full(6, np.inf))
    limits = DesignLimits(bounds)
    objective = ConditionNumber(drive=False)
    found = design(arm, harmonics=8, period_s=24.0, objective=objective, limits=limits)
else:
    arm = load_robot("ur10")
    limits = DesignLimits.envelope(FourierTrajectory.load("xu2024"))
    objective = ConditionNumber() if case == "ur10" else PayloadOptimal(json.loads(sys.argv[2]))
    period = 3.0 if case == "short" else 10.0
    found = design(arm, period_s=period, objective=objective, limits=limits, start=arm.home)
print(json.dumps(_saved.plain(found.to_dict())))
"""


def timed(case: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", TIMED, case, json.dumps(NOISE)],
        check=True,
        capture_output=True,
        text=True,
    )
    return dict(json.loads(done.stdout))


def figures() -> Iterator[Figure]:
    arm = load_robot("ur10")
    published = FourierTrajectory.load("xu2024")
    limits = DesignLimits.envelope(published)
    found = timed("ur10")
    before = ConditionNumber().evaluate(arm, published, limits=limits)
    words = "ur10, xu2024's envelope: condition number beside the published motion's"
    yield Figure("ur10_condition", words, float(found["value"]), "", goal=0.55, reference=before)
    yield Figure("ur10_s", "its time, compilation included", float(found["seconds"]), "s", goal=30)
    found = timed("ur10e")
    words = "ur10e, 36 rigid columns, 24 s, 4 rad/s^2: condition number (peer: 14.99)"
    yield Figure("ur10e_condition", words, float(found["value"]), "", goal=8.4)
    yield Figure(
        "ur10e_s", "its time, compilation included (peer: 675 s)", float(found["seconds"]), "s"
    )
    found = timed("payload")
    before = PayloadOptimal(NOISE).evaluate(arm, published, limits=limits)
    words = "ur10, payload design: mean standard deviation beside the published motion's"
    yield Figure("payload_std", words, float(found["value"]), "", goal=0.55, reference=before)
    yield from short_motion(timed("short"))
    yield from papers()
    yield from random_designs()


def short_motion(found: dict[str, object]) -> Iterator[Figure]:
    std = dict(found["std"])
    words = "a 3 s payload design weighs to (1 std, white torque noise of xu2024)"
    yield Figure("short_mass", words, 1e3 * std["m"], "g")
    moment = float(np.linalg.norm([std[x] for x in ("mx", "my", "mz")]))
    yield Figure("short_moment", "  its first moment to", 1e3 * moment, "g m")
    inertia = float(np.max([std[x] for x in ("Ixx", "Iyy", "Izz")]))
    yield Figure(
        "short_inertia", "  its moments of inertia about the flange to", 1e3 * inertia, "g m^2"
    )


def papers() -> Iterator[Figure]:
    """ding2019 Table II on the TX60; liu2025's wrist motion in a workspace on the KR60HA."""
    tx60 = load_robot("tx60")
    limits = DesignLimits(
        tx60.limits,
        height=(0.2, np.inf),
        linear_speed=np.full(3, 2.0),
        angular_speed=np.full(3, 60.0),
    )
    found = design(tx60, limits=limits)
    yield Figure(
        "tx60_violation",
        "tx60, all limits of ding2019 Table II: broken by",
        worst(tx60, limits, found),
        "",
        0,
    )
    yield Figure("tx60_condition", "  its condition number", found.condition_number, "")
    kr60 = load_robot("kr60ha")
    half = np.radians(40.0)
    home = np.array([0.0, -np.pi / 2, np.pi / 2, 0.0, np.pi / 4, 0.0])
    R = kr60.forward_kinematics(home)[:3, :3]
    own = kr60.limits
    joints = JointLimits(own.q_min, own.q_max, own.v_max, np.full(6, 6.0), own.tau_max)
    limits = DesignLimits(joints, workspace=OrientationWorkspace.around(R, half))
    for name, objective in (("liu2025", Liu2025()), ("liu2025 with weight", Liu2025(gravity=True))):
        found = design(kr60, objective=objective, limits=limits, joints=[3, 4, 5])
        words = f"kr60ha, joints 4-6, every axis within 40 degrees, {name}: broken by"
        yield Figure(f"kr60ha_violation_{name}", words, worst(kr60, limits, found), "", 0)
        yield Figure(f"kr60ha_condition_{name}", "  its condition number (of C'C)", found.value, "")


def random_designs() -> Iterator[Figure]:
    began = time.perf_counter()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        by_arm = sorted(
            range(RANDOM_DESIGNS), key=lambda seed: seed % len(ARMS)
        )  # compiled once for each arm
        results = list(pool.map(random_design, by_arm, chunksize=RANDOM_DESIGNS // len(ARMS)))
    broken = [0.0, *(x for x in results if x is not None)]
    returned = len(broken) - 1
    refused = results.count(None)
    words = (
        f"{returned} of {RANDOM_DESIGNS} random designs returned ({refused} refused): limits"
        " broken by"
    )
    yield Figure("random_violation", words, max(broken), "", goal=0)
    yield Figure("random_s", "  time for each", (time.perf_counter() - began) / RANDOM_DESIGNS, "s")


def random_design(seed: int) -> float | None:
    """By how much one random design breaks its worst limit; None where it was refused."""
    arm = arm_named(ARMS[seed % len(ARMS)])
    limits, request = random_request(arm, np.random.default_rng([2024, seed]))
    settings = DesignSettings(starts=1, seed=seed, effort=0.04, workers=1)
    try:
        found = design(arm, limits=limits, settings=settings, **request)
    except SteelyardError as error:
        if os.environ.get("STEELYARD_BENCH_TALK"):
            print(seed, arm.name, error, flush=True)
        return None
    return worst(arm, limits, found)


@cache
def arm_named(name: str) -> RobotModel:
    return load_robot(name)


def random_request(
    arm: RobotModel, rng: np.random.Generator
) -> tuple[DesignLimits, dict[str, object]]:
    """Random limits and objective."""
    own = arm.limits
    n = arm.n
    v_max = np.minimum(own.v_max, 4.0) * rng.uniform(0.2, 1.0, n)
    kind = rng.choice([0, 0, 0, 1, 2, 3, 3, 4])
    if kind == 4:
        torque = own.tau_max
    else:
        torque = np.full(n, np.inf)
    joints = JointLimits(own.q_min, own.q_max, v_max, rng.uniform(1.0, 8.0, n), torque)
    height = (-np.inf, np.inf)
    speed = np.full(3, np.inf)
    workspace = None
    surroundings = None
    if kind == 1:
        height = (float(rng.uniform(-0.3, 0.3)), np.inf)
        speed = rng.uniform(0.5, 2.0, 3)
    elif kind == 2:
        posture = np.clip(arm.home + 0.3, own.q_min + 0.1, own.q_max - 0.1)
        R = arm.forward_kinematics(posture)[:3, :3]
        workspace = OrientationWorkspace.around(R, rng.uniform(0.3, 1.2))
    elif kind == 3:
        surroundings = Surroundings(
            (Body.half_space("floor", (0, 0, -0.2), (0, 0, 1)),), radius=0.05
        )
    limits = DesignLimits(
        joints,
        form=str(rng.choice(["exact", "amplitude"])),  # type: ignore[arg-type]
        height=height,
        linear_speed=speed,
        workspace=workspace,
        surroundings=surroundings,
    )
    objectives: list[Objective] = [ConditionNumber(), DOptimal(), PayloadOptimal(), Liu2025()]
    request = {
        "objective": objectives[rng.integers(4)],
        "harmonics": int(rng.integers(2, 6)),
        "period_s": float(rng.uniform(3.0, 15.0)),
    }
    return limits, request


def worst(arm: RobotModel, limits: DesignLimits, found: Design) -> float:
    """By how much the worst limit is broken, as a share of it or in its unit; 0 where all hold."""
    trajectory = found.trajectory
    joints = limits.joints
    w = 2 * np.pi / trajectory.period_s * np.arange(1, trajectory.harmonics + 1)
    t = np.linspace(0, trajectory.period_s, round(1500 * trajectory.period_s))
    phase = t[:, None] * w
    a = trajectory.sine
    b = trajectory.cosine
    q = trajectory.offset + np.sin(phase) @ (a / w).T - np.cos(phase) @ (b / w).T
    v = np.cos(phase) @ a.T + np.sin(phase) @ b.T
    acceleration = np.cos(phase) @ (b * w).T - np.sin(phase) @ (a * w).T
    over = [(q - joints.q_max).max(), (joints.q_min - q).max()]
    over += [(np.abs(v) - joints.v_max).max(), (np.abs(acceleration) - joints.a_max).max()]
    if limits.form == "amplitude":
        size = np.hypot(a, b)
        over += [(trajectory.offset + (size / w).sum(1) - joints.q_max).max()]
        over += [(joints.q_min - trajectory.offset + (size / w).sum(1)).max()]
        over += [(size.sum(1) - joints.v_max).max(), ((size * w).sum(1) - joints.a_max).max()]
    if np.isfinite(joints.tau_max).any():
        tau = arm.regressor(q, v, acceleration) @ arm.parameters
        over.append((np.abs(tau) / joints.tau_max - 1).max())
    over += frame_violations(arm, limits, q, v)
    return float(max(0.0, *over))


def frame_violations(
    arm: RobotModel, limits: DesignLimits, q: np.ndarray, v: np.ndarray
) -> list[float]:
    T = arm.forward_kinematics(q)
    over = [limits.height[0] - T[:, 2, 3].min(), T[:, 2, 3].max() - limits.height[1]]
    if np.isfinite(limits.linear_speed).any():
        h = 1e-5
        step = (arm.forward_kinematics(q + h * v) - arm.forward_kinematics(q - h * v)) / (2 * h)
        over.append((np.abs(step[:, :3, 3]) - limits.linear_speed).max() - 1e-6)
    for part in limits.workspace.regions if limits.workspace else ():
        x = T[:, :3, "xyz".index(part.axis)]
        over.append((np.arccos(np.clip(x @ part.direction, -1, 1)) - part.half_angle).max())
    if limits.surroundings is not None:
        for k in range(arm.n):
            ends = arm.forward_kinematics(q, arm.link_names[k])[:, 2, 3]
            over.append(-0.2 - (ends.min() - 0.05))
    return [float(x) for x in over]
