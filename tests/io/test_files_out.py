"""Output files: checked before the work, written whole or not at all, all or none."""

import json
import os
import stat
import subprocess
import sys

import pytest

from conftest import steelyard
from steelyard import _saved
from steelyard.errors import UnreadableFile


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small arm: its empty run, a loaded one, and its model."""
    path = tmp_path_factory.mktemp("files")
    for words in (
        "simulate planar2r -o empty.npz",
        "simulate planar2r --mass 0.5 --seed 1 -o loaded.npz",
        "identify planar2r empty.npz -o model.json --friction linear",
    ):
        done = steelyard(*words.split(), cwd=path)
        assert done.returncode < 2, done.stderr
    return path


def refused(folder, words):
    """What a command complains of that is bad input, and changes no file."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = steelyard(*words.split(), cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    return done.stderr


def test_what_is_read_is_never_overwritten(folder):
    links = {
        **{"loaded.json": "loaded.npz", "loaded.arrows": "loaded.npz"},
        **{"empty.json": "empty.npz", "model.html": "model.json"},
    }
    for link, name in links.items():
        os.link(folder / name, folder / link)
    for words in (
        "weigh model.json loaded.npz -o model.json",
        "weigh model.json loaded.npz -o loaded.json",
        "weigh model.json loaded.npz --report model.html",
        "identify planar2r empty.npz -o empty.json",
        "identify planar2r empty.npz --validate loaded.npz -o loaded.json",
        "identify planar2r empty.npz --gains mass=0.5:loaded.npz -o loaded.json",
        "check loaded.npz -o loaded.npz",
        "export-arm urdf model.json -o model.json",
        "record replay:loaded.npz -o loaded.arrows",
    ):
        assert "would be overwritten" in refused(folder, words), words
    for link in links:
        (folder / link).unlink()


def test_two_files_need_two_names(folder):
    os.symlink("x.json", folder / "link.html")
    for words in (
        "track loaded.npz --model model.json -o x.json --save-state ./x.json",
        "weigh model.json loaded.npz -o x.json --report link.html",
    ):
        assert "written twice" in refused(folder, words), words
    (folder / "link.html").unlink()


@pytest.mark.parametrize("verb", ["weigh model.json loaded.npz", "identify planar2r empty.npz"])
def test_folders_devices_and_names_that_cannot_be(folder, verb):
    os.mkfifo(folder / "pipe")
    os.symlink("loop", folder / "loop")
    for name, why in (
        (".", "a folder"),
        ("/dev/null", "not a regular file"),
        ("pipe", "not a regular file"),
        ("n" * 300, "name too long"),
        ("none/x.json", "no folder"),
        ("model.json/x.json", "no folder"),
        ("loop", "levels of symbolic links"),
    ):
        assert why in refused(folder, f"{verb} -o {name}").replace("File name", "name"), name
    (folder / "pipe").unlink()
    (folder / "loop").unlink()


def test_a_command_that_fails_later_has_written_nothing(folder, monkeypatch):
    assert "must end in .png" in refused(
        folder, "identify planar2r empty.npz -o x.json --picture p.txt"
    )
    monkeypatch.setattr("steelyard.report._html._library", lambda: 1 / 0)
    before = sorted(folder.iterdir())
    done = steelyard(
        *["weigh", "model.json", "loaded.npz", "-o", "x.json", "--report", "x.html"], cwd=folder
    )
    assert done.returncode == 70
    assert sorted(folder.iterdir()) == before


def test_links_are_kept_and_modes_are_the_users(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    link.symlink_to(real)
    before = os.umask(0o027)
    try:
        _saved.write_text(link, "1")
        assert link.is_symlink()
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
        real.chmod(0o604)
        _saved.write_text(link, "2")
    finally:
        os.umask(before)
    assert (real.read_text(), stat.S_IMODE(real.stat().st_mode)) == ("2", 0o604)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.txt", "real.txt"]


def fail_halfway(path, error):
    with _saved.replacing(path) as part:
        part.write_text("half")
        raise error


def test_a_failing_disk_is_a_refusal_and_leaves_the_old_file(tmp_path):
    path = tmp_path / ("n" * 250)
    _saved.write_text(path, "old")
    with pytest.raises(UnreadableFile, match=r"cannot write .*: No space left"):
        fail_halfway(path, OSError(28, "No space left on device"))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_files_take_their_places_together(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    with pytest.raises(ZeroDivisionError), _saved.together():
        _saved.write_text(two, f"{_saved.write_text(one, '1') or 1 / 0}")
    assert list(tmp_path.iterdir()) == []
    with _saved.together():
        _saved.write_text(one, "1")
        _saved.write_text(two, "2")
        assert not one.exists()
    assert sorted(tmp_path.iterdir()) == [one, two]


def test_parts_of_killed_writers_are_swept_and_those_of_living_ones_are_not(tmp_path):
    left = tmp_path / ".x.json.0123abcd.part"
    left.write_text("half")
    _saved.sweep(tmp_path / "x.json")
    assert left.exists()  # another process may have just begun to write it
    os.utime(left, (0, 0))
    with _saved.replacing(tmp_path / "x.json") as part:
        os.utime(part, (0, 0))
        _saved.sweep(tmp_path / "x.json")
        assert part.exists()
        assert not left.exists()


def test_a_fault_of_ours_is_one_line_and_ctrl_c_another(tmp_path):
    code = "import sys; sys.argv = ['steelyard', 'robots', *{0}]; import steelyard.__main__ as m;"
    code += " import steelyard.robot as r; r.robot_names = lambda: {1}; m.main()"
    for flags, action, said, exit_code in (
        ([], "1 / 0", "error: internal error: ZeroDivisionError", 70),
        (
            ["--json"],
            "__import__('os').kill(__import__('os').getpid(), 2)",
            "error: interrupted",
            130,
        ),
    ):
        words = [sys.executable, "-c", code.format(flags, action)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=tmp_path)
        assert (done.returncode, done.stderr.count("\n")) == (exit_code, 1), done
        assert done.stderr.startswith(said)
        assert not flags or json.loads(done.stdout) == {"error": "interrupted"}
