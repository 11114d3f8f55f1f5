"""Design of motions and postures that excite the parameters; the only importer of JAX."""

from steelyard.excitation._certificate import Certificate
from steelyard.excitation._design import Design, design
from steelyard.excitation._limits import DesignLimits
from steelyard.excitation._objective import (
    OBJECTIVES,
    ConditionNumber,
    DOptimal,
    Liu2025,
    Objective,
    PayloadOptimal,
    Xu2024,
)
from steelyard.excitation._postures import PostureSet, inverse_kinematics
from steelyard.excitation._search import DesignSettings
from steelyard.excitation._workspace import Cone, OrientationWorkspace, Scene, Sector

__all__ = [
    "OBJECTIVES",
    "Certificate",
    "ConditionNumber",
    "Cone",
    "DOptimal",
    "Design",
    "DesignLimits",
    "DesignSettings",
    "Liu2025",
    "Objective",
    "OrientationWorkspace",
    "PayloadOptimal",
    "PostureSet",
    "Scene",
    "Sector",
    "Xu2024",
    "design",
    "inverse_kinematics",
]
