"""The motions of liu2025: postures of Algorithm 1, the excitation (40), test motions at two speeds.

The feasible workspace of Fig. 4 is drawn, not printed. What it is for, a part that hangs on suckers
and must not lean too far (Fig. 2), is a cone here: the axis of the sensor stays within 60 degrees
of straight down. Only joints 4 to 6 move; the arm stands so that the sensor faces down in the
middle of the wrist's range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from steelyard._arrays import Array
from steelyard.excitation import (
    Cone,
    Design,
    DesignLimits,
    DesignSettings,
    Liu2025,
    OrientationWorkspace,
    PostureSet,
    design,
)
from steelyard.robot import JointLimits, RobotModel
from steelyard.trajectory import FourierTrajectory
from steelyard_papers.liu2025.postures import postures_for

HALF_ANGLE = np.radians(60.0)
WRIST = (3, 4, 5)
COUNT = 15
K = -0.2  # section V.A
_MIDDLE = np.array(
    [0.0, 0.0, 0.6, 0.0, np.pi / 2 - 0.6, 0.0]
)  # added to the home posture: sensor down
_ACCELERATION = 6.0  # assumed, [rad/s^2]


@dataclass(frozen=True)
class FromRest:
    """A Fourier motion that begins at rest, after a second of standing still.

    Attributes:
        series: the motion, entered with growing speed
        stand_s: standing still before, [s]
        ramp_s: until full speed, [s]
        duration_s: in all, [s]
    """

    series: FourierTrajectory
    stand_s: float = 1.0
    ramp_s: float = 1.0
    duration_s: float = 11.5

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration, each (N, n).

        Args:
            t: times, (N,) [s]
        """
        x = np.clip((np.asarray(t) - self.stand_s) / self.ramp_s, 0.0, None)
        inside = np.minimum(x, 1.0)
        s = self.ramp_s * np.where(x < 1, inside**4 * (2.5 - 3 * inside + inside**2), x - 0.5)
        ds = inside**3 * (10 - 15 * inside + 6 * inside**2)
        dds = 30 * inside**2 * (1 - inside) ** 2 / self.ramp_s
        q, v, a = self.series.at(s)
        return q, v * ds[:, None], a * ds[:, None] ** 2 + v * dds[:, None]


