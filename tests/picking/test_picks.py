"""Picks of logs whose truth is known: faults are found, masses and intervals hold."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import steelyard as sy
from picking_shifts import CARRY, COVER, FAULTS, HOUSING, arm, faulty, model, plan, shift
from steelyard.errors import InvalidRecording, InvalidRobot, InvalidSamples, UnknownName
from steelyard.payload import Part
from steelyard.picking import Decision, Measured, Pick, PickingOptions, Shift
from steelyard.picking._carry import CarryEvent, Mass
from steelyard.picking._segments import _without_chatter
from steelyard.picking._shift import PickJudge, judged_picks
from steelyard.picking._weigher import Weighed
from steelyard.report._picks import _part_plots
from steelyard.robot import DriveModel
from steelyard.simulation import PlannedFault, PlannedPause, simulate_shift
from steelyard.workflow._picks import Picking

GOOD = {"good": "good", "heavier": "foreign part"}


def decisions(found):
    return [str(pick.decision) for pick in found.picks]


def of_truth(truth):
    return [GOOD.get(pick.fault, pick.fault) for pick in truth]


@cache
def found_faulty():
    return sy.picks(faulty()[0], model(), parts=[HOUSING])


def test_faults_are_found_and_good_picks_are_good():
    _, truth = faulty()
    found = found_faulty()
    assert decisions(found) == of_truth(truth)
    assert [pick.number for pick in found.alarms] == [fault.pick for fault in FAULTS]
    assert found.has_alarms
    assert found.notes == ()


def test_masses_and_their_intervals_hold():
    _, truth = faulty()
    found = found_faulty()
    pairs = [
        (pick.mass, true.mass)
        for pick, true in zip(found.picks, truth, strict=True)
        if true.fault != "lost"
    ]
    deviations = np.array([(mass.value - true) / mass.std for mass, true in pairs])
    assert np.abs(deviations).max() < 3.5
    assert 0.3 < np.sqrt(np.mean(deviations**2)) < 1.5
    assert max(mass.half_width for mass, _ in pairs[2:]) < 0.1


def test_the_early_answer_sees_a_missing_part_of_two_kilograms():
    missing = found_faulty().picks[3]
    assert missing.early_decision is Decision.MISSING
    assert missing.early.half_width > missing.mass.half_width


def test_another_part_of_the_table_is_named():
    made = plan(parts=(HOUSING, COVER), faults=(PlannedFault(7, "other", part="cover"),))
    log, _ = shift(arm(), made, 21)
    options = PickingOptions(expect=("housing", "cover"))
    found = sy.picks(log, model(), parts=[HOUSING, COVER], options=options)
    wrong = found.picks[6]
    assert wrong.decision is Decision.WRONG_PART
    assert wrong.fits == "cover"
    assert [pick.number for pick in found.alarms] == [7]
    any_part = sy.picks(log, model(), parts=[HOUSING, COVER])
    assert not any_part.alarms
    assert any("expected ones" in note for note in any_part.notes)


def test_a_part_that_slips_is_noticed_although_its_mass_is_right():
    made = plan(parts=(replace(HOUSING, mass=6.0),), faults=(PlannedFault(9, "slipped"),))
    log, _ = shift(arm(), made, 31)
    found = sy.picks(log, model(), parts=[replace(HOUSING, mass=6.0)])
    assert [(pick.number, pick.decision) for pick in found.alarms] == [(9, Decision.SLIPPED)]


def test_known_picks_take_an_error_of_all_masses_away():
    log, truth = shift(arm(), plan(), 41)
    heavier = replace(log, tau=1.05 * log.tau)
    part = replace(HOUSING, tolerance=0.05)
    options = PickingOptions(known={2: truth[1].mass, 3: truth[2].mass, 5: truth[4].mass})
    found = sy.picks(heavier, model(), parts=[part], options=options)
    last = [(pick, true) for pick, true in zip(found.picks, truth, strict=True)][6:]
    relative = np.mean([pick.relative.value - true.mass for pick, true in last])
    absolute = np.mean([pick.mass.value - true.mass for pick, true in last])
    assert abs(relative) < 0.5 * abs(absolute)
    assert all(pick.relative.std < 2 * pick.mass.std for pick, _ in last)


def test_a_known_pick_counts_with_the_centre_of_its_own_part():
    """Its place in the table of parts changes nothing."""
    far = Part("far", 2.0, 0.02, (0.25, 0.0, 0.1), 0.01)
    log, truth = shift(arm(), plan(parts=(far,), cycles=6), 21)
    options = PickingOptions(expect=("far",), known={2: truth[1].mass})
    alone = sy.picks(log, model(), parts=[far], options=options)
    second = sy.picks(log, model(), parts=[HOUSING, far], options=options)
    for one, other, true in zip(second.picks, alone.picks, truth, strict=True):
        assert one.relative.value == pytest.approx(other.relative.value, abs=0.01)
        assert abs(one.relative.value - true.mass) < one.relative.half_width


def test_the_common_deviation_of_a_pick_is_that_of_its_mass():
    """Of two parts, the second one is expected and is weighed with its own centre."""
    masses = (Mass(1.1, 0.01, 0.004), Mass(1.0, 0.02, 0.003), Mass(1.2, 0.01, 0.005))
    nothing = CarryEvent(-np.inf, 0.0, masses[0])
    stretch = SimpleNamespace(start_s=1.0, end_s=3.0)
    carry = Weighed(stretch, masses, masses, nothing, nothing, blank=False)
    parts = (HOUSING, COVER, replace(HOUSING, name="last"))
    judge = PickJudge(parts, PickingOptions(expect=("cover",), known={1: 0.99}))
    ((pick, common),) = judged_picks(judge, [(1, carry)])
    assert pick.mass == Measured(1.0, masses[1].std)
    assert common == 0.003
    assert pick.relative.value == pytest.approx(0.99)  # it is its own reference


def test_two_parts_of_one_name_are_refused_before_anything_is_weighed():
    log, _ = shift(arm(), plan(), 51)
    heavier = replace(HOUSING, mass=2.5)
    with pytest.raises(InvalidSamples, match="the part 'housing' is there twice"):
        sy.picks(log, model(), parts=[HOUSING, COVER, heavier])
    good = sy.picks(log, model(), parts=[HOUSING])
    with pytest.raises(InvalidSamples, match="the part 'housing' is there twice"):
        replace(good, parts=(HOUSING, heavier))


def test_a_lot_that_is_wrong_as_a_whole_is_an_alarm():
    log, _ = shift(arm(), plan(parts=(replace(HOUSING, mass=2.022),)), 51)
    found = sy.picks(log, model(), parts=[replace(HOUSING, tolerance=0.001)])
    assert len(found.alarms) < 6
    assert found.batches[0].is_alarm
    assert found.has_alarms


def test_without_a_table_picks_are_compared_with_earlier_ones():
    log, _ = faulty()
    found = sy.picks(log, model())
    assert decisions(found)[:3] == ["unclear"] * 3
    assert found.picks[3].decision is Decision.MISSING
    assert found.picks[5].decision is Decision.DOUBLE
    assert any("no table of parts" in note for note in found.notes)


def test_without_a_gripper_carries_are_found_by_rests():
    log, truth = shift(arm(), plan(cycles=8), 61)
    found = sy.picks(replace(log, gripper=None), model(), parts=[HOUSING])
    assert len(found) == 8
    assert decisions(found) == ["good"] * 8
    for pick, true in zip(found.picks, truth, strict=True):
        assert abs(pick.close_s - true.close_s) < 0.15
    assert any("missing part" in note for note in found.notes)


def test_polarity_is_found_and_may_be_given():
    log, truth = faulty()
    inverted = replace(log, gripper=1.0 - log.gripper)
    assert decisions(sy.picks(inverted, model(), parts=[HOUSING])) == of_truth(truth)
    given = PickingOptions(closed="low")
    found = sy.picks(inverted, model(), parts=[HOUSING], options=given)
    assert decisions(found) == of_truth(truth)
    wrong = PickingOptions(closed="high")
    with pytest.raises(
        InvalidSamples, match="stretches with an open gripper the arm seems to carry a part"
    ):
        sy.picks(inverted, model(), parts=[HOUSING], options=wrong)


@pytest.mark.parametrize("period_s", [2.9, 3.3])
def test_a_signal_that_does_not_belong_to_the_gripper_is_refused(period_s):
    log, _ = faulty()
    square = (np.mod(log.t, period_s) < 0.5 * period_s).astype(float)
    with pytest.raises(InvalidSamples, match=r"not the column of the gripper|not clear which"):
        sy.picks(replace(log, gripper=square[:, None]), model(), parts=[HOUSING])


def test_holes_in_the_signal_of_the_gripper_are_stated():
    log, truth = faulty()
    start_s = truth[4].close_s - 0.5  # from before the fifth pick to after the sixth
    end_s = truth[5].open_s + 0.5
    hidden = (log.t > start_s) & (log.t < end_s)
    gripper = np.where(hidden[:, None], np.nan, log.gripper)
    found = sy.picks(replace(log, gripper=gripper), model(), parts=[HOUSING])
    expected = of_truth(truth)
    assert decisions(found) == expected[:4] + expected[6:]
    (note,) = found.notes
    assert "holds no numbers for" in note
    assert f"from {start_s:.1f} s on" in note


def test_unclear_polarity_is_refused():
    faults = tuple(PlannedFault(k, "missing") for k in range(1, 5))
    log, _ = shift(arm(), plan(cycles=4, faults=faults), 71)
    with pytest.raises(InvalidSamples, match="not clear which value of the gripper means closed"):
        sy.picks(log, model(), parts=[HOUSING])
    found = sy.picks(log, model(), parts=[HOUSING], options=PickingOptions(closed="high"))
    assert decisions(found) == ["missing"] * 4


def test_a_position_with_chatter_is_read_like_a_digital_output():
    log, truth = faulty()
    position = (
        0.085 - 0.06 * log.gripper + 1e-4 * np.random.default_rng(1).normal(size=log.gripper.shape)
    )
    row = int(np.searchsorted(log.t, truth[2].close_s + 1.0))
    position[row : row + 3] = 0.085
    found = sy.picks(replace(log, gripper=position), model(), parts=[HOUSING])
    assert decisions(found) == of_truth(truth)
    assert any("1 pulses" in note for note in found.notes)


def test_a_bit_of_a_field_of_outputs():
    log, truth = faulty()
    field = 5.0 + 8.0 * log.gripper
    options = PickingOptions(bit=3)
    found = sy.picks(replace(log, gripper=field), model(), parts=[HOUSING], options=options)
    assert decisions(found) == of_truth(truth)


def test_a_constant_gripper_is_refused():
    log, _ = faulty()
    with pytest.raises(InvalidRecording, match="has no edges"):
        sy.picks(replace(log, gripper=0.0 * log.gripper), model())


def test_a_column_without_two_levels_is_refused():
    log, _ = faulty()
    ramp = np.linspace(0.0, 1.0, len(log))[:, None]
    with pytest.raises(InvalidRecording, match="no two levels"):
        sy.picks(replace(log, gripper=ramp), model())


def test_short_carries_are_not_weighed():
    log, _ = faulty()
    options = PickingOptions(min_carry_s=10.0, closed="high")
    found = sy.picks(log, model(), parts=[HOUSING], options=options)
    assert {pick.decision for pick in found.picks} == {Decision.NOT_WEIGHED}
    assert any("no unloaded stretch" in note for note in found.notes)
    assert not found.has_alarms


def test_friction_begins_anew_after_a_long_pause():
    made = plan(cycles=4, pauses=(PlannedPause(after=3, seconds=700.0),))
    log, _ = shift(arm(), made, 81)
    found = sy.picks(log, model(), parts=[HOUSING])
    assert any("after the pause of 12 min" in note for note in found.notes)
    assert found.picks[3].mass.std > found.picks[2].mass.std
    assert decisions(found) == ["good"] * 4


def test_parts_that_look_alike_are_noted():
    log, _ = faulty()
    other = replace(HOUSING, name="housing B", mass=2.03)
    found = sy.picks(log, model(), parts=[HOUSING, other])
    assert any("cannot be distinguished" in note for note in found.notes)


def test_wrong_options_are_refused():
    log, _ = faulty()
    with pytest.raises(UnknownName, match="`expect` names parts of a table: give the table as `p"):
        sy.picks(faulty()[0], model(), options=PickingOptions(expect=("lid",)))
    with pytest.raises(UnknownName, match="there is no part 'lid'"):
        sy.picks(log, model(), parts=[HOUSING], options=PickingOptions(expect=("lid",)))
    with pytest.raises(InvalidSamples, match="between 0 and 1000"):
        PickingOptions(false_alarms_per_1000=0)
    with pytest.raises(UnknownName, match="auto, high or low"):
        PickingOptions(closed="shut")


def test_a_shift_is_saved_and_is_a_table(tmp_path):
    found = found_faulty()
    found.save(tmp_path / "shift.json")
    again = Shift.load(tmp_path / "shift.json")
    assert again.to_dict() == found.to_dict()
    table = found.to_dataframe("pyarrow")
    assert table.num_rows == 12
    assert table["decision"].to_pylist() == decisions(found)
    assert np.allclose(table["mass"], [pick.mass.value for pick in found.picks])


def test_friction_of_the_shift_is_followed():
    robot = arm()
    stiffer = robot.with_drive(
        replace(robot.drive, coulomb=1.2 * robot.drive.coulomb, viscous=1.2 * robot.drive.viscous)
    )
    log, _ = shift(stiffer, plan(cycles=8), 91)
    found = sy.picks(log, model(), parts=[HOUSING])
    assert np.allclose(np.median(found.friction[-1]), 1.2, atol=0.05)
    assert decisions(found) == ["good"] * 8


def test_other_friction_than_that_of_the_model_is_no_noise():
    """A cold arm: the first unloaded stretch shows its friction, and intervals stay as narrow."""
    robot = arm()
    cold = robot.with_drive(
        replace(robot.drive, coulomb=1.6 * robot.drive.coulomb, viscous=1.6 * robot.drive.viscous)
    )
    stds = []
    for each in (robot, cold):
        log, _ = shift(each, plan(cycles=4), 93)
        picking = Picking(model(), log, (HOUSING,))
        assert picking._found[-1][0].noise < 1.2
        stds.append(picking.shift.picks[-1].mass.std)
    assert stds[1] < 1.2 * stds[0]


def test_a_dry_cycle_takes_the_misfit_of_the_path_away():
    def with_ripple(log):
        ripple = np.array([0.0, 6.0, 4.0, 0.0, 0.0, 0.0]) * np.sin(4.0 * log.q[:, [0]])
        return replace(log, tau=log.tau + ripple)

    faults = tuple(PlannedFault(k, "missing") for k in (1, 2))
    dry, _ = shift(arm(), plan(cycles=2, faults=faults), 101)
    log, truth = shift(arm(), plan(cycles=5), 102)
    errors = []
    for given in ((), with_ripple(dry)):
        found = sy.picks(
            with_ripple(log),
            model(),
            parts=[replace(HOUSING, tolerance=0.5)],
            dry=given,
            options=PickingOptions(closed="high"),
        )
        pairs = list(zip(found.picks, truth, strict=True))[1:]
        errors.append(np.sqrt(np.mean([(x.mass.value - y.mass) ** 2 for x, y in pairs])))
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.06


def dry_log(**changes):
    """Two cycles of the path without parts."""
    faults = tuple(PlannedFault(k, "missing") for k in (1, 2))
    return shift(arm(), plan(cycles=2, faults=faults, **changes), 103)[0]


def test_a_dry_cycle_and_the_kinematics_are_enough_on_a_fixed_path():
    """The arm's inertia and friction are not known beforehand: the dry cycle shows them."""
    log, truth = faulty()
    unknown = arm().with_drive(DriveModel(0.0 * arm().drive.rotor_inertia))
    options = PickingOptions(closed="high")
    found = sy.picks(log, unknown, parts=[HOUSING], dry=dry_log(), options=options)
    assert decisions(found) == of_truth(truth)
    errors = [
        (pick.mass.value - true.mass) / pick.mass.std
        for pick, true in zip(found.picks, truth, strict=True)
        if true.fault != "lost"
    ]
    assert np.abs(errors).max() < 3.5
    assert any("from the dry cycle alone" in note for note in found.notes)


