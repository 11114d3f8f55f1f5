"""Each export, read by an independent reader, is the same body with the same torque."""

import ast
import json
import re
import xml.etree.ElementTree as ET

import mujoco
import numpy as np
import pytest

from steelyard.export import TARGETS, Export
from steelyard.inertia import InertialParameters
from steelyard.io._mjcf import mjcf_text
from steelyard.io._urdf import urdf_text
from steelyard.payload import Payload
from steelyard.robot import RobotModel, load_robot
from steelyard.verdict import Verdict

GOOD = Verdict("all ten parameters were excited, and they are those of a real body")
STD = np.array([0.01, 1e-3, 1e-3, 1e-3, *[1e-3] * 6])
KGF_CM_S2 = 9.80665 * 0.01  # [kg m^2], from its definition


def weighed(body, std=STD, verdict=GOOD):
    return Payload(body, body, np.diag(std**2), np.ones(6), verdict)


def cloud(rng, frame="flange", n=40):
    """Point masses: a body whose numbers need none of our formulas."""
    points = rng.normal(size=(n, 3)) * [0.08, 0.05, 0.12] + rng.uniform(-0.1, 0.1, 3)
    return rng.uniform(0.02, 0.2, n), points


def of_points(masses, points):
    """Mass, centre of mass, and inertia about it, straight from the sums."""
    com = masses @ points / masses.sum()
    x = points - com
    inertia = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, x, strict=True))
    return masses.sum(), com, inertia


def turn(axis, angle):
    c, s = np.cos(angle), np.sin(angle)
    i, j = [(1, 2), (2, 0), (0, 1)]["xyz".index(axis)]
    R = np.eye(3)
    R[i, i] = R[j, j] = c
    R[i, j], R[j, i] = -s, s
    return R


def of_quaternion(w, x, y, z):
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def matrix(xx, yy, zz, xy, xz, yz):
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def numbers(text):
    return [float(word) for word in re.findall(r"-?\d+\.?\d*", text)]


def code(text, mark):
    return "\n".join(line for line in text.splitlines() if not line.startswith(mark))


def fields(text):
    """The flat YAML of a service request: numbers, or a list of them."""
    rows = (line.partition(":") for line in code(text, "#").splitlines())
    return {key: numbers(value) for key, _, value in rows}


def read_ur(text):
    m, com, inertia, time = ast.literal_eval(
        code(text, "#").strip().removeprefix("set_target_payload")
    )
    assert time == 0.0
    return m, com, matrix(*inertia)


