"""Many starts of one design in a batch on a GPU: the time, and the best motion found.

    python benchmarks/gpu_design.py prepare           # here: writes benchmarks/gpu_design.json
    python benchmarks/gpu_design.py run OUT [STARTS]  # on a GPU; needs no Pinocchio
    python benchmarks/gpu_design.py judge OUT         # exact values and certificates

The problem: a UR10 in the envelope of xu2024's trajectory, 10 s, 5 harmonics, at rest at both ends.
`run` uses the code of the library (`steelyard.excitation._batch`), with stand-ins for the two
packages that know the arm; all that it needs of the arm is in the file.
"""

from __future__ import annotations

import json
import sys
import time
import types
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).parents[1] / "src"
PROBLEM = Path(__file__).with_suffix(".json")
CASES = {"free": False, "home": True}
LAST_STAGES = ((1.0, 8.0, 1e-4, 0.4), (1.0, 32.0, 1e-5, 0.3), (1.0, 100.0, 1e-6, 0.3))
"""As in `steelyard.excitation._batch`, closer to the limits."""
CONSTANTS = (
    *("home", "joint_placements", "joint_axes", "joint_types", "T_joint_link", "T_joint_flange"),
    "gravity_base",
)


def prepare() -> None:
    from steelyard._saved import plain
    from steelyard.excitation import ConditionNumber, DesignLimits
    from steelyard.robot import load_robot
    from steelyard.trajectory import FourierTrajectory

    arm = load_robot("ur10")
    limits = DesignLimits.envelope(FourierTrajectory.load("xu2024"))
    criterion = ConditionNumber().criterion(arm, limits, arm.home, np.arange(6))
    content = {name: np.asarray(getattr(arm, name)).tolist() for name in CONSTANTS}
    content |= {"drive": plain(arm.to_dict()["drive"]), "columns": criterion.rows.columns.tolist()}
    names = ("q_min", "q_max", "v_max", "a_max")
    content["limits"] = {name: getattr(limits.joints, name).tolist() for name in names}
    PROBLEM.write_text(json.dumps(content))


class Arm:
    """What the design needs of the arm."""

    n = 6

    def __init__(self, content: dict) -> None:
        from steelyard.robot._drive import DriveModel

        for name in CONSTANTS:
            value = content[name]
            setattr(self, name, value if name == "joint_types" else np.array(value))
        self.drive = DriveModel(**content["drive"])


def pieces(case: str):
    """Space, limits and criterion of a case."""
    from steelyard.excitation._gradients import RegressorRows
    from steelyard.excitation._limits import DesignLimits
    from steelyard.excitation._objective import Criterion, _condition, _condition_merit
    from steelyard.excitation._space import MotionSpace
    from steelyard.robot._chain import JointLimits

    content = json.loads(PROBLEM.read_text())
    arm = Arm(content)
    limits = DesignLimits(JointLimits(**content["limits"], tau_max=[np.inf] * 6))
    joints = limits.joints
    w = 2 * np.pi / 10
    scale = np.minimum(joints.v_max, joints.a_max / w) / 2
    space = MotionSpace(arm.home, np.arange(6), 5, 10.0, True, CASES[case], scale)
    rows = RegressorRows("torque", np.array(content["columns"]), np.ones(6))
    return space, limits, Criterion(arm, rows, (), _condition_merit, _condition)


def run(out: Path, starts: int) -> None:
    for name in ("pinocchio", "coal"):
        if name not in sys.modules:
            sys.modules[name] = types.ModuleType(name)
    from steelyard.excitation import _batch as module
    from steelyard.excitation._search import _random_start

    if any(d.platform == "gpu" for d in __import__("jax").devices()):
        device = "gpu"
    else:
        device = "cpu"
    for case in CASES:
        space, limits, criterion = pieces(case)
        constraints = [space.joint_constraint(limits)]
        seeds = np.random.SeedSequence(0).spawn(starts)
        u = np.array(
            [_random_start(space, limits, constraints, np.random.default_rng(s)) for s in seeds]
        )
        batch = module.BatchSearch(criterion, space, limits, None, device)
        lowered(batch, module._STAGES, 0.95 * u, 1)
        began = time.perf_counter()
        score, u = lowered(batch, module._STAGES, 0.95 * u, 100)
        took = time.perf_counter() - began
        best = np.sort(np.exp(score))
        print(
            f"{case}: {starts} starts x 100 iterations on {device}: {took:.1f} s; best"
            f" {best[:5].round(2)}"
        )
        finer = module.BatchSearch(criterion, space, limits, None, device, samples=32, grid=40)
        kept = u[np.argsort(score)[: max(8, starts // 8)]]
        shrunk = np.array([shrink(x, constraints[0]) for x in kept])
        began = time.perf_counter()
        score, u = lowered(finer, LAST_STAGES, shrunk, 600)
        order = np.argsort(score)
        print(
            f"{case}: refined {len(kept)} in {time.perf_counter() - began:.1f} s:",
            np.exp(score[order[:8]]).round(2),
        )
        print(
            "quantiles",
            np.quantile(np.exp(score), [0.01, 0.05, 0.1, 0.25, 0.5]).round(2),
            flush=True,
        )
        np.savez(out / f"{case}.npz", score=score[order[:64]], u=u[order[:64]])


def lowered(batch, stages, u: np.ndarray, iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """Merits that starts reach, and where."""
    curvature = np.tile(np.eye(u.shape[1]), (len(u), 1, 1))
    return batch._through(stages, u, curvature, iterations, lambda share: True)[:2]


def shrink(u: np.ndarray, constraint) -> np.ndarray:
    while not (constraint.slack(u) > 1e-4).all():
        u = 0.98 * u
    return u


def judge(out: Path) -> None:
    from steelyard.excitation import ConditionNumber, DesignLimits
    from steelyard.robot import load_robot
    from steelyard.trajectory import FourierTrajectory

    arm = load_robot("ur10")
    limits = DesignLimits.envelope(FourierTrajectory.load("xu2024"))
    for case in CASES:
        space, *_ = pieces(case)
        values = []
        for u in np.load(out / f"{case}.npz")["u"]:
            motion = space.trajectory(u)
            holds = limits.certify(arm, motion).holds
            values.append(
                (
                    ConditionNumber().evaluate(arm, motion, limits=limits) if holds else np.inf,
                    motion,
                )
            )
        value, motion = min(values, key=lambda pair: pair[0])
        print(
            case,
            round(value, 3),
            [round(v, 2) for v, _ in sorted(values, key=lambda pair: pair[0])[:8]],
        )
        motion.save(out / f"best_{case}.json")


if __name__ == "__main__":
    sys.path.insert(0, str(SOURCE))
    if sys.argv[1] == "prepare":
        prepare()
    elif sys.argv[1] == "run":
        run(Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 4096)
    else:
        judge(Path(sys.argv[2]))
