"""What a type checker sees of the top-level API; `make types` checks this file.

Wrong uses are marked as errors: mypy complains about a mark that is not needed.
"""

from typing import TYPE_CHECKING, assert_type

import numpy as np
from numpy.typing import NDArray

import steelyard as sy
from steelyard.payload import Payload

if TYPE_CHECKING:
    robot = sy.load_robot("ur10")
    model = sy.identify(robot, "empty.parquet")
    payload = sy.weigh(model, ["loaded.parquet"], fixed={"mass": 2.5})
    assert_type(robot, sy.RobotModel)
    assert_type(model, sy.DynamicModel)
    assert_type(payload, Payload)
    assert_type(payload.std, NDArray[np.float64])
    assert_type(payload.mass, float)
    assert_type(payload.verdict.ok, bool)
    assert_type([doubt.words for doubt in payload.verdict.doubts], list[str])

    sy.weigh(model, "loaded.parquet", metod="static")  # type: ignore[call-arg]
    sy.wiegh(model)  # type: ignore[attr-defined]
    number: str = sy.weigh(model, "loaded.parquet").mass  # type: ignore[assignment]
