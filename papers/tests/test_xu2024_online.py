"""xu2024, section 3: the recursion as published, its convergence, and eq. (12)-(16)."""

import json
from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from typer.testing import CliRunner

from steelyard.cli import _app
from steelyard.errors import InvalidInertia, InvalidSamples
from steelyard.identification import DynamicModel, Estimate, FrictionLaw, RegressionFactor, identify
from steelyard.inertia import InertialParameters
from steelyard.io import write
from steelyard.live import LiveWeigher, ReplaySource, Stream, snapshots_of, track
from steelyard.live._track import torque_job, track_stream
from steelyard.recording import Preparation, Sample, Samples
from steelyard.robot import ParameterBasis, load_robot
from steelyard.signals import prepare, replay
from steelyard.simulation import SensorModel, SimulationOptions, simulate
from steelyard.torque.tracking import TorqueTracker, TorqueTrackerOptions
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import DoubtKind, Verdict
from steelyard.workflow import TrackingOptions
from steelyard_papers.xu2024.arm import ur10
from steelyard_papers.xu2024.online import UR10_ROWS, Xu2024Tracker, tracker_for
from steelyard_papers.xu2024.printed import TABLE_6, TABLE_8, TRUTH
from steelyard_papers.xu2024.recursion import recursion_of

pytestmark = pytest.mark.thorough

TABLE_VI, TABLE_VII, TABLE_VIII = TABLE_6, TRUTH, TABLE_8["without", "power"]
A3, A4, D5, D6 = 0.612, 0.5723, 0.1157, 0.0922


@pytest.fixture(scope="module")
def model():
    robot = ur10()
    shapes = (robot.drive.exponent, np.ones(6), np.ones(6))
    law = FrictionLaw("given", "exact", True, False, False, *shapes, fixed=True)
    parameters = ParameterBasis.of(robot).parameters
    estimate = Estimate(
        TABLE_VI, 1e-12 * np.eye(58), parameters, TABLE_VIII, np.ones(6), 1.0, Verdict("Table VI")
    )
    empty = RegressionFactor.empty(6, 58)
    return DynamicModel(robot, law, estimate, np.zeros((0, 6)), "commanded", ("Table VI",), empty)


@pytest.fixture(scope="module")
def rows(model):
    """Time, motion, regressor and noisy torque along the trajectory of Table IV at 125 Hz."""
    t = np.arange(1250) / 125
    q, v, a = FourierTrajectory.load("xu2024").at(t)
    Y = model.basis.reduce(model.robot.regressor(q, v, a))
    tau = Y @ (TABLE_VI + model.basis.payload_jacobian @ TABLE_VII.vector)
    return t, (q, v, a), Y, tau + np.random.default_rng(4).normal(size=tau.shape) * TABLE_VIII


def samples(rows):
    t, motion, _, tau = rows
    return [Sample.of_joints(*sample) for sample in zip(t, *motion, tau, strict=True)]


def printed_solution(epsilon):
    """Eq. (12)-(16) with the rows of pi, counted from 1, that the non-zero differences stand in."""
    e = {row: epsilon[row - 1] for row in range(1, 59)}
    Ixy, Ixz, Iyz, Izz, mx, my = (e[row] for row in (31, 32, 33, 34, 35, 36))
    lengths = np.array([A3, A4, D5])
    m = lengths @ [e[7], e[14], e[22]] / (lengths @ lengths)
    mz = -D6 * m - e[29]
    Iyy = np.mean([e[23], e[27]]) - 2 * D6 * mz - D6**2 * m
    return np.array([m, mx, my, mz, e[30] + Iyy, Ixy, Iyy, Ixz, Iyz, Izz])


