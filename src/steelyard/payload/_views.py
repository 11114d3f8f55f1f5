"""A body as a plot: its centre of mass with a 95 % region, and its inertia as an ellipsoid, on a frame.

A homogeneous ellipsoid of mass m with semi-axes a along its principal axes has the second moment
S = m a^2 / 5, so the ellipsoid with the inertia of a body is { x : (x - c)' A^-1 (x - c) <= 1 }
with A = 5 (S / m), S the upper left block of the pseudo-inertia about the centre of mass c. Seen
along an axis, its outline is the ellipse of the 2 x 2 block of A.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard._arrays import Array
from steelyard.drawing import Band, Curve, Panel, Plot
from steelyard.inertia import InertialParameters

_PLANES = ((0, 1), (0, 2), (1, 2))
_CHI_95 = 2.4477  # radius of the 95 % ellipse of two normal variables, in standard deviations
_CHI_95_3D = 2.7955  # of the 95 % ellipsoid of three
_LARGEST = 0.5  # [m]: an ellipsoid beyond says nothing
_INK = "#1f2933"
_LOAD = "#2266aa"
_REGION = "#d9822b"
_TRUTH = "#c23030"
_SHORTEST_AXIS = 30.0  # [mm]
_VISIBLE = 0.04  # of the length of the drawn axes: a smaller region hides behind the dot
_WEAK = 0.3


def body_plot(
    body: InertialParameters,
    covariance: Array,
    truth: InertialParameters | None = None,
    *,
    origin: str = "flange",
) -> Plot:
    """Three views of a body on its frame, in millimetres.

    Args:
        covariance: of its ten numbers, (10, 10); infinite where unknown
        truth: the body where it is known, in the same frame
        origin: what sits at the origin of the frame, in words
    """
    com_spread = body.com_covariance(covariance)
    if np.isfinite(np.diag(covariance)).all():
        shape = _ellipsoid(body)
    else:
        shape = None
    known = np.isfinite(com_spread).all()
    if known:
        radius = 1e3 * _CHI_95 * float(np.sqrt(np.linalg.eigvalsh(com_spread)[-1]))
    else:
        radius = np.inf
    tiny = radius < _VISIBLE * _reach(body, shape)
    if tiny:
        drawn = np.full((3, 3), np.inf)
    else:
        drawn = com_spread
    panels = [_view(plane, body, drawn, shape, truth, origin) for plane in _PLANES]
    if tiny:
        region = "(its 95 % region is too small to be seen here)"
    else:
        region = "with its 95 % region"
    caption = (
        f"The payload on the {origin}, seen along each axis: centre of mass {region}, and the"
        " homogeneous ellipsoid that has its mass and inertia."
    )
    if shape is None:
        caption += " The inertia is not known, or that of no real body, so no ellipsoid is drawn."
    elif _loose(body, covariance):
        caption += (
            " The inertia is hardly known (see its intervals): the shape of the ellipsoid"
            " is a guess."
        )
    if not np.isfinite(com_spread).all():
        caption += " Where the data do not determine the centre of mass, no region is drawn."
    return Plot(caption, panels, 3)


def ellipsoids(body: InertialParameters, covariance: Array) -> dict[str, Array]:
    """Matrices A, (3, 3) [m^2], of { x : (x - com)' A^-1 (x - com) <= 1 }, as far as they are known.

    'inertia' is the homogeneous ellipsoid with the mass and inertia of the body, 'region' the 95 %
    region of its centre of mass; what is larger than half a metre says nothing and is left out.

    Args:
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
    return bool(values[0] > 0 and values[2] <= _LARGEST**2)


def com_plot(
    body: InertialParameters, covariance: Array, truth: InertialParameters | None = None
) -> Plot:
    """The centre of mass with its 95 % region, enlarged, seen along each axis, in millimetres.

    Args:
        covariance: of its ten numbers, (10, 10); infinite where unknown
        truth: the body where it is known, in the same frame
    """
    com_spread = body.com_covariance(covariance)
    panels = [_com_panel(plane, body, com_spread, truth) for plane in _PLANES]
    return Plot(
        f"The centre of mass with its 95 % region, enlarged, in the frame '{body.frame}'.",
        panels,
        3,
    )


def _outline(matrix: Array, centre: Array, radius: float = 1.0) -> tuple[Array, Array]:
    """The ellipse { x : (x - centre)' matrix^-1 (x - centre) = radius^2 }, closed, x and y, (121,) each."""
    values, axes = np.linalg.eigh(matrix)
    angle = np.linspace(0, 2 * np.pi, 121)
    circle = np.array([np.cos(angle), np.sin(angle)])
    x, y = centre[:, None] + radius * axes @ (np.sqrt(np.maximum(values, 0))[:, None] * circle)
    return x, y


def _ellipsoid(body: InertialParameters) -> Array | None:
    """The matrix A, (3, 3) [mm^2]; None where no real body has the inertia."""
    if not body.mass > 0:
        return None
    spread = body.pseudo_inertia[:3, :3] / body.mass - np.outer(body.com, body.com)
    if np.linalg.eigvalsh(spread)[0] <= 0:
        return None
    return 5e6 * spread


def _loose(body: InertialParameters, covariance: Array) -> bool:
    """Whether a diagonal entry of the inertia about the centre of mass is uncertain by more than 30 %."""
    std = np.sqrt(np.diag(covariance)[[4, 6, 9]])
    return bool((std > _WEAK * np.trace(body.inertia_com) / 3).any())


def _reach(body: InertialParameters, shape: Array | None) -> float:
    """Length of the drawn axes, [mm]."""
    if shape is None:
        sizes = 0.0
    else:
        sizes = float(np.sqrt(np.diag(shape)).max())
    return max(_SHORTEST_AXIS, 0.6 * sizes, 0.6e3 * float(np.linalg.norm(body.com)))


def _view(
    plane: tuple[int, int],
    body: InertialParameters,
    com_spread: Array,
    shape: Array | None,
    truth: InertialParameters | None,
    origin: str,
) -> Panel:
    i, k = plane
    block = np.ix_(plane, plane)
    com = 1e3 * body.com[[i, k]]
    reach = _reach(body, shape)
    corner = np.array([reach, 0.0, 0.0])
    parts: list[Curve | Band] = [Curve(f"axes of the {origin}", corner, corner[::-1], colour=_INK)]
    if shape is not None:
        parts.append(Curve("inertia ellipsoid", *_outline(shape[block], com), colour=_LOAD))
    if truth is None:
        known = None
    else:
        known = _ellipsoid(truth)
    if truth is not None and known is not None:
        around = _outline(known[block], 1e3 * truth.com[[i, k]])
        parts.append(Curve("truth: ellipsoid", *around, "dashed", colour=_TRUTH))
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
        parts.append(Curve("95 % region", *_outline(spread, com, _CHI_95), colour=_REGION))
    parts.append(Curve("centre of mass", com[:1], com[1:], "dots", colour=_LOAD))
    if truth is not None:
        at = 1e3 * truth.com[[i, k]]
        parts.append(Curve("truth", at[:1], at[1:], "dots", colour=_TRUTH))
    return Panel(
        f"{'xyz'[i]}-{'xyz'[k]} plane", f"{'xyz'[i]} [mm]", f"{'xyz'[k]} [mm]", parts, equal=True
    )
