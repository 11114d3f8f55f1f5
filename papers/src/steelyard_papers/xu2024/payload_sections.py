"""The sections of the page of xu2024 on the payload: convergence, Table VII; what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.drawing import Band, Curve, Panel, Plot
from steelyard.report import Section, Table
from steelyard_papers.xu2024.motion_sections import Row
from steelyard_papers.xu2024.printed import (
    CONVERGED_S,
    TABLE_6,
    TABLE_7,
    TRUTH,
    in_paper_words,
)
from steelyard_papers.xu2024.published import METHODS, TIMES_S, Case, Curves
from steelyard_papers.xu2024.recursion import Recursion
from steelyard_papers.xu2024.simulated import ENCODER_STEP

Answers = Sequence[Mapping[str, Array]]

_PLOTTED = ("Ixy6", "Ixz6", "Iyz6", "Izz6", "mx6", "my6")
_PAPER_ERROR = 0.04  # [%]


@dataclass(frozen=True, eq=False)
class Online:
    """Convergence over many runs, and one of them.

    Attributes:
        curves: of one run
        ours: errors of our mass at TIMES_S, (seeds, 4) [kg]
        recursion: of the paper, all runs
    """

    curves: Curves
    ours: Array
    recursion: Recursion

    @property
    def published(self) -> Array:
        """Errors of the published method's mass when it converges, (seeds,) [kg]."""
        return np.asarray(self.recursion.payloads()[:, 0] - TRUTH.mass)

    @property
    def times_s(self) -> Array:
        """When that is, (seeds,) [s]; the end of the run where the rule is not met."""
        return np.asarray(np.minimum(self.recursion.converged_s, self.curves.t[-1]))

    @property
    def published_rms(self) -> float:
        """RMS error of the published method's mass, [%]."""
        return float(100 * np.sqrt(np.mean(self.published**2)) / TRUTH.mass)

    @property
    def ours_rms(self) -> Array:
        """RMS error of our mass at TIMES_S, (4,) [%]."""
        return np.asarray(100 * np.sqrt(np.mean(self.ours**2, axis=0)) / TRUTH.mass)

    @property
    def luck(self) -> float:
        """How often a run of the published method errs by no more than the paper's run did, [%]."""
        percent = 100 * self.published / TRUTH.mass
        far = (np.array([-_PAPER_ERROR, _PAPER_ERROR]) - percent.mean()) / percent.std()
        return float(100 * np.diff(ndtr(far))[0])


def online_section(online: Online, case: Case, *tables: Table) -> Section:
    """Fig. 6: convergence of the recursion and of ours.

    Args:
        online: over many runs
        case: of the paper, for the bound
        tables: of the rule of convergence
    """
    curves = online.curves
    return Section(
        "Convergence while the arm moves (eq. (7)-(16), Fig. 6)",
        [
            "Torques are Y π with the numbers of Table IV, VI and VII and the noise of Table VIII"
            " (nonlinear, without payload): all that the paper assumes is true here. The recursion"
            " is the published one (P = 10 I, ξ = 100, 13 of the 22 rows, all alike) and stops by"
            " its own rule; ours estimates payload and friction only, weighted, with the arm as a"
            " prior.",
            f"The paper reports one run with a mass error of {_PAPER_ERROR} %. Its method, with"
            f" the noise that it reports, errs by {online.published_rms:.2g} % (RMS over"
            f" {len(online.published)} runs); one run in {100 / online.luck:.0f} is as good as the"
            " one reported.",
        ],
        [
            _accuracy_table(online, case),
            *tables,
            Plot(
                "The mass in one run; the band is the bound around the truth, 95 %.",
                [_mass_panel(curves, 0.5), _mass_panel(curves, 0.03)],
            ),
            Plot(
                "Fig. 6: the base parameters that the paper watches.",
                _watched_panels(curves, case),
                columns=3,
            ),
        ],
    )


def _accuracy_table(online: Online, case: Case) -> Table:
    """Time and accuracy of the recursion and of ours, beside the bound."""
    percent = 100 / TRUTH.mass
    rows: list[Row] = [
        ("converged after, median", "s", CONVERGED_S, float(np.median(online.times_s)), None, None),
        ("mass when converged, RMS error", "%", _PAPER_ERROR, online.published_rms, None, None),
    ]
    for error, t in zip(online.ours_rms, TIMES_S, strict=True):
        bound = percent * case.bound(t)[0]
        rows.append((f"mass after {t:g} s, RMS error", "%", None, None, error, bound))
    return Table(
        "Time and accuracy.",
        ("what", "unit", "paper (one run)", "paper's method here", "ours", "Cramér-Rao bound"),
        rows,
    )


