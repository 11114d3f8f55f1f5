"""Doubts about a wrist sensor and its motion that the interval of the payload does not contain.

**Unexplained wrench.** Swapped axes, a wrong sign or torques in Nmm leave residuals that no load
explains. They are compared with the noise of sensor and motion, and with the RMS variation of the
measured wrench, for force and torque separately. Both ratios must be large: cables and hysteresis
of a real sensor exceed the noise by a factor of 14 while they are 8 % of the wrench.

**Weight against inertia.** The wrench is Y_motion phi + (1 + s) Y_gravity phi, and s is zero. A
clock that is wrong by a factor c scales accelerations by 1 / c^2, which appears as 1 + s = 1 / c^2.

**Truncated readings.** Readings that are cut off towards zero to multiples of a step d differ from
the truth by -d / 2 times their sign on average; rounded readings do not. The factor k of the column
-d / 2 sign(reading) tells them apart: a load that is near the truth takes up a part of it, so that
k was 0.45 to 0.96 in 24 simulated runs of cut-off forces (12 arms), and -0.17 to 0.09 in 48 of
rounded ones.

**Scales of the forces.** The force along axis j is (1 + a_j) times that of the load. A scale that
all three have is the mass itself, so only differences are seen. The data do not tell which axis is
right: an interval spans significant differences, and large ones are doubted. Torques are not
compared: those of a real sensor (an OptoForce) differ by 20 % while two runs agree in the centre to
2 mm, and the torque along the line to the centre says nothing.

**A load that changes.** The wrench in each sixth of the time is (1 + b) times that of the load; in
the first b is 0. Trackers see changes as they happen.

s, k, a and b are further unknowns of the regression, with a standard deviation that allows for
correlation in time.

The limits were chosen with 456 simulated runs (four arms, three seeds, white and slow noise, 18
corruptions) and the recordings of two real sensors. On other seeds, none of 32 sound runs was
blocked, and 240 of 256 with swapped or reversed axes, torques in Nmm or a clock off by 10 % were;
docs/explanation/wrist.md has the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.verdict import Doubt, DoubtKind

_MAX_NOISE_RATIO = 3.0  # RMS of residuals over that expected from noise
_MAX_UNEXPLAINED_SHARE = 0.2  # RMS of residuals over the RMS variation of the wrench
_MAX_WEIGHT_ERROR = 0.05  # of s
_MAX_LOAD_CHANGE = 0.05  # of b
_MIN_TRUNCATION = 0.25  # of k
CAUSE_STD = 10.0
"""Standard deviation of the prior of s, k, a and b: one that the data do not show stays finite."""
_MIN_SIGMA = 4.5  # standard deviations of s and k
_MIN_SPANNED_SIGMA = 3.0  # standard deviations of a difference of scales, for the interval
_EXCLUDED_SIGMA = 3.0  # standard deviations of k from 1, for readings that are not cut off
_MAX_DISTINCT_SHARE = 0.5  # of the number of readings, for readings that are multiples of a step
_GRID_TOLERANCE = 1e-3  # of a step
_MAX_SCALE_DIFFERENCE = 0.05  # of two axes
_WRENCH_PARTS = (("force", "N", slice(0, 3)), ("torque", "Nm", slice(3, 6)))  # name, unit, axes


class CauseColumn(NamedTuple):
    """The factor of a further column of the regression, and its standard deviation."""

    value: float
    std: float

    @property
    def sigma(self) -> float:
        """The factor in standard deviations."""
        return self.value / self.std

    def exceeds(self, limit: float) -> bool:
        """Whether the factor is significant, and larger than a limit."""
        return abs(self.value) > max(limit, _MIN_SIGMA * self.std)

    def excludes(self, value: float) -> bool:
        """Whether the factor is not this value, as far as the data tell."""
        return abs(self.value - value) > _EXCLUDED_SIGMA * self.std


class ForceScales(NamedTuple):
    """How many times larger than the load's the measured force along each axis is, less one.

    Attributes:
        value: (3,); only differences mean anything
        covariance: (3, 3)
    """

    value: Array
    covariance: Array

    @property
    def most(self) -> tuple[int, int]:
        """The axes whose scales differ most significantly, the larger scale first."""
        return max(permutations(range(3), 2), key=lambda pair: self.difference(*pair).sigma)

    def difference(self, i: int, j: int) -> CauseColumn:
        """By how much the scale of axis i exceeds that of axis j."""
        C = self.covariance
        variance = C[i, i] + C[j, j] - 2 * C[i, j]
        return CauseColumn(
            float(self.value[i] - self.value[j]), float(np.sqrt(max(variance, 1e-300)))
        )

    @property
    def mass_std(self) -> float:
        """Standard deviation of the mass, over it, by which its interval spans all scales.

        Zero where they are likely the same.
        """
        found = self.difference(*self.most)
        if found.sigma < _MIN_SPANNED_SIGMA:
            return 0.0
        return found.value / NORMAL_95


def unexplained_wrench_doubts(residual: Array, expected: Array, measured: Array) -> Iterable[Doubt]:
    """Doubts if residuals are far beyond noise, and a large part of the wrench.

    Args:
        residual: mean square of the residuals, (6,) [N^2, Nm^2]
        expected: variance that noise of sensor and motion explains, (6,) [N^2, Nm^2]
        measured: variance of the measured wrench, (6,) [N^2, Nm^2]
    """
    for name, unit, axes in _WRENCH_PARTS:
        left = float(np.sqrt(residual[axes].sum()))
        noise = float(np.sqrt(expected[axes].sum()))
        wrench = float(np.sqrt(measured[axes].sum()))
        if left > _MAX_NOISE_RATIO * noise and left > _MAX_UNEXPLAINED_SHARE * wrench:
            words = (
                f"no load explains the {name}: {left:.2g} of {wrench:.2g} {unit} remain, noise is"
                f" {noise:.2g} {unit}; check axes, signs and units of the sensor"
            )
            yield Doubt(DoubtKind.UNEXPLAINED_TORQUE, words)


def weight_doubts(weight: CauseColumn) -> Iterable[Doubt]:
    """A doubt if weight and inertia of the load disagree.

    Args:
        weight: relative difference s of the weight
    """
    if weight.exceeds(_MAX_WEIGHT_ERROR):
        words = (
            f"weight and inertia of the load disagree by {100 * weight.value:+.0f} %: check the"
            " clock of the recording and the joint positions"
        )
        yield Doubt(DoubtKind.GRAVITY, words)


def force_scale_doubts(scales: ForceScales) -> Iterable[Doubt]:
    """A doubt if the sensor measures forces along some axes larger than along others.

    Args:
        scales: of the three forces
    """
    i, j = scales.most
    found = scales.difference(i, j)
    if found.exceeds(_MAX_SCALE_DIFFERENCE):
        words = (
            f"the sensor shows this load {100 * found.value:.0f} % heavier along f{'xyz'[i]} than"
            f" along f{'xyz'[j]}: check its calibration and the units of its columns"
        )
        yield Doubt(DoubtKind.TORQUE_SCALE, words)


def load_change_doubts(changes: Sequence[CauseColumn]) -> Iterable[Doubt]:
    """A doubt if the load changes between parts of the time.

    Args:
        changes: relative change b of the load in each part after the first
    """
    part, most = max(enumerate(changes, 2), key=lambda item: abs(item[1].sigma))
    if most.exceeds(_MAX_LOAD_CHANGE):
        words = (
            f"the load changes by {100 * most.value:+.0f} % in part {part} of {len(changes) + 1} of"
            " the run: check whether it was touched, or weigh each part"
        )
        yield Doubt(DoubtKind.LOAD_CHANGED, words)


def truncation_doubts(truncation: CauseColumn, step: float, unit: str) -> Iterable[Doubt]:
    """A doubt if readings are truncated and not rounded.

    Args:
        truncation: the factor k
        step: between two readings, [unit]
        unit: of the readings
    """
    if truncation.value > 0 and truncation.exceeds(_MIN_TRUNCATION):
        words = (
            f"the readings are cut off to multiples of {step:.3g} {unit}, which biases the mass:"
            " record more digits"
        )
        yield Doubt(DoubtKind.RECORDING, words)


def coarse_reading_doubt(step: Array, mass_std: float, gravity: float) -> Doubt | None:
    """A doubt if readings are so coarse that cutting them off would move the mass too far.

    Readings that are cut off, not rounded, are half a step too small on average. Short motions do
    not tell one from the other, and a tracker keeps no readings.

    Args:
        step: between two readings, (6,) [N, Nm]; 0 if there is none
        mass_std: standard deviation of the mass, [kg]
        gravity: size of gravity, [m/s^2]
    """
    largest = float(step[:3].max())
    moved = 0.5 * largest / max(gravity, 1e-300)
    if not moved > NORMAL_95 * mass_std:
        return None
    words = (
        f"the readings are multiples of {largest:.3g} N: if they are cut off, the mass is wrong by"
        f" up to {moved:.2g} kg; record more digits, or weigh the whole recording"
    )
    return Doubt(DoubtKind.RECORDING, words)


def reading_steps(wrench: Array) -> Array:
    """The step of which all readings of an axis are multiples, (6,) [N, Nm]; 0 if there is none.

    Args:
        wrench: as measured, (N, 6) [N, Nm]
    """
    steps = np.zeros(6)
    for axis in range(6):
        values = np.unique(wrench[:, axis])
        if not 2 < len(values) < _MAX_DISTINCT_SHARE * len(wrench):
            continue
        gaps = np.diff(values)
        step = float(gaps.min())
        multiples = gaps / step
        if (np.abs(multiples - np.round(multiples)) < _GRID_TOLERANCE * multiples).all():
            steps[axis] = step
    return steps


def biased_steps(steps: Array, wrench: Array) -> Array:
    """The steps of axes whose readings change their sign, (6,) [N, Nm]; 0 for the others.

    The bias of readings of one sign is constant, and belongs to the zero drift.

    Args:
        steps: of all axes, (6,) [N, Nm]
        wrench: readings, (N, 6) [N, Nm]
    """
    changes = (wrench.min(axis=0) < 0) & (wrench.max(axis=0) > 0)
    return np.where(changes, steps, 0.0)
