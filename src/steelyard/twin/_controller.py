"""State of a simulated Universal Robots controller, step by step; no sockets and no clock.

The controller has modes, a payload, registers, a program that moves the arm, a log, and the arm
behind it: in MuJoCo or from a recording (`_backend`). A control step runs the program until it
waits (`_interpreter`), moves the target (`_motion`) and then the arm. As on a real controller,
`timestamp` counts control steps since the start; it begins at 100 s because some clients distrust a
controller that has just started. Faults are switched on by name, see `fault`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidRobot, SourceFailed
from steelyard.live._controller import ControllerPayload
from steelyard.robot import RobotModel
from steelyard.trajectory import Trajectory
from steelyard.twin._backend import Backend
from steelyard.twin._dashboard import answer
from steelyard.twin._faults import FAULTS, checked_fault
from steelyard.twin._functions import WAITING, controller_functions
from steelyard.twin._interpreter import Interpreter, ProgramFailed
from steelyard.twin._kinematics import ToolKinematics
from steelyard.twin._motion import ArmMotion, Repeat
from steelyard.twin._registers import Registers
from steelyard.twin._sockets import ScriptSockets
from steelyard.twin._syntax import Program

SERIAL_NUMBER = "20200000001"
"""Of a simulated arm unless another one is given."""

_FIRST_TIMESTAMP_S = 100.0
_ROBOT_OFF = 3
_ROBOT_RUNNING = 7
_SAFETY_OK = (1, 2)
_JOINT_OFF = 239
_JOINT_RUNNING = 253
_TEACH_BUTTON_BIT = 4  # of robot_status_bits
_RUNTIME_STOPPING = 0
_RUNTIME_STOPPED = 1
_RUNTIME_PLAYING = 2
_RUNTIME_PAUSED = 4
_MAX_MESSAGES = 1000
_REBOOT_TRANSITION_S = 0.5  # the brakes would hold a real arm, not a model with another payload


class Modes(NamedTuple):
    """Modes of a controller.

    Attributes:
        robot: RTDE's `robot_mode`
        safety: RTDE's `safety_mode`
        hand: whether the teach button is pressed
        remote: whether it accepts scripts, as in Remote Control
        mute: whether it has stopped sending without closing the connection
        late_s: delay of all that it sends, [s]
        late_rate: growth of this delay per second
        late_from_s: when it began to grow (`time.monotonic`), [s]
        payload_error: added to the mass of every payload that is set, [kg]
    """

    robot: int = _ROBOT_RUNNING
    safety: int = 1
    hand: bool = False
    remote: bool = True
    mute: bool = False
    late_s: float = 0.0
    late_rate: float = 0.0
    late_from_s: float = 0.0
    payload_error: float = 0.0

    @property
    def run(self) -> bool:
        """Whether the arm may move."""
        return self.robot == _ROBOT_RUNNING and self.safety in _SAFETY_OK

    def delay_s(self, now_s: float) -> float:
        """Delay of what is sent, [s].

        Args:
            now_s: when it is sent (`time.monotonic`), [s]
        """
        return self.late_s + self.late_rate * (now_s - self.late_from_s)


class _Watchdog(NamedTuple):
    """An input that a client has to write again and again.

    Attributes:
        name: RTDE's name of the input
        period_s: longest time without it, [s]
        action: 'stop' or 'pause'
    """

    name: str
    period_s: float
    action: str


class SimulatedController:
    """A simulated controller.

    Args:
        backend: the arm behind it
        version: version of its software; major 3 is a CB3
        serial_number: as the dashboard gives it
        model: name of the arm as the dashboard gives it; that of the backend's arm by default

    Attributes:
        arm: the target of the arm, and the motion that moves it
        log: what happened: scripts that were accepted, refused or failed, and faults
        messages: texts of the programs' `textmsg`
        announcements: texts that the primary port has still to send, and whether each is an error
        outputs: RTDE's outputs of the last step, by their names
        payload: the payload set on the controller
        program_error: why the last program was refused or has failed; empty where it has not
        registers: registers and outputs, written by clients and programs
    """

    def __init__(
        self,
        backend: Backend,
        *,
        version: Sequence[int] = (5, 12, 4, 1101661),
        serial_number: str = SERIAL_NUMBER,
        model: str | None = None,
    ) -> None:
        self.backend = backend
        self.version: tuple[int, ...] = tuple(version)
        self.serial_number: str = serial_number
        self._model = model
        self.modes: Modes = Modes()
        self.log: list[str] = []
        self.messages: list[str] = []
        self.announcements: deque[tuple[str, bool]] = deque(maxlen=_MAX_MESSAGES)
        self.popup = ""
        self.payload = ControllerPayload()
        self.tcp: tuple[float, ...] = (0.0,) * 6
        self.registers = Registers()
        self.sockets = ScriptSockets(1 / backend.rate_hz)
        self.owners: dict[str, object] = {}  # the connection that writes each input
        self.missing_outputs: set[str] = set()
        self.skipping = 0  # number of rows that are not sent
        self.hang_up = ""  # "close" or "reset" to end all connections
        self.program_error = ""
        self.program_name: str = ""
        self._lock = threading.RLock()
        self._start_s = _FIRST_TIMESTAMP_S
        self._program: Interpreter | None = None
        self._text = ""  # of the last program, for `play`
        self._paused = False
        self._repeated: Repeat | None = None
        self._kinematics: ToolKinematics | None = None
        self._watchdog: _Watchdog | None = None
        self._unwritten_s = 0.0
        t, outputs = backend.step(None, self.payload)
        posture = np.array(outputs.get("target_q", outputs["actual_q"]))
        self.arm = ArmMotion(posture, 1 / backend.rate_hz)
        self.outputs: dict[str, Sequence[float]] = {}
        self._publish(t, outputs)

    # --- facts

    @property
    def robot(self) -> RobotModel:
        """The arm; raises `InvalidRobot` where only a recording is known."""
        if self.backend.robot is None:
            raise InvalidRobot("the arm behind this controller is not known: no kinematics")
        return self.backend.robot

    @property
    def model(self) -> str:
        """Name of the arm as the dashboard gives it."""
        if self._model is not None:
            return self._model
        if self.backend.robot is None:
            return ""
        return self.backend.robot.name.upper().removesuffix("E")

    @model.setter
    def model(self, name: str) -> None:
        """Replaces the model that the controller reports."""
        self._model = name

    @property
    def kinematics(self) -> ToolKinematics:
        """Kinematics of the arm with its tool."""
        if self._kinematics is None or self._kinematics.tcp != self.tcp:
            self._kinematics = ToolKinematics(self.robot, self.tcp)
        return self._kinematics

    @property
    def seconds(self) -> float:
        """Time since it was switched on, [s]."""
        return self.outputs["timestamp"][0] - self._start_s

    @property
    def program_state(self) -> str:
        """PLAYING, PAUSED or STOPPED."""
        if self._paused:
            return "PAUSED"
        if self._program is not None or self._repeated is not None:
            return "PLAYING"
        return "STOPPED"

    # --- one step

    def step(self) -> None:
        """Advances by one control step."""
        with self._lock:
            self._check_watchdog()
            self._run_program()
            self.arm.slider = self.registers.slider
            t, outputs = self.backend.step(self.arm.advance(), self.payload)
            if self.backend.over and self.modes.robot == _ROBOT_RUNNING:
                self.modes = self.modes._replace(robot=_ROBOT_OFF)
                self.log.append("the recording has ended: the arm is switched off")
            self.skipping = max(self.skipping - 1, 0)
            del self.messages[:-_MAX_MESSAGES]
            self._publish(t, outputs)

    def _run_program(self) -> None:
        program = self._program
        if program is None or self._paused:
            return
        try:
            program.step()
        except ProgramFailed as error:
            self._fail(f"{program.program.kind} {program.program.name} stopped: {error}")
            self.stop_program()
        if not program.running:
            self.stop_program()

    def _publish(self, t: float, outputs: Mapping[str, Sequence[float]]) -> None:
        modes = self.modes
        robot = self.backend.robot
        playing = self.program_state == "PLAYING"
        bits = (modes.robot > _ROBOT_OFF) + 2 * playing + _TEACH_BUTTON_BIT * modes.hand
        joint_mode = _JOINT_RUNNING if modes.robot == _ROBOT_RUNNING else _JOINT_OFF
        published: dict[str, Sequence[float]] = {
            **outputs,
            **self.registers.rtde_outputs(),
            "timestamp": (self._start_s + t,),
            "robot_mode": (modes.robot,),
            "safety_mode": (modes.safety,),
            "safety_status": (modes.safety,),
            "joint_mode": (joint_mode,) * 6,
            "runtime_state": (self._runtime_state(),),
            "robot_status_bits": (bits,),
            "safety_status_bits": (1 << (modes.safety - 1),),
            "speed_scaling": (self.registers.slider,),
            "target_speed_fraction": (self.registers.slider,),
            "joint_temperatures": (30.0,) * 6,
            "payload": (self.payload.mass,),
            "payload_cog": self.payload.cog,
            "payload_inertia": self.payload.inertia,
            "tcp_offset": self.tcp,
        }
        if robot is not None:
            pose = self.kinematics.pose(np.array(outputs["actual_q"]))
            published["actual_TCP_pose"] = pose.tolist()
            published["target_gravity"] = robot.gravity_base.tolist()
        self.outputs = published

    def _runtime_state(self) -> int:
        if self._paused:
            return _RUNTIME_PAUSED
        if self.program_state == "PLAYING":
            return _RUNTIME_PLAYING
        if not self.arm.at_rest:
            return _RUNTIME_STOPPING
        return _RUNTIME_STOPPED

    # --- programs

    def run(self, text: str, *, by_operator: bool = False) -> None:
        """Accepts a script; the only answer is the log (and `program_error`).

        A `sec` program runs at once, beside the running program. Any other program replaces the
        running one and begins with the next control step. It takes over the velocity of the arm,
        which decelerates unless the new program moves it.

        Args:
            text: text of a program
            by_operator: whether the operator starts it, who needs no remote control
        """
        if not self.modes.remote and not by_operator:
            return self.log.append("a script was ignored: not in remote control")
        try:
            self.start(Program.parsed(text), text)
        except SourceFailed as error:
            self._fail(f"a script was refused: {error}")

    def start(self, program: Program, text: str) -> None:
        """Starts a parsed program; raises `ProgramFailed` where it is refused.

        Args:
            program: the program
            text: its text, for `play`
        """
        with self._lock:
            if not self.modes.run:
                raise ProgramFailed("the arm is not ready: see the modes of the controller")
            if program.kind == "sec":
                return self._run_secondary(program)
            interpreter = Interpreter(program, controller_functions(self))
            self.stop_program()
            self.program_error = ""
            self._program = interpreter
            self._text = text
            self.program_name = program.name
            self.log.append(f"{program.kind} {program.name} runs")

    def _run_secondary(self, program: Program) -> None:
        for call in program.calls:
            if call.name in WAITING:
                raise ProgramFailed(
                    f"line {call.line}: {call.name} takes time, which a 'sec' program must not"
                )
        interpreter = Interpreter(program, controller_functions(self))
        interpreter.step()
        self.log.append(f"{program.kind} {program.name} runs")

    def _fail(self, words: str) -> None:
        self.program_error = words
        self.log.append(words)
        self.announcements.append((words, True))

    def say(self, words: str) -> None:
        """Sends a text, as URScript's `textmsg` does."""
        self.messages.append(words)
        self.announcements.append((words, False))

    def stop_program(self) -> None:
        """Ends the running program; the arm decelerates."""
        with self._lock:
            program = self._program
            self._program = None
            self._paused = False
            self._watchdog = None
            if self._repeated is not None:
                self.arm.release(self._repeated)
                self._repeated = None
            if program is not None:
                program.stop()
                self.sockets.close()

    def pause(self) -> bool:
        """Pauses the running program; the arm decelerates. False where none runs."""
        with self._lock:
            if self.program_state != "PLAYING":
                return False
            self._paused = True
            self.arm.suspend()
            return True

    def play(self) -> bool:
        """Resumes a paused program, or starts the last one again; False where there is none."""
        with self._lock:
            if self._paused:
                self._paused = False
                self.arm.resume()
                return True
            if not self._text or not self.modes.run or self.program_state == "PLAYING":
                return False
            self.run(self._text, by_operator=True)
            return True

    def repeat(self, trajectory: Trajectory) -> None:
        """Repeats a trajectory for ever, like a program that ran before.

        Args:
            trajectory: begins at the present posture
        """
        step_s = self.arm.step_s
        q, _, _ = trajectory.at(
            step_s * np.arange(round(trajectory.duration_s / step_s), dtype=float)
        )
        self.stop_program()
        self._repeated = Repeat(q)
        self.program_name = "repeated_motion"
        self.arm.start(self._repeated)

    def set_payload(self, payload: ControllerPayload, transition_s: float = 0.0) -> None:
        """Sets a payload, as a program does.

        Args:
            payload: the payload to set
            transition_s: time in which the torques change over to it, [s]
        """
        self.backend.transition_s = transition_s
        self.payload = payload._replace(mass=payload.mass + self.modes.payload_error)

    # --- inputs

    def receive_inputs(self, values: Mapping[str, Any]) -> None:
        """Takes the inputs that an RTDE client has written, by their names."""
        with self._lock:
            self.registers.receive(values)

    def set_watchdog(
        self, variable_name: str, min_frequency: float = 10.0, action: str = "pause"
    ) -> None:
        """Stops or pauses the program when an input stays out; URScript's `rtde_set_watchdog`.

        Args:
            variable_name: RTDE's name of the input
            min_frequency: how often it has to be written at least, [Hz]; 0 to end the watch
            action: 'stop', 'pause' or 'ignore'
        """
        self._watchdog = None
        self._unwritten_s = 0.0
        if min_frequency > 0 and action != "ignore":
            self._watchdog = _Watchdog(variable_name, 1 / min_frequency, action)

    def _check_watchdog(self) -> None:
        watchdog = self._watchdog
        written = self.registers.written
        self.registers.written = set()
        if watchdog is None or self._program is None or self._paused:
            return
        if watchdog.name in written:
            self._unwritten_s = 0.0
        else:
            self._unwritten_s += self.arm.step_s
        if self._unwritten_s > watchdog.period_s:
            self.log.append(f"watchdog: {watchdog.name} stayed out, action {watchdog.action}")
            self._unwritten_s = 0.0
            if watchdog.action == "stop":
                self.stop_program()
            else:
                self.pause()

    # --- faults and the dashboard

    def fault(self, request: str) -> None:
        """Switches a fault on, or all faults off.

        Args:
            request: a name of `FAULTS`, followed by a colon and a number or a word where the fault
                needs one: `stall:0.3`, `missing:safety_mode`, `normal`
        """
        name, number, word = checked_fault(request)
        with self._lock:
            FAULTS[name].apply(self, number, word)
            self.log.append(f"fault: {request}")

    def change_modes(self, modes: Modes) -> None:
        """Changes the modes; in one without motion the program ends and the arm decelerates."""
        with self._lock:
            self.modes = modes
            if not modes.run:
                self.stop_program()
                self.arm.stop()

    def place(self, q: Array) -> None:
        """Puts the arm at rest into a posture q, (6,) [rad], as a hand would."""
        with self._lock:
            self.arm.place(q)
            self.backend.place(q)

    def shift_clock(self, seconds: float) -> None:
        """Moves the clock forward, or back by a negative time, not before zero.

        Args:
            seconds: by how much, [s]
        """
        with self._lock:
            self._start_s += max(seconds, -self.outputs["timestamp"][0])

    def reboot(self) -> None:
        """Starts the clock anew, without a program, with empty registers and no payload."""
        with self._lock:
            self.stop_program()
            self.arm.stop()
            self._start_s -= self.outputs["timestamp"][0]
            self.backend.transition_s = _REBOOT_TRANSITION_S
            self.payload = ControllerPayload()
            self.registers = Registers()
            self.program_name = ""

    def dashboard(self, line: str) -> str:
        """The answer to a line on the dashboard's port.

        Args:
            line: as received
        """
        with self._lock:
            return answer(self, line)
