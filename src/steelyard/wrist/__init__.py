"""Payloads from a wrist force/torque sensor: a static stage at rest, a dynamic stage in motion."""

from steelyard.wrist._dynamic import weigh_dynamic
from steelyard.wrist._kalman import PoseFilterState, PoseKalmanFilter
from steelyard.wrist._payload import StaticFit, WristPayload
from steelyard.wrist._recording import WristRecording, WristSensor
from steelyard.wrist._rest import Postures, RestRule
from steelyard.wrist._samples import WrenchSamples
from steelyard.wrist._static import weigh_static

__all__ = [
    "PoseFilterState",
    "PoseKalmanFilter",
    "Postures",
    "RestRule",
    "StaticFit",
    "WrenchSamples",
    "WristPayload",
    "WristRecording",
    "WristSensor",
    "weigh_dynamic",
    "weigh_static",
]
