"""`steelyard simulate ROBOT -o FILE`: a recording of a simulated arm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from steelyard.cli import options
from steelyard.cli.output import Output
from steelyard.cli.terminal import say
from steelyard.errors import InvalidInertia, InvalidTrajectory

if TYPE_CHECKING:
    from steelyard.inertia import InertialParameters
    from steelyard.robot import RobotModel
    from steelyard.simulation import SensorModel
    from steelyard.trajectory import FourierTrajectory


_DEFAULT_COM = "0,0,0.05"
_DEFAULT_SIZE = 0.1  # [m]
_MIN_REACH = 0.05  # [rad or m], of a joint around its home

TrajectoryOption = Annotated[
    str | None,
    typer.Option(help="The motion: bundled (xu2024) or a design (.json)."),
]
MassOption = Annotated[float, typer.Option(help="Mass of a payload [kg]; 0 for none.")]
ComOption = Annotated[
    str, typer.Option(help="Centre of mass of the payload in the flange frame, x,y,z [m].")
]
SizeOption = Annotated[
    float, typer.Option(help="The payload is a homogeneous cube with this edge [m].")
]
IdealFlag = Annotated[bool, typer.Option("--ideal", help="Simulate sensors without noise.")]


def command(
    robot: options.RobotArgument,
    output: Annotated[
        Path,
        options.file_to_write(
            "The recording to write (.parquet, .npz).",
            "--output",
            "-o",
            endings=(".parquet", ".npz"),
        ),
    ],
    trajectory: TrajectoryOption = None,
    mass: MassOption = 0.0,
    com: Annotated[
        str | None,
        typer.Option(
            help="Centre of mass of the payload in the flange frame, x,y,z [m]. Default: 0,0,0.05."
        ),
    ] = None,
    size: Annotated[
        float | None,
        typer.Option(help="Edge of the payload, a homogeneous cube [m]. Default: 0.1."),
    ] = None,
    rate: Annotated[float, typer.Option(min=0.1, max=1e5, help="Sampling rate [Hz].")] = 125.0,
    cycle: Annotated[
        Path | None,
        typer.Option(help="A shift of picks instead of one motion: its plan (.toml)."),
    ] = None,
    ideal: IdealFlag = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the noise and the motion.")] = 0,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    gravity: options.GravityOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Records a simulated arm (MuJoCo), empty or with a payload.

    Without --trajectory the arm follows a random motion within its limits.
    """
    from steelyard.io import write
    from steelyard.simulation import SimulationOptions, simulate
    from steelyard.trajectory import FourierTrajectory

    arm = options.load_arm(robot, lock, flange, gravity)
    out = Output(as_json)
    if cycle is not None:
        if trajectory is not None or mass:
            raise InvalidTrajectory(
                "--cycle holds the motion and the parts: leave --trajectory and --mass out"
            )
        _simulate_shift(arm, cycle, output, out, _Sensing(rate, seed, ideal))
        return
    if trajectory is None:
        motion = _random_motion(arm, seed)
    else:
        motion = FourierTrajectory.load(trajectory)
    if mass == 0 and (com is not None or size is not None):
        raise InvalidInertia("--com and --size describe a payload: give its --mass, too")
    if size is None:
        size = _DEFAULT_SIZE
    load = payload_cube(mass, com or _DEFAULT_COM, size, arm.flange)
    with out.progress(f"MuJoCo: {arm.name}, {motion.duration_s:g} s") as done:
        run = simulate(
            arm,
            motion,
            payload=load,
            sensors=sensor_model(ideal=ideal),
            rate_hz=rate,
            seed=seed,
            options=SimulationOptions(progress=done),
        )
    write(run.recording, output)
    rows = len(run.recording)
    channels = list(run.recording.channels)
    words = f"{output}: {rows} rows, {run.recording.duration_s:g} s; {', '.join(channels)}"
    facts = {"file": output, "rows": rows, "channels": channels, "payload": load and load.vector}
    out.emit(facts, lambda: say(words))


@dataclass(frozen=True)
class _Sensing:
    """How a simulated arm is measured."""

    rate_hz: float
    seed: int
    ideal: bool


def _simulate_shift(
    arm: RobotModel, path: Path, output: Path, out: Output, sensing: _Sensing
) -> None:
    """Records a shift of picks, and prints what was really picked."""
    from steelyard._saved import read_toml
    from steelyard.io import write
    from steelyard.simulation import ShiftPlan, SimulationOptions, simulate_shift

    plan = ShiftPlan.from_dict(read_toml(path))
    if plan.carry.shape[1] != arm.n:
        raise InvalidTrajectory(
            f"{path}: postures of {plan.carry.shape[1]} joints, {arm.name} has {arm.n}"
        )
    with out.progress(f"MuJoCo: {arm.name}, {plan.cycles} picks") as done:
        run = simulate_shift(
            arm,
            plan,
            sensors=replace(sensor_model(ideal=sensing.ideal), wrist_sensor=False),
            rate_hz=sensing.rate_hz,
            seed=sensing.seed,
            options=SimulationOptions(progress=done),
        )
    write(run.recording, output)
    truth = [pick._asdict() for pick in run.picks]
    faults = [f"{pick.number} {pick.fault}" for pick in run.picks if pick.fault != "good"]
    words = (
        f"{output}: {len(run.recording)} rows, {run.recording.duration_s:g} s, {plan.cycles} picks;"
        f" faults: {', '.join(faults) or 'none'}"
    )
    facts = {"file": output, "rows": len(run.recording), "picks": truth}
    out.emit(facts, lambda: say(words))


def sensor_model(*, ideal: bool) -> SensorModel:
    """Sensors of a simulated arm, with or without noise."""
    from steelyard.simulation import SensorModel

    if ideal:
        return SensorModel.ideal()
    return SensorModel()


def _random_motion(robot: RobotModel, seed: int) -> FourierTrajectory:
    """A random motion around home, or around the middle of joints whose home is at a limit."""
    from steelyard.trajectory import FourierTrajectory

    q_min = robot.limits.q_min
    q_max = robot.limits.q_max
    centre = robot.home.copy()
    at_limit = 0.8 * np.minimum(q_max - centre, centre - q_min) < _MIN_REACH
    centre[at_limit] = 0.5 * (q_min[at_limit] + q_max[at_limit])
    distance_to_limits = np.minimum(q_max - centre, centre - q_min)
    return FourierTrajectory.random(
        centre,
        reach=np.minimum(0.8 * distance_to_limits, 1.0),
        speed=np.minimum(0.6 * robot.limits.v_max, 1.5),
        period_s=10.0,
        harmonics=5,
        seed=seed,
    )


def payload_cube(mass: float, com: str, size: float, flange: str) -> InertialParameters | None:
    """A homogeneous cube; None where the mass is 0.

    Args:
        mass: [kg]
        com: its centre in the flange frame, as X,Y,Z [m]
        size: its edge [m]
        flange: name of the flange frame
    """
    from steelyard.inertia import InertialParameters

    if mass == 0:
        return None
    centre = options.numbers(com, "--com is X,Y,Z [m], say 0,0,0.05", count=3)
    if not mass > 0 or not size > 0:
        raise InvalidInertia(
            f"a payload needs --mass and --size above 0; got {mass:g} and {size:g}"
        )
    return InertialParameters.from_com(mass, centre, mass * size**2 / 6 * np.eye(3), flange)
