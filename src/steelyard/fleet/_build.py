"""Logs on their way into a store: what is new is handed out to workers, and their rows are written."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from steelyard._computing import Progress
from steelyard.fleet._catalogue import Entry, filesystem
from steelyard.fleet._engine import engine
from steelyard.fleet._reduce import Reduction, failed_row, reduce_logs
from steelyard.fleet._store import Store

_FEW = 8  # logs for each core: they are done before a cluster has started
_LOOKERS = 16  # threads that ask a file system about files
_TOGETHER = 8
_TASKS = 64  # logs of a task at most, and tasks at least before one has several logs
_TELL_S = 1.0


class Build:
    """Logs on their way into a store.

    A log whose file is as the file system last described it is not read. Any other is read by a
    worker, which compares its content with the digest in the store before it reduces it. A task is
    a few logs of one arm; their rows are written here as they come: a run that is stopped loses
    what its workers had in hand, and the next one goes on. Where no worker survives a task, its
    logs are tried one by one: bad ones fail alone.

    Args:
        store: where rows go
        ways: how the logs of each model are reduced
        entries: of the catalogue
    """

    def __init__(
        self, store: Store, ways: Mapping[str, Reduction], entries: Sequence[Entry]
    ) -> None:
        self._store = store
        self._ways = ways
        self._entries = entries
        self._contents = {name: way.to_dict() for name, way in ways.items()}
        robots = sorted({entry.robot for entry in entries} & set(store.robots))
        rows = store.rows(("content", "reduction", "load", "tool"), robots).to_pylist()
        self._known = {row["key"]: row for row in rows}
        self._before = store.stamps

    def run(
        self, scheduler: str | None, workers: int | None, progress: Progress | None
    ) -> Counter[str]:
        """Reduces what is new; how many logs are new, changed, unchanged and failed.

        Args:
            scheduler: address of a Dask cluster; the cores of this machine by default
            workers: how many processes here; as many as cores by default, one where few logs are
                new
            progress: called with the share that is done and words
        """
        with ThreadPoolExecutor(_LOOKERS) as pool:
            stamps = dict(
                zip((e.path for e in self._entries), pool.map(_stamp, self._entries), strict=True)
            )
        todo = [entry for entry in self._entries if not self._is_done(entry, stamps[entry.path])]
        if scheduler is None and workers is None and len(todo) < _FEW * (os.cpu_count() or 1):
            workers = 1
        seen = {path: stamp for path, stamp in self._before.items() if stamps.get(path) == stamp}
        counts = Counter(
            {"new": 0, "changed": 0, "failed": 0, "unchanged": len(self._entries) - len(todo)}
        )
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
        self,
        todo: Sequence[Entry],
        scheduler: str | None,
        workers: int | None,
        progress: Progress | None,
    ) -> Iterator[tuple[Entry, str]]:
        """Each log as its row has come into the store, and what became of it."""
        if not todo:
            return
        began = said = time.monotonic()
        done = 0
        alone = list[tuple[Entry, ...]]()
        with engine(scheduler, workers) as here:
            for batches in (_batches(todo), alone):
                for entries, rows in here.each(reduce_logs, map(self._task, batches)):
                    if isinstance(rows, Exception) and len(entries) > 1:
                        alone += [(entry,) for entry in entries]
                        continue
                    yield from self._added(entries, rows)
                    done = done + len(entries)
                    now = time.monotonic()
                    if progress is not None and (now - said > _TELL_S or done == len(todo)):
                        said = now
                        rate = done / max(now - began, 1e-9)
                        progress(
                            done / len(todo),
                            f"{done} of {len(todo)} logs, {rate:.3g} files per second",
                        )

    def _task(self, entries: tuple[Entry, ...]) -> tuple[Any, ...]:
        """What `reduce_logs` needs for some logs of one arm."""
        model = entries[0].model
        known = [self._content(entry) for entry in entries]
        return entries, self._ways[model].key, self._contents[model], known

    def _added(
        self, entries: Sequence[Entry], rows: list[dict[str, Any] | None] | Exception
    ) -> list[tuple[Entry, str]]:
        """Writes the rows of logs, and says what became of each."""
        if isinstance(rows, Exception):
            way = self._ways[entries[0].model]
            rows = [
                failed_row(entry, way.key, f"no worker survived it: {rows}") for entry in entries
            ]
        if new := [row for row in rows if row is not None]:
            self._store.add(new)
        return [(entry, self._fate(entry, row)) for entry, row in zip(entries, rows, strict=True)]

    def _fate(self, entry: Entry, row: dict[str, Any] | None) -> str:
        """What became of a log."""
        if row is None:
            return "unchanged"
        if not row["ok"]:
            return "failed"
        if entry.key in self._known:
            return "changed"
        return "new"

    def _is_done(self, entry: Entry, stamp: str) -> bool:
        """Whether the store has the row of a log, and the file is as it was then."""
        return bool(stamp) and self._before.get(entry.path) == stamp and self._alike(entry)

    def _content(self, entry: Entry) -> str:
        """The digest of the content that the store has a row of, made in the same way."""
        if self._alike(entry):
            return str(self._known[entry.key]["content"])
        return ""

    def _alike(self, entry: Entry) -> bool:
        """Whether the store has a row of a log that says the same of it."""
        row = self._known.get(entry.key)
        if row is None or row["reduction"] != self._ways[entry.model].key:
            return False
        same = row["load"] == entry.load and row["tool"] == entry.tool
        return same and (entry.time is None or row["time"] == entry.time)


def _batches(entries: Sequence[Entry]) -> list[tuple[Entry, ...]]:
    """Logs of one arm and one model, a few at a time, so that there is a task for everyone."""
    size = min(max(len(entries) // _TASKS, 1), _TOGETHER)
    arms = defaultdict[tuple[str, str], list[Entry]](list)
    for entry in entries:
        arms[entry.robot, entry.model].append(entry)
    return [tuple(of[i : i + size]) for of in arms.values() for i in range(0, len(of), size)]


def _stamp(entry: Entry) -> str:
    """What the file system says of a file, as a digest; empty where it says nothing."""
    fs, path = filesystem(entry.path)
    try:
        return str(fs.ukey(path))
    except (OSError, NotImplementedError):
        return ""
