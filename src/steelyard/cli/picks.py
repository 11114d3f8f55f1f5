"""`steelyard picks LOG --model MODEL`: what each pick of a shift weighed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard import _saved
from steelyard.cli import options
from steelyard.cli.output import Output, json_line, terminal_text
from steelyard.errors import InvalidRobot, SourceFailed, UnknownName

if TYPE_CHECKING:
    from steelyard.identification import DynamicModel
    from steelyard.live._picks_page import PicksPage
    from steelyard.payload import Part
    from steelyard.picking import EarlyAnswer, Pick, PickingOptions, Shift
    from steelyard.recording._columns import Requested
    from steelyard.report import Page
    from steelyard.robot import RobotModel

_TABLES = (".csv", ".parquet", ".jsonl", ".json")
_BIT = re.compile(r"(?P<column>.+):(?P<bit>\d+)")
_ALARM_TIMEOUT_S = 10.0
_LAST_ALARMS_TIMEOUT_S = 30.0
_MAX_PORT = 65535

ModelOption = Annotated[
    Path,
    typer.Option(
        "--model",
        help="The arm with its empty gripper (.json, from identify); with --dry the name or URDF of"
        " a robot is enough.",
    ),
]
PreviewModelOption = Annotated[
    Path, typer.Option("--model", help="The arm with its empty gripper (.json, from identify).")
]
GripperOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN[:BIT]",
        help="The column of the gripper: a digital output, a position, or a bit of a field of"
        " outputs. Default: the column 'gripper', else carries are found by rests.",
    ),
]
PartsOption = Annotated[
    Path | None,
    typer.Option(
        help="Table of parts (.csv): name, mass, tolerance [kg], cx, cy, cz, com_tolerance, size"
        " [m]."
    ),
]
ExpectOption = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="Parts of the table that are picked in turn."),
]
KnownOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PICK=MASS", help="A pick that was weighed, as 5=0.512 [kg]. May be repeated."
    ),
]
ClosedOption = Annotated[
    str,
    typer.Option(help="The value of the gripper that means closed: high, low, or auto to find it."),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(
        help="The value of the gripper between open and closed. Default: the middle of a log's two"
        " levels; 0.5 of a stream of zeros and ones."
    ),
]
FalseAlarmsOption = Annotated[
    float,
    typer.Option(min=1e-3, max=500.0, help="Stated rate of false alarms per 1,000 good picks."),
]
MarginOption = Annotated[
    float,
    typer.Option(
        min=0.0, help="Time that does not count after gripping and lifting, before placing [s]."
    ),
]
FollowFlag = Annotated[
    bool, typer.Option("--follow", help="Print one JSON object per pick and line.")
]
EarlyFlag = Annotated[
    bool,
    typer.Option(
        "--early",
        help="Print an early answer about each pick of a stream, too, 0.3 s into its lift.",
    ),
]
AlarmOption = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="A program to run at each alarm, with the pick as JSON on its input. It runs"
        " without a shell: for redirections write 'sh -c \"cat >> alarms.log\"'.",
    ),
]
PageOption = Annotated[
    str | None,
    typer.Option(
        metavar="[HOST:]PORT",
        help="Show the picks of a stream on a page in the browser, too: at this port or the next"
        " free one, 0 for any.",
    ),
]
PublishOption = Annotated[
    str | None,
    typer.Option(
        metavar="ros2://HOST[:PORT]",
        help="Publish each pick of a stream in ROS 2, too, as JSON on /picks and its status on"
        " /diagnostics: through a bridge, or ros2-node: for a node of this process.",
    ),
]


def command(
    ctx: typer.Context,
    log: Annotated[
        str,
        typer.Argument(help="A log of the arm at work, or a stream (ur://HOST, replay:FILE)."),
    ],
    model: ModelOption,
    gripper: GripperOption = None,
    parts: PartsOption = None,
    expect: ExpectOption = None,
    known: KnownOption = None,
    dry: Annotated[
        Path | None,
        typer.Option(help="A recording of the same path without parts, to subtract misfit."),
    ] = None,
    closed: ClosedOption = "auto",
    threshold: ThresholdOption = None,
    false_alarms: FalseAlarmsOption = 1.0,
    margin: MarginOption = 0.1,
    output: Annotated[
        Path | None,
        options.file_to_write(
            "The picks to write (.csv, .parquet, .jsonl, or all as .json).",
            "--output",
            "-o",
            endings=_TABLES,
        ),
    ] = None,
    report: options.ReportOption = None,
    follow: FollowFlag = False,
    early: EarlyFlag = False,
    seconds: Annotated[
        float, typer.Option(min=0.0, help="How long a stream is read [s]. Default: until Ctrl-C.")
    ] = float("inf"),
    record: Annotated[
        Path | None,
        options.file_to_write("A file for every row of a stream (.parquet).", "--record"),
    ] = None,
    on_alarm: AlarmOption = None,
    page: PageOption = None,
    publish: PublishOption = None,
    tool: Annotated[
        str, typer.Option(help="Name of the gripper, by which fleet picks compares shifts.")
    ] = "",
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    rate: options.RateOption = None,
    degrees: options.DegreesFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Weighs each pick of a shift: one part, two, none, or the wrong one. Exit code 1 at alarms."""
    from steelyard.io._parts import read_parts
    from steelyard.live._track import is_address
    from steelyard.report._picks import picks_page
    from steelyard.workflow._data import identified_arm
    from steelyard.workflow._picks import Picking

    out = Output(as_json)
    _require_effect(dry, record, seconds, page or publish, early=early, stream=is_address(log))
    asked = options.requested(column, joints, degrees=degrees, names=names, rate=rate)
    stated = asked
    asked, bit = _with_gripper(asked, gripper)
    how = picking_options(expect, known, closed, false_alarms, margin, bit)
    how = replace(how, tool=tool, threshold=threshold)
    table = () if parts is None else read_parts(parts)
    if is_address(log):
        replayed = log.startswith("replay:")
        tables = asked if replayed else stated
        arm = identified_arm(model)
        with (
            AlarmRunner(on_alarm) as runner,
            _opened_page(page) as shown,
            _publisher(publish) as send,
        ):
            stream = _Stream(
                gripper, tables, replayed, seconds, record, follow, early, as_json, shown, send
            )
            shift = _live(log, arm, table, how, stream, runner)
        make_page: Callable[[], Page] = partial(picks_page, shift)
    else:
        given, robot = _known_arm(model, dry)
        recording = options.read_requested(Path(log), asked, robot=robot)
        without = [] if dry is None else [options.read_requested(dry, asked, robot=robot)]
        picking = Picking.of(given, {log: recording}, table, how, dry=without)
        arm = picking.model
        shift = picking.shift
        make_page = picking.page
        with AlarmRunner(on_alarm) as runner:
            for pick in shift.alarms:
                runner.start(pick)
        if follow:
            _print_lines(shift.picks)
    if follow:
        _print_notes(shift)
    with _saved.together():
        if output is not None:
            write_shift(shift, output)
        whole_page = partial(_page, make_page, arm.robot, log)
        out.report(ctx, whole_page, [model, log, parts, dry], report=report)
    if not follow:
        facts = facts_of(shift) | {"file": output, "report": report}
        show = partial(_show, shift, lines=not is_address(log))
        out.emit(facts, show, files={"Picks": output, "Report": report})
    if shift.has_alarms:
        raise typer.Exit(1)


