"""Collision detection: external torque from an observer, thresholds, contacts, and their force."""

from steelyard.applications.collision.detection import Contact, Detections, Detector, detect
from steelyard.applications.collision.dynamics import ArmDynamics, arm_dynamics
from steelyard.applications.collision.learning import Learned, learn
from steelyard.applications.collision.observer import (
    DirectObserver,
    EnergyObserver,
    MomentumObserver,
    Observer,
    ObserverSample,
    ObserverState,
    make_observer,
)
from steelyard.applications.collision.residuals import Residuals, observe
from steelyard.applications.collision.thresholds import Thresholds, fixed_thresholds
from steelyard.applications.collision.wrench import ContactWrench, contact_wrench

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
