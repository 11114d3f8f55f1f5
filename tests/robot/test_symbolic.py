"""Symbolic base parameters: the numeric K and the regressor itself are the judges."""

import importlib
import sys
from functools import cache

import numpy as np
import pytest
import sympy as sp

from steelyard.errors import InvalidRobot, MissingExtra
from steelyard.robot import DHTable, DriveModel, ParameterBasis, RobotModel, load_robot
from steelyard.robot._symbolic import SymbolicBasis
from tiers import thorough_but

QUARTER = np.pi / 2
WALL, TILTED, NONE = (0.0, -9.81, 0.0), (1.5, 2.0, -9.4), (0.0, 0.0, 0.0)


def arm(rows, convention="modified", *, types="", gravity=None, coupling=None, drive=None):
    """An arm from rows of alpha, a, d, theta and letters R, P for its joints."""
    alpha, a, d, theta = np.transpose(rows)
    kinds = tuple("prismatic" if letter == "P" else "revolute" for letter in types)
    drive = drive or DriveModel(np.ones(len(alpha)), coupling=coupling)
    made = RobotModel.from_dh(DHTable(alpha, a, d, theta, convention, kinds), drive=drive)
    return made if gravity is None else made.with_gravity(gravity)


SCARA = [[0, 0, 0.4, 0], [0, 0.3, 0, 0], [0, 0.25, 0, 0], [np.pi, 0, -0.1, 0]]
ELBOW = [[0.2, 0.1, 0.3, 0], [-QUARTER, 0.15, 0, 0.4], [0, 0.6, 0.2, 0], [QUARTER, 0, 0.5, 0]]
SLIDING = [
    [0, 0, 0.3, 0],
    [-QUARTER, 0.4, 0.26, QUARTER],
    [QUARTER, 0.3, 0.2, 0],
    [QUARTER, 0, 0.15, 0],
]
SKEW = [[0.3, 0.1, 0.2, 0.5], [0.7, 0.2, 0.1, 0.4], [-0.9, 0.3, 0.25, 0.1]]
WRIST = [[0, 0, 0, 0], [-QUARTER, 0.2, 0, 0], [QUARTER, 0, 0.4, 0], [-QUARTER, 0, 0, 0]]
COUPLED = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 45, 0], [0, 0, 32, 64]]

MADE_UP = {
    "scara": arm(SCARA, types="RRPR"),
    "scara, classic": arm(SCARA, "classic", types="RRPR"),
    "scara on a wall": arm(SCARA, types="RRPR", gravity=WALL),
    "elbow on a wall": arm(ELBOW, gravity=WALL),
    "elbow, tilted": arm(ELBOW, gravity=TILTED),
    "elbow, classic, without gravity": arm(ELBOW, "classic", gravity=NONE),
    "gantry": arm(
        [[0, 0, 0, 0], [QUARTER, 0, 0, QUARTER], [QUARTER, 0, 0, 0]], types="PPP", gravity=TILTED
    ),
    "lift": arm(ELBOW, types="PRRR"),
    "slide within": arm(SLIDING, types="RPRR", gravity=NONE),
    "slide within, classic": arm(SLIDING, "classic", types="RPRR", gravity=TILTED),
    "two slides": arm(SLIDING, types="RPPR"),
    "skew": arm(SKEW),
    "skew, classic": arm(SKEW, "classic", gravity=TILTED),
    "skew slide": arm(SKEW, types="RPR", gravity=WALL),
    "coupled wrist": arm(WRIST, coupling=np.array(COUPLED)),
    "one joint": arm([[0.4, 0.2, 0.1, 0]], "classic"),
}
NAMES = ("kr300", "kr60ha", "lwr4", "panda", "planar2r", "tx60", "ur10", "ur10e")
ARMS = {name: load_robot(name) for name in NAMES} | MADE_UP
CLASSIC = [name for name, robot in ARMS.items() if robot.dh.convention == "classic"]


@cache
def basis_of(name):
    return SymbolicBasis.of(ARMS[name])


QUICK = ("planar2r", "ur10", "scara", "slide within, classic", "skew", "coupled wrist")
"""Every kind of joint, convention and drive once; the others belong to the thorough tests."""


@pytest.fixture(params=thorough_but(QUICK, ARMS))
def both(request):
    return ARMS[request.param], basis_of(request.param)


def values(expressions, basis, phi):
    evaluate = sp.lambdify([*basis.symbols, *basis.geometry], list(expressions), "math")
    return evaluate(*phi, *basis.geometry.values())


# --- laws


