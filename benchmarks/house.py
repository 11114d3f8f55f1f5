"""What the house looks like: lines, files, public names, modules that one other module alone imports.

python benchmarks/house.py            the figures of each room
python benchmarks/house.py --names    and the modules with one importer, and names used in one module only
"""

import ast
import sys
from collections import Counter, defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "steelyard"


def modules() -> dict[str, Path]:
    """Every module of the library by its dotted name."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = ("steelyard", *path.relative_to(SOURCE).with_suffix("").parts)
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def importers(found: dict[str, Path]) -> dict[str, set[str]]:
    """Which modules import each module, lazily too."""
    users = defaultdict(set)
    for name, path in found.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module in found:
                for alias in node.names:
                    target = f"{node.module}.{alias.name}"
                    users[target if target in found else node.module].add(name)
    return users


def public_names(path: Path) -> list[str]:
    """Functions and classes of a module that have no underscore."""
    return [
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]


def satellites(found: dict[str, Path]) -> list[tuple[str, str]]:
    """Modules that only one module imports, of their own room; doors (`__init__`) do not count."""
    users = importers(found)
    lonely = []
    for name, path in found.items():
        others = {user for user in users[name] if found[user].name != "__init__.py"}
        same_room = len(others) == 1 and next(iter(others)).split(".")[1:2] == name.split(".")[1:2]
        if path.name != "__init__.py" and same_room:
            lonely.append((name, *others))
    return sorted(lonely)


def main() -> None:
    found = modules()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for name, path in found.items():
        if "." in name:
            room = name.split(".")[1]
        else:
            room = "(door)"
        table[room].update(
            files=1, lines=path.read_text().count("\n"), names=len(public_names(path))
        )
    print(f"{'room':16}{'files':>6}{'lines':>7}{'public names':>14}")
    for room, row in sorted(table.items()):
        print(f"{room:16}{row['files']:6}{row['lines']:7}{row['names']:14}")
    total = sum(table.values(), Counter())
    print(f"{'in all':16}{total['files']:6}{total['lines']:7}{total['names']:14}")
    lonely = satellites(found)
    print(f"modules with a single importer in their room: {len(lonely)}")
    if "--names" in sys.argv:
        for name, user in lonely:
            print(f"  {name} <- {user}")
        texts = {name: path.read_text() for name, path in found.items()}
        for name, path in sorted(found.items()):
            own = [
                public
                for public in public_names(path)
                if not any(public in text for other, text in texts.items() if other != name)
            ]
            if own:
                print(f"  only in {name}: {', '.join(own)}")


if __name__ == "__main__":
    main()
