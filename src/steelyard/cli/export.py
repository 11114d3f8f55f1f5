"""`steelyard export FILE --to TARGET`: a payload, an arm or a motion, for controllers and simulators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from steelyard import saved
from steelyard.cli import options
from steelyard.cli.output import Output
from steelyard.errors import InvalidInertia, UnknownName, UnreadableFile

if TYPE_CHECKING:
    from steelyard.export import ErrorLimits, Export
    from steelyard.payload import Payload
    from steelyard.verdict import Verdict

_TARGETS = "ur, ur-ros2, franka, franka-ros2, abb, kuka, fanuc, mecademic, ft-yaml, urdf, mjcf"
_MADE_BY = {
    "payload": "weigh",
    "wrist payload": "weigh-wrist",
    "model": "identify",
    "design": "design",
    "trajectory": "design",
}
_MOTIONS = ("design", "trajectory")
_FOR_LOADS = (
    *(
        "tool_frame",
        "as_mounted",
        "payload",
        "name",
        "number",
        "largest_mass_error",
        "largest_com_error",
    ),
    *("inertia", "into", "force"),
)


def command(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            help="A payload (.json, from weigh or weigh-wrist), a model (identify) or a motion"
            " (design)."
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            help=f"For a payload {_TARGETS}; for a model urdf or mjcf; for a motion ur, ros2, csv"
            " or franka,"
            " or several as ur,csv."
        ),
    ],
    tool_frame: Annotated[
        str | None,
        typer.Option(
            help="Pose of the frame that the payload was weighed in (the model's flange, or the"
            " wrist "
            "sensor) in the target's flange frame, as 'x y z roll pitch yaw' "
            "[m, degrees; R = Rz(yaw) Ry(pitch) Rx(roll)]."
        ),
    ] = None,
    as_mounted: Annotated[
        bool,
        typer.Option(
            "--as-mounted",
            help="Take the wrist sensor's pose in the flange frame from the payload's file.",
        ),
    ] = False,
    output: Annotated[
        Path | None, options.file_to_write("Where it goes; printed without.", "--output", "-o")
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
    inertia: Annotated[
        str | None,
        typer.Option(
            help="What is written for a payload's inertia: estimated, sphere (that of a"
            " homogeneous ball) or "
            "none (that of a point); by default the estimate where it is known, else sphere."
        ),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            help="Your own URDF or MJCF: inertials, damping and friction of its arm are patched, a"
            " payload is"
            " added, and everything else stays as it is. -o may name the same file."
        ),
    ] = None,
    posture: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="q1,...,qn",
            help="Where the arm stands before a motion and after it [rad], or 'home': the way"
            " there and"
            " back is added; in the first posture by default.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=1e5,
            help="Of a motion's rows [Hz]; ur 500, ros2 100, csv 125, franka 1000 by default.",
        ),
    ] = None,
    robot: Annotated[
        str | None,
        typer.Option(help="The arm that a motion is for; as the design says by default."),
    ] = None,
    within: Annotated[
        Path | None,
        typer.Option("--limits", help="Limits of a motion (TOML); those of the arm by default."),
    ] = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Export what is doubtful; the file then says so.")
    ] = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Writes a payload or a motion for a controller, or an arm for a simulator, frame and units in comments.

    Exit code 1, and no file, when the numbers are doubtful and --force was not given.
    """
    from steelyard.export import ErrorLimits

    kind = _kind(file)
    if kind in _MOTIONS:
        options.refuse_without_effect(ctx, "on a motion", *_FOR_LOADS)
        return _motion(ctx)
    options.refuse_without_effect(
        ctx, f"on a {kind}", "posture", "rate", "robot", "within", "flange"
    )
    limits = ErrorLimits(largest_mass_error / 100, largest_com_error / 1e3)
    place = _Place(tool_frame, as_mounted)
    judged = partial(
        _judged, to=to, place=place, limits=limits, inertia=inertia, name=name, number=number
    )
    if lock and into is None:
        raise UnknownName("--lock is for the joints of the file of --into")
    locked = options.named_numbers(lock, "--lock is JOINT=NUMBER, say finger=0.02")
    if kind == "model":
        if payload is None and place.is_given:
            raise UnknownName(
                "a model has its own frames: --tool-frame and --as-mounted place its --payload"
            )
        if payload is None:
            carried = None
        else:
            carried = judged(payload)
        result = _arm(
            file, to, carried, placed=place.is_given, into=into, locked=locked, force=force
        )
    else:
        if payload is not None:
            raise UnknownName(
                "--payload belongs to the export of a model; this file is a payload itself"
            )
        result = _payload(judged(file), to, into=into, locked=locked, force=force)
    result.emit(output, force=force, as_json=as_json)


