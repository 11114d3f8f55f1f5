"""An identified arm in a user's file: the same torque, and all else byte for byte."""

import difflib
import re
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from conftest import lively_motion, steelyard
from steelyard._saved import load
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.io._arms import arm_into
from steelyard.payload import Payload
from steelyard.recording import Samples
from steelyard.robot import DriveModel, RobotModel
from steelyard.verdict import Verdict

GOOD = Verdict("all ten parameters were excited, and they are those of a real body")
BODY = InertialParameters.from_com(2.5, [0.01, -0.02, 0.06], np.diag([0.02, 0.015, 0.012]), "tool0")
NEEDLE = InertialParameters.from_com(2.5, [0.01, -0.02, 0.06], np.diag([0.02, 0.02, 1e-9]), "tool0")

INERTIA = '<inertia ixx="0.06" ixy="0.004" ixz="-0.003" iyy="0.05" iyz="0.002" izz="0.04"/>'
FINGER = (
    '<inertial><origin xyz="0 0 0.03"/><mass value="0.2"/>'
    + INERTIA.replace("0.0", "0.000")
    + "</inertial>"
)
URDF = f"""<?xml version='1.0' encoding="utf-8"?>
<!-- an arm of mine: 5 > 3 -->
<robot   name="mine" >
  <material name="grey"><color rgba='0.5 0.5 0.5 1'/></material>
  <link name="base"/>
  <link name="upper">
    <inertial>
      <!-- from CAD -->
      <origin xyz="0.1 0 0.05" rpy="0.1 0.2 0.3"/>
      <mass  value = '4.0' />
      {INERTIA}
    </inertial>
    <visual><geometry><mesh filename="package://mine/upper.stl"/></geometry></visual>
  </link>
  <link name="lower"/>
  <link name="hand"><inertial><mass value="1.5"/>{INERTIA}</inertial></link>
  <link name="camera">{FINGER}</link> <link name="left">{FINGER}</link>
  <link name="right">{FINGER}</link>
  <link name="tool0"/>\t<!-- the flange -->
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0 0.3"/><axis xyz="0 0 1"/>
    <limit lower="-2.5" upper="2.5" velocity="3" effort="150"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
    <origin xyz="0.2 0.1 0.1" rpy="1.5 0.2 0"/><axis xyz="0 0 1"/>
    <limit lower="-2.5" upper="2.5" velocity="3" effort="150"/><dynamics damping="1" my="own"/>
  </joint>
  <joint name="wrist" type="revolute"><parent link="lower"/><child link="hand"/>
    <origin xyz="0.3 0 0.1" rpy="0 1.4 0"/><axis xyz="0 1 0"/>
    <limit lower="-2.5" upper="2.5" velocity="3" effort="150"/></joint>
  <joint name="look" type="fixed"><parent link="lower"/><child link="camera"/>
  <origin xyz="0 0.1 0"/></joint>
  <joint name="tool" type="fixed"><parent link="hand"/><child link="tool0"/>
  <origin xyz="0 0 0.1"/></joint>
  <joint name="open" type="prismatic"><parent link="tool0"/><child link="left"/><axis xyz="0 1 0"/>
    <limit lower="0.01" upper="0.04" velocity="1" effort="9"/></joint>
  <joint name="open2" type="prismatic"><parent link="tool0"/><child link="right"/>
  <axis xyz="0 -1 0"/>
    <limit lower="0" upper="0.04" velocity="1" effort="9"/><mimic joint="open"/></joint>
</robot>
"""

