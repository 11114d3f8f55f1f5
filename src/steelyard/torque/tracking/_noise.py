"""How noisy torques are today, beside what the runs of the empty arm say.

Rows are divided by the noise that the model has, correlation in time included, so sums of residuals
over any stretch should have unit variance for each row. Where the arm of today differs (other
noise, friction that the law does not know, correlation), they have more. Sums over 1, 2 and 4
windows and the squares of single residuals are kept; the widest scale counts. A few blocks say
little, so a ratio r of K blocks counts by what exceeds one standard deviation of its scatter, and
as if there were K_0 = 20 more that are just as wide as assumed, fewer where the assumption is
plainly wrong:

    f - 1 = K (r - 1 - sqrt(2 / K)) / (K + K_0 / r^2)

Old windows fade, because friction drifts. Where residuals are more than five times as wide as
assumed, the answer is doubted: what is wrong then is no noise, and its widening no interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard._kinds import NOT_NEGATIVE, Shape
from steelyard.verdict import Doubt, DoubtKind

_LEVELS = 3  # sums over 1, 2 and 4 windows
_ASSUMED_BLOCKS = 20.0
_ASSUMED_ROWS = 200.0
_MOST_WIDENED = 5.0  # in standard deviations: more is no noise, as in a batch
_WEIGHT_KEPT_PER_WINDOW = 0.997  # of a window's weight after the next one


class ResidualSpread(NamedTuple):
    """Squares of residuals at several scales.

    Attributes:
        squares: of single residuals over their noise, summed, (n,)
        rows: how many, (n,)
        sums: of squares of sums over 1, 2, 4 windows, each for one row, (3, n)
        blocks: how many, (3, n)
        held: sum and rows of a half block that waits for its other half, (3, 2, n)
        windows: how many windows there were
    """

    squares: Annotated[Array, Shape("n")]
    rows: Annotated[Array, Shape("n")]
    sums: Annotated[Array, Shape(3, "n")]
    blocks: Annotated[Array, Shape(3, "n")]
    held: Annotated[Array, Shape(3, 2, "n")]
    windows: Annotated[int, NOT_NEGATIVE]

    @classmethod
    def nothing(cls, n: int) -> ResidualSpread:
        """The spread before the first residual."""
        scales = (_LEVELS, n)
        return cls(
            np.zeros(n),
            np.zeros(n),
            np.zeros(scales),
            np.zeros(scales),
            np.zeros((_LEVELS, 2, n)),
            0,
        )

    def with_window(self, total: Array, squares: Array, rows: Array) -> ResidualSpread:
        """The spread with one more window.

        Args:
            total: sum of its residuals over their noise, (n,)
            squares: sum of their squares, (n,)
            rows: how many there are, (n,)
        """
        sums = _WEIGHT_KEPT_PER_WINDOW * self.sums
        blocks = _WEIGHT_KEPT_PER_WINDOW * self.blocks
        held = self.held.copy()
        count = rows
        for level in range(_LEVELS):
            sums[level] += total**2 / np.maximum(count, 1)
            blocks[level] += count > 0
            if not (self.windows >> level) & 1:
                held[level] = total, count
                break
            total = total + held[level, 0]
            count = count + held[level, 1]
        return ResidualSpread(
            _WEIGHT_KEPT_PER_WINDOW * self.squares + squares,
            _WEIGHT_KEPT_PER_WINDOW * self.rows + rows,
            sums,
            blocks,
            held,
            self.windows + 1,
        )

    @property
    def inflation(self) -> Array:
        """Variance of each joint's residuals over the assumed one, (n,), at least 1."""
        single = _excess(self.squares, self.rows, _ASSUMED_ROWS)
        blocks = _excess(self.sums, self.blocks, _ASSUMED_BLOCKS).max(axis=0)
        return np.asarray(1.0 + np.maximum(0.0, np.maximum(single, blocks)))

    def doubt(self, joint_names: Sequence[str], influential: Mask) -> Doubt | None:
        """A doubt where residuals are so much wider than assumed that no widening is an answer.

        Args:
            joint_names: of the n joints
            influential: joints that matter for mass and centre, (n,); the others do not block
        """
        times = np.sqrt(self.inflation)
        too_wide = times > _MOST_WIDENED
        if not too_wide.any():
            return None
        blocking = too_wide & influential
        chosen = blocking if blocking.any() else too_wide
        j = int(np.where(chosen, times, 0.0).argmax())
        words = (
            f"{joint_names[j]} deviates {times[j]:.0f} times as much as the model says, for longer"
            " than noise does; is the model that of this arm, and did nothing touch it?"
        )
        return Doubt(DoubtKind.UNEXPLAINED_TORQUE, words, blocks=bool(blocking.any()))


class Unexplained(NamedTuple):
    """Squares of residuals that no other payload explains, at several scales.

    Attributes:
        sums: of squares over 1, 2, 4 windows, each for one row, (3, n)
        blocks: how many, each by the share of its variance that is noise, (3, n)
    """

    sums: Annotated[Array, Shape(3, "n")]
    blocks: Annotated[Array, Shape(3, "n")]

    @classmethod
    def nothing(cls, n: int) -> Unexplained:
        """Before the first residual."""
        return cls(np.zeros((_LEVELS, n)), np.zeros((_LEVELS, n)))

    @property
    def faded(self) -> Unexplained:
        """The same after one more window."""
        return Unexplained(
            _WEIGHT_KEPT_PER_WINDOW * self.sums, _WEIGHT_KEPT_PER_WINDOW * self.blocks
        )

    def plus(self, level: int, squares: Array, share: Array) -> Unexplained:
        """The same with one more block of 2^level windows.

        Args:
            squares: of the residual of each joint, (n,)
            share: of their expected size that is noise, (n,)
        """
        sums = self.sums.copy()
        blocks = self.blocks.copy()
        sums[level] += squares
        blocks[level] += share
        return Unexplained(sums, blocks)

    @property
    def inflation(self) -> Array:
        """Variance of each joint's residuals over the assumed one, (n,), at least 1."""
        blocks = _excess(self.sums, self.blocks, _ASSUMED_BLOCKS).max(axis=0)
        return np.asarray(1.0 + np.maximum(0.0, blocks))


def _excess(squares: Array, count: Array, assumed: float) -> Array:
    """By how much a mean square exceeds 1, less the scatter that it has by chance."""
    ratio = np.maximum(squares / np.maximum(count, 1e-9), 1.0)
    return np.asarray((squares - count - np.sqrt(2 * count)) / (assumed / ratio**2 + count))
