"""Causes that widening would hide: each is doubted by name, and clean runs are not."""

import re
from dataclasses import replace

import numpy as np
import pytest

from steelyard.fleet._estimate import payload_of
from steelyard.identification import RegressionFactor, _other_causes, identify
from steelyard.inertia import InertialParameters
from steelyard.quality._check import saturated
from steelyard.recording import Preparation, Recording, Sample, Samples
from steelyard.robot import RobotModel, load_robot
from steelyard.signals import prepare
from steelyard.torque import weigh
from steelyard.torque.tracking import TorqueTracker
from steelyard.torque.tracking._noise import ResidualSpread
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import DoubtKind

ROBOT = load_robot("ur10")
LOAD = InertialParameters.from_com(
    3.0, [0.02, -0.03, 0.09], np.diag([0.02, 0.025, 0.015]), ROBOT.flange
)
T = np.arange(0, 16, 0.02)
NOISE = np.array([2.0, 2.0, 1.0, 0.3, 0.3, 0.3])


def moved(robot, series, rate=1.0):
    """Samples of an arm in generic motion, its clock at another rate."""
    rng = np.random.default_rng(series)
    w = 2 * np.pi / 16 * np.arange(1, 8)[:, None, None]
    A, B = rng.normal(size=(2, 7, 1, 6)) / np.arange(3, 10)[:, None, None]
    s, c = np.sin(w * T[:, None]), np.cos(w * T[:, None])
    q = robot.home + (A * s + B * c).sum(axis=0)
    v, a = (w * (A * c - B * s)).sum(axis=0), -(w**2 * (A * s + B * c)).sum(axis=0)
    tau = robot.torque(q, v, a) + NOISE * rng.normal(size=q.shape)
    return Samples(q, v * rate, a * rate**2, tau, 50.0 * rate, robot.joint_names, "measured")


@pytest.fixture(scope="module")
def model():
    return identify(ROBOT, [moved(ROBOT, 1), moved(ROBOT, 2)])


@pytest.fixture(scope="module")
def loaded():
    return moved(ROBOT.with_payload(LOAD), 3)


def with_noisy_accelerations(seed):
    """Samples with little noise of the torques, but of the accelerations, which is stated."""
    rng = np.random.default_rng(seed)
    clean = moved(ROBOT, 4)
    tau = ROBOT.torque(clean.q, clean.v, clean.a) + 0.02 * NOISE * rng.normal(size=clean.q.shape)
    a = clean.a + 0.4 * rng.normal(size=clean.a.shape)
    return replace(clean, a=a, tau=tau, a_noise=np.full(6, 0.4))


def test_what_noise_of_accelerations_makes_of_gravity_is_predicted():
    """Inertia comes out wrong by the noise, so that gravity seems to have another size."""
    found = []
    for seed in range(4):
        samples = with_noisy_accelerations(seed)
        model = identify(ROBOT, samples, friction="linear")
        links = np.where(model.estimate.parameters.links, model.estimate.value, 0.0)
        weight = _other_causes._weight(ROBOT, samples.q, ROBOT.gravity_base, links)[:, :, None]
        fit = _other_causes.Fitted.of([model.rows(samples)])
        noise_grams = model._maker.noise_grams(samples, model.factor.p)
        found.append([fit.step([weight]).e[0], fit.motion_bias([weight], noise_grams)[0]])
        assert model.verdict.ok
    measured, predicted = np.mean(found, axis=0)
    assert abs(measured) > 0.02
    assert predicted == pytest.approx(measured, rel=0.25)


