"""Pages of a payload, weighed with joint torques or a wrist sensor, with the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.drawing import Band, Curve, Panel, Plot, Scene
from steelyard.identification import DynamicModel
from steelyard.inertia import INERTIA, PARAMETER_NAMES, InertialParameters
from steelyard.payload import Payload, Quantity
from steelyard.payload._views import body_plot, com_plot
from steelyard.recording import Samples
from steelyard.report._page import Page, Section, Table
from steelyard.report._pieces import (
    WRENCH_AXES,
    WRENCH_UNITS,
    autocorrelation_plot,
    judged,
    relative_std_plot,
    torque_plots,
)
from steelyard.report._scene import arm_scene
from steelyard.robot._parameters import LINK_KINDS
from steelyard.verdict import Aspect
from steelyard.wrist import StaticFit, WrenchSamples, WristPayload

_PARAMETER_UNITS = tuple(kind.unit for kind in LINK_KINDS)


def payload_page(
    model: DynamicModel,
    payload: Payload,
    samples: Samples,
    *,
    truth: InertialParameters | None = None,
    others: Mapping[str, Payload] | None = None,
    extra: Sequence[Section] = (),
) -> Page:
    """The page of a payload weighed with joint torques.

    Args:
        model: of the empty arm
        payload: the answer
        samples: of the loaded arm, to draw
        truth: the true payload if known, in the flange frame
        others: the same payload by other methods, by name
        extra: further sections, for example the history of an online estimate
    """
    views = _body_views(payload, truth)
    scenes = []
    if views:
        scenes.append(
            arm_scene(
                model.robot, samples.q, samples.t, payload.body, payload.covariance, truth=truth
            )
        )
    torque, rms, residual, correlation = _torque_parts(model, payload, samples)
    sections = [
        Section("The payload", _moved(payload), [_payload_table(payload, truth), *scenes, *views]),
        *([_others_section(payload, others, truth)] if others else []),
        Section("Torque with and without the payload", (), [torque, rms, residual, correlation]),
        _excited_section(payload.body, payload.std),
        *extra,
    ]
    return _page(f"What {model.robot.name} carries", payload, sections, [*views, torque])


def _body_views(payload: Payload, truth: InertialParameters | None = None) -> list[Plot]:
    """The body on its frame, and its centre enlarged; nothing where the mass is not known.

    Args:
        payload: the answer
        truth: the true payload if known, in the same frame
    """
    if not (payload.mass > 0 and np.isfinite(payload.std[0])):
        return []
    return [draw(payload.body, payload.covariance, truth) for draw in (body_plot, com_plot)]


def motions_section(
    found: Mapping[str, Payload], truth: InertialParameters, *, words: Sequence[str] = ()
) -> Section:
    """A section that compares a payload on several motions with the truth.

    Args:
        found: the answers by the names of the motions; the last one is drawn
        truth: the payload, in the flange frame
        words: about the motions
    """
    known = [truth.mass, *(1e3 * truth.com), *truth.vector[INERTIA]]
    rows: list[list[str | float | None]] = []
    for k, quantities in enumerate(zip(*(one.quantities for one in found.values()), strict=True)):
        cells = [cell for x in quantities for cell in (x.value, x.half_width)]
        rows.append([quantities[0].name, *cells, known[k], quantities[0].unit])
    head = ["", *(cell for name in found for cell in (name, "± (95 %)")), "truth", "unit"]
    name, last = list(found.items())[-1]
    plot = body_plot(last.body, last.covariance, truth)
    drawn = replace(plot, caption=f"On the motion '{name}'. {plot.caption}")
    return Section(
        "Another motion", words, [Table("The same payload on each motion.", head, rows), drawn]
    )


def wrench_page(
    payload: WristPayload,
    samples: WrenchSamples | None = None,
    static: StaticFit | None = None,
    *,
    scene: Scene | None = None,
) -> Page:
    """The page of a payload weighed with a wrist sensor: in motion, at rest, or both.

    Args:
        payload: the answer
        samples: of the motion
        static: result of the postures at rest
        scene: the arm with the payload; None if joints are unknown
    """
    sections = [
        _body_section(payload, scene),
        _zero_section(payload),
        *([] if samples is None else [_motion_section(payload, samples)]),
        *([] if static is None else [_static_section(static, payload)]),
    ]
    if payload.knows_inertia and payload.gives_intervals:
        sections.append(_excited_section(payload.body, payload.std))
    return _page("What the wrist sensor carries", payload, sections)


def stream_page(payload: Payload, curve: Section) -> Page:
    """The page of a payload weighed from a live stream, whose rows are not kept.

    Args:
        payload: the answer
        curve: section with the curve of how it became known
    """
    views = _body_views(payload)
    table = _payload_table(payload, None)
    sections = [Section("The payload", _moved(payload), [table, *views])]
    if payload.gives_intervals:
        sections.append(_excited_section(payload.body, payload.std))
    sections.append(curve)
    return _page("What the arm carries", payload, sections, views)


def _page(
    title: str, payload: Payload, sections: Sequence[Section], picture: Sequence[Plot] = ()
) -> Page:
    mass, *com = map(_with_interval, payload.quantities[:4])
    axes = ", ".join(f"{axis} {words}" for axis, words in zip("xyz", com, strict=True))
    answer = []
    if payload.quantities[0].is_known:
        level = "95 % interval" if payload.gives_intervals else "without an interval"
        answer.append(f"The payload weighs {mass} ({level}).")
    if all(x.is_known for x in payload.quantities[1:4]):
        answer.append(f"Its centre of mass lies at {axes} in the frame '{payload.body.frame}'.")
    good, doubts = judged(payload.verdict)
    headline = payload.headline.replace("+-", "±")
    badge = (str(payload.verdict.fitness(Aspect.MASS)), headline)
    return Page(title, [*answer, *good], sections, doubts=doubts, picture=picture, badge=badge)


def _with_interval(number: Quantity) -> str:
    """A number with its 95 % interval, to two digits of the interval, as '3.527 ± 0.011 kg'."""
    if not number.is_known:
        return "unknown"
    return f"{number.with_interval.replace('+-', '±')} {number.unit}"


def _quantity_rows(quantities: Sequence[Quantity]) -> list[list[str | float | None]]:
    """Name, value, half-width and unit of each number; no digits of those that are unknown."""
    rows: list[list[str | float | None]] = []
    for x in quantities:
        value: float | str = x.value if x.is_known else "unknown"
        half = x.half_width if np.isfinite(x.half_width) else None
        rows.append([x.name, value, half, x.unit])
    return rows


def _payload_table(payload: Payload, truth: InertialParameters | None = None) -> Table:
    """Mass, centre of mass and inertia with 95 % intervals, beside the truth if known."""
    head = ["", "weighed", "± (95 %)", "unit"]
    quantities = [*payload.quantities[:10], *payload.inertia_com_quantities]
    if not any(x.is_known for x in quantities[4:]):
        quantities = quantities[:4]  # nothing is known about the inertia
    rows = _quantity_rows(quantities)
    if truth is not None:
        head.insert(3, "truth")
        about_com = InertialParameters.from_com(truth.mass, [0, 0, 0], truth.inertia_com)
        known = [truth.mass, *(1e3 * truth.com), *truth.vector[INERTIA], *about_com.vector[INERTIA]]
        for row, value in zip(rows, known, strict=False):
            row.insert(3, float(value))
    note = ""
    if not payload.gives_intervals:
        note = "This method gives no intervals."
    elif not all(x.is_known for x in quantities):
        note = "unknown: the data do not determine this number."
    return Table(f"The payload in the frame '{payload.body.frame}'.", head, rows, note)


def _excited_section(body: InertialParameters, std: Array) -> Section:
    """Standard deviations of the ten numbers, each relative to a natural size."""
    mass = max(abs(body.mass), 1e-9)
    radius = np.sqrt(max(abs(float(np.trace(body.inertia))) / (2 * mass), 1e-6))
    size = np.array([mass, *[mass * radius] * 3, *[mass * radius**2] * 6])
    caption = (
        "Standard deviation of the ten numbers over a natural size: the mass, the mass times the"
        f" radius of gyration about the frame ({1e3 * radius:.0f} mm), and the mass times the"
        " square of that radius."
    )
    plot = relative_std_plot(caption, PARAMETER_NAMES, np.asarray(std) / size)
    order = zip(PARAMETER_NAMES, body.vector, std, _PARAMETER_UNITS, strict=True)
    rows = [[name, value, NORMAL_95 * s, unit] for name, value, s, unit in order]
    table = Table("The ten numbers.", ("", "value", "± (95 %)", "unit"), rows)
    return Section("Which of the ten were excited", (), [plot, table])


def _moved(payload: Payload) -> list[str]:
    """A sentence if the answer is not the unconstrained estimate."""
    if np.array_equal(payload.body.vector, payload.unconstrained.vector):
        return []
    why = payload.unconstrained.why_not_physical or "it is not physical"
    return [
        "The unconstrained estimate was replaced by the nearest physical body, in the metric of its"
        f" covariance: {why}."
    ]


def _others_section(
    payload: Payload, others: Mapping[str, Payload], truth: InertialParameters | None
) -> Section:
    head = (
        "method",
        "mass [kg]",
        "±",
        "x [mm]",
        "±",
        "y [mm]",
        "±",
        "z [mm]",
        "±",
        "Ixx",
        "Iyy",
        "Izz",
    )
    rows: list[list[str | float | None]] = []
    for name, one in (("this page", payload), *others.items()):
        com = [
            x for i in range(3) for x in (1e3 * one.body.com[i], 1e3 * NORMAL_95 * one.com_std[i])
        ]
        inertia = [float(one.body.inertia[i, i]) for i in range(3)]
        rows.append([name, one.body.mass, NORMAL_95 * one.std[0], *com, *inertia])
    if truth is not None:
        com = [x for i in range(3) for x in (1e3 * truth.com[i], None)]
        rows.append(
            ["truth", truth.mass, None, *com, *(float(truth.inertia[i, i]) for i in range(3))]
        )
    table = Table(
        "The same recording by other methods, 95 % intervals, inertia in kg m².", head, rows
    )
    return Section(
        "Other methods", [f"{name}: {one.verdict}" for name, one in others.items()], [table]
    )


def _torque_parts(
    model: DynamicModel, payload: Payload, samples: Samples
) -> tuple[Plot, Table, Plot, Plot]:
    """Torques, and their residuals as a table, over time, and as autocorrelation."""
    theta = model.estimate.value.copy()
    empty = np.asarray(model.rows(samples).Y @ theta)
    theta[: len(model.basis)] += model.basis.payload_jacobian @ payload.body.vector
    loaded = np.asarray(model.rows(samples, theta).Y @ theta)
    torque, left, correlation = torque_plots(
        model,
        samples,
        {"with payload": loaded, "empty arm": empty},
        titles=samples.joint_names,
        caption="Torque of the loaded arm: measured, and predicted with and without the payload.",
        residual_caption="Measured less predicted torque, with the friction of the empty runs."
        " Weighing estimates friction again, so a step at every reversal means that friction has"
        " changed, not that the payload is wrong.",
    )
    rms = [
        ["without the payload", *np.sqrt(np.mean((samples.tau - empty) ** 2, axis=0))],
        ["with the payload", *np.sqrt(np.mean((samples.tau - loaded) ** 2, axis=0))],
        ["with friction estimated again", *payload.noise],
    ]
    caption = "Root mean square of the residual of each joint [Nm or N]."
    return torque, Table(caption, ("", *samples.joint_names), rms), left, correlation


def _body_section(payload: WristPayload, scene: Scene | None) -> Section:
    parts: list[Table | Plot | Scene] = [
        _payload_table(payload),
        *([] if scene is None else [scene]),
        body_plot(payload.body, payload.covariance, origin="sensor"),
        com_plot(payload.body, payload.covariance),
    ]
    if payload.knows_inertia and not np.allclose(payload.T_flange_sensor, np.eye(4)):
        parts.append(_payload_table(payload.in_flange()))
    return Section(
        "The payload", [f"Estimated by {payload.method}."] if payload.method else [], parts
    )


def _zero_section(payload: WristPayload) -> Section:
    caption = "Reading of the sensor without a load, and tilt of the base."
    table = Table(
        caption, ("", "value", "± (95 %)", "unit"), _quantity_rows(payload.quantities[10:])
    )
    noise = Table(
        "Root mean square of the residual [N, Nm].",
        ("", *WRENCH_AXES),
        [["residual", *payload.noise]],
    )
    return Section("Zero drift and tilt", (), [table, noise])


def _motion_section(payload: WristPayload, samples: WrenchSamples) -> Section:
    predicted = payload.wrench(samples.features(payload.gravity_base)) + payload.drift
    residual = samples.wrench - predicted
    both = Plot.over_time(
        "The wrench in motion, measured and predicted from payload, drift and tilt.",
        samples.t,
        {"measured": samples.wrench, "predicted": predicted},
        WRENCH_AXES,
        units=WRENCH_UNITS,
    )
    left = {"residual": residual}
    rate = 1.0 / float(np.median(np.diff(samples.t)))
    return Section(
        "Force and torque in motion",
        [f"Preparation of the samples: {'; '.join(samples.made_by)}."],
        [
            both,
            Plot.over_time(
                "Measured less predicted.", samples.t, left, WRENCH_AXES, units=WRENCH_UNITS
            ),
            autocorrelation_plot(residual, rate, WRENCH_AXES),
        ],
    )


def _static_section(static: StaticFit, payload: WristPayload) -> Section:
    number = np.arange(1, len(static.postures) + 1).astype(float)
    std = np.sqrt(static.postures.variance)
    panels = []
    for name, axes, unit in (("force", range(3), "N"), ("torque", range(3, 6), "Nm")):
        parts: list[Curve | Band] = [
            Curve(WRENCH_AXES[i][1], number, static.residual[:, i], "dots", std[:, i]) for i in axes
        ]
        panels.append(Panel(name, "posture", f"residual [{unit}]", parts))
    caption = "Residual of each posture at rest."
    if (std > 0).any():
        caption = "Residual of each posture at rest, with error bars from its scatter (95 %)."
    plot = Plot(caption, panels)
    words = [f"{len(static.postures)} postures.", *static.postures.notes]
    words += [str(doubt) for doubt in static.verdict.doubts if not payload.verdict.has(doubt.kind)]
    return Section("Postures at rest", words, [plot])
