"""The search for a motion from many starts.

Each start is a random motion around a centre posture, inside all limits. `_batch` minimises many
starts together on thinned samples, mutates the best of them and minimises again; the best motions
of all are refined. A few starts are refined directly: each is first made informative (log det) and
then minimised in stages of growing sharpness and falling distance from the limits (`_solver`). The
refinement runs in threads, reports progress and can be interrupted.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steelyard._arrays import Array
from steelyard._computing import interruptible, one_blas_thread
from steelyard.errors import InfeasibleDesign, InvalidTrajectory
from steelyard.excitation._batch import BatchSearch
from steelyard.excitation._gradients import MotionSlacks
from steelyard.excitation._limits import DesignLimits
from steelyard.excitation._objective import Objective
from steelyard.excitation._solver import Constraint, Minimiser
from steelyard.excitation._space import MotionSpace
from steelyard.robot import RobotModel

STOPPED_BY_USER = "stopped by hand"
_SAMPLES_PER_HARMONIC = 30
_MIN_SAMPLES = 160
_RANKING_RATE_HZ = 125.0
_MAX_DIRECT_STARTS = 4  # up to this number, all starts are refined without a batch search
_MIN_REFINED = 2  # motions of a batch search that are refined
_STARTS_PER_REFINED = 64  # one more motion is refined for this number of starts
# Six joints, five harmonics, at rest at both ends; larger problems get proportionally more work.
_REFERENCE_UNKNOWNS = 54
_RANKED_PER_REFINED = 4  # motions that are ranked on all samples, for each one that is refined
_MUTATION_ROUNDS = 10
_BATCH_ITERATIONS = (50, 50)  # of the first descent, and of each mutation round
_FIRST_STAGE_AFTER_BATCH = 2
_START_SCALE = 0.95  # keeps starts of the batch off their limits
_BATCH_TIME_SHARE = 0.8  # expected share of the batch search in the total time
_EXACT_SHARPNESS = 1e3  # the smooth merit equals the exact one
_STAGES = (
    (False, 1.0, 1e-2),
    (True, 2.0, 1e-3),
    (True, 8.0, 1e-4),
    (True, 32.0, 1e-5),
    (True, 100.0, 1e-6),
)
"""Whether the stage uses the objective's merit (or log det), its sharpness, its barrier weight."""
_STAGE_ITERATIONS = (20, 100, 120, 80, 60)


@dataclass(frozen=True, eq=False)
class DesignSettings:
    """Settings of the search for a design.

    Attributes:
        starts: number of random starts; more than four go through a batch search first
        seed: seed of the starts; the same seed gives the same motion unless time runs out
        at_rest: whether the arm is at rest at both ends
        rate_hz: rate of the recording for which the objective is evaluated, [Hz]
        effort: factor of the number of iterations
        workers: number of threads; all cores by default
        device: device of the batch search, 'cpu' or 'gpu'
        time_limit_s: time after which the best motion so far is returned, [s]
        progress: called with the completed fraction and the best merit so far
    """

    starts: int = 32
    seed: int = 0
    at_rest: bool = True
    rate_hz: float = 125.0
    effort: float = 1.0
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    device: str = "cpu"
    time_limit_s: float = np.inf
    progress: Callable[[float, float], None] | None = None

    def __post_init__(self) -> None:
        for name in ("starts", "rate_hz", "effort", "workers", "time_limit_s"):
            if not getattr(self, name) > 0:
                raise InvalidTrajectory(f"{name} must be positive, got {getattr(self, name)}")
        if self.device not in ("cpu", "gpu"):
            raise InvalidTrajectory(f"device must be 'cpu' or 'gpu', got '{self.device}'")


