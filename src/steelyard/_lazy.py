"""Public names of a package that are imported on first use, which keeps imports fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_attributes(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """A module-level `__getattr__` for a package.

    Args:
        package: name of the package, its `__name__`
        modules: for each public name, the module that defines it, relative to the package
    """

    def getattr_(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return getattr_
