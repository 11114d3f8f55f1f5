import json
from dataclasses import fields, replace

import numpy as np
import pytest

from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.recording import Recording
from steelyard.robot import DriveModel
from steelyard.signals import Preparation, prepare, with_chosen_cutoff
from steelyard.trajectory import FourierTrajectory

SERIES = FourierTrajectory.random(
    [0.2, -0.4], reach=[1.0, 1.0], speed=[1.5, 1.0], period_s=6.0, harmonics=3, seed=5
)


def recording(t, **channels) -> Recording:
    q, v, a = SERIES.at(t)
    tau = np.column_stack([3 * a[:, 0] + q[:, 1], 2 * v[:, 1] + 1])
    return Recording(
        t=t,
        q=q,
        tau=tau,
        q_commanded=q,
        v_commanded=v,
        a_commanded=a,
        joint_names=("one", "two"),
        **channels,
    )


JITTERED = np.arange(0, 6, 0.01) + 0.002 * (np.arange(600) % 2)
"""Steps of 12 and 8 ms in turns, as real controllers log."""


def test_samples_follow_the_true_motion_in_spite_of_jitter():
    samples = prepare(recording(JITTERED), Preparation(cutoff_hz=15.0))
    q, v, a = SERIES.at(samples.t)
    inside = slice(30, -30)
    np.testing.assert_allclose(samples.q[inside], q[inside], atol=1e-4)
    np.testing.assert_allclose(samples.v[inside], v[inside], atol=2e-3)
    np.testing.assert_allclose(samples.a[inside], a[inside], atol=3e-2)
    assert np.abs(a).max() > 1
    assert samples.kinematics == "measured"
    assert samples.rate_hz == pytest.approx(100, rel=0.01)
    steps = [words.split()[0] for words in samples.made_by]
    assert steps == ["measured", "resampled", "zero-phase", "derivatives", "torques"]


def test_uniform_recordings_are_not_resampled():
    samples = prepare(recording(np.arange(300) * 0.01), Preparation(cutoff_hz=None))
    np.testing.assert_array_equal(samples.q, recording(np.arange(300) * 0.01).q)
    assert not any("resampled" in words for words in samples.made_by)


def test_commanded_motion_is_taken_as_commanded():
    samples = prepare(
        recording(np.arange(300) * 0.01), Preparation(kinematics="commanded", cutoff_hz=None)
    )
    np.testing.assert_array_equal(samples.a, SERIES.at(np.arange(300) * 0.01)[2])
    assert samples.kinematics == "commanded"


def test_missing_commanded_acceleration_is_differentiated_from_the_velocity():
    bare = replace(recording(np.arange(300) * 0.01), a_commanded=None)
    samples = prepare(bare, Preparation(kinematics="commanded", cutoff_hz=None))
    np.testing.assert_allclose(samples.a, SERIES.at(np.arange(300) * 0.01)[2], atol=5e-3)


def test_fourier_fit_gives_exact_derivatives_of_periodic_motion_with_noise():
    t = np.arange(0, 6, 0.01)
    noisy = replace(
        recording(t), q=SERIES.at(t)[0] + 1e-4 * np.random.default_rng(0).normal(size=(600, 2))
    )
    fourier = prepare(noisy, Preparation(cutoff_hz=None, fourier_period_s=6.0, fourier_harmonics=3))
    central = prepare(noisy, Preparation(cutoff_hz=None))
    error = [np.abs(s.a - SERIES.at(t)[2]).max() for s in (fourier, central)]
    assert error[0] < 1e-3 < 1 < error[1]


def test_currents_become_torques_by_the_gains():
    rec = recording(np.arange(300) * 0.01)
    with_current = replace(rec, tau=None, current=rec.tau / np.array([10.0, 5.0]))
    samples = prepare(
        with_current, Preparation(cutoff_hz=None), drive=DriveModel(np.zeros(2), gain=[10.0, 5.0])
    )
    np.testing.assert_allclose(samples.tau, rec.tau, atol=1e-12)
    assert "Nm/A" in samples.made_by[0]


