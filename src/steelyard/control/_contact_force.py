"""Contact forces: the wrench of a wrist sensor without its load and its zero drift.

    F_ext = F_raw - F_load(motion) - F_0                                             liu2025 eq. (1)

sample by sample, with a covariance that includes all estimated and measured quantities:

    cov F_ext = Sw + B Sx B' + C Sigma C'

Sw of the wrench, Sx of the motion, Sigma of the payload, drift and tilt, C the derivative of load
and drift by them.

Zero drifts change in time, so the remaining wrench at rest can be subtracted again (liu2025 eq.
(44)): once at the start, or after every rest. A wrench too large for a drift is a contact, and is
never subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array, Mask
from steelyard.errors import InvalidSamples
from steelyard.inertia import INERTIA, checked_transform
from steelyard.verdict import Doubt, DoubtKind, Verdict
from steelyard.wrist._payload import WristPayload
from steelyard.wrist._regressor import wrench_slope
from steelyard.wrist._samples import WrenchSamples

ContactFrame = Literal["sensor", "tool", "base"]
Rezero = Literal["none", "start", "rest"]

_NO_INTERVALS = (
    "the load has no intervals: those of the force contain the noise of wrench and motion only"
)
_TYPICAL_RADIUS = 0.3  # [m], of gyration, if the inertia of a load is unknown
_MIN_TREND_S = 5.0  # shortest time for a trend
_MIN_TEMPERATURE_RANGE = 0.5  # [K], smallest range for a trend with temperature
_MIN_TREND_SIGMA = 4.5  # standard deviations, for a doubt about a trend
_MIN_REST_ROWS = 20  # of all rests, for a trend
_MIN_ROWS_PER_REST = 5
_MIN_RESTS = 3  # for a trend


@dataclass(frozen=True, eq=False)
class ContactForce:
    """The external wrench over time, and its components.

    Attributes:
        t: time, (N,) [s]
        external: of the surroundings on the load, (N, 6) [N, Nm], in `frame`
        covariance: of each external wrench, (N, 6, 6)
        frame: 'sensor', 'tool', or 'base' (axes of the base, torque about the sensor's origin)
        raw: as measured, (N, 6) [N, Nm], in the sensor frame
        load: of the load on the sensor, (N, 6) [N, Nm], in the sensor frame
        drift: subtracted zero drift, including the second compensation, (N, 6) [N, Nm], in the
            sensor frame
        zeroed_at: times at which the zero was determined again, [s]
        trend: rate of the zero drift, (6,) [N/s, Nm/s], in the sensor frame; NaN for too few rests
        trend_std: standard deviation of the rate, (6,) [N/s, Nm/s]
        temperature_trend: change of the zero with temperature, (6,) [N/K, Nm/K], in the sensor
            frame; NaN if temperature was not measured or hardly changed between rests
        temperature_trend_std: standard deviation of that change, (6,) [N/K, Nm/K]
        verdict: subtracted quantities, and doubts
    """

    t: Array
    external: Array
    covariance: Array
    frame: ContactFrame
    raw: Array
    load: Array
    drift: Array
    zeroed_at: Sequence[float]
    trend: Array
    trend_std: Array
    temperature_trend: Array
    temperature_trend_std: Array
    verdict: Verdict

    @property
    def std(self) -> Array:
        """Standard deviation of the external wrench, (N, 6) [N, Nm]."""
        return np.asarray(np.sqrt(np.einsum("nii->ni", self.covariance)))

    @property
    def force(self) -> Array:
        """Size of the external force, (N,) [N]."""
        return np.asarray(np.linalg.norm(self.external[:, :3], axis=1))

    @property
    def torque(self) -> Array:
        """Size of the external torque, (N,) [Nm]."""
        return np.asarray(np.linalg.norm(self.external[:, 3:], axis=1))


class ZeroState(NamedTuple):
    """The state of a `ZeroKeeper`."""

    offset: Array  # to be subtracted, (6,) [N, Nm]
    total: Array  # sum of the wrenches of the current rest, (6,) [N, Nm]
    rows: int  # number of rows of the current rest
    found: int  # number of determined zeros


@dataclass(frozen=True)
class ZeroKeeper:
    """The second compensation of the zero drift, one sample at a time: `init`, `step`.

    Attributes:
        mode: 'none', 'start' (from the first rows at rest, once) or 'rest' (after every rest)
        rest_rows: number of rows at rest for a zero
        speed: largest angular speed at rest, [rad/s]
        largest_force: of a drift; a larger force at rest is a contact, [N]
        largest_torque: of a drift; a larger torque at rest is a contact, [Nm]
    """

    mode: Rezero = "none"
    rest_rows: int = 10
    speed: float = 0.02
    largest_force: float = 20.0
    largest_torque: float = 5.0

    def __post_init__(self) -> None:
        if self.mode not in get_args(Rezero):
            raise InvalidSamples(f"`rezero` must be 'none', 'start' or 'rest', got '{self.mode}'")
        if self.rest_rows < 1:
            raise InvalidSamples(f"rest_rows must be at least 1, got {self.rest_rows}")

    def is_rest(self, external: Array, speed: float | Array) -> Mask:
        """Whether samples are at rest without contact, (...).

        Args:
            external: external wrench, (..., 6) [N, Nm]
            speed: angular speed, (...) [rad/s]
        """
        force, torque = (np.linalg.norm(x, axis=-1) for x in (external[..., :3], external[..., 3:]))
        at_rest: Mask = (
            (speed <= self.speed) & (force < self.largest_force) & (torque < self.largest_torque)
        )
        return at_rest

    def init(self) -> ZeroState:
        """The state before the first sample."""
        return ZeroState(np.zeros(6), np.zeros(6), 0, 0)

    def step(self, state: ZeroState, external: Array, speed: float) -> ZeroState:
        """The next state, whose offset is to be subtracted from this sample.

        Args:
            state: after the previous sample
            external: external wrench before the second compensation, (6,) [N, Nm], in the sensor
                frame
            speed: angular speed of the sensor, [rad/s]
        """
        if self.mode == "none" or (self.mode == "start" and state.found):
            return state
        if not self.is_rest(external, speed):
            return ZeroState(state.offset, np.zeros(6), 0, state.found)
        total = state.total + external
        count = state.rows + 1
        if count < self.rest_rows:
            return ZeroState(state.offset, total, count, state.found)
        return ZeroState(total / count, total, count, state.found + (count == self.rest_rows))


def contact_force(
    payload: WristPayload,
    samples: WrenchSamples,
    *,
    frame: ContactFrame = "sensor",
    rezero: Rezero | ZeroKeeper = "none",
    T_sensor_tool: ArrayLike | None = None,
    temperature: ArrayLike | None = None,
) -> ContactForce:
    """The external force and torque of each sample, with its covariance.

    Args:
        payload: on the sensor, with its drift and the tilt of the base
        samples: of the sensor
        frame: of the answer: 'sensor', 'tool' or 'base'
        rezero: second compensation of the zero drift: 'none', at the 'start', after every 'rest',
            or a `ZeroKeeper`
        T_sensor_tool: pose of the tool in the sensor frame, (4, 4); required for the frame 'tool'
        temperature: of the sensor at each sample, (N,) [K or degrees Celsius]
    """
    if frame not in get_args(ContactFrame):
        raise InvalidSamples(f"frame must be 'sensor', 'tool' or 'base', got '{frame}'")
    if frame == "tool" and T_sensor_tool is None:
        raise InvalidSamples("the frame 'tool' needs T_sensor_tool")
    if isinstance(rezero, ZeroKeeper):
        keeper = rezero
    else:
        keeper = ZeroKeeper(rezero)
    x = samples.features(payload.gravity_base)
    load = payload.wrench(x)
    external = samples.wrench - load - payload.drift
    speed = np.linalg.norm(samples.angular_velocity, axis=1)
    offset, zeroed = _second_zero(keeper, external, speed, samples.t)
    trend, trend_std = _trend(keeper, external, speed, samples.t, _MIN_TREND_S)
    if temperature is None:
        kelvins = np.zeros(len(samples.t))
    else:
        kelvins = np.asarray(temperature, dtype=float)
    if kelvins.shape != samples.t.shape or not np.isfinite(kelvins).all():
        raise InvalidSamples(
            f"temperature must be {len(samples.t)} finite numbers, got shape {kelvins.shape}"
        )
    by_temperature = _trend(keeper, external, speed, kelvins, _MIN_TEMPERATURE_RANGE)
    plain = ContactForce(
        samples.t,
        external - offset,
        _covariance(payload, samples, x),
        "sensor",
        samples.wrench,
        load,
        payload.drift + offset,
        zeroed,
        trend,
        trend_std,
        *by_temperature,
        _verdict(payload, keeper, zeroed, trend, trend_std),
    )
    if frame == "sensor":
        return plain
    change = _change(samples.R_base_sensor, frame, T_sensor_tool)
    return replace(
        plain,
        external=np.einsum("nij,nj->ni", change, plain.external),
        covariance=change @ plain.covariance @ change.transpose(0, 2, 1),
        frame=frame,
    )


def _second_zero(
    keeper: ZeroKeeper, external: Array, speed: Array, t: Array
) -> tuple[Array, list[float]]:
    state = keeper.init()
    offset = np.zeros_like(external)
    zeroed = []
    if keeper.mode == "none":
        return offset, []
    for k in range(len(external)):
        found = state.found
        state = keeper.step(state, external[k], float(speed[k]))
        offset[k] = state.offset
        if state.found > found:
            zeroed.append(float(t[k]))
    return offset, zeroed


def _covariance(payload: WristPayload, samples: WrenchSamples, x: Array) -> Array:
    if payload.gives_intervals:
        sigma = payload.full_covariance.copy()
    else:
        sigma = np.zeros_like(payload.full_covariance)
    if not payload.knows_inertia:
        sigma[INERTIA, :] = 0.0
        sigma[:, INERTIA] = 0.0
        guess = (payload.body.mass * _TYPICAL_RADIUS**2) ** 2
        sigma[INERTIA, INERTIA] = guess * np.eye(6)
    C = payload.slope(x, samples.R_base_sensor)
    B = wrench_slope(payload.body.vector)
    motion = B @ samples.feature_covariance @ B.T
    return np.asarray(samples.wrench_covariance + motion + C @ sigma @ C.transpose(0, 2, 1))


def _change(R_base_sensor: Array, frame: ContactFrame, T_sensor_tool: ArrayLike | None) -> Array:
    """The matrix that transforms a wrench from the sensor frame to another frame, (N, 6, 6)."""
    N = len(R_base_sensor)
    change = np.zeros((N, 6, 6))
    if frame == "base":
        change[:, :3, :3] = change[:, 3:, 3:] = R_base_sensor
        return change
    T = checked_transform(np.eye(4) if T_sensor_tool is None else T_sensor_tool)
    R = T[:3, :3].T
    (x, y, z) = T[:3, 3]
    change[:, :3, :3] = change[:, 3:, 3:] = R
    change[:, 3:, :3] = -R @ np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return change


def _trend(
    keeper: ZeroKeeper, external: Array, speed: Array, against: Array, shortest: float
) -> tuple[Array, Array]:
    """Change of the external wrench at rest with time or temperature, and its std, (6,) each."""
    at_rest = keeper.is_rest(external, speed)
    if at_rest.sum() < _MIN_REST_ROWS or np.ptp(against[at_rest]) < shortest:
        return np.full(6, np.nan), np.full(6, np.nan)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], at_rest.astype(int), [0]])))
    parts = [
        slice(i, j)
        for i, j in zip(edges[::2], edges[1::2], strict=True)
        if j - i >= _MIN_ROWS_PER_REST
    ]
    if len(parts) < _MIN_RESTS:
        return np.full(6, np.nan), np.full(6, np.nan)
    middle = np.array([against[part].mean() for part in parts])
    means = np.array([external[part].mean(axis=0) for part in parts])
    A = np.column_stack([np.ones(len(parts)), middle - middle.mean()])
    value, *_ = np.linalg.lstsq(A, means, rcond=None)
    scatter = ((means - A @ value) ** 2).sum(axis=0) / max(len(parts) - 2, 1)
    return value[1], np.sqrt(scatter / (A[:, 1] ** 2).sum())


def _verdict(
    payload: WristPayload,
    keeper: ZeroKeeper,
    zeroed: Sequence[float],
    trend: Array,
    trend_std: Array,
) -> Verdict:
    found = ""
    doubts = []
    if not payload.knows_inertia:
        words = "the inertia of the load is unknown: fast motion looks like contact"
        doubts.append(Doubt(DoubtKind.NOT_EXCITED, words, blocks=False))
    if not payload.gives_intervals:
        doubts.append(Doubt(DoubtKind.TOO_UNCERTAIN, _NO_INTERVALS, blocks=False))
    if len(zeroed) == 1:
        found = "the zero was determined again once"
    elif zeroed:
        found = f"the zero was determined again {len(zeroed)} times"
    elif keeper.mode != "none":
        words = "no zero was determined again: the sensor was never at rest without contact"
        doubts.append(Doubt(DoubtKind.NO_ZERO, words, blocks=False))
    if (np.abs(trend) > _MIN_TREND_SIGMA * trend_std).any():
        axis = int(np.abs(np.nan_to_num(trend / trend_std)).argmax())
        name = ("fx", "fy", "fz", "tx", "ty", "tz")[axis]
        words = f"the zero drift changes, {name} by {3600 * trend[axis]:.3g} per hour"
        doubts.append(Doubt(DoubtKind.DRIFT_MOVES, words, blocks=False))
    if doubts:
        plain = ""
    else:
        plain = "load and zero drift were subtracted"
    return Verdict(found or plain, tuple(doubts))
