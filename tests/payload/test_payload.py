from dataclasses import replace

import numpy as np
import pytest

from conftest import lively_motion
from steelyard.errors import InvalidSamples, UnknownName
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.payload._judgement import nearest_physical
from steelyard.payload._plausibility import implausible_doubt
from steelyard.recording import Samples
from steelyard.robot import load_robot
from steelyard.signals import replay
from steelyard.torque import weigh
from steelyard.torque._prior import contradiction
from steelyard.torque.tracking import TorqueTracker
from steelyard.verdict import DoubtKind

LOAD = InertialParameters.from_com(3.5, [0.02, -0.03, 0.06], np.diag([0.02, 0.03, 0.025]))


def samples(robot, seed, noise=0.0, trajectory_seed=1):
    q, v, a = lively_motion(robot, trajectory_seed)
    tau = robot.torque(q, v, a) + noise * np.random.default_rng(seed).normal(size=q.shape)
    return Samples(q, v, a, tau, 100.0, robot.joint_names, "measured")


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["ur10", "ur10e", "lwr4", "panda", "kr60ha", "tx60"])
def test_without_noise_the_payload_is_exact_for_every_arm(name):
    robot = load_robot(name)
    model = identify(robot, samples(robot, 0, noise=1e-7))
    found = weigh(model, samples(robot.with_payload(LOAD), 1, noise=1e-7, trajectory_seed=2))
    np.testing.assert_allclose(found.unconstrained.vector, LOAD.vector, atol=2e-5)
    assert found.body.frame == robot.flange
    assert "all ten parameters were excited" in found.status


@pytest.mark.thorough
def test_intervals_contain_the_truth_and_friction_may_change_with_the_load():
    robot = load_robot("ur10")
    drier = replace(
        robot.drive, coulomb=robot.drive.coulomb * 1.15, viscous=robot.drive.viscous * 1.05
    )
    loaded = robot.with_payload(LOAD).with_drive(drier)
    inside, errors = [], []
    for seed in range(10):
        model = identify(robot, [samples(robot, seed, 0.5), samples(robot, seed + 100, 0.5, 3)])
        found = weigh(model, samples(loaded, seed + 50, 0.5, 2))
        inside.append(np.abs(found.unconstrained.vector - LOAD.vector) < 1.96 * found.std)
        errors.append(found.body.mass - LOAD.mass)
    assert 0.88 < np.mean(inside) <= 1
    assert np.std(errors) == pytest.approx(found.std[0], rel=0.5)


def test_com_std_is_what_the_spread_of_the_numbers_gives():
    robot = load_robot("ur10")
    found = weigh(
        identify(robot, samples(robot, 0, 0.5)), samples(robot.with_payload(LOAD), 1, 0.5, 2)
    )
    draws = np.random.default_rng(0).multivariate_normal(
        found.unconstrained.vector, found.covariance, 20_000
    )
    np.testing.assert_allclose((draws[:, 1:4] / draws[:, :1]).std(axis=0), found.com_std, rtol=0.03)


def test_too_little_motion_is_said():
    robot = load_robot("ur10")
    still = samples(robot.with_payload(LOAD), 1, 0.01)
    q = np.tile(still.q[0], (len(still), 1))
    q[:, 0] = still.q[:, 0]
    v, a = still.v * (np.arange(6) == 0), still.a * (np.arange(6) == 0)
    tau = robot.with_payload(LOAD).torque(q, v, a) + 0.01 * np.random.default_rng(2).normal(
        size=q.shape
    )
    seen = np.tile(np.arange(6) == 0, (len(q), 1))
    loaded = replace(still, q=q, v=v, a=a, tau=tau, usable=seen)
    found = weigh(identify(robot, samples(robot, 0, 0.01)), loaded)
    assert "the motion says nothing about" in found.status
    assert not found.verdict.ok
    assert np.isinf(found.std).any()


def test_what_no_motion_of_an_arm_shows_is_not_held_against_the_rest():
    robot = load_robot("planar2r")
    model, loaded = (
        identify(robot, samples(robot, 0, 0.01)),
        samples(robot.with_payload(LOAD), 1, 0.01),
    )
    estimator = TorqueTracker(model, "measured")
    state = estimator.init()
    for sample in replay(loaded):
        state = estimator.step(state, sample)
    for found in (weigh(model, loaded), estimator.estimate(state)):
        assert found.verdict.ok
        assert found.verdict.has(DoubtKind.NOT_EXCITED)
        assert (
            "mz, Ixx, Ixy, Iyy, Ixz, Iyz are unobservable with this arm's kinematics"
            in found.status
        )
        assert np.isinf(found.std).tolist() == 3 * [False] + 6 * [True] + [False]
        assert found.mass == pytest.approx(LOAD.mass, rel=1e-3)


