"""The rows of a few samples in the unknowns of the online estimate.

    tau = H x,   x = [payload (10), friction (f), arm (p - f)],   H = [Y J, Y_friction, Y_arm]

Y is the regressor of the model's parameters and J the payload Jacobian, as in
`steelyard.torque._weigh`; only the order of the columns differs (see
`steelyard.torque.tracking._factor` for why). A friction law that remembers (presliding) keeps its
direction z and the drives' positions u from block to block. Friction that grows with the carried
torque L = Y_links theta, Fl |L| s, is linear in theta once the sign of L is known, and Fl is from
the empty arm; the sign is that of the measured torque less friction, so rows do not depend on an
early, wrong payload.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard._arrays import Array, Indices, Mask
from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel, FrictionLaw
from steelyard.recording import Sample
from steelyard.robot import RobotModel
from steelyard.robot._parameters import ParameterTable
from steelyard.robot._terms import require_no_terms
from steelyard.robot._transmission import Transmission

_KNOWN_SHARE_STD = 0.02
_SPIKE = 20.0  # standard deviations
_LARGEST = 1e6  # rad, rad/s, rad/s^2, Nm: beyond, a number is corrupt


@dataclass(frozen=True, eq=False)
class TorqueRows:
    """Makes rows of a few samples.

    Attributes:
        robot: the empty arm
        law: of friction
        theta_order: which parameter of the model each unknown after the payload is, (p,)
        friction: how many of them are friction
        parameters: all unknowns after the payload
        payload_rows: parameters of the model that a payload changes
        J: how it changes them, (len(payload_rows), 10)
        drives: from joints to drives
        terms: which parameters of the model are the coefficients of the law's terms, (terms, n)
        links: which parameters of the model are those of links
        columns: of the regressor that are base parameters
        shares: Fl of each joint where the empty arm knows it, else 0, (n,)
    """

    robot: RobotModel
    law: FrictionLaw
    theta_order: Indices
    friction: int
    parameters: ParameterTable
    payload_rows: Indices
    J: Array
    drives: Transmission
    terms: Indices
    links: Indices
    columns: Indices
    shares: Array

    @classmethod
    def of(cls, model: DynamicModel) -> TorqueRows:
        """The row maker of a model."""
        law = model.law
        robot = model.robot
        require_no_terms(robot, "tracking")
        parameters = model.estimate.parameters
        nuisance = parameters.daily
        order = np.concatenate([np.flatnonzero(nuisance), np.flatnonzero(~nuisance)])
        jacobian = model.basis.payload_jacobian
        changed = np.flatnonzero(np.abs(jacobian).max(axis=1) > 0)
        return cls(
            robot=robot,
            law=law,
            theta_order=order,
            friction=int(nuisance.sum()),
            parameters=parameters.take(order),
            payload_rows=changed,
            J=jacobian[changed],
            drives=robot.drive.transmission,
            terms=np.array([np.flatnonzero(parameters.of_kind(term)) for term in law.terms]),
            links=np.flatnonzero(parameters.links),
            columns=model.basis.independent,
            shares=_known_shares(model),
        )

    @property
    def m(self) -> int:
        """Number of unknowns."""
        return 10 + len(self.theta_order)

    def theta(self, x: Array) -> Array:
        """The parameters of the loaded arm in the order of the model, (p,).

        Args:
            x: the unknowns, (m,)
        """
        theta = np.empty(len(self.theta_order))
        theta[self.theta_order] = x[10:]
        theta[self.payload_rows] += self.J @ x[:10]
        return theta

    def regressor(self, motion: Array, memory: Array, x: Array) -> tuple[Array, Array]:
        """The regressor of the model's parameters, (k, n, p), and what friction remembers, (2, n).

        Args:
            motion: q, v and a of each sample, (k, 3, n)
            memory: direction z and position u of the drives before, (2, n)
            x: the unknowns, for the torque that gears carry, (m,)
        """
        q = motion[:, 0]
        v = motion[:, 1]
        a = motion[:, 2]
        Y = self.robot.regressor(q, v, a)[:, :, self.columns]
        load = None
        if self.law.load:
            load = self.drives.load(Y[:, :, self.links] @ self.theta(x)[self.links])
        memory, columns = self.law.step(
            memory, self.drives.to_drives(q), self.drives.to_drives(v), load
        )
        if len(columns) > 2:
            Y = np.concatenate([Y, np.zeros((*q.shape, len(self.law.extra_parameters)))], axis=2)
        for values, where in zip(columns, self.terms, strict=True):
            self.drives.write(Y, values, where)
        return Y, memory

    def torque(
        self, sample: Sample[Array], memory: Array, *unknowns: Array, lowest_speed: float
    ) -> Array:
        """What k vectors of unknowns, each (m,), predict for a sample, (k, n) [Nm or N].

        NaN where a joint rests and the friction law takes the direction of its speed as it is.

        Args:
            memory: of friction, as in `regressor`
            lowest_speed: a joint that is slower rests, [rad/s or m/s]
        """
        motion = np.asarray(sample.motion, dtype=float)[None]
        tau = np.array([self.regressor(motion, memory, x)[0][0] @ self.theta(x) for x in unknowns])
        if self.law.direction == "exact":
            tau[:, np.abs(motion[0, 1]) < lowest_speed] = np.nan
        return tau

    def checked(self, sample: Sample[Array]) -> Array:
        """A copy of a sample as one row [t q v a tau], (1 + 4 n,)."""
        n = self.robot.n
        row = np.empty(1 + 4 * n)
        end_of_motion = 1 + 3 * n
        shapes = (np.shape(sample.motion), np.shape(sample.effort))
        try:
            row[0] = sample.t
            if shapes != ((3, n), (n,)):
                raise ValueError
            row[1:end_of_motion] = np.ravel(sample.motion)
            row[end_of_motion:] = sample.effort
        except (TypeError, ValueError):
            raise InvalidSamples(
                f"a sample is a time, 3 x {n} numbers of motion and {n} torques, got a motion"
                f" {shapes[0]} and torques {shapes[1]}"
            ) from None
        return row

    def split(self, rows: Array) -> tuple[Array, Array]:
        """Motion, (k, 3, n), and torques, (k, n), in rows [t q v a tau], (k, 1 + 4 n)."""
        n = self.robot.n
        end_of_motion = 1 + 3 * n
        return rows[:, 1:end_of_motion].reshape(-1, 3, n), rows[:, end_of_motion:]

    def fault(self, row: Array, last_s: float) -> str:
        """Why a sample cannot be used, as a name of `Counts`; empty when it can.

        Args:
            row: [t q v a tau], (1 + 4 n,)
            last_s: time of the sample before, [s]
        """
        tau_max = self.robot.limits.tau_max
        if not np.abs(row[1:]).max() < _LARGEST or not np.isfinite(row[0]):
            return "corrupt"
        if row[0] <= last_s:
            if row[0] == last_s:
                return "repeated"
            return "late"
        if (np.abs(row[-len(tau_max) :]) >= tau_max).any():
            return "saturated"
        return ""

    def rows(self, motion: Array, tau: Array, memory: Array, x: Array) -> tuple[Array, Array]:
        """The rows [H tau], (k, n, m + 1), and what friction remembers, (2, n).

        Args:
            motion: q, v and a of each sample, (k, 3, n)
            tau: torques, (k, n) [Nm or N]
            memory: direction z and position u of the drives before, (2, n)
            x: the unknowns, for the torque that gears carry, (m,)
        """
        Y, memory = self.regressor(motion, memory, x)
        if self.law.load and not self.drives.is_coupled:
            Y, tau = self._linear_in_load(Y, tau, x)
        out = np.empty((*tau.shape, self.m + 1))
        out[:, :, :10] = Y[:, :, self.payload_rows] @ self.J
        out[:, :, 10:-1] = Y[:, :, self.theta_order]
        out[:, :, -1] = tau
        return out, memory

    def held(self, q: Array) -> Array:
        """The torque that holds 1 N down at the flange, (k, n) [Nm or N].

        Args:
            q: postures, (k, n) [rad or m]
        """
        gravity = float(np.linalg.norm(self.robot.gravity_base))
        if not gravity:
            return np.zeros_like(q)
        still = np.zeros_like(q)
        weight = self.robot.payload_regressor(q, still, still)[:, :, 0]
        return np.asarray(weight / gravity)

    def spikes(self, e: Array, tau: Array) -> Mask:
        """Which samples have torque and residual far from those of both neighbours, (k,).

        Args:
            e: residuals over their noise, (k, n)
            tau: torques over their noise, with one more before and after, (k + 2, n)
        """
        size = np.abs(e)
        if size.max() < _SPIKE:
            return np.zeros(len(e), bool)
        rise = np.diff(tau, axis=0)
        up = rise[:-1]
        down = -rise[1:]
        alone = (up * down > 0) & (np.minimum(np.abs(up), np.abs(down)) > _SPIKE / 2)
        around = np.maximum(
            np.vstack([np.abs(e[0] - up[0]), size[:-1]]),
            np.vstack([size[1:], np.abs(e[-1] - down[-1])]),
        )
        return np.asarray((alone & (size > _SPIKE) & (around < size / 4)).any(axis=1))

    def _linear_in_load(self, Y: Array, tau: Array, x: Array) -> tuple[Array, Array]:
        """Fl |L| s, linear in theta by |L| = sign(L) L with the sign of torque minus friction."""
        joints = np.arange(tau.shape[1])
        theta = self.theta(x)
        other = np.setdiff1d(np.arange(Y.shape[2] - len(joints)), self.links)
        load = tau - Y[:, :, other] @ theta[other]
        s = Y[:, joints, self.terms[0]]
        load, slope = self.law.carried_torque(load, self.shares, s)
        Y = Y.copy()
        Y[:, :, self.links] *= 1.0 + slope[:, :, None]
        Y[:, joints, self.terms[-1]] = np.abs(load) * s
        return Y, tau + slope * load


def _known_shares(model: DynamicModel) -> Array:
    """Fl of each joint where its uncertainty is small, (n,)."""
    n = model.robot.n
    estimate = model.estimate
    if not model.law.load:
        return np.zeros(n)
    value = estimate.value[-n:]
    std = estimate.std[-n:]
    return np.where((std < _KNOWN_SHARE_STD) & (np.abs(value) < 1.0), value, 0.0)
