"""The ten inertial parameters against clouds of point masses, summed up here point by point."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from steelyard.inertia import PARAMETER_NAMES, InertialParameters, frame_change_matrix, skew


def cloud(rng, count=7):
    """Masses (N,) and points (N, 3) of a body in no special place."""
    return rng.uniform(0.1, 2.0, count), rng.normal([0.2, -0.1, 0.3], 0.2, (count, 3))


def summed(masses, points):
    """Mass, first moment and inertia about the origin, by the book."""
    inertia = np.zeros((3, 3))
    for m, (x, y, z) in zip(masses, points, strict=True):
        inertia += m * np.array(
            [
                [y * y + z * z, -x * y, -x * z],
                [-x * y, x * x + z * z, -y * z],
                [-x * z, -y * z, x * x + y * y],
            ]
        )
    return masses.sum(), masses @ points, inertia


def body(masses, points, frame="flange"):
    return InertialParameters(*summed(masses, points), frame)


def transform(rng):
    T = np.eye(4)
    T[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    T[:3, 3] = rng.normal(0, 0.5, 3)
    return T


def moved(T, points):
    return points @ T[:3, :3].T + T[:3, 3]


def test_points_have_mass_com_and_inertia(rng):
    masses, points = cloud(rng)
    mass, first_moment, inertia = summed(masses, points)
    made = InertialParameters.from_points(masses, points, "tool")
    np.testing.assert_allclose(made.mass, mass)
    np.testing.assert_allclose(made.com, first_moment / mass)
    np.testing.assert_allclose(made.first_moment, first_moment)
    np.testing.assert_allclose(made.inertia, inertia)
    assert made.frame == "tool"


def test_vector_has_the_order_of_its_names(rng):
    masses, points = cloud(rng)
    m, h, I = summed(masses, points)  # noqa: E741 - the letter of the books
    by_name = {"m": m, "mx": h[0], "my": h[1], "mz": h[2]}
    by_name |= {f"I{'xyz'[i]}{'xyz'[j]}": I[i, j] for i in range(3) for j in range(3)}
    np.testing.assert_allclose(
        body(masses, points).vector, [by_name[name] for name in PARAMETER_NAMES]
    )


def test_inertia_about_the_com_is_that_of_the_centred_cloud(rng):
    masses, points = cloud(rng)
    com = masses @ points / masses.sum()
    centred = summed(masses, points - com)[2]
    made = body(masses, points)
    np.testing.assert_allclose(made.inertia_com, centred, atol=1e-14)
    np.testing.assert_allclose(
        InertialParameters.from_com(masses.sum(), com, centred).vector, made.vector, atol=1e-14
    )


def test_pseudo_inertia_is_the_second_moment_of_homogeneous_points(rng):
    masses, points = cloud(rng)
    homogeneous = np.column_stack([points, np.ones(len(points))])
    J = sum(m * np.outer(x, x) for m, x in zip(masses, homogeneous, strict=True))
    made = body(masses, points)
    np.testing.assert_allclose(made.pseudo_inertia, J, atol=1e-14)
    np.testing.assert_allclose(
        InertialParameters.from_pseudo_inertia(J).vector, made.vector, atol=1e-14
    )


def test_in_frame_is_the_cloud_of_moved_points(rng):
    masses, points = cloud(rng)
    T_tool_flange = transform(rng)
    seen = body(masses, points).in_frame("tool", T_tool_flange)
    np.testing.assert_allclose(
        seen.vector, body(masses, moved(T_tool_flange, points)).vector, atol=1e-13
    )
    assert seen.frame == "tool"


def test_frame_change_matrix_is_in_frame_for_any_ten_numbers(rng):
    T_new_old, vector = transform(rng), rng.normal(size=10)
    expected = InertialParameters.from_vector(vector).in_frame("new", T_new_old).vector
    np.testing.assert_allclose(frame_change_matrix(T_new_old) @ vector, expected, atol=1e-13)


def test_frame_changes_compose(rng):
    T_c_b, T_b_a = transform(rng), transform(rng)
    there = frame_change_matrix(T_c_b) @ frame_change_matrix(T_b_a)
    np.testing.assert_allclose(frame_change_matrix(T_c_b @ T_b_a), there, atol=1e-13)


def test_bodies_add_and_subtract_like_their_clouds(rng):
    (masses_a, points_a), (masses_b, points_b) = cloud(rng), cloud(rng, 5)
    both = body(np.concatenate([masses_a, masses_b]), np.concatenate([points_a, points_b]))
    a, b = body(masses_a, points_a), body(masses_b, points_b)
    np.testing.assert_allclose((a + b).vector, both.vector)
    np.testing.assert_allclose((both - b).vector, a.vector, atol=1e-13)


def test_principal_axes_diagonalise(rng):
    made = body(*cloud(rng))
    R, moments = made.principal_axes, made.principal_moments
    np.testing.assert_allclose(R @ np.diag(moments) @ R.T, made.inertia_com, atol=1e-14)
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-14)
    assert np.linalg.det(R) == pytest.approx(1.0)
    assert (np.diff(moments) > 0).all()
    again = InertialParameters.from_com(made.mass, made.com, R @ np.diag(moments) @ R.T)
    np.testing.assert_allclose(again.vector, made.vector, atol=1e-14)


def test_skew_is_the_cross_product(rng):
    a, b = rng.normal(size=(2, 3))
    np.testing.assert_allclose(skew(a) @ b, np.cross(a, b))


numbers = st.lists(st.floats(-1.0, 1.0), min_size=10, max_size=10)


@given(numbers)
@settings(deadline=None)
def test_any_ten_numbers_are_the_log_cholesky_of_a_physical_body(log_cholesky):
    made = InertialParameters.from_log_cholesky(log_cholesky)
    assert made.is_physical, made.why_not_physical
    assert np.linalg.eigvalsh(made.pseudo_inertia)[0] > 0
    np.testing.assert_allclose(made.log_cholesky, log_cholesky, atol=1e-9)


def test_log_cholesky_is_the_factor_that_the_paper_prints(rng):
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = theta = rng.normal(0, 0.5, 10)
    U = np.exp(alpha) * np.array(
        [
            [np.exp(d1), s12, s13, t1],
            [0, np.exp(d2), s23, t2],
            [0, 0, np.exp(d3), t3],
            [0, 0, 0, 1],
        ]
    )
    np.testing.assert_allclose(InertialParameters.from_log_cholesky(theta).pseudo_inertia, U @ U.T)


def test_log_cholesky_round_trip_of_a_cloud(rng):
    made = body(*cloud(rng))
    again = InertialParameters.from_log_cholesky(made.log_cholesky)
    np.testing.assert_allclose(again.vector, made.vector, atol=1e-13)


def test_a_cloud_is_physical(rng):
    made = body(*cloud(rng))
    assert made.is_physical
    assert made.why_not_physical == ""


@pytest.mark.parametrize(("count", "shape"), [(1, "point"), (2, "rod"), (3, "plate")])
def test_flat_clouds_are_on_the_border(rng, count, shape):
    """One, two and three points: no extent in some direction, wherever they are."""
    for _ in range(50):
        masses, points = cloud(rng, count)
        made = body(masses, 5 * points)
        assert not made.is_physical
        assert "no extent along" in made.why_not_physical, shape


def test_a_negative_second_moment_is_named(rng):
    made = InertialParameters.from_com(2.0, rng.normal(size=3), np.diag([0.1, 0.2, 0.4]))
    assert "violate the triangle inequality" in made.why_not_physical
    assert "negative second moment of -0.05 kg m^2" in made.why_not_physical
    assert "frame 'flange'" in made.why_not_physical
    with pytest.raises(
        ValueError, match=r"only a physical body has log-Cholesky .* triangle inequality"
    ):
        _ = made.log_cholesky


@pytest.mark.parametrize("mass", [-0.7, 0.0])
def test_mass_must_be_positive(mass):
    made = InertialParameters(mass, [0.1, 0.2, 0.3], np.eye(3))
    assert f"the mass is {mass:g} kg; it must be positive" in made.why_not_physical
