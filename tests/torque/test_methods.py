from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtri

from conftest import lively_motion
from steelyard._units import NORMAL_95, with_interval
from steelyard.errors import InvalidRobot, InvalidSamples, UnknownName
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Samples
from steelyard.robot import DriveModel, load_robot
from steelyard.signals import resample
from steelyard.torque import weigh
from steelyard.torque.methods import METHODS, WeighingProblem
from steelyard.torque.methods._difference import _payload_of_difference
from steelyard.torque.methods._static import postures_at_rest
from tiers import thorough_but
from torque_runs import LOAD, held, moving

NEEDS_EMPTY = ("torque-change", "manufacturer", "pooled")


@cache
def arm(name):
    return load_robot(name)


@cache
def twice_identified(seed):
    """A UR10 from two noisy runs."""
    return identify(
        arm("ur10"), [moving(arm("ur10"), 100 + seed, 0.5), moving(arm("ur10"), 200 + seed, 0.5, 3)]
    )


@cache
def case(robot, noise, postures=8):
    """The model, loaded runs, and what each method needs beside them."""
    loaded_arm = robot.with_payload(LOAD)
    model = identify(robot, moving(robot, 0, noise))
    loaded = [moving(loaded_arm, 1, noise, 2), held(loaded_arm, postures, 2, noise)]
    before = [moving(robot, 3, noise, 2), held(robot, postures, 2, noise, noise_seed=4)]
    said = [
        replace(
            part,
            tau=robot.inverse_dynamics(part.q, part.v, part.a) + robot.drive.rotor_inertia * part.a,
        )
        for part in loaded
    ]
    return model, loaded, {"torque-change": before, "manufacturer": said, "pooled": before[:1]}


@cache
def identified_with_gain(factor):
    """The UR10 of `case` after an error of the third joint's gain."""
    base = moving(arm("ur10"), 0, 0.5)
    return identify(arm("ur10"), replace(base, tau=base.tau * third_gain(factor)))


