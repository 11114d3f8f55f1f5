"""xu2024's recursion on the stream of a simulated controller: `track` and `weigh-live`."""

import json
from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from typer.testing import CliRunner

from live_helpers import START, swing
from steelyard.cli import _app
from steelyard.errors import UnknownName
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.live import UrController, WeighingRequest, weigh_live
from steelyard.payload import Payload
from steelyard.recording import Preparation
from steelyard.robot import load_robot
from steelyard.signals import prepare
from steelyard.simulation import SimulationOptions, simulate
from steelyard.trajectory import FourierTrajectory
from steelyard.twin._backend import NOMINAL_GAINS, SimulatedArm
from steelyard.twin._controller import SERIAL_NUMBER, SimulatedController
from steelyard.twin._server import ControllerServer

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def arm():
    robot = load_robot("ur10e").with_serial(SERIAL_NUMBER)
    gains = np.array(NOMINAL_GAINS)
    return robot.with_drive(replace(robot.drive, gain=gains, gain_std=np.zeros(6)))


@pytest.fixture(scope="module")
def model(arm):
    """The empty arm on commanded motion, as the paper identifies it."""
    lively = FourierTrajectory.random(
        arm.home, reach=1.0, speed=1.2, period_s=6.0, harmonics=4, seed=0
    )
    empty = simulate(arm, lively, rate_hz=125.0, options=SimulationOptions(step_s=0.004))
    how = Preparation(kinematics="commanded")
    return identify(arm, prepare(empty.recording, how, drive=arm.drive), friction="power")


@pytest.fixture(scope="module")
def controller(arm):
    """A UR that carries 2.5 kg; its clock goes slower on a busy machine."""
    load = InertialParameters.from_com(2.5, [0, 0, 0.05], 0.004 * np.eye(3), arm.flange)
    world = SimulatedArm(arm, {0.0: load}, start=START)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("steelyard.twin._server._MAX_LAG_S", 0.01)
        patch.setattr("steelyard.live._playing._STALL_S", 20.0)
        patch.setattr("steelyard.live._playing._START_STALL_S", 20.0)
        with ControllerServer(SimulatedController(world)) as found:
            yield found, UrController(found.host, found.port, timeout_s=20.0)


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """The papers' tracker, as it is found where the package is installed."""
    plug = EntryPoint("xu2024", "steelyard_papers.xu2024.online:tracker_for", "steelyard.trackers")
    monkeypatch.setattr("steelyard.workflow._torque_tracking.entry_points", lambda group: [plug])


def test_track_weighs_the_stream_of_a_controller(model, controller, tmp_path):
    """Every row of the stream is used as it comes, commanded motion included."""
    found, _ = controller
    model.save(tmp_path / "model.json")
    words = ["track", f"ur://{found.host}:{found.port}", "--model", str(tmp_path / "model.json")]
    done = CliRunner().invoke(
        _app("track"), [*words, "--tracker", "xu2024", "--seconds", "2", "--json"]
    )
    facts = json.loads(done.stdout)
    assert facts["samples"]["used"] > 100
    assert "gives no uncertainty" in facts["verdict"]["sentence"]
    assert done.exit_code == 1


def test_weigh_live_moves_the_arm_weighs_with_it_and_sets_nothing(model, controller, tmp_path):
    found, _ = controller
    model.save(tmp_path / "model.json")
    swing().save(tmp_path / "motion.json")
    before = found.controller.payload
    words = ["weigh-live", f"ur://{found.host}:{found.port}", "--tracker", "xu2024", "--speed", "2"]
    files = ["--model", tmp_path / "model.json", "--motion", tmp_path / "motion.json"]
    words += [*map(str, files), "--yes", "--set", "-o", str(tmp_path / "payload.json")]
    done = CliRunner().invoke(_app("weigh-live"), words)
    assert done.exit_code == 1, done.output
    assert "gives no uncertainty" in done.stdout
    payload = Payload.load(tmp_path / "payload.json")
    assert np.isinf(payload.std).all()
    assert np.isfinite(payload.mass)
    assert found.controller.payload == before


def test_weigh_live_refuses_an_unknown_tracker_before_the_arm_moves(model, controller):
    found, source = controller
    log = len(found.controller.log)
    request = WeighingRequest(motion=swing(), tracker="xu2025")
    with pytest.raises(UnknownName, match="no tracker 'xu2025'; there are direct, xu2024"):
        weigh_live(source, model, confirm=lambda plan: True, request=request)
    assert len(found.controller.log) == log
