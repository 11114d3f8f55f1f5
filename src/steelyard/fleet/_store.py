"""The store: a folder that any reader of Parquet understands, and that is complete at any time.

    store/fleet.json                       kind and version of the store
    store/reductions/KEY.json              how logs became factors: arm, friction law, preparation
    store/logs/robot=NAME/KEY....parquet   the rows of one to eight logs
    store/logs/robot=NAME/all-....parquet  many rows in one file, once there are many small files
    store/models/NAME.json                 the model of each arm
    store/stamps.json                      state of the files when they were last read; a cache

Rows are written to a temporary file, which is renamed when it is complete. Where small files are
combined, they are deleted after the combined file has been written; a reader in between sees rows
twice. Of the rows with the same `key`, the one with the latest `written` counts.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from steelyard import _saved
from steelyard._codec import require_same
from steelyard.errors import MissingExtra, UnreadableFile
from steelyard.fleet._reduce import Reduction
from steelyard.fleet._rows import LogRow, Row, arrow_schema, column_names, read_rows, to_table
from steelyard.identification import DynamicModel

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 4
_MIN_SMALL_FILES = 32  # of an arm, to be combined
_MAX_ROWS_PER_FILE = 256  # of a combined file: some megabytes
_UNQUOTED = " +@.,-_"
_PARTITION = "robot"  # stands in the name of the folder, not in the files


def _file_schema() -> pa.Schema:
    """The columns of the files: those of a `LogRow` but for the arm."""
    schema = arrow_schema(LogRow)
    columns = schema.remove(schema.get_field_index(_PARTITION))
    return columns.with_metadata({"steelyard.fleet": str(VERSION)})


class Store:
    """The rows, models and reductions of a fleet in a folder.

    Args:
        folder: of the store
        create: whether to create it where it does not exist
    """

    def __init__(self, folder: str | Path, *, create: bool = False) -> None:
        try:
            import pyarrow.dataset  # noqa: F401
        except ImportError:
            raise MissingExtra.of("pyarrow", "fleet") from None
        self.folder = Path(folder)
        self._logs = self.folder / "logs"
        self._reductions: dict[str, Reduction] = {}
        head = self.folder / "fleet.json"
        if head.exists():
            _saved.load(head, "fleet", version=VERSION)
        elif not create:
            raise UnreadableFile(
                f"{folder} is not the store of a fleet: build the fleet from its logs first"
            )
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise UnreadableFile(f"{folder} holds other files: give a new or empty folder")
        else:
            with writing(self.folder):
                self._logs.mkdir(parents=True, exist_ok=True)
                _saved.save({"made": datetime.now(UTC).isoformat()}, "fleet", head, version=VERSION)

    @property
    def robots(self) -> list[str]:
        """Names of the arms that have logs."""
        return sorted(
            unquote(path.name.removeprefix("robot=")) for path in self._logs.glob("robot=*")
        )

    def folder_of(self, kind: str) -> Path:
        """A folder of the store, created where it does not exist.

        Args:
            kind: 'models' or 'reductions'
        """
        folder = self.folder / kind
        with writing(self.folder):
            folder.mkdir(exist_ok=True)
        return folder

    def add(self, rows: Sequence[LogRow]) -> None:
        """Writes rows of one arm, all or none; they replace earlier rows of the same logs.

        Args:
            rows: one or more
        """
        folder = self._folder(rows[0].robot)
        now = datetime.now(UTC)
        name = "-".join(dict.fromkeys((rows[0].key, rows[-1].key)))
        stored = [replace(row, written=now, digest=row.digest_of_numbers) for row in rows]
        table = to_table(stored, LogRow)
        with writing(self.folder):
            folder.mkdir(parents=True, exist_ok=True)
            _write(table.drop_columns(_PARTITION).cast(_file_schema()), folder / f"{name}.parquet")

    def rows(
        self, kind: type[Row], robots: Iterable[str] | None = None, *, without: Sequence[str] = ()
    ) -> list[Row]:
        """The latest row of each log, ordered by arm and time.

        Args:
            kind: `LogRow`, or a dataclass with some of its fields
            robots: names of the arms; all by default
            without: fields with a default that are not read
        """
        names = [name for name in column_names(kind) if name not in without]
        wanted = self.robots if robots is None else robots
        found: list[Row] = []
        for robot in wanted:
            with self._reading(robot):
                table = self._table(robot, names)
                if table is not None:
                    read = read_rows(table.select(names), kind)
                    if "factor" in names:
                        _require_factors(read)
                    found += read
        return found

    def combine(self, robot: str) -> None:
        """Combines the small files of an arm, where there are many.

        Args:
            robot: its name
        """
        folder = self._folder(robot)
        small = [path for path in folder.glob("*.parquet") if not path.name.startswith("all-")]
        if len(small) < _MIN_SMALL_FILES:
            return
        before = set(folder.glob("*.parquet"))
        with self._reading(robot):
            table = self._table(robot, _file_schema().names)
        if table is None:
            return
        table = table.drop_columns(_PARTITION)
        kept = set()
        with writing(self.folder):
            for start in range(0, len(table), _MAX_ROWS_PER_FILE):
                piece = table.slice(start, _MAX_ROWS_PER_FILE)
                pairs = zip(piece["key"], piece["written"], strict=True)
                keys = "".join(f"{key}{written}" for key, written in pairs)
                path = folder / f"all-{hashlib.sha256(keys.encode()).hexdigest()[:16]}.parquet"
                if path not in before:
                    _write(piece, path)
                kept.add(path)
            for path in before - kept:
                path.unlink()

    def reduction(self, key: str) -> Reduction:
        """How logs became factors.

        Args:
            key: of the reduction
        """
        if key not in self._reductions:
            path = self.folder / "reductions" / f"{key}.json"
            content = _saved.load(path, "reduction", version=VERSION)
            with _saved.reading(path, "reduction"):
                names = content.pop("names")
                found = Reduction.from_dict(content)
                require_same(list(found.parameters.names), names, "names")
            self._reductions[key] = found
        return self._reductions[key]

    def keep(self, reduction: Reduction) -> None:
        """Stores how logs become factors.

        Args:
            reduction: of the rows to come
        """
        path = self.folder_of("reductions") / f"{reduction.key}.json"
        if not path.exists():
            content = {**reduction.to_arrays(), "names": list(reduction.parameters.names)}
            with writing(self.folder):
                _saved.save(content, "reduction", path, version=VERSION)
        self._reductions[reduction.key] = reduction

    @property
    def stamps(self) -> dict[str, str]:
        """State of each file when it was last read, as its file system describes it."""
        path = self.folder / "stamps.json"
        try:
            with _saved.reading(path, "stamps"):
                return dict(_saved.load(path, "stamps", version=VERSION)["files"])
        except UnreadableFile:
            return {}

    def stamp(self, files: dict[str, str]) -> None:
        """Stores the state of files.

        Args:
            files: their state as the file system describes it, by path
        """
        with writing(self.folder):
            _saved.save({"files": files}, "stamps", self.folder / "stamps.json", version=VERSION)

    def model_path(self, robot: str) -> Path:
        """The file of the model of an arm."""
        return self.folder / "models" / f"{quote(robot, safe=_UNQUOTED)}.json"

    def model(self, robot: str) -> DynamicModel | None:
        """The model of an arm; None where it has not been identified.

        Args:
            robot: its name
        """
        path = self.model_path(robot)
        if path.exists():
            return DynamicModel.load(path)
        return None

    def _folder(self, robot: str) -> Path:
        return self._logs / f"robot={quote(robot, safe=_UNQUOTED)}"

    @contextmanager
    def _reading(self, robot: str) -> Iterator[None]:
        """Adds the folder to errors about rows that do not fit."""
        try:
            with _saved.parsing("a file is damaged", "remove the folder and build again"):
                yield
        except UnreadableFile as error:
            raise UnreadableFile(f"{self._folder(robot)}: {error}") from error

    def _table(self, robot: str, columns: Sequence[str]) -> pa.Table | None:
        """The latest rows of an arm in the order of time; None where it has none."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        needed = ("key", "time", "file", "written")
        names = [name for name in dict.fromkeys((*needed, *columns)) if name != _PARTITION]
        tables = []
        for path in sorted(self._folder(robot).glob("*.parquet")):
            with _saved.parsing(f"{path} cannot be read", "remove it and build again"):
                file = pq.ParquetFile(path)
                _require_version(file, path)
                tables.append(file.read(columns=names))
        if not tables:
            return None
        table = _latest(pa.concat_tables(tables))
        table = table.sort_by([("time", "ascending"), ("file", "ascending")])
        return table.append_column(_PARTITION, pa.array([robot] * len(table), pa.string()))


