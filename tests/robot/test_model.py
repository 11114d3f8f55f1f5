"""DHTable, RobotModel and ParameterBasis: refusals, shapes, copies, immutability."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from steelyard.errors import InvalidInertia, InvalidRobot, UnknownName
from steelyard.inertia import InertialParameters
from steelyard.robot import DHTable, DriveModel, JointLimits, ParameterBasis, RobotModel, load_robot
from steelyard.robot._geometry import Body

ROWS = [[0.1, 0.2, 0.3, 0.4], [-1.2, 0.5, 0.0, 0.7], [0.9, 0.0, 0.2, -0.3]]
TABLE = DHTable.from_rows(ROWS)
BODY = InertialParameters.from_com(2.0, [0.1, -0.2, 0.3], np.diag([0.02, 0.03, 0.04]))
ARM = RobotModel.from_dh(TABLE, links=[BODY] * 3)


def table(**changes):
    columns = dict(zip(("alpha", "a", "d", "theta"), np.transpose(ROWS), strict=True))
    return DHTable(**columns | changes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: table(convention="craig"),
            r"'convention' must be 'modified' or 'classic', got 'craig'",
        ),
        (lambda: table(alpha=[]), r"a DH table needs at least one row"),
        (lambda: table(a=[1.0, 2.0]), r"'a' must have shape \(n,\) with n = 3, got \(2,\)"),
        (lambda: table(d=[1.0, 2.0, np.nan]), r"'d' must be finite"),
        (
            lambda: table(joint_types=("revolute",)),
            r"'joint_types' must have shape \(n,\) with n = 3",
        ),
        (
            lambda: table(joint_types=("revolute", "ball", "revolute")),
            r"'joint_types\[1\]' must be one of 'revolute', .*, got 'ball'",
        ),
        (lambda: DHTable.from_rows(np.ones((3, 5))), r"DH rows are \(n, 4\).*got shape \(3, 5\)"),
        (
            lambda: RobotModel.from_dh(TABLE, joint_names=["a", "b"]),
            r"has 3 rows, but 2 joint_names were given",
        ),
        (
            lambda: RobotModel.from_dh(TABLE, joint_names="aba"),
            r"each joint needs its own name, got a, b, a",
        ),
        (lambda: RobotModel.from_dh(TABLE, links=[BODY]), r"has 3 rows, but 1 links were given"),
        (
            lambda: RobotModel.from_dh(TABLE, limits=JointLimits.none(4)),
            r"has 3 rows, but 4 limits were given",
        ),
        (
            lambda: RobotModel.from_dh(TABLE, drive=DriveModel.ideal(2)),
            r"has 3 rows, but 2 drive were given",
        ),
        (lambda: ARM.with_links([BODY] * 2), r"arm has 3 links, got 2"),
        (
            lambda: ARM.with_links([BODY, InertialParameters(0, [0.1, 0, 0], np.eye(3)), BODY]),
            r"a link without mass cannot have the first moment",
        ),
        (lambda: ARM.with_drive(DriveModel.ideal(2)), r"arm has 3 joints, the drive model 2"),
        (lambda: ARM.with_gravity([0, -9.81]), r"gravity_base must be three finite numbers"),
        (lambda: ARM.with_gravity([0, 0, np.nan]), r"gravity_base must be three finite numbers"),
        (
            lambda: ARM.with_gravity([0, 0, -9810]),
            r"gravity_base must be at most 30 m/s\^2 in size",
        ),
        (
            lambda: ARM.with_payload(BODY.renamed("gripper")),
            r"payload is in frame 'gripper', the flange of arm is 'flange'; express the payload"
            r" in it with in_frame\(\)",
        ),
        (lambda: ARM.mass_matrix(np.ones((2, 3))), r"got 2 postures"),
        (
            lambda: ARM.coriolis_matrix(np.ones((2, 3)), np.ones((2, 3))),
            r"got 2 postures",
        ),
        (
            lambda: ParameterBasis.of(ARM, tolerance=0.0),
            r"tolerance must lie between 0 and 1, got 0\.0",
        ),
        (
            lambda: ParameterBasis.of(ARM, tolerance=1.0),
            r"tolerance must lie between 0 and 1, got 1\.0",
        ),
        (
            lambda: ParameterBasis.of_regressor(ARM, np.ones((5, 3, 30))),
            r"finite with 42 columns, got shape",
        ),
        (
            lambda: ParameterBasis.of_regressor(ARM, np.full((5, 3, 42), np.nan)),
            r"Y must be finite",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InvalidRobot, match=message):
        make()


def test_the_flange_is_a_rotation_and_a_translation():
    with pytest.raises(InvalidInertia, match="'transform' must be a rotation and a translation"):
        RobotModel.from_dh(TABLE, T_link_flange=2 * np.eye(4))


@pytest.mark.parametrize(
    "call", [ARM.inverse_dynamics, ARM.torque, ARM.regressor, ARM.payload_regressor]
)
@pytest.mark.parametrize("shapes", [((4, 2),) * 3, ((4, 3), (5, 3), (4, 3)), ((2, 4, 3),) * 3])
def test_joint_signals_must_fit_the_arm(call, shapes):
    with pytest.raises(
        InvalidRobot, match=r"arm has 3 joints: joint signals are \(N, 3\) and of one length"
    ):
        call(*(np.ones(shape) for shape in shapes))


@pytest.mark.parametrize(
    "call", [ARM.forward_kinematics, lambda q, f: ARM.frame_motion(q, q, q, f)]
)
def test_unknown_frames_are_answered_with_the_known_ones(call):
    with pytest.raises(
        UnknownName,
        match=r"arm has no frame 'gripper'; it has universe, joint1, link1, .*, flange",
    ):
        call(np.ones((1, 3)), "gripper")


@pytest.mark.parametrize("count", [0, 1, 4])
def test_shapes(rng, count):
    q, v, a = rng.normal(size=(3, count, 3))
    assert ARM.inverse_dynamics(q, v, a).shape == (count, 3)
    assert ARM.torque(q, v, a).shape == (count, 3)
    assert ARM.gravity_torque(q).shape == (count, 3)
    assert ARM.forward_kinematics(q).shape == (count, 4, 4)
    assert ARM.regressor(q, v, a).shape == (count, 3, 42)
    assert ARM.payload_regressor(q, v, a).shape == (count, 3, 10)
    assert ARM.frame_motion(q, v, a).linear_acceleration.shape == (count, 3)


def test_one_posture_is_a_row_of_many(rng):
    q, v, a = rng.normal(size=(3, 4, 3))
    np.testing.assert_array_equal(ARM.torque(q[2], v[2], a[2]), ARM.torque(q, v, a)[2])
    np.testing.assert_array_equal(ARM.gravity_torque(q[2]), ARM.gravity_torque(q)[2])
    np.testing.assert_array_equal(ARM.forward_kinematics(q[2]), ARM.forward_kinematics(q)[2])


def test_names_and_columns():
    assert ARM.joint_names == ("joint1", "joint2", "joint3")
    assert ARM.link_names == ("link1", "link2", "link3")
    assert ARM.parameter_names[:3] == ("m1", "mx1", "my1")
    assert ARM.parameter_names[29:34] == ("Izz3", "Ia1", "Ia2", "Ia3", "Fc1")
    assert ARM.parameter_names[-1] == "B3"
    np.testing.assert_array_equal(ARM.parameters[10:20], ARM.links[1].vector)


def test_joint_types_come_from_the_joints_and_their_limits():
    inf = np.full(3, np.inf)
    limits = JointLimits([-np.inf, -1, -1], [np.inf, 1, 1], inf, inf, inf)
    types = ("continuous", "prismatic", "revolute")
    arm = RobotModel.from_dh(table(joint_types=types), limits=limits)
    assert arm.joint_types == types
    np.testing.assert_array_equal(arm.joint_axes, [[0, 0, 1]] * 3)


def test_home_is_zero_moved_into_the_limits():
    inf = np.full(3, np.inf)
    arm = RobotModel.from_dh(TABLE, limits=JointLimits([-1, 0.5, -2], [1, 2, -0.25], inf, inf, inf))
    np.testing.assert_array_equal(arm.home, [0.0, 0.5, -0.25])


@pytest.mark.parametrize("convention", ["modified", "classic"])
def test_links_read_back_in_their_own_frames(convention):
    arm = RobotModel.from_dh(DHTable.from_rows(ROWS, convention), links=[BODY, BODY + BODY, BODY])
    for body, expected, name in zip(
        arm.links, [BODY, BODY + BODY, BODY], arm.link_names, strict=True
    ):
        np.testing.assert_allclose(body.vector, expected.vector, atol=1e-13)
        assert body.frame == name


def test_links_without_mass_are_nothing_or_pure_inertia():
    rotor = InertialParameters(0.0, np.zeros(3), np.diag([0.1, 0.2, 0.3]))
    empty = RobotModel.from_dh(TABLE)
    np.testing.assert_array_equal(empty.parameters, np.zeros(42))
    np.testing.assert_array_equal(empty.torque([0.1, 0.2, 0.3], [1, 2, 3], [4, 5, 6]), np.zeros(3))
    spinning = empty.with_links([InertialParameters.nothing(), rotor, InertialParameters.nothing()])
    np.testing.assert_allclose(spinning.links[1].vector, rotor.vector, atol=1e-15)
    assert spinning.mass_matrix([0.1, 0.2, 0.3])[1, 1] == pytest.approx(0.3)


@pytest.mark.parametrize(
    "change",
    [
        lambda arm: arm.with_payload(BODY),
        lambda arm: arm.with_links([BODY + BODY] * 3),
        lambda arm: arm.with_gravity([1.0, 2.0, 3.0]),
        lambda arm: arm.with_drive(DriveModel(np.ones(3))),
    ],
)
def test_a_changed_arm_leaves_the_first_one_alone(rng, change):
    q, v, a = rng.normal(size=(3, 4, 3))
    before = ARM.torque(q, v, a)
    changed = change(ARM)
    assert not np.allclose(changed.torque(q, v, a), before)
    np.testing.assert_array_equal(ARM.torque(q, v, a), before)


def test_an_arm_cannot_be_written_to():
    with pytest.raises(AttributeError):
        ARM.name = "other"
    for array in (ARM.home, ARM.dh.alpha, ARM.limits.q_min, ARM.T_joint_link):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    pose = ARM.forward_kinematics([0.1, 0.2, 0.3])
    for view in (ARM.gravity_base, ARM.T_joint_flange, ARM.joint_placements, ARM.joint_axes):
        view[:] = 7.0
    np.testing.assert_array_equal(ARM.gravity_base, [0, 0, -9.81])
    np.testing.assert_array_equal(ARM.forward_kinematics([0.1, 0.2, 0.3]), pose)


def test_a_table_is_apart_from_what_it_was_given():
    alpha = np.array([0.1, -1.2, 0.9])
    made = table(alpha=alpha)
    alpha[:] = 9.0
    np.testing.assert_array_equal(made.alpha, [0.1, -1.2, 0.9])
    assert len(made) == 3


def test_base_parameters_cannot_be_written_to():
    basis = ParameterBasis.of(ARM)
    for array in (basis.K, basis.independent, basis.payload_jacobian):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_regressor_of_zeros_has_no_base_parameters():
    basis = ParameterBasis.of_regressor(ARM, np.zeros((4, 3, 42)))
    assert len(basis) == 0
    assert basis.K.shape == (0, 42)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda arm: pickle.loads(pickle.dumps(arm))])
def test_an_arm_can_be_copied_and_pickled(rng, duplicate):
    arm = load_robot("panda").with_payload(BODY)
    again = duplicate(arm)
    q, v, a = rng.normal(size=(3, 4, 7))
    np.testing.assert_array_equal(again.torque(q, v, a), arm.torque(q, v, a))
    np.testing.assert_array_equal(again.forward_kinematics(q), arm.forward_kinematics(q))
    assert (again.name, again.flange, again.source) == (arm.name, arm.flange, arm.source)


@pytest.mark.parametrize("name", ["ur10", "ur10e", "panda"])
def test_locked_joints_stand_still_and_the_others_feel_the_same(name):
    robot = load_robot(name)
    held = {robot.joint_names[1]: 0.4, robot.joint_names[3]: -1.1}
    part = robot.with_locked(held)
    rng = np.random.default_rng(5)
    q, v, a = rng.normal(size=(3, 6, robot.n))
    free = [i for i, joint in enumerate(robot.joint_names) if joint not in held]
    q[:, [1, 3]], v[:, [1, 3]], a[:, [1, 3]] = [0.4, -1.1], 0.0, 0.0
    small = [x[:, free] for x in (q, v, a)]
    np.testing.assert_allclose(part.torque(*small), robot.torque(q, v, a)[:, free], atol=1e-10)
    np.testing.assert_allclose(
        part.forward_kinematics(small[0]), robot.forward_kinematics(q), atol=1e-12
    )
    np.testing.assert_allclose(
        part.regressor(*small) @ part.parameters, part.torque(*small), atol=1e-9
    )
    assert part.joint_names == tuple(np.array(robot.joint_names)[free])
    np.testing.assert_array_equal(part.limits.v_max, robot.limits.v_max[free])
    assert len(ParameterBasis.of(part)) < len(ParameterBasis.of(robot))


def test_impossible_locks_are_refused():
    robot = load_robot("planar2r")
    with pytest.raises(
        UnknownName, match="planar2r has no movable joint 'elbow'; it has joint_1, joint_2"
    ):
        robot.with_locked({"elbow": 0.0})
    with pytest.raises(InvalidRobot, match="'joint_1' cannot be locked at nan"):
        robot.with_locked({"joint_1": float("nan")})
    with pytest.raises(InvalidRobot, match="with all joints locked there is nothing to identify"):
        robot.with_locked({"joint_1": 0.0, "joint_2": 0.0})
    coupled = robot.with_drive(DriveModel(np.zeros(2), coupling=np.array([[10.0, 0], [3.0, 20]])))
    with pytest.raises(InvalidRobot, match="coupled drives cannot be taken apart"):
        coupled.with_locked({"joint_1": 0.0})
    message = "the flange of planar2r is 'flange', or 'link2' for the last frame of .*; got 'tip'"
    with pytest.raises(UnknownName, match=message):
        load_robot("planar2r", flange="tip")


# --- what an arm looks like

SHAPED = """<robot name="shaped">
  <link name="base"><visual><geometry><box size="0.2 0.3 0.4"/></geometry></visual></link>
  <link name="upper">
    <visual><origin xyz="0 0 0.5"/>
    <geometry><mesh filename="part.obj" scale="2 1 1"/></geometry></visual>
  </link>
  <link name="lower"/>
  <joint name="j1" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="1" effort="10"/></joint>
  <joint name="j2" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0 0 1"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" velocity="1" effort="10"/></joint>
