"""MuJoCo against the identification model, against numpy, and against the laws of mechanics.

Nothing is at zero: every joint moves and carries torque in the runs compared, which is asserted
first.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from steelyard.inertia import InertialParameters
from steelyard.robot import DHTable, DriveModel, RobotModel, load_robot
from steelyard.simulation import Push, SensorModel, SimulationOptions, simulate
from tiers import thorough_but

ARMS = ("gen3", "kr300", "kr60ha", "lwr4", "panda", "planar2r", "tx60", "ur10", "ur10e")
IDEAL = SensorModel.ideal()
TILTED = np.array([1.5, -2.0, -9.4])


class Sines:
    """A generic motion about the home posture."""

    def __init__(self, robot, duration_s=2.5, speed=0.5, seed=3):
        rng = np.random.default_rng(seed)
        self.duration_s, self.centre = duration_s, robot.home + rng.uniform(-0.2, 0.2, robot.n)
        self.w = 2 * np.pi * np.array([0.4, 0.7, 1.1])
        self.amplitude = rng.uniform(0.5, 1.0, (robot.n, 3)) * speed / self.w
        self.phase = rng.uniform(0, 2 * np.pi, (robot.n, 3))

    def at(self, t):
        angle = t[:, None, None] * self.w + self.phase
        q = self.centre + (self.amplitude * np.sin(angle)).sum(-1)
        v = (self.amplitude * self.w * np.cos(angle)).sum(-1)
        return q, v, -(self.amplitude * self.w**2 * np.sin(angle)).sum(-1)


class Rest:
    """A posture held."""

    def __init__(self, q, duration_s=0.4):
        self.q, self.duration_s = np.asarray(q, dtype=float), duration_s

    def at(self, t):
        nothing = np.zeros((len(t), len(self.q)))
        return nothing + self.q, nothing, nothing


def load(robot):
    """A generic payload for the arm: a third of its last two links' mass, off every axis."""
    m = sum(link.mass for link in robot.links[-2:]) / 3
    inertia = m * np.array([[0.011, 0.002, -0.001], [0.002, 0.015, 0.003], [-0.001, 0.003, 0.009]])
    return InertialParameters.from_com(m, [0.04, -0.06, 0.11], inertia, robot.flange)


def frictionless(robot):
    return robot.with_drive(DriveModel(robot.drive.rotor_inertia))


@cache
def arm(name):
    return load_robot(name)


@cache
def smooth_run(name, loaded):
    """A run without friction and noise, the arm as the model knows it, and its truth."""
    robot = frictionless(arm(name))
    payload = load(robot) if loaded else None
    made = simulate(robot, Sines(robot), payload=payload, sensors=IDEAL)
    return robot.with_payload(payload) if loaded else robot, made


@cache
def rough_run(name):
    """A run with power-law friction; the two-link arm, which has none, gets some."""
    robot = arm(name)
    drive = replace(
        robot.drive, exponent=np.full(robot.n, 0.6), offset=np.linspace(0.2, -0.3, robot.n)
    )
    if name == "planar2r":
        drive = replace(drive, coulomb=np.array([3.0, 2.0]), viscous=np.array([4.0, 2.0]))
    robot = robot.with_drive(drive)
    payload = load(robot)
    return robot.with_payload(payload), simulate(
        robot, Sines(robot), payload=payload, sensors=IDEAL, rate_hz=1000
    )


def require_generic(truth):
    assert (truth.v.std(axis=0) > 0.15).all()
    assert (truth.a.std(axis=0) > 0.5).all()
    assert (np.abs(truth.tau).max(axis=0) > 1e-3 * np.abs(truth.tau).max()).all()
    assert (np.abs(truth.tau).max(axis=0) > 2e-3).all()


# --- torques


@pytest.mark.thorough
@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("name", ARMS)
def test_torque_of_the_engine_is_that_of_the_model(name, loaded):
    model, made = smooth_run(name, loaded)
    truth = made.truth
    require_generic(truth)
    scale = np.abs(truth.tau).max()
    np.testing.assert_allclose(
        model.torque(truth.q, truth.v, truth.a), truth.tau, atol=1e-11 * scale
    )


