"""The recursion of xu2024 over many runs at once: the numbers of `Xu2024Tracker`, much faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard.identification import DynamicModel
from steelyard.recording import Samples
from steelyard_papers.xu2024.online import SMALL_CHANGE, TIMES, UR10_ROWS, Xu2024Tracker


@dataclass(frozen=True, eq=False)
class Recursion:
    """The results of the recursion for S runs.

    Attributes:
        start: pi_a, (S, p)
        stopped: pi_b where the paper's rule stops, at the end where it does not, (S, p)
        end: pi_b with all samples, (S, p)
        converged_s: when the rule stops, (S,) [s]; infinite where it does not
        jacobian: of the payload, (p, 10)
        largest: largest change of the watched parameters at each sample, (S, N)
    """

    start: Array
    stopped: Array
    end: Array
    converged_s: Array
    jacobian: Array
    largest: Array

    def payloads(self, *, at_end: bool = False) -> Array:
        """The ten numbers by eq. (12)-(16), (S, 10).

        Args:
            at_end: with all samples, whatever the rule says
        """
        rows = list(UR10_ROWS)
        change = ((self.end if at_end else self.stopped) - self.start)[:, rows]
        return np.asarray(np.linalg.lstsq(self.jacobian[rows], change.T, rcond=None)[0].T)


def recursion_of(
    models: Sequence[DynamicModel],
    runs: Sequence[Samples],
    *,
    P0: float = 10.0,
    lowest_speed: float = 0.0,
    trial: Sequence[Array] | None = None,
) -> Recursion:
    """The recursion over prepared runs, each with a model of its own.

    Args:
        models: of the empty arm, fitted to the same kind of motion, S
        runs: of the loaded arm, as many, of one length
        P0: initial P is this times the identity
        lowest_speed: torques of joints that are slower do not count, [rad/s]; the paper counts all
        trial: regressors of the runs where they are known, (N, n, p) each
    """
    Y = np.stack(
        [m.rows(run).Y for m, run in zip(models, runs, strict=True)] if trial is None else trial
    )
    tau = np.stack([run.tau for run in runs])
    slow = np.abs(np.stack([run.v for run in runs])) < lowest_speed
    start = np.stack([model.estimate.value for model in models])
    return run_recursion(models[0], Y, tau, start=start, slow=slow, rate_hz=runs[0].rate_hz, P0=P0)


def run_recursion(
    model: DynamicModel,
    Y: Array,
    tau: Array,
    *,
    start: Array,
    slow: Mask | None = None,
    rate_hz: float = 125.0,
    P0: float = 10.0,
) -> Recursion:
    """Eq. (7)-(11) over S runs, in the letters of the paper.

    Args:
        model: of the empty arm, for the payload's Jacobian and the parameters that are watched
        Y: regressors, (S, N, n, p)
        tau: torques, (S, N, n) [Nm]
        start: pi_a, (S, p)
        slow: torques that do not count, (S, N, n); none by default
        rate_hz: of the samples, [Hz]
        P0: initial P is this times the identity
    """
    estimator = Xu2024Tracker(model, model.kinematics)
    S, N, n, p = Y.shape
    noise = estimator.xi * np.eye(n)
    P = np.tile(P0 * np.eye(p), (S, 1, 1))
    pi = start.copy()
    quiet = np.zeros(S, int)
    steps = np.full(S, N)
    stopped = start.copy()
    largest = np.empty((S, N))
    for k in range(N):
        y = Y[:, k]
        e = tau[:, k] - np.einsum("snp,sp->sn", Y[:, k], pi)
        if slow is not None:
            y = np.where(slow[:, k, :, None], 0.0, y)
            e = np.where(slow[:, k], 0.0, e)
        YP = y @ P
        K = np.linalg.solve(noise + YP @ y.transpose(0, 2, 1), YP)
        change = np.einsum("sn,snp->sp", e, K)
        pi = pi + change
        P = P - K.transpose(0, 2, 1) @ YP
        largest[:, k] = np.abs(change[:, estimator.watched]).max(axis=1)
        quiet = np.where(largest[:, k] < SMALL_CHANGE, quiet + 1, 0)
        done = (quiet > TIMES) & (steps == N)
        steps[done] = k
        stopped[done] = pi[done]
    never = steps == N
    stopped[never] = pi[never]
    converged_s = np.where(never, np.inf, steps / rate_hz)
    return Recursion(start, stopped, pi, converged_s, model.basis.payload_jacobian, largest)
