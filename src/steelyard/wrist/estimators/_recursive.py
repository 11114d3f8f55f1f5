"""Recursive estimators, one sample at a time: `init`, `step`, `value`; the state is immutable.

**Total least squares** (Kubus, Kroeger, Wahl 2008): the triangular factor of Z = [Y wrench], row by
row. The factor R of all rows (with forgetting, sqrt(lambda) R above the new rows) has the right
singular vectors of the rows themselves, so after every step the smallest one gives the total least
squares solution of the rows so far: at every step recursive equals batch.

**Restricted total least squares** (Rhode 2014; liu2025 eq. (31)-(35), signs and order corrected).
With Z_k and N_k the covariance that the sensors' noise adds to Z_k'Z_k,

    M_k = lambda M_{k-1} + Z_k' Z_k,     P_k = lambda P_{k-1} + N_k
    v_k = M_k^-1 P_k v_{k-1},  scaled so that its last entry is -1

which is one step of inverse iteration towards the smallest ratio v'Mv / v'Pv for every sample; it
converges to the batch solution. M is kept instead of its inverse (35): the factorisation of an 11 x
11 matrix costs a few microseconds and preserves symmetry. P_r is not assumed: N_k comes from the
covariance of acceleration, angular velocity, angular acceleration and wrench of the sample, by a
constant tensor.

Forces and torques have separate sums, so that their weights can follow the parameters: v'P_f v and
v'P_t v are the expected squared residuals of forces and torques, and their inverses, for each row,
the weights. The result of the static stage is a third sum, the initial one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv

from steelyard._arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.wrist._regression import WrenchEstimator, WrenchFit, WrenchRegression
from steelyard.wrist._regressor import wrench_tensor

_INITIAL_INFORMATION = 1e-9  # of an unknown, without a prior


@dataclass(frozen=True)
class RecursiveTotalLeastSquares:
    """Total least squares one sample at a time; the state is the triangular factor.

    Attributes:
        forgetting: factor lambda of older samples at each new one, 0 < lambda <= 1
    """

    forgetting: float = 1.0

    def init(self, p: int) -> Array:
        """The state before the first sample of p unknowns, (p + 1, p + 1)."""
        return np.zeros((p + 1, p + 1))

    def step(self, state: Array, rows: Array) -> Array:
        """The next state, after the rows [Y wrench] of a sample, (6, p + 1)."""
        return np.asarray(
            np.linalg.qr(np.vstack([np.sqrt(self.forgetting) * state, rows]), mode="r")
        )

    def value(self, state: Array) -> Array:
        """The unknowns, (p,), that the rows behind a state give."""
        v = np.linalg.svd(state)[2][-1]
        return np.asarray(-v[:-1] / v[-1])

    @classmethod
    def estimator(cls, forgetting: float = 1.0) -> WrenchEstimator:
        """The recursion over a whole regression, as an estimator.

        Args:
            forgetting: factor lambda of older samples at each new one, 0 < lambda <= 1
        """
        recursion = cls(forgetting)

        def estimate(regression: WrenchRegression) -> WrenchFit:
            state = recursion.init(regression.p)
            for rows in regression.augmented:
                state = recursion.step(state, rows)
            mu = np.linalg.svd(state, compute_uv=False)[-1] ** 2 / (6 * len(regression))
            return regression.fit_of_ratio(
                recursion.value(state), np.eye(6), noise="identity", mu=mu
            )

        return WrenchEstimator("recursive TLS", uses_prior=False, estimate=estimate)


class RestrictedState(NamedTuple):
    """The state of `RecursiveRestricted`: weighted sums over all samples."""

    M: Array  # sums of Z'Z of forces and torques, (2, p + 1, p + 1)
    P: Array  # sums of the noise in them, (2, p + 1, p + 1)
    prior_M: Array  # rows of the prior, faded by forgetting, (p + 1, p + 1)
    prior_P: Array  # their noise, (p + 1, p + 1)
    samples: float  # weighted number of samples
    v: Array  # (theta, -1), (p + 1,)


@dataclass(frozen=True, eq=False)
class RecursiveRestricted:
    """Restricted total least squares one sample at a time: `init`, `step`, `value`.

    Attributes:
        wrench_std: standard deviation of the wrench's noise, (6,) [N, Nm]
        forgetting: factor lambda of older samples at each new one, 0 < lambda <= 1
        e: number of exact columns in addition to the ten
    """

    wrench_std: Array
    forgetting: float = 1.0
    e: int = 0
    _scale: Array = field(init=False, repr=False)
    _rows: Array = field(init=False, repr=False)
    _noise: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.forgetting <= 1:
            raise InvalidSamples(f"forgetting must lie in (0, 1], got {self.forgetting}")
        std = np.array(self.wrench_std, dtype=float)
        if std.shape != (6,) or not (std > 0).all():
            raise InvalidSamples(f"wrench_std must be six positive numbers, got {std}")
        T = wrench_tensor() / std[:, None]
        halves = T.reshape(12, 2, 3, 10)
        noise = np.einsum("lgia,mgib->lmgab", halves, halves).reshape(144, 200)
        object.__setattr__(self, "_scale", 1 / std)
        object.__setattr__(self, "_rows", np.ascontiguousarray(T.reshape(12, 60)))
        object.__setattr__(self, "_noise", np.ascontiguousarray(noise))

    @property
    def p(self) -> int:
        """Number of unknowns."""
        return 10 + self.e

    def init(self, value: Array, information: Array | None = None) -> RestrictedState:
        """The state before the first sample.

        Args:
            value: initial values of the unknowns, such as those of the static stage, (p,)
            information: inverse covariance of these values, (p, p); nearly zero by default
        """
        p = self.p
        L = _INITIAL_INFORMATION * np.eye(p) + (0.0 if information is None else information)
        rows = np.column_stack([np.eye(p), value])
        M = rows.T @ L @ rows
        P = np.zeros((p + 1, p + 1))
        M[-1, -1] += _INITIAL_INFORMATION
        if information is None:
            P[-1, -1] = 0.0
        else:
            P[-1, -1] = np.linalg.matrix_rank(information)
        nothing = np.zeros((2, p + 1, p + 1))
        return RestrictedState(nothing, nothing.copy(), M, P, 0.0, np.append(value, -1.0))

    def step(
        self,
        state: RestrictedState,
        x: Array,
        x_covariance: Array,
        wrench: Array,
        exact: Array | None = None,
    ) -> RestrictedState:
        """The next state.

        Args:
            x: features of the sample, (12,)
            x_covariance: of their errors, (12, 12)
            wrench: of the load on the sensor, (6,) [N, Nm]
            exact: exact columns, (6, e); required if e > 0
        """
        p = self.p
        faded = self.forgetting
        Z = np.empty((6, p + 1))
        Z[:, :10] = (x @ self._rows).reshape(6, 10)
        if exact is not None:
            Z[:, 10:p] = exact * self._scale[:, None]
        Z[:, p] = wrench * self._scale
        halves = Z.reshape(2, 3, p + 1)
        M = faded * state.M
        M += halves.transpose(0, 2, 1) @ halves
        P = faded * state.P
        P[:, :10, :10] += (x_covariance.reshape(144) @ self._noise).reshape(2, 10, 10)
        P[:, p, p] += 3.0
        prior_M = faded * state.prior_M
        prior_P = faded * state.prior_P
        count = faded * state.samples + 1.0
        v = _iterated(M, P, prior_M, prior_P, 3.0 * count, state.v)
        return RestrictedState(M, P, prior_M, prior_P, count, v)

    def value(self, state: RestrictedState) -> Array:
        """The unknowns, (p,), at a state."""
        return state.v[:-1]

    def forms(self, state: RestrictedState) -> tuple[Array, Array, Array]:
        """The forms M and P with the current weights, (p + 1, p + 1) each, and W of a row, (6,)."""
        weight = 3.0 * state.samples / ((state.P @ state.v) @ state.v)
        M = state.prior_M + np.tensordot(weight, state.M, axes=1)
        P = state.prior_P + np.tensordot(weight, state.P, axes=1)
        return M, P, np.repeat(weight, 3) * self._scale**2

    @classmethod
    def estimator(cls, forgetting: float = 1.0) -> WrenchEstimator:
        """The recursion over a whole regression from its prior, as an estimator.

        Args:
            forgetting: factor lambda of older samples at each new one, 0 < lambda <= 1
        """

        def estimate(regression: WrenchRegression) -> WrenchFit:
            std = np.sqrt(np.diag(regression.wrench_covariance))
            L = regression.prior_information
            recursion = cls(std, forgetting, regression.p - 10)
            state = recursion.init(regression.prior_value, L if L.any() else None)
            for k in range(len(regression)):
                x = regression.x[k]
                Sx = regression.x_covariance[k]
                wrench = regression.wrench[k]
                state = recursion.step(
                    state, x, Sx, wrench, regression.exact[k] if recursion.e else None
                )
            M, P, weights = recursion.forms(state)
            mu = float(state.v @ M @ state.v / (state.v @ P @ state.v))
            W = np.diag(weights)
            return regression.fit_of_ratio(recursion.value(state), W, noise="propagated", mu=mu)

        return WrenchEstimator("recursive restricted TLS", uses_prior=True, estimate=estimate)


def _iterated(M: Array, P: Array, prior_M: Array, prior_P: Array, rows: float, v: Array) -> Array:
    """One step of inverse iteration; v itself while M is singular."""
    Pv = P @ v
    force, torque = rows / (Pv @ v)
    form = prior_M + force * M[0] + torque * M[1]
    _, new, failed = dposv(form, prior_P @ v + force * Pv[0] + torque * Pv[1])
    last = new[-1]
    if failed or not abs(last) > 0.0:
        return v
    return np.asarray(new * (-1.0 / last))
