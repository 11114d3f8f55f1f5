"""The sections of the page of xu2024 on structure, signals and friction."""

from __future__ import annotations

import numpy as np

from steelyard._arrays import Array
from steelyard.drawing import Curve, Panel, Plot
from steelyard.identification import DynamicModel
from steelyard.inertia import PARAMETER_NAMES
from steelyard.recording import Recording, Samples
from steelyard.report import Section, Table
from steelyard.robot._symbolic import SymbolicBasis
from steelyard.signals import Preparation, prepare
from steelyard_papers.sharing import every
from steelyard_papers.xu2024.arm import ur10
from steelyard_papers.xu2024.printed import (
    ALPHA,
    EPSILON,
    JOINT_2,
    PI,
    TABLE_2,
    TABLE_6,
    TABLE_8,
)
from steelyard_papers.xu2024.simulated import FrictionFit, World, noisy

Row = tuple[str | float | None, ...]

HEAD = ("what", "unit", "paper", "paper's method here", "ours", "truth")
_ENCODER_STEP = 1e-4  # [rad]
_TRUE = {"linear": "linear fit", "power": "power law"}


def structure_section() -> Section:
    """The appendix: 58 base parameters and the 22 that a payload changes."""
    import sympy as sp

    basis = SymbolicBasis.of(ur10())
    masses = {f"M{j}": sp.Add(*sp.symbols(f"m{j}:7")) for j in (3, 4, 5)}
    printed = [sp.sympify(line).subs(masses) for line in PI]
    pairs = zip(basis.expressions, printed, strict=True)
    agree = [sp.expand(ours - theirs) == 0 for ours, theirs in pairs]
    wrong = [i + 1 for i, same in enumerate(agree) if not same]
    columns = basis.matrix()[:, 50:60]
    names = [sp.Symbol(name) for name in PARAMETER_NAMES]
    changes = [sum(columns[i, k] * names[k] for k in range(10)) for i in range(len(basis))]
    rows: list[Row] = []
    for i, name in enumerate(basis.names[:36]):
        ours = changes[i]
        theirs = sp.sympify(EPSILON.get(i + 1, "0"))
        if agree[i] and sp.expand(ours - theirs) == 0:
            same = "yes"
        else:
            same = f"no: printed as {PI[i]}"
        if theirs != 0:
            change = str(theirs).replace("**", "^").replace("*", " ")
        else:
            change = ""
        rows.append((f"π{i + 1}", name, change, same, TABLE_6[i]))
    changed = [i + 1 for i, x in enumerate(changes) if x != 0]
    if changed == list(EPSILON):
        as_printed = "as printed"
    else:
        as_printed = "not those printed"
    return Section(
        "Base parameters and what a payload changes (appendix, eq. (6))",
        [
            f"From Table III alone: {len(basis)} base parameters (paper: 58), of which"
            f" {sum(agree)} are the"
            f" printed expressions, letter by letter; π{wrong[0] if len(wrong) == 1 else wrong} is"
            " printed as"
            " Iyy6 where its own change ε and the mechanics say Ixy6. A payload changes the rows"
            f" {', '.join(map(str, changed))}: {as_printed}. The remaining rows, 37 to 58, are"
            " rotor inertia,"
            " Fc, Fv and B of the joints.",
        ],
        [
            Table(
                "The 36 base parameters of the links, in our symbols.",
                (
                    "row",
                    "base parameter",
                    "change by a payload",
                    "agrees with the print",
                    "Table VI",
                ),
                rows,
                "mx is mass times centre of mass; numbers of Table VI in SI units. Table VI holds"
                " negative rotor inertias (rows 38 to 40) and moments that no body has: it predicts"
                " torques, but no arm can be built from it.",
            )
        ],
    )


