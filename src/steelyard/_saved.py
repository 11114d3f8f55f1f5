"""Files that steelyard writes: completely or not at all; one JSON format for saved values.

A saved file is an object with 'steelyard' (the kind of value), 'version' (of the content of that
kind) and the content. JSON has neither infinity nor NaN, which covariances and clocks need. They
are written as the texts "inf", "-inf" and "nan", so that every number is restored exactly.

Platforms: Linux and macOS. Writers lock their files by `fcntl`, which Windows does not have; there,
use the Windows Subsystem for Linux.
"""

from __future__ import annotations

import glob
import hashlib
import json
import math
import os
import secrets
import stat
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from steelyard.errors import SteelyardError, UnreadableFile

if sys.platform == "win32":
    raise ImportError("steelyard runs on Linux and macOS; on Windows, use the subsystem for Linux")

import fcntl

_PENDING: ContextVar[list[tuple[Path, Path]] | None] = ContextVar(
    "files that are written together", default=None
)
_UNFINISHED: set[Path] = set()
_MAX_QUOTED = 160  # characters of the message of a library
_MAX_FILE_BYTES = 2**28
_MAX_NAME_BYTES = 200  # of a target's name in the name of its temporary file; names have 255
_ABANDONED_S = 2.0  # a temporary file that is unlocked for this long is abandoned, [s]
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def require_target(path: str | Path) -> None:
    """Raises an error if a file cannot be written; call it before a long computation.

    Args:
        path: a file to make or to replace, not a folder, a device or a pipe
    """
    target = Path(os.path.realpath(path))
    parent = Path(path).parent
    if not target.parent.is_dir():
        raise UnreadableFile(f"cannot write {path}: there is no folder {parent}; make it first")
    with _writing(path):
        if _exists(target):
            kind = target.stat().st_mode
        else:
            kind = stat.S_IFREG
    if not stat.S_ISREG(kind):
        if stat.S_ISDIR(kind):
            what = "a folder"
        else:
            what = "not a regular file"
        raise UnreadableFile(f"cannot write {path}: it is {what}")
    if not os.access(target if _exists(target) else target.parent, os.W_OK):
        raise UnreadableFile(f"cannot write {path}: it is read-only")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise UnreadableFile(f"cannot write {path}: the folder {parent} is read-only")


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary file beside the path, which replaces it on success and is removed on failure.

    Symbolic links are followed and kept. A replaced file keeps its mode. Inside `together`, the
    replacement happens at the end of that block.

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
            with suppress(OSError):  # some file systems have no locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield part
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            os.fsync(file.fileno())  # before the name changes: a power cut leaves one of both
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
    """Files that are written inside replace their targets all at the end, or not at all."""
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
    """Removes the temporary files of this process, before it is ended."""
    for part in list(_UNFINISHED):
        _discard(part)


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _UNFINISHED.discard(part)


def _take_place(part: Path, target: Path) -> None:
    with _writing(target):
        part.replace(target)


def _part_name(target: Path) -> str:
    """The prefix of the names of a file's temporary files."""
    return f".{os.fsdecode(os.fsencode(target.name)[:_MAX_NAME_BYTES])}."


def sweep(path: str | Path) -> None:
    """Removes the abandoned temporary files of writers that were killed.

    Args:
        path: the file that they were to replace
    """
    target = Path(os.path.realpath(path))
    for part in target.parent.glob(f"{glob.escape(_part_name(target))}*.part"):
        with suppress(OSError), part.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - part.stat().st_mtime > _ABANDONED_S:
                part.unlink()


@contextmanager
def _writing(path: str | Path) -> Iterator[None]:
    """Turns errors of the operating system into `UnreadableFile`."""
    try:
        yield
    except SteelyardError:
        raise
    except OSError as error:
        raise UnreadableFile(f"cannot write {path}: {error.strerror or error}") from error


