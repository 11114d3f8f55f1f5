"""Hand guiding in MuJoCo: what the hand feels is what mechanics says, and what is refused."""

import re
from dataclasses import replace

import numpy as np
import pytest

from steelyard.control._compensation import Compensator
from steelyard.control._guiding import (
    GuidingComparison,
    RectanglePath,
    TeachMode,
    _simulable_arm,
    guide,
)
from steelyard.errors import (
    InfeasibleDesign,
    InvalidRobot,
    InvalidTrajectory,
    SimulationFailed,
    UnknownName,
)
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.recording import Samples
from steelyard.robot import DriveModel, load_robot
from steelyard.simulation._guided import GuidedOptions, Hand, drag
from steelyard.trajectory import FourierTrajectory

LOAD = InertialParameters.from_com(3.0, [-0.02, 0.01, 0.05], np.diag([0.006, 0.007, 0.005]))
SHORT = RectanglePath(sides=[0.05, 0.04], speed=0.1)
QUICK = GuidedOptions(taking_hold_s=0.8)
STEADY = Hand(unsteadiness=0.0)


@pytest.fixture(scope="module")
def ur10():
    return load_robot("ur10")


@pytest.fixture(scope="module")
def smooth(ur10):
    """The arm without friction and offset."""
    return ur10.with_drive(DriveModel(ur10.drive.rotor_inertia))


@pytest.fixture(scope="module")
def comparison(ur10):
    return guide(ur10, LOAD, path=SHORT, hand=STEADY, options=QUICK)


def test_the_hand_bears_the_uncompensated_weight(comparison):
    upwards = comparison.without.force_world.mean(axis=0) - comparison.compensated.force_world.mean(
        axis=0
    )
    np.testing.assert_allclose(upwards, [0.0, 0.0, 3.0 * 9.81], atol=0.8)
    assert comparison.mean_reduction[2] > 0.9


def test_hand_and_drives_together_make_the_motion(smooth):
    """tau + J' wrench = inverse dynamics, from Pinocchio, for an arm without friction."""
    path = RectanglePath(sides=[0.1, 0.1], speed=0.4)
    options = GuidedOptions(rows_every=1, taking_hold_s=0.2)
    run = TeachMode().guide(
        smooth,
        smooth,
        payload_true=LOAD,
        payload_known=LOAD,
        path=path,
        hand=Hand(),
        options=options,
    )
    rows = slice(0, 500, 25)
    q, tau = run.q[rows], run.tau[rows]
    needed = smooth.with_payload(LOAD).torque(q, run.v[rows], run.a[rows])
    wrench = np.hstack([run.force_world, run.torque_world])[rows]
    np.testing.assert_allclose(tau + _joint_torque(smooth, q, wrench), needed, atol=1e-6)
    assert np.abs(needed - tau).max() > 1.0


def _joint_torque(robot, q, wrench):
    """J' wrench at the default grip, for a force and a torque in the base frame."""
    out = []
    for posture, (*force, tx, ty, tz) in zip(q, wrench, strict=True):
        motion = robot.frame_motion(
            np.tile(posture, (robot.n, 1)), np.eye(robot.n), np.zeros((robot.n,) * 2)
        )
        R = robot.forward_kinematics(posture)[:3, :3]
        spin = motion.angular_velocity @ R.T
        speed = motion.linear_velocity @ R.T + np.cross(spin, R @ Hand().grip)
        out.append(speed @ force + spin @ [tx, ty, tz])
    return np.array(out)


def test_the_grip_follows_the_hand_and_the_tool_keeps_its_orientation(comparison):
    run = comparison.compensated
    assert np.abs(run.position - run.wanted).max() < 0.03
    assert run.tilt.max() < 0.1
    np.testing.assert_allclose(
        np.linalg.norm(run.force_flange, axis=1), np.linalg.norm(run.force_world, axis=1), atol=1e-9
    )
    np.testing.assert_allclose(comparison.without.wanted, run.wanted)


def test_friction_that_is_not_taken_off_is_felt(ur10, comparison):
    rough = TeachMode(friction_share=0.5).guide(
        ur10, ur10, payload_true=LOAD, payload_known=LOAD, path=SHORT, hand=STEADY, options=QUICK
    )
    sizes = [
        np.linalg.norm(run.force_world, axis=1).mean() for run in (rough, comparison.compensated)
    ]
    assert sizes[0] > 1.5 * sizes[1]


