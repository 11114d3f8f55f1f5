"""Real arms by default: prediction of other runs beside plain least squares; empty without data.

Plain least squares has Coulomb and viscous friction, and is computed here by NumPy alone from the
same samples: with equal weights, and weighted by the residuals of each joint.

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
from steelyard.identification import DynamicModel
from steelyard.identification._validation import validation_of
from steelyard.recording import Recording, Samples
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
        plain: the same by plain least squares
        weighted: the same by plain least squares with weights of the joints
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
    weighted: float
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
            f"{100 * self.weighted:.1f}",
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


def least_squares(
    robot: RobotModel, parts: Sequence[Samples], *, weightings: int = 0
) -> np.ndarray:
    """Standard parameters with Coulomb and viscous friction, (14 n,), that fit samples best.

    Args:
        robot: the arm
        parts: samples in motion
        weightings: how often joints are weighted anew by their residuals
    """
    Y = np.concatenate([robot.regressor(part.q, part.v, part.a) for part in parts])
    tau = np.concatenate([part.tau for part in parts])
    mask = np.concatenate([part.mask for part in parts])
    noise = np.ones(robot.n)
    phi = np.zeros(Y.shape[2])
    for _ in range(1 + weightings):
        weights = mask / noise
        A = (Y * weights[:, :, None]).reshape(-1, Y.shape[2])
        size = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
        phi = np.linalg.lstsq(A / size, (tau * weights).ravel(), rcond=1e-8)[0] / size
        noise = np.sqrt(np.mean(((tau - Y @ phi) * mask) ** 2, axis=0))
    return phi


def left_by(robot: RobotModel, samples: Samples, phi: np.ndarray) -> float:
    """What standard parameters leave of the torques of samples, mean over the joints, relative."""
    predicted = robot.regressor(samples.q, samples.v, samples.a) @ phi
    return float(validation_of(samples.tau, predicted).relative.mean())


def splits(arm: str, robot: RobotModel, runs: Mapping[str, Recording]) -> Iterator[Split]:
    """Every model of one or two of the runs, and every other run."""
    for count in (1, 2):
        for fitted in itertools.combinations(runs, count):
            others = {name: runs[name] for name in runs if name not in fitted}
            found = Identification.of(robot, {k: runs[k] for k in fitted}, validate=others)
            samples = [run.ready for run in found.fitted]
            plain = least_squares(robot, samples)
            weighted = least_squares(robot, samples, weightings=3)
            for run in found.predicted:
                nothing = weigh(found.model, run.ready)
                yield Split(
                    arm,
                    "+".join(fitted),
                    run.name,
                    float(found.model.validate(run.ready).relative.mean()),
                    left_by(robot, run.ready, plain),
                    left_by(robot, run.ready, weighted),
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
    head = ["arm", "fitted -> predicted", "residual [%]", "plain [%]", "weighted [%]", "law"]
    head += ["verdict", "mass of nothing [kg]", "holds"]
    lines = [head, ["---"] * len(head), *(split.cells for split in found)]
    plain = [split.residual / split.plain for split in found]
    weighted = [split.residual / split.weighted for split in found]
    held = sum(split.holds for split in found)
    words = (
        f"Ratio to plain least squares: mean {np.mean(plain):.2f}, worst {max(plain):.2f};"
        f" with weights of the joints: mean {np.mean(weighted):.2f}, worst {max(weighted):.2f}."
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
    weighted = []
    for split in all_splits():
        ratios.append(split.residual / split.plain)
        weighted.append(split.residual / split.weighted)
        words = f"{split.arm} {split.fitted} -> {split.predicted}, {split.law} ({split.blocks})"
        what = f"{words}: residual / plain least squares"
        residual = 100 * split.residual
        yield Figure(f"arm_{len(ratios)}", what, residual, "%", reference=100 * split.plain)
    yield Figure("arms_worst", "worst ratio to plain least squares", max(ratios), "", goal=1)
    mean = float(np.mean(ratios))
    yield Figure("arms_mean", "mean ratio to plain least squares", mean, "", goal=0.85)
    mean = float(np.mean(weighted))
    yield Figure("arms_weighted", "mean ratio to weighted least squares", mean, "", goal=1)
    robot = load_robot(str(ARMS / "med7" / "arm.urdf"))
    whole = recording(robot, ARMS / "med7" / "measurements.npz")
    model = Identification.of(robot, whole.between(0.0, 0.6 * whole.duration_s)).model
    words = f"Med 7, a motion that no method predicts ({blocks(model)}): accepted"
    yield Figure("med7_accepted", words, float(model.verdict.ok), "", goal=0)


if __name__ == "__main__":
    write_page(all_splits())
