"""Building a store: which logs are new, and their way into it.

A log whose file is as the file system last described it is not read. Any other is read by a worker, which
compares its content with the digest in the store before it reduces it. Rows are written here, one by one, as
they come: a run that is stopped loses what its workers had in hand, and the next one goes on.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from steelyard.computing import Progress
from steelyard.fleet.catalogue import Entry, filesystem
from steelyard.fleet.engine import engine
from steelyard.fleet.reduce import Reduction, failed_row, reduce_log
from steelyard.fleet.store import Store

_FEW = 8  # logs for each core: they are done before a cluster has started
_LOOKERS = 16  # threads that ask a file system about files
_TELL_S = 1.0


class Build:
    """Logs on their way into a store.

    Args:
        store: which they go into
        ways: how logs of each model become factors
        entries: of the catalogue
    """

    def __init__(self, store: Store, ways: Mapping[str, Reduction], entries: Sequence[Entry]) -> None:
        self._store, self._ways, self._entries = store, ways, entries
        robots = sorted({entry.robot for entry in entries} & set(store.robots))
        rows = store.rows(("content", "reduction", "load", "tool"), robots).to_pylist()
        self._known = {row["key"]: row for row in rows}
        self._before = store.stamps

    def run(self, scheduler: str | None, workers: int | None, progress: Progress | None) -> Counter[str]:
        """Reduces what is new; how many logs are new, changed, unchanged and failed.

        Args:
            scheduler: address of a cluster; this machine by default
            workers: how many processes here
            progress: called with the share that is done and words
        """
        with ThreadPoolExecutor(_LOOKERS) as pool:
            stamps = dict(zip((e.path for e in self._entries), pool.map(_stamp, self._entries), strict=True))
        todo = [entry for entry in self._entries if not self._is_done(entry, stamps[entry.path])]
        if scheduler is None and workers is None and len(todo) < _FEW * (os.cpu_count() or 1):
            workers = 1
        seen = {path: stamp for path, stamp in self._before.items() if stamps.get(path) == stamp}
        counts = Counter({"new": 0, "changed": 0, "failed": 0, "unchanged": len(self._entries) - len(todo)})
        touched = set()
        try:
            for entry, what in self._reduced(todo, scheduler, workers, progress):
                counts[what] += 1
                if what != "failed":
                    seen[entry.path] = stamps[entry.path]
                if what != "unchanged":
                    touched.add(entry.robot)
        finally:
            self._store.stamp(seen)
        for robot in sorted(touched):
            self._store.tidy(robot)
        return counts

    def _reduced(
        self, todo: Sequence[Entry], scheduler: str | None, workers: int | None, progress: Progress | None
    ) -> Iterator[tuple[Entry, str]]:
        """Each log as its row has come into the store, and what became of it."""
        if not todo:
            return
        contents = {name: way.to_dict() for name, way in self._ways.items()}
        tasks = ((e, self._ways[e.model].key, contents[e.model], self._content(e)) for e in todo)
        began = said = time.monotonic()
        with engine(scheduler, workers) as here:
            for done, (entry, row) in enumerate(here.each(reduce_log, tasks), start=1):
                yield entry, self._added(entry, row)
                now = time.monotonic()
                if progress is not None and (now - said > _TELL_S or done == len(todo)):
                    said, rate = now, done / max(now - began, 1e-9)
                    progress(done / len(todo), f"{done} of {len(todo)} logs, {rate:.3g} files per second")

    def _added(self, entry: Entry, row: dict[str, Any] | Exception | None) -> str:
        """Writes the row of a log, and says what became of it."""
        if row is None:
            return "unchanged"
        if isinstance(row, Exception):
            row = failed_row(entry, self._ways[entry.model].key, f"no worker survived it: {row}")
        self._store.add(row)
        return "failed" if not row["ok"] else "changed" if entry.key in self._known else "new"

    def _is_done(self, entry: Entry, stamp: str) -> bool:
        """Whether the store has the row of a log, and the file is as it was then."""
        return bool(stamp) and self._before.get(entry.path) == stamp and self._alike(entry)

    def _content(self, entry: Entry) -> str:
        """The digest of the content that the store has a row of, made in the same way."""
        return str(self._known[entry.key]["content"]) if self._alike(entry) else ""

    def _alike(self, entry: Entry) -> bool:
        """Whether the store has a row of a log that says the same of it."""
        row = self._known.get(entry.key)
        if row is None or row["reduction"] != self._ways[entry.model].key:
            return False
        same = row["load"] == entry.load and row["tool"] == entry.tool
        return same and (entry.time is None or row["time"] == entry.time)


def _stamp(entry: Entry) -> str:
    """What the file system says of a file, as a digest; empty where it says nothing."""
    fs, path = filesystem(entry.path)
    try:
        return str(fs.ukey(path))
    except (OSError, NotImplementedError):
        return ""
