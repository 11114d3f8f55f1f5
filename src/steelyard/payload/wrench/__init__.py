"""Payloads from a wrist force/torque sensor: a static stage at rest, a dynamic stage in motion."""

from steelyard.payload.wrench.dynamic import weigh_dynamic
from steelyard.payload.wrench.kalman import PoseKalmanFilter, samples_from_pose
from steelyard.payload.wrench.kinematics import samples_from_imu, samples_from_joints
from steelyard.payload.wrench.payload import WrenchPayload, payload_at_rest
from steelyard.payload.wrench.recording import WrenchRecording
from steelyard.payload.wrench.rest import Postures, RestRule, find_postures
from steelyard.payload.wrench.samples import WrenchSamples
from steelyard.payload.wrench.sensor import WristSensor
from steelyard.payload.wrench.static import StaticWeight, weigh_static

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
    "payload_at_rest",
    "samples_from_imu",
    "samples_from_joints",
    "samples_from_pose",
    "weigh_dynamic",
    "weigh_static",
]
