"""Building a store: workers reduce logs that are new, and their rows are written."""

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
from steelyard.fleet._rows import KnownLog, LogRow
from steelyard.fleet._store import Store

_MIN_LOGS_PER_CORE = 8  # fewer are done before a cluster has started
_STAT_THREADS = 16  # which ask a file system for the state of files
_MAX_LOGS_PER_TASK = 8
_MIN_TASKS = 64  # before a task gets several logs
_PROGRESS_INTERVAL_S = 1.0


class Build:
    """Reduces the logs of a catalogue into a store.

    A log is not read where the file system describes its file as it did last time. Otherwise a
    worker reads it, and reduces it if its content differs from the digest in the store. A task is a
    few logs of one arm; this process writes their rows as they arrive. A run that is stopped loses
    only unfinished tasks, and the next run continues. If a task kills its workers, its logs are
    retried one by one, so that only the faulty ones fail.

    Args:
        store: receives the rows
        reductions: by model
        entries: of the catalogue
    """

    def __init__(
        self, store: Store, reductions: Mapping[str, Reduction], entries: Sequence[Entry]
    ) -> None:
        self._store = store
        self._reductions = reductions
        self._entries = entries
        self._contents = {name: each.to_arrays() for name, each in reductions.items()}
        robots = sorted({entry.robot for entry in entries} & set(store.robots))
        self._known = {log.key: log for log in store.rows(KnownLog, robots)}
        self._last_stamps = store.stamps

    def run(
        self, scheduler: str | None, workers: int | None, progress: Progress | None
    ) -> Counter[str]:
        """Reduces what is new; returns how many logs are new, changed, unchanged and failed.

        Args:
            scheduler: address of a Dask cluster; the cores of this machine by default
            workers: number of processes on this machine; by default the number of cores, or one
                where few logs are new
            progress: called with the completed share and a message
        """
        with ThreadPoolExecutor(_STAT_THREADS) as pool:
            states = pool.map(_stamp, self._entries)
            paths = (entry.path for entry in self._entries)
            stamps = dict(zip(paths, states, strict=True))
        todo = [entry for entry in self._entries if not self._is_done(entry, stamps[entry.path])]
        few = len(todo) < _MIN_LOGS_PER_CORE * (os.cpu_count() or 1)
        if scheduler is None and workers is None and few:
            workers = 1
        done_stamps = {
            path: stamp for path, stamp in self._last_stamps.items() if stamps.get(path) == stamp
        }
        unchanged = len(self._entries) - len(todo)
        counts = Counter({"new": 0, "changed": 0, "failed": 0, "unchanged": unchanged})
        touched = set()
        try:
            for entry, outcome in self._reduced(todo, scheduler, workers, progress):
                counts[outcome] += 1
                if outcome != "failed":
                    done_stamps[entry.path] = stamps[entry.path]
                if outcome != "unchanged":
                    touched.add(entry.robot)
        finally:
            self._store.stamp(done_stamps)
        for robot in sorted(touched):
            self._store.combine(robot)
        return counts

    def _reduced(
        self,
        todo: Sequence[Entry],
        scheduler: str | None,
        workers: int | None,
        progress: Progress | None,
    ) -> Iterator[tuple[Entry, str]]:
        """Each log once its row is stored, with the outcome."""
        if not todo:
            return
        began = time.monotonic()
        reported = began
        done = 0
        retried: list[tuple[Entry, ...]] = []
        with engine(scheduler, workers) as here:
            for batches in (_batches(todo), retried):
                for entries, rows in here.each(reduce_logs, map(self._task, batches)):
                    if isinstance(rows, Exception) and len(entries) > 1:
                        retried += [(entry,) for entry in entries]
                        continue
                    yield from self._added(entries, rows)
                    done += len(entries)
                    now = time.monotonic()
                    due = now - reported > _PROGRESS_INTERVAL_S or done == len(todo)
                    if progress is not None and due:
                        reported = now
                        rate = done / max(now - began, 1e-9)
                        words = f"{done} of {len(todo)} logs, {rate:.3g} files per second"
                        progress(done / len(todo), words)

    def _task(self, entries: tuple[Entry, ...]) -> tuple[Any, ...]:
        """The arguments of `reduce_logs` for some logs of one arm."""
        model = entries[0].model
        digests = [self._known_digest(entry) for entry in entries]
        return entries, self._reductions[model].key, self._contents[model], digests

    def _added(
        self, entries: Sequence[Entry], rows: list[LogRow | None] | Exception
    ) -> list[tuple[Entry, str]]:
        """Stores the rows of logs; returns the outcome of each."""
        if isinstance(rows, Exception):
            key = self._reductions[entries[0].model].key
            reason = f"it killed its workers: {rows}"
            rows = [failed_row(entry, key, reason) for entry in entries]
        if new := [row for row in rows if row is not None]:
            self._store.add(new)
        pairs = zip(entries, rows, strict=True)
        return [(entry, self._outcome(entry, row)) for entry, row in pairs]

    def _outcome(self, entry: Entry, row: LogRow | None) -> str:
        if row is None:
            return "unchanged"
        if not row.ok:
            return "failed"
        if entry.key in self._known:
            return "changed"
        return "new"

    def _is_done(self, entry: Entry, stamp: str) -> bool:
        """Whether the store has the row of a log, and its file has not changed since."""
        return bool(stamp) and self._last_stamps.get(entry.path) == stamp and self._matches(entry)

    def _known_digest(self, entry: Entry) -> str:
        """The digest of the content whose matching row is in the store; empty without one."""
        if self._matches(entry):
            return self._known[entry.key].content
        return ""

    def _matches(self, entry: Entry) -> bool:
        """Whether the store has a row of a log with the same reduction, load, tool and time."""
        known = self._known.get(entry.key)
        if known is None or known.reduction != self._reductions[entry.model].key:
            return False
        if known.load != entry.load or known.tool != entry.tool:
            return False
        return entry.time is None or known.time == entry.time


def _batches(entries: Sequence[Entry]) -> list[tuple[Entry, ...]]:
    """Logs of one arm and one model, a few at a time, so that every worker has a task."""
    size = min(max(len(entries) // _MIN_TASKS, 1), _MAX_LOGS_PER_TASK)
    arms = defaultdict[tuple[str, str], list[Entry]](list)
    for entry in entries:
        arms[entry.robot, entry.model].append(entry)
    return [tuple(logs[i : i + size]) for logs in arms.values() for i in range(0, len(logs), size)]


def _stamp(entry: Entry) -> str:
    """The state of a file as a digest of its file system; empty where there is none."""
    fs, path = filesystem(entry.path)
    try:
        return str(fs.ukey(path))
    except (OSError, NotImplementedError):
        return ""
