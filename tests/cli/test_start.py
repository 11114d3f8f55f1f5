"""`steelyard start`: what it finds in a log, what it asks for, and the commands that it writes."""

import re
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.spatial.transform import Rotation

from conftest import steelyard
from ros_bags import write_joint_states
from steelyard.cli import start
from steelyard.cli.start import _Questions, _short
from steelyard.recording._columns import Requested, expanded_names
from steelyard.robot import load_robot
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import DoubtKind
from steelyard.workflow._first_look import FirstLook
from steelyard.wrist import WristPayload

LOAD = [2.0, 0.02, -0.06, 0.1]  # mass and first moments [kg, kg m]


@pytest.fixture(scope="module")
def motion():
    """Time, positions, speeds and torques of a UR10 with its nominal links, without friction."""
    robot = load_robot("ur10")
    t = np.arange(0, 6, 0.008)
    q, v, a = FourierTrajectory.load("ur10_payload").at(t)
    noise = 0.05 * np.random.default_rng(5).normal(size=q.shape)
    return t, q, v, robot.torque(q, v, a) + noise


@pytest.fixture
def ran(monkeypatch):
    """Commands that would be run."""
    commands = []

    def fake(words, **_):
        commands.append(words[3:])
        return subprocess.CompletedProcess(words, 0)

    monkeypatch.setattr(start.subprocess, "run", fake)
    return commands


def table(path, *blocks, delimiter=";"):
    np.savetxt(path, np.column_stack(blocks), delimiter=delimiter, fmt="%.6f")
    return path


