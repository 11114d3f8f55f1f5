"""Principal axes for formats that turn them: right-handed, and as near to the frame's own as can be.

The axes of I_c = R diag(moments) R' can be named and pointed in 24 right-handed ways; the one with the
largest trace of R turns least. A body that is symmetric about an axis, or alike in all directions, has more
ways; any of them has the same inertia.
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard.arrays import Array
from steelyard.errors import InvalidInertia
from steelyard.inertia import InertialParameters

_ROUNDING = 1e-9  # of the largest entry of the inertia about the origin


def is_point(body: InertialParameters) -> bool:
    """Whether all mass sits in one point, as where only mass and centre of mass are known.

    Args:
        body: in any frame
    """
    return bool(np.abs(body.inertia_com).max() <= _ROUNDING * np.abs(body.inertia).max())


def require_moments(body: InertialParameters) -> None:
    """Refuses a body with a negative moment; a controller may read one as a request for its default.

    Args:
        body: in any frame
    """
    smallest = body.principal_moments[0]
    if smallest < -_ROUNDING * np.abs(body.inertia).max():
        raise InvalidInertia(
            f"the payload has a negative moment of inertia, {smallest:.3g} kg m^2 about its centre of mass:"
            " no controller takes it, force or not; weigh again with more motion"
        )


def principal_inertia(body: InertialParameters) -> tuple[Array, Array]:
    """Principal moments about the centre of mass, (3,) [kg m^2], and their axes as columns, (3, 3).

    Args:
        body: with no negative moment
    """
    require_moments(body)
    if is_point(body):
        return np.zeros(3), np.eye(3)
    values, vectors = np.linalg.eigh(body.inertia_com)
    ways = [
        (list(order), axes)
        for order in permutations(range(3))
        for signs in product((1.0, -1.0), repeat=3)
        if np.linalg.det(axes := vectors[:, order] * np.array(signs)) > 0
    ]
    order, axes = max(ways, key=lambda way: np.trace(way[1]))
    return values[order].clip(min=0.0), axes


def quaternion(R: Array) -> Array:
    """The unit quaternion of a rotation, scalar first and not negative, (4,).

    Args:
        R: (3, 3)
    """
    q = np.asarray(Rotation.from_matrix(R).as_quat()[[3, 0, 1, 2]])
    return -q if q[0] < 0 else q
