"""Reaction to a contact: stop on the path, rest, resume, with continuous acceleration.

A motion q_p is followed with the path time s(t) instead of t, at the pace r = s':

    q = q_p(s),    v = r q_p'(s),    a = r^2 q_p''(s) + r' q_p'(s)

so the arm stays on its path, and its acceleration is continuous where r' is. From (r_0, r_0') to
(r_1, 0) within T, with x = (t - t_0) / T,

    r = r_0 + (3 x^2 - 2 x^3) (r_1 - r_0) + (x - 2 x^2 + x^3) T r_0'

which begins with the current slope, even if a contact occurs while the arm is stopping or resuming.
s is the exact integral of this polynomial. A reaction stops (r_1 = 0 within `stop_s`), rests for
`rest_s` after the last sample of a contact, and resumes (r_1 = 1 within `resume_s`). gaz2017
section VI rests 2 s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard.control.collision._detection import Contact, Detector, DetectorState
from steelyard.errors import InvalidSamples
from steelyard.recording import Sample


class Pace(NamedTuple):
    """The state of an arm on its path.

    Attributes:
        t: time, [s]
        s: path time, [s]
        rate: r
        slope: r', [1/s]
        phase: of the reaction
        contact: the current or latest one; None before the first
        free_s: end of the latest contact, [s]
        begin: (t_0, r_0, r_0') of the current change of pace
    """

    t: float
    s: float
    rate: float = 1.0
    slope: float = 0.0
    phase: Literal["moving", "stopping", "resting", "resuming"] = "moving"
    contact: Contact | None = None
    free_s: float = -np.inf
    begin: tuple[float, float, float] = (0.0, 1.0, 0.0)


@dataclass(frozen=True)
class Reaction:
    """Settings of the reaction to contacts.

    Attributes:
        stop_s: duration of the stop, [s]
        rest_s: time at rest after the end of a contact, [s]
        resume_s: duration of the return to full pace, [s]
        on_contact: called once with each new contact; returns the time to rest after it, [s], `inf`
            to stay at rest; `rest_s` by default
    """

    stop_s: float = 0.2
    rest_s: float = 2.0
    resume_s: float = 1.0
    on_contact: Callable[[Contact], float] | None = None

    def __post_init__(self) -> None:
        if not (0 < self.stop_s < np.inf and 0 < self.resume_s < np.inf and self.rest_s >= 0):
            raise InvalidSamples(
                "stop_s and resume_s must be positive, rest_s not negative; got"
                f" {self.stop_s}, {self.resume_s}, {self.rest_s}"
            )

    def init(self, t: float = 0.0, s: float = 0.0) -> Pace:
        """The pace of a moving arm.

        Args:
            t: time, [s]
            s: path time, [s]
        """
        return Pace(t, s)

    def step(
        self, pace: Pace, t: float, contact: Contact | None, rest_s: float | None = None
    ) -> Pace:
        """The pace at a later time.

        Args:
            pace: at an earlier time
            t: time, [s]
            contact: at that time; None for none
            rest_s: time at rest after the latest contact, [s]; `rest_s` of the reaction by default
        """
        pace = self._moved(pace, t)
        if contact is not None:
            pace = pace._replace(contact=contact, free_s=t)
            if pace.phase in ("moving", "resuming"):
                pace = pace._replace(phase="stopping", begin=(t, pace.rate, pace.slope))
        if rest_s is None:
            rest = self.rest_s
        else:
            rest = rest_s
        if pace.phase == "resting" and contact is None and t - pace.free_s >= rest:
            pace = pace._replace(phase="resuming", begin=(t, 0.0, 0.0))
        return pace

    def _moved(self, pace: Pace, t: float) -> Pace:
        """The pace at time t without a new contact; s is exact if the phase does not change."""
        h = t - pace.t
        if pace.phase in ("moving", "resting"):
            return pace._replace(t=t, s=pace.s + h * pace.rate)
        (t0, r0, slope0) = pace.begin
        stops = pace.phase == "stopping"
        if stops:
            T = self.stop_s
            target = 0.0
        else:
            T = self.resume_s
            target = 1.0
        x = min(1.0, (t - t0) / T)
        rate = r0 + (3 * x**2 - 2 * x**3) * (target - r0) + (x - 2 * x**2 + x**3) * T * slope0
        slope = 6 * (x - x**2) * (target - r0) / T + (1 - 4 * x + 3 * x**2) * slope0
        s = pace.s + h * (pace.rate + rate) / 2 + h**2 * (pace.slope - slope) / 12
        if x < 1.0:
            return pace._replace(t=t, s=s, rate=rate, slope=slope)
        return pace._replace(
            t=t, s=s, rate=target, slope=0.0, phase="resting" if stops else "moving"
        )


class Guard:
    """A detector with a reaction, for a controller that asks for the pace with each sample.

    Attributes:
        pace: the current one
        contacts: all detected contacts, as of their detection
    """

    def __init__(self, detector: Detector, reaction: Reaction | None = None) -> None:
        self._detector = detector
        self._reaction = reaction or Reaction()
        self._state: DetectorState | None = None
        self._rest_s = self._reaction.rest_s
        self.pace = self._reaction.init()
        self.contacts: list[Contact] = []

    def look(self, t: float, q: Array, v: Array, tau: Array) -> None:
        """Processes a sample of the sensors; times must increase.

        Args:
            t: time, [s]
            q: joint position, (n,) [rad or m]
            v: joint velocity, (n,) [rad/s or m/s]
            tau: torque that the drive applies to the joint, (n,) [Nm or N]
        """
        sample = Sample(t, np.array([q, v], dtype=float), np.asarray(tau, dtype=float))
        if self._state is None:
            self._state = self._detector.init(sample)
            return
        before = self._state
        self._state = self._detector.step(self._state, sample)
        found = self._state.contact
        if found is not None and before.contact is None:
            self.contacts.append(found)
            react = self._reaction.on_contact
            if react is None:
                self._rest_s = self._reaction.rest_s
            else:
                self._rest_s = float(react(found))

    def go(self, t: float) -> tuple[float, float, float]:
        """Path time s [s], pace r and its slope r' [1/s].

        Args:
            t: time, not before that of the previous call, [s]
        """
        if self._state is None:
            contact = None
        else:
            contact = self._state.contact
        self.pace = self._reaction.step(self.pace, t, contact, self._rest_s)
        return self.pace.s, self.pace.rate, self.pace.slope
