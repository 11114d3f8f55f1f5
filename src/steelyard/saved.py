"""Files that steelyard writes: whole or not at all, and one JSON format for everything that it reads back.

A saved file is an object with 'steelyard' (what it holds), 'version' (of that kind's content) and the
content. JSON has no infinity and no NaN, which covariances and clocks need: they are the texts "inf",
"-inf" and "nan", so that every number comes back as it was.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from steelyard.errors import UnreadableFile

_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A new file beside the path, which takes its place when all went well and vanishes when not.

    Args:
        path: the file to write or to replace
    """
    target = Path(path)
    _require_folder(target)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
        with part.open("rb+") as file:  # bytes on the disk before the name changes: a power cut leaves one
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def growing(path: str | Path) -> Iterator[BinaryIO]:
    """A new file that is written for a long time, and stays as far as it came when something goes wrong.

    Args:
        path: the file to make or to replace
    """
    _require_folder(path)
    with Path(path).open("wb") as file:
        yield file


def write_text(path: str | Path, text: str) -> None:
    """Writes a text file whole or not at all.

    Args:
        path: of the file
        text: its content
    """
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def _require_folder(path: str | Path) -> None:
    """Refuses a path whose folder does not exist.

    Args:
        path: of a file to write
    """
    if not Path(path).parent.is_dir():
        raise UnreadableFile(f"cannot write {path}: there is no folder {Path(path).parent}; make it first")


def save(content: Mapping[str, Any], kind: str, path: str | Path, *, version: int = 1) -> None:
    """Writes content to a JSON file that `load` reads back.

    Args:
        content: texts, numbers, arrays, lists and mappings
        kind: what it is, in a word
        path: of the file
        version: of this kind's content
    """
    whole = {"steelyard": kind, "version": version, **plain(content)}
    write_text(path, json.dumps(whole, allow_nan=False) + "\n")


def read(path: str | Path) -> Any:
    """The content of any JSON file, header included.

    Args:
        path: of the file
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"), object_hook=_restored)
    except OSError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UnreadableFile(f"{path} is not JSON: {error}") from error


def load(path: str | Path, kind: str, *, version: int = 1) -> dict[str, Any]:
    """The content of a JSON file that `save` wrote: its lists are plain lists, arrays too.

    Args:
        path: of the file
        kind: what it must hold
        version: that it must have
    """
    content = read(path)
    found = content.get("steelyard") if isinstance(content, dict) else None
    if found != kind:
        raise UnreadableFile(f"{path} is not a {kind} file of steelyard (it says '{found}')")
    if content.get("version") != version:
        raise UnreadableFile(
            f"{path} has version {content.get('version')}, this steelyard reads version {version}:"
            f" make the {kind} again"
        )
    return {name: value for name, value in content.items() if name not in ("steelyard", "version")}


@contextmanager
def reading(path: str | Path, kind: str) -> Iterator[None]:
    """Turns what goes wrong while a loaded object is made of its content into one clear refusal.

    Args:
        path: of the file
        kind: what it holds
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise UnreadableFile(f"{path} is not a whole {kind} file: {type(error).__name__} {error}") from error


def plain(value: Any, *, null: bool = False) -> Any:
    """Lists, mappings, texts and finite numbers, for JSON.

    Args:
        value: texts, numbers, paths, arrays, and lists and mappings of them
        null: what is not finite becomes None; else a text that comes back as it was
    """
    if isinstance(value, Mapping):
        return {str(name): plain(item, null=null) for name, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), null=null)
    if isinstance(value, list | tuple):
        return [plain(item, null=null) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if null else str(value)
    return str(value) if isinstance(value, Path) else value


def _restored(content: dict[str, Any]) -> dict[str, Any]:
    return {name: _finite_or_not(value) for name, value in content.items()}


def _finite_or_not(value: Any) -> Any:
    if isinstance(value, list):
        if {float, int}.issuperset(map(type, value)):
            return value
        return [_finite_or_not(item) for item in value]
    return _NOT_FINITE.get(value, value) if isinstance(value, str) else value