def signal_section(world: World, model: DynamicModel) -> Section:
    """Fig. 1, Fig. 2 and Table II: accelerations, and torques of another motion.

    Args:
        world: and its runs
        model: of the empty arm
    """
    recording = world.empty.recording
    truth = world.empty.truth
    step = float(recording.t[1])
    actual = np.diff(recording.q, 2, axis=0) / step**2
    assert recording.a_commanded is not None  # noqa: S101 - simulated
    off = actual - recording.a_commanded[1:-1]
    rough = np.diff(np.round(truth.q / _ENCODER_STEP) * _ENCODER_STEP, 2, axis=0) / step**2
    rough_off = rough - recording.a_commanded[1:-1]
    floor = truth.a[1:-1] - recording.a_commanded[1:-1]
    noise = TABLE_8["without", "power"]
    ratio = TABLE_2 / noise
    samples = prepare(noisy(world.other, noise, 5), Preparation(kinematics="commanded"))
    residual = model.validate(samples).rms
    rows: list[Row] = [
        (
            f"joint {j + 1}",
            TABLE_2[j],
            residual[j],
            noise[j],
            *(_rms(x[:, j]) for x in (rough_off, off, floor)),
        )
        for j in range(6)
    ]
    fig_1 = _accelerations(recording, rough[:, 0], actual[:, 0])
    return Section(
        "Commanded signals and predicted torques (Fig. 1, Fig. 2, Table II)",
        [
            "A simulated UR10 follows Table IV; encoders have steps of 1e-5 rad, in one curve"
            " 1e-4. Its"
            " model is identified from three empty runs on the commanded motion, as the paper"
            " does, and"
            f" predicts another motion. The paper's residuals of Table II are {ratio.min():.1f} to"
            f" {ratio.max():.1f} times those that it prints in Table VIII for the same law; it"
            " does not say"
            " which of the two were filtered.",
        ],
        [
            Table(
                "Torque residuals of another motion, and errors of accelerations (RMS).",
                (
                    "joint",
                    "paper, Table II [Nm]",
                    "here [Nm]",
                    "noise here [Nm]",
                    "differences, 1e-4 rad [rad/s²]",
                    "differences, 1e-5 rad [rad/s²]",
                    "true [rad/s²]",
                ),
                rows,
                "Accelerations less commanded ones: positions differenced twice, with encoder"
                " steps of 1e-4"
                " and 1e-5 rad, and the true ones. With the finer steps differences show how the"
                " arm really"
                " moves; with the coarser ones they are noise, as in the paper's Fig. 1. Commanded"
                " signals"
                " are smooth, not exact, which is what lifts the residuals here above the noise.",
            ),
            Plot("Fig. 1 and Fig. 2.", [fig_1, *_predicted(model, samples)]),
        ],
    )


def _accelerations(recording: Recording, rough: Array, actual: Array) -> Panel:
    """Fig. 1: accelerations of joint 1 from coarse and fine positions, and as commanded."""
    assert recording.a_commanded is not None  # noqa: S101 - simulated
    return Panel(
        "Fig. 1: acceleration of joint 1",
        "time [s]",
        "acceleration [rad/s²]",
        [
            Curve(
                "differenced twice, encoder steps of 1e-4 rad",
                recording.t[1:-1],
                rough,
                colour="#d5dae0",
            ),
            Curve("differenced twice, 1e-5 rad", recording.t[1:-1], actual, colour="#e08020"),
            Curve("commanded", recording.t, recording.a_commanded[:, 0]),
        ],
    )


def _predicted(model: DynamicModel, samples: Samples) -> list[Panel]:
    few = every(len(samples.t), 400)
    predicted = model.rows(samples).Y @ model.estimate.value
    return [
        Panel(
            f"Fig. 2: torque of joint {j + 1}",
            "time [s]",
            "torque [Nm]",
            [
                Curve("measured", samples.t[few], samples.tau[few, j]),
                Curve("predicted", samples.t[few], predicted[few, j]),
            ],
        )
        for j in (0, 1, 2)
    ]


def _rms(x: Array) -> float:
    return float(np.sqrt(np.mean(x**2)))


