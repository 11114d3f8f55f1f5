"""Python and the command line give the same numbers, to the last digit."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import steelyard as sy
from conftest import lively_motion, steelyard
from live_helpers import loaded_panda, weighed
from steelyard import live
from steelyard.cli import weigh_live as weigh_live_command
from steelyard.inertia import InertialParameters
from steelyard.robot._drive import GAIN_TOLERANCE
from steelyard.verdict import DoubtKind

ARM = """
gravity_base = [0.0, 0.0, -9.81]
[[joint]]
alpha = 0.0
a = 0.0
d = 0.3
theta = 0.0
link = { mass = 4.0, com = [0.0, 0.02, -0.05], inertia_com_diagonal = [0.03, 0.03, 0.02] }
[[joint]]
alpha = -1.5707963267948966
a = 0.0
d = 0.0
theta = 0.0
link = { mass = 3.0, com = [0.15, 0.0, 0.05], inertia_com_diagonal = [0.01, 0.04, 0.04] }
[[joint]]
alpha = 0.0
a = 0.4
d = 0.0
theta = 0.0
link = { mass = 2.0, com = [0.1, 0.0, 0.02], inertia_com_diagonal = [0.01, 0.02, 0.02] }
[[joint]]
alpha = 1.2
a = 0.1
d = 0.2
theta = 0.0
link = { mass = 1.0, com = [0.02, 0.0, 0.05], inertia_com_diagonal = [0.004, 0.004, 0.002] }
[drive]
rotor_inertia = [0.4, 0.4, 0.1, 0.05]
coulomb = [3.0, 3.0, 1.0, 0.5]
viscous = [4.0, 4.0, 2.0, 1.0]
gain = [10.0, 11.0, 9.0, 6.0]
"""
COUPLED = ARM + "coupling = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0.3, 1, 0], [0, 0, 0, 1]]\n"
LOAD = InertialParameters.from_com(
    2.0, [0.02, -0.01, 0.05], np.diag([0.01, 0.012, 0.008]), "flange"
)
COUPLED_CASE = pytest.param("coupled", marks=pytest.mark.thorough)
SENSOR = """
name = "wrist"
noise = [0.1, 0.1, 0.1, 0.01, 0.01, 0.01]
postures = true
[columns]
wrench = ["fx", "fy", "fz", "tx", "ty", "tz"]
quaternion = ["qx", "qy", "qz", "qw"]
"""


def record(path, robot, seed, *, currents):
    q, v, a = lively_motion(robot, seed)
    tau = robot.torque(q, v, a) + 0.3 * np.random.default_rng(seed).normal(size=q.shape)
    motor = tau
    if robot.drive.coupling is not None:
        motor = tau @ np.linalg.inv(robot.drive.coupling / np.diag(robot.drive.coupling)[:, None])
    effort = {"current": motor / robot.drive.gain} if currents else {"tau": tau}
    sy.write(sy.Recording(np.arange(len(q)) / 100, q, robot.joint_names, **effort), path)


@pytest.fixture(scope="module", params=["torques", "currents", COUPLED_CASE])
def case(request, tmp_path_factory):
    """A folder with an arm, an empty and a loaded run, and what the command line makes of them."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "arm.toml").write_text(COUPLED if request.param == "coupled" else ARM)
    robot = sy.load_robot(str(folder / "arm.toml"))
    currents = request.param != "torques"
    record(folder / "empty.parquet", robot, 1, currents=currents)
    record(folder / "loaded.parquet", robot.with_payload(LOAD), 2, currents=currents)
    law = ["--friction", "linear"] if currents else []  # elsewhere every law is tried
    words = ("arm.toml", "empty.parquet", "-o", "model.json", "--json", *law)
    done = steelyard("identify", *words, cwd=folder)
    assert done.returncode == 0, done.stderr + done.stdout
    return folder


def test_identify_and_weigh(case):
    saved = sy.DynamicModel.load(case / "model.json")
    law = "auto" if saved.choice is not None else "linear"
    model = sy.identify(str(case / "arm.toml"), str(case / "empty.parquet"), friction=law)
    assert model.law.name == saved.law.name
    np.testing.assert_array_equal(model.estimate.value, saved.estimate.value)
    np.testing.assert_array_equal(model.estimate.covariance, saved.estimate.covariance)
    assert model.verdict == saved.verdict
    assert model.preparation == saved.preparation
    assert isinstance(saved.preparation.cutoff_hz, float)
    assert replace(saved.preparation, cutoff_hz="auto") == sy.Preparation()
    payload = sy.weigh(saved, case / "loaded.parquet")
    done = steelyard(
        "weigh", "model.json", "loaded.parquet", "-o", "payload.json", "--json", cwd=case
    )
    same_payload(payload, case / "payload.json", done)
    assert payload.mass == pytest.approx(2.0, abs=4 * payload.std[0])
    again = sy.weigh(case / "model.json", sy.read(case / "loaded.parquet"))
    np.testing.assert_array_equal(again.covariance, payload.covariance)
    unsaved = sy.weigh(model, case / "loaded.parquet")  # frames of a saved arm are multiplied anew
    np.testing.assert_allclose(unsaved.body.vector, payload.body.vector, rtol=1e-9)
    np.testing.assert_allclose(unsaved.covariance, payload.covariance, rtol=1e-6, atol=1e-15)


def test_track(case):
    found = sy.track(case / "loaded.parquet", model=case / "model.json", accuracy=0.02)
    words = (
        "track",
        "loaded.parquet",
        "--model",
        "model.json",
        "--accuracy",
        "2",
        "-o",
        "online.json",
        "--json",
    )
    done = steelyard(*words, cwd=case)
    same_payload(found.payload, case / "online.json", done)
    curve = json.loads(done.stdout)["curve"]
    assert curve["mass"] == [point.mass for point in found.points if np.isfinite(point.mass_std)]


