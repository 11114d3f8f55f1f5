"""The model of the empty arm as a prior for the loaded arm: values, noise, and consistency.

The prior is rows [Z z] of unit noise, Z x = z, for the unknowns x. Loaded rows of weights w_g (a
joint of a run each) and the prior give

    x = A^-1 (sum_g w_g^2 Y_g'tau_g + Z'z),      A = sum_g w_g^2 Y_g'Y_g + Z'Z.

**Contradiction.** The loaded runs move the prior by r = Z x - z. If the model is right, z has unit
noise and the noise e of the torques gives u = sum_g w_g^2 Y_g'e_g the covariance M_u, so

    r = Z A^-1 u - (1 - P) e_z,   P = Z A^-1 Z'      =>      E r r' = Z C Z' + 1 - 2 P,

C = A^-1 (M_u + Z'Z) A^-1 the covariance of x. It differs from 1: a prior moves less in directions
that loaded rows hardly determine, and more if their noise is correlated in time, which their
weights ignore. The contradiction is |r| over the root of the trace of E r r', about 1 if the model
is right. M_u is taken from the residuals of the loaded runs, but is at most that of the noise of
the empty arm: large residuals of a wrong model would otherwise hide the contradiction.

A contradiction c above 1 says that z is less certain than its unit noise, by the factor c (Birge).
The residuals of the loaded runs show their own noise, so only what the prior contributes grows:
(c^2 - 1) A^-1 Z'Z A^-1 is added to C, for each of both priors below with its own c. Above 1.5,
which noise hardly ever reaches, the model does not describe the loaded runs, and neither do their
residuals: then, and where the parts of C are not known (a fleet), (c^2 - 1) C is added.

**Friction** of the loaded run is one more draw from the population of the empty runs
(`identification._between_runs`): its covariance C_ff grows by S (1 + 1 / R). Rows of the arm alone
and of friction given the arm,

    f - C_fa C_aa^-1 a,      covariance C_ff + S (1 + 1 / R) - C_fa C_aa^-1 C_af,

are independent, so each has a contradiction of its own; the larger of both counts. Where friction
alone is contradicted by more than twice the noise, the run is not from that population (a cold arm,
new grease): its friction is then left free, as if the population were unknown.

**Noise.** Correlated noise of variance s^2 acts on columns as slow as the motion like white noise
of variance kappa s^2, kappa the inflation of the model (its spectrum at zero frequency over the
mean). Two things make the plain product too small when runs are short:

- The fit of the empty arm absorbed part of the noise, kappa rows for each fitted parameter, so that
  the residuals of joint j have kappa p_j degrees of freedom less than rows, where p_j = tr(A^-1
  A_j) of A = sum_j A_j:

      s^2 = sum of squares / (N_j - kappa p_j)              (for white noise the usual N - p)

- kappa comes from the nine lowest frequencies of each run, chi-square with 17 degrees of freedom,
  less those that the fit used there: about half of its parameters, as the scatter of kappa in
  simulated runs shows. The variance of an estimate whose weights come from variances with nu
  degrees of freedom is larger than computed by nu / (nu - 4) (Cochran 1937: joints that happen to
  look quiet get too much weight). White noise is known from all frequencies, so only the share
  (kappa - 1) / kappa of the variance is that uncertain.

**Gains.** If motor currents were measured, the gains of the drives are uncertain: cause c, of one
drive or shared by all, moves the logarithm of gain j by s_jc. A wrong gain is wrong in the empty
and in the loaded runs, so x moves with the logarithm of gain j by

    d_j = A^-1 (sum over its groups of w_g^2 Y_g'tau_g + Z'Z x_j)

where x_j is the change of the empty arm's parameters, and D S (D S)' is added to C, D = [d_1 ...
d_n]. Gains that have changed since the empty runs (magnets weaken as they warm up) are wrong in the
loaded runs only: e_j is d_j without x_j. Drives warm up together, so with the standard deviation
delta of that drift delta^2 e e' is added too, e = sum_j e_j. Drift does not cancel: one percent of
drift moves 3 kg on a UR10e by 2.7 %, one percent of gain error in all runs by 1 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard._arrays import Array, Indices, Mask
from steelyard._units import STANDARD_GRAVITY
from steelyard.identification import DynamicModel
from steelyard.identification._least_squares import Solution, solve_weighted
from steelyard.robot import DriveModel, RobotModel

_MIN_ROW_SIZE = 1e-12  # smaller rows, over the largest, are dropped
_NOMINAL_GRAVITY = (STANDARD_GRAVITY, 9.80665)  # [m/s^2]
_LOCAL_GRAVITY_STD = 0.0015  # relative, over the Earth
_EXACT_STD = 1e-6  # of a parameter that was set, not estimated
_MAX_CHANCE_CONTRADICTION = 1.5  # of 210 sound simulated runs of arms that have the law, none more
_MIN_TESTED_DIRECTIONS = 1.0  # of the arm's parameters; lower limit of the expected square
_SPECTRUM_FREEDOM = 17.0  # at zero frequency: (P_0 + 2 P_1 + ... + 2 P_8) / 17
_LOW_FREQUENCY_SHARE = 0.5  # of the fitted parameters, which use degrees of freedom there
_MIN_FREEDOM = 8.0  # of the spectrum at zero frequency
_MIN_REMAINING_SHARE = 0.25  # of the rows, lower limit of the degrees of freedom


MAX_FRICTION_CONTRADICTION = 2.0
"""Of the friction of the empty runs; beyond, friction of the loaded run is left free."""

OTHER_FRICTION = "friction differs from that of the empty runs and was estimated anew"
"""Remark on a run whose friction was left free."""


def arm_rows(model: DynamicModel, without: Mask | None = None) -> Array:
    """Rows [Z z] of unit noise: the empty runs' information on the arm's parameters, (r, p + 1).

    Z'Z is the inverse of the covariance in another run. Runs that do not determine some of the
    parameters may still determine combinations: then the rows are those of the triangular factor
    after elimination of the other parameters, widened by the median widening of the determined
    parameters.

    Args:
        without: parameters to leave free, (p,); those that change from day to day by default
    """
    estimate = model.estimate
    if without is None:
        without = estimate.parameters.daily
    kept = np.flatnonzero(~without)
    if not np.isfinite(np.diag(estimate.covariance)[kept]).all():
        return _combinations(model, kept)
    C = model.covariance_of_other_runs
    return _whitened(C[np.ix_(kept, kept)], kept, estimate.value)


def friction_rows(model: DynamicModel) -> Array:
    """Rows [Z z] of unit noise: friction of another run, given the arm's parameters, (f, p + 1).

    None where the empty runs do not determine it, or where its spread between runs is unknown.
    """
    estimate = model.estimate
    p = len(estimate.value)
    C = model.covariance_of_other_runs
    if not np.isfinite(np.diag(C)).all():
        return np.zeros((0, p + 1))
    own = np.flatnonzero(estimate.parameters.daily)
    arm = np.flatnonzero(~estimate.parameters.daily)
    firm = arm[np.diag(C)[arm] > 0]
    slope = np.linalg.solve(C[np.ix_(firm, firm)], C[np.ix_(firm, own)]).T
    rows = _whitened(C[np.ix_(own, own)] - slope @ C[np.ix_(firm, own)], own, estimate.value)
    across = rows[:, own] @ slope
    rows[:, firm] = -across
    rows[:, -1] -= across @ estimate.value[firm]
    return rows


def _whitened(covariance: Array, places: Indices, value: Array) -> Array:
    """Rows [Z z] of unit noise for some of p parameters, (k, p + 1).

    Args:
        covariance: of these parameters, (k, k); zero for those that were set, not estimated
        places: which they are, (k,)
        value: of all parameters, (p,)
    """
    exact = np.diag(covariance) == 0
    whitening = np.diag(np.full(len(places), 1.0 / _EXACT_STD))
    free = covariance[np.ix_(~exact, ~exact)]
    whitening[np.ix_(~exact, ~exact)] = np.linalg.inv(np.linalg.cholesky(free))
    rows = np.zeros((len(places), len(value) + 1))
    rows[:, places] = whitening
    rows[:, -1] = whitening @ value[places]
    return rows


def _combinations(model: DynamicModel, kept: Indices) -> Array:
    """The rows of `arm_rows` where the empty runs determine combinations of parameters only."""
    p = len(model.estimate.value)
    estimate = model.estimate
    solution = solve_weighted(model.factor)
    known = np.isfinite(np.diag(estimate.covariance)) & (np.diag(solution.inverse) > 0)
    widening = np.median(estimate.std[known] / np.sqrt(np.diag(solution.inverse)[known]))
    others = np.setdiff1d(np.arange(p), kept)
    order = np.concatenate([others, kept, [p]])
    triangle = np.asarray(np.linalg.qr(model.factor.weighted(solution.weights)[:, order])[1])
    rows = np.zeros((len(kept), p + 1))
    rows[:, kept] = triangle[len(others) : p, len(others) : p] / widening
    rows[:, -1] = triangle[len(others) : p, p] / widening
    return np.asarray(rows[np.abs(rows[:, :-1]).max(axis=1) > _MIN_ROW_SIZE * np.abs(rows).max()])


def contradiction(
    prior: Array, value: Array, inverse: Array, covariances: Sequence[Array]
) -> float:
    """How far a solution moves the prior: RMS over the RMS expected by noise.

    Args:
        prior: rows [Z z], (r, m + 1)
        value: the solution x, (m,)
        inverse: A^-1, (m, m)
        covariances: of the solution by alternative estimates of the noise, (m, m) each, infinite
            where unknown; the smallest expected square is used
    """
    Z = prior[:, :-1]
    moved = Z @ value - prior[:, -1]
    expected = len(Z) - 2.0 * _trace(Z, inverse) + min(_trace(Z, C) for C in covariances)
    return float(np.sqrt(moved @ moved / max(expected, _MIN_TESTED_DIRECTIONS)))


def _trace(Z: Array, C: Array) -> float:
    """The trace of Z C Z' over the columns with a finite variance."""
    known = np.isfinite(np.diag(C))
    return float(np.sum(Z[:, known] @ C[np.ix_(known, known)] * Z[:, known]))


