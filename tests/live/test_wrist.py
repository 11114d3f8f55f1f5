"""`track` with a wrist sensor: recordings and streams."""

import json
import re

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import track as track_command
from steelyard.cli.options import Verb
from steelyard.errors import InvalidRobot, InvalidSamples, SourceFailed, SteelyardError
from steelyard.io import write
from steelyard.io._wrist import SensorDescription
from steelyard.live import (
    LivePage,
    LiveWeigher,
    PageOptions,
    ReplaySource,
    Stream,
    UrController,
    WristSetup,
    snapshots_of,
)
from steelyard.live._source import Connection, Row
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.wrist import WristPayload
from steelyard.wrist.tracking import WristTrackerOptions
from wrist_streams import LOADS, rows

app = typer.Typer()
app.command(name="track-wrist", cls=Verb)(track_command.wrist_command)
app.callback()(lambda: None)  # a program with one command has no names of commands otherwise
MASS = LOADS["LOAD"].mass
COLUMNS = """
noise = [0.3, 0.3, 0.3, 0.03, 0.03, 0.03]
[columns]
t = "t"
wrench = ["fx", "fy", "fz", "tx", "ty", "tz"]
acceleration = ["ax", "ay", "az"]
angular_velocity = ["wx", "wy", "wz"]
quaternion = ["qx", "qy", "qz", "qw"]
"""


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A recording with joints whose wrench has the other sign, and a table of an inertial unit."""
    path = tmp_path_factory.mktemp("online")
    t, q, wrench = (np.array(x) for x in zip(*rows(seconds=6.0), strict=True))
    about = {"wrench_frame": "flange", "wrench_convention": "sensor_on_load"}
    recording = Recording(t, q, load_robot("ur10").joint_names, wrench=-wrench, **about)
    write(recording, path / "move.parquet")
    for half, name in ((slice(0, 300), "first"), (slice(300, None), "second")):
        write(recording.rows(half), path / f"{name}.parquet")
    table = np.array(
        [
            np.concatenate([[row.t], row.effort, row.motion])
            for row in rows(kind="unit", seconds=6.0)
        ]
    )
    names = "t,fx,fy,fz,tx,ty,tz,ax,ay,az,wx,wy,wz,qx,qy,qz,qw"
    np.savetxt(path / "unit.csv", table, delimiter=",", header=names, comments="")
    (path / "unit.toml").write_text(COLUMNS)
    (path / "joints.toml").write_text("noise = [0.3, 0.3, 0.3, 0.03, 0.03, 0.03]\n")
    return path


@pytest.mark.thorough
def test_a_recording_is_weighed_sample_by_sample(folder):
    words = ("track-wrist", folder / "move.parquet", "--robot", "ur10")
    done = run(*words, "-o", folder / "p.json", "--report", folder / "p.html", "--json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.output)
    assert data["mass"] == pytest.approx(MASS, abs=4 * data["std"][0])
    assert data["curve"]["t"][-1] > 5.5
    widths = [std for std in data["curve"]["mass_std"] if np.isfinite(std)]
    assert widths[-1] < 0.1 * widths[0]
    assert data["converged_s"] < 5
    assert np.linalg.norm(data["contact"][:3]) < 2.0
    assert WristPayload.load(folder / "p.json").mass == data["mass"]
    assert "How the answer became known" in (folder / "p.html").read_text()
    found = sy.track_wrist(folder / "move.parquet", "ur10")
    assert found.payload.mass == data["mass"]
    assert str(found).endswith("s late.")
    assert repr(found).startswith("<Tracking: 3.99")
    said = run(*words).output
    assert "move.parquet, sample by sample" in said
    assert "The mass is known to 1 % since" in said
    assert "Contact at the end:" in said


def test_a_saved_state_goes_on(folder):
    state, words = folder / "state.json", ("--robot", "ur10", "--json")
    first = json.loads(
        run("track-wrist", folder / "first.parquet", *words, "--save-state", state).output
    )
    done = run("track-wrist", folder / "second.parquet", *words, "--resume", state)
    second = json.loads(done.output)
    assert second["samples"]["used"] > first["samples"]["used"]
    assert second["samples"]["gaps"] == 1
    assert second["std"][0] < 0.7 * first["std"][0]
    assert second["mass"] == pytest.approx(MASS, abs=4 * second["std"][0])
    other = folder / "other.toml"
    other.write_text("translation = [0.0, 0.0, 0.1]\n")
    done = run(
        "track-wrist", folder / "second.parquet", *words, "--resume", state, "--sensor", other
    )
    assert "was saved with another model or sensor; start without --resume" in str(done.exception)


def test_what_track_cannot_do_is_refused(folder):
    (folder / "postures.toml").write_text("postures = true\n" + COLUMNS.replace('t = "t"\n', ""))
    postures, half = folder / "postures.toml", folder / "half.json"
    cases = {
        "unit.csv has no time, so its rows are postures": (
            *(folder / "unit.csv", "--sensor", postures),
        ),
        "half.json was changed after it was saved, or is not whole": (
            *(folder / "move.parquet", "--robot", "ur10", "--resume", half),
        ),
    }
    (folder / "half.json").write_text('{"steelyard": "tracker state", "version": 4}')
    for message, words in cases.items():
        done = run("track-wrist", *words)
        assert isinstance(done.exception, SteelyardError), message
        assert message in str(done.exception)


@pytest.mark.parametrize(
    ("file", "sensor", "robot"),
    [("move.parquet", "joints.toml", "ur10"), ("unit.csv", "unit.toml", None)],
)
def test_a_stream_is_watched_with_a_sensor(folder, file, sensor, robot):
    about = SensorDescription.load(folder / sensor)
    source = ReplaySource(str(folder / file), None, None if robot else about)
    with Stream(source) as stream:
        arm = robot and load_robot(robot)
        options = WristTrackerOptions(accuracy=0.02)
        weigher = LiveWeigher(WristSetup.of(stream, about, arm, options=options))
        assert weigher.snapshot() is None
        *_, last = snapshots_of(stream.items(), weigher, every_s=10.0)
    assert last.rows == 600
    assert last.payload.body.mass == pytest.approx(MASS, abs=4 * last.payload.std[0])
    assert last.converged
    assert (np.abs(last.contact.wrench) < 6 * last.contact.std).all()
    assert 0.05 < weigher.calibration.path.delay_s < 0.5
    online = sy.track_wrist(folder / file, robot, sensor=folder / sensor)
    np.testing.assert_allclose(weigher.payload().mass, online.payload.mass, rtol=1e-4)


def test_the_verb_shows_mass_verdict_and_contact(folder, monkeypatch):
    monkeypatch.setattr(
        ReplaySource.__init__, "__defaults__", (None, *ReplaySource.__init__.__defaults__[1:])
    )  # as fast as it goes
    words = ("track-wrist", f"replay:{folder / 'move.parquet'}", "--sensor", folder / "joints.toml")
    words = (*words, "--robot", "ur10")
    data = json.loads(run(*words, "--json", "-o", folder / "watched.json").output)
    assert data["mass"] == pytest.approx(MASS, abs=4 * data["std"][0])
    assert len(data["contact"]) == 6
    assert data["rows"] == 600
    assert WristPayload.load(folder / "watched.json").mass == data["mass"]
    lighter = json.loads(run(*words, "--json", "--gravity=0,0,-9.7").output)
    assert lighter["mass"] / data["mass"] == pytest.approx(9.81 / 9.7, abs=2e-3)
    done = run(*words, "--gravity", "down")
    assert "--gravity is X,Y,Z [m/s^2], say 0,9.81,0; got 'down'" in str(done.exception)
    said = run(
        "track-wrist", f"replay:{folder / 'unit.csv'}", "--sensor", folder / "unit.toml"
    ).output
    assert re.search(r"\d (±|\+-) \d", said)
    assert re.search(r"Contact at the end: -?\d", said), said
    done = run("track-wrist", f"replay:{folder / 'move.parquet'}")
    assert "does not say which columns are the wrench" in str(done.exception)


def watched(folder):
    """A weigher that has seen all rows of a recording with joints, and its snapshots."""
    about = SensorDescription.load(folder / "joints.toml")
    with Stream(ReplaySource(str(folder / "move.parquet"), None)) as stream:
        weigher = LiveWeigher(WristSetup.of(stream, about, load_robot("ur10")))
        found = []
        for k, item in enumerate(stream.items()):
            weigher.take(item)
            if k % 60 == 0 and (snapshot := weigher.snapshot()) is not None:
                found.append(snapshot)
        return weigher, [*found, weigher.snapshot()]


def test_a_page_shows_the_load_and_the_contact_and_sets_nothing(folder):
    pytest.importorskip("viser")
    from steelyard.live._page import SnapshotPage

    weigher, snapshots = watched(folder)
    with SnapshotPage(weigher.view, UrController("127.0.0.1"), port=0) as page:
        for snapshot in snapshots:
            page._remember(snapshot)
        page._move(snapshots[-1].values, snapshots[-1])
        page._write(snapshots[-1], ())
        page._plot()
        assert page._controller is None  # a controller wants the sensor with it
        mass, half = snapshots[-1].payload.quantities[0].rounded
        assert f">{mass}<" in page._answer.content
        assert f"± {half} kg" in page._answer.content
        assert "force of a contact" in page._trace_chart._title.content
        at = snapshots[-1].payload.in_flange().body.com
        np.testing.assert_allclose(page._scene._centre.position, at, atol=1e-6)
    assert snapshots[-1].next_step.startswith("nothing: ")
    assert snapshots[1].next_step.startswith(("wait: ", "rest for a second"))


@pytest.mark.thorough
def test_a_page_process_gets_what_the_weigher_says(folder):
    pytest.importorskip("viser")
    weigher, _ = watched(folder)
    with LivePage(weigher.setup, UrController("127.0.0.1"), PageOptions(port=0)) as page:
        page.attach(weigher)
        found = [*page.look(False), *page.look(True)]
    assert found[-1].payload.mass == weigher.snapshot().payload.mass


@pytest.mark.thorough
def test_rows_without_joints_have_no_page(folder):
    place = f"replay:{folder / 'unit.csv'}"
    done = run("track-wrist", place, "--sensor", folder / "unit.toml", "--page", "0")
    assert "sends no joints, and a page shows the arm: leave out --page" in str(done.exception)
    done = run("track-wrist", place, "--sensor", folder / "unit.toml")
    assert done.exit_code in (0, 1), done.exception


class Silent(Connection):
    """Rows of six joints."""

    columns = ("t", *(f"q_{k}" for k in range(6)))

    def read(self):
        raise SourceFailed("nothing")

    def close(self):
        pass


class Source(ReplaySource):
    def connect(self):
        return Silent()


def test_streams_that_cannot_be_weighed_say_why():
    about = SensorDescription()
    with Stream(Source("x")) as stream:
        with pytest.raises(
            InvalidSamples, match="sends joints: give the arm with `robot` or `model`"
        ):
            WristSetup.of(stream, about, None)
        with pytest.raises(InvalidRobot, match="sends 6 joints, panda has 7"):
            WristSetup.of(stream, about, load_robot("panda"))
        weigher = LiveWeigher(WristSetup.of(stream, about, load_robot("ur10")))
    assert weigher.snapshot() is None
    weigher.take(Row(0.0, (0.0,) * 7))
    assert weigher.snapshot().waiting == "no wrench comes: is the sensor connected?"
    weigher.take(Row(0.1, (0.1, *(0.0,) * 6), wrench=(1.0,) * 6))
    assert weigher.snapshot().waiting == "the first second shows rate and noise"
    assert weigher.payload() is None


def test_another_clock_goes_on_where_the_first_one_ended():
    about = SensorDescription()
    with Stream(Source("x")) as stream:
        weigher = LiveWeigher(WristSetup.of(stream, about, load_robot("ur10")))
    for clock in (0, 1):
        for row in rows(seconds=4.0):
            weigher.take(Row(row.t, (row.t, *row.motion), clock, "", 0.0, tuple(row.effort)))
    snapshot = weigher.snapshot()
    assert snapshot.state.counts.gaps == 1
    assert snapshot.payload.body.mass == pytest.approx(MASS, abs=4 * snapshot.payload.std[0])
    assert snapshot.state.last_s > 7.0
