"""Kinematics and dynamics against matrix products and sums over point masses.

The dynamics here know no inertia tensor, no recursion and no Pinocchio. A link is a cloud of
points; with the acceleration of every point, d'Alembert gives the torque of joint i, which turns
about z through o, as z . sum (p - o) x m (a_p - g) over all points p behind it (and as z . sum m
(a_p - g) where it slides).
"""

import json
import tomllib
import xml.etree.ElementTree as ET
from importlib import resources

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.inertia import InertialParameters, frame_change_matrix
from steelyard.robot import (
    DHTable,
    DriveModel,
    JointLimits,
    ParameterBasis,
    RobotModel,
    load_robot,
)

ARMS = ("kr300", "xarm6", "kr60ha", "lwr4", "panda", "planar2r", "tx60", "ur10", "ur10e")


# --- own kinematics and dynamics


def rot(axis, angle):
    T = np.eye(4)
    T[:3, :3] = Rotation.from_euler(axis, angle).as_matrix()
    return T


def trans(x, y, z):
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def step(table, i, qi):
    """Transforms before and after the joint's motion: frame i = frame i-1 @ before @ after."""
    alpha, a, d, theta = table["alpha"][i], table["a"][i], table["d"][i], table["theta"][i]
    motion = trans(0, 0, qi) if table["types"][i] == "prismatic" else rot("z", qi)
    if table["convention"] == "modified":
        return rot("x", alpha) @ trans(a, 0, 0), rot("z", theta) @ trans(0, 0, d) @ motion
    return np.eye(4), motion @ rot("z", theta) @ trans(0, 0, d) @ trans(a, 0, 0) @ rot("x", alpha)


def link_poses(table, q):
    poses = [np.eye(4)]
    for i, qi in enumerate(q):
        before, after = step(table, i, qi)
        poses.append(poses[-1] @ before @ after)
    return poses[1:]


def own_torque(table, clouds, gravity, q, v, a):
    """The torque of every joint from the inertia forces of all points."""
    w, dw, origin, acceleration = np.zeros((4, 3))
    T, joints, points = np.eye(4), [], []
    for i in range(len(q)):
        before, after = step(table, i, q[i])
        axis_frame = T @ before
        z, o = axis_frame[:3, 2], axis_frame[:3, 3]
        r = o - origin
        acceleration = acceleration + np.cross(dw, r) + np.cross(w, np.cross(w, r))
        if table["types"][i] == "prismatic":
            acceleration = acceleration + z * a[i] + 2 * np.cross(w, z * v[i])
        else:
            dw = dw + z * a[i] + np.cross(w, z * v[i])
            w = w + z * v[i]
        origin, T = o, axis_frame @ after
        joints.append((z, o))
        for m, x in zip(*clouds[i], strict=True):
            p = T[:3, :3] @ x + T[:3, 3]
            a_p = acceleration + np.cross(dw, p - o) + np.cross(w, np.cross(w, p - o))
            points.append((i, p, m * (a_p - gravity)))
    return [
        sum(
            z @ (f if table["types"][i] == "prismatic" else np.cross(p - o, f))
            for k, p, f in points
            if k >= i
        )
        for i, (z, o) in enumerate(joints)
    ]


def cloud_of(mass, com, inertia_com):
    """Six points with the given mass, centre of mass and inertia about it."""
    spread, axes = np.linalg.eigh(np.trace(inertia_com) / 2 * np.eye(3) - inertia_com)
    arms = np.sqrt(3 * spread / mass) * axes
    return np.full(6, mass / 6), np.asarray(com) + np.concatenate([arms.T, -arms.T])


def random_table(rng, types, convention):
    n = len(types)
    return {
        "alpha": rng.uniform(-np.pi, np.pi, n),
        "a": rng.uniform(-0.5, 0.5, n),
        "d": rng.uniform(-0.5, 0.5, n),
        "theta": rng.uniform(-np.pi, np.pi, n),
        "types": types,
        "convention": convention,
    }


def random_clouds(rng, n):
    return [(rng.uniform(0.2, 2.0, 5), rng.normal(0.1, 0.2, (5, 3))) for _ in range(n)]