@pytest.mark.thorough
def test_symbolic_matrix_is_the_numeric_one(both):
    robot, symbolic = both
    numeric = ParameterBasis.of(robot)
    assert symbolic.independent == tuple(numeric.independent)
    np.testing.assert_allclose(symbolic.numeric_matrix(), numeric.K, rtol=1e-7, atol=1e-9)


def test_torque_depends_on_the_parameters_only_through_the_expressions(both, rng):
    robot, symbolic = both
    Y = robot.regressor(*rng.uniform(-2, 2, (3, 30, robot.n)))
    kept = Y[..., list(symbolic.independent)]
    np.testing.assert_allclose(
        kept @ symbolic.numeric_matrix(), Y, rtol=1e-9, atol=1e-11 * np.abs(Y).max()
    )
    stacked = kept.reshape(-1, len(symbolic))
    assert np.linalg.matrix_rank(stacked / np.linalg.norm(stacked, axis=0)) == len(symbolic)


def test_expressions_are_the_matrix_times_the_symbols(both, rng):
    robot, symbolic = both
    phi = rng.uniform(1, 2, 14 * robot.n)
    pi = values(symbolic.expressions, symbolic, phi)
    np.testing.assert_allclose(pi, symbolic.numeric_matrix() @ phi, rtol=1e-9)


def test_matrix_in_symbols_becomes_the_numeric_one():
    symbolic = basis_of("skew slide")
    K = np.array(symbolic.matrix().subs(dict(symbolic.geometry)), dtype=float)
    np.testing.assert_allclose(K, symbolic.numeric_matrix(), atol=1e-12)
    assert np.count_nonzero(K) > 1.5 * len(symbolic)


@pytest.mark.parametrize(
    "name", ["lwr4", "ur10", "planar2r", "slide within", "skew", "coupled wrist"]
)
def test_links_alone_are_the_numeric_ones(name):
    symbolic = SymbolicBasis.of(ARMS[name], drive=False)
    numeric = ParameterBasis.of(ARMS[name], drive=False)
    assert symbolic.independent == tuple(numeric.independent)
    np.testing.assert_allclose(symbolic.numeric_matrix(), numeric.K, rtol=1e-7, atol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CLASSIC)
def test_form_on_the_axes_spans_the_same_space(name):
    K = basis_of(name).numeric_matrix()
    axes = SymbolicBasis.of(ARMS[name], on_axes=True)
    change = axes.numeric_matrix()[:, list(basis_of(name).independent)]
    assert len(axes) == len(K)
    assert np.linalg.cond(change) < 1e3
    np.testing.assert_allclose(axes.numeric_matrix(), change @ K, atol=1e-9)


def test_forms_are_one_for_a_modified_table():
    robot = ARMS["elbow, tilted"]
    assert SymbolicBasis.of(robot, on_axes=True).names == SymbolicBasis.of(robot).names


@pytest.mark.parametrize("convention", ["modified", "classic"])
def test_what_only_shifts_the_joint_position_does_not_show(convention):
    shift = np.array([[0, 0, 0, 0.3], [0, 0, 0.7, 0], [0, 0, 0, -0.2], [0, 0, 0, 1.0]])
    shifted = np.array(SLIDING) + shift
    plain, moved = (
        SymbolicBasis.of(arm(rows, convention, types="RPRR")) for rows in (SLIDING, shifted)
    )
    assert moved.names == plain.names
    K = ParameterBasis.of(arm(shifted, convention, types="RPRR")).K
    np.testing.assert_allclose(moved.numeric_matrix(), K, atol=1e-9)


def test_rounded_quarter_turns_are_exact():
    rounded = np.round(np.array(ELBOW[1:]), 5)
    assert rounded[0, 0] != -QUARTER
    robot = arm(rounded, gravity=(0.0, 9.81e-6, -9.81))
    assert SymbolicBasis.of(robot).names == SymbolicBasis.of(arm(ELBOW[1:])).names


def test_numbers_that_cancel_by_accident_are_seen():
    """Gravity turned by alpha lies along the axis: nonzero symbols with zero values."""
    along, beside = (
        arm([[0.3, 0, 0, 0]], gravity=(0, sign * np.sin(0.3), -np.cos(0.3))) for sign in (1, -1)
    )
    assert SymbolicBasis.of(along).names == ("Ia1 + Izz1", "Fc1", "Fv1", "B1")
    assert SymbolicBasis.of(beside).names == ("Ia1 + Izz1", "mx1", "my1", "Fc1", "Fv1", "B1")


# --- what is known of small arms


