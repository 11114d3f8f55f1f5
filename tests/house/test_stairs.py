"""The plan of the house, enforced: imports go down only, no cycles, neighbours do not know each other."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "steelyard"
FLOORS = {
    "errors": 0,
    "arrays": 0,
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
    "cli": 9,
}
ONLY_HERE = {
    "pinocchio": {"robot"},
    "coal": {"robot"},
    "jax": {"excitation"},
    "matplotlib": {"drawing"},
    "mujoco": {"simulation"},
    "typer": {"cli"},
    "rich": {"cli"},
}
MODULES = sorted(p for p in SOURCE.rglob("*.py") if p.parent != SOURCE or p.stem in FLOORS)


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """What a module imports, at its top or inside of a function."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_down_only(path):
    here = room(path)
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "steelyard" and len(parts) > 1 and parts[1] in FLOORS and parts[1] != here:
            assert FLOORS[parts[1]] < FLOORS[here], f"{here} must not import {parts[1]}"
        if parts[0] in ONLY_HERE:
            assert here in ONLY_HERE[parts[0]], f"only {ONLY_HERE[parts[0]]} may import {parts[0]}"


def test_every_room_has_a_floor():
    assert {
        room(p) for p in SOURCE.rglob("*.py") if not p.name.startswith("__") or p.parent != SOURCE
    } <= set(FLOORS)


def test_there_are_no_cycles():
    names = {
        path: "steelyard." + str(path.relative_to(SOURCE).with_suffix("")).replace("/", ".")
        for path in MODULES
    }
    names = {path: name.removesuffix(".__init__") for path, name in names.items()}
    paths = {name: path for path, name in names.items()}
    edges = {
        name: {other for other in imported(path) if other in paths and other != name}
        for path, name in names.items()
    }
    for name in edges:
        assert name not in _reachable(edges, name), f"{name} imports itself by a detour"


def _reachable(edges, start):
    seen, todo = set(), list(edges[start])
    while todo:
        if (name := todo.pop()) not in seen:
            seen.add(name)
            todo.extend(edges[name])
    return seen
