"""The fleet: logs reduced into a store, and what the store says of each arm.

catalogue -> factors, once for each log -> models of empty arms -> payload and state of each log ->
changes
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard._computing import Progress
from steelyard.errors import InvalidSamples
from steelyard.fleet._arms import (
    Arm,
    agreement,
    clashes,
    leaves,
    merge,
    merge_packed,
    payloads,
    trend,
)
from steelyard.fleet._build import Build
from steelyard.fleet._catalogue import read_catalogue
from steelyard.fleet._engine import Engine, engine
from steelyard.fleet._estimate import arm_model
from steelyard.fleet._reduce import Reduction
from steelyard.fleet._store import Store, writing
from steelyard.fleet._trend import Trends
from steelyard.identification import DynamicModel, RegressionFactor
from steelyard.recording import Preparation
from steelyard.robot import RobotModel
from steelyard.saved import write_text

if TYPE_CHECKING:
    import pyarrow as pa

_LIGHT = (
    *(
        "start_s",
        "end_s",
        "duration_s",
        "rate_hz",
        "tool",
        "load",
        "temperature",
        "ok",
        "reason",
        "warnings",
    ),
    *("content", "reduction", "from_currents", "rows", "noise", "widening", "torque"),
)
_ROUNDS = 8


class Fleet:
    """The logs of many arms, reduced; models, payloads and changes come from the reduced logs alone.

    Attributes:
        built: how many logs were new, changed, unchanged and failed where the fleet was built just
            now

    Args:
        store: folder that `Fleet.build` made
        scheduler: address of a Dask cluster, as `tcp://host:8786`; the cores of this machine by
            default
        workers: how many processes here; as many as cores by default, one is this process itself
    """

    def __init__(
        self, store: str | Path, *, scheduler: str | None = None, workers: int | None = None
    ) -> None:
        self._store = Store(store)
        self._scheduler = scheduler
        self._workers = workers
        self.built: Counter[str] = Counter()

    @classmethod
    def build(
        cls,
        catalogue: str | Path,
        store: str | Path,
        *,
        model: str | RobotModel | None = None,
        friction: str | None = None,
        preparation: Preparation | None = None,
        scheduler: str | None = None,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Fleet:
        """The fleet of a catalogue; only logs that are new or have changed are read.

        Args:
            catalogue: a table, a folder or a pattern, see docs/howto/fleet.md
            store: folder of the fleet, made where there is none
            model: of the arms, where the catalogue does not say: a name or file, or the arm itself
            friction: name of a law, instead of those of the arms
            preparation: how logs become samples, instead of those of the arms
            scheduler: address of a Dask cluster
            workers: how many processes here
            progress: called with the share that is done and words
        """
        given: dict[str, RobotModel] = {}
        if isinstance(model, RobotModel):
            name = f"{model.name}, as given"
            given = {name: model}
            model = name
        entries = read_catalogue(str(catalogue), model=model)
        ways = {
            name: Reduction.of(given.get(name, name), friction=friction, preparation=preparation)
            for name in dict.fromkeys(entry.model for entry in entries)
        }
        place = Store(store, make=True)
        for way in ways.values():
            place.keep(way)
        fleet = cls(store, scheduler=scheduler, workers=workers)
        fleet.built = Build(place, ways, entries).run(scheduler, workers, progress)
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
        chosen = {
            robot: keys for robot in self.robots if (keys := self._empty(robot, since, until))
        }
        if not chosen:
            raise InvalidSamples(
                f"{self._store.folder} has no empty logs here: they have load 0 in the catalogue"
                " (or no log"
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
                todo = sorted(
                    robot for robot, result in found if arms[robot].leave_out(_sure(result))
                )
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
        from steelyard.fleet._page import fleet_html

        failed = Counter(
            row["robot"] for row in self._store.rows(("ok",)).to_pylist() if not row["ok"]
        )
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

    def _per_arm(
        self, work: Any, words: str, progress: Progress | None
    ) -> Iterator[tuple[str, Any]]:
        """What some work makes of the model and the logs of each arm."""
        known = [robot for robot in self.robots if self._store.model_path(robot).exists()]
        if not known:
            raise InvalidSamples(
                f"no arm of {self._store.folder} has a model yet: steelyard fleet identify"
            )
        models = ((robot, self._store.model(robot)) for robot in known)
        tasks = (
            (robot, model.to_dict(), self._rows(robot))
            for robot, model in models
            if model is not None
        )
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
            if began is not None
            and (since is None or began >= since)
            and (until is None or began < until)
        ]

    def _rows(self, robot: str, keys: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """The rows of an arm that are of use, or some of them, with their factors."""
        table = self._store.rows((*_LIGHT, "factor"), [robot])
        factors = dict(zip(table["key"].to_pylist(), table["factor"], strict=True))
        wanted = set(factors if keys is None else keys)
        rows = [
            row for row in _usable(table.drop_columns("factor").to_pylist()) if row["key"] in wanted
        ]
        return [{**row, "factor": factors[row["key"]].values.to_numpy()} for row in rows]


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
