"""A tracker sees every change of the payload in a cell that picks and places all the time."""

import numpy as np
import pytest

from picking_shifts import arm, model, plan, shift
from steelyard.recording import Sample
from steelyard.torque.tracking import TorqueTracker
from steelyard.workflow._picks import Picking


@pytest.fixture(scope="module")
def tracked():
    """The picks of a shift, and the state of a tracker after all of its samples."""
    log, picks = shift(arm(), plan(cycles=6), 21)
    samples = Picking(model(), log).runs[0].ready
    tracker = TorqueTracker(model(), "measured")
    state = tracker.init()
    for t, q, v, a, tau in zip(
        samples.t, samples.q, samples.v, samples.a, samples.tau, strict=True
    ):
        state = tracker.step(state, Sample.of_joints(t, q, v, a, tau))
    return picks, state


def test_each_change_is_seen_and_none_else(tracked):
    """Changes follow each other within two seconds, in a cell that rests only to grip."""
    picks, state = tracked
    changes = [time for pick in picks for time in (pick.close_s, pick.open_s)][1:]
    seen = [episode.end_s for episode in state.history]
    assert len(seen) == len(changes)
    assert np.abs(np.subtract(seen, changes)).max() < 0.6


def test_each_part_is_weighed_between_two_changes(tracked):
    picks, state = tracked
    carried = state.history[0::2]
    for pick, episode in zip(picks, carried, strict=True):
        std = np.sqrt(episode.covariance[0, 0])
        assert abs(episode.vector[0] - pick.mass) < 3.5 * std < 1.0


def test_changes_do_not_count_as_noise(tracked):
    _, state = tracked
    assert state.spread.inflation.max() < 2.0
    assert state.unexplained.inflation.max() < 2.0
