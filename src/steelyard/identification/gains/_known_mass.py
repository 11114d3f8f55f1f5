"""Drive gains from a run with a payload of known mass.

**Gains that are nearly right** (published ones, the controller's). The logarithms of the true gains
differ by S u, u independent causes of unit variance. Weighing the run with the model of the empty
arm gives m, which changes by g'u with the causes (g = S'd, d the response to each gain, in empty
and loaded runs alike), and has an error of variance r by noise, friction and drift. With the known
mass m_0, m + g'u + noise = m_0, so (Kalman)

    u = g (m_0 - m) / (g'g + r),      covariance 1 - g g' / (g'g + r) = (1 - b g g')^2,

b = (1 - sqrt(r / (g'g + r))) / g'g. Gains move by S u, and their remaining error is S (1 - b g g')
u', in no direction larger than before. Friction law, cut-off and all causes that widen a weighing
are those of the model. A joint solution for the rows of all runs, in which this run and later ones
share the noise of the empty runs, hardly adds information: intervals on real UR10e runs change by
1 %, or by 5 % if there is only one short empty run.

**Gains that are guesses.** The mass is one number and does not show n gains; the motion shows
ratios of them, since joints share parameters. With the rows Y_j of joint j, empty runs follow K_j
i_j = Y_j pi, loaded ones

    K_j i_j = Y_j (pi + J phi + E delta),      K_j = guess_j e^k_j,      k_j ~ N(0, spread^2)

phi is the payload, whose mass is known and whose other nine numbers are not, J its Jacobian, and
delta = E' (change of pi) lets friction and offsets differ between empty and loaded runs, as
`steelyard.torque` does. Scaling pi and every K together changes nothing in an empty run, which
therefore does not show the scale; the known mass fixes it in a loaded one.

Unknown are x = (phi, pi, delta) and k. The measured current stays on the left, with its noise:

    guess_j i_j = e^-k_j Z_j x + noise_j,      Z = [YJ, Y, YE]

so a Gauss-Newton step has the columns e^-k_j Z_j for x and -e^-k_j Z_j x, the current as the model
predicts it, for k_j. The measured current in its place (K_j i_j - Z_j x = 0, linear in K)
would shrink the gains because of its noise (errors in variables). Rows enter through the triangular
factors of each joint, and weights are found alternately with the noise. Residuals are correlated in
time, so N rows of joint j carry the information of N / kappa_j. A first solution gives kappa_j, a
second one weights rows by 1 / (sigma_j sqrt(kappa_j)), relative to each other and to the prior, and
its normal matrix is the inverse covariance. The noise is estimated over N - kappa_j p degrees of
freedom, p the number of unknowns.

The prior holds gains that the data hardly determine. The share of the prior in the information on
k_j, (std of k_j / spread)^2, is stated in the note of the joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steelyard._arrays import Array
from steelyard._units import NORMAL_95, with_interval
from steelyard.errors import InvalidRobot, InvalidSamples
from steelyard.identification._covariance import widening
from steelyard.identification._factor import RegressionFactor
from steelyard.identification._model import DynamicModel
from steelyard.identification.gains._drive_gains import DriveGains
from steelyard.payload import Payload
from steelyard.recording import Samples
from steelyard.verdict import Doubt, DoubtKind, Verdict

_MAX_SIGMA = 3.0  # standard deviations between weighed and known mass, for a correction
_MAX_PRIOR_STD = 0.05  # relative; less certain gains are guesses
_MAX_ITERATIONS = 100
_TOLERANCE = 1e-9  # smaller steps of gains and noise end the iteration
_MAX_LOG_STEP = 0.5  # largest step of the logarithm of a gain
_RELATIVE_RANK = 1e-10  # smaller singular values, over the largest, count as zero
_MIN_FREEDOM = 0.2  # smallest degrees of freedom, of the number of rows
_LARGE_PRIOR_SHARE = 0.25  # share of the prior in the information on a gain


@dataclass(frozen=True, eq=False)
class _AllRuns:
    """The regression of all runs.

    Attributes:
        Z: triangular factors of each joint, empty above loaded, in terms of x = (phi, pi, delta),
            (n, r, m)
        y: the same of guess_j i_j, (n, r) [Nm]
        rows: number of rows of each joint, (n,)
        mass: of the payload, the first of x, [kg]
        spread: standard deviation of the prior of k
    """

    Z: Array
    y: Array
    rows: NDArray[np.int64]
    mass: float
    spread: float

    @property
    def n(self) -> int:
        return len(self.Z)

    def residuals(self, x: Array, k: Array) -> Array:
        """Residuals of the factors, (n, r) [Nm]."""
        return np.asarray(self.y - np.exp(-k)[:, None] * (self.Z @ x))

    def noise(self, x: Array, k: Array, kappa: Array) -> Array:
        """Standard deviation of each joint's noise, (n,) [Nm], for rows correlated by kappa."""
        taken = kappa * self.Z.shape[2] * self.rows / max(self.rows.sum(), 1)
        freedom = np.maximum(self.rows - taken, np.maximum(_MIN_FREEDOM * self.rows, 1.0))
        return np.asarray(
            np.sqrt(np.maximum((self.residuals(x, k) ** 2).sum(axis=1) / freedom, 1e-20))
        )

    def columns(self, x: Array, k: Array, weight: Array) -> Array:
        """The derivative of weighted predictions by x (no mass), then k, (n, r, m - 1 + n)."""
        scale = (np.exp(-k) * weight)[:, None]
        by_gain = -scale[:, :, None] * (self.Z @ x)[:, :, None] * np.eye(self.n)[:, None, :]
        return np.concatenate([scale[:, :, None] * self.Z[:, :, 1:], by_gain], axis=2)


