"""The accuracy of a weighing, predicted before the arm moves.

The covariance of `direct` depends on measured torques only through the weights of the joints and
the spectra of residuals. Both are known once the empty arm is identified: its noise, the widening
by correlation in time, the uncertainty of its parameters and of its gains. The covariance of a
payload therefore follows from the motion alone, by the formulas that `weigh` uses.

For an arm that was not identified, all parameters but friction are assumed to be known, torques to
be exact, and their noise to be white.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Annotated

import numpy as np

from steelyard._arrays import Array
from steelyard._codec import Value
from steelyard._kinds import COVARIANCE, INFINITE, Inlined, Shape
from steelyard._units import NORMAL_95
from steelyard.errors import InvalidSamples
from steelyard.identification import DynamicModel, Estimate, RegressionFactor
from steelyard.identification._problem import RowMaker
from steelyard.inertia import FIRST_MOMENT, INERTIA, MASS, InertialParameters
from steelyard.payload import Quantity
from steelyard.recording import Preparation, Samples
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.robot._terms import require_no_terms
from steelyard.torque.methods._direct import predicted
from steelyard.torque.methods._problem import WeighingProblem
from steelyard.trajectory import Trajectory
from steelyard.verdict import Verdict

_NOISE_SHARE = 0.005  # assumed noise of a joint, of its torque limit


@dataclass(frozen=True, eq=False)
class Prediction(Value, error=InvalidSamples, derived={"half_widths": attrgetter("half_widths")}):
    """The predicted accuracy of a payload that is weighed along a motion.

    Attributes:
        body: the assumed payload
        covariance: of its ten numbers, (10, 10); infinite for those that the motion does not show
        by_noise: the part of the covariance that more samples reduce: noise and friction, (10, 10)
        gain_error: change of the ten numbers with one standard deviation of each cause of gain
            errors, (10, causes), included in the covariance; None if torques are measured
        shares: of the mass's variance, by cause, see `Payload`
    """

    body: Annotated[
        InertialParameters,
        Inlined(InertialParameters.from_vector, {"payload": "vector", "frame": "frame"}),
    ]
    covariance: Annotated[Array, Shape(10, 10), INFINITE, COVARIANCE]
    by_noise: Annotated[Array, Shape(10, 10), INFINITE, COVARIANCE]
    gain_error: Annotated[Array | None, Shape(10, "causes")] = None
    shares: Mapping[str, float] = field(default_factory=dict)

    @property
    def std(self) -> Array:
        """Standard deviation of the ten numbers in the order of `PARAMETER_NAMES`, (10,) [SI]."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @property
    def com_std(self) -> Array:
        """Standard deviation of the centre of mass, (3,) [m]; infinite where it is unknown."""
        return _com_std(self.body, self.covariance)

    @property
    def half_widths(self) -> Array:
        """95 % half-widths of mass, centre of mass, inertia about the flange, (10,) [SI]."""
        return _half_widths(self.body, self.covariance)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The payload with its standard deviations in the units of reports."""
        return Quantity.of_body(self.body, self.std, self.com_std)

    @property
    def irreducible(self) -> Array:
        """Half-widths that more motion cannot reduce (gains, local gravity), (10,) [SI]."""
        known = np.isfinite(np.diag(self.by_noise))
        both = (np.where(np.outer(known, known), C, 0.0) for C in (self.covariance, self.by_noise))
        return _half_widths(self.body, np.subtract(*both))


def _half_widths(body: InertialParameters, covariance: Array) -> Array:
    """95 % half-widths of mass, centre of mass, inertia about the flange, (10,) [SI]."""
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return NORMAL_95 * np.concatenate([std[[MASS]], _com_std(body, covariance), std[INERTIA]])


def _com_std(body: InertialParameters, covariance: Array) -> Array:
    """Standard deviation of the centre of mass, (3,) [m]; infinite where it is unknown."""
    known = np.isfinite(np.diag(covariance))
    C = np.where(np.outer(known, known), covariance, 0.0)
    variance = np.maximum(np.diag(body.com_covariance(C)), 0.0)
    return np.where(known[FIRST_MOMENT] & known[MASS], np.sqrt(variance), np.inf)


def predict(
    model: DynamicModel,
    motion: Trajectory | Samples,
    payload: InertialParameters,
    *,
    rate_hz: float = 125.0,
    until_s: float | None = None,
) -> Prediction:
    """The accuracy with which `weigh` will know a payload after a motion.

    Args:
        model: of the empty arm, see `assumed_model` for one that was not identified
        motion: of the loaded arm; the torques of samples are not used
        payload: the assumed payload, in the flange frame
        rate_hz: of the recording, [Hz]
        until_s: end of the recording in the motion, [s]; all of the motion by default
    """
    if not (np.isfinite(rate_hz) and rate_hz > 0):
        raise InvalidSamples(f"rate_hz must be positive, got {rate_hz}")
    if isinstance(motion, Samples):
        samples = motion
    else:
        samples = _samples(model, motion, rate_hz, until_s)
    problem = WeighingProblem(model, [samples], np.zeros((0, 11)))
    answer = predicted(problem, payload.vector)
    covariance, gain_error, shares = answer.widened(problem)
    return Prediction(payload, covariance, answer.covariance, gain_error, shares)


def assumed_model(robot: RobotModel, noise: Sequence[float] | None = None) -> DynamicModel:
    """A model of an arm by its description: exact except for friction, with exact torques.

    Args:
        robot: the arm
        noise: standard deviation of each joint's torque, (n,) [Nm or N]; half a percent of the
            torque limit by default, 1 where there is none
    """
    limit = robot.limits.tau_max
    usual = np.where(np.isfinite(limit), _NOISE_SHARE * limit, 1.0)
    if noise is None:
        std = usual
    else:
        std = np.array(noise, dtype=float)
    if std.shape != (robot.n,) or not (np.isfinite(std).all() and (std > 0).all()):
        raise InvalidSamples(f"noise must be {robot.n} positive numbers, got {std}")
    require_no_terms(robot, "an assumed model")
    law = replace(robot.drive.law, stribeck=False, load=False, smooth_speed=False)
    basis = ParameterBasis.of(robot)
    parameters = RowMaker(robot, basis).parameters(law)
    value = basis.K @ robot.parameters
    verdict = Verdict("the arm is assumed to match its description")
    p = len(parameters)
    estimate = Estimate(value, np.zeros((p, p)), parameters, std, np.ones(robot.n), 1.0, verdict)
    empty = RegressionFactor.empty(robot.n, p)
    return DynamicModel(
        robot, law, estimate, np.zeros((0, robot.n)), "commanded", (robot.source,), empty
    )


def loaded_arm(model: DynamicModel, payload: InertialParameters) -> RobotModel:
    """The arm of a model with a payload on its flange, for the computation of torques.

    Args:
        model: identified or assumed
        payload: in the flange frame
    """
    if model.factor.has_rows:
        arm = _as_robot(model)
    else:
        arm = model.robot
    return arm.with_payload(payload)


def _as_robot(model: DynamicModel) -> RobotModel:
    """A robot with the torques of a model; its links need not be real bodies."""
    robot = model.robot
    basis = model.basis
    phi = robot.parameters
    masses = np.arange(0, 10 * robot.n, 10)
    massless = phi[masses] == 0  # Pinocchio needs a mass for a first moment
    phi[masses[massless]] = 1.0
    wide = np.linalg.pinv(basis.K)
    phi = phi + wide @ (model.estimate.value[: len(basis)] - basis.K @ phi)
    bodies = phi[: 10 * robot.n].reshape(-1, 10)
    links = [
        InertialParameters.from_vector(x, name)
        for x, name in zip(bodies, robot.link_names, strict=True)
    ]
    rotor, coulomb, viscous, offset = phi[10 * robot.n :].reshape(4, -1)
    drive = robot.drive.with_law(model.law, model.estimate.value[len(basis) :])
    drive = replace(drive, rotor_inertia=rotor, coulomb=coulomb, viscous=viscous, offset=offset)
    return robot.with_links(links).with_drive(drive)


def _samples(
    model: DynamicModel, motion: Trajectory, rate_hz: float, until_s: float | None
) -> Samples:
    if until_s is None:
        length = motion.duration_s
    else:
        length = min(until_s, motion.duration_s)
    how = model.preparation or Preparation()
    count = max(round(length * rate_hz), 4)
    edge = round(how.trim_s * rate_hz)
    q, v, a = motion.at(np.arange(edge, max(count - edge, edge + 4)) / rate_hz)
    return Samples(
        q=q,
        v=v,
        a=a,
        tau=np.zeros_like(q),
        rate_hz=rate_hz,
        joint_names=model.robot.joint_names,
        kinematics=model.kinematics,
        usable=how.is_clear(v, a),
    )