def slow_noise(model: DynamicModel) -> Array:
    """Standard deviation of white noise with the same effect on slow columns, (n,)."""
    n = model.robot.n
    estimate = model.estimate
    kappa = np.maximum(estimate.inflation, 1.0)
    fitted, rows = _fitted(model)
    runs = max(len(model.factor.rows) // n, 1)
    freedom = np.maximum(_SPECTRUM_FREEDOM * runs - _LOW_FREQUENCY_SHARE * fitted, _MIN_FREEDOM)
    freedom *= (kappa / np.maximum(kappa - 1.0, 1e-9)) ** 2
    assumed = rows * (1.0 - model.factor.p / max(rows.sum(), 1.0))
    left = np.maximum(rows - kappa * fitted, np.maximum(_MIN_REMAINING_SHARE * rows, 1.0))
    restored = np.maximum(assumed / left, 1.0)
    return np.asarray(estimate.noise * np.sqrt(kappa * restored * freedom / (freedom - 4.0)))


def _fitted(model: DynamicModel) -> tuple[Array, Array]:
    """The number of parameters that each joint's rows have fitted, and of rows, (n,) each."""
    factor = model.factor
    n = model.robot.n
    weights = np.resize(1.0 / np.maximum(model.estimate.noise, 1e-10), len(factor.rows))
    Z = factor.R[:, :, :-1] * weights[:, None, None]
    A = np.einsum("gip,giq->pq", Z, Z)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(A), 1e-300))
    inverse = np.linalg.pinv(A * np.outer(scale, scale), rcond=1e-12, hermitian=True)
    inverse *= np.outer(scale, scale)
    fitted = np.einsum("gip,pq,giq->g", Z, inverse, Z, optimize=True)
    return fitted.reshape(-1, n).sum(axis=0), factor.rows.reshape(-1, n).sum(axis=0).astype(float)


