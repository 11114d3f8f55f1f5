"""Sections of the page of gaz2017 on motion: inertia, ten samples, contacts, open points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard._arrays import Array
from steelyard.drawing import Curve, Panel, Plot
from steelyard.inertia import PARAMETER_NAMES
from steelyard.report import Section, Table
from steelyard_papers.gaz2017.collision import CONTACTS_S, LIMIT_NM
from steelyard_papers.gaz2017.contacts import Contacts, Prediction
from steelyard_papers.gaz2017.gravity import FEW, HEAVY_BODY, StaticAnswer
from steelyard_papers.gaz2017.inertial import Inertial
from steelyard_papers.gaz2017.printed import HEAVY_46, HEAVY_47, VALIDATION_NM
from steelyard_papers.gaz2017.static_sections import HEAD, Row, static_rows
from steelyard_papers.sharing import every, with_spread

_CONTRADICTION = (
    "Where the scales of sensors are wrong, the payload's inertia and its mass times distance"
    " squared are"
    " measured together by other sensors than the mass. The paper's method, which weighs all"
    " coefficients"
    " alike, puts that contradiction into the mass; ours on the same runs puts it into Ixx, Iyy"
    " and Izz,"
    " and shows it in its standard deviations (last column), which always count scales known to 1"
    " %."
)
_PARAMETER_UNITS = ("kg", "kg m", "kg m", "kg m", *("kg m²",) * 6)


def inertia_rms(draws: Sequence[Inertial]) -> Array:
    """RMS errors of the ten numbers: paper's method, ours, ours on one motion, (3, 10).

    Args:
        draws: by every method, one for each draw of the sensors' errors
    """
    values = [
        (found.paper, found.together.unconstrained.vector, found.whole.unconstrained.vector)
        for found in draws
    ]
    return np.asarray(np.sqrt(np.mean((np.array(values) - HEAVY_BODY.vector) ** 2, axis=0)))


def inertial_section(draws: Mapping[str, Sequence[Inertial]]) -> Section:
    """The ten numbers (46).

    Args:
        draws: by sensors: one for each draw of the sensors' errors; the last sensors are shown in
            full
    """
    found = list(draws.values())[-1][0]
    rows = [
        (
            name,
            _PARAMETER_UNITS[i],
            HEAVY_46.vector[i],
            found.paper[i],
            with_spread(found.together.unconstrained.vector[i], found.together.std[i]),
            with_spread(found.whole.unconstrained.vector[i], found.whole.std[i]),
            HEAVY_BODY.vector[i],
        )
        for i, name in enumerate(PARAMETER_NAMES)
    ]
    counts = found.counts
    return Section(
        "All ten numbers (eq. (45), (46))",
        [
            f"The three motions show {counts['A']}, {counts['B']} and {counts['C']} coefficients"
            " each, at"
            f" most 19 as the paper says, {counts['together']} together, of which the payload"
            " changes"
            f" {found.changing}; with those of gravity at rest they determine all ten numbers.",
            f"The inertia that the paper prints belongs to no body: {HEAVY_46.why_not_physical}."
            " Its true"
            " value was not published. Here the payload is a cylinder of 50 mm radius and 80 mm"
            " height"
            " about the nominal centre of mass, so that there is a truth to compare with.",
            "Ours stands twice: on the same recordings, empty and loaded runs in one fit; and on a"
            " motion"
            " of all joints of 15 s (the arm from two such motions without the payload), which"
            " excites"
            " the inertia more evenly than a swing of joint 1 alone.",
        ],
        [
            Table(
                "The payload about the origin of frame 7.",
                (
                    "what",
                    "unit",
                    "paper",
                    "paper's method here",
                    "ours, same runs",
                    "ours, all joints move",
                    "truth",
                ),
                rows,
                "One draw of the sensors' errors. mx, my, mz are mass times centre of mass. ± is"
                " one standard"
                " deviation.",
            ),
            *(_scatter(sensors, found) for sensors, found in draws.items()),
        ],
    )


def _scatter(sensors: str, draws: Sequence[Inertial]) -> Table:
    """RMS errors of each number by every method."""
    rms = inertia_rms(draws)
    estimated = np.mean([found.together.std for found in draws], axis=0)
    rows = [
        (name, _PARAMETER_UNITS[i], *rms[:, i], estimated[i])
        for i, name in enumerate(PARAMETER_NAMES)
    ]
    return Table(
        f"RMS errors over {len(draws)} draws; sensors: {sensors}.",
        (
            "what",
            "unit",
            "paper's method",
            "ours, same runs",
            "ours, all joints move",
            "estimated by ours, same runs",
        ),
        rows,
        "" if "scales" not in sensors else _CONTRADICTION,
    )


def few_section(answer: StaticAnswer, prediction: Prediction) -> Section:
    """Ten samples around a pick posture (47), and Fig. 5.

    Args:
        answer: from ten samples
        prediction: of a validation motion
    """
    return Section(
        "Ten samples near a pick, and the torques of another motion (eq. (47), Fig. 5)",
        [
            f"{FEW} postures within 7° of a pick posture (assumed; the paper prints none), each"
            " joint up or down or where it was. The paper's method estimates all twelve"
            " coefficients of the loaded arm from them, though only four numbers are unknown; ours"
            " estimates these four and keeps the arm as estimated from the 500 postures.",
        ],
        [
            Table(
                "Mass and centre of mass from ten samples.",
                HEAD,
                static_rows(*HEAVY_47, answer.paper, answer.ours, HEAVY_BODY),
            ),
            _prediction_table(prediction),
            Plot(
                "Fig. 5: a motion that was not used to identify anything.",
                [_prediction_panel(prediction, j) for j in range(7)],
                columns=3,
            ),
        ],
    )


def _prediction_table(prediction: Prediction) -> Table:
    """Errors of the computed torques of each joint."""
    paper = prediction.measured - prediction.paper
    ours = prediction.measured - prediction.ours
    rows: list[Row] = [
        (
            f"joint {j + 1}",
            float(np.abs(paper[:, j]).max()),
            float(np.abs(ours[:, j]).max()),
            float(np.sqrt(np.mean(paper[:, j] ** 2))),
            float(np.sqrt(np.mean(ours[:, j] ** 2))),
        )
        for j in range(7)
    ]
    return Table(
        "Errors of the computed torque [Nm]; the paper's stay below"
        f" {VALIDATION_NM[0]} to {VALIDATION_NM[1]:g} Nm.",
        (
            "joint",
            "largest, paper's method",
            "largest, ours",
            "RMS, paper's method",
            "RMS, ours",
        ),
        rows,
        "The paper's method: mass and centre of mass from ten samples, inertia taken as zero. Ours:"
        " all ten numbers from one motion. The largest errors of joints 1, 2 and 4 stand where"
        " these joints turn round: friction jerks the arm for an instant, and the filter on the"
        " positions loses that acceleration. No payload corrects it, so both methods are alike"
        " there.",
    )


def _prediction_panel(prediction: Prediction, j: int) -> Panel:
    """Measured and computed torque of joint j, and the errors."""
    few = every(len(prediction.t), 600)
    t = prediction.t[few]
    measured = prediction.measured[few, j]
    paper = prediction.paper[few, j]
    return Panel(
        f"joint {j + 1}",
        "time [s]",
        "torque [Nm]",
        [
            Curve("measured", t, measured),
            Curve("computed, paper's method", t, paper, style="dashed"),
            Curve("error, paper's method", t, measured - paper),
            Curve("error, ours", t, measured - prediction.ours[few, j]),
        ],
    )


_OBSERVERS = {
    "payload ignored": "payload ignored",
    "paper": "(48): gravity knows the payload",
    "ours": "ours: all of the payload",
}


def contact_section(found: Contacts) -> Section:
    """Fig. 6: the residual and three contacts.

    Args:
        found: by three observers
    """
    mass = found.few.paper[0]
    return Section(
        "Contacts (eq. (48), Fig. 6)",
        [
            "A person pushes an LWR that carries 3 kg at 1, 8 and 17 s, for 0.4 s with about 50 N;"
            f" motion, load and pushes are assumed. The paper's observer knows {mass:.3g} kg and"
            " the centre of mass from ten samples, in the gravity torque only. KUKA's own detector"
            " is not published; an observer without a payload is used instead.",
        ],
        [
            _detection_table(found),
            Plot(
                "Fig. 6: the largest residual of all joints.",
                [_residual_panel(found, key) for key in _OBSERVERS],
                columns=3,
            ),
            *_reaction(found),
        ],
    )


def _detection_table(found: Contacts) -> Table:
    """The largest residual without contact, and the delay of each detection."""
    rows: list[Row] = []
    for key, detections in found.by_observer.items():
        delays = 1e3 * found.six.delays_s(detections)
        delays_ms = [f"{d:.0f}" if np.isfinite(d) else "not found" for d in delays]
        largest = found.six.largest_free(detections)
        rows.append((_OBSERVERS[key], largest, "yes" if largest > LIMIT_NM else "no", *delays_ms))
    return Table(
        "Residuals of the free motion, and the delay of each detection.",
        (
            "observer",
            "largest free residual [Nm]",
            f"beyond {LIMIT_NM:g} Nm without contact",
            *(f"contact at {start:g} s, delay [ms]" for start in CONTACTS_S),
        ),
        rows,
        "As in the paper, all three contacts are found with the payload known, and the residual of"
        " an observer without it exceeds the threshold in free motion. A detection counts if it"
        " begins within the contact.",
    )


def _residual_panel(found: Contacts, key: str) -> Panel:
    """The largest residual of one observer, with the threshold and the contacts."""
    t = found.six.recording.t
    few = every(len(t), 800)
    largest = np.abs(found.by_observer[key].residuals.residual).max(axis=1)
    limit = Curve(
        f"threshold of {LIMIT_NM:g} Nm",
        t[[0, -1]],
        np.full(2, LIMIT_NM),
        style="dashed",
        colour="#888888",
    )
    return Panel(
        _OBSERVERS[key],
        "time [s]",
        "largest |residual| [Nm]",
        [Curve(_OBSERVERS[key], t[few], largest[few]), limit],
        marks=[(start, "contact") for start in CONTACTS_S],
    )


def _reaction(found: Contacts) -> list[Table | Plot]:
    """The closed loop: the arm stops for 2 s at each contact and resumes."""
    return [
        Table(
            "The reaction, closed loop: observer (48), stop, rest of 2 s after the contact,"
            " resume.",
            (
                "found at",
                "joint",
                "stands after [s]",
                "stands for [s]",
                "largest jump of acceleration [rad/s²]",
            ),
            _reaction_rows(found),
            "The same pushes at 1, 8 and 17 s on the clock; the motion is behind by then, so the"
            " arm is elsewhere. A jump is the change of the commanded acceleration from one row to"
            " the next, 5 ms later: it is continuous. The rest begins anew while the residual is"
            " beyond its threshold.",
        ),
        Plot("The commanded motion with its stops.", _reaction_panels(found)),
    ]


def _commanded(found: Contacts) -> tuple[Array, Array]:
    """The largest commanded speed of all joints, (N,) [rad/s], and accelerations, (N, n)."""
    recording = found.reacted
    assert recording.v_commanded is not None  # noqa: S101 - simulated
    assert recording.a_commanded is not None  # noqa: S101 - simulated
    return np.abs(recording.v_commanded).max(axis=1), recording.a_commanded


def _reaction_rows(found: Contacts) -> list[Row]:
    """How long the arm stands after each contact, and how smoothly it stops."""
    t = found.reacted.t
    speed, acceleration = _commanded(found)
    jumps = np.abs(np.diff(acceleration, axis=0)).max(axis=1)
    rows: list[Row] = []
    for contact in found.reactions:
        standing = t[(speed == 0.0) & (t > contact.detected_s)]
        gaps = np.flatnonzero(np.diff(standing) > 0.1)
        if len(gaps):
            last = standing[gaps[0]]
        else:
            last = standing[-1]
        near = (t[1:] > contact.detected_s) & (t[1:] < last + 1.5)
        rows.append(
            (
                f"{contact.detected_s:.2f} s",
                contact.joint.replace("_", " "),
                float(standing[0] - contact.detected_s),
                float(last - standing[0]),
                float(jumps[near].max()),
            )
        )
    return rows


def _reaction_panels(found: Contacts) -> list[Panel]:
    """Commanded speed, and acceleration of joint 2."""
    t = found.reacted.t
    speed, acceleration = _commanded(found)
    few = every(len(t), 900)
    marks = [(contact.detected_s, "contact") for contact in found.reactions]
    curves = {
        ("speed", "largest speed [rad/s]"): speed[few],
        ("acceleration", "acceleration of joint 2 [rad/s²]"): acceleration[few, 1],
    }
    return [
        Panel(title, "time [s]", label, [Curve("commanded", t[few], values)], marks=marks)
        for (title, label), values in curves.items()
    ]


def what_is_missing() -> Section:
    """What cannot be recomputed, and why."""
    rows = [
        (
            "the recordings of the LWR 4+",
            "not published; the arm here has its kinematics and nominal links",
        ),
        (
            "the values of (42)",
            "they belong to that arm; only their structure and changes are comparable",
        ),
        ("the true inertia for (46)", "not published; the printed estimate belongs to no body"),
        ("motion and noise of the 2R example", "not printed; sines and 0.05 Nm here"),
        ("mean squares of Fig. 2", "as printed they contradict the figure's own words; see there"),
        ("signals of KUKA FRI in Fig. 6", "the controller's own estimate is not published"),
        (
            "KUKA's own gravity vector for (26)",
            "not published; the true one and one that is 2 % off stand for it",
        ),
        (
            "elasticity of the joints",
            "not simulated; the sensors measure behind it, as in the paper",
        ),
        ("Fig. 1, 3, 4 and the video", "drawings, photographs, a film"),
    ]
    return Section(
        "What cannot be recomputed", [], [Table("And the reason.", ("what", "reason"), rows)]
    )
