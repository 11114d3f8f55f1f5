"""What is made of the rows of one arm: merged factors, the model, payloads, trends; mostly by workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard.fleet._engine import EIGHT
from steelyard.fleet._estimate import LogState, log_state, payload_of, state_parameters
from steelyard.fleet._reduce import unpacked
from steelyard.fleet._trend import ArmTrend, Change, level, likeliest_change
from steelyard.identification import DynamicModel, RegressionFactor
from steelyard.verdict import Doubt, DoubtKind

_FOREIGN = 3.0  # contradiction of a log beyond which it may be another arm's,
_TIMES = 2.0  # and so many times beyond that of the arm's other logs
_WORST = 0.2  # of the logs that count are tried without, while some contradict
_SEVERAL = 1 / 3  # of all logs: so many of another arm are no mistake
_FEWEST = 3  # logs that can disagree
_OVERLAP_S = 1.0  # of two logs of an arm that is no mistake
_CERTAIN = 1e-6  # p-value of a change that divides the logs of an arm
_NO_LOAD = (DoubtKind.NOTHING_CARRIED, DoubtKind.NEGATIVE_MASS)
_NAMED = ("robot", "file", "start_s", "end_s", "time", "tool", "load")


def clashes(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Logs of one arm at the same time, and contents that are there twice, in words.

    Args:
        rows: of any arms
    """
    found = []
    last = None
    seen: dict[Any, Mapping[str, Any]] = {}
    for row in sorted(
        (row for row in rows if row["ok"]), key=lambda row: (row["robot"], *_span(row))
    ):
        first = seen.setdefault((row["content"], row["start_s"], row["end_s"]), row)
        if first is not row:
            where = " and ".join(dict.fromkeys((first["robot"], row["robot"])))
            found.append(f"{where}: {first['file']} and {row['file']} have the same content")
        elif last is not None and last["robot"] == row["robot"]:
            overlap_s = _span(last)[1] - _span(row)[0]
            if overlap_s > _OVERLAP_S:
                times = f"{row['file']} begins {overlap_s:.0f} s before {last['file']} ends"
                found.append(
                    f"{row['robot']}: {times}: is a clock wrong, or one of them of another arm?"
                )
        last = row
    return found


def _span(row: Mapping[str, Any]) -> tuple[float, float]:
    """When a log, or a work cycle of one, began and ended, [s since 1970]; infinite where not known."""
    if row["time"] is None:
        return np.inf, -np.inf
    began = float(_times([row])[0])
    return began, began + float(row["duration_s"])


def leaves(rows: Sequence[Mapping[str, Any]]) -> list[tuple[list[Array], list[list[int]]]]:
    """Arguments of `merge_packed` for the rows of an arm, eight by eight.

    Args:
        rows: with their factors
    """
    parts = [rows[i : i + EIGHT] for i in range(0, len(rows), EIGHT)]
    return [([row["factor"] for row in part], [row["rows"] for row in part]) for part in parts]


def merge_packed(factors: Sequence[Array], rows: Sequence[Sequence[int]]) -> RegressionFactor:
    """The merged factor of logs.

    Args:
        factors: as `packed` wrote them
        rows: how many each joint of each log has
    """
    return merge([unpacked(*each) for each in zip(factors, rows, strict=True)])


def merge(factors: Sequence[RegressionFactor]) -> RegressionFactor:
    """The factor of the rows of all.

    Args:
        factors: of the same unknowns, at least one
    """
    merged, *rest = factors
    for factor in rest:
        merged = merged.merge(factor)
    return merged


@dataclass(frozen=True, eq=False)
class Agreement:
    """Whether logs of an arm belong together.

    Attributes:
        contradiction: how much each log contradicts the model of the arm, by key
        other_time: keys of logs on the shorter side of a change of payload or gains, in which the
            arm was another one
    """

    contradiction: Mapping[str, float]
    other_time: Sequence[str] = ()


