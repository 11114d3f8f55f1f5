"""A recording of a wrist sensor: wrench and orientation, with or without a robot.

At the door the wrench is brought into one frame and one convention: the sensor frame, and what the load does
to the sensor. How it came is kept in `notes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard.arrays import Array, Mask
from steelyard.errors import InvalidRecording
from steelyard.recording import Recording
from steelyard.robot import RobotModel
from steelyard.wrist.sensor import WristSensor

_MOTION = ("position", "acceleration", "angular_velocity", "angular_acceleration")


@dataclass(frozen=True, eq=False)
class WrenchRecording:
    """Wrench and pose of a wrist sensor as they were measured, on one clock that starts at 0.

    Attributes:
        t: time since the first row, (N,) [s]
        wrench: what the load does to the sensor, (N, 6) [N, Nm], in the sensor frame
        R_base_sensor: orientation of the sensor, (N, 3, 3)
        sensor: what is known about the sensor
        position: of the sensor's origin, (N, 3) [m], in the base frame
        acceleration: of the sensor's origin, gravity not included, (N, 3) [m/s^2], in the sensor frame
        angular_velocity: (N, 3) [rad/s], in the sensor frame
        angular_acceleration: (N, 3) [rad/s^2], in the sensor frame
        temperature: of the sensor, (N,) [K or degrees Celsius]
        timed: whether the rows follow each other in time; False for a table of postures
        source: where it comes from, in words
        notes: what happened to it on the way here, a sentence each
    """

    t: Array
    wrench: Array
    R_base_sensor: Array
    sensor: WristSensor
    position: Array | None = None
    acceleration: Array | None = None
    angular_velocity: Array | None = None
    angular_acceleration: Array | None = None
    temperature: Array | None = None
    timed: bool = True
    source: str = ""
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        t = np.array(self.t, dtype=float)
        if t.ndim != 1 or t.size == 0 or not np.isfinite(t).all() or (np.diff(t) < 0).any():
            raise InvalidRecording("t must be a column of finite times that do not go back")
        self._freeze("t", t - t[0], (len(t),))
        self._freeze("wrench", self.wrench, (len(t), 6))
        self._freeze("R_base_sensor", self.R_base_sensor, (len(t), 3, 3))
        for name in _MOTION:
            if getattr(self, name) is not None:
                self._freeze(name, getattr(self, name), (len(t), 3))
        if self.temperature is not None:
            self._freeze("temperature", self.temperature, (len(t),))
        R = self.R_base_sensor
        off = np.abs(R @ R.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
        wrong = np.flatnonzero((off > 1e-3) | (np.linalg.det(R) < 0))
        if wrong.size:
            raise InvalidRecording(f"R_base_sensor is no rotation in row {wrong[0] + 1}:\n{R[wrong[0]]}")
        object.__setattr__(self, "notes", tuple(self.notes))

    def _freeze(self, name: str, values: Array, shape: tuple[int, ...]) -> None:
        array = np.array(values, dtype=float)
        if array.shape != shape:
            raise InvalidRecording(f"{name} must have shape {shape}, got {array.shape}")
        if not np.isfinite(array).all():
            row = int(np.argwhere(~np.isfinite(array))[0][0])
            raise InvalidRecording(f"{name} is not finite in row {row + 1}; leave such rows out")
        array.setflags(write=False)
        object.__setattr__(self, name, array)

    @classmethod
    def of_measured(
        cls,
        t: Array,
        wrench: Array,
        R_base_sensor: Array | None,
        *,
        sensor: WristSensor,
        motion: dict[str, Array] | None = None,
        timed: bool = True,
        source: str = "",
    ) -> WrenchRecording:
        """The recording of a wrench in the sensor's own convention and frame, both turned to ours.

        Args:
            t: time, (N,) [s]
            wrench: as the sensor gives it, (N, 6) [N, Nm]
            R_base_sensor: orientation of the sensor, (N, 3, 3)
            sensor: its convention and frame
            motion: what else is measured, by attribute: position, acceleration, ..., temperature
            timed: whether the rows follow each other in time
            source: where it comes from, in words
        """
        if R_base_sensor is None:
            raise InvalidRecording(
                "the orientation of the sensor is missing: gravity cannot be told from drift without it;"
                " name its columns, or give a robot and joint positions"
            )
        notes = []
        w, R = np.array(wrench, dtype=float), np.asarray(R_base_sensor, dtype=float)
        if w.ndim != 2 or w.shape[1] != 6 or R.shape != (len(w), 3, 3):
            raise InvalidRecording(
                f"wrench must be (N, 6) and R_base_sensor (N, 3, 3), got {w.shape} and {R.shape}"
            )
        if sensor.frame == "base":
            w = np.einsum("nji,ncj->nci", R, w.reshape(-1, 2, 3)).reshape(-1, 6)
            notes.append("the wrench was in the base frame; rotated back into the sensor frame")
        sensor.require_in_reach(w)
        if sensor.convention == "sensor_on_load":
            w = -w
            notes.append("the wrench was what the sensor does to the load; its sign was turned")
        return cls(t, w, R, sensor, **(motion or {}), timed=timed, source=source, notes=notes)

    @classmethod
    def of_joints(
        cls, recording: Recording, robot: RobotModel, sensor: WristSensor | None = None
    ) -> WrenchRecording:
        """The wrench of an arm's recording with the sensor's pose from its joints.

        Args:
            recording: with a wrench; its own convention counts
            robot: the arm
            sensor: where it sits; at the flange by default
        """
        if recording.wrench is None or recording.wrench_convention is None:
            raise InvalidRecording("the recording has no wrench; is a wrist sensor connected and logged?")
        if recording.n != robot.n:
            raise InvalidRecording(f"{robot.name} has {robot.n} joints, the recording {recording.n}")
        sensor = sensor or WristSensor()
        whole = np.isfinite(np.hstack([recording.q, recording.wrench])).all(axis=1)
        if not whole.any():
            raise InvalidRecording("no row has both joint positions and a wrench")
        T = robot.forward_kinematics(recording.q[whole]) @ sensor.T_flange_sensor
        made = cls.of_measured(
            recording.t[whole],
            recording.wrench[whole],
            T[:, :3, :3],
            sensor=replace(sensor, convention=recording.wrench_convention),
            motion={"position": T[:, :3, 3]},
            source=recording.source,
        )
        left = f"left out {np.sum(~whole)} rows with NaN"
        return made if whole.all() else replace(made, notes=(*made.notes, left))

    def __len__(self) -> int:
        return len(self.t)

    @property
    def rate_hz(self) -> float:
        """Rows for each second, from the median step, [Hz]; 0 where time stands."""
        steps = np.diff(self.t)
        moving = steps[steps > 0]
        return float(1.0 / np.median(moving)) if moving.size else 0.0

    def rows(self, which: slice | Mask, note: str = "") -> WrenchRecording:
        """Some of the rows; their clock starts at 0 again.

        Args:
            which: a slice or a mask of the rows, (N,)
            note: a sentence to add to the notes
        """
        if np.size(self.t[which]) == 0:
            raise InvalidRecording("no rows are left")
        names = [
            "t",
            "wrench",
            "R_base_sensor",
            *(n for n in (*_MOTION, "temperature") if getattr(self, n) is not None),
        ]
        cut = {name: getattr(self, name)[which] for name in names}
        return replace(self, **cut, notes=(*self.notes, note) if note else self.notes)

    def turned(self, yaw: float) -> WrenchRecording:
        """The same readings of a sensor that is turned about the flange's z axis by an angle more.

        Args:
            yaw: [rad]
        """
        T = self.sensor.T_flange_sensor
        turn = np.eye(4)
        turn[:3, :3] = Rotation.from_euler("z", yaw).as_matrix()
        change = T[:3, :3].T @ turn[:3, :3] @ T[:3, :3]
        sensor = replace(self.sensor, T_flange_sensor=turn @ T, yaw_known=True)
        note = f"the sensor is turned about the flange axis by {np.degrees(yaw):.2f} degrees"
        moved = {
            name: getattr(self, name) @ change for name in _MOTION[1:] if getattr(self, name) is not None
        }
        return replace(
            self, R_base_sensor=self.R_base_sensor @ change, sensor=sensor, notes=(*self.notes, note), **moved
        )
