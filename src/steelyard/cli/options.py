"""Options that several commands share, and how arms, recordings and numbers are read."""

from __future__ import annotations

import ast
import os
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import typer
from typer.core import TyperCommand

from steelyard import _saved
from steelyard.errors import (
    InvalidRobot,
    InvalidSamples,
    SteelyardError,
    UnknownName,
    UnreadableFile,
    reword_arguments,
)

if TYPE_CHECKING:
    from steelyard.excitation import DesignLimits
    from steelyard.identification import DynamicModel
    from steelyard.io._wrist import SensorDescription
    from steelyard.recording import Preparation, Recording
    from steelyard.recording._columns import Requested
    from steelyard.robot import RobotModel

_TARGETS = "files to write"
_TRUSTED = "effort=torque"  # recording._columns.EFFORT_IS_TORQUE, which the help does not import
_LARGEST_NUMBER = 2**63
LOWEST_HZ = 1e-3
"""Of cut-offs and rates."""
PICTURES = (
    ".png",
    ".svg",
    ".pdf",
    ".jpg",
    ".jpeg",
    ".eps",
    ".ps",
    ".svgz",
    ".tif",
    ".tiff",
    ".webp",
)
"""Endings of picture files."""

_PARAMETER_OF_ARGUMENT = {
    "columns": "column",
    "cutoff_hz": "cutoff",
    "false_alarms_per_1000": "false_alarms",
    "gain": "gains",
    "gravity_base": "gravity",
    "joint_names": "joints",
    "locked": "lock",
    "longest_s": "longest",
    "margin_s": "margin",
    "period_s": "period",
    "rate_hz": "rate",
    "rating_kg": "rating",
    "replace_program": "replace",
    "tool_speed": "speed",
    "transition_s": "transition",
}
"""Parameters of commands by arguments of the library, where their names differ."""

_WORDS_OF_ARGUMENT = {
    "bit": "the bit of the gripper",
    "rotation_rpy_degrees": "rotation_rpy_degrees",
    "time": "time",
    "translation": "translation",
}
"""Words for arguments that are part of an option or keys of a file that the message names."""

_OPTIONS_OF_IDENTIFY = ("gravity", "gains")
"""Options that doubts of a saved model name, whichever command repeats the doubts."""

_running_command: ContextVar[TyperCommand | None] = ContextVar("running command", default=None)

_PATCHED = "patched"  # a file that is read and may be overwritten, where -o names it again


