"""A file of numbers for each signal."""

import numpy as np
import pytest

from steelyard.errors import UnreadableFile
from steelyard.io import read


@pytest.fixture
def folder(tmp_path, rng):
    q, tau = rng.normal(size=(2, 30, 3))
    np.savetxt(tmp_path / "ang.txt", q)
    np.savetxt(tmp_path / "mot.dat", tau, delimiter=";", header="Moment in Nm")
    np.savetxt(tmp_path / "flat.txt", tau.ravel())
    np.savetxt(tmp_path / "t.txt", 4.0 + np.arange(30) / 50)
    for k in range(3):
        np.savetxt(tmp_path / f"q{k}.txt", q[:, k])
    lines = [";".join(f"{x:.6f}".replace(".", ",") for x in row) for row in tau]
    (tmp_path / "komma.csv").write_text("\n".join(lines))
    return tmp_path, q, tau


@pytest.mark.parametrize(
    "columns",
    [
        {"q": "ang.txt", "tau": "mot.dat"},
        {"q": "ang.txt", "tau": "flat.txt"},  # one number to a line, joint after joint
        {"q": ["q0.txt", "q1.txt", "q2.txt"], "tau": "komma.csv"},
    ],
)
def test_files_of_signals_are_one_recording(folder, columns):
    path, q, tau = folder
    recording = read(path, columns=columns, rate_hz=50.0)
    np.testing.assert_allclose(recording.q, q, atol=1e-12)
    np.testing.assert_allclose(recording.tau, tau, atol=1e-6)
    assert recording.rate_hz == pytest.approx(50.0)


def test_one_of_the_files_stands_for_their_folder(folder):
    path, q, _ = folder
    columns = {"t": "t.txt", "q": "ang.txt", "tau": "mot.dat"}
    recording = read(path / "ang.txt", columns=columns, degrees=True)
    np.testing.assert_allclose(recording.q, np.radians(q), atol=1e-12)
    assert recording.epoch_s == pytest.approx(4.0)


def test_files_of_a_single_joint_are_columns(folder):
    path, q, _ = folder
    recording = read(path, columns={"t": "t.txt", "q": "q0.txt", "tau": "q1.txt"})
    assert recording.t.shape == (30,)
    np.testing.assert_allclose(recording.q, q[:, :1], atol=1e-12)
    np.testing.assert_allclose(recording.tau, q[:, 1:2], atol=1e-12)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"q": "ang.txt", "tau": "none.txt"}, "are files, but not none.txt; name a file for each"),
        ({"q": "ang.txt", "tau": "q0.txt"}, "tau has 1 columns, but 3 are needed"),
        ({"t": "t.txt", "tau": "q0.txt"}, "no position column .* there are: t, tau"),
        ({"q": "ragged.txt"}, r"ragged\.txt: line 2 has 1 numbers, the first line 3"),
        ({"q": "words.txt"}, r"words\.txt: line 2 is not numbers: 'end of log'"),
        ({"q": "nothing.txt"}, r"nothing\.txt: there is no line of numbers"),
        ({"q": ["q0.txt", "short.txt"]}, "the files of one signal have 30, 2 rows"),
    ],
)
def test_refusals_name_the_file(folder, columns, message):
    path = folder[0]
    (path / "ragged.txt").write_text("1 2 3\n4\n")
    (path / "words.txt").write_text("1 2 3\nend of log\n")
    (path / "nothing.txt").write_text("header\n")
    (path / "short.txt").write_text("1\n2\n")
    with pytest.raises(UnreadableFile, match=message):
        read(path, columns=columns, rate_hz=50.0)


def test_a_folder_says_what_it_needs(folder):
    with pytest.raises(UnreadableFile, match=r"name a file for each signal: `columns=\{'q': 'ang"):
        read(folder[0])
