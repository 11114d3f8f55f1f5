"""The arm in JAX: what a motion says of the parameters, how far it is inside its limits, and exact gradients.

Everything is expressed in the base frame, for all samples at once. With axis z_i, origin p_i,
velocity w_i, acceleration dw_i and linear acceleration b_i (gravity taken off) of joint frame i, r
= p_i - p_{i-1} and s = 1 for a joint that slides, 0 for one that turns,

    w_i  = w_{i-1} + (1 - s) z_i v_i          dw_i = dw_{i-1} + (1 - s) (z_i a_i + w_{i-1} x z_i v_i)
    b_i  = b_{i-1} + dw_{i-1} x r + w_{i-1} x (w_{i-1} x r) + s (z_i a_i + 2 w_{i-1} x z_i v_i)

A body with the ten numbers (m, h, I) in a frame that moves so needs the force and moment, in that
frame,

    f = m b + dw x h + w x (w x h)            n = I dw + w x (I w) + h x b

and joint j feels z_j . (n + (p_i - p_j) x f) = z_j . n + (z_j x (p_i - p_j)) . f, or z_j . f when
it slides. Both are linear in the ten numbers; inserting the ten unit bodies gives ten columns.

The design needs of a motion only the Gram matrix G = (1/N) sum_t A_t' A_t of the rows A_t(q, v, a);
an objective is a function of G. So one compiled program gives G, and a second one pulls dG back to
q, v, a. The sign of friction is smoothed for these gradients, and only for them: tanh(v / width).
Below 0.01 rad/s `identify` does not count torques. With the width chosen here, designs are best for
what it does count: wider ones leave out too much, with narrower ones speeds of a thousandth of a
radian seem to be worth something.

Limits on torque, height, speed and orientation are smooth slacks of each sample: shares of the
limit, positive inside. The friction in the torque is bounded from above for the upper limit and
from below for the lower one, by a sign that changes a little too early: s(v + 3 width) >= sign(v).
Samples do not know each other, so the derivatives by q, v and a of samples come from 3 n forward
passes.
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
WIDE_SIGN_WIDTH = 0.02  # the same where motions are searched for
_TORQUE_SIGN_WIDTH = 0.01  # and in the limits of torque
_TOGETHER = (
    16  # samples whose derivatives are computed at once: one number, so that it is compiled once
)
_NO_SPEED = 1e-9  # keeps a power of speed differentiable at rest, [rad/s or m/s]

_programs: WeakKeyDictionary[RobotModel, dict[tuple[object, ...], _Program]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class RegressorRows:
    """Which rows a motion contributes: their kind, the columns that count, the weight of each row.

    Attributes:
        kind: 'torque' (joints by base parameters), 'payload' (joints by the ten numbers of a
            payload and 3 n changes of friction and offset) or 'wrench' (six by the ten numbers of a
            load on a sensor)
        columns: which columns count, (p,)
        weights: factor of each row, (n,) or (6,)
        gravity: whether a wrench contains weight
    """

    kind: Literal["torque", "payload", "wrench"]
    columns: Indices
    weights: Array
    gravity: bool = True

    def exact(self, robot: RobotModel, q: Array, v: Array, a: Array) -> Array:
        """The rows of each sample by Pinocchio, with the exact sign of friction, (N, n or 6, p).

        Positions q [rad or m], velocities v and accelerations a are (N, n).
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

    def compiled(self, robot: RobotModel, sign_width: float = _SIGN_WIDTH) -> _Program:
        """The same rows in JAX, compiled once and kept as long as the robot lives.

        Args:
            robot: the arm
            sign_width: speed over which the sign of friction changes, [rad/s or m/s]
        """
        key = (self.kind, self.columns.tobytes(), self.weights.tobytes(), self.gravity, sign_width)
        if key not in (known := _programs.setdefault(robot, {})):
            known[key] = _Program(robot, self, sign_width)
        return known[key]


class _Program:
    """A motion's rows, their Gram matrix, and how a change of it pulls on the motion.

    Attributes:
        rows: of q, v and a: the rows of each sample, with the smoothed sign of friction, (N, n or
            6, p)
        gram: of q, v and a: G, mean over samples, (p, p)
        pull: of q, v, a and change (p, p): gradients by q, v and a of sum(change * G), each (N, n)
        traced: G as `gram` gives it, as a part of other programs
    """

    rows: Callable[[Array, Array, Array], Array]
    gram: Callable[[Array, Array, Array], Array]
    pull: Callable[[Array, Array, Array, Array], tuple[Array, Array, Array]]
    traced: Callable[[Any, Any, Any], Any]

    def __init__(self, robot: RobotModel, rows: RegressorRows, sign_width: float) -> None:
        chain = _Chain(robot)
        jax = chain.jax
        jnp = chain.jnp

        def every(q: Any, v: Any, a: Any) -> Any:
            return chain.rows(q, v, a, rows, sign_width)

        def gram(q: Any, v: Any, a: Any) -> Any:
            return _own_product(jax, every(q, v, a).reshape(-1, len(rows.columns))) / q.shape[0]

        def pull(q: Any, v: Any, a: Any, change: Any) -> Any:
            return jax.grad(lambda *motion: jnp.sum(gram(*motion) * change), argnums=(0, 1, 2))(
                q, v, a
            )

        self.rows, self.gram, self.pull = (compiled(function) for function in (every, gram, pull))
        self.traced = gram


