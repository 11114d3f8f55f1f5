"""Drive gains from a controller's targets and from a payload of known mass."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

import steelyard as sy
from steelyard.errors import InvalidRecording, InvalidRobot, InvalidSamples
from steelyard.identification import identify
from steelyard.identification._covariance import widening
from steelyard.identification.gains import (
    DriveGains,
    gains_from_known_mass,
    gains_from_targets,
)
from steelyard.identification.gains import _known_mass as known_mass
from steelyard.inertia import InertialParameters
from steelyard.recording import Recording
from steelyard.robot import DriveModel, load_robot
from steelyard.signals import Preparation, prepare
from steelyard.simulation import SensorModel, simulate
from steelyard.torque import weigh
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import DoubtKind, Verdict
from steelyard.workflow import KnownMass
from steelyard.workflow._arm import Identification

GAIN = np.array([13.1, 12.2, 9.7, 10.9, 10.2, 11.3])
ROTOR = np.array([0.9, 1.1, 0.5, 0.2, 0.3, 0.15])
NOISE = np.array([1.31, 2.52, 1.14, 0.39, 0.28, 0.33])
"""Torque residuals of a UR10, xu2024 Table VIII, [Nm]."""
LOAD = InertialParameters.from_com(3.5256, [0.01, -0.02, 0.0296], np.diag([0.0064, 0.0064, 0.0045]))

TOOL = InertialParameters.from_com(5.0, [0.08, -0.05, 0.1], np.diag([0.03, 0.03, 0.02]))


@pytest.fixture(scope="module")
def robot():
    return load_robot("ur10")


def correlated(rng, shape, rho=0.9):
    """Noise of unit standard deviation that forgets in about ten rows."""
    return lfilter([np.sqrt(1 - rho**2)], [1, -rho], rng.normal(size=shape), axis=0)


def compensation(v):
    """What a controller may add for friction, [Nm]: it jumps at rest and bends at 0.4 rad/s."""
    size = np.array([18.0, 16.0, 7.0, 3.0, 3.3, 3.1])
    speed = np.abs(v)
    return (
        np.clip(v / 0.008, -1, 1)
        * size
        * (1 + 1.2 * np.minimum(speed, 0.4) + 0.4 * np.maximum(speed - 0.4, 0))
    )


def targets(
    robot, seed=0, *, still=(), lag_s=0.0, gain=GAIN, noise=0.0, commanded=False, friction=1.0
):
    """A log of 20 s as a controller writes it: 4 decimals, a rest before and after the motion."""
    motion = FourierTrajectory.random(
        np.array([0.2, -1.3, 0.9, -1.1, 0.4, 0.3]),
        reach=[0.9] * 6,
        speed=[1.2, 0.9, 1.1, 1.0, 1.2, 1.4],
        period_s=16.0,
        harmonics=5,
        seed=seed,
    )
    clock = np.cumsum(np.random.default_rng(seed).choice([0.010, 0.012], 1850))

    def at(t):
        phase = np.clip(t - 2.0, 0.0, 16.0)
        q, v, a = motion.at(phase)
        moving = ((t > 2.0) & (t < 18.0))[:, None] & ~np.isin(np.arange(6), still)
        q = np.where(np.isin(np.arange(6), still), motion.at(np.zeros(1))[0], q)
        return q, np.where(moving, v, 0.0), np.where(moving, a, 0.0)

    q, v, a = at(clock)
    moment = robot.with_payload(TOOL).inverse_dynamics(q, v, a)
    extra = ROTOR * a + friction * compensation(v)
    scatter = noise * correlated(np.random.default_rng(seed + 1000), moment.shape)
    measured = np.round(at(clock - lag_s)[0], 4)
    return Recording(
        clock,
        measured,
        current_target=np.round((moment + extra + scatter) / gain, 4),
        tau_target=np.round(moment, 4),
        q_commanded=q if commanded else None,
        source=f"log {seed}",
    )


# --- the value


def test_given_gains_say_so():
    values = np.array([12.0, -3.0])
    gains = DriveGains.given(values)
    values[:] = 0
    np.testing.assert_array_equal(gains.value, [12.0, -3.0])
    np.testing.assert_array_equal(gains.std, [0, 0])
    assert (gains.origin, len(gains), gains.known.all()) == ("given", 2, True)
    assert gains.verdict.sentence == "gains as given, with the uncertainty of published gains"
    stated = DriveGains.given([10.0, 11.0], std=0.5)
    assert stated.verdict.sentence == "gains as given, with the stated uncertainty"
    np.testing.assert_allclose(stated.interval(0.95), [[9.02, 10.98], [10.02, 11.98]], atol=1e-4)
    with pytest.raises(ValueError, match="read-only"):
        gains.value[0] = 1.0


@pytest.mark.parametrize("values", [[1.0, np.nan], [1.0, 0.0], [[1.0]], [], 3.0])
def test_given_gains_that_are_none_are_refused(values):
    with pytest.raises(
        InvalidRobot, match="gains must be one finite number other than 0 for each joint"
    ):
        DriveGains.given(values)


def test_contradictions_are_refused():
    with pytest.raises(InvalidRobot, match=r"one note for each joint, got \(2,\), \(1,\) and 2"):
        DriveGains([1.0, 2.0], [0.1], "given", Verdict(), ("", ""))
    with pytest.raises(
        InvalidRobot, match="origin must be one of 'given', 'targets', 'known mass', got 'air'"
    ):
        DriveGains([1.0], [0.1], "air", Verdict(), ("",))
    for value, std in ((np.nan, 0.1), (1.0, np.inf), (1.0, -0.1)):
        with pytest.raises(InvalidRobot, match="infinite exactly for unknown gains"):
            DriveGains([value], [std], "given", Verdict(), ("",))


@pytest.mark.parametrize(("rho", "kappa"), [(0.0, 1.0), (0.6, 4.0), (0.9, 19.0), (-0.5, 1.0)])
def test_correlation_widens_as_theory_says(rng, rho, kappa):
    parts = [correlated(rng, N, rho) for N in (20000, 10000)]
    assert widening(parts) == pytest.approx(kappa, rel=0.15)
    assert widening([np.zeros(100)]) == 1.0


# --- from the controller's targets


@pytest.mark.parametrize("commanded", [True, False])
def test_the_controllers_gains_are_seen_through_friction_and_rotors(robot, commanded):
    gains = gains_from_targets(targets(robot, seed=1, commanded=commanded))
    np.testing.assert_allclose(gains.value, GAIN, rtol=0.02)
    assert (np.abs(gains.value - GAIN) < 4 * gains.std).all()
    assert (gains.std < 0.02 * GAIN).all()
    assert gains.origin == "targets"
    assert gains.verdict.ok
    assert gains.verdict.sentence.startswith("least certain: joint")
    assert len(gains.notes) == 6
    assert "Nm/A from 1 slopes" in gains.notes[0]


@pytest.mark.parametrize("lag_s", [-0.012, 0.02])
def test_a_lag_of_the_measured_motion_is_found(robot, lag_s):
    gains = gains_from_targets([targets(robot, seed, lag_s=lag_s) for seed in (2, 3)])
    np.testing.assert_allclose(gains.value, GAIN, rtol=0.02)
    assert (np.abs(gains.value - GAIN) < 4 * gains.std).all()


def test_intervals_hold_with_correlated_noise(robot):
    z = []
    for seed in range(6):
        gains = gains_from_targets(targets(robot, seed, noise=0.3, commanded=True))
        z.append((gains.value - GAIN) / gains.std)
    assert 0.85 < np.mean(np.abs(z) < 1.96) <= 1.0
    assert np.abs(np.mean(z, axis=0)).max() < 4 / np.sqrt(6)


def test_joints_at_rest_tell_their_gain_where_others_shake_them(robot):
    gains = gains_from_targets(targets(robot, seed=4, still=(1, 2, 4)))
    for j in (1, 2, 4):
        assert gains.value[j] == pytest.approx(GAIN[j], rel=1e-3)


def test_a_moment_that_hardly_varies_gives_no_number(robot):
    still = targets(robot, seed=5, still=range(6))
    gains = gains_from_targets(still)
    assert np.isnan(gains.value).all()
    assert np.isinf(gains.std).all()
    assert np.isnan(gains.interval()).all()
    assert not gains.known.any()
    (doubt,) = gains.verdict.blocking
    assert doubt.kind is DoubtKind.GAINS
    assert doubt.words.startswith(
        "the gains of joint1, joint2, joint3, joint4, joint5, joint6 are unknown: their"
    )
    assert gains.notes[0] == "unknown: its target moment varies too little to determine it"
    with pytest.raises(InvalidRobot, match="'gain' must be finite"):
        robot.with_drive(replace(robot.drive, gain=gains.value))
    together = gains_from_targets([still, targets(robot, seed=5, still=(5,))])
    np.testing.assert_array_equal(together.known, [True] * 5 + [together.known[5]])


def test_a_current_that_has_nothing_to_do_with_the_moment_gives_no_number(robot, rng):
    recording = targets(robot, seed=6)
    noise = replace(recording, current_target=rng.normal(size=recording.q.shape))
    gains = gains_from_targets(noise)
    assert gains.notes[5].startswith("unknown: 1/gain is ")
    assert np.isnan(gains.value[5])


@pytest.mark.thorough
def test_friction_may_change_between_recordings_but_gains_may_not(robot):
    runs = [targets(robot, 7), targets(robot, 8, friction=1.4)]
    agreed = gains_from_targets(runs)
    np.testing.assert_allclose(agreed.value, GAIN, rtol=0.02)
    disagreed = gains_from_targets([runs[0], targets(robot, 8, gain=1.1 * GAIN)])
    assert (disagreed.std > 3 * agreed.std).all()
    assert "times more than expected" in disagreed.notes[1]


@pytest.mark.thorough
def test_broken_rows_gaps_and_outliers_do_not_matter(robot, rng):
    recording = targets(robot, 9)
    current, moment, q = (
        np.array(x) for x in (recording.current_target, recording.tau_target, recording.q)
    )
    rows = rng.choice(len(q), 40, replace=False)
    current[rows[:20]] += 5.0
    moment[rows[20:30], 2] = np.nan
    q[rows[30:]] = np.nan
    t = recording.t + np.where(recording.t > 9.0, 1.5, 0.0)
    t[501] = t[500]
    broken = Recording(t, q, current_target=current, tau_target=moment)
    clean = gains_from_targets(recording)
    gains = gains_from_targets(broken)
    np.testing.assert_allclose(gains.value, GAIN, rtol=0.03)
    assert (np.abs(gains.value - clean.value) < 4 * np.hypot(gains.std, clean.std)).all()


def test_signs_that_disagree_are_reported(robot):
    gains = gains_from_targets(targets(robot, 10, gain=-GAIN))
    np.testing.assert_allclose(gains.value, -GAIN, rtol=0.02)
    assert gains.notes[0].endswith("negative: current and moment have opposite signs")


def test_targets_that_are_missing_are_refused(robot):
    whole = targets(robot, 11)
    with pytest.raises(InvalidSamples, match="there are no recordings to determine gains from"):
        gains_from_targets([])
    with pytest.raises(
        InvalidRecording, match=r"'log 11' lacks target currents or target moments .*known mass"
    ):
        gains_from_targets(replace(whole, tau_target=None))
    with pytest.raises(
        InvalidRecording, match=r"of different joints: joint1, .* and a, b, c, d, e, f"
    ):
        gains_from_targets([whole, replace(whole, joint_names=tuple("abcdef"))])
    q = np.full(whole.q.shape, np.nan)
    q[3] = 0.0
    with pytest.raises(InvalidRecording, match="'log 11' has fewer than two complete rows"):
        gains_from_targets(replace(whole, q=q))


# --- from a known mass


def currents(robot, payload=None, *, seed=0, noise=NOISE, duration_s=10.0):
    """Motor currents along the published trajectory, with correlated noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(0, duration_s, 1 / 125)
    q, v, a = FourierTrajectory.load("xu2024").at(t)
    carrying = robot if payload is None else robot.with_payload(payload)
    tau = carrying.torque(q, v, a) + noise * correlated(rng, q.shape, rho=0.6)
    return Recording(
        t,
        q,
        robot.joint_names,
        current=tau / robot.drive.gain,
        q_commanded=q,
        v_commanded=v,
        a_commanded=a,
    )


