"""Tracking with a wrist sensor: kinematics, sums, solution, contacts, refusals."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.spatial.transform import Rotation

from measured_rows import stacked
from steelyard.control._contact_force import contact_force
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.signals import FixedLag
from steelyard.verdict import DoubtKind
from steelyard.workflow import weigh_wrist
from steelyard.wrist import (
    Postures,
    WrenchSamples,
    WristRecording,
    WristSensor,
    weigh_dynamic,
    weigh_static,
)
from steelyard.wrist._regression import WrenchRegression
from steelyard.wrist._regressor import BaseGravity, feature_covariance, features, wrench_regressor
from steelyard.wrist._spikes import spikes
from steelyard.wrist.tracking import WristPath, WristTracker, WristTrackerOptions, motion_of
from steelyard.wrist.tracking._estimator import _whitening
from steelyard.wrist.tracking._solve import WristProblem, _variance_of_sum
from steelyard.wrist.tracking._state import postures_of
from steelyard.wrist.tracking._sums import Sums, lifted_rows
from tiers import thorough_but
from wrist_streams import DRIFT, LOADS, NOISE, TILT, motion, path_of, rows, samples, with_jumps

LOAD = LOADS["LOAD"]
UPRIGHT = BaseGravity(np.array([0.0, 0.0, -9.81]))


def fed(estimator, parts, state=None):
    state = estimator.init() if state is None else state
    for sample in parts:
        state = estimator.step(state, sample)
    return state


def recording_of(stream):
    t, q, wrench = (np.array(x) for x in zip(*stream, strict=True))
    return Recording(
        t,
        q,
        load_robot("ur10").joint_names,
        wrench=wrench,
        wrench_frame="flange",
        wrench_convention="load_on_sensor",
    )


# --- kinematics


def test_the_filter_is_the_kalman_smoother_of_four_integrators(rng):
    """Filter forwards, Rauch-Tung-Striebel backwards: same position, velocity, acceleration."""
    T, r, cutoff_hz = 0.01, 1e-6, 4.0
    q = r * T * (2 * np.pi * cutoff_hz) ** 8
    F = np.array(
        [
            [T ** (j - i) / [1, 1, 2, 6][j - i] if j >= i else 0.0 for j in range(4)]
            for i in range(4)
        ]
    )
    steps = (np.arange(200) + 0.5) / 200 * T
    G = np.array([steps**3 / 6, steps**2 / 2, steps, np.ones(200)])
    Q = q * (G @ G.T) * T / 200
    t = np.arange(600) * T
    z = 0.1 * np.sin(2 * t) + 0.03 * np.sin(9 * t) + np.sqrt(r) * rng.normal(size=600)
    x, P = np.array([z[0], 0, 0, 0]), np.diag([r, 10.0, 1e3, 1e5])
    filtered, ahead = [], []
    for measured in z:
        x, P = F @ x, F @ P @ F.T + Q
        ahead.append((x, P))
        K = P[:, 0] / (P[0, 0] + r)
        x, P = x + K * (measured - x[0]), P - np.outer(K, P[0])
        filtered.append((x, P))
    smooth = [filtered[-1][0]]
    for (x, P), (x_next, P_next) in zip(filtered[-2::-1], ahead[:0:-1], strict=True):
        smooth.append(x + P @ F.T @ np.linalg.solve(P_next, smooth[-1] - x_next))
    smooth = np.array(smooth[::-1])
    lag = FixedLag(cutoff_hz, 1 / T, points=5)
    state, late = lag.init(1), []
    for measured in z:
        state, ready = lag.step(state, [measured])
        late += [] if ready is None else [ready[:, 0]]
    late, middle = np.array(late), slice(100, 300)
    there = smooth[lag.lag : lag.lag + len(late)]
    for k, limit in enumerate((0.01, 0.01, 0.02)):
        assert np.std((late - there[:, :3])[middle, k]) < limit * np.std(there[middle, k])


@pytest.mark.parametrize("kind", ["joints", "pose", "unit"])
def test_samples_move_as_the_sensor_does(kind):
    stream = rows(kind=kind)
    made, _ = samples(stream, kind)
    t, _, T, moved = motion()
    at = np.searchsorted(t, [sample.t + 1e-6 for sample in made]) - 1
    np.testing.assert_allclose([s.t for s in made], t[at], atol=1e-9)
    np.testing.assert_allclose([s.motion.R_base_sensor for s in made], T[at, :3, :3], atol=2e-3)
    truth = np.hstack(
        [moved.linear_acceleration, moved.angular_velocity, moved.angular_acceleration]
    )[at]
    found = [s.motion.derivatives for s in made]
    np.testing.assert_allclose(found, truth, atol=0.8 if kind == "unit" else 0.05)
    if kind != "unit":
        speed = np.linalg.norm(moved.linear_velocity[at], axis=1)
        np.testing.assert_allclose([s.motion.speed for s in made], speed, atol=2e-3)
    error = (np.array(found) - truth)[:, :3].std(axis=0)
    std = np.sqrt(np.mean([np.diag(s.motion.covariance)[:3] for s in made], axis=0))
    if kind == "unit":  # white noise alone: the covariance says how large
        np.testing.assert_allclose(error, std, rtol=0.25)


def test_a_stated_noise_counts_and_else_the_first_rows_show_it():
    stream = rows(kind="unit")
    noises = {"acceleration": 0.02, "angular_velocity": 0.005}
    path = WristPath.calibrated(
        *stacked(stream[:100]), WristSensor(noise=NOISE, motion_noise=noises)
    )
    found = path_of(stream, "unit")
    np.testing.assert_allclose(found.noise, path.noise, rtol=0.3)
    stated, heard = (np.sqrt(np.diag(p.kinematics.covariance)) for p in (path, found))
    np.testing.assert_allclose(heard, stated, rtol=0.35)
    with pytest.raises(
        InvalidRecording, match=r"'motion_noise\.speed' is no signal; there are joints, position"
    ):
        WristSensor(motion_noise={"speed": 1.0})


def test_jitter_holes_and_bad_rows():
    stream = rows()
    rng = np.random.default_rng(0)
    path = path_of(stream)
    state, made = path.init(), []
    nothing = np.full(6, np.nan)
    for k, row in enumerate(stream):
        if 500 <= k < 550 or rng.random() < 0.1:
            continue
        late = [stream[k - 5], row._replace(t=row.t, effort=nothing)] if k == 300 else []
        for each in (row, *late):
            state, ready = path.step(state, *each)
            made += ready
    assert [sample.fault for sample in made if sample.fault] == ["late", "corrupt"]
    good = np.array([sample.t for sample in made if not sample.fault])
    assert (np.diff(good) > 0).all()
    assert np.diff(good).max() > 0.5  # nothing is made up in the hole
    with pytest.raises(
        InvalidSamples, match="a row is 6 numbers of motion and a wrench of 6, got 5 and 6"
    ):
        path.step(state, 99.0, np.zeros(5), np.zeros(6))
    with pytest.raises(InvalidSamples, match="8 rows are too few to calibrate with"):
        path_of(stream[:8])
    with pytest.raises(
        InvalidSamples, match="a motion is 7 or 10 numbers, or joints of a robot, got 6"
    ):
        WristPath.calibrated(*stacked(stream[:100]), WristSensor())
    with pytest.raises(InvalidSamples, match="ur10 has 6 joints, a row 7"):
        WristPath.calibrated(
            *stacked(rows(kind="pose")[:100]), WristSensor(), robot=load_robot("ur10")
        )


def test_a_recording_without_motion_is_refused():
    recording = WristRecording(
        np.arange(30) / 10, np.zeros((30, 6)), np.tile(np.eye(3), (30, 1, 1)), WristSensor()
    )
    with pytest.raises(InvalidSamples, match="neither position nor acceleration of the sensor"):
        motion_of(recording)


# --- sums and solution


def random_samples(rng, N=300):
    R = Rotation.random(N, random_state=1).as_matrix()
    moved = rng.normal(size=(N, 9)) * [2, 2, 2, 1, 1, 1, 6, 6, 6]
    covariance = np.tile(np.diag([0.2, 0.2, 0.2, 0.03, 0.03, 0.03, 0.5, 0.5, 0.5]) ** 2, (N, 1, 1))
    t = np.arange(N) * 0.05
    true = moved + rng.normal(size=(N, 9)) * np.sqrt(np.diag(covariance[0]))
    g = np.einsum("nji,j->ni", R, UPRIGHT.tilted(TILT))
    wrench = wrench_regressor(features(g, true[:, :3], true[:, 3:6], true[:, 6:])) @ LOAD.vector
    trend = 0.1 * NOISE
    wrench = wrench + DRIFT + t[:, None] * trend + NOISE * rng.normal(size=(N, 6))
    return t, wrench, R, moved, covariance, trend


def test_lifted_rows_are_newton_euler_at_any_tilt(rng):
    from steelyard.wrist.tracking._sums import lifted_numbers

    t, _, R, moved, covariance, trend = random_samples(rng, 5)
    value = np.concatenate([LOAD.vector, DRIFT, [0.3, -0.2], trend])
    lifted = lifted_rows(t, np.zeros((5, 6)), R, moved, UPRIGHT.nominal, covariance[:, 3:6, 3:6])
    L, G = lifted_numbers(UPRIGHT, value)
    g = np.einsum("nji,j->ni", R, UPRIGHT.tilted([0.3, -0.2]))
    x = features(g, moved[:, :3], moved[:, 3:6], moved[:, 6:], covariance[:, 3:6, 3:6])
    direct = wrench_regressor(x) @ LOAD.vector + DRIFT + t[:, None] * trend
    np.testing.assert_allclose(np.einsum("inl,il->ni", lifted[:, :, :-1], L), direct, atol=1e-12)
    for k in range(24):
        step = np.eye(24)[k] * 1e-6
        slope = (
            lifted_numbers(UPRIGHT, value + step)[0] - lifted_numbers(UPRIGHT, value - step)[0]
        ) / 2e-6
        np.testing.assert_allclose(G[:, :, k], slope, atol=1e-8)


def test_the_recursion_equals_the_batch_solution_of_the_same_rows(rng):
    """Window by window with triangles, and all at once by the generalised eigenproblem."""
    t, wrench, R, moved, covariance, _ = random_samples(rng)
    sums = Sums.nothing()
    for k in range(0, len(t), 10):
        at = slice(k, k + 10)
        lifted = lifted_rows(
            t[at], wrench[at], R[at], moved[at], UPRIGHT.nominal, covariance[at, 3:6, 3:6]
        )
        sums = sums.plus(lifted, feature_covariance(moved[at, 3:6], covariance[at]).sum(axis=0))
    problem = WristProblem(
        sums, postures_of([], [], [], [], []), np.zeros((0, 25)), UPRIGHT, NOISE, np.arange(24)
    )
    found = problem.solved(rounds=200)
    theta, angles, W = found.value, found.value[16:18], np.diag(1 / found.variance)
    x = features(
        np.einsum("nji,j->ni", R, UPRIGHT.tilted(angles)), moved[:, :3], moved[:, 3:6],
        moved[:, 6:],
        covariance[:, 3:6, 3:6],
    )  # fmt: skip
    tilt = UPRIGHT.tilt_columns(theta[:10], R, angles)
    every = np.tile(np.eye(6), (len(t), 1, 1))
    exact = np.concatenate([every, tilt, t[:, None, None] * every], axis=2)
    Sx = feature_covariance(moved[:, 3:6], covariance)
    batch = WrenchRegression(
        x, Sx, exact, wrench, np.diag(NOISE**2), np.zeros(24), np.zeros((24, 24))
    )
    Z = batch.augmented
    nothing = np.array([1e4] * 16 + [np.radians(10)] * 2 + [1e4] * 6) ** -2
    M = np.einsum("nia,ij,njb->ab", Z, W, Z, optimize=True)
    M[:24, :24] += np.diag(nothing)
    M[[16, 17], -1] -= nothing[16:18] * angles  # they count from the present tilt
    M[-1, [16, 17]] = M[[16, 17], -1]
    M[-1, -1] += nothing[16:18] @ angles**2
    P = np.zeros((25, 25))
    P[:10, :10] = batch.regressor_noise(W)
    P[-1, -1] = 6 * len(t) - theta[:10] @ P[:10, :10] @ theta[:10] + 1.0
    scale = 1 / np.sqrt(np.diag(M))
    v = eigh(P * np.outer(scale, scale), M * np.outer(scale, scale))[1][:, -1] * scale
    solution = -v[:-1] / v[-1]
    solution[16:18] += angles
    std = np.sqrt(np.diag(found.covariance))
    np.testing.assert_allclose(
        solution / std, theta / std, rtol=0, atol=1e-8 * np.abs(theta / std).max()
    )
    truth = np.concatenate([LOAD.vector, DRIFT, TILT])
    assert (np.abs(theta[:18] - truth) < 4 * std[:18]).all()
    naive = np.linalg.lstsq(Z[:, :, :-1].reshape(-1, 24), wrench.ravel(), rcond=None)[0]
    assert abs(naive[4] - LOAD.vector[4]) > abs(theta[4] - LOAD.vector[4])  # attenuated


def test_residuals_of_few_blocks_widen_the_interval_as_students_law_says():
    """Of residuals that alternate, so that their correlation adds nothing."""
    residuals = np.outer((-1.0) ** np.arange(20), np.ones(6))
    found = _variance_of_sum(residuals, np.full(6, 5.0))
    quantile = 2.1314  # of Student's t with 15 degrees of freedom
    np.testing.assert_allclose(found, 20 * 20 / 15 * (quantile / 1.96) ** 2, rtol=1e-4)


def test_blocks_are_joined_and_nothing_is_lost(rng):
    t, wrench, R, moved, covariance, _ = random_samples(rng, 300)
    lifted = lifted_rows(t, wrench, R, moved, UPRIGHT.nominal, covariance[:, 3:6, 3:6])
    sums = Sums.nothing()
    for k in range(300):
        sums = sums.plus(lifted[:, k : k + 1], np.zeros((12, 12)))
        assert len(sums.blocks) <= 64
        assert sums.rows == k + 1
    assert sums.length == 8
    np.testing.assert_allclose(sums.blocks.sum(axis=0), lifted.sum(axis=1), atol=1e-9)
    squares = sums.triangles.transpose(0, 2, 1) @ sums.triangles
    np.testing.assert_allclose(squares, lifted.transpose(0, 2, 1) @ lifted, atol=1e-8)


# --- the estimate


def test_the_whole_recording_agrees_with_batch_within_its_interval():
    stream = rows()
    made, estimator = samples(stream)
    online = estimator.estimate(fed(estimator, made))
    batch = weigh_dynamic(WrenchSamples.from_joints(load_robot("ur10"), recording_of(stream)))
    apart = (online.unconstrained.vector - batch.unconstrained.vector) / online.std
    assert np.abs(apart).max() < 1.0
    assert online.body.mass == pytest.approx(batch.body.mass, rel=1e-3)
    assert np.abs((online.drift - batch.drift) / online.drift_std).max() < 2.0
    assert np.abs((online.inclination - batch.inclination) / online.inclination_std).max() < 1.0
    assert np.abs((online.unconstrained.vector - LOAD.vector) / online.std).max() < 4
    assert np.abs((online.drift - DRIFT) / online.drift_std).max() < 4


def test_rests_alone_are_the_static_stage():
    stream = rows(rests=True, seconds=16.0)
    made, estimator = samples(stream)
    at_rest = [sample for sample in made if sample.t % 2.0 < 1.4]
    estimator = replace(estimator, options=WristTrackerOptions(longest_gap_s=10.0))
    state = fed(estimator, at_rest)  # the motion between is cut out
    online = estimator.estimate(state)
    batch = weigh_static(
        Postures.of(WristRecording.of_joints(recording_of(stream), load_robot("ur10")))
    )
    assert len(state.postures) >= 7
    assert online.body.mass == pytest.approx(batch.mass, abs=1.96 * online.std[0])
    np.testing.assert_allclose(online.body.com, batch.com, atol=2e-3)
    assert np.isinf(online.std[4:]).all()
    assert "postures at rest say nothing about the inertia" in online.status
    assert np.abs((online.inclination - TILT) / online.inclination_std).max() < 4


@pytest.mark.thorough
@pytest.mark.parametrize(("rests", "slow"), [(False, 0.0), (False, 2.0), (True, 0.0)])
def test_intervals_hold_at_every_time(rests, slow):
    """Early, and with noise correlated over half a second, intervals are wide or absent."""
    inside, claimed = [], []
    for seed in range(3):
        made, estimator = samples(rows(seed=seed, rests=rests, slow=slow, seconds=9.0))
        state, due_s = estimator.init(), 1.2
        for sample in made:
            state = estimator.step(state, sample)
            if sample.t >= due_s:
                due_s += 1.5
                found = estimator.estimate(state, physical=False)
                known = np.isfinite(found.std)
                error = np.abs(found.unconstrained.vector - LOAD.vector)[known]
                inside += (error < 1.96 * found.std[known]).tolist()
                claimed.append(known[0])
                assert known[0] or not found.verdict.ok
    assert np.mean(inside) > 0.9
    assert np.mean(claimed) > 0.6


def test_a_push_is_a_contact_and_spoils_nothing():
    push = np.array([8.0, -5.0, 6.0, 0.2, 0.1, 0.3])
    stream = [row._replace(effort=row.effort + push * (6.0 <= row.t < 7.5)) for row in rows()]
    made, estimator = samples(stream)
    state, felt = estimator.init(), []
    for sample in made:
        state = estimator.step(state, sample)
        if 6.3 < sample.t < 7.2:
            felt.append(estimator.contact(state))
    force, std = np.mean([x for x, _ in felt], axis=0), np.mean([x for _, x in felt], axis=0)
    np.testing.assert_allclose(force, push, atol=0.5 * NOISE.max())
    assert (std < 2 * NOISE).all()
    assert not state.history
    assert 6 <= state.contacts <= 10
    clean, _ = samples(rows())
    found, other = (estimator.estimate(s, physical=False) for s in (state, fed(estimator, clean)))
    assert "touched in" in found.status
    assert found.body.mass == pytest.approx(other.body.mass, abs=other.std[0])
    batch = contact_force(
        found, WrenchSamples.from_joints(load_robot("ur10"), recording_of(stream), decimate=False)
    )
    at = (batch.t > 6.3) & (batch.t < 7.2)
    np.testing.assert_allclose(batch.external[at].mean(axis=0), force, atol=0.3)


def test_jumps_between_rows_have_the_variance_that_the_path_states():
    """A step anywhere between two rows: sums of readings and of the true wrench differ."""
    size = 40.0 * np.array([1.0, 0.0, 0.0, 0.0, 0.1, 0.0])
    still = rows(rests=True)[0].motion
    path = path_of(rows(rests=True))
    off, stated = [], []
    for share in (np.arange(16) + 0.5) / 16:
        state, made = path.init(), []
        for k in range(100):
            state, ready = path.step(state, k / 100, still, size * (k >= 50 + share))
            made += ready
        t = np.array([sample.t for sample in made])
        sum_of_true = ((t[-1] + 0.5 * (t[1] - t[0])) - (0.5 + share / 100)) / (t[1] - t[0])
        off.append(np.sum([sample.effort for sample in made], axis=0) - size * sum_of_true)
        stated.append(np.sum([sample.motion.jump_variance for sample in made], axis=0))
    np.testing.assert_allclose(
        np.mean(np.square(off), axis=0), np.mean(stated, axis=0), rtol=0.2, atol=1e-9
    )


def test_friction_that_jumps_is_not_called_a_touch(monkeypatch):
    """One row of it is no touch, a touch of the same size that lasts ten rows is one."""
    monkeypatch.setattr("steelyard.wrist._spikes._SPIKE_SIGMA", np.inf)  # one row is left out else
    made, estimator = samples(with_jumps(rows(), times_s=(6.13, 8.31)))
    assert fed(estimator, made).contacts == 0
    blind = [s._replace(motion=s.motion._replace(jump_variance=np.zeros(6))) for s in made]
    assert fed(estimator, blind).contacts > 0
    longer, estimator = samples(with_jumps(rows(), times_s=np.arange(6.13, 6.23, 0.01)))
    assert fed(estimator, longer).contacts > 0


@pytest.mark.parametrize("kind", ["joints", "pose"])
def test_a_load_that_is_shaken_for_one_row_is_not_called_touched(kind, monkeypatch):
    """Its wrench looks like a broken reading; the motion shows that it is none."""
    stream = rows(kind=kind, shaken=True)
    made, estimator = samples(stream, kind)
    found = fed(estimator, made)
    assert found.counts.spikes > 3
    assert found.contacts == 0
    assert not found.history
    monkeypatch.setattr("steelyard.wrist.tracking._path.has_pulse", lambda *_: False)
    made, estimator = samples(stream, kind)
    assert fed(estimator, made).contacts > 0


@pytest.mark.thorough
def test_accelerations_that_jump_between_rows_do_not_bias_the_load():
    """Readings are of an instant, accelerations of an interval: samples at a jump count less."""
    truth = LOADS["HEAVY"].vector
    errors, inside, without_weights = [], [], []
    for seed in range(4):
        made, estimator = samples(rows("HEAVY", seed, noise=0.1, jumps=True))
        found = estimator.estimate(fed(estimator, made), physical=False)
        errors.append(found.unconstrained.vector - truth)
        inside.append(np.abs(errors[-1]) < 1.96 * found.std)
        blind = [s._replace(motion=s.motion._replace(jump_variance=np.zeros(6))) for s in made]
        estimator = replace(estimator, options=WristTrackerOptions(alarm=None))
        found = estimator.estimate(fed(estimator, blind), physical=False)
        without_weights.append(found.unconstrained.vector - truth)
    assert np.mean(inside) > 0.93
    ratio = np.linalg.norm(without_weights, axis=0) / np.linalg.norm(errors, axis=0)
    assert np.median(ratio) > 2.0


def test_a_recording_whose_accelerations_jump_is_weighed_without_bias():
    """The same for the whole recording at once; without the weights intervals miss the truth."""
    truth = LOADS["HEAVY"].vector
    errors, inside, without_weights = [], [], []
    for seed in range(3):
        recording = recording_of(rows("HEAVY", seed, noise=0.1, jumps=True))
        made = WrenchSamples.from_joints(load_robot("ur10"), recording)
        found = weigh_dynamic(made)
        errors.append(found.unconstrained.vector - truth)
        inside.append(np.abs(errors[-1]) < 1.96 * found.std)
        blind = weigh_dynamic(replace(made, jump_variance=np.zeros(6)))
        without_weights.append(blind.unconstrained.vector - truth)
    assert np.mean(inside) > 0.9
    ratio = np.linalg.norm(without_weights, axis=0) / np.linalg.norm(errors, axis=0)
    assert np.median(ratio) > 2.0


def test_a_contact_that_does_not_end_is_a_doubt():
    rng = np.random.default_rng(3)
    shaken = [
        row._replace(
            effort=row.effort + (row.t > 6.0) * 20 * np.sin(9 * row.t) * rng.normal(1, 0.1, 6)
        )
        for row in rows()
    ]
    made, estimator = samples(shaken)
    found = estimator.estimate(fed(estimator, made), physical=False)
    assert found.verdict.has(DoubtKind.MOSTLY_CONTACT)
    assert not found.verdict.ok


def test_a_zero_that_moves_is_reported_as_it_is_now():
    """At the last sample, not at the first."""
    trend = np.array([0.5, -0.3, 0.4, 0.02, -0.03, 0.05])  # [N/s, Nm/s]
    stream = [row._replace(effort=row.effort + trend * row.t) for row in rows()]
    made, estimator = samples(stream)
    state = fed(estimator, made)
    found = estimator.estimate(state, physical=False)
    now = DRIFT + trend * state.last_s
    assert (np.abs(found.drift - now) < 4 * found.drift_std).all()
    assert (np.abs(found.drift - DRIFT) > 8 * found.drift_std).all()
    assert (np.abs(found.trend - trend) < 4 * found.trend_std).all()


def test_a_gap_ends_the_window_and_the_rest():
    made, estimator = samples(rows(rests=True, seconds=4.0))
    before = [sample for sample in made if sample.t < 1.3]
    state = fed(estimator, before)
    assert state.rest
    assert not len(state.postures)
    after = made[-1]._replace(t=300.0)
    state = estimator.step(state, after)
    assert [sample.t for sample in state.window] == [300.0]
    assert not state.rest
    assert len(state.postures) == 1  # the rest before the gap counts on its own
    np.testing.assert_allclose(state.postures.t, before[len(before) // 2].t - made[0].t, atol=0.15)


def test_a_state_of_an_inertial_unit_is_resumed_in_the_middle_of_a_window():
    """Its speed is unknown, NaN."""
    made, estimator = samples(rows(kind="unit"), "unit")
    state = fed(estimator, made[:-3])
    assert state.window
    back = estimator.state_from_dict(json.loads(json.dumps(state.to_dict())))
    one, other = (estimator.estimate(fed(estimator, made[-3:], s)) for s in (state, back))
    np.testing.assert_array_equal(one.full_covariance, other.full_covariance)


def test_what_cannot_be_weighed_is_refused():
    with pytest.raises(InvalidSamples, match="noise must be six positive numbers"):
        WristTracker(np.zeros(6))
    with pytest.raises(
        InvalidSamples, match="a tracker needs the rotation of the sensor on the flange"
    ):
        WristTracker(NOISE, WristSensor(yaw_known=False))
    with pytest.raises(InvalidSamples, match="window_s must be positive, got 0"):
        WristTrackerOptions(window_s=0)


def test_a_sensor_at_the_end_of_its_range_is_counted():
    stream = rows(seconds=3.0)
    limits = np.array([20.0, 20, 20, 6, 6, 6])
    over = sum(bool((np.abs(row.effort) >= limits).any()) for row in stream)
    path = WristPath.calibrated(
        *stacked(stream), WristSensor(reach=limits), robot=load_robot("ur10")
    )
    estimator = WristTracker(path.noise, WristSensor(reach=limits))
    state, of_path = estimator.init(), path.init()
    for row in stream:
        of_path, ready = path.step(of_path, *row)
        state = fed(estimator, ready, state)
    assert state.counts.saturated == over > 10


# --- a recording of poses


def pose_recording(stream):
    t, motion, wrench = stacked(stream)
    return WristRecording(
        t,
        wrench,
        Rotation.from_quat(motion[:, 3:]).as_matrix(),
        WristSensor(),
        position=motion[:, :3],
    )


def test_a_recording_of_poses_becomes_the_samples_of_tracking():
    stream = rows(kind="pose")
    batch = WrenchSamples.from_pose(pose_recording(stream), cutoff_hz=10.0, decimate=False)
    made, _ = samples(stream, "pose", cutoff_hz=10.0)
    online = {round(100 * sample.t): sample for sample in made}
    pairs = [(k, online[round(100 * t)]) for k, t in enumerate(batch.t) if round(100 * t) in online]
    assert len(pairs) > 400
    for k, sample in pairs[::50]:
        np.testing.assert_allclose(batch.wrench[k], sample.effort, atol=1e-9)
        np.testing.assert_allclose(batch.R_base_sensor[k], sample.motion.R_base_sensor, atol=1e-9)
        np.testing.assert_allclose(batch.acceleration[k], sample.motion.acceleration, atol=1e-6)
        np.testing.assert_allclose(
            batch.angular_velocity[k], sample.motion.angular_velocity, atol=1e-6
        )
        np.testing.assert_allclose(
            batch.angular_acceleration[k], sample.motion.angular_acceleration, atol=1e-5
        )


def test_poses_weigh_as_joints_do_and_the_cutoff_counts():
    stream = rows(kind="pose")
    joints = weigh_dynamic(
        WrenchSamples.from_joints(load_robot("ur10"), recording_of(rows()), cutoff_hz=10.0)
    )
    poses = weigh_wrist(dynamic=pose_recording(stream), cutoff_hz=10.0)
    apart = (poses.unconstrained.vector - joints.unconstrained.vector) / joints.std
    assert np.abs(apart).max() < 0.5
    np.testing.assert_allclose(poses.std, joints.std, rtol=0.2)
    smoother = weigh_wrist(dynamic=pose_recording(stream), cutoff_hz=3.0)
    assert smoother.mass != poses.mass
    assert (smoother.noise < 0.8 * poses.noise).all()


def test_the_factor_of_a_prior_survives_a_covariance_that_rounding_makes_singular(rng):
    A = rng.standard_normal((8, 8))
    C = A @ A.T
    L = _whitening(C)
    np.testing.assert_allclose(L.T @ L @ C, np.eye(8), atol=1e-8)
    line = np.outer(np.arange(1.0, 9.0), np.arange(1.0, 9.0))
    assert np.isfinite(_whitening(1e7 * line + 1e-9 * np.eye(8))).all()


# --- spikes


@pytest.mark.parametrize(
    ("kind", "size"),
    thorough_but(
        [("joints", -50.0), ("unit", 1e5)], product(("joints", "pose", "unit"), (1e5, -50.0))
    ),
)
def test_single_readings_far_from_their_neighbours_are_left_out_and_counted(kind, size):
    """One in the rows that calibrate, two later; a clean stream gives the same answer."""
    clean = rows(kind=kind)
    broken = list(clean)
    for k, axis in ((40, 0), (350, 2), (600, 1)):
        wrench = broken[k].effort.copy()
        wrench[axis] += size
        broken[k] = broken[k]._replace(effort=wrench)
    of_clean, tracker = samples(clean, kind)
    of_broken, same_tracker = samples(broken, kind)
    expected = fed(tracker, of_clean)
    found = fed(same_tracker, of_broken)
    assert (expected.counts.spikes, found.counts.spikes) == (0, 3)
    mass = tracker.progress(expected).payload
    broken_mass = same_tracker.progress(found).payload
    assert broken_mass.body.mass == pytest.approx(mass.body.mass, abs=0.1 * mass.std[0])
    assert broken_mass.std[0] == pytest.approx(mass.std[0], rel=0.1)


@pytest.mark.parametrize("size", [0.3, -2.0])
def test_single_joint_positions_far_from_their_neighbours_are_left_out_and_counted(size):
    clean = rows(kind="joints")
    broken = list(clean)
    for k, joint in ((350, 2), (600, 1)):
        q = broken[k].motion.copy()
        q[joint] += size
        broken[k] = broken[k]._replace(motion=q)
    of_clean, tracker = samples(clean, "joints")
    of_broken, same_tracker = samples(broken, "joints")
    found = fed(same_tracker, of_broken)
    assert (found.counts.impossible, found.counts.spikes) == (2, 0)
    mass = tracker.progress(fed(tracker, of_clean)).payload
    broken_mass = same_tracker.progress(found).payload
    assert broken_mass.body.mass == pytest.approx(mass.body.mass, abs=0.1 * mass.std[0])
    assert broken_mass.std[0] == pytest.approx(mass.std[0], rel=0.1)


def test_steps_vibrations_and_noise_are_no_spikes(rng):
    noise = np.full(6, 0.1)
    calm = 0.1 * rng.normal(size=(400, 6))
    assert not spikes(calm, noise).any()
    step = calm + 50.0 * (np.arange(400) > 200)[:, None]
    assert not spikes(step, noise).any()
    for period in (2, 4, 5, 7):
        wave = 50.0 * np.sin(2 * np.pi * np.arange(400) / period + 0.4)
        assert not spikes(calm + wave[:, None], noise).any()
    single = calm.copy()
    single[200, 4] += 5.0
    np.testing.assert_array_equal(np.flatnonzero(spikes(single, noise)), [200])
    assert not spikes(single[197:200], noise).any()


def test_a_vibration_of_three_readings_is_no_spike():
    """Every third reading stands apart there; the readings around tell how much they all change."""
    shaken = [
        row._replace(effort=row.effort + 50.0 * np.sin(2 * np.pi * k / 3 + 0.4))
        for k, row in enumerate(rows())
    ]
    assert spikes(np.array([row.effort for row in shaken]), NOISE).any()
    path = path_of(rows())
    state = path.init()
    counted = 0
    for row in shaken:
        state, ready = path.step(state, *row)
        counted += sum(sample.fault == "spikes" for sample in ready)
    assert counted < 5


def test_readings_much_noisier_than_stated_are_no_spikes(rng):
    noisy = [
        row._replace(effort=row.effort + 30 * NOISE * rng.normal(size=6)) for row in rows(noise=0.0)
    ]
    quiet = replace(path_of(rows()), noise=0.01 * NOISE)
    state = quiet.init()
    counted = 0
    for row in noisy:
        state, ready = quiet.step(state, *row)
        counted += sum(sample.fault == "spikes" for sample in ready)
    assert counted < 3
