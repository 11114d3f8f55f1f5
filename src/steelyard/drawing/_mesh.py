"""Surfaces of triangles, simplified until a page can hold and draw them.

Corners are merged by a grid (Rossignac and Borrel 1993). The corner of a cell minimises the sum of
squared distances to the planes of its triangles (Lindstrom 2000, "Out-of-core simplification of
large polygonal models"), so that edges stay sharp: with unit normals n of the triangles, their
areas w, points p on them and the mean m of the merged corners,

    x = m + (sum w^2 n n' + r I)^-1 sum w^2 n n' (p - m),      r = 1e-2 trace / 3,

kept within a cell of m. A surface of area A has about 2 A / c^2 triangles with cells of size c.

A corner has a normal of its own in each triangle: the mean over the triangles around it that are
inclined by less than 40 degrees. Round surfaces look round then, and edges sharp.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard._arrays import Array, Indices

_WELD_RATIO = 1e-6  # of the size of a surface; nearer corners are one
_REGULARISATION = 1e-2
_CREASE_COSINE = np.cos(np.deg2rad(40))
_CELL_GROWTH = 1.2
_FIRST_CELL_RATIO = 0.7  # of the cell by the formula above, because cells are rarely full
_MAX_TRIALS = 40
_INT16 = 32767
_UINT16 = 65535
_INT8 = 127


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles on a frame.

    Attributes:
        name: in the legend; empty for no entry
        frame: index of the frame that it moves with
        corners: (V, 3) [m], in the frame
        normals: outward, of each corner, (V, 3)
        triangles: numbers of corners, counter-clockwise as seen from outside, (F, 3)
        colour: as '#2266aa'
        opacity: 1 for an opaque surface
    """

    name: str
    frame: int
    corners: Array
    normals: Array
    triangles: Indices
    colour: str
    opacity: float = 1.0

    @classmethod
    def of(
        cls, corners: Array, triangles: Indices, *, frame: int, colour: str, name: str = ""
    ) -> Mesh:
        """A surface with normals; one that is turned inside out is turned back.

        Args:
            corners: (V, 3) [m], in the frame
            triangles: numbers of corners, (F, 3)
            frame: index of the frame that it moves with
            colour: as '#2266aa'
            name: in the legend
        """
        a, b, c = corners[triangles].transpose(1, 0, 2)
        if np.einsum("ij,ij->", a, np.cross(b, c)) < 0:  # six times the enclosed volume
            triangles = triangles[:, ::-1]
        corners, normals, triangles = _with_creases(corners, triangles)
        return cls(name, frame, corners, normals, triangles, colour)

    @property
    def box(self) -> Array:
        """Corners of a box around it, (8, 3) [m], in its frame."""
        return box_corners(self.corners.min(axis=0), self.corners.max(axis=0))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a page: whole numbers of 8 and 16 bits (32 if wide) as base64 texts."""
        low = self.corners.min(axis=0)
        size = max(float(np.ptp(self.corners, axis=0).max()), 1e-9)
        placed = np.round((self.corners - low) / size * _INT16).astype("<i2")
        wide = len(self.corners) > _UINT16
        return {
            "frame": self.frame,
            "origin": [round(float(x), 6) for x in low],
            "unit": size / _INT16,
            "corners": _text(placed),
            "normals": _text(np.round(self.normals * _INT8).astype("i1")),
            "triangles": _text(self.triangles.astype("<u4" if wide else "<u2")),
            "wide": wide,
            "colour": self.colour,
            "opacity": self.opacity,
        }


def box_corners(low: ArrayLike, high: ArrayLike) -> Array:
    """Corners of a box along the axes, (8, 3).

    Args:
        low: lowest coordinates, (3,)
        high: highest coordinates, (3,)
    """
    return np.array(list(product(*np.column_stack([low, high]))))


def simplified(
    surfaces: Sequence[tuple[Array, Indices]], max_triangles: int
) -> list[tuple[Array, Indices]]:
    """Surfaces with about the same look and few triangles; those that vanish stay, with none.

    Args:
        surfaces: corners (V, 3) [m] and triangles (F, 3) of each
        max_triangles: of all together
    """
    whole = [_welded(corners, triangles) for corners, triangles in surfaces]
    area = sum(float(_double_areas(*one).sum()) / 2 for one in whole)
    cell = _FIRST_CELL_RATIO * np.sqrt(2 * area / max(max_triangles, 1))
    found = whole
    for _ in range(_MAX_TRIALS):
        if sum(len(triangles) for _, triangles in found) <= max_triangles:
            break
        found = [_merged(corners, triangles, cell) for corners, triangles in whole]
        cell *= _CELL_GROWTH
    return found


def _welded(corners: Array, triangles: Indices) -> tuple[Array, Indices]:
    """The surface with corners at one place made one."""
    size = max(float(np.ptp(corners, axis=0).max()), 1e-12) if len(corners) else 1.0
    keys = np.round(corners / (_WELD_RATIO * size)).astype(np.int64)
    _, first, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return corners[first], _without_slivers(number.ravel()[triangles])


def _merged(corners: Array, triangles: Indices, cell: float) -> tuple[Array, Indices]:
    """The surface with the corners of each cell of a grid made one."""
    if not len(triangles):
        return corners, triangles
    keys = np.floor((corners - corners.min(axis=0)) / cell).astype(np.int64)
    _, number = np.unique(keys, axis=0, return_inverse=True)
    number = number.ravel()
    sums = np.column_stack([np.bincount(number, corners[:, k]) for k in range(3)])
    mean = sums / np.bincount(number)[:, None]
    placed = _nearest_to_planes(corners, triangles, number, mean, cell)
    return placed, _without_slivers(number[triangles])


def _nearest_to_planes(
    corners: Array, triangles: Indices, number: NDArray[np.intp], mean: Array, cell: float
) -> Array:
    """Points with the least squared distance to the planes of the triangles of each cell."""
    a, b, c = corners[triangles].transpose(1, 0, 2)
    normal = np.cross(b - a, c - a)  # its length is twice the area, which weights the plane
    matrix = np.zeros((len(mean), 3, 3))
    vector = np.zeros((len(mean), 3))
    for k in range(3):
        cells = number[triangles[:, k]]
        distance = np.einsum("ij,ij->i", normal, a - mean[cells])
        np.add.at(matrix, cells, np.einsum("ia,ib->iab", normal, normal))
        np.add.at(vector, cells, normal * distance[:, None])
    trace = np.maximum(np.trace(matrix, axis1=1, axis2=2) / 3, 1e-300)
    matrix = matrix / trace[:, None, None] + _REGULARISATION * np.eye(3)
    step = np.linalg.solve(matrix, (vector / trace[:, None])[:, :, None])[:, :, 0]
    length = np.maximum(np.linalg.norm(step, axis=1), 1e-300)
    return np.asarray(mean + step * np.minimum(1.0, cell / length)[:, None])


def _without_slivers(triangles: Indices) -> Indices:
    """Triangles with three corners of their own, each once."""
    a, b, c = triangles.T
    whole = triangles[(a != b) & (b != c) & (c != a)]
    _, first = np.unique(np.sort(whole, axis=1), axis=0, return_index=True)
    return np.asarray(whole[np.sort(first)])


def _double_areas(corners: Array, triangles: Indices) -> Array:
    a, b, c = corners[triangles].transpose(1, 0, 2)
    return np.asarray(np.linalg.norm(np.cross(b - a, c - a), axis=1))


def _with_creases(corners: Array, triangles: Indices) -> tuple[Array, Array, Indices]:
    """Corners, normals and triangles, with one corner for each normal at an edge."""
    from scipy.sparse import csr_array

    a, b, c = corners[triangles].transpose(1, 0, 2)
    weighted = np.cross(b - a, c - a)
    unit = weighted / np.maximum(np.linalg.norm(weighted, axis=1), 1e-300)[:, None]
    used = triangles.ravel()  # the corner of each row; row k belongs to triangle k // 3
    rows = np.arange(len(used))
    at = csr_array((np.ones(len(used)), (rows, used)), shape=(len(used), len(corners)))
    pairs = (at @ at.T).tocoo()
    one, other = pairs.coords
    smooth = np.einsum("ij,ij->i", unit[one // 3], unit[other // 3]) > _CREASE_COSINE
    normals = np.zeros((len(used), 3))
    np.add.at(normals, one[smooth], weighted[other[smooth] // 3])
    normals /= np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None]
    keys = np.column_stack([used, np.round(normals * _INT8)]).astype(np.int64)
    _, first, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return corners[used[first]], normals[first], number.ravel().reshape(-1, 3)


def _text(values: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
