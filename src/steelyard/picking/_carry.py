"""One stretch, weighed with what is known of the arm at its time.

The unknowns are the arm's parameters x and the ten numbers phi of the part; its first number is the
mass. The prior of phi is that of a part of the table (`payload.Part`), with a mass that is free.

**Absolute and relative.** The variance of the mass has a part that is the same in all picks of a
shift, by links and rotors of the model, and a part of this pick's own, by noise and by friction
since the last unloaded stretch. With V the covariance of the unknowns and r the rigid parameters,

    common = V_mr V_rr^-1 V_rm,     own = V_mm - common.

**Changes on the way.** A carry is cut into blocks. That the part was lost at a time means that its
columns vanish after it; that it slipped, that its first moments change there by that of 30 mm. The
evidence of either, averaged over the possible times, over that of an unchanged part is a number
whose expectation is 1 for unchanged parts, so it exceeds 1 / a with a probability of at most a
(Markov). Parts settle in the fingers, and no model is exact, so a part whose centre moves by 4 mm
counts as unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np

from steelyard._arrays import Array, Indices
from steelyard.inertia import FIRST_MOMENT
from steelyard.payload import Part
from steelyard.picking._arm_state import (
    ArmState,
    Equations,
    EvidenceFactor,
    Posterior,
    Products,
    ShiftArm,
    posterior,
    root_of,
)
from steelyard.picking._segments import Stretch
from steelyard.torque._prior import by_gravity

SUMMED_BLOCKS = (1, 2, 4)
"""Numbers of blocks whose sums show the noise: misfit of friction lasts longer than its memory."""

_BLOCK_S = 0.12  # [s]; longer than the memory of the torques' noise
_SLIP_STD = 0.03  # of each coordinate of the centre of a part that slips [m]
_SETTLING_STD = 0.004  # of each coordinate of the centre of an unchanged part [m]
_LEAST_CORRELATION = 1e-10  # added to the variances, so that the matrix can be solved
_MIN_BLOCKS_APART = 2  # blocks before and after a change on the way
_SMALL_CHANGE = 0.03  # of the mass that loads the gears [kg]; friction by it is far smaller


@dataclass(frozen=True)
class Mass:
    """A mass with its errors.

    Attributes:
        value: [kg]
        own_std: standard deviation of what differs from pick to pick [kg]
        common_std: standard deviation of what all picks of a shift share [kg]
    """

    value: float
    own_std: float
    common_std: float

    @property
    def std(self) -> float:
        """Standard deviation with all errors [kg]."""
        return float(np.hypot(self.own_std, self.common_std))


@dataclass(frozen=True)
class CarryEvent:
    """Something that may have happened to the part on the way.

    Attributes:
        evidence: log of the evidence for it over that of an unchanged part
        time_s: when it is likeliest to have happened [s]
        mass: of the part if it did
    """

    evidence: float
    time_s: float
    mass: Mass


@dataclass(frozen=True, eq=False)
class Carry:
    """The equations of a stretch, block by block, and what was known of the arm before.

    Attributes:
        arm: of the model
        before: state of the empty arm at the time of the stretch
        part: whose centre and inertia are expected
        blocks: equations in the arm's parameters, in the order of time
        sums: equations of sums over the rows of each joint and 1, 2 and 4 blocks, over their noise
        times: beginning of each block [s]
    """

    arm: ShiftArm
    before: ArmState
    part: Part
    blocks: Sequence[Equations]
    sums: Sequence[Equations]
    times: Sequence[float]

    @classmethod
    def of(
        cls, arm: ShiftArm, state: ArmState, stretch: Stretch, part: Part, *, noise: float = 1.0
    ) -> Carry:
        """The carry of a stretch; friction that grows with the load is iterated.

        Args:
            arm: of the model
            state: after the last unloaded stretch
            stretch: with rows that count
            part: that is expected
            noise: variance of the noise over that of the model
        """
        before = arm.at(state, stretch.weighed_s)
        theta = before.value
        if stretch.closed:
            theta = theta + arm.jacobian @ part.body().vector
        weighted = arm.weighted_rows(stretch.samples, stretch.counting, theta)
        assumed = part.mass if stretch.closed else 0.0
        for _ in range(arm.iterations - 1):
            rows = Equations.of(weighted.reshape(-1, weighted.shape[2])).scaled(noise)
            prior = _prior(before, part, part.mass, part.free_mass_std)
            found = posterior(*prior, rows.mixed(arm.mixing))
            mass = float(found.value[len(before.value)])
            if abs(mass - assumed) < _SMALL_CHANGE:
                break
            assumed = mass
            theta = arm.mixing @ found.value
            weighted = arm.weighted_rows(stretch.samples, stretch.counting, theta)
        return cls(arm, before, part, *_blocks(weighted, stretch, noise))

    @cached_property
    def whole(self) -> Equations:
        """The equations of the whole stretch in the arm's parameters."""
        return _sum(self.blocks)

    @cached_property
    def free(self) -> Posterior:
        """Arm and part with a free mass."""
        return self.fitted(self.part.mass, self.part.free_mass_std)

    def fitted(self, mass: float, mass_std: float, part: Part | None = None) -> Posterior:
        """Arm and part under a hypothesis about the mass.

        Args:
            mass: expected [kg]
            mass_std: its standard deviation [kg]
            part: whose centre and inertia are expected; that of the carry by default
        """
        return self._posterior(self.whole.mixed(self.arm.mixing), mass, mass_std, part)

    def _posterior(
        self, equations: Equations, mass: float, mass_std: float, part: Part | None = None
    ) -> Posterior:
        return posterior(*_prior(self.before, part or self.part, mass, mass_std), equations)

    @cached_property
    def _free_prior(self) -> tuple[Array, Array]:
        """Arm and part, whose mass is free, before the carry: their mean and a root."""
        return _prior(self.before, self.part, self.part.mass, self.part.free_mass_std)

    @property
    def surprise(self) -> tuple[Array, Array]:
        """Misfit of sums over 1, 2 and 4 blocks, and degrees of freedom, (3,); the mass is free."""
        found = [
            self._posterior(sums.mixed(self.arm.mixing), self.part.mass, self.part.free_mass_std)
            for sums in self.sums
        ]
        misfit = np.array([one.misfit for one in found])
        return misfit, np.array([float(sums.rows) for sums in self.sums])

    @property
    def mass(self) -> Mass:
        """The mass of what is carried."""
        return self.mass_of(self.free)

    def mass_of(self, found: Posterior) -> Mass:
        """The mass in a solution, with its errors."""
        p = len(self.before.value)
        V = found.covariance
        rigid = np.append(self.arm.rigid, np.zeros(len(V) - p, bool))
        common = _explained(V[np.ix_(rigid, rigid)], V[p, rigid])
        own = max(float(V[p, p]) - common, 0.0)
        value = float(found.value[p])
        gravity = by_gravity(self.arm.model.robot, found.value[p : p + 10])
        if gravity is not None:
            common += float(gravity[0] ** 2)
        common += self._by_gains(value)
        return Mass(value, float(np.sqrt(own)), float(np.sqrt(max(common, 0.0))))

    def _by_gains(self, mass: float) -> float:
        """Variance of the mass by errors of the drive gains, which scale all masses [kg^2]."""
        drive = self.arm.model.robot.drive
        relative = float(np.mean(np.square(drive.gain_errors).sum(axis=1)))
        return (relative + (drive.gain_drift or 0.0) ** 2) * mass**2

    def early(self, until_s: float, part: Part) -> Mass:
        """The mass from the first blocks.

        Args:
            until_s: blocks that begin before this time count [s]
            part: whose centre and inertia are expected
        """
        first = [block for block, t_s in zip(self.blocks, self.times, strict=True) if t_s < until_s]
        equations = _sum(first or self.blocks[:1]).mixed(self.arm.mixing)
        return self.mass_of(self._posterior(equations, part.mass, part.free_mass_std, part))

    @cached_property
    def centre_shift(self) -> float:
        """Distance of the centre from the expected one, in its own tolerances."""
        p = len(self.before.value)
        moved = self.free.value[p + 1 : p + 4] - self.free.value[p] * np.array(self.part.com)
        return float(np.linalg.norm(moved) / max(self.part.mass * self.part.com_tolerance, 1e-9))

    def lost(self) -> CarryEvent:
        """Whether the part was lost on the way: its columns vanish after a time."""
        value, root = self._free_prior
        p = len(self.before.value)
        factor = EvidenceFactor.of(value[:p], root[:p, :p], self.whole)
        found = [
            factor.log_evidence(value[p:], root[p:, p:], carried)
            for carried in self._products(self.arm.jacobian, np.eye(p), after=False)
        ]

        def at(k: int) -> Posterior:
            empty = np.column_stack([np.eye(p), 0 * self.arm.jacobian])
            before = self._sum_before(k).mixed(self.arm.mixing)
            return posterior(value, root, before + self._sum_after(k).mixed(empty))

        return self._likeliest(found, [self.free.log_evidence] * len(found), at)

    def slipped(self) -> CarryEvent:
        """Whether the part slipped on the way: its first moments change at a time."""
        value, root = self._free_prior
        mixing = self.arm.mixing
        moved = self.arm.jacobian[:, FIRST_MOMENT]
        still = np.zeros(moved.shape[1])
        factor = EvidenceFactor.of(value, root, self.whole.mixed(mixing))
        products = self._products(moved, mixing, after=True)
        slip, settling = (
            [factor.log_evidence(still, self._moment_root(std), moving) for moving in products]
            for std in (_SLIP_STD, _SETTLING_STD)
        )

        def at(k: int) -> Posterior:
            before = np.column_stack([mixing, 0 * moved])
            after = np.column_stack([mixing, moved])
            equations = self._sum_before(k).mixed(before) + self._sum_after(k).mixed(after)
            both = _block_diagonal(root, self._moment_root(_SLIP_STD))
            return posterior(np.append(value, still), both, equations)

        return self._likeliest(slip, settling, at)

    def _products(self, columns: Array, others: Array, *, after: bool) -> list[Products]:
        """Inner products of columns that act before, or after, each possible change on the way.

        Args:
            columns: how the arm's parameters follow from some unknowns, (p, m)
            others: how they follow from the other unknowns, (p, u)
            after: whether they act after the change
        """
        K = (np.array([block.A for block in self.blocks]) @ columns).cumsum(axis=0)
        b = (np.array([block.b for block in self.blocks]) @ columns).cumsum(axis=0)
        if after:
            K = K[-1] - K
            b = b[-1] - b
        return [
            Products(others.T @ K[k - 1], columns.T @ K[k - 1], b[k - 1])
            for k in self._change_times
        ]

    def _moment_root(self, centre_std: float) -> Array:
        """A root of the covariance of a change of the first moments, (3, 3) [kg m].

        Args:
            centre_std: standard deviation of each coordinate of the change of the centre [m]
        """
        mass = max(abs(float(self.free.value[len(self.before.value)])), self.part.mass)
        return mass * centre_std * np.eye(3)

    @property
    def _change_times(self) -> range:
        """The first blocks after possible changes on the way."""
        return range(_MIN_BLOCKS_APART, len(self.blocks) - _MIN_BLOCKS_APART + 1)

    @cached_property
    def _cumulative(self) -> list[Equations]:
        return list(accumulate(self.blocks))

    def _sum_before(self, k: int) -> Equations:
        return self._cumulative[k - 1]

    def _sum_after(self, k: int) -> Equations:
        return self.whole - self._cumulative[k - 1]

    def _likeliest(
        self, changed: Sequence[float], unchanged: Sequence[float], at: Callable[[int], Posterior]
    ) -> CarryEvent:
        """The change at its likeliest time, with its evidence over all possible times.

        Args:
            changed: log of the evidence of a change at each of the times
            unchanged: log of the evidence of none, for each of them
            at: solution with a change before a block
        """
        if not changed:
            return CarryEvent(-np.inf, np.nan, self.mass)
        best = self._change_times[int(np.argmax(changed))]
        evidence = np.logaddexp.reduce(changed) - np.logaddexp.reduce(unchanged)
        return CarryEvent(float(evidence), float(self.times[best]), self.mass_of(at(best)))


