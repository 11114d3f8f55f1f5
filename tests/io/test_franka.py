"""Logs of libfranka: its header, its milliseconds, and what of it is no measurement."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.errors import UnreadableFile
from steelyard.io import read, recording_blocks

STATE = ("q", "q_d", "dq", "dq_d", "tau_J", "tau_ext_hat_filtered")
COMMAND = {"q_d": 7, "dq_d": 7, "O_T_EE_d": 16, "O_dP_EE_d": 6, "tau_J_d": 7}
CHANNELS = {"q": "q", "q_d": "q_commanded", "dq": "v", "dq_d": "v_commanded", "tau_J": "tau"}


def names(word, count=7):
    return [f"{word}[{k}]" for k in range(count)]


@pytest.fixture
def motion(rng):
    """Half a second at 1 kHz: every signal of the state, slow enough for an arm, and time in ms."""
    ms = np.arange(731, 1231)
    state = {word: rng.uniform(-1, 1, 7) + 1e-3 * rng.standard_normal((500, 7)) for word in STATE}
    return ms, state


def log_to_csv(path, motion, rng, *, separator=", "):
    """A table with the header of franka::logToCSV, with blanks as in libfranka before 0.14."""
    ms, state = motion
    header = ["time", "success_rate"]
    columns = [ms, np.full(len(ms), 0.99)]
    for word in STATE:
        header += names(f"state.{word}")
        columns += list(state[word].T)
    for word, count in COMMAND.items():
        header += names(f"cmd.{word}", count)
        columns += list(rng.standard_normal((count, len(ms))))
    lines = [separator.join(header)] + [
        ",".join(f"{x:.9g}" for x in row) for row in np.array(columns).T
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("separator", [", ", ","])
def test_the_table_of_log_to_csv(tmp_path, motion, rng, separator):
    recording = read(log_to_csv(tmp_path / "log.csv", motion, rng, separator=separator))
    ms, state = motion
    assert set(recording.channels) == set(CHANNELS.values())
    for word, channel in CHANNELS.items():
        np.testing.assert_allclose(
            getattr(recording, channel), state[word], rtol=1e-8, err_msg=channel
        )
    np.testing.assert_allclose(recording.t, (ms - ms[0]) / 1000, atol=1e-12)
    assert recording.epoch_s == pytest.approx(0.731)
    assert recording.rate_hz == pytest.approx(1000)
    assert "time was in milliseconds, as libfranka writes it" in recording.notes
    notes = " ".join(recording.notes)
    assert "not read: state.tau_ext_hat_filtered, because the controller estimates it" in notes
    assert "not read: cmd.tau_J_d, because it does not contain gravity; use tau_J" in notes
    assert "not read: cmd.q_d, because commands are zero where" in notes


def own_table(motion, time_name, time):
    _, state = motion
    columns = {time_name: time}
    for word in ("q", "dq", "tau_J"):
        columns |= {f"{word}_{k}": state[word][:, k] for k in range(7)}
    return columns


def write_csv(path, columns):
    rows = np.column_stack(list(columns.values()))
    np.savetxt(path, rows, delimiter=",", header=",".join(columns), comments="", fmt="%.9g")
    return path


def test_seconds_are_seconds(tmp_path, motion):
    ms, _ = motion
    recording = read(write_csv(tmp_path / "a.csv", own_table(motion, "time", ms / 1000)))
    np.testing.assert_allclose(recording.t, (ms - ms[0]) / 1000, atol=1e-9)
    assert any(note.startswith("time was read as seconds") for note in recording.notes)


@pytest.mark.parametrize(("name", "factor"), [("time_ms", 1.0), ("t_ms", 1.0), ("time_s", 1e-3)])
def test_a_unit_in_the_name_counts(tmp_path, motion, name, factor):
    ms, _ = motion
    recording = read(write_csv(tmp_path / "a.csv", own_table(motion, name, ms * factor)))
    np.testing.assert_allclose(recording.t, (ms - ms[0]) / 1000, atol=1e-9)
    assert not any("time was" in note for note in recording.notes)


def test_milliseconds_in_the_name_count_for_any_arm(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("t_ms,q_0\n20,0.5\n28,0.6\n")
    recording = read(path)
    np.testing.assert_allclose(recording.t, [0, 0.008])
    assert recording.epoch_s == pytest.approx(0.02)


def test_whole_seconds_of_an_arm_that_moves_are_not_taken_for_milliseconds(tmp_path, motion, rng):
    columns = own_table(motion, "time", np.arange(500))
    columns["q_3"] = np.cumsum(rng.uniform(0.05, 0.1, 500))
    path = write_csv(tmp_path / "a.csv", columns)
    with pytest.raises(
        UnreadableFile, match=r"'time' holds whole numbers.*rename the column to time_s or time_ms"
    ):
        read(path)
    columns = {"time_s" if name == "time" else name: column for name, column in columns.items()}
    assert read(write_csv(path, columns)).duration_s == pytest.approx(499)


def test_other_arms_keep_whole_seconds(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("time,q_0,tau_0\n0,0.5,1\n1,0.6,2\n2,0.6,2\n")
    assert read(path).duration_s == 2.0


def test_npz_and_parquet_have_the_same_clock(tmp_path, motion):
    ms, state = motion
    np.savez(tmp_path / "a.npz", time=ms, q=state["q"], tau_J=state["tau_J"])
    pq.write_table(pa.table(own_table(motion, "time", ms)), tmp_path / "a.parquet")
    for name in ("a.npz", "a.parquet"):
        recording = read(tmp_path / name)
        np.testing.assert_allclose(recording.t, (ms - ms[0]) / 1000, atol=1e-12)
        np.testing.assert_array_equal(recording.tau, state["tau_J"])
    blocks = list(recording_blocks(tmp_path / "a.parquet", block_s=0.2503, overlap_s=0.0))
    assert [len(block) for block in blocks] == [251, 249]


@pytest.mark.parametrize("word", ["tau_J_d", "tau_ext_hat_filtered"])
@pytest.mark.parametrize("channel", ["tau", "tau_target"])
def test_what_is_no_torque_is_refused_as_one(tmp_path, motion, rng, word, channel):
    ms, _ = motion
    columns = own_table(motion, "time", ms)
    columns |= {f"{word}_{k}": rng.standard_normal(500) for k in range(7)}
    path = write_csv(tmp_path / "a.csv", columns)
    with pytest.raises(UnreadableFile, match=f"{word} cannot serve as {channel}: "):
        read(path, columns={channel: word})


def test_the_estimated_wrench_is_read_only_by_wish_and_says_so(tmp_path, motion, rng):
    ms, _ = motion
    columns = own_table(motion, "time", ms)
    columns |= {f"K_F_ext_hat_K_{k}": rng.standard_normal(500) for k in range(6)}
    path = write_csv(tmp_path / "a.csv", columns)
    assert read(path).wrench is None
    recording = read(
        path,
        columns={"wrench": "K_F_ext_hat_K"},
        wrench_frame="K",
        wrench_convention="load_on_sensor",
    )
    assert recording.wrench.shape == (500, 6)
    assert any("the wrench is K_F_ext_hat_K as requested" in note for note in recording.notes)
