"""Replay: the causal path gives what `prepare` gives, only later, whatever the stream does."""

import numpy as np
import pytest

from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.recording import Recording
from steelyard.robot import DriveModel
from steelyard.signals import (
    FixedLag,
    JointPath,
    Preparation,
    UnfilteredPath,
    prepare,
    replay,
)

RATE_HZ = 125.0


def signals(t):
    """A motion of two joints that is no polynomial, and torques that belong to it."""
    q = np.column_stack([np.sin(2.1 * t) + 0.3 * np.sin(7 * t), 0.8 * np.cos(3.3 * t)])
    return q, np.column_stack([5 * np.sin(2.1 * t + 0.4), np.sign(np.sin(3.3 * t))])


def recording(t=None, **more):
    t = np.arange(0, 4, 1 / RATE_HZ) if t is None else t
    q, tau = signals(t)
    return Recording(**{"t": t, "q": q, "tau": tau, **more})


def arrays(samples):
    """Time, position, velocity, acceleration and torque of samples."""
    samples = list(samples)
    t = np.array([sample.t for sample in samples])
    q, v, a = np.array([sample.motion for sample in samples]).transpose(1, 0, 2)
    return t, q, v, a, np.array([sample.effort for sample in samples])


def good(samples):
    return [sample for sample in samples if not sample.fault]


@pytest.mark.parametrize("cutoff_hz", [None, 10.0, 20.0])
@pytest.mark.parametrize("torque_cutoff_hz", [None, 8.0])
def test_replay_is_what_prepare_makes(cutoff_hz, torque_cutoff_hz):
    how = Preparation(cutoff_hz=cutoff_hz, torque_cutoff_hz=torque_cutoff_hz)
    noisy = recording(
        q=signals(np.arange(0, 4, 1 / RATE_HZ))[0]
        + 1e-4 * np.random.default_rng(0).normal(size=(500, 2))
    )
    t, q, v, a, tau = arrays(replay(noisy, how))
    offline = prepare(noisy, how)
    at = np.round((t - offline.start_s) * RATE_HZ).astype(int)
    np.testing.assert_allclose(t, offline.t[at], atol=1e-9)
    middle = (at > 60) & (at < 440)  # ends of the offline filter see no neighbours
    for online, name, share in ((q, "q", 1e-4), (v, "v", 1e-3), (a, "a", 0.02), (tau, "tau", 0.01)):
        expected = getattr(offline, name)[at]
        error = np.sqrt(np.mean((online - expected)[middle] ** 2, axis=0))
        assert (error < share * expected.std(axis=0)).all(), name


def test_motion_and_torque_belong_to_one_instant():
    """A torque equal to the acceleration stays aligned although only the motion is filtered."""
    t = np.arange(0, 6, 1 / RATE_HZ)
    q = np.sin(4.0 * t)[:, None]
    _, _, _, a, tau = arrays(replay(Recording(t=t, q=q, tau=-16 * q), Preparation(cutoff_hz=10.0)))
    shifts = [np.corrcoef(np.roll(tau[:, 0], k)[50:-50], a[50:-50, 0])[0, 1] for k in (-1, 0, 1)]
    assert shifts[1] == max(shifts)
    np.testing.assert_allclose(a, tau, atol=0.02 * 16)


def test_the_promised_delay_is_the_real_one():
    path = JointPath.of(recording(), Preparation(cutoff_hz=10.0))
    state, late = path.init(), []
    q, tau = signals(np.arange(0, 4, 1 / RATE_HZ))
    for t, x, torque in zip(np.arange(0, 4, 1 / RATE_HZ), q, tau, strict=True):
        state, ready = path.step(state, t, x[None], torque)
        late += [t - sample.t for sample in ready]
    assert late
    assert max(late) == pytest.approx(path.delay_s, abs=1.5 / RATE_HZ)
    assert max(late) <= path.delay_s + 1e-9


def test_states_are_values():
    path = JointPath(2, RATE_HZ, Preparation(cutoff_hz=20.0))
    now = np.arange(60) / RATE_HZ
    rows = [(t, q[None], tau) for t, q, tau in zip(now, *signals(now), strict=True)]
    state = path.init()
    for row in rows[:50]:
        state, _ = path.step(state, *row)
    first, again = (path.step(state, *rows[50]) for _ in range(2))
    assert first[1][0].t == again[1][0].t
    np.testing.assert_array_equal(first[1][0].motion, again[1][0].motion)


def test_a_clock_that_jitters_does_not_matter():
    rng = np.random.default_rng(1)
    t = np.arange(0, 4, 1 / RATE_HZ) + rng.uniform(-1, 1, 500) * 0.2 / RATE_HZ
    q, tau = signals(t)
    at, online_q, v, a, _ = arrays(
        replay(Recording(t=t, q=q, tau=tau), Preparation(cutoff_hz=10.0))
    )
    truth_q = signals(at + t[0])[0]
    np.testing.assert_allclose(online_q, truth_q, atol=2e-3)
    speed = np.gradient(truth_q, at, axis=0)
    assert np.sqrt(np.mean((v - speed)[5:-5] ** 2)) < 0.01 * speed.std()
    assert np.sqrt(np.mean((a - np.gradient(speed, at, axis=0))[5:-5] ** 2)) < 0.05 * a.std()


