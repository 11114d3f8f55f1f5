"""`steelyard export PAYLOAD --to TARGET`: a payload for controllers and simulators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard import _saved
from steelyard.cli import exports, options

if TYPE_CHECKING:
    from steelyard.export import Export

_TARGETS = "ur, ur-ros2, franka, franka-ros2, abb, kuka, fanuc, mecademic, ft-yaml, urdf, mjcf"


def command(
    file: Annotated[Path, typer.Argument(help="A payload (.json, from weigh or weigh-wrist).")],
    to: Annotated[str, typer.Option(help=f"Target: {_TARGETS}.")],
    tool_frame: exports.ToolFrameOption = None,
    as_mounted: exports.AsMountedFlag = False,
    output: exports.OutputOption = None,
    name: exports.NameOption = "payload",
    number: Annotated[
        int, typer.Option(help="Number of LOAD_DATA (kuka) or of the schedule (fanuc).")
    ] = 1,
    largest_mass_error: exports.MassErrorOption = 10.0,
    largest_com_error: exports.ComErrorOption = 20.0,
    inertia: exports.InertiaOption = None,
    into: exports.IntoOption = None,
    lock: options.LockOption = None,
    force: exports.ForceFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Writes a payload for a controller or a simulator.

    Exit code 1, and no file, when the numbers are doubtful and --force was not given.
    """
    locked = exports.locked_joints(lock, into)
    request = exports.PayloadRequest(
        to,
        exports.PayloadFrame(tool_frame, as_mounted),
        exports.error_limits(largest_mass_error, largest_com_error),
        inertia,
        name,
        number,
    )
    export = request.export(file)
    text: Callable[[], str] = partial(export.text, force=force)
    if into is not None:
        from steelyard.io._into import payload_into

        load = replace(export.load, forced=export.verdict.blocking)
        text = partial(payload_into, load, into, to, locked)
    exported = exports.Exported(
        export.verdict, _facts(export, to), text, lambda path: _saved.write_text(path, text())
    )
    exported.emit(output, force=force, as_json=as_json)


def _facts(export: Export, to: str) -> dict[str, Any]:
    load = export.load
    return {
        "to": to,
        "target": export.target.words,
        "frame": load.frame,
        "holds": load.holds,
        "mass": load.body.mass,
        "mass_error": load.mass_error,
        "com": load.body.com,
        "com_error": load.com_error,
        "inertia_com": load.body.inertia_com,
        "inertia_known": load.knows_inertia,
        "inertia_instead": load.stand_in or None,
    }