def as_robot(table, clouds, **more):
    columns = (table[key] for key in ("alpha", "a", "d", "theta", "convention", "types"))
    links = [InertialParameters.from_points(m, x) for m, x in clouds]
    return RobotModel.from_dh(DHTable(*columns), links=links, **more)


def table_in_file(name):
    """The DH table, links and gravity of a bundled arm, read from its file alone."""
    text = (resources.files("steelyard.robot") / "arms" / f"{name}.toml").read_text()
    content = tomllib.loads(text)
    joints = content["joint"]
    table = {key: [j[key] for j in joints] for key in ("alpha", "a", "d", "theta")}
    table |= {"types": ["revolute"] * len(joints), "convention": content["convention"]}
    links = [j["link"] for j in joints]
    clouds = [cloud_of(b["mass"], b["com"], inertia_in_file(b)) for b in links]
    return table, clouds, np.array(content.get("gravity_base", (0, 0, -9.81)))


def inertia_in_file(link):
    if "inertia_com" in link:
        return np.array(link["inertia_com"])
    return np.diag(link["inertia_com_diagonal"])


def motion(rng, n, count=6):
    return rng.uniform(-1.5, 1.5, (3, count, n))


def random_transform(rng):
    return trans(*rng.normal(0, 0.3, 3)) @ rot("xyz", rng.normal(size=3))


def random_body(rng, frame="flange"):
    return InertialParameters.from_points(
        rng.uniform(0.1, 1.0, 6), rng.normal(0.1, 0.2, (6, 3)), frame
    )


def random_drive(rng, n, **more):
    values = {
        name: rng.uniform(0.3, 2.0, n)
        for name in ("rotor_inertia", "coulomb", "viscous", "exponent")
    }
    return DriveModel(**values, offset=rng.normal(size=n), **more)


MIXED = [
    (("revolute", "prismatic", "revolute", "prismatic"), "modified"),
    (("prismatic", "revolute", "prismatic", "revolute"), "classic"),
    (("revolute",) * 4, "modified"),
    (("revolute",) * 4, "classic"),
]


# --- kinematics


@pytest.mark.parametrize(("types", "convention"), MIXED)
def test_forward_kinematics_is_the_product_of_dh_matrices(rng, types, convention):
    table = random_table(rng, types, convention)
    T_link_flange = random_transform(rng)
    robot = as_robot(table, random_clouds(rng, 4), T_link_flange=T_link_flange)
    q = rng.uniform(-1.5, 1.5, 4)
    poses = link_poses(table, q)
    for i, T in enumerate(poses):
        np.testing.assert_allclose(robot.forward_kinematics(q, f"link{i + 1}"), T, atol=1e-12)
    np.testing.assert_allclose(robot.forward_kinematics(q), poses[-1] @ T_link_flange, atol=1e-12)


def derivatives(function, h=2e-3):
    """First and second derivative at 0, by stencils of sixth order."""
    f = [function(k * h) for k in range(-3, 4)]
    first = (-f[0] + 9 * f[1] - 45 * f[2] + 45 * f[4] - 9 * f[5] + f[6]) / (60 * h)
    second = (
        2 * f[0] - 27 * f[1] + 270 * f[2] - 490 * f[3] + 270 * f[4] - 27 * f[5] + 2 * f[6]
    ) / (180 * h * h)
    return first, second


def vee(S):
    return np.array([S[2, 1] - S[1, 2], S[0, 2] - S[2, 0], S[1, 0] - S[0, 1]]) / 2


