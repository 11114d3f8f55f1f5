"""Gains of a real UR10e: its controller's own, and those that a weighed payload shows."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from steelyard.identification import identify
from steelyard.identification.gains import (
    gains_from_known_mass,
    gains_from_targets,
    scaled_by_targets,
)
from steelyard.identification.gains._scale import SMOOTH_HZ
from steelyard.io import read
from steelyard.recording import Preparation
from steelyard.robot import load_robot
from steelyard.robot._drive import GAIN_DRIFT
from steelyard.signals import prepare
from steelyard.torque import weigh

DATA = Path(__file__).parents[3] / "shared" / "data" / "ur10e"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no recordings in {DATA}")

TRIAL = np.array([12.0, 12.0, 9.83, 10.8, 10.6, 10.5])
"""From an earlier trial with linear friction (DESIGN.md, 5), [Nm/A]."""
FOURIER = (
    "unloaded/ur-19_12_23_free",
    "unloaded/ur-20_01_17-ptp_10_points",
    "unloaded/ur-20_02_05-20sec_8harm",
    "unloaded/ur-20_02_12-40sec_12harm",
    "unloaded/ur-20_02_12-50sec_12harm",
    "unloaded/ur-20_02_19_14harm50sec",
    "loaded/ur-19_12_23_load",
    "loaded/ur-20_02_19_14harm50secLoad",
)
SWEEPS = tuple(f"unloaded/ur-20_01_22-joint_{j}" for j in (1, 2, 3))


def recorded(name):
    return read(DATA / f"{name}.npz")


@cache
def from_targets(name):
    return gains_from_targets(recorded(name))


@pytest.mark.thorough
@pytest.mark.parametrize("name", FOURIER)
def test_each_motion_of_all_joints_tells_all_gains(name):
    gains = from_targets(name)
    assert gains.known.all()
    np.testing.assert_allclose(gains.value, TRIAL, rtol=0.03)
    assert (gains.std < 0.005 * gains.value).all()


@pytest.mark.parametrize("name", SWEEPS)
def test_a_sweep_of_one_joint_tells_those_that_it_shakes(name):
    gains = from_targets(name)
    np.testing.assert_array_equal(gains.known, [True] * 5 + [False])
    np.testing.assert_allclose(gains.value[:5], TRIAL[:5], rtol=0.03)
    assert gains.verdict.blocking[0].words.startswith("the gains of joint6 are unknown: ")


@pytest.mark.thorough
def test_recordings_agree_within_what_they_claim():
    found = [from_targets(name) for name in (*FOURIER, *SWEEPS)]
    value = np.array([gains.value for gains in found])
    std = np.array([gains.std for gains in found])
    precision = 1 / std**2
    mean = np.nansum(value * precision, axis=0) / precision.sum(axis=0)
    z = ((value - mean) / std)[np.isfinite(value)]
    assert np.mean(np.abs(z) < 1.96) > 0.85
    assert np.nanmax(np.abs(value / mean - 1)) < 0.01
    np.testing.assert_allclose(mean[3:], mean[3], rtol=0.003)  # the three wrists are one size
    np.testing.assert_allclose(mean[:2], mean[0], rtol=0.003)  # and so are base and shoulder


def test_at_rest_with_a_push_the_wrist_stays_unknown():
    gains = gains_from_targets(read(DATA / "contact" / "ur-20_01_22-push_pose_1.npz"))
    np.testing.assert_array_equal(gains.known, [False, True, True, False, False, False])
    np.testing.assert_allclose(gains.value[1:3], TRIAL[1:3], rtol=0.03)


@pytest.mark.thorough
def test_the_controllers_model_shows_one_scale_that_does_not_hang_on_a_run():
    names = [name for name in FOURIER if name.startswith("unloaded")]
    robot, recordings = load_robot("ur10e"), [recorded(name) for name in names]
    gains, how = gains_from_targets(recordings), Preparation(cutoff_hz=SMOOTH_HZ)
    drive = gains.in_drive(robot.drive)
    measured = [prepare(part, how, drive=drive) for part in recordings]
    targets = [
        prepare(replace(part, tau=part.tau_target, current=None), how) for part in recordings
    ]
    k, std = [], []
    for without in (None, *range(len(names))):
        kept = [i for i in range(len(names)) if i != without]
        scaled = scaled_by_targets(
            gains, robot, [measured[i] for i in kept], [targets[i] for i in kept]
        )
        k.append(float(np.log(scaled.value / gains.value)[0]))
        std.append(scaled.common[0, 0])
        agree = re.search(r"runs agree to ([0-9.]+) %", scaled.verdict.summary)
        assert float(agree[1]) < 100 * GAIN_DRIFT  # over two months
    assert abs(k[0] - 0.011) < 1.96 * np.hypot(std[0], 0.004)  # an earlier trial (DESIGN.md, 8)
    assert std[0] < 0.008
    np.testing.assert_allclose(k[1:], k[0], atol=0.003)


@pytest.mark.thorough
@pytest.mark.parametrize("offset", [-0.15, 0.15])
def test_a_weighed_payload_agrees_with_the_controller(offset):
    reference = from_targets("unloaded/ur-20_02_19_14harm50sec")
    robot, gain = load_robot("ur10e"), reference.value * (1 + offset)
    robot = robot.with_drive(replace(robot.drive, gain=gain, gain_std=0.2 * gain))
    empty, loaded = (
        prepare(recorded(name), drive=robot.drive)
        for name in ("unloaded/ur-20_02_19_14harm50sec", "loaded/ur-20_02_19_14harm50secLoad")
    )
    model = identify(robot, empty)
    gains = gains_from_known_mass(
        model, weigh(model, loaded), 2.805, empty=[empty], loaded=[loaded]
    )
    far = np.abs(np.log(gains.value / reference.value)) / (gains.std / gains.value)
    assert (far < 4).all()
    assert "payload of 2.805 kg" in gains.verdict.sentence
    assert gains.known[1:].all()
