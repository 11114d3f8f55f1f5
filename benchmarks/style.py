"""Figures of style: each counts one concept in the sources and lists where it occurs.

python benchmarks/style.py            each figure beside its limit
python benchmarks/style.py --where    and the places that are over the limit

`tests/architecture/test_style.py` keeps each figure with one test.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "steelyard"
CODE_FOLDERS = ("src", "papers/src", "tests", "papers/tests", "benchmarks", "examples")
MAX_LINE_LENGTH = 100  # characters
LITERALS_WITH_ONE_HOME = {1.96, 9.81}
HOME_OF_LITERALS = "_units.py"
COMMAND_LINE = ("cli", "__main__.py")  # parts of the package that may name options
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
WRIST = "Wrist"
COUNTERPARTS = ("", "Torque", "Live")  # WristX is a sibling of X, TorqueX and LiveX
METAPHORS = re.compile(
    r"(?<![a-z])(house|rooms?|(?<!noise )floors|stairs|doors?|front door|nobody|somebody|anybody"
    r"|whoever|of theirs|so many)(?![a-z])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class StyleFigure:
    """A count beside its limit."""

    name: str
    value: float
    limit: float
    places: tuple[str, ...] = ()

    @property
    def reached(self) -> bool:
        """Whether the count is within its limit."""
        return self.value <= self.limit

    def __str__(self) -> str:
        mark = "" if self.reached else "  <- over the limit"
        return f"{self.name:62} {self.value:8.4g} {self.limit:8.4g}{mark}"


@cache
def python_files(*folders: str) -> tuple[Path, ...]:
    """The Python files below folders of the repository."""
    return tuple(sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")))


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text())


def library() -> tuple[Path, ...]:
    """The modules of the library and of the papers."""
    return python_files("src", "papers/src")


def place(path: Path, line: int) -> str:
    """A file and a line, as editors write it."""
    return f"{path.relative_to(ROOT).as_posix()}:{line}"


def places_of(nodes: Iterable[tuple[Path, ast.AST]]) -> tuple[str, ...]:
    """Where nodes are."""
    return tuple(place(path, getattr(node, "lineno", 1)) for path, node in nodes)


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Every node of the syntax tree of a file."""
    return tuple(ast.walk(tree_of(path)))


def nodes_in(paths: Iterable[Path]) -> Iterator[tuple[Path, ast.AST]]:
    """Every node of the syntax trees of files."""
    for path in paths:
        for node in nodes_of(path):
            yield path, node


