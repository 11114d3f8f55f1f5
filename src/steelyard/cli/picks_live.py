"""`steelyard picks-live SOURCE --model MODEL`: what each pick of a running cell weighs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options
from steelyard.cli.output import json_line
from steelyard.cli.picks import (
    GRIPPER_BIT,
    PICKS_HEAD,
    AlarmOption,
    AlarmRunner,
    ExpectOption,
    FalseAlarmsOption,
    FollowFlag,
    IdentifiedModelOption,
    KnownOption,
    MarginOption,
    OutputOption,
    PartsOption,
    ShiftFiles,
    ToolOption,
    finish,
    picking_options,
    with_gripper,
    with_subject,
)
from steelyard.cli.terminal import say
from steelyard.errors import SourceFailed, UnknownName

if TYPE_CHECKING:
    from steelyard.live import PicksPage
    from steelyard.picking import EarlyAnswer, Pick

_MAX_PORT = 65535

StreamGripperOption = Annotated[
    str | None,
    typer.Option(
        "--gripper",
        metavar="COLUMN[:BIT]",
        help="The column of the gripper: a digital output, a position, or a bit of a field of"
        " outputs. Default: the column 'gripper'.",
    ),
]
StreamClosedOption = Annotated[
    str, typer.Option("--closed", help="The value of the gripper that means closed: high or low.")
]
StreamThresholdOption = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        help="The value of the gripper between open and closed. Default: 0.5, for a gripper that"
        " sends zeros and ones.",
    ),
]
EarlyFlag = Annotated[
    bool,
    typer.Option(
        "--early",
        help="Also print an early answer about each pick, 0.3 s after the lift has begun.",
    ),
]
PageOption = Annotated[
    str | None,
    typer.Option(
        metavar="[HOST:]PORT",
        help="Show the picks on a page in the browser, at this port or the next free one (0: any).",
    ),
]
PublishOption = Annotated[
    str | None,
    typer.Option(
        metavar="ros2://HOST[:PORT]",
        help="Publish each pick in ROS 2, as JSON on /picks with its status on /diagnostics:"
        " through a bridge at this address, or as a node of this process with ros2-node:.",
    ),
]


def command(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(help="The arm at work: ur://HOST, or replay:FILE.")],
    model: IdentifiedModelOption,
    closed: StreamClosedOption,
    gripper: StreamGripperOption = None,
    parts: PartsOption = None,
    expect: ExpectOption = None,
    known: KnownOption = None,
    threshold: StreamThresholdOption = None,
    false_alarms: FalseAlarmsOption = 1.0,
    margin: MarginOption = 0.1,
    output: OutputOption = None,
    report: options.ReportOption = None,
    follow: FollowFlag = False,
    early: EarlyFlag = False,
    seconds: Annotated[
        float | None, typer.Option(min=0.0, help="When to end [s]. Default: at Ctrl-C.")
    ] = None,
    record: Annotated[
        Path | None,
        options.file_to_write(
            "A file for every row (.parquet).", "--record", endings=(".parquet",)
        ),
    ] = None,
    on_alarm: AlarmOption = None,
    page: PageOption = None,
    publish: PublishOption = None,
    tool: ToolOption = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    rate: options.RateOption = None,
    degrees: options.DegreesFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Weighs each pick of a running cell as soon as the gripper opens. Exit code 1 at alarms."""
    from steelyard.io._parts import read_parts
    from steelyard.live import PickStreamOptions, live_picks
    from steelyard.live._track import is_address
    from steelyard.report._picks import picks_page
    from steelyard.workflow._data import identified_arm

    if not is_address(source):
        raise UnknownName(
            f"{source} is no address as ur://HOST: weigh the picks of a log with steelyard picks,"
            f" or replay it with replay:{source}"
        )
    stated = options.requested(column, joints, degrees=degrees, names=names, rate=rate)
    renamed, bit = with_gripper(stated, gripper)
    how = picking_options(expect, known, closed, false_alarms, margin, bit)
    how = replace(how, tool=tool or "", threshold=threshold)
    table = () if parts is None else read_parts(parts)
    arm = identified_arm(model)
    if source.startswith("replay:"):
        gripper_column = "gripper"  # its name once the file is read
        tables = renamed
    else:
        gripper_column = _column_of(gripper)
        tables = stated
    printer = _Printer(follow=follow, quiet=as_json)
    with (
        AlarmRunner(on_alarm) as runner,
        _opened_page(page) as shown,
        _publisher(publish) as send,
    ):

        def on_pick(pick: Pick) -> None:
            printer.show(pick)
            if pick.is_alarm:
                runner.start(pick)
            send(pick)

        stream = PickStreamOptions(
            gripper=gripper_column,
            seconds=float("inf") if seconds is None else seconds,
            record=record,
            tables=tables,
            on_pick=on_pick,
            on_early=printer.show if early else None,
            page=shown,
            ends_at_interrupt=True,
        )
        shift = live_picks(source, arm, parts=table, options=how, stream=stream)
    files = ShiftFiles(output, report, [model, source, parts])
    make_page = partial(with_subject, partial(picks_page, shift), arm.robot, source)
    finish(ctx, shift, make_page, files, with_picks=False, with_summary=not follow)


def _column_of(gripper: str | None) -> str:
    """The column of the gripper in a stream, without its bit."""
    if gripper is None:
        return "gripper"
    if match := GRIPPER_BIT.fullmatch(gripper):
        return match["column"]
    return gripper


@dataclass
class _Printer:
    """Prints answers as they come: for programs, for people, or not at all.

    Attributes:
        follow: whether programs read them
        quiet: whether people see none
        has_head: whether the head of the lines was printed
    """

    follow: bool
    quiet: bool
    has_head: bool = False

    def show(self, answer: Pick | EarlyAnswer) -> None:
        """Prints one answer."""
        if self.follow:
            print(json_line(answer.row()._asdict()), flush=True)
        elif not self.quiet:
            if not self.has_head:
                say(PICKS_HEAD)
                self.has_head = True
            say(answer.line, flush=True)


@contextmanager
def _opened_page(text: str | None) -> Iterator[PicksPage | None]:
    """The page of a stream, which ends with it; None where none is requested."""
    if text is None:
        yield None
        return
    from steelyard.live import PicksPage

    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > _MAX_PORT:
        raise SourceFailed(f"--page is [HOST:]PORT, say 8080; got '{text}'")
    with PicksPage(host=host or "127.0.0.1", port=int(port)) as page:
        typer.echo(f"The page: {page.url}", err=True)
        yield page


@contextmanager
def _publisher(address: str | None) -> Iterator[Callable[[Pick], None]]:
    """A function that publishes a pick, where that is requested."""
    if address is None:
        yield lambda pick: None
        return
    from steelyard.live import source_of
    from steelyard.live._ros2_publisher import PICKS_TOPIC

    try:
        opened = source_of(address).publisher(PICKS_TOPIC)
    except UnknownName as error:
        raise UnknownName(
            f"--publish is ros2://HOST[:PORT] or ros2-node:, got '{address}'"
        ) from error
    with opened as publisher:
        yield publisher.publish_pick
