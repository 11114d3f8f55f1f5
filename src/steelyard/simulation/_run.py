"""A simulated run: the loop of controller and plant, the true signals, and the sensor readings.

The drives get a feed-forward torque from the model of the empty, frictionless arm along the
commanded motion, and feedback on the position error e, its derivative and its integral,

    tau = tau_model(q_c, v_c, a_c) + M (3 w e' + 3 w^2 e + w^3 integral e),   w = 2 pi bandwidth

with all three poles at -w. The feed-forward knows neither payload nor friction, offset or a tilted
base; the feedback has to compensate for them, so the arm follows with small errors, as real arms
do. Only M is the mass matrix of the loaded arm: feedback gains are tuned to the inertia that a
drive moves. The integral starts at the value that holds the arm on the trajectory.

A guard receives the sensor readings row by row and sets the progress of the command along its path
(path time s, its rate r and the derivative r' of that rate). The arm can then stop when it is
touched and continue later: q_c = q(s), v_c = r q'(s), a_c = r^2 q''(s) + r' q'(s).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, Protocol

import numpy as np

from steelyard._arrays import Array, finite, freeze
from steelyard.errors import InvalidRecording, InvalidRobot, InvalidTrajectory, SimulationFailed
from steelyard.inertia import InertialParameters
from steelyard.recording import Recording
from steelyard.robot import DriveModel, RobotModel
from steelyard.simulation._arm import Push
from steelyard.simulation._plant import Instant, Plant
from steelyard.simulation._sensors import SensorModel
from steelyard.trajectory import Trajectory

_RUNAWAY_SPEED = 1e3  # [rad/s or m/s]
_PROGRESS_CALLS = 50
_MASS_MATRIX_PERIOD_S = 0.01  # the controller interpolates between its mass matrices
_MAX_GUARDED_DURATION = 2.0  # duration of a run with a guard over the duration of its motion
# Relative: a step may be written with six digits; the rows are exact and the step adapts.
_STEP_TOLERANCE = 1e-5


class PaceSetter(Protocol):
    """Sets the pace of a commanded motion, as `steelyard.control.collision.Guard` does."""

    def look(self, t: float, q: Array, v: Array, tau: Array) -> None:
        """Receives the sensor readings at time t."""

    def go(self, t: float) -> tuple[float, float, float]:
        """Path time, its rate and the derivative of the rate at time t."""


@dataclass(frozen=True, eq=False)
class SimulationOptions:
    """How a simulation runs.

    Attributes:
        step_s: time step of engine and controller, [s]
        bandwidth_hz: of the controller's feedback, [Hz]
        gravity_base: gravity of the simulated world, (3,) [m/s^2], in the base frame; by default
            that of the robot model. Another value simulates a tilt that the model does not contain
        progress: called about 50 times with the completed fraction
        guard: sets the pace of the motion, which may then last up to twice as long; by default
            the motion runs at its own pace
    """

    step_s: float = 0.001
    bandwidth_hz: float = 10.0
    gravity_base: Array | None = None
    progress: Callable[[float], None] | None = None
    guard: PaceSetter | None = None

    def __post_init__(self) -> None:
        for name in ("step_s", "bandwidth_hz"):
            if not 0 < getattr(self, name) < np.inf:
                raise InvalidRobot(f"{name} must be positive, got {getattr(self, name)}")
        if self.gravity_base is not None:
            object.__setattr__(
                self, "gravity_base", finite(self.gravity_base, (3,), "gravity_base", InvalidRobot)
            )


@dataclass(frozen=True, eq=False)
class Truth:
    """True signals without noise, one row for each row of the recording.

    At every row tau + external = rigid-body torque + rotor torque + friction, and tau_link =
    rigid-body torque - external.

    Attributes:
        t: time, (N,) [s]
        q: joint position, (N, n) [rad or m]
        v: joint velocity, (N, n) [rad/s or m/s]
        a: joint acceleration, (N, n) [rad/s^2 or m/s^2]
        tau: torque that the drive applies to the joint, (N, n) [Nm or N]
        tau_link: torque behind the gear: tau less rotor inertia, friction and offset, (N, n) [Nm or
            N]
        friction: torque of friction and offset, (N, n) [Nm or N]
        external: joint torque of the pushes, (N, n) [Nm or N]
        wrench: wrench of the load on the flange, (N, 6) [N, Nm], in the flange frame
        payload: body at the flange, in the flange frame; ten zeros for none
        gravity_base: gravity, (3,) [m/s^2], in the base frame
    """

    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    tau_link: Array
    friction: Array
    external: Array
    wrench: Array
    payload: InertialParameters
    gravity_base: Array

    def __post_init__(self) -> None:
        freeze(self, *(item.name for item in fields(self) if item.name != "payload"))

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated run.

    Attributes:
        recording: sensor readings
        truth: true signals at the same times
    """

    recording: Recording
    truth: Truth


