"""xu2024, appendix: the 58 base parameters of the UR10; a payload changes 22 of them."""

import numpy as np
import pytest
import sympy as sp

from steelyard.inertia import InertialParameters
from steelyard.robot import ParameterBasis
from steelyard.robot._symbolic import SymbolicBasis
from steelyard_papers.xu2024 import arm
from steelyard_papers.xu2024.printed import EPSILON, PI

TABLE_III = {"a3": 0.612, "a4": 0.5723, "d4": 0.163941, "d5": 0.1157, "d6": 0.0922}
PAYLOAD = InertialParameters.from_com(
    2.7,
    [0.02, -0.03, 0.11],
    [[0.02, 1e-3, 2e-3], [1e-3, 0.03, -3e-3], [2e-3, -3e-3, 0.025]],
    arm.FLANGE,
)


def printed():
    masses = {f"M{j}": sp.Add(*sp.symbols(f"m{j}:7")) for j in (3, 4, 5)}
    corrected = [*PI[:30], "Ixy6", *PI[31:]]  # pi_31 is printed as Iyy6
    return [sp.sympify(line).subs(masses) for line in corrected]


@pytest.fixture(scope="module")
def ur10():
    return arm.ur10()


@pytest.fixture(scope="module")
def symbolic(ur10):
    return SymbolicBasis.of(ur10)


@pytest.mark.thorough
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
    numbers |= dict(
        zip(("Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"), PAYLOAD.vector[4:], strict=True)
    )
    epsilon = np.zeros(58)
    for row, text in EPSILON.items():
        epsilon[row - 1] = sp.sympify(text).subs(numbers)
    basis = ParameterBasis.of(ur10)
    np.testing.assert_allclose(
        basis.payload_jacobian @ PAYLOAD.vector, epsilon, rtol=1e-9, atol=1e-12
    )
    change = ur10.with_payload(PAYLOAD).parameters - ur10.parameters
    np.testing.assert_allclose(basis.K @ change, epsilon, rtol=1e-9, atol=1e-11)


def test_epsilon_is_the_expression_with_the_payload_put_into_link_6(symbolic):
    names = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
    added = {sp.Symbol(f"{name}6"): sp.Symbol(f"{name}6") + sp.Symbol(name) for name in names}
    for row, text in EPSILON.items():
        pi = symbolic.expressions[row - 1]
        assert sp.expand(pi.subs(added, simultaneous=True) - pi - sp.sympify(text)) == 0, (
            f"epsilon_{row}"
        )
