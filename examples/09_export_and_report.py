"""Export: a payload for the controller, an arm for a simulator, a report for a colleague.

Doubtful numbers are not exported. Every file says its frame, its units and its uncertainty.
"""

from pathlib import Path

import numpy as np

import steelyard as sy
from steelyard.inertia import InertialParameters
from steelyard.io import arm_for_export
from steelyard.report import payload_page
from steelyard.simulation import SimulationOptions

robot, motion = sy.load_robot("ur10"), sy.FourierTrajectory.load("xu2024")
part = InertialParameters.from_com(2.0, [0.0, 0.01, 0.05], np.diag([0.008, 0.008, 0.005]))
options = SimulationOptions(step_s=0.002)
recording = sy.simulate(robot, motion, payload=part, seed=1, options=options).recording
model = sy.identify(robot, sy.simulate(robot, motion, options=options).recording, friction="power")
payload = sy.weigh(model, recording)

# Files to keep: the model and the payload, with their covariances.
model.save("model.json")
payload.save("payload.json")
payload = sy.Payload.load("payload.json")

print("For a UR controller (the program line only):")
text = payload.export("ur")
print(
    "    "
    + next(line.strip() for line in text.splitlines() if line.strip().startswith("set_target"))
)

# The controller's flange may sit elsewhere than the model's: say where the model's flange is in it.
T_controller_model = np.eye(4)
T_controller_model[2, 3] = 0.03
for target in ("abb", "franka-ros2"):
    payload.export(target, f"payload.{target}.txt", T_target_payload=T_controller_model)

# What is doubtful is refused, with the reason.
samples = sy.prepare(recording, model.preparation)
try:
    sy.weigh(model, samples.rows(slice(0, 60))).export("ur")
except sy.SteelyardError as error:
    print(f"From 0.5 s of motion: {error}.")

# The whole arm, as real bodies, for a simulator.
arm_for_export(model).write("arm.xml", "mjcf")

# A page: the answer first, then why to believe it. It is one file and needs no network.
quality = {"loaded run": sy.check(recording, limits=robot.limits)}
payload_page(model, payload, samples).with_quality(quality).write(Path("payload.html"))
print("Written:")
for path in sorted(Path().glob("*.*")):
    print(f"    {path} ({path.stat().st_size / 1e3:.0f} kB)")
