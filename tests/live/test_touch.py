"""Pushes on the arm while it is weighed: what stands out of the last minute, and nothing else."""

import re

import numpy as np
import pytest

from steelyard.live._torque import _PushDetector
from steelyard.live._touch import TouchWatch
from steelyard.recording import Sample

STEP_S, STD = 0.02, np.array([2.0, 0.5])


def events(rng, push, *, start_s=30.0, again_s=np.inf, lasts_s=0.5, duration_s=40.0, std=STD):
    """What is seen in residuals of noise, with a push on both joints [Nm], and another one."""
    found, watch = [], TouchWatch(("shoulder", "wrist"))
    for k in range(int(duration_s / STEP_S)):
        t = k * STEP_S
        pushed = any(start <= t < start + lasts_s for start in (start_s, again_s))
        residual = rng.normal(scale=STD) + np.array(push) * pushed
        if words := watch.look(t, residual, std):
            found.append((t, words))
    return found


@pytest.mark.parametrize(
    ("push", "words"),
    [
        ((-15.0, 0.0), "shoulder: .* Nm along its axis, or another load"),
        ((0.0, 4.0), "wrist: .* Nm against"),
    ],
)
def test_a_push_is_seen_once_at_its_joint_with_its_direction(rng, push, words):
    (found,) = events(rng, push)
    assert 30.0 <= found[0] < 30.3
    assert re.match(words, found[1])


@pytest.mark.parametrize(("again_s", "count"), [(33.0, 2), (30.8, 1)])
def test_a_second_without_a_push_separates_two(rng, again_s, count):
    assert len(events(rng, (-15.0, 0.0), again_s=again_s)) == count


def test_noise_alone_is_none_and_nothing_is_said_before_it_is_known(rng):
    assert not events(rng, (0.0, 0.0), duration_s=120.0)
    assert not events(rng, (-15.0, 0.0), start_s=5.0, duration_s=9.0)


def test_what_the_payload_may_explain_is_no_push(rng):
    assert not events(rng, (-15.0, 0.0), std=np.array([40.0, 0.5]))


class _Known:
    """A tracker that knows the noise after five seconds; the wrist is pushed after 30 s."""

    def __init__(self, rng):
        self.rng = rng

    def residual(self, state, sample):
        if sample.t < 5.0:
            return None
        push = np.array([0.0, 4.0]) * (sample.t >= 30.0)
        return self.rng.normal(scale=STD) + push, STD


def test_residuals_of_a_tracker_are_searched_as_soon_as_there_are_any(rng):
    search = _PushDetector(_Known(rng), ("shoulder", "wrist"))
    times = np.arange(0.0, 31.0, STEP_S)
    samples = [Sample.of_joints(t, *np.zeros((4, 2))) for t in times]
    found = [(sample.t, words) for sample in samples if (words := search(None, sample))]
    ((t, words),) = found
    assert 30.0 <= t < 30.3
    assert words.startswith("wrist: ")