MJCF = """<mujoco model="mine">
  <!-- angles in degrees, a base that is turned, frames beside the axes -->
  <compiler angle="degree" eulerseq="XYZ"/>
  <option gravity="0 0 -9.81"/>
  <default><joint damping="7" armature="0.3"/>
    <default class="finger"><joint type="slide"/></default></default>
  <worldbody>
    <light pos="0 0 3"/>
    <body name="base" pos="0 0 0.5" euler="0 0 180">
      <body name="upper" pos="0.05 0 0.3"><geom size="0.1"/>
        <joint name='shoulder' pos="-0.05 0 0" axis="0 0 1" damping='2'/>
        <body name="lower" pos="0.15 0.1 0.1" euler="85.94366926962348 11.459155902616466 0">
          <inertial pos="0 0 0.1" mass="2" fullinertia="0.06 0.05 0.04 0.001 0 0"/>
          <frame pos="0 0 0"><joint name="elbow" axis="0 0 1"/></frame>
          <body name="camera" pos="0 0.1 0"><geom type="box" size="0.02 0.03 0.01"/></body>
          <body name="hand" pos="0.3 0 0.1" euler="0 80.21409131831524 0">
            <inertial pos="0 0 0.1" mass="2" diaginertia="0.06 0.05 0.04" euler="10 20 30"/>
            <joint name="wrist" axis="0 1 0"/>
            <site name="tool0" pos="0 0 0.1"/>
            <body name="left" pos="0 0 0.1">
            <joint name="open" class="finger" axis="0 1 0" range="0.01 0.04"/>
              <geom size="0.02" pos="0 0 0.03"/></body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def motion(rng, rows):
    q, v, a = rng.normal(size=(3, rows, 3)) * [[[0.8]], [[1.0]], [[2.0]]]
    return q, v + 0.3 * np.sign(v), a


@pytest.fixture(scope="module")
def model():
    """Identified with a gripper and a camera, which are heavier than in the files."""
    rng = np.random.default_rng(7)
    hand = '<inertial><mass value="3"/>' + INERTIA + "</inertial>"
    robot = RobotModel.from_urdf_text(URDF.replace('"lower"/>', f'"lower">{hand}</link>', 1))
    masses = [6.0, 3.0, 2.5]
    links = [
        InertialParameters.from_com(m, rng.uniform(-0.1, 0.1, 3), np.diag([0.05, 0.06, 0.07]), name)
        for m, name in zip(masses, robot.link_names, strict=True)
    ]
    drive = DriveModel(
        np.array([0.5, 0.4, 0.1]), np.array([3.0, 2.0, 1.0]), np.array([4.0, 3.0, 0.5])
    )
    real = robot.with_links(links).with_drive(drive)
    q, v, a = lively_motion(robot, 5)
    tau = real.torque(q, v, a) + 1e-3 * rng.normal(size=q.shape)
    return identify(
        robot, Samples(q, v, a, tau, 100.0, robot.joint_names, "measured"), friction="linear"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model):
    path = tmp_path_factory.mktemp("into")
    (path / "mine.urdf").write_text(URDF)
    (path / "mine.xml").write_text(MJCF)
    spread = np.diag([0.01, *[1e-3] * 3, *[1e-4] * 6]) ** 2
    Payload(BODY, BODY, spread, np.ones(3), GOOD).save(path / "payload.json")
    vague = np.diag([0.01, *[1e-3] * 3, *[0.03] * 6]) ** 2
    Payload(NEEDLE, NEEDLE, vague, np.ones(3), GOOD).save(path / "needle.json")
    model.save(path / "model.json")
    return path


def export(folder, *words):
    done = steelyard(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def inverse(path, q, v, a):
    """MuJoCo's torques of the arm, fingers at rest in their nearest position to zero."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data, tau = mujoco.MjData(model), []
    for rows in zip(q, v, a, strict=True):
        for signal, row in zip((data.qpos, data.qvel, data.qacc), rows, strict=True):
            signal[:3], signal[3:] = row, 0.0
        data.qpos[3:] = 0.01
        mujoco.mj_inverse(model, data)
        tau.append(data.qfrc_inverse[:3].copy())
    return np.array(tau)


def torque_with_payload(model, q, v, a):
    robot, loaded = model.robot, model.robot.with_payload(BODY)
    return (
        model.torque(q, v, a) + loaded.inverse_dynamics(q, v, a) - robot.inverse_dynamics(q, v, a)
    )


def loaded(file):
    """Words of the command that patches a file with the arm and its payload."""
    return "patch", "loaded-arm", file, "model.json", "payload.json"


