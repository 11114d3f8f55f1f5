"""Pages of designed motions and postures: what they determine, and the limits they keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array
from steelyard.drawing import Band, Curve, Panel, Plot
from steelyard.excitation import Design, DesignLimits, OrientationWorkspace
from steelyard.excitation._objective import regression_condition
from steelyard.report._page import Page, Section, Table
from steelyard.robot import RobotModel
from steelyard.torque._shortest import ShortestMotion
from steelyard.verdict import DoubtKind

_RATE_HZ = 100.0
_SIGNALS = (("position", "q [rad]"), ("velocity", "v [rad/s]"), ("acceleration", "a [rad/s²]"))
_MAX_LIMIT_DISTANCE = 1.2  # of a drawn limit from the signal, over the span of the signal
_MIN_AXIS_SPAN = 0.02  # for joints that do not move [rad, rad/s, rad/s^2]
_MAX_ORIENTATIONS = 500  # drawn along a motion
_LIMIT = "#c23030"
_FEASIBLE = "#2a9d5c"
_TORQUE_HZ = 200.0
_MASS = "± (95 %) [kg]"
_COM = "± (95 %) [mm]"
_INERTIA = "± (95 %) [kg m²]"
_PANELS = (
    ("mass", _MASS, {"mass": 0}, 1.0),
    ("centre of mass", _COM, {"x": 1, "y": 2, "z": 3}, 1e3),
    ("moments of inertia about the flange", _INERTIA, {"Ixx": 4, "Iyy": 6, "Izz": 9}, 1.0),
    ("products of inertia about the flange", _INERTIA, {"Ixy": 5, "Ixz": 7, "Iyz": 8}, 1.0),
)
_MAX_WIDTH_RATIO = 1e3  # of a drawn half-width, over the final one
_CAUSES = {
    "noise": "noise of the torques",
    "friction": "friction, which is estimated again",
    "gains": "drive gains",
    "drift": "drive gains that change from run to run",
    "motion": "noise of the measured motion",
    "gravity": "local gravity, given as a nominal value",
}


def excitation_page(robot: RobotModel, limits: DesignLimits, design: Design) -> Page:
    """The page of a designed motion."""
    worst = design.certificate.worst
    if design.objective == "condition":
        value = ""
    else:
        value = f"{design.objective} {design.value:.4g}, "
    if design.certificate.unchecked:
        which = "every given limit"
    else:
        which = "every limit"
    other_doubts = tuple(
        doubt for doubt in design.verdict.doubts if doubt.kind is not DoubtKind.NOT_CHECKED
    )  # what was not checked is said below
    answer = [
        f"A motion of {design.trajectory.duration_s:g} s with {value}condition number"
        f" {design.condition_number:.4g} that keeps {which}.",
        str(replace(design.verdict, doubts=other_doubts)),
    ]
    if design.certificate.holds:
        doubts = []
    else:
        doubts = [f"A limit is violated: {worst.sentence}."]
    if design.certificate.unchecked:
        doubts.append(f"{design.certificate.not_checked}.")
    motion = _motion_plot(robot, limits, design)
    sections = [
        Section("The motion", (), [motion]),
        _limits_section(design),
        _value_section(robot, design),
    ]
    if limits.workspace is not None:
        t = np.linspace(0, design.trajectory.duration_s, _MAX_ORIENTATIONS)
        R = robot.forward_kinematics(design.trajectory.at(t)[0])[:, :3, :3]
        sections.insert(
            1, Section("Where the sensor points", (), [orientation_plot(R, limits.workspace)])
        )
    return Page(f"A motion for {robot.name}", answer, sections, doubts=doubts, picture=[motion])


def shortest_page(loaded: RobotModel, limits: DesignLimits, found: ShortestMotion) -> Page:
    """The page of the shortest motion with a requested accuracy.

    Args:
        loaded: the arm with the payload on its flange
        limits: of the motion
        found: the motion
    """
    mass = found.prediction.quantities[0]
    design = found.design
    share = 100 * mass.half_width / mass.value
    answer = [
        f"A motion of {found.duration_s:.3g} s weighs {mass.value:g} kg to {share:.2g} %"
        f" ({1e3 * mass.half_width:.3g} g, 95 %).",
        f"{design.verdict.summary[0].upper()}{design.verdict.summary[1:]}.",
    ]
    curve = _over_duration(found)
    known = _over_time(found)
    motion = _motion_plot(loaded, limits, design)
    sections = [
        Section("Expected accuracy", _causes(found), [_table(found)]),
        Section("Accuracy over duration", (), [curve]),
        Section("Accuracy over time", (), [known]),
        Section("The motion", (), [motion, _torques(loaded, limits, found)]),
        _limits_section(design),
    ]
    doubts = [f"{doubt.words}." for doubt in found.verdict.doubts]
    return Page(
        f"The shortest motion for {loaded.name}",
        answer,
        sections,
        doubts=doubts,
        picture=[curve, known, motion],
    )


def orientation_plot(
    R_base_sensor: ArrayLike, workspace: OrientationWorkspace | None = None
) -> Plot:
    """Axes of orientations in spherical coordinates, on a workspace (liu2025 Fig. 4, 6).

    Args:
        R_base_sensor: orientations of the sensor in the base frame, (N, 3, 3)
        workspace: feasible orientations; None to draw none
    """
    R = np.asarray(R_base_sensor, dtype=float)
    panels = []
    for i, axis in enumerate("xyz"):
        parts: list[Curve | Band] = []
        if workspace is not None:
            parts += [*_feasible_bands(workspace, axis), *_cone_middles(workspace, axis)]
        parts.append(Curve("axis of the sensor", *_spherical(R[:, :, i]), "dots", colour="#2266aa"))
        title = f"{axis} axis of the sensor"
        ranges = ((-180.0, 180.0), (180.0, 0.0))
        labels = ("azimuth φ [°]", "polar angle θ [°]")
        panels.append(Panel(title, *labels, parts, x_range=ranges[0], y_range=ranges[1]))
    if workspace is None:
        words = ""
    else:
        words = "; shaded: the feasible workspace"
    return Plot(f"Axes of the sensor in the base frame, {len(R)} orientations{words}.", panels, 3)


def _motion_plot(robot: RobotModel, limits: DesignLimits, design: Design) -> Plot:
    """Position, velocity and acceleration of each joint of a design against their limits."""
    joints = limits.joints
    motion = design.trajectory
    t = np.linspace(0, motion.duration_s, round(motion.duration_s * _RATE_HZ) + 1)
    bounds = (
        (joints.q_min, joints.q_max),
        (-joints.v_max, joints.v_max),
        (-joints.a_max, joints.a_max),
    )
    signals = motion.at(t)
    panels = []
    for j, name in enumerate(robot.joint_names):
        for (word, label), signal, (low, high) in zip(_SIGNALS, signals, bounds, strict=True):
            y = signal[:, j]
            ends = (float(low[j]), float(high[j]))
            parts = [Curve("motion", t, y), _near_limits(t, y, ends)]
            still = np.ptp(y) < _MIN_AXIS_SPAN
            if still:
                window = (y.mean() - _MIN_AXIS_SPAN, y.mean() + _MIN_AXIS_SPAN)
            else:
                window = None
            panels.append(Panel(f"{name}: {word}", "time [s]", label, parts, y_range=window))
    return Plot(
        "Position, velocity and acceleration of each joint; dashed: limits nearby.",
        panels,
        3,
    )


def _near_limits(t: Array, signal: Array, bounds: tuple[float, float]) -> Curve:
    """The bounds near a signal, as one dashed curve."""
    low = float(signal.min())
    high = float(signal.max())
    reach = _MAX_LIMIT_DISTANCE * max(high - low, 1e-6)
    near = [bound for bound in bounds if np.isfinite(bound) and low - reach < bound < high + reach]
    x = np.tile([t[0], t[-1], np.nan], len(near))
    y = np.array([(bound, bound, np.nan) for bound in near]).ravel()
    return Curve("limit", x, y, "dashed", colour=_LIMIT)


def _limits_section(design: Design) -> Section:
    """All limits of a design, each where its margin is smallest."""
    head = ("limit", "closest at", "at [s]", "value", "bound", "margin", "unit")
    rows = [
        [c.limit, c.where, c.at_s, c.value, c.bound, c.margin, c.unit]
        for c in design.certificate.checks
    ]
    rate = design.certificate.rate_hz
    caption = (
        f"Every limit where its margin is smallest, checked at {rate:g} Hz by code that the design"
        " does not use."
    )
    bodies = [[words] for words in design.certificate.bodies]
    pairs = [[words] for words in design.certificate.left_out]
    listed = (
        ("Bodies of the arm whose clearance was checked.", "body", bodies),
        ("Pairs of bodies left out, because no joint can separate them.", "pair", pairs),
    )
    more = [Table(words, (what,), found) for words, what, found in listed if found]
    return Section("Limits", (), [Table(caption, head, rows), *more])


def _value_section(robot: RobotModel, design: Design) -> Section:
    rows = [[i + 1, value] for i, value in enumerate(design.start_values)]
    words = (
        f"Value of the objective '{design.objective}' that each random start reached; ∞: no"
        " feasible motion."
    )
    parts: list[Table | Plot] = [Table(words, ("start", "value"), rows)]
    if design.std:
        known: list[Sequence[str | float | None]] = [
            [name, std] for name, std in design.std.items()
        ]
        parts.append(
            Table("Predicted standard deviations of a payload [SI].", ("parameter", "std"), known)
        )
    line = (
        f"Found in {design.seconds:.1f} s. Condition number of the stacked base regressor in SI"
        f" units, as in the papers: {design.condition_number:.4g}."
    )
    unit = regression_condition(robot, design.trajectory)
    other = (
        f"With columns of unit length it is {unit:.3g}: about what identification reports for this"
        " motion, with joints weighted by their noise. The first number depends on units"
        " (kg m² beside Nm); the second shows how close to dependent the columns are, which alone"
        " limits least squares."
    )
    return Section("How much it determines", (line, other), parts)


def _feasible_bands(workspace: OrientationWorkspace, axis: str) -> list[Band]:
    """Feasible directions of an axis: ranges of the polar angle for each azimuth."""
    phi = np.arange(-180.0, 181.0)
    theta = np.arange(0.0, 181.0)
    p, q = np.radians(np.meshgrid(phi, theta, indexing="ij"))
    x = np.stack([np.sin(q) * np.cos(p), np.sin(q) * np.sin(p), np.cos(q)], axis=-1).reshape(-1, 3)
    inside = np.ones(len(x), dtype=bool)
    for part in workspace.regions:
        if part.axis == axis:
            inside &= part.margin(x) >= 0
    step = np.diff(inside.reshape(p.shape).astype(int), axis=1, prepend=0, append=0)
    starts = [np.flatnonzero(row > 0) for row in step]
    ends = [np.flatnonzero(row < 0) - 1 for row in step]
    bands = []
    for k in range(max(len(row) for row in starts)):
        low, high = (
            np.array([theta[row[k]] if k < len(row) else np.nan for row in rows])
            for rows in (starts, ends)
        )
        bands.append(Band("feasible", phi, low, high, _FEASIBLE))
    return bands


def _cone_middles(workspace: OrientationWorkspace, axis: str) -> list[Curve]:
    regions = [part for part in workspace.regions if part.axis == axis]
    middles = [middle for part in regions for middle in part.middles]
    if not middles:
        return []
    return [Curve("middle of a cone", *_spherical(np.array(middles)), "dots", colour=_LIMIT)]


def _spherical(x: Array) -> tuple[Array, Array]:
    """Azimuth and polar angle of unit vectors, (N,) each [degree]."""
    return np.degrees(np.arctan2(x[:, 1], x[:, 0])), np.degrees(np.arccos(np.clip(x[:, 2], -1, 1)))


def _table(found: ShortestMotion) -> Table:
    wanted = found.requested.half_widths * [1, 1e3, 1e3, 1e3, *[1] * 6]
    last = found.prediction.half_widths
    rows = list[list[str | float | None]]()
    for k, (quantity, most) in enumerate(zip(found.prediction.quantities, wanted, strict=True)):
        if np.isfinite(most):
            requested = float(most)
        else:
            requested = None
        early = np.flatnonzero(found.known[:, k] <= 2 * last[k])
        if early.size:
            when = f"{found.times_s[early[0]]:.2f}"
        else:
            when = None
        rows.append(
            [quantity.name, quantity.value, quantity.half_width, requested, quantity.unit, when]
        )
    caption = (
        "The expected payload, half-widths of the 95 % intervals that a weighing will report, and"
        " the time at which they have fallen to twice that value."
    )
    return Table(
        caption, ("", "expected", "± (95 %)", "requested", "unit", "twice that after [s]"), rows
    )


def _causes(found: ShortestMotion) -> list[str]:
    parts = [
        f"{_CAUSES.get(name, name)} {100 * share:.0f} %"
        for name, share in found.prediction.shares.items()
        if share >= 0.005
    ]
    if parts:
        return [f"Parts of the variance of the mass: {', '.join(parts)}."]
    return []


def _over_duration(found: ShortestMotion) -> Plot:
    """Half-widths of the requested quantities over the durations of the designs."""
    wanted = found.requested.half_widths
    panels = []
    x = found.durations_s
    ends = np.array([0.0, 1.05 * found.durations_s[-1]])
    for title, unit, names, scale in _PANELS:
        ks = [k for k in names.values() if np.isfinite(wanted[k])]
        if not ks:
            continue
        y = scale * found.reached[:, ks].max(axis=1)
        line = Curve("requested", ends, np.full(2, scale * wanted[ks[0]]), "dashed", colour=_LIMIT)
        parts = [Curve("best found", x, y), Curve("designs", x, y, "dots", colour="#2266aa"), line]
        marks = [(found.duration_s, f"{found.duration_s:.3g} s")]
        panels.append(
            Panel(title, "duration [s]", unit, parts, marks, log_y=True, x_range=(0.0, ends[1]))
        )
    if len(panels) == 1:
        which = ""
    else:
        which = ", the worst of each kind"
    words = f"Accuracy of motions of other durations{which}; dashed: requested."
    return Plot(words, panels, min(len(panels), 2))


def _over_time(found: ShortestMotion) -> Plot:
    """Half-widths along the motion."""
    wanted = found.requested.half_widths
    last = found.prediction.half_widths
    panels = []
    x = found.times_s
    for title, unit, names, scale in _PANELS:
        parts = []
        for name, k in names.items():
            y = found.known[:, k]
            known = np.isfinite(y) & (y < _MAX_WIDTH_RATIO * last[k])
            if known.any():
                parts.append(Curve(name, x, np.where(known, scale * y, np.nan)))
        k = next(iter(names.values()))
        if np.isfinite(wanted[k]):
            ends = np.array([0.0, x[-1]])
            parts.append(
                Curve("requested", ends, np.full(2, scale * wanted[k]), "dashed", colour=_LIMIT)
            )
        panels.append(
            Panel(title, "time [s]", unit, parts, log_y=True, x_range=(0.0, float(x[-1])))
        )
    return Plot("Half-widths of the 95 % intervals while the arm moves.", panels, 2)


def _torques(loaded: RobotModel, limits: DesignLimits, found: ShortestMotion) -> Plot:
    motion = found.design.trajectory
    most = limits.joints.tau_max
    t = np.linspace(0, motion.duration_s, round(motion.duration_s * _TORQUE_HZ) + 1)
    tau = loaded.torque(*motion.at(t))
    panels = [
        Panel(
            f"{name}: torque",
            "time [s]",
            "τ [Nm]",
            [
                Curve("motion", t, tau[:, j]),
                _near_limits(t, tau[:, j], (-float(most[j]), float(most[j]))),
            ],
        )
        for j, name in enumerate(loaded.joint_names)
    ]
    return Plot(
        "Torques of the drives with the payload on the flange; dashed: limits nearby.",
        panels,
        3,
    )
