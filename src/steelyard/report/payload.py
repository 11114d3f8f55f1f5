"""Pages of a payload, weighed with joint torques or a wrist sensor: the answer, and why to believe it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard.arrays import Array
from steelyard.drawing import Band, Curve, Panel, Plot
from steelyard.identification import DynamicModel
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.payload import HALF_WIDTH, Payload
from steelyard.payload.views import body_plot, com_plot
from steelyard.recording import Samples
from steelyard.report.page import Page, Section, Table
from steelyard.report.pieces import autocorrelation_plot, relative_std_plot, sentence, torque_plots
from steelyard.wrist import StaticWeight, WrenchPayload, WrenchSamples

_PARAMETER_UNITS = ("kg", "kg m", "kg m", "kg m", *["kg m²"] * 6)
_AXES = ("fx", "fy", "fz", "τx", "τy", "τz")
_AXIS_UNITS = ("force [N]",) * 3 + ("torque [Nm]",) * 3


def payload_page(
    model: DynamicModel,
    payload: Payload,
    samples: Samples,
    *,
    truth: InertialParameters | None = None,
    others: Mapping[str, Payload] | None = None,
    extra: Sequence[Section] = (),
    settings: Mapping[str, str] | None = None,
) -> Page:
    """The page of a payload weighed with joint torques.

    Args:
        model: of the empty arm
        payload: what was weighed
        samples: of the loaded arm, to draw
        truth: the payload where it is known, in the flange frame
        others: the same payload by other methods, by name
        extra: sections of the caller, as how an online estimate became known
        settings: every setting, version and input digest, by name
    """
    views, com = (draw(payload.body, payload.covariance, truth) for draw in (body_plot, com_plot))
    table = _parameter_table(payload.body, payload.std, payload.com_std, truth)
    torque, rms, residual, correlation = _torque_parts(model, payload, samples)
    sections = [
        Section("The payload", _moved(payload), [table, views, com]),
        *([_others_section(payload, others, truth)] if others else []),
        Section("Torque with and without the payload", (), [torque, rms, residual, correlation]),
        _excited_section(payload.body, payload.std),
        *extra,
    ]
    doubts = [] if payload.verdict.ok else [sentence(payload.status)]
    answer = _mass_answer(payload.body, payload.std, payload.com_std, payload.status)
    title = f"What {model.robot.name} carries"
    return Page(title, answer, sections, settings or {}, doubts, [views, com, torque])


def wrench_page(
    payload: WrenchPayload,
    samples: WrenchSamples | None = None,
    static: StaticWeight | None = None,
    *,
    settings: Mapping[str, str] | None = None,
) -> Page:
    """The page of a payload weighed with a wrist sensor.

    Args:
        payload: what was weighed
        samples: of the motion it was weighed with, to draw
        static: the answer of postures at rest
        settings: every setting, version and input digest, by name
    """
    sections = [
        _body_section(payload),
        _zero_section(payload),
        *([] if samples is None else [_motion_section(payload, samples)]),
        *([] if static is None else [_static_section(static)]),
        *([_excited_section(payload.body, payload.std)] if payload.knows_inertia else []),
    ]
    answer = _mass_answer(payload.body, payload.std, payload.com_std, payload.status)
    doubts = [] if payload.verdict.ok else [sentence(payload.status)]
    return Page("What the wrist sensor carries", answer, sections, settings or {}, doubts)


def _mass_answer(body: InertialParameters, std: Array, com_std: Array, status: str) -> list[str]:
    c, half = 1e3 * body.com, 1e3 * HALF_WIDTH * com_std
    axes = ", ".join(f"{axis} {_with_interval(c[i], half[i], 'mm')}" for i, axis in enumerate("xyz"))
    return [
        f"The payload weighs {_with_interval(body.mass, HALF_WIDTH * std[0], 'kg')} (95 % interval).",
        f"Its centre of mass lies at {axes} in the frame '{body.frame}'.",
        sentence(status),
    ]


def _with_interval(value: float, half: float, unit: str) -> str:
    """A number with its 95 % interval, to two digits of the interval, as '3.527 ± 0.011 kg'."""
    if not np.isfinite(half):
        return f"{value:.4g} {unit} (not known)"
    digits = 4 if half <= 0 else int(np.clip(1 - np.floor(np.log10(half)), 0, 9))
    return f"{value:.{digits}f} ± {half:.{digits}f} {unit}"


def _parameter_table(
    body: InertialParameters, std: Array, com_std: Array, truth: InertialParameters | None = None
) -> Table:
    """Mass, centre of mass and inertia with 95 % intervals, beside the truth where it is known."""
    rows: list[list[str | float | None]] = [["mass", body.mass, HALF_WIDTH * std[0], "kg"]]
    for i, axis in enumerate("xyz"):
        rows.append([f"centre of mass {axis}", 1e3 * body.com[i], 1e3 * HALF_WIDTH * com_std[i], "mm"])
    for i in range(4, 10):
        rows.append([PARAMETER_NAMES[i], body.vector[i], HALF_WIDTH * std[i], "kg m²"])
    head = ["", "weighed", "± (95 %)", "unit"]
    if truth is not None:
        head.append("truth")
        known = [truth.mass, *(1e3 * truth.com), *truth.vector[4:]]
        rows = [[*row, value] for row, value in zip(rows, known, strict=True)]
    note = "Inertia about the origin of the frame. ∞: the data say nothing about it, do not use the number."
    return Table(f"The payload in the frame '{body.frame}'.", head, rows, note)


def _excited_section(body: InertialParameters, std: Array) -> Section:
    """Which of the ten numbers the data determine, each deviation against a natural size."""
    mass = max(abs(body.mass), 1e-9)
    radius = np.sqrt(max(abs(float(np.trace(body.inertia))) / (2 * mass), 1e-6))
    size = np.array([mass, *[mass * radius] * 3, *[mass * radius**2] * 6])
    caption = (
        "Standard deviation of the ten numbers over a natural size: the mass, the mass times the radius of"
        f" gyration about the frame ({1e3 * radius:.0f} mm), and that times the radius again."
    )
    plot = relative_std_plot(caption, PARAMETER_NAMES, np.asarray(std) / size)
    order = zip(PARAMETER_NAMES, body.vector, std, _PARAMETER_UNITS, strict=True)
    rows = [[name, value, HALF_WIDTH * s, unit] for name, value, s, unit in order]
    table = Table("The ten numbers.", ("", "value", "± (95 %)", "unit"), rows)
    return Section("Which of the ten were excited", (), [plot, table])


def _moved(payload: Payload) -> list[str]:
    """Words where the answer is not the plain estimate."""
    if np.array_equal(payload.body.vector, payload.unconstrained.vector):
        return []
    why = payload.unconstrained.why_not_physical or "it is not that of a real body"
    return [f"The plain estimate was moved to the nearest real body in the metric of its covariance: {why}."]


def _others_section(
    payload: Payload, others: Mapping[str, Payload], truth: InertialParameters | None
) -> Section:
    head = ("method", "mass [kg]", "±", "x [mm]", "±", "y [mm]", "±", "z [mm]", "±", "Ixx", "Iyy", "Izz")
    rows: list[list[str | float | None]] = []
    for name, one in (("this page", payload), *others.items()):
        com = [x for i in range(3) for x in (1e3 * one.body.com[i], 1e3 * HALF_WIDTH * one.com_std[i])]
        inertia = [float(one.body.inertia[i, i]) for i in range(3)]
        rows.append([name, one.body.mass, HALF_WIDTH * one.std[0], *com, *inertia])
    if truth is not None:
        com = [x for i in range(3) for x in (1e3 * truth.com[i], None)]
        rows.append(["truth", truth.mass, None, *com, *(float(truth.inertia[i, i]) for i in range(3))])
    table = Table("The same recording by other methods, 95 % intervals, inertia in kg m².", head, rows)
    status = [f"{name}: {sentence(one.status)}" for name, one in others.items()]
    return Section("Other methods", status, [table])


def _torque_parts(model: DynamicModel, payload: Payload, samples: Samples) -> tuple[Plot, Table, Plot, Plot]:
    """Torques, what is left of them as a table and over time, and its correlation."""
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
        residual_caption="Measured less predicted torque, friction as in the empty runs. Weighing estimates"
        " friction anew, so a step at every reversal says that friction has changed, not that the payload is"
        " wrong.",
    )
    rms = [
        ["without the payload", *np.sqrt(np.mean((samples.tau - empty) ** 2, axis=0))],
        ["with the payload", *np.sqrt(np.mean((samples.tau - loaded) ** 2, axis=0))],
        ["with friction estimated anew", *payload.noise],
    ]
    caption = "Root mean square of what is left, each joint [Nm or N]."
    return torque, Table(caption, ("", *samples.joint_names), rms), left, correlation


def _body_section(payload: WrenchPayload) -> Section:
    parts: list[Table | Plot] = [
        _parameter_table(payload.body, payload.std, payload.com_std),
        body_plot(payload.body, payload.covariance, origin="sensor"),
        com_plot(payload.body, payload.covariance),
    ]
    flange, covariance = payload.in_flange() if payload.knows_inertia else (None, None)
    if flange is not None and covariance is not None and not np.allclose(payload.T_flange_sensor, np.eye(4)):
        std = np.sqrt(np.diag(covariance))
        slope = np.column_stack([-flange.com, np.eye(3)]) / flange.mass
        com_std = np.sqrt(np.diag(slope @ covariance[:4, :4] @ slope.T))
        parts.append(_parameter_table(flange, std, com_std))
    return Section("The payload", [f"Estimated by {payload.method}."] if payload.method else [], parts)


def _zero_section(payload: WrenchPayload) -> Section:
    rows: list[list[str | float | None]] = []
    for i, name in enumerate(_AXES):
        unit = "N" if i < 3 else "Nm"
        rows.append([f"zero drift {name}", payload.drift[i], HALF_WIDTH * payload.drift_std[i], unit])
    for i, name in enumerate("UV"):
        value, std = np.degrees([payload.inclination[i], payload.inclination_std[i]])
        rows.append([f"tilt of the base {name}", value, HALF_WIDTH * std, "degree"])
    table = Table(
        "What the sensor shows without a load, and how the base stands.",
        ("", "value", "± (95 %)", "unit"),
        rows,
    )
    noise = Table("Root mean square of what is left [N, Nm].", _AXES, [list(payload.noise)])
    return Section("Zero drift and tilt", (), [table, noise])


def _motion_section(payload: WrenchPayload, samples: WrenchSamples) -> Section:
    predicted = payload.wrench(samples.features(payload.gravity_base)) + payload.drift
    residual = samples.wrench - predicted
    both = Plot.over_time(
        "The wrench in motion, measured and predicted from payload, drift and tilt.",
        samples.t,
        {"measured": samples.wrench, "predicted": predicted},
        _AXES,
        units=_AXIS_UNITS,
    )
    left = {"residual": residual}
    rate = 1.0 / float(np.median(np.diff(samples.t)))
    return Section(
        "Force and torque in motion",
        [f"How the samples were made: {'; '.join(samples.made_by)}."],
        [
            both,
            Plot.over_time("Measured less predicted.", samples.t, left, _AXES, units=_AXIS_UNITS),
            autocorrelation_plot(residual, rate, _AXES),
        ],
    )


def _static_section(static: StaticWeight) -> Section:
    number = np.arange(1, len(static.postures) + 1).astype(float)
    std = np.sqrt(static.postures.variance)
    panels = []
    for name, axes, unit in (("force", range(3), "N"), ("torque", range(3, 6), "Nm")):
        parts: list[Curve | Band] = [
            Curve(_AXES[i][1], number, static.residual[:, i], "dots", std[:, i]) for i in axes
        ]
        panels.append(Panel(name, "posture", f"residual [{unit}]", parts))
    plot = Plot("What each posture at rest leaves over; bars from its own scatter (95 %).", panels)
    words = [f"{len(static.postures)} postures. {sentence(static.status)}", *static.postures.notes]
    return Section("Postures at rest", words, [plot])
