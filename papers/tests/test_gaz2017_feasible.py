"""gaz2017, end of section IV: feasible parameters of the planar arm, (36)-(37), and question Q4."""

import numpy as np
import pytest

from steelyard.identification._feasible import ParameterBounds, feasible_parameters
from steelyard.inertia import InertialParameters
from steelyard.robot import ParameterBasis, load_robot
from steelyard.robot._symbolic import SymbolicBasis

ORDER, HALVES = [3, 4, 5, 0, 1, 2], np.array([0.5, 1, 1, 0.5, 1, 1])
PI_34 = np.array([0.1112, 0.6, 0.04, 1.3651, 3.2, 0.03])
NAMES = ("m1", "m2", "Izz1", "Izz2", "cx1", "cy1", "cx2", "cy2")
LOWER_36 = (0.0, 0.0, 0.0, 0.0, -1.0, -0.02, -0.5, -0.02)
UPPER_36 = (5.0, 3.0, 2.0, 1.0, 0.0, 0.02, 0.0, 0.02)
P_37 = (1.5064, 2.4598, 0.2965, 0.2374, -0.5086, 0.0199, -0.2561, 0.0163)
PAYLOAD_35 = InertialParameters.from_com(1.5, [0.3, 0.1, 0.0], np.diag([0.01, 0.02, 0.0314]))


def relevant(robot):
    """The eight parameters that the paper names."""
    one, two = robot.links
    moments = (one.inertia[2, 2], two.inertia[2, 2])
    return np.array([one.mass, two.mass, *moments, *one.com[:2], *two.com[:2]])


@pytest.fixture(scope="module")
def planar():
    return load_robot("planar2r")


@pytest.fixture(scope="module")
def basis(planar):
    return ParameterBasis.of(planar, drive=False)


@pytest.fixture(scope="module")
def to_paper(planar, basis):
    """pi of the paper from pi of `ParameterBasis`, (6, 6)."""
    change = SymbolicBasis.of(planar, drive=False, on_axes=True).numeric_matrix()
    return HALVES[:, None] * change[ORDER][:, basis.independent]


@pytest.fixture(scope="module")
def arm(planar, basis, to_paper):
    """From the printed pi with its four decimals; the nominal arm has no link parameters."""
    R = np.zeros((7, 7))
    R[:6, :6], R[:6, 6], R[6, 6] = to_paper / 1e-5, PI_34 / 1e-5, 1.0
    limits = {name: limit for name, *limit in zip(NAMES, LOWER_36, UPPER_36, strict=True)}
    bounds = ParameterBounds(limits | {"total_mass": (3.0, 6.0)})
    unknown = planar.with_links([InertialParameters.nothing()] * 2)
    return feasible_parameters(planar, basis, R, bounds=bounds, nominal=unknown)


def test_the_printed_solution_has_the_printed_coefficients(planar, basis, to_paper):
    """(37) is a solution of (34) within (36), of the many there are."""
    m1, m2, j1, j2, x1, y1, x2, y2 = P_37
    bodies = [
        InertialParameters(m, m * np.array([x, y, 0.0]), np.diag([j, j, j]))
        for m, x, y, j in ((m1, x1, y1, j1), (m2, x2, y2, j2))
    ]
    printed = to_paper @ basis.K @ planar.with_links(bodies).parameters
    np.testing.assert_allclose(printed, PI_34, atol=2e-4)


def test_ours_has_them_too_within_the_bounds_36(arm, to_paper):
    np.testing.assert_allclose(to_paper @ arm.base, PI_34, atol=1e-6)
    found = relevant(arm.robot)
    assert (found >= np.array(LOWER_36) - 1e-6).all()
    assert (found <= np.array(UPPER_36) + 1e-6).all()
    assert 3.0 - 1e-6 <= found[:2].sum() <= 6.0 + 1e-6


def test_ours_are_real_bodies(arm):
    assert all(body.is_physical for body in arm.robot.links)
    assert arm.rms_ratio < 1.01


def test_question_Q4_with_and_without_payload(arm, planar, basis):
    """Sinusoids as in the paper: Newton-Euler with feasible parameters against arm and pi."""
    t = np.linspace(0.0, 20.0, 200)
    w = 2 * np.pi * np.array([0.05, 0.3])
    size = np.array([2 * np.pi, np.pi])
    phase = w * t[:, None]
    q, v, a = size * np.sin(phase), size * w * np.cos(phase), -size * w**2 * np.sin(phase)
    Y = basis.reduce(planar.regressor(q, v, a))
    np.testing.assert_allclose(arm.robot.inverse_dynamics(q, v, a), Y @ arm.base, atol=1e-8)
    loaded = arm.base + basis.payload_jacobian @ PAYLOAD_35.vector
    carrying = arm.robot.with_payload(PAYLOAD_35).inverse_dynamics(q, v, a)
    np.testing.assert_allclose(carrying, Y @ loaded, atol=1e-8)
    true = planar.with_payload(PAYLOAD_35).inverse_dynamics(q, v, a)
    np.testing.assert_allclose(carrying, true, atol=1e-3 * np.abs(true).max())