class Search:
    """Minimises an objective from several starts in threads and keeps the best motion of each.

    Attributes:
        criterion: the objective for this arm and these joints
        stopped: reason why the search ended early; empty if it did not
    """

    def __init__(
        self,
        robot: RobotModel,
        limits: DesignLimits,
        space: MotionSpace,
        objective: Objective,
        settings: DesignSettings,
    ) -> None:
        self.robot = robot
        self.limits = limits
        self.space = space
        self.settings = settings
        self.criterion = objective.criterion(robot, limits, space.centre, space.joints)
        self.stopped = ""
        count = max(_MIN_SAMPLES, _SAMPLES_PER_HARMONIC * space.harmonics)
        self._at = space.signals((np.arange(count) + 0.5) * space.period_s / count)
        self._program = self.criterion.rows.compiled(robot)
        self._slacks = MotionSlacks(robot, limits) if limits.bounds_torque_or_flange else None
        self._deadline = time.perf_counter() + settings.time_limit_s
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._batch_progress = 0.0
        self._iterations_done = 0
        self._refined_starts = 1
        self._lowest_merit = np.inf
        first = 0 if self._direct else _FIRST_STAGE_AFTER_BATCH
        self._stages = [
            (*stage, max(1, round(settings.effort * count)))
            for stage, count in zip(_STAGES[first:], _STAGE_ITERATIONS[first:], strict=True)
        ]
        self._iterations = sum(stage[-1] for stage in self._stages)

    @property
    def _direct(self) -> bool:
        """Whether all starts are refined without a batch search."""
        return self.settings.starts <= _MAX_DIRECT_STARTS

    def run(self) -> list[tuple[float, Array | None]]:
        """The exact value and the variables u, (size,), of the best motion of each start.

        A start that was not refined gives infinity and None.
        """
        self._compile()
        with one_blas_thread(), ThreadPoolExecutor(self.settings.workers) as pool:
            with interruptible():
                starts = self._starts(pool)
            self._refined_starts = len(starts)
            futures = [pool.submit(self._refined, u, k == 0) for k, u in enumerate(starts)]
            with interruptible():
                self._wait_for(futures)
            motions = [future.result() for future in futures]
            return [(np.inf if u is None else self._value(u), u) for u in motions]

    def _starts(self, pool: ThreadPoolExecutor) -> list[Array]:
        """The starts of the refinement, each (size,): random, or the best of a batch search."""
        constraints = self._constraints()
        settings = self.settings
        seeds = np.random.SeedSequence(settings.seed).spawn(settings.starts)
        try:
            u = [
                _random_start(self.space, self.limits, constraints, np.random.default_rng(seed))
                for seed in seeds
            ]
        except InfeasibleDesign as error:
            closest = self.limits.closest_at_rest(self.robot, self.space.centre)
            raise InfeasibleDesign(f"{error}; closest is {closest.sentence}") from error
        if self._direct:
            return u
        batch = BatchSearch(self.criterion, self.space, self.limits, self._slacks, settings.device)
        relative_size = max(1.0, self.space.size / _REFERENCE_UNKNOWNS)
        effort = settings.effort * relative_size
        search = pool.submit(
            batch.searched,
            _START_SCALE * np.array(u),
            rounds=round(relative_size**2 * _MUTATION_ROUNDS),
            iterations=[max(1, round(effort * count)) for count in _BATCH_ITERATIONS],
            rng=np.random.default_rng([settings.seed, 1]),
            go_on=self._batch_continues,
        )
        self._wait_for([search])
        _, best = search.result()
        count = round(relative_size * _MIN_REFINED) + settings.starts // _STARTS_PER_REFINED
        candidates = [_shrunk(u, constraints, 0.97) for u in best[: _RANKED_PER_REFINED * count]]
        inside = [u for u in candidates if u is not None]
        inside.sort(key=lambda u: self._merit(self._gram(u)))
        return inside[:count] or u[:count]

    def _value(self, u: Array) -> float:
        return self.criterion.value(self.space.trajectory(u), _RANKING_RATE_HZ)

    def _constraints(self) -> list[Constraint]:
        """All limits for one thread; each thread needs a collision workspace of its own."""
        constraints = [self.space.joint_constraint(self.limits)]
        if self._slacks is not None:
            constraints.append(self.space.motion_constraint(self._slacks))
        if self.limits.surroundings is not None:
            clearances = self.limits.surroundings.clearances(self.robot)
            constraints.append(self.space.motion_constraint(clearances))
        return constraints

    def _compile(self) -> None:
        """Compiles the programs that all threads share."""
        zero = np.zeros(self.space.size)
        self._program.pull(*self.space.motion(zero, self._at), np.eye(len(self._gram(zero))))
        for constraint in self._constraints():
            constraint.slack(zero)
            constraint.linearised(zero)

    def _gram(self, u: Array) -> Array:
        return self._program.gram(*self.space.motion(u, self._at))

    def _merit(self, G: Array) -> float:
        return float(self.criterion.merit(G, _EXACT_SHARPNESS)[0])

    def _batch_continues(self, progress: float) -> bool:
        """Receives the progress of the batch search and returns whether it may continue."""
        self._batch_progress = progress
        return not self._stop.is_set()

    def _report_progress(self) -> None:
        """Reports the completed fraction and stops the search at its time limit."""
        try:
            if time.perf_counter() > self._deadline:
                self._stop_search("the time limit was reached")
            if self.settings.progress is not None:
                batch_share = 0.0 if self._direct else _BATCH_TIME_SHARE
                iterations = self._refined_starts * self._iterations
                refined = min(1.0, self._iterations_done / iterations)
                fraction = batch_share * self._batch_progress + (1 - batch_share) * refined
                self.settings.progress(fraction, self._lowest_merit)
        except KeyboardInterrupt:
            self._stop_search(STOPPED_BY_USER)

    def _wait_for(self, futures: Sequence[Future[Any]]) -> None:
        waiting = set(futures)
        while waiting:
            try:
                _, waiting = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
            except KeyboardInterrupt:
                self._stop_search(STOPPED_BY_USER)
            self._report_progress()

    def _stop_search(self, reason: str) -> None:
        self.stopped = self.stopped or reason
        self._stop.set()

    def _refined(self, start: Array, first: bool) -> Array | None:
        """The best motion that the solver finds from one start, (size,).

        The first start always makes one step, so that an interrupted search has a motion. The
        function does not use the robot, whose Pinocchio data belong to the main thread.
        """
        if self._stop.is_set() and not first:
            return None
        gram = self.space.remembered(self._program.gram, self._at)
        constraints = self._constraints()
        best = start
        lowest = np.inf
        count = 0

        def visit(u: Array) -> None:
            nonlocal best, lowest, count
            merit = self._merit(gram(u))
            if merit < lowest:
                lowest = merit
                best = u.copy()
            count += 1
            with self._lock:
                self._iterations_done += 1
                self._lowest_merit = min(self._lowest_merit, lowest)
            if self._stop.is_set():
                raise StopIteration

        with suppress(StopIteration):
            minimiser = Minimiser(constraints, start, visit)
            for stage in self._stages:
                self._descend(minimiser, gram, *stage)
        with self._lock:
            self._iterations_done += self._iterations - count
        return best

    def _descend(
        self,
        minimiser: Minimiser,
        gram: Callable[[Array], Array],
        own_merit: bool,
        sharpness: float,
        barrier: float,
        iterations: int,
    ) -> None:
        """One stage of the solver."""
        merit = self.criterion.merit if own_merit else self.criterion.log_det_merit

        def value_and_gradient(u: Array) -> tuple[float, Array]:
            f, change = merit(gram(u), sharpness)
            pulled = self._program.pull(*self.space.motion(u, self._at), change)
            return float(f), self.space.gradient(self._at, *pulled)

        minimiser.descend(
            lambda u: float(merit(gram(u), sharpness)[0]),
            value_and_gradient,
            barrier=barrier,
            iterations=iterations,
        )


