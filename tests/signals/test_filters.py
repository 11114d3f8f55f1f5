import numpy as np
import pytest
from scipy import interpolate, signal

from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.signals import (
    FixedLag,
    central_differences,
    low_pass,
    moving_mean,
    resample,
    uniform_clock,
)

RATE = 100.0
T = np.arange(0, 5, 1 / RATE)
SLOW = np.column_stack([np.sin(2 * np.pi * 0.5 * T), 2 * np.cos(2 * np.pi * 0.7 * T + 0.3)])


def test_low_pass_keeps_slow_motion_in_place_and_removes_fast_noise():
    fast = 0.3 * np.sin(2 * np.pi * 35 * T)[:, None]
    filtered = low_pass(SLOW + fast, 10.0, RATE)
    inside = slice(50, -50)
    np.testing.assert_allclose(filtered[inside], SLOW[inside], atol=2e-4)


@pytest.mark.parametrize("cutoff_hz", [3.0, 25.0, 40.0, 48.0])
def test_low_pass_leaves_steady_motion_alone_up_to_its_ends(cutoff_hz):
    """A filter near half the rate rings as long as a slow one."""
    steady = np.arange(400.0)[:, None]
    np.testing.assert_allclose(low_pass(steady, cutoff_hz, RATE), steady, rtol=0, atol=0.02)


def test_low_pass_lets_a_quarter_of_the_power_through_at_the_cut_off():
    wave = np.sin(2 * np.pi * 8.0 * T)[:, None]
    filtered = low_pass(wave, 8.0, RATE)[100:-100]
    assert np.var(filtered) / np.var(wave[100:-100]) == pytest.approx(0.25, rel=0.02)


def test_central_differences_are_exact_for_quadratics_everywhere():
    x = np.column_stack([3 * T**2 - T + 2, -(T**2) + 5])
    v, a = central_differences(x, RATE)
    np.testing.assert_allclose(v, np.column_stack([6 * T - 1, -2 * T]), atol=1e-9)
    np.testing.assert_allclose(a, np.broadcast_to([6.0, -2.0], a.shape), atol=1e-7)


def test_moving_mean_is_the_mean_of_the_neighbours():
    x = np.random.default_rng(0).normal(size=(30, 2))
    mean = moving_mean(x, 5)
    for i in range(30):
        np.testing.assert_allclose(mean[i], x[max(i - 2, 0) : i + 3].mean(axis=0), atol=1e-12)


def test_resampling_jittered_times_recovers_the_smooth_signal():
    rng = np.random.default_rng(1)
    jittered = np.sort(T + rng.uniform(-0.003, 0.003, T.size))
    wave = np.sin(2 * np.pi * jittered)[:, None]
    inside = T[1:-1]
    exact = np.sin(2 * np.pi * inside)[:, None]
    cubic, straight = (
        np.abs(resample(jittered, wave, inside, smooth=s) - exact).max() for s in (True, False)
    )
    assert cubic < 2e-5 < 5e-4 < straight < 5e-3


