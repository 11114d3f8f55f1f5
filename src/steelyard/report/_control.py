"""Pages of contacts: external forces at a wrist sensor, collisions, hand guiding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard._units import NORMAL_95
from steelyard.control._contact_force import ContactForce
from steelyard.control._guiding import GuidingComparison
from steelyard.control.collision import Detections
from steelyard.drawing import Band, Curve, Panel, Plot
from steelyard.report._page import Page, Section, Table
from steelyard.report._pieces import WRENCH_AXES, WRENCH_UNITS

_SEEN_HERE = "contact seen by this joint"
_SEEN_ELSEWHERE = "contact seen by others"
_WITHOUT = "payload not compensated"
_WITH = "payload compensated"
_PATH = "intended path of the hand"
_COLOURS = {_WITHOUT: "#d9822b", _WITH: "#2266aa", _PATH: "#b8c1cc"}
_AXIS_RATIO = 1.25  # height of an axis over the largest residual


def contact_page(contact: ContactForce, *, title: str = "External force and torque") -> Page:
    """The page of an external force at a wrist sensor, with 95 % bands."""
    force = contact.force
    torque = contact.torque
    std = np.median(contact.std, axis=0)
    answer = [
        f"The largest external force is {force.max():.2f} N, its mean {force.mean():.2f} N;"
        f" the largest external torque is {torque.max():.3f} Nm, its mean {torque.mean():.3f} Nm.",
        f"A force of one axis is known to ± {NORMAL_95 * std[:3].max():.2f} N, a torque to"
        f" ± {NORMAL_95 * std[3:].max():.3f} Nm (95 %, worst axis, typical sample).",
        str(contact.verdict),
    ]
    left = Plot.over_time(
        f"Measured wrench less load and zero drift, in the {contact.frame} frame. Where the band"
        " includes zero, there is no proof of contact.",
        contact.t,
        {"external": contact.external},
        WRENCH_AXES,
        units=WRENCH_UNITS,
        std={"external": contact.std},
        marks=[(float(t), "zero" if k == 0 else "") for k, t in enumerate(contact.zeroed_at)],
    )
    made_of = Plot.over_time(
        "The parts of the measured wrench, in the sensor frame.",
        contact.t,
        {"measured": contact.raw, "load": contact.load, "zero drift": contact.drift},
        WRENCH_AXES,
        units=WRENCH_UNITS,
    )
    sections = [
        Section("External force and torque", (), [_size_plot(contact), left]),
        Section("Measured, load and zero drift", (), [made_of, *_drift_tables(contact)]),
    ]
    return Page(title, answer, sections, picture=[made_of, left])


def collisions_page(detections: Detections, *, title: str) -> Page:
    """The page of detected contacts."""
    head, cells = detections.table
    rows: list[tuple[str | float | None, ...]] = [
        (f"{k}", *row) for k, row in enumerate(cells, start=1)
    ]
    contacts = Section(
        "Contacts", (), [Table("Each contact, at its largest residual.", ("", *head), rows)]
    )
    words = (
        "The residual is the external torque that the observer estimates. Friction at rest or at a"
        " reversal is unknown within its limits: the shaded band. Only residuals beyond band and"
        " threshold are contacts."
    )
    plot = _residual_plot(detections)
    shown = Section("Residuals and thresholds", [words], [plot])
    answer = [str(replace(detections.verdict, doubts=()))]
    doubts = [str(doubt) for doubt in detections.verdict.doubts]
    sections = [*([contacts] if rows else []), shown]
    return Page(title, answer, sections, doubts=doubts, picture=[plot])


def guiding_page(comparison: GuidingComparison, *, title: str, words: str) -> Page:
    """The page of a comparison of hand guiding with and without compensation.

    Args:
        comparison: of both runs
        title: of the page
        words: description of the payload and of the controller
    """
    means = ("mean without [N]", "mean with [N]", "less")
    head = ("axis", *means, "variance without [N²]", "variance with [N²]", "less")
    rows: list[tuple[str | float | None, ...]] = [
        (axis, m0, m1, f"{100 * dm:.0f} %", v0, v1, f"{100 * dv:.0f} %")
        for axis, m0, m1, dm, v0, v1, dv in comparison.rows
    ]
    table = Table(
        f"Force of the hand: mean of |F| and variance of F, axes of the {comparison.frame}.",
        head,
        rows,
    )
    force = _force_plot(comparison)
    path = _path_plot(comparison)
    sizes = _size_bars(comparison)
    note = "The hand is simulated: its stiffness, damping and noise are assumptions."
    sections = [
        Section("The hand's force", [note], [table, sizes, force]),
        Section("The path", (), [path]),
    ]
    answer = [str(comparison.verdict), words]
    return Page(title, answer, sections, picture=[force, sizes, path])


def _size_plot(contact: ContactForce) -> Plot:
    panels = [
        Panel("force", "time [s]", "size [N]", [Curve("size", contact.t, contact.force)]),
        Panel("torque", "time [s]", "size [Nm]", [Curve("size", contact.t, contact.torque)]),
    ]
    return Plot("Size of the external force and torque.", panels)


def _drift_tables(contact: ContactForce) -> list[Table]:
    """A table of how fast the zero drifts; none where the recording determines nothing of it."""
    if not (
        np.isfinite(contact.trend_std).any() or np.isfinite(contact.temperature_trend_std).any()
    ):
        return []
    rows: list[Sequence[str | float | None]] = []
    for i, name in enumerate(WRENCH_AXES):
        hourly = 3600 * contact.trend[i], 3600 * NORMAL_95 * contact.trend_std[i]
        warm = contact.temperature_trend[i], NORMAL_95 * contact.temperature_trend_std[i]
        rows.append([name, *hourly, *warm])
    head = ("", "per hour", "± (95 %)", "per kelvin", "± (95 %)")
    title = "Drift of the zero [N, Nm]; – where the recording does not determine it."
    return [Table(title, head, rows)]


def _residual_plot(detections: Detections) -> Plot:
    seen = detections.residuals
    panels = []
    for j, name in enumerate(seen.observer.names):
        low = -seen.slack[:, 0, j]
        high = seen.slack[:, 1, j]
        upper = high + detections.threshold[:, j]
        lower = low - detections.threshold[:, j]
        usual = float(np.quantile(np.maximum(upper, -lower), 0.9))
        reach = _AXIS_RATIO * max(float(np.abs(seen.residual[:, j]).max()), usual)
        parts: list[Curve | Band] = [
            *_contact_bands(detections, name, reach),
            Band("unknown friction", seen.t, low, high, "#d9822b"),
            Curve("residual", seen.t, seen.residual[:, j]),
            Curve("threshold", seen.t, upper, "dashed", colour="#1f2933"),
            Curve("threshold", seen.t, lower, "dashed", colour="#1f2933"),
        ]
        numbered = enumerate(detections.contacts, start=1)
        marks = [(c.start_s, f"{k}") for k, c in numbered if name in c.joints]
        label = f"residual [{seen.observer.unit}]"
        panels.append(Panel(name, "time [s]", label, parts, marks, y_range=(-reach, reach)))
    return Plot("The residual of each joint, and the threshold of a contact.", panels)


def _contact_bands(detections: Detections, joint: str, reach: float) -> list[Band]:
    """Contacts as bands of full height: those that a joint has seen, and the others."""
    bands = []
    for name, colour, here in ((_SEEN_HERE, "#c23030", True), (_SEEN_ELSEWHERE, "#7b8794", False)):
        spans = [
            (c.start_s, max(c.end_s, c.detected_s))
            for c in detections.contacts
            if (joint in c.joints) == here
        ]
        if spans:
            x = np.array([(start, end, end) for start, end in spans]).ravel()
            height = np.tile([reach, reach, np.nan], len(spans))
            bands.append(Band(name, x, -height, height, colour))
    return bands


def _force_plot(comparison: GuidingComparison) -> Plot:
    without, compensated = comparison.forces
    panels = []
    for i, axis in enumerate("xyz"):
        pair = ((_WITHOUT, without[:, i]), (_WITH, compensated[:, i]))
        curves = [Curve(name, comparison.without.t, y, colour=_COLOURS[name]) for name, y in pair]
        panels.append(Panel(f"{axis} of the {comparison.frame}", "time [s]", "force [N]", curves))
    return Plot("The hand's force along the path.", panels, 1)


def _size_bars(comparison: GuidingComparison) -> Plot:
    panels = []
    sizes = (
        ("mean of |F| [N]", comparison.mean, comparison.mean_reduction),
        ("variance of F [N²]", comparison.variance, comparison.variance_reduction),
    )
    for label, pair, less in sizes:
        axes = [f"{axis}: {-100 * share:+.0f} %" for axis, share in zip("xyz", less, strict=True)]
        named = zip((_WITHOUT, _WITH), pair, strict=True)
        bars = [Curve(name, axes, size, "bars", colour=_COLOURS[name]) for name, size in named]
        panels.append(Panel(label, f"axis of the {comparison.frame}", label, bars))
    return Plot("Size of the hand's force, with and without compensation.", panels)


def _path_plot(comparison: GuidingComparison) -> Plot:
    wanted = comparison.without.wanted
    runs = {_WITHOUT: comparison.without, _WITH: comparison.compensated}
    above: list[Curve | Band] = [Curve(_PATH, wanted[:, 0], wanted[:, 1], colour=_COLOURS[_PATH])]
    above += [
        Curve(name, run.position[:, 0], run.position[:, 1], colour=_COLOURS[name])
        for name, run in runs.items()
    ]
    above.append(Curve("start", wanted[:1, 0], wanted[:1, 1], "dots", colour="#1f2933"))
    tilt = [
        Curve(name, run.t, np.degrees(run.tilt), colour=_COLOURS[name])
        for name, run in runs.items()
    ]
    return Plot(
        "Path of the grip, from above, and tilt of the tool.",
        [
            Panel("path in the base frame", "x [m]", "y [m]", above, equal=True),
            Panel("tilt", "time [s]", "angle [degree]", tilt),
        ],
    )