def _require_effect(
    dry: Path | None,
    record: Path | None,
    seconds: float,
    shown: str | None,
    *,
    early: bool,
    stream: bool,
) -> None:
    """Refuses options that a stream, or a log, would ignore."""
    if stream and dry is not None:
        raise UnknownName("--dry works with a log only: record the stream, then weigh the file")
    if not stream and (record is not None or seconds < float("inf")):
        raise UnknownName("--record and --seconds are for streams (ur://HOST), not for a log")
    if not stream and shown is not None:
        raise UnknownName(
            "--page and --publish are for streams (ur://HOST); a log has --report page.html"
        )
    if not stream and early:
        raise UnknownName("--early is for streams (ur://HOST); a log has both answers in -o")


@contextmanager
def _opened_page(text: str | None) -> Iterator[PicksPage | None]:
    """The page of a stream, which ends with it; None where none is requested."""
    if text is None:
        yield None
        return
    from steelyard.live._picks_page import PicksPage

    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > _MAX_PORT:
        raise SourceFailed(f"--page is [HOST:]PORT, say 8080; got '{text}'")
    with PicksPage(host=host or "127.0.0.1", port=int(port)) as page:
        typer.echo(f"The page: {page.url}", err=True)
        yield page


def _known_arm(model: Path, dry: Path | None) -> tuple[DynamicModel | RobotModel, RobotModel]:
    """The identified arm and its robot; a robot is enough for a path recorded without parts."""
    from steelyard.robot import load_robot
    from steelyard.workflow._data import identified_arm, is_robot

    if not is_robot(model):
        arm = identified_arm(model)
        return arm, arm.robot
    if dry is None:
        raise InvalidRobot(
            f"{model} is a robot, not an identified model: identify the empty arm first (steelyard"
            " identify), or record the same path without parts (--dry)"
        )
    robot = load_robot(str(model))
    return robot, robot


