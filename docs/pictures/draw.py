"""Draws the pictures of the documents: python docs/pictures/draw.py.

`report.png` is a screenshot of the page that `steelyard demo` writes; the others come from here.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from PIL import Image

import steelyard as sy

HERE = Path(__file__).parent
BLUE = "#1f63a8"
GREY = "#5b6672"
WIDTH = 800  # of a picture [px]
matplotlib.rcParams["svg.hashsalt"] = "steelyard"
matplotlib.rcParams["svg.fonttype"] = "none"


def box(ax: Axes, x: float, y: float, title: str, detail: str, *, value: bool = True) -> None:
    """Draws a box with a title and a line of detail, centred at x, y."""
    if value:
        colour = BLUE
    else:
        colour = GREY
    style = "round,pad=0.02,rounding_size=0.08"
    ax.add_patch(FancyBboxPatch((x - 0.85, y - 0.32), 1.7, 0.64, style, fc="white", ec=colour))
    ax.text(x, y + 0.1, title, ha="center", va="center", weight="bold", color=colour, size=10)
    ax.text(x, y - 0.14, detail, ha="center", va="center", color=GREY, size=7.5)


def arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], words: str = "") -> None:
    """Draws an arrow, with words above its middle."""
    look = {"arrowstyle": "-|>", "color": GREY, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops=look)
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    ax.text(middle[0], middle[1] + 0.08, words, ha="center", color=BLUE, size=8, family="monospace")


def pipeline(path: Path) -> None:
    """Draws how recordings become a payload."""
    figure = Figure(figsize=(10, 3.2))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_xlim(0, 12.1)
    ax.set_ylim(0, 4)
    ax.set_axis_off()
    box(ax, 1.1, 3.2, "robot", "URDF or DH table", value=False)
    box(ax, 1.1, 2.0, "empty arm", "recording or stream", value=False)
    box(ax, 1.1, 0.8, "loaded arm", "recording or stream", value=False)
    box(ax, 4.2, 2.0, "Samples", "uniform, differentiated")
    box(ax, 4.2, 0.8, "Samples", "prepared alike")
    box(ax, 7.3, 2.0, "DynamicModel", "links, friction, gains")
    box(ax, 7.3, 0.8, "Payload", "ten numbers, covariance")
    box(ax, 11.0, 2.6, "control", "feed-forward, contacts", value=False)
    box(ax, 11.0, 1.7, "report", "HTML page, pictures", value=False)
    box(ax, 11.0, 0.8, "export", "controllers, simulators", value=False)
    arrow(ax, (1.97, 2.0), (3.33, 2.0), "prepare")
    arrow(ax, (1.97, 0.8), (3.33, 0.8), "prepare")
    arrow(ax, (5.07, 2.0), (6.43, 2.0), "identify")
    arrow(ax, (5.07, 0.8), (6.43, 0.8), "weigh")
    arrow(ax, (1.97, 3.2), (6.9, 2.36))
    arrow(ax, (7.3, 1.66), (7.3, 1.14))
    for height in (2.6, 1.7, 0.8):
        arrow(ax, (8.17, 0.8), (10.13, height))
    ax.text(7.3, 0.3, "verdict: may it be used?", ha="center", color=GREY, size=7.5)
    figure.savefig(path, metadata={"Date": None})


def answers(folder: Path) -> None:
    """Draws friction and payload of the example that comes with the package."""
    run = [sys.executable, "-m", "steelyard"]
    subprocess.run([*run, "example", "ur10"], cwd=folder, check=True)
    robot = sy.load_robot("ur10")
    model = sy.identify(robot, folder / "empty.npz", friction="smooth-power")
    model.save(folder / "model.json")
    model.plot().save(HERE / "friction.png")
    sy.weigh(model, folder / "loaded.npz").plot().save(HERE / "payload.png")
    design = ["design", "ur10", "--envelope", "xu2024", "--start", "home"]
    subprocess.run([*run, *design, "--picture", HERE / "motion.png"], cwd=folder, check=True)
    track = ["track", "loaded.npz", "--model", "model.json"]
    subprocess.run([*run, *track, "--picture", HERE / "tracking.png"], cwd=folder, check=True)


def shrink(path: Path) -> None:
    """Reduces a picture to the width of a page and to few colours."""
    picture = Image.open(path).convert("RGB")
    height = picture.height * WIDTH // picture.width
    picture.resize((WIDTH, height), Image.Resampling.LANCZOS).quantize(64).save(path, optimize=True)


if __name__ == "__main__":
    pipeline(HERE / "pipeline.svg")
    with TemporaryDirectory() as temporary:
        answers(Path(temporary))
    for name in ("friction", "payload", "motion", "tracking"):
        shrink(HERE / f"{name}.png")
