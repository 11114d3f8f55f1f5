"""The one judge of payloads, for joint torques in a batch or sample by sample, and for wrist sensors.

An estimate of ten numbers comes with its covariance. Where all of them are known, the answer is the
nearest real body if that lies within the estimate's uncertainty: for ten numbers, d^2 is above
4.28^2 with a probability of 5 %. Beyond, or where some are unknown, the answer is the plain
estimate.

What no motion of an arm shows, by its build (a SCARA feels neither Ixx nor Iyy), is no reason
against the other numbers, which are all that was asked.

Loaded data that move the empty arm by more than noise does say that the model is not quite right
(friction was another one that day). This contradiction, about 1 when all is well, is already in the
covariance (Birge); beyond 3 the model does not belong to the data.

**The nearest real body.** An unconstrained estimate of a small inertia is often one that no body
has, although real bodies lie well inside its uncertainty. Among all bodies that are at least t = 1
mm thick, the one that the data like best has the smallest

    d^2 = (x - phi)' Sigma^-1 (x - phi)      with      M(x) = J(x) - m t^2 diag(1, 1, 1, 0)  >=  0,

J(x) the pseudo-inertia, linear in the ten numbers x; M >= 0 says (Schur) that the second moment
about the centre of mass is at least m t^2 in every direction. This is convex, so there is one
nearest body. It is found along the central path: Newton's method on d^2 / 2 - mu log det M(x), mu
falling until 4 mu, by which d^2 / 2 can still be too large, is nothing. d says, in standard
deviations, how far the estimate had to go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard._units import NORMAL_95
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.verdict import Doubt, DoubtKind, Verdict

_THINNEST = 1e-3
_FIRST_GUESS_RADIUS = 0.05
_LAST_MU = 1e-10
_MU_FACTOR = 0.2
_NEWTON_STEPS = 50
_HALVINGS = 60
_FAR = 4.28  # standard deviations: beyond, the estimate of ten numbers is off with 95 % probability
_CONTRADICTED = 3.0  # times what noise makes
_STRANGE = 5.0  # times the empty arm's residuals
_STRANGE_SHARE = 0.01  # of the torque
_MOST = 0.5
_HELP = {
    "noise": "far more motion",
    "friction": "an empty run of the same day",
    "gains": "a known mass",
    "drift": "an empty run right before or after",
    "motion": "a lower cut-off",
    "gravity": "the local gravity",
}
_CHECK = "is the model that of this arm, and did nothing touch it?"


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of an estimate before it is judged.

    Attributes:
        plain: the estimate
        covariance: of its ten numbers, (10, 10); infinite where unknown
        unknown: which of the ten the data do not determine, (10,)
        expected: why some are unknown by the nature of the method, which then is no bad news; empty
            otherwise
        unobservable: which of the ten are unobservable with this arm's kinematics, (10,); none by
            default
        fixed: names of the numbers that were given
        contradiction: how far loaded data move the empty arm, RMS over the RMS that noise alone
            makes
        doubts: what else counts against the estimate
        shares: of the mass's variance, by what makes it, see `Payload`
        beyond_empty_arm: whether it is what the arm carries beyond a model, and not all that a
            sensor feels
        look_for_body: whether to look for the nearest real body, which takes much longer than a
            sample
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


def judge(evidence: Evidence) -> tuple[InertialParameters, Verdict]:
    """The body to answer with, and the verdict on it."""
    if evidence.unknown[0]:
        about_mass = None
    else:
        about_mass = _about_mass(evidence)
    body, summary, about_body = _body(evidence, look=evidence.look_for_body and about_mass is None)
    about_model = _about_contradiction(evidence.contradiction)
    doubts = (about_mass, *_unknown(evidence), about_body, about_model, *evidence.doubts)
    summary = "; ".join(words for words in (summary, _what_limits(evidence.shares)) if words)
    return body, Verdict(summary).doubted(*(doubt for doubt in doubts if doubt is not None))


def large_residual_doubt(
    joint_names: Sequence[str], noise: Array, empty_noise: Array, torque_rms: Array
) -> Doubt | None:
    """A doubt where loaded torques deviate far more than those of the empty arm did.

    Args:
        noise: standard deviation of the residuals of the loaded arm, (n,) [Nm or N]
        empty_noise: of the empty arm, (n,) [Nm or N]
        torque_rms: root mean square of the loaded torques, (n,) [Nm or N]
    """
    times = noise / np.maximum(empty_noise, 1e-300)
    strange = (times > _STRANGE) & (noise > _STRANGE_SHARE * torque_rms)
    if not strange.any():
        return None
    j = int(np.where(strange, times, 0.0).argmax())
    words = f"{joint_names[j]} deviates {times[j]:.0f} times as much as the empty arm did: {_CHECK}"
    return Doubt(DoubtKind.UNEXPLAINED_TORQUE, words)


def model_doubt(verdict: Verdict) -> Doubt | None:
    """A doubt where the model of the empty arm must not be used itself.

    Parameters of the arm that were not excited do no harm: what depends on them is unknown of the
    payload.
    """
    words = [doubt.words for doubt in verdict.blocking if doubt.kind is not DoubtKind.NOT_EXCITED]
    if not words:
        return None
    return Doubt(
        DoubtKind.MODEL_DOUBTED, f"the model of the empty arm is doubted: {'; '.join(words)}"
    )


def _unknown(evidence: Evidence) -> list[Doubt]:
    """Doubts about numbers that are unknown: those that no motion of the arm shows do no harm."""
    if evidence.unobservable is None or evidence.expected:
        unobservable = np.zeros(10, bool)
    else:
        unobservable = evidence.unobservable
    doubts = []
    if names := _names(evidence.unknown & ~unobservable):
        words = f"the motion says nothing about {names}"
        if evidence.expected:
            words = f"nothing is known about {names}: {evidence.expected}"
        doubts.append(Doubt(DoubtKind.NOT_EXCITED, words, blocks=not evidence.expected))
    if names := _names(evidence.unknown & unobservable):
        words = f"no motion of this arm shows {names}, by its build"
        doubts.append(Doubt(DoubtKind.NOT_EXCITED, words, blocks=False))
    return doubts


def _names(which: Mask) -> str:
    return ", ".join(np.array(("the mass", *PARAMETER_NAMES[1:]))[which])


def _body(evidence: Evidence, *, look: bool) -> tuple[InertialParameters, str, Doubt | None]:
    """The body to answer with, what was found, and a doubt about it."""
    plain = evidence.plain
    if evidence.unknown.any():
        return plain, "", None
    found = "all ten parameters were excited"
    if evidence.fixed:
        found = f"with {', '.join(evidence.fixed)} as given all others were excited"
    if not look:
        return plain, found, None
    body, distance = nearest_physical(plain, evidence.covariance)
    if distance == 0.0:
        return body, f"{found}, and a real body can have them", None
    if distance < _FAR:
        near = (
            f"this is the nearest real body, {distance:.1f} standard deviations from the plain"
            " estimate"
        )
        return body, f"{found}; {near}", None
    words = f"no real body is near: the nearest is {distance:.0f} standard deviations away"
    return plain, found, Doubt(DoubtKind.NOT_PHYSICAL, f"{words}; {plain.why_not_physical}")


def _what_limits(shares: Mapping[str, float]) -> str:
    """What makes most of the mass's interval, where torques were made of currents, and what would help."""
    if not shares.get("gains", 0.0) + shares.get("drift", 0.0) > 0:
        return ""
    most = max(shares, key=lambda name: shares[name])
    if shares[most] < _MOST:
        parts = ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items())
        return f"the variance of the mass is made of {parts}"
    words = f"most of the interval of the mass: {most} ({100 * shares[most]:.0f} % of the variance)"
    return f"{words}; {_HELP[most]} could narrow it to {100 * np.sqrt(1.0 - shares[most]):.0f} %"


