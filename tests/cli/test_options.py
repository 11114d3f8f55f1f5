"""Arguments in messages of the library become options of the running command."""

import numpy as np
import pytest

from conftest import steelyard
from steelyard.cli import options
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
