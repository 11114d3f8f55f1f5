"""Momentum, energy, friction and contacts obey mechanics at generic points."""

import numpy as np
import pytest
from scipy.signal import lfilter

from steelyard.control.collision import ArmDynamics, FrameForce, Observer
from steelyard.control.collision._dynamics import TorqueUncertainty
from steelyard.control.collision._thresholds import PeakTail
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.recording import Sample, Samples
from steelyard.robot import DriveModel, RobotModel, load_robot
from steelyard.robot._momentum import MomentumDynamics
from steelyard.trajectory import FourierTrajectory

LOAD = InertialParameters.from_com(2.0, [0.03, -0.05, 0.08], np.diag([0.02, 0.03, 0.025]))
COUPLING = np.array([[30.0, 0, 0], [0, 40, 0], [0, 25, -50]])


@pytest.fixture(scope="module")
def arm(tiny):
    return RobotModel.from_urdf_text(tiny["revolute"])


def moving(n, rate_hz, seconds=6.0, seed=1):
    motion = FourierTrajectory.random(
        np.zeros(n), reach=[1.0] * n, speed=[1.5] * n, period_s=seconds, harmonics=3, seed=seed
    )
    t = np.arange(int(seconds * rate_hz)) / rate_hz
    return t, *motion.at(t)


def identified(robot, friction, drive):
    """A model fitted to the exact torques of a robot."""
    robot = robot.with_drive(drive)
    _, q, v, a = moving(robot.n, 100.0, seconds=20.0)
    noise = np.random.default_rng(2).normal(0, 0.05, q.shape)
    samples = Samples(q, v, a, robot.torque(q, v, a) + noise, 100.0, robot.joint_names, "measured")
    return identify(robot, samples, friction=friction)


DRIVE = DriveModel(np.array([0.3, 0.2, 0.1]), np.array([4.0, 3.0, 2.0]), np.array([2.0, 1.0, 1.5]))


@pytest.mark.parametrize(
    ("friction", "coupling"),
    [
        ("smooth", COUPLING),
        ("presliding", None),
        ("stribeck", None),
        ("power", COUPLING),
        ("load", COUPLING),
    ],
)
def test_an_identified_arm_seen_as_a_rigid_robot_needs_the_torque_of_the_model(
    arm, friction, coupling
):
    drive = DriveModel(
        DRIVE.rotor_inertia, DRIVE.coulomb, DRIVE.viscous, coupling=coupling, sign_width=0.02
    )
    model = identified(arm, friction, drive)
    seen = ArmDynamics.of(model)
    _, q, v, a = moving(3, 200.0, seed=5)
    a = np.zeros_like(a) if model.law.load else a  # the load of a gear is then torque less friction
    expected = model.torque(q, v, a)
    memory = seen.friction.init(q[0], np.zeros(3))
    for i in range(len(q)):
        memory, taken, _ = seen.friction.step(memory, q[i], v[i], expected[i])
        if i % 97 == 0:
            torque = seen.rigid.torque(q[i], v[i], a[i]) + taken
            np.testing.assert_allclose(torque, expected[i], rtol=1e-6, atol=1e-6)


def test_a_payload_on_an_identified_arm_adds_its_own_torque(arm):
    model = identified(arm, "smooth", DRIVE)
    load = InertialParameters.from_vector(LOAD.vector, arm.flange)
    _, q, v, a = moving(3, 20.0, seed=6)
    more = ArmDynamics.of(model, load).robot.inverse_dynamics(q, v, a)
    less = ArmDynamics.of(model).robot.inverse_dynamics(q, v, a)
    expected = arm.payload_regressor(q, v, a) @ load.vector
    np.testing.assert_allclose(more - less, expected, rtol=1e-9, atol=1e-9)


def test_weight_that_regroups_into_an_offset_is_counted_once(tiny):
    """The offset of a joint that slides against gravity holds the masses of the links."""
    drive = DriveModel(
        DRIVE.rotor_inertia, DRIVE.coulomb, DRIVE.viscous, np.array([3.0, -2.0, 1.0])
    )
    robot = RobotModel.from_urdf_text(tiny["prismatic"])
    model = identified(robot, "linear", drive)
    first_offset = [str(parameter).startswith("B1") for parameter in model.basis.parameters]
    assert np.abs(model.basis.K[first_offset, :30]).max() > 5
    load = InertialParameters.from_vector(LOAD.vector, robot.flange)
    seen = ArmDynamics.of(model, load)
    _, q, v, a = moving(3, 20.0, seed=5)
    expected = model.torque(q, v, a) + robot.payload_regressor(q, v, a) @ load.vector
    for i in range(0, len(q), 7):
        _, taken, _ = seen.friction.step(seen.friction.init(q[i], v[i]), q[i], v[i], expected[i])
        torque = seen.rigid.torque(q[i], v[i], a[i]) + taken
        np.testing.assert_allclose(torque, expected[i], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["lwr4", "ur10"])
