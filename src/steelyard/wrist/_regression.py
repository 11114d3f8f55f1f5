"""The regression of the dynamic stage: noisy wrench, noisy regressor, exact columns.

    wrench_k = Y(x_k) phi + E_k eta + e_k,    x_k = true features + d_k,   cov e = Sw,  cov d_k =
    Sx_k

Y is linear in x (`_regressor`), so Y(x_k) has the errors T d_k, and the residual of the true
parameters has the covariance S_k(phi) = Sw + B Sx_k B', B = T phi. The columns E (zero drift, tilt)
are exact. Prior knowledge, for example from the static stage, is given by the information L and the
value theta0 of theta = (phi, eta).

An estimate theta at which a sum of scores s_k(theta) vanishes has the covariance H^-1 V H^-1, H the
derivative of that sum and V the covariance of the sum at the truth: V is the sum over lags of the
scores' autocovariance, not N times their variance. Errors of a low-passed wrench are correlated
over its window (V larger), those of a twice differentiated encoder are anti-correlated (V smaller);
the scores contain both. The lags are weighted by Parzen's window, whose length follows from the
persistence of the scores (Andrews 1991, AR(1)).

**Noise of the wrench.** Errors in variables need the ratio of two noises, and a sensor's data sheet
states only part of the wrench's noise: cables, hysteresis and cross-talk add to it. If it is
assumed too small, total least squares attributes all residuals to the motion, and the inertia
diverges. But the noise Sx of the motion alone is enough for a consistent answer,

    (sum Y'WY - E[dY'WdY]) theta = sum Y'W wrench          (corrected least squares, any W)

and at that answer the residuals have the covariance Sw + B Sx B', from which Sw follows for each
axis. Its lower limit is the sensor's own noise. It is larger only if the noise of the motion, which
is known to some ten percent, does not explain the residuals. Samples next to a jump of the wrench
(`_jumps`) have an error of their own and count less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.wrist._regressor import wrench_regressor, wrench_slope, wrench_tensor

_MAX_ITERATIONS = 6  # of the calibrated noise
_MAX_MOTION_VARIANCE = 1.25  # of the noise of the motion, over its nominal variance
_MIN_REMAINING_CURVATURE = 0.02  # in every direction, for the correction to be used


@dataclass(frozen=True, eq=False)
class WrenchRegression:
    """Wrenches to fit, with the error covariances of wrench and regressor.

    Attributes:
        x: features of the motion, (N, 12)
        x_covariance: of their errors, (N, 12, 12)
        exact: further columns, without errors, (N, 6, e)
        wrench: of the load on the sensor, (N, 6) [N, Nm]
        wrench_covariance: of its errors, (6, 6)
        prior_value: of the p = 10 + e unknowns, (p,)
        prior_information: inverse covariance of the prior, (p, p); zeros for none
        jump_variance: of the wrench beside its noise, in samples next to a jump, (N, 6) or (6,)
    """

    x: Array
    x_covariance: Array
    exact: Array
    wrench: Array
    wrench_covariance: Array
    prior_value: Array
    prior_information: Array
    jump_variance: Array = field(default_factory=lambda: np.zeros(6))

    def __len__(self) -> int:
        return len(self.x)

    @property
    def p(self) -> int:
        """Number of unknowns."""
        return 10 + int(self.exact.shape[2])

    @cached_property
    def regressor(self) -> Array:
        """The matrix Y of the p unknowns, (N, 6, p)."""
        return np.concatenate([wrench_regressor(self.x), self.exact], axis=2)

    @property
    def augmented(self) -> Array:
        """The matrix Z = [Y wrench], (N, 6, p + 1)."""
        return np.concatenate([self.regressor, self.wrench[:, :, None]], axis=2)

    @property
    def mean_wrench_covariance(self) -> Array:
        """The covariance of the wrench's errors, jumps included, mean of all samples, (6, 6)."""
        jumps = np.atleast_2d(self.jump_variance).mean(axis=0)
        return np.asarray(self.wrench_covariance + np.diag(jumps))

    def residual_covariance(self, phi: Array) -> Array:
        """The covariance S of each residual by all errors, (N, 6, 6).

        Args:
            phi: ten inertial parameters, (10,)
        """
        B = wrench_slope(phi)
        jumps = self.jump_variance[..., None] * np.eye(6)
        return self.wrench_covariance + jumps + B @ self.x_covariance @ B.T

    def regressor_noise(self, W: Array) -> Array:
        """The sum over all samples of E[dY' W dY], by errors of the motion, (10, 10).

        Args:
            W: weights of each sample, (N, 6, 6), or one for all, (6, 6)
        """
        T = wrench_tensor()
        if W.ndim == 2:
            pair = self.x_covariance.sum(axis=0).reshape(144, 1) @ W.reshape(1, 36)
        else:
            pair = self.x_covariance.reshape(-1, 144).T @ W.reshape(-1, 36)
        return np.asarray(
            np.einsum("lmij,lia,mjb->ab", pair.reshape(12, 12, 6, 6), T, T, optimize=True)
        )

    def calibrated_covariance(self, theta: Array) -> Array:
        """The diagonal error covariance of the wrench, estimated from residuals, (6, 6).

        Args:
            theta: the unknowns by weighted least squares, the initial values, (p,)
        """
        Y = self.regressor
        least = np.diag(self.wrench_covariance)
        Sx = self.x_covariance.mean(axis=0)
        variance = least
        weight = 1 / (1 + (np.broadcast_to(self.jump_variance, (len(self), 6)) / least).max(axis=1))
        for _ in range(_MAX_ITERATIONS):
            motion = wrench_slope(theta[:10]) @ Sx @ wrench_slope(theta[:10]).T
            squares = np.average((self.wrench - Y @ theta) ** 2, axis=0, weights=weight)
            beyond = squares > least + _MAX_MOTION_VARIANCE * np.diag(motion)
            previous = variance
            variance = np.where(beyond, np.maximum(squares - np.diag(motion), least), least)
            W = np.linalg.inv(np.diag(variance) + motion)
            theta = self._corrected(weight[:, None, None] * W, theta)
            if np.allclose(previous, variance, rtol=1e-3):
                break
        return np.diag(variance)

    def _corrected(self, W: Array, theta: Array) -> Array:
        """Corrected least squares; theta itself if the correction leaves too little curvature."""
        Y = self.regressor
        L = self.prior_information
        WY = W @ Y
        H = np.tensordot(Y, WY, axes=([0, 1], [0, 1]))
        corrected = H.copy()
        corrected[:10, :10] -= self.regressor_noise(W)
        factor = np.linalg.cholesky(H + L + 1e-12 * np.diag(np.diag(H)))
        share = np.linalg.eigvalsh(
            np.linalg.solve(factor, np.linalg.solve(factor, corrected + L).T)
        )
        if share[0] < _MIN_REMAINING_CURVATURE:
            return theta
        moment = np.tensordot(WY, self.wrench, axes=([0, 1], [0, 1]))
        return np.asarray(np.linalg.solve(corrected + L, moment + L @ self.prior_value))

    def fit(self, theta: Array, slope: Array, scores: Array, scale: float) -> WrenchFit:
        """The fit at a solution, its covariance from the scores.

        Args:
            theta: the unknowns, (p,)
            slope: H of the samples alone, (p, p)
            scores: of each sample, (N, p)
            scale: variance of the residuals over that expected by the sensors' noise
        """
        N, p = scores.shape
        inverse = np.linalg.inv(slope + self.prior_information)
        V = long_run_sum(scores) * (N / max(N - p / 6, 1))
        covariance = inverse @ (V + self.prior_information) @ inverse.T
        residual = self.wrench - self.regressor @ theta
        return WrenchFit(theta, (covariance + covariance.T) / 2, residual, scale)

    def fit_of_ratio(
        self,
        theta: Array,
        W: Array,
        *,
        noise: Literal["wrench", "identity", "propagated"],
        mu: float,
    ) -> WrenchFit:
        """The fit of the smallest ratio mu = v'Mv / v'Pv, see `estimators._batch`.

        Args:
            theta: the unknowns, (p,)
            W: weights, (6, 6)
            noise: model of the noise P
            mu: the smallest ratio
        """
        Y = self.regressor
        residual = self.wrench - Y @ theta
        scores = (Y.transpose(0, 2, 1) @ (W @ residual.T).T[:, :, None])[:, :, 0]
        slope = Y.reshape(-1, self.p).T @ (W @ Y).reshape(-1, self.p)
        if noise == "identity":
            trace = np.trace(W)
            scores = scores + mu * trace * theta
            slope = slope - mu * trace * len(self) * np.eye(self.p)
        elif noise == "propagated":
            absorbed = W @ wrench_slope(theta[:10]) @ self.x_covariance
            scores[:, :10] += mu * np.tensordot(absorbed, wrench_tensor(), axes=([1, 2], [1, 0]))
            slope[:10, :10] -= mu * self.regressor_noise(W)
        S = self.residual_covariance(theta[:10]).mean(axis=0)
        scale = np.einsum("ni,ij,nj->", residual, np.linalg.inv(S), residual) / residual.size
        return self.fit(theta, slope, scores, float(scale))


