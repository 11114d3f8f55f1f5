"""How much friction differs from run to run.

Links and rotors are the same in all runs, friction is not: it changes with temperature, grease and
wear. The friction of run r is drawn from a population,

    theta_r = theta + E u_r,      u_r ~ N(0, S),      S = diag(s_k c_i)^2,

E the columns of Fc, Fv, B, Fs, Fa and Fl. The spread s_k of each kind k is relative and common to
all joints; c_i is the size that parameter i is compared with: |Fc| for Coulomb friction and
offsets, the parameter itself for the others, and at least the residual of the joint where it has
the same unit. With A_r and b_r the inner products of the rows of run r, divided by their noise
(widened by its correlation in time), theta and u_r follow from

    M_r = (E'A_r E + S^-1)^-1,   P_r = 1 - A_r E M_r E',
    theta = (sum_r P_r A_r)^-1 sum_r P_r b_r,   u_r = M_r E'(b_r - A_r theta),

and s_k from the mean of u_r^2 and of its variance (EM for the restricted likelihood, Laird and Ware
1982), with a wide prior: log s_k is normal around the logarithm of the value of experience. With
one run that value stands, one standard deviation: 10 % for Fc, B (of Fc) and Fl, 20 % for
Fv, Fs and Fa. (Between runs of weeks, Fc of a UR10e varies by 1 %, Fv and Fl by 5 %.)

A run that is not among the R that were fitted is one more draw: its friction differs from their
mean by S (1 + 1 / R) besides the error of that mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard._arrays import Array, Indices
from steelyard.identification._factor import RegressionFactor
from steelyard.identification._least_squares import half_inverse
from steelyard.robot._parameters import ParameterKind, ParameterTable

_TYPICAL_CHANGES = {
    ParameterKind.COULOMB: 0.1,
    ParameterKind.VISCOUS: 0.2,
    ParameterKind.STRIBECK: 0.2,
    ParameterKind.ASYMMETRY: 0.2,
    ParameterKind.LOAD_SHARE: 0.1,
    ParameterKind.OFFSET: 0.1,
}
"""Relative standard deviation of friction between runs, if there is one run; offsets beside Fc."""

_LOG_STD = 1.0  # of the prior of a spread: a factor of 2.7 either way
_MAX_ITERATIONS = 100
_LOG_TOLERANCE = 1e-3
_NEWTON_STEPS = 20
_MIN_NOISE = 1e-10  # [Nm]


@dataclass(frozen=True, eq=False)
class _Varying:
    """The parameters that vary between runs.

    Attributes:
        places: which parameters they are, (f,)
        kinds: index of their kind in `_TYPICAL_CHANGES`, (f,)
        sizes: what their spread is relative to, (f,)
    """

    places: Indices
    kinds: Indices
    sizes: Array

    @classmethod
    def of(cls, parameters: ParameterTable, theta: Array, noise: Array) -> _Varying:
        """Those of a fit.

        Args:
            parameters: of the fit
            theta: their values, (p,)
            noise: standard deviation of the residuals of each joint, (n,) [Nm]
        """
        joints = parameters.joints
        (coulomb,) = parameters.of_kinds_by_joint(theta, (ParameterKind.COULOMB,), len(noise))
        sizes = np.zeros(len(theta))
        kinds = np.full(len(theta), -1, dtype=np.intp)
        for k, kind in enumerate(_TYPICAL_CHANGES):
            which = parameters.of_kind(kind)
            kinds[which] = k
            sizes[which] = np.abs(theta[which])
            if kind in (ParameterKind.COULOMB, ParameterKind.OFFSET):
                sizes[which] = np.abs(coulomb[joints[which]])
            if kind is not ParameterKind.LOAD_SHARE:
                sizes[which] = np.hypot(sizes[which], noise[joints[which]])
        places = np.flatnonzero(sizes > 0)
        return cls(places, kinds[places], sizes[places])


def spread_between_runs(
    parameters: ParameterTable,
    theta: Array,
    noise: Array,
    inflation: Array,
    factor: RegressionFactor,
) -> Array:
    """Standard deviation of each parameter between runs, (p,) [SI]; 0 for links and rotors.

    Args:
        parameters: of the fit
        theta: their values with one friction for all runs, (p,)
        noise: standard deviation of the residuals of each joint, (n,) [Nm]
        inflation: by which correlation in time widens the variance, (n,)
        factor: of the rows, one for each joint of each run
    """
    varying = _Varying.of(parameters, theta, noise)
    spread = np.zeros(len(theta))
    experience = np.array(list(_TYPICAL_CHANGES.values()))
    relative = experience
    if len(factor.rows) > len(noise):
        wide = noise * np.sqrt(np.maximum(inflation, 1.0))
        relative = _restricted_likelihood(factor, np.maximum(wide, _MIN_NOISE), varying, experience)
    spread[varying.places] = relative[varying.kinds] * varying.sizes
    return spread


def _restricted_likelihood(
    factor: RegressionFactor, noise: Array, varying: _Varying, experience: Array
) -> Array:
    """The relative spread of each kind, (kinds,), by expectation and maximisation."""
    n = len(noise)
    p = factor.p
    weighted = (factor.R / np.resize(noise, len(factor.R))[:, None, None]).reshape(
        -1, n, p + 1, p + 1
    )
    grams = np.einsum("rjki,rjkl->ril", weighted, weighted)
    relative = experience
    for _ in range(_MAX_ITERATIONS):
        before = relative
        squares = _expected_squares(grams, varying, relative)
        relative = np.array(
            [
                _likeliest(squares[varying.kinds == k], len(grams), before[k], experience[k])
                for k in range(len(experience))
            ]
        )
        if np.abs(np.log(relative / before)).max() < _LOG_TOLERANCE:
            break
    return relative


def _expected_squares(grams: Array, varying: _Varying, relative: Array) -> Array:
    """The sum over runs of the expected squares of u_r over its size, (f,).

    Args:
        grams: [A_r b_r; b_r' ...] of each run, (R, p + 1, p + 1)
        relative: spread of each kind, (kinds,)
    """
    f = varying.places
    A = grams[:, :-1, :-1]
    b = grams[:, :-1, -1]
    precision = np.diag((relative[varying.kinds] * varying.sizes) ** -2.0)
    M = np.linalg.inv(A[:, f[:, None], f] + precision)
    taken = A[:, :, f] @ M
    information = (A - taken @ A[:, f]).sum(axis=0)
    pull = (b - np.einsum("rpf,rf->rp", taken, b[:, f])).sum(axis=0)
    half = half_inverse(information)
    theta = half @ (half.T @ pull)
    u = np.einsum("rfg,rg->rf", M, b[:, f] - A[:, f] @ theta)
    through = M @ (A[:, f] @ half)
    variance = np.einsum("rff->rf", M) + (through**2).sum(axis=2)
    return np.asarray((u**2 + variance).sum(axis=0) / varying.sizes**2)


def _likeliest(squares: Array, runs: int, start: float, experience: float) -> float:
    """The spread s with the largest likelihood and prior, from expected squares of draws.

    Maximises -N log s - sum(squares) / (2 s^2) - (log s - log experience)^2 / (2 _LOG_STD^2).
    """
    count = runs * len(squares)
    total = float(squares.sum())
    x = np.log(start)
    for _ in range(_NEWTON_STEPS):
        pull = total * np.exp(-2 * x)
        slope = -count + pull - (x - np.log(experience)) / _LOG_STD**2
        x += slope / (2 * pull + 1 / _LOG_STD**2)
    return float(np.exp(x))
