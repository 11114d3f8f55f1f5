"""Motions that would show a fault: a joint that turns while a part is carried."""

import numpy as np

from steelyard.picking._foresight import _TURN, _turn
from steelyard.recording import Samples

RATE_HZ = 100.0


def test_a_joint_turns_smoothly_while_a_part_is_carried_and_only_then():
    still = np.zeros((300, 2))
    samples = Samples(still, still, still, still, RATE_HZ, ("shoulder", "wrist"), "measured")
    carried = np.zeros(300, bool)
    carried[80:230] = True
    q, v, a = _turn(samples, carried, 1)
    assert not np.any([q[:, 0], v[:, 0], a[:, 0]])
    assert not q[:81, 1].any()
    np.testing.assert_allclose(q[230:, 1], _TURN)
    assert (np.diff(q[80:231, 1]) > 0).all()
    np.testing.assert_allclose(np.gradient(q[:, 1], 1 / RATE_HZ), v[:, 1], atol=2e-3)
    np.testing.assert_allclose(np.gradient(v[:, 1], 1 / RATE_HZ), a[:, 1], atol=0.1)
