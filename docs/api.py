"""Writes the pages of the Python API from the public names of packages and modules.

    python docs/api.py

`reference/api.md` lists every public name with the first line of its docstring;
`reference/docstrings.md` holds the docstrings, which Sphinx inserts (`make docs`).
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

REFERENCE = Path(__file__).parent / "reference"
WITHOUT_API = {"steelyard.cli"}
HEAD = """# Python API

`import steelyard as sy` gives the names of everyday use. Each package has further public names;
everything else is private. `python docs/api.py` writes this page from the packages. The full
docstrings are on [another page](docstrings.md), and `help(name)` shows them too. Units, shapes and
frames follow the [conventions](../conventions.md).
"""
DOCSTRINGS_HEAD = """# Docstrings

The docstrings of all public names, sorted by package; [the API page](api.md) is the overview.
`make docs` fills this page in.
"""


def packages() -> list[str]:
    """The packages and modules with a public API: the top level, then the others by name."""
    return ["steelyard", *sorted(_below("steelyard"))]


def _below(package: str) -> Iterator[str]:
    """The public packages and modules inside a package."""
    for module in iter_modules(import_module(package).__path__):
        name = f"{package}.{module.name}"
        if not module.name.startswith("_") and name not in WITHOUT_API:
            yield name
            if module.ispkg:
                yield from _below(name)


def public_names(package: str) -> list[str]:
    """The public names of a package (`__all__`) or module (what it defines), classes first."""
    module = import_module(package)
    if hasattr(module, "__all__"):
        names = [name for name in module.__all__ if not name.startswith("__")]
    else:
        names = [name for name in vars(module) if _is_defined_in(module, name)]
    return sorted(names, key=lambda name: (not inspect.isclass(getattr(module, name)), name))


def _is_defined_in(module: ModuleType, name: str) -> bool:
    """Whether a name is public and a class or function that the module defines."""
    value = getattr(module, name)
    is_code = inspect.isclass(value) or inspect.isroutine(value)
    return is_code and not name.startswith("_") and value.__module__ == module.__name__


def summary(package: str, name: str) -> str:
    """The first line of the docstring of a name, for a cell of a table."""
    value = getattr(import_module(package), name)
    if inspect.isclass(value) or inspect.isroutine(value):
        text = inspect.getdoc(value) or ""
    else:
        text = constant_docstring(package, name)
    return "".join(text.splitlines()[:1]).replace("|", "\\|")


def constant_docstring(package: str, name: str) -> str:
    """The text below the assignment of a constant."""
    folder = Path(inspect.getfile(import_module(package))).parent
    for path in sorted(folder.rglob("*.py")):
        statements = ast.parse(path.read_text()).body
        for statement, following in pairwise(statements):
            if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(
                following, ast.Expr
            ):
                targets = getattr(statement, "targets", None) or [statement.target]
                if isinstance(targets[0], ast.Name) and targets[0].id == name:
                    return str(ast.literal_eval(following.value))
    return "A constant."


def api() -> str:
    """The page that lists all names."""
    parts = [HEAD]
    for package in packages():
        module = import_module(package)
        rows = [f"| `{name}` | {summary(package, name)} |" for name in public_names(package)]
        doc = (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ")
        words = "\n".join(textwrap.wrap(doc, 120))
        if package == "steelyard":
            words = "The names of everyday use."
        table = ["| name | what it is |", "|---|---|", *rows]
        parts.append("\n".join([f"## {package}", "", words, "", *table, ""]))
    return "\n".join(parts)


def docstrings() -> str:
    """The page into which Sphinx inserts the docstrings."""
    parts = [DOCSTRINGS_HEAD]
    listed: set[int] = set()  # a name of several packages is in the index once
    for package in packages():
        module = import_module(package)
        lines = [f"## {package}", "", "```{eval-rst}"]
        for name in public_names(package):
            value = getattr(module, name)
            lines += directive(package, name, value, in_index=id(value) not in listed)
            listed.add(id(value))
        parts.append("\n".join([*lines, "```", ""]))
    return "\n".join(parts)


def directive(package: str, name: str, value: Any, *, in_index: bool = True) -> list[str]:
    """The directive of Sphinx for one name.

    The text of a constant is written out, because Sphinx would insert the docstring of its type.
    """
    options = [] if in_index else ["   :no-index:"]
    if inspect.isclass(value):
        return [f".. autoclass:: {package}.{name}", "   :members:", *options, ""]
    if inspect.isroutine(value):
        return [f".. autofunction:: {package}.{name}", *options, ""]
    words = constant_docstring(package, name).replace("\n", " ")
    return [f".. py:data:: {package}.{name}", *options, "", f"   {words}", ""]


if __name__ == "__main__":
    (REFERENCE / "api.md").write_text(api())
    (REFERENCE / "docstrings.md").write_text(docstrings())
