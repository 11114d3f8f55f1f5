"""A payload in short sentences, for the first line of a terminal, a page and a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from steelyard._units import NORMAL_95
from steelyard.verdict import Aspect, Doubt, Fitness

if TYPE_CHECKING:
    from steelyard.payload._payload import Payload

_BAR_LENGTH = 20  # characters for the whole variance
CAUSE_WORDS = {
    "noise": "measurement noise",
    "friction": "friction of the day",
    "gains": "drive gains",
    "drift": "drift of the gains",
    "motion": "noise of the motion",
    "gravity": "local gravity",
    "scale": "possible error of scale",
    "force": "possible steady force",
}
"""What widens the interval of a mass, in words, by the keys of `Payload.shares`."""
_INERTIA = {
    Fitness.USE: "",
    Fitness.CARE: " Use the inertia with care.",
    Fitness.DO_NOT_USE: " Inertia is not known well enough and is exported as a sphere.",
}


def headline(payload: Payload) -> str:
    """Mass, centre and inertia, and whether to use them.

    Args:
        payload: the answer
    """
    verdict = payload.verdict
    mass = _rounded(payload)
    if not payload.quantities[0].is_known:
        return "DO NOT USE: the mass is not known."
    if not verdict.ok:
        return f"DO NOT USE: {mass}. {_reason(verdict.blocking)}"
    worst_mm = 1e3 * NORMAL_95 * float(payload.com_std.max())
    centre = "centre not known"
    if np.isfinite(worst_mm):
        digits = f"{worst_mm:.1g}" if worst_mm < 1 else f"{worst_mm:.0f}"
        centre = f"centre known to {digits} mm"
    state = "OK"
    if Fitness.CARE in (verdict.fitness(Aspect.MASS), verdict.fitness(Aspect.CENTRE)):
        state = "OK, WITH CARE"
    return f"{state}: {mass}, {centre}.{_INERTIA[verdict.fitness(Aspect.INERTIA)]}"


def _reason(blocking: Sequence[Doubt]) -> str:
    """The first doubt without its advice, and how many more there are."""
    words = blocking[0].reason
    more = len(blocking) - 1
    if more == 1:
        words += ", and 1 more doubt"
    elif more:
        words += f", and {more} more doubts"
    return f"{words[0].upper()}{words[1:]}{'' if words.endswith('?') else '.'}"


def variance_bars(shares: Mapping[str, float]) -> list[str]:
    """The shares of the variance of the mass as lines with bars, the largest first.

    Args:
        shares: of the variance, by cause
    """
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    shown = {CAUSE_WORDS[name]: share for name, share in ordered if round(100 * share) > 0}
    width = max(map(len, shown), default=0)
    return [
        f"{words:{width}} {'#' * round(_BAR_LENGTH * share):{_BAR_LENGTH}} {100 * share:3.0f} %"
        for words, share in shown.items()
    ]


def limiting_cause(payload: Payload) -> str:
    """The largest cause of the width of the mass's interval; empty if unknown or not to be used.

    Args:
        payload: the answer
    """
    if not payload.shares or not payload.verdict.ok:
        return ""
    return max(payload.shares, key=lambda name: payload.shares[name])


def _rounded(payload: Payload) -> str:
    return f"{payload.quantities[0].with_interval} kg"
