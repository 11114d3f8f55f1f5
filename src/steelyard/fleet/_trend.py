"""Changes of friction, offsets, gains, residuals and payload beyond noise and temperature.

A series is one quantity of an arm, y_k with standard deviation s_k in log k. Without a change it
follows

    y = X b + e,        X = [1, temperature, configured load], without columns that do not vary,

where e has the variance s_k^2 + omega^2; omega is the scatter between logs, estimated from the
residuals. Residuals are clipped at four standard deviations, so that a single outlier is not a
change. A change adds a column: a step between two logs, or a ramp that begins at a log, with a few
logs on either side. Each of the m candidates has a statistic t (Student, N - rank - 1 degrees of
freedom). The largest is used, with Bonferroni's p-value

    p = m P(|t| > t_max),

where t is divided by the root of (1 + r) / (1 - r) for neighbouring residuals with a correlation
r > 0. For the payload, loaded and empty logs are also tested apart, and p counts three tests: a
wrong part changes the loaded logs only. A further test checks whether loaded logs carry the
configured load, from a certain step of the payload on: t is the mean error over its standard
deviation, which includes that of the model.

The rate of false discoveries over all series of all arms is controlled by the procedure of
Benjamini and Yekutieli (2001): the k-th smallest of M p-values is flagged, with all smaller ones,
if p <= rate k / (M sum_i 1/i). The procedure holds for any dependence between series, and the
series of one arm do depend on each other. (That of Benjamini and Hochberg requires independence or
positive dependence.) The price is that p-values must be about ten times smaller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from steelyard._arrays import Array, Mask
from steelyard._units import NORMAL_95, with_interval
from steelyard.fleet._rows import SeriesChange
from steelyard.robot import ParameterKind

if TYPE_CHECKING:
    import pyarrow as pa

UNITS = {
    ParameterKind.COULOMB.symbol: "Nm",
    ParameterKind.VISCOUS.symbol: "Nm s/rad",
    ParameterKind.STRIBECK.symbol: "Nm",
    ParameterKind.ASYMMETRY.symbol: "Nm s/rad",
    ParameterKind.LOAD_SHARE.symbol: "",
    ParameterKind.OFFSET.symbol: "Nm",
    "gain": "",
    "residual": "Nm",
    "payload": "kg",
}
"""The kinds of series, and their units; viscous friction with an exponent has its own unit."""

WORDS = {
    ParameterKind.COULOMB.symbol: "Coulomb friction",
    ParameterKind.VISCOUS.symbol: "viscous friction",
    ParameterKind.STRIBECK.symbol: "Stribeck friction",
    ParameterKind.ASYMMETRY.symbol: "friction by direction",
    ParameterKind.LOAD_SHARE.symbol: "friction by load",
    ParameterKind.OFFSET.symbol: "offset",
    "gain": "gain",
    "residual": "residual",
    "payload": "payload",
}

LOADED = "loaded"
EMPTY = "empty"

_PERCENT_KINDS = ("gain", ParameterKind.LOAD_SHARE.symbol)  # relative quantities
_RELATIVE_KINDS = (
    ParameterKind.COULOMB.symbol,
    ParameterKind.VISCOUS.symbol,
    ParameterKind.STRIBECK.symbol,
    "residual",
)  # whose change is also given in percent of the value before
_MIN_LOGS = 8  # to test for a change
_MIN_SIDE_LOGS = 3  # on either side of a change
_MIN_VARIATION = 1e-6  # of a column; less counts as constant
_CLIP_SIGMA = 4.0  # standard deviations
_MAX_CORRELATION = 0.9  # of neighbouring residuals
_STD_OF_MEDIAN_DEVIATION = 1.4826  # standard deviation over median deviation of normal numbers


@dataclass(frozen=True, eq=False)
class ChangePoint:
    """The likeliest change of a series.

    Attributes:
        at: index of the first log after it
        ramp: whether it is a ramp from there, or a step
        size: of the step, or of the ramp up to the last log
        std: standard deviation of the size
        p: probability of a change this significant by chance
        logs: 'loaded' or 'empty' where it concerns these logs only; empty for all of them
    """

    at: int
    ramp: bool
    size: float
    std: float
    p: float
    logs: str = ""


@dataclass(frozen=True, eq=False)
class ArmTrend:
    """The series of one arm.

    Attributes:
        robot: name of the arm
        time: start of its logs, (N,) [s since 1970]
        files: the logs
        joint_names: of the arm
        names: kind and joint of each series, counted from 1; joint 0 is the arm
        value: of each series, (S, N)
        std: standard deviation for the given model, (S, N)
        changes: the most likely of each series; None for too few logs
        level: mean error of the payload of loaded logs, its standard deviation and p-value; None
            without loaded logs
        left_out: logs that do not match this arm, with their contradiction of its model
        loaded: whether a log has a configured load above zero, (N,); empty if that is not known
        undated: number of logs without a time of recording, which are in no series
    """

    robot: str
    time: Array
    files: Sequence[str]
    joint_names: Sequence[str]
    names: Sequence[tuple[str, int]]
    value: Array
    std: Array
    changes: Sequence[ChangePoint | None]
    level: ChangePoint | None
    left_out: Mapping[str, float]
    loaded: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    undated: int = 0

    @property
    def not_compared(self) -> str:
        """Why no series was tested for a change, without a full stop; empty if one was."""
        if self.level is not None or any(change is not None for change in self.changes):
            return ""
        words = f"not compared: {len(self.time)} dated logs, and at least {_MIN_LOGS} are needed"
        if self.undated:
            words += f"; {self.undated} logs are undated, give their `time` in a catalogue"
        return words

    @property
    def few_loaded(self) -> str:
        """Why a change of its payload cannot be found, without a full stop; empty if it can."""
        count = int(np.count_nonzero(self.loaded))
        if self.not_compared or count == len(self.time) or not 0 < count < _MIN_LOGS:
            return ""
        return (
            f"{count} loaded logs are too few to find a change of the payload, which needs"
            f" {_MIN_LOGS}; weighing judges each log"
        )

    def logs_of(self, name: str) -> Mask:
        """The logs with a name as in `ChangePoint.logs`, (N,); all for an empty name."""
        if not name or not len(self.loaded):
            return np.ones(len(self.time), dtype=bool)
        return np.asarray(self.loaded == (name == LOADED))


@dataclass(frozen=True, eq=False)
class Trends:
    """The changes in a fleet.

    Attributes:
        arms: series of each arm
        rate: largest mean rate of false discoveries among the flagged changes
    """

    arms: Sequence[ArmTrend]
    rate: float

    @property
    def series(self) -> pa.Table:
        """Every value of every series: robot, joint, kind, unit, time, file, value, std."""
        import pyarrow as pa

        tables = [_series(arm) for arm in self.arms]
        if tables:
            return pa.concat_tables(tables)
        return pa.table({})

    @cached_property
    def changes(self) -> list[SeriesChange]:
        """The most likely change of each series, sorted by p-value."""
        tested = [change for arm in self.arms for change in _tested(arm)]
        rates = false_discovery_rates([change.p for change in tested])
        judged = [
            replace(change, q=float(q), flagged=bool(q <= self.rate))
            for change, q in zip(tested, rates, strict=True)
        ]
        return sorted(judged, key=lambda change: (change.p, -abs(change.size / change.std)))


def false_discovery_rates(p: Sequence[float]) -> Array:
    """The smallest rate of false discoveries at which each test is flagged, (M,).

    Args:
        p: p-values of all tests, (M,)
    """
    values = np.asarray(p, dtype=float)
    if not len(values):
        return values
    from scipy.stats import false_discovery_control  # slow to import

    return np.asarray(false_discovery_control(values, method="by"))


def likeliest_change(time: Array, y: Array, std: Array, covariates: Array) -> ChangePoint | None:
    """The most likely change of a series; None for too few logs.

    Args:
        time: of the logs in ascending order, (N,) [s]
        y: values, (N,)
        std: their standard deviations, (N,)
        covariates: further influences on the values, (N, k)
    """
    X = _columns_without_change(covariates)
    freedom = len(y) - X.shape[1] - 1
    if len(y) < _MIN_LOGS or freedom < _MIN_SIDE_LOGS:
        return None
    w = _weights(X, y, std)
    columns, ats, ramps = _candidates(time)
    Q = np.linalg.qr(X * w[:, None])[0]
    plain = y * w
    C = columns * w[:, None]
    plain = plain - Q @ (Q.T @ plain)
    C = C - Q @ (Q.T @ C)
    rest = _clipped(plain)
    rest = rest - Q @ (Q.T @ rest)
    length = np.linalg.norm(C, axis=0)
    seen = length > _MIN_VARIATION * np.linalg.norm(columns * w[:, None], axis=0)
    along = np.where(seen, C.T @ rest / np.where(seen, length, 1.0), 0.0)
    best = int(np.abs(along).argmax())
    left = rest - C[:, best] * (along[best] / length[best])
    noise = float(np.sqrt(max(left @ left, 1e-300) / freedom * _variance_inflation(left)))
    t = abs(float(along[best])) / noise
    p = min(1.0, 2.0 * float(seen.sum()) * float(special.stdtr(freedom, -t)))
    size = float(C[:, best] @ plain) / float(length[best]) ** 2
    return ChangePoint(int(ats[best]), bool(ramps[best]), size, noise / float(length[best]), p)


def likeliest_payload_change(
    time: Array, y: Array, std: Array, covariates: Array, loaded: Mask
) -> ChangePoint | None:
    """The likeliest change among all logs, among the loaded and among the empty ones.

    A wrong payload changes the loaded logs only; a mean over all logs would show a part of it.
    The p-value is Bonferroni's for the three tests.

    Args:
        time: of the logs in ascending order, (N,) [s]
        y: weighed less configured mass, (N,) [kg]
        std: standard deviations, (N,) [kg]
        covariates: further influences on the values, (N, k)
        loaded: whether each log has a configured load, (N,)
    """
    every = np.ones(len(y), dtype=bool)
    groups = {"": every}
    if loaded.any() and not loaded.all():
        groups |= {LOADED: loaded, EMPTY: ~loaded}
    found = []
    for name, logs in groups.items():
        change = likeliest_change(time[logs], y[logs], std[logs], covariates[logs])
        if change is not None:
            at = int(np.flatnonzero(logs)[change.at])
            p = min(1.0, len(groups) * change.p)
            found.append(replace(change, at=at, p=p, logs=name))
    return min(found, key=lambda change: change.p, default=None)


def level(y: Array, std: float) -> ChangePoint:
    """Whether the mean of values differs from zero.

    Args:
        y: values, (N,)
        std: standard deviation of the error that all values share, and of one value
    """
    if len(y) > 1:
        scatter = float(np.var(y, ddof=1)) / len(y)
    else:
        scatter = 0.0
    mean = float(np.mean(y))
    spread = float(np.sqrt(scatter + std**2))
    return ChangePoint(0, False, mean, spread, float(2.0 * special.ndtr(-abs(mean) / spread)))


def _columns_without_change(covariates: Array) -> Array:
    """Columns of a series without a change: a constant and centred covariates, (N, k + 1)."""
    columns = [np.ones(len(covariates))]
    for column in covariates.T:
        centred = np.where(np.isfinite(column), column, np.nan)
        if np.isfinite(centred).all() and np.ptp(centred) > _MIN_VARIATION:
            columns.append((centred - centred.mean()) / np.ptp(centred))
    X = np.column_stack(columns)
    if np.linalg.matrix_rank(X) == X.shape[1]:
        return X
    return X[:, :2]


def _weights(X: Array, y: Array, std: Array) -> Array:
    """One over the standard deviation of each value including scatter between logs, (N,)."""
    rest = y - X @ np.linalg.lstsq(X / std[:, None], y / std, rcond=None)[0]
    scatter = _STD_OF_MEDIAN_DEVIATION * float(np.median(np.abs(rest - np.median(rest))))
    omega = max(0.0, scatter**2 - float(np.median(std)) ** 2)
    return np.asarray(1.0 / np.sqrt(std**2 + omega))


def _candidates(time: Array) -> tuple[Array, np.ndarray[Any, Any], Mask]:
    """Columns of steps and ramps, (N, m), first log after each, (m,), and whether ramps, (m,)."""
    N = len(time)
    ats = np.arange(_MIN_SIDE_LOGS, N - _MIN_SIDE_LOGS + 1)
    steps = (np.arange(N)[:, None] >= ats).astype(float)
    begins = np.arange(0, N - 2 * _MIN_SIDE_LOGS + 1)
    ramps = np.maximum(time[:, None] - time[begins], 0.0) / np.maximum(
        time[-1] - time[begins], 1e-9
    )
    flags = np.repeat([False, True], [len(ats), len(begins)])
    return np.hstack([steps, ramps]), np.concatenate([ats, begins]), flags


def _clipped(rest: Array) -> Array:
    """Residuals clipped at four standard deviations, (N,)."""
    middle = float(np.median(rest))
    limit = _CLIP_SIGMA * _STD_OF_MEDIAN_DEVIATION * float(np.median(np.abs(rest - middle)))
    return np.clip(rest, middle - limit, middle + limit)


def _variance_inflation(rest: Array) -> float:
    """Factor by which correlation of neighbours widens the variance of a mean, at least 1."""
    r = float(rest[1:] @ rest[:-1]) / max(float(rest @ rest), 1e-300)
    r = min(r + (1.0 + 4.0 * r) / len(rest), _MAX_CORRELATION)
    if r > 0:
        return (1.0 + r) / (1.0 - r)
    return 1.0


def _series(arm: ArmTrend) -> pa.Table:
    import pyarrow as pa

    S, N = arm.value.shape
    if S:
        kinds, joints = zip(*arm.names, strict=True)
    else:
        kinds, joints = ((), ())
    return pa.table(
        {
            "robot": pa.array(np.repeat([arm.robot], S * N)),
            "joint": np.repeat(joints, N),
            "kind": pa.array(np.repeat(kinds, N)),
            "unit": pa.array(np.repeat([UNITS[kind] for kind in kinds], N)),
            "time": pa.array(
                (np.tile(arm.time, S) * 1e6).astype(np.int64), pa.timestamp("us", "UTC")
            ),
            "file": pa.array(np.tile(np.asarray(arm.files, dtype=str), S)),
            "value": arm.value.ravel(),
            "std": arm.std.ravel(),
        }
    )


def _tested(arm: ArmTrend) -> list[SeriesChange]:
    """The most likely change of each series and the level of the payload; none flagged."""
    named = zip(arm.names, arm.changes, strict=True)
    tests = [(kind, joint, "change", change) for (kind, joint), change in named]
    tests.append(("payload", 0, "level", arm.level))
    return [
        _series_change(arm, kind, joint, test, change)
        for kind, joint, test, change in tests
        if change is not None
    ]


def _series_change(
    arm: ArmTrend, kind: str, joint: int, test: str, change: ChangePoint
) -> SeriesChange:
    since = datetime.fromtimestamp(float(arm.time[change.at]), UTC)
    series = arm.value[arm.names.index((kind, joint))]
    earlier = series[: change.at][arm.logs_of(change.logs)[: change.at]]
    before = float(np.median(earlier)) if len(earlier) else 0.0
    name = arm.joint_names[joint - 1] if joint else ""
    return SeriesChange(
        robot=arm.robot,
        joint=joint,
        kind=kind,
        test=test,
        since=since,
        ramp=change.ramp,
        size=change.size,
        std=change.std,
        before=before,
        p=change.p,
        words=_sentence(kind, name, test, change, before, since),
        q=1.0,
        flagged=False,
    )


def _sentence(
    kind: str, joint: str, test: str, change: ChangePoint, before: float, began: datetime
) -> str:
    """A change as a sentence."""
    if test == "level":
        if change.size > 0:
            side = "more"
        else:
            side = "less"
        since = f" since {began:%Y-%m-%d}" if change.at else ""
        return (
            f"carries {with_interval(abs(change.size), NORMAL_95 * change.std)} kg {side} than"
            f" configured{since}"
        )
    if kind in _PERCENT_KINDS:
        scale = 100.0
        unit = "%"
    else:
        scale = 1.0
        unit = UNITS[kind]
    size = scale * change.size
    half = NORMAL_95 * scale * change.std
    share = ""
    if kind in _RELATIVE_KINDS and abs(before) > abs(change.size) / 10:
        share = f" ({100 * change.size / abs(before):+.0f} %)"
    if joint:
        where = f" of {joint}"
    elif change.logs:
        where = f" of {change.logs} logs"
    else:
        where = ""
    if change.ramp:
        how = "rises" if size > 0 else "falls"
    else:
        how = "steps"
    if kind == "payload":
        guess = ": check whether the tool was changed"
    else:
        guess = ""
    amount = with_interval(size, half, signed=True)
    return f"{WORDS[kind]}{where} {how} by {amount} {unit}{share} since {began:%Y-%m-%d}{guess}"