</robot>"""


def volume(body):
    """By the divergence theorem, positive where triangles are seen from outside."""
    corners, triangles = body.surface
    a, b, c = (corners[triangles[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)


def test_an_arm_is_drawn_by_the_shapes_of_its_urdf_and_by_capsules_where_it_has_none(tmp_path):
    (tmp_path / "arm.urdf").write_text(SHAPED)
    (tmp_path / "part.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    )
    robot = load_robot(tmp_path / "arm.urdf")
    bodies = Body.to_draw(robot, tmp_path / "arm.urdf")
    assert [(body.name, body.joint) for body in bodies] == [
        ("base", 0),
        ("upper", 1),
        ("link 2", 2),
        ("drive 2", 2),
    ]
    assert volume(bodies[0]) == pytest.approx(0.2 * 0.3 * 0.4)
    assert volume(bodies[1]) == pytest.approx(2 / 6)
    np.testing.assert_allclose(bodies[1].placement[:3, 3], [0, 0, 0.5])
    assert {body.joint for body in Body.to_draw(robot)} == {1, 2}
    (tmp_path / "part.obj").unlink()
    with pytest.raises(
        InvalidRobot, match=r"the visual shapes of .*arm\.urdf cannot be read: .*part\.obj"
    ):
        Body.to_draw(robot, tmp_path / "arm.urdf")


def test_surfaces_of_round_shapes_enclose_nearly_their_volume():
    link, *_, drive = Body.to_draw(load_robot("planar2r"))
    r, h = link.shape.radius, 2 * link.shape.halfLength
    assert volume(link) == pytest.approx(np.pi * r**2 * (h + 4 * r / 3), rel=0.03)
    r, h = drive.shape.radius, 2 * drive.shape.halfLength
    assert volume(drive) == pytest.approx(np.pi * r**2 * h, rel=0.03)
    with pytest.raises(InvalidRobot, match="floor: a shape of kind Halfspace cannot be drawn"):
        _ = Body.half_space("floor", [0, 0, 0], [0, 0, 1]).surface


def test_joint_frames_lead_to_the_flange(rng):
    robot = load_robot("ur10e")
    q = rng.uniform(-2, 2, robot.n)
    frames = robot.joint_frames(q)
    np.testing.assert_array_equal(frames[0], np.eye(4))
    np.testing.assert_allclose(
        frames[-1] @ robot.T_joint_flange, robot.forward_kinematics(q), atol=1e-12
    )


def test_threads_share_an_arm(rng):
    """Pinocchio keeps intermediate results: those of one thread must not reach another."""
    robot = load_robot("ur10")
    postures = rng.uniform(-2.0, 2.0, (4, 300, 6))
    alone = [robot.forward_kinematics(q) for q in postures]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(robot.forward_kinematics, postures))
    finally:
        sys.setswitchinterval(before)
    np.testing.assert_array_equal(together, alone)
