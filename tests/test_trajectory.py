import numpy as np
import pytest

from steelyard.errors import InvalidTrajectory, UnknownName
from steelyard.trajectory import FourierTrajectory, load_trajectory, trajectory_names


@pytest.fixture
def series() -> FourierTrajectory:
    rng = np.random.default_rng(3)
    return FourierTrajectory(rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), rng.normal(size=3), 7.0)


def test_velocity_and_acceleration_are_derivatives(series):
    t, h = np.linspace(0.1, 6.5, 40), 1e-5
    (q0, v0, _), (q1, v1, _) = series.at(t - h), series.at(t + h)
    _, v, a = series.at(t)
    np.testing.assert_allclose((q1 - q0) / (2 * h), v, atol=1e-8)
    np.testing.assert_allclose((v1 - v0) / (2 * h), a, atol=1e-7)


def test_fit_recovers_the_series_from_its_positions(series):
    t = np.linspace(0, 7.0, 200)
    fitted = FourierTrajectory.fitted(t, series.at(t)[0], period_s=7.0, harmonics=4)
    for name in ("sine", "cosine", "offset"):
        np.testing.assert_allclose(getattr(fitted, name), getattr(series, name), atol=1e-10)


def test_random_motion_stays_within_reach_and_speed():
    centre, reach, speed = np.array([0.3, -1.0]), np.array([0.5, 1.5]), np.array([0.4, 2.0])
    series = FourierTrajectory.random(centre, reach=reach, speed=speed, period_s=5.0, harmonics=5, seed=4)
    q, v, _ = series.at(np.linspace(0, 5, 5001))
    assert (np.abs(q - centre).max(axis=0) <= reach).all()
    assert (np.abs(v).max(axis=0) <= speed).all()
    assert (np.abs(v).max(axis=0) > 0.1 * speed).all()


def test_published_trajectory_of_xu2024_meets_its_own_boundary_constraints():
    series = load_trajectory("xu2024")
    q, v, a = series.at(np.array([0.0, 10.0]))
    home = [0, -np.pi / 2, 0, -np.pi / 2, 0, 0]
    np.testing.assert_allclose(q, [home, home], atol=2e-4)  # the table has four decimals
    np.testing.assert_allclose(v, 0, atol=2e-4)
    np.testing.assert_allclose(a, 0, atol=5e-4)
    peak = np.abs(series.at(np.linspace(0, 10, 1001))[1]).max(axis=0)
    assert (peak > 0.5).all()


def test_refusals(series):
    with pytest.raises(InvalidTrajectory, match=r"L >= 1, got \(3, 0\)"):
        FourierTrajectory(np.ones((3, 0)), np.ones((3, 0)), np.ones(3), 1.0)
    with pytest.raises(InvalidTrajectory, match="period_s must be positive, got 0"):
        FourierTrajectory(series.sine, series.cosine, series.offset, 0.0)
    with pytest.raises(InvalidTrajectory, match=r"offset must be \(3,\) finite numbers, got shape \(2,\)"):
        FourierTrajectory(series.sine, series.cosine, np.ones(2), 1.0)
    with pytest.raises(InvalidTrajectory, match=r"5 harmonics need .* 11 samples, got 10"):
        FourierTrajectory.fitted(np.arange(10), np.ones((10, 1)), period_s=1.0, harmonics=5)
    with pytest.raises(UnknownName, match="bundled are xu2024"):
        load_trajectory("nobody1999")
    assert trajectory_names() == ("xu2024",)


def test_coefficients_are_copied_and_read_only():
    sine = np.ones((2, 1))
    series = FourierTrajectory(sine, np.ones((2, 1)), np.zeros(2), 1.0)
    sine[0] = 9
    assert series.sine[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        series.sine[0] = 9
