"""Torques that come later than the motion: found, applied, kept and shown."""

import json
from dataclasses import replace

import numpy as np
import pytest

import steelyard as sy
from conftest import steelyard
from steelyard.errors import InvalidSamples
from steelyard.identification._lag import time_lags
from steelyard.inertia import InertialParameters
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.signals import Preparation, prepare, replay
from steelyard.trajectory import FourierTrajectory

ROBOT = load_robot("ur10")
LOAD = InertialParameters.from_com(3.5, [0.02, -0.03, 0.06], np.diag([0.02, 0.03, 0.025]))
NOISE = np.array([0.4, 0.6, 0.3, 0.1, 0.08, 0.06])
FRICTION = np.array([8.0, 9.0, 6.0, 1.5, 1.5, 1.0])
TRIMMED = Preparation(trim_s=0.5)


def recording(seed, lags=0.0, robot=ROBOT, seconds=20.0, rate_hz=125.0):
    """A run whose torques are those of `lags` ago."""
    series = FourierTrajectory.random(
        [0, -1.2, 1.0, 0, 0, 0],
        reach=[1.5] * 6,
        speed=[1.5] * 6,
        period_s=seconds,
        harmonics=10,
        seed=seed,
    )
    t = np.arange(0, seconds, 1 / rate_hz)
    tau = np.empty((len(t), 6))
    for j, lag in enumerate(np.resize(lags, 6)):
        q, v, a = series.at(t - lag)
        tau[:, j] = (robot.torque(q, v, a) + FRICTION * (np.sign(v) + 0.5 * v))[:, j]
    tau += NOISE * np.random.default_rng(seed).normal(size=tau.shape)
    q = np.round(series.at(t)[0] / 1e-6) * 1e-6
    return Recording(t=t, q=q, tau=tau, joint_names=ROBOT.joint_names)


@pytest.mark.thorough
@pytest.mark.parametrize("lag_s", [0.0, 0.004, 0.03])
def test_a_lag_is_found_and_the_payload_is_right_in_spite_of_it(lag_s):
    runs = [recording(k, lag_s) for k in (1, 2)]
    model = sy.identify(ROBOT, runs, friction="linear", preparation=TRIMMED)
    assert (model.lag_std < 1e-3).all()
    assert (np.abs(model.lag - lag_s) < 3 * model.lag_std).all()
    payload = sy.weigh(model, recording(3, lag_s, ROBOT.with_payload(LOAD)))
    z = (payload.unconstrained.vector - LOAD.vector) / payload.std
    assert np.abs(z).max() < 3.3
    assert payload.verdict.ok
    aware = replace(model.preparation, lag_s=(lag_s,) * 6)
    known = sy.identify(ROBOT, runs, friction="linear", preparation=aware)
    np.testing.assert_allclose(model.estimate.std, known.estimate.std, rtol=0.03)
    assert known.lag_std is None
    if lag_s == 0:
        assert not model.lag.any()
        np.testing.assert_array_equal(model.estimate.value, known.estimate.value)
    if lag_s == 0.03:
        blind = replace(model.preparation, lag_s=(0.0,) * 6)
        off = sy.identify(ROBOT, runs, friction="linear", preparation=blind)
        loaded = recording(3, lag_s, ROBOT.with_payload(LOAD))
        wrong, right = (sy.weigh(replace(m, run_spread=None), loaded) for m in (off, model))
        assert wrong.std[0] > 4 * right.std[0]  # the rows near reversals suffer most, and are out


def test_joints_may_have_lags_of_their_own():
    lags = np.array([0.0, 0.02, 0.02, 0.0, 0.03, 0.0])
    found = time_lags(ROBOT, [prepare(recording(k, lags), TRIMMED) for k in (1, 2)])
    assert (np.abs(found.value - lags) < 3.5 * found.std).all()
    assert (found.value[lags > 0] > 0.01).all()


@pytest.mark.thorough
def test_a_lag_of_two_hundred_milliseconds_is_found_too():
    model = sy.identify(ROBOT, [recording(1, 0.2)], friction="linear", preparation=TRIMMED)
    assert model.lag == pytest.approx(np.full(6, 0.2), abs=2e-3)
    assert model.verdict.ok


@pytest.mark.thorough
def test_a_joint_that_rests_shows_no_lag():
    run = recording(1, 0.02)
    still = replace(run, q=np.where(np.arange(6) == 5, 0.1, run.q))
    found = time_lags(ROBOT, [prepare(still, TRIMMED)])
    assert found.value[:5] == pytest.approx(0.02, abs=2e-3)
    short = prepare(run.rows(slice(0, 60)))
    found = time_lags(ROBOT, [short])
    assert not found.value.any()
    model = replace(sy.identify(ROBOT, [recording(1)], friction="linear"), lag_std=found.std)
    assert model.lag_sentence.endswith("could not be estimated.")


def test_torques_at_the_noise_level_say_nothing_about_lags():
    """A wrist whose torque is noise, correlated in time, gets no lag of its own."""
    runs = []
    for seed in (1, 2):
        run = recording(seed, 0.004)
        noise = np.convolve(np.random.default_rng(seed).normal(size=len(run.t)), np.ones(9), "same")
        tau = run.tau.copy()
        tau[:, 5] = noise
        runs.append(prepare(replace(run, tau=tau), TRIMMED))
    found = time_lags(ROBOT, runs)
    assert np.ptp(found.value) == 0
    assert found.value == pytest.approx(np.full(6, 0.004), abs=5e-4)


