"""Recordings in and out of Parquet and NPZ: every field comes back, nothing is half written."""

import json
import os
import sys
import zipfile
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from steelyard import _saved
from steelyard.errors import MissingExtra, SteelyardError, UnknownName, UnreadableFile
from steelyard.io import read, write
from steelyard.io._recordings import read_with_joints
from steelyard.recording import CHANNELS, ArmIdentity, Recording
from steelyard.recording._columns import Requested

SUFFIXES = (".parquet", ".npz")


def full(rng, rows=40, n=3) -> Recording:
    """Every field of a recording filled with something that is not its default."""
    signals = {name: rng.standard_normal((rows, n)) for name in CHANNELS}
    signals["tau"][5, 1] = np.nan
    signals["v"][7, 2] = -0.0
    return Recording(
        t=1.7e9 + np.cumsum(rng.uniform(0.001, 0.003, rows)),
        joint_names=("shoulder", "elbow.1", "wrist/3 µ"),
        wrench=rng.standard_normal((rows, 6)),
        wrench_frame="tool0",
        wrench_convention="sensor_on_load",
        gripper=rng.integers(0, 2, (rows, 1)).astype(float),
        configured_mass=rng.uniform(0.0, 3.0, (rows, 1)),
        source="a test, in words",
        arm=ArmIdentity("ur10e", "20195500123"),
        notes=("one thing happened", "another too"),
        **signals,
    )


def same(one, other) -> None:
    """Equal in every field of the class, to the last bit."""
    for item in fields(Recording):
        a, b = getattr(one, item.name), getattr(other, item.name)
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b, err_msg=item.name, strict=True)
            np.testing.assert_array_equal(np.signbit(a), np.signbit(b), err_msg=item.name)
        else:
            assert a == b, item.name
            assert type(a) is type(b), item.name


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_field_comes_back(tmp_path, rng, suffix):
    recording = full(rng)
    default = Recording(t=[0.0], q=[[0.0]])
    for item in fields(Recording):
        a, b = getattr(recording, item.name), getattr(default, item.name)
        assert a is not b, f"the recording of this test leaves {item.name} as it is by default"
    write(recording, tmp_path / f"full{suffix}")
    same(recording, read(tmp_path / f"full{suffix}"))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_absent_stays_absent(tmp_path, suffix):
    recording = Recording(t=[3.0, 3.1], q=[[1.0], [2.0]])
    write(recording, str(tmp_path / f"small{suffix}"))
    same(recording, read(str(tmp_path / f"small{suffix}")))


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    q=arrays(float, st.tuples(st.integers(1, 5), st.integers(1, 3)), elements=st.floats(width=64)),
    epoch=st.floats(-1e12, 1e12),
    words=st.text(max_size=20),
)
def test_any_numbers_and_words_come_back(tmp_path, suffix, q, epoch, words):
    q[0] = 1.5  # a column of NaN alone is refused
    recording = Recording(t=np.arange(len(q)) / 7, q=q, epoch_s=epoch, source=words, notes=(words,))
    write(recording, tmp_path / f"any{suffix}")
    same(recording, read(tmp_path / f"any{suffix}"))


def test_parquet_columns_can_be_read_by_people(tmp_path, rng):
    write(full(rng), tmp_path / "a.parquet")
    names = pq.read_schema(tmp_path / "a.parquet").names
    assert names[:4] == ["t", "q.shoulder", "q.elbow.1", "q.wrist/3 µ"]
    assert names[-8:-2] == [f"wrench.{axis}" for axis in ("fx", "fy", "fz", "tx", "ty", "tz")]
    assert names[-2:] == ["gripper", "configured_mass"]


def test_joints_of_one_name_are_numbered_in_parquet(tmp_path):
    recording = Recording(t=[0.0, 1.0], q=[[1.0, 2.0], [3.0, 4.0]], joint_names=("a", "a"))
    write(recording, tmp_path / "a.parquet")
    assert pq.read_schema(tmp_path / "a.parquet").names == ["t", "q_1", "q_2"]
    same(recording, read(tmp_path / "a.parquet"))


