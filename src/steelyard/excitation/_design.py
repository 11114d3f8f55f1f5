"""Design of a motion: the best Fourier series of several starts, with its certificate.

A motion needs a centre posture inside all limits. If there is none, the error names the limit that
the best posture violates.

The best motions of all starts (`_search`) are ranked by their exact value and certified. If a
certificate fails, the motion is shrunk slightly towards its centre posture, or left out. Every
returned motion therefore keeps every limit.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array, Indices, finite
from steelyard._codec import FileValue
from steelyard._kinds import INFINITE, NOT_NEGATIVE
from steelyard.errors import InfeasibleDesign, InvalidTrajectory
from steelyard.excitation._certificate import Certificate
from steelyard.excitation._limits import DesignLimits
from steelyard.excitation._objective import ConditionNumber, Objective
from steelyard.excitation._search import STOPPED_BY_USER, DesignSettings, Search
from steelyard.excitation._space import MotionSpace
from steelyard.robot import RobotModel
from steelyard.trajectory import FourierTrajectory
from steelyard.trajectory._fourier import DESIGN_VERSION
from steelyard.verdict import Doubt, DoubtKind, Verdict

_SHRINKS = (1.0, 0.998, 0.99, 0.97, 0.94, 0.9, 0.8)
_MIN_STROKE = 0.01  # [rad or m]
_MIN_MARGIN = 0.02  # scaled distance from the limits at which the search for a posture may end
_RANDOM_POSTURES = 400
_MAX_POSTURE_ROUNDS = 8
_POSTURES_PER_ROUND = 12


@dataclass(frozen=True, eq=False)
class Design(
    FileValue,
    error=InvalidTrajectory,
    kind="design",
    version=DESIGN_VERSION,
    sealed=True,
    derived={"status": attrgetter("status")},
):
    """A designed motion that keeps its limits.

    Attributes:
        trajectory: the motion
        certificate: the checks of every given limit at 1 kHz; it holds, and lists what was not
            checked
        objective: name of the objective
        value: exact value of the objective at the recording's rate
        condition_number: condition number of the stacked base regressor
        std: predicted standard deviation of each payload parameter, by name; only for payload
            designs
        start_values: value of each refined start; infinite for a start without a motion
        seconds: elapsed time with compilation, [s]
        verdict: reason why the search ended, the closest limit, and what was not checked
        robot: name of the arm; empty if a file does not contain it
        serial: serial number of the arm; empty where it is unknown
        prediction: predicted accuracy of a weighing with this motion, as `torque.ShortestMotion`
            writes it; None for other designs
    """

    trajectory: FourierTrajectory
    certificate: Certificate
    objective: str
    value: Annotated[float, INFINITE]
    condition_number: Annotated[float, INFINITE]
    std: dict[str, Annotated[float, INFINITE, NOT_NEGATIVE]]
    start_values: tuple[Annotated[float, INFINITE], ...]
    seconds: Annotated[float, NOT_NEGATIVE]
    verdict: Verdict
    robot: str = ""
    prediction: Mapping[str, Any] | None = None
    serial: str = ""

    def __post_init__(self) -> None:
        infinite = tuple(
            np.inf if x is None else x for x in self.start_values
        )  # as older files write it
        object.__setattr__(self, "start_values", infinite)
        super().__post_init__()

    @property
    def status(self) -> str:
        """The verdict in a sentence."""
        return self.verdict.sentence


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

    Ctrl-C ends the search and returns the best motion so far.

    Args:
        robot: the arm
        harmonics: L
        period_s: duration of the motion, [s]
        objective: quantity to minimise; the condition number by default
        limits: limits to keep; those of the robot by default
        joints: indices of the joints that move, from 0; all by default; the others stay at home
        start: posture in which the motion begins and ends, (n,) [rad or m]; free by default
        settings: settings of the search
    """
    began = time.perf_counter()
    settings = settings or DesignSettings()
    objective = objective or ConditionNumber()
    limits = limits or DesignLimits.of(robot)
    moving = moving_joints(robot, limits, harmonics, period_s, joints)
    posture = None
    if start is not None:
        posture = finite(start, (robot.n,), "start", InvalidTrajectory)
    centre = centre_posture(robot, limits, moving, posture, settings.seed)
    w = 2 * np.pi / period_s
    scale = np.minimum(limits.joints.v_max, limits.joints.a_max / w)[moving] / 2
    if settings.at_rest and harmonics < 2:
        raise InvalidTrajectory("at rest at both ends, 1 harmonic leaves no motion; use at least 2")
    space = MotionSpace(
        centre, moving, harmonics, period_s, settings.at_rest, start is not None, scale
    )
    search = Search(robot, limits, space, objective, settings)
    motions = search.run()
    trajectory, certificate = _certified(robot, limits, space, motions)
    condition = ConditionNumber(drive=objective.drive)
    return Design(
        trajectory=trajectory,
        certificate=certificate,
        objective=objective.name,
        value=search.criterion.value(trajectory, settings.rate_hz),
        condition_number=condition.evaluate(robot, trajectory, limits=limits),
        std=search.criterion.payload_std(trajectory, settings.rate_hz),
        start_values=tuple(value for value, _ in motions),
        seconds=time.perf_counter() - began,
        verdict=verdict_on(search.stopped, certificate),
        robot=robot.name,
        serial=robot.serial,
    )