def _exists(target: Path) -> bool:
    """Whether a file exists; raises OSError for a name that is too long or a circle of links."""
    try:
        target.stat()
    except FileNotFoundError:
        return False
    return True


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Keeps other writers out that read a file, change it and write it again, until they may.

    The lock is that of the folder, because the file itself is replaced. The system frees the lock
    of a process that ends.

    Args:
        path: the file to read and to write inside
    """
    require_target(path)
    with _writing(path):
        folder = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems have no locks
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@contextmanager
def growing(path: str | Path) -> Iterator[BinaryIO]:
    """A file that grows while it is written; after a failure it keeps what was written.

    Args:
        path: the file to make or to replace
    """
    require_target(path)
    with _writing(path), Path(path).open("wb") as file:
        yield file


def write_text(path: str | Path, text: str) -> None:
    """Writes a text file completely or not at all.

    Args:
        path: the file
        text: its content
    """
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def save(
    content: Mapping[str, Any],
    kind: str,
    path: str | Path,
    *,
    version: int = 1,
    sealed: bool = False,
) -> None:
    """Writes content to a JSON file that `load` reads back.

    Args:
        content: texts, numbers, arrays, lists and mappings
        kind: the kind of value, such as 'model'
        path: the file
        version: of the content of this kind
        sealed: whether `load` refuses the file if it was changed; for files that users do not edit
    """
    body = plain(content)
    whole = {"steelyard": kind, "version": version, **body}
    if sealed:
        whole["seal"] = _seal(body)
    write_text(path, json.dumps(whole, allow_nan=False) + "\n")


def read(path: str | Path, *, remedy: str = "") -> Any:
    """The content of any JSON file, header included.

    Args:
        path: the file
        remedy: what else helps where it is missing, see `UnreadableFile.of`
    """
    try:
        text = read_bytes(path, remedy=remedy).decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=_restored, parse_constant=_refused)
    except SteelyardError:
        raise
    except RecursionError as error:
        raise UnreadableFile(
            f"{path} is not a file of steelyard: it is nested too deeply"
        ) from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(
            f"{path} is not a JSON file of steelyard, but binary data; models and payloads are"
            " named before recordings"
        ) from error
    except ValueError as error:
        raise UnreadableFile(f"{path} is not JSON: {error}") from error


def read_bytes(path: str | Path, *, remedy: str = "") -> bytes:
    """The content of a file that is not large.

    Args:
        path: the file
        remedy: what else helps where it is missing, see `UnreadableFile.of`
    """
    try:
        if Path(path).is_fifo():
            raise UnreadableFile(f"cannot read {path}: it is a pipe; write it to a file")
        with Path(path).open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UnreadableFile.of(path, error, remedy=remedy) from error
    if len(content) > _MAX_FILE_BYTES:
        limit = _MAX_FILE_BYTES >> 20
        raise UnreadableFile(f"{path} is larger than {limit} MB, which no such file is")
    return content


def read_toml(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file.

    Args:
        path: the file
    """
    try:
        return tomllib.loads(read_bytes(path).decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        if isinstance(error, SteelyardError):
            raise
        if isinstance(error, RecursionError):
            words = "it is nested too deeply"
        else:
            words = str(error)
        raise UnreadableFile(f"{path} is not valid TOML: {words}") from error


def load(path: str | Path, kind: str, *, version: int = 1, sealed: bool = False) -> dict[str, Any]:
    """The content of a JSON file that `save` wrote, with arrays as lists.

    Args:
        path: the file
        kind: the expected kind of value
        version: the expected version
        sealed: whether the file must not have been changed
    """
    content = read(path, remedy=f"or make the {kind} first")
    if isinstance(content, dict):
        found = content.get("steelyard")
    else:
        found = None
    if found != kind:
        raise UnreadableFile(f"{path} is not a {kind} file of steelyard (it says '{found}')")
    if type(content.get("version")) is not int or content["version"] != version:
        raise UnreadableFile(
            f"{path} has version {content.get('version')}, this steelyard reads version {version}:"
            f" make the {kind} again"
        )
    if sealed:
        seal = content.pop("seal", None)
    else:
        seal = None
    content = {
        name: value for name, value in content.items() if name not in ("steelyard", "version")
    }
    if sealed and seal != _seal(plain(content)):
        raise UnreadableFile(
            f"{path} was changed after it was saved, or is not whole: make the {kind} again"
        )
    return content


@contextmanager
def reading(path: str | Path, kind: str) -> Iterator[None]:
    """Turns errors while a value is made of a file's content into `UnreadableFile`.

    Args:
        path: the file
        kind: the kind of value in it
    """
    try:
        yield
    except (
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        if isinstance(error, KeyError | TypeError):
            words = f"{type(error).__name__} {error}"
        else:
            words = str(error)
        raise UnreadableFile(f"{path} is not a whole {kind} file: {words}") from error


@contextmanager
def parsing(what: str, advice: str) -> Iterator[None]:
    """Turns whatever a library raises while it parses damaged bytes into `UnreadableFile`.

    Args:
        what: the file and its fault, as 'log.parquet: the Parquet file is damaged'
        advice: what to do about it
    """
    try:
        yield
    except SteelyardError:
        raise
    except Exception as error:
        raise UnreadableFile(f"{what} ({_words_of(error)}); {advice}") from error


def _words_of(error: Exception) -> str:
    """The first line of the message of a library, which may quote damaged bytes of a file."""
    lines = str(error).splitlines() or [type(error).__name__]
    readable = "".join(x if x.isprintable() and x != "\ufffd" else "?" for x in lines[0])
    readable = readable.replace("`", "'")
    if len(readable) > _MAX_QUOTED:
        readable = f"{readable[:_MAX_QUOTED]} ..."
    return readable


def _seal(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def plain(value: Any, *, not_finite: Callable[[float], Any] = str) -> Any:
    """The value as lists, mappings, texts and numbers, for JSON.

    Args:
        value: texts, numbers, paths, times, arrays, and lists and mappings of them
        not_finite: what a number that is not finite becomes; by default a text that `load` restores
    """
    if isinstance(value, Mapping):
        return {str(name): plain(item, not_finite=not_finite) for name, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind in "biu" or (value.dtype.kind == "f" and np.isfinite(value).all()):
            return value.tolist()
        return plain(value.tolist(), not_finite=not_finite)
    if isinstance(value, list | tuple):
        if {float}.issuperset(map(type, value)) and all(map(math.isfinite, value)):
            return list(value)
        return [plain(item, not_finite=not_finite) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return not_finite(value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return value


def _restored(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = {name: _finite_or_not(value) for name, value in pairs}
    if len(content) < len(pairs):
        twice = next(name for name, _ in pairs if sum(name == other for other, _ in pairs) > 1)
        raise ValueError(f"'{twice}' stands in it twice")
    return content


def _refused(word: str) -> None:
    raise ValueError(f"{word} is not a number of JSON")


def _finite_or_not(value: Any) -> Any:
    if isinstance(value, list):
        if {float, int}.issuperset(map(type, value)):
            return value
        return [_finite_or_not(item) for item in value]
    if isinstance(value, str):
        return _NOT_FINITE.get(value, value)
    return value