def test_the_recursion_is_the_published_one(model, rows):
    _, _, Y, tau = rows
    estimator = Xu2024Tracker(model, rows=UR10_ROWS)
    state = estimator.init()
    pi, P = TABLE_VI.copy(), 10 * np.eye(58)
    for sample, Y_k, tau_k in zip(samples(rows)[:400], Y, tau, strict=False):
        state = estimator.step(state, sample)
        K = P @ Y_k.T @ np.linalg.inv(100 * np.eye(6) + Y_k @ P @ Y_k.T)
        pi = pi + K @ (tau_k - Y_k @ pi)
        P = P - K @ Y_k @ P
    np.testing.assert_allclose(state.parameters, pi, atol=1e-7)
    vector = estimator.estimate(state).body.vector
    np.testing.assert_allclose(vector, printed_solution(pi - TABLE_VI), atol=1e-7)


def test_it_converges_by_its_rule_and_direct_is_several_times_better(model, rows):
    published = Xu2024Tracker(model, rows=UR10_ROWS)
    direct = TorqueTracker(model, "commanded", options=TorqueTrackerOptions(lowest_speed=0.0))
    state, ours = published.init(), direct.init()
    for sample in samples(rows):
        state, ours = published.step(state, sample), direct.step(ours, sample)
    assert published.converged(state)
    assert 5.0 < state.converged_s < 10.0
    assert f"after {state.converged_s:.2f} s" in published.estimate(state).status
    assert [doubt.kind for doubt in published.estimate(state).verdict.blocking] == [
        DoubtKind.TOO_UNCERTAIN
    ]
    assert not published.estimate(published.init()).verdict.ok
    assert published.estimate(state).body.mass == pytest.approx(3.5256, rel=0.04)
    assert direct.estimate(ours).body.mass == pytest.approx(3.5256, rel=0.005)
    assert direct.converged(ours)
    assert not direct.converged(direct.init())


def test_on_fast_rows_the_rule_stops_too_early_and_the_verdict_says_so(model):
    """Without noise: 301 small changes in a row come sooner with 500 rows per second."""
    estimator = Xu2024Tracker(model, rows=UR10_ROWS)
    found = {}
    for rate in (125, 500):
        t = np.arange(10 * rate) / rate
        q, v, a = FourierTrajectory.load("xu2024").at(t)
        Y = model.basis.reduce(model.robot.regressor(q, v, a))
        tau = Y @ (TABLE_VI + model.basis.payload_jacobian @ TABLE_VII.vector)
        state = estimator.init()
        for row in zip(t, q, v, a, tau, strict=True):
            state = estimator.step(state, Sample.of_joints(*row))
        found[rate] = state
    assert found[500].converged_s < found[125].converged_s
    words = {rate: estimator.estimate(state).status for rate, state in found.items()}
    assert "301 of them last 0.6 s at 500 Hz and 2.4 s at the paper's 125 Hz" in words[500]
    assert "counts samples" not in words[125]


def test_without_an_uncertainty_it_is_not_exported_unless_forced(model):
    estimator = Xu2024Tracker(model)
    changed = TABLE_VI + model.basis.payload_jacobian @ TABLE_VII.vector
    converged = estimator.init()._replace(
        parameters=changed, first_s=0.0, converged_s=6.0, last_s=6.0
    )
    payload = estimator.estimate(converged)
    assert not payload.verdict.ok
    assert not payload.verdict.has(DoubtKind.NOT_CONVERGED)
    with pytest.raises(InvalidInertia, match=r"not exported: .*xu2024 gives no uncertainty"):
        payload.export("ur")
    assert "xu2024 gives no uncertainty" in payload.export("ur", force=True)


def test_before_it_converges_it_says_so(model, rows):
    estimator = Xu2024Tracker(model)
    state = estimator.init()
    for sample in samples(rows)[:10]:
        state = estimator.step(state, sample)
    state = estimator.step(state, samples(rows)[3])
    unconverged = estimator.estimate(state)
    assert not unconverged.verdict.ok
    assert unconverged.verdict.has(DoubtKind.NOT_CONVERGED)
    status = unconverged.status
    assert "not converged" in status
    assert "skipped 1 late" in status
    assert np.isinf(estimator.estimate(state).std).all()


def test_all_rows_by_the_payload_jacobian_give_an_exact_difference_back(model):
    estimator = Xu2024Tracker(model)
    changed = TABLE_VI + model.basis.payload_jacobian @ TABLE_VII.vector
    found = estimator.estimate(estimator.init()._replace(parameters=changed))
    np.testing.assert_allclose(found.body.vector, TABLE_VII.vector, atol=1e-12)
    assert len(estimator.rows) == 22


