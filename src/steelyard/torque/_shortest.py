"""The shortest motion that weighs a payload as well as requested, with its prediction.

Errors of the drive gains move the mass for any motion. The estimate is a mean over the joints with
weights w_j that sum to one (a common error of all gains scales the mass), so with errors S of the
logarithms of the gains, n by causes, the relative variance of the mass is at least

    min over w, sum w = 1, of  w' S S' w  =  1 / (1' (S S')^-1 1)

and local gravity, if only its nominal size is known, adds to it. A request below this limit raises
an error before a motion is designed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from steelyard import _saved
from steelyard._arrays import Array, Mask, finite
from steelyard._codec import Value
from steelyard._kinds import INFINITE, NOT_NEGATIVE, POSITIVE, Shape
from steelyard._units import NORMAL_95
from steelyard.errors import InfeasibleDesign, InvalidSamples, InvalidTrajectory
from steelyard.excitation import ConditionNumber, Design, DesignLimits, DesignSettings
from steelyard.excitation._accuracy import ArmKnowledge, PayloadAccuracy
from steelyard.excitation._design import moving_joints, verdict_on
from steelyard.excitation._objective import Criterion
from steelyard.excitation._shortest import Candidate, DurationSearch
from steelyard.identification import DynamicModel
from steelyard.inertia import FIRST_MOMENT, INERTIA, MASS, PARAMETER_NAMES, InertialParameters
from steelyard.robot import RobotModel
from steelyard.torque._prediction import Prediction, assumed_model, loaded_arm, predict
from steelyard.torque._prior import arm_rows, by_gravity, friction_rows, slow_noise
from steelyard.torque.methods import WeighingProblem
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import Doubt, DoubtKind, Verdict

_INSTEAD_OF_INFINITY = 1e300  # a number to divide by
_REMEDIES = {
    "gains": "calibrate with a known mass",
    "drift": "weigh right after an empty run",
    "gravity": "give its local size",
}
_CURVE_POINTS = 40  # of the predicted accuracy over time
_CURVES = ("durations_s", "reached", "times_s", "known")


@dataclass(frozen=True)
class Accuracy(Value, error=InvalidSamples):
    """The requested accuracy of a payload: 95 % half-widths, infinite if not requested.

    Attributes:
        mass: [kg]
        com: each coordinate of the centre of mass, [m]
        inertia: each of the six numbers about the flange, [kg m^2]
    """

    mass: Annotated[float, INFINITE, POSITIVE] = np.inf
    com: Annotated[float, INFINITE, POSITIVE] = np.inf
    inertia: Annotated[float, INFINITE, POSITIVE] = np.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.isfinite(self.half_widths).any():
            raise InvalidSamples(
                "no accuracy is requested: state the half-width of mass, com or inertia"
            )

    @property
    def half_widths(self) -> Array:
        """Of mass, centre of mass and inertia, (10,) [SI]; infinite if not requested."""
        return np.array([self.mass, *[self.com] * 3, *[self.inertia] * 6])

    def shares(self, half_widths: Array) -> Array:
        """The ratio of half-widths (10,) [SI] to the requested ones, (10,); NaN if not requested.

        Args:
            half_widths: of mass, centre of mass and inertia, (10,) [SI]
        """
        wanted = self.half_widths
        return np.where(
            np.isfinite(wanted), half_widths / np.minimum(wanted, _INSTEAD_OF_INFINITY), np.nan
        )


@dataclass(frozen=True, eq=False)
class ShortestMotion(Value, error=InvalidSamples):
    """The shortest motion found that weighs a payload as well as requested.

    Attributes:
        design: the motion with its certificate and its verdict; its file holds the other fields too
        requested: accuracy of the payload
        prediction: of the accuracy that the motion gives
        durations_s: durations for which motions were designed, ascending, (k,) [s]
        reached: half-widths of mass, centre of mass and inertia for each duration, (k, 10) [SI]
        times_s: along the motion, (m,) [s]
        known: half-widths at these times, (m, 10) [SI]; infinite while nothing is known
    """

    design: Design
    requested: Accuracy
    prediction: Prediction
    durations_s: Annotated[Array, Shape("designs"), NOT_NEGATIVE]
    reached: Annotated[Array, Shape("designs", 10), INFINITE, NOT_NEGATIVE]
    times_s: Annotated[Array, Shape("times"), NOT_NEGATIVE]
    known: Annotated[Array, Shape("times", 10), INFINITE, NOT_NEGATIVE]

    def __post_init__(self) -> None:
        super().__post_init__()
        facts = {
            "requested": self.requested.to_arrays(),
            **self.prediction.to_arrays(),
            **{name: getattr(self, name) for name in _CURVES},
        }
        object.__setattr__(self, "design", replace(self.design, prediction=facts))

    @property
    def duration_s(self) -> float:
        """Duration of the motion, [s]."""
        return self.design.trajectory.duration_s

    @property
    def verdict(self) -> Verdict:
        """Why the search ended, the closest limit, what was not checked and what was assumed."""
        return self.design.verdict

    def save(self, path: str | Path) -> None:
        """Writes motion, certificate and prediction to a JSON file, like a design."""
        self.design.save(path)

    @classmethod
    def load(cls, path: str | Path) -> ShortestMotion:
        """The motion with its prediction in a JSON file that `save` wrote."""
        with _saved.reading(path, "design"):
            return cls.of(Design.load(path))

    @classmethod
    def of(cls, design: Design) -> ShortestMotion:
        """The motion of a design that holds a prediction."""
        found = dict(design.prediction or {})
        missing = [name for name in ("requested", *_CURVES) if name not in found]
        if missing:
            raise InvalidSamples(f"'prediction.{missing[0]}' is missing")
        requested = Accuracy.from_dict(found.pop("requested"))
        curves = {name: found.pop(name) for name in _CURVES}
        return cls(design, requested, Prediction.from_dict(found), **curves)

    def __str__(self) -> str:
        mass = self.prediction.quantities[0]
        return (
            f"{self.duration_s:.3g} s; {mass.value:g} kg to {1e3 * mass.half_width:.3g} g."
            f" {self.verdict}"
        )


def shortest_motion(
    arm: RobotModel | DynamicModel,
    requested: Accuracy,
    *,
    typical: InertialParameters | None = None,
    limits: DesignLimits | None = None,
    start: ArrayLike | None = None,
    harmonics: int = 5,
    longest_s: float = 60.0,
    settings: DesignSettings | None = None,
) -> ShortestMotion:
    """The shortest motion found that keeps all limits and weighs a payload as well as requested.

    Torques are those of the arm with the payload on its flange. Ctrl-C ends the search; it returns
    the shortest motion so far that is accurate enough.

    Args:
        arm: identified, with its noise, friction and gains; or only described, see `assumed_model`
        requested: half-widths of the 95 % intervals that `weigh` shall report
        typical: assumed payload, in the flange frame; a cube of 2 kg by default
        limits: to keep; those of the robot by default
        start: posture in which the motion begins and ends, (n,) [rad or m]; free by default
        harmonics: number of harmonics of the Fourier series, L
        longest_s: longest duration of a motion, [s]
        settings: of the search; the defaults if None
    """
    began = time.perf_counter()
    if isinstance(arm, RobotModel):
        model = assumed_model(arm)
    else:
        model = arm
    robot = model.robot
    settings = settings or DesignSettings()
    limits = limits or DesignLimits.of(robot)
    if typical is None:
        body = typical_payload(robot)
    else:
        body = typical
    if not (np.isfinite(longest_s) and longest_s > 0):
        raise InvalidTrajectory(f"longest_s must be positive, got {longest_s}")
    _require_reachable(model, body, requested)
    moving = moving_joints(robot, limits, harmonics, longest_s, None)
    if start is None:
        posture = None
    else:
        posture = finite(start, (robot.n,), "start", InvalidTrajectory)
    if settings.at_rest and harmonics < 2:
        raise InvalidTrajectory("a motion that starts and ends at rest needs at least 2 harmonics")
    weighing = _PlannedWeighing(model, body, requested, settings.rate_hz)
    loaded = loaded_arm(model, body)
    share = weighing.share
    search = DurationSearch(
        loaded, limits, weighing.criterion, share, harmonics, moving, posture, settings
    )
    found = search.shortest(longest_s)
    enough = [one for one in found if one.share <= 1]
    if not enough:
        raise InfeasibleDesign(weighing.why_not(found, search.stopped))
    return weighing.result(
        min(enough, key=lambda one: one.duration_s), found, search.stopped, began
    )


def typical_payload(
    robot: RobotModel, mass: float = 2.0, com: ArrayLike = (0.0, 0.0, 0.05), size: float = 0.1
) -> InertialParameters:
    """A cube at the flange of a robot.

    Args:
        robot: the arm
        mass: of the cube, [kg]
        com: centre of the cube, (3,) [m], in the flange frame
        size: edge of the cube, [m]
    """
    if not (np.isfinite(mass) and mass > 0):
        raise InvalidSamples(f"the mass of a typical payload must be positive, got {mass:g} kg")
    return InertialParameters.from_com(mass, com, mass * size**2 / 6 * np.eye(3), robot.flange)


@dataclass(eq=False)
class _PlannedWeighing:
    """The weighing for which a motion is designed: its request and its prediction."""

    model: DynamicModel
    body: InertialParameters
    requested: Accuracy
    rate_hz: float
    irreducible: Array | None = None

    def predicted(self, motion: FourierTrajectory, until_s: float | None = None) -> Prediction:
        return predict(self.model, motion, self.body, rate_hz=self.rate_hz, until_s=until_s)

    def share(self, motion: FourierTrajectory) -> float:
        """The largest ratio of a predicted to a requested half-width, over the observable ones."""
        prediction = self.predicted(motion)
        self.irreducible = prediction.irreducible
        return float(np.nanmax(self.requested.shares(prediction.half_widths)[self.observable]))

    @property
    def observable(self) -> Mask:
        """Which of mass, centre of mass and inertia are observable with the arm, (10,)."""
        observable = _observable(self.model)
        observable[FIRST_MOMENT] &= observable[MASS]
        return observable

    def criterion(self, duration_s: float) -> Criterion:
        """The criterion for the design of a motion of a duration."""
        m = self.body.mass
        c = self.body.com
        rows = np.eye(10)
        rows[FIRST_MOMENT, MASS] = -c / m
        rows[FIRST_MOMENT, FIRST_MOMENT] = np.eye(3) / m
        wanted = self.requested.half_widths
        counted = np.isfinite(wanted) & self.observable
        if self.irreducible is not None:  # the remainder is available for noise
            wanted = np.sqrt(np.maximum(1 - (self.irreducible / wanted) ** 2, 0.01)) * wanted
        requested = NORMAL_95 * rows[counted] / wanted[counted][:, None]
        if self.model.factor.has_rows:
            arm = _arm_knowledge(self.model)
        else:
            arm = None
        samples = duration_s * self.rate_hz
        objective = PayloadAccuracy(requested, slow_noise(self.model), samples, arm)
        robot = self.model.robot
        return objective.criterion(robot, DesignLimits.of(robot), robot.home, np.arange(robot.n))

    def why_not(self, found: tuple[Candidate, ...], stopped: str) -> str:
        """Why no motion is accurate enough, in words."""
        if not found:
            return (
                "no motion was found that respects all limits: widen the limits, or increase"
                " `longest_s`"
            )
        best = min(found, key=lambda one: one.share)
        prediction = self.predicted(best.trajectory)
        shares = self.requested.shares(prediction.half_widths)
        shares[~self.observable] = np.nan
        k = int(np.nanargmax(shares))
        quantity = prediction.quantities[k]
        longest = max(one.duration_s for one in found)
        if np.isinf(quantity.half_width):
            until = stopped or f"no motion of up to {longest:g} s is accurate enough"
            return f"{until}: nothing is known yet about {quantity.name}"
        half = f"{quantity.half_width:.3g} {quantity.unit}"
        wanted = f"{quantity.half_width / shares[k]:.3g} {quantity.unit}"
        if stopped:
            return (
                f"{stopped} before a motion was accurate enough: so far {quantity.name} to {half}"
                f" instead of {wanted}"
            )
        remedy = self._remedy(best.trajectory, prediction, k)
        return (
            f"no motion of up to {longest:g} s is accurate enough: {quantity.name} to {half} (95 %)"
            f" instead of {wanted}{remedy}"
        )

    def _remedy(self, motion: FourierTrajectory, prediction: Prediction, k: int) -> str:
        """The largest cause of a half-width, and a remedy, in words."""
        if k == 0 and prediction.irreducible[0] > np.sqrt(0.5) * prediction.half_widths[0]:
            causes = {name: prediction.shares.get(name, 0.0) for name in _REMEDIES}
            most = max(causes, key=lambda name: causes[name])
            return f"; most of it comes from {most}: {_REMEDIES[most]}"
        estimate = self.model.estimate
        exact = replace(estimate, covariance=np.zeros_like(estimate.covariance))
        known = predict(
            replace(self.model, estimate=exact), motion, self.body, rate_hz=self.rate_hz
        )
        if known.half_widths[k] < np.sqrt(0.5) * prediction.half_widths[k]:
            return (
                "; most of it comes from the uncertainty of the arm's parameters: identify it from"
                " more empty runs"
            )
        return "; most of it comes from noise"

    def result(
        self, best: Candidate, found: tuple[Candidate, ...], stopped: str, began: float
    ) -> ShortestMotion:
        """The shortest motion with its prediction."""
        robot = self.model.robot
        motion = best.trajectory
        prediction = self.predicted(motion)
        times = np.linspace(motion.duration_s / _CURVE_POINTS, motion.duration_s, _CURVE_POINTS)
        verdict = verdict_on(stopped, best.certificate)
        verdict = replace(
            verdict, summary=f"the shortest of {len(found)} designs; {verdict.summary}"
        )
        if not self.model.factor.has_rows:
            noise = ", ".join(f"{x:.3g}" for x in self.model.estimate.noise)
            verdict = verdict.doubted(
                Doubt(DoubtKind.ASSUMED, f"{_ASSUMPTIONS}, of {noise} Nm or N", blocks=False)
            )
        design = Design(
            trajectory=motion,
            certificate=best.certificate,
            objective="accuracy",
            value=best.share,
            condition_number=ConditionNumber().evaluate(robot, motion),
            std=dict(zip(PARAMETER_NAMES, prediction.std.tolist(), strict=True)),
            start_values=tuple(one.share for one in found),
            seconds=time.perf_counter() - began,
            verdict=verdict,
            robot=robot.name,
            serial=robot.serial,
        )
        best_of = {one.duration_s: one for one in sorted(found, key=lambda one: -one.share)}
        curve = [best_of[duration_s] for duration_s in sorted(best_of)]
        return ShortestMotion(
            design,
            self.requested,
            prediction,
            np.array([one.duration_s for one in curve]),
            np.array([self.predicted(one.trajectory).half_widths for one in curve]),
            times,
            np.array([self.predicted(motion, t).half_widths for t in times]),
        )


_ASSUMPTIONS = (
    "no identified arm was given: all parameters but friction are assumed to be known, torques to"
    " be exact, and their noise to be white"
)


def _observable(model: DynamicModel) -> Mask:
    """Which of the ten numbers of a payload are observable with the arm, (10,)."""
    return np.asarray(~WeighingProblem(model, (), np.zeros((0, 11))).unobservable)


def _arm_knowledge(model: DynamicModel) -> ArmKnowledge:
    p = len(model.basis)
    Z = np.vstack([arm_rows(model), friction_rows(model)])[:, :p]
    return ArmKnowledge(model.basis.independent, model.basis.payload_jacobian, Z.T @ Z)


def _require_reachable(model: DynamicModel, body: InertialParameters, requested: Accuracy) -> None:
    """Raises an error for unobservable quantities and for an accuracy below the limit."""
    observable = _observable(model)
    for kind, which in {
        "mass": observable[:1],
        "com": observable[FIRST_MOMENT] & observable[MASS],
        "inertia": observable[INERTIA],
    }.items():
        if np.isfinite(getattr(requested, kind)) and not which.any():
            raise InfeasibleDesign(
                f"the {kind} of a payload is unobservable with the kinematics of {model.robot.name}"
            )
    errors = model.robot.drive.gain_errors
    gains = 0.0
    if errors.any():
        S = errors @ errors.T + 1e-18 * np.eye(len(errors))
        gains = float(np.sqrt(1.0 / np.linalg.inv(S).sum()))
    gravity = by_gravity(model.robot, body.vector)
    if gravity is None:
        local = 0.0
    else:
        local = float(gravity[0] / body.mass)
    floor = NORMAL_95 * float(np.hypot(gains, local))
    if floor * body.mass < requested.mass:
        return
    if gains > local:
        raise InfeasibleDesign(
            f"gains known to {100 * gains:.2g} % limit the accuracy of the mass to"
            f" {100 * floor:.2g} % (95 %), for any motion: calibrate them with a known mass"
        )
    raise InfeasibleDesign(
        "gravity is given by its nominal size, which limits the accuracy of the mass to"
        f" {100 * floor:.2g} % (95 %), for any motion: give the local size"
    )
