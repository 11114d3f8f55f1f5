"""The cells of `bench_gates.py`: what became of each answer, both error rates, and their files.

An answer is compared with the truth in its mass and in the three coordinates of its centre, since
a payload that may be used promises both:

    good     no corruption, the mass inside its interval, no coordinate outside twice its interval;
             a refused sound run counts as a blocked good answer
    wrong    mass or a coordinate outside twice its interval; so does a refused corrupted run,
             which is never usable
    between  neither

The two error rates, here and in every table:

    good answers blocked   of all good answers, those that are refused or must not be used
    wrong and usable       of all corrupted runs, those with a wrong answer that may be used; their
                           share of the wrong answers is larger, and is given beside it
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

from steelyard._units import NORMAL_95
from steelyard.payload import Payload
from steelyard.verdict import Aspect, Fitness

_NAMED_BY = ("place", "part", "way", "corruption")
_DIGITS = 4  # of numbers in a kept file
_FAR = 999.0  # largest error of a centre, in half-widths
_NOT_KEPT = ("seconds", "words")


@dataclass(frozen=True)
class Truth:
    """What an answer should be.

    Attributes:
        mass: [kg]
        com: centre of mass in the frame of the flange [m]; empty if unknown
    """

    mass: float
    com: Sequence[float] = ()


@dataclass(frozen=True)
class Cell:
    """What became of one answer.

    Attributes:
        place: arm, world, engine, seed and number of empty runs in one word
        arm: name of the arm
        world: name of the friction, or 'real'
        seed: of motion and noise; -1 for real recordings
        engine: what made the motion
        part: of the bench
        way: 'batch' or 'tracking', and which motion
        corruption: what was done to the data
        truth: true mass, [kg]
        mass: that was found, [kg]
        half: half-width of its interval, [kg]
        centre: errors of the coordinates of the centre over their half-widths, (3,); empty if the
            true centre is unknown
        centre_half: largest half-width of the centre, [m]
        states: of mass, centre and inertia; empty without an answer
        ok: of the verdict
        blocking: kinds of the doubts that block
        aside: kinds of the other doubts
        seconds: processor time, identification included
        words: of the doubts that block
        refused: why there is no answer
    """

    place: str
    arm: str
    world: str
    seed: int
    engine: str
    part: str
    way: str
    corruption: str
    truth: float
    mass: float = math.nan
    half: float = math.nan
    centre: list[float] = field(default_factory=list)
    centre_half: float = math.nan
    states: list[str] = field(default_factory=list)
    ok: bool = False
    blocking: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    seconds: float = 0.0
    words: str = ""
    refused: str = ""

    @classmethod
    def of(cls, key: dict[str, Any], truth: Truth, payload: Payload, seconds: float) -> Cell:
        """The cell of an answer."""
        verdict = payload.verdict
        halves = NORMAL_95 * payload.com_std
        errors: list[float] = []
        if len(truth.com):
            ratios = (payload.body.com - np.asarray(truth.com)) / np.maximum(halves, 1e-12)
            errors = np.nan_to_num(ratios, nan=_FAR).clip(-_FAR, _FAR).tolist()
        return cls(
            **key,
            truth=truth.mass,
            mass=float(payload.body.mass),
            half=NORMAL_95 * float(payload.std[0]),
            centre=errors,
            centre_half=float(halves.max()),
            states=[str(verdict.fitness(aspect)) for aspect in Aspect],
            ok=verdict.ok,
            blocking=sorted({str(doubt.kind) for doubt in verdict.blocking}),
            aside=sorted({str(d.kind) for d in verdict.doubts if d not in verdict.blocking}),
            seconds=seconds,
            words="; ".join(doubt.words for doubt in verdict.blocking)[:300],
        )

    @staticmethod
    def name_of(key: dict[str, Any]) -> str:
        return "|".join(str(key[name]) for name in _NAMED_BY)

    @property
    def name(self) -> str:
        return self.name_of(vars(self))

    @property
    def ratio(self) -> float:
        """The error of the mass over its half-width; infinite without an answer."""
        if self.refused:
            return math.inf
        return abs(self.mass - self.truth) / max(self.half, 1e-12)

    @property
    def centre_ratio(self) -> float:
        """The largest error of a coordinate of the centre over its half-width; 0 if unknown."""
        return max(map(abs, self.centre), default=0.0)

    @property
    def trusted(self) -> bool:
        """Whether mass and centre may be used, with care or without."""
        return self.ok and not self.refused

    @property
    def needs_care(self) -> bool:
        """Whether they may be used, at least one of them with care."""
        return self.trusted and str(Fitness.CARE) in self.states[:2]

    @property
    def is_clean(self) -> bool:
        return self.corruption == "clean"

    @property
    def is_good(self) -> bool:
        """A sound run whose answer is right; a refusal of a sound run counts, too."""
        if not self.is_clean:
            return False
        return bool(self.refused) or (self.ratio <= 1 and self.centre_ratio <= 2)

    @property
    def is_bad(self) -> bool:
        """A wrong mass or centre, or no answer to a corrupted run."""
        if self.refused:
            return not self.is_clean
        return self.ratio > 2 or self.centre_ratio > 2

    @property
    def is_wrong_and_usable(self) -> bool:
        return self.trusted and self.is_bad


@dataclass(frozen=True)
class Share:
    """A count among a total, with the 95 % interval of the share."""

    count: int
    total: int

    @classmethod
    def of(cls, cells: Iterable[Cell], test: Callable[[Cell], bool]) -> Share:
        every = list(cells)
        return cls(sum(map(test, every)), len(every))

    @property
    def percent(self) -> float:
        return 100 * self.count / max(self.total, 1)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval after Clopper and Pearson, [%]."""
        low = 0.0
        high = 100.0
        if self.count > 0:
            low = 100 * float(beta.ppf(0.025, self.count, self.total - self.count + 1))
        if self.count < self.total:
            high = 100 * float(beta.ppf(0.975, self.count + 1, self.total - self.count))
        return low, high

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.count} of {self.total} = {self.percent:.1f} % ({low:.1f} to {high:.1f})"


