"""Recordings of real arms are read, and the findings about them are true."""

from pathlib import Path

import numpy as np
import pytest

from steelyard.errors import UnreadableFile
from steelyard.io import read, recording_blocks, write
from steelyard.quality import check
from steelyard.robot import load_robot

DATA = Path(__file__).parents[3] / "shared" / "data"
UR10E = sorted(DATA.glob("ur10e/*/*.npz"))
PANDA = DATA / "panda" / "exciting_traj1.npz"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no recordings in {DATA}")
ids = {"ids": lambda path: path.stem}


@pytest.mark.parametrize("path", UR10E, **ids)
def test_the_ur10e(path):
    recording = read(path)
    with np.load(path) as archive:
        pairs = {
            "q": "q",
            "v": "qd",
            "current": "i",
            "current_target": "i_des",
            "tau_target": "tau_des",
        }
        for channel, key in pairs.items():
            if key in archive.files:
                np.testing.assert_array_equal(getattr(recording, channel), archive[key])
            else:
                assert getattr(recording, channel) is None
        assert recording.epoch_s == archive["t"][0]
    unread = "src_row, tau_ext_authors" if "collision" in path.stem else "src_row"
    assert recording.notes == (f"not read, unknown name: {unread}",)
    assert recording.source == path.name


@pytest.mark.parametrize("path", UR10E, **ids)
@pytest.mark.parametrize("with_limits", [True, False])
def test_what_is_said_about_the_ur10e_is_true(path, with_limits):
    recording = read(path)
    robot = load_robot("ur10e")
    report = check(recording, limits=robot.limits if with_limits else None)
    kinds = {finding.kind: finding for finding in report.findings}
    assert report.ok
    assert round(report.rate_hz) == 100
    steps = np.diff(recording.t)
    off = np.mean(np.abs(steps - 0.01) > 0.0019)
    assert kinds.pop("rate").severity == "info"
    assert kinds.pop("jitter").sentence.startswith(
        f"{100 * off:.2g} % of the steps are off the median 10 ms"
    )
    still = np.flatnonzero(np.ptp(recording.q, axis=0) < 0.01)
    if still.size:
        assert kinds.pop("still_joint").place.joints == tuple(f"joint{j + 1}" for j in still)
    for finding in [finding for finding in report.findings if finding.kind == "flat"]:
        assert finding.place.channel in ("tau_target", "current_target")
        columns = [int(name.removeprefix("joint")) - 1 for name in finding.place.joints]
        assert (np.ptp(getattr(recording, finding.place.channel)[:, columns], axis=0) == 0).all()
        assert set(columns) <= set(still)
        kinds.pop("flat", None)
    if path.stem == "collision_3link":  # link 3 was touched, near 13.8 s hardest
        assert kinds.pop("jolt").place.t_s == pytest.approx(13.8, abs=0.1)
    assert not kinds


def test_sweeps_of_one_joint_leave_five_at_rest():
    for path in DATA.glob("ur10e/unloaded/*joint_[123].npz"):
        report = check(read(path))
        still = next(finding for finding in report.findings if finding.kind == "still_joint")
        moving = f"joint{path.stem[-1]}"
        assert len(still.place.joints) == 5
        assert moving not in still.place.joints


def test_the_panda():
    report = check(read(PANDA), limits=load_robot("panda").limits)
    found = {finding.kind: finding for finding in report.findings}
    assert report.ok
    assert set(found) == {"rate", "jitter", "gap", "repeated_rows"}
    with np.load(PANDA) as archive:
        same = (np.diff(np.hstack([archive[k] for k in ("q", "qd", "tau")]), axis=0) == 0).all(
            axis=1
        )
        steps = np.diff(archive["t"])
    assert found["repeated_rows"].sentence.startswith(f"{same.sum()} rows")
    assert found["gap"].place.row == np.argmax(steps) + 1
    assert f"{(steps > 0.003).sum()} gaps" in found["gap"].sentence


@pytest.mark.parametrize(
    "path", [PANDA, *(p for p in UR10E if "14harm" in p.stem or "free" in p.stem)], **ids
)
def test_real_motion_with_wrong_units_is_found(path):
    recording = read(path)
    with np.load(path) as archive:
        wrong = {
            "degrees": {"q": np.rad2deg(archive["q"]), "qd": np.rad2deg(archive["qd"])},
            "velocity": {"q": archive["q"], "qd": np.rad2deg(archive["qd"])},
            "sign": {"q": archive["q"], "qd": -archive["qd"]},
        }
    for name, signals in wrong.items():
        bad = check(
            recording.__class__(t=recording.t, q=signals["q"], v=signals["qd"], tau=recording.q)
        )
        kind = "velocity" if name == "sign" else name
        finding = next(finding for finding in bad.findings if finding.severity == "error")
        assert finding.kind == kind
        assert len(finding.place.joints) >= 2


def test_the_tx40_needs_its_columns_named():
    path = DATA / "tx40" / "tx40.npz"
    with pytest.raises(
        UnreadableFile, match=r"tx40\.npz: no position column .* motor_pos_rad, motor_torque_nm"
    ):
        read(path)
    recording = read(path, columns={"q": "motor_pos_rad", "tau": "motor_torque_nm"})
    assert (len(recording), recording.n, round(recording.rate_hz)) == (45000, 6, 5000)
    report = check(recording)
    assert "degrees" in {
        finding.kind for finding in report.findings
    }  # motors turn far beyond two turns


def test_a_wrench_without_time_is_refused():
    with pytest.raises(UnreadableFile, match=r"run1\.npz: no time column .* pos_link, acc_nograv"):
        read(DATA / "ft_panda" / "run1.npz")


def test_a_real_recording_through_parquet_and_in_blocks(tmp_path):
    recording = read(PANDA)
    write(recording, tmp_path / "a.parquet")
    blocks = list(recording_blocks(tmp_path / "a.parquet", block_s=5.0, overlap_s=0.5))
    assert len(blocks) == 5
    for k, block in enumerate(blocks):
        np.testing.assert_array_equal(block.tau, recording.between(5 * k - 0.5, 5 * k + 5.5).tau)
