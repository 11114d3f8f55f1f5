"""Typed rows of a fleet: every field survives a table, and columns that do not fit are refused."""

from dataclasses import fields, replace
from datetime import UTC, datetime

import numpy as np
import pytest

from steelyard.errors import UnknownName, UnreadableFile
from steelyard.fleet import LogPayload, LogRow, SeriesChange, to_table
from steelyard.fleet._engine import engine
from steelyard.fleet._rows import KnownLog, read_rows

TIME = datetime(2026, 3, 1, 6, 30, tzinfo=UTC)
LOG = LogRow(
    robot="arm0",
    key="k",
    file="a.npz",
    reduction="r",
    start_s=1.5,
    end_s=9.25,
    time=TIME,
    tool="gripper",
    load=1.5,
    ok=True,
    reason="",
    content="digest",
    duration_s=7.75,
    rate_hz=125.0,
    temperature=(21.5, 22.25),
    warnings=("one", "two"),
    from_currents=True,
    rows=(900, 901),
    noise=(0.25, 0.5),
    widening=(2.0, 3.0),
    torque=(10.5, 11.5),
    factor=np.arange(12.0),
)
LOG = replace(LOG, digest=LOG.digest_of_numbers, written=TIME)
PAYLOAD = LogPayload(
    *("arm0", "a.npz", None, 9.25, TIME, "", None, 1.5, 0.02, None),
    *(0.01, 0.02, 0.03, 0.001, 0.002, 0.003, False, "doubtful", ("not_excited",)),
)
CHANGE = SeriesChange(
    "arm0", 2, "Fc", "change", TIME, True, 0.5, 0.1, 3.0, 1e-4, "words", 0.02, True
)


@pytest.mark.parametrize("row", [LOG, PAYLOAD, CHANGE], ids=lambda row: type(row).__name__)
def test_every_field_survives_a_table(row):
    (again,) = read_rows(to_table([row], type(row)), type(row))
    for field in fields(row):
        np.testing.assert_array_equal(getattr(again, field.name), getattr(row, field.name))
        assert type(getattr(again, field.name)) is type(getattr(row, field.name))


def test_an_empty_table_has_all_columns():
    table = to_table([], LogPayload)
    assert table.column_names == [field.name for field in fields(LogPayload)]
    assert read_rows(table, LogPayload) == []


def test_some_fields_of_a_row_can_be_read_alone():
    (known,) = read_rows(to_table([LOG], LogRow), KnownLog)
    assert known == KnownLog("k", "digest", "r", 1.5, "gripper", TIME)


def test_columns_that_do_not_fit_are_refused():
    import pyarrow as pa

    table = to_table([LOG], LogRow)
    place = table.column_names.index("ok")
    words = table.set_column(place, "ok", pa.array(["yes"]))
    with pytest.raises(UnreadableFile, match="column 'ok' holds string, where bool is needed"):
        read_rows(words, LogRow)
    empty = table.set_column(place, "ok", pa.array([None], pa.bool_()))
    with pytest.raises(UnreadableFile, match="column 'ok' has 1 empty cells"):
        read_rows(empty, LogRow)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"noise": (0.1, float("nan"))}, r"'noise\[1\]' must be a finite number from 0"),
        ({"noise": (0.1, -0.1)}, r"'noise\[1\]' must be a finite number from 0"),
        ({"noise": (1e90, 0.1)}, r"'noise\[0\]' must be a finite number from 0"),
        ({"torque": (10.5, 2e6)}, r"'torque\[1\]' must be a finite number from 0"),
        ({"widening": (0.5, 1.0)}, r"'widening\[0\]' must be a finite number of at least 1"),
        ({"rows": (900, -1)}, r"'rows\[1\]' must be a whole number of at least 0"),
        ({"rows": (0, 0)}, "has no rows"),
        ({"load": -1.0}, "'load' must be a finite number from 0 to 5000"),
        ({"load": 5001.0}, "'load' must be a finite number from 0 to 5000"),
        ({"rate_hz": 2e5}, "'rate_hz' must be a finite number from 0"),
        ({"duration_s": 2e8}, "'duration_s' must be a finite number from 0"),
        ({"start_s": -1.0}, "'start_s' must be a finite number from 0"),
        ({"start_s": 9.25}, "ends at 9.25 s, and begins at 9.25 s"),
        ({"start_s": None, "end_s": 0.0}, "ends at 0 s, and begins at 0 s"),
        ({"temperature": (1e9,)}, r"'temperature\[0\]' must be a finite number from -273"),
        ({"factor": np.full(12, np.inf)}, "'factor' must be finite"),
    ],
)
def test_numbers_that_no_log_has_are_refused(changes, words):
    with pytest.raises(UnreadableFile, match=words):
        replace(LOG, **changes)


def test_numbers_that_were_changed_after_they_were_stored_are_refused():
    stored = replace(LOG, digest=LOG.digest_of_numbers)
    for changes in ({"factor": LOG.factor[::-1]}, {"rows": (900, 902)}, {"torque": (10.5, 11.0)}):
        with pytest.raises(UnreadableFile, match="were changed after they were stored: build"):
            replace(stored, **changes)
    replace(stored, load=2.0)  # what the catalogue says may change


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(UnreadableFile, match=r"a\.npz \(arm0\): 'noise' must have shape"):
        replace(LOG, noise=(1.0, 2.0, 3.0))
    with pytest.raises(UnreadableFile, match="has 11 numbers, which are no triangles of 2 joints"):
        replace(LOG, factor=np.arange(11.0))


@pytest.mark.parametrize("workers", [0, -1, 10**9, int("1" * 500)])
def test_a_number_of_processes_is_that_of_one_machine(workers):
    with (
        pytest.raises(UnknownName, match="`workers` must be a number from 1 to 1024, got"),
        engine(workers=workers),
    ):
        pass
