"""Foreign names: which column of a log is which signal.

A name is a word and an index: `q_0`, `q0`, `q.0`, `q[0]` (counted from 0 or from 1), or a word and
a joint, `q.elbow`. The words are ours, those of UR's RTDE and of libfranka; others are given as
`columns`. A word that means two things on different arms (`effort` is a current on a UR) is not
guessed.

libfranka's `franka::logToCSV` writes `time, success_rate, state.q[0], ..., state.tau_J[6], ...,
cmd.tau_J_d[6]`; users who write the robot's state themselves keep the words (`q`, `dq`, `tau_J`,
`q_d`, ...). `tau_J` is read by the torque sensors behind the gears, gravity and the inertia of the
links included: it is our `tau`, with little of the motors' friction in it. `tau_J_d` lacks gravity;
what has `ext_hat` in its name is the controller's estimate, from which the load that it believes in
is taken off. Neither is a torque.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from steelyard.errors import NoTime, UnknownName, UnreadableFile
from steelyard.recording._layout import AXES, Layout, WrenchConvention

_MANY_COLUMNS = 1000
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
    "q": ("q", _STATE + "q", "actual_q", "position"),
    "v": ("dq", _STATE + "dq", "v", "qd", "actual_qd", "velocity"),
    "tau": ("tau_J", _STATE + "tau_J", "tau"),
    "current": ("current", "i", "actual_current"),
    "q_commanded": ("q_d", _STATE + "q_d", "q_commanded", "q_des", "target_q"),
    "v_commanded": ("dq_d", _STATE + "dq_d", "v_commanded", "v_des", "qd_des", "target_qd"),
    "a_commanded": ("ddq_d", _STATE + "ddq_d", "a_commanded", "a_des", "qdd_des", "target_qdd"),
    "current_target": ("current_target", "i_des", "target_current"),
    "tau_target": ("tau_target", "tau_des", "target_moment"),
    "temperature": ("temperature", "joint_temperatures"),
    "wrench": ("wrench", "ft_raw_wrench"),
}
_CHANNEL = {word: channel for channel, words in _WORDS.items() for word in words}
_OURS = re.compile(
    rf"({'|'.join(_WORDS)})(\..+|\[\d+\]|_\d+)?", re.DOTALL
)  # what steelyard calls columns itself
_NO_GRAVITY = "it is without gravity; use tau_J"
_ESTIMATED = "the controller estimates it and takes off the load it believes in; it is not measured"
_COMMAND = (
    "commands are zero where another kind of command was sent; state.q_d and state.dq_d say more"
)
REFUSED: Mapping[str, str] = {
    "actual_TCP_force": "the controller gives it in the base frame with the payload it believes in"
    " taken off;"
    " it is not the reading of a sensor",
    "actual_current_as_torque": "the controller has taken off gravity with the payload it believes"
    " in;"
    " use actual_current and drive gains",
    **{prefix + "tau_J_d": _NO_GRAVITY for prefix in ("", _STATE, "cmd.")},
    **{
        prefix + word: _ESTIMATED
        for prefix in ("", _STATE)
        for word in ("tau_ext_hat_filtered", "O_F_ext_hat_K", "K_F_ext_hat_K")
    },
    **dict.fromkeys(("cmd.q_d", "cmd.dq_d"), _COMMAND),
}
"""Words that are not read, and why."""

_NO_TORQUES = ("actual_current_as_torque", *(word for word in REFUSED if "tau_" in word))
_AMBIGUOUS = {
    word: "a torque on some arms, a motor current on a UR: choose with"
    f" `columns={{'tau': '{word}'}}` or `columns={{'current': '{word}'}}`"
    for word in ("effort", "efforts")
}
"""Words with several meanings, and how to choose one."""

SLICE = re.compile(r"(?P<word>.+)\[(?P<start>\d+):(?P<stop>\d+)\]")
"""Columns of an array by their numbers, as pose[3:7]."""

_LONGEST_NAME = 1000
_MOST_JOINTS = 1000
_INDEXED = re.compile(r"(?P<word>.+?)(?:[_.]?(?P<plain>\d+)|\[(?P<bracket>\d+)\])")


@dataclass(frozen=True)
class Requested:
    """What the caller says about a file.

    Attributes:
        columns: for a channel or 't', the names of its columns, or the word before the index
        joint_names: names of the joints
        wrench_frame: frame of the wrench
        wrench_convention: what the load does to the sensor, or the reverse
        degrees: whether angles are in degrees
        names: of the columns of a table without a header
        rate_hz: rows per second of a table without time, [Hz]; None where it must have one
        assumed: what counts where neither the caller nor the file says it
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
    def of_foreign(self) -> Requested:
        """What counts for a file that does not say itself what it holds."""
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
    """A column's name, taken apart: the word, and what distinguishes it from others with that word."""

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
    if longest > _LONGEST_NAME:
        raise UnreadableFile(
            f"{place}: the name of a column has {longest} letters, which no name has"
        )
    if own is not None:
        return _own_layout(
            Layout.from_json(own, place), names, replace(requested, assumed=None), place
        )
    requested = requested.of_foreign
    found = {
        channel: _requested(channel, wanted, names, place=place)
        for channel, wanted in requested.columns.items()
    }
    taken = {column.name for group in found.values() for column in group}
    rest = [_split(name) for name in names if name not in taken]
    for channel in _WORDS:
        if channel not in found:
            found[channel] = _named(channel, rest, place)
    expected = requested.wrench_frame is not None or requested.wrench_convention is not None
    if expected and not found["wrench"] and "wrench" not in requested.columns:  # fx, ..., tz alone
        found["wrench"] = [replace(one, label=one.name) for one in rest if one.name.lower() in AXES]
    found = {channel: _in_order(channel, group, place) for channel, group in found.items() if group}
    _require(found, names, requested, place=place)
    if len(found["q"]) > _MOST_JOINTS:
        raise UnreadableFile(f"{place}: it has {len(found['q'])} joints, more than any arm")
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
    if "t" in columns and columns["t"][0].endswith("_ms"):
        unit_s = 1e-3
    else:
        unit_s = 1.0
    return Layout(columns, facts, requested.degrees, unit_s, requested.rate_hz)


