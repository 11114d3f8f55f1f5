"""Quality of a recording: every defect is located; a good recording has no findings."""

import json
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest

from steelyard.errors import InvalidRecording
from steelyard.quality import (
    Finding,
    QualityReport,
    check,
    check_jumps,
    check_signals,
)
from steelyard.recording import Preparation, Recording
from steelyard.recording._notes import Note, NoteKind
from steelyard.robot import JointLimits
from steelyard.signals import prepare

NAMES = ("pan", "lift", "elbow")
INF = np.full(3, np.inf)
LIMITS = JointLimits(np.full(3, -3.0), np.full(3, 3.0), np.full(3, 3.0), INF, np.full(3, 200.0))


@pytest.fixture
def good(rng):
    """Ten seconds at 100 Hz: three joints swing, with noise everywhere."""
    t = np.arange(1000) / 100
    w = np.array([1.3, 2.1, 3.4])
    q = np.array([0.8, -0.5, 1.1]) + np.sin(w * t[:, None]) + 1e-5 * rng.standard_normal((1000, 3))
    v = w * np.cos(w * t[:, None]) + 1e-3 * rng.standard_normal((1000, 3))
    tau = 60 * np.cos(q) + rng.standard_normal((1000, 3))
    return Recording(t=t, q=q, v=v, tau=tau, current=tau / 11, joint_names=NAMES, source="a test")


def changed(recording, channel, change):
    """A copy in which `change` has altered a writable copy of one signal."""
    values = np.array(getattr(recording, channel))
    result = change(values)
    return replace(recording, **{channel: values if result is None else result})


def only(report: QualityReport, kind: str) -> Finding:
    """The one finding of a kind; nothing but the rate is found beside it."""
    kinds = [finding.kind for finding in report.findings]
    assert set(kinds) == {kind, "rate"}, report.findings
    assert kinds.count(kind) == 1
    return next(finding for finding in report.findings if finding.kind == kind)


@pytest.mark.parametrize("limits", [None, LIMITS])
def test_a_good_recording_is_left_in_peace(good, limits):
    report = check(good, limits=limits)
    assert report.ok
    assert report.worst == "info"
    assert report.counts == {"error": 0, "warning": 0, "info": 1}
    assert report.findings[0].sentence == "100 Hz (median step 10 ms), 1000 rows in 9.99 s"


def test_nothing_found_is_no_severity():
    report = QualityReport("", 1, 1, 0.0, 0.0, ())
    assert report.worst is None
    assert report.ok


def test_the_report_goes_through_json(good):
    bad = changed(replace(good, joint_names=("a", "b", "c")), "q", lambda q: np.rad2deg(q))
    report = check(bad)
    content = report.to_dict()
    assert json.loads(json.dumps(content)) == content
    assert content["ok"] is False
    assert content["worst"] == "error"
    assert content["counts"]["error"] == len(
        [f for f in content["findings"] if f["severity"] == "error"]
    )
    assert content["findings"][0]["place"]["joints"] == ["a", "b", "c"]
    severities = [finding["severity"] for finding in content["findings"]]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)


def test_a_report_says_what_it_found(good):
    report = check(replace(good, t=1000 * good.t))
    assert repr(report).startswith("<QualityReport: ")
    assert repr(report).endswith("; 1 error, 0 warnings, 1 info>")
    for finding in report.findings:
        assert f"- {finding.sentence}" in str(report).splitlines()


def test_another_number_of_joints(good):
    finding = only(check(good, limits=JointLimits.none(6)), "joint_count")
    assert (finding.severity, finding.place.joints) == ("error", NAMES)
    assert finding.sentence.startswith(
        "the recording has 3 joints, the arm has 6: another arm's log"
    )
    assert only(check(good, limits=JointLimits.none(7)), "joint_count").severity == "error"


def test_a_damaged_end(good):
    note = Note("damaged end: the last 9 bytes are left out", NoteKind.DAMAGED_END)
    finding = only(check(replace(good, notes=("something else", note))), "damaged_end")
    assert (finding.sentence, finding.severity) == (note, "warning")
    uncoded = replace(good, notes=(str(note)[:],))
    assert not [each for each in check(uncoded).findings if each.kind == "damaged_end"]


def test_a_note_keeps_its_code_in_a_copy():
    note = pickle.loads(pickle.dumps(Note("a sentence", NoteKind.DAMAGED_END)))
    assert (note, note.kind) == ("a sentence", NoteKind.DAMAGED_END)


