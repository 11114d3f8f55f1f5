"""Every exception that steelyard raises, with one common base class.

Catch `SteelyardError` for all of them, or the standard base class (`ValueError`, `LookupError`,
...) of each. A message says what is wrong, where, and what to do next.

Messages name arguments of functions between backticks, with or without a value in Python's
notation: `flange`, `degrees=True`, `columns={'tau': 'effort'}`. The library never names an option
of the command line; the command line replaces arguments by its options with `reword_arguments`.
Doubts of a verdict and findings about a recording follow the same rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

_ARGUMENT = re.compile(r"`(?P<name>[a-z]\w*)(?:=(?P<value>[^`]+))?`")


def reword_arguments(message: str, spell: Callable[[str, str | None], str | None]) -> str:
    """A message in which each argument between backticks is spelled in another way.

    Args:
        message: of an error, a doubt or a finding
        spell: returns the text for the name of an argument and its value in Python's notation
            (None without a value); None keeps the argument as it is
    """

    def spelled(argument: re.Match[str]) -> str:
        text = spell(argument["name"], argument["value"])
        if text is None:
            return argument.group()
        return text

    return _ARGUMENT.sub(spelled, message)


class SteelyardError(Exception):
    """The base class of all errors that steelyard raises on purpose."""

    def reword(self, spell: Callable[[str, str | None], str | None]) -> None:
        """Spells the arguments in the message in another way, as `reword_arguments` does.

        Args:
            spell: returns the text for the name of an argument and its value
        """
        self.args = (reword_arguments(str(self), spell),)


class InvalidValue(SteelyardError, ValueError):
    """A field of a value that does not hold what its description allows."""


class InvalidInertia(SteelyardError, ValueError):
    """Numbers that cannot be read as inertial parameters, or two sets in different frames."""


class InvalidRobot(SteelyardError, ValueError):
    """A robot description that cannot be used, or an argument that does not fit the robot."""


class InvalidRecording(SteelyardError, ValueError):
    """Measured signals that contradict themselves, the clock or the robot."""


class InvalidSamples(SteelyardError, ValueError):
    """Samples or settings that contradict themselves or each other."""


class InvalidTrajectory(SteelyardError, ValueError):
    """Numbers or a file that do not describe a trajectory."""


class InfeasibleDesign(SteelyardError, ValueError):
    """Limits that contradict each other or the arm; the message names the violated limit."""


class UnknownName(SteelyardError, LookupError):
    """A robot, frame, joint or column that does not exist; the message lists those that do."""


class UnreadableFile(SteelyardError, ValueError):
    """A file that is missing, empty, damaged, or not of the kind that its name says."""

    @classmethod
    def of(cls, path: str | Path, error: OSError, *, remedy: str = "") -> UnreadableFile:
        """The error for a file that the operating system does not open.

        Args:
            path: of the file
            error: of the operating system
            remedy: what else helps where the file is missing, as 'or make the model first'
        """
        if isinstance(error, FileNotFoundError):
            steps = ", ".join(filter(None, ("check the path", remedy)))
            return cls(f"{path}: no such file (in the folder {Path.cwd()}); {steps}")
        if isinstance(error, IsADirectoryError):
            return cls(f"{path}: it is a folder; name a file")
        if isinstance(error, PermissionError):
            return cls(f"{path}: permission denied; allow this user to read it")
        return cls(f"{path}: it cannot be opened: {error.strerror or error}")


class NoTime(UnreadableFile):
    """A table of joint positions without a time column."""


class NoHeader(UnreadableFile):
    """A text table without names of columns.

    Attributes:
        count: number of its columns
    """

    def __init__(self, message: str, count: int = 0) -> None:
        super().__init__(message)
        self.count = count


class UnclearEffort(UnreadableFile):
    """An effort that may be a torque or a motor current; the message says how to choose."""


class SimulationFailed(SteelyardError, RuntimeError):
    """A simulation that diverged or left its valid range."""


class SourceFailed(SteelyardError, ConnectionError):
    """A live source that cannot be reached, was lost, or sends invalid data."""


class SolverFailed(SteelyardError, RuntimeError):
    """A numerical solver that found no solution; the message contains its status."""


class MissingExtra(SteelyardError, ImportError):
    """An optional dependency that is not installed; the message names the extra with it."""

    @classmethod
    def of(cls, package: str, extra: str = "") -> MissingExtra:
        """The error for a package.

        Args:
            package: that is not installed
            extra: of steelyard that installs it; empty for a package that no extra installs
        """
        wanted = package
        if extra:
            wanted = f"'steelyard[{extra}]'"
        return cls(f"this needs {package}: pip install {wanted}")
