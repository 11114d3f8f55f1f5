"""Writes the options of every command into a page: python docs/commands.py.

The lower part of `reference/command_line.md` comes from the program itself.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from steelyard.cli import _GROUPS, _app

PAGE = Path(__file__).parent / "reference" / "command_line.md"
MARK = "<!-- options: written by docs/commands.py -->"
WIDTH = 120  # characters
HIDDEN = {"--help", "--install-completion", "--show-completion"}
EVERYWHERE = {"--json"}
"""Options that the upper part of the page describes."""


def options() -> str:
    """The commands by group, each with its arguments and options."""
    program: Any = get_command(_app(""))
    parts = [MARK, ""]
    for heading, names in _GROUPS.items():
        parts += [f"## {heading}", ""]
        for name in names:
            for words, command in leaves(name, program.commands[name]):
                parts += section(words, command)
    return "\n".join(parts)


def leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command, or the commands of a group, with the words that start them."""
    if not hasattr(command, "commands"):
        yield name, command
        return
    for step, inner in command.commands.items():
        yield f"{name} {step}", inner


def section(words: str, command: Any) -> list[str]:
    """Heading, description and options of one command."""
    items = [item(parameter) for parameter in command.params if shown(parameter)]
    text = " ".join(command.help.split())
    return [f"### steelyard {words}", "", *textwrap.wrap(text, WIDTH), "", *items, ""]


def shown(parameter: Any) -> bool:
    """Whether a parameter has a row of its own."""
    return parameter.name != "help" and not (HIDDEN | EVERYWHERE) & set(parameter.opts)


def item(parameter: Any) -> str:
    """The entry of one argument or option."""
    if parameter.param_type_name == "argument":
        name = parameter.name.upper()
    else:
        name = ", ".join(parameter.opts)
    metavar = f" {parameter.metavar}" if parameter.metavar and name.startswith("-") else ""
    text = f"- `{name}{metavar}`: {parameter.help or ''}{default_text(parameter)}"
    return "\n".join(textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def default_text(parameter: Any) -> str:
    """The default of a parameter as the end of its entry; empty where its help states it."""
    if parameter.required:
        return " Required."
    value = parameter.default
    if value in (None, "") or isinstance(value, bool) or not parameter.show_default:
        return ""
    if "default" in (parameter.help or "").lower():
        return ""
    if value in ("", math.inf):  # nothing, or no limit
        return ""
    return f" Default: `{value}`."


def page() -> str:
    """The whole page: its upper part as it is, its lower part from the program."""
    head = PAGE.read_text().partition(MARK)[0].rstrip()
    return f"{head}\n\n{options()}"


if __name__ == "__main__":
    PAGE.write_text(page())
