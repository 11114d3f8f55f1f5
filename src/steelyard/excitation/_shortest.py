"""The shortest motion that is enough: designs of many durations, each begun from its neighbours.

A design of duration T lowers the largest share r(T) of what is requested (`accuracy`). r falls with
T, as a power of it over short stretches, so the shortest T with r = 1 lies where a straight line
through the logarithms of two durations around it meets zero: first such a bracket is found, then it
is narrowed. What was designed for one duration is a start for the next one, at the pace of the new
duration and shrunk until it is inside the limits; only the first one begins from postures and
motions drawn at random, of which the best are kept. Limits of torque and of the flange cost most of
the time and are seldom in the way: they join the others once a motion breaks them.

r is judged by a function of the caller, by formulas that the search does not use, and a motion
counts only if its certificate holds.
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
from steelyard.excitation._search import BY_HAND, DesignSettings
from steelyard.excitation._solver import Constraint, Minimiser
from steelyard.excitation._space import MotionSpace
from steelyard.robot import RobotModel
from steelyard.trajectory import FourierTrajectory

_FIRST_S = 2.5
_SCREENED = 24  # random motions for each that is kept
_REFINED = 4  # starts that are refined, at most
_SAMPLES = 160
_STAGES = ((4.0, 1e-2, 40), (16.0, 1e-3, 40), (64.0, 1e-5, 40))  # sharpness, barrier, iterations
_NEAR_STAGES = ((64.0, 1e-3, 25), (64.0, 1e-5, 40))
_NARROW = 1.02
_STEPS = (1.15, 2.5)  # by which a duration changes at least and at most until there is a bracket
_MOST_DESIGNS = 16
_CONTINUED = 2  # motions of other durations that a search begins from
_BESIDE = (0.6, 0.8, 1.5, 2.5)  # durations beside the shortest one, over it
_SPACED = 0.12  # between logarithms of durations
_SMALLEST_STROKE = 0.02  # [rad or m]
_MOST_BLUR = 0.005  # of an acceleration, by central differences of recorded positions
_SHRINKS = (1.0, 0.998, 0.99, 0.97, 0.94, 0.9)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A motion of some duration, its certificate, and the largest share of what is requested."""

    trajectory: FourierTrajectory
    certificate: Certificate
    share: float

    @property
    def duration_s(self) -> float:
        """Of the motion, [s]."""
        return self.trajectory.period_s


@dataclass(frozen=True, eq=False)
class _Start:
    """Free numbers u, (size,), of a motion inside all limits, in their space."""

    space: MotionSpace
    u: Array


