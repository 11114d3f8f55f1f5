"""A weighed payload: ten numbers with their covariance and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array
from steelyard._codec import FileValue
from steelyard._kinds import COVARIANCE, INFINITE, NOT_NEGATIVE, Inlined, Range, Shape
from steelyard._reported import Reported
from steelyard._units import INERTIA as INERTIA_UNIT
from steelyard._units import NORMAL_95, printable, rounded
from steelyard.errors import InvalidSamples
from steelyard.inertia import INERTIA, PARAMETER_NAMES, InertialParameters
from steelyard.payload._plausibility import MAX_MASS, MAX_SIZE
from steelyard.recording import UNKNOWN_ARM, ArmIdentity, Library, data_frame
from steelyard.verdict import Aspect, Doubt, DoubtKind, Verdict, together

if TYPE_CHECKING:
    from steelyard.drawing import Picture
    from steelyard.export import ErrorLimits, Load

_EXPORT_CONTENT = (
    "the load beyond that of the arm during identification; a gripper that was mounted then is not"
    " included"
)

_DIGITS_WITHOUT_INTERVAL = 4  # of a number whose method gives no interval

# Half-widths beyond which reports call a number unknown: the data say less than any payload does.
_MAX_MASS_HALF_WIDTH = MAX_MASS  # [kg]
_MAX_COM_HALF_WIDTH = 1.0  # [m]
_MAX_INERTIA_HALF_WIDTH = MAX_MASS * MAX_SIZE**2  # [kg m^2]


class Quantity(NamedTuple):
    """One number of a result in the unit of reports.

    Attributes:
        name: of the number, in words
        value: in the unit
        std: standard deviation, in the unit; infinite if the number is unknown, NaN if its method
            gives no interval
        unit: symbol; lengths are in mm
    """

    name: str
    value: float
    std: float
    unit: str

    @classmethod
    def of_body(cls, body: InertialParameters, std: Array, com_std: Array) -> tuple[Self, ...]:
        """Mass, centre of mass, and inertia about the origin of the frame of a body.

        Args:
            body: the body
            std: standard deviation of its ten numbers, (10,) [SI]
            com_std: of its centre of mass, (3,) [m]
        """
        if body.mass:
            com = body.com
        else:
            com = np.zeros(3)
        mass_std = _as_shown(std[:1], _MAX_MASS_HALF_WIDTH)[0]
        shown_com_std = _as_shown(com_std, _MAX_COM_HALF_WIDTH)
        shown_inertia_std = _as_shown(std[INERTIA], _MAX_INERTIA_HALF_WIDTH)
        rows = [cls("mass", body.mass, float(mass_std), "kg")]
        for axis, x, x_std in zip("xyz", com, shown_com_std, strict=True):
            rows.append(cls(f"centre of mass {axis}", 1e3 * float(x), 1e3 * float(x_std), "mm"))
        origin = body.frame
        if body.frame == "flange":
            origin = "the flange"
        for name, x, x_std in zip(
            PARAMETER_NAMES[INERTIA], body.vector[INERTIA], shown_inertia_std, strict=True
        ):
            rows.append(cls(f"{name} about {origin}", float(x), float(x_std), INERTIA_UNIT))
        return tuple(rows)

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval, in the unit."""
        return NORMAL_95 * self.std

    @property
    def is_known(self) -> bool:
        """Whether the data determine it, with an interval or without."""
        return not np.isinf(self.std)

    @property
    def without_interval(self) -> Quantity:
        """The same number by a method that gives no interval."""
        return self._replace(std=float("nan"))

    @property
    def rounded(self) -> tuple[str, str]:
        """Value and half-width to two digits of the half-width.

        The half-width is empty where there is none; the value of an unknown number is "unknown".
        """
        if np.isnan(self.std):
            return f"{self.value:.{_DIGITS_WITHOUT_INTERVAL}g}", ""
        return rounded(self.value, self.half_width)

    @property
    def with_interval(self) -> str:
        """Value and half-width to two digits of the half-width, as '3.527 +- 0.011'."""
        value, half = self.rounded
        if half:
            return f"{value} +- {half}"
        return value

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """Name, value, half-width and unit, for a table."""
        return self.name, *self.rounded, self.unit


def _as_shown(std: Array, max_half_width: float) -> Array:
    """Standard deviations; infinite where reports call the number unknown.

    Args:
        std: standard deviations, of any shape
        max_half_width: above which a number is called unknown, in the same unit
    """
    return np.where(std * NORMAL_95 > max_half_width, np.inf, std)