@pytest.mark.parametrize("name", ARMS)
def test_payload_is_visible_in_every_torque_it_should_be_in(name):
    model, made = smooth_run(name, True)
    truth = made.truth
    without = frictionless(arm(name)).torque(truth.q, truth.v, truth.a)
    assert (np.abs(truth.tau - without).max(axis=0) > 1e-3 * np.abs(truth.tau).max(axis=0)).all()
    assert model.links[-1].mass > arm(name).links[-1].mass


@pytest.mark.thorough
@pytest.mark.parametrize("name", ARMS)
def test_rough_torque_balances_everywhere(name):
    model, made = rough_run(name)
    truth = made.truth
    require_generic(truth)
    rigid = model.inverse_dynamics(truth.q, truth.v, truth.a)
    scale = np.abs(truth.tau).max()
    np.testing.assert_allclose(rigid, truth.tau_link, atol=1e-11 * scale)
    balance = rigid + model.drive.rotor_inertia * truth.a + truth.friction
    np.testing.assert_allclose(balance, truth.tau, atol=1e-11 * scale)


@pytest.mark.parametrize("name", thorough_but(("panda", "planar2r", "tx60", "ur10e"), ARMS))
def test_rough_torque_is_that_of_the_model_outside_a_band_about_rest(name):
    # A drive is stiff, and solved implicitly, where friction would take half of its speed in one
    # step of h = 1 ms: below |v| = 2 h f / inertia. Above it the law holds to rounding.
    model, made = rough_run(name)
    truth, drive = made.truth, model.drive
    scale = np.abs(truth.tau).max()
    wrong = np.abs(model.torque(truth.q, truth.v, truth.a) - truth.tau) > 1e-11 * scale
    inertia = np.array([1 / np.diag(np.linalg.inv(_inertia(model, q))) for q in truth.q[::50]]).min(
        axis=0
    )
    friction = np.abs(drive.friction(truth.v) - drive.offset)
    band = 1.2 * 2 * 1e-3 * friction / inertia
    assert not (wrong & (np.abs(truth.v) > band)).any()
    assert wrong.mean() < 0.15
    assert (np.abs(truth.v) > band).mean() > 0.85


def _inertia(model, q):
    return model.mass_matrix(q) + np.diag(model.drive.rotor_inertia)


@pytest.mark.parametrize("name", ARMS)
def test_friction_never_exceeds_its_law_nor_drives_the_arm(name):
    model, made = rough_run(name)
    drive, truth = model.drive, made.truth
    friction = truth.friction - drive.offset
    largest = np.abs(drive.friction(np.abs(truth.v) + 0.02) - drive.offset)
    assert (np.abs(friction) <= largest + 1e-9).all()
    moving = np.abs(truth.v) > 0.15
    assert (friction * truth.v > 0)[moving].all()


def test_friction_laws_of_every_kind_agree_with_the_model():
    # Load-dependent friction takes the load from the steps before: exact but for h^2 times its
    # second derivative, which is large only when another joint sticks or slips; hence the median
    # beside the bulk.
    robot = arm("ur10e")
    every = {"load_coulomb": 0.08, "stribeck": 4.0, "stribeck_speed": 0.05, "exponent": 0.7}
    every["asymmetry"] = 2.0
    drive = replace(robot.drive, sign_width=0.01, **{k: np.full(6, x) for k, x in every.items()})
    robot = robot.with_drive(drive)
    truth = simulate(robot, Sines(robot), sensors=IDEAL).truth
    fast = np.abs(truth.v) > 0.1
    error = np.abs(robot.torque(truth.q, truth.v, truth.a) - truth.tau)[fast]
    assert fast.mean() > 0.7
    assert np.median(error) < 1e-4
    assert np.quantile(error, 0.95) < 0.02
    plain = robot.with_drive(replace(drive, load_coulomb=np.zeros(6))).torque(
        truth.q, truth.v, truth.a
    )
    assert np.median(np.abs(plain - truth.tau)[fast]) > 0.1


