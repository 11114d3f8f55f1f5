"""Commands for the wrist sensor: printed text, one JSON object, files, exit codes."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import contact, options, weigh_wrist
from steelyard.errors import SteelyardError, UnreadableFile
from steelyard.io import read, write
from steelyard.robot import load_robot
from steelyard.wrist._regressor import wrench_regressor
from wrist_recordings import DRIFT, LOAD, SENSOR, write_wrist_recordings

app = typer.Typer()
app.add_typer(weigh_wrist.app, name="weigh-wrist")
app.command(name="contact", cls=options.Verb)(contact.command)


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two recordings of a UR10 with joints, and a table of postures without."""
    path = tmp_path_factory.mktemp("wrist")
    write_wrist_recordings(path)
    return path


def test_both_stages_weigh_and_contact_uses_the_file(folder):
    output = folder / "payload.json"
    rest, move = folder / "rest.parquet", folder / "move.parquet"
    words = ("--robot", "ur10", "-o", output, "--json")
    done = run("weigh-wrist", "both", rest, move, *words)
    assert done.exit_code == 0, done.output
    data = json.loads(done.output)
    assert data["mass"] == pytest.approx(6.0, abs=0.01)
    np.testing.assert_allclose(data["com"], LOAD.com, atol=1e-3)
    np.testing.assert_allclose(data["vector"], LOAD.vector, atol=6 * max(data["std"]))
    np.testing.assert_allclose(data["drift"], DRIFT, atol=0.1)
    assert data["static"]["postures"] == 8
    done = run("weigh-wrist", "in-motion", move, "--robot", "ur10", "--method", "rrtls")
    assert done.exit_code == 0, done.output
    for words in ("mass", "centre of mass x", "Ixx", "zero drift fz", "tilt of the base U"):
        assert words in done.output
    table = folder / "contact.parquet"
    done = run("contact", output, folder / "move.parquet", "--robot", "ur10", "-o", table, "--json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.output)
    assert data["force_mean"] < 0.5
    assert table.exists()
    assert (folder / "contact.png").exists()
    found = sy.contact(output, folder / "move.parquet", robot="ur10")
    assert found.force.mean() == data["force_mean"]
    assert found.verdict.to_dict() == data["verdict"]
    done = run("contact", output, folder / "move.parquet", "--robot", "ur10", "--frame", "base")
    assert "force  mean" in done.output


def test_a_table_of_postures_needs_no_robot(folder):
    output = folder / "rest.json"
    done = run(
        "weigh-wrist",
        "at-rest",
        folder / "table.csv",
        "--sensor",
        folder / "sensor.toml",
        "-o",
        output,
    )
    assert done.exit_code == 0, done.output
    assert "10 postures" in done.output
    assert "say nothing about the inertia" in done.output
    assert json.loads(output.read_text())["full_covariance"][5][5] == "inf"
    assert done.output.count("say nothing about the inertia") == 1


def test_an_unknown_yaw_is_found_from_postures(folder):
    about = folder / "turned.toml"
    about.write_text('yaw = "unknown"\n' + SENSOR)
    done = run("weigh-wrist", "at-rest", folder / "table.csv", "--sensor", about)
    assert "turned about the flange axis by" in done.output


def test_bad_input_is_refused_in_words(folder):
    cases = {
        "no method 'best'; there are ls, wls": (
            "weigh-wrist",
            "in-motion",
            "x",
            "--method",
            "best",
        ),
        "does not say which columns are the wrench": (
            "weigh-wrist",
            "at-rest",
            folder / "table.csv",
        ),
        "no such file": ("contact", folder / "none.json", folder / "move.parquet"),
    }
    for message, words in cases.items():
        done = run(*words)
        assert isinstance(done.exception, SteelyardError), message
        assert message in str(done.exception)
    other = folder / "other.toml"
    other.write_text('convention = "sensor_on_load"\n' + SENSOR)
    done = run("weigh-wrist", "at-rest", folder / "table.csv", "--sensor", other)
    assert "kg: the sign of the wrench is not as stated" in str(done.exception)


def test_tables_with_a_doubled_column_or_texts_are_refused(folder):
    lines = (folder / "table.csv").read_text().splitlines()
    twice = folder / "twice.csv"
    twice.write_text("\n".join([f"{lines[0]},fz", *(f"{line},0.0" for line in lines[1:])]))
    values = np.loadtxt(folder / "table.csv", delimiter=",", skiprows=1)
    columns = dict(zip(lines[0].split(","), values.T, strict=True))
    np.savez(folder / "texts.npz", **columns | {"fz": columns["fz"].astype(str)})
    for name, words in (
        (twice, "it has two columns 'fz'; rename or remove one"),
        (folder / "texts.npz", "the array 'fz' holds <U32, not numbers; convert it"),
    ):
        done = run("weigh-wrist", "at-rest", name, "--sensor", folder / "sensor.toml")
        assert isinstance(done.exception, UnreadableFile), done.exception
        assert words in str(done.exception)


def test_a_row_with_an_impossible_wrench_is_left_out_when_tracking(folder):
    recording = read(folder / "move.parquet").rows(slice(0, 900))
    wrench = recording.wrench.copy()
    wrench[700] = 1e12
    masses = [
        sy.track_wrist(replace(recording, wrench=data), robot="ur10").payload.mass
        for data in (recording.wrench, wrench)
    ]
    assert masses[1] == pytest.approx(masses[0], rel=1e-3)


def test_doubtful_news_is_exit_code_1(folder):
    flat = folder / "flat.csv"
    lines = (folder / "table.csv").read_text().splitlines()
    flat.write_text("\n".join(lines[:4]) + "\n")
    done = run("weigh-wrist", "at-rest", flat, "--sensor", folder / "sensor.toml")
    assert done.exit_code == 1
    assert "too similar" in done.output


def test_what_is_wrong_with_a_recording_is_a_note_once(folder):
    short = sy.read(folder / "move.parquet").rows(slice(0, 480))
    write(short, folder / "short.parquet")
    words = ("weigh-wrist", "in-motion", "--robot", "ur10", folder / "short.parquet")
    done = run(*words)
    assert (
        done.output.count("in motion: 480 rows in 1.916 s are too short for a good estimate") == 1
    )
    doubts = json.loads(run(*words, "--json").output)["verdict"]["doubts"]
    assert [
        (doubt["kind"], doubt["blocks"]) for doubt in doubts if "too short" in doubt["words"]
    ] == [("recording", False)]


def foreign(folder, name, *, header="t,q,wrench", rows=None, sign=1.0, base=False):
    """The recording at rest as a table that another program wrote."""
    recording, robot = sy.read(folder / "rest.parquet"), load_robot("ur10")
    rows = slice(None) if rows is None else rows
    wrench = sign * recording.wrench[rows]
    if base:
        R = robot.forward_kinematics(recording.q[rows])[:, :3, :3]
        wrench = np.einsum("nij,ncj->nci", R, wrench.reshape(-1, 2, 3)).reshape(-1, 6)
    parts = {"t": recording.t[rows, None], "q": recording.q[rows], "wrench": wrench}
    named = [
        f"{part}_{k}" if part != "t" else "t"
        for part in header.split(",")
        for k in range(parts[part].shape[1])
    ]
    table = np.hstack([parts[part] for part in header.split(",")])
    np.savetxt(folder / name, table, delimiter=",", header=",".join(named), comments="")
    return folder / name


def test_convention_and_frame_of_the_sensor_file_count_for_tables_with_joints(folder):
    about = folder / "base.toml"
    about.write_text('convention = "sensor_on_load"\nframe = "base"\n')
    words = ("weigh-wrist", "at-rest", "--robot", "ur10", "--sensor", about)
    data = json.loads(
        run(*words, foreign(folder, "base.csv", sign=-1.0, base=True), "--json").output
    )
    assert data["mass"] == pytest.approx(6.0, abs=0.02)
    assert data["static"]["postures"] == 8
    done = run(*words, folder / "rest.parquet")
    assert "says that the convention of its wrench is 'load_on_sensor'" in str(done.exception)
    assert "the description of the sensor says 'sensor_on_load': correct one" in str(done.exception)
    done = run("weigh-wrist", "at-rest", "--robot", "ur10", folder / "base.csv")
    assert "state both in the description of the sensor" in str(done.exception)


def test_a_table_without_time_is_one_of_postures(folder):
    at_rest = foreign(folder, "rests.csv", header="q,wrench", rows=slice(75, None, 150))
    about = folder / "plain.toml"
    about.write_text('name = "wrist"\n')
    words = ("--robot", "ur10", "--sensor", about)
    data = json.loads(run("weigh-wrist", "at-rest", at_rest, *words, "--json").output)
    assert (data["static"]["postures"], data["trend"][0]) == (8, None)
    assert data["mass"] == pytest.approx(6.0, abs=0.1)
    refused = run("weigh-wrist", "in-motion", at_rest, *words)
    assert "rests.csv has no time, so its rows are postures" in str(refused.exception)
    about.write_text("postures = true\n")
    timed = foreign(folder, "timed.csv", rows=slice(75, None, 150))
    done = run("weigh-wrist", "at-rest", timed, *words, "--json")
    assert json.loads(done.output)["static"]["postures"] == 8
    about.write_text(SENSOR.replace("postures = true\n", ""))
    done = run("weigh-wrist", "at-rest", folder / "table.csv", "--sensor", about)
    assert "At rest: 10 postures" in done.output
    columns = SENSOR.replace("postures = true\n", "") + 'position = ["fx", "fy", "fz"]\n'
    about.write_text(columns)
    done = run("weigh-wrist", "in-motion", folder / "table.csv", "--sensor", about)
    assert "table.csv has no time, so its rows are postures at rest" in str(done.exception)


def test_a_tilted_base_asks_for_its_mount_once_and_gravity_answers(folder):
    recording, robot = sy.read(folder / "rest.parquet"), load_robot("ur10")
    falls = np.array([0.0, 9.81 * np.sin(np.radians(25)), -9.81 * np.cos(np.radians(25))])
    u = np.einsum("nji,j->ni", robot.forward_kinematics(recording.q)[:, :3, :3], falls)
    wrench = wrench_regressor(np.column_stack([u, np.zeros((len(u), 9))])) @ LOAD.vector + DRIFT
    noise = 0.1 * np.random.default_rng(3).normal(size=wrench.shape)
    tilted = replace(recording, wrench=wrench + noise)
    write(tilted, folder / "tilted.parquet")
    page = folder / "tilted.html"
    words = ("weigh-wrist", "at-rest", "--robot", "ur10", folder / "tilted.parquet")
    done = run(*words, "--report", page)
    assert done.exit_code == 1
    assert done.output.count("the base appears to be tilted by 25 degrees: state --gravity ") == 1
    text = page.read_text()
    assert text.count("The base appears to be tilted by 25 degrees: state ") == 1
    quality = text[text.rindex("Quality of the recordings") : text.rindex("Settings")]
    assert "tilted.parquet" in quality
    gravity = re.search(r"--gravity (\S+)", done.output)[1]
    done = run(*words, "--gravity", gravity)
    assert done.exit_code == 0, done.output


def test_angles_are_within_half_a_turn(folder):
    static = sy.weigh_wrist(static=folder / "rest.parquet", robot="ur10")
    turned = replace(static, inclination=np.array([np.radians(182.0), -3 * np.pi]))
    np.testing.assert_allclose(np.degrees(turned.inclination), [-178.0, 180.0])
