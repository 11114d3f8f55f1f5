"""What is not known of friction: how it changes with the payload, and what it is where drives creep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.arrays import Array
from steelyard.identification import DynamicModel
from steelyard.torque.online.rows import OnlineRows

_OF_UNIFORM = 3.0**-0.5  # standard deviation of what is anything between -1 and 1


@dataclass(frozen=True, eq=False)
class Creep:
    """Friction of slow drives, which no law knows (see `change`).

    Attributes:
        std: of the friction of each drive at `lowest_speed`, F / sqrt(3), (n,) [Nm or N]
        lowest_speed: v_0, below which torques do not count, [rad/s or m/s]
        weights: of the joints' rows, (n,)
        mixing: U of drive motion u = U q, (n, n); None when each motor turns one joint
    """

    std: Array
    lowest_speed: float
    weights: Array
    mixing: Array | None

    @classmethod
    def of(cls, model: DynamicModel, rows: OnlineRows, weights: Array, lowest_speed: float) -> Creep:
        """The doubt about a model's friction.

        Args:
            model: of the empty arm
            rows: its row maker
            weights: of the joints' rows, (n,)
            lowest_speed: below which torques do not count, [rad/s or m/s]
        """
        size = _sizes(model)
        exponent = rows.robot.drive.exponent
        F = size["Fc"] + size["Fv"] * lowest_speed**exponent + size["Fs"]
        return cls(_OF_UNIFORM * F, lowest_speed, weights, rows.mixing)

    def pull(self, payload: Array, v: Array) -> Array:
        """W'c of a few samples: forwards and backwards of the first drive, of the second, ..., (4, 2 n).

        Args:
            payload: first four payload columns W of each sample and joint, rows over their noise, (k, n, 4)
            v: joint velocity, (k, n) [rad/s or m/s]
        """
        if self.lowest_speed == 0:
            return np.zeros((4, 2 * len(self.std)))
        std = self.std * self.weights if self.mixing is None else self.std
        if self.mixing is not None:
            v, payload = v @ self.mixing.T, self.mixing @ (payload * self.weights[:, None])
        c = (self.lowest_speed * std) / np.maximum(np.abs(v), self.lowest_speed)
        both = np.empty((v.shape[1], 2, len(v)))
        both[:, 0] = (c * (v > 0)).T
        both[:, 1] = c.T - both[:, 0]
        return np.asarray((both @ payload.transpose(1, 0, 2)).reshape(-1, 4).T)


def friction_change(model: DynamicModel, rows: OnlineRows, share: float) -> Array:
    """Standard deviation of the change of each friction coefficient with the payload, (f,) [SI].

    Args:
        model: of the empty arm
        rows: its row maker
        share: of Fc + Fv
    """
    size = _sizes(model)
    of_drive = np.maximum(size["Fc"] + size["Fv"], 1e-3)
    drives = [int(name.rstrip("r").lstrip("FcvsB")) - 1 for name in rows.names[: rows.friction]]
    return np.asarray(share * of_drive[drives])


def _sizes(model: DynamicModel) -> dict[str, Array]:
    """Sizes of Fc, Fv and Fs of each drive, each (n,); zero where the model has none."""
    value = dict(zip(model.estimate.names, np.abs(model.estimate.value), strict=True))
    joints = range(1, model.robot.n + 1)
    return {kind: np.array([value.get(f"{kind}{j}", 0.0) for j in joints]) for kind in ("Fc", "Fv", "Fs")}
