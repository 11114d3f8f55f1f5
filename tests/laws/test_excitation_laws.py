"""The basis of design: the JAX regressor is Pinocchio's; derivatives match differences."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.excitation import (
    ConditionNumber,
    DesignLimits,
    DOptimal,
    Liu2025,
    OrientationWorkspace,
    PayloadOptimal,
    Sector,
    Surroundings,
    Xu2024,
)
from steelyard.excitation._gradients import MotionSlacks, RegressorRows
from steelyard.excitation._space import MotionSpace
from steelyard.robot import DriveModel, JointLimits, ParameterBasis, RobotModel, load_robot
from steelyard.robot._geometry import Body, CollisionModel
from steelyard.trajectory import FourierTrajectory

OBJECTIVES = (ConditionNumber(), DOptimal(), Xu2024(), Liu2025(gravity=True), PayloadOptimal())


def motion(rng, n, count=12):
    return rng.normal(size=(3, count, n))


KINDS = ("torque", "payload", "wrench")


def assert_same_rows(robot, rng, kinds=KINDS):
    """Row by row and column by column; every kind is compiled anew for every arm."""
    q, v, a = motion(rng, robot.n)
    robot = robot.with_drive(replace(robot.drive, sign_width=0.05))  # as smooth as JAX needs it
    sizes = {
        "torque": (14 * robot.n, robot.n),
        "payload": (10 + 3 * robot.n, robot.n),
        "wrench": (10, 6),
    }
    for kind in kinds:
        columns, height = sizes[kind]
        rows = RegressorRows(
            kind, np.arange(columns), rng.uniform(0.5, 2, height), gravity=kind != "wrench"
        )
        found = rows.compiled(robot).rows(q, v, a)
        np.testing.assert_allclose(found, rows.exact(robot, q, v, a), atol=1e-10)


@pytest.mark.parametrize("name", ["gen3", "kr300", "lwr4", "planar2r", "tx60", "ur10e"])
def test_jax_rows_are_those_of_pinocchio_for_bundled_arms(name, rng):
    """The links' rows depend on every number of the arm; the other kinds on fewer."""
    kinds = KINDS if name in ("ur10e", "panda") else ("torque",)
    assert_same_rows(load_robot(name), rng, kinds)


@pytest.mark.parametrize(
    ("kind", "kinds"),
    [("revolute", ("torque",)), ("prismatic", KINDS), ("continuous", ("torque",))],
)
def test_jax_rows_are_those_of_pinocchio_for_urdfs(kind, kinds, tiny, rng):
    robot = RobotModel.from_urdf_text(tiny[kind], gravity_base=(1.0, -2.0, -9.0))
    assert_same_rows(robot, rng, kinds)


def test_jax_rows_know_coupled_drives_smoothed_signs_and_powers(rng):
    coupling = np.eye(6)
    coupling[5, 4] = 0.7
    drive = DriveModel(
        np.ones(6), exponent=np.linspace(0.5, 1.5, 6), sign_width=0.05, coupling=coupling
    )
    assert_same_rows(load_robot("tx60").with_drive(drive), rng)


def test_friction_counts_from_the_speed_on_that_identification_counts():
    """The smoothed sign is exact for fast joints and close to exact from 0.01 rad/s."""
    robot, v = load_robot("planar2r"), np.array([[0.003, -0.003], [0.01, -0.01], [0.1, -0.1]])
    rows = RegressorRows("torque", np.array([22, 23]), np.ones(2))  # Coulomb friction
    exact = rows.exact(robot, 0 * v, v, 0 * v)
    share = (rows.compiled(robot).rows(0 * v, v, 0 * v) * exact).sum(axis=(1, 2)) / 2
    assert share[0] < 0.5
    assert share[1] > 0.8
    assert share[2] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("sliding", [False, True])
