"""Options and output that `export`, `export-arm`, `export-loaded-arm` and `patch` share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from steelyard import _saved
from steelyard.cli import options
from steelyard.cli.output import Output
from steelyard.cli.terminal import say
from steelyard.errors import InvalidInertia, UnknownName, UnreadableFile

if TYPE_CHECKING:
    from steelyard._arrays import Array
    from steelyard.export import ErrorLimits, Export
    from steelyard.payload import Payload
    from steelyard.verdict import Verdict

_COMMANDS = {
    "payload": ("weigh", "export"),
    "wrist payload": ("weigh-wrist", "export"),
    "model": ("identify", "export-arm"),
    "design": ("design", "export-motion"),
    "trajectory": ("design", "export-motion"),
}
"""For each kind of file, the command that makes it and the one that exports it."""

EXIT_CODE = "Exit code 1, and no file, when the numbers are doubtful and --force was not given."

PayloadArgument = Annotated[
    Path, typer.Argument(help="A payload (.json, from weigh or weigh-wrist).")
]

ToolFrameOption = Annotated[
    str | None,
    typer.Option(
        help="Pose of the frame that the payload was weighed in (the model's flange, or the wrist"
        " sensor) in the target's flange frame, as 'x y z roll pitch yaw'"
        " [m, degrees; R = Rz(yaw) Ry(pitch) Rx(roll)]."
    ),
]
AsMountedFlag = Annotated[
    bool,
    typer.Option(
        "--as-mounted",
        help="Take the wrist sensor's pose in the flange frame from the payload's file.",
    ),
]
OutputOption = Annotated[
    Path | None, options.file_to_write("The file to write. Default: print.", "--output", "-o")
]
NameOption = Annotated[str, typer.Option(help="Name of the payload in the file.")]
MassErrorOption = Annotated[
    float, typer.Option(help="Largest 95 % half-width of the mass [% of the mass].")
]
ComErrorOption = Annotated[
    float, typer.Option(help="Largest 95 % half-width of the centre of mass [mm].")
]
InertiaOption = Annotated[
    str | None,
    typer.Option(
        help="Inertia to write: estimated, sphere (a homogeneous one) or none (a point)."
        " Default: the estimate where it is known, otherwise sphere."
    ),
]
ForceFlag = Annotated[
    bool,
    typer.Option("--force", help="Export doubtful numbers; the file then states the doubts."),
]


class PayloadFrame:
    """Where the user states that the frame of the payload sits."""

    def __init__(self, tool_frame: str | None, as_mounted: bool) -> None:
        if tool_frame is not None and as_mounted:
            raise UnknownName("give --tool-frame or --as-mounted, not both")
        self.T = None if tool_frame is None else _pose(tool_frame)
        self.as_mounted = as_mounted
        self.is_given = self.T is not None or as_mounted

    def of(self, payload: Payload, file: Path, *, in_sensor_frame: bool) -> Array | None:
        """T_target_payload, or None where the frames are the same.

        Args:
            payload: that is exported
            file: of the payload, for messages
            in_sensor_frame: whether the target wants the frame of the sensor itself
        """
        T_flange_sensor = payload.T_flange_frame
        if T_flange_sensor is not None:
            return self._of_sensor(T_flange_sensor, file, in_sensor_frame=in_sensor_frame)
        if self.as_mounted:
            raise UnknownName(
                f"--as-mounted is for wrist sensors; {file} was weighed from joint torques"
            )
        return self.T

    def _of_sensor(
        self, T_flange_sensor: Array, file: Path, *, in_sensor_frame: bool
    ) -> Array | None:
        if in_sensor_frame:
            return self.T
        if not self.is_given:
            x, y, z = T_flange_sensor[:3, 3]
            turned = not np.allclose(T_flange_sensor[:3, :3], np.eye(3), atol=1e-9)
            raise InvalidInertia(
                f"{file} was weighed in the frame of a wrist sensor: give the sensor's pose in the"
                " target's flange frame with --tool-frame, or say --as-mounted if the file's own"
                f" is right (its origin at {x:g} {y:g} {z:g} m,"
                f" {'turned' if turned else 'not turned'})"
            )
        if self.as_mounted:
            return T_flange_sensor
        return self.T


@dataclass(frozen=True)
class Exported:
    """A text that can be written, or the verdict that refuses it.

    Attributes:
        verdict: on writing it
        facts: about it, for programs
        text: makes the text
        write: writes the text to a file; returns the file for the drives of an arm, if any
        drives: parameters of an arm that the file cannot hold
    """

    verdict: Verdict
    facts: dict[str, Any]
    text: Callable[[], str]
    write: Callable[[Path], Path | None]
    drives: dict[str, Any] | None = None

    @classmethod
    def refused(cls, verdict: Verdict, facts: dict[str, Any]) -> Exported:
        """An export that doubts forbid, before a text was made."""
        return cls(verdict, facts, str, lambda path: None)

    def emit(self, output: Path | None, *, force: bool, as_json: bool) -> None:
        """Writes or prints it; ends with exit code 1 where doubts were not overruled.

        Args:
            output: the file to write; None to print
            force: whether to overrule doubts
            as_json: whether to print one JSON object
        """
        out = Output(as_json)
        refused = not self.verdict.ok and not force
        drives_file = None
        if output is not None and not refused:
            drives_file = self.write(output)
        facts = self.facts | {
            "verdict": self.verdict.to_dict(),
            "forced": not self.verdict.ok and force,
            "file": None if refused else output,
            "drives": self.drives,
            "text": self.text() if as_json and not refused else None,
        }

        def show() -> None:
            blocking = [options.with_options(doubt.words) for doubt in self.verdict.blocking]
            if refused:
                reasons = "; ".join(blocking)
                out.complain(f"not exported: {reasons}; weigh or identify again, or use --force")
                return
            if output is None:
                print(self.text(), end="")
                return
            for words in blocking:
                say(f"warning: forced in spite of a doubt: {words}")
            beside = f", and what it cannot hold: {drives_file}" if drives_file else ""
            print(f"Written: {output}{beside}")

        out.emit(facts, show, verdict=self.verdict if refused else None)


@dataclass(frozen=True)
class ExportRequest:
    """How a payload is to be exported.

    Attributes:
        frame: where the frame of the payload sits
        limits: largest errors
        inertia: what is written for the inertia; None for the default
        name: of the payload, in formats with names
        number: of the payload, in formats with numbers
    """

    frame: PayloadFrame
    limits: ErrorLimits
    inertia: str | None
    name: str
    number: int

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ExportRequest:
        """The request of a command.

        Args:
            given: parameters of the command, by name; a format may lack some
        """
        from steelyard.export import ErrorLimits

        mass_percent = given["largest_mass_error"]
        com_mm = given["largest_com_error"]
        return cls(
            PayloadFrame(given.get("tool_frame"), given.get("as_mounted", False)),
            ErrorLimits(mass_percent / 100, com_mm / 1e3),
            given.get("inertia"),
            given.get("name", "payload"),
            given.get("number", 1),
        )

    def export(self, file: Path, target: str) -> Export:
        """The payload in a file, in the frame of the target.

        Args:
            file: of the payload
            target: name of the format
        """
        from steelyard.export import TARGETS, Export

        payload = _read_payload(file)
        T = self.frame.of(payload, file, in_sensor_frame=TARGETS[target].in_sensor_frame)
        load = payload.as_load(name=self.name, number=self.number)
        return Export.of(load, target, T_target_load=T, limits=self.limits, inertia=self.inertia)


def locked_joints(lock: list[str] | None) -> dict[str, float]:
    """Positions of joints that are held still in a patched file, by name [rad or m]."""
    return options.named_numbers(lock, "--lock is JOINT=NUMBER, say finger=0.02")


def require_kind(file: Path, *kinds: str) -> str:
    """The kind that a file states; any other than those listed is refused.

    Args:
        file: a saved value
        kinds: that are accepted
    """
    content = _saved.read(file)
    kind = content.get("steelyard") if isinstance(content, dict) else None
    if kind in kinds:
        return str(kind)
    if isinstance(kind, str) and kind in _COMMANDS:
        raise UnreadableFile(
            f"{file} holds a {kind}, not a {' or '.join(kinds)}: use steelyard {_COMMANDS[kind][1]}"
        )
    says = f"it says '{kind}'" if kind else "it does not say what it is"
    made = "; ".join(f"a {name} by steelyard {_COMMANDS[name][0]} -o" for name in kinds)
    raise UnreadableFile(f"{file} holds no {' or '.join(kinds)} ({says}); they are made so: {made}")


def _read_payload(file: Path) -> Payload:
    from steelyard.payload import Payload
    from steelyard.wrist import WristPayload

    if require_kind(file, "payload", "wrist payload") == "payload":
        return Payload.load(file)
    return WristPayload.load(file)


def _pose(text: str) -> Array:
    """The transform of 'x y z roll pitch yaw' [m, degrees]."""
    from scipy.spatial.transform import Rotation

    rule = "--tool-frame is 'x y z roll pitch yaw' [m, degrees]"
    numbers = options.numbers(",".join(text.replace(",", " ").split()), rule, count=6)
    T = np.eye(4)
    T[:3, 3] = numbers[:3]
    T[:3, :3] = Rotation.from_euler("xyz", numbers[3:], degrees=True).as_matrix()
    return T
