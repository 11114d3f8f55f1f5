"""Names of columns: which column of a log is which signal.

A name is a word and an index: `q_0`, `q0`, `q.0`, `q[0]` (counted from 0 or from 1), or a word and
a joint, `q.elbow`, `q_elbow` or `elbow_q`. Known words are those of steelyard, of UR's RTDE and of
libfranka; others are given as `columns`. A word with different meanings on different arms
(`effort` is a current on a UR) is never guessed.

libfranka's `franka::logToCSV` writes `time, success_rate, state.q[0], ..., state.tau_J[6], ...,
cmd.tau_J_d[6]`; users who write the robot's state themselves keep the words (`q`, `dq`, `tau_J`,
`q_d`, ...). `tau_J` is read by the torque sensors behind the gears, gravity and the inertia of the
links included: it is our `tau`, with little of the motors' friction in it. `tau_J_d` lacks gravity.
Signals with `ext_hat` in their names are estimates of the controller, which subtracts its
configured load. Neither is read as a torque.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from steelyard.errors import NoTime, UnknownName, UnreadableFile
from steelyard.recording._layout import AXES, SINGLE_CHANNELS, Layout, WrenchConvention
from steelyard.recording._notes import Note, NoteKind

_MAX_REPEATS = 1000  # of a word in a list of names such as q*6
_STATE = "state."  # before each word of the robot's state in libfranka's logToCSV
_WORDS: dict[str, tuple[str, ...]] = {  # libfranka's first where they differ, then ours and UR's
    "t": (
        "t",
        "time",
        "timestamp",
        "Time",
        "Timestamp",
        "stamp",
        "t_s",
        "time_s",
        "t_ms",
        "time_ms",
    ),
    "q": ("q", _STATE + "q", "actual_q", "position", "positions", "pos"),
    "v": ("dq", _STATE + "dq", "v", "qd", "actual_qd", "velocity", "velocities", "vel"),
    "tau": ("tau_J", _STATE + "tau_J", "tau", "torque", "torques"),
    "current": ("current", "i", "actual_current"),
    "q_commanded": ("q_d", _STATE + "q_d", "q_commanded", "q_des", "target_q"),
    "v_commanded": ("dq_d", _STATE + "dq_d", "v_commanded", "v_des", "qd_des", "target_qd"),
    "a_commanded": ("ddq_d", _STATE + "ddq_d", "a_commanded", "a_des", "qdd_des", "target_qdd"),
    "current_target": ("current_target", "i_des", "target_current"),
    "tau_target": ("tau_target", "tau_des", "target_moment"),
    "temperature": ("temperature", "joint_temperatures"),
    "wrench": ("wrench", "ft_raw_wrench"),
    "gripper": ("gripper",),
    "configured_mass": ("configured_mass", "payload"),
}
_RTDE_ONLY = {"payload": "actual_q"}  # words that count beside the position of a UR's stream only
TIME_WORDS = _WORDS["t"]
"""Usual names of the column of the clock."""

_CHANNEL = {word: channel for channel, words in _WORDS.items() for word in words}
_STEELYARD_COLUMN = re.compile(rf"({'|'.join(_WORDS)})(\..+|\[\d+\]|_\d+)?", re.DOTALL)
_NO_GRAVITY = "it does not contain gravity; use tau_J"
_ESTIMATED = (
    "the controller estimates it and subtracts its configured load; it is not a measurement"
)
_COMMAND = "commands are zero where another kind of command was sent; use state.q_d and state.dq_d"
REFUSED: Mapping[str, str] = {
    "actual_TCP_force": "the controller reports it in the base frame, without its configured"
    " payload; it is not the reading of a sensor",
    "actual_current_as_torque": "the controller has subtracted gravity, of its configured payload"
    " too; use actual_current and drive gains",
    **{prefix + "tau_J_d": _NO_GRAVITY for prefix in ("", _STATE, "cmd.")},
    **{
        prefix + word: _ESTIMATED
        for prefix in ("", _STATE)
        for word in ("tau_ext_hat_filtered", "O_F_ext_hat_K", "K_F_ext_hat_K")
    },
    **dict.fromkeys(("cmd.q_d", "cmd.dq_d"), _COMMAND),
}
"""Words that are never read without a request, and why."""

MILLISECONDS = "t_ms"
"""Names the column of a clock that counts milliseconds, in place of 't'."""

_NOT_TORQUES = ("actual_current_as_torque", *(word for word in REFUSED if "tau_" in word))
_AMBIGUOUS = {
    word: "a torque on some arms, a motor current on a UR: read the file with"
    f" `columns={{'tau': '{word}'}}` or `columns={{'current': '{word}'}}`"
    for word in ("effort", "efforts")
}
"""Words with several meanings, and how to choose one."""

SLICE = re.compile(r"(?P<word>.+)\[(?P<start>\d+):(?P<stop>\d+)\]")
"""Columns of an array by their numbers, as pose[3:7]."""

_MAX_NAME_LENGTH = 1000  # characters
_MAX_JOINTS = 1000
_MIN_NAMED_JOINTS = 2  # one column such as q_limit tells nothing about joints
_JOINT_SEPARATORS = ("_", ".", "/", " ")
_INDEXED = re.compile(r"(?P<word>.+?)(?:[_.]?(?P<plain>\d+)|\[(?P<bracket>\d+)\])")


EFFORT_IS_TORQUE = "effort=torque"
"""In place of 'effort' as the column of a torque: the user vouches for it being one."""


@dataclass(frozen=True)
class Requested:
    """The caller's statements about a file.

    Attributes:
        columns: for a channel or 't', the names of its columns, or the word before the index
        joint_names: names of the joints
        wrench_frame: frame of the wrench
        wrench_convention: 'load_on_sensor' or 'sensor_on_load'
        degrees: whether angles are in degrees
        names: of the columns of a table without a header
        rate_hz: rows per second of a table without time, [Hz]; None where time is required
        assumed: defaults where neither the caller nor the file states something
    """

    columns: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    joint_names: Sequence[str] = ()
    wrench_frame: str | None = None
    wrench_convention: WrenchConvention | None = None
    degrees: bool = False
    names: Sequence[str] = ()
    rate_hz: float | None = None
    assumed: Requested | None = None

    @property
    def about_columns(self) -> tuple[str, ...]:
        """The statements about columns, units and frames, as arguments in messages."""
        stated = {
            f"`columns={dict(self.columns)!r}`": bool(self.columns),
            "`wrench_frame`": self.wrench_frame is not None,
            "`wrench_convention`": self.wrench_convention is not None,
            "`degrees`": self.degrees,
            "`names`": bool(self.names),
            "`rate_hz`": self.rate_hz is not None,
        }
        return tuple(argument for argument, given in stated.items() if given)

    @property
    def of_foreign(self) -> Requested:
        """The statements for a file that another program wrote, with the defaults filled in."""
        if self.assumed is None:
            return self
        return replace(
            self,
            columns={**self.assumed.columns, **self.columns},
            wrench_frame=self.wrench_frame or self.assumed.wrench_frame,
            wrench_convention=self.wrench_convention or self.assumed.wrench_convention,
            rate_hz=self.rate_hz or self.assumed.rate_hz,
            assumed=None,
        )


@dataclass(frozen=True)
class _Column:
    """The name of a column, split into its word and its index or joint."""

    name: str
    word: str
    label: int | str | None


def find_layout(
    names: Sequence[str], requested: Requested, place: str, *, own: str | None = None
) -> Layout:
    """Which of the columns of a file make up which channel.

    Args:
        place: the file, for messages
        own: the layout that steelyard wrote into the file, as JSON; None where another program
            wrote it
    """
    longest = max(map(len, names), default=0)
    if longest > _MAX_NAME_LENGTH:
        raise UnreadableFile(
            f"{place}: the name of a column has {longest} characters; the file is damaged"
        )
    if own is not None:
        return _own_layout(
            Layout.from_json(own, place), names, replace(requested, assumed=None), place
        )
    given_rate_hz = _checked_rate(requested.rate_hz)
    requested = requested.of_foreign
    in_milliseconds = MILLISECONDS in requested.columns
    if in_milliseconds:
        requested = _with_time(requested)
    found, rest = _found(names, requested, place)
    found = {channel: _in_order(channel, group, place) for channel, group in found.items() if group}
    _require(found, names, requested, place=place)
    if given_rate_hz is not None and "t" in found:
        raise _needless_rate(found["t"][0], place)
    if len(found["q"]) > _MAX_JOINTS:
        raise UnreadableFile(f"{place}: it has columns of {len(found['q'])} joints, too many")
    used = {column.name for group in found.values() for column in group}
    columns = {
        channel: _like_q(channel, group, found["q"], place=place)
        for channel, group in found.items()
    }
    notes = [
        *_left_out(column for column in rest if column.name not in used),
        *_remarks(found, requested),
    ]
    labels = [column.label for column in found["q"] if isinstance(column.label, str)]
    joints = _joint_names(labels, requested.joint_names, place)
    facts: dict[str, object] = {
        "joint_names": joints,
        "source": PurePath(place).name,
        "notes": tuple(notes),
    }
    if "wrench" in found:
        facts |= {
            "wrench_frame": requested.wrench_frame,
            "wrench_convention": requested.wrench_convention,
        }
    if in_milliseconds or ("t" in columns and columns["t"][0].endswith("_ms")):
        unit_s = 1e-3
    else:
        unit_s = 1.0
    return Layout(columns, facts, requested.degrees, unit_s, requested.rate_hz)


def _found(
    names: Sequence[str], requested: Requested, place: str
) -> tuple[dict[str, list[_Column]], list[_Column]]:
    """The columns of each channel, and the columns that the caller does not name."""
    found = {
        channel: _requested(channel, wanted, names, place=place)
        for channel, wanted in requested.columns.items()
    }
    taken = {column.name for group in found.values() for column in group}
    rest = [_split(name) for name in names if name not in taken]
    if not found.get("q") and not _named("q", rest, place):
        rest = _with_joints(rest)
    for channel in _WORDS:
        if channel not in found:
            found[channel] = _named(channel, rest, place)
    expected = requested.wrench_frame is not None or requested.wrench_convention is not None
    if expected and not found["wrench"] and "wrench" not in requested.columns:  # fx, ..., tz alone
        found["wrench"] = [replace(one, label=one.name) for one in rest if one.name.lower() in AXES]
    if "configured_mass" not in requested.columns:
        found["configured_mass"] = _of_rtde(found["configured_mass"], found["q"])
    return found, rest


def _needless_rate(clock: _Column, place: str) -> UnreadableFile:
    """The refusal of a rate for a file with a time column."""
    return UnreadableFile(
        f"{place}: it has a time column, '{clock.name}': do not give `rate_hz`, or leave the column"
        f" out with {_columns_argument('t', [])}"
    )


def _with_time(requested: Requested) -> Requested:
    """A request in which the column of milliseconds is that of the time."""
    columns = dict(requested.columns)
    clock = columns.pop(MILLISECONDS)
    if "t" in columns:
        raise UnknownName(f"`columns`: 't' and '{MILLISECONDS}' both name the clock: give one")
    return replace(requested, columns={"t": clock, **columns})


def _checked_rate(rate_hz: float | None) -> float | None:
    """The rate, which must be positive where it is given."""
    if rate_hz is not None and not (math.isfinite(rate_hz) and rate_hz > 0):
        raise UnreadableFile(f"`rate_hz` must be positive, got {rate_hz}")
    return rate_hz


def expanded_names(text: str) -> tuple[str, ...]:
    """The names in 't,q*6,current*6': t, q_0 to q_5, current_0 to current_5.

    Args:
        text: names with commas between them; a star repeats a name
    """
    names: list[str] = []
    for item in text.split(","):
        word, star, count = (part.strip() for part in item.partition("*"))
        if not word or (star and not (count.isdecimal() and 0 < int(count) <= _MAX_REPEATS)):
            raise UnknownName(f"names of columns look like t,q*6,current*6; '{item}' does not")
        names += [f"{word}_{k}" for k in range(int(count))] if star else [word]
    return tuple(names)


def _own_layout(layout: Layout, names: Sequence[str], requested: Requested, place: str) -> Layout:
    """The layout of a file that steelyard wrote; only joints may be renamed in it."""
    if requested.columns == {"gripper": "".join(layout.columns.get("gripper", ()))}:
        requested = replace(requested, columns={})
    if requested != Requested(joint_names=requested.joint_names):
        raise UnreadableFile(
            f"{place}: steelyard wrote this file, which describes its own columns in radians;"
            f" do not give {' or '.join(requested.about_columns)}"
        )
    joints = _joint_names(layout.facts["joint_names"], requested.joint_names, place)
    there = set(names)
    for name in layout.names:
        if name not in there:
            raise UnreadableFile(
                f"{place}: the column '{name}', which steelyard wrote, is missing; write the file"
                " again"
            )
    for name in sorted(there - set(layout.names)):
        if _STEELYARD_COLUMN.fullmatch(name):
            raise UnreadableFile(
                f"{place}: the column '{name}' is not in the description that steelyard wrote into"
                " the file; write the file again"
            )
    return replace(layout, facts={**layout.facts, "joint_names": joints})


def _joint_names(own: Sequence[str], requested: Sequence[str], place: str) -> tuple[str, ...]:
    """The requested names, or those of the file; the same names in another order are refused."""
    if sorted(own) == sorted(requested) and list(own) != list(requested):
        raise UnreadableFile(
            f"{place}: `joint_names` are those of the file in another order, which would exchange"
            f" joints; the file has {', '.join(own)}"
        )
    return tuple(requested) or tuple(own)


def _split(name: str) -> _Column:
    word, dot, label = name.partition(".")
    if dot and word in _CHANNEL and label:
        return _Column(name, word, int(label) if label.isdecimal() else label)
    match = _INDEXED.fullmatch(name)
    if match:
        return _Column(name, match["word"], int(match["plain"] or match["bracket"]))
    return _Column(name, name, None)


def _with_joints(columns: list[_Column]) -> list[_Column]:
    """The columns with the names of joints split off, as in `q_elbow` and `elbow_position`.

    Positions tell which words are joints, so that `v_bus` is no velocity of a joint.
    """
    positions = [_joint_column(column, _WORDS["q"]) for column in columns]
    joints = {column.label for column in positions if column.label is not None}
    if len(joints) < _MIN_NAMED_JOINTS:
        return columns
    words = {*_CHANNEL, *_AMBIGUOUS, *REFUSED}
    split = [_joint_column(column, words) for column in columns]
    return [new if new.label in joints else old for old, new in zip(columns, split, strict=True)]


def _joint_column(column: _Column, words: Iterable[str]) -> _Column:
    """The column as one of these words and a joint; without a label where it is no such name."""
    for word in sorted(words, key=len, reverse=True):
        for separator in _JOINT_SEPARATORS:
            before = f"{word}{separator}"
            after = f"{separator}{word}"
            if column.name.startswith(before) and len(column.name) > len(before):
                return _Column(column.name, word, column.name[len(before) :])
            if column.name.endswith(after) and len(column.name) > len(after):
                return _Column(column.name, word, column.name[: -len(after)])
    return replace(column, label=None)


def _requested(
    channel: str, wanted: str | Sequence[str], names: Sequence[str], *, place: str
) -> list[_Column]:
    """The columns that the caller names: by a list, by their word, or by a prefix."""
    if channel not in _WORDS:
        raise UnknownName(
            f"`columns`: there is no channel '{channel}'; known are"
            f" {', '.join((*_WORDS, MILLISECONDS))}"
        )
    if wanted == EFFORT_IS_TORQUE:
        raise UnreadableFile(
            f"{place}: the effort of bags is trusted as a torque, this file names its columns; name"
            f" yours with {_columns_argument(channel, 'NAME')}"
        )
    if isinstance(wanted, str) and wanted not in names and (part := SLICE.fullmatch(wanted)):
        wanted = [f"{part['word']}[{k}]" for k in range(int(part["start"]), int(part["stop"]))]
    if not isinstance(wanted, str):
        group = [_Column(name, _split(name).word, None) for name in wanted]
    elif wanted in names:
        group = [_Column(wanted, _split(wanted).word, None)]
    else:
        group = [column for column in map(_split, names) if column.word == wanted]
        group = group or [_after(wanted, name) for name in names if name.startswith(wanted)]
        group = group or [_before(wanted, name) for name in names if name.endswith(wanted)]
    there = set(names)
    missing = [column.name for column in group if column.name not in there]
    if missing or (not group and isinstance(wanted, str)):
        raise UnknownName(
            f"{place}: there is no column '{missing[0] if missing else wanted}' for {channel};"
            f" there are {', '.join(_grouped(_split(name) for name in names))}"
        )
    word = next((column.word for column in group if column.word in _NOT_TORQUES), None)
    if word is not None and channel in ("tau", "tau_target"):
        raise UnreadableFile(f"{place}: {word} cannot serve as {channel}: {REFUSED[word]}")
    return group


def _after(prefix: str, name: str) -> _Column:
    label = name[len(prefix) :].strip("_.[] ")
    return _Column(name, _split(name).word, int(label) if label.isdecimal() else label)


def _before(suffix: str, name: str) -> _Column:
    label = name[: -len(suffix)].strip("_./ ")
    return _Column(name, _split(name).word, label)


def _named(channel: str, rest: Iterable[_Column], place: str) -> list[_Column]:
    """The columns whose word means the channel; two words for one channel are refused."""
    group = [column for column in rest if _CHANNEL.get(column.word) == channel]
    words = sorted({column.word for column in group})
    if len(words) > 1:
        raise UnreadableFile(
            f"{place}: {' and '.join(words)} both mean {channel}; choose with"
            f" {_columns_argument(channel, words[0])}"
        )
    return group


def _of_rtde(group: list[_Column], q: list[_Column]) -> list[_Column]:
    """The columns without words that other programs use for other things."""
    words = {column.word for column in q}
    return [one for one in group if one.word not in _RTDE_ONLY or _RTDE_ONLY[one.word] in words]


def _in_order(channel: str, group: list[_Column], place: str) -> list[_Column]:
    """The columns sorted by index, which must count from 0 or 1; others keep their order."""
    numbers = sorted(column.label for column in group if isinstance(column.label, int))
    if not numbers:
        return group
    if numbers not in (list(range(len(group))), list(range(1, len(group) + 1))):
        raise UnreadableFile(
            f"{place}: the columns of {channel} ({', '.join(column.name for column in group)}) are"
            " not numbered from 0 or 1 without a gap; name them in order with"
            f" {_columns_argument(channel, ['A', 'B', '...'])}"
        )
    return sorted(group, key=lambda column: int(column.label or 0))


def _like_q(channel: str, group: list[_Column], q: list[_Column], *, place: str) -> tuple[str, ...]:
    """The names of a channel's columns; where they name joints, in the order of q."""
    order = list(AXES) if channel == "wrench" else [column.label for column in q]
    if channel in ("t", *SINGLE_CHANNELS) or not all(
        isinstance(label, str) for label in (*order, *(c.label for c in group))
    ):
        return tuple(column.name for column in group)
    as_written = str.lower if channel == "wrench" else str
    names = {as_written(str(column.label)): column.name for column in group}
    if set(names) != set(order):
        raise UnreadableFile(
            f"{place}: {channel} has columns for {', '.join(names)}, but needs"
            f" {', '.join(map(str, order))}"
        )
    return tuple(names[str(label)] for label in order)


