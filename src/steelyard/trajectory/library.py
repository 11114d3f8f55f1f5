"""Published trajectories by name."""

from __future__ import annotations

import tomllib
from importlib import resources

import numpy as np

from steelyard.errors import UnknownName
from steelyard.trajectory.fourier import FourierTrajectory

__all__ = ["load_trajectory", "trajectory_names"]

_PUBLISHED = resources.files("steelyard.trajectory") / "published"


def trajectory_names() -> tuple[str, ...]:
    """The names of the bundled trajectories."""
    files = (p.name for p in _PUBLISHED.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml")))


def load_trajectory(name: str) -> FourierTrajectory:
    """A published trajectory.

    Args:
        name: one of `trajectory_names()`
    """
    if name not in trajectory_names():
        raise UnknownName(f"no trajectory '{name}': bundled are {', '.join(trajectory_names())}")
    content = tomllib.loads((_PUBLISHED / f"{name}.toml").read_text(encoding="utf-8"))
    return FourierTrajectory(
        np.array(content["sine"]),
        np.array(content["cosine"]),
        np.array(content["offset"]),
        content["period_s"],
    )
