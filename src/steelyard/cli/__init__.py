"""The command line: one file per verb. The only room that prints."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import entry_points
from typing import Annotated

import typer
from typer.exceptions import TyperException

from steelyard.cli import (
    check,
    collisions,
    contact,
    demo,
    design,
    export,
    guide,
    identify,
    postures,
    robot,
    robots,
    simulate,
    weigh,
    weigh_ft,
)
from steelyard.cli.output import complain
from steelyard.errors import SteelyardError, UnknownName

__all__ = ["run"]

app = typer.Typer(
    name="steelyard",
    help="Weighs what a robot arm carries, from joint torques, motor currents or a wrist sensor.",
    no_args_is_help=False,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # brackets are units
)
VERBS = (
    *(demo, robots, robot, check, simulate, design, postures),
    *(identify, weigh, weigh_ft, contact, collisions, guide, export),
)
for verb in VERBS:
    app.command(name=verb.__name__.rsplit(".", 1)[-1].replace("_", "-"))(verb.command)
ELSEWHERE = {"reproduce": "pip install ./papers (steelyard-papers, in the repository of steelyard)"}
"""Verbs that packages beside this one plug in, and how to install each."""


@app.callback()
def _steelyard(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="The version, and no more.")] = False,
) -> None:
    """Weighs what a robot arm carries, from joint torques, motor currents or a wrist sensor."""
    if version:
        from steelyard import __version__

        print(f"steelyard {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
        return
    from steelyard.computing import one_blas_thread

    ctx.with_resource(one_blas_thread())


@cache
def _plug_in() -> None:
    """Adds, once, the verbs of packages beside this one; one that is missing says how to install it."""
    found = entry_points(group="steelyard.verbs")
    for entry in found:
        app.command(name=entry.name)(entry.load())
    for name in ELSEWHERE.keys() - {entry.name for entry in found}:
        anything = {"ignore_unknown_options": True, "allow_extra_args": True}
        app.command(name=name, hidden=True, add_help_option=False, context_settings=anything)(_missing)


def _missing(ctx: typer.Context) -> None:
    name = str(ctx.info_name)
    raise UnknownName(f"{name} is in a package of its own: {ELSEWHERE[name]}")


def run() -> None:
    """Runs the command; exit code 0 is fine, 1 is bad news, 2 is bad input."""
    as_json = "--json" in sys.argv
    _plug_in()
    try:
        sys.exit(app(standalone_mode=False))
    except SteelyardError as error:
        complain(str(error), as_json=as_json)
        sys.exit(2)
    except TyperException as error:
        complain(f"{error.format_message()} (see steelyard --help)", as_json=as_json)
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        complain("stopped", as_json=as_json)
        sys.exit(130)