def _watched_panels(curves: Curves, case: Case) -> list[Panel]:
    """The base parameters 31 to 36 over time, beside their true values."""
    true = TABLE_6[30:36] + (case.J @ TRUTH.vector)[30:36]
    if np.isfinite(curves.converged_s):
        marks = [(curves.converged_s, "converged")]
    else:
        marks = []
    return [
        Panel(
            f"π{31 + i} = {name}",
            "time [s]",
            "kg m²" if i < 4 else "kg m",
            [
                Curve("recursion of the paper", curves.t, curves.watched[:, i]),
                Curve("truth", curves.t[[0, -1]], np.full(2, true[i]), style="dashed"),
            ],
            marks=marks,
        )
        for i, name in enumerate(_PLOTTED)
    ]


def share_table(by_share: Mapping[float, Recursion]) -> Table:
    """When the recursion converges, over the share of Table VIII that is white noise.

    Args:
        by_share: the recursion of each seed, by share
    """
    rows: list[Row] = []
    for share, found in by_share.items():
        times = found.converged_s
        met = times[np.isfinite(times)]
        spread = float(met.std(ddof=1)) if len(met) > 1 else None
        mean = float(met.mean()) if len(met) else None
        error = 100 * (found.payloads()[:, 0] / TRUTH.mass - 1)
        mass = (float(error.mean()), float(error.std(ddof=1)) if len(error) > 1 else None)
        rows.append((share, mean, spread, f"{len(met)} of {len(times)}", *mass))
    return Table(
        "Convergence by the paper's rule, over the share of Table VIII that is white noise.",
        (
            "share",
            "converged after [s]",
            "standard deviation [s]",
            "converged within 10 s",
            "mass there, mean error [%]",
            "standard deviation [%]",
        ),
        rows,
        f"Printed: {CONVERGED_S} s and a mass that is off by -0.04 %. Table VIII is what a law of"
        " friction leaves along the motion,"
        " of which only a part is white noise; the paper does not say how much.",
    )


def _mass_panel(curves: Curves, share: float) -> Panel:
    """The mass from the time on at which the bound is within the panel."""
    half = NORMAL_95 * curves.bound
    seen = half < share * TRUTH.mass
    low = (1 - share) * TRUTH.mass
    high = (1 + share) * TRUTH.mass
    t = curves.t
    t_ours = curves.t_ours[seen]
    mass = curves.published[:, 0]
    inside = (t >= t_ours[0]) & (mass > low) & (mass < high)
    return Panel(
        f"mass, within {100 * share:.0f} %",
        "time [s]",
        "mass [kg]",
        [
            Band(
                "bound, 95 %",
                t_ours,
                TRUTH.mass - half[seen],
                TRUTH.mass + half[seen],
                colour="#bbbbbb",
            ),
            Curve("recursion of the paper", t[inside], mass[inside]),
            Curve("ours", t_ours, curves.ours[seen, 0]),
            Curve("truth", t_ours[[0, -1]], np.full(2, TRUTH.mass), style="dashed"),
        ],
    )


def table_7_section(answers: Mapping[str, Answers], by_step: Mapping[float, Array]) -> Section:
    """Table VII: every method, one run and RMS over many, in every world.

    Args:
        answers: by world: for each seed the ten numbers by method
        by_step: the ten numbers by Algorithm 1 on raw rows, by step of the encoders
    """
    return Section(
        "The payload by every method (Table VII)",
        [
            "Algorithm 1 is Khalil's: the change of torques on the same motion, friction taken as"
            " unchanged, all joints alike. Algorithm 2 is gaz2017's: the change of gravity"
            " coefficients"
            " between postures at rest, where the motors of a UR10 feel static friction. The"
            " proposed one"
            " and ours see the same run of 10 s, sample by sample.",
            "In the first two worlds torques are Y π with the paper's numbers; they differ in"
            " noise. In"
            " the third one, MuJoCo, the arm is identified from three empty runs, follows with"
            " errors,"
            " and has with the payload the friction that the paper reports with payload.",
            "In MuJoCo Algorithm 1 gets what the paper means it to get: measured positions,"
            " differenced twice, without a filter. Encoder steps are then noise of the regressor,"
            " which makes the mass too small, the more the coarser the steps. The paper prints"
            f" -4.11 % and no step; every table but that over the step assumes"
            f" {1e6 * ENCODER_STEP:g} µrad. Friction that changes between the two runs has a"
            " section of its own below.",
            "Inertias are about the origin of frame 6, as footnote 2 of Table VII has them. About"
            " that"
            " point the true values are those of a steel cylinder, 100 mm wide and 60 mm high, that"
            " stands on the flange. All units are SI.",
        ],
        [
            *(_one_run(world, runs[0]) for world, runs in answers.items() if "MuJoCo" in world),
            _step_table(by_step),
            *(_rms_table(world, runs) for world, runs in answers.items()),
        ],
    )


