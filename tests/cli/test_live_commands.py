"""Commands for live arms on a simulated controller: rows on disk and payloads."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import steelyard as sy
from conftest import steelyard
from live_helpers import Rows, opened, rows_of, sent, served, taken
from steelyard.cli.progress import Status, status_table
from steelyard.cli.serve import _serve
from steelyard.errors import InvalidRobot, SourceFailed, UnreadableFile
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.io import read, write
from steelyard.live import (
    EventKind,
    LiveWeigher,
    Recorder,
    ReplaySource,
    Row,
    Stream,
    TorqueSetup,
    snapshots_of,
    source_of,
)
from steelyard.robot import load_robot
from steelyard.signals import prepare
from steelyard.simulation import SimulationOptions, simulate
from steelyard.trajectory import FourierTrajectory
from steelyard.twin._backend import NOMINAL_GAINS, RecordedArm
from steelyard.twin._controller import SERIAL_NUMBER, SimulatedController
from steelyard.twin._server import ControllerServer
from waiting import wait_until

LOAD_KG = 2.5


@pytest.fixture(scope="module")
def arm():
    """A UR10e with exact gains."""
    robot = load_robot("ur10e").with_serial(SERIAL_NUMBER)
    drive = replace(
        robot.drive, gain=np.array(NOMINAL_GAINS), gain_std=np.zeros(6), gain_common=0.0
    )
    return robot.with_drive(drive)


def motion(robot, seed):
    return FourierTrajectory.random(
        robot.home, reach=1.0, speed=1.2, period_s=6.0, harmonics=4, seed=seed
    )


def run_of(robot, seed, load=None, rate_hz=125.0):
    options = SimulationOptions(step_s=0.004 if rate_hz == 125 else 0.002)
    run = simulate(
        robot, motion(robot, seed), payload=load, seed=seed, rate_hz=rate_hz, options=options
    )
    return replace(run.recording, tau=None, wrench=None, wrench_frame=None, wrench_convention=None)


@pytest.fixture(scope="module")
def model(arm):
    return identify(arm, prepare(run_of(arm, 0), drive=arm.drive))


@pytest.fixture(scope="module")
def loaded(arm):
    return run_of(
        arm, 1, InertialParameters.from_com(LOAD_KG, [0, 0, 0.05], 0.004 * np.eye(3), arm.flange)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model, loaded):
    path = tmp_path_factory.mktemp("live")
    model.save(path / "model.json")
    write(loaded, path / "loaded.npz")
    return path


def weighed(model, stream, **options):
    weigher = LiveWeigher(TorqueSetup(model, stream.columns, **options))
    snapshots = list(snapshots_of(stream, weigher, every_s=0.02))
    return weigher, snapshots


# --- on disk


@pytest.mark.parametrize("ending", ["parquet", "arrows"])
def test_every_row_is_on_disk_under_the_senders_names(tmp_path, ending):
    path = tmp_path / f"log.{ending}"
    with served() as found, opened(found) as stream, Recorder(path, stream.columns) as recorder:
        sent(found, 300)
        rows = rows_of(taken(stream, rows=300))
        for row in rows:
            recorder.add(row)
    assert recorder.files == [path]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    back = read(path)
    np.testing.assert_allclose(back.t + back.epoch_s, [row.t for row in rows], atol=1e-9)
    np.testing.assert_array_equal(back.q[:, 0], np.arange(1, 301))
    assert {"q", "v", "current"} <= set(back.channels)


def test_another_clock_is_another_file(tmp_path):
    with (
        served() as found,
        opened(found) as stream,
        Recorder(tmp_path / "log.parquet", stream.columns) as recorder,
    ):
        sent(found, 30)
        rows = rows_of(taken(stream, rows=30))
        found.controller.fault("reboot")
        found.send()
        taken(stream, until=lambda x: x[0] is EventKind.CONNECTED)
        sent(found, 40)
        for row in rows + rows_of(taken(stream, rows=40)):
            recorder.add(row)
    assert [path.name for path in recorder.files] == ["log.parquet", "log-2.parquet"]
    assert [len(read(path)) for path in recorder.files] == [30, 40]


def test_files_of_other_kinds_and_without_a_folder_are_refused(tmp_path):
    with pytest.raises(
        UnreadableFile, match=r"live rows are recorded as \.parquet or \.arrows, not 'log\.csv'"
    ):
        Recorder(tmp_path / "log.csv", ("t",))
    with pytest.raises(UnreadableFile, match=r"there is no folder .*; make it first"):
        Recorder(tmp_path / "none" / "log.parquet", ("t",))


def wait_for_a_batch(path):
    """Returns when the file has grown, however slow the disk is."""
    size = path.stat().st_size
    end = time.monotonic() + 10
    while path.stat().st_size == size and time.monotonic() < end:
        time.sleep(0.001)


def test_a_stream_that_was_cut_short_is_read_up_to_its_last_whole_batch(tmp_path, monkeypatch):
    path = tmp_path / "log.arrows"
    monkeypatch.setattr("steelyard.live._recorder._BATCH_S", 0.001)
    with Recorder(path, ("t", "q_0", "tau_0")) as recorder:
        for k in range(100):
            recorder.add(Row(k / 100, (k / 100, float(k), 0.0)))
            if k % 10 == 9:
                wait_for_a_batch(path)
    whole = path.read_bytes()
    damaged = 0
    sizes = range(len(whole) // 2, len(whole), 97)
    for size in sizes:
        path.write_bytes(whole[:size])
        back = read(path)
        assert 20 < len(back) <= 100
        np.testing.assert_array_equal(back.q[:, 0], np.arange(len(back)))
        damaged += "damaged end" in "".join(back.notes)
    assert damaged > len(sizes) / 2  # a cut between two batches damages nothing
    for broken, words in (
        (b"nonsense", "it is not an Arrow stream"),
        (whole[:300], "no rows|not an Arrow stream"),
    ):
        path.write_bytes(broken)
        with pytest.raises(UnreadableFile, match=words):
            read(path)


@pytest.mark.parametrize(
    "fault", [OSError(28, "No space left on device"), IndexError("No space left")]
)
def test_a_recorder_that_can_write_no_more_is_said(tmp_path, monkeypatch, fault):
    monkeypatch.setattr("steelyard.live._recorder._BATCH_S", 0.001)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(fault))
    recorder = Recorder(tmp_path / "log.arrows", ("t",))
    with pytest.raises(UnreadableFile, match=r"cannot write .*log\.arrows: .*No space left"):
        wait_until(lambda: recorder.add(Row(0.0, (0.0,))))
    with pytest.raises(UnreadableFile, match="No space left"):
        recorder.close()


@pytest.mark.thorough
def test_a_recorder_that_is_killed_has_kept_what_came(tmp_path):
    """Rows reach the disk before the file is closed; the test is the controller's clock."""
    path, end = tmp_path / "log.arrows", time.monotonic() + 60
    with served(Rows()) as found:
        words = [sys.executable, "-m", "steelyard", "record", f"ur://127.0.0.1:{found.port}"]
        child = subprocess.Popen(
            [*words, "-o", "log.parquet"], cwd=tmp_path, stdout=subprocess.DEVNULL
        )
        while time.monotonic() < end and not path.exists():
            sent(found, 1)
        sent(found, 500)
        last_s = found.controller.outputs["timestamp"][0]
        while time.monotonic() < end and _last_s(path) < last_s:
            time.sleep(0.05)
        os.kill(child.pid, signal.SIGKILL)
        child.wait(10)
    back = read(path)
    assert back.t[-1] + back.epoch_s == pytest.approx(last_s, abs=1e-6)
    assert np.diff(back.t).max() < 0.0021
    assert not (tmp_path / "log.parquet").exists()


