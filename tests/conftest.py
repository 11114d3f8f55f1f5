"""Shared by all tests: small robots as URDF, one seeded generator, recordings of real arms."""

import ast
import contextlib
import gc
import io
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from browser import Browser
from steelyard.trajectory import FourierTrajectory

HERE = Path(__file__).parent
SLOW_FOLDERS = {"contracts", "excitation", "fleet", "fuzz", "live", "real", "recovery", "twin"}
SLOW_IMPORTS = (
    *("subprocess", "socket", "runpy", "conftest.steelyard", "steelyard.cli"),  # processes
    *("steelyard.simulation", "conftest.lively_motion", "tracking_runs", "wrist_streams"),  # arms
    *("steelyard.identification.identify", "steelyard.excitation"),  # fits and designs
    *("steelyard.robot._symbolic", "steelyard_papers"),
)
"""A test is slow if its module, or a helper that it imports, imports one of these."""
WITHOUT_SLOW = "not slow and not thorough"
LONG_MODULES = (
    *("live/test_stopping.py", "torque/test_methods.py"),
    *("report/test_browser.py", "architecture/test_examples.py"),
    *("live/test_commands.py", "laws/test_excitation_laws.py"),
    *("live/test_page.py", "excitation/test_design.py"),
    *("architecture/test_tutorial.py", "identification/test_gains.py"),
    *("cli/test_live_commands.py", "real/test_identification.py"),
    *("fleet/test_cluster.py", "tests/test_reproduce_xu2024.py"),
    *("live/test_acceleration.py", "identification/test_lag.py"),
    *("live/test_franka.py", "recovery/test_torque.py"),
    *("twin/test_real_clients.py", "tests/test_reproduce_gaz2017.py"),
    *("twin/test_motion.py", "wrist/test_checks.py"),
    *("live/test_wrist.py", "robot/test_symbolic.py"),
    *("fuzz/test_fuzz.py", "contracts/test_python_equals_command_line.py"),
    *("payload/test_payload.py", "tests/test_reproduce.py"),
)
"""The modules that take longest begin first, so that no process ends much later than the others.
On the left those that wait for processes, sockets and clocks, on the right those that compute."""
GROUPS = {
    "sources": (
        "architecture/test_functions",
        "architecture/test_layers",
        "architecture/test_rules",
        "architecture/test_style",
        "architecture/test_doubts",
    ),
    "designs": (
        "excitation/",
        "laws/test_excitation_laws",
        "torque/test_shortest",
        "cli/test_design",
    ),
    "picks": ("picking/", "live/test_live_picks", "fleet/test_fleet_picks"),
    "pages": ("report/test_browser", "live/test_page", "fleet/test_page"),
    "symbols": ("robot/test_symbolic", "tests/test_xu2024_base", "tests/test_gaz2017_base"),
}
"""Modules that run in one process because they share what takes long to make: syntax trees,
compiled designs, models, a browser. Every other module is a group of its own."""


def pytest_ignore_collect(collection_path, config):
    """Saves the imports of slow modules where they are not wanted."""
    is_module = collection_path.suffix == ".py" and collection_path.name.startswith("test_")
    if is_module and config.option.markexpr == WITHOUT_SLOW and in_slow_module(collection_path):
        return True
    return None


@cache
def in_slow_module(path: Path) -> bool:
    """Whether the tests of a module are slow; those that only read sources are not."""
    return "pytest.mark.style" not in path.read_text() and (
        path.parent.name in SLOW_FOLDERS or is_slow(path)
    )


def pytest_collection_finish():
    """Saves a tenth of the processor time: what is loaded by now is not searched for garbage."""
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist there is no such hook
def pytest_xdist_make_scheduler(config, log):
    """Gives each group of modules to one process.

    The groups of pytest-xdist itself (`--dist loadgroup`) have no effect with pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(Path(nodeid.split("::", 1)[0]))

    return GroupScheduling(config, log)


def pytest_collection_modifyitems(config, items):
    """Begins with the long modules; marks the tests that `make check` leaves out."""
    order = {name: k for k, name in enumerate(LONG_MODULES)}
    items.sort(key=lambda item: order.get("/".join(item.path.parts[-2:]), len(order)))
    if "slow" in config.option.markexpr:
        for item in items:
            if in_slow_module(item.path):
                item.add_marker(pytest.mark.slow)


@cache
def group_of(path: Path) -> str:
    """The group of tests that a module belongs to; the tests of a group run in one process."""
    name = "/".join(path.parts[-2:])
    for group, members in GROUPS.items():
        if name.startswith(members):
            return group
    return name


@cache
def is_slow(path: Path) -> bool:
    """Whether a module of tests simulates, starts processes or computes for long."""
    for name in imported_names(path):
        if any(f"{name}.".startswith(f"{slow}.") for slow in SLOW_IMPORTS):
            return True
        helper = HERE / f"{name}.py"
        if helper.exists() and name != "conftest" and is_slow(helper):
            return True
    return False


def imported_names(path: Path) -> Iterator[str]:
    """The modules, and the names of modules, that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.fixture(scope="session")
