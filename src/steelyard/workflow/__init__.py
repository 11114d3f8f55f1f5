"""From files to answers: the functions that Python and the command line share."""

from typing import TYPE_CHECKING

from steelyard._lazy import lazy_attributes

if TYPE_CHECKING:
    from steelyard.workflow._arm import KnownMass as KnownMass
    from steelyard.workflow._arm import identify as identify
    from steelyard.workflow._contacts import collisions as collisions
    from steelyard.workflow._payload import weigh as weigh
    from steelyard.workflow._picks import picks as picks
    from steelyard.workflow._tracking import Replay as Replay
    from steelyard.workflow._tracking import Tracking as Tracking
    from steelyard.workflow._tracking import TrackingOptions as TrackingOptions
    from steelyard.workflow._tracking import WristTrackingOptions as WristTrackingOptions
    from steelyard.workflow._wrist import contact as contact
    from steelyard.workflow._wrist import weigh_wrist as weigh_wrist

_MODULES = {
    "KnownMass": "_arm",
    "Replay": "_tracking",
    "Tracking": "_tracking",
    "TrackingOptions": "_tracking",
    "WristTrackingOptions": "_tracking",
    "collisions": "_contacts",
    "contact": "_wrist",
    "identify": "_arm",
    "picks": "_picks",
    "weigh": "_payload",
    "weigh_wrist": "_wrist",
}

__all__ = sorted(_MODULES)

if not TYPE_CHECKING:  # a type checker sees the imports above
    __getattr__ = lazy_attributes(__name__, _MODULES)
