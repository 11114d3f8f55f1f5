"""Every piece of advice works: a row for each shows who gets it, and how it ends when followed.

A row has words of the message as they stand in the sources, a command that gets it, and the command
that does what it says. That one ends well (exit code 0, or 1 where a verdict is part of the answer)
or with other, final words. `ELSEWHERE` names the tests that follow other advice.
"""

import ast
import re
import shlex
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

import numpy as np
import pytest

from conftest import TINY, lively_motion, steelyard
from steelyard.cli import start
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.robot import DriveModel, RobotModel
from steelyard.verdict import Verdict


class Row(NamedTuple):
    """A piece of advice.

    Attributes:
        advice: words of the message as in the sources, with ... for values
        wrong: the command that gets it
        followed: the command that does what it says
        ends: the final words, where that does not end well
    """

    advice: str
    wrong: str
    followed: str
    ends: str = ""


TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "steelyard"
NAMED = re.compile(r"`[a-z]\w*(=[^`]*)?`|(?<![\w-])--[a-z]")
HELP_MAKERS = ("Option", "Argument", "file_to_write", "Typer")

GUIDE = "guide ur10 --payload ur10_payload.json --sides 0.02,0.02 --speed 0.1"
TRUTH = "--mass-true 2"
BOTH_TRUTHS = "--mass-true 2 --payload-true ur10_payload.json"
WEIGH = "weigh model.json loaded.csv"
EXPORT = "export ur payload.json -o payload.script"
DEGREES = "check empty_degrees.csv"
CHECK_UNTIMED = "check empty_untimed.csv --rate 100"
COLLISIONS = "collisions model.json empty.csv"
IDENTIFY = "identify tiny.urdf empty.csv -o other.json --friction linear"
FORMATS = [
    Row("--between is FROM,TO", "check empty.csv --between 3", "check empty.csv --between 0,3.1"),
    Row(
        "the second time must be the later one",
        "check empty.csv --between 3.1,0",
        "check empty.csv --between 0,3.1",
    ),
    Row("--fourier is PERIOD", f"{IDENTIFY} --fourier x", f"{IDENTIFY} --fourier 10,5"),
    Row(
        "--gains mass=KG:FILE needs a mass and a loaded recording",
        f"{IDENTIFY} --gains mass=1",
        f"{IDENTIFY} --gains mass=1.5:loaded.csv",
        "a known mass corrects drive gains: the recordings need motor currents",
    ),
    Row("--gains is auto, robot", f"{IDENTIFY} --gains some", f"{IDENTIFY} --gains auto"),
    Row("--lag is a number [s] or auto", f"{IDENTIFY} --lag x", f"{IDENTIFY} --lag 0.002"),
    Row("--cutoff is a number [Hz] or auto", f"{IDENTIFY} --cutoff x", f"{IDENTIFY} --cutoff auto"),
    Row("--gravity is X,Y,Z", f"{IDENTIFY} --gravity 9.81", f"{IDENTIFY} --gravity 0,0,-9.81"),
    Row(
        "--trust is ...",
        f"{IDENTIFY} --trust x",
        f"{IDENTIFY} --trust effort=torque",
        "name yours with --column tau=NAME",
    ),
    Row("--lock is JOINT=NUMBER", "robot held.urdf --lock wrist", "robot held.urdf --lock wrist=0"),
    Row(
        "--column is SIGNAL=NAME",
        "check empty_effort.csv --column effort",
        "check empty_effort.csv --column tau=effort",
    ),
    Row("--fix is NAME=NUMBER", f"{WEIGH} --fix mass", f"{WEIGH} --fix mass=1.5"),
    Row(
        "--com is X,Y,Z [m]",
        "simulate tiny.urdf -o run.npz --mass 1 --com 0",
        "simulate tiny.urdf -o run.npz --mass 1 --com 0,0,0.05",
    ),
    Row(
        "--com and --size describe a payload",
        "simulate tiny.urdf -o run.npz --com 0,0,0.05",
        "simulate tiny.urdf -o run.npz --com 0,0,0.05 --mass 1",
    ),
    Row(
        "a payload needs --mass and --size above 0",
        "simulate tiny.urdf -o run.npz --mass 1 --size 0",
        "simulate tiny.urdf -o run.npz --mass 1 --size 0.05",
    ),
    Row(
        "--tool-frame is 'x y z roll pitch yaw'",
        f"{EXPORT} --tool-frame 1",
        f"{EXPORT} --tool-frame '0 0 0.1 0 0 90'",
    ),
    Row(
        "give --tool-frame or --as-mounted, not both",
        f"{EXPORT} --as-mounted --tool-frame '0 0 0.1 0 0 90'",
        f"{EXPORT} --tool-frame '0 0 0.1 0 0 90'",
    ),
    Row("--as-mounted is for wrist sensors", f"{EXPORT} --as-mounted", EXPORT),
    Row(
        "--workers is a number of processes or an address",
        "fleet build logs -o store --robot tiny.urdf --workers x",
        "fleet build logs -o store --robot tiny.urdf --workers 1",
    ),
    Row(
        "--workers 0: give at least one process",
        "fleet build logs -o store --robot tiny.urdf --workers 0",
        "fleet build logs -o store --robot tiny.urdf --workers 1",
    ),
    Row(
        "--lock and --flange are for an arm given by --robot",
        "fleet build logs -o store --robot model.json --flange hand --workers 1",
        "fleet build logs -o store --robot tiny.urdf --flange hand --workers 1",
    ),
    Row(
        "a folder of logs does not say what its arms are",
        "fleet build logs -o store --workers 1",
        "fleet build logs -o store --robot tiny.urdf --workers 1",
    ),
    Row(
        "(`robot` stands for a missing 'model')",
        "fleet build catalogue.csv -o store --workers 1",
        "fleet build catalogue.csv -o store --robot tiny.urdf --workers 1",
    ),
]
"""Options in a wrong format, and options that exclude or need each other."""

