"""The payload from joint torques or motor currents."""

from steelyard.torque._weigh import weigh

__all__ = ["weigh"]
