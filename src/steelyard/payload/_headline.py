"""A payload in short sentences, for the first line of a terminal, a page and a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from steelyard._units import NORMAL_95
from steelyard.verdict import Aspect, Fitness

if TYPE_CHECKING:
    from steelyard.payload._payload import Payload

_BAR_LENGTH = 20  # characters for the whole variance
_INERTIA = {
    Fitness.USE: "",
    Fitness.CARE: " Use the inertia with care.",
    Fitness.DO_NOT_USE: " Inertia is not known well enough and is exported as a sphere.",
}
_NEXT = {
    "noise": "record more motion: steelyard design ROBOT",
    "friction": "record the empty arm on the same day, and identify again: steelyard identify",
    "gains": "calibrate the gains with a known mass (steelyard identify)",
    "drift": "record the empty arm right before or after, and identify again: steelyard identify",
    "motion": "identify with an automatic cut-off (steelyard identify)",
    "gravity": "identify with the local gravity (steelyard identify)",
    "scale": "record a livelier motion: steelyard design ROBOT",
    "force": "record a livelier motion: steelyard design ROBOT",
}


def headline(payload: Payload) -> str:
    """Mass, centre and inertia, and whether to use them.

    Args:
        payload: the answer
    """
    verdict = payload.verdict
    mass = _rounded(payload)
    if not np.isfinite(payload.std[0]):
        return "DO NOT USE: the mass is not known."
    if not verdict.ok:
        count = len(verdict.blocking)
        return f"DO NOT USE: {mass}, with {count} blocking doubt{'s' if count > 1 else ''}."
    worst_mm = 1e3 * NORMAL_95 * float(payload.com_std.max())
    centre = "centre not known"
    if np.isfinite(worst_mm):
        digits = f"{worst_mm:.1g}" if worst_mm < 1 else f"{worst_mm:.0f}"
        centre = f"centre known to {digits} mm"
    state = "OK"
    if Fitness.CARE in (verdict.fitness(Aspect.MASS), verdict.fitness(Aspect.CENTRE)):
        state = "OK, WITH CARE"
    return f"{state}: {mass}, {centre}.{_INERTIA[verdict.fitness(Aspect.INERTIA)]}"


def variance_bars(shares: Mapping[str, float]) -> list[str]:
    """The shares of the variance of the mass as lines with bars, the largest first.

    Args:
        shares: of the variance, by cause
    """
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    width = max((len(name) for name in shares), default=0)
    return [
        f"{name:{width}} {'#' * round(_BAR_LENGTH * share):{_BAR_LENGTH}} {100 * share:3.0f} %"
        for name, share in ordered
        if round(100 * share) > 0
    ]


def next_action(payload: Payload) -> str:
    """The one thing that narrows the interval of the mass most, with its command; empty if unknown.

    Args:
        payload: the answer
    """
    if not payload.shares or not payload.verdict.ok:
        return ""
    return _NEXT[max(payload.shares, key=lambda name: payload.shares[name])]


def _rounded(payload: Payload) -> str:
    return f"{payload.quantities[0].with_interval} kg"
