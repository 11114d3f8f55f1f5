"""Signs and digits that people read."""

import io
import os
import sys

import numpy as np
import pytest

from steelyard.__main__ import _leave
from steelyard._units import printable
from steelyard.cli.output import Output
from steelyard.payload import Quantity


def test_units_in_the_heads_of_tables_are_printed(capsys):
    Output(False).table("Masses", ("part", "mass [kg]", "x [mm]"), [("a", "1.5", "[/bold]")])
    printed = capsys.readouterr().out
    assert "mass [kg]" in printed
    assert "x [mm]" in printed
    assert "[/bold]" in printed


@pytest.mark.parametrize(("encoding", "shown"), [("utf-8", "3.2 ± 0.1 kg m²"), ("ascii", None)])
def test_signs_are_shown_where_the_terminal_can(monkeypatch, encoding, shown):
    text = "3.2 +- 0.1 kg m^2"
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    found = printable(text)
    monkeypatch.undo()
    assert found == (shown or text)


def test_what_was_printed_before_ctrl_c_is_not_lost(monkeypatch):
    """Standard output that is no terminal keeps lines back, and the process ends at once."""
    out = io.BytesIO()
    codes = []
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="utf-8"))
        patch.setattr(sys, "stderr", io.StringIO())
        patch.setattr(os, "_exit", codes.append)
        sys.stdout.write("pick 1: 2.01 kg\n")
        assert out.getvalue() == b""
        _leave()
        assert out.getvalue() == b"pick 1: 2.01 kg\n"
        assert sys.stderr.getvalue() == "error: interrupted\n"
    assert codes == [130]


def test_a_number_has_two_digits_of_its_interval():
    assert Quantity("x", 171.43, 3.2 / 1.96, "mm").with_interval == "171.4 +- 3.2"
    assert Quantity("m", 2.50028, 0.0076 / 1.96, "kg").with_interval == "2.5003 +- 0.0076"
    assert Quantity("m", 1.0, np.inf, "kg").with_interval == "unknown"