@dataclass(frozen=True, eq=False)
class WrenchFit:
    """The result of an estimator.

    Attributes:
        value: the p unknowns, the ten inertial parameters first, (p,)
        covariance: of the unknowns, allowing for correlation in time, (p, p)
        residual: measured less modelled wrenches, (N, 6) [N, Nm]
        scale: variance of the residuals over that expected by the sensors' noise, ideally 1
    """

    value: Array
    covariance: Array
    residual: Array
    scale: float


@dataclass(frozen=True)
class WrenchEstimator:
    """An estimator for a `WrenchRegression`.

    Attributes:
        name: for tables
        uses_prior: whether it weights samples by their noise and uses a prior
        estimate: returns the unknowns with their covariance
    """

    name: str
    uses_prior: bool
    estimate: Callable[[WrenchRegression], WrenchFit]


def long_run_sum(scores: Array) -> Array:
    """The covariance of the sum of scores that are correlated in time, (p, p).

    Args:
        scores: with a mean near zero, (N, p)
    """
    N = len(scores)
    centred = scores - scores.mean(axis=0)
    lags = min(_lags(centred), N - 1)
    size = 2 ** int(np.ceil(np.log2(N + lags + 1)))
    spectrum = np.fft.rfft(centred, size, axis=0)
    k = np.arange(lags + 1) / (lags + 1)
    parzen = np.where(k <= 0.5, 1 - 6 * k**2 + 6 * k**3, 2 * (1 - k) ** 3)
    taper = np.zeros(size)
    taper[: lags + 1] = parzen
    taper[size - lags :] = parzen[1:][::-1]
    weight = 2.0 * np.fft.rfft(taper).real
    weight[[0, -1]] /= 2
    V = ((spectrum.conj() * weight[:, None]).T @ spectrum).real / size
    from scipy.special import stdtrit

    b = lags / N
    if lags:
        widening = (stdtrit(3.71 / b, 0.975) / NORMAL_95) ** 2 / (1 - 0.75 * b)
    else:
        widening = 1.0
    return np.asarray((V + V.T) / 2 * widening)


def _lags(centred: Array) -> int:
    """The number of lags for the window, from the persistence of each column."""
    N = len(centred)
    power = (centred**2).sum(axis=0)
    nonzero = power > 0
    if not nonzero.any():
        return 1
    rho = (centred[1:] * centred[:-1]).sum(axis=0)[nonzero] / power[nonzero]
    rho = np.clip(rho, -0.97, 0.97)
    alpha = np.mean(4 * rho**2 / (1 - rho) ** 8) / np.mean(1 / (1 - rho) ** 4)
    return int(min(max(2.6614 * (alpha * N) ** 0.2, 1.5 * N ** (1 / 3)), N // 4))
