"""Contacts of an arm in a recording: an observer, thresholds that are learned or fixed, detection."""

from __future__ import annotations

from pathlib import Path

from steelyard._computing import one_blas_thread
from steelyard.control.collision import Detections, Detector, Observer, Thresholds
from steelyard.control.collision._observer import ObserverKind
from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel
from steelyard.payload import Payload
from steelyard.recording import Recording
from steelyard.robot import DriveModel
from steelyard.workflow._data import Data, runs_of

_FIXED = 6.0
_FIXED_UNIT = "Nm"  # gaz2017


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
    """Contacts: when, at which joint, in which direction, and from which link outwards.

    Args:
        model: of the empty arm, or its file
        data: what to search: a file, a recording or a table
        payload: what the arm carries, or its file; nothing by default
        learn: a motion without contact, which shows thresholds and the friction of the day
        false_alarms_per_hour: how many are allowed, of learned thresholds, [1/h]
        threshold: the same for all residuals, instead of learned ones, [Nm, N or W]; 6 Nm by
            default
        observer: 'momentum', 'inverse-dynamics' or 'energy'
        bandwidth_hz: of the observer's filter, [Hz]
    """
    if learn is not None and threshold is not None:
        raise InvalidSamples("thresholds are learned (--learn) or fixed (--threshold), not both")
    if isinstance(model, DynamicModel):
        arm = model
    else:
        arm = DynamicModel.load(model)
    load = Payload.load(payload) if isinstance(payload, str | Path) else payload
    watcher = Observer.of(arm, load, kind=observer, gain_hz=bandwidth_hz)
    if learn is not None:
        free, drive = _recording(arm, learn)
        rate = false_alarms_per_hour
        detector = Detector.learned(watcher, free, drive=drive, false_alarms_per_hour=rate)
    elif threshold is None and watcher.unit != _FIXED_UNIT:
        raise InvalidSamples(
            f"the {observer} observer judges {watcher.unit}, for which there is no usual limit:"
            " give"
            f" --threshold in {watcher.unit}, or --learn"
        )
    else:
        detector = Detector(
            watcher, Thresholds.fixed(watcher, _FIXED if threshold is None else threshold)
        )
    watched, drive = _recording(arm, data)
    return detector.detect(watched, drive=drive)


def _recording(model: DynamicModel, data: Data) -> tuple[Recording, DriveModel | None]:
    """The one recording in data, and the drives that make torques of its currents."""
    runs = runs_of(data, model.robot)
    if len(runs) != 1 or runs[0].recording is None:
        raise InvalidSamples(
            f"contacts are searched in one recording, as measured; got {len(runs)}"
        )
    return runs[0].recording, runs[0].drive_for(model)
