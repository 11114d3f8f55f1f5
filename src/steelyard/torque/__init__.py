"""The payload from joint torques or motor currents."""

from typing import TYPE_CHECKING

from steelyard._lazy import lazy_attributes

if TYPE_CHECKING:
    from steelyard.torque._prediction import Prediction as Prediction
    from steelyard.torque._shortest import Accuracy as Accuracy
    from steelyard.torque._shortest import ShortestMotion as ShortestMotion
    from steelyard.torque._shortest import shortest_motion as shortest_motion
    from steelyard.torque._shortest import typical_payload as typical_payload
    from steelyard.torque._weigh import weigh as weigh

_MODULES = {
    "Accuracy": "_shortest",
    "Prediction": "_prediction",
    "ShortestMotion": "_shortest",
    "shortest_motion": "_shortest",
    "typical_payload": "_shortest",
    "weigh": "_weigh",
}

__all__ = sorted(_MODULES)

if not TYPE_CHECKING:  # a type checker sees the imports above
    __getattr__ = lazy_attributes(__name__, _MODULES)