def test_without_a_model_carries_on_another_path_are_not_weighed():
    log, _ = faulty()
    other = [[q + 0.4 for q in posture] for posture in CARRY]
    found = sy.picks(
        log,
        arm(),
        parts=[HOUSING],
        dry=dry_log(carry=other),
        options=PickingOptions(closed="high"),
    )
    assert set(decisions(found)) == {"not weighed"}
    assert "leaves the path of the dry cycle" in found.picks[0].reasons[0]


def test_a_robot_without_a_dry_cycle_is_refused():
    with pytest.raises(InvalidRobot, match="identify the empty arm first"):
        sy.picks(faulty()[0], "ur10e", parts=[HOUSING])


@pytest.mark.thorough
def test_a_shift_in_mujoco_with_contact_while_gripping():
    made = plan(cycles=4, carry_s=1.6, back_s=1.4, contact_force=15.0, carry=CARRY)
    simulated = simulate_shift(arm(), made, seed=3)
    found = sy.picks(simulated.recording, model(), parts=[HOUSING])
    assert decisions(found) == ["good"] * 4
    errors = [
        pick.mass.value - true.mass for pick, true in zip(found.picks, simulated.picks, strict=True)
    ]
    assert np.abs(errors).max() < 0.1


def test_a_carry_that_a_gap_of_the_log_cuts_is_one_pick():
    """The numbers of later picks, by which parts are expected and known, stay right."""
    log, truth = shift(arm(), plan(cycles=4, faults=(PlannedFault(3, "missing"),)), 131)
    middle_s = 0.5 * (truth[1].close_s + truth[1].open_s)
    cut = log.rows((log.t < middle_s) | (log.t > middle_s + 0.3))
    found = sy.picks(cut, model(), parts=[HOUSING])
    assert decisions(found) == ["good", "good", "missing", "good"]
    assert found.picks[1].close_s == pytest.approx(truth[1].close_s, abs=0.02)
    assert found.picks[1].open_s == pytest.approx(truth[1].open_s, abs=0.02)
    assert sum("hole of its clock" in note for note in found.notes) == 1