def test_signals_that_are_not_numbers(good):
    def spoil(tau):
        tau[40:43, 1] = np.nan
        tau[50, 2] = np.inf

    finding = only(check(changed(good, "tau", spoil), limits=None), "nan")
    assert finding.severity == "warning"
    assert finding.sentence.startswith(
        "tau is not a number 4 times in 4 rows, first at 0.4 s in row 41 (lift, elbow)"
    )
    assert (finding.place.channel, finding.place.row, finding.place.t_s) == ("tau", 41, 0.4)


def test_infinite_and_nan_motion_raises_nothing(good):
    def spoil(q):
        q[100:102, 0] = np.inf
        q[200, 1] = np.nan
        q[300:302, 2] = -np.inf, np.inf

    bad = changed(changed(good, "q", spoil), "v", spoil)
    assert {finding.kind for finding in check(bad, limits=LIMITS).findings} <= {
        "nan",
        "rate",
        "position_limit",
    }
    assert {finding.kind for finding in check(bad).findings} == {"nan", "rate"}


def test_a_wrench_with_nan(good):
    wrench = np.random.default_rng(0).standard_normal((1000, 6))
    wrench[3, 4] = np.nan
    bad = replace(good, wrench=wrench, wrench_frame="tool0", wrench_convention="load_on_sensor")
    assert only(check(bad), "nan").place.joints == ()


def test_jitter(good):
    t = np.concatenate([[0.0], np.cumsum(np.where(np.arange(999) % 3 == 0, 0.012, 0.010))])
    shaken = Recording(t=700 + t, q=good.q, tau=good.tau)
    finding = only(check(shaken), "jitter")
    assert finding.severity == "info"  # resampling takes care of it
    assert finding.sentence.startswith(
        "33 % of the steps are off the median 10 ms by 20 % or more (10 to 12 ms)"
    )
    t = np.array(good.t)
    t[500:] += 0.004
    assert only(check(replace(good, t=t)), "jitter").severity == "info"


def test_a_gap(good):
    t = np.array(good.t)
    t[600:] += 0.5
    t[700:] += 0.05
    report = check(Recording(t=t, q=good.q, v=good.v, tau=good.tau))
    finding = next(finding for finding in report.findings if finding.kind == "gap")
    assert finding.severity == "warning"
    assert finding.sentence.startswith(
        "2 gaps of more than 3 steps, the longest 0.51 s (51 steps) at 5.99 s in row 600"
    )
    assert finding.sentence.endswith("nothing is fitted across it, each piece is used by itself")
    assert report.ok
    t = np.array(good.t)
    t[600:] += 0.035
    bridged = [finding for finding in check_signals(t, {"q": good.q}) if finding.kind == "gap"]
    assert [finding.severity for finding in bridged] == ["info"]
    assert bridged[0].sentence.endswith("at 5.99 s in row 600: bridged by interpolation")


def test_repeated_rows(good):
    which = np.arange(1000)
    which[10::20] -= 1
    held = {name: getattr(good, name)[which] for name in good.channels}
    finding = only(check(replace(good, **held)), "repeated_rows")
    assert finding.severity == "warning"
    assert finding.sentence.startswith(
        "50 rows (5 %) repeat every signal of the row before at a later time, first at 0.1 s"
    )
    which = np.arange(1000)
    which[10] -= 1
    held = {name: getattr(good, name)[which] for name in good.channels}
    assert only(check(replace(good, **held)), "repeated_rows").severity == "info"


def test_repeated_times(good):
    t = np.array(good.t)
    t[7] = t[6]
    report = check(replace(good, t=t))
    finding = next(finding for finding in report.findings if finding.kind == "repeated_times")
    assert finding.severity == "warning"
    assert finding.sentence.startswith(
        "1 row with the time of the row before, first at 0.06 s in row 8"
    )


@pytest.mark.parametrize("rows", [1, 5])
def test_too_few_rows(good, rows):
    short = good.rows(slice(rows))
    finding = next(
        finding for finding in check(short, limits=LIMITS).findings if finding.kind == "short"
    )
    assert finding.severity == "error"
    assert finding.sentence.endswith("nothing can be differentiated")


def test_a_clock_that_stands(good):
    report = check(replace(good, t=np.zeros(1000)))
    assert ("short", "error") in {(finding.kind, finding.severity) for finding in report.findings}


def test_too_short(good):
    finding = only(check(good.rows(slice(0, 150))), "short")
    assert finding.severity == "warning"
    assert (
        finding.sentence
        == "150 rows in 1.49 s are too short for a good estimate: record more than 2 s"
    )


