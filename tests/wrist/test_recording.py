"""Recordings and samples of a wrist sensor: conventions, copies, refusals with their text."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.errors import InvalidInertia, InvalidRecording, InvalidSamples
from steelyard.inertia import InertialParameters
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.verdict import DoubtKind
from steelyard.wrist import WrenchSamples, WristRecording, WristSensor, weigh_dynamic
from steelyard.wrist._regressor import BaseGravity, features, wrench_regressor
from steelyard.wrist.tracking import WristPath, motion_of

BODY = InertialParameters.from_com(3.0, [0.02, -0.03, 0.09], np.diag([0.04, 0.05, 0.03]), "sensor")


def turning(rng, *, N=3000, rate=500.0, noise=0.02, trend=0.0):
    """A sensor that turns and swings about, with an inertial unit, and its wrench."""
    t = np.arange(N) / rate
    rotvec = np.column_stack(
        [0.8 * np.sin(2.1 * t), 0.7 * np.sin(1.7 * t + 1), 0.9 * np.sin(2.6 * t + 2)]
    )
    R = Rotation.from_rotvec(rotvec)
    h = 1e-4

    def spun(s):
        return Rotation.from_rotvec(
            np.column_stack(
                [0.8 * np.sin(2.1 * s), 0.7 * np.sin(1.7 * s + 1), 0.9 * np.sin(2.6 * s + 2)]
            )
        )

    w = (spun(t - h).inv() * spun(t + h)).as_rotvec() / (2 * h)
    later = (spun(t).inv() * spun(t + 2 * h)).as_rotvec() / (2 * h)
    before = (spun(t - 2 * h).inv() * spun(t)).as_rotvec() / (2 * h)
    alpha = (later - before) / (2 * h)
    position = 0.1 * np.column_stack([np.sin(3 * t), np.cos(2 * t), np.sin(2.5 * t)])
    a_base = 0.1 * np.column_stack(
        [-9 * np.sin(3 * t), -4 * np.cos(2 * t), -6.25 * np.sin(2.5 * t)]
    )
    a = R.inv().apply(a_base)
    g = R.inv().apply(np.tile([0, 0, -9.81], (N, 1)))
    wrench = wrench_regressor(features(g, a, w, alpha)) @ BODY.vector
    wrench = wrench + noise * rng.normal(size=wrench.shape) * [1, 1, 1, 0.1, 0.1, 0.1]
    wrench[:, 1] += trend * t
    motion = {"position": position, "acceleration": a, "angular_velocity": w}
    return WristRecording.of_measured(t, wrench, R.as_matrix(), sensor=WristSensor(), motion=motion)


def test_an_inertial_unit_gives_all_ten(rng):
    payload = weigh_dynamic(WrenchSamples.from_imu(turning(rng)), tilt=False)
    np.testing.assert_allclose(payload.body.vector, BODY.vector, atol=6 * payload.std.max())
    assert payload.body.mass == pytest.approx(3.0, abs=0.01)
    assert "all ten parameters were excited, and they are those of a real body" in payload.status
    found = payload.in_flange()
    body, covariance = found.body, found.covariance
    assert body.frame == "flange"
    np.testing.assert_allclose(covariance, payload.covariance)


def test_what_is_unknown_stays_unknown_in_the_flange_frame_and_what_is_known_known(rng):
    payload = weigh_dynamic(WrenchSamples.from_imu(turning(rng)), tilt=False)
    unknown = np.array(payload.full_covariance)
    unknown[4:10, :], unknown[:, 4:10] = 0.0, 0.0
    unknown[range(4, 10), range(4, 10)] = np.inf
    T = np.eye(4)
    T[:3, 3] = [0.0, 0.0, 0.05]
    found = replace(payload, full_covariance=unknown, T_flange_sensor=T).in_flange()
    assert np.isinf(found.std[4:]).all()
    assert found.std[0] == pytest.approx(payload.std[0])
    assert (found.com_std[2], *found.com_std[:2]) == pytest.approx(
        np.roll(payload.com_std, 1), rel=1e-6
    )


def test_a_pose_gives_all_ten_causally(rng):
    payload = weigh_dynamic(WrenchSamples.from_pose_causal(turning(rng)))
    assert payload.body.mass == pytest.approx(3.0, abs=0.02)
    np.testing.assert_allclose(payload.body.com, BODY.com, atol=0.002)
    np.testing.assert_allclose(payload.body.inertia, BODY.inertia, atol=0.01)


def test_a_base_that_came_out_far_from_level_is_a_doubt_in_motion_too(rng):
    recording = turning(rng)
    steep = BaseGravity(np.array([0.0, 0.0, -9.81])).tilted(np.radians([12.0, 5.0]))
    seen = Rotation.align_vectors([steep / 9.81], [[0.0, 0.0, -1.0]])[0].as_matrix()
    tilted = replace(recording, R_base_sensor=seen @ recording.R_base_sensor)
    found = weigh_dynamic(WrenchSamples.from_imu(tilted))
    assert found.verdict.has(DoubtKind.TILTED_BASE)
    assert "tilted by 13 degrees" in found.status
    assert weigh_dynamic(WrenchSamples.from_imu(tilted), gravity_base=steep).verdict.ok


def test_rows_that_a_mean_repeats_are_not_missed(rng):
    recording = turning(rng, noise=0.3)
    every, some = (
        WrenchSamples.from_pose_causal(recording, decimate=decimate) for decimate in (False, True)
    )
    assert (len(some), some.made_by[-1]) == (len(every) // 5, "every 5. row kept")
    one, other = weigh_dynamic(every), weigh_dynamic(some)
    assert (np.abs(one.body.vector - other.body.vector) < 0.05 * one.std).all()


def test_a_moving_drift_during_motion_is_reported(rng):
    payload = weigh_dynamic(WrenchSamples.from_imu(turning(rng, trend=0.2)), tilt=False)
    assert "the zero drift changes during the run, fy by 12" in payload.status
    assert [doubt.kind for doubt in payload.verdict.doubts] == [DoubtKind.DRIFT_MOVES]
    with pytest.raises(InvalidInertia, match="the zero of the sensor drifts: measure it again"):
        payload.export("ft-yaml")
    assert payload.trend[1] == pytest.approx(0.2, rel=0.05)
    assert payload.body.mass == pytest.approx(3.0, abs=0.01)


def test_a_sensor_that_carries_nothing_is_doubted(rng):
    recording = turning(rng)
    drift = np.array([1.0, -2.0, 3.0, 0.1, 0.2, -0.1])
    empty = replace(recording, wrench=drift + 0.02 * rng.normal(size=recording.wrench.shape))
    payload = weigh_dynamic(WrenchSamples.from_imu(empty), tilt=False)
    assert [doubt.kind for doubt in payload.verdict.blocking] == [DoubtKind.NOTHING_CARRIED]
    assert "the sensor carries nothing, or a load too small to weigh" in payload.status
    np.testing.assert_allclose(payload.drift, drift, atol=0.05)


def test_a_wrong_sign_in_motion_is_a_negative_mass(rng):
    recording = turning(rng)
    with pytest.raises(
        InvalidRecording, match=r"weighs -3.0\d+ kg: the sign of the wrench is not as stated"
    ):
        weigh_dynamic(
            WrenchSamples.from_imu(replace(recording, wrench=-recording.wrench)), tilt=False
        )


def test_recordings_are_copies_and_start_at_zero(rng):
    R, w = np.tile(np.eye(3), (4, 1, 1)), rng.normal(size=(4, 6))
    recording = WristRecording(np.arange(4) + 100.0, w, R, WristSensor())
    w[0] = 99.0
    assert recording.t[0] == 0.0
    assert recording.wrench[0, 0] != 99.0
    assert not recording.wrench.flags.writeable
    part = recording.rows(slice(1, 3), "cut")
    assert len(part) == 2
    assert part.t[0] == 0.0
    assert part.notes == ("cut",)
    with pytest.raises(InvalidRecording, match="the selection contains no rows"):
        recording.rows(slice(0, 0))


def test_what_a_recording_refuses(rng):
    R, w, t = np.tile(np.eye(3), (4, 1, 1)), rng.normal(size=(4, 6)), np.arange(4.0)
    with pytest.raises(InvalidRecording, match="the orientation of the sensor is missing"):
        WristRecording.of_measured(t, w, None, sensor=WristSensor())
    with pytest.raises(
        InvalidRecording, match=r"wrench must be \(N, 6\) and R_base_sensor \(N, 3, 3\)"
    ):
        WristRecording.of_measured(t, w[:, :5], R, sensor=WristSensor())
    with pytest.raises(InvalidRecording, match="time goes back in row 2"):
        WristRecording(t[::-1], w, R, WristSensor())
    with pytest.raises(InvalidRecording, match="R_base_sensor is not a rotation matrix in row 1"):
        WristRecording(t, w, 2 * R, WristSensor())
    with pytest.raises(InvalidRecording, match=r"position must have shape \(4, 3\)"):
        WristRecording(t, w, R, WristSensor(), position=np.zeros((3, 3)))
    w[1, 2] = -1e300
    with pytest.raises(
        InvalidRecording, match=r"wrench reaches an impossible 1e\+300 in row 2; leave such"
    ):
        WristRecording(t, w, R, WristSensor())
    w[2, 1] = np.nan
    with pytest.raises(InvalidRecording, match="wrench is not finite in row 3"):
        WristRecording(t, w, R, WristSensor())


def test_a_saturated_sensor_is_refused(rng):
    recording = turning(rng)
    w = np.clip(recording.wrench, -20, 20)
    reach = np.array([20.0, 20, 20, 50, 50, 50])
    with pytest.raises(
        InvalidRecording, match=r"the sensor is saturated: fz reaches its range of 20 in \d+ of"
    ):
        WristRecording.of_measured(
            recording.t, w, recording.R_base_sensor, sensor=WristSensor(reach=reach)
        )
    with pytest.raises(
        InvalidRecording, match=r"looks saturated: fz stays exactly at its extreme value -20"
    ):
        WristRecording.of_measured(recording.t, w, recording.R_base_sensor, sensor=WristSensor())


def test_what_a_sensor_refuses():
    with pytest.raises(
        InvalidRecording, match="'convention' must be 'load_on_sensor' or 'sensor_on_load'"
    ):
        WristSensor(convention="other")
    with pytest.raises(InvalidRecording, match="'frame' must be 'sensor' or 'base', got 'tool'"):
        WristSensor(frame="tool")
    with pytest.raises(InvalidRecording, match="whose wrench is in the base frame must be known"):
        WristSensor(frame="base", yaw_known=False)
    with pytest.raises(InvalidRecording, match="'reach' must be numbers above 0"):
        WristSensor(reach=np.zeros(6))
    with pytest.raises(InvalidRecording, match=r"'noise' must have shape \(6,\), got \(5,\)"):
        WristSensor(noise=np.ones(5))
    with pytest.raises(InvalidRecording, match=r"'motion_noise.force' is no signal; there"):
        WristSensor(motion_noise={"force": 1.0})
    with pytest.raises(InvalidRecording, match=r"'motion_noise.joints' must be a finite"):
        WristSensor(motion_noise={"joints": 0.0})


def test_joints_in_another_order_are_found_by_their_names(rng):
    robot = load_robot("ur10")
    recording = Recording(
        np.arange(50) / 50,
        0.1 * rng.normal(size=(50, 6)),
        robot.joint_names,
        wrench=rng.normal(size=(50, 6)),
        wrench_frame="flange",
        wrench_convention="load_on_sensor",
    )
    turned = replace(recording, q=recording.q[:, ::-1], joint_names=robot.joint_names[::-1])
    expected = WristRecording.of_joints(recording, robot)
    found = WristRecording.of_joints(turned, robot)
    np.testing.assert_array_equal(found.R_base_sensor, expected.R_base_sensor)
    samples = [
        WrenchSamples.from_joints(robot, each, cutoff_hz=None) for each in (recording, turned)
    ]
    g = np.array([0.0, 0.0, -9.81])
    np.testing.assert_array_equal(samples[1].features(g), samples[0].features(g))


def test_joints_need_a_wrench_and_the_right_robot(rng):
    robot = load_robot("ur10")
    q = 0.1 * rng.normal(size=(50, 6))
    bare = Recording(np.arange(50) / 50, q)
    with pytest.raises(InvalidRecording, match="the recording has no wrench"):
        WristRecording.of_joints(bare, robot)
    full = Recording(
        np.arange(50) / 50,
        q[:, :5],
        wrench=rng.normal(size=(50, 6)),
        wrench_frame="flange",
        wrench_convention="load_on_sensor",
    )
    with pytest.raises(InvalidRecording, match="ur10 has 6 joints, the recording 5"):
        WristRecording.of_joints(full, robot)
    whole = replace(full, q=q, joint_names=())
    with pytest.raises(InvalidSamples, match="too few for a low-pass at 20 Hz"):
        WrenchSamples.from_joints(robot, replace(whole, t=np.arange(50) / 500))
    with pytest.raises(InvalidSamples, match="position_std must be one or 6 non-negative numbers"):
        WrenchSamples.from_joints(robot, whole, cutoff_hz=None, position_std=[-1.0] * 6)
    with pytest.raises(InvalidRecording, match="not fit for use: q jumps by more than half a turn"):
        WrenchSamples.from_joints(robot, replace(whole, q=10 * q), cutoff_hz=None)
    assert any(
        "too short" in words
        for words in WrenchSamples.from_joints(robot, whole, cutoff_hz=None).warnings
    )
    nothing = replace(whole, wrench=np.where(np.arange(50)[:, None] % 2, whole.wrench, np.nan))
    assert "left out 25 rows with NaN" in WristRecording.of_joints(nothing, robot).notes


def test_what_samples_refuse(rng):
    recording = turning(rng, N=200)
    bare = replace(recording, acceleration=None, position=None)
    with pytest.raises(
        InvalidRecording, match="no acceleration and angular velocity of the sensor"
    ):
        WrenchSamples.from_imu(bare)
    with pytest.raises(InvalidRecording, match="the recording has no position of the sensor"):
        WrenchSamples.from_pose(bare)
    with pytest.raises(
        InvalidSamples, match=r"200 rows are too few: the filter needs 0\.5 s to settle"
    ):
        WrenchSamples.from_pose_causal(recording, settle_s=0.5)
    t = recording.t.copy()
    t[100:] += 1.0
    with pytest.raises(InvalidRecording, match=r"1.002 s are missing after t = 0.198 s"):
        WrenchSamples.from_imu(replace(recording, t=t))
    with pytest.raises(InvalidSamples, match="only 4 rows with different times"):
        WrenchSamples.from_imu(recording.rows(slice(0, 4)))
    samples = WrenchSamples.from_imu(turning(rng))
    with pytest.raises(InvalidSamples, match=r"wrench must be \(.*, 6\) finite numbers"):
        replace(samples, wrench=samples.wrench[:, :5])
    few = replace(
        samples,
        **{
            name: getattr(samples, name)[:3]
            for name in (
                "t", "wrench", "R_base_sensor", "acceleration", "angular_velocity",
                "angular_acceleration",
                "covariance", "jump_variance",
            )
        },
    )  # fmt: skip
    with pytest.raises(InvalidSamples, match="3 samples are too few for 18 unknowns"):
        weigh_dynamic(few)


def test_jitter_is_resampled(rng):
    recording = turning(rng)
    t = recording.t + 2e-4 * rng.uniform(-1, 1, len(recording))
    samples = WrenchSamples.from_imu(replace(recording, t=np.sort(t)))
    assert any("resampled at" in step for step in samples.made_by)
    assert samples.warnings == ()
    assert weigh_dynamic(samples, tilt=False).body.mass == pytest.approx(3.0, abs=0.02)


def test_a_wrench_that_never_changes_while_the_sensor_turns_is_refused():
    """A sensor that is not connected; held still, it may well read the same."""
    turned = Rotation.from_euler("x", [[0.0], [0.1], [0.2]]).as_matrix()
    still = np.tile(np.eye(3), (3, 1, 1))
    t = 0.01 * np.arange(3)
    with pytest.raises(InvalidRecording, match="the wrench never changes while the sensor turns"):
        WristRecording.of_measured(t, np.zeros((3, 6)), turned, sensor=WristSensor())
    assert len(WristRecording.of_measured(t, np.zeros((3, 6)), still, sensor=WristSensor())) == 3


def test_a_sensor_that_never_moves_is_not_weighed_in_motion(rng):
    measured = turning(rng, N=600)
    still = WristRecording.of_measured(
        measured.t,
        measured.wrench,
        np.repeat(measured.R_base_sensor[:1], 600, axis=0),
        sensor=WristSensor(),
        motion={"position": np.zeros((600, 3))},
    )
    with pytest.raises(InvalidSamples, match="the orientation of the sensor never changes"):
        weigh_dynamic(WrenchSamples.from_pose(still))


def test_a_clock_in_milliseconds_is_named(rng):
    measured = turning(rng, N=600)
    slow = replace(measured, t=1e3 * measured.t)
    words = r"the median step is 2 s: .* a clock in milliseconds\? Give \[scale\] t = 0.001 in"
    with pytest.raises(InvalidSamples, match=words):
        WrenchSamples.from_imu(slow)
    with pytest.raises(InvalidSamples, match=words):
        motion_of(slow)
    assert len(WrenchSamples.from_imu(replace(slow, t=0.001 * slow.t))) > 50
    motion = np.zeros((600, 10))
    with pytest.raises(InvalidSamples, match=words):
        WristPath.calibrated(slow.t, motion, slow.wrench, WristSensor())
    assert len(WrenchSamples.from_imu(replace(slow, t=0.001 * slow.t)))
