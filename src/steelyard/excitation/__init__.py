"""Excitation: motions and postures that make parameters visible. The only room that imports JAX."""

from steelyard.excitation.certificate import Certificate, LimitCheck, certify
from steelyard.excitation.design import Design, DesignSettings, design, evaluate
from steelyard.excitation.inverse import inverse_kinematics
from steelyard.excitation.limits import DesignLimits, Scene, envelope, intersection
from steelyard.excitation.objective import (
    OBJECTIVES,
    ConditionNumber,
    DOptimal,
    Liu2025,
    Objective,
    PayloadOptimal,
    Xu2024,
    objective_named,
)
from steelyard.excitation.postures import (
    PostureSet,
    choose_greedily,
    liu2025_orientations,
    moves_around,
    random_orientations,
    random_postures,
    static_postures,
    wrench_rows,
)
from steelyard.excitation.workspace import Cone, OrientationWorkspace, Sector

__all__ = [
    "OBJECTIVES",
    "Certificate",
    "ConditionNumber",
    "Cone",
    "DOptimal",
    "Design",
    "DesignLimits",
    "DesignSettings",
    "LimitCheck",
    "Liu2025",
    "Objective",
    "OrientationWorkspace",
    "PayloadOptimal",
    "PostureSet",
    "Scene",
    "Sector",
    "Xu2024",
    "certify",
    "choose_greedily",
    "design",
    "envelope",
    "evaluate",
    "intersection",
    "inverse_kinematics",
    "liu2025_orientations",
    "moves_around",
    "objective_named",
    "random_orientations",
    "random_postures",
    "static_postures",
    "wrench_rows",
]
