"""An arm simulated in MuJoCo, independently of our own equations; the only importer of mujoco."""

from steelyard.simulation._arm import Push
from steelyard.simulation._run import Simulation, SimulationOptions, Truth, simulate
from steelyard.simulation._sensors import SensorModel

__all__ = ["Push", "SensorModel", "Simulation", "SimulationOptions", "Truth", "simulate"]
