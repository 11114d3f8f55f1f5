"""`steelyard guide`, from a payload file to a table and a picture."""

import json

import numpy as np
import pytest
import typer

from conftest import steelyard
from steelyard.cli.guide import command
from steelyard.errors import SteelyardError
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.verdict import Verdict

SMALL = ("--sides", "0.02,0.02", "--speed", "0.1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Payload files: one of 3 kg at a UR10's flange, one in another frame."""
    path = tmp_path_factory.mktemp("guide")
    for name, frame in (("payload.json", "flange"), ("foreign.json", "tool0")):
        body = InertialParameters.from_com(
            3.0, [0.01, 0.02, 0.05], np.diag([0.01, 0.012, 0.008]), frame
        )
        Payload(body, body, 1e-4 * np.eye(10), np.ones(6), Verdict("all ten were excited")).save(
            path / name
        )
    return path


@pytest.mark.thorough
def test_table_and_picture(folder):
    done = steelyard(
        "guide",
        "ur10",
        "--payload",
        "payload.json",
        *SMALL,
        "--picture",
        "p.png",
        "--report",
        "p.html",
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "mean without" in done.stdout
    assert "The hand pulls with" in done.stdout
    assert "carries 3.000 kg; the controller compensates 3.000 kg" in done.stdout
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")
    assert "Hand guiding: ur10" in (folder / "p.html").read_text(encoding="utf-8")


def test_a_payload_that_is_not_there_is_bad_news(folder, capsys):
    with pytest.raises(typer.Exit) as stop:
        command(
            None,
            "ur10",
            folder / "payload.json",
            mass_true=0.5,
            sides="0.02,0.02",
            speed=0.1,
            as_json=True,
        )
    assert stop.value.exit_code == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["verdict"]["ok"] is False
    assert [row["axis"] for row in facts["axes"]] == ["x", "y", "z"]
    assert (facts["mass_known"], facts["mass_true"]) == pytest.approx((3.0, 0.5))
    assert facts["axes"][2]["mean_without"] == pytest.approx(0.5 * 9.81, abs=1.5)
    assert facts["axes"][2]["mean_with"] == pytest.approx(2.5 * 9.81, abs=1.5)


def test_bad_input_is_one_line_and_exit_code_2(folder):
    done = steelyard("guide", "ur10", "--payload", "foreign.json", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith(
        "error: the payload is in frame 'tool0', the flange of ur10 is 'flange'"
    )
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arm", "payload", "options", "words"),
    [
        ("ur10", "none.json", {}, "none.json: no such file"),
        ("ur10", "payload.json", {"mass_true": -1.0}, "--mass-true must be positive"),
        ("ur10", "payload.json", {"sides": "1"}, "--sides is 2 numbers with commas"),
        ("ur10", "payload.json", {"sides": "1e308,0.1"}, "--sides"),
        ("m.json", "payload.json", {"flange": "x"}, "an identified arm has its own"),
    ],
)
def test_what_is_refused(folder, arm, payload, options, words):
    with pytest.raises(SteelyardError, match=words):
        command(None, arm, folder / payload, **options)


def test_files_that_are_something_else_are_refused(folder):
    payload = folder / "payload.json"
    with pytest.raises(SteelyardError, match="is not a model file"):
        command(None, str(payload), payload)
    with pytest.raises(SteelyardError, match="give --payload-true or --mass-true, not both"):
        command(None, "ur10", payload, payload_true=payload, mass_true=1.0)
