"""Real arms by default: prediction of other runs beside plain least squares; empty without data.

Usage: python benchmarks/bench_arms.py   write the table of docs/reference/arms.md
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from figure import Figure

from steelyard._units import NORMAL_95
from steelyard.identification import DynamicModel, identify
from steelyard.recording import Recording
from steelyard.robot import RobotModel, load_robot
from steelyard.torque import weigh
from steelyard.workflow._arm import Identification

ARMS = Path(__file__).parents[2] / "shared" / "data" / "arms"
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "arms.md"
RATES_HZ = {"xmate7p": 50.0, "med7": 100.0}
START = "<!-- table: written by benchmarks/bench_arms.py -->"
END = "<!-- end of table -->"


@dataclass(frozen=True)
class Split:
    """A model of some runs of an empty arm, and a run that it predicts.

    Attributes:
        arm: its name
        fitted: names of the fitted runs
        predicted: name of the predicted run
        residual: that steelyard leaves of the torques of that run, mean over the joints, relative
        plain: the same by plain least squares with Coulomb and viscous friction
        law: of friction, as chosen
        blocks: doubts that block the model, or ok
        mass: that the predicted run seems to carry, which should be 0, [kg]
        half_width: of its 95 % interval, [kg]
    """

    arm: str
    fitted: str
    predicted: str
    residual: float
    plain: float
    law: str
    blocks: str
    mass: float
    half_width: float

    @property
    def holds(self) -> bool:
        """Whether the interval of the mass contains 0."""
        return abs(self.mass) <= self.half_width

    @property
    def cells(self) -> list[str]:
        """The row of the table."""
        return [
            self.arm,
            f"{self.fitted} -> {self.predicted}",
            f"{100 * self.residual:.1f}",
            f"{100 * self.plain:.1f}",
            self.law,
            self.blocks,
            f"{self.mass:.2g} +- {self.half_width:.2g}",
            "yes" if self.holds else "no",
        ]


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


def splits(arm: str, robot: RobotModel, runs: Mapping[str, Recording]) -> Iterator[Split]:
    """Every model of one or two of the runs, and every other run."""
    for count in (1, 2):
        for fitted in itertools.combinations(runs, count):
            others = {name: runs[name] for name in runs if name not in fitted}
            found = Identification.of(robot, {k: runs[k] for k in fitted}, validate=others)
            samples = [run.ready for run in found.fitted]
            plain = identify(robot, samples, friction="linear", method="ordinary")
            for run in found.predicted:
                nothing = weigh(found.model, run.ready)
                yield Split(
                    arm,
                    "+".join(fitted),
                    run.name,
                    float(found.model.validate(run.ready).relative.mean()),
                    float(plain.validate(run.ready).relative.mean()),
                    found.model.law.name,
                    blocks(found.model),
                    nothing.unconstrained.mass,
                    float(NORMAL_95 * nothing.std[0]),
                )


def all_splits() -> Iterator[Split]:
    """Those of every arm whose recordings are there."""
    arms = {
        "KR300": ("kr300", "arm.toml", ("A", "B", "C")),
        "xMate7p, 20 s": ("xmate7p", "arm.urdf", ("p1_t1", "p1_t2", "p1_t3")),
        "xMate7p, 60 s": ("xmate7p", "arm.urdf", ("p3_t1", "p3_t2", "p3_t3")),
    }
    for arm, (folder, file, names) in arms.items():
        if (ARMS / folder).is_dir():
            yield from splits(arm, *three_runs(folder, file, names))


def table(found: Sequence[Split]) -> str:
    """The table of splits with a sentence about all of them, as Markdown."""
    head = ["arm", "fitted -> predicted", "residual [%]", "plain [%]", "law", "verdict"]
    head += ["mass of nothing [kg]", "holds"]
    lines = [head, ["---"] * len(head), *(split.cells for split in found)]
    ratios = [split.residual / split.plain for split in found]
    held = sum(split.holds for split in found)
    words = (
        f"Ratio to plain least squares: mean {np.mean(ratios):.2f}, worst {max(ratios):.2f}."
        f" Intervals that hold: {held} of {len(found)}."
    )
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + f"\n\n{words}"


def write_page(found: Iterable[Split]) -> None:
    """Writes the table into its page; the page stays as it is where there are no recordings."""
    listed = list(found)
    if not listed:
        return
    before, _, rest = PAGE.read_text().partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{START}\n{table(listed)}\n{END}{after}")


def figures() -> Iterator[Figure]:
    """One figure for each split, the worst and the mean ratio, and a recording to refuse."""
    if not ARMS.is_dir():
        return
    ratios = []
    for split in all_splits():
        ratios.append(split.residual / split.plain)
        words = f"{split.arm} {split.fitted} -> {split.predicted}, {split.law} ({split.blocks})"
        what = f"{words}: residual / plain least squares"
        residual = 100 * split.residual
        yield Figure(f"arm_{len(ratios)}", what, residual, "%", reference=100 * split.plain)
    yield Figure("arms_worst", "worst ratio to plain least squares", max(ratios), "", goal=1)
    mean = float(np.mean(ratios))
    yield Figure("arms_mean", "mean ratio to plain least squares", mean, "", goal=0.85)
    robot = load_robot(str(ARMS / "med7" / "arm.urdf"))
    whole = recording(robot, ARMS / "med7" / "measurements.npz")
    model = Identification.of(robot, whole.between(0.0, 0.6 * whole.duration_s)).model
    words = f"Med 7, a motion that no method predicts ({blocks(model)}): accepted"
    yield Figure("med7_accepted", words, float(model.verdict.ok), "", goal=0)


if __name__ == "__main__":
    write_page(all_splits())