def test_a_known_mass_of_another_pick_is_not_used():
    log, truth = faulty()
    right = {2: truth[1].mass}
    wrong = {2: truth[1].mass, 4: 2.0}  # pick 4 is missing
    expected = sy.picks(log, model(), parts=[HOUSING], options=PickingOptions(known=right))
    found = sy.picks(log, model(), parts=[HOUSING], options=PickingOptions(known=wrong))
    assert [pick.relative for pick in found.picks] == [pick.relative for pick in expected.picks]
    assert any(note.startswith("pick 4 weighs") and "2 kg is given" in note for note in found.notes)


def test_the_distribution_of_a_part_holds_its_good_picks():
    log, _ = shift(arm(), plan(parts=(HOUSING, COVER), faults=(PlannedFault(5, "heavier"),)), 21)
    options = PickingOptions(expect=("housing", "cover"))
    found = sy.picks(log, model(), parts=[HOUSING, COVER], options=options)
    for plot, part in zip(_part_plots(found), (HOUSING, COVER), strict=True):
        good = [
            pick.number
            for pick in found.picks
            if pick.part == part.name and pick.decision is Decision.GOOD
        ]
        distribution, cusum = plot.panels
        assert distribution.curves[0].y.sum() == 2 * len(good)  # both edges of each bin
        assert distribution.curves[0].x == pytest.approx(part.mass, abs=0.1)
        np.testing.assert_array_equal(cusum.curves[0].x, good)
    assert found.picks[4].decision is not Decision.GOOD


