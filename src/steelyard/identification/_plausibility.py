"""Whether a recording can be one of the robot that is to be identified.

Two comparisons need no identified model. Some set of link masses must explain the controller's own
torques, if they were recorded; and measured torques must not be far below what the arm needs.
"""

from __future__ import annotations

import numpy as np

from steelyard._arrays import Array
from steelyard.recording import Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.verdict import Doubt, DoubtKind

_MAX_ROWS = 1500  # more samples are thinned
_MIN_JOINT_TORQUE = 0.005  # of the largest joint's RMS torque; lower limit of the comparison
_MAX_UNEXPLAINED_TARGETS = 0.2  # of a joint's torque
_MIN_STROKE = 0.01  # [rad or m], of a joint that moves
_MIN_TORQUE_SHARE = 0.2  # of the torque that the arm needs


def other_robot_doubt(robot: RobotModel, run: str, targets: Samples) -> Doubt | None:
    """A doubt if no bodies on the links of the robot explain the controller's own torques.

    The fit leaves up to 6 % of a joint's torque for a real arm, and 40 to 70 % for another arm's
    kinematics.

    Args:
        robot: the arm
        run: name of the recording, for the message
        targets: motion with the controller's target torques
    """
    residual = _unexplained_share(robot, targets)
    j = int(residual.argmax())
    if residual[j] <= _MAX_UNEXPLAINED_TARGETS:
        return None
    words = (
        f"{run}: no masses on the links of {robot.name} explain the controller's own torques"
        f" ({100 * residual[j]:.0f} % of those of {robot.joint_names[j]} are left); is it the"
        " recording of another robot, or is gravity in another direction?"
    )
    return Doubt(DoubtKind.OTHER_ROBOT, words)


def small_torque_doubt(
    robot: RobotModel, run: str, samples: Samples, tau_target: Array | None
) -> Doubt | None:
    """A doubt if torques are far below those that the controller states or the arm needs.

    It happens when currents are read as torques. Masses in a robot file are often too small, which
    only makes the comparison less strict.

    Args:
        robot: the arm
        run: name of the recording, for the message
        samples: with measured torques
        tau_target: the controller's target torques, (N, n) [Nm or N]; None if not recorded
    """
    if samples.gain is not None:
        return None
    if tau_target is None:
        few = _thinned(len(samples))
        moving = np.ptp(samples.q, axis=0) > _MIN_STROKE  # the acceleration of others is noise
        needed = robot.inverse_dynamics(
            samples.q[few], moving * samples.v[few], moving * samples.a[few]
        )
    else:
        needed = tau_target[np.isfinite(tau_target).all(axis=1)]
    measured_rms = np.sqrt(np.mean(samples.tau**2, axis=0))
    needed_rms = np.sqrt(np.mean(needed**2, axis=0))
    unmeasured = ~samples.mask.any(axis=0)
    needed_rms[unmeasured] = 0.0
    j = int(needed_rms.argmax())
    if measured_rms[j] >= _MIN_TORQUE_SHARE * needed_rms[j]:
        return None
    words = (
        f"{run}: the torque of {robot.joint_names[j]} is {measured_rms[j]:.3g} Nm (RMS), the arm"
        f" needs about {needed_rms[j]:.3g} Nm; if it is a motor current [A], read it as a current;"
        " else check its unit"
    )
    return Doubt(DoubtKind.RECORDING, words)


def _unexplained_share(robot: RobotModel, samples: Samples) -> Array:
    """The share of each joint's RMS torque that links and rotors cannot explain, (n,)."""
    basis = ParameterBasis.of(robot)
    rigid = basis.parameters.rigid
    few = _thinned(len(samples))
    tau = samples.tau[few]
    size = np.sqrt(np.mean(tau**2, axis=0))
    weight = 1 / np.maximum(size, _MIN_JOINT_TORQUE * size.max())
    chunks = robot.regressor_chunks(samples.q[few], samples.v[few], samples.a[few])
    Y = np.concatenate([basis.reduce(chunk)[:, :, rigid] for _, chunk in chunks])
    rows = (Y * weight[:, None]).reshape(-1, int(rigid.sum()))
    theta = np.linalg.lstsq(rows, (tau * weight).ravel(), rcond=None)[0]
    residual = tau * weight - (rows @ theta).reshape(tau.shape)
    return np.asarray(np.sqrt(np.mean(residual**2, axis=0)))


def _thinned(count: int) -> slice:
    """Every k-th of `count` samples, so that at most `_MAX_ROWS` are left."""
    return slice(0, None, -(-count // _MAX_ROWS))
