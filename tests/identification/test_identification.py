import re
from dataclasses import replace

import numpy as np
import pytest

from steelyard._units import NORMAL_95, rounded
from steelyard.errors import InvalidSamples
from steelyard.identification import RegressionFactor, identify
from steelyard.identification._covariance import correlated_covariance
from steelyard.identification._least_squares import (
    _solve_symmetric,
    half_inverse,
    solve_grams,
    solve_weighted,
)
from steelyard.identification._problem import Rows
from steelyard.recording import Recording, Samples
from steelyard.robot import ParameterBasis, load_robot
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import DoubtKind

NOISE = np.array([1.31, 2.52, 1.14, 0.39, 0.28, 0.33])
"""Torque residuals of a UR10, xu2024 Table VIII, [Nm]."""


@pytest.fixture(scope="module")
def robot():
    return load_robot("ur10")


def made(robot, seed=0, rate_hz=125.0, noise=NOISE) -> Samples:
    """Torque = Y phi + noise along the published trajectory."""
    q, v, a = FourierTrajectory.load("xu2024").at(np.arange(0, 10, 1 / rate_hz))
    tau = robot.torque(q, v, a) + noise * np.random.default_rng(seed).normal(size=q.shape)
    return Samples(q, v, a, tau, rate_hz, robot.joint_names, "measured")


def random_rows(seed, N=40, n=3, p=5):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(N, n, p))
    Y[:, 2, :2] = 0  # the last joint does not feel the first links
    return Y, rng.normal(size=(N, n)), rng.random((N, n)) > 0.2


def gram(Y, tau, usable, weights):
    total = 0
    for j, w in enumerate(weights):
        block = w * np.column_stack([Y[:, j], tau[:, j]])[usable[:, j]]
        total = total + block.T @ block
    return total


