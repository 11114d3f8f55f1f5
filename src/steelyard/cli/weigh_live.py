"""`steelyard weigh-live SOURCE --model MODEL`: moves the arm, weighs, offers to set the payload."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace as changed
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from steelyard._computing import interruptible
from steelyard.cli.live import (
    SNAPSHOT_STEP_S,
    AccuracyOption,
    DarkFlag,
    HostOption,
    LiveModelOption,
    PageFlag,
    PortOption,
    RatingOption,
    ReplaceFlag,
    SourceArgument,
    SpeedOption,
    TransitionOption,
    UrdfOption,
    YesFlag,
    arm_and_motion,
    opened_page,
    show_snapshots,
    stay,
)
from steelyard.cli.options import JsonFlag, file_to_write
from steelyard.cli.output import Output
from steelyard.cli.questions import motion_question, payload_question, show_setting, show_stop
from steelyard.errors import SourceFailed

if TYPE_CHECKING:
    from steelyard.excitation import Design
    from steelyard.identification import DynamicModel
    from steelyard.trajectory import FourierTrajectory


@interruptible()
def command(
    source: SourceArgument,
    model: LiveModelOption,
    motion: Annotated[
        Path | None,
        typer.Option(help="A design to move by; a short one from where it stands by default."),
    ] = None,
    reach: Annotated[
        float, typer.Option(help="How far a joint may go from where it stands [rad].")
    ] = 0.6,
    period: Annotated[float, typer.Option(help="Length of the motion [s].")] = 6.0,
    speed: SpeedOption = 0.25,
    replace: ReplaceFlag = False,
    accuracy: AccuracyOption = 1.0,
    record: Annotated[
        Path | None,
        file_to_write("Where every row goes besides (.parquet or .arrows).", "--record"),
    ] = None,
    output: Annotated[
        Path | None, file_to_write("Where the payload goes (.json).", "--output", "-o")
    ] = None,
    set_it: Annotated[bool, typer.Option("--set", help="Set the payload without asking.")] = False,
    transition: TransitionOption = 0.5,
    rating: RatingOption = None,
    yes: YesFlag = False,
    page: PageFlag = False,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8080,
    urdf: UrdfOption = None,
    dark: DarkFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Moves the arm, weighs what it carries, and offers to set the payload on the controller.

    Exit code 1 when the answer is not to be trusted; then nothing is set.
    """
    from steelyard.errors import InvalidSamples
    from steelyard.identification import DynamicModel
    from steelyard.live import (
        LiveWeigher,
        MotionRun,
        Recorder,
        Stream,
        TorqueSetup,
        set_payload,
        snapshots_of,
        source_of,
    )
    from steelyard.live._commands import confirmed_plan
    from steelyard.live._controller import movable_of
    from steelyard.live._motion import (
        MotionPlan,
        MotionRequest,
        payload_motion,
        standing_posture,
    )

    out = Output(as_json)
    known = DynamicModel.load(model)
    controller = movable_of(source_of(source))
    if output is None:
        kept = None
    else:
        kept = output.with_suffix(".undo.json")
    with ExitStack() as pages:
        with ExitStack() as open_now:
            with Stream(controller) as before:
                posture = standing_posture(before, known.robot)
            design = partial(
                payload_motion, known, posture, period_s=period, reach=reach, tool_speed=speed
            )
            core = _core(out, known, motion, design)
            stream = open_now.enter_context(Stream(controller))
            request = MotionRequest(tool_speed=speed, replace_program=replace)
            plan = MotionPlan.of(stream, known.robot, core, request)
            plan = confirmed_plan(plan, stream, motion_question(out, yes=yes))
            if record is None:
                recorder = None
            else:
                recorder = open_now.enter_context(Recorder(record, stream.columns))
            weigher = LiveWeigher(TorqueSetup(known, stream.columns, source, accuracy / 100))
            place = opened_page(
                weigher,
                controller,
                is_requested=page,
                host=host,
                port=port,
                urdf=urdf,
                dark=dark,
                kept=kept,
            )
            served = pages.enter_context(place)
            if served is None:
                look = None
            else:
                look = served.look
            every_s = SNAPSHOT_STEP_S[page]
            run = open_now.enter_context(MotionRun(plan, stream, on_stop=show_stop))
            snapshots = snapshots_of(run, weigher, every_s=every_s, recorder=recorder, look=look)
            show_snapshots(snapshots, accuracy / 100, quiet=as_json)
        payload = weigher.payload()
        snapshot = weigher.snapshot()
        if payload is None or snapshot is None:
            if snapshot is None:
                why = ""
            else:
                why = f" ({snapshot.waiting})"
            raise InvalidSamples(f"{source}: nothing could be weighed{why}")
        payload = changed(payload, arm=plan.arm)
        if output is not None:
            payload.save(output)
        if not as_json:
            out.payload("What the arm carries (95 % intervals)", payload)
            print()
            out.verdict(payload.verdict)
        setting = None
        if payload.verdict.ok and (set_it or sys.stdin.isatty()):
            setting = set_payload(
                controller,
                payload,
                confirm=payload_question(out, yes=set_it),
                history_file=kept,
                rating_kg=rating,
                transition_s=transition,
            )
            show_setting(out, setting)
        stay(served)
    facts = payload.to_dict() | {
        "rows": snapshot.rows,
        "missing": snapshot.missing,
        "set": setting is not None and setting.is_set,
        "file": output,
    }
    out.emit(
        facts, lambda: None, files={"Payload": output, "Recording": record}, verdict=payload.verdict
    )


