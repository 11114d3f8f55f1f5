"""Laws of the wrench of a moving load: point masses, MuJoCo, differences, frames, filters."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.inertia import InertialParameters
from steelyard.robot import load_robot
from steelyard.signals import central_differences, low_pass, noise_gains
from steelyard.simulation import SensorModel, SimulationOptions, simulate
from steelyard.trajectory import FourierTrajectory
from steelyard.wrist import PoseKalmanFilter
from steelyard.wrist._regression import WrenchRegression
from steelyard.wrist._regressor import (
    FEATURES,
    BaseGravity,
    feature_covariance,
    features,
    wrench_regressor,
    wrench_slope,
    wrench_tensor,
)


def test_the_regressor_is_what_point_masses_do(rng):
    masses, points = rng.uniform(0.2, 2.0, 7), rng.normal(size=(7, 3))
    body = InertialParameters.from_points(masses, points)
    g, a, w, alpha = rng.normal(size=(4, 5, 3)) * [[[9]], [[3]], [[2]], [[4]]]
    wrench = wrench_regressor(features(g, a, w, alpha)) @ body.vector
    for k in range(5):
        acceleration = a[k] + np.cross(alpha[k], points) + np.cross(w[k], np.cross(w[k], points))
        forces = masses[:, None] * (g[k] - acceleration)  # of the points on the sensor
        expected = np.concatenate([forces.sum(axis=0), np.cross(points, forces).sum(axis=0)])
        np.testing.assert_allclose(wrench[k], expected, rtol=1e-11, atol=1e-11)


def test_the_regressor_is_what_mujoco_does_on_a_tilted_base():
    robot = load_robot("ur10e")
    load = InertialParameters.from_com(
        4.0, [0.03, -0.02, 0.06], np.diag([0.03, 0.02, 0.025]), robot.flange
    )
    path = FourierTrajectory.random(
        robot.home, reach=[0.6] * 6, speed=[1.5] * 6, period_s=1.0, harmonics=3, seed=4
    )
    gravity = BaseGravity(np.array([0, 0, -9.81])).tilted([0.05, -0.08])
    options = SimulationOptions(gravity_base=gravity)
    truth = simulate(robot, path, payload=load, sensors=SensorModel.ideal(), options=options).truth
    motion = robot.frame_motion(truth.q, truth.v, truth.a)
    R = robot.forward_kinematics(truth.q)[:, :3, :3]
    x = features(
        np.einsum("nji,j->ni", R, gravity),
        motion.linear_acceleration,
        motion.angular_velocity,
        motion.angular_acceleration,
    )
    np.testing.assert_allclose(wrench_regressor(x) @ load.vector, truth.wrench, atol=1e-9)


def test_the_wrench_is_linear_in_features_and_parameters(rng):
    x, phi = rng.normal(size=(6, 12)), rng.normal(size=10)
    assert len(FEATURES) == 12
    wrench = wrench_regressor(x) @ phi
    np.testing.assert_allclose(wrench, x @ wrench_slope(phi).T, rtol=1e-12)
    np.testing.assert_allclose(
        wrench, np.einsum("nl,lij,j->ni", x, wrench_tensor(), phi), rtol=1e-12
    )
    assert not wrench_tensor().flags.writeable


def test_a_filter_on_both_sides_changes_no_parameter(rng):
    x, phi = rng.normal(size=(400, 12)), rng.normal(size=10)
    wrench = wrench_regressor(x) @ phi
    filtered = wrench_regressor(low_pass(x, 8.0, 100.0)) @ phi
    np.testing.assert_allclose(filtered, low_pass(wrench, 8.0, 100.0), atol=1e-10)


def test_the_slope_of_the_features_is_their_finite_difference(rng):
    g, a, w, alpha = rng.normal(size=(4, 1, 3))
    h = 1e-6
    for j in range(9):
        step = np.zeros(9)
        step[j] = h
        ends = [
            features(g, a + s * step[:3], w + s * step[3:6], alpha + s * step[6:])[0]
            for s in (1, -1)
        ]
        slope = (ends[0] - ends[1]) / (2 * h)
        unit = np.outer(step, step)[None] / h**2  # an error of one signal alone
        np.testing.assert_allclose(
            feature_covariance(w, unit)[0], np.outer(slope, slope), atol=1e-8
        )


def test_noise_of_the_motion_becomes_noise_of_features_without_bias(rng):
    w = np.tile([0.7, -0.4, 1.1], (200_000, 1))
    L = rng.normal(size=(9, 9)) * 0.1
    S = L @ L.T
    noise = rng.normal(size=(len(w), 9)) @ L.T
    zero = np.zeros_like(w)
    covariance = np.tile(S, (len(w), 1, 1))
    noisy = features(zero, noise[:, :3], w + noise[:, 3:6], noise[:, 6:], covariance[:, 3:6, 3:6])
    exact = features(zero[:1], zero[:1], w[:1], zero[:1])[0]
    np.testing.assert_allclose(noisy.mean(axis=0), exact, atol=0.004)
    predicted = feature_covariance(w[:1], covariance[:1])[0]
    np.testing.assert_allclose(np.cov(noisy[:, :6].T), predicted[:6, :6], rtol=0.03, atol=2e-3)
    np.testing.assert_allclose(np.cov(noisy.T), predicted, atol=0.05)


def test_the_noise_that_rows_carry_is_the_expectation(rng):
    Sx = np.array([(L := rng.normal(size=(12, 12)) * 0.3) @ L.T for _ in range(3)])
    half = rng.normal(size=(6, 6))
    W = half @ half.T
    T = wrench_tensor()
    total = np.zeros((10, 10))
    for S in Sx:
        values, vectors = np.linalg.eigh(S)
        for value, vector in zip(values, vectors.T, strict=True):
            dY = np.tensordot(vector, T, axes=1)
            total += value * dY.T @ W @ dY
    nothing = np.zeros((3, 6, 0)), np.zeros((3, 6)), np.eye(6), np.zeros(10), np.zeros((10, 10))
    rows = WrenchRegression(rng.normal(size=(3, 12)), Sx, *nothing)
    np.testing.assert_allclose(rows.regressor_noise(W), total, rtol=1e-9)
    np.testing.assert_allclose(rows.regressor_noise(np.tile(W, (3, 1, 1))), total, rtol=1e-9)


@pytest.mark.parametrize("nominal", [[0, 0, -9.81], [0, 9.81, 0], [0, 0, 9.81], [3.0, -4.0, 8.0]])
def test_tilt_there_and_back_with_its_slope(nominal, rng):
    nominal, angles, h = np.array(nominal, dtype=float), np.array([0.07, -0.11]), 1e-6
    g = BaseGravity(nominal).tilted(angles)
    np.testing.assert_allclose(np.linalg.norm(g), np.linalg.norm(nominal))
    np.testing.assert_allclose(BaseGravity(nominal).inclination(3.0 * g), angles, atol=1e-12)
    np.testing.assert_allclose(BaseGravity(nominal).tilted([0, 0]), nominal, atol=1e-12)
    phi, R = rng.normal(size=10), Rotation.random(4, random_state=1).as_matrix()

    def at_rest(both):
        u = np.einsum("nji,j->ni", R, BaseGravity(nominal).tilted(both))
        return wrench_regressor(np.column_stack([u, np.zeros((4, 9))])) @ phi

    slope = BaseGravity(nominal).tilt_columns(phi, R, angles)
    for k in range(2):
        step = h * np.eye(2)[k]
        numeric = (at_rest(angles + step) - at_rest(angles - step)) / (2 * h)
        np.testing.assert_allclose(slope[:, :, k], numeric, atol=1e-7)


def test_gravity_of_a_tilted_base_is_that_of_the_paper():
    U, V = np.radians([1.824, 2.326])
    R_world_base = Rotation.from_euler("x", U).as_matrix() @ Rotation.from_euler("y", V).as_matrix()
    expected = R_world_base.T @ [0, 0, -9.81]  # liu2025 eq. (6), (9)
    np.testing.assert_allclose(
        BaseGravity(np.array([0, 0, -9.81])).tilted([U, V]), expected, atol=1e-12
    )


def test_the_noise_gain_of_filter_and_differences_is_that_of_noise(rng):
    rate, cutoff = 200.0, 12.0
    noise = rng.normal(size=(200_000, 1))
    smooth = low_pass(noise, cutoff, rate)
    first, second = central_differences(smooth, rate)
    gains = noise_gains(cutoff, rate)
    np.testing.assert_allclose([smooth.var(), first.var(), second.var()], gains, rtol=0.03)
    first, second = central_differences(noise, rate)
    np.testing.assert_allclose([1.0, first.var(), second.var()], noise_gains(None, rate), rtol=0.02)


def test_the_pose_filter_follows_a_motion_and_tells_its_noise(rng):
    step, N, std = 0.004, 1500, 1e-5
    t = step * np.arange(N)
    position = np.column_stack([0.2 * np.sin(2 * t), 0.1 * np.cos(3 * t), 0.05 * t])
    a_base = np.column_stack([-0.8 * np.sin(2 * t), -0.9 * np.cos(3 * t), 0 * t])
    rate = 1.5
    rotation = Rotation.from_rotvec(np.column_stack([0 * t, 0 * t, rate * np.sin(t)]))
    filters = PoseKalmanFilter(step, std, std)
    for noisy in (0.0, std):
        measured = position + noisy * rng.normal(size=position.shape)
        quaternion = (rotation * Rotation.from_rotvec(noisy * rng.normal(size=(N, 3)))).as_quat()
        state = filters.init(measured[0], quaternion[0])
        errors = []
        for k in range(N):
            state = filters.step(state, measured[k], quaternion[k])
            errors.append(
                np.concatenate(
                    [state.linear[2] - a_base[k], state.angular[0] - [0, 0, rate * np.cos(t[k])]]
                )
            )
        late = np.array(errors[500:])
        assert np.abs(late).max() < 0.4
        if noisy == 0.0:
            lag = late
    expected = np.sqrt(np.diag(filters.noise()))
    np.testing.assert_allclose((late - lag)[:, :3].std(), expected[0], rtol=0.15)
    np.testing.assert_allclose((late - lag)[:, 3:].std(), expected[3], rtol=0.15)