def third_gain(factor):
    gain = np.ones(6)
    gain[2] = factor
    return gain


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["planar2r", "ur10", "panda"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_recovers_what_it_can_tell_on_every_arm(name, method):
    robot = arm(name)
    model, loaded, empty = case(robot, 1e-6)
    found = weigh(model, loaded, method=method, empty=empty.get(method))
    known = np.isfinite(found.std)
    if name == "planar2r":
        assert set(found.excited) == {"m", "mx", "my"} | (set() if method == "static" else {"Izz"})
    elif method == "static":
        assert found.excited == ("m", "mx", "my", "mz")
        assert "8 postures at rest determine mass and centre of mass only" in found.status
        assert found.verdict.ok
    else:
        assert found.verdict.ok, found.status
    np.testing.assert_allclose(found.unconstrained.vector[known], LOAD.vector[known], atol=2e-4)
    assert found.method == method
    assert found.body.frame == robot.flange


@pytest.mark.thorough
@pytest.mark.parametrize(
    "method", ["direct", "weighted-difference", "static", "combined", "pooled"]
)
def test_intervals_contain_the_truth(method):
    robot = arm("ur10")
    inside = []
    for seed in range(8):
        model = twice_identified(seed)
        loaded = [
            moving(robot.with_payload(LOAD), seed, 0.5, 2),
            held(robot.with_payload(LOAD), 20, seed, 0.5),
        ]
        found = weigh(model, loaded, method=method, empty=moving(robot, 300 + seed, 0.5, 4))
        known = np.isfinite(found.std)
        inside.append(
            np.abs(found.unconstrained.vector - LOAD.vector)[known] < 1.96 * found.std[known]
        )
    assert 0.85 < np.mean(inside) <= 1


@pytest.mark.thorough
def test_weights_make_the_difference_as_good_as_the_direct_method_with_unknown_friction():
    robot = arm("ur10")
    error = {"direct": [], "weighted-difference": [], "difference": []}
    for seed in range(8):
        model = replace(twice_identified(seed), run_spread=None)
        loaded = moving(robot.with_payload(LOAD), seed, 0.5, 2)
        for method in error:
            error[method].append(weigh(model, loaded, method=method).unconstrained.mass - LOAD.mass)
    rms = {method: np.sqrt(np.mean(np.square(values))) for method, values in error.items()}
    assert rms["weighted-difference"] == pytest.approx(rms["direct"], rel=0.35)
    assert rms["difference"] > 1.5 * rms["direct"]


@pytest.mark.parametrize(
    "method",
    thorough_but(("direct", "torque-change"), sorted({*METHODS} - {"weighted-difference"})),
)
def test_the_answer_moves_with_a_gain_as_it_says(method):
    """With the uncertainty of the empty arm fixed; the weighted difference uses it throughout."""
    robot = arm("ur10")
    model, loaded, empty = case(robot, 0.5, postures=300)
    others = empty.get(method, ())
    step = 1e-6

    def answer(factor):
        gain = third_gain(factor)
        moved = identified_with_gain(factor)
        estimate = replace(model.estimate, value=moved.estimate.value)
        arm = replace(model, estimate=estimate, factor=moved.factor)
        parts = [replace(part, tau=part.tau * gain) for part in loaded]
        measured = [replace(part, tau=part.tau * gain) for part in others]
        beside = others if method == "manufacturer" else measured
        return METHODS[method](WeighingProblem(arm, parts, np.zeros((0, 11)), beside))

    slope = (answer(1 + step).value - answer(1 - step).value) / (2 * step)
    response = answer(1.0).per_gain[:, 2]
    np.testing.assert_allclose(response, slope, atol=0.05 * np.abs(slope).max())
    assert np.abs(slope).max() > 0.01


@pytest.mark.thorough
@pytest.mark.parametrize("method", [name for name in METHODS if name != "weighted-difference"])
def test_the_answer_moves_with_a_gain_that_drifts_as_it_says(method):
    """A gain that changes after the empty runs scales the loaded torques alone."""
    model, loaded, empty = case(arm("ur10"), 0.5, postures=300)
    step, j = 1e-6, 1

    def answer(factor):
        gain = np.where(np.arange(6) == j, factor, 1.0)
        parts = [replace(part, tau=part.tau * gain) for part in loaded]
        return METHODS[method](
            WeighingProblem(model, parts, np.zeros((0, 11)), empty.get(method, ()))
        )

    slope = (answer(1 + step).value - answer(1 - step).value) / (2 * step)
    np.testing.assert_allclose(answer(1.0).per_drift[:, j], slope, atol=0.05 * np.abs(slope).max())
    assert abs(slope[0]) > 0.1


def without_causes(payload):
    """The variance of the mass without another scale or a force, [kg^2]."""
    causes = payload.shares.get("scale", 0.0) + payload.shares.get("force", 0.0)
    return payload.covariance[0, 0] * (1 - causes)


@pytest.mark.thorough
def test_a_drift_of_the_gains_is_covered_and_says_its_share():
    """One percent between empty and loaded run: one in three intervals would hold it without."""
    robot = load_robot("ur10")
    drive = replace(robot.drive, gain_std=np.zeros(6))
    inside, without = [], []
    models = [identify(robot, moving(robot, 100 + seed, 0.5)) for seed in range(4)]
    for seed, change in enumerate(0.01 * ndtri((np.arange(20) + 0.5) / 20)):
        model = models[seed % 4]
        loaded = moving(robot.with_payload(LOAD), seed, 0.5, 2)
        loaded = replace(loaded, tau=np.exp(change) * loaded.tau)
        cases = [(0.01, inside)]
        if seed % 3 == 0:
            cases.append((0.0, without))
        for drift, hits in cases:
            arm = replace(model, robot=robot.with_drive(replace(drive, gain_drift=drift)))
            found = weigh(arm, loaded)
            std = np.sqrt(without_causes(found))
            hits.append(abs(found.unconstrained.mass - LOAD.mass) < 1.96 * std)
            assert sum(found.shares.values()) == pytest.approx(1)
            share = found.shares["drift"] * found.covariance[0, 0] / std**2
            assert (share > 0.9) == (drift > 0)
            assert found.shares["gains"] == 0
    assert 0.9 <= np.mean(inside) < 1
    assert np.mean(without) < 0.4


def test_shares_of_the_variance_are_what_each_adds(tmp_path):
    robot = load_robot("ur10")
    model, loaded, _ = case(robot, 0.5)
    gain = np.full(6, 10.0)
    wrong = replace(
        robot.drive, gain=gain, gain_std=0.01 * gain, gain_common=0.02, gain_drift=0.003
    )
    plain = weigh(model, loaded[0])
    found = weigh(replace(model, robot=robot.with_drive(wrong)), loaded[0])
    assert found.gain_error.shape == (10, 7)
    gains, drift = (found.shares[name] * found.covariance[0, 0] for name in ("gains", "drift"))
    assert gains == pytest.approx(found.gain_error[0] @ found.gain_error[0])
    assert without_causes(plain) + gains + drift == pytest.approx(without_causes(found))
    np.testing.assert_allclose(
        found.gain_error[:, 6] / 0.02, found.gain_error[:, :6].sum(axis=1) / 0.01
    )
    assert 0 < plain.shares["friction"] < 1
    assert "of the variance" not in plain.verdict.summary
    words = "most of the interval of the mass comes from drive gains ("
    assert words in found.verdict.summary
    assert "a known mass could narrow it to " in found.verdict.summary
    found.save(tmp_path / "payload.json")
    assert Payload.load(tmp_path / "payload.json").shares == found.shares
    both = found.together_with(found)
    assert both.shares["gains"] * both.covariance[0, 0] == pytest.approx(4 * gains)
    assert both.shares["drift"] * both.covariance[0, 0] == pytest.approx(2 * drift)
    assert sum(both.shares.values()) == pytest.approx(1)


def test_uncertain_gains_widen_the_interval():
    robot = load_robot("ur10")
    model, loaded, _ = case(robot, 0.1)
    gain = np.full(6, 10.0)

    def with_gain_std(share):
        drive = replace(robot.drive, gain=gain, gain_std=share * gain)
        return weigh(replace(model, robot=robot.with_drive(drive)), loaded[0])

    exact, one, two = weigh(model, loaded[0]), with_gain_std(0.01), with_gain_std(0.02)
    added = without_causes(one) - without_causes(exact)
    assert 0.003 < np.sqrt(added) / LOAD.mass < 0.01
    assert without_causes(two) - without_causes(exact) == pytest.approx(4 * added, rel=1e-6)
    np.testing.assert_allclose(two.gain_error, 2 * one.gain_error)
    np.testing.assert_array_equal(one.unconstrained.vector, exact.unconstrained.vector)
    with pytest.raises(InvalidRobot, match="gain_std needs gains"):
        replace(robot.drive, gain=None, gain_std=gain)


def test_a_part_in_a_gripper_is_what_was_added_and_both_together_are_their_sum():
    robot = load_robot("ur10")
    gripper = InertialParameters.from_com(1.1, [0.0, 0.01, 0.05], 2e-3 * np.eye(3))
    bare, with_tool = identify(robot, moving(robot, 0, 1e-4)), robot.with_payload(gripper)
    tool = weigh(bare, moving(with_tool, 1, 1e-4, 2))
    part = weigh(
        identify(with_tool, moving(with_tool, 2, 1e-4)),
        moving(with_tool.with_payload(LOAD), 3, 1e-4, 2),
    )
    np.testing.assert_allclose(part.body.vector, LOAD.vector, atol=1e-3)
    both = part.together_with(tool)
    np.testing.assert_allclose(both.body.vector, LOAD.vector + gripper.vector, atol=1e-3)
    np.testing.assert_allclose(both.covariance, part.covariance + tool.covariance)
    assert "tool and part together" in both.status
    elsewhere = replace(tool, body=InertialParameters.from_vector(tool.body.vector, "camera"))
    with pytest.raises(InvalidSamples, match="given in frame 'camera', the part in"):
        part.together_with(elsewhere)


def test_rests_are_found_between_motions_and_averaged():
    robot = load_robot("ur10")
    q = np.zeros((300, 6))
    q[100:200] = np.linspace(0, 1, 100)[:, None]
    q[200:] = 1.0
    v = np.gradient(q, 0.01, axis=0)
    tau = np.where(np.arange(300)[:, None] < 150, 3.0, 5.0) * np.ones((1, 6))
    found_q, found_tau = postures_at_rest(
        Samples(q, v, 0 * q, tau, 100.0, robot.joint_names, "measured")
    )
    np.testing.assert_allclose(found_q, [[0.0] * 6, [1.0] * 6], atol=1e-12)
    np.testing.assert_allclose(found_tau, [[3.0] * 6, [5.0] * 6])


def test_too_few_postures_say_how_many_more():
    robot = load_robot("ur10")
    model = identify(robot, moving(robot, 0, 0.1))
    found = weigh(model, held(robot.with_payload(LOAD), 1, 2, 0.1), method="static")
    assert (
        "1 posture at rest is too few: add at least 1 with the flange tilted differently"
        in found.status
    )
    assert not found.verdict.ok
    with pytest.raises(
        InvalidSamples, match="the arm never rests in these runs: hold at least 2 postures"
    ):
        weigh(model, moving(robot, 1, 0.1), method="static")
    with pytest.raises(InvalidSamples, match="nothing moves in these runs"):
        weigh(model, held(robot, 4, 2, 0.1), method="combined")
    with pytest.raises(InvalidSamples, match="the inertia has no effect at rest"):
        weigh(model, held(robot, 4, 2, 0.1), method="static", fixed={"Ixx": 0.01})


def test_ten_postures_near_a_pick_weigh_well():
    """gaz2017, section VI.A: +-7 degrees around a pick, torques measured behind the gears."""
    robot = load_robot("lwr4").with_drive(DriveModel.ideal(7))
    model = identify(robot, [moving(robot, seed, 0.1, seed) for seed in range(3)])
    rng = np.random.default_rng(4)
    pick = np.array([0.3, 0.8, -0.2, 1.2, 0.4, 0.9, 0.1])
    q = np.repeat(pick + np.deg2rad(7) * rng.uniform(-1, 1, size=(10, 7)), 20, axis=0)
    arm = robot.with_payload(InertialParameters.from_com(3.028, [0, 0, 0.119], 5e-3 * np.eye(3)))
    tau = arm.gravity_torque(q) + 0.1 * rng.normal(size=q.shape)
    found = weigh(
        model, Samples(q, 0 * q, 0 * q, tau, 100.0, robot.joint_names, "measured"), method="static"
    )
    assert abs(found.body.mass - 3.028) < 3 * found.std[0]
    assert found.std[0] < 0.05
    assert np.abs(found.body.com - [0, 0, 0.119]).max() < 3 * found.com_std.max() < 0.06


def test_static_friction_widens_what_postures_tell():
    """Friction at rest is anywhere between -F and F: few postures must not be believed too much."""
    robot = load_robot("ur10")
    model = identify(robot, [moving(robot, seed, 0.5, seed) for seed in range(3)])
    F = np.abs(robot.drive.friction(np.full(6, 0.05)) - robot.drive.offset)
    z = []
    for seed in range(20):
        loaded = held(robot.with_payload(LOAD), 10, seed, 0.0)
        stuck = np.repeat(np.random.default_rng(50 + seed).uniform(-F, F, size=(10, 6)), 20, axis=0)
        found = weigh(model, replace(loaded, tau=loaded.tau + stuck), method="static")
        z.append((found.unconstrained.vector - LOAD.vector)[:4] / found.std[:4])
    assert 0.9 < np.mean(np.abs(z) < 1.96) <= 1
    assert np.sqrt(np.mean(np.square(z))) > 0.5


def test_combinations_that_a_poor_baseline_tells_are_used():
    """Joint 6 never moves: single parameters of the arm are unknown, their sums are known."""
    robot = load_robot("ur10")

    def still(arm, seed, trajectory_seed):
        q, v, a = (x.copy() for x in lively_motion(robot, trajectory_seed))
        q[:, 5], v[:, 5], a[:, 5] = 0.3, 0.0, 0.0
        tau = arm.torque(q, v, a) + 0.3 * np.random.default_rng(seed).normal(size=q.shape)
        return Samples(q, v, a, tau, 100.0, robot.joint_names, "measured")

    empty = [still(robot, k, k) for k in (1, 3)]
    model = identify(robot, empty)
    assert "says nothing about" in model.estimate.status
    z = []
    for seed in range(6):
        found = weigh(model, still(robot.with_payload(LOAD), 50 + seed, 2))
        assert found.excited[:4] == ("m", "mx", "my", "mz")
        z.append(((found.unconstrained.vector - LOAD.vector) / found.std)[:4])
    assert found.std[0] < 0.05
    assert np.mean(np.abs(z) < 1.96) > 0.8
    together = weigh(model, still(robot.with_payload(LOAD), 55, 2), method="pooled", empty=empty)
    np.testing.assert_allclose(found.std[:4], together.std[:4], rtol=0.3)


def test_numbers_that_few_combinations_do_not_tell_are_unknown(rng):
    """Of four combinations only the fifth number is told: the others occur in sums only."""
    J = np.zeros((4, 10))
    J[0, 4] = 2.0
    J[1:, [0, 1, 2, 3, 6]] = rng.normal(size=(3, 5))
    for S in (None, np.diag([0.1, 1.0, 2.0, 3.0])):
        inverse, unknown = _payload_of_difference(J, S, np.zeros((0, 11)))
        assert np.flatnonzero(~unknown).tolist() == [4]
        np.testing.assert_allclose(inverse[4], [0.5, 0, 0, 0], atol=1e-12)


def test_known_centre_of_mass_and_no_inertia_are_kept():
    robot = load_robot("ur10")
    model = identify(robot, moving(robot, 0, 0.3))
    point = InertialParameters.from_com(2.0, [0.0, 0.0, 0.08], np.zeros((3, 3)))
    loaded = moving(robot.with_payload(point), 1, 0.3, 2)
    found = weigh(model, loaded, fixed={"cx": 0.0, "cy": 0.0})
    np.testing.assert_allclose(found.body.com[:2], 0.0, atol=1e-6)
    assert found.std[0] < weigh(model, loaded).std[0]
    origin = InertialParameters.from_com(2.0, [0.0, 0.0, 0.0], np.zeros((3, 3)))
    loaded = moving(robot.with_payload(origin), 1, 0.3, 2)
    bare = weigh(model, loaded, fixed={"inertia": 0.0})
    np.testing.assert_allclose(bare.unconstrained.vector[4:], 0.0, atol=1e-6)
    assert bare.std[0] < weigh(model, loaded).std[0]


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        ({"Ixx": -0.1}, "'Ixx' cannot be fixed at -0.1"),
        ({"Ixx": 0.1, "Iyy": 0.1, "Izz": 0.3}, "0.3 kg m.2 is more than the sum of the other two"),
        ({"m": 2.0, "cx": 0.1, "mx": 0.3}, "contradict each other: mx = 0.3, but m cx = 0.2"),
    ],
)
def test_fixed_numbers_that_no_body_has_are_refused(fixed, words):
    robot = load_robot("ur10")
    with pytest.raises(InvalidSamples, match=words):
        weigh(identify(robot, moving(robot, 0, 0.5)), moving(robot, 1, 0.5), fixed=fixed)


