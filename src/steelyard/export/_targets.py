"""Exports a load to any format: it is transformed to the target's frame, judged, and written.

export = Export.of(load, "ur", T_target_load=T)
text = export.text()            # raises an error if a doubt forbids the export
export.write("payload.script", force=True)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from numpy.typing import ArrayLike

from steelyard._saved import write_text
from steelyard.errors import InvalidInertia, UnknownName
from steelyard.export._controllers import CONTROLLERS
from steelyard.export._load import DEFAULT_NAME, DEFAULT_NUMBER, ErrorLimits, Load, Target
from steelyard.export._sensor_drivers import SENSOR_DRIVERS
from steelyard.export._simulators import SIMULATORS
from steelyard.inertia import checked_transform
from steelyard.verdict import EVERYTHING, Aspect, Doubt, DoubtKind, Verdict

TARGETS: dict[str, Target] = CONTROLLERS | SENSOR_DRIVERS | SIMULATORS
"""Formats of loads, by name."""


@dataclass(frozen=True, eq=False)
class Export:
    """A load for a target, before it is written.

    Attributes:
        load: in the frame of the target
        target: the format
        verdict: whether it may be written, and doubts about it
    """

    load: Load
    target: Target
    verdict: Verdict

    @classmethod
    def of(
        cls,
        load: Load,
        target: str,
        *,
        T_target_load: ArrayLike | None = None,
        limits: ErrorLimits | None = None,
        inertia: str | None = None,
    ) -> Export:
        """A load for a controller or a simulator, one of `TARGETS`.

        Args:
            load: in the frame in which it was weighed
            target: name of the format
            T_target_load: the frame of the load (flange or sensor) in the frame of the target,
                (4, 4); the identity by default, but required for loads of a wrist sensor
            limits: largest accepted errors; 10 % of the mass and 20 mm by default
            inertia: 'estimated', 'sphere' (of a homogeneous sphere) or 'none' (of a point); by
                default the estimate if it is known, otherwise that of a sphere
        """
        if target not in TARGETS:
            raise UnknownName(
                f"payloads are not exported to '{target}'; there are {', '.join(TARGETS)}"
            )
        form = TARGETS[target]
        _require_used(load, target, form, inertia)
        if load.bias is not None and T_target_load is None and not form.in_sensor_frame:
            raise InvalidInertia(
                "this payload was weighed in the frame of a wrist sensor: give the pose of the"
                " sensor in the flange frame of the target"
            )
        if T_target_load is None:
            T = None
        else:
            T = checked_transform(T_target_load)
        there = load.in_target_frame("sensor" if form.in_sensor_frame else "flange", T)
        if form.inertia:
            there = there.with_inertia(inertia)
        measured = form.inertia and inertia in (None, "estimated")
        doubts = _doubts(there, limits or ErrorLimits(), form, needs_inertia=measured)
        return cls(there, form, Verdict(load.verdict.summary, doubts))

    def text(self, *, force: bool = False) -> str:
        """The text, with frame, units and doubts as comments.

        Args:
            force: write it in spite of blocking doubts, which the text then repeats
        """
        against = self.verdict.blocking
        if against and not force:
            reasons = "; ".join(doubt.words for doubt in against)
            raise InvalidInertia(f"not exported: {reasons}; weigh again, or give `force=True`")
        if self.target.inertia:
            self.load.require_moments()
        return self.target.write(replace(self.load, forced=against))

    def write(self, path: str | Path, *, force: bool = False) -> str:
        """Writes the text to a file and returns it."""
        text = self.text(force=force)
        write_text(path, text)
        return text


def _require_used(load: Load, target: str, form: Target, inertia: str | None) -> None:
    """Refuses a name, a number or an inertia that the format cannot hold."""
    given = {
        "name": load.name != DEFAULT_NAME and not form.has_name,
        "number": load.number != DEFAULT_NUMBER and not form.has_number,
        "inertia": inertia is not None and not form.inertia,
    }
    for argument, is_ignored in given.items():
        if is_ignored:
            raise UnknownName(
                f"the format '{target}' cannot hold the {argument} of a payload: leave"
                f" `{argument}` out"
            )


def _is_relevant(doubt: Doubt, load: Load, target: Target, *, needs_inertia: bool) -> bool:
    """Whether a doubt about the estimate concerns the numbers that are written."""
    if doubt.concerns == (Aspect.INERTIA,):
        return target.inertia and not load.stand_in
    if not doubt.concerns:
        return False
    return needs_inertia or not target.inertia or doubt.kind is not DoubtKind.NOT_EXCITED


def _doubts(
    load: Load, limits: ErrorLimits, target: Target, *, needs_inertia: bool
) -> tuple[Doubt, ...]:
    """Doubts about the export of a load in the target's frame."""
    doubts = []
    if target.inertia and not load.stand_in and not load.body.is_physical:
        words = f"no real body has these numbers: {load.body.why_not_physical}"
        doubts.append(Doubt(DoubtKind.NOT_PHYSICAL, words))
    doubts += [
        replace(doubt, words=f"the estimate has a doubt: {doubt.words}", concerns=EVERYTHING)
        for doubt in load.verdict.doubts
        if _is_relevant(doubt, load, target, needs_inertia=needs_inertia)
    ]
    if needs_inertia and not load.stand_in and not load.knows_inertia:
        words = (
            "some of the ten inertial parameters were not excited by the motion and are unknown"
            " (`inertia='sphere'` writes the inertia of a sphere instead)"
        )
        doubts.append(Doubt(DoubtKind.NOT_EXCITED, words))
    if load.body.mass > target.heaviest:
        words = f"{load.body.mass:.4g} kg is more than any such arm carries, {target.heaviest:g} kg"
        doubts.append(Doubt(DoubtKind.IMPLAUSIBLE, words))
    if target.in_sensor_frame and load.verdict.has(DoubtKind.DRIFT_MOVES):
        words = "the zero of the sensor drifts: measure it again before use"
        doubts.append(Doubt(DoubtKind.DRIFT_MOVES, words))
    share = load.mass_error / load.body.mass
    if not share <= limits.mass:
        words = (
            f"the mass is known to +- {100 * share:.3g} % (95 %), more than"
            f" {100 * limits.mass:g} % allowed"
        )
        doubts.append(Doubt(DoubtKind.TOO_UNCERTAIN, words))
    if not load.com_error <= limits.com:
        words = (
            f"the centre of mass is known to +- {1e3 * load.com_error:.3g} mm (95 %),"
            f" more than {1e3 * limits.com:g} mm allowed"
        )
        doubts.append(Doubt(DoubtKind.TOO_UNCERTAIN, words))
    if target.holds_zero and load.bias is None:
        words = "the zero drift of the sensor was not measured in this frame; zeros are written"
        doubts.append(Doubt(DoubtKind.NOT_EXCITED, words))
    return tuple(doubts)