def test_light_drives_feel_more_friction_in_one_direction():
    """They are so light that speed and friction of a step are solved together."""
    viscous = np.full(6, 20.0)
    drive = DriveModel(np.full(6, 0.01), viscous=viscous, asymmetry=0.5 * viscous)
    robot = arm("ur10e").with_drive(drive)
    truth = simulate(robot, Sines(robot, speed=0.3), sensors=IDEAL).truth
    error = np.abs(robot.torque(truth.q, truth.v, truth.a) - truth.tau)
    speed = np.abs(truth.v)
    assert (error.mean(axis=0) < 0.02 * (viscous * speed).mean(axis=0)).all()


def test_coupled_drives_agree_with_the_model():
    robot = arm("tx60")
    C = np.eye(6)
    C[5, 4], C[4, 3] = -0.6, 0.3
    drive = replace(robot.drive, coupling=C, sign_width=0.05, gain=np.linspace(5, 10, 6))
    robot = robot.with_drive(drive)
    made = simulate(robot, Sines(robot, speed=1.0), payload=load(robot), sensors=IDEAL)
    truth = made.truth
    require_generic(truth)
    model = robot.with_payload(load(robot))
    error = np.abs(model.torque(truth.q, truth.v, truth.a) - truth.tau)
    fast = (np.abs(truth.v @ C.T) > 0.2).all(axis=1)
    assert fast.sum() > 20
    assert error[fast].max() < 1e-10
    uncoupled = robot.with_drive(replace(drive, coupling=None)).torque(truth.q, truth.v, truth.a)
    assert np.abs(uncoupled - truth.tau)[fast].max() > 1
    np.testing.assert_allclose(
        drive.torque_from_current(made.recording.current), truth.tau, atol=1e-9
    )


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "continuous", "fixed"])
def test_urdf_arms_with_oblique_and_sliding_joints_agree(tiny, kind):
    robot = RobotModel.from_urdf_text(tiny[kind])
    robot = robot.with_drive(DriveModel(np.linspace(0.1, 0.2, robot.n)))
    payload = load(robot)
    truth = simulate(robot, Sines(robot), payload=payload, sensors=IDEAL).truth
    require_generic(truth)
    model = robot.with_payload(payload)
    np.testing.assert_allclose(model.torque(truth.q, truth.v, truth.a), truth.tau, atol=1e-9)
    np.testing.assert_allclose(newton_euler(robot, truth), truth.wrench, atol=1e-9)


def test_tilted_world_is_another_gravity_that_the_controller_does_not_know():
    robot = frictionless(arm("ur10"))
    payload = load(robot)
    options = SimulationOptions(gravity_base=TILTED)
    truth = simulate(robot, Sines(robot), payload=payload, sensors=IDEAL, options=options).truth
    loaded = robot.with_payload(payload)
    tilted = loaded.with_gravity(TILTED).torque(truth.q, truth.v, truth.a)
    np.testing.assert_allclose(tilted, truth.tau, atol=1e-9)
    assert np.abs(loaded.torque(truth.q, truth.v, truth.a) - truth.tau).max() > 10
    np.testing.assert_array_equal(truth.gravity_base, TILTED)
    np.testing.assert_allclose(newton_euler(robot, truth), truth.wrench, atol=1e-9)


# --- wrench and pushes


def newton_euler(robot, truth):
    """The payload's wrench on the flange, from the flange's motion and a sum over the body."""
    motion = robot.frame_motion(truth.q, truth.v, truth.a)
    R = robot.forward_kinematics(truth.q)[:, :3, :3]
    g = np.einsum("nji,j->ni", R, truth.gravity_base)
    w, dw, c = motion.angular_velocity, motion.angular_acceleration, truth.payload.com
    at_com = motion.linear_acceleration + np.cross(dw, c) + np.cross(w, np.cross(w, c))
    force = truth.payload.mass * (at_com - g)
    I = truth.payload.inertia_com  # noqa: E741
    torque = dw @ I + np.cross(w, w @ I) + np.cross(c, force)
    return -np.column_stack([force, torque])


@pytest.mark.parametrize("name", ARMS)
def test_wrench_is_the_newton_euler_wrench_of_the_payload(name):
    robot, (_, made) = arm(name), smooth_run(name, True)
    expected = newton_euler(robot, made.truth)
    assert (np.abs(expected).max(axis=0) > 1e-3).sum() >= (3 if name == "planar2r" else 6)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(made.truth.wrench, expected, atol=1e-11 * scale)
    assert made.recording.wrench_convention == "load_on_sensor"
    assert made.recording.wrench_frame == robot.flange


