"""The page of picks of many shifts: each part in each gripper, and what has changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.drawing import Curve, Panel, Plot
from steelyard.fleet._picks import QUANTITIES, PickTrends, ShiftPart, value_of
from steelyard.report._page import Cell, Page, Section, Table

_TITLES = {"mass": "mean mass [kg]", "scatter": "scatter [kg]", "alarms": "share of alarms"}


def pick_trends_page(trends: PickTrends) -> Page:
    """The page of picks of many shifts.

    Args:
        trends: of the shifts
    """
    sections = [_changes_section(trends)]
    sections += [_series_section(tool, part, rows) for (tool, part), rows in trends.series.items()]
    shifts = len({row.shift for row in trends.rows})
    count = len(trends.flagged)
    words = f"{count} change{'' if count == 1 else 's'} in {shifts} shifts"
    answer = [
        f"{sum(row.picks for row in trends.rows)} picks in {shifts} shifts,"
        f" {sum(row.alarms for row in trends.rows)} alarms.",
        f"{count} of {len(trends.changes)} series have changed; at most {100 * trends.rate:g} % of"
        " these are false alarms, on average.",
    ]
    badge = ("do not use", words) if count else ("use", words)
    return Page("Picks of many shifts", answer, sections, badge=badge)


def _changes_section(trends: PickTrends) -> Section:
    if not trends.changes:
        return Section("Changes", ("There are too few shifts to test for changes.",))
    if not trends.flagged:
        return Section("Changes", ("Nothing has changed.",))
    words = [f"{change.words[0].upper()}{change.words[1:]}." for change in trends.flagged]
    return Section("Changes", words)


def _series_section(tool: str, part: str, rows: Sequence[ShiftPart]) -> Section:
    name = f"'{part}'" if part else "Picks"
    if tool:
        name += f" in {tool}"
    panels = [_panel(rows, quantity) for quantity in QUANTITIES]
    plot = Plot(f"{name}, one point per shift.", panels, len(panels))
    head = ("shift", "picks", "good", "alarms", "mean [kg]", "± (95 %)", "scatter [kg]")
    cells: list[list[Cell]] = [
        [
            row.shift,
            row.picks,
            row.good,
            row.alarms,
            row.mass,
            row.mass_half_width,
            row.scatter,
        ]
        for row in rows
    ]
    return Section(name, (), [plot, Table(f"{name} in each shift.", head, cells)])


def _panel(rows: Sequence[ShiftPart], quantity: str) -> Panel:
    known = [
        (k + 1.0, *pair)
        for k, row in enumerate(rows)
        if (pair := value_of(row, quantity)) is not None
    ]
    points = np.array(known).reshape(-1, 3)
    curve = Curve("", points[:, 0], points[:, 1], "dots", y_std=points[:, 2])
    return Panel(_TITLES[quantity], "shift", _TITLES[quantity], [curve])