COMMANDED = Preparation(
    cutoff_hz=None, kinematics="commanded", lag_s=(0.0,) * 6
)  # as it was simulated


def by_mass(robot, empty, loaded, mass=LOAD.mass, *, guess, spread=0.2, preparation=None):
    """Gains from a known mass, where all that is known of them is a guess."""
    guess = np.asarray(guess)
    drive = replace(robot.drive, gain=guess, gain_std=spread * guess, gain_common=None)
    parts = [[prepare(run, preparation, drive=drive) for run in runs] for runs in (empty, loaded)]
    model = identify(robot.with_drive(drive), parts[0])
    payload = weigh(model, parts[1])
    return gains_from_known_mass(
        model, payload, mass, empty=parts[0], loaded=parts[1], spread=spread
    )


@pytest.mark.thorough
def test_a_known_mass_finds_the_gains_of_a_simulated_arm(robot, rng):
    sensors = SensorModel(torque_std=NOISE)
    runs = [
        simulate(
            robot, FourierTrajectory.load("xu2024"), payload=load, sensors=sensors, seed=k
        ).recording
        for k, load in enumerate((None, LOAD))
    ]
    gains = by_mass(
        robot, runs[:1], runs[1:], guess=robot.drive.gain * np.exp(rng.normal(0, 0.2, 6))
    )
    assert (np.abs(gains.value - robot.drive.gain) < 3 * gains.std).all()
    np.testing.assert_allclose(gains.value[:4], robot.drive.gain[:4], rtol=0.03)
    assert gains.origin == "known mass"
    assert gains.verdict.sentence.startswith("gains from a payload of 3.5256 kg, known to 0.2")
    assert gains.notes[1].endswith("Nm/A; 0% of the information is the initial guess")
    worth = gains.in_drive(robot.drive)
    np.testing.assert_allclose(
        worth.gain_errors @ worth.gain_errors.T, gains.common @ gains.common.T
    )


