"""`steelyard export` as a user meets it: text, files, facts, exit codes."""

import json

import numpy as np
import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from steelyard.cli import export, export_arm, export_motion, patch
from steelyard.errors import SteelyardError
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Samples
from steelyard.robot import RobotModel, load_robot
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import Verdict
from steelyard.wrist._payload import WristPayload

app = typer.Typer()
app.add_typer(export.app, name="export")
app.add_typer(export_arm.app, name="export-arm")
app.add_typer(export_arm.loaded_app, name="export-loaded-arm")
app.add_typer(patch.app, name="patch")
app.command(name="export-motion")(export_motion.command)
GOOD = Verdict("all ten parameters were excited, and they are those of a real body")
INERTIA = np.diag([0.02, 0.015, 0.012])
BODY = InertialParameters.from_com(2.5, [0.01, -0.02, 0.06], INERTIA)
SPREAD = np.diag([0.01, *[1e-3] * 9]) ** 2


def run(*words, command="export"):
    return CliRunner().invoke(app, [command, *(str(word) for word in words)])


def run_arm(*words):
    return run(*words, command="export-arm")


def run_loaded(*words):
    return run(*words, command="export-loaded-arm")


def run_motion(*words):
    return run(*words, command="export-motion")


def sensed(T):
    body, full = BODY.renamed("sensor"), np.zeros((18, 18))
    full[:10, :10] = SPREAD
    drift, two, six = [4.0, -2.0, 6.0, 0.2, -0.3, 0.1], np.zeros(2), np.zeros(6)
    return WristPayload(
        body,
        body,
        verdict=GOOD,
        full_covariance=full,
        noise=six,
        drift=drift,
        inclination=two,
        nominal_gravity=[0, 0, -9.81],
        trend=six,
        trend_std=six,
        T_flange_sensor=T,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A good payload, a doubtful one, one of a wrist sensor, and a model of a UR10."""
    path = tmp_path_factory.mktemp("export")
    Payload(BODY, BODY, SPREAD, np.ones(6), GOOD).save(path / "good.json")
    Payload(BODY, BODY, 400 * SPREAD, np.ones(6), GOOD).save(path / "doubtful.json")
    T = np.eye(4)
    T[2, 3] = 0.04
    sensed(T).save(path / "sensor.json")
    robot = load_robot("ur10")
    q, v, a = FourierTrajectory.load("xu2024").at(np.arange(0, 10, 0.02))
    tau = robot.torque(q, v, a) + 0.05 * np.random.default_rng(3).normal(size=q.shape)
    samples = Samples(q, v, a, tau, 50.0, robot.joint_names, "measured", made_by=("made up",))
    identify(robot, samples).save(path / "model.json")
    (path / "drives.json").write_text('{"steelyard": "drives"}')
    (path / "list.json").write_text("[1, 2]")
    (path / "words.json").write_text("no JSON")
    return path


def test_text_goes_to_stdout_or_into_a_file(folder):
    done = run("ur", folder / "good.json")
    assert done.exit_code == 0
    assert done.output.splitlines()[-1].startswith(
        "set_target_payload(2.5, [0.01, -0.02, 0.06], [0.02, 0.015,"
    )
    output = folder / "payload.script"
    written = run("ur", folder / "good.json", "-o", output)
    assert written.output == f"Written: {output}\n"
    assert output.read_text() == done.output
    assert Payload.load(folder / "good.json").export("ur") == done.output
    missing = run("ur", folder / "good.json", "-o", folder / "no" / "x")
    assert "there is no folder" in str(missing.exception)


def test_facts_describe_the_inertia_that_stands_in_for_the_estimate(folder):
    estimated = json.loads(run("ur", folder / "good.json", "--json").output)
    assert estimated["inertia_instead"] is None
    done = run("ur", folder / "good.json", "--inertia", "sphere", "--json")
    instead = json.loads(done.output)["inertia_instead"]
    assert "the inertia here is that of a homogeneous sphere" in instead


def test_the_tool_frame_turns_and_moves_the_body(folder):
    done = run("mecademic", folder / "good.json", "--tool-frame", "0 0 0.03 0 0 90")
    assert "SetPayload(2.5,20.0,10.0,90.0)" in done.output
    done = run("mecademic", folder / "good.json", "--tool-frame", "0.1,0,0,90,0,90")
    assert (
        "SetPayload(2.5,160.0,10.0,-20.0)" in done.output
    )  # about x first, then about the fixed z
    done = run(
        "kuka",
        folder / "good.json",
        "--tool-frame",
        "0 0 0 0 0 90",
        "--number",
        3,
        "--json",
    )
    facts = json.loads(done.output)
    np.testing.assert_allclose(facts["com"], [0.02, 0.01, 0.06])
    np.testing.assert_allclose(facts["inertia_com"], np.diag([0.015, 0.02, 0.012]), atol=1e-12)
    assert "LOAD_DATA[3]=" in facts["text"]
    assert facts["verdict"]["ok"]
    assert facts["verdict"]["doubts"] == []
    assert facts["mass_error"] == pytest.approx(0.0196)


def test_doubt_is_exit_code_1_and_force_is_said(folder):
    output = folder / "doubtful.mod"
    done = run("abb", folder / "doubtful.json", "-o", output)
    assert done.exit_code == 1
    assert (
        "error: not exported: the mass is known to ± 15.7 % (95 %), more than 10 % allowed"
        in done.output
    )
    assert not output.exists()
    facts = json.loads(run("abb", folder / "doubtful.json", "--json").stdout)
    assert facts["text"] is None
    assert [doubt["kind"] for doubt in facts["verdict"]["doubts"]] == ["too_uncertain"]
    done = run("abb", folder / "doubtful.json", "-o", output, "--force")
    assert done.exit_code == 0
    assert "warning: forced in spite of a doubt: the mass" in done.output
    assert "! FORCED in spite of a doubt: the mass is known to +- 15.7 %" in output.read_text()
    done = run("abb", folder / "doubtful.json", "--largest-mass-error", 16)
    assert done.exit_code == 0
    assert "FORCED" not in done.output
    done = run("abb", folder / "good.json", "--largest-com-error", 0.5)
    assert "more than 0.5 mm allowed" in done.output


def test_a_wrist_sensor_is_placed_by_hand_or_by_its_file(folder):
    done = run("ur", folder / "sensor.json")
    assert (
        "say --as-mounted if the file's own is right (its origin at 0 0 0.04 m, not turned)"
        in str(done.exception)
    )
    done = run("ur", folder / "sensor.json", "--as-mounted")
    assert "set_target_payload(2.5, [0.01, -0.02, 0.1]," in done.output
    done = run("ur", folder / "sensor.json", "--tool-frame", "0 0 0 0 0 0")
    assert "set_target_payload(2.5, [0.01, -0.02, 0.06]," in done.output
    done = run("ft-yaml", folder / "sensor.json")
    assert "bias: [4.0, -2.0, 6.0, 0.2, -0.3, 0.1]" in done.output


def test_a_model_becomes_a_urdf_with_its_drives_beside(folder):
    output = folder / "arm.urdf"
    done = run_loaded("urdf", folder / "model.json", folder / "good.json", "-o", output)
    assert done.exit_code == 0, done.output
    assert "arm.drives.json" in done.output
    arm = RobotModel.from_urdf(output)
    drives = json.loads((folder / "arm.drives.json").read_text())
    assert list(drives["joints"]) == list(arm.joint_names)
    assert drives["joints"]["elbow_joint"]["exponent"] == load_robot("ur10").drive.exponent[2]
    assert drives["payload"] == pytest.approx(BODY.vector.tolist())
    facts = json.loads(run_arm("mjcf", folder / "model.json", "--json").output)
    assert facts["drives"]["joints"]["elbow_joint"]["rotor_inertia"] > 0
    assert facts["text"].startswith("<mujoco")
    done = run_loaded("mjcf", folder / "model.json", folder / "sensor.json", "--as-mounted")
    assert "carries a payload of 2.5 kg" in done.output
    done = run_loaded("mujoco-ros2", folder / "model.json", folder / "good.json")
    assert '<motor name="elbow_joint" joint="elbow_joint"' in done.output
    assert "carries a payload of 2.5 kg" in done.output
    done = run_loaded("mjcf", folder / "model.json", folder / "doubtful.json")
    assert done.exit_code == 1
    assert "the payload: the mass is known to" in done.output
    done = run_loaded("mjcf", folder / "model.json", folder / "doubtful.json", "--force")
    assert "FORCED in spite of a doubt: the payload: the mass" in done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("ur", "model.json"),
            "holds a model, not a payload or wrist payload: use steelyard export-arm",
        ),
        (
            ("ur", "drives.json"),
            "holds no payload or wrist payload (it says 'drives'); they are made so: a payload by"
            " steelyard weigh -o",
        ),
        (("ur", "list.json"), "holds no payload or wrist payload (it does not say"),
        (("ur", "words.json"), "is not JSON"),
        (("ur", "none.json"), "no such file"),
        (
            ("ur", "good.json", "--tool-frame", "0 0 1"),
            "--tool-frame is 'x y z roll pitch yaw' [m,",
        ),
        (
            ("ur", "good.json", "--tool-frame", "0 0 x 0 0 0"),
            "--tool-frame is 'x y z roll pitch yaw'",
        ),
        (("ur", "good.json", "--as-mounted"), "--as-mounted is for wrist sensors"),
        (
            ("ur", "sensor.json", "--as-mounted", "--tool-frame", "0 0 0 0 0 0"),
            "give --tool-frame or --as-mounted, not both",
        ),
    ],
)
def test_bad_input_is_refused_in_words(folder, words, message, monkeypatch):
    monkeypatch.chdir(folder)
    done = run(*words)
    assert isinstance(done.exception, SteelyardError), done.output
    assert message in str(done.exception)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("export-arm", "urdf", "good.json"),
            "holds a payload, not a model: use steelyard export",
        ),
        (
            ("export-loaded-arm", "urdf", "model.json", "model.json"),
            "holds a model, not a payload or wrist payload",
        ),
    ],
)
def test_bad_input_of_an_arm_is_refused_in_words(folder, words, message, monkeypatch):
    monkeypatch.chdir(folder)
    done = run(*words[1:], command=words[0])
    assert isinstance(done.exception, SteelyardError), done.output
    assert message in str(done.exception)


def test_every_target_is_a_command_with_the_options_that_its_format_can_hold():
    from steelyard.export import TARGETS

    commands = get_command(export.app).commands
    assert list(commands) == list(TARGETS)
    for name, target in TARGETS.items():
        options = {parameter.name for parameter in commands[name].params}
        assert ("inertia" in options) == target.inertia, name
        assert ("name" in options) == target.has_name, name
        assert ("number" in options) == target.has_number, name
        assert ("as_mounted" in options) != target.in_sensor_frame, name


def test_a_motion_for_several_controllers_in_one_call(tmp_path):
    path = tmp_path / "motion.json"
    FourierTrajectory.load("xu2024").save(path)
    done = run_motion(
        path, "--to", "ur,ros2,csv", "--robot", "ur10", "--from", "home", "-o", tmp_path / "weigh"
    )
    assert done.exit_code == 0, done.output
    assert (
        f"Written: {tmp_path / 'weigh.yaml'}, trajectory_msgs/JointTrajectory, for ROS 2"
        in done.output
    )
    assert "# with the way from [" in (tmp_path / "weigh.script").read_text()
    assert {p.suffix for p in tmp_path.iterdir()} == {".json", ".script", ".yaml", ".csv"}
    data = json.loads(run_motion(path, "--to", "csv", "--robot", "ur10", "--json").output)
    assert data["text"].startswith("t,q_shoulder_pan_joint,")
    for words, more in (
        ("is exported to csv, ur, ros2, franka, not to 'abb'", ("--to", "abb")),
        ("several targets need -o", ("--to", "ur,csv")),
        ("say which arm it is for: give --robot", ("--to", "ur")),
    ):
        refused = run_motion(path, *more)
        assert isinstance(refused.exception, SteelyardError)
        assert words in str(refused.exception)


def test_a_motion_for_an_arm_with_fingers(tmp_path, tiny):
    (tmp_path / "arm.urdf").write_text(tiny["gripper"])
    at_rest = [[0.1, -0.1], [0.2, -0.2]]
    FourierTrajectory(at_rest, np.zeros((2, 2)), [0.0, 0.0], 5.0).save(tmp_path / "motion.json")
    words = (tmp_path / "motion.json", "--to", "csv", "--robot", tmp_path / "arm.urdf", "--json")
    held = ("--lock", "wrist=0.3", "--flange", "left")
    for more, names in (((), "q_shoulder,q_wrist"), (held, "q_shoulder,q_finger_left")):
        done = run_motion(*words, *more)
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["text"].startswith(f"t,{names},v_")