def test_a_clock_in_milliseconds(good):
    report = check(replace(good, t=1e3 * good.t), limits=LIMITS)
    finding = only(report, "clock_unit")
    assert finding.severity == "error"
    assert finding.sentence == (
        "the median step is 10 s, but the positions follow a smooth motion as at 100 Hz: the clock"
        " counts milliseconds; name its column with `columns={'t_ms': 'NAME'}`"
    )


def test_postures_are_no_clock_in_milliseconds(good):
    postures = np.random.default_rng(2).permutation(good.q, axis=0)
    slow = replace(good, t=1e3 * good.t, q=postures)
    finding = only(check(slow, limits=LIMITS), "clock_unit")
    assert finding.severity == "warning"
    assert "single postures, or a clock in milliseconds?" in finding.sentence


@pytest.mark.parametrize("limits", [None, LIMITS])
def test_everything_in_degrees(good, limits):
    angles = {name: np.rad2deg(getattr(good, name)) for name in ("q", "v")}
    finding = only(check(replace(good, **angles), limits=limits), "degrees")
    assert finding.severity == "error"
    assert finding.place.joints == NAMES
    assert finding.sentence.endswith(
        "degrees (or motor angles), not joint angles in radians;"
        " if degrees, read the file with `degrees=True`"
    )


def test_small_angles_in_degrees_show_by_their_speed(good):
    angles = {"q": np.rad2deg(0.04 * good.q), "v": np.rad2deg(0.04 * good.v)}
    assert check(replace(good, **angles)).ok
    slow = JointLimits(np.full(3, -3.0), np.full(3, 3.0), np.full(3, 0.5), INF, INF)
    report = check(replace(good, **angles), limits=slow)
    assert [finding.kind for finding in report.findings if finding.severity == "error"] == [
        "degrees"
    ]


def test_a_joint_without_stops_is_only_asked_about(good):
    turned = changed(good, "q", lambda q: q + np.array([0, 0, 20.0]))
    finding = only(check(turned), "degrees")
    assert finding.severity == "warning"
    assert finding.place.joints == ("elbow",)
    assert "degrees, or a joint without end stops?" in finding.sentence


def test_angles_of_many_turns_are_refused_with_advice(good):
    turned = changed(good, "q", lambda q: q + np.array([0, 0, np.radians(2123.0)]))
    finding = only(check(turned), "degrees")
    assert (finding.severity, finding.place.joints) == ("error", ("elbow",))
    assert finding.sentence.startswith(
        "q reaches 39.15 (elbow): degrees (or motor angles), not joint angles"
    )
    assert finding.sentence.endswith("if the joint counts its turns, subtract whole turns")


def test_torques_far_beyond_the_limits_are_refused_with_a_question(good):
    report = check(good, limits=replace(JointLimits.none(3), tau_max=[330, 330, 20]))
    finding = next(finding for finding in report.findings if finding.kind == "torque_limit")
    assert not report.ok
    assert finding.sentence.startswith("tau reaches 6")
    assert finding.sentence.endswith("or another arm?")
    as_current = replace(good, tau=None, current=np.array(good.tau))
    assert check(as_current, limits=LIMITS).ok  # nothing is known of the drives
    report = check(as_current, limits=LIMITS, gain=[1.0, 11.0, 34.0])
    finding = next(finding for finding in report.findings if finding.kind == "torque_limit")
    assert re.match(
        r"current x gain reaches 2,\d\d\d Nm \(elbow\), the limit is 200: is it a torque in Nm"
        r" already",
        finding.sentence,
    )
    assert (finding.place.channel, finding.place.joints) == ("current", ("elbow",))
    spike = changed(good, "tau", lambda tau: np.where(np.arange(1000)[:, None] == 7, 3000.0, tau))
    assert check(spike, limits=LIMITS).ok


def test_two_pi_is_not_degrees(good):
    assert check(changed(good, "q", lambda q: q + 2 * np.pi)).worst == "info"


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (180 / np.pi, "v is in degrees/s"),
        (np.pi / 180, "v is in rad/s but q in degrees"),
        (-180 / np.pi, "v is in degrees/s and has the opposite sign"),
        (-1.0, "v has the opposite sign"),
        (1.5, "v is in another unit"),
        (-101.0, "v is in another unit and has the opposite sign"),
    ],
)
def test_a_velocity_with_another_unit_or_sign(good, factor, words):
    finding = only(check(changed(good, "v", lambda v: factor * v)), "velocity")
    assert (finding.severity, finding.place.joints) == ("error", NAMES)
    assert finding.sentence.endswith(f": {words}")
    assert f"ratio {factor:.3g}, correlation {np.sign(factor):.2f}" in finding.sentence


