"""The interface of a tracker of joint torques, ours or that of another package.

A package adds a tracker by the entry point `steelyard.trackers`: a function of the model of the
empty arm and the requested accuracy that returns a `JointTorqueTracker`.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from steelyard._arrays import Array
from steelyard.payload._tracking import Tracker, TrackerState
from steelyard.recording import Sample

S = TypeVar("S", bound=TrackerState)


class JointTorqueTracker(Tracker[S, Array], Protocol[S]):
    """Estimates a payload from samples of joint torques; adds what streams and pages need."""

    @property
    def takes_raw_rows(self) -> bool:
        """Whether it is fed rows as they come (`UnfilteredPath`), without our filters."""

    def torque(self, state: S, sample: Sample[Array]) -> Array:
        """Torque by the estimate and by the empty arm, (2, n) [Nm or N]; NaN if not known."""

    def residual(self, state: S, sample: Sample[Array]) -> tuple[Array, Array] | None:
        """Measured minus estimated torque and its standard deviation, each (n,) [Nm or N].

        None where the standard deviation is not known; pushes are not searched for then.
        """
