"""libfranka's logs: what its columns are called, which of them are no measurements, and its clock.

`franka::logToCSV` writes `time, success_rate, state.q[0], ..., state.tau_J[6], ..., cmd.tau_J_d[6]`. Users
who write the robot's state themselves keep the words (`q`, `dq`, `tau_J`, `q_d`, ...).

`tau_J` is read by the torque sensors behind the gears, gravity and the inertia of the links included: it is
our `tau`, with little of the motors' friction in it. `tau_J_d` and `cmd.tau_J_d` lack gravity; what has
`ext_hat` in its name is the controller's estimate, from which the load that it believes in is taken off. None
of them may stand for a torque.

The clock counts whole milliseconds. `logToCSV` writes them as they are (`toMSec`), users often write seconds
(`toSec`). In seconds a log at 1 kHz cannot be whole numbers; whole numbers are therefore milliseconds, unless
the arm would have to move faster than any does. A column called `time_s` or `time_ms` needs no such rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import UnreadableFile
from steelyard.io.layout import Layout

_STATE = "state."  # before each word of the robot's state in logToCSV
_CHANNELS = {
    "q": "q",
    "v": "dq",
    "tau": "tau_J",
    "q_commanded": "q_d",
    "v_commanded": "dq_d",
    "a_commanded": "ddq_d",
}
FRANKA_WORDS: Mapping[str, tuple[str, ...]] = {
    channel: (word, _STATE + word) for channel, word in _CHANNELS.items()
}
"""The words of libfranka for each channel."""

_NO_GRAVITY = "it is without gravity; use tau_J"
_ESTIMATED = "the controller estimates it and takes off the load it believes in; it is not measured"
_COMMAND = "commands are zero where another kind of command was sent; state.q_d and state.dq_d tell more"
FRANKA_REFUSED: Mapping[str, str] = {
    **{prefix + "tau_J_d": _NO_GRAVITY for prefix in ("", _STATE, "cmd.")},
    **{
        prefix + word: _ESTIMATED
        for prefix in ("", _STATE)
        for word in ("tau_ext_hat_filtered", "O_F_ext_hat_K", "K_F_ext_hat_K")
    },
    **dict.fromkeys(("cmd.q_d", "cmd.dq_d"), _COMMAND),
}
"""Words of libfranka that are not read, and why."""

_IMPOSSIBLE_SPEED = 20.0  # [rad/s]; the quickest joint of a Franka arm reaches 5.3
_UNIT_IN_NAME = ("_s", "_ms")


def in_seconds(layout: Layout, values: Mapping[str, Array], place: str) -> Layout:
    """The layout with the unit of a libfranka clock; any other layout as it is.

    Args:
        layout: of a file
        values: its columns as they are written, or the first rows of them, (N,)
        place: the file, for messages
    """
    if not is_franka(layout) or layout.columns["t"][0].endswith(_UNIT_IN_NAME):
        return layout
    piece = layout.gather(values)
    t = piece["t"]
    if len(t) < 2 or not np.isfinite(t).all():
        return layout
    if (t % 1 != 0).any() or t[-1] == t[0]:
        return layout.noting(
            "time was read as seconds: libfranka's clock counts in ms, and these are no whole ms"
        )
    _require_possible_speed(layout, piece["q"], t, place)
    return replace(layout, time_unit_s=1e-3).noting("time was in milliseconds, as libfranka writes it")


def is_franka(layout: Layout) -> bool:
    """Whether the columns are called as libfranka calls them.

    Args:
        layout: of a file
    """
    measured = (*layout.columns["q"], *layout.columns.get("tau", ()))
    return any(name.startswith((_STATE, "tau_J")) for name in measured)


def _require_possible_speed(layout: Layout, q: Array, t: Array, place: str) -> None:
    steps = np.diff(t)
    moving = steps > 0
    speed = np.abs(np.diff(q, axis=0)[moving]).max(axis=1) / (1e-3 * steps[moving])
    fastest = float(np.nanpercentile(speed, 99)) if np.isfinite(speed).any() else 0.0
    if fastest > _IMPOSSIBLE_SPEED:
        raise UnreadableFile(
            f"{place}: '{layout.columns['t'][0]}' holds whole numbers, as libfranka's milliseconds are, but"
            f" then a joint would move with {fastest:.0f} rad/s; call the column time_s or time_ms"
        )
