"""The page of a fleet: arms as rows, worst first, with small plots; each arm has a page of its own.

One file, without a network. It holds curves as numbers, which the browser draws when they become
visible: values in whole steps of a thousandth of their range, at most a hundred of each series
(means of neighbouring logs where there are more), so that 200 arms with a year of logs stay below
10 MB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.fleet._rows import SeriesChange
from steelyard.fleet._trend import UNITS, WORDS, ArmTrend, Trends
from steelyard.report._templates import render

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
    joint_count = max((joint for arm in arms for _, joint in arm.names), default=0)
    kinds = {kind: f"{_sentence(words)} [{UNITS[kind] or '1'}]" for kind, words in WORDS.items()}
    facts = [_facts(arm, flagged.get(arm.robot, []), failed.get(arm.robot, 0)) for arm in arms]
    values = {
        "title": "The fleet",
        "answer": _answer(trends, flagged, len(changes), sum(failed.values())),
        "joints": [_column_name(arms, j) for j in range(joint_count)],
        "arms": [_arm_view(arm, flagged.get(arm.robot, []), joint_count) for arm in arms],
        "data": {"arms": facts, "kinds": kinds},
    }
    return render("steelyard.fleet", "fleet.html", values)


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


def _arm_view(arm: ArmTrend, flagged: Sequence[SeriesChange], joint_count: int) -> _ArmView:
    sentences = [_sentence(change.words) for change in flagged[:_MAX_CHANGES_SHOWN]]
    if not flagged:
        sentences.append("No change beyond noise")
    if len(flagged) > _MAX_CHANGES_SHOWN:
        sentences.append(f"and {len(flagged) - _MAX_CHANGES_SHOWN} more")
    numbers = {name: k for k, name in enumerate(arm.names)}
    series = [numbers.get(("Fc", j + 1)) for j in range(joint_count)]
    series.append(numbers.get(("payload", 0)))
    return _ArmView(arm.robot, bool(flagged), sentences, series)


def _answer(
    trends: Trends, flagged: Mapping[str, Sequence[SeriesChange]], tests: int, failed: int
) -> list[str]:
    count = sum(len(rows) for rows in flagged.values())
    logs = sum(len(arm.time) for arm in trends.arms)
    changed = (
        f"{len(flagged)} of {len(trends.arms)} arms have changed, in {count} of {tests} series."
    )
    if not flagged:
        changed = f"None of {len(trends.arms)} arms has changed beyond noise."
    unusable = f"; {failed} more are unusable" if failed else ""
    reliability = (
        f"From {logs} logs{unusable}. Of all changes that are listed, at most"
        f" {100 * trends.rate:g} % are false alarms, on average (Benjamini, Yekutieli)."
    )
    return [changed, reliability]


def _column_name(arms: Sequence[ArmTrend], j: int) -> str:
    """The name of a joint where all arms use the same one, else its number."""
    names = {arm.joint_names[j] for arm in arms if j < len(arm.joint_names)}
    if len(names) == 1:
        return names.pop()
    return f"joint {j + 1}"


def _facts(arm: ArmTrend, flagged: Sequence[SeriesChange], failed: int) -> dict[str, Any]:
    """An arm as plain values."""
    since = {(change.kind, change.joint): change.since.timestamp() for change in flagged}
    time, mean, half_width = _thinned(arm)
    series = []
    for (kind, joint), y, half in zip(arm.names, mean, half_width, strict=True):
        title = arm.joint_names[joint - 1] if joint else "weighed less configured"
        facts = {"kind": kind, "title": title, "zero": kind == "payload", **_quantised(y, half)}
        if (kind, joint) in since:
            facts["at"] = round(since[kind, joint])
        series.append(facts)
    return {
        "name": arm.robot,
        "time": np.rint(time).astype(int).tolist(),
        "words": [_sentence(change.words) for change in flagged],
        "facts": _log_counts(arm, failed),
        "series": series,
    }


def _log_counts(arm: ArmTrend, failed: int) -> str:
    unusable = f"; {failed} more are unusable" if failed else ""
    words = f"{len(arm.time)} logs{unusable}."
    if arm.left_out:
        files = ", ".join(f"{file} ({times:.0f} times)" for file, times in arm.left_out.items())
        words += f" Left out because they contradict the model of the arm beyond noise: {files}."
    return words


def _thinned(arm: ArmTrend) -> tuple[Array, Array, Array]:
    """Times, (K,) [s], means of neighbouring logs and half-widths of them (95 %), (S, K) each."""
    N = len(arm.time)
    count = min(_MAX_POINTS_PER_SERIES, N)
    starts = np.unique(np.linspace(0, N, count, endpoint=False).astype(int))
    counts = np.diff(np.append(starts, N))
    variance = np.where(np.isfinite(arm.std), arm.std, 0.0) ** 2
    time = np.add.reduceat(arm.time, starts, axis=-1) / counts
    mean = np.add.reduceat(arm.value, starts, axis=-1) / counts
    std = np.sqrt(np.add.reduceat(variance, starts, axis=-1)) / counts
    return time, mean, NORMAL_95 * std


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


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}".replace("+-", "±")
