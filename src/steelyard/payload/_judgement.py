"""The verdict on a payload, for joint torques (batch and online) and wrist sensors alike.

An estimate of ten numbers comes with its covariance. If all of them are known, the answer is the
nearest real body, provided that it lies within the uncertainty of the estimate: for ten numbers,
d^2 exceeds 4.28^2 with a probability of 5 %. Otherwise the answer is the unconstrained estimate.

Numbers that are unobservable with the kinematics of the arm (Ixx and Iyy with a SCARA) do not count
against the others.

Loaded data that move the parameters of the empty arm by more than noise does show that the model is
not exact (friction differs from day to day). This contradiction, about 1 if the model is right, is
already in the covariance (Birge); above 3 the model does not match the data.

Mass, centre of mass and inertia are judged separately. An inertia that no real body has does not
count against mass and centre, provided that those of the nearest real body differ by less than
their half-widths, or less than 5 % and 10 mm; nor does an inertia whose half-width exceeds its
largest moment. A mass above 1.5 times
the rating of the arm, a centre or a radius of gyration beyond 2 m, and a density above that of any
material are implausible, and block everything.

**The nearest real body.** An unconstrained estimate of a small inertia is often one that no body
has, although real bodies lie well inside its uncertainty. Among all bodies that are at least t = 1
mm thick, the dominant likely one has the smallest

    d^2 = (x - phi)' Sigma^-1 (x - phi)      with      M(x) = J(x) - m t^2 diag(1, 1, 1, 0)  >=  0,

J(x) the pseudo-inertia, linear in the ten numbers x; M >= 0 says (Schur) that the second moment
about the centre of mass is at least m t^2 in every direction. This is convex, so there is one
nearest body. It is found along the central path: Newton's method on d^2 / 2 - mu log det M(x), with
mu decreasing until 4 mu, the largest possible error of d^2 / 2, is negligible. d is the distance
between estimate and body in standard deviations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard._units import NORMAL_95
from steelyard.inertia import FIRST_MOMENT, MASS, PARAMETER_NAMES, InertialParameters
from steelyard.payload._headline import CAUSE_WORDS
from steelyard.payload._plausibility import implausible_doubt
from steelyard.verdict import EVERYTHING, Aspect, Doubt, DoubtKind, Verdict

_MIN_THICKNESS = 1e-3  # [m], t
_INITIAL_RADIUS = 0.05  # [m], of the sphere at which the search starts
_MIN_MU = 1e-10
_MU_FACTOR = 0.2  # between two points of the central path
_MAX_NEWTON_STEPS = 50
_MAX_STEP_HALVINGS = 60
_MAX_BODY_DISTANCE = 4.28  # standard deviations; 95 % of estimates of ten numbers are nearer
_MAX_MASS_SHIFT = 0.05  # of the mass, by the search for a real body; more blocks the mass
_MAX_COM_SHIFT = 0.010  # [m], of the centre, by the search for a real body; more blocks the centre
_MAX_CONTRADICTION = 3.0  # over that expected by noise
_MAX_RESIDUAL_RATIO = 5.0  # of residuals to those of the empty arm
_MIN_RESIDUAL_SHARE = 0.01  # of the RMS torque, for a doubt about residuals
_MAX_RESIDUAL_SHARE = 0.05  # of the RMS torque; above, residuals block (benchmarks/bench_gates.py)
_MIN_INFLUENCE = 0.01  # of a joint on mass or centre, for its residuals to block
_DOMINANT_SHARE = 0.5  # of the variance of the mass
_MIN_TOLD_SHARE = 0.005  # of the variance of the mass; smaller shares are left out of a sentence
_REMEDY = {
    "noise": "far more motion",
    "friction": "an empty run of the same day",
    "gains": "a known mass",
    "drift": "an empty run right before or after",
    "motion": "a lower cut-off",
    "gravity": "the local gravity",
    "scale": "a faster, wider motion",
    "force": "a faster, wider motion",
}
_CHECK = "check that the model is of this arm, and that nothing touched the arm"


@dataclass(frozen=True, eq=False)
class Evidence:
    """An estimate with everything that its verdict depends on.

    Attributes:
        plain: the unconstrained estimate
        covariance: of its ten numbers, (10, 10); infinite where unknown
        unknown: which of the ten the data do not determine, (10,)
        expected: why the method cannot determine some of the ten, which then do not count against
            the others; empty if it can determine all
        unobservable: which of the ten are unobservable with this arm's kinematics, (10,); none by
            default
        fixed: names of the numbers that were given
        contradiction: how far loaded data move the empty arm, RMS over the RMS expected by noise
        doubts: further doubts about the estimate
        shares: of the mass's variance, by cause, see `Payload`
        beyond_empty_arm: whether it is the load beyond that of the model, and not everything that a
            sensor carries
        look_for_body: whether to look for the nearest real body, which takes much longer than the
            processing of a sample
        arm: name of the arm, whose rating limits the mass; empty if unknown
        body_covariance: without causes that may act, in whose metric the nearest real body is
            sought, (10, 10); the covariance by default
    """

    plain: InertialParameters
    covariance: Array
    unknown: Mask
    expected: str = ""
    unobservable: Mask | None = None
    fixed: tuple[str, ...] = ()
    contradiction: float = 0.0
    doubts: Sequence[Doubt] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    beyond_empty_arm: bool = True
    look_for_body: bool = True
    arm: str = ""
    body_covariance: Array | None = None


def judge(evidence: Evidence) -> tuple[InertialParameters, Verdict]:
    """The body that answers a weighing, and the verdict on it.

    Args:
        evidence: the estimate and what its verdict depends on
    """
    if evidence.unknown[0]:
        mass_doubt = None
    else:
        mass_doubt = _mass_doubt(evidence)
    body, summary, body_doubt = _body(evidence, look=evidence.look_for_body and mass_doubt is None)
    contradiction_doubt = _contradiction_doubt(evidence.contradiction)
    doubts = (
        mass_doubt,
        *_unknown_doubts(evidence),
        body_doubt,
        _plausibility_doubt(evidence, mass_doubt),
        _inertia_doubt(evidence, body, mass_doubt),
        contradiction_doubt,
        *evidence.doubts,
    )
    summary = "; ".join(words for words in (summary, _dominant_cause(evidence.shares)) if words)
    return body, Verdict(summary).doubted(*(doubt for doubt in doubts if doubt is not None))


def _plausibility_doubt(evidence: Evidence, mass_doubt: Doubt | None) -> Doubt | None:
    """A doubt if no tool or part has such numbers."""
    if evidence.unknown[0] or mass_doubt is not None:
        return None
    return implausible_doubt(evidence.plain, evidence.covariance, evidence.arm)


def _inertia_doubt(
    evidence: Evidence, body: InertialParameters, mass_doubt: Doubt | None
) -> Doubt | None:
    """A doubt if the inertia of a real body is hardly known."""
    if evidence.unknown.any() or mass_doubt is not None or not body.is_physical:
        return None
    variances = np.diag(body.inertia_com_covariance(evidence.covariance))
    half = NORMAL_95 * float(np.sqrt(variances.max()))
    if half <= body.principal_moments[-1]:
        return None
    words = "the inertia is not known well enough: its half-width exceeds its largest moment"
    return Doubt(DoubtKind.TOO_UNCERTAIN, words, concerns=(Aspect.INERTIA,))


def large_residual_doubt(
    joint_names: Sequence[str],
    noise: Array,
    empty_noise: Array,
    torque_rms: Array,
    influential: Mask | None = None,
) -> Doubt | None:
    """A doubt if residuals of the loaded arm are far larger than those of the empty arm.

    Residuals widen the interval, which holds while they are small beside the torque.

    Args:
        joint_names: of the n joints
        noise: standard deviation of the residuals of the loaded arm, (n,) [Nm or N]
        empty_noise: of the empty arm, (n,) [Nm or N]
        torque_rms: root mean square of the loaded torques, (n,) [Nm or N]
        influential: joints that matter for mass and centre, (n,); the others do not block; None if
            unknown
    """
    ratio = noise / np.maximum(empty_noise, 1e-300)
    too_large = (ratio > _MAX_RESIDUAL_RATIO) & (noise > _MIN_RESIDUAL_SHARE * torque_rms)
    if not too_large.any():
        return None
    blocking = too_large & (noise > _MAX_RESIDUAL_SHARE * torque_rms)
    if influential is not None:
        blocking = blocking & influential
    chosen = blocking if blocking.any() else too_large
    j = int(np.where(chosen, ratio, 0.0).argmax())
    words = (
        f"the residuals of {joint_names[j]} are {ratio[j]:.0f} times as large as those of the empty"
        f" arm: {_CHECK}"
    )
    return Doubt(DoubtKind.UNEXPLAINED_TORQUE, words, blocks=bool(blocking.any()))


def influential_joints(information: Array) -> Mask:
    """Joints that matter for mass and centre, (n,).

    Args:
        information: of each joint about mass and first moment, the inverse variances, (n, 4)
    """
    total = np.maximum(information.sum(axis=0), 1e-300)
    return np.asarray((information / total).max(axis=1) > _MIN_INFLUENCE)


def model_doubt(verdict: Verdict) -> Doubt | None:
    """A doubt if the model of the empty arm has blocking doubts itself.

    Parameters of the arm that were not excited do not matter here: the numbers of the payload that
    depend on them are unknown.

    Args:
        verdict: on the model
    """
    words = [doubt.words for doubt in verdict.blocking if doubt.kind is not DoubtKind.NOT_EXCITED]
    if not words:
        return None
    return Doubt(
        DoubtKind.MODEL_DOUBTED, f"the model of the empty arm is doubtful: {'; '.join(words)}"
    )


def _unknown_doubts(evidence: Evidence) -> list[Doubt]:
    """Doubts about unknown numbers; those about unobservable numbers do not block."""
    if evidence.unobservable is None or evidence.expected:
        unobservable = np.zeros(10, bool)
    else:
        unobservable = evidence.unobservable
    doubts = []
    if names := _names(evidence.unknown & ~unobservable):
        words = f"the motion says nothing about {names}"
        if evidence.expected:
            words = f"nothing is known about {names}: {evidence.expected}"
        concerns = _concerned(evidence.unknown & ~unobservable)
        blocks = not evidence.expected or concerns == (Aspect.INERTIA,)
        doubts.append(Doubt(DoubtKind.NOT_EXCITED, words, blocks, concerns))
    if names := _names(evidence.unknown & unobservable):
        words = f"{names} are unobservable with this arm's kinematics"
        concerns = _concerned(evidence.unknown & unobservable)
        doubts.append(Doubt(DoubtKind.NOT_EXCITED, words, blocks=False, concerns=concerns))
    return doubts


def _concerned(unknown: Mask) -> tuple[Aspect, ...]:
    """The quantities that depend on unknown ones of the ten numbers."""
    if unknown[MASS]:
        return EVERYTHING
    if unknown[FIRST_MOMENT].any():
        return (Aspect.CENTRE, Aspect.INERTIA)
    return (Aspect.INERTIA,)


def _names(which: Mask) -> str:
    return ", ".join(np.array(("the mass", *PARAMETER_NAMES[1:]))[which])


def _body(evidence: Evidence, *, look: bool) -> tuple[InertialParameters, str, Doubt | None]:
    """The body of the answer, how it was found in words, and a doubt about it."""
    plain = evidence.plain
    if evidence.unknown.any():
        return plain, "", None
    found = "all ten parameters were excited"
    if evidence.fixed:
        found = f"with {', '.join(evidence.fixed)} as given all others were excited"
    if not look:
        return plain, found, None
    metric = evidence.covariance
    if evidence.body_covariance is not None:
        metric = evidence.body_covariance
    body, distance = nearest_physical(plain, metric)
    if distance == 0.0:
        return body, f"{found}, and they are those of a real body", None
    if distance < _MAX_BODY_DISTANCE:
        near = (
            f"this is the nearest real body, {distance:.1f} standard deviations from the"
            " unconstrained estimate"
        )
        return body, f"{found}; {near}", None
    words = f"no real body fits: the nearest is {distance:.0f} standard deviations away"
    doubt = Doubt(
        DoubtKind.NOT_PHYSICAL,
        f"{words}; {plain.why_not_physical}",
        concerns=_moved_by_constraint(plain, body, evidence.covariance),
    )
    return plain, found, doubt


def _moved_by_constraint(
    plain: InertialParameters, nearest: InertialParameters, covariance: Array
) -> tuple[Aspect, ...]:
    """The inertia alone, if the nearest real body has nearly the same mass and centre."""
    mass_shift = abs(nearest.mass - plain.mass)
    com_shift = float(np.linalg.norm(nearest.com - plain.com))
    mass_half = NORMAL_95 * float(np.sqrt(covariance[0, 0]))
    variances = np.diag(plain.com_covariance(covariance))
    com_half = NORMAL_95 * float(np.sqrt(max(variances.max(), 0.0)))
    same_mass = mass_shift <= max(mass_half, _MAX_MASS_SHIFT * plain.mass)
    if same_mass and com_shift <= max(com_half, _MAX_COM_SHIFT):
        return (Aspect.INERTIA,)
    return EVERYTHING


def _dominant_cause(shares: Mapping[str, float]) -> str:
    """The largest cause of the mass's interval, if torques come from currents, and a remedy."""
    if not shares.get("gains", 0.0) + shares.get("drift", 0.0) > 0:
        return ""
    dominant = max(shares, key=lambda name: shares[name])
    if shares[dominant] < _DOMINANT_SHARE:
        parts = ", ".join(
            f"{CAUSE_WORDS[name]} {100 * share:.0f} %"
            for name, share in shares.items()
            if share >= _MIN_TOLD_SHARE
        )
        return f"the variance of the mass consists of {parts}"
    share = shares[dominant]
    remaining = np.sqrt(1.0 - share)
    return (
        f"most of the interval of the mass comes from {CAUSE_WORDS[dominant]}"
        f" ({100 * share:.0f} % of the variance); {_REMEDY[dominant]} could narrow it to"
        f" {100 * remaining:.0f} % of its width"
    )


