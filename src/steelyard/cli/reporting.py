"""What verbs share about reports: the option, every setting of a run, and the page of each kind of answer."""

from __future__ import annotations

import hashlib
import platform
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.output import in_a_folder

if TYPE_CHECKING:
    from steelyard.identification import DynamicModel, Validation
    from steelyard.inertia import InertialParameters
    from steelyard.payload import Payload
    from steelyard.quality import QualityReport
    from steelyard.recording import Recording, Samples
    from steelyard.report.page import Page, Section
    from steelyard.robot import RobotModel


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


def qualities(recordings: Mapping[str, Recording], robot: RobotModel | None) -> dict[str, QualityReport]:
    """The quality of recordings, by name.

    Args:
        recordings: by name
        robot: the arm they are of
    """
    from steelyard.quality import check_quality

    limits = None if robot is None else robot.limits
    joints = None if robot is None else robot.n
    return {name: check_quality(r, limits=limits, expected_joints=joints) for name, r in recordings.items()}


def write_report(page: Page, path: Path) -> None:
    """Writes a page.

    Args:
        page: what it says
        path: of the HTML file
    """
    from steelyard.report.html import write_page

    write_page(page, path)


def identification_report(
    path: Path,
    model: DynamicModel,
    prepared: Mapping[Path, Samples],
    *,
    recordings: Mapping[Path, Recording],
    trained_on: Sequence[Path],
    notes: Sequence[str],
    doubts: Sequence[str],
    settings: Mapping[str, str],
) -> None:
    """Writes the page of an identified arm; it draws the first recording that was not trained on.

    Args:
        path: of the HTML file
        model: of the arm
        prepared: samples of each recording
        recordings: as measured, by file
        trained_on: which of them the model was fitted to
        notes: more that the answer should say
        doubts: what warns a reader
        settings: of the run
    """
    from steelyard.report.identification_page import Shown, identification_page

    unseen = [file for file in prepared if file not in trained_on]
    chosen = (unseen or list(trained_on))[0]
    names = _short_names(prepared)
    roles = {
        file: f"{name} ({'fitted' if file in trained_on else 'predicted'})" for file, name in names.items()
    }
    checks: dict[str, Validation] = {roles[file]: model.validate(part) for file, part in prepared.items()}
    page = identification_page(
        model,
        Shown(prepared[chosen], names[chosen], fitted=not unseen),
        checks=checks,
        quality=qualities({names[file]: r for file, r in recordings.items()}, model.robot),
        notes=notes,
        doubts=doubts,
        settings=settings,
    )
    write_report(page, path)


def payload_report(
    path: Path,
    model: DynamicModel,
    payload: Payload,
    samples: Samples,
    *,
    recordings: Mapping[str, Recording],
    settings: Mapping[str, str],
    truth: InertialParameters | None = None,
    more: tuple[Sequence[tuple[str, Payload]], Sequence[Section]] = ((), ()),
) -> None:
    """Writes the page of a weighed payload.

    Args:
        path: of the HTML file
        model: of the empty arm
        payload: what was weighed
        samples: of the loaded arm, to draw
        recordings: as measured, by name, for their quality
        settings: of the run, as `run_settings` gives them
        truth: where the payload is known
        more: the same payload by other methods, by name; and sections to add
    """
    from steelyard.report.payload_page import payload_page

    others, sections = more
    page = payload_page(
        model,
        payload,
        samples,
        truth=truth,
        others=others,
        quality=qualities(recordings, model.robot),
        settings=settings,
        extra=sections,
    )
    write_report(page, path)


def _short_names(files: Iterable[Path]) -> dict[Path, str]:
    """Names without folders, where they differ without them."""
    every = list(files)
    short = [file.name for file in every]
    return {file: file.name if short.count(file.name) == 1 else str(file) for file in every}


def _words(value: object) -> str:
    if value is None or value == []:
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
