"""How uncertain the predicted torque is at a state, from the covariance of model and payload.

The torque that a model predicts is linear in its parameters, tau = Y(q, v, a) theta, so where they are
uncertain by the covariance S the torque of joint j is uncertain by

    std_j^2 = noise_j^2 + Y_j (S + J S_payload J') Y_j'

large where the arm is quick and the parameters of friction or inertia are poorly known. noise_j is what was
left of the torques in the fit: model errors that no parameter takes. Friction that has changed since the
arm was identified may change again: the change counts as one more standard deviation of Fc, Fv and B.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steelyard.arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.identification.problem import kinds
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.torque.online.rows import OnlineRows


@dataclass(frozen=True, eq=False)
class ModelSpread:
    """Standard deviation of a predicted torque, at any state.

    Attributes:
        rows: makes the regressor of the model
        x: payload and parameters in the order of `rows`, (10 + p,)
        root: a square root of their covariance, covariance = root @ root.T, (p, p)
        noise: of each joint's torque in the fit, (n,) [Nm or N]
        friction: which parameters are Fc, Fv and B, in this order, (3 n,)
        doubt: standard deviation of these beyond the covariance, (3, n)
    """

    rows: OnlineRows
    x: Array
    root: Array
    noise: Array
    friction: NDArray[np.intp]
    doubt: Array

    @classmethod
    def of(cls, model: DynamicModel, payload: Payload | InertialParameters | None) -> ModelSpread:
        """The spread of an identified arm with a payload.

        Args:
            model: of the empty arm
            payload: in the flange frame; a `Payload` brings the covariance of the numbers it knows
        """
        covariance = np.array(model.estimate.covariance)
        unknown = np.array(model.estimate.names)[~np.isfinite(np.diag(covariance))]
        if unknown.size:
            raise InvalidSamples(
                f"the model does not know {', '.join(unknown)}: identify it from a motion that excites all"
                " joints, or take its essential parameters (identification.model.essential)"
            )
        load = np.zeros(10)
        if payload is not None:
            load = (payload.body if isinstance(payload, Payload) else payload).vector
        if isinstance(payload, Payload):
            known = np.isfinite(payload.std)
            J = model.basis.payload_jacobian[:, known]
            covariance[: len(J), : len(J)] += J @ payload.covariance[np.ix_(known, known)] @ J.T
        rows = OnlineRows.of(model)
        x = np.concatenate([load, model.estimate.value[rows.theta_order]])
        kind = kinds(model.estimate.names)
        friction = np.concatenate([np.flatnonzero(kind == name) for name in ("Fc", "Fv", "B")])
        doubt = np.zeros((3, model.robot.n))
        return cls(rows, x, _root(covariance), np.array(model.estimate.noise), friction, doubt)

    def with_friction_doubt(self, change: Array) -> ModelSpread:
        """The same spread for an arm whose friction has changed.

        Args:
            change: of Fc, Fv and B, (3, n), each counts as one standard deviation
        """
        return replace(self, doubt=np.abs(change))

    def variance(self, motion: Array, memory: Array, weights: Array | None = None) -> Array:
        """Variance of each torque without and with the doubt about friction, (k, 2, m).

        Args:
            motion: q, v and a of each sample in the order of time, (k, 3, n)
            memory: what friction remembered before, (2, n)
            weights: of the joints in m sums of torques, (k, m, n); each joint by itself when None
        """
        Y, _ = self.rows.regressor(motion, memory, self.x)
        columns, changed = Y @ self.root, Y[:, :, self.friction] * self.doubt.ravel()
        noise = np.broadcast_to(self.noise**2, Y.shape[:2])
        if weights is not None:
            columns, changed = weights @ columns, weights @ changed
            noise = weights**2 @ self.noise**2
        plain = np.einsum("kjp,kjp->kj", columns, columns) + noise
        return np.stack([plain, plain + np.einsum("kjp,kjp->kj", changed, changed)], axis=1)


def _root(covariance: Array) -> Array:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
