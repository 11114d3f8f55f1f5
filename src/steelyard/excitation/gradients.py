"""The regressor in JAX: what a motion tells of the parameters, and its exact gradient.

Everything is expressed in the base frame, for all samples at once. With axis z_i, origin p_i, velocity w_i,
acceleration dw_i and linear acceleration b_i (gravity taken off) of joint frame i, r = p_i - p_{i-1} and
s = 1 for a joint that slides, 0 for one that turns,

    w_i  = w_{i-1} + (1 - s) z_i v_i          dw_i = dw_{i-1} + (1 - s) (z_i a_i + w_{i-1} x z_i v_i)
    b_i  = b_{i-1} + dw_{i-1} x r + w_{i-1} x (w_{i-1} x r) + s (z_i a_i + 2 w_{i-1} x z_i v_i)

A body with the ten numbers (m, h, I) in a frame that moves so needs the force and moment, in that frame,

    f = m b + dw x h + w x (w x h)            n = I dw + w x (I w) + h x b

and joint j feels z_j . (n + (p_i - p_j) x f) = z_j . n + (z_j x (p_i - p_j)) . f, or z_j . f when it slides.
Both are linear in the ten numbers; inserting the ten unit bodies gives ten columns.

The design needs of a motion only the Gram matrix G = (1/N) sum_t A_t' A_t of the rows A_t(q, v, a); an
objective is a function of G. So one compiled program gives G, and a second one pulls dG back to q, v, a. The
sign of friction is smoothed (`SIGN_WIDTH`) for these gradients, and only for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal
from weakref import WeakKeyDictionary

import numpy as np

from steelyard.arrays import Array, Indices
from steelyard.errors import MissingExtra
from steelyard.inertia import InertialParameters
from steelyard.robot import RobotModel

SIGN_WIDTH = 0.01
"""Speed below which the smoothed sign differs from the exact one, [rad/s or m/s]."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Which rows a motion contributes: their kind, the columns that count, the weight of each row.

    Attributes:
        kind: 'torque' (joints by base parameters), 'payload' (joints by the ten numbers of a payload and
            3 n changes of friction and offset) or 'wrench' (six by the ten numbers of a load on a sensor)
        columns: which columns count, (p,)
        weights: factor of each row, (n,) or (6,)
        gravity: whether a wrench contains weight
    """

    kind: Literal["torque", "payload", "wrench"]
    columns: Indices
    weights: Array
    gravity: bool = True


def jax_numpy() -> tuple[Any, Any]:
    """The modules jax and jax.numpy, or a refusal that names the extra."""
    try:
        import jax
        import jax.numpy as jnp
    except ModuleNotFoundError as error:
        raise MissingExtra("jax", "excitation") from error
    return jax, jnp


@contextmanager
def on_cpu() -> Iterator[None]:
    """64-bit floats on the CPU, for the calling thread and while it lasts."""
    jax, _ = jax_numpy()
    if hasattr(jax, "enable_x64"):
        wide = jax.enable_x64(True)
    else:
        from jax.experimental import enable_x64

        wide = enable_x64(True)
    with wide, jax.default_device(jax.devices("cpu")[0]):
        yield


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled by JAX for the CPU; quick to compile where JAX knows how.

    Args:
        function: of arrays
    """
    jax, _ = jax_numpy()
    made: Callable[..., Any] = jax.jit(function, compiler_options=_compiler_options())
    return made


@cache
def _compiler_options() -> dict[str, bool] | None:
    """Without fusion emitters XLA compiles in half the time; None where it does not know the option."""
    jax, jnp = jax_numpy()
    options = {"xla_cpu_use_fusion_emitters": False}
    try:
        with on_cpu():
            jax.jit(lambda x: x + 1, compiler_options=options)(jnp.zeros(1))
    except (RuntimeError, TypeError, ValueError):
        return None
    return options