READING = [
    Row(
        "it has no header but ... columns of numbers...; name each of them",
        "check empty_bare.csv",
        "check empty_bare.csv --names t,q_0,q_1,q_2,tau_0,tau_1,tau_2",
    ),
    Row(
        "or give the rows per second of a table without time",
        "check empty_untimed.csv",
        "check empty_untimed.csv --rate 100",
    ),
    Row("read the file with `degrees=True`", DEGREES, f"{DEGREES} --degrees"),
    Row(
        "a torque on some arms, a motor current on a UR: choose with",
        f"{IDENTIFY.replace('empty', 'empty_effort')}",
        f"{IDENTIFY.replace('empty', 'empty_effort')} --column tau=effort",
    ),
    Row("do not give `rate_hz`", "check empty.csv --rate 100", "check empty.csv"),
    Row(
        "or leave the column out with ...",
        "check empty.csv --rate 100",
        "check empty.csv --rate 100 --column t=",
    ),
    Row("do not give `names`", "check empty.csv --names t,q*3,tau*3", "check empty.csv"),
    Row(
        "`names` are for text tables without a header",
        "check empty.npz --names t,q*3,tau*3",
        "check empty.npz",
    ),
    Row("there is no channel '...'", "check empty.csv --column x=q_0", "check empty.csv"),
    Row(
        "steelyard wrote this file, which describes its own columns",
        "check written.parquet --degrees",
        "check written.parquet",
    ),
    Row(
        "give a file, or name a file for each signal",
        "check signals",
        "check signals --column q=q.txt --column tau=tau.txt --rate 100",
    ),
    Row(
        "some `columns` are files, but not ...",
        "check signals --column q=q.txt --column tau=tau --rate 100",
        "check signals --column q=q.txt --column tau=tau.txt --rate 100",
    ),
    Row(
        "it has a wrench (..., ...), but not its frame and convention",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor convention.toml",
    ),
    Row(
        "the sensor's description does not say which columns are the wrench",
        "weigh-wrist at-rest wrench.csv --sensor convention.toml",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor convention.toml",
    ),
    Row(
        "the pose of the sensor on the flange was not given",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor convention.toml",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor sensor.toml",
    ),
    Row(
        "state the other convention, `wrench_convention='sensor_on_load'`",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor reversed.toml",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor sensor.toml",
    ),
    Row(
        "the load weighs ... kg: the sign of the wrench is not as stated",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor reversed.toml",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor sensor.toml",
    ),
    Row(
        "has no time, so its rows are postures at rest",
        "weigh-wrist in-motion wrench.csv --robot tiny.urdf --sensor sensor.toml",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor sensor.toml",
    ),
    Row(
        "joint '...' of the arm follows '...' (<mimic>)",
        "robot mimic.urdf",
        "robot mimic.urdf --lock elbow=0.0",
    ),
]
"""Files whose meaning is open."""

