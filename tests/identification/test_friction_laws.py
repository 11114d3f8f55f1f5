from dataclasses import replace

import numpy as np
import pytest

from steelyard.errors import InvalidRobot, InvalidSamples, UnknownName
from steelyard.identification import (
    FRICTION_MODELS,
    DynamicModel,
    FrictionLaw,
    choose_friction,
    essential,
    identify,
    solved_again,
)
from steelyard.identification._problem import RowMaker
from steelyard.identification._validation import _LeftOut, _simplest, validation_of
from steelyard.recording import Samples
from steelyard.robot import ParameterBasis, load_robot
from steelyard.robot._parameters import Parameter, ParameterKind
from steelyard.robot._transmission import JointFriction, Transmission
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import DoubtKind

ROBOT = load_robot("planar2r")
COEFFICIENTS = {
    ParameterKind.COULOMB: [4.0, 2.5],
    ParameterKind.VISCOUS: [3.0, 1.5],
    ParameterKind.OFFSET: [0.3, -0.2],
    ParameterKind.STRIBECK: [1.5, 0.8],
    ParameterKind.ASYMMETRY: [0.7, -0.4],
    ParameterKind.LOAD_SHARE: [0.08, 0.12],
}
LAWS = (*sorted(FRICTION_MODELS), "linear-asymmetric", "presliding-load-asymmetric")
SHAPES = {"exponent": [0.6, 0.8], "stribeck_speed": [0.15, 0.25]}
WIDTHS = {
    "smooth": [0.05, 0.03],
    "presliding": [4e-3, 2e-3],
    "exact": [1.0, 1.0],
    "band": [0.02, 0.02],
}


def motion(seed, seconds=20.0, rate_hz=100.0):
    series = FourierTrajectory.random(
        [0.3, -0.4], reach=[1.5, 1.5], speed=[1.5, 2.0], period_s=seconds, harmonics=8, seed=seed
    )
    q, v, a = series.at(np.arange(0, seconds, 1 / rate_hz))
    return Samples(q, v, a, np.zeros_like(q), rate_hz, ROBOT.joint_names, "measured")


def true_law(name):
    law = FrictionLaw.named(name, 2)
    shapes = {**SHAPES, "width": WIDTHS[law.direction]}
    return law.with_log_shapes(np.log([shapes[s] for s in law.free_shapes]).reshape(-1, 2))


def made(name, seed, noise=0.05):
    """Samples of an arm that obeys a law, and its true parameters."""
    law, samples = true_law(name), motion(seed)
    maker = RowMaker(ROBOT, ParameterBasis.of(ROBOT))
    parameters = maker.parameters(law)
    base = ParameterBasis.of(ROBOT).K @ ROBOT.parameters
    theta = np.concatenate([base, np.zeros(len(parameters) - len(base))])
    for kind, values in COEFFICIENTS.items():
        which = parameters.of_kind(kind)
        theta[which] = values[: which.sum()]
    tau = maker.rows(samples, law, theta).Y @ theta
    tau = tau + noise * np.random.default_rng(seed).normal(size=tau.shape)
    return (
        Samples(samples.q, samples.v, samples.a, tau, 100.0, ROBOT.joint_names, "measured"),
        law,
        theta,
    )


def strange(samples, size=1.0):
    """The same samples with friction that no law has, in which shapes do not converge."""
    slow = np.maximum(np.abs(samples.v), 0.02)
    falling = np.array([6.0, 4.0]) * np.sign(samples.v) / np.sqrt(slow)
    return replace(samples, tau=samples.tau + size * falling)


def test_friction_of_each_run_counts_where_shapes_do_not_converge():
    runs = [strange(made("smooth-power", seed)[0], size) for seed, size in ((3, 0.8), (4, 1.2))]
    models = [identify(ROBOT, run, friction="smooth-power") for run in (*runs, runs)]
    assert DoubtKind.NOT_CONVERGED in {doubt.kind for doubt in models[-1].verdict.doubts}
    first, second, both = (model.estimate.noise for model in models)
    assert (both < 1.1 * np.maximum(first, second)).all()