# An arm of seven light joints on a lift, as mobile manipulators have them: place [m] and
# orientation [quarter turns] of each joint, mass [kg], centre of mass [m], moments [kg m^2].
LIFT = (
    ((-0.06, 0.0, 0.89), (0, 0, 0), 8.4, (0.074, 0.0, -0.12), (0.37, 0.41, 0.14)),
    ((0.16, 0.01, -0.15), (0, 0, -1), 2.1, (0.064, 0.023, -0.015), (0.004, 0.009, 0.01)),
    ((0.13, 0.02, -0.03), (1, 0, 0), 1.8, (0.035, 0.0, 0.008), (0.003, 0.005, 0.005)),
    ((0.09, 0.0, 0.0), (-1, 0, 1), 2.3, (-0.008, 0.005, -0.136), (0.019, 0.019, 0.004)),
    ((-0.02, -0.03, -0.22), (-1, -1, 0), 1.9, (-0.096, 0.015, 0.018), (0.004, 0.012, 0.012)),
    ((-0.16, 0.02, 0.03), (0, -1, 0), 1.1, (0.0, 0.0, 0.078), (0.003, 0.003, 0.001)),
    ((0.0, 0.0, 0.15), (-1, -1, 0), 0.3, (0.005, 0.0, 0.0), (0.001, 0.001, 0.001)),
    ((0.0, 0.0, 0.0), (1, 0, 1), 1.3, (0.002, 0.002, 0.127), (0.045, 0.044, 0.038)),
)
LOW = np.array([0.0, 0.0, -1.6, -2.0, -0.4, -2.0, -1.4, -2.0])
HIGH = np.array([0.35, 2.0, 1.1, 1.6, 2.0, 2.0, 1.4, 2.0])


def arm_on_a_lift():
    parts = ['<link name="base"/>']
    for k, (xyz, turns, mass, com, moments) in enumerate(LIFT):
        inertia = "".join(f' i{a}{a}="{x}"' for a, x in zip("xyz", moments, strict=True))
        parts.append(
            f'<link name="link{k}"><inertial><origin xyz="{com[0]} {com[1]} {com[2]}"/>'
            f'<mass value="{mass}"/><inertia{inertia} ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="joint{k}" type="{"revolute" if k else "prismatic"}">'
            f'<parent link="{f"link{k - 1}" if k else "base"}"/><child link="link{k}"/>'
            f'<origin xyz="{xyz[0]} {xyz[1]} {xyz[2]}"'
            f' rpy="{" ".join(str(turn * np.pi / 2) for turn in turns)}"/><axis xyz="0 0 1"/>'
            f'<dynamics friction="{1.0 if k else 0.0}" damping="{1.0 if k else 1000.0}"/>'
            f'<limit lower="{LOW[k]}" upper="{HIGH[k]}" velocity="3" effort="2000"/></joint>'
        )
    text = f'<robot name="lift">{"".join(parts)}</robot>'
    return RobotModel.from_urdf_text(text)


def test_a_light_arm_with_coarse_encoders_is_trusted():
    """Inertia that noise of accelerations makes too small was taken for another gravity."""
    robot = arm_on_a_lift()
    motion = FourierTrajectory.random(
        (LOW + HIGH) / 2,
        reach=0.4 * (HIGH - LOW),
        speed=np.array([0.07, *np.full(7, 1.5)]),
        period_s=10.0,
        harmonics=5,
        seed=600,
    )
    t = np.arange(0.0, 10.0, 0.008)
    q, v, a = motion.at(t)
    tau = robot.torque(q, v, a)
    size = 0.01 * np.sqrt(np.mean(tau**2, axis=0))
    tau = tau + size * np.random.default_rng(600).normal(size=tau.shape)
    recording = Recording(t, 1e-4 * np.round(q / 1e-4), robot.joint_names, tau=tau)
    model = identify(robot, prepare(recording, Preparation(cutoff_hz=20.0)), friction="linear")
    assert model.verdict.ok


def flange_weight(samples, newtons):
    still = np.zeros_like(samples.q)
    return newtons / 9.81 * ROBOT.payload_regressor(samples.q, still, still)[:, :, 0]


def test_clean_runs_are_trusted_and_say_what_they_assume(model, loaded):
    found = weigh(model, loaded)
    assert found.verdict.ok
    assert model.verdict.ok
    assert "assumes exact torques: a common error of 1 % moves the mass by 1 %" in found.status
    assert abs(found.body.mass - LOAD.mass) < 1.96 * found.std[0]


