"""The error of samples next to a jump of the wrench, as a variance that is added to the noise.

A reading of the wrench belongs to an instant; an acceleration from positions is a mean over the
interval between two rows. When a joint reverses, friction changes sign, and the wrench jumps by D
between two rows. If the jump comes after the share u of the interval, the readings contain it from
the next row on, but the accelerations contain the share 1 - u of it already in this interval. The
sums of both differ by D (u - 1/2), whose variance is D^2 / 12 if u is uniform. A step has the two
second differences D and -D, and a slope has none, so row k adds

    e_k = d_k^2 / 24,      d_k = w_(k+1) - 2 w_k + w_(k-1)

to the variance of the sum of all rows, where d_k exceeds both the noise of the sensor and the usual
size of d in the rows around it. (Jumps are rare; a vibration of every row is no jump.) Every K-th
smoothed row becomes a sample, and a sum of samples is 1 / K of the sum of rows. Sample j therefore
gets the part c_(j-k) e_k / K, where c are the weights of the smoother, which add up to 1 / K over
the samples. A contact lasts longer than one interval and remains visible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard._arrays import Array
from steelyard.signals import FixedLag

_DIVISOR = 24.0  # 12 of a uniform distribution, times two second differences of a step
_MEDIAN_TO_STD = 1.4826  # of absolute values, for a normal distribution
_NOISE_SIGMA = 3.0  # a second difference up to this many standard deviations is noise
_SECOND_DIFFERENCE = float(np.sqrt(6.0))  # of white noise, over its standard deviation
_MIN_ROWS = 10  # that show the usual noise
_WINDOWS_AT_ONCE = 1000  # limits the memory for long recordings


@dataclass(frozen=True, eq=False)
class Jumps:
    """Finds jumps of the wrench in rows around a sample.

    Attributes:
        lag: the smoother of the samples
        row_noise: standard deviation of a row's wrench, (6,) [N, Nm]
        every: this many rows become one sample
    """

    lag: FixedLag
    row_noise: Array
    every: int

    def variance(self, windows: Array) -> Array:
        """The variance that jumps add to the variance of a sum of samples, (..., 6) [N^2, Nm^2].

        Args:
            windows: rows of the wrench around each sample, (..., 2 lag + 1, 6)
        """
        second = np.diff(windows, 2, axis=-2)
        usual = _usual_size(second)[..., None, :]
        limit = _NOISE_SIGMA * np.maximum(usual, _SECOND_DIFFERENCE * self.row_noise)
        excess = np.maximum(second**2 - limit**2, 0.0)
        shares = self.lag.weights[1:-1] / self.every
        return np.asarray(np.maximum(shares @ excess / _DIVISOR, 0.0))

    def usual_noise(self, rows: Array) -> Array:
        """The noise that the second differences of some rows show, (6,) [N, Nm]; 0 for a few rows.

        Args:
            rows: of the wrench in the order of time, (k, 6) [N, Nm]
        """
        if len(rows) < _MIN_ROWS:
            return np.zeros(6)
        return _usual_size(np.diff(rows, 2, axis=0)) / _SECOND_DIFFERENCE

    def along(self, wrench: Array, keep: slice) -> Array:
        """The variance that jumps add, for the samples of a recording, (k, 6) [N^2, Nm^2].

        Args:
            wrench: of all rows, (N, 6) [N, Nm]
            keep: rows that become samples, at least the lag away from both ends
        """
        length = 2 * self.lag.lag + 1
        windows = np.lib.stride_tricks.sliding_window_view(wrench, length, axis=0)
        middle = windows[keep.start - self.lag.lag : keep.stop - self.lag.lag : keep.step]
        parts = [
            self.variance(middle[k : k + _WINDOWS_AT_ONCE].swapaxes(-1, -2))
            for k in range(0, len(middle), _WINDOWS_AT_ONCE)
        ]
        return np.concatenate(parts)


def _usual_size(second: Array) -> Array:
    """The standard deviation of second differences, (..., 6), by their median size.

    Args:
        second: in the order of time, (..., k, 6)
    """
    return np.asarray(_MEDIAN_TO_STD * np.median(np.abs(second), axis=-2))
