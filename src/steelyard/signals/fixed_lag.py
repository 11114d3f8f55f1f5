"""The filters of `prepare` one sample at a time: the same answer, a fixed time late.

A Butterworth filter run once forwards and once backwards is a symmetric sum over neighbours,

    y_k = sum_i g_i x_{k+i},   g_i = g_-i,   sum_i g_i = 1,   sum_i g_i i^2 = 0,

whose weights g_i die away within about two periods of the cut-off. Cut off there (and corrected so that both
sums hold again: cubics pass unchanged) and waited for, they need no future: the answer for sample k comes
when sample k + lag has come. The lag is the same for every frequency (that of `CausalLowPass` is not), so
torques that wait as long belong to the same instant as the motion, and a model that was fitted to samples of
`prepare` fits these. Derivatives are central differences of the y_k: g is folded with (-1, 0, 1) / 2 and
(1, -2, 1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from steelyard.arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.signals.filters import low_pass

_PERIODS = 2.0  # of the cut-off on either side: less than 1 % of the weights lies beyond


class Smoothed(NamedTuple):
    """A signal some samples ago.

    Attributes:
        plain: as it came, (n,)
        value: filtered, (n,)
        first: derivative of the filtered signal, (n,)
        second: its second derivative, (n,)
    """

    plain: Array
    value: Array
    first: Array
    second: Array


@dataclass(frozen=True)
class FixedLag:
    """The zero-phase low-pass filter of `prepare` with central differences, `delay_s` late.

    Attributes:
        cutoff_hz: as in `Preparation`, [Hz]; None for no filter
        rate_hz: samples for each second, [Hz]
        order: of the filter
        shortest_lag: wait for at least so many samples, to fall in step with another filter
    """

    cutoff_hz: float | None
    rate_hz: float
    order: int = 4
    shortest_lag: int = 1
    _kernels: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.rate_hz > 0:
            raise InvalidSamples(f"rate_hz must be positive, got {self.rate_hz}")
        weights = np.ones(1) if self.cutoff_hz is None else self._weights(self.cutoff_hz)
        kernels = [
            np.pad(weights, 1),
            np.convolve(weights, [-0.5, 0.0, 0.5]) * self.rate_hz,
            np.convolve(weights, [1.0, -2.0, 1.0]) * self.rate_hz**2,
        ]
        more = max(self.shortest_lag - len(kernels[0]) // 2, 0)
        object.__setattr__(self, "_kernels", np.pad(np.array(kernels), ((0, 0), (more, more))))

    def _weights(self, cutoff_hz: float) -> Array:
        reach = int(np.ceil(_PERIODS * self.rate_hz / cutoff_hz))
        pulse = np.zeros((8 * reach + 1, 1))
        pulse[4 * reach] = 1.0
        weights = low_pass(pulse, cutoff_hz, self.rate_hz, order=self.order)[3 * reach : 5 * reach + 1, 0]
        moments = np.array([np.ones(2 * reach + 1), (np.arange(-reach, reach + 1) / reach) ** 2])
        missing = np.array([1.0, 0.0]) - moments @ weights
        return np.asarray(weights + moments.T @ np.linalg.solve(moments @ moments.T, missing))

    @property
    def lag(self) -> int:
        """How late the answer is [samples]."""
        return int(self._kernels.shape[1]) // 2

    @property
    def delay_s(self) -> float:
        """How late the answer is, [s]."""
        return self.lag / self.rate_hz

    def init(self, n: int) -> Array:
        """The state before the first sample, (0, n).

        Args:
            n: how many signals there are
        """
        return np.zeros((0, n))

    def step(self, state: Array, x: ArrayLike) -> tuple[Array, Smoothed | None]:
        """The next state, and the signal `lag` samples ago; None until enough samples have come.

        Args:
            state: as `init` or `step` gave it
            x: next value, (n,)
        """
        length = self._kernels.shape[1]
        new = np.concatenate([state[-length + 1 :], np.asarray(x, dtype=float)[None]])
        if len(new) < length:
            return new, None
        value, first, second = self._kernels @ new
        return new, Smoothed(new[self.lag], value, first, second)
