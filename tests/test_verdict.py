"""Verdicts: coded doubts, judged once, the same for a batch and sample by sample."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.identification import essential, identify
from steelyard.inertia import InertialParameters
from steelyard.payload import Evidence, Payload, judge
from steelyard.recording import Samples
from steelyard.robot import load_robot
from steelyard.signals import replay
from steelyard.torque import weigh
from steelyard.torque.tracking import TorqueTracker, TorqueTrackerOptions
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import Doubt, DoubtKind, Verdict, together

LOAD = InertialParameters.from_com(2.0, [0.01, 0.02, 0.05], 0.01 * np.eye(3))
TOUCHED = Doubt(DoubtKind.CONTRADICTS_MODEL, "did something touch it?")
ASIDE = Doubt(DoubtKind.NEGATIVE_FRICTION, "friction is negative", blocks=False)


def run(robot, seed, noise=0.3):
    q, v, a = FourierTrajectory.load("xu2024").at(np.arange(0, 10, 0.01))
    tau = robot.torque(q, v, a) + noise * np.random.default_rng(seed).normal(size=q.shape)
    return Samples(q, v, a, tau, 100.0, robot.joint_names, "measured", made_by=("made up",))


@pytest.fixture(scope="module")
def robot():
    return load_robot("ur10")


@pytest.fixture(scope="module")
def model(robot):
    return identify(robot, [run(robot, 0), run(robot, 1)])


def online(model, samples):
    estimator = TorqueTracker(model, "measured", options=TorqueTrackerOptions(alarm=None))
    state = estimator.init()
    for sample in replay(samples):
        state = estimator.step(state, sample)
    return estimator.estimate(state)


def doubt_kinds(payload):
    return {doubt.kind for doubt in payload.verdict.blocking}


# --- the value


def test_a_verdict_is_ok_unless_a_doubt_blocks():
    assert Verdict("fine").ok
    assert Verdict("fine", (ASIDE,)).ok
    doubted = Verdict("fine", (ASIDE,)).doubted(TOUCHED, ASIDE)
    assert not doubted.ok
    assert doubted.doubts == (ASIDE, TOUCHED)
    assert doubted.blocking == (TOUCHED,)
    assert doubted.has(DoubtKind.CONTRADICTS_MODEL)
    assert not doubted.has(DoubtKind.GAINS, DoubtKind.NOT_EXCITED)


def test_sentences_derive_from_the_doubts():
    assert str(Verdict()) == "There are no doubts."
    assert str(Verdict("all is known", (ASIDE,))) == "All is known; friction is negative."
    assert str(Verdict("", (TOUCHED,))) == "Do not use this: did something touch it?"
    both = together("two", [Verdict("a", (ASIDE,)), Verdict("b", (TOUCHED, ASIDE))])
    assert str(both) == "Do not use this: did something touch it?; two; friction is negative."


def test_a_verdict_survives_a_round_trip_as_plain_values():
    verdict = Verdict("fine", (ASIDE, TOUCHED))
    plain = verdict.to_dict()
    assert plain["ok"] is False
    assert plain["doubts"][1] == {
        "kind": "contradicts_model",
        "words": "did something touch it?",
        "blocks": True,
    }
    assert Verdict.from_dict(plain) == verdict


# --- the judge


def test_where_no_real_body_is_near_the_plain_estimate_is_the_answer():
    plain = InertialParameters.from_vector([2.0, 0, 0, 0.1, -0.5, 0, 0.01, 0, 0, 0.01])
    body, verdict = judge(Evidence(plain, 1e-4 * np.eye(10), np.zeros(10, bool)))
    assert not verdict.ok
    assert verdict.has(DoubtKind.NOT_PHYSICAL)
    assert body is plain


def test_unknown_numbers_block_unless_the_method_cannot_see_them():
    unknown = np.arange(10) >= 4
    covariance = np.diag(np.where(unknown, np.inf, 1e-4))
    plain = InertialParameters.from_com(2.0, [0, 0, 0.1], np.zeros((3, 3)))
    for expected in ("", "rest shows no inertia"):
        _, verdict = judge(Evidence(plain, covariance, unknown, expected=expected))
        assert verdict.has(DoubtKind.NOT_EXCITED)
        assert verdict.ok == bool(expected)


# --- batch and sample by sample agree


def test_nothing_carried_is_the_same_doubt_in_a_batch_and_online(robot, model):
    found = [weigh(model, run(robot, 5)), online(model, run(robot, 5))]
    for payload in found:
        assert abs(payload.mass) < 1.96 * payload.std[0]
        assert doubt_kinds(payload) == {DoubtKind.NOTHING_CARRIED}


def test_a_contradiction_is_the_same_doubt_in_a_batch_and_online(robot, model):
    links = list(robot.links)
    links[2] = links[2] + InertialParameters.from_com(
        0.3, [0.3, 0.2, 0.1], 0.01 * np.eye(3), links[2].frame
    )
    other = run(robot.with_links(links).with_payload(LOAD), 6)
    for payload in (weigh(model, other), online(model, other)):
        assert DoubtKind.CONTRADICTS_MODEL in doubt_kinds(payload)


def test_a_doubted_model_makes_doubted_payloads(robot, model):
    verdict = Verdict(doubts=(Doubt(DoubtKind.UNEXPLAINED_TORQUE, "much stays unexplained"),))
    doubted = replace(model, estimate=replace(model.estimate, verdict=verdict))
    loaded = run(robot.with_payload(LOAD), 7)
    for payload in (weigh(doubted, loaded), online(doubted, loaded)):
        assert doubt_kinds(payload) == {DoubtKind.MODEL_DOUBTED}
        assert "much stays unexplained" in str(payload.verdict)
    for payload in (weigh(model, loaded), online(model, loaded)):
        assert payload.verdict.ok


def test_strange_residuals_are_the_same_doubt_in_a_batch_and_online(robot, model):
    loud = run(robot.with_payload(LOAD), 8, noise=6.0)
    for payload in (weigh(model, loud), online(model, loud)):
        assert DoubtKind.UNEXPLAINED_TORQUE in doubt_kinds(payload)


# --- what it once got wrong


def test_essential_keeps_the_doubts(robot):
    tilted = identify(robot, run(robot.with_gravity([0.0, 9.81, 0.0]), 0))
    assert not tilted.verdict.ok
    fewer = essential(tilted)
    assert fewer.verdict.doubts == tilted.verdict.doubts
    assert "essential parameters of" in fewer.verdict.summary


def test_the_numbers_of_a_payload_cannot_be_written_to(robot, model):
    covariance = np.eye(10)
    payload = Payload(LOAD, LOAD, covariance, np.ones(6), Verdict())
    covariance[0, 0] = 7.0
    assert payload.covariance[0, 0] == 1.0
    weighed = weigh(model, run(robot.with_payload(LOAD), 7))
    for array in (weighed.covariance, weighed.noise, payload.covariance):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
