"""Pages of every kind, small and quick to make, for the tests of reports."""

from dataclasses import replace
from functools import cache

import numpy as np

from steelyard.control._contact_force import contact_force
from steelyard.drawing import Band, Curve, Panel, Plot
from steelyard.excitation import Design, DesignLimits
from steelyard.identification import DynamicModel, identify
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.payload._tracking import Counts, Progress
from steelyard.quality import check
from steelyard.recording import Recording, Samples
from steelyard.report import Page, Section, Table
from steelyard.report._control import contact_page
from steelyard.report._identification import identification_page
from steelyard.report._motion import excitation_page
from steelyard.report._payload import payload_page, wrench_page
from steelyard.report._tracking import tracking_plot
from steelyard.robot import load_robot
from steelyard.torque import weigh
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import Verdict
from steelyard.wrist import (
    Postures,
    WrenchSamples,
    WristRecording,
    WristSensor,
    weigh_dynamic,
    weigh_static,
)
from steelyard.wrist._regressor import features, wrench_regressor

LOAD = InertialParameters.from_com(3.5, [0.02, -0.03, 0.06], np.diag([0.02, 0.03, 0.025]))
EVIL = '</script><script>window.evil=1</script><img src=x onerror="window.evil=1">&lt;b'
SETTINGS = {"steelyard": "0.0", "command": f"steelyard weigh {EVIL}"}


def samples(payload: InertialParameters | None, seed: int) -> Samples:
    """The published motion of a UR10 with noise on its torques."""
    robot = load_robot("ur10")
    robot = robot if payload is None else robot.with_payload(payload)
    q, v, a = FourierTrajectory.load("xu2024").at(np.arange(0, 10, 0.01))
    tau = robot.torque(q, v, a) + np.random.default_rng(seed).normal(size=q.shape)
    return Samples(q, v, a, tau, 100.0, robot.joint_names, "measured")


@cache
def weighed() -> tuple[DynamicModel, Payload, Samples]:
    model, loaded = identify(load_robot("ur10"), samples(None, 0)), samples(LOAD, 1)
    return model, weigh(model, loaded), loaded


def small_page() -> Page:
    """Two plots and a table, which a browser draws in a fifth of the time of the other pages."""
    t = np.linspace(0, 1, 50)
    plots = [Plot(f"plot {k}", [Panel("power", "t", "y", [Curve("t^k", t, t**k)])]) for k in (1, 2)]
    table = Table("numbers", ("name", "value"), [["mass", 1.5]] * 5, "all the same")
    return Page("Small", ["words"], [Section("section", ["words"], [*plots, table])], SETTINGS)


def everything_page() -> Page:
    """Every style of curve, gaps, logarithms, marks, words that attack."""
    t = np.arange(0, 20, 0.002)
    y = np.sin(t) + 0.1 * np.random.default_rng(3).normal(size=t.size)
    y[4000:4200] = np.nan
    first = Panel(
        EVIL,
        f"time [s] {EVIL}",
        EVIL,
        [
            Band("95 %", t, y - 0.2, y + 0.2),
            Curve("measured", t, y),
            Curve(EVIL, t, np.sin(t), "dashed"),
        ],
        marks=[(3.0, EVIL)],
    )
    names = [f"{EVIL} {i}" for i in range(5)]
    bars = Curve("bars", names, np.array([1.0, 0.1, 3.0, 20.0, 500.0]), "bars", np.full(5, 0.05))
    second = Panel("log", "", "", [bars], log_y=True)
    third = Panel("dots", "x", "y", [Curve("dots", y, t, "dots"), Curve("line", t, y)], equal=True)
    nothing = Panel("nothing to draw", "x", "y", [Curve("empty", np.zeros(0), np.zeros(0))])
    table = Table(
        EVIL, ("name", EVIL), [[EVIL, 1.5], ["n", np.inf], ["m", None], ["k", 12345]], EVIL
    )
    section = Section(EVIL, [EVIL], [Plot(EVIL, [first, second, third, nothing]), table])
    return Page(EVIL, [EVIL], [section], SETTINGS, doubts=[EVIL])


def identification() -> Page:
    model, _, _ = weighed()
    unseen = samples(None, 5)
    recording = Recording(unseen.t, unseen.q, unseen.joint_names, tau=unseen.tau)
    page = identification_page(
        model, {"first.parquet": samples(None, 0)}, {"other.parquet": unseen}
    )
    return page.with_quality({"other.parquet": check(recording, limits=model.robot.limits)})


def progress_at(t, found) -> Progress:
    """A payload that becomes known over time."""
    body = InertialParameters.from_com(3.5 + 0.1 / t, LOAD.com + 0.001 / t, LOAD.inertia)
    known = replace(found, body=body, unconstrained=body, covariance=found.covariance / t**2)
    return Progress(t, known, 1, bool(t > 5), Counts())


def payload() -> Page:
    model, found, loaded = weighed()
    points = [progress_at(t, found) for t in np.linspace(0.5, 10, 50)]
    extra = [Section("Convergence", (), [tracking_plot(points, accuracy=0.01)])]
    page = payload_page(model, found, loaded, truth=LOAD, others={"again": found}, extra=extra)
    return replace(page, settings=SETTINGS)


def wrench_recording(q, v, a, t, rng) -> Recording:
    robot = load_robot("ur10")
    motion = robot.frame_motion(q, v, a)
    g = np.einsum("nji,j->ni", robot.forward_kinematics(q)[:, :3, :3], [0, 0, -9.81])
    x = features(
        g, motion.linear_acceleration, motion.angular_velocity, motion.angular_acceleration
    )
    wrench = wrench_regressor(x) @ LOAD.vector + rng.normal(size=(len(t), 6)) * [
        0.2,
        0.2,
        0.2,
        0.02,
        0.02,
        0.02,
    ]
    sensor = {"wrench_frame": "flange", "wrench_convention": "load_on_sensor"}
    return Recording(t, q, robot.joint_names, wrench=wrench, **sensor)


@cache
def wrench_parts():
    rng, robot, sensor = np.random.default_rng(4), load_robot("ur10"), WristSensor()
    rests = rng.uniform(-1.5, 1.5, size=(8, 6)).repeat(150, axis=0)
    zero = np.zeros_like(rests)
    still = wrench_recording(rests, zero, zero, np.arange(1200) / 100, rng)
    static = weigh_static(Postures.of(WristRecording.of_joints(still, robot, sensor)))
    t = np.arange(0, 10, 0.01)
    moving = WrenchSamples.from_joints(
        robot, wrench_recording(*FourierTrajectory.load("xu2024").at(t), t, rng), sensor
    )
    return static, moving, weigh_dynamic(moving, static)


def wrench() -> Page:
    static, moving, found = wrench_parts()
    return wrench_page(found, moving, static)


def at_rest() -> Page:
    static, _, _ = wrench_parts()
    return wrench_page(static.payload(), None, static)


def contact() -> Page:
    _, moving, found = wrench_parts()
    return contact_page(contact_force(found, moving, rezero="rest"))


def excitation() -> Page:
    robot, motion = load_robot("ur10"), FourierTrajectory.load("xu2024")
    limits = DesignLimits.of(robot)
    found = Design(
        motion,
        limits.certify(robot, motion),
        "condition",
        179.0,
        179.0,
        {"m": 0.01},
        (179.0, np.inf),
        1.0,
        Verdict("as published"),
    )
    return excitation_page(robot, limits, found)


PAGES = {
    "everything": everything_page,
    "identification": identification,
    "payload": payload,
    "wrench": wrench,
    "at_rest": at_rest,
    "contact": contact,
    "excitation": excitation,
}
