"""Robots by name and from TOML files."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.errors import InvalidRobot, UnknownName, UnreadableFile
from steelyard.robot import DHTable, RobotModel, load_robot, robot_names

ZERO = "alpha = 0\na = 0.0\ntheta = 0.0\n"
JOINT = f'[[joint]]\nname = "lift"\ntype = "prismatic"\n{ZERO}d = 0.2\nq_min = 0.0\nq_max = 0.5\n'
LINK = "link = { mass = 2.0, com = [0.1, 0.2, 0.3], inertia_com_diagonal = [0.02, 0.03, 0.04] }\n"
SECOND = "[[joint]]\nalpha = 1.2\na = 0.3\nd = 0.0\ntheta = 0.4\n"


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return path

    return write


POSTURE = np.array([0.3, -0.7, 0.9, -1.1, 0.6, 1.2, -0.4])  # [rad]
FLANGES = {  # position [m] and rotation vector [rad], from the chains of public URDFs
    "ur3e": [-0.41114, -0.34392, 0.25407, 1.08198, -0.27458, 0.26194],
    "ur5e": [-0.72207, -0.44894, 0.34045, 1.08198, -0.27458, 0.26194],
    "ur16e": [-0.7355, -0.5105, 0.39442, 1.08198, -0.27458, 0.26194],
    "ur20": [-1.38604, -0.77245, 0.61607, 1.08198, -0.27458, 0.26194],
    "fr3": [-0.2498, 0.36066, 0.85787, -1.6249, -2.47238, -0.6363],
    "iiwa7": [-0.26932, 0.32155, 0.87767, -1.72809, 1.06333, 0.60814],
    "med7": [-0.26932, 0.32155, 0.87767, -1.72809, 1.06333, 0.60814],
    "iiwa14": [-0.28162, 0.31774, 0.91297, -1.72809, 1.06333, 0.60814],
    "xarm6": [-0.1505, -0.03913, 0.04676, 2.46553, 0.31744, -0.4564],
    "xarm7": [-0.14265, -0.29618, 0.16575, 2.01557, 0.12054, -1.59121],
    "gen3": [-0.5756, 0.32615, 0.66287, 0.61716, -1.03077, -0.79605],
    "gofa5": [0.30642, 0.10318, 0.59749, 0.19938, 1.9968, -0.23931],
    "kr300": [2.31265, -0.58897, 1.0774, -0.19938, 1.9968, 0.23931],
    "xmate7p": [-0.71842, -0.42345, 0.8433, -0.61716, -1.03077, 0.79605],
}


def test_the_bundled_arms():
    papers = ("kr60ha", "lwr4", "panda", "planar2r", "tx60", "ur10", "ur10e")
    assert sorted(robot_names()) == sorted((*papers, *FLANGES))


@pytest.mark.parametrize("name", FLANGES)
def test_flanges_are_where_the_manufacturers_descriptions_have_them(name):
    robot = load_robot(name)
    T = robot.forward_kinematics(POSTURE[: robot.n])
    turn = Rotation.from_matrix(T[:3, :3]).as_rotvec()
    np.testing.assert_allclose([*T[:3, 3], *turn], FLANGES[name], atol=2e-5)
    assert "Flange: the" in robot.source
    assert np.isfinite(robot.limits.v_max).all()


def test_kuka_axes_turn_as_the_controller_counts_them():
    # seen from above, a positive A1 turns clockwise
    turned = load_robot("kr300").forward_kinematics([0.1, -1.0, 1.2, 0.0, 0.4, 0.0])
    assert turned[1, 3] < -0.1


@pytest.mark.parametrize("name", robot_names())
def test_bundled_arms_are_whole(name):
    robot = load_robot(name)
    assert robot.name == name
    assert robot.source
    assert all(body.is_physical for body in robot.links)
    assert (robot.limits.q_min <= robot.home).all()
    assert (robot.home <= robot.limits.q_max).all()
    assert not robot.home.flags.writeable
    assert (robot.drive.rotor_inertia >= 0).all()


def test_a_robot_file_is_read_in_full(write):
    robot = load_robot(
        write(
            'title = "Mine"\nsource = "My bench."\nlink_source = "Weighed."\nconvention ='
            ' "classic"\n'
            "gravity_base = [0.0, 9.81, 0.0]\nhome = [0.1, 0.2]\nflange_translation = [0.0, 0.0,"
            " 0.05]\nflange_rpy = [0.3, -0.2, 0.5]\n"
            + JOINT
            + LINK
            + "v_max = 1.5\na_max = 2.5\ntau_max = 90.0\n"
            + SECOND
            + "link = { mass = 1.0, com = [0, 0, 0.1],"
            " inertia_com = [[0.02, 0.001, 0], [0.001, 0.02, 0], [0, 0, 0.03]] }\n"
            "[drive]\nrotor_inertia = [0.1, 0.2]\ncoulomb = 3.0\ngain = [11.0, 12.0]\nsign_width ="
            " 0.02\n"
            "coupling = [[30.0, 0.0], [5.0, 40.0]]\n"
        )
    )
    assert (robot.name, robot.source, robot.dh.convention) == (
        "mine",
        "Mine. My bench. Weighed.",
        "classic",
    )
    assert robot.joint_names == ("lift", "joint2")
    assert robot.joint_types == ("prismatic", "continuous")
    np.testing.assert_array_equal(robot.gravity_base, [0, 9.81, 0])
    np.testing.assert_array_equal(robot.home, [0.1, 0.2])
    columns = [robot.dh.alpha, robot.dh.a, robot.dh.d, robot.dh.theta]
    np.testing.assert_array_equal(columns, [[0, 1.2], [0, 0.3], [0.2, 0], [0, 0.4]])
    limits = robot.limits
    np.testing.assert_array_equal([limits.q_min, limits.q_max], [[0, -np.inf], [0.5, np.inf]])
    np.testing.assert_array_equal([limits.v_max, limits.a_max], [[1.5, np.inf], [2.5, np.inf]])
    np.testing.assert_array_equal(limits.tau_max, [90.0, np.inf])
    np.testing.assert_allclose(robot.links[0].com, [0.1, 0.2, 0.3])
    np.testing.assert_allclose(robot.links[1].inertia_com[0, 1], 0.001)
    offset = np.linalg.inv(robot.T_joint_link[-1]) @ robot.T_joint_flange
    np.testing.assert_allclose(offset[:3, 3], [0, 0, 0.05], atol=1e-15)
    c, s = np.cos([0.3, -0.2, 0.5]), np.sin([0.3, -0.2, 0.5])
    x_axis = [c[2] * c[1], s[2] * c[1], -s[1]]  # roll, pitch, yaw as in a URDF
    np.testing.assert_allclose(offset[:3, 0], x_axis, atol=1e-12)
    drive = robot.drive
    np.testing.assert_array_equal(
        [drive.rotor_inertia, drive.coulomb, drive.gain], [[0.1, 0.2], [3, 3], [11, 12]]
    )
    np.testing.assert_array_equal(drive.coupling, [[30, 0], [5, 40]])
    assert drive.sign_width == 0.02


def test_bundled_arms_say_which_frame_their_makers_call_the_flange():
    assert [name for name in robot_names() if " Flange: " not in load_robot(name).source] == []


def test_the_flange_of_the_ur10_is_that_of_its_maker():
    """By the maker's own table: classic DH, base turned by 180 degrees about z."""
    half = np.pi / 2
    maker = DHTable(
        alpha=[half, 0, 0, half, -half, 0],
        a=[0, -0.612, -0.5723, 0, 0, 0],
        d=[0.1273, 0, 0, 0.163941, 0.1157, 0.0922],
        theta=np.zeros(6),
        convention="classic",
    )
    T_base_maker = np.diag([-1.0, -1.0, 1.0, 1.0])
    q = np.array([0.3, -1.1, 0.7, 0.4, -0.9, 1.3])
    expected = T_base_maker @ RobotModel.from_dh(maker).forward_kinematics(q)
    np.testing.assert_allclose(load_robot("ur10").forward_kinematics(q), expected, atol=1e-4)