def test_velocities_in_another_order(good):
    finding = only(check(changed(good, "v", lambda v: v[:, [1, 0, 2]])), "velocity")
    assert finding.place.joints == ("pan", "lift")
    assert finding.sentence.endswith("v is another signal, or its columns are in another order")


def test_a_velocity_that_is_slow_to_come_is_believed(good):
    assert check(changed(good, "v", lambda v: np.roll(v, 3, axis=0))).ok


def test_joints_that_never_move(good, rng):
    def hold(q):
        q[:, 1] = 0.4 + 1e-4 * rng.standard_normal(1000)

    def rest(v):
        v[:, 1] = 1e-3 * rng.standard_normal(1000)

    finding = only(check(changed(changed(good, "q", hold), "v", rest)), "still_joint")
    assert (finding.severity, finding.place.joints) == ("warning", ("lift",))
    assert finding.sentence.startswith("lift never moves (less than 0.01 rad)")
    still = Recording(t=good.t, q=1e-5 * rng.standard_normal((1000, 3)), tau=good.tau)
    assert only(check(still), "still_joint").sentence.startswith("no joint moves")


def test_a_wrapped_angle(good):
    wrapped = replace(good, q=(good.q + 2.0 + np.pi) % (2 * np.pi) - np.pi, v=None)
    finding = only(check(wrapped), "jump")
    assert finding.severity == "error"
    assert finding.place.joints == ("pan", "elbow")
    assert "unwrap the angles" in finding.sentence


def test_postures_far_apart_in_time_do_not_jump():
    rng = np.random.default_rng(4)
    q, v = rng.uniform(-3, 3, (30, 2)), np.zeros((30, 2))
    postures = Recording(t=5.0 * np.arange(30), q=q, v=v, tau=rng.standard_normal((30, 2)))
    assert check(postures, limits=JointLimits(*(s * np.ones(2) for s in (-4, 4, 1, 1, 50)))).ok


def test_outside_the_limits(good):
    narrow = replace(LIMITS, q_max=np.array([3.0, 0.3, 3.0]))
    finding = only(check(good, limits=narrow), "position_limit")
    assert (finding.severity, finding.place.joints) == ("warning", ("lift",))
    rows = np.flatnonzero(good.q[:, 1] > 0.3)
    assert finding.place.row == rows[0] + 1
    assert f"q is outside [-3, 0.3] in {len(rows)} rows, first" in finding.sentence


@pytest.mark.parametrize("limits", [None, LIMITS])
def test_a_clipped_torque(good, limits):
    clipped = changed(
        good, "tau", lambda tau: np.clip(tau, [-np.inf, -np.inf, -20], [np.inf, 55, np.inf])
    )
    report = check(clipped, limits=limits)
    found = [finding for finding in report.findings if finding.kind == "saturation"]
    assert {finding.place.joints for finding in found} == {("lift",), ("elbow",)}
    assert {finding.severity for finding in found} == {"warning"}
    assert any("tau stays at its extreme 55 for" in finding.sentence for finding in found)
    assert len(report.findings) == 3


