"""Construction of Recording and Samples: refusals, the clock, copies, cuts."""

import sys
from dataclasses import fields, replace

import numpy as np
import pytest

from steelyard.errors import InvalidRecording, InvalidSamples, MissingExtra, UnreadableFile
from steelyard.io import read
from steelyard.recording import CHANNELS, Recording, Samples

NAMES = ("shoulder", "elbow")


def recording(rng, count=20, start=100.0, **changes):
    """A recording with every channel, on a clock that does not start at zero."""
    signals = {name: rng.normal(size=(count, 2)) for name in CHANNELS}
    given = {"t": start + 0.01 * np.arange(count), **signals, "joint_names": NAMES}
    given |= {"wrench": rng.normal(size=(count, 6)), "wrench_frame": "sensor"}
    given |= {"wrench_convention": "load_on_sensor", "source": "a test", "notes": ["made up"]}
    return Recording(**given | changes)


def samples(rng, count=20, **changes):
    q, v, a, tau = rng.normal(size=(4, count, 2))
    given = {"q": q, "v": v, "a": a, "tau": tau, "rate_hz": 50.0, "joint_names": NAMES}
    given |= {
        "kinematics": "commanded",
        "usable": rng.random((count, 2)) > 0.3,
        "made_by": ["filtered"],
    }
    return Samples(**given | {"start_s": 3.0, "warnings": ["a hole"]} | changes)


# --- Recording


def dead(shape, column):
    values = np.ones(shape)
    values[:, column] = np.nan
    return values


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"t": np.zeros((20, 1))},
            r"t must have shape \(N,\) with at least one row, got \(20, 1\)",
        ),
        ({"t": []}, r"t must have shape \(N,\) with at least one row"),
        ({"t": [*range(19), np.inf]}, r"time is inf in row 20"),
        (
            {"t": 1e15 + np.arange(20)},
            r"the time column \(t\) reaches 1e\+15 s, which no clock counts: check its unit",
        ),
        ({"t": [*range(19), 1e300]}, r"the time column \(t\) reaches 1e\+300 s"),
        (
            {"t": [0, 2, 1, *range(3, 20)]},
            r"time goes back in row 3: 1\.0+ s after 2\.0+ s \(1 such row\)",
        ),
        (
            {"t": [0, 2, 1, 4, 3, *range(5, 20)]},
            r"\(2 such rows\); sort the rows or split the recording",
        ),
        ({"q": np.ones(20)}, r"q must be \(N, n\) with N = 20 rows of time, got \(20,\)"),
        ({"q": np.ones((19, 2))}, r"q must be \(N, n\) with N = 20 rows of time, got \(19, 2\)"),
        ({"q": np.ones((20, 0))}, r"q must be \(N, n\)"),
        ({"joint_names": ("elbow",)}, r"2 joints, but 1 joint names: elbow"),
        ({"wrench": np.ones((20, 5))}, r"wrench must have shape \(20, 6\), got \(20, 5\)"),
        ({"wrench": dead((20, 6), 4)}, r"wrench, column 5 of 6: every value is NaN"),
        ({"wrench_frame": None}, r"a wrench needs its wrench_frame and its wrench_convention"),
        ({"wrench_convention": None}, r"\('load_on_sensor' or 'sensor_on_load'\)"),
        ({"wrench_convention": "sensor_frame"}, r"\('load_on_sensor' or 'sensor_on_load'\)"),
        *(
            ({name: np.ones((20, 3))}, rf"{name} must have shape \(20, 2\)")
            for name in CHANNELS
            if name != "q"
        ),
        *(
            ({name: dead((20, 2), 1)}, rf"{name}, column 2 of 2: every value is NaN")
            for name in CHANNELS
            if not name.startswith(("tau", "current"))
        ),
        ({"tau": np.full((20, 2), np.nan)}, r"tau, column 1 of 2: every value is NaN"),
    ],
)
def test_recording_refusals(rng, changes, message):
    with pytest.raises(InvalidRecording, match=message):
        recording(rng, **changes)


