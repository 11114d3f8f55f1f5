"""Construction of DriveModel and JointLimits, and friction computed by hand."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.errors import InvalidRobot
from steelyard.robot import DriveModel, JointLimits

INF = np.full(2, np.inf)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coulomb": [1.0, 2.0]}, r"'coulomb' must have shape \(n,\) with n = 3, got \(2,\)"),
        ({"viscous": [1.0, np.nan, 2.0]}, r"'viscous' must be finite, got \[ 1. nan 2.\]"),
        (
            {"rotor_inertia": np.ones((3, 1))},
            r"'rotor_inertia' must have shape \(n,\), got \(3, 1\)",
        ),
        ({"gain": [1.0, 2.0]}, r"'gain' must have shape \(n,\) with n = 3"),
        ({"coupling": np.eye(2)}, r"'coupling' must have shape \(n, n\) with n = 3"),
        ({"coupling": np.ones((3, 3))}, r"coupling must be invertible with a non-zero diagonal"),
        (
            {"coupling": np.eye(3)[[1, 2, 0]]},
            r"coupling must be invertible with a non-zero diagonal",
        ),
        ({"exponent": 0.0}, r"'exponent' must be numbers above 0"),
        ({"stribeck_speed": [1.0, -1.0, 1.0]}, r"'stribeck_speed' must be numbers above 0"),
        ({"sign_width": -0.1}, r"'sign_width' must be a finite number of at least 0"),
        ({"sign_width": np.nan}, r"'sign_width' must be a finite number of at least 0"),
    ],
)
def test_drive_refusals(changes, message):
    with pytest.raises(InvalidRobot, match=message):
        DriveModel(**{"rotor_inertia": np.ones(3)} | changes)


def test_currents_need_gains():
    with pytest.raises(InvalidRobot, match=r"the drives have no gains \[Nm/A\]"):
        DriveModel.ideal(3).torque_from_current([1.0, 2.0, 3.0])


def test_one_number_counts_for_every_joint():
    drive = DriveModel([0.1, 0.2, 0.3], coulomb=2.0, gain=11.0)
    np.testing.assert_array_equal(drive.coulomb, [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(drive.torque_from_current([1.0, -2.0, 3.0]), [11.0, -22.0, 33.0])
    np.testing.assert_array_equal(drive.parameters(), [0.1, 0.2, 0.3, 2, 2, 2, 0, 0, 0, 0, 0, 0])
    assert len(drive) == 3


def test_friction_by_hand():
    """Each term of the law once, at speeds of both signs, with all numbers different."""
    drive = DriveModel(
        np.zeros(2),
        coulomb=[3.0, 4.0],
        viscous=[5.0, 6.0],
        offset=[0.7, -0.8],
        exponent=[0.5, 2.0],
        load_coulomb=[0.1, 0.2],
        stribeck=[1.5, 2.5],
        stribeck_speed=[0.2, 0.4],
        asymmetry=[0.9, -1.1],
    )
    expected = [
        3.0 + 0.1 * 20.0 + 1.5 * np.exp(-((0.25 / 0.2) ** 2)) + 5.0 * 0.25**0.5 + 0.9 * 0.25 + 0.7,
        -(4.0 + 0.2 * 30.0 + 2.5 * np.exp(-((0.5 / 0.4) ** 2))) - 6.0 * 0.5**2 - 1.1 * 0.5 - 0.8,
    ]
    np.testing.assert_allclose(drive.friction([0.25, -0.5], load=[-20.0, 30.0]), expected)
    np.testing.assert_allclose(drive.torque([0.25, -0.5], [3.0, 4.0], load=[-20.0, 30.0]), expected)
    without_load = np.array(expected) - [0.1 * 20.0, -0.2 * 30.0]
    np.testing.assert_allclose(drive.friction([[0.25, -0.5]]), [without_load])


def test_smoothed_sign_is_a_tanh():
    drive = DriveModel(np.zeros(1), coulomb=2.0, viscous=3.0, sign_width=0.1)
    s = np.tanh(0.07 / 0.1)
    np.testing.assert_allclose(drive.friction([[0.07]]), [[2.0 * s + 3.0 * 0.07 * s]])


def test_drive_is_read_only_and_apart_from_what_it_was_given():
    rotor, coupling = np.ones(2), np.array([[3.0, 0.0], [1.0, 2.0]])
    drive = DriveModel(rotor, coupling=coupling)
    rotor[:] = coupling[:] = 9.0
    np.testing.assert_array_equal(drive.rotor_inertia, [1.0, 1.0])
    np.testing.assert_array_equal(drive.coupling, [[3.0, 0.0], [1.0, 2.0]])
    for array in (drive.rotor_inertia, drive.coulomb, drive.coupling):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_replace_changes_the_coupling_for_good(rng):
    drive = DriveModel([1.0, 2.0], coupling=[[3.0, 0.0], [1.0, 2.0]])
    v, a = rng.normal(size=(2, 2))
    np.testing.assert_allclose(replace(drive, coupling=None).torque(v, a), np.array([1.0, 2.0]) * a)
    assert not np.allclose(drive.torque(v, a), np.array([1.0, 2.0]) * a)


def test_drives_without_coupling_pass_motors_through(rng):
    x = rng.normal(size=(4, 2))
    drive = DriveModel.ideal(2)
    np.testing.assert_array_equal(drive.joint_position(x), x)
    np.testing.assert_array_equal(drive.joint_torque(x), x)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q_max": [1.0]}, r"'q_max' must have shape \(n,\) with n = 2, got \(1,\)"),
        (
            {"v_max": [np.nan, 1.0]},
            r"'v_max' must be numbers above 0, got \[nan  ?1\.\]",
        ),
        ({"q_min": [0.0, 1.0]}, r"joint 2: q_min 1 is not below q_max 1"),
        ({"v_max": [1.0, 0.0]}, r"'v_max' must be numbers above 0, got \[1\. 0\.\]"),
        ({"a_max": [-1.0, 1.0]}, r"'a_max' must be numbers above 0"),
        ({"tau_max": [0.0, 1.0]}, r"'tau_max' must be numbers above 0"),
    ],
)
def test_limit_refusals(changes, message):
    given = {"q_min": [-1.0, -1.0], "q_max": [1.0, 1.0], "v_max": INF, "a_max": INF, "tau_max": INF}
    with pytest.raises(InvalidRobot, match=message):
        JointLimits(**given | changes)


def test_no_limits_are_infinite_and_read_only():
    limits = JointLimits.none(2)
    assert len(limits) == 2
    np.testing.assert_array_equal(limits.q_min, -INF)
    np.testing.assert_array_equal(limits.q_max, INF)
    with pytest.raises(ValueError, match="read-only"):
        limits.v_max[0] = 1.0
