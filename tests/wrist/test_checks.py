"""Corrupted wrenches and clocks: each gives a blocking doubt, in a batch and when tracking."""

import re

import numpy as np
import pytest

from steelyard import track_wrist, weigh_wrist
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.verdict import DoubtKind
from steelyard.wrist import Postures, WristRecording, weigh_static
from steelyard.wrist._checks import coarse_reading_doubt, reading_steps
from tiers import thorough_but
from wrist_streams import DRIFT, LOADS, rows

LONGEST_SENTENCE = 25  # words


def swapped(wrench, first, second):
    out = wrench.copy()
    out[:, [first, second]] = wrench[:, [second, first]]
    return out


def scaled(forces):
    return lambda wrench: wrench * [*forces, 1, 1, 1]


def recording(stream, *, corrupt=lambda wrench: wrench, clock=1.0):
    t, q, wrench = (np.array(x) for x in zip(*stream, strict=True))
    names = load_robot("ur10").joint_names
    return Recording(
        clock * t,
        q,
        names,
        wrench=corrupt(wrench),
        wrench_frame="flange",
        wrench_convention="load_on_sensor",
    )


CORRUPTIONS = {
    "fx and fy swapped": (1, lambda w: swapped(w, 0, 1)),
    "fy and fz swapped": (2, lambda w: swapped(w, 1, 2)),
    "tx and ty swapped": (3, lambda w: swapped(w, 3, 4)),
    "fx reversed": (1, lambda w: w * [-1, 1, 1, 1, 1, 1]),
    "torques in Nmm": (1, lambda w: w * [1, 1, 1, 1e3, 1e3, 1e3]),
}
"""Seed of the rows, and what is done to their wrench."""

FORCE_SCALES = {
    "fx x1.2": (1, [1.2, 1, 1]),
    "fy x1.1": (2, [1, 1.1, 1]),
    "fz x0.9": (3, [1, 1, 0.9]),
}
"""Seed of the rows, and the scales of the forces."""

WRONG_CLOCKS = {"clock too slow": (2, 1.1), "clock too fast": (3, 0.9)}
"""Seed of the rows, and seconds of the recording for each true one."""

FAULTS = (*CORRUPTIONS, *FORCE_SCALES, *WRONG_CLOCKS)


def corrupted(name):
    """A recording with a fault, and the doubt that it must raise."""
    if name in WRONG_CLOCKS:
        seed, clock = WRONG_CLOCKS[name]
        return recording(rows(seed=seed), clock=clock), DoubtKind.GRAVITY
    if name in FORCE_SCALES:
        seed, scales = FORCE_SCALES[name]
        return recording(rows(seed=seed), corrupt=scaled(scales)), DoubtKind.TORQUE_SCALE
    seed, corrupt = CORRUPTIONS[name]
    return recording(rows(seed=seed), corrupt=corrupt), DoubtKind.UNEXPLAINED_TORQUE


def blocking_kinds(payload):
    return {doubt.kind for doubt in payload.verdict.blocking}


@pytest.mark.parametrize("name", FAULTS)
def test_a_corrupted_recording_is_doubted_in_a_batch(name):
    faulty, kind = corrupted(name)
    payload = weigh_wrist(dynamic=faulty, robot="ur10")
    assert kind in blocking_kinds(payload)
    for doubt in payload.verdict.blocking:
        assert max(len(x.split()) for x in doubt.words.split("; ")) <= LONGEST_SENTENCE


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    ["fy and fz swapped", "tx and ty swapped", "torques in Nmm", "clock too slow", *FORCE_SCALES],
)
def test_a_corrupted_recording_is_doubted_when_tracking(name):
    faulty, kind = corrupted(name)
    found = track_wrist(faulty, "ur10")
    assert kind in blocking_kinds(found.payload)


def test_a_load_that_loses_a_part_is_doubted_in_a_batch():
    def lost(wrench):
        later = np.arange(len(wrench)) > len(wrench) / 2
        return wrench - 0.2 * later[:, None] * (wrench - DRIFT)

    payload = weigh_wrist(dynamic=recording(rows(seed=6), corrupt=lost), robot="ur10")
    (doubt,) = (x for x in payload.verdict.blocking if x.kind == DoubtKind.LOAD_CHANGED)
    assert re.match(
        r"the load changes by -(19|20|21) % in part [456] of 6 of the run:", doubt.words
    )


