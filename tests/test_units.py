"""Units and the rounding of numbers in texts."""

import pytest

from steelyard._units import in_seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0123, "0.0123 s"), (25.0, "25 s"), (1800.0, "1800 s"), (10800.0, "10800 s (3.00 h)")],
)
def test_long_durations_are_read_at_once(seconds, text):
    assert in_seconds(seconds) == text