def called_name(node: ast.Call) -> str:
    """The last name of what a call calls; empty for other expressions."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def per_thousand_lines(count: int) -> float:
    """A count in the library, per 1,000 of its lines."""
    lines = sum(path.read_text().count("\n") for path in library())
    return 1000 * count / lines


def packed_assignments() -> StyleFigure:
    """Assignments of several values at once, `a, b = x, y`."""
    found = places_of(
        (path, node)
        for path, node in nodes_in(library())
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Tuple)
        and any(isinstance(target, ast.Tuple) for target in node.targets)
    )
    name = "packed assignments per 1,000 lines"
    return StyleFigure(name, per_thousand_lines(len(found)), 1.0, found)


def conditional_expressions() -> StyleFigure:
    """Expressions `x if condition else y`."""
    found = places_of((p, node) for p, node in nodes_in(library()) if isinstance(node, ast.IfExp))
    name = "conditional expressions per 1,000 lines"
    return StyleFigure(name, per_thousand_lines(len(found)), 8.0, found)


def long_lines() -> StyleFigure:
    """Lines of code, comments and docstrings that are too long."""
    found = tuple(
        place(path, number)
        for path in python_files(*CODE_FOLDERS)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > MAX_LINE_LENGTH
    )
    return StyleFigure(f"lines over {MAX_LINE_LENGTH} characters", len(found), 0, found)


def parsed_parameter_names() -> StyleFigure:
    """Calls of `kinds()`, which took parameters out of their names."""
    found = places_of(
        (path, node)
        for path, node in nodes_in(python_files(*CODE_FOLDERS))
        if isinstance(node, ast.Call) and called_name(node) == "kinds"
    )
    return StyleFigure("calls of kinds()", len(found), 0, found)


def repeated_literals() -> StyleFigure:
    """1.96 and 9.81 outside the module that names them."""
    found = places_of(
        (path, node)
        for path, node in nodes_in(library())
        if path.name != HOME_OF_LITERALS
        and isinstance(node, ast.Constant)
        and isinstance(node.value, float)
        and node.value in LITERALS_WITH_ONE_HOME
    )
    return StyleFigure("literals 1.96 and 9.81 outside _units", len(found), 0, found)


def flags_below_command_line() -> StyleFigure:
    """Command-line options that are named in modules other than those of the command line."""
    found = tuple(
        f"{place(path, number)}: {' '.join(FLAG.findall(line))}"
        for path in python_files("src")
        if path.relative_to(SOURCE).parts[0] not in COMMAND_LINE
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if FLAG.search(line)
    )
    return StyleFigure("command-line options named below cli", len(found), 0, found)


@cache
def siblings() -> dict[str, frozenset[str]]:
    """The family of each class that has siblings: implementations of one interface.

    Siblings derive directly from one abstract class of the library, or are a class and its
    counterpart for the wrist sensor (`TorqueTracker`, `WristTracker`).
    """
    classes = [node for _, node in nodes_in(library()) if isinstance(node, ast.ClassDef)]
    names = {node.name for node in classes}
    families: list[set[str]] = []
    for base in classes:
        if any(ast.unparse(parent) in ("ABC", "Protocol") for parent in base.bases):
            heirs = (c.name for c in classes if base.name in map(ast.unparse, c.bases))
            families.append(set(heirs))
    for name in names:
        if name.startswith(WRIST):
            others = {other + name.removeprefix(WRIST) for other in COUNTERPARTS} & names
            families.append({name, *others})
    return {name: frozenset(family) for family in families if len(family) > 1 for name in family}


ALLOWED_UNIONS: dict[frozenset[str], str] = {
    frozenset({"DynamicModel", "RobotModel"}): "arguments: users give either kind of arm",
    frozenset({"Payload", "InertialParameters"}): "arguments: a body with or without covariance",
    frozenset(
        {"Recording", "Samples", "_NamedColumns"}
    ): "arguments: measured data, raw or prepared",
    frozenset({"Samples", "Trajectory"}): "arguments: a motion, measured or designed",
    frozenset({"Row", "Event"}): "the two messages of a stream",
    frozenset({"Snapshot", "SteelyardError"}): "an answer of another process, or its error",
    frozenset({"Table", "Plot", "Scene"}): "parts of a page, of two packages; `report` shows them",
    frozenset({"Assign", "Define", "Evaluate", "If", "Jump", "Return", "ThreadEnd", "While"}): (
        "statements in a syntax tree"
    ),
    frozenset(
        {"Binary", "Call", "Constant", "Index", "ListOf", "Name", "NumberList", "Unary"}
    ): "expressions in a syntax tree",
}
"""Unions whose members may be told apart by their class, and the reason."""


def _is_allowed(union: frozenset[str]) -> bool:
    return any(union <= allowed for allowed in ALLOWED_UNIONS)


@cache
def unions() -> frozenset[frozenset[str]]:
    """Classes of the library that annotations and aliases join to a union."""
    classes = {node.name for _, node in nodes_in(library()) if isinstance(node, ast.ClassDef)}
    found: set[frozenset[str]] = set()
    for _, node in nodes_in(library()):
        for field in ("annotation", "returns", "value"):
            part = getattr(node, field, None)
            if isinstance(part, ast.AST):
                found |= {_alternatives(union) & classes for union in ast.walk(part)}
    return frozenset(union for union in found if len(union) > 1)


def _alternatives(node: ast.AST) -> frozenset[str]:
    """The names in a union `A | B`; empty for another expression."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)):
        return frozenset()
    names: frozenset[str] = frozenset()
    for side in (node.left, node.right):
        if isinstance(side, ast.Name):
            names |= {side.id}
        names |= _alternatives(side)
    return names


@cache
def members_of_unions() -> frozenset[str]:
    """Classes that are members of a union that is not allowed."""
    return frozenset(name for union in unions() if not _is_allowed(union) for name in union)


