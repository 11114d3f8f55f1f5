"""Files in and out: the only package that knows foreign names, units and orders."""

from typing import TYPE_CHECKING

from steelyard._lazy import lazy_attributes
from steelyard.io._recordings import read, recording_blocks, write
from steelyard.io._values import load

if TYPE_CHECKING:
    from steelyard.io._arms import ArmExport as ArmExport
    from steelyard.io._arms import arm_for_export as arm_for_export
    from steelyard.io._into import EditedFile as EditedFile
    from steelyard.io._wrist import SensorDescription as SensorDescription

_MODULES = {
    "ArmExport": "_arms",
    "EditedFile": "_into",
    "SensorDescription": "_wrist",
    "arm_for_export": "_arms",
}

__all__ = [
    "ArmExport",
    "EditedFile",
    "SensorDescription",
    "arm_for_export",
    "load",
    "read",
    "recording_blocks",
    "write",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_attributes(__name__, _MODULES)
