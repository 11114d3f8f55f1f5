"""Trajectories: Fourier series that can be evaluated at any time, and bundled motions."""

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