def moving_joints(
    robot: RobotModel,
    limits: DesignLimits,
    harmonics: int,
    period_s: float,
    joints: Sequence[int] | None,
) -> Indices:
    """The indices of the moving joints, after a check of the requested motion.

    Args:
        robot: the arm
        limits: limits to keep
        harmonics: L
        period_s: duration of the motion, [s]
        joints: indices of the joints that move; all by default
    """
    if harmonics < 1:
        raise InvalidTrajectory(f"a motion needs at least 1 harmonic, got {harmonics}")
    if not (np.isfinite(period_s) and period_s > 0):
        raise InvalidTrajectory(f"period_s must be positive, got {period_s}")
    if len(limits.joints) != robot.n:
        raise InvalidTrajectory(
            f"{robot.name} has {robot.n} joints, the limits are for {len(limits.joints)}"
        )
    moving = np.array(range(robot.n) if joints is None else sorted(set(joints)), dtype=np.intp)
    if not moving.size or moving[0] < 0 or moving[-1] >= robot.n:
        raise InvalidTrajectory(
            f"joints that move must be some of 1 to {robot.n}, got {[int(j) + 1 for j in moving]}"
        )
    _require_strokes(robot, limits, moving, period_s)
    return moving


def _require_strokes(
    robot: RobotModel, limits: DesignLimits, joints: Indices, period_s: float
) -> None:
    """Raises an error if a joint has no limit of its speed, or can hardly move."""
    w = 2 * np.pi / period_s
    v_max = limits.joints.v_max
    a_max = limits.joints.a_max
    for j in joints:
        name = robot.joint_names[j]
        if np.isinf(v_max[j]) and np.isinf(a_max[j]):
            raise InvalidTrajectory(
                f"{name} of {robot.name} has no limit of velocity or acceleration: state one in"
                " `limits`"
            )
        for limit, bound, stroke, power in (
            ("velocity", v_max[j], v_max[j] / w, 1),
            ("acceleration", a_max[j], a_max[j] / w**2, 2),
        ):
            if stroke < _MIN_STROKE:
                needed = period_s * (_MIN_STROKE / stroke) ** (1 / power)
                raise InfeasibleDesign(
                    f"a period of {period_s:g} s is too short for the {limit} limit {bound:g} of"
                    f" {name}: it could swing by {stroke:.2g} only, less than {_MIN_STROKE:g};"
                    f" it needs {needed:.3g} s, {needed - period_s:.3g} s more"
                )