WEIGHING = [
    Row("is a robot, not an identified model", "weigh tiny.urdf loaded.csv", IDENTIFY),
    Row("is a robot, not an identified model", "track loaded.csv --model tiny.urdf", IDENTIFY),
    Row(
        "needs no empty runs: leave `empty` out, or choose `method` ...",
        f"{WEIGH} --empty empty.csv --method direct",
        f"{WEIGH} --empty empty.csv --method auto",
    ),
    Row(
        "are too few to choose a friction law by prediction",
        "identify tiny.urdf short.csv -o other.json",
        "identify tiny.urdf short.csv -o other.json --friction linear",
    ),
    Row(
        "the recordings hold motor currents without the controller's targets",
        "identify tiny.urdf current.csv -o other.json --friction linear",
        "identify tiny.urdf current.csv -o other.json --friction linear --gains 1,1,1",
    ),
    Row(
        "not exported: ...; weigh again, or use --force",
        "export ur doubtful.json -o x.script",
        "export ur doubtful.json -o x.script --force",
    ),
    Row(
        "thresholds are learned or fixed: give `learn` or `threshold`, not both",
        f"{COLLISIONS} --learn empty.csv --threshold 1",
        f"{COLLISIONS} --threshold 20",
    ),
    Row(
        "for which there is no default threshold: give `threshold` or `learn`",
        f"{COLLISIONS} --observer energy",
        f"{COLLISIONS} --observer energy --threshold 50",
    ),
    Row(
        "--false-alarms sets thresholds with --learn",
        f"{COLLISIONS} --false-alarms 1",
        f"{COLLISIONS} --false-alarms 1 --learn loaded.csv --payload payload.json",
    ),
    Row(
        "explains the torques better, with residuals",
        f"{IDENTIFY} --gravity 0,0,9.81",
        f"{IDENTIFY} --gravity 0,0,-9.81",
    ),
]
"""Answers that are refused or doubted."""

WRIST = "weigh-wrist at-rest wrench.csv --robot tiny.urdf"
OTHERS = [
    Row(
        "was weighed in the frame of a wrist sensor",
        "export ur wrist.json -o wrist.script",
        "export ur wrist.json -o wrist.script --as-mounted",
    ),
    Row(
        "--lock and --flange are for an arm: name it with --robot",
        "weigh-wrist at-rest wrench.csv --sensor sensor.toml --flange hand",
        f"{WRIST} --sensor sensor.toml --flange hand",
    ),
    Row(
        "were measured in the sensor frame and not rotated",
        f"{WRIST} --sensor turned.toml",
        f"{WRIST} --sensor sensor.toml",
    ),
    Row("`inertia` must be one of ...", f"{EXPORT} --inertia x", f"{EXPORT} --inertia sphere"),
    Row(
        "already has a link '...' that is not a payload",
        "patch payload tiny.urdf payload.json -o patched.urdf --name hand",
        "patch payload tiny.urdf payload.json -o patched.urdf --name part",
    ),
    Row("--payload-true or --mass-true, not both", f"{GUIDE} {BOTH_TRUTHS}", f"{GUIDE} {TRUTH}"),
    Row("--mass-true must be positive", f"{GUIDE} --mass-true 0", f"{GUIDE} {TRUTH}"),
]

