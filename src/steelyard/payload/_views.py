"""Plots of a body on its frame: centre of mass with its 95 % region, and inertia ellipsoid.

A homogeneous ellipsoid of mass m with semi-axes a along its principal axes has the second moment
S = m a^2 / 5, so the ellipsoid with the inertia of a body is { x : (x - c)' A^-1 (x - c) <= 1 }
with A = 5 (S / m), S the upper left block of the pseudo-inertia about the centre of mass c. Seen
along an axis, its outline is the ellipse of the 2 x 2 block of A.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from steelyard._arrays import Array
from steelyard.drawing import Band, Curve, Panel, Plot
from steelyard.inertia import InertialParameters

_PLANES = ((0, 1), (0, 2), (1, 2))
_CHI_95 = 2.4477  # radius of the 95 % ellipse of two normal variables, in standard deviations
_CHI_95_3D = 2.7955  # of the 95 % ellipsoid of three
_MAX_SEMI_AXIS = 0.5  # [m]; larger ellipsoids are not drawn
_AXES_COLOUR = "#1f2933"
_LOAD_COLOUR = "#2266aa"
_REGION_COLOUR = "#d9822b"
_TRUTH_COLOUR = "#c23030"
_MIN_AXIS_LENGTH = 30.0  # [mm]
_MIN_VISIBLE_RADIUS = 0.04  # of the drawn axes; the dot hides smaller regions
_MAX_INERTIA_STD = 0.3  # relative; less certain ellipsoids are marked in the caption


@dataclass(frozen=True, eq=False)
class _Outline:
    """The ellipsoid of a body as it is drawn.

    Attributes:
        matrix: A, (3, 3) [mm^2]
        guess: whether the inertia is too uncertain for its shape to mean much
    """

    matrix: Array
    guess: bool

    @property
    def name(self) -> str:
        """In the legend."""
        if self.guess:
            return "inertia ellipsoid (a guess)"
        return "inertia ellipsoid"

    @property
    def style(self) -> Literal["line", "dashed"]:
        """Of the curve."""
        if self.guess:
            return "dashed"
        return "line"


def body_plot(
    body: InertialParameters,
    covariance: Array,
    truth: InertialParameters | None = None,
    *,
    origin: str = "flange",
) -> Plot:
    """Three views of a body on its frame, in millimetres.

    Args:
        body: the body
        covariance: of its ten numbers, (10, 10); infinite where unknown
        truth: the true body, in the same frame; None if unknown
        origin: name of the frame's origin, for the caption
    """
    com_spread = body.com_covariance(covariance)
    shape = None
    if np.isfinite(np.diag(covariance)).all():
        shape = _ellipsoid(body)
    guess = shape is not None and inertia_is_uncertain(body, covariance)
    known = np.isfinite(com_spread).all()
    if known:
        radius = 1e3 * _CHI_95 * float(np.sqrt(np.linalg.eigvalsh(com_spread)[-1]))
    else:
        radius = np.inf
    tiny = radius < _MIN_VISIBLE_RADIUS * _axis_length(body, shape)
    if tiny:
        drawn = np.full((3, 3), np.inf)
    else:
        drawn = com_spread
    outline = None if shape is None else _Outline(shape, guess=guess)
    panels = [_view(plane, body, drawn, outline, truth, origin) for plane in _PLANES]
    region = ""
    if tiny:
        region = " (its 95 % region is too small to be seen here)"
    elif np.isfinite(com_spread).any():
        region = " with its 95 % region"
    caption = f"The payload on the {origin}, seen along each axis: centre of mass{region}"
    if shape is None:
        caption += (
            ". No ellipsoid is drawn: the inertia is not known with an interval, or not that of a"
            " real body."
        )
    else:
        caption += ", and the homogeneous ellipsoid that has its mass and inertia."
    if guess:
        caption += " The inertia is uncertain: the dashed ellipsoid is one of many that fit."
    if not known:
        caption += " No region is drawn where the centre of mass is not known with an interval."
    return Plot(caption, panels, 3)


def ellipsoids(body: InertialParameters, covariance: Array) -> dict[str, Array]:
    """Matrices A, (3, 3) [m^2], of { x : (x - com)' A^-1 (x - com) <= 1 }, by name.

    'inertia' is the homogeneous ellipsoid with the mass and inertia of the body, 'region' the 95 %
    region of its centre of mass. Unknown ones and those larger than half a metre are left out.

    Args:
        body: the body
        covariance: of its ten numbers, (10, 10); infinite where unknown
    """
    if not body.mass > 0:
        return {}
    found = {"region": _CHI_95_3D**2 * body.com_covariance(covariance)}
    if np.isfinite(covariance).all():
        found["inertia"] = 5 * body.second_moment_com / body.mass
    return {name: A for name, A in found.items() if _can_be_drawn(A)}


def _can_be_drawn(matrix: Array) -> bool:
    if not np.isfinite(matrix).all():
        return False
    values = np.linalg.eigvalsh(matrix)
    return bool(values[0] > 0 and values[2] <= _MAX_SEMI_AXIS**2)


def com_plot(
    body: InertialParameters, covariance: Array, truth: InertialParameters | None = None
) -> Plot:
    """The centre of mass with its 95 % region, enlarged, seen along each axis, in millimetres.

    Args:
        body: the body
        covariance: of its ten numbers, (10, 10); infinite where unknown
        truth: the true body, in the same frame; None if unknown
    """
    com_spread = body.com_covariance(covariance)
    panels = [_com_panel(plane, body, com_spread, truth) for plane in _PLANES]
    region = ""
    if np.isfinite(com_spread).any():
        region = " with its 95 % region"
    caption = f"The centre of mass{region}, enlarged, in the frame '{body.frame}'."
    return Plot(caption, panels, 3)


def _outline(matrix: Array, centre: Array, radius: float = 1.0) -> tuple[Array, Array]:
    """Closed outline of { x : (x - centre)' matrix^-1 (x - centre) = radius^2 }, x, y, (121,)."""
    values, axes = np.linalg.eigh(matrix)
    angle = np.linspace(0, 2 * np.pi, 121)
    circle = np.array([np.cos(angle), np.sin(angle)])
    x, y = centre[:, None] + radius * axes @ (np.sqrt(np.maximum(values, 0))[:, None] * circle)
    return x, y


def _ellipsoid(body: InertialParameters) -> Array | None:
    """The matrix A, (3, 3) [mm^2]; None if no real body has the inertia."""
    if not body.mass > 0:
        return None
    spread = body.pseudo_inertia[:3, :3] / body.mass - np.outer(body.com, body.com)
    if np.linalg.eigvalsh(spread)[0] <= 0:
        return None
    return 5e6 * spread


def inertia_is_uncertain(body: InertialParameters, covariance: Array) -> bool:
    """Whether a diagonal entry of the inertia about the centre of mass is uncertain by 30 %.

    Args:
        body: the body
        covariance: of its ten numbers, (10, 10)
    """
    std = np.sqrt(np.diag(covariance)[[4, 6, 9]])
    return bool((std > _MAX_INERTIA_STD * np.trace(body.inertia_com) / 3).any())


def _axis_length(body: InertialParameters, shape: Array | None) -> float:
    """Length of the drawn axes, [mm]."""
    if shape is None:
        sizes = 0.0
    else:
        sizes = float(np.sqrt(np.diag(shape)).max())
    return max(_MIN_AXIS_LENGTH, 0.6 * sizes, 0.6e3 * float(np.linalg.norm(body.com)))


def _view(
    plane: tuple[int, int],
    body: InertialParameters,
    com_spread: Array,
    outline: _Outline | None,
    truth: InertialParameters | None,
    origin: str,
) -> Panel:
    i, k = plane
    block = np.ix_(plane, plane)
    com = 1e3 * body.com[[i, k]]
    length = _axis_length(body, None if outline is None else outline.matrix)
    corner = np.array([length, 0.0, 0.0])
    parts: list[Curve | Band] = [
        Curve(f"axes of the {origin}", corner, corner[::-1], colour=_AXES_COLOUR)
    ]
    if outline is not None:
        around = _outline(outline.matrix[block], com)
        parts.append(Curve(outline.name, *around, outline.style, colour=_LOAD_COLOUR))
    if truth is None:
        known = None
    else:
        known = _ellipsoid(truth)
    if truth is not None and known is not None:
        around = _outline(known[block], 1e3 * truth.com[[i, k]])
        parts.append(Curve("truth: ellipsoid", *around, "dashed", colour=_TRUTH_COLOUR))
    near = _com_panel(plane, body, com_spread, truth)
    return replace(near, curves=[*parts, *near.curves])


def _com_panel(
    plane: tuple[int, int],
    body: InertialParameters,
    com_spread: Array,
    truth: InertialParameters | None,
) -> Panel:
    i, k = plane
    com = 1e3 * body.com[[i, k]]
    spread = 1e6 * com_spread[np.ix_(plane, plane)]
    parts: list[Curve | Band] = []
    if np.isfinite(spread).all():
        parts.append(Curve("95 % region", *_outline(spread, com, _CHI_95), colour=_REGION_COLOUR))
    parts.append(Curve("centre of mass", com[:1], com[1:], "dots", colour=_LOAD_COLOUR))
    if truth is not None:
        at = 1e3 * truth.com[[i, k]]
        parts.append(Curve("truth", at[:1], at[1:], "dots", colour=_TRUTH_COLOUR))
    return Panel(
        f"{'xyz'[i]}-{'xyz'[k]} plane", f"{'xyz'[i]} [mm]", f"{'xyz'[k]} [mm]", parts, equal=True
    )
