"""A 3D scene of the arm with its payload along a motion."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steelyard._arrays import Array
from steelyard.drawing import Scene, Solid
from steelyard.drawing._mesh import Mesh, simplified
from steelyard.inertia import InertialParameters
from steelyard.payload._views import ellipsoids, inertia_is_uncertain
from steelyard.robot import RobotModel
from steelyard.robot._geometry import Body
from steelyard.robot._visuals import Look, Visual

_LINK = "#d6dbe2"
_DRIVE = "#586878"
_LOAD = "#2266aa"
_REGION = "#d9822b"
_CENTRE = "#1f2933"
_TRUTH = "#c23030"
_PAYLOAD = "payload"
_GUESS = "payload (its shape is a guess)"
_POSTURES = 61  # along the motion
_DOT_RATIO = 0.05  # radius of the dot at the centre of mass, over half the second view
_MIN_REGION_RATIO = 1.2  # of a drawn region, over the dot that would hide it
_MIN_HALF_VIEW = 0.08  # [m], half of the width of the second view
_MAX_HALF_VIEW = 0.5  # [m]
_MAX_TRIANGLES = 20_000  # of all meshes: about 0.3 MB in a page
_MAX_NAMED = 3  # files in a caption
_DARKEST = 0.25  # of colours, so that shapes can be seen on a dark page


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
        body: the payload
        covariance: of its ten numbers, (10, 10); infinite where unknown
        T_flange_load: the frame of the body in the flange frame, (4, 4); the flange by default
        truth: the true payload if known, in the same frame
    """
    which = np.unique(np.linspace(0, len(q) - 1, _POSTURES).astype(int))
    at_load = robot.T_joint_flange @ (np.eye(4) if T_flange_load is None else T_flange_load)
    arm = np.array([robot.joint_frames(posture) for posture in np.asarray(q)[which]])
    load = arm.shape[1]
    frames = np.concatenate([arm, arm[:, -1:] @ at_load], axis=1)
    shapes = ellipsoids(body, covariance)
    half = _half_width(body, shapes)
    look = Look.of(robot)
    solids: list[Solid | Mesh] = [
        *_arm_solids(robot, look),
        *_load_solids(load, body, shapes, _DOT_RATIO * half),
    ]
    if "inertia" in shapes:
        guess = inertia_is_uncertain(body, covariance)
        solids.append(_inertia_solid(load, body, shapes["inertia"], guess=guess))
    if truth is not None and "inertia" in (true := ellipsoids(truth, np.zeros((10, 10)))):
        name = "truth"
        solids.append(
            Solid.ellipsoid(name, load, truth.com, true["inertia"], colour=_TRUTH, opacity=0.25)
        )
    drawn = {solid.name for solid in solids}
    caption = _arm_words(look) + _load_words(drawn, region_known="region" in shapes)
    return Scene(caption, solids, frames, np.asarray(t)[which], load, half, 0.6 * half)


def _arm_words(look: Look) -> str:
    """How the arm is drawn: the beginning of a caption."""
    if not look.visuals:
        return "The arm as capsules along its links"
    words = f"The arm as in {look.file}"
    if look.missing:
        files = ", ".join(dict.fromkeys(look.missing[:_MAX_NAMED]))
        more = "" if len(look.missing) <= _MAX_NAMED else ", ..."
        words += f" (not found: {files}{more})"
    return words


def _load_words(drawn: set[str], *, region_known: bool) -> str:
    """How the payload is drawn: the rest of a caption.

    Args:
        drawn: names of the drawn solids
        region_known: whether the 95 % region of the centre of mass is known
    """
    words = ", and its payload in true size"
    if _PAYLOAD in drawn:
        words += ": the homogeneous ellipsoid with its mass and inertia"
    if _GUESS in drawn:
        words += ": an ellipsoid with its mass, whose shape is a guess"
    if "95 % region" in drawn:
        words += ", the 95 % region of its centre of mass"
    elif region_known:
        words += "; the 95 % region of the centre of mass is smaller than the dot"
    else:
        words += "; the centre of mass has no region"
    return f"{words}. Drag to turn."


def _half_width(body: InertialParameters, shapes: Mapping[str, Array]) -> float:
    """Half of the width of the second view, [m]."""
    sizes = [float(np.sqrt(np.linalg.eigvalsh(matrix)[-1])) for matrix in shapes.values()]
    if body.mass > 0:
        reach = float(np.linalg.norm(body.com))
    else:
        reach = 0.0
    return float(np.clip(1.25 * (reach + max(sizes, default=0.0)), _MIN_HALF_VIEW, _MAX_HALF_VIEW))


def _arm_solids(robot: RobotModel, look: Look) -> list[Solid | Mesh]:
    """The shapes of a URDF; capsules for links without one."""
    meshes = [one for one in look.visuals if one.body.is_mesh]
    solids: list[Solid | Mesh] = [
        _revolved(one.body, _colour(one)) for one in look.visuals if not one.body.is_mesh
    ]
    surfaces = simplified([one.body.surface for one in meshes], _MAX_TRIANGLES)
    for one, (corners, triangles) in zip(meshes, surfaces, strict=True):
        if len(triangles):
            T = one.body.placement
            placed = corners @ T[:3, :3].T + T[:3, 3]
            solids.append(Mesh.of(placed, triangles, frame=one.body.joint, colour=_colour(one)))
    seen = {one.body.joint for one in look.visuals}
    for body in Body.to_draw(robot):
        if body.joint not in seen:
            solids.append(_revolved(body, _DRIVE if body.name.startswith("drive") else _LINK))
    return solids


def _revolved(body: Body, colour: str) -> Solid:
    profile, sides, scale = body.revolved
    stretched = body.placement @ np.diag([*scale, 1.0])
    return Solid("", body.joint, stretched, profile, colour, sides=sides)


def _colour(visual: Visual) -> str:
    """The colour of a shape, not too dark."""
    if visual.colour is None:
        return _LINK
    levels = (_DARKEST + (1 - _DARKEST) * x for x in visual.colour)
    return "#" + "".join(f"{round(255 * min(max(x, 0.0), 1.0)):02x}" for x in levels)


def _load_solids(
    frame: int, body: InertialParameters, shapes: Mapping[str, Array], dot: float
) -> list[Solid]:
    if not body.mass > 0:
        return []
    place = np.eye(3) * dot**2
    solids = [Solid.ellipsoid("centre of mass", frame, body.com, place, colour=_CENTRE)]
    region = shapes.get("region")
    if region is not None and np.linalg.eigvalsh(region)[-1] > (_MIN_REGION_RATIO * dot) ** 2:
        solids.append(
            Solid.ellipsoid("95 % region", frame, body.com, region, colour=_REGION, opacity=0.55)
        )
    return solids


def _inertia_solid(frame: int, body: InertialParameters, matrix: Array, *, guess: bool) -> Solid:
    """The ellipsoid of the inertia, paler where its shape is a guess."""
    name = _PAYLOAD
    opacity = 0.45
    if guess:
        name = _GUESS
        opacity = 0.15
    return Solid.ellipsoid(name, frame, body.com, matrix, colour=_LOAD, opacity=opacity)
