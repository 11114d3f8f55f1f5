"""The page of a search for contacts: what touched the arm, and why the detector says so."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.control.collision import Detections
from steelyard.report.page import Band, Curve, Page, Panel, Plot, Section, Table
from steelyard.report.pieces import sentence


def collisions_page(detections: Detections, *, title: str, settings: Mapping[str, str]) -> Page:
    """The page of detected contacts.

    Args:
        detections: what was found
        title: of the page
        settings: of the run
    """
    unit = detections.residuals.unit
    rows: list[tuple[str | float | None, ...]] = [
        (
            *(f"{k}", f"{c.start_s:.2f}", f"{c.end_s:.2f}", c.joint),
            *("along" if c.direction > 0 else "against", f"{c.peak:.1f}", f"{c.ratio:.1f}", c.link),
        )
        for k, c in enumerate(detections.contacts, start=1)
    ]
    head = (
        "",
        "from [s]",
        "to [s]",
        "joint",
        "its axis",
        f"peak [{unit}]",
        "times its limit",
        "link or beyond",
    )
    contacts = Section("Contacts", (), [Table("Each contact, where it shows most.", head, rows)])
    words = (
        "The residual is the external torque that the observer sees. Friction at rest or at a reversal may be"
        " anything up to its limit: the shaded band. Only what lies beyond band and threshold counts."
    )
    shown = Section("Residuals and thresholds", [words], [_residual_plot(detections)])
    return Page(
        title,
        [sentence(detections.status)],
        [*([contacts] if rows else []), shown],
        settings,
        doubts=[sentence(words) for words in detections.doubts],
    )


def _residual_plot(detections: Detections) -> Plot:
    seen, threshold = detections.residuals, detections.threshold
    panels = []
    for j, name in enumerate(seen.names):
        low, high = -seen.slack[:, 0, j], seen.slack[:, 1, j]
        numbered = enumerate(detections.contacts, start=1)
        marks = [(c.start_s, f"{k}") for k, c in numbered if name in c.joints]
        parts: list[Curve | Band] = [
            Band("unknown friction", seen.t, low, high),
            Curve("residual", seen.t, seen.residual[:, j]),
            Curve("threshold", seen.t, high + threshold[:, j], "dashed"),
            Curve("threshold", seen.t, low - threshold[:, j], "dashed"),
        ]
        panels.append(Panel(name, "time [s]", f"residual [{seen.unit}]", parts, marks))
    return Plot("What each joint feels, and from where on it is a contact.", panels)
