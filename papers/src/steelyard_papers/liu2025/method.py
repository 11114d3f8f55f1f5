"""`steelyard weigh-wrist both --method liu2025`: the paper's two stages as printed.

Stage 1 by total least squares on the postures (`static`), the motion by a causal Kalman filter that
is tuned on the recording of the postures, which came before, and stage 2 by the recursion of eq.
(34) and (35) with a constant P_r (`literal`). Eq. (44), the second compensation, acts on a test
motion: `steelyard contact --rezero start`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard._arrays import Array
from steelyard.verdict import Doubt, DoubtKind, Verdict
from steelyard.wrist import Postures, WrenchSamples, WristPayload, WristRecording
from steelyard_papers.liu2025.literal import proposed
from steelyard_papers.liu2025.static import weigh_linear

_NO_UNCERTAINTY = "liu2025 gives no uncertainty: how far its numbers are from the truth is unknown"


def weigh_as_printed(
    at_rest: WristRecording, in_motion: WristRecording, gravity_base: Array
) -> WristPayload:
    """The payload by the two stages of liu2025, without covariance, as published.

    Args:
        at_rest: with postures at rest
        in_motion: with the position of the sensor
        gravity_base: gravity without a tilt, (3,) [m/s^2], in the base frame
    """
    static = weigh_linear(Postures.of(at_rest), gravity_base=gravity_base)
    earlier = None
    if at_rest.position is not None:
        earlier = at_rest
    samples = WrenchSamples.from_pose_causal(in_motion, earlier=earlier)
    found = proposed(samples, static)
    doubt = Doubt(DoubtKind.TOO_UNCERTAIN, _NO_UNCERTAINTY)
    return replace(
        found,
        full_covariance=np.diag(np.full(len(found.full_covariance), np.inf)),
        gives_intervals=False,
        verdict=Verdict("the two stages of liu2025, as printed", (doubt,)),
    )