@pytest.mark.parametrize("frame", [None, "link2"])
@pytest.mark.parametrize(("types", "convention"), MIXED)
def test_frame_motion_is_the_derivative_of_the_pose(rng, types, convention, frame):
    robot = as_robot(
        random_table(rng, types, convention),
        random_clouds(rng, 4),
        T_link_flange=random_transform(rng),
    )
    q, v, a = motion(rng, 4)
    seen = robot.frame_motion(q, v, a, frame)
    for i in range(len(q)):
        T = robot.forward_kinematics(q[i], frame)
        first, second = derivatives(
            lambda t, i=i: robot.forward_kinematics(q[i] + v[i] * t + a[i] * t**2 / 2, frame)
        )
        R, dR, ddR = T[:3, :3], first[:3, :3], second[:3, :3]
        np.testing.assert_allclose(seen.linear_velocity[i], R.T @ first[:3, 3], atol=1e-8)
        np.testing.assert_allclose(seen.angular_velocity[i], R.T @ vee(dR @ R.T), atol=1e-8)
        np.testing.assert_allclose(seen.linear_acceleration[i], R.T @ second[:3, 3], atol=1e-7)
        np.testing.assert_allclose(seen.angular_acceleration[i], R.T @ vee(ddR @ R.T), atol=1e-7)


def constant_between(first, second, postures):
    """Distance of T_turn T_first(q) T_tool from T_second(q), best quarter turn of the base."""
    ours = np.array([first(q) for q in postures])
    theirs = np.array([second(q) for q in postures])
    worst = []
    for quarters in range(4):
        moved = rot("z", quarters * np.pi / 2) @ ours
        T_tool = np.linalg.inv(moved[0]) @ theirs[0]
        worst.append(np.abs(moved @ T_tool - theirs).max())
    return min(worst)


def test_ur10e_is_the_arm_of_the_recordings(rng, shared_data):
    """The recordings' chain is rounded to millimetres and names its base and tool otherwise."""
    chain = json.loads((shared_data / "ur10e" / "kinematics.json").read_text())

    def recorded(q):
        T = np.eye(4)
        for joint, qi in zip(chain["joints"], q, strict=True):
            turn = np.eye(4)
            turn[:3, :3] = Rotation.from_rotvec(np.array(joint["axis"]) * qi).as_matrix()
            T = T @ trans(*joint["xyz"]) @ rot("xyz", joint["rpy"]) @ turn
        return T @ trans(*chain["ee"]["xyz"]) @ rot("xyz", chain["ee"]["rpy"])

    postures = rng.uniform(-np.pi, np.pi, (20, 6))
    assert constant_between(load_robot("ur10e").forward_kinematics, recorded, postures) < 0.003


def test_ur10_turns_as_the_manufacturer_says(rng):
    """xu2024's modified table against the maker's classic one: same arm, base turned by pi."""
    table = {
        "alpha": [np.pi / 2, 0, 0, np.pi / 2, -np.pi / 2, 0],
        "a": [0, -0.612, -0.5723, 0, 0, 0],
    }
    table |= {"d": [0.1273, 0, 0, 0.163941, 0.1157, 0.0922], "theta": [0] * 6}
    table |= {"types": ["revolute"] * 6, "convention": "classic"}
    postures = rng.uniform(-np.pi, np.pi, (20, 6))
    manufacturer = lambda q: link_poses(table, q)[-1]  # noqa: E731
    assert constant_between(load_robot("ur10").forward_kinematics, manufacturer, postures) < 1e-12


def test_panda_has_the_table_of_the_recordings(shared_data):
    rows = np.array(json.loads((shared_data / "panda" / "kinematics.json").read_text())["mdh"])
    dh = load_robot("panda").dh
    assert dh.convention == "modified"
    np.testing.assert_allclose(np.column_stack([dh.alpha, dh.a, dh.d, dh.theta]), rows, atol=1e-12)


# --- dynamics


@pytest.mark.parametrize(("types", "convention"), MIXED)
def test_inverse_dynamics_is_that_of_point_masses(rng, types, convention):
    table, clouds = random_table(rng, types, convention), random_clouds(rng, 4)
    gravity = rng.normal(0, 6.0, 3)
    robot = as_robot(table, clouds).with_gravity(gravity)
    q, v, a = motion(rng, 4)
    expected = [own_torque(table, clouds, gravity, *row) for row in zip(q, v, a, strict=True)]
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), expected, atol=1e-10)
    at_rest = [own_torque(table, clouds, gravity, qi, np.zeros(4), np.zeros(4)) for qi in q]
    np.testing.assert_allclose(robot.gravity_torque(q), at_rest, atol=1e-10)


