"""A scene in 3D as data: solids that move with frames; a page draws it with a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard._arrays import Array
from steelyard.drawing._mesh import Mesh, box_corners

_ARC = np.deg2rad(np.arange(-90, 91, 10))
_SPHERE_PROFILE = np.column_stack([np.cos(_ARC), np.sin(_ARC)])
_SIDES = 24  # of a body of revolution
_VIEW_MARGIN = 1.03  # of a view, over what it shows


@dataclass(frozen=True, eq=False)
class Solid:
    """A body of revolution on a frame.

    Attributes:
        name: in the legend; empty for no entry
        frame: index of the frame that it moves with
        placement: of the profile in the frame, (4, 4) [m]; it may include a scale
        profile: radius and height along z, (P, 2); a repeated point is an edge
        colour: as '#2266aa'
        opacity: 1 for an opaque solid
        sides: of the polygon about z; 4 for a box
    """

    name: str
    frame: int
    placement: Array
    profile: Array
    colour: str
    opacity: float = 1.0
    sides: int = _SIDES

    @classmethod
    def ellipsoid(
        cls,
        name: str,
        frame: int,
        centre: Array,
        matrix: Array,
        *,
        colour: str,
        opacity: float = 1.0,
    ) -> Solid:
        """The ellipsoid { x : (x - centre)' matrix^-1 (x - centre) <= 1 }.

        Args:
            name: in the legend
            frame: index of the frame that it moves with
            centre: (3,) [m], in the frame
            matrix: (3, 3) [m^2]
            colour: as '#2266aa'
            opacity: 1 for an opaque solid
        """
        values, axes = np.linalg.eigh(matrix)
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        T = np.eye(4)
        T[:3, :3] = axes * np.sqrt(np.maximum(values, 0.0))
        T[:3, 3] = centre
        return cls(name, frame, T, _SPHERE_PROFILE, colour, opacity)

    @property
    def box(self) -> Array:
        """Corners of a box around it, (8, 3) [m], in its frame."""
        radius = float(self.profile[:, 0].max())
        low = [-radius, -radius, float(self.profile[:, 1].min())]
        high = [radius, radius, float(self.profile[:, 1].max())]
        return np.asarray(box_corners(low, high) @ self.placement[:3, :3].T + self.placement[:3, 3])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a page."""
        return {
            "frame": self.frame,
            "placement": _rounded(self.placement[:3], 6),
            "profile": _rounded(self.profile, 5),
            "colour": self.colour,
            "opacity": self.opacity,
            "sides": self.sides,
        }


@dataclass(frozen=True, eq=False)
class Scene:
    """Solids on frames that move.

    Attributes:
        caption: description
        solids: in the order of their legend
        frames: at each time, (K, F, 4, 4) [m], in the frame of the floor
        t: times, (K,) [s]
        load: index of the frame of the payload, which a second view follows
        close: half of the width of the second view, [m]
        axes: length of the drawn axes of that frame, [m]
    """

    caption: str
    solids: Sequence[Solid | Mesh]
    frames: Array
    t: Array
    load: int
    close: float
    axes: float

    @property
    def legend(self) -> tuple[tuple[str, str], ...]:
        """Name and colour of each named solid, each once."""
        return tuple({solid.name: solid.colour for solid in self.solids if solid.name}.items())

    @property
    def _corners(self) -> Array:
        """Origins of the frames and corners of the boxes around solids, at all times, (K, 3)."""
        found = [self.frames[..., :3, 3].reshape(-1, 3)]
        for solid in self.solids:
            T = self.frames[:, solid.frame]
            found.append(np.einsum("kab,cb->kca", T[:, :3, :3], solid.box) + T[:, None, :3, 3])
        return np.concatenate([corners.reshape(-1, 3) for corners in found])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a page, with lengths rounded to 0.1 mm."""
        corners = self._corners
        centre = (corners.min(axis=0) + corners.max(axis=0)) / 2
        reach = float(np.linalg.norm(corners - centre, axis=1).max())
        return {
            "solids": [solid.to_dict() for solid in self.solids],
            "frames": [[_rounded(T[:3], 4) for T in posture] for posture in self.frames],
            "t": _rounded(self.t, 3),
            "centre": _rounded(centre, 4),
            "reach": round(_VIEW_MARGIN * reach, 4),
            "load": self.load,
            "close": round(self.close, 4),
            "axes": round(self.axes, 4),
        }


def _rounded(values: Array, digits: int) -> list[float]:
    return [float(x) for x in np.round(np.ravel(values), digits)]
