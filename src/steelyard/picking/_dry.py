"""A dry cycle: what the model does not explain on the taught path, without a part.

If a path is repeated, the misfit of the model is repeated, too. A recording of the path without
parts shows it: r = tau - Y x, where x is fitted to the recording itself, so that r does not contain
the friction of the day. A shift on the same path has the same misfit. It is subtracted from the
torques of the shift wherever a state (q, v) of the dry cycle is near.

The noise of r would be added to that of the shift. Therefore r is smoothed over 0.1 s and
multiplied, for each joint, by the share of its variance that is misfit. After 0.2 s the noise is no
longer correlated, but most of the misfit still is:

    share = sum r(t) r(t + 0.2 s) / sum r(t)^2,     between 0 and 1.

Without a model, the arm is identified from the dry cycle itself. It is then known on this path
only, so stretches that leave the path are not weighed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.spatial import cKDTree

from steelyard._arrays import Array, Indices, Mask
from steelyard.picking._arm_state import ArmState, ShiftArm
from steelyard.picking._segments import Stretch
from steelyard.picking._weigher import StretchWeigher, WeigherState

_SMOOTHED_S = 0.1  # [s]
_FORGOTTEN_S = 0.2  # [s]; noise is independent after this time, smoothing included
_SPEED_WEIGHT_S = 0.1  # of a difference of speed, beside that of a position [s]
_MAX_DISTANCE = 0.05  # of a state of the dry cycle [rad or m], RMS over the joints
_MIN_MATCHED_SHARE = 0.8  # of the rows of a stretch


@dataclass(frozen=True, eq=False)
class DryPath:
    """The states of a dry cycle.

    Attributes:
        tree: of the states (q, v)
    """

    tree: cKDTree

    @classmethod
    def of(cls, stretches: Sequence[Stretch]) -> DryPath:
        """The path of some stretches."""
        return cls(cKDTree(np.concatenate([_states(stretch) for stretch in stretches])))

    def nearest(self, stretch: Stretch) -> tuple[Mask, Indices]:
        """Which rows of a stretch lie on the path, (N,), and the state nearest to each, (N,)."""
        distance, nearest = self.tree.query(_states(stretch))
        return np.asarray(distance / np.sqrt(stretch.samples.n) < _MAX_DISTANCE), nearest

    def covers(self, stretch: Stretch) -> bool:
        """Whether a stretch lies on the path."""
        near, _ = self.nearest(stretch)
        return _is_covered(near, stretch)


def _is_covered(near: Mask, stretch: Stretch) -> bool:
    matched = int(near[stretch.counting].sum())
    return matched > 0 and matched >= _MIN_MATCHED_SHARE * stretch.counting.sum()


@dataclass(frozen=True, eq=False)
class DryCycle:
    """The misfit of the model along a path.

    Attributes:
        path: states of the dry cycle
        misfit: torque that the model does not explain there, (N, n) [Nm or N]
        arm: state of the arm after the dry cycle
    """

    path: DryPath
    misfit: Array
    arm: WeigherState

    @classmethod
    def of(cls, weigher: StretchWeigher, stretches: Sequence[Stretch]) -> DryCycle:
        """The misfit on the stretches of a dry cycle.

        Args:
            weigher: of the model
            stretches: without a part, in the order of time
        """
        state = weigher.init()
        for stretch in stretches:
            state = weigher.with_empty(state, replace(stretch, closed=False))
        misfits = [_misfit(weigher.arm, state.arm, stretch) for stretch in stretches]
        rates_hz = [stretch.samples.rate_hz for stretch in stretches]
        misfit = _repeated_share(misfits, rates_hz) * np.concatenate(misfits)
        return cls(DryPath.of(stretches), misfit, state)

    def subtracted(self, stretch: Stretch) -> Stretch:
        """A stretch without the misfit of its path; unchanged where it lies on another path."""
        near, nearest = self.path.nearest(stretch)
        if not _is_covered(near, stretch):
            return stretch
        tau = stretch.samples.tau - np.where(near[:, None], self.misfit[nearest], 0.0)
        return replace(
            stretch,
            samples=replace(stretch.samples, tau=tau),
            counting=stretch.counting & near,
        )


def _states(stretch: Stretch) -> Array:
    samples = stretch.samples
    return np.hstack([samples.q, _SPEED_WEIGHT_S * samples.v])


def _misfit(arm: ShiftArm, state: ArmState, stretch: Stretch) -> Array:
    """Torque that a state of the arm does not explain, smoothed, (N, n) [Nm or N]."""
    samples = stretch.samples
    rows = arm.model.rows(samples, state.value)
    residual = rows.tau - rows.Y @ state.value
    usable = samples.away_from_reversals().mask
    width = max(round(_SMOOTHED_S * samples.rate_hz), 1)
    smooth = uniform_filter1d(np.where(usable, residual, 0.0), width, axis=0)
    share = uniform_filter1d(usable.astype(float), width, axis=0)
    return np.where(share > 0.5, smooth / np.maximum(share, 1e-9), 0.0)


def _repeated_share(misfits: Sequence[Array], rates_hz: Sequence[float]) -> Array:
    """The share of the variance of each joint that is not noise, (n,).

    Args:
        misfits: of stretches, (N, n) each
        rates_hz: of their samples, which may come from several recordings [Hz]
    """
    n = misfits[0].shape[1]
    later = np.zeros(n)
    now = np.full(n, 1e-300)
    for misfit, rate_hz in zip(misfits, rates_hz, strict=True):
        lag = round(_FORGOTTEN_S * rate_hz)
        if len(misfit) > lag:
            later += np.mean(misfit[lag:] * misfit[:-lag], axis=0) * len(misfit)
            now += np.sum(misfit**2, axis=0)
    return np.asarray(np.clip(later / now, 0.0, 1.0))
