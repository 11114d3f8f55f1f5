"""The fleet: logs reduced into a store, and what the store says of each arm.

catalogue -> factors, once for each log -> models of empty arms -> payload and state of each log -> changes
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.computing import Progress
from steelyard.errors import InvalidSamples
from steelyard.fleet.arms import (
    Arm,
    agreement,
    clashes,
    leaves,
    merge,
    merge_packed,
    payloads,
    trend,
)
from steelyard.fleet.catalogue import Entry, filesystem, read_catalogue
from steelyard.fleet.engine import Engine, engine
from steelyard.fleet.estimate import arm_model
from steelyard.fleet.reduce import Reduction, failed_row, reduce_logs
from steelyard.fleet.store import Store, writing
from steelyard.fleet.trend import Trends
from steelyard.identification import DynamicModel, RegressionFactor
from steelyard.recording import Preparation
from steelyard.saved import write_text

if TYPE_CHECKING:
    import pyarrow as pa

_LIGHT = (
    *("start_s", "end_s", "duration_s", "rate_hz", "tool", "load", "temperature", "ok", "reason", "warnings"),
    *("content", "reduction", "from_currents", "rows", "noise", "widening", "torque"),
)
_ROUNDS = 8
_FEW = 8  # logs for each core: they are done before a cluster has started
_TOGETHER, _TASKS = 8, 64  # logs of a task at most, and tasks at least before one has several logs
_LOOKERS = 16  # threads that ask a file system about files
_TELL_S = 1.0


class Fleet:
    """The logs of many arms, reduced; models, payloads and changes come from the reduced logs alone.

    Attributes:
        built: how many logs were new, changed, unchanged and failed where the fleet was built just now

    Args:
        store: folder that `Fleet.build` made
        scheduler: address of a Dask cluster, as tcp://host:8786; the cores of this machine by default
        workers: how many processes here; as many as cores by default, one is this process itself
    """

    def __init__(
        self, store: str | Path, *, scheduler: str | None = None, workers: int | None = None
    ) -> None:
        self._store = Store(store)
        self._scheduler, self._workers = scheduler, workers
        self.built: Counter[str] = Counter()

    @classmethod
    def build(
        cls,
        catalogue: str | Path,
        store: str | Path,
        *,
        model: str | None = None,
        friction: str | None = None,
        preparation: Preparation | None = None,
        scheduler: str | None = None,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Fleet:
        """The fleet of a catalogue; only logs that are new or have changed are read.

        Args:
            catalogue: a table, a folder or a pattern, see docs/fleet.md
            store: folder of the fleet, made where there is none
            model: of the arms, where the catalogue does not say
            friction: name of a law, instead of those of the arms
            preparation: how logs become samples, instead of those of the arms
            scheduler: address of a Dask cluster
            workers: how many processes here
            progress: called with the share that is done and words
        """
        entries = read_catalogue(str(catalogue), model=model)
        ways = {
            name: Reduction.of(name, friction=friction, preparation=preparation)
            for name in dict.fromkeys(entry.model for entry in entries)
        }
        place = Store(store, make=True)
        for way in ways.values():
            place.keep(way)
        fleet = cls(store, scheduler=scheduler, workers=workers)
        fleet.built = _Build(place, ways, entries).run(scheduler, workers, progress)
        return fleet

    @property
    def robots(self) -> list[str]:
        """Names of the arms."""
        return self._store.robots

    @property
    def logs(self) -> pa.Table:
        """One row for each log, without its factor: what it is, whether it is of use, and why not."""
        return self._store.rows(_LIGHT)

    @property
    def clashes(self) -> list[str]:
        """Logs of one arm at the same time, and contents that are there twice, in words."""
        return clashes(self._store.rows(_LIGHT).to_pylist())

    def model(self, robot: str) -> DynamicModel | None:
        """The model of an arm; None where it has not been identified."""
        return self._store.model(robot)

    def identify(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        progress: Progress | None = None,
    ) -> dict[str, DynamicModel]:
        """The model of each arm from its empty logs, kept in the store too; arms without any are missing.

        Logs that contradict the others of their arm are left out, and named in the verdict.

        Args:
            since: only logs that began at that time or later
            until: only logs that began before
            progress: called with the share that is done and words
        """
        chosen = {robot: keys for robot in self.robots if (keys := self._empty(robot, since, until))}
        if not chosen:
            raise InvalidSamples(
                f"{self._store.folder} has no empty logs here: they have load 0 in the catalogue (or no log"
                " of the arm has a load), and lie in the window where one is given"
            )
        arms = {robot: Arm(robot, keys) for robot, keys in chosen.items()}
        todo = sorted(arms)
        models: dict[str, DynamicModel] = {}
        with engine(self._scheduler, self._workers) as here:
            for _ in range(_ROUNDS):
                models.update(self._merge(here, [arms[robot] for robot in todo], progress))
                tasks = ((r, models[r].to_dict(), self._rows(r, arms[r].candidates)) for r in todo)
                found = list(here.each(agreement, tasks))
                todo = sorted(robot for robot, result in found if arms[robot].leave_out(_sure(result)))
                if not todo:
                    break
        self._store.folder_of("models")
        for robot, model in models.items():
            with writing(self._store.folder):
                model.save(self._store.model_path(robot))
        return dict(sorted(models.items()))

    def weigh(self, *, progress: Progress | None = None) -> pa.Table:
        """The payload of each log of the arms that have models, with standard deviations and verdict.

        Args:
            progress: called with the share that is done and words
        """
        import pyarrow as pa

        found = self._per_arm(payloads, "weighed the logs of", progress)
        return pa.Table.from_pylist([row for _, rows in sorted(found) for row in rows])

    def trend(self, *, rate: float = 0.05, progress: Progress | None = None) -> Trends:
        """Friction, offsets, gains, residuals and payload of each arm over time, and what has changed.

        Args:
            rate: of false alarms among the flagged changes of the whole fleet, at most, on average
            progress: called with the share that is done and words
        """
        if not 0 < rate < 1:
            raise InvalidSamples(f"a rate of false alarms lies between 0 and 1, got {rate:g}")
        found = self._per_arm(trend, "looked at", progress)
        return Trends([arm for _, arm in sorted(found, key=lambda each: each[0])], rate)

    def write_page(self, trends: Trends, path: str | Path) -> None:
        """Writes a page (.html) of what has changed: arms as rows, worst first, and a page for each arm.

        Args:
            trends: of `trend`
            path: of the file
        """
        from steelyard.fleet.page import fleet_html

        failed = Counter(row["robot"] for row in self._store.rows(("ok",)).to_pylist() if not row["ok"])
        with writing(Path(path).parent):
            write_text(path, fleet_html(trends, failed))

    def _merge(
        self, here: Engine, arms: Sequence[Arm], progress: Progress | None
    ) -> Iterator[tuple[str, DynamicModel]]:
        """The models of arms, by trees of their factors."""
        by_name = {arm.robot: arm for arm in arms}
        groups = ((arm.robot, leaves(self._rows(arm.robot, arm.used))) for arm in arms)
        for done, (robot, factor) in enumerate(here.trees(merge_packed, merge, groups), start=1):
            yield robot, self._fitted(by_name[robot], factor)
            _say(progress, done, len(arms), "merged the logs of")

    def _fitted(self, arm: Arm, factor: RegressionFactor) -> DynamicModel:
        """The model of an arm from the merged factor of its logs."""
        by_key = {row["key"]: row for row in self._store.rows(_LIGHT, [arm.robot]).to_pylist()}
        used = [by_key[key] for key in arm.used]
        lengths = [row["duration_s"] for row in used]
        span = f"{used[0]['file']} to {used[-1]['file']}"
        return arm_model(
            self._store.reduction(used[0]["reduction"]),
            factor,
            np.average([row["widening"] for row in used], axis=0, weights=lengths),
            made_from=[f"{len(used)} logs of {arm.robot}, {sum(lengths):.0f} s: {span}"],
            from_currents=bool(used[0]["from_currents"]),
            doubts=arm.doubts({key: row["file"] for key, row in by_key.items()}),
        )

    def _per_arm(self, work: Any, words: str, progress: Progress | None) -> Iterator[tuple[str, Any]]:
        """What some work makes of the model and the logs of each arm."""
        known = [robot for robot in self.robots if self._store.model_path(robot).exists()]
        if not known:
            raise InvalidSamples(f"no arm of {self._store.folder} has a model yet: steelyard fleet identify")
        models = ((robot, self._store.model(robot)) for robot in known)
        tasks = ((robot, model.to_dict(), self._rows(robot)) for robot, model in models if model is not None)
        with engine(self._scheduler, self._workers) as here:
            for done, (robot, result) in enumerate(here.each(work, tasks), start=1):
                _say(progress, done, len(known), words)
                yield robot, _sure(result)

    def _empty(self, robot: str, since: datetime | None, until: datetime | None) -> list[str]:
        """Keys of the empty logs of an arm: of load 0, or all where no log has a load."""
        rows = _usable(self._store.rows(_LIGHT, [robot]).to_pylist())
        stated = any(row["load"] is not None for row in rows)
        times = {row["key"]: row["time"] for row in rows if not stated or row["load"] == 0}
        if since is None and until is None:
            return list(times)
        return [
            key
            for key, began in times.items()
            if began is not None and (since is None or began >= since) and (until is None or began < until)
        ]

    def _rows(self, robot: str, keys: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """The rows of an arm that are of use, or some of them, with their factors."""
        table = self._store.rows((*_LIGHT, "factor"), [robot])
        factors = dict(zip(table["key"].to_pylist(), table["factor"], strict=True))
        wanted = set(factors if keys is None else keys)
        rows = [row for row in _usable(table.drop_columns("factor").to_pylist()) if row["key"] in wanted]
        return [{**row, "factor": factors[row["key"]].values.to_numpy()} for row in rows]


class _Build:
    """Logs on their way into a store.

    A log whose file is as the file system last described it is not read. Any other is read by a worker, which
    compares its content with the digest in the store before it reduces it. A task is a few logs of one arm;
    their rows are written here as they come: a run that is stopped loses what its workers had in hand, and
    the next one goes on. Where no worker survives a task, its logs are tried one by one: bad ones fail alone.
    """

    def __init__(self, store: Store, ways: Mapping[str, Reduction], entries: Sequence[Entry]) -> None:
        self._store, self._ways, self._entries = store, ways, entries
        self._contents = {name: way.to_dict() for name, way in ways.items()}
        robots = sorted({entry.robot for entry in entries} & set(store.robots))
        rows = store.rows(("content", "reduction", "load", "tool"), robots).to_pylist()
        self._known = {row["key"]: row for row in rows}
        self._before = store.stamps

    def run(self, scheduler: str | None, workers: int | None, progress: Progress | None) -> Counter[str]:
        """Reduces what is new; how many logs are new, changed, unchanged and failed."""
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
        began = said = time.monotonic()
        done, alone = 0, list[tuple[Entry, ...]]()
        with engine(scheduler, workers) as here:
            for batches in (_batches(todo), alone):
                for entries, rows in here.each(reduce_logs, map(self._task, batches)):
                    if isinstance(rows, Exception) and len(entries) > 1:
                        alone += [(entry,) for entry in entries]
                        continue
                    yield from self._added(entries, rows)
                    done, now = done + len(entries), time.monotonic()
                    if progress is not None and (now - said > _TELL_S or done == len(todo)):
                        said, rate = now, done / max(now - began, 1e-9)
                        progress(done / len(todo), f"{done} of {len(todo)} logs, {rate:.3g} files per second")

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
            rows = [failed_row(entry, way.key, f"no worker survived it: {rows}") for entry in entries]
        if new := [row for row in rows if row is not None]:
            self._store.add(new)
        return [(entry, self._fate(entry, row)) for entry, row in zip(entries, rows, strict=True)]

    def _fate(self, entry: Entry, row: dict[str, Any] | None) -> str:
        """What became of a log."""
        if row is None:
            return "unchanged"
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


def _usable(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that are whole, each content once, made in the way of the one that was written last."""
    whole = [row for row in rows if row["ok"]]
    if not whole:
        return []
    way = max(whole, key=lambda row: row["written"])["reduction"]
    once: dict[Any, dict[str, Any]] = {}
    for row in whole:
        if row["reduction"] == way:
            once.setdefault((row["content"], row["start_s"], row["end_s"]), row)
    return list(once.values())


def _sure(result: Any) -> Any:
    """A result, or what went wrong."""
    if isinstance(result, Exception):
        raise result
    return result


def _say(progress: Progress | None, done: int, count: int, words: str) -> None:
    if progress is not None:
        progress(done / count, f"{words} {done} of {count} arms")
