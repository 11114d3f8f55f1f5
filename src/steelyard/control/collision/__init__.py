"""Collision detection: external torque from an observer, thresholds, contacts, and their force."""

from steelyard.control.collision.detection import Contact, Detections, Detector, detect
from steelyard.control.collision.dynamics import ArmDynamics, arm_dynamics
from steelyard.control.collision.learning import Learned, learn
from steelyard.control.collision.observer import (
    DirectObserver,
    EnergyObserver,
    MomentumObserver,
    Observer,
    ObserverSample,
    ObserverState,
    make_observer,
)
from steelyard.control.collision.residuals import Residuals, observe
from steelyard.control.collision.thresholds import Thresholds, fixed_thresholds
from steelyard.control.collision.wrench import ContactWrench, contact_wrench

__all__ = [
    "ArmDynamics",
    "Contact",
    "ContactWrench",
    "Detections",
    "Detector",
    "DirectObserver",
    "EnergyObserver",
    "Learned",
    "MomentumObserver",
    "Observer",
    "ObserverSample",
    "ObserverState",
    "Residuals",
    "Thresholds",
    "arm_dynamics",
    "contact_wrench",
    "detect",
    "fixed_thresholds",
    "learn",
    "make_observer",
    "observe",
]
