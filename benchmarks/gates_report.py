"""The tables of `bench_gates.py`: both error rates, corruptions, worlds and doubts."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from gates_cells import Cell, Share, good_blocked, wrong_and_usable, wrong_that_are_usable

from steelyard._units import NORMAL_95

LAW_WORLD = "law"
REAL = "real"
START = "<!-- bench of gates: written by benchmarks/bench_gates.py -->"
END = "<!-- end of the bench of gates -->"
_RATES_PER_TABLE = 2  # wider tables have lines that are too long
_DATA = {
    "joints in a batch": ("torque", "sound", "empty", "currents"),
    "joints, tracked": ("tracking",),
    "wrist sensor": ("wrist",),
    "real": ("real",),
}
_SIGNALS = {"tracking": "joints, tracked", "wrist": "wrist"}


# --- on a screen


def print_report(cells: Sequence[Cell]) -> None:
    """Prints the tables of both error rates."""
    print(f"{len(cells)} cells, {sum(cell.seconds for cell in cells):.0f} s of processor time")
    groups = {"everything": list(cells)}
    for name in ("part", "world"):
        for value in _values(cells, name):
            groups[f"{name} {value}"] = [c for c in cells if getattr(c, name) == value]
    for name, group in groups.items():
        print(f"\n{name}")
        for words, entry in _rates(group).items():
            print(f"  {words:45} {entry}")
    print("\ncorruption: right / blocked / wrong and usable")
    for kind in _values(cells, "corruption"):
        print(f"  {kind:40} {_outcomes([c for c in cells if c.corruption == kind])}")
    print()
    print("\n".join(_doubts(cells)))
    _print_errors(cells)


def _print_errors(cells: Sequence[Cell]) -> None:
    print("\nerrors")
    for cell in cells:
        if not (cell.is_wrong_and_usable or (cell.is_good and not cell.trusted)):
            continue
        what = "BLOCKED" if cell.is_good else "USABLE"
        numbers = f"{cell.mass:.4g} +- {cell.half:.2g} for {cell.truth:.4g} kg"
        centre = f"centre {cell.centre_ratio:.1f} half-widths off"
        reason = cell.refused or cell.words or ",".join(cell.aside)
        where = f"{cell.place} {cell.part} {cell.way} {cell.corruption}"
        print(f"  {what} {where}: {numbers}, {centre}; {reason}")


# --- in a document


def write_markdown(cells: Sequence[Cell], path: Path) -> None:
    """Writes all tables between the marks of a document, or as a file of its own."""
    write_between(path, START, END, markdown(cells))


def write_between(path: Path, start: str, end: str, lines: Sequence[str]) -> None:
    """Writes lines between two marks of a document, or as a file of their own.

    Raises:
        ValueError: the document has not both marks
    """
    text = "\n".join(lines)
    if not path.exists():
        path.write_text(text + "\n")
        return
    before, found_start, rest = path.read_text().partition(start)
    _, found_end, after = rest.partition(end)
    if not (found_start and found_end):
        raise ValueError(f"{path} has no place for the table: put {start} and {end} there")
    path.write_text(f"{before}{start}\n{text}\n{end}{after}")


def markdown(cells: Sequence[Cell]) -> list[str]:
    """The lines of all tables of the document."""
    tables = (_rate_tables(cells), _world_table(cells), _doubts(cells), _corruptions(cells))
    lines = [_seeds(cells), ""]
    for table in tables:
        lines += [*table, ""]
    return lines[:-1]


def _seeds(cells: Sequence[Cell]) -> str:
    """The seeds of each kind of data, in a sentence; neighbours without a gap."""
    parts = []
    for name, mine in _DATA.items():
        seeds = [cell.seed for cell in cells if cell.part in mine and cell.world != REAL]
        if not seeds:
            continue
        first = min(seeds)
        last = max(seeds)
        span = f"{first} to {last}" if last > first else f"{first}"
        parts.append(f"{span} ({name})")
    return f"Seeds: {', '.join(parts)}."


def _rate_tables(cells: Sequence[Cell]) -> list[str]:
    """Both error rates, coverage and widths, for two kinds of data in each table."""
    groups = {}
    for name, parts in _DATA.items():
        mine = [cell for cell in cells if cell.part in parts]
        if name == "wrist sensor" or name == "real":
            groups[name] = mine
            continue
        groups[f"{name}, friction of a law"] = [c for c in mine if c.world == LAW_WORLD]
        groups[f"{name}, other friction"] = [c for c in mine if c.world != LAW_WORLD]
    columns = [(name, _rates(group)) for name, group in groups.items() if group]
    lines: list[str] = []
    for first in range(0, len(columns), _RATES_PER_TABLE):
        some = dict(columns[first : first + _RATES_PER_TABLE])
        if lines:
            lines.append("")
        lines += _head(["share of answers", *some])
        rows = next(iter(some.values()))
        lines += [_row([row, *(column[row] for column in some.values())]) for row in rows]
    return lines


def _rates(group: Sequence[Cell]) -> dict[str, str]:
    """Shares and widths of some answers, in words."""
    usable = [cell for cell in group if cell.trusted]
    sound = [cell for cell in usable if cell.is_clean]
    good = [cell for cell in group if cell.is_good]
    clean = [cell for cell in group if cell.is_clean]
    corrupted = [cell for cell in group if not cell.is_clean]
    wrong = [cell for cell in corrupted if cell.is_bad]
    wrong_in_use = [cell for cell in corrupted if cell.is_wrong_and_usable]
    return {
        "good answers: blocked": str(good_blocked(group)),
        "good answers: to use with care": str(Share.of(good, _needs_care)),
        "sound runs: wrong and usable": str(Share.of(clean, _is_wrong_and_usable)),
        "corrupted runs: wrong and usable": str(wrong_and_usable(group)),
        "of wrong answers to them": str(wrong_that_are_usable(group)),
        "of these, with care": f"{sum(map(_needs_care, wrong_in_use))} of {len(wrong_in_use)}",
        "corrupted runs: wrong, usable, without care": str(
            Share.of(corrupted, lambda cell: cell.is_wrong_and_usable and not cell.needs_care)
        ),
        "wrong answers: by their centre alone": str(Share.of(wrong, _only_centre_is_wrong)),
        "mass inside, sound runs": str(Share.of(sound, _holds_mass)),
        "mass inside, all usable answers": str(Share.of(usable, _holds_mass)),
        "coordinates of the centre inside, sound runs": _centre_share(sound),
        "coordinates of the centre inside, all usable answers": _centre_share(usable),
        "median half-width, sound runs": _median_half(sound),
        "RMS error over standard deviation, sound runs": _rms(sound),
    }


def _world_table(cells: Sequence[Cell]) -> list[str]:
    """Both error rates of joint torques in a batch, for each world."""
    mine = [cell for cell in cells if cell.part in ("torque", "sound", "empty", "currents")]
    if not mine:
        return []
    head = ["friction (joints in a batch)", "good answers blocked"]
    head += ["corrupted runs: wrong and usable", "median half-width, sound runs"]
    lines = _head(head)
    for world in _values(mine, "world"):
        group = [cell for cell in mine if cell.world == world]
        sound = [cell for cell in group if cell.trusted and cell.is_clean]
        rates = (str(good_blocked(group)), str(wrong_and_usable(group)))
        lines.append(_row([world, *rates, _median_half(sound)]))
    return lines


def _doubts(cells: Sequence[Cell]) -> list[str]:
    """How often each doubt blocks good answers, and how often it catches wrong ones."""
    good = [cell for cell in cells if cell.is_good]
    wrong = [cell for cell in cells if cell.is_bad]
    blocks = Counter(kind for cell in good for kind in cell.blocking)
    catches = Counter(kind for cell in wrong for kind in cell.blocking)
    alone = Counter(cell.blocking[0] for cell in wrong if len(cell.blocking) == 1)
    lines = _head(
        [
            "doubt",
            f"blocks good answers, of {len(good)}",
            f"blocks wrong answers, of {len(wrong)}",
            "of these, as the only doubt",
        ]
    )
    for kind in sorted({*blocks, *catches}):
        lines.append(_row([f"`{kind}`", str(blocks[kind]), str(catches[kind]), str(alone[kind])]))
    refused = [cell for cell in cells if cell.refused]
    counts = (sum(c.is_good for c in refused), sum(c.is_bad for c in refused))
    lines.append(_row(["refused with an error", *map(str, counts), str(counts[1])]))
    return lines


def _corruptions(cells: Sequence[Cell]) -> list[str]:
    """What became of each corruption in each group of worlds."""
    groups = {
        "friction of a law": [c for c in cells if c.world == LAW_WORLD],
        "other friction": [c for c in cells if c.world not in (LAW_WORLD, REAL)],
        "real recordings": [c for c in cells if c.world == REAL],
    }
    groups = {name: group for name, group in groups.items() if group}
    lines = _head(["signal", "corruption", *groups])
    order = ("joints", *_SIGNALS.values())
    rows = dict.fromkeys((_signal(cell), cell.corruption) for cell in cells)
    for signal, kind in sorted(rows, key=lambda row: (order.index(row[0]), row[1] != "clean")):
        entries = [
            _outcomes([c for c in group if _signal(c) == signal and c.corruption == kind])
            for group in groups.values()
        ]
        lines.append(_row([signal, kind, *entries]))
    return lines


def _signal(cell: Cell) -> str:
    """What a cell was weighed from; a real wrist sensor is named by its way."""
    if cell.part == REAL and cell.way.startswith("wrist"):
        return "wrist"
    if cell.part == REAL and cell.way.startswith("tracking"):
        return "joints, tracked"
    return _SIGNALS.get(cell.part, "joints")


def _outcomes(cells: Sequence[Cell]) -> str:
    """Answers that are usable and not wrong, blocked ones, and usable wrong ones."""
    if not cells:
        return ""
    blocked = sum(not cell.trusted for cell in cells)
    wrong = sum(cell.is_wrong_and_usable for cell in cells)
    return f"{len(cells) - blocked - wrong} / {blocked} / {wrong}"


def _head(columns: Sequence[str]) -> list[str]:
    return [_row(columns), "|---" * len(columns) + "|"]


def _row(entries: Sequence[str]) -> str:
    return "| " + " | ".join(entries) + " |"


# --- shares


def _needs_care(cell: Cell) -> bool:
    return cell.needs_care


def _is_wrong_and_usable(cell: Cell) -> bool:
    return cell.is_wrong_and_usable


def _holds_mass(cell: Cell) -> bool:
    return cell.ratio <= 1


def _only_centre_is_wrong(cell: Cell) -> bool:
    return not cell.refused and cell.ratio <= 2


def _centre_share(cells: Sequence[Cell]) -> str:
    """Coordinates inside their intervals; the three of an answer are correlated."""
    coordinates = [x for cell in cells for x in cell.centre]
    if not coordinates:
        return ""
    inside = sum(abs(x) <= 1 for x in coordinates)
    return f"{inside} of {len(coordinates)} = {100 * inside / len(coordinates):.1f} %"


def _median_half(cells: Sequence[Cell]) -> str:
    """Median half-widths of mass and centre."""
    if not cells:
        return ""
    mass = 100 * statistics.median(cell.half / cell.truth for cell in cells)
    centre = 1e3 * statistics.median(cell.centre_half for cell in cells)
    return f"{mass:.1f} %, {centre:.0f} mm"


def _rms(cells: Sequence[Cell]) -> str:
    if not cells:
        return ""
    return f"{statistics.fmean((NORMAL_95 * cell.ratio) ** 2 for cell in cells) ** 0.5:.2f}"


def _values(cells: Sequence[Cell], name: str) -> list[str]:
    return list(dict.fromkeys(str(getattr(cell, name)) for cell in cells))
