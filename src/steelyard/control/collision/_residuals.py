"""Residuals of a whole recording by an observer, and the friction that they show.

Friction that is missing in the model appears as a residual that changes its sign with the direction
of the drive. The drive must move in both directions long enough to distinguish it from a weight.

Friction changes from day to day and with temperature. Changes (d_Fc, d_Fv, d_B) of the drives show
in the residuals of the joints as

    r = -U' F[s d_Fc + |w|^alpha sign(w) d_Fv + d_B],     w = U v,     F the observer's own filter

(U = 1 if each motor turns one joint). They are found by least squares from moving samples, for all
joints at once because U mixes them, with the prior that friction changes by a half (one standard
deviation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard.control.collision._observer import Observer, ObserverState
from steelyard.errors import InvalidRecording
from steelyard.quality import check
from steelyard.recording import Recording, Sample
from steelyard.robot import DriveModel, RobotModel
from steelyard.signals import joint_torque

_MIN_SPEED = 0.01  # [rad/s], of a moving drive
_MIN_MOVING_SHARE = 0.1  # of the samples
_MIN_EXPLAINED_SHARE = 0.5  # of the variance of a residual, by speed and direction
_DAILY_CHANGE_STD = 0.5  # of friction, relative
_MAX_SLACK_SHARE = 0.1  # of static friction, for samples that determine friction
_INDEPENDENT_FILTER_TIMES = 4.0  # between independent samples
_MIN_INDEPENDENT_SAMPLES = 5.0  # in each direction


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals of an observer along a recording.

    Attributes:
        observer: that was used
        samples: in the order of time
        states: of the observer, one for each sample
        t: time, (N,) [s]
        q: joint position, (N, n) [rad or m]
        v: joint velocity, (N, n) [rad/s or m/s]
        a: joint acceleration after the observer's filter, (N, n) [rad/s^2 or m/s^2]
        direction: of friction at the drives, between -1 and 1, (N, n)
        residual: external torque at the joints, (N, m) [Nm or N], or power [W]
        slack: part of it that unknown friction may explain, downwards and upwards, (N, 2, m)
    """

    observer: Observer
    samples: Sequence[Sample[Array]] = field(repr=False)
    states: Sequence[ObserverState] = field(repr=False)
    t: Array
    q: Array
    v: Array
    a: Array
    direction: Array
    residual: Array
    slack: Array

    @classmethod
    def of(cls, observer: Observer, samples: Sequence[Sample[Array]]) -> Residuals:
        """The residuals along two or more samples.

        Args:
            observer: of the arm
            samples: in the order of time
        """
        states = [observer.init(samples[0])]
        for sample in samples[1:]:
            states.append(observer.step(states[-1], sample))
        return cls(
            observer,
            samples,
            states,
            t=np.array([state.t for state in states]),
            q=np.array([sample.motion[0] for sample in samples], dtype=float),
            v=np.array([state.v for state in states]),
            a=np.array([state.a for state in states]),
            direction=np.array([state.memory[0] for state in states]),
            residual=np.array([state.residual for state in states]),
            slack=np.array([state.slack for state in states]),
        )

    @classmethod
    def of_recording(
        cls, observer: Observer, recording: Recording, *, drive: DriveModel | None = None
    ) -> Residuals:
        """The residuals along a recording, equal to those sample by sample.

        Missing velocities are differences to the previous position, half a step late. A recording
        that is not fit for use, has a gap, or is of other joints, raises an error.

        Args:
            observer: of the arm
            recording: as measured
            drive: that converts motor currents to torques; required if only currents were recorded
        """
        robot = observer.arm.robot
        _require_same_joints(recording, robot)
        tau = joint_torque(recording, drive)
        v = recording.v
        check(recording, limits=robot.limits).require_ok()
        if v is None:
            signals = [recording.q, tau]
        else:
            signals = [recording.q, tau, v]
        keep = np.flatnonzero(np.isfinite(np.hstack(signals)).all(axis=1))
        keep = keep[np.diff(recording.t[keep], prepend=-1.0) > 0]
        if len(keep) < 2:
            raise InvalidRecording(
                f"only {len(keep)} rows are complete; an observer needs at least 2"
            )
        t = recording.t[keep]
        q = recording.q[keep]
        if v is None:
            slope = np.diff(q, axis=0) / np.diff(t)[:, None]
            speed = np.concatenate([slope[:1], slope])
        else:
            speed = v[keep]
        return cls.of(
            observer,
            [Sample(float(t[i]), np.array([q[i], speed[i]]), tau[k]) for i, k in enumerate(keep)],
        )

    def __len__(self) -> int:
        return len(self.t)

    @property
    def beyond_friction(self) -> Array:
        """The part of the residual that no friction at rest explains, (N, m)."""
        return np.asarray(
            self.residual - np.clip(self.residual, -self.slack[:, 0], self.slack[:, 1])
        )

    @property
    def settled(self) -> Mask:
        """Which rows are not affected by the initial state of the filter, (N,)."""
        return np.asarray(self.t >= self.t[0] + self.observer.settling_s)

    @property
    def samples_per_independent(self) -> float:
        """Number of samples per independent one, because the filter correlates them; at least 1."""
        step_s = float(np.median(np.diff(self.t)))
        return max(_INDEPENDENT_FILTER_TIMES / (2 * np.pi * self.observer.gain_hz) / step_s, 1.0)

    @property
    def missing_friction(self) -> str | None:
        """Friction that is missing in the model, a sentence; None if there is none."""
        friction = self.observer.arm.friction
        if len(self.observer.names) != self.observer.arm.n:
            return None
        drives = friction.transmission
        settled = self.settled
        speed = drives.to_drives(self.v[settled])
        torque = drives.load(self.residual[settled])
        for j, (Fc, Fv) in enumerate(np.abs(friction.coefficients[:2]).T):
            size = _friction_like_rms(
                speed[:, j], torque[:, j], _MIN_INDEPENDENT_SAMPLES * self.samples_per_independent
            )
            if size > Fc + Fv * np.abs(speed[:, j]).max(initial=0.0):
                return (
                    f"{self.observer.names[j]} has about {size:.2g} {self.observer.unit} of"
                    " friction that is missing in the model: identify the arm with a friction law,"
                    " or state the friction of the drives"
                )
        return None

    def friction_changes(self, *parts: Mask) -> list[Array]:
        """Changes of Fc, Fv and B of the drives, (3, n), for each part of the rows.

        Args:
            parts: which rows belong to each part, (N,) each
        """
        friction = self.observer.arm.friction
        at_drives = (np.abs(friction.coefficients) * friction.law.breakaway(0.0)).sum(axis=0)
        at_rest = friction.transmission.most_at_joints(at_drives)
        known = self.slack.sum(axis=1) <= 2 * _MAX_SLACK_SHARE * np.maximum(at_rest, 1e-9)
        columns = self._filtered_columns()
        return [self._change(columns, known & (self.settled & part)[:, None]) for part in parts]

    def _filtered_columns(self) -> Array:
        """Filtered torque of each drive for a unit change of its Fc, Fv and B, (N, n, 3)."""
        friction = self.observer.arm.friction
        Fc, Fv = friction.law.at(friction.transmission.to_drives(self.v), s=self.direction)[:2]
        plain = np.stack([Fc, Fv, np.ones_like(Fc)], axis=2)
        out = np.zeros_like(plain)
        kept = np.exp(-2 * np.pi * self.observer.gain_hz * np.diff(self.t))
        for i, share in enumerate(kept):
            out[i + 1] = share * out[i] + (1 - share) * 0.5 * (plain[i] + plain[i + 1])
        return out

    def _change(self, columns: Array, usable: Mask) -> Array:
        """Changes of Fc, Fv and B, (3, n), by normal equations of all joints with the prior."""
        friction = self.observer.arm.friction
        n = self.observer.arm.n
        size = _DAILY_CHANGE_STD * np.abs(friction.coefficients[[0, 1, 0]])
        U = friction.transmission.matrix
        A = np.eye(3 * n)
        b = np.zeros(3 * n)
        for j in range(n):
            rows = usable[:, j]
            if rows.sum() < 3 * self.samples_per_independent:
                continue
            r = self.residual[rows, j]
            noise = max(float(np.std(r) * np.sqrt(self.samples_per_independent)), 1e-12)
            drives = np.flatnonzero(U[:, j])
            seen = -columns[np.ix_(rows, drives)] * U[drives, j][:, None] * size.T[drives] / noise
            seen = seen.reshape(len(r), -1)
            at = (3 * drives[:, None] + np.arange(3)).ravel()
            A[np.ix_(at, at)] += seen.T @ seen
            b[at] += seen.T @ (r / noise)
        return np.asarray(size * np.linalg.solve(A, b).reshape(n, 3).T)


