"""A motion in the words of others, read back."""

import csv
import io
import re

import numpy as np
import pytest

from steelyard.errors import InvalidTrajectory, UnreadableFile
from steelyard.io.motions import write_motion
from steelyard.robot import load_robot
from steelyard.trajectory import load_trajectory

NAMES = load_robot("ur10").joint_names


@pytest.fixture(scope="module")
def motion():
    return load_trajectory("xu2024")


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
    np.testing.assert_allclose(q, motion.at(np.arange(1251) / 125.0)[0], atol=1e-6)
    assert text.startswith("def steelyard_motion():\n  # CAUTION: movej goes from wherever the arm is")
    degrees = np.round(np.degrees(motion.at(np.zeros(1))[0][0]), 1) + 0.0
    assert f"[{', '.join(f'{x:.1f}' for x in degrees)}] degrees. Nothing has checked that way" in text
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
    for word, signal in zip(("positions", "velocities", "accelerations"), motion.at(t), strict=True):
        rows = re.findall(rf"{word}: \[(.*?)\]", text)
        np.testing.assert_allclose([[float(x) for x in row.split(",")] for row in rows], signal, atol=1e-8)


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
        InvalidTrajectory, match=r"a motion is written as .csv, .script, .yaml, .yml or .json"
    ):
        write_motion(tmp_path / "x.txt", motion, NAMES, 10.0)
    with pytest.raises(InvalidTrajectory, match="rate_hz must be positive, got 0"):
        write_motion(tmp_path / "x.csv", motion, NAMES, 0.0)
