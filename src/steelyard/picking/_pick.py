"""One pick as a value, and the decision about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Annotated, NamedTuple

from steelyard._codec import Value
from steelyard._kinds import INFINITE, NOT_NEGATIVE, Range
from steelyard._units import NORMAL_95, printable
from steelyard.errors import InvalidSamples

_MASSES = Range(-1e6, 1e6)  # that a motion can seem to show [kg]


class Decision(StrEnum):
    """What a pick is."""

    GOOD = "good"
    MISSING = "missing"  # nothing carried
    DOUBLE = "double"  # two parts instead of one
    WRONG_PART = "wrong part"  # another part of the table
    FOREIGN = "foreign part"  # no part of the table
    LOST = "lost"  # on the way
    SLIPPED = "slipped"  # its centre of mass moved on the way
    UNCLEAR = "unclear"  # this motion cannot tell
    NOT_WEIGHED = "not weighed"  # too short, or damaged

    @property
    def is_alarm(self) -> bool:
        """Whether it is a fault of the pick."""
        return self not in (Decision.GOOD, Decision.UNCLEAR, Decision.NOT_WEIGHED)


@dataclass(frozen=True)
class Measured(Value, error=InvalidSamples, derived={"half_width": attrgetter("half_width")}):
    """A measured mass.

    Attributes:
        value: [kg]
        std: its standard deviation [kg]; infinite if unknown
    """

    value: Annotated[float, _MASSES]
    std: Annotated[float, INFINITE, NOT_NEGATIVE]

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval [kg]."""
        return NORMAL_95 * self.std

    @property
    def words(self) -> str:
        """The mass with its half-width, as '0.512 +- 0.004 kg'."""
        return f"{self.value:.3f} +- {self.half_width:.3f} kg"

    def __str__(self) -> str:
        return printable(self.words)


class EarlyRow(NamedTuple):
    """One early answer as plain numbers and texts, with names as in `PickRow`."""

    number: int
    close_s: float
    part: str
    early: float  # [kg]
    early_half_width: float  # [kg]
    early_decision: str


class PickRow(NamedTuple):
    """One pick as a row of a table: plain numbers and texts; None where nothing was weighed."""

    number: int
    close_s: float
    open_s: float
    decision: str
    alarm: bool
    part: str
    fits: str
    mass: float | None  # [kg]; so are the next five
    mass_half_width: float | None
    relative: float | None
    relative_half_width: float | None
    early: float | None
    early_half_width: float | None
    early_decision: str | None
    reasons: str  # separated by semicolons


@dataclass(frozen=True)
class EarlyAnswer:
    """What a pick seems to be 0.3 s into its lift; the pick itself follows when the gripper opens.

    Attributes:
        number: of the pick in the log, from 1
        close_s: when the gripper closed [s]
        decision: by the mass alone
        part: name of the part that it was compared with; empty if no part is known
        mass: absolute, from the beginning of the lift
    """

    number: int
    close_s: float
    decision: Decision
    part: str
    mass: Measured

    @property
    def line(self) -> str:
        """The answer as one short line."""
        mass = f"{self.mass.value:7.3f} +- {self.mass.half_width:5.3f} kg"
        return f"{self.number:4d}  {self.close_s:8.2f} s  {mass}  early: {self.decision}"

    def row(self) -> EarlyRow:
        """The answer as one row of a table."""
        return EarlyRow(
            number=self.number,
            close_s=self.close_s,
            part=self.part,
            early=self.mass.value,
            early_half_width=self.mass.half_width,
            early_decision=str(self.decision),
        )


@dataclass(frozen=True)
class Pick(Value, error=InvalidSamples):
    """A pick: when it was, what it weighed, and what it is.

    Attributes:
        number: of the pick in the log, from 1
        close_s: when the gripper closed [s]
        open_s: when it opened [s]
        decision: what it is
        part: name of the part that it was compared with; empty if no part is known
        fits: name of the part that fits; empty if none does
        mass: absolute, from the arm's model; its interval holds all errors. None if not weighed
        relative: mass compared with known picks, or with other picks of the same part; errors that
            are common to all picks cancel. None if there is nothing to compare with
        early: mass 0.3 s into the lift. None if not weighed
        early_decision: from this mass alone
        reasons: for the decision, one sentence without a full stop each
    """

    number: Annotated[int, Range(1)]
    close_s: float
    open_s: float
    decision: Decision
    part: str = ""
    fits: str = ""
    mass: Measured | None = None
    relative: Measured | None = None
    early: Measured | None = None
    early_decision: Decision | None = None
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.open_s < self.close_s:
            raise InvalidSamples(
                f"pick {self.number}: the gripper opens (open_s = {self.open_s:g}) before it closes"
                f" (close_s = {self.close_s:g})"
            )

    @property
    def is_alarm(self) -> bool:
        """Whether it is a fault of the pick."""
        return self.decision.is_alarm

    @property
    def line(self) -> str:
        """The pick as one short line."""
        words = f"{self.number:4d}  {self.close_s:8.2f} s  "
        if self.mass is None:
            words += f"{'':19s}"
        else:
            words += f"{self.mass.value:7.3f} +- {self.mass.half_width:5.3f} kg"
        if self.relative is not None:
            words += f"  ({self.relative.value:7.3f} +- {self.relative.half_width:5.3f})"
        words += f"  {self.decision}"
        if self.decision is Decision.WRONG_PART:
            words += f" ({self.fits})"
        if self.reasons and self.decision is not Decision.GOOD:
            words += f": {self.reasons[0]}"
        return words

    def row(self) -> PickRow:
        """The pick as one row of a table."""
        mass, mass_half_width = _numbers(self.mass)
        relative, relative_half_width = _numbers(self.relative)
        early, early_half_width = _numbers(self.early)
        early_decision = None
        if self.early_decision is not None:
            early_decision = str(self.early_decision)
        return PickRow(
            number=self.number,
            close_s=self.close_s,
            open_s=self.open_s,
            decision=str(self.decision),
            alarm=self.is_alarm,
            part=self.part,
            fits=self.fits,
            mass=mass,
            mass_half_width=mass_half_width,
            relative=relative,
            relative_half_width=relative_half_width,
            early=early,
            early_half_width=early_half_width,
            early_decision=early_decision,
            reasons="; ".join(self.reasons),
        )


def _numbers(measured: Measured | None) -> tuple[float | None, float | None]:
    """Value and half-width of a mass, [kg]; None twice where it was not weighed."""
    if measured is None:
        return None, None
    return measured.value, measured.half_width
