"""The top-level API: typed for a checker, imported on first use, at most 28 names."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard

PROGRAM = """
import numpy as np

import steelyard as sy

robot: sy.RobotModel = sy.load_robot("ur10")
model: sy.DynamicModel = sy.identify(robot, "empty.parquet")
payload: sy.Payload = sy.weigh(model, ["loaded.parquet"], fixed={"mass": 2.5})
if not payload.verdict.ok:
    for doubt in payload.verdict.doubts:
        words: str = doubt.words
reveal_type(sy.weigh)
reveal_type(payload.std)
"""
WRONG = """
import steelyard as sy

sy.weigh("model.json", "loaded.parquet", metod="static")
sy.wiegh("model.json")
number: str = sy.weigh("model.json", "loaded.parquet").mass
"""


def test_a_type_checker_sees_real_types(tmp_path):
    for name, text in (("good", PROGRAM), ("bad", WRONG)):
        (tmp_path / f"{name}.py").write_text(text)
    files = [str(tmp_path / "good.py"), str(tmp_path / "bad.py")]
    words = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(tmp_path / "cache"),
        *files,
    ]
    root = Path(steelyard.__file__).parents[2]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=root)
    good, bad = (
        "".join(line for line in done.stdout.splitlines(keepends=True) if f"{name}.py" in line)
        for name in ("good", "bad")
    )
    assert "error" not in good
    assert re.search(
        r'Revealed type is "def \(model: .*DynamicModel.*-> steelyard\.payload\._payload\.Payload"',
        good,
    )
    assert "ndarray" in good
    assert 'Unexpected keyword argument "metod" for "weigh"' in bad
    assert 'has no attribute "wiegh"' in bad
    assert 'expression has type "float", variable has type "str"' in bad


PACKAGES = ("steelyard", "steelyard.control", "steelyard.torque", "steelyard.workflow")
MOST_NAMES = 28


@pytest.mark.parametrize("name", PACKAGES)
def test_names_that_are_imported_on_first_use_are_the_names_that_a_type_checker_sees(name):
    package = importlib.import_module(name)
    text = Path(package.__file__).read_text()
    for public in package.__all__:
        assert getattr(package, public).__name__ == public
    assert sorted(re.findall(r"^    from \S+ import \w+ as (\w+)$", text, re.MULTILINE)) == sorted(
        package.__all__
    )
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'wiegh'"):
        _ = package.wiegh


def test_the_top_level_has_few_names():
    assert len(steelyard.__all__) <= MOST_NAMES
    assert dir(steelyard) == sorted([*steelyard.__all__, "__version__"])


def test_importing_it_loads_nothing_heavy():
    heavy = ("numpy", "scipy", "pinocchio", "typer")
    words = f"import sys, steelyard; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_way_to_weigh_loads_no_more_than_it_needs():
    heavy = (
        *(
            "scipy.signal",
            "scipy.stats",
            "scipy.optimize",
            "scipy.interpolate",
            "scipy.spatial",
            "scipy.fft",
        ),
        *("matplotlib", "plotly", "sympy", "pyarrow", "mujoco", "jax"),
        *(
            "steelyard.wrist",
            "steelyard.control",
            "steelyard.report",
            "steelyard.drawing",
            "steelyard.export",
        ),
        *("steelyard.torque.tracking", "steelyard.identification.gains"),
    )
    words = (
        "import sys, steelyard.workflow._payload, steelyard.cli.weigh;"
        f" print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
