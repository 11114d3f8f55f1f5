"""Recordings with holes, stray rows and omissions, and recordings of another arm."""

from dataclasses import replace

import numpy as np
import pytest

import steelyard as sy
from conftest import lively_motion, steelyard
from steelyard.errors import InvalidRecording, InvalidRobot, InvalidSamples
from steelyard.identification._witnesses import _is_capable_of, arms_with_equal_fit
from steelyard.inertia import InertialParameters
from steelyard.recording import ArmIdentity, Preparation
from steelyard.robot import DriveModel
from steelyard.verdict import DoubtKind
from steelyard.workflow._arm import Identification
from steelyard.workflow._data import runs_of
from steelyard.workflow._payload import Weighing

LOAD = InertialParameters.from_com(3.5, [0.02, -0.03, 0.06], np.diag([0.02, 0.03, 0.025]))
DRIVE = DriveModel(
    np.full(6, 0.5), coulomb=np.full(6, 5.0), viscous=np.full(6, 3.0), sign_width=0.02
)
ROBOT = sy.load_robot("ur10").with_drive(DRIVE)


def recorded(robot, seed, trajectory_seed, source="log"):
    """A run of 20 s at 100 Hz, with torques that are noisy."""
    q, v, a = lively_motion(robot, trajectory_seed, duration_s=20.0)
    tau = robot.torque(q, v, a) + 0.3 * np.random.default_rng(seed).normal(size=q.shape)
    return sy.Recording(np.arange(len(q)) / 100, q, robot.joint_names, tau=tau, source=source)


@pytest.fixture(scope="module")
def model():
    return sy.identify(ROBOT, recorded(ROBOT, 1, 1), friction="linear")


@pytest.fixture(scope="module")
def loaded():
    return recorded(ROBOT.with_payload(LOAD), 2, 2, source="loaded")


def with_rows(recording, which, **changes):
    """Some rows on their own times, as a logger that lost the others writes them."""
    return replace(recording.rows(which), **changes)


def about_recordings(answer):
    doubts = [doubt for doubt in answer.verdict.doubts if doubt.kind is DoubtKind.RECORDING]
    assert not any(doubt.blocks for doubt in doubts)
    return [doubt.words for doubt in doubts]


def test_joints_without_names_are_called_as_those_of_the_arm(loaded):
    def names(robot, joint_names):
        return runs_of(replace(loaded, joint_names=joint_names), robot)[0].recording.joint_names

    assert names(ROBOT, ()) == ROBOT.joint_names
    assert names(ROBOT, tuple("abcdef")) == tuple("abcdef")
    assert names(sy.load_robot("panda"), ())[0] == names(None, ())[0] == "joint1"


def test_a_stray_first_row_is_left_out_and_said(model, loaded):
    t = np.array(loaded.t)
    t[0] -= 40.0
    payload, whole = sy.weigh(model, replace(loaded, t=t)), sy.weigh(model, loaded)
    assert about_recordings(whole) == []
    assert about_recordings(payload) == [
        "loaded is cut at 1 hole of its clock, the longest 40.01 s after row 1;"
        " rows 1 to 1 are left out, pieces shorter than 1 s"
    ]
    assert payload.verdict.ok
    assert payload.mass == pytest.approx(LOAD.mass, abs=3 * payload.std[0])


def test_a_page_draws_the_first_of_several_recordings_and_names_it(model, loaded):
    second = replace(loaded.rows(slice(0, 800)), source="second")
    assert "drawn" not in Weighing(model, loaded).page().about
    page = Weighing(model, [loaded, second]).page()
    assert page.about["recordings"] == "loaded, second"
    assert page.about["drawn"] == "loaded"
    (section,) = (section for section in page.sections if section.title.startswith("Torque with"))
    measured, *_ = section.parts[0].panels[0].curves
    assert measured.name == "measured"
    assert 15.0 < measured.x[-1] < 20.0  # [s]


