"""Arguments in messages of the library become options of the running command."""

import pytest

from steelyard.cli import options


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
        ("`longest_gap_s`", "`longest_gap_s`"),
    ],
)
def test_arguments_become_options(check_command, message, expected):
    assert options.with_options(message) == expected


def test_arguments_stay_without_a_command():
    assert options.with_options("give `flange`") == "give `flange`"
