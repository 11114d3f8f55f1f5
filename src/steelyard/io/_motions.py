"""Trajectories in foreign formats: CSV, URScript, ROS 2 messages, programs for Franka arms.

Positions are written with ten digits or more: a controller that differentiates them twice at 1 kHz
amplifies an error of the last digit a million times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array
from steelyard._saved import write_text
from steelyard.errors import InvalidTrajectory
from steelyard.excitation import DesignLimits
from steelyard.robot import RobotModel
from steelyard.trajectory import ApproachedTrajectory, FourierTrajectory, Trajectory

_SERVO_LOOKAHEAD_S = 0.1
_SERVO_GAIN = 300
_APPROACH_SPEED = 0.3  # [rad/s or m/s]
_APPROACH_ACCELERATION = 0.3  # [rad/s^2 or m/s^2]
_MAX_REST_SPEED = 1e-3  # [rad/s or m/s]
_APPROACH_RATIO = 1.2  # of speeds and accelerations of the approach, over those of the motion
_FRANKA_HZ = 1000.0


@dataclass(frozen=True)
class _MotionFormat:
    """A format of motions: file extension, rate [Hz], function that writes it, description."""

    ending: str
    rate_hz: float
    text: Callable[[Trajectory, Sequence[str], float], str]
    words: str


def write_motion(
    path: str | Path,
    trajectory: Trajectory,
    joint_names: Sequence[str],
    rate_hz: float,
    *,
    remarks: Sequence[str] = (),
) -> None:
    """Writes a trajectory as .csv, .script (URScript, six joints), .yaml (ROS 2) or .py (Franka).

    Args:
        rate_hz: of rows, points or servo steps, [Hz]; for URScript 125 (CB3) or 500 (e-Series)
        remarks: sentences for comments at the top, where the format has them (not in CSV)
    """
    if Path(path).suffix == ".yml":
        ending = ".yaml"
    else:
        ending = Path(path).suffix
    target = next((name for name, known in MOTION_TARGETS.items() if known.ending == ending), None)
    if target is None:
        endings = ", ".join(known.ending for known in MOTION_TARGETS.values())
        raise InvalidTrajectory(
            f"a motion is written as {endings}, .yml or .json, not '{Path(path).name}'"
        )
    write_text(path, motion_text(target, trajectory, joint_names, rate_hz, remarks=remarks))


def motion_text(
    target: str,
    trajectory: Trajectory,
    joint_names: Sequence[str],
    rate_hz: float,
    *,
    remarks: Sequence[str] = (),
) -> str:
    """A trajectory in the format of a target, one of `MOTION_TARGETS`.

    Args:
        rate_hz: of rows, points or servo steps, [Hz]
        remarks: sentences for comments at the top, where the format has them (not in CSV)
    """
    text = MOTION_TARGETS[target].text(trajectory, joint_names, rate_hz)
    if target == "ur":  # inside the program: the controller accepts one function only
        first, rest = text.split("\n", 1)
        return "\n".join([first, *(f"  # {words}" for words in remarks), rest])
    if target == "csv":
        return text
    return "".join(f"# {words}\n" for words in remarks) + text


def approached(
    robot: RobotModel, core: FourierTrajectory, posture: ArrayLike | None, limits: DesignLimits
) -> Trajectory:
    """A motion that begins and ends at rest and keeps the limits.

    Args:
        posture: of the arm before and after, (n,) [rad or m]; the first one of the motion by
            default
    """
    whole: Trajectory = core
    if posture is not None:
        _, v, a = core.amplitudes
        v_max = np.minimum(limits.joints.v_max, np.maximum(_APPROACH_SPEED, _APPROACH_RATIO * v))
        a_max = np.minimum(
            limits.joints.a_max, np.maximum(_APPROACH_ACCELERATION, _APPROACH_RATIO * a)
        )
        whole = ApproachedTrajectory.within(core, posture, v_max=v_max, a_max=a_max)
    elif np.abs(core.at([0.0])[1]).max() > _MAX_REST_SPEED:
        raise InvalidTrajectory(
            "the motion does not start and end at rest: give the posture of the arm with `posture`"
        )
    certificate = limits.certify(robot, whole)
    if not certificate.holds:
        raise InvalidTrajectory(
            f"the motion violates a limit of {robot.name}: {certificate.worst.sentence}"
        )
    return whole


def _as_csv(trajectory: Trajectory, joint_names: Sequence[str], rate_hz: float) -> str:
    """Time, position, velocity and acceleration, one row per sample."""
    t, q, v, a = _sampled(trajectory, rate_hz)
    names = [f"{signal}_{name}" for signal in "qva" for name in joint_names]
    rows = np.column_stack([t, q, v, a])
    lines = (",".join(f"{x:.12g}" for x in row) for row in rows)
    return ",".join(["t", *names]) + "\n" + "\n".join(lines) + "\n"


def _as_urscript(trajectory: Trajectory, joint_names: Sequence[str], rate_hz: float) -> str:
    """A program for a Universal Robots arm: move to the start, then follow by `servoj`."""
    if len(joint_names) != 6:
        raise InvalidTrajectory(f"URScript moves 6 joints, the motion has {len(joint_names)}")
    _, q, _, _ = _sampled(trajectory, rate_hz)
    rows = ["[" + ", ".join(f"{x:.10f}" for x in row) + "]" for row in np.round(q, 10) + 0.0]
    servo = f"{1 / rate_hz:.6g}, {_SERVO_LOOKAHEAD_S:g}, {_SERVO_GAIN}"
    degrees = ", ".join(f"{x:.1f}" for x in np.round(np.degrees(q[0]), 1) + 0.0)
    length = f"{trajectory.duration_s:.4g} s of servoj at {rate_hz:g} Hz"
    lines = [
        "def steelyard_motion():",
        "  # CAUTION: movej goes from wherever the arm is, straight in joint space, to the first"
        " posture,",
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
    lines = [
        "header: {stamp: {sec: 0, nanosec: 0}, frame_id: ''}",
        f"joint_names: [{names}]",
        "points:",
    ]
    for i, time in enumerate(t):
        nanoseconds = round(time * 1e9)
        for word, signal in zip(
            ("- positions", "  velocities", "  accelerations"), signals, strict=True
        ):
            lines.append(f"{word}: [{', '.join(f'{x:.12f}' for x in signal[i])}]")
        stamp = f"{{sec: {nanoseconds // 10**9}, nanosec: {nanoseconds % 10**9}}}"
        lines.append(f"  time_from_start: {stamp}")
    return "\n".join(lines) + "\n"


def _sampled(trajectory: Trajectory, rate_hz: float) -> tuple[Array, Array, Array, Array]:
    if not (np.isfinite(rate_hz) and rate_hz > 0):
        raise InvalidTrajectory(f"rate_hz must be positive, got {rate_hz}")
    t = np.arange(int(np.ceil(trajectory.duration_s * rate_hz - 1e-9)) + 1) / rate_hz
    return t, *trajectory.at(np.minimum(t, trajectory.duration_s))


def _as_franka(trajectory: Trajectory, joint_names: Sequence[str], rate_hz: float) -> str:
    """A Python program that plays the motion with pylibfranka, one posture per millisecond."""
    if len(joint_names) != 7 or rate_hz != _FRANKA_HZ:
        raise InvalidTrajectory(
            f"a Franka arm moves 7 joints at {_FRANKA_HZ:g} Hz,"
            f" the motion has {len(joint_names)} at {rate_hz:g} Hz"
        )
    _, q, _, _ = _sampled(trajectory, rate_hz)
    rows = "\n".join(" ".join(f"{x:.12f}" for x in row) for row in np.round(q, 12) + 0.0)
    return _FRANKA_PROGRAM.format(start=np.round(q[0], 4).tolist(), rows=rows)


_FRANKA_PROGRAM = '''"""Plays a motion on a Franka arm (pylibfranka): python FILE HOST."""
# The arm must stand in the first posture, {start} rad. See the whole run slowly first.
import sys

ROWS = """
{rows}
"""


def main(host):
    from pylibfranka import ControllerMode, JointPositions, Robot

    rows = [[float(x) for x in line.split()] for line in ROWS.split("\\n") if line]
    robot = Robot(host)
    away = max(abs(x - y) for x, y in zip(robot.read_once().q, rows[0]))
    if away > 0.005:
        sys.exit(f"the arm stands {{away:.3f}} rad from the first posture: go there first")
    control = robot.start_joint_position_control(ControllerMode.JointImpedance)
    k = 0
    while k < len(rows):
        _, passed = control.readOnce()
        k += round(1000 * passed.to_sec())  # 0 in the first cycle, more than 1 where one was lost
        command = JointPositions(rows[min(k, len(rows) - 1)])
        command.motion_finished = k >= len(rows) - 1
        control.writeOnce(command)
        if command.motion_finished:
            break


if __name__ == "__main__":
    main(sys.argv[1])
'''

MOTION_TARGETS = {
    "csv": _MotionFormat(".csv", 125.0, _as_csv, "time, position, velocity, acceleration in rows"),
    "ur": _MotionFormat(".script", 500.0, _as_urscript, "URScript, for Universal Robots arms"),
    "ros2": _MotionFormat(".yaml", 100.0, _as_ros2, "trajectory_msgs/JointTrajectory, for ROS 2"),
    "franka": _MotionFormat(
        ".py", _FRANKA_HZ, _as_franka, "a program for Franka arms (pylibfranka)"
    ),
}
"""Formats of motions, by the name of the target."""
