"""The payload by each method of liu2025 and by ours, on the same recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from steelyard._arrays import Array
from steelyard.control._contact_force import ContactForce, contact_force
from steelyard.errors import InvalidRecording
from steelyard.io._wrist import SensorDescription
from steelyard.payload import Payload
from steelyard.recording import Recording
from steelyard.simulation import Truth
from steelyard.workflow import WristTrackingOptions
from steelyard.workflow._wrist_tracking import WristReplay
from steelyard.wrist import (
    Postures,
    StaticFit,
    WrenchSamples,
    WristPayload,
    WristRecording,
    weigh_dynamic,
    weigh_static,
)
from steelyard.wrist.estimators import ESTIMATORS
from steelyard_papers.liu2025.cell import PERFECT, Cell, Faults
from steelyard_papers.liu2025.comparison_methods import (
    method_1,
    method_2,
    moving_postures,
    regression_of_ten,
)
from steelyard_papers.liu2025.literal import proposed
from steelyard_papers.liu2025.static import weigh_linear
from steelyard_papers.liu2025.world import (
    LOAD,
    SENSOR,
    TILT,
    UPRIGHT,
    World,
    base_turned,
    measured,
    zero_drift,
)
from steelyard_papers.sharing import Progress

METHODS = {
    "method_1": "Method 1",
    "method_1_moving": "Method 1 on moving data",
    "method_2": "Method 2",
    "proposed": "proposed",
    "ours": "ours",
}
"""By key: the name of each method in tables."""

SAME_SIGNALS = ("causal motion", "zero-phase motion")
"""Signals that the proposed method and ours are compared on."""

STRONG = {
    "ls": "LS",
    "tls": "TLS",
    "rrtls": "recursive restricted TLS",
    "ml": "maximum likelihood (ours)",
}
"""Estimators of the comparison with strong noise, by the key of `ESTIMATORS`."""

_ACCURACY = 0.01  # of the mass, at which tracking has converged
_ENCODER_STEP = 2 * np.pi / 2**18  # [rad]


@dataclass(frozen=True, eq=False)
class _Runs:
    """What one seed measures: the postures at rest, and the excitation.

    Attributes:
        drift: true zero of the sensor, (6,) [N, Nm]
        cell: sensor, arm and base
        at_rest: the visit of the postures
        moving: the excitation
    """

    drift: Array
    cell: Cell
    at_rest: Recording
    moving: Recording

    @classmethod
    def of(cls, world: World, seed: int, faults: Faults) -> _Runs:
        rng = np.random.default_rng(1000 + seed)
        drift = zero_drift(rng)
        cell = faults.cell(np.random.default_rng([1000 + seed, 1]))
        at_rest, moving = (
            measured(world.robot, truth, drift, rng, cell=cell)
            for truth in (world.rest, world.excitation)
        )
        return cls(drift, cell, at_rest, moving)


@dataclass(frozen=True, eq=False)
class Answers:
    """The payload by every method, for one seed.

    Attributes:
        drift: true zero of the sensor, (6,) [N, Nm]
        static: the static stage, ours
        static_tls: the static stage by total least squares, as the paper's
        payloads: by the keys of `METHODS`
        cell: sensor, arm and base of this seed
        causal: wrench and motion of the excitation, by the paper's filter
        same_signals: the proposed method and ours on the same signals, by the signals
    """

    drift: Array
    static: StaticFit
    static_tls: StaticFit
    payloads: dict[str, WristPayload]
    cell: Cell
    causal: WrenchSamples
    same_signals: dict[str, tuple[WristPayload, WristPayload]]


def answers_of(world: World, seed: int, faults: Faults = PERFECT) -> Answers:
    """Every method on the postures and the excitation of one seed.

    The proposed method is the paper's two stages as printed (`literal`), on motion from a causal
    Kalman filter that is tuned on an earlier run of another motion. Ours is offline: restricted
    static stage, zero-phase motion, maximum likelihood. Both are also given the same signals.

    Args:
        world: the true signals
        seed: of noise, drift and cell
        faults: of the cell
    """
    robot = world.robot
    runs = _Runs.of(world, seed, faults)
    drift = runs.drift
    cell = runs.cell
    postures = Postures.of(WristRecording.of_joints(runs.at_rest, robot, SENSOR))
    static = weigh_static(postures)
    static_tls = weigh_linear(postures)
    causal = WrenchSamples.from_pose_causal(
        WristRecording.of_joints(runs.moving, robot, SENSOR),
        earlier=_earlier(world, world.fast, drift, cell, [1000 + seed, 2]),
    )
    offline = WrenchSamples.from_joints(robot, runs.moving, SENSOR)
    payloads = {
        "method_1": method_1(postures, gravity_base=UPRIGHT),
        "method_1_moving": method_1(moving_postures(causal, every=10), gravity_base=UPRIGHT),
        "method_2": method_2(causal, static_tls),
        "proposed": proposed(causal, static_tls),
        "ours": weigh_dynamic(offline, static),
    }
    by_causal, by_zero_phase = SAME_SIGNALS
    same = {
        by_causal: (payloads["proposed"], weigh_dynamic(causal, static)),
        by_zero_phase: (proposed(offline, static_tls), payloads["ours"]),
    }
    return Answers(drift, static, static_tls, payloads, cell, causal, same)


def _earlier(
    world: World, truth: Truth, drift: Array, cell: Cell, seed: Sequence[int]
) -> WristRecording:
    """A run before the one that is weighed, which the paper's filter is tuned on."""
    rng = np.random.default_rng(seed)
    run = measured(world.robot, truth, drift, rng, cell=cell)
    return WristRecording.of_joints(run, world.robot, SENSOR)


