"""An identified arm for a simulator: physical bodies, rotors, and linear friction.

Torques determine base parameters only, but a simulator needs every link. The links are the physical
bodies that explain the data best (`steelyard.identification._feasible`). URDF and MJCF describe
friction as f = friction sign(v) + damping v. A law with an exponent or a Stribeck curve is replaced
by the nearest line (least squares, no negative coefficient) for speeds from rest to the joint's
limit. `drives` holds what the files cannot hold and is written as JSON beside them.
`steelyard.io._into` patches a user's own file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from steelyard._arrays import Array
from steelyard._saved import save, together, write_text
from steelyard.errors import InvalidRobot, UnknownName
from steelyard.export import Load
from steelyard.identification import DynamicModel
from steelyard.identification._feasible import FeasibleArm, feasible_parameters
from steelyard.identification._least_squares import solve_weighted
from steelyard.inertia import InertialParameters
from steelyard.io._into import EditedFile
from steelyard.io._mjcf import mjcf_text, mujoco_ros2_text
from steelyard.io._urdf import urdf_text
from steelyard.robot import DriveModel, RobotModel
from steelyard.verdict import Doubt, DoubtKind, Verdict

ARM_TARGETS = {"urdf": urdf_text, "mjcf": mjcf_text, "mujoco-ros2": mujoco_ros2_text}
"""Formats of whole arms, with the functions that write them."""

_MAX_POINT_INERTIA = 1e-12  # [m^2], inertia per mass of a payload without inertia
_MAX_RMS_RATIO = 1.10  # of residuals with physical bodies, over residuals without
_DEFAULT_SPEED = 1.0  # [rad/s or m/s] for friction of joints without a limit
_FRICTION_POINTS = 200  # speeds for the fit of linear friction
_CURVES = ("coulomb", "viscous", "exponent", "load_coulomb", "stribeck", "stribeck_speed")


@dataclass(frozen=True, eq=False)
class ArmExport:
    """An identified arm, ready for a file.

    Attributes:
        robot: physical bodies, and drives with linear friction
        drives: rotor inertia, the friction law as identified, offsets and more, as plain JSON
            values
        remarks: comments for the head of the file
        verdict: whether it may be written, and doubts about it
        own: identified part of each link in its frame, without payload and without bodies that the
            user's file keeps
        into: the user's file to patch; None for a new file
    """

    robot: RobotModel
    drives: dict[str, Any]
    remarks: tuple[str, ...]
    verdict: Verdict
    own: tuple[InertialParameters, ...]
    into: EditedFile | None = None

    def text(self, target: str, *, force: bool = False) -> str:
        """The text of the arm for a simulator.

        Args:
            target: one of `ARM_TARGETS`
            force: write it in spite of blocking doubts, which the text then repeats
        """
        if target not in ARM_TARGETS:
            raise UnknownName(
                f"an arm can be exported to {', '.join(ARM_TARGETS)}, not to '{target}'"
            )
        against = self.verdict.blocking
        if against and not force:
            reasons = "; ".join(doubt.words for doubt in against)
            raise InvalidRobot(
                f"not exported: {reasons}; weigh or identify again, or give `force=True`"
            )
        forced = (f"FORCED in spite of a doubt: {doubt.words}." for doubt in against)
        if self.into is not None:
            return self.into.text(self.own, self.robot, (*self.remarks, *forced))
        return ARM_TARGETS[target](self.robot, remarks=(*self.remarks, *forced))

    def write(self, path: str | Path, target: str, *, force: bool = False) -> Path:
        """Writes the text and, as JSON beside it, the drives; returns the path of the latter."""
        beside = Path(path).with_suffix(".drives.json")
        with together():
            write_text(path, self.text(target, force=force))
            save(self.drives, "drives", beside)
        return beside


def arm_for_export(
    model: DynamicModel,
    *,
    payload: InertialParameters | None = None,
    doubts: Sequence[Doubt] = (),
) -> ArmExport:
    """The identified arm with physical bodies and linear friction.

    Args:
        payload: to merge into the last link, in the flange frame; none by default
        doubts: about the payload
    """
    return _arm(model, payload, doubts, into=None)


def arm_into(
    model: DynamicModel,
    path: Path,
    target: str,
    *,
    load: Load | None = None,
    doubts: Sequence[Doubt] = (),
    locked: Mapping[str, float] | None = None,
) -> ArmExport:
    """The identified arm, ready to be patched into a user's own URDF or MJCF.

    Args:
        path: of the user's file
        target: its kind, 'urdf' or 'mjcf'
        load: a payload to add as a separate link, in the flange frame; none by default
        doubts: about the payload
        locked: position of each joint of the file that shall not move, by name [rad or m]
    """
    into = EditedFile.of(path, target, model.robot, load, locked or {})
    return _arm(model, None if load is None else load.body, doubts, into=into)


def _arm(
    model: DynamicModel,
    payload: InertialParameters | None,
    doubts: Sequence[Doubt],
    *,
    into: EditedFile | None,
) -> ArmExport:
    R = np.array(model.factor.weighted(solve_weighted(model.factor).weights))
    nominal = model.robot
    kept = [InertialParameters.nothing(name) for name in nominal.link_names]
    if into is not None:
        places = np.linalg.inv(into.T_there_link)
        kept = [
            body.in_frame(name, T)
            for body, name, T in zip(into.kept, nominal.link_names, places, strict=True)
        ]
        numbers = np.concatenate([body.vector for body in kept])
        R[:, -1] -= R[:, : len(model.basis)] @ (model.basis.K[:, : len(numbers)] @ numbers)
        nominal = nominal.with_links([a - b for a, b in zip(nominal.links, kept, strict=True)])
    found = feasible_parameters(nominal, model.basis, R)
    identified = found.robot.drive.with_law(model.law, found.extra)
    speeds = np.where(
        np.isfinite(model.robot.limits.v_max), model.robot.limits.v_max, _DEFAULT_SPEED
    )
    linear = _with_linear_friction(identified, speeds)
    own = found.robot.links
    robot = found.robot.with_drive(linear)
    if into is not None:
        robot = robot.with_links([a + b for a, b in zip(own, kept, strict=True)])
    if payload is not None:
        if (
            not payload.is_physical
            and np.abs(payload.inertia_com).max() > _MAX_POINT_INERTIA * payload.mass
        ):
            raise InvalidRobot(f"the payload is not physical: {payload.why_not_physical}")
        robot = robot.with_payload(payload)
    drives = _drives(model, found, identified, linear, speeds)
    if payload is None:
        drives["payload"] = None
    else:
        drives["payload"] = payload.vector.tolist()
    remarks = _remarks(model, found, identified, speeds, payload if into is None else None)
    verdict = _verdict(model, found).doubted(*doubts)
    return ArmExport(robot, drives, remarks, verdict, own, into)


def _with_linear_friction(drive: DriveModel, speeds: Array) -> DriveModel:
    """The same drives with the nearest linear friction."""
    coulomb = drive.coulomb.copy()
    viscous = drive.viscous.copy()
    v = np.linspace(0.0, speeds, _FRICTION_POINTS + 1)[1:]
    curves = 0.5 * (drive.friction(v) - drive.friction(-v))
    for j in np.flatnonzero((drive.exponent != 1) | (drive.stribeck != 0)):
        coulomb[j], viscous[j] = nnls(
            np.column_stack([np.ones(_FRICTION_POINTS), v[:, j]]), curves[:, j]
        )[0]
    one = np.ones(len(drive))
    none = np.zeros(len(drive))
    return replace(
        drive, coulomb=coulomb, viscous=viscous, exponent=one, stribeck=none, stribeck_speed=one,
        load_coulomb=none, asymmetry=none,
    )  # fmt: skip


def _drives(
    model: DynamicModel, found: FeasibleArm, drive: DriveModel, linear: DriveModel, speeds: Array
) -> dict[str, Any]:
    law = model.law
    names = ("rotor_inertia", *_CURVES, "asymmetry", "offset")
    columns = {name: getattr(drive, name) for name in names} | {
        "direction_width": law.width,
        "damping_in_file": linear.viscous,
        "friction_in_file": linear.coulomb,
        "friction_in_file_fitted_up_to": speeds,
    }
    return {
        "robot": model.robot.name,
        "units": "kg m^2, Nm, rad/s (kg, N, m/s for sliding joints); viscous in Nm"
        " (s/rad)^exponent",
        "torque": "rotor_inertia a + (coulomb + load_coulomb |load| + stribeck"
        " exp(-(v/stribeck_speed)^2)) s"
        " + viscous |v|^exponent sign(v) + asymmetry |v| + offset",
        "law": law.name,
        "direction": law.direction,
        "joints": {
            name: {key: float(values[j]) for key, values in columns.items()}
            for j, name in enumerate(model.robot.joint_names)
        },
        "gain": None if drive.gain is None else drive.gain.tolist(),
        "coupling": None if drive.coupling is None else drive.coupling.tolist(),
        "gravity_base": model.robot.gravity_base.tolist(),
        "status": model.estimate.status,
        "real_bodies": found.status,
        "rms_ratio": found.rms_ratio,
        "made_from": list(model.made_from),
    }


def _remarks(
    model: DynamicModel,
    found: FeasibleArm,
    drive: DriveModel,
    speeds: Array,
    payload: InertialParameters | None,
) -> tuple[str, ...]:
    remarks = [f"Identified: {model.estimate.status}.", f"Physical bodies: {found.status}."]
    law = model.law
    if (drive.exponent != 1).any() or drive.stribeck.any():
        remarks.append(
            f"Friction follows the law '{law.name}'; damping and friction here are the nearest"
            f" straight line up to the speeds {' '.join(f'{v:.4g}' for v in speeds)} (rad or m)/s."
            " The JSON beside this file holds the law itself."
        )
    if drive.load_coulomb.any():
        remarks.append(
            "Left out: friction that grows with the carried torque; see the JSON beside this file."
        )
    if drive.asymmetry.any():
        remarks.append(
            "Left out: friction that differs by direction; see the JSON beside this file."
        )
    if law.direction not in ("exact", "band"):
        remarks.append(
            f"Left out: friction at reversals ('{law.direction}'); see the JSON beside this file."
        )
    if payload is not None:
        remarks.append(f"The last link carries a payload of {payload.mass:.6g} kg, merged into it.")
    return tuple(remarks)


def _verdict(model: DynamicModel, found: FeasibleArm) -> Verdict:
    if found.rms_ratio <= _MAX_RMS_RATIO:
        return model.verdict
    words = f"physical bodies do not explain the data well: {found.status}"
    return model.verdict.doubted(Doubt(DoubtKind.NOT_PHYSICAL, words))
