"""The triangular factor of many rows, updated piece by piece.

R with R'R = A'A is all that least squares and rank decisions need of the rows A, and the factor of more rows
is the factor of [R; new rows]. LAPACK's `dtpqrt` updates a triangle by a rectangle; columns that are zero
throughout are left out, and stay zero in R.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from steelyard.arrays import Array

_PIECE = 1024  # rows taken at once; more do not fit into the cache
_BLOCK = 8  # columns that LAPACK treats together; fastest of 8, 16, 32 for 30 to 90 columns


def triangle_with(R: Array, rows: Array) -> Array:
    """The triangular factor of [R; rows], (k, k).

    Args:
        R: triangular factor of the rows so far, zeros for none, (k, k)
        rows: new rows, (N, k)
    """
    columns = np.flatnonzero(R.any(axis=0) | rows.any(axis=0))
    if not columns.size or not len(rows):
        return R
    triangle = R[np.ix_(columns, columns)]
    for start in range(0, len(rows), _PIECE):
        piece = rows[start : start + _PIECE, columns]
        triangle, _, _, info = lapack.dtpqrt(0, min(_BLOCK, columns.size), triangle, piece, overwrite_b=1)
        if info:
            raise np.linalg.LinAlgError(f"LAPACK dtpqrt says {info}")
    out = np.zeros_like(R)
    out[np.ix_(columns, columns)] = np.triu(triangle)
    return out
