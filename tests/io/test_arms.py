"""Whole identified arms for simulators: the same torque there, and what their files cannot hold."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from steelyard._saved import load
from steelyard.errors import InvalidRobot, UnknownName
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.io._arms import arm_for_export
from steelyard.io._mjcf import mjcf_text
from steelyard.recording import Samples
from steelyard.robot import DriveModel, RobotModel, load_robot
from steelyard.trajectory import FourierTrajectory

INERTIA = np.array([[0.02, 0.003, -0.001], [0.003, 0.015, 0.002], [-0.001, 0.002, 0.012]])
BODY = InertialParameters.from_com(2.5, [0.01, -0.02, 0.06], INERTIA)
UNPHYSICAL = InertialParameters.from_com(2.0, [0.01, 0.0, 0.05], np.diag([0.01, 0.01, 0.05]))


def linear(robot, **changes):
    drive = DriveModel(
        robot.drive.rotor_inertia,
        np.linspace(8, 3, robot.n),
        np.linspace(9, 2, robot.n),
        np.linspace(-0.3, 0.4, robot.n),
    )
    return robot.with_drive(replace(drive, **changes))


def samples(robot, noise=1e-3):
    q, v, a = FourierTrajectory.load("xu2024").at(np.arange(0, 10, 0.02))
    tau = robot.torque(q, v, a) + noise * np.random.default_rng(3).normal(size=q.shape)
    return Samples(q, v, a, tau, 50.0, robot.joint_names, "measured", made_by=("made up",))


@pytest.fixture(scope="module")
def model():
    robot = linear(load_robot("ur10"))
    return identify(robot, samples(robot), friction="linear")


@pytest.fixture(scope="module")
def arm(model):
    return arm_for_export(model)


def inverse(text, q, v, a):
    model = mujoco.MjModel.from_xml_string(text)
    data, tau = mujoco.MjData(model), []
    for data.qpos[:], data.qvel[:], data.qacc[:] in zip(q, v, a, strict=True):
        mujoco.mj_inverse(model, data)
        tau.append(data.qfrc_inverse.copy())
    return np.array(tau)


def motion(robot, rng, rows=15):
    q, v, a = 0.8 * rng.normal(size=(3, rows, robot.n))
    return q, v + 0.3 * np.sign(v), a


def test_mujoco_finds_the_torque_of_the_identified_arm(model, arm, rng):
    q, v, a = motion(model.robot, rng)
    tau = inverse(arm.text("mjcf"), q, v, a)
    offsets = np.array([joint["offset"] for joint in arm.drives["joints"].values()])
    exact = arm.robot.torque(q, v, a)
    np.testing.assert_allclose(tau + offsets, exact, rtol=0, atol=1e-9 * np.abs(exact).max())
    identified = model.torque(q, v, a)
    np.testing.assert_allclose(
        tau + offsets, identified, rtol=0, atol=2e-3 * np.abs(identified).max()
    )


def test_mujoco_ros2_control_finds_a_motor_for_each_joint(model, arm, rng):
    """The effort of a controller goes to the actuator with the joint's name."""
    found = mujoco.MjModel.from_xml_string(arm.text("mujoco-ros2"))
    names = [found.actuator(k).name for k in range(found.nu)]
    assert names == list(model.robot.joint_names)
    most = model.robot.limits.tau_max
    np.testing.assert_allclose(found.actuator_ctrlrange, np.column_stack([-most, most]))
    q, v, a = motion(model.robot, rng)
    data = mujoco.MjData(found)
    efforts = np.clip(inverse(arm.text("mjcf"), q, v, a), -most, most)
    for data.qpos[:], data.qvel[:], data.ctrl[:] in zip(q, v, efforts, strict=True):
        mujoco.mj_forward(found, data)
        np.testing.assert_allclose(data.qfrc_actuator, data.ctrl, atol=1e-9)


