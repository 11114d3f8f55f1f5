"""Layers: imports go down only, without cycles and without imports inside one layer."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.style

SOURCE = Path(__file__).parents[2] / "src" / "steelyard"
LAYERS = {
    "errors": 0,
    "_arrays": 0,
    "_computing": 0,
    "_lazy": 0,
    "_units": 0,
    "_kinds": 1,
    "_reported": 1,
    "_saved": 1,
    "_templates": 1,
    "_codec": 2,
    "inertia": 3,
    "recording": 3,
    "verdict": 3,
    "drawing": 4,
    "export": 4,
    "quality": 4,
    "robot": 4,
    "trajectory": 4,
    "excitation": 5,
    "payload": 5,
    "signals": 5,
    "identification": 6,
    "simulation": 6,
    "torque": 7,
    "wrist": 7,
    "control": 8,
    "picking": 8,
    "report": 9,
    "io": 9,
    "workflow": 10,
    "live": 11,
    "fleet": 11,
    "twin": 12,
    "cli": 13,
}
ONLY_IMPORTERS = {
    "pinocchio": {"robot"},
    "coal": {"robot"},
    "jax": {"excitation"},
    "jinja2": {"_templates"},
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
MODULES = sorted(path for path in SOURCE.rglob("*.py") if not path.name.startswith("__main__"))


def package_of(path: Path) -> str:
    """The package, or the single module at the top, that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def imported(text: str, *, for_checkers: bool = True) -> set[str]:
    """What a module imports, inside functions too.

    Args:
        text: of the module
        for_checkers: whether imports under `if TYPE_CHECKING` count
    """
    tree = ast.parse(text)
    names = set()
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


@cache
def imports():
    """(package, name it imports, file) for every import of the packages."""
    return tuple(
        (package_of(path), name, path.relative_to(SOURCE).as_posix())
        for path in MODULES
        if package_of(path) != "__init__"
        for name in sorted(imported(path.read_text()))
    )


def test_every_package_has_a_layer():
    assert {package_of(path) for path in MODULES} - {"__init__"} == set(LAYERS)


def test_imports_go_down_only():
    upward = [
        f"{file}: {name}"
        for here, name, file in imports()
        if name.startswith("steelyard.")
        and (other := name.split(".")[1]) in LAYERS
        and other != here
        and LAYERS[other] >= LAYERS[here]
    ]
    assert not upward, "\n".join(upward)


def test_heavy_libraries_are_imported_by_one_package():
    misplaced = [
        f"{file}: {name}"
        for here, name, file in imports()
        if (library := name.split(".")[0]) in ONLY_IMPORTERS and here not in ONLY_IMPORTERS[library]
    ]
    assert not misplaced, "\n".join(misplaced)


def test_the_document_shows_every_package_in_its_layer():
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| *(\d+) *\| *((?:`\w+`(?:, )?)+) *\|", page, re.MULTILINE)
    documented = {
        name: int(layer) for layer, names in rows for name in re.findall(r"`(\w+)`", names)
    }
    assert documented == LAYERS


def test_there_are_no_cycles():
    texts = {}
    for path in MODULES:
        dotted = ".".join(("steelyard", *path.relative_to(SOURCE).with_suffix("").parts))
        texts[dotted.removesuffix(".__init__")] = path.read_text()
    assert circular(texts) == []


def test_a_lazy_cycle_is_noticed_and_one_for_type_checkers_is_not():
    lazy = {"a": "def f():\n    from b import g", "b": "import c", "c": "if x:\n    import a"}
    assert circular(lazy) == ["a", "b", "c"]
    assert circular(lazy | {"c": "if TYPE_CHECKING:\n    import a\nelse:\n    import d"}) == []


def circular(texts: dict[str, str]) -> list[str]:
    """The modules, by name and text, that import themselves through others."""
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
    reached = set()
    pending = list(edges[start])
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending.extend(edges[name])
    return reached
