"""The cells of `bench_gates.py`, their error rates with intervals, and the tables made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scipy.stats import beta

from steelyard._units import NORMAL_95

LAW_WORLDS = ("law",)
_NAMED_BY = ("place", "part", "way", "corruption")


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
        way: 'batch' or 'tracking'
        corruption: what was done to the data
        truth: true mass, [kg]
        mass: that was found, [kg]
        half: half-width of its interval, [kg]
        ok: of the verdict
        blocking: kinds of the doubts that block
        aside: kinds of the other doubts
        seconds: processor time
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
    mass: float = float("nan")
    half: float = float("nan")
    ok: bool = False
    blocking: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    seconds: float = 0.0
    words: str = ""
    refused: str = ""

    @staticmethod
    def name_of(key: dict[str, Any]) -> str:
        return "|".join(str(key[name]) for name in _NAMED_BY)

    @property
    def name(self) -> str:
        return self.name_of(vars(self))

    @property
    def ratio(self) -> float:
        """The error over the half-width; infinite without an answer."""
        if self.refused:
            return float("inf")
        return abs(self.mass - self.truth) / max(self.half, 1e-12)

    @property
    def trusted(self) -> bool:
        return self.ok and not self.refused

    @property
    def is_clean(self) -> bool:
        return self.corruption == "clean"

    @property
    def is_good(self) -> bool:
        """No corruption and the truth inside; a refusal of a sound run counts, too."""
        return self.is_clean and (bool(self.refused) or self.ratio <= 1)

    @property
    def is_bad(self) -> bool:
        """The truth outside twice the interval, or no answer to a corrupted run."""
        if self.refused:
            return not self.is_clean
        return self.ratio > 2


def interval(count: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share after Clopper and Pearson."""
    if total == 0:
        return 0.0, 1.0
    low = float(beta.ppf(0.025, count, total - count + 1)) if count else 0.0
    high = float(beta.ppf(0.975, count + 1, total - count)) if count < total else 1.0
    return low, high


def share(cells: Iterable[Cell], test: Callable[[Cell], bool]) -> str:
    """A count, its share and the interval of the share, in words."""
    every = list(cells)
    count = sum(map(test, every))
    low, high = interval(count, len(every))
    percent = 100 * count / max(len(every), 1)
    return f"{count} of {len(every)} = {percent:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def print_report(cells: Sequence[Cell]) -> None:
    """Prints the tables of both error rates."""
    print(f"{len(cells)} cells, {sum(cell.seconds for cell in cells):.0f} s of processor time")
    groups = {"everything": list(cells)}
    groups |= {f"part {part}": [c for c in cells if c.part == part] for part in _of(cells, "part")}
    groups |= {f"world {w}": [c for c in cells if c.world == w] for w in _of(cells, "world")}
    groups |= {f"arm {name}": [c for c in cells if c.arm == name] for name in _of(cells, "arm")}
    for name, group in groups.items():
        print(f"\n{name}")
        _print_rates(group)
    print("\ncorruption: bad answers trusted; trusted answers inside twice the interval")
    for kind in _of(cells, "corruption"):
        group = [cell for cell in cells if cell.corruption == kind]
        bad = [cell for cell in group if cell.is_bad]
        trusted = sum(cell.trusted for cell in group)
        print(f"  {kind:36} {share(bad, _trusted):40} trusted {trusted} of {len(group)}")
    print("\ndoubt: good answers blocked, bad answers caught (alone)")
    _print_doubts(cells)
    _print_errors(cells)


def _print_rates(group: Sequence[Cell]) -> None:
    good = [cell for cell in group if cell.is_good]
    bad = [cell for cell in group if cell.is_bad]
    usable = [cell for cell in group if cell.trusted]
    clean = [cell for cell in usable if cell.is_clean]
    corrupted = [cell for cell in usable if not cell.is_clean]
    print(f"  good blocked       {share(good, _blocked)}")
    print(f"  bad trusted        {share(bad, _trusted)}")
    print(f"  coverage of trusted, all {share(usable, _held)}")
    print(f"  coverage of trusted, clean {share(clean, _held)}")
    if clean:
        squares = [(NORMAL_95 * cell.ratio) ** 2 for cell in clean]
        rms = (sum(squares) / len(squares)) ** 0.5
        print(f"  their RMS error over its standard deviation {rms:.2f}")
    print(f"  coverage of trusted, corrupted {share(corrupted, _held)}")


