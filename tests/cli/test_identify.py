"""`steelyard identify`, from recordings to a model file."""

import json
import re
import shlex

import numpy as np
import pytest

from conftest import steelyard
from steelyard.identification import DynamicModel
from steelyard.identification import _validation as validation
from steelyard.io import read, write
from steelyard.recording import Recording
from steelyard.robot import RobotModel, load_robot
from steelyard.trajectory import FourierTrajectory


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("identify")
    for name, seed in (("a", 1), ("b", 2), ("c", 3)):
        done = steelyard("simulate", "planar2r", "-o", f"{name}.parquet", "--seed", seed, cwd=path)
        assert done.returncode == 0, done.stderr
    return path


def test_words_model_picture_and_urdf(folder):
    done = steelyard(
        *(
            "identify",
            "planar2r",
            "a.parquet",
            "b.parquet",
            "-o",
            "model.json",
            "--validate",
            "c.parquet",
        ),
        *("--friction", "smooth", "--feasible", "--urdf", "arm.urdf", "--picture", "arm.png"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    for words in (
        "Friction law: smooth",
        "c.parquet predicted",
        "a.parquet fitted",
        "Next: steelyard weigh model.json LOADED -o payload.json --report page.html",
        "Real bodies",
        "Model: model.json",
    ):
        assert words in done.stdout
    model = DynamicModel.load(folder / "model.json")
    k = model.estimate.names.index("Fc1")
    (row,) = [line for line in done.stdout.splitlines() if re.match(r"joint_1 .* (\+-|±) ", line)]
    half_width = float(re.search(r"(?:\+-|±) (\S+)", row)[1])
    assert half_width == pytest.approx(1.96 * model.estimate.std[k], rel=0.05)
    assert len(model.basis) == 13
    assert RobotModel.from_urdf(folder / "arm.urdf").n == 2
    assert (folder / "arm.png").read_bytes().startswith(b"\x89PNG")


def test_json_has_what_programs_need(folder):
    done = steelyard(
        *(
            "identify",
            "planar2r",
            "a.parquet",
            "b.parquet",
            "-o",
            "auto.json",
            "--validate",
            "a.parquet",
        ),
        *("--friction", "smooth", "--cutoff", "auto", "--json"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert "Hz on the motion" in facts["made_from"][0]
    assert facts["base_parameters"] == 13
    assert facts["friction"] == "smooth"
    assert len(facts["recordings"]["a.parquet"]["relative"]) == 2
    assert len(facts["alpha"]) == 2
    assert facts["condition"] > 1
    words = [doubt["words"] for doubt in facts["verdict"]["doubts"]]
    assert "a.parquet was also fitted: it cannot validate the model" in words


def test_currents_without_gains_are_refused_and_given_gains_used(folder):
    recording = read(folder / "a.parquet")
    only_current = Recording(
        t=recording.t,
        q=recording.q,
        current=recording.tau / [10.0, 5.0],
        joint_names=recording.joint_names,
    )
    write(only_current, folder / "current.parquet")
    arguments = (
        "identify",
        "planar2r",
        "current.parquet",
        "-o",
        "gains.json",
        "--friction",
        "smooth",
    )
    done = steelyard(*arguments, cwd=folder)
    assert done.returncode == 2
    assert "give the gain of each drive as --gains [Nm/A]" in done.stderr
    assert not (folder / "gains.json").exists()
    done = steelyard(*arguments, "--gains", "10,5", "--json", cwd=folder)
    assert json.loads(done.stdout)["gains"] == [10, 5]
    assert (
        "auto, robot, targets, numbers with commas"
        in steelyard(*arguments, "--gains", "much", cwd=folder).stderr
    )
    assert (
        "planar2r has no drive gains"
        in steelyard(*arguments, "--gains", "robot", cwd=folder).stderr
    )
    assert (
        "needs a mass and a loaded" in steelyard(*arguments, "--gains", "mass=2", cwd=folder).stderr
    )
    wrong = steelyard(*arguments, "--gains", "10,5", "--cutoff", "low", cwd=folder)
    assert "--cutoff is a number [Hz] or auto" in wrong.stderr


def test_a_recording_of_another_robot_is_refused(folder):
    done = steelyard("identify", "ur10", "a.parquet", "-o", "x.json", cwd=folder)
    assert done.returncode == 2
    assert "ur10 has 6 joints, a recording has 2" in done.stderr


def test_a_joint_that_never_moved_is_said(folder):
    recording = read(folder / "a.parquet")
    q = np.column_stack([recording.q[:, 0], np.full(len(recording), 0.3)])
    still = Recording(t=recording.t, q=q, tau=recording.tau, joint_names=recording.joint_names)
    write(still, folder / "still.parquet")
    done = steelyard(
        "identify", "planar2r", "still.parquet", "-o", "s.json", "--friction", "linear", cwd=folder
    )
    assert done.returncode == 1, done.stderr
    assert "joint_2 never moved" in done.stdout


@pytest.mark.thorough
def test_an_arm_on_a_wall_needs_its_gravity(folder):
    arm, motion = load_robot("ur10"), FourierTrajectory.load("xu2024")
    t = np.arange(1251) / 125.0
    q, v, a = motion.at(t)
    noise = np.random.default_rng(0).normal(size=q.shape)
    tau = arm.with_gravity([0, 9.81, 0]).torque(q, v, a) + noise
    write(Recording(t=t, q=q, v=v, tau=tau, joint_names=arm.joint_names), folder / "wall.parquet")
    words = ("identify", "ur10", "wall.parquet", "-o", "wall.json", "--friction", "linear")
    upright = steelyard(*words, cwd=folder)
    assert upright.returncode == 1, upright.stderr
    assert "do not use this: " in upright.stdout
    mounted = steelyard(*words, "--gravity", "0,9.81,0", cwd=folder)
    assert mounted.returncode == 0, mounted.stdout + mounted.stderr
    assert "do not use" not in mounted.stdout
    np.testing.assert_allclose(
        DynamicModel.load(folder / "wall.json").robot.gravity_base, [0, 9.81, 0]
    )
    weak = re.search(
        r"(\d+) of \d+ parameters are weak \(std above 30 %\): (.*) and (\d+) more\.",
        mounted.stdout,
    )
    assert len(weak[2].split(", ")) == 5
    assert int(weak[1]) == 5 + int(weak[3])


def test_what_cannot_be_done_is_refused_before_the_work(folder):
    words = ("identify", "planar2r", "a.parquet")
    wrong = steelyard(*words, "-o", "x.json", "--gravity", "down", cwd=folder)
    assert wrong.returncode == 2
    assert "--gravity is X,Y,Z [m/s^2], say 0,9.81,0; got 'down'" in wrong.stderr
    for options in (("-o", "none/x.json"), ("-o", "x.json", "--report", "none/x.html")):
        done = steelyard(*words, *options, cwd=folder)
        assert done.returncode == 2
        assert f"cannot write {options[-1]}: there is no folder none" in done.stderr
    assert not (folder / "x.json").exists()


def test_progress_is_plain_lines_without_a_terminal_and_ctrl_c_answers(folder, monkeypatch):
    predictions = validation._LeftOut.of
    laws = []

    def third_is_stopped(maker, folds, law):
        laws.append(law.name)
        if len(laws) == 3:
            raise KeyboardInterrupt
        return predictions(maker, folds, law)

    arguments = ("identify", "planar2r", "a.parquet", "b.parquet", "-o", "stopped.json")
    monkeypatch.setattr(validation._LeftOut, "of", third_is_stopped)
    done = steelyard(*arguments, cwd=folder)
    assert done.returncode == 130, done.stderr
    lines = done.stderr.splitlines()
    assert lines[-1] == "error: interrupted; this is the best result so far"
    assert lines[0] == "identifying planar2r: law 1 of 11: linear"
    assert re.match(
        r"identifying planar2r: law 3 of 11: smooth, best so far \w+ \d+\.\d %", lines[2]
    )
    assert "Note: stopped by hand: " in done.stdout
    assert DynamicModel.load(folder / "stopped.json").law.name in ("linear", "band")
    laws.clear()
    done = steelyard(*arguments, "--json", cwd=folder)
    assert done.stderr == "error: interrupted; this is the best result so far\n"
    assert "stopped" in [doubt["kind"] for doubt in json.loads(done.stdout)["verdict"]["doubts"]]


def test_options_of_a_bare_table_are_named_again_for_weighing(folder):
    run = read(folder / "a.parquet")
    table = np.column_stack([np.degrees(run.q), run.tau])
    np.savetxt(folder / "bare.csv", table, delimiter=",")
    rate = f"{1 / np.median(np.diff(run.t)):g}"
    how = ("--names", "q*2,tau*2", "--rate", rate, "--degrees")
    done = steelyard(
        *("identify", "planar2r", "bare.csv", "-o", "bare.json", "--friction", "smooth", *how),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    advised = re.search("Next: steelyard (weigh .*)", done.stdout).group(1)
    again = f"--names 'q*2,tau*2' --rate {float(rate)} --degrees"
    assert set(shlex.split(again)) <= set(shlex.split(advised))
    weighed = steelyard(*shlex.split(advised.replace("LOADED", "bare.csv")), cwd=folder)
    assert weighed.returncode in (0, 1), weighed.stderr
    assert (folder / "payload.json").exists()
