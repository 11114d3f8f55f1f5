"""The arm in JAX: information of a motion about the parameters, slacks of its limits, gradients.

All quantities are expressed in the base frame, for all samples at once. With axis z_i, origin p_i,
velocity w_i, acceleration dw_i and linear acceleration b_i (gravity subtracted) of joint frame i,
r = p_i - p_{i-1}, and s = 1 for a prismatic, 0 for a revolute joint,

    w_i  = w_{i-1} + (1 - s) z_i v_i
    dw_i = dw_{i-1} + (1 - s) (z_i a_i + w_{i-1} x z_i v_i)
    b_i  = b_{i-1} + dw_{i-1} x r + w_{i-1} x (w_{i-1} x r) + s (z_i a_i + 2 w_{i-1} x z_i v_i)

A body with the ten parameters (m, h, I) in a frame with this motion needs, in that frame, the force
and the moment

    f = m b + dw x h + w x (w x h)            n = I dw + w x (I w) + h x b

which load joint j by z_j . (n + (p_i - p_j) x f) = z_j . n + (z_j x (p_i - p_j)) . f, or by z_j . f
if it is prismatic. Both are linear in the ten parameters; the ten unit bodies give ten columns.

An objective is a function of the Gram matrix G = (1/N) sum_t A_t' A_t of the rows A_t(q, v, a). One
compiled program evaluates G, and a second one propagates dG back to q, v, a. The sign of friction
is smoothed for these gradients, and only for them: tanh(v / width). `identify` ignores torques
below 0.01 rad/s. The width used here gives the best designs for the torques that remain: a larger
one ignores too much, and with a smaller one even speeds of 0.001 rad/s seem informative.

Limits on torque, height, speed and orientation are smooth slacks of each sample: shares of the
limit, positive inside. The friction torque is bounded from above for the upper limit and from below
for the lower one, by a sign that changes early: s(v + 3 width) >= sign(v). Samples are independent,
so 3 n forward passes give the derivatives of all samples by q, v and a.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from steelyard._arrays import Array, Indices
from steelyard.excitation._compiling import compiled, jax_numpy
from steelyard.excitation._limits import RESERVE, DesignLimits
from steelyard.inertia import InertialParameters, skew
from steelyard.robot import RobotModel

_SIGN_WIDTH = 0.008  # of the smoothed sign of friction, [rad/s or m/s]
WIDE_SIGN_WIDTH = 0.02  # for the search of starts, [rad/s or m/s]
_TORQUE_SIGN_WIDTH = 0.01  # for limits of torque, [rad/s or m/s]
_SAMPLES_PER_CALL = 16  # whose derivatives are computed at once; constant, to compile once
_MIN_SPEED = 1e-9  # makes powers of the speed differentiable at rest, [rad/s or m/s]

_programs: WeakKeyDictionary[RobotModel, dict[tuple[object, ...], RowPrograms]] = (
    WeakKeyDictionary()
)


@dataclass(frozen=True, eq=False)
class RegressorRows:
    """The rows that a motion contributes to a regression.

    Attributes:
        kind: 'torque' (joint torques by base parameters), 'payload' (joint torques by the ten
            payload parameters and 3 n changes of friction and offset) or 'wrench' (a sensor's
            wrench by the ten parameters of its load)
        columns: indices of the columns in use, (p,)
        weights: factor of each row, (n,) or (6,)
        gravity: whether a wrench contains the weight of the load
    """

    kind: Literal["torque", "payload", "wrench"]
    columns: Indices
    weights: Array
    gravity: bool = True

    def exact(self, robot: RobotModel, q: Array, v: Array, a: Array) -> Array:
        """The rows of each sample by Pinocchio, with the exact sign of friction, (N, n or 6, p).

        Args:
            robot: the arm
            q: positions, (N, n) [rad or m]
            v: velocities, (N, n) [rad/s or m/s]
            a: accelerations, (N, n) [rad/s^2 or m/s^2]
        """
        n = robot.n
        if self.kind == "torque":
            A = robot.regressor(q, v, a)
        elif self.kind == "payload":
            drives = np.empty((len(q), n, 4 * n))
            robot.drive.fill_regressor(
                drives, np.asarray(v, dtype=float), np.asarray(a, dtype=float)
            )
            A = np.concatenate([robot.payload_regressor(q, v, a), drives[..., n:]], axis=-1)
        else:
            A = _exact_wrench(robot, q, v, a, gravity=self.gravity)
        return np.asarray(A[..., self.columns] * self.weights[None, :, None])

    def compiled(self, robot: RobotModel, sign_width: float = _SIGN_WIDTH) -> RowPrograms:
        """The same rows in JAX, compiled once and cached for the lifetime of the robot.

        Args:
            robot: the arm
            sign_width: speed over which the sign of friction changes, [rad/s or m/s]
        """
        key = (self.kind, self.columns.tobytes(), self.weights.tobytes(), self.gravity, sign_width)
        if key not in (known := _programs.setdefault(robot, {})):
            known[key] = RowPrograms(robot, self, sign_width)
        return known[key]


class RowPrograms:
    """Compiled functions of a motion's rows.

    Attributes:
        rows: rows of each sample with the smoothed sign of friction, (N, n or 6, p), as a function
            of q, v and a
        gram: G, the mean over samples, (p, p), as a function of q, v and a
        pull: gradients by q, v and a of sum(change * G), each (N, n), as a function of q, v, a and
            change, (p, p)
        traced: `gram` before compilation, for use in other programs
    """

    rows: Callable[[Array, Array, Array], Array]
    gram: Callable[[Array, Array, Array], Array]
    pull: Callable[[Array, Array, Array, Array], tuple[Array, Array, Array]]
    traced: Callable[[Any, Any, Any], Any]

    def __init__(self, robot: RobotModel, rows: RegressorRows, sign_width: float) -> None:
        chain = _DifferentiableChain(robot)
        jax = chain.jax
        jnp = chain.jnp

        def every(q: Any, v: Any, a: Any) -> Any:
            return chain.rows(q, v, a, rows, sign_width)

        def gram(q: Any, v: Any, a: Any) -> Any:
            return _gram_product(jax, every(q, v, a).reshape(-1, len(rows.columns))) / q.shape[0]

        def pull(q: Any, v: Any, a: Any, change: Any) -> Any:
            return jax.grad(lambda *motion: jnp.sum(gram(*motion) * change), argnums=(0, 1, 2))(
                q, v, a
            )

        self.rows, self.gram, self.pull = (compiled(function) for function in (every, gram, pull))
        self.traced = gram


class MotionSlacks:
    """Limits on torque and on height, speed and orientation of the flange, as slacks of samples.

    The compiled programs do not contain the sizes of the limits.

    Attributes:
        scales: offset and factor of each slack, (k,) each
        traced: limited quantities, (N, k), as a function of q, v and a, each (N, n), for use in
            other programs
        points: points of a grid per harmonic
    """

    points = 32

    def __init__(self, robot: RobotModel, limits: DesignLimits) -> None:
        chain = _DifferentiableChain(robot)
        jax = chain.jax
        jnp = chain.jnp
        n = robot.n
        bounded = np.flatnonzero(np.isfinite(limits.joints.tau_max))

        def quantities(q: Any, v: Any, a: Any) -> Any:
            moved = chain.motion(q, v, a)
            flange = {name: value[0] for name, value in chain.flange(moved).items()}
            columns = limits.flange_quantities(
                flange["R"], flange["p"], flange["u"], flange["w"], jnp
            )
            if bounded.size:
                rigid = chain.rigid_torque(moved, robot.links)
                columns += [
                    (rigid + chain.drive_torque(v, a, rigid, x))[:, bounded] for x in (1.0, -1.0)
                ]
            return jnp.concatenate(columns, axis=1)

        def slopes(q: Any, v: Any, a: Any) -> Any:
            def along(unit: Any) -> Any:
                tangents = tuple(jnp.broadcast_to(x, q.shape) for x in unit)
                return jax.jvp(quantities, (q, v, a), tangents)[1]

            units = jnp.eye(3 * n).reshape(3 * n, 3, n)
            by_motion = jnp.moveaxis(jax.vmap(along)(units), 0, -1)
            return by_motion.reshape(*by_motion.shape[:2], 3, n)

        offset, factor = limits.flange_scales
        share = 1 / limits.joints.tau_max[bounded]
        reserved = np.full(2 * len(bounded), 1 - RESERVE)
        self.scales = (np.append(offset, reserved), np.concatenate([factor, -share, share]))
        self._quantities = compiled(quantities)
        self._slopes = compiled(slopes)
        self.traced: Callable[[Any, Any, Any], Any] = quantities

    def slacks(self, q: Array, v: Array, a: Array) -> Array:
        """The slacks of each sample, (N, k), for q, v and a, each (N, n)."""
        offset, factor = self.scales
        return np.asarray(offset + factor * self._quantities(q, v, a))

    def slopes(self, q: Array, v: Array, a: Array) -> Array:
        """The derivatives of the slacks by q, v and a, (N, k, 3, n)."""
        factor = self.scales[1][:, None, None]
        out = np.empty((len(q), len(self.scales[1]), 3, q.shape[1]))
        for first in range(0, len(q), _SAMPLES_PER_CALL):
            rows = np.minimum(np.arange(first, first + _SAMPLES_PER_CALL), len(q) - 1)
            out[rows] = factor * self._slopes(q[rows], v[rows], a[rows])
        return out


class _DifferentiableChain:
    """Kinematics and regressors of an arm as differentiable JAX functions."""

    def __init__(self, robot: RobotModel) -> None:
        units = [InertialParameters.from_vector(e) for e in np.eye(10)]
        self.jax, self.jnp = jax_numpy()
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

    def motion(self, q: Any, v: Any, a: Any) -> dict[str, Any]:
        """Orientation, origin, velocities, accelerations of all joint frames, in the base frame."""
        jnp = self.jnp
        N = q.shape[0]

        def step(before: Any, joint: Any) -> Any:
            R, p, u, w, dw, b = before
            placement, axis, slide, qi, vi, ai = joint
            K = skew(axis, jnp)
            angle = ((1 - slide) * qi)[:, None, None]
            turn = jnp.eye(3) + jnp.sin(angle) * K + (1 - jnp.cos(angle)) * (K @ K)
            R_here = R @ placement[:3, :3]
            z = R_here @ axis
            r = R @ placement[:3, 3] + slide * z * qi[:, None]
            wr = jnp.cross(w, r)
            zv = z * vi[:, None]
            za = z * ai[:, None]
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
        start = (
            jnp.broadcast_to(jnp.eye(3), (N, 3, 3)),
            zero,
            zero,
            zero,
            zero,
            zero - self.gravity,
        )
        joints = (self.placements, self.axes, self.sliding, q.T, v.T, a.T)
        _, frames = self.jax.lax.scan(step, start, tuple(jnp.asarray(x) for x in joints))
        return dict(zip(("R", "p", "u", "w", "dw", "b", "z"), frames, strict=True))

    def attached(self, moved: dict[str, Any], T: Any) -> dict[str, Any]:
        """The motion of frames T, (bodies, 4, 4), that are attached to the joint frames."""
        jnp = self.jnp
        r = jnp.einsum("itab,ib->ita", moved["R"], T[:, :3, 3])
        w = moved["w"]
        dw = moved["dw"]
        wr = jnp.cross(w, r)
        return {
            "R": jnp.einsum("itab,ibc->itac", moved["R"], T[:, :3, :3]),
            "p": moved["p"] + r,
            "u": moved["u"] + wr,
            "w": w,
            "dw": dw,
            "b": moved["b"] + jnp.cross(dw, r) + jnp.cross(w, wr),
        }

    def flange(self, moved: dict[str, Any]) -> dict[str, Any]:
        """The motion of the flange, as one body."""
        last = {name: value[-1:] for name, value in moved.items()}
        return self.attached(last, self.T_joint_flange[None])

    def wrench_columns(self, body: dict[str, Any], *, gravity: bool = True) -> tuple[Any, Any]:
        """Force and moment on the ten unit bodies, each (bodies, N, 3, 10), in their frames."""
        jnp = self.jnp
        b_base = body["b"]
        if not gravity:
            b_base = b_base + self.gravity
        w, dw, b = (
            jnp.einsum("itab,ita->itb", body["R"], x) for x in (body["w"], body["dw"], b_base)
        )
        w_cross = skew(w, jnp)
        centripetal = skew(dw, jnp) + w_cross @ w_cross
        force = b[..., None] * self.masses + centripetal @ self.moments.T
        E = jnp.asarray(self.inertias)
        Iw = jnp.einsum("kab,itb->itak", E, w)
        Idw = jnp.einsum("kab,itb->itak", E, dw)
        moment = Idw + w_cross @ Iw - skew(b, jnp) @ self.moments.T
        return force, moment

    def joint_columns(self, moved: dict[str, Any], body: dict[str, Any], first: int) -> Any:
        """Joint torques of unit bodies, the first of them at joint `first`, (N, n, bodies, 10)."""
        jnp = self.jnp
        force, moment = self.wrench_columns(body)
        z = moved["z"]
        slide = jnp.asarray(self.sliding)[:, None, None, None]
        arm = body["p"][None] - moved["p"][:, None]
        lever = jnp.cross(jnp.broadcast_to(z[:, None], arm.shape), arm)
        along = slide * z[:, None] + (1 - slide) * lever
        about = (1 - slide) * jnp.broadcast_to(z[:, None], arm.shape)
        carries = np.arange(self.n)[:, None] <= np.arange(first, first + len(body["p"]))[None]
        out = jnp.einsum("jita,itab,itbk->tjik", about, body["R"], moment)
        out += jnp.einsum("jita,itab,itbk->tjik", along, body["R"], force)
        return out * carries[None, :, :, None]

    def rigid_torque(self, moved: dict[str, Any], links: Sequence[InertialParameters]) -> Any:
        """Torque at each joint that moves these bodies, without drives, (N, n)."""
        cross = self.jnp.cross
        jnp = self.jnp
        body = self.attached(moved, self.T_joint_link)
        m, h = (np.array([getattr(x, name) for x in links]) for name in ("mass", "first_moment"))
        h = jnp.einsum("itab,ib->ita", body["R"], h)
        inertia = np.array([x.inertia for x in links])
        w = body["w"]
        dw = body["dw"]
        b = body["b"]
        Iw, Idw = (
            jnp.einsum("itab,ibc,itdc,itd->ita", body["R"], inertia, body["R"], x, optimize=True)
            for x in (w, dw)
        )
        force = m[:, None, None] * b + cross(dw, h) + cross(w, cross(w, h))
        moment = Idw + cross(w, Iw) + cross(h, b) + cross(body["p"], force)  # about the base
        force, moment = (jnp.cumsum(x[::-1], axis=0)[::-1] for x in (force, moment))
        slide = jnp.asarray(self.sliding)[:, None, None]
        load = slide * force + (1 - slide) * (moment - cross(moved["p"], force))
        return (moved["z"] * load).sum(axis=2).T

    def friction(self, speed: Any, load: Any, width: float, side: float = 0.0) -> Any:
        """The columns of the drives' smoothed friction law.

        Args:
            speed: speeds of the drives, (N, n)
            load: loads of the drives, (N, n); or None
            width: speed over which the sign changes, [rad/s or m/s]
            side: 1 or -1 to bound friction from above or below by an early change of sign
        """
        jnp = self.jnp
        law_width = self.drive.sign_width
        smoothing = width if side and law_width < width else _MIN_SPEED
        width = max(width, law_width)
        size = jnp.sqrt(speed**2 + smoothing**2)
        sign = jnp.tanh((speed + side * 3 * width) / width)
        return replace(self.drive.law, smooth_speed=True).at(size, load, sign, jnp)

    def drive_columns(self, v: Any, a: Any, sign_width: float) -> Any:
        """Columns of rotor inertia, friction and offset, (N, n, 4 n)."""
        drives = self.drive.transmission
        Fc, Fv = self.friction(drives.to_drives(v), None, sign_width)[:2]
        shapes = (drives.to_drives(a), Fc, Fv, self.jnp.ones_like(v))
        U = self.jnp.asarray(drives.matrix)
        return self.jnp.concatenate([s[:, None, :] * U.T[None] for s in shapes], axis=-1)

    def drive_torque(self, v: Any, a: Any, rigid: Any, side: float) -> Any:
        """Torque of rotors and friction, bounded on one side of the jump of friction, (N, n)."""
        drives = self.drive.transmission
        friction = self.drive.joint_friction
        columns = self.friction(drives.to_drives(v), drives.load(rigid), _TORQUE_SIGN_WIDTH, side)
        at_drives = (friction.coefficients[:, None] * columns).sum(axis=0) + friction.offset
        return drives.to_joints(at_drives + self.drive.rotor_inertia * drives.to_drives(a))

    def rows(self, q: Any, v: Any, a: Any, rows: RegressorRows, sign_width: float) -> Any:
        """The rows of each sample, (N, n or 6, p)."""
        jnp = self.jnp
        moved = self.motion(q, v, a)
        if rows.kind == "torque":
            links = self.joint_columns(moved, self.attached(moved, self.T_joint_link), 0)
            drives = self.drive_columns(v, a, sign_width)
            A = jnp.concatenate([links.reshape(*q.shape, 10 * self.n), drives], axis=-1)
        elif rows.kind == "payload":
            load = self.joint_columns(moved, self.flange(moved), self.n - 1)
            drives = self.drive_columns(v, a, sign_width)[..., self.n :]
            A = jnp.concatenate([load[:, :, 0], drives], axis=-1)
        else:
            force, moment = self.wrench_columns(self.flange(moved), gravity=rows.gravity)
            A = jnp.concatenate([force[0], moment[0]], axis=1)
        return _chosen(self.jax, A, rows.columns) * rows.weights[None, :, None]


def _gram_product(jax: Any, A: Any) -> Any:
    """A'A with a derivative of one product, where JAX would use two."""
    product = jax.custom_vjp(lambda A: A.T @ A)
    product.defvjp(lambda A: (A.T @ A, A), lambda A, change: (A @ (change + change.T),))
    return product(A)


