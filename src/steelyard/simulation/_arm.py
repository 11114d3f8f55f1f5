"""An arm in MuJoCo: one body for each link, and a separate body for the payload at the flange.

Each link is a body whose frame is the joint frame; its inertia enters as mass, centre of mass,
principal moments and principal axes. Rotors are armature: of the joint, or, where motors are
coupled (u = U q), of a fixed tendon of length u, which adds U' Ia U to the mass matrix. The payload
is welded to the last link at the flange, and a force and a torque sensor measure in that weld.
MuJoCo's manual describes these as child on parent; version 4.0 returns the force of the parent on
the child (upwards under a resting load). `ForwardDynamics.wrench` inverts the sign: load on sensor.
Contacts, limits and constraints are disabled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array, finite
from steelyard.errors import InvalidInertia, InvalidRobot, MissingExtra, UnknownName
from steelyard.inertia import InertialParameters
from steelyard.robot import DriveModel, RobotModel

_RELATIVE_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Push:
    """A constant force on a point of the arm for some time.

    A push on the flange acts on the mounted load, so the wrist sensor measures it; a push on a link
    does not reach the sensor.

    Attributes:
        start_s: when it begins, [s]
        duration_s: how long it lasts, [s]
        frame: name of the link or flange that it acts on
        force_world: force, (3,) [N], in the base frame
        point: point of application, (3,) [m], in `frame`
    """

    start_s: float
    duration_s: float
    frame: str
    force_world: Array
    point: Array = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        if not (0 <= self.start_s < np.inf and 0 < self.duration_s < np.inf):
            raise InvalidRobot(
                f"a push starts at 0 s or later and lasts a positive time,"
                f" got start_s = {self.start_s}, duration_s = {self.duration_s}"
            )
        for name in ("force_world", "point"):
            vector = finite(getattr(self, name), (3,), f"{name} of a push", InvalidRobot)
            object.__setattr__(self, name, vector)


class BodyPush(NamedTuple):
    """A force on a MuJoCo body.

    Attributes:
        body: index of the body
        force: force, (3,) [N], in the base frame
        point: point of application, (3,) [m], in the frame of the body
    """

    body: int
    force: Array
    point: Array


class ForwardDynamics:
    """Forward dynamics of an arm by MuJoCo: the acceleration that torques cause.

    The links must be physical; the payload is in the flange frame.
    """

    def __init__(self, robot: RobotModel, payload: InertialParameters | None = None) -> None:
        self._mujoco = _import_mujoco()
        self._robot = robot
        self.payload = _checked_payload(robot, payload)
        self.model = _compiled(self._mujoco, robot, self.payload)
        self.data = self._mujoco.MjData(self.model)

    @property
    def wrench(self) -> Array:
        """Wrench of the load on the flange in the present state, (6,) [N, Nm], in its frame."""
        return -np.asarray(self.data.sensordata)

    def place(self, push: Push) -> BodyPush:
        """The push as a force on a MuJoCo body."""
        if push.frame == self._robot.flange:
            return BodyPush(self._robot.n + 1, push.force_world, push.point)
        if push.frame not in self._robot.link_names:
            known = ", ".join((*self._robot.link_names, self._robot.flange))
            raise UnknownName(
                f"a push cannot act on '{push.frame}'; {self._robot.name} has {known}"
            )
        j = self._robot.link_names.index(push.frame)
        T = self._robot.T_joint_link[j]
        return BodyPush(j + 1, push.force_world, T[:3, :3] @ push.point + T[:3, 3])

    def move_to(self, q: Array, v: Array, pushes: Sequence[BodyPush] = ()) -> Array:
        """Sets the state and returns the joint torque of the pushes, (n,) [Nm or N].

        Args:
            q: joint positions, (n,) [rad or m]
            v: joint velocities, (n,) [rad/s or m/s]
        """
        self.data.qpos[:] = q
        self.data.qvel[:] = v
        self._mujoco.mj_fwdPosition(self.model, self.data)
        self._mujoco.mj_fwdVelocity(self.model, self.data)
        self.data.xfrc_applied[:] = 0.0
        external = np.zeros(len(q))
        for push in pushes:
            self._apply(push, external)
        return external

    def acceleration(self, tau: Array) -> Array:
        """The acceleration, (n,) [rad/s^2 or m/s^2], by joint torques tau, (n,) [Nm or N]."""
        self.data.qfrc_applied[:] = tau
        self._mujoco.mj_forwardSkip(self.model, self.data, self._mujoco.mjtStage.mjSTAGE_VEL, 0)
        return np.array(self.data.qacc)

    def mobility(self, directions: Array) -> Array:
        """U M^-1 U' in the present state, (k, k) [1/(kg m^2)], of directions U, (k, n)."""
        solved = np.empty_like(directions)
        self._mujoco.mj_solveM(self.model, self.data, solved, directions)
        return np.asarray(directions @ solved.T)

    def _apply(self, push: BodyPush, external: Array) -> None:
        data = self.data
        body = push.body
        point = data.xpos[body] + data.xmat[body].reshape(3, 3) @ push.point
        data.xfrc_applied[body, :3] += push.force
        turn = np.empty(3)
        self._mujoco.mju_cross(turn, point - data.xipos[body], push.force)
        data.xfrc_applied[body, 3:] += turn
        self._mujoco.mj_applyFT(self.model, data, push.force, np.zeros(3), point, body, external)