@contextmanager
def _publisher(address: str | None) -> Iterator[Callable[[Pick], None]]:
    """A function that publishes a pick, where that is requested."""
    if address is None:
        yield lambda pick: None
        return
    from steelyard.live import Ros2Controller, Ros2Publisher, source_of
    from steelyard.live._ros2_publisher import PICKS_TOPIC

    bridge = source_of(address)
    if not isinstance(bridge, Ros2Controller):
        raise UnknownName(f"--publish is ros2://HOST[:PORT] or ros2-node:, got '{address}'")
    with Ros2Publisher(bridge, topic=PICKS_TOPIC) as publisher:
        yield publisher.publish_pick


@dataclass(frozen=True)
class _Stream:
    """What happens with a stream."""

    gripper: str | None
    tables: Requested
    replayed: bool
    seconds: float
    record: Path | None
    follow: bool
    early: bool
    quiet: bool
    page: PicksPage | None
    publish: Callable[[Pick], None]


def _page(make_page: Callable[[], Page], robot: RobotModel, log: str) -> Page:
    """The report on a shift, with arm, log and date."""
    from steelyard.workflow._data import arm_words

    return make_page().with_subject(arm_words(robot), [Path(log).name])


def _live(
    source: str,
    model: DynamicModel,
    parts: tuple[Part, ...],
    how: PickingOptions,
    stream: _Stream,
    runner: AlarmRunner,
) -> Shift:
    """The picks of a stream, each printed as soon as it ends."""
    from steelyard.live._picks import PickStreamOptions, live_picks

    def on_pick(pick: Pick) -> None:
        if stream.follow:
            print(json_line(pick.row()), flush=True)
        elif not stream.quiet:
            print(terminal_text(pick.line), flush=True)
        if pick.is_alarm:
            runner.start(pick)
        stream.publish(pick)

    def on_early(early: EarlyAnswer) -> None:
        if stream.follow:
            print(json_line(early.row()), flush=True)
        elif not stream.quiet:
            print(terminal_text(early.line), flush=True)

    column = stream.gripper or "gripper"
    if match := _BIT.fullmatch(column):
        column = match["column"]
    if stream.replayed:
        column = "gripper"
    given = PickStreamOptions(
        gripper=column,
        seconds=stream.seconds,
        record=stream.record,
        tables=stream.tables,
        on_pick=on_pick,
        on_early=on_early if stream.early else None,
        page=stream.page,
        ends_at_interrupt=True,
    )
    return live_picks(source, model, parts=parts, options=how, stream=given)


