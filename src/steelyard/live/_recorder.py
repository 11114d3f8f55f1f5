"""Rows on disk as they come, under the sender's own names.

While rows come they go to a stream of Arrow record batches (`.arrows`, Arrow IPC), which is forced
to the disk four times per second: after a crash at most the last second is lost, and
`steelyard.read` reads the rest. Where Parquet was asked for, the stream becomes a Parquet file at
the end. When the sender starts a new clock, a new file begins, `log-2.parquet`: time never goes
back in one file.

Writing and conversion happen on a thread for each file; `add` never waits for the disk. At most
`_MAX_WAITING_ROWS` rows wait for it; further ones are dropped and counted.
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

from steelyard._saved import growing, replacing, require_target
from steelyard.errors import MissingExtra, UnreadableFile
from steelyard.live._source import Event, EventKind, Row
from steelyard.recording import UNKNOWN_ARM, ArmIdentity
from steelyard.recording._layout import ARM_KEY, arm_to_json

_BATCH_S = 0.25
_STREAM = ".arrows"
_PARQUET = ".parquet"
_GROUP_ROWS = 2**14
_MAX_WAITING_ROWS = 30_000  # a minute at 500 Hz
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"  # of Arrow IPC


class Recorder:
    """Writes rows to files, one for each clock; use it in a `with`.

    Attributes:
        rows: number of rows so far
        dropped: number of rows that were not recorded because the disk was too slow
        files: files so far

    Args:
        path: `.parquet`, or `.arrows` to keep the stream as it is
        columns: names of the values
        arm: the arm that is recorded, as far as it is known
    """

    def __init__(
        self, path: str | Path, columns: tuple[str, ...], arm: ArmIdentity = UNKNOWN_ARM
    ) -> None:
        self._path = Path(path)
        self._columns = columns
        self._arm = arm
        self.rows = 0
        self.dropped = 0
        if self._path.suffix not in (_STREAM, _PARQUET):
            raise UnreadableFile(
                f"live rows are recorded as .parquet or .arrows, not '{self._path.name}'"
            )
        require_target(path)
        stream = self._path.with_suffix(_STREAM)
        if stream != self._path and stream.exists() and stream.stat().st_size > 0:
            raise UnreadableFile(
                f"{stream} exists, a recording that was cut short: read or remove it first"
            )
        _pyarrow()
        self._file: _File | None = None
        self._finishing: list[_File] = []  # files of earlier clocks, being converted
        self._clock = 0
        self.files: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, row: Row) -> None:
        """Takes a row; it is on the disk a quarter of a second later.

        Args:
            row: its values are those of the columns
        """
        if self._file is None or row.clock != self._clock:
            if self._file is not None:
                self._file.finish()
                self._finishing.append(self._file)
            self.files.append(self._next_path())
            self._file = _File(self.files[-1], self._columns, self._arm)
            self._clock = row.clock
        if self._file.add(row):
            self.rows += 1
        else:
            self.dropped += 1

    def _next_path(self) -> Path:
        """A name for the next file that no file has yet."""
        if not self.files:
            return self._path
        for number in itertools.count(len(self.files) + 1):
            path = self._path.with_stem(f"{self._path.stem}-{number}")
            if not path.exists() and not path.with_suffix(_STREAM).exists():
                break
        return path

    def close(self) -> None:
        """Finishes all files; a second call does nothing."""
        files = [*self._finishing, *([] if self._file is None else [self._file])]
        self._finishing = []
        self._file = None
        for file in files:
            file.finish()
        for file in files:
            file.wait()


class Recorded(NamedTuple):
    """A report on a recording.

    Attributes:
        rows: number of recorded rows
        missing: number of rows that the sender skipped
        dropped: number of rows that were not taken in time, or that a slow disk did not write
        waiting: why the last row is not fit for weighing; empty where it is fit
        events: events since the last report
        rate_hz: rows per second of the sender's clock since the last report, [Hz]
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
            rows: the last row of this report, where there is one, and all rows since then
            events: all events since this report
        """
        waiting = self.waiting
        rate_hz = 0.0
        if rows:
            waiting = rows[-1].waiting
            span_s = rows[-1].t - rows[0].t
            if span_s > 0:
                rate_hz = (len(rows) - 1) / span_s
        return Recorded(
            rows=self.rows + len(rows) - (self.rows > 0),
            missing=self.missing + _count_rows(events, EventKind.GAP),
            dropped=self.dropped + _count_rows(events, EventKind.DROPPED),
            waiting=waiting,
            events=tuple(events),
            rate_hz=rate_hz,
        )


def _count_rows(events: Sequence[Event], kind: EventKind) -> int:
    return sum(event.rows for event in events if event.kind is kind)


def record(
    items: Iterable[Row | Event], recorder: Recorder | None, *, every_s: float = 0.2
) -> Iterator[Recorded]:
    """Records rows as they come, with a report from time to time and at the end.

    Args:
        items: rows and events of a stream
        recorder: for the columns of the stream; None to count rows only
        every_s: time between two reports, [s]
    """
    report = Recorded(0, 0, 0, "nothing has come yet", (), 0.0)
    rows: list[Row] = []
    events: list[Event] = []
    drops = _Drops(recorder)
    due_s = time.monotonic() + every_s
    for item in items:
        if isinstance(item, Row):
            if recorder is not None:
                recorder.add(item)
            rows.append(item)
        else:
            events.append(item)
        if time.monotonic() >= due_s:
            due_s = time.monotonic() + every_s
            report = report.after(rows, [*events, *drops.since()])
            rows = rows[-1:]
            events = []
            yield report
    yield report.after(rows, [*events, *drops.since()])


class _Drops:
    """Rows that a recorder has dropped, as events."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder
        self._reported = 0

    def since(self) -> Iterator[Event]:
        """The drops since the last call."""
        if self._recorder is None or self._recorder.dropped == self._reported:
            return
        count = self._recorder.dropped - self._reported
        self._reported = self._recorder.dropped
        words = f"{count} rows were not recorded: the disk is too slow"
        yield Event(EventKind.DROPPED, words, rows=count)


