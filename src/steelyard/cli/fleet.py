"""`steelyard fleet build|identify|weigh|trend`: thousands of logs of hundreds of arms."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard import saved
from steelyard._computing import interruptible
from steelyard._units import NORMAL_95
from steelyard.cli.options import (
    FlangeOption,
    JsonFlag,
    LockOption,
    ReportOption,
    load_arm,
    refuse_without_effect,
    require_targets,
)
from steelyard.cli.output import Output, number
from steelyard.errors import InvalidSamples, UnreadableFile

if TYPE_CHECKING:
    import pyarrow as pa

    from steelyard.fleet import Fleet
    from steelyard.robot import RobotModel

_NAMED = 20  # rows of a table on the screen


class _Step(StrEnum):
    """What to do with a fleet."""

    BUILD = "build"
    IDENTIFY = "identify"
    WEIGH = "weigh"
    TREND = "trend"


_USED_BY = {
    "output": (_Step.BUILD, _Step.WEIGH, _Step.TREND),
    "model": (_Step.BUILD,),
    "friction": (_Step.BUILD,),
    "lock": (_Step.BUILD,),
    "flange": (_Step.BUILD,),
    "since": (_Step.IDENTIFY,),
    "until": (_Step.IDENTIFY,),
    "rate": (_Step.TREND,),
    "report": (_Step.TREND,),
}


@interruptible()
def command(
    ctx: typer.Context,
    step: Annotated[
        _Step, typer.Argument(help="build reduces logs; the others work on the store.")
    ],
    source: Annotated[
        str,
        typer.Argument(
            metavar="CATALOGUE|STORE",
            help="build: a table (.csv, .parquet), a folder or a pattern of logs, here or at an"
            " address such "
            "as s3://; else the store.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="build: the store; weigh, trend: a table (.parquet, .csv)."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="build: an arm (bundled, .urdf, .toml or model .json) where the catalogue has"
            " none."
        ),
    ] = None,
    friction: Annotated[
        str | None,
        typer.Option(help="build: name of a friction law, instead of those of the arms."),
    ] = None,
    lock: LockOption = None,
    flange: FlangeOption = None,
    since: Annotated[
        str | None, typer.Option(help="identify: logs from that day on, as 2026-03-01.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="identify: logs before that day.")] = None,
    rate: Annotated[
        float,
        typer.Option(
            help="trend: false alarms among all alarms of the fleet, at most, on average."
        ),
    ] = 0.05,
    scheduler: Annotated[
        str | None,
        typer.Option(help="A Dask cluster, as tcp://host:8786; else the cores of this machine."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes on this machine; as many as cores by default."),
    ] = None,
    report: ReportOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Watches a fleet: reduces logs to a store, and finds models, payloads and changes from it.

    Exit code 1 for logs that failed, models not to be used, payloads unlike their load, and
    changes.
    """
    from steelyard.fleet import Fleet

    for name, steps in _USED_BY.items():
        if step not in steps:
            refuse_without_effect(ctx, f"on fleet {step}", name)
    out = Output(as_json)
    if step is _Step.BUILD:
        if output is None:
            raise UnreadableFile("steelyard fleet build needs -o: the folder of the store")
        try:
            with out.progress("reducing logs") as done:
                built = Fleet.build(
                    source,
                    output,
                    model=_arm(model, lock, flange),
                    friction=friction,
                    scheduler=scheduler,
                    workers=workers,
                    progress=done,
                )
        except KeyboardInterrupt:
            out.complain(
                f"stopped; what is in {output} is whole, and the same command goes on from there"
            )
            raise typer.Exit(130) from None
        _show_build(out, built, output)
        return
    if output is not None:
        if output.suffix.lower() not in (".parquet", ".csv"):
            raise UnreadableFile(f"{output}: a table is written as .parquet or .csv")
        require_targets([path for path in (output, report) if path is not None], [source])
    fleet = Fleet(source, scheduler=scheduler, workers=workers)
    if step is _Step.IDENTIFY:
        _identify(out, fleet, _day(since), _day(until))
    elif step is _Step.WEIGH:
        _weigh(out, fleet, output)
    else:
        _trend(out, fleet, output, rate, report)


