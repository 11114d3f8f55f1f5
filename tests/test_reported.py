"""Results that write a report on themselves."""

import pickle

import pytest

from steelyard._reported import Reported
from steelyard.errors import InvalidSamples, UnreadableFile


class Page:
    def write(self, path):
        path.write_text("a page")


class Result(Reported):
    mass = 2.5


def test_a_result_writes_the_page_that_it_was_given(tmp_path):
    Result().with_page(Page).report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "a page"


def test_a_result_without_recordings_and_another_ending_are_refused(tmp_path):
    with pytest.raises(InvalidSamples, match="identify or weigh the recordings again"):
        Result().report(tmp_path / "page.html")
    with pytest.raises(UnreadableFile, match=r"page\.pdf: the name of a report must end in \.html"):
        Result().with_page(Page).report(tmp_path / "page.pdf")


def test_the_page_does_not_travel_to_other_processes():
    again = pickle.loads(pickle.dumps(Result().with_page(Page)))
    assert not vars(again)
