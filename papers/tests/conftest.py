"""One seeded generator, and simulated runs that several modules share."""

import numpy as np
import pytest

from steelyard_papers.xu2024 import simulated


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240517)


@pytest.fixture(scope="session")
def pair_of_runs() -> simulated.PairOfRuns:
    """xu2024's runs along Table IV, without and with the payload."""
    return simulated.run_pair(step_s=0.002)
