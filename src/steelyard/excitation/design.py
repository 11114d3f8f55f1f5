"""Design of a motion: the best Fourier series found from several starts, with its certificate.

Each start is a random motion inside all limits. It is first made informative (log det), then its
objective is lowered in stages of growing sharpness and falling distance from the limits (`solver`). The
best motions of all starts are judged by their exact value and certified; one whose certificate fails is
shrunk towards its centre posture by a little, or left out. So what is returned keeps every limit, and
nothing is returned otherwise.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard import saved
from steelyard.arrays import Array
from steelyard.errors import InfeasibleDesign, InvalidTrajectory
from steelyard.excitation.certificate import Certificate, certify
from steelyard.excitation.gradients import jax_numpy
from steelyard.excitation.limits import DesignLimits
from steelyard.excitation.objective import ConditionNumber, Objective, Target, payload_std
from steelyard.excitation.search import Problem, Search, Start
from steelyard.excitation.space import MotionSpace
from steelyard.excitation.start import centre_posture, probe, require_room
from steelyard.robot import RobotModel
from steelyard.trajectory import FourierTrajectory

_SHRINKS = (1.0, 0.998, 0.99, 0.97, 0.94, 0.9, 0.8)


@dataclass(frozen=True, eq=False)
class DesignSettings:
    """How a design is searched for.

    Attributes:
        starts: number of random starts
        seed: of the starts; the same seed gives the same motion, unless time runs out
        at_rest: whether the arm is at rest at both ends
        rate_hz: of the recording that the value is told for, [Hz]
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


@dataclass(frozen=True, eq=False)
class Design:
    """A designed motion that keeps its limits.

    Attributes:
        trajectory: the motion
        certificate: every limit that was given, checked at 1 kHz; it holds, and says what was not checked
        objective: name of the objective
        value: of the objective, exact, at the recording's rate
        condition_number: of the stacked base regressor of all that the motion can tell apart
        std: predicted standard deviation of each payload parameter, by name; only for payload designs
        start_values: value that each start reached; infinite for those that reached nothing
        seconds: wall time, compilation included, [s]
        status: in a sentence
    """

    trajectory: FourierTrajectory
    certificate: Certificate
    objective: str
    value: float
    condition_number: float
    std: dict[str, float]
    start_values: tuple[float, ...]
    seconds: float
    status: str

    def to_dict(self) -> dict[str, Any]:
        """The design as plain values, for JSON."""
        names = ("objective", "value", "condition_number", "std", "seconds", "status")
        finite = [x if np.isfinite(x) else None for x in self.start_values]
        return {
            **{name: getattr(self, name) for name in names},
            "start_values": finite,
            "certificate": self.certificate.to_dict(),
            "trajectory": self.trajectory.to_dict(),
        }

    def save(self, path: str | Path) -> None:
        """Writes the trajectory with its certificate to a JSON file.

        Args:
            path: of the file, in a folder that exists
        """
        saved.save(self.to_dict(), "design", path)

    @classmethod
    def load(cls, path: str | Path) -> Design:
        """A design from its JSON file.

        Args:
            path: of the file
        """
        content = saved.load(path, "design")
        with saved.reading(path, "design"):
            values = content.pop("start_values")
            return cls(
                trajectory=FourierTrajectory.from_dict(content.pop("trajectory")),
                certificate=Certificate.from_dict(content.pop("certificate")),
                start_values=tuple(float("inf") if x is None else x for x in values),
                **content,
            )


def design(
    robot: RobotModel,
    *,
    harmonics: int = 5,
    period_s: float = 10.0,
    objective: Objective | None = None,
    limits: DesignLimits | None = None,
    joints: Sequence[int] | None = None,
    start: ArrayLike | None = None,
    settings: DesignSettings | None = None,
) -> Design:
    """The best motion found that keeps all limits, with its certificate.

    Ctrl-C while it searches ends the search; the best motion so far is returned.

    Args:
        robot: the arm
        harmonics: number of harmonics, L
        period_s: length of the motion, [s]
        objective: what it shall be good for; the condition number by default
        limits: to keep; those of the robot by default
        joints: indices of the joints that move, from 0; all by default, the others stay at home
        start: posture in which the motion begins and ends, (n,) [rad or m]; free by default
        settings: of the search
    """
    began = time.perf_counter()
    settings = settings or DesignSettings()
    limits = limits or DesignLimits.of(robot)
    jax_numpy()
    moving, posture = _checked(robot, limits, harmonics, period_s, joints, start)
    require_room(robot, limits, moving, period_s)
    centre = centre_posture(robot, limits, moving, posture, settings.seed)
    space = _space(limits, centre, moving, (harmonics, period_s, settings.at_rest, posture is not None))
    chosen = objective or ConditionNumber()
    target = chosen.target(robot, probe(robot, limits, centre, moving))
    problem = Problem(robot, limits, space, target)
    search = Search(problem, settings.effort, settings.time_limit_s, settings.progress)
    starts = search.run(settings.starts, settings.seed, settings.workers)
    trajectory, certificate = _certified(robot, limits, problem, starts, settings.rate_hz)
    value, std = _judged(robot, target, trajectory, settings.rate_hz)
    condition = evaluate(robot, ConditionNumber(drive=_with_drive(chosen)), trajectory, limits=limits)
    return Design(
        trajectory=trajectory,
        certificate=certificate,
        objective=target.name,
        value=value,
        condition_number=condition,
        std=std,
        start_values=tuple(s.value for s in starts),
        seconds=time.perf_counter() - began,
        status=_status(search.stopped, certificate),
    )