def _require(
    found: Mapping[str, list[_Column]], names: Sequence[str], requested: Requested, *, place: str
) -> None:
    there = ", ".join(_grouped(_split(name) for name in names)) or "none"
    for channel, words in (("t", "time"), ("q", "position")):
        if channel not in found and not (channel == "t" and requested.rate_hz):
            known = ", ".join(word for word in _WORDS[channel] if "." not in word)
            hint = f"Name yours with {_columns_argument(channel, 'NAME')}"
            if channel == "t":
                hint += ", or give the rows per second of a table without time: `rate_hz=125`"
            raise (NoTime if channel == "t" else UnreadableFile)(
                f"{place}: no {words} column ({known}); there are: {there}. {hint}"
            )
    chosen = [column.name for group in found.values() for column in group]
    wanted = Counter(chosen)
    there_are = Counter(names)
    for name in chosen:
        if wanted[name] > 1 or there_are[name] > 1:
            raise UnreadableFile(
                f"{place}: the column '{name}' exists or is used more than once; rename one"
            )
    for channel, group in found.items():
        if channel in ("t", *SINGLE_CHANNELS):
            count = 1
        elif channel == "wrench":
            count = 6
        else:
            count = len(found["q"])
        if len(group) != count:
            raise UnreadableFile(
                f"{place}: {channel} has {len(group)} columns, but {count} are needed"
            )
    _require_wrench_facts(found, requested, place)


