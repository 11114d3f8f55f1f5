"""Limits: files, orientation workspaces, surroundings; refusals say what is wrong."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.errors import InvalidRobot, InvalidTrajectory, UnreadableFile
from steelyard.excitation import (
    Cone,
    DesignLimits,
    OrientationWorkspace,
    Sector,
    Surroundings,
)
from steelyard.excitation._space import MotionSpace
from steelyard.io._designs import load_limits
from steelyard.robot import JointLimits, RobotModel, load_robot
from steelyard.robot._geometry import Body, CollisionModel
from steelyard.trajectory import FourierTrajectory

FILE = """
form = "amplitude"
v_max = 1.5
a_max = [1, 2, 3, 4, 5, 6]
q_max = [1, 1, 1, 1, 1, 1]
height = [0.2, inf]
linear_speed = 2.0
angular_speed = [1, 2, 3]
[[sector]]
axis = "z"
theta_deg = [120, 180]
phi_deg = [-90, 45]
[[cone]]
axis = "x"
direction = [0, 0, 2]
half_angle_deg = 30
[surroundings]
floor = -0.1
clearance = 0.03
radius = 0.07
self_collision = false
wall = [{ point = [0, -0.7, 0], normal = [0, 1, 0] }]
box = [{ centre = [0.9, 0, 0.2], size = [0.4, 0.8, 0.4] }]
"""


@pytest.fixture(scope="module")
def arm():
    return load_robot("ur10")


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "limits.toml"
        path.write_text(text)
        return path

    return write


def test_a_file_sets_every_limit(arm, written):
    limits = load_limits(arm, written(FILE))
    assert limits.form == "amplitude"
    np.testing.assert_array_equal(limits.joints.v_max, 1.5)
    np.testing.assert_array_equal(limits.joints.a_max, [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(limits.joints.q_max, 1)
    np.testing.assert_array_equal(limits.joints.q_min, arm.limits.q_min)
    np.testing.assert_array_equal(limits.joints.tau_max, arm.limits.tau_max)
    assert limits.height == (0.2, np.inf)
    np.testing.assert_array_equal(limits.linear_speed, 2)
    np.testing.assert_array_equal(limits.angular_speed, [1, 2, 3])
    sector, cone = limits.workspace.regions
    np.testing.assert_allclose(np.degrees([*sector.theta, *sector.phi]), [120, 180, -90, 45])
    np.testing.assert_allclose(cone.direction, [0, 0, 1])
    assert np.degrees(cone.half_angle) == pytest.approx(30)
    assert [body.name for body in limits.surroundings.obstacles] == ["floor", "wall 1", "box 1"]
    assert (limits.surroundings.clearance, limits.surroundings.radius) == (0.03, 0.07)
    assert not limits.surroundings.self_collision


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("speed = 1", "'speed' is not a field; the fields are q_min"),
        ("[surroundings]\nroof = 1", r"'surroundings.roof' is not a field"),
        ("v_max = [1, 2]", "v_max must be one number or 6"),
        (
            "q_min = 7",
            "shoulder_pan_joint must be above 7 and below 6.28319; they miss .* by 0.7168",
        ),
        ("height = [2, 1]", r"height: the lowest \(2 m\) lies 1 m above the highest \(1 m\)"),
        (
            "linear_speed = -1",
            "'linear_speed' must be a number above 0 or an array with shape .*, got -1",
        ),
        ("form = 'loose'", "'form' must be 'exact' or 'amplitude', got 'loose'"),
        ("[[sector]]\naxis = 'w'", r"'sector\[0\].axis' must be one of 'x', 'y', 'z', got 'w'"),
        ("[[sector]]\naxis = 'x'\ntheta_deg = [90, 30]", "axis x: theta must rise within 0 and pi"),
        ("[[sector]]\naxis = 'x'\nphi_deg = [90, 30]", "axis x: phi must rise"),
        (
            "[[cone]]\naxis = 'x'\ndirection = [0, 0, 0]\nhalf_angle_deg = 9",
            "a cone needs a direction",
        ),
        (
            "[[cone]]\naxis = 'x'\ndirection = [0, 0, 1]\nhalf_angle_deg = 0",
            "half_angle must lie in 0 to pi",
        ),
        ("[[cone]]\naxis = 'x'", r"limits .*: 'cone\[0\].direction' is missing"),
        (
            "[surroundings]\nclearance = -1",
            "'surroundings.clearance' must be a finite number of at least 0, got -1",
        ),
        ("[surroundings]\nradius = []", r"surroundings.radius must be one number or 6, got \[\]"),
        (
            "[surroundings]\nradius = [0.1]",
            r"surroundings.radius must be one number or 6, got \[0.1\]",
        ),
        (
            "[surroundings]\nradius = 0",
            r"'surroundings.radius' must be a finite number above 0 or a list",
        ),
    ],
)
def test_a_file_with_nonsense_is_refused(arm, written, text, words):
    with pytest.raises(InvalidTrajectory, match=words):
        load_limits(arm, written(text))


@pytest.mark.parametrize("radius", [[], [0.1], [[0.1] * 6], 0.0])
def test_capsules_have_one_radius_or_one_for_each_link(arm, radius):
    with pytest.raises(InvalidRobot, match="need one positive radius, or one for each of 6 links"):
        Body.capsules(arm, radius)


def test_files_that_are_none_are_refused(arm, written, tmp_path):
    with pytest.raises(UnreadableFile, match="no such file"):
        load_limits(arm, tmp_path / "none.toml")
    with pytest.raises(UnreadableFile, match="is not valid TOML"):
        load_limits(arm, written("="))


def test_intersection_is_the_tighter_of_both(arm):
    other = JointLimits([-1.0] * 6, [9.0] * 6, [9.0] * 6, [3.0] * 6, [40.0] * 6)
    both = DesignLimits.of(arm).narrowed(other).joints
    np.testing.assert_array_equal(both.q_min, -1)
    np.testing.assert_array_equal(both.q_max, arm.limits.q_max)
    np.testing.assert_array_equal(both.a_max, 3)
    np.testing.assert_array_equal(both.tau_max, [40] * 6)
    with pytest.raises(InvalidTrajectory, match="limits of 6 and of 2 joints"):
        DesignLimits.of(arm).narrowed(JointLimits.none(2))


def test_smooth_slacks_and_angles_agree_on_what_is_inside(rng):
    R = Rotation.random(4000, rng).as_matrix()
    workspace = OrientationWorkspace(
        (
            Sector("z", (0.3, 2.5), (-1.0, 2.9)),
            Sector("y", phi=(2.0, 5.0)),
            Cone("x", (1.0, 2.0, -1.0), 1.3),
        )
    )
    inside = (workspace.slacks(R, np) >= 0).all(axis=1)
    np.testing.assert_array_equal(inside, workspace.contains(R))
    assert 100 < inside.sum() < 2000
    np.testing.assert_array_equal(inside, (workspace.margins(R) >= 0).all(axis=1))


def test_a_sector_lies_between_its_angles(rng):
    R = Rotation.random(2000, rng).as_matrix()
    x, y, z = R[:, :, 2].T  # the z axis of the sensor
    theta = np.arccos(z)
    phi = np.arctan2(y, x)
    inside = (theta > 0.3) & (theta < 2.5) & (phi > 0.4) & (phi < 2.9)
    found = OrientationWorkspace((Sector("z", (0.3, 2.5), (0.4, 2.9)),)).contains(R)
    np.testing.assert_array_equal(found, inside)
    across = (phi > 2.5) | (phi < -2.5)  # the border of arctan2
    found = OrientationWorkspace((Sector("z", phi=(2.5, 2 * np.pi - 2.5)),)).contains(R)
    np.testing.assert_array_equal(found, across)


def test_margin_of_a_cone_is_the_angle_to_its_border():
    workspace = OrientationWorkspace.around(np.eye(3), np.radians(50))
    R = Rotation.from_euler("z", 20, degrees=True).as_matrix()
    np.testing.assert_allclose(np.degrees(workspace.margins(R[None])), [[30, 30, 50]], atol=1e-9)


def test_collision_shapes_of_a_urdf_move_with_their_links(tmp_path, two_links, rng):
    sphere = "<geometry><sphere radius='0.1'/></geometry>"
    shape = f"<collision><origin xyz='0.5 0 0' rpy='0 0 0'/>{sphere}</collision>"
    text = two_links().replace('<link name="arm">', f'<link name="arm">{shape}')
    path = tmp_path / "arm.urdf"
    path.write_text(text)
    robot = RobotModel.from_urdf(path)
    model = CollisionModel(
        robot, Body.from_urdf(robot, path), [Body.half_space("floor", (0, 0, -1), (0, 0, 1))]
    )
    q = rng.uniform(-2, 2, (7, 1))
    centre = robot.forward_kinematics(q, "arm") @ np.array([0.5, 0, 0, 1.0])
    np.testing.assert_allclose(model.distances(q)[:, 0], centre[:, 2] + 1 - 0.1, atol=1e-9)
    path.write_text(two_links())
    with pytest.raises(
        InvalidRobot, match="has no <collision> shapes; give a radius for capsules instead"
    ):
        Body.from_urdf(RobotModel.from_urdf(path), path)


def test_bodies_that_are_none_are_refused(arm):
    with pytest.raises(InvalidRobot, match="capsules need one positive radius, or one for each"):
        Body.capsules(arm, -1.0)
    with pytest.raises(InvalidRobot, match=r"wall needs a point and a normal"):
        Body.half_space("wall", (0, 0, 0), (0, 0, 0))
    with pytest.raises(InvalidRobot, match="crate needs a centre and three positive edges"):
        Body.box("crate", (0, 0, 0), (1, 1, 0))


def test_two_links_have_no_pair_and_endless_joints_no_middle():
    robot = load_robot("planar2r")
    distance, slope = Surroundings(clearance=0.0, radius=0.01).model(robot).slopes(np.ones((3, 2)))
    assert distance.shape == (3, 0)
    assert slope.shape == (3, 0, 2)
    limits = DesignLimits(replace(robot.limits, v_max=[2.0, 1.5]))
    space = MotionSpace(np.zeros(2), np.arange(2), 2, 4.0, False, False, np.ones(2))
    with np.errstate(all="raise"):
        (speeds,) = space.joint_families(limits, 8)  # of positions and accelerations there are none
    np.testing.assert_allclose(1 / speeds.factor, [2.0, 1.5], rtol=0.1)


def test_self_collision_is_seen(arm):
    model = Surroundings(clearance=0.0).model(arm)
    folded = np.array([0.0, -1.0, 3.05, 0.0, 0.0, 0.0])
    assert model.distances(folded[None]).min() < 0
    assert model.distances(arm.home[None]).min() > 0
    names = model.pair_names[int(model.distances(folded[None]).argmin())]
    assert "link" in names


def pyramid(path):
    """A mesh: a corner of a cube of 0.2 m, which is convex."""
    corners = 0.2 * np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
    triangles = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    path.parent.mkdir(parents=True)
    facets = [
        struct.pack("<12fH", 0, 0, 0, *corners[list(three)].ravel(), 0) for three in triangles
    ]
    path.write_bytes(bytes(80) + struct.pack("<I", 4) + b"".join(facets))


@pytest.mark.parametrize(
    "how", ["relative", "package", "given", "ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "none"]
)
def test_meshes_are_found_or_replaced_and_both_is_said(
    how, tmp_path, two_links, written, monkeypatch
):
    places = {"relative": "arms", "package": "", "given": "here", "ROS_PACKAGE_PATH": "ros"}
    folder = tmp_path / ("prefix/share" if how == "AMENT_PREFIX_PATH" else places.get(how, "lost"))
    if how != "none":
        pyramid(folder / "pkg/meshes/arm.stl")
    if "_" in how:
        monkeypatch.setenv(how, str(tmp_path / "prefix" if how == "AMENT_PREFIX_PATH" else folder))
    name = "pkg/meshes/arm.stl" if how == "relative" else "package://pkg/meshes/arm.stl"
    shape = f"<collision><geometry><mesh filename='{name}'/></geometry></collision>"
    path = tmp_path / "arms" / "arm.urdf"
    path.parent.mkdir(exist_ok=True)
    path.write_text(two_links().replace('<link name="arm">', f'<link name="arm">{shape}'))
    robot = RobotModel.from_urdf(path)
    given = f"package_folders = ['{folder}']\n" if how == "given" else ""
    limits = load_limits(robot, written(f"[surroundings]\nfloor = -3.0\n{given}"), urdf=path)
    motion = FourierTrajectory([[0.1]], [[0.0]], [0.3], 1.0)
    certificate = limits.certify(robot, motion, rate_hz=20.0)
    if how == "none":
        words = (
            "arm: capsule of 60 mm radius, in place of package://pkg/meshes/arm.stl, which was"
            " not found"
        )
        assert certificate.bodies == (words,)
        assert certificate.unchecked[-1] == f"the true shape of {words}"
    else:
        assert certificate.bodies == ("arm: convex hull of arm.stl",)
        assert not any("shape" in words for words in certificate.unchecked)
        lowest = (
            robot.forward_kinematics([[0.3]], "arm")
            @ np.array(
                [(0, 0, 0, 1), (0.2, 0, 0, 1), (0, 0.2, 0, 1), (0, 0, 0.2, 1)], dtype=float
            ).T
        )
        distance = limits.surroundings.model(robot).distances([[0.3]])
        np.testing.assert_allclose(distance, [[lowest[0, 2].min() + 3]], atol=1e-6)


def test_pairs_that_no_joint_can_separate_are_left_out_and_listed(arm):
    table = Body.half_space("table", (0, 0, 0.1), (0, 0, 1))
    base, *rest = Body.capsules(arm, 0.05)
    surroundings = Surroundings(
        (table,), (replace(base, name="shoulder", joint=1), *rest), self_collision=False
    )
    model = surroundings.model(arm)
    assert model.left_out == ("shoulder and table",)
    assert "shoulder and table" not in model.pair_names
    assert "link 2 and table" in model.pair_names
    still = FourierTrajectory(np.zeros((6, 1)), np.zeros((6, 1)), arm.home, 1.0)
    certificate = DesignLimits(arm.limits, surroundings=surroundings).certify(
        arm, still, rate_hz=5.0
    )
    assert certificate.left_out == ("shoulder and table",)
