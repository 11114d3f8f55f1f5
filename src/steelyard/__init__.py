"""steelyard weighs what a robot arm carries.

The names below are the shop window; each is loaded when first used, so that `import steelyard` is quick.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "Compensator": "control.compensation",
    "DHTable": "robot",
    "DesignLimits": "excitation",
    "DriveModel": "robot",
    "DynamicModel": "identification",
    "FourierTrajectory": "trajectory",
    "InertialParameters": "inertia",
    "ParameterBasis": "robot",
    "Payload": "payload",
    "Preparation": "signals",
    "Recording": "recording",
    "RobotModel": "robot",
    "Samples": "recording",
    "SteelyardError": "errors",
    "WrenchRecording": "wrist",
    "WristSensor": "wrist",
    "check_quality": "quality",
    "contact_force": "control.contact_force",
    "design": "excitation",
    "identify": "identification",
    "load_robot": "robot",
    "load_trajectory": "trajectory",
    "prepare": "signals",
    "read_recording": "io",
    "robot_names": "robot",
    "simulate": "simulation",
    "weigh": "torque",
    "weigh_dynamic": "wrist",
    "weigh_static": "wrist",
    "write_recording": "io",
}

__all__ = sorted(_HOME)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'steelyard' has no attribute '{name}'")
    return getattr(import_module(f"steelyard.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
