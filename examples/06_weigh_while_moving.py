"""Weigh while the arm moves: a part is picked up, and dropped again.

The estimator takes one sample at a time and keeps its state in a value. It tests for another
payload, and says when the mass is known well enough.
"""

import json

import numpy as np

import steelyard as sy
from steelyard.inertia import InertialParameters
from steelyard.signals import replay
from steelyard.simulation import SimulationOptions
from steelyard.torque.tracking import TorqueTracker, TorqueTrackerState

robot, motion = sy.load_robot("ur10"), sy.FourierTrajectory.load("xu2024")
part = InertialParameters.from_com(3.0, [0.0, 0.02, 0.05], np.diag([0.01, 0.01, 0.008]))


def run(seed, payload=None):
    """Samples of a run."""
    options = SimulationOptions(step_s=0.002)
    return sy.prepare(
        sy.simulate(robot, motion, seed=seed, payload=payload, options=options).recording
    )


empty, loaded = run(1), run(2, part)
model = sy.identify(robot, run(3), friction=None)

# The stream of a day's work: the arm is empty, holds the part from 3 s to 8 s, and is empty again.
holding = (empty.t >= 3.0) & (empty.t < 8.0)
signals = {
    name: np.where(holding[:, None], getattr(loaded, name), getattr(empty, name))
    for name in ("q", "v", "a", "tau")
}
stream = sy.Samples(
    **signals, rate_hz=empty.rate_hz, joint_names=empty.joint_names, kinematics="measured"
)

estimator = TorqueTracker(model, "measured")
state, changes = estimator.init(), 0
for k, sample in enumerate(replay(stream)):
    state = estimator.step(state, sample)
    if len(state.history) > changes:
        changes, last = len(state.history), state.history[-1]
        print(
            f"{sample.t:5.2f} s  another payload, since {last.end_s:.2f} s at the earliest;", end=""
        )
        print(f" it was {last.vector[0]:.2f} kg")
    if k % 125 == 124:
        payload = estimator.estimate(
            state, physical=False
        )  # the plain answer, quick enough for every sample
        known = "known to 1 %" if estimator.converged(state) else ""
        half_width = payload.quantities[0].half_width
        print(f"{sample.t:5.2f} s  {payload.mass:7.3f} +- {half_width:.3f} kg  {known}")

payload = estimator.estimate(state, physical=False)
print(f"\nAt the end: {payload.verdict}")

# A state is plain data: save it, go on tomorrow or on another machine.
text = json.dumps(state.to_dict())
resumed = estimator.estimate(TorqueTrackerState.from_dict(json.loads(text)), physical=False)
same = "the same" if resumed.mass == payload.mass else "another"
print(f"The state is {len(text) / 1e3:.0f} kB of JSON; resumed, it gives {same} mass.")

# A whole recording, as `steelyard track` replays it: the answer with the curve that led to
# it.
found = sy.track(loaded, model=model)
since_s = found.converged_s[1]
print(f"Replayed: {found.payload.mass:.3f} kg, known to 1 % since {since_s:.1f} s.")
