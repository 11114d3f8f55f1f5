"""A simulated Universal Robots controller on the network: RTDE, dashboard and script port.

Programs that talk to a real controller can be tried against it, with faults on demand.
"""

from steelyard.twin._backend import Backend, RecordedArm, SimulatedArm
from steelyard.twin._controller import SimulatedController
from steelyard.twin._server import ControllerServer

__all__ = ["Backend", "ControllerServer", "RecordedArm", "SimulatedArm", "SimulatedController"]
