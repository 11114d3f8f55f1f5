"""Friction that differs from run to run: its spread is found and saved."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.identification import DynamicModel, identify
from steelyard.recording import Samples
from steelyard.robot import load_robot
from steelyard.trajectory import FourierTrajectory

ROBOT = load_robot("ur10")
FC = np.array([8.0, 9.0, 6.0, 1.5, 1.5, 1.0])
FV = 0.8 * FC
NOISE = 0.05 * FC


def run(seed, *, spread=0.05, seconds=10.0):
    """A run whose friction is drawn anew; its noise is white."""
    rng = np.random.default_rng(seed)
    series = FourierTrajectory.random(
        [0, -1.2, 1.0, 0, 0, 0],
        reach=[1.0] * 6,
        speed=[1.0] * 6,
        period_s=seconds,
        harmonics=6,
        seed=seed,
    )
    q, v, a = series.at(np.arange(0, seconds, 0.02))
    coulomb = FC * (1 + spread * rng.normal(size=6))
    viscous = FV * (1 + 2 * spread * rng.normal(size=6))
    offset = 0.3 * spread * FC * rng.normal(size=6)
    tau = ROBOT.inverse_dynamics(q, v, a) + coulomb * np.sign(v) + viscous * v + offset
    tau += NOISE * rng.normal(size=q.shape)
    return Samples(q, v, a, tau, 50.0, ROBOT.joint_names, "measured")


def relative(model, symbol, sizes):
    names = [f"{symbol}{j}" for j in range(1, 7)]
    places = [model.estimate.names.index(name) for name in names]
    return float(np.mean(model.run_spread[places] / sizes))


@pytest.mark.parametrize("spread", [0.02, 0.1])
def test_the_spread_of_friction_is_found(spread):
    runs = [run(seed, spread=spread) for seed in range(6)]
    model = identify(ROBOT, runs, friction="linear")
    assert relative(model, "Fc", FC) == pytest.approx(spread, rel=0.35)
    assert relative(model, "Fv", FV) == pytest.approx(2 * spread, rel=0.35)
    assert relative(model, "B", FC) == pytest.approx(0.3 * spread, rel=0.5)
    parameters = model.estimate.parameters
    assert not model.run_spread[parameters.links | parameters.rotors].any()


def test_the_sentence_on_the_spread_leaves_joints_without_friction_out():
    model = identify(ROBOT, run(3), friction="linear")
    assert "friction varies by 10 % (Fc), 20 % (Fv)" in model.run_spread_sentence
    of_friction = model.estimate.parameters.friction
    value = np.where(of_friction, 1e-9 * model.estimate.value, model.estimate.value)
    smooth = replace(model, estimate=replace(model.estimate, value=value))
    assert smooth.run_spread_sentence == (
        "There is too little friction to say how much it varies between runs."
    )


def test_one_run_takes_the_spread_of_experience():
    model = identify(ROBOT, run(0), friction="linear")
    assert relative(model, "Fc", FC) == pytest.approx(0.1, rel=0.2)
    assert relative(model, "Fv", FV) == pytest.approx(0.2, rel=0.3)
    again = DynamicModel.from_dict(model.to_dict())
    np.testing.assert_array_equal(again.run_spread, model.run_spread)


def test_the_covariance_of_another_run_holds_one_more_draw():
    model = identify(ROBOT, [run(seed) for seed in range(4)], friction="linear")
    added = model.covariance_of_other_runs - model.estimate.covariance
    np.testing.assert_allclose(added, np.diag(1.25 * model.run_spread**2), atol=1e-15)
    unknown = replace(model, run_spread=None).covariance_of_other_runs
    np.testing.assert_array_equal(np.isinf(np.diag(unknown)), model.estimate.parameters.daily)
