"""Shared by the commands for live arms: options, a line that updates, questions before commands."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard._units import printable
from steelyard.cli.options import load_arm
from steelyard.cli.progress import print_above
from steelyard.cli.terminal import say
from steelyard.errors import SourceFailed

if TYPE_CHECKING:
    from steelyard.live import Event, LivePage, PageOptions, Source, Stream
    from steelyard.live._setup import TrackerSetup
    from steelyard.robot import RobotModel
    from steelyard.trajectory import FourierTrajectory

_MAX_PORT = 65535
SourceArgument = Annotated[
    str,
    typer.Argument(
        help="The arm, or a recording in its place: ur://HOST, ros2://HOST?tau=effort,"
        " franka://HOST or replay:FILE."
    ),
]
SecondsOption = Annotated[
    float, typer.Option(min=0.0, help="When to end [s]. Default: at Ctrl-C.", show_default=False)
]
LiveModelOption = Annotated[
    Path, typer.Option("--model", help="The identified empty arm (.json, from steelyard identify).")
]
AccuracyOption = Annotated[
    float, typer.Option(help="Half-width of the 95 % interval of the mass that is aimed for [%].")
]
TrackerOption = Annotated[
    str, typer.Option(help="Tracker: direct, or xu2024 from the package steelyard-papers.")
]
PageOption = Annotated[
    str | None,
    typer.Option(
        "--page",
        metavar="[HOST:]PORT[,URDF]",
        help="Show a page in the browser, at this port or the next free one (0: any), with the"
        " meshes of a URDF. With a HOST other than this machine's own, the page can stop the arm,"
        " but cannot set a payload.",
    ),
]
YesFlag = Annotated[
    bool, typer.Option("--yes", help="Do not ask before the arm moves or a payload is set.")
]
SpeedOption = Annotated[
    float, typer.Option(help="Largest speed of the tool [m/s]; a faster motion is slowed down.")
]
ReplaceFlag = Annotated[
    bool,
    typer.Option(
        "--replace", help="Let the motion replace a program that is running on the controller."
    ),
]
MotionLimitsOption = Annotated[
    Path | None,
    typer.Option(
        "--limits",
        help="Limits and surroundings of the arm (.toml, see docs/howto/design.md). Without this"
        " file nothing around the arm is checked.",
    ),
]
SerialOption = Annotated[
    str,
    typer.Option(
        help="Serial number of the arm. It is needed where the file or the controller has none.",
        show_default=False,
    ),
]
TransitionOption = Annotated[
    float,
    typer.Option(help="Time that the controller takes to change over to the new payload [s]."),
]
RatingOption = Annotated[
    float | None,
    typer.Option(help="Largest mass that the arm may carry [kg]. Default: that of its type."),
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
                say(words, flush=True)

        yield show, lambda event: say(event.words, flush=True)
        return
    from rich.live import Live
    from rich.text import Text

    cut = partial(Text, overflow="ellipsis", no_wrap=True)
    with Live(refresh_per_second=10) as live:
        yield (
            lambda words: live.update(cut(printable(words))),
            lambda event: print_above(live, event.words),
        )


def page_options(text: str, history_file: Path | None) -> PageOptions:
    """Place and look of a page.

    Args:
        text: as 8080, 0.0.0.0:8080 or 8080,arm.urdf
        history_file: of the payloads that are set on the page
    """
    from steelyard.live import PageOptions

    place, _, urdf = text.partition(",")
    host, _, port = place.rpartition(":")
    if not port.isdecimal() or int(port) > _MAX_PORT:
        raise SourceFailed(f"--page is [HOST:]PORT[,URDF], say 8080; got '{text}'")
    mesh_file = Path(urdf) if urdf else None
    return PageOptions(
        urdf=mesh_file, host=host or "127.0.0.1", port=int(port), history_file=history_file
    )


@contextmanager
def opened_page(
    text: str | None,
    source: Source,
    setup: Callable[[Stream], TrackerSetup],
    *,
    history_file: Path | None,
) -> Iterator[LivePage | None]:
    """A page for the rows of a source, before they come; None where none is requested.

    Args:
        text: value of --page
        source: of the rows
        setup: what is known about a stream of the source
        history_file: of the payloads that are set on the page
    """
    if text is None:
        yield None
        return
    from steelyard.live import LivePage, Stream

    options = page_options(text, history_file)
    with Stream(source) as probe:
        known = setup(probe)
    with LivePage(known, source, options) as page:
        typer.echo(f"The page: {page.url}", err=True)
        yield page


def undo_file(output: Path | None) -> Path | None:
    """The history beside the file of a payload, for `set-payload --undo`."""
    if output is None:
        return None
    return output.with_suffix(".undo.json")


def stay(page: LivePage | None) -> None:
    """Keeps a page open until Enter is pressed at the terminal."""
    if page is not None and sys.stdin.isatty():
        with suppress(KeyboardInterrupt, EOFError):
            input("The page stays open; Enter closes it. ")


def arm_and_motion(
    path: Path,
    robot: str | RobotModel | None,
    lock: list[str] | None = None,
    flange: str | None = None,
) -> tuple[RobotModel, FourierTrajectory]:
    """The motion in a file and its arm: given, found by name, or named in the file."""
    from steelyard import _saved
    from steelyard.errors import InvalidTrajectory
    from steelyard.robot import robot_names
    from steelyard.trajectory import FourierTrajectory

    core = FourierTrajectory.load(path)
    content = _saved.read(path)
    named = str(content.get("robot") or "")
    if robot is None and not named:
        raise InvalidTrajectory(f"{path} does not say which arm it is for: give --robot")
    if robot is None and named not in robot_names():
        raise InvalidTrajectory(
            f"{path} is a motion for {named}, which is not a bundled arm: give its file with"
            " --robot"
        )
    if isinstance(robot, str | None):
        arm = load_arm(robot or named, lock, flange)
    else:
        arm = robot
    if named and arm.name != named:
        raise InvalidTrajectory(f"{path} is a motion for {named}, not for {arm.name}")
    serial = str(content.get("serial") or "")
    if serial and arm.serial and serial != arm.serial:
        raise InvalidTrajectory(f"{path} is a motion for number {serial}, not for {arm.serial}")
    if serial:
        arm = arm.with_serial(serial)
    if core.n != arm.n:
        raise InvalidTrajectory(f"{path} moves {core.n} joints, {arm.name} has {arm.n}")
    return arm, core
