"""The static stage: postures found, doubts named, advice given, every refusal with its text."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.errors import InvalidRecording, InvalidRobot
from steelyard.inertia import InertialParameters
from steelyard.verdict import DoubtKind
from steelyard.wrist import Postures, RestRule, WristRecording, WristSensor, weigh_static
from steelyard.wrist._regressor import BaseGravity, wrench_regressor
from steelyard.wrist._rest import _force_fit

UPRIGHT = np.array([0.0, 0.0, -9.81])
TILT = np.array([0.03, -0.05])
BODY = InertialParameters.from_com(5.0, [0.02, -0.04, 0.1], 0.05 * np.eye(3))
DRIFT = np.array([3.0, -5.0, 8.0, 0.4, -0.3, 0.2])
TRUTH = np.concatenate([BODY.vector[:4], DRIFT, TILT])


def wrenches(R, gravity_base):
    u = np.einsum("nji,j->ni", R, gravity_base)
    return wrench_regressor(np.column_stack([u, np.zeros((len(u), 9))])) @ BODY.vector


def table(rng, N=12, noise=1e-9, gravity_base=None, sensor=None, R=None):
    """A table of postures as a sensor would give it."""
    R = Rotation.random(N, random_state=1).as_matrix() if R is None else R
    g = BaseGravity(UPRIGHT).tilted(TILT) if gravity_base is None else gravity_base
    w = wrenches(R, g) + DRIFT + noise * rng.normal(size=(len(R), 6)) * [1, 1, 1, 0.1, 0.1, 0.1]
    return WristRecording.of_measured(
        np.arange(len(R), dtype=float), w, R, sensor=sensor or WristSensor(), timed=False
    )


def continuous(rng, *, rest_s=1.5, move_s=0.7, N=8, noise=0.05, trend=0.0, rate=50.0):
    """Rests and turns in between, as a logger sees them."""
    ends = Rotation.random(N, random_state=3)
    R, times = [], np.arange(0, N * (rest_s + move_s), 1 / rate)
    for t in times:
        k, x = int(t // (rest_s + move_s)), (t % (rest_s + move_s) - rest_s) / move_s
        way = (ends[k].inv() * ends[min(k + 1, N - 1)]).as_rotvec()
        x = np.clip(x, 0, 1)
        R.append((ends[k] * Rotation.from_rotvec(way * (3 * x**2 - 2 * x**3))).as_matrix())
    R = np.array(R)
    w = (
        wrenches(R, BaseGravity(UPRIGHT).tilted(TILT))
        + DRIFT
        + noise * rng.normal(size=(len(R), 6))
    )
    w[:, 2] += trend * times
    return WristRecording(times, w, R, WristSensor())


def test_exact_postures_are_recovered(rng):
    found = weigh_static(Postures.of(table(rng)))
    np.testing.assert_allclose(found.value, TRUTH, atol=1e-6)
    assert found.mass == pytest.approx(5.0)
    np.testing.assert_allclose(found.com, BODY.com, atol=1e-7)
    np.testing.assert_allclose(found.drift, DRIFT, atol=1e-6)
    np.testing.assert_allclose(found.gravity_base, BaseGravity(UPRIGHT).tilted(TILT), atol=1e-6)


def test_a_base_that_came_out_far_from_level_is_a_doubt(rng):
    steep = BaseGravity(UPRIGHT).tilted(np.radians([15.0, -8.0]))
    found = weigh_static(Postures.of(table(rng, gravity_base=steep)))
    assert found.verdict.has(DoubtKind.TILTED_BASE)
    assert not found.verdict.ok
    assert not found.payload().verdict.ok
    words = (
        "the base appears to be tilted by 17 degrees: state `gravity_base=(-1.32, -2.54, -9.38)`"
        " if it is mounted so"
    )
    assert words in found.verdict.sentence
    known = weigh_static(Postures.of(table(rng, gravity_base=steep)), gravity_base=steep)
    assert known.verdict.ok


def test_the_static_stage_knows_its_uncertainty():
    inside = []
    for seed in range(30):
        found = weigh_static(Postures.of(table(np.random.default_rng(seed), noise=0.2)))
        low, high = found.interval().T
        inside.append((low < TRUTH) & (high > TRUTH))
    assert 0.91 < np.mean(inside) < 0.985


def test_a_wall_mounted_arm_gives_its_gravity(rng):
    nominal = np.array([0.0, 9.81, 0.0])
    postures = Postures.of(table(rng, gravity_base=BaseGravity(nominal).tilted(TILT)))
    found = weigh_static(postures, gravity_base=nominal)
    np.testing.assert_allclose(found.value, TRUTH, atol=1e-5)


def test_a_level_base_may_be_said(rng):
    postures = Postures.of(table(rng, gravity_base=UPRIGHT, noise=0.02))
    level, free = weigh_static(postures, tilt=False), weigh_static(postures)
    np.testing.assert_allclose(level.inclination, 0)
    np.testing.assert_allclose(level.std[10:], 0)
    assert level.mass == pytest.approx(5.0, abs=0.02)
    assert level.std[4] <= 1.05 * free.std[4]


def test_rest_is_found_in_a_continuous_recording(rng):
    postures = Postures.of(continuous(rng))
    assert len(postures) == 8
    np.testing.assert_allclose(np.diff(postures.t), 2.2, atol=0.6)
    found = weigh_static(postures)
    low, high = found.interval(0.9999).T
    assert ((low < TRUTH) & (high > TRUTH)).all()
    assert np.isfinite(found.trend).all()
    assert found.verdict.ok
    assert "well spread" in found.verdict.sentence


def test_a_moving_drift_is_reported_and_not_averaged(rng):
    found = weigh_static(Postures.of(continuous(rng, trend=0.05, noise=0.02)))
    assert (
        "the zero drift changes during the run, fz by 2.99 N per minute" in found.verdict.sentence
    )
    assert [doubt.kind for doubt in found.verdict.doubts] == [DoubtKind.DRIFT_MOVES]
    assert found.payload().verdict.ok
    assert found.trend[2] == pytest.approx(0.05, rel=0.05)
    assert found.mass == pytest.approx(5.0, abs=0.01)


def test_few_postures_do_not_tell_a_trend(rng):
    """The eighteen numbers of three postures are twelve unknowns and no trend."""
    found = weigh_static(Postures.of(continuous(rng, N=3, trend=0.5)))
    assert np.isnan(found.trend).all()
    assert np.isnan(found.trend_std).all()
    assert not found.verdict.has(DoubtKind.DRIFT_MOVES)


def test_a_rest_with_motion_is_left_out(rng):
    recording = continuous(rng)
    w = recording.wrench.copy()
    w[:60, 0] += 20 * rng.normal(size=60)  # a person leans on the load
    postures = Postures.of(replace(recording, wrench=w))
    assert len(postures) == 7
    assert postures.notes == (
        "left out 1 of 8 rests: the sensor creeps in 0, the wrench is not steady in 1",
    )
    R = recording.R_base_sensor.copy()
    creep = Rotation.from_rotvec(np.outer(0.008 * recording.t, [1, 0, 0])).as_matrix()
    with pytest.raises(
        InvalidRecording, match="the sensor creeps, or its wrench is not steady, in all 8 rests"
    ):
        Postures.of(replace(recording, R_base_sensor=creep @ R))


def test_without_rest_there_is_no_static_stage(rng):
    turning = Rotation.from_rotvec(np.outer(np.arange(0, 5, 0.02), [0.5, 0.2, 0])).as_matrix()
    recording = WristRecording(
        np.arange(250) * 0.02, rng.normal(size=(250, 6)), turning, WristSensor()
    )
    with pytest.raises(
        InvalidRecording, match=r"never at rest: its angular speed is at least 0.539 rad/s"
    ):
        Postures.of(recording)
    moving = replace(continuous(rng), position=np.outer(np.arange(880) * 0.02, [0.1, 0, 0]))
    with pytest.raises(InvalidRecording, match="never at rest"):
        Postures.of(moving, RestRule())


def test_postures_with_the_same_gravity_direction_count_once(rng):
    R = Rotation.random(6, random_state=5).as_matrix()
    yaw = Rotation.from_rotvec([0, 0, 0.7]).as_matrix()
    recording = table(rng, R=np.concatenate([R, yaw @ R[:3]]))
    postures = Postures.of(recording)
    postures = replace(postures, rows=np.array([1, 1, 1, 1, 1, 1, 9, 1, 1]))
    kept = postures.distinct(UPRIGHT)
    assert len(kept) == 6
    assert 9 in kept.rows  # the longer rest of two
    assert kept.notes == ("left out 3 postures with the same gravity direction as another",)


def test_similar_postures_are_reported_with_one_to_add(rng):
    angles = np.linspace(0, 5, 6)  # gravity stays in the x-z plane of the sensor
    flat = Rotation.from_rotvec(np.outer(angles, [0, 1, 0])).as_matrix()
    found = weigh_static(Postures.of(table(rng, R=flat, gravity_base=UPRIGHT, noise=0.02)))
    assert found.verdict.has(DoubtKind.POSTURES_TOO_ALIKE)
    assert not found.verdict.ok
    assert "too similar" in found.verdict.sentence
    assert "(0.0, -1.0, 0.0) of the sensor frame" in found.verdict.sentence
    assert not np.isfinite(found.std[5]) or found.std[5] > 1.0
    good = Postures.of(table(rng))
    assert good.advice(UPRIGHT) == ""
    assert good.spread(UPRIGHT) > 0.3
    two = Postures.of(table(rng, N=2))
    with pytest.raises(
        InvalidRecording, match=r"only 2 different postures at rest; .* add one in which"
    ):
        weigh_static(two)
    with pytest.raises(
        InvalidRecording, match=r"are good\. A rest must last at least 1\.1 s: stop"
    ):
        weigh_static(replace(two, timed=True))


def test_a_wrong_sign_is_a_negative_mass(rng):
    recording = table(rng)
    other = WristRecording.of_measured(
        recording.t, -recording.wrench, recording.R_base_sensor, sensor=WristSensor(), timed=False
    )
    with pytest.raises(
        InvalidRecording, match=r"weighs -4.9\d+ kg: .*='sensor_on_load'` where nothing"
    ):
        weigh_static(Postures.of(other))
    right = WristRecording.of_measured(
        recording.t,
        -recording.wrench,
        recording.R_base_sensor,
        sensor=WristSensor(convention="sensor_on_load"),
        timed=False,
    )
    assert right.notes == ("the wrench was that of the sensor on the load; its sign was reversed",)
    assert weigh_static(Postures.of(right)).mass == pytest.approx(5.0)


def test_a_wrong_frame_is_named(rng):
    recording = table(rng)
    R = recording.R_base_sensor
    rotated = np.einsum("nij,ncj->nci", R, recording.wrench.reshape(-1, 2, 3)).reshape(-1, 6)

    def said(wrench, rotation, frame):
        sensor = WristSensor(frame=frame)
        made = WristRecording.of_measured(recording.t, wrench, rotation, sensor=sensor, timed=False)
        return weigh_static(Postures.of(made))

    assert said(rotated, R, "base").mass == pytest.approx(5.0)
    with pytest.raises(
        InvalidRecording, match="already rotated into the base frame: use `frame='base'`"
    ):
        said(rotated, R, "sensor")
    with pytest.raises(
        InvalidRecording, match="in the sensor frame and not rotated: use `frame='sensor'`"
    ):
        said(recording.wrench, R, "base")
    with pytest.raises(InvalidRecording, match="inverse of the stated one: invert the rotation"):
        said(recording.wrench, R.transpose(0, 2, 1), "sensor")


def test_the_residual_of_forces_in_their_frame_is_the_noise_of_a_reading(rng):
    """Of 40 postures in the right frame; the check compares residuals of other frames with it."""
    recording = table(rng, N=40, noise=0.5)
    kappa, residual = _force_fit(recording.wrench[:, :3], recording.R_base_sensor)
    expected = BODY.mass * BaseGravity(UPRIGHT).tilted(TILT)
    np.testing.assert_allclose(kappa, expected, atol=0.5)
    assert residual == pytest.approx(0.5, rel=0.25)


def test_refusals_of_the_static_stage(rng):
    postures = Postures.of(table(rng))
    with pytest.raises(InvalidRobot, match="gravity_base must be three finite numbers"):
        weigh_static(postures, gravity_base=[0, 0, 0])
    with pytest.raises(InvalidRobot, match="gravity_base must be at most 30"):
        weigh_static(postures, gravity_base=[0, 0, -9810])


def test_a_payload_at_rest_says_that_it_knows_no_inertia(rng):
    payload = weigh_static(Postures.of(table(rng, noise=0.01))).payload()
    assert not payload.knows_inertia
    assert np.isinf(payload.std[4:]).all()
    assert payload.body.mass == pytest.approx(5.0, abs=0.01)
    assert payload.status.startswith(
        "12 postures, well spread; all twelve numbers are determined; do not use the inertia: "
    )
    assert payload.status.endswith("Izz: postures at rest say nothing about the inertia")
    assert payload.verdict.ok
    assert payload.verdict.has(DoubtKind.NOT_EXCITED)
    assert isinstance(Postures.of(table(rng)), Postures)
