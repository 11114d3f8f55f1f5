"""Your own robot, from a URDF or a Denavit-Hartenberg table, and its identifiable parameters.

A joint torque shows only combinations of the ten numbers of each link: the base parameters. How
many there are, and which, follows from the geometry alone.
"""

from pathlib import Path

import numpy as np

import steelyard as sy
from steelyard.robot import DHTable, ParameterBasis

# A table of DH parameters (modified, Craig): a row of alpha, a, d, theta for each joint [rad, m, m,
# rad].
table = DHTable.from_rows([[0.0, 0.0, 0.3, 0.0], [-np.pi / 2, 0.0, 0.0, 0.0], [0.0, 0.4, 0.0, 0.0]])
arm = sy.RobotModel.from_dh(table, name="three joints", joint_names=["turn", "lift", "bend"])
basis = ParameterBasis.of(arm)
links_only = ParameterBasis.of(arm, drive=False)
print(
    f"{arm.name}: {len(arm.parameter_names)} parameters, {len(basis.independent)} of them"
    " identifiable,"
)
print(f"{len(links_only.independent)} without rotors and friction. The links, as torques see them:")
for name in links_only.names:
    print(f"    {name}")

# The same as a file. A URDF works alike; its inertias are not needed to identify the arm.
Path("arm.toml").write_text("""
title = "Three joints"
convention = "modified"
gravity_base = [0.0, 0.0, -9.81]
[[joint]]
name = "turn"
alpha = 0.0
a = 0.0
d = 0.3
theta = 0.0
[[joint]]
name = "lift"
alpha = -1.5707963267948966
a = 0.0
d = 0.0
theta = 0.0
[[joint]]
name = "bend"
alpha = 0.0
a = 0.4
d = 0.0
theta = 0.0
""")
from_file = sy.load_robot("arm.toml")
joints = ", ".join(from_file.joint_names)
print(f"\nFrom arm.toml: {joints}; payloads are expressed in frame '{from_file.flange}'.")
print(f"The same base parameters: {np.allclose(ParameterBasis.of(from_file).K, basis.K)}.")

Path("one_joint.urdf").write_text("""
<robot name="one_joint"><link name="base"/>
<link name="bar"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
  <inertia ixx="0.01" iyy="0.02" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="swing" type="revolute"><parent link="base"/><child link="bar"/><axis xyz="0 1 0"/>
  <limit lower="-2" upper="2" velocity="2" effort="50"/></joint></robot>
""")
bar = sy.load_robot("one_joint.urdf")
print(f"From one_joint.urdf: {', '.join(ParameterBasis.of(bar, drive=False).names)}.")

# Mounted on a wall, the axis points up and gravity no longer acts on the joint.
wall = bar.with_gravity([0.0, -9.81, 0.0])
upright, mounted = bar.gravity_torque([0.0])[0], wall.gravity_torque([0.0])[0]
print(f"Torque that holds it: {upright:.2f} Nm upright, {mounted:.2f} Nm on the wall.")