def expanded_names(text: str) -> tuple[str, ...]:
    """The names in 't,q*6,current*6': t, q_0 to q_5, current_0 to current_5.

    Args:
        text: as a user gives it
    """
    names: list[str] = []
    for item in text.split(","):
        word, star, count = (part.strip() for part in item.partition("*"))
        if not word or (star and not (count.isdecimal() and 0 < int(count) <= _MANY_COLUMNS)):
            raise UnknownName(
                f"names of columns are as t,q*6,current*6; '{item}' is none of that kind"
            )
        names += [f"{word}_{k}" for k in range(int(count))] if star else [word]
    return tuple(names)


def _own_layout(layout: Layout, names: Sequence[str], requested: Requested, place: str) -> Layout:
    """The layout of a file that steelyard wrote; only other names for the joints may be requested there."""
    if requested != Requested(joint_names=requested.joint_names):
        raise UnreadableFile(
            f"{place}: steelyard wrote it and it says itself what it holds, in radians;"
            " leave out columns, wrench_frame, wrench_convention and degrees"
        )
    joints = _joint_names(layout.facts["joint_names"], requested.joint_names, place)
    there = set(names)
    for name in layout.names:
        if name not in there:
            raise UnreadableFile(
                f"{place}: steelyard wrote '{name}' into it, but it is gone; write it again"
            )
    for name in sorted(there - set(layout.names)):
        if _OURS.fullmatch(name):
            raise UnreadableFile(
                f"{place}: it holds '{name}', which what steelyard wrote beside the numbers does"
                " not name;"
                " write it again"
            )
    return replace(layout, facts={**layout.facts, "joint_names": joints})


