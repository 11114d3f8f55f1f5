"""A payload in the formats of controllers, one function each.

- Universal Robots: inertia about the centre of gravity along the axes of the tool flange, in the
  order xx, yy, zz, xy, xz, yz. The controller refuses components above 133 kg m^2 and negative
  moments.
- Franka: matrices are written column by column. JSON has no comments, so a key of Desk's file holds
  them.
- ABB RAPID: principal moments about the centre of gravity, and a quaternion of their axes.
- KUKA KRL: principal moments, and the angles A, B, C of their axes, R = Rz(A) Ry(B) Rx(C).
- FANUC: the numbers of a payload schedule, to be typed in; moments about its own axes, without
  products of inertia.
- Mecademic: mass and centre of mass, without inertia.

The principal axes of I_c = R diag(moments) R' can be ordered and oriented in 24 right-handed ways;
the one with the largest trace of R is the smallest rotation. A body with a symmetry has more ways,
all with the same inertia.
"""

from __future__ import annotations

import json
from itertools import permutations, product

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidInertia, UnknownName
from steelyard.export._load import Load, Target
from steelyard.export._simulators import roll_pitch_yaw
from steelyard.export._text import commented, decimal, decimals

_HEAVIEST_OF_UR = 35.0  # [kg], UR30 in its strongest mode
_UNCHECKED = "This format could not be verified with a manual; compare it with yours before use."
_ABOUT_COM = "Inertia is about the centre of mass"


# --- Universal Robots

_UR_MAX_INERTIA = 133.0  # [kg m^2] of a component
_UR_UNITS = f"kg; m from the tool flange; kg m^2. {_ABOUT_COM}, along the axes of the tool flange"
_UR_SWITCH = (
    "The payload changes at once (transition time 0 s); give a longer time for a soft change."
)


def _urscript(load: Load) -> str:
    """The call of set_target_payload."""
    inertia = _accepted_by_ur(load)
    notes = [
        "set_target_payload(m, cog, inertia [Ixx, Iyy, Izz, Ixy, Ixz, Iyz], transition time [s]).",
        "It also zeroes the force/torque reading: call it when nothing touches the tool.",
        _UR_SWITCH,
    ]
    lists = [", ".join(decimals(load.body.com, 7)), ", ".join(decimals(inertia, 9))]
    call = f"set_target_payload({decimal(load.body.mass, 6)}, [{lists[0]}], [{lists[1]}], 0.0)"
    return commented("#", load.head("URScript", _UR_UNITS, notes=notes), call)


def _ur_ros2(load: Load) -> str:
    """The request of ur_msgs/srv/SetPayload as YAML."""
    inertia = decimals(_accepted_by_ur(load), 9)
    notes = [
        "A request of the type ur_msgs/srv/SetPayload: ros2 service call SERVICE"
        ' ur_msgs/srv/SetPayload "$(cat FILE)".',
        "Older drivers accept only mass and center_of_gravity: remove the other lines for them.",
        "Drivers for Rolling take one field of the type geometry_msgs/Inertia: write mass as m,"
        " center_of_gravity as com, and put all but transition_time into"
        " payload: {m: ..., com: ..., ixx: ...}.",
        _UR_SWITCH,
    ]
    x, y, z = decimals(load.body.com, 7)
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    return commented(
        "#",
        load.head("the ROS 2 driver of Universal Robots", _UR_UNITS, notes=notes),
        f"mass: {decimal(load.body.mass, 6)}",
        f"center_of_gravity: {{x: {x}, y: {y}, z: {z}}}",
        *(f"{name}: {value}" for name, value in zip(names, inertia, strict=True)),
        "transition_time: 0.0",
    )


def _accepted_by_ur(load: Load) -> Array:
    inertia = load.inertia_com
    if np.abs(inertia).max() > _UR_MAX_INERTIA:
        raise InvalidInertia(
            f"the inertia has a component of {np.abs(inertia).max():.4g} kg m^2; the controller"
            f" accepts at most {_UR_MAX_INERTIA:g}"
        )
    inertia[:3] = inertia[:3].clip(min=0.0)
    return inertia


# --- Franka

_FRANKA_UNITS = (
    f"kg; m in the flange frame; kg m^2. {_ABOUT_COM}, along the axes of the flange,"
    " column by column"
)


