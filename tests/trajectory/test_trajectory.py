import json

import numpy as np
import pytest

from steelyard import _saved
from steelyard.errors import InvalidTrajectory, UnknownName, UnreadableFile
from steelyard.trajectory import (
    TRAJECTORIES,
    ApproachedTrajectory,
    FourierTrajectory,
)
from steelyard.trajectory._fourier import DESIGN_VERSION


@pytest.fixture
def series() -> FourierTrajectory:
    rng = np.random.default_rng(3)
    return FourierTrajectory(
        rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), rng.normal(size=3), 7.0
    )


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
    series = FourierTrajectory.random(
        centre, reach=reach, speed=speed, period_s=5.0, harmonics=5, seed=4
    )
    q, v, _ = series.at(np.linspace(0, 5, 5001))
    assert (np.abs(q - centre).max(axis=0) <= reach).all()
    assert (np.abs(v).max(axis=0) <= speed).all()
    assert (np.abs(v).max(axis=0) > 0.1 * speed).all()


def test_published_trajectory_of_xu2024_meets_its_own_boundary_constraints():
    series = FourierTrajectory.load("xu2024")
    q, v, a = series.at(np.array([0.0, 10.0]))
    home = [0, -np.pi / 2, 0, -np.pi / 2, 0, 0]
    np.testing.assert_allclose(q, [home, home], atol=2e-4)  # the table has four decimals
    np.testing.assert_allclose(v, 0, atol=2e-4)
    np.testing.assert_allclose(a, 0, atol=5e-4)
    peak = np.abs(series.at(np.linspace(0, 10, 1001))[1]).max(axis=0)
    assert (peak > 0.5).all()


def test_refusals(series):
    with pytest.raises(InvalidTrajectory, match=r"at least one harmonic, got \(3, 0\)"):
        FourierTrajectory(np.ones((3, 0)), np.ones((3, 0)), np.ones(3), 1.0)
    with pytest.raises(
        InvalidTrajectory, match="'period_s' must be a finite number above 0, got 0"
    ):
        FourierTrajectory(series.sine, series.cosine, series.offset, 0.0)
    with pytest.raises(
        InvalidTrajectory, match=r"'offset' must have shape \(n,\) with n = 3, got \(2,\)"
    ):
        FourierTrajectory(series.sine, series.cosine, np.ones(2), 1.0)
    with pytest.raises(InvalidTrajectory, match=r"5 harmonics need .* 11 samples, got 10"):
        FourierTrajectory.fitted(np.arange(10), np.ones((10, 1)), period_s=1.0, harmonics=5)
    with pytest.raises(UnknownName, match="bundled are ur10_payload, xu2024"):
        FourierTrajectory.load("nothing1999")
    assert TRAJECTORIES == ("ur10_payload", "xu2024")


