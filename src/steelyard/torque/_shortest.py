"""The shortest motion that weighs a payload as well as requested, with its prediction.

Drive gains that are wrong move the mass, whatever the motion is: the estimate mixes what the joints
say with weights w_j that sum to one (gains that are wrong alike scale the mass), so with errors S
of the logarithms of the gains, n by causes, the relative variance of the mass is at least

    min over w, sum w = 1, of  w' S S' w  =  1 / (1' (S S')^-1 1)

and local gravity, where only its nominal size is known, adds its own. What is requested below that
is refused before anything is designed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard import fields, saved
from steelyard._arrays import Array, Mask, finite, freeze
from steelyard._units import NORMAL_95
from steelyard.errors import InfeasibleDesign, InvalidSamples, InvalidTrajectory
from steelyard.excitation import ConditionNumber, Design, DesignLimits, DesignSettings
from steelyard.excitation._accuracy import ArmKnowledge, PayloadAccuracy
from steelyard.excitation._design import moving_joints, verdict_on
from steelyard.excitation._objective import Criterion
from steelyard.excitation._shortest import Candidate, DurationSearch
from steelyard.identification import DynamicModel
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.robot import RobotModel
from steelyard.torque._prediction import Prediction, assumed_model, loaded_arm, predict
from steelyard.torque._prior import arm_rows, by_gravity, slow_noise
from steelyard.torque.methods import WeighingProblem
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import Doubt, DoubtKind, Verdict

_HUGE = 1e300
_HELPS = {
    "gains": "calibrate with a known mass",
    "drift": "weigh right after an empty run",
    "gravity": "give the local one",
}
_CURVE_POINTS = 40  # of the predicted accuracy over time
_ARRAYS = ("covariance", "by_noise", "durations_s", "reached", "times_s", "known")
_PREDICTION = {
    "requested": fields.table(
        {name: fields.number(0.0, finite=False) for name in ("mass", "com", "inertia")}
    ),
    "payload": fields.numbers(10),
    "frame": fields.TEXT,
    "half_widths": fields.numbers(10, finite=False, low=0.0),
    "covariance": fields.numbers(10, 10, finite=False, covariance=True),
    "by_noise": fields.numbers(10, 10, finite=False, covariance=True),
    "gain_error": fields.or_null(fields.numbers(10, "causes")),
    "shares": fields.named(fields.number()),
    "durations_s": fields.numbers("designs", low=0.0),
    "reached": fields.numbers("designs", 10, finite=False, low=0.0),
    "times_s": fields.numbers("times", low=0.0),
    "known": fields.numbers("times", 10, finite=False, low=0.0),
}


@dataclass(frozen=True)
class Accuracy:
    """The requested accuracy of a payload: 95 % half-widths, infinite if not requested.

    Attributes:
        mass: [kg]
        com: each coordinate of the centre of mass, [m]
        inertia: each of the six numbers about the flange, [kg m^2]
    """

    mass: float = np.inf
    com: float = np.inf
    inertia: float = np.inf

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise InvalidSamples(f"the accuracy of {name} must be positive, got {value:g}")
        if not np.isfinite(self.half_widths).any():
            raise InvalidSamples(
                "say how well mass, com or inertia shall be known: no accuracy is given"
            )

    @property
    def half_widths(self) -> Array:
        """Of mass, centre of mass and inertia, (10,) [SI]; infinite where they do not matter."""
        return np.array([self.mass, *[self.com] * 3, *[self.inertia] * 6])

    def shares(self, half_widths: Array) -> Array:
        """The ratio of half-widths (10,) [SI] to the requested ones, (10,); NaN if not requested.

        Args:
            half_widths: of mass, centre of mass and inertia, (10,) [SI]
        """
        wanted = self.half_widths
        return np.where(np.isfinite(wanted), half_widths / np.minimum(wanted, _HUGE), np.nan)


@dataclass(frozen=True, eq=False)
class ShortestMotion:
    """The shortest motion found that weighs a payload as well as requested.

    Attributes:
        design: the motion with its certificate and its verdict; its file holds the rest, too
        requested: how well the payload shall be known
        prediction: how well it will be known
        durations_s: that motions were designed for, ascending, (k,) [s]
        reached: half-widths of mass, centre of mass and inertia of the best of each, (k, 10) [SI]
        times_s: along the motion, (m,) [s]
        known: half-widths at these times, (m, 10) [SI]; infinite where nothing is known yet
    """

    design: Design
    requested: Accuracy
    prediction: Prediction
    durations_s: Array
    reached: Array
    times_s: Array
    known: Array

    def __post_init__(self) -> None:
        freeze(self, "durations_s", "reached", "times_s", "known")
        object.__setattr__(self, "design", replace(self.design, prediction=self._facts()))

    @property
    def duration_s(self) -> float:
        """Of the motion, [s]."""
        return self.design.trajectory.duration_s

    @property
    def verdict(self) -> Verdict:
        """Why the search ended, the closest limit, what was not checked and what was assumed."""
        return self.design.verdict

    def _facts(self) -> dict[str, Any]:
        prediction = self.prediction
        return {
            "requested": vars(self.requested),
            "payload": prediction.body.vector,
            "frame": prediction.body.frame,
            "half_widths": prediction.half_widths,
            **{
                name: getattr(prediction, name) for name in ("covariance", "by_noise", "gain_error")
            },
            "shares": dict(prediction.shares),
            **{
                name: getattr(self, name) for name in ("durations_s", "reached", "times_s", "known")
            },
        }

    def save(self, path: str | Path) -> None:
        """Writes motion, certificate and prediction to a JSON file, like a design."""
        self.design.save(path)

    @classmethod
    def load(cls, path: str | Path) -> ShortestMotion:
        """The motion with its prediction in a JSON file that `save` wrote."""
        with saved.reading(path, "design"):
            return cls.of(Design.load(path))

    @classmethod
    def of(cls, design: Design) -> ShortestMotion:
        """The motion of a design that holds a prediction."""
        found: Mapping[str, Any] = design.prediction or {}
        fields.check(found, _PREDICTION, "prediction")
        body = InertialParameters.from_vector(found["payload"], found["frame"])
        arrays = {name: np.array(found[name], dtype=float) for name in _ARRAYS}
        if found["gain_error"] is None:
            gain_error = None
        else:
            gain_error = np.array(found["gain_error"], dtype=float)
        covariances = arrays.pop("covariance"), arrays.pop("by_noise")
        prediction = Prediction(body, *covariances, gain_error, found["shares"])
        return cls(design, Accuracy(**found["requested"]), prediction, **arrays)

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

    Torques are those of the arm with the payload on its flange. Ctrl-C ends the search; the
    shortest motion so far is returned where one is enough.

    Args:
        arm: identified, with its noise, friction and gains; or only described, see `assumed_model`
        requested: half-widths of the 95 % intervals that `weigh` shall report
        typical: payload that may be expected, in the flange frame; a cube of 2 kg by default
        limits: to keep; those of the robot by default
        start: posture in which the motion begins and ends, (n,) [rad or m]; free by default
        harmonics: L
        longest_s: that a motion may take, [s]
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
        raise InvalidTrajectory("at rest at both ends, 1 harmonic leaves no motion; use at least 2")
    weighing = _Weighing(model, body, requested, settings.rate_hz)
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
        mass: [kg]
        com: its centre, (3,) [m], in the flange frame
        size: its edge, [m]
    """
    if not (np.isfinite(mass) and mass > 0):
        raise InvalidSamples(f"a typical payload needs a mass above 0, got {mass:g} kg")
    return InertialParameters.from_com(mass, com, mass * size**2 / 6 * np.eye(3), robot.flange)