def test_pieces_between_holes_are_used(model, loaded):
    lost = np.zeros(len(loaded), bool)
    lost[700:760] = lost[800:900] = True  # 0.4 s stand between the two holes
    tau = np.array(loaded.tau)
    tau[1500:1530, 2] = np.nan  # a hole too, although the clock goes on
    payload = sy.weigh(model, with_rows(replace(loaded, tau=tau), ~lost))
    assert about_recordings(payload) == [
        "loaded is cut at 3 holes of its clock, the longest 1.01 s after row 740;"
        " rows 701 to 740 are left out, pieces shorter than 1 s"
    ]
    assert payload.verdict.ok
    assert payload.mass == pytest.approx(LOAD.mass, abs=3 * payload.std[0])
    pieces = runs_of(with_rows(replace(loaded, tau=tau), ~lost), how=sy.Preparation())
    assert [run.name for run in pieces] == [
        "loaded, rows 1 to 700",
        "loaded, rows 741 to 1340",
        "loaded, rows 1371 to 1840",
    ]


def test_the_ends_of_pieces_are_trimmed_where_the_filter_sees_too_little(loaded):
    *_, a = lively_motion(ROBOT, 2, duration_s=20.0)
    t = np.array(loaded.t)
    t[1000:] += 0.5
    how = sy.Preparation(cutoff_hz=20.0)
    for k, run in enumerate(runs_of(replace(loaded, t=t), how=how)):
        samples = run.prepared(how, None).ready
        assert len(samples) == 1000 - 2 * 15
        true = a[1000 * k + 15 : 1000 * k + 985]
        assert np.abs(samples.a - true).max() < 0.01 * np.abs(true).max()


def test_a_recording_of_shreds_is_refused(model, loaded):
    shreds = with_rows(loaded, np.arange(len(loaded)) % 100 < 80)
    with pytest.raises(InvalidRecording, match=r"cut at 19 holes .* no piece of 1 s is left"):
        sy.weigh(model, shreds)


def test_holes_are_bridged_where_the_user_says_so(loaded):
    shaken = with_rows(loaded, np.arange(len(loaded)) % 100 < 80)
    assert len(runs_of(shaken, how=sy.Preparation(longest_gap_s=0.3))) == 1
    assert runs_of(shaken)[0].cut == ""


def test_identify_uses_the_pieces_and_names_them(tmp_path):
    recording = recorded(ROBOT, 1, 1)
    t = np.array(recording.t)
    t[500:] += 0.5
    sy.write(replace(recording, t=t), tmp_path / "empty.parquet")
    done = steelyard(
        "identify",
        "ur10",
        "empty.parquet",
        "-o",
        "model.json",
        "--friction",
        "linear",
        cwd=tmp_path,
    )
    assert (
        "Note: empty.parquet is cut at 1 hole of its clock, the longest 0.51 s after row 500."
        in done.stdout
    )
    assert "empty.parquet, rows 1 to 500" in done.stdout
    assert done.returncode == 0, done.stdout


def test_the_manufacturer_method_on_an_arm_that_logs_currents_and_target_moments(tmp_path):
    gain = np.array([12.0, 13.0, 11.0, 9.0, 8.0, 10.0])
    robot = ROBOT.with_drive(replace(DRIVE, gain=gain, gain_std=0.01 * gain))

    def log(arm, seed, trajectory_seed):
        """Currents, and target moments of a controller that knows links and rotors."""
        q, v, a = lively_motion(arm, trajectory_seed, duration_s=20.0)
        current = arm.torque(q, v, a) / gain + 0.02 * np.random.default_rng(seed).normal(
            size=q.shape
        )
        moment = robot.inverse_dynamics(q, v, a) + robot.drive.rotor_inertia * a
        return sy.Recording(
            np.arange(len(q)) / 100, q, arm.joint_names, current=current, tau_target=moment
        )

    model = sy.identify(robot, log(robot, 1, 1), friction="linear")
    assert model.from_currents
    payload = sy.weigh(model, log(robot.with_payload(LOAD), 2, 2), method="manufacturer")
    assert payload.verdict.ok
    assert payload.mass == pytest.approx(LOAD.mass, abs=3 * payload.std[0])
    assert payload.gain_error is not None


def test_effort_in_newton_metres_taken_for_a_current_is_refused(model, loaded):
    gain = np.full(6, 12.0)
    robot = ROBOT.with_drive(replace(DRIVE, gain=gain))
    efforts = replace(loaded, tau=None, current=np.array(loaded.tau))
    with pytest.raises(
        InvalidRecording, match=r"loaded: .* current x gain reaches .* is it a torque in Nm"
    ):
        sy.identify(robot, efforts, friction="linear")
    currents = replace(recorded(robot, 1, 1), tau=None, current=recorded(robot, 1, 1).tau / gain)
    of_currents = sy.identify(robot, currents, friction="linear")
    for weigh in (sy.weigh, lambda model, data: sy.track(data, model=model)):
        with pytest.raises(InvalidRecording, match=r"current x gain reaches .* the limit is"):
            weigh(of_currents, efforts)


