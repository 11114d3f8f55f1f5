"""A weighed body on its way into a file: in the frame of the target, with what is known about it.

The covariance of the ten numbers follows the body into the frame, Sigma_new = A Sigma A'. The inertia about
the centre of mass is not linear in them,

    I_c = I - (h'h 1 - h h') / m,

so its uncertainty is that of its slope, dI_c = dI + dm (h'h 1 - h h') / m^2 - (2 h'dh 1 - dh h' - h dh') / m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steelyard.arrays import Array
from steelyard.errors import InvalidInertia, UnknownName
from steelyard.inertia import InertialParameters, checked_transform, frame_change_matrix
from steelyard.payload import Payload
from steelyard.wrist.payload import WrenchPayload

_HALF_WIDTH = 1.96  # standard deviations, 95 %
_DISTRUST = (
    "do not trust", "do not use", " postures say nothing about", "too alike", "the zero drift moves",
)  # fmt: skip
_ARM_HOLDS = (
    "what the arm carries beyond what it carried when its model was identified; a gripper that was mounted"
    " then is not in it"
)
_SENSOR_HOLDS = "what hangs on the wrist sensor; the sensor itself is not in it"
_UPPER = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
_ROUNDING = 1e-12


@dataclass(frozen=True)
class ErrorLimits:
    """How uncertain a payload may be and still go to a controller without a word of force.

    Attributes:
        mass: largest 95 % half-width of the mass, as a share of the mass
        com: largest 95 % half-width of the centre of mass in any direction, [m]
    """

    mass: float = 0.10
    com: float = 0.020

    def __post_init__(self) -> None:
        if not self.mass > 0 or not self.com > 0:
            raise InvalidInertia(
                f"the largest errors must be positive, got {self.mass:g} of the mass and {self.com:g} m"
            )


@dataclass(frozen=True, eq=False)
class Load:
    """What an export writes.

    Attributes:
        body: in the frame of the target
        covariance: of its ten numbers, (10, 10); infinite where unknown
        frame: the frame in words, and how the body came there
        holds: what was weighed, in words
        status: how good the estimate is, a sentence
        bias: what the wrist sensor shows without a load, (6,) [N, Nm], in the sensor frame; None when unknown
        name: what the payload is called where a format names it
        number: where a format counts payloads
        forced: doubts that were overruled, a sentence each
    """

    body: InertialParameters
    covariance: Array
    frame: str
    holds: str
    status: str
    bias: Array | None = None
    name: str = "payload"
    number: int = 1
    forced: tuple[str, ...] = ()

    @property
    def mass_error(self) -> float:
        """95 % half-width of the mass, [kg]."""
        return float(_HALF_WIDTH * np.sqrt(self.covariance[0, 0]))

    @property
    def com_error(self) -> float:
        """95 % half-width of the centre of mass in its worst direction, [m]; the same in every frame."""
        spread = self.covariance[:4, :4]
        if not np.isfinite(spread).all():
            return float("inf")
        slope = np.column_stack([-self.body.com, np.eye(3)]) / self.body.mass
        return float(_HALF_WIDTH * np.sqrt(max(np.linalg.eigvalsh(slope @ spread @ slope.T)[-1], 0.0)))

    @property
    def knows_inertia(self) -> bool:
        """Whether all ten numbers were excited."""
        return bool(np.isfinite(self.covariance).all())

    @property
    def inertia_com(self) -> Array:
        """Inertia about the centre of mass, entries xx, yy, zz, xy, xz, yz, (6,) [kg m^2]."""
        inertia = self.body.inertia_com
        return np.array([inertia[entry] for entry in _UPPER])

    @property
    def inertia_com_error(self) -> Array:
        """95 % half-widths of `inertia_com`, (6,) [kg m^2]; infinite where unknown."""
        if not self.knows_inertia:
            return np.full(6, np.inf)
        slope = _inertia_com_slope(self.body)
        return np.asarray(_HALF_WIDTH * np.sqrt(np.diag(slope @ self.covariance @ slope.T).clip(min=0.0)))


def load_of(
    payload: Payload | WrenchPayload,
    *,
    T_target_payload: ArrayLike | None = None,
    in_sensor_frame: bool = False,
    name: str = "payload",
    number: int = 1,
) -> Load:
    """A payload in the frame of a target.

    Args:
        payload: from joint torques, or from a wrist sensor
        T_target_payload: the frame that the payload was weighed in (flange or sensor), in the frame that the
            target wants, (4, 4); by default they are the same, which for a wrist sensor must be said
        in_sensor_frame: the target wants the frame of the wrist sensor
        name: what it is called there, letters, digits and underscores
        number: of the payload there, 1 or more
    """
    if not name.isidentifier() or not name.isascii():
        raise UnknownName(f"a payload's name is letters, digits and underscores, got '{name}'")
    if number < 1:
        raise UnknownName(f"payloads are counted from 1, got {number}")
    body = payload.body
    if not body.mass > 0:
        raise InvalidInertia(f"no controller takes this payload: {body.why_not_physical}")
    if isinstance(payload, WrenchPayload) and T_target_payload is None and not in_sensor_frame:
        raise InvalidInertia(
            "this payload was weighed in the frame of a wrist sensor: say where the sensor sits in the flange"
            " frame of the target"
        )
    T = None if T_target_payload is None else checked_transform(T_target_payload)
    wanted = "sensor" if in_sensor_frame else "flange"
    moved = body if T is None else body.in_frame(wanted, T)
    return Load(
        moved,
        payload.covariance if T is None else _moved_covariance(payload.covariance, T),
        _frame_words(body.frame, wanted, T),
        _SENSOR_HOLDS if isinstance(payload, WrenchPayload) else _ARM_HOLDS,
        payload.status,
        payload.drift if isinstance(payload, WrenchPayload) and T is None else None,
        name,
        number,
    )


def doubts_about(load: Load, limits: ErrorLimits, *, inertia: bool = True, bias: bool = False) -> list[str]:
    """Why a load should not go to a controller, a sentence each; empty when nothing speaks against it.

    Args:
        load: in the frame of the target
        limits: how uncertain it may be
        inertia: whether the target is told the inertia
        bias: whether the target is told the zero drift of a wrist sensor
    """
    doubts = []
    if inertia and not load.body.is_physical:
        doubts.append(f"no real body has these numbers: {load.body.why_not_physical}")
    if any(words in load.status for words in _DISTRUST):
        doubts.append(f"the estimate itself says: {load.status}")
    if inertia and not load.knows_inertia:
        doubts.append("the motion said nothing about some of the ten numbers; they were not measured")
    share = load.mass_error / load.body.mass
    if not share <= limits.mass:
        doubts.append(
            f"the mass is known to +- {100 * share:.3g} % (95 %), more than {100 * limits.mass:g} % allowed"
        )
    if not load.com_error <= limits.com:
        doubts.append(
            f"the centre of mass is known to +- {1e3 * load.com_error:.3g} mm (95 %),"
            f" more than {1e3 * limits.com:g} mm allowed"
        )
    if bias and load.bias is None:
        doubts.append("the zero drift of the sensor was not measured in this frame; zeros stand for it")
    return doubts


def _frame_words(source: str, wanted: str, T: Array | None) -> str:
    if T is None:
        return (
            f"the {wanted} frame of the target, taken to be the frame '{source}' that the payload was"
            " weighed in (make sure that it is)"
        )
    exact = np.round(T, 9) + 0.0  # what trigonometry left of zeros is no length and no angle
    place = " ".join(f"{x:.6g}" for x in exact[:3, 3])
    rows = "; ".join(" ".join(f"{x:.6g}" for x in row) for row in exact[:3, :3])
    return (
        f"the {wanted} frame of the target; the frame '{source}' that the payload was weighed in sits there"
        f" at ({place}) m with the axes (rows) [{rows}]"
    )


def _moved_covariance(covariance: Array, T: Array) -> Array:
    """The covariance in another frame; what depends on an unknown number is unknown."""
    A = frame_change_matrix(T)
    unknown = ~np.isfinite(np.diag(covariance))
    finite = np.where(unknown[:, None] | unknown[None, :], 0.0, covariance)
    moved = A @ finite @ A.T
    touched = (np.abs(A[:, unknown]) > _ROUNDING).any(axis=1)
    moved[touched, touched] = np.inf
    return np.asarray(moved)


def _inertia_com_slope(body: InertialParameters) -> Array:
    """The derivative of the six entries of the inertia about the centre of mass, (6, 10)."""
    m, h, one = body.mass, body.first_moment, np.eye(3)
    rows = np.empty((6, 10))
    for i, unit in enumerate(np.eye(10)):
        d = InertialParameters.from_vector(unit)
        dh = d.first_moment
        change = d.inertia + d.mass * (h @ h * one - np.outer(h, h)) / m**2
        change = change - (2 * (h @ dh) * one - np.outer(dh, h) - np.outer(h, dh)) / m
        rows[:, i] = [change[entry] for entry in _UPPER]
    return rows