def test_coefficients_are_copied_and_read_only():
    sine = np.ones((2, 1))
    series = FourierTrajectory(sine, np.ones((2, 1)), np.zeros(2), 1.0)
    sine[0] = 9
    assert series.sine[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        series.sine[0] = 9


def test_jerk_is_the_derivative_of_acceleration(series):
    t, h = np.linspace(0.1, 6.5, 40), 1e-5
    slope = (series.at(t + h)[2] - series.at(t - h)[2]) / (2 * h)
    np.testing.assert_allclose(slope, series.jerk(t), atol=1e-6)


def test_amplitudes_bound_the_signals_whatever_the_phases(series):
    q, v, a = series.at(np.linspace(0, 7, 7001))
    for signal, bound in zip((q - series.offset, v, a), series.amplitudes, strict=True):
        assert (np.abs(signal).max(axis=0) <= bound).all()
        assert (np.abs(signal).max(axis=0) > 0.3 * bound).all()
    one = FourierTrajectory(series.sine[:, :1], series.cosine[:, :1], series.offset, 7.0)
    peak = np.abs(one.at(np.linspace(0, 7, 70001))[1]).max(axis=0)
    np.testing.assert_allclose(peak, one.amplitudes[1], rtol=1e-6)


def test_rest_is_known(series):
    assert np.abs(FourierTrajectory.load("xu2024").at(np.zeros(1))[1:]).max() < 1e-3
    assert np.abs(series.at(np.zeros(1))[1:]).max() > 1e-3


def test_save_and_load_give_the_same_series(series, tmp_path):
    path = tmp_path / "motion.json"
    series.save(path)
    assert json.loads(path.read_text())["steelyard"] == "trajectory"
    plain, design = tmp_path / "plain.json", tmp_path / "design.json"
    plain.write_text(
        json.dumps(_saved.plain(series.to_dict()))
    )  # as files were before they had a header
    content = {"value": 1.0, "trajectory": series.to_dict()}
    _saved.save(content, "design", design, version=DESIGN_VERSION, sealed=True)
    for file in (path, plain, design):
        again = FourierTrajectory.load(file)
        for name in ("sine", "cosine", "offset", "period_s"):
            np.testing.assert_array_equal(getattr(again, name), getattr(series, name))
    with pytest.raises(
        UnreadableFile, match=r"cannot write .*motion\.json: there is no folder .*deep"
    ):
        series.save(tmp_path / "deep" / "motion.json")
    for name, value in (
        ("value", 2.0),
        ("steelyard", None),
    ):  # its certificate would be of another motion
        design.write_text(json.dumps({**json.loads(design.read_text()), name: value}))
        with pytest.raises(
            UnreadableFile, match=r"design\.json (was changed after|is not a design file)"
        ):
            FourierTrajectory.load(design)


def test_files_that_hold_no_trajectory_are_refused(tmp_path):
    path = tmp_path / "x.json"
    with pytest.raises(UnreadableFile, match=r"x\.json: no such file .*; check the path$"):
        FourierTrajectory.load(path)
    path.write_text("{")
    with pytest.raises(UnreadableFile, match="is not JSON"):
        FourierTrajectory.load(path)
    path.write_text('{"sine": [[1.0]]}')
    with pytest.raises(InvalidTrajectory, match="does not hold a trajectory: 'cosine' is missing"):
        FourierTrajectory.load(path)
    _saved.save({"sine": 1}, "payload", path)
    with pytest.raises(
        UnreadableFile, match=r"is not a trajectory file of steelyard \(it says 'payload'\)"
    ):
        FourierTrajectory.load(path)
    path.write_text("[1]")
    with pytest.raises(InvalidTrajectory, match="does not hold a trajectory"):
        FourierTrajectory.load(path)


def test_approach_is_smooth_and_keeps_its_limits(series):
    posture = np.array([0.4, -0.2, 0.1])
    _, v, a = series.at(np.linspace(0, 7, 2001))
    v_max, a_max = 1.2 * np.abs(v).max(axis=0), 1.2 * np.abs(a).max(axis=0)
    whole = ApproachedTrajectory.within(series, posture, v_max=v_max, a_max=a_max, periods=2)
    assert whole.duration_s == pytest.approx(whole.entry_s + 14.0 + whole.exit_s)
    t = np.linspace(0, whole.duration_s, 40001)
    q, v, a = whole.at(t)
    assert (np.abs(v) <= 1.001 * v_max).all()
    assert (np.abs(a) <= 1.001 * a_max).all()
    np.testing.assert_allclose(np.gradient(q, t, axis=0)[5:-5], v[5:-5], atol=1e-3)
    np.testing.assert_allclose(np.gradient(v, t, axis=0)[5:-5], a[5:-5], atol=2e-2)
    for end in (0, -1):
        np.testing.assert_allclose(q[end], posture, atol=1e-12)
        np.testing.assert_allclose([v[end], a[end]], 0, atol=1e-9)
    middle = np.array([whole.entry_s + 3.0])
    np.testing.assert_allclose(whole.at(middle)[0], series.at(np.array([3.0]))[0], atol=1e-12)


def test_approach_refusals(series):
    with pytest.raises(InvalidTrajectory, match="posture must be three finite numbers"):
        ApproachedTrajectory(series, np.zeros(2), 1.0, 1.0)
    with pytest.raises(
        InvalidTrajectory, match="entry_s, exit_s and periods must be positive, got 0"
    ):
        ApproachedTrajectory(series, np.zeros(3), 0.0, 1.0)
    with pytest.raises(InvalidTrajectory, match="no entry within 120 s keeps the limits"):
        ApproachedTrajectory.within(
            series, np.zeros(3), v_max=np.full(3, 1e-3), a_max=np.full(3, 1e-3)
        )