def _print_doubts(cells: Sequence[Cell]) -> None:
    good = [cell for cell in cells if cell.is_good]
    bad = [cell for cell in cells if cell.is_bad]
    blocks = Counter(kind for cell in good for kind in cell.blocking)
    catches = Counter(kind for cell in bad for kind in cell.blocking)
    alone = Counter(cell.blocking[0] for cell in bad if len(cell.blocking) == 1)
    for kind in sorted({*blocks, *catches}):
        caught = f"{catches[kind]} of {len(bad)} ({alone[kind]})"
        print(f"  {kind:22} {blocks[kind]:4} of {len(good)}    {caught}")


def _print_errors(cells: Sequence[Cell]) -> None:
    print("\nerrors")
    for cell in cells:
        wrong = (cell.is_good and not cell.trusted) or (cell.is_bad and cell.trusted)
        if wrong:
            what = "BLOCKED" if cell.is_good else "TRUSTED"
            numbers = f"{cell.mass:.4g} +- {cell.half:.2g} for {cell.truth:.4g}"
            reason = cell.refused or cell.words or ",".join(cell.aside)
            where = f"{cell.place} {cell.part} {cell.way} {cell.corruption}"
            print(f"  {what} {where}: {numbers}; {reason}")


def _trusted(cell: Cell) -> bool:
    return cell.trusted


def _blocked(cell: Cell) -> bool:
    return not cell.trusted


def _held(cell: Cell) -> bool:
    return cell.ratio <= 1


def _of(cells: Sequence[Cell], name: str) -> list[str]:
    return list(dict.fromkeys(str(getattr(cell, name)) for cell in cells))


START = "<!-- bench of gates: written by benchmarks/bench_gates.py -->"
END = "<!-- end of the bench of gates -->"
_PARTS = {
    "joints, batch": ("torque", "sound", "empty", "currents"),
    "joints, tracked": ("tracking",),
    "wrist sensor": ("wrist",),
    "real recordings": ("real",),
}


def write_markdown(cells: Sequence[Cell], path: Path) -> None:
    """Writes rates and table between the marks of a document, or as a file of its own."""
    write_between(path, START, END, [*_rates(cells), "", *markdown(cells)])


def write_between(path: Path, start: str, end: str, lines: Sequence[str]) -> None:
    """Writes lines between two marks of a document, or as a file of their own."""
    text = "\n".join(lines)
    if not path.exists():
        path.write_text(text + "\n")
        return
    before, _, rest = path.read_text().partition(start)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{start}\n{text}\n{end}{after}")


def _rates(cells: Sequence[Cell]) -> list[str]:
    """The table of both error rates and of the coverage, by kind of data."""
    head = ["data", "good answers blocked", "corrupted runs: wrong and usable"]
    head += ["intervals hold, sound runs", "intervals hold, all usable answers"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, parts in _PARTS.items():
        group = [cell for cell in cells if cell.part in parts]
        if not group:
            continue
        good = [cell for cell in group if cell.is_good]
        corrupted = [cell for cell in group if not cell.is_clean]
        usable = [cell for cell in group if cell.trusted]
        entries = (
            share(good, _blocked),
            share(corrupted, lambda cell: cell.trusted and cell.is_bad),
            share([cell for cell in usable if cell.is_clean], _held),
            share(usable, _held),
        )
        lines.append(f"| {name} | {' | '.join(entries)} |")
    return lines


def markdown(cells: Sequence[Cell]) -> list[str]:
    """The lines of the table: what became of each corruption in each group of worlds."""
    groups = {
        "friction of a law": [c for c in cells if c.world in LAW_WORLDS],
        "other friction": [c for c in cells if c.world not in (*LAW_WORLDS, "real")],
        "real recordings": [c for c in cells if c.world == "real"],
    }
    groups = {name: group for name, group in groups.items() if group}
    lines = [f"| signal | corruption | {' | '.join(groups)} |", "|---|---|" + "---|" * len(groups)]
    signals = {"tracking": "joints, tracked", "wrist": "wrist"}
    order = ("joints", *signals.values())
    rows = dict.fromkeys((signals.get(c.part, "joints"), c.corruption) for c in cells)
    for signal, kind in sorted(rows, key=lambda row: order.index(row[0])):
        entries = []
        for group in groups.values():
            mine = [
                c for c in group if signals.get(c.part, "joints") == signal and c.corruption == kind
            ]
            entries.append(_entry(mine))
        lines.append(f"| {signal} | {kind} | {' | '.join(entries)} |")
    return lines


def _entry(cells: Sequence[Cell]) -> str:
    """What became of the runs: blocked, trusted and right, trusted and wrong."""
    if not cells:
        return ""
    blocked = sum(map(_blocked, cells))
    wrong = sum(cell.trusted and cell.is_bad for cell in cells)
    return f"{len(cells) - blocked - wrong} / {blocked} / {wrong}"
