"""The page of a designed motion: how telling it is, and every limit that it keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard.arrays import Array
from steelyard.excitation import Design, DesignLimits
from steelyard.report.page import Band, Curve, Page, Panel, Plot, Section, Table
from steelyard.report.pieces import sentence
from steelyard.robot import RobotModel

_RATE_HZ = 100.0
_SIGNALS = (("position", "q [rad]"), ("velocity", "v [rad/s]"), ("acceleration", "a [rad/s²]"))
_NEAR = 1.2  # of the span of a signal: limits farther away are not drawn


def excitation_page(
    robot: RobotModel, limits: DesignLimits, design: Design, *, settings: Mapping[str, str] | None = None
) -> Page:
    """The page of a designed motion.

    Args:
        robot: the arm
        limits: of the design
        design: the motion
        settings: every setting, version and input digest, by name
    """
    worst = design.certificate.worst
    value = "" if design.objective == "condition" else f"{design.objective} {design.value:.4g}, "
    which = "every limit that was given" if design.certificate.unchecked else "every limit"
    answer = [
        f"A motion of {design.trajectory.duration_s:g} s with {value}condition number"
        f" {design.condition_number:.4g} that keeps {which}.",
        f"The closest limit: {worst.sentence}.",
        sentence(design.status),
    ]
    doubts = [] if design.certificate.holds else [f"A limit is broken: {worst.sentence}."]
    if design.certificate.unchecked:
        doubts.append(f"{design.certificate.not_checked}.")
    sections = [_motion_section(robot, limits, design), _limits_section(design), _value_section(design)]
    return Page(f"A motion for {robot.name}", answer, sections, settings or {}, doubts)


def _motion_section(robot: RobotModel, limits: DesignLimits, design: Design) -> Section:
    joints, motion = limits.joints, design.trajectory
    t = np.linspace(0, motion.duration_s, round(motion.duration_s * _RATE_HZ) + 1)
    bounds = ((joints.q_min, joints.q_max), (-joints.v_max, joints.v_max), (-joints.a_max, joints.a_max))
    signals = motion.at(t)
    panels = []
    for j, name in enumerate(robot.joint_names):
        for (word, label), signal, (low, high) in zip(_SIGNALS, signals, bounds, strict=True):
            parts = _bounded(t, signal[:, j], (float(low[j]), float(high[j])))
            panels.append(Panel(f"{name}: {word}", "time [s]", label, parts))
    plot = Plot("Position, velocity and acceleration of each joint; limits that are near, dashed.", panels, 3)
    return Section("The motion", (), [plot])


def _bounded(t: Array, signal: Array, bounds: tuple[float, float]) -> list[Curve | Band]:
    parts: list[Curve | Band] = [Curve("motion", t, signal)]
    low, high = float(signal.min()), float(signal.max())
    reach = _NEAR * max(high - low, 1e-6)
    x, y = [], []
    for bound in bounds:
        if np.isfinite(bound) and low - reach < bound < high + reach:
            x += [t[0], t[-1], np.nan]
            y += [bound, bound, np.nan]
    parts.append(Curve("limit", np.array(x), np.array(y), "dashed", None, "#c23030"))
    return parts


def _limits_section(design: Design) -> Section:
    head = ("limit", "closest at", "at [s]", "value", "bound", "margin", "unit")
    rows = [[c.limit, c.where, c.at_s, c.value, c.bound, c.margin, c.unit] for c in design.certificate.checks]
    rate = design.certificate.rate_hz
    caption = f"Every limit where it is closest, checked at {rate:g} Hz by code that the design does not use."
    return Section("Limits", (), [Table(caption, head, rows)])


def _value_section(design: Design) -> Section:
    rows = [[i + 1, value] for i, value in enumerate(design.start_values)]
    words = (
        f"Value of the objective '{design.objective}' that each random start reached; ∞: nothing feasible."
    )
    parts: list[Table | Plot] = [Table(words, ("start", "value"), rows)]
    if design.std:
        known: list[Sequence[str | float | None]] = [[name, std] for name, std in design.std.items()]
        parts.append(Table("Predicted standard deviations of a payload [SI].", ("parameter", "std"), known))
    line = (
        f"Found in {design.seconds:.1f} s. Condition number of the stacked base regressor:"
        f" {design.condition_number:.4g}."
    )
    return Section("How telling it is", (line,), parts)
