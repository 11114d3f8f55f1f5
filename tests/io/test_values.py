"""`steelyard.load`: any saved value, by the kind that its file states."""

import json

import pytest

import steelyard as sy
from steelyard import _saved
from steelyard.errors import UnreadableFile


def test_a_saved_value_comes_back_as_its_own_class(tmp_path):
    motion = sy.FourierTrajectory.load("xu2024")
    motion.save(tmp_path / "motion.json")
    again = sy.load(tmp_path / "motion.json")
    assert type(again) is sy.FourierTrajectory
    assert _saved.plain(again.to_dict()) == _saved.plain(motion.to_dict())


@pytest.mark.parametrize(
    ("content", "kind"),
    [({"steelyard": "fleet", "version": 1}, "fleet"), ([1.0, 2.0], "None")],
)
def test_a_file_of_another_kind_is_refused(tmp_path, content, kind):
    path = tmp_path / "other.json"
    path.write_text(json.dumps(content))
    with pytest.raises(
        UnreadableFile, match=rf"holds a value of kind '{kind}', which load\(\) cannot read"
    ):
        sy.load(path)


def test_every_kind_of_file_names_a_class_that_can_load_it():
    from steelyard.io._values import _CLASSES

    for package, name in _CLASSES.values():
        module = __import__(f"steelyard.{package}", fromlist=[name])
        assert callable(getattr(module, name).load)
