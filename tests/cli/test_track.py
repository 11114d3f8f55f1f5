"""`track` with a recording: text, JSON, picture, saved states, refusals."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from conftest import steelyard
from steelyard.drawing import save_picture
from steelyard.identification import DynamicModel, identify
from steelyard.inertia import InertialParameters
from steelyard.io import write
from steelyard.payload import Payload
from steelyard.payload._tracking import Counts, Progress, convergence_times
from steelyard.recording import Recording
from steelyard.report._tracking import tracking_plot
from steelyard.robot import load_robot
from steelyard.signals import Preparation, prepare
from steelyard.torque.tracking import TorqueTracker
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import Verdict
from steelyard.workflow._tracking import load_state

LOAD = InertialParameters.from_com(3.5, [0.02, -0.03, 0.06], np.diag([0.02, 0.03, 0.025]))


def run_of(robot, seed, motion_seed, gain=None):
    """10 s of an arm at 100 Hz with torque noise, or with motor currents."""
    series = FourierTrajectory.random(
        np.zeros(6), reach=[2.0] * 6, speed=[1.5] * 6, period_s=10.0, harmonics=5, seed=motion_seed
    )
    t = np.arange(0, 10, 0.01)
    q, v, a = series.at(t)
    tau = robot.torque(q, v, a) + 0.5 * np.random.default_rng(seed).normal(size=q.shape)
    effort = {"tau": tau} if gain is None else {"current": tau / gain}
    return Recording(t=t, q=q, joint_names=robot.joint_names, **effort)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("online")
    robot = load_robot("ur10")
    how = Preparation(cutoff_hz=10.0, trim_s=0.3)
    empty = [prepare(run_of(robot, seed, 1 + seed), how) for seed in (0, 1)]
    model = identify(robot, empty)
    model.save(path / "model.json")
    currents = [run_of(robot, seed, 1 + seed, robot.drive.gain) for seed in (0, 1)]
    of_currents = identify(robot, [prepare(part, how, drive=robot.drive) for part in currents])
    of_currents.save(path / "of_currents.json")
    other = replace(model, estimate=replace(model.estimate, value=1.01 * model.estimate.value))
    other.save(path / "other.json")
    loaded = run_of(robot.with_payload(LOAD), 2, 3)
    write(loaded, path / "loaded.parquet")
    write(run_of(robot.with_payload(LOAD), 2, 3, robot.drive.gain), path / "currents.parquet")
    empty = run_of(robot, 3, 3)
    parts = ((loaded, slice(0, 600)), (empty, slice(600, 1000)))
    dropped = {
        name: np.concatenate([getattr(r, name)[cut] for r, cut in parts]) for name in ("q", "tau")
    }
    t = np.arange(1000) * 0.01
    write(Recording(t=t, joint_names=robot.joint_names, **dropped), path / "dropped.parquet")
    write(loaded.between(0.0, 0.3), path / "short.parquet")
    write(
        Recording(t=loaded.t, q=loaded.q[:, :5], tau=np.asarray(loaded.tau)[:, :5]),
        path / "five.parquet",
    )
    return path


def weighed(folder, recording, *words, model="model.json"):
    return steelyard("track", recording, "--model", model, *words, cwd=folder)


@pytest.fixture(scope="module")
def facts(folder):
    """What is said of the loaded run, as JSON; its state is saved."""
    words = ("--json", "--accuracy", "2", "--save-state", "state.json")
    return json.loads(weighed(folder, "loaded.parquet", *words).stdout)


def test_words_files_and_picture(folder):
    words = ("-o", "payload.json", "--picture", "curve.png", "--accuracy", "2")
    code, out, _ = weighed(folder, "loaded.parquet", *words)
    assert code == 0
    lines = [line for line in out.splitlines() if " s  mass " in line]
    assert 10 <= len(lines) <= 12  # one for each second
    assert lines[0].endswith("s  mass not known yet  do not use yet (not_excited)")
    assert max(map(len, lines)) < 120
    assert "Converged: the mass is known to" in out
    assert re.search(r"^ +\d+\.\d\d s  mass +\d\.\d+ (±|\+-) \d\.\d+ kg", out, re.MULTILINE)
    assert re.search(r"\((±|\+-) is half of the 95 % interval\)", out)
    assert "The mass is known to 2 % since " in out
    payload = Payload.load(folder / "payload.json")
    assert payload.body.mass == pytest.approx(3.5, abs=3 * payload.std[0])
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_json_has_the_curve_and_when_it_converged(facts):
    curve = facts["curve"]
    assert len({len(values) for values in curve.values()}) == 1
    assert 60 <= len(curve["t"]) <= 110
    assert curve["mass_std"][-1] < 0.1 * curve["mass_std"][1]
    inside = np.abs(np.array(curve["mass"]) - 3.5) < 3 * np.array(curve["mass_std"])
    assert inside.mean() > 0.9
    since = facts["converged_s"]
    half = 1.96 * np.array(curve["mass_std"]) / np.abs(curve["mass"])
    assert (half[np.array(curve["t"]) >= since] <= 0.02).all()
    assert facts["mass"] == pytest.approx(3.5, abs=3 * facts["mass_std"])
    assert facts["samples"]["used"] > 900
    assert facts["history"] == []
    assert facts["delay_s"] == pytest.approx(0.23, abs=0.02)


@pytest.mark.thorough
def test_a_dropped_part_is_history(folder):
    files = ("--picture", "dropped.png", "--save-state", "dropped.json")
    words = weighed(folder, "dropped.parquet", *files).stdout
    model = DynamicModel.load(folder / "model.json")
    state = load_state(folder / "dropped.json", TorqueTracker(model, "measured"))
    (episode,) = state.history
    assert episode.end_s == pytest.approx(6.0, abs=0.5)
    assert episode.vector[0] == pytest.approx(3.5, abs=4 * np.sqrt(episode.covariance[0, 0]))
    (line,) = [line for line in words.splitlines() if line.startswith("1 ")]
    assert "Payloads before" in words
    assert float(line.split()[2]) == pytest.approx(episode.end_s, abs=0.01)
    assert float(line.split()[3]) == pytest.approx(episode.vector[0], abs=0.001)
    assert "Payload 2, since" in words


@pytest.mark.thorough
def test_currents_are_weighed_with_the_gains_of_the_model(folder, facts):
    current = json.loads(
        weighed(folder, "currents.parquet", "--json", model="of_currents.json").stdout
    )
    assert current["unconstrained"][0] == pytest.approx(facts["unconstrained"][0], abs=1e-6)
    assert (
        current["mass_std"] > 1.5 * facts["mass_std"]
    )  # gains of motors are known to 2 %, torques are measured
    refused = weighed(folder, "currents.parquet")
    assert refused.returncode == 2
    assert "has motor currents, the model was fitted to measured torques" in refused.stderr


@pytest.mark.thorough
def test_a_saved_state_is_resumed_and_knows_more(folder, facts):
    more = json.loads(weighed(folder, "loaded.parquet", "--json", "--resume", "state.json").stdout)
    by_noise = [found["shares"]["noise"] * found["mass_std"] ** 2 for found in (more, facts)]
    assert by_noise[0] < 0.8 * by_noise[1]
    assert more["samples"]["used"] > 1.9 * facts["samples"]["used"]
    assert more["samples"]["late"] == 0
    other = weighed(folder, "loaded.parquet", "--resume", "state.json", model="other.json")
    assert other.returncode == 2
    assert "was saved with another model or sensor; start without --resume" in other.stderr
    content = json.loads((folder / "state.json").read_text())
    content["state"]["pending"].pop(0)  # a plausible state, but not this one
    (folder / "changed.json").write_text(json.dumps(content))
    changed = weighed(folder, "loaded.parquet", "--resume", "changed.json")
    assert changed.returncode == 2
    assert "changed.json was changed after it was saved" in changed.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["five.parquet"], "the recording has 5 joints, the arm has 6"),
        (["short.parquet"], "too short to replay"),
        (["loaded.parquet", "--resume", "none.json"], "none.json: no such file"),
        (["loaded.parquet", "--resume", "bad.json"], "is not JSON"),
        (
            ["loaded.parquet", "--resume", "half.json"],
            "half.json was changed after it was saved, or is not whole",
        ),
        (["loaded.parquet", "--save-state", "none/state.json"], "there is no folder"),
    ],
)
def test_refusals(folder, words, message):
    (folder / "bad.json").write_text("{")
    (folder / "half.json").write_text('{"steelyard": "tracker state", "version": 4}')
    refused = weighed(folder, *words)
    assert refused.returncode == 2
    assert message in refused.stderr


def point(t, converged, number=1, *, mass=2.0, std=0.02):
    """Progress with a mass and its standard deviation; NaN-free where the mass is known."""
    body = InertialParameters.from_com(mass, [0.1, 0.0, 0.2], 0.01 * np.eye(3))
    covariance = np.diag([std**2] + 3 * [1e-6] + 6 * [1e-8])
    payload = Payload(body, body, covariance, np.ones(6), Verdict("words"))
    return Progress(t, payload, number, converged, Counts())


def test_convergence_counts_from_the_last_time_that_it_was_lost():
    points = [
        point(0.0, False),
        point(1.0, True),
        point(2.0, False),
        point(3.0, True),
        point(4.0, True),
    ]
    points += [point(5.0, False, 2), point(6.0, True, 2), point(7.0, False, 3)]
    assert convergence_times(points) == {1: 3.0, 2: 6.0}


def test_a_picture_of_a_mass_that_was_never_known(tmp_path):
    nothing = point(0.0, False, std=np.inf)
    assert np.isnan(nothing.com).all()
    plot = tracking_plot([nothing, replace(nothing, t=1.0)], accuracy=0.01)
    assert "(not known)" in plot.caption
    save_picture([plot], tmp_path / "p.png", title="nothing")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_the_curve_is_shown_where_it_can_be_read_and_breaks_at_another_payload():
    t = np.linspace(0, 10, 200)
    mass, std = 2 + 100 * np.exp(-3 * t), 50 * np.exp(-2 * t) + 0.01
    points = [point(t[i], False, 1 + (t[i] > 8), mass=mass[i], std=std[i]) for i in range(200)]
    shown = tracking_plot(points, accuracy=0.01).panels[0]
    band, line = shown.curves
    low, high = shown.y_range
    assert low < 2 - 1.96 * 0.01
    assert 2 + 1.96 * 0.01 < high < 20
    assert np.isnan(line.y[-1])
    assert np.isnan(line.y).sum() == 2  # after each payload
    known = np.isfinite(line.y)
    np.testing.assert_array_equal(line.y[known], mass)
    np.testing.assert_allclose(band.high[known] - band.low[known], 2 * 1.96 * std)
    assert [words for _, words in shown.marks] == ["another payload"]