def _desk(load: Load) -> str:
    """The file endeffector-config.json."""
    notes = [
        "The transformation from the flange to the tool centre point is not part of a payload: this"
        " file has the identity; replace it with yours.",
        "This replaces the end effector: the mass must include everything on the flange.",
        "The key 'comment' is not part of Franka's format; remove it if Desk refuses it.",
    ]
    content = {
        "comment": load.head("Franka Desk (endeffector-config.json)", _FRANKA_UNITS, notes=notes),
        "id": load.name,
        "name": load.name,
        "color": "#808080",
        "mass": float(decimal(load.body.mass, 6)),
        "centerOfMass": [float(text) for text in decimals(load.body.com, 7)],
        "transformation": np.eye(4).ravel(order="F").tolist(),
        "inertia": [float(text) for text in _columns(load)],
    }
    return json.dumps(content, indent=2) + "\n"


def _franka_ros2(load: Load) -> str:
    """The request of franka_msgs/srv/SetLoad as YAML, and the same as a call of libfranka."""
    mass = decimal(load.body.mass, 6)
    com = ", ".join(decimals(load.body.com, 7))
    inertia = ", ".join(_columns(load))
    notes = [
        "A request of the type franka_msgs/srv/SetLoad: ros2 service call SERVICE"
        ' franka_msgs/srv/SetLoad "$(cat FILE)".',
        "The load is added to the end effector of Desk: it must not include its mass again.",
        f"libfranka: robot.setLoad({mass}, {{{{{com}}}}}, {{{{{inertia}}}}});",
    ]
    return commented(
        "#",
        load.head("franka_ros2 and libfranka", _FRANKA_UNITS, notes=notes),
        f"mass: {mass}",
        f"center_of_mass: [{com}]",
        f"load_inertia: [{inertia}]",
    )


def _columns(load: Load) -> list[str]:
    return decimals(load.body.inertia_com.ravel(order="F"), 9)


# --- ABB and KUKA: principal moments

_RAPID_MAX_NAME_LENGTH = 32  # characters
_RAPID_UNITS = (
    "kg; mm; quaternion (scalar first) of the principal axes in this frame; principal moments in"
    " kg m^2 about the centre of mass"
)
_KRL_UNITS = (
    "kg; X Y Z in mm from the flange; A B C in degrees (Z, Y', X''), the principal axes in this"
    " frame; J: principal moments in kg m^2 about the centre of mass"
)


def _rapid(load: Load) -> str:
    """The declaration of a loaddata."""
    from scipy.spatial.transform import Rotation  # slow to import, and only this format needs it

    if len(load.name) > _RAPID_MAX_NAME_LENGTH or not load.name[0].isalpha():
        raise UnknownName(
            f"a name in RAPID begins with a letter and has at most {_RAPID_MAX_NAME_LENGTH}"
            f" characters, got '{load.name}'"
        )
    moments, axes = _principal_inertia(load)
    notes = [
        "loaddata: mass, centre of gravity, axes of moment, ix, iy, iz.",
        "RAPID reads the load of a tool (tload of tooldata) in the wrist frame tool0, but a payload"
        " (GripLoad) in the frame of the active tool: for GripLoad, export with the pose of the"
        " flange in the tool frame.",
    ]
    quaternion = Rotation.from_matrix(axes).as_quat()[[3, 0, 1, 2]]
    if quaternion[0] < 0:
        quaternion = -quaternion
    com = ",".join(decimals(1e3 * load.body.com, 4))
    turn = ",".join(decimals(quaternion, 9))
    numbers = f"{decimal(load.body.mass, 6)},[{com}],[{turn}],{','.join(decimals(moments, 9))}"
    comments = load.head("ABB RAPID", _RAPID_UNITS, notes=notes)
    return commented("!", comments, f"PERS loaddata {load.name} := [{numbers}];")