def evaluate(
    robot: RobotModel,
    objective: Objective,
    trajectory: FourierTrajectory,
    *,
    limits: DesignLimits | None = None,
    rate_hz: float = 125.0,
) -> float:
    """The exact value of an objective for any trajectory.

    Args:
        robot: the arm
        objective: by which it is judged
        trajectory: to judge; joints that stand still in it count as such
        limits: between which the joints may move; those of the robot by default
        rate_hz: of the recording, [Hz]
    """
    moving = np.flatnonzero(np.hypot(trajectory.sine, trajectory.cosine).sum(axis=1) > 0)
    possible = probe(robot, limits or DesignLimits.of(robot), trajectory.offset, moving)
    return _judged(robot, objective.target(robot, possible), trajectory, rate_hz)[0]


def _judged(
    robot: RobotModel, target: Target, trajectory: FourierTrajectory, rate_hz: float
) -> tuple[float, dict[str, float]]:
    t = np.arange(round(trajectory.duration_s * rate_hz)) / rate_hz
    R = target.factor(robot, *trajectory.at(t))
    std = payload_std(R) if target.name == "payload" else np.zeros(0)
    named = zip(target.column_names, std, strict=False)
    load = {name: float(x) for name, x in named if not name[-1].isdigit()}
    return target.value(R), load


def _checked(
    robot: RobotModel,
    limits: DesignLimits,
    harmonics: int,
    period_s: float,
    joints: Sequence[int] | None,
    start: ArrayLike | None,
) -> tuple[NDArray[np.intp], Array | None]:
    if harmonics < 1:
        raise InvalidTrajectory(f"a motion needs at least 1 harmonic, got {harmonics}")
    if not (np.isfinite(period_s) and period_s > 0):
        raise InvalidTrajectory(f"period_s must be positive, got {period_s}")
    if len(limits.joints) != robot.n:
        raise InvalidTrajectory(f"{robot.name} has {robot.n} joints, the limits are for {len(limits.joints)}")
    moving = np.array(range(robot.n) if joints is None else sorted(set(joints)), dtype=np.intp)
    if not moving.size or moving[0] < 0 or moving[-1] >= robot.n:
        raise InvalidTrajectory(
            f"joints that move must be some of 1 to {robot.n}, got {[int(j) + 1 for j in moving]}"
        )
    if start is None:
        return moving, None
    posture = np.array(start, dtype=float)
    if posture.shape != (robot.n,) or not np.isfinite(posture).all():
        raise InvalidTrajectory(f"start must be {robot.n} finite numbers, got {posture}")
    return moving, posture


def _space(
    limits: DesignLimits, centre: Array, moving: NDArray[np.intp], how: tuple[int, float, bool, bool]
) -> MotionSpace:
    harmonics, period_s, at_rest, fixed = how
    w = 2 * np.pi / period_s
    scale = np.minimum(limits.joints.v_max, limits.joints.a_max / w)[moving] / 2
    space = MotionSpace(centre, moving, harmonics, period_s, at_rest, fixed, scale)
    if at_rest and harmonics < 2:
        raise InvalidTrajectory("at rest at both ends, 1 harmonic leaves no motion; use at least 2")
    return space


def _certified(
    robot: RobotModel, limits: DesignLimits, problem: Problem, starts: Sequence[Start], rate_hz: float
) -> tuple[FourierTrajectory, Certificate]:
    worst = None
    for start in sorted(starts, key=lambda s: s.value):
        if start.u is None:
            continue
        for shrink in _SHRINKS:
            trajectory = problem.space.trajectory(shrink * start.u)
            certificate = certify(robot, limits, trajectory)
            if certificate.holds:
                return trajectory, certificate
            worst = worst or certificate.worst
    words = "the search was stopped before it had any" if worst is None else worst.sentence
    raise InfeasibleDesign(f"no motion was found that keeps all limits; in the way is {words}")


def _with_drive(objective: Objective) -> bool:
    return bool(getattr(objective, "drive", True))


def _status(stopped: str, certificate: Certificate) -> str:
    ended = f"{stopped}; the best so far" if stopped else "best of all starts"
    which = "every limit that was given holds" if certificate.unchecked else "every limit holds"
    told = f"{ended}; {which} at {certificate.rate_hz:g} Hz, closest is {certificate.worst.sentence}"
    return f"{told}; {certificate.not_checked}" if certificate.unchecked else told
