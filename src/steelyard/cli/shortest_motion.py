"""`steelyard shortest-motion ROBOT --accuracy mass=1%`: the shortest motion for an accuracy."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from steelyard.cli import motions, options
from steelyard.cli.output import Output
from steelyard.errors import InvalidRobot, InvalidSamples

if TYPE_CHECKING:
    from steelyard.identification import DynamicModel
    from steelyard.inertia import InertialParameters
    from steelyard.robot import RobotModel
    from steelyard.torque._shortest import Accuracy

_ACCURACY_RULE = (
    "--accuracy is mass=1% or 20g, com=2mm, inertia=5% (of the largest, about the flange) or 0.001"
)
_TYPICAL_RULE = "--typical is KGkg:X,Y,Z, say 3.5kg:0,0,0.05"
_TYPICAL_COM = [0.0, 0.0, 0.05]  # [m], flange frame
_SI_PER_UNIT = {
    "mass": {"": 1.0, "kg": 1.0, "g": 1e-3},
    "com": {"": 1.0, "m": 1.0, "mm": 1e-3, "cm": 1e-2},
    "inertia": {"": 1.0, "kgm2": 1.0, "kgm^2": 1.0},
}
_DEFAULT_RATE_HZ = 125.0


def command(
    ctx: typer.Context,
    robot: options.RobotArgument,
    accuracy: Annotated[
        list[str],
        typer.Option(
            metavar="QUANTITY=HALF_WIDTH",
            help="Half-width of the 95 % interval: mass=1% or 20g, com=2mm, inertia=5%. May be"
            " repeated.",
        ),
    ],
    typical: Annotated[
        str, typer.Option(metavar="KGkg:X,Y,Z", help="The expected payload.")
    ] = "2kg:0,0,0.05",
    model: Annotated[
        Path | None,
        typer.Option(
            help="The identified arm (.json), for its noise, friction and gains. Default: typical"
            " values."
        ),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(help="Torque noise of each joint to assume, as s1,...,sn [Nm]."),
    ] = None,
    longest: Annotated[float, typer.Option(help="Longest motion to try [s].")] = 60.0,
    harmonics: motions.HarmonicsOption = 5,
    limits: motions.LimitsOption = None,
    envelope: motions.EnvelopeOption = None,
    start: motions.StartOption = None,
    periodic: motions.PeriodicFlag = False,
    starts: motions.StartsOption = 32,
    device: motions.DeviceOption = "cpu",
    seed: motions.SeedOption = 0,
    time_limit: motions.TimeLimitOption = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=1e5,
            help="Rate of the recording and of the rows written [Hz]. Default: that of the model's"
            " recordings, or 125.",
        ),
    ] = None,
    output: motions.OutputOption = None,
    picture: motions.PictureOption = None,
    report: options.ReportOption = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    gravity: options.GravityOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Finds the shortest motion that weighs a payload with a requested accuracy."""
    from steelyard.excitation import DesignSettings
    from steelyard.report._motion import shortest_page
    from steelyard.torque._prediction import loaded_arm
    from steelyard.torque._shortest import shortest_motion

    arm = options.load_arm(robot, lock, flange, gravity)
    bounds = motions.narrowed(arm, options.load_limits(arm, robot, limits), envelope)
    known = _model(arm, model, noise=noise, gravity=gravity)
    body = _typical(typical, known.robot)
    with Output(as_json).progress(f"{arm.name}: the shortest motion") as done:
        motion = shortest_motion(
            known,
            _accuracy(accuracy, body),
            typical=body,
            limits=bounds,
            start=motions.start_posture(arm, start),
            harmonics=harmonics,
            longest_s=longest,
            settings=DesignSettings(
                starts=starts,
                device=device,
                seed=seed,
                at_rest=not periodic,
                rate_hz=rate or known.rate_hz or _DEFAULT_RATE_HZ,
                time_limit_s=np.inf if time_limit is None else time_limit,
                progress=lambda share, at_s: done(share, f"a design of {at_s:.2f} s"),
            ),
        )
    page = partial(shortest_page, loaded_arm(known, body), bounds, motion)
    motions.emit_design(ctx, arm, bounds, motion.design, page)


def _model(
    arm: RobotModel, path: Path | None, *, noise: str | None, gravity: str | None
) -> DynamicModel:
    """The identified arm in a file, which must be the one that was named; without one, assumed."""
    from steelyard.identification import DynamicModel
    from steelyard.torque._prediction import assumed_model

    if path is None:
        listed = None if noise is None else options.numbers(noise, "--noise takes numbers as 1,2,3")
        return assumed_model(arm, listed)
    if noise is not None or gravity is not None:
        raise InvalidRobot(f"{path} states noise and gravity: leave --noise and --gravity out")
    model = DynamicModel.load(path)
    if not model.robot.same_kinematics(arm):
        raise InvalidRobot(
            f"{path} is a model of {model.robot.name}, not of {arm.name}: identify that arm first"
        )
    return model


def _typical(text: str, robot: RobotModel) -> InertialParameters:
    """The payload that --typical describes."""
    from steelyard.torque._shortest import typical_payload

    mass, _, centre = text.partition(":")
    digits = re.fullmatch(r"\s*([0-9.eE+-]+)\s*kg\s*", mass)
    try:
        kg = float(digits[1]) if digits else np.nan
    except ValueError:
        kg = np.nan
    com = options.numbers(centre, _TYPICAL_RULE, count=3) if centre else _TYPICAL_COM
    if not np.isfinite([kg, *com]).all():
        raise InvalidSamples(f"{_TYPICAL_RULE}; got '{text}'")
    return typical_payload(robot, kg, com)


def _accuracy(requests: list[str], body: InertialParameters) -> Accuracy:
    """The half-widths of --accuracy in SI; percentages are of the typical payload."""
    from steelyard.torque._shortest import Accuracy

    half_widths: dict[str, float] = {}
    for request in requests:
        name, half_width = _half_width(request, body)
        if name in half_widths:
            raise InvalidSamples(f"--accuracy {name} is given twice: give it once")
        half_widths[name] = half_width
    return Accuracy(**half_widths)


def _half_width(request: str, body: InertialParameters) -> tuple[str, float]:
    """Quantity and half-width of one request, say mass=1%."""
    whole = {"mass": body.mass, "inertia": float(np.abs(body.inertia).max())}
    name, _, text = request.replace(" ", "").partition("=")
    parts = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?([%a-zA-Z^0-9]*)", text)
    if name not in _SI_PER_UNIT or parts is None:
        raise InvalidSamples(f"{_ACCURACY_RULE}; got '{request}'")
    unit = parts[3]
    if unit == "%":
        factor = whole.get(name, np.nan) / 100
    else:
        factor = _SI_PER_UNIT[name].get(unit, np.nan)
    if not np.isfinite(factor):
        raise InvalidSamples(f"{_ACCURACY_RULE}; got '{request}'")
    return name, float(parts[1] + (parts[2] or "")) * factor
