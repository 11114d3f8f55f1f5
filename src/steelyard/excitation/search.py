"""The search for a motion from several starts.

Each start is a random motion around a centre posture, inside all limits. It is first made informative (log
det), then its objective is lowered in stages of growing sharpness and falling distance from the limits
(`solver`). Starts run in threads, with progress and a way to stop.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from steelyard.arrays import Array
from steelyard.computing import interruptible, one_blas_thread
from steelyard.errors import InfeasibleDesign, InvalidTrajectory
from steelyard.excitation.gradients import MotionSlacks
from steelyard.excitation.limits import DesignLimits
from steelyard.excitation.objective import Objective
from steelyard.excitation.solver import Constraint, Minimiser
from steelyard.excitation.space import MotionSpace
from steelyard.robot import RobotModel

BY_HAND = "stopped by hand"
_SAMPLES_PER_HARMONIC, _FEWEST_SAMPLES = 30, 160
_VALUE_HZ = 125.0
_EXACT = 1e3  # a sharpness at which the smooth merit is the exact one
_STAGES = ((False, 1.0, 1e-2), (True, 2.0, 1e-3), (True, 8.0, 1e-4), (True, 32.0, 1e-5))
"""Own merit or log det, sharpness, barrier."""
_ITERATIONS = (20, 100, 120, 80)  # of each stage


@dataclass(frozen=True, eq=False)
class DesignSettings:
    """How a design is searched for.

    Attributes:
        starts: number of random starts
        seed: of the starts; the same seed gives the same motion, unless time runs out
        at_rest: whether the arm is at rest at both ends
        rate_hz: of the recording that the value is for, [Hz]
        effort: factor of the iterations
        workers: threads; all cores by default
        time_limit_s: after which the best so far counts, [s]
        progress: called with the share that is done and the best value of the objective's merit so far
    """

    starts: int = 4
    seed: int = 0
    at_rest: bool = True
    rate_hz: float = 125.0
    effort: float = 1.0
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    time_limit_s: float = np.inf
    progress: Callable[[float, float], None] | None = None

    def __post_init__(self) -> None:
        for name in ("starts", "rate_hz", "effort", "workers", "time_limit_s"):
            if not getattr(self, name) > 0:
                raise InvalidTrajectory(f"{name} must be positive, got {getattr(self, name)}")


class Search:
    """Lowers an objective from several starts in threads, and keeps the best motion of each.

    Attributes:
        criterion: the objective for this arm and these joints
        stopped: why the search ended early, in words; empty when it did not
    """

    def __init__(
        self,
        robot: RobotModel,
        limits: DesignLimits,
        space: MotionSpace,
        objective: Objective,
        settings: DesignSettings,
    ) -> None:
        self.robot, self.limits, self.space, self.settings = robot, limits, space, settings
        self.criterion = objective.criterion(robot, limits, space.centre, space.joints)
        self.stopped = ""
        count = max(_FEWEST_SAMPLES, _SAMPLES_PER_HARMONIC * space.harmonics)
        self._at = space.signals((np.arange(count) + 0.5) * space.period_s / count)
        self._program = self.criterion.rows.compiled(robot)
        self._slacks = MotionSlacks(robot, limits) if limits.bounds_torque_or_flange else None
        self._deadline = time.perf_counter() + settings.time_limit_s
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._done, self._lowest = 0, np.inf
        self._iterations = [max(1, round(settings.effort * count)) for count in _ITERATIONS]

    def run(self) -> list[tuple[float, Array | None]]:
        """The best of each start, in order: exact value and free numbers u, (size,), or inf and None."""
        self._compile()
        seeds = np.random.SeedSequence(self.settings.seed).spawn(self.settings.starts)
        with one_blas_thread(), ThreadPoolExecutor(self.settings.workers) as pool:
            futures = [pool.submit(self._lowered, s, k == 0) for k, s in enumerate(seeds)]
            with interruptible():
                self._watch(futures)
            found = [self._result(future) for future in futures]
            return [(np.inf if u is None else self._value(u), u) for u in found]

    def _result(self, future: Future[Array | None]) -> Array | None:
        try:
            return future.result()
        except InfeasibleDesign as error:
            closest = self.limits.closest_at_rest(self.robot, self.space.centre)
            raise InfeasibleDesign(f"{error}; closest is {closest.sentence}") from error

    def _value(self, u: Array) -> float:
        return self.criterion.value(self.space.trajectory(u), _VALUE_HZ)

    def _constraints(self) -> list[Constraint]:
        """All limits, for one thread (a scene has its own workspace in each)."""
        found = [self.space.joint_constraint(self.limits)]
        if self._slacks is not None:
            found.append(self.space.motion_constraint(self._slacks))
        if self.limits.scene is not None:
            found.append(self.space.motion_constraint(self.limits.scene.clearances(self.robot)))
        return found

    def _compile(self) -> None:
        """Compiles what the threads share."""
        zero = np.zeros(self.space.size)
        self._merit(zero, lambda G, sharpness: (0.0, np.eye(len(G))), 1.0)
        for constraint in self._constraints():
            constraint.slack(zero)
            constraint.linearised(zero)

    def _gram(self, u: Array) -> Array:
        return self._program.gram(*self.space.motion(u, self._at))

    def _merit(
        self, u: Array, merit: Callable[[Array, float], tuple[float, Array]], sharpness: float
    ) -> tuple[float, Array]:
        """A merit and its gradient by u."""
        motion = self.space.motion(u, self._at)
        f, change = merit(self._program.gram(*motion), sharpness)
        return f, self.space.gradient(self._at, *self._program.pull(*motion, change))

    def _watch(self, futures: list[Future[Array | None]]) -> None:
        waiting, total = set(futures), len(futures) * sum(self._iterations)
        while waiting:
            try:
                _, waiting = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
                if time.perf_counter() > self._deadline and not self._stop.is_set():
                    self.stopped = "the time limit was reached"
                    self._stop.set()
                if self.settings.progress is not None:
                    self.settings.progress(min(1.0, self._done / total), self._lowest)
            except KeyboardInterrupt:
                self.stopped = BY_HAND
                self._stop.set()

    def _lowered(self, seed: np.random.SeedSequence, first: bool) -> Array | None:
        """The best motion of one start; the first one makes at least one step, so that there is one.

        The robot is not asked here: its workspace belongs to the main thread.
        """
        if self._stop.is_set() and not first:
            return None
        constraints = self._constraints()
        best = _random_start(self.space, self.limits, constraints, np.random.default_rng(seed))
        lowest, count = np.inf, 0

        def visit(u: Array) -> None:
            nonlocal best, lowest, count
            score = self.criterion.merit(self._gram(u), _EXACT)[0]
            if score < lowest:
                lowest, best = score, u.copy()
            count += 1
            with self._lock:
                self._done += 1
                self._lowest = min(self._lowest, lowest)
            if self._stop.is_set():
                raise StopIteration

        minimiser = Minimiser(constraints, best, visit)
        with suppress(StopIteration):
            for stage, iterations in zip(_STAGES, self._iterations, strict=True):
                self._descend(minimiser, *stage, iterations)
        with self._lock:
            self._done += sum(self._iterations) - count
        return best

    def _descend(
        self, minimiser: Minimiser, own: bool, sharpness: float, barrier: float, iterations: int
    ) -> None:
        merit = self.criterion.merit if own else self.criterion.log_det_merit
        minimiser.descend(
            lambda u: merit(self._gram(u), sharpness)[0],
            lambda u: self._merit(u, merit, sharpness),
            barrier=barrier,
            iterations=iterations,
        )


def _random_start(
    space: MotionSpace,
    limits: DesignLimits,
    constraints: Sequence[Constraint],
    rng: np.random.Generator,
) -> Array:
    """Random free numbers of a motion strictly inside all limits, (size,)."""
    u = rng.normal(size=space.size)
    trajectory = space.trajectory(u)
    q, v, a = (x[space.joints] for x in trajectory.amplitudes)
    shift = np.abs(trajectory.offset - space.centre)[space.joints]
    joints, j = limits.joints, space.joints
    room = np.minimum(joints.q_max[j] - space.centre[j], space.centre[j] - joints.q_min[j])
    with np.errstate(divide="ignore"):
        largest = np.minimum.reduce([room / (q + shift), joints.v_max[j] / v, joints.a_max[j] / a])
    u = (u.reshape(len(j), -1) * 0.8 * largest[:, None]).ravel()
    for _ in range(80):
        if all((constraint.slack(u) > 0).all() for constraint in constraints):
            return np.asarray(u)
        u = 0.8 * u
    raise InfeasibleDesign("no motion around the centre posture keeps its limits with a reserve")