@pytest.mark.thorough
def test_intervals_of_a_known_mass_hold(robot, rng):
    z = []
    for seed in range(3):
        gains = by_mass(
            robot,
            [currents(robot, seed=2 * seed)],
            [currents(robot, LOAD, seed=2 * seed + 1)],
            guess=robot.drive.gain * np.exp(rng.normal(0, 0.2, 6)),
            preparation=COMMANDED,
        )
        z.append(np.log(gains.value / robot.drive.gain) / (gains.std / gains.value))
    assert 0.85 < np.mean(np.abs(z) < 1.96) <= 1.0
    assert np.abs(np.mean(z, axis=0)).max() < 4 / np.sqrt(3)


@pytest.mark.thorough
def test_noise_of_the_current_does_not_shrink_the_gains(robot):
    runs = [
        [currents(robot, load, seed=10 * s + k, noise=8 * NOISE) for s in range(3)]
        for k, load in enumerate((None, LOAD))
    ]
    gains = by_mass(robot, *runs, guess=1.1 * robot.drive.gain, preparation=COMMANDED)
    assert (np.abs(gains.value - robot.drive.gain) < 3 * gains.std).all()


def test_a_feather_leaves_the_scale_to_the_guess_and_says_so(robot):
    feather = InertialParameters.from_com(0.02, [0.01, 0.0, 0.03], 1e-5 * np.eye(3))
    gains = by_mass(
        robot,
        [currents(robot)],
        [currents(robot, feather, seed=1)],
        feather.mass,
        guess=1.3 * robot.drive.gain,
        spread=0.1,
        preparation=COMMANDED,
    )
    assert gains.verdict.ok
    assert gains.verdict.has(DoubtKind.GAINS)
    assert "the payload hardly determines shoulder_pan_joint" in gains.verdict.doubts[0].words
    assert gains.verdict.doubts[1].words.startswith("the run with 0.02 kg is doubtful: ")
    assert (gains.std > 0.02 * gains.value).all()
    shares = [int(note.split("; ")[1].split("%")[0]) for note in gains.notes]
    np.testing.assert_allclose(shares, 100 * (gains.std / gains.value / 0.1) ** 2, atol=0.51)
    assert (gains.value > 0).all()


