"""What an update says, in words and as HTML: for the line of `watch`, and for the page."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import numpy as np

from steelyard._units import NORMAL_95
from steelyard.inertia import InertialParameters
from steelyard.live._controller import ControllerPayload
from steelyard.live._setting import Proposal
from steelyard.live._source import EventKind
from steelyard.live._view import Update
from steelyard.live._wrist import WristUpdate
from steelyard.payload import Payload

_LOOKS: dict[str, str] = {EventKind.PICK: "good", EventKind.DROP: "good"}
_BAD = (EventKind.LOST, EventKind.ENDED, EventKind.MODE, EventKind.GAP, EventKind.CONTACT)
_LOOKS |= dict.fromkeys(_BAD, "bad")
_DIGITS = (3, 1, 1, 1, *[4] * 6)  # of the ten numbers that a controller believes in


def progress_words(update: Update | WristUpdate, accuracy: float) -> str:
    """How far the mass is from the accuracy that is asked for; with a wrist sensor, what touches the load.

    Args:
        accuracy: half-width of its 95 % interval over the mass
    """
    asked = f"{100 * accuracy:g} %"
    if isinstance(update, WristUpdate):
        force, std = (np.linalg.norm(x[:3]) for x in (update.contact, update.contact_std))
        if update.converged:
            known = "reached"
        else:
            known = "not yet reached"
        return f"{asked} {known}; contact {force:.2f} +- {NORMAL_95 * std:.2f} N"
    if update.converged:
        return f"{asked} reached"
    if np.isfinite(update.remaining_s):
        return f"{asked} in about {update.remaining_s:.0f} s"
    return f"{asked} cannot be reached by motion"


def answer_html(update: Update | WristUpdate | None, accuracy: float) -> str:
    """The mass with its interval, how far it is from the accuracy that is asked for, and what to do next."""
    if update is None:
        return '<div class="sy"><h1>…</h1><p class="soft">waiting for rows</p></div>'
    payload = update.payload
    if payload is None:
        mass, half = ("unknown", "")
    else:
        mass, half = payload.quantities[0].rounded
    kind, words = _state(update, accuracy)
    step = f"{update.next_step[:1].upper()}{update.next_step[1:]}."
    doubts = () if payload is None else payload.verdict.blocking
    return (
        f'<div class="sy"><h1><span data-name="mass">{mass}</span>'
        f"<small>{f'± {half} kg' if half else 'mass'}</small></h1>"
        f'<span class="chip {kind}" data-name="state">{escape(words)}</span>'
        f'<div class="bar"><i style="width:{_share(payload, accuracy):.0f}%"></i></div>'
        f'<h2>Next</h2><div class="next" data-name="next">{escape(step)}</div>'
        f'<div class="soft">{"".join(f"<p>{escape(str(doubt))}</p>" for doubt in doubts)}</div></div>'
    )


def numbers_html(payload: Payload | None, believed: ControllerPayload | None) -> str:
    """The ten numbers with their intervals, beside those that the controller believes in."""
    if payload is None:
        return ""
    lines = []
    theirs = _believed(believed)
    for k, number in enumerate(payload.quantities):
        value, half = number.rounded
        name = number.name.split(" about ")[0]
        unit = number.unit.replace("^2", "²")
        lines.append(
            f'<tr><td>{name} <span class="soft">{unit}</span></td><td'
            f' data-name="{name}">{value}</td>'
            f'<td class="soft">{half}</td>'
            + (f'<td data-name="believed {name}">{theirs[k]}</td>' if theirs else "")
            + "</tr>"
        )
    if theirs:
        last = "<th>controller</th>"
    else:
        last = ""
    head = f"<tr><th></th><th>weighed</th><th>± 95 %</th>{last}</tr>"
    note = f"In the frame '{escape(payload.body.frame)}', inertia about its origin."
    table = f"<table>{head}{''.join(lines)}</table>"
    return f'<div class="sy"><h2>Payload</h2>{table}<p class="soft">{note}</p></div>'


def events_html(update: Update | WristUpdate, events: Iterable[tuple[float, str, str]]) -> str:
    """What has happened, the newest first.

    Args:
        update: the last one
        events: time [s], kind and words of each
    """
    lines = [
        f'<li><time>{t:.1f} s</time><span><b class="tag'
        f' {_LOOKS.get(kind, "plain")}">{escape(kind)}</b>'
        f" {escape(words)}</span></li>"
        for t, kind, words in events
    ]
    counts = f"{update.rows} rows, {update.missing} missing, {update.dropped} dropped"
    log = f'<ol data-name="events">{"".join(lines[::-1])}</ol>'
    return (
        f'<div class="sy"><h2>Events</h2>{log}<p class="soft" data-name="counts">{counts}</p></div>'
    )


def question_html(proposal: Proposal) -> str:
    """What the controller believes in now, beside what it shall believe in."""
    lines = "".join(
        f'<tr><td>{name} <span class="soft">{unit.replace("^2", "²")}</span></td><td>{old}</td>'
        f"<td><b>{new}</b></td></tr>"
        for name, old, new, unit in proposal.cells
    )
    if proposal.note:
        note = f" Note: {escape(proposal.note)}."
    else:
        note = ""
    return (
        f'<div class="sy"><table><tr><th></th><th>now</th><th>new</th></tr>{lines}</table><p'
        ' class="soft">'
        "The real body nearest to what was weighed, inertia about its centre of gravity. A"
        " controller may"
        f" zero its force sensor: let nothing touch the tool.{note}</p></div>"
    )


def _state(update: Update | WristUpdate, accuracy: float) -> tuple[str, str]:
    """How an update looks, and its state in words."""
    if update.waiting:
        return "wait", f"waiting: {update.waiting}"
    if update.payload is not None and not update.payload.verdict.ok:
        return "bad", "do not use it yet"
    return ("good" if update.converged else "wait"), progress_words(update, accuracy)


def _share(payload: Payload | None, accuracy: float) -> float:
    """Of the accuracy that is asked for, what is reached, [%]."""
    if payload is None or not np.isfinite(payload.std[0]):
        return 0.0
    half_width = NORMAL_95 * float(payload.std[0]) / max(abs(payload.mass), 1e-12)
    return 100 * min(accuracy / max(half_width, 1e-12), 1.0)


def _believed(believed: ControllerPayload | None) -> list[str]:
    """The ten numbers of a controller as `Payload.quantities` has them, as words."""
    if believed is None:
        return []
    xx, yy, zz, xy, xz, yz = believed.inertia
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    body = InertialParameters.from_com(believed.mass, believed.cog, inertia)
    numbers = [body.mass, *(1e3 * x for x in believed.cog), *body.vector[4:]]
    return [f"{x:.{digits}f}" for x, digits in zip(numbers, _DIGITS, strict=True)]