class Verb(TyperCommand):
    """A command that checks the files to write before it starts."""

    def get_help(self, ctx: Any) -> str:
        """The help, in which FILE, NUMBER or TEXT stand for values."""
        for parameter in self.params:
            if parameter.metavar is None:
                parameter.metavar = _metavar(parameter)
            if parameter.param_type_name == "argument":  # its help says what it is
                vars(parameter)["display_type"] = lambda ctx: ""
        return super().get_help(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the line of usage, with brackets only around what may be left out."""
        return [
            words.replace("{", "").replace("}", "") for words in super().collect_usage_pieces(ctx)
        ]

    def invoke(self, ctx: Any) -> Any:
        """Runs it."""
        targets = ctx.meta.pop(_TARGETS, {})
        given = [value for name, value in ctx.params.items() if name not in (*targets, _PATCHED)]
        require_targets(targets.values(), given)
        _require_sane(self, ctx)
        running = _running_command.set(self)
        try:
            return super().invoke(ctx)
        except SteelyardError as error:
            error.reword(_option)
            raise
        except KeyboardInterrupt:
            raise typer.Abort from None
        except BrokenPipeError:  # a source that breaks raises SourceFailed instead
            raise typer.Exit from None
        finally:
            _running_command.reset(running)


def _metavar(parameter: Any) -> str | None:
    """What the help shows for the value of a parameter; None for a flag."""
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    if getattr(parameter, "is_flag", False):
        return None
    descriptor = parameter.type_descriptor
    if descriptor.is_path or descriptor.annotation == list[Path]:
        return "FILE"
    if descriptor.is_ranged or descriptor.annotation in (int, float):
        return "NUMBER"
    return "TEXT"


def with_options(message: str) -> str:
    """A message of the library with the running command's options in place of arguments."""
    return reword_arguments(message, _option)


def _option(name: str, value: str | None) -> str | None:
    """What stands for an argument in a message of the running command; None without a command.

    This is an option of the command where it has one for the argument.

    Args:
        name: of an argument of the library, as in 'columns'
        value: of the argument in Python's notation; None for the name alone
    """
    command = _running_command.get()
    if command is None:
        return None
    wanted = _PARAMETER_OF_ARGUMENT.get(name, name)
    for parameter in command.params:
        if parameter.name == wanted == "column":
            return _spelled_columns({str(each.name) for each in command.params}, value)
        if parameter.name == wanted:
            return _spelled(parameter.opts[0], value)
    if name in _WORDS_OF_ARGUMENT:
        return _WORDS_OF_ARGUMENT[name]
    if wanted in _OPTIONS_OF_IDENTIFY:
        return f"{_spelled(f'--{wanted}', value)} of steelyard identify"
    if value is None:
        return f"{name} in Python"
    return f"{name}={value} in Python"


def _spelled_columns(options: Collection[str], value: str | None) -> str:
    """The options for columns of signals; the gripper has an option of its own in some commands.

    Args:
        options: names of the parameters of the command
        value: the columns in Python's notation; None for the option alone
    """
    try:
        columns = ast.literal_eval(value or "")
    except (ValueError, SyntaxError):
        return _spelled("--column", value)
    if "trust" in options and columns == {"tau": _TRUSTED}:
        return f"--trust {_TRUSTED}"
    own = {signal: names for signal, names in columns.items() if signal in options}
    others = {signal: names for signal, names in columns.items() if signal not in options}
    words = [f"--{signal} {_listed(names)}" for signal, names in own.items()]
    if others:
        words.append(_spelled("--column", repr(others)))
    return " ".join(words)


def _spelled(option: str, value: str | None) -> str:
    """An option with a value, as it is typed.

    Args:
        option: as in '--column'
        value: in Python's notation; None for the option alone
    """
    if value is None:
        return option
    try:
        meaning = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return f"{option} {value}"
    if meaning is True:
        return option
    if isinstance(meaning, Mapping):
        return " ".join(f"{option} {key}={_listed(item)}" for key, item in meaning.items())
    return f"{option} {_listed(meaning)}"


def _listed(value: object) -> str:
    """A value as it is typed: items of a list with commas between them."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def _require_sane(verb: TyperCommand, ctx: Any) -> None:
    """Refuses NaN, infinity where it is not the default, and huge counts."""
    for param in verb.params:
        value = ctx.params.get(str(param.name))
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and value != param.default and not abs(value) < _LARGEST_NUMBER:
            raise UnknownName(
                f"{param.opts[0]} is a finite number of a sensible size; got {str(value)[:20]}"
            )


def file_to_write(
    help: str,  # noqa: A002
    *names: str,
    endings: Sequence[str] = (),
    beside: Callable[[Path], Path] | None = None,
) -> Any:
    """An option for a file to write, which `Verb` checks.

    Args:
        endings: that its name may have; any by default
        beside: another file that is written with it
    """

    def checked(ctx: typer.Context, param: typer.CallbackParam, value: Path | None) -> Path | None:
        if value is not None:
            _saved.require_target(value)
            if endings and value.suffix.lower() not in endings:
                if endings[1:]:
                    listed = f"{', '.join(endings[:-1])} or {endings[-1]}"
                else:
                    listed = endings[0]
                raise UnreadableFile(f"{value}: the name of this file must end in {listed}")
            ctx.meta.setdefault(_TARGETS, {})[param.name] = value
            if beside is not None:
                _saved.require_target(beside(value))
        return value

    return typer.Option(*names, callback=checked, help=help)


def require_targets(targets: Iterable[Path], given: Iterable[Any]) -> None:
    """Refuses files to write that cannot be written, are the same, or are read by the command.

    Args:
        targets: files to write
        given: everything else that a verb was given: files, names, numbers, and lists of them
    """
    read = [path for value in given for path in _files_in(value)]
    seen: dict[str, Path] = {}
    for target in targets:
        _saved.require_target(target)
        _saved.sweep(target)
        real = os.path.realpath(target)
        if real in seen:
            raise UnreadableFile(
                f"{target} would be written twice (as {seen[real]}): give two names"
            )
        seen[real] = target
        for path in read:
            inside = (
                os.path.isdir(path)
                and os.path.exists(real)
                and Path(os.path.realpath(path)) in Path(real).parents
            )
            if inside or (os.path.exists(real) and os.path.samefile(path, real)):
                raise UnreadableFile(
                    f"{target} is read by this command, and would be overwritten: give another name"
                )


def _files_in(value: Any) -> Iterator[str]:
    """Existing files and folders in a value, as in m.json, replay:m.json and mass=2:m.json."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _files_in(item)
    elif isinstance(value, str | Path):
        text = str(value)
        starts = [0, *(k + 1 for k, letter in enumerate(text) if letter in ":=")]
        yield from (text[k:] for k in starts if text[k:] and os.path.exists(text[k:]))


JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
ReportOption = Annotated[
    Path | None,
    file_to_write("The report to write (.html).", "--report", endings=(".html", ".htm")),
]
PictureOption = Annotated[
    Path | None, file_to_write("The picture to write (.png).", "--picture", endings=PICTURES)
]
RobotArgument = Annotated[str, typer.Argument(help="A bundled arm, or a .urdf or .toml file.")]
LockOption = Annotated[
    list[str] | None,
    typer.Option(help="A joint to hold still, as finger=0.02 [rad or m]. May be repeated."),
]
FlangeOption = Annotated[
    str | None, typer.Option(help="The frame of the URDF in which payloads are expressed.")
]
GravityOption = Annotated[
    str | None,
    typer.Option(
        "--gravity",
        metavar="X,Y,Z",
        help="Gravity in the base frame [m/s^2]. Default: that of the robot. A wall may have"
        " 0,9.81,0, a ceiling 0,0,9.81.",
    ),
]
ModelArgument = Annotated[
    Path, typer.Argument(help="The identified empty arm (.json, from steelyard identify).")
]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="SIGNAL=NAME",
        help="The column of a signal, as tau=effort_ in a table, or q=/topic, tau=effort,"
        " current=effort, wrench=/topic in a ROS bag, or q=ang.txt in a folder with a file for each"
        " signal; tau= omits it. May be repeated.",
    ),
]
JointsOption = Annotated[
    str | None,
    typer.Option(
        "--joints",
        metavar="A,B,...",
        help="Joints of a ROS bag, or of the columns of a table. Default: the arm's, in its order.",
    ),
]
NamesOption = Annotated[
    str | None,
    typer.Option(
        "--names",
        metavar="t,q*6,...",
        help="Names of the columns of a text table without a header.",
    ),
]
RateOption = Annotated[
    float | None,
    typer.Option(
        "--rate", min=LOWEST_HZ, help="Rows per second of a table without a time column [Hz]."
    ),
]
TrustOption = Annotated[
    str,
    typer.Option(
        "--trust",
        metavar="effort=torque",
        help="Read the effort of a UR's bag as a torque, which is refused otherwise. The verdict"
        " says so.",
        show_default=False,
    ),
]
DegreesFlag = Annotated[bool, typer.Option("--degrees", help="Angles in the file are in degrees.")]
ConventionOption = Annotated[
    str | None,
    typer.Option(
        "--wrench-convention",
        help="Convention of a wrench in a table or bag: load_on_sensor or sensor_on_load.",
    ),
]
ArmOption = Annotated[
    str | None, typer.Option("--robot", help="The arm, for recordings with joints.")
]
SensorOption = Annotated[
    Path | None, typer.Option("--sensor", help="Description of the sensor (.toml).")
]
WrenchCutoffOption = Annotated[
    float,
    typer.Option(
        "--cutoff", min=LOWEST_HZ, help="Cut-off of the filter on motion and wrench [Hz]."
    ),
]