def test_a_wrong_mass_scales_every_gain(robot):
    runs = (
        [currents(robot, noise=0.05 * NOISE)],
        [currents(robot, LOAD, seed=1, noise=0.05 * NOISE)],
    )
    found = [
        by_mass(robot, *runs, mass, guess=robot.drive.gain, spread=2.0, preparation=COMMANDED)
        for mass in (LOAD.mass, 1.2 * LOAD.mass)
    ]
    np.testing.assert_allclose(found[1].value / found[0].value, 1.2, rtol=1e-3)


def test_gains_that_do_not_converge_are_unknown(robot, monkeypatch):
    monkeypatch.setattr(known_mass, "_MAX_ITERATIONS", 1)
    gains = by_mass(robot, [currents(robot)], [currents(robot, LOAD)], guess=robot.drive.gain)
    assert not gains.verdict.ok
    assert gains.verdict.sentence.startswith(
        "do not use this: gains and base parameters did not converge within 1 iterations"
    )
    assert np.isnan(gains.value).all()
    assert gains.notes[0] == "unknown: the iteration did not converge"


@pytest.mark.thorough
def test_what_a_known_mass_needs(robot):
    run, gain = currents(robot), robot.drive.gain
    drive = replace(robot.drive, gain=gain, gain_std=0.2 * gain)
    part = prepare(run, COMMANDED, drive=drive)
    model = identify(robot.with_drive(drive), part)
    payload = weigh(model, part)
    for mass, spread in ((0.0, 0.2), (1.0, 0.0), (np.nan, 0.2), (1.0, np.inf)):
        with pytest.raises(
            InvalidSamples, match=r"(a known mass \[kg\]|spread) must be positive, got"
        ):
            gains_from_known_mass(model, payload, mass, empty=[part], loaded=[part], spread=spread)
    with pytest.raises(InvalidSamples, match="at least one recording without it and one with it"):
        gains_from_known_mass(model, payload, 1.0, empty=[], loaded=[part])
    with pytest.raises(
        InvalidRobot, match="a known mass corrects drive gains: the model must be fitted to motor"
    ):
        gains_from_known_mass(
            replace(model, from_currents=False),
            payload,
            1.0,
            empty=[part],
            loaded=[part],
        )
    coupled = robot.with_drive(replace(drive, coupling=np.eye(6) + 0.1 * np.eye(6, k=-1)))
    part = prepare(run, COMMANDED, drive=coupled.drive)
    model = identify(coupled, part)
    with pytest.raises(
        InvalidRobot, match="ur10 has coupled drives; gains from a known mass need one motor"
    ):
        gains_from_known_mass(model, weigh(model, part), 1.0, empty=[part], loaded=[part])


