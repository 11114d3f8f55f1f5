"""A simulated run: the loop of controller and plant, its truth, and what the sensors make of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import InvalidRecording, InvalidRobot, InvalidTrajectory, SimulationFailed
from steelyard.inertia import InertialParameters
from steelyard.recording import Recording
from steelyard.robot import RobotModel
from steelyard.simulation.arm import Push, checked_payload
from steelyard.simulation.control import Motion, Servo, Trajectory, commanded
from steelyard.simulation.plant import Instant, Plant
from steelyard.simulation.sensors import SensorModel

_ABSURD_SPEED = 1e3
_PROGRESS_CALLS = 50
_ROUNDING = 1e-5  # of a step written with six digits; the rows are then exact and the step is adjusted


@dataclass(frozen=True, eq=False)
class SimulationOptions:
    """How a simulation runs.

    Attributes:
        step_s: time step of engine and controller, [s]
        bandwidth_hz: of the controller's feedback, [Hz]
        gravity_base: where things fall in the simulated world, (3,) [m/s^2], in the base frame; as the robot
            model says when None. Give another one for an arm that is tilted and does not know it
        progress: called about 50 times with the fraction that is done
    """

    step_s: float = 0.001
    bandwidth_hz: float = 10.0
    gravity_base: Array | None = None
    progress: Callable[[float], None] | None = None

    def __post_init__(self) -> None:
        for name in ("step_s", "bandwidth_hz"):
            if not 0 < getattr(self, name) < np.inf:
                raise InvalidRobot(f"{name} must be positive, got {getattr(self, name)}")
        if self.gravity_base is not None:
            gravity = np.array(self.gravity_base, dtype=float)
            if gravity.shape != (3,) or not np.isfinite(gravity).all():
                raise InvalidRobot(f"gravity_base must be three finite numbers, got {gravity}")
            object.__setattr__(self, "gravity_base", gravity)
            gravity.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Truth:
    """What really happened, row for row with the recording, without noise.

    At every row tau + external = rigid-body torque + rotor torque + friction, and tau_link = rigid-body
    torque - external.

    Attributes:
        t: time, (N,) [s]
        q: joint position, (N, n) [rad or m]
        v: joint velocity, (N, n) [rad/s or m/s]
        a: joint acceleration, (N, n) [rad/s^2 or m/s^2]
        tau: torque that the drive applies to the joint, (N, n) [Nm or N]
        tau_link: torque behind the gear: tau less rotor inertia, friction and offset, (N, n) [Nm or N]
        friction: torque that friction and offset take, (N, n) [Nm or N]
        external: joint torque of the pushes, (N, n) [Nm or N]
        wrench: what the load does to the flange, (N, 6) [N, Nm], in the flange frame
        payload: at the flange, in the flange frame; ten zeros for none
        gravity_base: where things fell, (3,) [m/s^2], in the base frame
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
        for item in fields(self):
            if item.name != "payload":
                array = np.array(getattr(self, item.name), dtype=float)
                array.setflags(write=False)
                object.__setattr__(self, item.name, array)

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated run.

    Attributes:
        recording: what the sensors say
        truth: what really happened, at the same times
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
    """The run of an arm in MuJoCo along a trajectory, as sensors record it and as it really was.

    Args:
        robot: the empty arm; the controller knows it, but not its friction
        trajectory: to follow; the arm starts on it
        payload: fixed to the flange and unknown to the controller, in the flange frame; none by default
        sensors: errors of the sensors; `SensorModel()` by default
        rate_hz: rows of the recording for each second, [Hz]; each must fall on a step
        seed: of the noise; the same seed gives the same bytes
        pushes: forces from outside
        options: step, controller bandwidth, tilted world, progress; `SimulationOptions()` by default
    """
    options = options or SimulationOptions()
    sensors = sensors or SensorModel()
    sensors.require_fit(robot.n)
    load = checked_payload(robot, payload)
    every, t = _steps(trajectory.duration_s, rate_hz, options.step_s)
    motion = commanded(trajectory, t, robot.n)
    gravity = robot.gravity_base if options.gravity_base is None else options.gravity_base
    plant = Plant(robot, load, gravity_base=gravity, motion=motion)
    log = _run(plant, plant.servo(options.bandwidth_hz), every=every, pushes=pushes, options=options)
    truth = Truth(t[::every], *log.rows, load, gravity)
    return Simulation(_recording(robot, motion, log=log, truth=truth, sensors=sensors, seed=seed), truth)


