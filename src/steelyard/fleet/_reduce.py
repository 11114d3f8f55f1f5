"""One log becomes one row: its triangular factor, and what is to know beside it.

The friction law of an arm has fixed shapes here, so that all of a log is linear in unknowns that
every log of the arm shares: base parameters of links and rotors, friction and offset. Then a log of
any length leaves one factor [Y tau] = Q R for each joint, some tens of kilobytes, and factors merge
exactly: that of two logs is the factor of [R_1; R_2]. A long log is read in blocks, so memory does
not grow with it.

Beside the factor a row keeps the noise of the log's own fit, and by how much the correlation of its
residuals in time widens what slow columns show (`widening`): a factor alone would take noise for
white.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidRecording, SteelyardError
from steelyard.fleet._catalogue import Entry, filesystem
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
_SETTLED = 3.0  # over the cut-off: logs begin and end in motion, where a filter sees too little
_RECENT_S = 1e8  # a clock that shows more counts from 1970
_MOST_MADE = 64


@dataclass(frozen=True, eq=False)
class Reduction:
    """How logs of an arm become factors; logs whose factors merge have the same.

    Attributes:
        robot: kinematics, drives and limits
        law: of friction, with fixed shapes
        preparation: how a log becomes samples
        carried: parameters that say what torque the gears carry, (p,); None where friction needs
            none
    """

    robot: RobotModel
    law: FrictionLaw
    preparation: Preparation
    carried: Array | None = None

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
            model: an arm, a bundled one, a .urdf or .toml file, or a model that `steelyard
                identify` wrote (.json), whose friction law, shapes and preparation are then taken
            friction: name of another law, with the shapes that it starts from
            preparation: another one; all logs of an arm have one cut-off, 20 Hz where it is 'auto'
        """
        how = preparation or Preparation()
        carried = None
        if isinstance(model, str) and Path(model).suffix.lower() == ".json":
            known = DynamicModel.load(model)
            robot = known.robot
            law = known.law
            how = preparation or known.preparation or how
            if law.load and friction is None:
                carried = known.estimate.value
            else:
                carried = None
        else:
            if isinstance(model, str):
                robot = load_robot(model)
            else:
                robot = model
            law = replace(robot.drive.law, stribeck=False, load=False, smooth_speed=False)
        if friction is not None:
            law = FrictionLaw.named(friction, robot.n)
        if law.load and carried is None:
            raise InvalidRecording(
                f"friction law '{law.name}' needs the torque that gears carry: give a model of the"
                " arm that"
                " steelyard identify found with it"
            )
        cutoff_hz = DEFAULT_CUTOFF_HZ if isinstance(how.cutoff_hz, str) else how.cutoff_hz
        if cutoff_hz is None:
            settled_s = 0.0
        else:
            settled_s = _SETTLED / cutoff_hz
        how = replace(how, cutoff_hz=cutoff_hz, trim_s=max(how.trim_s, settled_s))
        return cls(robot, replace(law, fixed=True), how, carried)

    @cached_property
    def key(self) -> str:
        """What tells it from all other reductions."""
        content = {name: _listed(value) for name, value in self.to_dict().items()}
        return hashlib.sha256(repr((_VERSION, content)).encode()).hexdigest()[:16]

    @cached_property
    def basis(self) -> ParameterBasis:
        """The base parameters."""
        return ParameterBasis.of(self.robot)

    @cached_property
    def parameters(self) -> ParameterTable:
        """The p unknowns."""
        return RowMaker(self.robot, self.basis).parameters(self.law)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as texts, numbers and arrays."""
        return {
            "robot": self.robot.to_dict(),
            "law": self.law.to_dict(),
            "preparation": self.preparation.to_dict(),
            "carried": self.carried,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Reduction:
        """The reduction that `to_dict` has written.

        Args:
            content: what it wrote
        """
        carried = content["carried"]
        return cls(
            RobotModel.from_dict(content["robot"]),
            FrictionLaw.from_dict(content["law"]),
            Preparation.from_dict(content["preparation"]),
            None if carried is None else np.array(carried, dtype=float),
        )

    def rows(self, samples: Samples) -> Rows:
        """The rows of samples in its unknowns.

        Args:
            samples: in the order of time
        """
        maker = RowMaker(self.robot, self.basis, most_kept_samples=0)
        return maker.rows(samples, self.law, self.carried)


_made: dict[str, Reduction] = {}
"""Reductions that this process has made; a worker meets few, again and again."""


def reduce_log(
    entry: Entry, key: str, content: Mapping[str, Any], known: str = ""
) -> dict[str, Any] | None:
    """The row of a log; one with a reason where the log is of no use; None where its content is known.

    Args:
        entry: the log
        key: of the reduction
        content: of the reduction, as `Reduction.to_dict` gives it
        known: digest of the content that the store has a row of
    """
    row = _blank(entry, key)
    try:
        with _local(entry.path) as path:
            row["content"] = _digest(path)
            if row["content"] == known:
                return None
            if key not in _made:
                if len(_made) >= _MOST_MADE:
                    _made.clear()
                _made[key] = Reduction.from_dict(content)
            row |= _reduced(path, entry, _made[key])
    except SteelyardError as error:
        row["reason"] = str(error).replace(str(Path(entry.path)), entry.file)
    except FileNotFoundError:
        row["reason"] = f"there is no file {entry.file}"
    except (
        Exception
    ) as error:  # whatever a foreign file does to a reader: it fails alone, with its reason
        row["reason"] = f"{type(error).__name__}: {error}"
    return row


def reduce_logs(
    entries: Sequence[Entry], key: str, content: Mapping[str, Any], known: Sequence[str]
) -> list[dict[str, Any] | None]:
    """The row of each of some logs, see `reduce_log`.

    Args:
        entries: the logs
        key: of their reduction
        content: of the reduction, as `Reduction.to_dict` gives it
        known: for each log, the digest of the content that the store has a row of
    """
    return [
        reduce_log(entry, key, content, digest)
        for entry, digest in zip(entries, known, strict=True)
    ]


def failed_row(entry: Entry, key: str, reason: str) -> dict[str, Any]:
    """The row of a log that no worker could reduce.

    Args:
        entry: the log
        key: of the reduction
        reason: in words
    """
    return _blank(entry, key) | {"reason": reason}


def _blank(entry: Entry, key: str) -> dict[str, Any]:
    facts = {
        name: value
        for name, value in asdict(entry).items()
        if name not in ("model", "path", "temperature")
    }
    return {**facts, "key": entry.key, "reduction": key, "ok": False, "reason": "", "content": ""}


def _reduced(path: Path, entry: Entry, how: Reduction) -> dict[str, Any]:
    """What is learned from a log."""
    factor = RegressionFactor.empty(how.robot.n, len(how.parameters))
    lengths: list[float] = []
    warnings: list[str] = []
    degrees: list[Array] = []
    rate_hz = 0.0
    epoch_s = None
    squares = np.zeros(how.robot.n)
    widths = []
    currents = False
    for block, core in _blocks(path, entry, how):
        if epoch_s is None:
            epoch_s = block.epoch_s
        if block.temperature is not None:
            degrees.append(np.nanmean(block.temperature, axis=0))
        if block.tau is not None:
            drive = None
        else:
            drive = how.robot.drive
        currents = drive is not None
        if drive is not None and drive.gain is None:
            raise InvalidRecording(
                f"{entry.file} has motor currents, and {how.robot.name} no gains: give a model"
                " that steelyard"
                " identify made of currents (.json) as its model"
            )
        for run in Run(entry.file, block).pieces(how.preparation):
            samples = _within(run.prepared(how.preparation, drive, how.robot.limits), core, block)
            if samples is None:
                continue
            rows = how.rows(samples)
            own = RegressionFactor.empty(how.robot.n, factor.p).add(rows.Y, rows.tau, rows.usable)
            if lengths:
                factor = factor.merge(own)
            else:
                factor = own
            lengths.append(len(samples) / samples.rate_hz)
            rate_hz = samples.rate_hz
            squares += (samples.tau**2).sum(axis=0) / samples.rate_hz
            warnings += [words for words in (run.cut, *samples.warnings) if words]
            widths.append(_widening(rows, own))
    if not lengths:
        raise InvalidRecording("nothing of it is left between its start and its end")
    if entry.temperature is None:
        temperature = []
    else:
        temperature = [entry.temperature]
    if not temperature and degrees:
        temperature = np.nanmean(degrees, axis=0).tolist()
    started = entry.time
    if started is None and epoch_s is not None and epoch_s > _RECENT_S:
        started = datetime.fromtimestamp(epoch_s, UTC)
    return {
        "ok": True,
        "time": started,
        "duration_s": float(sum(lengths)),
        "rate_hz": rate_hz,
        "temperature": temperature,
        "warnings": list(dict.fromkeys(warnings)),
        "from_currents": currents,
        "rows": factor.rows.tolist(),
        "noise": solve_weighted(factor).noise.tolist(),
        "widening": np.average(widths, axis=0, weights=lengths).tolist(),
        "torque": np.sqrt(squares / sum(lengths)).tolist(),
        "factor": packed(factor),
    }


def _blocks(
    path: Path, entry: Entry, how: Reduction
) -> Iterator[tuple[Recording, tuple[float, float]]]:
    """Blocks of a log, each with the part of its clock that it answers for, [s]."""
    if path.is_dir() or path.suffix in (".db3", ".mcap"):
        joints = how.robot.joint_names
    else:
        joints = ()
    first = None
    k = -1.0
    low = entry.start_s or 0.0
    if entry.end_s is None:
        high = np.inf
    else:
        high = entry.end_s
    requested = Requested(joint_names=joints)
    for block in recording_blocks(
        path, block_s=_BLOCK_S, overlap_s=_OVERLAP_S, requested=requested
    ):
        if first is None:
            first = block.epoch_s
        since = block.epoch_s - first  # of its first row
        before = k
        k = np.floor((since + _OVERLAP_S + 1e-6) / _BLOCK_S)
        if since + block.duration_s <= k * _BLOCK_S + _OVERLAP_S and k - 1 > before:
            k -= 1  # after a hole, of which only the end is its own
        start = max(k * _BLOCK_S, low)
        end = min((k + 1) * _BLOCK_S, high)
        if start < end and start <= since + block.duration_s:
            yield block, (start - since, end - since)


def _within(run: Run, core: tuple[float, float], block: Recording) -> Samples | None:
    """The samples of a run that lie in the core of its block; None where there are too few to fit."""
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
    """By how much the correlation of residuals in time widens variances, joint by joint, (n,)."""
    residual = rows.tau - rows.Y @ solve_weighted(factor).value
    usable = [residual[rows.usable[:, j], j] for j in range(residual.shape[1])]
    return np.array([widening([part]) if len(part) > 50 else 1.0 for part in usable])


@contextmanager
def _local(address: str) -> Iterator[Path]:
    """The file of an address on this machine, fetched where it is elsewhere."""
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
    """The factor that `packed` wrote down.

    Args:
        values: of its triangles
        rows: how many each joint has seen, (n,)
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
        return value.tolist()
    return value
