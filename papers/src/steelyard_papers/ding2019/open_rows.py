"""Printed numbers of ding2019 that depend on what it leaves open: Table IV.

With the prediction p of a joint's torque by the paper's method, what it misses m and white noise e
of unit variance, other arms and motions are described by three factors,

    measured = s p + f m + sigma e,       residual = measured - s p,

the size s of the torques (masses, motion), the size f of what the model misses (friction), and the
noise sigma. None of them is printed. The RMS of the residual shows f and sigma; its correlation
shows them beside s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from steelyard._arrays import Array
from steelyard_papers.ding2019.fits import Comparison, compare
from steelyard_papers.ding2019.printed import CORRELATION, RMS
from steelyard_papers.ding2019.world import (
    NOISE,
    designed_motions,
    gear_friction,
    paper_arm,
    run_world,
)
from steelyard_papers.explain import Assumption, Numbers, OpenRow

_SEEDS = 4
_FIRST_SEED = 40
_NOISE_SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
_MAX_NOISE_SHARE = 0.5
_FACTORS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
_PLAUSIBLE_FACTORS = (0.5, 2.0)


@cache
def compared(runs: int = 2) -> Comparison:
    """Both methods where friction is as in gears.

    Args:
        runs: of the excitation
    """
    arm = paper_arm()

    def nothing(share: float) -> None:
        """No report."""

    motions = designed_motions(arm, starts=1, effort=0.5, progress=nothing)
    world = run_world("as in gears", gear_friction(arm), motions, runs=runs, progress=nothing)
    return compare(world, arm, laws=("smooth",), progress=nothing)


@dataclass(frozen=True, eq=False)
class OpenJoint:
    """What is open about the torques of one joint in the verification run.

    Attributes:
        joint: from 0
        predicted: torque by the paper's method, (N,) [Nm]
        missed: true torque less that, (N,) [Nm]
    """

    joint: int
    predicted: Array
    missed: Array

    @classmethod
    def of(cls, joint: int, found: Comparison) -> OpenJoint:
        """That of one world.

        Args:
            joint: from 0
            found: both methods in it
        """
        predicted = found.paper.predicted[:, joint]
        return cls(joint, predicted, found.world.true_torque[:, joint] - predicted)

    def numbers(self, noise: float, missed: float = 1.0, size: float = 1.0) -> Numbers:
        """RMS of the residual [Nm] and correlation, for each seed.

        Args:
            noise: standard deviation, [Nm]
            missed: factor of what the model misses
            size: factor of the torques
        """
        predicted = size * self.predicted
        found: dict[str, list[float]] = {"RMS": [], "correlation": []}
        for seed in range(_FIRST_SEED, _FIRST_SEED + _SEEDS):
            draw = np.random.default_rng([seed, self.joint]).normal(size=len(predicted))
            residual = missed * self.missed + noise * draw
            found["RMS"].append(float(np.sqrt(np.mean(residual**2))))
            correlation = np.corrcoef(predicted + residual, predicted)[0, 1]
            found["correlation"].append(float(correlation))
        return found

    @property
    def torque(self) -> float:
        """RMS of the predicted torque about its mean, [Nm]."""
        return float(self.predicted.std())

    def with_printed_residual(self, size: float) -> Numbers:
        """The same with the printed RMS: noise besides what is missed, or less of that.

        Args:
            size: factor of the torques
        """
        missed = float(np.sqrt(np.mean(self.missed**2)))
        share = min(1.0, RMS[self.joint] / missed)
        noise = np.sqrt(max(RMS[self.joint] ** 2 - (share * missed) ** 2, 0.0))
        return self.numbers(float(noise), share, size)


def _noise(name: str, joint: OpenJoint) -> Assumption:
    return Assumption(
        name,
        "Nm",
        tuple(share * joint.torque for share in _NOISE_SHARES),
        (0.0, _MAX_NOISE_SHARE * joint.torque),
        "not printed; up to half of the joint's torque, as in small joints of real arms",
        joint.numbers,
    )


def rms_row(joint: int, found: Comparison | None = None) -> OpenRow:
    """The RMS of the residual of one joint: noise of the torques, or friction.

    Args:
        joint: from 0
        found: both methods in one world; simulated anew by default
    """
    there = OpenJoint.of(joint, found or compared())
    friction = Assumption(
        "friction that the model misses",
        "times that of the gears here",
        _FACTORS,
        _PLAUSIBLE_FACTORS,
        "not printed; another gear of the same size",
        lambda factor: there.numbers(float(NOISE[joint]), factor),
    )
    return OpenRow(
        f"RMS of joint {joint + 1} (Table IV)",
        "Nm",
        {"RMS": RMS[joint]},
        5e-5,
        (_noise("white noise of the torque", there), friction),
    )


def correlation_row(joint: int, found: Comparison | None = None) -> OpenRow:
    """The correlation of one joint: noise alone, or the size of the torques.

    Args:
        joint: from 0
        found: both methods in one world; simulated anew by default
    """
    there = OpenJoint.of(joint, found or compared())
    size = Assumption(
        "size of the torques, residual as printed",
        "times that here",
        _FACTORS,
        _PLAUSIBLE_FACTORS,
        "not printed; other masses and another motion of the same arm",
        there.with_printed_residual,
    )
    return OpenRow(
        f"correlation of joint {joint + 1} (Table IV)",
        "",
        {"correlation": CORRELATION[joint], "RMS": RMS[joint]},
        5e-5,
        (_noise("white noise of the torque, torques as large as here", there), size),
    )


def _of_joints(kind: str, row: Callable[[int], OpenRow]) -> dict[str, Callable[[], OpenRow]]:
    """The rows of all joints by name."""

    def prepared(joint: int) -> Callable[[], OpenRow]:
        return lambda: row(joint)

    return {f"{kind}-{j + 1}": prepared(j) for j in range(6)}


ROWS: Mapping[str, Callable[[], OpenRow]] = {
    **_of_joints("rms", rms_row),
    **_of_joints("correlation", correlation_row),
}
"""Rows that can be explained, by the name that `--explain` takes."""
