"""The finite Fourier series of Swevers (1997), as ding2019 eq. (8) and xu2024 eq. (17) write it.

With the base frequency w and harmonics l = 1 ... L, joint j moves as

    q_j(t) = q0_j + sum_l  a_jl / (w l) sin(w l t) - b_jl / (w l) cos(w l t)
    v_j(t) =        sum_l  a_jl cos(w l t) + b_jl sin(w l t)
    a_j(t) =        sum_l -a_jl w l sin(w l t) + b_jl w l cos(w l t)

so the coefficients are amplitudes of velocity. Harmonic l of position, velocity, acceleration has
the amplitude hypot(a_jl, b_jl) times 1 / (w l), 1 and w l; the sums over l bound the signals,
whatever the phases (`amplitudes`). The same series, fitted to measured positions, gives velocities
and accelerations of periodic motion without differentiating noise (ding2019 section III.C).

An arm enters such a motion from rest in a posture, and leaves it, along polynomials of degree seven
with the given position, velocity, acceleration and jerk at both ends. (Where the motion starts at
rest, its jerk is ignored: matching it would make a long way swing far out.) On s = t / T in [0, 1]
their eight coefficients follow from eight linear conditions. The time T grows by tenths until all
joints keep the limits of velocity and acceleration.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from math import factorial
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from steelyard import _saved
from steelyard._arrays import Array, finite
from steelyard._codec import FileValue
from steelyard._kinds import POSITIVE, Shape
from steelyard.errors import InvalidTrajectory, UnknownName

_DEGREE = 7  # of the polynomials of entry and exit
_MAX_ENTRY_S = 120.0  # [s]
_ENTRY_POINTS = 201  # at which the limits of an entry are checked
_MAX_REST_MOTION = 1e-3  # [rad/s or m/s, rad/s^2 or m/s^2]
_BUNDLED = resources.files("steelyard.trajectory") / "bundled"

TRAJECTORIES = tuple(sorted(p.name.removesuffix(".toml") for p in _BUNDLED.iterdir()))
"""Names of the bundled trajectories, from papers and from steelyard."""


class Trajectory(Protocol):
    """A motion of joints that can be evaluated at any time."""

    @property
    def duration_s(self) -> float:
        """Its duration, [s]."""

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration, each (N, n) [rad or m, /s, /s^2].

        Args:
            t: times, (N,) [s]
        """


DESIGN_VERSION = 2
"""Version of saved designs, which hold a trajectory."""