def simulate(
    robot: RobotModel,
    trajectory: Trajectory,
    *,
    payload: InertialParameters | None = None,
    sensors: SensorModel | None = None,
    rate_hz: float = 125.0,
    seed: int = 0,
    pushes: Sequence[Push] = (),
    options: SimulationOptions | None = None,
) -> Simulation:
    """The recording and the true signals of an arm that follows a trajectory in MuJoCo.

    Args:
        robot: the empty arm; the controller knows it, but not its friction
        trajectory: motion to follow; the arm starts on it
        payload: body that is fixed to the flange and unknown to the controller, in the flange
            frame; none by default
        rate_hz: rows of the recording per second, [Hz]; each must fall on a step
        seed: seed of the noise; the same seed gives the same bytes
        pushes: external forces
    """
    options = options or SimulationOptions()
    sensors = sensors or SensorModel()
    sensors.require_fit(robot.n)
    every, t = _steps(trajectory.duration_s, rate_hz, options.step_s)
    command = _Command.of(trajectory, t, robot.n)
    if options.gravity_base is None:
        gravity = robot.gravity_base
    else:
        gravity = options.gravity_base
    plant = Plant(
        robot.with_gravity(gravity),
        payload,
        step_s=command.step_s,
        postures=command.q[:: command.stride],
        start=np.array([command.q[0], command.v[0], command.a[0]]),
    )
    servo = _JointController(robot, command, plant, options.bandwidth_hz)
    if options.guard is not None:
        every, t = _steps(_MAX_GUARDED_DURATION * trajectory.duration_s, rate_hz, options.step_s)
        readings = _Readings(sensors, t, every, seed, command.v[0])
        servo = _GuardedServo(servo, trajectory, options.guard, readings)
    q, rows = _run(plant, servo, t=t, every=every, pushes=pushes, options=options)
    truth = Truth(t=t[: len(q) : every], **rows, payload=plant.arm.payload, gravity_base=gravity)
    velocity = sensors.velocity(q, command.v[0], step_s=command.step_s)
    if velocity is None:
        measured = truth.v
    else:
        measured = velocity[::every]
    return Simulation(
        _recording(robot, servo.followed.every(every), truth, measured, sensors, seed), truth
    )


def _steps(duration_s: float, rate_hz: float, step_s: float) -> tuple[int, Array]:
    """Steps per row, and the time of every step, (K,) [s]."""
    if not 0 < rate_hz < np.inf:
        raise InvalidRecording(f"rate_hz must be positive, got {rate_hz}")
    every = round(1 / (rate_hz * step_s))
    if every == 0 or abs(every * rate_hz * step_s - 1) > _STEP_TOLERANCE:
        fine = int(np.ceil(1 / (rate_hz * step_s)))
        raise InvalidRecording(
            f"rows at {rate_hz:g} Hz do not fall on steps of {step_s:g} s; take rate_hz ="
            f" {1 / (max(every, 1) * step_s):.6g} or options with step_s ="
            f" {1 / (fine * rate_hz):.6g}"
        )
    if not (np.isfinite(duration_s) and duration_s * rate_hz >= 1):
        raise InvalidTrajectory(
            f"a trajectory must last at least one period of {rate_hz:g} Hz and end, got"
            f" {duration_s} s"
        )
    last_row = int(duration_s * rate_hz * (1 + 1e-12))
    return every, np.arange(last_row * every + 1) / (rate_hz * every)


