"""Rules for all modules; each has examples of code that breaks it and of code that keeps it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import style

pytestmark = pytest.mark.style

ROOT = Path(__file__).parents[2]

SENTENCES = {"status", "sentence", "summary", "words"}
SAME_SENTENCE = {"lower", "upper", "casefold", "strip", "replace", "removeprefix", "removesuffix"}
SEARCHES = {
    *("startswith", "endswith", "find", "rfind", "index", "rindex", "count"),
    *("split", "rsplit", "partition", "rpartition", "splitlines", "removeprefix", "removesuffix"),
}
OTHER_JSON = {  # all other files are written by the modules that save values
    "src/steelyard/live/_picks_page.py": "the state of a page, for its script",
    "src/steelyard/live/_ros2_publisher.py": "a pick as the text of a message",
    "src/steelyard/_saved.py": "the format of saved values",
    "src/steelyard/cli/output.py": "printed on stdout",
    "src/steelyard/export/_controllers.py": "a controller's own format",
    "src/steelyard/recording/_layout.py": "the description inside a recording's file",
    "src/steelyard/live/_foxglove.py": "the protocol of Foxglove",
    "src/steelyard/live/_ros2_node.py": "the protocol of Foxglove",
    "papers/src/steelyard_papers/command.py": "a page in a format for programs",
}
WRITING_MODULES = {
    "src/steelyard/_saved.py": "writes for all others",
    "src/steelyard/__main__.py": "standard streams of the process",
}
WRITERS = {
    *(
        "write_text",
        "write_bytes",
        "savefig",
        "write_table",
        "save",
        "savez",
        "savez_compressed",
        "savetxt",
    ),
    *("to_csv", "to_parquet", "write_csv", "write_parquet", "write_image", "write_html", "dump"),
    *("copy", "copyfile", "rename", "replace", "move"),
}


MAKES_TAGS = {"src/steelyard/_templates.py": "a filter of the templates"}
TAG = re.compile(
    r"<!doctype|(?<!\(\?P)</?(a|b|body|br|code|dd|div|dl|dt|em|h[1-6]|head|html|i|img|li|meta|ol|p"
    r"|pre|script|section|span|strong|style|svg|table|tbody|td|th|thead|title|tr|ul|wbr)(?=[\s/>])",
    re.IGNORECASE,
)


@cache
def trees():
    """The syntax tree of each module, by its path."""
    return {path.relative_to(ROOT).as_posix(): style.tree_of(path) for path in style.library()}


def is_sentence(node):
    """Whether an expression is the sentence of a verdict or of a result."""
    if isinstance(node, ast.Attribute):
        return node.attr in SENTENCES
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in SAME_SENTENCE and is_sentence(node.func.value)
    if ast.unparse(node.func) != "str" or not node.args:
        return False
    return is_sentence(node.args[0]) or ast.unparse(node.args[0]).split(".")[-1].endswith("verdict")


def searched_sentences(tree):
    """Where code searches words in a sentence."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
                inside = isinstance(operator, ast.In | ast.NotIn) and is_sentence(right)
                texts = [isinstance(side, ast.Constant | ast.JoinedStr) for side in (left, right)]
                same = isinstance(operator, ast.Eq | ast.NotEq) and any(texts)
                same = same and (is_sentence(left) or is_sentence(right))
                if inside or same:
                    yield node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            by_method = node.func.attr in SEARCHES and is_sentence(node.func.value)
            by_pattern = ast.unparse(node.func.value) == "re" and any(
                is_sentence(x) for x in node.args
            )
            if by_method or by_pattern:
                yield node


def packed_parameters(tree):
    """Parameters that are tuples of different things."""
    aliases = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }

    def packed(kind):
        if isinstance(kind, ast.Name) and kind.id in aliases:
            return packed(aliases[kind.id])
        if isinstance(kind, ast.BinOp):
            return packed(kind.left) or packed(kind.right)
        if not isinstance(kind, ast.Subscript) or ast.unparse(kind.value) != "tuple":
            return False
        parts = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
        return len({ast.unparse(part) for part in parts} - {"..."}) > 1

    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for parameter in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                if parameter.annotation is not None and packed(parameter.annotation):
                    yield parameter


def lists_of_names(tree):
    """Assignments to `__all__`."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            yield node


def tags_in_strings(tree):
    """Where a string of the code, and not a template, holds a tag of HTML."""
    sentences = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in sentences and TAG.search(node.value):
            yield node


def json_by_hand(tree):
    """Where code makes or reads JSON itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "json":
            yield node
        if isinstance(node, ast.ImportFrom) and node.module == "json":
            yield node


def unsafe_writes(tree):
    """Where code writes a file that a crash would leave half written."""

    def walk(node, safe):
        if isinstance(node, ast.With):
            for item in node.items:
                words = ast.unparse(item.context_expr)
                whole = words.split("(")[0].endswith("replacing")
                whole = whole or (".open(" in words and words.split(".")[0] in safe)
                if whole and item.optional_vars is not None:
                    safe = safe | {ast.unparse(item.optional_vars)}
        if isinstance(node, ast.Assign) and "BytesIO(" in ast.unparse(node.value):
            safe.update(ast.unparse(target) for target in node.targets)
        if isinstance(node, ast.FunctionDef):
            safe = set(safe)
        if isinstance(node, ast.Call) and _writes(node) and not safe & _touched(node):
            yield node
        for child in ast.iter_child_nodes(node):
            yield from walk(child, safe)

    yield from walk(tree, set())