OTHER = InertialParameters.from_com(1.7, [-0.03, 0.04, 0.06], np.diag([0.004, 0.005, 0.003]))


def calibrated(robot, wrong, *, seed=0, known=LOAD):
    """Models of an arm with wrong gains, without and with a known mass, and a loaded run."""
    arm = robot.with_drive(replace(robot.drive, gain=wrong, gain_drift=0.0))
    empty, weighed, other = (
        currents(robot, load, seed=3 * seed + k, noise=0.3 * NOISE, duration_s=6.0)
        for k, load in enumerate((None, known, OTHER))
    )
    options = {"friction": "linear", "preparation": COMMANDED}
    models = [
        sy.identify(arm, empty, gains=gains, **options)
        for gains in ("robot", KnownMass(known.mass, weighed))
    ]
    return models, other


@pytest.mark.thorough
def test_a_known_mass_corrects_the_scale_of_gains_that_are_nearly_right(robot, rng):
    errors, z = [], []
    for seed in range(3):
        wrong = robot.drive.gain * np.exp(rng.normal(0, 0.02) + rng.normal(0, 0.01, 6))
        models, other = calibrated(robot, wrong, seed=seed)
        found = [sy.weigh(model, other) for model in models]
        errors.append([payload.unconstrained.mass / OTHER.mass - 1 for payload in found])
        z.append((found[1].unconstrained.mass - OTHER.mass) / found[1].std[0])
        assert (
            found[1].std[0] / found[1].mass < found[0].std[0] / found[0].mass
        )  # more is known: never wider
        assert found[1].shares["gains"] < found[0].shares["gains"]
        before, after = (model.robot.drive.gain_errors for model in models)
        assert np.linalg.eigvalsh(before @ before.T - after @ after.T).min() > -1e-12
    without, corrected = np.sqrt(np.mean(np.square(errors), axis=0))
    assert corrected < 0.6 * without
    assert np.sqrt(np.mean(np.square(z))) < 1.3