def test_another_scale_of_the_loaded_torques_is_doubted(model, loaded):
    verdict = weigh(model, replace(loaded, tau=1.05 * loaded.tau)).verdict
    assert verdict.has(DoubtKind.TORQUE_SCALE)
    assert "check whether gains, units or the arm have changed" in verdict.sentence


def test_the_gain_of_one_drive_is_doubted_by_name(model, loaded):
    scale = np.where(np.arange(6) == 2, 1.2, 1.0)
    verdict = weigh(model, replace(loaded, tau=scale * loaded.tau)).verdict
    assert verdict.has(DoubtKind.TORQUE_SCALE)
    assert f"the loaded torques of {ROBOT.joint_names[2]} are 1.1" in verdict.sentence


def test_another_scale_is_doubted_from_factors_and_sample_by_sample(model, loaded):
    estimator = TorqueTracker(model, "measured")
    for scale in (1.0, 1.06):
        tau = scale * loaded.tau
        rows = [model.rows(replace(loaded, tau=tau))]
        torque = np.sqrt(np.mean(tau**2, axis=0))
        fleet = payload_of(model, RegressionFactor.of_rows(rows), np.ones(6), torque)
        state = estimator.init()
        for row in zip(loaded.t, loaded.q, loaded.v, loaded.a, tau, strict=True):
            state = estimator.step(state, Sample.of_joints(*row))
        for found in (fleet, estimator.estimate(state, physical=False)):
            assert found.verdict.has(DoubtKind.TORQUE_SCALE) == (scale > 1)
            assert ("the loaded torques are 1.0" in found.status) == (scale > 1)


def test_residuals_beyond_all_widening_are_doubted_online(model):
    none = ResidualSpread.nothing(6)
    wide = none._replace(squares=np.array([1, 1, 1, 1, 1, 40.0]) * 5000, rows=np.full(6, 5000.0))
    every = np.ones(6, bool)
    assert none.doubt(ROBOT.joint_names, every) is None
    for influential in (every, np.arange(6) < 5):
        doubt = wide.doubt(ROBOT.joint_names, influential)
        assert f"{ROBOT.joint_names[5]} deviates 6 times as much as the model says" in doubt.words
        assert doubt.blocks == influential[5]


@pytest.mark.parametrize("change", ["gains", "arm"])
def test_runs_of_the_empty_arm_that_contradict_each_other_are_doubted(change):
    first, second = moved(ROBOT, 1), moved(ROBOT, 2)
    links = ROBOT.inverse_dynamics(second.q, second.v, second.a)
    tau = 1.1 * second.tau if change == "gains" else second.tau + 0.1 * links
    verdict = identify(ROBOT, [first, replace(second, tau=tau)]).verdict
    assert verdict.has(DoubtKind.TORQUE_SCALE)
    scale = re.search(
        r"torques of its links are (\d\.\d+) times as large in run 2 of 2", verdict.sentence
    )
    assert float(scale[1]) == pytest.approx(1.1, abs=0.015)


def test_a_steady_force_is_doubted(model, loaded):
    verdict = weigh(model, replace(loaded, tau=loaded.tau + flange_weight(loaded, 12.0))).verdict
    assert verdict.has(DoubtKind.STEADY_FORCE)
    assert (
        "weight and inertia of the load contradict each other: a steady force of"
        in verdict.sentence
    )


@pytest.mark.parametrize("span_s", [(8.0, 16.0), (5.0, 10.0)])
def test_a_weight_that_changes_is_doubted(model, loaded, span_s):
    acting = (span_s[0] <= T) & (span_s[1] > T)
    tau = loaded.tau - flange_weight(loaded, 8.0) * acting[:, None]
    verdict = weigh(model, replace(loaded, tau=tau)).verdict
    assert verdict.has(DoubtKind.LOAD_CHANGED)
    assert (
        "of 6 of the run: check whether the load changed or the arm was touched" in verdict.sentence
    )


