"""The template of plug-ins, found as an installed package is found."""

import zlib

import numpy as np
import pytest

import plug_in_template
from steelyard.control.collision import Observer
from steelyard.errors import InvalidRobot, UnknownName, UnreadableFile
from steelyard.identification import DynamicModel, identify
from steelyard.inertia import InertialParameters
from steelyard.io import read
from steelyard.recording import Samples
from steelyard.robot import load_robot
from steelyard.robot._friction import FrictionLaw
from steelyard.torque import weigh

FORCE = 900.0  # [N], of the cylinder


@pytest.fixture
def installed(tmp_path, monkeypatch):
    with plug_in_template.installed(tmp_path, monkeypatch):
        yield


def wide_motion(robot, seed):
    """Swings of more than a radian, over which the lever of the cylinder is no sine."""
    rng = np.random.default_rng(seed)
    t = np.arange(0, 20, 0.01)[:, None, None]
    w = np.array([0.7, 1.3, 2.9])
    phase = rng.uniform(0, 2 * np.pi, (robot.n, 3))
    size = np.array([0.9, 0.5, 0.15]) * rng.uniform(0.7, 1.0, (robot.n, 3))
    q = robot.home + (size * np.sin(w * t + phase)).sum(-1)
    v = (size * w * np.cos(w * t + phase)).sum(-1)
    return q, v, -(size * w**2 * np.sin(w * t + phase)).sum(-1)


def run(robot, seed, payload=None):
    """Motion and torques of an arm with a cylinder at axis 2."""
    from steelyard_plug_in import counterbalance

    q, v, a = wide_motion(robot, seed)
    if payload is not None:
        robot = robot.with_payload(payload)
    tau = robot.torque(q, v, a) + FORCE * counterbalance(robot, q, v)[:, :, 0]
    tau = tau + 0.2 * np.random.default_rng(seed).normal(size=q.shape)
    return Samples(q, v, a, tau, 100.0, robot.joint_names, "measured")


def test_a_term_is_fitted_saved_and_used_in_weighing(installed, tmp_path):
    robot = load_robot("ur10").with_terms(["counterbalance"])
    model = identify(robot, run(robot, 1), friction="linear")
    k = model.estimate.names.index("X1")
    assert abs(model.estimate.value[k] - FORCE) < 4 * model.estimate.std[k]
    assert model.estimate.std[k] < 0.05 * FORCE
    blind = identify(load_robot("ur10"), run(robot, 1), friction="linear")
    assert blind.estimate.noise[1] > 2 * model.estimate.noise[1]
    model.save(tmp_path / "model.json")
    again = DynamicModel.load(tmp_path / "model.json")
    assert again.robot.terms == ("counterbalance",)
    load = InertialParameters.from_com(
        3.5, [0.02, -0.03, 0.06], np.diag([0.02, 0.03, 0.025]), robot.flange
    )
    found = weigh(again, run(robot, 2, load))
    assert abs(found.unconstrained.mass - 3.5) < 4 * found.std[0] < 0.5
    with pytest.raises(
        InvalidRobot, match=r"terms of plug-ins \(counterbalance\), which collision"
    ):
        Observer.of(model)


def test_a_term_that_is_not_installed_is_named(installed):
    robot = load_robot("ur10").with_terms(["spring"])
    with pytest.raises(
        UnknownName, match=r"no term 'spring' \(counterbalance\): install the package"
    ):
        identify(robot, run(load_robot("ur10"), 1), friction="linear")


def test_a_law_of_another_package(installed):
    law = FrictionLaw.named("smooth-stribeck-load", 6)
    assert (law.direction, law.curved, law.stribeck, law.load) == ("smooth", True, True, True)
    with pytest.raises(UnknownName, match="presliding-load, smooth-stribeck-load"):
        FrictionLaw.named("none", 6)


def test_a_reader_of_another_package(installed, tmp_path, rng):
    q, tau = rng.normal(size=(2, 20, 3))
    rows = [
        f"{k / 50} | {' '.join(map(repr, map(float, a)))} | {' '.join(map(repr, map(float, b)))}"
        for k, (a, b) in enumerate(zip(q, tau, strict=True))
    ]
    (tmp_path / "log.xlog").write_text("\n".join(rows))
    recording = read(tmp_path / "log.xlog")
    np.testing.assert_array_equal(recording.tau, tau)
    assert recording.rate_hz == pytest.approx(50.0)


def test_whatever_a_reader_of_another_package_raises_is_one_line(installed, tmp_path, monkeypatch):
    import steelyard_plug_in

    def fail(path):
        raise zlib.error("incorrect header check\nof a block")

    monkeypatch.setattr(steelyard_plug_in, "read_xlog", fail)
    path = tmp_path / "log.xlog"
    path.write_text("0 | 1 | 2")
    with pytest.raises(UnreadableFile, match=r"log\.xlog: the plug-in 'xlog' .* header check\);"):
        read(path)
