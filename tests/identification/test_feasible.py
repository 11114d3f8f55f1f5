"""Feasible parameters: real bodies, the base parameters of the data, bounds, any units."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from steelyard import _arrays
from steelyard.errors import InvalidRobot, MissingExtra, SolverFailed, UnknownName
from steelyard.identification import RegressionFactor
from steelyard.identification import _feasible as feasible
from steelyard.identification._feasible import ParameterBounds, feasible_parameters
from steelyard.identification._least_squares import solve_weighted
from steelyard.inertia import InertialParameters
from steelyard.io import read
from steelyard.robot import DHTable, DriveModel, ParameterBasis, RobotModel, load_robot
from steelyard.signals import Preparation, prepare

ARMS = ("kr60ha", "panda", "lwr4", "planar2r", "ur10e")


@pytest.fixture(scope="module")
def bases():
    robots = {name: load_robot(name) for name in ARMS}
    return {name: (robot, ParameterBasis.of(robot)) for name, robot in robots.items()}


def motion(robot, rng, count=250, still=()):
    q, v, a = (rng.uniform(-size, size, (count, robot.n)) for size in (2.0, 1.5, 3.0))
    for joint in still:
        q[:, joint], v[:, joint], a[:, joint] = 0.3, 0.0, 0.0
    return q, v, a


def factor(robot, basis, rng, *, noise=0.0, still=()):
    """The weighted factor of torques of a robot; noise as a share of each joint's torque."""
    q, v, a = motion(robot, rng, still=still)
    tau = robot.torque(q, v, a)
    tau += noise * np.abs(tau).max(axis=0) * rng.standard_normal(tau.shape)
    rows = RegressionFactor.empty(robot.n, len(basis)).add(
        basis.reduce(robot.regressor(q, v, a)), tau
    )
    solution = solve_weighted(rows)
    return rows.weighted(1.0 / solution.noise), solution.value


def other_bodies(robot, rng):
    """The same arm with links of other mass, place and shape, and other drives."""
    links = []
    for body in robot.links:
        com = body.com + rng.normal(0.0, 0.05, 3)
        links.append(
            InertialParameters.from_com(
                body.mass * rng.uniform(0.5, 2.0),
                com,
                body.inertia_com * rng.uniform(0.7, 1.5),
                body.frame,
            )
        )
    drive = replace(robot.drive, rotor_inertia=robot.drive.rotor_inertia * 1.5 + 0.1)
    return robot.with_links(links).with_drive(drive)


def massless(robot):
    empty = robot.with_links([InertialParameters.nothing()] * robot.n)
    return empty.with_drive(
        replace(robot.drive, rotor_inertia=np.zeros(robot.n), coulomb=np.zeros(robot.n))
    )


def require_physical(arm):
    for body in arm.robot.links:
        assert body.is_physical, body.why_not_physical
    for name in ("rotor_inertia", "coulomb", "viscous"):
        assert (getattr(arm.robot.drive, name) > -1e-6).all()


# --- the truth is found


