"""The search for a motion from many starts.

Each start is a random motion around a centre posture, inside all limits. Many are lowered together
on thinned samples, the best of them changed and lowered again (`batch`), and the best of all go on.
A few starts go there at once: each is made informative (log det), then lowered in stages of growing
sharpness and falling distance from the limits (`solver`). This runs in threads, with progress and a
way to stop.
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
from steelyard.excitation._batch import Batch
from steelyard.excitation._gradients import MotionSlacks
from steelyard.excitation._limits import DesignLimits
from steelyard.excitation._objective import Objective
from steelyard.excitation._solver import Constraint, Minimiser
from steelyard.excitation._space import MotionSpace
from steelyard.robot import RobotModel

BY_HAND = "stopped by hand"
_SAMPLES_PER_HARMONIC = 30
_FEWEST_SAMPLES = 160
_VALUE_HZ = 125.0
_FEW = 4  # starts, up to which all are refined
_REFINED = 2
_REFINED_OF = 64  # of more, those that go on: so many, and one of so many
_UNKNOWNS = 54  # six joints, five harmonics, at rest at both ends; where there are more, all grows
_RANKED = 4  # times as many are ranked on all samples
_ROUNDS = 10
_SEARCH_ITERATIONS = (50, 50)  # of the first descent, and of each round
_SEARCHED_STAGE = 2  # with which these begin
_WELL_INSIDE = 0.95
_BEFORE = 0.8  # of the time, where starts are many
_EXACT = 1e3  # a sharpness at which the smooth merit is the exact one
_STAGES = (
    (False, 1.0, 1e-2),
    (True, 2.0, 1e-3),
    (True, 8.0, 1e-4),
    (True, 32.0, 1e-5),
    (True, 100.0, 1e-6),
)
"""Own merit or log det, sharpness, barrier."""
_ITERATIONS = (20, 100, 120, 80, 60)  # of each stage


@dataclass(frozen=True, eq=False)
class DesignSettings:
    """How a design is searched for.

    Attributes:
        starts: number of random starts; beyond a few, the best of a first descent are refined
        seed: of the starts; the same seed gives the same motion, unless time runs out
        at_rest: whether the arm is at rest at both ends
        rate_hz: of the recording that the value is for, [Hz]
        effort: factor of the iterations
        workers: threads; all cores by default
        device: of the first descent, 'cpu' or 'gpu'
        time_limit_s: after which the best so far counts, [s]
        progress: called with the share that is done and the best value of the objective's merit so
            far
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
        self.robot = robot
        self.limits = limits
        self.space = space
        self.settings = settings
        self.criterion = objective.criterion(robot, limits, space.centre, space.joints)
        self.stopped = ""
        count = max(_FEWEST_SAMPLES, _SAMPLES_PER_HARMONIC * space.harmonics)
        self._at = space.signals((np.arange(count) + 0.5) * space.period_s / count)
        self._program = self.criterion.rows.compiled(robot)
        self._slacks = MotionSlacks(robot, limits) if limits.bounds_torque_or_flange else None
        self._deadline = time.perf_counter() + settings.time_limit_s
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._searched = 0.0
        self._done = 0
        self._refining = 1
        self._lowest = np.inf
        if settings.starts <= _FEW:
            first = 0
        else:
            first = _SEARCHED_STAGE
        self._stages = [
            (*stage, max(1, round(settings.effort * count)))
            for stage, count in zip(_STAGES[first:], _ITERATIONS[first:], strict=True)
        ]
        self._iterations = sum(stage[-1] for stage in self._stages)

    def run(self) -> list[tuple[float, Array | None]]:
        """The best of each start, in order: exact value and free numbers u, (size,), or inf and None."""
        self._compile()
        with one_blas_thread(), ThreadPoolExecutor(self.settings.workers) as pool:
            with interruptible():
                starts = self._starts(pool)
            self._refining = len(starts)
            futures = [pool.submit(self._lowered, u, k == 0) for k, u in enumerate(starts)]
            with interruptible():
                self._watch(futures)
            found = [future.result() for future in futures]
            return [(np.inf if u is None else self._value(u), u) for u in found]

    def _starts(self, pool: ThreadPoolExecutor) -> list[Array]:
        """Where the solver begins, each (size,): random motions, or the best of a first descent."""
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
        if settings.starts <= _FEW:
            return u
        batch = Batch(self.criterion, self.space, self.limits, self._slacks, settings.device)
        more = max(1.0, self.space.size / _UNKNOWNS)
        searched = pool.submit(
            batch.searched,
            _WELL_INSIDE * np.array(u),
            rounds=round(more**2 * _ROUNDS),
            iterations=[
                max(1, round(settings.effort * more * count)) for count in _SEARCH_ITERATIONS
            ],
            rng=np.random.default_rng([settings.seed, 1]),
            go_on=self._searching,
        )
        self._watch([searched])
        _, best = searched.result()
        count = round(more * _REFINED) + settings.starts // _REFINED_OF
        inside = [
            x
            for one in best[: _RANKED * count]
            if (x := _shrunk(one, constraints, 0.97)) is not None
        ]
        inside.sort(key=lambda x: self._score(self._gram(x)))
        return inside[:count] or u[:count]

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
        self._program.pull(*self.space.motion(zero, self._at), np.eye(len(self._gram(zero))))
        for constraint in self._constraints():
            constraint.slack(zero)
            constraint.linearised(zero)

    def _gram(self, u: Array) -> Array:
        return self._program.gram(*self.space.motion(u, self._at))

    def _score(self, G: Array) -> float:
        return float(self.criterion.merit(G, _EXACT)[0])

    def _searching(self, share: float) -> bool:
        """Takes the share that the batch has done, and says whether there is time to go on."""
        self._searched = share
        return not self._stop.is_set()

    def _look(self) -> None:
        """Shows the share that is done, and sees whether there is time to go on."""
        try:
            if time.perf_counter() > self._deadline:
                self._stopped("the time limit was reached")
            if self.settings.progress is not None:
                if self.settings.starts <= _FEW:
                    before = 0.0
                else:
                    before = _BEFORE
                refined = min(1.0, self._done / (self._refining * self._iterations))
                self.settings.progress(
                    before * self._searched + (1 - before) * refined, self._lowest
                )
        except KeyboardInterrupt:
            self._stopped(BY_HAND)

    def _watch(self, futures: Sequence[Future[Any]]) -> None:
        waiting = set(futures)
        while waiting:
            try:
                _, waiting = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
            except KeyboardInterrupt:
                self._stopped(BY_HAND)
            self._look()

    def _stopped(self, why: str) -> None:
        self.stopped = self.stopped or why
        self._stop.set()

    def _lowered(self, start: Array, first: bool) -> Array | None:
        """The best motion of one start; the first one makes at least one step, so that there is one.

        The robot is not asked here: its workspace belongs to the main thread.
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
            score = self._score(gram(u))
            if score < lowest:
                lowest = score
                best = u.copy()
            count += 1
            with self._lock:
                self._done += 1
                self._lowest = min(self._lowest, lowest)
            if self._stop.is_set():
                raise StopIteration

        with suppress(StopIteration):
            minimiser = Minimiser(constraints, start, visit)
            for stage in self._stages:
                self._descend(minimiser, gram, *stage)
        with self._lock:
            self._done += self._iterations - count
        return best

    def _descend(
        self,
        minimiser: Minimiser,
        gram: Callable[[Array], Array],
        own: bool,
        sharpness: float,
        barrier: float,
        iterations: int,
    ) -> None:
        if own:
            merit = self.criterion.merit
        else:
            merit = self.criterion.log_det_merit

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
    """Random free numbers of a motion strictly inside all limits, (size,)."""
    u = rng.normal(size=space.size)
    trajectory = space.trajectory(u)
    q, v, a = (x[space.joints] for x in trajectory.amplitudes)
    shift = np.abs(trajectory.offset - space.centre)[space.joints]
    j = space.joints
    joints = limits.joints
    room = np.minimum(joints.q_max[j] - space.centre[j], space.centre[j] - joints.q_min[j])
    with np.errstate(divide="ignore"):
        largest = np.minimum.reduce([room / (q + shift), joints.v_max[j] / v, joints.a_max[j] / a])
    u = (u.reshape(len(j), -1) * 0.8 * largest[:, None]).ravel()
    inside = _shrunk(u, constraints, 0.8)
    if inside is None:
        raise InfeasibleDesign(
            "no motion around the centre posture keeps its limits with a reserve"
        )
    return inside


def _shrunk(u: Array, constraints: Sequence[Constraint], factor: float) -> Array | None:
    """The motion u, (size,), made smaller until it is inside all limits; None where it never is."""
    for _ in range(80):
        if all((constraint.slack(u) > 0).all() for constraint in constraints):
            return np.asarray(u)
        u = factor * u
    return None