def test_held_samples_of_a_slow_sensor_are_not_saturated(good):
    held = changed(good, "tau", lambda tau: tau[np.arange(1000) // 8 * 8])
    assert check(held).worst == "info"


def test_an_arm_that_rests_without_noise_is_not_saturated(good):
    signals = {name: np.array(getattr(good, name)) for name in good.channels}
    for name, values in signals.items():
        values[:100] = values[0] if name == "q" else values.max(axis=0) + 1
    kinds = {finding.kind for finding in check(replace(good, **signals)).findings}
    assert kinds >= {"repeated_rows"}
    assert "saturation" not in kinds
    signals["q"][:100] += np.linspace(-1, 0, 100)[:, None]
    kinds = {finding.kind for finding in check(replace(good, **signals)).findings}
    assert "saturation" in kinds


def test_the_limit_of_the_drive(good):
    finding = only(
        check(good, limits=replace(JointLimits.none(3), tau_max=[200, 200, 55])),
        "saturation",
    )
    assert finding.place.joints == ("elbow",)
    assert "tau is at or beyond the limit of 55 in" in finding.sentence


def test_flat_signals(good):
    def flat(tau):
        tau[:, 2] = 0.25

    finding = only(check(changed(good, "tau", flat)), "unmeasured")
    assert (finding.severity, finding.place.joints) == ("warning", ("elbow",))
    assert finding.sentence.startswith("tau of elbow was not measured or not logged (one value")
    finding = only(check(changed(good, "current", lambda i: 0 * i)), "flat")
    assert (finding.severity, finding.place.channel) == ("error", "current")
    assert "every column" in finding.sentence
    finding = only(check(replace(good, tau_target=np.ones((1000, 3)))), "flat")
    assert finding.severity == "info"


def test_a_flat_axis_of_the_wrench(good, rng):
    wrench = rng.standard_normal((1000, 6))
    wrench[:, 2] = 0
    bad = replace(good, wrench=wrench, wrench_frame="tool0", wrench_convention="load_on_sensor")
    assert (
        only(check(bad), "flat").sentence
        == "wrench is constant (1 column): it was not measured, or not logged"
    )


def test_motion_alone(good):
    finding = only(check(replace(good, tau=None, current=None)), "no_effort")
    assert finding.severity == "warning"
    assert finding.sentence.startswith("no torque, current or wrench is recorded")


def test_a_wrench_table_is_checked_like_the_rows_of_an_arm(rng):
    t = 50.0 + np.arange(400) / 100
    wrench = rng.standard_normal((400, 6))
    assert [finding.kind for finding in check_signals(t, {"wrench": wrench})] == ["rate"]
    t[200:] += 0.5
    wrench[100:110] = wrench[99]
    wrench[300, 2] = np.nan
    found = {finding.kind: finding for finding in check_signals(t, {"wrench": wrench})}
    assert set(found) == {"nan", "rate", "gap", "jitter", "repeated_rows"}
    assert found["nan"].sentence.startswith(
        "wrench is not a number 1 time in 1 row, first at 3.5 s in row 301:"
    )
    assert (found["gap"].place.row, found["repeated_rows"].place.row) == (200, 101)
    with pytest.raises(InvalidRecording, match="time goes back in row 2"):
        check_signals([1.0, 0.5, 2.0], {"wrench": wrench[:3]})


def test_angles_of_any_table_may_not_jump():
    t = np.arange(100) / 100
    angles = np.column_stack([np.angle(np.exp(8j * t)), 0.1 * t])
    (finding,) = check_jumps(t, angles, "rotation", ("roll", "yaw"))
    assert finding.severity == "error"
    assert finding.place.joints == ("roll",)
    assert finding.sentence.startswith(
        "rotation jumps by more than half a turn from one row to the next in 1 row"
    )
    assert check_jumps(t, np.unwrap(angles, axis=0)) == ()


def test_a_recording_with_errors_is_refused_and_warnings_are_sentences(good):
    report = check(changed(good, "q", lambda q: np.rad2deg(q)))
    with pytest.raises(InvalidRecording, match="the recording is not fit for use: q reaches"):
        report.require_ok()
    still = check(changed(good, "q", lambda q: np.where(np.arange(3) == 1, 0.5, q)))
    assert still.warnings == tuple(f.sentence for f in still.findings if f.severity == "warning")


def test_signals_that_no_arm_has_are_an_error(rng):
    t = np.arange(200) * 0.01
    q = np.cumsum(rng.normal(size=(200, 2)), axis=0) * 0.01
    tau = rng.normal(size=(200, 2))
    tau[::10, 1] = 1e300
    found = check(Recording(t=t, q=q, tau=tau, joint_names=("a", "b")))
    assert not found.ok
    assert "tau reaches 1e+300: impossible for an arm" in found.findings[0].sentence


@pytest.mark.parametrize(("channel", "value"), [("tau", 1e300), ("q", -3e5), ("tau", -np.inf)])
def test_a_few_values_that_no_arm_has_are_left_out_and_counted(rng, channel, value):
    t = np.arange(400) * 0.01
    signals = {"q": np.sin(np.outer(t, [1.0, 1.3])), "tau": rng.normal(size=(400, 2))}
    signals[channel][[50, 51], 1] = value
    found = check(Recording(t=t, **signals, joint_names=("a", "b")))
    assert found.ok
    samples = prepare(
        Recording(t=t, **signals, joint_names=("a", "b")), Preparation(cutoff_hz=None)
    )
    assert np.abs(samples.tau).max() < 10
    assert np.abs(samples.a).max() < 10
    if np.isfinite(value):
        words = (
            f"{channel} reaches {abs(value):.3g}: impossible for an arm; 2 rows left out, first at"
            " 0.5 s"
            " in row"
        )
        assert any(warning.startswith(words) for warning in found.warnings)
        assert samples.warnings == found.warnings
