"""What is known about a wrist sensor before it measures: where it sits, its signs, how far it reaches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import InvalidRecording
from steelyard.inertia import checked_transform
from steelyard.recording import WrenchConvention

WrenchFrame = Literal["sensor", "base"]

_AXES = ("fx", "fy", "fz", "tx", "ty", "tz")
_ALMOST = 0.999  # of the range: a reading there is not a measurement
_FEWEST_FLAT = 20  # rows at one extreme value, the other axes moving: a sensor that has hit its end


@dataclass(frozen=True, eq=False)
class WristSensor:
    """A force/torque sensor at the wrist.

    Attributes:
        name: of the sensor
        convention: what the load does to the sensor, or the reverse
        frame: 'sensor', or 'base' where the driver has rotated the wrench already
        T_flange_sensor: the sensor in the flange frame, (4, 4)
        yaw_known: False when the sensor may be turned about the flange's z axis by an unknown angle
        reach: largest wrench of each axis, (6,) [N, Nm]; infinite where unknown
        noise: standard deviation of a reading, (6,) [N, Nm]; None to estimate it from the readings
    """

    name: str = "sensor"
    convention: WrenchConvention = "load_on_sensor"
    frame: WrenchFrame = "sensor"
    T_flange_sensor: Array = field(default_factory=lambda: np.eye(4))
    yaw_known: bool = True
    reach: Array = field(default_factory=lambda: np.full(6, np.inf))
    noise: Array | None = None

    def __post_init__(self) -> None:
        if self.convention not in get_args(WrenchConvention):
            raise InvalidRecording(
                f"convention must be {' or '.join(map(repr, get_args(WrenchConvention)))},"
                f" got '{self.convention}'"
            )
        if self.frame not in get_args(WrenchFrame):
            raise InvalidRecording(f"a wrench is in frame 'sensor' or 'base', got '{self.frame}'")
        if self.frame == "base" and not self.yaw_known:
            raise InvalidRecording(
                "a wrench that was rotated into the base frame has its sensor's rotation in it;"
                " it cannot be unknown"
            )
        self._freeze("T_flange_sensor", checked_transform(self.T_flange_sensor))
        self._freeze("reach", _six(self.reach, "reach"))
        if self.noise is not None:
            self._freeze("noise", _six(self.noise, "noise"))

    def _freeze(self, name: str, array: Array) -> None:
        array.setflags(write=False)
        object.__setattr__(self, name, array)

    def require_in_reach(self, wrench: Array) -> None:
        """Refuses readings at the end of the sensor's range.

        Args:
            wrench: as measured, in the sensor frame, (N, 6) [N, Nm]
        """
        over = np.abs(wrench) >= _ALMOST * self.reach
        if over.any():
            axis = int(over.sum(axis=0).argmax())
            rows = np.flatnonzero(over[:, axis])
            raise InvalidRecording(
                f"the sensor is saturated: {_AXES[axis]} reaches its range of {self.reach[axis]:g} in"
                f" {len(rows)} of {len(wrench)} rows, first in row {rows[0] + 1};"
                " take a sensor with a larger range, or move more gently"
            )
        axis, count = _flattest(wrench)
        if count >= _FEWEST_FLAT:
            raise InvalidRecording(
                f"the sensor looks saturated: {_AXES[axis]} stays exactly at its extreme value"
                f" {wrench[np.abs(wrench[:, axis]).argmax(), axis]:g} for {count} rows in a row while the"
                " other axes move; take a sensor with a larger range, or move more gently"
            )


def _flattest(wrench: Array) -> tuple[int, int]:
    """The axis with the longest run of rows at its extreme while all other axes move, and how long."""
    best = (0, 0)
    moving = np.diff(wrench, axis=0) != 0
    for axis in range(6):
        extreme = np.abs(wrench[:, axis]).max()
        others = moving[:, np.arange(6) != axis].all(axis=1)
        held = (np.abs(wrench[:, axis]) == extreme)[1:] & ~moving[:, axis] & others
        edges = np.flatnonzero(np.diff(np.concatenate([[0], held.astype(int), [0]])))
        longest = int((edges[1::2] - edges[::2]).max(initial=0))
        if longest > best[1]:
            best = (axis, longest)
    return best


def _six(values: object, name: str) -> Array:
    array = np.array(values, dtype=float)
    if array.shape != (6,) or np.isnan(array).any() or (array <= 0).any():
        raise InvalidRecording(f"{name} of a wrist sensor is six positive numbers [N, Nm], got {array}")
    return array