class _Command(NamedTuple):
    """A commanded motion: time (K,), position, velocity and acceleration (K, n) at every step."""

    t: Array
    q: Array
    v: Array
    a: Array

    @classmethod
    def of(cls, trajectory: Trajectory, t: Array, n: int) -> _Command:
        """The trajectory at times t, (K,) [s], after a check of its shape and values."""
        signals = tuple(np.asarray(signal, dtype=float) for signal in trajectory.at(t))
        if [signal.shape for signal in signals] != [(len(t), n)] * 3:
            raise InvalidTrajectory(
                f"the robot has {n} joints: trajectory.at(t) must give q, v and a of shape"
                f" {(len(t), n)},"
                f" got {', '.join(str(signal.shape) for signal in signals)}"
            )
        if not all(np.isfinite(signal).all() for signal in signals):
            raise InvalidTrajectory("trajectory.at(t) returned values that are not finite")
        return cls(t, *signals)

    @property
    def step_s(self) -> float:
        return float(self.t[1] - self.t[0])

    @property
    def stride(self) -> int:
        """Number of steps between two mass matrices that the controller computes."""
        return max(1, round(_MASS_MATRIX_PERIOD_S / self.step_s))

    def every(self, k: int) -> _Command:
        """The command at every k-th step."""
        return _Command(*(signal[::k] for signal in self))


class _JointController:
    """The controller, which knows the empty arm, the command and the inertia of the plant."""

    def __init__(
        self, robot: RobotModel, command: _Command, plant: Plant, bandwidth_hz: float
    ) -> None:
        drive = DriveModel(robot.drive.rotor_inertia, coupling=robot.drive.coupling)
        w = 2 * np.pi * bandwidth_hz
        self._command = command
        self._inertia = plant.inertia
        self._plant = plant
        self._frictionless = robot.with_drive(drive)
        self._feedforward = self._frictionless.torque(command.q, command.v, command.a)
        self._damping = 3 * w
        self._stiffness = 3 * w**2
        self._integration = w**3 * command.step_s
        start = plant.loaded.torque(command.q[0], command.v[0], command.a[0])
        self._integral = np.linalg.solve(plant.inertia[0], start - self._feedforward[0])

    @property
    def followed(self) -> _Command:
        """The command at every step of the run."""
        return self._command

    def torque(self, k: int, q: Array, v: Array) -> Array:
        """The torque for step k, (n,) [Nm or N]; call it exactly once for each step."""
        command = self._command
        inertia = self._interpolated_inertia(k)
        return self._controlled(command.q[k] - q, command.v[k] - v, self._feedforward[k], inertia)

    def _interpolated_inertia(self, k: int) -> Array:
        """The mass matrix at step k, (n, n), linear between two computed ones.

        A matrix that is held between updates makes a saw tooth in the torque. Rows in step with
        the updates see it as a constant torque, and weigh a payload wrongly.
        """
        before, steps = divmod(k, self._command.stride)
        after = min(before + 1, len(self._inertia) - 1)
        share = steps / self._command.stride
        return np.asarray((1 - share) * self._inertia[before] + share * self._inertia[after])

    def _controlled(
        self, position_error: Array, velocity_error: Array, feedforward: Array, inertia: Array
    ) -> Array:
        """Feed-forward and feedback torque, (n,) [Nm or N]; advances the integral by one step."""
        acceleration = self._stiffness * position_error + self._damping * velocity_error
        torque = feedforward + inertia @ (acceleration + self._integral)
        self._integral = self._integral + self._integration * position_error
        return np.asarray(torque)

    def continues(self, k: int, positions: Array, instant: Instant) -> bool:
        """Whether the run continues after the row at step k.

        Args:
            k: number of the step
            positions: joint positions up to this step, (K, n) [rad or m]
            instant: signals at this step
        """
        return True


