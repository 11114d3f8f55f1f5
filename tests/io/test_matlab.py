"""MATLAB files: arrays by name, in structs, with joints as rows; refusals."""

import struct
import zlib

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


def test_one_wrong_bit_is_refused_in_one_line_or_harmless(tmp_path, signals, rng):
    """Types and sizes above all, which SciPy's compiled reader uses as they are."""
    path = tmp_path / "log.mat"
    few = {name: values[:3] for name, values in signals.items()}
    savemat(path, {**few, "run": {"name": "warm", "cells": np.array([1, "x"], dtype=object)}})
    sound = path.read_bytes()
    refusals = []
    for bit in rng.choice(8 * (len(sound) - 128), 250, replace=False):
        for compressed in (False, True):
            damaged = bytearray(sound)
            damaged[128 + bit // 8] ^= 1 << bit % 8
            path.write_bytes(with_compressed_arrays(damaged, sound) if compressed else damaged)
            try:
                read(path)
            except UnreadableFile as error:
                refusals.append(str(error))
    assert len(refusals) > 120
    assert all(len(words.splitlines()) == 1 for words in refusals)


def with_compressed_arrays(content, sound) -> bytes:
    """The file with each of its arrays compressed, as MATLAB's version 7 writes them.

    Args:
        content: of a file whose arrays begin and end where those of `sound` do
        sound: a file without compression
    """
    parts = [bytes(content[:128])]
    begin = 128
    while begin < len(sound):
        (size,) = struct.unpack("<I", sound[begin + 4 : begin + 8])
        end = begin + 8 + size
        packed = zlib.compress(bytes(content[begin:end]))
        parts.append(struct.pack("<2I", 15, len(packed)) + packed)
        begin = end
    return b"".join(parts)


def test_a_type_that_there_is_not_does_not_end_the_process(tmp_path, signals):
    path = tmp_path / "log.mat"
    savemat(path, signals)
    content = bytearray(path.read_bytes())
    at = content.index(b"t\0\0\0") + 4  # the tag of the values of t, after its name
    assert content[at] == 9  # double
    content[at + 1] = 64
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=r"damaged \(an element has the type 16393"):
        read(path)


def test_a_damaged_compression_is_refused(tmp_path, signals):
    path = tmp_path / "log.mat"
    savemat(path, signals, do_compression=True)
    content = bytearray(path.read_bytes())
    content[-20] ^= 4
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=r"log\.mat: it is not .*; save it again"):
        read(path)
    path.write_bytes(content[:-20])
    with pytest.raises(UnreadableFile, match=r"bytes, which are not there"):
        read(path)


def test_arrays_that_unpack_to_too_much_are_refused(tmp_path, signals, monkeypatch):
    path = tmp_path / "log.mat"
    savemat(path, {**signals, "zeros": np.zeros(2**17)}, do_compression=True)
    monkeypatch.setattr("steelyard.io._matlab.MAX_UNPACKED_BYTES", 2**20)
    with pytest.raises(UnreadableFile, match=r"log\.mat: its arrays need more than 1 MB of memory"):
        read(path)
    savemat(path, {**signals, "zeros": np.zeros(2**16)}, do_compression=True)
    require_same(read(path), signals)


def test_arrays_nested_without_end_are_refused(tmp_path, signals):
    path = tmp_path / "log.mat"
    deep = np.zeros(1)
    for _ in range(60):
        cell = np.empty(1, dtype=object)
        cell[0] = deep
        deep = cell
    savemat(path, {**signals, "deep": deep})
    with pytest.raises(UnreadableFile, match="its arrays are nested too deeply"):
        read(path)
