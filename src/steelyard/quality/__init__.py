"""What is wrong with a recording before anyone fits it: findings, each a sentence with its place.

Nothing is repaired here: bad news is a result. An *error* makes every estimate from the recording wrong
(degrees, a velocity with the wrong sign, joints of another arm); a *warning* makes some rows or joints
useless, or needs care; an *info* is good to know. `signals` resamples, rejects and differentiates later.
"""

from steelyard.quality.check import check_quality
from steelyard.quality.clock import DAMAGED_END
from steelyard.quality.report import Finding, Place, QualityReport, Severity

__all__ = ["DAMAGED_END", "Finding", "Place", "QualityReport", "Severity", "check_quality"]
