"""Payloads and identified arms in the forms of controllers and simulators: one small file for each family."""

from steelyard.io.export.arm import MODEL_EXPORTS, arm_for_export, export_arm
from steelyard.io.export.load import ErrorLimits, Load
from steelyard.io.export.targets import (
    EXPORTS,
    doubts_of,
    export_load,
    export_payload,
    load_for,
    target_named,
)

__all__ = [
    "EXPORTS",
    "MODEL_EXPORTS",
    "ErrorLimits",
    "Load",
    "arm_for_export",
    "doubts_of",
    "export_arm",
    "export_load",
    "export_payload",
    "load_for",
    "target_named",
]
