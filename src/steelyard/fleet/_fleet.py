"""A fleet of arms: its logs are reduced into a store, and all results come from the store.

catalogue -> factors, once for each log -> models of empty arms -> payload and state of each log ->
changes
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from steelyard._computing import Progress
from steelyard._saved import write_text
from steelyard.errors import InvalidSamples
from steelyard.fleet._arms import (
    ArmLogs,
    agreement,
    clashes,
    leaves,
    merge,
    merge_packed,
    payloads,
    trend,
    with_population,
)
from steelyard.fleet._build import Build
from steelyard.fleet._catalogue import read_catalogue
from steelyard.fleet._engine import Engine, engine, require_workers
from steelyard.fleet._estimate import arm_model
from steelyard.fleet._reduce import Reduction
from steelyard.fleet._rows import LogPayload, LogRow
from steelyard.fleet._store import Store, writing
from steelyard.fleet._trend import Trends
from steelyard.identification import DynamicModel, RegressionFactor
from steelyard.recording import Preparation
from steelyard.robot import RobotModel
from steelyard.verdict import Doubt, DoubtKind

_MAX_ROUNDS = 8  # of leaving out logs and fitting again
_NEVER = datetime.min.replace(tzinfo=UTC)
T = TypeVar("T")


class Fleet:
    """The reduced logs of many arms, from which models, payloads and changes are computed.

    Attributes:
        built: number of logs that were new, changed, unchanged and failed, where `Fleet.build`
            returned this fleet

    Args:
        store: folder that `Fleet.build` created
        scheduler: address of a Dask cluster, as `tcp://host:8786`; the cores of this machine by
            default
        workers: number of processes on this machine, by default the number of cores; one means
            this process itself
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
        robot: str | RobotModel | None = None,
        friction: str | None = None,
        preparation: Preparation | None = None,
        scheduler: str | None = None,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Fleet:
        """The fleet of a catalogue; only logs that are new or have changed are read.

        Args:
            catalogue: a table, a folder or a pattern, see docs/howto/fleet.md
            store: folder of the fleet, created where it does not exist
            robot: the arm where the catalogue has no column `model`: a bundled name or a file, or
                the arm itself
            friction: name of a friction law, instead of those of the arms
            preparation: how logs become samples, instead of those of the arms
            scheduler: address of a Dask cluster
            workers: number of processes on this machine
            progress: called with the completed share and a message
        """
        given: dict[str, RobotModel] = {}
        if isinstance(robot, RobotModel):
            name = f"{robot.name}, as given"
            given = {name: robot}
            robot = name
        entries = read_catalogue(str(catalogue), model=robot)
        reductions = {
            name: Reduction.of(given.get(name, name), friction=friction, preparation=preparation)
            for name in dict.fromkeys(entry.model for entry in entries)
        }
        require_workers(workers)
        created = Store(store, create=True)
        for reduction in reductions.values():
            created.keep(reduction)
        fleet = cls(store, scheduler=scheduler, workers=workers)
        fleet.built = Build(created, reductions, entries).run(scheduler, workers, progress)
        return fleet

    @property
    def robots(self) -> list[str]:
        """Names of the arms."""
        return self._store.robots

    @property
    def logs(self) -> list[LogRow]:
        """One row for each log, without its factor, ordered by arm and time."""
        return self._logs()

    @property
    def clashes(self) -> list[str]:
        """Sentences about logs of one arm that overlap in time, and contents that occur twice."""
        return clashes(self._logs())

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
        """The model of each arm that has empty logs; the store keeps it too.

        Logs that contradict the others of their arm are left out, and listed in the verdict. The
        spread of friction between the logs is kept in the model: friction of a log that is weighed
        is one more draw from this population.

        Args:
            since: only logs that began at that time or later
            until: only logs that began before
            progress: called with the completed share and a message
        """
        chosen = {
            robot: keys for robot in self.robots if (keys := self._empty(robot, since, until))
        }
        if not chosen:
            raise InvalidSamples(
                f"{self._store.folder} has no empty logs in this period: empty logs have load 0 in"
                " the catalogue, or belong to an arm without any load there"
            )
        arms = {robot: ArmLogs(robot, keys) for robot, keys in chosen.items()}
        todo = sorted(arms)
        models: dict[str, DynamicModel] = {}
        with engine(self._scheduler, self._workers) as here:
            for _ in range(_MAX_ROUNDS):
                models.update(self._merge(here, [arms[robot] for robot in todo], progress))
                tasks = (
                    (robot, models[robot].to_arrays(), self._usable(robot, arms[robot].candidates))
                    for robot in todo
                )
                results = list(here.each(agreement, tasks))
                todo = sorted(
                    robot for robot, result in results if arms[robot].leave_out(_unwrap(result))
                )
                if not todo:
                    break
        self._store.folder_of("models")
        models = {
            robot: with_population(model, self._usable(robot, arms[robot].used))
            for robot, model in models.items()
        }
        for robot, model in models.items():
            with writing(self._store.folder):
                model.save(self._store.model_path(robot))
        return dict(sorted(models.items()))

    def weigh(self, *, progress: Progress | None = None) -> list[LogPayload]:
        """The payload of each log of the arms that have models.

        Args:
            progress: called with the completed share and a message
        """
        weighed = self._per_arm(payloads, "weighed the logs of", progress)
        return [row for _, rows in sorted(weighed, key=lambda each: each[0]) for row in rows]

    def trend(self, *, rate: float = 0.05, progress: Progress | None = None) -> Trends:
        """Friction, offsets, gains, residuals and payload of each arm over time, and their changes.

        Args:
            rate: upper limit on the mean share of false alarms among the flagged changes
            progress: called with the completed share and a message
        """
        if not 0 < rate < 1:
            raise InvalidSamples(f"the rate of false alarms lies between 0 and 1, got {rate:g}")
        trends = self._per_arm(trend, "compared the logs of", progress)
        return Trends([arm for _, arm in sorted(trends, key=lambda each: each[0])], rate)

    def write_page(self, trends: Trends, path: str | Path) -> None:
        """Writes a page (.html): arms as rows, worst first, and a page for each arm.

        Args:
            trends: that `trend` returned
            path: of the file
        """
        from steelyard.fleet._page import fleet_html

        failed = Counter(log.robot for log in self._logs() if not log.ok)
        with writing(Path(path).parent):
            write_text(path, fleet_html(trends, failed))

    def _logs(self, robots: Iterable[str] | None = None) -> list[LogRow]:
        return self._store.rows(LogRow, robots, without=("factor",))

    def _merge(
        self, here: Engine, arms: Sequence[ArmLogs], progress: Progress | None
    ) -> Iterator[tuple[str, DynamicModel]]:
        """The models of arms; their factors are merged in trees."""
        by_name = {arm.robot: arm for arm in arms}
        groups = ((arm.robot, leaves(self._usable(arm.robot, arm.used))) for arm in arms)
        for done, (robot, factor) in enumerate(here.trees(merge_packed, merge, groups), start=1):
            yield robot, self._fitted(by_name[robot], factor)
            _report(progress, done, len(arms), "merged the logs of")

    def _fitted(self, arm: ArmLogs, factor: RegressionFactor) -> DynamicModel:
        """The model of an arm from the merged factor of its logs."""
        by_key = {log.key: log for log in self._logs([arm.robot])}
        used = [by_key[key] for key in arm.used]
        lengths = [log.duration_s for log in used]
        span = f"{used[0].file} to {used[-1].file}"
        doubts = arm.doubts({key: log.file for key, log in by_key.items()})
        if all(log.load is None for log in by_key.values()):
            words = f"no log of {arm.robot} has a load: all {len(by_key)} count as empty"
            doubts.append(Doubt(DoubtKind.ASSUMED, words, blocks=False))
        return arm_model(
            self._store.reduction(used[0].reduction),
            factor,
            np.average([log.widening for log in used], axis=0, weights=lengths),
            made_from=[f"{len(used)} logs of {arm.robot}, {sum(lengths):.0f} s: {span}"],
            from_currents=used[0].from_currents,
            doubts=doubts,
        )

    def _per_arm(
        self, work: Callable[..., T], words: str, progress: Progress | None
    ) -> Iterator[tuple[str, T]]:
        """The result of some work on the model and the logs of each arm that has a model."""
        robots = [robot for robot in self.robots if self._store.model_path(robot).exists()]
        if not robots:
            raise InvalidSamples(
                f"no arm of {self._store.folder} has a model yet: identify the fleet first"
            )
        models = ((robot, self._store.model(robot)) for robot in robots)
        tasks = (
            (robot, model.to_arrays(), self._usable(robot))
            for robot, model in models
            if model is not None
        )
        with engine(self._scheduler, self._workers) as here:
            for done, (robot, result) in enumerate(here.each(work, tasks), start=1):
                _report(progress, done, len(robots), words)
                yield robot, _unwrap(result)

    def _empty(self, robot: str, since: datetime | None, until: datetime | None) -> list[str]:
        """Keys of the empty logs of an arm: those of load 0, or all where no log has a load."""
        logs = _usable(self._logs([robot]))
        if any(log.load is not None for log in logs):
            logs = [log for log in logs if log.load == 0]
        return [log.key for log in logs if _began_between(log, since, until)]

    def _usable(self, robot: str, keys: Iterable[str] | None = None) -> list[LogRow]:
        """The usable rows of an arm, or those with some keys, with their factors."""
        rows = _usable(self._store.rows(LogRow, [robot]))
        if keys is None:
            return rows
        wanted = set(keys)
        return [row for row in rows if row.key in wanted]


def _began_between(log: LogRow, since: datetime | None, until: datetime | None) -> bool:
    if since is None and until is None:
        return True
    if log.time is None:
        return False
    return (since is None or log.time >= since) and (until is None or log.time < until)


def _usable(rows: Sequence[LogRow]) -> list[LogRow]:
    """Usable rows of the reduction that was used last, each content once."""
    usable = [row for row in rows if row.ok]
    if not usable:
        return []
    latest = max(usable, key=lambda row: row.written or _NEVER)
    unique: dict[Any, LogRow] = {}
    for row in usable:
        if row.reduction == latest.reduction:
            unique.setdefault(row.part, row)
    return list(unique.values())


def _unwrap(result: T | Exception) -> T:
    """The result of a task; raises its error where it has none."""
    if isinstance(result, Exception):
        raise result
    return result


def _report(progress: Progress | None, done: int, count: int, words: str) -> None:
    if progress is not None:
        progress(done / count, f"{words} {done} of {count} arms")
