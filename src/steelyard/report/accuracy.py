"""The page of the shortest motion that is enough: what it will know, when, and what longer ones would."""

from __future__ import annotations

import numpy as np

from steelyard.drawing import Curve, Panel, Plot
from steelyard.excitation import DesignLimits
from steelyard.report.motion import limits_section, motion_plot, near_limits
from steelyard.report.page import Page, Section, Table
from steelyard.robot import RobotModel
from steelyard.torque.shortest import ShortestMotion

_RATE_HZ = 200.0
_LIMIT = "#c23030"
_MASS, _COM = "± (95 %) [kg]", "± (95 %) [mm]"
_INERTIA = "± (95 %) [kg m²]"
_KINDS = (
    ("mass", _MASS, {"mass": 0}, 1.0),
    ("centre of mass", _COM, {"x": 1, "y": 2, "z": 3}, 1e3),
    ("moments of inertia about the flange", _INERTIA, {"Ixx": 4, "Iyy": 6, "Izz": 9}, 1.0),
    ("products of inertia about the flange", _INERTIA, {"Ixy": 5, "Ixz": 7, "Iyz": 8}, 1.0),
)
_TOO_WIDE = 1e3  # times the last half-width: nothing is known yet
_CAUSES = {
    "noise": "noise of the torques",
    "friction": "friction, which is estimated anew",
    "gains": "drive gains",
    "drift": "drive gains that change from run to run",
    "motion": "noise of the measured motion",
    "gravity": "local gravity, of which the nominal size is given",
}


def shortest_page(loaded: RobotModel, limits: DesignLimits, found: ShortestMotion) -> Page:
    """The page of the shortest motion that is enough.

    Args:
        loaded: the arm with the payload on its flange
        limits: that the motion keeps
        found: the motion
    """
    mass, design = found.prediction.quantities[0], found.design
    share = 100 * mass.half_width / mass.value
    answer = [
        f"A motion of {found.duration_s:.3g} s weighs {mass.value:g} kg to {share:.2g} %"
        f" ({1e3 * mass.half_width:.3g} g, 95 %).",
        f"{design.verdict.summary[0].upper()}{design.verdict.summary[1:]}.",
    ]
    curve, known, motion = _over_duration(found), _over_time(found), motion_plot(loaded, limits, design)
    sections = [
        Section("What will be known", _causes(found), [_table(found)]),
        Section("How long is enough", (), [curve]),
        Section("What becomes known when", (), [known]),
        Section("The motion", (), [motion, _torques(loaded, limits, found)]),
        limits_section(design),
    ]
    doubts = [f"{doubt.words}." for doubt in found.verdict.doubts]
    return Page(
        f"The shortest motion for {loaded.name}",
        answer,
        sections,
        doubts=doubts,
        picture=[curve, known, motion],
    )


def _table(found: ShortestMotion) -> Table:
    wanted = found.requested.half_widths * [1, 1e3, 1e3, 1e3, *[1] * 6]
    last, rows = found.prediction.half_widths, list[list[str | float | None]]()
    for k, (quantity, most) in enumerate(zip(found.prediction.quantities, wanted, strict=True)):
        requested = float(most) if np.isfinite(most) else None
        early = np.flatnonzero(found.known[:, k] <= 2 * last[k])
        when = f"{found.times_s[early[0]]:.2f}" if early.size else None
        rows.append([quantity.name, quantity.value, quantity.half_width, requested, quantity.unit, when])
    caption = (
        "A payload as expected, half-widths of the 95 % intervals that `weigh` will report, and when they are"
        " down to twice that."
    )
    return Table(caption, ("", "expected", "± (95 %)", "requested", "unit", "twice that after [s]"), rows)


def _causes(found: ShortestMotion) -> list[str]:
    parts = [
        f"{_CAUSES.get(name, name)} {100 * share:.0f} %"
        for name, share in found.prediction.shares.items()
        if share >= 0.005
    ]
    return [f"The variance of the mass is made of: {', '.join(parts)}."] if parts else []


def _over_duration(found: ShortestMotion) -> Plot:
    """Half-widths of what is requested, of the designs over their durations."""
    wanted, panels = found.requested.half_widths, []
    x, ends = found.durations_s, np.array([0.0, 1.05 * found.durations_s[-1]])
    for title, unit, names, scale in _KINDS:
        ks = [k for k in names.values() if np.isfinite(wanted[k])]
        if not ks:
            continue
        y = scale * found.reached[:, ks].max(axis=1)
        line = Curve("requested", ends, np.full(2, scale * wanted[ks[0]]), "dashed", colour=_LIMIT)
        parts = [Curve("best found", x, y), Curve("designs", x, y, "dots", colour="#2266aa"), line]
        marks = [(found.duration_s, f"{found.duration_s:.3g} s")]
        panels.append(Panel(title, "duration [s]", unit, parts, marks, log_y=True, x_range=(0.0, ends[1])))
    which = "" if len(panels) == 1 else ", the worst of each kind"
    words = f"What motions of other durations reach{which}; dashed: what is requested."
    return Plot(words, panels, min(len(panels), 2))


def _over_time(found: ShortestMotion) -> Plot:
    """Half-widths along the motion."""
    wanted, last, panels = found.requested.half_widths, found.prediction.half_widths, []
    x = found.times_s
    for title, unit, names, scale in _KINDS:
        parts = []
        for name, k in names.items():
            y = found.known[:, k]
            known = np.isfinite(y) & (y < _TOO_WIDE * last[k])
            if known.any():
                parts.append(Curve(name, x, np.where(known, scale * y, np.nan)))
        k = next(iter(names.values()))
        if np.isfinite(wanted[k]):
            ends = np.array([0.0, x[-1]])
            parts.append(Curve("requested", ends, np.full(2, scale * wanted[k]), "dashed", colour=_LIMIT))
        panels.append(Panel(title, "time [s]", unit, parts, log_y=True, x_range=(0.0, float(x[-1]))))
    return Plot("Half-widths of the 95 % intervals while the arm moves.", panels, 2)


def _torques(loaded: RobotModel, limits: DesignLimits, found: ShortestMotion) -> Plot:
    motion, most = found.design.trajectory, limits.joints.tau_max
    t = np.linspace(0, motion.duration_s, round(motion.duration_s * _RATE_HZ) + 1)
    tau = loaded.torque(*motion.at(t))
    panels = [
        Panel(
            f"{name}: torque",
            "time [s]",
            "τ [Nm]",
            [Curve("motion", t, tau[:, j]), near_limits(t, tau[:, j], (-float(most[j]), float(most[j])))],
        )
        for j, name in enumerate(loaded.joint_names)
    ]
    return Plot(
        "Torques of the drives with the payload on the flange; limits that are near, dashed.", panels, 3
    )
