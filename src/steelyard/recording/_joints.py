"""Names of joints that differ by a prefix: `fer_joint1` is `panda_joint1` of the same arm.

Names of left and right arms are never exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

_SIDES = ("left", "right")


def joints_by_prefix(names: Sequence[str], wanted: Sequence[str]) -> dict[str, str] | None:
    """The name in `names` for each wanted name, if they differ by one prefix; else None.

    Args:
        names: in a recording
        wanted: of an arm
    """
    own = _common_prefix(names)
    other = _common_prefix(wanted)
    if len(names) != len(wanted) or len(names) < 2:
        return None
    if any(side in prefix.lower() for side in _SIDES for prefix in (own, other)):
        return None
    by_rest = {name[len(own) :]: name for name in names}
    found = {name: by_rest.get(name[len(other) :], "") for name in wanted}
    if len(by_rest) < len(names) or not all(found.values()):
        return None
    return found


def _common_prefix(names: Sequence[str]) -> str:
    """The letters with which all names begin."""
    if not names:
        return ""
    first = min(names)
    last = max(names)
    same = [a == b for a, b in zip(first, last, strict=False)]
    return first[: (*same, False).index(False)]
