"""The arm with what it carries, in 3D, along a motion."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steelyard._arrays import Array
from steelyard.drawing import Scene, Solid
from steelyard.inertia import InertialParameters
from steelyard.payload._views import ellipsoids
from steelyard.robot import RobotModel
from steelyard.robot._geometry import Body

_LINK = "#d6dbe2"
_DRIVE = "#586878"
_LOAD = "#2266aa"
_REGION = "#d9822b"
_CENTRE = "#1f2933"
_TRUTH = "#c23030"
_POSTURES = 61
_DOT = 0.05  # of what the second view shows
_VISIBLE = 1.2  # times as large as the dot: a smaller region hides behind it
_SMALLEST = 0.08
_LARGEST = 0.5  # [m], half of what the second view shows


def arm_scene(
    robot: RobotModel,
    q: Array,
    t: Array,
    body: InertialParameters,
    covariance: Array,
    *,
    T_flange_load: Array | None = None,
    truth: InertialParameters | None = None,
) -> Scene:
    """An arm that moves, with its payload as ellipsoids of true size.

    Args:
        q: joint positions, (N, n) [rad or m]
        t: times, (N,) [s]
        body: what it carries
        covariance: of its ten numbers, (10, 10); infinite where unknown
        T_flange_load: the frame of the body in the flange frame, (4, 4); the flange by default
        truth: the body where it is known, in the same frame
    """
    which = np.unique(np.linspace(0, len(q) - 1, _POSTURES).astype(int))
    at_load = robot.T_joint_flange @ (np.eye(4) if T_flange_load is None else T_flange_load)
    arm = np.array([robot.joint_frames(posture) for posture in np.asarray(q)[which]])
    load = arm.shape[1]
    frames = np.concatenate([arm, arm[:, -1:] @ at_load], axis=1)
    shapes = ellipsoids(body, covariance)
    half = _half_width(body, shapes)
    solids = [
        *_arm_solids(robot),
        *_load_solids(load, body, shapes, _DOT * half),
    ]
    if truth is not None and "inertia" in (true := ellipsoids(truth, np.zeros((10, 10)))):
        name = "truth"
        solids.append(
            Solid.ellipsoid(name, load, truth.com, true["inertia"], colour=_TRUTH, opacity=0.25)
        )
    drawn = {solid.name for solid in solids}
    words = "The arm as capsules along its links, and what it carries in true size"
    words += ": the homogeneous ellipsoid with its mass and inertia" if "payload" in drawn else ""
    words += ", the 95 % region of its centre of mass" if "95 % region" in drawn else ""
    words += (
        "."
        if "95 % region" in drawn
        else (
            "; the 95 % region of the centre of mass is smaller than the dot."
            if "region" in shapes
            else "; the centre of mass has no region."
        )
    )
    return Scene(
        f"{words} Drag to turn.", solids, frames, np.asarray(t)[which], load, half, 0.6 * half
    )


def _half_width(body: InertialParameters, shapes: Mapping[str, Array]) -> float:
    """Half of what the second view shows, [m]."""
    sizes = [float(np.sqrt(np.linalg.eigvalsh(matrix)[-1])) for matrix in shapes.values()]
    if body.mass > 0:
        reach = float(np.linalg.norm(body.com))
    else:
        reach = 0.0
    return float(np.clip(1.25 * (reach + max(sizes, default=0.0)), _SMALLEST, _LARGEST))


def _arm_solids(robot: RobotModel) -> list[Solid]:
    solids = []
    for body in Body.to_draw(robot):
        profile, sides, scale = body.revolved
        stretched = body.placement @ np.diag([*scale, 1.0])
        if body.name.startswith("drive"):
            colour = _DRIVE
        else:
            colour = _LINK
        solids.append(Solid("", body.joint, stretched, profile, colour, sides=sides))
    return solids


def _load_solids(
    frame: int, body: InertialParameters, shapes: Mapping[str, Array], dot: float
) -> list[Solid]:
    if not body.mass > 0:
        return []
    place = np.eye(3) * dot**2
    solids = [Solid.ellipsoid("centre of mass", frame, body.com, place, colour=_CENTRE)]
    region = shapes.get("region")
    if region is not None and np.linalg.eigvalsh(region)[-1] > (_VISIBLE * dot) ** 2:
        solids.append(
            Solid.ellipsoid("95 % region", frame, body.com, region, colour=_REGION, opacity=0.55)
        )
    if "inertia" in shapes:
        inertia = shapes["inertia"]
        solids.append(
            Solid.ellipsoid("payload", frame, body.com, inertia, colour=_LOAD, opacity=0.45)
        )
    return solids
