"""Written and read again: the same arm to the digit; comments hold what URDF cannot."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from steelyard.errors import InvalidRobot, UnreadableFile
from steelyard.inertia import InertialParameters
from steelyard.io._urdf import write_urdf
from steelyard.robot import DHTable, DriveModel, JointLimits, RobotModel, load_robot, robot_names

KINDS = ("revolute", "prismatic", "continuous", "fixed")


def written(robot, tmp_path, **options):
    path = tmp_path / "arm.urdf"
    write_urdf(robot, path, **options)
    return path


def read_again(robot, tmp_path, **options):
    return RobotModel.from_urdf(
        written(robot, tmp_path, **options), gravity_base=robot.gravity_base
    )


def comments(path):
    return [line.strip()[5:-4] for line in path.read_text().splitlines() if "<!--" in line]


def require_same(robot, other, rng, tolerance=1e-9):
    q, v, a = rng.normal(size=(3, 40, robot.n))
    torque = robot.torque(q, v, a)
    again = other.with_drive(robot.drive).torque(q, v, a)
    np.testing.assert_allclose(again, torque, rtol=0, atol=tolerance * np.abs(torque).max())
    np.testing.assert_allclose(
        other.forward_kinematics(q), robot.forward_kinematics(q), rtol=0, atol=1e-12
    )
    assert (other.flange, other.joint_names, other.link_names) == (
        robot.flange,
        robot.joint_names,
        robot.link_names,
    )
    assert other.joint_types == robot.joint_types
    np.testing.assert_array_equal(other.limits.q_min, robot.limits.q_min)
    np.testing.assert_array_equal(other.limits.q_max, robot.limits.q_max)
    for name in ("v_max", "tau_max"):
        limit = getattr(robot.limits, name)
        np.testing.assert_array_equal(
            getattr(other.limits, name), np.where(np.isinf(limit), 1e9, limit)
        )


@pytest.mark.parametrize("name", robot_names())
def test_every_bundled_arm_comes_back(name, tmp_path, rng):
    robot = load_robot(name)
    other = read_again(robot, tmp_path)
    require_same(robot, other, rng)
    payload = InertialParameters.from_com(1.7, [0.03, -0.05, 0.08], np.diag([0.004, 0.005, 0.006]))
    require_same(robot.with_payload(payload), other.with_payload(payload), rng)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_joint_comes_back(kind, tiny, tmp_path, rng):
    robot = RobotModel.from_urdf_text(tiny[kind])
    require_same(robot, read_again(robot, tmp_path), rng)


def test_a_flange_of_any_name_and_a_link_called_base_link(tiny, tmp_path, rng):
    text = tiny["gripper"].replace('"tool0"', '"tcp"').replace('"arm"', '"base_link"')
    robot = RobotModel.from_urdf_text(
        text, locked={"finger_left": 0.1, "finger_right": 0.2}, flange="tcp"
    )
    assert robot.flange not in robot.link_names
    require_same(robot, read_again(robot, tmp_path), rng)


def test_frames_of_classic_links_are_kept_beside_the_links(tmp_path, rng):
    robot = load_robot("ur10e")
    other = read_again(robot, tmp_path)
    q = rng.normal(size=(5, 6))
    for name in robot.link_names:
        if (frame := f"{name}_frame") in other.frames:
            expected = robot.forward_kinematics(q, name)
            np.testing.assert_allclose(other.forward_kinematics(q, frame), expected, atol=1e-12)
    assert "link1_frame" in other.frames


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-8, 0.3])
def test_joints_at_right_angles_keep_their_digits(pitch, tiny, tmp_path, rng):
    text = tiny["revolute"].replace('rpy="0.4 -0.6 0.8"', f'rpy="0.4 {pitch!r} 0.8"')
    robot = RobotModel.from_urdf_text(text)
    require_same(robot, read_again(robot, tmp_path), rng, tolerance=1e-13)


@pytest.mark.parametrize("name", ["ur10e", "panda", "planar2r"])
def test_mujoco_reads_it_and_finds_the_same_torques(name, tmp_path, rng):
    robot = load_robot(name)
    model = mujoco.MjModel.from_xml_path(str(written(robot, tmp_path)))
    model.opt.gravity[:] = robot.gravity_base
    np.testing.assert_allclose(model.dof_frictionloss, robot.drive.coulomb)
    np.testing.assert_allclose(model.dof_damping, robot.drive.viscous)
    model.dof_frictionloss[:] = model.dof_damping[:] = 0
    data = mujoco.MjData(model)
    q, v, a = 0.5 * rng.normal(size=(3, 10, robot.n)) + robot.home
    expected = robot.inverse_dynamics(q, v, a)
    for i in range(len(q)):
        data.qpos, data.qvel, data.qacc = q[i], v[i], a[i]
        mujoco.mj_inverse(model, data)
        inverse = data.qfrc_inverse + data.qfrc_constraint
        np.testing.assert_allclose(inverse, expected[i], atol=1e-6 * np.abs(expected).max())


def test_what_a_urdf_cannot_hold_is_reported(tmp_path):
    drive = replace(
        load_robot("ur10").drive,
        load_coulomb=[0.0, 0.031, 0, 0, 0, 0],
        stribeck=[1.25, 0, 0, 0, 0, 0],
        stribeck_speed=[0.07, 1, 1, 1, 1, 1],
        sign_width=0.013,
        coupling=np.eye(6) + 0.5 * np.eye(6, k=-1),
    )
    robot = load_robot("ur10").with_drive(drive).with_gravity([0.0, 3.0, -9.3])
    robot = replace(
        robot, source="a log -- of --- ours", limits=replace(robot.limits, a_max=np.full(6, 7.5))
    )
    path = written(robot, tmp_path)
    written_down = "\n".join(comments(path))
    for words in (
        "ur10, written by steelyard. Source: a log - - of - - - ours",
        "Units: m, rad, kg",
        "gravity is (0.0 3.0 -9.3) m/s^2 in the base frame; give it again",
        "gains of the drives (14.73 14.33 11.55 11.25 11.5 11.5) Nm/A",
        "coupled drives, motor positions = C joint positions with C = [1.0 0.0 0.0 0.0 0.0 0.0;"
        " 0.5 1.0",
        "Coulomb friction is Fc tanh(v / 0.013 rad/s)",
        "acceleration up to 7.5",
        "rotor inertia Ia [kg m^2] 1.2, offset B [Nm] -0.3426",
        "Stribeck friction Fs [Nm] 1.25, Stribeck speed vs [rad/s] 0.07",
        "load-dependent friction [Nm/Nm] 0.031",
        "viscous friction Fv [Nm (s/rad)^alpha] 21.6084, exponent alpha 0.5758",
        "no negative friction; negative values are written as 0: Fc -0.124 Nm",
    ):
        assert words in written_down, words
    assert '<dynamics damping="0.0" friction="10.0037" />' in path.read_text()


def test_linear_friction_is_held_and_an_upright_arm_says_nothing_of_gravity(tmp_path):
    robot = load_robot("ur10e")
    path = written(robot, tmp_path)
    assert '<dynamics damping="15.0" friction="10.0" />' in path.read_text()
    assert "gravity" not in path.read_text()
    assert "exponent" not in path.read_text()


def two_joints(links=(), *, q_max=np.inf, types=("revolute", "revolute")):
    table = DHTable([0.3, -0.7], [0.2, 0.4], [0.1, 0.5], [0.0, 1.0], joint_types=types)
    inf = np.full(2, np.inf)
    limits = JointLimits(-inf, np.array([q_max, np.inf]), inf, inf, inf)
    return RobotModel.from_dh(table, links=links, limits=limits, drive=DriveModel(np.zeros(2)))


def test_half_open_limits_are_large_and_reported(tmp_path):
    path = written(two_joints(q_max=1.5), tmp_path)
    text = path.read_text()
    assert "no limit of velocity, effort, lower is known: 1e+09 means unlimited" in text
    assert '<joint name="joint1" type="revolute">' in text
    assert '<joint name="joint2" type="continuous">' in text
    assert "the mass is unknown" in text
    again = RobotModel.from_urdf(path)
    assert (again.limits.q_min[0], again.limits.q_max[0]) == (-1e9, 1.5)
    sliding = written(two_joints(types=("revolute", "prismatic")), tmp_path)
    assert RobotModel.from_urdf(sliding).limits.q_max[1] == 1e9


def test_a_link_that_no_body_can_be_is_refused_unless_allowed(tmp_path, rng):
    bad = InertialParameters.from_com(2.0, [0.1, 0.2, -0.1], np.diag([0.01, 0.02, 0.05]), "link2")
    heavy = InertialParameters.from_com(1.0, [0.1, 0, 0], 0.01 * np.eye(3), "link1")
    robot = two_joints([heavy, bad])
    with pytest.raises(
        InvalidRobot, match=r"link 'link2' of arm is not physical: .*triangle inequality.*allow_"
    ):
        written(robot, tmp_path)
    assert not list(tmp_path.iterdir())
    other = read_again(robot, tmp_path, allow_unphysical=True)
    require_same(robot, other, rng)
    assert "not physical: " in (tmp_path / "arm.urdf").read_text()


def test_inertia_without_mass_is_written_when_allowed(tmp_path, rng):
    spin = InertialParameters(0.0, np.zeros(3), np.diag([0.1, 0.2, 0.25]), "link2")
    robot = two_joints([InertialParameters.from_com(1.0, [0.1, 0, 0], 0.01 * np.eye(3)), spin])
    with pytest.raises(InvalidRobot, match="the mass is 0 kg; it must be positive"):
        written(robot, tmp_path)
    text = written(robot, tmp_path, allow_unphysical=True).read_text()
    assert '<mass value="0.0" />' in text
    assert 'iyy="0.2"' in text


def test_other_names_and_missing_folders_are_refused(tmp_path):
    robot = load_robot("planar2r")
    with pytest.raises(UnreadableFile, match=r"a URDF is written to \.urdf or \.xml, not '\.yaml'"):
        write_urdf(robot, tmp_path / "arm.yaml")
    with pytest.raises(UnreadableFile, match=r"there is no folder .*nowhere; make it first"):
        write_urdf(robot, tmp_path / "nowhere" / "arm.urdf")


def test_a_failure_leaves_the_old_file_as_it_was(tmp_path, monkeypatch):
    path = written(load_robot("planar2r"), tmp_path)
    before = path.read_text()

    def broken(*_):
        raise OSError("no space left")

    monkeypatch.setattr("steelyard._saved.os.fsync", broken)
    with pytest.raises(UnreadableFile, match=r"cannot write .*: no space left"):
        write_urdf(load_robot("ur10"), path)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]