def _about_mass(evidence: Evidence) -> Doubt | None:
    """A doubt about a mass that is zero or negative."""
    mass = evidence.plain.mass
    half = NORMAL_95 * float(np.sqrt(evidence.covariance[0, 0]))
    if abs(mass) < half:
        meaning = "the sensor carries nothing, or too little to weigh"
        if evidence.beyond_empty_arm:
            meaning = (
                "the arm carries what it did when it was identified, or too little more to weigh"
            )
        words = f"{mass:.3g} +- {half:.3g} kg cannot be distinguished from zero; {meaning}"
        return Doubt(DoubtKind.NOTHING_CARRIED, words)
    if mass <= 0:
        check = "is the sign of the wrench the stated one?"
        if evidence.beyond_empty_arm:
            check = (
                "is the model that of the empty arm, and was the load taken after it was"
                " identified?"
            )
        return Doubt(DoubtKind.NEGATIVE_MASS, f"the mass is {mass:.4g} kg; {check}")
    return None


def _about_contradiction(contradiction: float) -> Doubt | None:
    if contradiction <= _CONTRADICTED:
        return None
    words = (
        f"the loaded torques contradict the empty arm, {contradiction:.0f} times beyond noise:"
        f" {_CHECK}"
    )
    return Doubt(DoubtKind.CONTRADICTS_MODEL, words)


