"""Identification against a known truth: a UR10 in MuJoCo, 100 seeds, two kinds of noise."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
from figure import Figure
from scipy.signal import lfilter

from steelyard.identification import identify
from steelyard.robot import ParameterBasis, load_robot
from steelyard.signals import prepare
from steelyard.simulation import SensorModel, simulate
from steelyard.trajectory import FourierTrajectory

SEEDS = 100
NOISE = np.array([1.3102, 2.5186, 1.1437, 0.3914, 0.2793, 0.3325])  # xu2024 Table VIII, [Nm]
RUNS = 2


def z_scores(job: tuple[int, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors over standard deviations, errors of alpha and their deviations, for one seed."""
    seed, correlation_s = job
    robot = load_robot("ur10")
    rng = np.random.default_rng(seed)
    run = simulate(
        robot, FourierTrajectory.load("xu2024"), sensors=SensorModel(torque_std=0.0), seed=seed
    )
    if correlation_s:
        rho = np.exp(-1 / 125 / correlation_s)
    else:
        rho = 0.0
    parts = []
    for _ in range(RUNS):
        white = rng.normal(size=(len(run.truth) + 500, 6))
        noise = NOISE * lfilter([np.sqrt(1 - rho**2)], [1, -rho], white, axis=0)[500:]
        parts.append(prepare(replace(run.recording, current=None, tau=run.truth.tau + noise)))
    model = identify(robot, parts, friction="power")
    truth = ParameterBasis.of(robot).K @ robot.parameters
    z = (model.estimate.value - truth) / model.estimate.std
    return z, model.law.exponent - robot.drive.exponent, model.shape_std[0] * model.law.exponent


def figures() -> Iterator[Figure]:
    with ProcessPoolExecutor(2) as pool:
        for name, correlation_s in (("white", 0.0), ("correlated", 0.2)):
            found = list(pool.map(z_scores, [(seed, correlation_s) for seed in range(SEEDS)]))
            z = np.array([z for z, _, _ in found])
            covered = np.mean(np.abs(z) < 1.96)
            words = (
                f"{name} noise, {SEEDS} seeds: 95 % intervals cover {100 * covered:.1f} %; off"
                " 95 by"
            )
            yield Figure(f"coverage_{name}", words, abs(100 * covered - 95), "%", goal=3)
            beyond = 100 * np.mean(np.abs(z) > 3)
            yield Figure(
                f"beyond_3_{name}",
                f"{name} noise: parameters beyond 3 deviations",
                beyond,
                "%",
                goal=1,
            )
            if name == "white":
                error = np.array([error for _, error, _ in found])
                shown = np.mean([std for _, _, std in found], axis=0) < 0.015
                worst = np.sqrt(np.mean(error[:, shown] ** 2, axis=0)).max()
                words = (
                    f"alpha of the {shown.sum()} joints where friction shows it: worst RMS error"
                )
                yield Figure("alpha", words, worst, "", goal=0.03)
