"""The page of a fleet: arms as rows, worst first, with small plots; each arm has a page of its own.

One file, without a network. It holds curves as numbers, which the browser draws when they become
visible: values in whole steps of a thousandth of their range, at most a hundred of each series
(means of neighbouring logs where there are more), so that 200 arms with a year of logs stay below
10 MB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from steelyard._arrays import Array
from steelyard._templates import render
from steelyard._units import NORMAL_95
from steelyard.fleet._rows import SeriesChange
from steelyard.fleet._trend import EMPTY, LOADED, UNITS, WORDS, ArmTrend, Trends

_MAX_POINTS_PER_SERIES = 100
_STEPS_PER_RANGE = 999
_MAX_CHANGES_SHOWN = 3  # changes of an arm that the overview lists


def fleet_html(trends: Trends, failed: Mapping[str, int]) -> str:
    """The page of a fleet as one self-contained HTML document.

    Args:
        trends: changes of all arms
        failed: number of unusable logs of each arm
    """
    changes = trends.changes
    flagged: dict[str, list[SeriesChange]] = {}
    for change in changes:
        if change.flagged:
            flagged.setdefault(change.robot, []).append(change)
    by_name = {arm.robot: arm for arm in trends.arms if len(arm.time)}
    order = dict.fromkeys([*(change.robot for change in changes), *by_name])
    arms = [by_name[robot] for robot in order if robot in by_name]
    kinds = {
        kind: {"words": _kind_heading(words, UNITS[kind]), "unit": UNITS[kind]}
        for kind, words in WORDS.items()
    }
    facts = [_facts(arm, flagged.get(arm.robot, []), failed.get(arm.robot, 0)) for arm in arms]
    values = {
        "title": "The fleet",
        "about": _about(arms),
        "answer": _answer(trends, flagged, len(changes), sum(failed.values())),
        "groups": _groups(arms, flagged),
        "data": {"arms": facts, "kinds": kinds},
    }
    return render(["steelyard.fleet", "steelyard.report"], "fleet.html", values)


def _kind_heading(words: str, unit: str) -> str:
    """The heading of the curves of one kind."""
    if unit:
        return f"{_sentence(words)} [{unit}]"
    return f"{_sentence(words)}, relative"


def _about(arms: Sequence[ArmTrend]) -> dict[str, str]:
    """What the page is about, by name."""
    facts = {"arms": str(len(arms))}
    if arms:
        facts["logs"] = _dates(np.concatenate([arm.time for arm in arms]))
    return facts | {"written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}


def _dates(time: Array) -> str:
    """The days of the first and the last log.

    Args:
        time: of the logs, (N,) [s since 1970]
    """
    first, last = (
        datetime.fromtimestamp(float(at), UTC).strftime("%Y-%m-%d")
        for at in (time.min(), time.max())
    )
    return f"{first} to {last}"


@dataclass(frozen=True)
class _ArmView:
    """A row of the overview.

    Attributes:
        name: of the arm
        changed: whether any change is flagged
        sentences: the flagged changes, the most certain first
        series: number of the series of each column; None where the arm has none
    """

    name: str
    changed: bool
    sentences: Sequence[str]
    series: Sequence[int | None]


@dataclass(frozen=True)
class _Group:
    """Arms with joints of the same names, which share the heads of a table.

    Attributes:
        joints: their names
        arms: the arms, worst first
    """

    joints: Sequence[str]
    arms: Sequence[_ArmView]


def _groups(
    arms: Sequence[ArmTrend], flagged: Mapping[str, Sequence[SeriesChange]]
) -> list[_Group]:
    """The arms by the names of their joints, the group with the worst arm first."""
    views: dict[tuple[str, ...], list[_ArmView]] = {}
    for arm in arms:
        here = views.setdefault(tuple(arm.joint_names), [])
        here.append(_arm_view(arm, flagged.get(arm.robot, [])))
    return [_Group(joints, rows) for joints, rows in views.items()]


def _arm_view(arm: ArmTrend, flagged: Sequence[SeriesChange]) -> _ArmView:
    sentences = [_sentence(change.words) for change in flagged[:_MAX_CHANGES_SHOWN]]
    if not flagged:
        sentences.append(_sentence(arm.not_compared or "no change beyond noise"))
        if arm.few_loaded:
            sentences.append(_sentence(arm.few_loaded))
    if len(flagged) > _MAX_CHANGES_SHOWN:
        sentences.append(f"and {len(flagged) - _MAX_CHANGES_SHOWN} more")
    numbers = {name: k for k, (name, _) in enumerate(_curves(arm))}
    series = [numbers.get(("Fc", j + 1)) for j in range(len(arm.joint_names))]
    series.append(numbers.get(("payload", 0)))
    return _ArmView(arm.robot, bool(flagged), sentences, series)


def _answer(
    trends: Trends, flagged: Mapping[str, Sequence[SeriesChange]], tests: int, failed: int
) -> list[str]:
    count = sum(len(rows) for rows in flagged.values())
    logs = sum(len(arm.time) for arm in trends.arms)
    verb = "has" if len(flagged) == 1 else "have"
    changed = (
        f"{len(flagged)} of {len(trends.arms)} arms {verb} changed, in {count} of {tests} series."
    )
    skipped = [arm for arm in trends.arms if arm.not_compared]
    if len(skipped) == len(trends.arms):
        return ["Nothing was compared.", *(f"{arm.robot}: {arm.not_compared}." for arm in skipped)]
    if not flagged:
        compared = len(trends.arms) - len(skipped)
        changed = f"None of {compared} compared arms has changed beyond noise."
    unusable = f"; {failed} more are unusable" if failed else ""
    reliability = (
        f"From {logs} logs{unusable}. Of all changes that are listed, at most"
        f" {100 * trends.rate:g} % are false alarms, on average (Benjamini, Yekutieli)."
    )
    return [changed, reliability]


def _curves(arm: ArmTrend) -> list[tuple[tuple[str, int], str]]:
    """Kind and joint of each curve, and which logs it shows, as in `Change.logs`.

    Payloads of loaded and of empty logs are not drawn as one curve.
    """
    curves = [(name, "") for name in arm.names]
    mixed = len(arm.loaded) and arm.loaded.any() and not arm.loaded.all()
    if not mixed or ("payload", 0) not in arm.names:
        return curves
    curves.remove((("payload", 0), ""))
    return [*curves, (("payload", 0), EMPTY), (("payload", 0), LOADED)]


def _facts(arm: ArmTrend, flagged: Sequence[SeriesChange], failed: int) -> dict[str, Any]:
    """An arm as plain values."""
    rows = {name: k for k, name in enumerate(arm.names)}
    series = []
    for (kind, joint), logs in _curves(arm):
        chosen = arm.logs_of(logs)
        k = rows[kind, joint]
        time, y, half = _thinned(arm.time[chosen], arm.value[k, chosen], arm.std[k, chosen])
        facts = {
            "kind": kind,
            "title": _title(arm, joint, logs),
            "zero": kind == "payload",
            **_quantised(y, half),
        }
        if logs:
            facts["time"] = np.rint(time).astype(int).tolist()
        for change in flagged:
            if (change.kind, change.joint) == (kind, joint) and _concerns(arm, change, logs):
                facts["at"] = round(change.since.timestamp())
        series.append(facts)
    time, _, _ = _thinned(arm.time, arm.time, arm.time)
    return {
        "name": arm.robot,
        "time": np.rint(time).astype(int).tolist(),
        "words": _words(arm, flagged),
        "facts": _log_counts(arm, failed),
        "series": series,
    }


def _concerns(arm: ArmTrend, change: SeriesChange, logs: str) -> bool:
    """Whether a change was found in the logs of a curve; a level is that of loaded logs."""
    if change.test == "level":
        return logs != EMPTY
    likeliest = arm.changes[arm.names.index((change.kind, change.joint))]
    found = "" if likeliest is None else likeliest.logs
    return not logs or not found or found == logs


def _title(arm: ArmTrend, joint: int, logs: str) -> str:
    if joint:
        return arm.joint_names[joint - 1]
    if logs:
        return f"weighed less configured, {logs} logs"
    return "weighed less configured"


def _log_counts(arm: ArmTrend, failed: int) -> str:
    unusable = f"; {failed} more are unusable" if failed else ""
    words = f"{len(arm.time)} logs, {_dates(arm.time)}{unusable}."
    if arm.left_out:
        files = ", ".join(f"{file} ({times:.0f} times)" for file, times in arm.left_out.items())
        words += f" Left out because they contradict the model of the arm beyond noise: {files}."
    return words


def _thinned(time: Array, value: Array, std: Array) -> tuple[Array, Array, Array]:
    """Times [s], means of neighbouring logs and half-widths of them (95 %), (K,) each.

    Args:
        time: of the logs, (N,) [s since 1970]
        value: of a series, (N,)
        std: standard deviations, (N,)
    """
    N = len(time)
    count = min(_MAX_POINTS_PER_SERIES, N)
    starts = np.unique(np.linspace(0, N, count, endpoint=False).astype(int))
    counts = np.diff(np.append(starts, N))
    variance = np.where(np.isfinite(std), std, 0.0) ** 2
    mean_std = np.sqrt(np.add.reduceat(variance, starts)) / counts
    return (
        np.add.reduceat(time, starts) / counts,
        np.add.reduceat(value, starts) / counts,
        NORMAL_95 * mean_std,
    )


def _quantised(mean: Array, half_width: Array) -> dict[str, Any]:
    """Numbers in whole steps above the lowest, few digits each."""
    low = float(np.min(mean))
    high = float(np.max(mean + half_width))
    step = float(f"{max(high - low, 1e-12) / _STEPS_PER_RANGE:.4g}")
    return {
        "low": float(f"{low:.6g}"),
        "step": step,
        "y": np.rint((mean - low) / step).astype(int).tolist(),
        "half": np.rint(half_width / step).astype(int).tolist(),
    }


def _words(arm: ArmTrend, flagged: Sequence[SeriesChange]) -> list[str]:
    """The flagged changes of an arm, or why there are none; empty if nothing has changed."""
    if not flagged and arm.not_compared:
        return [_sentence(f"{arm.not_compared}.")]
    words = [_sentence(change.words) for change in flagged]
    if not flagged and arm.few_loaded:
        words = ["No change beyond noise.", _sentence(f"{arm.few_loaded}.")]
    return words


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}".replace("+-", "±")
