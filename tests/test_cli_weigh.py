"""`steelyard weigh`, from a model file to a payload file."""

import json
import subprocess
import sys

import pytest

from steelyard.io.models import load_payload


def steelyard(*arguments, cwd):
    words = [sys.executable, "-m", "steelyard", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, cwd=cwd, timeout=200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of a UR10 from currents, and a run with 2.5 kg."""
    path = tmp_path_factory.mktemp("weigh")
    for arguments in (
        ("simulate", "ur10", "--trajectory", "xu2024", "-o", "empty.parquet"),
        (
            "simulate",
            "ur10",
            "--trajectory",
            "xu2024",
            "--mass",
            "2.5",
            "--seed",
            "1",
            "-o",
            "loaded.parquet",
        ),
        ("identify", "ur10", "empty.parquet", "-o", "model.json", "--friction", "power", "--gains", "robot"),
    ):
        done = steelyard(*arguments, cwd=path)
        assert done.returncode == 0, done.stderr
    return path


def test_payload_as_words_file_and_picture(folder):
    done = steelyard(
        *("weigh", "model.json", "loaded.parquet", "-o", "payload.json", "--picture", "p.png"), cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert "mass" in done.stdout
    payload = load_payload(folder / "payload.json")
    assert payload.body.mass == pytest.approx(2.5, abs=3 * payload.std[0])
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")


def test_json_and_known_numbers(folder):
    done = steelyard("weigh", "model.json", "loaded.parquet", "--fix", "mass=2.5", "--json", cwd=folder)
    facts = json.loads(done.stdout)
    assert facts["mass"] == pytest.approx(2.5, abs=1e-4)
    assert facts["frame"] == "flange"
    assert len(facts["covariance"]) == 10


def test_bad_input_is_one_line(folder):
    done = steelyard("weigh", "loaded.parquet", "loaded.parquet", cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is not JSON" in done.stderr
    done = steelyard("weigh", "model.json", "loaded.parquet", "--fix", "mass", cwd=folder)
    assert "--fix is NAME=NUMBER" in done.stderr


def test_an_answer_not_to_be_trusted_is_exit_code_1(folder):
    done = steelyard("weigh", "model.json", "loaded.parquet", "--fix", "m=2.5", "--json", cwd=folder)
    assert done.returncode == 0
    swapped = steelyard(
        "identify", "ur10", "loaded.parquet", "-o", "heavy.json", "--friction", "power", cwd=folder
    )
    assert swapped.returncode == 0
    done = steelyard("weigh", "heavy.json", "empty.parquet", cwd=folder)
    assert done.returncode == 1
    assert "Do not trust this" in done.stdout
    assert "the mass is -2." in done.stdout
