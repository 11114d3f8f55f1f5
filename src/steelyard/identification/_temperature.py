"""How far the gains of drives may drift with temperature between the empty and the loaded runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard._arrays import Array
from steelyard.identification._model import DynamicModel
from steelyard.robot._drive import GAIN_DRIFT_PER_KELVIN
from steelyard.verdict import Doubt, DoubtKind


def with_temperature_drift(
    model: DynamicModel, temperature: Array | None
) -> tuple[DynamicModel, tuple[Doubt, ...]]:
    """The model with the gain drift that temperatures suggest, and a doubt if it is large.

    Args:
        model: of the empty arm
        temperature: of the drives in the loaded runs, (n,) [K or degrees Celsius]; None if unknown
    """
    drive = model.robot.drive
    if not model.from_currents or not drive.gain_drift:
        return model, ()
    if model.temperature is None or temperature is None:
        return model, ()
    kelvins = temperature - model.temperature
    j = int(np.abs(kelvins).argmax())
    drift = GAIN_DRIFT_PER_KELVIN * abs(float(kelvins[j]))
    drifting = replace(drive, gain_drift=float(np.hypot(drive.gain_drift, drift)))
    drifted = replace(model, robot=model.robot.with_drive(drifting))
    if drift <= drive.gain_drift:
        return drifted, ()
    words = (
        f"the temperature of {model.robot.joint_names[j]} differs by {kelvins[j]:+.0f} K from that"
        f" of the identification: gains may have changed by {100 * drift:.1f} %"
    )
    return drifted, (Doubt(DoubtKind.GAINS, words, blocks=False),)