def test_parquet_without_our_metadata_is_read_by_its_column_names(tmp_path, rng):
    recording = full(rng)
    write(recording, tmp_path / "a.parquet")
    pq.write_table(
        pq.read_table(tmp_path / "a.parquet").replace_schema_metadata(None), tmp_path / "b.parquet"
    )
    wrench = {"wrench_frame": "tool0", "wrench_convention": "sensor_on_load"}
    foreign = read(tmp_path / "b.parquet", **wrench)
    assert foreign.joint_names == recording.joint_names
    for name in recording.channels:
        np.testing.assert_array_equal(getattr(foreign, name), getattr(recording, name))
    assert foreign.source == "b.parquet"


def test_parquet_rows_lie_in_groups(tmp_path):
    rows = 40_000
    write(Recording(t=np.arange(rows), q=np.zeros((rows, 1))), tmp_path / "a.parquet")
    assert pq.ParquetFile(tmp_path / "a.parquet").metadata.num_row_groups == 3


def test_npz_arrays_have_the_names_of_the_fields(tmp_path, rng):
    recording = full(rng)
    write(recording, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        np.testing.assert_array_equal(archive["a_commanded"], recording.a_commanded)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, rng, monkeypatch, suffix):
    path = tmp_path / f"a{suffix}"
    write(full(rng), path)
    before = path.read_bytes()

    def breaks(*args, **kwargs):
        args[1].write_bytes(b"half") if suffix == ".parquet" else args[0].write(b"half")
        raise OSError("the disk is full")

    monkeypatch.setattr(pq, "write_table", breaks)
    monkeypatch.setattr(np, "savez_compressed", breaks)
    with pytest.raises(UnreadableFile, match="the disk is full"):
        write(full(rng), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_other_names_for_the_joints_of_our_own_file(tmp_path, rng):
    for suffix in SUFFIXES:
        path = tmp_path / f"a{suffix}"
        write(full(rng), path)
        assert read(path, joint_names=("a", "b", "c")).joint_names == ("a", "b", "c")
        with pytest.raises(
            UnreadableFile,
            match=r"those of the file in another order.*the file has shoulder, elbow.1",
        ):
            read(path, joint_names=("elbow.1", "shoulder", "wrist/3 µ"))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "asked", [{"degrees": True}, {"columns": {"q": "v"}}, {"wrench_frame": "base"}]
)
def test_our_own_file_takes_no_other_requests(tmp_path, rng, suffix, asked):
    write(full(rng), tmp_path / f"a{suffix}")
    with pytest.raises(
        UnreadableFile,
        match=rf"describes its own columns in radians; do not give `{next(iter(asked))}",
    ):
        read(tmp_path / f"a{suffix}", **asked)


def altered(path, change):
    """Change the description in a Parquet file of steelyard."""
    table = pq.read_table(path)
    text = change(table.schema.metadata[b"steelyard"].decode())
    pq.write_table(table.replace_schema_metadata({b"steelyard": text}), path)
    return path


