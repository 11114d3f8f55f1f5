"""Design of motions and postures that excite the parameters; the only importer of JAX."""

from steelyard.excitation._certificate import Certificate, LimitCheck
from steelyard.excitation._design import Design, design
from steelyard.excitation._gradients import RegressorRows, RowPrograms
from steelyard.excitation._limits import DesignLimits
from steelyard.excitation._objective import (
    OBJECTIVES,
    ConditionNumber,
    Criterion,
    DOptimal,
    Liu2025,
    Objective,
    PayloadOptimal,
    Xu2024,
)
from steelyard.excitation._postures import PostureSet, inverse_kinematics
from steelyard.excitation._search import DesignSettings
from steelyard.excitation._workspace import (
    Clearances,
    Cone,
    OrientationWorkspace,
    Sector,
    Surroundings,
)

__all__ = [
    "OBJECTIVES",
    "Certificate",
    "Clearances",
    "ConditionNumber",
    "Cone",
    "Criterion",
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
    "RegressorRows",
    "RowPrograms",
    "Sector",
    "Surroundings",
    "Xu2024",
    "design",
    "inverse_kinematics",
]