def test_a_causal_mean_is_the_mean_of_the_last_values():
    x = np.random.default_rng(2).normal(size=(20, 3))
    means = moving_mean(x, 4, causal=True)
    np.testing.assert_allclose(means[10], x[7:11].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(means[1], (3 * x[0] + x[1]) / 4, atol=1e-12)


def test_a_fixed_lag_is_the_zero_phase_filter_and_its_differences_late():
    wave, state, late = SLOW + 0.1 * np.sin(2 * np.pi * 30 * T)[:, None], None, []
    filter_ = FixedLag(8.0, RATE)
    state = filter_.init(2)
    for x in wave:
        state, out = filter_.step(state, x)
        late.append(np.full((3, 2), np.nan) if out is None else out)
    value = low_pass(wave, 8.0, RATE)
    expected = np.stack([value, *central_differences(value, RATE)], axis=1)
    inside = slice(100, -100)
    ahead = np.array(late)[filter_.lag :][inside]
    np.testing.assert_allclose(ahead[:, 0], expected[inside][: len(ahead), 0], atol=1e-3)
    np.testing.assert_allclose(ahead[:, 1], expected[inside][: len(ahead), 1], atol=0.02)
    assert filter_.delay_s == pytest.approx(filter_.lag / RATE)


def test_a_fixed_lag_without_a_filter_is_the_central_difference_one_sample_late():
    filter_ = FixedLag(None, RATE)
    state, late = filter_.init(2), []
    for x in SLOW:
        state, out = filter_.step(state, x)
        late.append(out)
    v, a = central_differences(SLOW, RATE)
    assert late[:2] == [None, None]
    np.testing.assert_array_equal([out[0] for out in late[2:]], SLOW[1:-1])
    np.testing.assert_allclose([out[1] for out in late[2:]], v[1:-1], atol=1e-12)
    np.testing.assert_allclose([out[2] for out in late[2:]], a[1:-1], atol=1e-9)
    assert filter_.delay_s == pytest.approx(0.01)


def test_states_of_a_fixed_lag_are_values():
    filter_ = FixedLag(20.0, RATE)
    state = filter_.init(2)
    for x in SLOW[:100]:
        state, _ = filter_.step(state, x)
    first, again = (filter_.step(state, [1.0, 2.0])[1] for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_a_uniform_clock_is_kept_and_a_jittered_one_is_replaced_by_its_mean_rate():
    assert uniform_clock(T) is T
    jittered = 3.0 + np.sort(T + np.random.default_rng(1).uniform(-0.003, 0.003, T.size))
    grid = uniform_clock(jittered)
    np.testing.assert_allclose(grid, np.linspace(jittered[0], jittered[-1], len(T)), atol=1e-9)
    slower = uniform_clock(T, rate_hz=40.0)
    np.testing.assert_allclose(slower, np.arange(len(slower)) / 40.0, atol=1e-12)
    assert slower[-1] <= T[-1]


def test_a_hole_in_the_clock_is_refused_unless_it_is_allowed():
    holed = np.delete(T, np.s_[100:120])
    with pytest.raises(InvalidRecording, match=r"0\.210 s are missing after t = 0\.990 s"):
        uniform_clock(holed)
    assert len(uniform_clock(holed, longest_gap_s=0.3)) == len(holed)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: low_pass(SLOW, 50.0, RATE), "half the rate, 50 Hz; got 50 Hz"),
        (lambda: moving_mean(SLOW, 4), "odd length, got 4"),
        (lambda: central_differences(SLOW[:3], RATE), "at least 4 samples, got 3"),
        (lambda: resample([0.0], [[1.0]], [0.0]), "one row cannot be resampled"),
        (lambda: moving_mean(SLOW, 0, causal=True), "at least one sample, got 0"),
        (lambda: FixedLag(None, -1.0), "rate_hz must be positive, got -1"),
        (lambda: FixedLag(80.0, RATE), "half the rate, 50 Hz; got 80 Hz"),
        (lambda: uniform_clock(np.repeat(T, 2)), "4 or more times that increase, got 1000 rows"),
        (lambda: uniform_clock(T[:3]), "4 or more times that increase, got 3 rows"),
        (
            lambda: uniform_clock(T, rate_hz=500.0),
            "500 Hz is faster than the recording, about 100 Hz",
        ),
        (lambda: uniform_clock(T, rate_hz=0.5), "only 3 samples at 0.5 Hz; at least 4 are needed"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(InvalidSamples, match=words):
        call()


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("rows", "cutoff_hz"), [(1000, 20.0), (400, 0.7), (300, 42.0), (5, 30.0), (2, 10.0)]
)
def test_the_filter_is_that_of_scipy(order, rows, cutoff_hz):
    x = np.cumsum(np.random.default_rng(rows).normal(size=(rows, 3)), axis=0)
    sections = signal.butter(order, cutoff_hz, fs=100.0, output="sos")
    settle = min(rows - 1, int(np.ceil(3 * 100.0 / min(cutoff_hz, 50.0 - cutoff_hz))))
    expected = signal.sosfiltfilt(sections, x, axis=0, padlen=settle)
    np.testing.assert_allclose(
        low_pass(x, cutoff_hz, 100.0, order=order), expected, rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("rows", [4, 5, 300])
def test_the_splines_are_those_of_scipy(rows):
    rng = np.random.default_rng(rows)
    t, x = np.cumsum(rng.uniform(0.008, 0.012, rows)), np.cumsum(rng.normal(size=(rows, 3)), axis=0)
    inside = np.linspace(t[0], t[-1], 3 * rows)
    for smooth, degree in ((True, 3), (False, 1)):
        expected = interpolate.make_interp_spline(t, x, k=degree)(inside)
        np.testing.assert_allclose(
            resample(t, x, inside, smooth=smooth), expected, rtol=0, atol=1e-11
        )