@pytest.mark.parametrize("name", ["smooth-power", "load"])
def test_residuals_are_those_of_the_stated_parameters_where_shapes_do_not_converge(name, tmp_path):
    samples = made(name, 3)[0]
    odd = strange(samples)
    model = identify(ROBOT, odd, friction=name)
    assert DoubtKind.NOT_CONVERGED in {doubt.kind for doubt in model.verdict.doubts}
    residuals = odd.tau - model.rows(odd).Y @ model.estimate.value
    used = odd.away_from_reversals().mask
    rms = np.sqrt(np.mean(residuals**2, axis=0, where=used))
    assert model.estimate.noise == pytest.approx(rms, rel=0.02)
    model.save(tmp_path / "model.json")
    assert DynamicModel.load(tmp_path / "model.json").law.name == name


@pytest.mark.parametrize("name", LAWS)
def test_every_law_is_recovered_from_its_own_torques(name):
    parts = [made(name, seed) for seed in (1, 2)]
    model = identify(ROBOT, [part for part, _, _ in parts], friction=name)
    _, law, theta = parts[0]
    assert np.mean(np.abs(model.estimate.value - theta) / model.estimate.std < 3) > 0.95
    moved = (model.law.log_shapes - law.log_shapes) / np.maximum(model.shape_std, 1e-12)
    assert (np.abs(moved) < 4).all()
    assert model.estimate.noise == pytest.approx(0.05, rel=0.1)


def test_the_direction_of_presliding_is_a_memory_of_the_way_travelled():
    law = FrictionLaw.named("presliding", 1, width=np.array([0.01]))
    u = np.concatenate([np.linspace(0, 0.1, 50), np.full(30, 0.1), np.linspace(0.1, 0.05, 50)])[
        :, None
    ]
    s = law.columns(u, np.zeros_like(u))[0]
    assert s[49, 0] == pytest.approx(1, abs=1e-4)
    np.testing.assert_array_equal(s[50:80, 0], np.full(30, s[49, 0]))  # at rest nothing changes
    travelled = u[79] - u[84:]
    np.testing.assert_allclose(s[84:, 0], (-1 + 2 * np.exp(-travelled / 0.01))[:, 0], atol=1e-3)


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("name", LAWS)
def test_stepping_with_memory_gives_the_columns_of_the_batch(name, coupled, rng):
    """Rows one at a time, in blocks, or all at once, of drives that turn one joint or several."""
    law, samples = true_law(name), motion(3)
    q, v = samples.q[:500], np.where(np.arange(500)[:, None] % 50 < 3, 0.0, samples.v[:500])
    load = 30 * rng.normal(size=q.shape)
    drives = Transmission(np.array([[1.0, 0.0], [0.4, 1.0]]) if coupled else np.eye(2))
    u, w = drives.to_drives(q), drives.to_drives(v)
    batch = law.columns(u, w, load)
    for size in (1, 7):
        memory, parts = law.init(u[0]), []
        for i in range(0, len(u), size):
            rows = slice(i, i + size)
            memory, columns = law.step(memory, u[rows], w[rows], load[rows])
            parts.append(columns)
        np.testing.assert_allclose(np.concatenate(parts, axis=1), batch, atol=1e-12)
    memory = law.init(u[0])
    for i in range(len(u)):
        memory, columns = law.step(memory, u[i], w[i], load[i])
        np.testing.assert_allclose(columns, batch[:, i], atol=1e-12)
    coefficients = rng.uniform(0.02, 0.2, (len(law.terms), 2))
    friction = JointFriction(law, coefficients, rng.normal(size=2), drives)
    _, taken = friction.along(friction.init(q[0]), q, v, drives.to_joints(load))
    np.testing.assert_allclose(
        taken, np.einsum("tj,tkj->kj", coefficients, batch) @ drives.matrix, atol=1e-12
    )
    memory = friction.init(q[0])
    for i in range(len(q)):
        tau = drives.to_joints(load[i] + friction.offset) + taken[i]
        memory, felt, carried = friction.step(memory, q[i], v[i], tau)
        np.testing.assert_allclose(felt, taken[i] + drives.to_joints(friction.offset), atol=1e-12)
        np.testing.assert_allclose(carried, load[i], atol=1e-11)


