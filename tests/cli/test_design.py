"""`steelyard design` and `steelyard postures` as a user meets them."""

import json
import re

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from steelyard.cli import design, postures
from steelyard.cli.live import arm_and_motion
from steelyard.errors import InvalidSamples, InvalidTrajectory, UnknownName, UnreadableFile
from steelyard.excitation import Design

LIMITS = "v_max = 1.5\na_max = 4.0\nq_min = -2.0\nq_max = 2.0\n"


@pytest.fixture(scope="module")
def app():
    made = typer.Typer()
    made.command("design")(design.command)
    made.command("postures")(postures.command)
    made.command("postures-random")(postures.random_command)
    made.command("postures-around")(postures.around_command)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("design")
    (path / "limits.toml").write_text(LIMITS)
    return path


def run(app, *arguments):
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout


def quick(folder, *more):
    return (
        "design",
        "planar2r",
        "--limits",
        folder / "limits.toml",
        "--period",
        5,
        "--starts",
        1,
        "--time-limit",
        1,
        *more,
    )


def test_a_motion_keeps_the_serial_number_of_its_arm(app, folder):
    motion = folder / "of_42.json"
    run(app, *quick(folder, "-o", motion, "--serial", "42"))
    assert Design.load(motion).serial == "42"
    assert arm_and_motion(motion, None)[0].serial == "42"


@pytest.mark.thorough
def test_design_as_json_writes_file_and_picture(app, folder):
    output, picture = folder / "motion.json", folder / "motion.png"
    data = json.loads(run(app, *quick(folder, "-o", output, "--picture", picture, "--json")))
    assert data["robot"] == "planar2r"
    assert data["objective"] == "condition"
    assert data["value"] == pytest.approx(data["condition_number"])
    assert data["certificate"]["holds"] is True
    assert data["seconds"] > 0
    assert Design.load(output).value == data["value"]
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert not (folder / "motion_axes.png").exists()  # the limits have no workspace


def test_design_in_words_tells_the_certificate_and_the_payload(app, folder):
    text = run(app, *quick(folder, "--objective", "payload=0.5,0.2"))
    assert "Certificate (1000 Hz)" in text
    assert re.search(r"^velocity +joint_\d +\d", text, re.MULTILINE), text
    assert "Predicted standard deviations" in text
    assert "every limit that was given holds at 1000 Hz" in text
    assert (
        "NOT checked, because no limit was given: torque of the joints, floor, walls and other"
        " things" in text
    )


def test_design_is_written_for_others(app, folder):
    path = folder / "motion.csv"
    moving = ("--joints", "1,joint_2", "--start", "0.3,0.2")
    run(app, *quick(folder, "-o", path, "--rate", 50, *moving, "--json"))
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    np.testing.assert_allclose(table[0, 1:], [0.3, 0.2, 0, 0, 0, 0], atol=1e-6)
    assert table.shape == (5 * 50 + 1, 7)


@pytest.mark.parametrize("name", ["condition", "dopt"])
def test_an_objective_for_the_links_only(app, folder, name):
    data = json.loads(run(app, *quick(folder, "--objective", f"{name}-rigid", "--json")))
    assert data["objective"] == name


def test_design_refusals(app, folder):
    with pytest.raises(
        UnknownName, match="planar2r has no joint 'x'; it has joint_1, joint_2, also"
    ):
        run(app, *quick(folder, "--joints", "joint_1,x"))
    with pytest.raises(InvalidTrajectory, match="trajectory 'xu2024' has 6 joints, planar2r has 2"):
        run(app, *quick(folder, "--envelope", "xu2024"))
    with pytest.raises(UnknownName, match="no objective 'best'"):
        run(app, *quick(folder, "--objective", "best"))
    for option in ("-o", "--picture", "--report"):
        with pytest.raises(
            UnreadableFile, match=r"cannot write .*none/x: there is no folder .*none"
        ):
            run(app, *quick(folder, option, folder / "none" / "x"))
    with pytest.raises(InvalidSamples, match="--gravity is X,Y,Z"):
        run(app, *quick(folder, "--gravity", "0,9.81"))


def test_advice_on_designs_is_followed(app, folder):
    """Options as the messages name them are those of a design that is written."""
    with pytest.raises(InvalidTrajectory, match=r"no limit of velocity .*: state one in .*limits"):
        run(app, "design", "planar2r")
    with pytest.raises(InvalidSamples, match="--start takes numbers as 1,2,3; got '0,x'"):
        run(app, *quick(folder, "--start", "0,x"))
    with pytest.raises(UnknownName, match="--joints: planar2r has no joint '7'"):
        run(app, *quick(folder, "--joints", "7"))
    test_design_is_written_for_others(app, folder)


def test_postures_by_every_method(app, folder):
    output, picture = folder / "postures.csv", folder / "postures.png"
    text = run(app, "postures", "kr60ha", "--count", 5, "-o", output, "--picture", picture)
    assert "condition number of the static equations" in text
    assert np.loadtxt(output, delimiter=",", skiprows=1).shape == (5, 6)
    assert picture.read_bytes()[:4] == b"\x89PNG"
    for words in (("postures", "--K", "none"), ("postures-random",), ("postures-around",)):
        data = json.loads(run(app, words[0], "kr60ha", *words[1:], "--count", 4, "--json"))
        assert len(data["postures"]) == 4
    around = ("postures-around", "kr60ha", "--posture", "0,-1.5,1.5,0,0.1,0", "--count", 4)
    postures = np.array(json.loads(run(app, *around, "--json"))["postures"])
    np.testing.assert_allclose(postures, [[0, -1.5, 1.5, 0, 0.1, 0]] * 4, atol=0.13)
    with pytest.raises(InvalidSamples, match="--K is a number or none; got 'x'"):
        run(app, "postures", "kr60ha", "--K", "x")
    with pytest.raises(InvalidSamples, match="Algorithm 1 as printed needs a number --K"):
        run(app, "postures", "kr60ha", "--K", "none", "--as-printed")
    with pytest.raises(UnreadableFile, match=r"a.txt: the name of this file must end in .csv"):
        run(app, "postures-random", "kr60ha", "--count", 4, "-o", folder / "a.txt")