def test_the_contradiction_is_about_one_when_nothing_is_wrong(rng):
    """A prior with known noise, and rows of correlated noise that their weights ignore."""
    Y, Z, x0 = rng.normal(size=(60, 6)).cumsum(axis=0), rng.normal(size=(4, 6)), rng.normal(size=6)
    apart = np.abs(np.subtract.outer(np.arange(60), np.arange(60)))
    gamma = 0.9**apart
    A = Y.T @ Y + Z.T @ Z
    inverse = np.linalg.inv(A)
    covariance = inverse @ (Y.T @ gamma @ Y + Z.T @ Z) @ inverse
    half, squares = np.linalg.cholesky(gamma), []
    for _ in range(2000):
        z = Z @ x0 + rng.normal(size=4)
        x = inverse @ (Y.T @ (Y @ x0 + half @ rng.normal(size=60)) + Z.T @ z)
        squares.append(contradiction(np.column_stack([Z, z]), x, inverse, [covariance]) ** 2)
    assert np.mean(squares) == pytest.approx(1.0, abs=0.06)


def test_an_implausible_answer_is_said():
    robot = load_robot("ur10")
    lighter = robot.with_links(
        [
            *robot.links[:5],
            InertialParameters.from_com(0.05, [0, 0, 0], 1e-5 * np.eye(3), robot.links[5].frame),
        ]
    )
    found = weigh(identify(robot, samples(robot, 0, 1e-3)), samples(lighter, 1, 1e-3))
    assert found.body.mass < 0
    assert not found.verdict.ok
    assert found.verdict.has(DoubtKind.NEGATIVE_MASS)
    assert "the mass is -0.3" in found.status


def test_the_nearest_real_body_is_physical_and_better_than_its_neighbours():
    rng = np.random.default_rng(3)
    plain = InertialParameters.from_vector(
        LOAD.vector + np.r_[np.zeros(4), [-0.03, 0.01, 0, 0, 0, 0.03]]
    )
    A = rng.normal(size=(10, 10))
    covariance = 1e-4 * (A @ A.T + 10 * np.eye(10))
    body, distance = nearest_physical(plain, covariance)
    assert not plain.is_physical
    assert body.is_physical

    def far(other):
        step = other.vector - plain.vector
        return np.sqrt(step @ np.linalg.solve(covariance, step))

    assert far(body) == pytest.approx(distance, rel=1e-6)
    inner = body.log_cholesky + 0.02 * rng.normal(size=(200, 10))
    assert (
        min(far(InertialParameters.from_log_cholesky(theta)) for theta in inner) > distance - 1e-6
    )


def test_a_physical_estimate_is_left_alone():
    assert nearest_physical(LOAD, np.eye(10)) == (LOAD, 0.0)


def test_refusals():
    robot = load_robot("ur10")
    model = identify(robot, samples(robot, 0, 0.5))
    with pytest.raises(
        InvalidSamples, match="fitted to measured motion, these samples hold commanded motion"
    ):
        weigh(model, replace(samples(robot, 1), kinematics="commanded"))
    with pytest.raises(InvalidSamples, match="ur10 has 6 joints, the samples have 2"):
        weigh(model, samples(load_robot("planar2r"), 0))


def test_known_numbers_stay_and_help_the_others():
    robot = load_robot("ur10")
    model = replace(identify(robot, samples(robot, 0, 0.5)), run_spread=None)
    loaded = samples(robot.with_payload(LOAD), 1, 0.5, 2)
    free, weighed = weigh(model, loaded), weigh(model, loaded, fixed={"m": 3.5})
    assert weighed.body.mass == pytest.approx(3.5, abs=1e-6)
    assert weighed.std[0] < 1e-4
    assert (weighed.com_std <= free.com_std).all()
    assert weighed.com_std[2] < 0.9 * free.com_std[2]
    assert "m as given" in weighed.status
    with pytest.raises(UnknownName, match="'weight' cannot be fixed; the numbers are m, mx"):
        weigh(model, loaded, fixed={"weight": 3.5})
    with pytest.raises(InvalidSamples, match="'m' cannot be fixed at -1"):
        weigh(model, loaded, fixed={"m": -1.0})


def test_several_loaded_runs_narrow_the_intervals():
    robot = load_robot("ur10").with_gravity(
        [0.0, 0.0, -9.8]
    )  # measured: a nominal one stays in the interval
    model = identify(robot, [samples(robot, seed, 0.5, seed) for seed in range(4)])
    runs = [samples(robot.with_payload(LOAD), 10 + k, 0.5, 2) for k in range(4)]
    one, four = weigh(model, runs[0]), weigh(model, runs)
    assert four.std[0] < 0.75 * one.std[0]
    assert abs(four.unconstrained.mass - LOAD.mass) < 3 * four.std[0]
    with pytest.raises(InvalidSamples, match="no samples to weigh from"):
        weigh(model, [])


