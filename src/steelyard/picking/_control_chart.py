"""Cumulative sums (CUSUM), which show slow changes of a series of masses.

With z_k the deviation of pick k from the mean of the first picks, in standard deviations (Page
1954),

    up_k = max(0, up_{k-1} + z_k - 1/2),     down_k = max(0, down_{k-1} - z_k - 1/2).

Without a change both stay small: beyond 5 about once in 930 picks.
"""

from __future__ import annotations

import numpy as np

from steelyard._arrays import Array

_REFERENCE_PICKS = 20
_ALLOWANCE = 0.5  # standard deviations


def cusum(values: Array, std: Array) -> tuple[Array, Array]:
    """The upward and the downward cumulative sum, (N,) each, in standard deviations.

    Args:
        values: masses in the order of time, (N,) [kg]
        std: deviation of each by itself, (N,) [kg]; where the first ones scatter more than that,
            their scatter counts
    """
    first = values[:_REFERENCE_PICKS]
    scatter = 0.0
    if len(first) > 2:
        scatter = float(first.std(ddof=1))
    z = (values - first.mean()) / np.maximum(std, scatter)
    up = np.zeros(len(z))
    down = np.zeros(len(z))
    for k, deviation in enumerate(z.tolist()):
        before = k - 1 if k else 0
        up[k] = max(0.0, up[before] + deviation - _ALLOWANCE)
        down[k] = max(0.0, down[before] - deviation - _ALLOWANCE)
    return up, down
