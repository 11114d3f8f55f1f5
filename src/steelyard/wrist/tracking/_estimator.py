"""The payload on a wrist sensor while the arm moves; states are values.

Samples are processed in windows of 0.2 s. A window in which the sensor stands still belongs to a
rest. When a rest has ended, its windows without the first and the last become a posture, as in the
static stage. All other windows are added to the sums (`_sums`), and the next step solves for the
unknowns (`_solve`). Before that, each window is compared with the prediction of the present load:
its summed residual r has the covariance

    cov r = N f Sw + S_j + Z C Z'     (noise of N samples, jumps, uncertainty of the load)

Where r' cov^-1 r is far beyond chance, the window is not used: something touches the load, or the
load is another one. Directions that the load predicts worse than three times the noise do not
count: in them a contact looks like a load that is not known yet. A covariance from a few blocks is
too uncertain to tell which directions these are; there, a window is tested only if the load
predicts all of them. Five unexplained windows in a row are fitted with a new load, with drift and
tilt as they are known. If the fit is as good as
before, the load has changed: the previous one goes to the history, and the sums start again from
these five windows. Otherwise they are a contact, and the next five windows are tried.

The contact force is the measured wrench without that of the load and the drift; its covariance is
that of both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array, Indices
from steelyard._units import GRAVITY_DOWN, NORMAL_95
from steelyard.errors import InvalidSamples
from steelyard.inertia import InertialParameters
from steelyard.payload import Evidence, judge
from steelyard.payload._tracking import ContactWrench, Counts, Episode, Progress
from steelyard.recording import Sample
from steelyard.verdict import Doubt, DoubtKind
from steelyard.wrist._checks import (
    ForceScales,
    coarse_reading_doubt,
    force_scale_doubts,
    unexplained_wrench_doubts,
    weight_doubts,
)
from steelyard.wrist._payload import WristPayload, drift_doubt, tilt_doubt, weak_inertia_doubt
from steelyard.wrist._recording import WristSensor
from steelyard.wrist._regressor import (
    ANGULAR_VELOCITY,
    BaseGravity,
    feature_covariance,
    wrench_slope,
)
from steelyard.wrist._rest import Postures
from steelyard.wrist.tracking._path import SensorMotion, checked_sample, is_plausible
from steelyard.wrist.tracking._solve import FEWEST_BLOCKS, WrenchSolution, WristProblem
from steelyard.wrist.tracking._state import (
    RestWindow,
    WristTrackerOptions,
    WristTrackerState,
    postures_of,
)
from steelyard.wrist.tracking._sums import (
    DRIFT,
    LOAD,
    REPORTED,
    TILT,
    TREND,
    UNKNOWNS,
    Sums,
    lifted_numbers,
    lifted_rows,
)

_CLOCK_ROUNDING_S = 1e-4
_SATURATED_SHARE = 0.999  # of the sensor's range
_MAX_DOUBTED_TILT_STD = np.radians(2.0)  # a tilt that is known less accurately raises no doubt
_MIN_TESTED_BLOCKS = 10  # blocks that show the noise before a change is tested for
_MIN_BLOCKS_TO_SPLIT = 20  # blocks that show which directions the load predicts
_MAX_PREDICTION_STD = 3.0  # of a tested direction, in standard deviations of the noise
_TRIAL_WINDOWS = 5  # unexplained windows that are tried as another load
_MAX_TRIAL_VARIANCE_RATIO = 3.0  # of residuals under another load, over the variance before
_MIN_REST_WINDOWS = 5  # of which the first and the last do not count
_MAX_REST_WINDOWS = 50
_MAX_POSTURES = 32
_MAX_EPISODES = 1000
_MIN_COS_SAME_POSTURE = np.cos(np.radians(1.0))
_MAX_STILL_ACCELERATION = 0.05  # [m/s^2], where the speed is unknown
_BLOCKS_BETWEEN_NOISE_ESTIMATES = 4
_ROUNDS_WITH_FEW_BLOCKS = 2  # of the solution in a step


@dataclass(frozen=True, eq=False)
class WristTracker:
    """Weighs what hangs on a wrist sensor sample by sample. States are values; `step` changes none.

    Attributes:
        noise: standard deviation of a sample's wrench from the sensor's own noise, (6,) [N, Nm]
        sensor: what is known about it; its rotation on the flange must be
        gravity_base: gravity without a tilt, (3,) [m/s^2], in the base frame
        options: see `WristTrackerOptions`
        made_by: how samples are made, in sentences
        differentiated: whether accelerations are derivatives of positions, which depend on the
            clock
        reading_step: of which all readings of the sensor are multiples, (6,) [N, Nm]; 0 if there is
            none, or if it is not known
    """

    noise: Array
    sensor: WristSensor = field(default_factory=WristSensor)
    gravity_base: Array = field(default_factory=lambda: np.array(GRAVITY_DOWN))
    options: WristTrackerOptions = field(default_factory=WristTrackerOptions)
    made_by: tuple[str, ...] = ()
    differentiated: bool = True
    reading_step: Array = field(default_factory=lambda: np.zeros(6))
    _gravity: BaseGravity = field(init=False, repr=False)

    def __post_init__(self) -> None:
        noise = np.array(self.noise, dtype=float)
        if noise.shape != (6,) or not (np.isfinite(noise).all() and (noise > 0).all()):
            raise InvalidSamples(f"noise must be six positive numbers, got {noise}")
        if not self.sensor.yaw_known:
            raise InvalidSamples(
                "a tracker needs the rotation of the sensor on the flange: find it with postures"
                " at rest, as in weigh-wrist, and state it in the sensor's file"
            )
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "_gravity", BaseGravity(np.array(self.gravity_base, dtype=float)))

    # --- the interface of a tracker

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
            window=(),
            rest=(),
            trial=Sums.nothing(),
            unexplained_s=np.inf,
            stale=False,
            origin_s=np.inf,
            start_s=np.inf,
            last_s=-np.inf,
            unexplained=0,
            contacts=0,
            counts=Counts(),
            history=(),
        )

    def step(self, state: WristTrackerState, sample: Sample[SensorMotion]) -> WristTrackerState:
        """The state after one more sample. Bad samples are counted and skipped."""
        if sample.fault:
            return state._replace(counts=state.counts.plus(sample.fault))
        sample = checked_sample(sample)
        if fault := self._fault(sample, state.last_s):
            return state._replace(counts=state.counts.plus(fault))
        t = sample.t
        if state.origin_s == np.inf:
            state = state._replace(origin_s=t, start_s=t)
        elif t - state.last_s > self.options.longest_gap_s:
            state = self._drained(state)._replace(counts=state.counts.plus("gaps"))
        if state.stale:
            state = self._fresh(state)
        elif (
            len(state.window) and t - state.window[0].t >= self.options.window_s - _CLOCK_ROUNDING_S
        ):
            state = self._judged(state)
        window = (*state.window, sample)
        return state._replace(window=window, last_s=t, counts=state.counts.plus("used"))

    def estimate(self, state: WristTrackerState, *, physical: bool = True) -> WristPayload:
        """The load on the sensor now, with all samples of the state.

        Args:
            physical: search for the nearest physical body, which takes much longer than a step;
                else the plain estimate
        """
        state = self._drained(state)
        known = self._solved(state, rounds=8)
        scales = self._force_scales(state, known)
        if scales is not None:
            known = known.with_mass_std(scales.mass_std * abs(float(known.value[0])))
        plain = InertialParameters.from_vector(known.value[LOAD], "sensor")
        now = np.eye(UNKNOWNS)  # the drift at the last sample, not at the first
        now[DRIFT, TREND] = self._age(state) * np.eye(6)
        full = (now @ known.covariance @ now.T)[REPORTED, REPORTED]
        unknown = known.unknown[REPORTED]
        full[unknown, unknown] = np.inf
        resting = not unknown[:4].any() and len(state.sums.blocks) < FEWEST_BLOCKS
        body, verdict = judge(
            Evidence(
                plain,
                full[LOAD, LOAD],
                unknown[LOAD],
                expected="postures at rest say nothing about the inertia" if resting else "",
                doubts=self._doubts(state, known, scales),
                beyond_empty_arm=False,
                look_for_body=physical,
            )
        )
        if unknown[LOAD].any():
            weak = None
        else:
            weak = weak_inertia_doubt(body, full[LOAD, LOAD])
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
            drift=(now @ known.value)[DRIFT],
            inclination=known.value[TILT],
            nominal_gravity=self._gravity.nominal,
            trend=known.value[TREND],
            trend_std=np.sqrt(np.diag(known.covariance)[TREND]),
            T_flange_sensor=self.sensor.T_flange_sensor,
            made_by=self.made_by,
        )

    def progress(self, state: WristTrackerState, *, advice: bool = True) -> Progress:
        """The plain estimate of a state, the contact, and with advice what to do to learn more."""
        payload = self.estimate(state, physical=False)
        progress = Progress.of(state, payload, self.accuracy, contact=self.contact(state))
        if advice:
            return replace(progress, next_step=_next_step(payload, converged=progress.converged))
        return progress

    def state_from_dict(self, content: Mapping[str, Any]) -> WristTrackerState:
        """The state that its `to_dict` wrote."""
        return WristTrackerState.from_dict(content)

    @property
    def accuracy(self) -> float:
        """Half-width of the mass's 95 % interval over the mass at which it has converged."""
        return self.options.accuracy

    @property
    def gives_intervals(self) -> bool:
        """Whether estimates have a covariance."""
        return True

    @property
    def fingerprint(self) -> str:
        """Identifies the pose of the sensor on the arm, and the direction of gravity."""
        placed = np.concatenate([self.sensor.T_flange_sensor.ravel(), self.gravity_base])
        content = np.round(placed, 9).tobytes() + bytes([self.options.level])
        return hashlib.sha256(content).hexdigest()[:16]

    # --- views

    def converged(self, state: WristTrackerState) -> bool:
        """Whether the mass is known to the requested accuracy."""
        return self._half_width(self._drained(state).known) <= self.options.accuracy

    def contact(self, state: WristTrackerState) -> ContactWrench:
        """What the surroundings do to the load in the last sample."""
        if not state.window:
            return ContactWrench(np.zeros(6), np.full(6, np.inf))
        rows, _ = self._lifted(state, state.window[-1:])
        r, Z = self._residual(rows, state.known)
        covariance = Z @ state.known.covariance @ Z.T
        noise = state.known.variance + state.window[-1].motion.jump_variance
        return ContactWrench(r, np.sqrt(np.diag(covariance) + noise))

    def _half_width(self, known: WrenchSolution) -> float:
        if known.unknown[0]:
            std = np.inf
        else:
            std = np.sqrt(known.covariance[0, 0])
        return float(NORMAL_95 * std / max(abs(known.value[0]), 1e-12))

    def _force_scales(self, state: WristTrackerState, known: WrenchSolution) -> ForceScales | None:
        """The scales of the forces of the sensor; None with too few samples."""
        if len(state.sums.blocks) < _MIN_TESTED_BLOCKS:
            return None
        return self._problem(state.sums, state.postures, state.prior).force_scales(known)

    def _doubts(
        self, state: WristTrackerState, known: WrenchSolution, scales: ForceScales | None
    ) -> tuple[Doubt, ...]:
        std = np.sqrt(np.diag(known.covariance))
        doubts = [drift_doubt(known.value[TREND], std[TREND], modelled=True)]
        if (std[TILT] < _MAX_DOUBTED_TILT_STD).all():
            doubts.append(tilt_doubt(known.value[TILT], self.gravity_base))
        if scales is not None:
            doubts += force_scale_doubts(scales)
            doubts += self._check_doubts(state, known)
        if not known.unknown[0]:
            size = float(np.linalg.norm(self.gravity_base))
            doubts.append(coarse_reading_doubt(self.reading_step, float(std[0]), size))
        if self._half_width(known) > self.options.accuracy:
            words = f"the mass is not yet known to {100 * self.options.accuracy:g} %"
            doubts.append(Doubt(DoubtKind.NOT_CONVERGED, words, blocks=False))
        if state.last_s - state.unexplained_s > 2 * _TRIAL_WINDOWS * self.options.window_s:
            words = (
                f"since {state.unexplained_s:.2f} s something touches the load, or it keeps"
                " changing: these samples do not count"
            )
            doubts.append(Doubt(DoubtKind.MOSTLY_CONTACT, words))
        return tuple(doubt for doubt in doubts if doubt is not None)

    def _check_doubts(self, state: WristTrackerState, known: WrenchSolution) -> list[Doubt]:
        """Doubts about residuals beyond noise, and about weight and inertia that disagree."""
        sums = state.sums
        B = wrench_slope(known.value[LOAD])
        motion = np.diag(B @ sums.features @ B.T) / sums.rows
        expected = np.asarray(self.noise) ** 2 + motion
        doubts = list(unexplained_wrench_doubts(known.variance, expected, sums.wrench_variance))
        if self.differentiated:
            problem = self._problem(sums, state.postures, state.prior)
            doubts += weight_doubts(problem.weight_cause(known))
        return doubts

    def _words(self, state: WristTrackerState, known: WrenchSolution) -> str:
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

    def _fault(self, sample: Sample[SensorMotion], last_s: float) -> str:
        """Why a sample does not count; empty where it does."""
        if not is_plausible(sample):
            return "corrupt"
        if sample.t == last_s:
            return "repeated"
        if sample.t < last_s:
            return "late"
        if (np.abs(sample.effort) >= _SATURATED_SHARE * self.sensor.reach).any():
            return "saturated"
        return ""

    def _age(self, state: WristTrackerState) -> float:
        if np.isfinite(state.origin_s):
            return state.last_s - state.origin_s
        return 0.0

    @property
    def _free(self) -> Indices:
        """The numbers that are unknown; without the tilt where the base is level."""
        every = np.arange(UNKNOWNS)
        if self.options.level:
            return np.delete(every, TILT)
        return every

    def _problem(
        self, sums: Sums, postures: Postures, prior: Array, fewest_blocks: int = FEWEST_BLOCKS
    ) -> WristProblem:
        noise = np.asarray(self.noise)
        return WristProblem(sums, postures, prior, self._gravity, noise, self._free, fewest_blocks)

    def _solved(
        self, state: WristTrackerState, rounds: int, *, estimate_noise: bool = True
    ) -> WrenchSolution:
        problem = self._problem(state.sums, state.postures, state.prior)
        return problem.solved(state.known, rounds, estimate_noise=estimate_noise)

    def _lifted(
        self, state: WristTrackerState, window: Sequence[Sample[SensorMotion]]
    ) -> tuple[Array, Array]:
        """Lifted rows of samples, (6, N, 21), and the covariance of their features, (N, 12, 12)."""
        t = np.array([sample.t for sample in window]) - state.origin_s
        wrench = np.array([sample.effort for sample in window])
        R = np.array([sample.motion.R_base_sensor for sample in window])
        derivatives = np.array([sample.motion.derivatives for sample in window])
        covariance = np.array([sample.motion.covariance for sample in window])
        angular_velocity = derivatives[:, ANGULAR_VELOCITY]
        w_noise = covariance[:, ANGULAR_VELOCITY, ANGULAR_VELOCITY]
        rows = lifted_rows(t, wrench, R, derivatives, self._gravity.nominal, w_noise)
        return rows, feature_covariance(angular_velocity, covariance)

    def _weighted(
        self, rows: Array, features: Array, window: Sequence[Sample[SensorMotion]]
    ) -> tuple[Array, Array]:
        """Rows and features as `Sums.plus` takes them: samples next to a jump count less."""
        jumps = np.array([sample.motion.jump_variance for sample in window])
        weight = 1 / (1 + (jumps / np.asarray(self.noise) ** 2).max(axis=1))
        return rows * np.sqrt(weight)[:, None], np.tensordot(weight, features, axes=1)

    def _residual(self, rows: Array, known: WrenchSolution) -> tuple[Array, Array]:
        """The sum of residuals, (6,), and its slope by the unknowns, (6, 24)."""
        L, G = lifted_numbers(self._gravity, known.value)
        total = rows.sum(axis=1)
        Z = (total[:, None, :-1] @ G)[:, 0]
        return total[:, -1] - (total[:, :-1] * L).sum(axis=1), Z

    def _drained(self, state: WristTrackerState) -> WristTrackerState:
        """The state with every sample used, and the present rest as a posture."""
        if state.stale:
            state = self._fresh(state)
        state = self._rested(self._judged(state))
        if state.stale:
            return self._fresh(state)
        return state

    def _judged(self, state: WristTrackerState) -> WristTrackerState:
        """The state at the end of a window: used, at rest, or not explained by the load."""
        window = state.window
        if not window:
            return state
        rows, features = self._lifted(state, window)
        state = state._replace(window=())
        explained = self._is_explained(state, rows, window)
        rows, features = self._weighted(rows, features, window)
        if not explained:
            return self._tried(state, rows, features, window[0].t)
        if state.unexplained_s < np.inf:
            contacts = state.contacts + state.unexplained
            state = state._replace(
                unexplained_s=np.inf, unexplained=0, trial=Sums.nothing(), contacts=contacts
            )
        if self._is_still(window):
            mean = _mean(window)
            if len(state.rest) >= _MAX_REST_WINDOWS or self._has_turned(state.rest, mean):
                state = self._rested(state)
            return state._replace(rest=(*state.rest, mean))
        state = self._rested(state)
        state = state._replace(sums=state.sums.plus(rows, features))
        return state._replace(stale=True)

    def _fresh(self, state: WristTrackerState) -> WristTrackerState:
        """The state with a solution that includes all windows."""
        few = len(state.sums.blocks) < _MIN_TESTED_BLOCKS
        if few:
            rounds = _ROUNDS_WITH_FEW_BLOCKS
        else:
            rounds = 1
        due = few or len(state.sums.blocks) % _BLOCKS_BETWEEN_NOISE_ESTIMATES == 0
        return state._replace(known=self._solved(state, rounds, estimate_noise=due), stale=False)

    def _is_still(self, window: Sequence[Sample[SensorMotion]]) -> bool:
        rule = self.options.rest
        turning = max(np.linalg.norm(sample.motion.angular_velocity) for sample in window)
        speed = np.max([sample.motion.speed for sample in window])
        if np.isnan(speed):
            acceleration = max(np.linalg.norm(sample.motion.acceleration) for sample in window)
            slow = acceleration < _MAX_STILL_ACCELERATION
        else:
            slow = speed < rule.linear_speed
        return bool(slow and turning < rule.speed)

    def _has_turned(self, rest: Sequence[RestWindow], mean: RestWindow) -> bool:
        """Whether a window is at rest in another orientation than the rest before."""
        if not rest:
            return False
        first = Rotation.from_rotvec(rest[0].turn)
        change = first.inv() * Rotation.from_rotvec(mean.turn)
        return bool(change.magnitude() > self.options.rest.largest_turn)

    def _is_explained(
        self, state: WristTrackerState, rows: Array, window: Sequence[Sample[SensorMotion]]
    ) -> bool:
        """Whether the load so far explains a window."""
        if self.options.alarm is None or len(state.sums.blocks) < _MIN_TESTED_BLOCKS:
            return True
        known = state.known
        r, Z = self._residual(rows, known)
        jumps = np.sum([sample.motion.jump_variance for sample in window], axis=0)
        noise = rows.shape[1] * known.long_run + jumps
        scale = np.sqrt(noise)
        predicted = Z @ known.covariance @ Z.T / np.outer(scale, scale)
        variance, directions = np.linalg.eigh(predicted)
        known_well = variance <= _MAX_PREDICTION_STD**2
        if not known_well.all() and len(state.sums.blocks) < _MIN_BLOCKS_TO_SPLIT:
            return True
        parts = (directions.T @ (r / scale))[known_well] ** 2 / (1 + variance[known_well])
        return bool(parts.sum() <= self.options.alarm)

    def _tried(
        self, state: WristTrackerState, rows: Array, features: Array, start_s: float
    ) -> WristTrackerState:
        """The state after a window that the load does not explain: a contact, or another load."""
        trial = state.trial.plus(rows, features)
        unexplained_s = min(state.unexplained_s, start_s)
        state = state._replace(
            trial=trial, unexplained_s=unexplained_s, rest=(), unexplained=state.unexplained + 1
        )
        if len(trial.blocks) < _TRIAL_WINDOWS:
            return state
        prior = self._without_load(state)
        none = state.postures.take(np.zeros(len(state.postures), bool))
        found = self._problem(trial, none, prior, fewest_blocks=1).solved()
        if (found.variance > _MAX_TRIAL_VARIANCE_RATIO * state.known.variance).any():
            return state._replace(trial=Sums.nothing())
        known = state.known
        covariance = known.covariance[LOAD, LOAD].copy()
        covariance[known.unknown[LOAD], known.unknown[LOAD]] = np.inf
        episode = Episode(state.start_s, unexplained_s, known.value[LOAD], covariance)
        return state._replace(
            sums=trial,
            postures=none,
            prior=prior,
            known=found,
            trial=Sums.nothing(),
            unexplained_s=np.inf,
            start_s=unexplained_s,
            unexplained=0,
            history=(*state.history[-_MAX_EPISODES + 1 :], episode),
        )

    def _without_load(self, state: WristTrackerState) -> Array:
        """Drift and tilt of the solution alone, as rows of a prior."""
        kept = self._free[LOAD.stop :]
        L = _whitening(state.known.covariance[np.ix_(kept, kept)])
        rows = np.zeros((len(kept), UNKNOWNS + 1))
        rows[:, kept] = L
        rows[:, -1] = L @ state.known.value[kept]
        return rows

    def _rested(self, state: WristTrackerState) -> WristTrackerState:
        """The state with the present rest, if it was long enough, as a posture."""
        rest = state.rest[1:-1]
        p = state.postures
        state = state._replace(rest=())
        if len(rest) < _MIN_REST_WINDOWS - 2:
            return state
        wrenches = np.array([window.wrench for window in rest])
        n = len(rest)
        least = np.asarray(self.noise) ** 2 / sum(window.samples for window in rest)
        variance = np.maximum(wrenches.var(axis=0, ddof=1) / n, least)
        R = Rotation.from_rotvec([window.turn for window in rest]).mean().as_matrix()
        t = np.mean([window.t for window in rest]) - state.origin_s
        if len(p):
            down = p.R_base_sensor[:, 2] @ R[2]
        else:
            down = np.zeros(0)
        other = ~(down > _MIN_COS_SAME_POSTURE)
        if (p.rows[~other] > n).any():
            return state
        p = p.take(other)
        last = slice(-_MAX_POSTURES + 1, None)
        new = (t, wrenches.mean(axis=0), variance, R, n)
        old = (p.t, p.wrench, p.variance, p.R_base_sensor, p.rows)
        both = [
            np.concatenate([a[last], np.asarray(b)[None]]) for a, b in zip(old, new, strict=True)
        ]
        return state._replace(postures=postures_of(*both), stale=True)


def _mean(window: Sequence[Sample[SensorMotion]]) -> RestWindow:
    """Means over the samples of a window at rest."""
    t = float(np.mean([sample.t for sample in window]))
    wrench = np.mean([sample.effort for sample in window], axis=0)
    R = [sample.motion.R_base_sensor for sample in window]
    turn = Rotation.from_matrix(R).mean().as_rotvec()
    return RestWindow(t, wrench, turn, len(window))


def _next_step(payload: WristPayload, *, converged: bool) -> str:
    """What to do to learn more."""
    if not converged:
        return "rest for a second in other postures of the wrist"
    if not payload.knows_inertia:
        return "turn the wrist about all of its axes: the inertia is not known"
    return "nothing: the mass is known as requested"


def _whitening(covariance: Array) -> Array:
    """L with L' L = C^-1, also where rounding makes C singular, as nonsensical readings do.

    Args:
        covariance: C, (k, k), with positive variances
    """
    std = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(std, std))
    values = np.maximum(values, len(std) * np.finfo(float).eps * values.max())
    return np.asarray(vectors.T / np.sqrt(values)[:, None] / std)
