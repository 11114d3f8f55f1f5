"""Files that steelyard writes: whole or not at all, and one JSON format for everything that it reads back.

A saved file is an object with 'steelyard' (what it holds), 'version' (of that kind's content) and the
content. JSON has no infinity and no NaN, which covariances and clocks need: they are the texts "inf",
"-inf" and "nan", so that every number comes back as it was.
"""

from __future__ import annotations

import fcntl
import glob
import json
import math
import os
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from steelyard.errors import SteelyardError, UnreadableFile

_PENDING: ContextVar[list[tuple[Path, Path]] | None] = ContextVar("files of one answer", default=None)
_UNFINISHED: set[Path] = set()
_LONGEST_NAME = 200  # letters of a file's name in that of its part; names have 255
_STALE_S = 2.0  # a part that nobody holds for so long has lost its writer
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def require_target(path: str | Path) -> None:
    """Refuses a path that cannot be written: asked before the work, so that nothing is lost after it.

    Args:
        path: of a file to make or to replace, never of a folder, a device or a pipe
    """
    target, parent = Path(os.path.realpath(path)), Path(path).parent
    if not target.parent.is_dir():
        raise UnreadableFile(f"cannot write {path}: there is no folder {parent}; make it first")
    with _writing(path):
        kind = target.stat().st_mode if _exists(target) else stat.S_IFREG
    if not stat.S_ISREG(kind):
        what = "a folder" if stat.S_ISDIR(kind) else "not a regular file"
        raise UnreadableFile(f"cannot write {path}: it is {what}")
    if not os.access(target if _exists(target) else target.parent, os.W_OK):
        raise UnreadableFile(f"cannot write {path}: it is read-only")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise UnreadableFile(f"cannot write {path}: the folder {parent} is read-only")


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A new file beside the path, which takes its place when all went well and vanishes when not.

    Links are followed and kept; the mode of a file that is replaced is kept, a new one gets the user's.
    Inside of `together` it takes its place at the end of that.

    Args:
        path: the file to write or to replace
    """
    require_target(path)
    target = Path(os.path.realpath(path))
    part = target.with_name(f"{_part_name(target)}{secrets.token_hex(4)}.part")
    _UNFINISHED.add(part)
    pending = _PENDING.get()
    whole = False
    try:
        with _writing(path), part.open("xb") as file:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield part
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            os.fsync(file.fileno())  # bytes on the disk before the name changes: a power cut leaves one
        whole = True
        if pending is None:
            _take_place(part, target)
        else:
            pending.append((part, target))
    finally:
        if pending is None or not whole:
            _discard(part)


@contextmanager
def together() -> Iterator[None]:
    """Files that are written inside take their places when all of them are whole, else none of them."""
    pending: list[tuple[Path, Path]] = []
    before = _PENDING.set(pending)
    try:
        yield
        for part, target in pending:
            _take_place(part, target)
    finally:
        _PENDING.reset(before)
        for part, _ in pending:
            _discard(part)


def abandon() -> None:
    """Removes every file of this process that is not whole, before it ends without a way back."""
    for part in list(_UNFINISHED):
        _discard(part)


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _UNFINISHED.discard(part)


def _take_place(part: Path, target: Path) -> None:
    with _writing(target):
        part.replace(target)


def _part_name(target: Path) -> str:
    """How the names of this file's parts begin."""
    return f".{os.fsdecode(os.fsencode(target.name)[:_LONGEST_NAME])}."


def sweep(path: str | Path) -> None:
    """Removes what writers of a file left that were killed: parts that nobody holds.

    Args:
        path: of the file
    """
    target = Path(os.path.realpath(path))
    for part in target.parent.glob(f"{glob.escape(_part_name(target))}*.part"):
        with suppress(OSError), part.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - part.stat().st_mtime > _STALE_S:
                part.unlink()


@contextmanager
def _writing(path: str | Path) -> Iterator[None]:
    """Turns a failure of the disk into one clear refusal."""
    try:
        yield
    except SteelyardError:
        raise
    except OSError as error:
        raise UnreadableFile(f"cannot write {path}: {error.strerror or error}") from error


def _exists(target: Path) -> bool:
    """Whether it is there; a name that is too long or goes in a circle raises."""
    try:
        target.stat()
    except FileNotFoundError:
        return False
    return True


@contextmanager
def growing(path: str | Path) -> Iterator[BinaryIO]:
    """A new file that is written for a long time, and stays as far as it came when something goes wrong.

    Args:
        path: the file to make or to replace
    """
    require_target(path)
    with _writing(path), Path(path).open("wb") as file:
        yield file


def write_text(path: str | Path, text: str) -> None:
    """Writes a text file whole or not at all.

    Args:
        path: of the file
        text: its content
    """
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


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
