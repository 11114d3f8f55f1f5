"""The door for what an arm carries: a payload comes in once, in the right frame and well weighed."""

from __future__ import annotations

import numpy as np

from steelyard.errors import InvalidInertia, InvalidRobot
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.payload import Payload
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.verdict import DoubtKind


def flange_body(
    robot: RobotModel, payload: Payload | InertialParameters | None, *, inertia_needed: bool = True
) -> InertialParameters:
    """The body that a payload is, refused unless it is in the robot's flange frame and was weighed well.

    Only the frame's name is compared: that the payload was weighed at this very flange, the caller knows. A
    body without a covariance is taken as it is: whoever gives one means it.

    Args:
        robot: that carries it
        payload: or None, which gives ten zeros
        inertia_needed: refuse one whose inertia is not known; else it counts as none, as gaz2017 does after
            weighing at rest
    """
    if payload is None:
        return InertialParameters.nothing(robot.flange)
    body = payload.body if isinstance(payload, Payload) else payload
    if body.frame != robot.flange:
        raise InvalidRobot(
            f"the payload is in frame '{body.frame}', the flange of {robot.name} is '{robot.flange}';"
            " bring it there with in_frame()"
        )
    if isinstance(payload, Payload):
        _require_well_weighed(robot, payload, inertia_needed=inertia_needed)
    return body


def _require_well_weighed(robot: RobotModel, payload: Payload, *, inertia_needed: bool) -> None:
    against = [doubt for doubt in payload.verdict.blocking if doubt.kind is not DoubtKind.NOT_EXCITED]
    if against:
        reasons = "; ".join(doubt.words for doubt in against)
        raise InvalidInertia(
            f"the payload was weighed badly: {reasons}; weigh it again, or give payload.body if you mean it"
        )
    unknown = ~np.isfinite(payload.std)
    if unknown.any():
        counts = np.abs(ParameterBasis.of(robot).payload_jacobian).max(axis=0) > 0
        counts[4:] &= inertia_needed
        missing = np.array(PARAMETER_NAMES)[unknown & counts]
        if len(missing):
            raise InvalidInertia(
                f"the payload's {', '.join(missing)} were not excited; weigh it with a richer motion, or give"
                " payload.body if you know that these numbers are right"
            )
    if words := _why_no_body(payload, bool(unknown.any())):
        raise InvalidInertia(
            f"no body can be this payload: {words}; weigh it again, or give payload.body if you mean it"
        )


def _why_no_body(payload: Payload, some_unknown: bool) -> str | None:
    """Why no body has these numbers; of those that are not all known, the mass alone can tell."""
    if not some_unknown:
        return payload.body.why_not_physical
    if np.isfinite(payload.std[0]) and payload.body.mass <= 0:
        return f"the mass is {payload.body.mass:.4g} kg"
    return None