def friction_share(inverse: Array, mass: int, friction: Mask) -> float:
    """The share of the variance of a mass that would vanish if friction were known.

    Args:
        inverse: covariance of all unknowns up to a factor, (m, m)
        mass: index of the mass
        friction: which unknowns are friction, (m,)
    """
    across = inverse[mass, friction]
    among = inverse[np.ix_(friction, friction)]
    scale = 1.0 / np.sqrt(np.maximum(np.diag(among), 1e-300))
    known = np.linalg.pinv(among * np.outer(scale, scale), rcond=1e-12, hermitian=True)
    removed = (across * scale) @ known @ (across * scale)
    return float(np.clip(removed / max(inverse[mass, mass], 1e-300), 0.0, 1.0))


def by_contradiction(covariance: Array, contradiction: float) -> Array:
    """What a contradicted prior adds to a covariance, of the same shape.

    Args:
        covariance: of which it grows: all, or what the prior contributes
        contradiction: see above
    """
    if contradiction <= 1.0:  # infinite variances times zero are not defined
        return np.zeros_like(covariance)
    return np.asarray((contradiction**2 - 1.0) * covariance)


def by_contradictions(
    covariance: Array, effect: Array, priors: Sequence[tuple[float, Array]]
) -> Array:
    """What several contradicted priors add to the covariance of a payload, (10, 10).

    Args:
        covariance: of the payload by noise, (10, 10)
        effect: A^-1 in the columns of the payload, (m, 10)
        priors: the contradiction and the rows [Z z] of each, (r, m + 1)
    """
    largest = max(times for times, _ in priors)
    if largest > _MAX_CHANCE_CONTRADICTION:
        return by_contradiction(covariance, largest)
    added = np.zeros((10, 10))
    for times, rows in priors:
        moved = rows[:, :-1] @ effect
        added += by_contradiction(moved.T @ moved, times)
    return added


