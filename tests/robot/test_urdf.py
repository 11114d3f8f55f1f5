"""URDFs: what is understood, what is refused and with which words."""

import numpy as np
import pytest

from conftest import LIMIT, joint, link
from conftest import robot as robot_text
from steelyard.errors import InvalidRobot, UnknownName, UnreadableFile
from steelyard.robot import RobotModel


@pytest.fixture
def load():
    return RobotModel.from_urdf_text


# --- files


def test_a_file_reads_like_its_text(tmp_path, tiny, load):
    path = tmp_path / "tiny.urdf"
    path.write_text(tiny["revolute"])
    robot = RobotModel.from_urdf(path)
    assert robot.source == "tiny.urdf. Flange: 'hand' (the last link of the arm)"
    assert robot.name == "tiny"
    np.testing.assert_array_equal(robot.parameters, load(tiny["revolute"]).parameters)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"arm\.urdf: no such file \(in the folder .*\); check the path$"),
        (b"", r"arm\.urdf is empty"),
        (b" \n\t", r"arm\.urdf is empty"),
        (b"\xff\xfe\x00\x01", r"arm\.urdf is not a URDF: it is not text"),
    ],
)
def test_unreadable_files(tmp_path, content, message):
    path = tmp_path / "arm.urdf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=message):
        RobotModel.from_urdf(path)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(UnreadableFile, match="it is a folder; name a file"):
        RobotModel.from_urdf(tmp_path)


# --- what is refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("this is no XML", r"URDF text does not parse as XML: syntax error"),
        ("<robot><link></robot>", r"does not parse as XML: mismatched tag"),
        ("<sdf/>", r"is not a URDF: its root is <sdf>, not <robot>"),
        ('<robot name="r"><link name="a"/></robot>', r"URDF text has no movable joint left"),
        ('<robot name="r"><link name="a"/><link name="b"/></robot>', r"is not a usable URDF: "),
    ],
)
def test_texts_that_are_no_robots(load, text, message):
    with pytest.raises(InvalidRobot, match=message):
        load(text)


def limit(**changes):
    values = {"lower": "-1", "upper": "1", "velocity": "2", "effort": "3"} | changes
    attributes = " ".join(f'{key}="{value}"' for key, value in values.items())
    return f"<limit {attributes}/>"


NO_INERTIA = '<link name="tip"><inertial><mass value="1"/></inertial></link>'
BAD_MASS = (
    '<link name="tip"><inertial><mass value="heavy"/><inertia ixx="1" ixy="0" ixz="0" iyy="1"'
)
BAD_MASS += ' iyz="0" izz="1"/></inertial></link>'


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"kind": "floating"},
            r"joint 'shoulder' is of type 'floating'; known are fixed, revolute, ",
        ),
        ({"kind": "planar"}, r"joint 'shoulder' is of type 'planar'"),
        ({"kind": "ball"}, r"joint 'shoulder' is of type 'ball'"),
        ({"axis": "0 0 0"}, r"the axis of joint 'shoulder' is zero or missing: .*0 0 0"),
        ({"inside": ""}, r"joint 'shoulder' has no <limit>; add one or make it continuous"),
        ({"kind": "prismatic", "inside": ""}, r"joint 'shoulder' has no <limit>"),
        ({"inside": limit(lower="nan")}, r"joint 'shoulder' has lower 'nan'; it must be finite"),
        ({"inside": limit(upper="inf")}, r"joint 'shoulder' has upper 'inf'; it must be finite"),
        (
            {"inside": limit(velocity="fast")},
            r"joint 'shoulder' has velocity 'fast'; it must be finite",
        ),
        (
            {"inside": limit(effort="1e999")},
            r"joint 'shoulder' has effort '1e999'; it must be finite",
        ),
        ({"inside": limit(lower="1")}, r"shoulder: q_min 1 is not below q_max 1"),
        (
            {"beside": NO_INERTIA},
            r"the <inertial> of link 'tip' needs a finite <mass value> and <inertia>",
        ),
        (
            {"beside": BAD_MASS},
            r"the <inertial> of link 'tip' needs a finite <mass value> and <inertia>",
        ),
    ],
)
def test_joints_and_links_that_are_refused(two_links, load, changes, message):
    with pytest.raises(InvalidRobot, match=f"(?s)^(URDF text: )?{message}"):
        load(two_links(**changes))


