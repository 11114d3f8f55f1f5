"""Questions before something is sent to a controller, and its answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import typer

from steelyard.cli.output import Output
from steelyard.cli.terminal import say
from steelyard.errors import InvalidTrajectory

if TYPE_CHECKING:
    from steelyard.live import MotionPlan, PayloadSetting, Proposal, StopReport


def motion_question(out: Output, *, yes: bool) -> Callable[[MotionPlan], bool]:
    """A function that shows a motion and asks in a terminal; elsewhere --yes is needed."""
    asked: list[MotionPlan] = []

    def confirm(plan: MotionPlan) -> bool:
        if not out.as_json:
            if asked:
                say(
                    "The arm, its tool or its program has changed since the question; the motion"
                    " now:"
                )
            for line in motion_lines(plan):
                say(line)
        asked.append(plan)
        if yes or (sys.stdin.isatty() and typer.confirm("Is the space around the arm free?")):
            return True
        raise InvalidTrajectory("nothing was moved: --yes moves the arm")

    return confirm


def motion_lines(plan: MotionPlan) -> tuple[str, ...]:
    """How long, how far, how fast and through which space a motion goes, and what it replaces."""
    extent = plan.extent
    joints = zip(plan.robot.joint_names, np.degrees(extent.travel), strict=True)
    low, high = extent.box
    box = ", ".join(
        f"{axis} {a:.2f} to {b:.2f}" for axis, a, b in zip("xyz", low, high, strict=True)
    )
    size = " x ".join(f"{x:.2f}" for x in high - low)
    lines = [
        f"{plan.robot.name} will move for {plan.trajectory.duration_s:.1f} s and come back.",
        f"Joints [deg]: {', '.join(f'{name} {x:.1f}' for name, x in joints)}.",
        f"Tool: at most {1e3 * extent.tool_speed:.0f} mm/s, through a box of {size} m ({box}).",
        f"It brakes within {plan.braking_s:.2f} s; Ctrl-C and `steelyard stop` stop it.",
        _surroundings(plan.obstacles),
    ]
    if plan.replaces:
        lines.append(f"It replaces {plan.replaces}.")
    return tuple(lines)


def _surroundings(obstacles: Sequence[str]) -> str:
    """What around the arm the motion was checked against."""
    if not obstacles:
        return (
            "The surroundings of the arm (floor, walls) were not checked; --limits describes them."
        )
    return (
        f"The arm keeps clear of {', '.join(obstacles)}; what it carries, and anything else around"
        " it, was not checked."
    )


def show_stop(report: StopReport) -> None:
    """Prints what was seen of an arm after a stop, beside the output."""
    typer.echo(f"{report.sentence[0].upper()}{report.sentence[1:]}.", err=True)


def payload_question(out: Output, *, yes: bool) -> Callable[[Proposal], bool]:
    """A function that shows a proposal and asks in a terminal; elsewhere --yes is needed."""

    def confirm(proposal: Proposal) -> bool:
        if not out.as_json:
            title = f"Payload of {proposal.controller} (inertia about the centre of gravity)"
            out.table(title, ("", "now", "new", "unit"), proposal.cells)
            if proposal.note:
                say(f"Note: {proposal.note}.")
        if yes:
            return True
        return sys.stdin.isatty() and not out.as_json and typer.confirm("Set it?")

    return confirm


def show_setting(out: Output, setting: PayloadSetting) -> None:
    """Prints what became of a proposal."""
    if out.as_json:
        return
    if setting.outcome is None:
        say("Nothing was sent; --yes sends it.")
        return
    words = setting.outcome.words
    say(f"{words[0].upper()}{words[1:]}.")
    if setting.history_file is not None:
        say(f"The payload before is in {setting.history_file} (--undo restores it).")
