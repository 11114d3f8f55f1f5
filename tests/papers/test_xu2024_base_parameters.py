"""xu2024, appendix: the 58 base parameters of the UR10 and the 22 of them that a payload changes."""

import numpy as np
import pytest
import sympy as sp

from steelyard.inertia import InertialParameters
from steelyard.robot import ParameterBasis, load_robot
from steelyard.robot.symbolic import symbolic_base_parameters

# Masses from link j outwards are written as Mj. pi_31 is printed as Iyy6; it is Ixy6 (ERRATA).
PI = """
Ia1 + Izz1 + Iyy2 + Iyy3 + Iyy4 + 2*d4*mz4 + a3**2*m3 + (a3**2 + a4**2 + d4**2)*M4
Ixx2 - Iyy2 - a3**2*M3
Ixy2
Ixz2 - a3*(mz3 + mz4 + d4*M4)
Iyz2
Ia2 + Izz2 + a3**2*M3
mx2 + a3*M3
my2
Ixx3 - Iyy3 - a4**2*M4
Ixy3
Ixz3 - a4*mz4 - a4*d4*M4
Iyz3
Izz3 + a4**2*M4
mx3 + a4*M4
my3
Ixx4 - Iyy4 + Iyy5 + 2*d5*mz5 + d5**2*M5
Ixy4
Ixz4
Iyz4
Izz4 + Iyy5 + 2*d5*mz5 + d5**2*M5
mx4
my4 + mz5 + d5*M5
Ixx5 - Iyy5 + Iyy6 + 2*d6*mz6 + d6**2*m6
Ixy5
Ixz5
Iyz5
Izz5 + Iyy6 + 2*d6*mz6 + d6**2*m6
mx5
my5 - mz6 - d6*m6
Ixx6 - Iyy6
Ixy6
Ixz6
Iyz6
Izz6
mx6
my6
Ia3 Ia4 Ia5 Ia6
Fc1 Fc2 Fc3 Fc4 Fc5 Fc6
Fv1 Fv2 Fv3 Fv4 Fv5 Fv6
B1 B2 B3 B4 B5 B6
"""

# Row of pi -> its change by a payload of mass m, first moment mx, my, mz and inertia Ixx .. Izz in frame 6.
EPSILON = {
    1: "(d4**2 + a4**2 + a3**2)*m",
    2: "-a3**2*m",
    4: "-a3*d4*m",
    6: "a3**2*m",
    7: "a3*m",
    9: "-a4**2*m",
    11: "-a4*d4*m",
    13: "a4**2*m",
    14: "a4*m",
    16: "d5**2*m",
    20: "d5**2*m",
    22: "d5*m",
    23: "Iyy + 2*d6*mz + d6**2*m",
    27: "Iyy + 2*d6*mz + d6**2*m",
    29: "-mz - d6*m",
    30: "Ixx - Iyy",
    31: "Ixy",
    32: "Ixz",
    33: "Iyz",
    34: "Izz",
    35: "mx",
    36: "my",
}
TABLE_III = {"a3": 0.612, "a4": 0.5723, "d4": 0.163941, "d5": 0.1157, "d6": 0.0922}
PAYLOAD = InertialParameters.from_com(
    2.7, [0.02, -0.03, 0.11], [[0.02, 1e-3, 2e-3], [1e-3, 0.03, -3e-3], [2e-3, -3e-3, 0.025]]
)


def printed():
    masses = {f"M{j}": sp.Add(*sp.symbols(f"m{j}:7")) for j in (3, 4, 5)}
    first, *drives = PI.strip().split("\nIa3 ")
    lines = first.splitlines() + f"Ia3 {drives[0]}".split()
    return [sp.sympify(line).subs(masses) for line in lines]


@pytest.fixture(scope="module")
def ur10():
    return load_robot("ur10")


@pytest.fixture(scope="module")
def symbolic(ur10):
    return symbolic_base_parameters(ur10)


def test_the_58_expressions_of_the_appendix(symbolic):
    assert len(printed()) == len(symbolic) == 58
    for i, (ours, theirs) in enumerate(zip(symbolic.expressions, printed(), strict=True), start=1):
        assert sp.expand(ours - theirs) == 0, f"pi_{i} = {ours}, printed {theirs}"


def test_lengths_are_those_of_table_III(symbolic):
    assert {x.name: number for x, number in symbolic.geometry.items()} == TABLE_III


def test_payload_changes_the_printed_rows(ur10, symbolic):
    last = symbolic.matrix()[:, 50:60]
    rows = [i for i in range(1, 59) if not last.row(i - 1).is_zero_matrix]
    assert rows == list(EPSILON)
    J = ParameterBasis.of(ur10).payload_jacobian
    assert (np.flatnonzero(np.abs(J).max(axis=1) > 1e-12) + 1).tolist() == rows


def test_payload_changes_them_by_the_printed_amounts(ur10):
    numbers = TABLE_III | dict(zip(("m", "mx", "my", "mz"), PAYLOAD.vector[:4], strict=True))
    numbers |= dict(zip(("Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"), PAYLOAD.vector[4:], strict=True))
    epsilon = np.zeros(58)
    for row, text in EPSILON.items():
        epsilon[row - 1] = sp.sympify(text).subs(numbers)
    basis = ParameterBasis.of(ur10)
    np.testing.assert_allclose(basis.payload_jacobian @ PAYLOAD.vector, epsilon, rtol=1e-9, atol=1e-12)
    change = ur10.with_payload(PAYLOAD).parameters - ur10.parameters
    np.testing.assert_allclose(basis.K @ change, epsilon, rtol=1e-9, atol=1e-11)


def test_epsilon_is_the_expression_with_the_payload_put_into_link_6(symbolic):
    names = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
    added = {sp.Symbol(f"{name}6"): sp.Symbol(f"{name}6") + sp.Symbol(name) for name in names}
    for row, text in EPSILON.items():
        pi = symbolic.expressions[row - 1]
        assert sp.expand(pi.subs(added, simultaneous=True) - pi - sp.sympify(text)) == 0, f"epsilon_{row}"
