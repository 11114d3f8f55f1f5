"""Texts for people have the signs that their stream can show."""

import io
import sys

import pytest

from steelyard._units import printable
from steelyard.cli.terminal import say


def stream(encoding):
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding)


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", "2.5 ± 0.1 kg, 3 ± 1 kg m², 9.81 m/s²"),
        ("ascii", "2.5 +- 0.1 kg, 3 +- 1 kg m^2, 9.81 m/s^2"),
        ("latin-1", "2.5 +- 0.1 kg, 3 +- 1 kg m^2, 9.81 m/s^2"),
    ],
)
def test_signs_depend_on_the_stream(encoding, expected, monkeypatch):
    text = "2.5 +- 0.1 kg, 3 +- 1 kg m^2, 9.81 m/s^2"
    assert printable(text, stream(encoding)) == expected
    out = stream(encoding)
    monkeypatch.setattr(sys, "stdout", out)
    say(text, flush=True)
    assert out.buffer.getvalue().decode(encoding).strip() == expected


def test_a_text_that_has_the_signs_already_stays_where_they_can_be_shown():
    assert printable("1 ± 2 m²", stream("utf-8")) == "1 ± 2 m²"
    assert printable("1 ± 2 Nm (s/rad)^α", stream("ascii")) == "1 +- 2 Nm (s/rad)^alpha"
