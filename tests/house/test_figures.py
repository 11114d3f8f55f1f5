"""The house stays small: what benchmarks/house.py prints, with ceilings."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location(
    "house", Path(__file__).parents[2] / "benchmarks" / "house.py"
)
house = importlib.util.module_from_spec(spec)
spec.loader.exec_module(house)
EVERY = house.modules()
APART = {"live": (6_395, 88), "fleet": (2_660, 37)}
"""Rooms with ceilings of their own: lines, and public names."""

VERBS_OF = {"live": ("record", "watch", "serve", "set_payload", "play", "weigh_live", "live")}
"""Files of the command line that count with such a room."""


def room_of(name):
    """The room of a module; that of its verb in the command line."""
    _, room, *inside = [*name.split("."), ""]
    verbs = {verb: apart for apart, verbs in VERBS_OF.items() for verb in verbs}
    return verbs.get(inside[0], room) if room == "cli" and inside else room


MODULES = {name: path for name, path in EVERY.items() if room_of(name) not in APART}


def test_files_and_lines():
    assert len(MODULES) <= 195
    assert sum(path.read_text().count("\n") for path in MODULES.values()) <= 40_272


def test_public_names():
    assert sum(len(house.public_names(path)) for path in MODULES.values()) <= 480


@pytest.mark.parametrize("room", APART)
def test_rooms_with_ceilings_of_their_own(room):
    found = [path for name, path in EVERY.items() if room_of(name) == room]
    lines, names = APART[room]
    assert sum(path.read_text().count("\n") for path in found) <= lines
    assert sum(len(house.public_names(path)) for path in found) <= names


def test_modules_that_serve_one_other_alone():
    assert len(house.satellites(EVERY)) <= 25


def test_satellites_and_public_names_are_counted(tmp_path):
    texts = {
        "a": "from steelyard.r import b",
        "b": "def f(): ...\nclass _G: ...\nclass H: ...",
        "__init__": "",
    }
    found = {}
    for name, text in texts.items():
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        found[f"steelyard.r.{name}".removesuffix(".__init__")] = path
    assert house.public_names(found["steelyard.r.b"]) == ["f", "H"]
    assert house.satellites(found) == [("steelyard.r.b", "steelyard.r.a")]