class _File:
    """One file: a stream while it grows, written by a separate thread because disks may be slow."""

    def __init__(self, path: Path, columns: tuple[str, ...], arm: ArmIdentity) -> None:
        self._path = path
        self._arm = arm
        self._stream = path.with_suffix(_STREAM)
        self._columns = columns
        self._open = ExitStack()
        self._disk = self._open.enter_context(growing(self._stream))
        self._pack = struct.Struct(f"{len(columns)}d").pack
        self._kinds: list[type] = []  # types of the values in the first row
        self._schema: Any = None
        self._waiting: deque[bytes] = deque()
        self._failed: Exception | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="steelyard recorder", daemon=True)
        self._thread.start()

    def add(self, row: Row) -> bool:
        """Takes a row; False where it was dropped because too many wait for the disk."""
        self._raise_failure()
        if len(self._waiting) >= _MAX_WAITING_ROWS:
            return False
        if not self._kinds:
            self._kinds = [float if isinstance(x, float) else int for x in row.values]
        # packed here, row by row: packing a whole batch would stall the calling thread
        self._waiting.append(self._pack(*row.values))
        return True

    def finish(self) -> None:
        """Asks the thread to write the rest and to convert the stream; returns at once."""
        self._over.set()

    def wait(self) -> None:
        """Returns when the file is finished; raises `UnreadableFile` where that has failed."""
        self._thread.join()
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failed is not None:
            raise UnreadableFile(f"cannot write {self._stream}: {self._failed}") from self._failed

    def _run(self) -> None:
        try:
            with self._open:
                while not self._over.wait(_BATCH_S):
                    self._write()
                self._write()
                if self._schema is not None:
                    self._disk.write(_END_OF_STREAM)
            if self._path != self._stream:
                self._convert()
                self._stream.unlink()
        except Exception as error:  # report any failure to the caller of add()
            self._failed = error

    def _write(self) -> None:
        """Writes the waiting rows to the disk, as one batch."""
        rows = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not rows:
            return
        pa = _pyarrow()
        message = b""
        if self._schema is None:
            arrow_types = {float: pa.float64(), int: pa.int64()}
            types = [arrow_types[kind] for kind in self._kinds]
            facts = {ARM_KEY: arm_to_json(self._arm)}
            self._schema = pa.schema(list(zip(self._columns, types, strict=True)), facts)
            message = self._schema.serialize().to_pybytes()
        columns = np.frombuffer(b"".join(rows)).reshape(len(rows), -1).T.copy()
        arrays = [
            pa.array(x.astype(kind, copy=False))
            for x, kind in zip(columns, self._kinds, strict=True)
        ]
        batch = pa.record_batch(arrays, schema=self._schema)
        # one call, so that other threads wait less
        self._disk.write(message + batch.serialize().to_pybytes())
        self._disk.flush()
        os.fsync(self._disk.fileno())

    def _convert(self) -> None:
        """Converts the stream to a Parquet file, a group of rows at a time."""
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
        raise MissingExtra.of("pyarrow", "io") from error
    return pyarrow
