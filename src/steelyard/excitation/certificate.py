"""The certificate: every limit, checked on a dense grid by code that the design does not use (no JAX).

A limit holds where its margin is not negative. The margin is told in the limit's own unit and as a share
of the limit, with the joint, axis or pair and the time where it is smallest. A certificate also says what it
does not know: joints without a limit, and whether anything around the arm, or the arm itself, was in the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import InvalidTrajectory
from steelyard.excitation.limits import DesignLimits
from steelyard.robot import RobotModel
from steelyard.trajectory import FourierTrajectory, Trajectory

_CERTIFICATE_HZ = 1000.0


@dataclass(frozen=True)
class LimitCheck:
    """One limit and where it is closest.

    Attributes:
        limit: its name, as 'velocity'
        where: joint, axis or pair of bodies
        at_s: when, [s]; None where the limit is on a whole period
        value: there
        bound: that it must keep
        margin: how far the value is inside, negative outside
        unit: of value, bound and margin
    """

    limit: str
    where: str
    at_s: float | None
    value: float
    bound: float
    margin: float
    unit: str

    @property
    def share(self) -> float:
        """The margin as a share of the bound, or the margin itself where the bound is zero."""
        return self.margin / (abs(self.bound) or 1.0)

    @property
    def sentence(self) -> str:
        """The check in words."""
        when = "" if self.at_s is None else f" at {self.at_s:.3f} s"
        return (
            f"{self.limit} of {self.where}: {self.value:.6g} against {self.bound:.6g} {self.unit}{when},"
            f" margin {self.margin:.3g} {self.unit}"
        )


@dataclass(frozen=True)
class Certificate:
    """The checks of all limits on one motion.

    Attributes:
        checks: one for each limit, at its closest point
        rate_hz: of the grid, [Hz]
        unchecked: what nobody gave a limit for, so that it was not checked, a few words each
    """

    checks: tuple[LimitCheck, ...]
    rate_hz: float
    unchecked: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether no limit is broken."""
        return all(check.margin >= 0 for check in self.checks)

    @property
    def worst(self) -> LimitCheck:
        """The limit with the smallest share of margin."""
        return min(self.checks, key=lambda check: check.share)

    @property
    def not_checked(self) -> str:
        """What was not checked, as a sentence without its end; empty when everything was."""
        return f"NOT checked, as no limits say it: {', '.join(self.unchecked)}" if self.unchecked else ""

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain values, for JSON."""
        return {
            "holds": self.holds,
            "rate_hz": self.rate_hz,
            "unchecked": list(self.unchecked),
            "checks": [asdict(check) for check in self.checks],
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Certificate:
        """The certificate from plain values.

        Args:
            content: as `to_dict` gives it
        """
        checks = tuple(LimitCheck(**check) for check in content["checks"])
        return cls(checks, content["rate_hz"], tuple(content["unchecked"]))


def certify(
    robot: RobotModel, limits: DesignLimits, trajectory: Trajectory, *, rate_hz: float = _CERTIFICATE_HZ
) -> Certificate:
    """The certificate of a motion; it may say that a limit is broken.

    Args:
        robot: the arm
        limits: to keep
        trajectory: a Fourier series, or one with entry and exit
        rate_hz: of the grid, [Hz]
    """
    if not (np.isfinite(rate_hz) and rate_hz > 0):
        raise InvalidTrajectory(f"rate_hz must be positive, got {rate_hz}")
    count = int(np.ceil(trajectory.duration_s * rate_hz)) + 1
    t = np.linspace(0, trajectory.duration_s, count)
    q, v, a = trajectory.at(t)
    checks = [*_joint_checks(robot, limits, t, (q, v, a)), *_tool_checks(robot, limits, t, (q, v, a))]
    if limits.form == "amplitude" and isinstance(trajectory, FourierTrajectory):
        checks += _amplitude_checks(robot, limits, trajectory)
    if limits.scene is not None:
        model = limits.scene.model(robot)
        if model.pair_names:
            checks.append(
                _closest(
                    "clearance",
                    model.distances(q),
                    limits.scene.clearance,
                    t,
                    model.pair_names,
                    "m",
                    low=True,
                )
            )
    return Certificate(tuple(checks), rate_hz, tuple(_unchecked(limits)))


def _unchecked(limits: DesignLimits) -> Iterator[str]:
    """What the limits say nothing about and a moving arm may break."""
    joints = limits.joints
    families = {
        "position": np.isfinite(joints.q_min) & np.isfinite(joints.q_max),
        "velocity": np.isfinite(joints.v_max),
        "acceleration": np.isfinite(joints.a_max),
        "torque": np.isfinite(joints.tau_max),
    }
    for name, known in families.items():
        if not known.any():
            yield f"{name} of the joints"
        elif not known.all():
            yield f"{name} of {', '.join(f'joint {j + 1}' for j in np.flatnonzero(~known))}"
    if limits.scene is None or not limits.scene.obstacles:
        yield "floor, walls and other things around the arm"
    if limits.scene is None or not limits.scene.self_collision:
        yield "the arm against itself"


def _closest(
    limit: str,
    values: Array,
    bound: float | Array,
    t: Array,
    names: tuple[str, ...],
    unit: str,
    *,
    low: bool = False,
) -> LimitCheck:
    """The check of values (N, k) against a bound for each column, where its share of margin is smallest."""
    bounds = np.broadcast_to(np.asarray(bound, dtype=float), values.shape[1:])
    margins = values - bounds if low else bounds - values
    finite = np.isfinite(bounds)
    shares = np.where(finite, margins / np.where(finite & (bounds != 0), np.abs(bounds), 1.0), np.inf)
    i, k = np.unravel_index(int(shares.argmin()), shares.shape)
    return LimitCheck(
        limit, names[k], float(t[i]), float(values[i, k]), float(bounds[k]), float(margins[i, k]), unit
    )


def _joint_checks(
    robot: RobotModel, limits: DesignLimits, t: Array, motion: tuple[Array, Array, Array]
) -> Iterator[LimitCheck]:
    q, v, a = motion
    names = tuple(f"joint {j + 1}" for j in range(robot.n))
    joints = limits.joints
    unit = "rad" if "prismatic" not in robot.joint_types else "rad or m"
    families = (
        ("upper position", q, joints.q_max, unit, False),
        ("lower position", q, joints.q_min, unit, True),
        ("velocity", np.abs(v), joints.v_max, f"{unit}/s", False),
        ("acceleration", np.abs(a), joints.a_max, f"{unit}/s^2", False),
    )
    for name, values, bound, of, low in families:
        if np.isfinite(bound).any():
            yield _closest(name, values, bound, t, names, of, low=low)
    if np.isfinite(joints.tau_max).any():
        yield _closest("torque", np.abs(robot.torque(q, v, a)), joints.tau_max, t, names, "Nm")


def _tool_checks(
    robot: RobotModel, limits: DesignLimits, t: Array, motion: tuple[Array, Array, Array]
) -> Iterator[LimitCheck]:
    fast = np.isfinite(limits.linear_speed).any() or np.isfinite(limits.angular_speed).any()
    if not (fast or np.isfinite(limits.height).any() or limits.workspace is not None):
        return
    T = robot.forward_kinematics(motion[0])
    R, z = T[:, :3, :3], T[:, 2:3, 3]
    if np.isfinite(limits.height[0]):
        yield _closest("lowest height", z, limits.height[0], t, ("flange",), "m", low=True)
    if np.isfinite(limits.height[1]):
        yield _closest("highest height", z, limits.height[1], t, ("flange",), "m")
    if fast:
        moved = robot.frame_motion(*motion)
        for name, local, bound, unit in (
            ("linear speed", moved.linear_velocity, limits.linear_speed, "m/s"),
            ("angular speed", moved.angular_velocity, limits.angular_speed, "rad/s"),
        ):
            if np.isfinite(bound).any():
                speed = np.abs(np.einsum("tab,tb->ta", R, local))
                yield _closest(name, speed, bound, t, ("x", "y", "z"), unit)
    if limits.workspace is not None:
        names = tuple(f"axis {part.axis}" for part in limits.workspace.regions)
        yield _closest("orientation", limits.workspace.margins(R), 0.0, t, names, "rad", low=True)


def _amplitude_checks(
    robot: RobotModel, limits: DesignLimits, trajectory: FourierTrajectory
) -> Iterator[LimitCheck]:
    """The papers' sums of amplitudes against the limits; joints that stand still have none."""
    q, v, a = trajectory.amplitudes
    names = tuple(f"joint {j + 1}" for j in range(robot.n))
    joints = limits.joints
    for name, used, bound, unit in (
        ("upper amplitude of position", trajectory.offset + q, joints.q_max, "rad"),
        ("lower amplitude of position", q - trajectory.offset, -joints.q_min, "rad"),
        ("amplitude of velocity", v, joints.v_max, "rad/s"),
        ("amplitude of acceleration", a, joints.a_max, "rad/s^2"),
    ):
        if np.isfinite(bound).any():
            check = _closest(name, used[None], bound, np.zeros(1), names, unit)
            yield LimitCheck(**{**asdict(check), "at_s": None})
