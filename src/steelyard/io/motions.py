"""A trajectory in the formats of others: CSV, URScript, a ROS 2 message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import InvalidTrajectory
from steelyard.saved import write_text
from steelyard.trajectory import Trajectory

_SERVO_LOOKAHEAD_S, _SERVO_GAIN = 0.1, 300
_APPROACH_SPEED, _APPROACH_ACCELERATION = 0.3, 0.3


def write_motion(
    path: str | Path,
    trajectory: Trajectory,
    joint_names: Sequence[str],
    rate_hz: float,
    *,
    remarks: Sequence[str] = (),
) -> None:
    """Writes a trajectory as .csv, .script (URScript, six joints) or .yaml (ROS 2).

    Args:
        rate_hz: of rows, points or servo steps, [Hz]; for URScript 125 (CB3) or 500 (e-Series)
        remarks: sentences for comments at the top, where the format has them (not in CSV)
    """
    ending = Path(path).suffix
    if ending not in _FORMATS:
        endings = ", ".join(_FORMATS)
        raise InvalidTrajectory(f"a motion is written as {endings} or .json, not '{Path(path).name}'")
    text = _FORMATS[ending](trajectory, joint_names, rate_hz)
    if ending == ".script":  # inside of the program, so that a controller takes it as one
        first, rest = text.split("\n", 1)
        text = "\n".join([first, *(f"  # {words}" for words in remarks), rest])
    elif ending != ".csv":
        text = "".join(f"# {words}\n" for words in remarks) + text
    write_text(path, text)


def _as_csv(trajectory: Trajectory, joint_names: Sequence[str], rate_hz: float) -> str:
    """Time, position, velocity and acceleration, one row per sample."""
    t, q, v, a = _sampled(trajectory, rate_hz)
    names = [f"{signal}_{name}" for signal in "qva" for name in joint_names]
    rows = np.column_stack([t, q, v, a])
    lines = (",".join(f"{x:.9g}" for x in row) for row in rows)
    return ",".join(["t", *names]) + "\n" + "\n".join(lines) + "\n"


def _as_urscript(trajectory: Trajectory, joint_names: Sequence[str], rate_hz: float) -> str:
    """A program for a Universal Robots arm: move to the start, then follow by `servoj`."""
    if len(joint_names) != 6:
        raise InvalidTrajectory(f"URScript moves 6 joints, the motion has {len(joint_names)}")
    _, q, _, _ = _sampled(trajectory, rate_hz)
    rows = ["[" + ", ".join(f"{x:.6f}" for x in row) + "]" for row in np.round(q, 6) + 0.0]
    servo = f"{1 / rate_hz:.6g}, {_SERVO_LOOKAHEAD_S:g}, {_SERVO_GAIN}"
    degrees = ", ".join(f"{x:.1f}" for x in np.round(np.degrees(q[0]), 1) + 0.0)
    length = f"{trajectory.duration_s:.4g} s of servoj at {rate_hz:g} Hz"
    lines = [
        "def steelyard_motion():",
        "  # CAUTION: movej goes from wherever the arm is, straight in joint space, to the first posture,",
        f"  # [{degrees}] degrees. Nothing has checked that way: go there by hand first.",
        f"  # Then {length}; see the whole run slowly first.",
        f"  movej({rows[0]}, a={_APPROACH_ACCELERATION:g}, v={_APPROACH_SPEED:g})",
        "  sleep(1.0)",
        *(f"  servoj({row}, 0, 0, {servo})" for row in rows),
        "  stopj(1.0)",
        "end",
        "steelyard_motion()",
    ]
    return "\n".join(lines) + "\n"


def _as_ros2(trajectory: Trajectory, joint_names: Sequence[str], rate_hz: float) -> str:
    """A trajectory_msgs/msg/JointTrajectory in YAML."""
    t, *signals = _sampled(trajectory, rate_hz)
    names = ", ".join(f"'{name}'" for name in joint_names)
    lines = ["header: {stamp: {sec: 0, nanosec: 0}, frame_id: ''}", f"joint_names: [{names}]", "points:"]
    for i, time in enumerate(t):
        nanoseconds = round(time * 1e9)
        for word, signal in zip(("- positions", "  velocities", "  accelerations"), signals, strict=True):
            lines.append(f"{word}: [{', '.join(f'{x:.9f}' for x in signal[i])}]")
        stamp = f"{{sec: {nanoseconds // 10**9}, nanosec: {nanoseconds % 10**9}}}"
        lines.append(f"  time_from_start: {stamp}")
    return "\n".join(lines) + "\n"


def _sampled(trajectory: Trajectory, rate_hz: float) -> tuple[Array, Array, Array, Array]:
    if not (np.isfinite(rate_hz) and rate_hz > 0):
        raise InvalidTrajectory(f"rate_hz must be positive, got {rate_hz}")
    t = np.arange(int(np.floor(trajectory.duration_s * rate_hz + 1e-9)) + 1) / rate_hz
    return t, *trajectory.at(t)


_FORMATS: dict[str, Callable[[Trajectory, Sequence[str], float], str]] = {
    ".csv": _as_csv,
    ".script": _as_urscript,
    ".yaml": _as_ros2,
    ".yml": _as_ros2,
}
