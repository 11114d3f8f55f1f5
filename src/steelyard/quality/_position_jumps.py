"""Jumps of a position from one row to the next that no arm can make.

A frame that a bus damages gives one wrong position: it jumps, and jumps back a few rows later.
Differentiated twice at 125 Hz, 0.1 rad in one row is more than 1,000 rad/s^2, which outweighs
everything else in a recording. After lost rows, a frozen driver or the slip of an encoder the jump
stays.

With v_i the speed from row i to row i + 1, and m_i the median of v_(i-5) ... v_(i+5), the jump

    J_i = (v_i - m_i) (t_(i+1) - t_i)

is zero along a steady motion. It counts where it is more than 300 rad/s^2 allow in one step, and
ten times as large as 95 % of the jumps of this joint, which encoder steps, held samples and
vibration make. Up to four rows between such jumps that cancel are broken, unless they repeat the
row before. A jump after up to eight repeated rows is none where it only makes up for the motion
that these missed: a driver was late. Where more than 2 % of the rows jump, the recording is of
another kind, and nothing is found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from steelyard._arrays import Array, Indices, Mask

MAX_ACCELERATION = 300.0
"""More than joints reach, [rad/s^2]; an emergency stop has less than 100."""

_USUAL_PERCENTILE = 95.0
_USUAL_RATIO = 10.0  # of a jump, over the usual ones
_NEIGHBOURS = 5  # speeds on each side
_MIN_ROWS = 2 * _NEIGHBOURS + 2
_MAX_BROKEN_ROWS = 4  # one after the other
_MAX_LEFT_SHARE = 0.25  # of a jump, after those that cancel it
_MAX_REPEATED_ROWS = 8  # before a jump that makes up for them
_MAX_JUMPING_SHARE = 0.02  # of the rows


class PositionJumps(NamedTuple):
    """Where positions jump.

    Attributes:
        broken: positions that jump away and back, (N, n)
        lasting: positions to which a joint jumps and stays, (N, n)
    """

    broken: Mask
    lasting: Mask


def find_position_jumps(t: Array, q: Array) -> PositionJumps:
    """The jumps of positions.

    Args:
        t: times, (N,) [s]
        q: positions, (N, n) [rad or m]; not finite where there is none
    """
    jumps = PositionJumps(np.zeros(q.shape, bool), np.zeros(q.shape, bool))
    for j, positions in enumerate(q.T):
        rows = _rows_in_order(t, positions)
        if len(rows) < _MIN_ROWS:
            continue
        broken, lasting = _jumps_of_joint(t[rows], positions[rows])
        if len(broken) + len(lasting) <= _MAX_JUMPING_SHARE * len(rows):
            jumps.broken[rows[broken], j] = True
            jumps.lasting[rows[lasting], j] = True
    return jumps


def _rows_in_order(t: Array, positions: Array) -> Indices:
    """The rows with a position, each later than all before it."""
    rows = np.flatnonzero(np.isfinite(positions) & np.isfinite(t))
    latest = np.concatenate([[-np.inf], np.maximum.accumulate(t[rows])])[:-1]
    return rows[t[rows] > latest]


def _jumps_of_joint(t: Array, q: Array) -> tuple[list[int], list[int]]:
    """The broken rows of a joint, and the rows after jumps that stay."""
    steps = np.diff(t)
    v = np.diff(q) / steps
    around = sliding_window_view(np.pad(v, _NEIGHBOURS, mode="edge"), 2 * _NEIGHBOURS + 1)
    jump = (v - np.median(around, axis=1)) * steps
    limit = np.maximum(
        MAX_ACCELERATION * np.maximum(steps, np.median(steps)) ** 2,
        _USUAL_RATIO * np.percentile(np.abs(jump), _USUAL_PERCENTILE),
    )
    broken: list[int] = []
    lasting: list[int] = []
    next_step = 0
    for i in map(int, np.flatnonzero(np.abs(jump) > limit)):
        if i < next_step:
            continue  # a part of the jump before, or the way back
        left = np.abs(np.cumsum(jump[i : i + _MAX_BROKEN_ROWS + 1]))
        back = np.flatnonzero(left < min(limit[i], _MAX_LEFT_SHARE * left[0]))
        if len(back):
            next_step = i + int(back[0]) + 1
            between = slice(i + 1, next_step)
            if (q[between] != q[i]).any():  # else these samples were held
                broken += range(len(q))[between]
        elif not _makes_up_for_repeated_rows(t, q, i):
            lasting.append(i + 1)
    return broken, lasting


def _makes_up_for_repeated_rows(t: Array, q: Array, row: int) -> bool:
    """Whether a row repeats earlier ones, and the next goes on where the motion is by then."""
    earlier = q[max(row - _MAX_REPEATED_ROWS - 1, 0) : row]
    moved = np.flatnonzero(earlier != q[row])
    if len(moved) == 0 or moved[-1] == len(earlier) - 1:
        return False  # all the rows before are the same, or none is
    first = row - len(earlier) + int(moved[-1]) + 1
    following = slice(row + 1, row + 2 + _NEIGHBOURS)
    speed = np.median(np.diff(q[following]) / np.diff(t[following]))
    duration = t[row + 1] - t[first]
    missed = q[row + 1] - q[first] - speed * duration
    return bool(np.abs(missed) <= MAX_ACCELERATION * duration**2)
