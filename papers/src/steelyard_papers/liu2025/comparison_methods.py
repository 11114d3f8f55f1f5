"""The two methods that liu2025 compares itself with, for comparison."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard._arrays import Array
from steelyard.wrist import (
    Postures,
    StaticFit,
    WrenchSamples,
    WristPayload,
    weigh_dynamic,
)
from steelyard.wrist._regression import WrenchRegression
from steelyard.wrist.estimators import ESTIMATORS
from steelyard_papers.liu2025.static import weigh_linear


def method_1(postures: Postures, *, gravity_base: Array) -> WristPayload:
    """Method 1: the static equation by total least squares; inertial forces are ignored.

    Args:
        postures: at rest, or with `moving_postures` rows of a motion that is taken for rest
        gravity_base: gravity without a tilt, (3,) [m/s^2], in the base frame
    """
    return weigh_linear(postures, gravity_base=gravity_base).payload()


def method_2(samples: WrenchSamples, static: StaticFit) -> WristPayload:
    """Method 2: recursive total least squares of the dynamic equation; ignores the tilt.

    Args:
        samples: wrench and motion
        static: a static stage, for the zero drift only
    """
    value = static.value.copy()
    value[10:] = 0.0
    upright = replace(static, value=value)
    return weigh_dynamic(samples, upright, estimator=ESTIMATORS["rtls"])


def regression_of_ten(samples: WrenchSamples, static: StaticFit) -> WrenchRegression:
    """The regression of the ten parameters alone, drift and tilt taken from the static stage.

    Args:
        samples: wrench and motion
        static: a static stage; its point mass is the first guess
    """
    return WrenchRegression(
        samples.features(static.gravity_base),
        samples.feature_covariance,
        np.zeros((len(samples), 6, 0)),
        samples.wrench - static.drift,
        samples.wrench_covariance,
        np.concatenate([static.value[:4], np.zeros(6)]),
        np.zeros((10, 10)),
    )


def moving_postures(samples: WrenchSamples, every: int = 1) -> Postures:
    """The rows of a motion, taken for postures at rest.

    Args:
        samples: wrench and motion
        every: take every k-th row
    """
    t = samples.t[::every]
    return Postures(
        t,
        samples.wrench[::every],
        np.tile(np.diag(samples.wrench_covariance), (len(t), 1)),
        samples.R_base_sensor[::every],
        np.ones(len(t), dtype=np.int64),
        timed=False,
    )
