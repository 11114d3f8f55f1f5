"""No sentence of a doubt has more than 25 words."""

import ast
import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "steelyard"
MAX_WORDS = 25


def text_of(node):
    """The text of a string expression, 'x' for each inserted value; None for other expressions."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else "x" for part in node.values
        )
    return None


def texts_of_doubts(tree):
    """The texts that a module gives to doubts, directly or as a variable named 'words'."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Doubt":
            arguments = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "words")]
            yield from ((node.lineno, text_of(argument)) for argument in arguments)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "words":
            yield node.lineno, text_of(node.value)


def sentences(text):
    return re.split(r"[;.?] ", text)


def test_sentences_of_doubts_are_short():
    offenders = []
    for path in sorted(SOURCE.rglob("*.py")):
        source = path.read_text()
        if "Doubt(" not in source:
            continue
        for line, text in texts_of_doubts(ast.parse(source)):
            longest = max((len(part.split()) for part in sentences(text or "")), default=0)
            if longest > MAX_WORDS:
                offenders.append(f"{path.relative_to(SOURCE)}:{line}: {longest} words: {text}")
    assert not offenders, "\n".join(offenders)
