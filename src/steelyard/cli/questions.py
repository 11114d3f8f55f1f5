"""Questions before something is sent to a controller, and its answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from steelyard.cli.output import Output
from steelyard.errors import InvalidTrajectory

if TYPE_CHECKING:
    from steelyard.live import MotionPlan, PayloadSetting, Proposal


def motion_question(*, yes: bool) -> Callable[[MotionPlan], bool]:
    """A function that asks in a terminal whether the arm may move; elsewhere --yes is needed."""

    def confirm(plan: MotionPlan) -> bool:
        question = (
            f"{plan.robot.name} will move for {plan.trajectory.duration_s:.1f} s."
            " Is the space around it free?"
        )
        if yes or (sys.stdin.isatty() and typer.confirm(question)):
            return True
        raise InvalidTrajectory("nothing was moved: --yes moves the arm")

    return confirm


def payload_question(out: Output, *, yes: bool) -> Callable[[Proposal], bool]:
    """A function that shows a proposal and asks in a terminal; elsewhere --yes is needed."""

    def confirm(proposal: Proposal) -> bool:
        if not out.as_json:
            title = f"Payload of {proposal.controller} (inertia about the centre of gravity)"
            out.table(title, ("", "now", "new", "unit"), proposal.cells)
            if proposal.note:
                print(f"Note: {proposal.note}.")
        if yes:
            return True
        return sys.stdin.isatty() and not out.as_json and typer.confirm("Set it?")

    return confirm


def show_setting(out: Output, setting: PayloadSetting) -> None:
    """Prints the outcome of a proposal."""
    if out.as_json:
        return
    if not setting.sent:
        print("Nothing was sent; --yes sends it.")
        return
    print(f"Done: {setting.confirmation}.")
    if setting.undo_file is not None:
        print(f"The payload before is in {setting.undo_file} (--undo restores it).")