@pytest.mark.parametrize("kind", ["gripper", "mimic"])
def test_fingers_stand_still_by_themselves_and_it_is_said(tiny, load, kind):
    robot = load(tiny[kind])
    assert (robot.joint_names, robot.flange) == (("shoulder", "wrist"), "tool0")
    assert robot.source.endswith(
        "Held still, not on the way to the flange 'tool0': finger_left = 0, finger_right = 0"
    )
    q, rest = np.array([0.3, -0.7]), np.zeros(2)
    locked = load(tiny[kind], locked={"finger_left": 0.0, "finger_right": 0.0})
    np.testing.assert_allclose(
        robot.torque(q, rest, rest), locked.torque(q, rest, rest), rtol=1e-12
    )
    open_hand = load(tiny[kind], locked={"finger_left": 0.1})
    assert open_hand.joint_names == robot.joint_names
    moved = np.abs(open_hand.torque(q, rest, rest) - robot.torque(q, rest, rest)).max()
    assert (moved > 1e-3) == (
        kind == "gripper"
    )  # equal fingers that open together keep their centre of mass
    assert open_hand.held == {"finger_right": 0.1 if kind == "mimic" else 0.0}


def test_a_joint_of_the_arm_that_follows_another_is_refused(tiny, load):
    follow = LIMIT + '<mimic joint="shoulder" multiplier="-1"/>'
    text = tiny["revolute"].replace(LIMIT, follow).replace(follow, LIMIT, 1)  # all but the first
    with pytest.raises(InvalidRobot, match=r"joint 'elbow' of the arm follows 'shoulder' \(<mim"):
        load(text, flange="hand")
    locked = {"elbow": 0.1, "wrist": 0.2}
    assert load(text, flange="hand", locked=locked).joint_names == ("shoulder",)


def test_a_finger_stands_where_the_one_that_it_mimics_says(tiny, load):
    text = tiny["mimic"].replace('multiplier="1"', 'multiplier="-0.5" offset="0.02"')
    assert load(text).held == {"finger_left": 0.0, "finger_right": 0.02}
    assert load(text, locked={"finger_left": 0.1}).held == {"finger_right": pytest.approx(-0.03)}


def test_without_a_named_flange_the_arm_ends_where_fingers_branch_off(tiny, load):
    text = tiny["mimic"].replace("tool0", "grip")
    assert (load(text).joint_names, load(text).flange) == (("shoulder", "wrist"), "hand")
    assert load(text, flange="grip").flange == "grip"
    assert load(text, locked={"finger_right": 0.0}).joint_names == ("shoulder", "wrist")


def test_a_camera_that_pans_is_no_arm(load):
    arm = [joint(f"j{k}", "revolute", f"l{k}", f"l{k + 1}", "0 1 0") for k in range(4)]
    links = [link(name) for name in ("l0", "l1", "l2", "l3", "l4", "camera")]
    text = robot_text(*links, *arm, joint("pan", "revolute", "l2", "camera"))
    found = load(text)
    assert (found.joint_names, found.flange) == (("j0", "j1", "j2", "j3"), "l4")
    assert "pan = 0" in found.source
    assert load(text, flange="camera").joint_names == ("j0", "j1", "pan")


def test_two_arms_are_refused_until_a_flange_is_named(load):
    links = [link("torso"), *(link(f"{side}{k}") for side in "ab" for k in range(3))]
    arms = [
        joint(f"{side}_{k}", "revolute", f"{side}{k - 1}" if k else "torso", f"{side}{k}", "0 1 0")
        for side in "ab"
        for k in range(3)
    ]
    text = robot_text(*links, *arms)
    with pytest.raises(
        InvalidRobot, match=r"several arms; name the .* them: `flange='a2'`, `flange='b2'`"
    ):
        load(text)
    assert load(text, flange="b2").joint_names == ("b_0", "b_1", "b_2")


@pytest.mark.parametrize(
    ("tips", "flange", "arm_joints", "reason"),
    [
        (["fixed w finger_1", "fixed w x_end_effector"], "x_end_effector", 3, "the end effector"),
        (["fixed w finger_1", "fixed w finger_2"], "w", 3, "the last link"),
        (["fixed w grip_frame", "gripper w moving_jaw"], "w", 3, "the last link"),
        (["fixed w stator", "jointGripper stator mover"], "stator", 3, "the last link"),
        (["fixed w arm_tool", "fixed arm_tool hand_tool"], "arm_tool", 3, "a tool frame"),
        (["fixed w hand_tcp", "fixed w left_flange"], "left_flange", 3, "the flange"),
        (["fixed w panda_link8", "fixed w hand_tcp"], "panda_link8", 3, "the flange"),
        (["fixed w tool_camera"], "w", 3, "the last link"),
        (["hand_yaw w palm"], "palm", 4, "the last link"),
    ],
)
def test_the_flange_is_chosen_by_names_and_never_behind_a_gripper(
    load, tips, flange, arm_joints, reason
):
    chain = [("j0", "base", "u"), ("j1", "u", "v"), ("gripper_roll", "v", "w")]
    joints = [joint(name, "revolute", parent, child, "0 1 0") for name, parent, child in chain]
    names = ["base", "u", "v", "w"]
    for k, tip in enumerate(tips):
        kind, parent, child = tip.split()
        if kind == "fixed":
            joints.append(joint(f"fixed_{k}", "fixed", parent, child))
        else:
            joints.append(joint(kind, "revolute", parent, child, "0 1 0"))
        names.append(child)
    robot = load(robot_text(*map(link, names), *joints))
    assert (robot.flange, robot.n) == (flange, arm_joints)
    assert f"Flange: '{flange}' " in robot.source
    assert reason in robot.source


