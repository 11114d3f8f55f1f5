"""`steelyard export-arm urdf MODEL`: an identified arm for simulators.

`steelyard export-loaded-arm urdf MODEL PAYLOAD` writes the arm with its payload.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import exports, options

if TYPE_CHECKING:
    from steelyard.export import Export, Load
    from steelyard.identification import DynamicModel
    from steelyard.io._arms import ArmExport
    from steelyard.verdict import Verdict

_FORMATS = {
    "urdf": "a URDF",
    "mjcf": "an MJCF (MuJoCo)",
    "mujoco-ros2": "an MJCF with motors, for mujoco_ros2_control,",
}

_PAYLOAD_FORMATS = {"mujoco-ros2": "mjcf"}
"""Format of a payload alone that holds what a format of arms holds, where the names differ."""

ModelArgument = Annotated[Path, typer.Argument(help="An identified arm (.json, from identify).")]

app = typer.Typer(
    help="Writes an identified arm for a simulator, with physical bodies.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
loaded_app = typer.Typer(
    help="Writes an identified arm and its payload for a simulator.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _arm_command(
    ctx: typer.Context,
    file: ModelArgument,
    output: exports.OutputOption = None,
    force: exports.ForceFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Exports an arm alone."""
    from steelyard.io._arms import arm_for_export

    target = str(ctx.info_name)
    model = read_model(file)
    exported = exported_arm(arm_for_export(model), target, model, force=force)
    exported.emit(output, force=force, as_json=as_json)


def _loaded_arm_command(
    ctx: typer.Context,
    file: ModelArgument,
    payload: exports.PayloadArgument,
    tool_frame: exports.ToolFrameOption = None,
    as_mounted: exports.AsMountedFlag = False,
    inertia: exports.InertiaOption = None,
    largest_mass_error: exports.MassErrorOption = 10.0,
    largest_com_error: exports.ComErrorOption = 20.0,
    output: exports.OutputOption = None,
    force: exports.ForceFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Exports an arm whose last link includes the payload."""
    from steelyard.io._arms import arm_for_export

    target = str(ctx.info_name)
    model = read_model(file)
    request = exports.ExportRequest.of(ctx.params)
    export = request.export(payload, _PAYLOAD_FORMATS.get(target, target))
    verdict = of_payload(export.verdict)
    if verdict.ok or force:
        body = load_on_arm(export, request, model).body
        arm = arm_for_export(model, payload=body, doubts=verdict.blocking)
        exported = exported_arm(arm, target, model, force=force)
    else:
        exported = exports.Exported.refused(verdict, {"to": target, "robot": model.robot.name})
    exported.emit(output, force=force, as_json=as_json)


for _target, _format in _FORMATS.items():
    _help = f"Writes {_format} of an identified arm, with physical bodies.\n\n{exports.EXIT_CODE}"
    app.command(name=_target, cls=options.Verb, help=_help)(_arm_command)
    _help = f"Writes {_format} of an identified arm and its payload.\n\n{exports.EXIT_CODE}"
    loaded_app.command(name=_target, cls=options.Verb, help=_help)(_loaded_arm_command)


def read_model(file: Path) -> DynamicModel:
    """The identified arm in a file; files with anything else are refused."""
    from steelyard.identification import DynamicModel

    exports.require_kind(file, "model")
    return DynamicModel.load(file)


def load_on_arm(export: Export, request: exports.ExportRequest, model: DynamicModel) -> Load:
    """The load in the flange frame of the model."""
    if not request.frame.is_given:
        return export.load
    return replace(export.load, body=export.load.body.renamed(model.robot.flange))


def of_payload(verdict: Verdict) -> Verdict:
    """The verdict, with doubts that say that they are about the payload."""
    doubts = (replace(doubt, words=f"the payload: {doubt.words}") for doubt in verdict.doubts)
    return replace(verdict, doubts=tuple(doubts))


def exported_arm(
    arm: ArmExport, target: str, model: DynamicModel, *, force: bool
) -> exports.Exported:
    """An arm that can be written or printed."""
    text = partial(arm.text, target, force=force)
    write = partial(arm.write, target=target, force=force)
    facts = {"to": target, "robot": model.robot.name}
    return exports.Exported(arm.verdict, facts, text, write, arm.drives)
