"""`steelyard export TARGET PAYLOAD`: a payload for controllers and simulators.

A target is a command of its own, because each format holds other things.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard import _saved
from steelyard.cli import exports, options

if TYPE_CHECKING:
    from steelyard.export import Export

_DESCRIPTIONS = {
    "ur": "Writes a call of set_target_payload (URScript).",
    "ur-ros2": "Writes a request of ur_msgs/srv/SetPayload (YAML).",
    "franka": "Writes endeffector-config.json, for Franka Desk.",
    "franka-ros2": "Writes a request of franka_msgs/srv/SetLoad (YAML) and a call of libfranka.",
    "abb": "Writes a declaration of loaddata (RAPID).",
    "kuka": "Writes an assignment of LOAD_DATA (KRL).",
    "fanuc": "Writes the fields of a payload schedule, to be typed in.",
    "mecademic": "Writes a call of SetPayload, without inertia.",
    "ft-yaml": "Writes a calibration of force_torque_tools (ROS): payload and zero drift.",
    "gravity-filter": "Writes parameters of the gravity filter of ros2_control (YAML).",
    "cartesian-controllers": "Writes gravity and tool of FZI's cartesian_controllers (YAML).",
    "urdf": "Writes a URDF: a flange, and the payload as a link that is fixed to it.",
    "mjcf": "Writes an MJCF: the payload as a body of MuJoCo.",
}

app = typer.Typer(
    help="Writes a payload for a controller or a simulator, one command for each target.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _with_inertia_command(
    ctx: typer.Context,
    file: exports.PayloadArgument,
    tool_frame: exports.ToolFrameOption = None,
    as_mounted: exports.AsMountedFlag = False,
    inertia: exports.InertiaOption = None,
    largest_mass_error: exports.MassErrorOption = 10.0,
    largest_com_error: exports.ComErrorOption = 20.0,
    output: exports.OutputOption = None,
    force: exports.ForceFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Exports to a format that holds the inertia."""
    _export(ctx)


def _with_name_command(
    ctx: typer.Context,
    file: exports.PayloadArgument,
    name: exports.NameOption = "payload",
    tool_frame: exports.ToolFrameOption = None,
    as_mounted: exports.AsMountedFlag = False,
    inertia: exports.InertiaOption = None,
    largest_mass_error: exports.MassErrorOption = 10.0,
    largest_com_error: exports.ComErrorOption = 20.0,
    output: exports.OutputOption = None,
    force: exports.ForceFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Exports to a format in which a payload has a name."""
    _export(ctx)


def _with_number_command(
    ctx: typer.Context,
    file: exports.PayloadArgument,
    number: Annotated[int, typer.Option(min=1, help="Number of the payload in the file.")] = 1,
    tool_frame: exports.ToolFrameOption = None,
    as_mounted: exports.AsMountedFlag = False,
    inertia: exports.InertiaOption = None,
    largest_mass_error: exports.MassErrorOption = 10.0,
    largest_com_error: exports.ComErrorOption = 20.0,
    output: exports.OutputOption = None,
    force: exports.ForceFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Exports to a format in which a payload has a number."""
    _export(ctx)


def _without_inertia_command(
    ctx: typer.Context,
    file: exports.PayloadArgument,
    tool_frame: exports.ToolFrameOption = None,
    as_mounted: exports.AsMountedFlag = False,
    largest_mass_error: exports.MassErrorOption = 10.0,
    largest_com_error: exports.ComErrorOption = 20.0,
    output: exports.OutputOption = None,
    force: exports.ForceFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Exports mass and centre of mass."""
    _export(ctx)


def _in_sensor_frame_command(
    ctx: typer.Context,
    file: exports.PayloadArgument,
    tool_frame: exports.ToolFrameOption = None,
    largest_mass_error: exports.MassErrorOption = 10.0,
    largest_com_error: exports.ComErrorOption = 20.0,
    output: exports.OutputOption = None,
    force: exports.ForceFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Exports mass and centre of mass in the frame of the sensor, with its zero if possible."""
    _export(ctx)


_COMMANDS: dict[str, Callable[..., None]] = {
    "ur": _with_inertia_command,
    "ur-ros2": _with_inertia_command,
    "franka": _with_name_command,
    "franka-ros2": _with_inertia_command,
    "abb": _with_name_command,
    "kuka": _with_number_command,
    "fanuc": _with_number_command,
    "mecademic": _without_inertia_command,
    "ft-yaml": _in_sensor_frame_command,
    "gravity-filter": _in_sensor_frame_command,
    "cartesian-controllers": _in_sensor_frame_command,
    "urdf": _with_name_command,
    "mjcf": _with_name_command,
}

for _target, _command in _COMMANDS.items():
    _help = f"{_DESCRIPTIONS[_target]}\n\n{exports.EXIT_CODE}"
    app.command(name=_target, cls=options.Verb, help=_help)(_command)


def _export(ctx: typer.Context) -> None:
    """Runs the export that the words of the command describe."""
    given = ctx.params
    target = str(ctx.info_name)
    export = exports.ExportRequest.of(given).export(given["file"], target)
    text = partial(export.text, force=given["force"])
    exported = exports.Exported(
        export.verdict, _facts(export, target), text, lambda path: _saved.write_text(path, text())
    )
    exported.emit(given["output"], force=given["force"], as_json=given["as_json"])


def _facts(export: Export, target: str) -> dict[str, Any]:
    load = export.load
    return {
        "to": target,
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