def test_a_gripper_joint_with_the_name_of_its_parent_link_stands_still(load):
    names = ["base", "u", "v", "gripper", "jaw"]
    chain = [
        joint("j0", "revolute", "base", "u", "0 1 0"),
        joint("j1", "revolute", "u", "v", "0 1 0"),
        joint("j2", "revolute", "v", "gripper", "0 1 0"),
        joint("gripper", "revolute", "gripper", "jaw", "0 1 0"),
    ]
    robot = load(robot_text(*map(link, names), *chain))
    assert (robot.flange, robot.joint_names) == ("gripper", ("j0", "j1", "j2"))
    assert "other choices: `flange='jaw'`" in robot.source


def test_friction_of_dynamics_is_read(two_links, load):
    robot = load(two_links(inside=limit() + '<dynamics damping="0.7" friction="1.5"/>'))
    v = np.array([[0.5], [-0.5]])
    np.testing.assert_allclose(robot.drive.friction(v), [[1.85], [-1.85]])
    with pytest.raises(
        InvalidRobot, match=r"the <dynamics> of joint 'shoulder' must have a friction"
    ):
        load(two_links(inside=limit() + '<dynamics damping="-1"/>'))


def test_locks_must_name_joints_and_places(tiny, load):
    with pytest.raises(UnknownName, match="no movable joint 'knee'; it has shoulder, elbow, wrist"):
        load(tiny["revolute"], locked={"knee": 0.0})
    with pytest.raises(InvalidRobot, match="joint 'elbow' cannot be locked at nan"):
        load(tiny["revolute"], locked={"elbow": np.nan})
    with pytest.raises(InvalidRobot, match="no movable joint left"):
        load(tiny["revolute"], locked={"shoulder": 0.1, "elbow": 0.2, "wrist": 0.3})


def test_an_unknown_flange_is_answered_with_candidates(tiny, load):
    with pytest.raises(UnknownName, match="has no frame 'knee'; candidates are `flange='hand'`"):
        load(tiny["revolute"], flange="knee")


def test_gravity_must_be_a_vector(tiny, load):
    with pytest.raises(InvalidRobot, match="gravity_base must be three finite numbers"):
        load(tiny["revolute"], gravity_base=9.81)


# --- what is understood


@pytest.mark.parametrize(
    ("kind", "types", "axes"),
    [
        ("revolute", ("revolute",) * 3, [[0, 0, 1], [0, 1, 0], [1, 0, 0]]),
        (
            "prismatic",
            ("prismatic", "revolute", "prismatic"),
            [[0, 0, 1], [1 / 3, 2 / 3, -2 / 3], [0, -1, 0]],
        ),
        (
            "continuous",
            ("continuous", "revolute", "continuous"),
            [[0, 0, 1], [0, 0, -1], [2 / 3, 1 / 3, 2 / 3]],
        ),
        ("fixed", ("revolute", "revolute"), [[0, 0, 1], [0, 0.6, 0.8]]),
    ],
)
def test_types_and_axes(tiny, load, kind, types, axes):
    robot = load(tiny[kind])
    assert robot.joint_types == types
    np.testing.assert_allclose(robot.joint_axes, axes)
    assert robot.dh is None


def test_a_continuous_joint_is_one_number_without_end(tiny, load):
    robot = load(tiny["continuous"])
    assert robot.n == 3
    np.testing.assert_array_equal(robot.limits.q_min, [-np.inf, -2.5, -np.inf])
    np.testing.assert_array_equal(robot.limits.q_max, [np.inf, 2.5, np.inf])
    np.testing.assert_array_equal(robot.limits.v_max, [3.0, 3.0, 3.0])
    turn = robot.forward_kinematics([[0.3, 0.2, 0.5], [0.3 + 2 * np.pi, 0.2, 0.5 - 4 * np.pi]])
    np.testing.assert_allclose(turn[0], turn[1], atol=1e-12)


