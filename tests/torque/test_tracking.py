"""Tracking survives a real stream, detects changes, forgets, and names what is missing."""

import json
import pickle
import re
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest

import steelyard as sy
from steelyard.errors import InvalidSamples
from steelyard.identification import FrictionLaw, identify
from steelyard.inertia import PARAMETER_NAMES
from steelyard.payload._tracking import Counts
from steelyard.recording import Sample, Samples
from steelyard.robot import load_robot
from steelyard.robot._transmission import Transmission
from steelyard.torque import weigh
from steelyard.torque._prior import slow_noise
from steelyard.torque.tracking import (
    TorqueTracker,
    TorqueTrackerOptions,
    TorqueTrackerState,
)
from steelyard.torque.tracking._change import Creep, after_rest, change_statistic, noise_since
from steelyard.torque.tracking._noise import ResidualSpread
from steelyard.torque.tracking._rows import TorqueRows
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import DoubtKind
from tracking_runs import BODIES, LOAD, RATE_HZ, model, motion, samples, stream


def fed(estimator, parts, state=None):
    state = estimator.init() if state is None else state
    for sample in parts:
        state = estimator.step(state, sample)
    return state


def leaves(state):
    for value in state:
        if isinstance(value, tuple):
            yield from leaves(value)
        else:
            yield value


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(leaves(one), leaves(other), strict=True))


@pytest.fixture
def direct():
    return TorqueTracker(model(), "measured")


def test_it_weighs_and_says_that_it_has_converged(direct):
    state = fed(direct, stream())
    found = direct.estimate(state)
    assert found.body.mass == pytest.approx(3.5, abs=4 * found.std[0])
    assert found.status.startswith("converged: the mass is known to 0.")
    assert direct.converged(state)
    assert found.body.is_physical
    assert found.body.frame == "flange"


def test_a_payload_that_moved_too_briefly_for_all_tests_is_not_to_be_used(direct):
    """Noise is judged by ten windows of 0.2 s; before, nothing tells a load from a steady force."""
    every = list(stream())
    early = direct.estimate(fed(direct, every[: int(1.6 * RATE_HZ)]))
    assert not early.verdict.ok
    assert "too briefly" in early.verdict.blocking[0].words
    late = direct.estimate(fed(direct, every[: int(4.0 * RATE_HZ)]))
    assert late.verdict.ok


def test_intervals_are_those_of_batch(direct):
    part = samples(load_robot("ur10").with_payload(LOAD), 5, 3)
    np.testing.assert_allclose(
        direct.estimate(fed(direct, stream()), physical=False).std,
        weigh(model(), part).std,
        rtol=0.35,
    )


def test_a_state_to_look_at_gives_the_same_estimate_and_advice(direct):
    state = fed(direct, stream())
    looked = state.reduced
    whole, light = direct.estimate(state), direct.estimate(looked)
    np.testing.assert_array_equal(light.body.vector, whole.body.vector)
    np.testing.assert_array_equal(light.covariance, whole.covariance)
    assert light.verdict == whole.verdict
    assert direct.next_step(looked) == direct.next_step(state)
    assert len(pickle.dumps(looked)) < 0.8 * len(pickle.dumps(state))


def test_the_next_step_says_how_well_the_mass_is_known(direct):
    state = fed(direct, stream()[:40])
    (known,) = re.findall(r"the mass is known to [\d.]+ %", direct.estimate(state).status)
    step = re.fullmatch(rf"move \w+: {known}, then to about ([\d.]+) %", direct.next_step(state))
    assert 0.0 < float(step[1]) < float(known.split()[-2])


def test_states_are_values(direct):
    half, rest = stream()[:502], stream()[502:]
    state = fed(direct, half)
    kept = state.to_dict()
    first = fed(direct, rest, state)
    direct.estimate(state)
    assert state.to_dict() == kept
    assert same(fed(direct, rest, state), first)


def test_save_and_resume_over_every_field(direct):
    state = fed(direct, (*stream(), *stream(3, "LIGHT", 6, 10.0)[:603]))
    assert len(state.history) == 1
    back = TorqueTrackerState.from_dict(json.loads(json.dumps(state.to_dict())))
    assert same(back, state)
    more = stream(3, "LIGHT", 6, 10.0)[603:]
    assert same(fed(direct, more, back), fed(direct, more, state))
    before = direct.init()
    assert same(TorqueTrackerState.from_dict(json.loads(json.dumps(before.to_dict()))), before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pending", [0]),
        ("prepared", [1]),
        ("history", [[0.0, 1.0, [0.0] * 9, []]]),
        ("rest", [[], 1.0]),
    ],
)
def test_nonsense_where_a_fresh_state_has_nothing_is_refused(direct, name, value):
    content = fed(direct, stream()[:7]).to_dict()
    TorqueTrackerState.from_dict(content)
    with pytest.raises(ValueError, match=rf"'state\.{name}.* must (be|have shape) "):
        TorqueTrackerState.from_dict({**content, name: value})


