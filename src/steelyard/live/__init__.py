"""Sources of samples for the online estimators; the room that knows clocks."""

from steelyard.live.causal import CausalPath, RawRow
from steelyard.live.replay import paced, path_of, replay

__all__ = ["CausalPath", "RawRow", "paced", "path_of", "replay"]