def _motion(ctx: typer.Context) -> None:
    """Writes a motion for one target, or for several, whose files then differ in their endings."""
    from steelyard.cli.live import arm_and_motion
    from steelyard.io._motions import MOTION_TARGETS, approached, motion_text

    given = ctx.params
    file = given["file"]
    targets = given["to"].split(",")
    output = given["output"]
    posture = given["posture"]
    for target in targets:
        if target not in MOTION_TARGETS:
            raise UnknownName(
                f"{file} is a motion, which is exported to {', '.join(MOTION_TARGETS)}, not to"
                f" '{target}'"
            )
    if output is None and len(targets) > 1:
        raise UnknownName("several targets need -o, a name to which each adds its ending")
    arm, core = arm_and_motion(file, given["robot"], given["lock"], given["flange"])
    bounds = options.load_limits(arm, given["robot"] or "", given["within"])
    if posture == "home":
        stands = arm.home
    else:
        stands = None
    if posture not in (None, "home"):
        stands = np.array(
            options.numbers(posture, "--from is q1,...,qn [rad], or 'home'", count=arm.n)
        )
    whole = approached(arm, core, stands, bounds)
    if stands is None:
        remarks = []
    else:
        remarks = [f"with the way from {stands.round(4).tolist()} rad, and back"]
    texts = {
        target: motion_text(
            target,
            whole,
            arm.joint_names,
            given["rate"] or MOTION_TARGETS[target].rate_hz,
            remarks=remarks,
        )
        for target in targets
    }
    files = {}
    with saved.together():
        for target, text in texts.items():
            if output is not None:
                if len(texts) == 1:
                    files[target] = output
                else:
                    files[target] = output.with_suffix(MOTION_TARGETS[target].ending)
                saved.write_text(files[target], text)
    facts = {
        "robot": arm.name,
        "seconds": whole.duration_s,
        "files": {k: str(v) for k, v in files.items()},
    }
    facts |= {"text": None if files else texts[targets[0]]}
    written = "\n".join(
        f"Written: {path}, {MOTION_TARGETS[name].words}" for name, path in files.items()
    )
    Output(given["as_json"]).emit(facts, lambda: print(written or texts[targets[0]]))


class _Place:
    """Where the user says that the payload's frame sits."""

    def __init__(self, tool_frame: str | None, as_mounted: bool) -> None:
        if tool_frame is not None and as_mounted:
            raise UnknownName("give --tool-frame or --as-mounted, not both")
        if tool_frame is None:
            self.T = None
        else:
            self.T = _pose(tool_frame)
        self.as_mounted = as_mounted
        self.is_given = self.T is not None or as_mounted

    def of(self, payload: Payload, file: Path, *, in_sensor_frame: bool) -> np.ndarray | None:
        """T_target_payload, or None where the frames are the same."""
        from steelyard.wrist import WristPayload

        if not isinstance(payload, WristPayload):
            if self.as_mounted:
                raise UnknownName(
                    f"--as-mounted is for wrist sensors; {file} was weighed from joint torques"
                )
            return self.T
        if in_sensor_frame and self.as_mounted:
            raise UnknownName(
                "this target wants the frame of the sensor itself: leave --as-mounted out"
            )
        if self.T is None and not self.as_mounted and not in_sensor_frame:
            x, y, z = payload.T_flange_sensor[:3, 3]
            turned = not np.allclose(payload.T_flange_sensor[:3, :3], np.eye(3), atol=1e-9)
            raise InvalidInertia(
                f"{file} was weighed in the frame of a wrist sensor: give the sensor's pose in the"
                " target's"
                " flange frame with --tool-frame, or say --as-mounted if the file's own is right"
                " (its origin"
                f" at {x:g} {y:g} {z:g} m, {'turned' if turned else 'not turned'})"
            )
        if self.as_mounted:
            return payload.T_flange_sensor
        return self.T


@dataclass(frozen=True)
class _Result:
    """What can be written, or why not."""

    verdict: Verdict  # on writing it
    facts: dict[str, Any]  # about it, for programs
    text: Callable[[], str]  # makes it
    write: Callable[[Path], Path | None]  # makes it, into a file; where the drives of an arm went
    drives: dict[str, Any] | None = None  # what the file of an arm cannot hold

    def emit(self, output: Path | None, *, force: bool, as_json: bool) -> None:
        """Writes or prints it; ends with exit code 1 when doubts were not overruled."""
        out = Output(as_json)
        refused = not self.verdict.ok and not force
        if output is not None and not refused:
            beside = self.write(output)
        else:
            beside = None
        done = {
            "verdict": self.verdict.to_dict(),
            "forced": not self.verdict.ok and force,
            "file": None if refused else output,
            "drives": self.drives,
            "text": self.text() if as_json and not refused else None,
        }

        def show() -> None:
            blocking = [doubt.words for doubt in self.verdict.blocking]
            if refused:
                out.complain(f"not exported: {'; '.join(blocking)}; weigh again, or use --force")
            elif output is None:
                print(self.text(), end="")
            else:
                for words in blocking:
                    print(f"warning: forced in spite of a doubt: {words}")
                print(
                    f"Written: {output}"
                    + (f", and what it cannot hold: {beside}" if beside else "")
                )

        out.emit(self.facts | done, show, verdict=self.verdict if refused else None)