def _last_s(path):
    """Time of the last row that can be read, [s]."""
    try:
        found = read(path)
    except UnreadableFile:
        return -np.inf
    return found.t[-1] + found.epoch_s


# --- weighed


def test_live_numbers_are_those_of_the_recording_weighed_online(model, loaded, folder):
    offline = sy.track(loaded, model=model)
    with Stream(ReplaySource(str(folder / "loaded.npz"), speed=None)) as stream:
        weigher, snapshots = weighed(model, stream)
    live = weigher.payload()
    np.testing.assert_allclose(live.body.vector, offline.payload.body.vector, rtol=1e-9)
    np.testing.assert_allclose(live.covariance, offline.payload.covariance, rtol=1e-9)
    assert weigher.state.counts == offline.state.counts
    assert snapshots[-1].rows == len(loaded)
    assert snapshots[-1].payload.mass == pytest.approx(LOAD_KG, rel=0.03)


@pytest.mark.thorough
def test_a_recording_behind_a_controller_is_weighed_as_offline(model, loaded, folder, tmp_path):
    """Through RTDE and back: a controller's clock and recorded rows, at eight times their speed."""
    offline = sy.track(loaded, model=model).payload
    with (
        ControllerServer(SimulatedController(RecordedArm(loaded, model.robot)), speed=8.0) as found,
        opened(found) as stream,
    ):
        weigher = LiveWeigher(TorqueSetup(model, stream.columns, "ur", 0.02))
        events = []
        with Recorder(tmp_path / "log.parquet", stream.columns) as recorder:
            for snapshot in snapshots_of(
                stream.items(20), weigher, every_s=0.05, recorder=recorder
            ):
                events += snapshot.events
                if snapshot.waiting.startswith("the arm is not powered"):
                    break
    live = weigher.payload()
    assert snapshot.missing == snapshot.dropped == 0
    assert abs(live.mass - offline.mass) < 0.5 * 1.96 * offline.std[0]
    assert "the arm is not powered or not released (power off)" in [event.words for event in events]
    back = read(tmp_path / "log.parquet")
    on = back.t + back.epoch_s <= 100 + loaded.duration_s + 1e-6
    again = sy.track(back.rows(on), model=model).payload
    np.testing.assert_allclose(again.body.vector, live.body.vector, rtol=1e-5, atol=1e-7)


