"""Drive gains from motor currents of an arm without and with a payload of known mass.

With the base regressor Y_j of joint j, empty runs follow K_j i_j = Y_j pi and loaded ones

    K_j i_j = Y_j (pi + J phi + E delta),      K_j = guess_j e^k_j,      k_j ~ N(0, spread^2)

phi is the payload, whose mass is known and whose other nine numbers are not, J its Jacobian, and delta = E'
(change of pi) lets friction and offsets differ between empty and loaded runs, as `steelyard.payload` does.
Scaling pi and every K together changes nothing in an empty run, which therefore does not show the scale; the
known mass fixes it in a loaded one. The joints are tied to each other by the parameters that they share.

Unknown are x = (pi, phi, delta) and k. The measured current stays on the left, with its noise:

    guess_j i_j = e^-k_j Z_j x + noise_j,      Z = [Y, YJ, YE]

so a Gauss-Newton step has the columns e^-k_j Z_j for x and -e^-k_j Z_j x, the current as the model predicts
it, for k_j. To put the measured current there instead (K_j i_j - Z_j x = 0, linear in K) would shrink gains
by its noise (errors in variables). Rows enter through the triangular factors of each joint, and weights are
found alternately with the noise. Residuals are correlated in time, so N rows of joint j are worth N /
kappa_j: a first solution gives kappa_j, a second one weighs rows by 1 / (sigma_j sqrt(kappa_j)), against each
other and against the prior, and its normal matrix is then the inverse covariance. The noise is counted over N
- kappa_j p rows, since so many are left where p unknowns are fitted.

The prior holds each gain where the data say little. How much of what is known of k_j is the prior's,
(std of k_j / spread)^2, is stated in the note of the joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.arrays import Array
from steelyard.errors import InvalidRobot, InvalidSamples
from steelyard.identification.covariance import widening
from steelyard.identification.factor import RegressionFactor
from steelyard.identification.gains.drive_gains import DriveGains
from steelyard.identification.problem import kinds, require_same_joints
from steelyard.recording import Recording, Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.signals import Preparation, prepare
from steelyard.verdict import Doubt, DoubtKind, Verdict

_FRICTION = ("Fc", "Fv", "B")
_ROUNDS = 100
_SETTLED = 1e-9
_LONGEST_STEP = 0.5  # of the logarithm of a gain
_RELATIVE_RANK = 1e-10
_LEAST_FREEDOM = 0.2  # of the rows
_MUCH = 0.25  # of the information of a joint


@dataclass(frozen=True, eq=False)
class _Problem:
    """What the rows of all runs leave behind.

    Attributes:
        Z: triangular factors of each joint, empty above loaded, in terms of x = (phi, pi, delta), (n, r, m)
        y: the same of guess_j i_j, (n, r) [Nm]
        rows: how many rows each joint has, (n,)
        mass: of the payload, the first of x, [kg]
        spread: of the prior of k
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
        """Of the factors, (n, r) [Nm]."""
        return np.asarray(self.y - np.exp(-k)[:, None] * (self.Z @ x))

    def noise(self, x: Array, k: Array, kappa: Array) -> Array:
        """Standard deviation of each joint's noise, (n,) [Nm]; rows are correlated kappa-fold."""
        taken = kappa * self.Z.shape[2] * self.rows / max(self.rows.sum(), 1)
        freedom = np.maximum(self.rows - taken, np.maximum(_LEAST_FREEDOM * self.rows, 1.0))
        return np.asarray(np.sqrt(np.maximum((self.residuals(x, k) ** 2).sum(axis=1) / freedom, 1e-20)))

    def columns(self, x: Array, k: Array, weight: Array) -> Array:
        """The derivative of weighted predictions by all of x but the mass, then by k, (n, r, m - 1 + n)."""
        scale = (np.exp(-k) * weight)[:, None]
        by_gain = -scale[:, :, None] * (self.Z @ x)[:, :, None] * np.eye(self.n)[:, None, :]
        return np.concatenate([scale[:, :, None] * self.Z[:, :, 1:], by_gain], axis=2)


@dataclass(frozen=True, eq=False)
class _Answer:
    """Where the iteration came to rest.

    Attributes:
        x: (phi, pi, delta), (m,)
        k: logarithm of gain over guess, (n,)
        k_std: its standard deviation, (n,)
        settled: whether it did
    """

    x: Array
    k: Array
    k_std: Array
    settled: bool


def gains_from_known_mass(
    robot: RobotModel,
    empty: Sequence[Recording],
    loaded: Sequence[Recording],
    mass: float,
    *,
    guess: DriveGains | ArrayLike,
    spread: float = 0.2,
    preparation: Preparation | None = None,
) -> DriveGains:
    """The gains that make a payload as heavy as it is, from runs with motor currents.

    Args:
        robot: kinematics and friction laws
        empty: one or many recordings without the payload
        loaded: one or many recordings with it
        mass: of the payload, [kg]; its centre and inertia need not be known
        guess: where the gains are expected, (n,) [Nm/A], positive
        spread: standard deviation of a gain around its guess, relative
        preparation: how recordings become samples; the defaults of `Preparation` otherwise
    """
    start = _checked(robot, guess, mass=mass, spread=spread)
    drive = replace(robot.drive, gain=start)
    runs = [[prepare(part, preparation, drive=drive) for part in parts] for parts in (empty, loaded)]
    if not all(runs):
        raise InvalidSamples("a known mass needs at least one recording without it and one with it")
    for part in (part for parts in runs for part in parts):
        require_same_joints(robot, part)
    basis = ParameterBasis.of(robot)
    mixings = _mixings(basis)
    factors = [RegressionFactor.of(robot, basis, parts) for parts in runs]
    problem = _Problem(
        np.concatenate([f.R[:, :, :-1] @ mixing for f, mixing in zip(factors, mixings, strict=True)], axis=1),
        np.concatenate([f.R[:, :, -1] for f in factors], axis=1),
        factors[0].rows + factors[1].rows,
        mass,
        spread,
    )
    answer = _solve(problem, np.ones(robot.n))
    residuals = [
        _residuals(robot, basis, part, pi=mixing @ answer.x, k=answer.k)
        for parts, mixing in zip(runs, mixings, strict=True)
        for part in parts
    ]
    kappa = [widening([part[:, j] for part in residuals]) for j in range(robot.n)]
    answer = _solve(problem, np.array(kappa))
    return _judged(start, answer, problem, names=robot.joint_names)