def test_a_patched_urdf_is_the_identified_arm_with_its_payload(folder, model, rng):
    said = export(folder, *loaded("mine.urdf"), "-o", "new.urdf")
    assert said == "Written: new.urdf, and what it cannot hold: new.drives.json\n"
    again = RobotModel.from_urdf(folder / "new.urdf")
    assert again.flange == "tool0"
    joints = load(folder / "new.drives.json", "drives")["joints"]
    q, v, a = motion(rng, 20)
    tau = again.torque(q, v, a)
    for key, signal in (("rotor_inertia", a), ("offset", np.ones_like(a))):
        tau += np.array([joint[key] for joint in joints.values()]) * signal
    expected = torque_with_payload(model, q, v, a)
    np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_a_patched_mjcf_is_the_identified_arm_with_its_payload(folder, model, rng):
    export(folder, *loaded("mine.xml"), "-o", "new.xml")
    joints = load(folder / "new.drives.json", "drives")["joints"]
    q, v, a = motion(rng, 20)
    tau = inverse(folder / "new.xml", q, v, a) + [joint["offset"] for joint in joints.values()]
    expected = torque_with_payload(model, q, v, a)
    np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(("target", "name"), [("urdf", "mine.urdf"), ("mjcf", "mine.xml")])
def test_own_and_kept_bodies_together_are_the_arm_to_the_last_digit(
    folder, model, rng, target, name
):
    arm = arm_into(model, folder / name, target)
    (folder / f"sum-{name}").write_text(arm.text(target))
    q, v, a = motion(rng, 10)
    rigid = arm.robot.inverse_dynamics(q, v, a)
    if target == "urdf":
        found = RobotModel.from_urdf(folder / f"sum-{name}").inverse_dynamics(q, v, a)
    else:
        rigid = rigid + replace(arm.robot.drive, offset=np.zeros(3)).torque(v, a, load=rigid)
        found = inverse(folder / f"sum-{name}", q, v, a)
    np.testing.assert_allclose(found, rigid, rtol=0, atol=1e-9 * np.abs(rigid).max())


def changed(before, after):
    """Lines of a text that another one does not have any more."""
    return [
        line[2:]
        for line in difflib.ndiff(before.splitlines(), after.splitlines())
        if line[0] == "-"
    ]


def test_everything_else_in_a_urdf_is_left_as_it_is(folder):
    text = export(folder, *loaded("mine.urdf"))
    lines = [
        '      <origin xyz="0.1 0 0.05" rpy="0.1 0.2 0.3"/>',
        "      <mass  value = '4.0' />",
        f"      {INERTIA}",
        '  <link name="lower"/>',
        f'  <link name="hand"><inertial><mass value="1.5"/>{INERTIA}</inertial></link>',
        *(line for line in URDF.splitlines() if 'effort="150"' in line),
    ]
    assert sorted(changed(URDF, text)) == sorted(lines)
    assert re.search(r"<mass  value = \"[\d.]+\" />", text)
    assert re.search(r'<dynamics damping="[\d.]+" my="own" friction="[\d.]+"/>\s*</joint>', text)
    for words in (
        "<!-- steelyard: patched; everything that is not listed here is unchanged.",
        "0.4 kg of bodies that are fixed to the link of wrist",
        "Added: the payload, link 'payload', fixed to link 'tool0' by the joint 'payload_fixed'.",
        "Identified: all 26 parameters",
    ):
        assert words in text, words
    windows = URDF.replace("\n", "\r\n").encode()
    (folder / "windows.urdf").write_bytes(windows)
    export(folder, *loaded("windows.urdf"), "-o", "windows-new.urdf")
    there = (folder / "windows-new.urdf").read_bytes().decode()
    assert there == text.replace("mine.urdf", "windows.urdf").replace("\n", "\r\n")


def test_everything_else_in_an_mjcf_is_left_as_it_is(folder):
    text = export(folder, *loaded("mine.xml"))
    marks = (
        'name="upper"',
        "<joint name='shoulder",
        'fullinertia="',
        'name="elbow"',
        'diaginertia="',
        'name="wrist"',
    )
    assert changed(MJCF, text) == [
        line for line in MJCF.splitlines() if any(mark in line for mark in marks)
    ]
    assert '<body name="upper" pos="0.05 0 0.3">\n        <inertial' in text
    assert "body 'payload', in the body 'hand'" in text


