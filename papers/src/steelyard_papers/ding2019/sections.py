"""Sections of the page of ding2019: motion, parameters, torques, open points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.drawing import Curve, Panel, Plot
from steelyard.report import Section, Table
from steelyard.robot import ParameterBasis, RobotModel
from steelyard_papers.ding2019.fits import Answer, Comparison, true_parameters
from steelyard_papers.ding2019.printed import CORRELATION, RMS, TABLE_3, unit_of
from steelyard_papers.ding2019.readings import readings_table
from steelyard_papers.ding2019.world import SHOULDER, Motions, formula_7, joint_axes
from steelyard_papers.sharing import every, with_spread

_PARTS = (
    ("links and rotors 1 to 3", "Im", "123"),
    ("links and rotors 4 and 5", "Im", "45"),
    ("link and rotor 6", "Im", "6"),
    ("friction", "F", "123456"),
)
HEAD = ("what", "unit", "paper", "paper's method here", "ours", "truth")


def motion_section(robot: RobotModel, motions: Motions) -> Section:
    """Table II and Fig. 3: the excitation, its limits and its condition number.

    Args:
        robot: the TX-60
        motions: the designed one and random ones
    """
    found = motions.found
    t = np.linspace(0.0, found.trajectory.period_s, 501)
    q = found.trajectory.at(t)[0]
    panels = [
        Panel(
            f"joint {j + 1}",
            "time [s]",
            "position [rad]",
            [
                Curve("position", t, q[:, j]),
                *(
                    Curve("limit of Table II", t[[0, -1]], np.full(2, bound), style="dashed")
                    for bound in (motions.limits.joints.q_min[j], motions.limits.joints.q_max[j])
                ),
            ],
        )
        for j in range(robot.n)
    ]
    closest: dict[str, tuple[str, float, float, str]] = {}
    for check in found.certificate.checks:
        if check.limit not in closest or check.margin < closest[check.limit][2]:
            closest[check.limit] = (check.unit, check.value, check.margin, check.where)
    rows = [(name, *row) for name, row in closest.items()]
    return Section(
        "Excitation within Table II (eq. (9), Fig. 3)",
        [
            "Five harmonics of 0.1 Hz for each joint, as in the paper; the motion begins and ends"
            " at rest."
            " The condition number is that of the stacked base regressor with rotor inertia,"
            " friction and"
            " offsets (58 columns), at 250 Hz. The paper prints neither its motion nor its"
            " condition"
            " number, so there is nothing to compare with but random motions within the same"
            " limits.",
        ],
        [
            _conditions(motions),
            Plot("Fig. 3: the excitation of least condition number found.", panels),
            Table(
                "Every limit of Table II, at 1000 Hz: where the motion comes closest.",
                ("limit", "unit", "reached", "margin", "where"),
                rows,
                "Joints 4 and 5: the table prints -1.74 twice; ±1.74 rad is meant. Height is that"
                " of the"
                " last frame above frame 0, which lies at the shoulder. Table II counts its 0.2 m"
                " from the"
                f" ground; that the shoulder is {SHOULDER} m above it is our assumption: the paper"
                " does not"
                " print it. The best motion and its condition number depend on it.",
            ),
        ],
    )


def _conditions(motions: Motions) -> Table:
    random = motions.random_conditions
    rows: list[tuple[str, str | float]] = [
        ("designed, exact gradient", motions.found.condition_number),
        (f"best of {len(random)} random motions within the limits", float(random.min())),
        (f"median of {len(random)} random motions", float(np.median(random))),
        ("the paper's motion (fmincon)", "not printed"),
    ]
    return Table("Condition number of the regressor.", ("motion", "condition number"), rows)


def parameter_section(comparison: Comparison) -> Section:
    """Table III: parameters by both methods beside the truth, in the world that the paper assumes.

    Args:
        comparison: in that world
    """
    truth = true_parameters(comparison.world.robot)
    paper = comparison.paper
    ours = comparison.ours
    rows = []
    for i, name in enumerate(ours.names):
        if name not in truth:
            continue
        printed = TABLE_3.get(name)
        if name in TABLE_3:
            there = _pm(paper, i)
        else:
            there = "not modelled"
        rows.append((name, unit_of(name), printed, there, _pm(ours, i), truth[name]))
    known = [name for name in ours.names if name in TABLE_3]
    return Section(
        "Parameters (Table III)",
        [
            f"The structure agrees: the {len(known)} parameters of Table III are the ones that the"
            " base of"
            " this arm has, parameter by parameter (36 of links, 4 rotors that can be separated,"
            " 12 of"
            " friction). "
            + _count_words(comparison.world.robot)
            + " Eq. (15) counts 48, which is the"
            " number without the four rotors that the table lists. Ours has six torque offsets"
            " more.",
            "The numbers of the paper's column are those of its own arm in an unknown, scaled"
            " torque unit"
            " (link inertias near zero, one negative Coulomb friction); they are no truth for this"
            " simulated arm and stand there for the structure only. Mean and standard deviation"
            " over ten"
            " runs, eq. (14), (15).",
        ],
        [
            Table(
                "Mean ± standard deviation over ten runs; friction in this world is Coulomb and"
                " viscous.",
                HEAD,
                rows,
            ),
            Plot(
                "Errors of the parameters, each as the torque it causes in the excitation (RMS),"
                " with 95 %"
                " intervals from the scatter of ten runs: an interval that misses zero is a bias"
                " that"
                " repeated runs do not show.",
                [_error_panel(comparison, *part) for part in _PARTS],
            ),
        ],
    )


def link_counts(robot: RobotModel) -> tuple[int, int]:
    """Base parameters of the links: by eq. (7), and by the rank of the regressor.

    Args:
        robot: the TX-60
    """
    R1, R2, R3 = formula_7(*joint_axes(robot))
    rank = int(ParameterBasis.of(robot).parameters.links.sum())
    return 7 * R1 + 3 * R2 + R3, rank


def _count_words(robot: RobotModel) -> str:
    R1, R2, R3 = formula_7(*joint_axes(robot))
    counted, rank = link_counts(robot)
    return (
        f"Eq. (7) counts {R1} joints whose axis is not parallel to all before it, {R2} that are"
        " parallel"
        f" beside them and {R3} along gravity: 7 · {R1} + 3 · {R2} + {R3} = {counted}; the rank of"
        " the"
        f" regressor is {rank}."
    )


def _pm(answer: Answer, i: int) -> str:
    return with_spread(answer.mean[i], answer.std[i])


def _error_panel(comparison: Comparison, title: str, kinds: str, joints: str) -> Panel:
    truth = true_parameters(comparison.world.robot)
    size = column_sizes(comparison)
    curves = []
    for label, answer in (("method of ding2019", comparison.paper), ("ours", comparison.ours)):
        where = [
            i
            for i, name in enumerate(answer.names)
            if name in truth and name[0] in kinds and name[-1] in joints
        ]
        names = [answer.names[i] for i in where]
        error = (answer.mean[where] - np.array([truth[name] for name in names])) * size[where]
        curves.append(
            Curve(label, names, error, style="bars", y_std=answer.std[where] * size[where])
        )
    return Panel(title, "parameter", "torque of the error [Nm]", curves)


def column_sizes(comparison: Comparison) -> Array:
    """RMS torque of all joints per unit of each parameter, (p,) [Nm per unit].

    Args:
        comparison: in any world
    """
    from steelyard.signals import prepare
    from steelyard_papers.ding2019.fits import OURS

    Y = comparison.ours.models[0].rows(prepare(comparison.world.runs[0], OURS)).Y
    return np.asarray(np.sqrt((Y**2).sum(axis=1).mean(axis=0)))


def inertial_errors(comparison: Comparison, method: str) -> tuple[Array, Array, Array]:
    """Errors of link and rotor parameters in each run, their scatter and estimated deviations.

    Args:
        comparison: in any world
        method: 'paper' or 'ours'

    Returns:
        errors (runs, p), standard deviation over the runs (p,), given by each estimate (runs, p)
    """
    answer: Answer = getattr(comparison, method)
    truth = true_parameters(comparison.world.robot)
    kept = [i for i, name in enumerate(answer.names) if name in truth and name[0] not in "FB"]
    true = np.array([truth[answer.names[i]] for i in kept])
    values = np.array([model.estimate.value[kept] for model in answer.models])
    estimated = np.array([model.estimate.std[kept] for model in answer.models])
    return values - true, answer.std[kept], estimated


def scatter_section(assumed: Comparison, gears: Comparison) -> Section:
    """How often intervals from the standard deviation over ten runs contain the truth.

    Args:
        assumed: the world that the paper assumes
        gears: the world with friction as gears have it
    """
    rows: list[tuple[str | float | None, ...]] = []
    for comparison in (assumed, gears):
        size = column_sizes(comparison)
        for method, label in (("paper", "paper's method"), ("ours", "ours")):
            errors, scatter, estimated = inertial_errors(comparison, method)
            torque = size[: errors.shape[1]] * errors.mean(axis=0)
            if method == "ours":
                own = 100 * float(np.mean(np.abs(errors) < NORMAL_95 * estimated))
            else:
                own = None
            rows.append(
                (
                    comparison.world.name,
                    label,
                    float(np.sqrt(np.mean(torque**2))),
                    float(np.median(np.abs(errors.mean(axis=0)) / scatter)),
                    100 * float(np.mean(np.abs(errors) < NORMAL_95 * scatter)),
                    own,
                )
            )
    return Section(
        "Coverage of intervals from ten runs (eq. (15))",
        [
            "Eq. (15) measures how runs differ, not how far their mean is from the truth. Friction"
            " that the"
            " model does not hold, filters and the fitted series shift every run alike; warming up"
            " moves"
            " viscous friction from run to run. The 40 parameters of links and rotors have a true"
            " value in"
            " both worlds.",
        ],
        [
            Table(
                "Links and rotors: errors and intervals.",
                (
                    "friction",
                    "method",
                    "error of the mean [Nm]",
                    "|error of the mean| / deviation, median",
                    "95 % interval from ten runs holds the truth [%]",
                    "95 % interval given by each run's estimate holds it [%]",
                ),
                rows,
                "The error of the mean is given as the torque that it causes, RMS over the"
                " parameters. The"
                " intervals of the last column know of correlation in time; the paper has none.",
            )
        ],
    )


def readings_section(assumed: Comparison, gears: Comparison) -> Section:
    """What the correlations of Table IV may mean, in both worlds.

    Args:
        assumed: friction as the paper assumes
        gears: friction as in gears
    """
    tables = [readings_table(found) for found in (assumed, gears)]
    names = [found.world.name for found in (assumed, gears)]
    shown = [
        replace(table, caption=f"{table.caption} Friction {name}.")
        for table, name in zip(tables, names, strict=True)
    ]
    return Section(
        "Readings of the correlation (Table IV)",
        [
            "The paper does not say which run, which filter and which noise its correlations"
            " belong to."
        ],
        shown,
    )


def torque_section(comparison: Comparison) -> Section:
    """Table IV and Fig. 4: torques of the verification run, predicted.

    Args:
        comparison: in one world
    """
    n = comparison.measured.shape[1]
    paper = comparison.paper.validation
    ours = comparison.ours.validation
    floor = comparison.floor
    rows: list[tuple[str | float | None, ...]] = [
        (f"RMS, joint {j + 1}", "Nm", RMS[j], paper.rms[j], ours.rms[j], floor.rms[j])
        for j in range(n)
    ]
    rows += [
        (
            f"correlation, joint {j + 1}",
            "",
            CORRELATION[j],
            paper.correlation[j],
            ours.correlation[j],
            floor.correlation[j],
        )
        for j in range(n)
    ]
    scores = ", ".join(f"{name} {100 * x:.1f} %" for name, x in comparison.choice.scores.items())
    return Section(
        f"Torques of the verification run (Table IV, Fig. 4): friction {comparison.world.name}",
        [
            f"Our method chose the friction law '{comparison.choice.law}' by predicting stretches"
            " of the"
            f" first run that it had not seen (relative residual: {scores}; a simpler law wins"
            " against one"
            " that is better by less than 2 %).",
        ],
        [
            Table(
                "Prediction of a motion that was not used to identify, by the mean parameters of"
                " ten runs.",
                HEAD,
                rows,
                "The truth here is what the true torque leaves: the noise. Residuals are taken"
                " against the"
                " torque as measured, unfiltered, for both methods.",
            ),
            Plot(
                "Fig. 4: measured and predicted torque and what is left. Where a joint turns"
                " round, friction"
                " leaves the spikes that the paper reports.",
                [_torque_panel(comparison, j) for j in range(n)],
            ),
        ],
    )


def _torque_panel(comparison: Comparison, j: int) -> Panel:
    few = every(len(comparison.t), 625)
    t = comparison.t[few]
    measured = comparison.measured[few, j]
    paper = comparison.paper.predicted[few, j]
    ours = comparison.ours.predicted[few, j]
    return Panel(
        f"joint {j + 1}",
        "time [s]",
        "torque [Nm]",
        [
            Curve("measured", t, measured),
            Curve("predicted, ours", t, ours),
            Curve("left by the paper's method", t, measured - paper),
            Curve("left by ours", t, measured - ours),
        ],
    )


def what_is_missing() -> Section:
    """What cannot be recomputed, and why."""
    rows = [
        (
            "the numbers of Table III",
            "they belong to the real arm, whose torques are not published",
        ),
        (
            "the numbers of Table IV",
            "the recordings are not published; the same quantities are given here",
        ),
        (
            "the motion of Fig. 3",
            "its coefficients are not printed; ours is designed from the same limits",
        ),
        (
            "the cut-off of the filters",
            "not printed, 10 Hz here; 0.25 Hz would cut the motion itself",
        ),
        ("the threshold of speed", "not printed, 0.05 rad/s here"),
        (
            "differences between real runs",
            "simulated: noise, and drives that warm up by 5 K over ten runs",
        ),
        ("Fig. 1, Fig. 2", "a flow chart, a photograph and a drawing"),
    ]
    words = (
        "Our own method runs with the package's default settings; they were confirmed on these"
        " very worlds,"
        " so its column is not a blind test. Torque noise and the friction of gears are"
        " assumptions."
    )
    return Section(
        "What cannot be recomputed", [words], [Table("And the reason.", ("what", "reason"), rows)]
    )
