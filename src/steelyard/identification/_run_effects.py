"""The fit of several runs whose friction differs from run to run.

Links, rotors and shapes are common to all runs, friction is not (`_between_runs`):

    theta_r = theta + E u_r,      u_r ~ N(0, S).

One friction for all runs would leave its differences in the residuals, where they look like noise
with a long memory, and widen the covariance of the links far too much. With A_r and b_r the inner
products of the rows of run r, divided by their noise, and rows [Z z] of prior knowledge,

    M_r = (E'A_r E + S^-1)^-1,                      P_r = 1 - A_r E M_r E',
    H = (sum_r P_r A_r + Z'Z)^-1,                   theta = H (sum_r P_r b_r + Z'z),
    u_r = M_r E'(b_r - A_r theta),                  T_r = 1 - E M_r E'A_r,

and the parameters theta_r of a run have the covariance T_r H T_r' + E M_r E'. The estimate is their
mean over the R runs. It is linear in the b_r and z,

    mean of theta_r = sum_r K_r b_r + L z,    K_r = T H P_r + E M_r E' / R,    L = T H Z',

T the mean of T_r. So noise of covariance N_r in b_r, unit noise in z and the scatter of friction
give its distance from the true mean of theta_r the covariance

    sum_r K_r N_r K_r' + sum_r D_r S D_r' + L L',    D_r = K_r A_r E - E / R.

Weights are one over the noise of each joint in each run, and N_r has the spectrum of the residuals
of run r, as in `_covariance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard._arrays import Array, Indices
from steelyard.identification._covariance import JointSpectra
from steelyard.identification._factor import RegressionFactor
from steelyard.identification._least_squares import half_inverse
from steelyard.identification._problem import Rows

_MAX_ITERATIONS = 30
_SPECTRUM_ITERATIONS = 3
_WEIGHT_TOLERANCE = 1e-6  # smaller relative changes of all weights end the iteration
_MIN_NOISE = 1e-10  # [Nm]


@dataclass(frozen=True, eq=False)
class RunEffects:
    """A fit with friction of each run.

    Attributes:
        value: mean over the runs of all m unknowns, (m,)
        covariance: of the mean, (m, m)
        noise: standard deviation of the residuals of each joint in each run, (R, n) [Nm or N]
        inflation: by which correlation in time widens the variance, (n,)
    """

    value: Array
    covariance: Array
    noise: Array
    inflation: Array


@dataclass(frozen=True, eq=False)
class _RunSolution:
    """Solution of the normal equations of all runs, in the letters of the module.

    Attributes:
        A: inner products of each run, (R, m, m)
        E: columns of friction, (m, f)
        M: (R, f, f)
        H: (m, m)
        own: theta_r, (R, m)
    """

    A: Array
    E: Array
    M: Array
    H: Array
    own: Array

    @classmethod
    def of(cls, A: Array, b: Array, prior: Array, friction: Indices, spread: Array) -> _RunSolution:
        """The solution.

        Args:
            A: inner products of each run, (R, m, m)
            b: of the rows with the torques, (R, m)
            prior: rows [Z z] of unit noise, (r, m + 1)
            friction: which unknowns differ from run to run, (f,)
            spread: their standard deviation between runs, (f,)
        """
        E = np.eye(A.shape[1])[:, friction]
        M = np.linalg.inv(A[:, friction[:, None], friction] + np.diag(spread**-2.0))
        taken = A[:, :, friction] @ M  # A_r E M_r
        information = (A - taken @ A[:, friction]).sum(axis=0) + prior[:, :-1].T @ prior[:, :-1]
        pull = (b - np.einsum("rmf,rf->rm", taken, b[:, friction])).sum(axis=0)
        half = half_inverse(information)
        H = half @ half.T
        theta = H @ (pull + prior[:, :-1].T @ prior[:, -1])
        u = np.einsum("rfg,rg->rf", M, b[:, friction] - A[:, friction] @ theta)
        return cls(A, E, np.asarray(M, float), H, theta + u @ E.T)

    @property
    def spreading(self) -> Array:
        """E M_r E' of each run, (R, m, m)."""
        return np.asarray(self.E @ self.M @ self.E.T)

    @property
    def to_own(self) -> Array:
        """T_r of each run, (R, m, m)."""
        return np.asarray(np.eye(len(self.E)) - self.spreading @ self.A)

    @property
    def own_covariance(self) -> Array:
        """The covariance of theta_r, (R, m, m)."""
        T = self.to_own
        return np.asarray(T @ self.H @ np.swapaxes(T, 1, 2) + self.spreading)

    def covariance_of_mean(self, noise: Array, prior: Array, spread: Array) -> Array:
        """The covariance of the mean of theta_r, (m, m).

        Args:
            noise: N_r of each run, (R, m, m)
            prior: rows [Z z] of unit noise, (r, m + 1)
            spread: standard deviation of friction between runs, (f,)
        """
        runs = len(self.A)
        through = self.to_own.mean(axis=0) @ self.H  # T H
        P = np.swapaxes(self.to_own, 1, 2)
        K = through @ P + self.spreading / runs
        D = K @ self.A @ self.E - self.E / runs
        L = through @ prior[:, :-1].T
        by_noise = np.einsum("rij,rjk,rlk->il", K, noise, K, optimize=True)
        by_friction = np.einsum("rif,f,rjf->ij", D, spread**2, D)
        return np.asarray(by_noise + by_friction + L @ L.T)


