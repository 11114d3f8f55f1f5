"""Designs keep every limit; infeasible requests are refused with the limit and the amount."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from steelyard import _saved
from steelyard.errors import (
    InfeasibleDesign,
    InvalidTrajectory,
    MissingExtra,
    UnknownName,
    UnreadableFile,
)
from steelyard.excitation import (
    ConditionNumber,
    Cone,
    Design,
    DesignLimits,
    DesignSettings,
    DOptimal,
    Objective,
    OrientationWorkspace,
    PayloadOptimal,
    Surroundings,
    design,
)
from steelyard.excitation._search import Search
from steelyard.excitation._solver import Minimiser
from steelyard.excitation._space import MotionSpace, _Dense
from steelyard.robot import JointLimits, load_robot
from steelyard.robot._geometry import Body
from steelyard.trajectory import FourierTrajectory

QUICK = DesignSettings(starts=2, effort=0.3, workers=2)
MOTION = {"period_s": 6.0, "harmonics": 3}  # of most designs: JAX compiles for each number anew
TWO = JointLimits([-2.0, -2.0], [2.0, 2.0], [1.5, 2.0], [4.0, 6.0], [np.inf] * 2)


@pytest.fixture(scope="module")
def arm():
    return load_robot("planar2r")


@pytest.fixture(scope="module")
def found(arm):
    return design(arm, **MOTION, limits=DesignLimits(TWO), settings=QUICK)


class Box:
    """|u| <= 1, for the solver."""

    linear = True

    def slack(self, u):
        return np.concatenate([1 - u, 1 + u])

    def linearised(self, u):
        J = np.vstack([-np.eye(len(u)), np.eye(len(u))])
        return _Dense(self.slack(u), J, np.ones(len(J), bool))


def test_the_solver_goes_on_with_what_it_knows_of_the_limits():
    goal = np.array([2.0, 0.5, -3.0, 0.1, 1.5])
    visited = []
    solver = Minimiser([Box()], np.zeros(5), visited.append)

    def value_and_gradient(u):
        return float(((u - goal) ** 2).sum()), 2 * (u - goal)

    for barrier in (1e-2, 1e-7):
        del visited[:]
        solver.descend(
            lambda u: value_and_gradient(u)[0], value_and_gradient, barrier=barrier, iterations=12
        )
    assert (np.abs(visited) < 1).all()
    assert_allclose(solver.u, np.clip(goal, -1, 1), atol=1e-6)


@pytest.mark.thorough
def test_design_keeps_its_limits_and_is_better_than_random(arm, found):
    assert found.certificate.holds
    assert np.abs(found.trajectory.at(np.zeros(1))[1:]).max() < 1e-3
    q, v, a = found.trajectory.at(np.linspace(0, 6, 12001))
    assert (q <= TWO.q_max).all()
    assert (q >= TWO.q_min).all()
    assert (np.abs(v) <= TWO.v_max).all()
    assert (np.abs(a) <= TWO.a_max).all()
    randoms = [
        FourierTrajectory.random(arm.home, reach=[2, 2], speed=TWO.v_max, **MOTION, seed=k)
        for k in range(20)
    ]
    assert found.value < 0.6 * min(ConditionNumber().evaluate(arm, r) for r in randoms)
    assert found.value == min(found.start_values)
    assert found.condition_number == pytest.approx(found.value)
    assert "every limit that was given holds at 1000 Hz" in found.status
    assert found.status.endswith(
        "NOT checked, because no limit was given: torque of the joints, floor, walls and other"
        " things"
        " around the"
        " arm, the arm against itself"
    )


def test_a_certificate_says_what_was_not_checked(arm):
    motion = FourierTrajectory.random(
        arm.home, reach=[1, 1], speed=[1, 1], period_s=6.0, harmonics=3, seed=0
    )
    bare = JointLimits([-2.0, -np.inf], [2.0, 2.0], [np.inf] * 2, [np.inf, 6.0], [np.inf] * 2)
    assert DesignLimits(bare).certify(arm, motion, rate_hz=50.0).unchecked == (
        "position of joint_2",
        "velocity of the joints",
        "acceleration of joint_1",
        "torque of the joints",
        "floor, walls and other things around the arm",
        "the arm against itself",
    )
    known = JointLimits(TWO.q_min, TWO.q_max, TWO.v_max, TWO.a_max, [900.0] * 2)
    floor = Body.half_space("floor", (0, 0, -9), (0, 0, 1))
    alone = DesignLimits(
        known, surroundings=Surroundings((floor,), radius=0.05, self_collision=False)
    )
    assert alone.certify(arm, motion, rate_hz=50.0).unchecked == ("the arm against itself",)
    whole = replace(alone, surroundings=Surroundings((floor,), radius=0.05)).certify(
        arm, motion, rate_hz=50.0
    )
    assert whole.unchecked == ()
    assert whole.not_checked == ""
    assert whole.bodies == tuple(f"link {k}: capsule of 50 mm radius" for k in (1, 2))
    assumed = (
        replace(alone, surroundings=Surroundings((floor,)))
        .certify(arm, motion, rate_hz=50.0)
        .unchecked
    )
    assert assumed == (
        "the true shape of planar2r: capsules are assumed, as no shapes and no radius were given",
    )
    endless = JointLimits([-np.inf] * 2, [np.inf] * 2, [2.0] * 2, [9.0] * 2, [900.0] * 2)
    assert not any(
        "position" in words for words in DesignLimits(endless).certify(arm, motion).unchecked
    )


def test_the_best_motions_of_a_batch_are_refined(arm, monkeypatch):
    """With made-up results of the batch, of which the smaller ones are better."""
    space = MotionSpace(np.zeros(2), np.arange(2), 3, 6.0, True, False, np.ones(2))
    found = 1e-3 * np.random.default_rng(1).normal(size=(8, space.size))

    class MadeUp:
        def __init__(self, *_):
            pass

        def searched(self, u, **_):
            return np.zeros(len(found)), found

    monkeypatch.setattr("steelyard.excitation._search.BatchSearch", MadeUp)
    monkeypatch.setattr(Search, "_gram", lambda self, u: u)
    monkeypatch.setattr(Search, "_merit", lambda self, u: np.linalg.norm(u))
    settings = DesignSettings(starts=8, workers=1)
    search = Search(arm, DesignLimits(TWO), space, ConditionNumber(), settings)
    with ThreadPoolExecutor(1) as pool:
        refined = search._starts(pool)
    best = found[np.argsort(np.linalg.norm(found, axis=1))]
    np.testing.assert_array_equal(refined, best[: len(refined)])


@pytest.mark.thorough
def test_many_starts_go_down_together_and_stay_inside(arm):
    settings = DesignSettings(starts=8, effort=0.2, workers=2)
    many = design(arm, **MOTION, limits=DesignLimits(TWO), settings=settings)
    assert many.certificate.holds
    assert len(many.start_values) == 2  # that were refined
    alone = replace(settings, starts=1)
    one = design(arm, **MOTION, limits=DesignLimits(TWO), settings=alone)
    assert many.value < 1.02 * one.value
    with pytest.raises(
        InvalidTrajectory, match="JAX finds no gpu on this machine, only cpu: leave the device out"
    ):
        design(arm, limits=DesignLimits(TWO), settings=replace(settings, device="gpu"))
    with pytest.raises(InvalidTrajectory, match="device must be 'cpu' or 'gpu', got 'abacus'"):
        DesignSettings(device="abacus")


def test_same_seed_gives_the_same_motion(arm, found):
    again = design(arm, **MOTION, limits=DesignLimits(TWO), settings=replace(QUICK, workers=1))
    np.testing.assert_array_equal(again.trajectory.sine, found.trajectory.sine)
    other = design(arm, **MOTION, limits=DesignLimits(TWO), settings=replace(QUICK, seed=1))
    assert not np.array_equal(other.trajectory.sine, found.trajectory.sine)


def test_design_is_saved_with_its_certificate_and_read_again(found, tmp_path):
    path = tmp_path / "design.json"
    found.save(path)
    with pytest.raises(
        UnreadableFile, match=r"cannot write .*design\.json: there is no folder .*deep"
    ):
        found.save(tmp_path / "deep" / "design.json")
    again = Design.load(path)
    assert _saved.plain(again.to_dict()) == _saved.plain(found.to_dict())
    assert again.certificate == found.certificate
    assert again.certificate.worst.margin >= 0
    np.testing.assert_array_equal(FourierTrajectory.load(path).offset, found.trajectory.offset)
    with pytest.raises(UnreadableFile, match=r"none\.json: no such file"):
        Design.load(tmp_path / "none.json")
    path.write_text(json.dumps({"value": 1}))
    with pytest.raises(UnreadableFile, match="is not a design file of steelyard"):
        Design.load(path)


def test_start_posture_one_moving_joint_and_amplitude_form(arm):
    start = np.array([0.3, -0.4])
    limits = DesignLimits(TWO, form="amplitude")
    made = design(arm, **MOTION, limits=limits, joints=[1], start=start, settings=QUICK)
    q, v, _ = made.trajectory.at(np.array([0.0, 2.0, 6.0]))
    np.testing.assert_allclose(q[[0, 2]], [start, start], atol=1e-12)
    np.testing.assert_array_equal(v[:, 0], 0)
    amplitude = made.trajectory.amplitudes
    assert (amplitude[1] <= TWO.v_max).all()
    assert (amplitude[2] <= TWO.a_max).all()
    assert {"amplitude of velocity", "upper amplitude of position"} <= {
        c.limit for c in made.certificate.checks
    }


def test_periodic_motion_need_not_rest(arm):
    made = design(
        arm,
        period_s=4.0,
        harmonics=2,
        limits=DesignLimits(TWO),
        settings=replace(QUICK, at_rest=False, starts=1),
    )
    assert np.abs(made.trajectory.at(np.zeros(1))[1:]).max() > 1e-3


@pytest.mark.thorough
@pytest.mark.parametrize("starts", [3, 8])
def test_ctrl_c_returns_the_best_so_far(arm, starts):
    """While the solver refines, and while many starts go down together."""
    calls = []

    def interrupt(share, best):
        calls.append((share, best))
        if best < np.inf or starts > 3:
            raise KeyboardInterrupt

    settings = DesignSettings(starts=starts, effort=5.0, progress=interrupt, workers=1)
    made = design(arm, **MOTION, limits=DesignLimits(TWO), settings=settings)
    assert made.certificate.holds
    assert made.status.startswith("stopped by hand; the best so far")
    assert 0 <= calls[0][0] <= 1


def test_time_limit_returns_the_best_so_far(arm):
    settings = DesignSettings(starts=8, effort=5.0, time_limit_s=0.2, workers=1)
    made = design(arm, **MOTION, limits=DesignLimits(TWO), settings=settings)
    assert "the time limit was reached" in made.status
    assert made.certificate.holds


def test_payload_design_predicts_standard_deviations(arm):
    objective = PayloadOptimal([0.5, 0.2])
    made = design(arm, **MOTION, objective=objective, limits=DesignLimits(TWO), settings=QUICK)
    assert set(made.std) < {"m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"}
    assert made.value == pytest.approx(np.exp(np.mean(np.log(list(made.std.values())))))
    half = objective.evaluate(arm, made.trajectory, limits=DesignLimits(TWO), rate_hz=500.0)
    assert half == pytest.approx(made.value / 2, rel=0.01)  # four times the samples


@pytest.mark.thorough
def test_torque_clearance_height_and_orientation_hold_together():
    robot = load_robot("ur10")
    surroundings = Surroundings(
        (
            Body.half_space("floor", (0, 0, 0), (0, 0, 1)),
            Body.box("table", (0.9, 0, 0.2), (0.4, 0.4, 0.4)),
        ),
        radius=0.05,
    )
    posture = np.array([0.0, -1.2, 0.6, -1.0, 0.3, 0.2])
    axis = robot.forward_kinematics(posture)[:3, 2]
    limits = DesignLimits(
        robot.limits,
        height=(0.2, 1.4),
        linear_speed=np.full(3, 1.0),
        angular_speed=np.full(3, 3.0),
        workspace=OrientationWorkspace((Cone("z", axis, 1.2),)),
        surroundings=surroundings,
    )
    made = design(
        robot, period_s=5.0, harmonics=3, objective=DOptimal(), limits=limits, start=posture,
        settings=DesignSettings(starts=1, effort=0.1, workers=1),
    )  # fmt: skip
    assert made.certificate.holds
    names = {check.limit for check in made.certificate.checks}
    assert {"torque", "lowest height", "highest height", "linear speed", "angular speed"} <= names
    assert {"orientation", "clearance"} <= names
    z = robot.forward_kinematics(made.trajectory.at(np.linspace(0, 5, 997))[0])
    assert (z[:, 2, 3] >= 0.2).all()
    assert (np.arccos(z[:, :3, 2] @ axis) <= 1.2).all()


def test_certificate_finds_what_is_broken(arm):
    series = FourierTrajectory([[1.0], [0.5]], [[0.0], [0.0]], [0.0, 0.0], 2 * np.pi)
    limits = DesignLimits(
        JointLimits([-2.0, -0.4], [2.0, 3.0], [2.0, 2.0], [9.0, 9.0], [np.inf] * 2)
    )
    certificate = limits.certify(arm, series)
    assert not certificate.holds
    worst = certificate.worst
    assert worst.limit == "lower position"
    assert worst.where == "joint_2"
    assert worst.at_s == pytest.approx(1.5 * np.pi, abs=2e-3)
    assert worst.margin == pytest.approx(-0.1, abs=1e-6)
    assert worst.sentence == "joint_2: lower position, 0.1 rad beyond -0.4 at 4.712 s"
    with pytest.raises(InvalidTrajectory, match="rate_hz must be positive, got 0"):
        limits.certify(arm, series, rate_hz=0.0)


def test_nonsense_is_refused(arm):
    limits = DesignLimits(TWO)
    for request, words in (
        ({"harmonics": 0}, "needs at least 1 harmonic, got 0"),
        ({"harmonics": 1}, "1 harmonic leaves no motion; use at least 2"),
        ({"period_s": -1.0}, "period_s must be positive, got -1"),
        ({"joints": [2]}, r"some of 1 to 2, got \[3\]"),
        ({"joints": []}, r"some of 1 to 2, got \[\]"),
        ({"start": [0.0]}, "start must be 2 finite numbers"),
    ):
        with pytest.raises(InvalidTrajectory, match=words):
            design(arm, limits=limits, **request)
    with pytest.raises(InvalidTrajectory, match="planar2r has 2 joints, the limits are for 6"):
        design(arm, limits=DesignLimits(load_robot("ur10").limits))
    with pytest.raises(InvalidTrajectory, match=r"joint_1 of planar2r has no limit of velocity"):
        design(arm)
    with pytest.raises(InvalidTrajectory, match="starts must be positive, got 0"):
        DesignSettings(starts=0)
    with pytest.raises(InvalidTrajectory, match="noise must be 2 positive numbers"):
        design(arm, limits=limits, objective=PayloadOptimal([1.0]))
    with pytest.raises(
        UnknownName, match="no objective 'best'; there are condition, dopt, payload"
    ):
        Objective.named("best")


def test_limits_that_cannot_be_kept_are_named_with_the_amount(arm):
    with pytest.raises(
        InfeasibleDesign,
        match=r"start posture is outside .*: joint_2: upper position, 0.5 rad beyond 2$",
    ):
        design(arm, limits=DesignLimits(TWO), start=[0.0, 2.5])
    slow = JointLimits([-2.0] * 2, [2.0] * 2, [2.0] * 2, [5.0, 0.1], [np.inf] * 2)
    with pytest.raises(
        InfeasibleDesign, match=r"0.5 s is too short for the acceleration limit 0.1 of joint_2"
    ):
        design(arm, period_s=0.5, limits=DesignLimits(slow))
    robot = load_robot("ur10")
    up = OrientationWorkspace((Cone("z", (1.0, 0, 0), 0.2), Cone("x", (1.0, 0, 0), 0.2)))
    with pytest.raises(
        InfeasibleDesign, match=r"no posture of ur10 .*axis .: orientation, .* rad beyond 0$"
    ):
        design(robot, limits=DesignLimits(robot.limits, workspace=up))
    with pytest.raises(
        InfeasibleDesign, match=r"no posture .*flange: lowest height, 1\..* m beyond 3$"
    ):
        design(robot, limits=DesignLimits(robot.limits, height=(3.0, 4.0)))
    weak = JointLimits(
        *(getattr(robot.limits, k) for k in ("q_min", "q_max", "v_max", "a_max")), [0.1] * 6
    )
    with pytest.raises(
        InfeasibleDesign, match=r"no posture of ur10 keeps all .*_joint: torque, .* Nm"
    ):
        design(robot, limits=DesignLimits(weak))


def test_a_posture_that_leaves_no_reserve_is_refused_with_the_limit(arm):
    floor = Body.half_space("floor", (0, -0.0205, 0), (0, 1, 0))
    known = DesignLimits(TWO, surroundings=Surroundings((floor,), radius=1e-3, clearance=0.019))
    with pytest.raises(
        InfeasibleDesign,
        match=r"reserve; closest is link 1 and floor: clearance, 0.0005 m inside 0.019",
    ):
        design(arm, limits=known, start=[0.0, 0.0], settings=QUICK)


def test_jax_is_asked_for_by_its_extra(arm, monkeypatch):
    import builtins

    real = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == "jax":
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        MissingExtra, match=r"this needs jax: pip install 'steelyard\[excitation\]'"
    ):
        design(arm, limits=DesignLimits(TWO))


def test_envelope_is_the_peaks_of_another_motion():
    series = FourierTrajectory([[1.0], [0.5]], [[0.0], [0.0]], [0.2, 0.0], 2 * np.pi)
    limits = DesignLimits.envelope(series).joints
    np.testing.assert_allclose(limits.q_max, [1.2, 0.5], atol=1e-6)
    np.testing.assert_allclose(limits.q_min, [-0.8, -0.5], atol=1e-6)
    np.testing.assert_allclose(limits.v_max, [1.0, 0.5])
    np.testing.assert_allclose(limits.a_max, [1.0, 0.5], atol=1e-6)
    np.testing.assert_array_equal(limits.tau_max, np.inf)
    still = FourierTrajectory([[1.0], [0.0]], [[0.0], [0.0]], [0.2, 0.0], 1.0)
    with pytest.raises(InvalidTrajectory, match="joint 2 stands still"):
        DesignLimits.envelope(still)
    with pytest.raises(InvalidTrajectory, match="elbow stands still"):
        DesignLimits.envelope(still, joint_names=("shoulder", "elbow"))
