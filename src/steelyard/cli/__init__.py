"""The command line: one module for each command. The only package that prints."""

from __future__ import annotations

import os
import shutil
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from numpy.linalg import LinAlgError
from typer.core import TyperGroup
from typer.exceptions import TyperException

from steelyard.cli.options import Verb
from steelyard.cli.output import Output
from steelyard.errors import SteelyardError, UnknownName

__all__ = ["run"]

_GROUPS = {
    "Prepare": {
        "start": "start.command",
        "demo": "demo.command",
        "demo-live": "demo.live_command",
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
    },
    "Weigh": {
        "identify": "identify.command",
        "weigh": "weigh.command",
        "weigh-wrist": "weigh_wrist.app",
        "track": "track.command",
        "track-wrist": "track.wrist_command",
        "picks": "picks.command",
        "picks-live": "picks_live.command",
        "picks-preview": "picks.preview_command",
    },
    "Live": {
        "record": "record.command",
        "weigh-live": "weigh_live.command",
        "move": "move.command",
        "stop": "stop.command",
        "set-payload": "set_payload.command",
        "serve": "serve.command",
        "serve-recording": "serve.recording_command",
    },
    "Use": {
        "export": "export.app",
        "export-arm": "export_arm.app",
        "export-loaded-arm": "export_arm.loaded_app",
        "patch": "patch.app",
        "export-motion": "export_motion.command",
        "collisions": "collisions.command",
        "contact": "contact.command",
        "guide": "guide.command",
    },
    "Fleet": {
        "fleet": "fleet.app",
    },
}
"""Commands by their heading in the help, and the functions or groups that run them."""
_COMMANDS = {name: place for group in _GROUPS.values() for name, place in group.items()}
_WITHOUT_LINEAR_ALGEBRA = ("stop",)  # its command to the arm does not wait for such imports
_SHORT_HELP_LENGTH = 100  # characters
_INVALID_INPUT = 2
_INTERNAL_ERROR = 70
_INTERRUPTED = 130
_IN_OTHER_PACKAGES = {
    "reproduce": "pip install ./papers (steelyard-papers, in the repository of steelyard)"
}
"""Commands of other packages, and how to install them."""


def _steelyard(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Weighs what a robot arm carries, from joint torques, motor currents or a wrist sensor."""
    if version:
        from steelyard import __version__

        print(f"steelyard {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
        return
    if ctx.invoked_subcommand in _WITHOUT_LINEAR_ALGEBRA:
        return
    from steelyard._computing import one_blas_thread

    ctx.with_resource(one_blas_thread())


class _GroupedCommands(TyperGroup):
    """The program, whose help lists the commands under headings."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands of each group, then those of other packages."""
        known = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        others = [name for name in known if name not in _COMMANDS]
        for heading, names in (*_GROUPS.items(), ("Other packages", others)):
            rows = [
                (name, command.get_short_help_str(limit=_SHORT_HELP_LENGTH))
                for name in names
                if (command := known.get(name)) is not None and not command.hidden
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _app(first: str) -> typer.Typer:
    """The program with one command, which saves the imports of the others; or with all commands.

    Args:
        first: the first word that the user gave; all commands are loaded where it names none
    """
    app = typer.Typer(
        name="steelyard",
        cls=_GroupedCommands,
        help="Weighs what a robot arm carries, from joint torques, motor currents or a wrist"
        " sensor.",
        no_args_is_help=False,
        invoke_without_command=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # brackets are units
        context_settings={"max_content_width": shutil.get_terminal_size().columns},
    )
    app.callback()(_steelyard)
    listed = [first] if first in _COMMANDS else list(_COMMANDS)
    for name in listed:
        module, function = _COMMANDS[name].split(".")
        command = getattr(import_module(f"steelyard.cli.{module}"), function)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name=name, cls=Verb)(command)
    if first not in _COMMANDS:
        _plug_in(app)
    return app


def _plug_in(app: typer.Typer) -> None:
    """Adds the commands of other packages; one that is not installed says how to install it."""
    from importlib.metadata import entry_points

    found = entry_points(group="steelyard.commands")
    for entry in found:
        app.command(name=entry.name, cls=Verb)(entry.load())
    for name in _IN_OTHER_PACKAGES.keys() - {entry.name for entry in found}:
        anything = {"ignore_unknown_options": True, "allow_extra_args": True}
        app.command(name=name, hidden=True, add_help_option=False, context_settings=anything)(
            _missing
        )


def _missing(ctx: typer.Context) -> None:
    name = str(ctx.info_name)
    raise UnknownName(f"{name} is in another package: {_IN_OTHER_PACKAGES[name]}")


def run() -> None:
    """Runs the command and exits with one of the codes in docs/reference/command_line.md."""
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
        output.complain("interrupted")
        sys.exit(_INTERRUPTED)


def _complaint(error: Exception) -> tuple[str, int]:
    """Message and exit code for an error."""
    if isinstance(error, SteelyardError):
        return str(error), _INVALID_INPUT
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
        return f"{words}{f' {help_}' if help_ else ''} (see steelyard{verb} --help)", _INVALID_INPUT
    if isinstance(error, typer.Abort):
        return "interrupted", _INTERRUPTED
    if isinstance(error, OSError):
        if error.filename:
            where = f"{error.filename}: "
        else:
            where = ""
        return f"{where}{error.strerror or error}", _INVALID_INPUT
    if isinstance(error, LinAlgError):
        return (
            f"the computation failed ({error}): look for values of a wrong magnitude",
            _INVALID_INPUT,
        )
    if isinstance(error, MemoryError):
        return f"not enough memory ({error})", _INVALID_INPUT
    report = (
        "please report it with the command, its files, and what it prints with STEELYARD_DEBUG=1"
    )
    return f"internal error: {type(error).__name__}: {error}; {report}", _INTERNAL_ERROR
