"""The sections of the page of gaz2017 on the planar arm and on postures at rest."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steelyard._arrays import Array
from steelyard.drawing import Curve, Panel, Plot
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.report import Section, Table
from steelyard_papers.gaz2017.approach import Reached
from steelyard_papers.gaz2017.gravity import (
    CHANGING,
    HEAVY_BODY,
    LIGHT_BODY,
    StaticAnswer,
    arm,
    gravity_matrix,
    rms_of,
)
from steelyard_papers.gaz2017.planar import DRAWS, NOISE_NM, Planar
from steelyard_papers.gaz2017.printed import (
    DIFFERENCE_34,
    DIFFERENCE_43,
    FEASIBLE_37,
    FEASIBLE_NAMES,
    GRAVITY_38,
    GRAVITY_42,
    GRAVITY_LOADED_42,
    HEAVY_44,
    HEAVY_47,
    LIGHT_TABLE_1,
    LOWER_36,
    PAYLOAD_35,
    PI_34,
    PI_LOADED_34,
    UPPER_36,
)
from steelyard_papers.sharing import with_spread

Row = tuple[str | float | None, ...]

HEAD = ("what", "unit", "paper", "paper's method here", "ours", "truth")
_COEFFICIENTS = ("kg m²", "kg m", "kg m", "kg m²", "kg m", "kg m")
_PLANAR = (("mass", "kg"), ("m cx", "kg m"), ("m cy", "kg m"), ("Jzz", "kg m²"))


def static_rows(
    mass: float, com: tuple[float, ...], paper: Array, ours: Payload, truth: InertialParameters
) -> list[Row]:
    """Rows of mass and centre of mass in the columns of `HEAD`.

    Args:
        mass: as printed, [kg]
        com: as printed, (3,) [m]
        paper: m, mx, my, mz, (4,)
        ours: with its covariance
        truth: the payload
    """
    found = ours.unconstrained
    spread = ours.com_std
    first: Row = ("mass", "kg", mass, paper[0], with_spread(found.mass, ours.std[0]), truth.mass)
    rest = [
        (
            f"c{axis}",
            "mm",
            1e3 * com[i],
            1e3 * paper[1 + i] / paper[0],
            with_spread(1e3 * found.com[i], 1e3 * spread[i]),
            1e3 * truth.com[i],
        )
        for i, axis in enumerate("xyz")
    ]
    return [first, *rest]


def planar_section(planar: Planar) -> Section:
    """Section IV: (34), (35), (37) and Fig. 2.

    Args:
        planar: the example recomputed
    """
    rows: list[Row] = []
    for name, printed, here in (
        ("π", PI_34, planar.pi),
        ("π with payload", PI_LOADED_34, planar.pi_loaded),
    ):
        rows += [
            (f"{name}, {i + 1}", unit, printed[i], here[0, i], None, here[1, i])
            for i, unit in enumerate(_COEFFICIENTS)
        ]
    here, true = planar.pi_loaded - planar.pi
    rows += [
        (f"difference, {i + 1}", _COEFFICIENTS[i], x, here[i], None, true[i])
        for i, x in enumerate(DIFFERENCE_34)
    ]
    off = np.sqrt(np.mean((planar.masses - 1.5) ** 2, axis=0))
    where = [0, 1, 2, 9]
    truth = (1.5, 0.45, 0.15, 0.1813)
    vector = planar.ours.unconstrained.vector[where]
    std = planar.ours.std[where]
    rows += [
        (
            f"payload, {name}",
            unit,
            PAYLOAD_35[i],
            planar.payload[i],
            with_spread(vector[i], std[i]),
            truth[i],
        )
        for i, (name, unit) in enumerate(_PLANAR)
    ]
    return Section(
        "The planar arm (eq. (29)-(37), Fig. 2)",
        [
            "The coefficients (29) and the payload Jacobian (32) follow from the arm's table in"
            " symbols,"
            " term by term as printed. Two runs in MuJoCo, sines of both joints, torque noise of"
            f" {NOISE_NM} Nm (the paper says slightly noisy; neither its noise nor its motion is"
            " printed)."
            " Our method fits friction and offsets too, which this arm does not have. One draw of"
            " the noise"
            f" is shown; over {DRAWS} the mass errs by {1e3 * off[0]:.1f} g RMS by the paper's"
            " method and"
            f" {1e3 * off[1]:.1f} g by ours.",
        ],
        [
            Table(
                "Coefficients and payload.",
                HEAD,
                rows,
                "The paper's order; ± is one standard deviation.",
            ),
            _links(planar),
            _torques(planar),
        ],
    )


def _links(planar: Planar) -> Table:
    rows = [
        (name, LOWER_36[i], UPPER_36[i], FEASIBLE_37[i], planar.links[i], planar.true_links[i])
        for i, name in enumerate(FEASIBLE_NAMES)
    ]
    return Table(
        "Real links within the bounds (36) that have the coefficients of the empty arm.",
        ("what", "lower", "upper", "paper (37)", "ours", "truth"),
        rows,
        "Many links have the same coefficients, so neither solution needs to be the truth; torques"
        " show no"
        " difference. Ours are real bodies: the triangle inequality holds as well.",
    )


def _torques(planar: Planar) -> Plot:
    paper = planar.mean_square("paper")
    ours = planar.mean_square("ours")
    panels = [
        Panel(
            f"joint {j + 1}",
            "time [s]",
            "torque [Nm]",
            [
                Curve("truth", planar.t, planar.torques["truth"][:, j]),
                Curve(
                    "links and payload found here",
                    planar.t,
                    planar.torques["ours"][:, j],
                    style="dashed",
                ),
            ],
        )
        for j in (0, 1)
    ]
    return Plot(
        "Fig. 2: torques of the loaded arm by Newton and Euler's recursion. Mean squares of the"
        " errors:"
        f" {paper[0]:.2g} and {paper[1]:.2g} Nm² with the numbers printed in (37) and (35),"
        f" {ours[0]:.2g} and {ours[1]:.2g} Nm² with those found here. The paper's text has 3.187"
        " and 0.387 Nm² for curves that lie on each other.",
        panels,
    )


def gravity_section(answer: StaticAnswer, printed_payload: Array, sensors: str) -> Section:
    """The twelve gravity coefficients (42), their change (43) and the payload (44).

    Args:
        answer: from 500 postures
        printed_payload: m, mx, my, mz from the printed (43), (4,)
        sensors: in words
    """
    K = gravity_matrix()
    empty = K @ arm().parameters[:70]
    loaded = K @ arm().with_payload(HEAVY_BODY).parameters[:70]
    change: list[Row] = [
        (
            f"change of {i + 1}",
            "kg m",
            DIFFERENCE_43[k],
            (answer.pi_loaded - answer.pi)[i],
            None,
            (loaded - empty)[i],
        )
        for k, i in enumerate(CHANGING)
    ]
    return Section(
        "Mass and centre of mass from 500 postures (eq. (38)-(44))",
        [
            "The twelve coefficients are those of (38), found in symbols from the table of Fig. 3;"
            " the"
            " payload changes the five that the paper names. The arm in MuJoCo has the paper's"
            " kinematics"
            " but nominal links, so the coefficients themselves are those of another arm; their"
            " changes"
            " are comparable. The sensors sit behind the gears, as the LWR's do, and joint 1, which"
            " gravity does not turn, is left out by the paper's method. Sensors in this table:"
            f" {sensors}.",
            f"The printed differences (43) give {printed_payload[0]:.4g} kg and"
            f" ({', '.join(f'{1e3 * x:.3g}' for x in printed_payload[1:] / printed_payload[0])})"
            " mm: (44)"
            " as printed.",
        ],
        [
            _coefficients(answer, empty, loaded),
            Table(
                "Changes, and the payload that they give.",
                HEAD,
                [*change, *static_rows(*HEAVY_44, answer.paper, answer.ours, HEAVY_BODY)],
                "The truth of the paper's own column is nominal, too: it was weighed and computed"
                " from"
                " simple shapes. Ours counts the unknown scales of the sensors in its uncertainty.",
            ),
        ],
    )


def _coefficients(answer: StaticAnswer, empty: Array, loaded: Array) -> Table:
    rows = [
        (
            f"{i + 1}: {name}",
            GRAVITY_42[i],
            answer.pi[i],
            empty[i],
            GRAVITY_LOADED_42[i],
            answer.pi_loaded[i],
            loaded[i],
        )
        for i, name in enumerate(name.replace("*", " ") for name in GRAVITY_38)
    ]
    heads = ("paper", "here", "truth here", "paper, loaded", "here, loaded", "truth, loaded")
    caption = "Gravity coefficients [kg m] without and with the payload."
    return Table(caption, ("coefficient", *heads), rows)


def sensor_section(
    errors: Mapping[str, Mapping[str, Array]], constant: float, draws: int
) -> Section:
    """Which errors of the sensors would explain the errors that the paper reports.

    Args:
        errors: by sensors and experiment: mass [kg] and centre of mass [m], paper and ours, (draws,
            2, 4)
        constant: RMS change of the seven constant coefficients of (42), [kg m]
        draws: how many
    """
    printed = {"500 postures": (HEAVY_44, HEAVY_BODY), "light payload": (LIGHT_TABLE_1, LIGHT_BODY)}
    printed["ten samples"] = (HEAVY_47, HEAVY_BODY)
    rows: list[Row] = []
    for name, ((mass, com), truth) in printed.items():
        off = 1e3 * float(np.linalg.norm(np.array(com) - truth.com))
        rows.append((name, "reported by the paper", 1e3 * abs(mass - truth.mass), None, off, None))
        for sensors, by_name in errors.items():
            (paper_mass, paper_com), (our_mass, our_com) = 1e3 * rms_of(by_name[name], truth)
            rows.append((name, sensors, paper_mass, our_mass, paper_com, our_com))
    return Section(
        "Sensor errors that explain the paper's results",
        [
            "The paper reports one run of each experiment and no noise. Its seven coefficients"
            " that no"
            f" payload can change did change by {constant:.2g} kg m (RMS); white noise of each"
            " posture"
            " would have to be large to do that, and then ten samples or a light payload could not"
            " be"
            " weighed as well as reported. Scales that are wrong by 1 % explain errors in"
            " proportion to"
            " the load, which is what the paper reports for the medium payload. No method can"
            " correct a"
            " scale from these data; ours says so in its uncertainty.",
        ],
        [
            Table(
                f"RMS errors over {draws} draws of the sensors' errors (2 with the noise from"
                " (42)).",
                (
                    "experiment",
                    "sensors",
                    "mass, paper's method [g]",
                    "mass, ours [g]",
                    "centre, paper's method [mm]",
                    "centre, ours [mm]",
                ),
                rows,
                "Ten samples: the empty arm is known from 500 postures.",
            )
        ],
    )


def light_section(answer: StaticAnswer, sensors: str) -> Section:
    """Table I: a payload of 144 g.

    Args:
        answer: from 500 postures
        sensors: in words
    """
    return Section(
        "A light payload (Table I)",
        [f"The same 500 postures with a payload of 144 g; {sensors}."],
        [
            Table(
                "Mass and centre of mass of the light payload.",
                HEAD,
                static_rows(*LIGHT_TABLE_1, answer.paper, answer.ours, LIGHT_BODY),
            )
        ],
    )


def rest_section(
    found: Mapping[str, Reached],
    masses: Mapping[str, Mapping[str, Array]],
    stated: Mapping[str, Array],
    sensors: str,
) -> Section:
    """Postures that are reached by motion, and the controller's own torque (26).

    Args:
        found: by experiment: the loaded arm where it came to rest
        masses: by experiment and how samples were taken: mass [kg] and centre of mass [m], (draws,
            4)
        stated: the same by the controller's model
        sensors: in words
    """
    head = ("mass, mean error [g]", "mass, RMS error [g]", "centre, RMS error [mm]")
    left = "; ".join(
        f"{x.speed:.2g} rad/s and {x.swing:.2g} Nm ({name})" for name, x in found.items()
    )
    rows = [row for name, answers in masses.items() for row in _errors(answers, name)]
    return Section(
        "How the arm came to rest, and the controller's own torque (section VI, eq. (26))",
        [
            "All postures of this page, 500 of the empty arm, 500 with each payload and ten"
            " samples, are"
            " reached by motion in MuJoCo, with friction, each one twice: along the way from the"
            " posture"
            " before and from the other side. Simulated are the last 0.05 rad of each joint (0.3"
            " s) and 0.3 s"
            " of rest, not the whole way; the mean of the last tenth of a second counts, of both"
            " sides. What"
            f" is left of speed and swinging there, at most: {left}.",
            "Sensors behind the gears, as in the LWR, are hardly affected. With the torque of the"
            " motors, for the empty arm too, friction holds part of the load; the mean of both"
            " sides takes out what is the same from both, not what depends on how the arm came to"
            " rest.",
            "Eq. (26) needs no empty run where the controller states its own gravity torque; it is"
            " as good"
            " as that statement.",
        ],
        [
            Table(
                f"Paper's method, medium payload; {sensors}.",
                ("experiment", "how samples were taken", *head),
                rows,
            ),
            Table(
                f"Eq. (26), 500 postures; {sensors}.",
                ("the controller's model", *head),
                _errors(stated),
            ),
        ],
    )


def _errors(answers: Mapping[str, Array], *first: str) -> list[Row]:
    """Errors of the mass (mean, RMS) [g] and of the centre of mass [mm], a row for each name."""
    made: list[Row] = []
    for name, values in answers.items():
        off = 1e3 * (values - np.append(HEAVY_BODY.mass, HEAVY_BODY.com))
        com = float(np.sqrt((off[:, 1:] ** 2).sum(axis=1).mean()))
        made.append((*first, name, off[:, 0].mean(), float(np.sqrt((off[:, 0] ** 2).mean())), com))
    return made