@dataclass(frozen=True, eq=False)
class FourierTrajectory(FileValue, error=InvalidTrajectory, kind="trajectory"):
    """A periodic motion of n joints with L harmonics.

    Attributes:
        sine: coefficients a, amplitudes of cos in the velocity, (n, L) [rad/s or m/s]
        cosine: coefficients b, amplitudes of sin in the velocity, (n, L) [rad/s or m/s]
        offset: q0, (n,) [rad or m]
        period_s: of the base frequency, [s]
    """

    sine: Annotated[Array, Shape("n", "L")]
    cosine: Annotated[Array, Shape("n", "L")]
    offset: Annotated[Array, Shape("n")]
    period_s: Annotated[float, POSITIVE]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.harmonics == 0:
            raise InvalidTrajectory(
                f"a Fourier trajectory needs at least one harmonic, got {self.sine.shape}"
            )

    @classmethod
    def fitted(
        cls, t: ArrayLike, q: ArrayLike, *, period_s: float, harmonics: int
    ) -> FourierTrajectory:
        """The series that follows measured positions best (least squares).

        Args:
            t: times, (N,) [s]
            q: positions, (N, n) [rad or m]
            period_s: of the base frequency, [s]
            harmonics: L
        """
        time = np.asarray(t, dtype=float)
        positions = np.asarray(q, dtype=float)
        if harmonics < 1 or len(time) < 2 * harmonics + 1:
            raise InvalidTrajectory(
                f"{harmonics} harmonics need at least one harmonic and {2 * harmonics + 1} samples,"
                f" got {len(time)}"
            )
        w = 2 * np.pi / period_s * np.arange(1, harmonics + 1)
        phase = time[:, None] * w
        basis = np.column_stack([np.sin(phase) / w, -np.cos(phase) / w, np.ones(len(time))])
        coefficients = np.linalg.lstsq(basis, positions, rcond=None)[0].T
        return cls(
            coefficients[:, :harmonics],
            coefficients[:, harmonics : 2 * harmonics],
            coefficients[:, -1],
            period_s,
        )

    @classmethod
    def random(
        cls,
        centre: ArrayLike,
        *,
        reach: ArrayLike,
        speed: ArrayLike,
        period_s: float,
        harmonics: int,
        seed: int,
    ) -> FourierTrajectory:
        """A random motion within a reach and a speed; it is not designed for identification.

        Args:
            centre: posture in the middle of the motion, (n,) [rad or m]
            reach: largest distance from it, (n,) [rad or m]
            speed: largest speed, (n,) [rad/s or m/s]
            period_s: of the base frequency, [s]
            harmonics: L
            seed: of the random coefficients
        """
        q0 = np.asarray(centre, dtype=float)
        a, b = np.random.default_rng(seed).normal(size=(2, len(q0), harmonics))
        w = 2 * np.pi / period_s * np.arange(1, harmonics + 1)
        amplitude = np.hypot(a, b)
        stretch = np.maximum(
            (amplitude / w).sum(axis=1) / np.asarray(reach, dtype=float),
            amplitude.sum(axis=1) / np.asarray(speed, dtype=float),
        )
        return cls(a / stretch[:, None], b / stretch[:, None], q0, period_s)

    @classmethod
    def load(cls, name: str | Path) -> FourierTrajectory:
        """A bundled trajectory (one of `TRAJECTORIES`), or the one in a saved trajectory or design.

        Args:
            name: of a bundled trajectory, or a .json file
        """
        if Path(name).suffix == ".json":
            return _from_json(Path(name))
        if str(name) not in TRAJECTORIES:
            raise UnknownName(
                f"no trajectory '{name}': bundled are {', '.join(TRAJECTORIES)}; or give a .json"
                " file"
            )
        bundled = _BUNDLED / f"{name}.toml"
        return _from_content(tomllib.loads(bundled.read_text("utf-8")))

    def __repr__(self) -> str:
        size = f"{self.n} joints, {self.sine.shape[1]} harmonics"
        return f"<FourierTrajectory: {size}, {self.period_s:g} s>"

    @property
    def n(self) -> int:
        """Number of joints."""
        return int(self.sine.shape[0])

    @property
    def harmonics(self) -> int:
        """Number of harmonics, L."""
        return int(self.sine.shape[1])

    @property
    def duration_s(self) -> float:
        """Length of one period, [s]."""
        return self.period_s

    def with_period(self, period_s: float) -> FourierTrajectory:
        """The same path in another time.

        Args:
            period_s: of the base frequency, [s]
        """
        factor = self.period_s / period_s
        return FourierTrajectory(self.sine * factor, self.cosine * factor, self.offset, period_s)

    @property
    def frequencies(self) -> Array:
        """Angular frequency of each harmonic, w l, (L,) [rad/s]."""
        return np.asarray(2 * np.pi / self.period_s * np.arange(1, self.harmonics + 1))

    @property
    def amplitudes(self) -> tuple[Array, Array, Array]:
        """Bounds of position (about the offset), velocity and acceleration, each (n,)."""
        size = np.hypot(self.sine, self.cosine)
        w = self.frequencies
        return (size / w).sum(axis=1), size.sum(axis=1), (size * w).sum(axis=1)

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration, each (N, n) [rad or m, /s, /s^2].

        Args:
            t: times, (N,) [s]
        """
        w = self.frequencies
        phase = np.asarray(t, dtype=float)[:, None] * w
        s = np.sin(phase)
        c = np.cos(phase)
        q = s @ (self.sine / w).T - c @ (self.cosine / w).T + self.offset
        v = c @ self.sine.T + s @ self.cosine.T
        a = c @ (self.cosine * w).T - s @ (self.sine * w).T
        return q, v, a

    def jerk(self, t: ArrayLike) -> Array:
        """The derivative of the acceleration at times t, (N,) [s]: (N, n) [rad/s^3 or m/s^3]."""
        w = self.frequencies
        phase = np.asarray(t, dtype=float)[:, None] * w
        return np.asarray(
            -np.cos(phase) @ (self.sine * w**2).T - np.sin(phase) @ (self.cosine * w**2).T
        )


@dataclass(frozen=True, eq=False)
class ApproachedTrajectory:
    """A trajectory, repeated, with an entry from rest and an exit to rest.

    Attributes:
        core: the periodic trajectory
        posture: of the arm at rest before and after, (n,) [rad or m]
        entry_s: duration of the entry, [s]
        exit_s: duration of the exit, [s]
        periods: number of repetitions of the core
    """

    core: FourierTrajectory
    posture: Array
    entry_s: float
    exit_s: float
    periods: int = 1
    _entry: Array = field(init=False, repr=False)
    _exit: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        posture = finite(self.posture, (self.core.n,), "posture", InvalidTrajectory)
        object.__setattr__(self, "posture", posture)
        if not (self.entry_s > 0 and self.exit_s > 0 and self.periods >= 1):
            raise InvalidTrajectory(
                "entry_s, exit_s and periods must be positive,"
                f" got {self.entry_s}, {self.exit_s}, {self.periods}"
            )
        rest, start = _ends(self.core, posture)
        object.__setattr__(self, "_entry", _polynomial(rest, start, self.entry_s))
        object.__setattr__(self, "_exit", _polynomial(start, rest, self.exit_s))

    @classmethod
    def within(
        cls,
        core: FourierTrajectory,
        posture: ArrayLike,
        *,
        v_max: ArrayLike,
        a_max: ArrayLike,
        periods: int = 1,
    ) -> ApproachedTrajectory:
        """The motion with nearly the shortest entry and exit within the limits.

        Args:
            core: the periodic trajectory
            posture: of the arm at rest before and after, (n,) [rad or m]
            v_max: largest speed, (n,) [rad/s or m/s]
            a_max: largest acceleration, (n,) [rad/s^2 or m/s^2]
            periods: number of repetitions of the core
        """
        v_limit = np.asarray(v_max, dtype=float)
        a_limit = np.asarray(a_max, dtype=float)
        rest, start = _ends(core, posture)
        entry_s = _shortest(rest, start, v_limit, a_limit)
        exit_s = _shortest(start, rest, v_limit, a_limit)
        return cls(core, rest[0], entry_s, exit_s, periods)

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.core.n

    @property
    def duration_s(self) -> float:
        """Duration of entry, all periods and exit, [s]."""
        return self.entry_s + self.periods * self.core.period_s + self.exit_s

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration, each (N, n); at rest before and after the motion.

        Args:
            t: times, (N,) [s]
        """
        time = np.clip(np.asarray(t, dtype=float), 0.0, self.duration_s)
        end = self.entry_s + self.periods * self.core.period_s
        moving = self.core.at(time - self.entry_s)
        entering = _evaluated(self._entry, self.entry_s, np.minimum(time, self.entry_s))
        leaving = _evaluated(self._exit, self.exit_s, np.maximum(time - end, 0.0))
        before = (time < self.entry_s)[:, None]
        after = (time > end)[:, None]
        parts = zip(moving, entering, leaving, strict=True)
        q, v, a = (np.where(before, e, np.where(after, x, m)) for m, e, x in parts)
        return q, v, a