def centre_posture(
    robot: RobotModel, limits: DesignLimits, joints: Indices, start: Array | None, seed: int
) -> Array:
    """A posture strictly inside all limits, (n,): the start, or home, or the best one found."""
    if start is not None:
        if limits.margin_at_rest(robot, start[None])[0] <= 0:
            worst = limits.closest_at_rest(robot, start)
            raise InfeasibleDesign(f"the start posture is outside the limits: {worst.sentence}")
        return start
    rng = np.random.default_rng(seed)
    lower = np.maximum(limits.joints.q_min, robot.home - np.pi)
    upper = np.minimum(limits.joints.q_max, robot.home + np.pi)
    low = np.minimum(lower, upper)
    high = np.maximum(lower, upper)
    q = np.tile(robot.home, (_RANDOM_POSTURES, 1))
    q[1:, joints] = rng.uniform(low[joints], high[joints], (_RANDOM_POSTURES - 1, len(joints)))
    best, margin = _ranked(robot, limits, q)
    for k in range(_MAX_POSTURE_ROUNDS):
        if margin[0] > _MIN_MARGIN and (k > 1 or np.array_equal(best[0], robot.home)):
            break
        step = (high - low)[joints] * 0.2 * 0.5**k
        near = np.repeat(best[:_POSTURES_PER_ROUND], 20, axis=0)
        near[1:, joints] += rng.normal(size=(len(near) - 1, len(joints))) * step
        near[:, joints] = np.clip(near[:, joints], low[joints], high[joints])
        best, margin = _ranked(robot, limits, near)
    if margin[0] <= 0:
        worst = limits.closest_at_rest(robot, best[0])
        raise InfeasibleDesign(
            f"no posture of {robot.name} keeps all limits: at the best one found, {worst.sentence}"
        )
    return np.asarray(best[0])


def _ranked(robot: RobotModel, limits: DesignLimits, q: Array) -> tuple[Array, Array]:
    """The postures sorted by their distance from the limits, and these distances.

    Home comes first if it is well inside.
    """
    margin = limits.margin_at_rest(robot, q)
    order = np.argsort(-margin, kind="stable")
    home = np.flatnonzero((q == robot.home).all(axis=1) & (margin > _MIN_MARGIN))
    if home.size:
        order = np.concatenate([home, order[~np.isin(order, home)]])
    return q[order], margin[order]


def _certified(
    robot: RobotModel,
    limits: DesignLimits,
    space: MotionSpace,
    motions: list[tuple[float, Array | None]],
) -> tuple[FourierTrajectory, Certificate]:
    """The best motion that keeps all limits, shrunk if necessary, and its certificate."""
    worst = None
    for _, u in sorted(motions, key=lambda pair: pair[0]):
        if u is None:
            continue
        for shrink in _SHRINKS:
            trajectory = space.trajectory(shrink * u)
            certificate = limits.certify(robot, trajectory)
            if certificate.holds:
                return trajectory, certificate
            worst = worst or certificate.worst
    if worst is None:
        raise InfeasibleDesign("the search was stopped before it had found a motion")
    raise InfeasibleDesign(
        f"no motion was found that keeps all limits; the most violated one is {worst.sentence}"
    )


def verdict_on(stopped: str, certificate: Certificate) -> Verdict:
    """The verdict on a certified motion.

    Args:
        stopped: reason why the search ended early; empty if it did not
        certificate: certificate of the motion
    """
    outcome = f"{stopped}; the best so far" if stopped else "best of all starts"
    limits = "every limit that was given" if certificate.unchecked else "every limit"
    closest = certificate.worst.sentence
    verdict = Verdict(
        f"{outcome}; {limits} holds at {certificate.rate_hz:g} Hz, closest is {closest}"
    )
    if stopped == STOPPED_BY_USER:
        verdict = verdict.doubted(Doubt(DoubtKind.STOPPED, stopped, blocks=False))
    if certificate.unchecked:
        not_checked = Doubt(DoubtKind.NOT_CHECKED, certificate.not_checked, blocks=False)
        verdict = verdict.doubted(not_checked)
    return verdict