def with_run_effects(
    rows: Sequence[Rows], prior: Array, friction: Indices, spread: Array, noise: Array
) -> RunEffects:
    """The fit of runs with friction of each.

    Args:
        rows: of each run, in the order of time, in m columns
        prior: rows [Z z] of unit noise, (r, m + 1)
        friction: which unknowns differ from run to run, (f,)
        spread: their standard deviation between runs, (f,)
        noise: initial standard deviation of the residuals, (R, n) [Nm or N]
    """
    grams = np.array([part.grams for part in rows])
    counts = np.array([part.usable.sum(axis=0) for part in rows])
    for _ in range(_MAX_ITERATIONS):
        before = noise
        whole = np.einsum("rj,rjab->rab", np.maximum(noise, _MIN_NOISE) ** -2.0, grams)
        solved = _RunSolution.of(whole[:, :-1, :-1], whole[:, :-1, -1], prior, friction, spread)
        noise = _noise(solved, grams, counts, before)
        if np.abs(before / np.maximum(noise, _MIN_NOISE) - 1).max() < _WEIGHT_TOLERANCE:
            break
    groups = [JointSpectra.of_run(part) for part in rows]
    spectra = _spectra(groups, solved, prior, friction, spread)
    weights = np.maximum(before, _MIN_NOISE) ** -4.0
    N = np.array(
        [
            sum(w * group.quadratic(S) for w, group, S in zip(*run, strict=True))
            for run in zip(weights, groups, spectra, strict=True)
        ]
    )
    covariance = solved.covariance_of_mean(N, prior, spread)
    inflation = [[S[0] / max(float(np.mean(S)), 1e-300) for S in run] for run in spectra]
    return RunEffects(
        solved.own.mean(axis=0),
        (covariance + covariance.T) / 2,
        noise,
        np.mean(inflation, axis=0),
    )


def from_factor(
    factor: RegressionFactor, noise: Array, friction: Indices, spread: Array
) -> tuple[Array, Array]:
    """The mean over runs of all m unknowns, (m,), and its covariance by white noise, (m, m).

    Args:
        factor: of the rows, one for each joint of each run, in m columns
        noise: standard deviation of the residuals of each joint, (n,) [Nm or N]
        friction: which unknowns differ from run to run, (f,)
        spread: their standard deviation between runs, (f,)
    """
    n = len(noise)
    weighted = factor.R / np.resize(np.maximum(noise, _MIN_NOISE), len(factor.R))[:, None, None]
    rows = weighted.reshape(-1, n * weighted.shape[1], weighted.shape[2])
    grams = np.swapaxes(rows, 1, 2) @ rows
    nothing = np.zeros((0, grams.shape[1]))
    A = grams[:, :-1, :-1]
    solved = _RunSolution.of(A, grams[:, :-1, -1], nothing, friction, spread)
    return solved.own.mean(axis=0), solved.covariance_of_mean(A, nothing, spread)


def _noise(solved: _RunSolution, grams: Array, counts: Array, before: Array) -> Array:
    """Standard deviation of the residuals of each joint in each run, (R, n).

    Args:
        grams: [Y tau]'[Y tau] of each joint of each run, (R, n, m + 1, m + 1)
        counts: number of rows, (R, n)
        before: standard deviations by which the rows were weighted, (R, n)
    """
    minus = np.concatenate([solved.own, -np.ones((len(solved.own), 1))], axis=1)
    squares = np.einsum("ra,rjab,rb->rj", minus, grams, minus, optimize=True)
    fitted = np.einsum("rab,rjab->rj", solved.own_covariance, grams[:, :, :-1, :-1], optimize=True)
    freedom = counts - fitted / np.maximum(before, _MIN_NOISE) ** 2
    freedom = np.maximum(freedom, np.maximum(counts / 4, 1.0))
    return np.asarray(np.sqrt(np.maximum(squares, 0.0) / freedom))


def _spectra(
    groups: Sequence[Sequence[JointSpectra]],
    solved: _RunSolution,
    prior: Array,
    friction: Indices,
    spread: Array,
) -> list[list[Array]]:
    """The spectra of the noise of each joint in each run, by generalised least squares."""
    nothing = np.zeros(solved.H.shape)
    spectra = [
        [group.spectrum(own, nothing) for group in run]
        for run, own in zip(groups, solved.own, strict=True)
    ]
    for _ in range(_SPECTRUM_ITERATIONS):
        sums = [
            JointSpectra.sums(run, each, len(nothing))
            for run, each in zip(groups, spectra, strict=True)
        ]
        A = np.array([each[0] for each in sums])
        b = np.array([each[1] for each in sums])
        again = _RunSolution.of(A, b, prior, friction, spread)
        spectra = [
            [group.spectrum(own, G) for group in run]
            for run, own, G in zip(groups, again.own, again.own_covariance, strict=True)
        ]
    return spectra
