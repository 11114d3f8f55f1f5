"""Identify an arm, and let prediction choose the friction law.

A law with more parameters always fits better what it was fitted to. So each law is fitted to a part
of the data and judged by the torques of the part that it has not seen.
"""

import numpy as np

import steelyard as sy
from steelyard.inertia import InertialParameters
from steelyard.robot import DHTable, DriveModel

# An arm with two joints that moves in a vertical plane. Its friction is curved: Fc + Fv |v|^0.6.
table = DHTable.from_rows([[-np.pi / 2, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0]])
upper = InertialParameters.from_com(4.0, [0.2, 0.0, 0.0], np.diag([0.01, 0.08, 0.08]), "link1")
lower = InertialParameters.from_com(2.0, [0.15, 0.02, 0.0], np.diag([0.005, 0.03, 0.03]), "link2")
drive = DriveModel(
    rotor_inertia=np.array([0.1, 0.05]),
    coulomb=np.array([3.0, 2.0]),
    viscous=np.array([6.0, 4.0]),
    exponent=np.array([0.6, 0.6]),
)
robot = sy.RobotModel.from_dh(table, name="planar", links=[upper, lower], drive=drive)


def run(seed):
    """A recording of a random motion of 10 s."""
    motion = sy.FourierTrajectory.random(
        robot.home, reach=[1.5, 1.5], speed=[2.0, 2.5], period_s=10.0, harmonics=5, seed=seed
    )
    return sy.simulate(robot, motion, seed=seed).recording


parts = [run(1), run(2), run(3)]
model = sy.identify(robot, parts)  # tries every law; friction="power" would name one
choice = model.choice
print(f"Share of the torque that each law leaves unexplained ({choice.folds}):")
for name, score in choice.scores.items():
    print(f"    {name:16s} {100 * score:5.2f} %{'   <- chosen' if name == choice.law else ''}")

print(f"\n{model.verdict} With 95 % half-widths:")
for name, value, std in zip(
    model.estimate.names, model.estimate.value, model.estimate.std, strict=True
):
    print(f"    {name:6s} {value:9.4f} +- {1.96 * std:.4f}")
print("A name with 'r' is a group: " + "; ".join(model.basis.names[:2]) + ".")
print(f"Exponents {np.round(model.law.exponent, 3)} (true: 0.6).")

unseen = sy.prepare(run(4))
for law in ("linear", choice.law):
    rms = sy.identify(robot, parts, friction=law).validate(unseen).rms
    print(
        f"A run that no fit has seen, friction law '{law}': error {np.round(rms, 3)} Nm (noise 0.2"
        " Nm)."
    )
