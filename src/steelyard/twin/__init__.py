r"""A simulated Universal Robots controller on the network, for trying programs without an arm.

It runs URScript programs, moves an arm in MuJoCo (or plays a recording), and answers on the ports
of a real controller. Faults are switched on by name.

    arm = SimulatedArm(load_robot("ur10e"), start=[0.0, -1.3, 1.2, -1.4, -1.2, 0.3])
    controller = SimulatedController(arm, serial_number="20235512345", model="UR10")
    with ControllerServer(controller) as server:                 # in real time, on free ports
        client = UrController(server.host, server.port)
        controller.fault("stall:0.3")                            # no rows for 0.3 s

Without sockets and without a clock, a test advances the controller itself:

    controller.run("def f():\n movej([0.1, -1.3, 1.2, -1.4, -1.2, 0.3], a=2, v=1)\nend\n")
    for _ in range(500):
        controller.receive_inputs({"input_int_register_24": beat})   # as an RTDE client
        controller.step()                                            # one control step, 2 ms
        controller.outputs["actual_qd"]                              # RTDE's outputs by name

What a program did is in `controller.log` (accepted, refused, failed), `controller.messages`
(`textmsg`), `controller.program_state` (PLAYING, PAUSED, STOPPED), `controller.program_error` and
`controller.arm.target` (commanded motion). When a program ends, is killed, paused or replaced while
the arm moves, the arm decelerates in a straight line in joint space (`_motion`); RTDE's
`runtime_state` is 0 (stopping) until it rests, then 1.

`FAULTS` lists all faults; `controller.fault(request)` and the dashboard's `fault REQUEST` switch
them on:

    skip:ROWS  stall:SECONDS  mute  late:SECONDS  close  reset  reboot       the connection
    protective-stop  emergency-stop  power-off  reduced  hand  local         modes
    moved:RADIANS  busy  slider:SHARE  payload:KG  wrong-echo:KG             the arm and others
    missing:OUTPUT  serial:NUMBER  model:NAME                                offers and identity
    normal                                                                   ends those that last
"""

from steelyard.twin._backend import Backend, RecordedArm, SimulatedArm
from steelyard.twin._controller import Modes, SimulatedController
from steelyard.twin._faults import FAULTS
from steelyard.twin._kinematics import ToolKinematics
from steelyard.twin._motion import MotionTarget
from steelyard.twin._server import ControllerServer

__all__ = [
    "FAULTS",
    "Backend",
    "ControllerServer",
    "Modes",
    "MotionTarget",
    "RecordedArm",
    "SimulatedArm",
    "SimulatedController",
    "ToolKinematics",
]
