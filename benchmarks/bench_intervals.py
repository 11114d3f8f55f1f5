"""Do 95 % intervals of the payload contain the truth? Various arms, noises and encoders.

Nothing of the estimator makes the data: arms are written here as URDF texts, torques are
Pinocchio's inverse dynamics (`rnea`) of the arm with the payload as one more body, plus rotors,
friction and noise; positions are rounded to the steps of an encoder and clocks jitter. From there
on it is what a user does: the empty arm is identified from two runs of 20 s with a friction law
that is named, four payloads are weighed with it, each from one run. The local gravity is known.
Where torques come late, the lag is estimated; elsewhere it is given as none, which is quicker.

A cell of the matrix counts which of mass, centre of mass and inertia lie in their 95 % intervals;
what an arm cannot feel by its build (a SCARA feels the inertia about its vertical axes only) is not
counted. Cells of 200 seeds scatter by 1.5 % for one number. Where noise of the motion passes the
filter (14 bit at 20 Hz), the interval knows it and may be too wide, but not too narrow.
Usage: python benchmarks/run.py intervals; SEEDS=40 python benchmarks/run.py intervals is quicker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from figure import Figure
from scipy.signal import lfilter

import steelyard as sy
from steelyard.recording import Recording
from steelyard.robot import RobotModel

SEEDS = int(os.environ.get("SEEDS", "200"))
PER_MODEL = 4  # payloads weighed with each identified arm
RUN_S = 20.0
RATE_HZ = 125.0
MASS = 2.5
COM = np.array([0.03, -0.02, 0.08])
INERTIA_COM = np.array([[8e-3, 1e-3, -5e-4], [1e-3, 1e-2, 8e-4], [-5e-4, 8e-4, 6e-3]])
ENCODER_17_BIT = 2 * np.pi / 2**17
ENCODER_14_BIT = 2 * np.pi / 2**14
ENCODER_FINE = 1e-6


class Arm(NamedTuple):
    """What the simulation knows of an arm.

    Attributes:
        joints: kind, position of the next joint and its roll, pitch and yaw, from the base on
        masses: of the links, [kg]
        rotor: inertia of each rotor at the joint, [kg m^2]
        friction: Fc of each joint, [Nm]; Fv is half of it
        noise: of each torque, [Nm]
        gravity: [m/s^2], in the base frame
        reach: of the motion of each joint to both sides, [rad or m]
    """

    joints: tuple[tuple[str, str, str], ...]
    masses: tuple[float, ...]
    rotor: np.ndarray
    friction: np.ndarray
    noise: np.ndarray
    gravity: np.ndarray
    reach: np.ndarray

    @property
    def urdf(self) -> str:
        bodies = [_link("base", 5.0)] + [
            _link(f"link{i + 1}", m) for i, m in enumerate(self.masses)
        ]
        parents = ["base", *(f"link{i + 1}" for i in range(len(self.joints)))]
        chain = [
            f'<joint name="joint{i + 1}" type="{kind}"><parent link="{parents[i]}"/>'
            f'<child link="link{i + 1}"/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="0 0 1"/>'
            '<limit lower="-6" upper="6" velocity="10" effort="1000"/></joint>'
            for i, (kind, xyz, rpy) in enumerate(self.joints)
        ]
        return f'<robot name="arm">{"".join(bodies)}{"".join(chain)}</robot>'


def _link(name: str, mass: float) -> str:
    ixx, iyy, izz = (f"{mass * x:.6f}" for x in (0.02, 0.025, 0.012))
    inertia = f'ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0.001" ixz="-0.001" iyz="0.002"'
    return (
        f'<link name="{name}"><inertial><origin xyz="0.05 -0.03 0.1" rpy="0 0 0"/><mass'
        f' value="{mass}"/>'
        f"<inertia {inertia}/></inertial></link>"
    )


_UP = "1.5707963 0 0"
_DOWN = "-1.5707963 0 0"
_SIX = (
    ("revolute", "0 0 0.16", "0 0 0"),
    ("revolute", "0 0.1 0", _UP),
    ("revolute", "0.42 0 0", "0 0 0"),
    ("revolute", "0.39 0 -0.02", "0 0 0"),
    ("revolute", "0 -0.1 0.1", _UP),
    ("revolute", "0 0.1 0.02", _DOWN),
)
_SEVEN = (
    ("revolute", "0 0 0.33", "0 0 0"),
    ("revolute", "0 0 0", _DOWN),
    ("revolute", "0 -0.32 0", _UP),
    ("revolute", "0.08 0 0", _UP),
    ("revolute", "-0.08 0.38 0", _DOWN),
    ("revolute", "0 0 0", _UP),
    ("revolute", "0.09 0 0", _UP),
)
_SCARA = (
    ("revolute", "0 0 0.4", "0 0 0"),
    ("revolute", "0.3 0 0", "0 0 0"),
    ("prismatic", "0.25 0 0", "3.1415927 0 0"),
    ("revolute", "0 0 0.1", "0 0 0"),
)
LOCAL_GRAVITY = 9.8123  # [m/s^2], known: a nominal value would widen the interval of the mass
_DOWNWARDS = np.array([0.0, 0.0, -LOCAL_GRAVITY])
_TILTED = LOCAL_GRAVITY * np.array([np.sin(0.6), -0.2, -np.sqrt(1 - np.sin(0.6) ** 2 - 0.04)])
_SIX_ARM = Arm(
    _SIX,
    (3.7, 8.4, 2.3, 1.2, 1.2, 0.25),
    np.array([0.6, 0.6, 0.4, 0.05, 0.05, 0.05]),
    np.array([8.0, 9.0, 6.0, 1.5, 1.5, 1.0]),
    np.array([1.0, 1.5, 0.8, 0.2, 0.15, 0.1]),
    _DOWNWARDS,
    np.array([1.5, 0.9, 1.0, 1.5, 1.5, 1.5]),
)
ARMS = {
    "6 joints": _SIX_ARM,
    "7 joints": Arm(
        _SEVEN,
        (3.0, 3.0, 3.0, 2.7, 2.5, 1.5, 0.7),
        np.full(7, 0.2),
        np.array([5.0, 5.0, 4.0, 4.0, 2.0, 2.0, 1.0]),
        np.array([0.6, 0.8, 0.5, 0.5, 0.15, 0.15, 0.08]),
        _DOWNWARDS,
        np.array([1.5, 1.0, 1.2, 1.0, 1.5, 1.2, 1.5]),
    ),
    "SCARA": Arm(
        _SCARA,
        (6.0, 5.0, 1.5, 0.5),
        np.array([0.3, 0.1, 2.0, 0.01]),
        np.array([4.0, 2.0, 8.0, 0.4]),
        np.array([0.5, 0.3, 1.0, 0.05]),
        _DOWNWARDS,
        np.array([1.5, 1.5, 0.1, 2.0]),
    ),
    "tilted base": _SIX_ARM._replace(gravity=_TILTED),
    "large rotors": _SIX_ARM._replace(rotor=np.array([6.0, 6.0, 4.0, 0.8, 0.8, 0.6])),
}
NOISES_S = {"white": 0.0, "0.1 s": 0.1, "0.5 s": 0.5}


class Cell(NamedTuple):
    """One cell of the matrix."""

    arm: str
    noise: str
    encoder: float = ENCODER_FINE
    jitter: float = 0.0
    lag_s: float = 0.0
    cutoff_hz: float | str = "auto"

    @property
    def words(self) -> str:
        bits = round(np.log2(2 * np.pi / self.encoder))
        if bits < 20:
            extras = [f"{bits} bit"]
        else:
            extras = []
        extras += [] if self.cutoff_hz == "auto" else [f"{self.cutoff_hz:g} Hz"]
        extras += ["jitter"] if self.jitter else []
        extras += [f"torques {1e3 * self.lag_s:g} ms late"] if self.lag_s else []
        return ", ".join([self.arm, f"noise {self.noise}", *extras])


CELLS = (
    *(Cell(arm, noise) for arm in ARMS for noise in NOISES_S),
    *(Cell("6 joints", noise, encoder=ENCODER_17_BIT) for noise in NOISES_S),
    *(Cell("6 joints", noise, jitter=0.1) for noise in NOISES_S),
    *(Cell("large rotors", noise, encoder=ENCODER_17_BIT) for noise in NOISES_S),
    *(
        Cell(arm, "white", lag_s=lag_s)
        for arm in ("6 joints", "large rotors")
        for lag_s in (0.004, 0.03)
    ),
    Cell("large rotors", "white", encoder=ENCODER_14_BIT, cutoff_hz=20.0),
)


def motion(arm: Arm, series: int, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A Fourier series of ten harmonics over the run, at rest at its ends, each (N, n)."""
    rng = np.random.default_rng(series)
    w = 2 * np.pi / RUN_S * np.arange(1, 11)
    n = len(arm.joints)
    a, b = rng.normal(size=(2, len(w), n)) / (1 + 0.3 * np.arange(len(w))[:, None])
    a -= (a * w[:, None] ** 2).sum(axis=0) / (w**2).sum()  # no acceleration at the ends
    b -= (b * w[:, None]).sum(axis=0) / w.sum()  # no speed
    c = np.cos(np.outer(t, w))
    s = np.sin(np.outer(t, w))
    q = c @ a + s @ b
    scale = arm.reach / np.abs(
        np.cos(np.outer(FINE_T, w)) @ a + np.sin(np.outer(FINE_T, w)) @ b
    ).max(axis=0)
    middle = np.array([0.0, -1.0, 1.2, -0.3, 0.5, 0.0, 0.0])[:n] * (arm.reach > 0.5)
    v = -(s * w) @ a + (c * w) @ b
    return middle + scale * q, scale * v, -scale * ((c * w**2) @ a + (s * w**2) @ b)