def test_bad_samples_are_counted_and_change_nothing(direct):
    good = stream()
    clean = fed(direct, good)
    nan, inf = np.full(6, np.nan), np.array([0, 0, np.inf, 0, 0, 0])
    dirty = []
    for i, sample in enumerate(good):
        dirty.append(sample)
        if i == 100:
            dirty += [sample, sample]  # repeated
        if i == 200:
            dirty += [good[50], good[198]]  # late
        if i == 300:
            t = sample.t + 0.001
            dirty += [
                sample._replace(t=t, effort=nan),
                sample._replace(t=t, motion=sample.motion + inf),
                sample._replace(t=np.nan),
                sample._replace(t=t, motion=sample.motion * 1e300),
            ]
        if i == 400:
            dirty.append(sample._replace(t=sample.t + 0.001, effort=np.full(6, 400.0)))
    state = fed(direct, dirty)
    assert state.counts._replace(used=0) == Counts(repeated=2, late=2, corrupt=4, saturated=1)
    vectors = [direct.estimate(s, physical=False).unconstrained.vector for s in (clean, state)]
    np.testing.assert_allclose(vectors[1], vectors[0], atol=1e-12)
    assert (
        "skipped 2 repeated, 2 late, 4 corrupt, 1 saturated samples"
        in direct.estimate(state, physical=False).status
    )


def test_a_glitch_of_one_sample_is_left_out_and_is_no_change(direct):
    good = list(stream())
    for i in (401, 506, 607, 703):
        good[i] = good[i]._replace(effort=good[i].effort + np.array([0, 90.0, 0, 0, 30.0, 0]))
    state = fed(direct, good)
    assert state.counts.spikes == 4
    assert not state.history
    found = direct.estimate(state, physical=False)
    assert found.body.mass == pytest.approx(3.5, abs=4 * found.std[0])


@pytest.mark.parametrize(
    "broken",
    [
        {"motion": np.zeros((3, 5))},
        {"motion": np.zeros((2, 6))},
        {"effort": np.zeros((6, 1))},
        {"motion": None},
        {"effort": ["a"] * 6},
        {"t": "now"},
    ],
)
def test_another_shape_is_refused_and_the_stream_goes_on(direct, broken):
    state = fed(direct, stream()[:10])
    with pytest.raises(
        InvalidSamples, match="a sample is a time, 3 x 6 numbers of motion and 6 torques, got a"
    ):
        direct.step(state, stream()[10]._replace(**broken))
    assert direct.step(state, stream()[10]).counts.used >= state.counts.used


def test_lost_samples_and_pauses_of_minutes(direct):
    rng = np.random.default_rng(0)
    parts = [sample for sample in stream() if rng.random() > 0.3]
    parts += [sample._replace(t=sample.t + 300.0) for sample in stream(4, "LOAD", 8)]
    state = fed(direct, parts)
    assert state.counts.gaps == 1
    assert not state.history
    found = direct.estimate(state, physical=False)
    assert found.body.mass == pytest.approx(3.5, abs=4 * found.std[0])
    assert "1 pause" in found.status


def test_rest_says_nothing_and_harms_nothing(direct):
    moving = fed(direct, stream())
    posture = stream()[-1].motion[0]
    tau = (
        load_robot("ur10").with_payload(LOAD).torque(posture, np.zeros(6), np.zeros(6)) + 7.0
    )  # stiction
    still = [
        Sample.of_joints(10 + i / RATE_HZ, posture, np.zeros(6), np.zeros(6), tau)
        for i in range(1000)
    ]
    rested = fed(direct, still, moving)
    np.testing.assert_array_equal(rested.known.R, direct._drained(moving).known.R)
    assert not rested.history
    assert rested.rest is not None
    assert same(TorqueTrackerState.from_dict(json.loads(json.dumps(rested.to_dict()))), rested)


