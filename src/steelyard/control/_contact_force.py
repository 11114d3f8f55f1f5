"""The force of a contact: what a wrist sensor feels beyond its load and its own zero drift.

    F_ext = F_raw - F_load(motion) - F_0                                              liu2025 eq. (1)

sample by sample, with the covariance of everything that was estimated or measured:

    cov F_ext = Sw + B Sx B' + C Sigma C'

Sw of the wrench, Sx of the motion, Sigma of the payload, drift and tilt, C the slope of load and
drift by them.

Zero drifts move, so what is left at rest may be taken off again (liu2025 eq. (44)): once, at the
start, or after every rest. What is larger than a drift can be is a contact, and is never taken for
a zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array, Mask
from steelyard.errors import InvalidSamples
from steelyard.inertia import checked_transform
from steelyard.verdict import Doubt, DoubtKind, Verdict
from steelyard.wrist._payload import WristPayload
from steelyard.wrist._regressor import wrench_slope
from steelyard.wrist._samples import WrenchSamples

ContactFrame = Literal["sensor", "tool", "base"]
Rezero = Literal["none", "start", "rest"]

_TYPICAL_RADIUS = 0.3  # [m]: of gyration, where the inertia of a load is not known
_SHORTEST_TREND_S = 5.0
_SMALLEST_WARMING = 0.5  # [K]


@dataclass(frozen=True, eq=False)
class ContactForce:
    """The external wrench over time, and what it is made of.

    Attributes:
        t: time, (N,) [s]
        external: what the surroundings do to the load, (N, 6) [N, Nm], in `frame`
        covariance: of each, (N, 6, 6)
        frame: 'sensor', 'tool', or 'base' (axes of the base, torque about the sensor's origin)
        raw: what the sensor measured, (N, 6) [N, Nm], in the sensor frame
        load: what the load does to the sensor, (N, 6) [N, Nm], in the sensor frame
        drift: what was taken off as zero drift, second compensation included, (N, 6), in the sensor
            frame
        zeroed_at: times at which the zero was found again, [s]
        trend: how fast the zero moves, (6,) [N/s, Nm/s], in the sensor frame; NaN where rests are
            too few
        trend_std: its standard deviation, (6,)
        temperature_trend: how the zero moves with temperature, (6,) [N/K, Nm/K], in the sensor
            frame; NaN where temperature was not measured or hardly changed between rests
        temperature_trend_std: its standard deviation, (6,)
        verdict: what was taken off, and what counts against it
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


class _ZeroState(NamedTuple):
    """Where the second zero stands."""

    offset: Array  # what is taken off, (6,) [N, Nm]
    total: Array  # sum of the wrenches of the present rest, (6,)
    rows: int  # of the present rest
    found: int  # how often the zero was found


@dataclass(frozen=True)
class ZeroKeeper:
    """The second compensation of the zero drift, one sample at a time: `init`, `step`; the state is a value.

    Attributes:
        mode: 'none', 'start' (from the first rows at rest, once) or 'rest' (after every rest)
        rest_rows: rows at rest that make a zero
        speed: at rest the sensor turns more slowly than this, [rad/s]
        largest_force: a larger force at rest is a contact, no drift, [N]
        largest_torque: a larger torque at rest is a contact, no drift, [Nm]
    """

    mode: Rezero = "none"
    rest_rows: int = 10
    speed: float = 0.02
    largest_force: float = 20.0
    largest_torque: float = 5.0

    def __post_init__(self) -> None:
        if self.mode not in get_args(Rezero):
            raise InvalidSamples(f"rezero must be 'none', 'start' or 'rest', got '{self.mode}'")
        if self.rest_rows < 1:
            raise InvalidSamples(f"a zero needs at least one row at rest, got {self.rest_rows}")

    def is_rest(self, external: Array, speed: float | Array) -> Mask:
        """Whether speed and external wrench, (..., 6), are those of a rest without contact, (...)."""
        force, torque = (np.linalg.norm(x, axis=-1) for x in (external[..., :3], external[..., 3:]))
        still: Mask = (
            (speed <= self.speed) & (force < self.largest_force) & (torque < self.largest_torque)
        )
        return still

    def init(self) -> _ZeroState:
        """The state before the first sample."""
        return _ZeroState(np.zeros(6), np.zeros(6), 0, 0)

    def step(self, state: _ZeroState, external: Array, speed: float) -> _ZeroState:
        """The next state; its offset is to be taken off this sample.

        Args:
            external: external wrench before the second compensation, (6,) [N, Nm], in the sensor
                frame
            speed: how fast the sensor turns, [rad/s]
        """
        if self.mode == "none" or (self.mode == "start" and state.found):
            return state
        if not self.is_rest(external, speed):
            return _ZeroState(state.offset, np.zeros(6), 0, state.found)
        total = state.total + external
        count = state.rows + 1
        if count < self.rest_rows:
            return _ZeroState(state.offset, total, count, state.found)
        return _ZeroState(total / count, total, count, state.found + (count == self.rest_rows))


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
        payload: what the sensor carries, its drift and the tilt of the base
        frame: of the answer: 'sensor', 'tool' or 'base'
        rezero: second compensation of the zero drift: 'none', at the 'start', after every 'rest',
            or a keeper
        T_sensor_tool: the tool in the sensor frame, (4, 4); needed for the frame 'tool'
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
    trend, trend_std = _trend(keeper, external, speed, samples.t, _SHORTEST_TREND_S)
    if temperature is None:
        warmth = np.zeros(len(samples.t))
    else:
        warmth = np.asarray(temperature, dtype=float)
    if warmth.shape != samples.t.shape or not np.isfinite(warmth).all():
        raise InvalidSamples(
            f"temperature must be {len(samples.t)} finite numbers, got shape {warmth.shape}"
        )
    by_warmth = _trend(keeper, external, speed, warmth, _SMALLEST_WARMING)
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
        *by_warmth,
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
    sigma = payload.full_covariance.copy()
    if not payload.knows_inertia:
        sigma[4:10, :] = sigma[:, 4:10] = 0.0
        guess = (payload.body.mass * _TYPICAL_RADIUS**2) ** 2
        sigma[range(4, 10), range(4, 10)] = guess
    C = payload.slope(x, samples.R_base_sensor)
    B = wrench_slope(payload.body.vector)
    motion = B @ samples.feature_covariance @ B.T
    return np.asarray(samples.wrench_covariance + motion + C @ sigma @ C.transpose(0, 2, 1))


def _change(R_base_sensor: Array, frame: ContactFrame, T_sensor_tool: ArrayLike | None) -> Array:
    """The matrix that turns a wrench in the sensor frame into one in another frame, (N, 6, 6)."""
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
    """How the external wrench at rest moves with time or temperature, from the rows at rest, (6,) each."""
    still = keeper.is_rest(external, speed)
    if still.sum() < 20 or np.ptp(against[still]) < shortest:
        return np.full(6, np.nan), np.full(6, np.nan)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], still.astype(int), [0]])))
    parts = [slice(i, j) for i, j in zip(edges[::2], edges[1::2], strict=True) if j - i >= 5]
    if len(parts) < 3:
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
        words = "the inertia of the load is not known: fast motion looks like contact"
        doubts.append(Doubt(DoubtKind.NOT_EXCITED, words, blocks=False))
    if zeroed:
        found = f"the zero was found again {'once' if len(zeroed) == 1 else f'{len(zeroed)} times'}"
    elif keeper.mode != "none":
        words = "no zero was found again: the sensor was never at rest without contact"
        doubts.append(Doubt(DoubtKind.NO_ZERO, words, blocks=False))
    if (np.abs(trend) > 4.5 * trend_std).any():
        axis = int(np.abs(np.nan_to_num(trend / trend_std)).argmax())
        name = ("fx", "fy", "fz", "tx", "ty", "tz")[axis]
        words = f"the zero drift moves, {name} by {3600 * trend[axis]:.3g} an hour"
        doubts.append(Doubt(DoubtKind.DRIFT_MOVES, words, blocks=False))
    if doubts:
        plain = ""
    else:
        plain = "load and zero drift were taken off"
    return Verdict(found or plain, tuple(doubts))