def friction_section(fits: dict[tuple[str, str], FrictionFit]) -> Section:
    """Fig. 7, Table VIII and Table IX.

    Args:
        fits: by payload and law
    """
    rms: list[Row] = []
    for payload in ("without", "with"):
        for law in ("linear", "power"):
            printed = TABLE_8[payload, law]
            here = fits[payload, law].rmse
            rms.append((payload, law, "paper", *printed))
            rms.append((payload, law, "here", *here))
    alpha: list[Row] = []
    for payload in ("without", "with"):
        fit = fits[payload, "power"].model
        found = [
            f"{x:.3f} ± {x * s:.2g}"
            for x, s in zip(fit.law.exponent, fit.shape_std[0], strict=True)
        ]
        alpha += [(payload, "paper = truth here", *ALPHA[payload]), (payload, "found here", *found)]
    joint_2: list[Row] = [
        (f"{payload} payload, {law}", whose, *values)
        for (payload, law), printed in JOINT_2.items()
        for whose, values in (("paper", printed), ("here", fits[payload, law].joint_2()))
    ]
    heads = tuple(f"joint {j + 1}" for j in range(6))
    return Section(
        "Friction laws (Fig. 7, Table VIII, Table IX)",
        [
            "The simulated arm has the friction that the paper found (Table VI, IX and the text of"
            " Fig."
            " 7), and the noise of the rows 'nonlinear' of Table VIII. So these rows and the"
            " exponents"
            " are what was put in; what is tested is whether they come out again, and whether a"
            " linear"
            " law then fits as badly as the paper says: its errors are those of the paper within"
            f" {100 * linear_misfit(fits):.0f} % in every joint. That is in favour of the power"
            " law on the"
            " paper's arm.",
            "The linear coefficients of joint 2 that the paper prints are not reproduced (here a"
            " lower Fc and a higher Fv). The motion that they come from is not printed.",
        ],
        [
            Table(
                "RMSE of friction [Nm], where torques count.",
                ("payload", "law", "whose", *heads),
                rms,
            ),
            Table("Exponents α (Table IX).", ("payload", "whose", *heads), alpha),
            Table(
                "Joint 2 (Fig. 7): Fc [Nm], Fv, B [Nm].",
                ("case", "whose", "Fc", "Fv", "B"),
                joint_2,
                "Fc and Fv of a flat power law are strongly correlated, and a linear law's depend"
                " on the"
                " speeds that count: here those above 0.01 rad/s.",
            ),
            Plot(
                "Fig. 7: friction of joint 2 over its speed.",
                [_friction_panel(fits, payload) for payload in ("without", "with")],
            ),
        ],
    )


def linear_misfit(fits: dict[tuple[str, str], FrictionFit]) -> float:
    """The largest relative difference of the linear law's errors from those that the paper prints.

    Args:
        fits: by payload and law
    """
    ratios = [
        fits[payload, "linear"].rmse / TABLE_8[payload, "linear"] for payload in ("without", "with")
    ]
    return float(np.abs(np.array(ratios) - 1).max())


def _friction_panel(fits: dict[tuple[str, str], FrictionFit], payload: str) -> Panel:
    power = fits[payload, "power"]
    few = every(len(power.v), 500)
    order = np.argsort(power.v[:, 1])
    curves = [Curve("measured", power.v[few, 1], power.measured[few, 1], style="dots")]
    for law, words in _TRUE.items():
        fit = fits[payload, law]
        curves.append(Curve(words, power.v[order, 1], fit.modelled[order, 1]))
    Fc, Fv, B = JOINT_2[payload, "power"]
    v = np.linspace(power.v[:, 1].min(), power.v[:, 1].max(), 401)
    true = (Fc + Fv * np.abs(v) ** ALPHA[payload][1]) * np.sign(v) + B
    curves.append(Curve("truth", v, true, style="dashed"))
    return Panel(f"joint 2, {payload} payload", "speed [rad/s]", "friction [Nm]", curves)
