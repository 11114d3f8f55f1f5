"""The direction of gravity: offered for turned bases, and the offer works when it is followed."""

import ast
import re
from importlib import resources

import numpy as np
import pytest

from conftest import lively_motion
from steelyard import prepare, read
from steelyard.identification import _other_causes, identify
from steelyard.identification._gravity_direction import (
    _Torques,
    gain_of_direction,
    gravity_offer,
)
from steelyard.inertia import InertialParameters
from steelyard.recording import Samples
from steelyard.robot import load_robot
from steelyard.verdict import DoubtKind


def run(robot, seed):
    q, v, a = lively_motion(robot, seed)
    tau = robot.torque(q, v, a)
    tau = tau + 0.02 * np.sqrt(np.mean(tau**2, axis=0)) * np.random.default_rng(seed).normal(
        size=q.shape
    )
    return Samples(q, v, a, tau, 100.0, robot.joint_names, "measured")


def offered(model):
    words = [d.words for d in model.verdict.blocking if d.kind is DoubtKind.GRAVITY]
    found = re.search(r"`gravity_base=(\(.*?\))`", " ".join(words))
    return None if found is None else ast.literal_eval(found[1])


def angle_between(one, other):
    return np.arccos(np.dot(one, other) / np.linalg.norm(one) / np.linalg.norm(other))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "gravity", "words"),
    [
        ("ur5e", (9.81, 0, 0), "gravity along +x of the base explains"),
        ("fr3", (0, 0, 9.81), "gravity along +z of the base explains"),
        ("kr60ha", (0, -6.0, -7.76), "another direction of gravity explains"),
    ],
)
def test_the_direction_of_a_turned_base_is_offered_and_right(name, gravity, words):
    stated = load_robot(name)
    samples = run(stated.with_gravity(gravity), 5)
    model = identify(stated, samples, friction="linear")
    assert words in str(model.verdict)
    found = np.array(offered(model))
    assert angle_between(found, gravity) < np.radians(2.0)
    followed = identify(stated.with_gravity(found), samples, friction="linear")
    assert followed.verdict.ok
    assert offered(followed) is None


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["ur5e", "fr3", "kr60ha"])
def test_nothing_is_offered_for_a_base_as_stated(name):
    robot = load_robot(name)
    samples = run(robot, 6)
    assert offered(identify(robot, samples, friction="linear")) is None
    spoiled = Samples(  # one joint's torque is another's: unexplained, and not by gravity
        samples.q,
        samples.v,
        samples.a,
        samples.tau[:, [0, 2, 1, *range(3, robot.n)]],
        100.0,
        robot.joint_names,
        "measured",
    )
    model = identify(robot, spoiled, friction="linear")
    assert not model.verdict.ok


@pytest.mark.parametrize("stated", [-9.81, 9.81])
def test_the_opposite_direction_is_offered_where_only_inertia_tells(stated):
    """The example of a UR10 that stands: with gravity upwards its weight fits as well."""
    robot = load_robot("ur10")
    samples = prepare(read(resources.files("steelyard.cli") / "assets" / "ur10_empty.npz"))
    model = identify(robot.with_gravity([0.0, 0.0, stated]), samples, friction="power")
    expected = {-9.81: None, 9.81: (0, 0, -9.81)}[stated]
    assert offered(model) == expected
    assert model.verdict.ok == (expected is None)
    assert not model.verdict.has(DoubtKind.UNEXPLAINED_TORQUE)


def test_an_axis_of_the_base_is_offered_exactly():
    stated = load_robot("ur5e")
    samples = run(stated.with_gravity([9.81, 0.0, 0.0]), 4)
    offer = gravity_offer(stated, [samples], is_suspected=True)
    assert offer.words.startswith("gravity along +x of the base explains the torques better")
    assert "`gravity_base=(9.81, 0, 0)`" in offer.words


def test_a_turned_base_is_noticed_without_any_other_doubt():
    """Some arms explain the torques of a turned base nearly as well, by other links."""
    stated = load_robot("ur10")
    tilted = 9.81 * np.array([0.6, 0.0, -0.8])
    offer = gravity_offer(stated, [run(stated.with_gravity(tilted), 4)], is_suspected=False)
    found = np.array(ast.literal_eval(re.search(r"`gravity_base=(\(.*?\))`", offer.words)[1]))
    assert angle_between(found, tilted) < np.radians(5.0)
    assert gravity_offer(stated, [run(stated, 4)], is_suspected=False) is None


