"""Payloads from a wrist force/torque sensor: a static stage at rest, a dynamic stage in motion."""

from steelyard.wrist.dynamic import weigh_dynamic
from steelyard.wrist.kalman import PoseKalmanFilter
from steelyard.wrist.payload import StaticWeight, WrenchPayload
from steelyard.wrist.recording import WrenchRecording, WristSensor
from steelyard.wrist.rest import Postures, RestRule
from steelyard.wrist.samples import WrenchSamples
from steelyard.wrist.static import weigh_static

__all__ = [
    "PoseKalmanFilter",
    "Postures",
    "RestRule",
    "StaticWeight",
    "WrenchPayload",
    "WrenchRecording",
    "WrenchSamples",
    "WristSensor",
    "weigh_dynamic",
    "weigh_static",
]
