"""From files to answers: the functions that Python and the command line share."""

from typing import TYPE_CHECKING

from steelyard._lazy import lazy_attributes

if TYPE_CHECKING:
    from steelyard.workflow._arm import KnownMass as KnownMass
    from steelyard.workflow._arm import identify as identify
    from steelyard.workflow._contacts import collisions as collisions
    from steelyard.workflow._payload import weigh as weigh
    from steelyard.workflow._stream import weigh_online as weigh_online
    from steelyard.workflow._wrist import contact as contact
    from steelyard.workflow._wrist import weigh_wrist as weigh_wrist
    from steelyard.workflow._wrist_online import weigh_wrist_online as weigh_wrist_online

_MODULES = {
    "KnownMass": "_arm",
    "collisions": "_contacts",
    "contact": "_wrist",
    "identify": "_arm",
    "weigh": "_payload",
    "weigh_online": "_stream",
    "weigh_wrist": "_wrist",
    "weigh_wrist_online": "_wrist_online",
}

__all__ = sorted(_MODULES)

if not TYPE_CHECKING:  # a type checker sees the imports above
    __getattr__ = lazy_attributes(__name__, _MODULES)
