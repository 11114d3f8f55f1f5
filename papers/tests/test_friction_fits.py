"""Scatter of models of repeated runs (ding2019), and residuals of friction laws (xu2024)."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.errors import InvalidSamples
from steelyard.identification import identify
from steelyard.recording import Samples
from steelyard.robot import load_robot
from steelyard.trajectory import FourierTrajectory
from steelyard_papers.ding2019.fits import scatter
from steelyard_papers.xu2024.simulated import friction_fit

PLANAR = load_robot("planar2r")
FRICTION = {"coulomb": [4.0, 2.5], "viscous": [3.0, 1.5], "offset": [0.3, -0.2]}


def made(exponent, seed, noise):
    """Samples of an arm with power-law friction."""
    robot = replace(PLANAR, drive=replace(PLANAR.drive, exponent=exponent, **FRICTION))
    series = FourierTrajectory.random(
        [0.3, -0.4], reach=[1.5, 1.5], speed=[1.5, 2.0], period_s=20.0, harmonics=8, seed=seed
    )
    q, v, a = series.at(np.arange(0, 20, 0.01))
    tau = robot.torque(q, v, a) + noise * np.random.default_rng(seed).normal(size=q.shape)
    return Samples(q, v, a, tau, 100.0, robot.joint_names, "measured")


def test_repeated_runs_scatter_as_their_standard_deviations_say():
    models = [
        identify(PLANAR, made([1.0, 1.0], seed, 0.05), friction="linear") for seed in range(12)
    ]
    mean, std = scatter(models)
    assert np.median(std / np.mean([m.estimate.std for m in models], axis=0)) == pytest.approx(
        1, abs=0.35
    )
    np.testing.assert_allclose(mean, np.mean([m.estimate.value for m in models], axis=0))
    with pytest.raises(InvalidSamples, match="two or more models with the same parameters"):
        scatter(models[:1])


def test_the_rmse_of_the_true_law_is_the_noise_and_that_of_another_is_larger():
    samples = made([0.6, 0.8], 1, 0.01)
    rmse = {
        law: friction_fit(identify(PLANAR, samples, friction=law), samples).rmse
        for law in ("power", "linear")
    }
    np.testing.assert_allclose(rmse["power"], 0.01, rtol=0.1)
    assert (rmse["linear"] > 2 * rmse["power"]).all()
