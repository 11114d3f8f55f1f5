"""Options from papers: commanded motion, Fourier derivatives, least squares, bounds."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from steelyard.cli import _app
from steelyard.errors import InvalidRobot, InvalidSamples, UnknownName
from steelyard.excitation import DesignLimits, PostureSet
from steelyard.io import write
from steelyard.robot import load_robot
from steelyard.simulation import SensorModel, SimulationOptions, simulate
from steelyard.trajectory import FourierTrajectory


def run(*words):
    done = CliRunner().invoke(_app(words[0]), [str(word) for word in words], catch_exceptions=True)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, robot = tmp_path_factory.mktemp("runs"), load_robot("planar2r")
    motion = FourierTrajectory.random(
        np.zeros(2), reach=[1.2] * 2, speed=[2.0] * 2, period_s=5.0, harmonics=3, seed=2
    )
    sensors = SensorModel(torque_std=0.02, wrist_sensor=False)
    found = simulate(robot, motion, sensors=sensors, options=SimulationOptions(step_s=0.004))
    write(found.recording, folder / "empty.npz")
    return folder


def identified(folder, *options):
    """The facts of a model, and its file."""
    model = folder / "model.json"
    words = (
        "identify",
        "planar2r",
        folder / "empty.npz",
        "-o",
        model,
        "--friction",
        "linear",
        "--json",
    )
    return json.loads(run(*words, *options).stdout), json.loads(model.read_text())


def test_the_motion_that_was_commanded_is_fitted(files):
    facts, model = identified(files, "--kinematics", "commanded")
    assert "commanded" in facts["made_from"][0]
    assert model["kinematics"] == "commanded"
    with pytest.raises(InvalidSamples, match="fitted to commanded motion"):
        run("weigh", files / "model.json", files / "empty.npz", "--kinematics", "measured")
    with pytest.raises(InvalidSamples, match="'kinematics' must be 'measured' or 'commanded'"):
        identified(files, "--kinematics", "imagined")


def test_derivatives_of_a_series_and_a_threshold_of_speed(files):
    facts, _ = identified(files, "--fourier", "5,3", "--lowest-speed", "0.05")
    assert "Fourier series of 3 harmonics over 5 s" in facts["made_from"][0]
    assert "below 0.05 rad/s" in facts["made_from"][0]
    with pytest.raises(InvalidSamples, match="--fourier is PERIOD"):
        identified(files, "--fourier", "5,0.5")


def test_ordinary_least_squares_is_another_answer(files):
    plain, weighted = (identified(files, "--method", name)[0] for name in ("ordinary", "weighted"))
    assert plain["parameters"] != weighted["parameters"]
    left = [sum(np.square(facts["noise"])) for facts in (plain, weighted)]
    assert left[0] <= 1.001 * left[1]  # all joints alike: the least squares of them together


def test_bounds_imply_real_bodies(files):
    bounds = files / "bounds.toml"
    bounds.write_text("m1 = [0, 5]\nm2 = [2.2, 3]\ncx2 = [-0.5, 0]\n")
    facts, _ = identified(files, "--bounds", bounds)
    assert facts["feasible"]["rms_ratio"] < 1.1
    bounds.write_text("m1 = [5, 0]\n")
    with pytest.raises(InvalidRobot, match="no value lies between"):
        identified(files, "--feasible", "--bounds", bounds)


def test_a_tracker_of_a_package_that_is_not_installed_is_refused(files, monkeypatch):
    identified(files)
    monkeypatch.setattr("steelyard.workflow._torque_tracking.entry_points", lambda group: ())
    with pytest.raises(
        UnknownName, match=r"no tracker 'xu2024'; there are direct; those of papers"
    ):
        run("track", files / "empty.npz", "--model", files / "model.json", "--tracker", "xu2024")


def test_algorithm_1_as_printed_gives_more_than_asked_in_its_own_order():
    robot = load_robot("ur10")
    limits = DesignLimits.of(robot)
    printed = PostureSet.liu2025(robot, 5, limits=limits)
    chosen = PostureSet.for_sensor(robot, 5, limits=limits)
    assert len(printed) > 5 == len(chosen)
    down = printed.R_base_flange[:, 2]
    assert len(np.unique(down.round(6), axis=0)) == len(printed)
