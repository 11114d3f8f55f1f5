"""One measured figure, beside its reference and its goal."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A figure; `goal` bounds the ratio where there is a reference, else the value."""

    name: str
    what: str
    value: float
    unit: str
    goal: float | None = None
    reference: float | None = None

    @property
    def ratio(self) -> float | None:
        if self.reference is None:
            return None
        return self.value / self.reference

    @property
    def reached(self) -> bool:
        if self.ratio is None:
            judged = self.value
        else:
            judged = self.ratio
        return self.goal is None or judged <= self.goal

    def as_dict(self) -> dict[str, object]:
        keys = ("value", "unit", "reference", "ratio", "goal")
        return {key: getattr(self, key) for key in keys}

    def line(self) -> str:
        if self.reference is None:
            reference = ""
        else:
            reference = f"{self.reference:.4g} {self.unit}"
        if self.ratio is None:
            ratio = ""
        else:
            ratio = f"{self.ratio:.2f}"
        if self.goal is None:
            goal = ""
        else:
            goal = f"<= {self.goal:g}{'' if self.reached else '  MISSED'}"
        return (
            f"{self.what:66} {f'{self.value:.4g} {self.unit}':>14} {reference:>14} {ratio:>8} "
            f" {goal}"
        )


def median_s(work: Callable[[], object], *, runs: int = 7) -> float:
    """The median wall time of a piece of work, after one run to warm up, [s]."""
    work()
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def alternating_medians_s(
    ours: Callable[[], object], reference: Callable[[], object], *, runs: int = 9
) -> tuple[float, float]:
    """The median wall times of two pieces of work, run alternately so that noise hits both, [s]."""
    ours()
    reference()
    pairs = []
    for _ in range(runs):
        t0 = time.perf_counter()
        ours()
        t1 = time.perf_counter()
        reference()
        pairs.append((t1 - t0, time.perf_counter() - t1))
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)
