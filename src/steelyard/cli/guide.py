"""`steelyard guide ROBOT|MODEL --payload payload.json`: hand guiding with a known payload."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from steelyard.cli import options
from steelyard.cli.output import Output
from steelyard.cli.terminal import say
from steelyard.errors import InvalidInertia, InvalidRobot

if TYPE_CHECKING:
    from steelyard.control._guiding import GuidingComparison
    from steelyard.identification import DynamicModel
    from steelyard.inertia import InertialParameters
    from steelyard.payload import Payload
    from steelyard.robot import RobotModel


def command(
    ctx: typer.Context,
    arm: Annotated[
        str,
        typer.Argument(
            metavar="ROBOT|MODEL",
            help="A robot (bundled, .urdf, .toml) that the controller knows exactly, or an"
            " identified arm (.json), which is simulated with physical bodies.",
        ),
    ],
    payload: Annotated[
        Path,
        typer.Option(
            help="The payload that the controller compensates (.json, from steelyard weigh)."
        ),
    ],
    payload_true: Annotated[
        Path | None, typer.Option(help="The true payload (.json). Default: that of --payload.")
    ] = None,
    mass_true: Annotated[
        float | None,
        typer.Option(help="The true mass of the same body [kg], instead of --payload-true."),
    ] = None,
    speed: Annotated[float, typer.Option(help="Mean speed of the hand along a side [m/s].")] = 0.05,
    centre: Annotated[
        str, typer.Option(help="Centre of the rectangle in the base frame, x,y,z [m].")
    ] = "0.6,0,0.3",
    sides: Annotated[str, typer.Option(help="Sides of the rectangle along x,y [m].")] = "0.3,0.4",
    friction_share: Annotated[
        float, typer.Option(help="Share of friction that the drives compensate.")
    ] = 0.95,
    unsteadiness: Annotated[
        float, typer.Option(help="Noise of the hand's force relative to the force.")
    ] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the hand's noise.")] = 0,
    picture: options.PictureOption = None,
    report: options.ReportOption = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Compares hand guiding of a simulated arm (MuJoCo) with and without payload compensation.

    A hand drags the arm around a rectangle. Prints mean and variance of its force for each axis.
    Exit code 1 when compensation does not help.
    """
    from steelyard.control._guiding import RectanglePath, TeachMode, guide
    from steelyard.payload import Payload
    from steelyard.report._control import guiding_page
    from steelyard.robot import RobotModel
    from steelyard.simulation._guided import GuidedOptions, Hand

    model = _arm(arm, lock, flange)
    if isinstance(model, RobotModel):
        robot = model
    else:
        robot = model.robot
    known = Payload.load(payload)
    truth = _truth(known, payload_true, mass_true)
    corner, lengths = (
        np.array(
            options.numbers(text, f"{option} is {k} numbers with commas between them", count=k)
        )
        for text, option, k in ((centre, "--centre", 3), (sides, "--sides", 2))
    )
    path = RectanglePath(corner, lengths, speed)
    output = Output(as_json)
    with output.progress(
        f"MuJoCo: a hand drags {robot.name}, twice {path.duration_s:.0f} s"
    ) as done:
        comparison = guide(
            model,
            known,
            payload_true=truth,
            path=path,
            hand=Hand(unsteadiness=unsteadiness),
            teach=TeachMode(friction_share=friction_share),
            options=GuidedOptions(seed=seed, progress=done),
        )
    words = (
        f"The {robot.name} carries {truth.mass:.3f} kg, compensated as {known.body.mass:.3f} kg."
    )
    page = partial(guiding_page, comparison, title=f"Hand guiding: {robot.name}", words=words)
    output.report(ctx, page, [arm, payload, payload_true], report=report, picture=picture)
    files = {"picture": picture, "report": report}
    facts = _facts(comparison, known, truth) | files
    show = partial(_show, output, comparison, known, truth)
    forces = [row[1:] for row in comparison.rows]
    output.emit(
        facts, show, files=files, verdict=comparison.verdict, requested={"the forces": forces}
    )


def _arm(name: str, lock: list[str] | None, flange: str | None) -> DynamicModel | RobotModel:
    """The arm as the controller knows it."""
    if not name.endswith(".json"):
        return options.load_arm(name, lock, flange)
    if lock or flange:
        raise InvalidRobot("--lock and --flange are for a robot; an identified arm has its own")
    from steelyard.identification import DynamicModel

    return DynamicModel.load(name)


def _truth(known: Payload, path: Path | None, mass: float | None) -> InertialParameters:
    from steelyard.payload import Payload

    if path is not None and mass is not None:
        raise InvalidInertia("give --payload-true or --mass-true, not both")
    if path is not None:
        return Payload.load(path).body
    if mass is None:
        return known.body
    if not mass > 0 or not known.body.mass > 0:
        raise InvalidInertia(
            f"--mass-true must be positive, and so the payload's mass; got {mass:g} kg"
        )
    return known.body.with_mass(mass)


def _show(
    output: Output, comparison: GuidingComparison, known: Payload, truth: InertialParameters
) -> None:
    output.table(
        "Force of the hand on the tool (mean of |F|, variance of F; axes of the flange)",
        ("axis", "mean without", "with [N]", "less", "variance without", "with [N²]", "less"),
        [
            (axis, f"{m0:.2f}", f"{m1:.2f}", _percent(dm), f"{v0:.2f}", f"{v1:.2f}", _percent(dv))
            for axis, m0, m1, dm, v0, v1, dv in comparison.rows
        ],
    )
    say(f"\n{comparison.verdict}")
    say(
        f"The arm carries {truth.mass:.3f} kg; the controller compensates {known.body.mass:.3f} kg."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _facts(
    comparison: GuidingComparison, known: Payload, truth: InertialParameters
) -> dict[str, Any]:
    mean = ("mean_without", "mean_with", "mean_reduction")
    names = ("axis", *mean, "variance_without", "variance_with", "variance_reduction")
    return {
        "axes": [dict(zip(names, row, strict=True)) for row in comparison.rows],
        "mean": "of |F|, each axis of the flange [N]",
        "variance": "of F about its mean [N^2]",
        "mass_known": known.body.mass,
        "mass_true": truth.mass,
        "verdict": comparison.verdict.to_dict(),
    }
