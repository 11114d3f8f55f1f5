"""The command line: printed text, one JSON object, exit codes, one line for an error."""

import json
import re
import subprocess
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.main import get_command

from conftest import LIMIT, steelyard
from steelyard.cli import _app
from steelyard.cli.output import Output
from steelyard.io import read
from steelyard.robot import robot_names

LIFT = """<robot name="lift"><link name="base"/><link name="column"><inertial><mass value="3"/>
<origin xyz="0 0 0.1"/><inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/>
</inertial></link><joint name="up" type="prismatic"><parent link="base"/><child link="column"/>
<axis xyz="0 0 1"/><limit lower="0" upper="0.35" velocity="0.1" effort="300"/></joint></robot>"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "planar.parquet"
    done = steelyard("simulate", "planar2r", "-o", path, "--mass", "0.5", "--seed", "3")
    assert done.returncode == 0, done.stderr
    return path


def test_help_lists_every_verb():
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    verbs = "demo robots robot check simulate design postures identify weigh weigh-wrist contact"
    verbs += " collisions guide export"
    listed = re.findall(r"^[ │]*([a-z-]+)  ", done.stdout, re.MULTILINE)
    assert set(verbs.split()) <= set(listed), done.stdout


def test_robots_as_words_and_as_json():
    words, data = steelyard("robots"), steelyard("robots", "--json")
    names = [robot["name"] for robot in json.loads(data.stdout)["robots"]]
    assert names == list(robot_names())
    assert all(name in words.stdout for name in names)


def test_robot_tells_joints_and_base_parameters():
    done = steelyard("robot", "ur10")
    assert "58 base parameters out of 84" in done.stdout
    assert "pi_31 = Ixy6" in done.stdout
    data = json.loads(steelyard("robot", "ur10", "--rigid", "--json").stdout)
    assert data["base_parameters"] == 36
    assert data["limits"]["a_max"] == [None] * 6  # not published


def test_joints_may_be_locked():
    done = steelyard(
        "robot", "ur10", "--lock", "wrist_3_joint=0", "--lock", "wrist_2_joint=1.5", "--json"
    )
    assert len(json.loads(done.stdout)["joints"]) == 4
    done = steelyard("robot", "ur10", "--lock", "wrist_3_joint")
    assert (done.returncode, done.stderr) == (
        2,
        "error: --lock is JOINT=NUMBER, say finger=0.02; got 'wrist_3_joint'\n",
    )


def test_an_arm_with_fingers_says_what_stands_still_and_how_it_rubs(tmp_path, tiny):
    limit = LIMIT + '<dynamics damping="0.7" friction="1.5"/>'
    (tmp_path / "arm.urdf").write_text(tiny["mimic"].replace(LIMIT, limit))
    done = steelyard("robot", tmp_path / "arm.urdf")
    assert (
        "Held still, not on the way to the flange 'tool0': finger_left = 0, finger_right = 0"
        in done.stderr
    )
    assert "coulomb friction [Nm or N]: 1.5, 1.5\nviscous friction" in done.stdout


def test_every_verb_that_reads_an_arm_or_a_recording_has_the_same_options():
    from steelyard.cli import _COMMANDS

    for verb, where in _COMMANDS.items():
        module, function = where.split(".")
        command = getattr(import_module(f"steelyard.cli.{module}"), function)
        if isinstance(command, typer.Typer):
            continue
        given = set(signature(command).parameters)
        assert {"robot", "arm"}.isdisjoint(given) or {"lock", "flange"} <= given, verb
        assert "column" not in given or {"names", "degrees", "joints"} <= given, verb


def test_robot_symbolic_prints_formulas():
    done = steelyard("robot", "planar2r", "--symbolic")
    assert done.returncode == 0
    assert "pi_5 = mx2 + a2 m2" in done.stdout


def test_simulated_recording_passes_the_check(recorded):
    done = steelyard("check", recorded, "--robot", "planar2r", "--json")
    data = json.loads(done.stdout)
    assert done.returncode == 0
    assert data["ok"] is True
    assert "2 joints" in steelyard("check", recorded).stdout


def test_bad_news_is_exit_code_1(recorded):
    done = steelyard("check", recorded, "--robot", "ur10")
    assert done.returncode == 1
    assert "error  the recording has 2 joints, the arm has 6: another arm's log" in done.stdout
    assert not json.loads(steelyard("check", recorded, "--robot", "ur10", "--json").stdout)["ok"]


def test_check_writes_a_log_in_degrees_anew_and_cuts_it(tmp_path):
    t = np.arange(0, 4, 0.01)
    q = np.column_stack([1.5 * np.sin(t), np.cos(t)])
    table = np.column_stack([t, np.degrees(q)])
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header="time,pos_0,pos_1", comments="")
    words = ("check", "log.csv", "--column", "q=pos_", "--robot", "planar2r")
    wrong = steelyard(*words, cwd=tmp_path)
    assert wrong.returncode == 1
    assert "if degrees, read the file with --degrees" in wrong.stdout
    done = steelyard(*words, "--degrees", "--between", "1,3", "-o", "new.parquet", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Written: new.parquet" in done.stdout
    recording = read(tmp_path / "new.parquet")
    np.testing.assert_allclose(recording.q, q[100:301], atol=1e-9)
    for text in ("3", "a,b", "3,1"):
        assert "--between" in steelyard(*words, "--between", text, cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("robot", "ur11"),
            "no robot 'ur11': bundled are fr3, gen3, gofa5, iiwa14, iiwa7, kr300",
        ),
        (("robot", "missing.urdf"), "missing.urdf: no such file"),
        (("check", "missing.parquet"), "missing.parquet"),
        (
            ("simulate", "ur10", "--trajectory", "unknown", "-o", "x.parquet"),
            "no trajectory 'unknown'",
        ),
        (
            ("simulate", "planar2r", "--trajectory", "xu2024", "-o", "x.parquet"),
            "the robot has 2 joints",
        ),
        (
            ("simulate", "planar2r", "-o", "x.parquet", "--mass", "1", "--com", "here"),
            "--com is X,Y,Z [m]",
        ),
        (
            ("simulate", "planar2r", "-o", "x.parquet", "--com", "0,0,1"),
            "--com and --size describe a payload: give its --mass, too",
        ),
        (("simulate", "planar2r"), "Missing option '--output'"),
        (
            ("identify", "ur10", "log.csv"),
            "'-o'. The model to write (.json). (see steelyard identify --help)",
        ),
        (("robot", "ur10", "--colour"), "No such option"),
        (("robot", "ur10", "--gravity", "0,0,1e308"), "--gravity is X,Y,Z [m/s^2], say 0,9.81,0"),
        (("robot", "ur10", "--lock", "wrist_3_joint=nan"), "--lock is JOINT=NUMBER"),
        (
            ("shortest-motion", "ur10", "--accuracy", "mass=1%", "--noise", "1e308,1,1,1,1,1"),
            "--noise takes numbers as 1,2,3",
        ),
        (("weight",), "No such command 'weight'"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(arguments, words, tmp_path):
    done = steelyard(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
    as_json = steelyard(*arguments, "--json", cwd=tmp_path)
    assert words in json.loads(as_json.stdout)["error"]


@pytest.mark.thorough
def test_demo_weighs_within_its_own_interval_and_draws(tmp_path):
    done = steelyard("demo", "--json", "-o", "a/demo.png", cwd=tmp_path)
    data = json.loads(done.stdout)
    assert done.returncode == 0
    assert abs(data["mass"] - data["mass_truth"]) < 3 * data["mass_std"]
    assert 0 < data["mass_std"] < 0.01 * data["mass_truth"]
    assert (tmp_path / "a" / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert data["report"] == "a/demo.html"
    assert "What ur10 carries" in (tmp_path / data["report"]).read_text(encoding="utf-8")


def test_optional_dependencies_are_not_loaded_by_importing_the_package():
    code = "import sys, steelyard; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    heavy = {"typer", "rich", "mujoco", "sympy", "pyarrow", "matplotlib", "pinocchio", "scipy"}
    assert not heavy & set(done.stdout.split())


def test_every_public_name_exists():
    import steelyard

    for name in steelyard.__all__:
        assert getattr(steelyard, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        steelyard.nothing  # noqa: B018
    assert "weigh" in dir(steelyard)


def test_a_reader_that_closes_the_pipe_early_is_no_error(tmp_path):
    """As in `steelyard ... | head -1`: the exit code is that of the command, without a message."""
    recording = tmp_path / "empty.npz"
    assert steelyard("example", "ur10", "-o", tmp_path).returncode == 0
    words = [sys.executable, "-m", "steelyard", "check", str(recording), "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 0


def test_a_random_motion_keeps_the_limits_of_a_joint_whose_home_is_at_one(tmp_path):
    (tmp_path / "lift.urdf").write_text(LIFT)
    done = steelyard("simulate", "lift.urdf", "-o", "run.npz", "--ideal", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    q = read(tmp_path / "run.npz").q
    assert q[:, 0].min() > 0.0
    assert q[:, 0].max() < 0.35
    assert np.ptp(q[:, 0]) > 0.02


def every_command(command, words=()):
    """A command and those of its groups, with the words that start them."""
    if not hasattr(command, "commands"):
        yield words, command
        return
    for name, inner in command.commands.items():
        yield from every_command(inner, (*words, name))


def test_help_names_values_in_words_and_explains_every_option():
    program = get_command(_app(""))
    for words, command in every_command(program):
        context = command.make_context(" ".join(words), [], resilient_parsing=True)
        assert not re.search(r"<[\w\[\] ]+>", command.get_help(context)), words
        assert "{" not in command.get_usage(context), words
        for parameter in command.params:
            assert parameter.help, (words, parameter.name)
            assert parameter.help[0].isupper(), (words, parameter.name, parameter.help)


def test_tables_cut_no_name(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    names = [f"a_rather_long_name_of_joint_{k}" for k in range(5)]
    Output(False).table("Title", ("", *names), [("row", *"12345")])
    printed = capsys.readouterr().out
    assert all(name in printed for name in names)