def test_a_lift_weighs_with_its_rotor_and_its_offset():
    names = SymbolicBasis.of(arm([[0, 0, 0.2, 0]], types="P")).names
    assert names == ("Ia1 + m1", "Fc1", "Fv1", "B1 - gz m1")


def test_a_pendulum_turns_with_its_rotor_and_hangs_by_its_moment():
    names = SymbolicBasis.of(arm([[QUARTER, 0, 0, 0]])).names
    assert names == ("Ia1 + Izz1", "mx1", "my1", "Fc1", "Fv1", "B1")


def test_a_carousel_has_only_one_inertia():
    basis = SymbolicBasis.of(arm([[0, 0, 0, 0], [0, 0.5, 0.1, 0]], gravity=NONE), drive=False)
    assert basis.names == ("Izz1 + a2^2 m2", "Izz2", "mx2", "my2")
    assert dict(basis.geometry) == {sp.Symbol("a2"): 0.5}


@pytest.mark.parametrize("name", ["ur10", "tx60", "kr60ha", "panda", "lwr4", "ur10e"])
def test_rotors_of_the_first_two_joints_turn_with_their_links(name):
    names = basis_of(name).names
    alone = [name for name in names if name.startswith("Ia") and " " not in name]
    assert alone == [f"Ia{j}" for j in range(3, ARMS[name].n + 1)]


def test_a_rotor_of_two_joints_is_distinguished():
    shared = np.array([[1, 0, 0, 0], [3, 2, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    assert "Ia2" in SymbolicBasis.of(arm(WRIST, coupling=shared)).names
    assert "Ia2" not in SymbolicBasis.of(arm(WRIST)).names


# --- words and values


def test_words_group_equal_factors():
    basis = basis_of("ur10")
    assert basis.lines()[0] == (
        "pi_1 = Ia1 + Izz1 + Iyy2 + Iyy3 + Iyy4 + 2 d4 mz4 + a3^2 m3 + (a3^2 + a4^2 + d4^2)(m4 +"
        " m5 + m6)"
    )
    assert basis.lines()[3] == "pi_4 = Ixz2 - a3 (mz3 + mz4) - a3 d4 (m4 + m5 + m6)"
    assert basis.lines()[0] == f"pi_1 = {basis.names[0]}"
    assert tuple(line.split(" = ")[1] for line in basis.lines()) == basis.names


def test_words_of_every_arm_can_be_read_back(both, rng):
    robot, symbolic = both
    phi = rng.uniform(1, 2, 14 * robot.n)
    rules = (sp.parsing.sympy_parser.convert_xor, sp.parsing.sympy_parser.implicit_multiplication)
    rules = (*sp.parsing.sympy_parser.standard_transformations, *rules)
    known = {x.name: x for x in (*symbolic.symbols, *symbolic.geometry)}
    read = [sp.parse_expr(name, local_dict=known, transformations=rules) for name in symbolic.names]
    np.testing.assert_allclose(
        values(read, symbolic, phi), symbolic.numeric_matrix() @ phi, rtol=1e-9
    )


def test_skew_angles_are_written_as_sines_and_cosines():
    basis = basis_of("skew")
    alpha = {sp.Symbol(f"alpha{i}") for i in (2, 3)}
    assert alpha <= set(basis.geometry)
    assert basis.geometry[sp.Symbol("alpha3")] == -0.9
    assert "sin(alpha2)^2 Iyy2" in basis.names[basis.independent.index(9)]


def test_geometry_holds_what_occurs_and_cannot_be_changed():
    basis = basis_of("ur10")
    values = {x.name: number for x, number in basis.geometry.items()}
    assert values == {"a3": 0.612, "a4": 0.5723, "d4": 0.163941, "d5": 0.1157, "d6": 0.0922}
    with pytest.raises(TypeError, match="item assignment"):
        basis.geometry[sp.Symbol("a3")] = 1.0


def test_symbols_are_the_parameters():
    basis = basis_of("panda")
    assert tuple(x.name for x in basis.symbols) == ARMS["panda"].parameter_names
    assert basis.matrix().shape == (len(basis), 98)


# --- refusals


def test_a_urdf_has_no_symbols(tiny):
    robot = RobotModel.from_urdf_text(tiny["revolute"])
    with pytest.raises(
        InvalidRobot, match="tiny has no DH table to take symbols from; its base parameters"
    ):
        SymbolicBasis.of(robot)


def test_without_sympy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    monkeypatch.delitem(sys.modules, "steelyard.robot._symbolic")
    with pytest.raises(MissingExtra, match=r"this needs sympy: pip install 'steelyard\[robot\]'"):
        importlib.import_module("steelyard.robot._symbolic")