def same_payload(payload, path, done):
    """The same numbers in Python, in the file and on the screen."""
    saved = type(payload).load(path)
    facts = json.loads(done.stdout)
    np.testing.assert_array_equal(payload.body.vector, saved.body.vector)
    np.testing.assert_array_equal(payload.covariance, saved.covariance)
    np.testing.assert_array_equal(payload.body.vector, facts["vector"])
    assert facts["verdict"]["ok"] == payload.verdict.ok == (done.returncode == 0)
    assert facts["verdict"]["doubts"] == payload.verdict.to_dict()["doubts"]


def test_the_wrist_sensor(tmp_path):
    rng = np.random.default_rng(5)
    R = Rotation.random(12, random_state=4)
    g = R.inv().apply([0, 0, -9.81])
    force, torque = 3.0 * g, np.cross([0.01, -0.02, 0.08], 3.0 * g)
    wrench = (
        np.hstack([force, torque]) + [4, -2, 6, 0.2, -0.3, 0.1] + 0.02 * rng.normal(size=(12, 6))
    )
    names = "t,fx,fy,fz,tx,ty,tz,qx,qy,qz,qw"
    rows = np.column_stack([np.arange(12.0), wrench, R.as_quat()])
    np.savetxt(tmp_path / "rest.csv", rows, delimiter=",", header=names, comments="")
    (tmp_path / "sensor.toml").write_text(SENSOR)
    payload = sy.weigh_wrist(static=tmp_path / "rest.csv", sensor=tmp_path / "sensor.toml")
    words = (
        "weigh-wrist",
        "at-rest",
        "rest.csv",
        "--sensor",
        "sensor.toml",
        "-o",
        "payload.json",
        "--json",
    )
    done = steelyard(*words, cwd=tmp_path)
    same_payload(payload, tmp_path / "payload.json", done)
    assert payload.mass == pytest.approx(3.0, abs=0.02)


def test_a_table_is_a_recording(case):
    class Frame:
        """What data frames have in common: named columns."""

        def __init__(self, recording):
            self.values = {"t": recording.t}
            for name in recording.channels:
                for j, column in enumerate(getattr(recording, name).T):
                    self.values[f"{name}_{j}"] = column
            self.columns = list(self.values)

        def __getitem__(self, name):
            return self.values[name]

    recording = sy.read(case / "loaded.parquet")
    model = sy.DynamicModel.load(case / "model.json")
    one, other = sy.weigh(model, Frame(recording)), sy.weigh(model, [recording])
    np.testing.assert_allclose(one.body.vector, other.body.vector, rtol=1e-9)


def test_another_preparation_is_a_doubt(case):
    model = sy.DynamicModel.load(case / "model.json")
    other = sy.weigh(model, case / "loaded.parquet", preparation=sy.Preparation(cutoff_hz=8.0))
    assert other.verdict.has(DoubtKind.PREPARED_OTHERWISE)
    assert f"cutoff_hz 8.0 instead of {model.preparation.cutoff_hz}" in str(other.verdict)
    done = steelyard("weigh", "model.json", "loaded.parquet", "--cutoff", "8", cwd=case)
    assert "Note: the samples were prepared differently from those of the model" in done.stdout


@pytest.mark.parametrize("share", [None, 0.0, 0.01])
def test_what_the_robot_says_about_its_gains_is_believed(tmp_path, share):
    (tmp_path / "arm.toml").write_text(ARM)
    robot = sy.load_robot(str(tmp_path / "arm.toml"))
    gain = np.asarray(robot.drive.gain)
    record(tmp_path / "empty.npz", robot, 1, currents=True)
    robot = robot.with_drive(replace(robot.drive, gain_std=None if share is None else share * gain))
    model = sy.identify(robot, tmp_path / "empty.npz", friction="linear")
    own = GAIN_TOLERANCE if share is None else share  # beside what all drives share
    np.testing.assert_allclose(model.robot.drive.gain_std, own * gain)


def test_weigh_live_calls_the_function_of_python(tmp_path, monkeypatch, capsys):
    """The arm moves once for one of them, so the command's call and its answer are compared."""
    model, _ = loaded_panda()
    model.save(tmp_path / "model.json")
    payload = weighed()
    calls = []

    def weigh_live(source, model, **options):
        calls.append((source, model, options))
        return live.LiveWeighing(payload, plan=None, rows=1200, missing=3)

    monkeypatch.setattr(live, "weigh_live", weigh_live)
    weigh_live_command.command(
        "ur://192.0.2.1",
        tmp_path / "model.json",
        period=4.0,
        reach=0.3,
        speed=0.1,
        replace=True,
        accuracy=2.0,
        record=tmp_path / "log.parquet",
        output=tmp_path / "payload.json",
        as_json=True,
    )
    [(source, used, options)] = calls
    assert source == live.source_of("ur://192.0.2.1")
    np.testing.assert_array_equal(used.estimate.value, model.estimate.value)
    request = live.WeighingRequest(
        period_s=4.0, reach=0.3, tool_speed=0.1, replace_program=True, accuracy=0.02
    )
    assert vars(options["request"]) == vars(request)
    assert (options["output"], options["page"]) == (tmp_path / "log.parquet", None)
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["missing"], facts["set"]) == (1200, 3, False)
    np.testing.assert_array_equal(facts["vector"], payload.body.vector)
    saved = sy.Payload.load(tmp_path / "payload.json")
    np.testing.assert_array_equal(saved.covariance, payload.covariance)
