"""The command line: one file per verb. The only room that prints."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated

import typer
from typer.exceptions import TyperException

from steelyard.cli.output import Output
from steelyard.errors import SteelyardError, UnknownName

__all__ = ["run"]

_VERBS = {
    "demo": "demo.command",
    "robots": "robot.list_command",
    "robot": "robot.command",
    "check": "check.command",
    "simulate": "simulate.command",
    "design": "design.command",
    "postures": "postures.command",
    "identify": "identify.command",
    "weigh": "weigh.command",
    "weigh-ft": "weigh_ft.command",
    "record": "record.command",
    "watch": "watch.command",
    "weigh-live": "weigh_live.command",
    "run": "play.command",
    "set-payload": "set_payload.command",
    "contact": "contact.command",
    "collisions": "collisions.command",
    "guide": "guide.command",
    "export": "export.command",
    "fleet": "fleet.command",
}
"""Our verbs, and the functions that run them; modules are loaded when they are called."""
_ELSEWHERE = {"reproduce": "pip install ./papers (steelyard-papers, in the repository of steelyard)"}
"""Verbs that packages beside this one plug in, and how to install each."""


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


def _app(first: str) -> typer.Typer:
    """The command with the one verb that is named first; with all of them where that is none of ours."""
    app = typer.Typer(
        name="steelyard",
        help="Weighs what a robot arm carries, from joint torques, motor currents or a wrist sensor.",
        no_args_is_help=False,
        invoke_without_command=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # brackets are units
    )
    app.callback()(_steelyard)
    for verb in (first,) if first in _VERBS else _VERBS:
        module, function = _VERBS[verb].split(".")
        app.command(name=verb)(getattr(import_module(f"steelyard.cli.{module}"), function))
    if first not in _VERBS:
        _plug_in(app)
    return app


def _plug_in(app: typer.Typer) -> None:
    """Adds the verbs of packages beside this one; one that is missing says how to install it."""
    from importlib.metadata import entry_points

    found = entry_points(group="steelyard.verbs")
    for entry in found:
        app.command(name=entry.name)(entry.load())
    for name in _ELSEWHERE.keys() - {entry.name for entry in found}:
        anything = {"ignore_unknown_options": True, "allow_extra_args": True}
        app.command(name=name, hidden=True, add_help_option=False, context_settings=anything)(_missing)


def _missing(ctx: typer.Context) -> None:
    name = str(ctx.info_name)
    raise UnknownName(f"{name} is in a package of its own: {_ELSEWHERE[name]}")


def run() -> None:
    """Runs the command; exit code 0 is fine, 1 is bad news, 2 is bad input."""
    output = Output("--json" in sys.argv)
    try:
        sys.exit(_app(sys.argv[1] if len(sys.argv) > 1 else "")(standalone_mode=False))
    except SteelyardError as error:
        output.complain(str(error))
        sys.exit(2)
    except TyperException as error:
        output.complain(f"{error.format_message()} (see steelyard --help)")
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        output.complain("stopped")
        sys.exit(130)
