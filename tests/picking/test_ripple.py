"""Friction by position: a known ripple is found again, and noise alone is none."""

import numpy as np
import pytest

from steelyard.picking._ripple import PositionFriction
from steelyard.picking._segments import Stretch
from steelyard.recording import Samples

RATE_HZ = 100.0
NOISE = 0.3  # [Nm]


def ripple(q):
    """Friction by position beyond that of the model, (N, 2) [Nm]; the second joint has none."""
    return np.column_stack([0.5 * np.sin(9 * q[:, 0]), np.zeros(len(q))])


def motion(seed):
    """A stretch of both joints, to and fro in turn, and what the model does not explain on it."""
    t = np.arange(300) / RATE_HZ
    direction = (-1) ** seed
    q = np.column_stack([0.4 * t, 0.3 * t])[::direction] + 0.01 * seed
    v = direction * np.broadcast_to([0.4, 0.3], q.shape)
    noise = NOISE * np.random.default_rng(seed).normal(size=q.shape)
    zeros = np.zeros_like(q)
    samples = Samples(q, v, zeros, zeros, RATE_HZ, ("a", "b"), "measured")
    counting = np.ones(len(q), bool)
    stretch = Stretch(samples, False, 0.0, 3.0, counting, 0.0)
    return stretch, np.sign(v) * ripple(q) + noise


@pytest.fixture
def learned():
    found = PositionFriction.unknown(2)
    for seed in range(8):
        stretch, residual = motion(seed)
        found = found.after(stretch, residual, np.ones(residual.shape, bool))
    return found


@pytest.mark.parametrize("seed", [20, 21])
def test_a_ripple_is_found_again_in_both_directions(learned, seed):
    stretch, _ = motion(seed)
    stretch = Stretch(stretch.samples.rows(slice(60, 240)), False, 0.0, 3.0, None, 0.0)
    samples = stretch.samples
    truth = (np.sign(samples.v) * ripple(samples.q))[:, 0]
    error = learned.torque(stretch)[:, 0] - truth
    assert np.sqrt(np.mean(error**2)) < 0.25 * np.sqrt(np.mean(truth**2))


def test_noise_alone_is_no_friction(learned):
    stretch, _ = motion(20)
    assert np.sqrt(np.mean(learned.torque(stretch)[:, 1] ** 2)) < 0.1 * NOISE


def test_one_stretch_proves_nothing():
    stretch, residual = motion(0)
    found = PositionFriction.unknown(2).after(stretch, residual, np.ones(residual.shape, bool))
    assert not found.torque(stretch).any()