def misfit_recording(seed):
    """Torques in time with the motion, but with friction and ripple that no law contains."""
    run = recording(seed, seconds=8.0)
    rng = np.random.default_rng(99)
    phase = rng.uniform(0, 6, 6)
    ripple = np.sin(3 * run.q + phase) + 0.5 * np.sin(7 * run.q + 2 * phase)
    return replace(run, tau=run.tau + FRICTION * ripple)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(1, 9))
def test_a_lag_that_only_fits_the_misfit_is_not_used(seed):
    found = time_lags(ROBOT, [prepare(misfit_recording(seed), TRIMMED)])
    assert not found.value.any()
    assert np.isfinite(found.std).all()


def test_a_lag_can_be_given():
    run = recording(1, 0.03)
    model = sy.identify(ROBOT, run, friction="linear", lag=0.01, preparation=TRIMMED)
    np.testing.assert_array_equal(model.lag, np.full(6, 0.01))
    assert model.lag_std is None
    none = sy.identify(ROBOT, run, friction="linear", lag=0.0, preparation=TRIMMED)
    assert not none.lag.any()
    with pytest.raises(InvalidSamples, match="`lag` is a number of seconds or 'auto', got 'late'"):
        sy.identify(ROBOT, run, lag="late")
    with pytest.raises(InvalidSamples, match=r"`lag` and `preparation\.lag_s` both say"):
        sy.identify(ROBOT, run, lag=0.0, preparation=Preparation(lag_s=(0.0,) * 6))


def test_torques_are_taken_later():
    run = recording(1)
    line = replace(run, tau=np.outer(run.t, np.arange(1, 7)))
    later = prepare(line, Preparation(cutoff_hz=10.0, lag_s=(0.003, 0.003, 0, 0, -0.011, 0)))
    inside = later.t + 0.003 <= run.t[-1]
    np.testing.assert_allclose(later.tau[inside, 0], later.t[inside] + 0.003, atol=1e-12)
    np.testing.assert_allclose(later.tau[2:, 4], 5 * (later.t[2:] - 0.011), atol=1e-12)
    np.testing.assert_allclose(later.tau[:, 3], 4 * later.t, atol=1e-12)
    assert not later.mask[-1, 0]
    assert not later.mask[0, 4]
    assert "torques taken 3, 3, 0, 0, -11, 0 ms later than the motion" in later.made_by
    with pytest.raises(InvalidSamples, match="lag_s has 2 numbers, the recording has 6 joints"):
        prepare(run, Preparation(lag_s=(0.0, 0.1)))
    with pytest.raises(InvalidSamples, match="'lag_s\\[0\\]' must be a finite number"):
        Preparation(lag_s=(np.nan,))


def test_a_stream_takes_torques_later_too():
    how = Preparation(cutoff_hz=10.0, lag_s=(0.003, 0.012, 0, 0, -0.011, 0))
    run = recording(1, seconds=6.0)
    batch = prepare(run, how)
    online = [sample for sample in replay(run, how) if np.isfinite(sample.t)]
    assert len(online) > 600
    for sample in online[100:-100:50]:
        k = round((sample.t - batch.start_s) * batch.rate_hz)
        np.testing.assert_allclose(sample.effort, batch.tau[k], atol=1e-9)
        np.testing.assert_allclose(sample.motion[0], batch.q[k], atol=1e-4)


@pytest.mark.thorough
def test_a_lag_is_kept_and_shown(tmp_path):
    for k in (1, 2):
        run = recording(k, 0.03)
        names = [f"{kind}_{j}" for kind in ("q", "tau") for j in range(1, 7)]
        table = np.column_stack([run.t, run.q, run.tau])
        header = ",".join(["t", *names])
        np.savetxt(tmp_path / f"run{k}.csv", table, delimiter=",", header=header, comments="")
    done = steelyard(
        "identify",
        "ur10",
        "run1.csv",
        "run2.csv",
        "-o",
        "model.json",
        "--friction",
        "linear",
        cwd=tmp_path,
    )
    model = sy.DynamicModel.load(tmp_path / "model.json")
    assert model.lag_sentence in done.stdout
    assert model.lag_sentence.startswith("Torques lag behind the motion by ")
    again = sy.DynamicModel.from_dict(
        json.loads(json.dumps(model.to_dict(), default=lambda x: x.tolist()))
    )
    np.testing.assert_array_equal(again.lag, model.lag)
    np.testing.assert_array_equal(again.lag_std, model.lag_std)
    assert again.preparation == model.preparation
    as_json = steelyard(
        "identify", "ur10", "run1.csv", "run2.csv", "-o", "m.json", "--friction", "linear",
        "--json",
        "--report", "m.html", cwd=tmp_path,
    )  # fmt: skip
    facts = json.loads(as_json.stdout)
    assert facts["lag_s"] == pytest.approx([0.03] * 6, abs=1e-3)
    typeset = model.lag_sentence.replace("+-", "±")
    assert typeset in (tmp_path / "m.html").read_text()
