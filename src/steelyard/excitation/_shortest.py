"""The shortest sufficient motion: designs of several durations, each started from its neighbours.

A design of duration T minimises the largest ratio r(T) of an achieved to a requested half-width
(`_accuracy`); r = 1 is just sufficient. Over short ranges r is a decreasing power of T, so a
straight line through the logarithms of two durations predicts the T with r = 1. The search first
brackets this duration and then narrows the bracket. A motion designed for one duration is the start
for the next: it is rescaled in time and shrunk until it is inside the limits. Only the first design
starts from random postures and motions, of which the best are kept. Limits of torque and of the
flange take most of the time and are seldom active, so they are added only after a motion has
violated them.

The caller evaluates r with formulas that the search does not use, and a motion counts only if its
certificate holds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from steelyard._arrays import Array, Indices
from steelyard._computing import interruptible, one_blas_thread
from steelyard.excitation._certificate import Certificate
from steelyard.excitation._design import centre_posture
from steelyard.excitation._gradients import WIDE_SIGN_WIDTH, MotionSlacks
from steelyard.excitation._limits import DesignLimits
from steelyard.excitation._objective import Criterion
from steelyard.excitation._search import STOPPED_BY_USER, DesignSettings
from steelyard.excitation._solver import Constraint, Minimiser
from steelyard.excitation._space import MotionSpace
from steelyard.robot import RobotModel
from steelyard.trajectory import FourierTrajectory

_FIRST_DURATION_S = 2.5
_RANDOM_MOTIONS_PER_START = 24
_MAX_STARTS = 4
_SAMPLES = 160
_RANDOM_START_STAGES = ((4.0, 1e-2, 40), (16.0, 1e-3, 40), (64.0, 1e-5, 40))
"""Sharpness, barrier weight and iterations of each stage from a random start."""
_NEAR_START_STAGES = ((64.0, 1e-3, 25), (64.0, 1e-5, 40))
_BRACKET_RATIO = 1.02  # ratio of two durations at which the bracket is narrow enough
_STEP_RATIOS = (1.15, 2.5)  # smallest and largest ratio of durations until there is a bracket
_MAX_DESIGNS = 16
_NEIGHBOURS = 2  # motions of other durations from which a design starts
_OTHER_DURATIONS = (0.6, 0.8, 1.5, 2.5)  # relative to the shortest sufficient one
_MIN_LOG_DISTANCE = 0.12  # between the logarithms of durations
_MIN_STROKE = 0.02  # [rad or m]
_MAX_ACCELERATION_ERROR = 0.005  # relative, of central differences of recorded positions
_EXACT_SHARPNESS = 64.0  # the smooth merit is close to the exact one
_SHRINKS = (1.0, 0.998, 0.99, 0.97, 0.94, 0.9)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A motion of some duration.

    Attributes:
        trajectory: the motion
        certificate: its checked limits
        share: largest ratio of an achieved to a requested half-width
    """

    trajectory: FourierTrajectory
    certificate: Certificate
    share: float

    @property
    def duration_s(self) -> float:
        """Duration of the motion, [s]."""
        return self.trajectory.period_s


@dataclass(frozen=True, eq=False)
class _Start:
    """Variables u, (size,), of a motion inside all limits, and their space."""

    space: MotionSpace
    u: Array


