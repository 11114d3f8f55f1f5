"""Jumps of positions: broken readings are left out, other jumps are named, and motion has none."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.quality import check
from steelyard.quality._position_jumps import find_position_jumps
from steelyard.recording import Recording
from steelyard.signals import prepare

RATE_HZ = 125.0
T = np.arange(1000) / RATE_HZ
W = np.array([1.3, 2.1, 3.4])
NAMES = ("pan", "lift", "elbow")


@pytest.fixture
def q(rng):
    """Three joints that swing, with steps of an encoder."""
    return np.round(np.sin(W * T[:, None]) + 1e-5 * rng.standard_normal((1000, 3)), 4)


def recorded(q):
    return Recording(t=T, q=q, tau=np.cos(q) + 0.1, joint_names=NAMES)


@pytest.mark.parametrize("size", [0.05, -0.3, 100.0])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_a_position_that_jumps_away_and_back_is_broken(q, size, rows):
    q[700 : 700 + rows, 1] += size
    jumps = find_position_jumps(T, q)
    assert np.argwhere(jumps.broken).tolist() == [[700 + k, 1] for k in range(rows)]
    assert not jumps.lasting.any()


def test_damaged_rows_may_hold_anything(q):
    q[300:303, 2] = (5.0, -7.0, 0.6)
    assert np.flatnonzero(find_position_jumps(T, q).broken[:, 2]).tolist() == [300, 301, 302]


def test_several_broken_rows_of_several_joints_are_all_found(q):
    for row, joint in ((50, 0), (51, 2), (400, 0), (990, 1)):
        q[row, joint] += 0.2
    found = np.argwhere(find_position_jumps(T, q).broken).tolist()
    assert found == [[50, 0], [51, 2], [400, 0], [990, 1]]


def test_a_position_that_jumps_and_stays_is_not_left_out(q):
    q[500:, 1] += 0.1
    jumps = find_position_jumps(T, q)
    assert not jumps.broken.any()
    assert np.argwhere(jumps.lasting).tolist() == [[500, 1]]
    (finding,) = [each for each in check(recorded(q)).findings if each.kind == "position_jump"]
    assert (finding.place.row, finding.place.joints) == (501, ("lift",))


def test_a_frozen_position_shows_where_it_goes_on(q):
    q[300:400] = q[300]
    lasting = find_position_jumps(T, q).lasting
    assert (np.argwhere(lasting)[:, 0] == 400).all()
    assert lasting.any()


@pytest.mark.parametrize("repeated", [4, 8])
def test_a_late_driver_that_goes_on_where_the_motion_is_does_not_jump(q, repeated):
    late = q.copy()
    late[500 : 501 + repeated] = q[500]
    assert not find_position_jumps(T, late).lasting.any()
    late[501 + repeated :, 2] += 0.5 * repeated  # the elbow goes on elsewhere
    lasting = find_position_jumps(T, late).lasting
    assert np.argwhere(lasting).tolist() == [[501 + repeated, 2]]


def test_an_emergency_stop_is_a_motion():
    speed = np.clip(3.0 - 100.0 * np.maximum(T - 4.0, 0.0), 0.0, None)
    stopping = np.cumsum(speed)[:, None] / RATE_HZ * np.array([1.0, -0.5, 0.2])
    jumps = find_position_jumps(T, stopping)
    assert not jumps.broken.any()
    assert not jumps.lasting.any()


@pytest.mark.parametrize("every", [2, 4, 8])
def test_held_samples_are_not_broken(q, every):
    held = q[::every].repeat(every, axis=0)
    jumps = find_position_jumps(T, held)
    assert not jumps.broken.any()
    assert not jumps.lasting.any()


def test_a_gap_in_time_is_no_jump(q):
    kept = np.delete(np.arange(1000), slice(300, 420))
    jumps = find_position_jumps(T[kept], q[kept])
    assert not jumps.broken.any()
    assert not jumps.lasting.any()


def test_postures_are_not_rows_of_a_motion(q):
    assert not find_position_jumps(5.0 * np.arange(40), q[::25]).broken.any()


def test_a_recording_full_of_jumps_is_of_another_kind(q, rng):
    q[rng.permutation(1000)[:100]] += 1.0
    jumps = find_position_jumps(T, q)
    assert not jumps.broken.any()
    assert not jumps.lasting.any()


def test_rows_without_position_or_out_of_order_are_no_neighbours(q):
    q[200:203, 0] = np.nan
    t = T.copy()
    t[600] = T[590]
    q[800, 0] -= 0.4
    assert np.argwhere(find_position_jumps(t, q).broken).tolist() == [[800, 0]]


def test_samples_are_those_of_a_recording_without_the_broken_row(q):
    broken = q.copy()
    broken[700, 2] += 1.0
    missing = q.copy()
    missing[700, 2] = np.nan
    samples = prepare(recorded(broken))
    assert samples.a == pytest.approx(prepare(recorded(missing)).a, abs=1e-12)
    assert np.abs(samples.a).max() < 1.5 * (W**2).max()
    (warning,) = [each for each in samples.warnings if "q jumps away and back" in each]
    assert "1 row left out, first at 5.6 s in row 701 (elbow)" in warning


def test_commanded_positions_are_checked_too(q):
    commanded = q.copy()
    commanded[123, 0] += 0.5
    run = replace(recorded(q), q_commanded=commanded)
    (finding,) = [each for each in check(run).findings if each.kind == "broken_position"]
    assert (finding.place.channel, finding.place.row) == ("q_commanded", 124)
