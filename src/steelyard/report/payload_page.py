"""The page of a weighed payload: the answer, the payload as a picture, and why to believe it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard.arrays import Array
from steelyard.identification import DynamicModel
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.payload import Payload
from steelyard.quality import QualityReport
from steelyard.recording import Samples
from steelyard.report.body import body_plot
from steelyard.report.page import Page, Plot, Section, Table
from steelyard.report.pieces import (
    autocorrelation_plot,
    quality_doubts,
    quality_section,
    relative_std_plot,
    sentence,
    time_plot,
    with_interval,
)

_Z95 = 1.96
_UNITS = ("kg", "kg m", "kg m", "kg m", *["kg m²"] * 6)


def payload_page(
    model: DynamicModel,
    payload: Payload,
    samples: Samples,
    *,
    truth: InertialParameters | None = None,
    others: Sequence[tuple[str, Payload]] = (),
    quality: Mapping[str, QualityReport] | None = None,
    settings: Mapping[str, str] | None = None,
    extra: Sequence[Section] = (),
) -> Page:
    """The page of a payload weighed with joint torques.

    Args:
        model: of the empty arm
        payload: what was weighed
        samples: of the loaded arm, to draw
        truth: the payload where it is known, in the flange frame
        others: the same payload by other methods, by name
        quality: of each recording, by its name
        settings: every setting, version and input digest, by name
        extra: sections of the caller, as the convergence of an online estimate
    """
    sections = [
        _body_section(payload, truth),
        *([_others_section(payload, others, truth)] if others else []),
        _torque_section(model, payload, samples),
        excited_section(payload.body, payload.std),
        *extra,
        *([quality_section(quality)] if quality else []),
    ]
    doubts = [*quality_doubts(quality or {})]
    if not payload.verdict.ok:
        doubts.insert(0, sentence(payload.status))
    answer = mass_answer(payload.body, payload.std, payload.com_std, payload.status)
    title = f"What {model.robot.name} carries"
    return Page(title, answer, sections, settings or {}, doubts)


def mass_answer(body: InertialParameters, std: Array, com_std: Array, status: str) -> list[str]:
    """Mass and centre of mass with 95 % intervals, in sentences.

    Args:
        body: what was weighed
        std: standard deviation of its ten numbers, (10,) [SI]
        com_std: standard deviation of the centre of mass, (3,) [m]
        status: how good it is
    """
    c, half = 1e3 * body.com, 1e3 * _Z95 * com_std
    axes = ", ".join(f"{axis} {with_interval(c[i], half[i], 'mm')}" for i, axis in enumerate("xyz"))
    return [
        f"The payload weighs {with_interval(body.mass, _Z95 * std[0], 'kg')} (95 % interval).",
        f"Its centre of mass lies at {axes} in the frame '{body.frame}'.",
        sentence(status),
    ]


def parameter_table(
    body: InertialParameters, std: Array, com_std: Array, truth: InertialParameters | None = None
) -> Table:
    """Mass, centre of mass and inertia with 95 % intervals, beside the truth where it is known.

    Args:
        body: what was weighed
        std: standard deviation of its ten numbers, (10,) [SI]
        com_std: standard deviation of the centre of mass, (3,) [m]
        truth: in the same frame
    """
    rows: list[list[str | float | None]] = [["mass", body.mass, _Z95 * std[0], "kg"]]
    known: list[float] = [] if truth is None else [truth.mass, *(1e3 * truth.com), *truth.vector[4:]]
    for i, axis in enumerate("xyz"):
        rows.append([f"centre of mass {axis}", 1e3 * body.com[i], 1e3 * _Z95 * com_std[i], "mm"])
    for i in range(4, 10):
        rows.append([PARAMETER_NAMES[i], body.vector[i], _Z95 * std[i], "kg m²"])
    head = ["", "weighed", "± (95 %)", "unit"]
    if truth is not None:
        head.append("truth")
        rows = [[*row, value] for row, value in zip(rows, known, strict=True)]
    note = "Inertia about the origin of the frame. ∞: the data say nothing about it, do not use the number."
    return Table(f"The payload in the frame '{body.frame}'.", head, rows, note)


def excited_section(body: InertialParameters, std: Array) -> Section:
    """Which of the ten numbers the data told, each deviation against a natural size.

    Args:
        body: what was weighed
        std: standard deviation of its ten numbers, (10,) [SI]
    """
    mass = max(abs(body.mass), 1e-9)
    radius = np.sqrt(max(abs(float(np.trace(body.inertia))) / (2 * mass), 1e-6))
    size = np.array([mass, *[mass * radius] * 3, *[mass * radius**2] * 6])
    caption = (
        "Standard deviation of the ten numbers over a natural size: the mass, the mass times the radius of"
        f" gyration about the frame ({1e3 * radius:.0f} mm), and that times the radius again."
    )
    plot = relative_std_plot(caption, PARAMETER_NAMES, np.asarray(std) / size)
    rows = [[n, x, _Z95 * s, u] for n, x, s, u in zip(PARAMETER_NAMES, body.vector, std, _UNITS, strict=True)]
    table = Table("The ten numbers.", ("", "value", "± (95 %)", "unit"), rows)
    return Section("Which of the ten were excited", (), [plot, table])


def _body_section(payload: Payload, truth: InertialParameters | None) -> Section:
    parts: list[Table | Plot] = [
        parameter_table(payload.body, payload.std, payload.com_std, truth),
        body_plot(payload.body, payload.covariance, truth),
    ]
    words = []
    if not np.array_equal(payload.body.vector, payload.unconstrained.vector):
        why = payload.unconstrained.why_not_physical or "it is not that of a real body"
        words = [
            f"The plain estimate was moved to the nearest real body in the metric of its covariance: {why}."
        ]
    return Section("The payload", words, parts)


def _others_section(
    payload: Payload, others: Sequence[tuple[str, Payload]], truth: InertialParameters | None
) -> Section:
    head = ("method", "mass [kg]", "±", "x [mm]", "±", "y [mm]", "±", "z [mm]", "±", "Ixx", "Iyy", "Izz")
    rows: list[list[str | float | None]] = []
    for name, one in (("this page", payload), *others):
        com = [x for i in range(3) for x in (1e3 * one.body.com[i], 1e3 * _Z95 * one.com_std[i])]
        inertia = [float(one.body.inertia[i, i]) for i in range(3)]
        rows.append([name, one.body.mass, _Z95 * one.std[0], *com, *inertia])
    if truth is not None:
        com = [x for i in range(3) for x in (1e3 * truth.com[i], None)]
        rows.append(["truth", truth.mass, None, *com, *(float(truth.inertia[i, i]) for i in range(3))])
    table = Table("The same recording by other methods, 95 % intervals, inertia in kg m².", head, rows)
    status = [f"{name}: {sentence(one.status)}" for name, one in others]
    return Section("Other methods", status, [table])


def _torque_section(model: DynamicModel, payload: Payload, samples: Samples) -> Section:
    theta = model.estimate.value.copy()
    empty = np.asarray(model.rows(samples).Y @ theta)
    theta[: len(model.basis)] += model.basis.payload_jacobian @ payload.body.vector
    loaded = np.asarray(model.rows(samples, theta).Y @ theta)
    residual = samples.tau - loaded
    torque = time_plot(
        "Torque of the loaded arm: measured, and predicted with and without the payload.",
        samples.t,
        {"measured": samples.tau, "with payload": loaded, "empty arm": empty},
        samples.joint_names,
        units="torque [Nm]",
    )
    left = time_plot(
        "Measured less predicted torque, friction as in the empty runs. Weighing estimates friction anew, so"
        " a step at every reversal says that friction has changed, not that the payload is wrong.",
        samples.t,
        {"residual": residual},
        samples.joint_names,
        units="residual [Nm]",
    )
    head = ("", *samples.joint_names)
    rms = [
        ["without the payload", *np.sqrt(np.mean((samples.tau - empty) ** 2, axis=0))],
        ["with the payload", *np.sqrt(np.mean(residual**2, axis=0))],
        ["with friction estimated anew", *payload.noise],
    ]
    table = Table("Root mean square of what is left, each joint [Nm or N].", head, rms)
    correlation = autocorrelation_plot(residual, samples.rate_hz, samples.joint_names)
    return Section("Torque with and without the payload", (), [torque, table, left, correlation])