def _step_table(by_step: Mapping[float, Array]) -> Table:
    printed = TABLE_7["m"][1]
    rows = [
        (
            1e6 * step,
            100 * float(numbers[:, 0].mean() / TRUTH.mass - 1),
            100 * float(numbers[:, 0].std(ddof=1) / TRUTH.mass),
        )
        for step, numbers in sorted(by_step.items())
    ]
    return Table(
        "Mass by Algorithm 1 on unfiltered measured rows, over the step of the encoders.",
        ("step [µrad]", "mean error [%]", "standard deviation [%]"),
        rows,
        f"Printed: {100 * (float(printed or 0.0) / TRUTH.mass - 1):.2f} %.",
    )


def _one_run(world: str, run: Mapping[str, Array]) -> Table:
    here = {name: in_paper_words(vector) for name, vector in run.items()}
    rows: list[Row] = []
    for key, (truth, *printed) in TABLE_7.items():
        row: list[str | float | None] = [key, *printed]
        row += [None if np.isnan(here[name][key]) else here[name][key] for name in METHODS]
        rows.append((*row, truth))
    heads = ("paper: Algorithm 1", "paper: Algorithm 2", "paper: proposed", *METHODS, "truth")
    return Table(
        f"One run, as in the paper; {world}.",
        ("what", *heads),
        rows,
        "The paper's columns are from its own arm.",
    )


def _rms_table(world: str, runs: Answers) -> Table:
    rows: list[Row] = []
    for name in METHODS:
        found = [in_paper_words(run[name]) for run in runs]
        off = np.array([[x[key] - TABLE_7[key][0] for key in TABLE_7] for x in found])
        com = 1e3 * np.sqrt(np.mean(off[:, 1:4] ** 2, axis=0))
        inertia = np.sqrt(np.mean(off[:, 4:] ** 2))
        mass = 100 * np.sqrt(np.mean(off[:, 0] ** 2)) / TRUTH.mass
        bias = 100 * np.mean(off[:, 0]) / TRUTH.mass
        rows.append((name, mass, bias, *com, None if np.isnan(inertia) else inertia))
    return Table(
        f"RMS errors over {len(runs)} runs: {world}.",
        (
            "method",
            "mass [%]",
            "mean error of the mass [%]",
            "cx [mm]",
            "cy [mm]",
            "cz [mm]",
            "inertia [kg m²]",
        ),
        rows,
    )


def mass_rms(runs: Answers, method: str) -> float:
    """RMS error of the mass over runs, [%].

    Args:
        runs: for each seed the ten numbers by method
        method: one of `METHODS`
    """
    off = np.array([run[method][0] for run in runs]) - TRUTH.mass
    return float(100 * np.sqrt(np.mean(off**2)) / TRUTH.mass)


def what_is_missing() -> Section:
    """What cannot be recomputed, and why."""
    rows = [
        (
            "condition number 79.67",
            "its weighting is not published; one from simulated residuals gives another",
        ),
        (
            "place, size, speed of Fig. 10",
            "not printed, and how much friction the arm takes off neither",
        ),
        (
            "the numbers of Table VI",
            "from recordings that are not published; used here as the truth",
        ),
        ("Table I", "errors that other papers report on their own arms"),
        ("Table V, drive gains", "needs the recordings of currents; used as they are"),
        (
            "the paper's run of Table VII",
            "recordings are not published; the same quantities are given here",
        ),
        ("Table II as it is", "residuals of a real arm; a simulated one leaves its noise"),
        (
            "Fig. 8, temperatures",
            "their range is put in; which joints warm most comes out of a thermal model",
        ),
        ("joint clearance, elasticity", "not simulated; the paper neglects them, too"),
        ("Fig. 3, 5, 9", "drawings and photographs"),
    ]
    return Section(
        "What cannot be recomputed", [], [Table("And the reason.", ("what", "reason"), rows)]
    )