class _Readings:
    """Sensor readings for a guard while the arm moves; the recording holds the same values."""

    def __init__(
        self, sensors: SensorModel, t: Array, every: int, seed: int, v_start: Array
    ) -> None:
        self._sensors = sensors
        self._t = t
        self._every = every
        self._v_start = v_start
        rows = np.zeros((len(t[::every]), len(v_start)))
        generator = np.random.default_rng(seed).spawn(2)[0]
        self._noise = sensors.noisy_torque(rows, float(t[every]), generator)
        self._h = float(t[1])

    def row(self, k: int, positions: Array, instant: Instant) -> tuple[float, Array, Array, Array]:
        """Time, position, velocity and torque that the sensors read at step k."""
        back = max(1, round(self._sensors.velocity_window_s / self._h))
        first = max(0, k - back)
        velocity = self._sensors.velocity(positions[first : k + 1], self._v_start, step_s=self._h)
        if velocity is None:
            v = instant.v
        else:
            v = velocity[-1]
        if self._sensors.torque_side == "motor":
            tau = instant.tau
        else:
            tau = instant.tau_link
        return (
            float(self._t[k]),
            self._sensors.encoder(instant.q),
            v,
            tau + self._noise[k // self._every],
        )


class _GuardedServo(_JointController):
    """The same controller at a pace that a guard sets; the run ends with the motion."""

    def __init__(
        self,
        servo: _JointController,
        trajectory: Trajectory,
        guard: PaceSetter,
        readings: _Readings,
    ) -> None:
        self.__dict__.update(servo.__dict__)
        self._trajectory = trajectory
        self._guard = guard
        self._readings = readings
        self._rows: list[tuple[float, Array, Array, Array]] = []
        self._path_time_s = 0.0

    @property
    def followed(self) -> _Command:
        """The command at every step of the run."""
        return _Command(*(np.array(column) for column in zip(*self._rows, strict=True)))

    def torque(self, k: int, q: Array, v: Array) -> Array:
        """The torque for step k at the pace of the guard, (n,) [Nm or N]."""
        t = k * self._command.step_s
        self._path_time_s, rate, rate_slope = self._guard.go(t)
        q_c, dq, ddq = (x[0] for x in self._trajectory.at(np.array([self._path_time_s])))
        v_c = rate * dq
        a_c = rate**2 * ddq + rate_slope * dq
        self._rows.append((t, q_c, v_c, a_c))
        inertia = self._plant.loaded.mass_matrix(q_c) + self._plant.rotors
        feedforward = self._frictionless.torque(q_c, v_c, a_c)
        return self._controlled(q_c - q, v_c - v, feedforward, inertia)

    def continues(self, k: int, positions: Array, instant: Instant) -> bool:
        """Shows the row to the guard; the run continues until the motion ends."""
        self._guard.look(*self._readings.row(k, positions, instant))
        return self._path_time_s < self._trajectory.duration_s


def _run(
    plant: Plant,
    servo: _JointController,
    *,
    t: Array,
    every: int,
    pushes: Sequence[Push],
    options: SimulationOptions,
) -> tuple[Array, dict[str, Array]]:
    """The positions of every step, (K, n), and the signals of the rows by name."""
    placed = [
        (push.start_s, push.start_s + push.duration_s, plant.arm.place(push)) for push in pushes
    ]
    positions = np.empty((len(t), plant.robot.n))
    rows = []
    report_every = max(1, len(t) // _PROGRESS_CALLS)
    for k in range(len(t)):
        acting = [push for start, end, push in placed if start <= t[k] < end]
        positions[k] = plant.q
        row = plant.step(servo.torque(k, plant.q, plant.v), acting)
        if k % every == 0:
            rows.append(row)
            if not servo.continues(k, positions, row):
                return positions[: k + 1], _by_name(rows)
        if reason := plant.runaway(_RUNAWAY_SPEED):
            raise SimulationFailed(
                f"{plant.robot.name} ran away at t = {t[k]:.3f} s: {reason}; take a shorter"
                " step_s, a lower bandwidth_hz, or a weaker push"
            )
        if options.progress is not None and (
            k % report_every == report_every - 1 or k == len(t) - 1
        ):
            options.progress((k + 1) / len(t))
    return positions, _by_name(rows)


def _by_name(rows: Sequence[Instant]) -> dict[str, Array]:
    return {name: np.array([getattr(row, name) for row in rows]) for name in rows[0]._fields}


def _recording(
    robot: RobotModel, command: _Command, truth: Truth, v: Array, sensors: SensorModel, seed: int
) -> Recording:
    """The readings of the sensors at every row."""
    torque_noise, wrench_noise = np.random.default_rng(seed).spawn(2)
    at_motor = sensors.torque_side == "motor"
    gain = robot.drive.gain
    wrist = sensors.wrist_sensor
    true_tau = truth.tau if at_motor else truth.tau_link
    tau = sensors.noisy_torque(true_tau, float(truth.t[1]), torque_noise)
    current = None
    if at_motor and gain is not None:
        current = robot.drive.transmission.load(tau) / gain
    return Recording(
        truth.t,
        sensors.encoder(truth.q),
        robot.joint_names,
        v=v,
        tau=tau,
        current=current,
        q_commanded=command.q,
        v_commanded=command.v,
        a_commanded=command.a,
        wrench=sensors.noisy_wrench(truth.wrench, wrench_noise) if wrist else None,
        wrench_frame=robot.flange if wrist else None,
        wrench_convention="load_on_sensor" if wrist else None,
        source=f"MuJoCo simulation of {robot.name}",
        notes=(
            f"payload of {truth.payload.mass:g} kg; torque at the {sensors.torque_side}; seed"
            f" {seed}",
        ),
    )