_ENTRY_OF_INERTIA = np.array([[0, 3, 4], [3, 1, 5], [4, 5, 2]])  # among xx, yy, zz, xy, xz, yz
_INERTIA_INDICES = {
    name: ("xyz".index(name[1]), "xyz".index(name[2])) for name in PARAMETER_NAMES[INERTIA]
}
_COUNT = len(PARAMETER_NAMES)
_SHARES_TOLERANCE = 1e-6  # of the sum of all shares
_UNKNOWN_TOGETHER = "the mass or centre of mass of the tool or of the part is unknown"
_CAUSES = ("noise", "friction", "gains", "drift", "motion", "gravity", "scale", "force")
_ALWAYS_SHARED = ("noise", "friction", "gains", "drift")


def _order(payload: Payload) -> tuple[str, ...]:
    return PARAMETER_NAMES


def _channels(payload: Payload) -> int:
    return len(payload.noise)


def _mass_std(payload: Payload) -> float:
    return float(payload.std[0])


DERIVED: dict[str, Callable[[Payload], Any]] = {
    **{name: attrgetter(name) for name in ("mass", "com", "com_std", "std", "excited")},
    "mass_std": _mass_std,
    "order": _order,
    "channels": _channels,
}
"""Fields of a saved payload that follow from the others."""