def test_offsets_that_drift_are_doubted_where_they_move_the_mass(model, loaded):
    drift = np.array([0.0, 12.0, 12.0, 2.0, 0.0, 0.0]) * (T / T[-1])[:, None]
    verdict = weigh(model, replace(loaded, tau=loaded.tau + drift)).verdict
    assert verdict.has(DoubtKind.DRIFT_MOVES)
    assert "offsets of the torques drift by up to 12 Nm during the run" in verdict.sentence


@pytest.mark.thorough
def test_gravity_that_the_arm_does_not_feel_is_doubted():
    runs = [moved(ROBOT, 1), moved(ROBOT, 2)]
    given = identify(ROBOT.with_gravity([0.0, 0.0, -9.0]), runs).verdict
    assert "gravity is given as 9 m/s^2, on Earth it is 9.75 to 9.85" in given.sentence
    fast = identify(ROBOT, [moved(ROBOT, 1, rate=1.5), moved(ROBOT, 2, rate=1.5)]).verdict
    assert fast.has(DoubtKind.GRAVITY)
    assert "check the clock of the recording" in fast.sentence
    lean = 9.81 * np.array([np.sin(0.07), 0.0, -np.cos(0.07)])
    tilted = identify(
        ROBOT, [moved(ROBOT.with_gravity(lean), 1), moved(ROBOT.with_gravity(lean), 2)]
    ).verdict
    assert tilted.has(DoubtKind.TILTED_BASE)
    assert "the base seems to be tilted by 4.1 degrees" in tilted.sentence


def test_a_nominal_gravity_is_in_the_interval_and_one_that_was_given_is_not(model, loaded):
    nominal = weigh(model, loaded)
    there = ROBOT.with_gravity([0.0, 0.0, -9.8])
    given = weigh(
        identify(there, [moved(there, 1), moved(there, 2)]), moved(there.with_payload(LOAD), 3)
    )
    assert "gravity" not in given.shares
    variance = nominal.shares["gravity"] * nominal.covariance[0, 0]
    assert np.sqrt(variance) == pytest.approx(0.0015 * nominal.unconstrained.mass)
    assert nominal.com_std == pytest.approx(given.com_std, rel=0.05)


def test_saturated_torques_do_not_count():
    t = np.arange(0, 4, 0.01)
    q = np.column_stack([np.sin(t), np.cos(t)])
    tau = np.column_stack([20 * np.sin(2 * t), 3 * np.cos(t)])
    tau += 0.01 * np.random.default_rng(0).normal(size=tau.shape)
    clipped = tau.clip([-12.0, -9.0], [15.0, 9.0])
    high, low = clipped[:, 0] == 15.0, clipped[:, 0] == -12.0
    assert high.any()
    assert low.any()
    np.testing.assert_array_equal(saturated(clipped, q), np.column_stack([high | low, 0 * high]))
    samples = prepare(Recording(t=t, q=q, tau=clipped), Preparation(lowest_speed=0.0))
    np.testing.assert_array_equal(samples.usable[:, 0], ~(high | low))
    assert samples.usable[:, 1].all()
    assert any("saturated, such rows are left out" in words for words in samples.warnings)


@pytest.mark.thorough
def test_torques_that_the_model_does_not_contain_do_not_accuse_gravity(monkeypatch):
    """Springs at the joints: weights at single joints then contradict each other, and that counts.

    Without this comparison gravity would be accused.
    """
    springs = np.array([0.0, -30.0, -10.0, -2.0, 0.0, 0.0])
    parts = [
        replace(part, tau=part.tau + springs * part.q)
        for part in (moved(ROBOT, 7), moved(ROBOT, 8))
    ]
    assert not identify(ROBOT, parts).verdict.has(DoubtKind.GRAVITY)
    monkeypatch.setattr(_other_causes, "_disagreement", lambda *_: 0.0)
    assert identify(ROBOT, parts).verdict.has(DoubtKind.GRAVITY)
