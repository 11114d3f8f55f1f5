"""The top-level API: typed for a checker, imported on first use, at most 28 names."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard

PACKAGES = (
    "steelyard",
    "steelyard.control",
    "steelyard.live",
    "steelyard.torque",
    "steelyard.workflow",
)
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