def _require_factors(rows: Sequence[object]) -> None:
    """Refuses usable logs without a factor, where factors were read."""
    for row in rows:
        if isinstance(row, LogRow) and row.ok and not len(row.factor):
            raise UnreadableFile(
                f"the row of {row.file} ({row.robot}) has no factor: build the store again"
            )


def _latest(table: pa.Table) -> pa.Table:
    """The row of each key that was written last."""
    keys = table["key"].to_pylist()
    written = table["written"].to_pylist()
    latest: dict[str, int] = {}
    for i, key in enumerate(keys):
        if key not in latest or written[i] > written[latest[key]]:
            latest[key] = i
    return table.take(list(latest.values()))


def write_table(table: pa.Table, path: Path) -> None:
    """Writes a table as .parquet or .csv, whole or not at all.

    Args:
        table: any
        path: of the file
    """
    import pyarrow.csv

    if path.suffix.lower() == ".parquet":
        _write(table, path)
        return
    if path.suffix.lower() != ".csv":
        raise UnreadableFile(f"{path}: a table is written as .parquet or .csv")
    flat = [name for name in table.column_names if not str(table[name].type).startswith("list")]
    with _saved.replacing(path) as part:
        pyarrow.csv.write_csv(table.select(flat), part)


def _write(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    with _saved.replacing(path) as part:
        pq.write_table(table, part, compression="zstd")


def _require_version(file: Any, path: Path) -> None:
    found = (file.schema_arrow.metadata or {}).get(b"steelyard.fleet", b"none").decode()
    if found != str(VERSION):
        raise UnreadableFile(
            f"{path} has version {found}, this steelyard reads version {VERSION}: build the store"
            " again"
        )


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turns an error while the store is written into one clear line.

    Args:
        folder: of the store
    """
    try:
        yield
    except (OSError, UnreadableFile) as failure:
        error = failure if isinstance(failure, OSError) else failure.__cause__
        if not isinstance(error, OSError):
            raise
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            why = "the disk is full"
        else:
            why = error.strerror or str(error)
        raise UnreadableFile(
            f"cannot write to {folder}: {why}; its files are complete, and building again"
            " continues from there"
        ) from error