@dataclass(eq=False)
class DurationSearch:
    """Searches for the shortest sufficient motion.

    Attributes:
        robot: the arm, with the payload on its flange
        limits: limits to keep
        criterion: objective of a motion as a function of its duration [s]
        share: exact largest ratio of an achieved to a requested half-width of a motion
        harmonics: L
        moving: indices of the joints that move, (m,)
        posture: posture in which the motion begins and ends, (n,) [rad or m]; free if None
        settings: settings of the search
        stopped: reason why the search ended early; empty if it did not
    """

    robot: RobotModel
    limits: DesignLimits
    criterion: Callable[[float], Criterion]
    share: Callable[[FourierTrajectory], float]
    harmonics: int
    moving: Indices
    posture: Array | None
    settings: DesignSettings
    stopped: str = ""
    _all_limits: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)

    def shortest(self, longest_s: float) -> tuple[Candidate, ...]:
        """All candidates of at most longest_s [s], sorted by duration; none may be sufficient."""
        candidates: list[Candidate] = []
        deadline = time.perf_counter() + self.settings.time_limit_s
        self._centre(0)  # raises an error if no posture is inside the limits
        with one_blas_thread(), interruptible():
            try:
                for duration_s in self._durations(candidates, longest_s):
                    if candidates and time.perf_counter() > deadline:
                        self.stopped = "the time limit was reached"
                        break
                    self._report_progress(candidates, duration_s)
                    candidates.extend(self.at(duration_s, candidates))
            except KeyboardInterrupt:
                self._stop.set()
                self.stopped = STOPPED_BY_USER
        return tuple(sorted(candidates, key=lambda one: one.duration_s))

    def at(self, duration_s: float, near: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """The best candidates of one duration; empty if no motion keeps its limits.

        Args:
            duration_s: duration of the motion, [s]
            near: candidates of other durations to start from; random starts if empty
        """
        criterion = self.criterion(duration_s)
        by_distance = sorted(near, key=lambda one: abs(np.log(one.duration_s / duration_s)))
        while True:
            rescaled = [self._rescaled(one, duration_s) for one in by_distance[:_NEIGHBOURS]]
            starts = [start for start in rescaled if start is not None]
            stages = _NEAR_START_STAGES if starts else _RANDOM_START_STAGES
            starts = starts or self._random_starts(criterion, duration_s)
            refine = partial(self._refined, criterion, stages)
            with ThreadPoolExecutor(self.settings.workers) as pool:
                refined = list(pool.map(refine, starts))
            judged = [
                self._certified(start.space, u) for start, u in zip(starts, refined, strict=True)
            ]
            if self._all_limits or not self.limits.bounds_torque_or_flange or None not in judged:
                break
            self._all_limits = True
        certified = sorted((one for one in judged if one is not None), key=lambda one: one.share)
        return tuple(certified[: 1 if near else _NEIGHBOURS])

    def _durations(self, candidates: Sequence[Candidate], longest_s: float) -> Iterator[float]:
        """Durations to design for; the caller adds candidates in between."""
        duration_s = min(_FIRST_DURATION_S, longest_s)
        tried = set[float]()
        for _ in range(_MAX_DESIGNS):
            duration_s = self._on_grid(duration_s)
            if duration_s in tried:
                break
            tried.add(duration_s)
            yield duration_s
            sufficient = [one for one in candidates if one.share <= 1]
            insufficient = {one.duration_s: one for one in candidates if one.share > 1}
            if not sufficient:
                last = max(tried)
                if last >= longest_s:
                    return
                best = min((one.share for one in insufficient.values()), default=2.0)
                duration_s = min(longest_s, last * float(np.clip(best, 1.3, _STEP_RATIOS[1])))
                continue
            high = min(sufficient, key=lambda one: one.duration_s)
            low_s = max((each for each in tried if each < high.duration_s), default=0.0)
            if low_s == 0:
                shorter_s = high.duration_s / float(np.clip(high.share ** (-2 / 3), *_STEP_RATIOS))
                duration_s = max(shorter_s, self._shortest_s)
            elif high.duration_s / low_s < _BRACKET_RATIO:
                break
            else:
                duration_s = _between(low_s, insufficient.get(low_s), high)
        yield from self._other_durations(candidates, tried, longest_s)

    def _other_durations(
        self, candidates: Sequence[Candidate], tried: set[float], longest_s: float
    ) -> Iterator[float]:
        """Durations around the shortest sufficient one, to show the effect of the duration."""
        sufficient_s = [one.duration_s for one in candidates if one.share <= 1]
        if not sufficient_s:
            return
        for factor in _OTHER_DURATIONS:
            wanted_s = factor * min(sufficient_s)
            near = [d for d in tried if abs(np.log(d / wanted_s)) < _MIN_LOG_DISTANCE]
            duration_s = self._on_grid(wanted_s)
            if not near and self._shortest_s <= duration_s <= longest_s:
                yield duration_s

    @cached_property
    def _shortest_s(self) -> float:
        """The shortest useful duration, [s]: joints must move enough, and not too fast to record.

        Central differences with step h measure 1 - (w h)^2 / 12 of an acceleration of frequency w.
        """
        joints = self.limits.joints
        stroke = np.minimum(joints.v_max / (2 * np.pi), joints.a_max / (2 * np.pi) ** 2)
        largest_wh = np.sqrt(12 * _MAX_ACCELERATION_ERROR)
        recordable_s = 2 * np.pi * self.harmonics / (self.settings.rate_hz * largest_wh)
        return float(max(np.sqrt(_MIN_STROKE / stroke[self.moving]).max(), recordable_s))

    def _on_grid(self, duration_s: float) -> float:
        """The duration rounded up to a multiple of the recording's period, [s]."""
        return float(np.ceil(duration_s * self.settings.rate_hz - 1e-9) / self.settings.rate_hz)

    def _report_progress(self, candidates: Sequence[Candidate], duration_s: float) -> None:
        if self.settings.progress is not None:
            sufficient_s = [one.duration_s for one in candidates if one.share <= 1]
            fraction = min(0.95, len(candidates) / 8)
            self.settings.progress(fraction, min(sufficient_s, default=duration_s))

    @cached_property
    def _slacks(self) -> MotionSlacks:
        return MotionSlacks(self.robot, self.limits)

    @cached_property
    def _postures(self) -> Array:
        """Initial postures inside all limits; the first is the given one, or home if inside."""
        first = centre_posture(
            self.robot, self.limits, self.moving, self.posture, self.settings.seed
        )
        if self.posture is not None:
            return first[None]
        rng = np.random.default_rng(self.settings.seed)
        low = np.maximum(self.limits.joints.q_min, self.robot.home - np.pi)
        high = np.minimum(self.limits.joints.q_max, self.robot.home + np.pi)
        q = np.tile(first, (8 * _RANDOM_MOTIONS_PER_START, 1))
        q[1:, self.moving] = rng.uniform(low, high, q[1:].shape)[:, self.moving]
        return np.asarray(q[self.limits.margin_at_rest(self.robot, q) > 0])

    def _centre(self, k: int) -> Array:
        return np.asarray(self._postures[k % len(self._postures)])

    def _space(self, centre: Array, duration_s: float) -> MotionSpace:
        w = 2 * np.pi / duration_s
        joints = self.limits.joints
        scale = np.minimum(joints.v_max, joints.a_max / w)[self.moving] / 2
        fixed = self.posture is not None
        return MotionSpace(
            centre, self.moving, self.harmonics, duration_s, self.settings.at_rest, fixed, scale
        )

    def _constraints(self, space: MotionSpace) -> list[Constraint]:
        constraints = [space.joint_constraint(self.limits)]
        if self._all_limits:
            constraints.append(space.motion_constraint(self._slacks))
        if self.limits.surroundings is not None:
            clearances = self.limits.surroundings.clearances(self.robot)
            constraints.append(space.motion_constraint(clearances))
        return constraints

    def _inside(self, space: MotionSpace, u: Array) -> _Start | None:
        """The motion, scaled down until it is inside all limits; None if it never is."""
        constraints = self._constraints(space)
        for _ in range(40):
            if all((constraint.slack(u) > 0).all() for constraint in constraints):
                return _Start(space, u)
            u = 0.85 * u
        return None

    def _rescaled(self, one: Candidate, duration_s: float) -> _Start | None:
        """The motion of a candidate, rescaled in time to another duration."""
        series = one.trajectory
        pace = one.duration_s / duration_s
        centre = series.offset.copy() if self.posture is None else self.posture
        space = self._space(centre, duration_s)
        C = np.column_stack([pace * series.sine, pace * series.cosine, series.offset - centre])
        u = (np.linalg.pinv(space.free) @ (C[self.moving] / space.scale[:, None]).T).T
        return self._inside(space, u.ravel())

    def _random_starts(self, criterion: Criterion, duration_s: float) -> list[_Start]:
        """The best of many random motions around random postures."""
        rng = np.random.default_rng([self.settings.seed, round(1e3 * duration_s)])
        program = criterion.rows.compiled(criterion.robot, WIDE_SIGN_WIDTH)
        count = min(self.settings.starts, _MAX_STARTS)
        ranked = []
        for k in range(_RANDOM_MOTIONS_PER_START * count):
            space = self._space(self._centre(k), duration_s)
            start = self._inside(space, 0.5 * rng.normal(size=space.size))
            if start is not None:
                gram = program.gram(*space.motion(start.u, self._sample_signals(space)))
                ranked.append((criterion.merit(gram, _EXACT_SHARPNESS)[0], k, start))
        ranked.sort(key=lambda each: each[:2])
        return [start for _, _, start in ranked[:count]]

    def _sample_signals(self, space: MotionSpace) -> Array:
        return space.signals((np.arange(_SAMPLES) + 0.5) * space.period_s / _SAMPLES)

    def _refined(
        self, criterion: Criterion, stages: Sequence[tuple[float, float, int]], start: _Start
    ) -> Array:
        """The best variables u that the solver finds from a start, (size,)."""
        program = criterion.rows.compiled(criterion.robot, WIDE_SIGN_WIDTH)
        space = start.space
        at = self._sample_signals(space)
        gram = space.remembered(program.gram, at)
        best = start.u
        lowest = np.inf

        def value(u: Array, sharpness: float) -> float:
            return float(criterion.merit(gram(u), sharpness)[0])

        def value_and_gradient(u: Array, sharpness: float) -> tuple[float, Array]:
            f, change = criterion.merit(gram(u), sharpness)
            return f, space.gradient(at, *program.pull(*space.motion(u, at), change))

        def visit(u: Array) -> None:
            nonlocal best, lowest
            merit = value(u, _EXACT_SHARPNESS)
            if merit < lowest:
                best = u.copy()
                lowest = merit
            if self._stop.is_set():
                raise StopIteration

        minimiser = Minimiser(self._constraints(space), start.u, visit)
        with suppress(StopIteration):
            for sharpness, barrier, iterations in stages:
                minimiser.descend(
                    partial(value, sharpness=sharpness),
                    partial(value_and_gradient, sharpness=sharpness),
                    barrier=barrier,
                    iterations=round(max(1, self.settings.effort * iterations)),
                )
        return best

    def _certified(self, space: MotionSpace, u: Array) -> Candidate | None:
        """The motion, shrunk by at most 10 % until its certificate holds; None if it never does."""
        for shrink in _SHRINKS:
            trajectory = space.trajectory(shrink * u)
            certificate = self.limits.certify(self.robot, trajectory)
            if certificate.holds:
                return Candidate(trajectory, certificate, self.share(trajectory))
        return None


def _between(low_s: float, low: Candidate | None, high: Candidate) -> float:
    """The duration between two others at which a motion should be just sufficient, [s].

    It lies on a straight line through logarithms, in the middle 80 % of the interval.

    Args:
        low_s: insufficient duration, [s]
        low: its best motion; None if no motion keeps the limits
        high: a sufficient motion
    """
    part = 0.5
    if low is not None:
        above = np.log(low.share)
        below = np.log(max(high.share, 1e-9))
        part = float(np.clip(above / max(above - below, 1e-9), 0.1, 0.9))
    return float(low_s * (high.duration_s / low_s) ** part)
