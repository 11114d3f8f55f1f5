"""Regressor and base reduction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pinocchio as pin
from figure import Figure, alternating_medians_s, median_s

from steelyard.robot import ParameterBasis, load_robot


def figures() -> Iterator[Figure]:
    robot = load_robot("ur10")
    q, v, a = np.random.default_rng(0).normal(size=(3, 2500, 6))
    model = robot._pin
    data = model.createData()

    def bare_loop() -> None:
        for i in range(len(q)):
            pin.computeJointTorqueRegressor(model, data, q[i], v[i], a[i])

    ours, bare = alternating_medians_s(lambda: robot.regressor(q, v, a), bare_loop)
    yield Figure(
        "regressor",
        "regressor with friction, 2,500 samples, 6 joints / bare Pinocchio loop",
        1e3 * ours,
        "ms",
        goal=1.5,
        reference=1e3 * bare,
    )
    Y = robot.regressor(q, v, a)
    seconds = median_s(lambda: ParameterBasis.of_regressor(robot, Y))
    yield Figure(
        "base_reduction",
        "base reduction of that regressor (84 to 58 columns)",
        1e3 * seconds,
        "ms",
        goal=30,
    )
    seconds = median_s(lambda: ParameterBasis.of(robot))
    yield Figure("basis", "base parameters from the structure alone", 1e3 * seconds, "ms")
