"""The template of plug-ins in `examples`, found as an installed package is found."""

import sys
import tomllib
from contextlib import contextmanager
from pathlib import Path

TEMPLATE = Path(__file__).parents[1] / "examples" / "plug_in"


@contextmanager
def installed(folder, monkeypatch):
    """The template on the path, with the metadata that an installer writes into a folder."""
    whole = tomllib.loads((TEMPLATE / "pyproject.toml").read_text())
    info = folder / "steelyard_plug_in-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: steelyard-plug-in\nVersion: 0.1.0\n"
    )
    groups = whole["project"]["entry-points"].items()
    lines = [f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in x.items()) for group, x in groups]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.syspath_prepend(str(TEMPLATE))
    yield
    for module in whole["tool"]["setuptools"]["py-modules"]:
        sys.modules.pop(module, None)