@pytest.mark.parametrize("name", ARMS)
def test_bundled_arms_move_like_the_numbers_in_their_files(rng, name):
    robot, (table, clouds, gravity) = load_robot(name), table_in_file(name)
    q, v, a = motion(rng, robot.n, 3)
    expected = [own_torque(table, clouds, gravity, *row) for row in zip(q, v, a, strict=True)]
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        robot.forward_kinematics(q[0], f"link{robot.n}"), link_poses(table, q[0])[-1], atol=1e-12
    )


def numbers(element, key):
    return np.array(element.get(key).split(), dtype=float)


def placed(element):
    return trans(*numbers(element, "xyz")) @ rot("xyz", numbers(element, "rpy"))


def urdf_points(text):
    """Masses of all points of a URDF chain and their positions for q, read from the XML."""
    root, at = ET.fromstring(text), {}
    for link in root.iter("link"):
        inertial = link.find("inertial")
        entries = [
            float(inertial.find("inertia").get(k))
            for k in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        ]
        inertia = np.zeros((3, 3))
        inertia[np.triu_indices(3)] = entries
        inertia = np.triu(inertia) + np.triu(inertia, 1).T
        masses, x = cloud_of(float(inertial.find("mass").get("value")), [0, 0, 0], inertia)
        T = placed(inertial.find("origin"))
        at[link.get("name")] = masses, x @ T[:3, :3].T + T[:3, 3]

    def positions(q):
        T, q, points = np.eye(4), list(q), []
        for joint in root.iter("joint"):
            axis = numbers(joint.find("axis"), "xyz") / np.linalg.norm(
                numbers(joint.find("axis"), "xyz")
            )
            T = T @ placed(joint.find("origin"))
            if joint.get("type") == "prismatic":
                T = T @ trans(*axis * q.pop(0))
            elif joint.get("type") != "fixed":
                turn = np.eye(4)
                turn[:3, :3] = Rotation.from_rotvec(axis * q.pop(0)).as_matrix()
                T = T @ turn
            points.append(at[joint.find("child").get("link")][1] @ T[:3, :3].T + T[:3, 3])
        return np.concatenate(points)

    return np.concatenate(
        [at[j.find("child").get("link")][0] for j in root.iter("joint")]
    ), positions


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "continuous", "fixed"])
def test_urdf_dynamics_do_the_virtual_work_of_point_masses(rng, tiny, kind):
    """tau_i = sum m (a_p - g) . dp/dq_i over all points, a_p and dp/dq by differences."""
    gravity = rng.normal(0, 6, 3)
    robot = RobotModel.from_urdf_text(tiny[kind], gravity_base=gravity)
    masses, positions = urdf_points(tiny[kind])
    q, v, a = rng.uniform(-1.5, 1.5, (3, robot.n))
    force = masses[:, None] * (
        derivatives(lambda t: positions(q + v * t + a * t**2 / 2))[1] - gravity
    )
    expected = [
        (force * derivatives(lambda t, e=e: positions(q + e * t))[0]).sum() for e in np.eye(robot.n)
    ]
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), expected, atol=1e-7)


def test_a_pendulum_is_held_against_gravity():
    """A mass m at distance l falls to +q; the drive holds -m g l cos(q). A slide holds +m g."""
    text = """<robot name="pendulum"><link name="base"/><link name="slide"/>
        <link name="bob"><inertial><origin xyz="0.7 0 0"/><mass value="3"/>
            <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
        <joint name="lift" type="prismatic"><parent link="base"/><child link="slide"/>
        <axis xyz="0 0 1"/>
            <limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
        <joint name="swing" type="continuous"><parent link="slide"/><child link="bob"/>
            <axis xyz="0 1 0"/></joint></robot>"""
    robot, q = RobotModel.from_urdf_text(text), 0.4
    expected = [3 * 9.81, -3 * 9.81 * 0.7 * np.cos(q)]
    np.testing.assert_allclose(robot.gravity_torque([0.2, q]), expected)
    np.testing.assert_allclose(robot.torque([0.2, q], [0, 0], [0, 0]), expected)
    hanging = robot.with_gravity([0, 0, 9.81])
    np.testing.assert_allclose(hanging.gravity_torque([0.2, q]), np.negative(expected))