class ChainMath:
    """The kinematics and regressors of an arm as functions that JAX can differentiate."""

    def __init__(self, robot: RobotModel) -> None:
        units = [InertialParameters.from_vector(e) for e in np.eye(10)]
        self.n = robot.n
        self.masses = np.array([body.mass for body in units])
        self.moments = np.array([body.first_moment for body in units])
        self.inertias = np.array([body.inertia for body in units])
        self.placements = robot.joint_placements
        self.axes = robot.joint_axes
        self.sliding = np.array([kind == "prismatic" for kind in robot.joint_types], dtype=float)
        self.T_joint_link = robot.T_joint_link
        self.T_joint_flange = robot.T_joint_flange
        self.gravity = robot.gravity_base
        self.drive = robot.drive
        coupling = robot.drive.coupling
        self.mixing = np.eye(robot.n) if coupling is None else coupling / np.diag(coupling)[:, None]

    def motion(self, q: Any, v: Any, a: Any) -> dict[str, Any]:
        """Orientation, origin, velocities and accelerations of every joint frame, in the base frame.

        Args:
            q: joint positions, (N, n)
            v: joint velocities, (N, n)
            a: joint accelerations, (N, n)
        """
        jax, jnp = jax_numpy()
        N = q.shape[0]

        def step(before: Any, joint: Any) -> Any:
            R, p, u, w, dw, b = before
            placement, axis, slide, qi, vi, ai = joint
            K = _skew(jnp, axis)
            angle = ((1 - slide) * qi)[:, None, None]
            turn = jnp.eye(3) + jnp.sin(angle) * K + (1 - jnp.cos(angle)) * (K @ K)
            R_here = R @ placement[:3, :3]
            z = R_here @ axis
            r = R @ placement[:3, 3] + slide * z * qi[:, None]
            wr, zv, za = jnp.cross(w, r), z * vi[:, None], z * ai[:, None]
            w_zv = jnp.cross(w, zv)
            after = (
                R_here @ turn,
                p + r,
                u + wr + slide * zv,
                w + (1 - slide) * zv,
                dw + (1 - slide) * (za + w_zv),
                b + jnp.cross(dw, r) + jnp.cross(w, wr) + slide * (za + 2 * w_zv),
            )
            return after, (*after, z)

        zero = jnp.zeros((N, 3))
        start = (jnp.broadcast_to(jnp.eye(3), (N, 3, 3)), zero, zero, zero, zero, zero - self.gravity)
        joints = (self.placements, self.axes, self.sliding, q.T, v.T, a.T)
        _, found = jax.lax.scan(step, start, tuple(jnp.asarray(x) for x in joints))
        return dict(zip(("R", "p", "u", "w", "dw", "b", "z"), found, strict=True))

    def seen_from(self, moved: dict[str, Any], T: Any) -> dict[str, Any]:
        """The motion of frames fixed to the joint frames.

        Args:
            moved: as `motion` gives it, bodies first
            T: each frame in its joint frame, (bodies, 4, 4)
        """
        _, jnp = jax_numpy()
        r = jnp.einsum("itab,ib->ita", moved["R"], T[:, :3, 3])
        w, dw = moved["w"], moved["dw"]
        wr = jnp.cross(w, r)
        return {
            "R": jnp.einsum("itab,ibc->itac", moved["R"], T[:, :3, :3]),
            "p": moved["p"] + r,
            "u": moved["u"] + wr,
            "w": w,
            "dw": dw,
            "b": moved["b"] + jnp.cross(dw, r) + jnp.cross(w, wr),
        }

    def wrench_columns(self, body: dict[str, Any], *, gravity: bool = True) -> tuple[Any, Any]:
        """Force and moment that each of the ten unit bodies needs, in its frame, each (bodies, N, 3, 10).

        Args:
            body: motion of the frames that the bodies are fixed to
            gravity: whether weight is part of it
        """
        _, jnp = jax_numpy()
        fall = 0.0 if gravity else self.gravity
        w, dw, b = (
            jnp.einsum("itab,ita->itb", body["R"], x) for x in (body["w"], body["dw"], body["b"] + fall)
        )
        spin = _skew(jnp, dw) + _skew(jnp, w) @ _skew(jnp, w)
        force = b[..., None] * self.masses + spin @ self.moments.T
        E = jnp.asarray(self.inertias)
        Iw = jnp.einsum("kab,itb->itak", E, w)
        moment = jnp.einsum("kab,itb->itak", E, dw) + _skew(jnp, w) @ Iw - _skew(jnp, b) @ self.moments.T
        return force, moment

    def joint_columns(self, moved: dict[str, Any], body: dict[str, Any], first: int) -> Any:
        """Torque at each joint that unit bodies need, (N, n, bodies, 10); zero for joints behind a body.

        Args:
            moved: motion of the joint frames
            body: motion of the bodies
            first: index of the joint that carries the first body
        """
        _, jnp = jax_numpy()
        force, moment = self.wrench_columns(body)
        z, slide = moved["z"], jnp.asarray(self.sliding)[:, None, None, None]
        arm = body["p"][None] - moved["p"][:, None]
        lever = jnp.cross(jnp.broadcast_to(z[:, None], arm.shape), arm)
        along = slide * z[:, None] + (1 - slide) * lever
        about = (1 - slide) * jnp.broadcast_to(z[:, None], arm.shape)
        count = len(body["p"])
        carries = np.arange(self.n)[:, None] <= np.arange(first, first + count)[None]
        out = jnp.einsum("jita,itab,itbk->tjik", about, body["R"], moment)
        out += jnp.einsum("jita,itab,itbk->tjik", along, body["R"], force)
        return out * carries[None, :, :, None]

    def drive_columns(self, v: Any, a: Any, width: float) -> Any:
        """Columns of rotor inertia, friction and offset, (N, n, 4 n).

        Args:
            v: joint velocities, (N, n)
            a: joint accelerations, (N, n)
            width: of the smoothed sign; 0 is as the drive model says
        """
        _, jnp = jax_numpy()
        U = jnp.asarray(self.mixing)
        sign, viscous = self.friction_shapes(v @ U.T, width)
        shapes = (a @ U.T, sign, viscous, jnp.ones_like(v))
        return jnp.concatenate([s[:, None, :] * U.T[None] for s in shapes], axis=-1)

    def friction_shapes(self, v: Any, width: float) -> tuple[Any, Any]:
        """The Coulomb and the viscous shape, each (N, n).

        Args:
            v: speeds of the drives, (N, n)
            width: of the smoothed sign; 0 is as the drive model says
        """
        _, jnp = jax_numpy()
        exact = self.drive.sign_width
        if width <= exact:
            sign = jnp.sign(v) if exact == 0 else jnp.tanh(v / exact)
            return sign, jnp.abs(v) ** self.drive.exponent * sign
        size = jnp.sqrt(v**2 + width**2)
        return v / size, size**self.drive.exponent * (v / size)

    def rows(self, q: Any, v: Any, a: Any, rows: Rows, width: float) -> Any:
        """The rows of each sample, (N, n or 6, p).

        Args:
            q: joint positions, (N, n)
            v: joint velocities, (N, n)
            a: joint accelerations, (N, n)
            rows: which
            width: of the smoothed sign; 0 is exact
        """
        _, jnp = jax_numpy()
        moved = self.motion(q, v, a)
        last = {name: value[-1:] for name, value in moved.items()}
        if rows.kind == "torque":
            links = self.joint_columns(moved, self.seen_from(moved, self.T_joint_link), 0)
            drives = self.drive_columns(v, a, width)
            A = jnp.concatenate([links.reshape(*q.shape, 10 * self.n), drives], axis=-1)
        elif rows.kind == "payload":
            flange = self.seen_from(last, self.T_joint_flange[None])
            load = self.joint_columns(moved, flange, self.n - 1)
            A = jnp.concatenate([load[:, :, 0], self.drive_columns(v, a, width)[..., self.n :]], axis=-1)
        else:
            flange = self.seen_from(last, self.T_joint_flange[None])
            force, moment = self.wrench_columns(flange, gravity=rows.gravity)
            A = jnp.concatenate([force[0], moment[0]], axis=1)
        return A[..., rows.columns] * rows.weights[None, :, None]


