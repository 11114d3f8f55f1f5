"""Advice of the library: a call that gets it, and the call that does what it says."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import steelyard as sy
from steelyard.control._contact_force import ZeroKeeper
from steelyard.io._arms import arm_for_export
from steelyard.payload import Part
from steelyard.picking import PickingOptions
from steelyard.robot import DriveModel
from steelyard.simulation import ShiftPlan


class Call(NamedTuple):
    """A piece of advice in Python.

    Attributes:
        advice: words of the message as in the sources, with ... for values
        wrong: raises the message; takes a folder of files
        followed: does what it says
    """

    advice: str
    wrong: Callable[[Path], object]
    followed: Callable[[Path], object]


JOINTS = ("shoulder", "elbow", "wrist")
THREE = np.ones(3)


def _identified(folder: Path, **options: object) -> object:
    return sy.identify(
        str(folder / "tiny.urdf"), folder / "empty.csv", friction="linear", **options
    )


def _prepared(folder: Path, **options: float) -> object:
    return sy.prepare(sy.read(folder / "gap.csv"), sy.Preparation(**options))


def _plan(**options: object) -> object:
    part = Part("cover", 1.0)
    ways = {"carry": np.array([[0.0, 0.0], [1.0, 1.0]]), "parts": (part,), **options}
    return ShiftPlan(**ways)


def _weighed(folder: Path, **options: object) -> object:
    stated = {"wrench_frame": "sensor", "wrench_convention": "load_on_sensor"}
    recording = sy.read(folder / "rest.csv", **stated)
    return sy.weigh_wrist(static=recording, sensor=folder / "sensor.toml", **options)


def _exported(folder: Path, *, force: bool) -> str:
    model = sy.DynamicModel.load(folder / "upside.json")
    return arm_for_export(model).text("urdf", force=force)


def _read_named(folder: Path, names: tuple[str, ...]) -> object:
    return sy.read(folder / "named.parquet", joint_names=names)


CALLS = [
    Call(
        "`rate_hz` must be positive",
        lambda folder: sy.read(folder / "empty_untimed.csv", rate_hz=0.0),
        lambda folder: sy.read(folder / "empty_untimed.csv", rate_hz=100.0),
    ),
    Call(
        "`joint_names` are those of the file in another order",
        lambda folder: _read_named(folder, JOINTS[::-1]),
        lambda folder: _read_named(folder, JOINTS),
    ),
    Call(
        "gain_std needs gains: give `gain` too",
        lambda _: DriveModel(0 * THREE, gain_std=0.1 * THREE),
        lambda _: DriveModel(0 * THREE, gain_std=0.1 * THREE, gain=THREE),
    ),
    Call(
        "the drives have no gains [Nm/A]",
        lambda _: DriveModel(0 * THREE).torque_from_current(THREE),
        lambda _: DriveModel(0 * THREE, gain=THREE).torque_from_current(THREE),
    ),
    Call(
        "or allow the gap with `longest_gap_s`",
        _prepared,
        lambda folder: _prepared(folder, longest_gap_s=2.0),
    ),
    Call(
        "a shift needs `carry` with two or more postures, and `parts`",
        lambda _: _plan(parts=()),
        lambda _: _plan(),
    ),
    Call(
        "`back` begins at the last posture of `carry` and ends at its first one",
        lambda _: _plan(back=np.array([[0.0, 0.0], [1.0, 1.0]])),
        lambda _: _plan(back=np.array([[1.0, 1.0], [0.0, 0.0]])),
    ),
    Call(
        "`lag` is a number of seconds or 'auto'",
        lambda folder: _identified(folder, lag="late"),
        lambda folder: _identified(folder, lag=0.0),
    ),
    Call(
        "`lag` and `preparation.lag_s` both say how late torques are: give one",
        lambda folder: _identified(
            folder, lag=0.0, preparation=sy.Preparation(lag_s=(0.0, 0.0, 0.0))
        ),
        lambda folder: _identified(folder, preparation=sy.Preparation(lag_s=(0.0, 0.0, 0.0))),
    ),
    Call(
        "`gains` must be 'auto', 'robot', 'targets', numbers or a known mass",
        lambda folder: _identified(folder, gains="some"),
        lambda folder: _identified(folder, gains="auto"),
    ),
    Call(
        "there is nothing to weigh: give `static`, `dynamic` or both",
        lambda folder: sy.weigh_wrist(sensor=folder / "sensor.toml"),
        lambda folder: _weighed(folder, robot=str(folder / "tiny.urdf")),
    ),
    Call(
        "a recording of joints needs the arm: give `robot`",
        _weighed,
        lambda folder: _weighed(folder, robot=str(folder / "tiny.urdf")),
    ),
    Call(
        "not exported: ...; weigh or identify again, or give `force=True`",
        lambda folder: _exported(folder, force=False),
        lambda folder: _exported(folder, force=True),
    ),
    Call(
        "`rezero` must be 'none', 'start' or 'rest'",
        lambda _: ZeroKeeper("always"),
        lambda _: ZeroKeeper("rest"),
    ),
    Call(
        "`false_alarms_per_1000` must lie between 0 and 1000",
        lambda _: PickingOptions(false_alarms_per_1000=0.0),
        lambda _: PickingOptions(false_alarms_per_1000=2.0),
    ),
    Call(
        "`bit` lies between 0 and 62",
        lambda _: PickingOptions(bit=63),
        lambda _: PickingOptions(bit=62),
    ),
    Call(
        "`known` picks are a number from 1 and a mass that is not negative",
        lambda _: PickingOptions(known={0: 1.0}),
        lambda _: PickingOptions(known={1: 1.0}),
    ),
]
