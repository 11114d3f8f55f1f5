"""Limits on torque, height, speed and orientation as smooth slacks of each sample, with exact derivatives.

Every slack is a share of its limit and positive inside. The friction in the torque is bounded from above
for the upper limit and from below for the lower one, by a sign that changes a little too early: s(v + 3
width) >= sign(v). Samples do not know each other, so the derivatives by q, v and a of all samples come
from 3 n forward passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from steelyard.arrays import Array
from steelyard.excitation.gradients import ChainMath, compiled, jax_numpy, on_cpu
from steelyard.excitation.limits import DesignLimits
from steelyard.robot import RobotModel

Slacks = Callable[[Array, Array, Array], Array]
Slopes = Callable[[Array, Array, Array], tuple[Array, Array]]

_WIDTH = 0.01  # of the friction's sign, [rad/s]
_RESERVE = 0.01  # share of a limit kept for what happens between the points of the grid
_HEIGHT_SCALE = 0.2  # [m]
_CLEARANCE_RESERVE = 0.002  # [m]
_CLEARANCE_SCALE = 0.1  # [m]
_FAR = 0.15  # pairs that never come closer in random postures are left to the certificate, [m]
_ANGLE_RESERVE = 0.005  # [rad]


def has_effects(limits: DesignLimits) -> bool:
    """Whether there are limits beyond those of joint motion and clearance.

    Args:
        limits: of a design
    """
    finite = (limits.joints.tau_max, limits.height, limits.linear_speed, limits.angular_speed)
    return limits.workspace is not None or any(np.isfinite(x).any() for x in finite)


def effect_functions(robot: RobotModel, limits: DesignLimits) -> tuple[Slacks, Slopes]:
    """The slacks of samples, (N, k), and the same with derivatives by q, v, a, (N, k, 3, n).

    Args:
        robot: the arm
        limits: to keep
    """
    jax, jnp = jax_numpy()
    math = ChainMath(robot)
    phi = np.concatenate([body.vector for body in robot.links])

    def slacks(q: Any, v: Any, a: Any) -> Any:
        moved = math.motion(q, v, a)
        last = {name: value[-1:] for name, value in moved.items()}
        flange = {k: x[0] for k, x in math.seen_from(last, math.T_joint_flange[None]).items()}
        columns = _tool_slacks(flange, limits, jnp)
        bounded = np.flatnonzero(np.isfinite(limits.joints.tau_max))
        if bounded.size:
            links = math.joint_columns(moved, math.seen_from(moved, math.T_joint_link), 0)
            rigid = jnp.einsum("tjik,ik->tj", links, phi.reshape(robot.n, 10))
            for sign in (1.0, -1.0):
                tau = sign * (rigid + _drive_torque(math, v, a, rigid, sign))
                columns.append(1 - _RESERVE - tau[:, bounded] / limits.joints.tau_max[bounded])
        return jnp.concatenate(columns, axis=1)

    def slopes(q: Any, v: Any, a: Any) -> Any:
        units = jnp.eye(3 * robot.n).reshape(3 * robot.n, 3, robot.n)

        def along(unit: Any) -> Any:
            tangents = tuple(jnp.broadcast_to(x, q.shape) for x in unit)
            return jax.jvp(slacks, (q, v, a), tangents)[1]

        by_motion = jnp.moveaxis(jax.vmap(along)(units), 0, -1)
        return slacks(q, v, a), by_motion.reshape(*by_motion.shape[:2], 3, robot.n)

    quick, full = compiled(slacks), compiled(slopes)

    def slacks_out(q: Array, v: Array, a: Array) -> Array:
        with on_cpu():
            return np.asarray(quick(q, v, a))

    def slopes_out(q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        with on_cpu():
            slack, by_motion = full(q, v, a)
            return np.asarray(slack), np.asarray(by_motion)

    return slacks_out, slopes_out


def clearance_functions(robot: RobotModel, limits: DesignLimits) -> tuple[Slacks, Slopes]:
    """The slacks of the distances to keep, and the same with derivatives, as `effect_functions` gives them.

    Args:
        robot: the arm
        limits: to keep, with a scene
    """
    if limits.scene is None:
        raise ValueError("there is no scene")
    least = limits.scene.clearance + _CLEARANCE_RESERVE
    model = limits.scene.model(robot).near(_FAR)

    def slacks(q: Array, v: Array, a: Array) -> Array:
        return (model.distances(q) - least) / _CLEARANCE_SCALE

    def slopes(q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        distance, by_q = model.slopes(q)
        by_motion = np.zeros((*by_q.shape[:2], 3, robot.n))
        by_motion[:, :, 0] = by_q / _CLEARANCE_SCALE
        return (distance - least) / _CLEARANCE_SCALE, by_motion

    return slacks, slopes


def _tool_slacks(flange: dict[str, Any], limits: DesignLimits, jnp: Any) -> list[Any]:
    columns = []
    low, high = limits.height
    reserve = _RESERVE * _HEIGHT_SCALE
    z = flange["p"][:, 2:]
    if np.isfinite(low):
        columns.append((z - low - reserve) / _HEIGHT_SCALE)
    if np.isfinite(high):
        columns.append((high - z - reserve) / _HEIGHT_SCALE)
    for speed, bound in ((flange["u"], limits.linear_speed), (flange["w"], limits.angular_speed)):
        axes = np.flatnonzero(np.isfinite(bound))
        if axes.size:
            share = speed[:, axes] / bound[axes]
            columns += [1 - _RESERVE - share, 1 - _RESERVE + share]
    if limits.workspace is not None:
        columns.append(limits.workspace.slacks(flange["R"], jnp) - _ANGLE_RESERVE)
    return columns


def _drive_torque(math: ChainMath, v: Any, a: Any, rigid: Any, side: float) -> Any:
    """What the drives consume, bounded on one side of the jump of friction."""
    _, jnp = jax_numpy()
    drive, U = math.drive, jnp.asarray(math.mixing)
    u = v @ U.T
    width = max(_WIDTH, drive.sign_width)
    sign = jnp.tanh((u + side * 3 * width) / width)
    carried = jnp.abs(rigid @ np.linalg.inv(math.mixing))
    coulomb = np.abs(drive.coulomb) + drive.load_coulomb * carried
    coulomb += drive.stribeck * jnp.exp(-((u / drive.stribeck_speed) ** 2))
    viscous = jnp.sqrt(u**2 + width**2) ** drive.exponent * drive.viscous * sign
    own = drive.rotor_inertia * (a @ U.T) + coulomb * sign + viscous + drive.offset
    return own @ U
