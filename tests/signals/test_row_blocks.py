"""Rows in blocks give the samples of rows one by one, also where rows are damaged."""

import numpy as np
import pytest

from steelyard.recording import Preparation
from steelyard.signals import JointPath
from steelyard.signals._row_path import RowPath

RATE_HZ = 125.0
N = 2


def rows_of(seed, *, channels=1, jitter=0.0):
    """Rows [t, motion, tau] of two joints, (400, 1 + (channels + 1) 2)."""
    rng = np.random.default_rng(seed)
    t = 50.0 + np.arange(400) / RATE_HZ + jitter * rng.uniform(-1, 1, 400) / RATE_HZ
    phase = rng.uniform(0, 6, (channels + 1) * N)
    signals = np.sin(np.outer(t, rng.uniform(1, 4, len(phase))) + phase)
    return np.column_stack([t, signals + 1e-4 * rng.normal(size=signals.shape)])


def damaged(rows):
    """The rows with a gap, a NaN, a jump, a repeated time, frozen readings and a clock set back."""
    rows = np.delete(rows, slice(120, 150), axis=0)
    rows[40, 2] = np.nan
    rows[60, 1] += 5.0
    rows[80, 0] = rows[79, 0]
    rows[200:204, 1:] = rows[199, 1:]
    rows[300:, 0] -= 30.0
    return rows


def one_by_one(path, rows):
    state = path.init()
    out = []
    cut = 1 + path.channels * path.n
    for row in rows:
        motion = row[1:cut].reshape(path.channels, path.n)
        state, ready = path.step(state, float(row[0]), motion, row[cut:])
        out += ready
    return out


def in_blocks(path, rows, seed):
    rng = np.random.default_rng(seed)
    state = path.init()
    out = []
    start = 0
    while start < len(rows):
        end = start + int(rng.integers(1, 30))
        state, ready = path.steps(state, rows[start:end])
        out += ready
        start = end
    return out


def test_plain_rows_in_a_block_are_filtered_together(monkeypatch):
    path = JointPath(N, RATE_HZ, Preparation(cutoff_hz=8.0), 1, np.full(N, 6.0))
    rows = rows_of(1)
    expected = one_by_one(path, rows)
    state, first = path.steps(path.init(), rows[:50])
    monkeypatch.delattr(RowPath, "step")
    _, others = path.steps(state, rows[50:])
    assert [sample.t for sample in [*first, *others]] == pytest.approx([x.t for x in expected])


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("channels", "lag_s", "jitter"), [(1, (), 0.0), (1, (0.01, -0.004), 0.2), (3, (), 0.2)]
)
@pytest.mark.parametrize("change", [lambda rows: rows, damaged], ids=["plain", "damaged"])
def test_blocks_give_the_same_samples(seed, channels, lag_s, jitter, change):
    how = Preparation(cutoff_hz=8.0, lag_s=lag_s)
    path = JointPath(N, RATE_HZ, how, channels, np.full(N, 6.0))
    rows = change(rows_of(seed, channels=channels, jitter=jitter))
    expected = one_by_one(path, rows)
    found = in_blocks(path, rows, seed)
    assert len(expected) > 150
    assert [sample.fault for sample in found] == [sample.fault for sample in expected]
    for one, other in zip(found, expected, strict=True):
        if not one.fault:
            assert one.t == pytest.approx(other.t, abs=1e-9)
            np.testing.assert_allclose(one.motion, other.motion, rtol=1e-7, atol=1e-6)
            np.testing.assert_allclose(one.effort, other.effort, rtol=1e-7, atol=1e-7)
