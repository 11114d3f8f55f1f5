"""Trajectories as mathematics: Fourier series that can be evaluated anywhere, and the published ones."""

from steelyard.trajectory.approach import ApproachedTrajectory
from steelyard.trajectory.fourier import TRAJECTORIES, FourierTrajectory, Trajectory, load_trajectory

__all__ = ["TRAJECTORIES", "ApproachedTrajectory", "FourierTrajectory", "Trajectory", "load_trajectory"]