START = "start empty.csv tiny.urdf --yes"
STARTING = [
    Row("say what the arm carries: --is-empty for nothing", START, f"{START} --is-empty"),
    Row(
        "--is-empty and --empty exclude each other",
        f"{START} --is-empty --empty empty.csv",
        f"{START} --is-empty",
    ),
    Row(
        "say whether the last columns are torques",
        "start empty_bare.csv tiny.urdf --yes --is-empty",
        "start empty_bare.csv tiny.urdf --yes --is-empty --names t,q*3,tau*3",
    ),
    Row(
        "say what '...' is: --column tau=... for torques",
        "start empty_effort.csv tiny.urdf --yes --is-empty",
        "start empty_effort.csv tiny.urdf --yes --is-empty --column tau=effort",
    ),
    Row(
        "the log has no time column: give its --rate",
        "start empty_untimed.csv tiny.urdf --yes --is-empty",
        "start empty_untimed.csv tiny.urdf --yes --is-empty --rate 100",
    ),
]
"""`steelyard start` in a script."""

ROWS = [*FORMATS, *READING, *WEIGHING, *OTHERS, *STARTING]

ELSEWHERE = {
    "architecture/test_readme.py::"
    "test_commands_run_in_their_order_and_the_example_weighs_the_payload": (
        "steelyard weigh model.json ... --report page.html",
        "steelyard weigh ... LOADED... -o payload.json",
        "-o payload.json keeps it, --report page.html shows it",
    ),
    "cli/test_start.py::test_a_loaded_log_is_weighed_against_the_empty_one": (
        "steelyard start LOADED ... --empty ...",
        "give --empty FILE, a recording of the empty arm or its model",
    ),
    "cli/test_start.py::test_a_log_without_effort_ends_with_a_final_word": (
        "has neither torques, motor currents nor a wrench",
    ),
    "cli/test_start.py::test_a_wrist_table_gets_a_description_with_the_right_sign": (
        "the log does not say how the sensor is mounted",
    ),
    "cli/test_weigh_wrist.py::test_a_tilted_base_asks_for_its_mount_once_and_gravity_answers": (
        "the base appears to be tilted by ... degrees",
    ),
    "io/test_rosbag.py::test_what_effort_is_must_be_said": (
        "`columns={'tau': 'effort'}` for a torque [Nm]",
    ),
    "io/test_rosbag.py::test_the_effort_of_a_ur_is_no_torque": (
        "a Universal Robots arm publishes motor currents",
        "these are the joints of a Universal Robots arm",
    ),
    "io/test_rosbag.py::test_degrees_are_refused": ("a JointState is in radians (REP 103)",),
    "io/test_rosbag.py::test_the_topic_is_named_where_there_are_several": (
        "choose one with `columns=",
    ),
    "io/test_rosbag.py::test_some_of_the_joints": (
        "Name the joints in the order of the arm with",
        "choose joints, in the order of the arm, with",
    ),
    "io/test_rosbag.py::test_the_wrench_needs_its_convention_and_one_frame": (
        "a WrenchStamped does not state its sign",
        "frames (...) instead of one; give `wrench_frame`",
    ),
    "live/test_commands.py::test_the_verb_shows_asks_sets_and_undoes": (
        "Nothing was sent; --yes sends it.",
        "(--undo restores it)",
    ),
    "live/test_commands.py::test_the_command_move_records_the_motion": (
        "nothing was moved: --yes moves the arm",
    ),
    "picking/test_picks.py::test_polarity_is_found_and_may_be_given": (
        "the gripper column has hardly any edges",
        "it is not clear which value of the gripper means closed",
        "--closed is auto, high or low",
        "`closed` is auto, high or low",
    ),
    "picking/test_picks_command.py::test_a_stream_gives_the_picks_of_the_log": (
        "a stream needs `closed='high'`",
        "--record and --seconds are for streams",
    ),
    "picking/test_picks_command.py::test_a_simulated_shift_from_a_plan": (
        "--cycle holds the motion and the parts",
    ),
}
"""Tests that follow advice with an arm on the network, a bag or a longer computation."""

NOT_ADVICE = (
    "(see steelyard... --help)",
    "Exit code 1, and no file",
    "Its angles are in degrees (--degrees).",
    "It has no header; its columns are read as",
    "Gravity: as for an arm on the floor",
    "warning: --on-alarm, pick",
    "about the value that `identify` prints",
    "the 95 % intervals that `weigh` will report",
    "another program, `other_program`, is started",
)
"""Texts that name an option or a function without advising its use."""

