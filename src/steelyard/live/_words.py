"""A snapshot in words and as HTML: for the line of `track`, and for the page."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from steelyard._templates import render
from steelyard._units import NORMAL_95, with_interval
from steelyard.inertia import INERTIA, InertialParameters
from steelyard.live._controller import ControllerPayload
from steelyard.live._setting import Proposal
from steelyard.live._source import EventKind
from steelyard.live._view import Snapshot
from steelyard.payload import Payload
from steelyard.payload._tracking import relative_half_width
from steelyard.verdict import Doubt

_GOOD_EVENTS = (EventKind.PICK, EventKind.DROP)
_BAD_EVENTS = (EventKind.LOST, EventKind.ENDED, EventKind.MODE, EventKind.GAP, EventKind.CONTACT)
_EVENT_STYLES: dict[str, str] = {
    **dict.fromkeys(_GOOD_EVENTS, "good"),
    **dict.fromkeys(_BAD_EVENTS, "bad"),
}
CONNECTION_EVENTS = (EventKind.CONNECTED, EventKind.LOST, EventKind.ENDED)
"""Events of the connection to an arm."""

STALE_S = 1.0
"""Age of the newest row from which its numbers are old, [s]."""

_MIN_CENTRE_ERROR = 0.002  # of the controller's centre of mass that is reported, [m]
_DIGITS = (3, 1, 1, 1, *[4] * 6)  # of the ten numbers of a controller's payload


def progress_words(snapshot: Snapshot, accuracy: float) -> str:
    """How far the mass is from the requested accuracy, and the force of a measured contact.

    Args:
        accuracy: half-width of its 95 % interval over the mass
    """
    requested = f"{100 * accuracy:g} %"
    if snapshot.converged:
        words = f"{requested} reached"
    elif np.isfinite(snapshot.remaining_s):
        words = f"{requested} in about {snapshot.remaining_s:.0f} s"
    elif np.isinf(snapshot.remaining_s):
        words = f"{requested} cannot be reached by motion"
    else:
        words = f"{requested} not yet reached"
    if snapshot.contact is None:
        return words
    force = float(np.linalg.norm(snapshot.contact.wrench[:3]))
    std = float(np.linalg.norm(snapshot.contact.std[:3]))
    return f"{words}; contact {with_interval(force, NORMAL_95 * std)} N"


class LinkState(NamedTuple):
    """The connection to an arm, and the state of the arm.

    Attributes:
        connection: the last event of the connection; None before the first row
        mode: modes of the controller, in words; empty where it reports none
        waiting: why rows are not weighed now; empty where they are
        age_s: age of the newest row, [s]
    """

    connection: EventKind | None = None
    mode: str = ""
    waiting: str = ""
    age_s: float = 0.0

    @property
    def words(self) -> str:
        """The connection in words."""
        if self.connection is EventKind.LOST:
            return "connection lost, connecting again"
        if self.connection is EventKind.ENDED:
            return "the stream has ended"
        if self.connection is None:
            return "connecting"
        if self.age_s >= STALE_S:
            return "connected, but no rows"
        return "connected"

    @property
    def style(self) -> str:
        """Good, bad, or to wait for."""
        if self.connection in (EventKind.LOST, EventKind.ENDED) or self.age_s >= STALE_S:
            return "bad"
        if self.connection is None or self.waiting:
            return "wait"
        return "good"

    @property
    def mode_words(self) -> str:
        """The modes; marked as the last known ones where no rows come."""
        if self.mode and self.style == "bad":
            return f"last mode: {self.mode}"
        return self.mode


def link_html(link: LinkState) -> str:
    """The connection and the modes of the arm, and how old the newest row is.

    Args:
        link: the connection
    """
    age = ""
    if link.connection is not None and link.age_s >= STALE_S:
        last = time.strftime("%H:%M:%S", time.localtime(time.time() - link.age_s))
        age = f"last row {link.age_s:.0f} s ago, at {last}"
    return page_part("link", {"link": link, "age": age})


def age_words(age_s: float) -> str:
    """How old the newest row is; empty for a new one.

    Args:
        age_s: its age, [s]
    """
    if age_s < STALE_S:
        return ""
    return f"{age_s:.0f} s old"


def answer_html(
    snapshot: Snapshot | None,
    accuracy: float,
    *,
    age_s: float = 0.0,
    configured: ControllerPayload | None = None,
) -> str:
    """The mass with its interval, how far it is from the requested accuracy, and what to do next.

    Args:
        snapshot: the newest one; None before the first
        accuracy: half-width of the 95 % interval over the mass
        age_s: age of the newest row, [s]; from `STALE_S` on, everything is grey
        configured: the payload that is set on the controller, where it is to be compared
    """
    if snapshot is None:
        return page_part("waiting", {})
    payload = snapshot.payload
    mass, half = ("unknown", "")
    doubts: tuple[Doubt, ...] = ()
    if payload is not None:
        mass, half = payload.quantities[0].rounded
        doubts = payload.verdict.blocking
    style, state = _state(snapshot, accuracy)
    is_old = age_s >= STALE_S
    if is_old:
        style = "plain"
        state = f"no rows for {age_s:.0f} s: these numbers are old"
    values = {
        "mass": mass,
        "half": half,
        "style": style,
        "state": state,
        "is_old": is_old,
        "share": _share(payload, accuracy),
        "warning": mismatch_words(payload, configured),
        "step": f"{snapshot.next_step[:1].upper()}{snapshot.next_step[1:]}.",
        "doubts": doubts,
    }
    return page_part("answer", values)


def mismatch_words(payload: Payload | None, configured: ControllerPayload | None) -> str:
    """A warning where the controller's mass lies outside the weighed interval; empty otherwise.

    Args:
        payload: the weighed payload
        configured: the payload that is set on the controller
    """
    if payload is None or configured is None or not payload.verdict.ok:
        return ""
    half = NORMAL_95 * float(payload.std[0])
    if abs(payload.mass - configured.mass) > half:
        return (
            f"The controller is set to {configured.mass:.3f} kg, outside {payload.mass:.3f} ±"
            f" {half:.3f} kg."
        )
    distance = np.abs(payload.com - np.array(configured.cog))
    allowed = np.maximum(NORMAL_95 * payload.com_std, _MIN_CENTRE_ERROR)
    if (distance > allowed).any():
        return (
            f"The controller's centre of mass is {1e3 * np.linalg.norm(distance):.0f} mm from the"
            " weighed one, outside its interval."
        )
    return ""


def numbers_html(
    payload: Payload | None, configured: ControllerPayload | None, *, is_old: bool = False
) -> str:
    """The ten numbers with their intervals, beside those that are set on the controller.

    Args:
        payload: the weighed payload; None before it is known
        configured: the payload that is set on the controller, where it is to be compared
        is_old: whether no rows have come for some time: everything is grey
    """
    if payload is None:
        return ""
    theirs = _numbers_of(configured)
    lines = []
    for k, number in enumerate(payload.quantities):
        value, half = number.rounded
        line = {
            "name": number.name.split(" about ")[0],
            "unit": number.unit,
            "value": value,
            "half": half,
        }
        if theirs:
            line["configured"] = theirs[k]
        lines.append(line)
    values = {
        "lines": lines,
        "is_compared": bool(theirs),
        "is_old": is_old,
        "frame": payload.body.frame,
    }
    return page_part("numbers", values)


def events_html(snapshot: Snapshot, events: Iterable[tuple[str, str, str]]) -> str:
    """The events so far, the newest first.

    Args:
        snapshot: the last one
        events: time of day, kind and words of each
    """
    lines = [
        {
            "clock": clock,
            "kind": kind,
            "words": words.replace("+-", "±"),
            "style": _EVENT_STYLES.get(kind, "plain"),
        }
        for clock, kind, words in events
    ]
    return page_part("events", {"snapshot": snapshot, "events": lines[::-1]})


def question_html(proposal: Proposal) -> str:
    """The payload that is set on the controller now, beside the new one."""
    return page_part("question", {"cells": proposal.cells, "note": proposal.note})


def message_html(words: str) -> str:
    """A message to the user."""
    return page_part("message", {"words": words})


def page_part(name: str, values: Mapping[str, Any]) -> str:
    """A part of the page.

    Args:
        name: of its template
        values: what the template mentions, by name
    """
    return render(["steelyard.live"], f"{name}.html", values)


def _state(snapshot: Snapshot, accuracy: float) -> tuple[str, str]:
    """The style of a snapshot, and its state in words."""
    if snapshot.waiting:
        return "wait", f"waiting: {snapshot.waiting}"
    if snapshot.payload is not None and not snapshot.payload.verdict.ok:
        return "bad", "do not use it yet"
    return ("good" if snapshot.converged else "wait"), progress_words(snapshot, accuracy)


def _share(payload: Payload | None, accuracy: float) -> float:
    """The share of the requested accuracy that is reached, [%]."""
    if payload is None or not np.isfinite(payload.std[0]):
        return 0.0
    return 100 * min(accuracy / max(relative_half_width(payload), 1e-12), 1.0)


def _numbers_of(configured: ControllerPayload | None) -> list[str]:
    """The ten numbers of a controller's payload in the order of `Payload.quantities`, as text."""
    if configured is None:
        return []
    xx, yy, zz, xy, xz, yz = configured.inertia
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    body = InertialParameters.from_com(configured.mass, configured.cog, inertia)
    numbers = [body.mass, *(1e3 * x for x in configured.cog), *body.vector[INERTIA]]
    return [f"{x:.{digits}f}" for x, digits in zip(numbers, _DIGITS, strict=True)]
