"""Picks of many shifts: changes of a part in a gripper are found, and only those."""

import json
from dataclasses import replace

import numpy as np
import pytest

from conftest import steelyard
from steelyard.errors import InvalidSamples
from steelyard.fleet import pick_trends
from steelyard.payload import Part
from steelyard.picking import Decision, Measured, Pick, Shift

LID = Part("lid", 0.5, 0.02)
PICKS = 40


def made_shift(rng, *, mass=0.5, missing=0, tool="left"):
    """A shift of 40 picks that scatter by 10 g."""
    picks = []
    for number in range(1, PICKS + 1):
        if number <= missing:
            value = 0.0
            decision = Decision.MISSING
        else:
            value = mass + 0.01 * rng.normal()
            decision = Decision.GOOD
        picks.append(
            Pick(
                number,
                5.0 * number,
                5.0 * number + 2,
                decision,
                "lid",
                "lid",
                Measured(value, 0.01),
            )
        )
    nothing = np.zeros(0)
    return Shift(
        tuple(picks),
        (LID,),
        1.0,
        nothing,
        np.zeros((0, 6)),
        (0.002,) * PICKS,
        ("a",) * 6,
        tool=tool,
    )


def shifts(changed, count=16):
    """Two grippers; from shift 9 on the left one has what is given."""
    rng = np.random.default_rng(5)
    out = {}
    for k in range(count):
        out[f"left {k + 1}"] = made_shift(rng, **(changed if k >= 8 else {}))
        out[f"right {k + 1}"] = made_shift(rng, tool="right")
    return out


def test_a_lighter_part_in_one_gripper_is_found_at_its_shift():
    found = pick_trends(shifts({"mass": 0.49}))
    assert [(x.tool, x.part, x.quantity) for x in found.flagged] == [("left", "lid", "mass")]
    change = found.flagged[0]
    assert change.shift == "left 9"
    assert abs(change.size + 0.01) < 1.5 * change.half_width < 0.01
    assert "mean mass of 'lid' in left changes at left 9 on" in change.words


def test_more_missing_parts_are_found():
    found = pick_trends(shifts({"missing": 4}))
    assert [(x.tool, x.quantity) for x in found.flagged] == [("left", "alarms")]
    rows = [row for row in found.rows if row.tool == "left"]
    assert [row.missing for row in rows] == [0] * 8 + [4] * 8
    assert {row.picks for row in rows} == {PICKS}
    assert "+10.0 +-" in found.flagged[0].words


def test_nothing_is_flagged_where_nothing_has_changed():
    found = pick_trends(shifts({}))
    assert len(found.changes) == 6
    assert found.flagged == ()


def test_a_few_shifts_are_listed_but_not_tested():
    found = pick_trends(shifts({"mass": 0.4}, count=3))
    assert len(found.rows) == 6
    assert found.changes == ()


def test_two_picks_show_a_mass_without_its_scatter(rng):
    whole = made_shift(rng)
    few = replace(whole, picks=whole.picks[:2], common_std=whole.common_std[:2])
    found = pick_trends({str(k): few for k in range(16)})
    assert found.rows[0].mass == pytest.approx(0.5, abs=0.05)
    assert found.rows[0].scatter is None
    assert {change.quantity for change in found.changes} <= {"alarms"}


def test_wrong_arguments_are_refused():
    with pytest.raises(InvalidSamples, match="there is nothing to compare"):
        pick_trends({})
    with pytest.raises(InvalidSamples, match="between 0 and 1, got 2"):
        pick_trends(shifts({}, count=1), rate=2.0)


def test_the_command_writes_a_table_and_a_page_and_ends_with_1(tmp_path):
    files = []
    for name, shift in shifts({"mass": 0.49}, count=12).items():
        path = tmp_path / f"{name}.json"
        shift.save(path)
        files.append(path)
    done = steelyard(
        *("fleet", "picks", *files, "-o", tmp_path / "rows.csv", "--report", tmp_path / "page.html")
    )
    assert done.returncode == 1
    assert "lid in left: 480 in 12 shifts, 0 alarms" in done.stdout
    assert "Mean mass of 'lid' in left changes at left 9 on" in done.stdout
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 25
    page = (tmp_path / "page.html").read_text()
    assert "1 change in 24 shifts" in page
    facts = json.loads(steelyard("fleet", "picks", *files[:4], "--json").stdout)
    assert [row["tool"] for row in facts["rows"]] == ["left", "right", "left", "right"]
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    refused = steelyard("fleet", "picks", broken)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda pick: pick["mass"].update(value=1e9), r"'picks\[0\].mass.value' must be .* 1e\+06"),
        (
            lambda pick: pick["mass"].update(value=float("nan")),
            "'picks.0..mass.value' must be a",
        ),
        (lambda pick: pick.update(open_s=1.0), r"pick 1: the gripper opens \(open_s = 1\) before"),
        (lambda pick: pick.update(part="nut"), "pick 1 is compared with 'nut', .* parts: lid"),
        (lambda pick: pick.update(fits="nut"), "pick 1 is compared with 'nut', .* parts: lid"),
    ],
)
def test_picks_that_contradict_themselves_are_refused(rng, change, words):
    content = made_shift(rng).to_dict()
    change(content["picks"][0])
    with pytest.raises(InvalidSamples, match=words):
        Shift.from_dict(content)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("common_std", [0.1], r"'common_std' must have shape \(N,\) with N = 40"),
        ("common_std", [-1.0] * PICKS, r"'common_std\[0\]' must be .* at least 0"),
        ("false_alarms_per_1000", 0, "'false_alarms_per_1000' must be .* above 0, up to 1000"),
        ("tool", "left\nright", "'tool' must be a text without control characters"),
    ],
)
def test_shifts_that_contradict_themselves_are_refused(rng, field, value, words):
    content = {**made_shift(rng).to_dict(), field: value}
    with pytest.raises(InvalidSamples, match=words):
        Shift.from_dict(content)


def test_a_shift_without_picks_cannot_be_compared(rng):
    whole = made_shift(rng)
    idle = replace(whole, picks=(), common_std=())
    with pytest.raises(InvalidSamples, match=r"idle has no picks: .* leave it out"):
        pick_trends({"whole": whole, "idle": idle})
