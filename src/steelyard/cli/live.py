"""Shared by the commands for live arms: options, a line that updates, questions before commands."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from steelyard._units import NORMAL_95
from steelyard.cli.options import load_arm

if TYPE_CHECKING:
    from steelyard.live import Event, LiveWeigher, Snapshot, Source
    from steelyard.live._page_process import PageProcess
    from steelyard.robot import RobotModel
    from steelyard.trajectory import FourierTrajectory

SourceArgument = Annotated[
    str, typer.Argument(help="ur://HOST, ros2://HOST?tau=effort, franka://HOST or replay:FILE.")
]
SNAPSHOT_STEP_S = {False: 0.1, True: 1 / 30}
"""Time between two snapshots without a page and with one, [s]."""

SecondsOption = Annotated[
    float, typer.Option(help="How long [s]; until Ctrl-C by default.", show_default=False)
]
LiveModelOption = Annotated[
    Path, typer.Option("--model", help="The identified empty arm (.json, from steelyard identify).")
]
AccuracyOption = Annotated[float, typer.Option(help="Requested 95 % half-width of the mass [%].")]
PageFlag = Annotated[bool, typer.Option("--page", help="Show it on a page in the browser, too.")]
HostOption = Annotated[
    str,
    typer.Option(
        help="Where the page is served; on another address than this machine's own it only shows."
    ),
]
PortOption = Annotated[
    int,
    typer.Option(
        min=0, max=65535, help="Of the page; the next free one where it is taken, 0 for any."
    ),
]
UrdfOption = Annotated[
    Path | None,
    typer.Option(help="The arm's URDF, whose meshes the page shows; capsules by default."),
]
DarkFlag = Annotated[bool, typer.Option("--dark", help="A dark page.")]
YesFlag = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
SpeedOption = Annotated[
    float, typer.Option(help="Largest speed of the tool [m/s]; a faster motion is slowed down.")
]
ReplaceFlag = Annotated[
    bool, typer.Option("--replace", help="Let the motion replace a program that runs.")
]
TransitionOption = Annotated[float, typer.Option(help="In which the controller changes over [s].")]
RatingOption = Annotated[
    float | None,
    typer.Option(help="What the arm may carry [kg]; by the kind of arm by default."),
]


@contextmanager
def updating_line(
    *, quiet: bool
) -> Iterator[tuple[Callable[[str], None], Callable[[Event], None]]]:
    """Functions that show a line, once per second outside a terminal, and an event."""
    if quiet:
        yield lambda words: None, lambda event: None
        return
    if not sys.stdout.isatty():
        due_s = 0.0

        def show(words: str) -> None:
            nonlocal due_s
            if time.monotonic() >= due_s:
                due_s = time.monotonic() + 1.0
                print(words, flush=True)

        yield show, lambda event: print(event.words, flush=True)
        return
    from rich.live import Live
    from rich.text import Text

    with Live(refresh_per_second=10) as live:
        yield (
            lambda words: live.update(Text(words, overflow="ellipsis", no_wrap=True)),
            lambda event: live.console.print(event.words, markup=False, highlight=False),
        )


@contextmanager
def opened_page(
    weigher: LiveWeigher,
    source: Source,
    *,
    is_requested: bool,
    host: str,
    port: int,
    urdf: Path | None,
    dark: bool,
    kept: Path | None,
) -> Iterator[PageProcess | None]:
    """A page that shows a weigher's snapshots; None if it was not requested. Prints its address."""
    if not is_requested:
        yield None
        return
    from steelyard.live._page_process import PageOptions, PageProcess

    options = PageOptions(urdf=urdf, host=host, port=port, dark=dark, kept=kept)
    with PageProcess(weigher, source, options) as page:
        typer.echo(f"The page: {page.url}", err=True)
        yield page


def stay(page: PageProcess | None) -> None:
    """Keeps a page open until Enter is pressed at the terminal."""
    if page is not None and sys.stdin.isatty():
        with suppress(KeyboardInterrupt, EOFError):
            input("The page stays open; Enter closes it. ")


def show_snapshots(snapshots: Iterable[Snapshot], accuracy: float, *, quiet: bool) -> None:
    """Shows snapshots in the terminal while they come."""
    with updating_line(quiet=quiet) as (show, tell):
        for snapshot in snapshots:
            for event in snapshot.events:
                tell(event)
            show(_line_of(snapshot, accuracy))


def _line_of(snapshot: Snapshot, accuracy: float) -> str:
    """A snapshot in one line; with a wrist sensor, with the force of a contact."""
    from steelyard.live._words import progress_words

    rows = f"{snapshot.rows} rows, {snapshot.missing} missing, {snapshot.dropped} dropped"
    if snapshot.waiting:
        waiting = f"waiting: {snapshot.waiting}; "
    else:
        waiting = ""
    if snapshot.payload is None:
        return f"{waiting}{rows}"
    mass = snapshot.payload.body.mass
    half = NORMAL_95 * snapshot.payload.std[0]
    if not np.isfinite(half):
        return f"{waiting}mass unknown; {rows}"
    if snapshot.payload.verdict.ok:
        trusted = ""
    else:
        trusted = "; do not use it yet"
    known = f"{mass:.3f} +- {half:.3f} kg, {progress_words(snapshot, accuracy)}"
    return f"{waiting}{known}{trusted}; {rows}"


def arm_and_motion(
    path: Path,
    robot: str | RobotModel | None,
    lock: list[str] | None = None,
    flange: str | None = None,
) -> tuple[RobotModel, FourierTrajectory]:
    """The motion in a file and its arm: given, found by name, or named in the file."""
    from steelyard import _saved
    from steelyard.errors import InvalidTrajectory
    from steelyard.trajectory import FourierTrajectory

    core = FourierTrajectory.load(path)
    content = _saved.read(path)
    named = str(content.get("robot") or "")
    if robot is None and not named:
        raise InvalidTrajectory(f"{path} does not say which arm it is for: give --robot")
    if isinstance(robot, str | None):
        arm = load_arm(robot or named, lock, flange)
    else:
        arm = robot
    if named and arm.name != named:
        raise InvalidTrajectory(f"{path} is a motion for {named}, not for {arm.name}")
    if core.n != arm.n:
        raise InvalidTrajectory(f"{path} moves {core.n} joints, {arm.name} has {arm.n}")
    return arm, core
