"""A designed motion on the arm: as a URScript program of `servoj` steps, from where the arm stands and back.

The way into the motion and out of it is a smooth polynomial in joint space
(`ApproachedTrajectory`). Nothing has checked that way for obstacles, so a motion that begins far
from where the arm stands is refused, as is one that breaks a limit of the arm, and every arm that
does not run in normal safety.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidTrajectory, SourceFailed
from steelyard.excitation import Design, DesignLimits, DesignSettings, PayloadOptimal, design
from steelyard.identification import DynamicModel
from steelyard.live._source import Event, Row, Stream
from steelyard.live._ur import controller_of, ready_row, send_script
from steelyard.live._weigher import require_same_arm
from steelyard.robot import JointLimits, RobotModel
from steelyard.trajectory import ApproachedTrajectory, FourierTrajectory

_FAR = 0.5  # [rad], from where the arm stands to the first posture
_ENTRY_SPEED = 0.5
_ENTRY_ACCELERATION = 1.0  # [rad/s], [rad/s^2]
_SPEED = 1.5
_ACCELERATION = 4.0  # [rad/s], [rad/s^2], of a motion that we design
_SEARCH_S = 8.0
_LOOKAHEAD_S = 0.1
_GAIN = 300
_LATE_S = 3.0  # of the controller's clock, to start and to end
_SILENT_S = 5.0
_PLAYING = 2  # of `runtime_state`


@dataclass(frozen=True, eq=False)
class Motion:
    """A motion for the arm that stands there now, which was checked and not sent yet.

    Attributes:
        trajectory: from the posture of the arm into the motion, and back
        rate_hz: of the controller, [Hz]
    """

    trajectory: ApproachedTrajectory
    rate_hz: float

    @classmethod
    def of(
        cls, stream: Stream, robot: RobotModel, core: FourierTrajectory, *, periods: int = 1
    ) -> Motion:
        """The motion from where the arm stands, or a refusal.

        Args:
            stream: of the controller's rows
            robot: the arm that the motion is for
            core: the motion
            periods: how often it runs
        """
        q = standing_posture(stream, robot)
        start = core.at([0.0])[0][0]
        away = np.abs(start - q)
        if away.max() > _FAR:
            k = int(away.argmax())
            raise InvalidTrajectory(
                f"{robot.joint_names[k]} stands {away[k]:.2f} rad from where the motion begins,"
                " more than"
                f" {_FAR:g}: go there by hand first, to {np.round(start, 3).tolist()} rad"
            )
        _, v, a = core.amplitudes
        v_max = np.maximum(_ENTRY_SPEED, v)
        a_max = np.maximum(_ENTRY_ACCELERATION, a)
        whole = ApproachedTrajectory.within(core, q, v_max=v_max, a_max=a_max, periods=periods)
        certificate = DesignLimits.of(robot).certify(robot, whole)
        if not certificate.holds:
            raise InvalidTrajectory(
                f"the motion breaks a limit of {robot.name}: {certificate.worst.sentence}"
            )
        if stream.version:
            major = stream.version[0]
        else:
            major = 5
        return cls(whole, 125.0 if major < 5 else 500.0)

    @property
    def script(self) -> str:
        """The program, which replaces the one that runs on the controller."""
        steps = int(np.ceil(self.trajectory.duration_s * self.rate_hz))
        q, _, _ = self.trajectory.at(np.arange(steps + 1) / self.rate_hz)
        servo = f"0, 0, {1 / self.rate_hz:.6g}, {_LOOKAHEAD_S:g}, {_GAIN}"
        lines = [
            f"  servoj([{', '.join(f'{x:.6f}' for x in row)}], {servo})"
            for row in np.round(q, 6) + 0.0
        ]
        return "\n".join(["def steelyard_motion():", *lines, "  stopj(1.0)", "end", ""])

    def play(self, stream: Stream) -> Iterator[Row | Event]:
        """What comes while the arm moves, until it has stopped; raises where it stops early or never starts.

        Args:
            stream: of the controller's rows
        """
        source = controller_of(stream.source)
        if "runtime_state" in stream.columns:
            state = stream.columns.index("runtime_state")
        else:
            state = None
        send_script(source, self.script)
        moves = False
        start_s = None
        latest_s = self.trajectory.duration_s + _LATE_S
        while items := stream.take(_SILENT_S):
            for item in items:
                yield item
                if not isinstance(item, Row):
                    continue
                if start_s is None:
                    start_s = item.t
                if moves and item.waiting:
                    raise SourceFailed(f"the motion was broken off: {item.waiting}")
                playing = state is not None and item.values[state] == _PLAYING
                if moves and not playing:
                    return
                moves = moves or playing
                if not moves and item.t - start_s > _LATE_S:
                    raise SourceFailed(f"{source} does not move: is it in remote control?")
                if item.t - start_s > latest_s + _LATE_S:
                    raise SourceFailed(f"the motion did not end within {latest_s:.0f} s")
        raise SourceFailed(f"{source} fell silent while the arm moved")


def standing_posture(stream: Stream, robot: RobotModel) -> Array:
    """Where an arm stands that may be moved, (6,) [rad]; or a refusal by its modes and its kind.

    Args:
        stream: of the controller's rows
        robot: the arm that is expected there
    """
    said = ready_row(stream)
    if robot.n != 6:
        raise InvalidTrajectory(
            f"the motion is for {robot.name} with {robot.n} joints, a UR arm has 6"
        )
    require_same_arm(robot, {name: np.array([x]) for name, x in said.items()}, str(stream.source))
    return np.array([said[f"actual_q_{k}"] for k in range(6)])


def payload_motion(
    model: DynamicModel, posture: Array, *, period_s: float = 6.0, reach: float = 0.6
) -> Design:
    """A short motion from a posture and back to it that shows a payload best, with its certificate.

    Args:
        model: of the empty arm
        posture: where it stands, (n,) [rad]
        period_s: length of the motion, [s]
        reach: how far a joint may go to either side, [rad]
    """
    limits = model.robot.limits
    near = JointLimits(
        posture - reach,
        posture + reach,
        np.minimum(limits.v_max, _SPEED),
        np.minimum(limits.a_max, _ACCELERATION),
        limits.tau_max,
    )
    return design(
        model.robot,
        harmonics=3,
        period_s=period_s,
        objective=PayloadOptimal(model.estimate.noise.tolist()),
        limits=DesignLimits.of(model.robot).narrowed(near, joint_names=model.robot.joint_names),
        start=posture,
        settings=DesignSettings(starts=1, rate_hz=500.0, time_limit_s=_SEARCH_S),
    )
