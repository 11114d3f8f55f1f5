"""Changes over time are found, with at most the stated false ones, none for temperature."""

import csv
import json
from datetime import UTC, datetime

import numpy as np
import pytest

from conftest import steelyard
from fleet_logs import FRICTION, tiny_fleet, write_catalogue
from steelyard.errors import InvalidSamples
from steelyard.fleet import Fleet, LogRow
from steelyard.fleet._arms import _likeliest_changes
from steelyard.fleet._trend import (
    _weights,
    false_discovery_rates,
    level,
    likeliest_change,
    likeliest_payload_change,
)

DAYS = 86400.0 * np.arange(40)
NOTHING = np.zeros((40, 0))


def test_steps_and_ramps_are_found_with_their_size(rng):
    std = rng.uniform(0.5, 1.5, size=40)
    noise = std * rng.normal(size=40)
    step = likeliest_change(DAYS, noise + 6.0 * (np.arange(40) >= 25), std, NOTHING)
    assert (step.ramp, step.p < 1e-9) == (False, True)
    assert abs(step.at - 25) <= 1
    assert abs(step.size - 6.0) < 3 * step.std < 2.0
    ramp = likeliest_change(DAYS, noise + 0.4 * np.maximum(np.arange(40) - 15, 0), std, NOTHING)
    assert ramp.ramp
    assert ramp.p < 1e-9
    assert abs(ramp.at - 15) <= 6
    assert ramp.size == pytest.approx(0.4 * 24, abs=3 * ramp.std)


def test_p_values_are_at_most_uniform_without_a_change(rng):
    """Also with scatter from log to log, correlated neighbours, and a temperature that matters."""
    found = []
    for k in range(400):
        e, std = rng.normal(size=(2, 40))
        if k % 2:
            for i in range(1, 40):
                e[i] += 0.5 * e[i - 1]
        warm = 20 + 8 * np.sin(np.arange(40) / 6 + k) + rng.normal(size=40)
        y = 3.0 * e - 0.5 * warm
        found.append(likeliest_change(DAYS, y, 0.1 + 0.1 * np.abs(std), warm[:, None]).p)
    p = np.sort(found)
    assert (p > 0.8 * np.arange(1, 401) / 400 - 0.03).all()


def test_a_cold_morning_is_no_change_where_the_temperature_is_known(rng):
    warm = np.where(np.arange(40) >= 20, 8.0, 22.0) + rng.normal(size=40)
    y = 10 - 0.2 * warm + 0.3 * rng.normal(size=40)
    std = np.full(40, 0.3)
    assert likeliest_change(DAYS, y, std, NOTHING).p < 1e-6
    assert likeliest_change(DAYS, y, std, warm[:, None]).p > 0.01


def test_too_few_logs_and_outliers():
    assert likeliest_change(DAYS[:7], np.arange(7.0), np.ones(7), np.zeros((7, 0))) is None
    y = np.random.default_rng(1).normal(size=40)
    y[-1] = 12.0  # one log is no change
    assert likeliest_change(DAYS, y, np.ones(40), NOTHING).p > 1e-3


def test_outliers_on_one_side_do_not_lower_the_weight_of_the_others(rng):
    """They move the mean of a fit, and all residuals with it; the scatter is about their median."""
    X = np.ones((60, 1))
    y = 5.0 + 0.3 * rng.normal(size=60)
    y[::5] += 20.0
    weights = _weights(X, y, np.full(60, 0.1))
    np.testing.assert_allclose(weights, 1 / 0.3, rtol=0.5)


def test_the_false_discovery_rate_of_benjamini_and_yekutieli():
    p = np.array([0.001, 0.5, 0.0002, 0.02])
    weight = 1 + 1 / 2 + 1 / 3 + 1 / 4
    expected = [weight * 4 * 0.001 / 2, 1.0, weight * 4 * 0.0002, weight * 4 * 0.02 / 3]
    np.testing.assert_allclose(false_discovery_rates(p), expected)
    assert false_discovery_rates([]).size == 0
    assert level(np.array([0.7, 0.72, 0.68]), 0.05).p < 1e-9
    assert level(np.array([0.05, -0.02, 0.01]), 0.05).p > 0.3


def test_a_wrong_part_shows_in_the_loaded_logs_alone():
    """Every second log is loaded, and its payload is 0.4 kg too heavy from day 20 on."""
    rng = np.random.default_rng(8)
    loaded = np.arange(40) % 2 == 1
    std = np.full(40, 0.05)
    y = 0.05 * rng.normal(size=40) + 0.4 * (loaded & (DAYS[20] <= DAYS))
    load = 2.0 * loaded[:, None]
    found = likeliest_payload_change(DAYS, y, std, load, loaded)
    assert found.logs == "loaded"
    assert found.at == 21
    assert found.size == pytest.approx(0.4, abs=3 * found.std)
    assert likeliest_change(DAYS, y, std, load).size < 0.3  # empty and loaded logs mixed
    y = y + 0.4 * (~loaded & (DAYS[20] <= DAYS))  # another tool: all logs
    assert likeliest_payload_change(DAYS, y, std, load, loaded).logs == ""