def test_the_watched_parameters_are_those_of_the_paper(model):
    assert (Xu2024Tracker(model).watched + 1).tolist() == [31, 32, 33, 34, 35, 36]


def test_other_kinematics_are_refused(model):
    with pytest.raises(
        InvalidSamples, match="fitted to commanded motion, the stream holds measured"
    ):
        Xu2024Tracker(model, "measured")


def test_it_works_on_another_robot():
    robot = load_robot("planar2r")
    series = FourierTrajectory.random(
        np.zeros(2), reach=[2.0] * 2, speed=[1.5] * 2, period_s=10.0, harmonics=5, seed=1
    )
    q, v, a = series.at(np.arange(0, 10, 0.01))
    small = InertialParameters.from_com(0.5, [0.1, 0.05, 0], 1e-3 * np.eye(3))
    parts = [
        Samples(
            q,
            v,
            a,
            arm.torque(q, v, a) + 0.01 * np.random.default_rng(k).normal(size=q.shape),
            100.0,
            robot.joint_names,
            "measured",
        )
        for k, arm in enumerate((robot, robot.with_payload(small)))
    ]
    arm = identify(robot, parts[0])
    estimator = Xu2024Tracker(arm, "measured", P0=1000.0, xi=1.0)
    state = estimator.init()
    for row in zip(parts[1].t, q, v, a, parts[1].tau, strict=True):
        state = estimator.step(state, Sample.of_joints(*row))
    change = arm.basis.payload_jacobian @ (estimator.estimate(state).body.vector - small.vector)
    assert np.abs(change).max() < 0.1


@pytest.fixture
def installed(monkeypatch):
    """The papers' tracker, as it is found where the package is installed."""
    plug = EntryPoint("xu2024", "steelyard_papers.xu2024.online:tracker_for", "steelyard.trackers")
    monkeypatch.setattr("steelyard.workflow._torque_tracking.entry_points", lambda group: [plug])


def test_the_plug_in_is_found_and_gives_the_answer_of_the_tracker(model, tmp_path, installed):
    assert tracker_for(model, 0.01).rows == UR10_ROWS
    t = np.arange(400) / 125
    q, v, a = FourierTrajectory.load("xu2024").at(t)
    Y = model.basis.reduce(model.robot.regressor(q, v, a))
    tau = Y @ (TABLE_VI + model.basis.payload_jacobian @ TABLE_VII.vector)
    data = Samples(q, v, a, tau, 125.0, model.robot.joint_names, "commanded")
    found = track(data, model=model, options=TrackingOptions(tracker="xu2024"))
    direct = Xu2024Tracker(model, rows=UR10_ROWS)
    state = direct.init()
    for row in zip(data.t, q, v, a, tau, strict=True):
        state = direct.step(state, Sample.of_joints(*row))
    assert found.payload.mass == pytest.approx(direct.estimate(state).mass, rel=1e-9)
    assert found.payload.verdict.has(DoubtKind.TOO_UNCERTAIN)
    assert found.page().title == "What ur10 carries"
    assert found.to_dict()["mass"] == pytest.approx(found.payload.mass)
    assert "no interval: nothing says whether it is known to 1 %" in found.when
    with pytest.raises(InvalidSamples, match="tracker xu2024 does not save its state"):
        found.save_state(tmp_path / "state.json")


# --- rows of a simulated arm, with encoder steps


@pytest.fixture(scope="module")
def runs():
    """An empty and a loaded run of MuJoCo along Table IV, with encoder steps of 1e-4 rad."""
    robot = ur10()
    motion = FourierTrajectory.load("xu2024")
    sensors = SensorModel(encoder_step=1e-4, torque_std=0.5, wrist_sensor=False)
    made = [
        simulate(
            robot, motion, payload=load, sensors=sensors, rate_hz=125.0, seed=seed,
            options=SimulationOptions(step_s=0.002),
        ).recording
        for seed, load in enumerate((None, TABLE_VII))
    ]  # fmt: skip
    return [replace(recording, current=None, v=None) for recording in made]