def test_a_continuous_joint_needs_no_limit(two_links, load):
    robot = load(two_links("continuous", inside=""))
    assert robot.joint_types == ("continuous",)
    np.testing.assert_array_equal(robot.limits.v_max, [np.inf])
    np.testing.assert_array_equal(robot.limits.tau_max, [np.inf])


def test_limits_are_read(two_links, load):
    limits = load(two_links("prismatic", inside=limit(lower="0.1", upper="0.4"))).limits
    read = (limits.q_min[0], limits.q_max[0], limits.v_max[0], limits.tau_max[0], limits.a_max[0])
    assert read == (0.1, 0.4, 2.0, 3.0, np.inf)


def test_zero_speed_and_effort_mean_that_none_is_known(two_links, load):
    limits = load(two_links(inside=limit(velocity="0", effort="0"))).limits
    assert (limits.v_max[0], limits.tau_max[0]) == (np.inf, np.inf)


def test_fixed_joints_are_merged(tiny, load):
    robot = load(tiny["fixed"])
    assert robot.joint_names == ("shoulder", "wrist")
    assert robot.link_names == ("upper", "hand")
    assert [body.mass for body in robot.links] == pytest.approx([7.0, 1.5])
    assert {"base", "upper", "lower", "hand"} <= set(robot.frames)


def test_a_link_without_inertial_has_no_mass(two_links, load):
    beside = '<link name="tip"/><joint name="wrist" type="continuous"><parent link="arm"/>'
    beside += '<child link="tip"/></joint>'
    robot = load(two_links(beside=beside))
    np.testing.assert_array_equal(robot.links[1].vector, np.zeros(10))
    np.testing.assert_array_equal(robot.joint_axes[1], [1, 0, 0])


def test_joints_inside_other_elements_are_not_joints(two_links, load):
    beside = (
        '<gazebo><joint name="shoulder" type="revolute"/><joint name="spring"'
        ' type="revolute"/></gazebo>'
    )
    beside += '<transmission name="t"><joint name="shoulder"/></transmission>'
    assert load(two_links(beside=beside)).joint_names == ("shoulder",)


@pytest.mark.parametrize(
    ("names", "flange"),
    [(("tool0", "flange"), "tool0"), (("flange", "zz"), "flange"), (("zz",), "zz")],
)
def test_the_flange_is_the_usual_one_or_the_last_link(two_links, load, names, flange):
    beside, parent = "", "arm"
    for name in names:
        beside += (
            f'<link name="{name}"/><joint name="to_{name}" type="fixed"><parent link="{parent}"/>'
        )
        beside += f'<child link="{name}"/><origin xyz="0 0 0.1"/></joint>'
        parent = name
    robot = load(two_links(beside=beside))
    assert robot.flange == flange
    assert load(two_links(beside=beside), flange="arm").flange == "arm"


def test_a_joint_may_have_the_name_of_its_link(two_links, load):
    beside = (
        '<link name="tool0"/><joint name="tool0" type="fixed"><parent link="arm"/><child'
        ' link="tool0"/>'
    )
    beside += '<origin xyz="0.1 0.2 0.3"/></joint>'
    robot = load(two_links(beside=beside))
    assert robot.flange == "tool0"
    offset = np.linalg.inv(robot.forward_kinematics([0.4], "arm")) @ robot.forward_kinematics([0.4])
    np.testing.assert_allclose(offset[:3, 3], [0.1, 0.2, 0.3], atol=1e-12)


def test_locked_joints_vanish(tiny, load):
    robot = load(tiny["revolute"], locked={"elbow": 0.7})
    assert robot.joint_names == ("shoulder", "wrist")
    assert robot.link_names == ("upper", "hand")
    assert len(robot.limits) == len(robot.drive) == robot.n == 2


@pytest.mark.parametrize("name", ["shoulder", "elbow", "wrist"])
def test_the_flange_of_an_arm_with_any_locked_joint_is_the_same(tiny, load, name):
    """Pinocchio makes a frame of a locked joint its own parent."""
    tool = link("tool0") + joint("tool", "fixed", "hand", "tool0")
    camera = link("tool_camera") + joint("camera", "fixed", "upper", "tool_camera")
    text = tiny["revolute"].replace("</robot>", f"{tool}{camera}</robot>")
    assert load(text).flange == "tool0"
    robot = load(text, locked={name: 0.3})
    assert robot.flange == "tool0"
    assert robot.n == 2
