"""`steelyard design ROBOT --accuracy mass=1%`: the shortest motion that weighs a payload as well as that."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from steelyard import saved
from steelyard.cli import options
from steelyard.cli.design import show_certificate, write_design
from steelyard.cli.output import Output
from steelyard.errors import InvalidRobot, InvalidSamples

if TYPE_CHECKING:
    from steelyard.excitation import DesignLimits
    from steelyard.identification import DynamicModel
    from steelyard.inertia import InertialParameters
    from steelyard.robot import RobotModel
    from steelyard.torque.shortest import Accuracy, ShortestMotion

_RULE = "--accuracy is mass=1% or 20g, com=2mm, inertia=5% (of the largest, about the flange) or 0.001"
_TYPICAL = "--typical is KGkg:X,Y,Z, say 3.5kg:0,0,0.05"
_UNITS = {
    "mass": {"": 1.0, "kg": 1.0, "g": 1e-3},
    "com": {"": 1.0, "m": 1.0, "mm": 1e-3, "cm": 1e-2},
    "inertia": {"": 1.0, "kgm2": 1.0, "kgm^2": 1.0},
}
_SAME_CHAIN = 1e-6


def design_for_accuracy(ctx: typer.Context, arm: RobotModel, bounds: DesignLimits, ends: Any) -> None:
    """Designs, writes and prints the shortest motion that is enough.

    Args:
        ctx: of the verb `design`, with its options
        ends: posture at both ends, (n,) [rad]; free when None
    """
    from steelyard.excitation import DesignSettings
    from steelyard.report.accuracy import shortest_page
    from steelyard.torque.prediction import assumed_model
    from steelyard.torque.shortest import loaded_arm, shortest_motion

    given, out = ctx.params, Output(ctx.params["as_json"])
    path, rate = given["model"], given["rate"]
    if path is not None:
        model = _model_of(path, arm)
        options.refuse_without_effect(ctx, "with --model, which has its own", "gravity")
        source = ctx.get_parameter_source("rate")
        rate = model.rate_hz if model.rate_hz and source is not None and source.name == "DEFAULT" else rate
    else:
        noise = given["noise"]
        listed = None if noise is None else options.numbers(noise, "--noise takes numbers as 1,2,3")
        model = assumed_model(arm, listed)
    body = _typical(given["typical"], model.robot)
    requested = _accuracy(given["accuracy"], body)
    with out.progress(f"{arm.name}: the shortest motion") as done:
        found = shortest_motion(
            model,
            requested,
            typical=body,
            limits=bounds,
            start=ends,
            harmonics=given["harmonics"],
            longest_s=given["longest"],
            settings=DesignSettings(
                starts=given["starts"],
                seed=given["seed"],
                at_rest=not given["periodic"],
                rate_hz=rate,
                time_limit_s=np.inf if given["time_limit"] is None else given["time_limit"],
                progress=lambda share, at_s: done(share, f"a design of {at_s:.2f} s"),
            ),
        )
    output, picture, report = given["output"], given["picture"], given["report"]
    with saved.together():
        if output is not None and output.suffix == ".json":
            found.save(output)
        elif output is not None:
            write_design(output, arm, bounds, found.design, rate, approach=given["approach"])
        page = partial(shortest_page, loaded_arm(model, body), bounds, found)
        read = [given["robot"], given["limits"], given["envelope"], path]
        out.report(ctx, page, read, report=report, picture=picture)
    files = {"file": output, "picture": picture, "report": report}
    facts = {"robot": arm.name, **found.to_dict(), **{name: where or "" for name, where in files.items()}}
    shown = partial(_show, out, found)
    out.emit(facts, shown, files=files, verdict=found.verdict, requested={"a motion": found.duration_s})


def _model_of(path: Path, arm: RobotModel) -> DynamicModel:
    """The identified arm in a file, which must be the one that was named."""
    from steelyard.identification import DynamicModel

    model = DynamicModel.load(path)
    other = model.robot
    same = other.n == arm.n and all(
        np.allclose(getattr(other, name), getattr(arm, name), atol=_SAME_CHAIN)
        for name in ("joint_placements", "joint_axes", "T_joint_flange")
    )
    if not same:
        raise InvalidRobot(f"{path} is a model of {other.name}, not of {arm.name}: identify that arm first")
    return model


def _typical(text: str, robot: RobotModel) -> InertialParameters:
    from steelyard.torque.shortest import typical_payload

    mass, _, centre = text.partition(":")
    number = re.fullmatch(r"\s*([0-9.eE+-]+)\s*kg\s*", mass)
    try:
        kg = float(number[1]) if number else np.nan
    except ValueError:
        kg = np.nan
    if not np.isfinite(kg):
        raise InvalidSamples(f"{_TYPICAL}; got '{text}'")
    com = options.numbers(centre, _TYPICAL, count=3) if centre else [0.0, 0.0, 0.05]
    if not np.isfinite(com).all():
        raise InvalidSamples(f"{_TYPICAL}; got '{text}'")
    return typical_payload(robot, kg, com)


def _accuracy(requests: list[str], body: InertialParameters) -> Accuracy:
    """What is requested, in SI; shares are those of the typical payload."""
    from steelyard.torque.shortest import Accuracy

    whole = {"mass": body.mass, "inertia": float(np.abs(body.inertia).max())}
    found: dict[str, float] = {}
    for request in requests:
        name, _, text = request.replace(" ", "").partition("=")
        parts = re.fullmatch(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)([%a-zA-Z^0-9]*)", text)
        if name not in _UNITS or parts is None or parts[1].count(".") > 1 or parts[1] == ".":
            raise InvalidSamples(f"{_RULE}; got '{request}'")
        if name in found:
            raise InvalidSamples(f"--accuracy {name} is given twice: give it once")
        number, unit = float(parts[1]), parts[2]
        factor = whole.get(name, np.nan) / 100 if unit == "%" else _UNITS[name].get(unit, np.nan)
        if not np.isfinite(factor):
            raise InvalidSamples(f"{_RULE}; got '{request}'")
        found[name] = number * factor
    return Accuracy(**found)


def _show(output: Output, found: ShortestMotion) -> None:
    mass = found.prediction.quantities[0]
    share = 100 * mass.half_width / mass.value
    print(f"{found.duration_s:.3g} s weigh {mass.value:g} kg to {share:.2g} % (95 %).")
    print(f"{found.verdict.summary[0].upper()}{found.verdict.summary[1:]}; {found.design.seconds:.1f} s.\n")
    show_certificate(output, found.design)
    wanted = found.requested.half_widths * [1, 1e3, 1e3, 1e3, *[1] * 6]
    rows = []
    for quantity, most in zip(found.prediction.quantities, wanted, strict=True):
        half = f"{quantity.half_width:.3g}" if np.isfinite(quantity.half_width) else "unknown"
        rows.append((quantity.name, half, f"{most:.3g}" if np.isfinite(most) else "", quantity.unit))
    headers = ("", "+-", "requested", "unit")
    output.table(f"\nPredicted 95 % intervals of a payload of {mass.value:g} kg", headers, rows)
    for doubt in found.verdict.doubts:
        print(f"warning: {doubt.words}")
