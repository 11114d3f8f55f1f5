"""How noisy torques are: as the runs of the empty arm show, and as the residuals of today do (`Spread`).

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

Rows are divided by the noise that the model has, correlation in time included, so sums of residuals over
any stretch should have unit variance for each row. Where the arm of today differs (other noise, friction
that the law does not know, correlation), they have more. Sums over 1, 2 and 4 windows and the squares of
single residuals are kept; the widest scale counts. A few blocks say little, so a ratio r of K blocks counts
by what exceeds one standard deviation of its scatter, and as if there were K_0 = 20 more that are just as
wide as assumed, fewer where the assumption is plainly wrong:

    f - 1 = K (r - 1 - sqrt(2 / K)) / (K + K_0 / r^2)

Old windows fade, because friction drifts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from steelyard.arrays import Array
from steelyard.identification import DynamicModel

_FREEDOM = 17.0  # of the smoothed spectrum at zero frequency: (P_0 + 2 P_1 + ... + 2 P_8) / 17
_LOW_SHARE = 0.5
_FEWEST_FREEDOM = 8.0
_FEWEST_LEFT = 0.25  # of the rows: when more than the rest is swallowed, the formula has no meaning
_LEVELS = 3
_ASSUMED_BLOCKS = 20.0
_ASSUMED_ROWS = 200.0
_LARGEST_SURPRISE = 100.0
_KEPT = 0.997  # of a window's weight after the next one


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


class Spread(NamedTuple):
    """Squares of residuals at several scales.

    Attributes:
        squares: of single residuals over their noise, summed, (n,)
        rows: how many, (n,)
        sums: of squares of sums over 1, 2, 4 windows, each for one row, (3, n)
        blocks: how many, (3, n)
        held: sum and rows of a half block that waits for its other half, (3, 2, n)
        windows: how many windows there were
    """

    squares: Array
    rows: Array
    sums: Array
    blocks: Array
    held: Array
    windows: int

    @classmethod
    def nothing(cls, n: int) -> Spread:
        """The spread before the first residual.

        Args:
            n: number of joints
        """
        scales = (_LEVELS, n)
        return cls(np.zeros(n), np.zeros(n), np.zeros(scales), np.zeros(scales), np.zeros((_LEVELS, 2, n)), 0)

    def with_window(self, total: Array, squares: Array, rows: Array) -> Spread:
        """The spread with one more window.

        Args:
            total: sum of its residuals over their noise, (n,)
            squares: sum of their squares, (n,)
            rows: how many there are, (n,)
        """
        sums, blocks, held = _KEPT * self.sums, _KEPT * self.blocks, self.held.copy()
        count = rows
        for level in range(_LEVELS):
            sums[level] += total**2 / np.maximum(count, 1)
            blocks[level] += count > 0
            if not (self.windows >> level) & 1:
                held[level] = total, count
                break
            total, count = total + held[level, 0], count + held[level, 1]
        return Spread(
            _KEPT * self.squares + squares, _KEPT * self.rows + rows, sums, blocks, held, self.windows + 1
        )

    def with_surprise(self, ratio: float) -> Spread:
        """The spread after a window that no payload explains.

        Args:
            ratio: by how much its squares exceed what was assumed
        """
        sums, blocks = self.sums.copy(), self.blocks.copy()
        sums[0] += min(ratio, _LARGEST_SURPRISE)
        blocks[0] += 1
        return self._replace(sums=sums, blocks=blocks)

    @property
    def inflation(self) -> Array:
        """By how much the variance of each joint's residuals exceeds what was assumed, (n,), at least 1."""
        single = _excess(self.squares, self.rows, _ASSUMED_ROWS)
        blocks = _excess(self.sums, self.blocks, _ASSUMED_BLOCKS).max(axis=0)
        return np.asarray(1.0 + np.maximum(0.0, np.maximum(single, blocks)))


def _excess(squares: Array, count: Array, assumed: float) -> Array:
    """By how much a mean square exceeds 1, less the scatter that it has by chance."""
    ratio = np.maximum(squares / np.maximum(count, 1e-9), 1.0)
    return np.asarray((squares - count - np.sqrt(2 * count)) / (assumed / ratio**2 + count))
