"""Feed-forward is inverse dynamics in parts, for any arm, friction law and payload."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.control._compensation import Compensator, flange_body
from steelyard.identification import FrictionLaw, identify
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Samples
from steelyard.robot import DriveModel, RobotModel, load_robot
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import Verdict
from tiers import thorough_but

LAWS = ("power", "smooth", "stribeck", "presliding-power", "load", "presliding-load")


def body(frame="flange"):
    return InertialParameters.from_com(
        3.2,
        [0.03, -0.05, 0.08],
        [[0.03, 0.002, -0.004], [0.002, 0.04, 0.003], [-0.004, 0.003, 0.02]],
        frame,
    )


def motion(robot, seed=1, seconds=4.0):
    """A motion that turns round often, (N, n) each."""
    series = FourierTrajectory.random(
        np.full(robot.n, 0.3),
        reach=np.full(robot.n, 1.0),
        speed=np.full(robot.n, 1.5),
        period_s=4.0,
        harmonics=5,
        seed=seed,
    )
    return series.at(np.arange(0, seconds, 0.01))


def identified(robot, law_name):
    """A model with friction laws of given shapes, fitted to noisy torques with this friction."""
    parts, law = [], replace(FrictionLaw.named(law_name, robot.n), fixed=True)
    for seed in (1, 2):
        q, v, a = motion(robot, seed)
        tau = robot.inverse_dynamics(q, v, a)
        columns = law.columns(q, v, tau if law.load else None)
        tau += np.tensordot([4.0, 3.0, 0.1 if law.load else 1.0][: len(columns)], columns, axes=1)
        tau += 0.1 * np.random.default_rng(seed).normal(size=q.shape)
        parts.append(Samples(q, v, a, tau, 100.0, robot.joint_names, "measured"))
    return identify(robot, parts, friction=law)


@pytest.fixture(scope="module")
def models():
    ur10 = load_robot("ur10")
    return {name: identified(ur10, name) for name in LAWS} | {
        "coupled": identified(load_robot("tx60"), "load")
    }


@pytest.mark.parametrize(
    "name", thorough_but(("stribeck", "presliding-power", "coupled"), [*LAWS, "coupled"])
)
def test_sample_by_sample_is_batch(models, name):
    model = models[name]
    q, v, a = motion(model.robot, 5, 1.0)
    compensator = Compensator(model, body())
    whole = compensator.batch(q, v, a)
    state = compensator.init()
    for i in range(len(q)):
        state, here = compensator.step(state, q[i], v[i], a[i])
        for part in ("gravity", "inertia", "friction", "offset", "total"):
            np.testing.assert_allclose(getattr(here, part), getattr(whole, part)[i], atol=1e-9)


@pytest.mark.parametrize("name", [*LAWS, "coupled"])
def test_the_empty_arm_needs_what_its_model_predicts(models, name):
    model = models[name]
    q, v, a = motion(model.robot, 5)
    np.testing.assert_allclose(
        Compensator(model).batch(q, v, a).total, model.torque(q, v, a), atol=1e-9
    )


@pytest.mark.parametrize("name", ["power", "presliding-load", "coupled"])
def test_long_motions_are_cut_without_a_trace(models, name, monkeypatch):
    model = models[name]
    q, v, a = motion(model.robot, 5)
    whole = Compensator(model, body()).batch(q, v, a).total
    monkeypatch.setattr("steelyard.control._compensation._CHUNK", 37)
    np.testing.assert_allclose(Compensator(model, body()).batch(q, v, a).total, whole, atol=1e-9)


@pytest.mark.parametrize("name", ["power", "stribeck", "presliding-power"])
def test_a_payload_adds_its_own_inverse_dynamics(models, name):
    model = models[name]
    q, v, a = motion(model.robot, 6)
    load = body()
    with_links = model.robot.with_payload(flange_body(model.robot, load))
    difference = with_links.inverse_dynamics(q, v, a) - model.robot.inverse_dynamics(q, v, a)
    more = Compensator(model, load).batch(q, v, a).total - model.torque(q, v, a)
    np.testing.assert_allclose(more, difference, atol=1e-8)
    np.testing.assert_allclose(
        Compensator(model, load).payload_torque(q, v, a).total, difference, atol=1e-8
    )


@pytest.mark.parametrize("name", ["load", "presliding-load", "coupled"])
def test_friction_that_knows_the_load_grows_with_the_payload(models, name):
    model = models[name]
    q, v, a = motion(model.robot, 6)
    change = Compensator(model, body()).payload_torque(q, v, a)
    empty, full = (Compensator(model, load).batch(q, v, a) for load in (None, body()))
    np.testing.assert_allclose(change.total, full.total - empty.total, atol=1e-8)
    assert np.abs(change.friction).max() > 1e-4


@pytest.mark.parametrize("name", ["ur10", "lwr4", "tx60", "planar2r"])
def test_the_parts_of_a_described_arm_are_its_torque(name):
    robot = load_robot(name)
    drive = replace(
        robot.drive,
        coulomb=np.full(robot.n, 2.0),
        load_coulomb=np.full(robot.n, 0.05),
        offset=np.full(robot.n, 0.7),
    )
    robot = robot.with_drive(drive)
    q, v, a = motion(robot, 3, 1.0)
    parts = Compensator(robot, body(robot.flange)).batch(q, v, a)
    loaded = robot.with_payload(body(robot.flange))
    np.testing.assert_allclose(parts.total, loaded.torque(q, v, a), atol=1e-9)
    np.testing.assert_allclose(parts.gravity, loaded.gravity_torque(q), atol=1e-9)
    at_rest = Compensator(robot).batch(q, 0 * v, 0 * a)
    assert np.abs(at_rest.offset).max() > 0.5
    np.testing.assert_allclose(at_rest.inertia, 0.0, atol=1e-9)
    np.testing.assert_allclose(at_rest.friction, 0.0, atol=1e-9)


def test_gravity_is_the_slope_of_potential_energy(models, rng):
    """-m g . c(q) by finite differences of the kinematics; weight acts down, the arm holds up."""
    robot, load = models["power"].robot, body()

    def energy(q):
        T = robot.forward_kinematics(q)
        return -load.mass * robot.gravity_base @ (T[:3, :3] @ load.com + T[:3, 3])

    for q in rng.uniform(-2, 2, (5, robot.n)):
        step = 1e-6 * np.eye(robot.n)
        slope = [(energy(q + h) - energy(q - h)) / 2e-6 for h in step]
        held = Compensator(models["power"], load).gravity(q) - Compensator(models["power"]).gravity(
            q
        )
        np.testing.assert_allclose(held, slope, atol=1e-6)


def test_gravity_of_an_identified_arm_is_that_of_its_links(rng):
    """Base parameters suffice, and neither friction nor offset is taken for weight."""
    robot = load_robot("ur10")
    q, v, a = motion(robot)
    noise = 1e-6 * rng.normal(size=q.shape)
    samples = Samples(q, v, a, robot.torque(q, v, a) + noise, 100.0, robot.joint_names, "measured")
    posture = rng.uniform(-2, 2, (20, robot.n))
    found = Compensator(identify(robot, samples)).gravity(posture)
    np.testing.assert_allclose(found, robot.gravity_torque(posture), atol=1e-3)


def test_weight_on_a_joint_that_slides_is_gravity_though_it_is_constant(tiny, rng):
    """Masses regroup into B there, and so does the drive's own offset: both are gravity."""
    robot = RobotModel.from_urdf_text(tiny["prismatic"])
    offset = np.array([3.0, -2.0, 1.0])
    robot = robot.with_drive(DriveModel(np.full(3, 0.1), np.full(3, 2.0), np.full(3, 1.0), offset))
    q, v, a = motion(robot)
    tau = robot.torque(q, v, a) + 1e-6 * rng.normal(size=q.shape)
    model = identify(robot, Samples(q, v, a, tau, 100.0, robot.joint_names, "measured"))
    load = body(robot.flange)
    compensator = Compensator(model, load)
    loaded = robot.with_payload(flange_body(robot, load))
    held = loaded.gravity_torque(q)
    assert np.abs(held[:, 0]).min() > 50
    np.testing.assert_allclose(
        compensator.gravity(q), held + np.array([offset[0], 0, 0]), atol=1e-3
    )
    parts = compensator.batch(q, v, a)
    np.testing.assert_allclose(parts.gravity, compensator.gravity(q), atol=1e-9)
    np.testing.assert_allclose(parts.offset, np.tile([0, *offset[1:]], (len(q), 1)), atol=1e-3)
    np.testing.assert_allclose(parts.total, loaded.torque(q, v, a), atol=1e-3)


@pytest.mark.parametrize("name", ["power", "load", "coupled"])
def test_uncertainty_is_that_of_many_payloads(models, name, rng):
    model = models[name]
    q, v, a = (signal[::40] for signal in motion(model.robot, 7))
    size = (
        0.05 if name == "power" else 0.001
    )  # small beside the kink of |L| where a gear carries nothing
    root = size * rng.normal(size=(10, 10)) * np.array([0.3, *[0.03] * 3, *[0.01] * 6])[:, None]
    load = Payload(body(), body(), root @ root.T, np.ones(model.robot.n), Verdict("drawn"))
    change = Compensator(model, load).payload_torque(q, v, a)
    base = model.robot.payload_regressor(q, v, a)
    draws = load.body.vector + rng.normal(size=(4000, 10)) @ root.T
    if name == "power":
        torques = np.einsum("njk,dk->dnj", base, draws)
    else:
        draws = draws[:300]
        bodies = (InertialParameters.from_vector(draw, model.robot.flange) for draw in draws)
        torques = np.array([Compensator(model, other).batch(q, v, a).total for other in bodies])
    np.testing.assert_allclose(
        torques.std(axis=0), change.std, rtol=0.1 if name == "power" else 0.2
    )