@pytest.mark.thorough
def test_gains_that_contradict_a_known_mass_are_found_anew_and_doubted(robot):
    models, other = calibrated(robot, 1.2 * robot.drive.gain)
    words = [doubt.words for doubt in models[1].verdict.blocking]
    assert len(words) == 1
    assert words[0].startswith("with the present gains a known mass of 3.5256 kg weighs 4.2")
    assert (
        "check the mass and its run; if the gains are guesses, state a gain_std above 5% in"
        in words[0]
    )
    payload = sy.weigh(models[1], other)
    assert abs(payload.mass / OTHER.mass - 1) < 0.03
    assert payload.verdict.has(DoubtKind.MODEL_DOUBTED)


def test_a_known_mass_is_weighed_as_the_model_weighs(robot):
    """The gains match the cut-off and friction law with which the model weighs."""
    curved = replace(robot.drive, exponent=np.full(6, 0.6), viscous=2 * robot.drive.viscous)
    arm, load = (
        robot.with_drive(curved),
        KnownMass(LOAD.mass, currents(robot.with_drive(curved), LOAD, seed=1)),
    )
    how = Preparation(cutoff_hz=7.0)
    options = {"friction": "power", "preparation": how}
    before, after = (
        sy.identify(arm, currents(arm), gains=gains, **options) for gains in ("robot", load)
    )
    payload = sy.weigh(before, load.data)
    expected = gains_from_known_mass(before, payload, LOAD.mass, empty=[], loaded=[])
    np.testing.assert_allclose(after.robot.drive.gain, expected.value, rtol=1e-12)
    assert after.preparation == how
    assert after.law.name == "power"