def test_a_law_breaks_loose_with_all_of_its_stribeck_excess():
    law = true_law("stribeck")
    assert [kind.symbol for kind in law.terms] == ["Fc", "Fv", "Fs"]
    np.testing.assert_allclose(law.breakaway(0.05), [[1, 1], [0.05, 0.05], [1, 1]])
    slides = law.at(np.full(2, 0.05), s=np.ones(2))[2]
    np.testing.assert_allclose(slides, np.exp(-((0.05 / np.array(SHAPES["stribeck_speed"])) ** 2)))
    load = np.array([-20.0, 30.0])
    np.testing.assert_allclose(true_law("presliding-load").breakaway(0.1, load)[-1], [20.0, 30.0])


def test_friction_that_differs_by_direction_is_found_and_not_invented():
    """The law that is chosen without it is compared with itself with it."""
    plain = [made("linear", seed, noise=0.02)[0] for seed in (1, 2, 3)]
    choice = choose_friction(ROBOT, plain)
    assert choice.law == "linear"
    assert list(choice.scores)[-1] == "linear-asymmetric"
    differing = [made("linear-asymmetric", seed, noise=0.02)[0] for seed in (1, 2, 3)]
    choice = choose_friction(ROBOT, differing)
    assert choice.law == "linear-asymmetric"
    assert choice.scores["linear-asymmetric"] < 0.3 * choice.scores["linear"]
    assert choose_friction(ROBOT, differing, laws=["linear", "band"]).law == "linear"


@pytest.mark.thorough
def test_the_law_that_made_the_data_predicts_best():
    for name in ("presliding-load", "smooth-power"):
        parts = [made(name, seed, noise=0.02)[0] for seed in (1, 2, 3)]
        choice = choose_friction(ROBOT, parts)
        assert choice.law == name
        assert choice.scores[name] == pytest.approx(min(choice.scores.values()), rel=0.03)
    assert "3 recordings in 3 folds" in choice.folds


def left_out(residuals, friction=1.0):
    """Predictions of eight stretches of two joints with torques of unit RMS."""
    residuals = np.array(residuals, dtype=float)
    folds = np.broadcast_to(np.resize(friction, (1, 2, 2)), (4, 2, 2))
    return _LeftOut(residuals, np.ones_like(residuals), folds, FrictionLaw.named("linear", 2))


def test_a_law_with_one_wild_stretch_is_not_as_good_as_the_best():
    """By its own standard error it would be: the mean of its differences is below one of them."""
    rng = np.random.default_rng(1)
    good = np.exp(0.2 * rng.normal(size=(8, 2)))
    good[5] *= 1e3
    wild = 1.2 * good
    wild[3] *= 1e4
    wild[5] = 0.9 * good[5]
    difference = (wild - good).mean(axis=1)
    assert difference.mean() < difference.std(ddof=1) / np.sqrt(8)
    assert _simplest({"simple": left_out(wild), "best": left_out(good)}) == "best"


def test_the_simplest_law_that_is_not_worse_is_chosen():
    rng = np.random.default_rng(2)
    best = np.exp(0.5 * rng.normal(size=(8, 2)))
    as_good = best * np.exp(0.02 * rng.normal(size=(8, 1)) + 0.001)
    worse = 1.05 * best * np.exp(0.02 * rng.normal(size=(8, 2)))
    laws = {"a": left_out(worse), "b": left_out(as_good), "c": left_out(best)}
    assert _simplest(laws) == "b"


def test_a_gain_that_other_recordings_would_not_show_does_not_count():
    """Every stretch is better by 0.3 %, which has no standard error at all; 1.5 % count."""
    best = np.exp(0.5 * np.random.default_rng(4).normal(size=(8, 2)))
    hardly = {"simple": left_out(np.exp(2 * 0.003) * best), "best": left_out(best)}
    clearly = {"simple": left_out(np.exp(2 * 0.015) * best), "best": left_out(best)}
    assert _simplest(hardly) == "simple"
    assert _simplest(clearly) == "best"


