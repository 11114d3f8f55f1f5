"""The look of an arm comes from the URDF that it was read from, also for a saved model."""

import numpy as np
import pytest

from steelyard.robot import RobotModel
from steelyard.robot._visuals import Look

PYRAMID = """v 0 0 0
v 0.1 0 0
v 0 0.2 0
v 0 0 0.3
f 1 3 2
f 1 2 4
f 2 3 4
f 1 4 3
"""
MESH = """<visual><origin xyz="0.01 0.02 0.03" rpy="0 0 1.5707963267948966"/>
<geometry><mesh filename="package://mine/meshes/part.obj" scale="1 1 2"/></geometry></visual>"""
BALL = """<visual><geometry><sphere radius="0.04"/></geometry>
<material name="red"><color rgba="1 0 0 1"/></material></visual>"""


@pytest.fixture
def arm(tmp_path, tiny):
    """An arm with a gripper: a mesh on the arm's link and a coloured ball on a finger."""
    text = tiny["gripper"]
    for name, visual in (("arm", MESH), ("left", BALL)):
        text = text.replace(f'<link name="{name}">', f'<link name="{name}">{visual}')
    folder = tmp_path / "mine"
    (folder / "meshes").mkdir(parents=True)
    (folder / "meshes" / "part.obj").write_text(PYRAMID)
    (folder / "arm.urdf").write_text(text)
    return RobotModel.from_urdf(folder / "arm.urdf", flange="tool0")


def test_shapes_of_a_saved_arm_move_with_its_joints(arm):
    saved = RobotModel.from_dict(arm.to_dict())
    look = Look.of(saved)
    assert (look.file, look.missing) == ("arm.urdf", ())
    mesh, ball = look.visuals
    assert (mesh.body.name, mesh.colour) == ("arm", None)
    assert (ball.body.name, ball.colour) == ("left", (1.0, 0.0, 0.0))
    q = np.array([0.7, -0.4])
    frames = saved.joint_frames(q)
    corners, _ = mesh.body.surface
    tip = np.append(corners[np.argmax(corners[:, 2])], 1.0)
    T = np.eye(4)
    T[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    T[:3, 3] = [0.01, 0.02, 0.03]
    expected = arm.forward_kinematics(q, "arm") @ T @ [0, 0, 0.6, 1]
    np.testing.assert_allclose(frames[mesh.body.joint] @ mesh.body.placement @ tip, expected)
    finger = arm.forward_kinematics(q, "left")[:3, 3]
    placed = frames[ball.body.joint] @ ball.body.placement
    np.testing.assert_allclose(placed[:3, 3], finger, atol=1e-12)


def test_a_mesh_that_is_not_found_is_named(arm, tmp_path):
    (tmp_path / "mine" / "meshes" / "part.obj").unlink()
    look = Look.of(arm)
    assert look.missing == ("part.obj",)
    assert [one.body.name for one in look.visuals] == ["left"]


@pytest.mark.parametrize("change", ["gone", "other arm", "no longer XML", "broken mesh"])
def test_an_arm_without_its_file_has_no_look(arm, tmp_path, change):
    file = tmp_path / "mine" / "arm.urdf"
    if change == "gone":
        file.unlink()
    elif change == "other arm":
        file.write_text(file.read_text().replace('xyz="0.2 0.1 0.3"', 'xyz="0.2 0.1 0.31"'))
    elif change == "no longer XML":
        file.write_text("<robot")
    else:
        (tmp_path / "mine" / "meshes" / "part.obj").write_text("f 1 2")
    assert Look.of(arm).visuals == ()


def test_an_older_file_of_a_model_has_no_urdf(arm):
    content = arm.to_dict()
    del content["urdf_file"]
    assert RobotModel.from_dict(content).urdf_file == ""
    assert Look.of(RobotModel.from_dict(content)).visuals == ()