@dataclass(frozen=True, eq=False)
class Visits:
    """Postures, one after the other, with rest in each; moves as quick as the joints may.

    Attributes:
        postures: (N, n) [rad]
        v_max: largest speed of each joint, (n,) [rad/s]
        rest_s: in each, [s]
    """

    postures: Array
    v_max: Array
    rest_s: float = 1.3

    @property
    def moves_s(self) -> Array:
        """Length of each move, (N - 1,) [s]."""
        way = np.abs(np.diff(self.postures, axis=0))
        return np.asarray(np.maximum(0.7, 1.875 * (way / self.v_max).max(axis=1)))

    @property
    def duration_s(self) -> float:
        """In all, to a hundredth, [s]."""
        return round(len(self.postures) * self.rest_s + float(self.moves_s.sum()), 2)

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration, each (N, n); quintic polynomials between postures.

        Args:
            t: times, (N,) [s]
        """
        lasts = np.append(self.moves_s, 1.0)
        arrived = np.concatenate([[0.0], np.cumsum(self.rest_s + self.moves_s)])
        k = np.searchsorted(arrived, np.asarray(t), side="right") - 1
        T = lasts[k][:, None]
        x = np.clip((t - arrived[k] - self.rest_s)[:, None] / T, 0.0, 1.0)
        way = self.postures[np.minimum(k + 1, len(self.postures) - 1)] - self.postures[k]
        first = (30 * x**2 - 60 * x**3 + 30 * x**4) / T
        second = (60 * x - 180 * x**2 + 120 * x**3) / T**2
        return (
            self.postures[k] + (10 * x**3 - 15 * x**4 + 6 * x**5) * way,
            first * way,
            second * way,
        )


@dataclass(frozen=True, eq=False)
class Motions:
    """All motions of the experiment.

    Attributes:
        limits: with the feasible workspace
        postures: of Algorithm 1
        chosen: our D-optimal choice of as many postures in the same workspace
        found: the excitation of least (40), weight counted
        printed: the excitation of least (40) as printed, weight not counted
        printed_with_weight: value of (40), weight counted, of that one
        fast: test motion at high speed
        slow: test motion at low speed
    """

    limits: DesignLimits
    postures: PostureSet
    chosen: PostureSet
    found: Design
    printed: Design
    printed_with_weight: float
    fast: FourierTrajectory
    slow: FourierTrajectory


def planned_motions(robot: RobotModel, *, starts: int = 2, effort: float = 1.0) -> Motions:
    """The motions within the workspace.

    Args:
        robot: the KR60HA
        starts: of each search for an excitation
        effort: of each search
    """
    own = robot.limits
    joints = JointLimits(
        own.q_min, own.q_max, own.v_max, np.full(robot.n, _ACCELERATION), own.tau_max
    )
    middle = robot.home + _MIDDLE
    robot = replace(robot, home=middle)
    workspace = OrientationWorkspace((Cone("z", np.array([0.0, 0.0, -1.0]), HALF_ANGLE),))
    limits = DesignLimits(joints, form="amplitude", workspace=workspace)
    orientations = workspace.liu2025_orientations(COUNT, K=K)
    searches = (True, starts, effort), (False, 1, effort)
    weighed, plain = (
        design(
            robot,
            objective=Liu2025(gravity=gravity),
            limits=limits,
            joints=WRIST,
            settings=DesignSettings(starts=count, effort=share, rate_hz=250.0),
        )
        for gravity, count, share in searches
    )
    return Motions(
        limits,
        _in_turn(postures_for(robot, orientations, limits=limits, joints=WRIST), joints),
        PostureSet.for_sensor(robot, len(orientations), limits=limits, joints=WRIST, K=None),
        weighed,
        plain,
        Liu2025(gravity=True).evaluate(robot, plain.trajectory, limits=limits, rate_hz=250.0),
        _test_motion(robot, middle, workspace, speed=1.0, seed=200),
        _test_motion(robot, middle, workspace, speed=0.25, seed=300),
    )


def _in_turn(found: PostureSet, limits: JointLimits) -> PostureSet:
    """The same postures, each followed by its nearest unvisited one; turns take the short way."""
    left = list(range(1, len(found)))
    order = [0]
    q = [found.q[0]]
    while left:
        turns = 2 * np.pi * np.round((q[-1] - found.q[left]) / (2 * np.pi))
        near = found.q[left] + turns
        near = np.where((near > limits.q_max) | (near < limits.q_min), found.q[left], near)
        best = int(np.abs(near - q[-1]).max(axis=1).argmin())
        q.append(near[best])
        order.append(left.pop(best))
    return replace(found, q=np.array(q), R_base_flange=found.R_base_flange[order])


def _test_motion(
    robot: RobotModel, middle: Array, workspace: OrientationWorkspace, *, speed: float, seed: int
) -> FourierTrajectory:
    """A random motion of the wrist inside the workspace, as large as it allows."""
    t = np.linspace(0.0, 10.0, 1001)
    size = 1.0
    while True:
        motion = FourierTrajectory.random(
            middle,
            reach=[1e-9] * 3 + [1.2 * size, 0.9 * size, 1.5 * size],
            speed=[1e-9] * 3 + [2.0 * speed, 2.0 * speed, 2.5 * speed],
            period_s=10.0,
            harmonics=5,
            seed=seed,
        )
        if workspace.contains(robot.forward_kinematics(motion.at(t)[0])[:, :3, :3]).all():
            return motion
        size *= 0.9
