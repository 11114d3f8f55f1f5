"""Real arms by default: prediction of other runs beside plain least squares; empty without data."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from figure import Figure

from steelyard.identification import DynamicModel, identify
from steelyard.recording import Recording
from steelyard.robot import RobotModel, load_robot
from steelyard.workflow._arm import Identification

ARMS = Path(__file__).parents[2] / "shared" / "data" / "arms"
RATES_HZ = {"xmate7p": 50.0, "med7": 100.0}


def recording(robot: RobotModel, path: Path) -> Recording:
    """A recording of arrays, with a time of its own or a nominal rate."""
    data = np.load(path)
    if "t" in data:
        t = data["t"]
    else:
        t = np.arange(len(data["q"])) / RATES_HZ[path.parent.name]
    return Recording(t=t, q=data["q"], tau=data["tau"], joint_names=robot.joint_names)


def three_runs(folder: str, file: str, names: Sequence[str]) -> tuple[RobotModel, dict]:
    """An arm and its recordings by name."""
    robot = load_robot(str(ARMS / folder / file))
    return robot, {name: recording(robot, ARMS / folder / f"{name}.npz") for name in names}


def blocks(model: DynamicModel) -> str:
    """The doubts that block a model, in words."""
    kinds = [doubt.kind.value for doubt in model.verdict.doubts if doubt.blocks]
    return ", ".join(kinds) or "ok"


def splits(arm: str, robot: RobotModel, runs: Mapping[str, Recording]) -> Iterator[tuple]:
    """What steelyard and plain least squares leave of each run that was not fitted, relative."""
    for count in (1, 2):
        for fitted in itertools.combinations(runs, count):
            others = {name: runs[name] for name in runs if name not in fitted}
            found = Identification.of(robot, {k: runs[k] for k in fitted}, validate=others)
            samples = [run.ready for run in found.fitted]
            plain = identify(robot, samples, friction="linear", method="ordinary")
            for run in found.predicted:
                mine = float(found.model.validate(run.ready).relative.mean())
                theirs = float(plain.validate(run.ready).relative.mean())
                words = f"{arm} {'+'.join(fitted)} -> {run.name}"
                yield words, mine, theirs, found.model


def figures() -> Iterator[Figure]:
    """One figure for each split, the worst and the mean ratio, and a recording to refuse."""
    if not ARMS.is_dir():
        return
    arms = {
        "KR300": three_runs("kr300", "arm.toml", ("A", "B", "C")),
        "xMate7p, 20 s": three_runs("xmate7p", "arm.urdf", ("p1_t1", "p1_t2", "p1_t3")),
        "xMate7p, 60 s": three_runs("xmate7p", "arm.urdf", ("p3_t1", "p3_t2", "p3_t3")),
    }
    ratios = []
    for arm, (robot, runs) in arms.items():
        for words, mine, theirs, model in splits(arm, robot, runs):
            ratios.append(mine / theirs)
            what = f"{words}, {model.law.name} ({blocks(model)}): residual / plain least squares"
            yield Figure(f"arm_{len(ratios)}", what, 100 * mine, "%", reference=100 * theirs)
    yield Figure("arms_worst", "worst ratio to plain least squares", max(ratios), "", goal=1)
    mean = float(np.mean(ratios))
    yield Figure("arms_mean", "mean ratio to plain least squares", mean, "", goal=0.85)
    robot = load_robot(str(ARMS / "med7" / "arm.urdf"))
    whole = recording(robot, ARMS / "med7" / "measurements.npz")
    model = Identification.of(robot, whole.between(0.0, 0.6 * whole.duration_s)).model
    words = f"Med 7, a motion that no method predicts ({blocks(model)}): accepted"
    yield Figure("med7_accepted", words, float(model.verdict.ok), "", goal=0)
