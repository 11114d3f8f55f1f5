"""Drive gains [Nm/A]: as given, from the controller's targets, or from a known mass."""

from steelyard.identification.gains._drive_gains import DriveGains
from steelyard.identification.gains._known_mass import gains_from_known_mass
from steelyard.identification.gains._scale import scaled_by_targets
from steelyard.identification.gains._targets import gains_from_targets

__all__ = ["DriveGains", "gains_from_known_mass", "gains_from_targets", "scaled_by_targets"]
