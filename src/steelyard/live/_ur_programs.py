"""URScript programs for Universal Robots controllers: a payload, a motion, and stop.

A program starts with `def NAME():` or `sec NAME():` in column one and ends with `end` there. A
`sec` program runs within one control step beside the running program; a `def` program replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard._arrays import Array
from steelyard.live._controller import ControllerPayload

_LOOKAHEAD_S = 0.1  # of servoj
_GAIN = 300  # of servoj
_END_DECELERATION = 1.0  # at the end of a motion, [rad/s^2]
_STOP_DECELERATION = 4.0  # of a stop, [rad/s^2]

STOP_PROGRAM = f"def steelyard_stop():\n  stopj({_STOP_DECELERATION:g})\nend\n"
"""Stops the arm; it replaces the program that runs."""


def payload_program(
    payload: ControllerPayload, *, transition_s: float, with_inertia: bool = True
) -> str:
    """The program that sets a payload beside the program that runs.

    Args:
        payload: the payload to set
        transition_s: time in which the controller changes over, [s]
        with_inertia: for controllers that accept it, from 5.10 on; otherwise mass and centre alone
    """
    mass = _decimal(payload.mass)
    cog = _decimals(payload.cog)
    call = f"set_payload({mass}, {cog})"
    if with_inertia:
        inertia = _decimals(payload.inertia)
        call = f"set_target_payload({mass}, {cog}, {inertia}, {_decimal(transition_s)})"
    return f"sec steelyard_payload():\n {call}\nend\n"


def motion_program(q: Array, rate_hz: float) -> str:
    """The program that moves the arm along joint positions, in place of the one that runs.

    Args:
        q: joint positions, one row for each command, (N, 6) [rad]
        rate_hz: commands per second, [Hz]
    """
    servo = f"0, 0, {1 / rate_hz:.6g}, {_LOOKAHEAD_S:g}, {_GAIN}"
    steps = [
        f"  servoj([{', '.join(f'{x:.6f}' for x in row)}], {servo})" for row in np.round(q, 6) + 0.0
    ]
    stop = f"  stopj({_END_DECELERATION:.1f})"
    return "\n".join(["def steelyard_motion():", *steps, stop, "end", ""])


def _decimal(value: float) -> str:
    if round(value, 9):
        return f"{value:.9f}".rstrip("0").rstrip(".")
    return "0"


def _decimals(values: Sequence[float]) -> str:
    return f"[{', '.join(map(_decimal, values))}]"