@dataclass(eq=False)
class _Weighing:
    """The weighing that a motion is for: what is requested of it, and what it will know."""

    model: DynamicModel
    body: InertialParameters
    requested: Accuracy
    rate_hz: float
    lasting: Array | None = None

    def predicted(self, motion: FourierTrajectory, until_s: float | None = None) -> Prediction:
        return predict(self.model, motion, self.body, rate_hz=self.rate_hz, until_s=until_s)

    def share(self, motion: FourierTrajectory) -> float:
        """The largest share of what is requested; remembers what no motion narrows."""
        prediction = self.predicted(motion)
        self.lasting = prediction.lasting
        return float(np.nanmax(self.requested.shares(prediction.half_widths)[self.felt]))

    @property
    def felt(self) -> Mask:
        """Which of mass, centre of mass and inertia some motion of the arm shows, (10,)."""
        felt = _felt(self.model)
        return np.concatenate([felt[:1], felt[1:4] & felt[0], felt[4:]])

    def criterion(self, duration_s: float) -> Criterion:
        """What a motion of some duration is for."""
        m = self.body.mass
        c = self.body.com
        rows = np.eye(10)
        rows[1:4, 0] = -c / m
        rows[1:4, 1:4] = np.eye(3) / m
        wanted = self.requested.half_widths
        counted = np.isfinite(wanted) & self.felt
        if self.lasting is not None:  # what is left for noise
            wanted = np.sqrt(np.maximum(1 - (self.lasting / wanted) ** 2, 0.01)) * wanted
        requested = NORMAL_95 * rows[counted] / wanted[counted][:, None]
        if self.model.factor.has_rows:
            arm = _knowledge(self.model)
        else:
            arm = None
        samples = duration_s * self.rate_hz
        objective = PayloadAccuracy(requested, slow_noise(self.model), samples, arm)
        robot = self.model.robot
        return objective.criterion(robot, DesignLimits.of(robot), robot.home, np.arange(robot.n))

    def why_not(self, found: tuple[Candidate, ...], stopped: str) -> str:
        """Why no motion is enough, in words."""
        if not found:
            return (
                "no motion was found that keeps all limits; give them more room, or a longer"
                " --longest"
            )
        best = min(found, key=lambda one: one.share)
        prediction = self.predicted(best.trajectory)
        shares = self.requested.shares(prediction.half_widths)
        shares[~self.felt] = np.nan
        k = int(np.nanargmax(shares))
        quantity = prediction.quantities[k]
        half = f"{quantity.half_width:.3g} {quantity.unit}"
        wanted = f"{quantity.half_width / shares[k]:.3g} {quantity.unit}"
        if stopped:
            return (
                f"{stopped} before a motion was enough: {quantity.name} to {half}, not {wanted}, so"
                " far"
            )
        helps = self._what_helps(best.trajectory, prediction, k)
        longest = max(one.duration_s for one in found)
        return (
            f"no motion of up to {longest:g} s was found that is enough: {quantity.name} to {half}"
            f" (95 %), not {wanted}{helps}"
        )

    def _what_helps(self, motion: FourierTrajectory, prediction: Prediction, k: int) -> str:
        """What makes most of a half-width, and what would help, in words."""
        if k == 0 and prediction.lasting[0] > np.sqrt(0.5) * prediction.half_widths[0]:
            causes = {name: prediction.shares.get(name, 0.0) for name in _HELPS}
            most = max(causes, key=lambda name: causes[name])
            return f"; most of that is {most}: {_HELPS[most]}"
        estimate = self.model.estimate
        exact = replace(estimate, covariance=np.zeros_like(estimate.covariance))
        known = predict(
            replace(self.model, estimate=exact), motion, self.body, rate_hz=self.rate_hz
        )
        if known.half_widths[k] < np.sqrt(0.5) * prediction.half_widths[k]:
            return (
                "; most of that is what the empty runs leave uncertain of the arm: identify it"
                " from more"
            )
        return "; most of that is noise"

    def result(
        self, best: Candidate, found: tuple[Candidate, ...], stopped: str, began: float
    ) -> ShortestMotion:
        """The value to answer with."""
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
                Doubt(DoubtKind.ASSUMED, f"{_ASSUMED}, {noise} Nm or N", blocks=False)
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


