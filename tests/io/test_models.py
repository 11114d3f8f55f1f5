import copy
import functools

import numpy as np
import pytest

from steelyard import _saved
from steelyard.errors import InvalidRobot, SteelyardError, UnreadableFile
from steelyard.identification import DynamicModel, identify
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Samples
from steelyard.robot import RobotModel, load_robot, robot_names
from steelyard.torque import weigh
from steelyard.trajectory import FourierTrajectory

LOAD = InertialParameters.from_com(2.0, [0.01, 0.02, 0.05], 0.01 * np.eye(3))


def samples(robot, seed=0):
    q, v, a = FourierTrajectory.load("xu2024").at(np.arange(0, 10, 0.01))
    tau = robot.torque(q, v, a) + 0.3 * np.random.default_rng(seed).normal(size=q.shape)
    return Samples(q, v, a, tau, 100.0, robot.joint_names, "measured", made_by=("made up",))


@pytest.fixture(scope="module")
def model():
    robot = load_robot("ur10")
    return identify(robot, samples(robot), friction="load")


def same_robot(first, second):
    q, v, a = np.random.default_rng(0).normal(size=(3, 5, first.n))
    np.testing.assert_allclose(second.torque(q, v, a), first.torque(q, v, a), rtol=1e-10)
    np.testing.assert_allclose(
        second.forward_kinematics(q), first.forward_kinematics(q), atol=1e-12
    )
    np.testing.assert_allclose(second.regressor(q, v, a), first.regressor(q, v, a), atol=1e-10)
    for name, value in first.to_dict().items():
        again = second.to_dict()[name]
        if name == "links":
            np.testing.assert_allclose(again, value, rtol=1e-9, atol=1e-15)
        elif name in ("joint_axes", "joint_placements", "T_joint_link", "T_joint_flange"):
            np.testing.assert_allclose(again, value, atol=1e-15)
        else:
            np.testing.assert_equal(again, value, err_msg=name)


@pytest.mark.parametrize("name", robot_names())
def test_bundled_robots_survive_a_round_trip(name, tmp_path):
    robot = load_robot(name)
    _saved.save(robot.to_dict(), "robot", tmp_path / "robot.json")
    same_robot(robot, RobotModel.from_dict(_saved.load(tmp_path / "robot.json", "robot")))


def test_a_urdf_robot_survives_a_round_trip(tmp_path):
    text = """<robot name="two"><link name="base"/><link name="a">
    <inertial><origin xyz="0.1 0 0.2"/>
    <mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.05" ixy="0" ixz="0" iyz="0"/>
    </inertial></link>
    <link name="b"><inertial><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>
    </inertial></link>
    <joint name="j1" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0.6 0.8"/>
    <origin xyz="0 0 0.3" rpy="0.1 0.2 0.3"/></joint>
    <joint name="j2" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="1" velocity="1" effort="50"/><origin xyz="0.2 0 0"/></joint></robot>"""
    robot = RobotModel.from_urdf_text(text)
    same_robot(robot, RobotModel.from_dict(robot.to_dict()))


def test_models_survive_a_round_trip(model, tmp_path):
    model.save(tmp_path / "model.json")
    again = DynamicModel.load(tmp_path / "model.json")
    part = samples(model.robot, 3)
    np.testing.assert_allclose(
        again.torque(part.q, part.v, part.a), model.torque(part.q, part.v, part.a), rtol=1e-9
    )
    np.testing.assert_array_equal(again.estimate.covariance, model.estimate.covariance)
    np.testing.assert_array_equal(again.factor.R, model.factor.R)
    assert (again.estimate.names, again.estimate.status) == (
        model.estimate.names,
        model.estimate.status,
    )
    assert (again.kinematics, again.made_from, again.choice) == (
        model.kinematics,
        model.made_from,
        None,
    )
    assert again.law.free_shapes == model.law.free_shapes
    loaded = samples(model.robot.with_payload(LOAD), 5)
    np.testing.assert_allclose(
        weigh(again, loaded).unconstrained.vector,
        weigh(model, loaded).unconstrained.vector,
        rtol=1e-6,
    )


def test_payloads_survive_a_round_trip(model, tmp_path):
    payload = weigh(model, samples(model.robot.with_payload(LOAD), 5))
    payload.save(tmp_path / "payload.json")
    again = Payload.load(tmp_path / "payload.json")
    assert again.body == payload.body
    assert again.unconstrained == payload.unconstrained
    np.testing.assert_array_equal(again.covariance, payload.covariance)
    assert again.status == payload.status


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "is not JSON"),
        ("[1]", "is not a model file of steelyard"),
        ('{"steelyard": "payload"}', r"is not a model file of steelyard \(it says 'payload'\)"),
        (
            '{"steelyard": "model", "version": 5}',
            "has version 5, this steelyard reads version 6: make the model again",
        ),
        ('{"steelyard": "model", "version": 99}', "has version 99, this steelyard reads version 6"),
        ('{"steelyard": "model", "version": 6}', "is not a whole model file: 'robot' is missing"),
    ],
)
def test_other_files_are_refused(text, words, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UnreadableFile, match=words):
        DynamicModel.load(path)


def places(content, *above):
    """Where each field of a saved value is, at all depths."""
    for name, value in content.items():
        yield *above, name
        if isinstance(value, dict):
            yield from places(value, *above, name)


def test_a_saved_value_without_one_of_its_fields_is_refused(model, tmp_path):
    payload = weigh(model, samples(model.robot, seed=2))
    for value, read in ((model, DynamicModel.from_dict), (payload, Payload.from_dict)):
        _saved.save(value.to_dict(), "value", tmp_path / "value.json")
        content = _saved.load(tmp_path / "value.json", "value")
        read(content)
        for *above, name in places(content):
            holder = functools.reduce(dict.__getitem__, above, broken := copy.deepcopy(content))
            if holder.pop(name) == 0.0 and above == ["shares"]:
                continue  # a cause without a share need not be named
            if name in ("concerns", "states"):
                continue  # all quantities by default; the states follow from the doubts
            if name == "urdf_file":
                continue  # for pictures only
            with pytest.raises((ValueError, SteelyardError), match=f"{name}|add up to 1"):
                read(broken)


def test_missing_files_and_folders_are_named(model, tmp_path):
    with pytest.raises(UnreadableFile, match=r"none\.json: no such file .*make the payload first$"):
        Payload.load(tmp_path / "none.json")
    with pytest.raises(UnreadableFile, match="there is no folder"):
        model.save(tmp_path / "no" / "model.json")
    (tmp_path / "half.json").write_text('{"steelyard": "payload", "version": 5, "frame": "flange"}')
    with pytest.raises(UnreadableFile, match="not a whole payload file: 'vector' is missing"):
        Payload.load(tmp_path / "half.json")
    with pytest.raises(InvalidRobot, match="'source' is missing"):
        RobotModel.from_dict({"name": "x"})