@pytest.mark.parametrize("name", ["ur10e", "panda"])
def test_mass_matrix_has_the_torques_of_unit_accelerations_as_columns(rng, name):
    robot = load_robot(name)
    q, rest = rng.uniform(-1.5, 1.5, robot.n), np.zeros(robot.n)
    columns = [
        robot.inverse_dynamics(q, rest, e) - robot.gravity_torque(q) for e in np.eye(robot.n)
    ]
    M = robot.mass_matrix(q)
    np.testing.assert_allclose(M, np.transpose(columns), atol=1e-11)
    np.testing.assert_array_equal(M, M.T)


@pytest.mark.parametrize(("types", "convention"), MIXED)
def test_coriolis_matrix_belongs_to_the_mass_matrix(rng, types, convention):
    robot = as_robot(random_table(rng, types, convention), random_clouds(rng, 4))
    q, v = rng.uniform(-1.5, 1.5, (2, 4))
    C = robot.coriolis_matrix(q, v)
    speed_torque = robot.inverse_dynamics(q, v, np.zeros(4)) - robot.gravity_torque(q)
    np.testing.assert_allclose(C @ v, speed_torque, atol=1e-11)
    np.testing.assert_allclose(
        C + C.T, derivatives(lambda t: robot.mass_matrix(q + v * t))[0], atol=1e-8
    )


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "continuous"])
def test_a_locked_joint_is_a_joint_held_still(rng, tiny, kind):
    full = RobotModel.from_urdf_text(tiny[kind])
    held = RobotModel.from_urdf_text(tiny[kind], locked={"elbow": 0.7})
    q, v, a = motion(rng, 3)
    q[:, 1], v[:, 1], a[:, 1] = 0.7, 0, 0
    free = [0, 2]
    expected = full.inverse_dynamics(q, v, a)[:, free]
    np.testing.assert_allclose(
        held.inverse_dynamics(q[:, free], v[:, free], a[:, free]), expected, atol=1e-11
    )
    pose = full.forward_kinematics(q, "hand")
    np.testing.assert_allclose(held.forward_kinematics(q[:, free], "hand"), pose, atol=1e-12)


ON_THE_HAND = ("left", "right", "tool0")


def test_a_locked_gripper_is_part_of_the_hand(rng, tiny):
    """With its fingers locked the arm moves as one with the fingers' bodies added to the hand."""
    locked = {"finger_left": 0.3, "finger_right": -0.2}
    arm = RobotModel.from_urdf_text(tiny["gripper"], locked=locked)
    T_base_hand, *fixed = (
        arm.forward_kinematics([0.4, -0.9], name) for name in ("hand", *ON_THE_HAND)
    )
    single = arm.links[0]  # every link of this robot is the same body
    expected = sum((frame_change_matrix(np.linalg.inv(T_base_hand) @ T) for T in fixed), np.eye(10))
    np.testing.assert_allclose(arm.links[1].vector, expected @ single.vector, atol=1e-12)
    assert arm.link_names == ("arm", "hand")
    assert arm.links[1].mass == pytest.approx(4 * single.mass)


# --- regressors


@pytest.mark.parametrize("name", ARMS)
def test_regressor_times_parameters_is_torque(rng, name):
    robot = load_robot(name)
    q, v, a = motion(rng, robot.n)
    Y = robot.regressor(q, v, a)
    np.testing.assert_allclose(Y @ robot.parameters, robot.torque(q, v, a), rtol=1e-9, atol=1e-10)
    assert Y.shape == (6, robot.n, 14 * robot.n)
    assert len(robot.parameter_names) == 14 * robot.n


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "continuous", "fixed"])
@pytest.mark.parametrize("sign_width", [0.0, 0.05])
def test_regressor_of_a_urdf_with_coupled_drives(rng, tiny, kind, sign_width):
    robot = RobotModel.from_urdf_text(tiny[kind], gravity_base=rng.normal(0, 6, 3))
    coupling = np.diag([30.0, -45.0, 32.0][: robot.n])
    coupling[-1, 0] = 11.0
    robot = robot.with_drive(random_drive(rng, robot.n, coupling=coupling, sign_width=sign_width))
    q, v, a = motion(rng, robot.n)
    np.testing.assert_allclose(
        robot.regressor(q, v, a) @ robot.parameters, robot.torque(q, v, a), atol=1e-10
    )
    pieces = list(robot.regressor_chunks(q, v, a, chunk=4))
    assert [piece for piece, _ in pieces] == [slice(0, 4), slice(4, 6)]
    np.testing.assert_array_equal(np.concatenate([Y for _, Y in pieces]), robot.regressor(q, v, a))


