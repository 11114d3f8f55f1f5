"""`steelyard export FILE --to TARGET`: a payload, or an identified arm, for a controller or a simulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from steelyard.cli.output import JsonFlag, complain, print_json
from steelyard.errors import InvalidInertia, UnknownName, UnreadableFile

if TYPE_CHECKING:
    from steelyard.io.export import ErrorLimits, Load
    from steelyard.payload import Payload
    from steelyard.wrist import WrenchPayload


_TARGETS = "ur, ur-ros2, franka, franka-ros2, abb, kuka, fanuc, mecademic, urdf, mjcf, ft-yaml"
_KINDS = {"payload": "payload", "wrist payload": "sensor", "model": "model"}
_MADE_BY = {
    "payload": "steelyard weigh -o",
    "sensor": "steelyard weigh-ft -o",
    "model": "steelyard identify -o",
}


def command(
    file: Annotated[
        Path, typer.Argument(help="A payload (.json, from weigh or weigh-ft), or a model (from identify).")
    ],
    to: Annotated[str, typer.Option(help=f"For a payload {_TARGETS}; for a model urdf or mjcf.")],
    tool_frame: Annotated[
        str | None,
        typer.Option(
            help="Pose of the frame that the payload was weighed in (the model's flange, or the wrist "
            "sensor) in the target's flange frame, as 'x y z roll pitch yaw' "
            "[m, degrees; R = Rz(yaw) Ry(pitch) Rx(roll)]."
        ),
    ] = None,
    as_mounted: Annotated[
        bool,
        typer.Option(
            "--as-mounted", help="Take the wrist sensor's pose in the flange frame from the payload's file."
        ),
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where it goes; printed without.")
    ] = None,
    payload: Annotated[
        Path | None, typer.Option(help="A payload that the exported model carries (.json).")
    ] = None,
    name: Annotated[str, typer.Option(help="What a payload is called in the file.")] = "payload",
    number: Annotated[int, typer.Option(help="Which LOAD_DATA (kuka) or schedule (fanuc).")] = 1,
    largest_mass_error: Annotated[
        float, typer.Option(help="Largest 95 % half-width of the mass [% of the mass].")
    ] = 10.0,
    largest_com_error: Annotated[
        float, typer.Option(help="Largest 95 % half-width of the centre of mass [mm].")
    ] = 20.0,
    force: Annotated[
        bool, typer.Option("--force", help="Export what is doubtful; the file then says so.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Writes a payload for a controller, or an arm for a simulator, frame and units in its comments.

    Exit code 1, and no file, when the numbers are doubtful and --force was not given.
    """
    from steelyard.io.export import ErrorLimits

    limits = ErrorLimits(largest_mass_error / 100, largest_com_error / 1e3)
    place = _Place(tool_frame, as_mounted)
    if _kind(file) == "model":
        done = _arm(file, to, place, payload, limits, force=force)
    else:
        if payload is not None:
            raise UnknownName("--payload belongs to the export of a model; this file is a payload itself")
        done = _payload(file, to, place, limits, name=name, number=number, force=force)
    done.tell(output, force=force, as_json=as_json)


class _Place:
    """Where the user says that the payload's frame sits."""

    def __init__(self, tool_frame: str | None, as_mounted: bool) -> None:
        if tool_frame is not None and as_mounted:
            raise UnknownName("give --tool-frame or --as-mounted, not both")
        self.T = None if tool_frame is None else _pose(tool_frame)
        self.as_mounted = as_mounted

    def of(self, payload: Payload | WrenchPayload, file: Path, *, in_sensor_frame: bool) -> np.ndarray | None:
        """T_target_payload, or None where the frames are the same."""
        from steelyard.wrist import WrenchPayload

        if not isinstance(payload, WrenchPayload):
            if self.as_mounted:
                raise UnknownName(f"--as-mounted is for wrist sensors; {file} was weighed from joint torques")
            return self.T
        if in_sensor_frame and self.as_mounted:
            raise UnknownName("this target wants the frame of the sensor itself: leave --as-mounted out")
        if self.T is None and not self.as_mounted and not in_sensor_frame:
            x, y, z = payload.T_flange_sensor[:3, 3]
            raise InvalidInertia(
                f"{file} was weighed in the frame of a wrist sensor: give the sensor's pose in the target's"
                " flange frame with --tool-frame, or say --as-mounted if the file's own is right (its origin"
                f" at {x:g} {y:g} {z:g} m, {'not turned' if _not_turned(payload) else 'turned'})"
            )
        return payload.T_flange_sensor if self.as_mounted else self.T