def _steps(duration_s: float, rate_hz: float, step_s: float) -> tuple[int, Array]:
    """Steps for each row, and the time of every step, (K,) [s]."""
    if not 0 < rate_hz < np.inf:
        raise InvalidRecording(f"rate_hz must be positive, got {rate_hz}")
    every = round(1 / (rate_hz * step_s))
    if every == 0 or abs(every * rate_hz * step_s - 1) > _ROUNDING:
        fine = int(np.ceil(1 / (rate_hz * step_s)))
        raise InvalidRecording(
            f"rows at {rate_hz:g} Hz do not fall on steps of {step_s:g} s; take rate_hz ="
            f" {1 / (max(every, 1) * step_s):.6g} or options with step_s = {1 / (fine * rate_hz):.6g}"
        )
    if not (np.isfinite(duration_s) and duration_s * rate_hz >= 1):
        raise InvalidTrajectory(
            f"a trajectory must last at least one period of {rate_hz:g} Hz and end, got {duration_s} s"
        )
    last_row = int(duration_s * rate_hz * (1 + 1e-12))
    return every, np.arange(last_row * every + 1) / (rate_hz * every)


class _Log(NamedTuple):
    """The positions of every step, (K, n), and all rows as arrays."""

    q: Array
    rows: Instant


def _run(
    plant: Plant, servo: Servo, *, every: int, pushes: Sequence[Push], options: SimulationOptions
) -> _Log:
    t = plant.motion.t
    placed = [(push.start_s, push.start_s + push.duration_s, plant.arm.place(push)) for push in pushes]
    positions = np.empty_like(plant.motion.q)
    rows: list[Instant] = []
    report_every = max(1, len(t) // _PROGRESS_CALLS)
    for k in range(len(t)):
        acting = [push for start, end, push in placed if start <= t[k] < end]
        positions[k] = plant.q
        row = plant.step(servo.torque(k, plant.q, plant.v), acting)
        if k % every == 0:
            rows.append(row)
        if not np.abs(plant.w).max() < _ABSURD_SPEED:
            raise _failure(plant, float(t[k]))
        if options.progress is not None and (k % report_every == report_every - 1 or k == len(t) - 1):
            options.progress((k + 1) / len(t))
    return _Log(positions, Instant(*(np.array(column) for column in zip(*rows, strict=True))))


def _failure(plant: Plant, time_s: float) -> SimulationFailed:
    j = int(np.argmax(np.nan_to_num(np.abs(plant.w), nan=np.inf)))
    return SimulationFailed(
        f"{plant.robot.name} ran away at t = {time_s:.3f} s: joint '{plant.robot.joint_names[j]}' has the"
        f" speed {plant.w[j]:.3g}; take a shorter step_s, a lower bandwidth_hz, or a weaker push"
    )


def _recording(
    robot: RobotModel, motion: Motion, *, log: _Log, truth: Truth, sensors: SensorModel, seed: int
) -> Recording:
    torque_noise, wrench_noise = np.random.default_rng(seed).spawn(2)
    every = (len(motion.t) - 1) // (len(truth) - 1)
    velocity = sensors.velocity(log.q, motion.v[0], step_s=motion.step_s)
    tau_there = truth.tau if sensors.torque_side == "motor" else truth.tau_link
    tau = sensors.noisy_torque(tau_there, float(truth.t[1]), torque_noise)
    wrist = sensors.wrist_sensor
    return Recording(
        truth.t,
        sensors.encoder(truth.q),
        robot.joint_names,
        v=truth.v if velocity is None else velocity[::every],
        tau=tau,
        current=_current(robot, tau) if sensors.torque_side == "motor" else None,
        q_commanded=motion.q[::every],
        v_commanded=motion.v[::every],
        a_commanded=motion.a[::every],
        wrench=sensors.noisy_wrench(truth.wrench, wrench_noise) if wrist else None,
        wrench_frame=robot.flange if wrist else None,
        wrench_convention="load_on_sensor" if wrist else None,
        source=f"MuJoCo simulation of {robot.name}",
        notes=(f"payload of {truth.payload.mass:g} kg; torque at the {sensors.torque_side}; seed {seed}",),
    )


def _current(robot: RobotModel, tau: Array) -> Array | None:
    """Motor currents where the gains are known, (N, n) [A]."""
    if robot.drive.gain is None:
        return None
    return np.asarray(robot.drive.transmission.load(tau) / robot.drive.gain)
