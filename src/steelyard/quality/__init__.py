"""Faults of a recording, found before it is fitted: findings with a sentence and a place each.

Nothing is repaired here. An *error* makes every estimate from the recording wrong (degrees, a
velocity with the wrong sign, joints of another arm); a *warning* makes some rows or joints useless,
or needs care; an *info* describes the recording. `steelyard.signals` resamples, rejects and
differentiates later. `check` is for an arm's recording, `check_signals` and `check_jumps` are for
any table.
"""

from steelyard.quality._check import check
from steelyard.quality._table import (
    Finding,
    Place,
    QualityReport,
    Severity,
    check_jumps,
    check_signals,
)

__all__ = [
    "Finding",
    "Place",
    "QualityReport",
    "Severity",
    "check",
    "check_jumps",
    "check_signals",
]
