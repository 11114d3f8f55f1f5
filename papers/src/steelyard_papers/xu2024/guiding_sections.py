"""The section of the page of xu2024 on hand guiding: Fig. 10, 11 and 12."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard._arrays import Array
from steelyard.control._guiding import GuidingComparison
from steelyard.drawing import Curve, Panel, Plot
from steelyard.report import Section, Table
from steelyard_papers.explain import all_come_out
from steelyard_papers.sharing import every, with_spread
from steelyard_papers.xu2024.guiding import (
    ASSUMPTIONS,
    NARROW,
    XU2024_MEAN_REDUCTION,
    XU2024_VARIANCE_REDUCTION,
    GuidingMap,
    GuidingReproduction,
    currents,
)
from steelyard_papers.xu2024.motion_sections import Row

_NAMES = ("payload not compensated", "payload compensated")
_SHORT = {"eased": "A", "half": "B", "steady": "C"}
_CURRENTS = (1, 2, 3)  # joints whose motor currents are drawn, from 0


def reductions(found: Sequence[GuidingReproduction], key: str, which: str) -> Array:
    """By how much the hand's force falls with the published estimate, (seeds, 3) [%].

    Args:
        found: one for each seed
        key: of `ASSUMPTIONS`
        which: 'mean' or 'variance'
    """
    seen = [x.comparisons[key] for x in found if key in x.comparisons]
    return 100 * np.array([getattr(comparison, f"{which}_reduction") for comparison in seen])


def guiding_section(
    found: Sequence[GuidingReproduction],
    tables: Sequence[Table] = (),
    sentences: Sequence[str] = (),
) -> Section:
    """Fig. 10, 11 and 12: the hand's path, force, torque and the motors' currents.

    Args:
        found: one for each seed
        tables: further ones, over what the paper does not print
        sentences: about them
    """
    first = found[0]
    masses = _range([x.published.mass for x in found])
    own = _range([x.ours.mass for x in found])
    return Section(
        "Hand guiding with the online estimate (section 4.4, Fig. 10 to 12)",
        [
            "A simulated hand drags the simulated UR10 along a square of 0.15 m at 0.1 m/s. The"
            f" payload of {first.truth.mass} kg was weighed online before, {len(found)} times:"
            f" {masses} by"
            f" the paper's recursion after 10 s of commanded motion (paper: 3.237 kg), {own} by"
            " ours. The"
            " controller gets the mass and the centre of mass, as in the paper. Settings were"
            " chosen with"
            " seeds 0 to 4, results have others.",
            "Assumed, because the paper prints none of it: place, size and speed of the rectangle;"
            " a hand"
            " that is a spring of 500 N/m and a damper of 100 Ns/m; how its force trembles; and"
            " how much of"
            " the friction the drives take off in teach mode. What friction is left to the hand is"
            " a force that compensation cannot take away. Which mean the paper takes, of F or of"
            " |F|, it does not say; here it is that of |F|.",
            *sentences,
        ],
        [
            _table(found),
            *tables,
            _forces(first.comparisons["half"], first),
            _path(first.comparisons["half"]),
        ],
    )


def _range(masses: Sequence[float]) -> str:
    return f"{min(masses):.3f} to {max(masses):.3f} kg (median {np.median(masses):.3f} kg)"


def _table(found: Sequence[GuidingReproduction]) -> Table:
    rows: list[Row] = []
    for which, printed in (
        ("mean", XU2024_MEAN_REDUCTION),
        ("variance", XU2024_VARIANCE_REDUCTION),
    ):
        columns = [reductions(found, key, which) for key in ASSUMPTIONS]
        columns.append(100 * np.array([getattr(x.with_ours, f"{which}_reduction") for x in found]))
        for i, axis in enumerate("xyz"):
            if which == "mean":
                what = f"mean of |F{axis}|"
            else:
                what = f"variance of F{axis}"
            cells = [_middle_and_worst(values[:, i]) for values in columns]
            rows.append((what, 100 * printed[i], *(cell for pair in cells for cell in pair)))
    words = "; ".join(f"{_SHORT[key]}: {words}" for key, (words, _, _) in ASSUMPTIONS.items())
    heads = [
        f"{name}, {which}" for name in (*_SHORT.values(), "D") for which in ("median", "worst")
    ]
    return Table(
        "Fig. 12: reduction of the hand's force by compensation [%], axes of the flange;"
        f" {len(found)} seeds,"
        " median and worst.",
        ("what", "paper", *heads),
        rows,
        f"{words}; D: as A, with our estimate of the payload. A seed is another torque noise, and"
        " so another"
        " estimate, and another trembling of the hand; C has the first"
        f" {len(reductions(found, 'steady', 'mean'))}, because only the estimate changes there.",
    )


def _middle_and_worst(values: Array) -> tuple[float, float]:
    return float(np.median(values)), float(values.min())


def _forces(comparison: GuidingComparison, found: GuidingReproduction) -> Plot:
    runs = (comparison.without, comparison.compensated)
    few = every(len(runs[0].t), 500)

    def panel(title: str, unit: str, values: Sequence[Array]) -> Panel:
        curves = [
            Curve(name, run.t[few], x[few])
            for name, run, x in zip(_NAMES, runs, values, strict=True)
        ]
        return Panel(title, "time [s]", unit, curves)

    panels = [
        panel(f"force along {axis}", "force [N]", [run.force_flange[:, i] for run in runs])
        for i, axis in enumerate("xyz")
    ]
    panels += [
        panel(f"torque about {axis}", "torque [Nm]", [run.torque_world[:, i] for run in runs])
        for i, axis in enumerate("xyz")
    ]
    panels += [
        panel(
            f"motor of joint {j + 1}",
            "current [A]",
            [currents(found.robot.drive, run.tau)[:, j] for run in runs],
        )
        for j in _CURRENTS
    ]
    return Plot(
        "Fig. 11, half of the friction taken off: force and torque of the hand, and currents of"
        " motors that"
        " carry the weight. Compensated, the motors take it from the hand.",
        panels,
        columns=3,
    )


def _path(comparison: GuidingComparison) -> Plot:
    runs = (comparison.without, comparison.compensated)
    few = every(len(runs[0].t), 400)
    wanted = 1e3 * runs[0].wanted[few, :2]
    curves = [
        Curve("wanted by the hand", wanted[:, 0], wanted[:, 1], style="dashed", colour="#888888")
    ]
    for name, run in zip(_NAMES, runs, strict=True):
        at = 1e3 * run.position[few, :2]
        curves.append(Curve(name, at[:, 0], at[:, 1]))
    return Plot(
        "Fig. 10: the path of the grip, seen from above.",
        [Panel("", "x [mm]", "y [mm]", curves, equal=True)],
    )


def map_table(found: GuidingMap) -> Table:
    """By how much the mean force falls, over what the paper does not print.

    Args:
        found: for two rectangles
    """
    rows: list[Row] = [
        ("0.3 x 0.4 m", 100 * share, speed, *(float(x) for x in values.mean(axis=0)))
        for (share, speed), values in found.wide.items()
    ]
    sides = " x ".join(f"{x:g}" for x in NARROW.sides)
    mean = [float(x) for x in found.narrow.mean(axis=0)]
    rows.append((f"{sides} m", 0.0, NARROW.speed, *mean))
    printed = ", ".join(f"{100 * x:.1f}" for x in XU2024_MEAN_REDUCTION)
    return Table(
        "Reduction of the mean force, over friction that is taken off and speed of the hand.",
        ("rectangle", "friction taken off [%]", "speed [m/s]", "Fx [%]", "Fy [%]", "Fz [%]"),
        rows,
        f"Mean over {len(found.narrow)} seeds in the last row, one seed in the others. Printed:"
        f" {printed} %.",
    )


def map_sentence(found: GuidingMap) -> str:
    """Whether one share and one speed give the printed reductions together.

    Args:
        found: for two rectangles
    """
    printed = 100 * np.array(XU2024_MEAN_REDUCTION)
    together = [key for key, runs in found.wide.items() if all_come_out(runs, printed)]
    if together:
        share, speed = together[0]
        words = f"come out together at {100 * share:.0f} % and {speed:g} m/s"
    else:
        words = "come out together, within a fifth, for no share and speed of the map"
    mean = found.narrow.mean(axis=0)
    spread = 2 * found.narrow.std(axis=0, ddof=1)
    near = ", ".join(with_spread(m, s) for m, s in zip(mean, spread, strict=True))
    outside = np.abs(mean - printed) > spread
    axes = " and ".join(f"F{name}" for name, out in zip("xyz", outside, strict=True) if out)
    if axes:
        verdict = f"; {axes} {'lies' if outside.sum() == 1 else 'lie'} outside of the scatter"
    else:
        verdict = ""
    return (
        f"The printed reductions of {', '.join(f'{x:.1f}' for x in printed)} % {words}. Of all that"
        " was tried, a narrower rectangle, followed slowly with no friction taken off, comes"
        f" nearest: {near} %{verdict}."
    )
