"""Files of wrist sensors: descriptions (TOML), recordings without joints, contact forces.

    sensor = SensorDescription.load("sensor.toml")
    recording = sensor.recording("log.csv")

A description states all facts that a table does not contain: columns, sign, frame, order of a
quaternion. Nothing is guessed. See docs/howto/wrist.md for all keys.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array
from steelyard._codec import Value
from steelyard._kinds import INFINITE, POSITIVE, Shape
from steelyard._saved import read_toml, replacing
from steelyard.control._contact_force import ContactForce
from steelyard.errors import InvalidRecording, NoTime, SteelyardError, UnreadableFile
from steelyard.io._recordings import file_kind, read_columns, read_with_joints
from steelyard.recording import AXES, Recording, WrenchConvention, imported
from steelyard.recording._columns import SLICE, Requested
from steelyard.robot import RobotModel
from steelyard.wrist._recording import WrenchFrame, WristRecording, WristSensor

_COLUMN_COUNTS = {
    "t": 1,
    "wrench": 6,
    "quaternion": 4,
    "rotation": 9,
    "position": 3,
    "acceleration": 3,
    "angular_velocity": 3,
    "temperature": 1,
}

_QuaternionOrder = Literal["xyzw", "wxyz"]
_QuaternionOf = Literal["base_from_sensor", "sensor_from_base"]


@dataclass(frozen=True, eq=False)
class _SensorFile(Value, error=UnreadableFile, partial=True):
    """The content of a TOML file about a wrist sensor; docs/howto/wrist.md describes it."""

    name: str | None = None
    convention: WrenchConvention = "load_on_sensor"
    frame: WrenchFrame = "sensor"
    translation: Annotated[Array, Shape(3)] = field(default_factory=lambda: np.zeros(3))
    rotation_rpy_degrees: Annotated[Array, Shape(3)] = field(default_factory=lambda: np.zeros(3))
    yaw: Literal["known", "unknown"] = "known"
    range: Annotated[Array, Shape(6), INFINITE, POSITIVE] = field(
        default_factory=lambda: np.full(6, np.inf)
    )
    noise: Annotated[Array | None, Shape(6), POSITIVE] = None
    motion_noise: Mapping[str, float] = field(default_factory=dict)
    gravity_base: Annotated[Array | None, Shape(3)] = None
    rate_hz: Annotated[float | None, POSITIVE] = None
    postures: bool = False
    columns: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    scale: Mapping[str, float] = field(default_factory=dict)
    quaternion_order: _QuaternionOrder = "xyzw"
    quaternion_of: _QuaternionOf = "base_from_sensor"

    def sensor(self, default_name: str) -> WristSensor:
        """The sensor itself."""
        T_flange_sensor = np.eye(4)
        T_flange_sensor[:3, 3] = self.translation
        turn = Rotation.from_euler("xyz", self.rotation_rpy_degrees, degrees=True)
        T_flange_sensor[:3, :3] = turn.as_matrix()
        return WristSensor(
            self.name or default_name,
            self.convention,
            self.frame,
            T_flange_sensor,
            self.yaw == "known",
            self.range,
            self.noise,
            self.motion_noise,
        )


@dataclass(frozen=True, eq=False)
class SensorDescription:
    """A wrist sensor and the format of its tables.

    Attributes:
        sensor: the sensor itself
        gravity_base: gravity without a tilt, (3,) [m/s^2], in the base frame; None when not given
        columns: names of the columns of each signal
        scale: factors that convert the numbers of signals to SI units
        rate_hz: rows per second where a table has no time, [Hz]
        postures: whether each row is a posture at rest
        quaternion_order: 'xyzw' or 'wxyz'
        quaternion_of: 'base_from_sensor' (R_base_sensor) or 'sensor_from_base' (its inverse)
        stated: keys in its file, which recordings must not contradict
        tables: statements about tables with joints
    """

    sensor: WristSensor = field(default_factory=WristSensor)
    gravity_base: Array | None = None
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    scale: Mapping[str, float] = field(default_factory=dict)
    rate_hz: float | None = None
    postures: bool = False
    quaternion_order: _QuaternionOrder = "xyzw"
    quaternion_of: _QuaternionOf = "base_from_sensor"
    stated: Collection[str] = ()
    tables: Requested = field(default_factory=Requested)

    @property
    def pose_stated(self) -> bool:
        """Whether the pose of the sensor on the flange was given, not assumed."""
        given = {"translation", "rotation_rpy_degrees"} & {*self.stated}
        return bool(given) or not np.array_equal(self.sensor.T_flange_sensor, np.eye(4))

    @classmethod
    def load(cls, path: str | Path) -> SensorDescription:
        """The description of a wrist sensor in a TOML file."""
        path = Path(path)
        content = _toml(path)
        try:
            found = _SensorFile.from_dict(content)
            sensor = found.sensor(path.stem)
            columns = _checked_columns(found.columns)
        except SteelyardError as error:
            raise UnreadableFile(f"{path}: {error}") from error
        return cls(
            sensor,
            found.gravity_base,
            columns,
            found.scale,
            found.rate_hz,
            found.postures,
            found.quaternion_order,
            found.quaternion_of,
            tuple(content),
        )

    def recording(self, path: str | Path) -> WristRecording:
        """The recording of a wrist sensor in a table without joints (text, NPZ, Parquet, Arrow)."""
        path = Path(path)
        if self.tables.joint_names:
            raise InvalidRecording(
                f"{path}: `joint_names` are for recordings with joints: give the arm as `robot`, or"
                " leave them out"
            )
        if "wrench" not in self.columns:
            raise UnreadableFile(
                f"{path}: the sensor's description does not say which columns are the wrench;"
                " give [columns] wrench = [...] in its TOML file, or a `robot` for a recording with"
                " joints"
            )
        listed = [column for names in self.columns.values() for column in names]
        wanted = {*listed, *(_split_slice(column)[0] for column in listed)}
        table, notes = read_columns(path, wanted, self.tables.names)
        arrays, left_out = _complete_rows(
            {
                name: _gathered(table, names, name, path) * self.scale.get(name, 1.0)
                for name, names in self.columns.items()
            },
            path,
        )
        notes = (*notes, *left_out)
        N = len(arrays["wrench"])
        motion: dict[str, Array] = {
            name: arrays[name]
            for name in ("position", "acceleration", "angular_velocity")
            if name in arrays
        }
        if "temperature" in arrays:
            motion["temperature"] = arrays["temperature"][:, 0]
        made = WristRecording.of_measured(
            arrays["t"][:, 0] if "t" in arrays else np.arange(N) / (self.rate_hz or 1.0),
            arrays["wrench"],
            self._orientation(arrays, path),
            sensor=self._sensor_as_told(path),
            motion=motion,
            timed=not self.postures and ("t" in arrays or self.rate_hz is not None),
            source=path.name,
        )
        if notes:
            return replace(made, notes=(*made.notes, *notes))
        return made

    def _sensor_as_told(self, path: Path) -> WristSensor:
        """The sensor with the convention that the caller states about tables."""
        convention = self.tables.wrench_convention
        if convention in (None, self.sensor.convention):
            return self.sensor
        if "convention" in self.stated:
            raise InvalidRecording(
                f"{path}: the convention is stated as '{convention}', the description of the sensor"
                f" says '{self.sensor.convention}': correct one"
            )
        return replace(self.sensor, convention=convention)

    def of_joints(self, source: str | Path | Recording, robot: RobotModel) -> WristRecording:
        """The wrench of an arm's recording, with the sensor's pose from its joints.

        A table without time holds postures at rest, unless the description states its `rate_hz`.

        Args:
            source: a file or a recording
            robot: the arm
        """
        timed = not self.postures
        try:
            if isinstance(source, Recording):
                recording = source
            else:
                recording = self.joints(source, robot)
        except NoTime:
            timed = False
            counted = replace(self.tables, rate_hz=1.0)
            recording = replace(self, tables=counted).joints(str(source), robot)
        return WristRecording.of_joints(recording, robot, self.agreeing(recording), timed=timed)

    def joints(self, path: str | Path, robot: RobotModel) -> Recording:
        """The recording of an arm with its wrench; missing facts are as described here.

        Args:
            path: of the file
            robot: the arm, whose joints are read from a bag, in its order
        """
        bag = file_kind(Path(path)) == "bag"
        requested = self.tables
        sensor = self.sensor
        if bag:
            named = {}
        else:
            named = {name: self.columns[name] for name in ("t", "wrench") if name in self.columns}
        if self.stated or sensor.convention != "load_on_sensor":
            convention = sensor.convention
        else:
            convention = None
        if "frame" in self.stated or sensor.frame == "base" or not bag:
            frame = sensor.frame
        else:
            frame = None
        assumed = Requested(named, (), frame, convention, rate_hz=self.rate_hz)
        found = read_with_joints(path, replace(requested, assumed=assumed), robot.joint_names)
        if found.wrench is None:
            raise InvalidRecording(
                f"{path} has no wrench; check that a wrist sensor was connected and logged"
            )
        return found

    def agreeing(self, recording: Recording) -> WristSensor:
        """The sensor with the convention and frame of a recording, which must not contradict it."""
        own: dict[str, Any] = {"convention": recording.wrench_convention or self.sensor.convention}
        if recording.wrench_frame in get_args(WrenchFrame):
            own["frame"] = recording.wrench_frame
        for name, value in own.items():
            stated = getattr(self.sensor, name)
            if name in self.stated and value != stated:
                raise InvalidRecording(
                    f"{recording.source or 'the recording'} says that the {name} of its wrench is"
                    f" '{value}', the description of the sensor says '{stated}': correct one"
                )
        return replace(self.sensor, **own)

    def _orientation(self, arrays: Mapping[str, Array], path: Path) -> Array | None:
        if "rotation" in arrays:
            R = arrays["rotation"].reshape(-1, 3, 3)
        elif "quaternion" in arrays:
            q = arrays["quaternion"]
            if self.quaternion_order != "xyzw":
                q = q[:, [1, 2, 3, 0]]
            norm = np.linalg.norm(q, axis=1)
            if (np.abs(norm - 1) > 0.05).any():
                row = int(np.abs(norm - 1).argmax())
                raise UnreadableFile(
                    f"{path}: the quaternion in row {row + 1} has length {norm[row]:.3g}, not 1"
                )
            R = Rotation.from_quat(q).as_matrix()
        else:
            return None
        if self.quaternion_of == "base_from_sensor":
            return R
        return np.asarray(R.transpose(0, 2, 1))


def write_contact_force(contact: ContactForce, path: str | Path) -> None:
    """Writes an external wrench over time as Parquet: t, external, std, raw, load, drift."""
    pq = imported("pyarrow.parquet")
    import pyarrow as pa

    columns = {"t": contact.t}
    for kind in ("external", "std", "raw", "load", "drift"):
        columns |= {f"{kind}_{axis}": getattr(contact, kind)[:, i] for i, axis in enumerate(AXES)}
    facts = {"frame": contact.frame, "status": contact.verdict.sentence, "units": "s, N, Nm"}
    table = pa.table(columns).replace_schema_metadata(facts)
    with replacing(Path(path)) as part:
        pq.write_table(table, part)


def _toml(path: Path) -> dict[str, Any]:
    if path.suffix.lower() in (".yaml", ".yml"):
        raise UnreadableFile(
            f"{path}: a sensor is described in TOML; see docs/explanation/wrist.md for an example"
        )
    return read_toml(path)


def _checked_columns(columns: Mapping[str, str | Sequence[str]]) -> dict[str, list[str]]:
    checked = {}
    for name, names in columns.items():
        if name not in _COLUMN_COUNTS:
            raise UnreadableFile(f"no signal '{name}'; known are {', '.join(_COLUMN_COUNTS)}")
        if isinstance(names, str):
            listed = [names]
        else:
            listed = list(names)
        if len(listed) not in (1, _COLUMN_COUNTS[name]):
            raise UnreadableFile(
                f"{name} has {_COLUMN_COUNTS[name]} columns (or one array with them), got"
                f" {len(listed)}"
            )
        checked[name] = listed
    return checked


def _gathered(table: Mapping[str, Array], names: Sequence[str], signal: str, path: Path) -> Array:
    parts = {name: table.get(name) for name in names}
    for name in names:
        word, *ends = _split_slice(name)
        if parts[name] is None and ends and np.ndim(table.get(word, 0.0)) > 1:
            parts[name] = table[word][:, slice(*ends)]
    missing = [name for name, part in parts.items() if part is None]
    if missing:
        raise UnreadableFile(f"{path}: no column {', '.join(missing)}; it has {', '.join(table)}")
    found = {name: part for name, part in parts.items() if part is not None}
    for name, part in found.items():
        if part.ndim > 2:
            raise UnreadableFile(
                f"{path}: '{name}' has the shape {part.shape}; a signal has one row for each"
                " instant, (N,) or (N, k)"
            )
    array = np.column_stack(list(found.values()))
    if array.shape[1] != _COLUMN_COUNTS[signal]:
        raise UnreadableFile(
            f"{path}: {signal} needs {_COLUMN_COUNTS[signal]} columns, got {array.shape[1]}"
        )
    return array


def _complete_rows(
    arrays: Mapping[str, Array], path: Path
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """The rows in which all numbers are finite, and a note about the others."""
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) > 1:
        raise UnreadableFile(
            f"{path}: its signals have {' and '.join(map(str, sorted(lengths)))} rows; they must"
            " have as many"
        )
    needed = [array for name, array in arrays.items() if name != "temperature"]
    complete = np.all([np.isfinite(array).all(axis=1) for array in needed], axis=0)
    missing = int(np.sum(~complete))
    if missing == len(complete):
        raise UnreadableFile(f"{path}: no row has a number in every named column")
    kept = {name: array[complete] for name, array in arrays.items()}
    if not missing:
        return kept, ()
    return kept, (f"left out {missing} rows with NaN",)


def _split_slice(name: str) -> tuple[Any, ...]:
    """Word, start and stop of a name such as pose[3:7]; the name alone for other names."""
    found = SLICE.fullmatch(name)
    if found:
        return (found["word"], int(found["start"]), int(found["stop"]))
    return (name,)
