"""Limits of good picks: the stated rate of false alarms, with known and with estimated scatter."""

import numpy as np
import pytest
from scipy.stats import norm, t

from steelyard.payload import Part
from steelyard.picking._carry import Mass
from steelyard.picking._decide import MASS_SHARE, MassLimits
from steelyard.picking._shift import References

RATE = 0.02
PART = Part("lid", 0.5, 0.0)


@pytest.mark.parametrize("freedom", [np.inf, 12.0])
@pytest.mark.parametrize("tolerance", [0.0, 0.2, 0.7, 3.0])
def test_a_good_part_at_the_end_of_its_tolerance_fails_at_the_stated_rate(freedom, tolerance):
    limits = MassLimits(RATE, freedom)
    reach = limits.reach(1.0, tolerance)
    law = norm if freedom == np.inf else t(freedom)
    fails = law.sf(reach - tolerance) + law.sf(reach + tolerance)
    assert fails <= MASS_SHARE * RATE * (1 + 1e-9)
    assert fails > 0.6 * MASS_SHARE * RATE
    assert MassLimits(RATE / 10, freedom).reach(1.0, tolerance) > reach


def test_an_exact_mass_has_its_tolerance_as_limit():
    assert MassLimits(RATE).reach(0.0, 0.3) == 0.3


def test_picks_that_scatter_less_than_their_deviations_narrow_the_relative_mass():
    """Misfit that is the same in each cycle is in the deviation, but not in the scatter."""
    rng = np.random.default_rng(3)
    references = References()
    for _ in range(50):
        references = references.with_good(Mass(0.55 + 0.01 * rng.normal(), 0.03, 0.0), "lid")
    found = references.compared(Mass(0.55, 0.03, 0.0), PART)
    assert abs(found.mass.value - 0.5) < 0.01
    assert 0.010 < found.mass.std < 0.018
    assert found.freedom == 57.0


@pytest.mark.parametrize("picks", [5, 12, 40])
def test_relative_masses_keep_the_stated_rate_of_false_alarms(picks):
    rng = np.random.default_rng(4)
    trials = 1500
    alarms = 0
    for values in rng.normal(0.5, 0.01, (trials, picks + 1)):
        recent = tuple((value, 0.01) for value in values[:-1].tolist())
        references = References(recent={"lid": recent})
        found = references.compared(Mass(float(values[-1]), 0.01, 0.0), PART)
        limits = MassLimits(RATE, found.freedom)
        alarms += not limits.fits(found.mass.value, found.mass.std, PART.mass, 0.0)
    assert alarms < trials * RATE


def test_too_few_picks_are_no_reference():
    references = References(recent={"lid": ((0.5, 0.01),) * 4})
    assert references.compared(Mass(0.5, 0.01, 0.0), PART) is None
