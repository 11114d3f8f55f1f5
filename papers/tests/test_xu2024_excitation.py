"""xu2024 section 4.2: the published trajectory (Table IV), its objective (18) and its envelope."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.excitation import ConditionNumber, DesignLimits, Xu2024
from steelyard.trajectory import FourierTrajectory
from steelyard_papers.xu2024.arm import ur10


@pytest.fixture(scope="module")
def arm():
    return ur10()


@pytest.fixture(scope="module")
def published():
    return FourierTrajectory.load("xu2024")


def test_condition_number_of_the_published_trajectory(arm, published):
    """The paper's 79.67 has an unpublished weighting; without it 179, or 122 (linear friction)."""
    limits = DesignLimits.envelope(published)
    assert ConditionNumber().evaluate(arm, published, limits=limits) == pytest.approx(
        179.2, abs=0.1
    )
    linear = arm.with_drive(replace(arm.drive, exponent=np.ones(6)))
    assert ConditionNumber().evaluate(linear, published, limits=limits) == pytest.approx(122, abs=1)


def test_composite_objective_is_the_weighted_sum_of_four_condition_numbers(arm, published):
    t = np.arange(1250) / 125.0
    criterion = Xu2024().criterion(arm, DesignLimits(arm.limits), arm.home, np.arange(6))
    assert len(criterion.rows.columns) == 58
    A = arm.regressor(*published.at(t)).reshape(-1, 84)[:, criterion.rows.columns]
    kinds = ["f" if n[0] in "FB" else "i" if n[0] == "I" else "g" for n in criterion.names]
    parts = {kind: A[:, [k == kind for k in kinds]] for kind in "igf"}
    expected = 10 * np.linalg.cond(A) + 5 * np.linalg.cond(parts["i"])
    expected += np.linalg.cond(parts["g"]) + np.linalg.cond(parts["f"])
    assert Xu2024().evaluate(arm, published) == pytest.approx(expected, rel=1e-9)


def test_the_published_trajectory_keeps_the_limits_of_its_arm_and_fills_its_envelope(
    arm, published
):
    assert DesignLimits(arm.limits).certify(arm, published).holds
    own = DesignLimits.envelope(published).certify(arm, published)
    assert own.worst.share == pytest.approx(0, abs=1e-5)


def test_weighting_changes_the_condition_number(arm, published):
    noise = np.array([1.3102, 2.5186, 1.1437, 0.3914, 0.2793, 0.3325])
    weighted = ConditionNumber(weights=1 / noise).evaluate(arm, published)
    assert weighted != pytest.approx(179.2, rel=0.05)
