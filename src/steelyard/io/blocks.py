"""A long recording in blocks that overlap, in constant memory.

Block k answers for the times from k block_s up to (k+1) block_s since the first row, its core, and carries
overlap_s more on both sides where there are rows: what a zero-phase filter spoils at its ends lies in the
overlap and is cut off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from steelyard.errors import UnreadableFile
from steelyard.io.layout import Layout, Piece
from steelyard.recording import Recording


@dataclass(frozen=True)
class Cutter:
    """Where the blocks lie.

    Attributes:
        block_s: length of a core, [s]
        overlap_s: what a block has more on either side, [s]
    """

    block_s: float
    overlap_s: float

    def core(self, k: int) -> tuple[float, float]:
        """First time of a core, and the first after it, [s] since the first row.

        Args:
            k: number of the block, from 0
        """
        return k * self.block_s, (k + 1) * self.block_s

    def reach(self, k: int) -> tuple[float, float]:
        """First and last time that a block may hold, [s] since the first row.

        Args:
            k: number of the block, from 0
        """
        start, end = self.core(k)
        return start - self.overlap_s, end + self.overlap_s


def cut(pieces: Iterable[Piece], layout: Layout, cutter: Cutter, *, place: str) -> Iterator[Recording]:
    """The blocks of rows that come in pieces; a block without rows in its core is passed over.

    Args:
        pieces: the rows, in their order
        layout: what is known beside the numbers
        cutter: where the blocks lie
        place: the file, for messages
    """
    source = iter(pieces)
    first = next(source, None)
    if first is None:
        raise UnreadableFile(f"{place}: it has columns, but no rows; nothing was recorded")
    start = float(first["t"][0])
    epoch_s = float(layout.facts.get("epoch_s", 0.0)) + start
    layout = replace(layout, facts={**layout.facts, "epoch_s": epoch_s})
    held: list[Piece] = []
    k = 0
    for piece in _forward(chain([first], source), place):
        held.append({**piece, "t": piece["t"] - start})
        while held[-1]["t"][-1] > cutter.reach(k)[1]:
            yield from _block(held, layout, cutter, k=k, place=place)
            k, held = _onward(held, cutter, k)
    while cutter.core(k)[0] <= held[-1]["t"][-1]:
        yield from _block(held, layout, cutter, k=k, place=place)
        k, held = _onward(held, cutter, k)


def _block(held: list[Piece], layout: Layout, cutter: Cutter, *, k: int, place: str) -> Iterator[Recording]:
    """Block k as the only one, or none where its core has no rows."""
    start, end = cutter.core(k)
    if all(np.searchsorted(piece["t"], start) == np.searchsorted(piece["t"], end) for piece in held):
        return
    first, last = cutter.reach(k)
    rows = [(np.searchsorted(p["t"], first, "left"), np.searchsorted(p["t"], last, "right")) for p in held]
    parts = [{name: values[i:j] for name, values in p.items()} for p, (i, j) in zip(held, rows, strict=True)]
    block = {name: np.concatenate([part[name] for part in parts]) for name in held[0]}
    yield layout.recording(block, f"{place}, block from {start:g} s")


def _onward(held: list[Piece], cutter: Cutter, k: int) -> tuple[int, list[Piece]]:
    """The next block with rows in its core, and the pieces that it or a later one needs."""
    after = cutter.core(k)[1]
    following = next((p["t"][np.searchsorted(p["t"], after)] for p in held if p["t"][-1] >= after), after)
    k = max(k + 1, int(following // cutter.block_s))
    kept = [piece for piece in held if piece["t"][-1] >= cutter.reach(k)[0]]
    return k, kept or held[-1:]


def _forward(pieces: Iterable[Piece], place: str) -> Iterator[Piece]:
    """The same pieces, once it is sure that time goes forward within and between them."""
    before, rows = -np.inf, 0
    for piece in pieces:
        t = piece["t"]
        bad = np.flatnonzero(~(np.diff(t, prepend=before) >= 0) | ~np.isfinite(t))
        if bad.size:
            raise UnreadableFile(
                f"{place}: time goes back or is not a number in row {rows + bad[0] + 1}: {t[bad[0]]:.6f} s;"
                " sort the rows or split the file there"
            )
        before, rows = float(t[-1]), rows + len(t)
        yield piece