def test_factor_holds_the_same_squares_as_all_rows():
    rows = random_rows(0)
    weights = np.array([1.0, 0.5, 3.0])
    R = RegressionFactor.empty(3, 5).add(*rows).weighted(weights)
    np.testing.assert_allclose(R.T @ R, gram(*rows, weights), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(R, np.triu(R))


def test_factor_in_pieces_and_merged_is_the_factor_of_all():
    Y, tau, usable = random_rows(1)
    whole = RegressionFactor.empty(3, 5).add(Y, tau, usable)
    first = RegressionFactor.empty(3, 5).add(Y[:7], tau[:7], usable[:7])
    second = RegressionFactor.empty(3, 5).add(Y[7:], tau[7:], usable[7:])
    np.testing.assert_array_equal(whole.rows, usable.sum(axis=0))
    for other in (first.add(Y[7:], tau[7:], usable[7:]), first.merge(second), second.merge(first)):
        np.testing.assert_array_equal(other.rows, whole.rows)
        for R, S in zip(other.R, whole.R, strict=True):
            np.testing.assert_allclose(R.T @ R, S.T @ S, rtol=1e-12, atol=1e-12)


def test_solution_is_numpys_least_squares_and_residuals_are_theirs():
    Y, tau, _ = random_rows(2)
    factor = RegressionFactor.empty(3, 5).add(Y, tau)
    solution = solve_weighted(factor)
    w = 1 / solution.noise
    rows, rhs = (w[None, :, None] * Y).reshape(-1, 5), (w * tau).reshape(-1)
    np.testing.assert_allclose(solution.value, np.linalg.lstsq(rows, rhs, rcond=None)[0], rtol=1e-9)
    np.testing.assert_allclose(solution.inverse, np.linalg.inv(rows.T @ rows), rtol=1e-9)
    residuals = ((tau - Y @ solution.value) ** 2).sum(axis=0)
    np.testing.assert_allclose(factor.squared_residuals(solution.value), residuals, rtol=1e-10)
    np.testing.assert_allclose(solution.noise**2, residuals / (40 - 5 / 3), rtol=1e-6)
    np.testing.assert_allclose(solution.weights, 1 / solution.noise, rtol=1e-9)


def test_weights_from_inner_products_settle_for_every_joint():
    """The noise of a joint without parameters is known at once, those of the others later."""
    Y, _, _ = random_rows(2)
    Y[:, 0] = 0.0
    rng = np.random.default_rng(3)
    tau = Y @ np.arange(5.0) + rng.normal(size=Y.shape[:2]) * [1.0, 1e-2, 1e-4]
    factor = RegressionFactor.empty(3, 5).add(Y, tau)
    grams = np.swapaxes(factor.R, 1, 2) @ factor.R
    found = solve_grams(grams, factor.rows, np.zeros((0, 6)))
    np.testing.assert_allclose(found.noise, solve_weighted(factor).noise, rtol=1e-3)


def one_joint(seed, N=4000, rho=0.9):
    """Rows of one joint with correlated noise around known parameters."""
    rng = np.random.default_rng(seed)
    x = np.zeros(N)
    for i in range(1, N):
        x[i] = rho * x[i - 1] + np.sqrt(1 - rho**2) * rng.normal()
    k = np.arange(N)
    Y = np.column_stack([np.sin(0.02 * k), np.sign(np.cos(0.05 * k)), np.ones(N), np.cos(0.9 * k)])
    return Rows(Y[:, None], (Y @ [1.0, -2.0, 3.0, 0.5] + x)[:, None], np.ones((N, 1), bool))


def covariances(rho, repetitions):
    """Estimates, their said deviations, the naive ones and the inflation, over many repetitions."""
    out = []
    for seed in range(repetitions):
        rows = one_joint(seed, rho=rho)
        solution = solve_weighted(RegressionFactor.empty(1, 4).add(rows.Y, rows.tau))
        spread, inflation = correlated_covariance([rows], solution)
        naive = np.sqrt(np.diag(solution.inverse))
        out.append((solution.value, np.sqrt(np.diag(spread)), naive, np.full(4, inflation[0])))
    return np.moveaxis(out, 1, 0)


def test_covariance_of_correlated_noise_is_the_scatter_over_many_repetitions():
    values, said, naive, inflation = covariances(0.9, 80)
    np.testing.assert_allclose(said.mean(axis=0), values.std(axis=0), rtol=0.2)
    assert (
        naive[0, 2] < 0.4 * said[:, 2].mean()
    )  # a slow column: the naive deviation is far too small
    assert naive[0, 3] > 1.5 * said[:, 3].mean()  # a fast column, where this noise has little power
    assert inflation.mean() == pytest.approx(19, rel=0.15)


def test_covariance_of_white_noise_is_the_ordinary_one():
    _, said, naive, inflation = covariances(0.0, 40)
    np.testing.assert_allclose((said**2).mean(axis=0), naive[0] ** 2, rtol=0.12)
    assert inflation.mean() == pytest.approx(1, abs=0.12)


@pytest.mark.thorough
def test_identified_parameters_lie_within_their_intervals(robot):
    truth = ParameterBasis.of(robot).K @ robot.parameters
    inside = []
    for seed in range(12):
        estimate = identify(robot, made(robot, seed)).estimate
        low, high = estimate.interval(0.95).T
        inside.append((low < truth) & (truth < high))
    assert 0.90 < np.mean(inside) < 0.99
    np.testing.assert_allclose(estimate.noise, NOISE, rtol=0.1)
    assert "all 58 parameters were excited" in estimate.status


def test_a_model_shows_itself(robot):
    model = identify(robot, made(robot))
    words = f"ur10, friction law '{model.law.name}'. All 58 parameters were excited"
    assert str(model).startswith(words)
    assert repr(model) == f"<DynamicModel: {model}>"
    assert repr(model.estimate) == f"<Estimate: 58 parameters. {model.verdict}>"
    samples, motion = made(robot), FourierTrajectory.load("xu2024")
    assert repr(samples) == f"<Samples: {len(samples)} at 125 Hz, 6 joints, measured motion>"
    assert repr(Recording(samples.t, samples.q)) == f"<Recording: {len(samples)} rows, 9.992 s, q>"
    assert repr(robot).startswith("<RobotModel: ur10, shoulder_pan_joint, ")
    assert repr(motion) == "<FourierTrajectory: 6 joints, 5 harmonics, 10 s>"
    shown = model._repr_html_()
    assert shown.count("<tr>") == 59
    value, half_width = rounded(model.estimate.value[6], NORMAL_95 * model.estimate.std[6])
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", shown.split("<tr>")[8])
    assert cells == ["shoulder_lift_joint", "mx2r", value, half_width, "kg m"]
    assert "All 58 parameters" in shown
    assert '<img alt="Friction against speed' in shown
    friction = model.plot()
    assert friction._repr_html_().startswith('<img alt="Friction against speed, law')
    band, curve = friction.plots[0].panels[2].curves
    found = dict(zip(model.estimate.names, model.estimate.value, strict=True))
    span = np.interp(1.0, curve.x, curve.y) - np.interp(-1.0, curve.x, curve.y)
    assert span == pytest.approx(2 * (found["Fc3"] + found["Fv3"]), rel=1e-3)
    assert (band.low < curve.y).all()
    assert (curve.y < band.high).all()


def test_without_noise_the_prediction_is_exact_on_another_motion(robot):
    model = identify(robot, made(robot, noise=np.zeros(6)))
    q, v, a = np.random.default_rng(7).normal(size=(3, 30, 6))
    np.testing.assert_allclose(model.torque(q, v, a), robot.torque(q, v, a), rtol=1e-6, atol=1e-6)


def test_more_recordings_narrow_the_intervals(robot):
    one = identify(robot, made(robot, 1)).estimate
    four = identify(robot, [made(robot, seed) for seed in range(4)]).estimate
    assert np.median(four.std / one.std) == pytest.approx(0.5, abs=0.06)


def test_a_joint_that_never_moves_is_bad_news_not_a_number(robot):
    samples = made(robot)
    still = np.ones((len(samples), 1)) * samples.q[:1, 5:]
    q, v, a = (
        np.column_stack([x[:, :5], fill])
        for x, fill in ((samples.q, still), (samples.v, 0 * still), (samples.a, 0 * still))
    )
    estimate = identify(robot, replace(samples, q=q, v=v, a=a)).estimate
    assert "says nothing about" in estimate.status
    assert "Fv6" in estimate.status
    assert np.isinf(estimate.std[list(estimate.names).index("Fv6")])


@pytest.mark.parametrize("gravity", [[0.0, 9.81, 0.0], [4.9, 0.0, -8.5]])
def test_gravity_from_elsewhere_is_doubted(robot, gravity):
    samples = made(robot.with_gravity(gravity))
    verdict = identify(robot, samples).verdict
    kinds = [doubt.kind for doubt in verdict.blocking]
    assert kinds == [DoubtKind.GRAVITY, DoubtKind.UNEXPLAINED_TORQUE]
    status = verdict.sentence
    assert "% of the torque of shoulder_pan_joint (" in status
    assert "stay unexplained; check the direction of gravity" in status
    mounted = identify(robot.with_gravity(gravity), samples).estimate.status
    assert re.fullmatch(r"all 60 parameters were excited \(condition number \S+\)", mounted)


def test_noise_beside_small_torques_is_no_reason_for_doubt(robot):
    loud = made(robot, noise=np.array([1.3, 2.5, 1.1, 0.4, 15.0, 15.0]))
    estimate = identify(robot, loud).estimate
    assert (estimate.noise[4:] > 0.8 * np.sqrt(np.mean(loud.tau[:, 4:] ** 2, axis=0))).all()
    assert estimate.verdict.ok


def test_negative_coulomb_friction_is_said_with_its_interval(robot):
    samples = made(robot)
    tau = np.array(samples.tau)
    tau[:, 4] -= 1.3 * robot.drive.coulomb[4] * np.sign(samples.v[:, 4])
    estimate = identify(robot, replace(samples, tau=tau)).estimate
    i = list(estimate.names).index("Fc5")
    assert estimate.value[i] < -0.2 * robot.drive.coulomb[4]
    words = f"Fc5 of wrist_2_joint ({estimate.value[i]:.3g} +- {1.96 * estimate.std[i]:.2g} Nm)"
    assert (
        f"Coulomb friction came out negative, which is impossible: {words}; the law holds"
        in estimate.status
    )
    assert "Coulomb" not in identify(robot, samples).estimate.status


def test_refusals(robot):
    samples = made(robot)
    with pytest.raises(InvalidSamples, match="no samples to identify from"):
        identify(robot, [])
    two = Samples(*(samples.q[:, :2],) * 4, 125.0, ("a", "b"), "measured")
    with pytest.raises(InvalidSamples, match="ur10 has 6 joints, the samples have 2: a, b"):
        identify(robot, two)
    with pytest.raises(InvalidSamples, match="some samples hold measured motion, others commanded"):
        identify(robot, [samples, replace(samples, kinematics="commanded")])


def test_a_diagonal_that_rounding_made_negative_is_a_direction_without_data(rng):
    Y = rng.normal(size=(20, 4))
    A = np.zeros((5, 5))
    A[:4, :4] = Y.T @ Y
    A[4, 4] = -1e-19
    b = np.append(rng.normal(size=4), 0.0)
    expected = np.append(np.linalg.solve(Y.T @ Y, b[:4]), 0.0)
    np.testing.assert_allclose(_solve_symmetric(A, b), expected, rtol=1e-12)
    half = half_inverse(A)
    np.testing.assert_allclose(half @ half.T @ b, expected, rtol=1e-12)