@dataclass(eq=False)
class DurationSearch:
    """Looks for the shortest motion that is enough.

    Attributes:
        robot: the arm, with the payload on its flange
        limits: to keep
        criterion: what a motion of some duration [s] is for
        share: largest share of what is requested that a motion needs, judged exactly
        harmonics: L
        moving: indices of the joints that move, (m,)
        posture: where the motion begins and ends, (n,) [rad or m]; free when None
        settings: of the search
        stopped: why it ended early, in words; empty when it did not
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
        """Every candidate, in the order of their durations; none is enough where longest_s [s] is not."""
        found: list[Candidate] = []
        deadline = time.perf_counter() + self.settings.time_limit_s
        self._centre(0)  # refuses limits that leave no posture
        with one_blas_thread(), interruptible():
            try:
                for duration_s in self._durations(found, longest_s):
                    if found and time.perf_counter() > deadline:
                        self.stopped = "the time limit was reached"
                        break
                    self._tell(found, duration_s)
                    found.extend(self.at(duration_s, found))
            except KeyboardInterrupt:
                self._stop.set()
                self.stopped = BY_HAND
        return tuple(sorted(found, key=lambda one: one.duration_s))

    def at(self, duration_s: float, near: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """The best candidates of a duration_s, begun from those near it or at random; none where none is."""
        criterion = self.criterion(duration_s)
        nearest = sorted(near, key=lambda one: abs(np.log(one.duration_s / duration_s)))[
            :_CONTINUED
        ]
        while True:
            starts = [
                start for one in nearest if (start := self._continued(one, duration_s)) is not None
            ]
            stages = _NEAR_STAGES if starts else _STAGES
            starts = starts or self._screened(criterion, duration_s)
            lower = partial(self._lowered, criterion, stages)
            with ThreadPoolExecutor(self.settings.workers) as pool:
                lowered = list(pool.map(lower, starts))
            judged = [
                self._certified(start.space, u) for start, u in zip(starts, lowered, strict=True)
            ]
            if self._all_limits or not self.limits.bounds_torque_or_flange or None not in judged:
                break
            self._all_limits = True
        certified = sorted((one for one in judged if one is not None), key=lambda one: one.share)
        return tuple(certified[: 1 if near else _CONTINUED])

    def _durations(self, found: Sequence[Candidate], longest_s: float) -> Iterator[float]:
        """Durations to design for, given what is found so far."""
        duration_s = min(_FIRST_S, longest_s)
        tried = set[float]()
        for _ in range(_MOST_DESIGNS):
            duration_s = self._on_grid(duration_s)
            if duration_s in tried:
                break
            tried.add(duration_s)
            yield duration_s
            enough = [one for one in found if one.share <= 1]
            short = {one.duration_s: one for one in found if one.share > 1}
            if not enough:
                last = max(tried)
                if last >= longest_s:
                    return
                best = min((one.share for one in short.values()), default=2.0)
                duration_s = min(longest_s, last * float(np.clip(best, 1.3, _STEPS[1])))
                continue
            high = min(enough, key=lambda one: one.duration_s)
            low_s = max((each for each in tried if each < high.duration_s), default=0.0)
            if low_s == 0:
                quicker = high.duration_s / float(np.clip(high.share ** (-2 / 3), *_STEPS))
                duration_s = max(quicker, self._shortest_s)
            elif high.duration_s / low_s < _NARROW:
                break
            else:
                duration_s = _between(low_s, short.get(low_s), high)
        yield from self._around(found, tried, longest_s)

    def _around(
        self, found: Sequence[Candidate], tried: set[float], longest_s: float
    ) -> Iterator[float]:
        """Durations beside the shortest one that is enough, to see what more and less time would give."""
        enough = [one.duration_s for one in found if one.share <= 1]
        for factor in _BESIDE if enough else ():
            near = [d for d in tried if abs(np.log(d / (factor * min(enough)))) < _SPACED]
            duration_s = self._on_grid(factor * min(enough))
            if not near and self._shortest_s <= duration_s <= longest_s:
                yield duration_s

    @cached_property
    def _shortest_s(self) -> float:
        """Below it, the joints hardly move, or too quickly for the recording, [s].

        Central differences, h apart, show a frequency w with 1 - (w h)^2 / 12 of its acceleration.
        """
        joints = self.limits.joints
        stroke = np.minimum(joints.v_max / (2 * np.pi), joints.a_max / (2 * np.pi) ** 2)[
            self.moving
        ]
        blurred_s = 2 * np.pi * self.harmonics / (self.settings.rate_hz * np.sqrt(12 * _MOST_BLUR))
        return float(max(np.sqrt(_SMALLEST_STROKE / stroke).max(), blurred_s))

    def _on_grid(self, duration_s: float) -> float:
        return float(np.ceil(duration_s * self.settings.rate_hz - 1e-9) / self.settings.rate_hz)

    def _tell(self, found: Sequence[Candidate], duration_s: float) -> None:
        if self.settings.progress is not None:
            enough = [one.duration_s for one in found if one.share <= 1]
            self.settings.progress(min(0.95, len(found) / 8), min(enough, default=duration_s))

    @cached_property
    def _slacks(self) -> MotionSlacks:
        return MotionSlacks(self.robot, self.limits)

    @cached_property
    def _postures(self) -> Array:
        """Postures inside all limits to begin from, the first one the user's, or home where it is."""
        first = centre_posture(
            self.robot, self.limits, self.moving, self.posture, self.settings.seed
        )
        if self.posture is not None:
            return first[None]
        rng = np.random.default_rng(self.settings.seed)
        low = np.maximum(self.limits.joints.q_min, self.robot.home - np.pi)
        high = np.minimum(self.limits.joints.q_max, self.robot.home + np.pi)
        q = np.tile(first, (8 * _SCREENED, 1))
        q[1:, self.moving] = rng.uniform(low, high, q[1:].shape)[:, self.moving]
        return np.asarray(q[self.limits.room_at_rest(self.robot, q) > 0])

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
        found = [space.joint_constraint(self.limits)]
        if self._all_limits:
            found.append(space.motion_constraint(self._slacks))
        if self.limits.scene is not None:
            found.append(space.motion_constraint(self.limits.scene.clearances(self.robot)))
        return found

    def _inside(self, space: MotionSpace, u: Array) -> _Start | None:
        """The motion, shrunk until it is inside all limits; None where it never is."""
        constraints = self._constraints(space)
        for _ in range(40):
            if all((constraint.slack(u) > 0).all() for constraint in constraints):
                return _Start(space, u)
            u = 0.85 * u
        return None

    def _continued(self, one: Candidate, duration_s: float) -> _Start | None:
        """A motion at the pace of another duration, about its own middle."""
        series = one.trajectory
        pace = one.duration_s / duration_s
        if self.posture is None:
            centre = series.offset.copy()
        else:
            centre = self.posture
        space = self._space(centre, duration_s)
        C = np.column_stack([pace * series.sine, pace * series.cosine, series.offset - centre])[
            self.moving
        ]
        u = (np.linalg.pinv(space.free) @ (C / space.scale[:, None]).T).T
        return self._inside(space, u.ravel())

    def _screened(self, criterion: Criterion, duration_s: float) -> list[_Start]:
        """The best of many random motions about random postures."""
        rng = np.random.default_rng([self.settings.seed, round(1e3 * duration_s)])
        program = criterion.rows.compiled(criterion.robot, WIDE_SIGN_WIDTH)
        scored = []
        for k in range(_SCREENED * min(self.settings.starts, _REFINED)):
            space = self._space(self._centre(k), duration_s)
            start = self._inside(space, 0.5 * rng.normal(size=space.size))
            if start is not None:
                gram = program.gram(*space.motion(start.u, self._at(space)))
                scored.append((criterion.merit(gram, 64.0)[0], k, start))
        scored.sort(key=lambda each: each[:2])
        return [start for _, _, start in scored[: min(self.settings.starts, _REFINED)]]

    def _at(self, space: MotionSpace) -> Array:
        return space.signals((np.arange(_SAMPLES) + 0.5) * space.period_s / _SAMPLES)

    def _lowered(
        self, criterion: Criterion, stages: Sequence[tuple[float, float, int]], start: _Start
    ) -> Array:
        """The best free numbers found from a start, (size,)."""
        program = criterion.rows.compiled(criterion.robot, WIDE_SIGN_WIDTH)
        space, at = start.space, self._at(start.space)
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
            score = value(u, 64.0)
            if score < lowest:
                best = u.copy()
                lowest = score
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
        for shrink in _SHRINKS:
            trajectory = space.trajectory(shrink * u)
            certificate = self.limits.certify(self.robot, trajectory)
            if certificate.holds:
                return Candidate(trajectory, certificate, self.share(trajectory))
        return None


def _between(low_s: float, low: Candidate | None, high: Candidate) -> float:
    """Where a straight line through logarithms says that a motion is just enough, [s]; well inside.

    Between low_s [s], its best motion low (None where none is inside the limits), and one that is
    enough.
    """
    part = 0.5
    if low is not None:
        above = np.log(low.share)
        below = np.log(max(high.share, 1e-9))
        part = float(np.clip(above / max(above - below, 1e-9), 0.1, 0.9))
    return float(low_s * (high.duration_s / low_s) ** part)
