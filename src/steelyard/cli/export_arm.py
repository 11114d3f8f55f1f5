"""`steelyard export-arm MODEL --to urdf`: an identified arm for simulators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import exports, options
from steelyard.errors import UnknownName

if TYPE_CHECKING:
    from steelyard.export import Load
    from steelyard.identification import DynamicModel
    from steelyard.io._arms import ArmExport
    from steelyard.verdict import Verdict


def command(
    file: Annotated[Path, typer.Argument(help="An identified arm (.json, from identify).")],
    to: Annotated[str, typer.Option(help="Target: urdf or mjcf.")],
    payload: Annotated[
        Path | None, typer.Option(help="A payload that the arm carries (.json).")
    ] = None,
    tool_frame: exports.ToolFrameOption = None,
    as_mounted: exports.AsMountedFlag = False,
    output: exports.OutputOption = None,
    name: exports.NameOption = "payload",
    largest_mass_error: exports.MassErrorOption = 10.0,
    largest_com_error: exports.ComErrorOption = 20.0,
    inertia: exports.InertiaOption = None,
    into: exports.IntoOption = None,
    lock: options.LockOption = None,
    force: exports.ForceFlag = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Writes an identified arm for a simulator, with physical bodies.

    Exit code 1, and no file, when the numbers are doubtful and --force was not given.
    """
    from steelyard.identification import DynamicModel
    from steelyard.io._arms import ARM_TARGETS
    from steelyard.verdict import Verdict

    locked = exports.locked_joints(lock, into)
    exports.require_kind(file, "model")
    if to not in ARM_TARGETS:
        raise UnknownName(
            f"{file} is a model of an arm, which is exported to {' or '.join(ARM_TARGETS)}, not to"
            f" '{to}'"
        )
    frame = exports.PayloadFrame(tool_frame, as_mounted)
    if payload is None and frame.is_given:
        raise UnknownName("--tool-frame and --as-mounted place a --payload: give it, too")
    model = DynamicModel.load(file)
    load = None
    verdict = Verdict()
    if payload is not None:
        limits = exports.error_limits(largest_mass_error, largest_com_error)
        export = exports.PayloadRequest(to, frame, limits, inertia, name).export(payload)
        verdict = _of_payload(export.verdict)
        load = export.load
        if frame.is_given:
            load = replace(load, body=load.body.renamed(model.robot.flange))
    facts = {"to": to, "robot": model.robot.name}
    if not verdict.ok and not force:
        exported = exports.Exported(verdict, facts, str, lambda path: None)
    else:
        arm = _arm(model, load, verdict, to=to, into=into, locked=locked)
        text = partial(arm.text, to, force=force)
        write = partial(arm.write, target=to, force=force)
        exported = exports.Exported(arm.verdict, facts, text, write, arm.drives)
    exported.emit(output, force=force, as_json=as_json)


def _of_payload(verdict: Verdict) -> Verdict:
    """The verdict, with doubts that say that they are about the payload."""
    doubts = (replace(doubt, words=f"the payload: {doubt.words}") for doubt in verdict.doubts)
    return replace(verdict, doubts=tuple(doubts))


def _arm(
    model: DynamicModel,
    load: Load | None,
    verdict: Verdict,
    *,
    to: str,
    into: Path | None,
    locked: Mapping[str, float],
) -> ArmExport:
    """The arm as bodies, on its own or inside the user's file."""
    from steelyard.io._arms import arm_for_export, arm_into

    if into is not None:
        return arm_into(model, into, to, load=load, doubts=verdict.blocking, locked=locked)
    body = None if load is None else load.body
    return arm_for_export(model, payload=body, doubts=verdict.blocking)