@pytest.mark.parametrize(
    "nominal", [other_bodies, lambda robot, _: massless(robot)], ids=["other", "none"]
)
@pytest.mark.parametrize("name", ARMS)
def test_a_physical_truth_is_found_and_newton_euler_predicts_the_same_torque(
    name, nominal, bases, rng
):
    """gaz2017's question Q4; the truth is known only through the torques."""
    robot, basis = bases[name]
    R, _ = factor(robot, basis, rng)
    arm = feasible_parameters(robot, basis, R, nominal=nominal(robot, rng))
    truth = basis.K @ robot.parameters
    np.testing.assert_allclose(arm.base, truth, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(basis.K @ arm.robot.parameters, truth, rtol=1e-6, atol=1e-6)
    q, v, a = motion(robot, rng, 20)
    tau = robot.torque(q, v, a)
    np.testing.assert_allclose(arm.robot.torque(q, v, a), tau, atol=1e-6 * np.abs(tau).max())
    assert arm.rms_ratio == pytest.approx(1.0, abs=1e-6)
    assert np.abs(arm.robot.parameters - robot.parameters).max() > 0.01
    require_physical(arm)


@pytest.mark.parametrize("name", ARMS)
def test_the_nominal_arm_comes_back_where_it_fits(name, bases, rng):
    robot, basis = bases[name]
    arm = feasible_parameters(robot, basis, factor(robot, basis, rng)[0])
    np.testing.assert_allclose(arm.robot.parameters, robot.parameters, rtol=1e-5, atol=1e-5)
    assert not arm.on_border.any()


def test_the_nominal_arm_decides_what_the_data_do_not_and_nothing_else(bases, rng):
    robot, basis = bases["panda"]
    R, _ = factor(robot, basis, rng)
    one, two = (
        feasible_parameters(robot, basis, R, nominal=other_bodies(robot, rng)) for _ in range(2)
    )
    differ = np.abs(one.robot.parameters - two.robot.parameters) > 1e-5
    named = {
        name
        for name, is_different in zip(basis.standard_parameters.names, differ, strict=True)
        if is_different
    }
    assert {"m1", "Izz1", "Ia1", "m4"} <= named <= set(one.undecided.parameters)
    assert (one.undecided.structure, one.undecided.motion) == (
        len(robot.parameters) - len(basis),
        0,
    )
    assert not {"mx7", "Fc3", "B1", "Ia5"} & set(one.undecided.parameters)
    assert "29 unobservable directions" in one.status


def test_a_joint_at_rest_is_reported(bases, rng):
    robot, basis = bases["ur10e"]
    R, _ = factor(robot, basis, rng, still=[4])
    arm = feasible_parameters(robot, basis, R)
    assert arm.undecided.motion == 3
    assert {"Fv5", "Fc5", "Ia5"} <= set(arm.undecided.parameters)
    assert "hardly shows" in arm.status
    assert arm.robot.drive.viscous[4] == pytest.approx(robot.drive.viscous[4])
    require_physical(arm)


# --- noise


@pytest.mark.parametrize("noise", [0.003, 0.02, 0.1])
@pytest.mark.parametrize("name", ARMS)
def test_noise_makes_no_unreal_bodies(name, noise, bases, rng):
    robot, basis = bases[name]
    R, _ = factor(robot, basis, rng, noise=noise)
    arm = feasible_parameters(robot, basis, R)
    require_physical(arm)
    assert 1.0 <= arm.rms_ratio < 1.02
    np.testing.assert_allclose(basis.K @ arm.robot.parameters, arm.base, rtol=1e-9, atol=1e-9)

    def cost(pi):
        return float(np.sum((R @ np.append(pi, -1.0)) ** 2))

    # the truth is one of the arms among which the best was sought, and the nominal one
    assert cost(arm.base) <= cost(basis.K @ robot.parameters) * (1 + 1e-9)
    assert arm.rms_ratio == pytest.approx(np.sqrt(cost(arm.base)) / abs(R[-1, -1]), rel=1e-9)


def test_an_unreal_estimate_becomes_a_real_one_nearby(bases, rng):
    """A last link whose Izz alone is negative: its estimate leaves, the others stay."""
    robot, basis = bases["ur10e"]
    R, value = factor(robot, basis, rng, noise=1e-4)
    unreal = value.copy()
    at = basis.parameters.names.index("Izz6")
    unreal[at] = -0.01
    R[:-1, -1] = R[:-1, :-1] @ unreal
    arm = feasible_parameters(robot, basis, R)
    require_physical(arm)
    assert arm.on_border[-1]
    assert "link6" in arm.status
    assert arm.rms_ratio > 1.5
    assert -1e-12 < arm.base[at] < 0.01


def test_friction_is_not_negative_unless_allowed(bases, rng):
    robot, basis = bases["ur10e"]
    pushing = robot.with_drive(
        replace(robot.drive, coulomb=np.array([8.0, -3.0, 5.0, 2.0, 2.0, 1.0]))
    )
    R, _ = factor(pushing, basis, rng, noise=1e-3)
    arm = feasible_parameters(robot, basis, R)
    assert arm.robot.drive.coulomb[1] == pytest.approx(0.0, abs=1e-6)
    assert arm.active == ("Fc2 >= 0",)
    allowed = feasible_parameters(
        robot, basis, R, bounds=ParameterBounds({"Fc2": (-np.inf, np.inf)})
    )
    assert allowed.robot.drive.coulomb[1] == pytest.approx(-3.0, abs=0.1)
    assert allowed.rms_ratio < 1.01 < arm.rms_ratio


# --- units


def in_units(table, links, drive, *, mass, length):
    """The same arm in other units of mass and length."""
    dh = DHTable(table.alpha, length * table.a, length * table.d, table.theta)
    bodies = [
        InertialParameters(
            mass * b.mass, mass * length * b.first_moment, mass * length**2 * b.inertia, b.frame
        )
        for b in links
    ]
    parameters = (mass * length**2 * x for x in drive.parameters().reshape(4, -1))
    robot = RobotModel.from_dh(dh, links=bodies, drive=DriveModel(*parameters))
    return robot.with_gravity((0.0, 0.0, -9.81 * length))


@pytest.mark.thorough
@pytest.mark.parametrize("source", ["nominal", "none"])
@pytest.mark.parametrize(("mass", "length"), [(1e-3, 1.0), (1e3, 1.0), (1.0, 1e3), (1e-3, 30.0)])
@pytest.mark.parametrize("name", ["kr60ha", "panda"])
def test_units_do_not_matter(name, mass, length, source, bases, monkeypatch):
    """Newtons or kilonewtons, metres or millimetres: with noise, on the border, the same arm."""
    monkeypatch.setattr(_arrays, "_MAX_GRAVITY", np.inf)  # it is one in m/s^2
    robot, _ = bases[name]
    answers = []
    for units in ({"mass": 1.0, "length": 1.0}, {"mass": mass, "length": length}):
        arm = in_units(robot.dh, robot.links, robot.drive, **units)
        basis = ParameterBasis.of(arm)
        R, _ = factor(arm, basis, np.random.default_rng(7), noise=0.02)
        nominal = massless(arm) if source == "none" else arm
        answers.append(feasible_parameters(arm, basis, R, nominal=nominal))
    one, two = answers
    back = in_units(
        two.robot.dh, two.robot.links, two.robot.drive, mass=1 / mass, length=1 / length
    ).parameters
    np.testing.assert_allclose(back, one.robot.parameters, rtol=1e-4, atol=1e-4)
    assert two.rms_ratio == pytest.approx(one.rms_ratio, rel=1e-6)
    assert one.on_border.any()
    assert one.on_border.tolist() == two.on_border.tolist()


# --- bounds


def test_bounds_hold_and_known_values_come_back(bases, rng):
    robot, basis = bases["ur10e"]
    R, _ = factor(robot, basis, rng, noise=0.01)
    bounds = ParameterBounds(
        {
            "m1": (3.0, 4.0),
            "cx2": (-0.25, -0.1),
            "cy3": (-np.inf, 0.01),
            "Izz4": (0.02, 0.03),
            "Fv1": (1.0, np.inf),
            "m6": (0.7, 0.7),
            "total_mass": (20.0, 25.0),
        }
    )
    arm = feasible_parameters(robot, basis, R, bounds=bounds)
    links = arm.robot.links
    assert 3.0 - 1e-5 <= links[0].mass <= 4.0 + 1e-5
    assert -0.25 - 1e-5 <= links[1].com[0] <= -0.1 + 1e-5
    assert links[2].com[1] <= 0.01 + 1e-5
    assert 0.02 - 1e-6 <= links[3].inertia[2, 2] <= 0.03 + 1e-6
    assert links[5].mass == pytest.approx(0.7, abs=1e-6)
    assert 20.0 - 1e-4 <= sum(body.mass for body in links) <= 25.0 + 1e-4
    assert {"m6 = 0.7", "m1 <= 4"} <= set(arm.active)
    require_physical(arm)


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        (
            {"m2": (8.0, 9.0), "m3": (5.0, 6.0), "total_mass": (0.0, 12.0)},
            "m2 >= 8, m3 >= 5, total_mass <= 12",
        ),
        (
            {"m4": (2.0, 3.0), "cx4": (0.5, 1.0), "Izz4": (0.0, 0.1), "m1": (1.0, 9.0)},
            "m4 >= 2, .*Izz4 <= 0.1",
        ),
        ({"m5": (-2.0, -1.0)}, "m5 <= -1"),
    ],
)
def test_bounds_that_no_bodies_fulfil_are_named(limits, named, bases, rng):
    robot, basis = bases["ur10e"]
    R, _ = factor(robot, basis, rng, noise=0.01)
    with pytest.raises(
        InvalidRobot, match=f"no real bodies satisfy these bounds together: {named}"
    ) as refusal:
        feasible_parameters(robot, basis, R, bounds=ParameterBounds(limits))
    assert "m1" not in str(refusal.value)


