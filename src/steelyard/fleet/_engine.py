"""Runs tasks in this process, on the cores of this machine, or on a cluster, by the same code.

A worker is one process with one thread and one BLAS thread. Tasks are submitted a few at a time, so
that neither this process nor the scheduler grows with the number of logs. If a worker dies, its
tasks go to others; a task whose workers die again and again fails alone.

Factors merge in trees: tasks of at most eight inputs each reduce the leaves to one factor.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Protocol, TypeAlias, TypeVar

from steelyard._computing import one_blas_thread
from steelyard._kinds import Range, require_number
from steelyard.errors import MissingExtra, SolverFailed, UnknownName

MERGE_FAN_IN = 8
"""The largest number of inputs of a merge."""

_TASKS_PER_WORKER = 4  # submitted at once
_WORKERS = Range(1, 1024)  # processes on one machine
_CONNECT_TIMEOUT_S = 10.0
_THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
T = TypeVar("T")
Results: TypeAlias = Iterator[tuple[Any, T | Exception]]


class Engine(Protocol):
    """Runs tasks."""

    def each(
        self, work: Callable[..., T], tasks: Iterable[Sequence[Any]]
    ) -> Iterator[tuple[Any, T | Exception]]:
        """The first argument and the result or error of each task, in the order of completion.

        Args:
            work: a function of a module
            tasks: its arguments; an iterator is read as workers become free
        """
        ...

    def trees(
        self,
        leaf: Callable[..., T],
        merge: Callable[[Sequence[T]], T],
        groups: Iterable[Sequence[Any]],
    ) -> Iterator[tuple[Any, T]]:
        """The name and the merged result of each group.

        Args:
            leaf: computes the result of one piece
            merge: merges at most `MERGE_FAN_IN` results
            groups: each a name and its pieces, a sequence of arguments of `leaf`
        """
        ...


def require_workers(workers: int | None) -> None:
    """Refuses a number of processes that no machine runs.

    Args:
        workers: number of processes; None for the default
    """
    if workers is not None:
        require_number(workers, _WORKERS, "workers", UnknownName)


@contextmanager
def engine(scheduler: str | None = None, workers: int | None = None) -> Iterator[Engine]:
    """An engine for the time of a `with` block.

    Args:
        scheduler: address of an existing cluster, as `tcp://host:8786`; the cores of this machine
            by default
        workers: number of processes on this machine, by default the number of cores; one means
            this process itself
    """
    require_workers(workers)
    count = workers or os.cpu_count() or 1
    if scheduler is None and count == 1:
        yield _InProcess()
        return
    try:
        import dask
        import distributed
    except ImportError:
        raise MissingExtra.of("dask and distributed", "fleet") from None
    settings = {
        "distributed.comm.timeouts.connect": _CONNECT_TIMEOUT_S,
        "distributed.worker.daemon": True,
        # its profiler inspects every thread a hundred times per second
        "distributed.worker.profile.enabled": False,
        "distributed.nanny.pre-spawn-environ": _THREADS,
    }
    with dask.config.set(settings):
        if scheduler is not None:
            try:
                client: Any = distributed.Client(
                    scheduler, timeout=_CONNECT_TIMEOUT_S, set_as_default=False
                )
            except (OSError, ValueError) as error:
                raise SolverFailed(
                    f"the scheduler {scheduler} does not answer:"
                    f" {str(error) or type(error).__name__}; check that it is running and that"
                    " this machine can reach it"
                ) from error
            try:
                yield _Cluster(client)
            finally:
                client.close()
            return
        cluster = distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=50,
            memory_limit=0,
        )
        with cluster, distributed.Client(cluster, set_as_default=False) as client:
            yield _Cluster(client)


def _single(work: Callable[..., T], *arguments: Any) -> T:
    """The result of some work with one BLAS thread."""
    with one_blas_thread():
        return work(*arguments)


class _InProcess:
    """Runs tasks in this process."""

    def each(
        self, work: Callable[..., T], tasks: Iterable[Sequence[Any]]
    ) -> Iterator[tuple[Any, T | Exception]]:
        """One after the other."""
        for task in tasks:
            yield task[0], _single(work, *task)

    def trees(
        self,
        leaf: Callable[..., T],
        merge: Callable[[Sequence[T]], T],
        groups: Iterable[Sequence[Any]],
    ) -> Iterator[tuple[Any, T]]:
        """One after the other."""
        for name, pieces in groups:
            results = [_single(leaf, *piece) for piece in pieces]
            while len(results) > 1:
                results = [
                    _single(merge, results[i : i + MERGE_FAN_IN])
                    for i in range(0, len(results), MERGE_FAN_IN)
                ]
            yield name, results[0]


class _Cluster:
    """Runs tasks on a Dask cluster, on this machine or elsewhere."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def _max_pending(self) -> int:
        """The largest number of submitted tasks."""
        return _TASKS_PER_WORKER * max(len(self._client.nthreads()), 1)

    def each(
        self, work: Callable[..., T], tasks: Iterable[Sequence[Any]]
    ) -> Iterator[tuple[Any, T | Exception]]:
        """In the order of completion."""
        yield from self._flow(
            (task[0], self._client.submit(_single, work, *task, pure=False)) for task in tasks
        )

    def trees(
        self,
        leaf: Callable[..., T],
        merge: Callable[[Sequence[T]], T],
        groups: Iterable[Sequence[Any]],
    ) -> Iterator[tuple[Any, T]]:
        """In the order of completion."""
        submit = self._client.submit

        def submitted() -> Iterator[tuple[Any, Any]]:
            for name, pieces in groups:
                futures = [submit(_single, leaf, *piece, pure=False) for piece in pieces]
                while len(futures) > 1:
                    futures = [
                        submit(_single, merge, futures[i : i + MERGE_FAN_IN], pure=False)
                        for i in range(0, len(futures), MERGE_FAN_IN)
                    ]
                yield name, futures[0]

        for name, result in self._flow(submitted()):
            if isinstance(result, Exception):
                raise SolverFailed(
                    f"the factors of {name} could not be merged: {result}"
                ) from result
            yield name, result

    def _flow(self, submitted: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Results of futures as they complete; submits new ones as workers become free."""
        from distributed import as_completed

        names: dict[str, Any] = {}
        flow = as_completed([], loop=self._client.loop)

        def more(count: int) -> None:
            for name, future in islice(submitted, count):
                names[future.key] = name
                flow.add(future)

        more(self._max_pending)
        try:
            for future in flow:
                error = future.exception()
                if error is not None:
                    result = error
                else:
                    result = future.result()
                future.release()
                yield names.pop(future.key), result
                more(max(1, self._max_pending - len(names)))
        finally:
            self._client.cancel([future for future, _ in list(flow.futures.items())])