def test_the_mean_of_a_lot_counts_each_pick_by_its_accuracy():
    masses = [(1.90, 0.1), (2.01, 0.01), (1.99, 0.01)]
    picks = tuple(
        Pick(k, 5.0 * k, 5.0 * k + 2, Decision.GOOD, "housing", mass=Measured(*mass))
        for k, mass in enumerate(masses, start=1)
    )
    (batch,) = replace(found_faulty(), picks=picks, common_std=(0.0, 0.0, 0.0)).batches
    weights = np.array([1.0, 100.0, 100.0]) / 201
    assert batch.mass.value == pytest.approx(weights @ [1.90, 2.01, 1.99])
    assert batch.mass.std == pytest.approx(np.sqrt(1 / 20100))
    assert batch.scatter == pytest.approx(0.0173, abs=5e-4)


def test_chatter_of_a_gripper_joins_what_is_on_both_sides_of_it():
    spans = [
        *((False, 0.0, 5.0), (True, 5.0, 8.0), (False, 8.0, 8.05), (True, 8.05, 10.0)),
        *((False, 10.0, 15.0), (True, 15.0, 15.02), (False, 15.02, 20.0)),
    ]
    joined = [(False, 0.0, 5.0), (True, 5.0, 10.0), (False, 10.0, 20.0)]
    assert _without_chatter(spans, 0.1) == joined
    assert _without_chatter(spans, 0.01) == spans
