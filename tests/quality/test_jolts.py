"""Jolts and torques that were not measured: found, left out of fits, and said."""

from dataclasses import replace

import numpy as np
import pytest

from conftest import lively_motion
from steelyard.identification import identify
from steelyard.quality import check
from steelyard.quality._jolts import _NEAR_STEPS, _near
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.signals import prepare
from steelyard.verdict import DoubtKind

RATE_HZ = 100.0
ROBOT = load_robot("ur5e")


def run(seed, robot=ROBOT, noise=0.2):
    """A motion of all joints whose torques have friction that jumps at reversals, and noise."""
    q, v, a = lively_motion(robot, seed)
    tau = robot.torque(q, v, a) + noise * np.random.default_rng(seed).normal(size=q.shape)
    t = np.arange(len(q)) / RATE_HZ
    return Recording(t=t, q=q, tau=tau, joint_names=robot.joint_names)


def jolted(recording, at_s, size, joints):
    """Torques that ring for a tenth of a second."""
    t = recording.t - at_s
    ringing = np.where((t >= 0) & (t < 0.12), np.cos(60 * t) * np.exp(-20 * t), 0.0)
    tau = recording.tau + size * ringing[:, None] * joints
    return replace(recording, tau=tau)


def found_kinds(recording):
    return [finding.kind for finding in check(recording).findings]


@pytest.mark.parametrize("seed", range(6))
def test_reversals_and_noise_are_no_jolts(seed):
    assert "jolt" not in found_kinds(run(seed))


def test_a_jolt_is_found_where_it_is_and_its_rows_do_not_count():
    recording = jolted(run(1), 3.0, 25.0, [1, 1, 0.5, 0.3, 0.3, 0.0])
    (found,) = (f for f in check(recording).findings if f.kind == "jolt")
    assert found.severity == "warning"
    assert "rows from 2." in found.sentence
    assert 2.95 < found.place.t_s < 3.15
    samples = prepare(recording)
    usable = samples.mask[np.searchsorted(samples.t, [2.9, 3.0, 3.05, 3.1])]
    assert not usable.any()
    assert samples.mask[samples.t > 3.5].mean() > 0.7
    assert any("a jolt at" in words for words in samples.warnings)


def test_a_spike_in_one_joint_is_no_jolt():
    assert "jolt" not in found_kinds(jolted(run(1), 3.0, 25.0, [1, 0, 0, 0, 0, 0]))


@pytest.mark.parametrize("value", [0.0, -3.2, np.nan])
def test_the_rows_of_a_joint_without_torque_are_left_out(value):
    recording = run(1)
    tau = np.array(recording.tau)
    tau[:, 5] = value
    dead = replace(recording, tau=tau)
    (found,) = (f for f in check(dead).findings if f.kind == "unmeasured")
    assert found.place.joints == ("wrist_3_joint",)
    samples = prepare(dead)
    assert len(samples) == len(prepare(recording))
    assert not samples.mask[:, 5].any()
    model = identify(ROBOT, samples, friction="smooth")
    whole = identify(ROBOT, prepare(recording), friction="smooth")
    unknown = ~np.isfinite(model.estimate.std)
    names = np.array(model.estimate.parameters.names)
    assert set(names[unknown]) == {"Ia6", "Fc6", "Fv6", "B6"}
    change = (model.estimate.value - whole.estimate.value)[~unknown]
    assert (np.abs(change) < 4 * model.estimate.std[~unknown]).all()
    (doubt,) = (d for d in model.verdict.doubts if d.kind is DoubtKind.NOT_EXCITED)
    assert not doubt.blocks
    assert "without torques of wrist_3_joint" in doubt.words
    assert model.estimate.noise[5] == model.estimate.noise[:5].max()


def test_a_file_without_any_torque_is_still_refused():
    recording = replace(run(1), tau=np.zeros_like(run(1).tau))
    assert not check(recording).ok


def test_what_comes_before_a_step_counts_as_what_comes_after_it(rng):
    z = rng.uniform(size=(40, 3))
    np.testing.assert_array_equal(_near(z[::-1])[::-1], _near(z))
    one = np.zeros((40, 1))
    one[20] = 5.0
    around = np.arange(40)[:, None]
    np.testing.assert_array_equal(_near(one), 5.0 * (abs(around - 20) <= _NEAR_STEPS))