def test_torques_are_filtered_only_when_asked():
    rec = recording(np.arange(600) * 0.01)
    noisy = replace(rec, tau=rec.tau + np.random.default_rng(0).normal(size=rec.tau.shape))
    np.testing.assert_array_equal(prepare(noisy).tau, noisy.tau)
    smooth = prepare(noisy, Preparation(torque_cutoff_hz=5.0))
    assert np.std(smooth.tau - rec.tau) < 0.5 * np.std(noisy.tau - rec.tau)
    assert "5 Hz on the torques" in " ".join(smooth.made_by)


def test_moving_mean_is_said_and_done():
    samples = prepare(recording(np.arange(600) * 0.01), Preparation(mean_length=5, cutoff_hz=None))
    assert any("moving mean of 5 samples" in words for words in samples.made_by)
    np.testing.assert_allclose(
        samples.tau[10], recording(np.arange(600) * 0.01).tau[8:13].mean(axis=0)
    )


def test_slow_torques_do_not_count():
    samples = prepare(recording(JITTERED), Preparation(lowest_speed=0.2))
    np.testing.assert_array_equal(samples.mask, np.abs(samples.v) >= 0.2)
    assert 0 < samples.mask.mean() < 1


def test_torques_near_a_reversal_do_not_count():
    """The filter spreads a reversal over half the period of its cut-off, here 50 ms."""
    recorded = recording(np.arange(2000) * 0.002)
    samples = prepare(recorded, Preparation(lowest_speed=0.001, cutoff_hz=10.0))
    clear = samples.away_from_reversals()
    turns = np.flatnonzero(np.diff(np.sign(samples.v[:, 0])))
    distance_s = np.abs(np.arange(len(samples)) - turns[:, None]).min(axis=0) * 0.002
    assert len(turns) > 1
    assert not clear.mask[distance_s < 0.04, 0].any()
    assert clear.mask[distance_s > 0.08, 0].all()
    assert samples.mask[distance_s > 0.01, 0].all()
    for how in (
        Preparation(lowest_speed=0.0),
        Preparation(lowest_speed=0.001, cutoff_hz=10.0, torque_cutoff_hz=10.0),
    ):
        samples = prepare(recorded, how)
        np.testing.assert_array_equal(samples.away_from_reversals().mask, samples.mask)


def test_decimation_keeps_every_third_sample_and_trimming_moves_the_start():
    rec = recording(np.arange(600) * 0.01)
    whole = prepare(rec)
    part = prepare(rec, Preparation(decimate=3, trim_s=0.5, torque_cutoff_hz=15.0))
    np.testing.assert_array_equal(part.q, whole.q[50:-50:3])
    np.testing.assert_allclose(part.tau, whole.tau[50:-50:3], atol=0.01)
    np.testing.assert_allclose(part.t, whole.t[50:-50:3], atol=1e-12)
    assert part.rate_hz == pytest.approx(whole.rate_hz / 3)


def test_nan_rows_and_repeated_times_are_left_out_and_said():
    t = np.arange(600) * 0.01
    t[100] = t[99]
    rec = recording(t)
    q = rec.q.copy()
    q[300] = np.nan
    samples = prepare(replace(rec, q=q), Preparation(cutoff_hz=20.0))
    assert "1 rows with NaN and 1 with a repeated time" in samples.made_by[1]
    assert np.isfinite(samples.a).all()


def test_warnings_about_the_recording_stay_with_the_samples_and_errors_are_raised():
    rec = recording(np.arange(600) * 0.01)
    tau = np.array(rec.tau)
    tau[7] = np.nan
    assert prepare(recording(JITTERED)).warnings == ()  # resampling takes care of it
    assert "tau is not a number" in prepare(replace(rec, tau=tau)).warnings[0]
    degrees = replace(rec, q=np.degrees(rec.q), v=np.degrees(SERIES.at(rec.t)[1]))
    with pytest.raises(InvalidRecording, match=r"not fit for use: .*degrees"):
        prepare(degrees)


