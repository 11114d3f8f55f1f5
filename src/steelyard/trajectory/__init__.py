"""Trajectories as mathematics: Fourier series that can be evaluated anywhere, and the published ones."""

from steelyard.trajectory.approach import ApproachedTrajectory
from steelyard.trajectory.fourier import FourierTrajectory
from steelyard.trajectory.library import load_trajectory, save_trajectory, trajectory_names

__all__ = [
    "ApproachedTrajectory",
    "FourierTrajectory",
    "load_trajectory",
    "save_trajectory",
    "trajectory_names",
]