def _mass_doubt(evidence: Evidence) -> Doubt | None:
    """A doubt about a mass that is zero or negative."""
    mass = evidence.plain.mass
    half = NORMAL_95 * float(np.sqrt(evidence.covariance[0, 0]))
    if abs(mass) < half:
        meaning = "the sensor carries nothing, or a load too small to weigh"
        if evidence.beyond_empty_arm:
            meaning = "the arm carries no more than during identification, or too little to weigh"
        words = f"the mass cannot be distinguished from zero; {meaning}"
        return Doubt(DoubtKind.NOTHING_CARRIED, words)
    if mass <= 0:
        check = "check the stated sign of the wrench"
        if evidence.beyond_empty_arm:
            check = "check that the model is of the empty arm, and that the load was added later"
        return Doubt(DoubtKind.NEGATIVE_MASS, f"the mass is {mass:.4g} kg; {check}")
    return None


def _contradiction_doubt(contradiction: float) -> Doubt | None:
    if contradiction <= _MAX_CONTRADICTION:
        return None
    words = (
        f"the loaded torques contradict the model of the empty arm by {contradiction:.0f} times"
        f" the expected noise: {_CHECK}"
    )
    return Doubt(DoubtKind.CONTRADICTS_MODEL, words)


def nearest_physical(
    body: InertialParameters, covariance: Array
) -> tuple[InertialParameters, float]:
    """The physical body nearest to an estimate, and its distance in standard deviations.

    Args:
        body: the estimate
        covariance: of its ten numbers, finite, (10, 10)
    """
    if body.is_physical:
        return body, 0.0
    scale = np.sqrt(np.diag(covariance))
    whitening = np.linalg.inv(np.linalg.cholesky(covariance / np.outer(scale, scale)))
    A = _cone() * scale[:, None, None]
    x = _initial_body(body).vector / scale
    wanted = body.vector / scale
    mu = max(1.0, float(np.sum((whitening @ (x - wanted)) ** 2)))
    while mu > _MIN_MU:
        mu *= _MU_FACTOR
        x = _centred(x, wanted, whitening, A, mu)
    nearest = InertialParameters.from_vector(x * scale, body.frame)
    return nearest, float(np.linalg.norm(whitening @ (x - wanted)))


