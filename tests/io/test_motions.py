"""A motion in the words of others, read back."""

import csv
import io
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.interpolate import BPoly

from steelyard.errors import InvalidTrajectory, UnreadableFile
from steelyard.excitation import DesignLimits
from steelyard.io._motions import MOTION_TARGETS, approached, motion_text, write_motion
from steelyard.robot import JointLimits, load_robot
from steelyard.trajectory import FourierTrajectory

NAMES = load_robot("ur10").joint_names


@pytest.fixture(scope="module")
def motion():
    return FourierTrajectory.load("xu2024")


def written(folder, ending, motion, rate_hz, **more):
    path = folder / f"motion.{ending}"
    write_motion(path, motion, NAMES, rate_hz, **more)
    return path.read_text()


def test_csv_holds_time_position_velocity_acceleration(motion, tmp_path):
    rows = list(csv.reader(io.StringIO(written(tmp_path, "csv", motion, 100.0))))
    assert rows[0][:2] == ["t", "q_shoulder_pan_joint"]
    table = np.array(rows[1:], dtype=float)
    assert table.shape == (1001, 19)
    np.testing.assert_allclose(table[:, 1:], np.hstack(motion.at(table[:, 0])), atol=1e-7)


def test_urscript_moves_there_and_servos_through_every_step(motion, tmp_path):
    text = written(tmp_path, "script", motion, 125.0)
    steps = re.findall(r"^  servoj\((\[.*?\]), 0, 0, 0.008, 0.1, 300\)$", text, re.MULTILINE)
    q = np.array([[float(x) for x in step.strip("[]").split(",")] for step in steps])
    np.testing.assert_allclose(q, motion.at(np.arange(1251) / 125.0)[0], atol=1e-10)
    assert text.startswith(
        "def steelyard_motion():\n  # CAUTION: movej goes from wherever the arm is"
    )
    degrees = np.round(np.degrees(motion.at(np.zeros(1))[0][0]), 1) + 0.0
    assert (
        f"[{', '.join(f'{x:.1f}' for x in degrees)}] degrees. Nothing has checked that way" in text
    )
    half = SimpleNamespace(duration_s=motion.duration_s / 2, at=motion.at)
    assert f"[{', '.join(f'{x:.1f}' for x in degrees)}] degrees" in motion_text(
        "ur", half, NAMES, 125.0
    )
    code = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    assert code[1].startswith("  movej([")
    assert text.endswith("end\nsteelyard_motion()\n")
    with pytest.raises(InvalidTrajectory, match="URScript moves 6 joints, the motion has 2"):
        write_motion(tmp_path / "x.script", motion, NAMES[:2], 125.0)


def test_ros2_points_carry_time_and_all_signals(motion, tmp_path):
    text = written(tmp_path, "yaml", motion, 10.0)
    assert "joint_names: ['shoulder_pan_joint', " in text
    stamps = re.findall(r"time_from_start: \{sec: (\d+), nanosec: (\d+)\}", text)
    t = np.array([int(s) + 1e-9 * int(ns) for s, ns in stamps])
    np.testing.assert_allclose(t, np.arange(101) / 10.0, atol=1e-9)
    for word, signal in zip(
        ("positions", "velocities", "accelerations"), motion.at(t), strict=True
    ):
        rows = re.findall(rf"{word}: \[(.*?)\]", text)
        np.testing.assert_allclose(
            [[float(x) for x in row.split(",")] for row in rows], signal, atol=1e-8
        )


def test_files_are_written_by_their_ending(motion, tmp_path):
    plain, remarked = (
        {
            ending: written(tmp_path, ending, motion, 10.0, **more)
            for ending in ("csv", "script", "yaml", "yml")
        }
        for more in ({}, {"remarks": ["not checked: the table"]})
    )
    assert all(len(text) > 1000 for text in plain.values())
    assert remarked["csv"] == plain["csv"]
    lines = remarked["script"].splitlines()
    assert lines[:2] == ["def steelyard_motion():", "  # not checked: the table"]
    assert "\n".join([lines[0], *lines[2:]]) + "\n" == plain["script"]
    assert remarked["yaml"] == remarked["yml"] == "# not checked: the table\n" + plain["yaml"]
    with pytest.raises(UnreadableFile, match=r"cannot write .*a\.csv: there is no folder .*deep"):
        write_motion(tmp_path / "deep" / "a.csv", motion, NAMES, 10.0)
    with pytest.raises(
        InvalidTrajectory, match=r"a motion is written as .csv, .script, .yaml, .py, .yml or .json"
    ):
        write_motion(tmp_path / "x.txt", motion, NAMES, 10.0)
    with pytest.raises(InvalidTrajectory, match="rate_hz must be positive, got 0"):
        write_motion(tmp_path / "x.csv", motion, NAMES, 0.0)


def played_ur(text):
    """What a UR arm is sent, one posture per step of servoj."""
    steps = [line.split("(", 1)[1] for line in text.splitlines() if line.startswith("  servoj(")]
    assert text.index("movej(") < text.index("servoj(") < text.index("stopj(1.0)")
    periods = {step.split("]")[1].split(",")[3].strip() for step in steps}
    assert periods == {"0.002"}
    return 500.0, np.array(
        [[float(x) for x in step[1:].split("]")[0].split(",")] for step in steps]
    )