NOT_FOLLOWED_YET = 64
"""Number of pieces of advice without a row. It may fall, not rise."""


def _text(node: ast.AST) -> str:
    """The text of a string in the sources, with ... for each value."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (str(x.value) if isinstance(x, ast.Constant) else "..." for x in node.values)
        return re.sub(r"(\.\.\.)+", "...", "".join(parts))
    return ""


def _not_messages(tree: ast.Module) -> set[int]:
    """Docstrings, help of options and parts of longer strings."""
    left_out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            left_out.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            left_out |= {id(part) for part in ast.walk(node)} - {id(node)}
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in HELP_MAKERS:
            left_out |= {id(part) for part in ast.walk(node)}
    return left_out


def advice_in_the_sources() -> list[str]:
    """Messages that name an argument between backticks or an option."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        left_out = _not_messages(tree)
        texts = [
            " ".join(_text(node).split()) for node in ast.walk(tree) if id(node) not in left_out
        ]
        found += [text for text in texts if len(text.split()) >= 4 and NAMED.search(text)]
    return found


def test_every_piece_of_advice_has_a_row():
    """New advice needs a row; words that are in no message any more are taken out."""
    advice = advice_in_the_sources()
    elsewhere = [words for texts in ELSEWHERE.values() for words in texts]
    known = [*(row.advice for row in ROWS), *elsewhere, *NOT_ADVICE]
    missing = [text for text in advice if not any(words in text for words in known)]
    assert len(missing) <= NOT_FOLLOWED_YET, "\n".join(missing)
    sources = " ".join(advice)
    assert [words for words in (*elsewhere, *NOT_ADVICE) if words not in sources] == []


