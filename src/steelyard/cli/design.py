"""`steelyard design ROBOT`: an exciting motion within limits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from steelyard.cli import motions, options
from steelyard.cli.output import Output

if TYPE_CHECKING:
    from steelyard.excitation import Objective

_RIGID = "-rigid"
_UNREACHED = 1e300  # values of a merit that no start has reached yet are above it


def command(
    ctx: typer.Context,
    robot: options.RobotArgument,
    harmonics: motions.HarmonicsOption = 5,
    period: Annotated[float, typer.Option(help="Length of the motion [s].")] = 10.0,
    objective: Annotated[
        str,
        typer.Option(
            help="Objective: condition or dopt (whole arm), condition-rigid or dopt-rigid"
            " (links only), payload, payload=s1,...,sn (with the torque noise of each joint [Nm]),"
            " xu2024 or liu2025."
        ),
    ] = "condition",
    limits: motions.LimitsOption = None,
    envelope: motions.EnvelopeOption = None,
    joints: Annotated[
        str | None,
        typer.Option(help="Joints that move, by name or number, as 4,5,6. Default: all."),
    ] = None,
    start: motions.StartOption = None,
    periodic: motions.PeriodicFlag = False,
    starts: motions.StartsOption = 32,
    device: motions.DeviceOption = "cpu",
    seed: motions.SeedOption = 0,
    time_limit: motions.TimeLimitOption = None,
    rate: Annotated[
        float,
        typer.Option(min=0.1, max=1e5, help="Rate of the recording and of the rows written [Hz]."),
    ] = 125.0,
    output: motions.OutputOption = None,
    picture: motions.PictureOption = None,
    report: options.ReportOption = None,
    serial: Annotated[
        str,
        typer.Option(
            help="Serial number of the arm; written into the motion, for steelyard move.",
            show_default=False,
        ),
    ] = "",
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    gravity: options.GravityOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Designs a motion for identification or weighing that keeps the given limits.

    The certificate (1 kHz) states the margin to each limit, and limits that were not given.
    """
    from steelyard.excitation import DesignSettings, design
    from steelyard.report._motion import excitation_page

    arm = options.load_arm(robot, lock, flange, gravity).with_serial(serial)
    bounds = motions.narrowed(arm, options.load_limits(arm, robot, limits), envelope)
    title = f"{arm.name}: {objective}, {harmonics} harmonics, {period:g} s"
    with Output(as_json).progress(title) as done:
        found = design(
            arm,
            harmonics=harmonics,
            period_s=period,
            objective=_objective(objective),
            limits=bounds,
            joints=options.joint_indices(arm, joints),
            start=motions.start_posture(arm, start),
            settings=DesignSettings(
                starts=starts,
                device=device,
                seed=seed,
                at_rest=not periodic,
                rate_hz=rate,
                time_limit_s=np.inf if time_limit is None else time_limit,
                progress=lambda share, best: done(share, _merit_words(best)),
            ),
        )
    motions.emit_design(ctx, arm, bounds, found, partial(excitation_page, arm, bounds, found))


def _merit_words(best: float) -> str:
    if best < _UNREACHED:
        return f"best log merit {best:.3f}"
    return "compiling"


def _objective(text: str) -> Objective:
    """The objective that --objective names."""
    from steelyard.excitation import ConditionNumber, DOptimal, Objective, PayloadOptimal

    name, equals, noise = text.partition("=")
    if name == "payload" and equals:
        return PayloadOptimal(options.numbers(noise, "--objective payload=s1,...,sn [Nm]"))
    if text == f"condition{_RIGID}":
        return ConditionNumber(drive=False)
    if text == f"dopt{_RIGID}":
        return DOptimal(drive=False)
    return Objective.named(text)
