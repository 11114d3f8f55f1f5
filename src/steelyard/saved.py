"""Files that steelyard writes: whole or not at all, and one JSON format for everything that it reads back.

A saved file is an object with 'steelyard' (what it holds), 'version' (of that kind's content) and
the content. JSON has no infinity and no NaN, which covariances and clocks need: they are the texts
"inf", "-inf" and "nan", so that every number comes back as it was.
"""

from __future__ import annotations

import fcntl
import glob
import hashlib
import json
import math
import os
import secrets
import stat
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

import numpy as np

from steelyard.errors import SteelyardError, UnreadableFile


class _Kept(Protocol):
    def to_dict(self) -> Mapping[str, Any]: ...


_Value = TypeVar("_Value", bound=_Kept)
_PENDING: ContextVar[list[tuple[Path, Path]] | None] = ContextVar(
    "files of one answer", default=None
)
_UNFINISHED: set[Path] = set()
_LARGEST = 2**28  # of texts, [bytes]
_LONGEST_NAME = 200  # letters of a file's name in that of its part; names have 255
_STALE_S = 2.0  # a part that nobody holds for so long has lost its writer
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def require_target(path: str | Path) -> None:
    """Refuses a path that cannot be written: asked before the work, so that nothing is lost after it.

    Args:
        path: of a file to make or to replace, never of a folder, a device or a pipe
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
    """A new file beside the path, which takes its place when all went well and vanishes when not.

    Links are followed and kept; the mode of a file that is replaced is kept, a new one gets the
    user's. Inside of `together` it takes its place at the end of that.

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
            os.fsync(
                file.fileno()
            )  # bytes on the disk before the name changes: a power cut leaves one
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
        kind: what it is, in a word
        path: of the file
        version: of this kind's content
        sealed: whether `load` shall refuse it when changed: for what only programs write
    """
    whole = {"steelyard": kind, "version": version, **plain(content)}
    if sealed:
        whole["seal"] = _seal(content)
    write_text(path, json.dumps(whole, allow_nan=False) + "\n")


def read(path: str | Path) -> Any:
    """The content of any JSON file, header included.

    Args:
        path: of the file
    """
    try:
        text = read_bytes(path).decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=_restored, parse_constant=_refused)
    except SteelyardError:
        raise
    except RecursionError as error:
        raise UnreadableFile(
            f"{path} is not a file of steelyard: it is nested too deeply"
        ) from error
    except ValueError as error:
        raise UnreadableFile(f"{path} is not JSON: {error}") from error


def read_bytes(path: str | Path) -> bytes:
    """What is in a file that people or we have written, which is not large.

    Args:
        path: of the file
    """
    try:
        if Path(path).is_fifo():
            raise UnreadableFile(f"cannot read {path}: it is a pipe; write it to a file")
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error
    if len(content) > _LARGEST:
        raise UnreadableFile(f"{path} is larger than {_LARGEST >> 20} MB, which no such file is")
    return content


def read_toml(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file.

    Args:
        path: of the file
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
    """The content of a JSON file that `save` wrote: its lists are plain lists, arrays too.

    Args:
        path: of the file
        kind: what it must hold
        version: that it must have
        sealed: whether it must be as it was saved
    """
    content = read(path)
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
    if sealed and seal != _seal(content):
        raise UnreadableFile(
            f"{path} was changed after it was saved, or is not whole: make the {kind} again"
        )
    return content


def loaded(
    path: str | Path,
    kind: str,
    make: Callable[[Any], _Value],
    *,
    version: int = 1,
    sealed: bool = False,
) -> _Value:
    """The value in a JSON file that `save` wrote: checked, and one that would be written as it was read.

    So a field that is said twice cannot say two things, and none can be misspelt, or of another
    kind.

    Args:
        path: of the file
        kind: what it must hold
        make: makes the value of the content; the value has a `to_dict`
        version: that it must have
        sealed: whether it must be as it was saved
    """
    content = load(path, kind, version=version, sealed=sealed)
    with reading(path, kind):
        value = make(content)
        _require_same(plain(value.to_dict()), plain(content), "")
    return value


@contextmanager
def reading(path: str | Path, kind: str) -> Iterator[None]:
    """Turns what goes wrong while a loaded object is made of its content into one clear refusal.

    Args:
        path: of the file
        kind: what it holds
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


def _require_same(value: Any, content: Any, place: str) -> None:
    """Refuses content that differs from what its value would be written as; null and nothing are one."""
    if isinstance(value, dict) and isinstance(content, dict):
        for name in {**value, **content}:
            _require_same(value.get(name), content.get(name), f"{place}.{name}" if place else name)
    elif isinstance(value, list) and isinstance(content, list) and len(value) == len(content):
        for k, (one, other) in enumerate(zip(value, content, strict=True)):
            if one != other:
                _require_same(one, other, f"{place}[{k}]")
    elif isinstance(value, float | int) and isinstance(content, float | int):
        if not math.isclose(value, content, rel_tol=1e-9, abs_tol=1e-12):
            raise ValueError(f"'{place}' says {content}, the rest of the file gives {value}")
    elif value != content and (value or content):
        raise ValueError(
            f"'{place}' says {str(content)[:60]}, the rest of the file gives {str(value)[:60]}"
        )


def _seal(content: Mapping[str, Any]) -> str:
    text = json.dumps(plain(content), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


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
        if null:
            return None
        return str(value)
    if isinstance(value, Path):
        return str(value)
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