@pytest.mark.thorough
def test_an_unsteady_hand_varies_with_what_it_bears(ur10):
    """Noise in proportion to the force: a weight disturbs all axes, not only its own."""
    path, options = RectanglePath(sides=[0.01, 0.01], speed=0.03), GuidedOptions(taking_hold_s=0.5)
    found = guide(ur10, LOAD, payload_true=LOAD, path=path, options=options)
    noise = [
        np.diff(run.force_world, axis=0).std(axis=0) for run in (found.without, found.compensated)
    ]
    assert (noise[0] > 2 * noise[1]).all()


def test_the_same_seed_gives_the_same_run_and_progress_goes_to_one(ur10):
    shares = []
    path = RectanglePath(sides=[0.02, 0.02], speed=0.1)
    runs = [
        TeachMode().guide(
            ur10,
            ur10,
            payload_true=LOAD,
            payload_known=LOAD,
            path=path,
            options=GuidedOptions(taking_hold_s=0.2, seed=seed, progress=shares.append),
        )
        for seed in (3, 3, 4)
    ]
    np.testing.assert_array_equal(runs[0].force_world, runs[1].force_world)
    assert np.abs(runs[0].force_world - runs[2].force_world).max() > 0.01
    assert shares[-1] == 1.0
    assert 40 < len(shares) / 3 < 70


def test_the_table_is_that_of_the_forces(comparison):
    for found in (comparison, replace(comparison, frame="base")):
        first, second = found.forces
        for i, (axis, m0, m1, dm, v0, v1, dv) in enumerate(found.rows):
            assert axis == "xyz"[i]
            assert (m0, m1) == pytest.approx(
                (np.abs(first[:, i]).mean(), np.abs(second[:, i]).mean())
            )
            assert (v0, v1) == pytest.approx((first[:, i].var(), second[:, i].var()))
            assert (dm, dv) == pytest.approx((1 - m1 / m0, 1 - v1 / v0))
    assert "the hand pulls with" in comparison.verdict.sentence
    backwards = GuidingComparison(comparison.compensated, comparison.without)
    assert "the mean grows in" in backwards.verdict.sentence
    assert re.search(r"grows in (\w, )*z\b", backwards.verdict.sentence)


def test_an_identified_arm_can_be_dragged(ur10):
    series = FourierTrajectory.random(
        ur10.home,
        reach=np.full(6, 1.0),
        speed=np.full(6, 1.5),
        period_s=8.0,
        harmonics=5,
        seed=1,
    )
    q, v, a = series.at(np.arange(0, 8, 0.01))
    tau = ur10.torque(q, v, a) + 0.05 * np.random.default_rng(0).normal(size=q.shape)
    model = identify(ur10, Samples(q, v, a, tau, 100.0, ur10.joint_names, "measured"))
    arm = _simulable_arm(model)
    assert all(link.is_physical for link in arm.links)
    slow = (q[::50], 0.3 * v[::50], 0 * v[::50])
    np.testing.assert_allclose(arm.torque(*slow), Compensator(model).batch(*slow).total, atol=1.0)


def test_teach_mode_eases_drives_not_joints():
    """A drive dissipates by friction at its own speed, even where its joint rests."""
    robot = load_robot("tx60")
    C = np.diag([80.0, 80, 45, 48, 45, 32])
    C[5, 4] = 24.0
    U = C / np.diag(C)[:, None]
    drive = DriveModel(np.full(6, 0.3), np.array([9.0, 8, 7, 3, 4, 2]), np.full(6, 5.0), coupling=C)
    robot = robot.with_drive(drive)
    torque = TeachMode(friction_share=0.8).controller(
        Compensator(robot, LOAD.renamed(robot.flange))
    )
    q = np.array([0.3, -0.5, 0.8, 0.2, -0.6, 0.4])
    held = robot.with_payload(LOAD.renamed(robot.flange)).gravity_torque(q)
    v = np.array([0.2, -0.1, 0.3, -0.2, 0.25, 0.0])  # the last joint rests, its drive does not
    assert abs(U[5] @ v) > 0.1
    work = v @ (torque(0.013, q, v) - held)
    assert work == pytest.approx(0.8 * (U @ v) @ drive.friction(U @ v))
    np.testing.assert_allclose(
        torque(0.013, q, v) - held, 0.8 * drive.friction(U @ v) @ U, rtol=1e-9
    )
    shaken = 0.8 * np.sin(2 * np.pi * 10 * 0.013) * drive.friction(np.full(6, 0.01))
    np.testing.assert_allclose(torque(0.013, q, 0 * v) - held, shaken @ U, rtol=1e-9)


