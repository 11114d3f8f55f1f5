"""A motion from posture to posture, with rest in each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard._arrays import Array, Indices


@dataclass(frozen=True, eq=False)
class Visit:
    """Postures, one after the other, with rest in each.

    Attributes:
        postures: (N, n) [rad]
        rest_s: in each, [s]
        move_s: between two, [s]
    """

    postures: Array
    rest_s: float = 1.0
    move_s: float = 1.5

    @property
    def duration_s(self) -> float:
        """Total duration, [s]."""
        return len(self.postures) * (self.rest_s + self.move_s) - self.move_s

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration, each (N, n); quintic polynomials between postures.

        Args:
            t: times, (N,) [s]
        """
        period = self.rest_s + self.move_s
        last = len(self.postures) - 1
        k = np.minimum((np.asarray(t) // period).astype(int), last)
        x = np.clip((t - k * period - self.rest_s) / self.move_s, 0.0, 1.0)[:, None]
        way = self.postures[np.minimum(k + 1, last)] - self.postures[k]
        first = 30 * x**2 * (1 - x) ** 2 / self.move_s
        second = 60 * x * (1 - x) * (1 - 2 * x) / self.move_s**2
        return (
            self.postures[k] + (10 * x**3 - 15 * x**4 + 6 * x**5) * way,
            first * way,
            second * way,
        )

    def ends_of_rest(self, t: Array, last_s: float) -> list[Indices]:
        """The rows in the last seconds of each rest.

        Args:
            t: times, (N,) [s]
            last_s: how many seconds
        """
        ends = self.rest_s + np.arange(len(self.postures)) * (self.rest_s + self.move_s)
        return [np.flatnonzero((t > end - last_s) & (t <= end + 1e-9)) for end in ends]
