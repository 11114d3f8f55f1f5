"""Payloads: what an arm carries, from joint torques."""

from steelyard.payload.torque import Payload, weigh

__all__ = ["Payload", "weigh"]