def test_refusals_of_damaged_own_files(tmp_path, rng):
    path = tmp_path / "a.parquet"
    write(full(rng), path)
    newer = altered(path, lambda text: json.dumps(json.loads(text) | {"format": 2}))
    with pytest.raises(
        UnreadableFile,
        match=r"a\.parquet: it has format 2, this version of steelyard reads format 1",
    ):
        read(newer)
    with pytest.raises(
        UnreadableFile, match=r"that steelyard wrote into the file is damaged; write it again"
    ):
        read(altered(path, lambda text: text[:20]))
    write(full(rng), path)
    pq.write_table(pq.read_table(path).drop_columns(["v.shoulder"]), path)
    with pytest.raises(
        UnreadableFile, match=r"the column 'v.shoulder', which steelyard wrote, is missing"
    ):
        read(path)
    write(full(rng), tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        np.savez(
            tmp_path / "b.npz", **{name: archive[name] for name in archive.files if name != "tau"}
        )
    with pytest.raises(
        UnreadableFile, match=r"b\.npz: the column 'tau\[0\]', which steelyard wrote, is missing"
    ):
        read(tmp_path / "b.npz")


def test_files_that_cannot_be_opened_are_refused(tmp_path):
    with pytest.raises(UnreadableFile, match=r"no\.csv: no such file \(in the folder "):
        read(tmp_path / "no.csv")
    os.mkfifo(tmp_path / "pipe.csv")  # without a writer
    with pytest.raises(UnreadableFile, match=r"pipe\.csv: it is a pipe"):
        read(tmp_path / "pipe.csv")
    with pytest.raises(UnreadableFile, match=r"pipe\.csv: it is a pipe"):
        _saved.read(tmp_path / "pipe.csv")
    (tmp_path / "empty.npz").touch()
    with pytest.raises(
        UnreadableFile, match=r"empty\.npz: the file is empty; record or copy it again"
    ):
        read(tmp_path / "empty.npz")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UnreadableFile, match=r"folder\.csv: it is a folder; name a file"):
        read(tmp_path / "folder.csv")
    with pytest.raises(
        UnreadableFile,
        match=r"cannot be read from '\.xlsx' files; known are \.parquet, \.arrows, \.npz, \.csv",
    ):
        read(tmp_path / "log.xlsx")
    one = Recording(t=[0.0], q=[[0.0]])
    with pytest.raises(
        UnreadableFile,
        match=r"cannot be written as '\.csv', which would lose .* \.parquet or \.npz",
    ):
        write(one, tmp_path / "a.csv")
    with pytest.raises(UnreadableFile, match=r"there is no folder .*nowhere; make it first"):
        write(one, tmp_path / "nowhere" / "a.npz")


@pytest.mark.parametrize(
    ("name", "content", "looks"),
    [
        ("a.parquet", b"PK\x03\x04rest", "a zip archive"),
        ("a.parquet", b"t,q_0\n0,1\n", "neither Parquet nor NPZ"),
        ("a.npz", b"PAR1restPAR1", r"Parquet \(.parquet\)"),
        ("a.npz", b"t,q_0\n0,1\n", "neither Parquet nor NPZ"),
        ("a.csv", b"PK\x03\x04rest", "a zip archive, as NPZ"),
        ("a.txt", b"PAR1restPAR1", "Parquet"),
    ],
)
def test_a_file_that_is_not_what_its_name_says(tmp_path, name, content, looks):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(
        UnreadableFile, match=rf"{name}: its content does not match its name, it looks like {looks}"
    ):
        read(tmp_path / name)