@pytest.mark.thorough
def test_currents_taken_for_torques_are_doubted(loaded):
    """A UR driver publishes currents as effort; the arm's masses or its controller contradict."""
    weak = replace(loaded, tau=np.array(loaded.tau) / 11.0)
    stated = replace(weak, tau_target=np.array(loaded.tau))
    for recording in (weak, stated):
        verdict = sy.identify(ROBOT, recording, friction="linear").verdict
        assert not verdict.ok
        assert "if it is a motor current [A], read it as a current" in verdict.blocking[-1].words
    assert sy.identify(ROBOT, loaded, friction="linear").verdict.ok


def test_angles_in_degrees_are_refused_by_the_limits_of_the_arm(model, loaded):
    small = replace(
        loaded, q=np.degrees(0.1 * loaded.q)
    )  # no further than some joints go, but far too fast
    with pytest.raises(InvalidRecording, match=r"loaded: .*degrees \(or motor angles\)"):
        sy.weigh(model, small)


OTHER_ROBOT = DoubtKind.OTHER_ROBOT


def with_targets(robot, trajectory_seed):
    """A recording with the torques of a controller that knows the arm but for its friction."""
    q, v, a = lively_motion(robot, trajectory_seed, duration_s=20.0)
    moment = robot.inverse_dynamics(q, v, a) + robot.drive.rotor_inertia * a
    return replace(
        recorded(robot, 1, trajectory_seed),
        tau_target=moment,
        joint_names=[f"j{k}" for k in range(6)],
    )


@pytest.mark.thorough
def test_the_recording_of_another_robot_is_recognised_by_the_controllers_torques():
    right = sy.identify(ROBOT, with_targets(ROBOT, 1), friction="linear")
    assert not right.verdict.has(DoubtKind.OTHER_ROBOT)
    other = sy.load_robot("kr60ha").with_drive(DRIVE)
    model = sy.identify(other, with_targets(ROBOT, 1), friction="linear")
    assert model.verdict.has(DoubtKind.OTHER_ROBOT)
    assert not model.verdict.ok
    assert "no masses on the links of kr60ha explain the controller's own torques" in str(
        model.verdict
    )


@pytest.mark.thorough
def test_torques_of_another_bundled_arm_fit_it_better():
    """Measured torques alone: a Panda's log that is stated to be an LWR 4+."""
    panda = sy.load_robot("panda")
    recording = replace(recorded(panda, 1, 1), joint_names=[f"j{k}" for k in range(7)])
    assert not sy.identify("panda", recording, friction="linear").verdict.has(OTHER_ROBOT)
    model = sy.identify("lwr4", recording, friction="linear")
    words = [doubt.words for doubt in model.verdict.blocking if doubt.kind is OTHER_ROBOT]
    assert len(words) == 1
    assert "these torques fit fr3 or panda far better than lwr4" in words[0]


def test_arms_that_torques_do_not_tell_apart_are_named(model):
    """A UR10 and a UR10e differ in lengths only; a recording that tells its arm leaves no doubt."""
    recording = recorded(ROBOT, 1, 1).rows(slice(0, 800))
    (run,) = runs_of(recording, ROBOT, how=Preparation())
    run = run.prepared(Preparation(), None, ROBOT.limits)
    found = Identification(model, (run,), (), "measured")
    assert "ur10e" in found.alike_arms
    assert not {"ur10", "tx60", "kr60ha", "xarm6"} & {*found.alike_arms}
    assert "Torques do not tell ur10 from ur10e" in found.alike_sentence
    alike = arms_with_equal_fit(sy.load_robot("ur10e"), run.ready)
    assert "ur10" in alike
    assert np.abs(run.ready.tau).max() > sy.load_robot("ur3e").limits.tau_max.max()
    assert "ur3e" not in alike
    faster = replace(run.ready, v=10 * run.ready.v)
    assert not _is_capable_of(sy.load_robot("ur10e"), faster)
    (told,) = runs_of(replace(recording, arm=ArmIdentity("ur10")), ROBOT, how=Preparation())
    assert Identification(model, (told,), (), "measured").alike_sentence == ""


