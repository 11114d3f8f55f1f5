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
    from steelyard.quality import QualityReport
    from steelyard.recording import Recording
    from steelyard.report import Page
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


def short_names(files: Iterable[Path]) -> dict[Path, str]:
    """Names of files without folders, where they differ without them.

    Args:
        files: of a run
    """
    every = list(files)
    short = [file.name for file in every]
    return {file: file.name if short.count(file.name) == 1 else str(file) for file in every}


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
