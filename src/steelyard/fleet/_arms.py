"""The results for one arm from the rows of its logs: merged factors, model, payloads, trends.

Mostly workers call these functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard.fleet._engine import MERGE_FAN_IN
from steelyard.fleet._estimate import LogState, log_state, payload_of, state_parameters
from steelyard.fleet._reduce import unpacked
from steelyard.fleet._rows import LogPayload, LogRow
from steelyard.fleet._trend import (
    ArmTrend,
    ChangePoint,
    level,
    likeliest_change,
    likeliest_payload_change,
)
from steelyard.identification import DynamicModel, RegressionFactor
from steelyard.identification._between_runs import spread_between_runs
from steelyard.payload import Payload
from steelyard.verdict import Doubt, DoubtKind

_MIN_FOREIGN_CONTRADICTION = 3.0  # of a log that may belong to another arm,
_MIN_FOREIGN_RATIO = 2.0  # and its ratio to the median contradiction of the arm's logs
_MAX_SHARE_LEFT_OUT_PER_ROUND = 0.2  # of the logs in use
_MIN_SHARE_SEVERAL_ARMS = 1 / 3  # of logs left out: more than a mistake
_MIN_LOGS = 3  # that can contradict each other
_MAX_OVERLAP_S = 1.0  # of two logs of one arm
_MAX_P_DIVIDING = 1e-6  # p-value of a change that divides the logs of an arm
_MAX_POPULATION = 60  # logs from which the spread of friction is learned
_NO_LOAD = (DoubtKind.NOTHING_CARRIED, DoubtKind.NEGATIVE_MASS)


def clashes(rows: Iterable[LogRow]) -> list[str]:
    """Sentences about logs of one arm that overlap in time, and contents that occur twice.

    Args:
        rows: of any arms
    """
    sentences = []
    previous = None
    first_of: dict[Any, LogRow] = {}
    usable = (row for row in rows if row.ok)
    for row in sorted(usable, key=lambda row: (row.robot, *_span(row))):
        first = first_of.setdefault(row.part, row)
        if first is not row:
            where = " and ".join(dict.fromkeys((first.robot, row.robot)))
            sentences.append(f"{where}: {first.file} and {row.file} have the same content")
        elif previous is not None and previous.robot == row.robot:
            overlap_s = _span(previous)[1] - _span(row)[0]
            if overlap_s > _MAX_OVERLAP_S:
                sentences.append(
                    f"{row.robot}: {row.file} begins {overlap_s:.0f} s before {previous.file} ends:"
                    " is a clock wrong, or does one of them belong to another arm?"
                )
        previous = row
    return sentences


def _span(row: LogRow) -> tuple[float, float]:
    """Start and end of a log, or of a work cycle of one, [s since 1970]; infinite where unknown."""
    if row.time is None:
        return np.inf, -np.inf
    start = _start(row, row.time)
    return start, start + row.duration_s


def leaves(rows: Sequence[LogRow]) -> list[tuple[list[Array], list[tuple[int, ...]]]]:
    """The arguments of `merge_packed` for the rows of an arm, a few rows at a time.

    Args:
        rows: with their factors
    """
    parts = [rows[i : i + MERGE_FAN_IN] for i in range(0, len(rows), MERGE_FAN_IN)]
    return [([row.factor for row in part], [row.rows for row in part]) for part in parts]


def merge_packed(factors: Sequence[Array], rows: Sequence[Sequence[int]]) -> RegressionFactor:
    """The merged factor of logs.

    Args:
        factors: as `packed` gives them
        rows: number of rows of each joint, for each log
    """
    return merge([unpacked(*each) for each in zip(factors, rows, strict=True)])


def merge(factors: Sequence[RegressionFactor]) -> RegressionFactor:
    """The factor of all rows together.

    Args:
        factors: of the same unknowns, at least one
    """
    merged, *rest = factors
    for factor in rest:
        merged = merged.merge(factor)
    return merged


def with_population(model: DynamicModel, rows: Sequence[LogRow]) -> DynamicModel:
    """The model with the spread of friction between the logs of its arm.

    Args:
        model: of the merged factor of the logs
        rows: of the logs, with their factors; some of them, evenly spread, are enough
    """
    if len(rows) < 2:
        return model
    few = [rows[k] for k in np.unique(np.linspace(0, len(rows) - 1, _MAX_POPULATION).astype(int))]
    parts = [unpacked(row.factor, row.rows) for row in few]
    every = RegressionFactor(
        np.concatenate([part.R for part in parts]), np.concatenate([part.rows for part in parts])
    )
    estimate = model.estimate
    spread = spread_between_runs(
        estimate.parameters, estimate.value, estimate.noise, estimate.inflation, every
    )
    return replace(model, run_spread=spread, merged_runs=len(rows))


@dataclass(frozen=True, eq=False)
class Agreement:
    """Whether the logs of an arm belong together.

    Attributes:
        contradiction: how much each log contradicts the model of the arm, by key
        other_side: keys of the logs on the shorter side of a change of payload or gains
    """

    contradiction: Mapping[str, float]
    other_side: Sequence[str] = ()


def agreement(robot: str, content: Mapping[str, Any], rows: Sequence[LogRow]) -> Agreement:
    """Whether the empty logs of an arm belong together.

    Args:
        robot: name of the arm
        content: of its model
        rows: of its logs in the order of time, with their factors
    """
    model = DynamicModel.from_dict(content)
    states = [_state(model, row) for row in rows]
    contradiction = {row.key: state.contradiction for row, state in zip(rows, states, strict=True)}
    timed = [k for k, row in enumerate(rows) if row.time is not None]
    if len(timed) < 2:
        return Agreement(contradiction)
    series = _series(model, [rows[k] for k in timed], [states[k] for k in timed])
    dividing = [
        change
        for (kind, _), change in zip(series.names, series.changes, strict=True)
        if kind in ("gain", "payload") and change is not None
    ]
    clearest = min(dividing, key=lambda change: change.p, default=None)
    if clearest is None or clearest.p > _MAX_P_DIVIDING:
        return Agreement(contradiction)
    before = [rows[k].key for k in timed[: clearest.at]]
    after = [rows[k].key for k in timed[clearest.at :]]
    return Agreement(contradiction, after if len(before) >= len(after) else before)


class ArmLogs:
    """Selects the logs from which the model of an arm is fitted.

    Args:
        robot: its name
        keys: of its empty logs
    """

    def __init__(self, robot: str, keys: Sequence[str]) -> None:
        self.robot = robot
        self.keys = keys
        self._contradicting: dict[str, float] = {}
        self._other_side: list[str] = []

    @property
    def used(self) -> list[str]:
        """Keys of the logs that the model is fitted to."""
        return [key for key in self.candidates if key not in self._contradicting]

    @property
    def candidates(self) -> list[str]:
        """Keys of the logs that may still be used."""
        return [key for key in self.keys if key not in self._other_side]

    def leave_out(self, agreement: Agreement) -> bool:
        """Leaves out logs that do not fit the others; returns whether to fit the model again.

        Args:
            agreement: of its candidates with the present model
        """
        before = {*self._contradicting, *self._other_side}
        if agreement.other_side:
            known = set(self._other_side)
            self._other_side += [key for key in agreement.other_side if key not in known]
            if len(self.used) < _MIN_LOGS:
                return False
            return {*self._contradicting, *self._other_side} != before
        contradiction = agreement.contradiction
        odd = self._odd(contradiction)
        if len(contradiction) - len(odd) < _MIN_LOGS:
            return False
        self._contradicting = {key: contradiction[key] for key in odd}
        return {*self._contradicting, *self._other_side} != before

    def _odd(self, contradiction: Mapping[str, float]) -> set[str]:
        """Keys of logs that contradict the model much more than the others."""
        used = self.used
        median = float(np.median([contradiction[key] for key in used]))
        limit = max(_MIN_FOREIGN_CONTRADICTION, _MIN_FOREIGN_RATIO * median)
        odd = {key for key, times in contradiction.items() if times > limit}
        doubtful = [key for key in used if contradiction[key] > _MIN_FOREIGN_CONTRADICTION]
        doubtful.sort(key=lambda key: -contradiction[key])
        odd |= set(doubtful[: int(np.ceil(_MAX_SHARE_LEFT_OUT_PER_ROUND * len(used)))])
        return odd - set(self._other_side)

    def doubts(self, files: Mapping[str, str]) -> list[Doubt]:
        """Doubts about the logs.

        Args:
            files: by key
        """
        doubts = []
        if self._contradicting:
            several = len(self._contradicting) >= _MIN_SHARE_SEVERAL_ARMS * len(self.keys)
            names = ", ".join(f"{files[k]} ({x:.0f} times)" for k, x in self._contradicting.items())
            question = "do they belong to another arm?"
            if several:
                question = "are there several arms under this name?"
            words = (
                f"left out because they contradict the other logs of {self.robot} beyond noise:"
                f" {names}; {question}"
            )
            doubts.append(Doubt(DoubtKind.OTHER_ROBOT, words, blocks=several))
        if self._other_side:
            first = files[self._other_side[0]]
            last = files[self._other_side[-1]]
            words = (
                f"payload or gains of {self.robot} have changed: its model does not use the"
                f" {len(self._other_side)} logs on the other side of the change, {first} to {last}"
            )
            doubts.append(Doubt(DoubtKind.CONTRADICTS_MODEL, words, blocks=False))
        return doubts


def trend(robot: str, content: Mapping[str, Any], rows: Sequence[LogRow]) -> ArmTrend:
    """The series of an arm and their likeliest changes.

    Args:
        robot: name of the arm
        content: of its model
        rows: of its logs in the order of time, with their factors
    """
    model = DynamicModel.from_dict(content)
    timed = [row for row in rows if row.time is not None]
    states = [_state(model, row) for row in timed]
    contradiction = np.array([state.contradiction for state in states])
    limit = np.inf
    if len(contradiction):
        median = float(np.median(contradiction))
        limit = max(_MIN_FOREIGN_CONTRADICTION, _MIN_FOREIGN_RATIO * median)
    odd = _isolated(contradiction > limit)
    kept = np.flatnonzero(~odd)
    logs = [timed[k] for k in kept]
    series = _series(model, logs, [states[k] for k in kept])
    return ArmTrend(
        robot=robot,
        time=_times(logs),
        files=[row.file for row in logs],
        joint_names=model.robot.joint_names,
        names=series.names,
        value=series.value,
        std=series.std,
        changes=series.changes,
        level=_payload_level(model, logs, series.value[-1], series.changes[-1]),
        left_out={timed[k].file: float(contradiction[k]) for k in np.flatnonzero(odd)},
        loaded=np.array([bool(row.load) for row in logs], dtype=bool),
        undated=len(rows) - len(timed),
    )


def _payload_level(
    model: DynamicModel, rows: Sequence[LogRow], error: Array, change: ChangePoint | None
) -> ChangePoint | None:
    """Whether loaded logs carry the configured load; None without loaded logs.

    Where a step of the payload is certain, the logs from the step on count: a mean of both sides is
    the error of neither.

    Args:
        error: payload less configured load of each log, (N,) [kg]
        change: the likeliest of the payload; None for too few logs
    """
    loaded = np.flatnonzero([bool(row.load) for row in rows])
    if not len(loaded):
        return None
    begin = 0
    if change is not None and not change.ramp and change.p < _MAX_P_DIVIDING:
        begin = change.at
    later = loaded[loaded >= begin]
    if not len(later):  # the step was found in the empty logs after the last loaded one
        begin = 0
        later = loaded
    payload = _payload(model, rows[later[0]])
    return replace(level(error[later], float(payload.std[0])), at=begin)


@dataclass(frozen=True, eq=False)
class _Series:
    """The series of an arm, S of them over N logs.

    Attributes:
        names: kind and joint of each, as in `ArmTrend`
        value: (S, N)
        std: (S, N)
        changes: the likeliest of each; None where there are too few logs
    """

    names: Sequence[tuple[str, int]]
    value: Array
    std: Array
    changes: Sequence[ChangePoint | None]


def _series(model: DynamicModel, rows: Sequence[LogRow], states: Sequence[LogState]) -> _Series:
    """The series of an arm; friction, gains, residuals and the payload, in this order."""
    n = model.robot.n
    parameters = state_parameters(model)
    f = len(parameters)
    names = [(parameter.kind.symbol, parameter.joint + 1) for parameter in parameters]
    names += [("gain", j + 1) for j in range(n)]
    names += [("residual", j + 1) for j in range(n)]
    names.append(("payload", 0))
    loads = np.array([row.load or 0.0 for row in rows])
    gains = range(f + 10, f + 10 + n)
    chosen = [*range(f), *gains]
    value = np.zeros((len(names), len(rows)))
    std = np.zeros((len(names), len(rows)))
    for k, (row, state) in enumerate(zip(rows, states, strict=True)):
        noise_std = state.noise * np.sqrt(np.array(row.widening) / (2.0 * np.maximum(row.rows, 1)))
        value[:, k] = [*state.value[chosen], *state.noise, state.value[f] - loads[k]]
        std[:, k] = [*state.std[chosen], *noise_std, state.std[f]]
    changes = _likeliest_changes(rows, names, value, std)
    return _Series(names, value, std, changes)


def _likeliest_changes(
    rows: Sequence[LogRow], names: Sequence[tuple[str, int]], value: Array, std: Array
) -> list[ChangePoint | None]:
    """The likeliest change of each series, beside temperature and configured load."""
    time = _times(rows)
    loads = np.array([row.load or 0.0 for row in rows])
    joint_count = max(joint for _, joint in names)
    temperature = _temperatures(rows, joint_count)
    changes: list[ChangePoint | None] = []
    for (kind, joint), y, y_std in zip(names, value, std, strict=True):
        if not len(rows) or not np.isfinite(y_std).all():
            changes.append(None)
            continue
        degrees = temperature[:, joint - 1] if joint else temperature.mean(axis=1)
        covariates = np.column_stack([degrees, loads])
        spread = np.maximum(y_std, 1e-12)
        if kind == "payload":
            change = likeliest_payload_change(time, y, spread, covariates, loads > 0)
        else:
            change = likeliest_change(time, y, spread, covariates)
        changes.append(change)
    return changes


def _isolated(odd: Mask) -> Mask:
    """The odd logs that stand alone or in pairs, (N,); where more follow, the arm has changed."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], odd, [False]]).astype(int)))
    isolated = odd.copy()
    for start, end in edges.reshape(-1, 2):
        isolated[start:end] = end - start < _MIN_LOGS
    return isolated