def test_the_urdf_of_the_arm_and_what_stands_beside_it(model, arm, rng, tmp_path):
    q, v, a = motion(model.robot, rng)
    text = arm.text("urdf")
    again = RobotModel.from_urdf_text(text)
    rigid = arm.robot.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(
        again.inverse_dynamics(q, v, a), rigid, rtol=0, atol=1e-9 * np.abs(rigid).max()
    )
    dynamics = [
        joint.find("dynamics") for joint in ET.fromstring(text).findall("joint[@type='revolute']")
    ]
    truth = model.robot.drive
    assert [float(d.get("damping")) for d in dynamics] == pytest.approx(truth.viscous, abs=0.01)
    assert [float(d.get("friction")) for d in dynamics] == pytest.approx(truth.coulomb, abs=0.01)
    joints = list(arm.drives["joints"].values())
    np.testing.assert_allclose([j["offset"] for j in joints], truth.offset, atol=0.01)
    rotors = np.array([j["rotor_inertia"] for j in joints])
    moved = again.inverse_dynamics(q, v, a) + rotors * a
    friction = truth.coulomb * np.sign(v) + truth.viscous * v + truth.offset
    identified = model.torque(q, v, a)
    np.testing.assert_allclose(
        moved + friction, identified, rtol=0, atol=2e-3 * np.abs(identified).max()
    )
    beside = arm.write(tmp_path / "arm.urdf", "urdf")
    assert (tmp_path / "arm.urdf").read_text() == text
    assert load(beside, "drives") == arm.drives
    assert "Identified: all " in text
    assert "FORCED" not in text


def test_curved_friction_becomes_the_nearest_line_and_stays_whole_beside():
    robot = linear(load_robot("ur10"), exponent=np.full(6, 0.6))
    model = identify(robot, samples(robot))  # the shapes of the robot
    arm = arm_for_export(model)
    assert "nearest straight line up to the speeds" in arm.text("mjcf")
    for j, joint in enumerate(arm.drives["joints"].values()):
        assert joint["exponent"] == 0.6
        assert joint["viscous"] == pytest.approx(robot.drive.viscous[j], abs=0.02)
        v = np.linspace(0, joint["friction_in_file_fitted_up_to"], 400)[1:]
        law = joint["coulomb"] + joint["viscous"] * v**0.6
        slope, start = np.polyfit(v, law, 1)
        assert joint["damping_in_file"] == pytest.approx(slope, rel=0.02)
        assert joint["friction_in_file"] == pytest.approx(start, rel=0.02)
        assert arm.robot.drive.viscous[j] == joint["damping_in_file"]


def test_extra_friction_stands_beside(model):
    robot = linear(load_robot("ur10"), load_coulomb=np.full(6, 0.05))
    arm = arm_for_export(identify(robot, samples(robot, 0.05), friction="load"))
    shares = [joint["load_coulomb"] for joint in arm.drives["joints"].values()]
    assert shares[:3] == pytest.approx([0.05] * 3, abs=0.02)
    assert arm.drives["direction"] == "smooth"
    text = arm.text("urdf")
    assert "Left out: friction that grows with the carried torque" in text
    assert "Left out: friction at reversals ('smooth')" in text


def test_friction_that_differs_by_direction_stands_beside():
    robot = linear(load_robot("ur10"), asymmetry=np.linspace(-2.0, 3.0, 6))
    arm = arm_for_export(identify(robot, samples(robot, 0.05), friction="linear-asymmetric"))
    joints = arm.drives["joints"].values()
    assert [joint["asymmetry"] for joint in joints] == pytest.approx(
        robot.drive.asymmetry, abs=0.05
    )
    damping = [joint["damping_in_file"] for joint in joints]
    assert damping == pytest.approx(robot.drive.viscous, abs=0.05)
    assert "Left out: friction that differs by direction" in arm.text("urdf")


def test_the_arm_may_carry_a_payload(model, arm, rng):
    q, v, a = motion(model.robot, rng)
    loaded = arm_for_export(model, payload=BODY)
    more = loaded.robot.torque(q, v, a) - arm.robot.torque(q, v, a)
    expected = model.robot.with_payload(BODY).torque(q, v, a) - model.robot.torque(q, v, a)
    np.testing.assert_allclose(more, expected, rtol=0, atol=1e-9)
    assert "carries a payload of 2.5 kg, merged into it" in loaded.text("mjcf")
    with pytest.raises(InvalidRobot, match=r"the payload is not physical: .*triangle"):
        arm_for_export(model, payload=UNPHYSICAL)