def nearest_physical(
    body: InertialParameters, covariance: Array
) -> tuple[InertialParameters, float]:
    """The physical body nearest to an estimate, and its distance in standard deviations.

    Args:
        covariance: of its ten numbers, finite, (10, 10)
    """
    if body.is_physical:
        return body, 0.0
    scale = np.sqrt(np.diag(covariance))
    whitening = np.linalg.inv(np.linalg.cholesky(covariance / np.outer(scale, scale)))
    A = _cone() * scale[:, None, None]
    x = _first_guess(body).vector / scale
    wanted = body.vector / scale
    mu = max(1.0, float(np.sum((whitening @ (x - wanted)) ** 2)))
    while mu > _LAST_MU:
        mu *= _MU_FACTOR
        x = _centred(x, wanted, whitening, A, mu)
    nearest = InertialParameters.from_vector(x * scale, body.frame)
    return nearest, float(np.linalg.norm(whitening @ (x - wanted)))


def _centred(x: Array, wanted: Array, whitening: Array, A: Array, mu: float) -> Array:
    """The point of the central path at mu, by Newton's method from a point inside, (10,)."""

    def height(point: Array) -> float:
        try:
            L = np.linalg.cholesky(np.tensordot(point, A, axes=1))
        except np.linalg.LinAlgError:
            return np.inf
        log_det = 2 * float(np.log(np.diag(L)).sum())
        return float(np.sum((whitening @ (point - wanted)) ** 2)) / 2 - mu * log_det

    precision = whitening.T @ whitening
    here = height(x)
    for _ in range(_NEWTON_STEPS):
        inverse = np.linalg.inv(np.tensordot(x, A, axes=1))
        B = inverse @ A
        gradient = precision @ (x - wanted) - mu * np.trace(B, axis1=1, axis2=2)
        hessian = precision + mu * np.einsum("iab,jba->ij", B, B)
        step = np.linalg.solve(hessian, gradient)
        decrease = float(gradient @ step)
        if decrease < 1e-12 * mu:
            break
        share = 1.0
        for _ in range(_HALVINGS):
            if (there := height(x - share * step)) < here - 0.25 * share * decrease:
                x = x - share * step
                here = there
                break
            share /= 2
        else:
            break
    return x


def _cone() -> Array:
    """How M changes with each of the ten numbers, (10, 4, 4)."""
    A = np.array([InertialParameters.from_vector(row).pseudo_inertia for row in np.eye(10)])
    A[0] -= _THINNEST**2 * np.diag([1.0, 1.0, 1.0, 0.0])
    return A


def _first_guess(body: InertialParameters) -> InertialParameters:
    """A ball of the estimated mass at the estimated centre of mass."""
    mass = max(body.mass, 1e-3)
    com = np.clip(body.first_moment / mass, -3.0, 3.0)
    return InertialParameters.from_com(
        mass, com, 0.4 * mass * _FIRST_GUESS_RADIUS**2 * np.eye(3), body.frame
    )
