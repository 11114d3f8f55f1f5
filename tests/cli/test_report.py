"""`--report`: the page of each estimating command ends with settings, versions and digests."""

import hashlib
import json
import re

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from report_pages import wrench_recording
from steelyard.cli import contact, demo, design, identify, weigh_wrist
from steelyard.io import write
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.trajectory import FourierTrajectory

VERBS = {
    "identify": identify,
    "contact": contact,
    "design": design,
    "demo": demo,
}
app = typer.Typer()
for name, verb in VERBS.items():
    app.command(name=name)(verb.command)
app.add_typer(weigh_wrist.app, name="weigh-wrist")


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs of a 2R arm, two of a UR10 with a wrist sensor."""
    path, rng = tmp_path_factory.mktemp("report"), np.random.default_rng(4)
    arm, t = load_robot("planar2r"), np.arange(0, 10, 0.01)
    for seed, name in enumerate(("one", "two")):
        series = FourierTrajectory.random(
            np.zeros(2),
            reach=np.ones(2),
            speed=np.full(2, 2.0),
            period_s=10.0,
            harmonics=5,
            seed=seed,
        )
        q, v, a = series.at(t)
        tau = arm.torque(q, v, a) + 3 * np.sign(v) + 0.2 * rng.normal(size=q.shape)
        write(Recording(t, q, arm.joint_names, v=v, tau=tau), path / f"{name}.parquet")
    rests = rng.uniform(-1.5, 1.5, size=(8, 6)).repeat(150, axis=0)
    zero = np.zeros_like(rests)
    write(wrench_recording(rests, zero, zero, np.arange(1200) / 100, rng), path / "rest.parquet")
    write(wrench_recording(*FourierTrajectory.load("xu2024").at(t), t, rng), path / "move.parquet")
    return path


def settings(path):
    """The table at the end of a page."""
    text = path.read_text(encoding="utf-8")
    table = text[text.index('<table class="settings">') :]
    return dict(re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td></tr>", table))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_that_estimates_takes_report(name):
    assert "--report" in run(name, "--help").output


def test_identify_draws_what_it_did_not_fit_and_tells_every_setting(folder):
    one, two, page = folder / "one.parquet", folder / "two.parquet", folder / "arm.html"
    words = (
        "identify",
        "planar2r",
        one,
        "--validate",
        two,
        "-o",
        folder / "arm.json",
        "--friction",
        "smooth",
    )
    done = run(*words, "--report", page)
    assert done.exit_code == 0, done.output
    assert f"Report: {page}" in done.output.replace("\n", "")
    stated = settings(page)
    assert stated[f"sha256 of {one}"] == digest(one)
    assert stated[f"sha256 of {two}"] == digest(two)
    assert stated["--friction"] == "smooth"
    assert stated["--cutoff"] == "auto"
    assert {"steelyard", "numpy", "pin", "python", "command", "written"} <= set(stated)
    text = page.read_text(encoding="utf-8")
    assert "the torques of two.parquet, which was held back" in text
    assert "No recording was held back" not in text
    assert "Quality of the recordings" in text
    alone = run(*words[:3], *words[5:], "--report", page, "--json")
    assert json.loads(alone.stdout)["report"] == str(page)
    assert "No recording was held back" in page.read_text(encoding="utf-8")


def test_weigh_ft_and_contact(folder):
    page, load = folder / "wrist.html", folder / "load.json"
    files = (folder / "rest.parquet", folder / "move.parquet")
    sensor = folder / "sensor.toml"
    sensor.write_text("translation = [0.0, 0.0, 0.0]")
    words = ("--robot", "ur10", "--sensor", sensor)
    done = run("weigh-wrist", "both", *files, *words, "-o", load, "--report", page)
    assert done.exit_code == 0, done.output
    assert settings(page)[f"sha256 of {folder / 'move.parquet'}"] == digest(folder / "move.parquet")
    text = page.read_text(encoding="utf-8")
    assert "Postures at rest" in text
    assert "Force and torque in motion" in text
    assert 'class="doubts"' not in text
    done = run("weigh-wrist", "in-motion", files[1], "--robot", "ur10", "--report", page, "--json")
    assert json.loads(done.stdout)["report"] == str(page)
    done = run(
        "contact", load, folder / "move.parquet", "--robot", "ur10", "--report", page, "--json"
    )
    assert json.loads(done.stdout)["report"] == str(page)
    assert "The largest external force" in page.read_text(encoding="utf-8")
    assert settings(page)[f"sha256 of {load}"] == digest(load)