def test_a_bare_robot_file_is_enough(write):
    robot = load_robot(write(SECOND))
    assert robot.source == "robot file 'mine'"
    assert robot.links[0].mass == 0.0
    np.testing.assert_array_equal(robot.gravity_base, [0, 0, -9.81])


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_a_urdf_file(tmp_path, tiny, suffix):
    path = tmp_path / f"arm{suffix}"
    path.write_text(tiny["revolute"])
    assert (
        load_robot(path).joint_names
        == load_robot(str(path)).joint_names
        == ("shoulder", "elbow", "wrist")
    )


def test_a_file_that_is_no_toml_or_nested_without_end(write):
    for text in ("name = = 3", "a = " + "[" * 5000):
        with pytest.raises(UnreadableFile, match=r"mine\.toml is not valid TOML"):
            load_robot(write(text))


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(
        UnknownName,
        match=r"no robot 'ur99': bundled are fr3, gen3, .*, xmate7p; or give a \.urdf or",
    ):
        load_robot("ur99")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UnreadableFile, match=r"no\.toml: no such file"):
        load_robot(tmp_path / "no.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableFile, match=r"binary\.toml is not valid TOML"):
        load_robot(tmp_path / "binary.toml")
    with pytest.raises(UnreadableFile, match=r"no\.urdf: no such file"):
        load_robot(tmp_path / "no.urdf")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r": it has no \[\[joint\]\]"),
        (
            "payload = 3\n" + JOINT,
            r": 'payload' is not a field; the fields are joint, title, ",
        ),
        (
            JOINT + "length = 3\n",
            r": 'joint\[0\]\.length' is not a field; the fields are alpha, a, d",
        ),
        (SECOND + "length = 3\n", r": 'joint\[0\]\.length' is not a field"),
        (
            JOINT + "[drive]\nbacklash = 1\n",
            r": \[drive\]: 'backlash' is not a field; the fields are rotor_inertia, ",
        ),
        (JOINT + "[drive]\n_mixing = 1\n", r": \[drive\]: '_mixing' is not a field"),
        (
            JOINT + LINK.replace("com =", "centre ="),
            r": 'joint\[0\]\.link\.centre' is not a field; the fields are mass, ",
        ),
        (
            JOINT + "link = { mass = 1.0, com = [0, 0, 0] }\n",
            r": link1 needs mass, com, and inertia_com or ",
        ),
        (JOINT + LINK.replace("mass = 2.0, ", ""), r": 'joint\[0\]\.link\.mass' is missing"),
        (
            JOINT + LINK.replace("0.3]", "]"),
            r": 'joint\[0\]\.link\.com' must have shape \(3,\), got \(2,\)",
        ),
        (
            JOINT.replace("alpha = 0", 'alpha = "pi/2"'),
            r": 'joint\[0\]\.alpha' must be a finite number, got 'pi/2'",
        ),
        (
            JOINT.replace("alpha = 0", "alpha = [1.0]"),
            r": 'joint\[0\]\.alpha' must be a finite number, got \[1\.0\]",
        ),
        ("joint = 3", r": 'joint' must be a list, got 3"),
        (JOINT.replace("prismatic", "ball"), r": 'joint\[0\]\.type' must be one of .*, got 'ball'"),
        (JOINT.replace("q_max = 0.5", "q_max = 0.0"), r": lift: q_min 0 is not below q_max 0"),
        (
            'convention = "craig"\n' + JOINT,
            r": 'convention' must be 'modified' or 'classic', got 'craig'",
        ),
        ("home = [0.1, 0.2]\n" + JOINT, r": 'home' must have shape \(n,\) with n = 1, got \(2,\)"),
        ("home = [nan]\n" + JOINT, r": 'home' must be finite, got \[nan\]"),
        (
            "flange_translation = [0.1]\n" + JOINT,
            r": 'flange_translation' must have shape \(3,\)",
        ),
        ("gravity_base = [0.0, 9.81]\n" + JOINT, r": 'gravity_base' must have shape \(3,\)"),
        (
            JOINT + "[drive]\ncoulomb = [1.0, 2.0]\n",
            r": \[drive\]: 'coulomb' must have shape \(n,\) with n = 1, got \(2,\)",
        ),
        (JOINT.replace("\na = 0.0\n", "\n"), r": 'joint\[0\]\.a' is missing"),
        (
            JOINT.replace("a = 0.0", "a = 1" + "0" * 400),
            r": 'joint\[0\]\.a' must be a finite number",
        ),
        (
            JOINT.replace("a = 0.0", "a = true"),
            r": 'joint\[0\].a' must be a finite number, got True",
        ),
        (JOINT + JOINT, r": each joint needs its own name, got lift, lift"),
    ],
)
def test_robot_files_that_are_refused(write, text, message):
    with pytest.raises(InvalidRobot, match=f"^robot file 'mine'{message}"):
        load_robot(write(text))
