"""The page of an identified arm: predictions, residuals, and determined parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard._units import NORMAL_95
from steelyard.drawing import Band, Curve, Panel, Plot
from steelyard.identification import DynamicModel
from steelyard.recording import Samples
from steelyard.report._page import Page, Section, Table
from steelyard.report._pieces import judged, relative_std_plot, torque_plots
from steelyard.robot._parameters import ParameterKind

_FRICTION_KINDS = (
    ParameterKind.COULOMB,
    ParameterKind.VISCOUS,
    ParameterKind.STRIBECK,
    ParameterKind.ASYMMETRY,
    ParameterKind.LOAD_SHARE,
    ParameterKind.OFFSET,
)


def identification_page(
    model: DynamicModel,
    fitted: Mapping[str, Samples],
    predicted: Mapping[str, Samples] | None = None,
    *,
    notes: Sequence[str] = (),
) -> Page:
    """The page of an identified arm, with plots of a recording that was held back if possible.

    Args:
        model: the identified arm
        fitted: samples of the recordings that it was fitted to, by name
        predicted: samples of other recordings, by name; the first one is drawn
        notes: further sentences for the answer, for example the source of the drive gains
    """
    unseen = predicted or {}
    name, samples = next(iter((unseen or fitted).items()))
    if unseen:
        role = "which was held back"
    else:
        role = "which it was fitted to"
    torque, residual, correlation = _torque_plots(model, name, samples)
    friction = _friction_plot(model, samples)
    sections = [
        Section("Torque", (), [torque, *_check_tables(model, fitted, unseen)]),
        Section("Residuals", (_inflation(model, samples),), [residual, correlation]),
        Section("Friction", (), [friction, _friction_table(model), *_choice_plot(model)]),
        _excited_section(model),
    ]
    good, warnings = judged(model.verdict)
    if not unseen:
        warnings.append(
            "No recording was held back: the residuals below are those of the fit and are too"
            " optimistic."
        )
    answer = [*_answer(model, f"{name}, {role},", samples), *good, *notes]
    title = f"{model.robot.name}: the identified arm"
    return Page(title, answer, sections, doubts=warnings, picture=[torque, residual, friction])


def _answer(model: DynamicModel, recording: str, samples: Samples) -> list[str]:
    estimate = model.estimate
    relative = 100 * model.validate(samples).relative
    p = len(estimate.names)
    strong = len(estimate.names) - len(estimate.weak())
    worst = samples.joint_names[int(relative.argmax())]
    return [
        f"The model predicts the torques of {recording} with a residual of {relative.mean():.1f} %"
        f" (mean over the joints; worst {worst}, {relative.max():.1f} %).",
        f"{strong} of {p} parameters have a standard deviation below 30 % of their size."
        f" Friction law: {model.law.name}.",
    ]


def _torque_plots(model: DynamicModel, name: str, samples: Samples) -> list[Plot]:
    pairs = zip(samples.joint_names, model.validate(samples).relative, strict=True)
    return torque_plots(
        model,
        samples,
        {"predicted": np.asarray(model.rows(samples).Y @ model.estimate.value)},
        titles=[f"{joint}: {100 * share:.1f} % residual" for joint, share in pairs],
        caption=f"Torque of each joint in {name}, measured and predicted.",
        residual_caption="Measured less predicted torque. The residual of a good model is noise;"
        " bursts at reversals are friction.",
    )


def _check_tables(
    model: DynamicModel, fitted: Mapping[str, Samples], predicted: Mapping[str, Samples]
) -> list[Table]:
    checks = {f"{name} (fitted)": model.validate(part) for name, part in fitted.items()}
    checks |= {f"{name} (predicted)": model.validate(part) for name, part in predicted.items()}
    head = ("recording", *model.robot.joint_names)
    shares = [[name, *(100 * c.relative), 100 * c.relative.mean()] for name, c in checks.items()]
    rms = [[name, *c.rms] for name, c in checks.items()]
    return [
        Table(
            "Norm of the residual over that of the torque, each joint [%].", (*head, "mean"), shares
        ),
        Table("Root mean square of the residual, each joint [Nm or N].", head, rms),
    ]


def _inflation(model: DynamicModel, samples: Samples) -> str:
    pairs = zip(samples.joint_names, model.estimate.inflation, strict=True)
    wider = ", ".join(f"{name} {x:.2g}" for name, x in pairs)
    return (
        f"Factor by which correlation in time increases the variance of slow parameters: {wider}."
    )


def _friction_plot(model: DynamicModel, samples: Samples) -> Plot:
    measured, modelled = model.friction_torque(samples)
    panels = []
    for j, name in enumerate(samples.joint_names):
        v = samples.v[:, j]
        parts: list[Curve | Band] = [
            Curve("measured (torque less links and rotors)", v, measured[:, j], "dots"),
            Curve("modelled", v, modelled[:, j], "dots", colour="#2266aa"),
        ]
        low, high = np.percentile(measured[:, j], [0.5, 99.5])
        margin = 0.25 * (high - low) + 1e-9
        inside = (float(low - margin), float(high + margin))
        panels.append(Panel(name, "speed [rad/s]", "friction [Nm]", parts, y_range=inside))
    return Plot(f"Friction and offset against speed; law '{model.law.name}'.", panels)


def _friction_table(model: DynamicModel) -> Table:
    parameters = model.estimate.parameters
    kinds = [kind for kind in _FRICTION_KINDS if parameters.of_kind(kind).any()]
    n = model.robot.n
    values = parameters.of_kinds_by_joint(model.estimate.value, kinds, n)
    half_widths = parameters.of_kinds_by_joint(NORMAL_95 * model.estimate.std, kinds, n)
    columns = (word for kind in kinds for word in (f"{kind.symbol} [{kind.unit}]", "±"))
    head = ["joint", *columns, "exponent α", "noise [Nm]"]
    rows: list[list[str | float | None]] = []
    for j, joint in enumerate(model.robot.joint_names):
        row: list[str | float | None] = [joint]
        for value, half_width in zip(values[:, j], half_widths[:, j], strict=True):
            row += [value, half_width]
        rows.append([*row, model.law.exponent[j], model.estimate.noise[j]])
    return Table(
        "Friction of each joint with 95 % intervals; N and m for Nm and rad where a joint slides.",
        head,
        rows,
        "Fc Coulomb, Fv viscous, Fs Stribeck, Fa difference by direction, Fl share of the carried"
        " torque, B offset.",
    )


def _choice_plot(model: DynamicModel) -> list[Plot]:
    """The choice of the friction law; empty if the law was given."""
    if model.choice is None:
        return []
    names = list(model.choice.scores)
    scores = Curve(
        "score", names, 100 * np.array([model.choice.scores[name] for name in names]), "bars"
    )
    panel = Panel("", "friction law", "residual of the part left out [%]", [scores])
    folds = model.choice.folds
    caption = (
        f"Choice of the law: each was fitted without a part and predicted that part ({folds})."
    )
    return [Plot(caption, [panel], 1)]


def _excited_section(model: DynamicModel) -> Section:
    estimate = model.estimate
    caption = (
        "Standard deviation of each parameter over its size. The motion hardly determined those"
        " above 30 %; they affect torques little, and their values should not be used."
    )
    plot = relative_std_plot(caption, estimate.names, estimate.relative_std)
    order = zip(estimate.names, estimate.value, estimate.std, strict=True)
    rows = [
        [name, value, NORMAL_95 * std, 100 * std / max(abs(value), 1e-300)]
        for name, value, std in order
    ]
    head = ("parameter", "value [SI]", "± (95 %)", "std / size [%]")
    note = "A name with r is a group of several parameters, named after the first."
    words = (f"Condition number of the weighted regression: {estimate.condition:.3g}.",)
    return Section(
        "Which parameters were excited", words, [plot, Table("All parameters.", head, rows, note)]
    )
