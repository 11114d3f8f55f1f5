"""Use what was weighed: feed-forward torque, and finding collisions without a sensor.

Both need the torque that the arm should have with what it carries. A payload that is not known
looks like an error of the arm, or like a person who pushes all the time.
"""

import numpy as np

import steelyard as sy
from steelyard.control import Compensator
from steelyard.inertia import InertialParameters
from steelyard.simulation import Push, SimulationOptions

robot, motion = sy.load_robot("ur10"), sy.FourierTrajectory.load("xu2024")
part = InertialParameters.from_com(3.0, [0.0, 0.02, 0.08], np.diag([0.01, 0.01, 0.008]))
options = SimulationOptions(step_s=0.002)
model = sy.identify(robot, sy.simulate(robot, motion, options=options).recording, friction="power")
payload = sy.weigh(
    model, sy.simulate(robot, motion, payload=part, seed=1, options=options).recording
)
print(f"The arm carries {payload}")

# Feed-forward: the torque of a motion that neither run has seen.
other = sy.FourierTrajectory.random(
    robot.home, reach=[0.8] * 6, speed=[1.2] * 6, period_s=6.0, harmonics=4, seed=5
)
loaded = sy.simulate(robot, other, payload=part, seed=2, options=options)
measured = sy.prepare(
    loaded.recording, sy.Preparation(trim_s=0.1)
)  # it begins in motion: filters err at the ends
for words, carried in (("without the payload", None), ("with the payload   ", payload)):
    error = (
        measured.tau - Compensator(model, carried).batch(measured.q, measured.v, measured.a).total
    )
    moving = np.ma.array(error, mask=~measured.mask)  # at rest friction is anything up to its limit
    print(f"Feed-forward {words}: error {np.round(np.sqrt((moving**2).mean(axis=0)), 2)} Nm RMS")
change = Compensator(model, payload).payload_torque(measured.q, measured.v, measured.a)
j = int(np.abs(change.total).max(axis=0).argmax())
worst = np.abs(change.total[:, j]).argmax()
print(
    f"At most it changes {robot.joint_names[j]}, by {change.total[worst, j]:.2f} Nm"
    f" +- {1.96 * change.std[worst, j]:.2f}."
)

# Collisions: learn from a motion without contact what is normal today, then watch.
push = Push(3.0, 0.3, robot.flange, np.array([0.0, 0.0, -40.0]))
watched = sy.simulate(robot, other, payload=part, seed=3, pushes=[push], options=options).recording
found = sy.collisions(model, watched, payload=payload, learn=loaded.recording)
print("A person pushes the tool with 40 N from 3.0 to 3.3 s. Found:")
for contact in found.contacts:
    print(
        f"    {contact.start_s:.3f} s, by {contact.joint}, which points to link '{contact.link}'"
        " or beyond"
    )
