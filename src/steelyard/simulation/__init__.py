"""An arm in MuJoCo, an engine that is not our identification model. The only room that imports mujoco."""

from steelyard.simulation.arm import Push
from steelyard.simulation.run import Simulation, SimulationOptions, Truth, simulate
from steelyard.simulation.sensors import SensorModel

__all__ = ["Push", "SensorModel", "Simulation", "SimulationOptions", "Truth", "simulate"]
