"""The store of a fleet: the latest row of a log counts, and damaged rows are refused."""

from dataclasses import fields, replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.errors import UnreadableFile
from steelyard.fleet import LogRow
from steelyard.fleet._rows import KnownLog
from steelyard.fleet._store import Store

OPTIONAL = {"start_s", "end_s", "time", "load", "written"}


def row(key: str, **changes) -> LogRow:
    made = LogRow(
        robot="arm0",
        key=key,
        file=f"{key}.npz",
        reduction="r",
        time=datetime(2026, 3, 1, 6, 30, tzinfo=UTC),
        ok=True,
        content="digest",
        duration_s=7.75,
        rate_hz=125.0,
        temperature=(21.5, 22.25),
        warnings=("one",),
        rows=(900, 901),
        noise=(0.25, 0.5),
        widening=(2.0, 3.0),
        torque=(10.5, 11.5),
        factor=np.arange(12.0),
    )
    return replace(made, **changes)


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store", create=True)


@pytest.mark.parametrize("combined", [False, True])
def test_the_latest_row_of_a_log_counts(store, monkeypatch, combined):
    store.add([row("a", load=1.0), row("b", load=2.0)])
    store.add([row("b", load=3.0)])
    store.add([row("a", load=4.0), row("c", load=5.0)])
    if combined:
        monkeypatch.setattr("steelyard.fleet._store._MIN_SMALL_FILES", 3)
        store.combine("arm0")
        assert len(list(store.folder.glob("logs/*/*.parquet"))) == 1
    assert {log.key: log.load for log in store.rows(LogRow)} == {"a": 4.0, "b": 3.0, "c": 5.0}
    assert {log.key: log.load for log in store.rows(KnownLog)} == {"a": 4.0, "b": 3.0, "c": 5.0}


def changed_file(store: Store, change) -> None:
    """Writes the only file of a store again after a change of its table."""
    (path,) = store.folder.glob("logs/*/*.parquet")
    pq.write_table(change(pq.ParquetFile(path).read()), path)


def with_column(table, name, values):
    at = table.column_names.index(name)
    return table.set_column(at, name, pa.array(values, table.schema.field(name).type))


@pytest.mark.parametrize("name", [field.name for field in fields(LogRow) if field.name != "robot"])
def test_a_column_that_is_empty_or_missing_is_refused(store, name):
    store.add([row("a"), row("b")])
    if name not in OPTIONAL:
        changed_file(store, lambda table: with_column(table, name, [None, None]))
        with pytest.raises(UnreadableFile, match="robot=arm0"):
            store.rows(LogRow)
    changed_file(store, lambda table: table.drop_columns(name))
    with pytest.raises(UnreadableFile, match="robot=arm0"):
        store.rows(LogRow)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("noise", [[0.25, None]]),
        ("noise", [[float("nan"), 0.5]]),
        ("noise", [[0.25]]),
        ("rows", [[0, 0]]),
        ("factor", [np.arange(12.0)[::-1]]),
        ("factor", [[None] * 12]),
        ("factor", [[]]),
        ("duration_s", [-1.0]),
    ],
)
def test_cells_that_no_log_has_are_refused(store, name, values):
    store.add([row("a")])
    changed_file(store, lambda table: with_column(table.slice(0, 1), name, values))
    with pytest.raises(UnreadableFile, match="robot=arm0"):
        store.rows(LogRow)


def test_a_factor_without_its_digest_is_refused(store):
    """Otherwise an empty digest would switch the check off."""
    store.add([row("a")])

    def damage(table):
        return with_column(with_column(table, "digest", [""]), "factor", [np.arange(12.0)[::-1]])

    changed_file(store, damage)
    with pytest.raises(UnreadableFile, match=r"the numbers of a\.npz .* were changed"):
        store.rows(LogRow)


def test_a_joint_has_rows_where_its_factor_has_numbers():
    at_rest = np.arange(12.0)
    at_rest[6:] = 0.0
    assert row("a", rows=(900, 0), factor=at_rest).rows == (900, 0)
    with pytest.raises(UnreadableFile, match="not that of joint 2, which has 0 rows"):
        row("a", rows=(900, 0))
    with pytest.raises(UnreadableFile, match="not that of joint 2, which has 901 rows"):
        row("a", factor=at_rest)


def test_a_factor_leaves_no_larger_residuals_than_its_noise():
    """So it is seen when numbers of a factor change places, with a digest that fits."""
    columns = np.random.default_rng(0).normal(size=(2, 900, 3))
    factors = np.linalg.qr(columns, mode="r")
    sound = factors[:, *np.triu_indices(3)].ravel()
    noise = tuple(np.abs(factors[:, 2, 2]) / np.sqrt(897))
    made = row("a", rows=(900, 900), noise=noise, factor=sound)
    assert replace(made, digest=made.digest_of_numbers) is not None
    turned = sound.copy()
    turned[[0, 5]] = 2 * sound[[5, 0]]
    with pytest.raises(UnreadableFile, match="larger residuals than its noise: build the store"):
        replace(made, factor=turned)


def test_texts_that_are_not_utf_8_are_refused(store):
    store.add([row("a")])

    def damage(table):
        words = pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())
        return table.set_column(table.column_names.index("tool"), "tool", words)

    changed_file(store, damage)
    with pytest.raises(UnreadableFile, match=r"robot=arm0: a file is damaged .*build again"):
        store.rows(LogRow)


def test_stamps_that_are_damaged_are_forgotten(store):
    store.stamp({"a.npz": "1"})
    assert store.stamps == {"a.npz": "1"}
    path = store.folder / "stamps.json"
    for files in ("3", "[[1]]", '"x"', "null"):
        path.write_text(path.read_text().partition('"files"')[0] + f'"files": {files}}}')
        assert store.stamps == {}
