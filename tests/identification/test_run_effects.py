"""Runs whose friction differs: links common to all, friction of each run its own."""

import numpy as np
import pytest

from steelyard.identification import DynamicModel, identify, solved_again
from steelyard.identification._problem import Rows
from steelyard.identification._run_effects import with_run_effects
from steelyard.recording import Samples
from steelyard.robot import DriveModel, load_robot
from steelyard.trajectory import FourierTrajectory

RUNS = 4
FRICTION = np.array([2, 3])  # of five unknowns
SPREAD = np.array([0.3, 0.1])
THETA = np.array([1.0, -2.0, 3.0, 0.5, 0.8])
NOISE = np.array([0.2, 0.05])


def slow(rng, count, columns):
    """Columns as slow as a motion, (count, columns)."""
    t = np.arange(count) / count
    phases = rng.uniform(0, 2 * np.pi, columns)
    return np.sin(2 * np.pi * np.outer(t, 1 + np.arange(columns)) + phases)


def draw(rng, count=400):
    """Rows of runs with two joints, and the mean of the runs' true unknowns."""
    rows = []
    true = []
    for _ in range(RUNS):
        own = THETA.copy()
        own[FRICTION] += SPREAD * rng.normal(size=2)
        Y = np.stack([slow(rng, count, 5) for _ in NOISE], axis=1)
        tau = Y @ own + NOISE * rng.normal(size=(count, 2))
        usable = np.ones((count, 2), bool)
        usable[:7, 1] = False
        rows.append(Rows(Y, tau, usable))
        true.append(own)
    return rows, np.mean(true, axis=0)


def fitted(rows):
    nothing = np.zeros((0, 6))
    return with_run_effects(rows, nothing, FRICTION, SPREAD, np.ones((RUNS, 2)))


def test_it_is_the_least_squares_solution_with_unknown_friction_of_each_run(rng):
    """All unknowns at once: five common ones, two of each run with their prior."""
    rows, _ = draw(rng)
    found = fitted(rows)
    blocks = []
    for r, part in enumerate(rows):
        for j in range(2):
            used = part.usable[:, j]
            own = np.zeros((used.sum(), 2 * RUNS))
            own[:, 2 * r : 2 * r + 2] = part.Y[used, j][:, FRICTION]
            whole = np.column_stack([part.Y[used, j], own, part.tau[used, j]])
            blocks.append(whole / found.noise[r, j])
    prior = np.zeros((2 * RUNS, 5 + 2 * RUNS + 1))
    prior[:, 5:-1] = np.diag(np.tile(1 / SPREAD, RUNS))
    stacked = np.vstack([*blocks, prior])
    x = np.linalg.lstsq(stacked[:, :-1], stacked[:, -1], rcond=None)[0]
    mean = x[:5].copy()
    mean[FRICTION] += x[5:].reshape(RUNS, 2).mean(axis=0)
    np.testing.assert_allclose(found.value, mean, rtol=1e-4)
    np.testing.assert_allclose(found.noise, np.tile(NOISE, (RUNS, 1)), rtol=0.15)


def test_the_covariance_is_that_of_its_errors(rng):
    """Errors of 150 draws over their standard deviations have a mean square of one."""
    squares = []
    inflation = []
    for _ in range(150):
        rows, truth = draw(rng)
        found = fitted(rows)
        squares.append((found.value - truth) ** 2 / np.diag(found.covariance))
        inflation.append(found.inflation)
    np.testing.assert_allclose(np.mean(squares, axis=0), 1.0, atol=0.3)
    assert np.mean(inflation) == pytest.approx(1.0, abs=0.2)  # friction does not look like noise


# --- an identified arm

ROBOT = load_robot("ur10").with_drive(DriveModel(np.zeros(6)))
FC = np.array([8.0, 9.0, 6.0, 1.5, 1.5, 1.0])


def run(seed, *, spread):
    """A run of an arm whose Coulomb friction is drawn anew; its noise is white."""
    rng = np.random.default_rng(seed)
    series = FourierTrajectory.random(
        [0, -1.2, 1.0, 0, 0, 0],
        reach=[1.0] * 6,
        speed=[1.0] * 6,
        period_s=10.0,
        harmonics=6,
        seed=seed,
    )
    q, v, a = series.at(np.arange(0, 10.0, 0.02))
    coulomb = FC * (1 + spread * rng.normal(size=6))
    tau = ROBOT.inverse_dynamics(q, v, a) + coulomb * np.sign(v) + 0.5 * FC * v
    tau += 0.01 * FC * rng.normal(size=q.shape)
    return Samples(q, v, a, tau, 50.0, ROBOT.joint_names, "measured")


@pytest.fixture(scope="module")
def model():
    return identify(ROBOT, [run(seed, spread=0.1) for seed in range(10, 13)], friction="linear")


def test_links_do_not_become_uncertain_by_friction_that_differs(model):
    same = identify(ROBOT, [run(seed, spread=0.0) for seed in range(10, 13)], friction="linear")
    links = model.estimate.parameters.links
    assert np.median(model.estimate.std[links] / same.estimate.std[links]) < 1.5
    np.testing.assert_allclose(model.estimate.noise, 0.01 * FC, rtol=0.2)
    truth = (model.basis.K @ ROBOT.parameters)[links[: len(model.basis)]]
    z = (model.estimate.value[links] - truth) / model.estimate.std[links]
    assert np.sqrt(np.mean(z**2)) == pytest.approx(1.0, abs=0.35)


def test_such_a_model_comes_back_from_its_file(model, tmp_path):
    """Its noise is far below the residuals of its mean friction: no sign of an edited file."""
    model.save(tmp_path / "model.json")
    again = DynamicModel.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.estimate.noise, model.estimate.noise)


def test_solved_again_with_the_same_unknowns_it_is_the_same(model):
    """One friction for all runs would move the links by many standard deviations."""
    again = solved_again(model).estimate
    moved = (again.value - model.estimate.value) / model.estimate.std
    assert np.abs(moved).max() < 0.3
    np.testing.assert_allclose(again.std, model.estimate.std, rtol=0.3)