def switches_between_siblings() -> StyleFigure:
    """Unions of siblings, and `isinstance` or `case` that tells siblings apart.

    Members of annotated unions are told apart too, unless the union is in `ALLOWED_UNIONS`. A union
    of this table that occurs nowhere is listed as well.
    """
    unused = ALLOWED_UNIONS.keys() - unions()
    found = {f"not a union any more: {', '.join(sorted(union))}" for union in unused}
    for path, node in nodes_in(library()):
        names = _told_apart(node)
        if names:
            line = getattr(node, "lineno", 1)
            found.add(f"{place(path, line)}: {', '.join(sorted(names))}")
    return StyleFigure(
        "unions and isinstance between siblings", len(found), 0, tuple(sorted(found))
    )


def _told_apart(node: ast.AST) -> set[str]:
    """The classes that a node tells from their siblings."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        return {name for name in names if siblings().get(name, frozenset()) & (names - {name})}
    if isinstance(node, ast.Call) and called_name(node) == "isinstance":
        names = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
    elif isinstance(node, ast.MatchClass):
        names = {ast.unparse(node.cls)}
    else:
        return set()
    of_family = {name for name in names & siblings().keys() if f"{WRIST}{name}" not in siblings()}
    return of_family | names & members_of_unions()


def api_names() -> StyleFigure:
    """The names of the top-level API."""
    names = tuple(listed_names(SOURCE / "__init__.py"))
    return StyleFigure("names in the top-level API", len(names), 28, names)


def listed_names(path: Path) -> list[str]:
    """The names in `__all__` of a package: a list, or the keys of a table of the module."""
    values = {
        ast.unparse(target): node.value
        for node in tree_of(path).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }
    if "__all__" not in values:
        return []
    names: list[str] = []
    for node in ast.walk(values["__all__"]):
        table = values.get(ast.unparse(node)) if isinstance(node, ast.Name) else None
        keys = table.keys if isinstance(table, ast.Dict) else [node]
        texts = (key.value for key in keys if isinstance(key, ast.Constant))
        names.extend(text for text in texts if isinstance(text, str))
    return names


def module_path(dotted: str) -> Path | None:
    """The file of a module of the library, None where there is none."""
    base = ROOT / "src" / Path(*dotted.split("."))
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.exists():
            return path
    return None


@cache
def origin(dotted: str) -> str:
    """Where a name is defined, through the imports of packages."""
    module, _, name = dotted.rpartition(".")
    path = module_path(module)
    if path is None:
        return dotted
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return origin(f"{node.module}.{alias.name}")
    return dotted


def public_names() -> dict[str, str]:
    """Names that users can import without an underscore, by the place of their definition."""
    public: dict[str, str] = {}
    for path in python_files("src"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        if parts[0] in ("cli", "__main__"):
            continue
        if any(part.startswith("_") for part in parts[: len(parts) - is_package]):
            continue
        dotted = ".".join(("steelyard", *parts)).removesuffix(".__init__")
        for name in listed_names(path) or _defined_names(path):
            public[origin(f"{dotted}.{name}")] = f"{dotted}.{name}"
    return public


def _defined_names(path: Path) -> list[str]:
    """The names that a module without `__all__` defines; a package without it has none."""
    if path.name == "__init__.py":
        return []
    return [
        node.name
        for node in tree_of(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]


def documented_names() -> dict[str, str]:
    """Names in the API reference, by the place of their definition."""
    page = (ROOT / "docs" / "reference" / "docstrings.md").read_text()
    directive = r"auto(?:class|function|exception|data):: (steelyard[\w.]*)"
    names = re.findall(directive, page)
    return {origin(name): name for name in names}


def undocumented_names() -> StyleFigure:
    """Names that are public or documented, and not both."""
    public = public_names()
    documented = documented_names()
    places = (
        *(f"not documented: {public[key]}" for key in public.keys() - documented.keys()),
        *(f"not public: {documented[key]}" for key in documented.keys() - public.keys()),
    )
    name = "public names that are not documented, and vice versa"
    return StyleFigure(name, len(places), 0, tuple(sorted(places)))


OPAQUE = "State"  # classes with names that end so: only their own package reads their attributes


def undocumented_results() -> StyleFigure:
    """Classes that public functions return or public attributes hold, but the API does not list."""
    public = {name.rpartition(".")[2] for name in documented_names()}
    found = {
        f"{where}: {name}"
        for documented in documented_names()
        for where, annotation in _results_of(documented)
        for name in _class_names(annotation) - public
    }
    name = "classes of public results that are not documented"
    return StyleFigure(name, len(found), 0, tuple(sorted(found)))


@cache
def class_definitions() -> dict[str, tuple[ast.ClassDef, ...]]:
    """The classes that modules of the library define, by their names without underscores."""
    found: dict[str, list[ast.ClassDef]] = {}
    for _, node in nodes_in(python_files("src")):
        if isinstance(node, ast.ClassDef):
            found.setdefault(node.name.lstrip("_"), []).append(node)
    return {name: tuple(nodes) for name, nodes in found.items()}


def _results_of(dotted: str) -> Iterator[tuple[str, ast.expr]]:
    """What a public function returns, or a public class returns and holds: place, annotation."""
    module, _, name = dotted.rpartition(".")
    path = module_path(module)
    if path is None:
        return
    for node in tree_of(path).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            yield from _results_of_class(name, node)
        elif isinstance(node, ast.FunctionDef) and node.name == name and node.returns:
            yield name, node.returns


def _results_of_class(name: str, node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """What methods of a class return and attributes hold, those of its bases included."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and not part.name.startswith("_") and part.returns:
            yield f"{name}.{part.name}", part.returns
        if isinstance(part, ast.AnnAssign) and not name.endswith(OPAQUE):
            attribute = ast.unparse(part.target)
            if not attribute.startswith("_"):
                yield f"{name}.{attribute}", part.annotation
    for parent in node.bases:
        for base in class_definitions().get(ast.unparse(parent).partition("[")[0], ()):
            yield from _results_of_class(name, base)