def _require_wrench_facts(
    found: Mapping[str, list[_Column]], requested: Requested, place: str
) -> None:
    given = [fact is not None for fact in (requested.wrench_frame, requested.wrench_convention)]
    if "wrench" in found and not all(given):
        raise UnreadableFile(
            f"{place}: it has a wrench ({found['wrench'][0].name}, ...), but not its frame and"
            " convention; give `wrench_frame` and `wrench_convention` ('load_on_sensor' or"
            " 'sensor_on_load'), state both in the description of the sensor, or leave the wrench"
            f" out with {_columns_argument('wrench', [])}"
        )
    if "wrench" not in found and any(given):
        raise UnreadableFile(
            f"{place}: there is no wrench (wrench_0, ..., or {', '.join(AXES)}), although its"
            " frame or convention is given; name its columns with"
            f" {_columns_argument('wrench', ['A', 'B', '...'])}"
        )


def _columns_argument(channel: str, names: str | list[str]) -> str:
    """The argument that chooses the columns of a channel, as it is written in messages."""
    return f"`columns={ {channel: names} }`"


def _left_out(columns: Iterable[_Column]) -> list[str]:
    """Notes about columns that are not read, with the reasons."""
    words = _grouped(columns)
    notes = [f"not read: {word}, because {REFUSED[word]}" for word in words if word in REFUSED]
    notes += [
        Note(f"not read: {word} is {_AMBIGUOUS[word]}", NoteKind.UNCLEAR_EFFORT)
        for word in words
        if word in _AMBIGUOUS
    ]
    known = [word for word in words if word in _CHANNEL]
    unknown = [word for word in words if word not in {*REFUSED, *_AMBIGUOUS, *known}]
    notes += [f"not read, as requested: {', '.join(known)}"] if known else []
    return notes + ([f"not read, unknown name: {', '.join(unknown)}"] if unknown else [])


def _remarks(found: Mapping[str, list[_Column]], requested: Requested) -> list[str]:
    if requested.degrees:
        notes = ["angles were converted from degrees"]
    else:
        notes = []
    if "wrench" in found:
        word = found["wrench"][0].word
    else:
        word = ""
    if word in REFUSED:
        notes.append(f"the wrench is {word} as requested, but {REFUSED[word]}")
    return notes


def _grouped(columns: Iterable[_Column]) -> list[str]:
    """Each word once, in the order of the file."""
    return [word for word in dict.fromkeys(column.word for column in columns) if word]