def test_friction_with_impossible_signs_counts_against_a_law():
    same = np.ones((8, 2)) + 0.1 * np.random.default_rng(3).normal(size=(8, 2))
    negative = left_out(same, friction=[1.0, 1.0, 1.0, -5.0])
    assert _simplest({"a": negative, "b": left_out(same)}) == "b"
    assert _simplest({"a": negative, "b": left_out(2 * same)}) == "a"
    uncertain = np.array([1.0, 1.0, 1.0, -5.0]) + np.array([[-9.0], [9.0], [-9.0], [9.0]])
    unsure = replace(left_out(same), friction=uncertain.reshape(4, 2, 2))
    assert _simplest({"a": unsure, "b": left_out(same)}) == "a"


def test_one_recording_is_cut_into_stretches_and_auto_names_its_choice():
    part = made("smooth", 4, noise=0.02)[0]
    model = identify(ROBOT, part, friction="auto")
    assert model.choice is not None
    assert "4 stretches" in model.choice.folds
    assert model.law.name == model.choice.law
    with pytest.raises(InvalidSamples, match="300 samples are too few to choose a friction law"):
        identify(ROBOT, part.rows(slice(0, 300)), friction="auto")


def test_huber_is_not_moved_by_outliers_and_ordinary_is_not_weighted():
    part, _, theta = made("linear", 5)
    tau = part.tau.copy()
    tau[::37] += 30.0
    dirty = Samples(part.q, part.v, part.a, tau, 100.0, ROBOT.joint_names, "measured")
    error = {
        name: np.abs(
            identify(ROBOT, dirty, friction="linear", method=name).estimate.value - theta
        ).max()
        for name in ("weighted", "huber", "ordinary")
    }
    assert error["huber"] < 0.15 * error["weighted"]
    assert error["ordinary"] != error["weighted"]
    with pytest.raises(InvalidSamples, match="method must be"):
        identify(ROBOT, part, method="best")


def test_essential_parameters_predict_as_well_with_fewer():
    parts = [made("linear", seed)[0] for seed in (1, 2)]
    model = identify(ROBOT, parts, friction="linear")
    lean = essential(model, 0.1)
    assert 0 < np.count_nonzero(lean.estimate.value) < len(model.estimate.value)
    other = made("linear", 9)[0]
    np.testing.assert_allclose(lean.validate(other).rms, model.validate(other).rms, rtol=0.05)
    assert set(model.estimate.weak(0.1)) >= {
        name for name, x in zip(lean.estimate.names, lean.estimate.value, strict=True) if x == 0
    }
    with pytest.raises(InvalidSamples, match="largest_relative_std must be positive"):
        essential(model, 0.0)


def test_repeated_runs_scatter_as_their_standard_deviations_say():
    models = [identify(ROBOT, made("linear", seed)[0], friction="linear") for seed in range(12)]
    values = np.array([m.estimate.value for m in models])
    mean, std = values.mean(axis=0), values.std(axis=0, ddof=1)
    said = np.mean([m.estimate.std for m in models], axis=0)
    assert np.median(std / said) == pytest.approx(1, abs=0.35)
    np.testing.assert_allclose(mean, made("linear", 0)[2], atol=5 * (said / np.sqrt(12)).max())


def test_friction_torque_is_what_links_and_rotors_leave():
    part = made("load", 3, noise=0.01)[0]
    model = identify(ROBOT, part, friction="load")
    measured, modelled = model.friction_torque(part)
    np.testing.assert_allclose(measured, modelled, atol=0.1)
    assert np.abs(measured).max() > 4


def test_validation_knows_rms_relative_residual_and_correlation():
    rng = np.random.default_rng(0)
    measured = rng.normal(size=(500, 2)) * [3.0, 5.0] + 1
    predicted = measured + 0.1 * rng.normal(size=(500, 2))
    found = validation_of(measured, predicted)
    np.testing.assert_allclose(found.rms, 0.1, rtol=0.1)
    np.testing.assert_allclose(
        found.relative, 0.1 / np.sqrt(np.mean(measured**2, axis=0)), rtol=0.1
    )
    for j in range(2):
        assert found.correlation[j] == pytest.approx(
            np.corrcoef(measured[:, j], predicted[:, j])[0, 1]
        )


