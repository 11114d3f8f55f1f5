"""Payload changes at rest: those detected within a second of motion, and false ones.

A UR10e in MuJoCo (that of `bench_trust`) moves for 8 s, rests for 2 s, in which the payload
changes, and moves again; the stream goes on during the rest, or pauses. Two motions, eight changes,
friction laws that fit and that do not. Then it moves and rests with the same payload: changes that
are seen are false.
Usage: python benchmarks/run.py streams; MINUTES=60 for an hour without a change.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from bench_trust import LAWS, RATE_HZ, arm, identified
from figure import Figure

import steelyard as sy
from steelyard.inertia import InertialParameters
from steelyard.recording import Recording
from steelyard.simulation import SensorModel, simulate
from steelyard.trajectory import FourierTrajectory

MINUTES = float(os.environ.get("MINUTES", "3"))
MOVING_S = 8.0
REST_S = 2.0
HARMONICS = (3, 5)
ARM = arm("ur10e")
COM = (0.03, -0.02, 0.08)
SHAPE = 0.01 * np.diag([0.3, 0.35, 0.25])
CHANGES = ((0, 2.5), (2.5, 0), (0, 1.25), (1.25, 0), (1.25, 2.5), (2.5, 1.25), (0, 0.6), (2.5, 0.6))
"""From one mass to another, [kg]."""


@dataclass(frozen=True)
class Stop:
    """A motion, a rest, and the motion again."""

    series: FourierTrajectory
    duration_s: float = 2 * MOVING_S + REST_S

    def at(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        resting = np.where(t < MOVING_S + REST_S, 0.0, t - MOVING_S - REST_S)
        return self.series.at(np.where(t < MOVING_S, t, resting))


def motion(which: int) -> Stop:
    k = np.arange(1, HARMONICS[which] + 1)
    sine, cosine = np.random.default_rng(100 + which).normal(size=(2, ARM.n, len(k)))
    sine -= sine.mean(axis=1, keepdims=True)  # no speed at the ends
    cosine -= (cosine @ k / (k @ k))[:, None] * k  # no acceleration
    plain = FourierTrajectory(sine, cosine, np.zeros(ARM.n), MOVING_S)
    scale = 1 / np.abs(plain.at(np.linspace(0, MOVING_S, 400))[0]).max(axis=0)[:, None]
    return Stop(
        FourierTrajectory(scale * sine, scale * cosine, np.clip(ARM.home, -1.2, 1.2), MOVING_S)
    )


@lru_cache(maxsize=16)
def recorded(which: int, mass: float) -> Recording:
    if mass:
        body = InertialParameters.from_com(mass, COM, mass * SHAPE, ARM.flange)
    else:
        body = None
    return simulate(
        ARM, motion(which), payload=body, sensors=SensorModel(torque_std=0.0), rate_hz=RATE_HZ
    ).recording


def sent(which: int, before: float, after: float, *, pause: bool, seed: int = 0) -> Recording:
    """A run in which the payload changes in the middle of the rest."""
    first = recorded(which, before)
    second = recorded(which, after)
    late = first.t - MOVING_S - REST_S / 2
    share = np.clip(late / 0.6 + 0.5, 0, 1)[:, None]
    noise = 0.03 * (ARM.drive.coulomb + ARM.drive.viscous)
    tau = np.where(late[:, None] >= 0, second.tau, first.tau)
    tau = tau + noise * np.random.default_rng(seed).normal(size=tau.shape)
    kept = (np.abs(late) > REST_S / 2 - 0.3) | (not pause)
    q = (1 - share) * first.q + share * second.q
    return Recording(t=first.t[kept], q=q[kept], tau=tau[kept], joint_names=ARM.joint_names)


def figures() -> Iterator[Figure]:
    seen = cells = 0
    for law in LAWS:
        model = identified("ur10e", 0, "torques", law)
        for which in range(len(HARMONICS)):
            for before, after in CHANGES:
                for pause in (False, True):
                    run = sent(which, before, after, pause=pause)
                    history = sy.track(run, model=model, accuracy=0.05).state.history
                    cells += 1
                    if len(history) == 1:
                        late_s = history[0].end_s - MOVING_S - REST_S
                    else:
                        late_s = np.inf
                    seen += late_s < 1.0
    words = f"changes at rest, {cells}: not seen within 1 s of motion"
    yield Figure("changes_missed", words, cells - seen, "", goal=0)
    false = 0
    minutes = 0.0
    while minutes < MINUTES:
        for law in LAWS:
            run = sent(int(minutes) % 2, 2.5, 2.5, pause=False, seed=1 + round(minutes * 60))
            model = identified("ur10e", 0, "torques", law)
            false += len(sy.track(run, model=model, accuracy=0.05).state.history)
            minutes += run.duration_s / 60
    yield Figure(
        "false_changes", f"changes that were none, in {minutes:.0f} min", false, "", goal=0
    )
