"""A serial arm: kinematics, rigid-body dynamics and the regressor that identification stands on.

The torque that the drives apply is linear in the parameters phi of links and drives,

    tau = Y(q, v, a) phi,   phi = [link 1 (10) ... link n (10), Ia (n), Fc (n), Fv (n), B (n)],   k = 14 n

with each link's ten numbers in Pinocchio's order (`steelyard.inertia`), in the link's frame. Pinocchio gives
the columns of a link in its joint frame; where a (classic DH) link frame sits elsewhere, the columns of a
link are multiplied by the 10 x 10 matrix of that change of frame. A payload, fixed to the flange, adds to
the last link, so its columns are those of the last link, seen from the flange frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from steelyard.errors import InvalidRobot, UnknownName
from steelyard.inertia import PARAMETER_NAMES, InertialParameters, frame_change_matrix
from steelyard.robot import urdf
from steelyard.robot.dh import DHTable, JointType, translation
from steelyard.robot.drive import DRIVE_NAMES, DriveModel
from steelyard.robot.limits import JointLimits

__all__ = ["STANDARD_GRAVITY", "FrameMotion", "RobotModel"]

Array = NDArray[np.float64]

STANDARD_GRAVITY = (0.0, 0.0, -9.81)
"""Gravity in the base frame of an arm that stands upright, [m/s^2]."""

_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class FrameMotion:
    """How a frame moves, in its own coordinates, gravity not included.

    Attributes:
        linear_velocity: of its origin, (N, 3) [m/s], in the frame
        angular_velocity: (N, 3) [rad/s], in the frame
        linear_acceleration: of its origin, as an observer at rest sees it, (N, 3) [m/s^2], in the frame
        angular_acceleration: (N, 3) [rad/s^2], in the frame
    """

    linear_velocity: Array
    angular_velocity: Array
    linear_acceleration: Array
    angular_acceleration: Array


@dataclass(frozen=True, eq=False)
class RobotModel:
    """An arm of n joints in a row. Make one with `from_urdf`, `from_dh` or `steelyard.load_robot`.

    Attributes:
        name: of the robot
        flange: name of the frame that a payload is fixed to and expressed in
        limits: of the joints
        drive: rotor inertia, friction, gains and coupling of the drives
        dh: the table it was made from; None for a URDF
        home: a posture to start from, (n,) [rad or m]
        source: where its numbers come from, in words
    """

    name: str
    flange: str
    limits: JointLimits
    drive: DriveModel
    dh: DHTable | None
    home: Array
    source: str
    _pin: pin.Model = field(repr=False)
    _data: pin.Data = field(repr=False)
    _T_joint_link: Array = field(repr=False)
    _link_names: tuple[str, ...] = field(repr=False)

    # --- makers -----------------------------------------------------------------------------------------

    @classmethod
    def from_urdf(
        cls,
        path: str | Path,
        *,
        flange: str | None = None,
        locked: Mapping[str, float] | None = None,
        gravity_base: ArrayLike = STANDARD_GRAVITY,
    ) -> RobotModel:
        """The arm that a URDF file describes; meshes are not needed, fixed joints are merged.

        Args:
            path: of the URDF file
            flange: frame for payloads; by default 'tool0' or 'flange' where the URDF has one, else its last link
            locked: position of each joint that shall not move, by name [rad or m]
            gravity_base: where things fall, (3,) [m/s^2], in the base frame
        """
        text = urdf.read(path)
        return cls.from_urdf_text(
            text, flange=flange, locked=locked, gravity_base=gravity_base, source=Path(path).name
        )

    @classmethod
    def from_urdf_text(
        cls,
        text: str,
        *,
        flange: str | None = None,
        locked: Mapping[str, float] | None = None,
        gravity_base: ArrayLike = STANDARD_GRAVITY,
        source: str = "URDF text",
    ) -> RobotModel:
        """The arm that a URDF text describes.

        Args:
            text: the URDF
            flange: as in `from_urdf`
            locked: as in `from_urdf`
            gravity_base: as in `from_urdf`
            source: where it comes from, for messages
        """
        parsed = urdf.parse(text, source, locked or {})
        model = parsed.model
        model.gravity.linear = _vector3(gravity_base, "gravity_base")
        n = model.nv
        return cls(
            name=model.name,
            flange=urdf.choose_flange(model, flange, source),
            limits=parsed.limits,
            drive=DriveModel.ideal(n),
            dh=None,
            home=_home(None, parsed.limits),
            source=source,
            _pin=model,
            _data=model.createData(),
            _T_joint_link=np.tile(np.eye(4), (n, 1, 1)),
            _link_names=parsed.link_names,
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
            dh: the table
            name: of the robot
            joint_names: names of the joints; joint1, joint2, ... by default
            links: inertial parameters of each link in its DH frame; massless by default
            limits: of the joints; none by default
            drive: of the joints; ideal by default
            T_link_flange: the flange in the last DH frame, (4, 4); that frame itself by default
        """
        n = len(dh)
        names = tuple(joint_names) or tuple(f"joint{i + 1}" for i in range(n))
        bodies = tuple(links) or (InertialParameters.nothing(),) * n
        for what, items in (("joint_names", names), ("links", bodies)):
            if len(items) != n:
                raise InvalidRobot(f"the DH table has {n} rows, but {len(items)} {what} were given")
        T_joint_link = dh.T_joint_link
        T_flange = T_joint_link[-1] @ (np.eye(4) if T_link_flange is None else np.asarray(T_link_flange))
        model = _pinocchio_chain(name, names, dh, T_flange)
        limits = limits or JointLimits.none(n)
        made = cls(
            name=name,
            flange="flange",
            limits=limits,
            drive=drive or DriveModel.ideal(n),
            dh=dh,
            home=_home(None, limits),
            source=f"{dh.convention} DH table",
            _pin=model,
            _data=model.createData(),
            _T_joint_link=T_joint_link,
            _link_names=tuple(f"link{i + 1}" for i in range(n)),
        )
        return made.with_links(bodies)

    # --- the same arm, changed --------------------------------------------------------------------------

    def with_links(self, links: Sequence[InertialParameters]) -> RobotModel:
        """The same arm with other links.

        Args:
            links: inertial parameters of each link, n of them, in the link's frame
        """
        if len(links) != self.n:
            raise InvalidRobot(f"{self.name} has {self.n} links, got {len(links)}")
        model = self._pin.copy()
        for i, (body, T) in enumerate(zip(links, self._T_joint_link, strict=True)):
            vector = frame_change_matrix(T) @ body.vector
            model.inertias[i + 1] = pin.Inertia.FromDynamicParameters(vector) if body.mass else pin.Inertia()
        return replace(self, _pin=model, _data=model.createData())

    def with_payload(self, payload: InertialParameters) -> RobotModel:
        """The same arm with a payload fixed to its flange.

        Args:
            payload: in the flange frame
        """
        if payload.frame != self.flange:
            raise InvalidRobot(
                f"the payload is in frame '{payload.frame}', the flange of {self.name} is '{self.flange}';"
                " bring it there with in_frame()"
            )
        *others, last = self.links
        T_link_flange = np.linalg.inv(self._T_joint_link[-1]) @ self.T_joint_flange
        return self.with_links([*others, last + payload.in_frame(last.frame, T_link_flange)])

    def with_drive(self, drive: DriveModel) -> RobotModel:
        """The same arm with other drives.

        Args:
            drive: of n joints
        """
        if len(drive) != self.n:
            raise InvalidRobot(f"{self.name} has {self.n} joints, the drive model {len(drive)}")
        return replace(self, drive=drive)

    def with_gravity(self, gravity_base: ArrayLike) -> RobotModel:
        """The same arm mounted another way: tilted, on a wall, from the ceiling.

        Args:
            gravity_base: where things fall, (3,) [m/s^2], in the base frame
        """
        model = self._pin.copy()
        model.gravity.linear = _vector3(gravity_base, "gravity_base")
        return replace(self, _pin=model, _data=model.createData())

    # --- what it is -------------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of joints."""
        return int(self._pin.nv)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, from the base outwards."""
        return tuple(self._pin.names)[1:]

    @property
    def joint_types(self) -> tuple[JointType, ...]:
        """'revolute', 'prismatic' or 'continuous' (revolute without limits) for each joint."""
        unlimited = np.isinf(self.limits.q_min)
        kinds: list[JointType] = []
        for i, joint in enumerate(self._pin.joints[1:]):
            sliding = "P" in joint.shortname().removeprefix("JointModel")[:1]
            kinds.append("prismatic" if sliding else "continuous" if unlimited[i] else "revolute")
        return tuple(kinds)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Name of the link that each joint moves; also the name of its frame."""
        return self._link_names

    @property
    def links(self) -> tuple[InertialParameters, ...]:
        """Inertial parameters of each link, in the link's frame."""
        return tuple(
            InertialParameters.from_vector(body.toDynamicParameters(), name).in_frame(name, np.linalg.inv(T))
            for body, name, T in zip(
                self._pin.inertias[1:], self._link_names, self._T_joint_link, strict=True
            )
        )

    @property
    def gravity_base(self) -> Array:
        """Where things fall, (3,) [m/s^2], in the base frame."""
        return np.array(self._pin.gravity.linear)

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of all frames that `forward_kinematics` and `frame_motion` know."""
        return tuple(f.name for f in self._pin.frames)

    @property
    def joint_placements(self) -> Array:
        """Each joint frame in the joint frame before it at q = 0, (n, 4, 4)."""
        return np.array([placement.homogeneous for placement in self._pin.jointPlacements[1:]])

    @property
    def joint_axes(self) -> Array:
        """Axis of each joint, (n, 3), in its joint frame."""
        return np.array([urdf.joint_axis(joint) for joint in self._pin.joints[1:]])

    @property
    def T_joint_link(self) -> Array:
        """Each link frame in its joint frame, (n, 4, 4)."""
        return self._T_joint_link

    @property
    def T_joint_flange(self) -> Array:
        """The flange in the last joint frame, (4, 4)."""
        return np.array(self._pin.frames[self._frame_id(self.flange)].placement.homogeneous)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the k = 14 n columns of the regressor: m1, mx1, ..., Izz6, Ia1, ..., B6."""
        inertial = [f"{name}{j + 1}" for j in range(self.n) for name in PARAMETER_NAMES]
        return (*inertial, *(f"{name}{j + 1}" for name in DRIVE_NAMES for j in range(self.n)))

    @property
    def parameters(self) -> Array:
        """The parameters phi of links and drives, (k,) [SI]."""
        return np.concatenate([*(body.vector for body in self.links), self.drive.parameters()])

    # --- kinematics -------------------------------------------------------------------------------------

    def forward_kinematics(self, q: ArrayLike, frame: str | None = None) -> Array:
        """The pose of a frame in the base, T_base_frame, (N, 4, 4) or (4, 4).

        Args:
            q: joint positions, (N, n) or (n,) [rad or m]
            frame: its name; the flange by default
        """
        frame_id = self._frame_id(frame or self.flange)
        (rows,) = self._rows(q)
        T = np.empty((len(rows), 4, 4))
        for i, qi in enumerate(rows):
            pin.forwardKinematics(self._pin, self._data, qi)
            T[i] = pin.updateFramePlacement(self._pin, self._data, frame_id).homogeneous
        return T[0] if np.ndim(q) == 1 else T

    def frame_motion(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, frame: str | None = None) -> FrameMotion:
        """Velocity and acceleration of a frame, for N samples.

        Args:
            q: joint positions, (N, n) [rad or m]
            v: joint velocities, (N, n) [rad/s or m/s]
            a: joint accelerations, (N, n) [rad/s^2 or m/s^2]
            frame: its name; the flange by default
        """
        frame_id = self._frame_id(frame or self.flange)
        rows = self._rows(q, v, a)
        motion = np.empty((4, len(rows[0]), 3))
        for i, (qi, vi, ai) in enumerate(zip(*rows, strict=True)):
            pin.forwardKinematics(self._pin, self._data, qi, vi, ai)
            velocity = pin.getFrameVelocity(self._pin, self._data, frame_id, pin.LOCAL)
            acceleration = pin.getFrameClassicalAcceleration(self._pin, self._data, frame_id, pin.LOCAL)
            motion[:, i] = velocity.linear, velocity.angular, acceleration.linear, acceleration.angular
        return FrameMotion(*motion)

    # --- dynamics ---------------------------------------------------------------------------------------

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """The torque that moves the links, without the drives' own part, (N, n) or (n,) [Nm or N].

        Args:
            q: joint positions, (N, n) or (n,) [rad or m]
            v: joint velocities, like q [rad/s or m/s]
            a: joint accelerations, like q [rad/s^2 or m/s^2]
        """
        rows = zip(*self._rows(q, v, a), strict=True)
        tau = np.array([pin.rnea(self._pin, self._data, qi, vi, ai) for qi, vi, ai in rows])
        return tau[0] if np.ndim(q) == 1 else tau

    def torque(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """The torque that the drives apply: links, rotors, friction and offset, (N, n) or (n,) [Nm or N].

        Args:
            q: joint positions, (N, n) or (n,) [rad or m]
            v: joint velocities, like q [rad/s or m/s]
            a: joint accelerations, like q [rad/s^2 or m/s^2]
        """
        rigid = self.inverse_dynamics(q, v, a)
        return rigid + self.drive.torque(v, a, load=rigid)

    def mass_matrix(self, q: ArrayLike) -> Array:
        """The joint-space inertia M(q) of the links, (n, n) [kg m^2 for revolute joints].

        Args:
            q: joint positions, (n,) [rad or m]
        """
        ((row,),) = self._rows(q)
        upper = np.triu(pin.crba(self._pin, self._data, row))
        return np.asarray(upper + np.triu(upper, 1).T)

    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike) -> Array:
        """The matrix C(q, v) of Coriolis and centrifugal torques C v, with dM/dt = C + C', (n, n).

        Args:
            q: joint positions, (n,) [rad or m]
            v: joint velocities, (n,) [rad/s or m/s]
        """
        (q_row,), (v_row,) = self._rows(q, v)
        return np.array(pin.computeCoriolisMatrix(self._pin, self._data, q_row, v_row))

    def gravity_torque(self, q: ArrayLike) -> Array:
        """The torque that holds the links against gravity, (N, n) or (n,) [Nm or N].

        Args:
            q: joint positions, (N, n) or (n,) [rad or m]
        """
        (rows,) = self._rows(q)
        tau = np.array([pin.computeGeneralizedGravity(self._pin, self._data, qi) for qi in rows])
        return tau[0] if np.ndim(q) == 1 else tau

    # --- regressors -------------------------------------------------------------------------------------

    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """The matrix Y with `torque = Y @ parameters`, (N, n, k), columns as in `parameter_names`.

        Stribeck and load-dependent friction are not linear in phi and have no column.

        Args:
            q: joint positions, (N, n) [rad or m]
            v: joint velocities, (N, n) [rad/s or m/s]
            a: joint accelerations, (N, n) [rad/s^2 or m/s^2]
        """
        rows = self._rows(q, v, a)
        N, n = rows[0].shape
        Y = np.empty((N, n, 14 * n))
        self._fill_rigid(Y[:, :, : 10 * n], *rows)
        self.drive.fill_regressor(Y[:, :, 10 * n :], rows[1], rows[2])
        return Y

    def regressor_chunks(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, chunk: int = _CHUNK
    ) -> Iterator[tuple[slice, Array]]:
        """The regressor of a long recording piece by piece, as (rows of q, regressor of these rows).

        Args:
            q: joint positions, (N, n) [rad or m]
            v: joint velocities, (N, n) [rad/s or m/s]
            a: joint accelerations, (N, n) [rad/s^2 or m/s^2]
            chunk: samples in a piece
        """
        q, v, a = self._rows(q, v, a)
        for start in range(0, len(q), chunk):
            piece = slice(start, min(start + chunk, len(q)))
            yield piece, self.regressor(q[piece], v[piece], a[piece])

    def payload_regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """The matrix W with `extra torque = W @ payload.vector`, (N, n, 10), payload in the flange frame.

        Args:
            q: joint positions, (N, n) [rad or m]
            v: joint velocities, (N, n) [rad/s or m/s]
            a: joint accelerations, (N, n) [rad/s^2 or m/s^2]
        """
        rows = self._rows(q, v, a)
        last = slice(10 * (self.n - 1), 10 * self.n)
        W = np.empty((*rows[0].shape, 10))
        for i, (qi, vi, ai) in enumerate(zip(*rows, strict=True)):
            W[i] = pin.computeJointTorqueRegressor(self._pin, self._data, qi, vi, ai)[:, last]
        return np.asarray(W @ frame_change_matrix(self.T_joint_flange))

    def _fill_rigid(self, Y: Array, q: Array, v: Array, a: Array) -> None:
        model, data, compute = self._pin, self._data, pin.computeJointTorqueRegressor
        for i in range(len(q)):
            Y[i] = compute(model, data, q[i], v[i], a[i])
        for j, T in enumerate(self._T_joint_link):
            if not np.array_equal(T, np.eye(4)):
                columns = slice(10 * j, 10 * (j + 1))
                Y[:, :, columns] = Y[:, :, columns] @ frame_change_matrix(T)

    # --- the door ---------------------------------------------------------------------------------------

    def _frame_id(self, frame: str) -> int:
        if not self._pin.existFrame(frame):
            raise UnknownName(f"{self.name} has no frame '{frame}'; it has {', '.join(self.frames)}")
        return int(self._pin.getFrameId(frame))

    def _rows(self, *signals: ArrayLike) -> tuple[Array, ...]:
        """The signals as (N, n) arrays of one length; a single posture becomes one row."""
        rows = tuple(np.atleast_2d(np.asarray(s, dtype=float)) for s in signals)
        for s in rows:
            if s.ndim != 2 or s.shape[1] != self.n or len(s) != len(rows[0]):
                raise InvalidRobot(
                    f"{self.name} has {self.n} joints: joint signals are (N, {self.n}) and of one length,"
                    f" got shapes {', '.join(str(r.shape) for r in rows)}"
                )
        return rows


