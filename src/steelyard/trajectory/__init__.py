"""Trajectories as mathematics: Fourier series that can be evaluated anywhere, and the published ones."""

from steelyard.trajectory.fourier import FourierTrajectory
from steelyard.trajectory.library import load_trajectory, trajectory_names

__all__ = ["FourierTrajectory", "load_trajectory", "trajectory_names"]