def _joint_names(own: Sequence[str], requested: Sequence[str], place: str) -> tuple[str, ...]:
    """The names requested, or the file's own; those in another order would be a mistake about the columns."""
    if sorted(own) == sorted(requested) and list(own) != list(requested):
        raise UnreadableFile(
            f"{place}: joint_names are the file's own in another order, which would exchange the"
            " joints;"
            f" the file has {', '.join(own)}"
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


def _requested(
    channel: str, wanted: str | Sequence[str], names: Sequence[str], *, place: str
) -> list[_Column]:
    """The columns that the caller names: each of them, their word, or what they begin with."""
    if channel not in _WORDS:
        raise UnknownName(
            f"columns: there is no channel '{channel}'; known are {', '.join(_WORDS)}"
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
    there = set(names)
    missing = [column.name for column in group if column.name not in there]
    if missing or (not group and isinstance(wanted, str)):
        raise UnknownName(
            f"{place}: there is no column '{missing[0] if missing else wanted}' for {channel};"
            f" there are {', '.join(_grouped(_split(name) for name in names))}"
        )
    word = next((column.word for column in group if column.word in _NO_TORQUES), None)
    if word is not None and channel in ("tau", "tau_target"):
        raise UnreadableFile(f"{place}: {word} cannot serve as {channel}: {REFUSED[word]}")
    return group


def _after(prefix: str, name: str) -> _Column:
    label = name[len(prefix) :].strip("_.[] ")
    return _Column(name, _split(name).word, int(label) if label.isdecimal() else label)


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


def _in_order(channel: str, group: list[_Column], place: str) -> list[_Column]:
    """Sorted by index, to run from 0 or 1 without a hole; lists and joints' names stay as they are."""
    numbers = sorted(column.label for column in group if isinstance(column.label, int))
    if not numbers:
        return group
    if numbers not in (list(range(len(group))), list(range(1, len(group) + 1))):
        raise UnreadableFile(
            f"{place}: the columns of {channel} ({', '.join(column.name for column in group)}) are"
            " not"
            " numbered from 0 or 1 without a hole; name them in order with"
            f" {_columns_argument(channel, ['A', 'B', '...'])}"
        )
    return sorted(group, key=lambda column: int(column.label or 0))


def _like_q(channel: str, group: list[_Column], q: list[_Column], *, place: str) -> tuple[str, ...]:
    """The names of a channel's columns; where they name joints, in the order of q."""
    order = list(AXES) if channel == "wrench" else [column.label for column in q]
    if channel == "t" or not all(
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
            raise (NoTime if channel == "t" else UnreadableFile)(
                f"{place}: no {words} column ({known}); there are: {there}."
                f" Name yours with {_columns_argument(channel, 'NAME')}"
            )
    chosen = [column.name for group in found.values() for column in group]
    wanted = Counter(chosen)
    there_are = Counter(names)
    for name in chosen:
        if wanted[name] > 1 or there_are[name] > 1:
            raise UnreadableFile(
                f"{place}: the column '{name}' is there or is wanted more than once; rename one"
            )
    for channel, group in found.items():
        count = {"t": 1, "wrench": 6}.get(channel, len(found["q"]))
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
    """A note for what is not read, with the reason where there is one."""
    words = _grouped(columns)
    notes = [f"not read: {word}, for {REFUSED[word]}" for word in words if word in REFUSED]
    notes += [f"not read: {word} is {_AMBIGUOUS[word]}" for word in words if word in _AMBIGUOUS]
    known = [word for word in words if word in _CHANNEL]
    unknown = [word for word in words if word not in {*REFUSED, *_AMBIGUOUS, *known}]
    notes += [f"not read, as requested: {', '.join(known)}"] if known else []
    return notes + (
        [f"not read, the name means nothing here: {', '.join(unknown)}"] if unknown else []
    )


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
