"""Options from papers: commanded motion, filters, derivatives, ways to solve, bounds."""

import json
from dataclasses import replace

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
    options = SimulationOptions(step_s=0.004)
    for name, seed in (("empty", 0), ("again", 1)):
        found = simulate(robot, motion, sensors=sensors, seed=seed, options=options)
        write(found.recording, folder / f"{name}.npz")
    pulled = replace(found.recording, tau=found.recording.tau + np.array([0.0, 0.5]))
    write(pulled, folder / "pulled.npz")
    return folder


def identified(folder, *options, runs=("empty",)):
    """The facts of a model, and its file."""
    model = folder / "model.json"
    words = (
        "identify",
        "planar2r",
        *(folder / f"{name}.npz" for name in runs),
        "-o",
        model,
        "--friction",
        "linear",
        "--json",
    )
    return json.loads(run(*words, *options).stdout), json.loads(model.read_text())


def identified_fails(folder, *options):
    """The exit code where the command line refuses an option."""
    words = ("identify", "planar2r", folder / "empty.npz", "-o", folder / "model.json")
    return run(*words, *options).exit_code


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


def test_the_order_of_the_filters_acts(files):
    filters = ("--cutoff", 5, "--torque-cutoff", 5)
    facts = {}
    for order in (4, 5):
        facts[order], model = identified(files, *filters, "--order", order)
        assert model["preparation"]["order"] == order
    assert identified(files, *filters)[0]["parameters"] == facts[4]["parameters"]
    assert facts[4]["parameters"] != facts[5]["parameters"]
    assert identified_fails(files, "--order", 0) == 2


def test_no_offsets_are_zero_offsets_and_a_doubt_where_torques_have_them(files):
    pulled = {"runs": ("pulled",)}
    with_offsets = identified(files, **pulled)[0]
    without = identified(files, "--no-offsets", **pulled)[0]
    assert with_offsets["parameters"]["B2"] == pytest.approx(0.5, abs=0.06)
    assert without["parameters"]["B2"] == without["std"]["B2"] == 0
    assert without["parameters"]["my2"] != with_offsets["parameters"]["my2"]
    assert "no offsets" in without["verdict"]["summary"]
    (doubt,) = without["verdict"]["doubts"]
    assert doubt["kind"] == "contradicts_given"
    assert "B2 0.4" in doubt["words"]
    assert not identified(files, "--no-offsets")[0]["verdict"]["doubts"]  # there are none


def test_the_mean_of_runs_is_the_mean_of_separate_fits(files):
    same = ("--method", "ordinary", "--cutoff", 10, "--lag", 0)
    both = ("empty", "again")
    mean = identified(files, *same, "--mean-of-runs", runs=both)[0]
    each = [identified(files, *same, runs=(name,))[0] for name in both]
    values, stds = (
        np.array([[facts[key][name] for name in mean["parameters"]] for facts in each])
        for key in ("parameters", "std")
    )
    np.testing.assert_allclose(list(mean["parameters"].values()), values.mean(axis=0), atol=1e-9)
    std = np.array(list(mean["std"].values()))
    assert (std >= 0.999 * values.std(axis=0, ddof=1) / np.sqrt(2)).all()
    np.testing.assert_array_less(std, 2 * stds.max(axis=0))
    assert "mean of 2 runs" in mean["verdict"]["summary"]
    together = identified(files, *same, runs=both)[0]
    assert together["parameters"] != mean["parameters"]
    with pytest.raises(InvalidSamples, match="the mean of runs needs two recordings or more"):
        identified(files, "--mean-of-runs")
    with pytest.raises(InvalidSamples, match="--method 'huber' weights single rows"):
        identified(files, "--no-offsets", "--method", "huber")


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