def test_resting_load_presses_down():
    robot = arm("ur10")
    q = robot.home + np.array([0.3, 0.2, -0.4, 0.5, 0.6, 0.1])
    payload = load(robot)
    truth = simulate(robot, Rest(q), payload=payload, sensors=IDEAL).truth
    R = robot.forward_kinematics(truth.q[-1])[:3, :3]
    np.testing.assert_allclose(R @ truth.wrench[-1, :3], [0, 0, -9.81 * payload.mass], atol=1e-6)


def test_empty_arm_has_no_wrench():
    _, made = smooth_run("ur10", False)
    np.testing.assert_array_equal(made.truth.wrench, 0)
    zero = InertialParameters.nothing()
    robot = frictionless(arm("ur10"))
    again = simulate(robot, Sines(robot), payload=zero, sensors=IDEAL)
    np.testing.assert_array_equal(again.truth.tau, made.truth.tau)


def point_jacobian(robot, q, frame, point):
    """Velocity of a point for each joint, by central differences, (3, n)."""
    columns, h = [], 1e-6
    for e in np.eye(robot.n) * h:
        ahead, behind = (robot.forward_kinematics(q + s * e, frame) for s in (1, -1))
        columns.append((ahead - behind)[:3] @ np.append(point, 1) / (2 * h))
    return np.column_stack(columns)


@pytest.mark.parametrize(
    ("name", "frame"), [("ur10", "link3"), ("lwr4", "link5"), ("panda", "flange")]
)
def test_push_is_the_transposed_jacobian_times_the_force(name, frame):
    robot = frictionless(arm(name))
    payload = load(robot)
    force, point = np.array([20.0, -35.0, 15.0]), np.array([0.05, -0.12, 0.08])
    push = Push(0.4, 0.3, frame, force, point)
    truth = simulate(robot, Sines(robot), payload=payload, sensors=IDEAL, pushes=[push]).truth
    acting = (truth.t > 0.3999) & (truth.t < 0.6999)
    assert 36 <= acting.sum() <= 38
    expected = [point_jacobian(robot, q, frame, point).T @ force for q in truth.q[acting]]
    np.testing.assert_allclose(truth.external[acting], expected, atol=1e-6)
    np.testing.assert_array_equal(truth.external[~acting], 0)
    needed = robot.with_payload(payload).torque(truth.q, truth.v, truth.a)
    np.testing.assert_allclose(truth.tau + truth.external, needed, atol=1e-9)
    np.testing.assert_allclose(
        truth.tau_link + truth.external, needed - rotors(robot, truth), atol=1e-9
    )


def rotors(robot, truth):
    return robot.drive.rotor_inertia * truth.a


def test_wrist_sensor_feels_pushes_on_the_load_only():
    robot = frictionless(arm("ur10"))
    force, point = np.array([8.0, -5.0, 6.0]), np.array([0.02, 0.03, 0.15])
    pushes = [Push(0.2, 0.2, "flange", force, point), Push(0.6, 0.2, "link4", 3 * force, point)]
    truth = simulate(robot, Sines(robot), payload=load(robot), sensors=IDEAL, pushes=pushes).truth
    extra = truth.wrench - newton_euler(robot, truth)
    acting = (truth.t > 0.1999) & (truth.t < 0.3999)
    R = robot.forward_kinematics(truth.q[acting])[:, :3, :3]
    f = np.einsum("nji,j->ni", R, force)
    np.testing.assert_allclose(extra[acting], np.column_stack([f, np.cross(point, f)]), atol=1e-9)
    np.testing.assert_allclose(extra[~acting], 0, atol=1e-9)
    assert np.abs(truth.external[(truth.t > 0.6) & (truth.t < 0.8)]).max() > 1


