"""The store: a folder that any reader of Parquet understands, and that is complete at every moment.

    store/fleet.json                     kind and version of the store
    store/reductions/KEY.json            how logs became factors: arm, friction law, preparation, unknowns
    store/logs/robot=NAME/KEY....parquet     the rows of one to eight logs, as soon as they are complete
    store/logs/robot=NAME/all-....parquet    many rows in one file, once there are many such files
    store/models/NAME.json               the model of each arm (`steelyard fleet identify`)
    store/stamps.json                    when files were last looked at; only saves time

Rows are written beside their place and moved there when they are whole. Where rows are gathered in
one file, the small files go after that file has come; whoever reads in between sees a row twice:
the latest `written` of a `key` counts.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from steelyard import saved
from steelyard.errors import MissingExtra, UnreadableFile
from steelyard.fleet._reduce import Reduction
from steelyard.identification import DynamicModel

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 1
_MANY = 32  # small files of an arm, beyond which they are gathered
_MOST_ROWS = 256  # of a gathered file: some megabytes
_SAFE = " +@.,-_"


def _schema() -> pa.Schema:
    import pyarrow as pa

    words = pa.string()
    number = pa.float64()
    numbers = pa.list_(pa.float64())
    time = pa.timestamp("us", "UTC")
    fields = {
        "key": words,
        "file": words,
        "start_s": number,
        "end_s": number,
        "time": time,
        "duration_s": number,
        "rate_hz": number,
        "tool": words,
        "load": number,
        "temperature": numbers,
        "ok": pa.bool_(),
        "reason": words,
        "warnings": pa.list_(words),
        "content": words,
        "reduction": words,
        "from_currents": pa.bool_(),
        "rows": pa.list_(pa.int64()),
        "noise": numbers,
        "widening": numbers,
        "torque": numbers,
        "factor": numbers,
        "written": time,
    }
    return pa.schema(fields, metadata={"steelyard.fleet": str(VERSION)})


class Store:
    """The rows, models and reductions of a fleet in a folder.

    Args:
        folder: of the store
        make: whether to make it where there is none
    """

    def __init__(self, folder: str | Path, *, make: bool = False) -> None:
        try:
            import pyarrow.dataset  # noqa: F401
        except ImportError:
            raise MissingExtra("pyarrow", "fleet") from None
        self.folder = Path(folder)
        self._logs = self.folder / "logs"
        self._reductions: dict[str, Reduction] = {}
        head = self.folder / "fleet.json"
        if head.exists():
            saved.load(head, "fleet", version=VERSION)
        elif not make:
            raise UnreadableFile(
                f"{folder} is no store of a fleet: make one with steelyard fleet build"
            )
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise UnreadableFile(f"{folder} holds other files: give a folder of its own to a store")
        else:
            with writing(self.folder):
                self._logs.mkdir(parents=True, exist_ok=True)
                saved.save({"made": datetime.now(UTC).isoformat()}, "fleet", head, version=VERSION)

    @property
    def robots(self) -> list[str]:
        """Names of the arms that have logs."""
        return sorted(
            unquote(path.name.removeprefix("robot=")) for path in self._logs.glob("robot=*")
        )

    def folder_of(self, kind: str) -> Path:
        """A folder of the store, made where there is none.

        Args:
            kind: 'models' or 'reductions'
        """
        folder = self.folder / kind
        with writing(self.folder):
            folder.mkdir(exist_ok=True)
        return folder

    def add(self, rows: Sequence[dict[str, Any]]) -> None:
        """Writes the rows of logs of one arm, all or none; what the store had of these logs is replaced.

        Args:
            rows: one or more, as `reduce_log` gives them
        """
        import pyarrow as pa

        folder = self._folder(rows[0]["robot"])
        now = datetime.now(UTC)
        name = "-".join(dict.fromkeys((rows[0]["key"], rows[-1]["key"])))
        table = pa.Table.from_pylist([{**row, "written": now} for row in rows], schema=_schema())
        with writing(self.folder):
            folder.mkdir(parents=True, exist_ok=True)
            _write(table, folder / f"{name}.parquet")

    def rows(self, columns: Sequence[str], robots: Iterable[str] | None = None) -> pa.Table:
        """The rows of some arms, the latest of each log, arms and times in order; with the arm as `robot`.

        Args:
            columns: beside `robot`, `key`, `time`, `file` and `written`
            robots: their names; all by default
        """
        import pyarrow as pa

        always = ["key", "time", "file", "written"]
        names = list(dict.fromkeys([*always, *columns]))
        if robots is None:
            wanted = self.robots
        else:
            wanted = list(robots)
        tables = [table for robot in wanted if (table := self._of(robot, names)) is not None]
        if not tables:
            chosen = _schema().empty_table().select(names)
            return chosen.append_column("robot", pa.array([], pa.string()))
        return pa.concat_tables(tables)

    def tidy(self, robot: str) -> None:
        """Gathers the small files of an arm in large ones, where there are many.

        Args:
            robot: its name
        """
        folder = self._folder(robot)
        small = [path for path in folder.glob("*.parquet") if not path.name.startswith("all-")]
        if len(small) < _MANY:
            return
        table = self._of(robot, _schema().names)
        if table is None:
            return
        gone = set(folder.glob("*.parquet"))
        kept = set()
        table = table.drop_columns("robot")
        with writing(self.folder):
            for start in range(0, len(table), _MOST_ROWS):
                piece = table.slice(start, _MOST_ROWS)
                keys = "".join(
                    f"{k}{w}" for k, w in zip(piece["key"], piece["written"], strict=True)
                )
                path = folder / f"all-{hashlib.sha256(keys.encode()).hexdigest()[:16]}.parquet"
                if path not in gone:
                    _write(piece, path)
                kept.add(path)
            for path in gone - kept:
                path.unlink()

    def reduction(self, key: str) -> Reduction:
        """How logs became factors.

        Args:
            key: of the reduction
        """
        if key not in self._reductions:
            path = self.folder / "reductions" / f"{key}.json"
            content = saved.load(path, "reduction", version=VERSION)
            with saved.reading(path, "reduction"):
                self._reductions[key] = Reduction.from_dict(content)
        return self._reductions[key]

    def keep(self, reduction: Reduction) -> None:
        """Writes down how logs become factors.

        Args:
            reduction: of the rows to come
        """
        path = self.folder_of("reductions") / f"{reduction.key}.json"
        if not path.exists():
            content = {**reduction.to_dict(), "names": list(reduction.parameters.names)}
            with writing(self.folder):
                saved.save(content, "reduction", path, version=VERSION)
        self._reductions[reduction.key] = reduction

    @property
    def stamps(self) -> dict[str, str]:
        """What the file system said of each file when it was last looked at."""
        try:
            return dict(saved.load(self.folder / "stamps.json", "stamps", version=VERSION)["files"])
        except UnreadableFile:
            return {}

    def stamp(self, files: dict[str, str]) -> None:
        """Writes down what the file system says of files.

        Args:
            files: its words, by path
        """
        with writing(self.folder):
            saved.save({"files": files}, "stamps", self.folder / "stamps.json", version=VERSION)

    def model_path(self, robot: str) -> Path:
        """Where the model of an arm lies."""
        return self.folder / "models" / f"{quote(robot, safe=_SAFE)}.json"

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
        return self._logs / f"robot={quote(robot, safe=_SAFE)}"

    def _of(self, robot: str, columns: Sequence[str]) -> pa.Table | None:
        """The latest rows of an arm in the order of time; None where there are none."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        tables = []
        for path in sorted(self._folder(robot).glob("*.parquet")):
            try:
                file = pq.ParquetFile(path)
                _require_version(file, path)
                tables.append(file.read(columns=list(columns)))
            except (pa.ArrowException, OSError) as error:
                raise UnreadableFile(
                    f"{path} cannot be read: {error}; remove it and build again"
                ) from error
        if not tables:
            return None
        whole = pa.concat_tables(tables)
        keys = whole["key"].to_pylist()
        written = whole["written"].to_pylist()
        latest: dict[str, int] = {}
        for i, key in enumerate(keys):
            if key not in latest or written[i] > written[latest[key]]:
                latest[key] = i
        whole = whole.take(list(latest.values())).sort_by(
            [("time", "ascending"), ("file", "ascending")]
        )
        return whole.append_column("robot", pa.array([robot] * len(whole), pa.string()))


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
    with saved.replacing(path) as part:
        pyarrow.csv.write_csv(table.select(flat), part)


def _write(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    with saved.replacing(path) as part:
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
    """Turns what goes wrong while the store is written into one clear line.

    Args:
        folder: of the store
    """
    try:
        yield
    except (OSError, UnreadableFile) as failure:
        error = failure if isinstance(failure, OSError) else failure.__cause__
        if not isinstance(error, OSError):
            raise
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        if full:
            why = "the disk is full"
        else:
            why = error.strerror or str(error)
        raise UnreadableFile(
            f"cannot write to {folder}: {why}; what is there is whole, and the same command goes"
            " on from it"
        ) from error