class Information:
    """The Gram matrix of a motion's rows, and how a change of it pulls on the motion.

    Make it with `of`: compiled programs are kept as long as the robot lives.
    """

    _made: ClassVar[WeakKeyDictionary[RobotModel, dict[tuple[object, ...], Information]]] = (
        WeakKeyDictionary()
    )

    @classmethod
    def of(cls, robot: RobotModel, rows: Rows) -> Information:
        """The information of a robot's rows, compiled once.

        Args:
            robot: the arm
            rows: which
        """
        known = cls._made.setdefault(robot, {})
        key = (rows.kind, rows.columns.tobytes(), rows.weights.tobytes(), rows.gravity)
        if key not in known:
            known[key] = cls(robot, rows)
        return known[key]

    def __init__(self, robot: RobotModel, rows: Rows, *, width: float = SIGN_WIDTH) -> None:
        jax, jnp = jax_numpy()
        math = ChainMath(robot)

        def gram(q: Any, v: Any, a: Any) -> Any:
            A = math.rows(q, v, a, rows, width).reshape(-1, len(rows.columns))
            return A.T @ A / q.shape[0]

        def pull(q: Any, v: Any, a: Any, change: Any) -> Any:
            return jax.grad(lambda *motion: jnp.sum(gram(*motion) * change), argnums=(0, 1, 2))(q, v, a)

        self._gram = compiled(gram)
        self._pull = compiled(pull)

    def gram(self, q: Array, v: Array, a: Array) -> Array:
        """The Gram matrix G, mean over samples, (p, p).

        Args:
            q: joint positions, (N, n)
            v: joint velocities, (N, n)
            a: joint accelerations, (N, n)
        """
        with on_cpu():
            return np.asarray(self._gram(q, v, a), dtype=float)

    def pull(self, q: Array, v: Array, a: Array, change: Array) -> tuple[Array, Array, Array]:
        """Gradients by q, v and a of sum(change * G), each (N, n).

        Args:
            q: joint positions, (N, n)
            v: joint velocities, (N, n)
            a: joint accelerations, (N, n)
            change: (p, p)
        """
        with on_cpu():
            gq, gv, ga = self._pull(q, v, a, change)
            return np.asarray(gq), np.asarray(gv), np.asarray(ga)


