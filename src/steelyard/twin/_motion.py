"""Motions of the arm, step by step: what a controller commands between two calls of a program.

A motion gives the target of the next control step from the present one; a target is position,
velocity and acceleration. `ArmMotion` holds the present target. While the arm moves and no motion
is active (the program has ended, was killed or replaced, or does something else), the arm
decelerates in a straight line in joint space, with `DEFAULT_DECELERATION`.

`servoj` passes its positions u through a filter of third order, as a real controller looks ahead,

    q''' = w^3 (u - q) - 3 w^2 q' - 3 w q'',

whose bandwidth is 8 Hz for a lookahead time of 0.1 s and inversely proportional to it. The impulse
response is nowhere negative: the filter never exceeds the accelerations of its input. `stopj` and
the end of `speedj` change the velocity linearly in time; the fastest joint has the given
acceleration. `movej` and `movel` have a trapezoidal speed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import expm

from steelyard._arrays import Array
from steelyard.twin._kinematics import ToolKinematics

DEFAULT_DECELERATION = 5.0
"""Of an arm whose program has ended while it moved, fastest joint, [rad/s^2]."""

DEFAULT_LOOKAHEAD_S = 0.1
"""Of `servoj`, [s]."""

_BANDWIDTH_TIMES_LOOKAHEAD = 0.8  # of the filter of servoj [Hz], times the lookahead time [s]
_REST_SPEED = 1e-9  # [rad/s]
_SLIDER_RATE = 2.0  # largest change of the speed scaling per second, [1/s]


class MotionTarget(NamedTuple):
    """Commanded motion at one instant.

    Attributes:
        q: positions, (6,) [rad]
        v: velocities, (6,) [rad/s]
        a: accelerations, (6,) [rad/s^2]
    """

    q: Array
    v: Array
    a: Array

    @classmethod
    def at_rest(cls, q: Array) -> MotionTarget:
        """The target of an arm that stands at q, (6,) [rad]."""
        return cls(np.array(q, dtype=float), np.zeros(len(q)), np.zeros(len(q)))

    @property
    def speed(self) -> float:
        """Speed of the fastest joint, [rad/s]."""
        return float(np.abs(self.v).max())


class Motion(ABC):
    """A motion; `finished` when it has come to its end."""

    finished = False

    @abstractmethod
    def advance(self, now: MotionTarget, step_s: float, scaling: float) -> MotionTarget:
        """The target of the next step.

        Args:
            now: the present target
            step_s: length of a control step, [s]
            scaling: speed scaling, 0 to 1
        """

    def replan(self) -> None:  # noqa: B027  (most motions need no plan)
        """Forgets a plan that began at an earlier posture."""


class ArmMotion:
    """The target of an arm, and the motion that moves it.

    Args:
        q: first posture, (6,) [rad]
        step_s: length of a control step, [s]
    """

    def __init__(self, q: Array, step_s: float) -> None:
        self.step_s = step_s
        self.target = MotionTarget.at_rest(q)
        self.slider = 1.0  # requested speed scaling
        self.scaling = 1.0  # present one
        self._motion: Motion | None = None
        self._suspended: Motion | None = None
        self._stop = Stop(DEFAULT_DECELERATION)

    @property
    def at_rest(self) -> bool:
        """Whether the target does not move."""
        return self.target.speed < _REST_SPEED

    @property
    def busy(self) -> bool:
        """Whether a motion is active."""
        return self._motion is not None

    def start(self, motion: Motion) -> None:
        """Begins a motion, from the present velocity."""
        self._motion = motion

    def release(self, motion: Motion) -> None:
        """Ends a motion, if it is the present one; the arm decelerates unless another begins."""
        if self._motion is motion:
            self._motion = None
        if self._suspended is motion:
            self._suspended = None

    def stop(self, deceleration: float = DEFAULT_DECELERATION) -> None:
        """Ends any motion and decelerates; `deceleration` of the fastest joint, [rad/s^2]."""
        self._motion = None
        self._stop = Stop(deceleration)

    def suspend(self) -> None:
        """Decelerates, and keeps the motion for `resume`."""
        self._suspended = self._motion
        self._motion = None

    def resume(self) -> None:
        """Goes on with the motion that was suspended."""
        self._motion = self._suspended
        self._suspended = None
        if self._motion is not None:
            self._motion.replan()

    def place(self, q: Array) -> None:
        """Puts the target at rest at a posture q, (6,) [rad]."""
        self._motion = None
        self.target = MotionTarget.at_rest(q)

    def advance(self) -> MotionTarget:
        """The target of the next step, which becomes the present one."""
        change = _SLIDER_RATE * self.step_s
        self.scaling += min(max(self.slider - self.scaling, -change), change)
        if self._motion is not None:
            self._stop = Stop(DEFAULT_DECELERATION)
            self.target = self._motion.advance(self.target, self.step_s, self.scaling)
        elif self.target.v.any() or self.target.a.any():
            self.target = self._stop.advance(self.target, self.step_s, 1.0)
        return self.target


class Stop(Motion):
    """Deceleration to rest, straight in joint space.

    Args:
        deceleration: of the fastest joint, [rad/s^2]
    """

    def __init__(self, deceleration: float) -> None:
        self._deceleration = deceleration

    def advance(self, now: MotionTarget, step_s: float, scaling: float) -> MotionTarget:
        """See `Motion`; the speed slider has no influence."""
        rest = np.zeros(len(now.q))
        target = _towards(now, rest, self._deceleration, step_s)
        self.finished = not target.v.any()
        return target


class ToolStop(Motion):
    """Deceleration to rest, so that the tool decelerates as given.

    Args:
        deceleration: of the tool, [m/s^2]
        kinematics: of the tool
    """

    def __init__(self, deceleration: float, kinematics: ToolKinematics) -> None:
        self._deceleration = deceleration
        self._kinematics = kinematics
        self._joints: Stop | None = None

    def advance(self, now: MotionTarget, step_s: float, scaling: float) -> MotionTarget:
        """See `Motion`; at least as fast as a program that has ended."""
        if self._joints is None:
            speed = float(np.linalg.norm((self._kinematics.jacobian(now.q) @ now.v)[:3]))
            deceleration = DEFAULT_DECELERATION
            if speed > _REST_SPEED:
                deceleration = self._deceleration * now.speed / speed
            self._joints = Stop(min(deceleration, 10 * DEFAULT_DECELERATION))
        target = self._joints.advance(now, step_s, scaling)
        self.finished = self._joints.finished
        return target


class Servo(Motion):
    """One position of `servoj`.

    Args:
        q: position to follow, (6,) [rad]
        duration_s: time until the next position is expected, [s]
        lookahead_s: smooths the path, [s]
    """

    def __init__(
        self, q: Array, duration_s: float, lookahead_s: float = DEFAULT_LOOKAHEAD_S
    ) -> None:
        self._q = q
        self._left_s = duration_s
        self._lookahead_s = lookahead_s

    def advance(self, now: MotionTarget, step_s: float, scaling: float) -> MotionTarget:
        """See `Motion`; the speed slider has no influence."""
        filtered = _servo_filter(step_s, self._lookahead_s)
        self._left_s -= step_s
        self.finished = self._left_s < step_s / 2
        return MotionTarget(*(filtered[:, :3] @ np.array(now) + np.outer(filtered[:, 3], self._q)))


class Repeat(Motion):
    """Positions that are followed for ever, like a program that ran before.

    Args:
        q: one position for each control step, (N, 6) [rad]
    """

    def __init__(self, q: Array) -> None:
        self._q = q
        self._next = 0

    def advance(self, now: MotionTarget, step_s: float, scaling: float) -> MotionTarget:
        """See `Motion`; through the filter of `servoj`."""
        q = self._q[self._next % len(self._q)]
        self._next += 1
        return Servo(q, step_s).advance(now, step_s, scaling)


class SpeedJoints(Motion):
    """`speedj`: constant joint velocities.

    Args:
        v: velocities to reach, (6,) [rad/s]
        acceleration: of the fastest joint, [rad/s^2]
        duration_s: until the call returns, [s]; 0 to return at the velocity
    """

    def __init__(self, v: Array, acceleration: float, duration_s: float) -> None:
        self._v = v
        self._acceleration = acceleration
        self._duration_s = duration_s
        self._left_s = duration_s

    def advance(self, now: MotionTarget, step_s: float, scaling: float) -> MotionTarget:
        """See `Motion`."""
        target = _towards(now, scaling * self._v, self._acceleration, step_s)
        self._left_s -= step_s
        if self._duration_s:
            self.finished = self._left_s < step_s / 2
        else:
            self.finished = bool(np.allclose(target.v, scaling * self._v))
        return target


class SpeedTool(Motion):
    """`speedl`: a constant velocity of the tool.

    Args:
        velocity: of the tool, (6,) [m/s, rad/s], in the base frame
        acceleration: [m/s^2]
        duration_s: until the call returns, [s]; 0 to return at the velocity
        kinematics: of the tool
    """

    def __init__(
        self, velocity: Array, acceleration: float, duration_s: float, kinematics: ToolKinematics
    ) -> None:
        self._velocity = velocity
        self._acceleration = acceleration
        self._duration_s = duration_s
        self._left_s = duration_s
        self._kinematics = kinematics

    def advance(self, now: MotionTarget, step_s: float, scaling: float) -> MotionTarget:
        """See `Motion`."""
        jacobian = self._kinematics.jacobian(now.q)
        present = jacobian @ now.v
        change = scaling * self._velocity - present
        largest = self._acceleration * step_s
        size = float(np.abs(change).max())
        reached = size <= largest
        if not reached:
            change = change * (largest / size)
        v = self._kinematics.joint_velocity(now.q, present + change)
        self._left_s -= step_s
        self.finished = self._left_s < step_s / 2 if self._duration_s else reached
        return _with_velocity(now, v, step_s)


class _StraightMove(Motion):
    """A straight motion from rest to a goal, with a trapezoidal speed.

    Args:
        goal: in the space of the motion
        speed: largest speed in that space
        acceleration: largest acceleration in that space
        duration_s: of the whole motion, [s]; 0 for as fast as speed and acceleration allow
    """

    def __init__(
        self, goal: Array, speed: float, acceleration: float, duration_s: float = 0.0
    ) -> None:
        self._goal = goal
        self._speed = speed
        self._acceleration = acceleration
        self._duration_s = duration_s
        self._profile: Trapezoid | None = None
        self._start = goal
        self._t = 0.0

    def replan(self) -> None:
        """Begins at the present posture."""
        self._profile = None
        self._t = 0.0

    def advance(self, now: MotionTarget, step_s: float, scaling: float) -> MotionTarget:
        """See `Motion`; an arm that moves is stopped first."""
        if self._profile is None:
            if now.speed > _REST_SPEED:
                return _towards(now, np.zeros(len(now.q)), self._braking, step_s)
            self._start = self._here(now.q)
            distance = self._distance()
            self._profile = Trapezoid(distance, self._speed, self._acceleration, self._duration_s)
        self._t += scaling * step_s
        if self._t >= self._profile.duration_s - 1e-9:
            self.finished = True
            return MotionTarget.at_rest(self._last_posture(now))
        return self._along(self._profile, now, step_s, scaling)

    @property
    @abstractmethod
    def _braking(self) -> float:
        """Acceleration with which a moving arm is stopped first, [rad/s^2]."""

    @abstractmethod
    def _here(self, q: Array) -> Array:
        """Where a posture is in the space of the motion."""

    @abstractmethod
    def _distance(self) -> float:
        """Length of the path from start to goal."""

    @abstractmethod
    def _last_posture(self, now: MotionTarget) -> Array:
        """The joints at the goal, (6,) [rad]."""

    @abstractmethod
    def _along(
        self, profile: Trapezoid, now: MotionTarget, step_s: float, scaling: float
    ) -> MotionTarget:
        """The target at the present time of the profile."""


class MoveJoints(_StraightMove):
    """`movej`: straight in joint space, with a trapezoidal speed; from rest.

    Args:
        goal: (6,) [rad]
        speed: of the leading joint, [rad/s]
        acceleration: of the leading joint, [rad/s^2]
        duration_s: of the whole motion, [s]; 0 for as fast as speed and acceleration allow
    """

    @property
    def _braking(self) -> float:
        return self._acceleration

    def _here(self, q: Array) -> Array:
        return q

    def _distance(self) -> float:
        return float(np.abs(self._goal - self._start).max())

    def _last_posture(self, now: MotionTarget) -> Array:
        return self._goal

    def _along(
        self, profile: Trapezoid, now: MotionTarget, step_s: float, scaling: float
    ) -> MotionTarget:
        direction = (self._goal - self._start) / profile.distance
        position, speed, acceleration = profile.at(self._t)
        return MotionTarget(
            self._start + position * direction,
            scaling * speed * direction,
            scaling**2 * acceleration * direction,
        )


class MoveTool(_StraightMove):
    """`movel`: the tool moves in a straight line, with a trapezoidal speed; from rest.

    Args:
        goal: pose of the tool, (6,) [m, rad]
        speed: [m/s]
        acceleration: [m/s^2]
        duration_s: of the whole motion, [s]; 0 for as fast as speed and acceleration allow
        kinematics: of the tool
    """

    def __init__(
        self,
        goal: Array,
        speed: float,
        acceleration: float,
        duration_s: float,
        *,
        kinematics: ToolKinematics,
    ) -> None:
        super().__init__(goal, speed, acceleration, duration_s)
        self._kinematics = kinematics

    @property
    def _braking(self) -> float:
        return DEFAULT_DECELERATION

    def _here(self, q: Array) -> Array:
        return self._kinematics.pose(q)

    def _distance(self) -> float:
        return self._kinematics.distance(self._start, self._goal)

    def _last_posture(self, now: MotionTarget) -> Array:
        return self._kinematics.inverse(self._goal, now.q)

    def _along(
        self, profile: Trapezoid, now: MotionTarget, step_s: float, scaling: float
    ) -> MotionTarget:
        position, _, _ = profile.at(self._t)
        share = position / profile.distance
        pose = self._kinematics.between(self._start, self._goal, share)
        q = self._kinematics.inverse(pose, now.q)
        v = (q - now.q) / step_s
        return MotionTarget(q, v, (v - now.v) / step_s)


class Trapezoid:
    """A path from rest to rest with a trapezoidal speed.

    Args:
        distance: length of the path
        speed: largest speed, per second
        acceleration: largest acceleration, per second squared
        duration_s: of the whole path, [s]; 0 for as fast as speed and acceleration allow
    """

    def __init__(
        self, distance: float, speed: float, acceleration: float, duration_s: float = 0.0
    ) -> None:
        self.distance = max(distance, 1e-12)
        self._acceleration = acceleration
        self._speed = min(speed, float(np.sqrt(self.distance * acceleration)))
        self.duration_s = self.distance / self._speed + self._speed / acceleration
        self._rate = 1.0
        if duration_s > 0:
            self._rate = self.duration_s / duration_s
            self.duration_s = duration_s

    def at(self, t: float) -> tuple[float, float, float]:
        """Position, speed and acceleration at a time t, [s]."""
        rate = self._rate
        whole_s = self.duration_s * rate
        x, v, a = self._unscaled(min(max(t * rate, 0.0), whole_s), whole_s)
        return x, v * rate, a * rate**2

    def _unscaled(self, t: float, whole_s: float) -> tuple[float, float, float]:
        a = self._acceleration
        ramp_s = self._speed / a
        if t < ramp_s:
            return a * t**2 / 2, a * t, a
        left_s = whole_s - t
        if left_s < ramp_s:
            return self.distance - a * left_s**2 / 2, a * left_s, -a
        return self._speed * (t - ramp_s / 2), self._speed, 0.0


def _towards(now: MotionTarget, v: Array, acceleration: float, step_s: float) -> MotionTarget:
    """The target after a step towards a velocity, with an acceleration of the fastest joint."""
    change = v - now.v
    largest = acceleration * step_s
    size = float(np.abs(change).max())
    if size > largest:
        change = change * (largest / size)
    return _with_velocity(now, now.v + change, step_s)


def _with_velocity(now: MotionTarget, v: Array, step_s: float) -> MotionTarget:
    if not v.any():
        return MotionTarget(now.q + step_s / 2 * now.v, v, np.zeros(len(v)))
    return MotionTarget(now.q + step_s / 2 * (now.v + v), v, (v - now.v) / step_s)


@lru_cache(maxsize=16)
def _servo_filter(step_s: float, lookahead_s: float) -> Array:
    """Matrix from position, velocity, acceleration and command to the next three, (3, 4)."""
    w = 2 * np.pi * _BANDWIDTH_TIMES_LOOKAHEAD / lookahead_s
    A = np.zeros((4, 4))
    A[0, 1] = A[1, 2] = 1.0
    A[2] = [-(w**3), -3 * w**2, -3 * w, w**3]
    return np.asarray(expm(step_s * A)[:3])
