"""Pages of a wrist sensor: what it carries, and what touches it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard.control.contact_force import ContactForce
from steelyard.report.body import body_plot
from steelyard.report.page import Band, Curve, Page, Panel, Plot, Section, Table
from steelyard.report.payload_page import excited_section, mass_answer, parameter_table
from steelyard.report.pieces import autocorrelation_plot, sentence, time_plot
from steelyard.wrist import StaticWeight, WrenchPayload, WrenchSamples

_Z95 = 1.96
_AXES = ("fx", "fy", "fz", "τx", "τy", "τz")
_UNITS = ("force [N]",) * 3 + ("torque [Nm]",) * 3


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
    sections = [_body_section(payload), _zero_section(payload)]
    if samples is not None:
        sections.append(_motion_section(payload, samples))
    if static is not None:
        sections.append(_static_section(static))
    if payload.knows_inertia:
        sections.append(excited_section(payload.body, payload.std))
    answer = mass_answer(payload.body, payload.std, payload.com_std, payload.status)
    doubts = [] if payload.verdict.ok else [sentence(payload.status)]
    return Page("What the wrist sensor carries", answer, sections, settings or {}, doubts)


def contact_page(
    contact: ContactForce, *, title: str = "", settings: Mapping[str, str] | None = None
) -> Page:
    """The page of an external force: what is left of a wrist sensor's signals, with 95 % bands.

    Args:
        contact: what to draw
        title: of the page
        settings: every setting, version and input digest, by name
    """
    marks = [(float(t), "zero" if k == 0 else "") for k, t in enumerate(contact.zeroed_at)]
    force, torque, std = contact.force, contact.torque, np.median(contact.std, axis=0)
    answer = [
        f"The largest external force is {force.max():.2f} N, its mean {force.mean():.2f} N;"
        f" the largest external torque is {torque.max():.3f} Nm, its mean {torque.mean():.3f} Nm.",
        f"A force of one axis is known to ± {_Z95 * std[:3].max():.2f} N, a torque to"
        f" ± {_Z95 * std[3:].max():.3f} Nm (95 %, worst axis, typical sample).",
        sentence(contact.status),
    ]
    left = time_plot(
        f"What is left when load and zero drift are taken off, in the {contact.frame} frame. Where the"
        " band holds zero, contact is not proven.",
        contact.t,
        {"external": contact.external},
        _AXES,
        units=_UNITS,
        std={"external": contact.std},
        marks=marks,
    )
    made_of = time_plot(
        "What it is made of, in the sensor frame.",
        contact.t,
        {"measured": contact.raw, "load": contact.load, "zero drift": contact.drift},
        _AXES,
        units=_UNITS,
    )
    sections = [
        Section("External force and torque", (), [_size_plot(contact), left]),
        Section("Measured, load and zero drift", (), [made_of, _drift_table(contact)]),
    ]
    return Page(title or "External force and torque", answer, sections, settings or {})


def _body_section(payload: WrenchPayload) -> Section:
    parts: list[Table | Plot] = [
        parameter_table(payload.body, payload.std, payload.com_std),
        body_plot(payload.body, payload.covariance, origin="sensor"),
    ]
    flange, covariance = payload.in_flange() if payload.knows_inertia else (None, None)
    if flange is not None and covariance is not None and not np.allclose(payload.T_flange_sensor, np.eye(4)):
        std = np.sqrt(np.diag(covariance))
        slope = np.column_stack([-flange.com, np.eye(3)]) / flange.mass
        com_std = np.sqrt(np.diag(slope @ covariance[:4, :4] @ slope.T))
        parts.append(parameter_table(flange, std, com_std))
    return Section("The payload", [f"Estimated by {payload.method}."] if payload.method else [], parts)


def _zero_section(payload: WrenchPayload) -> Section:
    rows: list[list[str | float | None]] = []
    for i, name in enumerate(_AXES):
        unit = "N" if i < 3 else "Nm"
        rows.append([f"zero drift {name}", payload.drift[i], _Z95 * payload.drift_std[i], unit])
    for i, name in enumerate("UV"):
        value, std = np.degrees([payload.inclination[i], payload.inclination_std[i]])
        rows.append([f"tilt of the base {name}", value, _Z95 * std, "degree"])
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
    both = time_plot(
        "The wrench in motion, measured and predicted from payload, drift and tilt.",
        samples.t,
        {"measured": samples.wrench, "predicted": predicted},
        _AXES,
        units=_UNITS,
    )
    left = time_plot("Measured less predicted.", samples.t, {"residual": residual}, _AXES, units=_UNITS)
    rate = 1.0 / float(np.median(np.diff(samples.t)))
    return Section(
        "Force and torque in motion",
        [f"How the samples were made: {'; '.join(samples.made_by)}."],
        [both, left, autocorrelation_plot(residual, rate, _AXES)],
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


def _size_plot(contact: ContactForce) -> Plot:
    panels = [
        Panel("force", "time [s]", "size [N]", [Curve("size", contact.t, contact.force)]),
        Panel("torque", "time [s]", "size [Nm]", [Curve("size", contact.t, contact.torque)]),
    ]
    return Plot("Size of the external force and torque.", panels)


def _drift_table(contact: ContactForce) -> Table:
    rows: list[Sequence[str | float | None]] = []
    for i, name in enumerate(_AXES):
        hourly = 3600 * contact.trend[i], 3600 * _Z95 * contact.trend_std[i]
        warm = contact.temperature_trend[i], _Z95 * contact.temperature_trend_std[i]
        rows.append([name, *hourly, *warm])
    head = ("", "an hour", "± (95 %)", "a kelvin", "± (95 %)")
    return Table("How the zero moves [N, Nm]; – where the recording cannot tell.", head, rows)
