"""xu2024 with its own numbers: torque = Y pi of Table VI along Table IV, payload of Table VII.

Here every assumption of the paper is true: the friction law, the empty arm, white noise of the
torques, an arm that moves as commanded. The noise is that of Table VIII (nonlinear, no payload), or
the larger one of Table II, which the paper's own model leaves. At rest a joint is held by anything
between -F and F, F what it needs to move with 0.05 rad/s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard._arrays import Array
from steelyard.identification import DynamicModel, Estimate, FrictionLaw, RegressionFactor
from steelyard.recording import Sample
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.torque.tracking import (
    TorqueTracker,
    TorqueTrackerOptions,
    TorqueTrackerState,
)
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import Verdict
from steelyard_papers.sharing import Progress
from steelyard_papers.xu2024.arm import ur10
from steelyard_papers.xu2024.online import UR10_ROWS, Xu2024Tracker
from steelyard_papers.xu2024.printed import TABLE_6, TABLE_8, TRUTH
from steelyard_papers.xu2024.recursion import Recursion, run_recursion

RATE_HZ = 125.0
TIMES_S = (2.0, 4.0, 6.6, 10.0)
STATIC_POSTURES = 20
"""Postures at rest of Algorithm 2."""
METHODS = ("Algorithm 1", "Algorithm 2", "proposed", "ours")
_BREAKAWAY_SPEED = 0.05  # [rad/s], at which static friction is computed


@dataclass(frozen=True, eq=False)
class Case:
    """The arm of Table VI that carries the payload of Table VII along Table IV.

    Attributes:
        model: the empty arm, known
        t: (N,) [s]
        motion: position, velocity, acceleration, (N, 3, 6)
        Y: base regressor, (N, 6, 58)
        tau: torque without noise, (N, 6) [Nm]
        noise: of the torques, (6,) [Nm]
    """

    model: DynamicModel
    t: Array
    motion: Array
    Y: Array
    tau: Array
    noise: Array

    @property
    def J(self) -> Array:
        """The payload Jacobian, (58, 10)."""
        return self.model.basis.payload_jacobian

    def torque(self, seed: int) -> Array:
        """The torque of the loaded run with noise, (N, 6) [Nm].

        Args:
            seed: of the noise
        """
        return np.asarray(
            self.tau + np.random.default_rng(seed).normal(size=self.tau.shape) * self.noise
        )

    def stream(self, seed: int) -> Iterator[Sample[Array]]:
        """The loaded run, one sample at a time.

        Args:
            seed: of the noise
        """
        for t, (q, v, a), tau in zip(self.t, self.motion, self.torque(seed), strict=True):
            yield Sample.of_joints(t, q, v, a, tau)

    def bound(self, until_s: float) -> Array:
        """The Cramer-Rao bound of the ten numbers, the arm known, friction not, (10,).

        Args:
            until_s: with samples up to this time, [s]
        """
        N = round(until_s * RATE_HZ)
        friction = self.model.estimate.parameters.daily
        H = np.concatenate([self.Y[:N] @ self.J, self.Y[:N][:, :, friction]], axis=2)
        H = (H / self.noise[:, None]).reshape(-1, H.shape[2])
        H = np.vstack([H, 1e-4 * np.eye(H.shape[1])])  # before a joint turns round Fc and B are one
        return np.asarray(np.linalg.norm(np.linalg.inv(np.linalg.qr(H)[1])[:10], axis=1))


def published_case(noise: Array = TABLE_8["without", "power"]) -> Case:
    """The case of the paper's tables.

    Args:
        noise: of the torques, (6,) [Nm]
    """
    robot = ur10()
    shapes = (robot.drive.exponent, np.ones(6), np.ones(6))
    law = FrictionLaw("given", "exact", True, False, False, *shapes, fixed=True)
    parameters = ParameterBasis.of(robot).parameters
    known = Estimate(
        TABLE_6, 1e-12 * np.eye(58), parameters, noise, np.ones(6), 1.0, Verdict("xu2024, Table VI")
    )
    empty = RegressionFactor.empty(6, 58)
    model = DynamicModel(robot, law, known, np.zeros((0, 6)), "commanded", ("Table VI",), empty)
    t = np.arange(round(10 * RATE_HZ)) / RATE_HZ
    motion = FourierTrajectory.load("xu2024").at(t)
    Y = model.basis.reduce(robot.regressor(*motion))
    tau = Y @ (TABLE_6 + model.basis.payload_jacobian @ TRUTH.vector)
    return Case(model, t, np.stack(motion, axis=1), Y, tau, noise)


def plain_estimate(estimator: TorqueTracker, state: TorqueTrackerState) -> tuple[Array, Array]:
    """The ten numbers and their standard deviations, without the search for the nearest real body.

    Args:
        estimator: ours
        state: of it
    """
    found = estimator.estimate(state, physical=False, advice=False)
    return found.unconstrained.vector, found.std


def algorithm_1(YJ: Array, change: Array) -> Array:
    """Khalil's method: the ten numbers from the change of torques on the same motion, (10,).

    Args:
        YJ: payload regressor, (N, n, 10)
        change: torque with the payload less torque without, (N, n) [Nm]
    """
    return np.asarray(np.linalg.lstsq(YJ.reshape(-1, 10), change.ravel(), rcond=None)[0])


def static_payload(
    robot: RobotModel, basis: ParameterBasis, q: Array, empty: Array, loaded: Array
) -> Array:
    """gaz2017's method for any arm: the difference of gravity coefficients, all alike, (4,).

    Args:
        robot: the arm
        basis: its base parameters
        q: postures at rest, (N, n) [rad]
        empty: torques without the payload, (N, n) [Nm]
        loaded: torques with it, (N, n) [Nm]
    """
    Y = basis.reduce(robot.regressor(q, 0 * q, 0 * q)).reshape(q.size, -1)
    seen = np.flatnonzero((np.abs(Y).max(axis=0) > 1e-9) & basis.parameters.links)
    change = np.linalg.lstsq(Y[:, seen], (loaded - empty).ravel(), rcond=None)[0]
    return np.asarray(np.linalg.lstsq(basis.payload_jacobian[seen, :4], change, rcond=None)[0])


REST_SHARES = (0.0, 0.1, 0.2, 0.5, 1.0)
"""Shares of the friction that moves a joint, up to which friction may hold it at rest."""


def algorithm_2(
    case: Case, seed: int, *, held: float = 1.0, postures: int = STATIC_POSTURES
) -> Array:
    """The same from postures at rest whose friction may be anything up to its limit, (4,).

    Args:
        case: the arm
        seed: of noise and friction
        held: largest friction at rest, over the friction that moves the joint
        postures: how many
    """
    rng = np.random.default_rng([seed, 2])
    robot = case.model.robot
    basis = case.model.basis
    q = np.random.default_rng(1).uniform(-1.5, 1.5, (postures, 6)) + robot.home
    Y = basis.reduce(robot.regressor(q, 0 * q, 0 * q))
    friction = robot.drive.coulomb + robot.drive.viscous * _BREAKAWAY_SPEED**robot.drive.exponent
    shares = held * rng.uniform(-1, 1, (2, postures, 6))
    noise = case.noise / np.sqrt(RATE_HZ) * rng.normal(size=shares.shape)
    torque = np.array([Y @ TABLE_6, Y @ (TABLE_6 + case.J @ TRUTH.vector)])
    return static_payload(robot, basis, q, *(torque + friction * shares + noise))


def algorithm_2_by_held(seeds: Sequence[int]) -> dict[float, Array]:
    """The four numbers by Algorithm 2, (seeds, 10) with NaN for the inertia, by `REST_SHARES`.

    Args:
        seeds: of noise and friction
    """
    case = published_case()
    unknown = np.full((len(seeds), 6), np.nan)
    return {
        held: np.hstack([[algorithm_2(case, seed, held=held) for seed in seeds], unknown])
        for held in REST_SHARES
    }


@dataclass(frozen=True, eq=False)
class Runs:
    """Many runs of one case by every method.

    Attributes:
        answers: for each seed the ten numbers by method, NaN where a method gives none, (10,) each
        ours_at: mass by ours at `TIMES_S`, (S, 4) [kg]
        recursion: of the paper
    """

    answers: list[dict[str, Array]]
    ours_at: Array
    recursion: Recursion


def runs_of(case: Case, seeds: Sequence[int], *, progress: Progress) -> Runs:
    """Every method on every seed.

    Args:
        case: of the paper
        seeds: of noise
        progress: called with the share that is done
    """
    loaded = np.stack([case.torque(seed) for seed in seeds])
    start = np.tile(case.model.estimate.value, (len(seeds), 1))
    published = run_recursion(
        case.model, np.broadcast_to(case.Y, (len(seeds), *case.Y.shape)), loaded, start=start
    )
    stops = {round(until_s * RATE_HZ) for until_s in TIMES_S}
    direct = TorqueTracker(case.model, "commanded", options=TorqueTrackerOptions(lowest_speed=0.0))
    answers = []
    ours_at = []
    for k, seed in enumerate(seeds):
        empty = case.Y @ TABLE_6 + case.noise * np.random.default_rng([seed, 1]).normal(
            size=case.tau.shape
        )
        own = direct.init()
        masses = []
        for i, sample in enumerate(case.stream(seed), start=1):
            own = direct.step(own, sample)
            if i in stops:
                masses.append(plain_estimate(direct, own)[0][0])
        ours_at.append(masses)
        answers.append(
            {
                "Algorithm 1": algorithm_1(case.Y @ case.J, loaded[k] - empty),
                "Algorithm 2": np.append(algorithm_2(case, seed), np.full(6, np.nan)),
                "proposed": published.payloads()[k],
                "ours": plain_estimate(direct, own)[0],
            }
        )
        progress((k + 1) / len(seeds))
    return Runs(answers, np.array(ours_at), published)


WHITE_SHARES = (0.2, 0.35, 0.5, 0.75, 1.0)
"""Shares of Table VIII that are tried as white noise of the torques."""


def recursion_with_share(share: float, seeds: Sequence[int], *, P0: float = 10.0) -> Recursion:
    """The recursion with a share of Table VIII as white noise, one run for each seed.

    Table VIII is what a friction law leaves along the motion. How much of it is white noise, and
    how much comes again with the motion, is not printed.

    Args:
        share: of the standard deviations
        seeds: of the noise
        P0: initial P is this times the identity
    """
    case = published_case(share * TABLE_8["without", "power"])
    tau = np.stack([case.torque(seed) for seed in seeds])
    start = np.tile(case.model.estimate.value, (len(seeds), 1))
    Y = np.broadcast_to(case.Y, (len(seeds), *case.Y.shape))
    return run_recursion(case.model, Y, tau, start=start, P0=P0)


def recursion_by_share(seeds: Sequence[int]) -> dict[float, Recursion]:
    """The recursion by each of `WHITE_SHARES`.

    Args:
        seeds: of the noise
    """
    return {share: recursion_with_share(share, seeds) for share in WHITE_SHARES}


@dataclass(frozen=True, eq=False)
class Curves:
    """One run over time (Fig. 6).

    Attributes:
        t: of the recursion, (N,) [s]
        watched: pi_31 ... pi_36 by the recursion, (N, 6)
        published: the ten numbers by the recursion, (N, 10)
        t_ours: (M,) [s]
        ours: the ten numbers by ours, (M, 10)
        std: of them, (M, 10)
        bound: Cramer-Rao bound of the mass at these times, (M,) [kg]
        converged_s: when the recursion converged by its rule, [s]
    """

    t: Array
    watched: Array
    published: Array
    t_ours: Array
    ours: Array
    std: Array
    bound: Array
    converged_s: float


def convergence(case: Case, seed: int) -> Curves:
    """Both estimators along one run; the recursion is not stopped when it has converged.

    Args:
        case: of the paper
        seed: of noise
    """
    published = Xu2024Tracker(case.model, rows=UR10_ROWS)
    ours = TorqueTracker(case.model, "commanded", options=TorqueTrackerOptions(lowest_speed=0.0))
    state = published.init()
    own = ours.init()
    converged_s = np.inf
    theirs = []
    mine = []
    for i, sample in enumerate(case.stream(seed), start=1):
        state = published.step(state, sample)
        own = ours.step(own, sample)
        if state.converged_s < np.inf:
            converged_s = min(converged_s, state.converged_s)
            state = state._replace(converged_s=np.inf)
        if i % 5 == 0:
            vector = published.estimate(state).unconstrained.vector
            theirs.append(np.concatenate([[sample.t], state.parameters[30:36], vector]))
        if i % 25 == 0 and sample.t >= 0.9:
            mine.append(np.hstack([sample.t, case.bound(sample.t)[0], *plain_estimate(ours, own)]))
    a = np.array(theirs)
    b = np.array(mine)
    return Curves(
        a[:, 0], a[:, 1:7], a[:, 7:], b[:, 0], b[:, 2:12], b[:, 12:], b[:, 1], converged_s
    )
