"""`steelyard simulate ROBOT -o FILE`: a recording of a simulated arm; with `--serve ROBOT` a controller."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from steelyard.cli import options
from steelyard.cli.output import Output
from steelyard.errors import InvalidInertia, InvalidRobot

if TYPE_CHECKING:
    from steelyard.inertia import InertialParameters
    from steelyard.robot import RobotModel
    from steelyard.trajectory import FourierTrajectory


def command(
    ctx: typer.Context,
    robot: Annotated[
        str | None,
        typer.Argument(help="A bundled arm, or a .urdf or .toml file.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None, options.file_to_write("Where the recording goes (.parquet).", "--output", "-o")
    ] = None,
    trajectory: Annotated[
        str | None,
        typer.Option(help="A published one (xu2024), or a design (.json); random by default."),
    ] = None,
    mass: Annotated[float, typer.Option(help="Of a payload [kg].")] = 0.0,
    com: Annotated[
        str, typer.Option(help="Its centre of mass in the flange frame, x,y,z [m].")
    ] = "0,0,0.05",
    size: Annotated[float, typer.Option(help="Edge of the cube that it is taken as [m].")] = 0.1,
    rate: Annotated[float, typer.Option(min=0.1, max=1e5, help="Rows per second [Hz].")] = 125.0,
    ideal: Annotated[bool, typer.Option("--ideal", help="Sensors without noise.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of noise and random motion.")] = 0,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    gravity: options.GravityOption = None,
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="ROBOT",
            help="Be a UR controller with this arm instead (see docs/howto/live.md).",
        ),
    ] = None,
    rtde: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Served: where; port 0 for any that is free.")
    ] = "127.0.0.1:30004",
    payload_at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="S=KGkg:X,Y,Z",
            help="Served: what it carries from when on: 10=2.5kg:0,0,0.05, 20=0kg.",
        ),
    ] = None,
    played: Annotated[
        Path | None,
        typer.Option("--from", help="Served: a recording with motor currents, not MuJoCo."),
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="S=NAME", help="Served: what goes wrong when: 12=skip:5."),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(help="Served: how long [s]; until Ctrl-C by default.", show_default=False),
    ] = float("inf"),
    as_json: options.JsonFlag = False,
) -> None:
    """Records a simulated arm (MuJoCo), empty or with a payload; or serves one as a UR controller.

    Served, it repeats --trajectory, or stands at home, and carries --mass from the beginning.
    """
    from steelyard.io import write
    from steelyard.simulation import SensorModel, SimulationOptions, simulate
    from steelyard.trajectory import FourierTrajectory

    if (robot is None) == (serve is None) or (robot is not None and output is None):
        raise InvalidRobot(
            "Missing option '--output' and ROBOT, for a recording; or --serve ROBOT, for a"
            " controller"
        )
    if serve is None:
        served = ("rtde", "payload_at", "played", "fault", "seconds")
        options.refuse_without_effect(ctx, "without --serve", *served)
    else:
        options.refuse_without_effect(ctx, "with --serve", "output", "rate", "seed")
    arm = options.load_arm(str(robot or serve), lock, flange, gravity)
    if ideal:
        sensors = SensorModel.ideal()
    else:
        sensors = SensorModel()
    if output is None:
        from steelyard.cli.serve import loads_at, serve_arm, timed

        carried = ({0.0: (mass, com)} | loads_at(payload_at or [])).items()
        return serve_arm(
            arm,
            rtde,
            payloads={
                at: _cube(kg, where, size, arm.flange) if kg else None
                for at, (kg, where) in carried
            },
            played=played,
            trajectory=None if trajectory is None else FourierTrajectory.load(trajectory),
            faults=dict(timed(each, "--fault is S=NAME, say 12=skip:5") for each in fault or []),
            seconds=seconds,
            sensors=sensors,
        )
    if trajectory is None:
        motion = _random_motion(arm, seed)
    else:
        motion = FourierTrajectory.load(trajectory)
    if mass:
        load = _cube(mass, com, size, arm.flange)
    else:
        load = None
    out = Output(as_json)
    with out.progress(f"MuJoCo: {arm.name}, {motion.duration_s:g} s") as done:
        run = simulate(
            arm,
            motion,
            payload=load,
            sensors=sensors,
            rate_hz=rate,
            seed=seed,
            options=SimulationOptions(progress=done),
        )
    write(run.recording, output)
    rows = len(run.recording)
    channels = list(run.recording.channels)
    words = f"{output}: {rows} rows, {run.recording.duration_s:g} s; {', '.join(channels)}"
    facts = {"file": output, "rows": rows, "channels": channels, "payload": load and load.vector}
    out.emit(facts, lambda: print(words))


def _random_motion(robot: RobotModel, seed: int) -> FourierTrajectory:
    from steelyard.trajectory import FourierTrajectory

    distance_to_limits = np.minimum(
        robot.limits.q_max - robot.home, robot.home - robot.limits.q_min
    )
    return FourierTrajectory.random(
        robot.home,
        reach=np.clip(0.8 * distance_to_limits, 0.05, 1.0),
        speed=np.minimum(0.6 * robot.limits.v_max, 1.5),
        period_s=10.0,
        harmonics=5,
        seed=seed,
    )


def _cube(mass: float, com: str, size: float, flange: str) -> InertialParameters:
    from steelyard.inertia import InertialParameters

    centre = options.numbers(com, "--com is X,Y,Z [m], say 0,0,0.05", count=3)
    if not mass > 0 or not size > 0:
        raise InvalidInertia(
            f"a payload needs --mass and --size above 0; got {mass:g} and {size:g}"
        )
    return InertialParameters.from_com(mass, centre, mass * size**2 / 6 * np.eye(3), flange)
