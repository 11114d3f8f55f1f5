"""Any saved value of steelyard, by the kind that its file states."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from steelyard import _saved
from steelyard.errors import UnreadableFile

_CLASSES = {
    "design": ("excitation", "Design"),
    "model": ("identification", "DynamicModel"),
    "payload": ("payload", "Payload"),
    "trajectory": ("trajectory", "FourierTrajectory"),
    "wrist payload": ("wrist", "WristPayload"),
}
"""For each kind of file, the package and the class that reads it."""


def load(path: str | Path) -> Any:
    """The value in a JSON file that the `save` of a payload, model, trajectory or design wrote.

    Args:
        path: of the file
    """
    content = _saved.read(path)
    kind = content.get("steelyard") if isinstance(content, dict) else None
    if kind not in _CLASSES:
        raise UnreadableFile(
            f"{path} holds a value of kind '{kind}', which load() cannot read;"
            f" it reads files of a {', '.join(_CLASSES)}"
        )
    package, name = _CLASSES[kind]
    return getattr(import_module(f"steelyard.{package}"), name).load(path)
