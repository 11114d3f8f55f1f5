"""`steelyard collisions` on a small simulated arm: words, JSON, a picture, and what it refuses."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli.collisions import command
from steelyard.cli.options import Verb
from steelyard.errors import InvalidRecording, InvalidRobot, InvalidSamples, UnreadableFile
from steelyard.identification import DynamicModel, identify
from steelyard.inertia import InertialParameters
from steelyard.io import write
from steelyard.robot import DriveModel, RobotModel
from steelyard.signals import prepare
from steelyard.simulation import Push, SensorModel, SimulationOptions, simulate
from steelyard.torque import weigh
from steelyard.trajectory import FourierTrajectory

PUSH = Push(3.0, 0.4, "hand", np.array([80.0, 70.0, -60.0]), np.array([0.2, 0.1, -0.15]))


def run(robot, seed, *, load=None, pushes=(), speed=1.0):
    motion = FourierTrajectory.random(
        np.zeros(3), reach=[1.0] * 3, speed=[speed] * 3, period_s=8.0, harmonics=4, seed=seed
    )
    sensors = SensorModel(torque_std=0.2, wrist_sensor=False)
    options = SimulationOptions(step_s=0.004)
    return simulate(
        robot, motion, payload=load, sensors=sensors, seed=seed, pushes=pushes, options=options
    ).recording


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny):
    path = tmp_path_factory.mktemp("collisions")
    drive = DriveModel(
        np.array([0.3, 0.2, 0.1]), np.array([5.0, 4.0, 2.0]), np.array([3.0, 2.0, 1.0])
    )
    robot = RobotModel.from_urdf_text(tiny["revolute"]).with_drive(drive)
    load = InertialParameters.from_com(
        2.0, [0.05, 0.03, 0.1], np.diag([0.01] * 3), frame=robot.flange
    )
    model = identify(robot, prepare(run(robot, 1, speed=2.0)))
    model.save(path / "model.json")
    weigh(model, prepare(run(robot, 2, load=load, speed=2.0))).save(path / "payload.json")
    write(run(robot, 3, load=load), path / "free.npz")
    write(run(robot, 3, load=load, pushes=(PUSH,)), path / "pushed.npz")
    return path


def collisions(folder, *arguments):
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command(cls=Verb)(command)
    words = [
        str(folder / x) if "." in x and not x.replace(".", "").isdigit() else x for x in arguments
    ]
    return CliRunner().invoke(app, words)


def test_it_lists_the_contact_and_draws_it(folder):
    done = collisions(
        folder,
        "model.json",
        "pushed.npz",
        "--payload",
        "payload.json",
        "--learn",
        "free.npz",
        "--picture",
        "a.png",
        "--report",
        "a.html",
    )
    assert done.exit_code == 0, done.output
    page = (folder / "a.html").read_text(encoding="utf-8")
    assert "Contacts: pushed.npz" in page
    assert "Residuals and thresholds" in page
    assert (
        "1 contact in 8.0 s. Thresholds learned from 8 s of motion without contact" in done.output
    )
    (contact,) = (
        line.split() for line in done.output.splitlines() if line.lstrip().startswith("3.0")
    )
    assert contact[2:4] + contact[-1:] == ["elbow", "against", "hand"]
    assert (folder / "a.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.thorough
def test_json_says_the_same_and_the_other_observers_work(folder):
    for kind, unit in (("momentum", "Nm"), ("direct", "Nm"), ("energy", "W")):
        done = collisions(
            folder,
            *("model.json", "pushed.npz", "--payload", "payload.json", "--learn", "free.npz"),
            *("--observer", kind, "--false-alarms", "0.5", "--json"),
        )
        facts = json.loads(done.output)
        assert facts["unit"] == unit
        assert facts["false_alarms_per_hour"] == 0.5
        assert any(3.0 < c["detected_s"] < 3.4 for c in facts["contacts"])
    assert facts["contacts"][0]["link"] is None


def test_python_finds_the_same_contacts(folder):
    files = [folder / name for name in ("model.json", "pushed.npz", "payload.json", "free.npz")]
    found = sy.collisions(files[0], files[1], payload=files[2], learn=files[3])
    names = (
        "model.json",
        "pushed.npz",
        "--payload",
        "payload.json",
        "--learn",
        "free.npz",
        "--json",
    )
    facts = json.loads(collisions(folder, *names).output)
    found.save(folder / "contacts.json")
    assert json.loads((folder / "contacts.json").read_text())["contacts"] == facts["contacts"]
    assert facts["verdict"] == found.verdict.to_dict()
    np.testing.assert_array_equal(found.to_dict()["typical_threshold"], facts["typical_threshold"])
    assert "link or beyond hand" in str(found)
    assert str(found).endswith(str(found.verdict))
    assert ">hand</td>" in found._repr_html_()
    assert repr(found).startswith("<Detections: 1 contact in 8.0 s")
    with pytest.raises(
        InvalidSamples, match="contacts are detected in a single recording as measured, got 2"
    ):
        sy.collisions(files[0], [files[1], files[3]])


def test_a_fixed_threshold_and_an_ignored_payload(folder):
    knows = collisions(
        folder, "model.json", "free.npz", "--payload", "payload.json", "--threshold", "8", "--json"
    )
    ignores = collisions(folder, "model.json", "free.npz", "--threshold", "8", "--json")
    assert json.loads(knows.output)["contacts"] == []
    assert json.loads(ignores.output)["contacts"]
    assert "fixed at 8 Nm" in json.loads(knows.output)["verdict"]["summary"]


def test_a_limit_must_be_positive_and_power_has_no_usual_one(folder):
    for limit in ("0", "-3"):
        done = collisions(folder, "model.json", "free.npz", "--threshold", limit)
        assert isinstance(done.exception, InvalidSamples)
        assert "a threshold must be positive" in str(done.exception)
    done = collisions(folder, "model.json", "free.npz", "--observer", "energy")
    assert isinstance(done.exception, InvalidSamples)
    assert "give --threshold or --learn" in str(done.exception)
    done = collisions(
        folder, "model.json", "free.npz", "--observer", "energy", "--threshold", "9", "--json"
    )
    assert "fixed at 9 W" in json.loads(done.output)["verdict"]["summary"]
    done = collisions(folder, "model.json", "free.npz", "--payload", "payload.json", "--json")
    noise = DynamicModel.load(folder / "model.json").estimate.noise
    usual = " ".join(f"{5 * x:.3g}" for x in noise)
    assert f"fixed at {usual} Nm" in json.loads(done.output)["verdict"]["summary"]


def test_a_picture_of_an_unknown_kind_is_refused(folder):
    done = collisions(folder, "model.json", "free.npz", "--picture", "a.xyz")
    assert isinstance(done.exception, UnreadableFile)
    assert "a.xyz: the name of this file must end in .png, .svg" in str(done.exception)
    assert not (folder / "a.xyz").exists()
    done = collisions(folder, "model.json", "free.npz", "--picture", "model.json/a.png")
    assert isinstance(done.exception, UnreadableFile)
    assert "a.png: there is no folder" in str(done.exception)


def test_what_it_refuses(folder):
    done = collisions(folder, "model.json", "free.npz", "--learn", "free.npz", "--threshold", "8")
    assert isinstance(done.exception, InvalidSamples)
    assert "not both" in str(done.exception)
    done = collisions(
        folder, "model.json", "free.npz", "--payload", "payload.json", "--learn", "pushed.npz"
    )
    assert isinstance(done.exception, InvalidRecording)
    assert "not free of contact: near t = 3." in str(done.exception)
    text = (folder / "payload.json").read_text().replace('"hand"', '"gripper"')
    (folder / "other.json").write_text(text)
    done = collisions(folder, "model.json", "free.npz", "--payload", "other.json")
    assert isinstance(done.exception, InvalidRobot)
    assert "frame 'gripper'" in str(done.exception)
