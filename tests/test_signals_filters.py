import numpy as np
import pytest

from steelyard.errors import InvalidSamples
from steelyard.signals import (
    CausalDecimation,
    CausalDerivative,
    CausalLowPass,
    CausalMean,
    central_differences,
    low_pass,
    moving_mean,
    resample,
)

RATE = 100.0
T = np.arange(0, 5, 1 / RATE)
SLOW = np.column_stack([np.sin(2 * np.pi * 0.5 * T), 2 * np.cos(2 * np.pi * 0.7 * T + 0.3)])


def test_low_pass_keeps_slow_motion_in_place_and_removes_fast_noise():
    fast = 0.3 * np.sin(2 * np.pi * 35 * T)[:, None]
    filtered = low_pass(SLOW + fast, 10.0, RATE)
    inside = slice(50, -50)
    np.testing.assert_allclose(filtered[inside], SLOW[inside], atol=2e-4)


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


def test_causal_low_pass_forwards_and_backwards_is_the_zero_phase_one():
    filter_ = CausalLowPass(cutoff_hz=8.0, rate_hz=RATE)
    once = _run(filter_, SLOW)
    twice = _run(filter_, once[::-1])[::-1]
    inside = slice(120, -120)
    np.testing.assert_allclose(twice[inside], low_pass(SLOW, 8.0, RATE)[inside], atol=1e-7)


def test_causal_low_pass_delays_slow_motion_by_what_it_says():
    filter_ = CausalLowPass(cutoff_hz=8.0, rate_hz=RATE)
    delayed = np.sin(2 * np.pi * 0.5 * (T - filter_.delay_s))
    assert 0.02 < filter_.delay_s < 0.1
    np.testing.assert_allclose(_run(filter_, SLOW)[100:, 0], delayed[100:], atol=2e-3)


def test_causal_low_pass_starts_settled():
    filter_ = CausalLowPass(cutoff_hz=8.0, rate_hz=RATE)
    _, y = filter_.step(filter_.init([2.0, -3.0]), [2.0, -3.0])
    np.testing.assert_allclose(y, [2.0, -3.0], atol=1e-12)


def test_causal_derivative_is_the_central_difference_one_sample_late():
    filter_ = CausalDerivative(RATE)
    state = filter_.init(SLOW[0])
    late = []
    for x in SLOW[1:]:
        state, out = filter_.step(state, x)
        late.append(out)
    v, a = central_differences(SLOW, RATE)
    np.testing.assert_array_equal([out[0] for out in late[1:]], SLOW[1:-1])
    np.testing.assert_allclose([out[1] for out in late[1:]], v[1:-1], atol=1e-12)
    np.testing.assert_allclose([out[2] for out in late[1:]], a[1:-1], atol=1e-9)
    assert filter_.delay_s == pytest.approx(0.01)


def test_causal_mean_is_the_mean_of_the_last_values():
    x = np.random.default_rng(2).normal(size=(20, 3))
    means = _run(CausalMean(4), x)
    np.testing.assert_allclose(means[10], x[7:11].mean(axis=0), atol=1e-12)


def test_causal_decimation_lets_every_third_sample_through():
    filter_ = CausalDecimation(3)
    state, passed = filter_.init(), []
    for _ in range(7):
        state, through = filter_.step(state)
        passed.append(through)
    assert passed == [True, False, False, True, False, False, True]


def test_states_are_values():
    filter_ = CausalLowPass(cutoff_hz=5.0, rate_hz=RATE)
    state = filter_.init([0.5])
    first = filter_.step(state, [1.0])[1]
    again = filter_.step(state, [1.0])[1]
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: low_pass(SLOW, 50.0, RATE), "half the rate, 50 Hz; got 50 Hz"),
        (lambda: moving_mean(SLOW, 4), "odd length, got 4"),
        (lambda: central_differences(SLOW[:3], RATE), "at least 4 samples, got 3"),
        (lambda: resample([0.0], [[1.0]], [0.0]), "one row cannot be resampled"),
        (lambda: CausalMean(0), "at least one sample, got 0"),
        (lambda: CausalDecimation(0), "k >= 1; got 0"),
        (lambda: CausalDerivative(-1.0), "rate_hz must be positive, got -1"),
        (lambda: CausalLowPass(80.0, RATE), "half the rate, 50 Hz; got 80 Hz"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(InvalidSamples, match=words):
        call()


def _run(filter_, x):
    state = filter_.init(x[0])
    out = []
    for row in x:
        state, y = filter_.step(state, row)
        out.append(y)
    return np.array(out)