@dataclass(frozen=True, eq=False)
class _IteratedGains:
    """The result of the iteration.

    Attributes:
        x: (phi, pi, delta), (m,)
        k: logarithm of gain over guess, (n,)
        errors: error of k by independent causes of unit variance, (n, n)
        converged: whether the iteration converged
    """

    x: Array
    k: Array
    errors: Array
    converged: bool


def gains_from_known_mass(
    model: DynamicModel,
    payload: Payload,
    mass: float,
    *,
    empty: Sequence[Samples],
    loaded: Sequence[Samples],
    spread: float = 0.2,
) -> DriveGains:
    """The gains with which the weighed mass of a payload is its known mass.

    Args:
        model: of the empty arm, fitted to motor currents times the gains so far
        payload: as the model weighs it
        mass: of the payload, [kg]; its centre and inertia need not be known
        empty: runs without the payload, with the gains so far
        loaded: runs with it, with the gains so far
        spread: relative standard deviation of gains that are guesses
    """
    drive = model.robot.drive
    if drive.gain is None or not model.from_currents:
        raise InvalidRobot(
            "a known mass corrects drive gains: the model must be fitted to motor currents"
        )
    for name, number in (("a known mass [kg]", mass), ("spread", spread)):
        if not 0 < number < np.inf:
            raise InvalidSamples(f"{name} must be positive, got {number:g}")
    if drive.coupling is not None:
        raise InvalidRobot(
            f"{model.robot.name} has coupled drives; gains from a known mass need one motor for"
            " each joint"
        )
    if drive.gain_std is None:
        own = np.zeros(len(drive))
    else:
        own = drive.gain_std / np.abs(drive.gain)
    weighing_doubts = [
        f"the run with {mass:g} kg is doubtful: {doubt.words}" for doubt in payload.verdict.blocking
    ]
    doubts = [Doubt(DoubtKind.GAINS, each, blocks=False) for each in weighing_doubts]
    sigmas = abs(mass - payload.unconstrained.mass) / payload.std[0]
    if (own > _MAX_PRIOR_STD).any():
        found = _estimated_gains(model, payload, mass, empty=empty, loaded=loaded, spread=spread)
    elif sigmas < _MAX_SIGMA:
        found = _corrected_gains(drive.gain, drive.gain_errors, payload, mass)
    else:
        found = _estimated_gains(model, payload, mass, empty=empty, loaded=loaded, spread=spread)
        words = (
            f"with the present gains a known mass of {mass:g} kg weighs"
            f" {payload.unconstrained.mass:.3g} kg, a difference of {sigmas:.0f} standard"
            " deviations: check the mass and its run; if the gains are guesses, state a gain_std"
            f" above {_MAX_PRIOR_STD:.0%} in the robot file"
        )
        doubts.append(Doubt(DoubtKind.GAINS, words))
    return replace(found, verdict=found.verdict.doubted(*doubts))


