"""Mecademic: SetPayload with mass and centre of mass; it has no inertia."""

from __future__ import annotations

from steelyard.io.export.load import Load
from steelyard.io.export.words import decimal, decimals, head


def set_payload(load: Load) -> str:
    """The command SetPayload.

    Args:
        load: in the flange reference frame
    """
    notes = ["Leave these lines out where only commands are understood."]
    told = head(load, "Mecademic", "kg; mm from the flange", notes=notes, left_out="the inertia")
    numbers = ",".join([decimal(load.body.mass, 6), *decimals(1e3 * load.body.com, 4)])
    return "\n".join([*(f"// {words}" for words in told), f"SetPayload({numbers})", ""])