def preview_command(
    dry: Annotated[Path, typer.Argument(help="A recording of the path without a part.")],
    model: PreviewModelOption,
    parts: Annotated[Path, typer.Option(help="Table of parts (.csv), as for steelyard picks.")],
    gripper: GripperOption = None,
    closed: ClosedOption = "auto",
    threshold: ThresholdOption = None,
    false_alarms: FalseAlarmsOption = 1.0,
    margin: MarginOption = 0.1,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    rate: options.RateOption = None,
    degrees: options.DegreesFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Says which faults of which parts would be noticed on a motion, before the shift."""
    from steelyard.io._parts import read_parts
    from steelyard.workflow._data import identified_arm
    from steelyard.workflow._picks import Picking

    arm = identified_arm(model)
    asked = options.requested(column, joints, degrees=degrees, names=names, rate=rate)
    asked, bit = _with_gripper(asked, gripper)
    how = replace(
        picking_options(None, None, closed, false_alarms, margin, bit), threshold=threshold
    )
    recording = options.read_requested(dry, asked, robot=arm.robot)
    found = Picking(arm, {str(dry): recording}, read_parts(parts), how).visible

    def show() -> None:
        for one in found:
            print(terminal_text(f"{one.sentence[0].upper()}{one.sentence[1:]}."))

    facts = {"faults": [asdict(one) for one in found], "false_alarms_per_1000": false_alarms}
    Output(as_json).emit(facts, show)


def _with_gripper(asked: Requested, gripper: str | None) -> tuple[Requested, int | None]:
    """The user's statements with the column of the gripper, and its bit."""
    if gripper is None:
        return asked, None
    bit = None
    if match := _BIT.fullmatch(gripper):
        gripper = match["column"]
        bit = int(match["bit"])
    if gripper == "gripper":  # its name in every table
        return asked, bit
    return replace(asked, columns={**asked.columns, "gripper": gripper}), bit


def picking_options(
    expect: str | None,
    known: list[str] | None,
    closed: str,
    false_alarms: float,
    margin: float,
    bit: int | None,
) -> PickingOptions:
    """The options of a command.

    Args:
        expect: names with commas between them
        known: as PICK=MASS
        closed: high, low or auto
        false_alarms: per 1,000 good picks
        margin: [s]
        bit: of the gripper's column
    """
    from steelyard.picking import PickingOptions

    masses = {}
    for name, mass in options.named_numbers(known, "--known is PICK=MASS, say 5=0.512").items():
        if not name.isdecimal():
            raise UnknownName(f"--known is PICK=MASS, say 5=0.512; '{name}' is no number of a pick")
        if int(name) in masses:
            raise UnknownName(f"--known gives the mass of pick {int(name)} twice")
        masses[int(name)] = mass
    if closed not in ("auto", "high", "low"):
        raise UnknownName(f"--closed is auto, high or low; got '{closed}'")
    return PickingOptions(
        false_alarms_per_1000=false_alarms,
        expect=tuple(name.strip() for name in expect.split(",")) if expect else (),
        known=masses,
        closed="high" if closed == "high" else "low" if closed == "low" else "auto",
        bit=bit,
        margin_s=margin,
    )


def write_shift(shift: Shift, path: Path) -> None:
    """Writes the picks of a shift: .csv, .parquet or .jsonl; everything as .json.

    Args:
        shift: to write
        path: of the file
    """
    ending = path.suffix.lower()
    if ending == ".json":
        shift.save(path)
    elif ending == ".jsonl":
        _saved.write_text(path, "".join(f"{json_line(pick.row())}\n" for pick in shift.picks))
    else:
        from steelyard.fleet._store import write_table

        write_table(shift.to_dataframe("pyarrow"), path)


class AlarmRunner:
    """Runs a user's command at each alarm, one after the other, while rows are read on.

    Args:
        command: as in a shell, without pipes; None for none
    """

    def __init__(self, command: str | None) -> None:
        self._command = command
        self._waiting: SimpleQueue[Pick | None] = SimpleQueue()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> AlarmRunner:
        if self._command is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Waits until the commands have ended, for a while."""
        if self._command is None:
            return
        self._waiting.put(None)
        self._thread.join(_LAST_ALARMS_TIMEOUT_S)
        if self._thread.is_alive():
            missing = max(self._waiting.qsize() - 1, 0)
            words = (
                f"warning: --on-alarm: '{self._command}' still runs, {missing} alarms wait for it"
            )
            print(words, file=sys.stderr)

    def start(self, pick: Pick) -> None:
        """Has the command run with a pick, and returns at once.

        Args:
            pick: with a fault
        """
        if self._command is not None:
            self._waiting.put(pick)

    def _run(self) -> None:
        while (pick := self._waiting.get()) is not None:
            run_at_alarm(self._command, pick)


def run_at_alarm(command: str | None, pick: Pick) -> None:
    """Runs a user's command with a pick as JSON on its input; says where it fails.

    Args:
        command: as in a shell, without pipes; None for none
        pick: with a fault
    """
    if command is None:
        return
    try:
        done = subprocess.run(
            shlex.split(command),
            input=json_line(pick.row()) + "\n",
            text=True,
            timeout=_ALARM_TIMEOUT_S,
            check=False,
        )
        problem = f"ended with {done.returncode}" if done.returncode else ""
    except (OSError, ValueError) as error:
        problem = f"could not be run: {error}"
    except subprocess.TimeoutExpired:
        problem = f"did not end within {_ALARM_TIMEOUT_S:g} s and was stopped"
    if problem:
        print(f"warning: --on-alarm, pick {pick.number}: '{command}' {problem}", file=sys.stderr)


def facts_of(shift: Shift) -> dict[str, Any]:
    """A shift for programs."""
    return {
        "picks": [pick.row() for pick in shift.picks],
        "counts": shift.counts,
        "alarms": [pick.number for pick in shift.alarms],
        "batches": [
            {
                "part": batch.part,
                "picks": batch.picks,
                "mass": batch.mass.value,
                "half_width": batch.mass.half_width,
                "scatter": batch.scatter,
                "alarm": batch.is_alarm,
            }
            for batch in shift.batches
        ],
        "false_alarms_per_1000": shift.false_alarms_per_1000,
        "notes": list(shift.notes),
    }


def _print_lines(picks: Iterable[Pick]) -> None:
    for pick in picks:
        print(json_line(pick.row()), flush=True)


def _print_notes(shift: Shift) -> None:
    """Prints remarks beside the lines for programs."""
    for note in shift.notes:
        typer.echo(f"Note: {options.with_options(note)}.", err=True)


def _show(shift: Shift, *, lines: bool) -> None:
    """Prints a line for each pick, unless they were printed, then the shift as a whole."""
    for pick in shift.picks if lines else ():
        print(terminal_text(pick.line))
    print()
    print(f"{shift.summary}.")
    for batch in shift.batches:
        print(terminal_text(f"{batch.words[0].upper()}{batch.words[1:]}."))
    for note in shift.notes:
        print(f"Note: {options.with_options(note)}.")
