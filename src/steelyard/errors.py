"""Every exception that steelyard raises: one root, and a standard parent beside it.

Catch `SteelyardError` for all of them, or the standard parent (`ValueError`, `LookupError`, ...) as
usual. Each message says what is wrong, where, and what to do next.
"""


class SteelyardError(Exception):
    """The root of all errors that steelyard raises on purpose."""


class InvalidInertia(SteelyardError, ValueError):
    """Numbers that cannot be read as inertial parameters, or two sets in different frames."""


class InvalidRobot(SteelyardError, ValueError):
    """A robot description that steelyard cannot use, or an argument that does not fit the robot."""


class InvalidRecording(SteelyardError, ValueError):
    """Measured signals that contradict themselves, the clock or the robot."""


class InvalidSamples(SteelyardError, ValueError):
    """Samples that contradict themselves, or that no recording can give."""


class InvalidTrajectory(SteelyardError, ValueError):
    """Numbers or a file that describe no trajectory."""


class InfeasibleDesign(SteelyardError, ValueError):
    """Limits that contradict each other or the arm; the message names the one in the way, and by how much."""


class UnknownName(SteelyardError, LookupError):
    """A robot, frame, joint or column that does not exist; the message lists those that do."""


class UnreadableFile(SteelyardError, ValueError):
    """A file that is missing, empty, broken, or not what its name says."""


class NoTime(UnreadableFile):
    """A table of joint positions that has no time."""


class SimulationFailed(SteelyardError, RuntimeError):
    """A simulated arm that left the region where its numbers mean anything."""


class SourceFailed(SteelyardError, ConnectionError):
    """A live source that cannot be reached, was lost, or sends what it should not."""


class SolverFailed(SteelyardError, RuntimeError):
    """A numerical solver that ended without an answer; the message carries its status."""


class MissingExtra(SteelyardError, ImportError):
    """An optional dependency that is not installed; the message says which extra brings it."""

    def __init__(self, package: str, extra: str) -> None:
        if extra:
            wanted = f"'steelyard[{extra}]'"
        else:
            wanted = package
        super().__init__(f"this needs {package}: pip install {wanted}")