def test_poor_motion_is_said_with_the_motion_that_would_help(direct):
    posture = np.array([0.3, -1.2, 0.8, -0.5, 0.4, 0.2])
    t = np.arange(300) / RATE_HZ
    q, v, a = (np.tile(x, (300, 1)) for x in (posture, np.zeros(6), np.zeros(6)))
    q[:, 5] += 0.5 * np.sin(2 * t)
    v[:, 5], a[:, 5] = np.cos(2 * t), -2 * np.sin(2 * t)
    tau = load_robot("ur10").with_payload(LOAD).torque(q, v, a) + np.random.default_rng(1).normal(
        size=q.shape
    )
    state = fed(direct, (Sample.of_joints(*row) for row in zip(t, q, v, a, tau, strict=True)))
    found = direct.estimate(state)
    assert "says nothing about the mass" in found.status
    assert "a swing of" in found.status
    assert np.isinf(found.std[0])
    assert not direct.converged(state)
    nothing = direct.estimate(direct.init())
    assert "says nothing about the mass" in nothing.status
    assert np.isinf(nothing.std).all()


def test_the_advised_swing_helps_as_promised(direct):
    state = fed(direct, stream()[:60])
    answer = direct._advice(direct._drained(state))
    q = stream()[59].motion[0]
    joint, promised = answer.best_motion(direct._rows, q)
    t = (np.arange(250) + 0.5) / 125
    w = np.pi
    swing = np.zeros((3, 250, 6))
    swing[0] = q
    swing[0, :, joint] += 0.3 * np.sin(w * t)
    swing[1, :, joint] = 0.3 * w * np.cos(w * t)
    swing[2, :, joint] = -0.3 * w**2 * np.sin(w * t)
    tau = load_robot("ur10").with_payload(LOAD).torque(*swing)
    more = (Sample.of_joints(*row) for row in zip(10 + t, *swing, tau, strict=True))
    after = direct._advice(direct._drained(fed(direct, more, state)))
    without_causes = after.evidence.body_covariance[0, 0]
    assert np.sqrt(without_causes) == pytest.approx(promised, rel=0.15)
    assert promised < np.sqrt(answer.evidence.covariance[0, 0])


def test_shares_are_told_without_exponents_and_no_promise_is_worse_than_all(direct):
    statuses = []
    for load in ("LIGHT", None):
        state = direct.init()
        for i, sample in enumerate(stream(load=load)[:150]):
            state = direct.step(state, sample)
            statuses += [direct.estimate(state, physical=False).status] if i % 5 == 4 else []
    promises = [
        float(share) for share in re.findall(r"would help most \(to (\S+) %\)", " ".join(statuses))
    ]
    assert promises
    assert max(promises) <= 100
    assert any(
        "cannot be distinguished from zero" in words and "would help most" in words
        for words in statuses
    )
    assert not re.search(r"e[+-]\d+ %", " ".join(statuses))


def test_a_change_is_seen_soon_and_the_arm_stays_known(direct):
    before = fed(direct, stream())
    state, seen_s = before, None
    for sample in stream(4, "LIGHT", 6, 10.0):
        state = direct.step(state, sample)
        if seen_s is None and state.history:
            seen_s = sample.t
    assert seen_s - 10.0 < 0.5
    (episode,) = state.history
    assert episode.end_s == pytest.approx(10.0, abs=0.25)
    assert episode.vector[0] == pytest.approx(3.5, abs=4 * np.sqrt(episode.covariance[0, 0]))
    found = direct.estimate(state, physical=False)
    assert found.body.mass == pytest.approx(1.0, abs=4 * found.std[0])
    assert found.std[0] < 0.02
    assert f"payload 2, since {episode.end_s:.2f} s" in found.status
    arm = slice(10 + direct._rows.friction, None)
    assert (
        np.linalg.norm(state.known.inverse[arm, arm], axis=1)
        <= np.linalg.norm(direct._prior.inverse[arm, arm], axis=1) + 1e-12
    ).all()


@pytest.mark.parametrize(("load", "seed"), [("LOAD", 0), ("LIGHT", 0), ("LIGHT", 1)])
def test_a_part_that_is_taken_at_rest_is_seen_when_the_arm_starts_softly(direct, load, seed):
    """It creeps at first, which shows nothing for sure, and must not hide what comes after."""
    robot, rng = load_robot("ur10"), np.random.default_rng(seed)
    b = rng.normal(size=(6, 3))
    b[:, 2] = -(b[:, 0] + 2 * b[:, 1]) / 3  # neither speed nor acceleration at the start
    soft = FourierTrajectory(np.zeros((6, 3)), (0.3 - 0.1 * seed) * b, np.zeros(6), 6.0)
    state = fed(direct, stream(load=None, seed=7))
    t = np.arange(0, 5, 1 / RATE_HZ)
    q, v, a = soft.at(np.maximum(t - 1.0, 0.0))
    v, a = v * (t > 1.0)[:, None], a * (t > 1.0)[:, None]
    tau = robot.with_payload(BODIES[load]).torque(q, v, a) + 0.5 * rng.normal(size=q.shape)
    state = fed(
        direct, (Sample.of_joints(*row) for row in zip(t + 10.0, q, v, a, tau, strict=True)), state
    )
    assert len(state.history) == 1
    assert 10.9 < state.history[0].end_s < 12.0
    found = direct.estimate(state, physical=False)
    assert abs(found.mass - BODIES[load].mass) < 3 * found.std[0]
    causes = found.shares.get("scale", 0.0) + found.shares.get("force", 0.0)
    without_causes = found.std[0] * np.sqrt(1 - causes)
    assert without_causes < 0.1 * BODIES[load].mass
    assert state.spread.inflation.max() < 1.5  # what the part did before it was seen is no noise


