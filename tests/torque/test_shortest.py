"""The shortest sufficient motion: its promise, what `weigh` then reports, and refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest

from conftest import steelyard
from steelyard.errors import InfeasibleDesign, InvalidSamples, InvalidTrajectory, UnreadableFile
from steelyard.excitation import Design, DesignLimits, DesignSettings
from steelyard.excitation._accuracy import ArmKnowledge, PayloadAccuracy
from steelyard.excitation._shortest import Candidate, DurationSearch
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.recording import Preparation, Samples
from steelyard.robot import DHTable, DriveModel, JointLimits, RobotModel, load_robot
from steelyard.torque import weigh
from steelyard.torque._prediction import assumed_model, loaded_arm, predict
from steelyard.torque._shortest import (
    Accuracy,
    ShortestMotion,
    _PlannedWeighing,
    shortest_motion,
    typical_payload,
)
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import DoubtKind

QUICK = DesignSettings(starts=1, effort=0.05, workers=1)
NOISE = np.array([0.3, 0.2])
LIMITS = JointLimits([-2.0, -2.0], [2.0, 2.0], [2.0, 2.0], [8.0, 8.0], [np.inf] * 2)
SLOW = JointLimits([-6.0] * 6, [6.0] * 6, [2.0] * 6, [4.0] * 6, [np.inf] * 6)
WHITE = np.array([1.3, 2.5, 1.1, 0.4, 0.3, 0.3])


@pytest.fixture(scope="module")
def arm():
    """Two joints that swing in a vertical plane, gravity of a known place."""
    robot = load_robot("planar2r")
    robot = robot.with_drive(
        DriveModel(np.array([0.1, 0.05]), coulomb=[1.0, 0.5], viscous=[0.5, 0.3])
    )
    return robot.with_gravity((0.0, -9.8123, 0.0))


@pytest.fixture(scope="module")
def model(arm):
    return assumed_model(arm, NOISE)


@pytest.fixture(scope="module")
def found(arm, model):
    body = typical_payload(arm, 2.0, (0.05, 0.0, 0.0))
    requested = Accuracy(mass=0.012)
    return shortest_motion(
        model, requested, typical=body, limits=DesignLimits(LIMITS), harmonics=3, settings=QUICK
    )


@pytest.fixture(scope="module")
def ur10():
    """Identified from two simulated runs of 10 s (no engine: torque = Y phi), at 50 Hz."""
    robot = load_robot("ur10").with_gravity((0.0, 0.0, -9.8123))
    robot = robot.with_drive(replace(robot.drive, gain=None, gain_std=None, exponent=np.ones(6)))
    return identify(robot, [swing(robot, seed, noisy=True) for seed in (1, 2)], friction="linear")


def swing(robot, seed, *, body=None, noisy=False, period_s=10.0):
    motion = FourierTrajectory.random(
        [0.2, -1.2, 0.8, -0.7, 0.6, 0.1],
        reach=[1.2] * 6,
        speed=[2.0] * 6,
        period_s=period_s,
        harmonics=4,
        seed=seed,
    )
    q, v, a = motion.at(np.arange(0, period_s, 0.02))
    tau = (robot if body is None else robot.with_payload(body)).torque(q, v, a)
    if noisy:
        tau = tau + np.random.default_rng(seed).normal(size=tau.shape) * WHITE
    return Samples(
        q=q, v=v, a=a, tau=tau, rate_hz=50.0, joint_names=robot.joint_names, kinematics="measured"
    )


@pytest.mark.thorough
def test_the_motion_is_enough_and_keeps_its_limits(arm, found):
    half = found.prediction.half_widths
    assert half[0] <= found.requested.mass
    assert found.design.value == pytest.approx(half[0] / 0.012)
    assert found.design.certificate.holds
    q, v, a = found.design.trajectory.at(np.linspace(0, found.duration_s, 3001))
    assert (np.abs(v) <= LIMITS.v_max).all()
    assert (np.abs(a) <= LIMITS.a_max).all()
    assert (np.abs(q) <= LIMITS.q_max).all()
    assert np.abs(v[[0, -1]]).max() < 1e-9
    shorter = found.durations_s < 0.97 * found.duration_s
    assert shorter.any()
    assert (found.reached[shorter, 0] > 0.012).all()
    assert found.verdict.has(DoubtKind.ASSUMED)
    assert "0.3, 0.2 Nm or N" in str(found.verdict)
    assert str(found).startswith(f"{found.duration_s:.3g} s; 2 kg to 12 g. The shortest of ")


def test_more_of_a_motion_never_knows_less(found):
    known = found.known
    assert (known[1:, 0] <= known[:-1, 0] * (1 + 1e-9)).all()
    assert known[-1, 0] == pytest.approx(found.prediction.half_widths[0], rel=1e-9)
    assert known[2, 0] > 2 * known[-1, 0]


def test_more_rows_and_less_noise_narrow_as_roots_say(arm, found):
    body, motion = found.prediction.body, found.design.trajectory
    once = predict(assumed_model(arm, NOISE), motion, body).half_widths
    often = predict(assumed_model(arm, NOISE), motion, body, rate_hz=500.0).half_widths
    quiet = predict(assumed_model(arm, 0.25 * NOISE), motion, body).half_widths
    assert often[0] == pytest.approx(once[0] / 2, rel=0.03)
    assert quiet[0] == pytest.approx(once[0] / 4, rel=1e-3)


def test_rows_that_are_trimmed_do_not_count(model, found):
    body, motion = found.prediction.body, found.design.trajectory
    samples = predict(replace(model, preparation=Preparation(trim_s=0.1)), motion, body).half_widths
    t = np.arange(0.1, motion.duration_s - 0.1 - 1e-9, 0.008)
    q, v, a = motion.at(t)
    names = model.robot.joint_names
    inner = Samples(
        q=q, v=v, a=a, tau=0 * q, rate_hz=125.0, joint_names=names, kinematics="measured"
    )
    inner = replace(inner, usable=np.abs(v) >= Preparation().lowest_speed)
    np.testing.assert_allclose(samples, predict(model, inner, body).half_widths, rtol=0.05)
    assert samples[0] > predict(model, motion, body).half_widths[0]


def test_no_motion_is_too_quick_for_the_recording(model):
    """Of the highest harmonic, central differences show 99.5 % of the acceleration."""
    strong = DesignLimits(replace(LIMITS, v_max=np.full(2, 20.0), a_max=np.full(2, 400.0)))
    made = shortest_motion(model, Accuracy(mass=1.0), limits=strong, harmonics=3, settings=QUICK)
    step = 2 * np.pi * 3 / made.duration_s / QUICK.rate_hz
    assert 1 - 2 * (1 - np.cos(step)) / step**2 == pytest.approx(0.005, rel=0.05)
    assert made.durations_s.min() == made.duration_s


def test_what_was_found_is_a_design_file_and_comes_back_whole(found, tmp_path):
    path = tmp_path / "motion.json"
    found.save(path)
    again = ShortestMotion.load(path)
    assert again.requested == found.requested
    np.testing.assert_array_equal(again.known, found.known)
    np.testing.assert_array_equal(again.reached, found.reached)
    np.testing.assert_array_equal(again.prediction.covariance, found.prediction.covariance)
    np.testing.assert_array_equal(again.prediction.irreducible, found.prediction.irreducible)
    assert again.prediction.shares == found.prediction.shares
    assert again.design.to_dict().keys() == found.design.to_dict().keys()
    assert Design.load(path).std["m"] == pytest.approx(found.prediction.std[0])
    replace(found.design, prediction=None).save(path)
    with pytest.raises(UnreadableFile, match=r"'prediction.requested' is missing"):
        ShortestMotion.load(path)


def test_weigh_reports_the_half_widths_that_were_predicted(ur10):
    """The same noise, the same motion: within a few percent, averaged over seeds."""
    body = typical_payload(ur10.robot, 3.0, (0.02, -0.03, 0.06))
    loaded = swing(ur10.robot, 5, body=body)
    expected = predict(ur10, loaded, body).half_widths
    reported, errors = [], []
    for seed in range(12):
        noise = np.random.default_rng(100 + seed).normal(size=loaded.tau.shape) * WHITE
        payload = weigh(ur10, replace(loaded, tau=loaded.tau + noise))
        reported.append(1.96 * np.concatenate([payload.std[:1], payload.com_std, payload.std[4:]]))
        errors.append(payload.unconstrained.vector - body.vector)
    assert np.median(reported, axis=0) == pytest.approx(expected, rel=0.15)
    assert np.median(np.median(reported, axis=0) / expected) == pytest.approx(1.0, abs=0.06)
    assert np.abs(np.mean(errors, axis=0)[0]) < expected[0]


def test_the_arm_of_a_model_has_its_torques(ur10):
    body = typical_payload(ur10.robot, 2.0, (0.03, 0.01, 0.07))
    samples = swing(ur10.robot, 7)
    motion = samples.q, samples.v, samples.a
    theta = ur10.estimate.value.copy()
    theta[: len(ur10.basis)] += ur10.basis.payload_jacobian @ body.vector
    expected = ur10.rows(samples).Y @ theta
    np.testing.assert_allclose(loaded_arm(ur10, body).torque(*motion), expected, atol=1e-8)
    bare = replace(ur10, robot=ur10.robot.with_links([InertialParameters.nothing()] * 6))
    np.testing.assert_allclose(loaded_arm(bare, body).torque(*motion), expected, atol=1e-8)


@pytest.mark.parametrize("identified", [False, True])
def test_accuracy_has_the_derivative_that_it_says_and_is_that_of_the_prediction(
    ur10, identified, rng
):
    robot, body = ur10.robot, typical_payload(ur10.robot, 3.0)
    model = ur10 if identified else assumed_model(robot, WHITE)
    rows = np.zeros((2, 10))
    rows[0, 0], rows[1, 0], rows[1, 1] = 1.96 / 0.03, -0.1, 40.0
    knowledge = None
    if identified:
        from steelyard.torque._prior import arm_rows, friction_rows, slow_noise

        Z = np.vstack([arm_rows(model), friction_rows(model)])[:, : len(model.basis)]
        knowledge = ArmKnowledge(model.basis.independent, model.basis.payload_jacobian, Z.T @ Z)
    noise = slow_noise(model) if identified else WHITE
    samples = swing(robot, 5)
    objective = PayloadAccuracy(rows, noise, len(samples), knowledge)
    criterion = objective.criterion(robot, DesignLimits.of(robot), robot.home, np.arange(6))
    A = criterion.rows.exact(robot, samples.q, samples.v, samples.a)
    A = A.reshape(-1, A.shape[-1])
    G, change = A.T @ A / len(samples), rng.normal(size=(2, A.shape[1], A.shape[1]))[0]
    change = (change + change.T) * np.sqrt(np.outer(np.diag(G), np.diag(G)))
    h = 1e-8
    _, slope = criterion.merit(G, 3.0)
    up, down = criterion.merit(G + h * change, 3.0)[0], criterion.merit(G - h * change, 3.0)[0]
    assert (up - down) / (2 * h) == pytest.approx((slope * change).sum(), rel=2e-3)
    share = criterion.exact(np.linalg.qr(A, mode="r"))
    C = predict(model, replace(samples, usable=None), body).by_noise
    assert share == pytest.approx(np.sqrt(np.max(np.diag(rows @ C @ rows.T))), rel=0.03)


def test_a_motion_from_a_posture_within_the_torques_of_the_loaded_arm(arm, model):
    """A heavy payload on weak drives: torques of the loaded arm are limits like the others."""
    body, start = typical_payload(arm, 5.0, (0.05, 0.0, 0.0)), np.array([-1.2, 0.3])
    rest = np.abs(loaded_arm(assumed_model(arm), body).torque(start, 0 * start, 0 * start))
    weak = replace(LIMITS, tau_max=1.25 * rest + 3.0)
    made = shortest_motion(
        model,
        Accuracy(mass=0.3),
        typical=body,
        limits=DesignLimits(weak),
        start=start,
        harmonics=3,
        settings=replace(QUICK, time_limit_s=0.1),
    )
    q, v, a = made.design.trajectory.at(np.linspace(0, made.duration_s, 2001))
    np.testing.assert_allclose(q[[0, -1]], [start, start], atol=1e-9)
    tau = np.abs(arm.with_payload(body).torque(q, v, a))
    assert (tau <= weak.tau_max).all()
    assert (np.abs(arm.torque(q, v, a)).max(axis=0) < tau.max(axis=0)).all()
    assert "torque" in {check.limit for check in made.design.certificate.checks}


def test_what_no_motion_reaches_is_refused_with_the_reason(arm, model):
    body, limits = typical_payload(arm, 2.0, (0.05, 0.0, 0.0)), DesignLimits(LIMITS)
    gains = DriveModel(np.full(2, 0.1), gain=[10.0, 8.0], gain_std=[0.0, 0.0], gain_common=0.02)
    words = (
        r"gains known to 2 % limit the accuracy of the mass to 3.9 % \(95 %\), .* calibrate them"
        r" with"
        r" a known mass"
    )
    with pytest.raises(InfeasibleDesign, match=words):
        shortest_motion(arm.with_drive(gains), Accuracy(mass=0.02), typical=body, limits=limits)
    nominal = arm.with_gravity((0.0, -9.81, 0.0))
    words = r"nominal size, which limits the accuracy of the mass to 0.29 % .* give the local size"
    with pytest.raises(InfeasibleDesign, match=words):
        shortest_motion(nominal, Accuracy(mass=0.005), typical=body, limits=limits)
    words = (
        r"no motion of up to 0.6 s is accurate enough: mass to .* kg \(95 %\) instead of 0.001"
        r" kg; most of"
    )
    with pytest.raises(InfeasibleDesign, match=words):
        shortest_motion(
            model, Accuracy(mass=0.001), typical=body, limits=limits, longest_s=0.6, settings=QUICK
        )
    one = RobotModel.from_dh(DHTable.from_rows([[0.0, 0.0, 0.4, 0.0]]), name="turntable")
    with pytest.raises(
        InfeasibleDesign,
        match="the mass of a payload is unobservable with the kinematics of turntable",
    ):
        shortest_motion(one, Accuracy(mass=0.001))
    with pytest.raises(InvalidTrajectory, match="longest_s must be positive, got -1"):
        shortest_motion(arm, Accuracy(mass=0.1), limits=limits, longest_s=-1.0)
    with pytest.raises(InvalidTrajectory, match="needs at least 2 harmonics"):
        shortest_motion(arm, Accuracy(mass=0.1), limits=limits, harmonics=1)


@pytest.mark.parametrize("least_s", [0.61, 1.21, 2.2, 3.3])
def test_where_shorter_motions_break_a_limit_the_shortest_that_does_not_is_looked_for(
    arm, least_s, monkeypatch
):
    """Every motion is more than enough, but those below least_s are beyond a limit."""
    tried = []

    def at(self, duration_s, near):
        tried.append(duration_s)
        if duration_s < least_s:
            return ()
        motion = FourierTrajectory(np.zeros((2, 1)), np.zeros((2, 1)), np.zeros(2), duration_s)
        return (Candidate(motion, None, 0.2 / duration_s),)

    monkeypatch.setattr(DurationSearch, "at", at)
    search = DurationSearch(
        arm,
        DesignLimits(LIMITS),
        None,
        None,
        harmonics=3,
        moving=np.arange(2),
        posture=None,
        settings=QUICK,
    )
    found = search.shortest(60.0)
    assert least_s <= found[0].duration_s < 1.03 * least_s
    assert len(tried) == len(set(tried)) <= 16


def test_what_would_help_is_said(ur10, monkeypatch):
    """Without a search: one insufficient motion of arms with different uncertainties."""
    body, samples = typical_payload(ur10.robot, 3.0), swing(ur10.robot, 5)
    motion = FourierTrajectory.fitted(np.arange(500) / 50, samples.q, period_s=10.0, harmonics=4)
    limits = DesignLimits.of(ur10.robot)
    found = Candidate(motion, limits.certify(ur10.robot, motion, rate_hz=20.0), 9.0)
    monkeypatch.setattr(DurationSearch, "shortest", lambda self, longest_s: (found,))
    sure = replace(
        ur10, estimate=replace(ur10.estimate, covariance=0.01 * ur10.estimate.covariance)
    )
    drive = replace(ur10.robot.drive, gain=np.ones(6), gain_std=np.full(6, 0.001), gain_drift=0.02)
    for model, words in (
        (sure, "most of it comes from noise"),
        (
            ur10,
            "most of it comes from the uncertainty of the arm's parameters: identify it from more",
        ),
        (
            replace(ur10, robot=ur10.robot.with_drive(drive)),
            "from drift: weigh right after an empty run",
        ),
    ):
        with pytest.raises(InfeasibleDesign, match=words):
            shortest_motion(
                model, Accuracy(mass=0.008), typical=body, limits=replace(limits, joints=SLOW)
            )


def test_the_most_accurate_motion_of_a_duration_is_shown(model, found, monkeypatch):
    motion = found.design.trajectory
    certificate = found.design.certificate
    weak = replace(motion, sine=0.5 * motion.sine, cosine=0.5 * motion.cosine)
    ours = (Candidate(weak, certificate, 1.0), Candidate(motion, certificate, 0.9))
    for some in (ours, ours[::-1]):
        monkeypatch.setattr(DurationSearch, "shortest", lambda self, longest_s, some=some: some)
        made = shortest_motion(
            model, found.requested, typical=found.prediction.body, limits=DesignLimits(LIMITS)
        )
        assert made.durations_s.tolist() == [motion.duration_s]
        np.testing.assert_allclose(made.reached[0], found.prediction.half_widths)


def test_a_search_without_any_motion_asks_for_a_longer_one(model, found, monkeypatch):
    candidate = Candidate(found.design.trajectory, found.design.certificate, 0.9)

    def shortest(self, longest_s):
        return (candidate,) if longest_s >= found.duration_s else ()

    monkeypatch.setattr(DurationSearch, "shortest", shortest)
    asked_for = {"typical": found.prediction.body, "limits": DesignLimits(LIMITS)}
    words = "that respects all limits: widen the limits, or increase `longest_s`"
    with pytest.raises(InfeasibleDesign, match=words):
        shortest_motion(model, found.requested, longest_s=0.5 * found.duration_s, **asked_for)
    made = shortest_motion(model, found.requested, longest_s=2 * found.duration_s, **asked_for)
    assert made.duration_s == found.duration_s


def test_what_a_motion_does_not_show_is_called_unknown(model, found, monkeypatch):
    """A mass without a half-width is not told as inf kg instead of nan kg."""
    candidate = Candidate(found.design.trajectory, found.design.certificate, np.inf)
    monkeypatch.setattr(DurationSearch, "shortest", lambda self, longest_s: (candidate,))
    nothing = replace(found.prediction, covariance=np.diag(np.full(10, np.inf)))
    monkeypatch.setattr(_PlannedWeighing, "predicted", lambda self, motion, until_s=None: nothing)
    with pytest.raises(InfeasibleDesign, match="s is accurate enough: nothing is known yet about"):
        shortest_motion(
            model, Accuracy(mass=0.1), typical=found.prediction.body, limits=DesignLimits(LIMITS)
        )


def test_nonsense_is_refused(arm, found):
    with pytest.raises(InvalidSamples, match="'mass' must be a number above 0, got 0"):
        Accuracy(mass=0.0)
    with pytest.raises(InvalidSamples, match="no accuracy is requested"):
        Accuracy()
    with pytest.raises(
        InvalidSamples, match="the mass of a typical payload must be positive, got -1 kg"
    ):
        typical_payload(arm, -1.0)
    with pytest.raises(InvalidSamples, match="noise must be 2 positive numbers"):
        assumed_model(arm, [1.0, -1.0])
    with pytest.raises(InvalidSamples, match="rate_hz must be positive, got 0"):
        predict(assumed_model(arm), found.design.trajectory, found.prediction.body, rate_hz=0.0)


CELL = "q_min = -2.0\nq_max = 2.0\nv_max = 2.0\na_max = 8.0\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, ur10):
    path = tmp_path_factory.mktemp("shortest")
    (path / "cell.toml").write_text(CELL)
    ur10.save(path / "ur10.json")
    return path


def asked(folder, *more):
    words = (
        "shortest-motion",
        "planar2r",
        "--limits",
        "cell.toml",
        "--gravity=0,-9.8123,0",
        "--noise",
        "0.3,0.2",
    )
    return steelyard(*words, "--starts", 1, *more, cwd=folder)


def test_the_command_asks_as_python_does_and_prints_writes_and_draws(folder, found, monkeypatch):
    given = []
    monkeypatch.setattr(
        "steelyard.torque._shortest.shortest_motion",
        lambda *args, **more: given.append((args, more)) or found,
    )
    files = ("-o", "m.json", "--report", "m.html", "--picture", "m.png")
    more = (
        "--accuracy",
        "mass=3%",
        "--accuracy",
        "com=2mm",
        "--accuracy",
        "inertia=5%",
        "--start",
        "0.1,0.2",
    )
    done = asked(folder, *more, *files, "--typical", "2kg:0.05,0,0", "--seed", 3, "--longest", 9)
    assert done.returncode == 0, done.stderr
    (model, requested), options = given[0]
    assert requested.mass == pytest.approx(0.06)
    assert requested.com == pytest.approx(0.002)
    assert requested.inertia == pytest.approx(0.05 * (2 * 0.1**2 / 6 + 2 * 0.05**2))
    np.testing.assert_array_equal(model.estimate.noise, NOISE)
    np.testing.assert_array_equal(options["start"], [0.1, 0.2])
    np.testing.assert_array_equal(options["limits"].joints.a_max, [8.0, 8.0])
    np.testing.assert_array_equal(options["typical"].com, [0.05, 0.0, 0.0])
    assert (options["longest_s"], options["settings"].seed) == (9.0, 3)
    assert "s weigh 2 kg to" in done.stdout
    assert "Predicted 95 % intervals of a payload of 2 kg" in done.stdout
    assert "warning: no identified arm was given" in done.stdout
    assert ShortestMotion.load(folder / "m.json").requested == found.requested
    page = (folder / "m.html").read_text()
    for words in (
        "Expected accuracy",
        "Accuracy over duration",
        "Accuracy over time",
        "on the flange",
    ):
        assert words in page
    assert (folder / "m.png").read_bytes()[:4] == b"\x89PNG"
    said = json.loads(asked(folder, "--accuracy", "mass=60g", "--json").stdout)
    assert said["prediction"]["half_widths"][0] <= 0.012
    assert said["prediction"]["requested"]["com"] is None


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--accuracy", "mass"), "--accuracy is mass=1% or 20g, com=2mm, inertia=5%"),
        (("--accuracy", "weight=1%"), "got 'weight=1%'"),
        (("--accuracy", "com=1%"), "got 'com=1%'"),
        (("--accuracy", "mass=1lb"), "got 'mass=1lb'"),
        (("--accuracy", "mass=-1%"), "got 'mass=-1%'"),
        (("--accuracy", "mass=0%"), "'mass' must be a number above 0, got 0"),
        (("--accuracy", "mass=1%", "--accuracy", "mass=2%"), "--accuracy mass is given twice"),
        (
            ("--accuracy", "mass=1%", "--typical", "heavy"),
            "--typical is KGkg:X,Y,Z, say 3.5kg:0,0,0.05",
        ),
        (("--accuracy", "mass=1%", "--typical", "2kg:0,0"), "got '0,0'"),
        (("--accuracy", "mass=1%", "--typical", "2kg:0,0,nan"), "got '0,0,nan'"),
        (("--accuracy", "mass=1%", "--typical", "--kg"), "got '--kg'"),
        (("--accuracy", "mass=1%", "--typical", "1e5e5kg"), "got '1e5e5kg'"),
        (("--accuracy", "mass=1%", "--typical", "0kg"), "must be positive, got 0 kg"),
        (("--accuracy", "mass=1%", "--period", 3), "No such option: --period"),
        (("--typical", "2kg"), "Missing option '--accuracy'"),
        (("--accuracy", "mass=1%", "--start", "0,x"), "--start takes numbers as 1,2,3; got '0,x'"),
        (("--accuracy", "mass=1%", "--start", "0,3"), "the start posture is outside the limits"),
        (
            ("--accuracy", "mass=1%", "--longest", 0.02),
            "0.02 s is too short for the velocity limit 2",
        ),
    ],
)
def test_the_command_refuses_in_one_line(folder, more, words):
    done = asked(folder, *more)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_model_of_another_arm_is_refused_and_a_model_brings_its_rate(folder, monkeypatch):
    done = steelyard(
        "shortest-motion", "tx60", "--accuracy", "mass=1%", "--model", "ur10.json", cwd=folder
    )
    assert done.returncode == 2
    assert "ur10.json is a model of ur10, not of tx60: identify that arm first" in done.stderr
    words, given = ("shortest-motion", "ur10", "--accuracy", "com=2mm", "--model", "ur10.json"), {}
    done = steelyard(*words, "--noise", "1", cwd=folder)
    assert "ur10.json states noise and gravity: leave --noise and --gravity out" in done.stderr
    monkeypatch.setattr(
        "steelyard.torque._shortest.shortest_motion", lambda *_, **more: given.update(more)
    )
    steelyard(*words, cwd=folder)
    assert given["settings"].rate_hz == 50.0  # that of its recordings
    steelyard(*words, "--rate", 250, cwd=folder)
    assert given["settings"].rate_hz == 250.0
