"""Trajectories by name or from a file: the published ones, saved trajectories and designs."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

from steelyard import saved
from steelyard.errors import InvalidTrajectory, UnknownName
from steelyard.trajectory.fourier import FourierTrajectory

_PUBLISHED = resources.files("steelyard.trajectory") / "published"

TRAJECTORIES = tuple(sorted(p.name.removesuffix(".toml") for p in _PUBLISHED.iterdir()))
"""Names of the published trajectories."""


def load_trajectory(name: str | Path) -> FourierTrajectory:
    """A published trajectory by name, or the one in a .json file: a saved trajectory or design.

    Args:
        name: one of `TRAJECTORIES`, or a path
    """
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
