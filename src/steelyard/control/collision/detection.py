"""Contacts from residuals: when, at which joint, in which direction, and on which link at the earliest.

A contact begins when a residual, less the friction that nobody can know, stays beyond its threshold for
`debounce_s`, and ends when all of them stay below `release` of theirs for `release_s`. A contact on link i
bends no joint beyond i, so the last joint with a residual beyond its threshold names the most proximal link
that explains it; the contact may sit further out, where it does not turn the next joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.arrays import Array
from steelyard.control.collision.learning import missing_friction
from steelyard.control.collision.observer import Observer, ObserverSample, ObserverState
from steelyard.control.collision.residuals import Residuals, observe
from steelyard.control.collision.thresholds import Thresholds, residual_std
from steelyard.errors import InvalidSamples
from steelyard.recording import Recording
from steelyard.robot import DriveModel

_ROUNDING_S = 1e-6  # of a clock
_AFTERWARDS_S = 0.5  # in which an arm swings after a contact
_MOSTLY_FREE = 0.5  # share of a recording beyond which contacts are rather errors


@dataclass(frozen=True)
class Contact:
    """One contact.

    Attributes:
        start_s: when the residual went beyond its threshold, [s]
        detected_s: when it was sure, [s]
        end_s: when the last residual fell below, or the last sample so far, [s]
        joint: where it shows most, for its threshold
        direction: 1 along the joint's axis, -1 against it
        peak: largest residual of that joint, signed [Nm, N or W]
        ratio: the same without friction's slack, in thresholds, at the peak
        joints: all that went beyond their thresholds, from the base outwards
        link: the most proximal link that explains it; None where the residual does not say
    """

    start_s: float
    detected_s: float
    end_s: float
    joint: str
    direction: int
    peak: float
    ratio: float
    joints: tuple[str, ...]
    link: str | None


class DetectorState(NamedTuple):
    """Where a detector stands; a value.

    Attributes:
        observer: state of its observer
        threshold: at this state, (m,)
        over_since: since when each residual is beyond its threshold, (m,) [s]; NaN where it is not
        last_over_s: when a residual was last beyond its release, [s]
        contact: the one that goes on; None when free
        ended: the one that ended with this sample; None when none did
    """

    observer: ObserverState
    threshold: Array
    over_since: Array
    last_over_s: float
    contact: Contact | None
    ended: Contact | None


@dataclass(frozen=True, eq=False)
class Detector:
    """Finds contacts, one sample at a time.

    Attributes:
        observer: of the arm
        thresholds: of its residuals
        debounce_s: how long a residual must stay beyond its threshold, [s]
        release: share of the threshold below which a contact ends
        release_s: how long all residuals must stay below, [s]
    """

    observer: Observer
    thresholds: Thresholds
    debounce_s: float = 0.008
    release: float = 0.7
    release_s: float = 0.2

    def __post_init__(self) -> None:
        if not (self.debounce_s >= 0 and 0 < self.release <= 1 and self.release_s >= 0):
            raise InvalidSamples(
                "debounce_s and release_s must not be negative, release between 0 and 1; got"
                f" {self.debounce_s}, {self.release_s}, {self.release}"
            )
        if self.thresholds.level.shape[1] != len(self.observer.names):
            raise InvalidSamples(
                f"{self.thresholds.level.shape[1]} thresholds for {len(self.observer.names)} residuals:"
                " they were made for another observer"
            )

    def init(self, sample: ObserverSample) -> DetectorState:
        """The state at the first sample: free.

        Args:
            sample: the first one
        """
        state = self.observer.init(sample)
        return self._free(state, self._std(state, sample))

    def _free(self, seen: ObserverState, std: Array) -> DetectorState:
        never = np.full(len(self.observer.names), np.nan)
        return DetectorState(seen, self.thresholds.at(std), never, -np.inf, None, None)

    def step(self, state: DetectorState, sample: ObserverSample) -> DetectorState:
        """The next state.

        Args:
            state: as `init` or `step` gave it
            sample: the next one
        """
        seen = self.observer.step(state.observer, sample)
        return self.judge(state, seen, self._std(seen, sample))

    def judge(self, state: DetectorState, seen: ObserverState, std: Array) -> DetectorState:
        """The next state from what the observer has seen.

        Args:
            state: as `init` or `step` gave it
            seen: the next state of the observer
            std: of its residuals that an uncertain model makes, (2, m)
        """
        threshold = self.thresholds.at(std)
        ratio = seen.beyond_friction / threshold
        size = np.abs(ratio)
        since = np.where(size > 1, np.fmin(state.over_since, seen.t), np.nan)
        last = seen.t if size.max() > self.release else state.last_over_s
        sure = seen.t - since >= self.debounce_s - _ROUNDING_S
        contact, ended = state.contact, None
        if contact is not None and seen.t - last > self.release_s:
            contact, ended = None, contact
        if contact is not None or sure.any():
            contact = self._grown(contact, seen, ratio, since, sure, last)
        return DetectorState(seen, threshold, since, last, contact, ended)

    def _std(self, state: ObserverState, sample: ObserverSample) -> Array:
        motion = np.array([sample.q, state.v, state.a], dtype=float)[None]
        return np.asarray(residual_std(self.observer, motion, state.memory)[0])

    def _grown(
        self,
        contact: Contact | None,
        seen: ObserverState,
        ratio: Array,
        since: Array,
        sure: NDArray[np.bool_],
        last_over_s: float,
    ) -> Contact:
        """The contact with this sample in it; a new one when there was none."""
        names = self.observer.names
        j = int(np.abs(ratio).argmax())
        if contact is None:
            contact = Contact(float(np.nanmin(since)), seen.t, seen.t, "", 0, 0.0, 0.0, (), None)
        now = [name for name, certain in zip(names, sure, strict=True) if certain]
        joints = tuple(name for name in names if name in contact.joints or name in now)
        contact = replace(contact, end_s=last_over_s, joints=joints, link=self._link(joints))
        if abs(ratio[j]) <= contact.ratio:
            return contact
        peak = float(seen.residual[j])
        way = int(np.sign(ratio[j]))
        return replace(contact, joint=names[j], direction=way, peak=peak, ratio=float(abs(ratio[j])))

    def _link(self, joints: tuple[str, ...]) -> str | None:
        robot = self.observer.arm.robot
        last = [i for i, name in enumerate(robot.joint_names) if name in joints]
        return robot.link_names[last[-1]] if last else None


@dataclass(frozen=True, eq=False)
class Detections:
    """The contacts of a recording.

    Attributes:
        contacts: in the order of time
        residuals: row by row
        threshold: row by row, (N, m)
        doubts: what stands against trusting them, a sentence each
        status: how many, and of which thresholds, a sentence
    """

    contacts: tuple[Contact, ...]
    residuals: Residuals
    threshold: Array
    doubts: tuple[str, ...]
    status: str


def detect(detector: Detector, recording: Recording, *, drive: DriveModel | None = None) -> Detections:
    """The contacts of a whole recording, the same as step by step.

    Args:
        detector: observer and thresholds
        recording: as measured; its steps may vary, a hole is refused
        drive: that makes torques of motor currents; needed where only currents were recorded
    """
    observer = detector.observer
    residuals = observe(observer, recording, drive=drive)
    motion = np.stack([residuals.q, residuals.v, residuals.a], axis=1)
    std = residual_std(observer, motion, observer.arm.friction.init(residuals.q[0], residuals.v[0]))
    states = [detector._free(residuals.states[0], std[0])]
    for seen, deviation in zip(residuals.states[1:], std[1:], strict=True):
        states.append(detector.judge(states[-1], seen, deviation))
    contacts = [state.ended for state in states if state.ended is not None]
    if states[-1].contact is not None:
        contacts.append(states[-1].contact)
    threshold = np.array([state.threshold for state in states])
    doubts = _doubts(detector, contacts, residuals)
    count = f"{len(contacts)} contact{'' if len(contacts) == 1 else 's'}"
    status = f"{count} in {residuals.t[-1]:.1f} s; thresholds {detector.thresholds.status}"
    return Detections(tuple(contacts), residuals, threshold, doubts, status)


def _doubts(detector: Detector, contacts: Sequence[Contact], residuals: Residuals) -> tuple[str, ...]:
    """What stands against trusting the contacts, a sentence each."""
    observer = detector.observer
    doubts = list(detector.thresholds.doubts(residuals, _away_from(contacts, residuals.t)))
    if words := missing_friction(observer, residuals):
        doubts.append(words)
    lasts = float(residuals.t[-1] - residuals.t[0])
    if lasts < observer.settling_s:
        doubts.append(
            f"the recording lasts {lasts:.2g} s, the observer needs {observer.settling_s:.2g} s to see a"
            " contact whole: record longer"
        )
    share = sum(contact.end_s - contact.start_s for contact in contacts) / lasts
    if share > _MOSTLY_FREE:
        doubts.append(
            f"{100 * share:.0f} % of the recording would be contact: rather the arm carries what the model"
            " does not know, or model or payload are another arm's, or torques have another sign or unit"
        )
    return tuple(doubts)


def _away_from(contacts: Sequence[Contact], t: Array) -> NDArray[np.bool_]:
    """Which times lie away from contacts, (N,)."""
    free = np.ones(len(t), dtype=bool)
    for contact in contacts:
        free &= (t < contact.start_s - _AFTERWARDS_S) | (t > contact.end_s + _AFTERWARDS_S)
    return free