FINE_T = np.arange(0, RUN_S, 0.02)


def dynamics(arm: Arm, *, loaded: bool) -> pin.Model:
    model = pin.buildModelFromXML(arm.urdf)
    model.gravity.linear = arm.gravity
    if loaded:
        body = pin.Inertia(MASS, COM, INERTIA_COM)
        model.appendBodyToJoint(model.njoints - 1, body, pin.SE3.Identity())
    return model


@lru_cache(maxsize=16)
def torque(arm_name: str, series: int, loaded: bool, jitter: float, lag_s: float):
    """Clock, positions and torque without noise of one run; torques come `lag_s` late."""
    arm = ARMS[arm_name]
    t = np.arange(0, RUN_S, 1 / RATE_HZ)
    if jitter:
        t = t + jitter / RATE_HZ * np.random.default_rng(series).uniform(-1, 1, size=len(t))
    model = dynamics(arm, loaded=loaded)
    data = model.createData()
    moved = motion(arm, series, t - lag_s)
    tau = np.array([pin.rnea(model, data, *x) for x in zip(*moved, strict=True)])
    _, v, a = moved
    tau += arm.rotor * a + arm.friction * (np.sign(v) + 0.5 * v)
    return t, motion(arm, series, t)[0], tau


def recording(cell: Cell, series: int, seed: int, *, loaded: bool) -> Recording:
    rng = np.random.default_rng([seed, series])
    t, q, tau = torque(cell.arm, series, loaded, cell.jitter, cell.lag_s)
    memory_s = NOISES_S[cell.noise]
    if memory_s:
        kept = np.exp(-1 / (memory_s * RATE_HZ))
    else:
        kept = 0.0
    white = rng.normal(size=(len(t) + 500, q.shape[1]))
    noise = lfilter([np.sqrt(1 - kept**2)], [1, -kept], white, axis=0)[500:] * ARMS[cell.arm].noise
    zero = rng.uniform(0, cell.encoder, size=q.shape[1])
    rounded = np.round((q + zero) / cell.encoder) * cell.encoder - zero
    return Recording(
        t=t, q=rounded, tau=tau + noise, joint_names=[f"joint{i + 1}" for i in range(q.shape[1])]
    )