def test_a_file_is_patched_again_and_in_place_where_it_is_named(folder):
    (folder / "own.urdf").write_text(URDF)
    for _ in range(2):
        export(folder, *loaded("own.urdf"), "-o", "own.urdf")
    once = export(folder, *loaded("mine.urdf")).replace("mine.urdf", "own.urdf")
    twice = (folder / "own.urdf").read_text()
    assert twice.count("<!-- steelyard:") == twice.count('<link name="payload">') == 1
    arms = [RobotModel.from_urdf_text(text) for text in (once, twice)]
    np.testing.assert_allclose(arms[0].parameters, arms[1].parameters, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("target", "name"), [("urdf", "mine.urdf"), ("mjcf", "mine.xml")])
def test_a_payload_alone_goes_to_the_flange(folder, rng, target, name):
    export(
        folder,
        "patch",
        "payload",
        name,
        "payload.json",
        "--name",
        "box",
        "-o",
        f"box-{name}",
    )
    before, after = (folder / name).read_text(), (folder / f"box-{name}").read_text()
    assert changed(before, after) == []
    q, v, a = motion(rng, 5)
    if target == "urdf":
        robot = RobotModel.from_urdf(folder / name)
        expected = robot.with_payload(BODY).inverse_dynamics(q, v, a)
        found = RobotModel.from_urdf(folder / f"box-{name}").inverse_dynamics(q, v, a)
    else:
        robot = RobotModel.from_urdf_text(URDF)
        more = robot.with_payload(BODY).inverse_dynamics(q, v, a) - robot.inverse_dynamics(q, v, a)
        expected = inverse(folder / name, q, v, a) + more
        found = inverse(folder / f"box-{name}", q, v, a)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_an_inertia_that_is_hardly_known_becomes_a_sphere(folder):
    def moments(*words):
        text = export(folder, "patch", "payload", "mine.urdf", "needle.json", *words)
        robot = RobotModel.from_urdf_text(URDF)
        there = RobotModel.from_urdf_text(text)
        payload = there.links[-1] - robot.links[-1]
        T = np.linalg.inv(there.T_joint_flange)
        return text, payload.in_frame("tool0", T)

    radius = (3 * 2.5 / (4 * np.pi * 2700)) ** (1 / 3)
    text, sphere = moments()
    np.testing.assert_allclose(sphere.inertia_com, 0.4 * 2.5 * radius**2 * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(sphere.com, NEEDLE.com, atol=1e-12)
    assert "It is very uncertain: the largest half-width exceeds" in text
    assert (
        "It is not written; the inertia here is that of a homogeneous sphere of 2700 kg/m^3 with a"
        " diameter of 121 mm" in text
    )
    assert moments("--inertia", "sphere")[0] == text
    text, needle = moments("--inertia", "estimated")
    np.testing.assert_allclose(needle.inertia_com, NEEDLE.inertia_com, atol=1e-12)
    assert "It is not written" not in text
    text, point = moments("--inertia", "none")
    np.testing.assert_allclose(point.inertia_com, 0, atol=1e-12)
    assert "the inertia here is that of a point mass" in text


OTHER = URDF.replace("shoulder", "hip")
LONGER = URDF.replace('xyz="0.3 0 0.1"', 'xyz="0.32 0 0.1"')
ON_RAIL = MJCF.replace(
    'euler="0 0 180">', 'euler="0 0 180"><joint name="rail" type="slide"/><geom size="1"/>'
)
SWAPPED = (
    MJCF.replace("'shoulder'", "'knee'")
    .replace('"elbow"', '"shoulder"')
    .replace("'knee'", "'elbow'")
)
XACRO = '<robot name="x" xmlns:xacro="http://ros.org"><xacro:include filename="a"/></robot>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            OTHER,
            "describes another arm: its joints are hip, elbow, wrist, those of the model shoulder",
        ),
        (LONGER, "the axis of joint wrist is"),
        (URDF.replace("robot", "robots"), "bad.xml has the root <robots>, not <robot>"),
        ("no XML", "bad.xml does not parse as XML"),
        (XACRO, "bad.xml is a xacro: convert it to a URDF first"),
        (
            URDF.replace('"base"', '"payload"'),
            "already has a link 'payload' that is not a payload: give the payload",
        ),
        (
            URDF.replace('<link name="lower"/>', ""),
            "names the link 'lower', which is missing",
        ),
        (URDF.replace('"camera"', '"upper"'), "bad.xml has two links called 'upper'"),
        (
            MJCF.replace('"elbow"', '"knee"'),
            "no joint elbow; it has shoulder, knee, wrist, open",
        ),
        (
            MJCF.replace('pos="0.3 0 0.1"', 'pos="0.4 0 0.1"'),
            "describes another arm: the axis of joint",
        ),
        (MJCF.replace("<light", "<lamp"), "MuJoCo cannot read bad.xml"),
        (
            MJCF.replace("eulerseq", 'inertiafromgeom="true" eulerseq'),
            "ignores every <inertial>",
        ),
        (
            MJCF.replace("eulerseq", 'settotalmass="9" eulerseq'),
            "which rescales masses; remove it",
        ),
        (
            MJCF.replace('"camera"', '"payload"'),
            "already has a body 'payload' that is not a payload",
        ),
        (
            MJCF.replace('"elbow"', '"elbow" type="slide"'),
            "elbow slides in one and turns in",
        ),
        (
            URDF.replace('xyz="0 0 0.1"', 'xyz="0 0.1 0.1"'),
            "the flange 'tool0' is not where the model has it",
        ),
        (
            MJCF.replace("<frame pos", '<joint name="twist"/><frame pos'),
            "'elbow' has further",
        ),
        (SWAPPED, "describes another arm: 'shoulder' does not follow the previous joint"),
        (
            ON_RAIL,
            "is not a joint of the robot model; hold it still with --lock rail=0",
        ),
    ],
)
def test_other_files_are_refused_in_one_line(folder, text, message):
    (folder / "bad.xml").write_text(text)
    done = steelyard(*loaded("bad.xml"), cwd=folder)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (loaded("none.urdf"), "none.urdf: no such file"),
        ((*loaded("mine.urdf"), "--lock", "open"), "--lock is JOINT=NUMBER"),
        (
            ("export", "urdf", "payload.json", "--inertia", "rod"),
            "--inertia must be one of estimated, sphere, none, got 'rod'",
        ),
    ],
)
def test_other_words_are_refused_in_one_line(folder, words, message):
    done = steelyard(*words, cwd=folder)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr


