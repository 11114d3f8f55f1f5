"""`steelyard postures`, `postures-random`, `postures-around`: where to stop and measure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from steelyard import _saved
from steelyard.cli import motions, options
from steelyard.cli.output import Output
from steelyard.cli.terminal import say
from steelyard.errors import InvalidSamples

if TYPE_CHECKING:
    from steelyard.excitation import DesignLimits, PostureSet
    from steelyard.robot import RobotModel

CountOption = Annotated[int, typer.Option(max=100_000, help="Number of postures.")]
OutputOption = Annotated[
    Path | None,
    options.file_to_write(
        "The joint positions to write (.csv).", "--output", "-o", endings=(".csv",)
    ),
]
PictureOption = Annotated[
    Path | None,
    options.file_to_write(
        "The picture of the sensor axes to write (.png).", endings=options.PICTURES
    ),
]


def command(
    ctx: typer.Context,
    robot: options.RobotArgument,
    count: CountOption = 15,
    as_printed: Annotated[
        bool,
        typer.Option(
            "--as-printed",
            help="Return all postures of liu2025's Algorithm 1, not only the best --count.",
        ),
    ] = False,
    share: Annotated[
        str,
        typer.Option(
            "--K", help="K of liu2025's Algorithm 1; none to choose from the whole workspace."
        ),
    ] = "-0.2",
    limits: motions.LimitsOption = None,
    joints: Annotated[
        str | None,
        typer.Option(help="Joints that move, by name or number, as 4,5,6. Default: all."),
    ] = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    gravity: options.GravityOption = None,
    output: OutputOption = None,
    picture: PictureOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Finds static postures for a wrist sensor (the best of liu2025's Algorithm 1)."""
    from steelyard.excitation import PostureSet

    arm = options.load_arm(robot, lock, flange, gravity)
    bounds = options.load_limits(arm, robot, limits)
    moving = options.joint_indices(arm, joints)
    K = _share(share)
    if as_printed:
        if K is None:
            raise InvalidSamples("Algorithm 1 as printed needs a number --K; got 'none'")
        postures = PostureSet.liu2025(arm, count, limits=bounds, joints=moving, K=K)
        method = "liu2025"
    else:
        postures = PostureSet.for_sensor(arm, count, limits=bounds, joints=moving, K=K)
        method = "dopt" if K is None else "liu2025-dopt"
    _emit(ctx, arm, bounds, postures, method)


def random_command(
    ctx: typer.Context,
    robot: options.RobotArgument,
    count: CountOption = 15,
    limits: motions.LimitsOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random postures.")] = 0,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    gravity: options.GravityOption = None,
    output: OutputOption = None,
    picture: PictureOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Draws random static postures within the limits (gaz2017)."""
    from steelyard.excitation import PostureSet

    arm = options.load_arm(robot, lock, flange, gravity)
    bounds = options.load_limits(arm, robot, limits)
    postures = PostureSet.random(arm, count, limits=bounds, seed=seed)
    _emit(ctx, arm, bounds, postures, "random")


def around_command(
    ctx: typer.Context,
    robot: options.RobotArgument,
    posture: Annotated[
        str | None,
        typer.Option(help="Central posture, q1,...,qn [rad]. Default: home."),
    ] = None,
    count: CountOption = 15,
    limits: motions.LimitsOption = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    gravity: options.GravityOption = None,
    output: OutputOption = None,
    picture: PictureOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Finds static postures around one posture, for weighing after a pick (gaz2017)."""
    from steelyard.excitation import PostureSet

    arm = options.load_arm(robot, lock, flange, gravity)
    bounds = options.load_limits(arm, robot, limits)
    centre = arm.home
    if posture is not None:
        centre = np.array(options.numbers(posture, "--posture takes numbers as 1,2,3"))
    postures = PostureSet.around(arm, centre, count=count, limits=bounds)
    _emit(ctx, arm, bounds, postures, "around")


def _share(text: str) -> float | None:
    """The number of --K; None for none."""
    if text == "none":
        return None
    return options.numbers(text, "--K is a number or none", count=1)[0]


def _emit(
    ctx: typer.Context, arm: RobotModel, limits: DesignLimits, postures: PostureSet, method: str
) -> None:
    """Writes the files that were requested and prints the postures."""
    from steelyard.drawing import save_picture
    from steelyard.report._motion import orientation_plot

    output = ctx.params["output"]
    picture = ctx.params["picture"]
    with _saved.together():
        if output is not None:
            rows = [",".join(f"{x:.9g}" for x in q) for q in postures.q]
            _saved.write_text(output, "\n".join([",".join(arm.joint_names), *rows]) + "\n")
        if picture is not None:
            plot = orientation_plot(postures.R_base_flange, limits.workspace)
            save_picture([plot], picture, title=f"{len(postures)} postures of {arm.name}")
    facts = {
        "robot": arm.name,
        "method": method,
        "postures": postures.q,
        "condition_number": postures.condition_number,
        "file": output or "",
        "picture": picture or "",
    }
    out = Output(ctx.params["as_json"])

    def show() -> None:
        rows = [(str(k + 1), *(f"{x:.4f}" for x in q)) for k, q in enumerate(postures.q)]
        title = f"{len(postures)} postures of {arm.name} [rad or m]"
        out.table(title, ("", *arm.joint_names), rows)
        say(f"\ncondition number of the static equations: {postures.condition_number:.4g}")

    out.emit(facts, show, requested={"the condition number": postures.condition_number})
