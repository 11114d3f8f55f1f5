"""`steelyard start LOG [ARM]`: looks at a log, asks what it does not tell, and weighs.

What is done is a list of ordinary commands. They are shown, run one after the other, and written
into commands.sh beside their results.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard import _saved
from steelyard.cli import options
from steelyard.errors import InvalidRecording, SteelyardError, UnknownName

if TYPE_CHECKING:
    from steelyard.robot import RobotModel
    from steelyard.workflow._first_look import FirstLook, WrenchStatement

_MAX_QUESTIONS = 5
_MOUNTINGS = {"floor": "", "ceiling": "0,0,9.81", "wall": None}
_LISTED_ARMS = 8
_MODEL_ENDING = ".json"
_UNKNOWN = "unknown"
_POSE_RULE = f"the pose is X,Y,Z,ROLL,PITCH,YAW [m, degrees], say 0,0,0.04,0,0,45, or {_UNKNOWN}"
_RATE_RULE = "the rate is a number [Hz], say 125"
_DIRECTION_RULE = "the direction of fall is X,Y,Z [m/s^2], say 0,9.81,0"
_NOT_TRUSTWORTHY = 1  # exit code of a command that was accepted, and whose answer has a doubt


def command(
    log: Annotated[Path, typer.Argument(help="A recording of the arm.")],
    arm: Annotated[
        str | None, typer.Argument(help="A bundled arm, or a .urdf or .toml file.")
    ] = None,
    is_empty: Annotated[
        bool, typer.Option("--is-empty", help="The arm carries nothing in LOG.")
    ] = False,
    empty: Annotated[
        Path | None,
        typer.Option(
            help="A recording of the empty arm, or its model (.json). The arm then carries a"
            " payload in LOG."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the results. Default: LOG-results."),
    ] = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    gravity: options.GravityOption = None,
    sensor_pose: Annotated[
        str | None,
        typer.Option(
            metavar="X,Y,Z,ROLL,PITCH,YAW",
            help="Pose of a wrist sensor in the flange frame, [m, degrees], or 'unknown'.",
        ),
    ] = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    rate: options.RateOption = None,
    degrees: options.DegreesFlag = False,
    trust: options.TrustOption = "",
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing; what cannot be found must be given.")
    ] = False,
) -> None:
    """Looks at a log, asks at most five questions, and identifies or weighs.

    The commands that do it again are written into commands.sh.
    """
    from steelyard.workflow._first_look import FirstLook

    if is_empty and empty is not None:
        raise UnknownName("--is-empty and --empty exclude each other: LOG is empty or loaded")
    if empty is not None:
        _require_empty_arm(empty)
    known_arm = None
    if arm is not None:
        known_arm = options.load_arm(arm, lock, flange)
    asked = options.requested(column, joints, degrees=degrees, names=names, rate=rate, trust=trust)
    look = FirstLook.at(log, asked, None if known_arm is None else known_arm.n)
    session = _Session(
        log=log,
        folder=output or log.with_name(f"{log.stem}-results"),
        questions=_Questions(yes=yes),
        look=look,
        arm_name=arm,
        known_arm=known_arm,
        lock=lock or [],
        flange=flange,
        gravity=gravity,
        is_empty=is_empty,
        empty=empty,
        sensor_pose=sensor_pose,
    )
    session.describe()
    if look.has_effort:
        session.plan_joint_torques()
    elif look.has_wrench:
        session.plan_wrist_sensor()
    else:
        raise InvalidRecording(
            f"{log} has neither torques, motor currents nor a wrench, so nothing can be weighed;"
            " record one of them, or name its columns with --column tau=NAME"
        )
    session.run()


def _require_empty_arm(path: str | Path) -> None:
    """Refuses a file of the empty arm that is not there, before anything is written."""
    if not Path(path).exists():
        raise InvalidRecording(
            f"there is no file {path}; a payload is weighed against the empty arm: record it on a"
            " similar motion, and name the file with --empty"
        )


def _require_arm(name: str) -> None:
    """Refuses an arm that is neither bundled nor a file."""
    from steelyard.robot import robot_names

    if name not in robot_names() and not Path(name).is_file():
        raise UnknownName(
            f"there is no file {name}, and no bundled arm has this name: steelyard robots lists"
            " them"
        )


def _require_direction(text: str) -> None:
    options.numbers(text, _DIRECTION_RULE, count=3)


def _require_rate(text: str) -> None:
    options.numbers(text, _RATE_RULE, count=1)


def _require_pose(text: str) -> None:
    if text != _UNKNOWN:
        options.numbers(text, _POSE_RULE, count=6)


@dataclass
class _Questions:
    """Asks in a terminal, at most five times; with --yes and elsewhere answers must be given."""

    yes: bool
    asked: int = 0

    def choose(self, question: str, answers: Sequence[str], *, refusal: str) -> str:
        """One of the answers; the first is the default. Another reply is asked for again.

        Args:
            question: to ask
            answers: that are allowed
            refusal: the message where nothing can be asked
        """
        self._require(refusal)
        for number, answer in enumerate(answers, 1):
            print(f"  {number}  {answer}")
        self.asked += 1
        while True:
            reply = str(typer.prompt(question, default="1")).strip()
            if reply in answers:
                return reply
            if reply.isdigit() and 1 <= int(reply) <= len(answers):
                return answers[int(reply) - 1]
            print(f"'{reply}' is none of the answers: type a number from 1 to {len(answers)}.")

    def text(self, question: str, check: Callable[[str], object], *, refusal: str) -> str:
        """A text that can be used. Another one is asked for again, with the reason.

        Args:
            question: to ask
            check: raises an error about a text that cannot be used
            refusal: the message where nothing can be asked
        """
        self._require(refusal)
        self.asked += 1
        while True:
            reply = str(typer.prompt(question)).strip()
            try:
                check(reply)
            except SteelyardError as error:
                print(f"{error}.")
            else:
                return reply

    @property
    def may_ask(self) -> bool:
        """Whether one more question is allowed."""
        return not self.yes and sys.stdin.isatty() and self.asked < _MAX_QUESTIONS

    def _require(self, refusal: str) -> None:
        if not self.may_ask:
            raise UnknownName(refusal)


@dataclass
class _Session:
    """What is known about a log, and the commands that follow from it."""

    log: Path
    folder: Path
    questions: _Questions
    look: FirstLook
    arm_name: str | None
    known_arm: RobotModel | None
    lock: list[str]
    flange: str | None
    gravity: str | None
    is_empty: bool
    empty: Path | None
    sensor_pose: str | None
    commands: list[list[str]] = field(default_factory=list)
    later: str = ""

    def describe(self) -> None:
        """Prints what the log shows."""
        look = self.look
        if look.recording is None:
            columns = look.sensor_columns or {}
            print(f"{self.log}: a wrist sensor, with {', '.join(columns)}.")
            return
        found = look.recording
        rate = f"{found.rate_hz:.4g} Hz"
        if look.needs_rate:
            rate = "no time column"
        print(
            f"{self.log}: {len(found)} rows, {found.n} joints, {rate};"
            f" signals: {', '.join(found.channels)}."
        )
        if meanings := look.ur_columns:
            print("Its columns have the names of a UR controller:")
            for name, words in meanings.items():
                print(f"  {name}: {words}")
        if look.asked.degrees:
            print("Its angles are in degrees (--degrees).")
        if look.in_milliseconds:
            print("Its clock counts milliseconds (--column t_ms).")
        if look.asked.names:
            print(
                f"It has no header; its columns are read as {_short(look.asked.names)} (--names)."
            )

    def plan_joint_torques(self) -> None:
        """The commands for torques or currents of the joints."""
        carries = self._carries()
        if self.empty is not None and self.empty.suffix == _MODEL_ENDING:
            self._plan_weighing(self.empty)
        elif carries == "nothing":
            self._plan_model(self.log)
        else:
            self._plan_weighing(self._plan_model(self.empty))

    def _plan_model(self, run: Path | None) -> Path:
        """The command that identifies the empty arm; returns the file of its model."""
        robot = self._arm()
        self._clarify()
        self._mounting()
        arm = [self.arm_name or robot.name, *self._arm_options()]
        model = self.folder / "model.json"
        report = self.folder / "model.html"
        words = ["identify", arm[0], str(run), "-o", str(model), "--report", str(report)]
        self.commands.append([*words, *arm[1:], *self._told()])
        more = shlex.join(["--empty", str(model), *self._told()])
        self.later = f"steelyard start LOADED {arm[0]} {more}"
        return model

    def _plan_weighing(self, model: Path) -> None:
        """The command that weighs with a model, which knows its arm and its mounting."""
        if not self.commands:
            from steelyard.workflow._data import identified_arm

            known = identified_arm(model).robot
            print(f"The arm: {known.name}, by {model}.")
            self._clarify()
        payload = self.folder / "payload.json"
        report = self.folder / "payload.html"
        words = ["weigh", str(model), str(self.log), "-o", str(payload), "--report", str(report)]
        self.commands.append([*words, *self._told()])
        self.later = f"steelyard export ur {payload} (or abb, kuka, ...)"

    def plan_wrist_sensor(self) -> None:
        """The commands for a wrist sensor, whose description is written."""
        robot = None
        if self.look.recording is not None:
            robot = self._arm()
        self._mounting()
        pose = self._pose_lines()
        sensor = self.folder / "sensor.toml"
        timed = self.look.shows_motion
        stage = "in-motion" if timed else "at-rest"
        wrench = self._wrench(robot, timed=timed)
        self.folder.mkdir(parents=True, exist_ok=True)
        _saved.write_text(sensor, self._sensor_text(wrench, pose))
        if wrench.is_found:
            why = f"the sign of the mass says that the convention is {wrench.convention}"
        else:
            why = f"no load fits the readings, so the convention {wrench.convention} is a guess"
        print(f"Written: {sensor}; {why}.")
        payload = self.folder / "payload.json"
        report = self.folder / "payload.html"
        words = ["weigh-wrist", stage, str(self.log), "--sensor", str(sensor)]
        if robot is not None:
            words += ["--robot", self.arm_name or robot.name, *self._arm_options()]
        elif self.gravity is not None:
            words += ["--gravity", self.gravity]
        self.commands.append([*words, "-o", str(payload), "--report", str(report), *self._told()])
        self.later = f"steelyard export ur {payload} (or abb, kuka, ...)"

    def run(self) -> None:
        """Shows the commands, writes them, and runs them until one fails."""
        lines = [shlex.join(["steelyard", *words]) for words in self.commands]
        print("\nThis will run:")
        for line in lines:
            print(f"  {line}")
        self.folder.mkdir(parents=True, exist_ok=True)
        for words, line in zip(self.commands, lines, strict=True):
            print(f"\n$ {line}", flush=True)
            # descriptors 1 and 2 of this process discard what they get (`__main__`)
            done = subprocess.run(
                [sys.executable, "-m", "steelyard", *words],
                stdout=sys.stdout,
                stderr=sys.stderr,
                check=False,
            )
            code = done.returncode
            if code == _NOT_TRUSTWORTHY:
                print(f"\nIt stopped here with exit code {code}. Commands: {self._script(lines)}")
            elif code:
                print(f"\nIt stopped here with exit code {code}; the commands were not written.")
            if code:
                raise typer.Exit(code)
        print(f"\nCommands: {self._script(lines)}")
        print(f"Next: {self.later}")

    def _script(self, lines: Sequence[str]) -> Path:
        """The file with the commands, which is written once they are known to be accepted."""
        script = self.folder / "commands.sh"
        here = shlex.join(["cd", str(Path.cwd())])
        _saved.write_text(script, "\n".join(["#!/bin/sh -e", here, *lines, ""]))
        return script

    def _carries(self) -> str:
        """'nothing' or 'a payload'; asks for a run of the empty arm where there is a payload."""
        if self.is_empty:
            return "nothing"
        if self.empty is not None:
            return "a payload"
        carries = self.questions.choose(
            "What does the arm carry in this log?",
            ("nothing", "a payload"),
            refusal="say what the arm carries: --is-empty for nothing, or --empty FILE for a"
            " payload, with a recording of the empty arm or its model",
        )
        if carries == "a payload":
            answer = self.questions.text(
                "A recording of the empty arm, or its model (.json)",
                _require_empty_arm,
                refusal="give --empty FILE, a recording of the empty arm or its model",
            )
            self.empty = Path(answer)
        return carries

    def _arm(self) -> RobotModel:
        """The arm: named, found in the log, or chosen."""
        if self.arm_name is None:
            found = self.look.bundled_arms()
            if found.sure:
                self.arm_name = found.names[0]
                print(f"The arm: {self.arm_name}, by the log.")
            else:
                listed = [*found.names[:_LISTED_ARMS], "another one"]
                likely = ", ".join(found.names) or "none with this number of joints"
                self.arm_name = self.questions.choose(
                    "Which arm is it? The likeliest comes first",
                    listed,
                    refusal="the log does not say which arm it is of: name it after the log, a"
                    f" .urdf or .toml file or a bundled arm (likely: {likely})",
                )
            if self.arm_name == "another one":
                self.arm_name = self.questions.text(
                    "Its .urdf or .toml file, or bundled name",
                    _require_arm,
                    refusal="name the arm after the log",
                )
        robot = self.known_arm
        if robot is None:
            robot = options.load_arm(self.arm_name, self.lock, self.flange)
        if Path(self.arm_name).suffix not in (".urdf", ".xml"):  # which is described when read
            print(f"{robot.name}: {robot.source}")
        return robot

    def _clarify(self) -> None:
        """Asks for the meaning of an effort and for a rate, where the log does not tell."""
        if self.look.effort_word:
            answers = ["torques [Nm]", "motor currents [A]"]
            if self.look.effort_advice and self.look.is_of_ur:
                answers = ["motor currents [A]", "torques [Nm]: my driver publishes them"]
            answer = self.questions.choose(
                "Are the efforts torques or motor currents?",
                answers,
                refusal=_effort_refusal(self.look),
            )
            meaning = "tau" if answer.startswith("torques") else "current"
            needs_rate = self.look.needs_rate
            self.look = self.look.with_effort(meaning)
            if needs_rate:
                self._ask_rate()
        elif self.look.needs_rate:
            self._ask_rate()

    def _ask_rate(self) -> None:
        text = self.questions.text(
            "Rows per second [Hz]",
            _require_rate,
            refusal="the log has no time column: give its --rate",
        )
        self.look = self.look.with_rate(options.numbers(text, _RATE_RULE, count=1)[0])

    def _mounting(self) -> None:
        """Asks how the arm is mounted, or says that it stands upright."""
        if self.gravity is not None:
            return
        if not self.questions.may_ask:
            print("Gravity: as for an arm on the floor (--gravity X,Y,Z for another mounting).")
            return
        answer = self.questions.choose("How is the arm mounted?", tuple(_MOUNTINGS), refusal="")
        found = _MOUNTINGS[answer]
        if found is None:
            found = self.questions.text(
                "Where things fall in the base frame: X,Y,Z [m/s^2], as 0,9.81,0",
                _require_direction,
                refusal="for an arm on a wall give the direction of fall in its base frame, as in"
                " --gravity 0,9.81,0, and start again",
            )
        self.gravity = found or None

    def _arm_options(self) -> list[str]:
        words = [word for joint in self.lock for word in ("--lock", joint)]
        if self.flange:
            words += ["--flange", self.flange]
        if self.gravity:
            words += ["--gravity", self.gravity]
        return words

    def _told(self) -> list[str]:
        """Options about the log itself."""
        from steelyard.recording._columns import EFFORT_IS_TORQUE

        asked = self.look.asked
        words = []
        for signal, name in asked.columns.items():
            if name == EFFORT_IS_TORQUE:
                words += ["--trust", EFFORT_IS_TORQUE]
                continue
            names = name if isinstance(name, str) else ",".join(name)
            words += ["--column", f"{signal}={names}"]
        if asked.joint_names:
            words += ["--joints", ",".join(asked.joint_names)]
        if asked.names:
            words += ["--names", _short(asked.names)]
        if asked.rate_hz is not None and self.look.has_effort:
            words += ["--rate", f"{asked.rate_hz:g}"]
        if asked.degrees:
            words.append("--degrees")
        return words

    def _wrench(self, robot: RobotModel | None, *, timed: bool) -> WrenchStatement:
        """The convention and the frame of the wrench with which the readings fit a load."""
        from steelyard.workflow._first_look import wrench_statement

        gravity = None
        if self.gravity is not None:
            gravity = options.numbers(self.gravity, "--gravity is X,Y,Z [m/s^2]", count=3)
        if robot is not None and gravity is not None:
            robot = robot.with_gravity(gravity)
        return wrench_statement(self.look, robot, gravity_base=gravity, timed=timed)

    def _pose_lines(self) -> list[str]:
        """The pose of the sensor on the flange as lines of sensor.toml: given, asked or unknown."""
        answer = self.sensor_pose
        if answer is None:
            answer = self.questions.text(
                "Pose of the sensor in the flange frame: X,Y,Z,ROLL,PITCH,YAW [m, degrees],"
                f" or {_UNKNOWN}",
                _require_pose,
                refusal="the log does not say how the sensor is mounted: give its pose in the"
                " flange frame, --sensor-pose X,Y,Z,ROLL,PITCH,YAW [m, degrees], or --sensor-pose"
                f" {_UNKNOWN}",
            )
        if answer.strip() == _UNKNOWN:
            return [
                "# translation = [X, Y, Z]  # the sensor in the flange frame [m]: not known yet",
                "# rotation_rpy_degrees = [ROLL, PITCH, YAW]",
            ]
        x, y, z, roll, pitch, yaw = options.numbers(answer, _POSE_RULE, count=6)
        return [
            f"translation = [{x}, {y}, {z}]  # the sensor in the flange frame [m]",
            f"rotation_rpy_degrees = [{roll}, {pitch}, {yaw}]",
        ]

    def _sensor_text(self, wrench: WrenchStatement, pose: Sequence[str]) -> str:
        """The content of sensor.toml.

        Args:
            wrench: its convention and frame
            pose: lines about the pose of the sensor
        """
        lines = [
            f"# Description of the wrist sensor in {self.log.name}; all keys: docs/howto/wrist.md",
            f'convention = "{wrench.convention}"',
            f'frame = "{wrench.frame}"',
            *pose,
        ]
        if self.look.sensor_columns:
            lines += ["", "[columns]"]
            for signal, columns in self.look.sensor_columns.items():
                listed = ", ".join(f'"{name}"' for name in columns)
                lines.append(f"{signal} = [{listed}]")
        return "\n".join([*lines, ""])


def _effort_refusal(look: FirstLook) -> str:
    """What to give where the meaning of an effort cannot be asked."""
    if look.effort_advice:
        return look.effort_advice
    if look.asked.names:
        current = [name.replace("tau_", "current_") for name in look.asked.names]
        return (
            f"say whether the last columns are torques, --names {_short(look.asked.names)}, or"
            f" motor currents, --names {_short(current)}"
        )
    return (
        f"say what '{look.effort_word}' is: --column tau={look.effort_word} for torques [Nm],"
        f" --column current={look.effort_word} for motor currents [A]"
    )


def _short(names: Sequence[str]) -> str:
    """Names of columns as they are typed: t,q*6,tau*6."""
    parts: list[tuple[str, int]] = []
    for name in names:
        word, _, index = name.rpartition("_")
        if not (word and index.isdigit()):
            parts.append((name, 0))
        elif parts and parts[-1][0] == word and int(index) == parts[-1][1]:
            parts[-1] = (word, parts[-1][1] + 1)
        else:
            parts.append((word, 1))
    return ",".join(word if not count else f"{word}*{count}" for word, count in parts)