def _arm(model: str | None, lock: list[str] | None, flange: str | None) -> str | RobotModel | None:
    """The arm of --model with what else is said of it; its name alone where nothing is."""
    if lock is None and flange is None:
        return model
    if model is None or Path(model).suffix.lower() == ".json":
        raise InvalidSamples(
            "--lock and --flange are for an arm given by --model, not for an identified one"
        )
    return load_arm(model, lock, flange)


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
    failed = [row for row in fleet.logs.to_pylist() if not row["ok"]]
    clashes = fleet.clashes
    facts = {
        "store": store,
        **fleet.built,
        "robots": len(fleet.robots),
        "reasons": {row["file"]: row["reason"] for row in failed},
        "clashes": clashes,
    }

    def show() -> None:
        counts = ", ".join(f"{count} {name}" for name, count in fleet.built.items())
        print(f"{fleet.built.total()} logs of {len(fleet.robots)} arms: {counts}.")
        said = [f"Of no use: {row['robot']}, {row['file']}: {row['reason']}" for row in failed]
        said += [f"Note: {words}." for words in clashes]
        print(
            "\n".join(said[:_NAMED])
            + (f"\nand {len(said) - _NAMED} more." if len(said) > _NAMED else "")
        )

    out.emit(facts, show, files={"Store": store})
    if fleet.built["failed"]:
        raise typer.Exit(1)


def _identify(out: Output, fleet: Fleet, since: datetime | None, until: datetime | None) -> None:
    with out.progress("identifying arms") as done:
        models = fleet.identify(since=since, until=until, progress=done)
    facts: dict[str, Any] = {
        "models": {
            robot: {"made_from": list(model.made_from), "verdict": model.verdict.to_dict()}
            for robot, model in models.items()
        },
        "without_model": sorted(set(fleet.robots) - set(models)),
    }
    doubted = {robot: model for robot, model in models.items() if model.verdict.doubts}

    def show() -> None:
        print(f"{len(models)} of {len(fleet.robots)} arms have a model.")
        for robot, model in doubted.items():
            out.verdict(model.verdict, before=f"{robot}: ")

    out.emit(facts, show)
    if not all(model.verdict.ok for model in models.values()):
        raise typer.Exit(1)


def _weigh(out: Output, fleet: Fleet, output: Path | None) -> None:
    with out.progress("weighing") as done:
        table = fleet.weigh(progress=done)
    _write(table, output)
    rows = table.to_pylist()
    odd = sorted(
        (row for row in rows if not row["ok"] or _unlike(row)), key=lambda row: -_times(row)
    )

    def show() -> None:
        print(f"{len(rows)} logs weighed; {len(odd)} unlike their load, or in doubt.")
        cells = [
            (
                *(str(row[name]) for name in ("robot", "file")),
                "-" if row["load"] is None else number(row["load"]),
                f"{row['mass']:.3f}",
                number(NORMAL_95 * row["mass_std"], 2),
                ", ".join(row["doubts"]),
            )
            for row in odd[:_NAMED]
        ]
        if cells:
            names = ("arm", "log", "configured [kg]", "weighed", "+-", "doubts")
            out.table("Furthest from what is configured", names, cells, words=(0, 1, 5))

    out.emit({"payloads": rows}, show, files={"Table": output})
    if odd:
        raise typer.Exit(1)


def _trend(
    out: Output, fleet: Fleet, output: Path | None, rate: float, report: Path | None
) -> None:
    from steelyard.fleet._rows import SeriesChange, to_table

    with out.progress("comparing logs") as done:
        trends = fleet.trend(rate=rate, progress=done)
    changes = trends.changes
    with saved.together():
        _write(to_table(changes, SeriesChange), output)
        if report is not None:
            fleet.write_page(trends, report)
    flagged = [change for change in changes if change.flagged]
    foreign = {arm.robot: arm.left_out for arm in trends.arms if arm.left_out}

    def show() -> None:
        tests = len(changes)
        arms = len(trends.arms)
        print(
            f"{len(flagged)} changes flagged among {tests} series of {arms} arms; of them at most"
        )
        print(f"{100 * rate:g} % are false alarms, on average (Benjamini, Yekutieli).")
        for change in flagged:
            print(f"{change.robot}: {change.words}")
        for robot, files in foreign.items():
            print(f"{robot}: left out, not of this arm: {', '.join(files)}")

    out.emit(
        {"flagged": [asdict(change) for change in flagged], "left_out": foreign, "rate": rate},
        show,
        files={"Table": output, "Report": report},
    )
    if flagged:
        raise typer.Exit(1)


def _write(table: pa.Table, output: Path | None) -> None:
    if output is not None:
        from steelyard.fleet._store import write_table

        write_table(table, output)


def _times(row: dict[str, Any]) -> float:
    """How many standard deviations a payload is from its load."""
    return float(abs(row["error"] or 0.0) / max(row["mass_std"], 1e-9))


def _unlike(row: dict[str, Any]) -> bool:
    return _times(row) > 4.0 and abs(row["error"]) > 0.1