def test_gaps_are_refused_not_filled_and_can_be_split():
    t = np.concatenate([np.arange(300) * 0.01, 4.0 + np.arange(200) * 0.01])
    rec = recording(t)
    with pytest.raises(InvalidRecording, match=r"1\.010 s are missing after t = 2\.990 s"):
        prepare(rec)
    first, second = rec.split_at_gaps(0.05)
    assert (len(first), len(second)) == (300, 200)
    assert [len(part) for part in rec.split_at_gaps()] == [300, 200]
    assert second.t[0] == 0
    assert second.epoch_s == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"rate_hz": 500.0}, "500 Hz is faster than the recording"),
        ({"decimate": 10}, "aliases torques above 5 Hz"),
        ({"trim_s": 4.0}, "removes all of 6 s"),
        ({"cutoff_hz": 60.0}, "between 0 and half the rate, 50 Hz; got 60 Hz"),
        ({"rate_hz": 0.4}, "only 3 samples at 0.4 Hz"),
    ],
)
def test_impossible_preparations_are_refused(how, words):
    with pytest.raises(InvalidSamples, match=words):
        prepare(recording(np.arange(601) * 0.01), Preparation(**how))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"kinematics": "dreamt"}, "'measured' or 'commanded', got 'dreamt'"),
        ({"decimate": 0}, "at least 1"),
    ],
)
def test_impossible_settings_are_refused(how, words):
    with pytest.raises(InvalidSamples, match=words):
        Preparation(**how)


def test_missing_signals_are_named():
    rec = recording(np.arange(300) * 0.01)
    bare = Recording(t=rec.t, q=rec.q)
    with pytest.raises(InvalidRecording, match="neither torques nor motor currents"):
        prepare(bare)
    with pytest.raises(InvalidRecording, match="give drives with gains"):
        prepare(replace(bare, current=rec.tau))
    with pytest.raises(
        InvalidRecording, match="drives were given, but the recording has no motor currents"
    ):
        prepare(rec, drive=DriveModel(np.zeros(2), gain=1.0))
    with pytest.raises(InvalidRecording, match="no commanded positions"):
        prepare(replace(bare, tau=rec.tau), Preparation(kinematics="commanded"))
    with pytest.raises(InvalidSamples, match=r"the drives need 2 gains other than 0"):
        prepare(replace(bare, current=rec.tau), drive=DriveModel(np.zeros(2), gain=[1.0, 0.0]))
    with pytest.raises(
        InvalidSamples, match=r"the drives need 2 gains other than 0 \[Nm/A\], got None"
    ):
        prepare(replace(bare, current=rec.tau), drive=DriveModel.ideal(2))
    hollow = rec.q.copy()
    hollow[3:] = np.nan
    with pytest.raises(InvalidRecording, match="only 3 rows are complete"):
        prepare(replace(rec, q=hollow))


def test_motors_that_turn_several_joints_make_their_torques_together():
    t = np.arange(200) / 100.0
    q = np.column_stack([np.sin(t), np.cos(2 * t)])
    current = np.random.default_rng(0).normal(size=(200, 2))
    coupling = np.array([[50.0, 0.0], [20.0, 40.0]])
    drive = DriveModel(np.zeros(2), gain=np.array([3.0, 4.0]), coupling=coupling)
    samples = prepare(Recording(t, q, current=current), Preparation(cutoff_hz=None), drive=drive)
    motors = current * [3.0, 4.0]  # at the joint that each motor turns most
    np.testing.assert_allclose(samples.tau, motors @ (coupling / np.diag(coupling)[:, None]))
    np.testing.assert_array_equal(samples.gain, [3.0, 4.0])
    assert prepare(Recording(t, q, tau=current), Preparation(cutoff_hz=None)).gain is None
    with pytest.raises(InvalidSamples, match=r"prepare\(\) wants a Recording, got str"):
        prepare("arm.csv")


EVERY_FIELD = {
    "rate_hz": 250.0,
    "cutoff_hz": None,
    "torque_cutoff_hz": 7.5,
    "order": 2,
    "mean_length": 3,
    "kinematics": "commanded",
    "fourier_period_s": 6.0,
    "fourier_harmonics": 7,
    "lowest_speed": 0.02,
    "decimate": 4,
    "trim_s": 0.3,
    "longest_gap_s": 0.2,
    "lag_s": (0.004, -0.001),
}


