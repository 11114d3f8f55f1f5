"""Rows of made-up streams, before any filter."""

from typing import NamedTuple

import numpy as np


class MeasuredRow(NamedTuple):
    """What the path to a tracker takes: `path.step(state, *row)`."""

    t: float
    motion: np.ndarray
    effort: np.ndarray


def stacked(rows):
    """Times, motion and effort of rows as three arrays."""
    return tuple(np.array(part) for part in zip(*rows, strict=True))
