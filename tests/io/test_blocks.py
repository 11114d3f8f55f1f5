"""A recording in blocks: together they are the whole, in constant memory."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.errors import InvalidRecording, UnreadableFile
from steelyard.io import _binary as binary
from steelyard.io import read, recording_blocks, write
from steelyard.recording import Recording
from steelyard.recording._columns import Requested

EPOCH = 1.7e9


@pytest.fixture
def recording(rng):
    """Half a minute with jitter, repeated times and a hole of six seconds."""
    t = np.cumsum(rng.choice([0.0, 0.01, 0.012], 2000))
    t[900:] += 6.0
    return Recording(
        t=t,
        q=rng.standard_normal((2000, 2)),
        tau=rng.standard_normal((2000, 2)),
        epoch_s=EPOCH,
        notes=("a",),
    )


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch):
    monkeypatch.setattr(binary, "GROUP_ROWS", 128)


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
@pytest.mark.parametrize(
    ("block_s", "overlap_s"), [(1.0, 0.25), (0.7, 0.0), (2.5, 4.0), (0.02, 0.03), (1e3, 1.0)]
)
def test_the_cores_are_the_whole_and_the_overlaps_are_there(
    tmp_path, recording, suffix, block_s, overlap_s
):
    path = tmp_path / f"a{suffix}"
    write(recording, path)
    numbers = np.flatnonzero(
        np.bincount(np.searchsorted(np.arange(1, 10**4) * block_s, recording.t, "right"))
    )
    blocks = list(recording_blocks(path, block_s=block_s, overlap_s=overlap_s))
    for k, block in zip(numbers, blocks, strict=True):
        whole = recording.between(k * block_s - overlap_s, (k + 1) * block_s + overlap_s)
        np.testing.assert_array_equal(block.q, whole.q)
        np.testing.assert_array_equal(block.tau, whole.tau)
        np.testing.assert_array_equal(block.t, whole.t)
        assert block.epoch_s == whole.epoch_s
        assert block.notes == recording.notes


def test_a_jump_of_the_clock_does_not_walk_through_empty_blocks(tmp_path):
    recording = Recording(t=[0.0, 1.0, 1e10, 1e10 + 1], q=np.ones((4, 1)))
    write(recording, tmp_path / "a.parquet")
    blocks = list(recording_blocks(tmp_path / "a.parquet", block_s=10.0, overlap_s=1.0))
    assert [len(block) for block in blocks] == [2, 2]
    assert blocks[1].epoch_s == 1e10


def test_a_foreign_file_in_blocks(tmp_path):
    t = 50.0 + np.arange(1000) / 100
    pq.write_table(pa.table({"time": t, "angle_0": 90 * t}), tmp_path / "a.parquet")
    said = Requested({"q": "angle_"}, joint_names=("hip",), degrees=True)
    blocks = list(
        recording_blocks(tmp_path / "a.parquet", block_s=4.0, overlap_s=0.5, requested=said)
    )
    assert [(round(b.epoch_s, 6), len(b), b.joint_names) for b in blocks] == [
        (50.0, 451, ("hip",)),
        (53.5, 501, ("hip",)),
        (57.5, 250, ("hip",)),
    ]
    np.testing.assert_allclose(blocks[1].q[:, 0], np.pi / 2 * (53.5 + blocks[1].t))


def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(binary, "GROUP_ROWS", 4096)
    rows, peaks = 4096, {}
    values = np.random.default_rng(0).standard_normal((rows, 8))
    for groups in (8, 64):
        path = tmp_path / f"{groups}.parquet"
        names = ["t", *(f"q_{k}" for k in range(8))]
        schema = pa.schema([(name, pa.float64()) for name in names])
        with pq.ParquetWriter(path, schema) as writer:
            for k in range(groups):
                columns = [(k * rows + np.arange(rows)) / 1e3, *values.T]
                writer.write_table(pa.table(dict(zip(names, columns, strict=True)), schema))
        before = pa.total_allocated_bytes()
        blocks = recording_blocks(path, block_s=4.0, overlap_s=0.5)
        peaks[groups] = max(pa.total_allocated_bytes() - before for _ in blocks)
    assert peaks[64] < 1.5 * peaks[8] < 64 * rows * 9 * 8 / 4


def test_refusals(tmp_path, recording):
    write(recording, tmp_path / "a.parquet")
    for block_s, overlap_s in ((0.0, 1.0), (1.0, -1.0), (np.nan, 1.0)):
        with pytest.raises(
            InvalidRecording, match=r"block_s must be positive and overlap_s not negative, got"
        ):
            recording_blocks(tmp_path / "a.parquet", block_s=block_s, overlap_s=overlap_s)
    with pytest.raises(UnreadableFile, match=r"no\.parquet: no such file"):
        recording_blocks(tmp_path / "no.parquet", block_s=1.0, overlap_s=0.0)


@pytest.mark.parametrize(
    ("t", "message"),
    [
        (
            np.r_[np.arange(200), np.arange(50)],
            r"time goes back or is not a number in row 201: 0\.000000 s",
        ),
        (
            np.r_[np.arange(128), np.nan, 130],
            r"time goes back or is not a number in row 129: nan s; sort",
        ),
        (np.empty(0), r"a\.parquet: it has columns, but no rows"),
    ],
)
def test_bad_clocks_of_foreign_files(tmp_path, t, message):
    pq.write_table(
        pa.table({"t": pa.array(t, pa.float64()), "q_0": pa.array(np.ones(len(t)))}),
        tmp_path / "a.parquet",
    )
    with pytest.raises(UnreadableFile, match=message):
        list(recording_blocks(tmp_path / "a.parquet", block_s=10.0, overlap_s=0.0))


def test_a_signal_that_stops_in_the_middle_is_reported_with_its_block(tmp_path):
    tau = np.where(np.arange(400) < 150, 1.0, np.nan)
    recording = Recording(t=np.arange(400) / 100, q=np.ones((400, 1)), tau=tau[:, None])
    write(recording, tmp_path / "a.parquet")
    assert len(read(tmp_path / "a.parquet")) == 400
    with pytest.raises(
        UnreadableFile, match=r"a\.parquet, block from 2 s: tau, column 1 of 1: every value is NaN"
    ):
        list(recording_blocks(tmp_path / "a.parquet", block_s=1.0, overlap_s=0.0))
