"""The command line: one file per verb. The only room that prints."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated

import typer
from numpy.linalg import LinAlgError
from typer.exceptions import TyperException

from steelyard.cli.options import Verb
from steelyard.cli.output import Output
from steelyard.errors import SteelyardError, UnknownName

__all__ = ["run"]

_VERBS = {
    "demo": "demo.command",
    "example": "demo.example_command",
    "robots": "robot.list_command",
    "robot": "robot.command",
    "check": "check.command",
    "simulate": "simulate.command",
    "design": "design.command",
    "shortest-motion": "shortest_motion.command",
    "postures": "postures.command",
    "postures-random": "postures.random_command",
    "postures-around": "postures.around_command",
    "identify": "identify.command",
    "weigh": "weigh.command",
    "weigh-wrist": "weigh_wrist.command",
    "record": "record.command",
    "watch": "watch.command",
    "weigh-live": "weigh_live.command",
    "move": "move.command",
    "set-payload": "set_payload.command",
    "contact": "contact.command",
    "collisions": "collisions.command",
    "guide": "guide.command",
    "export": "export.command",
    "export-arm": "export_arm.command",
    "export-motion": "export_motion.command",
    "fleet": "fleet.app",
}
"""Our verbs, and the functions or groups that run them; modules are loaded on demand."""
_BAD_INPUT = 2
_OUR_FAULT = 70
_STOPPED = 130
_ELSEWHERE = {
    "reproduce": "pip install ./papers (steelyard-papers, in the repository of steelyard)"
}
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
    from steelyard._computing import one_blas_thread

    ctx.with_resource(one_blas_thread())


def _app(first: str) -> typer.Typer:
    """The command with the one verb that is named first; with all of them where that is none of ours."""
    app = typer.Typer(
        name="steelyard",
        help="Weighs what a robot arm carries, from joint torques, motor currents or a wrist"
        " sensor.",
        no_args_is_help=False,
        invoke_without_command=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # brackets are units
    )
    app.callback()(_steelyard)
    for verb in (first,) if first in _VERBS else _VERBS:
        module, name = _VERBS[verb].split(".")
        command = getattr(import_module(f"steelyard.cli.{module}"), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=verb)
        else:
            app.command(name=verb, cls=Verb)(command)
    if first not in _VERBS:
        _plug_in(app)
    return app


def _plug_in(app: typer.Typer) -> None:
    """Adds the verbs of packages beside this one; one that is missing says how to install it."""
    from importlib.metadata import entry_points

    found = entry_points(group="steelyard.verbs")
    for entry in found:
        app.command(name=entry.name, cls=Verb)(entry.load())
    for name in _ELSEWHERE.keys() - {entry.name for entry in found}:
        anything = {"ignore_unknown_options": True, "allow_extra_args": True}
        app.command(name=name, hidden=True, add_help_option=False, context_settings=anything)(
            _missing
        )


def _missing(ctx: typer.Context) -> None:
    name = str(ctx.info_name)
    raise UnknownName(f"{name} is in a package of its own: {_ELSEWHERE[name]}")


def run() -> None:
    """Runs the command; exit code 0 is fine, 1 bad news, 2 bad input, 70 a fault of ours, 130 Ctrl-C."""
    output = Output("--json" in sys.argv)
    try:
        sys.exit(_app(sys.argv[1] if len(sys.argv) > 1 else "")(standalone_mode=False))
    except Exception as error:
        if os.environ.get("STEELYARD_DEBUG") == "1":
            raise
        words, code = _complaint(error)
        output.complain(words)
        sys.exit(code)
    except KeyboardInterrupt:
        output.complain("stopped")
        sys.exit(_STOPPED)


def _complaint(error: Exception) -> tuple[str, int]:
    """What to say about an error, and the exit code."""
    if isinstance(error, SteelyardError):
        return str(error), _BAD_INPUT
    if isinstance(error, TyperException):
        words = error.format_message()
        param = getattr(error, "param", None)
        ctx = getattr(error, "ctx", None)
        if words.startswith("Missing"):
            help_ = getattr(param, "help", None)
        else:
            help_ = None
        verb = ""
        while ctx is not None and ctx.parent is not None:  # `fleet build` has two names
            verb = f" {ctx.info_name}{verb}"
            ctx = ctx.parent
        return f"{words}{f' {help_}' if help_ else ''} (see steelyard{verb} --help)", _BAD_INPUT
    if isinstance(error, typer.Abort):
        return "stopped", _STOPPED
    if isinstance(error, OSError):
        if error.filename:
            where = f"{error.filename}: "
        else:
            where = ""
        return f"{where}{error.strerror or error}", _BAD_INPUT
    if isinstance(error, LinAlgError):
        return f"these numbers cannot be computed with ({error}): look for absurd ones", _BAD_INPUT
    if isinstance(error, MemoryError):
        return f"this needs more memory than there is ({error})", _BAD_INPUT
    report = (
        "please report it with the command, its files, and what it prints with STEELYARD_DEBUG=1"
    )
    return (
        f"unforeseen, a fault of steelyard: {type(error).__name__}: {error}; {report}",
        _OUR_FAULT,
    )
