"""`steelyard fleet build|identify|weigh|trend`: logs of many arms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard import _saved
from steelyard._computing import interruptible
from steelyard._units import NORMAL_95, rounded
from steelyard.cli.options import (
    FlangeOption,
    JsonFlag,
    LockOption,
    ReportOption,
    Verb,
    file_to_write,
    load_arm,
)
from steelyard.cli.output import Output, number
from steelyard.cli.terminal import INTERVAL, say
from steelyard.errors import InvalidSamples

if TYPE_CHECKING:
    from steelyard.fleet import Fleet
    from steelyard.fleet._rows import LogPayload
    from steelyard.fleet._trend import ArmTrend
    from steelyard.robot import RobotModel

_MAX_LINES_SHOWN = 20
_MIN_ERROR_STDS = 4.0  # of a payload unlike its load, in standard deviations,
_MIN_ERROR_KG = 0.1  # and in kilograms

app = typer.Typer(
    help="Processes the logs of many arms: models, payloads and changes over time.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

StoreArgument = Annotated[Path, typer.Argument(help="The folder that fleet build wrote.")]
WorkersOption = Annotated[
    str | None,
    typer.Option(
        help="Number of processes on this machine, or the address of a Dask cluster, as"
        " tcp://host:8786; one process for each core by default."
    ),
]
TableOption = Annotated[
    Path | None,
    file_to_write(
        "The table to write (.parquet, .csv).", "--output", "-o", endings=(".parquet", ".csv")
    ),
]


@app.command(cls=Verb)
@interruptible()
def build(
    catalogue: Annotated[
        str,
        typer.Argument(
            help="A table (.csv, .parquet), a folder or a pattern of logs, here or at an address"
            " such as s3://."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the store.")],
    robot: Annotated[
        str | None,
        typer.Option(
            help="The arm (bundled name, .urdf, .toml or model .json) where the catalogue has no"
            " column 'model'."
        ),
    ] = None,
    friction: Annotated[
        str | None, typer.Option(help="Name of a friction law, instead of those of the arms.")
    ] = None,
    lock: LockOption = None,
    flange: FlangeOption = None,
    workers: WorkersOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Reduces the logs of a catalogue that are new or have changed. Exit code 1 if any failed."""
    from steelyard.fleet import Fleet

    out = Output(as_json)
    try:
        with out.progress("reducing logs") as done:
            fleet = Fleet.build(
                catalogue,
                output,
                robot=_arm(robot, lock, flange),
                friction=friction,
                scheduler=_scheduler(workers),
                workers=_process_count(workers),
                progress=done,
            )
    except KeyboardInterrupt:
        out.complain(
            f"interrupted; the files in {output} are complete, and the same command continues from"
            " there"
        )
        raise typer.Exit(130) from None
    _show_build(out, fleet, output)


