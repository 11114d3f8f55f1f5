"""What is written on the doors is true: small functions, docstrings that name the arguments there are."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(path for folder in ("src", "papers/src") for path in (ROOT / folder).rglob("*.py"))
ids = {"ids": lambda p: str(p.relative_to(ROOT))}


def functions(path):
    """(function, whether it is public) for every function of a module."""
    for function, public, _ in with_classes(ast.parse(path.read_text())):
        yield function, public


def with_classes(tree):
    """(function, whether it is public, the class that it is a method of, or None)."""

    def walk(node, public, owner):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from walk(child, public and not child.name.startswith("_"), child)
            elif isinstance(child, ast.FunctionDef):
                yield child, public and not child.name.startswith("_"), owner

    yield from walk(tree, True, None)


def known_classes(trees):
    """The names of bases and of methods of each class, by its name."""
    return {
        node.name: (
            {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases},
            {child.name for child in node.body if isinstance(child, ast.FunctionDef)},
        )
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }


def overrides(name, owner, classes):
    """Whether a base of a class, which we wrote, has a method of this name."""
    bases = classes.get(owner, ((), ()))[0]
    return any(
        name in classes.get(base, ((), ()))[1] or overrides(name, base, classes) for base in bases
    )


CLASSES = known_classes(ast.parse(path.read_text()) for path in MODULES)


def body_lines(function):
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("path", MODULES, **ids)
def test_files_and_functions_stay_small(path):
    for function, _ in functions(path):
        assert body_lines(function) <= 60, function.name
        if function.name.endswith("command") and "cli" in path.parts:
            continue  # each argument is an option of the verb
        args = function.args
        assert (
            len([a for a in args.args if a.arg not in ("self", "cls")]) + len(args.kwonlyargs) <= 8
        ), function.name


def test_nine_functions_in_ten_are_under_30_lines():
    lengths = sorted(body_lines(f) for path in MODULES for f, _ in functions(path))
    assert lengths[int(0.9 * len(lengths))] < 30


@pytest.mark.parametrize("path", MODULES, **ids)
def test_docstrings_name_the_arguments_of_the_signature(path):
    if path.name == "command.py" or (
        "cli" in path.parts and path.name not in ("output.py", "options.py")
    ):
        return  # Typer shows the help of each option instead
    for function, public, owner in with_classes(ast.parse(path.read_text())):
        if not public:
            continue
        doc = ast.get_docstring(function)
        assert doc, f"{function.name} has no docstring"
        inherited = owner is not None and overrides(function.name, owner.name, CLASSES)
        if not re.search(r"^Args:", doc, re.MULTILINE) and (inherited or body_lines(function) <= 1):
            continue  # one line says it, or what it overrides
        wrong, silent = faults(function, doc)
        assert not wrong, f"{function.name}: {wrong} are not its arguments, or in another order"
        assert not silent, f"{function.name} says nothing of {silent}"


def faults(function, doc):
    """Documented arguments that are none or out of order, and arrays and numbers that are not described.

    An argument whose name and type say all (`robot: RobotModel`) need not be listed.
    """
    given = function.args
    every = [*given.args, *([given.vararg] if given.vararg else []), *given.kwonlyargs]
    args = [a.arg for a in every]
    section = re.search(r"^Args:\n((?:[ ]{4,}.*\n?|\n)*)", doc, re.MULTILINE)
    documented = re.findall(r"^    (\w+):", section.group(1), re.MULTILINE) if section else []
    wrong = documented if documented != [a for a in args if a in documented] else []
    numbers = [
        a.arg for a in every if a.annotation and re.search("Array|float", ast.unparse(a.annotation))
    ]
    return wrong, [name for name in numbers if not re.search(rf"\b{name}\b", doc)]


def test_a_docstring_names_no_other_arguments_and_every_array():
    (function,) = ast.parse("def f(robot: R, q: Array, x: float): ...").body
    assert faults(function, "The pose at q, (n,), and x, [m].") == ([], [])
    assert faults(function, "The pose.\n\nArgs:\n    q: positions, (n,)\n    x: [m]") == ([], [])
    assert faults(function, "The pose.\n\nArgs:\n    q: positions, (n,)\n    y: none") == (
        ["q", "y"],
        ["x"],
    )
    assert faults(function, "The pose.\n\nArgs:\n    x: [m]\n    q: (n,)")[0] == ["x", "q"]


def test_an_override_is_seen_and_a_method_of_the_same_name_is_not():
    text = (
        "class A:\n def f(self): ...\nclass B(A): ...\nclass C(B):\n def f(self): ...\n def"
        " g(self): ..."
    )
    classes = known_classes([ast.parse(text)])
    assert overrides("f", "C", classes)
    assert not overrides("g", "C", classes)
    assert not overrides("f", "A", classes)


def test_no_kwargs_in_our_own_functions():
    for path in MODULES:
        for function, _ in functions(path):
            assert function.args.kwarg is None, (
                f"{path.name}: {function.name} takes **{function.args.kwarg}"
            )
