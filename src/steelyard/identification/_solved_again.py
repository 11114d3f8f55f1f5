"""The regression of a model solved in another way, from its triangular factors.

Three choices that `identify` does not make by itself:

    essential       parameters below their own uncertainty are set to zero
    no offsets      the columns of B are left out, so B = 0 exactly (ding2019)
    mean of runs    each recording r is solved alone, and theta = sum_r theta_r / R (ding2019)

The friction law and its shapes stay. With C the covariance of the model, which knows of correlation
in time, and A^-1 that of the same regression with white noise, d_i = (C_ii / (A^-1)_ii)^(1/2)
widens the covariance of another solution of the same rows,

    C' = D A'^-1 D,     for the mean     C' = D (sum_r A_r^-1) D / R^2.

The scatter of the runs, s_i^2 = sum_r (theta_ri - theta_i)^2 / (R - 1), may be larger than they
say: the standard deviation of a mean is at least s_i / R^(1/2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from steelyard._arrays import Array, Indices, Mask
from steelyard._units import NORMAL_95
from steelyard.errors import InvalidSamples
from steelyard.identification._estimate import Estimate
from steelyard.identification._factor import RegressionFactor
from steelyard.identification._least_squares import solve_weighted
from steelyard.identification._model import DynamicModel
from steelyard.identification._run_effects import from_factor
from steelyard.verdict import Doubt, DoubtKind, Verdict

_MAX_NAMES = 5  # of parameters in a message
_MIN_WEIGHT_SHARE = 1e-9  # of the links in a regrouped offset, [m/s^2]


class _FullSolution(NamedTuple):
    """A solution in all p parameters, zero for those that were left out.

    Attributes:
        value: (p,)
        inverse: A^-1, (p, p)
        unknown: which parameters the rows do not determine, (p,)
    """

    value: Array
    inverse: Array
    unknown: Mask


def essential(model: DynamicModel, largest_relative_std: float = 0.3) -> DynamicModel:
    """The model without the parameters that the data hardly determine.

    The parameter with the largest relative standard deviation is set to zero and the others are
    estimated again, until all relative standard deviations are below the limit.

    Args:
        model: with all parameters
        largest_relative_std: the limit
    """
    if not largest_relative_std > 0:
        raise InvalidSamples(f"largest_relative_std must be positive, got {largest_relative_std}")
    widening = _widening(model)
    kept = np.flatnonzero(np.isfinite(model.estimate.std))
    while True:
        found = _solved_as_fitted(model, kept)
        std = np.sqrt(np.diag(found.inverse)) * widening
        relative = (std / np.maximum(np.abs(found.value), 1e-300))[kept]
        if relative.max(initial=0.0) <= largest_relative_std:
            break
        kept = np.delete(kept, relative.argmax())
    p = model.factor.p
    summary = f"{len(kept)} essential parameters of {p}; the others are below their own uncertainty"
    verdict = replace(model.verdict, summary=summary)  # fewer parameters resolve no doubt
    covariance = found.inverse * np.outer(widening, widening)
    estimate = replace(model.estimate, value=found.value, covariance=covariance, verdict=verdict)
    return replace(model, estimate=estimate)


def solved_again(
    model: DynamicModel,
    *,
    offsets: bool = True,
    mean_of_runs: bool = False,
    equal_weights: bool = False,
) -> DynamicModel:
    """The model with its parameters solved in another way from the same recordings.

    The rows of the empty runs stay in the model. Methods that fit them again together with a loaded
    run (`pooled`) use all unknowns.

    Args:
        model: of one or more recordings
        offsets: whether torque offsets are among the unknowns; they are zero otherwise
        mean_of_runs: whether each recording is solved alone, and the mean of the parameters taken
        equal_weights: whether all rows have the same weight (ordinary least squares)
    """
    estimate = model.estimate
    kept = np.arange(model.factor.p)
    if not offsets:
        _require_offsets_without_weight(model)
        kept = np.flatnonzero(~estimate.parameters.offsets)
    widening = _widening(model, equal_weights=equal_weights)
    if mean_of_runs:
        groups = _runs(model.factor, model.robot.n)
        each = [_solved(group, kept, equal_weights=equal_weights) for group in groups]
        _require_determined(estimate, each)
    else:
        each = [_solved_as_fitted(model, kept, equal_weights=equal_weights)]
    value, covariance = _mean(each, widening)
    unknown = kept[~np.isfinite(estimate.std[kept])]
    covariance[unknown, unknown] = np.inf
    verdict = _verdict(estimate, offsets=offsets, runs=len(each))
    changed = replace(estimate, value=value, covariance=covariance, verdict=verdict)
    return replace(model, estimate=changed)


def _runs(factor: RegressionFactor, n: int) -> list[RegressionFactor]:
    """The factor of each run alone."""
    groups = [slice(k, k + n) for k in range(0, len(factor.rows), n)]
    return [RegressionFactor(factor.R[group], factor.rows[group]) for group in groups]


def _solved(
    factor: RegressionFactor, kept: Indices, *, equal_weights: bool = False
) -> _FullSolution:
    """The solution with some of the unknowns."""
    p = factor.p
    found = solve_weighted(factor.columns(kept), equal_weights=equal_weights)
    value = np.zeros(p)
    inverse = np.zeros((p, p))
    unknown = np.zeros(p, dtype=bool)
    value[kept] = found.value
    inverse[np.ix_(kept, kept)] = found.inverse
    unknown[kept] = found.unknown
    return _FullSolution(value, inverse, unknown)


def _solved_as_fitted(
    model: DynamicModel, kept: Indices, *, equal_weights: bool = False
) -> _FullSolution:
    """The solution of all runs with some of the unknowns; friction of each run where it differs."""
    estimate = model.estimate
    varying = np.zeros(len(estimate.value))
    if model.run_spread is not None:
        varying = model.run_spread
    friction = np.flatnonzero(varying[kept])
    determined = np.isfinite(estimate.std[kept]).all()
    if model.runs == 1 or equal_weights or not friction.size or not determined:
        return _solved(model.factor, kept, equal_weights=equal_weights)
    spread = varying[kept][friction]
    found, covariance = from_factor(model.factor.columns(kept), estimate.noise, friction, spread)
    p = model.factor.p
    value = np.zeros(p)
    inverse = np.zeros((p, p))
    value[kept] = found
    inverse[np.ix_(kept, kept)] = covariance
    return _FullSolution(value, inverse, np.zeros(p, dtype=bool))


def _widening(model: DynamicModel, *, equal_weights: bool = False) -> Array:
    """By how much an estimate is less certain than with white noise, (p,)."""
    std = model.estimate.std
    every = np.arange(len(std))
    inverse = _solved_as_fitted(model, every, equal_weights=equal_weights).inverse
    white = np.sqrt(np.diag(inverse))
    known = np.isfinite(std) & (white > 0)
    return np.where(known, std / np.where(known, white, 1.0), 1.0)


def _mean(each: Sequence[_FullSolution], widening: Array) -> tuple[Array, Array]:
    """The mean of several solutions, (p,), and its covariance, (p, p), not below their scatter."""
    count = len(each)
    inverse = np.mean([run.inverse for run in each], axis=0) / count
    covariance = inverse * np.outer(widening, widening)
    values = np.array([run.value for run in each])
    if count == 1:
        return values[0], covariance
    std = np.sqrt(np.diag(covariance))
    scatter = values.std(axis=0, ddof=1) / np.sqrt(count)
    more = np.maximum(scatter / np.where(std > 0, std, np.inf), 1.0)
    return values.mean(axis=0), covariance * np.outer(more, more)


def _require_offsets_without_weight(model: DynamicModel) -> None:
    """Refuses arms whose offsets hold the weight of links: those with vertical sliding joints."""
    basis = model.basis
    links = np.abs(basis.K[:, : 10 * model.robot.n]).max(axis=1)
    holds_weight = basis.parameters.offsets & (links > _MIN_WEIGHT_SHARE)
    if holds_weight.any():
        joints = basis.parameters.take(holds_weight).joints
        names = ", ".join(model.robot.joint_names[j] for j in joints)
        raise InvalidSamples(
            f"the offset of {names} also holds the constant weight that it carries: identify this"
            " arm with offsets"
        )


def _require_determined(estimate: Estimate, each: Sequence[_FullSolution]) -> None:
    """Refuses a mean of fewer than two runs, and runs that do not determine what all do."""
    if len(each) < 2:
        raise InvalidSamples("the mean of runs needs two recordings or more, got one")
    determined = np.isfinite(estimate.std)
    for k, run in enumerate(each):
        missing = np.array(estimate.names)[run.unknown & determined]
        if len(missing):
            raise InvalidSamples(
                f"recording {k + 1} alone does not determine {len(missing)} parameters"
                f" ({', '.join(missing[:_MAX_NAMES])}), so there is no mean of runs: fit the"
                " recordings together"
            )


def _verdict(estimate: Estimate, *, offsets: bool, runs: int) -> Verdict:
    """The verdict, with what was chosen, and a doubt about offsets that the torques show."""
    verdict = estimate.verdict
    words = [verdict.summary]
    if runs > 1:
        words.append(f"mean of {runs} runs")
    if not offsets:
        words.append("no offsets")
    if verdict.summary:
        verdict = replace(verdict, summary="; ".join(words))
    half_widths = NORMAL_95 * estimate.std
    shown = estimate.parameters.offsets & (np.abs(estimate.value) > half_widths)
    if offsets or not shown.any():
        return verdict
    listed = [
        f"{estimate.names[i]} {estimate.value[i]:.3g} +- {half_widths[i]:.2g} Nm"
        for i in np.flatnonzero(shown)[:_MAX_NAMES]
    ]
    text = f"offsets were left out although the torques show them: {', '.join(listed)}"
    return verdict.doubted(Doubt(DoubtKind.CONTRADICTS_GIVEN, text, blocks=False))