@pytest.fixture(scope="module")
def weighed():
    robot = load_robot("ur10")
    model = identify(robot, samples(robot, 0, 0.5))
    return model, weigh(model, samples(robot.with_payload(LOAD), 1, 0.5, 2))


def test_the_inertia_about_the_centre_of_mass_has_a_spread(weighed):
    _, found = weighed
    np.testing.assert_array_equal(found.inertia_com, found.body.inertia_com)
    draws = np.random.default_rng(0).multivariate_normal(found.body.vector, found.covariance, 2_000)
    spread = np.std([InertialParameters.from_vector(draw).inertia_com for draw in draws], axis=0)
    np.testing.assert_allclose(found.inertia_com_std, spread, rtol=0.1)
    names = [each.name for each in found.inertia_com_quantities]
    assert names[1] == "Ixy about the centre of mass"
    assert found.inertia_com_quantities[1].value == found.inertia_com[0, 1]
    unknown = replace(found, covariance=np.diag(np.full(10, np.inf)))
    assert np.isinf(unknown.inertia_com_std).all()


def test_a_picture_is_one_line_and_draws_on_given_axes(weighed):
    from matplotlib.figure import Figure

    model, found = weighed
    axes = Figure().subplots(1, 2)
    picture = found.plot(ax=axes)
    assert repr(picture).startswith("<Picture: The payload on the flange")
    assert "\n" not in repr(picture)
    assert [ax.get_title(loc="left") for ax in axes] == [x.title for x in picture.panels[:2]]
    assert axes[0].lines
    assert len(picture.figure().axes) == len(picture.panels)
    alone = Figure().subplots()
    model.plot(ax=alone)
    assert alone.get_title(loc="left") == "shoulder_pan_joint"


def test_the_parameters_of_a_model_as_a_table(weighed):
    model, _ = weighed
    table = model.to_dataframe()
    assert list(table.columns) == ["name", "joint", "value", "std", "half_width", "unit"]
    row = table.set_index("name").loc["Fc3"]
    assert row["joint"] == "elbow_joint"
    assert row["value"] == model.estimate.value[list(model.estimate.names).index("Fc3")]
    assert row["unit"] == "Nm"


@pytest.mark.parametrize(
    ("mass", "com", "gyration", "arm", "words"),
    [
        (2501.0, 0.1, 0.3, "", "no arm carries 2501 kg"),
        (16.0, 0.1, 0.1, "ur10", "far above the rating of ur10, 10 kg"),
        (4e-6, 0.1, 0.1, "", "no arm weighs as little as 4e-06 kg"),
        (4.0, 2.5, 0.1, "", "the centre of mass is 2.5 m away"),
        (4.0, 0.1, 2.5, "", "needs a load of several metres"),
        (40.0, 0.1, 0.01, "", "is that of no material"),
    ],
)
def test_a_body_that_no_tool_or_part_has_is_said(mass, com, gyration, arm, words):
    """Beyond each limit with a small uncertainty; not within a large one."""
    body = InertialParameters.from_com(mass, [com, 0, 0], mass * gyration**2 * np.eye(3))
    sure = np.diag((1e-3 * np.maximum(np.abs(body.vector), 1e-3 * mass)) ** 2)
    doubt = implausible_doubt(body, sure, arm)
    assert words in doubt.words
    assert doubt.blocks
    assert implausible_doubt(body, np.diag(np.full(10, 1e8 * mass**2)), arm) is None


def test_an_ordinary_load_is_plausible():
    body = InertialParameters.from_com(4.0, [0.02, -0.01, 0.07], np.diag([0.03, 0.025, 0.02]))
    assert implausible_doubt(body, np.diag((1e-3 * np.abs(body.vector)) ** 2), "ur10") is None


def test_a_number_is_unknown_where_the_interval_is_wider_than_any_payload(weighed):
    # "-16 +- 40000 kg m^2" says less than that an arm carries it.
    _, found = weighed

    def shown(index, half_width):
        covariance = found.covariance.copy()
        covariance[index, index] = (half_width / 1.96) ** 2
        wide = replace(found, covariance=covariance)
        return {each.name: each.rounded[0] for each in wide.quantities}

    assert shown(0, 2400.0)["mass"] == "unknown"
    assert shown(0, 2200.0)["mass"] != "unknown"
    assert shown(9, 9300.0)["Izz about the flange"] == "unknown"
    assert shown(9, 9100.0)["Izz about the flange"] != "unknown"
    assert shown(9, 9300.0)["Ixx about the flange"] != "unknown"