def read_all(
    paths: Iterable[Path] | None, read: Callable[[Path], Recording]
) -> dict[str, Recording]:
    """The recordings in files, by name.

    Args:
        paths: of the files
        read: reads one
    """
    found: dict[str, Recording] = {}
    for path in paths or ():
        if str(path) in found:
            raise InvalidSamples(f"{path} is given twice: give it once")
        found[str(path)] = read(path)
    return found


def repeated(ctx: typer.Context, *names: str) -> str:
    """Options as they were given, to be given again; each with a space before it.

    Args:
        ctx: of the verb
        names: of its parameters
    """
    words: list[str] = []
    for param in ctx.command.params:
        value = ctx.params.get(str(param.name))
        if param.name not in names or value in (None, False, "", (), []):
            continue
        option = param.opts[0]
        if value is True:
            words.append(option)
        elif isinstance(value, list | tuple):
            for each in value:
                words += [option, str(each)]
        else:
            words += [option, str(value)]
    return "".join(f" {shlex.quote(word)}" for word in words)


def load_arm(
    name: str, lock: list[str] | None, flange: str | None, gravity: str | None = None
) -> RobotModel:
    """The arm that a user named.

    Args:
        lock: joints and their positions as NAME=NUMBER [rad or m]
        flange: name of the frame for payloads
        gravity: where things fall in the base frame, as X,Y,Z [m/s^2]; the arm's own by default
    """
    from steelyard.robot import load_robot

    locked = named_numbers(lock, "--lock is JOINT=NUMBER, say finger=0.02")
    robot = load_robot(name, locked=locked, flange=flange)
    if Path(name).suffix in (".urdf", ".xml") and (robot.held or flange is None):
        print(with_options(robot.source), file=sys.stderr)
    if gravity is None:
        return robot
    return robot.with_gravity(numbers(gravity, "--gravity is X,Y,Z [m/s^2], say 0,9.81,0", count=3))