def _judged(
    file: Path,
    *,
    to: str,
    place: _Place,
    limits: ErrorLimits,
    inertia: str | None,
    name: str,
    number: int,
) -> Export:
    """A payload in the frame of the target."""
    from steelyard.export import TARGETS, Export

    weighed = _read_payload(file)
    T = place.of(weighed, file, in_sensor_frame=to in TARGETS and TARGETS[to].in_sensor_frame)
    load = weighed.as_load(name=name, number=number)
    return Export.of(load, to, T_target_load=T, limits=limits, inertia=inertia)


def _payload(
    export: Export, to: str, *, into: Path | None, locked: Mapping[str, float], force: bool
) -> _Result:
    there = export.load
    facts = {
        "to": to,
        "target": export.target.words,
        "frame": there.frame,
        "holds": there.holds,
        "mass": there.body.mass,
        "mass_error": there.mass_error,
        "com": there.body.com,
        "com_error": there.com_error,
        "inertia_com": there.body.inertia_com,
        "inertia_known": there.knows_inertia,
        "inertia_instead": there.stand_in or None,
    }
    text: Callable[[], str] = partial(export.text, force=force)
    if into is not None:
        from steelyard.io._into import payload_into

        load = replace(there, forced=export.verdict.blocking)
        text = partial(payload_into, load, into, to, locked)
    return _Result(export.verdict, facts, text, lambda output: saved.write_text(output, text()))


def _arm(
    file: Path,
    to: str,
    carried: Export | None,
    *,
    placed: bool,
    into: Path | None,
    locked: Mapping[str, float],
    force: bool,
) -> _Result:
    from steelyard.identification import DynamicModel
    from steelyard.io._arms import ARM_TARGETS, arm_for_export, arm_into
    from steelyard.verdict import Verdict

    if to not in ARM_TARGETS:
        raise UnknownName(
            f"{file} is a model of an arm, which is exported to {' or '.join(ARM_TARGETS)}, not to"
            f" '{to}'"
        )
    model = DynamicModel.load(file)
    facts = {"to": to, "robot": model.robot.name}
    load = None
    verdict = Verdict()
    if carried is not None:
        doubts = tuple(replace(d, words=f"the payload: {d.words}") for d in carried.verdict.doubts)
        load = carried.load
        verdict = replace(carried.verdict, doubts=doubts)
        if placed:
            load = replace(load, body=load.body.renamed(model.robot.flange))
        if not verdict.ok and not force:
            return _Result(verdict, facts, str, lambda output: None)
    if into is None:
        if load is None:
            body = None
        else:
            body = load.body
        arm = arm_for_export(model, payload=body, doubts=verdict.blocking)
    else:
        arm = arm_into(model, into, to, load=load, doubts=verdict.blocking, locked=locked)
    text = partial(arm.text, to, force=force)
    write = partial(arm.write, target=to, force=force)
    return _Result(arm.verdict, facts, text, write, arm.drives)


def _read_payload(file: Path) -> Payload:
    from steelyard.payload import Payload
    from steelyard.wrist import WristPayload

    kind = _kind(file)
    if kind == "model":
        raise UnreadableFile(
            f"{file} is a model of an arm, not a payload; weigh one with steelyard weigh -o"
        )
    if kind == "payload":
        return Payload.load(file)
    return WristPayload.load(file)


def _kind(file: Path) -> str:
    """One of those in `_MADE_BY`."""
    content = saved.read(file)
    if isinstance(content, dict):
        says = content.get("steelyard")
    else:
        says = None
    if isinstance(says, str) and says in _MADE_BY:
        return says
    if says:
        what = f"it says '{says}'"
    else:
        what = "it does not say what it is"
    made = "; ".join(f"a {kind} by steelyard {verb} -o" for kind, verb in _MADE_BY.items())
    raise UnreadableFile(
        f"{file} holds neither a payload nor a model ({what}); they are made so: {made}"
    )


def _pose(text: str) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    rule = "--tool-frame is 'x y z roll pitch yaw' [m, degrees]"
    numbers = options.numbers(",".join(text.replace(",", " ").split()), rule, count=6)
    T = np.eye(4)
    T[:3, 3] = numbers[:3]
    T[:3, :3] = Rotation.from_euler("xyz", numbers[3:], degrees=True).as_matrix()
    return T
