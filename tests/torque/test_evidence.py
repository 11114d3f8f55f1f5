"""Causes other than a load: their probability, and what they do to the interval of a payload."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.identification import identify
from steelyard.identification._misfit import CauseMisfit, _tracked_square, misfit_of
from steelyard.identification._other_causes import CauseFit, Fitted
from steelyard.identification._problem import Rows
from steelyard.recording import Sample
from steelyard.robot import DriveModel, load_robot
from steelyard.torque import weigh
from steelyard.torque._evidence import Cause, probabilities, widening_share
from steelyard.torque.tracking import TorqueTracker
from steelyard.verdict import DoubtKind
from torque_runs import LOAD, moving

DRIVE = DriveModel(np.full(6, 0.5), coulomb=np.full(6, 5.0), viscous=np.full(6, 3.0))


def cause(e=0.03, std=0.01, freedom=7.0, prior_std=0.05, odds=1.0):
    response = np.linspace(2.0, -1.0, 10)[:, None]
    return Cause(
        "scale",
        np.array([e]),
        np.array([[std**2]]),
        freedom,
        np.array([[prior_std**2]]),
        response,
        odds,
    )


def two_columns(rng):
    A, B = rng.normal(size=(2, 2, 2))
    return Cause("force", rng.normal(size=2), A @ A.T, 5.0, B @ B.T, rng.normal(size=(10, 2)), 1.0)


def test_the_bayes_factor_is_the_ratio_of_two_densities(rng):
    from scipy.stats import multivariate_t  # slow to import

    one = two_columns(rng)
    wide = multivariate_t.logpdf(one.e, shape=one.covariance + one.prior, df=one.freedom)
    narrow = multivariate_t.logpdf(one.e, shape=one.covariance, df=one.freedom)
    assert one.log_bayes_factor == pytest.approx(wide - narrow)


def test_the_mean_square_is_that_of_draws_from_the_posterior(rng):
    one = two_columns(rng)
    precision = np.linalg.inv(one.covariance) + np.linalg.inv(one.prior)
    mean = np.linalg.solve(precision, np.linalg.solve(one.covariance, one.e))
    draws = rng.multivariate_normal(mean, np.linalg.inv(precision), size=200_000)
    moved = draws @ one.response.T
    np.testing.assert_allclose(one.shift, one.response @ mean)
    squares = moved.T @ moved / len(draws)
    np.testing.assert_allclose(one.mean_square, squares, atol=0.02 * np.abs(squares).max())


def test_probabilities_of_causes_that_exclude_each_other():
    causes = [cause(0.02, odds=0.2), cause(0.04)]
    shown = 0.05**2 / (0.05**2 + 0.01**2)
    odds = np.exp([one.log_bayes_factor for one in causes]) / (3 * shown + 1)  # three empty runs
    odds *= [0.2, 1.0]
    np.testing.assert_allclose(probabilities(causes, 3), odds / (1 + odds.sum()))
    assert probabilities([], 1).shape == (0,)


def test_more_empty_runs_make_a_cause_less_probable():
    assert probabilities([cause()], 6)[0] < probabilities([cause()], 1)[0]


def test_runs_that_do_not_show_a_cause_do_not_count_against_it():
    """Six runs that agree say nothing about a scale that they cannot determine."""
    unseen = cause(e=0.0, std=5.0)
    assert probabilities([unseen], 6)[0] == pytest.approx(probabilities([unseen], 0)[0], rel=1e-3)
    assert probabilities([unseen], 6)[0] == pytest.approx(0.5, rel=1e-3)


def test_misfit_widens_and_never_narrows():
    assert CauseMisfit(9.0, 4.0).widening == pytest.approx((4 + 36) / 8)
    assert CauseMisfit(0.1, 4.0).widening == 1.0
    assert CauseMisfit().widening == 1.0
    assert CauseMisfit(9.0, 4.0).tail_freedom == 8.0


def test_an_interval_holds_95_percent_of_the_mixture(rng):
    """An improbable cause hardly widens it, a probable one does: by draws from the mixture."""
    for probability in (0.02, 0.2):
        causes = [cause(e=0.06, std=0.02)]
        found = np.array([probability])
        std = 0.01
        share = widening_share(causes, found, std)
        half = 1.96 * np.sqrt(std**2 + share * probability * causes[0].mean_square[0, 0])
        spread = np.sqrt(causes[0].mean_square[0, 0] - causes[0].shift[0] ** 2)
        acts = rng.random(400_000) < probability
        errors = std * rng.normal(size=acts.size)
        errors += acts * (causes[0].shift[0] + spread * rng.normal(size=acts.size))
        assert np.mean(np.abs(errors) > half) == pytest.approx(0.05, abs=0.002)
    assert widening_share([], np.zeros(0), 0.01) == 0.0


def test_an_interval_reaches_over_the_widest_of_several_causes(rng):
    """One cause is known sharply, the other hardly: by draws from the mixture."""
    causes = [cause(e=0.001, std=0.001), cause(e=0.0, std=5.0, prior_std=1.0)]
    found = np.array([0.2, 0.3])
    std = 0.01
    share = widening_share(causes, found, std)
    squares = [float(one.mean_square[0, 0]) for one in causes]
    half = 1.96 * np.sqrt(std**2 + share * found @ squares)
    which = rng.choice(3, size=400_000, p=[*found, 0.5])
    shifts = np.array([*(one.shift[0] for one in causes), 0.0])
    spreads = np.sqrt(np.array([*squares, 0.0]) - shifts**2)
    errors = shifts[which] + np.hypot(std, spreads[which]) * rng.normal(size=which.size)
    assert np.mean(np.abs(errors) > half) == pytest.approx(0.05, abs=0.002)


def test_a_tracked_square_is_what_a_column_takes_from_the_residuals(rng):
    """By ordinary least squares of all rows, with the cause and without it."""
    weights = np.array([0.7, 3.0])
    mixing = rng.normal(size=(4, 3))
    prior = rng.normal(size=(5, 4))
    parts = []
    columns = []
    for N in (9, 14):
        usable = rng.random((N, 2)) < 0.8
        parts.append(Rows(rng.normal(size=(N, 2, 4)), rng.normal(size=(N, 2)), usable))
        columns.append(rng.normal(size=(N, 2, 1)))
    w = np.concatenate([(part.usable * weights).ravel() for part in parts])
    Y = np.concatenate([part.Y.reshape(-1, 4) for part in parts]) @ mixing
    tau = np.concatenate([part.tau.ravel() for part in parts])
    cause = np.concatenate([column.ravel() for column in columns])
    A = np.vstack([Y * w[:, None], prior[:, :-1]])
    b = np.concatenate([tau * w, prior[:, -1]])
    c = np.concatenate([cause * w, np.zeros(len(prior))])
    (without,) = np.linalg.lstsq(A, b)[1]
    (with_it,) = np.linalg.lstsq(np.column_stack([A, c]), b)[1]
    found = _tracked_square(Fitted.of(parts, prior, mixing), columns, weights)
    assert found == pytest.approx(without - with_it)


def test_joints_that_contradict_each_other_are_misfit(rng):
    """Sizes of a cause with a common value agree, whatever it is; others do not."""
    A = rng.normal(size=(6, 6))
    C = 1e-4 * (A @ A.T + np.eye(6))
    noise = rng.multivariate_normal(np.zeros(6), C, size=2000)

    def found(e):
        return CauseFit(e, C, np.zeros(1), np.arange(len(e)))

    sizes = [found(0.05 + each).disagreement(1.0)[0] for each in noise]
    assert np.mean(sizes) == pytest.approx(5.0, abs=0.3)  # chi-square of five
    odd = 0.05 + noise[0] + 0.3 * (np.arange(6) == 2)
    assert found(odd).disagreement(1.0)[0] > 30
    without = found(odd).disagreement(1.0, without=2)
    assert without == (pytest.approx(without[0]), 4)
    assert without[0] < 15
    assert found(odd).disagreement(1e-6) == (0.0, 0)
    calm = CauseMisfit(0.5, 5.0)
    assert calm.or_disagreement(50.0, 5).widening == pytest.approx((4 + 50) / 9)
    assert calm.or_disagreement(2.0, 5) == calm


def test_a_cause_has_the_misfit_of_the_arm_and_known_errors():
    fit = CauseFit(
        np.array([0.03]), np.array([[4e-4]]), np.zeros(12), np.array([0]), np.ones((12, 1))
    )
    one = Cause.of("scale", fit, CauseMisfit(9.0, 4.0), prior_std=0.05, odds=1.0, extra_std=0.01)
    assert one.covariance[0, 0] == pytest.approx(5 * 4e-4 + 1e-4)
    assert one.freedom == 8.0
    assert one.response.shape == (10, 1)
    unknown = replace(fit, covariance=np.array([[np.inf]]))
    assert Cause.of("scale", unknown, CauseMisfit(), prior_std=0.05, odds=1.0) is None


# --- a weighed payload


@pytest.fixture(scope="module")
def robot():
    return load_robot("ur10").with_drive(DRIVE)


@pytest.fixture(scope="module")
def model(robot):
    return identify(robot, [moving(robot, 0, 0.5), moving(robot, 5, 0.5, 3)])


def hardly_moving(robot, seed):
    """A slow motion, which hardly shows the scale."""
    samples = moving(robot, seed, 0.5, 2)
    return samples.rows(slice(0, 250))


def test_an_interval_holds_a_scale_that_the_motion_does_not_exclude(robot, model):
    sound = hardly_moving(robot.with_payload(LOAD), 1)
    scaled = replace(sound, tau=1.05 * sound.tau)
    found = weigh(model, scaled)
    assert found.shares["scale"] + found.shares.get("force", 0.0) > 0.5
    assert "the data do not exclude" in found.status
    assert abs(found.unconstrained.mass - LOAD.mass) < 1.96 * found.std[0]


def test_an_interval_stays_narrow_where_the_data_exclude_causes(robot, model):
    found = weigh(model, moving(robot.with_payload(LOAD), 1, 0.02, 2))
    assert found.verdict.ok
    assert found.shares.get("scale", 0.0) + found.shares.get("force", 0.0) < 0.5
    assert abs(found.unconstrained.mass - LOAD.mass) < 3 * found.std[0]
    scaled = moving(robot.with_payload(LOAD), 1, 0.02, 2)
    proven = weigh(model, replace(scaled, tau=1.05 * scaled.tau))
    assert proven.verdict.has(DoubtKind.TORQUE_SCALE)
    assert not proven.verdict.ok


def test_misfit_of_the_empty_runs_is_measured(robot):
    """A scale that differs between runs, and a force in one of them, appear in left-out runs."""
    first = moving(robot, 0, 0.1)
    second = moving(robot, 5, 0.1, 3)
    clean = identify(robot, [first, second]).misfit
    assert clean.scale.freedom == 2
    assert clean.force.freedom == 2
    assert clean.scale.ratio < 2
    scaled = replace(second, tau=1.02 * second.tau)
    assert identify(robot, [first, scaled]).misfit.scale.ratio > 5
    still = np.zeros_like(second.q)
    weight = robot.payload_regressor(second.q, still, still)[:, :, 0]
    pushed = replace(second, tau=second.tau + 0.5 * weight)
    assert identify(robot, [first, pushed]).misfit.force.ratio > 3 * clean.force.ratio


def test_a_single_run_is_cut_into_halves(robot):
    assert identify(robot, moving(robot, 0, 0.1)).misfit.scale.freedom == 2


def test_runs_that_are_too_short_say_nothing(robot, model):
    part = moving(robot, 0, 0.1).rows(slice(0, 50))
    misfit = misfit_of(
        robot, [part], [model.rows(part)], model.estimate.parameters, model.estimate.noise
    )
    assert misfit.scale == CauseMisfit()


def test_a_tracker_finds_the_causes_of_a_batch(robot, model):
    """Another scale and a steady hand widen or block alike, sample by sample."""
    sound = moving(robot.with_payload(LOAD), 1, 0.5, 2)
    still = np.zeros_like(sound.q)
    hand = robot.payload_regressor(sound.q, still, still)[:, :, 0]  # 9.81 N
    tracker = TorqueTracker(model, "measured")
    for tau, wrong in ((sound.tau, False), (1.08 * sound.tau, True), (sound.tau + hand, True)):
        state = tracker.init()
        for row in zip(sound.t, sound.q, sound.v, sound.a, tau, strict=True):
            state = tracker.step(state, Sample.of_joints(*row))
        batch = weigh(model, replace(sound, tau=tau))
        online = tracker.estimate(state, physical=False)
        for found in (batch, online):
            held = found.shares.get("scale", 0.0) + found.shares.get("force", 0.0)
            assert (held > 0.5 or not found.verdict.ok) == wrong
        assert 0.4 < online.std[0] / batch.std[0] < 2.5
