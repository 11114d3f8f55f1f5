"""Every piece of advice works: a row for each shows who gets it, and how it ends when followed.

The rows are in `advice_rows.py`. The command that follows advice ends well (exit code 0, or 1 where
a verdict is part of the answer) or with other, final words.
"""

import ast
import json
import re
import shlex
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

from advice_calls import CALLS, JOINTS
from advice_rows import ELSEWHERE, IDENTIFY, NOT_ADVICE, ROWS, WEIGH, WRIST
from conftest import TINY, lively_motion, steelyard
from ros_bags import write_joint_states
from steelyard.cli import start
from steelyard.cli.output import NEXT_ACTIONS
from steelyard.errors import SteelyardError
from steelyard.inertia import InertialParameters
from steelyard.io import write
from steelyard.payload import Payload
from steelyard.recording import Recording
from steelyard.robot import DriveModel, RobotModel, load_robot
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import Verdict

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "steelyard"
NAMED = re.compile(r"`[a-z]\w*(=[^`]*)?`|(?<![\w-])--[a-z]")
HELP_MAKERS = ("Option", "Argument", "file_to_write", "Typer")


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
    known = [*(row.advice for row in (*ROWS, *CALLS)), *elsewhere, *NOT_ADVICE]
    missing = [text for text in advice if not any(words in text for words in known)]
    assert not missing, "\n".join(missing)
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
    _write_motions(path, robot)
    ur10 = load_robot("ur10")
    q, v, a = lively_motion(ur10, 1)
    tau = ur10.torque(q, v, a) + 0.1 * np.random.default_rng(1).normal(size=q.shape)
    write_joint_states(path / "ur_bag", ur10.joint_names, 0.01 * np.arange(len(q)), q, tau)
    steelyard(*shlex.split(IDENTIFY.replace("other", "model")), cwd=path)
    steelyard(*shlex.split(WEIGH), "-o", "payload.json", cwd=path)
    steelyard("weigh", "model.json", "scaled.csv", "-o", "doubtful.json", cwd=path)
    upside = IDENTIFY.replace("other", "upside")
    steelyard(*shlex.split(upside), "--gravity", "0,0,9.81", cwd=path)
    steelyard("export-arm", "mjcf", "model.json", "-o", "tiny.xml", cwd=path)
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
    _write(path / f"{name}_moment.csv", [x.replace("tau", "moment") for x in heads], rows)
    of_currents = [x.replace("tau", "current") for x in heads]
    targets = [f"{x}_target_{j}" for x in ("current", "tau") for j in range(3)]
    currents = {"empty": "current", "loaded": "current_loaded"}[name]
    _write(path / f"{currents}.csv", of_currents, rows)
    with_targets = np.column_stack([rows, tau, tau])
    _write(path / f"{currents}_targets.csv", [*of_currents, *targets], with_targets)
    if name == "loaded":
        _write(path / "scaled.csv", heads, np.column_stack([t, q, 1.3 * tau]))
    if name == "empty":
        _write(path / "milliseconds.csv", heads, np.column_stack([1e3 * t, q, tau]))
        _write(path / "odd.csv", [], np.column_stack([rows, q[:, 0]]))
        write(Recording(t, q, JOINTS, tau=tau), path / "named.parquet")
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
    rows = np.repeat(np.column_stack([q, wrench]), 150, axis=0)  # 1.5 s at rest in each posture
    t = 0.01 * np.arange(len(rows))
    _write(path / "rest.csv", ["t", *heads], np.column_stack([t, rows]))
    stated = 'frame = "sensor"\nconvention = "load_on_sensor"\n'
    (path / "convention.toml").write_text(stated)
    posed = f"{stated}translation = [0.0, 0.0, 0.04]\n"
    (path / "sensor.toml").write_text(posed)
    (path / "turned.toml").write_text(posed.replace('"sensor"', '"base"', 1))
    reverse = posed.replace("load_on_sensor", "sensor_on_load")
    (path / "reversed.toml").write_text(reverse)


def _write_motions(path: Path, robot: RobotModel) -> None:
    """Motions without and with the name of their arm, and a recording of a wrench in motion."""
    core = FourierTrajectory.random(
        np.zeros(3), reach=[0.5] * 3, speed=[1.0] * 3, period_s=4.0, harmonics=2, seed=1
    )
    core.save(path / "motion.json")
    content = json.loads((path / "motion.json").read_text())
    (path / "own.json").write_text(json.dumps({**content, "robot": robot.name}))
    t = 0.01 * np.arange(200)
    q, _, _ = core.at(t)
    R = robot.forward_kinematics(q)[:, :3, :3]
    gravity = np.einsum("kji,j->ki", R, robot.gravity_base)
    wrench = np.hstack([1.5 * gravity, np.zeros_like(gravity)])
    heads = ["t", *(f"q_{j}" for j in range(3)), *(f"wrench_{j}" for j in range(6))]
    _write(path / "moving.csv", heads, np.column_stack([t, q, wrench]))


def said_by(command: str, folder: Path) -> tuple[str, int]:
    """What a command prints, without line breaks, and its exit code."""
    done = steelyard(*shlex.split(command), cwd=folder)
    return " ".join((done.stdout + done.stderr).split()), done.returncode


def has_advice(said: str, advice: str) -> bool:
    """Whether a message has the words of the sources, whatever its values and arguments."""
    pieces = re.split(r"`[^`]*`|\.\.\.", advice)
    return all(piece.strip() in said for piece in pieces)


@pytest.mark.thorough
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


@pytest.mark.thorough
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.advice)
def test_advice_of_the_library_that_is_followed_ends_well(folder, call):
    with pytest.raises(SteelyardError) as refused:
        call.wrong(folder)
    assert has_advice(str(refused.value), call.advice)
    call.followed(folder)


PLACES = {
    "ROBOT": "tiny.urdf",
    "EMPTY": "empty.csv",
    "SAME_DAY": "loaded.csv",
    "KG:LOADED": "1.5:current_loaded_targets.csv",
    "-o model.json": "-o other.json --friction linear",
    "-o motion.csv": "-o motion.csv --starts 1 --harmonics 2 --time-limit 1",
}
"""What a user types instead of the words in capitals, and options that shorten the search."""


@pytest.mark.thorough
@pytest.mark.parametrize("cause", NEXT_ACTIONS)
def test_what_narrows_an_interval_is_a_command_that_runs(folder, cause):
    command = NEXT_ACTIONS[cause].partition(": steelyard ")[2]
    for words, typed in PLACES.items():
        command = command.replace(words, typed)
    if cause == "gains":  # only motor currents have gains
        command = command.replace("empty.csv", "current_targets.csv")
    said, code = said_by(command, folder)
    assert code in (0, 1), said
    assert "error:" not in said