def _friction_like_rms(v: Array, r: Array, enough: float) -> float:
    """RMS of the part of a residual r that opposes the speed v; 0 if it explains too little."""
    forwards = v > _MIN_SPEED
    backwards = v < -_MIN_SPEED
    moving = forwards | backwards
    if min(forwards.sum(), backwards.sum()) < enough or moving.mean() < _MIN_MOVING_SHARE:
        return 0.0
    v = v[moving]
    r = r[moving]
    columns = np.column_stack([np.sign(v), v, np.ones(len(v))])
    found = np.linalg.lstsq(columns, r, rcond=None)[0]
    size = float(np.sqrt(np.mean((columns[:, :2] @ found[:2]) ** 2)))
    left = float(np.std(r - columns @ found))
    explains = size**2 > _MIN_EXPLAINED_SHARE * (size**2 + left**2)
    if explains and found[0] < 0:
        return size
    return 0.0


def _require_same_joints(recording: Recording, robot: RobotModel) -> None:
    if recording.n != robot.n:
        raise InvalidRecording(f"the arm has {robot.n} joints, the recording {recording.n}")
    named = tuple(robot.joint_names)
    given = tuple(recording.joint_names)
    if named != given and sorted(named) == sorted(given):
        raise InvalidRecording(
            f"the joints of {robot.name} are in the order {', '.join(named)}, those of the"
            f" recording {', '.join(given)}: bring the columns into the order of the arm"
        )
