"""What an export says in its comments, what it refuses, and what only force lets through; whole arms too."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from steelyard.errors import InvalidInertia, InvalidRobot, UnknownName, UnreadableFile
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.io.export import EXPORTS, ErrorLimits, arm_for_export, export_arm, export_payload
from steelyard.io.mjcf import mjcf_text, write_mjcf
from steelyard.payload import Payload
from steelyard.recording import Samples
from steelyard.robot import DriveModel, RobotModel, load_robot
from steelyard.trajectory import load_trajectory
from steelyard.verdict import Doubt, DoubtKind, Verdict
from steelyard.wrist.payload import WrenchPayload

GOOD = Verdict("all ten parameters were excited, and a real body can have them")
FAR = Verdict(doubts=(Doubt(DoubtKind.NOT_PHYSICAL, "far"),))
NOT_EXCITED = Verdict(doubts=(Doubt(DoubtKind.NOT_EXCITED, "the motion says nothing about Izz"),))
INERTIA = np.array([[0.02, 0.003, -0.001], [0.003, 0.015, 0.002], [-0.001, 0.002, 0.012]])
BODY = InertialParameters.from_com(2.5, [0.01, -0.02, 0.06], INERTIA)
STD = np.array([0.01, 1e-3, 2e-3, 1e-3, *[1e-3] * 6])


def payload(body=BODY, std=STD, verdict=GOOD):
    return Payload(body, body, np.diag(np.square(std)), np.ones(6), verdict)


def sensed(T=None, inertia=INERTIA, **changes):
    body = InertialParameters.from_com(2.5, [0.01, -0.02, 0.06], inertia, "sensor")
    spread = np.zeros((18, 18))
    spread[:10, :10] = np.diag(STD**2)
    fields = {
        "drift": [4.0, -2.0, 6.0, 0.2, -0.3, 0.1],
        "inclination": np.zeros(2),
        "nominal_gravity": [0, 0, -9.81],
        "full_covariance": spread,
        "noise": np.ones(6),
        "trend": np.zeros(6),
        "trend_std": np.zeros(6),
        "T_flange_sensor": np.eye(4) if T is None else T,
        "verdict": GOOD,
    }
    return WrenchPayload(body, body, **(fields | changes))


def point():
    """What postures at rest tell: mass and centre of mass, nothing of the inertia."""
    spread = np.zeros((18, 18))
    spread[:4, :4] = np.diag(STD[:4] ** 2)
    spread[range(4, 10), range(4, 10)] = np.inf
    words = "postures at rest say nothing about the inertia"
    verdict = Verdict("8 postures", (Doubt(DoubtKind.NOT_EXCITED, words, blocks=False),))
    return sensed(inertia=np.zeros((3, 3)), full_covariance=spread, verdict=verdict)


@pytest.mark.parametrize("to", EXPORTS)
def test_comments_tell_frame_units_uncertainty_and_status(to):
    text = export_payload(payload(), to=to, force=to == "ft-yaml")
    for words in (
        "frame of the target, taken to be the frame 'flange' that the payload was weighed in",
        "Units: kg; ",
        "mass 2.5 +- 0.02 kg",
        "centre of mass +- 1.6 mm in its worst direction",
        "Ixx 0.02 +- 0.002",
        "a gripper that was mounted then is not in it",
        f"Status: {GOOD.sentence}.",
    ):
        assert words in text, words
    assert ("FORCED" in text) == (to == "ft-yaml")
    assert ("could not be checked against a manual" in text) == (to in ("kuka", "fanuc"))
    assert text.isascii()
    assert text.endswith("\n")


def test_the_pose_of_the_frame_is_told():
    T, turn = np.eye(4), np.pi / 2
    T[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]  # not quite zeros
    T[:3, 3] = [-1e-17, 0.0, 0.03]
    text = export_payload(payload(), to="ur", T_target_payload=T)
    assert "weighed in sits there at (0 0 0.03) m with the axes (rows) [0 -1 0; 1 0 0; 0 0 1]" in text
    assert "set_target_payload(2.5, [0.02, 0.01, 0.09]," in text


def test_names_and_numbers_stand_in_the_file():
    assert "PERS loaddata box_3 := [2.5,[10.0,-20.0,60.0]," in export_payload(
        payload(), to="abb", name="box_3"
    )
    assert "LOAD_DATA[7]={M 2.5," in export_payload(payload(), to="kuka", number=7)
    assert "SCHEDULE No [4]" in export_payload(payload(), to="fanuc", number=4)
    assert json.loads(export_payload(payload(), to="franka", name="cup"))["name"] == "cup"
    with pytest.raises(UnknownName, match="name is letters, digits and underscores, got 'a box'"):
        export_payload(payload(), to="abb", name="a box")
    with pytest.raises(UnknownName, match="begins with a letter and has at most 32 characters, got '_x'"):
        export_payload(payload(), to="abb", name="_x")
    with pytest.raises(UnknownName, match="payloads are counted from 1, got 0"):
        export_payload(payload(), to="kuka", number=0)


def test_unknown_targets_are_refused_with_those_there_are():
    with pytest.raises(UnknownName, match="not exported to 'yaskawa'; there are ur, ur-ros2, franka, "):
        export_payload(payload(), to="yaskawa")


UNPHYSICAL = InertialParameters.from_com(2.0, [0.01, 0.0, 0.05], np.diag([0.01, 0.01, 0.05]))
DOUBTFUL = {
    "break the triangle inequality": payload(UNPHYSICAL),
    "the estimate itself says: do not use this: far": payload(verdict=FAR),
    "do not use this: the motion says nothing about Izz": payload(verdict=NOT_EXCITED),
    "said nothing about some of the ten numbers": payload(std=[*STD[:9], np.inf]),
    "the mass is known to +- 11.8 % (95 %), more than 10 % allowed": payload(std=[0.15, *STD[1:]]),
    "the centre of mass is known to +- 23.5 mm (95 %), more than 20 mm": payload(std=[0.0, 0.03, *STD[2:]]),
    "+- inf %": payload(std=[np.inf, *STD[1:]]),
}


@pytest.mark.parametrize("words", DOUBTFUL)
def test_doubtful_payloads_need_force_and_the_text_says_so(words):
    with pytest.raises(InvalidInertia) as refused:
        export_payload(DOUBTFUL[words], to="ur")
    assert str(refused.value).startswith("not exported: ")
    assert words in str(refused.value)
    text = export_payload(DOUBTFUL[words], to="ur", force=True)
    assert "FORCED in spite of a doubt: " in text.splitlines()[1]
    assert words in text


def test_an_inertia_that_is_hardly_known_is_exported_with_a_word():
    assert "hardly known" not in export_payload(payload(), to="abb")
    vague = payload(std=[*STD[:4], *[0.02] * 6])
    assert "It is hardly known: the largest half-width is larger" in export_payload(vague, to="abb")


def test_limits_may_be_set():
    export_payload(payload(std=[0.15, *STD[1:]]), to="ur", limits=ErrorLimits(mass=0.12))
    with pytest.raises(InvalidInertia, match=r"\+- 1.58 mm \(95 %\), more than 1 mm allowed"):
        export_payload(payload(), to="ur", limits=ErrorLimits(com=0.001))
    with pytest.raises(
        InvalidInertia, match=r"largest errors must be positive, got 0 of the mass and 0.02 m"
    ):
        ErrorLimits(mass=0.0)


@pytest.mark.parametrize("to", EXPORTS)
def test_nothing_negative_ever_leaves(to):
    light = InertialParameters.from_vector(-BODY.vector)
    with pytest.raises(InvalidInertia, match=r"no controller takes this payload: the mass is -2.5 kg"):
        export_payload(payload(light), to=to, force=True)
    if EXPORTS[to].inertia:
        hollow = InertialParameters.from_com(2.0, [0.01, 0.0, 0.05], np.diag([-0.002, 0.01, 0.011]))
        with pytest.raises(
            InvalidInertia, match=r"negative moment of inertia, -0.002 kg m\^2 .* force or not"
        ):
            export_payload(payload(hollow), to=to, force=True)


def test_the_controller_of_universal_robots_takes_133():
    huge = InertialParameters.from_com(900.0, [0, 0, 0.1], np.diag([140.0, 130.0, 120.0]))
    for to in ("ur", "ur-ros2"):
        with pytest.raises(
            InvalidInertia, match=r"a component of 140 kg m\^2; the controller takes at most 133"
        ):
            export_payload(payload(huge), to=to)
    assert "140.0" in export_payload(payload(huge), to="abb")


def test_a_wrist_sensor_must_be_placed():
    with pytest.raises(
        InvalidInertia, match="weighed in the frame of a wrist sensor: say where the sensor sits"
    ):
        export_payload(sensed(), to="ur")
    T = np.eye(4)
    T[2, 3] = 0.04
    text = export_payload(sensed(T), to="ur", T_target_payload=T)
    assert "[0.01, -0.02, 0.1]" in text
    assert "what hangs on the wrist sensor; the sensor itself is not in it" in text


def test_force_torque_tools_get_the_zero_drift_in_the_sensor_frame():
    text = export_payload(sensed(), to="ft-yaml")
    assert "bias: [4.0, -2.0, 6.0, 0.2, -0.3, 0.1]\n" in text
    assert "gripper_com_frame_id: sensor\n" in text
    assert "negate all six where the driver shows the reverse" in text
    T = np.diag([-1.0, -1.0, 1.0, 1.0])
    with pytest.raises(InvalidInertia, match="zero drift of the sensor was not measured in this frame"):
        export_payload(sensed(), to="ft-yaml", T_target_payload=T)
    with pytest.raises(InvalidInertia, match="zero drift of the sensor was not measured"):
        export_payload(payload(), to="ft-yaml")


def test_mass_and_centre_alone_are_enough_where_no_inertia_is_asked_for():
    T = np.eye(4)
    T[:3, 3] = [0.1, 0.2, 0.3]
    assert "SetPayload(2.5,110.0,180.0,360.0)" in export_payload(point(), to="mecademic", T_target_payload=T)
    assert "gripper_mass: 2.5" in export_payload(point(), to="ft-yaml")
    with pytest.raises(InvalidInertia, match="they were not measured"):
        export_payload(point(), to="abb", T_target_payload=T)
    text = export_payload(point(), to="abb", T_target_payload=T, force=True)
    assert "[1.0,0.0,0.0,0.0],0.0,0.0,0.0];" in text
    assert "The inertia was not measured." in text
    text = export_payload(point(), to="mjcf", T_target_payload=T, force=True)
    assert mujoco.MjModel.from_xml_string(text).body_mass[1] == 2.5


# --- whole arms -------------------------------------------------------------------------------------------


def linear(robot, **changes):
    drive = DriveModel(
        robot.drive.rotor_inertia,
        np.linspace(8, 3, robot.n),
        np.linspace(9, 2, robot.n),
        np.linspace(-0.3, 0.4, robot.n),
    )
    return robot.with_drive(replace(drive, **changes))


def samples(robot, noise=1e-3):
    q, v, a = load_trajectory("xu2024").at(np.arange(0, 10, 0.02))
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
    tau = inverse(export_arm(arm, "mjcf"), q, v, a)
    offsets = np.array([joint["offset"] for joint in arm.drives["joints"].values()])
    exact = arm.robot.torque(q, v, a)
    np.testing.assert_allclose(tau + offsets, exact, rtol=0, atol=1e-9 * np.abs(exact).max())
    identified = model.torque(q, v, a)
    np.testing.assert_allclose(tau + offsets, identified, rtol=0, atol=2e-3 * np.abs(identified).max())


def test_the_urdf_of_the_arm_and_what_stands_beside_it(model, arm, rng):
    q, v, a = motion(model.robot, rng)
    text = export_arm(arm, "urdf")
    again = RobotModel.from_urdf_text(text)
    rigid = arm.robot.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(
        again.inverse_dynamics(q, v, a), rigid, rtol=0, atol=1e-9 * np.abs(rigid).max()
    )
    dynamics = [joint.find("dynamics") for joint in ET.fromstring(text).findall("joint[@type='revolute']")]
    truth = model.robot.drive
    assert [float(d.get("damping")) for d in dynamics] == pytest.approx(truth.viscous, abs=0.01)
    assert [float(d.get("friction")) for d in dynamics] == pytest.approx(truth.coulomb, abs=0.01)
    joints = list(arm.drives["joints"].values())
    np.testing.assert_allclose([j["offset"] for j in joints], truth.offset, atol=0.01)
    rotors = np.array([j["rotor_inertia"] for j in joints])
    moved = again.inverse_dynamics(q, v, a) + rotors * a
    friction = truth.coulomb * np.sign(v) + truth.viscous * v + truth.offset
    identified = model.torque(q, v, a)
    np.testing.assert_allclose(moved + friction, identified, rtol=0, atol=2e-3 * np.abs(identified).max())
    assert json.loads(json.dumps(arm.drives, allow_nan=False))["steelyard"] == "drives"
    assert "Identified: all " in text
    assert "FORCED" not in text


def test_curved_friction_becomes_the_nearest_line_and_stays_whole_beside():
    robot = linear(load_robot("ur10"), exponent=np.full(6, 0.6))
    model = identify(robot, samples(robot))  # the shapes of the robot
    arm = arm_for_export(model)
    assert "nearest to it up to the speeds" in export_arm(arm, "mjcf")
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
    text = export_arm(arm, "urdf")
    assert "Left out: friction that grows with the carried torque" in text
    assert "Left out: how friction turns round ('smooth')" in text


def test_the_arm_may_carry_a_payload(model, arm, rng):
    q, v, a = motion(model.robot, rng)
    loaded = arm_for_export(model, payload=BODY)
    more = loaded.robot.torque(q, v, a) - arm.robot.torque(q, v, a)
    expected = model.robot.with_payload(BODY).torque(q, v, a) - model.robot.torque(q, v, a)
    np.testing.assert_allclose(more, expected, rtol=0, atol=1e-9)
    assert "carries a payload of 2.5 kg, merged into it" in export_arm(loaded, "mjcf")
    with pytest.raises(InvalidRobot, match=r"the payload is no real body: .*triangle"):
        arm_for_export(model, payload=UNPHYSICAL)


def test_arms_go_to_two_places_and_doubts_are_told(model, arm):
    with pytest.raises(UnknownName, match="a model of an arm is exported to urdf or mjcf, not to 'ur'"):
        export_arm(arm, "ur")
    q, v, a = load_trajectory("xu2024").at(np.arange(0, 10, 0.02))
    q, v, a = (np.where(np.arange(6) == 5, 0.0, signal) for signal in (q, v, a))
    still = Samples(q, v, a, model.robot.torque(q, v, a), 50.0, model.robot.joint_names, "measured")
    doubtful = arm_for_export(identify(model.robot, still, friction="linear"))
    assert "the motion says nothing about" in doubtful.doubts[0]
    assert "FORCED in spite of a doubt: the motion says nothing" in export_arm(doubtful, "urdf", forced=True)


def test_coupled_drives_become_tendons(rng):
    C = np.eye(6)
    C[5, 4] = 0.8
    robot = linear(load_robot("ur10e"), coupling=C, offset=np.zeros(6))
    q, v, a = motion(robot, rng, rows=40)
    slides = (np.abs(v @ C.T) > 0.3).all(axis=1)  # MuJoCo's friction is soft where a drive creeps
    q, v, a = q[slides], v[slides], a[slides]
    assert len(q) > 9
    tau = robot.torque(q, v, a)
    np.testing.assert_allclose(inverse(mjcf_text(robot), q, v, a), tau, rtol=0, atol=1e-9 * np.abs(tau).max())


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
    assert "not held by MJCF: the one limit of shoulder, -2.5 inf" in text


def test_what_mjcf_cannot_hold_is_told(tmp_path):
    drive = replace(
        load_robot("ur10").drive, load_coulomb=np.full(6, 0.03), stribeck=np.full(6, 1.5), sign_width=0.01
    )
    text = mjcf_text(load_robot("ur10").with_drive(drive))
    for words in (
        "gains of the drives [Nm/A] 14.73",
        "offsets B [Nm] -0.3426",
        "load-dependent friction [Nm/Nm] 0.03",
        "Stribeck friction Fs [Nm] 1.5",
        "exponents alpha of viscous friction 0.5758",
        "joints whose exponent is not 1 have no damping here",
        "Coulomb friction is Fc tanh(v / 0.01 rad/s)",
        "MuJoCo has no negative friction; 0 stands for what is below it in Fc",
    ):
        assert words in text, words
    path = tmp_path / "arm.xml"
    write_mjcf(load_robot("ur10e"), path)
    assert path.read_text() == mjcf_text(load_robot("ur10e"))
    with pytest.raises(UnreadableFile, match=r"MJCF is written to .xml or .mjcf, not '.urdf'"):
        write_mjcf(load_robot("ur10e"), tmp_path / "arm.urdf")


def test_mjcf_refuses_what_mujoco_cannot_move():
    robot = load_robot("ur10e")
    with pytest.raises(InvalidRobot, match="is no real body, and MuJoCo moves no other: the mass is 0 kg"):
        mjcf_text(robot.with_links([InertialParameters.nothing(name) for name in robot.link_names]))
    with pytest.raises(InvalidRobot, match="ur10e has negative rotor inertia, which MuJoCo refuses"):
        mjcf_text(robot.with_drive(replace(robot.drive, rotor_inertia=-np.ones(6))))
