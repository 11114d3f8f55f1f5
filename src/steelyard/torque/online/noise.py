"""How noisy torques are for a fit of slow columns, as the runs of the empty arm tell, and how surely they do.

Correlated noise of variance s^2 acts on columns as slow as the motion like white noise of variance kappa s^2,
kappa the inflation of the model (its spectrum at zero frequency over the mean). Two things make the plain
product too small when runs are short:

- The fit of the empty arm swallowed part of the noise, kappa for each parameter that it has fitted, so the
  residuals of joint j show kappa p_j rows less than there are, where p_j = tr(A^-1 A_j) of A = sum_j A_j:

      s^2 = sum of squares / (N_j - kappa p_j)              (for white noise the usual N - p)

- kappa comes from the nine lowest frequencies of each run, chi-square with 17 degrees of freedom, less those
  that the fit has used up there: about half of its parameters, as the scatter of kappa in simulated runs
  shows. An estimate that is weighted by variances with nu degrees of freedom is wider than it says by
  nu / (nu - 4) (Cochran 1937: joints that happen to look quiet count for too much). White noise is known
  from all frequencies, so only the share (kappa - 1) / kappa of the variance is that uncertain.
"""

from __future__ import annotations

import numpy as np

from steelyard.arrays import Array
from steelyard.identification import DynamicModel

_FREEDOM = 17.0  # of the smoothed spectrum at zero frequency: (P_0 + 2 P_1 + ... + 2 P_8) / 17
_LOW_SHARE = 0.5
_FEWEST_FREEDOM = 8.0
_FEWEST_LEFT = 0.25  # of the rows: when more than the rest is swallowed, the formula has no meaning


def slow_noise(model: DynamicModel) -> Array:
    """Standard deviation of white noise that would blur slow columns as much as a joint's real one, (n,).

    Args:
        model: of the empty arm
    """
    n, estimate = model.robot.n, model.estimate
    kappa = np.maximum(estimate.inflation, 1.0)
    fitted, rows = _fitted(model)
    runs = max(len(model.factor.rows) // n, 1)
    freedom = np.maximum(_FREEDOM * runs - _LOW_SHARE * fitted, _FEWEST_FREEDOM)
    freedom *= (kappa / np.maximum(kappa - 1.0, 1e-9)) ** 2
    assumed = rows * (1.0 - model.factor.p / max(rows.sum(), 1.0))
    left = np.maximum(rows - kappa * fitted, np.maximum(_FEWEST_LEFT * rows, 1.0))
    restored = np.maximum(assumed / left, 1.0)
    return np.asarray(estimate.noise * np.sqrt(kappa * restored * freedom / (freedom - 4.0)))


def _fitted(model: DynamicModel) -> tuple[Array, Array]:
    """How many parameters each joint's rows have fitted, p_j, (n,), and how many rows there were, (n,)."""
    factor, n = model.factor, model.robot.n
    weights = np.resize(1.0 / np.maximum(model.estimate.noise, 1e-10), len(factor.rows))
    Z = factor.R[:, :, :-1] * weights[:, None, None]
    A = np.einsum("gip,giq->pq", Z, Z)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(A), 1e-300))
    inverse = np.linalg.pinv(A * np.outer(scale, scale), rcond=1e-12, hermitian=True)
    inverse *= np.outer(scale, scale)
    fitted = np.einsum("gip,pq,giq->g", Z, inverse, Z, optimize=True)
    return fitted.reshape(-1, n).sum(axis=0), factor.rows.reshape(-1, n).sum(axis=0).astype(float)
