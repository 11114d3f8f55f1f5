"""What is wrong with a recording before anyone fits it: findings, one sentence each, with its place.

Nothing is repaired here: bad news is a result. An *error* makes every estimate from the recording
wrong (degrees, a velocity with the wrong sign, joints of another arm); a *warning* makes some rows
or joints useless, or needs care; an *info* is good to know. `signals` resamples, rejects and
differentiates later. `check` is for an arm's recording; `check_signals` and `check_jumps`
for any table.
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