def test_bad_rows_go_on_to_be_counted_and_leave_the_others_alone():
    clean = recording()
    q = np.array(clean.q)
    q[200, 1], q[300, 0] = np.nan, 1e9
    made = list(replay(recording(q=q), Preparation(cutoff_hz=10.0)))
    assert [sample.fault for sample in made if sample.fault] == ["corrupt", "corrupt"]
    t, _, _, a, _ = arrays(good(made))
    expected = {
        round(s.t * RATE_HZ): s.motion[2] for s in replay(clean, Preparation(cutoff_hz=10.0))
    }
    truth = np.array([expected[round(x * RATE_HZ)] for x in t])
    assert np.abs(a - truth).max() < 0.05 * np.abs(truth).max()


def test_repeated_and_late_rows_become_samples_that_an_estimator_skips():
    path, now = JointPath(2, RATE_HZ, Preparation(cutoff_hz=None)), np.arange(20) / RATE_HZ
    state = path.init()
    for t, q, tau in zip(now, *signals(now), strict=True):
        state, _ = path.step(state, t, q[None], tau)
    (repeated,) = path.step(state, now[-1], np.ones((1, 2)), np.ones(2))[1]
    (late,) = path.step(state, now[-3], np.ones((1, 2)), np.ones(2))[1]
    assert repeated.fault == "repeated"
    assert late.fault == "late"


def test_after_a_hole_the_filters_start_anew():
    t = np.arange(0, 4, 1 / RATE_HZ)
    t = t[(t < 1.5) | (t > 2.0)]
    at, _, _, a, _ = arrays(replay(recording(t), Preparation(cutoff_hz=10.0)))
    lag_s = FixedLag(10.0, RATE_HZ).delay_s
    assert not ((at > 1.5 - lag_s + 0.02) & (at < 2.0 + lag_s)).any()
    truth = np.gradient(np.gradient(signals(t)[0], t, axis=0), t, axis=0)
    assert np.abs(a).max() < 1.1 * np.abs(truth[np.r_[5:180, 200:430]]).max()


@pytest.mark.parametrize("known", [1, 2, 3])
def test_commanded_motion_is_used_as_far_as_it_goes(known):
    t = np.arange(0, 4, 1 / RATE_HZ)
    w = 2.5
    channels = dict(
        zip(
            ("q_commanded", "v_commanded", "a_commanded"),
            (np.sin(w * t), w * np.cos(w * t), -w * w * np.sin(w * t)),
            strict=True,
        )
    )
    channels = {name: x[:, None] for name, x in list(channels.items())[:known]}
    source = Recording(
        t=t, q=np.zeros((len(t), 1)) + t[:, None], tau=np.ones((len(t), 1)), **channels
    )
    at, q, v, a, _ = arrays(replay(source, Preparation(cutoff_hz=10.0, kinematics="commanded")))
    for found, truth in (
        (q, np.sin(w * at)),
        (v, w * np.cos(w * at)),
        (a, -w * w * np.sin(w * at)),
    ):
        np.testing.assert_allclose(found[:, 0], truth, atol=3e-3 * w * w)


def test_samples_come_as_they_are_and_currents_times_gains():
    prepared = prepare(recording())
    t, q, v, a, tau = arrays(replay(prepared))
    for found, name in ((t, "t"), (q, "q"), (v, "v"), (a, "a"), (tau, "tau")):
        np.testing.assert_array_equal(found, getattr(prepared, name))
    _, torque = signals(np.arange(0, 4, 1 / RATE_HZ))
    gain = np.array([10.0, -4.0])
    source = recording(tau=None, current=torque / gain)
    np.testing.assert_allclose(
        arrays(replay(source, drive=DriveModel(np.zeros(2), gain=gain)))[4],
        arrays(replay(recording()))[4],
        atol=1e-12,
    )


def test_paced_samples_wait_for_their_time():
    waits = []
    prepared = prepare(recording()).rows(slice(20))
    paced, samples = list(replay(prepared, sleep=waits.append)), list(replay(prepared))
    for one, other in zip(paced, samples, strict=True):
        assert one.t == other.t
        np.testing.assert_array_equal(one.motion, other.motion)
        np.testing.assert_array_equal(one.effort, other.effort)
    assert len(waits) == 19
    assert np.sum(np.diff(waits) > 0) > 15  # the test does not sleep, so each is further ahead


