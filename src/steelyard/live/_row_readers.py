"""What a row of any maker's controller reports about itself: its payload and its modes."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.live._controller import ControllerPayload
from steelyard.live._franka import mode_in_row as franka_mode
from steelyard.live._franka import payload_in_row as franka_payload
from steelyard.live._ur import payload_in_row as ur_payload
from steelyard.live._ur_modes import mode_in_row as ur_mode

_PAYLOAD_READERS = (ur_payload, franka_payload)
_MODE_READERS = (franka_mode, ur_mode)


def payload_in_row(row: Mapping[str, float]) -> ControllerPayload | None:
    """The payload that a row of any maker's controller reports; None where there is none.

    Args:
        row: values by the names of the columns
    """
    for payload_in in _PAYLOAD_READERS:
        if (payload := payload_in(row)) is not None:
            return payload
    return None


def mode_in_row(row: Mapping[str, float]) -> str:
    """The modes that a row of any maker's controller reports, in words; empty where none.

    Args:
        row: values by the names of the columns
    """
    for mode_in in _MODE_READERS:
        if mode := mode_in(row):
            return mode
    return ""
