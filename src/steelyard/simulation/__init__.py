"""An arm simulated in MuJoCo, independently of our own equations; the only importer of mujoco."""

from steelyard.simulation._arm import Push
from steelyard.simulation._guided import GuidedOptions, GuidedRun, Hand
from steelyard.simulation._run import PaceSetter, Simulation, SimulationOptions, Truth, simulate
from steelyard.simulation._sensors import SensorModel
from steelyard.simulation._shift import (
    PlannedFault,
    PlannedPause,
    ShiftPlan,
    ShiftSimulation,
    TruePick,
    simulate_shift,
)

__all__ = [
    "GuidedOptions",
    "GuidedRun",
    "Hand",
    "PaceSetter",
    "PlannedFault",
    "PlannedPause",
    "Push",
    "SensorModel",
    "ShiftPlan",
    "ShiftSimulation",
    "Simulation",
    "SimulationOptions",
    "TruePick",
    "Truth",
    "simulate",
    "simulate_shift",
]
