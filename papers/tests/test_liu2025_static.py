"""The linear static stages that liu2025 prints, beside the one of steelyard."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.inertia import InertialParameters
from steelyard.wrist import Postures, WristRecording, WristSensor, weigh_static
from steelyard.wrist._regressor import BaseGravity, wrench_regressor
from steelyard_papers.liu2025.static import weigh_linear

UPRIGHT = np.array([0.0, 0.0, -9.81])
TILT = np.array([0.03, -0.05])
BODY = InertialParameters.from_com(5.0, [0.02, -0.04, 0.1], 0.05 * np.eye(3))
DRIFT = np.array([3.0, -5.0, 8.0, 0.4, -0.3, 0.2])
TRUTH = np.concatenate([BODY.vector[:4], DRIFT, TILT])


def postures(rng, noise):
    """Twelve postures as a sensor would give them."""
    R = Rotation.random(12, random_state=1).as_matrix()
    u = np.einsum("nji,j->ni", R, BaseGravity(UPRIGHT).tilted(TILT))
    w = wrench_regressor(np.column_stack([u, np.zeros((12, 9))])) @ BODY.vector + DRIFT
    w = w + noise * rng.normal(size=(12, 6)) * [1, 1, 1, 0.1, 0.1, 0.1]
    recording = WristRecording(np.arange(12.0), w, R, WristSensor(), timed=False)
    return Postures.of(recording)


@pytest.mark.parametrize("method", ["ls", "tls"])
def test_every_method_recovers_exact_postures(method, rng):
    found = weigh_linear(postures(rng, 1e-9), method)
    np.testing.assert_allclose(found.value, TRUTH, atol=1e-6)
    assert found.mass == pytest.approx(5.0)
    np.testing.assert_allclose(found.com, BODY.com, atol=1e-7)
    np.testing.assert_allclose(found.drift, DRIFT, atol=1e-6)
    np.testing.assert_allclose(found.gravity_base, BaseGravity(UPRIGHT).tilted(TILT), atol=1e-6)


def test_the_restricted_method_is_the_best():
    errors = {m: [] for m in ("restricted", "ls", "tls")}
    for seed in range(30):
        rows = postures(np.random.default_rng(seed), 0.2)
        errors["restricted"].append(weigh_static(rows).value - TRUTH)
        for method in ("ls", "tls"):
            errors[method].append(weigh_linear(rows, method).value - TRUTH)
    size = {m: np.sqrt(np.mean(np.square(rows), axis=0)) for m, rows in errors.items()}
    assert (
        size["restricted"][1:4] < 0.95 * size["ls"][1:4]
    ).all()  # measured forces are noisy columns
    assert (size["restricted"][1:4] < 0.95 * size["tls"][1:4]).all()
    assert (size["restricted"] < 1.1 * size["ls"]).all()


@pytest.mark.parametrize("method", ["ls", "tls"])
def test_the_linear_methods_know_their_uncertainty(method):
    z = []
    for seed in range(25):
        found = weigh_linear(postures(np.random.default_rng(seed), 0.2), method)
        z.append((found.value - TRUTH) / found.std)
    assert 0.8 < np.std(z) < 1.2
