"""Contacts of an arm in a recording, by an observer with learned or fixed thresholds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from steelyard._arrays import Array
from steelyard._computing import one_blas_thread
from steelyard.control.collision import Detections, Detector, Observer, Thresholds
from steelyard.control.collision._observer import ObserverKind
from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.payload import Payload
from steelyard.recording import Recording
from steelyard.robot import DriveModel
from steelyard.workflow._data import Data, identified_arm, runs_of

_DEFAULT_LEVEL = 5.0  # standard deviations of the torques around the model of the empty arm
_MIN_THRESHOLD = 1e-3  # [Nm or N], of a joint without noise
_DEFAULT_UNIT = "Nm"


@one_blas_thread()
def collisions(
    model: DynamicModel | str | Path,
    data: Data,
    *,
    payload: Payload | str | Path | None = None,
    learn: Data | None = None,
    false_alarms_per_hour: float = 1.0,
    threshold: float | None = None,
    observer: ObserverKind = "momentum",
    bandwidth_hz: float = 5.0,
) -> Detections:
    """The contacts of a recording: time, joint, direction, and most proximal link.

    Args:
        model: of the empty arm, or its file
        data: to search: a file, a recording or a table
        payload: of the arm, or its file; none by default
        learn: a motion without contact, for thresholds and the friction of the day
        false_alarms_per_hour: rate for learned thresholds, [1/h]
        threshold: fixed threshold of all residuals, instead of learned ones, [Nm, N or W]; by
            default that of each joint is five times the noise of its torques around the model
        observer: 'momentum', 'inverse-dynamics' or 'energy'
        bandwidth_hz: of the observer's filter, [Hz]
    """
    if learn is not None and threshold is not None:
        raise InvalidSamples(
            "thresholds are learned or fixed: give `learn` or `threshold`, not both"
        )
    arm = identified_arm(model)
    load = Payload.load(payload) if isinstance(payload, str | Path) else payload
    watcher = Observer.of(arm, load, kind=observer, gain_hz=bandwidth_hz)
    if learn is not None:
        free, drive = _recording(arm, learn)
        rate = false_alarms_per_hour
        detector = Detector.learned(watcher, free, drive=drive, false_alarms_per_hour=rate)
    elif threshold is None and watcher.unit != _DEFAULT_UNIT:
        raise InvalidSamples(
            f"residuals of the {observer} observer are in {watcher.unit}, for which there is no"
            " default threshold: give `threshold` or `learn`"
        )
    else:
        limit: float | Array = np.maximum(_DEFAULT_LEVEL * arm.estimate.noise, _MIN_THRESHOLD)
        if threshold is not None:
            limit = threshold
        detector = Detector(watcher, Thresholds.fixed(watcher, limit))
    watched, drive = _recording(arm, data)
    return detector.detect(watched, drive=drive)


def _recording(model: DynamicModel, data: Data) -> tuple[Recording, DriveModel | None]:
    """The only recording in data, and the drives that convert its currents to torques."""
    runs = runs_of(data, model.robot)
    if len(runs) != 1 or runs[0].recording is None:
        raise InvalidSamples(
            f"contacts are detected in a single recording as measured, got {len(runs)}"
        )
    return runs[0].recording, runs[0].drive_for(model)