def test_refusals_of_methods():
    robot = load_robot("ur10")
    model, loaded = (
        identify(robot, moving(robot, 0, 0.5)),
        moving(robot.with_payload(LOAD), 1, 0.5, 2),
    )
    with pytest.raises(
        UnknownName, match="there is no method 'scale'; the methods are auto, direct, difference"
    ):
        weigh(model, loaded, method="scale")
    with pytest.raises(
        InvalidSamples, match="needs an empty run for each loaded run on the same motion"
    ):
        weigh(model, loaded, method="torque-change")
    with pytest.raises(InvalidSamples, match=r"the loaded and the empty motion differ by .* rad"):
        weigh(model, loaded, method="torque-change", empty=moving(robot, 2, 0.5, 5))
    near = moving(robot, 2, 0.5, 2)
    near = replace(near, q=near.q + 0.1 * np.eye(6)[2])  # [rad], of one joint
    with pytest.raises(InvalidSamples, match=r"the loaded and the empty motion differ by 0\.1"):
        weigh(model, loaded, method="torque-change", empty=near)
    with pytest.raises(
        InvalidSamples, match="torque of the empty arm for each sample of each loaded run"
    ):
        weigh(
            model, loaded, method="manufacturer", empty=moving(robot, 2, 0.5, 2).rows(slice(0, 500))
        )
    with pytest.raises(InvalidSamples, match="the pooled method needs the empty runs too"):
        weigh(model, loaded, method="pooled")
    with pytest.raises(InvalidSamples, match="there are no samples to compare with"):
        weigh(model, loaded, method="pooled", empty=[])
    backwards = replace(loaded, joint_names=loaded.joint_names[::-1])
    with pytest.raises(InvalidSamples, match="the joints of ur10 are in the order"):
        weigh(model, backwards)


