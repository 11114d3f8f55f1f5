"""What trackers of all sensors have in common."""

import pytest

from steelyard.payload._tracking import Counts


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (Counts(used=5), ""),
        (Counts(late=3, spikes=2), "skipped 3 late, 2 outlying samples"),
        (Counts(gaps=1), "1 pause"),
        (Counts(corrupt=1, gaps=4), "skipped 1 corrupt samples; 4 pauses"),
        (Counts(clocks=1), "the clock was set back: the payload before is forgotten"),
    ],
)
def test_the_words_say_what_was_skipped(counts, words):
    assert counts.words == words
