"""Where the changelog says that a name has gone, there is one."""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]


def resolved(name: str):
    """What a dotted name leads to: a module, or an attribute of one, of a class, or a field of it."""
    parts = name.split(".")
    depth = next(k for k in range(len(parts), 0, -1) if module_exists(".".join(parts[:k])))
    found = import_module(".".join(parts[:depth]))
    for part in parts[depth:]:
        found = getattr(found, "__dataclass_fields__", {}).get(part) or getattr(found, part)
    return found


def module_exists(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def expanded(text: str) -> list[str]:
    """a.{b, c} as a.b and a.c."""
    before, brace, rest = text.partition("{")
    inner, _, after = rest.partition("}")
    return [f"{before}{part.strip()}{after}" for part in inner.split(",")] if brace else [text]


def test_the_changelog_leads_to_names_that_exist():
    moved = (ROOT / "CHANGELOG.md").read_text().split("### Moved")[1].split("\n## ")[0]
    targets = [re.split(r";|\n- |\n\n", text)[0] for text in moved.split("->")[1:]]
    named = {
        name
        for text in targets
        for found in re.findall(r"`(steelyard[^`]*)`", text)
        for name in expanded(found)
    }
    assert len(named) > 200
    for name in sorted(named):
        if name.split(".")[0] == "steelyard" or module_exists("steelyard_papers"):
            assert resolved(name) is not None, name