def _state(model: DynamicModel, row: LogRow) -> LogState:
    factor = unpacked(row.factor, row.rows)
    return log_state(model, factor, np.array(row.widening), np.array(row.noise))


def _payload(model: DynamicModel, row: LogRow) -> Payload:
    factor = unpacked(row.factor, row.rows)
    return payload_of(model, factor, np.array(row.widening), np.array(row.torque))


def _start(row: LogRow, time: datetime) -> float:
    """When a log, or a work cycle of one, began, [s since 1970]; `time` is that of the log."""
    return time.timestamp() + (row.start_s or 0.0)


def _times(rows: Sequence[LogRow]) -> Array:
    """When logs with a known time began, (N,) [s since 1970]."""
    return np.array([_start(row, row.time) for row in rows if row.time is not None])


def _temperatures(rows: Sequence[LogRow], n: int) -> Array:
    """The temperature of each joint in each log, (N, n) [degrees Celsius]; NaN where unknown."""
    degrees = np.full((len(rows), n), np.nan)
    for k, row in enumerate(rows):
        if len(row.temperature) in (1, n):
            degrees[k] = row.temperature
    return degrees


def payloads(robot: str, content: Mapping[str, Any], rows: Sequence[LogRow]) -> list[LogPayload]:
    """The payload of each log of an arm.

    Args:
        robot: name of the arm
        content: of its model
        rows: of its logs, with their factors
    """
    model = DynamicModel.from_dict(content)
    all_empty = all(row.load is None for row in rows)  # then the model was fitted to all of them
    found = []
    for row in rows:
        empty = all_empty or row.load == 0
        found.append(_log_payload(row, _payload(model, row), empty=empty))
    return found


def _log_payload(row: LogRow, payload: Payload, *, empty: bool) -> LogPayload:
    expected = _NO_LOAD if empty else ()
    doubts = [doubt for doubt in payload.verdict.blocking if doubt.kind not in expected]
    mass = payload.unconstrained.mass
    cx, cy, cz = (float(x) for x in payload.com)
    cx_std, cy_std, cz_std = (float(x) for x in payload.com_std)
    return LogPayload(
        robot=row.robot,
        file=row.file,
        start_s=row.start_s,
        end_s=row.end_s,
        time=row.time,
        tool=row.tool,
        load=row.load,
        mass=mass,
        mass_std=float(payload.std[0]),
        error=None if row.load is None else mass - row.load,
        cx=cx,
        cy=cy,
        cz=cz,
        cx_std=cx_std,
        cy_std=cy_std,
        cz_std=cz_std,
        ok=not doubts,
        verdict=payload.status,
        doubts=tuple(str(doubt.kind) for doubt in doubts),
    )