def test_momentum_and_energy_change_by_the_torque_of_inverse_dynamics(name):
    robot = load_robot(name)
    rotor = np.diag(robot.drive.rotor_inertia) + 0.01
    rigid = MomentumDynamics(robot, rotor)
    n = robot.n
    motion = FourierTrajectory.random(
        np.full(n, 0.3), reach=[1.0] * n, speed=[1.5] * n, period_s=5.0, harmonics=3, seed=3
    )
    h = 1e-5
    for t in (0.7, 1.9, 3.3):
        (qa, q, qb), (va, v, vb), (_, a, _) = motion.at(np.array([t - h, t, t + h]))
        torque = robot.inverse_dynamics(q, v, a) + rotor @ a
        slope = (rigid.momentum(qb, vb)[0] - rigid.momentum(qa, va)[0]) / (2 * h)
        np.testing.assert_allclose(slope - rigid.momentum(q, v)[1], torque, rtol=1e-5, atol=1e-5)
        power = (rigid.energy(qb, vb) - rigid.energy(qa, va)) / (2 * h)
        assert power == pytest.approx(v @ torque, rel=1e-5)
        np.testing.assert_allclose(
            rigid.momentum(q, v)[0], (robot.mass_matrix(q) + rotor) @ v, rtol=1e-9, atol=1e-9
        )


def test_the_jacobian_is_the_derivative_of_the_pose():
    robot = load_robot("ur10")
    q, v = np.random.default_rng(4).normal(size=(2, 6))
    h = 1e-6
    before, here, after = (robot.forward_kinematics(q + s * h * v, "link4") for s in (-1, 0, 1))
    linear = (after - before)[:3, 3] / (2 * h)
    spin = (after - before)[:3, :3] / (2 * h) @ here[:3, :3].T
    angular = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
    J = robot.frame_jacobian(q, "link4")
    np.testing.assert_allclose(J @ v, [*linear, *angular], rtol=1e-7, atol=1e-7)
    assert not J[:, 4:].any()


def test_the_residual_follows_a_constant_push_with_its_own_pole_for_any_steps(arm):
    push = np.array([3.0, -2.0, 1.5])
    q = np.array([0.4, -0.7, 1.1])
    tau = arm.gravity_torque(q) - push
    for kind in ("momentum", "inverse-dynamics"):
        observer = Observer.of(arm, kind=kind, gain_hz=3.0)
        for seed in (1, 2):
            t = np.cumsum(np.random.default_rng(seed).uniform(0.001, 0.05, 40))
            state = observer.init(Sample(t[0], np.array([q, np.zeros(3)]), tau))
            for now in t[1:]:
                state = observer.step(state, Sample(now, np.array([q, np.zeros(3)]), tau))
            reached = 1 - np.exp(-2 * np.pi * 3.0 * (t[-1] - t[0]))
            np.testing.assert_allclose(state.residual, reached * push, rtol=1e-9)


@pytest.mark.parametrize("kind", ["momentum", "inverse-dynamics", "energy"])
def test_a_moving_arm_shows_the_push_and_nothing_else(arm, kind):
    robot = arm.with_drive(
        DriveModel(DRIVE.rotor_inertia, DRIVE.coulomb, DRIVE.viscous, sign_width=0.05)
    )
    t, q, v, a = moving(3, 2000.0, seconds=3.0)
    push = np.array([5.0, -4.0, 3.0]) * (t > 1.5)[:, None]
    tau = robot.torque(q, v, a) - push
    observer = Observer.of(robot, kind=kind, gain_hz=5.0)
    state = observer.init(Sample(t[0], np.array([q[0], v[0]]), tau[0]))
    filtered = np.zeros(3 if kind != "energy" else 1)
    kept = np.exp(-2 * np.pi * 5.0 / 2000.0)
    for i in range(1, len(t)):
        state = observer.step(state, Sample(t[i], np.array([q[i], v[i]]), tau[i]))
        wanted = push[i] if kind != "energy" else np.array([v[i] @ push[i]])
        filtered = kept * filtered + (1 - kept) * wanted
        if i % 500 == 250:
            np.testing.assert_allclose(state.residual, filtered, atol=0.01)


def test_no_friction_at_rest_is_taken_for_a_contact_but_more_than_it_is(arm):
    robot = arm.with_drive(DRIVE)
    observer = Observer.of(robot, gain_hz=5.0)
    q = np.array([0.4, -0.7, 1.1])
    for share in (-0.99, -0.3, 0.6, 0.99, 1.5):
        tau = arm.gravity_torque(q) + share * DRIVE.coulomb
        state = observer.init(Sample(0.0, np.array([q, np.zeros(3)]), tau))
        for i in range(1, 200):
            state = observer.step(state, Sample(0.01 * i, np.array([q, np.zeros(3)]), tau))
        np.testing.assert_allclose(state.residual, -share * DRIVE.coulomb, rtol=1e-6)
        if abs(share) < 1:
            assert not state.beyond_friction.any()
        else:
            beyond = 0.5 * DRIVE.coulomb - DRIVE.viscous * 0.01
            np.testing.assert_allclose(state.beyond_friction, -beyond, rtol=1e-3)


