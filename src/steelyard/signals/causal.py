"""The same filters one sample at a time: they do not see the future, so each has a delay, and says which.

Every filter is a value with `init(x)` and `step(state, x) -> (state, y)`; states are values too and can be
kept, copied, saved.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy import signal

from steelyard.arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.signals.filters import butterworth


@dataclass(frozen=True)
class CausalLowPass:
    """A Butterworth low-pass filter, forwards only; it delays slow signals by `delay_s`.

    Attributes:
        cutoff_hz: where it passes half the power, [Hz]
        rate_hz: samples for each second, [Hz]
        order: of the filter
    """

    cutoff_hz: float
    rate_hz: float
    order: int = 4
    _sections: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_sections", butterworth(self.cutoff_hz, self.rate_hz, self.order))

    @property
    def delay_s(self) -> float:
        """The delay of a slow signal, [s]."""
        b, a = signal.sos2tf(self._sections)
        return float(signal.group_delay((b, a), w=[1e-3])[1][0] / self.rate_hz)

    def init(self, x: ArrayLike) -> Array:
        """The state of a signal that always had this value, (sections, 2, n).

        Args:
            x: first value, (n,)
        """
        steady = signal.sosfilt_zi(self._sections)
        return np.asarray(steady[:, :, None] * np.asarray(x, dtype=float))

    def step(self, state: Array, x: ArrayLike) -> tuple[Array, Array]:
        """The next state and the filtered value, (n,).

        Args:
            state: as `init` or `step` gave it
            x: next value, (n,)
        """
        y = np.array(x, dtype=float)
        new = np.empty_like(state)
        for i, (b0, b1, b2, _, a1, a2) in enumerate(self._sections):
            out = b0 * y + state[i, 0]
            new[i, 0] = b1 * y - a1 * out + state[i, 1]
            new[i, 1] = b2 * y - a2 * out
            y = out
        return new, y


@dataclass(frozen=True)
class CausalDerivative:
    """Central differences, one sample late: value, first and second derivative of the sample before.

    Attributes:
        rate_hz: samples for each second, [Hz]
    """

    rate_hz: float

    def __post_init__(self) -> None:
        if not self.rate_hz > 0:
            raise InvalidSamples(f"rate_hz must be positive, got {self.rate_hz}")

    @property
    def delay_s(self) -> float:
        """One sample, [s]."""
        return 1.0 / self.rate_hz

    def init(self, x: ArrayLike) -> Array:
        """The state of a signal at rest, (2, n): the two values before.

        Args:
            x: first value, (n,)
        """
        return np.tile(np.asarray(x, dtype=float), (2, 1))

    def step(self, state: Array, x: ArrayLike) -> tuple[Array, tuple[Array, Array, Array]]:
        """The next state; value, first and second derivative one sample ago, each (n,).

        Args:
            state: as `init` or `step` gave it
            x: next value, (n,)
        """
        new = np.asarray(x, dtype=float)
        before, middle = state
        first = (new - before) * (self.rate_hz / 2)
        second = (new - 2 * middle + before) * self.rate_hz**2
        return np.array([middle, new]), (middle, first, second)


@dataclass(frozen=True)
class CausalMean:
    """The mean of the last `length` samples; it delays by (length - 1) / 2 of them.

    Attributes:
        length: number of samples
    """

    length: int

    def __post_init__(self) -> None:
        if self.length < 1:
            raise InvalidSamples(f"a mean needs at least one sample, got {self.length}")

    def init(self, x: ArrayLike) -> Array:
        """The state of a signal that always had this value, (length, n).

        Args:
            x: first value, (n,)
        """
        return np.tile(np.asarray(x, dtype=float), (self.length, 1))

    def step(self, state: Array, x: ArrayLike) -> tuple[Array, Array]:
        """The next state and the mean, (n,).

        Args:
            state: as `init` or `step` gave it
            x: next value, (n,)
        """
        new = np.vstack([state[1:], np.asarray(x, dtype=float)])
        return new, np.asarray(new.mean(axis=0))


@dataclass(frozen=True)
class CausalDecimation:
    """Lets every k-th sample through, the first included.

    Attributes:
        every: k
    """

    every: int

    def __post_init__(self) -> None:
        if self.every < 1:
            raise InvalidSamples(f"decimation lets every k-th sample through, k >= 1; got {self.every}")

    def init(self) -> int:
        """The state before the first sample."""
        return 0

    def step(self, state: int) -> tuple[int, bool]:
        """The next state, and whether this sample passes.

        Args:
            state: as `init` or `step` gave it
        """
        return (state + 1) % self.every, state == 0
