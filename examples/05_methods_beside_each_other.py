"""The same payload by several methods, and what is in its interval.

The methods differ in what they compare (docs/payload.md). All give ten numbers with a covariance. The
default, `direct`, keeps the empty arm as a prior and estimates today's friction anew.
"""

from dataclasses import replace

import numpy as np

from steelyard import InertialParameters, identify, load_robot, load_trajectory, prepare, simulate, weigh
from steelyard.simulation import SensorModel, SimulationOptions

robot, motion = load_robot("ur10"), load_trajectory("xu2024")
truth = InertialParameters.from_com(3.5, [0.0, 0.01, 0.05], np.diag([0.012, 0.012, 0.008]))


def run(payload, seed, correlation_s=0.0):
    """Samples of a run with torque noise as large as that of a real UR10, white or correlated in time."""
    noise = np.array([1.31, 2.52, 1.14, 0.39, 0.28, 0.33])  # [Nm]
    sensors = SensorModel(torque_std=noise, torque_correlation_s=correlation_s)
    options = SimulationOptions(step_s=0.002)
    recording = simulate(robot, motion, payload=payload, sensors=sensors, seed=seed, options=options)
    return prepare(recording.recording)


empty, loaded = run(None, 0), run(truth, 1)
model = identify(robot, empty, friction="power")

print(
    f"{'method':21s} mass [kg]   95 % +-   error   centre of mass [mm]   (truth {truth.mass} kg, 0 10 50 mm)"
)
for method in ("direct", "difference", "weighted-difference", "torque-change", "pooled"):
    payload = weigh(model, loaded, method=method, empty=empty)
    body, half = payload.body, 1.96 * payload.std[0]
    com = " ".join(f"{1e3 * x:5.1f}" for x in body.com)
    print(f"{method:21s} {body.mass:8.3f}   {half:7.3f}  {body.mass - truth.mass:+7.3f}   {com}")

# What you know already makes the rest surer.
known = weigh(model, loaded, fixed={"m": truth.mass})
free = weigh(model, loaded)
print("\nCentre of mass along z, 95 % half-width:")
print(f"    nothing known      {1e3 * 1.96 * free.com_std[2]:.2f} mm")
print(f"    mass from a scale  {1e3 * 1.96 * known.com_std[2]:.2f} mm")

# What is in the interval: noise that is correlated in time, the empty arm's own uncertainty, friction, gains.
print("\n95 % half-width of the mass:")
print(f"    white noise                               {1.96 * free.std[0]:.4f} kg")
slow_model = identify(robot, run(None, 0, correlation_s=0.1), friction="power")
slow = weigh(slow_model, run(truth, 1, correlation_s=0.1))
print(f"    noise of the same size, slow (0.1 s)      {1.96 * slow.std[0]:.4f} kg")
doubtful = robot.with_drive(replace(robot.drive, gain_std=0.02 * robot.drive.gain))
gains = weigh(identify(doubtful, empty, friction="power"), loaded)
print(f"    white noise, drive gains known to 2 %     {1.96 * gains.std[0]:.4f} kg")

# A short motion gives a wide interval, and what is wide you cannot use.
short = weigh(model, loaded.rows(slice(0, 125)))
print(f"\nFrom the first second: {short.body.mass:.1f} kg +- {1.96 * short.std[0]:.1f}; {short.status}.")
