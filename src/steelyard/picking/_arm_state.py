"""What is known of the arm during a shift: its parameters with friction that drifts.

The state of the empty arm is a normal distribution of the model's p parameters x. It begins as the
model's, with friction of another run (`torque._prior`) and, because drives may be cold, with more
freedom of friction. Between stretches friction is a random walk; links and rotors stay:

    P_ff += Q dt,     Q = (1 % of the drive's friction)^2 per minute

After a pause of more than ten minutes friction begins anew. Each unloaded stretch with the
equations Y x = tau (rows over their noise, A = Y'Y, b = Y'tau) updates the state. With P = L L',

    C C' = 1 + L'A L,     P <- L C^-T C^-1 L',     x <- x + P (b - A x).

A carry has the ten numbers phi of the part besides, whose prior is that of the parts table. The
same equations in u = (x, phi), Y [1 J], give their posterior, and the logarithm of the evidence of
the hypothesis that the prior stands for,

    log p = -1/2 (|tau - Y u_0|^2 - |C^-1 L'(b - A u_0)|^2) - log det C + constant.

A few more unknowns w of prior mean w_0 and root S, with columns Z, need no new factor. With
H = C^-1 L' and K = Y'Z,

    C_2 C_2' = 1 + S'Z'Z S - W'W,     W = H K S,
    log p = -1/2 (|tau - Y u_0 - Z w_0|^2 - |g|^2 - |g_2|^2) - log det C - log det C_2 + constant,
    g = H (b - A u_0 - K w_0),     g_2 = C_2^-1 (S'Z'(tau - Y u_0 - Z w_0) - W'g).

Noise of the torques is correlated in time; its rows are weighted like white noise of the same
effect on slow columns (`slow_noise`). Its size in the shift is found from sums of rows over 0.1 s,
which are longer than this memory: their misfit is chi-square if the size is right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from steelyard._arrays import Array, Mask
from steelyard.identification import DynamicModel
from steelyard.recording import Samples
from steelyard.torque._prior import arm_rows, friction_rows, slow_noise

LONG_PAUSE_S = 600.0
"""After a longer pause friction begins anew, [s]."""

_FRICTION_WALK = 0.01 / np.sqrt(60.0)  # relative change of friction per root second [1/sqrt(s)]
_COLD_STD = 0.15  # of friction at the beginning of a shift, relative
_UNKNOWN_STD = 1e3  # of parameters that the model does not know [SI]
_LOAD_ITERATIONS = 3  # at most, of load and friction that depends on it


@dataclass(frozen=True, eq=False)
class Equations:
    """Rows of torques as inner products, A = Y'Y, b = Y'tau and tau'tau, over their noise.

    Attributes:
        A: (p, p)
        b: (p,)
        square: of the torques
        rows: number of torques
    """

    A: Array
    b: Array
    square: float
    rows: int

    @classmethod
    def of(cls, weighted: Array) -> Equations:
        """The equations of rows.

        Args:
            weighted: rows [Y tau] over their noise, (N, p + 1)
        """
        gram = weighted.T @ weighted
        rows = int(np.count_nonzero(weighted.any(axis=1)))
        return cls(gram[:-1, :-1], gram[:-1, -1], float(gram[-1, -1]), rows)

    def __add__(self, other: Equations) -> Equations:
        return Equations(
            self.A + other.A,
            self.b + other.b,
            self.square + other.square,
            self.rows + other.rows,
        )

    def __sub__(self, other: Equations) -> Equations:
        return self + other.scaled(-1.0)

    def scaled(self, factor: float) -> Equations:
        """The same equations with noise whose variance is larger by a factor."""
        return Equations(self.A / factor, self.b / factor, self.square / factor, self.rows)

    def mixed(self, mixing: Array) -> Equations:
        """The same equations in other unknowns: the present ones are mixing @ unknowns."""
        return Equations(mixing.T @ self.A @ mixing, mixing.T @ self.b, self.square, self.rows)


@dataclass(frozen=True, eq=False)
class Posterior:
    """A normal distribution of unknowns after some equations.

    Attributes:
        value: mean, (m,)
        covariance: (m, m)
        misfit: |tau - Y u_0|^2 - |C^-1 L'(b - A u_0)|^2, chi-square with as many degrees of freedom
            as there are rows if noise is white and the prior is right
        log_evidence: of the equations, up to a constant that does not depend on the prior
    """

    value: Array
    covariance: Array
    misfit: float
    log_evidence: float


def posterior(value: Array, L: Array, equations: Equations) -> Posterior:
    """The unknowns after some equations.

    Args:
        value: before, (m,)
        L: root of the covariance before, (m, m)
        equations: in the same unknowns
    """
    A = equations.A
    C = np.linalg.cholesky(np.eye(len(value)) + L.T @ A @ L)
    residual = equations.b - A @ value
    g = lapack.dtrtrs(C, L.T @ residual, lower=1)[0]
    root = lapack.dtrtrs(C, L.T, lower=1)[0]
    misfit = float(equations.square - 2 * equations.b @ value + value @ A @ value - g @ g)
    log_evidence = -0.5 * misfit - float(np.log(np.diag(C)).sum())
    return Posterior(value + root.T @ g, root.T @ root, misfit, log_evidence)


@dataclass(frozen=True, eq=False)
class Products:
    """Inner products of the columns Z of a few further unknowns.

    Attributes:
        K: with those of the other unknowns, Y'Z, (p, m)
        D: Z'Z, (m, m)
        b: Z'tau, (m,)
    """

    K: Array
    D: Array
    b: Array


@dataclass(frozen=True, eq=False)
class EvidenceFactor:
    """The evidence of the same equations with different further unknowns, from one factor.

    Attributes:
        value: u_0, (p,)
        H: C^-1 L', (p, p)
        log_det: of C
        equations: in the unknowns u
    """

    value: Array
    H: Array
    log_det: float
    equations: Equations

    @classmethod
    def of(cls, value: Array, L: Array, equations: Equations) -> EvidenceFactor:
        """The factor of unknowns.

        Args:
            value: before, (p,)
            L: root of the covariance before, (p, p)
            equations: in the same unknowns
        """
        C = np.linalg.cholesky(np.eye(len(value)) + L.T @ equations.A @ L)
        H = lapack.dtrtrs(C, L.T, lower=1)[0]
        return cls(value, H, float(np.log(np.diag(C)).sum()), equations)

    def log_evidence(self, value: Array, root: Array, columns: Products) -> float:
        """The logarithm of the evidence with further unknowns, up to the same constant.

        Args:
            value: w_0, (m,)
            root: S, (m, m)
            columns: of the further unknowns
        """
        A = self.equations.A
        b = self.equations.b
        u = self.value
        Kw = columns.K @ value
        W = self.H @ (columns.K @ root)
        C = np.linalg.cholesky(np.eye(len(value)) + root.T @ columns.D @ root - W.T @ W)
        g = self.H @ (b - A @ u - Kw)
        residual = columns.b - columns.K.T @ u - columns.D @ value
        g_2 = lapack.dtrtrs(C, root.T @ residual - W.T @ g, lower=1)[0]
        square = self.equations.square - 2 * (b @ u + columns.b @ value)
        square += u @ (A @ u + 2 * Kw) + value @ columns.D @ value
        misfit = float(square - g @ g - g_2 @ g_2)
        return -0.5 * misfit - self.log_det - float(np.log(np.diag(C)).sum())


def root_of(covariance: Array) -> Array:
    """A matrix L with L L' = covariance, (m, m), which may be singular."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    correlation = covariance / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray(scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


