"""Construction of InertialParameters: refusals, shapes, copies."""

import pickle

import numpy as np
import pytest

from steelyard.errors import InvalidInertia, MissingExtra, SteelyardError
from steelyard.inertia import InertialParameters, checked_transform, frame_change_matrix

MIRROR = np.diag([1.0, 1.0, -1.0, 1.0])
SHEAR = np.eye(4) + 0.1 * np.eye(4, k=1)
PROJECTIVE = np.eye(4) + 0.1 * np.outer([0, 0, 0, 1], [1, 0, 0, 0])
SPHERE = InertialParameters.from_com(2.0, [0.1, 0.2, 0.3], 0.01 * np.eye(3), "tool")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: InertialParameters(np.nan, [1, 2, 3], np.eye(3)),
            r"'mass' must be a finite number, got nan",
        ),
        (
            lambda: InertialParameters(1, [1, 2], np.eye(3)),
            r"'first_moment' must have shape \(3,\), got \(2,\)",
        ),
        (
            lambda: InertialParameters(1, [1, 2, np.inf], np.eye(3)),
            r"'first_moment' must be finite, got .*inf",
        ),
        (
            lambda: InertialParameters(1, [1, 2, 3], np.eye(4)),
            r"'inertia' must have shape \(3, 3\)",
        ),
        (
            lambda: InertialParameters(1, [1, 2, 3], np.eye(3) + np.eye(3, k=1)),
            r"'inertia' must be symmetric",
        ),
        (
            lambda: InertialParameters.from_vector(np.ones(9)),
            r"'vector' must have shape \(10,\), got \(9,\)",
        ),
        (lambda: InertialParameters.from_com(1, [1, 2], np.eye(3)), r"'com' must have shape"),
        (
            lambda: InertialParameters.from_com(1, [1, 2, 3], np.ones(3)),
            r"'inertia_com' must have shape",
        ),
        (
            lambda: InertialParameters.from_pseudo_inertia(np.eye(3)),
            r"'pseudo_inertia' must have shape \(4, 4\)",
        ),
        (
            lambda: InertialParameters.from_pseudo_inertia(SHEAR),
            r"'pseudo_inertia' must be symmetric",
        ),
        (
            lambda: InertialParameters.from_pseudo_inertia(PROJECTIVE),
            r"'pseudo_inertia' must be symmetric",
        ),
        (
            lambda: InertialParameters.from_log_cholesky(np.ones(11)),
            r"'log_cholesky' must have shape",
        ),
        (
            lambda: InertialParameters.from_points([1, 2], np.ones((3, 3))),
            r"'points' must have shape \(2, 3\)",
        ),
        (
            lambda: InertialParameters.from_points([1, 2], np.ones((2, 2))),
            r"'points' must have shape \(2, 3\)",
        ),
        (
            lambda: InertialParameters.from_points(np.ones((2, 1)), np.ones((2, 3))),
            r"'masses' must have shape",
        ),
        (lambda: InertialParameters.nothing().com, r"a body of zero mass has no centre of mass"),
        (
            lambda: InertialParameters.nothing().log_cholesky,
            r"log-Cholesky parameters: the mass is 0 kg",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InvalidInertia, match=message):
        make()


@pytest.mark.parametrize("T", [MIRROR, SHEAR, PROJECTIVE])
@pytest.mark.parametrize(
    "use", [checked_transform, frame_change_matrix, lambda T: SPHERE.in_frame("flange", T)]
)
def test_only_rotations_and_translations_change_frames(use, T):
    with pytest.raises(InvalidInertia, match="'transform' must be a rotation and a translation"):
        use(T)


@pytest.mark.parametrize("combine", [lambda a, b: a + b, lambda a, b: a - b])
def test_bodies_in_two_frames_do_not_add(combine):
    with pytest.raises(
        InvalidInertia, match=r"'tool' and 'flange' cannot be added .* in_frame\(\)"
    ):
        combine(SPHERE, SPHERE.renamed("flange"))


def test_arrays_are_copied_when_given_and_read_only(rng):
    first_moment, inertia = rng.normal(size=3), np.diag(rng.uniform(1, 2, 3))
    made = InertialParameters(1.5, first_moment, inertia)
    kept = made.vector
    first_moment[:] = inertia[:] = 7.0
    np.testing.assert_array_equal(made.vector, kept)
    for array in (made.first_moment, made.inertia):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(AttributeError):
        made.mass = 2.0


def test_equality_is_that_of_numbers_and_frame():
    assert InertialParameters.from_vector(SPHERE.vector, "tool") == SPHERE
    assert SPHERE.renamed("flange") != SPHERE
    assert SPHERE != "a sphere"
    with pytest.raises(TypeError, match="unhashable"):
        hash(SPHERE)


def test_nothing_adds_nothing():
    assert SPHERE + InertialParameters.nothing("tool") == SPHERE


@pytest.mark.parametrize(
    "make",
    [
        lambda body: InertialParameters.from_vector(body.vector, body.frame),
        lambda body: InertialParameters.from_com(body.mass, body.com, body.inertia_com, body.frame),
        lambda body: InertialParameters.from_pseudo_inertia(body.pseudo_inertia, body.frame),
        lambda body: InertialParameters.from_log_cholesky(body.log_cholesky, body.frame),
        lambda body: InertialParameters.from_com(
            body.mass,
            body.com,
            body.principal_axes @ np.diag(body.principal_moments) @ body.principal_axes.T,
            body.frame,
        ),
    ],
)
def test_every_way_to_write_a_body_reads_back(rng, make):
    body = InertialParameters.from_points(rng.uniform(0.1, 1, 6), rng.normal(size=(6, 3)), "wrist")
    again = make(body)
    assert again.frame == "wrist"
    np.testing.assert_allclose(again.vector, body.vector, atol=1e-12)


def test_a_missing_extra_says_how_to_get_it():
    error = MissingExtra.of("mujoco", "simulation")
    assert isinstance(error, SteelyardError)
    assert isinstance(error, ImportError)
    assert str(error) == "this needs mujoco: pip install 'steelyard[simulation]'"
    assert str(MissingExtra.of("polars")) == "this needs polars: pip install polars"


def every_error():
    waiting = [SteelyardError]
    while waiting:
        yield (cls := waiting.pop())
        waiting += [below for below in cls.__subclasses__() if below.__module__ == cls.__module__]


def test_every_error_can_be_pickled_and_made_again_with_another_text():
    found = list(every_error())
    assert MissingExtra in found
    for cls in found:
        error = cls("what is wrong")
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is cls
        assert str(again) == "what is wrong"
        assert str(type(error)(f"run 1: {error}")) == "run 1: what is wrong"


def test_the_covariance_of_the_inertia_about_the_centre_of_mass_is_that_of_small_changes(rng):
    body = InertialParameters.from_com(2.0, [0.1, -0.2, 0.3], np.diag([0.02, 0.03, 0.04]), "tool")

    def six(vector):
        return InertialParameters.from_vector(vector).inertia_com[
            [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]
        ]

    step = 1e-6
    ups_and_downs = [step * sign * unit for unit in np.eye(10) for sign in (1, -1)]
    found = [six(body.vector + change) for change in ups_and_downs]
    slope = np.array(
        [(up - down) / (2 * step) for up, down in zip(found[::2], found[1::2], strict=True)]
    ).T
    root = rng.normal(size=(10, 10))
    np.testing.assert_allclose(
        body.inertia_com_covariance(root @ root.T),
        slope @ root @ root.T @ slope.T,
        rtol=1e-6,
        atol=1e-8,
    )
