"""gaz2017: coefficients of the planar arm, (29)-(35), and of the LWR's gravity, (38)-(44).

The paper halves the coefficients of the kinetic energy, writes the last link first and counts no
rotors; its frames are classic, so its form is that on the joint axes.
"""

import numpy as np
import pytest
import sympy as sp

from steelyard.inertia import InertialParameters
from steelyard.robot import ParameterBasis, load_robot
from steelyard.robot._symbolic import SymbolicBasis

ORDER, HALVES = [3, 4, 5, 0, 1, 2], np.array([0.5, 1, 1, 0.5, 1, 1])
EQ_29 = """
(m2*a2**2 + Izz2)/2 + a2*mx2
mx2 + a2*m2
my2
(Izz1 + a1**2*m1 + a1**2*m2)/2 + a1*mx1
mx1 + a1*m1 + a1*m2
my1
"""
EQ_32 = [
    ["a2**2/2", "a2", 0, "1/2"],
    ["a2", 1, 0, 0],
    [0, 0, 1, 0],
    ["a1**2/2", 0, 0, 0],
    ["a1", 0, 0, 0],
]
PI_34 = [0.1112, 0.6, 0.04, 1.3651, 3.2, 0.03]
PI_LOADED_34 = [0.6144, 1.8, 0.19, 2.1152, 4.7, 0.03]
EPSILON_34 = [0.5032, 1.2, 0.15, 0.75, 1.5]
PAYLOAD_35 = [1.5, 0.45, 0.15, 0.1814]
PAYLOAD = InertialParameters(1.5, [0.45, 0.15, 0.0], np.diag([0.05, 0.17, 0.1813]))

EQ_38 = """
my7
mx7
mx6
mz6 + mz7
mz5 - my6
mx5
my5 + mz4 + d5*(m5 + m6 + m7)
mx4
my4 + mz3
mx2
mx3
mz2 - my3 + d3*(m3 + m4 + m5 + m6 + m7)
"""


def read(text):
    return [sp.sympify(line) for line in text.strip().splitlines()]


@pytest.fixture(scope="module")
def planar():
    return load_robot("planar2r")


@pytest.fixture(scope="module")
def coefficients(planar):
    return SymbolicBasis.of(planar, drive=False, on_axes=True)


def in_paper_order(pi):
    return HALVES * np.asarray(pi)[ORDER]


def test_eq_29_in_symbols(coefficients):
    ours = [
        half * pi
        for half, pi in zip(
            (sp.Rational(1, 2), 1, 1) * 2, np.take(coefficients.expressions, ORDER), strict=True
        )
    ]
    assert len(coefficients) == 6
    assert [sp.expand(a - b) for a, b in zip(ours, read(EQ_29), strict=True)] == [0] * 6


def test_numbers_of_eq_34(planar, coefficients):
    K = coefficients.numeric_matrix()
    np.testing.assert_allclose(in_paper_order(K @ planar.parameters), PI_34, atol=1e-4)
    loaded = planar.with_payload(PAYLOAD).parameters
    np.testing.assert_allclose(in_paper_order(K @ loaded), PI_LOADED_34, atol=1e-4)


def test_payload_jacobian_of_eq_32(coefficients):
    columns = [coefficients.symbols.index(sp.Symbol(name)) for name in ("m2", "mx2", "my2", "Izz2")]
    J = sp.diag(*map(sp.nsimplify, HALVES)) * coefficients.matrix()[ORDER, columns]
    assert J[:5, :] == sp.Matrix(EQ_32)
    assert J[5, :].is_zero_matrix


def test_payload_of_eq_35_from_the_printed_differences(coefficients):
    columns = [coefficients.symbols.index(sp.Symbol(name)) for name in ("m2", "mx2", "my2", "Izz2")]
    J = (HALVES[:, None] * coefficients.numeric_matrix()[ORDER])[:5, columns]
    payload = np.linalg.lstsq(J, np.array(EPSILON_34), rcond=None)[0]
    np.testing.assert_allclose(payload, PAYLOAD_35, atol=2e-4)


def test_the_numeric_basis_tells_the_same_in_other_words(planar, coefficients):
    """pi of the paper is an invertible map of pi of `ParameterBasis`, with and without payload."""
    basis = ParameterBasis.of(planar, drive=False)
    change = coefficients.numeric_matrix()[:, basis.independent]
    for robot, printed in ((planar, PI_34), (planar.with_payload(PAYLOAD), PI_LOADED_34)):
        np.testing.assert_allclose(
            in_paper_order(change @ basis.K @ robot.parameters), printed, atol=1e-4
        )
    difference = in_paper_order(change @ basis.payload_jacobian @ PAYLOAD.vector)
    np.testing.assert_allclose(difference[:5], EPSILON_34, atol=1e-4)


@pytest.fixture(scope="module")
def gravity_rows():
    """The rows of the LWR that gravity sees, in the order of (38), and their basis."""
    basis = SymbolicBasis.of(load_robot("lwr4"), on_axes=True)
    ours = [sp.expand(expression) for expression in basis.expressions]
    return basis, [ours.index(sp.expand(line)) for line in read(EQ_38)]


def test_eq_38_holds_all_moments_of_the_lwr(gravity_rows):
    basis, rows = gravity_rows
    moments = [i for i, j in enumerate(basis.independent) if basis.symbols[j].name.startswith("m")]
    assert sorted(rows) == moments


def test_payload_of_eq_44_from_the_printed_differences(gravity_rows):
    basis, rows = gravity_rows
    columns = [basis.symbols.index(sp.Symbol(name)) for name in ("m7", "mx7", "my7", "mz7")]
    J = basis.numeric_matrix()[rows][:, columns]
    changing = np.flatnonzero(np.abs(J).max(axis=1)) + 1
    assert changing.tolist() == [1, 2, 4, 7, 12]
    epsilon = np.array([0.0016, -8.13e-4, 0.3667, 1.1914, 1.2316])
    m, *h = np.linalg.lstsq(J[changing - 1], epsilon, rcond=None)[0]
    assert m == pytest.approx(3.067, abs=1e-3)
    np.testing.assert_allclose(np.array(h) / m, [-2.6e-4, 5e-4, 0.1196], atol=5e-5)
