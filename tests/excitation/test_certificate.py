"""The certificate from both sides: 1e-9 inside a limit holds, 1e-9 outside does not.

The peaks lie between the samples of the certificate; they are found here by other means.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from steelyard.excitation import Cone, DesignLimits, OrientationWorkspace, Sector, Surroundings
from steelyard.robot import JointLimits, load_robot
from steelyard.robot._geometry import Body
from steelyard.trajectory import FourierTrajectory

ARM = load_robot("ur10")
FREE = DesignLimits(JointLimits.none(6))
MOTION = FourierTrajectory.random(
    [0.2, -1.3, 1.1, -0.4, 0.7, 0.1],
    reach=[0.5] * 6,
    speed=[1.2] * 6,
    period_s=2.345,
    harmonics=3,
    seed=4,
)
FLOOR = Body.half_space("floor", (0, 0, -0.3), (0, 0, 1))
ENDS = tuple(body for body in Body.capsules(ARM, 0.05) if body.joint in (0, 6))
SURROUNDINGS = {
    "floor": Surroundings((FLOOR,), ENDS, self_collision=False),
    "self": Surroundings(bodies=ENDS),
}
DIRECTION = np.array([0.6, 0.0, -0.8])


def joints(name, bound):
    every = {
        key: getattr(FREE.joints, key).copy()
        for key in ("q_min", "q_max", "v_max", "a_max", "tau_max")
    }
    every[name][1] = bound
    return replace(FREE, joints=JointLimits(**every))


def speed(name, k, bound):
    values = np.full(3, np.inf)
    values[k] = bound
    return replace(FREE, **{name: values})


def region(part):
    return replace(FREE, workspace=OrientationWorkspace((part,)))


def frames(t):
    return ARM.forward_kinematics(MOTION.at(t)[0])


def velocity(t, h=2e-4):
    """Linear and angular velocity of the flange, from its poses alone."""
    here = frames(t)
    moved = sum(c * frames(t + k * h) for k, c in ((-2, 1), (-1, -8), (1, 8), (2, -1))) / (12 * h)
    turn = np.einsum("tab,tcb->tac", moved[:, :3, :3], here[:, :3, :3])
    return moved[:, :3, 3], np.stack([turn[:, 2, 1], turn[:, 0, 2], turn[:, 1, 0]], axis=1)


def torque(t):
    q, v, a = MOTION.at(t)
    return ARM.regressor(q, v, a) @ ARM.parameters


def distance(name, t):
    return SURROUNDINGS[name].model(ARM).distances(MOTION.at(t)[0]).min(axis=1)


def cleared(name):
    return lambda least: replace(
        FREE, surroundings=replace(SURROUNDINGS[name], clearance=float(least))
    )


# what is bounded, of time; 1 where it must stay below its bound, -1 above; the limits with such a
# bound
KINDS = {
    "upper position": (lambda t: MOTION.at(t)[0][:, 1], 1, lambda x: joints("q_max", x)),
    "lower position": (lambda t: MOTION.at(t)[0][:, 1], -1, lambda x: joints("q_min", x)),
    "velocity": (lambda t: np.abs(MOTION.at(t)[1][:, 1]), 1, lambda x: joints("v_max", x)),
    "acceleration": (lambda t: np.abs(MOTION.at(t)[2][:, 1]), 1, lambda x: joints("a_max", x)),
    "torque": (lambda t: np.abs(torque(t)[:, 1]), 1, lambda x: joints("tau_max", x)),
    "lowest height": (
        lambda t: frames(t)[:, 2, 3],
        -1,
        lambda x: replace(FREE, height=(x, np.inf)),
    ),
    "highest height": (
        lambda t: frames(t)[:, 2, 3],
        1,
        lambda x: replace(FREE, height=(-np.inf, x)),
    ),
    "linear speed": (
        lambda t: np.abs(velocity(t)[0][:, 1]),
        1,
        lambda x: speed("linear_speed", 1, x),
    ),
    "angular speed": (
        lambda t: np.abs(velocity(t)[1][:, 2]),
        1,
        lambda x: speed("angular_speed", 2, x),
    ),
    "orientation, cone": (
        lambda t: np.arccos(frames(t)[:, :3, 2] @ DIRECTION),
        1,
        lambda x: region(Cone("z", DIRECTION, x)),
    ),
    "orientation, sector": (
        lambda t: np.arccos(frames(t)[:, 2, 0]),
        1,
        lambda x: region(Sector("x", (0.0, x))),
    ),
    "clearance, floor": (lambda t: distance("floor", t), -1, cleared("floor")),
    "clearance, itself": (lambda t: distance("self", t), -1, cleared("self")),
}


def extreme(value, sign):
    """The largest (1) or smallest (-1) value over the motion, between samples too."""
    t = np.linspace(0, MOTION.duration_s, 3001)
    k = int((sign * value(t)).argmax())
    ends = t[max(k - 1, 0)], t[min(k + 1, 3000)]
    found = minimize_scalar(
        lambda x: -sign * value(np.array([x]))[0],
        bounds=ends,
        method="bounded",
        options={"xatol": 1e-9},
    )
    return -sign * float(found.fun)


@pytest.mark.parametrize("kind", KINDS)
def test_a_limit_is_kept_or_broken_by_a_billionth(kind):
    value, sign, limits = KINDS[kind]
    peak = extreme(value, sign)
    inside, outside = (limits(peak + side * sign * 1e-9).certify(ARM, MOTION) for side in (1, -1))
    assert inside.holds
    assert not outside.holds
    for certificate in (inside, outside):
        assert certificate.worst.limit == kind.split(",")[0]
        assert abs(certificate.worst.margin) < 2e-9
        assert value(np.array([certificate.worst.at_s]))[0] == pytest.approx(peak, abs=1e-8)


def test_sums_of_amplitudes_are_pinned_too():
    q, v, a = (x[1] for x in MOTION.amplitudes)
    middle = MOTION.offset[1]
    for name, peak, sign in (
        ("q_max", middle + q, 1),
        ("q_min", middle - q, -1),
        ("v_max", v, 1),
        ("a_max", a, 1),
    ):
        made = (
            replace(joints(name, peak + side * sign * 1e-9), form="amplitude") for side in (1, -1)
        )
        inside, outside = (limits.certify(ARM, MOTION) for limits in made)
        assert inside.holds
        assert not outside.holds
        assert "amplitude" in outside.worst.limit


def test_the_limit_in_the_way_is_named_with_joint_amount_and_time():
    certificate = joints("q_max", extreme(KINDS["upper position"][0], 1) - 0.03).certify(
        ARM, MOTION
    )
    words = certificate.worst.sentence
    assert words.startswith("shoulder_lift_joint: upper position, 0.03 rad beyond ")
    assert words.endswith(f"at {certificate.worst.at_s:.3f} s")
    assert "shoulder_lift_joint: upper position, 0.03 rad inside" in (
        joints("q_max", extreme(KINDS["upper position"][0], 1) + 0.03)
        .certify(ARM, MOTION)
        .worst.sentence
    )