def browser(tmp_path_factory) -> Iterator[Browser]:
    """One real browser for all pages of a process."""
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


class Done(NamedTuple):
    """How a command ended, and what it said."""

    returncode: int
    stdout: str
    stderr: str


def steelyard(*arguments, cwd=".") -> Done:
    """Runs a command of the command line in this process, which saves its start."""
    from steelyard.cli import run

    said, complained, code = io.StringIO(), io.StringIO(), 0
    here, words = os.getcwd(), sys.argv
    os.chdir(cwd)
    sys.argv = ["steelyard", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
            run()
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = words
        os.chdir(here)
    refusals = [x for x in complained.getvalue().splitlines() if x.startswith("error: ")]
    assert not any("`" in line for line in refusals), f"an argument of Python in {refusals}"
    return Done(code, said.getvalue(), complained.getvalue())


def lively_motion(robot, trajectory_seed, duration_s=10.0):
    """q, v, a of a random motion of all joints within the arm's limits, 100 Hz, each (N, n)."""
    low, high = np.clip(robot.limits.q_min, -2.5, 2.5), np.clip(robot.limits.q_max, -2.5, 2.5)
    series = FourierTrajectory.random(
        (low + high) / 2,
        reach=(high - low) / 2,
        speed=np.minimum(robot.limits.v_max, 2.0),
        period_s=10.0,
        harmonics=5,
        seed=trajectory_seed,
    )
    return series.at(np.arange(0, duration_s, 0.01))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240517)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Recordings of real arms, beside the repository; tests skip where they are absent."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no recordings in {folder}")
    return folder


LIMIT = '<limit lower="-2.5" upper="2.5" velocity="3" effort="150"/>'


def link(name: str, mass: float = 2.0) -> str:
    """A link with a generic, physical inertia that grows with its mass."""
    entries = {"ixx": 0.03, "ixy": 0.004, "ixz": -0.003, "iyy": 0.05, "iyz": 0.002, "izz": 0.04}
    inertia = " ".join(f'{key}="{mass * value:.6f}"' for key, value in entries.items())
    return f"""<link name="{name}"><inertial>
        <origin xyz="0.11 -0.07 0.05" rpy="0.3 -0.2 0.5"/><mass value="{mass}"/><inertia {inertia}/>
    </inertial></link>"""


def joint(
    name: str, kind: str, parent: str, child: str, axis: str = "0 0 1", inside: str = LIMIT
) -> str:
    return f"""<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
        <origin xyz="0.2 0.1 0.3" rpy="0.4 -0.6 0.8"/><axis xyz="{axis}"/>{inside}</joint>"""


def robot(*parts: str, name: str = "tiny") -> str:
    return f'<?xml version="1.0"?><robot name="{name}">{"".join(parts)}</robot>'


def _three(kinds: tuple[str, str, str], axes: tuple[str, str, str]) -> str:
    masses, names = (
        {"base": 1.0, "upper": 4.0, "lower": 3.0, "hand": 1.5},
        ("shoulder", "elbow", "wrist"),
    )
    links = list(masses)
    joints = (joint(names[i], kinds[i], links[i], links[i + 1], axes[i]) for i in range(3))
    return robot(*(link(name, mass) for name, mass in masses.items()), *joints)


def _with_gripper(*, mimic: bool) -> str:
    follow = '<mimic joint="finger_left" multiplier="1"/>' if mimic else ""
    return robot(
        *(link(name) for name in ("base", "arm", "hand", "left", "right", "tool0")),
        joint("shoulder", "revolute", "base", "arm"),
        joint("wrist", "revolute", "arm", "hand", "0 1 0"),
        joint("finger_left", "prismatic", "hand", "left", "0 1 0"),
        joint("finger_right", "prismatic", "hand", "right", "0 -1 0", LIMIT + follow),
        joint("tool", "fixed", "hand", "tool0"),
    )


TINY = {
    "revolute": _three(("revolute",) * 3, ("0 0 1", "0 1 0", "1 0 0")),
    "prismatic": _three(("prismatic", "revolute", "prismatic"), ("0 0 1", "1 2 -2", "0 -1 0")),
    "continuous": _three(("continuous", "revolute", "continuous"), ("0 0 1", "0 0 -1", "2 1 2")),
    "fixed": _three(("revolute", "fixed", "revolute"), ("0 0 1", "0 0 1", "0 3 4")),
    "gripper": _with_gripper(mimic=False),
    "mimic": _with_gripper(mimic=True),
}


@pytest.fixture(scope="session")
def tiny() -> dict[str, str]:
    """URDF texts of small robots, by what is special about them."""
    return TINY


@pytest.fixture
def two_links():
    """A function that makes URDFs: one joint of any kind between two links, with extra elements."""

    def make(
        kind: str = "revolute", *, axis: str = "0 0 1", inside: str = LIMIT, beside: str = ""
    ) -> str:
        return robot(
            link("base"), link("arm"), joint("shoulder", kind, "base", "arm", axis, inside), beside
        )

    return make
