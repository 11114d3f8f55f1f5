"""How the rows of a stream become samples of a tracker: the interface between streams and trackers.

A `TrackerSetup` holds what is known before the first row. The first rows calibrate it: their
columns, rate and noise give a `Calibration`, which holds the tracker and the path from rows to its
samples. Joint torques (`_torque`) and wrist sensor (`_wrist`) implement both; weigher, view, page
and commands use these interfaces only. Setups and calibrations can be pickled for another process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from steelyard._arrays import Array
from steelyard.live._source import Row
from steelyard.payload._tracking import Progress, Tracker
from steelyard.recording import UNKNOWN_ARM, ArmIdentity, Sample
from steelyard.robot import RobotModel
from steelyard.verdict import Doubt

ContactDetector: TypeAlias = Callable[[Any, Sample[Any]], str]
"""Called with a sample and the state after it; describes a new contact, empty without one."""


class Traces(NamedTuple):
    """Curves over time that a page shows, one choice at a time.

    Attributes:
        label: of the choice
        choices: names of the choices
        first: the choice that is shown first
        curves: names of the curves of each choice
        titles: of the plot of each choice; the first word names the quantity
        units: of each choice
    """

    label: str
    choices: tuple[str, ...]
    first: str
    curves: tuple[str, ...]
    titles: tuple[str, ...]
    units: tuple[str, ...]


class SamplePath(Protocol):
    """Makes samples of rows. States are values; `step` changes none."""

    @property
    def delay_s(self) -> float:
        """Time from the instant of a sample to its output, [s]."""

    def init(self) -> Any:
        """The state before the first row."""

    def step(
        self, state: Any, t: float, motion: Array, effort: Array
    ) -> tuple[Any, tuple[Sample[Any], ...]]:
        """The next state, and the samples that are ready.

        Args:
            state: of `init` or `step`
            t: time of the next row, [s]
            motion: in the row
            effort: in the row
        """


class Calibration(ABC):
    """A tracker that is ready, and the path from rows to its samples.

    Attributes:
        tracker: estimates the payload
        path: makes samples of rows
        doubts: that apply to every answer
    """

    tracker: Tracker[Any, Any]
    path: SamplePath
    doubts: tuple[Doubt, ...]

    @abstractmethod
    def motion_and_effort(self, row: Row) -> tuple[Array, Array]:
        """Motion and effort in a row that is fit for weighing, as the path takes them."""

    @abstractmethod
    def trace(self, state: Any, sample: Sample[Any], progress: Progress) -> Array | None:
        """One instant of all curves, (curves, choices); None where there is none.

        Args:
            state: of the tracker
            sample: the last one
            progress: of the state
        """

    @abstractmethod
    def contact_detector(self) -> ContactDetector:
        """A new detector of contacts, for one stream."""


class TrackerSetup(ABC):
    """What is known about a stream before its first row.

    Attributes:
        name: of the source, for messages
        columns: names of the rows' values
        payload_is_complete: whether the payload is all that the flange carries, as a controller
            needs it
        starting: why nothing is estimated before the calibration
    """

    name: str
    columns: tuple[str, ...]
    payload_is_complete: bool
    starting: str

    @property
    @abstractmethod
    def accuracy(self) -> float:
        """Half-width of the mass's 95 % interval over the mass at which it has converged."""

    @property
    @abstractmethod
    def arm(self) -> RobotModel:
        """The arm that a page shows; refused where rows hold no joints."""

    @property
    def identity(self) -> ArmIdentity:
        """The arm that the payload belongs to, as far as it is known."""
        return UNKNOWN_ARM

    @property
    @abstractmethod
    def joint_columns(self) -> list[int]:
        """Places of the joint positions in a row, n."""

    @property
    @abstractmethod
    def traces(self) -> Traces:
        """Curves that a page shows."""

    @abstractmethod
    def missing(self, row: Row) -> str:
        """What a row lacks for weighing, in words; empty where it lacks nothing."""

    @abstractmethod
    def is_enough(self, rows: Sequence[Row]) -> bool:
        """Whether the first rows are enough to calibrate with."""

    @abstractmethod
    def calibrated(self, rows: Sequence[Row]) -> Calibration:
        """Tracker and path for rows like the first ones."""
