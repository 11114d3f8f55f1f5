"""The search from several starts: what the solver minimises, in threads, with progress and a way to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from steelyard.arrays import Array
from steelyard.excitation.constraints import AmplitudeBlock, JointGridBlock, MotionBlock
from steelyard.excitation.effects import Slacks, Slopes, clearance_functions, effect_functions, has_effects
from steelyard.excitation.gradients import Information
from steelyard.excitation.limits import DesignLimits
from steelyard.excitation.objective import Merit, Target, log_det_merit
from steelyard.excitation.solver import LinearBlock, Minimiser, Stage
from steelyard.excitation.space import MotionSpace
from steelyard.excitation.start import random_start
from steelyard.robot import RobotModel

_SAMPLES_PER_HARMONIC = 30
_FEWEST_SAMPLES = 160
_POINTS_PER_HARMONIC = 16
_EXACT = 1e3  # a sharpness at which the smooth merit is the exact one
_STAGES = (
    # own merit or log det, sharpness, barrier, iterations
    (False, 1.0, 1e-2, 20),
    (True, 2.0, 1e-3, 100),
    (True, 8.0, 1e-4, 120),
    (True, 32.0, 1e-5, 80),
)


@dataclass(frozen=True, eq=False)
class Start:
    """What one start led to.

    Attributes:
        value: exact value of the objective for its best motion
        u: free numbers of that motion, (size,); None where there is none
    """

    value: float
    u: Array | None


class Problem:
    """An objective and limits as functions of the free numbers u.

    Args:
        robot: the arm
        limits: to keep
        space: of the motions
        target: the objective
    """

    def __init__(self, robot: RobotModel, limits: DesignLimits, space: MotionSpace, target: Target) -> None:
        self.robot, self.limits, self.space, self.target = robot, limits, space, target
        self._effects: tuple[Slacks, Slopes] | None = None
        count = max(_FEWEST_SAMPLES, _SAMPLES_PER_HARMONIC * space.harmonics)
        self._at = space.sampled((np.arange(count) + 0.5) * space.period_s / count)
        self._information = Information.of(robot, target.rows)

    def blocks(self) -> list[LinearBlock]:
        """All limits, for one thread (a scene has its own workspace in each)."""
        space, points = self.space, _POINTS_PER_HARMONIC * self.space.harmonics
        form = AmplitudeBlock if self.limits.form == "amplitude" else JointGridBlock
        blocks: list[LinearBlock] = [form(space, self.limits.joints)]
        if self._effects is not None:
            blocks.append(MotionBlock(space, points, *self._effects))
        if self.limits.scene is not None:
            blocks.append(MotionBlock(space, points, *clearance_functions(self.robot, self.limits)))
        return blocks

    def prepare(self) -> None:
        """Compiles what the threads share."""
        q, v, a = self.space.motion(np.zeros(self.space.size), self._at)
        p = len(self.target.rows.columns)
        self._effects = effect_functions(self.robot, self.limits) if has_effects(self.limits) else None
        self._information.gram(q, v, a)
        self._information.pull(q, v, a, np.eye(p))
        for block in self.blocks():
            block.slack(np.zeros(self.space.size))
            block.linearised(np.zeros(self.space.size))

    def gram(self, u: Array) -> Array:
        """The Gram matrix of a motion, (p, p).

        Args:
            u: free numbers, (size,)
        """
        return self._information.gram(*self.space.motion(u, self._at))

    def merit(self, u: Array, merit: Merit, sharpness: float) -> tuple[float, Array]:
        """A merit and its gradient by u.

        Args:
            u: free numbers, (size,)
            merit: of the Gram matrix
            sharpness: of the merit
        """
        motion = self.space.motion(u, self._at)
        f, change = merit(self._information.gram(*motion), sharpness)
        return f, self.space.gradient(self._at, *self._information.pull(*motion, change))

    def value(self, u: Array, rate_hz: float = 125.0) -> float:
        """The exact value of the objective.

        Args:
            u: free numbers, (size,)
            rate_hz: of the recording, [Hz]
        """
        t = np.arange(round(self.space.period_s * rate_hz)) / rate_hz
        return self.target.value(self.target.factor(self.robot, *self.space.trajectory(u).at(t)))

    def stages(self, effort: float) -> list[Stage]:
        """The stages of one run.

        Args:
            effort: factor of the iterations
        """
        return [
            self._stage(self.target.merit if own else log_det_merit, sharpness, barrier, iterations, effort)
            for own, sharpness, barrier, iterations in _STAGES
        ]

    def _stage(self, merit: Merit, sharpness: float, barrier: float, iterations: int, effort: float) -> Stage:
        return Stage(
            value=lambda u: merit(self.gram(u), sharpness)[0],
            value_and_gradient=lambda u: self.merit(u, merit, sharpness),
            barrier=barrier,
            iterations=max(1, round(effort * iterations)),
        )


class Search:
    """Runs starts in threads and keeps the best motion of each.

    Args:
        problem: to solve
        effort: factor of the iterations
        time_limit_s: after which the best so far counts, [s]
        progress: called with the share that is done and the best merit so far
    """

    def __init__(
        self,
        problem: Problem,
        effort: float,
        time_limit_s: float,
        progress: Callable[[float, float], None] | None,
    ) -> None:
        self.problem, self.effort, self.progress = problem, effort, progress
        self.stopped = ""
        self._deadline = time.perf_counter() + time_limit_s
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._done, self._all, self._best = 0, 1, np.inf

    def run(self, starts: int, seed: int, workers: int) -> list[Start]:
        """What every start led to, in their order.

        Args:
            starts: how many
            seed: of their random numbers
            workers: threads
        """
        self._all = starts * sum(stage.iterations for stage in self.problem.stages(self.effort))
        self.problem.prepare()
        seeds = np.random.SeedSequence(seed).spawn(starts)
        with _one_blas_thread(), ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(self._start, s, k == 0) for k, s in enumerate(seeds)]
            self._watch(futures)
            found = [future.result() for future in futures]
            return [Start(np.inf if u is None else self.problem.value(u), u) for u in found]

    def _watch(self, futures: list[Future[Array | None]]) -> None:
        waiting = set(futures)
        while waiting:
            try:
                _, waiting = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
                if time.perf_counter() > self._deadline and not self._stop.is_set():
                    self.stopped = "the time limit was reached"
                    self._stop.set()
                if self.progress is not None:
                    self.progress(min(1.0, self._done / self._all), self._best)
            except KeyboardInterrupt:
                self.stopped = "stopped by hand"
                self._stop.set()

    def _start(self, seed: np.random.SeedSequence, first: bool) -> Array | None:
        """The best motion of one start; the first one makes at least one step, so that there is one.

        The robot is not asked here: its workspace belongs to the main thread.
        """
        if self._stop.is_set() and not first:
            return None
        problem, blocks = self.problem, self.problem.blocks()
        best: list[Array] = []
        lowest = np.inf
        stages = problem.stages(self.effort)
        total = sum(stage.iterations for stage in stages)
        count = 0

        def visit(u: Array) -> None:
            nonlocal lowest, count
            score = problem.target.merit(problem.gram(u), _EXACT)[0]
            if score < lowest:
                lowest, best[:] = score, [u.copy()]
            count += 1
            with self._lock:
                self._done += 1
                self._best = min(self._best, lowest)
            if self._stop.is_set():
                raise StopIteration

        u = random_start(problem.space, problem.limits, blocks, np.random.default_rng(seed))
        visit_first = u.copy()
        Minimiser(blocks, u, visit).run(stages)
        with self._lock:
            self._done += total - count
        return best[0] if best else visit_first


def _one_blas_thread() -> AbstractContextManager[object]:
    """Keeps BLAS to one thread in each of ours: its own threads make small matrices 40 times slower."""
    if find_spec("threadpoolctl") is None:
        return nullcontext()
    limited: AbstractContextManager[object] = import_module("threadpoolctl").threadpool_limits(1)
    return limited