def test_a_preparation_comes_back_from_its_plain_values_with_every_field():
    default, other = Preparation(), Preparation(**EVERY_FIELD)
    assert set(EVERY_FIELD) == {item.name for item in fields(Preparation)}
    for item in fields(Preparation):
        assert getattr(other, item.name) != getattr(default, item.name)
    for how in (default, other):
        assert Preparation.from_dict(json.loads(json.dumps(how.to_dict()))) == how
    for name in EVERY_FIELD:  # a file that lacks one does not say how its data were prepared
        rest = {other: value for other, value in default.to_dict().items() if other != name}
        with pytest.raises(InvalidSamples, match=f"'{name}' is missing"):
            Preparation.from_dict(rest)
    assert default.cutoff_hz == "auto"
    with pytest.raises(
        InvalidSamples, match="'cutoff_hz' must be a finite number above 0 or 'auto', got 'best'"
    ):
        Preparation(cutoff_hz="best")
    with pytest.raises(
        InvalidSamples, match="'cutoff' is not a field; the fields are rate_hz, cutoff_hz,"
    ):
        Preparation.from_dict({"cutoff": 10.0})


# --- the cut-off that a motion asks for


def swings(noise, *, rate_hz=100.0, dither=0.0, seed=0):
    """Two slowly swinging joints and a third that hardly moves, with noisy positions."""
    t = np.arange(0, 20, 1 / rate_hz)
    q = np.column_stack(
        [np.sin(1.5 * t), 0.5 * np.sin(2.2 * t + 1) + 0.2 * np.sin(4.1 * t), 1e-3 * np.sin(t)]
    )
    q += dither * np.sin(2 * np.pi * 6.0 * t)[:, None] * [1, 1, 0]
    q += noise * np.random.default_rng(seed).normal(size=q.shape)
    return Recording(t=t, q=q, tau=q)


def test_the_cutoff_falls_with_the_noise_and_is_the_highest_without_any():
    chosen = [
        prepare(swings(noise)).preparation.cutoff_hz
        for noise in (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
    ]
    assert chosen[0] == 40.0
    assert chosen[-1] == 5.0
    assert chosen == sorted(chosen, reverse=True)
    assert len(set(chosen)) > 3


def test_accelerations_at_the_chosen_cutoff_are_nearly_as_good_as_they_can_be():
    clean = prepare(swings(0.0)).a[200:-200, :2]
    for noise in (1e-5, 1e-4, 1e-3):
        errors = {}
        for cutoff_hz in ("auto", 5.0, 8.0, 12.5, 20.0, 30.0):
            samples = prepare(swings(noise), Preparation(cutoff_hz=cutoff_hz))
            errors[cutoff_hz] = np.std(samples.a[200:-200, :2] - clean) / np.std(clean)
        assert errors["auto"] < max(0.03, 1.1 * min(errors.values()))


def test_a_fast_dither_is_motion_too():
    assert prepare(swings(1e-4, dither=3e-3)).preparation.cutoff_hz >= 12.0
    assert prepare(swings(1e-4)).preparation.cutoff_hz < 12.0


def test_one_cutoff_is_chosen_for_all_recordings_and_kept_with_the_samples():
    clean, noisy = swings(1e-6), swings(1e-3)
    how = with_chosen_cutoff(Preparation(), [clean, noisy, noisy])
    assert how.cutoff_hz == prepare(noisy).preparation.cutoff_hz
    assert with_chosen_cutoff(Preparation(cutoff_hz=7.0), [clean]).cutoff_hz == 7.0
    assert with_chosen_cutoff(Preparation(), []) == Preparation()
    samples = prepare(clean)
    assert f"at {samples.preparation.cutoff_hz:g} Hz on the motion" in " ".join(samples.made_by)
    assert prepare(clean, samples.preparation).preparation == samples.preparation
    np.testing.assert_array_equal(prepare(clean, samples.preparation).a, samples.a)