def _corrected_gains(gain: Array, S: Array, payload: Payload, mass: float) -> DriveGains:
    """The gains after a correction by a known mass."""
    if payload.gain_error is None:
        g = np.zeros(S.shape[1])
    else:
        g = payload.gain_error[0]
    weighed = payload.unconstrained.mass
    half = NORMAL_95 * payload.std[0]
    total = float(payload.covariance[0, 0])
    known = float(g @ g)
    u = g * (mass - weighed) / total
    if known:
        b = (1.0 - np.sqrt(max(1.0 - known / total, 0.0))) / known
    else:
        b = 0.0
    errors = S - b * np.outer(S @ g, g)
    value = gain * np.exp(S @ u)
    relative = np.sqrt((errors**2).sum(axis=1))
    left = float(np.linalg.norm(g - b * known * g))
    words = f"{mass:g} kg weighed {with_interval(weighed, half)} kg"
    if known:
        shares = " and ".join(f"{NORMAL_95 * x:.2g}" for x in (np.sqrt(known), left))
        words = f"{words}, of which gains contribute {shares} kg before and after"
    else:
        words += "; gains are stated to be exact, so none is corrected"
    half_widths = NORMAL_95 * relative
    notes = [
        f"{100 * change:+.2f} +- {100 * half:.2g} %"
        for change, half in zip(S @ u, half_widths, strict=True)
    ]
    return DriveGains(value, np.abs(value) * relative, "known mass", Verdict(words), notes, errors)


def _estimated_gains(
    model: DynamicModel,
    payload: Payload,
    mass: float,
    *,
    empty: Sequence[Samples],
    loaded: Sequence[Samples],
    spread: float,
) -> DriveGains:
    """All gains, estimated from rough guesses."""
    if not (empty and loaded):
        raise InvalidSamples("a known mass needs at least one recording without it and one with it")
    n = model.robot.n
    p = len(model.estimate.value)
    theta = model.estimate.value
    J = np.zeros((p, 10))
    J[: len(model.basis)] = model.basis.payload_jacobian
    carrying = theta + J @ payload.unconstrained.vector
    E = np.eye(p)[:, model.estimate.parameters.daily]
    of_empty = np.column_stack([np.zeros((p, 10)), np.eye(p), np.zeros_like(E)])
    of_loaded = np.column_stack([J, np.eye(p), E])
    rows = [(model.rows(part, theta), of_empty) for part in empty]
    rows += [(model.rows(part, carrying), of_loaded) for part in loaded]
    factors = [
        (RegressionFactor.empty(n, p).add(part.Y, part.tau, part.usable), mix) for part, mix in rows
    ]
    problem = _AllRuns(
        np.concatenate([factor.R[:, :, :-1] @ mixing for factor, mixing in factors], axis=1),
        np.concatenate([factor.R[:, :, -1] for factor, _ in factors], axis=1),
        np.sum([factor.rows for factor, _ in factors], axis=0),
        mass,
        spread,
    )
    answer = _solve(problem, np.ones(n))
    residuals = [
        part.tau - np.exp(-answer.k) * (part.Y @ (mixing @ answer.x)) for part, mixing in rows
    ]
    kappa = [widening([part[:, j] for part in residuals]) for j in range(n)]
    answer = _solve(problem, np.array(kappa))
    gain = model.robot.drive.gain
    assert gain is not None  # noqa: S101 - checked by gains_from_known_mass
    return _with_verdict(gain, answer, problem, names=model.robot.joint_names)