def _writes(call):
    name = ast.unparse(call.func)
    if name == "open" or name.endswith(".open"):
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        modes = [x.value for x in given if isinstance(x, ast.Constant) and isinstance(x.value, str)]
        return any(len(mode) <= 3 and set(mode) & set("wax+") for mode in modes)
    foreign = isinstance(call.func, ast.Attribute) and call.func.attr in WRITERS
    if foreign and call.func.attr in ("replace", "copy"):  # of texts, arrays and values
        return ast.unparse(call.func.value) in ("os", "shutil")
    if foreign and call.func.attr == "save":  # values of the library save themselves
        return ast.unparse(call.func.value) in ("np", "numpy")
    return foreign and ast.unparse(call.func.value) != "_saved"


def _touched(call):
    """The names that a call is given or is a method of."""
    start = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    return {ast.unparse(x) for x in (start, *call.args, *(k.value for k in call.keywords))}


def offenders(rule, *, outside=()):
    """Where modules break a rule, one file:line a line."""
    return "\n".join(
        f"{name}:{node.lineno}"
        for name, tree in trees().items()
        if name not in outside
        for node in rule(tree)
    )


def test_no_code_searches_words_in_a_sentence():
    assert not offenders(searched_sentences)


def test_no_parameter_is_a_tuple_of_different_things():
    assert not offenders(packed_parameters)


def test_only_packages_list_their_names():
    packages = [name for name in trees() if name.endswith("/__init__.py")]
    assert not offenders(lists_of_names, outside=packages)


def test_html_comes_from_templates():
    assert not offenders(tags_in_strings, outside=MAKES_TAGS)


def test_saved_json_goes_through_one_module():
    assert not offenders(json_by_hand, outside=OTHER_JSON)
    users = {name for name, tree in trees().items() if any(json_by_hand(tree))}
    assert set(OTHER_JSON) <= users, "exceptions that are no longer needed"


def test_files_are_written_whole_or_not_at_all():
    assert not offenders(unsafe_writes, outside=WRITING_MODULES)


BREAKS_THE_RULE = {
    searched_sentences: (
        "trusted = 'do not' not in payload.status",
        "if 'physical' in answer.verdict.sentence.lower(): pass",
        "bad = 'none' in str(found.verdict)",
        "bad = 'none' in str(verdict)",
        "bad = 'Infeasible' in str(solution.status)",
        "bad = model.estimate.verdict.summary.startswith('no')",
        "first = found.status.split(';')[0]",
        "rest = found.status.removesuffix('; x')",
        "good = found.status == 'fine'",
        "found = re.search('none', doubt.words)",
    ),
    packed_parameters: (
        "def f(run: tuple[Recording, Truth]): pass",
        "def f(x, *, run: tuple[float, Array] | None = None): pass",
        "Pack = tuple[int, str]\ndef f(pack: Pack): pass",
    ),
    lists_of_names: ("__all__ = ['f']", "__all__: list[str] = []", "__all__ += ['g']"),
    tags_in_strings: (
        "row = f'<td>{cell}</td>'",
        "style = '<style>' + text",
        "link = f'<a href=\"{name}\">'",
        "before, after = page.split('<body>')",
        "start = '<!DOCTYPE html>'",
    ),
    json_by_hand: ("import json\nprint(json.dumps({}))", "from json import dumps"),
    unsafe_writes: (
        "path.write_text('x')",
        "with open(path, 'w') as file: file.write('x')",
        "with path.open(mode='wb') as file: pass",
        "figure.savefig(path)",
        "with replacing(path) as part: figure.savefig(path)",
        "np.savez_compressed(path, **arrays)",
        "with _saved.replacing(a) as part: pass\npq.write_table(table, path)",
    ),
}
KEEPS_THE_RULE = {
    tags_in_strings: (
        "def f():\n    'The text within <p>.'",
        "raise InvalidRobot('remove <mimic>')",
        "pattern = r'(?P<a>x)(?P<b>y)'",
        "words = 'mass < b or > c'",
        "text = render(['steelyard.fleet'], 'fleet.html', values)",
    ),
    searched_sentences: (
        "words = found.status[0].upper()",
        "x = solution.status == known.Solved",
    ),
    packed_parameters: ("def f(range_s: tuple[float, float], names: tuple[str, ...]): pass",),
    lists_of_names: ("names = ['f']",),
    json_by_hand: ("_saved.save(content, 'model', path)",),
    unsafe_writes: (
        "with replacing(path) as part: part.write_text('x')",
        "with _saved.replacing(path) as part, part.open('wb') as file: np.savez(file)",
        "out = io.BytesIO()\nfigure.savefig(out)",
        "_saved.write_text(path, 'x')\nwrite_text(path, 'x')\nwith path.open('rb') as file: pass",
    ),
}


def test_rules_find_what_breaks_them():
    missed = [
        text
        for rule, texts in BREAKS_THE_RULE.items()
        for text in texts
        if not any(rule(ast.parse(text)))
    ]
    assert missed == []


def test_rules_let_good_code_pass():
    refused = [
        text
        for rule, texts in KEEPS_THE_RULE.items()
        for text in texts
        if any(rule(ast.parse(text)))
    ]
    assert refused == []
