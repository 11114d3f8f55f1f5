"""A serial arm: rigid-body dynamics and the regressor that identification stands on.

The torque that the drives apply is linear in the parameters phi of links and drives,

    tau = Y(q, v, a) phi,   k = 14 n
    phi = [link 1 (10) ... link n (10), Ia (n), Fc (n), Fv (n), B (n)]

with each link's ten numbers in Pinocchio's order (`steelyard.inertia`), in the link's frame.
Pinocchio gives the columns of a link in its joint frame; where a (classic DH) link frame sits
elsewhere, the columns of a link are multiplied by the 10 x 10 matrix of that change of frame. A
payload, fixed to the flange, adds to the last link, so its columns are those of the last link, seen
from the flange frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from steelyard._arrays import Array, Indices, gravity_vector, read_only
from steelyard._codec import Value
from steelyard._kinds import RIGID, Shape
from steelyard._units import GRAVITY_DOWN
from steelyard.errors import InvalidRobot
from steelyard.inertia import (
    InertialParameters,
    checked_transform,
    frame_change_matrix,
)
from steelyard.recording import ArmIdentity
from steelyard.robot._chain import (
    JointLimits,
    KinematicChain,
    joints_in_a_row,
    locked_chain,
)
from steelyard.robot._dh import DHTable, JointType
from steelyard.robot._drive import DriveModel
from steelyard.robot._parameters import DRIVE_KINDS, LINK_KINDS, Parameter, ParameterTable
from steelyard.robot._urdf import ParsedURDF, read_urdf

_SAME_NUMBERS = 1e-9  # between a saved robot and the robot that is made of it
_SAME_PLACEMENT = 1e-6  # largest difference between placements of the same robot [m or rad]


@dataclass(frozen=True, eq=False, repr=False)
class RobotModel(KinematicChain):
    """An arm of n joints in a row. Make one with `from_urdf`, `from_dh` or `steelyard.load_robot`.

    Motion is given as joint positions q [rad or m], velocities v [rad/s or m/s] and accelerations a
    [rad/s^2 or m/s^2], each (N, n); torques are [Nm or N].

    Attributes:
        name: of the robot
        flange: name of the frame that a payload is fixed to and expressed in
        limits: of the joints
        T_joint_link: each link frame in its joint frame, (n, 4, 4)
        link_names: name of the link that each joint moves; also the name of its frame
        drive: rotor inertia, friction, gains and coupling of the drives
        dh: the table it was made from; None for a URDF
        home: a posture to start from, (n,) [rad or m]
        source: where its numbers come from, in words
        held: position of each joint of its URDF that was taken to stand still, by name [rad or m]
        serial: serial number of one arm of this kind; empty where it is unknown
        terms: names of the terms of plug-ins that act on it (`steelyard.robot._terms`)
        urdf_file: full path of the URDF that it was read from, for pictures; empty for a table
    """

    drive: DriveModel
    dh: DHTable | None
    home: Array
    source: str
    held: Mapping[str, float] = field(default_factory=dict)
    serial: str = ""
    terms: tuple[str, ...] = ()
    urdf_file: str = ""

    @classmethod
    def from_urdf(
        cls,
        path: str | Path,
        *,
        flange: str | None = None,
        locked: Mapping[str, float] | None = None,
        gravity_base: ArrayLike = GRAVITY_DOWN,
    ) -> RobotModel:
        """The arm that a URDF file describes; meshes are not needed, fixed joints are merged.

        Joints that are not on the way to the flange (fingers, a camera's) stand still at the
        position nearest to zero, and `source` says so. Friction is that of <dynamics>.

        Args:
            flange: frame for payloads; by default a link that is named as a flange, an end effector
                or a tool frame, else the last link before a gripper; `source` says which
            locked: position of each joint that shall not move, by name [rad or m]
            gravity_base: gravity, pointing down, (3,) [m/s^2], in the base frame
        """
        text = read_urdf(path)
        made = cls.from_urdf_text(
            text, flange=flange, locked=locked, gravity_base=gravity_base, source=Path(path).name
        )
        return replace(made, urdf_file=str(Path(path).absolute()))

    @classmethod
    def from_urdf_text(
        cls,
        text: str,
        *,
        flange: str | None = None,
        locked: Mapping[str, float] | None = None,
        gravity_base: ArrayLike = GRAVITY_DOWN,
        source: str = "URDF text",
    ) -> RobotModel:
        """The arm that the text of a URDF describes, as `from_urdf` reads it from a file.

        Args:
            text: of the URDF
            flange: frame for payloads
            locked: position of each joint that shall not move, by name [rad or m]
            gravity_base: gravity, (3,) [m/s^2], in the base frame
            source: where the text comes from, for messages
        """
        parsed = ParsedURDF.of(text, source, locked=locked or {}, flange=flange)
        model = parsed.model
        model.gravity.linear = gravity_vector(gravity_base, InvalidRobot)
        n = model.nv
        coulomb, viscous = parsed.friction
        return cls(
            name=model.name,
            flange=parsed.choice.frame,
            limits=parsed.limits,
            drive=DriveModel(np.zeros(n), coulomb=coulomb, viscous=viscous),
            dh=None,
            home=parsed.limits.nearest_to_zero,
            source=f"{source}{parsed.words}",
            _pin=model,
            T_joint_link=np.tile(np.eye(4), (n, 1, 1)),
            link_names=parsed.link_names,
            held=parsed.held,
        )

    @classmethod
    def from_dh(
        cls,
        dh: DHTable,
        *,
        name: str = "arm",
        joint_names: Sequence[str] = (),
        links: Sequence[InertialParameters] = (),
        limits: JointLimits | None = None,
        drive: DriveModel | None = None,
        T_link_flange: ArrayLike | None = None,
    ) -> RobotModel:
        """The arm that a table of Denavit-Hartenberg parameters describes.

        Args:
            joint_names: joint1, joint2, ... by default
            links: inertial parameters of each link in its DH frame; massless by default
            limits: of the joints; none by default
            drive: of the joints; ideal by default
            T_link_flange: the flange in the last DH frame, (4, 4); that frame itself by default
        """
        n = len(dh)
        names = tuple(joint_names) or tuple(f"joint{i + 1}" for i in range(n))
        bodies = tuple(links) or (InertialParameters.nothing(),) * n
        if limits is None:
            limits = JointLimits.none(n)
        if drive is None:
            drive = DriveModel.ideal(n)
        for what, items in (
            ("joint_names", names),
            ("links", bodies),
            ("limits", limits),
            ("drive", drive),
        ):
            if len(items) != n:
                raise InvalidRobot(f"the DH table has {n} rows, but {len(items)} {what} were given")
        if len(set(names)) != n:
            raise InvalidRobot(f"each joint needs its own name, got {', '.join(names)}")
        if T_link_flange is None:
            T_link_flange = np.eye(4)
        else:
            T_link_flange = checked_transform(T_link_flange)
        link_names = tuple(f"link{i + 1}" for i in range(n))
        axes = np.tile([0.0, 0.0, 1.0], (n, 1))
        rows = (names, dh.joint_types, axes, dh.joint_placements, link_names, dh.T_joint_link)
        model = joints_in_a_row(
            name, zip(*rows, strict=True), "flange", dh.T_joint_link[-1] @ T_link_flange
        )
        model.gravity.linear = np.array(GRAVITY_DOWN)
        made = cls(
            name=name,
            flange="flange",
            limits=limits,
            drive=drive,
            dh=dh,
            home=limits.nearest_to_zero,
            source=f"{dh.convention} DH table",
            _pin=model,
            T_joint_link=dh.T_joint_link,
            link_names=link_names,
        )
        return made.with_links(bodies)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> RobotModel:
        """The robot that `to_dict` wrote down."""
        description = RobotDescription.from_dict(content)
        robot = description.robot()
        description.require_same(RobotDescription.of(robot))
        return robot

    def to_dict(self) -> dict[str, Any]:
        """All there is to know, as texts, numbers and arrays."""
        return RobotDescription.of(self).to_dict()

    def with_links(self, links: Sequence[InertialParameters]) -> RobotModel:
        """The same arm with other links, n of them, each in its link's frame."""
        if len(links) != self.n:
            raise InvalidRobot(f"{self.name} has {self.n} links, got {len(links)}")
        model = self._pin.copy()
        for i, (body, T) in enumerate(zip(links, self.T_joint_link, strict=True)):
            model.inertias[i + 1] = _pinocchio_inertia(body.in_frame(f"joint {i + 1}", T))
        return replace(self, _pin=model)

    def with_payload(self, payload: InertialParameters) -> RobotModel:
        """The same arm with a payload, in the flange frame, fixed to its flange."""
        if payload.frame != self.flange:
            raise InvalidRobot(
                f"the payload is in frame '{payload.frame}', the flange of {self.name} is"
                f" '{self.flange}'; express the payload in it with in_frame()"
            )
        *others, last = self.links
        T_link_flange = np.linalg.inv(self.T_joint_link[-1]) @ self.T_joint_flange
        return self.with_links([*others, last + payload.in_frame(last.frame, T_link_flange)])

    def with_drive(self, drive: DriveModel) -> RobotModel:
        """The same arm with other drives."""
        if len(drive) != self.n:
            raise InvalidRobot(f"{self.name} has {self.n} joints, the drive model {len(drive)}")
        return replace(self, drive=drive)

    def with_gravity(self, gravity_base: ArrayLike) -> RobotModel:
        """The same arm, mounted so that gravity in its base frame is gravity_base, (3,) [m/s^2]."""
        model = self._pin.copy()
        model.gravity.linear = gravity_vector(gravity_base, InvalidRobot)
        return replace(self, _pin=model)

    def with_serial(self, serial: str) -> RobotModel:
        """The same arm with a serial number."""
        return replace(self, serial=serial)

    def with_terms(self, terms: Sequence[str]) -> RobotModel:
        """The same arm with torques of plug-ins, named as their entry points `steelyard.terms`."""
        return replace(self, terms=tuple(terms))

    @property
    def arm(self) -> ArmIdentity:
        """The kind of arm, where its name tells it, and its serial number."""
        return ArmIdentity.named(self.name, self.serial)

    def with_locked(self, locked: Mapping[str, float]) -> RobotModel:
        """The same arm with joints `locked` at positions [rad or m], by name."""
        free = np.array([name not in locked for name in self.joint_names])
        if not free.any():
            raise InvalidRobot(f"{self.name}: with all joints locked there is nothing to identify")
        model = locked_chain(self._pin, locked, self.name)
        return replace(
            self,
            limits=self.limits.of_joints(free),
            drive=self.drive.of_joints(free),
            dh=None,
            home=read_only(self.home[free]),
            _pin=model,
            T_joint_link=self.T_joint_link[free],
            link_names=tuple(
                name for name, kept in zip(self.link_names, free, strict=True) if kept
            ),
        )

    @property
    def links(self) -> tuple[InertialParameters, ...]:
        """Inertial parameters of each link, in the link's frame."""
        bodies = zip(self._pin.inertias[1:], self.link_names, self.T_joint_link, strict=True)
        return tuple(
            InertialParameters.from_vector(body.toDynamicParameters(), name).in_frame(
                name, np.linalg.inv(T)
            )
            for body, name, T in bodies
        )

    def same_kinematics(self, other: RobotModel) -> bool:
        """Whether another robot has the same joints, axes and flange, to 1e-6 m or rad.

        Args:
            other: the robot to compare with
        """
        if self.n != other.n:
            return False
        return all(
            np.allclose(getattr(self, name), getattr(other, name), atol=_SAME_PLACEMENT)
            for name in ("joint_placements", "joint_axes", "T_joint_flange")
        )

    def require_real(self, engine: str) -> None:
        """Raises an error where a link is not physical or a rotor inertia is negative.

        Args:
            engine: name of the simulator that needs it, for messages
        """
        for body in self.links:
            if not body.is_physical:
                raise InvalidRobot(
                    f"link '{body.frame}' of {self.name} is not physical, which {engine} refuses:"
                    f" {body.why_not_physical}; identify feasible parameters, or replace them with"
                    " with_links()"
                )
        if (self.drive.rotor_inertia < 0).any():
            raise InvalidRobot(
                f"{self.name} has negative rotor inertia, which {engine} refuses:"
                f" {self.drive.rotor_inertia}"
            )

    @property
    def gravity_base(self) -> Array:
        """Gravity, pointing down, (3,) [m/s^2], in the base frame."""
        return np.array(self._pin.gravity.linear)

    @property
    def parameter_table(self) -> ParameterTable:
        """The k = 14 n parameters of the regressor's columns: m1, mx1, ..., Izz6, Ia1, ..., B6."""
        links = [Parameter(kind, j) for j in range(self.n) for kind in LINK_KINDS]
        drives = [Parameter(kind, j) for kind in DRIVE_KINDS for j in range(self.n)]
        return ParameterTable((*links, *drives))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the regressor's columns, as in `parameter_table`."""
        return self.parameter_table.names

    @property
    def parameters(self) -> Array:
        """The parameters phi of links and drives, (k,) [SI]."""
        return np.concatenate([*(body.vector for body in self.links), self.drive.parameters()])

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """The torque of the links alone at q, v, a, (N, n); (n,) for one row."""
        rows = self._rows(q, v, a)
        tau = np.empty(rows[0].shape)
        for i, (qi, vi, ai) in enumerate(zip(*rows, strict=True)):
            tau[i] = pin.rnea(self._pin, self._data, qi, vi, ai)
        return tau[0] if np.ndim(q) == 1 else tau

    def torque(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """The torque of links, rotors, friction and offset at q, v, a, (N, n); (n,) for one row."""
        rigid = self.inverse_dynamics(q, v, a)
        return rigid + self.drive.torque(v, a, load=rigid)

    def mass_matrix(self, q: ArrayLike) -> Array:
        """The joint-space inertia M(q) of the links at q (n,), (n, n) [kg m^2 or kg]."""
        (qi,) = self._row(q)
        M = np.array(pin.crba(self._pin, self._data, qi))
        lower = _below_diagonal(self.n)
        M[lower] = M.T[lower]  # the algorithm computes the upper triangle only
        return M

    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike) -> Array:
        """The matrix C(q, v) of Coriolis and centrifugal torques C v, (n, n); dM/dt = C + C'.

        Args:
            q: joint positions, (n,) [rad or m]
            v: joint velocities, (n,) [rad/s or m/s]
        """
        qi, vi = self._row(q, v)
        return np.array(pin.computeCoriolisMatrix(self._pin, self._data, qi, vi))

    def gravity_torque(self, q: ArrayLike) -> Array:
        """The torque that holds the links against gravity, (N, n); (n,) of one q (n,)."""
        (rows,) = self._rows(q)
        tau = np.empty(rows.shape)
        for i, qi in enumerate(rows):
            tau[i] = pin.computeGeneralizedGravity(self._pin, self._data, qi)
        return tau[0] if np.ndim(q) == 1 else tau

    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """The regressor Y(q, v, a), (N, n, k), with torque = Y @ parameters.

        Its columns are those of `parameter_table`.

        Stribeck and load-dependent friction are not linear in phi and have no column.
        """
        rows = self._rows(q, v, a)
        N, n = rows[0].shape
        Y = np.empty((N, n, 14 * n))
        links = Y[:, :, : 10 * n]
        for i, (qi, vi, ai) in enumerate(zip(*rows, strict=True)):
            links[i] = pin.computeJointTorqueRegressor(self._pin, self._data, qi, vi, ai)
        for columns, change in _changes_of_frame(self.T_joint_link.tobytes()):
            links[:, :, columns] = links[:, :, columns] @ change
        self.drive.fill_regressor(Y[:, :, 10 * n :], rows[1], rows[2])
        return Y

    def regressor_chunks(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, chunk: int = 4096
    ) -> Iterator[tuple[slice, Array]]:
        """The regressor of a long q, v, a, in pieces: (rows of q, regressor of these rows)."""
        q, v, a = self._rows(q, v, a)
        for start in range(0, len(q), chunk):
            piece = slice(start, min(start + chunk, len(q)))
            yield piece, self.regressor(q[piece], v[piece], a[piece])

    def payload_regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """The regressor W of a payload in the flange frame, (N, n, 10).

        The payload adds the torque W @ payload.vector.

        Args:
            q: joint positions, (N, n) [rad or m]
            v: joint velocities, (N, n) [rad/s or m/s]
            a: joint accelerations, (N, n) [rad/s^2 or m/s^2]
        """
        rows = self._rows(q, v, a)
        last = slice(10 * (self.n - 1), 10 * self.n)
        W = np.empty((*rows[0].shape, 10))
        for i, (qi, vi, ai) in enumerate(zip(*rows, strict=True)):
            found = pin.computeJointTorqueRegressor(self._pin, self._data, qi, vi, ai)
            W[i] = found.reshape(self.n, -1)[:, last]  # of one joint Pinocchio returns a vector
        return np.asarray(W @ _change_of_frame(self.T_joint_flange.tobytes()))


@dataclass(frozen=True, eq=False)
class RobotDescription(Value, error=InvalidRobot, optional=("urdf_file",)):
    """What a file holds of a robot.

    Attributes:
        name: of the robot
        source: where its numbers come from, in words
        flange: name of the frame that a payload is fixed to
        gravity_base: where things fall, (3,) [m/s^2], in the base frame
        home: a posture to start from, (n,) [rad or m]
        joint_names: from the base outwards
        joint_types: of each joint
        joint_axes: axis of each joint, (n, 3), in its joint frame
        joint_placements: each joint frame in the one before it at q = 0, (n, 4, 4)
        link_names: name of the link that each joint moves
        T_joint_link: each link frame in its joint frame, (n, 4, 4)
        T_joint_flange: the flange in the last joint frame, (4, 4)
        links: the ten numbers of each link, (n, 10) [SI], in the link's frame
        limits: of the joints
        drive: of the joints
        dh: the table it was made from; None for a URDF
        serial: serial number of the arm; empty where it is unknown
        terms: names of the terms of plug-ins
        urdf_file: path of the URDF that it was read from; empty for a table
    """

    name: str
    source: str
    flange: str
    gravity_base: Annotated[Array, Shape(3)]
    home: Annotated[Array, Shape("n")]
    joint_names: Annotated[tuple[str, ...], Shape("n")]
    joint_types: Annotated[tuple[JointType, ...], Shape("n")]
    joint_axes: Annotated[Array, Shape("n", 3)]
    joint_placements: Annotated[Array, Shape("n", 4, 4), RIGID]
    link_names: Annotated[tuple[str, ...], Shape("n")]
    T_joint_link: Annotated[Array, Shape("n", 4, 4), RIGID]
    T_joint_flange: Annotated[Array, Shape(4, 4), RIGID]
    links: Annotated[Array, Shape("n", 10)]
    limits: JointLimits
    drive: DriveModel
    dh: DHTable | None
    serial: str = ""
    terms: tuple[str, ...] = ()
    urdf_file: str = ""

    @classmethod
    def of(cls, robot: RobotModel) -> RobotDescription:
        """The description of a robot."""
        same = {name: getattr(robot, name) for name in _DESCRIBED}
        return cls(links=np.array([body.vector for body in robot.links]), **same)

    def robot(self) -> RobotModel:
        """The robot that it describes."""
        joints = zip(*(getattr(self, name) for name in _JOINT_ROWS), strict=True)
        model = joints_in_a_row(self.name, joints, self.flange, self.T_joint_flange)
        model.gravity.linear = gravity_vector(self.gravity_base, InvalidRobot)
        massless = RobotModel(
            name=self.name,
            flange=self.flange,
            limits=self.limits,
            drive=self.drive,
            dh=self.dh,
            home=self.home,
            source=self.source,
            _pin=model,
            T_joint_link=self.T_joint_link,
            link_names=self.link_names,
            serial=self.serial,
            terms=self.terms,
            urdf_file=self.urdf_file,
        )
        links = zip(self.links, self.link_names, strict=True)
        return massless.with_links([InertialParameters.from_vector(x, name) for x, name in links])

    def require_same(self, other: RobotDescription) -> None:
        """Raises an error if it contradicts the description of the robot that it made."""
        for name in (*_JOINT_ROWS, "T_joint_flange", "links"):
            mine = getattr(self, name)
            others = getattr(other, name)
            if name == "joint_types":
                same = all(map(_same_type, mine, others))
            elif isinstance(mine, tuple):
                same = mine == others
            else:
                same = np.allclose(mine, others, rtol=_SAME_NUMBERS, atol=_SAME_NUMBERS)
            if not same:
                raise InvalidRobot(f"'{name}' says {mine}, the rest of the file gives {others}")


def _same_type(stated: JointType, found: JointType) -> bool:
    """Whether joint types agree; a revolute joint without limits is a continuous one."""
    return stated == found or (stated, found) == ("revolute", "continuous")


_JOINT_ROWS = (
    "joint_names",
    "joint_types",
    "joint_axes",
    "joint_placements",
    "link_names",
    "T_joint_link",
)
_DESCRIBED = tuple(name for name in RobotDescription.__dataclass_fields__ if name != "links")


@lru_cache(maxsize=32)
def _below_diagonal(n: int) -> tuple[Indices, Indices]:
    """Rows and columns of the entries below the diagonal of an (n, n) matrix."""
    rows, columns = np.tril_indices(n, -1)
    return rows, columns


def _pinocchio_inertia(body: InertialParameters) -> pin.Inertia:
    """The body as Pinocchio writes it; in the frame of its joint."""
    if body.mass != 0.0:
        return pin.Inertia.FromDynamicParameters(body.vector)
    if body.first_moment.any():
        raise InvalidRobot(
            f"a link without mass cannot have the first moment {body.first_moment} kg m"
        )
    return pin.Inertia(0.0, np.zeros(3), body.inertia)


@lru_cache(maxsize=64)
def _change_of_frame(T_joint_flange: bytes) -> Array:
    """The change of a payload's ten numbers from the flange to the last joint, (10, 10)."""
    return read_only(frame_change_matrix(np.frombuffer(T_joint_flange).reshape(4, 4)))


@lru_cache(maxsize=64)
def _changes_of_frame(T_joint_link: bytes) -> tuple[tuple[slice, Array], ...]:
    """Columns of each link whose frame is not its joint's, and their change, (10, 10)."""
    changes = []
    for j, T in enumerate(np.frombuffer(T_joint_link).reshape(-1, 4, 4)):
        if not np.array_equal(T, np.eye(4)):
            changes.append((slice(10 * j, 10 * (j + 1)), read_only(frame_change_matrix(T))))
    return tuple(changes)