def test_refusals():
    with pytest.raises(InvalidRecording, match="no commanded positions; use kinematics='measured'"):
        replay(recording(), Preparation(kinematics="commanded"))
    with pytest.raises(
        InvalidRecording, match="the recording has neither torques nor motor currents"
    ):
        replay(recording(tau=None))
    with pytest.raises(InvalidRecording, match="has motor currents only: give drives with gains"):
        replay(recording(tau=None, current=np.ones((500, 2))))
    with pytest.raises(
        InvalidRecording, match="drives were given, but the recording has no motor currents"
    ):
        replay(recording(), drive=DriveModel(np.zeros(2), gain=1.0))
    with pytest.raises(InvalidSamples, match="the drives need 2 gains"):
        replay(recording(current=np.ones((500, 2))), drive=DriveModel(np.zeros(3), gain=1.0))
    with pytest.raises(InvalidSamples, match="not fitted with a Fourier series"):
        replay(recording(), Preparation(fourier_period_s=4.0))
    with pytest.raises(InvalidRecording, match="time of the recording does not advance"):
        replay(recording(np.zeros(500)))
    with pytest.raises(InvalidSamples, match="a stream cannot derive its cut-off: give a number"):
        JointPath(2, RATE_HZ)
    path = JointPath(2, RATE_HZ, Preparation(cutoff_hz=10.0))
    with pytest.raises(
        InvalidSamples, match="a row needs 1 x 2 numbers of motion and 2 torques, got"
    ):
        path.step(path.init(), 0.0, np.zeros((1, 3)), np.zeros(2))
    with pytest.raises(InvalidSamples, match="rate_hz must be positive"):
        FixedLag(None, 0.0)


# --- rows as they come


def stepped(q):
    return np.round(q / 1e-4) * 1e-4


def test_unfiltered_samples_are_those_of_prepare_without_a_filter():
    t = np.arange(0, 4, 1 / RATE_HZ)
    source = recording(q=stepped(signals(t)[0]))
    at, q, v, a, tau = arrays(replay(source, unfiltered=True))
    offline = prepare(source, Preparation(cutoff_hz=None))
    inside = slice(1, -1)  # the first and the last row have one neighbour
    np.testing.assert_allclose(at, offline.t[inside], atol=1e-12)
    np.testing.assert_array_equal(q, source.q[inside])
    np.testing.assert_array_equal(tau, source.tau[inside])
    np.testing.assert_allclose(v, offline.v[inside], atol=1e-9)
    np.testing.assert_allclose(a, offline.a[inside], atol=1e-7)


def test_unfiltered_rows_with_jitter_keep_their_own_times():
    t = np.arange(0, 4, 1 / RATE_HZ)
    t = t + np.random.default_rng(3).uniform(-2e-3, 2e-3, len(t))
    t = t - t[0]
    square = np.column_stack([0.4 * t**2 - t, 0.1 * t**2])
    at, q, v, a, _ = arrays(replay(recording(t, q=square), unfiltered=True))
    np.testing.assert_array_equal(at, t[1:-1])
    np.testing.assert_array_equal(q, square[1:-1])
    np.testing.assert_allclose(v, np.column_stack([0.8 * at - 1, 0.2 * at]), atol=1e-9)
    np.testing.assert_allclose(a, np.tile([0.8, 0.2], (len(at), 1)), atol=1e-6)


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_unfiltered_commanded_motion_is_used_as_it_was_commanded(channels):
    t = np.arange(0, 4, 1 / RATE_HZ)
    q, v, a = (np.random.default_rng(k).normal(size=(500, 2)) * 1e-3 for k in range(3))
    commanded = {"q_commanded": q, "v_commanded": v, "a_commanded": a}
    given = dict(list(commanded.items())[:channels])
    how = Preparation(kinematics="commanded")
    found = arrays(replay(recording(t, **given), how, unfiltered=True))
    path = UnfilteredPath.of(recording(t, **given), how)
    if channels == 3:
        assert path.delay_s == 0
        for values, expected in zip(found[1:4], (q, v, a), strict=True):
            np.testing.assert_array_equal(values, expected)
        return
    assert path.delay_s == pytest.approx(1 / RATE_HZ)
    if channels == 2:
        np.testing.assert_array_equal(found[2], v[1:-1])
        np.testing.assert_allclose(found[3], (v[2:] - v[:-2]) * RATE_HZ / 2, atol=1e-9)
    else:
        np.testing.assert_allclose(found[2], (q[2:] - q[:-2]) * RATE_HZ / 2, atol=1e-9)


def test_unfiltered_rows_that_cannot_be_used_are_counted_and_a_gap_restarts():
    path = UnfilteredPath(2, RATE_HZ)
    state = path.init()
    faults = []
    now = np.arange(6) / RATE_HZ
    times = [*now[:3], now[1], now[2], *now[3:], 5.0, 5.0 + 1 / RATE_HZ]
    for k, t in enumerate(times):
        position = np.array([1e-3 * k, -1e-3 * k])
        state, ready = path.step(state, float(t), position, np.ones(2))
        faults.append([sample.fault for sample in ready])
    assert faults == [[], [], [""], ["late"], ["repeated"], [""], [""], [""], [], []]
    state, ready = path.step(state, 5.016, np.full(2, np.nan), np.ones(2))
    assert ready[0].fault == "corrupt"
    with pytest.raises(InvalidRecording, match="the time of the recording does not advance"):
        replay(recording(np.zeros(500)), unfiltered=True)
