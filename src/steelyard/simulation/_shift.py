"""A simulated shift: cycles of pick and place, with faults and with friction that falls with heat.

A cycle is a pause at the pick, in whose middle the gripper closes; the motion of the carry; a pause
at the place, in whose middle it opens; and the motion back. Motions are splines of fifth order
through the given postures, at rest with zero acceleration at both ends. The part becomes part of
the arm when the gripper closes, and leaves it when it opens, when it is lost or when it slips.

Friction of the drives is the arm's own times 1 + c exp(-t / T): cold drives have more of it. During
a long pause they cool down again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, NamedTuple, Self

import numpy as np
from scipy.interpolate import make_interp_spline

from steelyard._arrays import Array
from steelyard._codec import Value
from steelyard._kinds import NOT_NEGATIVE, POSITIVE, Range, Shape
from steelyard.errors import InvalidTrajectory
from steelyard.inertia import InertialParameters
from steelyard.payload import Part
from steelyard.recording import Recording
from steelyard.robot import DriveModel, RobotModel
from steelyard.simulation._arm import BodyPush, ForwardDynamics, Push
from steelyard.simulation._plant import Instant, Plant
from steelyard.simulation._run import (
    SimulationOptions,
    Truth,
    _Command,
    _JointController,
    _recording,
    _run,
    _steps,
)
from steelyard.simulation._sensors import SensorModel

FaultKind = Literal["missing", "double", "lost", "slipped", "heavier", "other"]
_CONTACT_S = 0.08  # [s], how long a part touches its support after the lift begins
_FRICTION_STEP_S = 20.0  # [s], between two changes of friction
_SLIP = np.array([0.04, 0.0, 0.02])  # [m], in the flange frame


@dataclass(frozen=True)
class PlannedFault(Value, error=InvalidTrajectory, partial=True):
    """A fault of one pick.

    Attributes:
        pick: number of the pick, from 1
        kind: 'missing', 'double', 'lost' (on the way), 'slipped' (by 45 mm), 'heavier' or 'other'
        share: of the mass, by which a heavier part is heavier
        part: name of the part that is picked instead, for 'other'
        at: when a part is lost or slips, as a share of the carry's duration
    """

    pick: Annotated[int, Range(1)]
    kind: FaultKind
    share: float = 0.08
    part: str = ""
    at: Annotated[float, Range(0.0, 1.0)] = 0.5


@dataclass(frozen=True)
class PlannedPause(Value, error=InvalidTrajectory):
    """A pause of the shift.

    Attributes:
        after: number of the pick after which the arm rests, from 1
        seconds: how long [s]
    """

    after: Annotated[int, Range(1)]
    seconds: Annotated[float, POSITIVE]


@dataclass(frozen=True, eq=False)
class ShiftPlan(Value, error=InvalidTrajectory, partial=True):
    """What an arm does in a shift.

    Attributes:
        carry: postures from the pick to the place, (k, n) [rad or m], k >= 2
        parts: that are picked in turn
        back: postures from the place to the pick, (k, n) [rad or m]; those of `carry` in reverse
            order by default
        carry_s: duration of the carry [s]
        back_s: duration of the way back [s]
        pause_s: rest at the pick and at the place [s]
        cycles: number of picks
        posture_std: standard deviation of the pick's posture from cycle to cycle, of each joint
            [rad or m]; 0 for a fixed path
        mass_std: standard deviation of the mass of good parts, relative
        com_std: standard deviation of each coordinate of their centres [m]
        contact_force: downward force on a part that sticks to its support while it is lifted, and
            upward force while it is placed [N]
        cold_friction: additional friction of a cold arm, relative
        warm_up_s: time constant of the drives' temperature [s]
        faults: of single picks
        pauses: of the shift
    """

    carry: Annotated[Array, Shape("k", "n")]
    parts: tuple[Part, ...]
    back: Annotated[Array | None, Shape("m", "n")] = None
    carry_s: Annotated[float, POSITIVE] = 2.0
    back_s: Annotated[float, POSITIVE] = 2.0
    pause_s: Annotated[float, POSITIVE] = 0.4
    cycles: Annotated[int, Range(1)] = 20
    posture_std: Annotated[float, NOT_NEGATIVE] = 0.0
    mass_std: Annotated[float, NOT_NEGATIVE] = 0.0
    com_std: Annotated[float, NOT_NEGATIVE] = 0.0
    contact_force: Annotated[float, NOT_NEGATIVE] = 0.0
    cold_friction: Annotated[float, NOT_NEGATIVE] = 0.0
    warm_up_s: Annotated[float, POSITIVE] = 1200.0
    faults: tuple[PlannedFault, ...] = ()
    pauses: tuple[PlannedPause, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.carry) < 2 or not self.parts:
            raise InvalidTrajectory("a shift needs `carry` with two or more postures, and `parts`")
        if self.back is not None and not np.array_equal(self.back[[0, -1]], self.carry[[-1, 0]]):
            raise InvalidTrajectory(
                "`back` begins at the last posture of `carry` and ends at its first one"
            )
        names = [part.name for part in self.parts]
        for fault in self.faults:
            if fault.pick > self.cycles:
                raise InvalidTrajectory(
                    f"a fault at pick {fault.pick}, but there are {self.cycles} picks"
                )
            if fault.kind == "other" and fault.part not in names:
                raise InvalidTrajectory(
                    f"pick {fault.pick}: there is no part '{fault.part}', but {', '.join(names)}"
                )

    def part_of(self, pick: int) -> Part:
        """The part that belongs to a pick, numbered from 1."""
        return self.parts[(pick - 1) % len(self.parts)]

    def fault_of(self, pick: int) -> PlannedFault | None:
        """The fault of a pick, numbered from 1; None for a good one."""
        return next((fault for fault in self.faults if fault.pick == pick), None)


class TruePick(NamedTuple):
    """What was really picked.

    Attributes:
        number: from 1
        close_s: when the gripper closes [s]
        open_s: when it opens [s]
        part: name of the expected part
        mass: that was picked [kg]; 0 for none
        fault: 'good' or the kind of the fault
    """

    number: int
    close_s: float
    open_s: float
    part: str
    mass: float
    fault: str


@dataclass(frozen=True, eq=False)
class ShiftSimulation:
    """A simulated shift.

    Attributes:
        recording: readings of the sensors, with the gripper: 1 while it is closed
        picks: what was really picked
        truth: true signals at the same times; its payload is that at the end
    """

    recording: Recording
    picks: tuple[TruePick, ...]
    truth: Truth


def simulate_shift(
    robot: RobotModel,
    plan: ShiftPlan,
    *,
    sensors: SensorModel | None = None,
    rate_hz: float = 125.0,
    seed: int = 0,
    options: SimulationOptions | None = None,
) -> ShiftSimulation:
    """A shift of an arm in MuJoCo.

    Args:
        robot: the empty arm with its gripper; its friction is that of warm drives
        plan: what it does
        sensors: errors of its sensors; without a wrist sensor by default
        rate_hz: rows of the recording per second [Hz]
        seed: of noise, postures and masses
        options: of the simulation
    """
    options = options or SimulationOptions()
    sensors = sensors or SensorModel(wrist_sensor=False)
    sensors.require_fit(robot.n)
    path = _Path.of(plan, robot, seed)
    every, t = _steps(path.duration_s, rate_hz, options.step_s)
    command = _Command.of(path, t, robot.n)
    plant = Plant(
        robot,
        None,
        step_s=command.step_s,
        postures=command.q[:: command.stride],
        start=np.array([command.q[0], command.v[0], command.a[0]]),
    )
    servo = _JointController(robot, command, plant, options.bandwidth_hz)
    changes = [*path.changes, *_frictions(plan, robot, path)]
    changing = _ChangingPlant(plant, sorted(changes, key=lambda change: change.t_s))
    q, rows = _run(changing, servo, t=t, every=every, pushes=path.contacts(robot), options=options)
    truth = Truth(
        t=t[: len(q) : every],
        **rows,
        payload=plant.arm.payload,
        gravity_base=robot.gravity_base,
    )
    velocity = sensors.velocity(q, command.v[0], step_s=command.step_s)
    measured = truth.v if velocity is None else velocity[::every]
    recording = _recording(robot, command.every(every), truth, measured, sensors, seed)
    gripper = path.gripper(truth.t)
    notes = (f"a shift of {plan.cycles} picks; seed {seed}",)
    return ShiftSimulation(
        replace(recording, gripper=gripper[:, None], notes=notes), path.picks, truth
    )


class _ScheduledChange(NamedTuple):
    """Something that changes at a time [s]: the body at the flange, or the drives."""

    t_s: float
    body: InertialParameters | None = None
    drive: DriveModel | None = None


class _ChangingPlant(Plant):
    """A plant whose payload and drives change in time; positions and speeds do not jump."""

    def __init__(self, plant: Plant, changes: list[_ScheduledChange]) -> None:
        self.__dict__.update(plant.__dict__)
        self._changes = changes
        self._now_s = 0.0

    def step(self, tau: Array, pushes: Sequence[BodyPush]) -> Instant:
        """Advances by one step, after the changes that are due."""
        while self._changes and self._changes[0].t_s <= self._now_s + 1e-9:
            self._apply(self._changes.pop(0))
        self._now_s += self._h
        return super().step(tau, pushes)

    def _apply(self, change: _ScheduledChange) -> None:
        if change.drive is not None:
            self.robot = self.robot.with_drive(change.drive)
            self._friction = self._friction.with_drive(change.drive)
        elif change.body is None:
            self.arm = ForwardDynamics(self.robot, None)
        else:
            self.arm = ForwardDynamics(self.robot, change.body)


@dataclass(frozen=True, eq=False)
class _Leg:
    """One motion or pause: from start_s to end_s [s], with a spline of the positions."""

    start_s: float
    end_s: float
    spline: Callable[..., Array]


@dataclass(frozen=True, eq=False)
class _Path:
    """The motion of a shift, and what happens on it."""

    legs: tuple[_Leg, ...]
    picks: tuple[TruePick, ...]
    changes: tuple[_ScheduledChange, ...]
    pauses: tuple[tuple[float, float], ...]
    contact_force: float
    motions: tuple[tuple[float, float], ...] = field(default=())

    @property
    def duration_s(self) -> float:
        return self.legs[-1].end_s

    @classmethod
    def of(cls, plan: ShiftPlan, robot: RobotModel, seed: int) -> Self:
        """The path of a plan with random postures and masses."""
        generator = np.random.default_rng([seed, 77])
        maker = _PathMaker(plan, robot, generator)
        for pick in range(1, plan.cycles + 1):
            maker.add_cycle(pick)
        return cls(
            tuple(maker.legs),
            tuple(maker.picks),
            tuple(maker.changes),
            tuple(maker.pauses),
            plan.contact_force,
            tuple(maker.motions),
        )

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations at times t, (K, n) each."""
        ends = np.array([leg.end_s for leg in self.legs])
        which = np.minimum(np.searchsorted(ends, t, side="left"), len(ends) - 1)
        n = len(self.legs[0].spline(0.0))
        out = np.zeros((3, len(t), n))
        for k in np.unique(which):
            leg = self.legs[k]
            rows = which == k
            since = np.clip(t[rows] - leg.start_s, 0.0, leg.end_s - leg.start_s)
            for order in range(3):
                out[order, rows] = leg.spline(since, order)
        return out[0], out[1], out[2]

    def gripper(self, t: Array) -> Array:
        """1 while the gripper is closed, else 0, (N,)."""
        closed = np.zeros(len(t))
        for pick in self.picks:
            closed[(t >= pick.close_s) & (t < pick.open_s)] = 1.0
        return closed

    def contacts(self, robot: RobotModel) -> list[Push]:
        """The forces of a support on parts that are lifted and placed."""
        if self.contact_force == 0:
            return []
        down = np.array([0.0, 0.0, -self.contact_force])
        out = []
        for pick, (begin_s, end_s) in zip(self.picks, self.motions, strict=True):
            if pick.mass > 0:
                out.append(Push(begin_s, _CONTACT_S, robot.flange, down))
                out.append(Push(end_s - _CONTACT_S, _CONTACT_S, robot.flange, -down))
        return out