def _random_start(
    space: MotionSpace,
    limits: DesignLimits,
    constraints: Sequence[Constraint],
    rng: np.random.Generator,
) -> Array:
    """Random variables u of a motion strictly inside all limits, (size,)."""
    u = rng.normal(size=space.size)
    trajectory = space.trajectory(u)
    q, v, a = (x[space.joints] for x in trajectory.amplitudes)
    shift = np.abs(trajectory.offset - space.centre)[space.joints]
    j = space.joints
    joints = limits.joints
    margin = np.minimum(joints.q_max[j] - space.centre[j], space.centre[j] - joints.q_min[j])
    with np.errstate(divide="ignore"):
        largest = np.minimum.reduce(
            [margin / (q + shift), joints.v_max[j] / v, joints.a_max[j] / a]
        )
    u = (u.reshape(len(j), -1) * 0.8 * largest[:, None]).ravel()
    inside = _shrunk(u, constraints, 0.8)
    if inside is None:
        raise InfeasibleDesign(
            "no motion around the centre posture keeps its limits with a reserve"
        )
    return inside


def _shrunk(u: Array, constraints: Sequence[Constraint], factor: float) -> Array | None:
    """The motion u, (size,), scaled down until it is inside all limits; None if it never is."""
    for _ in range(80):
        if all((constraint.slack(u) > 0).all() for constraint in constraints):
            return np.asarray(u)
        u = factor * u
    return None
