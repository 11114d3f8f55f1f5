"""Weigh with a wrist force/torque sensor: at rest, then in motion, then look for contact.

At rest the sensor shows its own zero, the tilt of the base, mass and centre of mass; in motion the
inertia too. When load and zero are taken off, what is left is contact.
"""

import numpy as np

import steelyard as sy
from steelyard.control import contact_force
from steelyard.inertia import InertialParameters
from steelyard.simulation import Push, SensorModel, SimulationOptions
from steelyard.wrist import Postures, WrenchSamples, weigh_static

robot = sy.load_robot("kr60ha")
load = InertialParameters.from_com(12.0, [0.02, -0.03, 0.08], np.diag([0.4, 0.3, 0.25]))
zero = np.array(
    [6.0, -4.0, 12.0, 0.8, -0.5, 0.3]
)  # what the sensor shows when nothing acts [N, Nm]
sensors = SensorModel(wrench_std=np.array([0.3] * 3 + [0.03] * 3), wrench_drift=zero)
options = SimulationOptions(step_s=0.004)
ready = robot.home + np.array([0, 0, 0, 0, 0.7, 0])


class Visits:
    """Rests of 1.2 s in some postures, with smooth moves of 0.6 s between them."""

    postures = ready + np.random.default_rng(2).uniform(-1.3, 1.3, size=(9, 6)) * [0, 0, 0, 1, 1, 1]
    duration_s = 9 * 1.8 - 0.6

    def at(self, t):
        """Position, velocity and acceleration, (N, 6) each."""
        k = np.minimum((t // 1.8).astype(int), 8)
        x = np.clip((t - 1.8 * k - 1.2) / 0.6, 0, 1)[:, None]
        way = self.postures[np.minimum(k + 1, 8)] - self.postures[k]
        v, a = (30 * x**2 - 60 * x**3 + 30 * x**4) / 0.6, (60 * x - 180 * x**2 + 120 * x**3) / 0.36
        return self.postures[k] + (10 * x**3 - 15 * x**4 + 6 * x**5) * way, v * way, a * way


rest = sy.simulate(robot, Visits(), payload=load, sensors=sensors, options=options).recording
static = weigh_static(Postures.of(sy.WristRecording.of_joints(rest, robot)))  # this stage alone
print(f"At rest: {static.verdict}")
print(f"    mass {static.mass:.3f} kg +- {1.96 * static.std[0]:.3f} (truth {load.mass})")
print(f"    zero {np.round(static.drift, 2)} (truth {zero}) [N, Nm]")

wrist = [1e-9] * 3 + [1.2, 0.9, 1.5]  # only the wrist moves
motion = sy.FourierTrajectory.random(
    ready, reach=wrist, speed=[1e-9] * 3 + [2.0] * 3, period_s=6.0, harmonics=4, seed=8
)
moving = sy.simulate(
    robot, motion, payload=load, sensors=sensors, seed=1, options=options
).recording
payload = sy.weigh_wrist(static=rest, dynamic=moving, robot=robot)  # both stages in one call
print(f"Both: {payload.verdict}")
for name, i in (("Ixx", 4), ("Iyy", 6), ("Izz", 9)):
    value, half, true = payload.body.vector[i], 1.96 * payload.std[i], load.vector[i]
    print(
        f"    {name} {value:.3f} kg m^2 +- {half:.3f} about the sensor's origin (truth {true:.3f})"
    )

push = Push(3.0, 0.5, robot.flange, np.array([0.0, 40.0, 0.0]))
touched = sy.simulate(
    robot, motion, payload=load, sensors=sensors, seed=2, pushes=[push], options=options
).recording
contact = contact_force(payload, WrenchSamples.from_joints(robot, touched), frame="base")
during = (contact.t > 3.1) & (contact.t < 3.4)
print("A person pushes the tool with 40 N along y, from 3.0 to 3.5 s:")
print(f"    measured then:  {np.round(contact.external[during, :3].mean(axis=0), 1)} N")
print(f"    at other times: at most {contact.force[contact.t < 2.8].max():.1f} N")
