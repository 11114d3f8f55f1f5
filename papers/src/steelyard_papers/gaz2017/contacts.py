"""Fig. 5 and Fig. 6: torques with the estimated payload, and contacts by residual (48).

In (48) only gravity knows the payload; momentum and Coriolis torques are those of the empty arm.
Ours knows all of the payload. An observer that knows no payload at all stands for a detector that
does not know of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from steelyard._arrays import Array
from steelyard.control.collision import (
    Contact,
    Detections,
    Detector,
    Guard,
    Observer,
    Reaction,
    Thresholds,
)
from steelyard.identification import DynamicModel
from steelyard.inertia import InertialParameters
from steelyard.recording import Recording
from steelyard.robot import RobotModel, load_robot
from steelyard.robot._momentum import MomentumDynamics
from steelyard.signals import Preparation, prepare
from steelyard_papers.gaz2017.approach import Held, come_to_rest
from steelyard_papers.gaz2017.collision import LIMIT_NM, FigureSix, figure_six, watched_run
from steelyard_papers.gaz2017.gravity import (
    HEAVY_BODY,
    Sensors,
    StaticAnswer,
    arm,
    samples_near_pick,
    static_answer,
)
from steelyard_papers.gaz2017.inertial import Inertial, measured, moved, whole_motion

_VALIDATION_SEED = 11


@dataclass(frozen=True, eq=False)
class Prediction:
    """Torques of a motion that was not used to identify.

    Attributes:
        t: time, (N,) [s]
        measured: torque, (N, 7) [Nm]
        paper: computed with mass and centre of mass from ten samples, no inertia, (N, 7) [Nm]
        ours: computed with all ten numbers from one motion, (N, 7) [Nm]
    """

    t: Array
    measured: Array
    paper: Array
    ours: Array


def without_inertia(numbers: Array) -> InertialParameters:
    """A payload of mass and first moment whose inertia about the frame's origin is taken as zero.

    Args:
        numbers: m, mx, my, mz, (4,)
    """
    return InertialParameters.from_vector(np.append(numbers, np.zeros(6)))


@cache
def _validation_run(friction: float) -> Recording:
    """The validation motion with the medium payload, without errors of the sensors."""
    return moved(whole_motion(_VALIDATION_SEED), HEAVY_BODY, friction=friction)


def predicted(
    few: StaticAnswer,
    inertial: Inertial,
    sensors: Sensors,
    *,
    seed: int = 0,
    friction: float = 1.0,
) -> Prediction:
    """Fig. 5: measured and computed torques of a validation motion.

    Args:
        few: the payload from ten samples
        inertial: the empty arm, and the payload from one motion
        sensors: that measure
        seed: of their errors
        friction: factor of the arm's Coulomb friction
    """
    recording = measured(_validation_run(friction), sensors, seed, 40)
    samples = prepare(recording, Preparation(lowest_speed=0.0, trim_s=0.2))
    model: DynamicModel = inertial.model
    motion = (samples.q, samples.v, samples.a)
    empty = model.rows(samples).Y @ model.estimate.value
    effect = model.robot.payload_regressor(*motion)
    return Prediction(
        samples.t,
        samples.tau,
        empty + effect[:, :, :4] @ few.paper,
        empty + effect @ inertial.whole.unconstrained.vector,
    )


@dataclass(frozen=True, eq=False)
class _GravityKnows(MomentumDynamics):
    """Momentum of the empty arm, gravity of the loaded one.

    Attributes:
        loaded: the arm with its payload
    """

    loaded: RobotModel | None = None

    def momentum(self, q: Array, v: Array) -> tuple[Array, Array]:
        """As in `MomentumDynamics`, with the gravity of the loaded arm.

        Args:
            q: joint positions, (n,) [rad or m]
            v: joint velocities, (n,) [rad/s or m/s]
        """
        p, drift = super().momentum(q, v)
        assert self.loaded is not None  # noqa: S101 - its only caller gives it
        return p, drift + self.robot.gravity_torque(q) - self.loaded.gravity_torque(q)


@dataclass(frozen=True, eq=False)
class Contacts:
    """Fig. 6 with three observers.

    Attributes:
        six: the run, with observers that know no payload and all of it
        few: the payload from ten samples at rest, as the paper's observer knows it
        paper: contacts by (48) as printed
        reacted: the same motion and pushes; the arm stops where (48) finds a contact, rests 2 s and
            resumes
        reactions: the contacts that it reacted to
    """

    six: FigureSix
    few: StaticAnswer
    paper: Detections
    reacted: Recording
    reactions: tuple[Contact, ...]

    @property
    def by_observer(self) -> dict[str, Detections]:
        """Detections of each observer, by name."""
        return {"payload ignored": self.six.ignored, "paper": self.paper, "ours": self.six.known}


def three_contacts(sensors: Sensors, empty: Held) -> Contacts:
    """The three contacts of Fig. 6.

    Args:
        sensors: that measure the postures at rest
        empty: postures of the empty arm; those of the loaded one are ten samples, reached here
    """
    six = figure_six()
    loaded = come_to_rest(arm(), six.truth, samples_near_pick()).both
    few = static_answer(empty, loaded, sensors, seed=6)
    observer = Observer.of(six.model)
    robot = observer.arm.robot
    rigid = _GravityKnows(
        robot, observer.arm.rigid.rotor, robot.with_payload(without_inertia(few.paper))
    )
    observer = replace(observer, arm=replace(observer.arm, rigid=rigid))
    detector = Detector(observer, Thresholds.fixed(observer, LIMIT_NM))
    guard = Guard(detector, Reaction())
    reacted = watched_run(load_robot("lwr4"), guard=guard).recording
    return Contacts(
        six, few, detector.detect(replace(six.recording)), reacted, tuple(guard.contacts)
    )