class MotionSlacks:
    """Limits on torque, and on height, speed and orientation of the flange, as slacks of each sample.

    What is compiled does not know the sizes of the limits.

    Attributes:
        scales: offset and factor of each slack, (k,) each, of what is limited
        traced: of q, v and a, each (N, n): what is limited, (N, k), as a part of other programs
        points: of a grid, for each harmonic
    """

    points = 32

    def __init__(self, robot: RobotModel, limits: DesignLimits) -> None:
        chain = _Chain(robot)
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

        (offset, factor) = limits.flange_scales
        share = 1 / limits.joints.tau_max[bounded]
        reserved = np.full(2 * len(bounded), 1 - RESERVE)
        self.scales = np.append(offset, reserved), np.concatenate([factor, -share, share])
        self._quantities, self._slopes = map(compiled, (quantities, slopes))
        self.traced: Callable[[Any, Any, Any], Any] = quantities

    def slacks(self, q: Array, v: Array, a: Array) -> Array:
        """Of q, v and a, each (N, n): slacks of each sample, (N, k)."""
        offset, factor = self.scales
        return np.asarray(offset + factor * self._quantities(q, v, a))

    def slopes(self, q: Array, v: Array, a: Array) -> Array:
        """The derivatives of the slacks by q, v and a, (N, k, 3, n)."""
        factor = self.scales[1][:, None, None]
        out = np.empty((len(q), len(self.scales[1]), 3, q.shape[1]))
        for first in range(0, len(q), _TOGETHER):
            few = np.minimum(np.arange(first, first + _TOGETHER), len(q) - 1)
            out[few] = factor * self._slopes(q[few], v[few], a[few])
        return out


class _Chain:
    """The kinematics and regressors of an arm as functions that JAX can differentiate."""

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
        """Orientation, origin, velocities and accelerations of every joint frame, in the base frame."""
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
        _, found = self.jax.lax.scan(step, start, tuple(jnp.asarray(x) for x in joints))
        return dict(zip(("R", "p", "u", "w", "dw", "b", "z"), found, strict=True))

    def seen_from(self, moved: dict[str, Any], T: Any) -> dict[str, Any]:
        """The motion of frames T, (bodies, 4, 4), that are fixed to the joint frames."""
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
        return self.seen_from(last, self.T_joint_flange[None])

    def wrench_columns(self, body: dict[str, Any], *, gravity: bool = True) -> tuple[Any, Any]:
        """Force and moment that each of the ten unit bodies needs, in its frame, each (bodies, N, 3, 10)."""
        jnp = self.jnp
        fall = 0.0 if gravity else self.gravity
        w, dw, b = (
            jnp.einsum("itab,ita->itb", body["R"], x)
            for x in (body["w"], body["dw"], body["b"] + fall)
        )
        turning = skew(w, jnp)
        spin = skew(dw, jnp) + turning @ turning
        force = b[..., None] * self.masses + spin @ self.moments.T
        E = jnp.asarray(self.inertias)
        Iw = jnp.einsum("kab,itb->itak", E, w)
        moment = jnp.einsum("kab,itb->itak", E, dw) + turning @ Iw - skew(b, jnp) @ self.moments.T
        return force, moment

    def joint_columns(self, moved: dict[str, Any], body: dict[str, Any], first: int) -> Any:
        """Torque at each joint that unit bodies need, the first at joint `first`, (N, n, bodies, 10)."""
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
        body = self.seen_from(moved, self.T_joint_link)
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
        felt = slide * force + (1 - slide) * (moment - cross(moved["p"], force))
        return (moved["z"] * felt).sum(axis=2).T

    def friction(self, speed: Any, load: Any, width: float, side: float = 0.0) -> Any:
        """The columns of the drives' friction law, smoothed: its sign changes a little early on a side."""
        jnp = self.jnp
        own = self.drive.sign_width
        if side and own < width:
            least = width
        else:
            least = _NO_SPEED
        width = max(width, own)
        size = jnp.sqrt(speed**2 + least**2)
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
        """What the drives consume, bounded on one side of the jump of friction, (N, n)."""
        drives = self.drive.transmission
        friction = self.drive.joint_friction
        columns = self.friction(drives.to_drives(v), drives.load(rigid), _TORQUE_SIGN_WIDTH, side)
        own = (friction.coefficients[:, None] * columns).sum(axis=0) + friction.offset
        return drives.to_joints(own + self.drive.rotor_inertia * drives.to_drives(a))

    def rows(self, q: Any, v: Any, a: Any, rows: RegressorRows, sign_width: float) -> Any:
        """The rows of each sample, (N, n or 6, p)."""
        jnp = self.jnp
        moved = self.motion(q, v, a)
        if rows.kind == "torque":
            links = self.joint_columns(moved, self.seen_from(moved, self.T_joint_link), 0)
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


def _own_product(jax: Any, A: Any) -> Any:
    """A'A; its derivative is one product, where JAX would make two."""
    product = jax.custom_vjp(lambda A: A.T @ A)
    product.defvjp(lambda A: (A.T @ A, A), lambda A, change: (A @ (change + change.T),))
    return product(A)


def _chosen(jax: Any, A: Any, columns: Indices) -> Any:
    """A[..., columns]; its derivative chooses too, where JAX would add up number by number."""
    place = np.full(A.shape[-1], len(columns))
    place[columns] = np.arange(len(columns))

    def back(_: None, change: Any) -> tuple[Any]:
        room = [(0, 0)] * (change.ndim - 1) + [(0, 1)]
        return (jax.numpy.pad(change, room)[..., place],)

    choice = jax.custom_vjp(lambda A: A[..., columns])
    choice.defvjp(lambda A: (A[..., columns], None), back)
    return choice(A)


def _exact_wrench(robot: RobotModel, q: Array, v: Array, a: Array, *, gravity: bool) -> Array:
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
