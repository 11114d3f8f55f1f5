"""The direction of gravity: offers for turned bases, and false offers for upright ones.

Usage: python benchmarks/run.py gravity   (GRAVITY_ARMS=ur5e,fr3 and GRAVITY_SEEDS=2 choose others)
"""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
from bench_jolts import Motion
from figure import Figure

from steelyard.identification import DynamicModel, identify
from steelyard.robot import load_robot
from steelyard.signals import prepare
from steelyard.simulation import simulate

ARMS = os.environ.get("GRAVITY_ARMS", "ur10e,fr3,iiwa14,xarm6,gen3,gofa5").split(",")
SEEDS = range(500, 500 + int(os.environ.get("GRAVITY_SEEDS", "1")))
UPRIGHT = np.array([0.0, 0.0, -9.81])
TURNED = [
    np.array([0.0, 9.81, 0.0]),
    np.array([0.0, 0.0, 9.81]),
    9.81 * np.array([0.5, 0.2, -0.8426]),
]
MAX_ERROR = np.radians(5.0)


def offered(model: DynamicModel) -> np.ndarray | None:
    """The gravity vector that a verdict offers."""
    found = re.search(r"`gravity_base=(\(.*?\))`", str(model.verdict))
    return None if found is None else np.array(ast.literal_eval(found[1]))


def outcome(name: str, gravity: np.ndarray, seed: int) -> str:
    """What becomes of a recording in a gravity if an upright arm is stated."""
    stated = load_robot(name).with_gravity(UPRIGHT)
    turned = stated.with_gravity(gravity)
    recording = simulate(turned, Motion(turned, seed, stops=False), seed=seed).recording
    model = identify(stated, prepare(recording), friction="smooth")
    offer = offered(model)
    if offer is None:
        return "no doubt" if model.verdict.ok else "doubt without an offer"
    cosine = offer @ gravity / np.linalg.norm(offer) / np.linalg.norm(gravity)
    return "right offer" if np.arccos(min(cosine, 1.0)) < MAX_ERROR else "wrong offer"


def figures() -> Iterator[Figure]:
    """Counts over arms, directions and seeds."""
    upright = Counter(outcome(name, UPRIGHT, seed) for name in ARMS for seed in SEEDS)
    turned = Counter(outcome(name, g, seed) for name in ARMS for g in TURNED for seed in SEEDS)
    runs = sum(upright.values())
    false = upright["right offer"] + upright["wrong offer"]
    yield Figure("upright", f"{runs} upright arms: offers", false, "", goal=0.02 * runs)
    for what in ("right offer", "wrong offer", "doubt without an offer", "no doubt"):
        words = f"{sum(turned.values())} turned bases: {what}"
        goal = 0.0 if what == "no doubt" else None
        yield Figure(what.replace(" ", "_"), words, turned[what], "", goal=goal)
