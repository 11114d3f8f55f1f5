"""Findings about a recording, and the report that they make up."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from steelyard.arrays import Mask
from steelyard.recording import Recording

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Place:
    """Where something was found; None and empty where it holds for the whole recording.

    Attributes:
        channel: name of the signal
        joints: names of the joints
        row: row of the recording, counted from 1
        t_s: time since the first row, [s]
    """

    channel: str | None = None
    joints: tuple[str, ...] = ()
    row: int | None = None
    t_s: float | None = None


@dataclass(frozen=True)
class Finding:
    """One thing to know about a recording.

    Attributes:
        kind: a fixed word: rate, jitter, gap, repeated_rows, saturation, nan, degrees, velocity, ...
        severity: 'error', 'warning' or 'info'
        sentence: what it is, where, and what to do
        place: where it is, for programs
    """

    kind: str
    severity: Severity
    sentence: str
    place: Place = Place()


@dataclass(frozen=True)
class QualityReport:
    """The findings about a recording, the worst first.

    Attributes:
        source: the recording's own words about where it comes from
        rows: number of rows
        joints: number of joints
        duration_s: from the first to the last row, [s]
        rate_hz: rows for each second, from the median step, [Hz]
        findings: what was found
    """

    source: str
    rows: int
    joints: int
    duration_s: float
    rate_hz: float
    findings: tuple[Finding, ...]

    @property
    def counts(self) -> dict[Severity, int]:
        """How many findings there are of each severity."""
        found = [finding.severity for finding in self.findings]
        return {"error": found.count("error"), "warning": found.count("warning"), "info": found.count("info")}

    @property
    def worst(self) -> Severity | None:
        """The worst severity, None when nothing was found."""
        return next((severity for severity, count in self.counts.items() if count), None)

    @property
    def ok(self) -> bool:
        """Whether there is no error; warnings do not count."""
        return self.counts["error"] == 0

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, words and lists, for JSON."""
        findings = [asdict(finding) for finding in self.findings]
        for finding in findings:
            finding["place"]["joints"] = list(finding["place"]["joints"])
        summary = {"ok": self.ok, "worst": self.worst, "counts": dict(self.counts)}
        return {**asdict(self), **summary, "findings": findings}


def place_of(
    recording: Recording, row: int, channel: str | None = None, *, joints: Mask | None = None
) -> Place:
    """A row of a recording as a place.

    Args:
        recording: where the row is
        row: its index, from 0
        channel: name of the signal
        joints: which joints it is about, (n,)
    """
    names = () if joints is None else names_of(recording, joints)
    return Place(channel, names, row + 1, float(recording.t[row]))


def names_of(recording: Recording, which: Mask) -> tuple[str, ...]:
    """Names of some of the joints.

    Args:
        recording: whose joints they are
        which: the joints meant, (n,)
    """
    return tuple(name for name, chosen in zip(recording.joint_names, which, strict=True) if chosen)


def where(place: Place) -> str:
    """A place with a row, in words.

    Args:
        place: the place
    """
    joints = f" ({', '.join(place.joints)})" if place.joints else ""
    return f"at {place.t_s:.6g} s in row {place.row}{joints}"


def many(count: int, noun: str) -> str:
    """A number of things, in words.

    Args:
        count: how many
        noun: what, in the singular
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