def test_slacks_of_torque_are_those_of_pinocchio(sliding, tiny, rng):
    robot = RobotModel.from_urdf_text(tiny["prismatic"]) if sliding else load_robot("tx60")
    n = robot.n
    robot = robot.with_drive(
        DriveModel(rng.uniform(0.5, 2, n))
    )  # without friction, which they bound
    joints, signals = replace(JointLimits.none(n), tau_max=rng.uniform(50, 90, n)), motion(rng, n)
    share = robot.torque(*signals) / joints.tau_max
    expected = np.hstack([0.99 - share, 0.99 + share])
    found = MotionSlacks(robot, DesignLimits(joints)).slacks(*signals)
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_exact_wrench_is_what_the_load_needs(rng):
    """Its power for unit speed of each joint is the torque that the joint feels."""
    robot = load_robot("kr60ha")
    q, v, a = motion(rng, 6, 4)
    rows = RegressorRows("wrench", np.arange(10), np.ones(6))
    body = np.array([3.0, 0.2, -0.1, 0.3, 0.5, 0.01, 0.6, 0.02, -0.03, 0.4])
    wrench = rows.exact(robot, q, v, a) @ body
    load = robot.payload_regressor(q, v, a) @ body
    for j in range(6):
        unit = robot.frame_motion(q, np.tile(np.eye(6)[j], (4, 1)), np.zeros((4, 6)))
        power = (unit.linear_velocity * wrench[:, :3] + unit.angular_velocity * wrench[:, 3:]).sum(
            axis=1
        )
        np.testing.assert_allclose(power, load[:, j], atol=1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.name)
def test_merit_has_the_derivative_that_it_says(objective, rng):
    robot = load_robot("ur10")
    criterion = objective.criterion(robot, DesignLimits.of(robot), robot.home, np.arange(6))
    A = criterion.rows.exact(robot, *motion(rng, 6, 60)).reshape(-1, len(criterion.rows.columns))
    G, change = A.T @ A / 60, rng.normal(size=(2, A.shape[1], A.shape[1]))[0]
    change = (change + change.T) * np.sqrt(np.outer(np.diag(G), np.diag(G)))
    h = 1e-7
    f, slope = criterion.merit(G, 3.0)
    up, down = criterion.merit(G + h * change, 3.0)[0], criterion.merit(G - h * change, 3.0)[0]
    assert (up - down) / (2 * h) == pytest.approx((slope * change).sum(), rel=1e-4)
    assert np.isfinite(f)


def test_gram_matrix_pulls_on_the_motion_as_finite_differences_do(rng):
    robot = load_robot("planar2r")
    columns = np.delete(np.arange(28), [2, 11, 12, 27])
    program = RegressorRows("torque", columns, np.array([1.0, 2.0])).compiled(robot)
    assert RegressorRows("torque", columns, np.array([1.0, 2.0])).compiled(robot) is program
    q, v, a = motion(rng, 2)
    A = program.rows(q, v, a)
    np.testing.assert_allclose(
        program.gram(q, v, a), np.einsum("tij,tik->jk", A, A) / 12, atol=1e-9
    )
    change = rng.normal(size=(24, 24))
    pulls = program.pull(q, v, a, change)
    step = rng.normal(size=(3, 12, 2))
    h = 1e-6
    up = (program.gram(*(np.array([q, v, a]) + h * step)) * change).sum()
    down = (program.gram(*(np.array([q, v, a]) - h * step)) * change).sum()
    pulled = sum((p * s).sum() for p, s in zip(pulls, step, strict=True))
    assert (up - down) / (2 * h) == pytest.approx(pulled, rel=1e-6)


def test_smooth_condition_number_is_above_the_exact_one_and_tends_to_it(rng):
    A = rng.normal(size=(60, 9)) * np.geomspace(1, 30, 9)
    robot = load_robot("planar2r")
    criterion = ConditionNumber().criterion(robot, DesignLimits.of(robot), robot.home, np.arange(2))
    exact = np.log(np.linalg.cond(A))
    smooth = [criterion.merit(A.T @ A, s)[0] for s in (1.0, 4.0, 16.0, 1000.0)]
    assert smooth == sorted(smooth, reverse=True)
    assert smooth[-1] == pytest.approx(exact, abs=5e-3)
    assert smooth[-2] >= exact
    assert smooth[-1] >= exact - 1e-12  # the limit itself: equal but for rounding