def test_arms_go_to_known_formats_and_doubts_are_reported(model, arm):
    known = "an arm can be exported to urdf, mjcf, mujoco-ros2, not to 'ur'"
    with pytest.raises(UnknownName, match=known):
        arm.text("ur")
    q, v, a = FourierTrajectory.load("xu2024").at(np.arange(0, 10, 0.02))
    q, v, a = (np.where(np.arange(6) == 5, 0.0, signal) for signal in (q, v, a))
    still = Samples(q, v, a, model.robot.torque(q, v, a), 50.0, model.robot.joint_names, "measured")
    doubtful = arm_for_export(identify(model.robot, still, friction="linear"))
    assert "the motion says nothing about" in doubtful.verdict.blocking[0].words
    with pytest.raises(
        InvalidRobot, match=r"not exported: the motion says nothing about .*, or give `force=True`"
    ):
        doubtful.text("urdf")
    assert "FORCED in spite of a doubt: the motion says nothing" in doubtful.text(
        "urdf", force=True
    )


def test_coupled_drives_become_tendons(rng):
    C = np.eye(6)
    C[5, 4] = 0.8
    robot = linear(load_robot("ur10e"), coupling=C, offset=np.zeros(6))
    q, v, a = motion(robot, rng, rows=40)
    slides = (np.abs(v @ C.T) > 0.3).all(axis=1)  # MuJoCo's friction is soft where a drive creeps
    q, v, a = q[slides], v[slides], a[slides]
    assert len(q) > 9
    tau = robot.torque(q, v, a)
    np.testing.assert_allclose(
        inverse(mjcf_text(robot), q, v, a), tau, rtol=0, atol=1e-9 * np.abs(tau).max()
    )


def test_sliding_joints_and_limits_in_mjcf(tiny, rng):
    robot = RobotModel.from_urdf_text(tiny["prismatic"])
    text = mjcf_text(robot)
    q, v, a = motion(robot, rng)
    tau = robot.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(inverse(text, q, v, a), tau, rtol=0, atol=1e-10 * np.abs(tau).max())
    joint = ET.fromstring(text).find(".//joint[@name='shoulder']")
    assert (joint.get("type"), joint.get("range")) == ("slide", "-2.5 2.5")
    assert joint.get("actuatorfrcrange") == "-150.0 150.0"
    half_open = replace(robot.limits, q_max=np.array([np.inf, 2.5, 2.5]))
    text = mjcf_text(replace(robot, limits=half_open))
    assert "not in MJCF: the one limit of shoulder, -2.5 inf" in text


def test_what_mjcf_cannot_hold_stands_in_comments():
    drive = replace(
        load_robot("ur10").drive,
        load_coulomb=np.full(6, 0.03),
        stribeck=np.full(6, 1.5),
        asymmetry=np.full(6, -0.7),
        sign_width=0.01,
    )
    text = mjcf_text(load_robot("ur10").with_drive(drive))
    for words in (
        "gains of the drives [Nm/A] 14.73",
        "offsets B [Nm] -0.3426",
        "load-dependent friction [Nm/Nm] 0.03",
        "Stribeck friction Fs [Nm] 1.5",
        "differences of friction by direction Fa [Nm s/rad] -0.7",
        "exponents alpha of viscous friction 0.5758",
        "joints whose exponent is not 1 have no damping here",
        "Coulomb friction is Fc tanh(v / 0.01 rad/s)",
        "MuJoCo has no negative friction; negative values are written as 0: Fc",
    ):
        assert words in text, words


def test_mjcf_refuses_what_mujoco_cannot_move():
    robot = load_robot("ur10e")
    with pytest.raises(
        InvalidRobot, match="is not physical, which MuJoCo refuses: the mass is 0 kg"
    ):
        mjcf_text(robot.with_links([InertialParameters.nothing(name) for name in robot.link_names]))
    with pytest.raises(
        InvalidRobot, match="ur10e has negative rotor inertia, which MuJoCo refuses"
    ):
        mjcf_text(robot.with_drive(replace(robot.drive, rotor_inertia=-np.ones(6))))