def test_too_slow_sampling_is_refused():
    series = FourierTrajectory.random(
        [0.3, -0.4], reach=[1.5, 1.5], speed=[3.0, 3.0], period_s=2.0, harmonics=8, seed=1
    )
    q, v, a = series.at(np.arange(0, 20, 0.1))
    slow = Samples(q, v, a, np.zeros_like(q), 10.0, ROBOT.joint_names, "measured")
    with pytest.raises(InvalidSamples, match=r"joint_\d moves too quickly for 10 Hz"):
        identify(ROBOT, slow)


def test_unknown_laws_and_shapes_are_refused():
    known = "no friction law 'sticky'; there are linear, band.*each also with '-asymmetric'"
    with pytest.raises(UnknownName, match=known):
        identify(ROBOT, motion(0), friction="sticky")
    with pytest.raises(InvalidRobot, match="must be 2 positive numbers"):
        FrictionLaw.named("power", 2, exponent=np.array([1.0, -1.0]))


def test_stopping_the_comparison_of_laws_answers_with_the_best_so_far():
    part = made("smooth-power", 4, noise=0.02)[0]

    def interrupt(share, words):
        if words.startswith("law 6 of 11: stribeck, best so far smooth-power"):
            raise KeyboardInterrupt

    model = identify(ROBOT, part, friction="auto", progress=interrupt)
    assert model.law.name == "smooth-power"
    assert list(model.choice.scores) == ["linear", "band", "smooth", "power", "smooth-power"]
    (doubt,) = (doubt for doubt in model.verdict.doubts if doubt.kind is DoubtKind.STOPPED)
    assert not doubt.blocks
    assert doubt.words == (
        "stopped by hand: smooth-power is the best of 5 friction laws so far;"
        " not compared: stribeck, load, presliding, presliding-power, presliding-load"
    )
    again = type(model).from_dict(model.to_dict())
    assert tuple(again.choice.not_compared) == model.choice.not_compared

    def at_once(share, words):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        identify(ROBOT, part, friction="auto", progress=at_once)


def test_stopping_at_the_last_law_says_that_it_was_not_compared():
    def interrupt(share, words):
        if words.startswith("law 11 of 11: smooth-asymmetric"):
            raise KeyboardInterrupt

    choice = choose_friction(ROBOT, [made("smooth", 4, noise=0.02)[0]], progress=interrupt)
    assert choice.law == "smooth"
    assert choice.not_compared == ("smooth-asymmetric",)


def test_progress_says_which_law_is_tried_and_goes_up():
    seen = []
    part = made("smooth", 4)[0]
    identify(
        ROBOT, part, friction="auto", progress=lambda share, words: seen.append((share, words))
    )
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert seen[0] == (0.0, "law 1 of 11: linear")
    assert "law 6 of 11: stribeck, best so far smooth 0.5 %" in [words for _, words in seen]
    assert seen[-1][1].startswith("fitting smooth")


def test_a_share_of_the_carried_torque_is_kept_only_where_it_is_sure():
    """Friction of joint 2 does not grow with its load: its Fl is none, not a small number."""
    law, samples = true_law("load"), motion(3)
    maker = RowMaker(ROBOT, ParameterBasis.of(ROBOT))
    theta = made("load", 3)[2].copy()
    theta[-1] = 0.0
    noise = 0.05 * np.random.default_rng(3).normal(size=samples.q.shape)
    tau = maker.torque(samples, law, theta) + noise
    part = Samples(samples.q, samples.v, samples.a, tau, 100.0, ROBOT.joint_names, "measured")
    model = identify(ROBOT, part, friction="load")
    np.testing.assert_array_equal(model.law.carrying, [1.0, 0.0])
    assert model.estimate.value[-1] == 0
    assert model.estimate.std[-1] == 0
    assert model.estimate.value[-2] == pytest.approx(0.08, abs=4 * model.estimate.std[-2])
    assert model.verdict.ok
    assert f"all {len(theta) - 1} parameters were excited" in model.verdict.summary
    again = type(model).from_dict(model.to_dict())
    np.testing.assert_allclose(again.rows(part).Y, model.rows(part).Y, rtol=1e-12, atol=1e-12)


