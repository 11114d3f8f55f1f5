"""The evidence with further unknowns equals that of all unknowns together."""

import numpy as np
import pytest

from steelyard.picking._arm_state import Equations, EvidenceFactor, Products, posterior
from steelyard.picking._dry import _repeated_share


@pytest.mark.parametrize("rows", [4, 40])
def test_further_unknowns_need_no_new_factor(rows):
    rng = np.random.default_rng(rows)
    p, m = 6, 3
    Y = rng.normal(size=(rows, p))
    Z = rng.normal(size=(rows, m))
    tau = rng.normal(size=rows)
    L = rng.normal(size=(p, p))
    S = rng.normal(size=(m, m))
    u = rng.normal(size=p)
    w = rng.normal(size=m)
    together = np.zeros((p + m, p + m))
    together[:p, :p] = L
    together[p:, p:] = S
    expected = posterior(
        np.append(u, w), together, Equations.of(np.column_stack([Y, Z, tau]))
    ).log_evidence
    factor = EvidenceFactor.of(u, L, Equations.of(np.column_stack([Y, tau])))
    found = factor.log_evidence(w, S, Products(Y.T @ Z, Z.T @ Z, Z.T @ tau))
    assert found == pytest.approx(expected, rel=1e-10)


def test_the_share_of_a_misfit_that_is_not_noise():
    """A slow misfit of variance 1 and noise of variance 3, 0 and 1 without a misfit."""
    rng = np.random.default_rng(3)
    t = np.arange(20_000) / 100
    slow = np.sqrt(2.0) * np.sin(0.7 * t)
    noise = np.convolve(rng.normal(size=len(t) + 4), np.ones(5), "valid") / np.sqrt(5)
    misfit = np.column_stack([slow + np.sqrt(3.0) * noise, slow, noise])
    share = _repeated_share([misfit[:9000], misfit[9000:], misfit[:3]], [100.0] * 3)
    np.testing.assert_allclose(share, [0.25, 1.0, 0.0], atol=0.04)
    share = _repeated_share([misfit[:9000:20], misfit[9000:]], [5.0, 100.0])
    np.testing.assert_allclose(share, [0.25, 1.0, 0.0], atol=0.04)