def _checked_payload(robot: RobotModel, payload: InertialParameters | None) -> InertialParameters:
    """The payload after a check of its frame and of its physical consistency; zeros for None."""
    if payload is None:
        return InertialParameters.nothing(robot.flange)
    robot.with_payload(payload)  # refuses another frame
    if payload.vector.any():
        # A point, a rod or a plate has an eigenvalue of exactly zero.
        least = -_RELATIVE_ROUNDING * np.abs(payload.inertia).max()
        if payload.mass <= 0 or np.linalg.eigvalsh(payload.second_moment_com)[0] < least:
            raise InvalidInertia(f"no body can be this payload: {payload.why_not_physical}")
    return payload


def _import_mujoco() -> Any:
    try:
        import mujoco
    except ImportError as error:
        raise MissingExtra.of("mujoco", "simulation") from error
    return mujoco


def _compiled(mujoco: Any, robot: RobotModel, payload: InertialParameters) -> Any:
    robot.require_real("MuJoCo")
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.compiler.fusestatic = False
    spec.option.gravity = robot.gravity_base
    spec.option.disableflags = (
        mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT
    )
    load = _add_chain(mujoco, spec, robot).add_body(
        name="load", **_pose(robot.T_joint_flange), **_mass(payload)
    )
    load.add_site(name="wrist")
    for name, kind in (
        ("force", mujoco.mjtSensor.mjSENS_FORCE),
        ("torque", mujoco.mjtSensor.mjSENS_TORQUE),
    ):
        spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname="wrist")
    if robot.drive.coupling is not None:
        _add_coupled_rotors(spec, robot.drive)
    return spec.compile()


def _add_chain(mujoco: Any, spec: Any, robot: RobotModel) -> Any:
    """Adds a body and a joint for each link and returns the last body."""
    body = spec.worldbody
    if robot.drive.coupling is None:
        rotors = robot.drive.rotor_inertia
    else:
        rotors = np.zeros(robot.n)
    parts = zip(robot.links, robot.T_joint_link, robot.joint_placements, strict=True)
    for j, (link, T_joint_link, placement) in enumerate(parts):
        inertial = _mass(link.in_frame("joint", T_joint_link))
        body = body.add_body(name=f"link{j + 1}", **_pose(placement), **inertial)
        slides = robot.joint_types[j] == "prismatic"
        body.add_joint(
            name=f"joint{j + 1}",
            type=mujoco.mjtJoint.mjJNT_SLIDE if slides else mujoco.mjtJoint.mjJNT_HINGE,
            axis=robot.joint_axes[j],
            armature=rotors[j],
        )
    return body


def _add_coupled_rotors(spec: Any, drive: DriveModel) -> None:
    for i, row in enumerate(drive.transmission.matrix):
        tendon = spec.add_tendon(name=f"drive{i + 1}", armature=drive.rotor_inertia[i])
        for j in np.flatnonzero(row):
            tendon.wrap_joint(f"joint{j + 1}", row[j])


def _pose(T: Array) -> dict[str, Array]:
    return {"pos": T[:3, 3], "quat": _quaternion(T[:3, :3])}


def _mass(body: InertialParameters) -> dict[str, Any]:
    """Mass properties in MuJoCo's form; the moments satisfy A + B >= C to the last bit."""
    if body.mass == 0:
        return {"mass": 0.0, "inertia": np.zeros(3), "ipos": np.zeros(3), "explicitinertial": True}
    values, axes = np.linalg.eigh(body.second_moment_com)
    x, y, z = np.maximum(values, 0.0)
    return {
        "mass": body.mass,
        "ipos": body.com,
        "iquat": _quaternion(axes * np.array([1.0, 1.0, np.sign(np.linalg.det(axes))])),
        "inertia": np.array([y + z, x + z, x + y]),
        "explicitinertial": True,
    }


def _quaternion(R: Array) -> Array:
    """Unit quaternion of a rotation, scalar first, (4,)."""
    return np.asarray(Rotation.from_matrix(R).as_quat()[[3, 0, 1, 2]])