def test_pushes_add_up():
    robot = frictionless(arm("planar2r"))
    one, two = (
        Push(0.1, 0.3, "link2", np.array(f), np.array([-0.1, 0.05, 0]))
        for f in ([3, 4, 0], [-1, 9, 0])
    )
    both = Push(0.1, 0.3, "link2", one.force_world + two.force_world, one.point)
    runs = [
        simulate(robot, Sines(robot), sensors=IDEAL, pushes=p).truth for p in ([one, two], [both])
    ]
    assert np.abs(runs[0].external).max() > 1
    np.testing.assert_allclose(runs[0].tau, runs[1].tau, atol=1e-9)


# --- sticking, energy, time


def test_arm_without_a_controller_sticks_until_the_push_exceeds_friction():
    table = DHTable.from_rows([[0, 0, 0, 0]])
    body = InertialParameters.from_com(2.0, [0.3, 0, 0], np.diag([0.01, 0.02, 0.025]), "link1")
    robot = RobotModel.from_dh(
        table, links=[body], drive=DriveModel(np.array([0.1]), np.array([2.0]))
    )
    weak, strong = (
        Push(0.1, 0.5, "link1", np.array([0, f, 0.0]), np.array([0.5, 0, 0])) for f in (3.98, 4.2)
    )
    free = SimulationOptions(bandwidth_hz=1e-3)
    stays = simulate(robot, Rest([0.3], 0.8), sensors=IDEAL, pushes=[weak], options=free).truth
    goes = simulate(robot, Rest([0.3], 0.8), sensors=IDEAL, pushes=[strong], options=free).truth
    assert np.abs(stays.q - 0.3).max() < 1e-12
    pushed = np.abs(stays.external[:, 0]) > 0
    np.testing.assert_allclose(stays.friction[pushed], stays.external[pushed], rtol=1e-9)
    assert pushed.any()
    inertia = 0.1 + body.inertia[2, 2]
    k = np.argmin(np.abs(goes.t - 0.56))
    lever = 0.5 * 4.2 * np.cos(0.3)
    assert goes.v[k, 0] == pytest.approx((lever - 2.0) / inertia * 0.46, rel=0.1)
    assert np.abs(goes.v[-1]).max() < 1e-12


def test_work_of_the_drives_becomes_energy_and_heat():
    model, made = rough_run("ur10e")
    truth = made.truth
    instants = np.arange(0, len(truth), 250)
    energy = np.array([_energy(model, truth, k) for k in instants])
    given, taken = (_work(force, truth)[instants] for force in (truth.tau, truth.friction))
    assert np.ptp(energy) > 10
    assert taken[-1] > 5
    np.testing.assert_allclose(energy - energy[0], given - taken, atol=1e-3 * taken[-1])


def _work(force, truth):
    power = (force * truth.v).sum(axis=1)
    return np.concatenate([[0], np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(truth.t))])


def _energy(model, truth, k):
    kinetic = truth.v[k] @ _inertia(model, truth.q[k]) @ truth.v[k] / 2
    heights = [
        body.mass * model.gravity_base @ (T[:3, :3] @ body.com + T[:3, 3])
        for body in model.links
        for T in [model.forward_kinematics(truth.q[k], body.frame)]
    ]
    return kinetic - sum(heights)


def test_velocity_and_acceleration_belong_to_the_instant_of_the_position():
    # Second order in the step: the error is far below that of half a step of delay, h/2 a.
    robot = frictionless(arm("ur10"))
    truth = simulate(robot, Sines(robot), payload=load(robot), sensors=IDEAL, rate_hz=1000).truth
    h = truth.t[1]
    middle = slice(300, -1)
    v = (truth.q[2:] - truth.q[:-2])[300:] / (2 * h)
    a = (truth.q[2:] - 2 * truth.q[1:-1] + truth.q[:-2])[300:] / h**2
    late = h / 2 * np.abs(truth.a[middle]).max()
    assert np.abs(v - truth.v[1:][300:-1]).max() < 0.02 * late
    np.testing.assert_allclose(a, truth.a[1:][300:-1], atol=1e-6)


def test_shorter_steps_change_little():
    robot = arm("ur10")
    runs = [
        simulate(robot, Sines(robot), sensors=IDEAL, options=SimulationOptions(step_s=h)).truth
        for h in (0.001, 0.0005)
    ]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-4
    assert np.abs(runs[0].tau - runs[1].tau).mean() < 0.05


