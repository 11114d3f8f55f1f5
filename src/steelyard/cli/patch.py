"""`steelyard patch payload|arm|loaded-arm FILE ...`: identified values in your own URDF or MJCF."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from steelyard import _saved
from steelyard.cli import export_arm, exports, options

FileArgument = Annotated[Path, typer.Argument(help="Your own URDF or MJCF.")]
LockOption = Annotated[
    list[str] | None,
    typer.Option(help="A joint of the file to hold still, as rail=0 [rad or m]. May be repeated."),
]
OutputOption = Annotated[
    Path | None,
    options.file_to_write(
        "The file to write; it may be the patched file itself. Default: print.", "--output", "-o"
    ),
]

app = typer.Typer(
    help="Patches your own URDF or MJCF: inertials, damping and friction of the arm, a payload.\n\n"
    "Everything else in the file stays as it is.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command(name="payload", cls=options.Verb)
def payload_command(
    ctx: typer.Context,
    patched: FileArgument,
    file: exports.PayloadArgument,
    name: exports.NameOption = "payload",
    lock: LockOption = None,
    tool_frame: exports.ToolFrameOption = None,
    as_mounted: exports.AsMountedFlag = False,
    inertia: exports.InertiaOption = None,
    largest_mass_error: exports.MassErrorOption = 10.0,
    largest_com_error: exports.ComErrorOption = 20.0,
    output: OutputOption = None,
    force: exports.ForceFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Adds a payload to your file, at the flange.

    Exit code 1, and no file, when the numbers are doubtful and --force was not given.
    """
    from steelyard.io._into import file_format, payload_into

    target = file_format(patched)
    export = exports.ExportRequest.of(ctx.params).export(file, target)
    load = replace(export.load, forced=export.verdict.blocking)
    text = partial(payload_into, load, patched, target, exports.locked_joints(lock))
    facts = {"to": target, "file_patched": patched, "mass": load.body.mass}
    exported = exports.Exported(
        export.verdict, facts, text, lambda path: _saved.write_text(path, text())
    )
    exported.emit(output, force=force, as_json=as_json)


@app.command(name="arm", cls=options.Verb)
def arm_command(
    patched: FileArgument,
    model: export_arm.ModelArgument,
    lock: LockOption = None,
    output: OutputOption = None,
    force: exports.ForceFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Writes the identified inertials, damping and friction into your file.

    Exit code 1, and no file, when the numbers are doubtful and --force was not given.
    """
    from steelyard.io._arms import arm_into
    from steelyard.io._into import file_format

    target = file_format(patched)
    identified = export_arm.read_model(model)
    into = arm_into(identified, patched, target, locked=exports.locked_joints(lock))
    exported = export_arm.exported_arm(into, target, identified, force=force)
    exported.emit(output, force=force, as_json=as_json)


@app.command(name="loaded-arm", cls=options.Verb)
def loaded_arm_command(
    ctx: typer.Context,
    patched: FileArgument,
    model: export_arm.ModelArgument,
    payload: exports.PayloadArgument,
    name: exports.NameOption = "payload",
    lock: LockOption = None,
    tool_frame: exports.ToolFrameOption = None,
    as_mounted: exports.AsMountedFlag = False,
    inertia: exports.InertiaOption = None,
    largest_mass_error: exports.MassErrorOption = 10.0,
    largest_com_error: exports.ComErrorOption = 20.0,
    output: OutputOption = None,
    force: exports.ForceFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Writes the identified arm into your file and adds a payload.

    Exit code 1, and no file, when the numbers are doubtful and --force was not given.
    """
    from steelyard.io._arms import arm_into
    from steelyard.io._into import file_format

    target = file_format(patched)
    identified = export_arm.read_model(model)
    request = exports.ExportRequest.of(ctx.params)
    export = request.export(payload, target)
    verdict = export_arm.of_payload(export.verdict)
    if verdict.ok or force:
        into = arm_into(
            identified,
            patched,
            target,
            load=export_arm.load_on_arm(export, request, identified),
            doubts=verdict.blocking,
            locked=exports.locked_joints(lock),
        )
        exported = export_arm.exported_arm(into, target, identified, force=force)
    else:
        facts = {"to": target, "robot": identified.robot.name}
        exported = exports.Exported.refused(verdict, facts)
    exported.emit(output, force=force, as_json=as_json)