def _krl(load: Load) -> str:
    """The assignment of LOAD_DATA[number]."""
    moments, axes = _principal_inertia(load)
    com = zip("XYZ", decimals(1e3 * load.body.com, 4), strict=True)
    angles = zip("ABC", decimals(np.degrees(roll_pitch_yaw(axes)[::-1]), 7), strict=True)
    inertia = zip("XYZ", decimals(moments, 9), strict=True)
    place, spin = (
        ",".join(f"{key} {value}" for key, value in pairs) for pairs in ([*com, *angles], inertia)
    )
    data = f"{{M {decimal(load.body.mass, 6)},CM {{{place}}},J {{{spin}}}}}"
    comments = load.head("KUKA KRL", _KRL_UNITS, notes=[_UNCHECKED])
    return commented(";", comments, f"LOAD_DATA[{load.number}]={data}")


def _principal_inertia(load: Load) -> tuple[Array, Array]:
    """Principal moments about the centre of mass, (3,) [kg m^2], and axes as columns, (3, 3)."""
    if load.is_point:
        return np.zeros(3), np.eye(3)
    values, vectors = np.linalg.eigh(load.body.inertia_com)
    ways = [
        (list(order), axes)
        for order in permutations(range(3))
        for signs in product((1.0, -1.0), repeat=3)
        if np.linalg.det(axes := vectors[:, order] * np.array(signs)) > 0
    ]
    order, axes = max(ways, key=lambda way: np.trace(way[1]))
    return values[order].clip(min=0.0), axes


# --- FANUC and Mecademic

_KGF_CM_S2 = 0.0980665  # one kgf cm s^2 in kg m^2: 9.80665 N times 0.01 m times 1 s^2
_FANUC_UNITS = (
    "kg; cm; kgf cm s^2 (1 kgf cm s^2 is 0.0980665 kg m^2). Moments about axes through the centre"
    " of mass, along X, Y and Z of this frame"
)


def _payload_schedule(load: Load) -> str:
    """The fields of a payload schedule with their values."""
    inertia = load.inertia_com
    products = ", ".join(
        f"{name} {x:.3g}" for name, x in zip(("Ixy", "Ixz", "Iyz"), inertia[3:], strict=True)
    )
    share = np.abs(inertia[3:]).max() / max(inertia[:3].max(), 1e-300)
    lost = (
        f"the products of inertia ({products} kg m^2, up to {100 * share:.2g} % of the largest"
        " moment)"
    )
    notes = [
        "Assumed frame of the schedule: X up, Y right, Z out of the flange.",
        _UNCHECKED,
    ]
    com = zip("XYZ", decimals(1e2 * load.body.com, 5), strict=True)
    moments = zip("XYZ", decimals(inertia[:3].clip(min=0.0) / _KGF_CM_S2, 9), strict=True)
    return commented(
        "!",
        load.head("a FANUC payload schedule", _FANUC_UNITS, notes=notes, left_out=lost),
        f"SCHEDULE No [{load.number}]",
        f"PAYLOAD [kg]: {decimal(load.body.mass, 6)}",
        *(f"PAYLOAD CENTER {axis} [cm]: {value}" for axis, value in com),
        *(f"PAYLOAD INERTIA {axis} [kgf cm s^2]: {value}" for axis, value in moments),
    )


def _set_payload(load: Load) -> str:
    """Mecademic's command SetPayload."""
    notes = ["Remove these lines if the reader accepts commands only."]
    comments = load.head("Mecademic", "kg; mm from the flange", notes=notes, left_out="the inertia")
    numbers = ",".join([decimal(load.body.mass, 6), *decimals(1e3 * load.body.com, 4)])
    return commented("//", comments, f"SetPayload({numbers})")


CONTROLLERS = {
    "ur": Target(
        "Universal Robots, URScript set_target_payload", _urscript, heaviest=_HEAVIEST_OF_UR
    ),
    "ur-ros2": Target(
        "Universal Robots, ROS 2 service ur_msgs/srv/SetPayload",
        _ur_ros2,
        heaviest=_HEAVIEST_OF_UR,
    ),
    "franka": Target("Franka Desk, endeffector-config.json", _desk, has_name=True),
    "franka-ros2": Target("franka_ros2 service SetLoad, libfranka setLoad", _franka_ros2),
    "abb": Target("ABB RAPID, loaddata", _rapid, has_name=True),
    "kuka": Target("KUKA KRL, LOAD_DATA", _krl, has_number=True),
    "fanuc": Target("FANUC payload schedule, to be typed in", _payload_schedule, has_number=True),
    "mecademic": Target("Mecademic, SetPayload", _set_payload, inertia=False),
}
"""Formats of controllers, by name."""
