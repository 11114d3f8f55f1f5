"""`steelyard design ROBOT --accuracy mass=1%`: the shortest motion that weighs a payload as well as that."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from steelyard.cli import options
from steelyard.errors import InvalidRobot, InvalidSamples

if TYPE_CHECKING:
    from steelyard.excitation import Design, DesignLimits, DesignSettings
    from steelyard.identification import DynamicModel
    from steelyard.inertia import InertialParameters
    from steelyard.robot import RobotModel
    from steelyard.torque._shortest import Accuracy, ShortestMotion

_RULE = (
    "--accuracy is mass=1% or 20g, com=2mm, inertia=5% (of the largest, about the flange) or 0.001"
)
_TYPICAL = "--typical is KGkg:X,Y,Z, say 3.5kg:0,0,0.05"
_UNITS = {
    "mass": {"": 1.0, "kg": 1.0, "g": 1e-3},
    "com": {"": 1.0, "m": 1.0, "mm": 1e-3, "cm": 1e-2},
    "inertia": {"": 1.0, "kgm2": 1.0, "kgm^2": 1.0},
}
_SAME_CHAIN = 1e-6


@dataclass(frozen=True, eq=False)
class WeighingRequest:
    """The weighing that a motion is requested for.

    Attributes:
        model: of the empty arm, identified or assumed
        body: the payload to expect
        accuracy: how well it shall be known
        rate_hz: of the recordings of the model, [Hz]; None for what the verb says
    """

    model: DynamicModel
    body: InertialParameters
    accuracy: Accuracy
    rate_hz: float | None

    @classmethod
    def of(cls, ctx: typer.Context, arm: RobotModel) -> WeighingRequest:
        """What the options of the verb `design` request.

        Args:
            ctx: with its options
            arm: that it names
        """
        from steelyard.torque._prediction import assumed_model

        given = ctx.params
        noise = given["noise"]
        source = ctx.get_parameter_source("rate")
        if given["model"] is None:
            if noise is None:
                listed = None
            else:
                listed = options.numbers(noise, "--noise takes numbers as 1,2,3")
            model = assumed_model(arm, listed)
        else:
            model = _model_of(given["model"], arm)
        body = _typical(given["typical"], model.robot)
        if source is not None and source.name == "DEFAULT":
            rate_hz = model.rate_hz
        else:
            rate_hz = None
        return cls(model, body, _accuracy(given["accuracy"], body), rate_hz)

    @property
    def loaded(self) -> RobotModel:
        """The arm with the payload on its flange."""
        from steelyard.torque._prediction import loaded_arm

        return loaded_arm(self.model, self.body)

    def motion(
        self,
        limits: DesignLimits,
        *,
        start: Any,
        harmonics: int,
        longest_s: float,
        settings: DesignSettings,
    ) -> ShortestMotion:
        """The shortest motion that is enough.

        Args:
            limits: to keep
            start: posture at both ends, (n,) [rad or m]; free when None
            harmonics: how many a motion has
            longest_s: that it may take, [s]
            settings: of the search
        """
        from steelyard.torque._shortest import shortest_motion

        return shortest_motion(
            self.model,
            self.accuracy,
            typical=self.body,
            limits=limits,
            start=start,
            harmonics=harmonics,
            longest_s=longest_s,
            settings=replace(settings, rate_hz=self.rate_hz or settings.rate_hz),
        )


def predicted_table(design: Design) -> tuple[str, tuple[str, ...], list[tuple[str, ...]]]:
    """Title, headers and rows of what a weighing will know, beside what is requested.

    Args:
        design: with a prediction
    """
    from steelyard.torque._shortest import ShortestMotion

    found = ShortestMotion.of(design)
    wanted = found.requested.half_widths * [1, 1e3, 1e3, 1e3, *[1] * 6]
    rows: list[tuple[str, ...]] = []
    for quantity, most in zip(found.prediction.quantities, wanted, strict=True):
        if np.isfinite(quantity.half_width):
            half = f"{quantity.half_width:.3g}"
        else:
            half = "unknown"
        rows.append(
            (quantity.name, half, f"{most:.3g}" if np.isfinite(most) else "", quantity.unit)
        )
    title = f"\nPredicted 95 % intervals of a payload of {found.prediction.body.mass:g} kg"
    return title, ("", "+-", "requested", "unit"), rows


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
        raise InvalidRobot(
            f"{path} is a model of {other.name}, not of {arm.name}: identify that arm first"
        )
    return model


def _typical(text: str, robot: RobotModel) -> InertialParameters:
    from steelyard.torque._shortest import typical_payload

    mass, _, centre = text.partition(":")
    number = re.fullmatch(r"\s*([0-9.eE+-]+)\s*kg\s*", mass)
    try:
        if number:
            kg = float(number[1])
        else:
            kg = np.nan
    except ValueError:
        kg = np.nan
    if not np.isfinite(kg):
        raise InvalidSamples(f"{_TYPICAL}; got '{text}'")
    if centre:
        com = options.numbers(centre, _TYPICAL, count=3)
    else:
        com = [0.0, 0.0, 0.05]
    if not np.isfinite(com).all():
        raise InvalidSamples(f"{_TYPICAL}; got '{text}'")
    return typical_payload(robot, kg, com)


def _accuracy(requests: list[str], body: InertialParameters) -> Accuracy:
    """What is requested, in SI; shares are those of the typical payload."""
    from steelyard.torque._shortest import Accuracy

    whole = {"mass": body.mass, "inertia": float(np.abs(body.inertia).max())}
    found: dict[str, float] = {}
    for request in requests:
        name, _, text = request.replace(" ", "").partition("=")
        parts = re.fullmatch(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)([%a-zA-Z^0-9]*)", text)
        if name not in _UNITS or parts is None or parts[1].count(".") > 1 or parts[1] == ".":
            raise InvalidSamples(f"{_RULE}; got '{request}'")
        if name in found:
            raise InvalidSamples(f"--accuracy {name} is given twice: give it once")
        number = float(parts[1])
        unit = parts[2]
        if unit == "%":
            factor = whole.get(name, np.nan) / 100
        else:
            factor = _UNITS[name].get(unit, np.nan)
        if not np.isfinite(factor):
            raise InvalidSamples(f"{_RULE}; got '{request}'")
        found[name] = number * factor
    return Accuracy(**found)