def test_a_known_mass_says_nothing_of_gains_that_are_exact_or_absent(robot):
    exact = robot.with_drive(replace(robot.drive, gain_std=np.zeros(6)))
    load = KnownMass(LOAD.mass, currents(robot, LOAD, seed=1))
    options = {"friction": "linear", "preparation": COMMANDED}
    found = Identification.of(exact, currents(robot), gains=load, **options)
    np.testing.assert_array_equal(found.model.robot.drive.gain, robot.drive.gain)
    assert "gains are stated to be exact, so none is corrected" in found.gains_from
    measured = replace(currents(robot), current=None, tau=currents(robot).current)
    with pytest.raises(
        InvalidSamples, match="a known mass corrects drive gains: the recordings need motor"
    ):
        sy.identify(robot, measured, gains=load, **options)
    with pytest.raises(InvalidSamples, match="a known mass needs at least one recording with it"):
        sy.identify(robot, currents(robot), gains=KnownMass(1.0, ()), **options)


# --- what gains are worth


def test_a_gain_at_work_is_worth_less_than_its_fit():
    drive = DriveModel.ideal(2)
    maker, stated = (DriveGains.given([10.0, -12.0], std=std).in_drive(drive) for std in (0.0, 0.3))
    np.testing.assert_allclose(maker.gain_std, [0.1, 0.12])
    np.testing.assert_allclose(maker.gain_common, 0.02 * np.ones((2, 1)))
    np.testing.assert_allclose(maker.gain_errors, [[0.01, 0, 0.02], [0, 0.01, 0.02]])
    np.testing.assert_allclose(stated.gain_std, 0.3)
    np.testing.assert_allclose(stated.gain_errors, np.diag([0.03, 0.025]))
    found = DriveGains(
        [10.0, 12.0], [0.05, 0.13], "targets", Verdict(), ("", ""), 0.005 * np.ones((2, 1))
    )
    known = found.in_drive(drive)
    np.testing.assert_allclose(known.gain_std, [0.1, np.sqrt(0.13**2 - 0.06**2 + 0.12**2)])
    np.testing.assert_allclose(known.gain_common, 0.005)


def test_drives_know_what_makers_numbers_are_worth_unless_they_say():
    drive = replace(DriveModel.ideal(3), gain=[10.0, -5.0, 8.0])
    assert drive.gain_errors.shape == (3, 0)
    maker = drive.with_tolerances()
    np.testing.assert_allclose(np.sqrt((maker.gain_errors**2).sum(axis=1)), np.hypot(0.01, 0.02))
    assert maker.gain_drift == 0.0015
    exact = replace(drive, gain_std=0.0).with_tolerances()
    assert not exact.gain_errors.any()
    assert exact.gain_drift == 0.0
    said = replace(
        drive, gain_std=0.1, gain_common=[[0.01, 0.0]] * 3, gain_drift=0.01
    ).with_tolerances()
    np.testing.assert_allclose(
        said.gain_errors, np.hstack([np.diag([0.01, 0.02, 0.0125]), said.gain_common])
    )
    assert said.gain_drift == 0.01
    some = said.of_joints(np.array([True, False, True]))
    np.testing.assert_allclose(some.gain_common, [[0.01, 0.0]] * 2)
    assert DriveModel.ideal(2).with_tolerances().gain_drift is None
    with pytest.raises(InvalidRobot, match="'gain_common' must have shape"):
        replace(drive, gain_common=[0.1, 0.1, 0.1])
    with pytest.raises(InvalidRobot, match=r"'gain_common' must have shape .* n = 3, got \(2, 1\)"):
        replace(drive, gain_common=[[0.1], [0.1]])
    with pytest.raises(InvalidRobot, match="'gain_drift' must be a finite number of at least 0"):
        replace(drive, gain_drift=-0.1)


@pytest.mark.thorough
def test_a_common_error_of_all_gains_is_covered(robot, rng):
    inside = []
    for seed in range(8):
        wrong = np.exp(rng.normal(0, 0.02)) * robot.drive.gain
        runs = [
            prepare(
                currents(robot, load, seed=2 * seed + k, duration_s=5.0),
                COMMANDED,
                drive=replace(robot.drive, gain=wrong),
            )
            for k, load in enumerate((None, LOAD))
        ]
        payload = weigh(identify(robot, runs[0]), runs[1])
        inside.append(abs(payload.unconstrained.mass - LOAD.mass) < 1.96 * payload.std[0])
    assert np.mean(inside) > 0.9


