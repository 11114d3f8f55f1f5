"""`steelyard picks LOG --model MODEL`: what each pick of a shift weighed; and a preview."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard import _saved
from steelyard._units import printable
from steelyard.cli import options
from steelyard.cli.output import Output, json_line
from steelyard.cli.terminal import say
from steelyard.errors import InvalidRobot, UnknownName

if TYPE_CHECKING:
    from steelyard.identification import DynamicModel
    from steelyard.picking import Pick, PickingOptions, Shift
    from steelyard.recording._columns import Requested
    from steelyard.report import Page
    from steelyard.robot import RobotModel

PICKS_HEAD = (
    f"{'pick':>4}  {'closed at':>10}  {'mass +- (95 %)':<19}  (relative to other picks)  decision"
)
"""Head of the lines of picks (`Pick.line`) and of early answers."""

_TABLES = (".csv", ".parquet", ".jsonl", ".json")
GRIPPER_BIT = re.compile(r"(?P<column>.+):(?P<bit>\d+)")
_ALARM_TIMEOUT_S = 10.0
_LAST_ALARMS_TIMEOUT_S = 30.0

ModelOption = Annotated[
    Path,
    typer.Option(
        "--model",
        help="The arm with its empty gripper (.json, from identify). With --dry a bundled name or"
        " a URDF is enough.",
    ),
]
IdentifiedModelOption = Annotated[
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
        help="The value of the gripper between open and closed. Default: the middle of its two"
        " levels."
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
OutputOption = Annotated[
    Path | None,
    options.file_to_write(
        "The picks to write (.csv, .parquet, .jsonl, or all as .json).",
        "--output",
        "-o",
        endings=_TABLES,
    ),
]
ToolOption = Annotated[
    str | None,
    typer.Option(
        help="Name of the gripper. steelyard fleet picks compares shifts with the same gripper."
    ),
]
FollowFlag = Annotated[
    bool,
    typer.Option("--follow", help="Print one JSON object for each pick, on a line of its own."),
]
AlarmOption = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="A program to run at each alarm; it reads the pick as JSON from its standard input."
        " No shell is used: for redirections write 'sh -c \"cat >> alarms.log\"'.",
    ),
]


def command(
    ctx: typer.Context,
    log: Annotated[str, typer.Argument(help="A log of the arm at work.")],
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
    output: OutputOption = None,
    report: options.ReportOption = None,
    follow: FollowFlag = False,
    on_alarm: AlarmOption = None,
    tool: ToolOption = None,
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
    from steelyard.workflow._picks import Picking

    if is_address(log):
        raise UnknownName(f"{log} is a stream: weigh its picks with steelyard picks-live")
    asked = options.requested(column, joints, degrees=degrees, names=names, rate=rate)
    asked, bit = with_gripper(asked, gripper)
    how = picking_options(expect, known, closed, false_alarms, margin, bit)
    how = replace(how, tool=tool or "", threshold=threshold)
    table = () if parts is None else read_parts(parts)
    given, robot = _known_arm(model, dry)
    recording = options.read_requested(Path(log), asked, robot=robot)
    without = [] if dry is None else [options.read_requested(dry, asked, robot=robot)]
    picking = Picking.of(given, {log: recording}, table, how, dry=without)
    shift = picking.shift
    with AlarmRunner(on_alarm) as runner:
        for pick in shift.alarms:
            runner.start(pick)
    if follow:
        for pick in shift.picks:
            print(json_line(pick.row()._asdict()), flush=True)
    files = ShiftFiles(output, report, [model, log, parts, dry])
    page = partial(with_subject, picking.page, picking.model.robot, log)
    finish(ctx, shift, page, files, with_picks=not follow, with_summary=not follow)


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


def with_subject(make_page: Callable[[], Page], robot: RobotModel, source: str) -> Page:
    """The report on a shift, with arm, source and date.

    Args:
        make_page: makes the report
        robot: at work
        source: log or stream
    """
    from steelyard.workflow._data import arm_words

    return make_page().with_subject(arm_words(robot), [Path(source).name])


def preview_command(
    dry: Annotated[Path, typer.Argument(help="A recording of the path without a part.")],
    model: IdentifiedModelOption,
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
    asked, bit = with_gripper(asked, gripper)
    how = replace(
        picking_options(None, None, closed, false_alarms, margin, bit), threshold=threshold
    )
    recording = options.read_requested(dry, asked, robot=arm.robot)
    found = Picking(arm, {str(dry): recording}, read_parts(parts), how).visible

    def show() -> None:
        for one in found:
            say(f"{one.sentence[0].upper()}{one.sentence[1:]}.")

    facts = {"faults": [asdict(one) for one in found], "false_alarms_per_1000": false_alarms}
    Output(as_json).emit(facts, show)


def with_gripper(asked: Requested, gripper: str | None) -> tuple[Requested, int | None]:
    """The user's statements with the column of the gripper, and its bit.

    Args:
        asked: what the user says about the columns
        gripper: its column, as COLUMN or COLUMN:BIT
    """
    if gripper is None:
        return asked, None
    bit = None
    if match := GRIPPER_BIT.fullmatch(gripper):
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
        _saved.write_text(
            path, "".join(f"{json_line(pick.row()._asdict())}\n" for pick in shift.picks)
        )
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
            input=json_line(pick.row()._asdict()) + "\n",
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
        "picks": [pick.row()._asdict() for pick in shift.picks],
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


@dataclass(frozen=True)
class ShiftFiles:
    """The files of a command on picks.

    Attributes:
        output: the picks to write
        report: the page to write
        read: what was read, for the page
    """

    output: Path | None
    report: Path | None
    read: list[Path | str | None]


def finish(
    ctx: typer.Context,
    shift: Shift,
    page: Callable[[], Page],
    files: ShiftFiles,
    *,
    with_picks: bool,
    with_summary: bool,
) -> None:
    """Writes the files of a shift, and prints what was not printed before; exits 1 at alarms.

    Args:
        ctx: of the command
        shift: to write and print
        page: makes the report
        files: to write
        with_picks: whether a line for each pick is printed
        with_summary: whether the shift as a whole is printed, besides its notes
    """
    out = Output(ctx.params["as_json"])
    if not with_summary:
        for note in shift.notes:
            words = f"Note: {options.with_options(note)}."
            typer.echo(printable(words, sys.stderr), err=True)
    with _saved.together():
        if files.output is not None:
            write_shift(shift, files.output)
        out.report(ctx, page, files.read, report=files.report)
    if with_summary:
        facts = facts_of(shift) | {"file": files.output, "report": files.report}
        written = {"Picks": files.output, "Report": files.report}
        out.emit(facts, partial(_show, shift, with_picks=with_picks), files=written)
    if shift.has_alarms:
        raise typer.Exit(1)


def _show(shift: Shift, *, with_picks: bool) -> None:
    """Prints a line for each pick, unless they were printed, then the shift as a whole."""
    if with_picks and shift.picks:
        say(PICKS_HEAD)
        for pick in shift.picks:
            say(pick.line)
        say()
    say(f"{shift.summary}.")
    for batch in shift.batches:
        say(f"{batch.words[0].upper()}{batch.words[1:]}.")
    for note in shift.notes:
        say(f"Note: {options.with_options(note)}.")