def test_changes_are_looked_for_beside_the_configured_load_and_not_where_nothing_is_known(rng):
    """Friction that follows the load in every log, and a gain without an interval."""
    load = 4.0 * (np.arange(40) >= 20)
    rows = [
        LogRow("arm0", "k", "a.npz", "r", time=datetime.fromtimestamp(day, UTC), load=kg)
        for day, kg in zip(DAYS, load, strict=True)
    ]
    noise = 0.1 * rng.normal(size=(3, 40))
    value = noise + np.array([0.5 * load, 0.5 * (np.arange(40) >= 25), np.zeros(40)])
    std = np.array([np.full(40, 0.1), np.full(40, 0.1), np.full(40, np.inf)])
    names = [("Fc", 1), ("Fv", 1), ("gain", 1)]
    follows, steps, unknown = _likeliest_changes(rows, names, value, std)
    assert follows.p > 0.01
    assert steps.p < 1e-6
    assert unknown is None


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """Three arms on cold and warm days: rising friction, another tool, and a healthy one."""
    folder = tmp_path_factory.mktemp("trend")
    worse = lambda k: {"friction": FRICTION * (1, 1 + 0.04 * max(k - 8, 0), 1)}  # noqa: E731
    heavier = lambda k: {"configured": 0.0, "load": 0.6 * (k >= 9)}  # noqa: E731
    _, rows = tiny_fleet(folder, arms=3, logs=16, arm0=worse, arm1=heavier)
    for k, row in enumerate(rows):
        row["temperature"] = 20 + k % 5
    fleet = Fleet.build(write_catalogue(folder, rows), folder / "store", workers=1)
    models = fleet.identify()
    return folder, fleet, models


def test_a_fleet_says_what_has_changed(changed):
    _, fleet, models = changed
    assert "payload or gains of arm1 have changed" in models["arm1"].verdict.sentence
    trends = fleet.trend(rate=0.05)
    flagged = [change for change in trends.changes if change.flagged]
    found = {(change.robot, change.kind, change.joint) for change in flagged}
    assert {("arm0", "Fc", 2), ("arm1", "payload", 0)} <= found
    assert {robot for robot, _, _ in found} == {"arm0", "arm1"}
    tool = next(change for change in flagged if change.kind == "payload")
    assert tool.size == pytest.approx(0.6, abs=4 * tool.std)
    assert f"{tool.since:%Y-%m-%d}" == "2026-03-10"
    assert "check whether the tool was changed" in tool.words
    series = trends.series
    assert series.num_rows == 3 * 16 * (
        3 * 5 + 1
    )  # Fc, Fv, B, gain, residual of three joints; payload
    assert set(series["kind"].to_pylist()) == {"Fc", "Fv", "B", "gain", "residual", "payload"}


def test_a_wrong_part_from_a_day_on_is_stated_with_its_mass_and_day(tmp_path):
    """The mean over the loaded logs of both sides of the step would be 0.2 kg."""
    wrong = lambda k: {  # noqa: E731
        "configured": 1.5 * (k % 2),
        "load": (1.5 + 0.4 * (k >= 10)) * (k % 2),
    }
    catalogue, _ = tiny_fleet(tmp_path, arms=1, logs=20, arm0=wrong)
    fleet = Fleet.build(catalogue, tmp_path / "store", workers=1)
    fleet.identify()
    flagged = [change for change in fleet.trend(rate=0.05).changes if change.flagged]
    (level,) = (change for change in flagged if change.test == "level")
    assert level.size == pytest.approx(0.4, abs=4 * level.std)
    assert level.std < 0.05
    assert f"{level.since:%Y-%m-%d}" in ("2026-03-11", "2026-03-12")
    assert level.words.endswith(f"kg more than configured since {level.since:%Y-%m-%d}")


def test_rates_and_stores_that_are_refused(changed, tmp_path):
    folder, fleet, _ = changed
    with pytest.raises(InvalidSamples, match="lies between 0 and 1, got 2"):
        fleet.trend(rate=2)
    rows = [
        row
        for row in csv.DictReader((folder / "catalogue.csv").read_text().splitlines())
        if row["robot"] == "arm2"
    ]
    bare = Fleet.build(write_catalogue(folder, rows[:3], "few.csv"), tmp_path / "store", workers=1)
    with pytest.raises(InvalidSamples, match="has a model yet: identify the fleet first"):
        bare.trend()
    with pytest.raises(InvalidSamples, match="has no empty logs in this period"):
        bare.identify(since=datetime(2030, 1, 1, tzinfo=UTC))


@pytest.mark.thorough
def test_the_command_line_says_it_too(changed):
    folder, _, _ = changed
    done = steelyard("fleet", "trend", "store", "--workers", "1", "-o", "changes.csv", cwd=folder)
    assert done.returncode == 1, done.stderr
    assert "arm1: payload steps by +0." in done.stdout
    assert (folder / "changes.csv").read_text().count(
        "\n"
    ) == 3 * 16 + 2 + 1  # and the level of two
    done = steelyard("fleet", "trend", "store", "--workers", "1", "--json", cwd=folder)
    flagged = json.loads(done.stdout)["flagged"]
    (tool,) = (change for change in flagged if change["kind"] == "payload")
    assert (done.returncode, tool["robot"], tool["since"][:10]) == (1, "arm1", "2026-03-10")
    done = steelyard("fleet", "weigh", "store", "--workers", "1", cwd=folder)
    assert "unlike their load, or in doubt" in done.stdout
    done = steelyard("fleet", "weigh", "store", "--workers", "1", "--json", cwd=folder)
    payloads = json.loads(done.stdout)["payloads"]
    assert len(payloads) == 48
    assert payloads[0]["time"] == "2026-03-01T06:00:00+00:00"
    done = steelyard(
        "fleet", "identify", "store", "--workers", "1", "--until", "2026-03-20", cwd=folder
    )
    assert done.returncode == 0
    assert "3 of 3 arms have a model" in done.stdout
    done = steelyard("fleet", "identify", "store", "--since", "soon", cwd=folder)
    assert "a day is written as 2026-03-01; got 'soon'" in done.stderr
    done = steelyard("fleet", "build", "catalogue.csv", cwd=folder)
    assert "Missing option '--output'" in done.stderr
    assert "(see steelyard fleet build --help)" in done.stderr
