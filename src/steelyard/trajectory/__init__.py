"""Trajectories as mathematics: Fourier series that can be evaluated anywhere, and the bundled ones."""

from steelyard.trajectory._fourier import (
    TRAJECTORIES,
    ApproachedTrajectory,
    FourierTrajectory,
    Trajectory,
)

__all__ = [
    "TRAJECTORIES",
    "ApproachedTrajectory",
    "FourierTrajectory",
    "Trajectory",
]
