"""Arguments in messages of the library become options of the running command."""

import re
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.main import get_command

from conftest import steelyard
from steelyard.cli import _app, options
from steelyard.errors import UnreadableFile
from steelyard.io import write
from steelyard.recording import Recording


@pytest.fixture
def check_command(monkeypatch):
    """The command `check` counts as the running one."""
    import typer

    from steelyard.cli import check

    app = typer.Typer()
    app.command(cls=options.Verb)(check.command)
    token = options._running_command.set(typer.main.get_command(app))
    yield
    options._running_command.reset(token)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("give `flange`", "give --flange"),
        ("read it with `degrees=True`", "read it with --degrees"),
        ("`columns={'tau': 'effort'}`", "--column tau=effort"),
        ("`columns={'tau': []}`", "--column tau="),
        ("`joint_names=['a', 'b']`", "--joints a,b"),
        ("`names='t,q*6'`", "--names t,q*6"),
        ("`locked={'finger': 0}`", "--lock finger=0"),
        ("`longest_gap_s`", "longest_gap_s in Python"),
        ("`force=True`", "force=True in Python"),
        ("`gain`", "--gains of steelyard identify"),
        ("`bit` lies between 0 and 62", "the bit of the gripper lies between 0 and 62"),
    ],
)
def test_arguments_become_options(check_command, message, expected):
    assert options.with_options(message) == expected


def test_arguments_stay_without_a_command():
    assert options.with_options("give `flange`") == "give `flange`"


def test_a_refusal_names_only_what_was_given(tmp_path, rng):
    t = 0.01 * np.arange(200)
    names = ("shoulder", "elbow", "wrist")
    q, tau = rng.normal(size=(2, 200, 3))
    write(Recording(t, q, names, tau=tau), tmp_path / "own.npz")
    with_rate = steelyard("check", "own.npz", "--rate", "100", cwd=tmp_path)
    dry = ("--model", "planar2r", "--dry", "own.npz")
    with_gripper = steelyard("picks", "own.npz", *dry, "--gripper", "t", cwd=tmp_path)
    assert with_rate.stderr.endswith("in radians; do not give --rate\n")
    assert with_gripper.stderr.endswith("in radians; do not give --gripper t\n")


def test_an_argument_without_an_option_is_said_to_be_one_of_python(tmp_path):
    (tmp_path / "store").mkdir()
    end = steelyard("record", "replay:store", "-o", "out.parquet", cwd=tmp_path)
    assert end.returncode == 2
    assert "name a file for each signal: columns={'q': 'ang.txt'} in Python" in end.stderr


def every_command(command):
    """A command, or those of a group and of its groups."""
    if not hasattr(command, "commands"):
        return [command]
    return [inner for group in command.commands.values() for inner in every_command(group)]


def test_a_file_to_write_has_an_ending_that_the_help_names():
    found = 0
    for command in every_command(get_command(_app(""))):
        for param in command.params:
            endings = re.findall(r"(?<!\w)\.[a-z]+\b", getattr(param, "help", None) or "")
            if param.callback is None or not endings:
                continue
            context = typer.Context(command)
            for ending in endings:
                param.callback(context, param, Path(f"new{ending}"))
            with pytest.raises(UnreadableFile, match=r"new\.xyz: .*must end in"):
                param.callback(context, param, Path("new.xyz"))
            found += 1
    assert found > 40
