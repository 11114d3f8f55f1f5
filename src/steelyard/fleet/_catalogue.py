"""The catalogue of logs: a table, a folder or a pattern, here or at any fsspec address.

A table (CSV or Parquet) has the columns `robot` (the name of one arm), `model` (or `urdf`: a
bundled arm, a .urdf or .toml file, or an identified model) and `file`; further `time`, `tool`,
`load` (configured, [kg]; 0 is empty), `temperature` [degrees Celsius], and `start_s`, `end_s` of a
work cycle in its file. Names of files are relative to the table. In a folder or pattern the folder
of a log is the name of its arm.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any
from urllib.parse import quote

from steelyard import _saved
from steelyard._codec import Value
from steelyard._kinds import ONE_LINE
from steelyard.errors import MissingExtra, UnreadableFile
from steelyard.fleet._rows import LOADS, TEMPERATURES, TIMES, require_cycle

_NEEDED = ("robot", "model", "file")
_NUMBERS = ("load", "temperature", "start_s", "end_s")
_COLUMNS = (*_NEEDED, "time", "tool", *_NUMBERS)
_LOG_ENDINGS = (".parquet", ".npz", ".csv", ".tsv", ".txt", ".db3", ".mcap")
_TABLE_ENDINGS = (".csv", ".parquet")
_MAX_NAME = 200  # letters of an arm in the name of its folder
_LATEST_S = 7.2e9  # of a time in seconds since 1970: the year 2198; larger are other units


@dataclass(frozen=True)
class Entry(Value):
    """One log, or one work cycle of a log.

    Attributes:
        robot: name of the arm
        model: of the arm: the name of a bundled one, or a file
        file: of the log, as the catalogue gives it
        path: of the file, or its address
        time: when it began; None where the catalogue gives none
        tool: of the arm; empty where the catalogue gives none
        load: configured payload beyond the tool, [kg]; None where the catalogue gives none
        temperature: of the arm, [degrees Celsius]; None where the catalogue gives none
        start_s: where the work cycle begins in the log, [s]; None for its beginning
        end_s: where it ends, [s]; None for its end
    """

    robot: Annotated[str, ONE_LINE]
    model: str
    file: Annotated[str, ONE_LINE]
    path: str
    time: datetime | None = None
    tool: Annotated[str, ONE_LINE] = ""
    load: Annotated[float | None, LOADS] = None
    temperature: Annotated[float | None, TEMPERATURES] = None
    start_s: Annotated[float | None, TIMES] = None
    end_s: Annotated[float | None, TIMES] = None

    def __post_init__(self) -> None:
        """Checks every field, and that the work cycle ends after it begins."""
        super().__post_init__()
        if len(quote(self.robot)) > _MAX_NAME:
            raise ValueError(f"'robot' is too long for the name of a folder: {self.robot[:40]}...")
        require_cycle(self.start_s, self.end_s, f"the work cycle of {self.file}")

    @property
    def key(self) -> str:
        """A digest that identifies the entry."""
        words = "\0".join((self.robot, self.file, str(self.start_s), str(self.end_s)))
        return hashlib.sha256(words.encode()).hexdigest()[:24]


def read_catalogue(source: str, *, model: str | None = None) -> list[Entry]:
    """The logs of a catalogue.

    Args:
        source: a table, a folder or a pattern, here or at an fsspec address
        model: of all arms, where the catalogue is no table or its table has none
    """
    fs, root = filesystem(source)
    if "*" in root or fs.isdir(root):
        entries = list(_found(fs, root, source, model))
    elif not fs.exists(root):
        raise UnreadableFile(f"there is no catalogue {source}: give a table, a folder or a pattern")
    elif PurePosixPath(root).suffix.lower() not in _TABLE_ENDINGS:
        raise UnreadableFile(
            f"{source}: a catalogue is a .csv or .parquet table, a folder or a pattern"
        )
    else:
        entries = [_entry(row, i, source, model) for i, row in enumerate(_rows(fs, root, source))]
    if not entries:
        raise UnreadableFile(f"{source}: there are no logs in this catalogue")
    _require_one_arm_per_name(entries, source)
    return list(dict.fromkeys(entries))


def filesystem(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it.

    Args:
        address: a path, or an address such as s3://bucket/log.parquet
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtra.of("fsspec", "fleet") from None
    try:
        fs, path = url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise UnreadableFile(f"{address}: {error}") from error
    return fs, str(path)


def _found(fs: Any, root: str, source: str, model: str | None) -> Iterator[Entry]:
    """The logs in a folder or of a pattern."""
    if model is None:
        raise UnreadableFile(
            f"{source}: a folder of logs does not say what its arms are; give `robot`, a bundled"
            " name or a file"
        )
    if "*" in root:
        paths = fs.glob(root)
    else:
        paths = fs.find(root)
    for path in sorted(
        path for path in paths if PurePosixPath(path).suffix.lower() in _LOG_ENDINGS
    ):
        yield Entry(PurePosixPath(path).parent.name, model, path, fs.unstrip_protocol(path))


def _rows(fs: Any, root: str, source: str) -> list[dict[str, Any]]:
    """The rows of a table; a column has one type, None is an empty cell."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    content = io.BytesIO(fs.cat_file(root))
    with _saved.parsing(f"{source} is not a table", "write it again"):
        if root.lower().endswith(".parquet"):
            whole = pa.parquet.read_table
        else:
            whole = pa.csv.read_csv
        table: Any = whole(content)
        names = ["model" if name == "urdf" else name for name in table.column_names]
        rows: list[dict[str, Any]] = table.rename_columns(names).to_pylist()
    for name in names:
        if name not in _COLUMNS:
            raise UnreadableFile(
                f"{source}: a catalogue has no column '{name}'; it may have {', '.join(_COLUMNS)}"
            )
        if names.count(name) > 1:
            raise UnreadableFile(f"{source}: column '{name}' stands in it twice")
    return rows