class _PathMaker:
    """Collects legs, picks and changes cycle by cycle."""

    def __init__(self, plan: ShiftPlan, robot: RobotModel, generator: np.random.Generator) -> None:
        self._plan = plan
        self._robot = robot
        self._generator = generator
        self._now_s = 0.0
        self._pick_posture = np.array(plan.carry[0])
        self.legs: list[_Leg] = []
        self.picks: list[TruePick] = []
        self.changes: list[_ScheduledChange] = []
        self.pauses: list[tuple[float, float]] = []
        self.motions: list[tuple[float, float]] = []

    def add_cycle(self, pick: int) -> None:
        """One cycle: pause, carry, pause, way back."""
        plan = self._plan
        close_s = self._rest(self._pick_posture, plan.pause_s)
        carry = np.array(plan.carry)
        carry[0] = self._pick_posture
        begin_s = self._now_s
        self._move(carry, plan.carry_s)
        self.motions.append((begin_s, self._now_s))
        open_s = self._rest(carry[-1], plan.pause_s)
        self._add_part(pick, close_s, open_s, begin_s)
        back = np.array(plan.carry[::-1] if plan.back is None else plan.back)
        shift = self._generator.normal(0.0, 1.0, back.shape[1]) * plan.posture_std
        self._pick_posture = np.array(plan.carry[0]) + shift
        back[-1] = self._pick_posture
        self._move(back, plan.back_s)
        for pause in plan.pauses:
            if pause.after == pick:
                start_s = self._now_s
                self._rest(self._pick_posture, pause.seconds)
                self.pauses.append((start_s, self._now_s))

    def _add_part(self, pick: int, close_s: float, open_s: float, begin_s: float) -> None:
        plan = self._plan
        part = plan.part_of(pick)
        fault = plan.fault_of(pick)
        mass = part.mass * (1 + plan.mass_std * self._generator.normal())
        com = np.array(part.com) + plan.com_std * self._generator.normal(size=3)
        kind = "good" if fault is None else fault.kind
        picked = part
        if fault is not None and fault.kind == "other":
            picked = next(one for one in plan.parts if one.name == fault.part)
            mass = picked.mass * mass / part.mass
            com = com - np.array(part.com) + np.array(picked.com)
        mass *= {"missing": 0.0, "double": 2.0}.get(kind, 1.0)
        if fault is not None and kind == "heavier":
            mass *= 1 + fault.share
        body = replace(picked, com=tuple(com)).body(mass, self._robot.flange) if mass else None
        self.picks.append(TruePick(pick, close_s, open_s, part.name, mass, kind))
        self.changes.append(_ScheduledChange(close_s, body))
        self.changes.append(_ScheduledChange(open_s, None))
        if fault is not None and kind in ("lost", "slipped"):
            after = None
            if kind == "slipped":
                slipped = replace(picked, com=tuple(com + _SLIP))
                after = slipped.body(mass, self._robot.flange)
            self.changes.append(_ScheduledChange(begin_s + fault.at * plan.carry_s, after))

    def _rest(self, posture: Array, duration_s: float) -> float:
        """Adds a rest and returns its middle [s]."""
        place = np.array(posture)

        def spline(since_s: Array | float, order: int = 0) -> Array:
            values = place if order == 0 else np.zeros_like(place)
            return np.broadcast_to(values, (*np.shape(since_s), len(place)))

        self._add(spline, duration_s)
        return self._now_s - duration_s / 2

    def _move(self, postures: Array, duration_s: float) -> None:
        """Adds a motion through postures, in proportion to their distances."""
        way = np.abs(np.diff(postures, axis=0)).max(axis=1)
        if not (way > 0).all():
            raise InvalidTrajectory("two consecutive postures of a cycle are the same")
        at = duration_s * np.concatenate([[0.0], np.cumsum(way)]) / way.sum()
        still = [(1, np.zeros(postures.shape[1])), (2, np.zeros(postures.shape[1]))]
        spline = make_interp_spline(at, postures, k=5, bc_type=(still, still))
        self._add(lambda since_s, order=0: np.asarray(spline(since_s, order)), duration_s)

    def _add(self, spline: Callable[..., Array], duration_s: float) -> None:
        self.legs.append(_Leg(self._now_s, self._now_s + duration_s, spline))
        self._now_s += duration_s


def _frictions(plan: ShiftPlan, robot: RobotModel, path: _Path) -> list[_ScheduledChange]:
    """The drives of the arm as they warm up, and cool down in long pauses."""
    if plan.cold_friction == 0:
        return []
    cold = 1.0
    out = []
    times = np.arange(0.0, path.duration_s, _FRICTION_STEP_S)
    for t_s in times.tolist():
        pausing = any(start <= t_s < end for start, end in path.pauses)
        towards = 1.0 if pausing else 0.0
        out.append(_ScheduledChange(t_s, drive=_scaled(robot.drive, 1 + plan.cold_friction * cold)))
        cold = towards + (cold - towards) * float(np.exp(-_FRICTION_STEP_S / plan.warm_up_s))
    return out


def _scaled(drive: DriveModel, factor: float) -> DriveModel:
    return replace(
        drive,
        coulomb=factor**0.5 * np.asarray(drive.coulomb),
        viscous=factor * np.asarray(drive.viscous),
    )
