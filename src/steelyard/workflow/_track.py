"""`track` of a recording: by joint torques with a model, or by a wrist sensor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steelyard._computing import one_blas_thread
from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.io._wrist import SensorDescription
from steelyard.robot import RobotModel
from steelyard.workflow._torque_tracking import TorqueReplay
from steelyard.workflow._tracking import OnProgress, Replay, Tracking, TrackingOptions, tracked
from steelyard.workflow._wrist_tracking import WristReplay


@one_blas_thread()
def track_recording(
    source: Any,
    *,
    model: DynamicModel | str | Path | None = None,
    robot: RobotModel | str | None = None,
    sensor: SensorDescription | str | Path | None = None,
    accuracy: float = 0.01,
    resume: str | Path | None = None,
    on_progress: OnProgress | None = None,
    options: TrackingOptions | None = None,
) -> Tracking:
    """What the arm carries, sample by sample, from a recording.

    With a model alone, from joint torques or motor currents; else from a wrist sensor.

    Args:
        source: a file, a recording, samples or a table
        model: of the empty arm, or its file
        robot: the arm, or its name or file, for a wrist sensor on an arm with joints
        sensor: what the wrist sensor is, or the TOML file of it
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
        resume: a file that `Tracking.save_state` wrote, to continue from
        on_progress: called with each point of the curve as it becomes known
        options: how samples are made and tracked
    """
    options = options or TrackingOptions()
    replay: Replay
    if model is None and robot is None and sensor is None and isinstance(source, str | Path):
        raise InvalidSamples(
            "give `model` to weigh with joint torques, or `sensor` or `robot` with a wrist sensor"
        )
    if model is not None and sensor is None:
        replay = TorqueReplay.of(source, model, accuracy, options)
    else:
        if isinstance(model, str | Path):
            model = DynamicModel.load(model)
        if robot is None and model is not None:
            robot = model.robot
        replay = WristReplay.of(source, robot, sensor, accuracy, options)
    real_time = options.real_time
    return tracked(replay, resume=resume, real_time=real_time, on_progress=on_progress)
