"""An arm in MuJoCo, an engine that is not our identification model. The only room that imports mujoco."""

from steelyard.simulation._arm import Push
from steelyard.simulation._run import Simulation, SimulationOptions, Truth, simulate
from steelyard.simulation._sensors import SensorModel

__all__ = ["Push", "SensorModel", "Simulation", "SimulationOptions", "Truth", "simulate"]