def postures_of(world: World, seed: int, turned: Array | None = None) -> Postures:
    """The postures at rest of one seed in a cell without faults, as in `answers_of`.

    Args:
        world: the true signals
        seed: of noise and drift
        turned: change of the base's U and V, (2,) [rad]; none by default
    """
    if turned is not None:
        world = replace(world, rest=base_turned(world.robot, world.rest, turned))
    runs = _Runs.of(world, seed, PERFECT)
    return Postures.of(WristRecording.of_joints(runs.at_rest, world.robot, SENSOR))


def tracked(world: World, seed: int) -> Payload:
    """Ours, sample by sample: the postures, then the excitation, in one stream.

    Args:
        world: the true signals
        seed: of noise and drift, in a cell without faults; the same runs as in `answers_of`
    """
    runs = _Runs.of(world, seed, PERFECT)
    robot = world.robot
    at_rest = runs.at_rest
    moving = runs.moving
    pause_s = 1.0
    start_s = at_rest.t[-1] + pause_s
    both = replace(
        moving,
        t=np.concatenate([at_rest.t, moving.t + start_s]),
        q=np.concatenate([at_rest.q, moving.q]),
        wrench=np.concatenate([_wrench(at_rest), _wrench(moving)]),
    )
    replay = WristReplay.of(
        both, robot, SensorDescription(SENSOR), _ACCURACY, WristTrackingOptions()
    )
    state = replay.tracker.init()
    for sample in replay.samples():
        state = replay.tracker.step(state, sample)
    return replay.tracker.estimate(state)


def _wrench(recording: Recording) -> Array:
    if recording.wrench is None:
        raise InvalidRecording("the run has no wrench")
    return recording.wrench


@dataclass(frozen=True, eq=False)
class Contacts:
    """The contact force that each method reports in a test motion without contact.

    Attributes:
        forces: by the keys of `METHODS`, without Method 1 on moving data
        moved: proposed, with a zero that has moved since, before the second compensation
        again: the same after it, eq. (44)
        ours_moved: ours on motion from joints (zero phase), after the second compensation
    """

    forces: dict[str, ContactForce]
    moved: ContactForce
    again: ContactForce
    ours_moved: ContactForce


def contacts_of(world: World, answers: Answers, speed: str, seed: int) -> Contacts:
    """The contact force of a test motion without contact.

    Args:
        world: what really happened
        answers: payloads of one seed
        speed: 'fast' or 'slow'
        seed: of noise, and of how the zero has moved
    """
    robot = world.robot
    truth = getattr(world, speed)
    rng = np.random.default_rng(2000 + seed)
    moved = answers.drift + rng.normal(size=6) * [3, 3, 5, 0.2, 0.2, 0.2]
    same = measured(robot, truth, answers.drift, rng, cell=answers.cell)
    other = measured(robot, truth, moved, rng, cell=answers.cell)
    earlier = _earlier(world, world.excitation, answers.drift, answers.cell, [2000 + seed, 2])
    samples, later = (
        WrenchSamples.from_pose_causal(
            WristRecording.of_joints(run, robot, SENSOR), settle_s=0.3, earlier=earlier
        )
        for run in (same, other)
    )
    offline = WrenchSamples.from_joints(robot, other, SENSOR, decimate=False)
    payloads = answers.payloads
    return Contacts(
        {key: contact_force(payloads[key], samples) for key in METHODS if key != "method_1_moving"},
        contact_force(payloads["proposed"], later),
        contact_force(payloads["proposed"], later, rezero="start"),
        contact_force(payloads["ours"], offline, rezero="start"),
    )