@pytest.mark.thorough
def test_temperatures_say_how_far_gains_may_have_drifted(robot, tmp_path):
    """0.1 % for each kelvin between empty and loaded runs, with a doubt; when tracking too."""
    empty, loaded = currents(robot, duration_s=5.0), currents(robot, LOAD, seed=1, duration_s=5.0)
    cold = np.full(empty.q.shape, 30.0)
    warm = cold + np.array([0.0, 8.0, 3.0, 0.0, 0.0, -1.0])
    options = {"friction": "linear", "gains": "robot", "preparation": COMMANDED}
    sy.identify(robot, replace(empty, temperature=cold), **options).save(tmp_path / "model.json")
    model = sy.DynamicModel.load(tmp_path / "model.json")
    np.testing.assert_allclose(model.temperature, 30.0)
    drift = model.robot.drive.gain_drift
    for weigh_one in (sy.weigh, lambda arm, data: sy.track(data, model=arm).payload):
        same, other, unknown = (
            weigh_one(model, replace(loaded, temperature=values)) for values in (cold, warm, None)
        )
        np.testing.assert_allclose(same.covariance, unknown.covariance)
        ratio = (
            other.shares["drift"]
            * other.covariance[0, 0]
            / (same.shares["drift"] * same.covariance[0, 0])
        )
        np.testing.assert_allclose(ratio, (drift**2 + 0.008**2) / drift**2)
        words = [doubt.words for doubt in other.verdict.doubts if doubt.kind is DoubtKind.GAINS]
        assert words == [
            "the temperature of shoulder_lift_joint differs by +8 K from that of the"
            " identification: gains may have changed by 0.8 %"
        ]
        assert not same.verdict.has(DoubtKind.GAINS)
    known = Identification.of(
        robot,
        replace(empty, temperature=cold),
        **options | {"gains": KnownMass(LOAD.mass, replace(loaded, temperature=warm))},
    )
    assert any("+8 K" in doubt.words for doubt in known.model.verdict.doubts)


def test_temperatures_of_a_controller_are_read(tmp_path):
    columns = [
        f"{word}_{j}"
        for word in ("actual_q", "actual_current", "joint_temperatures")
        for j in range(6)
    ]
    values = np.arange(10)[:, None] + np.arange(18)
    table = np.column_stack([0.01 * np.arange(10), values])
    np.savetxt(
        tmp_path / "log.csv",
        table,
        delimiter=",",
        header=",".join(["timestamp", *columns]),
        comments="",
    )
    recording = sy.read(tmp_path / "log.csv")
    np.testing.assert_allclose(recording.temperature, values[:, 12:])


# --- the robot file against the controller


@pytest.mark.parametrize(("wrong", "chosen", "blocked"), [
    (1.0, "auto", None),
    (1.2, "auto", True),
    (1.2, "robot", False),
])  # fmt: skip
def test_gains_of_a_file_are_compared_with_the_controllers_targets(robot, wrong, chosen, blocked):
    log = targets(robot, seed=3, commanded=True)
    noise = 0.02 * np.random.default_rng(7).normal(size=log.q.shape)
    arm = robot.with_drive(replace(robot.drive, gain=wrong * GAIN))
    log = replace(log, current=log.current_target + noise)
    verdict = sy.identify(arm, log, friction="linear", gains=chosen).verdict
    doubts = [doubt for doubt in verdict.doubts if doubt.kind is DoubtKind.GAINS]
    if blocked is None:
        assert doubts == []
    else:
        assert [doubt.blocks for doubt in doubts] == [blocked]
        assert "state `gains` as 'targets' or 'robot'" in doubts[0].words
