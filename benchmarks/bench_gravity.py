"""The direction of gravity: offers for turned bases, and false offers for bases as stated.

The arms and the worlds of friction of `bench_gates.py`, by Pinocchio alone. The masses in the robot
file are wrong by 20 %. A base is as stated, upside down, on a side, or tilted by 15 to 60 degrees.

Usage: python benchmarks/run.py gravity   (GRAVITY_SEEDS=30-33 chooses others)

Thresholds were chosen on seeds 20 to 23.
"""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import gates_runs as made
import numpy as np
from figure import Figure
from gates_arms import NAMES, Arm, arm

from steelyard.identification import DynamicModel, identify
from steelyard.inertia import InertialParameters
from steelyard.recording import Recording
from steelyard.robot import RobotModel
from steelyard.signals import prepare

FIRST, _, LAST = os.environ.get("GRAVITY_SEEDS", "30").partition("-")
SEEDS = range(int(FIRST), int(LAST or FIRST) + 1)
AS_STATED = "as stated"
MASS_ERROR = 0.2  # of the links in the robot file, relative standard deviation
TILTS = np.radians([15.0, 60.0])
MAX_ERROR = np.radians(10.0)


def directions(stated: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Gravity in the base frame for each way to mount the base, (3,) [m/s^2]."""
    size = np.linalg.norm(stated)
    across = rng.normal(size=2) @ np.linalg.svd(stated[None])[2][1:]
    across *= size / np.linalg.norm(across)
    tilt = rng.uniform(*TILTS)
    return {
        AS_STATED: stated,
        "upside down": -stated,
        "on a side": across,
        "tilted": np.cos(tilt) * stated + np.sin(tilt) * across,
    }


def run(there: Arm, gravity: np.ndarray, world: str, seed: int) -> Recording:
    """A run of the empty arm in a gravity."""
    mounted = replace(there, robot=there.robot.with_gravity(gravity))
    t = np.arange(int(made.RUN_S * made.RATE_HZ)) / made.RATE_HZ
    q, v, a = made.motion(mounted.robot, seed).at(t)
    noise = there.torque_std * np.random.default_rng(seed).normal(size=q.shape)
    unknown = made._unknown_friction(world, mounted, q, v, a, 0.0, None, seed)
    tau = mounted.robot.torque(q, v, a) + noise + unknown
    q = np.round(q / made.ENCODER_STEP) * made.ENCODER_STEP
    return Recording(t=t, q=q, joint_names=mounted.robot.joint_names, tau=tau)


def with_wrong_masses(robot: RobotModel, rng: np.random.Generator) -> RobotModel:
    """The arm as an inaccurate file describes it."""
    bodies = []
    for body, error in zip(robot.links, rng.normal(size=robot.n), strict=True):
        k = np.exp(MASS_ERROR * error)
        vector = k * np.asarray(body.vector)
        bodies.append(InertialParameters.from_vector(vector, body.frame))
    return robot.with_links(bodies)


def offered(model: DynamicModel) -> np.ndarray | None:
    """The gravity vector that a verdict offers, (3,) [m/s^2]."""
    found = re.search(r"`gravity_base=(\(.*?\))`", str(model.verdict))
    return None if found is None else np.array(ast.literal_eval(found[1]))


def outcome(model: DynamicModel, gravity: np.ndarray) -> str:
    """What a model says about its gravity, compared with the true one."""
    offer = offered(model)
    if offer is None:
        return "no doubt" if model.verdict.ok else "doubt without an offer"
    cosine = offer @ gravity / np.linalg.norm(offer) / np.linalg.norm(gravity)
    return "right offer" if np.arccos(min(cosine, 1.0)) < MAX_ERROR else "wrong offer"


def outcomes() -> Iterator[tuple[str, str]]:
    """How each base was mounted, and what became of it."""
    worlds = list(made.WORLDS)
    for seed in SEEDS:
        for k, name in enumerate(NAMES):
            rng = np.random.default_rng([seed, k])
            there = arm(name)
            stated = with_wrong_masses(there.robot, rng)
            for mounting, gravity in directions(stated.gravity_base, rng).items():
                world = worlds[(seed + k) % len(worlds)]
                samples = prepare(run(there, gravity, world, 1000 * seed + k))
                yield mounting, outcome(identify(stated, samples, friction="smooth"), gravity)


def figures() -> Iterator[Figure]:
    """Counts over arms, directions and seeds."""
    found = Counter(outcomes())
    same = {what: count for (mounting, what), count in found.items() if mounting == AS_STATED}
    turned: Counter[str] = Counter()
    for (mounting, what), count in found.items():
        if mounting != AS_STATED:
            turned[what] += count
    false = same.get("right offer", 0) + same.get("wrong offer", 0)
    runs = sum(same.values())
    yield Figure("as_stated", f"{runs} bases as stated: offers", false, "", goal=0.02 * runs)
    for what in ("right offer", "wrong offer", "doubt without an offer", "no doubt"):
        words = f"{sum(turned.values())} turned bases: {what}"
        goal = 0.0 if what == "no doubt" else None
        yield Figure(what.replace(" ", "_"), words, turned[what], "", goal=goal)