# --- noise


def test_noise_has_the_wanted_size_and_depends_on_the_seed_only():
    robot = arm("ur10")
    std = np.linspace(0.1, 0.6, 6)
    sensors = SensorModel(
        torque_std=std, wrench_std=np.arange(1, 7) / 10, wrench_drift=np.arange(6)
    )
    runs = [
        simulate(robot, Sines(robot), payload=load(robot), sensors=sensors, rate_hz=1000, seed=seed)
        for seed in (7, 7, 8)
    ]
    for channel in runs[0].recording.channels:
        first, same, other = (getattr(run.recording, channel) for run in runs)
        assert first.tobytes() == same.tobytes()
        assert (first.tobytes() == other.tobytes()) != (channel in ("tau", "current", "wrench"))
    noise = runs[0].recording.tau - runs[0].truth.tau
    np.testing.assert_allclose(noise.std(axis=0), std, rtol=0.08)
    wrench_error = runs[0].recording.wrench - runs[0].truth.wrench
    np.testing.assert_allclose(wrench_error.std(axis=0), sensors.wrench_std, rtol=0.08)
    np.testing.assert_allclose(wrench_error.mean(axis=0), sensors.wrench_drift, atol=0.06)
    np.testing.assert_allclose(runs[0].recording.current * robot.drive.gain, runs[0].recording.tau)


def test_correlated_noise_forgets_with_its_time():
    robot = arm("planar2r")
    sensors = SensorModel(torque_std=0.5, torque_correlation_s=0.02)
    run = simulate(robot, Sines(robot, duration_s=8.0), sensors=sensors, rate_hz=500)
    noise = run.recording.tau - run.truth.tau
    np.testing.assert_allclose(noise.std(axis=0), 0.5, rtol=0.1)
    for rows in (1, 5, 10):
        correlation = (noise[rows:] * noise[:-rows]).mean(axis=0) / noise.var(axis=0)
        np.testing.assert_allclose(correlation, np.exp(-rows * 0.002 / 0.02), atol=0.08)


def test_encoders_round_and_velocities_are_their_differences():
    robot = arm("ur10")
    step = 2e-4
    sensors = SensorModel(encoder_step=step, velocity_window_s=0.004)
    run = simulate(robot, Sines(robot), sensors=sensors, rate_hz=250)
    q, v, truth = run.recording.q, run.recording.v, run.truth
    np.testing.assert_allclose(q / step, np.round(q / step), atol=1e-6)
    assert (q - truth.q).std() == pytest.approx(step / np.sqrt(12), rel=0.1)
    np.testing.assert_allclose(v[1:], np.diff(q, axis=0) / 0.004, atol=1e-9)
    assert (v - truth.v).std() == pytest.approx(step / np.sqrt(6) / 0.004, rel=0.3)
    assert np.abs(v[0] - truth.v[0]).max() < 1.01 * step / 0.004


def test_torque_sensor_behind_the_gear_knows_no_friction():
    robot = arm("lwr4")
    run = simulate(robot, Sines(robot), payload=load(robot), sensors=SensorModel.ideal("link"))
    truth = run.truth
    rigid = robot.with_payload(load(robot)).inverse_dynamics(truth.q, truth.v, truth.a)
    np.testing.assert_allclose(run.recording.tau, rigid, atol=1e-9)
    assert np.abs(truth.tau - rigid).max() > 5


def test_torque_has_no_saw_tooth_of_the_mass_matrix():
    """Rows at 100 Hz would see jumps of the torque every 10 ms as a constant torque."""
    robot = load_robot("planar2r")
    body = InertialParameters.from_com(1.5, [0.1, 0.0, 0.0], np.diag([0.01] * 3), robot.flange)
    made = simulate(robot, Sines(robot), payload=body, rate_hz=1000.0)
    bends = np.abs(np.diff(made.truth.tau, n=2, axis=0)).max(axis=1)[200:]
    bends_by_phase = [np.mean(bends[phase::10]) for phase in range(10)]
    assert max(bends_by_phase) < 1.1 * np.median(bends_by_phase)  # 11 where the matrix is held
