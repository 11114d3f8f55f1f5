"""Jolts: moments at which the torques of several moving joints jump together.

A controller that stutters, a cable that is torn, a blow: the torques of most joints change within
some hundredths of a second, and no model of an arm explains them. Friction jumps too, but at a
reversal of its own joint, and noise jumps in one joint at a time. So, in steps of 20 ms (averages
of faster rows), with E the measured effort of joint j,

    d = E[k + 1] - 2 E[k] + E[k - 1],    z = |d| / s,    s the usual size of d in the recording

only where the joint moves in one direction, and a jolt is where the third largest z of the joints,
within 40 ms, exceeds a threshold. Over 25 recordings of five real arms the largest value without a
jolt was 3.6, that of contacts 7.2, those of jolts 9 to 18.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard._arrays import Array, Indices, Mask
from steelyard._units import NORMAL_95
from steelyard.recording import Recording

_STEP_S = 0.02  # [s]
_THRESHOLD = 7.0  # of the third largest z
_JOINTS = 3  # whose torques jump together; all joints of smaller arms
_MIN_SPEED = 0.02  # [rad/s]; a slower joint may stick
_CLEAR_STEPS = 3  # before and after, in which a joint moves in the same direction
_NEAR_STEPS = 2  # before and after, in which torques of other joints jump too
_MIN_STEPS = 100  # in which a joint moves, to know the usual size of d
_NORMAL_QUARTILE = 1.4826  # standard deviation of normal noise over its median size
_MERGE_S = 0.3  # [s]; closer jolts are one
_SETTLING_S = 0.1  # [s]; before and after a jolt, in which torques do not count


@dataclass(frozen=True)
class Jolt:
    """One jolt.

    Attributes:
        start_s: from which torques do not count, on the recording's clock, [s]
        end_s: until which they do not count, [s]
        peak_s: where it is largest, [s]
        joints: indices of the joints whose torques jump, the largest first
    """

    start_s: float
    end_s: float
    peak_s: float
    joints: tuple[int, ...]

    def covers(self, t: Array, margin_s: float = 0.0) -> Mask:
        """Which times lie within it, or within a margin of it, like t."""
        return np.asarray((t >= self.start_s - margin_s) & (t <= self.end_s + margin_s))


def find_jolts(recording: Recording) -> tuple[Jolt, ...]:
    """The jolts in the measured torques of a recording, or else in its motor currents."""
    effort = recording.current if recording.tau is None else recording.tau
    if effort is None or not recording.rate_hz or len(recording) < _MIN_STEPS:
        return ()
    step_s = max(_STEP_S, 1.0 / recording.rate_hz)
    t, signals = _averages(recording.t, np.hstack([recording.q, effort]), step_s)
    q, effort = np.hsplit(signals, 2)
    z = _jumps(q, effort, step_s)
    together = np.sort(z, axis=1)[:, -min(_JOINTS, recording.n)]
    return tuple(_jolt(t, z, group) for group in _groups(t, together > _THRESHOLD))


def _averages(t: Array, signals: Array, step_s: float) -> tuple[Array, Array]:
    """Signals on steps of time: averages of the finite rows of a step, the step before if none."""
    rows = np.isfinite(signals).all(axis=1) & np.isfinite(t)
    t = t[rows]
    signals = signals[rows]
    if not len(t):
        return t, signals
    place = np.floor((t - t[0]) / step_s + 1e-6).astype(int)
    steps, first = np.unique(place, return_index=True)
    counts = np.diff(np.append(first, len(t)))
    means = np.add.reduceat(signals, first) / counts[:, None]
    held = np.searchsorted(steps, np.arange(steps[-1] + 1), side="right") - 1
    return t[0] + step_s * (np.arange(steps[-1] + 1) + 0.5), means[held]


def _jumps(q: Array, effort: Array, step_s: float) -> Array:
    """The largest z of each joint near each step, (K, n); 0 where it may turn or stick."""
    z = np.zeros_like(effort)
    if len(q) < _MIN_STEPS:
        return z
    v = np.gradient(q, step_s, axis=0)
    clear = _throughout(v > _MIN_SPEED) | _throughout(v < -_MIN_SPEED)
    d = np.zeros_like(effort)
    d[1:-1] = np.abs(effort[2:] - 2 * effort[1:-1] + effort[:-2])
    for j in np.flatnonzero(clear.sum(axis=0) >= _MIN_STEPS).tolist():
        usual = d[clear[:, j], j]
        size = max(_NORMAL_QUARTILE * np.median(usual), np.quantile(usual, 0.95) / NORMAL_95)
        if size > 0:
            z[clear[:, j], j] = usual / size
    return _near(z)


def _throughout(mask: Mask) -> Mask:
    """Where a mask is true in the steps around, too."""
    out = mask.copy()
    for k in range(1, _CLEAR_STEPS + 1):
        out[k:] &= mask[:-k]
        out[:-k] &= mask[k:]
    return out


def _near(z: Array) -> Array:
    """The largest value within the steps around."""
    out = z.copy()
    for k in range(1, _NEAR_STEPS + 1):
        out[k:] = np.maximum(out[k:], z[:-k])
        out[:-k] = np.maximum(out[:-k], z[k:])
    return out


def _groups(t: Array, beyond: Mask) -> list[Indices]:
    """The steps of each jolt."""
    steps = np.flatnonzero(beyond)
    if not steps.size:
        return []
    return np.split(steps, np.flatnonzero(np.diff(t[steps]) > _MERGE_S) + 1)


def _jolt(t: Array, z: Array, steps: Indices) -> Jolt:
    largest = z[steps].max(axis=0)
    joints = [j for j in np.argsort(-largest).tolist() if largest[j] > _THRESHOLD]
    peak = steps[z[steps].sum(axis=1).argmax()]
    start_s = float(t[steps[0]] - _SETTLING_S)
    end_s = float(t[steps[-1]] + _SETTLING_S)
    return Jolt(start_s, end_s, float(t[peak]), tuple(joints))