_ASSUMED = (
    "no identified arm was given: it is taken as known but for its friction, its torques as exact,"
    " their noise as white"
)


def _felt(model: DynamicModel) -> Mask:
    """Which of the ten numbers of a payload some motion of the arm shows, (10,)."""
    return np.asarray(~WeighingProblem(model, (), np.zeros((0, 11))).unfelt)


def _knowledge(model: DynamicModel) -> ArmKnowledge:
    p = len(model.basis)
    Z = arm_rows(model)[:, :p]
    return ArmKnowledge(model.basis.independent, model.basis.payload_jacobian, Z.T @ Z)


def _require_reachable(model: DynamicModel, body: InertialParameters, requested: Accuracy) -> None:
    """Refuses what no motion of the arm shows, and a mass that gains or local gravity hide."""
    felt = _felt(model)
    for kind, which in {"mass": felt[:1], "com": felt[1:4] & felt[0], "inertia": felt[4:]}.items():
        if np.isfinite(getattr(requested, kind)) and not which.any():
            raise InfeasibleDesign(f"no motion of {model.robot.name} shows the {kind} of a payload")
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
        known = (
            f"with gains known to {100 * gains:.2g} % no motion weighs better than"
            f" {100 * floor:.2g} %"
        )
        raise InfeasibleDesign(f"{known} (95 %): calibrate with a known mass")
    raise InfeasibleDesign(
        f"gravity is a nominal one, and no motion weighs better than {100 * floor:.2g} % (95 %):"
        " give the local one"
    )