def test_a_joint_may_have_no_torque(rng):
    made = recording(rng, tau=dead((20, 2), 1))
    assert np.isnan(made.tau[:, 1]).all()


def test_the_clock_starts_at_zero_and_remembers(rng):
    made = recording(rng, start=100.0)
    assert made.t[0] == 0.0
    assert made.epoch_s == 100.0
    assert made.duration_s == pytest.approx(0.19)
    assert made.rate_hz == pytest.approx(100.0)


@pytest.mark.parametrize("times", [[5.0], [5.0, 5.0, 5.0]])
def test_a_clock_that_stands_has_no_rate(times):
    made = Recording(times, np.ones((len(times), 1)))
    assert made.rate_hz == 0.0
    assert made.joint_names == ("joint1",)


def test_jitter_repeats_and_holes_are_kept():
    t, q = [0, 0.01, 0.01, 0.05], [[1.0], [np.nan], [3.0], [4.0]]
    made = Recording(t, q)
    np.testing.assert_array_equal(made.t, t)
    np.testing.assert_array_equal(made.q, q)
    assert made.rate_hz == pytest.approx(1 / 0.025)


def test_recording_is_read_only_and_apart_from_what_it_was_given(rng):
    t, q = np.arange(5.0), rng.normal(size=(5, 2))
    made, kept = Recording(t, q, v=q), q.copy()
    t[:], q[:] = 9.0, 9.0
    np.testing.assert_array_equal(made.q, kept)
    np.testing.assert_array_equal(made.v, kept)
    np.testing.assert_array_equal(made.t, np.arange(5.0))
    for array in (made.t, made.q, made.v):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(AttributeError):
        made.q = q


def test_channels_are_those_it_holds(rng):
    assert recording(rng).channels == (*CHANNELS, "wrench")
    assert Recording([0.0], [[1.0]]).channels == ("q",)
    assert len(recording(rng)) == 20
    assert recording(rng).n == 2


@pytest.mark.parametrize("which", [slice(5, 12), np.arange(20) % 3 == 1])
def test_rows_cut_every_channel_and_restart_the_clock(rng, which):
    made = recording(rng)
    cut = made.rows(which, note="cut")
    for name in made.channels:
        np.testing.assert_array_equal(getattr(cut, name), getattr(made, name)[which])
    np.testing.assert_allclose(cut.t, made.t[which] - made.t[which][0])
    assert cut.epoch_s == pytest.approx(100.0 + made.t[which][0])
    assert cut.notes == ("made up", "cut")
    rest = ("joint_names", "wrench_frame", "wrench_convention", "source")
    assert [getattr(cut, name) for name in rest] == [getattr(made, name) for name in rest]


def test_between_counts_from_the_first_row_and_can_be_repeated(rng):
    made = recording(rng, start=100.0)
    cut = made.between(0.045, 0.105)
    np.testing.assert_array_equal(cut.q, made.q[5:11])
    np.testing.assert_array_equal(cut.between(0.015, 1.0).q, made.q[7:11])
    assert cut.between(0.015, 1.0).epoch_s == pytest.approx(100.07)


def test_nothing_left_is_refused(rng):
    with pytest.raises(InvalidRecording, match="the selection contains no rows"):
        recording(rng).between(5.0, 6.0)


