"""A weighed body to export: in the frame of the target, with its uncertainty.

The covariance of the ten numbers follows the body into the frame, Sigma_new = A Sigma A'. The
inertia about the centre of mass is not linear in them,

    I_c = I - (h'h 1 - h h') / m,

so its uncertainty follows from its derivative,

    dI_c = dI + dm (h'h 1 - h h') / m^2 - (2 h'dh 1 - dh h' - h dh') / m.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard._arrays import Array, freeze
from steelyard._units import NORMAL_95, with_interval
from steelyard.errors import InvalidInertia, UnknownName
from steelyard.inertia import InertialParameters
from steelyard.verdict import Aspect, Doubt, Fitness, Verdict

_ENTRIES = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
_ENTRY_INDICES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
_INERTIA_TOLERANCE = 1e-9  # of the largest entry of the inertia about the origin
SPHERE_DENSITY = 2700.0
"""Of a sphere that stands for a body of unknown inertia: aluminium, [kg/m^3]."""
DEFAULT_NAME = "payload"
"""Name of a payload, in formats with names."""
DEFAULT_NUMBER = 1
"""Number of a payload, in formats with numbers."""
INERTIAS = ("estimated", "sphere", "none")
"""Choices for the written inertia: the estimate, that of a sphere, or that of a point."""


@dataclass(frozen=True)
class ErrorLimits:
    """Largest errors of a payload that is exported without force.

    Attributes:
        mass: largest 95 % half-width of the mass, as a share of the mass
        com: largest 95 % half-width of the centre of mass in any direction, [m]
    """

    mass: float = 0.10
    com: float = 0.020

    def __post_init__(self) -> None:
        if not self.mass > 0 or not self.com > 0:
            raise InvalidInertia(
                f"error limits must be positive, got {self.mass:g} of the mass and {self.com:g} m"
            )


@dataclass(frozen=True, eq=False)
class Load:
    """A payload for an export.

    Attributes:
        body: the weighed body, with a positive mass
        covariance: of its ten numbers, (10, 10); infinite where unknown
        verdict: on the estimate
        holds: description of what the mass includes
        bias: reading of the wrist sensor without a load, (6,) [N, Nm], in the frame of the body,
            which is the sensor's; None if unknown or weighed without a sensor
        name: of the payload in formats with names: letters, digits and underscores
        number: of the payload in formats with numbers, from 1
        frame: description of the target's frame; empty before `in_target_frame`
        forced: doubts that were overruled
        stand_in: description of the inertia that replaces the estimate; empty for the estimate
    """

    body: InertialParameters
    covariance: Array
    verdict: Verdict
    holds: str
    bias: Array | None = None
    name: str = DEFAULT_NAME
    number: int = DEFAULT_NUMBER
    frame: str = ""
    forced: tuple[Doubt, ...] = ()
    stand_in: str = ""

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or not self.name.isascii():
            raise UnknownName(
                f"the name of a payload has letters, digits and underscores only, got '{self.name}'"
            )
        if self.number < 1:
            raise UnknownName(f"numbers of payloads start at 1, got {self.number}")
        if not self.body.mass > 0:
            raise InvalidInertia(f"this payload cannot be exported: {self.body.why_not_physical}")
        freeze(self, "covariance", "bias")

    def in_target_frame(self, wanted: str, T_target_load: Array | None) -> Load:
        """The load in the frame of a target.

        Args:
            wanted: 'flange' or 'sensor'
            T_target_load: the present frame in that of the target, (4, 4); None if they are the
                same
        """
        T = T_target_load
        source = self.body.frame
        if T is None:
            words = (
                f"the {wanted} frame of the target, assumed to be the frame '{source}' in which the"
                " payload was weighed (verify this)"
            )
            return replace(self, frame=words)
        exact = np.round(T, 9) + 0.0  # without rounding errors of trigonometry
        place = " ".join(f"{x:.6g}" for x in exact[:3, 3])
        rows = "; ".join(" ".join(f"{x:.6g}" for x in row) for row in exact[:3, :3])
        return replace(
            self,
            body=self.body.in_frame(wanted, T),
            covariance=InertialParameters.moved_covariance(self.covariance, T),
            bias=None,
            frame=f"the {wanted} frame of the target; in it the frame '{source}' of the payload"
            f" is at ({place}) m with the axes (rows) [{rows}]",
        )

    def with_inertia(self, choice: str | None) -> Load:
        """The load with the inertia to be written.

        Args:
            choice: one of `INERTIAS`; by default the estimate if it is known, otherwise a sphere
        """
        if choice is not None and choice not in INERTIAS:
            raise UnknownName(f"`inertia` must be one of {', '.join(INERTIAS)}, got '{choice}'")
        if choice is None:
            unfit = self.verdict.fitness(Aspect.INERTIA) is Fitness.DO_NOT_USE and self.verdict.ok
            if unfit or not self.knows_inertia:
                choice = "sphere"
            elif self._inertia_is_useful or self.is_point:
                choice = "estimated"
            else:
                choice = "sphere"
        if choice == "estimated":
            return self
        if choice == "sphere":
            radius = (3 * self.body.mass / (4 * np.pi * SPHERE_DENSITY)) ** (1 / 3)
        else:
            radius = 0.0
        instead = "a point mass"
        if radius:
            instead = (
                f"a homogeneous sphere of {SPHERE_DENSITY:g} kg/m^3 with a diameter of"
                f" {2e3 * radius:.3g} mm"
            )
        words = f"{self._inertia_words()} It is not written; the inertia here is that of {instead}."
        moment = 0.4 * self.body.mass * radius**2
        body = self.body.from_com(
            self.body.mass, self.body.com, moment * np.eye(3), self.body.frame
        )
        return replace(self, body=body, stand_in=words)

    @property
    def mass_error(self) -> float:
        """95 % half-width of the mass, [kg]."""
        return float(NORMAL_95 * np.sqrt(self.covariance[0, 0]))

    @property
    def com_error(self) -> float:
        """95 % half-width of the centre of mass in its worst direction, [m], in any frame."""
        covariance = self.covariance[:4, :4]
        if not np.isfinite(covariance).all():
            return float("inf")
        slope = np.column_stack([-self.body.com, np.eye(3)]) / self.body.mass
        return float(
            NORMAL_95 * np.sqrt(max(np.linalg.eigvalsh(slope @ covariance @ slope.T)[-1], 0.0))
        )

    @property
    def knows_inertia(self) -> bool:
        """Whether all ten numbers were excited."""
        return bool(np.isfinite(self.covariance).all())

    @property
    def inertia_com(self) -> Array:
        """Inertia about the centre of mass, entries xx, yy, zz, xy, xz, yz, (6,) [kg m^2]."""
        inertia = self.body.inertia_com
        return np.array([inertia[entry] for entry in _ENTRY_INDICES])

    @property
    def inertia_com_error(self) -> Array:
        """95 % half-widths of `inertia_com`, (6,) [kg m^2]; infinite where unknown."""
        if not self.knows_inertia:
            return np.full(6, np.inf)
        variances = np.diag(self.body.inertia_com_covariance(self.covariance))
        return np.asarray(NORMAL_95 * np.sqrt(variances.clip(min=0.0)))

    @property
    def is_point(self) -> bool:
        """Whether all mass is in one point, as where only mass and centre of mass are known."""
        return bool(
            np.abs(self.body.inertia_com).max()
            <= _INERTIA_TOLERANCE * np.abs(self.body.inertia).max()
        )

    def head(
        self, target: str, units: str, *, notes: Sequence[str] = (), left_out: str = ""
    ) -> list[str]:
        """Sentences for comments: frame, units, uncertainty, doubts, and what is left out.

        Args:
            target: program that reads the file
            units: description of the units
            notes: further sentences for users of this target
            left_out: quantities that the format cannot hold
        """
        sentences = [
            f"Payload for {target}, written by steelyard.",
            *(f"FORCED in spite of a doubt: {doubt.words}." for doubt in self.forced),
            f"Holds: {self.holds}.",
            f"Frame: {self.frame}.",
            f"Units: {units}.",
            self._mass_words(),
            self._inertia_words(),
            f"Status: {self.verdict.sentence}.",
        ]
        if left_out:
            sentences.append(f"Left out, because this format cannot hold it: {left_out}.")
        ascii_words = (
            words.encode("ascii", "replace").decode("ascii") for words in (*sentences, *notes)
        )
        return [" ".join(words.split()) for words in ascii_words]

    @property
    def _inertia_is_useful(self) -> bool:
        """Whether no half-width is larger than the largest moment."""
        return bool(self.inertia_com_error.max() <= self.inertia_com[:3].max())

    def _mass_words(self) -> str:
        if not np.isfinite(self.mass_error):
            return f"Weighed without an interval: mass {self.body.mass:.4g} kg."
        mass = with_interval(self.body.mass, self.mass_error)
        com_mm = 1e3 * self.com_error
        return (
            f"Weighed (95 %): mass {mass} kg, centre of mass +- {com_mm:.2g} mm in its worst"
            " direction."
        )

    def _inertia_words(self) -> str:
        if self.stand_in:
            return self.stand_in
        if not self.knows_inertia:
            return "The inertia was not measured."
        pairs = zip(_ENTRIES, self.inertia_com, self.inertia_com_error, strict=True)
        entries = ", ".join(f"{name} {with_interval(value, error)}" for name, value, error in pairs)
        words = f"Inertia about the centre of mass, axes of this frame (95 %): {entries} kg m^2."
        if not self._inertia_is_useful:
            words += " It is very uncertain: the largest half-width exceeds the largest moment."
        return words

    def require_moments(self) -> None:
        """Raises an error for a negative principal moment, which controllers misinterpret."""
        smallest = self.body.principal_moments[0]
        if smallest < -_INERTIA_TOLERANCE * np.abs(self.body.inertia).max():
            raise InvalidInertia(
                f"the payload has a negative moment of inertia, {smallest:.3g} kg m^2 about its"
                " centre of mass, which cannot be exported even by force; weigh again with more"
                " motion"
            )


@dataclass(frozen=True)
class Target:
    """A format of loads.

    Attributes:
        words: program that reads it
        write: function that returns the text of a load
        inertia: whether the format holds the inertia
        in_sensor_frame: whether it holds the body in the frame of a wrist sensor
        holds_zero: whether it holds the zero drift of the sensor
        heaviest: largest payload of all arms that read it, [kg]
        has_name: whether a payload has a name in it
        has_number: whether a payload has a number in it
    """

    words: str
    write: Callable[[Load], str]
    inertia: bool = True
    in_sensor_frame: bool = False
    holds_zero: bool = False
    heaviest: float = float("inf")
    has_name: bool = False
    has_number: bool = False
