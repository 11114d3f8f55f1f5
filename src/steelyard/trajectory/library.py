"""Trajectories by name or from a file: the published ones, and JSON files."""

from __future__ import annotations

import json
import tomllib
from importlib import resources
from pathlib import Path

import numpy as np

from steelyard.errors import InvalidTrajectory, UnknownName, UnreadableFile
from steelyard.trajectory.fourier import FourierTrajectory

_PUBLISHED = resources.files("steelyard.trajectory") / "published"


def trajectory_names() -> tuple[str, ...]:
    """The names of the bundled trajectories."""
    files = (p.name for p in _PUBLISHED.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml")))


def load_trajectory(name: str | Path) -> FourierTrajectory:
    """A published trajectory by name, or the one in a .json file.

    Args:
        name: one of `trajectory_names()`, or a path
    """
    path = Path(name)
    if path.suffix == ".json":
        return _from_json(path)
    if str(name) not in trajectory_names():
        raise UnknownName(
            f"no trajectory '{name}': bundled are {', '.join(trajectory_names())}; or give a .json file"
        )
    content = tomllib.loads((_PUBLISHED / f"{name}.toml").read_text(encoding="utf-8"))
    return FourierTrajectory(
        np.array(content["sine"]),
        np.array(content["cosine"]),
        np.array(content["offset"]),
        content["period_s"],
    )


def save_trajectory(trajectory: FourierTrajectory, path: str | Path) -> None:
    """Writes a trajectory to a JSON file.

    Args:
        trajectory: to write
        path: of the file
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(trajectory.to_dict(), indent=2) + "\n", encoding="utf-8")


def _from_json(path: Path) -> FourierTrajectory:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableFile(f"cannot read trajectory {path}: {error.strerror}") from error
    except ValueError as error:
        raise UnreadableFile(f"{path} is not JSON: {error}") from error
    try:
        return FourierTrajectory.from_dict(content.get("trajectory", content))
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidTrajectory(f"{path} holds no trajectory: {error}") from error
