"""The part of the page about postures and motions: Fig. 6, 7 and 8."""

from __future__ import annotations

import numpy as np

from steelyard._arrays import Array
from steelyard._units import STANDARD_GRAVITY
from steelyard.drawing import Curve, Panel, Plot
from steelyard.excitation import Design, PostureSet
from steelyard.report import Section, Table
from steelyard.robot import RobotModel
from steelyard_papers.liu2025.motions import HALF_ANGLE, WRIST, Motions
from steelyard_papers.liu2025.world import NOISE


def workspace_section(robot: RobotModel, motions: Motions) -> Section:
    """Postures and motions in the feasible workspace.

    Args:
        robot: the KR60HA
        motions: of the experiment
    """
    t = np.linspace(0.0, 10.0, 501)
    one, two = (motion.at(t)[0] for motion in (motions.found.trajectory, motions.fast))
    turned = [robot.forward_kinematics(q)[:, :3, :3] for q in (one, two)]
    joints = [
        Panel(
            f"joint {j + 1}",
            "time [s]",
            "position [rad]",
            [
                Curve("trajectory 1: excitation", t, one[:, j]),
                Curve("trajectory 2: test", t, two[:, j]),
            ],
        )
        for j in WRIST
    ]
    return Section(
        "Postures and motions in the feasible workspace (Fig. 6 to 8)",
        [
            "The workspace of Fig. 4 is a drawing without numbers. Here the axis of the sensor"
            " stays"
            " within 60° of straight down, so that the part cannot slip on its suckers; x and y"
            " follow"
            " from that.",
            "Objective (40) as printed does not count weight. Without weight it has no scale: the"
            " smaller"
            " a motion, the less its condition number depends on its size, and the search ends at"
            " an"
            f" amplitude of {largest_amplitude(motions.printed):.2g} rad. With weight counted (a -"
            " g"
            " instead of a) the same objective asks for a large motion"
            f" ({largest_amplitude(motions.found):.2g} rad); that one is used for every method on"
            " this"
            " page.",
        ],
        [
            _posture_table(motions),
            _motion_table(motions),
            Plot(
                f"Fig. 6: axes of the sensor in the {len(motions.postures)} postures of Algorithm 1"
                " (N = 15, K = -0.2, repeats left out); inside the line is feasible.",
                _axis_panels({"Algorithm 1": motions.postures.R_base_flange}, style="dots"),
            ),
            Plot("Fig. 7: joints 4 to 6.", joints),
            Plot(
                "Fig. 8: axes of the sensor along both motions.",
                _axis_panels(
                    {"trajectory 1: excitation": turned[0], "trajectory 2: test": turned[1]},
                    style="dots",
                ),
            ),
        ],
    )


def largest_amplitude(found: Design) -> float:
    """The largest amplitude of a joint about its middle, sums over harmonics as in (42), [rad].

    Args:
        found: a designed motion
    """
    return float(found.trajectory.amplitudes[0].max())


def _posture_table(motions: Motions) -> Table:
    rows: list[tuple[str | float | None, ...]] = []
    for name, found in (("Algorithm 1", motions.postures), ("ours, D-optimal", motions.chosen)):
        std = _static_std(found)
        rows.append(
            (name, str(len(found)), found.condition_number, 1e3 * std[0], 1e3 * std[1], std[2])
        )
    return Table(
        "Postures: condition number of the static equations, and what a second of rest in each"
        " shows.",
        (
            "choice",
            "postures",
            "condition number",
            "mass, std [g]",
            "first moment, std [g m]",
            "tilt, std [°]",
        ),
        rows,
        "Predicted from the noise alone: 0.5 N and 0.05 Nm for each of 250 readings. The first"
        " moment is"
        " the worst of three, the tilt the worse of two.",
    )


def _static_std(found: PostureSet) -> tuple[float, float, float]:
    """Predicted deviations: mass [kg], worst first moment [kg m], worse tilt [degrees]."""
    A = found.sensor_rows / (NOISE[:, None] / np.sqrt(250.0))
    flat = A.reshape(-1, 12)
    std = np.sqrt(np.diag(np.linalg.inv(flat.T @ flat)))
    weight = 40.173 * STANDARD_GRAVITY
    return (
        std[2] / STANDARD_GRAVITY,
        float(std[6:9].max()),
        float(np.degrees(std[:2].max() / weight)),
    )


def _motion_table(motions: Motions) -> Table:
    rows: list[tuple[str | float | None, ...]] = [
        ("(40) as printed: weight not counted, ten columns", "singular", None, None, None)
    ]
    for name, found, value in (
        ("the same without its dependent column", motions.printed, motions.printed_with_weight),
        ("(40) with weight counted", motions.found, motions.found.value),
    ):
        speed = float(found.trajectory.amplitudes[1].max())
        rows.append((name, found.value, value, largest_amplitude(found), speed))
    return Table(
        "Excitation of least cond(C'C), joints 4 to 6, five harmonics of 0.1 Hz, limits of (42).",
        (
            "objective",
            "its value",
            "value with weight",
            "largest amplitude [rad]",
            "largest speed [rad/s]",
        ),
        rows,
        "As printed, C'C is singular for every motion of joints 4 to 6, so (40) has no value: a"
        " point"
        " mass in the centre of the wrist does not move, and without its weight nothing shows it."
        " The second row leaves one column out. The paper prints no value.",
    )


def _axis_panels(sets: dict[str, Array], *, style: str) -> list[Panel]:
    panels = []
    for i, axis in enumerate("xyz"):
        curves = []
        for name, R in sets.items():
            phi, theta = _spherical(R[:, :, i])
            curves.append(Curve(name, phi, theta, style="dots" if style == "dots" else "line"))
        border = _border(i)
        ends = np.array([-180.0, 180.0])
        curves += [
            Curve("border of the workspace", ends, np.full(2, x), style="dashed") for x in border
        ]
        panels.append(Panel(f"{axis} axis", "azimuth φ [°]", "polar angle θ [°]", curves))
    return panels


def _border(axis: int) -> list[float]:
    """Largest polar angles of the axes in degrees: z by the cone, x and y because of z."""
    lean = float(np.degrees(HALF_ANGLE))
    if axis == 2:
        return [180.0 - lean]
    return [90.0 - lean, 90.0 + lean]


def _spherical(x: Array) -> tuple[Array, Array]:
    """Azimuth and polar angle of unit vectors in degrees, eq. (36), (N,) each."""
    phi = np.degrees(np.arctan2(x[:, 1], x[:, 0]))
    return phi, np.degrees(np.arccos(np.clip(x[:, 2], -1.0, 1.0)))