def _entry(row: Mapping[str, Any], i: int, source: str, model: str | None) -> Entry:
    given = {
        "model": model,
        **{name: value for name, value in row.items() if value not in (None, "")},
    }
    for name in _NEEDED:
        if not given.get(name):
            raise UnreadableFile(
                f"{source}, row {i + 1}: '{name}' is missing; a log needs {', '.join(_NEEDED)}"
                " (`robot` stands for a missing 'model')"
            )
    path = _beside(source, str(given["file"]))
    arm = str(given["model"])
    if PurePosixPath(arm).suffix and "model" in row and row["model"]:
        arm = _beside(source, arm)
    try:
        return Entry(
            str(given["robot"]),
            arm,
            str(given["file"]),
            path,
            _time(given.get("time")),
            str(given.get("tool", "")),
            **{name: float(given[name]) for name in _NUMBERS if name in given},
        )
    except (ArithmeticError, OSError, TypeError, ValueError) as error:
        raise UnreadableFile(f"{source}, row {i + 1}: {error}") from None


def _time(value: Any) -> datetime | None:
    """A time with its zone: UTC where it has none; numbers are seconds since 1970."""
    if value is None:
        return None
    if isinstance(value, int | float):
        if not 0 <= value <= _LATEST_S:
            raise ValueError(f"time is {value:g}, not a number of seconds since 1970")
        return datetime.fromtimestamp(value, UTC)
    if isinstance(value, datetime):
        when = value
    else:
        try:
            when = datetime.fromisoformat(str(value))
        except ValueError:
            raise ValueError(
                f"time is '{value}'; write it as 2026-01-31 or 2026-01-31T14:05:00+01:00"
            ) from None
    if when.tzinfo is None:
        return when.replace(tzinfo=UTC)
    return when.astimezone(UTC)


def _beside(source: str, name: str) -> str:
    """A name in a table as a path or address."""
    if "://" in name or Path(name).is_absolute():
        return name
    if "://" in source:
        return f"{source.rpartition('/')[0]}/{name}"
    return str((Path(source).parent / name).absolute())


def _require_one_arm_per_name(entries: Sequence[Entry], source: str) -> None:
    models: dict[str, str] = {}
    owners: dict[str, str] = {}
    for entry in entries:
        if models.setdefault(entry.robot, entry.model) != entry.model:
            raise UnreadableFile(
                f"{source}: '{entry.robot}' has two models, {models[entry.robot]} and"
                f" {entry.model}: if these are two arms, give each its own name"
            )
        if owners.setdefault(entry.path, entry.robot) != entry.robot:
            raise UnreadableFile(
                f"{source}: {entry.file} is listed for two arms, '{owners[entry.path]}' and"
                f" '{entry.robot}'"
            )
