"""Trajectories as mathematics: Fourier series that can be evaluated anywhere, and the published ones."""

from steelyard.trajectory.approach import ApproachedTrajectory
from steelyard.trajectory.fourier import FourierTrajectory, Trajectory
from steelyard.trajectory.library import TRAJECTORIES, load_trajectory

__all__ = ["TRAJECTORIES", "ApproachedTrajectory", "FourierTrajectory", "Trajectory", "load_trajectory"]
