"""The same payload by several methods, and what is in its interval.

The methods differ in what they compare (docs/explanation/payload.md). Each returns ten numbers
with a covariance.
The default, `direct`, keeps the empty arm as a prior and estimates today's friction anew.
"""

import numpy as np

import steelyard as sy
from steelyard.inertia import InertialParameters
from steelyard.simulation import SensorModel, SimulationOptions

robot, motion = sy.load_robot("ur10"), sy.FourierTrajectory.load("xu2024")
truth = InertialParameters.from_com(3.5, [0.0, 0.01, 0.05], np.diag([0.012, 0.012, 0.008]))


def run(payload, seed, correlation_s=0.0):
    """A recording with the torque noise of a real UR10, white or correlated in time."""
    noise = np.array([1.31, 2.52, 1.14, 0.39, 0.28, 0.33])  # [Nm]
    sensors = SensorModel(torque_std=noise, torque_correlation_s=correlation_s)
    options = SimulationOptions(step_s=0.002)
    return sy.simulate(
        robot, motion, payload=payload, sensors=sensors, seed=seed, options=options
    ).recording


def identified(data, gains="auto"):
    """The arm with the friction law of its file, from measured torques unless `gains` is given."""
    return sy.identify(robot, data, friction=None, gains=gains)


def half(payload):
    """Half the width of the 95 % interval of the mass [kg]."""
    return payload.quantities[0].half_width


empty, loaded = run(None, 0), run(truth, 1)
model = identified(empty)

print(
    "method               mass [kg]   95 % +-   error   centre of mass [mm]   (truth"
    f" {truth.mass}, 0 10 50)"
)
for method in ("direct", "difference", "weighted-difference", "torque-change", "pooled"):
    runs = [empty] if method in ("torque-change", "pooled") else []  # others have the model only
    payload = sy.weigh(model, loaded, method=method, empty=runs)
    com = " ".join(f"{1e3 * x:5.1f}" for x in payload.com)
    error = payload.mass - truth.mass
    print(f"{method:21s} {payload.mass:8.3f}   {half(payload):7.3f}  {error:+7.3f}   {com}")

# What you know already makes the rest surer.
known = sy.weigh(model, loaded, fixed={"m": truth.mass})
free = sy.weigh(model, loaded)
print("\nCentre of mass along z, 95 % half-width:")
print(f"    nothing known      {free.quantities[3].half_width:.2f} mm")
print(f"    mass from a scale  {known.quantities[3].half_width:.2f} mm")

# What is in the interval: noise that is correlated in time, the empty arm's own uncertainty,
# friction, gains.
print("\n95 % half-width of the mass:")
print(f"    white noise                               {half(free):.4f} kg")
slow = sy.weigh(identified(run(None, 0, correlation_s=0.1)), run(truth, 1, correlation_s=0.1))
print(f"    noise of the same size, slow (0.1 s)      {half(slow):.4f} kg")
by_currents = sy.weigh(identified(empty, gains="robot"), loaded)
print(f"    from currents, by gains of the maker      {half(by_currents):.4f} kg")

# A short motion gives a wide interval, and what is wide you cannot use.
short = sy.weigh(model, sy.prepare(loaded).rows(slice(0, 125)))
print(f"\nFrom the first second: {short}")