def test_the_statistic_after_a_rest_counts_twice(direct):
    """It is the statistic of all samples since, by the noise before the rest, twice."""
    posture = stream()[-1].motion[0]
    tau = load_robot("ur10").with_payload(LOAD).torque(posture, np.zeros(6), np.zeros(6))
    still = [
        Sample.of_joints(10 + i / RATE_HZ, posture, *np.zeros((2, 6)), tau) for i in range(100)
    ]
    assert fed(direct, still).rest.window == 0  # nothing was known before
    moved = stream(4, "LOAD", 6, 11.0)[:40]
    before = fed(direct, stream())
    resting = fed(direct, still, before)
    assert len(before.earlier) > 3
    assert resting.rest.window == before.earlier[0].window  # the window after it may hold the stop
    state = fed(direct, moved, resting)
    assert state.rest is not None
    friction_std = direct._friction_change
    rest, statistic = after_rest(state.rest, state.window, friction_std)
    together = state.rest.plus(state.window)
    once = change_statistic(together, friction_std)
    assert once > 0.1
    assert statistic == pytest.approx(2 * once / noise_since(together))
    np.testing.assert_array_equal(rest.since.payload, together.since.payload)


def test_a_dropped_part_leaves_a_payload_of_nothing(direct):
    state = fed(direct, (*stream(), *stream(4, None, 7, 10.0)))
    assert len(state.history) == 1
    found = direct.estimate(state, physical=False)
    assert abs(found.unconstrained.mass) < 4 * found.std[0]
    if found.unconstrained.mass < 1.96 * found.std[0]:
        assert found.verdict.has(DoubtKind.NOTHING_CARRIED)


def test_without_a_change_none_is_seen(direct):
    parts = (s for k in range(6) for s in stream(3 + k % 3, "LOAD", 20 + k, 10.0 * k))
    assert not fed(direct, parts).history


def test_an_arm_that_brakes_is_no_change_of_payload(direct):
    """Friction just before a stop is arbitrary; the next full window is tested again."""
    state = fed(direct, stream()[:705])  # a window begins here
    odd = np.array([0, 15.0, 10.0, 0, 3.0, 0])
    still = np.zeros(6)
    for i, sample in enumerate(stream()[705:790]):
        braking = sample._replace(effort=sample.effort + odd)
        resting = Sample.of_joints(
            sample.t, stream()[715].motion[0], still, still, sample.effort + odd
        )
        state = direct.step(state, braking if i < 10 else resting)
    assert not state.history
    assert len(fed(direct, stream(3, None)[790:], state).history) == 1  # dropped while it stood


def test_a_joint_that_creeps_with_other_friction_is_no_change_of_payload(direct):
    """Its Coulomb friction is off, just above the speed below which torques do not count."""
    robot = load_robot("ur10").with_payload(LOAD)
    part = samples(robot, 5, 3)
    q, v, a = part.q.copy(), part.v.copy(), part.a.copy()
    creeps = slice(500, 550)
    v[creeps, 3], a[creeps, 3] = 0.011, 0.0
    tau = part.tau + robot.torque(q, v, a) - robot.torque(part.q, part.v, part.a)
    tau[creeps, 3] += 1.0 * robot.drive.coulomb[3]
    rows = [Sample.of_joints(*row) for row in zip(part.t, q, v, a, tau, strict=True)]
    state = fed(direct, rows)
    assert not state.history
    assert state.unexplained.inflation.max() > 1.2  # no payload explains it
    found = direct.estimate(state, physical=False)
    assert found.body.mass == pytest.approx(LOAD.mass, abs=3 * found.std[0])