@pytest.mark.parametrize("name", ["panda", "ur10e", "ur10"])
def test_payload_regressor_is_the_torque_of_a_payload(rng, name):
    robot, payload = load_robot(name), random_body(rng)
    q, v, a = motion(rng, robot.n)
    extra = robot.with_payload(payload).torque(q, v, a) - robot.torque(q, v, a)
    np.testing.assert_allclose(robot.payload_regressor(q, v, a) @ payload.vector, extra, atol=1e-10)


@pytest.mark.parametrize(("types", "convention"), MIXED)
def test_a_payload_is_its_cloud_at_the_flange(rng, types, convention):
    """The flange is off the last frame: the payload joins the last link through that offset."""
    table, clouds, T_link_flange = (
        random_table(rng, types, convention),
        random_clouds(rng, 4),
        random_transform(rng),
    )
    gravity = np.array([0, 0, -9.81])
    masses, points = rng.uniform(0.2, 1.0, 5), rng.normal(0.1, 0.2, (5, 3))
    robot = as_robot(table, clouds, T_link_flange=T_link_flange)
    loaded = robot.with_payload(InertialParameters.from_points(masses, points))
    in_link = points @ T_link_flange[:3, :3].T + T_link_flange[:3, 3]
    last = np.concatenate([clouds[-1][0], masses]), np.concatenate([clouds[-1][1], in_link])
    q, v, a = motion(rng, 4)
    expected = [
        own_torque(table, [*clouds[:-1], last], gravity, *row) for row in zip(q, v, a, strict=True)
    ]
    np.testing.assert_allclose(loaded.inverse_dynamics(q, v, a), expected, atol=1e-10)


def test_panda_flange_is_107_mm_off_its_last_frame(rng):
    robot = load_robot("panda")
    q = rng.uniform(-1.5, 1.5, 7)
    T_link_flange = np.linalg.inv(robot.forward_kinematics(q, "link7")) @ robot.forward_kinematics(
        q
    )
    np.testing.assert_allclose(T_link_flange, trans(0, 0, 0.107), atol=1e-12)


# --- drives


def test_coupled_drives_conserve_power(rng):
    C = rng.normal(size=(4, 4)) + 5 * np.eye(4)
    drive = DriveModel(np.zeros(4), coupling=C)
    v, motor_torque = rng.normal(size=(2, 6, 4))
    motor_v = v @ C.T
    np.testing.assert_allclose(drive.joint_position(motor_v), v, atol=1e-13)
    np.testing.assert_allclose(drive.joint_position(motor_v[0]), v[0], atol=1e-13)
    power = (drive.joint_torque(motor_torque) * v).sum(axis=1)
    np.testing.assert_allclose(power, (motor_torque * motor_v).sum(axis=1))


def test_rotors_of_coupled_drives_have_their_kinetic_energy(rng):
    """E = sum J (C v)^2 / 2 over the motors: the joints need C' J C a; rotor inertia J N^2."""
    C = rng.normal(size=(4, 4)) + 40 * np.eye(4)
    rotor = rng.uniform(1e-4, 1e-3, 4)
    drive = DriveModel(rotor * np.diag(C) ** 2, coupling=C)
    v, a = rng.normal(size=(2, 6, 4))
    np.testing.assert_allclose(drive.torque(v, a), a @ (C.T @ np.diag(rotor) @ C))