def truth() -> np.ndarray:
    inertia = INERTIA_COM + MASS * (COM @ COM * np.eye(3) - np.outer(COM, COM))
    return np.array([MASS, *(MASS * COM), *inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])


class Outcome(NamedTuple):
    """One seed: errors over standard deviations (NaN where unknown), half-widths, verdict."""

    z: np.ndarray
    std: np.ndarray
    ok: bool
    words: str


def outcomes(job: tuple[Cell, int]) -> list[Outcome]:
    """Payloads weighed with one model of the empty arm."""
    cell, seed = job
    arm = ARMS[cell.arm]
    robot = RobotModel.from_urdf_text(arm.urdf, gravity_base=arm.gravity)
    how = sy.Preparation(cutoff_hz=cell.cutoff_hz, lag_s=None if cell.lag_s else (0.0,) * robot.n)
    empty = [recording(cell, k, seed, loaded=False) for k in (1, 2)]
    model = sy.identify(robot, empty, friction="linear", preparation=how)
    loaded = [recording(cell, 3, PER_MODEL * seed + k, loaded=True) for k in range(PER_MODEL)]
    return [outcome(sy.weigh(model, run)) for run in loaded]


def outcome(payload: sy.Payload) -> Outcome:
    com = (payload.unconstrained.com - COM) / payload.com_std
    z = np.concatenate([[(payload.unconstrained.mass - MASS) / payload.std[0]], com])
    z = np.concatenate([z, (payload.unconstrained.vector - truth())[4:] / payload.std[4:]])
    std = np.concatenate([payload.std[:1], payload.com_std, payload.std[4:]])
    return Outcome(np.where(np.isfinite(std), z, np.nan), std, payload.verdict.ok, payload.status)


GROUPS = {"mass": slice(0, 1), "centre": slice(1, 4), "inertia": slice(4, 10)}


def figures() -> Iterator[Figure]:
    with ProcessPoolExecutor(2) as pool:
        for cell in CELLS:
            jobs = [(cell, seed) for seed in range(SEEDS // PER_MODEL)]
            found = [one for some in pool.map(outcomes, jobs, chunksize=5) for one in some]
            z = np.array([one.z for one in found])
            key = cell.words.replace(", ", "_").replace(" ", "_")
            for name, which in GROUPS.items():
                inside = 100 * np.mean(np.abs(z[:, which][np.isfinite(z[:, which])]) < 1.96)
                words = f"{cell.words}: 95 % intervals of {name} cover {inside:.1f} %; off 95 by"
                if cell.cutoff_hz == "auto":
                    off = abs(inside - 95)
                else:
                    off = max(95 - inside, 0.0)
                yield Figure(f"{key}_{name}", words, off, "%", goal=3)
            good = 100 * np.mean([one.ok for one in found])
            yield Figure(f"{key}_trusted", f"{cell.words}: trusted", good, "%")
