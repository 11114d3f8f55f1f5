"""Second sources that have to agree with the stated arm.

**Gains.** A robot file and the controller's targets both state torque per ampere. With z the
logarithms of their ratios and C the covariance by the errors of both, the common ratio and the
differences between joints are tested, each as chi-square.

**Kinematics.** Torques of the empty arm are fitted with the kinematics of every bundled arm that
has as many joints (links, rotors, Coulomb and viscous friction, offsets; joints weighted by their
residuals). With r_j the residuals of joint j, another arm fits better by

    mean over j of log(r_j of the stated arm / r_j of the other arm).

Friction that no law contains is the same in both fits. Arms whose links differ in lengths only
(a UR10 and a UR10e) can have equal fits: base parameters absorb the lengths. Their masses do not
tell them apart either, because a tool of 1 kg at the flange changes the torques as much. Such arms
are named to the user (`arms_with_equal_fit`), who can read the type on the arm.

Thresholds: `benchmarks/bench_witnesses.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import chdtri

from steelyard._arrays import Array
from steelyard.identification._other_causes import FALSE_ALARM_PROBABILITY
from steelyard.identification.gains import DriveGains
from steelyard.recording import Samples
from steelyard.robot import DriveModel, ParameterBasis, RobotModel, load_robot, robot_names
from steelyard.verdict import Doubt, DoubtKind

_MAX_ROWS = 700  # more samples are thinned
_FRICTION_SPEED = 0.02  # [rad/s or m/s], over which friction reverses
_ITERATIONS = 3  # of fit and weights
_MIN_RESIDUAL = 1e-3  # of a joint's torque; lower limit of the residuals that weight it
_RELATIVE_RANK = 1e-10  # smaller eigenvalues, over the largest, count as zero
_MIN_LENGTH = 1e-3  # [m]; shorter lengths of a table count as zero
_MIN_BETTER_FIT = 0.05  # mean logarithm of residuals; sound runs of 12 arms reach 0.010
_MAX_EQUAL_FIT = 0.01  # mean logarithm of residuals, of fits that count as equal
_SAME_DIRECTION = 1e-3  # of unit vectors


def gains_doubt(drive: DriveModel, targets: DriveGains) -> Doubt | None:
    """A doubt if gains of a robot file contradict those of the controller's targets.

    Args:
        drive: with the gains of the file and their tolerances
        targets: gains from the controller's targets
    """
    known = targets.known & (targets.value != 0)
    if drive.gain is None or not known.any():
        return None
    z = np.log(np.abs(drive.gain[known] / targets.value[known]))
    C = np.zeros((len(z), len(z)))
    for errors in (drive.gain_errors, targets.in_drive(drive).gain_errors):
        C += errors[known] @ errors[known].T
    if not _contradicts(z, C):
        return None
    joint = int(np.abs(z).argmax())
    stated = float(drive.gain[known][joint])
    found = float(targets.value[known][joint])
    words = (
        f"the robot file and the controller's targets contradict each other: {stated:.3g} and"
        f" {found:.3g} Nm/A for joint {int(np.flatnonzero(known)[joint]) + 1}; check that the file"
        " is that of this arm, then state `gains` as 'targets' or 'robot'"
    )
    return Doubt(DoubtKind.GAINS, words)


def _contradicts(z: Array, C: Array) -> bool:
    """Whether the mean of z, or what differs from it, is significant."""
    information = np.linalg.inv(C)
    total = float(information.sum())
    mean = float((information @ z).sum()) / total
    rest = z - mean
    limit = FALSE_ALARM_PROBABILITY / 2
    if mean**2 * total > chdtri(1, limit):
        return True
    return len(z) > 1 and float(rest @ information @ rest) > chdtri(len(z) - 1, limit)


def other_kinematics_doubt(robot: RobotModel, run: str, samples: Samples) -> Doubt | None:
    """A doubt if the kinematics of another bundled arm fit torques far better.

    Args:
        robot: the stated arm
        run: name of the recording, for the message
        samples: of the empty arm
    """
    if robot.drive.coupling is not None:
        return None
    own = _residuals(robot, samples)
    better: dict[str, float] = {}
    for names, other in _others(robot):
        ratio = np.log(own / np.maximum(_residuals(other, samples), 1e-300))
        better[names] = float(np.mean(ratio))
    if not better:
        return None
    name = max(better, key=lambda each: better[each])
    if not better[name] > _MIN_BETTER_FIT:
        return None
    words = (
        f"{run}: these torques fit {name} far better than {robot.name}, with residuals"
        f" {np.exp(better[name]):.2f} times as small; is it the recording of another robot?"
    )
    return Doubt(DoubtKind.OTHER_ROBOT, words)


def arms_with_equal_fit(robot: RobotModel, samples: Samples) -> tuple[str, ...]:
    """Names of the other bundled arms that differ in lengths only and fit torques as well.

    Arms that are too weak or too slow for the recorded run are left out.

    Args:
        robot: the stated arm
        samples: of the empty arm
    """
    if robot.drive.coupling is not None:
        return ()
    own = _residuals(robot, samples)
    found = []
    for name in robot_names():
        other = load_robot(name).with_gravity(robot.gravity_base)
        if other.same_kinematics(robot) or not _same_axes(robot, other):
            continue
        if not _is_capable_of(other, samples):
            continue
        worse = float(np.mean(np.log(_residuals(other, samples) / own)))
        if worse < _MAX_EQUAL_FIT:
            found.append(name)
    return tuple(found)


def _is_capable_of(robot: RobotModel, samples: Samples) -> bool:
    """Whether the torques and speeds of a run are within the limits of an arm."""
    torques = np.abs(samples.tau) <= robot.limits.tau_max
    speeds = np.abs(samples.v) <= robot.limits.v_max
    return bool(np.all(torques) and np.all(speeds))


def _same_axes(robot: RobotModel, other: RobotModel) -> bool:
    """Whether the axes of two arms have the same directions, but for a turn about gravity."""
    if robot.n != other.n:
        return False
    postures = np.random.default_rng(0).uniform(-2.0, 2.0, (2, robot.n))
    return all(
        np.allclose(_angles(robot, q), _angles(other, q), atol=_SAME_DIRECTION) for q in postures
    )


def _angles(robot: RobotModel, q: Array) -> Array:
    """Products of the directions of gravity and of the joint axes, which no turn changes."""
    frames = robot.joint_frames(q)[1:]
    axes = np.einsum("jab,jb->ja", frames[:, :3, :3], robot.joint_axes)
    gravity = robot.gravity_base / max(float(np.linalg.norm(robot.gravity_base)), 1e-300)
    directions = np.vstack([gravity, axes])
    cosines = directions @ directions.T
    handed = [np.linalg.det(directions[[0, j, j + 1]]) for j in range(1, robot.n)]
    return np.array([*cosines.ravel(), *handed])


def _others(robot: RobotModel) -> Iterator[tuple[str, RobotModel]]:
    """The other bundled arms with as many joints, in the gravity of the stated one.

    Of arms whose links differ in lengths only, one stands for all, with the names of all.
    """
    alike: dict[object, list[RobotModel]] = {}
    for name in robot_names():
        other = load_robot(name)
        if other.n == robot.n and not other.same_kinematics(robot):
            alike.setdefault(_structure(other), []).append(other)
    if robot.dh is not None:
        alike.pop(_structure(robot), None)
    for arms in alike.values():
        names = " or ".join(arm.name for arm in arms)
        yield names, arms[0].with_gravity(robot.gravity_base)


def _structure(robot: RobotModel) -> object:
    """What kinematics have in common if lengths differ only, for comparison."""
    table = robot.dh
    if table is None:
        return robot.name
    lengths = np.abs(np.array([table.a, table.d])) > _MIN_LENGTH
    return table.convention, tuple(np.round(table.alpha, 3)), tuple(lengths.ravel())


def _residuals(robot: RobotModel, samples: Samples) -> Array:
    """RMS residuals of each joint after a fit of links, rotors, friction and offsets, (n,)."""
    few = _thinned(len(samples))
    v = samples.v[few]
    grams = _grams(robot, samples.q[few], v, samples.a[few], samples.tau[few])
    rms = np.sqrt(np.maximum(grams[:, -1, -1], 1e-300) / len(v))
    left = rms
    for _ in range(_ITERATIONS):
        A = np.einsum("j,jab->ab", np.maximum(left, _MIN_RESIDUAL * rms) ** -2.0, grams)
        scale = 1.0 / np.sqrt(np.maximum(np.diag(A)[:-1], 1e-300))
        unit = A[:-1, :-1] * np.outer(scale, scale)
        inverse = np.linalg.pinv(unit, rcond=_RELATIVE_RANK, hermitian=True)
        solution = np.append(scale * (inverse @ (scale * A[:-1, -1])), -1.0)
        squares = np.einsum("a,jab,b->j", solution, grams, solution)
        left = np.sqrt(np.maximum(squares, 0.0) / len(v))
    return np.asarray(np.maximum(left, _MIN_RESIDUAL * rms))


def _grams(robot: RobotModel, q: Array, v: Array, a: Array, tau: Array) -> Array:
    """Z'Z of each joint, Z = [links and rotors, friction, offset, torque], (n, k + 1, k + 1)."""
    basis = ParameterBasis.of(robot)
    rigid = basis.parameters.rigid
    chunks = robot.regressor_chunks(q, v, a)
    Y = np.concatenate([basis.reduce(chunk)[:, :, rigid] for _, chunk in chunks])
    p = Y.shape[2]
    grams = []
    for j in range(robot.n):
        own = np.column_stack([np.tanh(v[:, j] / _FRICTION_SPEED), v[:, j], np.ones(len(v))])
        Z = np.zeros((len(v), p + 3 * robot.n + 1))
        Z[:, :p] = Y[:, j]
        Z[:, p + 3 * j : p + 3 * j + 3] = own
        Z[:, -1] = tau[:, j]
        grams.append(Z.T @ Z)
    return np.array(grams)


def _thinned(count: int) -> slice:
    return slice(0, None, -(-count // _MAX_ROWS))
