"""Limits of a design in a TOML file; docs/explanation/excitation.md describes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from steelyard import _saved
from steelyard._arrays import Array
from steelyard._codec import Value
from steelyard._kinds import INFINITE, NOT_NEGATIVE, POSITIVE, Range, Shape
from steelyard.errors import InvalidTrajectory
from steelyard.excitation._limits import DesignLimits
from steelyard.excitation._workspace import Cone, OrientationWorkspace, Sector, Surroundings
from steelyard.robot import JointLimits, RobotModel
from steelyard.robot._geometry import Body
from steelyard.robot._urdf import read_urdf

_JOINT_KEYS = ("q_min", "q_max", "v_max", "a_max", "tau_max")

_Axis = Literal["x", "y", "z"]
_Limit = Annotated[float, INFINITE] | Annotated[Array, Shape("n"), INFINITE]
_Speed = Annotated[float, INFINITE, POSITIVE] | Annotated[Array, Shape(3), INFINITE, POSITIVE]


@dataclass(frozen=True, eq=False)
class _Wall(Value, error=InvalidTrajectory):
    point: Annotated[Array, Shape(3)]
    normal: Annotated[Array, Shape(3)]


@dataclass(frozen=True, eq=False)
class _Box(Value, error=InvalidTrajectory):
    centre: Annotated[Array, Shape(3)]
    size: Annotated[Array, Shape(3), NOT_NEGATIVE]


@dataclass(frozen=True, eq=False)
class _SectorEntry(Value, error=InvalidTrajectory, partial=True):
    axis: _Axis
    theta_deg: tuple[float, float] = (0.0, 180.0)
    phi_deg: tuple[float, float] = (-180.0, 180.0)


@dataclass(frozen=True, eq=False)
class _ConeEntry(Value, error=InvalidTrajectory):
    axis: _Axis
    direction: Annotated[Array, Shape(3)]
    half_angle_deg: Annotated[float, Range(0.0, 180.0)]


@dataclass(frozen=True, eq=False)
class _SurroundingsTable(Value, error=InvalidTrajectory, partial=True):
    """The table [surroundings]: obstacles, and shapes of the arm."""

    floor: float | None = None
    clearance: Annotated[float, NOT_NEGATIVE] = 0.02
    radius: Annotated[float, POSITIVE] | tuple[Annotated[float, POSITIVE], ...] | None = None
    urdf: str | None = None
    package_folders: tuple[str, ...] = ()
    self_collision: bool = True
    wall: tuple[_Wall, ...] = ()
    box: tuple[_Box, ...] = ()

    def with_bodies(self, bodies: tuple[Body, ...]) -> Surroundings:
        """The surroundings with these shapes of the arm."""
        obstacles: list[Body] = []
        if self.floor is not None:
            obstacles.append(Body.half_space("floor", (0, 0, self.floor), (0, 0, 1)))
        for k, wall in enumerate(self.wall, start=1):
            obstacles.append(Body.half_space(f"wall {k}", wall.point, wall.normal))
        for k, box in enumerate(self.box, start=1):
            obstacles.append(Body.box(f"box {k}", box.centre, box.size))
        return Surroundings(
            tuple(obstacles),
            bodies=bodies,
            radius=self.radius,
            clearance=self.clearance,
            self_collision=self.self_collision,
        )


@dataclass(frozen=True, eq=False)
class _LimitsFile(Value, error=InvalidTrajectory, partial=True):
    """The content of a TOML file with limits of a design."""

    q_min: _Limit = -np.inf
    q_max: _Limit = np.inf
    v_max: _Limit = np.inf
    a_max: _Limit = np.inf
    tau_max: _Limit = np.inf
    form: Literal["exact", "amplitude"] = "exact"
    height: tuple[Annotated[float, INFINITE], Annotated[float, INFINITE]] = (-np.inf, np.inf)
    linear_speed: _Speed = np.inf
    angular_speed: _Speed = np.inf
    sector: tuple[_SectorEntry, ...] = ()
    cone: tuple[_ConeEntry, ...] = ()
    surroundings: _SurroundingsTable | None = None

    @property
    def workspace(self) -> OrientationWorkspace | None:
        """The allowed orientations; None where none are given."""
        sectors: list[Sector | Cone] = [
            Sector(entry.axis, _radians(entry.theta_deg), _radians(entry.phi_deg))
            for entry in self.sector
        ]
        cones = [
            Cone(entry.axis, entry.direction, float(np.radians(entry.half_angle_deg)))
            for entry in self.cone
        ]
        regions = (*sectors, *cones)
        if regions:
            return OrientationWorkspace(regions)
        return None


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
    content = _saved.read_toml(path)
    try:
        found = _LimitsFile.from_dict(content)
    except InvalidTrajectory as error:
        raise InvalidTrajectory(f"limits {path}: {error}") from error
    return _limits(robot, found, _bodies(robot, found.surroundings, urdf, Path(path).parent))


def _bodies(
    robot: RobotModel,
    surroundings: _SurroundingsTable | None,
    urdf: str | Path | None,
    folder: Path,
) -> tuple[Body, ...]:
    """The shapes of the arm in its surroundings; none where it has capsules."""
    if surroundings is None:
        return ()
    shapes = _shapes(urdf, surroundings, folder)
    if shapes is None:
        return ()
    return Body.from_urdf(
        robot, shapes, [str(folder / name) for name in surroundings.package_folders]
    )


def _shapes(urdf: str | Path | None, surroundings: _SurroundingsTable, folder: Path) -> Path | None:
    """The URDF whose shapes the arm has in its surroundings; None where it has capsules."""
    if surroundings.urdf is not None:
        return folder / surroundings.urdf
    if urdf is not None and surroundings.radius is None and "<collision" in read_urdf(urdf):
        return Path(urdf)
    return None


def _limits(robot: RobotModel, found: _LimitsFile, bodies: tuple[Body, ...]) -> DesignLimits:
    columns = {key: _per_joint(getattr(found, key), robot.n, key) for key in _JOINT_KEYS}
    surroundings = None
    if found.surroundings is not None:
        if found.surroundings.radius is not None:
            _per_joint(found.surroundings.radius, robot.n, "surroundings.radius")
        surroundings = found.surroundings.with_bodies(bodies)
    return replace(
        DesignLimits.of(robot).narrowed(JointLimits(**columns), joint_names=robot.joint_names),
        form=found.form,
        height=found.height,
        linear_speed=np.broadcast_to(found.linear_speed, 3),
        angular_speed=np.broadcast_to(found.angular_speed, 3),
        workspace=found.workspace,
        surroundings=surroundings,
    )


def _per_joint(values: Any, n: int, name: str) -> Array:
    array = np.array(values, dtype=float)
    if array.ndim == 0:
        array = np.full(n, array)
    if array.shape != (n,):
        raise InvalidTrajectory(f"{name} must be one number or {n}, got {array}")
    return array


def _radians(degrees: tuple[float, float]) -> tuple[float, float]:
    low, high = degrees
    return float(np.radians(low)), float(np.radians(high))