def test_the_value_of_a_motion_is_the_condition_number_of_its_base_regressor():
    robot = load_robot("planar2r")
    moved = FourierTrajectory.random(
        np.zeros(2), reach=np.ones(2), speed=np.ones(2), period_s=4.0, harmonics=3, seed=1
    )
    Y = robot.regressor(*moved.at(np.arange(0, 4.0, 0.008)))
    A = np.concatenate(Y[:, :, ParameterBasis.of(robot, drive=True).independent])
    assert ConditionNumber().evaluate(robot, moved) == pytest.approx(np.linalg.cond(A))


def test_grid_limits_hold_at_every_time(rng):
    """Ehlich and Zeller: a motion that touches the tightened grid stays inside everywhere."""
    limits = JointLimits([-1.0, -0.3], [1.5, 2.0], [0.7, 2.0], [2.0, np.inf], [np.inf] * 2)
    space = MotionSpace(np.array([0.2, 0.5]), np.arange(2), 4, 6.0, True, False, np.ones(2))
    block = space.joint_constraint(DesignLimits(limits))
    for _ in range(20):
        u = rng.normal(size=space.size)
        while (block.slack(u) < 0).any():
            u *= 0.97
        q, v, a = space.trajectory(u).at(np.linspace(0, 6, 20011))
        assert (q <= limits.q_max).all()
        assert (q >= limits.q_min).all()
        assert (np.abs(v) <= limits.v_max).all()
        assert (np.abs(a) <= limits.a_max).all()


@pytest.mark.parametrize("form", ["exact", "amplitude"])
def test_limit_blocks_have_the_derivatives_that_they_say(form, rng):
    limits = JointLimits(
        [-1.0, -np.inf, -1], [1.5, 2.0, 1], [0.7, 2.0, 1], [2.0, np.inf, 3], [np.inf] * 3
    )
    space = MotionSpace(
        np.array([0.2, 0.5, 0.0]), np.array([0, 2]), 3, 6.0, True, True, np.array([0.5, 2.0])
    )
    block = space.joint_constraint(DesignLimits(limits, form=form))
    u, du, h = rng.normal(size=space.size), rng.normal(size=space.size), 1e-6
    now = block.linearised(u)
    numeric = (block.slack(u + h * du) - block.slack(u - h * du)) / (2 * h)
    np.testing.assert_allclose(now.along(du), numeric, atol=1e-7)
    z = rng.uniform(size=len(numeric))
    assert now.pull(z) @ du == pytest.approx(z @ numeric, rel=1e-6)
    assert du @ now.curvature(z) @ du == pytest.approx((z * numeric**2).sum(), rel=1e-6)


def test_space_keeps_its_promises_about_the_ends(rng):
    centre = np.array([0.3, -0.8])
    space = MotionSpace(centre, np.array([1]), 4, 5.0, True, True, np.array([0.7]))
    u = rng.normal(size=space.size)
    series = space.trajectory(u)
    q, v, a = series.at(np.array([0.0, 5.0]))
    np.testing.assert_allclose(q, [centre, centre], atol=1e-12)
    np.testing.assert_allclose([v, a], 0, atol=1e-12)
    C = np.r_[series.sine[1], series.cosine[1], series.offset[1] - centre[1]]
    np.testing.assert_allclose(np.linalg.pinv(space.free) @ C / 0.7, u, atol=1e-12)
    at = space.signals(np.linspace(0, 5, 7))
    np.testing.assert_allclose(space.motion(u, at), series.at(np.linspace(0, 5, 7)), atol=1e-12)