def widened(
    covariance: Array,
    drive: DriveModel,
    *,
    per_gain: Array,
    per_drift: Array,
    contradicted: Array,
    friction: float,
) -> tuple[Array, Array | None, dict[str, float]]:
    """A payload's covariance with all errors, its error by gains, and the shares of the variance.

    Args:
        covariance: by noise, (10, 10); infinite where unknown
        drive: with the uncertainty of its gains
        per_gain: change of the payload with the logarithm of each gain, (10, n)
        per_drift: the same for gains that change in the loaded runs only, (10, n)
        contradicted: what contradictions add to the covariance, (10, 10)
        friction: share of the mass's variance that would vanish if friction were known
    """
    errors = drive.gain_errors
    if errors.any():
        gain_error = np.asarray(per_gain @ errors)
    else:
        gain_error = None
    drift = (drive.gain_drift or 0.0) * per_drift.sum(axis=1)
    noise = float(covariance[0, 0])
    parts = {
        "noise": (1.0 - friction) * noise,
        "friction": friction * noise + float(contradicted[0, 0]),
        "gains": 0.0 if gain_error is None else float(gain_error[0] @ gain_error[0]),
        "drift": float(drift[0] ** 2),
    }
    total = sum(parts.values())
    if 0 < total < np.inf:
        shares = {name: part / total for name, part in parts.items()}
    else:
        shares = {}
    wide = covariance + contradicted + np.outer(drift, drift)
    return wide if gain_error is None else wide + gain_error @ gain_error.T, gain_error, shares


def shifted(
    covariance: Array, shares: Mapping[str, float], name: str, shift: Array | None
) -> tuple[Array, dict[str, float]]:
    """A payload's covariance and shares with one more cause.

    Args:
        covariance: without it, (10, 10)
        shares: of the mass's variance, without it
        name: of the cause
        shift: change of the payload with one standard deviation of it, (10,); None for no effect
    """
    if shift is None:
        return covariance, dict(shares)
    return enlarged(covariance, shares, name, np.outer(shift, shift))


def enlarged(
    covariance: Array, shares: Mapping[str, float], name: str, added: Array
) -> tuple[Array, dict[str, float]]:
    """A payload's covariance and shares with the covariance of one more cause.

    Args:
        covariance: without it, (10, 10)
        shares: of the mass's variance, without it
        name: of the cause
        added: covariance by the cause, (10, 10)
    """
    wide = covariance + added
    known = np.isfinite(wide[0, 0]) and wide[0, 0] > 0
    if known:
        rest = float(covariance[0, 0] / wide[0, 0])
    else:
        rest = 1.0
    if not shares:
        return wide, {}
    return wide, {part: rest * share for part, share in shares.items()} | {name: 1.0 - rest}


def by_gravity(robot: RobotModel, value: Array) -> Array | None:
    """The change of a payload with one standard deviation of local gravity, (10,), or None.

    A size of 9.81 or 9.80665 m/s^2 is nominal; from the equator to the poles it is 9.780 to 9.832.
    For another size, which was measured, there is no change.

    Args:
        value: the ten numbers, (10,)
    """
    size = float(np.linalg.norm(robot.gravity_base))
    if not np.isclose(size, _NOMINAL_GRAVITY, rtol=1e-9, atol=0.0).any():
        return None
    return np.append(_LOCAL_GRAVITY_STD * value[:4], np.zeros(6))


def through_prior(model: DynamicModel, solution: Solution, prior: Array) -> Array:
    """The change of a solution with the gains through the prior of the empty runs, (m, n).

    Args:
        solution: of m unknowns, the parameters of the model first
        prior: rows [Z z] of the empty runs, (r, m + 1)
    """
    return _through(model.gain_response, solution, prior)


def motion_through_prior(model: DynamicModel, solution: Solution, prior: Array) -> Array:
    """The change of a solution with noise of the motion through the prior of the empty runs, (m,).

    Args:
        solution: of m unknowns, the parameters of the model first
        prior: rows [Z z] of the empty runs, (r, m + 1)
    """
    if model.motion_shift is None:
        shift = np.zeros(len(model.estimate.value))
    else:
        shift = model.motion_shift
    return _through(shift[:, None], solution, prior)[:, 0]


def _through(of_model: Array, solution: Solution, prior: Array) -> Array:
    """The change of a solution, (m, k), with changes of the model's parameters, (p, k)."""
    moved = np.zeros((prior.shape[1] - 1, of_model.shape[1]))
    moved[: len(of_model)] = of_model
    Z = prior[:, :-1]
    return np.asarray(solution.inverse @ (Z.T @ (Z @ moved)))