def load_limits(arm: RobotModel, name: str, path: Path | None) -> DesignLimits:
    """The limits in a file, or those of the arm.

    Args:
        name: of the arm, as the user gave it
        path: of the file
    """
    from steelyard.excitation import DesignLimits
    from steelyard.io._designs import load_limits

    if path is None:
        return DesignLimits.of(arm)
    if Path(name).suffix in (".urdf", ".xml"):
        urdf = name
    else:
        urdf = None
    return load_limits(arm, path, urdf=urdf)


def load_arm_if_named(
    name: str | None, lock: list[str] | None, flange: str | None
) -> RobotModel | None:
    """The arm, as `load_arm` does it; None where none is named."""
    if name is None and (lock or flange):
        raise InvalidRobot("--lock and --flange are for an arm: name it with --robot")
    if name is None:
        return None
    return load_arm(name, lock, flange)


def read_requested(path: Path, asked: Requested, *, robot: RobotModel | None = None) -> Recording:
    """The recording in a file, with what the user says about it.

    Args:
        asked: see `requested`
        robot: the arm, whose joints are read from a bag, in its order
    """
    from steelyard.io._recordings import read_with_joints

    return read_with_joints(path, asked, () if robot is None else robot.joint_names)


def requested(
    column: list[str] | None,
    joints: str | None,
    wrench_convention: str | None = None,
    *,
    wrench_frame: str | None = None,
    degrees: bool = False,
    names: str | None = None,
    rate: float | None = None,
    trust: str = "",
) -> Requested:
    """What the user says about files of recordings.

    Args:
        column: requests as SIGNAL=NAME, SIGNAL=NAME,NAME,... or SIGNAL=
        joints: names with commas
        wrench_convention: load_on_sensor or sensor_on_load
        wrench_frame: frame of the wrench
        degrees: whether angles are in degrees
        names: of the columns of a table without a header, as t,q*6,current*6
        rate: rows per second of a table without time, [Hz]
        trust: 'effort=torque', or empty
    """
    from steelyard.recording._columns import Requested, expanded_names

    if joints:
        joint_names = tuple(name.strip() for name in joints.split(","))
    else:
        joint_names = ()
    if names:
        listed = expanded_names(names)
    else:
        listed = ()
    columns = _columns(column or [])
    if trust:
        if trust != _TRUSTED:
            raise UnknownName(f"--trust is {_TRUSTED}; got '{trust}'")
        if "tau" in columns:
            raise UnknownName(f"--trust {_TRUSTED} and --column tau= exclude each other; give one")
        columns["tau"] = _TRUSTED
    return Requested(
        columns,
        joint_names,
        wrench_frame,
        cast("Any", wrench_convention),
        degrees,
        listed,
        rate,
    )


