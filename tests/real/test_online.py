"""A real UR10e tracked sample by sample: the authors' payloads lie within the intervals."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from steelyard.identification import identify
from steelyard.identification.gains import gains_from_targets
from steelyard.io import read
from steelyard.robot import load_robot
from steelyard.signals import Preparation, prepare, replay
from steelyard.torque.tracking import TorqueTracker, TorqueTrackerOptions

DATA = Path(__file__).parents[3] / "shared" / "data" / "ur10e"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no recordings in {DATA}")
HOW = Preparation(cutoff_hz=10.0)


def empty_arm(name):
    recording = read(DATA / "unloaded" / f"{name}.npz")
    gains = gains_from_targets(recording)
    robot = load_robot("ur10e")
    robot = robot.with_drive(replace(robot.drive, gain=gains.value, gain_std=gains.std))
    return identify(robot, prepare(recording, HOW, drive=robot.drive), friction="presliding-load")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("empty", "loaded", "mass", "error"),
    [
        ("ur-20_02_19_14harm50sec", "ur-20_02_19_14harm50secLoad", 2.805, 0.015),
        ("ur-19_12_23_free", "ur-19_12_23_load", 1.069, 0.04),
    ],
)
def test_ur10e_weighs_while_it_moves(empty, loaded, mass, error):
    model = empty_arm(empty)
    estimator = TorqueTracker(model, "measured", options=TorqueTrackerOptions(accuracy=0.1))
    recording = read(DATA / "loaded" / f"{loaded}.npz")
    state, inside, sure_s = estimator.init(), [], np.inf
    for i, sample in enumerate(replay(recording, HOW, drive=model.robot.drive)):
        state = estimator.step(state, sample)
        if i % 100 == 99 and state.last_s > 3.0:
            found = estimator.estimate(state, physical=False)
            inside.append(abs(found.body.mass - mass) < 1.96 * found.std[0])
            if 1.96 * found.std[0] < 0.1 * mass:
                sure_s = min(sure_s, state.last_s)
    found = estimator.estimate(state)
    assert not state.history  # nothing was taken or dropped
    assert found.body.mass == pytest.approx(mass, rel=error)
    assert abs(found.body.mass - mass) < 1.96 * found.std[0] < 0.1 * mass
    assert np.mean(inside) > 0.9  # along the way too
    assert sure_s < 15.0
    assert found.body.is_physical
