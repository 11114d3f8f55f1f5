"""The payload on a wrist sensor while the arm moves: `init`, `step`, `estimate`; states are values.

Samples are taken in windows of 0.2 s. A window in which the sensor stands still belongs to a rest;
a rest that has ended (its first and last window left out) is a posture, as in the static stage.
Other windows go into the sums (`sums`), and one step later the solution is found (`solve`). Each
window is first compared with what the load so far predicts: its summed residual r has

    cov r = N f Sw + Z C Z'        (long-run noise of N samples, and what is not known of the load)

and where r' cov^-1 r is far beyond chance, the window is not used: somebody touches the load, or it
is another one. Five such windows in a row that *a* load explains as well as before, drift and tilt
being those known, are another load: the one before goes to the history, and the sums start anew
from these five. Five that no load explains are a contact, and the next five are tried.

The contact force is the measured wrench less that of the load and the drift, with the covariance of
both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array, Indices
from steelyard._units import GRAVITY_DOWN, NORMAL_95
from steelyard.errors import InvalidSamples
from steelyard.inertia import InertialParameters
from steelyard.payload import Evidence, judge
from steelyard.payload._tracking import Counts, Episode
from steelyard.verdict import Doubt, DoubtKind
from steelyard.wrist._payload import WristPayload, drift_doubt, tilt_doubt, weak_inertia_doubt
from steelyard.wrist._recording import WristSensor
from steelyard.wrist._regressor import BaseGravity, feature_covariance
from steelyard.wrist._rest import Postures
from steelyard.wrist.tracking._path import WristSample
from steelyard.wrist.tracking._solve import FEWEST_BLOCKS, Solution, WristProblem
from steelyard.wrist.tracking._state import ROW, WristTrackerOptions, WristTrackerState, postures_of
from steelyard.wrist.tracking._sums import UNKNOWNS, Sums, lifted_numbers, lifted_rows

_CLOCK_ROUNDING_S = 1e-4
_LARGEST = 1e6  # SI: beyond, a number is corrupt
_ALMOST = 0.999  # of the sensor's range
_KNOWN_TILT = np.radians(2.0)  # standard deviation with which a tilt may be doubted
_TESTED = 10  # blocks: before, the noise is not known, and a change cannot be distinguished from it
_TRIAL = 5  # windows
_EXPLAINED = 3.0  # times the variance before: the residuals of a load that explains them
_FEWEST_REST = 5  # windows, of which the first and the last do not count
_MOST_REST = 50
_MOST_POSTURES = 32
_MOST_EPISODES = 1000
_SAME = np.cos(np.radians(1.0))
_STILL_ACCELERATION = 0.05  # [m/s^2], where the speed is not known
_LISTEN = 4  # blocks, after which the noise is judged anew in a step
_YOUNG_ROUNDS = 2  # of the solution in a step, while there are few windows


@dataclass(frozen=True, eq=False)
class WristTracker:
    """Weighs what hangs on a wrist sensor sample by sample. States are values; `step` changes none.

    Attributes:
        noise: standard deviation of a sample's wrench from the sensor's own noise, (6,) [N, Nm]
        sensor: what is known about it; its rotation on the flange must be
        gravity_base: gravity without a tilt, (3,) [m/s^2], in the base frame
        options: see `WristTrackerOptions`
        made_by: how samples are made, in sentences
    """

    noise: Array
    sensor: WristSensor = field(default_factory=WristSensor)
    gravity_base: Array = field(default_factory=lambda: np.array(GRAVITY_DOWN))
    options: WristTrackerOptions = field(default_factory=WristTrackerOptions)
    made_by: tuple[str, ...] = ()
    _gravity: BaseGravity = field(init=False, repr=False)

    def __post_init__(self) -> None:
        noise = np.array(self.noise, dtype=float)
        if noise.shape != (6,) or not (np.isfinite(noise).all() and (noise > 0).all()):
            raise InvalidSamples(f"noise must be six positive numbers, got {noise}")
        if not self.sensor.yaw_known:
            raise InvalidSamples(
                "online, the rotation of the sensor on the flange must be known: find it with"
                " postures at"
                " rest (weigh-wrist --static), and say it in the sensor's file"
            )
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "_gravity", BaseGravity(np.array(self.gravity_base, dtype=float)))

    # --- the three verbs

    def init(self) -> WristTrackerState:
        """The state before the first sample."""
        none = postures_of([], [], [], [], [])
        prior = np.zeros((0, UNKNOWNS + 1))
        known = self._problem(Sums.nothing(), none, prior).solved(rounds=1)
        return WristTrackerState(
            sums=Sums.nothing(),
            postures=none,
            prior=prior,
            known=known,
            window=np.zeros((0, ROW)),
            rest=np.zeros((0, 11)),
            trial=Sums.nothing(),
            odd_s=np.inf,
            stale=False,
            origin_s=np.inf,
            start_s=np.inf,
            last_s=-np.inf,
            odd=0,
            contacts=0,
            counts=Counts(),
            history=(),
        )

    def step(self, state: WristTrackerState, sample: WristSample) -> WristTrackerState:
        """The state after one more sample. Bad samples are counted and skipped."""
        row = sample.numbers()
        if fault := self._fault(row, state.last_s):
            return state._replace(counts=state.counts.plus(fault))
        t = float(row[0])
        if state.origin_s == np.inf:
            state = state._replace(origin_s=t, start_s=t)
        elif t - state.last_s > self.options.longest_gap_s:
            state = self._drained(state)._replace(counts=state.counts.plus("gaps"))
        if state.stale:
            state = self._fresh(state)
        elif (
            len(state.window)
            and t - state.window[0, 0] >= self.options.window_s - _CLOCK_ROUNDING_S
        ):
            state = self._judged(state)
        window = np.concatenate([state.window, row[None]])
        return state._replace(window=window, last_s=t, counts=state.counts.plus("used"))

    def estimate(self, state: WristTrackerState, *, physical: bool = True) -> WristPayload:
        """What hangs on the sensor now, with all samples of the state.

        Args:
            physical: look for the nearest real body, which takes much longer than a step; else the
                plain one
        """
        state = self._drained(state)
        known = self._solved(state, rounds=8)
        plain = InertialParameters.from_vector(known.value[:10], "sensor")
        now = np.eye(UNKNOWNS)
        now[10:16, 18:] = self._age(state) * np.eye(6)
        full = (now @ known.covariance @ now.T)[:18, :18]
        unknown = known.unknown[:18]
        full[unknown, unknown] = np.inf
        resting = not unknown[:4].any() and len(state.sums.blocks) < FEWEST_BLOCKS
        body, verdict = judge(
            Evidence(
                plain,
                full[:10, :10],
                unknown[:10],
                expected="postures at rest say nothing about the inertia" if resting else "",
                doubts=self._doubts(state, known),
                beyond_empty_arm=False,
                look_for_body=physical,
            )
        )
        if unknown[:10].any():
            weak = None
        else:
            weak = weak_inertia_doubt(body, full[:10, :10])
        if weak is not None:
            verdict = verdict.doubted(weak)
        words = self._words(state, known)
        return WristPayload(
            body,
            plain,
            verdict=replace(verdict, summary="; ".join(x for x in (words, verdict.summary) if x)),
            method="recursive restricted TLS",
            noise=np.sqrt(known.variance),
            full_covariance=full,
            drift=(now @ known.value)[10:16],
            inclination=known.value[16:18],
            nominal_gravity=self._gravity.nominal,
            trend=known.value[18:],
            trend_std=np.sqrt(np.diag(known.covariance)[18:]),
            T_flange_sensor=self.sensor.T_flange_sensor,
            made_by=self.made_by,
        )

    # --- cheap views

    def converged(self, state: WristTrackerState) -> bool:
        """Whether the mass is as sure as was asked for."""
        return self._half_width(self._drained(state).known) <= self.options.accuracy

    def contact(self, state: WristTrackerState) -> tuple[Array, Array]:
        """What the surroundings do to the load in the last sample, and its deviation, (6,) [N, Nm] each.

        In the sensor frame; as wide as nothing while the load is not known.
        """
        if not len(state.window):
            return np.zeros(6), np.full(6, np.inf)
        rows, _ = self._lifted(state, state.window[-1:])
        r, Z = self._residual(rows, state.known)
        covariance = Z @ state.known.covariance @ Z.T
        return r, np.sqrt(np.diag(covariance) + state.known.variance)

    def _half_width(self, known: Solution) -> float:
        if known.unknown[0]:
            std = np.inf
        else:
            std = np.sqrt(known.covariance[0, 0])
        return float(NORMAL_95 * std / max(abs(known.value[0]), 1e-12))

    def _doubts(self, state: WristTrackerState, known: Solution) -> tuple[Doubt, ...]:
        trend = known.value[18:]
        trend_std = np.sqrt(np.diag(known.covariance)[18:])
        tilt = [16, 17]
        unsure = bool((known.covariance[tilt, tilt] >= _KNOWN_TILT**2).any())
        doubts = [
            drift_doubt(trend, trend_std, modelled=True),
            None if unsure else tilt_doubt(known.value[16:18], self.gravity_base),
        ]
        if self._half_width(known) > self.options.accuracy:
            words = f"the mass is not yet known to {100 * self.options.accuracy:g} %"
            doubts.append(Doubt(DoubtKind.NOT_CONVERGED, words, blocks=False))
        if state.last_s - state.odd_s > 2 * _TRIAL * self.options.window_s:
            words = (
                f"since {state.odd_s:.2f} s something touches the load, or it is none that stays"
                " as it is:"
                " these samples do not count"
            )
            doubts.append(Doubt(DoubtKind.MOSTLY_CONTACT, words))
        return tuple(doubt for doubt in doubts if doubt is not None)

    def _words(self, state: WristTrackerState, known: Solution) -> str:
        half = self._half_width(known)
        if half < 1.0:
            share = f"{float(f'{100 * half:.2g}'):.15g} %"
        else:
            share = ""
        if half <= self.options.accuracy:
            sure = "converged: "
        else:
            sure = ""
        parts = [
            f"{sure}the mass is known to {share}" if share else "",
            f"{len(state.postures)} postures at rest" if len(state.postures) else "",
            f"payload {len(state.history) + 1}, since {state.start_s:.2f} s"
            if state.history
            else "",
            f"touched in {state.contacts} windows" if state.contacts else "",
            state.counts.words,
        ]
        return "; ".join(part for part in parts if part)

    # --- inside

    def _fault(self, row: Array, last_s: float) -> str:
        """Why a sample does not count; empty where it does."""
        if not np.isfinite(row[0]) or not np.abs(row[1:-1]).max() < _LARGEST:
            return "corrupt"
        if row[0] <= last_s:
            if row[0] == last_s:
                return "repeated"
            return "late"
        if (np.abs(row[1:7]) >= _ALMOST * self.sensor.reach).any():
            return "saturated"
        return ""

    def _age(self, state: WristTrackerState) -> float:
        if np.isfinite(state.origin_s):
            return state.last_s - state.origin_s
        return 0.0

    @property
    def _free(self) -> Indices:
        """Which of the unknowns are; the tilt of a level base is not."""
        every = np.arange(UNKNOWNS)
        if self.options.level:
            return np.delete(every, [16, 17])
        return every

    def _problem(
        self, sums: Sums, postures: Postures, prior: Array, fewest_blocks: int = FEWEST_BLOCKS
    ) -> WristProblem:
        noise = np.asarray(self.noise)
        return WristProblem(sums, postures, prior, self._gravity, noise, self._free, fewest_blocks)

    def _solved(self, state: WristTrackerState, rounds: int, *, listen: bool = True) -> Solution:
        problem = self._problem(state.sums, state.postures, state.prior)
        return problem.solved(state.known, rounds, listen=listen)

    def _lifted(self, state: WristTrackerState, window: Array) -> tuple[Array, Array]:
        """The lifted rows of samples, (6, N, 21), and the sum of their features' covariances, (12, 12)."""
        R = window[:, 7:16].reshape(-1, 3, 3)
        covariance = window[:, 25:106].reshape(-1, 9, 9)
        t = window[:, 0] - state.origin_s
        motion = window[:, 16:25]
        g = self._gravity.nominal
        rows = lifted_rows(t, window[:, 1:7], R, motion, g, covariance[:, 3:6, 3:6])
        return rows, feature_covariance(motion[:, 3:6], covariance).sum(axis=0)

    def _residual(self, rows: Array, known: Solution) -> tuple[Array, Array]:
        """The sum of residuals, (6,), and its slope by the unknowns, (6, 24)."""
        L, G = lifted_numbers(self._gravity, known.value)
        total = rows.sum(axis=1)
        Z = (total[:, None, :-1] @ G)[:, 0]
        return total[:, -1] - (total[:, :-1] * L).sum(axis=1), Z

    def _drained(self, state: WristTrackerState) -> WristTrackerState:
        """The state with every sample counted, and the present rest as a posture."""
        if state.stale:
            state = self._fresh(state)
        state = self._rested(self._judged(state))
        if state.stale:
            return self._fresh(state)
        return state

    def _judged(self, state: WristTrackerState) -> WristTrackerState:
        """The state at the end of a window: used, at rest, or not explained by the load."""
        window = state.window
        if not len(window):
            return state
        rows, features = self._lifted(state, window)
        state = state._replace(window=window[:0])
        if self._is_odd(state, rows):
            return self._tried(state, rows, features, float(window[0, 0]))
        if state.odd_s < np.inf:
            contacts = state.contacts + state.odd
            state = state._replace(odd_s=np.inf, odd=0, trial=Sums.nothing(), contacts=contacts)
        if self._is_still(window):
            mean = _mean(window)
            if len(state.rest) >= _MOST_REST or self._has_turned(state.rest, mean):
                state = self._rested(state)
            return state._replace(rest=np.concatenate([state.rest, mean[None]]))
        state = self._rested(state)
        state = state._replace(sums=state.sums.plus(rows, features))
        return state._replace(stale=True)

    def _fresh(self, state: WristTrackerState) -> WristTrackerState:
        """The state with a solution that knows all windows."""
        young = len(state.sums.blocks) < _TESTED
        if young:
            rounds = _YOUNG_ROUNDS
        else:
            rounds = 1
        listen = young or len(state.sums.blocks) % _LISTEN == 0
        return state._replace(known=self._solved(state, rounds, listen=listen), stale=False)

    def _is_still(self, window: Array) -> bool:
        rule = self.options.rest
        turning = np.linalg.norm(window[:, 19:22], axis=1).max()
        speed = window[:, 106].max()
        if np.isnan(speed):
            slow = np.linalg.norm(window[:, 16:19], axis=1).max() < _STILL_ACCELERATION
        else:
            slow = speed < rule.linear_speed
        return bool(slow and turning < rule.speed)

    def _has_turned(self, rest: Array, mean: Array) -> bool:
        """Whether a window is at rest elsewhere than the rest before."""
        turns = Rotation.from_rotvec(np.array([*rest[:1, 7:10], mean[7:10]]))
        return bool((turns[0].inv() * turns[-1]).magnitude() > self.options.rest.largest_turn)

    def _is_odd(self, state: WristTrackerState, rows: Array) -> bool:
        """Whether the load so far cannot explain a window."""
        if self.options.alarm is None or len(state.sums.blocks) < _TESTED:
            return False
        known = state.known
        r, Z = self._residual(rows, known)
        V = Z @ known.covariance @ Z.T + np.diag(rows.shape[1] * known.long_run)
        return bool(r @ np.linalg.solve(V, r) > self.options.alarm)

    def _tried(
        self, state: WristTrackerState, rows: Array, features: Array, start_s: float
    ) -> WristTrackerState:
        """The state after a window that the load does not explain: a contact, or another load."""
        trial = state.trial.plus(rows, features)
        odd_s = min(state.odd_s, start_s)
        state = state._replace(trial=trial, odd_s=odd_s, rest=state.rest[:0], odd=state.odd + 1)
        if len(trial.blocks) < _TRIAL:
            return state
        prior = self._without_load(state)
        none = state.postures.take(np.zeros(len(state.postures), bool))
        found = self._problem(trial, none, prior, fewest_blocks=1).solved()
        if (found.variance > _EXPLAINED * state.known.variance).any():
            return state._replace(trial=Sums.nothing())
        known = state.known
        covariance = known.covariance[:10, :10].copy()
        covariance[known.unknown[:10], known.unknown[:10]] = np.inf
        episode = Episode(state.start_s, odd_s, known.value[:10], covariance)
        return state._replace(
            sums=trial,
            postures=none,
            prior=prior,
            known=found,
            trial=Sums.nothing(),
            odd_s=np.inf,
            start_s=odd_s,
            odd=0,
            history=(*state.history[-_MOST_EPISODES + 1 :], episode),
        )

    def _without_load(self, state: WristTrackerState) -> Array:
        """What is known of drift and tilt alone, as rows of a prior."""
        kept = self._free[10:]
        L = np.linalg.cholesky(np.linalg.inv(state.known.covariance[np.ix_(kept, kept)])).T
        rows = np.zeros((len(kept), UNKNOWNS + 1))
        rows[:, kept] = L
        rows[:, -1] = L @ state.known.value[kept]
        return rows

    def _rested(self, state: WristTrackerState) -> WristTrackerState:
        """The state with the present rest, if it was one, as a posture."""
        rest = state.rest[1:-1]
        p = state.postures
        state = state._replace(rest=state.rest[:0])
        if len(rest) < _FEWEST_REST - 2:
            return state
        wrench = rest[:, 1:7].mean(axis=0)
        n = len(rest)
        least = np.asarray(self.noise) ** 2 / rest[:, 10].sum()
        variance = np.maximum(rest[:, 1:7].var(axis=0, ddof=1) / n, least)
        R = Rotation.from_rotvec(rest[:, 7:10]).mean().as_matrix()
        if len(p):
            down = p.R_base_sensor[:, 2] @ R[2]
        else:
            down = np.zeros(0)
        other = ~(down > _SAME)
        if (p.rows[~other] > n).any():
            return state
        p = p.take(other)
        last = slice(-_MOST_POSTURES + 1, None)
        new = (rest[:, 0].mean() - state.origin_s, wrench, variance, R, n)
        old = (p.t, p.wrench, p.variance, p.R_base_sensor, p.rows)
        both = [
            np.concatenate([a[last], np.asarray(b)[None]]) for a, b in zip(old, new, strict=True)
        ]
        return state._replace(postures=postures_of(*both), stale=True)


def _mean(window: Array) -> Array:
    """Time, wrench, rotation vector and number of the samples of a window, (11,)."""
    turn = Rotation.from_matrix(window[:, 7:16].reshape(-1, 3, 3)).mean().as_rotvec()
    return np.concatenate([[window[:, 0].mean()], window[:, 1:7].mean(axis=0), turn, [len(window)]])