def _solve(problem: _AllRuns, kappa: Array) -> _IteratedGains:
    """Gauss-Newton in x and k, weights found alternately."""
    n = problem.n
    m = problem.Z.shape[2]
    x = np.append(problem.mass, np.zeros(m - 1))
    k = np.zeros(n)
    noise = np.ones(n)
    for _ in range(_MAX_ITERATIONS):
        J = problem.columns(x, k, 1.0 / noise).reshape(-1, m - 1 + n)
        half, shown = _half_inverse(J, problem)
        rest = np.concatenate(
            [(problem.residuals(x, k) / noise[:, None]).ravel(), -k / problem.spread]
        )
        step = half @ (shown.T @ rest)
        longest = float(np.abs(step[m - 1 :]).max())
        step *= min(1.0, _MAX_LOG_STEP / max(longest, 1e-300))
        x[1:] += step[: m - 1]
        k += step[m - 1 :]
        before = noise
        noise = problem.noise(x, k, kappa) * np.sqrt(kappa)
        if max(longest, np.abs(noise / before - 1).max()) < _TOLERANCE:
            return _IteratedGains(x, k, np.asarray(np.linalg.qr(half[m - 1 :].T)[1].T), True)
    return _IteratedGains(x, k, np.full((n, n), np.inf), False)


def _half_inverse(J: Array, problem: _AllRuns) -> tuple[Array, Array]:
    """H and V: H H' inverts the normal matrix of J and prior, H V' is its pseudo-inverse."""
    prior = np.zeros((problem.n, J.shape[1]))
    prior[:, J.shape[1] - problem.n :] = np.eye(problem.n) / problem.spread
    rows = np.vstack([J, prior])
    length = np.linalg.norm(rows, axis=0)
    scale = np.where(length > 0, length, 1.0)
    U, s, Vt = np.linalg.svd(rows / scale, full_matrices=False)
    kept = s > _RELATIVE_RANK * s[0]
    return Vt[kept].T / s[kept] / scale[:, None], U[:, kept]


def _with_verdict(
    start: Array, answer: _IteratedGains, problem: _AllRuns, *, names: Sequence[str]
) -> DriveGains:
    """The gains with a note for each joint and a verdict."""
    value = start * np.exp(answer.k)
    relative = np.sqrt((answer.errors**2).sum(axis=1))
    if not answer.converged:
        unknown = ("unknown: the iteration did not converge",) * len(value)
        words = f"gains and base parameters did not converge within {_MAX_ITERATIONS} iterations"
        verdict = Verdict(doubts=(Doubt(DoubtKind.GAINS, words),))
        return DriveGains(value * np.nan, relative, "known mass", verdict, unknown)
    prior = np.minimum((relative / problem.spread) ** 2, 1.0)
    notes = tuple(
        f"{with_interval(gain, NORMAL_95 * abs(gain) * std)} Nm/A; {share:.0%} of the information"
        " is the initial guess"
        for gain, std, share in zip(value, relative, prior, strict=True)
    )
    best = 100 * relative.min()
    worst = 100 * relative.max()
    verdict = Verdict(
        f"gains from a payload of {problem.mass:g} kg, known to {best:.2g} to {worst:.2g} %"
    )
    guessed = prior > _LARGE_PRIOR_SHARE
    if guessed.any():
        which = ", ".join(np.array(names)[guessed])
        words = f"the payload hardly determines {which}: they depend on the initial guess"
        verdict = verdict.doubted(Doubt(DoubtKind.GAINS, words, blocks=False))
    return DriveGains(value, np.abs(value) * relative, "known mass", verdict, notes, answer.errors)
