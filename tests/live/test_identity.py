"""Which arm something belongs to: from the stream into files, checked before a command."""

from dataclasses import replace

import numpy as np
import pytest

import steelyard as sy
from live_helpers import START, opened, rows_of, sent, served, swing, taken, weighed
from steelyard.errors import InvalidRobot
from steelyard.identification import DynamicModel
from steelyard.io import read, write
from steelyard.live import MotionRequest, Recorder, Stream, UrController
from steelyard.live._history import PayloadHistory
from steelyard.live._motion import MotionPlan
from steelyard.live._setting import Proposal
from steelyard.payload import Payload
from steelyard.recording import UNKNOWN_ARM, ArmIdentity, Recording
from steelyard.robot import RobotModel, load_robot
from steelyard.simulation import simulate
from steelyard.trajectory import FourierTrajectory
from steelyard.twin._backend import SimulatedArm
from steelyard.twin._controller import SERIAL_NUMBER, SimulatedController
from steelyard.twin._server import ControllerServer
from steelyard.verdict import DoubtKind

ARM = ArmIdentity("ur10e", SERIAL_NUMBER)
OTHER = ArmIdentity("ur10e", "7")


@pytest.mark.parametrize("name", ["log.parquet", "log.arrows"])
def test_a_recording_of_a_stream_names_its_arm(name, tmp_path):
    with served() as found:
        found.controller.model = "UR10"
        with (
            opened(found) as stream,
            Recorder(tmp_path / name, stream.columns, stream.identity()) as recorder,
        ):
            sent(found, 50)
            for row in rows_of(taken(stream, rows=50)):
                recorder.add(row)
    back = read(tmp_path / name)
    assert back.arm == ARM
    for copy in ("copy.parquet", "copy.npz"):
        write(back, tmp_path / copy)
        assert read(tmp_path / copy).arm == ARM


@pytest.fixture(scope="module")
def runs():
    """An empty run and a loaded one of a small arm."""
    robot = load_robot("planar2r")
    motions = [
        FourierTrajectory.random(
            robot.home, reach=1.0, speed=1.5, period_s=6.0, harmonics=4, seed=seed
        )
        for seed in (1, 2)
    ]
    return robot, [simulate(robot, motion).recording for motion in motions]


def test_the_serial_number_goes_from_recordings_into_models_and_payloads(runs, tmp_path):
    robot, (first, second) = runs
    arm = ArmIdentity(serial="42")
    model = sy.identify(robot, replace(first, arm=arm))
    model.save(tmp_path / "model.json")
    model = DynamicModel.load(tmp_path / "model.json")
    assert model.arm == arm
    payload = sy.weigh(model, second)
    payload.save(tmp_path / "payload.json")
    assert Payload.load(tmp_path / "payload.json").arm == arm
    other = sy.weigh(model, replace(second, arm=ArmIdentity(serial="43")))
    assert other.arm.serial == "43"
    assert DoubtKind.OTHER_ROBOT in [doubt.kind for doubt in other.verdict.doubts]
    assert not other.verdict.ok
    with pytest.raises(InvalidRobot, match="number 43, not on an arm of unknown kind, number 42"):
        sy.identify(robot, [replace(first, arm=arm), replace(second, arm=ArmIdentity(serial="43"))])
    with pytest.raises(InvalidRobot, match="was recorded on ur5e, not on ur10e"):
        sy.identify(replace(robot, name="ur10e"), replace(first, arm=ArmIdentity("ur5e")))


def test_a_robot_keeps_its_serial_number_in_files():
    robot = load_robot("ur10e").with_serial("42")
    assert RobotModel.from_dict(robot.to_dict()).arm == ArmIdentity("ur10e", "42")
    assert load_robot("ur10e").arm == ArmIdentity("ur10e")


@pytest.fixture(scope="module")
def controlled():
    arm = load_robot("ur10e")
    world = SimulatedArm(arm, start=START)
    with ControllerServer(SimulatedController(world)) as found:
        yield found, UrController(found.host, found.port), arm


@pytest.mark.parametrize(
    ("expected", "reported", "stated", "words"),
    [
        (OTHER, SERIAL_NUMBER, "", "belongs to another arm: it is of ur10e, number 7, .* is ur10e"),
        (OTHER, SERIAL_NUMBER, "7", "belongs to another arm"),
        (ARM, SERIAL_NUMBER, "7", f"is ur10e, number {SERIAL_NUMBER}, not number 7$"),
        (ArmIdentity("ur10e"), SERIAL_NUMBER, "", "the serial number of the arm is unknown"),
        (ARM, "", "", r"^ur://\S+: the serial number of the arm is unknown, .*: state its number"),
        (UNKNOWN_ARM, "", "", r"^the (motion|payload) and ur://\S+: the serial number"),
        (ArmIdentity("ur5e", SERIAL_NUMBER), SERIAL_NUMBER, "", "it is of ur5e, number"),
    ],
)
def test_another_arm_or_an_unknown_one_gets_nothing(controlled, expected, reported, stated, words):
    found, source, arm = controlled
    log = len(found.controller.log)
    robot = replace(arm, name=expected.kind or "arm", serial=expected.serial)
    found.controller.serial_number = reported
    with pytest.raises(InvalidRobot, match=words):
        Proposal.of(source, replace(weighed(), arm=expected), serial=stated)
    with Stream(source) as stream, pytest.raises(InvalidRobot, match=words):
        MotionPlan.of(stream, robot, swing(), MotionRequest(serial=stated))
    assert found.controller.log[log:] == []


@pytest.mark.parametrize(
    ("expected", "reported", "stated"),
    [
        (ARM, SERIAL_NUMBER, ""),
        (ARM, "", SERIAL_NUMBER),
        (UNKNOWN_ARM, SERIAL_NUMBER, SERIAL_NUMBER),
    ],
)
def test_an_arm_that_is_known_or_stated_is_accepted(
    controlled, expected, reported, stated, tmp_path
):
    found, source, arm = controlled
    robot = replace(arm, name=expected.kind or "arm", serial=expected.serial)
    found.controller.serial_number = reported
    proposal = Proposal.of(source, replace(weighed(), arm=expected), serial=stated)
    assert proposal.arm == ARM
    with Stream(source) as stream:
        plan = MotionPlan.of(stream, robot, swing(), MotionRequest(serial=stated))
    assert plan.arm == ARM
    proposal.carry_out(tmp_path / "undo.json", transition_s=0.0)
    assert PayloadHistory.load(tmp_path / "undo.json").last_change.arm == ARM


def test_recordings_without_an_arm_stay_unknown(tmp_path):
    t = np.arange(10) / 10
    write(Recording(t, np.ones((10, 2))), tmp_path / "log.npz")
    assert read(tmp_path / "log.npz").arm == UNKNOWN_ARM
