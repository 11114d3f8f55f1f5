"""One sound file of each kind, small, in the working directory."""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

sys.path.insert(0, str(Path(__file__).parents[1]))

from fleet_logs import FRICTION, tiny_fleet
from steelyard import _saved, cli
from steelyard.live import Recorder, Row
from steelyard.robot import load_robot
from steelyard.trajectory import FourierTrajectory
from steelyard.trajectory._fourier import DESIGN_VERSION
from wrist_streams import rows as wrist_rows

WRIST_KG, TORQUE_KG = 4.0, 0.5  # the masses in the recordings
STORE, CATALOGUE = "store", "catalogue.csv"


def run(words: list[str]) -> tuple[int, str, str]:
    """A command in this process."""
    said, complained = io.StringIO(), io.StringIO()
    sys.argv = ["steelyard", *words]
    code = 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        try:
            cli.run()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, said.getvalue(), complained.getvalue()


COMMANDS = (
    "simulate planar2r --trajectory motion.json --rate 100 -o empty.npz",
    "simulate planar2r --trajectory motion.json --rate 100 --mass 0.5 --seed 1 -o loaded.npz",
    "check loaded.npz -o loaded.parquet",
    "identify planar2r empty.npz -o model.json --friction linear",
    "weigh model.json loaded.npz -o payload.json",
    "track loaded.npz --model model.json --save-state state.json",
    "export-arm urdf model.json -o arm.urdf --force",
    "weigh-wrist at-rest wrist.csv --sensor sensor.toml -o wrist.json",
    "track-wrist wrist_motion.csv --sensor motion.toml --save-state wrist_state.json",
    "picks loaded.npz --model model.json --parts parts.csv -o shift.json",
    f"fleet build {CATALOGUE} -o {STORE} --workers 1",
    f"fleet identify {STORE} --workers 1",
)
"""What writes the files that commands write."""


def make_sound_files() -> None:
    """Writes all files, of small arms."""
    motion = FourierTrajectory.random(
        np.zeros(2), reach=1.5, speed=2.0, period_s=4.0, harmonics=3, seed=1
    )
    motion.save("motion.json")
    design = {"robot": "planar2r", "trajectory": motion.to_dict(), "condition_number": 9.0}
    _saved.save(design, "design", "design.json", version=DESIGN_VERSION, sealed=True)
    arms = Path(load_robot.__code__.co_filename).parent / "arms"
    shutil.copy(arms / "planar2r.toml", "arm.toml")
    write_postures()
    write_wrist_motion()
    write_parts()
    tiny_fleet(Path(), arms=1, logs=8, arm0=lambda k: {"friction": FRICTION * (1 + (k > 4))})
    for words in COMMANDS:
        code, _, complaint = run(words.split())
        if code > 1:
            raise RuntimeError(f"{words}: {complaint}")
    write_tables()
    shutil.copy("model.json", "spare.json")  # commands may write over it
    Path("limits.toml").write_text(
        'form = "exact"\nv_max = [2.0, 1.5]\nheight = [-3.0, 3.0]\n[[cone]]\naxis = "x"\n'
        "direction = [1, 0, 0]\nhalf_angle_deg = 170\n"
        "[surroundings]\nclearance = 0.01\nradius = 0.01\n"
    )


def write_tables() -> None:
    """The loaded recording as a text table, and as a live recorder writes it."""
    with np.load("loaded.npz") as archive:
        table = np.column_stack([archive["t"], archive["q"], archive["tau"]])
    names = "t,q_0,q_1,tau_0,tau_1"
    np.savetxt("loaded.csv", table, delimiter=",", header=names, comments="", fmt="%.6f")
    with Recorder("live.arrows", tuple(names.split(","))) as recorder:
        for values in table.tolist():
            recorder.add(Row(values[0], tuple(values)))


def write_postures() -> None:
    """Postures of a wrist sensor in a table, and what the sensor is."""
    rng = np.random.default_rng(0)
    turns = Rotation.random(24, rng=rng)
    force = turns.inv().apply([0, 0, -9.81 * 1.5])
    moment = np.cross([0.01, 0.02, 0.06], force)
    rows = np.column_stack([turns.as_quat(), force, moment + rng.normal(size=moment.shape) * 1e-3])
    names = "x,y,z,w,fx,fy,fz,tx,ty,tz"
    np.savetxt("wrist.csv", rows, delimiter=",", header=names, comments="", fmt="%.6f")
    Path("sensor.toml").write_text(
        'name = "ft"\nconvention = "load_on_sensor"\npostures = true\ngravity_base = [0, 0,'
        " -9.81]\n"
        "noise = [0.1, 0.1, 0.1, 0.01, 0.01, 0.01]\n[columns]\n"
        'quaternion = ["x", "y", "z", "w"]\nwrench = ["fx", "fy", "fz", "tx", "ty", "tz"]\n'
    )


def write_parts() -> None:
    """A table of parts, and a recording of motor currents for a controller that repeats it."""
    Path("parts.csv").write_text(
        "name,mass,tolerance,cx,cy,cz,com_tolerance,size\n"
        "lid,0.5,0.05,0,0.01,0.02,0.05,0.1\nhousing,1.2,,,,,,\n"
    )
    t = np.arange(100) / 100
    q = 0.1 * np.sin(np.outer(t, np.arange(1.0, 7.0)))
    np.savez("currents.npz", t=t, q=q, current=np.cos(q))


def write_wrist_motion() -> None:
    """A motion of a wrist sensor as a text table and as arrays, each with its description."""
    made = wrist_rows(kind="pose", seconds=4.0)
    rows = np.array([[t, *pose, *wrench] for t, pose, wrench in made])
    names = "t,px,py,pz,x,y,z,w,fx,fy,fz,tx,ty,tz"
    np.savetxt("wrist_motion.csv", rows, delimiter=",", header=names, comments="", fmt="%.6f")
    np.savez("wrist_motion.npz", t=rows[:, 0], pose=rows[:, 1:8], wrench=rows[:, 8:])
    head = 'name = "ft"\ngravity_base = [0, 0, -9.81]\n[columns]\nt = "t"\n'
    Path("motion.toml").write_text(
        head + 'position = ["px", "py", "pz"]\nquaternion = ["x", "y", "z", "w"]\n'
        'wrench = ["fx", "fy", "fz", "tx", "ty", "tz"]\n'
    )
    Path("arrays.toml").write_text(
        head + 'position = "pose[0:3]"\nquaternion = "pose[3:7]"\nwrench = "wrench"\n'
    )