def _chosen(jax: Any, A: Any, columns: Indices) -> Any:
    """A[..., columns] with a derivative by indexing, where JAX would scatter single numbers."""
    position = np.full(A.shape[-1], len(columns))
    position[columns] = np.arange(len(columns))

    def back(_: None, change: Any) -> tuple[Any]:
        padding = [(0, 0)] * (change.ndim - 1) + [(0, 1)]
        return (jax.numpy.pad(change, padding)[..., position],)

    choice = jax.custom_vjp(lambda A: A[..., columns])
    choice.defvjp(lambda A: (A[..., columns], None), back)
    return choice(A)


def _exact_wrench(robot: RobotModel, q: Array, v: Array, a: Array, *, gravity: bool) -> Array:
    """The wrench columns of a load at the flange by Pinocchio's kinematics, (N, 6, 10)."""
    motion = robot.frame_motion(q, v, a)
    columns = []
    w = motion.angular_velocity
    dw = motion.angular_acceleration
    b = motion.linear_acceleration
    if gravity:
        b = b - np.einsum("tab,a->tb", robot.forward_kinematics(q)[:, :3, :3], robot.gravity_base)
    for e in np.eye(10):
        body = InertialParameters.from_vector(e)
        h = body.first_moment
        inertia = body.inertia
        force = body.mass * b + np.cross(dw, h) + np.cross(w, np.cross(w, h))
        columns.append(np.hstack([force, dw @ inertia + np.cross(w, w @ inertia) + np.cross(h, b)]))
    return np.stack(columns, axis=-1)