def test_links_of_the_file_fit_exact_torques_as_well_as_any_links():
    robot = load_robot("ur5e")
    q, v, a = lively_motion(robot, 3)
    tau = robot.inverse_dynamics(q, v, a)
    g = robot.gravity_base
    torques = _Torques.of(robot, [Samples(q, v, a, tau, 100.0, robot.joint_names, "measured")])
    assert torques.file_misfit(g) == pytest.approx(torques.misfit(g))


def slow_run(robot, seed):
    """Samples of a motion so slow that inertia tells nothing; friction and noise are stated."""
    q, v, a = lively_motion(robot, seed)
    slow = 0.05
    tau = robot.inverse_dynamics(q, slow * v, slow**2 * a)
    scale = np.sqrt(np.mean(tau**2, axis=0)) + 0.1
    tau = tau + 0.1 * scale * np.tanh(v / 0.02)
    tau = tau + 0.02 * scale * np.random.default_rng(seed).normal(size=q.shape)
    return Samples(q, slow * v, slow**2 * a, tau, 100.0 * slow, robot.joint_names, "measured")


@pytest.mark.parametrize("z", [-9.81, 9.81])
def test_the_robot_file_tells_a_direction_from_its_opposite(z):
    """The links of the file are wrong by up to a third; without links nothing is offered."""
    stated = load_robot("ur5e")
    scales = np.random.default_rng(4).uniform(0.7, 1.3, stated.n)
    bodies = [
        InertialParameters(k * body.mass, k * body.mass * body.com, k * body.inertia, body.frame)
        for body, k in zip(stated.links, scales, strict=True)
    ]
    samples = slow_run(stated.with_links(bodies).with_gravity([0.0, 0.0, z]), 3)
    offer = gravity_offer(stated, [samples], is_suspected=False)
    if z < 0:
        assert offer is None
        return
    words = "gravity along +z of the base agrees with the links of the robot file, and the stated"
    assert words in offer.words
    assert "`gravity_base=(0, 0, 9.81)`" in offer.words
    followed = gravity_offer(stated.with_gravity([0.0, 0.0, z]), [samples], is_suspected=False)
    assert followed is None
    none = [InertialParameters(0.0, np.zeros(3), np.zeros((3, 3)), b.frame) for b in bodies]
    assert gravity_offer(stated.with_links(none), [samples], is_suspected=False) is None


@pytest.mark.parametrize(
    ("degrees", "is_clear", "is_doubted"),
    [(1.5, True, True), (1.5, False, False), (3.0, False, True)],
)
def test_a_tilt_is_doubted_where_it_is_clear_or_lowers_the_residuals(
    degrees, is_clear, is_doubted, monkeypatch
):
    # Friction by position can look like a tilt that is just significant.
    if not is_clear:
        monkeypatch.setattr(_other_causes, "_CLEAR_TILT_WIDENING", 1e6)
    stated = load_robot("tx60")
    tilt = np.radians(degrees)
    gravity = 9.81 * np.array([np.sin(tilt), 0.0, -np.cos(tilt)])
    samples = run(stated.with_gravity(gravity), 0)
    model = identify(stated, samples, friction="linear")
    found = [d.words for d in model.verdict.blocking if d.kind is DoubtKind.TILTED_BASE]
    assert bool(found) == is_doubted
    if is_doubted:
        said = re.search(r"`gravity_base=(\(.*?\))`", found[0])
        assert angle_between(np.array(ast.literal_eval(said[1])), gravity) < np.radians(0.7)


def test_only_a_direction_nearer_to_the_true_one_has_a_gain():
    robot = load_robot("tx60")
    tilt = np.radians(4.0)
    tilted = [9.81 * np.array([np.sin(s * tilt), 0.0, -np.cos(tilt)]) for s in (1, -1)]
    samples = run(robot.with_gravity(tilted[0]), 0)
    assert gain_of_direction(robot, [samples], tilted[0]) > 0.1
    assert gain_of_direction(robot, [samples], tilted[1]) < 0
    assert gain_of_direction(robot, [samples], robot.gravity_base) == 0