def _pinocchio_chain(name: str, joint_names: Sequence[str], dh: DHTable, T_flange: Array) -> pin.Model:
    model = pin.Model()
    model.name = name
    model.gravity.linear = np.array(STANDARD_GRAVITY)
    for i, (joint_name, kind) in enumerate(zip(joint_names, dh.joint_types, strict=True)):
        joint = pin.JointModelPZ() if kind == "prismatic" else pin.JointModelRZ()
        model.addJoint(i, joint, pin.SE3(dh.joint_placements[i]), joint_name)
        T_link = pin.SE3(dh.T_joint_link[i])
        model.addFrame(pin.Frame(f"link{i + 1}", i + 1, 0, T_link, pin.FrameType.BODY))
    model.addFrame(pin.Frame("flange", len(dh), 0, pin.SE3(T_flange), pin.FrameType.OP_FRAME))
    return model


def _home(home: ArrayLike | None, limits: JointLimits) -> Array:
    """The given posture, or zero moved into the limits."""
    q = np.clip(np.zeros(len(limits.q_min)), limits.q_min, limits.q_max) if home is None else np.array(home)
    q.setflags(write=False)
    return np.asarray(q, dtype=float)


def _vector3(values: ArrayLike, name: str) -> Array:
    vector = np.array(values, dtype=float)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise InvalidRobot(f"{name} must be three finite numbers, got {vector}")
    return vector
