"""Sections of the page of xu2024 on its main claims, its convergence rule, friction changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard._arrays import Array
from steelyard.drawing import Curve, Panel, Plot
from steelyard.report import Section, Table
from steelyard_papers.sharing import every
from steelyard_papers.xu2024.claims import COARSE, FINE, KINEMATICS, LAWS, Cell, Variant
from steelyard_papers.xu2024.motion_sections import Row
from steelyard_papers.xu2024.payload_sections import Answers, mass_rms
from steelyard_papers.xu2024.printed import TABLE_7, TRUTH
from steelyard_papers.xu2024.published import METHODS
from steelyard_papers.xu2024.warmth import AMBIENT, THINNING, WARMEST, Warming

Cells = Mapping[tuple[float, str, str], Cell]


def rms(errors: Array) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(errors))))


def claim_section(cells: Cells) -> Section:
    """Commanded or measured motion, power or linear law: mass by the published recursion and ours.

    Args:
        cells: by step of the encoders, kind of motion and law
    """
    rows: list[Row] = []
    for step in (FINE, COARSE):
        for name in KINEMATICS:
            if (step, name, LAWS[0]) not in cells:
                continue
            pair = [cells[step, name, law] for law in LAWS]
            n = len(pair[0].published)
            cell: list[str | float | None] = [name, f"{step:g}", *(rms(x.published) for x in pair)]
            cell += [float(np.mean(x.published)) for x in pair]
            cell += [f"{x.converged} of {n}" for x in pair]
            cell += [rms(x.ours) if len(x.ours) else None for x in pair]
            rows.append(tuple(cell))
    return Section(
        "The two central claims: commanded signals, a power law of friction (section 3.2, Fig. 7)",
        [_commanded_words(cells), _law_words(cells)],
        [
            Table(
                "The mass after 10 s: errors of the published recursion, and of ours.",
                (
                    "motion",
                    "encoder [rad]",
                    "RMS, power [%]",
                    "RMS, linear [%]",
                    "mean, power [%]",
                    "mean, linear [%]",
                    "converged, power",
                    "converged, linear",
                    "ours: RMS, power [%]",
                    "ours: RMS, linear [%]",
                ),
                rows,
                "The empty arm is identified from two runs with the same kind of motion, filtered"
                " where"
                " it is measured; all ten rows see the same noise. Commanded motion does not"
                " depend on"
                " encoders.",
            )
        ],
    )


def _commanded_words(cells: Cells) -> str:
    """The effect of commanded signals."""
    best = rms(cells[FINE, "commanded", "power"].published)
    fine, coarse = (
        rms(cells[step, "measured, not filtered", "power"].published) for step in (FINE, COARSE)
    )
    filtered = [
        rms(cells[step, "measured, filtered", "power"].published) for step in (FINE, COARSE)
    ]
    if best < min(fine, coarse):
        holds = "holds"
    else:
        holds = "does not hold"
    return (
        "Commanded signals instead of measured ones: positions that are differenced twice and not"
        " filtered,"
        f" as in Fig. 1, leave the mass wrong by {fine:.2g} % RMS with encoder steps of {FINE:g}"
        " rad and by"
        f" {coarse:.2g} % with {COARSE:g} rad; commanded ones by {best:.2g} %. The claim {holds}."
        " What the"
        " paper does not compare: a zero-phase filter on the measured positions, which online"
        " costs a"
        f" delay, gives {filtered[0]:.2g} and {filtered[1]:.2g} %."
    )


def _law_words(cells: Cells) -> str:
    """The effect of the power law."""
    pairs = {name: [rms(cells[FINE, name, law].published) for law in LAWS] for name in KINEMATICS}
    better = [name for name, (power, linear) in pairs.items() if power < linear]
    own = [rms(cells[FINE, "commanded", law].ours) for law in LAWS]
    shift = np.mean(
        cells[FINE, "commanded", "linear"].published - cells[FINE, "commanded", "power"].published
    )
    return (
        "A power law of friction instead of the linear one: with the recursion the RMS error is"
        " smaller for"
        f" {' and '.join(better) or 'no'} motion. The law moves every answer by {shift:+.2g} %,"
        " less than the"
        " scatter of the recursion from run to run, which hides it. Our estimate, which scatters"
        " less,"
        f" shows what the law is worth: {own[0]:.2g} % with the power law, {own[1]:.2g} % with the"
        " linear"
        " one."
    )


def rule_table(variants: Sequence[Variant]) -> Table:
    """Why the rule of convergence is not met in MuJoCo.

    Args:
        variants: of the recursion on the same runs
    """
    return Table(
        "The paper's rule of convergence in MuJoCo, commanded motion: why it fails, and which"
        " changes help.",
        (
            "recursion",
            "converged within 10 s",
            "after, median [s]",
            "mass when it stops, RMS [%]",
            "mass after 10 s, RMS [%]",
            "a joint turned round at the last break",
        ),
        [variant.row for variant in variants],
        "The rule wants more than 300 changes below 0.005 in a row, 2.4 s. Where a joint turns"
        " round,"
        " friction is anything up to its limit; one such torque is off by 10 to 20 Nm, moves a"
        " watched"
        " parameter by more than 0.005, and the count begins again: the last reversal of the motion"
        " decides. Another P, or torques without noise, do not help; leaving out torques of joints"
        " below"
        " 0.01 rad/s, the default of steelyard, does.",
    )


def harsh_section(answers: Mapping[str, Answers], warm: Warming) -> Section:
    """Friction that changes between the runs: the order of the methods, and Fig. 8.

    Args:
        answers: by world: for each seed the ten numbers by method
        warm: temperatures of ten runs
    """
    printed = [100 * abs((TABLE_7["m"][k] or 0) / TRUTH.mass - 1) for k in (1, 2, 3)]
    rows: list[Row] = [("paper, one run", *printed, None)]
    rows += [
        (name, *(mass_rms(runs, method) for method in METHODS)) for name, runs in answers.items()
    ]
    first = next(iter(answers.values()))
    few = every(len(warm.t), 300)
    panel = Panel(
        "temperature of each drive",
        "time [s]",
        "temperature [°C]",
        [Curve(f"joint {j + 1}", warm.t[few], warm.temperature[few, j]) for j in range(6)],
    )
    thinner = 100 * (1 - np.exp(-THINNING * (WARMEST - AMBIENT)))
    return Section(
        "Friction that changes between the runs (Table VII in harsher worlds, Fig. 8)",
        [
            _order_words(answers),
            f"Fig. 8 with a thermal model of friction: ten runs warm the drives from {AMBIENT} to"
            f" {WARMEST} °C; viscous friction falls by {thinner:.0f} % in the warmest one. The heat"
            " that a drive keeps is chosen so that the warmest one ends where the paper's did, so"
            " the order of the joints is a prediction, the range is not.",
        ],
        [
            Table(
                f"RMS error of the mass [%] over {len(first)} seeds.",
                ("the loaded run against the empty ones", *METHODS),
                rows,
            ),
            Plot("Fig. 8: ten runs of Table IV with pauses of 10 s.", [panel]),
        ],
    )


def _order_words(answers: Mapping[str, Answers]) -> str:
    """How the order of the paper's methods depends on friction."""
    first, *_, last = answers.values()

    def bias(runs: Answers, method: str) -> float:
        return float(100 * np.mean([run[method][0] / TRUTH.mass - 1 for run in runs]))

    order = sorted(METHODS[:3], key=lambda method: mass_rms(last, method))
    return (
        "Algorithm 1 subtracts the torques of the empty run and takes friction as unchanged: its"
        " mean error"
        f" goes from {bias(first, 'Algorithm 1'):.2g} to {bias(last, 'Algorithm 1'):.2g} % as"
        " friction"
        " changes. The proposed method estimates friction anew: its mean error goes from"
        f" {bias(first, 'proposed'):.2g} to {bias(last, 'proposed'):.2g} %, and what is left is"
        " its scatter"
        " from run to run. Algorithm 2 feels static friction in every posture. In the harshest"
        " world the"
        f" order by RMS error, best first, is {', '.join(order)}; the paper, with one run each, has"
        " proposed, Algorithm 2, Algorithm 1."
    )
