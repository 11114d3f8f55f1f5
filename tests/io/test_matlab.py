"""MATLAB files: arrays by name, in structs, with joints as rows; refusals."""

import numpy as np
import pytest
from scipy.io import savemat

from steelyard.errors import UnreadableFile
from steelyard.io import read


@pytest.fixture
def signals(rng):
    t = np.arange(50) / 100.0
    return {"t": t, "q": rng.normal(size=(50, 3)), "tau": rng.normal(size=(50, 3))}


def require_same(recording, signals):
    np.testing.assert_array_equal(recording.t, signals["t"])
    np.testing.assert_array_equal(recording.q, signals["q"])
    np.testing.assert_array_equal(recording.tau, signals["tau"])


def test_arrays_by_name(tmp_path, signals):
    path = tmp_path / "log.mat"
    savemat(path, {**signals, "comment": "warm"})
    recording = read(path)
    require_same(recording, signals)
    assert recording.source == "log.mat"
    assert not any("transposed" in note for note in recording.notes)


def test_arrays_in_a_struct_with_a_row_for_each_joint_and_without_time(tmp_path, signals):
    path = tmp_path / "log.mat"
    content = {"run": {"motion": {"q": signals["q"].T}, "torques": signals["tau"].T}}
    savemat(path, content)
    recording = read(path, columns={"tau": "torques"}, rate_hz=100.0)
    require_same(recording, signals)
    assert any("had a row for each joint: q" in note for note in recording.notes)
    with pytest.raises(UnreadableFile, match=r"no time column .*there are: q, torques"):
        read(path)


def test_names_that_two_structs_share_are_whole_ones(tmp_path, signals):
    path = tmp_path / "log.mat"
    savemat(path, {"t": signals["t"], "a": {"q": signals["q"]}, "b": {"q": 2 * signals["q"]}})
    with pytest.raises(UnreadableFile, match=r"no position column .*there are: t, a\.q, b\.q"):
        read(path)
    np.testing.assert_array_equal(read(path, columns={"q": "b.q"}).q, 2 * signals["q"])


def test_files_that_are_no_matlab_files(tmp_path):
    path = tmp_path / "log.mat"
    path.write_bytes(b"not a file of MATLAB at all" * 20)
    with pytest.raises(UnreadableFile, match="it is not a MATLAB file, or it is damaged"):
        read(path)
    path.write_bytes(
        b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM" + bytes(64)
    )
    with pytest.raises(UnreadableFile, match=r"version 7\.3 \(HDF5\); save it with save\("):
        read(path)