@app.command(cls=Verb)
@interruptible()
def identify(
    store: StoreArgument,
    since: Annotated[
        str | None, typer.Option(help="Only logs from this day on, as 2026-03-01.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only logs before this day.")] = None,
    workers: WorkersOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Fits the model of each arm to its empty logs. Exit code 1 if any must not be used."""
    from steelyard.fleet import Fleet

    out = Output(as_json)
    fleet = Fleet(store, scheduler=_scheduler(workers), workers=_process_count(workers))
    with out.progress("identifying arms") as done:
        models = fleet.identify(since=_day(since), until=_day(until), progress=done)
    facts: dict[str, Any] = {
        "models": {
            robot: {"made_from": list(model.made_from), "verdict": model.verdict.to_dict()}
            for robot, model in models.items()
        },
        "without_model": sorted(set(fleet.robots) - set(models)),
    }

    def show() -> None:
        say(f"{len(models)} of {len(fleet.robots)} arms have a model.")
        for robot, model in models.items():
            if model.verdict.doubts:
                out.verdict(model.verdict, before=f"{robot}: ")

    out.emit(facts, show)
    if not all(model.verdict.ok for model in models.values()):
        raise typer.Exit(1)


@app.command(cls=Verb)
@interruptible()
def weigh(
    store: StoreArgument,
    output: TableOption = None,
    workers: WorkersOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Weighs the payload of each log. Exit code 1 if any is in doubt or unlike its load."""
    from steelyard.fleet import Fleet
    from steelyard.fleet._rows import LogPayload

    out = Output(as_json)
    fleet = Fleet(store, scheduler=_scheduler(workers), workers=_process_count(workers))
    with out.progress("weighing") as done:
        payloads = fleet.weigh(progress=done)
    _write(payloads, LogPayload, output)
    odd = [each for each in payloads if not each.ok or _differs(each)]
    odd.sort(key=lambda each: -_error_stds(each))

    def show() -> None:
        say(f"{len(payloads)} logs weighed; {len(odd)} unlike their load, or in doubt.")
        if odd:
            names = ("arm", "log", "configured [kg]", "weighed", INTERVAL, "doubts")
            cells = [_payload_cells(each) for each in odd[:_MAX_LINES_SHOWN]]
            out.table("Furthest from what is configured", names, cells, words=(0, 1, 5))

    out.emit({"payloads": [asdict(each) for each in payloads]}, show, files={"Table": output})
    if odd:
        raise typer.Exit(1)


@app.command(cls=Verb)
@interruptible()
def trend(
    store: StoreArgument,
    rate: Annotated[
        float, typer.Option(help="Largest mean share of false alarms among all alarms.")
    ] = 0.05,
    output: TableOption = None,
    report: ReportOption = None,
    workers: WorkersOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Finds changes of friction, gains and payload over time. Exit code 1 if any is flagged."""
    from steelyard.fleet import Fleet
    from steelyard.fleet._rows import SeriesChange

    out = Output(as_json)
    fleet = Fleet(store, scheduler=_scheduler(workers), workers=_process_count(workers))
    with out.progress("comparing logs") as done:
        trends = fleet.trend(rate=rate, progress=done)
    with _saved.together():
        _write(trends.changes, SeriesChange, output)
        if report is not None:
            fleet.write_page(trends, report)
    flagged = [change for change in trends.changes if change.flagged]
    left_out = {arm.robot: arm.left_out for arm in trends.arms if arm.left_out}
    not_compared = {arm.robot: arm.not_compared for arm in trends.arms if arm.not_compared}

    def show() -> None:
        changes = "1 change is" if len(flagged) == 1 else f"{len(flagged)} changes are"
        say(
            f"{changes} flagged among {len(trends.changes)} series of {len(trends.arms)} arms. On"
            f" average, at most {100 * rate:g} % of flagged changes are false (Benjamini,"
            " Yekutieli)."
        )
        for change in flagged:
            say(f"{change.robot}: {change.words}")
        for words, robots in _not_compared(trends.arms).items():
            say(f"{', '.join(robots)}: {words}")
        _show_left_out(left_out)

    out.emit(
        {
            "flagged": [asdict(change) for change in flagged],
            "not_compared": not_compared,
            "left_out": left_out,
            "rate": rate,
        },
        show,
        files={"Table": output, "Report": report},
    )
    if flagged:
        raise typer.Exit(1)


@app.command(cls=Verb)
@interruptible()
def picks(
    shifts: Annotated[
        list[Path],
        typer.Argument(help="Shifts in the order of time (.json, from steelyard picks -o)."),
    ],
    rate: Annotated[
        float, typer.Option(help="Largest mean share of false alarms among all alarms.")
    ] = 0.05,
    output: TableOption = None,
    report: ReportOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Compares the picks of shifts, by part and gripper. Exit code 1 if something has changed."""
    from steelyard.fleet._picks import ShiftPart, pick_trends
    from steelyard.fleet._picks_page import pick_trends_page
    from steelyard.picking import Shift

    out = Output(as_json)
    names = [path.stem for path in shifts]
    if len(set(names)) < len(names):
        names = [str(path) for path in shifts]
    loaded = {name: Shift.load(path) for name, path in zip(names, shifts, strict=True)}
    trends = pick_trends(loaded, rate=rate)
    with _saved.together():
        _write(trends.rows, ShiftPart, output)
        if report is not None:
            pick_trends_page(trends).write(report)

    def show() -> None:
        for (tool, part), rows in trends.series.items():
            picked = sum(row.picks for row in rows)
            alarms = sum(row.alarms for row in rows)
            where = f" in {tool}" if tool else ""
            say(f"{part or 'picks'}{where}: {picked} in {len(rows)} shifts, {alarms} alarms")
        if not trends.changes:
            say("Too few shifts to test for changes.")
        for change in trends.flagged:
            say(f"{change.words[0].upper()}{change.words[1:]}.")

    facts = {
        "rows": [asdict(row) for row in trends.rows],
        "flagged": [asdict(change) for change in trends.flagged],
        "rate": rate,
    }
    out.emit(facts, show, files={"Table": output, "Report": report})
    if trends.flagged:
        raise typer.Exit(1)


def _arm(robot: str | None, lock: list[str] | None, flange: str | None) -> str | RobotModel | None:
    """The arm of --robot; its name alone where no option changes it."""
    if lock is None and flange is None:
        return robot
    if robot is None or Path(robot).suffix.lower() == ".json":
        raise InvalidSamples(
            "--lock and --flange are for an arm given by --robot, not for an identified one"
        )
    return load_arm(robot, lock, flange)


def _scheduler(workers: str | None) -> str | None:
    """The address in --workers; None where it is a number of processes or not given."""
    if workers is None or workers.isdecimal():
        return None
    if "://" not in workers:
        raise InvalidSamples(
            "--workers is a number of processes or an address, say 4 or tcp://host:8786;"
            f" got '{workers}'"
        )
    return workers


def _process_count(workers: str | None) -> int | None:
    """The number in --workers; None where it is an address or not given."""
    if workers is None or not workers.isdecimal():
        return None
    if int(workers) == 0:
        raise InvalidSamples("--workers 0: give at least one process")
    return int(workers)


def _day(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        day = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidSamples(f"a day is written as 2026-03-01; got '{text}'") from None
    if day.tzinfo:
        return day
    return day.replace(tzinfo=UTC)


def _show_build(out: Output, fleet: Fleet, store: Path) -> None:
    failed = [log for log in fleet.logs if not log.ok]
    clashes = fleet.clashes
    facts = {
        "store": store,
        **fleet.built,
        "robots": len(fleet.robots),
        "reasons": {log.file: log.reason for log in failed},
        "clashes": clashes,
    }

    def show() -> None:
        counts = ", ".join(f"{count} {name}" for name, count in fleet.built.items())
        say(f"{fleet.built.total()} logs of {len(fleet.robots)} arms: {counts}.")
        lines = [f"Unusable: {log.robot}, {log.file}: {log.reason}" for log in failed]
        lines += [f"Note: {words}." for words in clashes]
        for line in lines[:_MAX_LINES_SHOWN]:
            say(line)
        if len(lines) > _MAX_LINES_SHOWN:
            say(f"and {len(lines) - _MAX_LINES_SHOWN} more.")

    out.emit(facts, show, files={"Store": store})
    if fleet.built["failed"]:
        raise typer.Exit(1)


def _not_compared(arms: Iterable[ArmTrend]) -> dict[str, list[str]]:
    """Names of the arms that were not compared, or only in part, by the reason."""
    found: dict[str, list[str]] = {}
    for arm in arms:
        reason = arm.not_compared or arm.few_loaded
        if reason:
            found.setdefault(reason, []).append(arm.robot)
    return found


def _show_left_out(left_out: Mapping[str, Mapping[str, float]]) -> None:
    for robot, files in left_out.items():
        say(f"{robot}: left out, probably logs of another arm: {', '.join(files)}")


def _write(rows: Sequence[Any], kind: type[Any], output: Path | None) -> None:
    if output is not None:
        from steelyard.fleet._rows import to_table
        from steelyard.fleet._store import write_table

        write_table(to_table(rows, kind), output)


def _payload_cells(payload: LogPayload) -> tuple[str, ...]:
    return (
        payload.robot,
        payload.file,
        "-" if payload.load is None else number(payload.load),
        *rounded(payload.mass, NORMAL_95 * payload.mass_std),
        ", ".join(payload.doubts),
    )


def _error_stds(payload: LogPayload) -> float:
    """Distance of a payload from its load, in standard deviations; 0 without a load."""
    return abs(payload.error or 0.0) / max(payload.mass_std, 1e-9)


def _differs(payload: LogPayload) -> bool:
    error = abs(payload.error or 0.0)
    return _error_stds(payload) > _MIN_ERROR_STDS and error > _MIN_ERROR_KG
