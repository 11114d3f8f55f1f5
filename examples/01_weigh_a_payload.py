"""Weigh what an arm carries: record it empty, identify it, record it loaded, weigh.

Here the arm is a UR10 in MuJoCo, so that the truth is known. With your own arm the two recordings come from
`steelyard.read_recording`, and everything below the line stays as it is.
"""

from dataclasses import replace

import numpy as np

from steelyard import InertialParameters, identify, load_robot, load_trajectory, prepare, simulate, weigh

robot = load_robot("ur10")
motion = load_trajectory("xu2024")  # a published motion of 10 s that moves all six joints
truth = InertialParameters.from_com(2.5, [0.01, -0.02, 0.06], np.diag([0.010, 0.012, 0.008]))
empty_recording = simulate(robot, motion, seed=0).recording
loaded_recording = simulate(robot, motion, payload=truth, seed=1).recording

# --------------------------------------------------------------------------------------------------------

drive = robot.drive  # its gains [Nm/A] make torques of motor currents; known to 2 % (std), see below
empty = prepare(empty_recording, drive=drive)  # uniform in time, filtered, differentiated
loaded = prepare(loaded_recording, drive=drive)

model = identify(robot, empty, friction="power")
payload = weigh(model, loaded)

print(f"The arm: {model.estimate.status}.")
print(f"The payload, in frame '{payload.body.frame}': {payload.status}.")
print(f"mass            {payload.body.mass:8.3f} kg +- {1.96 * payload.std[0]:.3f}   truth {truth.mass}")
for axis, value, std, true in zip("xyz", payload.body.com, payload.com_std, truth.com, strict=True):
    print(f"centre of mass {axis} {1e3 * value:7.2f} mm +- {1e3 * 1.96 * std:.2f}    truth {1e3 * true:.2f}")

inside = abs(payload.body.mass - truth.mass) < 1.96 * payload.std[0]
print(f"The true mass lies {'inside' if inside else 'outside'} the 95 % interval.")

# Most of the interval is the gains'. In this simulation they are exact, and one may say so. Of a real arm, a
# run with a known mass tells them better than its maker (steelyard.identification.gains).
exact = robot.with_drive(replace(robot.drive, gain_std=np.zeros(6)))
sure = weigh(identify(exact, empty, friction="power"), loaded)
print(f"With gains that are exact: mass {sure.body.mass:.3f} kg +- {1.96 * sure.std[0]:.3f}.")