def _class_names(annotation: ast.expr) -> set[str]:
    """The classes of the library in an annotation, without what `Annotated` adds to a type."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Annotated":
        (annotation, *_) = getattr(annotation.slice, "elts", [annotation.slice])
    if isinstance(annotation, ast.Name):
        defined = {node.name for nodes in class_definitions().values() for node in nodes}
        return {annotation.id} & defined
    parts = (part for part in ast.iter_child_nodes(annotation) if isinstance(part, ast.expr))
    return set().union(*map(_class_names, parts))


def repeated_class_names() -> StyleFigure:
    """Names that several classes have; a leading underscore makes no other name."""
    found = {name: len(nodes) for name, nodes in class_definitions().items() if len(nodes) > 1}
    places = tuple(f"{name}: {count} classes" for name, count in sorted(found.items()))
    return StyleFigure("names that several classes have", len(places), 0, places)


def style_tests() -> StyleFigure:
    """Tests that read sources and documents; one with parameters would be many."""
    found: list[str] = []
    for path in python_files("tests", "papers/tests"):
        if "pytestmark = pytest.mark.style" not in path.read_text():
            continue
        for node in tree_of(path).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                decorators = " ".join(map(ast.unparse, node.decorator_list))
                weight = 1000 if "parametrize" in decorators else 1
                found.extend([f"{place(path, node.lineno)}: {node.name}"] * weight)
    return StyleFigure("tests of style", len(found), 40, tuple(found))


def readme_words() -> StyleFigure:
    """The words of the README."""
    return StyleFigure("words in the README", len((ROOT / "README.md").read_text().split()), 800)


def metaphors() -> StyleFigure:
    """Words that the glossary of the project replaces by standard vocabulary."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = tuple(
        f"{place(path, number)}: {' '.join(hit.group() for hit in METAPHORS.finditer(line))}"
        for path in (*python_files(*CODE_FOLDERS), *pages)
        if path not in (Path(__file__), ROOT / "tests/architecture/test_style.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if METAPHORS.search(line)
    )
    return StyleFigure("metaphors and vague pronouns", len(found), 0, found)


FIGURES = (
    packed_assignments,
    conditional_expressions,
    long_lines,
    parsed_parameter_names,
    repeated_literals,
    flags_below_command_line,
    switches_between_siblings,
    api_names,
    undocumented_names,
    undocumented_results,
    repeated_class_names,
    style_tests,
    readme_words,
    metaphors,
)


def main() -> int:
    missed = 0
    print(f"{'figure':62} {'value':>8} {'limit':>8}")
    for measure in FIGURES:
        figure = measure()
        print(figure)
        missed += not figure.reached
        if "--where" in sys.argv and not figure.reached:
            print("".join(f"    {text}\n" for text in figure.places), end="")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
