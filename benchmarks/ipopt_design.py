"""IPOPT beside our own solver: same starts, same derivatives, and what both reach.

    pip install cyipopt-wheels                 # or cyipopt, where IPOPT is installed
    python benchmarks/ipopt_design.py [SEEDS]

The problem: the condition number of a UR10 in the envelope of xu2024's trajectory, 10 s, 5
harmonics, at rest at both ends; one random start for each seed. Both lower the same smooth merits
in the same five stages with the same most iterations; IPOPT also goes for the last merit at once.
Limits of position, velocity and acceleration are the same rows on the same grid, linear in the
unknowns, with their sparse derivatives.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import cyipopt
import numpy as np

from steelyard._computing import one_blas_thread
from steelyard.excitation import ConditionNumber, DesignLimits, DesignSettings
from steelyard.excitation._search import Search
from steelyard.excitation._space import MotionSpace
from steelyard.robot import load_robot
from steelyard.trajectory import FourierTrajectory

_HISTORY = 20  # steps that its quasi-Newton matrix remembers; ours is a full one of 54 unknowns


class Problem:
    """One merit of a search, as IPOPT wants it."""

    def __init__(self, search: Search, own: bool, sharpness: float) -> None:
        self._search = search
        self._sharpness = sharpness
        if own:
            self._merit = search.criterion.merit
        else:
            self._merit = search.criterion.log_det_merit
        families = search.space.joint_families(search.limits, 40)
        self._U = len(search.space.joints)
        r = search.space.size // self._U
        blocks = []
        for family in families:
            for j in range(self._U):
                blocks.append((family.P * family.factor[j], family.offset[j], j))
        self._values = np.concatenate([block.ravel() for block, _, _ in blocks])
        self._columns = np.concatenate(
            [np.tile(j * r + np.arange(r), len(block)) for block, _, j in blocks]
        )
        self.offset = np.concatenate([np.full(len(block), offset) for block, offset, _ in blocks])
        self._rows = np.repeat(np.arange(len(self.offset)), r)

    def objective(self, u: np.ndarray) -> float:
        return float(self._merit(self._search._gram(u), self._sharpness)[0])

    def gradient(self, u: np.ndarray) -> np.ndarray:
        search = self._search
        _, change = self._merit(search._gram(u), self._sharpness)
        return search.space.gradient(
            search._at, *search._program.pull(*search.space.motion(u, search._at), change)
        )

    def constraints(self, u: np.ndarray) -> np.ndarray:
        return np.bincount(self._rows, self._values * u[self._columns])

    def jacobian(self, u: np.ndarray) -> np.ndarray:
        return self._values

    def jacobianstructure(self) -> tuple[np.ndarray, np.ndarray]:
        return self._rows, self._columns

    def solved(self, u: np.ndarray, iterations: int) -> np.ndarray:
        bound = 1.0 - 1e-9
        ipopt = cyipopt.Problem(
            len(u), len(self.offset), self, None, None, -bound - self.offset, bound - self.offset
        )
        for name, value in {
            "print_level": 0,
            "sb": "yes",
            "max_iter": iterations,
            "tol": 1e-6,
            "hessian_approximation": "limited-memory",
            "limited_memory_max_history": _HISTORY,
            "jac_c_constant": "yes",
            "jac_d_constant": "yes",
            "mu_strategy": "adaptive",
        }.items():
            ipopt.add_option(name, value)
        return np.asarray(ipopt.solve(u)[0])


def ours(search: Search, u: np.ndarray) -> np.ndarray:
    found = search._refined(u, True)
    if found is None:
        return u
    return found


def staged(search: Search, u: np.ndarray) -> np.ndarray:
    for own, sharpness, _, iterations in search._stages:
        u = Problem(search, own, sharpness).solved(u, iterations)
    return u


def at_once(search: Search, u: np.ndarray) -> np.ndarray:
    _, sharpness, _, _ = search._stages[-1]
    return Problem(search, True, sharpness).solved(u, search._iterations)


SOLVERS: dict[str, Callable[[Search, np.ndarray], np.ndarray]] = {
    "ours": ours,
    "IPOPT, same stages": staged,
    "IPOPT, last merit at once": at_once,
}


def main(seeds: int) -> None:
    arm = load_robot("ur10")
    limits = DesignLimits.envelope(FourierTrajectory.load("xu2024"))
    w = 2 * np.pi / 10.0
    scale = np.minimum(limits.joints.v_max, limits.joints.a_max / w) / 2
    space = MotionSpace(arm.home, np.arange(6), 5, 10.0, True, False, scale)
    reached: dict[str, list[float]] = {name: [] for name in SOLVERS}
    spent: dict[str, list[float]] = {name: [] for name in SOLVERS}
    for seed in range(1, seeds + 1):
        search = Search(
            arm, limits, space, ConditionNumber(), DesignSettings(starts=1, seed=seed, workers=1)
        )
        search._compile()
        with ThreadPoolExecutor(1) as pool:
            (start,) = search._starts(pool)
        for name, solver in SOLVERS.items():
            began = time.process_time()
            with one_blas_thread():
                u = solver(search, start)
            spent[name].append(time.process_time() - began)
            inside = limits.certify(arm, space.trajectory(u)).holds
            reached[name].append(search._value(u) if inside else np.inf)
        print(
            seed,
            *(f"{name}: {reached[name][-1]:.2f} in {spent[name][-1]:.1f} s;" for name in SOLVERS),
            flush=True,
        )
    for name in SOLVERS:
        print(f"{name}: median {np.median(reached[name]):.2f}, {np.mean(spent[name]):.1f} s each")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
