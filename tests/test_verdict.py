"""Verdicts: coded doubts, judged once, the same for a batch and sample by sample."""

import inspect
import io
import sys
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from steelyard.cli.output import NEXT_ACTIONS
from steelyard.errors import InvalidValue
from steelyard.identification import essential, identify
from steelyard.inertia import InertialParameters
from steelyard.payload import Evidence, Payload, Quantity, judge
from steelyard.payload._headline import limiting_cause, variance_bars
from steelyard.payload._judgement import influential_joints, large_residual_doubt
from steelyard.recording import Samples
from steelyard.robot import load_robot
from steelyard.signals import replay
from steelyard.torque import weigh
from steelyard.torque.tracking import TorqueTracker, TorqueTrackerOptions
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import Aspect, Doubt, DoubtKind, Fitness, Verdict, together

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
    assert str(Verdict("all is known", (ASIDE,))) == "All is known. Friction is negative."
    assert str(Verdict("", (TOUCHED,))) == "Do not use this: did something touch it?"
    both = together("two", [Verdict("a", (ASIDE,)), Verdict("b", (TOUCHED, ASIDE))])
    assert str(both) == "Do not use this: did something touch it? Two. Friction is negative."


def test_a_verdict_survives_a_round_trip_as_plain_values():
    verdict = Verdict("fine", (ASIDE, TOUCHED))
    plain = verdict.to_dict()
    assert plain["ok"] is False
    assert plain["doubts"][1] == {
        "kind": "contradicts_model",
        "words": "did something touch it?",
        "blocks": True,
        "concerns": ["mass", "centre of mass", "inertia"],
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
    plain = InertialParameters.from_com(2.0, [0, 0, 0.1], np.zeros((3, 3)))
    for first, expected in ((3, ""), (3, "rest shows no inertia"), (4, ""), (4, "rest")):
        unknown = np.arange(10) >= first
        covariance = np.diag(np.where(unknown, np.inf, 1e-4))
        _, verdict = judge(Evidence(plain, covariance, unknown, expected=expected))
        assert verdict.has(DoubtKind.NOT_EXCITED)
        assert verdict.ok == (first == 4 or bool(expected))
        assert verdict.fitness(Aspect.INERTIA) is not Fitness.USE


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


def test_without_a_dominant_cause_a_sentence_lists_the_shares_of_the_variance():
    spread = np.diag(np.array([0.02, *3 * [0.002], *6 * [1e-3]]) ** 2)
    shares = {"gains": 0.48, "drift": 0.001, "noise": 0.4, "friction": 0.119}
    _, verdict = judge(Evidence(LOAD, spread, np.zeros(10, bool), shares=shares))
    words = "drive gains 48 %, measurement noise 40 %, friction of the day 12 %"
    assert verdict.summary.endswith(f"the variance of the mass consists of {words}")


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


@pytest.mark.thorough
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


# --- mass, centre of mass and inertia


def judged_with_inertia(inertia, std, mass=2.83):
    """The verdict on a body with a centre known to a millimetre."""
    body = InertialParameters.from_com(mass, [0.01, 0.02, 0.05], inertia)
    spread = np.diag(np.array([0.02, *3 * [0.002], *6 * [std]]) ** 2)
    return judge(Evidence(body, spread, np.zeros(10, bool)))


def test_each_quantity_has_a_state_with_reasons():
    verdict = Verdict(
        "fine", (ASIDE, Doubt(DoubtKind.NOT_PHYSICAL, "bent", concerns=(Aspect.INERTIA,)))
    )
    assert verdict.ok
    assert verdict.states == {
        Aspect.MASS: Fitness.CARE,
        Aspect.CENTRE: Fitness.CARE,
        Aspect.INERTIA: Fitness.DO_NOT_USE,
    }
    assert [doubt.words for doubt in verdict.reasons(Aspect.MASS)] == ["friction is negative"]
    assert repr(verdict).startswith(
        "<Verdict: mass: use with care, centre of mass: use with care, inertia: do not use. "
    )
    assert "do not use the inertia: bent" in verdict.sentence
    assert Verdict("fine").states == dict.fromkeys(Aspect, Fitness.USE)
    assert repr(Verdict("fine")) == "<Verdict: use. Fine.>"


def test_an_impossible_inertia_is_described_in_short_sentences_and_few_digits():
    body = InertialParameters.from_com(2.0, [0.01, 0.02, 0.05], np.diag([0.0051234, 0.005, 0.02]))
    sentences = str(Doubt(DoubtKind.NOT_PHYSICAL, body.why_not_physical)).split(". ")
    assert len(sentences) == 2
    assert max(len(sentence.split()) for sentence in sentences) <= 25
    assert "0.00512, 0.02 kg m²" in sentences[0]
    assert "0.0051234" not in " ".join(sentences)


def test_an_inertia_that_no_body_has_leaves_mass_and_centre():
    _, verdict = judged_with_inertia(np.diag([0.005, 0.005, 0.02]), 1e-3)
    assert verdict.has(DoubtKind.NOT_PHYSICAL)
    assert verdict.ok
    assert verdict.fitness(Aspect.MASS) is Fitness.USE
    assert verdict.fitness(Aspect.CENTRE) is Fitness.USE
    assert verdict.fitness(Aspect.INERTIA) is Fitness.DO_NOT_USE


def test_an_inertia_wider_than_itself_is_not_to_be_used():
    _, vague = judged_with_inertia(0.003 * np.eye(3), 0.01)
    assert vague.ok
    assert vague.fitness(Aspect.INERTIA) is Fitness.DO_NOT_USE
    _, sharp = judged_with_inertia(0.003 * np.eye(3), 1e-4)
    assert sharp.fitness(Aspect.INERTIA) is Fitness.USE


@pytest.mark.parametrize(
    ("body", "arm", "words"),
    [
        (LOAD.from_com(2501.0, [0, 0, 0.1], 80 * np.eye(3)), "ur10", "far above the rating"),
        (LOAD.from_com(2501.0, [0, 0, 0.1], 80 * np.eye(3)), "", "no arm carries 2501 kg"),
        (LOAD.from_com(2.0, [0, 0, 60.0], 0.01 * np.eye(3)), "", "the centre of mass is 60 m away"),
        (LOAD.from_com(2.0, [0, 0, 0.1], 82 * np.eye(3)), "", "needs a load of several metres"),
        (LOAD.from_com(80.0, [0, 0, 0.1], 1e-3 * np.eye(3)), "", "is that of no material"),
    ],
)
def test_numbers_that_no_tool_has_block_everything(body, arm, words):
    spread = np.diag(np.array([0.01, *3 * [0.001], *6 * [1e-5]]) ** 2)
    _, verdict = judge(Evidence(body, spread, np.zeros(10, bool), arm=arm))
    assert not verdict.ok
    assert any(words in doubt.words for doubt in verdict.blocking)
    _, plausible = judge(Evidence(LOAD, spread, np.zeros(10, bool), arm="ur10"))
    assert not plausible.has(DoubtKind.IMPLAUSIBLE)


def test_files_carry_the_states_and_older_ones_load():
    verdict = Verdict("fine", (Doubt(DoubtKind.NOT_PHYSICAL, "bent", concerns=(Aspect.INERTIA,)),))
    content = verdict.to_dict()
    assert content["states"]["inertia"] == "do not use"
    assert Verdict.from_dict(content) == verdict
    older = Verdict("fine", (TOUCHED,)).to_dict()
    del older["states"], older["doubts"][0]["concerns"]
    assert Verdict.from_dict(older) == Verdict("fine", (TOUCHED,))
    with pytest.raises(ValueError, match="states"):
        Verdict.from_dict(content | {"states": content["states"] | {"inertia": "use"}})


def test_a_joint_without_influence_on_mass_and_centre_does_not_block():
    noise = np.array([1.0, 9.0])
    for shares, blocks in ((None, True), ([9.0, 1.0], True), ([999.0, 1.0], False)):
        influential = None
        if shares is not None:
            influential = influential_joints(np.outer(shares, [1.0, 2.0, 3.0, 0.0]))
        doubt = large_residual_doubt(("j1", "j2"), noise, np.ones(2), 10 * np.ones(2), influential)
        assert doubt.blocks is blocks
        assert "the residuals of j2 are 9 times" in doubt.words


# --- presentation


def weighed(verdict, shares=None):
    spread = np.diag(np.array([0.0306, *3 * [0.002], *6 * [0.01]]) ** 2)
    body = InertialParameters.from_com(2.8314159, [0.01, 0.02, 0.05], 0.003 * np.eye(3))
    return Payload(body, body, spread, np.ones(6), verdict, shares=shares or {})


def test_the_headline_is_short_and_rounded_by_the_interval():
    _, vague = judged_with_inertia(0.003 * np.eye(3), 0.01)
    assert weighed(vague).headline == (
        "OK: 2.831 +- 0.060 kg, centre known to 2 mm."
        " Inertia is not known well enough and is exported as a sphere."
    )
    assert weighed(Verdict("", (ASIDE,))).headline.startswith("OK, WITH CARE: 2.831")
    blocked = weighed(Verdict("", (TOUCHED,))).headline
    assert blocked == "DO NOT USE: 2.831 +- 0.060 kg. Did something touch it?"
    twice = weighed(Verdict("", (replace(TOUCHED, words="it was late: wait"), TOUCHED)))
    assert twice.headline.endswith(" It was late, and 1 more doubt.")


@pytest.mark.parametrize(
    ("encoding", "shown"), [("utf-8", "2.831 ± 0.060 kg, "), ("ascii", "2.831 +- 0.060 kg, ")]
)
def test_a_printed_payload_has_the_signs_that_the_output_can_show(monkeypatch, encoding, shown):
    payload = weighed(Verdict("1 +- 0.2 % is assumed"))
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", out)
    out.write(str(payload))
    out.flush()
    printed = out.buffer.getvalue().decode(encoding)
    monkeypatch.undo()
    assert printed.startswith(shown)
    assert ("±" in printed) == (encoding == "utf-8")
    assert ("+-" in printed) == (encoding == "ascii")


def test_a_saved_verdict_does_not_depend_on_the_output():
    verdict = Verdict("1 +- 0.2 % is assumed")
    assert verdict.to_dict()["sentence"] == "1 +- 0.2 % is assumed."
    assert Verdict.from_dict(verdict.to_dict()) == verdict


def test_a_notebook_shows_a_badge_of_the_colour_of_the_state():
    green, red = "#1a7f37", "#b42318"
    assert green in weighed(Verdict())._repr_html_()
    doubted = weighed(Verdict("", (TOUCHED,)))._repr_html_()
    assert red in doubted
    assert green not in doubted


def test_shares_are_bars_and_the_largest_one_has_a_remedy():
    shares = {"noise": 0.1, "friction": 0.65, "gains": 0.25, "drift": 0.0}
    bars = variance_bars(shares)
    causes = ("friction of the day", "drive gains", "measurement noise")
    for bar, cause in zip(bars, causes, strict=True):
        assert bar.startswith(cause)
    assert bars[0].count("#") == 13
    assert limiting_cause(weighed(Verdict(), shares)) == "friction"
    assert limiting_cause(weighed(Verdict("", (TOUCHED,)), shares)) == ""


def test_unknown_numbers_have_no_digits():
    assert Quantity("mass", 2.8314159, np.inf, "kg").cells == ("mass", "unknown", "", "kg")
    assert Quantity("mass", 2.8314159, 0.0306, "kg").cells == ("mass", "2.831", "0.060", "kg")
    assert Quantity("Ixy", -1e-9, 0.01, "kg m^2").rounded == ("0.000", "0.020")


def test_the_centre_of_next_to_nothing_is_unknown():
    """Its first moment over a mass of nearly zero may be anywhere."""
    body = InertialParameters.from_com(2e-6, [15.0, -14.0, 26.0], 1e-9 * np.eye(3))
    spread = np.diag(np.square([8e-4, *np.full(9, 1e-3)]))
    payload = Payload(body, body, spread, np.ones(6), Verdict())
    shown = {x.name: x.rounded[0] for x in (*payload.quantities, *payload.inertia_com_quantities)}
    assert shown["mass"] == "0.0000"
    assert shown["centre of mass x"] == "unknown"
    assert shown["Ixx about the centre of mass"] == "unknown"


def test_commands_of_the_next_action_have_the_options_that_it_names():
    for words in set(NEXT_ACTIONS.values()):
        command = words.partition(": steelyard ")[2].split()
        accepted = inspect.signature(import_module(f"steelyard.cli.{command[0]}").command)
        for option in (word for word in command if word.startswith("--")):
            assert option[2:] in accepted.parameters, words


def test_sentences_end_where_semicolons_stand():
    doubt = Doubt(DoubtKind.GAINS, "gains differ by 5 %; check their units")
    assert str(doubt) == "Gains differ by 5 %. Check their units."
    assert str(Verdict("weighed", (doubt,))).startswith("Do not use this: gains differ by 5 %. C")


def test_a_doubt_names_each_quantity_once():
    with pytest.raises(InvalidValue, match="'concerns' names mass twice"):
        Doubt(DoubtKind.GAINS, "gains are doubtful", concerns=(Aspect.MASS, Aspect.MASS))
