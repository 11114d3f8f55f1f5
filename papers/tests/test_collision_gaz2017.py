"""gaz2017 Fig. 6: a payload that is not known looks like contacts; known, it does not hide one."""

import numpy as np
import pytest

from steelyard_papers.gaz2017.collision import CONTACTS_S, LIMIT_NM, figure_six


@pytest.fixture(scope="module")
def six():
    return figure_six()


def test_without_the_payload_free_motion_exceeds_the_threshold(six):
    assert six.largest_free(six.ignored) > 2 * LIMIT_NM


def test_with_the_estimated_payload_it_stays_far_below_and_all_three_contacts_are_found(six):
    assert six.payload.body.mass == pytest.approx(six.truth.mass, abs=3 * six.payload.std[0])
    assert six.payload.std[0] < 0.01 * six.truth.mass
    assert six.largest_free(six.known) < LIMIT_NM / 3
    assert len(six.known.contacts) == len(CONTACTS_S)
    assert (six.delays_s(six.known) < 0.1).all()
    assert not np.isfinite(six.delays_s(six.ignored)).all()