def test_effects_have_the_derivatives_that_they_say(tiny, rng):
    robot = RobotModel.from_urdf_text(tiny["revolute"])
    limits = DesignLimits(
        robot.limits,
        height=(0.1, 2.0),
        linear_speed=np.array([1.0, np.inf, 2.0]),
        angular_speed=np.full(3, 3.0),
        workspace=OrientationWorkspace(
            (Sector("z", (0.2, 3.0), (-1.0, 2.0)), Sector("x", (0.1, 2.0)))
        ),
    )
    limited = MotionSlacks(robot, limits)
    q, v, a = motion(rng, robot.n, 20)
    by_motion = limited.slopes(q, v, a)
    step, h = rng.normal(size=(3, 20, robot.n)), 1e-7
    up, down = (limited.slacks(*(np.array([q, v, a]) + x * step)) for x in (h, -h))
    np.testing.assert_allclose(
        (up - down) / (2 * h), np.einsum("tkdj,dtj->tk", by_motion, step), atol=2e-5
    )


def test_limits_of_samples_have_derivatives_near_them_and_are_even_far_away(rng):
    robot = load_robot("ur10")
    space = MotionSpace(
        np.array([0.2, -1.0, 1.0, -0.5, 0.7, 0.1]), np.arange(6), 3, 0.7, True, False, np.ones(6)
    )
    block = space.motion_constraint(MotionSlacks(robot, DesignLimits.of(robot)))
    u, du, h = 1.5 * rng.normal(size=space.size), rng.normal(size=space.size), 1e-7
    now = block.linearised(u)
    np.testing.assert_array_equal(now.slack, block.slack(u))
    numeric = (block.slack(u + h * du) - block.slack(u - h * du)) / (2 * h)
    np.testing.assert_allclose(now.along(du), numeric, atol=2e-5)
    far = now.slack == now.slack.max()
    assert 0.2 < far.mean() < 0.95
    assert (numeric[far] == 0).all()
    assert (numeric[~far] != 0).all()
    z = rng.uniform(size=len(numeric))
    assert now.pull(z) @ du == pytest.approx(z @ numeric, rel=1e-5)
    assert du @ now.curvature(z) @ du == pytest.approx((z * numeric**2).sum(), rel=1e-5)


def test_clearances_have_the_derivatives_that_they_say(rng):
    robot = load_robot("ur10")
    surroundings = Surroundings(
        (
            Body.half_space("floor", (0, 0, -0.4), (0, 0, 1)),
            Body.box("table", (0.9, 0, 0), (0.4, 0.4, 0.4)),
        )
    )
    clearances = surroundings.clearances(robot)
    slacks, slopes = clearances.slacks, clearances.slopes
    q, still = rng.uniform(-1, 1, (20, 6)), np.zeros((20, 6))
    value, by_motion = slacks(q, still, still), slopes(q, still, still)
    step, h = rng.normal(size=(20, 6)), 1e-7
    numeric = (slacks(q + h * step, still, still) - slacks(q - h * step, still, still)) / (2 * h)
    smooth = np.abs(value) > 1e-2
    np.testing.assert_allclose(
        np.einsum("tkj,tj->tk", by_motion[:, :, 0], step)[smooth], numeric[smooth], atol=1e-4
    )


def test_distances_of_capsules_agree_with_dense_sampling(rng):
    """Points along the capsules' axes from the DH table, without a collision library."""
    robot, radius, floor = load_robot("ur10"), 0.05, -0.3
    model = CollisionModel(
        robot, Body.capsules(robot, radius), [Body.half_space("floor", (0, 0, floor), (0, 0, 1))]
    )
    q = rng.uniform(-2, 2, (10, 6))
    distance = model.distances(q)
    frames = [robot.forward_kinematics(q, name) for name in robot.link_names]
    forearm = np.linspace(0, 1, 2001)[:, None] * [
        robot.dh.a[3],
        0,
        0,
    ]  # link 3: from its frame along x
    for i in range(10):
        low = (frames[2][i][:3, :3] @ forearm.T)[2] + frames[2][i][2, 3]
        pairs = [k for k, name in enumerate(model.pair_names) if name == "link 3 and floor"]
        assert distance[i, pairs].min() <= low.min() - radius - floor + 1e-9
        assert distance[i, pairs[0]] == pytest.approx(low.min() - radius - floor, abs=1e-6)