TURNED_DEGREES = 1.21
"""Change of the base's tilt between identification and the test at high speed, as assumed."""
TURNED_SLOW_DEGREES = 1.25
"""The same at low speed."""
DIRECTION_DEGREES = 94.0
"""Its direction, from that of the identified tilt."""


def tilt_change(degrees: float, direction_degrees: float = DIRECTION_DEGREES) -> Array:
    """A change of U and V, (2,) [rad].

    Args:
        degrees: its size
        direction_degrees: from the direction of the identified tilt
    """
    direction = np.radians(direction_degrees)
    along = TILT / np.linalg.norm(TILT)
    across = np.array([along[1], -along[0]])
    return np.asarray(
        np.radians(degrees) * (np.cos(direction) * along + np.sin(direction) * across)
    )


@dataclass(frozen=True, eq=False)
class ChangedCell:
    """What differs in the test motion from the cell that was identified.

    Attributes:
        turned: change of the base's U and V, (2,) [rad]
        zero: change of the sensor's zero, (6,) [N, Nm]
        joint_error: of the angles that the controller knows, (6,) [rad]
        scale: change of the sensor's scales
    """

    turned: Array = field(default_factory=lambda: np.zeros(2))
    zero: Array = field(default_factory=lambda: np.zeros(6))
    joint_error: Array = field(default_factory=lambda: np.zeros(6))
    scale: float = 0.0


@dataclass(frozen=True, eq=False)
class ForcesLeft:
    """The contact force of a test motion without contact, in a cell that has changed.

    Attributes:
        forces: by method
        again: of the proposed method after the second compensation, eq. (44)
    """

    forces: dict[str, ContactForce]
    again: ContactForce


def samples_left(
    world: World, answers: Answers, changed: ChangedCell, seed: int, *, speed: str = "fast"
) -> WrenchSamples:
    """Wrench and motion of a test motion without contact, by the paper's causal filter.

    Args:
        world: what really happened
        answers: payloads of one seed
        changed: since they were identified
        seed: of the noise
        speed: 'fast' or 'slow'
    """
    robot = world.robot
    rng = np.random.default_rng(3000 + seed)
    truth = base_turned(robot, getattr(world, speed), changed.turned)
    truth = replace(truth, wrench=(1 + changed.scale) * truth.wrench)
    cell = replace(answers.cell, joint_error=answers.cell.joint_error + changed.joint_error)
    run = measured(robot, truth, answers.drift + changed.zero, rng, cell=cell)
    return WrenchSamples.from_pose_causal(
        WristRecording.of_joints(run, robot, SENSOR),
        settle_s=0.3,
        earlier=_earlier(world, world.excitation, answers.drift, answers.cell, [3000 + seed, 2]),
    )


def forces_left(
    world: World, answers: Answers, changed: ChangedCell, seed: int, *, speed: str = "fast"
) -> ForcesLeft:
    """The forces of a test motion.

    Args:
        world: what really happened
        answers: payloads of one seed
        changed: since they were identified
        seed: of the noise
        speed: 'fast' or 'slow'
    """
    samples = samples_left(world, answers, changed, seed, speed=speed)
    methods = ("method_2", "proposed", "ours")
    return ForcesLeft(
        {key: contact_force(answers.payloads[key], samples) for key in methods},
        contact_force(answers.payloads["proposed"], samples, rezero="start"),
    )


def strong_noise(
    world: World, answers: list[Answers], *, progress: Progress
) -> dict[str, tuple[float, float]]:
    """Median errors of inertia [kg m^2] and centre of mass [m] by estimator, strong noise.

    Encoders have 18 bits and their positions are differentiated twice without a filter.

    Args:
        world: what really happened
        answers: of each seed, for drift and static stage
        progress: called with the share that is done
    """
    errors: dict[str, list[tuple[float, float]]] = {name: [] for name in STRONG}
    for seed, answer in enumerate(answers):
        rng = np.random.default_rng(5000 + seed)
        recording = measured(world.robot, world.excitation, answer.drift, rng, step=_ENCODER_STEP)
        samples = WrenchSamples.from_joints(world.robot, recording, SENSOR, cutoff_hz=None)
        regression = regression_of_ten(samples, answer.static)
        for name in STRONG:
            if name == "ml":
                value = weigh_dynamic(samples, answer.static).unconstrained.vector
            else:
                value = ESTIMATORS[name].estimate(regression).value[:10]
            inertia = float(np.linalg.norm(value[4:] - LOAD.vector[4:]))
            errors[name].append((inertia, float(np.linalg.norm(value[1:4] / value[0] - LOAD.com))))
        progress((seed + 1) / len(answers))
    return {
        name: (float(m[0]), float(m[1]))
        for name, x in errors.items()
        for m in [np.median(x, axis=0)]
    }
