"""`steelyard postures ROBOT`: where to stop and measure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from steelyard import saved
from steelyard.cli import options
from steelyard.cli.output import Output
from steelyard.errors import UnknownName

_LISTED = "takes numbers as 1,2,3"
_METHODS = ("liu2025", "liu2025-dopt", "dopt", "random", "pick")
_USED_BY = {
    "share": ("liu2025", "liu2025-dopt"),
    "joints": ("liu2025", "liu2025-dopt", "dopt"),
    "pick": ("pick",),
}


def command(
    ctx: typer.Context,
    robot: options.RobotArgument,
    method: Annotated[
        str,
        typer.Option(
            help="liu2025-dopt (the best of Algorithm 1's), liu2025 (Algorithm 1 as printed: more"
            " than"
            " --count), dopt (greedy choice from the whole workspace), random (gaz2017) or pick"
            " (small moves"
            " around a posture, gaz2017)."
        ),
    ] = "liu2025-dopt",
    count: Annotated[int, typer.Option(max=100_000, help="How many postures.")] = 15,
    share: Annotated[float, typer.Option("--K", help="K of liu2025's Algorithm 1.")] = -0.2,
    limits: Annotated[
        Path | None, typer.Option(help="A TOML file of limits, with the workspace.")
    ] = None,
    joints: Annotated[
        str | None,
        typer.Option(help="Joints that move, by name or number, as 4,5,6; all by default."),
    ] = None,
    package_dir: options.PackageOption = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    gravity: options.GravityOption = None,
    pick: Annotated[
        str | None, typer.Option(help="Posture to move around, q1,...,qn [rad]; home.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of random candidates.")] = 0,
    output: Annotated[
        Path | None,
        options.file_to_write(
            "A .csv file of joint positions.", "--output", "-o", endings=(".csv",)
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        options.file_to_write(
            "A PNG of the sensor axes in the workspace.", endings=options.PICTURES
        ),
    ] = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Finds static postures: of liu2025's Algorithm 1 or the best of them, random, or around a pick."""
    from steelyard.drawing import save_picture
    from steelyard.excitation import PostureSet
    from steelyard.report._motion import orientation_plot

    if method not in _METHODS:
        raise UnknownName(f"no method '{method}'; there are {', '.join(_METHODS)}")
    for name, methods in _USED_BY.items():
        if method not in methods:
            options.refuse_without_effect(ctx, f"with --method {method}", name)
    arm = options.load_arm(robot, lock, flange, gravity)
    if limits is None:
        options.refuse_without_effect(ctx, "without a [scene] in --limits", "package_dir")
    bounds = options.load_limits(arm, robot, limits, package_dir)
    moving = options.joint_indices(arm, joints)
    if pick is None:
        around = arm.home
    else:
        around = np.array(options.numbers(pick, f"--pick {_LISTED}"))
    if method == "random":
        found = PostureSet.random(arm, count, limits=bounds, seed=seed)
    elif method == "pick":
        found = PostureSet.around(arm, around, count=count, limits=bounds)
    elif method == "liu2025":
        found = PostureSet.liu2025(arm, count, limits=bounds, joints=moving, K=share)
    else:
        if method == "liu2025-dopt":
            K = share
        else:
            K = None
        found = PostureSet.for_sensor(arm, count, limits=bounds, joints=moving, K=K, seed=seed)
    with saved.together():
        if output is not None:
            rows = [",".join(f"{x:.9g}" for x in q) for q in found.q]
            saved.write_text(output, "\n".join([",".join(arm.joint_names), *rows]) + "\n")
        if picture is not None:
            plot = orientation_plot(found.R_base_flange, bounds.workspace)
            save_picture([plot], picture, title=f"{len(found)} postures of {arm.name}")
    facts = {
        "robot": arm.name,
        "method": method,
        "postures": found.q,
        "condition_number": found.condition_number,
        "file": output or "",
        "picture": picture or "",
    }

    def show() -> None:
        rows = [(str(k + 1), *(f"{x:.4f}" for x in q)) for k, q in enumerate(found.q)]
        out.table(f"{len(found)} postures of {arm.name} [rad or m]", ("", *arm.joint_names), rows)
        print(f"\ncondition number of the static equations: {found.condition_number:.4g}")

    out = Output(as_json)
    out.emit(facts, show, requested={"the condition number": found.condition_number})
