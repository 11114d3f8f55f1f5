"""Real arms: models that predict runs they were not fitted to."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import steelyard as sy
from steelyard.identification import identify
from steelyard.identification._feasible import ParameterBounds, feasible_parameters
from steelyard.identification._least_squares import solve_weighted
from steelyard.identification.gains import gains_from_targets
from steelyard.io import read
from steelyard.recording import Recording
from steelyard.robot import DriveModel, RobotModel, load_robot
from steelyard.signals import Preparation, prepare
from steelyard.torque import weigh


@pytest.fixture(scope="module")
def ur10e():
    folder = Path(__file__).parents[3] / "shared" / "data" / "ur10e"
    if not folder.is_dir():
        pytest.skip("no real recordings here")

    def samples(name, drive):
        return prepare(read(folder / f"{name}.npz"), Preparation(cutoff_hz=10.0), drive=drive)

    training = ["unloaded/ur-20_02_19_14harm50sec", "unloaded/ur-20_02_12-50sec_12harm"]
    gain = gains_from_targets([read(folder / f"{name}.npz") for name in training]).value
    drive = replace(load_robot("ur10e").drive, gain=gain)
    return lambda name: samples(name, drive), training


def mean_relative(model, samples):
    return model.validate(samples).relative.mean()


@pytest.mark.thorough
def test_ur10e_presliding_and_load_predict_a_quarter_better_than_a_dead_band(ur10e):
    samples, training = ur10e
    parts = [samples(name) for name in training]
    robot = load_robot("ur10e")
    plain = identify(robot, parts, friction="band")
    ours = identify(robot, parts, friction="presliding-load")
    unseen = samples("unloaded/ur-20_02_12-40sec_12harm")
    stops = samples("unloaded/ur-20_01_17-ptp_10_points")
    assert mean_relative(ours, unseen) < 0.75 * mean_relative(plain, unseen)
    assert mean_relative(ours, stops) < mean_relative(plain, stops)


@pytest.mark.parametrize(
    ("empty", "loaded", "mass"),
    [
        ("unloaded/ur-20_02_19_14harm50sec", "loaded/ur-20_02_19_14harm50secLoad", 2.805),
        ("unloaded/ur-19_12_23_free", "loaded/ur-19_12_23_load", 1.069),
    ],
)
def test_ur10e_weighs_what_the_authors_weighed(ur10e, empty, loaded, mass):
    samples, _ = ur10e
    model = identify(load_robot("ur10e"), samples(empty), friction="presliding-load")
    payload = weigh(model, samples(loaded))
    assert abs(payload.body.mass - mass) < 1.96 * payload.std[0]
    assert 1.96 * payload.std[0] < 0.09 * mass  # half of it a steady force that may have acted
    assert payload.body.is_physical


@cache
def identified(recording, friction):
    return sy.identify("ur10e", recording, friction=friction)


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["torque-change", "manufacturer"])
@pytest.mark.parametrize(
    ("empty", "loaded", "mass"),
    [
        ("unloaded/ur-20_02_19_14harm50sec", "loaded/ur-20_02_19_14harm50secLoad", 2.805),
        ("unloaded/ur-19_12_23_free", "loaded/ur-19_12_23_load", 1.069),
    ],
)
def test_ur10e_by_methods_that_compare_torques(shared_data, method, empty, loaded, mass):
    """Runs of one motion, seconds apart: motor currents beside the target moments."""
    before, after = (shared_data / "ur10e" / f"{name}.npz" for name in (empty, loaded))
    model = identified(before, "band")
    runs = [before] if method == "torque-change" else []
    payload = sy.weigh(model, after, method=method, empty=runs)
    widest = {"torque-change": 0.25, "manufacturer": 0.4}[
        method
    ]  # the controller's model is off by so much
    assert abs(payload.mass - mass) < 1.96 * payload.std[0]
    assert 1.96 * payload.std[0] < widest * mass
    assert ("s in common with the empty run" in payload.status) == (method == "torque-change")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("empty", "loaded", "mass"),
    [
        ("unloaded/ur-20_02_19_14harm50sec", "loaded/ur-20_02_19_14harm50secLoad", 2.805),
        ("unloaded/ur-19_12_23_free", "loaded/ur-19_12_23_load", 1.069),
    ],
)
def test_ur10e_compares_torques_on_the_same_motion_by_itself(shared_data, empty, loaded, mass):
    before, after = (shared_data / "ur10e" / f"{name}.npz" for name in (empty, loaded))
    model = identified(before, "presliding-load")
    payload = sy.weigh(model, after, empty=before)
    direct = sy.weigh(model, after)
    assert (payload.method, direct.method) == ("torque-change", "direct")
    assert payload.std[0] < direct.std[0]
    assert abs(payload.unconstrained.mass - mass) < 0.01 * mass


def test_panda_predicts_the_second_half_from_the_first(shared_data):
    robot = load_robot("panda")
    recording = read(shared_data / "panda" / "exciting_traj1.npz")
    how = Preparation(cutoff_hz=5.0, torque_cutoff_hz=5.0, rate_hz=500.0, lowest_speed=0.0)
    middle = recording.duration_s / 2
    first, second = (
        prepare(recording.between(*span), how) for span in ((0, middle), (middle, 2 * middle))
    )
    model = identify(robot, first, friction="presliding")
    assert (model.validate(second).rms <= [0.14, 0.20, 0.14, 0.13, 0.075, 0.06, 0.055]).all()
    R = model.factor.weighted(solve_weighted(model.factor).weights)
    free = ParameterBounds(
        {f"Ia{j}": (-np.inf, np.inf) for j in range(1, 8)}
    )  # sensors sit behind the gears
    bodies = feasible_parameters(robot, model.basis, R, bounds=free)
    assert bodies.rms_ratio < 1.03
    assert all(link.is_physical for link in bodies.robot.links)


def tx40(folder):
    joints = json.loads((folder / "kinematics.json").read_text())["joints"]
    text = '<robot name="tx40"><link name="link0"/>'
    for i, joint in enumerate(joints):
        xyz, rpy, axis = (" ".join(map(str, joint[key])) for key in ("xyz", "rpy", "axis"))
        text += (
            f'<link name="link{i + 1}"/><joint name="joint{i + 1}" type="continuous"><parent'
            f' link="link{i}"/>'
            f'<child link="link{i + 1}"/><origin xyz="{xyz}" rpy="{rpy}"/><axis'
            f' xyz="{axis}"/></joint>'
        )
    ratios = np.array([32.0, 32, 45, -48, 45, 32])
    coupling = np.diag(ratios)
    coupling[5, 4] = ratios[5]
    return RobotModel.from_urdf_text(text + "</robot>").with_drive(
        DriveModel(np.zeros(6), coupling=coupling)
    )


def test_tx40_with_its_coupled_wrist_shows_the_published_friction_and_rotors(shared_data):
    robot = tx40(shared_data / "tx40")
    file = np.load(shared_data / "tx40" / "tx40.npz")
    q = robot.drive.joint_position(file["motor_pos_rad"]) + np.array(
        [0, -np.pi / 2, np.pi / 2, 0, 0, 0]
    )
    tau = robot.drive.joint_torque(file["motor_torque_nm"])
    recording = Recording(t=np.arange(len(q)) / 5000.0, q=q, tau=tau, joint_names=robot.joint_names)
    how = Preparation(cutoff_hz=50.0, torque_cutoff_hz=50.0, decimate=20, lowest_speed=0.05)
    estimate = identify(robot, prepare(recording, how), friction="band").estimate
    found = dict(zip(estimate.names, estimate.value, strict=True))
    # the published values are those of the joints: joint 5 drags motor 6 along
    viscous = np.array([found[f"Fv{j}"] for j in range(1, 7)]) + np.array(
        [0, 0, 0, 0, found["Fv6"], 0]
    )
    np.testing.assert_allclose(viscous, [8.05, 5.53, 1.97, 1.11, 1.86, 0.65], rtol=0.05)
    coulomb = [found[f"Fc{j}"] for j in range(1, 6)]
    np.testing.assert_allclose(coulomb, [7.14, 8.26, 6.34, 2.48, 3.03], rtol=0.05)
    rotors = [found["Ia3"], found["Ia4"], found["Ia5"] + found["Ia6"], found["Ia6"]]
    np.testing.assert_allclose(rotors, [0.0988, 0.0313, 0.0468, 0.0105], rtol=0.1)
