"""Uses of a known payload: feed-forward compensation, hand guiding, contact forces, collisions."""

from typing import TYPE_CHECKING

from steelyard._lazy import lazy_attributes

if TYPE_CHECKING:
    from steelyard.control._compensation import Compensator as Compensator
    from steelyard.control._compensation import FeedForward as FeedForward
    from steelyard.control._contact_force import ContactForce as ContactForce
    from steelyard.control._contact_force import ZeroKeeper as ZeroKeeper
    from steelyard.control._contact_force import ZeroState as ZeroState
    from steelyard.control._contact_force import contact_force as contact_force
    from steelyard.control._guiding import GuidingComparison as GuidingComparison
    from steelyard.control._guiding import RectanglePath as RectanglePath
    from steelyard.control._guiding import TeachMode as TeachMode
    from steelyard.control._guiding import guide as guide

_MODULES = {
    "Compensator": "_compensation",
    "ContactForce": "_contact_force",
    "FeedForward": "_compensation",
    "GuidingComparison": "_guiding",
    "RectanglePath": "_guiding",
    "TeachMode": "_guiding",
    "ZeroKeeper": "_contact_force",
    "ZeroState": "_contact_force",
    "contact_force": "_contact_force",
    "guide": "_guiding",
}

__all__ = sorted(_MODULES)

if not TYPE_CHECKING:  # a type checker sees the imports above
    __getattr__ = lazy_attributes(__name__, _MODULES)