# --- Samples


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": np.ones(20)}, r"samples are \(N, n\) with n = 2 names, got \(20,\)"),
        ({"q": np.ones((0, 2))}, r"samples are \(N, n\)"),
        ({"joint_names": ("elbow",)}, r"n = 1 names, got \(20, 2\)"),
        ({"rate_hz": 0.0}, r"rate_hz must be positive, got 0\.0"),
        ({"rate_hz": np.nan}, r"rate_hz must be positive, got nan"),
        ({"kinematics": "wished"}, r"kinematics must be 'measured' or 'commanded', got 'wished'"),
        ({"usable": np.ones(20, bool)}, r"usable must be \(20, 2\), got \(20,\)"),
        ({"q": np.full((20, 2), np.inf)}, r"q must be \(20, 2\) finite numbers"),
        *(
            ({k: np.ones((19, 2))}, rf"{k} must be .* got shape \(19, 2\)")
            for k in ("v", "a", "tau")
        ),
        *(
            ({k: np.full((20, 2), np.nan)}, rf"{k} must be \(20, 2\) finite")
            for k in ("v", "a", "tau")
        ),
    ],
)
def test_samples_refusals(rng, changes, message):
    with pytest.raises(InvalidSamples, match=message):
        samples(rng, **changes)


def test_samples_are_read_only_and_apart_from_what_they_were_given(rng):
    q, v, a, tau = rng.normal(size=(4, 5, 2))
    made, kept = samples(rng, 5, q=q, v=v, a=a, tau=tau, usable=None), tau.copy()
    tau[:] = 9.0
    np.testing.assert_array_equal(made.tau, kept)
    assert made.mask.all()
    for array in (made.q, made.v, made.a, made.tau, made.mask):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_time_of_samples_is_on_the_recordings_clock(rng):
    made = samples(rng)
    np.testing.assert_allclose(made.t, 3.0 + np.arange(20) / 50.0)
    assert (len(made), made.n) == (20, 2)


@pytest.mark.parametrize("which", [slice(4, 9), slice(-5, None), slice(None, 7)])
def test_rows_of_samples_keep_every_field_and_the_clock(rng, which):
    made = samples(rng)
    cut = made.rows(which)
    for name in ("q", "v", "a", "tau", "usable"):
        np.testing.assert_array_equal(getattr(cut, name), getattr(made, name)[which])
    np.testing.assert_allclose(cut.t, made.t[which])
    rest = [
        f.name for f in fields(made) if f.name not in ("q", "v", "a", "tau", "usable", "start_s")
    ]
    assert [getattr(cut, name) for name in rest] == [getattr(made, name) for name in rest]


def test_samples_stay_uniform(rng):
    with pytest.raises(InvalidSamples, match="use a slice without a step"):
        samples(rng).rows(slice(0, 20, 2))


def test_parts_are_the_samples_piece_by_piece(rng):
    made = samples(rng)
    pieces = [made.rows(slice(start, start + 8)) for start in range(0, 20, 8)]
    assert [len(piece) for piece in pieces] == [8, 8, 4]
    np.testing.assert_array_equal(np.concatenate([p.tau for p in pieces]), made.tau)
    np.testing.assert_allclose(np.concatenate([p.t for p in pieces]), made.t)


def test_a_changed_copy_checks_again(rng):
    with pytest.raises(InvalidSamples, match="rate_hz must be positive"):
        replace(samples(rng), rate_hz=-1.0)


class Protocol:
    """A data frame of an unknown library: it has one of the two protocols and nothing else."""

    def __init__(self, frame, name):
        setattr(type(self), name, lambda self, *_, **__: getattr(frame, name)())


def test_data_frames_go_both_ways(rng):
    """pandas, Polars, Arrow, Arrow's protocol, the interchange protocol, and arrays."""
    import pandas  # here, because every process of the tests would wait for it
    import polars

    t, q = np.arange(5) / 100, rng.normal(size=(5, 2))
    recording = Recording(t=t, q=q, joint_names=("elbow", "wrist"), tau=2 * q)
    frame, table = recording.to_dataframe(), recording.to_dataframe("pyarrow")
    assert list(frame.columns) == ["t", "q.elbow", "q.wrist", "tau.elbow", "tau.wrist"]
    assert isinstance(frame, pandas.DataFrame)
    others = (
        table,
        recording.to_dataframe("polars"),
        polars.DataFrame(recording),
        frame.convert_dtypes(),
        *(
            type(name, (Protocol,), {})(table, name)
            for name in ("__arrow_c_stream__", "__dataframe__")
        ),
        {name: frame[name] for name in frame},
    )
    for given in (frame, *others):
        again = Recording.from_dataframe(given)
        np.testing.assert_array_equal(again.tau, recording.tau)
        assert again.joint_names == recording.joint_names


