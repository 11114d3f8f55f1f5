"""Reduces a log to one row: its triangular factor, and figures beside it.

The shapes of the friction law are fixed here. The torques of every log are then linear in the same
unknowns: base parameters of links and rotors, friction and offset. A log of any length is reduced
to one factor R of [Y tau] = Q R for each joint, some tens of kilobytes. Factors are merged without
loss: the factor of two logs is that of [R_1; R_2]. A long log is read in blocks, so the memory used
does not depend on its length.

A factor alone would treat noise as white. The row therefore also holds the noise of the log's own
fit, and the factor by which the correlation of its residuals in time increases the variance of slow
columns (`widening`).
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from steelyard._arrays import Array
from steelyard._codec import Value
from steelyard._kinds import Shape, Size
from steelyard.errors import InvalidRecording, SteelyardError, UnreadableFile
from steelyard.fleet._catalogue import Entry, filesystem
from steelyard.fleet._rows import LogRow
from steelyard.identification import DynamicModel, RegressionFactor
from steelyard.identification._covariance import widening
from steelyard.identification._least_squares import solve_weighted
from steelyard.identification._problem import RowMaker, Rows
from steelyard.io import recording_blocks
from steelyard.recording import DEFAULT_CUTOFF_HZ, Preparation, Recording, Samples
from steelyard.recording._columns import Requested
from steelyard.robot import ParameterBasis, RobotModel, load_robot
from steelyard.robot._friction import FrictionLaw
from steelyard.robot._parameters import ParameterTable
from steelyard.workflow._data import Run

_VERSION = 1
_BLOCK_S = 120.0
_OVERLAP_S = 1.0
_TRIMMED_PERIODS = 3.0  # of the cut-off, at both ends: logs begin and end in motion
_MIN_EPOCH_S = 1e8  # larger times count from 1970
_MAX_CACHED_REDUCTIONS = 64
_KEY_DECIMALS = 12
_KEY_DIGITS = 8  # of numbers in a key; saving and loading a robot may change the last digits
_MIN_ROWS_CORRELATION = 50  # of a joint, to estimate the correlation of its residuals


@dataclass(frozen=True, eq=False)
class Reduction(Value, error=InvalidRecording):
    """How logs of an arm become factors; factors of the same reduction can be merged.

    Attributes:
        robot: kinematics, drives and limits
        law: of friction, with fixed shapes
        preparation: how a log becomes samples
        carried: parameters from which the torque that the gears carry is computed, (p,); None
            where friction does not depend on it
    """

    robot: Annotated[RobotModel, Size("n", attrgetter("n"))]
    law: FrictionLaw
    preparation: Preparation
    carried: Annotated[Array | None, Shape("p")] = None

    @classmethod
    def of(
        cls,
        model: str | RobotModel,
        *,
        friction: str | None = None,
        preparation: Preparation | None = None,
    ) -> Reduction:
        """The reduction for an arm.

        Args:
            model: an arm, the name of a bundled one, a .urdf or .toml file, or an identified model
                (.json), whose friction law, shapes and preparation are then used
            friction: name of another law, with its initial shapes
            preparation: instead of that of the model; the cut-off 'auto' becomes 20 Hz, because all
                logs of an arm need the same
        """
        if isinstance(model, str) and Path(model).suffix.lower() == ".json":
            identified = DynamicModel.load(model)
            robot = identified.robot
            law = identified.law
            preparation = preparation or identified.preparation
            carried = identified.estimate.value if law.load and friction is None else None
        else:
            robot = load_robot(model) if isinstance(model, str) else model
            law = replace(robot.drive.law, stribeck=False, load=False, smooth_speed=False)
            carried = None
        if friction is not None:
            law = FrictionLaw.named(friction, robot.n)
        if law.load and carried is None:
            raise InvalidRecording(
                f"friction law '{law.name}' needs the torque that the gears carry: give a model of"
                " the arm that was identified with this law (.json)"
            )
        preparation = _with_one_cutoff(preparation or Preparation())
        return cls(robot, replace(law, fixed=True), preparation, carried)

    @cached_property
    def key(self) -> str:
        """A digest that identifies the reduction."""
        content = {name: _listed(value) for name, value in self.to_arrays().items()}
        return hashlib.sha256(repr((_VERSION, content)).encode()).hexdigest()[:16]

    @cached_property
    def basis(self) -> ParameterBasis:
        """The base parameters."""
        return ParameterBasis.of(self.robot)

    @cached_property
    def parameters(self) -> ParameterTable:
        """The p unknowns."""
        return RowMaker(self.robot, self.basis).parameters(self.law)

    def rows(self, samples: Samples) -> Rows:
        """The rows of samples in its unknowns.

        Args:
            samples: in the order of time
        """
        maker = RowMaker(self.robot, self.basis, max_cached_samples=0)
        return maker.rows(samples, self.law, self.carried)


def _with_one_cutoff(preparation: Preparation) -> Preparation:
    """The preparation with a fixed cut-off, and trimmed by the settling time of its filter."""
    cutoff_hz = preparation.cutoff_hz
    if isinstance(cutoff_hz, str):
        cutoff_hz = DEFAULT_CUTOFF_HZ
    trim_s = preparation.trim_s
    if cutoff_hz is not None:
        trim_s = max(trim_s, _TRIMMED_PERIODS / cutoff_hz)
    return replace(preparation, cutoff_hz=cutoff_hz, trim_s=trim_s)


_cached_reductions: dict[str, Reduction] = {}
"""Reductions that this process has built, by key; a worker uses the same few many times."""


def reduce_log(
    entry: Entry, key: str, content: Mapping[str, Any], known_digest: str = ""
) -> LogRow | None:
    """The row of a log, with a reason where it is unusable; None where its content is unchanged.

    Args:
        entry: the log
        key: of the reduction
        content: of the reduction, as returned by `Reduction.to_dict`
        known_digest: of the content whose row is in the store; empty if there is none
    """
    digest = ""
    try:
        with _local(entry.path) as path:
            digest = _digest(path)
            if digest == known_digest:
                return None
            return replace(_reduced(path, entry, _reduction(key, content)), content=digest)
    except SteelyardError as error:
        reason = str(error).replace(str(Path(entry.path)), entry.file)
    except FileNotFoundError:
        reason = f"there is no file {entry.file}"
    except Exception as error:  # a damaged file may raise anything in a reader: it fails alone
        reason = f"{type(error).__name__}: {error}"
    return replace(failed_row(entry, key, reason), content=digest)


def reduce_logs(
    entries: Sequence[Entry], key: str, content: Mapping[str, Any], known_digests: Sequence[str]
) -> list[LogRow | None]:
    """The row of each log, see `reduce_log`.

    Args:
        entries: the logs
        key: of their reduction
        content: of the reduction, as `Reduction.to_dict` gives it
        known_digests: for each log, digest of the content whose row is in the store
    """
    return [
        reduce_log(entry, key, content, digest)
        for entry, digest in zip(entries, known_digests, strict=True)
    ]


def failed_row(entry: Entry, key: str, reason: str) -> LogRow:
    """The row of a log that could not be reduced.

    Args:
        entry: the log
        key: of the reduction
        reason: a sentence
    """
    return LogRow(
        robot=entry.robot,
        key=entry.key,
        file=entry.file,
        reduction=key,
        start_s=entry.start_s,
        end_s=entry.end_s,
        time=entry.time,
        tool=entry.tool,
        load=entry.load,
        reason=reason,
    )


def _reduction(key: str, content: Mapping[str, Any]) -> Reduction:
    if key not in _cached_reductions:
        if len(_cached_reductions) >= _MAX_CACHED_REDUCTIONS:
            _cached_reductions.clear()
        _cached_reductions[key] = Reduction.from_dict(content)
    return _cached_reductions[key]


@dataclass(frozen=True, eq=False)
class _StretchFigures:
    """Figures of one stretch of a log without holes.

    Attributes:
        duration_s: of its samples
        rate_hz: of its samples
        squares: integral of the squared torques, (n,) [Nm^2 s]
        widening: factor on variances by correlation in time, (n,)
        warnings: of its preparation
    """

    duration_s: float
    rate_hz: float
    squares: Array
    widening: Array
    warnings: Sequence[str]


def _reduced(path: Path, entry: Entry, reduction: Reduction) -> LogRow:
    """The row of a log that can be read."""
    pieces: list[_StretchFigures] = []
    factor = None
    degrees: list[Array] = []
    epoch_s = None
    from_currents = False
    for block, core in _blocks(path, entry, reduction):
        if epoch_s is None:
            epoch_s = block.epoch_s
        if block.temperature is not None:
            degrees.append(np.nanmean(block.temperature, axis=0))
        from_currents = block.tau is None
        for piece, own in _pieces(block, core, entry, reduction):
            pieces.append(piece)
            factor = own if factor is None else factor.merge(own)
    if factor is None:
        raise InvalidRecording("no samples are left between its start and its end")
    lengths = [piece.duration_s for piece in pieces]
    squares = np.zeros(reduction.robot.n)
    for piece in pieces:
        squares += piece.squares
    return replace(
        failed_row(entry, reduction.key, ""),
        ok=True,
        time=_start_time(entry, epoch_s),
        duration_s=float(sum(lengths)),
        rate_hz=pieces[-1].rate_hz,
        temperature=_temperature(entry, degrees),
        warnings=tuple(dict.fromkeys(words for piece in pieces for words in piece.warnings)),
        from_currents=from_currents,
        rows=tuple(factor.rows.tolist()),
        noise=tuple(solve_weighted(factor).noise.tolist()),
        widening=tuple(np.average([p.widening for p in pieces], axis=0, weights=lengths).tolist()),
        torque=tuple(np.sqrt(squares / sum(lengths)).tolist()),
        factor=packed(factor),
    )


def _pieces(
    block: Recording, core: tuple[float, float], entry: Entry, reduction: Reduction
) -> Iterator[tuple[_StretchFigures, RegressionFactor]]:
    """The stretches without holes in the core of a block, with their factors."""
    drive = reduction.robot.drive if block.tau is None else None
    if drive is not None and drive.gain is None:
        raise InvalidRecording(
            f"{entry.file} has motor currents, and {reduction.robot.name} no gains: give a model"
            " that was identified from currents (.json)"
        )
    for run in Run(entry.file, block).pieces(reduction.preparation):
        prepared = run.prepared(reduction.preparation, drive, reduction.robot.limits)
        samples = _within(prepared, core, block)
        if samples is None:
            continue
        rows = reduction.rows(samples)
        empty = RegressionFactor.empty(reduction.robot.n, len(reduction.parameters))
        factor = empty.add(rows.Y, rows.tau, rows.usable)
        piece = _StretchFigures(
            duration_s=len(samples) / samples.rate_hz,
            rate_hz=samples.rate_hz,
            squares=(samples.tau**2).sum(axis=0) / samples.rate_hz,
            widening=_widening(rows, factor),
            warnings=[words for words in (run.cut, *samples.warnings) if words],
        )
        yield piece, factor


def _start_time(entry: Entry, epoch_s: float | None) -> datetime | None:
    """When a log began, by the catalogue or by its own clock where that counts from 1970."""
    if entry.time is None and epoch_s is not None and epoch_s > _MIN_EPOCH_S:
        return datetime.fromtimestamp(epoch_s, UTC)
    return entry.time


def _temperature(entry: Entry, degrees: Sequence[Array]) -> tuple[float, ...]:
    """By the catalogue, or the mean of each drive, [degrees Celsius]; empty where unknown."""
    if entry.temperature is not None:
        return (entry.temperature,)
    if degrees:
        return tuple(np.nanmean(degrees, axis=0).tolist())
    return ()


def _blocks(
    path: Path, entry: Entry, reduction: Reduction
) -> Iterator[tuple[Recording, tuple[float, float]]]:
    """Blocks of a log, each with its core: the part of its clock whose samples it provides, [s]."""
    joints: Sequence[str] = ()
    if path.is_dir() or path.suffix in (".db3", ".mcap"):
        joints = reduction.robot.joint_names
    low = entry.start_s or 0.0
    high = np.inf if entry.end_s is None else entry.end_s
    requested = Requested(joint_names=joints)
    blocks = recording_blocks(path, block_s=_BLOCK_S, overlap_s=_OVERLAP_S, requested=requested)
    first_epoch_s = None
    number = -1.0
    for block in blocks:
        if first_epoch_s is None:
            first_epoch_s = block.epoch_s
        since_s = block.epoch_s - first_epoch_s
        previous = number
        number = np.floor((since_s + _OVERLAP_S + 1e-6) / _BLOCK_S)
        if since_s + block.duration_s <= number * _BLOCK_S + _OVERLAP_S and number - 1 > previous:
            number -= 1  # after a hole in the log: the block holds only the end of its stretch
        start = max(number * _BLOCK_S, low)
        end = min((number + 1) * _BLOCK_S, high)
        if start < end and start <= since_s + block.duration_s:
            yield block, (start - since_s, end - since_s)


def _within(run: Run, core: tuple[float, float], block: Recording) -> Samples | None:
    """The samples of a run that lie in the core of its block; None where too few do."""
    samples = run.ready
    offset = (run.recording.epoch_s if run.recording else block.epoch_s) - block.epoch_s
    t = offset + samples.start_s + np.arange(len(samples)) / samples.rate_hz
    if core[1] <= block.duration_s:
        inside = (t >= core[0] - 1e-9) & (t < core[1] - 1e-9)
    else:
        inside = t >= core[0] - 1e-9
    if inside.all():
        return samples
    if inside.sum() < samples.n + 3:
        return None
    cut = {name: getattr(samples, name)[inside] for name in ("q", "v", "a", "tau")}
    return replace(samples, **cut, usable=samples.mask[inside], start_s=float(t[inside][0]))


def _widening(rows: Rows, factor: RegressionFactor) -> Array:
    """Factor by which the correlation of residuals in time increases variances, (n,)."""
    residual = rows.tau - rows.Y @ solve_weighted(factor).value
    usable = [residual[rows.usable[:, j], j] for j in range(residual.shape[1])]
    return np.array(
        [widening([part]) if len(part) > _MIN_ROWS_CORRELATION else 1.0 for part in usable]
    )


@contextmanager
def _local(address: str) -> Iterator[Path]:
    """A local path of the file at an address; a remote file is copied to a temporary folder."""
    fs, path = filesystem(address)
    if "file" in fs.protocol:
        yield Path(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / Path(path).name
        fs.get_file(path, str(here))
        yield here


def _digest(path: Path) -> str:
    """The digest of a file, or of all files of a folder."""
    if path.exists() and not (path.is_dir() or path.is_file()):
        raise UnreadableFile(f"{path} is a device, not a file: give a recording")
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file() or file == path:
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def packed(factor: RegressionFactor) -> Array:
    """The upper triangles of a factor, one joint after the other, (n (p + 1) (p + 2) / 2,).

    Args:
        factor: of a log
    """
    upper = np.triu_indices(factor.p + 1)
    return np.asarray(factor.R[:, *upper].ravel())


def unpacked(values: Array, rows: Sequence[int]) -> RegressionFactor:
    """The factor of values that `packed` returned.

    Args:
        values: upper triangles, joint after joint
        rows: number of rows of each joint, (n,)
    """
    triangles = np.reshape(values, (len(rows), -1))
    size = int((np.sqrt(8 * triangles.shape[1] + 1) - 1) / 2)
    R = np.zeros((len(rows), size, size))
    R[:, *np.triu_indices(size)] = triangles
    return RegressionFactor(R, np.array(rows, dtype=np.int64))


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _listed(item) for name, item in sorted(value.items())}
    if isinstance(value, np.ndarray):
        return _listed(value.tolist())
    if isinstance(value, list | tuple):
        return [_listed(item) for item in value]
    if isinstance(value, float):
        return f"{round(value, _KEY_DECIMALS) + 0.0:.{_KEY_DIGITS}g}"
    return value