def read_ur_ros2(text):
    got = fields(text)
    entries = [got[key][0] for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")]
    assert list(got)[-1] == "transition_time"
    return got["mass"][0], got["center_of_gravity"], matrix(*entries)


def read_franka(text):
    got = json.loads(text)
    np.testing.assert_array_equal(np.array(got["transformation"]).reshape(4, 4).T, np.eye(4))
    return got["mass"], got["centerOfMass"], np.array(got["inertia"]).reshape(3, 3).T


def read_franka_ros2(text):
    got = fields(text)
    inertia = np.array(got["load_inertia"]).reshape(3, 3).T
    call = re.search(r"setLoad\((.*)\);", text).group(1)
    assert numbers(call) == [*got["mass"], *got["center_of_mass"], *inertia.T.ravel()]
    return got["mass"][0], got["center_of_mass"], inertia


def read_abb(text):
    values = re.fullmatch(r"PERS loaddata \w+ := (\[.*\]);", code(text, "!").strip()).group(1)
    m, com, quaternion, *moments = ast.literal_eval(values)
    assert np.linalg.norm(quaternion) == pytest.approx(1.0, abs=1e-8)
    R = of_quaternion(*quaternion)
    return m, np.array(com) / 1e3, R @ np.diag(moments) @ R.T


def read_kuka(text):
    data = re.search(r"^LOAD_DATA\[\d+\]=\{M (\S+),CM \{(.*?)\},J \{(.*?)\}\}$", text, re.MULTILINE)
    assert re.findall("[A-Z]", data.group(2)) == list("XYZABC")
    x, y, z, a, b, c = numbers(data.group(2))
    a, b, c = np.radians([a, b, c])
    R = turn("z", a) @ turn("y", b) @ turn("x", c)
    return (
        float(data.group(1)),
        np.array([x, y, z]) / 1e3,
        R @ np.diag(numbers(data.group(3))) @ R.T,
    )


def read_fanuc(text):
    rows = dict(line.split("]: ") for line in text.splitlines() if line.startswith("PAYLOAD"))
    m, *rest = (float(value) for value in rows.values())
    assert [key[8:] for key in rows][3:5] == ["CENTER Z [cm", "INERTIA X [kgf cm s^2"]
    return m, np.array(rest[:3]) / 100, np.diag(rest[3:]) * KGF_CM_S2


def read_mecademic(text):
    m, *com = numbers(re.search(r"^SetPayload\((.*)\)$", text, re.MULTILINE).group(1))
    return m, np.array(com) / 1e3, None


def read_ft_yaml(text):
    got = fields(text)
    assert len(got["bias"]) == len(got["gripper_com_pose"]) == 6
    return got["gripper_mass"][0], got["gripper_com_pose"][:3], None


def nested(text):
    """Nested YAML maps by their indentation, as {"a.b.c": value}."""
    found, path = {}, []
    for line in code(text, "#").splitlines():
        key, _, value = line.strip().partition(":")
        depth = (len(line) - len(line.lstrip())) // 2
        path = [*path[:depth], key]
        if value.strip():
            found[".".join(path)] = value.strip()
    return found


FILTER_SCHEMA = {
    "world_frame": str,
    "sensor_frame": str,
    "tool.CoG": list,
    "tool.gravity_field": list,
    "tool.mass": float,
}
"""Parameters of control_filters/GravityCompensationWrench and their types."""


def read_gravity_filter(text):
    chain = "/**.ros__parameters.sensor_filter_chain.filter1."
    got = {key.removeprefix(chain): value for key, value in nested(text).items()}
    assert got.pop("name") == "gravity_compensation"
    assert got.pop("type") == "control_filters/GravityCompensationWrench"
    got = {key.removeprefix("params."): value for key, value in got.items()}
    assert set(got) == set(FILTER_SCHEMA)
    values = {
        key: got[key] if kind is str else ast.literal_eval(got[key])
        for key, kind in FILTER_SCHEMA.items()
    }
    assert all(isinstance(values[key], kind) for key, kind in FILTER_SCHEMA.items())
    assert all(isinstance(x, float) for x in [*values["tool.CoG"], *values["tool.gravity_field"]])
    assert values["tool.gravity_field"] == [0.0, 0.0, -9.81]
    return values["tool.mass"], np.array(values["tool.CoG"]), None


def read_cartesian_controllers(text):
    got = nested(text)
    assert got["gravity"] == "{x: 0.0, y: 0.0, z: -9.81}"
    com = [float(got[f"tool.com_{axis}"]) for axis in "xyz"]
    assert len(got) == 5
    return float(got["tool.mass"]), np.array(com), None


def read_urdf(text):
    inertial = ET.fromstring(text).find("link[@name='payload']/inertial")
    entries = {key: float(value) for key, value in inertial.find("inertia").items()}
    inertia = matrix(*(entries[key] for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")))
    assert inertial.find("origin").get("rpy") == "0 0 0"
    return (
        float(inertial.find("mass").get("value")),
        numbers(inertial.find("origin").get("xyz")),
        inertia,
    )


def read_mjcf(text):
    model = mujoco.MjModel.from_xml_string(text)
    R = of_quaternion(*model.body_iquat[1])
    return model.body_mass[1], model.body_ipos[1], R @ np.diag(model.body_inertia[1]) @ R.T


READERS = {
    "ur": read_ur,
    "ur-ros2": read_ur_ros2,
    "franka": read_franka,
    "franka-ros2": read_franka_ros2,
    "abb": read_abb,
    "kuka": read_kuka,
    "fanuc": read_fanuc,
    "mecademic": read_mecademic,
    "urdf": read_urdf,
    "mjcf": read_mjcf,
    "ft-yaml": read_ft_yaml,
    "gravity-filter": read_gravity_filter,
    "cartesian-controllers": read_cartesian_controllers,
}


def require_same(to, text, mass, com, inertia):
    read_mass, read_com, read_inertia = READERS[to](text)
    assert read_mass == pytest.approx(mass, abs=1e-6)
    np.testing.assert_allclose(read_com, com, rtol=0, atol=1e-7)
    if read_inertia is None:
        assert "Left out, because this format cannot hold it: the inertia." in text
    elif to == "fanuc":
        np.testing.assert_allclose(np.diag(read_inertia), np.diag(inertia), rtol=0, atol=1e-9)
        assert f"products of inertia (Ixy {inertia[0, 1]:.3g}" in text
    else:
        np.testing.assert_allclose(read_inertia, inertia, rtol=0, atol=4e-9)


def test_every_target_has_a_reader():
    assert set(READERS) == set(TARGETS)


@pytest.mark.parametrize("to", TARGETS)
def test_a_cloud_of_points_comes_back_from_any_frame(to, rng):
    for _ in range(5):
        masses, points = cloud(rng)
        T = np.eye(4)
        T[:3, :3] = turn("x", rng.uniform(-3, 3)) @ turn("z", rng.uniform(-3, 3)) @ turn("y", 1.0)
        T[:3, 3] = rng.uniform(-0.2, 0.2, 3)
        payload = weighed(InertialParameters.from_points(masses, points))
        text = payload.export(to, force=to == "ft-yaml")
        require_same(to, text, *of_points(masses, points))
        text = payload.export(to, T_target_payload=T, force=to == "ft-yaml")
        require_same(to, text, *of_points(masses, points @ T[:3, :3].T + T[:3, 3]))


@pytest.mark.parametrize("to", ["abb", "kuka", "mjcf", "ur"])
@pytest.mark.parametrize("moments", [(0.02, 0.02, 0.02), (0.02, 0.02, 0.03), (0.01, 0.03, 0.03)])
def test_bodies_alike_in_several_directions(to, moments, rng):
    for R in (np.eye(3), turn("z", 0.4) @ turn("x", -1.1), turn("y", np.pi / 2)):
        com = rng.uniform(-0.1, 0.1, 3)
        body = InertialParameters.from_com(3.3, com, R @ np.diag(moments) @ R.T)
        require_same(to, weighed(body).export(to), 3.3, com, R @ np.diag(moments) @ R.T)


def test_axes_turn_no_more_than_they_must():
    body = InertialParameters.from_com(2.0, [0.01, 0.02, 0.03], np.diag([0.03, 0.02, 0.015]))
    assert ",[1.0,0.0,0.0,0.0],0.03,0.02,0.015];" in weighed(body).export("abb")
    assert "A 0.0,B 0.0,C 0.0},J {X 0.03,Y 0.02,Z 0.015}" in weighed(body).export("kuka")


@pytest.mark.thorough
def test_uncertainty_of_the_inertia_is_that_of_random_draws(rng):
    masses, points = cloud(rng)
    body = InertialParameters.from_points(masses, points)
    A = rng.normal(size=(10, 10)) * np.array([0.03, *[3e-4] * 3, *[3e-5] * 6])[:, None]
    payload = Payload(body, body, A @ A.T, np.ones(6), GOOD)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = turn("x", 0.7) @ turn("z", 1.9), [0.1, -0.2, 0.05]
    load = Export.of(payload.as_load(), "ur", T_target_load=T).load
    draws = [
        InertialParameters.from_vector(body.vector + A @ e).in_frame("x", T)
        for e in rng.normal(size=(4000, 10))
    ]
    inertia = np.std(
        [[b.inertia_com[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1))] for b in draws], axis=0
    )
    np.testing.assert_allclose(load.inertia_com_error[:4], 1.96 * inertia, rtol=0.06)
    spread = np.linalg.eigvalsh(np.cov(np.array([b.com for b in draws]).T))[-1]
    assert load.com_error == pytest.approx(1.96 * np.sqrt(spread), rel=0.06)
    assert load.mass_error == pytest.approx(1.96 * np.std([b.mass for b in draws]), rel=0.06)


@pytest.fixture(params=["tiny", "ur10e"])
def arm(request, tiny):
    if request.param == "ur10e":
        return load_robot("ur10e")
    locked = {"finger_left": 0.0, "finger_right": 0.0}
    return RobotModel.from_urdf_text(tiny["gripper"], flange="tool0", locked=locked)


def motion(robot, rng, n=12):
    q, v, a = rng.normal(size=(3, n, robot.n))
    limits = robot.limits
    return np.clip(q, limits.q_min + 0.05, limits.q_max - 0.05), v + 0.3 * np.sign(v), a


def test_pinocchio_reads_the_link_and_finds_the_same_torque(arm, rng):
    body = InertialParameters.from_points(*cloud(rng), arm.flange)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = turn("y", 0.9) @ turn("x", -0.3), [0.02, 0.05, -0.04]
    tau = arm.with_payload(body).inverse_dynamics(*(samples := motion(arm, rng)))
    for T_target_payload in (None, T):
        link = ET.fromstring(weighed(body).export("urdf", T_target_payload=T_target_payload))
        root = ET.fromstring(urdf_text(arm))
        joint = link.find("joint")
        joint.find("parent").set("link", arm.flange)
        if T_target_payload is not None:  # the frame of the target, seen from the flange
            back = np.linalg.inv(T)
            joint.find("origin").set("xyz", " ".join(map(repr, map(float, back[:3, 3]))))
            roll, pitch = np.arctan2(back[2, 1], back[2, 2]), np.arcsin(-back[2, 0])
            joint.find("origin").set("rpy", f"{roll} {pitch} {np.arctan2(back[1, 0], back[0, 0])}")
        root.extend([link.find("link[@name='payload']"), joint])
        loaded = RobotModel.from_urdf_text(ET.tostring(root, encoding="unicode"), flange=arm.flange)
        again = loaded.inverse_dynamics(*samples)
        np.testing.assert_allclose(again, tau, rtol=0, atol=1e-10 * np.abs(tau).max())


def inverse(model, q, v, a):
    data, tau = mujoco.MjData(model), []
    for data.qpos[:], data.qvel[:], data.qacc[:] in zip(q, v, a, strict=True):
        mujoco.mj_inverse(model, data)
        tau.append(data.qfrc_inverse.copy())
    return np.array(tau)


def test_mujoco_reads_the_body_and_finds_the_same_torque(arm, rng):
    body = InertialParameters.from_points(*cloud(rng), arm.flange)
    root = ET.fromstring(mjcf_text(arm))
    place = root.find(f".//body[@name='{arm.flange}']")
    place.append(ET.fromstring(weighed(body).export("mjcf")).find("worldbody/body"))
    model = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))
    q, v, a = motion(arm, rng)
    tau = arm.with_payload(body).torque(q, v, a) - arm.drive.offset
    np.testing.assert_allclose(inverse(model, q, v, a), tau, rtol=0, atol=1e-9 * np.abs(tau).max())


def test_the_gravity_filter_leaves_nothing_of_the_weight_at_rest(rng):
    """The published formula of the filter, with the file's numbers, against a cloud of points."""
    masses, points = cloud(rng)
    text = weighed(InertialParameters.from_points(masses, points)).export("gravity-filter")
    mass, com, _ = read_gravity_filter(text)
    for _ in range(5):
        R_sensor_world = turn("x", rng.uniform(-3, 3)) @ turn("y", rng.uniform(-3, 3))
        g = R_sensor_world @ [0.0, 0.0, -9.81]
        force = masses.sum() * g
        torque = sum(m * np.cross(p, g) for m, p in zip(masses, points, strict=True))
        weight = mass * g
        np.testing.assert_allclose(force - weight, 0.0, atol=1e-5)
        np.testing.assert_allclose(torque - np.cross(com, weight), 0.0, atol=1e-5)
