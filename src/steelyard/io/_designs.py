"""Limits of a design in a TOML file; docs/explanation/excitation.md describes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard import fields, saved
from steelyard._arrays import Array
from steelyard.errors import InvalidTrajectory, SteelyardError
from steelyard.excitation._limits import DesignLimits
from steelyard.excitation._workspace import Cone, OrientationWorkspace, Scene, Sector
from steelyard.robot import JointLimits, RobotModel
from steelyard.robot._geometry import Body
from steelyard.robot._urdf import read_urdf

_JOINT_KEYS = ("q_min", "q_max", "v_max", "a_max", "tau_max")

_AXIS = fields.one_of("x", "y", "z")
_SCENE = {
    "floor": fields.number(),
    "clearance": fields.number(0.0),
    "radius": fields.each_or_all("n", 0.0),
    "urdf": fields.TEXT,
    "package_folders": fields.each(fields.TEXT),
    "self_collision": fields.FLAG,
    "wall": fields.each(fields.table({"point": fields.numbers(3), "normal": fields.numbers(3)})),
    "box": fields.each(
        fields.table({"centre": fields.numbers(3), "size": fields.numbers(3, low=0.0)})
    ),
}
_FORMAT = {
    **{name: fields.each_or_all("n", finite=False) for name in _JOINT_KEYS},
    "form": fields.one_of("exact", "amplitude"),
    "height": fields.numbers(2, finite=False),
    "linear_speed": fields.each_or_all(3, 0.0, finite=False),
    "angular_speed": fields.each_or_all(3, 0.0, finite=False),
    "sector": fields.each(
        fields.table(
            {
                "axis": _AXIS,
                "theta_deg": fields.optional(fields.numbers(2)),
                "phi_deg": fields.optional(fields.numbers(2)),
            }
        )
    ),
    "cone": fields.each(
        fields.table(
            {
                "axis": _AXIS,
                "direction": fields.numbers(3),
                "half_angle_deg": fields.number(0.0, 180.0),
            }
        )
    ),
    "scene": fields.table(_SCENE, partial=True),
}


def load_limits(
    robot: RobotModel,
    path: str | Path,
    *,
    urdf: str | Path | None = None,
) -> DesignLimits:
    """The limits in a TOML file, narrowed to those of the arm.

    Args:
        urdf: of the arm; its <collision> shapes are used where the file gives neither shapes nor a
            radius
    """
    content = saved.read_toml(path)
    try:
        scene = content.get("scene")
        bodies: tuple[Body, ...] = ()
        if isinstance(scene, dict):
            bodies = _bodies(robot, scene, urdf, Path(path).parent)
        limits = _limits(robot, content, bodies)
        fields.table(_FORMAT, partial=True)(content, "", {"n": robot.n})
        return limits
    except SteelyardError:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        raise InvalidTrajectory(f"limits {path}: {error}") from error


def _bodies(
    robot: RobotModel, scene: dict[str, Any], urdf: str | Path | None, folder: Path
) -> tuple[Body, ...]:
    """The shapes of the arm in a scene; none where it has capsules."""
    shapes = _shapes(urdf, scene, folder)
    if shapes is None:
        return ()
    packages = [str(folder / name) for name in scene.get("package_folders", [])]
    return Body.from_urdf(robot, shapes, packages)


def _shapes(urdf: str | Path | None, scene: dict[str, Any], folder: Path) -> Path | None:
    """The URDF whose shapes the arm has in a scene; None where it has capsules."""
    if "urdf" in scene:
        return folder / str(scene["urdf"])
    own = urdf is not None and "radius" not in scene and "<collision" in read_urdf(urdf)
    if own:
        return Path(str(urdf))
    return None


def _limits(robot: RobotModel, content: dict[str, Any], bodies: tuple[Body, ...]) -> DesignLimits:
    _require_known(content, set(_FORMAT), "the file")
    defaults = {"q_min": -np.inf}
    columns = {
        key: _per_joint(content.get(key, defaults.get(key, np.inf)), robot.n, key)
        for key in _JOINT_KEYS
    }
    sectors: list[Sector | Cone] = [
        Sector(
            item["axis"],
            _radians(item, "theta_deg", (0, 180)),
            _radians(item, "phi_deg", (-180, 180)),
        )
        for item in content.get("sector", [])
    ]
    cones = [
        Cone(item["axis"], item["direction"], float(np.radians(item["half_angle_deg"])))
        for item in content.get("cone", [])
    ]
    low, high = content.get("height", (-np.inf, np.inf))
    regions = (*sectors, *cones)
    return replace(
        DesignLimits.of(robot).narrowed(JointLimits(**columns), joint_names=robot.joint_names),
        form=content.get("form", "exact"),
        height=(float(low), float(high)),
        linear_speed=content.get("linear_speed", np.inf),
        angular_speed=content.get("angular_speed", np.inf),
        workspace=OrientationWorkspace(regions) if regions else None,
        scene=_scene(content["scene"], bodies) if "scene" in content else None,
    )


def _scene(content: dict[str, Any], bodies: tuple[Body, ...]) -> Scene:
    _require_known(content, set(_SCENE), "[scene]")
    obstacles: list[Body] = []
    if "floor" in content:
        obstacles.append(Body.half_space("floor", (0, 0, content["floor"]), (0, 0, 1)))
    for k, item in enumerate(content.get("wall", []), start=1):
        obstacles.append(Body.half_space(f"wall {k}", item["point"], item["normal"]))
    for k, item in enumerate(content.get("box", []), start=1):
        obstacles.append(Body.box(f"box {k}", item["centre"], item["size"]))
    radius = content.get("radius")
    if isinstance(radius, list):
        radius = tuple(radius)
    elif radius is not None:
        radius = float(radius)
    return Scene(
        tuple(obstacles),
        bodies=bodies,
        radius=radius,
        clearance=float(content.get("clearance", 0.02)),
        self_collision=bool(content.get("self_collision", True)),
    )


def _per_joint(values: Any, n: int, name: str) -> Array:
    array = np.array(values, dtype=float)
    if array.ndim == 0:
        array = np.full(n, array)
    if array.shape != (n,):
        raise InvalidTrajectory(f"{name} must be one number or {n}, got {array}")
    return array


def _radians(item: dict[str, Any], key: str, default: tuple[float, float]) -> tuple[float, float]:
    low, high = item.get(key, default)
    return float(np.radians(low)), float(np.radians(high))


def _require_known(table: dict[str, Any], known: set[str], place: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise InvalidTrajectory(
            f"{place} has an unknown key '{unknown[0]}'; known are {', '.join(sorted(known))}"
        )
