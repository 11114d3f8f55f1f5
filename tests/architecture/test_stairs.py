"""The plan of the house, enforced: imports go down only, no cycles, neighbours do not know each other."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "steelyard"
FLOORS = {
    "errors": 0,
    "arrays": 0,
    "computing": 0,
    "fields": 0,
    "inertia": 1,
    "recording": 1,
    "saved": 1,
    "verdict": 1,
    "drawing": 2,
    "export": 2,
    "quality": 2,
    "robot": 2,
    "trajectory": 2,
    "excitation": 3,
    "payload": 3,
    "signals": 3,
    "identification": 4,
    "simulation": 4,
    "torque": 5,
    "wrist": 5,
    "control": 6,
    "report": 7,
    "io": 7,
    "workflow": 8,
    "live": 9,
    "fleet": 9,
    "twin": 10,
    "cli": 11,
}
ONLY_HERE = {
    "pinocchio": {"robot"},
    "coal": {"robot"},
    "jax": {"excitation"},
    "matplotlib": {"drawing"},
    "mujoco": {"simulation"},
    "websockets": {"live"},
    "pylibfranka": {"live"},
    "dask": {"fleet"},
    "distributed": {"fleet"},
    "fsspec": {"fleet"},
    "viser": {"live"},
    "typer": {"cli"},
    "rich": {"cli"},
}
MODULES = sorted(p for p in SOURCE.rglob("*.py") if p.parent != SOURCE or p.stem in FLOORS)


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(text: str, *, for_checkers: bool = True) -> set[str]:
    """What a module imports, inside functions too; with or without what only type checkers import."""
    tree, names = ast.parse(text), set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.If)
            and ast.unparse(node.test).endswith("TYPE_CHECKING")
            and not for_checkers
        ):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_down_only(path):
    here = room(path)
    for name in imported(path.read_text()):
        parts = name.split(".")
        if parts[0] == "steelyard" and len(parts) > 1 and parts[1] in FLOORS and parts[1] != here:
            assert FLOORS[parts[1]] < FLOORS[here], f"{here} must not import {parts[1]}"
        if parts[0] in ONLY_HERE:
            assert here in ONLY_HERE[parts[0]], f"only {ONLY_HERE[parts[0]]} may import {parts[0]}"


def test_every_room_has_a_floor():
    assert {
        room(p) for p in SOURCE.rglob("*.py") if not p.name.startswith("__") or p.parent != SOURCE
    } <= set(FLOORS)


def test_the_map_has_every_room_on_its_floor():
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text()
    rows = re.findall(
        r"^\| (\d+) \| ([^|]*) \|", page.split("## Floors")[1].split("\n## ")[0], re.MULTILINE
    )
    assert {
        name: int(floor) for floor, names in rows for name in re.findall(r"`(\w+)`", names)
    } == FLOORS


def test_there_are_no_cycles_lazy_imports_included():
    texts = {}
    for path in MODULES:
        dotted = ".".join(("steelyard", *path.relative_to(SOURCE).with_suffix("").parts))
        texts[dotted.removesuffix(".__init__")] = path.read_text()
    assert circular(texts) == []


def test_a_lazy_cycle_is_seen_and_one_for_type_checkers_alone_is_not():
    lazy = {"a": "def f():\n    from b import g", "b": "import c", "c": "if x:\n    import a"}
    assert circular(lazy) == ["a", "b", "c"]
    assert circular(lazy | {"c": "if TYPE_CHECKING:\n    import a\nelse:\n    import d"}) == []


def circular(texts: dict[str, str]) -> list[str]:
    """Modules, by name and text, that import themselves by a detour."""
    edges = {
        name: {
            other
            for other in imported(text, for_checkers=False)
            if other in texts and other != name
        }
        for name, text in texts.items()
    }
    return [name for name in edges if name in _reachable(edges, name)]


def _reachable(edges, start):
    seen, todo = set(), list(edges[start])
    while todo:
        if (name := todo.pop()) not in seen:
            seen.add(name)
            todo.extend(edges[name])
    return seen
