"""Every estimator of the dynamic stage passes one suite; recursive equals batch."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import eigh

from steelyard.errors import InvalidSamples
from steelyard.inertia import InertialParameters
from steelyard.wrist._regression import WrenchRegression, long_run_sum
from steelyard.wrist._regressor import wrench_regressor
from steelyard.wrist.estimators import ESTIMATORS, RecursiveRestricted, RecursiveTotalLeastSquares

BODY = InertialParameters.from_com(8.0, [0.03, -0.05, 0.12], np.diag([0.11, 0.08, 0.06]))
SW = np.diag([0.2, 0.25, 0.3, 0.02, 0.025, 0.03]) ** 2
every = pytest.mark.parametrize("name", ESTIMATORS)


def problem(rng, *, N=800, noise=1.0, motion_noise=0.0, drift=None):
    """A random smooth motion, with noise of the wrench and of the motion."""
    t = np.linspace(0, 10, N)
    phases = rng.uniform(0, 6, (12, 3))
    x = np.array(
        [sum(np.sin((k + 1) * 0.9 * t + p) for k, p in enumerate(row)) for row in phases]
    ).T
    x[:, :3] *= 6.0
    Sx = np.zeros((12, 12))
    Sx[:6, :6] = np.diag([0.3, 0.4, 0.35, 0.9, 1.1, 1.0]) ** 2 * motion_noise**2
    wrench = wrench_regressor(x) @ BODY.vector
    if drift is not None:
        wrench = wrench + drift
    exact = np.zeros((N, 6, 0)) if drift is None else np.tile(np.eye(6), (N, 1, 1))
    p = 10 + exact.shape[2]
    noisy_x = x + rng.multivariate_normal(np.zeros(12), Sx, N) if motion_noise else x
    e = noise * rng.multivariate_normal(np.zeros(6), SW, N)
    return WrenchRegression(
        noisy_x, np.tile(Sx, (N, 1, 1)), exact, wrench + e, SW, np.zeros(p), np.zeros((p, p))
    )


@every
def test_exact_rows_give_the_exact_body(name, rng):
    fit = ESTIMATORS[name].estimate(problem(rng, noise=1e-6))
    np.testing.assert_allclose(fit.value, BODY.vector, atol=2e-5)
    assert fit.residual.shape == (800, 6)


@every
def test_exact_columns_are_estimated_beside_the_body(name, rng):
    drift = np.array([1.0, -2.0, 0.5, 0.1, -0.2, 0.3])
    fit = ESTIMATORS[name].estimate(problem(rng, noise=0.1, drift=drift))
    np.testing.assert_allclose(fit.value[10:], drift, atol=0.05)
    np.testing.assert_allclose(fit.value[:10], BODY.vector, atol=0.02)


@every
def test_clean_motion_is_covered_by_the_intervals(name):
    inside = []
    for seed in range(12):
        fit = ESTIMATORS[name].estimate(problem(np.random.default_rng(seed), N=400))
        inside.append(np.abs(fit.value - BODY.vector) < 1.96 * np.sqrt(np.diag(fit.covariance)))
        assert fit.covariance.shape == (10, 10)
        np.testing.assert_allclose(fit.covariance, fit.covariance.T)
    assert 0.85 < np.mean(inside) <= 1.0


@pytest.mark.parametrize("name", ["restricted", "rrtls", "ml"])
def test_noise_of_the_motion_does_not_bias_restricted_estimators(name):
    errors = {"ls": [], name: []}
    for seed in range(10):
        rows = problem(np.random.default_rng(seed), motion_noise=1.0)
        for which, list_ in errors.items():
            list_.append(ESTIMATORS[which].estimate(rows).value - BODY.vector)
    plain, ours = (np.abs(np.mean(errors[which], axis=0)) for which in ("ls", name))
    assert plain[[4, 6, 9]].max() > 0.05  # attenuated
    assert ours[[4, 6, 9]].max() < 0.2 * plain[[4, 6, 9]].max()
    assert np.linalg.norm(ours[1:4]) < 0.3 * np.linalg.norm(plain[1:4])


def test_maximum_likelihood_covers_under_strong_noise_of_the_motion():
    inside = []
    for seed in range(12):
        fit = ESTIMATORS["ml"].estimate(problem(np.random.default_rng(seed), motion_noise=1.0))
        inside.append(np.abs(fit.value - BODY.vector) < 1.96 * np.sqrt(np.diag(fit.covariance)))
    assert 0.88 < np.mean(inside) <= 1.0


@pytest.mark.parametrize("name", ["wls", "restricted", "rrtls", "ml"])
def test_a_prior_counts(name, rng):
    rows = problem(rng, N=200)
    sure = 1e11 * np.eye(10)
    wrong = BODY.vector + 0.02
    fit = ESTIMATORS[name].estimate(replace(rows, prior_value=wrong, prior_information=sure))
    np.testing.assert_allclose(fit.value, wrong, atol=0.002)
    vague = 1e-6 * np.eye(10)
    fit = ESTIMATORS[name].estimate(replace(rows, prior_value=wrong, prior_information=vague))
    np.testing.assert_allclose(fit.value, BODY.vector, atol=0.05)


def test_recursive_total_equals_batch_at_every_step(rng):
    rows = problem(rng, N=60)
    recursion = RecursiveTotalLeastSquares()
    state = recursion.init(10)
    Z = rows.augmented
    for k, piece in enumerate(Z):
        state = recursion.step(state, piece)
        if k in (9, 30, 59):
            v = np.linalg.svd(Z[: k + 1].reshape(-1, 11))[2][-1]
            np.testing.assert_allclose(recursion.value(state), -v[:-1] / v[-1], rtol=1e-6)
    batch = ESTIMATORS["tls"].estimate(rows)
    recursive = ESTIMATORS["rtls"].estimate(rows)
    np.testing.assert_allclose(recursive.value, batch.value, rtol=1e-8)
    size = np.abs(batch.covariance).max()
    np.testing.assert_allclose(recursive.covariance, batch.covariance, rtol=1e-6, atol=1e-9 * size)


@pytest.mark.parametrize("forgetting", [1.0, 0.998])
def test_recursive_restricted_equals_the_generalised_eigenproblem(forgetting, rng):
    rows = problem(rng, motion_noise=0.7, N=1500)
    recursion = RecursiveRestricted(np.sqrt(np.diag(SW)), forgetting)
    state = recursion.init(np.append(5.0, np.zeros(9)))
    for k in range(len(rows)):
        state = recursion.step(state, rows.x[k], rows.x_covariance[k], rows.wrench[k])
    M, P, weights = recursion.forms(state)
    Z, age = rows.augmented, forgetting ** np.arange(len(rows) - 1, -1, -1)
    W = np.diag(weights)
    batch = np.einsum("n,nia,ij,njb->ab", age, Z, W, Z, optimize=True)
    np.testing.assert_allclose(M, batch, rtol=1e-6, atol=1e-6 * np.abs(batch).max())
    noise = rows.regressor_noise(W) * age.mean()
    np.testing.assert_allclose(P[:10, :10], noise, rtol=1e-9, atol=1e-12)
    values, vectors = eigh(P, batch)  # P v = v / mu: the last has the smallest ratio mu
    v = vectors[:, -1]
    np.testing.assert_allclose(recursion.value(state), -v[:-1] / v[-1], atol=2e-3)
    assert 1 / values[-1] == pytest.approx(1.0, abs=0.1)


def test_forgetting_follows_a_load_that_changes(rng):
    rows = problem(rng, N=3000, motion_noise=0.2)
    heavier = BODY.vector * 1.5
    late = wrench_regressor(rows.x) @ heavier
    wrench = np.where(np.arange(3000)[:, None] < 1500, rows.wrench, late)
    values = {}
    for forgetting in (1.0, 0.995):
        recursion = RecursiveRestricted(np.sqrt(np.diag(SW)), forgetting)
        state = recursion.init(BODY.vector)
        for k in range(3000):
            state = recursion.step(state, rows.x[k], rows.x_covariance[k], wrench[k])
        values[forgetting] = recursion.value(state)[0]
    assert values[0.995] == pytest.approx(12.0, abs=0.2)
    assert abs(values[1.0] - 12.0) > 0.5


def test_the_recursion_refuses_nonsense():
    with pytest.raises(InvalidSamples, match=r"forgetting must lie in \(0, 1\], got 1.2"):
        RecursiveRestricted(np.ones(6), 1.2)
    with pytest.raises(InvalidSamples, match="wrench_std must be six positive numbers"):
        RecursiveRestricted(np.zeros(6))


def test_noise_of_the_wrench_that_no_sheet_tells_is_found(rng):
    rows = problem(rng, noise=3.0, motion_noise=0.05)
    found = np.sqrt(np.diag(rows.calibrated_covariance(ESTIMATORS["wls"].estimate(rows).value)))
    np.testing.assert_allclose(found, 3 * np.sqrt(np.diag(SW)), rtol=0.15)
    rows = problem(rng, noise=1.0, motion_noise=1.0)  # here the motion explains nearly everything
    found = np.diag(rows.calibrated_covariance(ESTIMATORS["wls"].estimate(rows).value))
    assert (found >= np.diag(SW)).all()
    assert (found[3:] < 10 * np.diag(SW)[3:]).all()


def test_long_run_covariance_knows_of_correlation(rng):
    white = rng.normal(size=(20_000, 1))
    mean = np.convolve(white[:, 0], np.ones(10) / 10, mode="valid")[:, None]
    assert long_run_sum(white)[0, 0] / 20_000 == pytest.approx(1.0, rel=0.15)
    assert long_run_sum(mean)[0, 0] / 20_000 == pytest.approx(
        1.0, rel=0.2
    )  # variance 0.1, ten times correlated
    second = np.diff(white, 2, axis=0)
    assert long_run_sum(second)[0, 0] / 20_000 < 0.5 * second.var()