def test_a_joint_below_the_arm_is_held_still_where_it_is_locked(folder, model):
    (folder / "rail.xml").write_text(ON_RAIL)
    texts = [
        export(folder, *loaded(name), *lock)
        for name, lock in (("mine.xml", ()), ("rail.xml", ("--lock", "rail=0")))
    ]
    inertials = [re.findall("<inertial .*", text) for text in texts]
    assert inertials[0] == inertials[1]


def test_text_that_is_no_text_and_joints_that_are_included(folder):
    (folder / "latin.urdf").write_bytes(
        URDF.replace("arm of mine", "Gelenk f\xfcr").encode("latin-1")
    )
    done = steelyard(*loaded("latin.urdf"), cwd=folder)
    assert "latin.urdf is not XML in UTF-8" in done.stderr
    (folder / "outer.xml").write_text('<mujoco><include file="mine.xml"/></mujoco>')
    done = steelyard(*loaded("outer.xml"), cwd=folder)
    assert (
        "outer.xml has no joint 'shoulder' in its <worldbody>; included files are not"
        in done.stderr
    )
    (folder / "bare.xml").write_text(
        MJCF.replace("tool0", "tip").replace('0.5" euler="0 0 180"', '0"')
    )
    done = steelyard("patch", "payload", "bare.xml", "payload.json", cwd=folder)
    assert "bare.xml has no body or site 'tool0' for the payload" in done.stderr
    text = export(folder, *loaded("bare.xml"))  # on the last body, where the model's flange is
    place = re.search(r'<body name="payload" pos="(.*?)"', text)[1]
    assert [float(x) for x in place.split()] == pytest.approx([0, 0, 0.1], abs=1e-12)