@pytest.mark.parametrize("kinematics", ["measured", "commanded"])
def test_live_rows_file_rows_and_the_batch_recursion_give_the_same_numbers(
    runs, kinematics, installed, tmp_path
):
    empty, loaded = runs
    how = Preparation(kinematics=kinematics)
    model = identify(ur10(), prepare(empty, how), friction="power")
    raw = prepare(loaded, replace(how, cutoff_hz=None, lowest_speed=0.0))
    if kinematics == "measured":
        raw = raw.rows(slice(1, -1))  # the first and last row have one neighbour
    batch = recursion_of([model], [raw])

    tracker = Xu2024Tracker(model, kinematics, rows=UR10_ROWS)
    state = tracker.init()
    changes = []
    for sample in replay(loaded, how, unfiltered=True):
        before = state
        state = tracker.step(state, sample)
        changes.append(np.abs(state.parameters - before.parameters)[tracker.watched].max())
    moving = np.array(changes) > 0  # the tracker stops by the paper's rule
    np.testing.assert_allclose(np.array(changes)[moving], batch.largest[0][moving], rtol=1e-6)
    np.testing.assert_allclose(tracker.estimate(state).body.vector, batch.payloads()[0], rtol=1e-6)

    file = tmp_path / "loaded.parquet"
    write(loaded, file)
    options = TrackingOptions(tracker="xu2024", preparation=how)
    by_file = track(str(file), model=model, options=options)
    with Stream(ReplaySource(str(file), speed=None)) as stream:
        job = torque_job(f"replay:{file}", model, 0.01, options)
        weigher = LiveWeigher(job.setup(stream))
        *_, last = snapshots_of(stream, weigher)
    assert last.trace.shape == (3, 6)
    assert np.isfinite(last.trace).all()
    assert not last.converged
    by_stream = track_stream(weigher, ())
    for found in (by_file, by_stream):
        np.testing.assert_allclose(found.payload.body.vector, batch.payloads()[0], rtol=1e-6)
        assert found.payload.verdict.has(DoubtKind.TOO_UNCERTAIN)
        assert found.delay_s == pytest.approx(0.008 if kinematics == "measured" else 0.0)


def test_encoder_steps_spoil_the_recursion_on_measured_rows_and_not_on_commanded_ones(runs):
    """The paper's reason for commanded signals, on the same run."""
    empty, loaded = runs
    errors = {}
    for kinematics in ("measured", "commanded"):
        how = Preparation(kinematics=kinematics)
        model = identify(ur10(), prepare(empty, how), friction="power")
        tracker = Xu2024Tracker(model, kinematics, rows=UR10_ROWS)
        state = tracker.init()
        for sample in replay(loaded, how, unfiltered=True):
            state = tracker.step(state, sample)
        errors[kinematics] = tracker.estimate(state).mass / TABLE_VII.mass - 1
    assert abs(errors["commanded"]) < 0.01
    assert abs(errors["measured"]) > 0.1


def test_the_command_tracks_a_stream_with_it_and_refuses_a_filter(runs, installed, tmp_path):
    empty, loaded = runs
    how = Preparation(kinematics="commanded")
    identify(ur10(), prepare(empty, how)).save(tmp_path / "model.json")
    write(loaded.rows(slice(0, 130)), tmp_path / "loaded.npz")
    words = ["track", f"replay:{tmp_path / 'loaded.npz'}", "--model", str(tmp_path / "model.json")]
    words += ["--tracker", "xu2024"]
    done = CliRunner().invoke(_app("track"), [*words, "--json"])
    facts = json.loads(done.stdout)
    assert facts["samples"]["used"] == 130
    assert len(facts["curve"]["mass"]) >= 2
    assert "xu2024 gives no uncertainty" in done.stdout
    refused = CliRunner().invoke(_app("track"), [*words, "--cutoff", "5"])
    assert "xu2024 takes rows as they come, without a filter: leave --cutoff out" in str(
        refused.exception
    )