def described(
    sensor: Path | None, tables: Requested, gravity: str | None = None
) -> SensorDescription:
    """What the sensor is, and what the user says besides.

    Args:
        sensor: its file; None where there is none
        tables: about tables with joints
        gravity: where things fall in the base frame, as X,Y,Z [m/s^2]; as the file says by default
    """
    from steelyard.io._wrist import SensorDescription

    if sensor is None:
        about = SensorDescription()
    else:
        about = SensorDescription.load(sensor)
    if gravity is None:
        return replace(about, tables=tables)
    falls = numbers(gravity, "--gravity is X,Y,Z [m/s^2], say 0,9.81,0", count=3)
    return replace(about, tables=tables, gravity_base=np.array(falls))


def joint_indices(arm: RobotModel, text: str | None) -> list[int] | None:
    """Indices of the joints of --joints elbow,5 (names, or numbers from 1); None for all."""
    known = {str(k + 1): k for k in range(arm.n)} | {
        name: k for k, name in enumerate(arm.joint_names)
    }
    if text is None:
        listed = []
    else:
        listed = [name.strip() for name in text.split(",")]
    if unknown := [name for name in listed if name not in known]:
        there = f"{', '.join(arm.joint_names)}, also called 1 to {arm.n}"
        raise UnknownName(f"--joints: {arm.name} has no joint '{unknown[0]}'; it has {there}")
    return [known[name] for name in listed] or None


def numbers(text: str, rule: str, *, count: int | None = None) -> list[float]:
    """The numbers in '1,2.5,3'; a refusal says the rule of the option."""
    try:
        found = [_sane_number(x) for x in text.split(",")]
    except ValueError:
        found = []
    if not found or (count is not None and len(found) != count):
        raise InvalidSamples(f"{rule}; got '{text}'")
    return found


def preparation_as(
    arm: DynamicModel, cutoff_hz: float | None, kinematics: str | None
) -> Preparation | None:
    """How recordings become samples where the user states it; None for as the model's were.

    Args:
        arm: the model
        cutoff_hz: of the filter on the motion, [Hz]
        kinematics: measured or commanded
    """
    from steelyard.workflow._data import preparation_for

    changes: dict[str, Any] = {"cutoff_hz": cutoff_hz, "kinematics": kinematics}
    changes = {name: value for name, value in changes.items() if value is not None}
    if changes:
        return replace(preparation_for(arm, None), **changes)
    return None


def named_numbers(requests: list[str] | None, rule: str) -> dict[str, float]:
    """The numbers in ['a=1', 'b=2.5'], by name; a refusal says the rule of the option."""
    found = {}
    for request in requests or []:
        name, _, text = request.partition("=")
        if name in found:
            raise InvalidSamples(f"{rule}; '{name}' is given twice")
        try:
            found[name] = _sane_number(text)
        except ValueError:
            raise InvalidSamples(f"{rule}; got '{request}'") from None
    return found


def _sane_number(text: str) -> float:
    """A finite number of a sensible size; ValueError for any other text."""
    value = float(text)
    if not abs(value) < _LARGEST_NUMBER:
        raise ValueError(f"{text} is not a finite number of a sensible size")
    return value


def _columns(requests: list[str]) -> dict[str, str | list[str]]:
    columns: dict[str, str | list[str]] = {}
    for request in requests:
        signal, equals, names = request.partition("=")
        if not signal or not equals:
            raise UnknownName(f"--column is SIGNAL=NAME, say tau=effort; got '{request}'")
        listed = [name.strip() for name in names.split(",") if name.strip()]
        if len(listed) == 1:
            columns[signal] = listed[0]
        else:
            columns[signal] = listed
    return columns
