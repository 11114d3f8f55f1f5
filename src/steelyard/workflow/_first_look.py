"""A first look at a log: what its columns are, and which arm it may be of.

Nothing here decides what only a person can know. A `FirstLook` holds what the file shows and what
it leaves open: whether an effort is a torque or a current, the rate of a table without time, the
arm among those that fit.

A table without a header is understood by its numbers: a first column that grows by equal steps is
time, the first block of n columns is the position, a block that is the derivative of the position
is the velocity, and the last block is the effort.

Bundled arms are compared by the names of their joints. Where names do not tell, arms with the same
number of joints are sorted by their fit to the torques (`identification._arms_by_fit`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.errors import NoHeader, NoTime, SteelyardError, UnclearEffort, UnreadableFile
from steelyard.identification._arms_by_fit import arms_by_fit
from steelyard.io._recordings import column_names, file_kind, read_as
from steelyard.io._rosbag import is_ur
from steelyard.io._tables import text_column_names, text_columns
from steelyard.io._wrist import SensorDescription
from steelyard.quality import check
from steelyard.recording import Recording, Samples, WrenchConvention
from steelyard.recording._columns import (
    EFFORT_IS_TORQUE,
    MILLISECONDS,
    REFUSED,
    TIME_WORDS,
    Requested,
)
from steelyard.recording._joints import joints_by_prefix
from steelyard.recording._notes import NoteKind, has_kind
from steelyard.robot import RobotModel, load_robot, robot_names
from steelyard.signals import prepare
from steelyard.workflow._wrist import WristWeighing
from steelyard.wrist import WristSensor
from steelyard.wrist._recording import WrenchFrame

_EFFORT = "effort"
_JOINT_COUNTS: tuple[int, ...] = (6, 7, 5, 4, 8, 9, 3, 2)  # of arms, the most frequent first
_MAX_STEP_SPREAD = 0.5  # of a clock, relative to its median step
_MIN_CORRELATION = 0.9  # between a velocity and the differences of the position
_ASSUMED_WRENCH = Requested(wrench_frame="sensor", wrench_convention="load_on_sensor")
_WRENCH_NAMES = (("fx", "fy", "fz"), ("force_x", "force_y", "force_z"))
_TORQUE_NAMES = (
    ("tx", "ty", "tz"),
    ("mx", "my", "mz"),
    ("torque_x", "torque_y", "torque_z"),
    ("moment_x", "moment_y", "moment_z"),
)
_QUATERNION_NAMES = (
    ("qx", "qy", "qz", "qw"),
    ("quat_x", "quat_y", "quat_z", "quat_w"),
    ("orientation_x", "orientation_y", "orientation_z", "orientation_w"),
)
_POSITION_NAMES = (("x", "y", "z"), ("px", "py", "pz"), ("pos_x", "pos_y", "pos_z"))
_UNIT = re.compile(r"(_(n|nm|m|s)|\s*[\[(](n|nm|n_m|m|s)[\])])$")
_TIME_NAMES = (("t",), ("time",), ("timestamp",))


_UR_MEANINGS = {
    "actual_q": "measured joint positions [rad]",
    "actual_current": "measured motor currents [A], from which a UR is weighed: it measures no"
    " joint torques",
    "target_current": "motor currents that the controller asks for [A]",
    "target_moment": "joint torques of the controller's own model [Nm]; beside target_current they"
    " give the gains [Nm/A] of the drives, but they are not measured",
    "ft_raw_wrench": "reading of the wrist sensor [N, Nm]",
    "payload": "mass that is set in the controller [kg]",
    **{
        name: f"not read: {REFUSED[name]}"
        for name in ("actual_TCP_force", "actual_current_as_torque")
    },
}
_UR_POSITION = "actual_q"  # without it, columns are not those of a UR


@dataclass(frozen=True, eq=False)
class FirstLook:
    """What a log shows without any statement of its user.

    Attributes:
        path: of the log
        asked: statements with which it can be read, found or given
        recording: the log; None where it has no joints, or cannot be read yet
        effort_word: columns whose meaning, torque or current, is open; empty where it is clear
        effort_advice: what the reader of a bag says about such an effort; empty for tables
        needs_rate: whether it has no time column
        sensor_columns: columns of a wrist sensor with its pose, by signal; empty for a log of
            joints
    """

    path: Path
    asked: Requested
    recording: Recording | None = None
    effort_word: str = ""
    effort_advice: str = ""
    needs_rate: bool = False
    sensor_columns: dict[str, list[str]] | None = None

    @classmethod
    def at(cls, path: str | Path, asked: Requested, joint_count: int | None = None) -> FirstLook:
        """A look at a file.

        Args:
            path: of the log
            asked: what its user states already
            joint_count: number of joints of the arm, where it is known
        """
        path = Path(path)
        try:
            recording = _read(path, asked)
        except NoHeader as error:
            if asked.names:
                raise
            return cls._without_header(path, asked, error.count, joint_count)
        except NoTime:
            found = replace(cls.at(path, replace(asked, rate_hz=1.0), joint_count), asked=asked)
            return replace(found, needs_rate=True)
        except UnclearEffort as error:
            silent = replace(asked, columns={**asked.columns, "tau": []})
            return cls(path, asked, _read(path, silent), _EFFORT, str(error))
        except UnreadableFile:
            columns = _sensor_columns(path)
            if not columns:
                raise
            return cls(path, asked, sensor_columns=columns)
        return cls._of(path, asked, recording)

    @classmethod
    def _without_header(
        cls, path: Path, asked: Requested, count: int, joint_count: int | None
    ) -> FirstLook:
        names = _names_by_numbers(path, count, joint_count)
        asked = replace(asked, names=names)
        if "t" in names or asked.rate_hz is not None:
            found = cls._of(path, asked, _read(path, asked))
        else:
            found = cls._of(path, asked, _read(path, replace(asked, rate_hz=1.0)))
            found = replace(found, asked=asked, needs_rate=True)
        return replace(found, effort_word="tau")

    @classmethod
    def _of(cls, path: Path, asked: Requested, recording: Recording) -> FirstLook:
        """A look at a recording that can be read; degrees and milliseconds are noticed."""
        if _finds(recording, "clock_unit"):
            asked = _with_milliseconds(path, asked)
            recording = _read(path, asked)
        if not asked.degrees and _finds(recording, "degrees"):
            asked = replace(asked, degrees=True)
            recording = _read(path, asked)
        effort_word = ""
        if any(has_kind(note, NoteKind.UNCLEAR_EFFORT) for note in recording.notes):
            effort_word = _EFFORT
        return cls(path, asked, recording, effort_word)

    @property
    def has_effort(self) -> bool:
        """Whether it has torques or currents, or columns that may be."""
        if self.recording is None:
            return False
        read = self.recording.tau is not None or self.recording.current is not None
        return read or bool(self.effort_word)

    @property
    def has_wrench(self) -> bool:
        """Whether it has the wrench of a wrist sensor."""
        if self.sensor_columns:
            return True
        return self.recording is not None and self.recording.wrench is not None

    @property
    def shows_motion(self) -> bool:
        """Whether rows follow each other in time and hold positions, which accelerations need."""
        if self.needs_rate:
            return False
        if self.sensor_columns is None:
            return True
        return "t" in self.sensor_columns and "position" in self.sensor_columns

    @property
    def is_of_ur(self) -> bool:
        """Whether it has the joints of a Universal Robots arm."""
        return self.recording is not None and is_ur(self.recording.joint_names)

    @property
    def ur_columns(self) -> dict[str, str]:
        """What columns mean that a UR controller has named; empty for other logs."""
        found = {re.sub(r"[._\[]?\d+\]?$", "", name) for name in _column_names(self.path)}
        if _UR_POSITION not in found:
            return {}
        return {name: words for name, words in _UR_MEANINGS.items() if name in found}

    @property
    def in_milliseconds(self) -> bool:
        """Whether its clock is read as milliseconds."""
        return MILLISECONDS in self.asked.columns or MILLISECONDS in self.asked.names

    def with_effort(self, meaning: str) -> FirstLook:
        """The same log with open columns read as 'tau' or 'current'.

        A torque in the bag of a UR is read because its user vouches for it.
        """
        if not self.effort_word:
            return self
        if self.asked.names:
            names = [name.replace("tau_", f"{meaning}_") for name in self.asked.names]
            asked = replace(self.asked, names=tuple(names))
        else:
            word = self.effort_word
            if meaning == "tau" and self.effort_advice and self.is_of_ur:
                word = EFFORT_IS_TORQUE
            asked = replace(self.asked, columns={**self.asked.columns, meaning: word})
        return self._read_again(asked)

    def with_rate(self, rate_hz: float) -> FirstLook:
        """The same log with a number of rows per second [Hz]."""
        return self._read_again(replace(self.asked, rate_hz=rate_hz))

    def _read_again(self, asked: Requested) -> FirstLook:
        if self.needs_rate and asked.rate_hz is None:
            return replace(self, asked=asked, effort_word="")
        recording = _read(self.path, asked)
        return FirstLook(self.path, asked, recording)

    def bundled_arms(self) -> BundledArms:
        """The bundled arms that it may be of."""
        if self.recording is None:
            return BundledArms(())
        return BundledArms.like(self.recording)


@dataclass(frozen=True)
class BundledArms:
    """Bundled arms that a log may be of, the likeliest first.

    Attributes:
        names: of the arms
        sure: whether the log itself tells that it is the first one
    """

    names: tuple[str, ...]
    sure: bool = False

    @classmethod
    def like(cls, recording: Recording) -> BundledArms:
        """Arms with the joints of a recording."""
        if recording.arm.kind in robot_names():
            return cls((recording.arm.kind,), sure=True)
        arms = [load_robot(name) for name in robot_names()]
        same_count = [arm for arm in arms if arm.n == recording.n]
        same_names = [arm for arm in same_count if _same_joints(arm, recording.joint_names)]
        if len(same_names) == 1:
            return cls((same_names[0].name,), sure=True)
        likeliest = arms_by_fit(same_names or same_count, recording.q, _prepared(recording))
        return cls(tuple(arm.name for arm in likeliest))


def _read(path: Path, asked: Requested) -> Recording:
    """The recording; a wrench without a frame and convention gets the usual ones for a first look.

    Args:
        path: of the log
        asked: what is stated about it
    """
    specific = (NoHeader, NoTime, UnclearEffort)
    try:
        return read_as(path, asked)
    except specific:
        raise
    except UnreadableFile as refusal:
        try:
            return read_as(path, replace(asked, assumed=_ASSUMED_WRENCH))
        except specific:
            raise
        except UnreadableFile:
            raise refusal from None


def _column_names(path: Path) -> tuple[str, ...]:
    """Names of the columns of a log; none where it has none, or they cannot be listed."""
    try:
        return column_names(path)
    except UnreadableFile:
        return ()


def _same_joints(arm: RobotModel, names: Sequence[str]) -> bool:
    """Whether a recording has the joints of an arm, but for a prefix that means something."""
    if _numbered(names):
        return False
    if tuple(names) == arm.joint_names:
        return True
    matched = joints_by_prefix(tuple(names), arm.joint_names)
    return matched is not None and not _numbered(arm.joint_names)


def _numbered(names: Sequence[str]) -> bool:
    """Whether names tell no more than the number of each joint."""
    return all(
        name.lower().removeprefix("joint").removeprefix("_").removeprefix("a").isdigit()
        for name in names
    )


def _prepared(recording: Recording) -> Samples | None:
    """The samples of a recording; None without torques, or if it cannot be prepared."""
    if recording.tau is None:
        return None
    try:
        return prepare(recording)
    except SteelyardError:
        return None


def _finds(recording: Recording, kind: str) -> bool:
    """Whether the check of a recording finds an error of a kind."""
    findings = check(recording).findings
    return any(finding.kind == kind and finding.severity == "error" for finding in findings)


def _with_milliseconds(path: Path, asked: Requested) -> Requested:
    """The statements with which the clock of a text table counts milliseconds.

    They are unchanged for other files, and where no column has a usual name of a clock.
    """
    if asked.names:
        names = [MILLISECONDS if name in TIME_WORDS else name for name in asked.names]
        return replace(asked, names=tuple(names))
    if file_kind(path) != "text":
        return asked
    named = next((name for name in text_column_names(path) if name in TIME_WORDS), None)
    clock = asked.columns.get("t", named)
    if clock is None:
        return asked
    others = {signal: names for signal, names in asked.columns.items() if signal != "t"}
    return replace(asked, columns={**others, MILLISECONDS: clock})


def _names_by_numbers(path: Path, count: int, joint_count: int | None) -> tuple[str, ...]:
    """Names of the columns of a table without a header; the effort is called tau."""
    columns = [f"column_{k}" for k in range(count)]
    values, _ = text_columns(path, columns, columns)
    numbers = np.column_stack([values[name] for name in columns])
    times = 0
    if _is_clock(numbers[:, 0]):
        times = 1
    n = _joint_count(count - times, joint_count)
    if n is None:
        raise UnreadableFile(
            f"{path}: {count} columns of numbers without names are not a time and blocks of"
            " positions and torques of one arm; name them with `names`, as in"
            " `names=['t', 'q_0', 'tau_0']`"
        )
    blocks = numbers[:, times:].reshape(len(numbers), -1, n)
    words = ["q"] + ["other"] * (blocks.shape[1] - 2) + ["tau"]
    for k in range(1, len(words) - 1):
        if _is_derivative(blocks[:, k], blocks[:, 0]) and "v" not in words:
            words[k] = "v"
    names = [f"{word}_{j}" for word in words for j in range(n)]
    others = [f"other{k}" for k in range(len(names))]
    named = [
        other if name.startswith("other") else name
        for name, other in zip(names, others, strict=True)
    ]
    return ("t",) * times + tuple(named)


def _joint_count(columns: int, known: int | None) -> int | None:
    """Number of joints for a number of columns: that of the arm, or the likeliest; or None."""
    likely = _JOINT_COUNTS
    if known is not None:
        likely = (known,)
    return next((n for n in likely if columns % n == 0 and columns // n >= 2), None)


def _is_clock(values: Array) -> bool:
    steps = np.diff(values)
    if not len(steps) or not (steps > 0).all():
        return False
    median = np.median(steps)
    return bool(np.mean(np.abs(steps - median) < _MAX_STEP_SPREAD * median) > 0.9)


def _is_derivative(values: Array, position: Array) -> bool:
    """Whether a block follows the differences of the positions, (N, n) each."""
    slope = np.gradient(position, axis=0).ravel()
    both = np.corrcoef(slope, values.ravel())
    return bool(both[0, 1] > _MIN_CORRELATION)


def _sensor_columns(path: Path) -> dict[str, list[str]]:
    """Columns of wrench, pose and time in a text table, by the usual names; empty without both."""
    if file_kind(path) != "text":
        return {}
    try:
        names = text_column_names(path)
    except UnreadableFile:
        return {}
    force = _named(names, _WRENCH_NAMES)
    torque = _named(names, _TORQUE_NAMES)
    quaternion = _named(names, _QUATERNION_NAMES)
    if not (force and torque and quaternion):
        return {}
    found = {
        "t": _named(names, _TIME_NAMES),
        "wrench": force + torque,
        "quaternion": quaternion,
        "position": _named(names, _POSITION_NAMES),
    }
    return {signal: columns for signal, columns in found.items() if columns}


def _named(names: Sequence[str], usual: Sequence[Sequence[str]]) -> list[str]:
    """The columns with one of the usual sets of names; empty if none fits.

    Case and a unit at the end (Fx_N, "Fx [N]") do not matter.
    """
    by_name = {_UNIT.sub("", name.lower().replace(".", "_")): name for name in names}
    for wanted in usual:
        if all(word in by_name for word in wanted):
            return [by_name[word] for word in wanted]
    return []


class WrenchStatement(NamedTuple):
    """How the readings of a wrist sensor are to be read.

    Attributes:
        convention: whose wrench it is
        frame: of the forces, 'sensor' or 'base'
        is_found: whether the readings tell it; assumed otherwise
    """

    convention: WrenchConvention
    frame: WrenchFrame
    is_found: bool = True


def wrench_statement(
    look: FirstLook, robot: RobotModel | None, *, gravity_base: Sequence[float] | None, timed: bool
) -> WrenchStatement:
    """The convention and the frame of a wrist sensor's readings for which a load fits them.

    Args:
        look: at a log with a wrench
        robot: the arm; None for a table with the pose of the sensor
        gravity_base: gravity, (3,) [m/s^2], in the base frame; None for an upright arm
        timed: whether the rows follow each other in time; postures at rest otherwise
    """
    gravity = None
    if gravity_base is not None:
        gravity = np.asarray(gravity_base, dtype=float)
    frames: tuple[WrenchFrame, ...] = ("sensor",)
    if look.sensor_columns:
        frames = ("sensor", "base")
    conventions: tuple[WrenchConvention, ...] = ("load_on_sensor", "sensor_on_load")
    for frame, convention in itertools.product(frames, conventions):
        sensor = SensorDescription(
            WristSensor(frame=frame),
            gravity_base=gravity,
            columns=look.sensor_columns or {},
            tables=replace(look.asked, wrench_convention=convention),
        )
        weighing = WristWeighing(static=look.path, robot=robot, sensor=sensor)
        if timed:
            weighing = WristWeighing(dynamic=look.path, robot=robot, sensor=sensor)
        with suppress(SteelyardError):
            found = weighing.payload
            if found.unconstrained.mass > NORMAL_95 * found.std[0]:
                return WrenchStatement(convention, frame)
    return WrenchStatement("load_on_sensor", "sensor", is_found=False)
