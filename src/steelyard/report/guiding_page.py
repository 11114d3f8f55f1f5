"""The page of a guided run: what a known payload takes off the hand that drags the arm."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steelyard.control.guiding import GuidingComparison
from steelyard.report.page import Curve, Page, Panel, Plot, Section, Table
from steelyard.report.pieces import sentence, time_plot


def guiding_page(
    comparison: GuidingComparison, *, title: str, words: str, settings: Mapping[str, str]
) -> Page:
    """The page of a comparison.

    Args:
        comparison: the same path with and without the payload compensated
        title: of the page
        words: what the arm carries and what the controller knows, a sentence
        settings: of the run
    """
    head = ("axis", "mean without [N]", "with", "less", "variance without [N²]", "with", "less")
    rows: list[tuple[str | float | None, ...]] = [
        (axis, m0, m1, f"{100 * dm:.0f} %", v0, v1, f"{100 * dv:.0f} %")
        for axis, m0, m1, dm, v0, v1, dv in comparison.rows
    ]
    table = Table(
        f"Force of the hand: mean of |F| and variance of F, axes of the {comparison.frame}.", head, rows
    )
    without, compensated = comparison.forces
    axes = [f"{axis} of the {comparison.frame}" for axis in "xyz"]
    force = time_plot(
        "The hand's force along the path.",
        comparison.without.t,
        {"not compensated": without, "compensated": compensated},
        axes,
        units="force [N]",
    )
    note = "A simulated hand: its spring, its damper and its unsteadiness are assumptions."
    return Page(
        title,
        [sentence(comparison.status), sentence(words)],
        [Section("The hand's force", [note], [table, force]), Section("The path", (), [_path(comparison)])],
        settings,
    )


def _path(comparison: GuidingComparison) -> Plot:
    runs = {"not compensated": comparison.without, "compensated": comparison.compensated}
    above = [Curve(name, run.position[:, 0], run.position[:, 1]) for name, run in runs.items()]
    above.append(Curve("wanted", comparison.without.wanted[:, 0], comparison.without.wanted[:, 1], "dashed"))
    tilt = [Curve(name, run.t, np.degrees(run.tilt)) for name, run in runs.items()]
    return Plot(
        "Where the grip went, from above, and how far the tool tilted.",
        [
            Panel("path in the base frame", "x [m]", "y [m]", above, equal=True),
            Panel("tilt", "time [s]", "angle [degree]", tilt),
        ],
    )
