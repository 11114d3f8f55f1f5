"""steelyard weighs what a robot arm carries.

    import steelyard as sy

    robot = sy.load_robot("ur10")
    model = sy.identify(robot, "empty.parquet")
    payload = sy.weigh(model, "loaded.parquet")

The names below are the front door; each is loaded when first used, so that `import steelyard` is
quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.control._compensation import Compensator as Compensator
    from steelyard.control._contact_force import contact_force as contact_force
    from steelyard.control._guiding import guide as guide
    from steelyard.errors import SteelyardError as SteelyardError
    from steelyard.excitation import DesignLimits as DesignLimits
    from steelyard.excitation._design import design as design
    from steelyard.fleet import Fleet as Fleet
    from steelyard.identification import DynamicModel as DynamicModel
    from steelyard.identification.gains import gains_from_targets as gains_from_targets
    from steelyard.inertia import InertialParameters as InertialParameters
    from steelyard.io import read as read
    from steelyard.io import write as write
    from steelyard.payload import Payload as Payload
    from steelyard.quality import check as check
    from steelyard.recording import Preparation as Preparation
    from steelyard.recording import Recording as Recording
    from steelyard.recording import Samples as Samples
    from steelyard.robot import DHTable as DHTable
    from steelyard.robot import DriveModel as DriveModel
    from steelyard.robot import ParameterBasis as ParameterBasis
    from steelyard.robot import RobotModel as RobotModel
    from steelyard.robot import load_robot as load_robot
    from steelyard.robot import robot_names as robot_names
    from steelyard.signals._prepare import prepare as prepare
    from steelyard.simulation import simulate as simulate
    from steelyard.torque._shortest import Accuracy as Accuracy
    from steelyard.torque._shortest import ShortestMotion as ShortestMotion
    from steelyard.torque._shortest import shortest_motion as shortest_motion
    from steelyard.trajectory import FourierTrajectory as FourierTrajectory
    from steelyard.verdict import Doubt as Doubt
    from steelyard.verdict import DoubtKind as DoubtKind
    from steelyard.verdict import Verdict as Verdict
    from steelyard.workflow._arm import KnownMass as KnownMass
    from steelyard.workflow._arm import identify as identify
    from steelyard.workflow._contacts import collisions as collisions
    from steelyard.workflow._payload import weigh as weigh
    from steelyard.workflow._stream import weigh_online as weigh_online
    from steelyard.workflow._wrist import contact as contact
    from steelyard.workflow._wrist import weigh_wrist as weigh_wrist
    from steelyard.workflow._wrist_online import weigh_wrist_online as weigh_wrist_online
    from steelyard.wrist import WristPayload as WristPayload
    from steelyard.wrist import WristRecording as WristRecording
    from steelyard.wrist import WristSensor as WristSensor
    from steelyard.wrist import weigh_dynamic as weigh_dynamic
    from steelyard.wrist import weigh_static as weigh_static

_HOME = {
    "Accuracy": "torque._shortest",
    "Compensator": "control._compensation",
    "DHTable": "robot",
    "DesignLimits": "excitation",
    "Doubt": "verdict",
    "DoubtKind": "verdict",
    "DriveModel": "robot",
    "DynamicModel": "identification",
    "Fleet": "fleet",
    "FourierTrajectory": "trajectory",
    "InertialParameters": "inertia",
    "KnownMass": "workflow._arm",
    "ParameterBasis": "robot",
    "Payload": "payload",
    "Preparation": "recording",
    "Recording": "recording",
    "RobotModel": "robot",
    "Samples": "recording",
    "ShortestMotion": "torque._shortest",
    "SteelyardError": "errors",
    "Verdict": "verdict",
    "WristPayload": "wrist",
    "WristRecording": "wrist",
    "WristSensor": "wrist",
    "check": "quality",
    "collisions": "workflow._contacts",
    "guide": "control._guiding",
    "contact": "workflow._wrist",
    "contact_force": "control._contact_force",
    "design": "excitation",
    "gains_from_targets": "identification.gains",
    "identify": "workflow._arm",
    "load_robot": "robot",
    "prepare": "signals",
    "read": "io",
    "robot_names": "robot",
    "shortest_motion": "torque._shortest",
    "simulate": "simulation",
    "weigh": "workflow._payload",
    "weigh_dynamic": "wrist",
    "weigh_online": "workflow._stream",
    "weigh_static": "wrist",
    "weigh_wrist": "workflow._wrist",
    "weigh_wrist_online": "workflow._wrist_online",
    "write": "io",
}

__all__ = sorted(_HOME)
__version__: str  # that of the installed package, which has it from the git tag

if not TYPE_CHECKING:  # a type checker sees the real types above

    def __getattr__(name):
        if name == "__version__":
            metadata = import_module("importlib.metadata")
            try:
                return metadata.version("steelyard")
            except metadata.PackageNotFoundError:  # sources that nobody installed
                return "unknown"
        if name not in _HOME:
            raise AttributeError(f"module 'steelyard' has no attribute '{name}'")
        return getattr(import_module(f"steelyard.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
