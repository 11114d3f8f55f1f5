"""steelyard weighs what a robot arm carries.

    import steelyard as sy

    robot = sy.load_robot("ur10")
    model = sy.identify(robot, "empty.parquet")
    payload = sy.weigh(model, "loaded.parquet")

The names in `__all__` are the API for everyday work; each is imported when it is first used, so
that `import steelyard` is quick. The packages below (`steelyard.robot`, `steelyard.control`, ...)
list further public names in their own `__all__`.
"""

from typing import TYPE_CHECKING

from steelyard._lazy import lazy_attributes

if TYPE_CHECKING:
    from steelyard.errors import SteelyardError as SteelyardError
    from steelyard.excitation import Design as Design
    from steelyard.excitation import DesignLimits as DesignLimits
    from steelyard.excitation import design as design
    from steelyard.identification import DynamicModel as DynamicModel
    from steelyard.io import load as load
    from steelyard.io import read as read
    from steelyard.io import write as write
    from steelyard.live import track as track
    from steelyard.live import track_wrist as track_wrist
    from steelyard.payload import Payload as Payload
    from steelyard.quality import check as check
    from steelyard.recording import Preparation as Preparation
    from steelyard.recording import Recording as Recording
    from steelyard.recording import Samples as Samples
    from steelyard.robot import RobotModel as RobotModel
    from steelyard.robot import load_robot as load_robot
    from steelyard.signals import prepare as prepare
    from steelyard.simulation import simulate as simulate
    from steelyard.trajectory import FourierTrajectory as FourierTrajectory
    from steelyard.workflow import collisions as collisions
    from steelyard.workflow import contact as contact
    from steelyard.workflow import identify as identify
    from steelyard.workflow import picks as picks
    from steelyard.workflow import weigh as weigh
    from steelyard.workflow import weigh_wrist as weigh_wrist
    from steelyard.wrist import WristRecording as WristRecording
    from steelyard.wrist import WristSensor as WristSensor

_MODULES = {
    "Design": "excitation",
    "DesignLimits": "excitation",
    "DynamicModel": "identification",
    "FourierTrajectory": "trajectory",
    "Payload": "payload",
    "Preparation": "recording",
    "Recording": "recording",
    "RobotModel": "robot",
    "Samples": "recording",
    "SteelyardError": "errors",
    "WristRecording": "wrist",
    "WristSensor": "wrist",
    "check": "quality",
    "collisions": "workflow._contacts",
    "contact": "workflow._wrist",
    "design": "excitation",
    "identify": "workflow._arm",
    "load": "io",
    "load_robot": "robot",
    "picks": "workflow._picks",
    "prepare": "signals",
    "read": "io",
    "simulate": "simulation",
    "track": "live._track",
    "track_wrist": "live._track",
    "weigh": "workflow._payload",
    "weigh_wrist": "workflow._wrist",
    "write": "io",
}

__all__ = sorted(_MODULES)
__version__ = "0.1.0"

if not TYPE_CHECKING:  # a type checker sees the imports above
    __getattr__ = lazy_attributes(__name__, _MODULES)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