def test_runs_of_one_motion_are_shifted_until_they_lie_on_each_other():
    """Another start, another rate, another length; among motions that are not the same."""
    robot = load_robot("ur10")
    model, loaded = (
        identify(robot, moving(robot, 0, 0.1)),
        moving(robot.with_payload(LOAD), 1, 0.1, 2),
    )
    q, v, a = lively_motion(robot, 2, duration_s=13.0)
    t, late_s = np.arange(0, 12.0, 1 / 93.7), 0.3137
    q, v, a = (resample(np.arange(0, 13.0, 0.01), x, t + late_s) for x in (q, v, a))
    tau = robot.torque(q, v, a) + 0.1 * np.random.default_rng(2).normal(size=q.shape)
    empty = Samples(q, v, a, tau, 93.7, robot.joint_names, "measured")
    found = weigh(model, loaded, method="torque-change", empty=[moving(robot, 3, 0.1, 4), empty])
    assert found.verdict.ok
    assert "run 1: 9.7 s in common with the empty run, -0.314 s shifted" in found.status
    assert found.mass == pytest.approx(LOAD.mass, abs=3 * found.std[0])
    assert found.std[0] < 0.02
    short = weigh(
        model, loaded, method="torque-change", empty=moving(robot, 3, 0.1, 2).rows(slice(100, 600))
    )
    assert "run 1: 5.0 s in common with the empty run, -1.000 s shifted" in short.status