def test_friction_of_coupled_drives_takes_the_power_it_loses(rng):
    C = rng.normal(size=(4, 4)) + 5 * np.eye(4)
    drive = random_drive(rng, 4, coupling=C, load_coulomb=rng.uniform(0.02, 0.1, 4))
    v, load = rng.normal(size=(2, 6, 4))
    drive_v = (v @ C.T) / np.diag(C)
    carried = np.linalg.solve((C / np.diag(C)[:, None]).T, load.T).T
    np.testing.assert_allclose((carried * drive_v).sum(axis=1), (load * v).sum(axis=1))
    lost = (drive.friction(drive_v, carried) * drive_v).sum(axis=1)
    np.testing.assert_allclose((drive.torque(v, np.zeros((6, 4)), load) * v).sum(axis=1), lost)


def test_friction_grows_with_the_torque_that_the_links_need(rng):
    mu = rng.uniform(0.02, 0.1, 7)
    robot = load_robot("panda").with_drive(DriveModel(np.zeros(7), load_coulomb=mu))
    q, v, a = motion(rng, 7)
    rigid = robot.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(robot.torque(q, v, a), rigid + mu * np.abs(rigid) * np.sign(v))


def test_currents_of_coupled_drives_are_torques_of_their_motors(rng):
    C = rng.normal(size=(4, 4)) + 40 * np.eye(4)
    constant, current = rng.uniform(0.05, 0.1, 4), rng.normal(size=(6, 4))
    drive = DriveModel(np.zeros(4), gain=constant * np.diag(C), coupling=C)
    np.testing.assert_allclose(
        drive.torque_from_current(current), drive.joint_torque(constant * current)
    )


# --- base parameters