def test_friction_is_known_again_once_the_joint_slides(arm):
    observer = Observer.of(arm.with_drive(DRIVE), gain_hz=5.0)
    t, q, v, a = moving(3, 500.0)
    tau = observer.arm.robot.torque(q, v, a)
    state = observer.init(Sample(t[0], np.array([q[0], v[0]]), tau[0]))
    quick, slack = [], []
    for i in range(1, len(t)):
        state = observer.step(state, Sample(t[i], np.array([q[i], v[i]]), tau[i]))
        quick.append(np.abs(v[max(0, i - 100) : i + 1]).min(axis=0) > 0.1)
        slack.append(state.slack.max(axis=0) / DRIVE.coulomb)
    assert np.array(slack)[np.array(quick)].max() < 0.05
    assert np.array(slack).max() > 0.3


def test_a_force_is_recovered_from_its_joint_torques_and_no_joint_beyond_feels_it():
    robot = load_robot("ur10")
    rng = np.random.default_rng(8)
    q = rng.uniform(-1, 1, 6)
    force, torque = rng.normal(0, 30, (2, 3))
    at_link4 = robot.frame_jacobian(q, "link4")[:3].T @ force
    assert not at_link4[4:].any()
    found = FrameForce.of(robot, q, at_link4, frame="link4")
    np.testing.assert_allclose(found.force_base, force, rtol=1e-8)
    np.testing.assert_allclose(found.unexplained, 0, atol=1e-8)
    external = robot.frame_jacobian(q).T @ np.concatenate([force, torque])
    whole = FrameForce.of(robot, q, external, kind="wrench", torque_std=0.5)
    np.testing.assert_allclose(
        [*whole.force_base, *whole.torque_base], [*force, *torque], rtol=1e-7
    )
    assert np.isfinite(whole.std).all()
    assert "determines the whole wrench" in whole.status
    J = robot.frame_jacobian(q)
    expected = np.sqrt(np.diag(np.linalg.inv(J @ J.T / 0.25)))
    np.testing.assert_allclose(whole.std, expected, rtol=1e-8)


def test_a_stretched_arm_does_not_tell_the_force_along_itself():
    robot = load_robot("lwr4")
    q = np.zeros(7)
    q[0] = 0.4
    force = np.array([3.0, -5.0, 20.0])
    found = FrameForce.of(robot, q, robot.frame_jacobian(q)[:3].T @ force)
    assert "does not determine force along" in found.status
    assert np.isinf(found.std[2])
    assert abs(found.force_base[2]) < 1e-6
    axis = np.array([np.cos(0.4), np.sin(0.4), 0])  # joints 2, 4 and 6 turn about one direction
    np.testing.assert_allclose(found.force_base, (axis @ force) * axis, atol=1e-4)


@pytest.mark.parametrize("noise", ["normal", "laplace"])
def test_half_a_minute_of_filtered_noise_tells_the_level_that_is_crossed_once_an_hour(noise):
    rng = np.random.default_rng(9)

    def signal(seconds):
        white = getattr(rng, noise)(size=int(seconds * 100))
        return np.arange(len(white)) / 100, np.abs(lfilter([0.27], [1, -0.73], white))

    t, z = signal(36000)
    over = np.flatnonzero(z > np.quantile(z, 0.99))
    clusters = np.split(over, np.flatnonzero(np.diff(t[over]) > 0.13) + 1)
    peaks = np.sort([z[cluster].max() for cluster in clusters])
    for wanted in (1.0, 30.0):
        true = peaks[-int(10 * wanted)]  # crossed so often in ten hours
        ratio = [
            PeakTail.of(z, t, 0.13).level(wanted) / true for t, z in (signal(30) for _ in range(10))
        ]
        assert min(ratio) > 0.85
        assert 0.95 < np.median(ratio) < 1.3
        assert max(ratio) < 1.5


def test_the_uncertainty_grows_with_speed_and_with_the_change_of_friction(arm):
    model = identified(arm, "smooth", DRIVE)
    observer = Observer.of(model)
    q = np.array([[0.3, -0.5, 0.8]])
    given = TorqueUncertainty.of(observer.arm)
    slow, fast = (
        given.std(np.stack([q, s * np.ones((1, 3)), 5 * s * np.ones((1, 3))], 1), np.zeros((2, 3)))
        for s in (0.1, 3.0)
    )
    assert (fast[0, 0] > slow[0, 0]).all()
    np.testing.assert_array_equal(fast[0, 0], fast[0, 1])
    changed = TorqueUncertainty.of(observer.arm, np.array([[0.5, 0.4, 0.3], [0.2] * 3, [0.1] * 3]))
    motion = np.stack([q, np.full((1, 3), 2.0), np.zeros((1, 3))], 1)
    plain, wide = changed.std(motion, np.zeros((2, 3)))[0] ** 2
    expected = np.array([0.5, 0.4, 0.3]) ** 2 + (0.2 * 2.0) ** 2 + 0.1**2
    np.testing.assert_allclose(wide - plain, expected, rtol=1e-6)