def test_an_empty_run_on_the_same_motion_is_compared_with_by_itself():
    """With torques that no friction law contains: 2 Nm that depend on the position."""
    robot = load_robot("ur10")

    def recorded(arm, seed, motion):
        part = moving(arm, seed, 0.1, motion)
        return replace(part, tau=part.tau + 2.0 * np.sin(5.0 * part.q))

    model = identify(robot, [recorded(robot, 0, 1), recorded(robot, 1, 3)])
    loaded = recorded(robot.with_payload(LOAD), 2, 2)
    empty = recorded(robot, 3, 2)
    direct = weigh(model, loaded)
    assert direct.method == "direct"
    both = weigh(model, loaded, empty=[recorded(robot, 4, 5), empty])
    assert both.method == "torque-change"
    assert both.std[0] < 0.7 * direct.std[0]
    assert abs(both.unconstrained.mass - LOAD.mass) < 3 * both.std[0]
    assert "an empty run has the same motion" in both.status
    alone = with_interval(direct.unconstrained.mass, NORMAL_95 * direct.std[0])
    assert f"the model alone gives {alone} kg" in both.status
    assert weigh(model, loaded, empty=recorded(robot, 4, 5)).method == "direct"


def test_friction_that_changed_between_both_runs_does_not_spoil_the_torque_change():
    robot = load_robot("ur10")
    warm = replace(robot.drive, coulomb=0.9 * robot.drive.coulomb)
    model = identify(robot, [moving(robot, seed, 0.1, 1 + seed) for seed in (0, 1)])
    model = replace(model, run_spread=10 * model.run_spread)
    loaded = moving(robot.with_drive(warm).with_payload(LOAD), 2, 0.1, 2)
    empty = moving(robot, 3, 0.1, 2)
    found = weigh(model, loaded, method="torque-change", empty=empty)
    assert abs(found.unconstrained.mass - LOAD.mass) < 3 * found.std[0] < 0.05
    unchanged = replace(model, run_spread=None)
    before = weigh(unchanged, loaded, method="torque-change", empty=empty)
    assert abs(before.unconstrained.mass - LOAD.mass) > abs(found.unconstrained.mass - LOAD.mass)


def test_a_model_of_another_arm_is_noticed():
    robot, other = load_robot("ur10"), load_robot("ur10e")
    found = weigh(
        identify(other, moving(other, 0, 0.1)), moving(robot.with_payload(LOAD), 1, 0.1, 2)
    )
    assert "check that the model is of this arm" in found.status
    assert not found.verdict.ok
