"""The tiers of the tests: `make test` runs some of many similar cases, `make thorough` the rest."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def thorough_but(quick: Collection[Any], cases: Iterable[Any]) -> list[Any]:
    """Parameters of a test: those in `quick` as they are, the others marked as thorough.

    Args:
        quick: the cases of `make test`; each of them has to be one of `cases`
        cases: all of them
    """
    cases = list(cases)
    unknown = [case for case in quick if case not in cases]
    assert not unknown, f"no such cases: {unknown}"
    return [
        case if case in quick else pytest.param(*_values(case), marks=pytest.mark.thorough)
        for case in cases
    ]


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
