"""The payload that is set on the controller, as a second witness of a weighed one.

A controller that reports its payload (UR: `payload` of RTDE) states everything at its flange. What
was weighed from joint torques comes on top of the load of the empty arm, unless that load was given
as the tool. Measured torques and currents do not depend on what is set, so a difference says
nothing against the weighing: the user has to know it. The controller's own target torques contain
what is set, and the method `manufacturer` compares with them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from steelyard._units import NORMAL_95
from steelyard.payload import Payload
from steelyard.recording import Recording
from steelyard.verdict import Aspect, Doubt, DoubtKind

_RESOLUTION_KG = 0.02  # controllers are set in steps of 10 g
_MIN_CHANGE_KG = 0.005  # between rows


def configured_payload_doubts(
    recordings: Iterable[Recording | None], payload: Payload, *, beyond: str = "", method: str = ""
) -> list[Doubt]:
    """Doubts if the controller was set to another mass than the weighed one.

    Args:
        recordings: that were weighed; None for samples
        payload: the answer
        beyond: what the answer comes on top of, in words; empty if it is everything at the flange
        method: of weighing; one that uses the controller's torques depends on what is set
    """
    known = [each.configured_mass for each in recordings if each is not None]
    masses = [values[np.isfinite(values)] for values in known if values is not None]
    if not masses:
        return []
    every = np.concatenate(masses)
    low = float(every.min())
    high = float(every.max())
    doubts = []
    if method == "manufacturer" and high > _RESOLUTION_KG:
        words = (
            f"the controller's torques contain the payload of {high:.4g} kg that was set on it:"
            " add it to this answer, or record with none set"
        )
        doubts.append(Doubt(DoubtKind.CONFIGURED_PAYLOAD, words))
    if high - low > _MIN_CHANGE_KG:
        words = (
            f"the payload set on the controller changed from {every[0]:.4g} to {every[-1]:.4g} kg"
            " during the run"
        )
        doubts.append(_beside(words))
    elif not np.isfinite(payload.std[0]):
        return doubts
    elif abs(payload.body.mass - high) > max(NORMAL_95 * float(payload.std[0]), _RESOLUTION_KG):
        words = f"the controller was set to {high:.4g} kg, which is not what was weighed"
        if beyond:
            words += f" beyond {beyond}"
        doubts.append(_beside(f"{words}; set it with steelyard set-payload"))
    return doubts


def _beside(words: str) -> Doubt:
    """A doubt about the controller, which counts against none of the weighed numbers."""
    no_aspect: tuple[Aspect, ...] = ()
    return Doubt(DoubtKind.CONFIGURED_PAYLOAD, words, blocks=False, concerns=no_aspect)