@dataclass(frozen=True, eq=False)
class Payload(
    Reported,
    FileValue,
    error=InvalidSamples,
    kind="payload",
    version=5,
    derived=DERIVED,
):
    """A weighed payload.

    Attributes:
        body: the answer; physical if all ten numbers were excited and a real body is near the
            estimate
        unconstrained: the estimate without physical constraints
        covariance: of its ten numbers in the order of `PARAMETER_NAMES`, (10, 10); infinite where
            unknown
        noise: standard deviation of the torque residuals of each joint, (n,) [Nm or N]
        verdict: whether it may be used, and the doubts about it
        method: of weighing
        gain_error: change of the ten numbers with one standard deviation of each cause of gain
            errors, (10, causes), included in the covariance; None if torques were measured
        shares: of the mass's variance, by cause: 'noise', 'friction' (of the day, and by
            contradiction of the empty arm), 'gains', their 'drift' since the empty runs, noise of
            the 'motion', 'gravity' if only its nominal size is known, and another 'scale' of the
            torques or a steady 'force' where the data do not exclude them
        arm: the arm that carried it, as far as it is known
        gives_intervals: whether the method says how certain its numbers are; if not, the covariance
            is infinite though all numbers are estimated
    """

    body: Annotated[
        InertialParameters,
        Inlined(InertialParameters.from_vector, {"vector": "vector", "frame": "frame"}),
    ]
    unconstrained: Annotated[
        InertialParameters,
        Inlined(InertialParameters.from_vector, {"unconstrained": "vector", "frame": "frame"}),
    ]
    covariance: Annotated[Array, Shape(10, 10), INFINITE, COVARIANCE]
    noise: Annotated[Array, Shape("n"), NOT_NEGATIVE]
    verdict: Verdict
    method: str = "direct"
    gain_error: Annotated[Array | None, Shape(10, "causes")] = None
    shares: Mapping[str, Annotated[float, Range(0.0, 1.0)]] = field(default_factory=dict)
    arm: ArmIdentity = UNKNOWN_ARM
    gives_intervals: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.shares:
            return
        for name in _ALWAYS_SHARED:
            if name not in self.shares:
                raise InvalidSamples(f"'shares.{name}' is missing")
        for name in self.shares:
            if name not in _CAUSES:
                raise InvalidSamples(
                    f"'shares.{name}' is no cause; the causes are {', '.join(_CAUSES)}"
                )
        if abs(sum(self.shares.values()) - 1.0) > _SHARES_TOLERANCE:
            raise InvalidSamples(f"'shares' must add up to 1, got {dict(self.shares)}")

    @property
    def mass(self) -> float:
        """Mass, [kg]."""
        return self.body.mass

    @property
    def com(self) -> Array:
        """Centre of mass, (3,) [m], in the frame of the body; NaN if the mass is zero."""
        if self.body.mass:
            return self.body.com
        return np.full(3, np.nan)

    @property
    def std(self) -> Array:
        """Standard deviation of the ten numbers in the order of `PARAMETER_NAMES`, (10,) [SI]."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def T_flange_frame(self) -> Array | None:
        """The frame of the body in the flange frame, (4, 4); None where it is the flange itself."""
        return None

    def in_flange(self, flange: str = "flange") -> Payload:
        """The payload in the flange frame: this one.

        Args:
            flange: name of the frame
        """
        return self

    @property
    def com_std(self) -> Array:
        """Standard deviation of the centre of mass, (3,) [m]; infinite if the mass is zero."""
        if self.body.mass == 0:
            return np.full(3, np.inf)
        variances = np.diag(self.body.com_covariance(self.covariance))
        return np.asarray(np.sqrt(np.maximum(variances, 0.0)))

    @property
    def inertia_com(self) -> Array:
        """Inertia about the centre of mass, (3, 3) [kg m^2], along the axes of the frame."""
        return self.body.inertia_com

    @property
    def inertia_com_std(self) -> Array:
        """Standard deviation of `inertia_com`, (3, 3) [kg m^2]; infinite if unknown."""
        if self.body.mass == 0 or not np.isfinite(self.covariance).all():
            return np.full((3, 3), np.inf)
        variances = np.diag(self.body.inertia_com_covariance(self.covariance))
        std = np.sqrt(np.maximum(variances, 0.0))
        return np.asarray(std[_ENTRY_OF_INERTIA])

    @property
    def inertia_com_quantities(self) -> tuple[Quantity, ...]:
        """Inertia about the centre of mass in units of reports; empty if the mass is zero."""
        if self.body.mass == 0:
            return ()
        value = self.inertia_com
        std = self.inertia_com_std
        if not np.isfinite(_as_shown(self.com_std, _MAX_COM_HALF_WIDTH)).all():
            std = np.full((3, 3), np.inf)
        else:
            std = _as_shown(std, _MAX_INERTIA_HALF_WIDTH)
        return self._shown(
            Quantity(
                f"{name} about the centre of mass", float(value[i]), float(std[i]), INERTIA_UNIT
            )
            for name, i in _INERTIA_INDICES.items()
        )

    @property
    def table_quantities(self) -> tuple[Quantity, ...]:
        """The quantities of tables, with the inertia about the centre of mass where it is known."""
        own = self.quantities
        about_com = self.inertia_com_quantities
        if not any(x.is_known for x in about_com):
            about_com = ()
        return (*own[:_COUNT], *about_com, *own[_COUNT:])

    @property
    def excited(self) -> tuple[str, ...]:
        """Names of the known numbers, measured or fixed, of `PARAMETER_NAMES`."""
        return tuple(
            name for name, std in zip(PARAMETER_NAMES, self.std, strict=True) if np.isfinite(std)
        )

    @property
    def status(self) -> str:
        """The verdict as a sentence without a full stop."""
        return self.verdict.sentence

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Mass, centre of mass, and inertia about the origin of the frame, in units of reports."""
        return self._shown(Quantity.of_body(self.body, self.std, self.com_std))

    def _shown(self, quantities: Iterable[Quantity]) -> tuple[Quantity, ...]:
        """Numbers as they are shown: known but without interval where the method gives none."""
        if self.gives_intervals:
            return tuple(quantities)
        return tuple(x.without_interval for x in quantities)

    def together_with(self, tool: Payload) -> Payload:
        """The tool and this part as one load, with the uncertainty of both.

        Args:
            tool: the load of the arm during identification, in the same frame
        """
        if tool.body.frame != self.body.frame:
            raise InvalidSamples(
                f"the tool is given in frame '{tool.body.frame}', the part in '{self.body.frame}':"
                " express both in one frame first"
            )
        own = self.gain_error
        other = tool.gain_error
        covariance = self.covariance + tool.covariance
        if own is None:
            gain_error = other
        elif other is None:
            gain_error = own
        elif own.shape != other.shape:  # gains with different causes of errors
            gain_error = np.hstack([own, other])
        else:  # the same gain errors act on both
            gain_error = own + other
            covariance = covariance + own @ other.T + other @ own.T
        parts = {name: self._part(name) + tool._part(name) for name in (self.shares or tool.shares)}
        if "gains" in parts and gain_error is not None:
            parts["gains"] = float(gain_error[0] @ gain_error[0])
        known = np.isfinite(np.diag(covariance))
        if known[:4].all():
            doubts = []
        else:
            doubts = [Doubt(DoubtKind.NOT_EXCITED, _UNKNOWN_TOGETHER)]
        summaries = f"the part: {self.verdict.summary}; the tool: {tool.verdict.summary}"
        plain = self.unconstrained.vector + tool.unconstrained.vector
        return replace(
            self,
            body=InertialParameters.from_vector(
                self.body.vector + tool.body.vector, self.body.frame
            ),
            unconstrained=InertialParameters.from_vector(plain, self.body.frame),
            covariance=covariance,
            verdict=together(
                f"tool and part together; {summaries}", (self.verdict, tool.verdict)
            ).doubted(*doubts),
            gain_error=gain_error,
            shares={name: part / sum(parts.values()) for name, part in parts.items()},
            gives_intervals=self.gives_intervals and tool.gives_intervals,
        )

    def _part(self, name: str) -> float:
        """The part of the mass's variance that one cause contributes, [kg^2]."""
        return self.shares.get(name, 0.0) * float(self.covariance[0, 0])

    # --- for people

    @property
    def headline(self) -> str:
        """Mass, centre and inertia, and whether to use them, in short sentences."""
        from steelyard.payload._headline import headline

        return headline(self)

    def __str__(self) -> str:
        mass, *com = self.quantities[:4]
        words = f"{mass.with_interval} kg"
        if self.body.mass:
            centre = ", ".join(x.with_interval for x in com)
            words += f", centre of mass {centre} mm in frame '{self.body.frame}'"
        level = "95 %" if self.gives_intervals else "no intervals"
        return printable(f"{words} ({level}). {self.verdict}")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def _repr_html_(self) -> str | None:
        from steelyard.drawing import notebook_html
        from steelyard.payload._views import body_plot

        headers = ("", "weighed", "\u00b1 (95 %)", "unit")
        cells = [x.cells for x in self.table_quantities]
        drawn = self.body.mass > 0
        if drawn:
            plot = body_plot(self.body, self.covariance, origin=self.body.frame)
        else:
            plot = None
        badge = self.verdict.fitness(Aspect.MASS), self.headline
        return notebook_html(headers, cells, badge=badge, words=str(self.verdict), plot=plot)

    def plot(self, ax: Any = None) -> Picture:
        """The payload on its frame, and its centre of mass enlarged; a notebook shows it.

        Args:
            ax: axes of Matplotlib to draw the views on, one or several; none by default
        """
        from steelyard.drawing import Picture
        from steelyard.payload._views import body_plot, com_plot

        if not self.body.mass > 0:
            raise InvalidSamples("the mass is not positive: there is no payload to draw")
        views = body_plot(self.body, self.covariance, origin=self.body.frame)
        picture = Picture([views, com_plot(self.body, self.covariance)])
        if ax is not None:
            picture.draw(ax)
        return picture

    # --- for programs and files

    def to_dataframe(self, library: Library = "pandas") -> Any:
        """A table with the columns name, value, std, half_width (95 %) and unit.

        DuckDB and other Arrow consumers accept the payload itself.

        Args:
            library: whose table: 'pandas', 'polars' or 'pyarrow'
        """
        rows = self.table_quantities
        names = ("name", "value", "std", "half_width", "unit")
        return data_frame({name: [getattr(row, name) for row in rows] for name in names}, library)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_dataframe("pyarrow").__arrow_c_stream__(requested_schema)

    # --- for controllers and simulators

    def as_load(self, *, name: str = "payload", number: int = 1) -> Load:
        """The load that an export writes.

        Args:
            name: of the payload, in formats with names
            number: of the payload, in formats with numbers
        """
        from steelyard.export import Load

        return Load(
            self.body, self.covariance, self.verdict, _EXPORT_CONTENT, name=name, number=number
        )

    def export(
        self,
        target: str,
        path: str | Path | None = None,
        *,
        T_target_payload: ArrayLike | None = None,
        limits: ErrorLimits | None = None,
        inertia: str | None = None,
        force: bool = False,
        name: str = "payload",
        number: int = 1,
    ) -> str:
        """The text for a controller or a simulator, with frame, units and doubts as comments.

        Args:
            target: one of `steelyard.export.TARGETS`, such as 'ur', 'abb' or 'urdf'
            path: of the file to write; no file by default
            T_target_payload: pose of the payload's frame in the frame of the target, (4, 4); the
                identity by default
            limits: largest permitted uncertainty; 10 % of the mass and 20 mm by default
            inertia: 'estimated', 'sphere' (that of a homogeneous one) or 'none' (a point mass); by
                default the estimate if it is known, else that of a sphere
            force: whether to export a doubtful payload; the text then states the doubts
            name: of the payload, in formats with names
            number: of the payload, in formats with numbers
        """
        from steelyard.export import Export

        load = self.as_load(name=name, number=number)
        export = Export.of(
            load, target, T_target_load=T_target_payload, limits=limits, inertia=inertia
        )
        if path is None:
            return export.text(force=force)
        return export.write(path, force=force)
