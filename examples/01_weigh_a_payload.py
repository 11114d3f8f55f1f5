"""Weigh what an arm carries: record it empty, identify it, record it loaded, weigh.

Here the arm is a UR10 in MuJoCo, so that the truth is known. With your own arm `empty` and `loaded`
are the names of two log files, and everything below the line stays as it is.
"""

from dataclasses import replace

import numpy as np

import steelyard as sy
from steelyard.inertia import InertialParameters

robot = sy.load_robot("ur10")
motion = sy.FourierTrajectory.load("xu2024")  # a published motion of 10 s that moves all six joints
truth = InertialParameters.from_com(2.5, [0.01, -0.02, 0.06], np.diag([0.010, 0.012, 0.008]))
empty = sy.simulate(robot, motion, seed=0).recording
loaded = sy.simulate(robot, motion, payload=truth, seed=1).recording

# ------------------------------------------------------------------------------

# From motor currents, by the gains of the robot file. Without `friction`, every law is tried.
model = sy.identify(robot, empty, gains="robot", friction="power")
payload = sy.weigh(model, loaded)  # prepared as the empty run was

print(f"The arm: {model.verdict}")
print(f"The payload: {payload}")
for found, true in zip(payload.quantities[:4], (truth.mass, *(1e3 * truth.com)), strict=True):
    print(
        f"{found.name:16s} {found.value:7.3f} +- {found.half_width:.3f} {found.unit}, truth"
        f" {true:g}"
    )

inside = abs(payload.mass - truth.mass) < payload.quantities[0].half_width
print(f"The true mass lies {'inside' if inside else 'outside'} the 95 % interval.")

# Most of the interval comes from the gains: makers' numbers are worth 2 % together and 1 % each. In
# this simulation they are exact, and one may say so. For a real arm, a run with a known mass shows
# them better: gains=KnownMass(2.0, "known.csv").
exact = robot.with_drive(replace(robot.drive, gain_std=np.zeros(6)))
sure = sy.weigh(sy.identify(exact, empty, gains="robot", friction="power"), loaded)
print(f"With gains that are exact: mass {sure.mass:.3f} +- {sure.quantities[0].half_width:.3f} kg.")

# The verdict is a value: programs ask `ok` and the kinds of doubts, people read the words.
if payload.verdict.ok:
    payload.export("ur", "payload.script")
short = sy.weigh(model, loaded.rows(loaded.t < 1.0))
print(f"From one second of motion: ok is {short.verdict.ok}.")
for doubt in short.verdict.doubts:
    print(f"    {doubt.kind}: {doubt.words}")
