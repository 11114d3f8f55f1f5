"""The tables of trust.md: what counts as good and wrong, and that the page shows the kept cells."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gates_cells import (
    Cell,
    Share,
    Truth,
    good_blocked,
    keep_cells,
    merged,
    read_cells,
    wrong_and_usable,
    wrong_that_are_usable,
)
from gates_report import END, START, markdown, write_between
from scipy.stats import binom

from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.verdict import Aspect, Doubt, DoubtKind, Verdict

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "benchmarks" / "gates.json"
KEY = {
    "place": "arm.law.mujoco.1.1",
    "arm": "arm",
    "world": "law",
    "seed": 1,
    "engine": "mujoco",
    "part": "torque",
    "way": "batch",
    "corruption": "clean",
}
SOUND = Cell(
    **KEY, truth=2.0, mass=2.05, half=0.1, ok=True, centre=[0.2, -0.9, 1.4], centre_half=0.01
)
CORRUPTED = replace(SOUND, corruption="hand", mass=2.3)


def test_the_page_shows_the_kept_cells():
    if not KEPT.exists():
        pytest.skip("no cells are kept yet")
    page = (ROOT / "docs" / "explanation" / "trust.md").read_text()
    shown = page.partition(START)[2].partition(END)[0].strip()
    assert shown == "\n".join(markdown(read_cells(KEPT))), "run benchmarks/bench_gates.py --report"


def test_an_answer_is_good_if_mass_and_centre_are_right():
    assert SOUND.is_good
    assert not SOUND.is_bad
    assert not replace(SOUND, mass=2.11).is_good
    assert not replace(SOUND, mass=2.11).is_bad  # between one and two half-widths
    assert not replace(SOUND, centre=[0.0, 0.0, -2.1]).is_good
    assert not replace(SOUND, corruption="hand").is_good


def test_an_answer_is_wrong_beyond_twice_its_interval_in_mass_or_centre():
    assert replace(SOUND, mass=1.79).is_bad
    assert replace(SOUND, centre=[0.0, 0.0, -2.1]).is_bad
    assert not replace(SOUND, centre=[]).is_bad  # the true centre is unknown


def test_a_refusal_blocks_a_sound_run_and_catches_a_corrupted_one():
    refused = replace(SOUND, mass=math.nan, half=math.nan, ok=False, centre=[], refused="why")
    assert refused.is_good
    assert not refused.is_bad
    assert not refused.trusted
    caught = replace(refused, corruption="hand")
    assert caught.is_bad
    assert not caught.is_wrong_and_usable


def test_error_rates_count_good_answers_and_corrupted_runs():
    cells = [
        SOUND,
        replace(SOUND, ok=False),
        replace(SOUND, mass=2.5),  # neither good nor corrupted
        CORRUPTED,
        replace(CORRUPTED, ok=False),
        replace(CORRUPTED, mass=2.02),
    ]
    assert good_blocked(cells) == Share(1, 2)
    assert wrong_and_usable(cells) == Share(1, 3)
    assert wrong_that_are_usable(cells) == Share(1, 2)


@pytest.mark.parametrize(("count", "total"), [(0, 20), (3, 40), (17, 17)])
def test_the_interval_of_a_share_is_where_the_count_is_not_rare(count, total):
    low, high = (x / 100 for x in Share(count, total).interval)
    assert low <= count / total <= high
    if count > 0:
        assert binom.sf(count - 1, total, low) == pytest.approx(0.025)
    if count < total:
        assert binom.cdf(count, total, high) == pytest.approx(0.025)
    assert Share(0, 0).interval == (0.0, 100.0)


def test_a_cell_compares_a_payload_with_the_truth():
    body = InertialParameters.from_com(2.0, [0.01, 0.02, 0.03], 0.01 * np.eye(3))
    doubt = Doubt(DoubtKind.NOISY_MOTION, "noise", blocks=False, concerns=(Aspect.CENTRE,))
    payload = Payload(body, body, 1e-6 * np.eye(10), np.zeros(6), Verdict(doubts=(doubt,)))
    cell = Cell.of(KEY, Truth(2.1, [0.01, 0.02, 0.04]), payload, 1.0)
    assert cell.ratio == pytest.approx(0.1 / (1.96 * 1e-3), rel=1e-3)
    assert cell.centre[:2] == pytest.approx([0, 0], abs=1e-9)
    assert cell.centre[2] == pytest.approx(-0.01 / (1.96 * payload.com_std[2]), rel=1e-3)
    assert cell.states == ["use", "use with care", "use"]
    assert cell.needs_care


def test_cells_of_several_runs_are_put_together(tmp_path):
    lines = tmp_path / "cells.jsonl"
    again = replace(SOUND, mass=2.06)
    lines.write_text("".join(json.dumps(vars(cell)) + "\n" for cell in (SOUND, again)))
    assert read_cells(lines) == [again]
    assert merged([SOUND, CORRUPTED], [again]) == [again, CORRUPTED]
    assert read_cells(tmp_path / "absent.jsonl") == []


def test_kept_cells_come_back(tmp_path):
    path = tmp_path / "gates.json"
    refused = replace(SOUND, way="tracking", refused="why", mass=math.nan, half=math.nan)
    keep_cells([SOUND, refused, CORRUPTED], path)
    back = read_cells(path)
    assert [cell.name for cell in back] == [cell.name for cell in (SOUND, refused, CORRUPTED)]
    assert back[0] == SOUND
    assert back[2] == CORRUPTED
    assert math.isnan(back[1].mass)
    assert markdown(back) == markdown([SOUND, refused, CORRUPTED])


def test_the_tables_name_their_seeds():
    cells = [replace(SOUND, seed=seed, place=f"arm.law.{seed}") for seed in (3, 5, 4)]
    wrist = replace(SOUND, part="wrist", seed=9)
    real = replace(SOUND, part="real", seed=-1, world="real")
    first = markdown([*cells, wrist, real])[0]
    assert first == "Seeds: 3 to 5 (joints in a batch), 9 (wrist sensor)."


def test_a_table_needs_its_place_in_a_document(tmp_path):
    page = tmp_path / "page.md"
    write_between(page, START, END, ["table"])
    assert page.read_text() == "table\n"
    with pytest.raises(ValueError, match="no place for the table"):
        write_between(page, START, END, ["other"])
    page.write_text(f"before\n{START}\nold\n{END}\nafter\n")
    write_between(page, START, END, ["new"])
    assert page.read_text() == f"before\n{START}\nnew\n{END}\nafter\n"
