"""Payloads from a wrist force/torque sensor: a static stage at rest, a dynamic stage in motion."""

from steelyard.wrist.dynamic import weigh_dynamic
from steelyard.wrist.kalman import PoseKalmanFilter, samples_from_pose
from steelyard.wrist.payload import StaticWeight, WrenchPayload
from steelyard.wrist.recording import WrenchRecording, WristSensor
from steelyard.wrist.rest import Postures, RestRule, find_postures
from steelyard.wrist.samples import WrenchSamples, samples_from_imu, samples_from_joints
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
    "find_postures",
    "samples_from_imu",
    "samples_from_joints",
    "samples_from_pose",
    "weigh_dynamic",
    "weigh_static",
]