def _checked(robot: RobotModel, guess: DriveGains | ArrayLike, *, mass: float, spread: float) -> Array:
    start = np.array(guess.value if isinstance(guess, DriveGains) else guess, dtype=float)
    if start.shape != (robot.n,) or not (np.isfinite(start) & (start > 0)).all():
        raise InvalidRobot(
            f"guess must be {robot.n} positive gains [Nm/A], got {start}; for a joint whose gain nobody"
            " knows, give that of a similar one and a larger spread"
        )
    if not (0 < mass < np.inf and 0 < spread < np.inf):
        raise InvalidRobot(f"mass [kg] and spread must be positive, got {mass} and {spread}")
    if robot.drive.coupling is not None:
        raise InvalidRobot(
            f"{robot.name} has coupled drives; gains from a known mass need one motor for each joint"
        )
    return start


def _mixings(basis: ParameterBasis) -> tuple[Array, Array]:
    """Base parameters of the empty and of the loaded arm from x = (phi, pi, delta), each (p, m)."""
    p = len(basis)
    E = np.eye(p)[:, np.isin(kinds(basis.short_names), _FRICTION)]
    loaded = np.column_stack([basis.payload_jacobian, np.eye(p), E])
    empty = np.column_stack([np.zeros((p, 10)), np.eye(p), np.zeros_like(E)])
    return empty, loaded


def _solve(problem: _Problem, kappa: Array) -> _Answer:
    """Gauss-Newton in x and k, weights found alternately."""
    n, m = problem.n, problem.Z.shape[2]
    x, k = np.append(problem.mass, np.zeros(m - 1)), np.zeros(n)
    noise = np.ones(n)
    for _ in range(_ROUNDS):
        J = problem.columns(x, k, 1.0 / noise).reshape(-1, m - 1 + n)
        half, shown = _half_inverse(J, problem)
        rest = np.concatenate([(problem.residuals(x, k) / noise[:, None]).ravel(), -k / problem.spread])
        step = half @ (shown.T @ rest)
        longest = float(np.abs(step[m - 1 :]).max())
        step *= min(1.0, _LONGEST_STEP / max(longest, 1e-300))
        x[1:] += step[: m - 1]
        k += step[m - 1 :]
        before, noise = noise, problem.noise(x, k, kappa) * np.sqrt(kappa)
        if max(longest, np.abs(noise / before - 1).max()) < _SETTLED:
            return _Answer(x, k, np.sqrt((half[m - 1 :] ** 2).sum(axis=1)), True)
    return _Answer(x, k, np.full(n, np.inf), False)


def _half_inverse(J: Array, problem: _Problem) -> tuple[Array, Array]:
    """H and V with H H' the inverse of the normal matrix of J and prior, and H V' its pseudo-inverse."""
    prior = np.zeros((problem.n, J.shape[1]))
    prior[:, J.shape[1] - problem.n :] = np.eye(problem.n) / problem.spread
    rows = np.vstack([J, prior])
    length = np.linalg.norm(rows, axis=0)
    scale = np.where(length > 0, length, 1.0)
    U, s, Vt = np.linalg.svd(rows / scale, full_matrices=False)
    kept = s > _RELATIVE_RANK * s[0]
    return Vt[kept].T / s[kept] / scale[:, None], U[:, kept]


def _residuals(robot: RobotModel, basis: ParameterBasis, part: Samples, *, pi: Array, k: Array) -> Array:
    chunks = robot.regressor_chunks(part.q, part.v, part.a)
    predicted = np.concatenate([basis.reduce(Y) @ pi for _, Y in chunks])
    return np.asarray(part.tau - np.exp(-k) * predicted)


def _judged(start: Array, answer: _Answer, problem: _Problem, *, names: Sequence[str]) -> DriveGains:
    """The gains with their notes and a sentence about all."""
    value = start * np.exp(answer.k)
    if not answer.settled:
        unknown = ("unknown: the iteration did not come to rest",) * len(value)
        words = f"gains and base parameters did not come to rest in {_ROUNDS} rounds"
        verdict = Verdict(doubts=(Doubt(DoubtKind.GAINS, words),))
        return DriveGains(value * np.nan, answer.k_std, "known mass", verdict, unknown)
    prior = np.minimum((answer.k_std / problem.spread) ** 2, 1.0)
    notes = tuple(
        f"{gain:.4g} +- {gain * std:.2g} Nm/A; {share:.0%} of the information is the guess's"
        for gain, std, share in zip(value, answer.k_std, prior, strict=True)
    )
    best, worst = 100 * answer.k_std.min(), 100 * answer.k_std.max()
    verdict = Verdict(f"gains from a payload of {problem.mass:g} kg, known to {best:.2g} to {worst:.2g} %")
    if (leaning := prior > _MUCH).any():
        which = ", ".join(np.array(names)[leaning])
        words = f"the payload hardly shows in {which}: they lean on the guess"
        verdict = verdict.doubted(Doubt(DoubtKind.GAINS, words, blocks=False))
    return DriveGains(value, value * answer.k_std, "known mass", verdict, notes)
