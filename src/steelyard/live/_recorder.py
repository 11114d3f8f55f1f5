"""Rows on disk as they come: what was received, under the sender's own names.

While rows come they go to a stream of Arrow's batches (`.arrows`, Arrow IPC), four times per
second, forced to the disk: whatever happens to this program, at most the last second is lost, and
`read` reads what is there. Where Parquet was asked for, the stream becomes a Parquet file
when all is over. A sender that starts a new clock starts a new file, `log-2.parquet`, for in one
file time does not go back.
"""

from __future__ import annotations

import itertools
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from steelyard.errors import MissingExtra, UnreadableFile
from steelyard.live._source import Event, EventKind, Row
from steelyard.saved import growing, replacing, require_target

_BATCH_S = 0.25
_STREAM = ".arrows"
_PARQUET = ".parquet"
_GROUP_ROWS = 2**14
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"  # of Arrow IPC


class Recorder:
    """Writes rows to files, one for each clock; use it in a `with`.

    Args:
        path: `.parquet`, or `.arrows` to keep the stream as it is
        columns: names of the values
    """

    def __init__(self, path: str | Path, columns: tuple[str, ...]) -> None:
        self._path = Path(path)
        self._columns = columns
        self.rows = 0
        if self._path.suffix not in (_STREAM, _PARQUET):
            raise UnreadableFile(
                f"live rows are recorded as .parquet or .arrows, not '{self._path.name}'"
            )
        require_target(path)
        stream = self._path.with_suffix(_STREAM)
        if stream != self._path and stream.exists():
            raise UnreadableFile(
                f"{stream} is there, a recording cut short: read or remove it first"
            )
        _pyarrow()
        self._file: _File | None = None
        self._clock = 0
        self.files: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, row: Row) -> None:
        """Takes a row; it is on the disk a quarter of a second later.

        Args:
            row: with the values of the columns
        """
        if self._file is None or row.clock != self._clock:
            self.close()
            self.files.append(self._next())
            self._file = _File(self.files[-1], self._columns)
            self._clock = row.clock
        self._file.add(row)
        self.rows += 1

    def _next(self) -> Path:
        """A name for the next file, which nobody has taken."""
        if not self.files:
            return self._path
        for number in itertools.count(len(self.files) + 1):
            path = self._path.with_stem(f"{self._path.stem}-{number}")
            if not path.exists() and not path.with_suffix(_STREAM).exists():
                break
        return path

    def close(self) -> None:
        """Finishes the file; a second time does nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None


class Recorded(NamedTuple):
    """How far a recording has come.

    Attributes:
        rows: that were recorded
        missing: that the sender never sent
        dropped: that came, but were not taken in time
        waiting: why the last row is not fit for weighing, in words; empty where it is
        events: since the last report
        rate_hz: rows per second of the sender's clock, over the last report, [Hz]
    """

    rows: int
    missing: int
    dropped: int
    waiting: str
    events: tuple[Event, ...]
    rate_hz: float

    def after(self, rows: Sequence[Row], events: Sequence[Event]) -> Recorded:
        """The next report.

        Args:
            rows: since this one, behind the last of those before it
            events: since this one
        """
        if rows:
            span_s = rows[-1].t - rows[0].t
        else:
            span_s = 0.0
        more = {kind: sum(x.rows for x in events if x.kind is kind) for kind in EventKind}
        return Recorded(
            self.rows + len(rows) - (self.rows > 0),
            self.missing + more[EventKind.GAP],
            self.dropped + more[EventKind.DROPPED],
            rows[-1].waiting if rows else self.waiting,
            tuple(events),
            (len(rows) - 1) / span_s if span_s > 0 else 0.0,
        )


def record(
    items: Iterable[Row | Event], recorder: Recorder, *, every_s: float = 0.2
) -> Iterator[Recorded]:
    """Records what comes, and reports on it again and again, at the end too.

    Args:
        items: of a stream
        recorder: for its columns
        every_s: time between two reports, [s]
    """
    report = Recorded(0, 0, 0, "nothing has come yet", (), 0.0)
    rows: list[Row] = []
    events: list[Event] = []
    due_s = time.monotonic() + every_s
    for item in items:
        if isinstance(item, Row):
            recorder.add(item)
            rows.append(item)
        else:
            events.append(item)
        if time.monotonic() >= due_s:
            due_s = time.monotonic() + every_s
            report = report.after(rows, events)
            rows = rows[-1:]
            events = []
            yield report
    yield report.after(rows, events)


class _File:
    """One file: a stream while it grows, written by a thread of its own, for disks may take their time."""

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        self._path, self._stream, self._columns = path, path.with_suffix(_STREAM), columns
        self._open = ExitStack()
        self._disk = self._open.enter_context(growing(self._stream))
        self._pack = struct.Struct(f"{len(columns)}d").pack
        self._kinds: list[type] = []  # of the values, as in the first row
        self._schema: Any = None
        self._waiting: deque[bytes] = deque()
        self._failed: Exception | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="steelyard recorder", daemon=True)
        self._thread.start()

    def add(self, row: Row) -> None:
        if self._failed is not None:
            raise UnreadableFile(f"cannot write {self._stream}: {self._failed}") from self._failed
        if not self._kinds:
            self._kinds = [float if isinstance(x, float) else int for x in row.values]
        self._waiting.append(
            self._pack(*row.values)
        )  # here: a batch at once would hold up who weighs

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        if self._schema is not None and self._failed is None:
            self._disk.write(_END_OF_STREAM)
        self._open.close()
        if self._failed is not None:
            raise UnreadableFile(f"cannot write {self._stream}: {self._failed}") from self._failed
        if self._path != self._stream:
            self._convert()
            self._stream.unlink()

    def _run(self) -> None:
        try:
            while not self._over.wait(_BATCH_S):
                self._write()
            self._write()
        except (
            Exception
        ) as error:  # a full disk, another kind of values, whatever: who adds rows must know
            self._failed = error

    def _write(self) -> None:
        """Puts what waits on the disk, as one batch."""
        rows = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not rows:
            return
        pa = _pyarrow()
        message = b""
        if self._schema is None:
            names = {float: pa.float64(), int: pa.int64()}
            kinds = [names[kind] for kind in self._kinds]
            self._schema = pa.schema(list(zip(self._columns, kinds, strict=True)))
            message = self._schema.serialize().to_pybytes()
        columns = np.frombuffer(b"".join(rows)).reshape(len(rows), -1).T.copy()
        arrays = [
            pa.array(x.astype(kind, copy=False))
            for x, kind in zip(columns, self._kinds, strict=True)
        ]
        batch = pa.record_batch(arrays, schema=self._schema)
        self._disk.write(
            message + batch.serialize().to_pybytes()
        )  # at once: other threads wait less
        self._disk.flush()
        os.fsync(self._disk.fileno())

    def _convert(self) -> None:
        """Makes a Parquet file of the stream, a group of rows at a time."""
        pa = _pyarrow()
        from pyarrow import parquet

        with (
            replacing(self._path) as part,
            pa.memory_map(str(self._stream)) as stream,
            parquet.ParquetWriter(
                part, self._schema, compression="zstd", use_dictionary=False
            ) as writer,
        ):
            group: list[Any] = []
            for batch in pa.ipc.open_stream(stream):
                group.append(batch)
                if sum(map(len, group)) >= _GROUP_ROWS:
                    writer.write(pa.Table.from_batches(group))
                    group = []
            if group:
                writer.write(pa.Table.from_batches(group))


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise MissingExtra("pyarrow", "io") from error
    return pyarrow