def _prior(before: ArmState, part: Part, mass: float, mass_std: float) -> tuple[Array, Array]:
    """Arm and part before a carry: their mean, (p + 10,), and a root of their covariance."""
    value = np.append(before.value, mass * part.shape)
    return value, _block_diagonal(before.root, _part_root(part, mass_std))


@lru_cache(maxsize=256)
def _part_root(part: Part, mass_std: float) -> Array:
    """A root of the covariance of the ten numbers of a part, (10, 10)."""
    return root_of(part.covariance(mass_std))


def _blocks(
    weighted: Array, stretch: Stretch, noise: float
) -> tuple[list[Equations], list[Equations], list[float]]:
    """The equations of blocks of equal length, of sums over them, and their beginnings [s]."""
    places = np.flatnonzero(stretch.counting)
    count = max(round(stretch.counting_s / _BLOCK_S), 1)
    t = stretch.samples.t
    parts = [part for part in np.array_split(places, count) if part.size]
    width = weighted.shape[2]
    blocks = [Equations.of(weighted[part].reshape(-1, width)).scaled(noise) for part in parts]
    sums = [_summed(weighted, parts, length).scaled(noise) for length in SUMMED_BLOCKS]
    return blocks, sums, [float(t[part[0]]) for part in parts]


def _summed(weighted: Array, parts: Sequence[Indices], length: int) -> Equations:
    """The equations of sums over some blocks of rows together; single ones at the end are left."""
    joined = [
        np.concatenate(parts[k : k + length]) for k in range(0, len(parts) - length + 1, length)
    ]
    if not joined:
        return Equations.of(np.zeros((1, weighted.shape[2])))
    return Equations.of(np.concatenate([_joint_sums(weighted[rows]) for rows in joined]))


def _joint_sums(weighted: Array) -> Array:
    """Sums over rows [Y tau] of each joint, over the root of their number, (n, p + 1)."""
    count = weighted.any(axis=2).sum(axis=0)
    return np.asarray(weighted.sum(axis=0) / np.sqrt(np.maximum(count, 1))[:, None])


def _explained(covariance: Array, across: Array) -> float:
    """The variance of a number that other numbers explain.

    Args:
        covariance: of the others, (k, k)
        across: covariance of the number with them, (k,)
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    correlation = covariance * np.outer(scale, scale)
    np.fill_diagonal(correlation, 1.0 + _LEAST_CORRELATION)
    across = scale * across
    return float(across @ np.linalg.solve(correlation, across))


def _sum(blocks: Sequence[Equations]) -> Equations:
    total = blocks[0]
    for block in blocks[1:]:
        total = total + block
    return total


def _block_diagonal(first: Array, second: Array) -> Array:
    a = len(first)
    out = np.zeros((a + len(second), a + len(second)))
    out[:a, :a] = first
    out[a:, a:] = second
    return out