def _from_json(path: Path) -> FourierTrajectory:
    """The trajectory in a saved trajectory or design, or in a JSON file without a header."""
    content = _saved.read(path)
    if isinstance(content, dict):
        header = content
    else:
        header = {}
    kind = header.get("steelyard")
    if kind == "design" or "seal" in header:
        content = _saved.load(path, "design", version=DESIGN_VERSION, sealed=True)
    elif kind is not None:
        content = _saved.load(path, "trajectory")
    try:
        return _from_content(content.get("trajectory", content))
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidTrajectory(f"{path} does not hold a trajectory: {error}") from error


def _from_content(content: Mapping[str, Any]) -> FourierTrajectory:
    """The trajectory in a content that may say more, such as its source."""
    names = FourierTrajectory.__dataclass_fields__
    return FourierTrajectory.from_dict({name: content[name] for name in names if name in content})


def _ends(core: FourierTrajectory, posture: ArrayLike) -> tuple[Array, Array]:
    """Position, velocity, acceleration and jerk, (4, n), at rest and at the start of the core."""
    rest = np.zeros((4, core.n))
    at = np.zeros(1)
    rest[0] = posture
    q, v, a = core.at(at)
    still = np.abs(v).max() < _MAX_REST_MOTION and np.abs(a).max() < _MAX_REST_MOTION
    return rest, np.vstack([q, v, a, 0 * q if still else core.jerk(at)])


def _polynomial(start: Array, end: Array, duration_s: float) -> Array:
    """Coefficients on s = t / T of each joint, (8, n)."""
    powers = np.arange(_DEGREE + 1)
    rows = []
    for at in (0.0, 1.0):
        for k in range(4):
            falling = np.array([factorial(p) / factorial(p - k) if p >= k else 0.0 for p in powers])
            rows.append(falling * np.where(powers >= k, at ** np.maximum(powers - k, 0), 0.0))
    scale = duration_s ** np.arange(4)[:, None]
    return np.asarray(np.linalg.solve(np.array(rows), np.vstack([start * scale, end * scale])))


def _evaluated(coefficients: Array, duration_s: float, t: Array) -> tuple[Array, Array, Array]:
    s = t / duration_s
    found = []
    c = coefficients
    for k in range(3):
        found.append(np.vander(s, len(c), increasing=True) @ c / duration_s**k)
        c = c[1:] * np.arange(1, len(c))[:, None]
    return found[0], found[1], found[2]


def _shortest(start: Array, end: Array, v_max: Array, a_max: Array) -> float:
    """The shortest time, within a tenth, in which a polynomial keeps the limits, [s]."""

    def keeps(duration_s: float) -> bool:
        grid = np.linspace(0.0, duration_s, _ENTRY_POINTS)
        _, v, a = _evaluated(_polynomial(start, end, duration_s), duration_s, grid)
        return bool(
            (np.abs(v).max(axis=0) <= v_max).all() and (np.abs(a).max(axis=0) <= a_max).all()
        )

    duration_s = 0.5
    while not keeps(duration_s):
        duration_s *= 1.1
        if duration_s > _MAX_ENTRY_S:
            raise InvalidTrajectory(
                f"no entry within {_MAX_ENTRY_S:g} s keeps the limits of velocity and acceleration:"
                " the trajectory itself violates them at its start"
            )
    return duration_s
