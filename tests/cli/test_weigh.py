"""`steelyard weigh`, from a model file to a payload file."""

import json
import re

import pytest

import steelyard as sy
from conftest import steelyard
from steelyard.errors import UnknownName
from steelyard.payload import Payload


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of a UR10 from currents, and a run with 2.5 kg."""
    path = tmp_path_factory.mktemp("weigh")
    for arguments in (
        ("simulate", "ur10", "--trajectory", "xu2024", "-o", "empty.parquet"),
        (
            "simulate",
            "ur10",
            "--trajectory",
            "xu2024",
            "--mass",
            "2.5",
            "--seed",
            "1",
            "-o",
            "loaded.parquet",
        ),
        (
            "identify",
            "ur10",
            "empty.parquet",
            "-o",
            "model.json",
            "--friction",
            "power",
            "--gains",
            "robot",
        ),
    ):
        done = steelyard(*arguments, cwd=path)
        assert done.returncode == 0, done.stderr
    return path


def test_payload_as_words_file_and_picture(folder):
    done = steelyard(
        *("weigh", "model.json", "loaded.parquet", "-o", "payload.json", "--picture", "p.png"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    payload = Payload.load(folder / "payload.json")
    (row,) = re.findall(r"^mass +(\S+) +(\S+) +kg$", done.stdout, re.MULTILINE)
    assert float(row[0]) == pytest.approx(payload.mass, abs=0.005)
    assert float(row[1]) == pytest.approx(1.96 * payload.std[0], abs=0.005)
    assert payload.body.mass == pytest.approx(2.5, abs=3 * payload.std[0])
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")


def test_json_and_known_numbers(folder):
    done = steelyard(
        "weigh", "model.json", "loaded.parquet", "--fix", "mass=2.5", "--json", cwd=folder
    )
    facts = json.loads(done.stdout)
    assert facts["mass"] == pytest.approx(2.5, abs=1e-4)
    assert facts["frame"] == "flange"
    assert len(facts["covariance"]) == 10


def test_bad_input_is_one_line(folder):
    done = steelyard("weigh", "loaded.parquet", "loaded.parquet", cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is not a JSON file" in done.stderr
    done = steelyard("weigh", "model.json", "loaded.parquet", "--fix", "mass", cwd=folder)
    assert "--fix is NAME=NUMBER" in done.stderr


def test_an_answer_not_to_be_trusted_is_exit_code_1(folder):
    done = steelyard(
        "weigh", "model.json", "loaded.parquet", "--fix", "m=2.5", "--json", cwd=folder
    )
    assert done.returncode == 0
    swapped = steelyard(
        "identify", "ur10", "loaded.parquet", "-o", "heavy.json", "--friction", "power", cwd=folder
    )
    assert swapped.returncode == 0
    done = steelyard("weigh", "heavy.json", "empty.parquet", cwd=folder)
    assert done.returncode == 1
    assert "Do not use this" in done.stdout
    assert "the mass is -2." in done.stdout


def test_all_methods_beside_each_other(folder):
    done = steelyard(
        "weigh",
        "model.json",
        "loaded.parquet",
        "--method",
        "all",
        "--empty",
        "empty.parquet",
        "--json",
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    methods = json.loads(done.stdout)["methods"]
    for name in ("direct", "difference", "weighted-difference", "torque-change", "pooled"):
        found = methods[name]
        assert found["method"] == name
        assert abs(found["mass"] - 2.5) < 4 * found["mass_std"]
    assert "no target torque of the controller" in methods["manufacturer"]


def test_a_report_is_html(folder):
    words = ("weigh", "model.json", "loaded.parquet", "--report", "page.pdf")
    done = steelyard(*words, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.endswith("page.pdf: the name of this file must end in .html or .htm\n")
    assert not (folder / "page.pdf").exists()


def test_empty_runs_are_for_methods_that_use_them(folder):
    words = ("weigh", "model.json", "loaded.parquet", "--empty", "empty.parquet")
    done = steelyard(*words, "--method", "direct", cwd=folder)
    assert done.returncode == 2
    assert (
        "the method 'direct' needs no empty runs: leave --empty out, or choose --method auto"
        in (done.stderr)
    )
    files = [folder / name for name in ("model.json", "loaded.parquet", "empty.parquet")]
    with pytest.raises(UnknownName, match="leave `empty` out, or choose `method` auto"):
        sy.weigh(files[0], files[1], method="direct", empty=files[2])


def test_tool_and_part_together(folder):
    alone = steelyard(
        "weigh", "model.json", "loaded.parquet", "-o", "part.json", "--json", cwd=folder
    )
    both = steelyard(
        "weigh", "model.json", "loaded.parquet", "--tool", "part.json", "--json", cwd=folder
    )
    assert json.loads(both.stdout)["mass"] == pytest.approx(2 * json.loads(alone.stdout)["mass"])
    assert "tool and part together" in json.loads(both.stdout)["verdict"]["summary"]


def test_report_says_the_mass(folder):
    words = ("weigh", "model.json", "loaded.parquet", "--report", "weighed.html")
    done = steelyard(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Report: weighed.html" in done.stdout
    mass = json.loads(steelyard(*words, "--json", cwd=folder).stdout)["mass"]
    page = (folder / "weighed.html").read_text(encoding="utf-8")
    assert re.search(rf"{mass:.2f}\d* (±|\+-) 0\.\d+ kg", page)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--method", "scale"), "there is no method 'scale'"),
        (("--method", "pooled"), "the pooled method needs the empty runs too"),
        (("--method", "manufacturer"), "no target torque of the controller"),
    ],
)
def test_methods_refuse_what_they_cannot_use(folder, arguments, words):
    done = steelyard("weigh", "model.json", "loaded.parquet", *arguments, cwd=folder)
    assert done.returncode == 2
    assert words in done.stderr


def test_files_go_into_folders_that_exist_and_that_is_asked_first(folder):
    for option in ("-o", "--picture", "--report"):
        done = steelyard(
            "weigh", "model.json", "loaded.parquet", option, "nowhere/file.png", cwd=folder
        )
        assert done.returncode == 2
        assert "there is no folder nowhere" in done.stderr
        assert not (folder / "nowhere").exists()
