"""The arm in an MJCF file, read by MuJoCo and converted to a `RobotModel`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidRobot, UnreadableFile
from steelyard.inertia import InertialParameters
from steelyard.robot import DriveModel, JointLimits, RobotModel

_USUAL_FLANGES = ("tool0", "flange", "attachment_site", "attachment")
_HINGE = int(mujoco.mjtJoint.mjJNT_HINGE)
_SLIDE = int(mujoco.mjtJoint.mjJNT_SLIDE)


class ArmInMjcf:
    """The arm that an MJCF file describes, with its joints at zero."""

    def __init__(
        self, path: Path, joint_names: Sequence[str], *, locked: Mapping[str, float]
    ) -> None:
        """Reads the file and the files it includes.

        Args:
            path: MJCF file
            joint_names: joints of the arm, from the base outwards; empty to use frames only
            locked: position of each joint that does not move, by name [rad or m]
        """
        self._name = path.name
        try:
            spec = mujoco.MjSpec.from_file(str(path))
            spec.compiler.fusestatic = False
            self._model = spec.compile()
        except (ValueError, FileNotFoundError) as error:
            words = " ".join(str(error).split())
            raise UnreadableFile(f"MuJoCo cannot read {path}: {words}") from error
        if spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE:
            raise InvalidRobot(
                f'{path.name} has <compiler inertiafromgeom="true">, which ignores every'
                ' <inertial>: set it to "auto"'
            )
        model = self._model
        joints = [
            model.joint(i).name for i in range(model.njnt) if model.jnt_type[i] in (_HINGE, _SLIDE)
        ]
        self.joint_names = tuple(joint_names)
        missing = [name for name in self.joint_names if name not in joints]
        if missing:
            raise InvalidRobot(
                f"{path.name} describes another arm: it has no joint {', '.join(missing)};"
                f" it has {', '.join(joints) or 'none'}"
            )
        self._bodies = [int(model.joint(name).bodyid[0]) for name in self.joint_names]
        self._require_a_row(locked)
        self._data = mujoco.MjData(model)
        for name in joints:
            if model.joint(name).limited[0]:
                low, high = model.joint(name).range
            else:
                low, high = (-np.inf, np.inf)
            if name in self.joint_names:
                rest = 0.0
            else:
                rest = float(np.clip(0.0, low, high))
            self._data.qpos[model.joint(name).qposadr[0]] = locked.get(name, rest)
        mujoco.mj_kinematics(model, self._data)
        mujoco.mj_comPos(model, self._data)

    def _require_a_row(self, locked: Mapping[str, float]) -> None:
        model = self._model
        before = 0
        for name, body in zip(self.joint_names, self._bodies, strict=True):
            if model.body_jntnum[body] != 1:
                raise InvalidRobot(f"{self._name}: the body of joint '{name}' has further joints")
            above = []
            at = int(model.body_parentid[body])
            while at not in (before, 0):
                above.append(at)
                at = int(model.body_parentid[at])
            if at != before or set(above) & set(self._bodies):
                raise InvalidRobot(
                    f"{self._name} describes another arm: '{name}' does not follow the previous"
                    " joint of the model"
                )
            for other in above:
                for i in range(model.body_jntnum[other]):
                    extra = model.joint(int(model.body_jntadr[other]) + i).name
                    if extra not in locked:
                        raise InvalidRobot(
                            f"{self._name}: joint '{extra}' moves '{name}' but is not a joint of"
                            f" the robot model; hold it still with `locked={{'{extra}': 0}}`"
                        )
            before = body

    def robot(self, flange: str, *, without: str) -> RobotModel:
        """The arm whose links contain only attached bodies: fingers, tools, cameras.

        Args:
            flange: frame for payloads, a body or a site; if it does not exist, a common flange name
                or the last body
            without: name of a body to leave out
        """
        n = len(self._bodies)
        model = self._model
        anchors = [np.array(model.joint(name).pos) for name in self.joint_names]
        T_joint_link = np.array([_pose(np.eye(3), -anchor) for anchor in anchors])
        T_base = np.array(
            [
                self._T_body(body) @ _pose(np.eye(3), a)
                for body, a in zip(self._bodies, anchors, strict=True)
            ]
        )
        before = np.concatenate([np.eye(4)[None], T_base[:-1]])
        links = [model.body(body).name or f"link{j + 1}" for j, body in enumerate(self._bodies)]
        known = next(
            (name for name in (flange, *_USUAL_FLANGES) if self._has_frame(name)), links[-1]
        )
        if self._has_frame(known):
            T_flange = self._T_frame(known)
        else:
            T_flange = self._T_body(self._bodies[-1])
        content: dict[str, Any] = {
            "name": self._name,
            "source": self._name,
            "flange": known,
            "gravity_base": np.array(model.opt.gravity),
            "home": np.zeros(n),
            "joint_names": self.joint_names,
            "joint_types": [
                "prismatic" if model.joint(name).type[0] == _SLIDE else "revolute"
                for name in self.joint_names
            ],
            "joint_axes": [np.array(model.joint(name).axis) for name in self.joint_names],
            "joint_placements": np.linalg.inv(before) @ T_base,
            "link_names": links,
            "T_joint_link": T_joint_link,
            "T_joint_flange": np.linalg.inv(T_base[-1]) @ T_flange,
            "limits": _fields(JointLimits.none(n)),
            "drive": _fields(DriveModel.ideal(n)),
            "dh": None,
            "serial": "",
            "terms": (),
            "links": [self._carried(j, without).vector for j in range(n)],
        }
        return RobotModel.from_dict(content)

    def frame_in_its_body(self, name: str) -> Array:
        """The pose of a body or a site in its body, (4, 4)."""
        return np.asarray(np.linalg.inv(self._T_body(self._frame(name)[0])) @ self._T_frame(name))

    def _has_frame(self, name: str) -> bool:
        """Whether a body or site of this name is the last body of the arm or fixed to it."""
        body, _ = self._frame(name)
        weld = self._model.body_weldid
        return body > 0 and bool(weld[body] == weld[self._bodies[-1]])

    def _frame(self, name: str) -> tuple[int, int]:
        """The index of the body of a body or site, and the index of the site; -1 if absent."""
        body = mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_BODY, name)
        site = mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_SITE, name)
        if body >= 0 or site < 0:
            return (body, -1)
        return (int(self._model.site_bodyid[site]), site)

    def _T_frame(self, name: str) -> Array:
        body, site = self._frame(name)
        if site < 0:
            return self._T_body(body)
        return _pose(self._data.site_xmat[site].reshape(3, 3), self._data.site_xpos[site])

    def _T_body(self, body: int) -> Array:
        return _pose(self._data.xmat[body].reshape(3, 3), self._data.xpos[body])

    def _carried(self, j: int, without: str) -> InertialParameters:
        """The mass properties of everything attached to link j, in the frame of its body."""
        model = self._model
        data = self._data
        carried = InertialParameters.nothing("body")
        for body in range(1, model.nbody):
            owner = body
            while owner not in (*self._bodies, 0):
                owner = int(model.body_parentid[owner])
            if owner != self._bodies[j] or body == owner or model.body(body).name == without:
                continue
            there = InertialParameters.from_com(
                model.body_mass[body], np.zeros(3), np.diag(model.body_inertia[body]), "inertial"
            )
            T = np.linalg.inv(self._T_body(owner)) @ _pose(
                data.ximat[body].reshape(3, 3), data.xipos[body]
            )
            carried = carried + there.in_frame("body", T)
        return carried


def _pose(R: Array, p: Array) -> Array:
    T = np.eye(4)
    T[:3, :3] = R
    T[:3, 3] = p
    return T


def _fields(part: DriveModel | JointLimits) -> dict[str, Any]:
    return {each.name: getattr(part, each.name) for each in fields(part) if each.init}
