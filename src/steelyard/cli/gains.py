"""Torque for each ampere, as the command line asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.errors import InvalidSamples

if TYPE_CHECKING:
    from steelyard.identification.gains import DriveGains
    from steelyard.recording import Recording
    from steelyard.robot import RobotModel


def drive_gains(
    robot: RobotModel, recordings: Sequence[Recording], wanted: str, read: Callable[[Path], Recording]
) -> tuple[DriveGains | None, str]:
    """The drive gains to use, and where they come from in words; None where torques were measured.

    Args:
        robot: the arm
        recordings: of the empty arm
        wanted: 'auto', 'robot', 'targets', numbers with commas, or 'mass=KG:FILE' of a loaded run
        read: the recording in a file
    """
    from steelyard.identification.gains import DriveGains

    for recording in recordings:
        if recording.n != robot.n:
            raise InvalidSamples(f"{robot.name} has {robot.n} joints, a recording has {recording.n}")
    if wanted == "auto" and all(r.tau is not None for r in recordings):
        return None, "torques were measured"
    drive = robot.drive
    if wanted == "robot" or (wanted == "auto" and drive.gain is not None):
        if drive.gain is None:
            raise InvalidSamples(f"{robot.name} has no drive gains; use --gains targets or give numbers")
        std = 0.0 if drive.gain_std is None else drive.gain_std
        return DriveGains.given(drive.gain, std=std), "gains of the robot file"
    if wanted in ("targets", "auto"):
        found = _from_targets(recordings)
        return found, f"gains from the controller's targets: {_in_words(found)}"
    if wanted.startswith("mass="):
        found = _from_mass(robot, recordings, wanted, read)
        return found, f"gains from a known mass: {_in_words(found)}; {found.status}"
    try:
        numbers = [float(x) for x in wanted.split(",")]
    except ValueError:
        raise InvalidSamples(
            f"--gains is auto, robot, targets, numbers with commas, or mass=KG:FILE; got '{wanted}'"
        ) from None
    if len(numbers) != robot.n:
        raise InvalidSamples(f"--gains has {len(numbers)} numbers, {robot.name} has {robot.n} joints")
    return DriveGains.given(numbers), "gains as given"


def _from_targets(recordings: Sequence[Recording]) -> DriveGains:
    from steelyard.identification.gains import gains_from_targets

    if any(r.current_target is None or r.tau_target is None for r in recordings):
        raise InvalidSamples(
            "the recordings hold motor currents without the controller's targets:"
            " give the drive gains as --gains k1,k2,... [Nm/A], or a run with a known payload as"
            " --gains mass=KG:FILE"
        )
    found = gains_from_targets(recordings)
    if not found.known.all():
        raise InvalidSamples(f"gains from targets: {found.status}")
    return found


def _from_mass(
    robot: RobotModel, recordings: Sequence[Recording], wanted: str, read: Callable[[Path], Recording]
) -> DriveGains:
    from steelyard.identification.gains import gains_from_known_mass

    mass, _, file = wanted.removeprefix("mass=").partition(":")
    try:
        kilograms = float(mass)
    except ValueError:
        kilograms = 0.0
    if not kilograms > 0 or not file:
        raise InvalidSamples(f"--gains mass=KG:FILE needs a mass and a loaded recording; got '{wanted}'")
    guess = robot.drive.gain if robot.drive.gain is not None else _from_targets(recordings).value
    return gains_from_known_mass(robot, recordings, [read(Path(file))], kilograms, guess=guess)


def _in_words(gains: DriveGains) -> str:
    pairs = zip(gains.value, gains.std, strict=True)
    return ", ".join(f"{k:.4g} +- {1.96 * s:.2g}" for k, s in pairs) + " Nm/A"
