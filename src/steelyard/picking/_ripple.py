"""Friction that varies with the position of a joint, learned from unloaded stretches of a shift.

Gears and bearings rub differently at different positions. With s the direction of motion of a
joint and r = tau - Y x what the model with the friction of the moment does not explain, s r is
averaged over the rows of an unloaded stretch in bins of the joint's position. In bin i with the
mean m_i of w_i rows, earlier stretches had the mean M_i. Noise of different stretches is
independent, so

    S^2 = sum w_i m_i M_i / sum w_i,
    N^2 = sum w_i (w_i m_i^2) / sum w_i - S^2 sum w_i^2 / sum w_i

are the variance of friction by position and that of the noise of a row, summed over all stretches
so far. With W_i rows in all, the expected friction in bin i is

    S^2 / (S^2 + N^2 / W_i) M_i.

It is zero where stretches do not agree, as on an arm whose friction does not depend on positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from steelyard._arrays import Array, Indices, Mask
from steelyard.picking._segments import Stretch

_BIN = 0.05  # [rad or m]
_BINS = 256  # positions that differ by 12.8 rad share a bin


@dataclass(frozen=True, eq=False)
class PositionFriction:
    """What is known of the friction of n joints by position.

    Attributes:
        rows: number of rows in each bin, (n, bins)
        total: sum of s r over them, (n, bins) [Nm or N]
        products: sum of w m M, (n,)
        squares: sum of w (w m^2), (n,)
        agreeing_rows: sum of w over bins that earlier stretches had, (n,)
        all_rows: sum of w, (n,)
        row_squares: sum of w^2, (n,)
    """

    rows: Array
    total: Array
    products: Array
    squares: Array
    agreeing_rows: Array
    all_rows: Array
    row_squares: Array

    @classmethod
    def unknown(cls, n: int) -> Self:
        """Before the first stretch of an arm with n joints."""
        bins = np.zeros((n, _BINS))
        none = np.zeros(n)
        return cls(bins, bins, none, none, none, none, none)

    @property
    def expected(self) -> Array:
        """Friction in each bin beyond that of the model, in the direction of motion, (n, bins)."""
        by_position = np.maximum(self.products / np.maximum(self.agreeing_rows, 1.0), 0.0)
        count = np.maximum(self.all_rows, 1.0)
        noise = self.squares / count - by_position * self.row_squares / count
        noise = np.maximum(noise, 1e-9 * self.squares / count)
        weight = by_position[:, None] * self.rows + noise[:, None]
        share = np.where(weight > 0, by_position[:, None] / np.maximum(weight, 1e-300), 0.0)
        return np.asarray(share * self.total)

    def torque(self, stretch: Stretch) -> Array:
        """The torque of this friction along a stretch, (N, n) [Nm or N]."""
        samples = stretch.samples
        expected = np.take_along_axis(self.expected.T, _bins(samples.q), axis=0)
        return np.asarray(np.sign(samples.v) * expected)

    def after(self, stretch: Stretch, residual: Array, usable: Mask) -> PositionFriction:
        """What is known after an unloaded stretch.

        Args:
            stretch: the stretch
            residual: torque that the model does not explain along it, (N, n) [Nm or N]
            usable: torques that count, (N, n)
        """
        n = stretch.samples.n
        place = (_bins(stretch.samples.q) + _BINS * np.arange(n))[usable]
        along = (np.sign(stretch.samples.v) * residual)[usable]
        rows = np.bincount(place, minlength=n * _BINS).reshape(n, _BINS).astype(float)
        total = np.bincount(place, along, minlength=n * _BINS).reshape(n, _BINS)
        earlier = self.total / np.maximum(self.rows, 1.0)
        agreeing = np.where(self.rows > 0, rows, 0.0)
        return PositionFriction(
            self.rows + rows,
            self.total + total,
            self.products + (total * earlier).sum(axis=1),
            self.squares + (total**2).sum(axis=1),
            self.agreeing_rows + agreeing.sum(axis=1),
            self.all_rows + rows.sum(axis=1),
            self.row_squares + (rows**2).sum(axis=1),
        )


def _bins(q: Array) -> Indices:
    """The bin of each position, (N, n)."""
    return np.asarray(np.floor(q / _BIN).astype(np.int64) % _BINS)
