"""Uses of a known payload: feed-forward compensation, hand guiding, contact forces, collisions."""

from typing import TYPE_CHECKING

from steelyard._lazy import lazy_attributes

if TYPE_CHECKING:
    from steelyard.control._compensation import Compensator as Compensator
    from steelyard.control._contact_force import contact_force as contact_force
    from steelyard.control._guiding import guide as guide

_MODULES = {
    "Compensator": "_compensation",
    "contact_force": "_contact_force",
    "guide": "_guiding",
}

__all__ = sorted(_MODULES)

if not TYPE_CHECKING:  # a type checker sees the imports above
    __getattr__ = lazy_attributes(__name__, _MODULES)
