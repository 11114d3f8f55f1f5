"""When a payload must not be believed, it says so; and what shares an error shares it."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from steelyard.errors import InvalidSamples, SteelyardError
from steelyard.identification import DynamicModel, identify
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Samples
from steelyard.robot import DriveModel, load_robot
from steelyard.torque import weigh
from steelyard.torque.methods import METHODS, WeighingProblem
from steelyard.torque.methods._problem import fixed_rows
from steelyard.torque.methods._static import _posture_rows
from steelyard.verdict import DoubtKind
from torque_runs import LOAD, held, moving

DRIVE = DriveModel(
    np.full(6, 0.5), coulomb=np.full(6, 5.0), viscous=np.full(6, 3.0), sign_width=0.02
)


@pytest.fixture(scope="module")
def arm():
    robot = load_robot("ur10").with_drive(DRIVE)
    return robot, identify(robot, [moving(robot, 0, 0.5), moving(robot, 5, 0.5, 3)])


@pytest.mark.parametrize("start", [150, 300])
def test_the_covariance_of_a_short_run_is_positive(arm, start):
    robot, model = arm
    samples = moving(robot.with_payload(LOAD), 5, 0.5, 2).rows(slice(start, start + 80))
    answer = METHODS["direct"](WeighingProblem(model, [samples], fixed_rows({})))
    known = ~answer.unknown
    assert known[:4].all()
    assert np.linalg.eigvalsh(answer.covariance[np.ix_(known, known)]).min() > 0
    weigh(model, samples)


@pytest.mark.parametrize("method", ["difference", "weighted-difference"])
@pytest.mark.parametrize("N", [4, 50])
def test_the_difference_of_few_samples_is_refused_or_doubted(arm, method, N):
    robot, model = arm
    samples = moving(robot.with_payload(LOAD), 1, 0.5, 2).rows(slice(200, 200 + N))
    found = None
    with suppress(SteelyardError):
        found = weigh(model, samples, method=method)
    assert found is None or not found.verdict.ok


def test_friction_at_rest_does_not_depend_on_how_postures_follow_each_other():
    robot = load_robot("ur10").with_drive(DRIVE)
    model = identify(
        robot, [moving(robot, 0, 0.5), moving(robot, 5, 0.5, 3)], friction="presliding"
    )
    q = np.tile([0.3, -1.0, 1.2, -0.5, 0.7, 0.2], (10, 1))
    q[:, 3:] += np.random.default_rng(0).uniform(-0.5, 0.5, (10, 3))
    rests = Samples(q, 0 * q, 0 * q, robot.gravity_torque(q), 100.0, robot.joint_names, "measured")
    width = _posture_rows(WeighingProblem(model, [rests], fixed_rows({})))[1]
    assert (width > 0.9 * 5.0 / np.sqrt(3)).all()


@pytest.mark.parametrize("method", ["direct", "combined"])
def test_an_arm_that_has_changed_is_noticed(arm, method):
    robot, model = arm
    links = list(robot.links)
    links[2] = links[2] + InertialParameters.from_com(
        0.8, [0.3, 0.2, 0.1], 0.01 * np.eye(3), links[2].frame
    )
    other = robot.with_links(links).with_payload(LOAD)
    found = weigh(model, [moving(other, 1, 0.5, 2), held(other, 300, 2, 0.5)], method=method)
    assert "the loaded torques contradict the model of the empty arm" in found.status
    assert found.verdict.has(DoubtKind.CONTRADICTS_MODEL)
    assert not found.verdict.ok


def test_an_arm_without_a_load_gives_a_doubtful_mass(arm):
    robot, model = arm
    nothing = weigh(model, moving(robot, 1, 0.5, 2))
    assert "cannot be distinguished from zero" in nothing.status
    assert not nothing.verdict.ok
    assert nothing.verdict.has(DoubtKind.NOTHING_CARRIED)


def test_a_fixed_number_that_the_data_contradict_is_reported(arm):
    robot, model = arm
    samples = moving(robot.with_payload(LOAD), 1, 0.5, 2)
    std = weigh(model, samples).std[0]
    assert weigh(model, samples, fixed={"mass": LOAD.mass + 2 * std}).verdict.ok
    wrong = weigh(model, samples, fixed={"mass": LOAD.mass + 12 * std})
    assert "the data contradict mass as given" in wrong.status
    assert wrong.verdict.has(DoubtKind.CONTRADICTS_GIVEN)
    assert not wrong.verdict.ok
    with pytest.raises(InvalidSamples, match="'m' and 'mass' are the same number"):
        weigh(model, samples, fixed={"m": 3.0, "mass": 3.5})


def test_fixed_numbers_that_leave_no_body_are_not_trusted(arm):
    robot, model = arm
    body = InertialParameters.from_com(5.0, [0.02, 0.0, 0.25], 1e-3 * np.eye(3))
    found = weigh(model, moving(robot.with_payload(body), 1, 0.5, 2), fixed={"inertia": 0.0})
    assert found.verdict.has(DoubtKind.NOT_PHYSICAL)
    assert not found.verdict.ok


def test_tool_and_part_share_the_error_of_the_gains_also_when_saved(tmp_path):
    gain = np.full(6, 10.0)
    robot = load_robot("ur10").with_drive(replace(DRIVE, gain=gain, gain_std=0.02 * gain))
    tooled = robot.with_payload(LOAD)
    tool = weigh(
        identify(robot, [moving(robot, 0, 0.01), moving(robot, 1, 0.01, 3)]),
        moving(tooled, 2, 0.01, 2),
    )
    model = identify(tooled, [moving(tooled, 0, 0.01), moving(tooled, 1, 0.01, 3)])
    part = weigh(model, moving(tooled.with_payload(LOAD), 2, 0.01, 2))
    tool.save(tmp_path / "tool.json")
    both = part.together_with(Payload.load(tmp_path / "tool.json"))
    assert both.std[0] == pytest.approx(part.std[0] + tool.std[0], rel=0.05)
    np.testing.assert_allclose(both.gain_error, part.gain_error + tool.gain_error)


def test_torques_of_currents_and_measured_torques_are_not_mixed(tmp_path):
    robot = load_robot("ur10")
    gain = np.asarray(robot.drive.gain)
    made = replace(moving(robot, 0, 0.5), gain=gain)
    model = identify(robot, made)
    np.testing.assert_allclose(model.robot.drive.gain_std, 0.01 * gain)
    np.testing.assert_allclose(model.robot.drive.gain_common, 0.02)
    model.save(tmp_path / "model.json")
    loaded = moving(robot.with_payload(LOAD), 1, 0.5, 2)
    for again in (model, DynamicModel.load(tmp_path / "model.json")):
        assert weigh(again, replace(loaded, gain=gain)).gain_error is not None
        with pytest.raises(InvalidSamples, match="fitted to torques from motor currents"):
            weigh(again, loaded)
        with pytest.raises(InvalidSamples, match="these torques were converted with"):
            weigh(again, replace(loaded, gain=1.05 * gain))
    with pytest.raises(InvalidSamples, match="fitted to measured torques, these"):
        weigh(identify(robot, moving(robot, 0, 0.5)), replace(loaded, gain=gain))
    with pytest.raises(InvalidSamples, match="with other gains than the rest"):
        identify(robot, [made, moving(robot, 2, 0.5)])


def test_what_is_not_prepared_is_refused(arm):
    robot, model = arm
    with pytest.raises(
        InvalidSamples, match=r"expected Samples, got str: prepare\(\) the recording first"
    ):
        weigh(model, "loaded.parquet")
    with pytest.raises(InvalidSamples, match="expected Samples, got str"):
        identify(robot, ["empty.parquet"])
