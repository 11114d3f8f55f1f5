"""What workers make of the rows of one arm: merged factors, contradictions, payloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.arrays import Array
from steelyard.fleet.engine import EIGHT
from steelyard.fleet.estimate import log_state, payload_of
from steelyard.fleet.reduce import unpacked
from steelyard.identification import DynamicModel, RegressionFactor
from steelyard.verdict import DoubtKind

_NO_LOAD = (DoubtKind.NOTHING_CARRIED, DoubtKind.NEGATIVE_MASS)
_NAMED = ("robot", "file", "start_s", "end_s", "time", "tool", "load")


def leaves(rows: Sequence[Mapping[str, Any]]) -> list[tuple[list[Array], list[list[int]]]]:
    """Arguments of `merge_packed` for the rows of an arm, eight by eight.

    Args:
        rows: with their factors
    """
    parts = [rows[i : i + EIGHT] for i in range(0, len(rows), EIGHT)]
    return [([row["factor"] for row in part], [row["rows"] for row in part]) for part in parts]


def merge_packed(factors: Sequence[Array], rows: Sequence[Sequence[int]]) -> RegressionFactor:
    """The merged factor of logs.

    Args:
        factors: as `packed` wrote them
        rows: how many each joint of each log has
    """
    return merge([unpacked(*each) for each in zip(factors, rows, strict=True)])


def merge(factors: Sequence[RegressionFactor]) -> RegressionFactor:
    """The factor of the rows of all.

    Args:
        factors: of the same unknowns, at least one
    """
    merged, *rest = factors
    for factor in rest:
        merged = merged.merge(factor)
    return merged


def contradictions(
    robot: str, content: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """How much each log contradicts the model of its arm, by key.

    Args:
        robot: name of the arm
        content: of its model
        rows: of its logs, with their factors
    """
    model = DynamicModel.from_dict(content)
    found = {}
    for row, factor, widening in _evidence(rows):
        found[row["key"]] = log_state(model, factor, widening, np.array(row["noise"])).contradiction
    return found


def payloads(
    robot: str, content: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The payload of each log of an arm, as rows of a table.

    Args:
        robot: name of the arm
        content: of its model
        rows: of its logs, with their factors
    """
    model = DynamicModel.from_dict(content)
    found = []
    for row, factor, widening in _evidence(rows):
        payload = payload_of(model, factor, widening, np.array(row["torque"]))
        expected = _NO_LOAD if row["load"] == 0 else ()
        against = [doubt for doubt in payload.verdict.blocking if doubt.kind not in expected]
        mass, std = payload.unconstrained.mass, float(payload.std[0])
        found.append(
            {
                **{name: row[name] for name in _NAMED},
                "mass": mass,
                "mass_std": std,
                "error": None if row["load"] is None else mass - row["load"],
                **{f"c{axis}": float(x) for axis, x in zip("xyz", payload.com, strict=True)},
                **{f"c{axis}_std": float(x) for axis, x in zip("xyz", payload.com_std, strict=True)},
                "ok": not against,
                "verdict": payload.status,
                "doubts": [str(doubt.kind) for doubt in against],
            }
        )
    return found


def _evidence(
    rows: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[Mapping[str, Any], RegressionFactor, Array]]:
    """Rows with their factors and the widening of their noise."""
    for row in rows:
        yield row, unpacked(row["factor"], row["rows"]), np.array(row["widening"])
