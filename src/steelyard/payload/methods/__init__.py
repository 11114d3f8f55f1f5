"""The methods of weighing, one file each, behind one interface: a `WeighingProblem` in, an `Answer` out."""

from steelyard.payload.methods.difference import difference, difference_weighted
from steelyard.payload.methods.direct import direct
from steelyard.payload.methods.joint import joint
from steelyard.payload.methods.problem import Answer, WeighingProblem
from steelyard.payload.methods.static import combined, static
from steelyard.payload.methods.torque_change import manufacturer, torque_change

__all__ = ["METHODS", "Answer", "WeighingProblem"]

METHODS = {
    "direct": direct,
    "difference": difference,
    "weighted-difference": difference_weighted,
    "torque-change": torque_change,
    "manufacturer": manufacturer,
    "static": static,
    "combined": combined,
    "joint": joint,
}
"""By the name that `weigh` and the command line know."""
