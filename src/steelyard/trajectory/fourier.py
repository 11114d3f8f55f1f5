"""The finite Fourier series of Swevers (1997), as ding2019 eq. (8) and xu2024 eq. (17) write it.

With the base frequency w and harmonics l = 1 ... L, joint j moves as

    q_j(t) = q0_j + sum_l  a_jl / (w l) sin(w l t) - b_jl / (w l) cos(w l t)
    v_j(t) =        sum_l  a_jl cos(w l t) + b_jl sin(w l t)
    a_j(t) =        sum_l -a_jl w l sin(w l t) + b_jl w l cos(w l t)

so the coefficients are amplitudes of velocity. Harmonic l of position, velocity, acceleration has the
amplitude hypot(a_jl, b_jl) times 1 / (w l), 1 and w l; the sums over l bound the signals, whatever the
phases (`amplitudes`). The same series, fitted to measured positions, gives velocities and accelerations
of periodic motion without differentiating noise (ding2019 section III.C).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from steelyard import saved
from steelyard.arrays import Array, finite
from steelyard.errors import InvalidTrajectory, UnknownName

_PUBLISHED = resources.files("steelyard.trajectory") / "published"

TRAJECTORIES = tuple(sorted(p.name.removesuffix(".toml") for p in _PUBLISHED.iterdir()))
"""Names of the published trajectories."""


class Trajectory(Protocol):
    """Anything that says where the joints are at any time, and how long it lasts."""

    @property
    def duration_s(self) -> float:
        """Its length, [s]."""

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at times t, (N,) [s]: each (N, n) [rad or m, /s, /s^2]."""


@dataclass(frozen=True, eq=False)
class FourierTrajectory:
    """A periodic motion of n joints with L harmonics.

    Attributes:
        sine: coefficients a, amplitudes of cos in the velocity, (n, L) [rad/s or m/s]
        cosine: coefficients b, amplitudes of sin in the velocity, (n, L) [rad/s or m/s]
        offset: q0, (n,) [rad or m]
        period_s: of the base frequency, [s]
    """

    sine: Array
    cosine: Array
    offset: Array
    period_s: float

    def __post_init__(self) -> None:
        shape = np.shape(self.sine)
        if len(shape) != 2 or shape[1] == 0:
            raise InvalidTrajectory(f"a Fourier trajectory needs (n, L) coefficients, L >= 1, got {shape}")
        if not (np.isfinite(self.period_s) and self.period_s > 0):
            raise InvalidTrajectory(f"period_s must be positive, got {self.period_s}")
        for name, wanted in (("sine", shape), ("cosine", shape), ("offset", shape[:1])):
            object.__setattr__(self, name, finite(getattr(self, name), wanted, name, InvalidTrajectory))

    @classmethod
    def fitted(cls, t: ArrayLike, q: ArrayLike, *, period_s: float, harmonics: int) -> FourierTrajectory:
        """The series that follows measured positions best (least squares).

        Args:
            t: times, (N,) [s]
            q: positions, (N, n) [rad or m]
            period_s: of the base frequency, [s]
            harmonics: L
        """
        time, positions = np.asarray(t, dtype=float), np.asarray(q, dtype=float)
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
        """A random motion that stays within a reach and a speed (a first motion to try, not a designed one).

        Args:
            centre: posture in the middle of the motion, (n,) [rad or m]
            reach: largest distance from it, (n,) [rad or m]
            speed: largest speed, (n,) [rad/s or m/s]
            period_s: of the base frequency, [s]
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
    def from_dict(cls, content: dict[str, Any]) -> FourierTrajectory:
        """The trajectory that `to_dict` has written."""
        missing = {"sine", "cosine", "offset", "period_s"} - set(content)
        if missing:
            raise InvalidTrajectory(f"a Fourier trajectory needs '{sorted(missing)[0]}'")
        return cls(content["sine"], content["cosine"], content["offset"], float(content["period_s"]))

    def to_dict(self) -> dict[str, Any]:
        """The trajectory as plain values, for JSON."""
        arrays = {key: getattr(self, key).tolist() for key in ("sine", "cosine", "offset")}
        return {**arrays, "period_s": self.period_s}

    def save(self, path: str | Path) -> None:
        """Writes the trajectory to a JSON file that `load_trajectory` reads."""
        saved.save(self.to_dict(), "trajectory", path)

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

    @property
    def frequencies(self) -> Array:
        """Angular frequency of each harmonic, w l, (L,) [rad/s]."""
        return np.asarray(2 * np.pi / self.period_s * np.arange(1, self.harmonics + 1))

    @property
    def amplitudes(self) -> tuple[Array, Array, Array]:
        """Sums of amplitudes of position (about the offset), velocity and acceleration, each (n,)."""
        size = np.hypot(self.sine, self.cosine)
        w = self.frequencies
        return (size / w).sum(axis=1), size.sum(axis=1), (size * w).sum(axis=1)

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at times t, (N,) [s]: each (N, n) [rad or m, /s, /s^2]."""
        w = self.frequencies
        phase = np.asarray(t, dtype=float)[:, None] * w
        s, c = np.sin(phase), np.cos(phase)
        q = s @ (self.sine / w).T - c @ (self.cosine / w).T + self.offset
        v = c @ self.sine.T + s @ self.cosine.T
        a = c @ (self.cosine * w).T - s @ (self.sine * w).T
        return q, v, a

    def jerk(self, t: ArrayLike) -> Array:
        """Change of acceleration at times t, (N,) [s], (N, n) [rad/s^3 or m/s^3]."""
        w = self.frequencies
        phase = np.asarray(t, dtype=float)[:, None] * w
        return np.asarray(-np.cos(phase) @ (self.sine * w**2).T - np.sin(phase) @ (self.cosine * w**2).T)


def load_trajectory(name: str | Path) -> FourierTrajectory:
    """A published trajectory (one of `TRAJECTORIES`), or that of a saved trajectory or design (.json)."""
    if Path(name).suffix == ".json":
        return _from_json(Path(name))
    if str(name) not in TRAJECTORIES:
        raise UnknownName(
            f"no trajectory '{name}': bundled are {', '.join(TRAJECTORIES)}; or give a .json file"
        )
    return FourierTrajectory.from_dict(tomllib.loads((_PUBLISHED / f"{name}.toml").read_text("utf-8")))


def _from_json(path: Path) -> FourierTrajectory:
    """The trajectory in a saved trajectory or design; a file without a header may hold one, too."""
    content = saved.read(path)
    kind = content.get("steelyard") if isinstance(content, dict) else None
    if kind is not None:
        content = saved.load(path, "design" if kind == "design" else "trajectory")
    try:
        return FourierTrajectory.from_dict(content.get("trajectory", content))
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidTrajectory(f"{path} holds no trajectory: {error}") from error
