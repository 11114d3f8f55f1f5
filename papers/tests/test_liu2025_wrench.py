"""Numbers printed in liu2025, recomputed; its slips are listed in docs/explanation/wrist.md."""

import numpy as np
import pytest
from scipy.linalg import eigh

from steelyard.inertia import InertialParameters
from steelyard.wrist._regressor import BaseGravity, features, wrench_regressor
from steelyard.wrist.estimators import RecursiveRestricted

UPRIGHT = np.array([0.0, 0.0, -9.81])
MASS, MZ, INERTIA = 40.173, 0.905, np.diag([3.24, 0.809, 4.049])
TILT = np.radians([1.824, 2.326])


def printed(a, w, alpha, g):
    """Eq. (5) with ten columns, a - g instead of a + g, and omega_x omega_z + alpha_y in row 1."""
    (ax, ay, az), (wx, wy, wz), (bx, by, bz) = a - g, w, alpha
    return np.array(
        [
            [ax, -(wy**2) - wz**2, wx * wy - bz, wx * wz + by, 0, 0, 0, 0, 0, 0],
            [ay, wx * wy + bz, -(wx**2) - wz**2, wy * wz - bx, 0, 0, 0, 0, 0, 0],
            [az, wx * wz - by, wy * wz + bx, -(wy**2) - wx**2, 0, 0, 0, 0, 0, 0],
            [0, 0, az, -ay, bx, by - wx * wz, -wy * wz, bz + wx * wy, wy**2 - wz**2, wy * wz],
            [0, -az, 0, ax, wx * wz, bx + wy * wz, by, wz**2 - wx**2, bz - wx * wy, -wx * wz],
            [0, ay, -ax, 0, -wx * wy, wx**2 - wy**2, wx * wy, bx - wy * wz, by + wx * wz, bz],
        ]
    )


def test_equation_5_is_the_negative_of_what_the_load_does_to_the_sensor(rng):
    a, w, alpha, g = rng.normal(size=(4, 3))
    Y = wrench_regressor(features(g[None], a[None], w[None], alpha[None]))[0]
    np.testing.assert_allclose(Y, -printed(a, w, alpha, g), atol=1e-12)


def test_equation_19_needs_two_signs():
    kappa = MASS * BaseGravity(UPRIGHT).tilted(TILT)  # eq. (14)
    np.testing.assert_allclose(BaseGravity(UPRIGHT).inclination(kappa), TILT, atol=1e-12)
    as_printed = [np.arcsin(kappa[1] / np.linalg.norm(kappa)), np.arctan(kappa[0] / kappa[2])]
    np.testing.assert_allclose(as_printed, -TILT, atol=1e-12)
    assert np.linalg.norm(kappa) / 9.81 == pytest.approx(MASS)


def test_the_reference_payload_of_table_2_is_a_plate_about_its_centre_of_mass():
    about_origin = InertialParameters(MASS, [0, 0, MZ], INERTIA)
    assert "negative second moment" in about_origin.why_not_physical
    about_com = InertialParameters.from_com(MASS, [0, 0, MZ / MASS], INERTIA)
    assert "no extent along" in about_com.why_not_physical


def test_the_force_that_method_2_leaves_is_the_tilt_that_it_ignores():
    left = MASS * np.linalg.norm(BaseGravity(UPRIGHT).tilted(TILT) - UPRIGHT)
    assert left == pytest.approx(21.41, rel=0.06)  # Table III prints 21.36 to 21.58 N
    tilt = np.arccos(BaseGravity(UPRIGHT).tilted(TILT)[2] / -9.81)
    assert MASS * (1 - np.cos(tilt)) == pytest.approx(
        0.075, abs=0.03
    )  # Table II, error of Method 2


def test_equations_34_and_35_with_the_inverse_are_our_recursion(rng):
    """v = P_k (P_r v) with P_k kept as an inverse and updated by the gain: the same numbers."""
    std = np.array([0.5, 0.5, 0.5, 0.05, 0.05, 0.05])
    recursion = RecursiveRestricted(std)
    x, Sx = rng.normal(size=(60, 12)), np.diag([0.02] * 3 + [0.05] * 3 + [0.0] * 6)
    body = InertialParameters.from_com(5.0, [0.1, 0, 0.2], np.diag([0.3, 0.2, 0.4]))
    noisy = x + rng.multivariate_normal(np.zeros(12), Sx, 60)
    wrench = wrench_regressor(x) @ body.vector + std * rng.normal(size=(60, 6))
    state = recursion.init(body.vector)
    for k in range(60):
        before = state
        state = recursion.step(state, noisy[k], Sx, wrench[k])
    weight = np.repeat(180.0 / ((state.P @ before.v) @ before.v), 3)
    rows = np.concatenate([wrench_regressor(noisy), wrench[:, :, None]], axis=2) / std[:, None]
    rows = (rows * np.sqrt(weight)[:, None]).reshape(-1, 11)
    P = np.linalg.inv(state.prior_M)
    for Z in rows:  # eq. (35), row by row, lambda = 1
        gain = P @ Z / (1 + Z @ P @ Z)
        P = P - np.outer(gain, Z @ P)
    noise = np.tensordot(weight[[0, 3]], state.P, axes=1)
    v = P @ (noise @ before.v)  # eq. (34)
    np.testing.assert_allclose(-v[:-1] / v[-1], recursion.value(state), rtol=1e-4, atol=1e-5)
    v = eigh(noise, rows.T @ rows)[1][:, -1]  # the smallest ratio v'Mv / v'Pv
    np.testing.assert_allclose(recursion.value(state), -v[:-1] / v[-1], atol=0.02)
