"""A covariance that holds when residuals are correlated in time, as those of real arms are.

With weights w_g and residuals of covariance Gamma_g in group g (a joint of a recording), the estimate
A^-1 sum_g w_g^2 Y_g'tau_g has the covariance

    A^-1 M A^-1,    M = sum_g w_g^4 Y_g' Gamma_g Y_g.

Gamma_g is that of a stationary process, an autoregression fitted to the residuals (its order chosen by the
Bayesian information criterion): a few numbers, where a free estimate of M would need as many independent
stretches of data as there are unknowns. With the spectrum S of the autoregression and the discrete Fourier
transform F of the rows, padded to twice their length, Y' Gamma Y is the mean of S |F|^2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_toeplitz

from steelyard.identification.problem import Rows

__all__ = ["autoregression", "correlated_information", "correlation_inflation"]

Array = NDArray[np.float64]

_HIGHEST_ORDER = 24


def correlated_information(rows: Rows, theta: Array, weights: Array, noise: Array) -> tuple[Array, Array]:
    """M of one set of samples, (p, p), and how much correlation widens it for slow columns, (n,).

    Args:
        rows: in the order of time
        theta: the unknowns, (p,)
        weights: of the joints' rows, (n,)
        noise: standard deviation of the joints' residuals, (n,) [Nm]
    """
    p = rows.Y.shape[2]
    M, inflation = np.zeros((p, p)), np.ones(len(weights))
    residuals = np.where(rows.usable, rows.tau - rows.Y @ theta, 0.0)
    for j, (w, std) in enumerate(zip(weights, noise, strict=True)):
        columns = np.flatnonzero(rows.Y[:, j].any(axis=0))
        Y = np.where(rows.usable[:, j, None], rows.Y[:, j][:, columns], 0.0)
        spectrum = _unit_spectrum(residuals[:, j], 2 * len(Y))
        F = np.fft.rfft(Y, 2 * len(Y), axis=0) * (w**2 * std * np.sqrt(spectrum))[:, None]
        halves = np.vstack([F.real, F.imag])
        once = np.vstack([F[[0, -1]].real, F[[0, -1]].imag])
        M[np.ix_(columns, columns)] += (2 * halves.T @ halves - once.T @ once) / (2 * len(Y))
        inflation[j] = spectrum[0]
    return M, inflation


def autoregression(x: Array) -> tuple[Array, float]:
    """The coefficients of the autoregression of a signal, (order,), and the variance of its innovations.

    Args:
        x: in the order of time, (N,)
    """
    N = len(x)
    centred = x - x.mean()
    highest = min(_HIGHEST_ORDER, N // 10)
    size = 2 ** int(np.ceil(np.log2(2 * N)))
    gamma = np.fft.irfft(np.abs(np.fft.rfft(centred, size)) ** 2)[: highest + 1] / N
    best, best_score = (np.zeros(0), float(gamma[0])), np.inf
    for order in range(highest + 1):
        a = solve_toeplitz(gamma[:order], gamma[1 : order + 1]) if order else np.zeros(0)
        variance = float(gamma[0] - a @ gamma[1 : order + 1])
        if variance <= 0:
            break
        score = N * np.log(variance) + order * np.log(N)
        if score < best_score:
            best, best_score = (a, variance), score
    return best


def correlation_inflation(residuals: Sequence[Array]) -> Array:
    """How many times correlation widens the variance of a mean of each joint's residuals, (n,).

    Args:
        residuals: of one or many recordings, each in the order of time, (N, n)
    """
    lengths = [len(part) for part in residuals]
    kappa = [[_unit_spectrum(column, 64)[0] for column in part.T] for part in residuals]
    return np.asarray(np.average(kappa, axis=0, weights=lengths))


def _unit_spectrum(x: Array, size: int) -> Array:
    """The spectrum of a signal at the frequencies of `rfft(size)`, for unit variance, (size // 2 + 1,)."""
    if len(x) < 64 or not x.any():
        return np.ones(size // 2 + 1)
    a, _ = autoregression(x)
    shape = 1.0 / np.abs(np.fft.rfft(np.concatenate([[1.0], -a]), size)) ** 2
    fine = 1.0 / np.abs(np.fft.rfft(np.concatenate([[1.0], -a]), 8192)) ** 2
    whole = (2 * fine.sum() - fine[0] - fine[-1]) / 8192
    return np.asarray(shape / whole)
