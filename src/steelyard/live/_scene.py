"""An arm and its payload in 3D: shapes that move with joint frames, ellipsoids on the flange.

The centre of mass is drawn with its 95 % ellipsoid { c : (c - c0)' C^-1 (c - c0) <= 2.796^2 }, C
its covariance; the payload as the homogeneous ellipsoid with its mass and inertia, whose semi-axes
squared are the eigenvalues of 5 S / m, S the second moment of its mass about the centre of mass.
Both are of true size. Where the inertia is not known well enough for an ellipsoid, a sphere of
aluminium with the mass stands for it, as in exports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array
from steelyard.export._load import SPHERE_DENSITY
from steelyard.payload import Payload
from steelyard.payload._views import ellipsoids
from steelyard.robot import RobotModel
from steelyard.robot._geometry import Body

if TYPE_CHECKING:
    from viser import InitialCameraConfig, SceneApi

_MARK = 0.008  # [m]
_LINK = (214, 219, 226)
_DRIVE = (88, 104, 120)
_LOAD = (34, 102, 170)
_REGION = (217, 130, 43)
_CENTRE = (194, 48, 48)
_GRID = {False: ((226, 230, 235), (200, 207, 215)), True: ((50, 54, 60), (72, 78, 86))}


class LiveScene:
    """An arm in a scene of viser.

    Args:
        scene: to draw into
        robot: the arm
        bodies: what it looks like, see `Body.to_draw`
    """

    def __init__(self, scene: SceneApi, robot: RobotModel, bodies: Sequence[Body]) -> None:
        self._robot = replace(
            robot
        )  # with a workspace of its own: others use theirs on another thread
        self._scene = scene
        scene.set_up_direction("+z")
        scene.configure_environment_map(
            None
        )  # a hundred times as fast where there is no graphics card
        scene.add_light_ambient("/light", intensity=1.2)
        names = ["/arm"]
        for k in range(robot.n):
            names.append(f"{names[k]}/{k + 1}")
        self._joints = [
            scene.add_frame(name, show_axes=False) for name in names
        ]  # each in the one before
        for k, body in enumerate(bodies):
            corners, triangles = body.surface
            wxyz, position = _pose(body.placement)
            if body.name.startswith("drive"):
                colour = _DRIVE
            else:
                colour = _LINK
            scene.add_mesh_simple(
                f"{names[body.joint]}/shape {k}",
                corners,
                triangles,
                color=colour,
                wxyz=wxyz,
                position=position,
            )
        wxyz, position = _pose(robot.T_joint_flange)
        flange = f"{names[-1]}/flange"
        length = 0.12
        scene.add_frame(
            flange,
            axes_length=length,
            axes_radius=length / 40,
            wxyz=wxyz,
            position=position,
            show_axes=True,
        )
        self._body = scene.add_icosphere(
            f"{flange}/payload", 1.0, _LOAD, opacity=0.45, visible=False, cast_shadow=False
        )
        self._region = scene.add_icosphere(
            f"{flange}/region", 1.0, _REGION, opacity=0.55, visible=False, cast_shadow=False
        )
        self._centre = scene.add_icosphere(f"{flange}/centre", _MARK, _CENTRE, visible=False)
        self.pose(robot.home)

    def dress(self, *, dark: bool) -> None:
        """Colours for a dark page or a light one."""
        cell, section = _GRID[dark]
        self._scene.add_grid(
            "/floor",
            width=3.0,
            height=3.0,
            cell_size=0.1,
            section_size=0.5,
            cell_color=cell,
            section_color=section,
        )

    def look(self, camera: InitialCameraConfig) -> None:
        """Lets a page look at the whole arm at first, from the side and above.

        Args:
            camera: of the page
        """
        lengths = np.linalg.norm(self._robot.joint_placements[:, :3, 3], axis=1)
        reach = max(float(lengths.sum()), 0.3)
        camera.position = (1.35 * reach, -1.6 * reach, 1.0 * reach)
        camera.look_at = (0.0, 0.0, 0.3 * reach)

    def pose(self, q: Array) -> None:
        """Puts the arm into a posture.

        Args:
            q: joint positions, (n,) [rad or m]
        """
        frames = self._robot.joint_frames(q)
        frames[1:] = np.linalg.inv(frames[:-1]) @ frames[1:]
        turned = np.roll(Rotation.from_matrix(frames[:, :3, :3]).as_quat(), 1, axis=1)
        for joint, wxyz, position in zip(self._joints, turned, frames[:, :3, 3], strict=True):
            joint.wxyz = wxyz
            joint.position = position  # only what has changed is sent: angles

    def carry(self, payload: Payload | None) -> None:
        """Shows what is carried, as far as it is known.

        Args:
            payload: in the flange frame; None where nothing is known
        """
        if payload is None:
            shapes = {}
        else:
            shapes = ellipsoids(payload.body, payload.covariance)
        region, shape = (
            _axes(shapes[name]) if name in shapes else None for name in ("region", "inertia")
        )
        known = payload is not None and region is not None
        if payload is not None and shape is None:
            shape = _sphere(payload.mass)
        for handle, found in ((self._body, shape), (self._region, region)):
            handle.visible = known and found is not None
            if payload is not None and known and found is not None:
                handle.scale, handle.wxyz = found
                handle.position = payload.body.com
        self._centre.visible = known
        if payload is not None and known:
            self._centre.position = payload.body.com


def _sphere(mass: float) -> tuple[tuple[float, float, float], Array]:
    """Semi-axes [m] and direction as w x y z of a homogeneous sphere with a mass."""
    radius = float((3 * max(mass, 0.0) / (4 * np.pi * SPHERE_DENSITY)) ** (1 / 3))
    return (radius, radius, radius), np.array([1.0, 0.0, 0.0, 0.0])


def _pose(T: Array) -> tuple[Array, Array]:
    """Quaternion w x y z, and position, of a transform (4, 4)."""
    return np.roll(Rotation.from_matrix(T[:3, :3]).as_quat(), 1), T[:3, 3]


def _axes(matrix: Array) -> tuple[tuple[float, float, float], Array]:
    """Semi-axes [m] and directions as w x y z of { x : x' matrix^-1 x <= 1 }."""
    values, axes = np.linalg.eigh(matrix)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    a, b, c = np.sqrt(values).tolist()
    return (a, b, c), np.roll(Rotation.from_matrix(axes).as_quat(), 1)
