"""The page of an identified arm: how well it predicts, what is left over, what the motion told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.arrays import Array
from steelyard.identification import DynamicModel, Validation
from steelyard.quality import QualityReport
from steelyard.recording import Samples
from steelyard.report.page import Band, Curve, Page, Panel, Plot, Section, Table
from steelyard.report.pieces import (
    autocorrelation_plot,
    quality_doubts,
    quality_section,
    relative_std_plot,
    sentence,
    time_plot,
)

_Z95 = 1.96


@dataclass(frozen=True, eq=False)
class Shown:
    """The recording that a page draws.

    Attributes:
        samples: of it
        name: of it, in words
        fitted: whether the model was fitted to it; best if not
    """

    samples: Samples
    name: str
    fitted: bool


def identification_page(
    model: DynamicModel,
    shown: Shown,
    *,
    checks: Mapping[str, Validation] | None = None,
    quality: Mapping[str, QualityReport] | None = None,
    notes: Sequence[str] = (),
    doubts: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> Page:
    """The page of an identified arm.

    Args:
        model: of the arm
        shown: the recording to draw
        checks: how well each recording is predicted, by its name
        quality: of each recording, by its name
        notes: more that the answer should say, as where the drive gains come from
        doubts: what warns a reader
        settings: every setting, version and input digest, by name
    """
    samples, quality = shown.samples, quality or {}
    predicted = np.asarray(model.rows(samples).Y @ model.estimate.value)
    sections = [
        _torque_section(model, shown, predicted, checks or {}),
        _residual_section(model, samples, predicted),
        _friction_section(model, samples),
        _excited_section(model),
    ]
    if quality:
        sections.append(quality_section(quality))
    warnings = [*quality_doubts(quality), *map(sentence, doubts)]
    if not model.verdict.ok:
        warnings.insert(0, sentence(model.estimate.status))
    if shown.fitted:
        warnings.append(
            "No recording was held back: the residuals below are those of the fit, and flatter the model."
        )
    answer = _answer(model, shown)
    title = f"{model.robot.name}: the identified arm"
    return Page(title, [*answer, *notes], sections, settings or {}, warnings)


def _answer(model: DynamicModel, shown: Shown) -> list[str]:
    estimate = model.estimate
    relative = 100 * model.validate(shown.samples).relative
    p, told = len(estimate.names), len(estimate.names) - len(estimate.weak())
    worst = shown.samples.joint_names[int(relative.argmax())]
    role = "which it was fitted to" if shown.fitted else "which it has not seen"
    first = (
        f"The model predicts the torques of {shown.name}, {role}, with a residual of {relative.mean():.1f} %"
        f" (mean over the joints; worst {worst}, {relative.max():.1f} %)."
    )
    return [
        first,
        sentence(estimate.status),
        f"{told} of {p} parameters have a standard deviation below 30 % of their size."
        f" Friction law: {model.law.name}.",
    ]


def _torque_section(
    model: DynamicModel, shown: Shown, predicted: Array, checks: Mapping[str, Validation]
) -> Section:
    samples = shown.samples
    v = model.validate(samples)
    titles = [
        f"{name}: {100 * r:.1f} % residual" for name, r in zip(samples.joint_names, v.relative, strict=True)
    ]
    plot = time_plot(
        f"Torque of each joint in {shown.name}, measured and predicted.",
        samples.t,
        {"measured": samples.tau, "predicted": predicted},
        titles,
        units="torque [Nm]",
    )
    parts: list[Table | Plot] = [plot]
    if checks:
        head = ("recording", *samples.joint_names, "mean")
        rows = [[name, *(100 * c.relative), 100 * c.relative.mean()] for name, c in checks.items()]
        parts.append(Table("Norm of the residual over that of the torque, each joint [%].", head, rows))
        rms = [[name, *c.rms] for name, c in checks.items()]
        parts.append(Table("Root mean square of the residual, each joint [Nm or N].", head[:-1], rms))
    return Section("Torque", (), parts)


def _residual_section(model: DynamicModel, samples: Samples, predicted: Array) -> Section:
    residual = samples.tau - predicted
    plot = time_plot(
        "Measured less predicted torque. A good model leaves noise; bursts at reversals are friction.",
        samples.t,
        {"residual": residual},
        samples.joint_names,
        units="residual [Nm]",
    )
    pairs = zip(samples.joint_names, model.estimate.inflation, strict=True)
    wider = ", ".join(f"{name} {x:.2g}" for name, x in pairs)
    words = f"Factor by which the correlation in time changes the variance of slow parameters: {wider}."
    return Section(
        "Residuals", (words,), [plot, autocorrelation_plot(residual, samples.rate_hz, samples.joint_names)]
    )


def _friction_section(model: DynamicModel, samples: Samples) -> Section:
    measured, modelled = model.friction_torque(samples)
    panels = []
    for j, name in enumerate(samples.joint_names):
        v = samples.v[:, j]
        parts: list[Curve | Band] = [
            Curve("measured (torque less links and rotors)", v, measured[:, j], "dots"),
            Curve("modelled", v, modelled[:, j], "dots", colour="#2266aa"),
        ]
        panels.append(Panel(name, "speed [rad/s]", "friction [Nm]", parts))
    plot = Plot(f"Friction and offset against speed; law '{model.law.name}'.", panels)
    parts_: list[Table | Plot] = [plot, _friction_table(model)]
    if model.choice is not None:
        parts_.append(_choice_plot(model))
    return Section("Friction", (), parts_)


def _friction_table(model: DynamicModel) -> Table:
    at = {name: i for i, name in enumerate(model.estimate.names)}
    kinds = [kind for kind in ("Fc", "Fv", "Fs", "Fl", "B") if f"{kind}1" in at]
    head = ["joint", *(word for kind in kinds for word in (kind, "±")), "exponent", "noise [Nm]"]
    rows: list[list[str | float | None]] = []
    for j, joint in enumerate(model.robot.joint_names):
        row: list[str | float | None] = [joint]
        for kind in kinds:
            i = at[f"{kind}{j + 1}"]
            row += [model.estimate.value[i], _Z95 * model.estimate.std[i]]
        rows.append([*row, model.law.exponent[j], model.estimate.noise[j]])
    return Table(
        "Friction of each joint with 95 % intervals [Nm, Nm s/rad].",
        head,
        rows,
        "Fc Coulomb, Fv viscous, Fs Stribeck, Fl share of the carried torque, B offset.",
    )


def _choice_plot(model: DynamicModel) -> Plot:
    choice = model.choice
    scores = {} if choice is None else choice.scores
    names = list(scores)
    values = 100 * np.array([scores[name] for name in names])
    panel = Panel(
        "", "friction law", "residual of what was left out [%]", [Curve("score", names, values, "bars")]
    )
    folds = "" if choice is None else choice.folds
    return Plot(
        f"How the law was chosen: each was fitted without a part and predicted it ({folds}).", [panel], 1
    )


def _excited_section(model: DynamicModel) -> Section:
    estimate = model.estimate
    caption = (
        "Standard deviation of each parameter over its size. What is above 30 % the motion hardly told;"
        " it matters little for torque, and should not be read as a number."
    )
    plot = relative_std_plot(caption, estimate.names, estimate.relative_std)
    order = zip(estimate.names, estimate.value, estimate.std, strict=True)
    rows = [[name, value, _Z95 * std, 100 * std / max(abs(value), 1e-300)] for name, value, std in order]
    head = ("parameter", "value [SI]", "± (95 %)", "std / size [%]")
    note = "A name with r is a group of several parameters, named after the first."
    words = (f"Condition number of the weighted regression: {estimate.condition:.3g}.",)
    return Section("Which parameters were excited", words, [plot, Table("All parameters.", head, rows, note)])