@pytest.mark.parametrize("limit", [(2.0, 1.0), (np.nan, 1.0), (np.inf, np.inf)])
def test_an_empty_bound_is_refused(limit):
    with pytest.raises(InvalidRobot, match="bound on m1: no value lies between"):
        ParameterBounds({"m1": limit})


@pytest.mark.parametrize("name", ["m7", "c1", "cw1", "mass", "cx0"])
def test_an_unknown_bound_is_refused(name, bases, rng):
    robot, basis = bases["ur10e"]
    R, _ = factor(robot, basis, rng)
    last = robot.parameter_names[-1]
    words = f"ur10e has no parameter '{name}' to bound: its parameters are m1, mx1, .*, {last}, the"
    with pytest.raises(UnknownName, match=words):
        feasible_parameters(robot, basis, R, bounds=ParameterBounds({name: (0.0, 1.0)}))


@pytest.mark.parametrize("noise", [1e-6, 1e-5, 1e-4])
def test_bounds_that_contradict_precise_data_hold_at_a_price(noise, bases, rng):
    robot, basis = bases["planar2r"]
    R, _ = factor(robot, basis, rng, noise=noise)
    bounds = ParameterBounds(
        {"total_mass": (1.0, 9.0), "cx1": (-1.0, 1.0), "m2": (0.4, 0.4), "cx2": (-0.3, 0.0)}
    )
    arm = feasible_parameters(robot, basis, R, bounds=bounds, nominal=massless(robot))
    assert arm.robot.links[1].mass == pytest.approx(0.4, abs=1e-5)
    assert arm.rms_ratio > 10.0
    require_physical(arm)