@dataclass(frozen=True, eq=False)
class ArmState:
    """What is known of the empty arm at a time of the shift.

    Attributes:
        value: of the model's parameters, (p,)
        covariance: of them, (p, p)
        t_s: of the last stretch that was used [s]
    """

    value: Array
    covariance: Array
    t_s: float

    @cached_property
    def root(self) -> Array:
        """A root of the covariance, (p, p)."""
        return root_of(self.covariance)

    def after(self, equations: Equations, t_s: float) -> ArmState:
        """The state after an unloaded stretch.

        Args:
            equations: of the stretch
            t_s: its time [s]
        """
        found = posterior(self.value, self.root, equations)
        return ArmState(found.value, found.covariance, t_s)


@dataclass(frozen=True, eq=False)
class ShiftArm:
    """The arm of a model during a shift.

    Attributes:
        model: of the empty arm
        first: what is known of it before the shift
        walk: variance of the random walk of each parameter per second, (p,)
        weights: of the joints' rows, one over their noise, (n,)
        jacobian: how the parameters change with the ten numbers of a part, (p, 10)
    """

    model: DynamicModel
    first: ArmState
    walk: Array
    weights: Array
    jacobian: Array

    @classmethod
    def of(cls, model: DynamicModel) -> ShiftArm:
        """The arm of a model."""
        p = len(model.estimate.value)
        daily = model.estimate.parameters.daily
        size = _friction_sizes(model)
        rows = np.vstack(
            [
                arm_rows(model)[:, :-1],
                friction_rows(model)[:, :-1],
                np.eye(p) / _UNKNOWN_STD,
            ]
        )
        R = np.linalg.qr(rows, mode="r")
        root = lapack.dtrtri(R)[0]
        covariance = root @ root.T
        covariance[daily, daily] += (_COLD_STD * size[daily]) ** 2
        jacobian = np.zeros((p, 10))
        jacobian[: len(model.basis)] = model.basis.payload_jacobian
        first = ArmState(model.estimate.value, covariance, -np.inf)
        walk = np.where(daily, (_FRICTION_WALK * size) ** 2, 0.0)
        return cls(model.with_row_cache(), first, walk, 1.0 / slow_noise(model), jacobian)

    @property
    def rigid(self) -> Mask:
        """Parameters that do not change during a shift, (p,)."""
        return np.asarray(~self.model.estimate.parameters.daily)

    @property
    def mixing(self) -> Array:
        """Parameters of the loaded arm from those of the empty arm and the part, (p, p + 10)."""
        return np.column_stack([np.eye(len(self.walk)), self.jacobian])

    def at(self, state: ArmState, t_s: float) -> ArmState:
        """A state as it is known at a later time, after its random walk.

        Args:
            state: after the last stretch that was used
            t_s: the later time [s]
        """
        if not np.isfinite(state.t_s):
            return replace(state, t_s=t_s)
        elapsed_s = max(t_s - state.t_s, 0.0)
        if elapsed_s > LONG_PAUSE_S:
            return self._anew(state, t_s)
        covariance = state.covariance + np.diag(self.walk * elapsed_s)
        return ArmState(state.value, covariance, t_s)

    def _anew(self, state: ArmState, t_s: float) -> ArmState:
        """The state with the friction that it had before the shift."""
        daily = ~self.rigid
        value = np.where(daily, self.first.value, state.value)
        covariance = state.covariance.copy()
        covariance[daily] = 0.0
        covariance[:, daily] = 0.0
        covariance[np.ix_(daily, daily)] = self.first.covariance[np.ix_(daily, daily)]
        return ArmState(value, covariance, t_s)

    def weighted_rows(self, samples: Samples, counting: Mask, theta: Array) -> Array:
        """Rows [Y tau] over their noise; zero where they do not count, (N, n, p + 1).

        Args:
            samples: in the order of time
            counting: which instants count, (N,)
            theta: parameters of the loaded arm, for the torque that gears carry, (p,)
        """
        rows = self.model.rows(samples, theta)
        usable = samples.away_from_reversals().mask & counting[:, None]
        weights = np.where(usable, self.weights, 0.0)
        out = np.concatenate([rows.Y, rows.tau[:, :, None]], axis=2)
        out *= weights[:, :, None]
        return out

    @property
    def iterations(self) -> int:
        """Largest number of solutions: friction that grows with the load needs an iteration."""
        if self.model.law.load:
            return _LOAD_ITERATIONS
        return 1


def _friction_sizes(model: DynamicModel) -> Array:
    """The friction that each daily parameter is compared with, (p,) [SI]: its own, or Fc for B."""
    parameters = model.estimate.parameters
    value = np.abs(model.estimate.value)
    coulomb = np.abs(model.friction.coefficients[0])
    size = np.where(parameters.offsets, 0.2 * coulomb[parameters.joints], value)
    return np.asarray(np.maximum(size, 0.05 * coulomb[parameters.joints]))
