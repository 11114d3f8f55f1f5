"""Functions are short, take few arguments, and their docstrings agree with their signatures."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import style

pytestmark = pytest.mark.style

ROOT = Path(__file__).parents[2]
MAX_BODY_LINES = 60
MAX_ARGUMENTS = 8
MODULES = sorted(path for folder in ("src", "papers/src") for path in (ROOT / folder).rglob("*.py"))


@cache
def every_function():
    """(place, function, whether it is public, the class of a method or None), module by module."""
    return [
        (f"{path.relative_to(ROOT).as_posix()}:{function.lineno} {function.name}", function, *about)
        for path in MODULES
        for function, *about in with_classes(style.tree_of(path))
    ]


def with_classes(tree):
    """(function, whether it is public, the class that it is a method of, or None)."""

    def walk(node, public, owner):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from walk(child, public and not child.name.startswith("_"), child)
            elif isinstance(child, ast.FunctionDef):
                yield child, public and not child.name.startswith("_"), owner

    yield from walk(tree, True, None)


@cache
def our_classes():
    """The names of bases and of methods of each class of the packages, by its name."""
    return known_classes(map(style.tree_of, MODULES))


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


def body_lines(function):
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def argument_names(function):
    """The arguments of a function, `self` and `cls` left out."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [argument.arg for argument in arguments if argument.arg not in ("self", "cls")]


def is_command(place, function):
    """Whether each argument of a function is an option of the command line."""
    return function.name.endswith("command") and "/cli/" in place


def test_functions_are_short():
    long = [
        f"{place}: {body_lines(function)} lines"
        for place, function, _, _ in every_function()
        if body_lines(function) > MAX_BODY_LINES
    ]
    assert not long, "\n".join(long)


def test_functions_take_few_arguments():
    crowded = [
        f"{place}: {len(argument_names(function))} arguments"
        for place, function, _, _ in every_function()
        if len(argument_names(function)) > MAX_ARGUMENTS and not is_command(place, function)
    ]
    assert not crowded, "\n".join(crowded)


def test_nine_functions_in_ten_are_under_30_lines():
    lengths = sorted(body_lines(function) for _, function, _, _ in every_function())
    assert lengths[int(0.9 * len(lengths))] < 30


def test_docstrings_name_the_arguments_of_the_signature():
    wrong = []
    for place, function, public, owner in every_function():
        in_command_line = "/cli/" in place or "/command.py" in place
        helpers = "/cli/output.py" in place or "/cli/options.py" in place
        if public and (helpers or not in_command_line):  # options have a help text instead
            wrong.extend(f"{place}: {fault}" for fault in docstring_faults(function, owner))
    assert not wrong, "\n".join(wrong)


def docstring_faults(function, owner):
    """What is wrong with the docstring of a public function."""
    doc = ast.get_docstring(function)
    if not doc:
        return ["no docstring"]
    inherited = owner is not None and overrides(function.name, owner.name, our_classes())
    if not re.search(r"^Args:", doc, re.MULTILINE) and (inherited or body_lines(function) <= 1):
        return []  # one line says it, or the method that it overrides
    wrong, silent = faults(function, doc)
    return [
        *(f"{name} is not an argument, or in another order" for name in wrong),
        *(f"{name} is not described" for name in silent),
    ]


def faults(function, doc):
    """Documented arguments that do not exist or are out of order; arrays not described.

    An argument whose name and type say all (`robot: RobotModel`) need not be listed.
    """
    given = function.args
    every = [*given.args, *filter(None, [given.vararg]), *given.kwonlyargs]
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


def test_an_override_is_noticed_and_a_method_of_the_same_name_is_not():
    text = (
        "class A:\n def f(self): ...\nclass B(A): ...\nclass C(B):\n def f(self): ...\n def"
        " g(self): ..."
    )
    classes = known_classes([ast.parse(text)])
    assert overrides("f", "C", classes)
    assert not overrides("g", "C", classes)
    assert not overrides("f", "A", classes)


def test_no_function_takes_arbitrary_keywords():
    offenders = [
        place for place, function, _, _ in every_function() if function.args.kwarg is not None
    ]
    assert not offenders, "\n".join(offenders)