def _core(
    out: Output,
    model: DynamicModel,
    motion: Path | None,
    design: Callable[[], Design],
) -> FourierTrajectory:
    """The motion in a file, or a short one that is designed from where the arm stands."""
    if motion is not None:
        return arm_and_motion(motion, model.robot)[1]
    with out.progress("a short motion that shows a payload") as done:
        found = design().trajectory
        done(1.0)
    return found


# --- the demo

_ROBOT = "ur10e"
_MASS = "2.5"
_COM = "0.01,0.02,0.05"


@interruptible()
def show_live(folder: Path, *, as_json: bool) -> None:
    """Identifies an empty arm, then moves and weighs a loaded one and sets its payload."""
    out = Output(as_json)
    folder.mkdir(parents=True, exist_ok=True)
    model = _identified(out, folder / "live_model.json")
    with _controller(_ROBOT, "--rtde", "127.0.0.1:0", "--mass", _MASS, "--com", _COM) as address:
        if not as_json:
            print(
                f"A simulated {_ROBOT} at {address} carries {_MASS} kg; its controller believes in"
                " nothing."
            )
        command(
            address,
            model,
            output=folder / "live_payload.json",
            yes=True,
            set_it=True,
            as_json=as_json,
        )


def _identified(out: Output, path: Path) -> Path:
    """The model of the empty arm, from a simulated run of currents."""
    from steelyard.identification import identify
    from steelyard.robot import load_robot
    from steelyard.signals import prepare
    from steelyard.simulation import SimulationOptions, simulate
    from steelyard.trajectory import FourierTrajectory
    from steelyard.twin._backend import NOMINAL_GAINS

    robot = load_robot(_ROBOT)
    exact = changed(robot.drive, gain=np.array(NOMINAL_GAINS), gain_std=np.zeros(6))
    robot = robot.with_drive(exact)  # of a simulated arm
    with out.progress(f"MuJoCo: the empty {_ROBOT} runs the trajectory of xu2024") as done:
        run = simulate(
            robot, FourierTrajectory.load("xu2024"), options=SimulationOptions(progress=done)
        )
    identify(robot, prepare(run.recording, drive=robot.drive)).save(path)
    return path


@contextmanager
def _controller(*options: str) -> Iterator[str]:
    """The address of a simulated controller that runs meanwhile."""
    words = [sys.executable, "-m", "steelyard", "serve", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=sys.stderr, text=True) as child:
        try:
            if child.stdout is not None:
                line = child.stdout.readline()
            else:
                line = ""
            port = re.search(r"RTDE (\d+)", line)
            if port is None:
                raise SourceFailed(f"the simulated controller did not start: {line}")
            yield f"ur://127.0.0.1:{port[1]}"
        finally:
            child.terminate()