def test_a_shape_at_the_end_of_its_range_and_negative_viscous_friction_are_doubts():
    part = made("linear", 3, noise=0.01)[0]
    tau = part.tau - [0.0, 4.0] * part.v  # less than none
    fast = Samples(part.q, part.v, part.a, tau, 100.0, ROBOT.joint_names, "measured")
    model = identify(ROBOT, fast, friction="smooth")
    kinds_of = {doubt.kind: doubt for doubt in model.verdict.doubts}
    assert set(kinds_of) == {DoubtKind.FRICTION_SHAPE, DoubtKind.NEGATIVE_FRICTION}
    assert model.verdict.ok
    assert (
        "shapes at the end of their range: width of joint_1 (0.001)"
        in kinds_of[DoubtKind.FRICTION_SHAPE].words
    )
    assert "viscous friction came out negative" in kinds_of[DoubtKind.NEGATIVE_FRICTION].words
    assert "Fv2 of joint_2 (-2." in kinds_of[DoubtKind.NEGATIVE_FRICTION].words
    Fv2 = list(model.estimate.parameters).index(Parameter(ParameterKind.VISCOUS, 1))
    assert abs(model.estimate.value[Fv2] - (1.5 - 4.0)) < 3 * model.estimate.std[Fv2]


def test_solved_without_offsets_the_rows_give_their_plain_solution():
    parts = [made("linear", seed)[0] for seed in (1, 2)]
    model = identify(ROBOT, parts, friction="linear", method="ordinary")
    found = solved_again(model, offsets=False, equal_weights=True).estimate
    rows = [model.rows(part.away_from_reversals()) for part in parts]
    kept = [i for i, name in enumerate(found.names) if not name.startswith("B")]
    Y = np.concatenate([each.Y[each.usable] for each in rows])
    tau = np.concatenate([each.tau[each.usable] for each in rows])
    plain = np.linalg.lstsq(Y[:, kept], tau, rcond=None)[0]
    np.testing.assert_allclose(found.value[kept], plain, rtol=1e-6, atol=1e-8)
    assert not np.delete(found.value, kept).any()
    same = solved_again(model, equal_weights=True).estimate
    np.testing.assert_allclose(same.value, model.estimate.value, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(same.std, model.estimate.std, rtol=1e-6)


def test_an_arm_with_weight_in_an_offset_needs_offsets(tiny, tmp_path, rng):
    path = tmp_path / "arm.urdf"
    path.write_text(tiny["prismatic"])
    robot = load_robot(str(path))
    series = FourierTrajectory.random(
        np.zeros(3), reach=np.ones(3), speed=np.ones(3), period_s=10.0, harmonics=5, seed=1
    )
    q, v, a = series.at(np.arange(0, 10, 0.02))
    tau = robot.torque(q, v, a) + 0.01 * rng.normal(size=q.shape)
    samples = Samples(q, v, a, tau, 50.0, robot.joint_names, "measured")
    model = identify(robot, samples, friction="linear")
    with pytest.raises(InvalidSamples, match="offset of shoulder also holds the constant weight"):
        solved_again(model, offsets=False)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_stribeck_curve_is_not_sought_below_the_speeds_of_the_rows(seed):
    # Otherwise its column is nearly zero, its coefficient anything, and slower rows of another
    # motion are off by as much.
    samples = made("smooth", seed)[0]
    slowest = 0.3
    fast = replace(samples, usable=samples.mask & (np.abs(samples.v) > slowest))
    model = identify(ROBOT, fast, friction="stribeck")
    assert model.law.stribeck_speed.min() >= slowest
    peak = np.abs(samples.tau).max(axis=0)
    coefficients = np.abs(model.friction.coefficients)
    assert (coefficients < peak).all()
    known = np.diag(model.estimate.covariance)[model.estimate.parameters.friction]
    assert (np.sqrt(known) < peak.max()).all()
