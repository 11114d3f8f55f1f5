"""Compares the payload that is set on the controller with the weighed one.

A controller that reports its payload (UR: `payload` of RTDE) states the load of the whole flange.
The payload weighed from joint torques does not include the load of the empty arm, unless that load
was given as the tool. Measured torques and currents do not depend on the payload that is set, so a
difference is no evidence against the weighing, but the user should know about it. The target
torques of the controller do contain the payload that is set, and the method `manufacturer` uses
them.
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
        beyond: load that the answer does not include, in words; empty if it includes everything
        method: of weighing; 'manufacturer' depends on the payload that is set
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
            " add it to this answer, or record without one"
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
