"""Drive gains, torque per ampere, with their origin and uncertainty.

Independent causes with a standard deviation of one move the logarithms of the gains: causes of one
drive (its winding, its current sensor), and causes that drives share (the batch of magnets, the
manufacturer's measurement, the controller's masses by which a scale was found).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from steelyard._arrays import Array, Mask, freeze
from steelyard._units import NORMAL_95, with_interval
from steelyard.errors import InvalidRobot
from steelyard.recording import Samples
from steelyard.robot import DriveModel
from steelyard.robot._drive import GAIN_TOLERANCE
from steelyard.verdict import Verdict

Origin = Literal["given", "targets", "known mass"]


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Torque of each drive per ampere, gear included, with its origin and uncertainty.

    Attributes:
        value: (n,) [Nm/A]; NaN where the data do not determine it
        std: standard deviation by the data, (n,) [Nm/A]; infinite for unknown gains
        origin: 'given', from the controller's 'targets', or from a 'known mass'
        verdict: whether they may be used
        notes: a sentence for each joint
        common: the part of `std` that drives share: change of the logarithms of the gains with one
            standard deviation of each cause, (n, causes); None if the data do not determine it
    """

    value: Array
    std: Array
    origin: Origin
    verdict: Verdict
    notes: Sequence[str]
    common: Array | None = None

    def __post_init__(self) -> None:
        freeze(self, "value", "std", "common")
        if self.value.ndim == 1:
            n = len(self.value)
        else:
            n = -1
        if self.std.shape != (n,) or len(self.notes) != n:
            raise InvalidRobot(
                "there must be one gain, one standard deviation and one note for each joint, got"
                f" {self.value.shape}, {self.std.shape} and {len(self.notes)}"
            )
        if self.origin not in get_args(Origin):
            known = ", ".join(map(repr, get_args(Origin)))
            raise InvalidRobot(f"origin must be one of {known}, got '{self.origin}'")
        if (
            not np.array_equal(np.isnan(self.value), np.isinf(self.std))
            or not (self.std >= 0).all()
        ):
            raise InvalidRobot(
                "standard deviations must not be negative, and must be infinite exactly for unknown"
                f" gains (NaN); got {self.std} for {self.value}"
            )
        object.__setattr__(self, "notes", tuple(self.notes))

    @classmethod
    def given(cls, values: ArrayLike, *, std: ArrayLike = 0.0) -> DriveGains:
        """User-supplied gains.

        Args:
            values: (n,) [Nm/A]; negative for a motor that counts its current the other way
            std: of each gain, independent of the others, () or (n,) [Nm/A]; by default that of
                published gains
        """
        value = np.array(values, dtype=float)
        spread = np.asarray(std, dtype=float)
        if value.ndim != 1 or not value.size or not np.isfinite(value).all() or not value.all():
            raise InvalidRobot(
                f"gains must be one finite number other than 0 for each joint, got {value}"
            )
        stated = bool(spread.any())
        if stated:
            words = "with the stated uncertainty"
        else:
            words = "with the uncertainty of published gains"
        return cls(
            value,
            np.full(len(value), spread) if spread.ndim == 0 else spread,
            "given",
            Verdict(f"gains as given, {words}"),
            ("as given",) * len(value),
            np.zeros((len(value), 0)) if stated else None,
        )

    def __len__(self) -> int:
        return len(self.value)

    @property
    def known(self) -> Mask:
        """Which joints have a known gain, (n,)."""
        return np.isfinite(self.std)

    def in_drive(self, drive: DriveModel) -> DriveModel:
        """The drives with these gains and all of their uncertainty.

        The differences between motors add to the standard deviations by the data, and so does a
        common error of all gains if the data do not determine it.

        Args:
            drive: of n joints, with other gains or none
        """
        value = np.abs(self.value)
        std = self.std
        common = self.common
        if common is not None:
            std = np.sqrt(np.maximum(std**2 - value**2 * (common**2).sum(axis=1), 0.0))
        if self.origin == "targets" or common is None:
            std = np.hypot(std, GAIN_TOLERANCE * value)
        known = replace(drive, gain=self.value, gain_std=None, gain_common=common).with_tolerances()
        return replace(known, gain_std=std)

    def applied_to(self, samples: Samples) -> Samples:
        """The samples with torques of these gains, if motor currents were converted to torques.

        Args:
            samples: with torques from currents, or measured torques
        """
        if samples.gain is None:
            tau = samples.tau
        else:
            tau = samples.tau * (self.value / samples.gain)
        return replace(samples, tau=tau, gain=self.value)

    def interval(self, level: float = 0.95) -> Array:
        """Lower and upper end of the interval of each gain, (n, 2) [Nm/A]; NaN where unknown.

        Args:
            level: probability that it contains the truth
        """
        half = ndtri(0.5 + level / 2) * np.where(self.known, self.std, np.nan)
        return np.column_stack([self.value - half, self.value + half])


def gain_text(drive: DriveModel) -> str:
    """The gains of drives with 95 % half-widths of all their errors, as '13.2 +- 0.4, ... Nm/A'.

    Args:
        drive: with gains
    """
    gain = np.asarray(drive.gain, dtype=float)
    half_widths = NORMAL_95 * np.abs(gain) * np.sqrt((drive.gain_errors**2).sum(axis=1))
    each = [with_interval(k, width) for k, width in zip(gain, half_widths, strict=True)]
    return ", ".join(each) + " Nm/A"
