"""Converts the rows of a stream to samples for an online estimator: a causal `prepare`.

    rows (jitter, gaps, NaN) -> uniform grid -> filtered, differentiated -> Sample, with a delay of
    `delay_s`

Rows are interpolated (`_grid`). After a gap in the stream the path restarts. Unusable rows do not
enter the filters (`_row_path`).

The filters return the result of `prepare` with a fixed delay. A Butterworth filter that is run once
forwards and once backwards is a symmetric sum over neighbours,

    y_k = sum_i g_i x_{k+i},   g_i = g_-i,   sum_i g_i = 1,   sum_i g_i i^2 = 0,

whose weights g_i vanish after about two periods of the cut-off. They are truncated there and
corrected, so that both sums hold again and cubics pass unchanged. The result for sample k is then
available when sample k + lag has arrived. The lag is the same for all frequencies (unlike that of a
filter that is run forwards only), so torques with the same delay belong to the same instant as the
motion, and a model that was fitted to samples of `prepare` is valid for these. Derivatives are
central differences of the y_k: g is convolved with (-1, 0, 1) / 2 and (1, -2, 1).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.recording import Preparation, Recording, Sample, Samples, default_gap_s
from steelyard.robot import DriveModel
from steelyard.signals._filters import low_pass
from steelyard.signals._grid import ROWS_TO_INTERPOLATE, UniformGrid
from steelyard.signals._prepare import joint_torque, with_chosen_cutoff
from steelyard.signals._row_path import RowPath, fastest_steps
from steelyard.signals._unfiltered import UnfilteredPath

_KERNEL_PERIODS = 2.0  # of the cut-off on either side; less than 1 % of the weights lies beyond
_DIFFERENCES = {
    3: (np.array([-0.5, 0.0, 0.5]), np.array([1.0, -2.0, 1.0])),
    5: (np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12, np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12),
}


@dataclass(frozen=True)
class FixedLag:
    """The zero-phase low-pass filter of `prepare` with central differences and a fixed delay.

    It filters signals of joints or of a wrist sensor. States are values that `step` never changes.

    Attributes:
        cutoff_hz: as in `Preparation`, [Hz]; None for no filter
        rate_hz: samples per second, [Hz]
        order: of the filter
        shortest_lag: smallest delay, to synchronise with another filter [samples]
        points: of the differences, 3 as in `prepare`, or 5, which attenuate fast motions less
    """

    cutoff_hz: float | None
    rate_hz: float
    order: int = 4
    shortest_lag: int = 1
    points: Literal[3, 5] = 3
    _kernels: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.rate_hz > 0:
            raise InvalidSamples(f"rate_hz must be positive, got {self.rate_hz}")
        if self.cutoff_hz is None:
            weights = np.ones(1)
        else:
            weights = self._weights(self.cutoff_hz)
        first, second = _DIFFERENCES[self.points]
        kernels = [
            np.pad(weights, self.points // 2),
            np.convolve(weights, first) * self.rate_hz,
            np.convolve(weights, second) * self.rate_hz**2,
        ]
        more = max(self.shortest_lag - len(kernels[0]) // 2, 0)
        object.__setattr__(self, "_kernels", np.pad(np.array(kernels), ((0, 0), (more, more))))

    def _weights(self, cutoff_hz: float) -> Array:
        reach = int(np.ceil(_KERNEL_PERIODS * self.rate_hz / cutoff_hz))
        pulse = np.zeros((8 * reach + 1, 1))
        pulse[4 * reach] = 1.0
        weights = low_pass(pulse, cutoff_hz, self.rate_hz, order=self.order)[
            3 * reach : 5 * reach + 1, 0
        ]
        moments = np.array([np.ones(2 * reach + 1), (np.arange(-reach, reach + 1) / reach) ** 2])
        missing = np.array([1.0, 0.0]) - moments @ weights
        return np.asarray(weights + moments.T @ np.linalg.solve(moments @ moments.T, missing))

    @property
    def length(self) -> int:
        """Number of samples that a result depends on."""
        return int(self._kernels.shape[1])

    @property
    def lag(self) -> int:
        """The delay of the result, [samples]."""
        return self.length // 2

    @property
    def kernels(self) -> Array:
        """Weights of a full state for the value and two derivatives, (3, length)."""
        return self._kernels

    @property
    def weights(self) -> Array:
        """Weights of a full state for the value `lag` samples ago, (length,)."""
        return np.asarray(self._kernels[0])

    @property
    def delay_s(self) -> float:
        """The delay of the result, [s]."""
        return self.lag / self.rate_hz

    def weights_of_later(self, later: Array) -> Array:
        """Weights of a full state for values after the instant `lag` samples ago, (n, length).

        Args:
            later: time of each of n signals after that instant, (n,) [samples]; values between
                samples are interpolated linearly
        """
        at = np.arange(self._kernels.shape[1])
        weights = self._kernels[0]
        return np.array([np.interp(at - each, at, weights, left=0.0, right=0.0) for each in later])

    def init(self, n: int) -> Array:
        """The state before the first sample of n signals, (0, n)."""
        return np.zeros((0, n))

    def step(self, state: Array, x: ArrayLike) -> tuple[Array, Array | None]:
        """The next state, and value and two derivatives `lag` samples ago, (3, n), or None.

        There is no value before the first `2 lag + 1` samples.

        Args:
            state: of `init` or `step`
            x: the next value, (n,)
        """
        new = np.concatenate([state[1 - self.length :], np.asarray(x, dtype=float)[None]])
        if len(new) < self.length:
            return new, None
        return new, self.smoothed(new)

    def smoothed(self, window: Array) -> Array:
        """Value and two derivatives in the middle of a full window, (3, n).

        Args:
            window: the last samples in the order of time, (length, n)
        """
        return np.asarray(self._kernels @ window)


class PathState(NamedTuple):
    """The state of a `JointPath`.

    Attributes:
        rows: the last rows [t, motion, tau], at most four, (r, 1 + (c + 1) n)
        next_s: the next instant of the grid, [s]
        window: the last instants of the grid [motion, tau], which the filters see, (k, (c + 1) n)
        last_s: time of the last sample, [s]
        refused: the last consecutive unusable rows that agree with each other, (r, 1 + (c + 1) n)
    """

    rows: Array
    next_s: float
    window: Array
    last_s: float
    refused: Array


@dataclass(frozen=True)
class JointPath(RowPath):
    """Converts rows to samples, one at a time. States are values that `step` never changes.

    Attributes:
        n: number of joints
        rate_hz: of the samples, [Hz], at most that of the rows
        preparation: of the samples that the model was fitted to, with a numeric cut-off
        channels: 1 for positions, 2 with commanded velocities, 3 with accelerations too
        v_max: largest speed of each joint (`robot.limits`), (n,) [rad/s or m/s]; much faster steps
            are unusable
    """

    n: int
    rate_hz: float
    preparation: Preparation = field(default_factory=Preparation)
    channels: int = 1
    v_max: Array | None = field(default=None, compare=False)
    _motion: FixedLag = field(init=False, repr=False, compare=False)
    _tau_weights: Array = field(init=False, repr=False, compare=False)
    _grid: UniformGrid = field(init=False, repr=False, compare=False)
    _longest_gap_s: float = field(init=False, repr=False, compare=False)
    _fastest: Array = field(init=False, repr=False, compare=False)
    _rows_needed = ROWS_TO_INTERPOLATE

    def __post_init__(self) -> None:
        how = self.preparation
        if how.fourier_period_s is not None or how.mean_length > 1 or how.decimate > 1:
            raise InvalidSamples(
                "a stream can be filtered (cutoff_hz, torque_cutoff_hz), but not fitted with a"
                " Fourier series, averaged or decimated"
            )
        if isinstance(how.cutoff_hz, str):
            raise InvalidSamples(
                "a stream cannot derive its cut-off: give a number, or the preparation of the model"
            )
        cutoffs = (how.cutoff_hz, how.torque_cutoff_hz)
        late = np.resize(how.lag_s or (0.0,), self.n) * self.rate_hz
        lag = max(FixedLag(cutoff, self.rate_hz, how.order).lag for cutoff in cutoffs)
        lag += int(np.ceil(np.abs(late).max(initial=0.0)))
        motion, tau = (
            FixedLag(cutoff, self.rate_hz, how.order, shortest_lag=lag) for cutoff in cutoffs
        )
        if how.longest_gap_s is None:
            longest = default_gap_s(1 / self.rate_hz)
        else:
            longest = how.longest_gap_s
        object.__setattr__(self, "_motion", motion)
        weights = tau.weights
        if late.any():
            weights = tau.weights_of_later(late)
        object.__setattr__(self, "_tau_weights", weights)
        grid = UniformGrid(self.rate_hz, self.channels * self.n)
        object.__setattr__(self, "_grid", grid)
        object.__setattr__(self, "_longest_gap_s", longest)
        object.__setattr__(self, "_fastest", fastest_steps(self.n, self.v_max))

    @classmethod
    def of(
        cls, recording: Recording, preparation: Preparation, v_max: Array | None = None
    ) -> JointPath:
        """The path for the rows of a recording.

        Args:
            recording: with the rate of the rows
            preparation: of the samples that the model was fitted to
            v_max: largest speed of each joint (`robot.limits`), (n,) [rad/s or m/s]
        """
        rate_hz = preparation.rate_hz or recording.rate_hz
        if not rate_hz > 0:
            raise InvalidRecording(
                "the time of the recording does not advance: there is nothing to replay"
            )
        preparation = with_chosen_cutoff(preparation, [recording])
        return cls(recording.n, rate_hz, preparation, len(preparation.motion_of(recording)), v_max)

    @property
    def delay_s(self) -> float:
        """The delay of samples, [s]: that of the filters and of the grid."""
        return self._motion.delay_s + self._grid.delay_s

    def _with_row(self, state: PathState) -> tuple[PathState, tuple[Sample[Array], ...]]:
        """The state, and the samples that the last row completes."""
        next_s, instants = self._grid.interpolated(state.rows, state.next_s)
        cut = self.channels * self.n
        length = self._motion.length
        window = state.window
        last_s = state.last_s
        ready = []
        for t, instant in instants:
            window = np.concatenate([window[1 - length :], instant[None]])
            if len(window) == length:
                last_s = t - self._motion.delay_s
                moved = self._motion.smoothed(window[:, :cut])
                tau = self._filtered_torque(window[:, cut:])
                ready.append(Sample(last_s, self._kinematics(moved), tau))
        return PathState(state.rows, next_s, window, last_s, state.refused), tuple(ready)

    def steps(self, state: PathState, rows: Array) -> tuple[PathState, list[Sample[Array]]]:
        """The state and the completed samples after several rows: those of `step`, in less time.

        Args:
            state: of `init`, `step` or `steps`
            rows: [t, motion, tau] in their order, (N, 1 + (c + 1) n)
        """
        before = state.rows[-ROWS_TO_INTERPOLATE + 1 :]
        all_rows = np.concatenate([before, rows])
        known = len(before) == ROWS_TO_INTERPOLATE - 1 and np.isfinite(state.next_s)
        if not known or len(state.refused) or not self._are_plain(all_rows):
            return super().steps(state, rows)
        next_s, times, values = self._grid.many(all_rows, state.next_s)
        length = self._motion.length
        window = np.concatenate([state.window, values])
        last_s = state.last_s
        ready: list[Sample[Array]] = []
        complete = min(len(times), len(window) - length + 1)
        if complete > 0:
            ready = self._smoothed_samples(window, times[-complete:])
            last_s = ready[-1].t
        kept = all_rows[-ROWS_TO_INTERPOLATE:]
        return PathState(kept, next_s, window[1 - length :], last_s, state.refused), ready

    def _smoothed_samples(self, window: Array, times: Array) -> list[Sample[Array]]:
        """The samples that the last instants of a window complete.

        Args:
            window: instants in the order of time, (k, (c + 1) n)
            times: of the last of them, each of which completes a sample, (K,) [s]
        """
        length = self._motion.length
        cut = self.channels * self.n
        views = np.lib.stride_tricks.sliding_window_view(window, length, axis=0)[-len(times) :]
        moved = views[:, :cut] @ self._motion.kernels.T
        torques = views[:, cut:]
        if self._tau_weights.ndim == 1:
            tau = torques @ self._tau_weights
        else:
            tau = np.einsum("jk,ijk->ij", self._tau_weights, torques)
        at = times - self._motion.delay_s
        return [
            Sample(t, self._kinematics(motion.T), torque)
            for t, motion, torque in zip(at.tolist(), moved, tau, strict=True)
        ]

    def _filtered_torque(self, window: Array) -> Array:
        """Torques at the instant of the motion, (n,); each joint has its own lag, or all none."""
        if self._tau_weights.ndim == 1:
            return np.asarray(self._tau_weights @ window)
        return np.asarray(np.einsum("jk,kj->j", self._tau_weights, window))

    def _kinematics(self, moved: Array) -> Array:
        """Position, velocity and acceleration from the filtered channels and their derivatives."""
        if self.channels == 1:
            return moved
        n = self.n
        value, first, _ = moved
        if self.channels == 2:
            return np.array([value[:n], value[n:], first[n:]])
        return np.reshape(value, (3, n))

    def _empty(self, last_s: float) -> PathState:
        rows = np.zeros((0, 1 + (self.channels + 1) * self.n))
        return PathState(rows, -np.inf, rows[:, 1:], last_s, rows)


def replay(
    source: Recording | Samples,
    preparation: Preparation | None = None,
    *,
    drive: DriveModel | None = None,
    v_max: Array | None = None,
    unfiltered: bool = False,
    sleep: Callable[[float], None] | None = None,
) -> Iterator[Sample[Array]]:
    """The samples of a recording one at a time, as an online estimator receives them.

    Prepared samples are returned unchanged. Rows of a recording pass through a `JointPath`, or an
    `UnfilteredPath`; unusable rows become samples that an estimator counts and skips. Times are
    those of the recording.

    Args:
        source: a recording, or prepared samples
        preparation: of the samples that the model was fitted to; the default settings if None
        drive: drives whose gains convert motor currents to torques; needed if only currents were
            recorded
        v_max: largest speed of each joint (`robot.limits`), (n,) [rad/s or m/s]; much faster steps
            are unusable
        unfiltered: use the rows as they come, without any filter
        sleep: function that waits for a number of seconds (`time.sleep`), to return samples at the
            pace of their own clock; None for no delay
    """
    if isinstance(source, Samples):
        rows = zip(source.t, source.q, source.v, source.a, source.tau, strict=True)
        samples: Iterator[Sample[Array]] = (Sample.of_joints(*row) for row in rows)
    else:
        how = preparation or Preparation()
        path = path_of(source, how, v_max, unfiltered=unfiltered)
        motion = np.stack(how.motion_of(source), axis=1)
        samples = _through(path, source.t, motion, joint_torque(source, drive))
    if sleep is None:
        return samples
    return _paced(samples, sleep)


def path_of(
    recording: Recording, preparation: Preparation, v_max: Array | None, *, unfiltered: bool
) -> RowPath:
    """The path from the rows of a recording to samples.

    Args:
        recording: with the rate of the rows
        preparation: of the samples that the model was fitted to
        v_max: largest speed of each joint (`robot.limits`), (n,) [rad/s or m/s]
        unfiltered: use the rows as they come; of the preparation only the kind of motion counts
    """
    if unfiltered:
        return UnfilteredPath.of(recording, preparation, v_max)
    return JointPath.of(recording, preparation, v_max)


def _through(path: RowPath, times: Array, motion: Array, tau: Array) -> Iterator[Sample[Array]]:
    state = path.init()
    for t, x, torque in zip(times, motion, tau, strict=True):
        state, ready = path.step(state, float(t), x, torque)
        yield from ready


def _paced(
    samples: Iterator[Sample[Array]], sleep: Callable[[float], None]
) -> Iterator[Sample[Array]]:
    ahead_s = None
    for sample in samples:
        now = time.monotonic()
        if np.isfinite(sample.t):
            if ahead_s is None:
                ahead_s = sample.t - now
            if (wait := sample.t - now - ahead_s) > 0:
                sleep(wait)
        yield sample