@pytest.mark.parametrize("coupled", [False, True])
def test_friction_of_slow_drives_adds_what_a_torque_of_that_size_would(coupled):
    rng = np.random.default_rng(4)
    n, k = 3, 5
    std, weights, v = rng.uniform(1, 2, n), rng.uniform(1, 3, n), rng.normal(size=(k, n))
    U = np.eye(n) + (np.triu(rng.normal(size=(n, n)), 1) if coupled else 0.0)
    payload = rng.normal(size=(k, n, 4))
    pull = Creep(std, 0.3, weights, Transmission(U)).pull(payload, v)
    for drive in range(n):
        speed = v @ U[drive]
        for direction in (1, -1):
            size = std[drive] * np.minimum(1.0, 0.3 / np.abs(speed)) * (np.sign(speed) == direction)
            torque = size[:, None] * U[drive] * weights  # of the joints, over their noise
            expected = np.tensordot(payload, torque, axes=([0, 1], [0, 1]))
            np.testing.assert_allclose(pull[:, 2 * drive + (direction < 0)], expected, atol=1e-12)


def test_restarting_is_exact_marginalisation_of_the_payload(direct):
    known = direct._drained(fed(direct, stream())).known
    fresh = known.restarted(np.full(direct._rows.friction, 1e-9))
    covariances = [each.inverse for each in (known, fresh)]
    old, new = (S @ S.T for S in covariances)
    np.testing.assert_allclose(new[10:, 10:], old[10:, 10:], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(fresh.solution[10:], known.solution[10:], rtol=1e-6, atol=1e-9)
    assert np.diag(new)[:10].min() > 1e6
    wider = known.restarted(np.full(direct._rows.friction, 0.5))
    S = wider.inverse
    friction = slice(10, 10 + direct._rows.friction)
    np.testing.assert_allclose(np.diag(S @ S.T)[friction], np.diag(old)[friction] + 0.25, rtol=1e-6)


def test_forgetting_follows_a_payload_that_changes_and_keeps_the_arm():
    parts = (*stream(), *stream(4, "LIGHT", 6, 10.0))
    errors = []
    for forgetting_s in (None, 3.0):
        options = TorqueTrackerOptions(forgetting_s=forgetting_s, alarm=None)
        estimator = TorqueTracker(model(), "measured", options=options)
        state = fed(estimator, parts)
        found = estimator.estimate(state, physical=False)
        errors.append(abs(found.unconstrained.mass - 1.0))
    assert errors[1] < 0.5 * errors[0]
    arm = slice(10 + estimator._rows.friction, None)
    known = [
        np.linalg.norm(each.inverse[arm, arm], axis=1) for each in (estimator._prior, state.known)
    ]
    assert (known[1] <= known[0] + 1e-12).all()


@pytest.mark.thorough
def test_long_forgetting_without_excitation_stays_finite():
    estimator = TorqueTracker(model(), "measured", options=TorqueTrackerOptions(forgetting_s=0.5))
    state = fed(estimator, stream())
    posture = np.array([0.3, -1.2, 0.8, -0.5, 0.4, 0.2])
    w = np.array([0, 0, 0, 0, 0, 1.0])
    for i in range(4000):
        t = 10 + i / RATE_HZ
        state = estimator.step(
            state,
            Sample.of_joints(t, posture + w * np.sin(t), w * np.cos(t), -w * np.sin(t), np.ones(6)),
        )
    assert all(np.isfinite(factor).all() for factor in (state.known.R, state.x))
    assert np.isinf(estimator.estimate(state).std[0])


def test_correlated_noise_widens_the_interval(direct):
    rng = np.random.default_rng(3)
    white = rng.normal(size=(1000, 6))
    slow = np.empty_like(white)
    slow[0] = white[0]
    for i in range(1, len(white)):
        slow[i] = 0.95 * slow[i - 1] + np.sqrt(1 - 0.95**2) * white[i]
    parts = [s._replace(effort=s.effort + 1.5 * e) for s, e in zip(stream(), slow, strict=True)]
    wide, narrow = (
        direct.estimate(fed(direct, parts), physical=False),
        direct.estimate(fed(direct, stream()), physical=False),
    )
    assert wide.std[0] > 2 * narrow.std[0]
    assert (wide.noise > narrow.noise).all()


def test_the_spread_of_white_residuals_is_one_and_of_correlated_ones_their_widening():
    rng = np.random.default_rng(0)
    white = correlated = ResidualSpread.nothing(2)
    for _ in range(3000):
        e = rng.normal(size=(24, 2))
        white = white.with_window(e.sum(axis=0), (e**2).sum(axis=0), np.full(2, 24))
        e = np.repeat(rng.normal(size=(6, 2)), 4, axis=0)
        correlated = correlated.with_window(e.sum(axis=0), (e**2).sum(axis=0), np.full(2, 24))
    np.testing.assert_allclose(white.inflation, 1.0, atol=0.2)
    np.testing.assert_allclose(correlated.inflation, 4.0, rtol=0.35)


@pytest.mark.parametrize(("samples", "joint"), [(3, 1), (61, 2), (61, 4)])
def test_little_that_is_known_and_much_noise_leave_numbers_that_are_numbers(direct, samples, joint):
    """Variances of 1e8 beside small ones, and one joint 10^4 times as noisy as assumed."""
    state, spread, one = (
        fed(direct, stream()[:samples]),
        ResidualSpread.nothing(6),
        1e4 * np.eye(6)[joint],
    )
    for _ in range(40):
        spread = spread.with_window(24 * one, 24 * one**2, np.full(6, 24))
    narrow = np.diag(direct.estimate(state, physical=False).covariance)
    wide = np.diag(direct.estimate(state._replace(spread=spread), physical=False).covariance)
    assert (wide >= 0.999 * narrow).all()


def test_residuals_that_are_plainly_wider_are_soon_believed():
    rng = np.random.default_rng(4)
    spread = ResidualSpread.nothing(2)
    for _ in range(12):
        e = 5 * np.repeat(rng.normal(size=(1, 2)), 24, axis=0)  # a window that hangs together
        spread = spread.with_window(e.sum(axis=0), (e**2).sum(axis=0), np.full(2, 24))
    assert (spread.inflation > 0.25 * 24 * 25).all()
    assert (spread.inflation < 4 * 24 * 25).all()


def test_noise_of_another_day_is_no_change_of_payload(direct):
    """Slow noise that the model lacks widens the interval from the start."""
    kept = np.exp(-1 / (0.1 * RATE_HZ))
    for seed in (11, 12):
        rng = np.random.default_rng(seed)
        slow = np.zeros(6)
        parts = []
        for sample in stream():
            slow = kept * slow + np.sqrt(1 - kept**2) * rng.normal(size=6)
            parts.append(sample._replace(effort=sample.effort + 2.0 * slow))
        state = fed(direct, parts)
        assert not state.history
        found = direct.estimate(state, physical=False)
        assert found.unconstrained.mass == pytest.approx(3.5, abs=4 * found.std[0])


def test_slow_noise_is_restored_where_a_short_run_has_swallowed_it():
    """Runs of one and of four periods with noise that remembers: both show the same noise."""
    kept, n = np.exp(-1 / (0.05 * RATE_HZ)), 6
    robot, (q, v, a) = load_robot("ur10"), motion(1)
    truth = 0.5 * np.sqrt((1 + kept) / (1 - kept))
    plain, ours = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        noise = np.empty((len(q), n))
        x = rng.normal(size=n)
        for row in noise:
            x = kept * x + np.sqrt(1 - kept**2) * rng.normal(size=n)
            row[:] = 0.5 * x
        arm = identify(
            robot,
            Samples(q, v, a, robot.torque(q, v, a) + noise, RATE_HZ, robot.joint_names, "measured"),
        )
        plain.append(arm.estimate.noise * np.sqrt(arm.estimate.inflation))
        ours.append(slow_noise(arm))
    assert np.mean(np.square(plain)) < 0.95 * truth**2
    assert (
        truth**2 < np.mean(np.square(ours)) < 1.7 * truth**2
    )  # and the margin for weights that are guessed
    assert (np.array(ours) > plain).all()


def test_a_joint_loses_the_noise_that_its_share_of_the_parameters_has_fitted():
    """The accurate joint determines most of what both joints have in common."""
    robot = load_robot("planar2r")
    q, v, a = (x[::20] for x in motion(1, "planar2r"))
    noise = np.random.default_rng(2).normal(size=q.shape) * [1.0, 0.01]
    part = Samples(q, v, a, robot.torque(q, v, a) + noise, 5.0, robot.joint_names, "measured")
    arm = identify(robot, part)
    arm = replace(arm, estimate=replace(arm.estimate, inflation=np.ones(2)))
    A = arm.rows(part).Y / arm.estimate.noise[:, None]
    inverse = np.linalg.inv(np.einsum("kjp,kjq->pq", A, A))
    fitted = np.einsum("kjp,pq,kjq->j", A, inverse, A)
    left = len(q) - fitted
    even = len(q) - fitted.mean()
    expected = arm.estimate.noise * np.sqrt(np.maximum(even / left, 1.0))
    np.testing.assert_allclose(slow_noise(arm), expected, rtol=1e-6)


def test_white_noise_that_is_known_is_left_alone():
    arm = model()
    known = replace(arm.estimate, inflation=np.ones(6))
    far = arm.factor.rows.sum() / (arm.factor.rows.sum() - 2 * len(arm.estimate.value))
    white = slow_noise(replace(arm, estimate=known))
    assert (white >= known.noise - 1e-12).all()
    assert (white < np.sqrt(far) * known.noise).all()


def test_drift_and_common_errors_are_those_of_batch_and_say_what_no_motion_can_show():
    drive = load_robot("ur10").drive
    wrong = replace(drive, gain_std=0.01 * drive.gain, gain_common=0.02, gain_drift=0.003)
    arm = replace(model(), robot=load_robot("ur10").with_drive(wrong))
    part = samples(load_robot("ur10").with_payload(LOAD), 5, 3)
    batch = weigh(arm, part)
    estimator = TorqueTracker(arm, "measured", batch.noise, TorqueTrackerOptions(alarm=None))
    state = fed(estimator, stream())
    online = estimator.estimate(state)
    np.testing.assert_allclose(online.gain_error, batch.gain_error, rtol=1e-5, atol=1e-9)
    for name in ("gains", "drift"):
        parts = [found.shares[name] * found.covariance[0, 0] for found in (online, batch)]
        assert parts[0] == pytest.approx(parts[1], rel=1e-5)
    assert 0 < online.shares["friction"] < 0.2
    answer = estimator._advice(estimator._drained(state))
    assert 0.04 < answer.reachable < answer.half_width
    assert f"no motion brings it below {100 * answer.reachable:.2g} %" in online.status
    assert "for the gains" in online.status
    assert "the mass is not known to 1 %, which no motion can show" in online.status
    assert "most of the interval of the mass comes from drive gains" in online.status
    assert "is requested" not in online.status
    free = replace(arm, run_spread=None)  # friction of the day is not known beforehand
    estimator = TorqueTracker(free, "measured", batch.noise, TorqueTrackerOptions(alarm=None))
    early = estimator.estimate(fed(estimator, stream()[:100]))
    assert "no motion brings it below 5 %, for the gains; a swing of wrist_3_joint" in early.status


@pytest.mark.thorough
def test_uncertain_gains_widen_as_a_simulated_error_of_a_gain_does():
    """d_j against the answer when empty and loaded torques of one joint are both scaled."""
    step, j = 1e-4, 1

    def answer(scale, gain_std):
        robot = load_robot("ur10")
        robot = robot.with_drive(replace(robot.drive, gain_std=gain_std))
        factors = np.ones(6)
        factors[j] += scale
        parts = [samples(load_robot("ur10"), seed, seed + 1) for seed in (0, 1)]
        arm = identify(robot, [replace(part, tau=part.tau * factors) for part in parts])
        estimator = TorqueTracker(
            arm, "measured", 0.5 * np.ones(6), TorqueTrackerOptions(alarm=None)
        )
        state = fed(estimator, [s._replace(effort=s.effort * factors) for s in stream()])
        return estimator._advice(estimator._drained(state)).evidence

    gain = load_robot("ur10").drive.gain
    relative = 0.01 * (np.arange(6) == j)
    exact, sure, moved = (
        answer(0.0, gain * relative),
        answer(0.0, None),
        answer(step, None),
    )
    added = np.sqrt(np.diag(exact.covariance - sure.covariance))[:4]
    np.testing.assert_allclose(
        added,
        0.01 * np.abs((moved.plain.vector - sure.plain.vector)[:4]) / step,
        rtol=0.1,
        atol=2e-4,
    )


def test_an_arm_that_contradicts_its_model_is_said_and_widens(direct):
    other = load_robot("ur10").with_payload(LOAD)
    part = samples(other, 5, 3)
    tau = np.array(part.tau)
    tau[:, 1] *= 1.3  # say a gain that is wrong since the arm was identified
    rows = [Sample.of_joints(*row) for row in zip(part.t, part.q, part.v, part.a, tau, strict=True)]
    estimator = TorqueTracker(model(), "measured", options=TorqueTrackerOptions(alarm=None))
    state = fed(estimator, rows)
    answer = estimator._advice(estimator._drained(state))
    assert answer.evidence.contradiction > 1.5
    found = estimator.estimate(state, physical=False)
    assert found.std[0] > 1.4 * direct.estimate(fed(direct, stream()), physical=False).std[0]
    assert found.verdict.has(DoubtKind.CONTRADICTS_MODEL) == (answer.evidence.contradiction > 3)


def test_a_negative_mass_is_not_to_be_trusted():
    robot = load_robot("ur10")
    heavy = identify(robot, [samples(robot.with_payload(LOAD), seed, seed + 1) for seed in (0, 1)])
    estimator = TorqueTracker(heavy, "measured")
    found = estimator.estimate(fed(estimator, stream(3, None)), physical=False)
    assert found.body.mass < 0
    assert found.verdict.has(DoubtKind.NEGATIVE_MASS)
    assert "the mass is -3." in found.status


def test_when_the_mass_is_known_the_least_known_number_gets_the_advice():
    estimator = TorqueTracker(model(), "measured", options=TorqueTrackerOptions(accuracy=0.5))
    state = fed(estimator, stream()[:300])
    answer = estimator._advice(estimator._drained(state))
    which = answer.least_known
    assert which >= 4  # an inertia, which slow motion hardly shows
    q = stream()[299].motion[0]
    promised = answer.best_motion(estimator._rows, q, which)[1]
    others = [answer.best_motion(estimator._rows, q, k)[1] for k in range(10)]
    assert promised == others[which] < np.sqrt(answer.evidence.covariance[which, which])
    status = estimator.estimate(state, physical=False).status
    assert status.startswith("converged")
    if "least known" in status:
        assert PARAMETER_NAMES[which] in status


@pytest.mark.thorough
@pytest.mark.parametrize("friction", ["load", "presliding-load"])
def test_friction_that_grows_with_the_load_is_followed(friction):
    robot = load_robot("ur10")
    drive = replace(
        robot.drive, sign_width=0.05, load_coulomb=np.full(6, 0.05), exponent=np.ones(6)
    )
    robot = robot.with_drive(drive)
    law = FrictionLaw.named(friction, 6)
    arm = identify(robot, [samples(robot, seed, seed + 1, 0.2) for seed in (0, 1)], friction=law)
    loaded = samples(robot.with_payload(LOAD), 5, 3, 0.2)
    batch = weigh(arm, loaded)
    estimator = TorqueTracker(arm, "measured", batch.noise, TorqueTrackerOptions(alarm=None))
    rows = zip(loaded.t, loaded.q, loaded.v, loaded.a, loaded.tau, strict=True)
    found = estimator.estimate(
        fed(estimator, (Sample.of_joints(*row) for row in rows)), physical=False
    )
    assert found.unconstrained.mass == pytest.approx(batch.unconstrained.mass, abs=batch.std[0])


def test_refusals():
    with pytest.raises(
        InvalidSamples, match="fitted to measured motion, the stream holds commanded"
    ):
        TorqueTracker(model(), "commanded")
    with pytest.raises(InvalidSamples, match="noise must be 6 positive numbers"):
        TorqueTracker(model(), "measured", np.zeros(6))
    with pytest.raises(InvalidSamples, match="window_s must be positive, got 0"):
        TorqueTrackerOptions(window_s=0)


@pytest.mark.thorough
def test_friction_that_no_row_had_shown_is_not_taken_for_noise():
    """A joint that creeps at first leaves its friction law open, which is not a residual."""
    assets = resources.files("steelyard.cli") / "assets"
    empty, loaded = (sy.read(str(assets / f"ur10_{case}.npz")) for case in ("empty", "loaded"))
    arm = sy.identify(sy.load_robot("ur10"), empty, friction="smooth-power")
    found = sy.track(loaded, model=arm).payload
    assert found.verdict.ok
    assert found.mass == pytest.approx(2.5, abs=2 * found.std[0])
    assert found.com_std.max() < 1.5e-3


@pytest.mark.parametrize("at", range(5))
def test_a_spike_is_found_anywhere_in_a_chunk_and_a_step_is_none(rng, at):
    """Torques have one more before and after the chunk; its first and last count like others."""
    smooth = 30.0 * np.sin(np.linspace(0.0, 0.3, 7))[:, None] * np.ones(2)
    spike = np.zeros((7, 2))
    spike[at + 1, 1] = 200.0
    residual = 5.0 + rng.normal(size=(5, 2))
    found = TorqueRows.spikes(None, residual + spike[1:-1], smooth + spike)
    assert found.tolist() == [k == at for k in range(5)]
    step = np.cumsum(spike, axis=0)
    assert not TorqueRows.spikes(None, residual + step[1:-1], smooth + step).any()
    offset = residual + 190.0  # of all samples: a residual like those around it is no spike
    assert not TorqueRows.spikes(None, offset + spike[1:-1], smooth + spike).any()


def test_what_rows_tell_of_one_joint_for_the_first_time_is_no_residual_of_it(direct):
    """One joint alone may excite what was unknown; the mean of all joints need not show it."""
    known = fed(direct, stream()[:408])
    offset = 10 + model().estimate.parameters.names.index("B3")
    x = known.x.copy()
    x[offset] += 6.0  # seven times the noise of the joint, as before its offset was known
    after = fed(direct, stream()[408:420], known._replace(x=x))
    assert after.window.rows[2] >= 5
    assert after.window.squares[2] < 3.0 * after.window.rows[2]