class _Done:
    """A text with what is known about it; or doubts."""

    def __init__(
        self, text: str, doubts: list[str], facts: dict[str, Any], drives: dict[str, Any] | None = None
    ):
        self.text, self.doubts, self.facts, self.drives = text, doubts, facts, drives

    def tell(self, output: Path | None, *, force: bool, as_json: bool) -> None:
        """Writes or prints it; ends with exit code 1 when doubts were not overruled."""
        refused = bool(self.doubts) and not force
        beside = self._write(output) if output is not None and not refused else None
        if as_json:
            kept = None if refused or output is None else str(output)
            text = None if refused else self.text
            told = {"doubts": self.doubts, "forced": bool(self.doubts) and force, "file": kept}
            print_json({**self.facts, **told, "drives": self.drives, "text": text})
        elif not refused and output is None:
            print(self.text, end="")
        elif not refused:
            for doubt in self.doubts:
                print(f"warning: forced in spite of a doubt: {doubt}")
            print(f"Written: {output}" + (f", and what it cannot hold: {beside}" if beside else ""))
        if refused:
            if not as_json:
                complain(
                    f"not exported: {'; '.join(self.doubts)}; weigh again, or use --force", as_json=False
                )
            raise typer.Exit(1)

    def _write(self, output: Path) -> Path | None:
        from steelyard.saved import replacing

        with replacing(output) as part:
            part.write_text(self.text, encoding="utf-8")
        if self.drives is None:
            return None
        beside = output.with_suffix(".drives.json")
        with replacing(beside) as part:
            part.write_text(json.dumps(self.drives, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        return beside


def _payload(
    file: Path, to: str, place: _Place, limits: ErrorLimits, *, name: str, number: int, force: bool
) -> _Done:
    from steelyard.io.export import doubts_of, export_load, load_for, target_named

    target = target_named(to)
    weighed = _read_payload(file)
    T = place.of(weighed, file, in_sensor_frame=target.in_sensor_frame)
    load = load_for(weighed, to=to, T_target_payload=T, name=name, number=number)
    doubts = doubts_of(load, to, limits)
    text = export_load(load, to, forced=doubts) if force or not doubts else ""
    return _Done(text, doubts, {"to": to, "target": target.words, **_facts(load)})


def _arm(
    file: Path, to: str, place: _Place, payload: Path | None, limits: ErrorLimits, *, force: bool
) -> _Done:
    from dataclasses import replace

    from steelyard.identification import DynamicModel
    from steelyard.io.export import MODEL_EXPORTS, arm_for_export, export_arm
    from steelyard.io.export.load import doubts_about, load_of

    if to not in MODEL_EXPORTS:
        raise UnknownName(
            f"{file} is a model of an arm, which is exported to {' or '.join(MODEL_EXPORTS)}, not to '{to}'"
        )
    model = DynamicModel.load(file)
    carried, doubts = None, []
    if payload is not None:
        weighed = _read_payload(payload)
        load = load_of(weighed, T_target_payload=place.of(weighed, payload, in_sensor_frame=False))
        doubts = [f"the payload: {words}" for words in doubts_about(load, limits)]
        carried = load.body.renamed(model.robot.flange) if load.body is not weighed.body else load.body
    elif place.T is not None or place.as_mounted:
        raise UnknownName("a model has its own frames: --tool-frame and --as-mounted place its --payload")
    if doubts and not force:
        return _Done("", doubts, {"to": to, "robot": model.robot.name})
    arm = arm_for_export(model, payload=carried)
    arm = replace(arm, doubts=(*arm.doubts, *doubts))
    text = export_arm(arm, to, forced=True)
    return _Done(text, list(arm.doubts), {"to": to, "robot": model.robot.name}, arm.drives)


def _read_payload(file: Path) -> Payload | WrenchPayload:
    from steelyard.payload import Payload
    from steelyard.wrist import WrenchPayload

    kind = _kind(file)
    if kind == "model":
        raise UnreadableFile(f"{file} is a model of an arm, not a payload; weigh one with steelyard weigh -o")
    return (Payload if kind == "payload" else WrenchPayload).load(file)


def _kind(file: Path) -> str:
    """'payload', 'sensor' or 'model'."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableFile(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise UnreadableFile(f"{file} is not JSON: {error}") from error
    held = content if isinstance(content, dict) else {}
    says = held.get("steelyard")
    if says in _KINDS:
        return _KINDS[says]
    what = f"it says '{says}'" if says else "it does not say what it is"
    made = "; ".join(f"a {kind} by {verb}" for kind, verb in _MADE_BY.items())
    raise UnreadableFile(f"{file} holds neither a payload nor a model ({what}); they are made so: {made}")


def _pose(text: str) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    try:
        numbers = np.array([float(word) for word in text.replace(",", " ").split()])
    except ValueError:
        numbers = np.empty(0)
    if numbers.shape != (6,) or not np.isfinite(numbers).all():
        raise UnknownName(f"--tool-frame is 'x y z roll pitch yaw' [m, degrees]; got '{text}'")
    T = np.eye(4)
    T[:3, 3] = numbers[:3]
    T[:3, :3] = Rotation.from_euler("xyz", numbers[3:], degrees=True).as_matrix()
    return T


def _not_turned(payload: WrenchPayload) -> bool:
    return bool(np.allclose(payload.T_flange_sensor[:3, :3], np.eye(3), atol=1e-9))


def _facts(load: Load) -> dict[str, Any]:
    return {
        "frame": load.frame,
        "holds": load.holds,
        "mass": load.body.mass,
        "mass_error": load.mass_error,
        "com": load.body.com,
        "com_error": load.com_error,
        "inertia_com": load.body.inertia_com,
        "inertia_known": load.knows_inertia,
        "status": load.status,
    }
