"""What verbs share about reports: the option, every setting of a run, quality, and writing the files."""

from __future__ import annotations

import hashlib
import platform
import shlex
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.output import in_a_folder

if TYPE_CHECKING:
    from steelyard.identification.feasible import FeasibleArm
    from steelyard.inertia import InertialParameters
    from steelyard.quality import QualityReport
    from steelyard.report import Page
    from steelyard.robot import RobotModel
    from steelyard.workflow.arm import Identification
    from steelyard.workflow.data import Run
    from steelyard.workflow.payload import Weighing
    from steelyard.workflow.stream import OnlineWeighing


ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report", callback=in_a_folder, help="Where a page that shows and explains it goes (.html)."
    ),
]

_OF_THE_SCREEN = ("as_json", "report", "picture")
_PACKAGES = ("steelyard", "numpy", "scipy", "pin", "mujoco", "plotly")


def run_settings(ctx: typer.Context, files: Iterable[Path | str | None]) -> dict[str, str]:
    """Every setting of a run, the versions of what it used, and digests of the files that it read.

    Args:
        ctx: of the verb
        files: that were read; names of bundled arms and None are passed over
    """
    settings = {"command": shlex.join(["steelyard", *sys.argv[1:]])}
    for name, value in ctx.params.items():
        if name not in _OF_THE_SCREEN:
            settings[f"--{name.replace('_', '-')}"] = _words(value)
    settings |= _versions()
    for file in dict.fromkeys(str(file) for file in files if file is not None):
        if Path(file).is_file():
            settings[f"sha256 of {file}"] = _digest(Path(file))
    settings["written"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return settings


def write_report(page: Page, report: Path | None, picture: Path | None = None) -> None:
    """Writes a page and the picture of it, where they are wanted.

    Args:
        page: what it says
        report: where the page goes
        picture: where the picture goes
    """
    from steelyard.drawing import save_picture
    from steelyard.report import write_page

    if picture is not None:
        save_picture(page.picture, picture, title=page.title, words=page.answer)
    if report is not None:
        write_page(page, report)


def identification_report(
    found: Identification, bodies: FeasibleArm | None, *, settings: Mapping[str, str]
) -> Page:
    """The page of an identified arm; it draws the first recording that it was not fitted to.

    Args:
        found: the arm and its runs
        bodies: the nearest real bodies, where they were asked for
        settings: of the run
    """
    from steelyard.report.identification import identification_page

    names = _short_names(found.runs)
    fitted = {run.name for run in found.fitted}
    page = identification_page(
        found.model,
        {names[run]: run.ready for run in found.fitted},
        {names[run]: run.ready for run in found.predicted if run.name not in fitted},
        notes=[
            f"Drives: {found.gains_from}.",
            *([] if bodies is None else [f"Real bodies: {bodies.status}"]),
        ],
        doubts=[doubt.words for doubt in found.model.verdict.doubts if not doubt.blocks],
        settings=settings,
    )
    return page.with_quality(_qualities(found.runs, found.model.robot))


def payload_report(
    found: Weighing, *, settings: Mapping[str, str], truth: InertialParameters | None = None
) -> Page:
    """The page of a weighed payload.

    Args:
        found: the payload and its runs
        settings: of the run, as `run_settings` gives them
        truth: where the payload is known
    """
    from steelyard.report.payload import payload_page

    page = payload_page(
        found.model,
        found.payload,
        found.runs[0].ready,
        truth=truth,
        others={name: answer for name, answer in found.methods.items() if not isinstance(answer, str)},
        settings=settings,
    )
    return page.with_quality(_qualities(found.runs, found.model.robot))


def online_report(found: OnlineWeighing, *, settings: Mapping[str, str]) -> Page:
    """The page of a payload that was weighed sample by sample, with the curve.

    Args:
        found: the payload and its run
        settings: of the run
    """
    from steelyard.report import Section
    from steelyard.report.online import online_plot
    from steelyard.report.payload import payload_page
    from steelyard.workflow.data import drive_for, preparation_for

    model, run = found.model, found.run
    samples = run.prepared(preparation_for(model, None), drive_for(model, run)).ready
    curve = Section("How the answer became known", (), [online_plot(found.points, accuracy=found.accuracy)])
    page = payload_page(model, found.payload, samples, extra=[curve], settings=settings)
    return page.with_quality(_qualities([run], model.robot))


def _qualities(runs: Iterable[Run], robot: RobotModel) -> dict[str, QualityReport]:
    """The quality of the recordings of runs, by short name."""
    from steelyard.quality import check_quality

    return {
        name: check_quality(run.recording, limits=robot.limits, expected_joints=robot.n)
        for run, name in _short_names(runs).items()
        if run.recording is not None
    }


def _short_names(runs: Iterable[Run]) -> dict[Run, str]:
    """Names without folders, where they differ without them."""
    every = list(runs)
    short = [Path(run.name).name for run in every]
    return {run: name if short.count(name) == 1 else run.name for run, name in zip(every, short, strict=True)}


def _words(value: object) -> str:
    if value is None or value in ([], ()):
        return "not given"
    if isinstance(value, list | tuple):
        return " ".join(str(item) for item in value)
    return str(value)


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
