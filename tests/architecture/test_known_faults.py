"""Faults of the past that `mutants.py --known` puts back: their places and their tests exist."""

import ast
from functools import cache
from pathlib import Path

from known_faults import KNOWN_FAULTS

ROOT = Path(__file__).parents[2]


@cache
def functions_of(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_each_known_fault_can_be_put_back_and_has_its_test():
    wrong = []
    for fault in KNOWN_FAULTS:
        text = (ROOT / "src" / "steelyard" / fault.path).read_text()
        try:
            ast.parse(fault.mutated(text))
        except (ValueError, SyntaxError) as error:
            wrong.append(f"{fault.what}: {error}")
        module, _, name = fault.test.partition("::")
        if name.partition("[")[0] not in functions_of(module):
            wrong.append(f"{fault.what}: there is no {fault.test}")
    assert wrong == []
