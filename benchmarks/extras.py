"""The wheel in empty environments: each extra alone does what it is there for.

Every extra gets an environment of its own with nothing but the wheel and what the extra asks for,
pinned by constraints.txt (a copy, by hard links, of one with the wheel alone, which is quicker to
make). It takes minutes and a package index, so it is run by hand, before a release.
Usage: python benchmarks/extras.py [EXTRA ...]; 'core' is the wheel without an extra; any
interpreter will do
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLE = """
from pathlib import Path
import steelyard as sy
files = Path(sy.__file__).parent / "cli" / "assets"
robot = sy.load_robot("ur10")
model = sy.identify(robot, str(files / "ur10_empty.npz"), friction="power")
payload = sy.weigh(model, str(files / "ur10_loaded.npz"))
assert abs(payload.mass - 2.5) < payload.quantities[0].half_width, payload
"""
DOES = {
    "core": EXAMPLE,
    "robot": "import steelyard as sy; from steelyard.robot._symbolic import SymbolicBasis",
    "excitation": """
import steelyard as sy
from steelyard.excitation import DesignSettings
robot = sy.load_robot("ur10")
quick = DesignSettings(starts=1, time_limit_s=5.0)
assert sy.design(robot, settings=quick).certificate.holds
""",
    "identification": EXAMPLE + "assert model.feasible_arm().status",
    "simulation": """
import steelyard as sy
run = sy.simulate(sy.load_robot("ur10"), sy.FourierTrajectory.load("xu2024"), seed=0)
assert len(run.recording) > 1000
""",
    "io": EXAMPLE
    + """
recording = sy.read(str(files / "ur10_empty.npz"))
sy.write(recording, "empty.parquet")
assert len(sy.read("empty.parquet")) == len(recording)
""",
    "report": EXAMPLE
    + """
payload.plot().save("payload.png")
from steelyard.workflow._payload import Weighing
Weighing(model, str(files / "ur10_loaded.npz")).page().write(Path("page.html"))
""",
    "cli": """
import subprocess, sys
commands = (
    "example ur10",
    "identify ur10 empty.npz -o m.json --friction power",
    "weigh m.json loaded.npz",
)
for words in commands:
    program = [sys.executable, "-m", "steelyard", *words.split()]
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
""",
    "live": "import viser, steelyard.live._page",
    "ros2": "import websockets, rosbags, steelyard.live._ros2",
    "franka": "import pylibfranka, steelyard.live._franka",
    "fleet": EXAMPLE
    + """
from steelyard.fleet import Fleet
rows = (f"a,ur10,{files}/ur10_{name}.npz,{load}" for name, load in (("empty", 0), ("loaded", 2)))
Path("catalogue.csv").write_text("\\n".join(["robot,model,file,load", *rows]))
fleet = Fleet.build("catalogue.csv", "store")
assert fleet.identify()
assert len(fleet.weigh()) == 2
""",
    "docs": f"""
import subprocess, sys
sphinx = [sys.executable, "-m", "sphinx", "-q", "-b", "html", {str(ROOT / "docs")!r}, "site"]
subprocess.run(sphinx, check=True)
""",
    "dev": f"""
import subprocess, sys
for words in ("pytest tests/laws/test_inertia_laws.py", "ruff check src", "mypy --version"):
    subprocess.run([sys.executable, "-m", *words.split()], check=True, cwd={str(ROOT)!r})
""",
    "all": EXAMPLE + "import jax, mujoco, pyarrow, viser, typer, sympy, clarabel, plotly, dask",
}


def main() -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        wheel = _wheel(Path(folder))
        print(wheel.name)
        base = Path(folder) / "base"
        subprocess.run([sys.executable, "-m", "venv", base], check=True)
        _pip(base, str(wheel)).check_returncode()
        for extra in sys.argv[1:] or DOES:
            began = time.perf_counter()
            words = _tried(extra, wheel, Path(folder) / extra)
            failed += words != "works"
            print(f"{extra:16} {words:8} {time.perf_counter() - began:6.0f} s", flush=True)
    if failed:
        return 1
    return 0


def _wheel(folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder)]
    subprocess.run([*pip, str(ROOT)], check=True)
    (wheel,) = folder.glob("steelyard-*.whl")
    return wheel


def _tried(extra: str, wheel: Path, folder: Path) -> str:
    """What an extra does in an environment of its own: 'works', or how it fails."""
    subprocess.run(["cp", "-al", folder.parent / "base", folder], check=True)
    done = _pip(folder, str(wheel) if extra == "core" else f"{wheel}[{extra}]")
    if done.returncode == 0:
        alone = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        python = [folder / "bin" / "python", "-c", DOES[extra]]
        done = subprocess.run(python, cwd=folder, env=alone, capture_output=True, text=True)
    if done.returncode == 0:
        return "works"
    return f"FAILS: {done.stderr.strip().splitlines()[-1]}"


def _pip(folder: Path, wanted: str) -> subprocess.CompletedProcess[str]:
    """Installs into an environment that shares nothing with this one but the package index."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    pip = [
        folder / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    words = [*pip, "-c", ROOT / "constraints.txt", wanted]
    return subprocess.run(words, capture_output=True, text=True, env=known)


if __name__ == "__main__":
    sys.exit(main())