def agreement(
    robot: str, content: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> Agreement:
    """Whether the empty logs of an arm belong together.

    Args:
        robot: name of the arm
        content: of its model
        rows: of its logs in the order of time, with their factors
    """
    model = DynamicModel.from_dict(content)
    states = [_state(model, row) for row in rows]
    found = {row["key"]: state.contradiction for row, state in zip(rows, states, strict=True)}
    timed = [k for k, row in enumerate(rows) if row["time"] is not None]
    if len(timed) < 2:
        return Agreement(found)
    series = _series(model, [rows[k] for k in timed], [states[k] for k in timed])
    built = [
        change for (kind, _), change in zip(*series[2:], strict=True) if kind in ("gain", "payload")
    ]
    change = min((c for c in built if c is not None), key=lambda c: c.p, default=None)
    if change is None or change.p > _CERTAIN:
        return Agreement(found)
    sides = [[rows[k]["key"] for k in side] for side in (timed[: change.at], timed[change.at :])]
    return Agreement(found, sides[1] if len(sides[0]) >= len(sides[1]) else sides[0])


class Arm:
    """Which logs of an arm make its model.

    Args:
        robot: its name
        keys: of its empty logs
    """

    def __init__(self, robot: str, keys: Sequence[str]) -> None:
        self.robot = robot
        self.keys = keys
        self._left_out: dict[str, float] = {}
        self._other_time: list[str] = []

    @property
    def used(self) -> list[str]:
        """Keys of the logs that count."""
        return [
            key for key in self.keys if key not in self._left_out and key not in self._other_time
        ]

    @property
    def candidates(self) -> list[str]:
        """Keys of the logs that may count."""
        return [key for key in self.keys if key not in self._other_time]

    def leave_out(self, found: Agreement) -> bool:
        """Leaves out logs that do not belong to the others; whether the model has to be found again.

        Args:
            found: whether they belong together
        """
        contradiction = found.contradiction
        before = {*self._left_out, *self._other_time}
        if found.other_time:
            self._other_time += [key for key in found.other_time if key not in self._other_time]
            return len(self.used) >= _FEWEST and {*self._left_out, *self._other_time} != before
        used = self.used
        usual = float(np.median([contradiction[key] for key in used]))
        odd = {key for key, x in contradiction.items() if x > max(_FOREIGN, _TIMES * usual)}
        doubtful = sorted(
            (k for k in used if contradiction[k] > _FOREIGN), key=lambda k: -contradiction[k]
        )
        odd |= set(doubtful[: int(np.ceil(_WORST * len(used)))])
        odd -= set(self._other_time)
        if len(contradiction) - len(odd) < _FEWEST:
            return False
        self._left_out = {key: contradiction[key] for key in odd}
        return {*self._left_out, *self._other_time} != before

    def doubts(self, files: Mapping[str, str]) -> list[Doubt]:
        """What counts against its logs.

        Args:
            files: by key
        """
        doubts = []
        if self._left_out:
            several = len(self._left_out) >= _SEVERAL * len(self.keys)
            which = ", ".join(f"{files[k]} ({x:.0f} times)" for k, x in self._left_out.items())
            words = (
                f"left out, for they contradict the other logs of {self.robot} beyond noise:"
                f" {which}"
            )
            if several:
                question = "are there several arms under this name?"
            else:
                question = "are they of another arm?"
            doubts.append(Doubt(DoubtKind.OTHER_ROBOT, f"{words}; {question}", blocks=several))
        if self._other_time:
            first, last = (files[self._other_time[k]] for k in (0, -1))
            words = (
                f"payload or gains of {self.robot} have changed: its model is without the"
                f" {len(self._other_time)} logs on the other side, {first} to {last}"
            )
            doubts.append(Doubt(DoubtKind.CONTRADICTS_MODEL, words, blocks=False))
        return doubts


def trend(robot: str, content: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> ArmTrend:
    """The series of an arm and their likeliest changes.

    Args:
        robot: name of the arm
        content: of its model
        rows: of its logs in the order of time, with their factors
    """
    model = DynamicModel.from_dict(content)
    timed = [row for row in rows if row["time"] is not None]
    states = [_state(model, row) for row in timed]
    beyond = np.array([state.contradiction for state in states])
    if len(beyond):
        most = max(_FOREIGN, _TIMES * float(np.median(beyond)))
    else:
        most = np.inf
    odd = _isolated(beyond > most)
    kept = np.flatnonzero(~odd)
    left_out = {timed[k]["file"]: float(beyond[k]) for k in np.flatnonzero(odd)}
    own = [timed[k] for k in kept]
    value, std, names, changes = _series(model, own, [states[k] for k in kept])
    loaded = np.flatnonzero([bool(row["load"]) for row in own])
    error = None
    if len(loaded):
        first = own[loaded[0]]
        one = payload_of(model, *_evidence(first), np.array(first["torque"]))
        error = level(value[-1, loaded], float(one.std[0]))
    files = [row["file"] for row in own]
    joint_names = model.robot.joint_names
    return ArmTrend(
        robot, _times(own), files, joint_names, names, value, std, changes, error, left_out
    )


def _series(
    model: DynamicModel, rows: Sequence[Mapping[str, Any]], states: Sequence[LogState]
) -> tuple[Array, Array, list[tuple[str, int]], list[Change | None]]:
    """Values and deviations of the series of an arm, (S, N) each, their names, and likeliest changes."""
    n = model.robot.n
    parameters = state_parameters(model)
    f = len(parameters)
    names = [(parameter.kind.symbol, parameter.joint + 1) for parameter in parameters]
    names += [("gain", j + 1) for j in range(n)]
    names += [("residual", j + 1) for j in range(n)]
    names.append(("payload", 0))
    loads = np.array([row["load"] or 0.0 for row in rows])
    which = [*range(f), *range(f + 10, f + 10 + n)]
    value = np.zeros((len(names), len(rows)))
    std = np.zeros((len(names), len(rows)))
    for k, (row, state) in enumerate(zip(rows, states, strict=True)):
        spread = state.noise * np.sqrt(
            np.array(row["widening"]) / (2.0 * np.maximum(row["rows"], 1))
        )
        value[:, k] = [*state.value[which], *state.noise, state.value[f] - loads[k]]
        std[:, k] = [*state.std[which], *spread, state.std[f]]
    time = _times(rows)
    warm = _temperatures(rows, n)
    changes = []
    for (_, joint), y, s in zip(names, value, std, strict=True):
        aside = np.column_stack([warm[:, joint - 1] if joint else warm.mean(axis=1), loads])
        usable = bool(len(rows)) and bool(np.isfinite(s).all())
        changes.append(likeliest_change(time, y, np.maximum(s, 1e-12), aside) if usable else None)
    return value, std, names, changes


def _isolated(odd: Mask) -> Mask:
    """Which odd logs stand alone, or in twos: where more follow each other, the arm has changed, (N,)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], odd, [False]]).astype(int)))
    out = odd.copy()
    for start, end in edges.reshape(-1, 2):
        out[start:end] = end - start < _FEWEST
    return out


def _state(model: DynamicModel, row: Mapping[str, Any]) -> LogState:
    factor, widening = _evidence(row)
    return log_state(model, factor, widening, np.array(row["noise"]))


def _times(rows: Sequence[Mapping[str, Any]]) -> Array:
    """When logs, or work cycles of them, began, (N,) [s since 1970]."""
    return np.array([row["time"].timestamp() + (row["start_s"] or 0.0) for row in rows])


def _temperatures(rows: Sequence[Mapping[str, Any]], n: int) -> Array:
    """Of each joint in each log, (N, n); NaN where it is not known."""
    out = np.full((len(rows), n), np.nan)
    for k, row in enumerate(rows):
        if row["temperature"] and len(row["temperature"]) in (1, n):
            out[k] = row["temperature"]
    return out


def payloads(
    robot: str, content: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The payload of each log of an arm, as rows of a table.

    Args:
        robot: name of the arm
        content: of its model
        rows: of its logs, with their factors
    """
    model = DynamicModel.from_dict(content)
    found = []
    for row in rows:
        payload = payload_of(model, *_evidence(row), np.array(row["torque"]))
        expected = _NO_LOAD if row["load"] == 0 else ()
        against = [doubt for doubt in payload.verdict.blocking if doubt.kind not in expected]
        mass = payload.unconstrained.mass
        std = float(payload.std[0])
        found.append(
            {
                **{name: row[name] for name in _NAMED},
                "mass": mass,
                "mass_std": std,
                "error": None if row["load"] is None else mass - row["load"],
                **{f"c{axis}": float(x) for axis, x in zip("xyz", payload.com, strict=True)},
                **{
                    f"c{axis}_std": float(x) for axis, x in zip("xyz", payload.com_std, strict=True)
                },
                "ok": not against,
                "verdict": payload.status,
                "doubts": [str(doubt.kind) for doubt in against],
            }
        )
    return found


def _evidence(row: Mapping[str, Any]) -> tuple[RegressionFactor, Array]:
    """The factor of a log, and the widening of its noise, (n,)."""
    return unpacked(row["factor"], row["rows"]), np.array(row["widening"])