@pytest.mark.thorough
def test_an_arm_under_ros_2_is_weighed_as_offline(model, loaded):
    """Joints by name, sorted as a broadcaster sends them, and currents as efforts."""
    import ros2_bridge  # which skips where foxglove-sdk is not there

    offline = sy.track(loaded, model=model).payload
    names = model.robot.joint_names
    order = np.argsort(names)
    with ros2_bridge.bridge(names=names) as arm:
        address = f"ros2://127.0.0.1:{arm.port}?current=effort"
        with Stream(source_of(address, joint_names=names)) as stream:
            weigher = LiveWeigher(TorqueSetup(model, stream.columns, address))
            for t, q, current in zip(loaded.t, loaded.q, loaded.current, strict=True):
                values = [names[k] for k in order], q[order], q[order], current[order]
                arm.publish("/joint_states", ros2_bridge.joint_state(t + 200, *values))
            for item in taken(stream, rows=len(loaded)):
                weigher.take(item)
    assert weigher.snapshot().rows == len(loaded)
    assert abs(weigher.payload().mass - offline.mass) < 0.1 * offline.std[0]


def test_updates_say_how_long_it_will_take(model, folder):
    with Stream(ReplaySource(str(folder / "loaded.npz"), speed=None)) as stream:
        weigher = LiveWeigher(TorqueSetup(model, stream.columns, accuracy=0.009))
        known = []
        for item in stream:
            weigher.take(item)
            if isinstance(item, Row) and len(known) * 25 < weigher._rows:
                known.append(weigher.snapshot())
    assert known[0].waiting == "the filters fill"
    assert known[0].payload is None
    reached = next(k for k, snapshot in enumerate(known) if snapshot.converged)
    assert known[reached].remaining_s == 0
    before = known[3 * reached // 4]
    left_s = known[reached].t - before.t
    assert left_s / 3 < before.remaining_s < 3 * left_s


def test_unfit_rows_do_not_touch_the_estimate_and_another_clock_goes_on(model, folder):
    with Stream(ReplaySource(str(folder / "loaded.npz"), speed=None)) as stream:
        rows = rows_of(stream)
        good, other = (LiveWeigher(TorqueSetup(model, stream.columns)) for _ in range(2))
    for row in rows[:300]:
        good.take(row)
        other.take(row)
        other.take(row._replace(waiting="protective stop", values=tuple(9.0 for _ in row.values)))
    np.testing.assert_array_equal(good.state.known.R, other.state.known.R)
    assert other.snapshot().waiting == "protective stop"
    for row in rows[300:]:
        good.take(row)
        other.take(row._replace(clock=1, t=row.t - rows[300].t))
    assert other.state.counts.late == 0
    assert other.state.counts.gaps == 1
    one, two = good.payload(), other.payload()
    assert abs(one.mass - two.mass) < 1.96 * one.std[0]


def test_a_robot_of_another_kind_is_refused(model, loaded, folder):
    with Stream(ReplaySource(str(folder / "loaded.npz"), speed=None)) as stream:
        rows = rows_of(stream)
        columns = stream.columns
    five = [k for k, name in enumerate(columns) if not name.endswith("_5")]
    weigher = LiveWeigher(TorqueSetup(model, tuple(columns[k] for k in five), "ur://arm"))
    fewer = [row._replace(values=tuple(row.values[k] for k in five)) for row in rows[:50]]
    for row in fewer[:-1]:
        weigher.take(row)
    with pytest.raises(InvalidRobot, match="ur://arm sends 5 joints, the model is of ur10e with 6"):
        weigher.take(fewer[-1])
    with (
        ControllerServer(
            SimulatedController(RecordedArm(loaded, load_robot("ur10"))), speed=4.0
        ) as found,
        opened(found) as stream,
        pytest.raises(
            InvalidRobot, match=r"is not the arm of the model: its flange is \d+ mm from"
        ),
    ):
        list(snapshots_of(stream.items(5), LiveWeigher(TorqueSetup(model, stream.columns))))


# --- verbs


def test_track_weighs_and_record_records(folder, loaded):
    write(loaded.between(1.0, 4.0), folder / "short.npz")
    done = steelyard(
        "track", "replay:short.npz", "--model", "model.json", "-o", "payload.json", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert "short.npz is over" in done.stdout
    assert sy.Payload.load(folder / "payload.json").mass == pytest.approx(LOAD_KG, rel=0.2)
    words = (
        "track",
        "replay:short.npz",
        "--model",
        "model.json",
        "--record",
        "again.parquet",
        "--json",
    )
    facts = json.loads(steelyard(*words, cwd=folder).stdout)
    assert facts["rows"] == len(read(folder / "again.parquet"))
    assert facts["missing"] == facts["dropped"] == 0
    done = steelyard(
        "record", "replay:short.npz", "-o", "third.arrows", "--seconds", "0.3", cwd=folder
    )
    assert "0 missing, 0 dropped here" in done.stdout, done.stderr
    assert 20 < len(read(folder / "third.arrows")) < 125


def test_a_recording_is_replayed_to_record_its_rows_and_a_stream_has_a_report(folder, loaded):
    write(loaded.between(1.0, 2.0), folder / "second.npz")
    words = ("track", "second.npz", "--model", "model.json", "--accuracy", "50")
    words = (*words, "--record", "rows.parquet", "--seconds", "30", "--report", "page.html")
    done = steelyard(*words, "--json", cwd=folder)
    facts = json.loads(done.stdout)
    assert facts["rows"] == len(read(folder / "rows.parquet")) == len(read(folder / "second.npz"))
    page = (folder / "page.html").read_text()
    assert "How the answer became known" in page
    mass, half = (
        sy.track(folder / "rows.parquet", folder / "model.json").payload.quantities[0].rounded
    )
    assert f"{mass} ± {half} kg" in page


def test_lines_outside_a_terminal_are_short(folder):
    done = steelyard("track", "replay:loaded.npz", "--model", "model.json", cwd=folder)
    lines = [line for line in done.stdout.splitlines() if " s  mass " in line]
    assert 3 <= len(lines) <= 8  # one per second of 6
    assert max(map(len, lines)) <= 120


def test_a_terminal_gets_one_table(model, loaded):
    found = sy.track(loaded, model)
    status = Status.of_progress(found.points[-1])
    screen = Console(width=100, file=StringIO(), force_terminal=True)
    screen.print(status_table("loaded.npz", status))
    said = screen.file.getvalue()
    for quantity in found.points[-1].payload.quantities:
        value, half = quantity.rounded
        assert re.search(rf"{quantity.name}\s+{re.escape(value)}\s+{re.escape(half)}", said)
    assert f"Next: {found.points[-1].next_step}"[:90] in said


def test_an_arm_that_is_not_powered_is_one_clear_line(folder):
    with served(speed=1.0) as found:
        found.controller.fault("power-off")
        address = f"ur://127.0.0.1:{found.port}"
        done = steelyard("track", address, "--model", "model.json", "--seconds", "0.5", cwd=folder)
    assert done.returncode == 2
    said = (
        f"error: {address}: nothing could be weighed (the arm is not powered or not released"
        " (power off))"
    )
    assert done.stderr.strip() == said


def test_verbs_say_in_one_line_what_is_wrong(folder):
    for words, said in (
        (("record", "ur://127.0.0.1:9", "-o", "x.parquet"), "the connection was refused"),
        (("track", "ftp://x", "--model", "model.json"), "a source is ur://HOST"),
        (
            ("track", "replay:x", "--model", "model.json", "--gravity=0,0,-9.8"),
            "No such option: --gravity",
        ),
        (
            ("track", "ur://127.0.0.1:9", "--model", "model.json", "--degrees"),
            "ur://127.0.0.1:9 names its signals itself: columns, joints and units can only be",
        ),
        (
            ("track", "ur://127.0.0.1:9", "--model", "model.json", "--page", "here"),
            "--page is [HOST:]PORT[,URDF], say 8080; got 'here'",
        ),
        (
            ("track", "ur://127.0.0.1:9", "--model", "model.json", "--page", "99999"),
            "--page",
        ),
        (("track", "ur://127.0.0.1:9", "--model", "model.json", "--page", "-1"), "--page"),
        (("simulate", "ur10e"), "Missing option '--output'"),
        (("serve", "ur10e", "--rtde", "here"), "--rtde is [HOST:]PORT"),
        (("serve", "ur10e", "--rtde", "99999"), "--rtde is [HOST:]PORT"),
        (("serve", "ur10e", "--payload-at", "2.5kg"), "--payload-at is S=KGkg:X,Y,Z"),
        (
            ("serve", "ur10e", "--payload-at", "1=heavy"),
            "--payload-at is S=KGkg:X,Y,Z",
        ),
        (("serve", "ur10e", "--fault", "1=explode"), "there is no fault 'explode'"),
    ):
        done = steelyard(*words, cwd=folder)
        assert done.returncode == 2
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_controller_is_served_on_this_machine_at_a_port_alone(capsys):
    _serve(SimulatedController(Rows()), "arm", "0", faults=[], seconds=0.0)
    assert "A simulated arm on 127.0.0.1: RTDE " in capsys.readouterr().out


@pytest.mark.parametrize("rtde", [":0", "127.0.0.1:rtde"])
def test_a_controller_is_not_served_on_every_network_by_mistake(rtde):
    with pytest.raises(SourceFailed, match=rf"--rtde is \[HOST:\]PORT, .*; got '{rtde}'"):
        _serve(SimulatedController(Rows()), "arm", rtde, faults=[], seconds=0.0)