@pytest.mark.parametrize("drive", [True, False])
@pytest.mark.parametrize("name", ARMS)
def test_base_parameters_give_the_torque_of_any_motion(rng, name, drive):
    robot = load_robot(name)
    if not drive:
        robot = robot.with_drive(DriveModel.ideal(robot.n))
    basis = ParameterBasis.of(robot, drive=drive)
    q, v, a = motion(rng, robot.n, 20)
    Y_B = basis.reduce(robot.regressor(q, v, a))
    assert Y_B.shape == (20, robot.n, len(basis))
    np.testing.assert_allclose(
        Y_B @ (basis.K @ robot.parameters), robot.torque(q, v, a), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize(("drive", "count"), [(True, 58), (False, 36)])
@pytest.mark.parametrize("name", ["ur10", "ur10e", "tx60", "kr60ha"])
def test_six_joint_arms_have_as_many_base_parameters_as_the_papers_say(name, drive, count):
    basis = ParameterBasis.of(load_robot(name), drive=drive)
    assert len(basis) == len(basis.names) == len(basis.parameters) == count
    assert basis.weakest_kept > 0.1
    assert basis.strongest_dropped < 1e-13


def ur10e_urdf(digits):
    """The UR10e as URDF from the maker's table, with angles of the given number of digits."""
    table, _, _ = table_in_file("ur10e")
    parts, placement = ['<robot name="ur10e"><link name="link0"/>'], 'xyz="0 0 0" rpy="0 0 0"'
    for i in range(6):
        parts.append(
            f"""<link name="link{i + 1}"><inertial>
            <origin xyz="0.1 0.02 {0.03 * i + 0.01:.2f}" rpy="0.3 0.2 0.1"/><mass value="{7 - i}"/>
            <inertia ixx="0.10" ixy="0.01" ixz="0.02" iyy="0.12" iyz="-0.01" izz="0.14"/>
            </inertial></link>
            <joint name="j{i + 1}" type="revolute"><parent link="link{i}"/>
            <child link="link{i + 1}"/>
            <origin {placement}/><axis xyz="0 0 1"/>
            <limit lower="-6.28" upper="6.28" velocity="2" effort="330"/></joint>"""
        )
        placement = (
            f'xyz="{table["a"][i]} 0 {table["d"][i]}" rpy="{table["alpha"][i]:.{digits}f} 0 0"'
        )
    parts.append(f"""<link name="tool0"/><joint name="fixed" type="fixed"><parent link="link6"/>
        <child link="tool0"/><origin {placement}/></joint></robot>""")
    return "".join(parts)


@pytest.mark.parametrize(("drive", "count"), [(True, 58), (False, 36)])
@pytest.mark.parametrize("digits", [4, 6])
def test_a_urdf_with_rounded_angles_has_the_same_base_parameters(rng, digits, drive, count):
    robot = RobotModel.from_urdf_text(ur10e_urdf(digits))
    robot = robot.with_drive(random_drive(rng, 6) if drive else DriveModel.ideal(6))
    assert ("1.5708 " if digits == 4 else "1.570796 ") in ur10e_urdf(digits)
    basis = ParameterBasis.of(robot, drive=drive)
    assert len(basis) == count
    assert basis.weakest_kept > 1e4 * basis.strongest_dropped
    q, v, a = motion(rng, 6, 20)
    torque = basis.reduce(robot.regressor(q, v, a)) @ (basis.K @ robot.parameters)
    dropped = (
        10 * basis.strongest_dropped
    )  # rotor inertias that only the rounding sets apart, 1 kg m^2 or so
    np.testing.assert_allclose(torque, robot.torque(q, v, a), rtol=1e-9, atol=1e-9 + dropped)
    exact = ParameterBasis.of(RobotModel.from_urdf_text(ur10e_urdf(16)), drive=drive)
    assert basis.parameters == exact.parameters
    np.testing.assert_allclose(basis.K, exact.K, atol=1e-4)


def test_ur10e_urdf_and_table_are_one_arm(rng):
    urdf, table = RobotModel.from_urdf_text(ur10e_urdf(16)), load_robot("ur10e")
    q = rng.uniform(-3, 3, (5, 6))
    np.testing.assert_allclose(urdf.forward_kinematics(q), table.forward_kinematics(q), atol=1e-12)


def test_base_parameters_are_the_same_every_time_and_for_every_seed():
    robot = load_robot("tx60")
    first, again, other = (
        ParameterBasis.of(robot),
        ParameterBasis.of(robot),
        ParameterBasis.of(robot, seed=7),
    )
    np.testing.assert_array_equal(first.K, again.K)
    np.testing.assert_array_equal(first.independent, other.independent)
    np.testing.assert_allclose(first.K, other.K, atol=1e-12)


def test_base_parameters_do_not_depend_on_the_limits():
    """They follow from structure: a joint with a small range far from zero changes nothing."""
    robot = load_robot("tx60")
    free, inf = ParameterBasis.of(robot), np.full(6, np.inf)
    far = JointLimits(np.full(6, 4.0), np.full(6, 4.001), inf, inf, inf)
    links = [body.renamed("link") for body in robot.links]
    narrow = RobotModel.from_dh(robot.dh, links=links, limits=far)
    np.testing.assert_allclose(ParameterBasis.of(narrow).K, free.K, atol=1e-12)


@pytest.mark.parametrize("name", ["panda", "ur10e", "tx60"])
def test_payload_jacobian_is_the_change_of_the_base_parameters(rng, name):
    robot, payload = load_robot(name), random_body(rng)
    basis = ParameterBasis.of(robot)
    change = basis.K @ (robot.with_payload(payload).parameters - robot.parameters)
    np.testing.assert_allclose(basis.payload_jacobian @ payload.vector, change, atol=1e-11)
    assert basis.payload_jacobian.shape == (len(basis), 10)


def test_a_poor_motion_tells_fewer_parameters_apart(rng):
    """With the first joint at rest its inertia does not show; what shows still gives the torque."""
    robot = load_robot("ur10")
    q, v, a = motion(rng, 6, 60)
    v[:, 0] = a[:, 0] = 0
    Y = robot.regressor(q, v, a)
    basis = ParameterBasis.of_regressor(robot, Y)
    assert len(basis) < 58
    np.testing.assert_allclose(
        basis.reduce(Y) @ (basis.K @ robot.parameters), robot.torque(q, v, a), atol=1e-9
    )


def test_names_tell_the_sum_that_K_holds():
    basis = ParameterBasis.of(load_robot("planar2r"), drive=False)
    assert basis.parameters.names == ("Izz1r", "mx1r", "my1", "Izz2r", "mx2r", "my2")
    assert basis.names[2] == "my1"
    assert basis.names[4] == "mx2 + 0.5 m2"