@pytest.mark.parametrize(
    "forces", thorough_but([[1, 0.97, 1]], [[1.04, 1, 1], [1, 0.97, 1], [1, 1, 1.03]])
)
def test_the_interval_spans_forces_of_different_scales(forces):
    """The data do not tell which axis is right, so each may be: the mass is that of one of them."""
    faulty = recording(rows(seed=4), corrupt=scaled(forces))
    difference = np.ptp(forces)
    for payload in (weigh_wrist(dynamic=faulty, robot="ur10"), track_wrist(faulty, "ur10").payload):
        truth = LOADS["LOAD"].mass
        half = 1.96 * payload.std[0]
        assert abs(payload.mass - truth) < half
        assert 0.8 * difference * truth < half < 1.4 * difference * truth


@pytest.mark.thorough
@pytest.mark.parametrize(("seed", "slow"), [(4, 0.0), (5, 1.0)])
def test_a_sound_recording_is_not_doubted(seed, slow):
    sound = recording(rows(seed=seed, slow=slow))
    for payload in (
        weigh_wrist(dynamic=sound, robot="ur10"),
        track_wrist(sound, "ur10").payload,
    ):
        assert payload.verdict.ok
        truth = LOADS["LOAD"].mass
        assert abs(payload.unconstrained.mass - truth) < 4 * payload.std[0]


def test_truncated_readings_are_doubted_and_rounded_ones_are_not():
    step = np.array([2.0, 2.0, 2.0, 0.2, 0.2, 0.2])
    stream = rows(seed=1)
    truncated = recording(stream, corrupt=lambda w: np.trunc(w / step) * step)
    doubted = weigh_wrist(dynamic=truncated, robot="ur10")
    assert DoubtKind.RECORDING in blocking_kinds(doubted)
    rounded = recording(stream, corrupt=lambda w: np.round(w / step) * step)
    payload = weigh_wrist(dynamic=rounded, robot="ur10")
    assert not blocking_kinds(payload)
    assert payload.mass == pytest.approx(LOADS["LOAD"].mass, rel=0.01)


def test_readings_that_may_be_cut_off_are_doubted_if_that_matters():
    """Half a step of 2 N is 0.1 kg: less than a half-width of 0.12 kg, more than one of 0.08 kg."""
    step = np.array([2.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    assert coarse_reading_doubt(step, 0.12 / 1.96, 9.81) is None
    doubt = coarse_reading_doubt(step, 0.08 / 1.96, 9.81)
    assert doubt.blocks
    assert "multiples of 2 N" in doubt.words
    assert "by up to 0.1 kg" in doubt.words
    assert coarse_reading_doubt(np.zeros(6), 1e-6, 9.81) is None


def test_truncated_readings_of_one_sign_are_weighed():
    """Their bias is constant, and nothing distinguishes it from the zero drift."""
    step = np.array([2.0, 2.0, 2.0, 0.2, 0.2, 0.2])
    shift = np.array([200.0, 200.0, 200.0, 40.0, 40.0, 40.0])
    truncated = recording(rows(seed=1), corrupt=lambda w: np.trunc((w + shift) / step) * step)
    payload = weigh_wrist(dynamic=truncated, robot="ur10")
    assert payload.mass == pytest.approx(LOADS["LOAD"].mass, rel=0.01)
    assert not blocking_kinds(payload)


def test_the_step_of_readings_is_found(rng):
    fine = rng.normal(size=(500, 6))
    assert (reading_steps(fine) == 0).all()
    step = np.array([0.25, 0.1, 0.5, 0.01, 0.02, 0.05])
    np.testing.assert_allclose(reading_steps(np.round(12 * fine) * step), step)


def test_postures_with_swapped_axes_are_doubted():
    stream = rows(seed=1, rests=True, seconds=30.0)
    robot = load_robot("ur10")
    sound = weigh_static(Postures.of(WristRecording.of_joints(recording(stream), robot)))
    assert not sound.verdict.has(DoubtKind.UNEXPLAINED_TORQUE)
    corrupted = recording(stream, corrupt=lambda w: swapped(w, 3, 4))
    found = weigh_static(Postures.of(WristRecording.of_joints(corrupted, robot)))
    assert DoubtKind.UNEXPLAINED_TORQUE in {doubt.kind for doubt in found.verdict.blocking}
