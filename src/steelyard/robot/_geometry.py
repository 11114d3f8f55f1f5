"""Distances between the bodies of an arm, and to obstacles around it.

The bodies are those of a URDF's <collision> elements, meshes by their convex hulls (Coal's); or
capsules along the links of a DH table: the path from one joint frame to the next is a (twist axis
x) and d (joint axis z), one capsule each. Capsules also stand in for meshes that are not found, and
say so. Pinocchio and Coal give the distance d of two bodies and their nearest points p_1, p_2; with
the unit vector from p_1 to p_2,

    d = direction . (p_2 - p_1),      dd/dq_j = direction . (dp_2/dq_j - dp_1/dq_j)

where p_1 and p_2 move as points of their bodies (the envelope theorem: that other points become the
nearest ones does not count to first order).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import coal  # type: ignore[import-untyped]
import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from steelyard._arrays import Array, Indices
from steelyard.errors import InvalidRobot
from steelyard.robot._model import RobotModel
from steelyard.robot._urdf import read_urdf, with_found_meshes

_MIN_LENGTH = 1e-6  # [m] of a capsule
_DRAWN_RADII = (0.036, 0.026)  # of the first and the last drawn link, over the arm's length
_SIDES = 24  # of drawn bodies of revolution
_BOX_PROFILE = np.array([(0, -1), (1, -1), (1, -1), (1, 1), (1, 1), (0, 1)], dtype=float)
_ARC_PROFILE = np.array(
    [(np.cos(x), np.sin(x)) for x in np.deg2rad([*range(-90, 1, 10), *range(0, 91, 10)])]
)
"""Radius and height of unit bodies of revolution; a repeated point is an edge."""

_DEFAULT_RADIUS = 0.06  # of capsules, [m]
_ALWAYS_CLOSE_SHARE = 0.95  # of random postures
_MAX_CONSTANT_VARIATION = 1e-7  # [m] of a distance that no joint changes
_RANDOM_POSTURES = 300


@dataclass(frozen=True, eq=False)
class Body:
    """A shape that is fixed to a joint frame (0: the base).

    Attributes:
        name: in messages
        joint: number of the joint that moves it, 0 for the base
        placement: the shape in its joint frame, (4, 4)
        shape: a shape of Coal
        mesh: file of the mesh that it is the convex hull of
        instead_of: the mesh that it stands in for, because that was not found
    """

    name: str
    joint: int
    placement: Array
    shape: coal.CollisionGeometry = field(repr=False)
    mesh: str = ""
    instead_of: str = ""

    @property
    def words(self) -> str:
        """A short description: its shape, size and origin."""
        if self.mesh:
            kind = f"convex hull of {self.mesh}"
        else:
            kind = type(self.shape).__name__.lower()
        if hasattr(self.shape, "radius"):
            round_ = f" of {1e3 * self.shape.radius:.3g} mm radius"
        else:
            round_ = ""
        if self.instead_of:
            stands_in = f", in place of {self.instead_of}, which was not found"
        else:
            stands_in = ""
        return f"{self.name}: {kind}{round_}{stands_in}"

    @classmethod
    def capsules(cls, robot: RobotModel, radius: ArrayLike = _DEFAULT_RADIUS) -> tuple[Body, ...]:
        """Capsules along the links of an arm, from joint to joint and to the flange.

        Args:
            radius: of all links, or of each, (n,) [m]
        """
        radii = np.asarray(radius, dtype=float)
        if radii.shape not in ((), (robot.n,)) or not (np.isfinite(radii) & (radii > 0)).all():
            raise InvalidRobot(
                f"capsules need one positive radius, or one for each of {robot.n} links, got"
                f" {radius!r}"
            )
        radii = np.broadcast_to(radii, (robot.n,))
        bodies: list[Body] = []
        for i in range(robot.n + 1):
            r = radii[max(i - 1, 0)]
            points = _path(robot, i)
            for k, (start, end) in enumerate(pairwise(points)):
                length = float(np.linalg.norm(end - start))
                if length > _MIN_LENGTH or (
                    i == robot.n and k == len(points) - 2 and bodies[-1].joint != i
                ):
                    if i:
                        name = f"link {i}"
                    else:
                        name = "base"
                    bodies.append(
                        cls(name, i, _along(start, end), coal.Capsule(r, max(length, _MIN_LENGTH)))
                    )
        return tuple(bodies)

    @classmethod
    def to_draw(
        cls, robot: RobotModel, path: str | Path | None = None, package_folders: Sequence[str] = ()
    ) -> tuple[Body, ...]:
        """The bodies that show an arm: <visual> shapes of its URDF, capsules for other links.

        Args:
            path: of the URDF; capsules alone by default
            package_folders: where 'package://' paths of meshes begin
        """
        found: tuple[Body, ...] = ()
        if path is not None and "<visual" in read_urdf(path):
            found = cls.from_urdf(robot, path, package_folders, visual=True)
        lengths = [
            np.linalg.norm(np.diff(_path(robot, i), axis=0), axis=1).sum()
            for i in range(robot.n + 1)
        ]
        radii = max(float(sum(lengths)), _MIN_LENGTH) * np.linspace(*_DRAWN_RADII, robot.n)
        drives = (
            cls(
                f"drive {i + 1}",
                i + 1,
                _along(-r * axis, r * axis),
                coal.Cylinder(1.15 * r, 2.5 * r),
            )
            for i, (axis, r) in enumerate(zip(robot.joint_axes, radii, strict=True))
        )
        drawn = {body.joint for body in found}
        return *found, *(
            body for body in (*cls.capsules(robot, radii), *drives) if body.joint not in drawn
        )

    @classmethod
    def from_urdf(
        cls,
        robot: RobotModel,
        path: str | Path,
        package_folders: Sequence[str] = (),
        *,
        visual: bool = False,
    ) -> tuple[Body, ...]:
        """The <collision> shapes of the URDF that an arm was made from, joints locked or not.

        Capsules stand in for meshes of <collision> that are not found.

        Args:
            package_folders: where 'package://' paths of meshes begin, besides those of
                ROS_PACKAGE_PATH and AMENT_PREFIX_PATH and the folders above the URDF
            visual: the <visual> shapes instead
        """
        if visual:
            kind, word = (pin.VISUAL, "visual")
        else:
            kind, word = (pin.COLLISION, "collision")
        model = pin.buildModelFromXML(read_urdf(path))
        try:
            text, missing = with_found_meshes(path, word, package_folders)
            if visual and missing:
                raise ValueError(f"mesh {missing[0][1]} was not found")
            found = pin.buildGeomFromUrdfString(model, text, kind)
        except (ValueError, RuntimeError, ET.ParseError) as error:
            raise InvalidRobot(f"the {word} shapes of {path} cannot be read: {error}") from error
        if not found.ngeoms and not missing:
            raise InvalidRobot(f"{path} has no <{word}> shapes; give a radius for capsules instead")
        bodies = []
        for item in found.geometryObjects:
            link = model.frames[item.parentFrame]
            here = robot._pin.frames[robot._frame(link.name)]
            placement = here.placement * link.placement.inverse() * item.placement
            shape = item.geometry
            mesh = ""
            if isinstance(shape, coal.BVHModelBase) and not visual:
                shape.buildConvexHull(True, "Qt")
                shape = shape.convex
                mesh = Path(item.meshPath).name
            bodies.append(cls(link.name, int(here.parentJoint), placement.homogeneous, shape, mesh))
        stand_ins = [body for link, file in missing for body in cls._stand_ins(robot, link, file)]
        return *bodies, *stand_ins

    @classmethod
    def _stand_ins(cls, robot: RobotModel, link: str, mesh: str) -> Iterator[Body]:
        """Replacements for a mesh of a link: its capsules, or a sphere where it has no length."""
        here = robot._pin.frames[robot._frame(link)]
        joint = int(here.parentJoint)
        found = [body for body in cls.capsules(robot) if body.joint == joint]
        sphere = cls(link, joint, here.placement.homogeneous, coal.Sphere(_DEFAULT_RADIUS))
        yield from (replace(body, name=link, instead_of=mesh) for body in found or [sphere])

    @property
    def is_mesh(self) -> bool:
        """Whether it is a surface of triangles."""
        return isinstance(self.shape, coal.BVHModelBase)

    @property
    def surface(self) -> tuple[Array, Indices]:
        """Corners, (V, 3) [m] in the frame of the shape, and outward triangles, (F, 3)."""
        shape = self.shape
        if self.is_mesh:
            corners = np.array(shape.vertices(), dtype=float).reshape(-1, 3)
            triangles = [
                [tri[0], tri[1], tri[2]] for tri in map(shape.tri_indices, range(shape.num_tris))
            ]
            return corners, np.array(triangles, dtype=int)
        return _turned(*self.revolved)

    @property
    def revolved(self) -> tuple[Array, int, Array]:
        """The profile of revolution about z: radius and height, (P, 2), sides, scale (3,) [m]."""
        shape = self.shape
        if isinstance(shape, coal.Box):
            return _BOX_PROFILE * [np.sqrt(2), 1.0], 4, np.array(shape.halfSide)
        if isinstance(shape, coal.Sphere):
            return _ARC_PROFILE, _SIDES, np.full(3, shape.radius)
        if isinstance(shape, coal.Cylinder):
            return _BOX_PROFILE, _SIDES, np.array([shape.radius, shape.radius, shape.halfLength])
        if isinstance(shape, coal.Capsule):
            ends = np.where(_ARC_PROFILE[:, 1:] < 0, -1.0, 1.0) * [
                0.0,
                shape.halfLength / shape.radius,
            ]
            return _ARC_PROFILE + ends, _SIDES, np.full(3, shape.radius)
        raise InvalidRobot(f"{self.name}: a shape of kind {type(shape).__name__} cannot be drawn")

    @classmethod
    def half_space(cls, name: str, point: ArrayLike, normal: ArrayLike) -> Body:
        """Everything behind a plane: a floor, a wall, a ceiling.

        Args:
            point: on the plane, (3,) [m], in the base frame
            normal: away from the solid, (3,), in the base frame
        """
        direction = np.array(normal, dtype=float)
        p = np.array(point, dtype=float)
        if direction.shape != (3,) or p.shape != (3,) or not np.linalg.norm(direction) > 0:
            raise InvalidRobot(
                f"{name} needs a point and a normal of three numbers, got {point!r} and {normal!r}"
            )
        direction = direction / np.linalg.norm(direction)
        return cls(name, 0, np.eye(4), coal.Halfspace(direction, float(direction @ p)))

    @classmethod
    def box(cls, name: str, centre: ArrayLike, size: ArrayLike) -> Body:
        """A box along the axes of the base frame: centre (3,) [m], size of its edges (3,) [m]."""
        edges = np.array(size, dtype=float)
        T = np.eye(4)
        if edges.shape != (3,) or np.shape(centre) != (3,) or not (edges > 0).all():
            raise InvalidRobot(
                f"{name} needs a centre and three positive edges, got {centre!r} and {size!r}"
            )
        T[:3, 3] = centre
        return cls(name, 0, T, coal.Box(*edges))


class CollisionModel:
    """Distances between the bodies of an arm, and between them and obstacles.

    Args:
        robot: the arm
        bodies: of the arm
        obstacles: around it
        self_collision: whether bodies of the arm count among each other; those on neighbouring
            joints never do, nor those that are closer than the clearance in nearly all postures
        clearance: smallest allowed distance, [m]

    Attributes:
        pair_names: of the pairs that are checked
        left_out: names of pairs that are too close in (nearly) all postures and not checked
    """

    pair_names: tuple[str, ...]

    def __init__(
        self,
        robot: RobotModel,
        bodies: Sequence[Body],
        obstacles: Sequence[Body] = (),
        *,
        self_collision: bool = True,
        clearance: float = 0.0,
    ) -> None:
        self._pin, self._data = robot._pin, robot._pin.createData()
        self._shapes = pin.GeometryModel()
        every = (*bodies, *obstacles)
        self._ids = [
            self._shapes.addGeometryObject(
                pin.GeometryObject(
                    f"{k}: {body.name}", body.joint, pin.SE3(body.placement), body.shape
                )
            )
            for k, body in enumerate(every)
        ]
        count = len(bodies)
        pairs = []
        for i, first in enumerate(bodies):
            if self_collision:
                others = enumerate(bodies[i + 1 :], start=i + 1)
                pairs += [(i, k) for k, other in others if abs(other.joint - first.joint) > 1]
            if first.joint:
                pairs += [(i, k) for k in range(count, len(every))]
        self._every = every
        self._robot = robot
        self._clearance = clearance
        self._set(pairs)
        touching = self._touching()
        self.left_out = tuple(
            dict.fromkeys(
                name for name, always in zip(self.pair_names, touching, strict=True) if always
            )
        )
        self._set([pair for pair, always in zip(pairs, touching, strict=True) if not always])

    def near(self, distance: float) -> CollisionModel:
        """A copy with only the pairs that come closer than a distance [m] in random postures."""
        keep = self.distances(self._random_postures()).min(axis=0) < distance
        made = copy(self)
        made._data, made._shapes = self._pin.createData(), self._shapes.copy()
        made._set([pair for pair, close in zip(self._pairs, keep, strict=True) if close])
        return made

    def _set(self, pairs: Sequence[tuple[int, int]]) -> None:
        every = self._every
        self._pairs = tuple(pairs)
        self._shapes.removeAllCollisionPairs()
        for i, k in pairs:
            self._shapes.addCollisionPair(pin.CollisionPair(self._ids[i], self._ids[k]))
        self._distance = self._shapes.createData()
        self._joints = np.array(
            [(every[i].joint, every[k].joint) for i, k in pairs], dtype=int
        ).reshape(-1, 2)
        self.pair_names = tuple(f"{every[i].name} and {every[k].name}" for i, k in pairs)

    def _random_postures(self) -> Array:
        limits = self._robot.limits
        low = np.maximum(limits.q_min, -np.pi)
        high = np.minimum(limits.q_max, np.pi)
        return np.random.default_rng(0).uniform(low, high, (_RANDOM_POSTURES, self._robot.n))

    def _touching(self) -> Array:
        """Whether each pair is too close in all postures; in nearly all for pairs of the arm."""
        own = (self._joints > 0).all(axis=1) | (self._joints[:, 0] == 0)
        distance = self.distances(self._random_postures())
        often = (distance <= self._clearance).mean(axis=0) > np.where(
            own, _ALWAYS_CLOSE_SHARE, 1.0 - 1e-9
        )
        return np.asarray(often & (own | (np.ptp(distance, axis=0) < _MAX_CONSTANT_VARIATION)))

    def distances(self, q: ArrayLike) -> Array:
        """The distance of every pair at q (N, n), (N, pairs) [m], negative if they overlap."""
        (rows,) = self._robot._rows(q)
        out = np.empty((len(rows), len(self.pair_names)))
        for i, qi in enumerate(rows):
            pin.computeDistances(self._pin, self._data, self._shapes, self._distance, qi)
            out[i] = [found.min_distance for found in self._distance.distanceResults]
        return out

    def slopes(self, q: ArrayLike) -> tuple[Array, Array]:
        """The distances at q (N, n), (N, pairs) [m], and derivatives by q, (N, pairs, n)."""
        (rows,) = self._robot._rows(q)
        n = self._pin.nv
        count = len(self.pair_names)
        distance = np.empty((len(rows), count))
        slope = np.empty((len(rows), count, n))
        for i, qi in enumerate(rows):
            pin.computeJointJacobians(self._pin, self._data, qi)
            pin.computeDistances(self._pin, self._data, self._shapes, self._distance, qi)
            found = self._distance.distanceResults
            distance[i] = [item.min_distance for item in found]
            nearest = [(item.getNearestPoint1(), item.getNearestPoint2()) for item in found]
            points = np.array(nearest).reshape(-1, 2, 3)  # of two links there is no pair
            moved = self._point_jacobians(points)
            apart = np.sign(distance[i])[:, None] * (points[:, 1] - points[:, 0])
            direction = apart / np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-12)
            slope[i] = np.einsum("pa,paj->pj", direction, moved[:, 1] - moved[:, 0])
        return distance, slope

    def _point_jacobians(self, points: Array) -> Array:
        """How the points move with q as points of their bodies, (pairs, 2, 3, n)."""
        n = self._pin.nv
        J = np.array(self._data.J)  # of the world's origin: linear, then angular
        ahead = np.arange(n)[None, None] < self._joints[..., None]
        turned = np.cross(J[3:].T[None, None], points[:, :, None, :])
        return np.asarray(np.moveaxis((J[:3].T + turned) * ahead[..., None], -1, -2))


def _path(robot: RobotModel, i: int) -> Array:
    """Corners of link i from its joint frame to the next, or to the flange, (2 or 3, 3)."""
    if i == robot.n:
        end = robot.T_joint_flange[:3, 3]
    else:
        end = robot.joint_placements[i][:3, 3]
    corners = [np.zeros(3), end]
    if robot.dh is not None and robot.dh.convention == "modified" and i < robot.n:
        corners.insert(1, np.array([robot.dh.a[i], 0.0, 0.0]))
    elif robot.dh is not None and robot.dh.convention == "classic" and i:
        corners.insert(1, np.array([0.0, 0.0, robot.dh.d[i - 1]]))
    return np.array(corners)


def _turned(profile: Array, sides: int, scale: Array) -> tuple[Array, Indices]:
    """The surface that a profile of radius and height makes when it turns about z."""
    angle = 2 * np.pi * (np.arange(sides) + 0.5) / sides
    r = profile[:, :1]
    z = profile[:, 1:]
    corners = np.stack([r * np.cos(angle), r * np.sin(angle), z * np.ones(sides)], axis=-1)
    k = np.arange(sides)
    rings = [ring for ring in range(len(profile) - 1) if (profile[ring] != profile[ring + 1]).any()]
    below = np.array([[ring * sides + k, ring * sides + (k + 1) % sides] for ring in rings])
    a = below[:, 0]
    b = below[:, 1]
    c = below[:, 0] + sides
    d = below[:, 1] + sides
    triangles = np.concatenate([np.stack([a, b, d], axis=-1), np.stack([a, d, c], axis=-1)])
    return scale * corners.reshape(-1, 3), triangles.reshape(-1, 3)


def _along(start: Array, end: Array) -> Array:
    """The frame in the middle of a segment, z along it, (4, 4)."""
    T = np.eye(4)
    T[:3, 3] = (start + end) / 2
    length = np.linalg.norm(end - start)
    if length > _MIN_LENGTH:
        z = (end - start) / length
        x = np.cross(np.eye(3)[np.abs(z).argmin()], z)
        x /= np.linalg.norm(x)
        T[:3, :3] = np.column_stack([x, np.cross(z, x), z])
    return T