def test_a_table_without_header_in_degrees_is_understood(tmp_path, motion, ran):
    t, q, v, tau = motion
    table(tmp_path / "empty.csv", t, np.degrees(q), np.degrees(v), tau)
    words = ("start", "empty.csv", "ur10", "--is-empty", "--yes")
    refused = steelyard(*words, cwd=tmp_path)
    assert refused.returncode == 2
    assert "--names t,q*6,v*6,tau*6, or motor currents, --names t,q*6,v*6,current*6" in (
        refused.stderr
    )
    done = steelyard(*words, "--names", "t,q*6,v*6,tau*6", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (identify,) = ran
    assert identify[:3] == ["identify", "ur10", "empty.csv"]
    assert identify[-3:] == ["--names", "t,q*6,v*6,tau*6", "--degrees"]
    script = (tmp_path / "empty-results" / "commands.sh").read_text()
    assert "steelyard identify ur10 empty.csv" in script
    assert f"cd {tmp_path}\n" in script
    later = "steelyard start LOADED ur10 --empty empty-results/model.json"
    assert f"{later} --names 't,q*6,v*6,tau*6' --degrees" in done.stdout


def test_a_loaded_log_is_weighed_against_the_empty_one(tmp_path, motion, ran):
    t, q, _, tau = motion
    names = ["t", *(f"{word}_{j}" for word in ("q", "tau") for j in range(6))]
    for name in ("empty", "loaded"):
        rows = np.column_stack([t, q, tau])
        np.savetxt(
            tmp_path / f"{name}.csv", rows, delimiter=",", header=",".join(names), comments=""
        )
    done = steelyard("start", "loaded.csv", "ur10", "--empty", "empty.csv", "--yes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [words[0] for words in ran] == ["identify", "weigh"]
    assert ran[0][2] == "empty.csv"
    assert ran[1][1:3] == ["loaded-results/model.json", "loaded.csv"]
    assert "Gravity: as for an arm on the floor" in done.stdout


def test_a_model_of_the_empty_arm_tells_which_arm_it_is(tmp_path, motion, ran, two_links):
    (tmp_path / "arm.urdf").write_text(two_links())
    simulated = ("simulate", "arm.urdf", "--seed", "1")
    assert steelyard(*simulated, "-o", "empty.npz", cwd=tmp_path).returncode == 0
    words = ("identify", "arm.urdf", "empty.npz", "-o", "model.json", "--friction", "linear")
    assert steelyard(*words, cwd=tmp_path).returncode in (0, 1)
    done = steelyard("start", "empty.npz", "--empty", "model.json", "--yes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "The arm: tiny, by model.json." in done.stdout
    assert [words[:3] for words in ran] == [["weigh", "model.json", "empty.npz"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "say what the arm carries: --is-empty for nothing, or --empty FILE"),
        (("--is-empty",), "the log does not say which arm it is of: .*likely: ur10"),
        (("--is-empty", "--empty", "x.csv"), "exclude each other"),
    ],
)
def test_what_the_log_does_not_tell_must_be_given(tmp_path, motion, ran, options, message):
    t, q, _, tau = motion
    table(tmp_path / "log.csv", t, q, tau)
    names = ("--names", "t,q*6,tau*6")
    refused = steelyard("start", "log.csv", "--yes", *names, *options, cwd=tmp_path)
    assert refused.returncode == 2
    assert not ran
    assert re.search(message, refused.stderr)


def test_the_likeliest_arm_is_the_one_that_explains_the_torques(tmp_path, motion):
    t, q, _, tau = motion
    path = table(tmp_path / "log.csv", t, q, tau)
    arms = FirstLook.at(path, Requested(names=expanded_names("t,q*6,tau*6"))).bundled_arms()
    assert arms.names[0] == "ur10"
    assert not arms.sure
    assert all(load_robot(name).n == 6 for name in arms.names)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_wrist_table_gets_a_description_with_the_right_sign(tmp_path, ran, sign):
    rng = np.random.default_rng(3)
    R = Rotation.random(12, random_state=rng)
    gravity = R.inv().apply([0, 0, -9.81])
    mass, first_moment = LOAD[0], np.array(LOAD[1:])
    wrench = np.column_stack([mass * gravity, np.cross(first_moment, gravity)])
    wrench = sign * wrench + [4.0, -2.0, 6.0, 0.2, -0.3, 0.1] + 0.01 * rng.normal(size=(12, 6))
    header = {1: "Fx,Fy,Fz,Tx,Ty,Tz", -1: "Fx_N,Fy_N,Fz_N,Tx_Nm,Ty_Nm,Tz_Nm"}[sign]
    header += ",qx,qy,qz,qw"
    rows = np.column_stack([wrench, R.as_quat()])
    np.savetxt(tmp_path / "ft.csv", rows, delimiter=",", header=header, comments="")
    refused = steelyard("start", "ft.csv", "--yes", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--sensor-pose X,Y,Z,ROLL,PITCH,YAW [m, degrees], or --sensor-pose unknown" in (
        refused.stderr
    )
    pose = {1: "unknown", -1: "0.01,0,0.04,0,0,90"}[sign]
    done = steelyard("start", "ft.csv", "--yes", "--sensor-pose", pose, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    convention = {1: "load_on_sensor", -1: "sensor_on_load"}[sign]
    text = (tmp_path / "ft-results" / "sensor.toml").read_text()
    assert f'convention = "{convention}"' in text
    (words,) = ran
    assert words[:3] == ["weigh-wrist", "at-rest", "ft.csv"]
    steelyard(*words, cwd=tmp_path)  # the command works as it is written
    found = WristPayload.load(tmp_path / "ft-results" / "payload.json")
    assert found.mass == pytest.approx(2.0, abs=0.01)
    assumed = [doubt for doubt in found.verdict.doubts if doubt.kind == DoubtKind.ASSUMED]
    assert bool(assumed) == (pose == "unknown")
    if pose != "unknown":
        np.testing.assert_allclose(found.T_flange_sensor[:3, 3], [0.01, 0, 0.04])
        np.testing.assert_allclose(found.T_flange_sensor[:2, :2], [[0, -1], [1, 0]], atol=1e-12)


@pytest.mark.parametrize("kind", ["rotated", "no position", "noise"])
def test_the_frame_of_a_wrist_table_is_found_and_nothing_is_said_of_noise(tmp_path, ran, kind):
    rng = np.random.default_rng(3)
    R = Rotation.random(12, random_state=rng)
    gravity = R.inv().apply([0, 0, -9.81])
    wrench = np.column_stack([2.0 * gravity, np.cross([0.02, -0.06, 0.1], gravity)])
    wrench += [4.0, -2.0, 6.0, 0.2, -0.3, 0.1] + 0.01 * rng.normal(size=(12, 6))
    if kind == "rotated":
        wrench = np.column_stack([R.apply(wrench[:, :3]), R.apply(wrench[:, 3:])])
    if kind == "noise":
        wrench = 20.0 * rng.normal(size=(12, 6))
    rows = np.column_stack([wrench, R.as_quat()])
    header = "Fx,Fy,Fz,Tx,Ty,Tz,qx,qy,qz,qw"
    if kind == "no position":  # accelerations are unknown: the rests are weighed
        rows = np.repeat(rows, 20, axis=0)
        rows = np.column_stack([0.1 * np.arange(len(rows)), rows])
        header = f"t_s,{header}"
    np.savetxt(tmp_path / "ft.csv", rows, delimiter=",", header=header, comments="")
    done = steelyard("start", "ft.csv", "--yes", "--sensor-pose", "unknown", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ran[0][:2] == ["weigh-wrist", "at-rest"]
    text = (tmp_path / "ft-results" / "sensor.toml").read_text()
    frame = {"rotated": "base"}.get(kind, "sensor")
    assert f'frame = "{frame}"' in text
    said = {"noise": "no load fits the readings, so the convention load_on_sensor is a guess"}
    assert said.get(kind, "the convention is load_on_sensor") in done.stdout


def test_numbers_of_joints_do_not_tell_the_arm(tmp_path):
    """All bundled arms with seven joints stay possible, not only those called *_joint1."""
    robot = load_robot("xmate7p")
    t = np.arange(0, 4, 0.02)
    q = robot.home + 0.3 * np.sin(t[:, None] * np.arange(1, 8))
    np.savez(tmp_path / "log.npz", t=t, q=q, tau=np.ones_like(q))
    arms = FirstLook.at(tmp_path / "log.npz", Requested()).bundled_arms()
    assert {"xmate7p", "med7", "panda"} <= set(arms.names)
    assert not arms.sure


def test_five_questions_are_the_most(monkeypatch):
    monkeypatch.setattr(start.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(start.typer, "prompt", lambda *_, **__: "1")
    questions = _Questions(yes=False)
    for _ in range(5):
        assert questions.choose("?", ("a", "b"), refusal="no") == "a"
    assert not questions.may_ask


def answered(monkeypatch, *answers):
    """Answers for the questions, in their order."""
    left = list(answers)
    monkeypatch.setattr(start.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(start.typer, "prompt", lambda *_, **__: left.pop(0))


def test_answers_that_lead_elsewhere_say_where(tmp_path, motion, ran, monkeypatch):
    t, q, _, tau = motion
    table(tmp_path / "log.csv", t, q, tau)
    words = ("start", "log.csv", "ur10", "--names", "t,q*6,tau*6")
    answered(monkeypatch, "wall", "sideways", "0,9.81,0")
    wall = steelyard(*words, "--is-empty", cwd=tmp_path)
    assert wall.returncode == 0, wall.stderr
    assert "the direction of fall is X,Y,Z [m/s" in wall.stdout
    assert all(word in ran[0] for word in ("identify", "--gravity", "0,9.81,0"))
    ran.clear()
    missing = steelyard(*words, "--empty", "nowhere.csv", cwd=tmp_path)
    assert "there is no file nowhere.csv" in missing.stderr
    assert "name the file with --empty" in missing.stderr
    assert not ran
    followed = ("--empty", "log.csv", "--gravity", "0,9.81,0", "--yes")
    done = steelyard(*words, *followed, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(word in ran[0] for word in ("identify", "--gravity", "0,9.81,0"))


def test_an_answer_that_cannot_be_used_is_asked_for_again(tmp_path, motion, ran, monkeypatch):
    t, q, _, tau = motion
    table(tmp_path / "log.csv", t, q, tau)
    replies = ["ur10", "3", "a payload", "nowhere.csv", "log.csv", "99", "another one"]
    answered(monkeypatch, *replies, "no_arm.urdf", "ur10", "floor")
    done = steelyard("start", "log.csv", "--names", "t,q*6,tau*6", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in (
        "'ur10' is none of the answers: type a number from 1 to 2.",
        "'3' is none of the answers",
        "there is no file nowhere.csv",
        "'99' is none of the answers",
        "there is no file no_arm.urdf, and no bundled arm has this name",
    ):
        assert words in done.stdout
    assert [words[0] for words in ran] == ["identify", "weigh"]
    assert "ur10" in ran[0]


def test_a_log_without_effort_ends_with_a_final_word(tmp_path, motion):
    t, q, v, _ = motion
    names = ["t", *(f"{word}_{j}" for word in ("q", "v") for j in range(6))]
    rows = np.column_stack([t, q, v])
    np.savetxt(tmp_path / "log.csv", rows, delimiter=",", header=",".join(names), comments="")
    refused = steelyard("start", "log.csv", "ur10", "--yes", "--is-empty", cwd=tmp_path)
    assert refused.returncode == 2
    assert "neither torques, motor currents nor a wrench" in refused.stderr


def test_names_are_typed_in_short():
    assert _short(expanded_names("t,q*6,current*6")) == "t,q*6,current*6"
    assert _short(("t", "q_0", "other7", "tau_0", "tau_1")) == "t,q*1,other7,tau*2"


def test_a_file_of_the_empty_arm_that_is_not_there_is_refused_before_anything_is_written(tmp_path):
    refused = steelyard("start", "log.csv", "--empty", "no.csv", "--yes", cwd=tmp_path)
    assert refused.returncode == 2
    assert "there is no file no.csv; a payload is weighed against the empty arm" in refused.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def ur_bag(tmp_path_factory, motion):
    """A bag of a UR10 whose effort is a torque, which its usual drivers do not publish."""
    t, q, _, tau = motion
    names = load_robot("ur10").joint_names
    return write_joint_states(tmp_path_factory.mktemp("bags") / "empty", names, t, q, tau)


@pytest.mark.parametrize("advice", ["--column current=effort", "--trust effort=torque"])
def test_what_is_said_about_the_effort_of_a_ur_is_accepted(tmp_path, ur_bag, ran, advice):
    words = ("start", str(ur_bag), "ur10", "--is-empty", "--yes", "-o", str(tmp_path))
    refused = steelyard(*words)
    assert refused.returncode == 2
    assert advice in refused.stderr
    assert "tau=effort" not in refused.stderr  # which would be refused
    done = steelyard(*words, *advice.split())
    assert done.returncode == 0, done.stderr
    (identify,) = ran
    assert identify[-2:] == advice.split()


def test_a_torque_of_a_ur_that_its_user_vouches_for_is_identified(tmp_path, ur_bag):
    words = ("identify", "ur10", str(ur_bag), "--friction", "linear", "-o", "model.json")
    refused = steelyard(*words, "--column", "tau=effort", cwd=tmp_path)
    assert refused.returncode == 2
    assert "if your driver does publish torques, state --trust effort=torque" in refused.stderr
    done = steelyard(*words, "--trust", "effort=torque", "--json", cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    assert "because the user vouches for it" in done.stdout
    both = ("--trust", "effort=torque", "--column", "tau=effort")
    refused = steelyard(*words, *both, cwd=tmp_path)
    assert "--trust effort=torque and --column tau= exclude each other" in refused.stderr


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_columns_of_a_ur_are_explained(tmp_path, motion, ran, ending):
    t, q, _, tau = motion
    blocks = {"actual_q": q, "actual_current": tau / 10, "target_moment": tau}
    blocks["actual_TCP_force"] = np.ones((len(t), 6))
    columns = {"timestamp": t} | {
        f"{name}_{j}": block[:, j] for name, block in blocks.items() for j in range(6)
    }
    path = tmp_path / f"log.{ending}"
    if ending == "csv":
        rows = np.column_stack(list(columns.values()))
        np.savetxt(path, rows, delimiter=",", header=",".join(columns), comments="")
    elif ending == "npz":
        np.savez(path, **columns)
    else:
        pq.write_table(pa.table(columns), path)
    done = steelyard("start", path.name, "ur10", "--is-empty", "--yes", cwd=tmp_path)
    assert (
        "  actual_current: measured motor currents [A], from which a UR is weighed" in done.stdout
    )
    assert "but they are not measured" in done.stdout
    assert "  actual_TCP_force: not read: the controller reports it in the base" in done.stdout
    assert "target_current:" not in done.stdout


def test_other_columns_are_not_those_of_a_ur(tmp_path, motion, ran):
    t, q, _, tau = motion
    names = ["t", *(f"{word}_{j}" for word in ("q", "tau") for j in range(6)), "payload"]
    rows = np.column_stack([t, q, tau, np.ones(len(t))])
    np.savetxt(tmp_path / "log.csv", rows, delimiter=",", header=",".join(names), comments="")
    done = steelyard("start", "log.csv", "ur10", "--is-empty", "--yes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "UR controller" not in done.stdout


@pytest.mark.parametrize("name", ["t", "time", "timestamp"])
def test_a_clock_in_milliseconds_is_noticed(tmp_path, motion, ran, name):
    t, q, _, tau = motion
    names = [name, *(f"{word}_{j}" for word in ("q", "tau") for j in range(6))]
    rows = np.column_stack([1e3 * t, q, tau])
    path = tmp_path / "log.csv"
    np.savetxt(path, rows, delimiter=",", header=",".join(names), comments="")
    done = steelyard("start", "log.csv", "ur10", "--is-empty", "--yes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "125 Hz" in done.stdout
    assert "Its clock counts milliseconds (--column t_ms)." in done.stdout
    (identify,) = ran
    assert identify[-2:] == ["--column", f"t_ms={name}"]


@pytest.mark.parametrize("code", [0, 1, 2])
def test_commands_that_are_refused_are_not_written(tmp_path, motion, monkeypatch, code):
    t, q, _, tau = motion
    table(tmp_path / "log.csv", t, q, tau)

    def ends(words, **_):
        return subprocess.CompletedProcess(words, code)

    monkeypatch.setattr(start.subprocess, "run", ends)
    words = ("start", "log.csv", "ur10", "--is-empty", "--yes", "--names", "t,q*6,tau*6")
    done = steelyard(*words, cwd=tmp_path)
    assert done.returncode == code
    assert (tmp_path / "log-results" / "commands.sh").exists() == (code < 2)