# --- what R may hold


def test_further_unknowns_are_free(bases, rng):
    robot, basis = bases["ur10e"]
    q, v, a = motion(robot, rng)
    p, truth = len(basis), np.array([-4.0, 7.0])
    more = np.zeros((len(q), robot.n, 2))
    more[:, 1, 0], more[:, 3, 1] = np.sin(3 * q[:, 1]), np.tanh(q[:, 3])
    Y = np.concatenate([basis.reduce(robot.regressor(q, v, a)), more], axis=2)
    tau = robot.torque(q, v, a) + more @ truth + 0.01 * rng.standard_normal(q.shape)
    R = RegressionFactor.empty(robot.n, p + 2).add(Y, tau).weighted(np.full(robot.n, 100.0))
    arm = feasible_parameters(robot, basis, R)
    np.testing.assert_allclose(arm.extra, truth, atol=0.02)
    np.testing.assert_allclose(arm.base, basis.K @ robot.parameters, atol=0.05)
    residuals = np.sum((R @ np.concatenate([arm.base, arm.extra, [-1.0]])) ** 2)
    assert arm.rms_ratio == pytest.approx(np.sqrt(residuals) / abs(R[-1, -1]), rel=1e-9)


def test_a_basis_without_drives_leaves_them_alone(bases, rng):
    robot = load_robot("ur10")  # with one negative Fc
    basis = ParameterBasis.of(robot, drive=False)
    q, v, a = motion(robot, rng)
    tau = robot.inverse_dynamics(q, v, a)
    rows = RegressionFactor.empty(robot.n, len(basis)).add(
        basis.reduce(robot.regressor(q, v, a)), tau
    )
    arm = feasible_parameters(robot, basis, rows.weighted(np.full(robot.n, 1e3)))
    np.testing.assert_array_equal(arm.robot.drive.parameters(), robot.drive.parameters())
    np.testing.assert_allclose(arm.base, basis.K @ robot.parameters, atol=1e-6)
    assert not set(arm.undecided.parameters) & {"Ia1", "Fc2"}