def test_the_tests_that_follow_advice_exist():
    for test in ELSEWHERE:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (TESTS / file).read_text(), test


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Files of a small arm: its URDF, recordings of it empty and loaded in several formats."""
    path = tmp_path_factory.mktemp("advice")
    text = TINY["revolute"]
    for name in ("tiny", "held"):
        (path / f"{name}.urdf").write_text(text)
    mimic = '<axis xyz="0 1 0"/><mimic joint="shoulder"/>'
    (path / "mimic.urdf").write_text(text.replace('<axis xyz="0 1 0"/>', mimic))
    robot = RobotModel.from_urdf(path / "tiny.urdf")
    drive = DriveModel(np.zeros(3), [3.0, 4.0, 2.0], 2.0 * np.ones(3), np.array([0.3, -0.2, 0.1]))
    arm = robot.with_drive(drive)
    load = InertialParameters.from_com(1.5, (0.03, 0.02, 0.1), 0.01 * np.eye(3), robot.flange)
    for seed, name in enumerate(("empty", "loaded")):
        q, v, a = lively_motion(robot, seed + 1)
        tau = arm.torque(q, v, a) + seed * robot.payload_regressor(q, v, a) @ load.vector
        tau += 0.1 * np.random.default_rng(seed).normal(size=tau.shape)
        _write_tables(path, name, 0.01 * np.arange(len(q)), q, tau)
    _write_signals(path, q, tau)
    body = InertialParameters.from_com(3.0, [0.01, 0.02, 0.05], 0.01 * np.eye(3), "flange")
    verdict = Verdict("all ten were excited")
    Payload(body, body, 1e-4 * np.eye(10), np.ones(6), verdict).save(path / "ur10_payload.json")
    _write_wrench(path, robot, load)
    steelyard(*shlex.split(IDENTIFY.replace("other", "model")), cwd=path)
    steelyard(*shlex.split(WEIGH), "-o", "payload.json", cwd=path)
    steelyard("weigh", "model.json", "empty.csv", "-o", "doubtful.json", cwd=path)
    steelyard("check", "empty.csv", "-o", "written.parquet", cwd=path)
    steelyard(*shlex.split(WRIST), "--sensor", "sensor.toml", "-o", "wrist.json", cwd=path)
    return path


def _write_tables(path: Path, name: str, t: np.ndarray, q: np.ndarray, tau: np.ndarray) -> None:
    """One recording as tables that leave something open."""
    heads = ["t", *(f"{signal}_{j}" for signal in ("q", "tau") for j in range(3))]
    rows = np.column_stack([t, q, tau])
    _write(path / f"{name}.csv", heads, rows)
    _write(path / f"{name}_bare.csv", [], rows)
    _write(path / f"{name}_untimed.csv", heads[1:], rows[:, 1:])
    _write(path / f"{name}_degrees.csv", heads, np.column_stack([t, np.degrees(q), tau]))
    _write(path / f"{name}_effort.csv", [x.replace("tau", "effort") for x in heads], rows)
    if name == "empty":
        _write(path / "current.csv", [x.replace("tau", "current") for x in heads], rows)
        _write(path / "short.csv", heads, rows[:150])
        _write(path / "gap.csv", heads, rows[(t < 3) | (t > 4)])
        (path / "logs" / "arm1").mkdir(parents=True)
        _write(path / "logs" / "arm1" / "a.csv", heads, rows)
        (path / "catalogue.csv").write_text("robot,file\narm1,empty.csv\n")
        np.savez(path / "empty.npz", t=t, q=q, tau=tau)


def _write(path: Path, heads: list[str], rows: np.ndarray) -> None:
    np.savetxt(path, rows, header=",".join(heads), delimiter=",", comments="", fmt="%.7g")
    if not heads:
        path.write_text(path.read_text().lstrip())


def _write_signals(path: Path, q: np.ndarray, tau: np.ndarray) -> None:
    """A folder with a file for each signal."""
    (path / "signals").mkdir()
    np.savetxt(path / "signals" / "q.txt", q)
    np.savetxt(path / "signals" / "tau.txt", tau)


def _write_wrench(path: Path, robot: RobotModel, load: InertialParameters) -> None:
    """Postures at rest with the wrench of a load, and descriptions of the sensor."""
    rng = np.random.default_rng(4)
    q = rng.uniform(-2.0, 2.0, (20, 3))
    R = robot.forward_kinematics(q)[:, :3, :3]
    gravity = np.einsum("kji,j->ki", R, robot.gravity_base)
    wrench = np.hstack([load.mass * gravity, np.cross(load.mass * load.com, gravity)])
    wrench += 0.01 * rng.normal(size=wrench.shape)
    heads = [*(f"q_{j}" for j in range(3)), *(f"wrench_{j}" for j in range(6))]
    _write(path / "wrench.csv", heads, np.column_stack([q, wrench]))
    stated = 'frame = "sensor"\nconvention = "load_on_sensor"\n'
    (path / "convention.toml").write_text(stated)
    posed = f"{stated}translation = [0.0, 0.0, 0.04]\n"
    (path / "sensor.toml").write_text(posed)
    (path / "turned.toml").write_text(posed.replace('"sensor"', '"base"', 1))
    reverse = posed.replace("load_on_sensor", "sensor_on_load")
    (path / "reversed.toml").write_text(reverse)


def said_by(command: str, folder: Path) -> tuple[str, int]:
    """What a command prints, without line breaks, and its exit code."""
    done = steelyard(*shlex.split(command), cwd=folder)
    return " ".join((done.stdout + done.stderr).split()), done.returncode


def has_advice(said: str, advice: str) -> bool:
    """Whether a message has the words of the sources, whatever its values and arguments."""
    pieces = re.split(r"`[^`]*`|\.\.\.", advice)
    return all(piece.strip() in said for piece in pieces)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.advice)
def test_advice_that_is_followed_ends_well(folder, monkeypatch, row):
    monkeypatch.setattr(start.subprocess, "run", lambda *_, **__: CompletedProcess([], 0))
    said, code = said_by(row.wrong, folder)
    assert has_advice(said, row.advice), said
    said, code = said_by(row.followed, folder)
    assert not has_advice(said, row.advice) or row.advice in row.ends
    if row.ends:
        assert row.ends in said
    else:
        assert code in (0, 1), said
        assert "error:" not in said, said
