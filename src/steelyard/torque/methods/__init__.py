"""Methods of weighing behind one interface: a `WeighingProblem` in, an `Answer` out."""

from steelyard.torque.methods._difference import difference, difference_weighted
from steelyard.torque.methods._direct import direct
from steelyard.torque.methods._pooled import pooled
from steelyard.torque.methods._problem import Answer, WeighingProblem
from steelyard.torque.methods._static import combined, static
from steelyard.torque.methods._torque_change import manufacturer, torque_change

__all__ = ["METHODS", "Answer", "WeighingProblem"]

METHODS = {
    "direct": direct,
    "difference": difference,
    "weighted-difference": difference_weighted,
    "torque-change": torque_change,
    "manufacturer": manufacturer,
    "static": static,
    "combined": combined,
    "pooled": pooled,
}
"""By the name that `weigh` and the command line know."""