def test_the_answer_cannot_be_changed_and_tells_its_source(bases, rng):
    robot, basis = bases["planar2r"]
    arm = feasible_parameters(robot, basis, factor(robot, basis, rng)[0])
    for array in (arm.base, arm.extra, arm.on_border):
        assert not array.flags.writeable
    assert arm.robot.source.startswith("feasible parameters fitted to data; kinematics: ")
    assert arm.robot.link_names == robot.link_names


def test_refusals(bases, rng):
    robot, basis = bases["planar2r"]
    R, _ = factor(robot, basis, rng)
    with pytest.raises(
        InvalidRobot, match=r"R must be square with at least 14 columns, got shape \(13, 13\)"
    ):
        feasible_parameters(robot, basis, R[:-1, :-1])
    with pytest.raises(InvalidRobot, match="R must be finite; noise of zero"):
        feasible_parameters(robot, basis, np.full_like(R, np.inf))
    with pytest.raises(
        InvalidRobot, match="the basis belongs to an arm with other parameters than planar2r"
    ):
        feasible_parameters(robot, bases["panda"][1], R)
    arm, its = bases["lwr4"]
    with pytest.raises(InvalidRobot, match="nominal arm panda has other link frames than lwr4"):
        feasible_parameters(arm, its, np.eye(len(its) + 1), nominal=bases["panda"][0])


def test_without_clarabel(bases, rng, monkeypatch):
    robot, basis = bases["planar2r"]
    R, _ = factor(robot, basis, rng)
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(
        MissingExtra, match=r"needs clarabel: pip install 'steelyard\[identification\]'"
    ):
        feasible_parameters(robot, basis, R)


def test_a_solver_that_fails_is_reported(bases, rng, monkeypatch):
    clarabel = pytest.importorskip("clarabel")
    robot, basis = bases["planar2r"]
    R, _ = factor(robot, basis, rng)
    f = len(robot.parameters)
    far = ("AlmostSolved", np.full(f, 1e9))
    answers = iter([("NumericalError", np.zeros(f))] * 3 + [far] * 4)

    def answer(*_, **__):
        status, x = next(answers)
        return SimpleNamespace(status=getattr(clarabel.SolverStatus, status), x=x)

    monkeypatch.setattr(feasible, "_shortest", answer)
    with pytest.raises(
        SolverFailed, match="found no feasible parameters, its status is NumericalError"
    ):
        feasible_parameters(robot, basis, R)
    monkeypatch.setattr(feasible._QuadraticCost, "fitted", lambda self, x: x)
    with pytest.raises(
        SolverFailed, match="answer breaks its constraints, its status is AlmostSolved"
    ):
        feasible_parameters(robot, basis, R)


# --- a real arm


def test_the_real_panda_costs_little(shared_data):
    """Torque sensors behind the gears see no rotor; an apparent one has the wrong sign."""
    robot = load_robot("panda")
    basis = ParameterBasis.of(robot)
    recording = read(shared_data / "panda" / "exciting_traj1.npz")
    samples = prepare(recording, Preparation(cutoff_hz=10.0, trim_s=0.3))
    rows = RegressionFactor.of(robot, basis, [samples])
    R = rows.weighted(1.0 / solve_weighted(rows).noise)
    arm = feasible_parameters(robot, basis, R)
    require_physical(arm)
    assert 1.0 < arm.rms_ratio < 1.03
    free = ParameterBounds({f"Ia{j + 1}": (-np.inf, np.inf) for j in range(robot.n)})
    assert feasible_parameters(robot, basis, R, bounds=free).rms_ratio < 1.005
