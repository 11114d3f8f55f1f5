"""The page of a fleet: arms as rows, worst first, with small multiples; from there a page for each arm.

One file, without a network. Curves are numbers in it, drawn when they are looked at: values in
whole steps of a thousandth of their range, at most a hundred of each series (means of neighbouring
logs where there are more), so that 200 arms with a year of logs stay below 10 MB.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any
from urllib.parse import quote

import numpy as np

from steelyard._arrays import Array
from steelyard.fleet._trend import UNITS, WORDS, ArmTrend, Trends
from steelyard.payload import HALF_WIDTH

_MOST_POINTS = 100
_STEPS = 999
_MOST_WORDS = 3  # changes of an arm that the overview names


def fleet_html(trends: Trends, failed: Mapping[str, int]) -> str:
    """The page of a fleet as one self-contained HTML document.

    Args:
        trends: what has changed
        failed: how many logs of each arm are of no use
    """
    changes = trends.changes.to_pylist()
    flagged: dict[str, list[Mapping[str, Any]]] = {}
    order = list(dict.fromkeys(row["robot"] for row in changes))
    for row in changes:
        if row["flagged"]:
            flagged.setdefault(row["robot"], []).append(row)
    arms = {arm.robot: arm for arm in trends.arms if len(arm.time)}
    worst = [arms[robot] for robot in dict.fromkeys([*order, *arms]) if robot in arms]
    data = [_facts(arm, flagged.get(arm.robot, []), failed.get(arm.robot, 0)) for arm in worst]
    kinds = {kind: f"{_sentence(words)} [{UNITS[kind] or '1'}]" for kind, words in WORDS.items()}
    return Template(_asset("steelyard.fleet", "fleet.html")).substitute(
        title="The fleet",
        style=_asset("steelyard.report", "page.css") + _asset("steelyard.fleet", "fleet.css"),
        errors=_asset("steelyard.report", "errors.js"),
        answer=_answer(trends, flagged, len(changes), sum(failed.values())),
        body=_overview(worst, data, flagged),
        data=_json_in_html({"arms": data, "kinds": kinds}),
        program=_asset("steelyard.fleet", "fleet.js"),
    )


def _answer(trends: Trends, flagged: Mapping[str, Sequence[Any]], tests: int, failed: int) -> str:
    count = sum(len(rows) for rows in flagged.values())
    logs = sum(len(arm.time) for arm in trends.arms)
    first = f"{len(flagged)} of {len(trends.arms)} arms have changed, in {count} of {tests} series."
    if not flagged:
        first = f"None of {len(trends.arms)} arms has changed beyond noise."
    sentences = (
        first,
        f"From {logs} logs{f'; {failed} more are of no use' if failed else ''}. Of all changes"
        " that are"
        f" named, at most {100 * trends.rate:g} % are false alarms, on average (Benjamini,"
        " Yekutieli).",
    )
    return "\n".join(f"<p>{html.escape(words)}</p>" for words in sentences)


def _overview(
    arms: Sequence[ArmTrend],
    data: Sequence[Mapping[str, Any]],
    flagged: Mapping[str, Sequence[Any]],
) -> str:
    """Arms as rows of a table: what has changed, friction of each joint, payload."""
    n = max((joint for arm in arms for _, joint in arm.names), default=0)
    joints = "".join(
        f'<th class="joint">{html.escape(_column_name(arms, j))}</th>' for j in range(n)
    )
    head = f'<th>arm</th><th>what has changed</th>{joints}<th class="joint">payload</th>'
    rows = "\n".join(_row(arm, facts, n, flagged) for arm, facts in zip(arms, data, strict=True))
    caption = (
        "Worst first. Curves: Coulomb friction of each joint and payload less what is configured,"
        " over time,"
        " with 95 % bands; red where a change is flagged."
    )
    return (
        f'<figure><figcaption>{caption}</figcaption><div class="scroll"><table'
        f' class="arms"><thead><tr>{head}'
        f"</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div></figure>"
    )


def _column_name(arms: Sequence[ArmTrend], j: int) -> str:
    """The name of a joint, where it is called the same in all arms."""
    names = {arm.joint_names[j] for arm in arms if j < len(arm.joint_names)}
    if len(names) == 1:
        return names.pop()
    return f"joint {j + 1}"


def _row(
    arm: ArmTrend, facts: Mapping[str, Any], n: int, flagged: Mapping[str, Sequence[Any]]
) -> str:
    name = html.escape(arm.robot)
    link = f'<a href="#arm={quote(arm.robot)}">{name}</a>'
    words = [_sentence(row["words"]) for row in flagged.get(arm.robot, [])] or [
        "No change beyond noise"
    ]
    if len(words) > _MOST_WORDS:
        more = [f"and {len(words) - _MOST_WORDS} more"]
    else:
        more = []
    said = "".join(f"<p>{html.escape(each)}</p>" for each in [*words[:_MOST_WORDS], *more])
    places = {name: k for k, name in enumerate(arm.names)}
    shown = [places.get(("Fc", j + 1)) for j in range(n)] + [places.get(("payload", 0))]
    cells = "".join(
        "<td></td>" if k is None else f'<td class="spark" data-arm="{name}" data-series="{k}"></td>'
        for k in shown
    )
    if arm.robot in flagged:
        kind = ""
    else:
        kind = ' class="sound"'
    return f'<tr{kind}><td class="name">{link}</td><td class="words">{said}</td>{cells}</tr>'


def _facts(arm: ArmTrend, flagged: Sequence[Mapping[str, Any]], failed: int) -> dict[str, Any]:
    """An arm as plain values."""
    since = {(row["kind"], row["joint"]): row["since"].timestamp() for row in flagged}
    time, mean, half = _thinned(arm)
    series = []
    for (kind, joint), y, width in zip(arm.names, mean, half, strict=True):
        if joint:
            title = arm.joint_names[joint - 1]
        else:
            title = "weighed less configured"
        named = {"kind": kind, "title": title, "zero": kind == "payload"}
        if (kind, joint) in since:
            changed = {"at": round(since[kind, joint])}
        else:
            changed = {}
        series.append({**named, **_quantised(y, width), **changed})
    left_out = ", ".join(f"{file} ({times:.0f} times)" for file, times in arm.left_out.items())
    facts = f"{len(arm.time)} logs{f'; {failed} more are of no use' if failed else ''}."
    if left_out:
        facts += f" Left out, for they contradict the arm beyond noise: {left_out}."
    return {
        "name": arm.robot,
        "time": np.rint(time).astype(int).tolist(),
        "words": [_sentence(row["words"]) for row in flagged],
        "facts": facts,
        "series": series,
    }


def _thinned(arm: ArmTrend) -> tuple[Array, Array, Array]:
    """Means over neighbouring logs: times, (K,), values, (S, K), and half of their 95 % intervals, (S, K)."""
    N = len(arm.time)
    starts = np.unique(np.linspace(0, N, min(_MOST_POINTS, N), endpoint=False).astype(int))
    counts = np.diff(np.append(starts, N))
    variance = np.where(np.isfinite(arm.std), arm.std, 0.0) ** 2
    time, mean = (np.add.reduceat(x, starts, axis=-1) / counts for x in (arm.time, arm.value))
    return time, mean, HALF_WIDTH * np.sqrt(np.add.reduceat(variance, starts, axis=-1)) / counts


def _quantised(mean: Array, half: Array) -> dict[str, Any]:
    """Numbers in whole steps above the lowest, few digits each."""
    low = float(np.min(mean))
    high = float(np.max(mean + half))
    step = float(f"{max(high - low, 1e-12) / _STEPS:.4g}")
    y, width = (np.rint(x / step).astype(int).tolist() for x in (mean - low, half))
    return {"low": float(f"{low:.6g}"), "step": step, "y": y, "half": width}


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}".replace("+-", "±")


def _asset(room: str, name: str) -> str:
    return (resources.files(room) / "assets" / name).read_text(encoding="utf-8")


def _json_in_html(value: Any) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