# --- the path


def test_the_path_is_a_closed_rectangle_at_rest_in_its_corners():
    path = RectanglePath()
    t = np.linspace(0, path.duration_s, 20_001)
    position, velocity = path.at(t)
    assert path.duration_s == pytest.approx(2 * (0.3 + 0.4) / 0.05)
    np.testing.assert_allclose(np.ptp(position, axis=0), [0.3, 0.4, 0.0], atol=1e-9)
    np.testing.assert_allclose(position[0], position[-1], atol=1e-12)
    np.testing.assert_allclose(np.gradient(position, t, axis=0)[1:-1], velocity[1:-1], atol=1e-5)
    ends = np.cumsum([0, 0.3, 0.4, 0.3, 0.4]) / 0.05
    np.testing.assert_allclose(path.at(ends)[0], path.corners, atol=1e-12)
    np.testing.assert_allclose(path.at(ends)[1], 0.0, atol=1e-12)
    np.testing.assert_allclose(path.at([-1.0, 99.0])[0], path.corners[[0, 4]], atol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sides": [0.3, -0.1]}, "sides and speed of a rectangle must be positive"),
        ({"speed": 0.0}, "sides and speed of a rectangle must be positive"),
        ({"centre": [0.0, np.nan, 0.0]}, "centre of a rectangle must be"),
        ({"R_base_flange": 2 * np.eye(3)}, "R_base_flange of a rectangle must be a rotation"),
    ],
)
def test_an_invalid_path_is_refused(change, words):
    with pytest.raises(InvalidTrajectory, match=words):
        RectanglePath(**change)


# --- refusals


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Hand(stiffness=0.0), "stiffness of a hand must be positive"),
        (lambda: Hand(unsteadiness=1.0), "unsteadiness of a hand lies in 0"),
        (lambda: Hand(grip=[0.0, 0.1]), "grip of a hand must be three finite numbers"),
        (lambda: GuidedOptions(step_s=0.0), "step_s must be positive"),
        (lambda: GuidedOptions(rows_every=0), "control_every and rows_every must be 1 or more"),
        (lambda: TeachMode(friction_share=1.0), "friction_share must be at least 0 and below 1"),
        (lambda: TeachMode(dither_hz=-1.0), "dither_hz must be positive"),
    ],
)
def test_a_hand_or_mode_that_cannot_be_is_refused(make, words):
    with pytest.raises(InvalidRobot, match=words):
        make()


def test_a_payload_or_model_of_another_arm_is_refused(ur10, comparison):
    how = {"payload_true": LOAD, "path": SHORT, "options": QUICK}
    with pytest.raises(InvalidRobot, match="the payload is in frame 'hand'"):
        TeachMode().guide(ur10, ur10, payload_known=LOAD.renamed("hand"), **how)
    with pytest.raises(InvalidRobot, match=r"the model is of .* with 7 joints"):
        TeachMode().guide(ur10, load_robot("lwr4"), payload_known=None, **how)
    with pytest.raises(UnknownName, match="must be 'flange' or 'base', got 'tool'"):
        replace(comparison, frame="tool")


def test_a_path_out_of_reach_is_refused(ur10):
    far = RectanglePath(centre=[3.0, 0.0, 0.3])
    with pytest.raises(InfeasibleDesign, match="cannot reach this pose of its flange"):
        TeachMode().guide(ur10, ur10, payload_true=LOAD, payload_known=None, path=far)


def test_an_arm_that_runs_away_is_reported(ur10):
    """A controller that feeds velocity back with the wrong sign."""
    postures = np.tile([-0.758, -1.869, 2.264, -1.966, -1.571, 0.813], (2, 1))
    with pytest.raises(SimulationFailed, match="runs away from the hand"):
        drag(
            ur10,
            postures,
            SHORT,
            lambda t, q, v: 200.0 * np.sign(v) + 500.0 * v,
            payload=LOAD,
            hand=STEADY,
        )
    with pytest.raises(InvalidRobot, match=r"postures must be \(G, 6\) finite numbers"):
        drag(ur10, postures[0], SHORT, lambda t, q, v: v)