def good_blocked(cells: Iterable[Cell]) -> Share:
    """Good answers that are refused or must not be used."""
    return Share.of((cell for cell in cells if cell.is_good), lambda cell: not cell.trusted)


def wrong_and_usable(cells: Iterable[Cell]) -> Share:
    """Corrupted runs with a wrong answer that may be used."""
    corrupted = (cell for cell in cells if not cell.is_clean)
    return Share.of(corrupted, lambda cell: cell.is_wrong_and_usable)


def wrong_that_are_usable(cells: Iterable[Cell]) -> Share:
    """Wrong answers to corrupted runs that may be used: the same count, fewer runs."""
    wrong = (cell for cell in cells if not cell.is_clean and cell.is_bad)
    return Share.of(wrong, lambda cell: cell.trusted)


# --- files


def read_cells(path: Path) -> list[Cell]:
    """The cells of a file, of lines or kept; of two with one name, the later."""
    if not path.exists():
        return []
    text = path.read_text()
    if text.startswith('{"columns"'):
        return _unpacked(json.loads(text))
    return merged([Cell(**json.loads(line)) for line in text.splitlines()])


def merged(*groups: Iterable[Cell]) -> list[Cell]:
    """The cells of several runs; of two with one name, the later."""
    return list({cell.name: cell for group in groups for cell in group}.values())


def keep_cells(cells: Iterable[Cell], path: Path) -> None:
    """Writes cells as a table, one line each, with few digits and without times and words."""
    columns = [each.name for each in fields(Cell) if each.name not in _NOT_KEPT]
    rows = [[_rounded(vars(cell)[name]) for name in columns] for cell in cells]
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    path.write_text(f'{{"columns": {json.dumps(columns)}, "cells": [\n{lines}\n]}}\n')


def _unpacked(table: dict[str, Any]) -> list[Cell]:
    return [
        Cell(**{name: x for name, x in zip(table["columns"], row, strict=True) if x is not None})
        for row in table["cells"]
    ]


def _rounded(value: Any) -> Any:
    """A value as it is kept: few digits, None for a number that is not known."""
    if isinstance(value, list):
        return [_rounded(x) for x in value]
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return None
    return float(f"{value:.{_DIGITS}g}")
