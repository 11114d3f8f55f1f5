"""A real UR10e, touched and pushed: thresholds of a free motion that day find contacts."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.control.collision import Detector, Observer
from steelyard.errors import InvalidRecording
from steelyard.identification import identify
from steelyard.identification.gains import gains_from_targets
from steelyard.io import read
from steelyard.robot import load_robot
from steelyard.signals import Preparation, prepare

TOUCHED_S = (4.9, 7.2, 11.4, 13.8, 16.2, 20.1, 24.6, 28.6, 39.1, 47.5, 54.6)
PUSHED_S = (2.3, 5.3, 9.0, 12.6)


@pytest.fixture(scope="module")
def contact(shared_data):
    folder = shared_data / "ur10e"
    if not folder.is_dir():
        pytest.skip("no real recordings here")
    return lambda name: read(folder / f"{name}.npz")


@pytest.fixture(scope="module")
def drive(contact):
    names = ("ur-20_02_19_14harm50sec", "ur-20_02_12-50sec_12harm")
    gains = gains_from_targets([contact(f"unloaded/{name}") for name in names])
    return replace(load_robot("ur10e").drive, gain=gains.value)


@pytest.fixture(scope="module")
def observer(contact, drive):
    samples = prepare(
        contact("unloaded/ur-20_02_19_14harm50sec"), Preparation(cutoff_hz=10.0), drive=drive
    )
    model = identify(load_robot("ur10e"), samples, friction="presliding-load")
    return Observer.of(model)


@pytest.fixture(scope="module")
def found(contact, drive, observer):
    detector = Detector.learned(observer, contact("contact/collision_free"), drive=drive)
    return lambda name: detector.detect(contact(name), drive=drive)


def others(contacts, listed, within_s=0.3):
    near = [
        {i for i, c in enumerate(contacts) if c.start_s - within_s <= x <= c.end_s + within_s}
        for x in listed
    ]
    return sum(not hits for hits in near), len(contacts) - len(set().union(*near))


@pytest.mark.thorough
def test_touches_of_link_3_in_motion_are_found(found):
    detections = found("contact/collision_3link")
    missed, more = others(detections.contacts, TOUCHED_S)
    assert missed <= 1
    assert more <= 3
    assert detections.verdict.doubts == ()
    assert {c.link for c in detections.contacts} <= {"link1", "link2", "link3", "link4"}


def test_pushes_of_a_resting_arm_are_found_and_its_static_friction_is_not(found):
    detections = found("contact/ur-20_01_22-push_pose_1")
    assert others(detections.contacts, PUSHED_S) == (0, 0)
    resting = detections.residuals.t > 14
    assert (
        np.abs(detections.residuals.residual[resting, 0]).min() > 5
    )  # friction, more than in motion
    assert not np.any(
        np.abs(detections.residuals.beyond_friction[resting]) > detections.threshold[resting]
    )


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["collision_3link", "ur-20_01_22-push_pose_1"])
def test_a_learning_motion_with_contacts_is_refused(contact, drive, observer, name):
    with pytest.raises(InvalidRecording, match="the learning motion is not free"):
        Detector.learned(observer, contact(f"contact/{name}"), drive=drive)


def test_the_second_half_of_a_free_motion_has_no_contact(contact, drive, observer):
    recording = contact("unloaded/ur-20_02_12-40sec_12harm")
    half_s = recording.duration_s / 2
    detector = Detector.learned(observer, recording.between(0, half_s), drive=drive)
    watched = detector.detect(recording.between(half_s, 2 * half_s), drive=drive)
    assert watched.contacts == ()