@pytest.mark.thorough
def test_a_joint_that_stays_unexplained_is_a_doubt_however_small_it_is():
    """A wrist joint whose torque goes its own ways, small beside gravity in the shoulder."""
    weak = np.array([1.0, 1.0, 1.0, 0.2, 0.2, 0.2])
    robot = ROBOT.with_drive(replace(DRIVE, coulomb=5.0 * weak, viscous=3.0 * weak))
    recording = recorded(robot, 1, 1)
    size = np.sqrt(np.mean(recording.tau**2, axis=0))
    slow = np.sin(2 * np.pi * 0.37 * recording.t) + np.sin(2 * np.pi * 0.83 * recording.t)
    for share, blocks in ((0.5, False), (1.0, True)):
        tau = np.array(recording.tau)
        tau[:, 5] += share * size[5] * slow
        assert share * size[5] < 0.05 * size.max()
        verdict = sy.identify(robot, replace(recording, tau=tau), friction="linear").verdict
        doubts = [doubt for doubt in verdict.doubts if doubt.kind is DoubtKind.UNEXPLAINED_TORQUE]
        assert [doubt.blocks for doubt in doubts] == [blocks]
        assert f"% of the torque of {robot.joint_names[5]}" in doubts[0].words


def at_rest(robot):
    """A recording of one posture."""
    q = np.tile(np.full(6, 0.3), (500, 1))
    tau = robot.inverse_dynamics(q, 0 * q, 0 * q)
    tau += 0.3 * np.random.default_rng(4).normal(size=q.shape)
    return sy.Recording(np.arange(500) / 100, q, robot.joint_names, tau=tau, source="still")


def test_one_posture_is_refused_before_anything_is_fitted(model):
    with pytest.raises(InvalidSamples, match=r"no joint moves in still, .* does not identify an"):
        sy.identify(ROBOT, at_rest(ROBOT))
    with pytest.raises(InvalidSamples, match=r"no joint moves in still, .* determine a payload"):
        sy.weigh(model, at_rest(ROBOT.with_payload(LOAD)))


def test_a_recording_that_is_far_too_short_is_refused_as_such(model):
    q, v, a = lively_motion(ROBOT, 3, duration_s=0.2)
    t = np.arange(len(q)) / 100
    short = sy.Recording(t, q, ROBOT.joint_names, tau=ROBOT.torque(q, v, a), source="short")
    with pytest.raises(InvalidSamples, match=r"short lasts 0.19 s, which is too short to identify"):
        sy.identify(ROBOT, short)
    with pytest.raises(InvalidSamples, match="too short to determine a payload: record 10 s"):
        sy.weigh(model, short)


def test_one_moving_joint_is_named_as_the_cause():
    q, v, a = (x.copy() for x in lively_motion(ROBOT, 3, duration_s=20.0))
    q[:, :5] = 0.3
    v[:, :5] = 0.0
    a[:, :5] = 0.0
    tau = ROBOT.torque(q, v, a) + 0.3 * np.random.default_rng(5).normal(size=q.shape)
    recording = sy.Recording(np.arange(len(q)) / 100, q, ROBOT.joint_names, tau=tau)
    doubts = sy.identify(ROBOT, recording, friction="linear").verdict.blocking
    assert "wrist_2_joint never moved: record a motion that swings every joint" in doubts[0].words
    assert "more), because" in doubts[0].words
    assert not [doubt for doubt in doubts if "current" in doubt.words]


@pytest.mark.parametrize("robot", [ROBOT, "ur10"])
def test_a_robot_is_no_model(robot, loaded):
    with pytest.raises(InvalidRobot, match="ur10 is a robot, not an identified model: identify"):
        sy.weigh(robot, loaded)
    with pytest.raises(InvalidSamples, match="got Recording: check the order of the arguments"):
        sy.weigh(loaded, robot)


def test_a_model_is_nothing_to_track(model, loaded):
    with pytest.raises(InvalidSamples, match=r"track\(recording, model\)"):
        sy.track(model, loaded)
    assert sy.track(loaded, model).payload.mass > 0