def test_unfinished_and_damaged_files(tmp_path, rng):
    write(full(rng, rows=2000), tmp_path / "a.parquet")
    write(full(rng), tmp_path / "a.npz")
    parquet, npz = (tmp_path / "a.parquet").read_bytes(), (tmp_path / "a.npz").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(parquet[: len(parquet) // 2])
    with pytest.raises(
        UnreadableFile, match=r"cut\.parquet: its writer did not finish it .*footer"
    ):
        read(tmp_path / "cut.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    with pytest.raises(
        UnreadableFile, match=r"bad\.parquet: the Parquet file is damaged \(.*\); copy it again"
    ):
        read(tmp_path / "bad.parquet")
    (tmp_path / "cut.npz").write_bytes(npz[: len(npz) // 2])
    with pytest.raises(
        UnreadableFile, match=r"cut\.npz: the archive is damaged or was not finished"
    ):
        read(tmp_path / "cut.npz")
    flipped = bytearray(npz)
    flipped[len(npz) // 3] ^= 0xFF
    (tmp_path / "flipped.npz").write_bytes(flipped)
    with pytest.raises(SteelyardError, match=r"flipped\.npz: the archive is damaged"):
        read(tmp_path / "flipped.npz")


def test_what_a_library_raises_while_it_parses_is_one_line(tmp_path, rng):
    """A header of NPZ that no parser follows; every byte of the footer of Parquet changed."""
    header = b"{'descr': " + b"[" * 9000
    with zipfile.ZipFile(tmp_path / "deep.npz", "w") as archive:
        size = len(header).to_bytes(2, "little")
        archive.writestr("q.npy", b"\x93NUMPY\x01\x00" + size + header)
    with pytest.raises(SteelyardError, match=r"deep\.npz"):
        read(tmp_path / "deep.npz")
    write(full(rng, rows=9), tmp_path / "a.parquet")
    sound = (tmp_path / "a.parquet").read_bytes()
    footer = int.from_bytes(sound[-8:-4], "little")
    complaints = []
    for at in range(len(sound) - 8 - footer, len(sound) - 8, 41):
        broken = bytearray(sound)
        broken[at] ^= 0xFF
        (tmp_path / "a.parquet").write_bytes(broken)
        try:
            read(tmp_path / "a.parquet")  # some bytes are of no importance
        except SteelyardError as error:
            complaints.append(str(error))
    assert len(complaints) > 20
    assert all("a.parquet" in words and "\n" not in words for words in complaints)


def test_files_without_rows(tmp_path):
    pq.write_table(
        pa.table({"t": pa.array([], pa.float64()), "q_0": pa.array([], pa.float64())}),
        tmp_path / "a.parquet",
    )
    with pytest.raises(
        UnreadableFile, match=r"a\.parquet: it has columns, but no rows; nothing was recorded"
    ):
        read(tmp_path / "a.parquet")
    np.savez(tmp_path / "a.npz", t=np.empty(0), q=np.empty((0, 2)))
    with pytest.raises(
        UnreadableFile, match=r"a\.npz: the arrays have no rows; nothing was recorded"
    ):
        read(tmp_path / "a.npz")


def test_parquet_columns_that_are_not_numbers(tmp_path):
    times = pa.array([0, 1], pa.timestamp("ns"))
    pq.write_table(pa.table({"t": times, "q_0": [0.5, 1.5]}), tmp_path / "a.parquet")
    with pytest.raises(
        UnreadableFile, match=r"column 't' holds timestamp\[ns\], not numbers; convert it"
    ):
        read(tmp_path / "a.parquet")


def test_empty_cells_and_whole_numbers_of_a_foreign_parquet_file(tmp_path):
    pq.write_table(
        pa.table({"t": [0, 1], "q_0": [1, None], "q_1": pa.array([1.5, 2.5], pa.float32())}),
        tmp_path / "a.parquet",
    )
    recording = read(tmp_path / "a.parquet")
    np.testing.assert_array_equal(recording.q, [[1.0, 1.5], [np.nan, 2.5]])


def test_foreign_npz_keys(tmp_path, rng):
    keys = {
        "qd": "v",
        "tau": "tau",
        "i": "current",
        "i_des": "current_target",
        "tau_des": "tau_target",
    }
    keys |= {"q_des": "q_commanded", "qd_des": "v_commanded", "qdd_des": "a_commanded"}
    signals = {key: rng.standard_normal((9, 2)) for key in ("q", *keys)}
    other = {"src_row": np.arange(9), "who": np.array("me"), "what": np.array([{}], dtype=object)}
    np.savez(tmp_path / "a.npz", t=5.0 + np.arange(9)[:, None], **signals, **other)
    recording = read(tmp_path / "a.npz", joint_names=("a", "b"))
    for key, channel in keys.items():
        np.testing.assert_array_equal(getattr(recording, channel), signals[key])
    assert recording.epoch_s == 5.0
    assert recording.joint_names == ("a", "b")
    assert recording.notes == (
        "not read, unknown name: src_row",
        "not read, not columns of numbers: who, what",
    )


def test_npz_arrays_of_other_lengths(tmp_path):
    np.savez(tmp_path / "a.npz", t=np.arange(9.0), q=np.ones((2, 9)))
    with pytest.raises(
        UnreadableFile,
        match=r"t has 9 rows, but q\[0\] has 2; .* \(transpose it if rows are joints",
    ):
        read(tmp_path / "a.npz")


def test_joints_go_into_the_order_of_the_arm_by_their_stated_names(tmp_path, rng):
    path = tmp_path / "log.npz"
    signals = {"t": np.arange(9) / 9, "q": rng.normal(size=(9, 2)), "tau": rng.normal(size=(9, 2))}
    np.savez(path, **signals)
    arm = ("lift", "elbow")
    turned = read_with_joints(path, Requested(joint_names=("elbow", "lift")), arm)
    assert turned.joint_names == arm
    np.testing.assert_array_equal(turned.q, signals["q"][:, ::-1])
    plain = read_with_joints(str(path), Requested(), arm)
    np.testing.assert_array_equal(plain.q, signals["q"])
    np.testing.assert_array_equal(
        read_with_joints(path, Requested(joint_names=("joint1", "joint2")), arm).q, signals["q"]
    )
    with pytest.raises(UnknownName, match="a, b are not the joints of the arm; give lift, elbow"):
        read_with_joints(path, Requested(joint_names=("a", "b")), arm)
    assert read_with_joints(path, Requested(joint_names=("a", "b")), ()).joint_names == ("a", "b")


def test_an_npz_array_named_by_the_caller(tmp_path, rng):
    q = rng.standard_normal((5, 3))
    np.savez(tmp_path / "a.npz", t=np.arange(5.0), motor_pos_rad=q)
    np.testing.assert_array_equal(read(tmp_path / "a.npz", columns={"q": "motor_pos_rad"}).q, q)


def test_a_refusal_of_a_recording_names_the_file(tmp_path):
    np.savez(tmp_path / "back.npz", t=[0.0, 2.0, 1.0], q=np.ones((3, 1)))
    with pytest.raises(UnreadableFile, match=r"back\.npz: time goes back in row 3"):
        read(tmp_path / "back.npz")
    np.savez(tmp_path / "dead.npz", t=[0.0, 1.0], q=np.ones((2, 2)), tau=np.full((2, 2), np.nan))
    with pytest.raises(UnreadableFile, match=r"dead\.npz: tau, column 1 of 2: every value is NaN"):
        read(tmp_path / "dead.npz")
    with pytest.raises(UnreadableFile, match=r"back\.npz: time goes back"):
        read(tmp_path / "back.npz", joint_names=("a", "b"))


def test_degrees_become_radians_in_every_angle_and_only_there(tmp_path, rng):
    names = ("q", "qd", "tau", "q_des", "qd_des", "qdd_des")
    signals = {name: rng.uniform(10, 90, (4, 2)) for name in names}
    np.savez(tmp_path / "a.npz", t=np.arange(4.0), **signals)
    recording = read(tmp_path / "a.npz", degrees=True)
    for channel, name in zip(
        ("q", "v", "q_commanded", "v_commanded", "a_commanded"), np.delete(names, 2), strict=True
    ):
        np.testing.assert_allclose(
            getattr(recording, channel), signals[str(name)] * np.pi / 180, rtol=1e-15
        )
    np.testing.assert_array_equal(recording.tau, signals["tau"])
    assert recording.notes == ("angles were converted from degrees",)


def test_without_pyarrow_the_message_says_what_to_install(tmp_path, monkeypatch, rng):
    write(full(rng), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("t,q_0\n0,1\n")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    for name in ("a.parquet", "a.csv"):
        with pytest.raises(
            MissingExtra, match=r"this needs pyarrow: pip install 'steelyard\[io\]'"
        ):
            read(tmp_path / name)
    with pytest.raises(MissingExtra, match="pyarrow"):
        write(full(rng), tmp_path / "b.parquet")
    write(full(rng), tmp_path / "b.npz")


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_a_signal_that_the_layout_does_not_name_is_refused(tmp_path, rng, suffix):
    recording = full(rng)
    path = tmp_path / f"a{suffix}"
    write(recording, path)
    if suffix == ".npz":
        arrays = dict(np.load(path))
        beside = json.loads(str(arrays["steelyard"]))
        del beside["columns"]["tau"]
        np.savez(path, **{**arrays, "steelyard": np.array(json.dumps(beside)), "mine": np.ones(3)})
    else:
        table = pq.read_table(path)
        beside = json.loads(table.schema.metadata[b"steelyard"])
        del beside["columns"]["tau"]
        pq.write_table(table.replace_schema_metadata({"steelyard": json.dumps(beside)}), path)
    with pytest.raises(
        UnreadableFile, match=r"the column 'tau.*' is not in the description that steelyard wrote"
    ):
        read(path)