def exact_rows(robot: RobotModel, rows: Rows, q: Array, v: Array, a: Array) -> Array:
    """The same rows by Pinocchio, with the exact sign of friction, (N, n or 6, p); no JAX in it.

    Args:
        robot: the arm
        rows: which
        q: joint positions, (N, n) [rad or m]
        v: joint velocities, (N, n) [rad/s or m/s]
        a: joint accelerations, (N, n) [rad/s^2 or m/s^2]
    """
    n = robot.n
    if rows.kind == "torque":
        A = robot.regressor(q, v, a)
    elif rows.kind == "payload":
        drives = np.empty((len(q), n, 4 * n))
        robot.drive.fill_regressor(drives, np.asarray(v, dtype=float), np.asarray(a, dtype=float))
        A = np.concatenate([robot.payload_regressor(q, v, a), drives[..., n:]], axis=-1)
    else:
        A = _exact_wrench(robot, rows, q, v, a)
    return np.asarray(A[..., rows.columns] * rows.weights[None, :, None])


def _exact_wrench(robot: RobotModel, rows: Rows, q: Array, v: Array, a: Array) -> Array:
    motion = robot.frame_motion(q, v, a)
    R = robot.forward_kinematics(q)[:, :3, :3]
    b = motion.linear_acceleration
    if rows.gravity:
        b = b - np.einsum("tab,a->tb", R, robot.gravity_base)
    w, dw = motion.angular_velocity, motion.angular_acceleration
    A = np.empty((len(q), 6, 10))
    for k, e in enumerate(np.eye(10)):
        body = InertialParameters.from_vector(e)
        m, h, inertia = body.mass, body.first_moment, body.inertia
        A[:, :3, k] = m * b + np.cross(dw, h) + np.cross(w, np.cross(w, h))
        A[:, 3:, k] = dw @ inertia + np.cross(w, w @ inertia) + np.cross(h, b)
    return A


def _skew(jnp: Any, x: Any) -> Any:
    """The matrices S with S y = x cross y, (..., 3, 3)."""
    zero = jnp.zeros_like(x[..., 0])
    rows = ((zero, -x[..., 2], x[..., 1]), (x[..., 2], zero, -x[..., 0]), (-x[..., 1], x[..., 0], zero))
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)
