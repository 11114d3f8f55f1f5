"""The proposed method of liu2025 as it is printed, and the step of each of its three estimators.

Stage 1 (eq. (13)-(20), `static.weigh_linear`): total least squares on the postures at rest gives
zero drift, tilt, mass and centre of mass. Stage 2 takes drift and tilt from it as they are, and
mass and first moment as first values of phi; nothing else: no covariance of stage 1, no weights,
forces and torques alike. With Z_k = [A_k F_k], six rows for each sample, and a constant P_r, the
covariance of the errors in a row of Z,

    M_k = lambda M_{k-1} + Z_k' Z_k,   v_k = M_k^-1 P_r v_{k-1}, scaled so that its last entry is -1

which is eq. (34) and (35) with their signs and order corrected; M is P^-1 of the paper. The paper
does not print P_r. Here it is what the paper's own Kalman filter says about the errors of
acceleration, angular velocity and angular acceleration once it has settled, sent through the
regressor, and the data sheet's noise of the wrench.
"""

from __future__ import annotations

import time

import numpy as np

from steelyard._arrays import Array
from steelyard.inertia import InertialParameters
from steelyard.verdict import Verdict
from steelyard.wrist import StaticFit, WrenchSamples, WristPayload
from steelyard.wrist._regressor import wrench_regressor, wrench_tensor
from steelyard.wrist.estimators._recursive import RecursiveTotalLeastSquares

_INITIAL_INFORMATION = 1e-9


def constant_noise(samples: WrenchSamples) -> Array:
    """P_r: the mean covariance of the errors in a row of [A F], (11, 11).

    Args:
        samples: of the whole motion, whose filter has settled
    """
    T = wrench_tensor()
    P = np.zeros((11, 11))
    P[:10, :10] = np.einsum("lm,lia,mib->ab", samples.feature_covariance.mean(axis=0), T, T) / 6
    P[10, 10] = np.trace(samples.wrench_covariance) / 6
    return P


def step(M: Array, v: Array, Z: Array, P: Array, forgetting: float = 1.0) -> tuple[Array, Array]:
    """One sample of eq. (34), (35): the next M, (11, 11), and v, (11,).

    Args:
        M: sum of Z'Z so far, (11, 11)
        v: (phi, -1), (11,)
        Z: rows [A F] of the sample, (6, 11)
        P: covariance of the errors in a row, (11, 11)
        forgetting: weight of a sample after the next one came
    """
    M = forgetting * M + Z.T @ Z
    new = np.linalg.solve(M, P @ v)
    return M, new / -new[-1]


def proposed(samples: WrenchSamples, static: StaticFit) -> WristPayload:
    """The payload by both stages as printed.

    Args:
        samples: wrench and motion of the excitation, by a causal filter
        static: the static stage by total least squares
    """
    Z = _rows(samples, static)
    P = constant_noise(samples)
    v = np.concatenate([static.value[:4], np.zeros(6), [-1.0]])
    M = _INITIAL_INFORMATION * np.eye(11)
    for rows in Z:
        M, v = step(M, v, rows, P)
    body = InertialParameters.from_vector(v[:10], "sensor")
    residual = (Z[:, :, :10] @ v[:10]) - Z[:, :, 10]
    unknown = np.full(6, np.nan)
    return WristPayload(
        body=body,
        unconstrained=body,
        noise=np.sqrt((residual**2).mean(axis=0)),
        verdict=Verdict("liu2025 as printed, for comparison; it gives no uncertainty"),
        method="liu2025",
        full_covariance=np.zeros((18, 18)),
        drift=static.drift,
        inclination=static.value[10:],
        nominal_gravity=static.nominal_gravity,
        trend=unknown,
        trend_std=unknown,
        T_flange_sensor=samples.sensor.T_flange_sensor,
    )


def _rows(samples: WrenchSamples, static: StaticFit) -> Array:
    """[A F] of every sample, zero drift and tilt taken from stage 1, (N, 6, 11)."""
    A = wrench_regressor(samples.features(static.gravity_base))
    return np.concatenate([A, (samples.wrench - static.drift)[:, :, None]], axis=2)


def step_costs(samples: WrenchSamples, static: StaticFit, count: int = 300) -> dict[str, float]:
    """The time of one more sample by each of Table I's estimators, median, [s].

    Args:
        samples: wrench and motion
        static: a static stage
        count: of samples that are timed, the last ones
    """
    Z = _rows(samples, static)
    P = constant_noise(samples)
    recursive = RecursiveTotalLeastSquares()
    R = recursive.init(10)
    M = _INITIAL_INFORMATION * np.eye(11)
    v = np.append(static.value[:4], np.zeros(7))
    v[-1] = -1.0
    spent: dict[str, list[float]] = {"TLS": [], "RTLS": [], "RRTLS": []}
    for k, rows in enumerate(Z):
        began = time.perf_counter()
        R = recursive.step(R, rows)
        if timed := k >= len(Z) - count:
            recursive.value(R)
            spent["RTLS"].append(time.perf_counter() - began)
        began = time.perf_counter()
        M, v = step(M, v, rows, P)
        if timed:
            spent["RRTLS"].append(time.perf_counter() - began)
    for k in range(len(Z) - 5, len(Z)):
        began = time.perf_counter()
        np.linalg.svd(Z[: k + 1].reshape(-1, 11), full_matrices=False)
        spent["TLS"].append(time.perf_counter() - began)
    return {name: float(np.median(times)) for name, times in spent.items()}