def test_a_data_frame_is_read_as_a_file_is(rng):
    """Foreign names, degrees, array columns; missing values are NaN, texts are noted."""
    import pandas
    import polars

    t, q = np.arange(5) / 100, rng.normal(size=(5, 2))
    said = {"columns": {"tau": "moment"}, "degrees": True, "joint_names": ("elbow", "wrist")}
    arrays = {"time": t, "actual_q": np.rad2deg(q), "moment": q, "phase": ["a"] * 5}
    recording = Recording.from_dataframe(arrays, **said)
    np.testing.assert_allclose(recording.q, q)
    assert recording.joint_names == ("elbow", "wrist")
    assert "phase" in " ".join(recording.notes)
    holes = pandas.array([1.0, None, 3.0, 4.0, 5.0], dtype="Float64")
    frame = pandas.DataFrame({"t": t, "q_0": holes, "state": ["a"] * 5})
    assert np.isnan(Recording.from_dataframe(frame).q[:, 0]).tolist() == [
        False,
        True,
        False,
        False,
        False,
    ]
    dates = pandas.DataFrame({"q": q[:, 0]}, pandas.to_datetime(1e9 + t, unit="s").rename("stamp"))
    np.testing.assert_allclose(Recording.from_dataframe(dates).t, t, atol=1e-6)
    assert Recording.from_dataframe(
        polars.from_pandas(dates.reset_index())
    ).epoch_s == pytest.approx(1e9)
    with pytest.raises(
        UnreadableFile, match=r"the data frame: no time column .*columns=\{'t': 'NAME'\}"
    ):
        Recording.from_dataframe(frame.drop(columns="t"))


def test_what_is_no_data_frame_is_refused(rng, monkeypatch):
    with pytest.raises(InvalidRecording, match=r"int has none; to read a file use steelyard\.read"):
        Recording.from_dataframe(3)
    with pytest.raises(
        UnreadableFile, match=r"from a file, not from int; .* Recording\.from_dataframe"
    ):
        read(3)
    recording = Recording(np.arange(3), rng.normal(size=(3, 2)))
    with pytest.raises(InvalidRecording, match="pandas, polars, pyarrow, not of 'modin'"):
        recording.to_dataframe("modin")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtra, match="this needs polars: pip install polars"):
        recording.to_dataframe("polars")


def test_joints_by_name_are_put_into_the_arms_order_and_others_left_out(rng):
    q, tau, wrench = rng.normal(size=(20, 3)), rng.normal(size=(20, 3)), rng.normal(size=(20, 6))
    frame = {"wrench": wrench, "wrench_frame": "flange", "wrench_convention": "load_on_sensor"}
    recording = Recording(
        0.1 * np.arange(20), q, ("r_wrist", "r_finger", "r_elbow"), tau=tau, **frame
    )
    found = recording.named(("r_elbow", "r_wrist"))
    np.testing.assert_array_equal(found.q, q[:, [2, 0]])
    np.testing.assert_array_equal(found.tau, tau[:, [2, 0]])
    np.testing.assert_array_equal(found.wrench, wrench)
    assert found.joint_names == ("r_elbow", "r_wrist")
    assert found.notes == (
        "joints were put into the arm's order: r_elbow, r_wrist; not joints of the arm: r_finger",
    )
    by_prefix = recording.named(("finger", "wrist", "elbow"))
    np.testing.assert_array_equal(by_prefix.q, q[:, [1, 0, 2]])
    assert recording.named(("a", "b", "c")) is recording