def _centred(x: Array, wanted: Array, whitening: Array, A: Array, mu: float) -> Array:
    """The point of the central path at mu, by Newton's method from a point inside, (10,)."""

    def barrier_cost(point: Array) -> float:
        try:
            L = np.linalg.cholesky(np.tensordot(point, A, axes=1))
        except np.linalg.LinAlgError:
            return np.inf
        log_det = 2 * float(np.log(np.diag(L)).sum())
        return float(np.sum((whitening @ (point - wanted)) ** 2)) / 2 - mu * log_det

    precision = whitening.T @ whitening
    cost = barrier_cost(x)
    for _ in range(_MAX_NEWTON_STEPS):
        inverse = np.linalg.inv(np.tensordot(x, A, axes=1))
        B = inverse @ A
        gradient = precision @ (x - wanted) - mu * np.trace(B, axis1=1, axis2=2)
        hessian = precision + mu * np.einsum("iab,jba->ij", B, B)
        step = np.linalg.solve(hessian, gradient)
        decrease = float(gradient @ step)
        if decrease < 1e-12 * mu:
            break
        share = 1.0
        for _ in range(_MAX_STEP_HALVINGS):
            trial = x - share * step
            trial_cost = barrier_cost(trial)
            if trial_cost < cost - 0.25 * share * decrease:
                x = trial
                cost = trial_cost
                break
            share /= 2
        else:
            break
    return x


def _cone() -> Array:
    """The derivative of M by each of the ten numbers, (10, 4, 4)."""
    A = np.array([InertialParameters.from_vector(row).pseudo_inertia for row in np.eye(10)])
    A[0] -= _MIN_THICKNESS**2 * np.diag([1.0, 1.0, 1.0, 0.0])
    return A


def _initial_body(body: InertialParameters) -> InertialParameters:
    """A homogeneous sphere of the estimated mass at the estimated centre of mass."""
    mass = max(body.mass, 1e-3)
    com = np.clip(body.first_moment / mass, -3.0, 3.0)
    return InertialParameters.from_com(
        mass, com, 0.4 * mass * _INITIAL_RADIUS**2 * np.eye(3), body.frame
    )