def played_ros2(text):
    """What a joint_trajectory_controller commands at 1 kHz: quintic splines through the points."""
    values = {
        word: [
            [float(x) for x in row.split(",")] for row in re.findall(rf"{word}: \[(.*?)\]", text)
        ]
        for word in ("positions", "velocities", "accelerations")
    }
    stamps = re.findall(r"time_from_start: \{sec: (\d+), nanosec: (\d+)\}", text)
    t = np.array([int(s) + 1e-9 * int(ns) for s, ns in stamps])
    splines = BPoly.from_derivatives(t, np.stack(list(values.values()), axis=1))
    return 1000.0, splines(np.arange(int(t[-1] * 1000) + 1) / 1000)


def played_csv(text):
    table = np.array(list(csv.reader(io.StringIO(text)))[1:], dtype=float)
    return 125.0, table[:, 1 : 1 + (table.shape[1] - 1) // 3]


def played_franka(text, monkeypatch, lost=()):
    """What a Franka arm is commanded, by a libfranka that loses some cycles."""
    sent = []
    namespace = {"__name__": "played"}
    exec(compile(text, "played", "exec"), namespace)
    first = [float(x) for x in namespace["ROWS"].split("\n")[1].split()]

    class Control:
        cycle = -1

        def readOnce(self):
            self.cycle += 1
            passed = 0.0 if self.cycle == 0 else 0.003 if self.cycle in lost else 0.001
            return None, SimpleNamespace(to_sec=lambda: passed)

        def writeOnce(self, command):
            sent.append(command)

    robot = SimpleNamespace(
        read_once=lambda: SimpleNamespace(q=first),
        start_joint_position_control=lambda mode: Control(),
    )
    fake = SimpleNamespace(
        ControllerMode=SimpleNamespace(JointImpedance=1),
        JointPositions=lambda q: SimpleNamespace(q=q, motion_finished=False),
        Robot=lambda host: robot,
    )
    monkeypatch.setitem(sys.modules, "pylibfranka", fake)
    namespace["main"]("host")
    assert [command.motion_finished for command in sent] == [False] * (len(sent) - 1) + [True]
    return 1000.0, np.array([command.q for command in sent])


@pytest.mark.parametrize("target", ["ur", "ros2", "csv", "franka"])
def test_what_an_arm_is_commanded_keeps_the_limits_from_where_it_stands_to_the_stop(
    target, monkeypatch
):
    arm = load_robot("panda" if target == "franka" else "ur10")
    middle = arm.home if target == "franka" else FourierTrajectory.load("xu2024").offset
    core = FourierTrajectory.random(
        middle, reach=[0.3] * arm.n, speed=[0.8] * arm.n, period_s=3.21, harmonics=3, seed=1
    )
    own = DesignLimits.envelope(core).joints
    q_min, q_max = own.q_min - 0.2, own.q_max + 0.2
    joints = JointLimits(q_min, q_max, own.v_max, own.a_max + 1e-6, [np.inf] * arm.n)
    stands = middle + 0.1
    whole = approached(arm, core, stands, DesignLimits(joints))
    text = motion_text(target, whole, arm.joint_names, MOTION_TARGETS[target].rate_hz)
    played = globals()[f"played_{target}"]
    rate_hz, q = played(text, monkeypatch) if target == "franka" else played(text)
    np.testing.assert_allclose(q[[0, -1]], [stands, stands], atol=1e-9)
    v = np.diff(q, axis=0) * rate_hz
    a = np.diff(v, axis=0, prepend=0, append=0) * rate_hz
    assert (q <= q_max).all()
    assert (q >= q_min).all()
    assert (np.abs(v) <= joints.v_max + 1e-6).all()
    assert (np.abs(a) <= joints.a_max + 1e-3).all()
    assert np.abs(v).max() > 0.5
    assert len(q) / rate_hz == pytest.approx(whole.duration_s, abs=0.02)


def test_a_franka_that_loses_cycles_is_not_late_and_one_elsewhere_does_not_move(monkeypatch):
    arm = load_robot("panda")
    core = FourierTrajectory.random(
        arm.home, reach=[0.1] * 7, speed=[0.2] * 7, period_s=2.0, harmonics=2, seed=1
    )
    text = motion_text(
        "franka", approached(arm, core, arm.home, DesignLimits.of(arm)), arm.joint_names, 1000.0
    )
    every = played_franka(text, monkeypatch)[1]
    fewer = played_franka(text, monkeypatch, lost=(500, 700))[1]
    assert len(fewer) == len(every) - 4
    np.testing.assert_array_equal(fewer[-1], every[-1])
    with pytest.raises(
        InvalidTrajectory, match="moves 7 joints at 1000 Hz, the motion has 7 at 500"
    ):
        motion_text("franka", core, arm.joint_names, 500.0)


def test_a_way_that_breaks_a_limit_and_ends_in_motion_are_refused():
    arm = load_robot("ur10")
    core = FourierTrajectory([[0.5]] * 6, [[0.0]] * 6, arm.home, 4.0)
    with pytest.raises(
        InvalidTrajectory, match=r"does not start and end at rest: give .*`posture`"
    ):
        approached(arm, core, None, DesignLimits.of(arm))
    core = FourierTrajectory([[0.5, -0.5]] * 6, [[0.0, 0.0]] * 6, arm.home, 4.0)
    assert approached(arm, core, None, DesignLimits.of(arm)) is core
    with pytest.raises(
        InvalidTrajectory, match=r"of ur10: elbow_joint: upper position, 0.7.* rad beyond"
    ):
        approached(arm, core, arm.home + np.array([0, 0, 7, 0, 0, 0]), DesignLimits.of(arm))
