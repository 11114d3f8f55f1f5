"""Every option of every command is used at least once with a value that it takes.

The rows are commands that a user could type; they share one folder, in this order. None may end
with invalid input (2) or an internal error (70). Commands that talk to an arm have tests of their
own in `tests/live` and `tests/twin`.
"""

import shlex

import numpy as np
import pytest
from typer.main import get_command

import steelyard as sy
from conftest import TINY, steelyard
from fleet_logs import tiny_fleet
from picking_shifts import CARRY, faulty, model
from steelyard.cli import _app
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.verdict import Verdict
from wrist_recordings import write_wrist_recordings

pytestmark = pytest.mark.thorough

LEFT_OUT = {
    *("start", "reproduce", "demo-live", "record", "weigh-live", "move", "stop", "set-payload"),
    *("serve", "serve-recording", "picks-live"),
}
"""Commands that need a terminal, the papers or a controller, or are one; tested elsewhere."""
ELSEWHERE = {"--as-mounted"}  # tests/cli/test_export.py
STREAMS = {"--page", "--publish", "--seconds", "--record"}
BAGS = {"--trust"}
"""Options of streams and of bags: `tests/live` and `tests/io/test_rosbag.py` use them."""
SHARED = {
    *("--lock", "--flange", "--column", "--joints", "--names", "--degrees", "--rate"),
    *("--sensor", "--wrench-convention"),
}
"""Options that one function reads for all commands; one command that uses them is enough."""
HIDDEN = {"--help", "--install-completion", "--show-completion"}

ARM = "--lock finger_left=0.02 --lock finger_right=0.02 --flange tool0"
FELL = "--gravity 0,0,-9.81"
TABLE = "--names q*2,tau*2 --rate 125 --degrees"
COLUMNS = "--column tau=effort"
QUICK = "--starts 1 --time-limit 5 --seed 3 --device cpu"
MOTION = f"{QUICK} --harmonics 3 --limits limits.toml --rate 50 {ARM}"
POSTURES = f"--count 5 --limits limits.toml {ARM} {FELL}"
SURE = "--largest-mass-error 50 --largest-com-error 200 --force"
LOOSE = f"--tool-frame 0,0,0.01,0,0,0 --inertia sphere {SURE}"
ON_UR10 = f"--robot ur10 --flange flange {FELL}"
SENSOR = "--sensor sensor.toml"

ROWS = [
    # Arms and recordings
    "robots",
    f"robot gripper.urdf --rigid {ARM} {FELL}",
    "robot planar2r --symbolic",
    f"simulate gripper.urdf -o empty.npz --rate 125 --seed 1 {ARM} {FELL}",
    f"simulate gripper.urdf -o loaded.npz --mass 1.5 --com 0,0,0.06 --size 0.08 --seed 2 {ARM}",
    f"simulate gripper.urdf -o ideal.npz --ideal --seed 3 {ARM}",
    "example ur10 --output examples",
    f"check empty.npz --robot gripper.urdf {ARM} --between 0,5 --output part.parquet",
    f"check bare.csv --robot gripper.urdf {ARM} {TABLE}",
    f"check effort.csv --robot gripper.urdf {ARM} {COLUMNS}",
    "check wrench.csv --robot ur10 --wrench-convention load_on_sensor --wrench-frame flange",
    # Motions
    f"design gripper.urdf -o motion.json --period 4 --objective condition {MOTION}"
    f" {FELL} --joints 1,2 --start home --picture motion.png --report motion.html --serial 7",
    f"design gripper.urdf -o free.json --period 4 --periodic --envelope motion.json {MOTION}",
    f"simulate gripper.urdf -o by_design.npz --trajectory motion.json {ARM}",
    f"export-motion motion.json --to ros2,csv --from home --rate 50 --robot gripper.urdf {ARM}"
    " --limits limits.toml --output moved",
    f"postures ur10 --K -0.2 --as-printed --joints 4,5,6 --count 5 --limits limits.toml {FELL}"
    " --flange flange --output postures.csv --picture postures.png",
    f"postures-random gripper.urdf --seed 4 {POSTURES} --output random.csv --picture random.png",
    f"postures-around gripper.urdf --posture 0.1,0.2 {POSTURES} --output around.csv"
    " --picture around.png",
    # The empty arm
    f"identify gripper.urdf empty.npz ideal.npz -o model.json --validate by_design.npz"
    f" --friction linear --gains auto --lag 0 --cutoff 20 --torque-cutoff 40 --order 2"
    f" --kinematics measured --lowest-speed 0.02 --method weighted --feasible --urdf found.urdf"
    f" --picture arm.png --report arm.html --serial 42 {ARM} {FELL}",
    f"identify gripper.urdf empty.npz ideal.npz -o mean.json --friction linear --fourier 10,5"
    f" --no-offsets --mean-of-runs --bounds bounds.toml {ARM}",
    f"identify gripper.urdf bare.csv -o bare.json --friction linear {TABLE} {ARM}",
    f"identify gripper.urdf effort.csv -o effort.json --friction linear {COLUMNS} {ARM}",
    f"shortest-motion gripper.urdf --accuracy mass=50% --typical 1.5kg:0,0,0.06 --model model.json"
    f" --longest 20 --periodic {MOTION} --output short.json --picture short.png"
    " --report short.html",
    f"shortest-motion gripper.urdf --accuracy mass=50% --noise 0.5,0.5 --longest 20 --start home"
    f" --envelope motion.json {MOTION} {FELL}",
    "export-arm urdf model.json --output model.urdf --force",
    "export-arm mjcf model.json --output model.xml --force",
    "export-arm mujoco-ros2 model.json --output model_ros2.xml --force",
    # The payload
    "weigh model.json loaded.npz --output payload.json --method auto --empty empty.npz"
    " --picture payload.png --report payload.html --cutoff 20 --kinematics measured",
    "weigh model.json loaded.npz --output fixed.json --fix cx=0 --tool payload.json",
    f"weigh model.json bare_loaded.csv {TABLE}",
    f"weigh effort.json effort.csv {COLUMNS}",
    "track loaded.npz --model model.json --cutoff 20 --kinematics measured --tracker direct"
    " --accuracy 20 --save-state state.json --output tracked.json --picture tracked.png"
    " --report tracked.html",
    "track loaded.npz --model model.json --cutoff 20 --resume state.json",
    f"track bare_loaded.csv --model model.json {TABLE}",
    f"track effort.csv --model effort.json {COLUMNS}",
    *(
        f"export {maker} payload.json --output {maker}.txt {LOOSE}"
        for maker in ("ur", "ur-ros2", "franka-ros2")
    ),
    *(
        f"export {maker} payload.json --name part --output {maker}.txt {LOOSE}"
        for maker in ("franka", "abb", "urdf", "mjcf")
    ),
    *(
        f"export {maker} payload.json --number 3 --output {maker}.txt {LOOSE}"
        for maker in ("kuka", "fanuc")
    ),
    f"export mecademic payload.json --tool-frame 0,0,0.01,0,0,0 --output meca.txt {SURE}",
    *(
        f"export-loaded-arm {form} model.json payload.json --output loaded_{form}.txt {LOOSE}"
        for form in ("urdf", "mjcf", "mujoco-ros2")
    ),
    f"patch payload gripper.urdf payload.json --name part --output patched.urdf {LOOSE}"
    " --lock finger_left=0.02 --lock finger_right=0.02",
    "patch arm gripper.urdf model.json --output patched.urdf --force"
    " --lock finger_left=0.02 --lock finger_right=0.02",
    f"patch loaded-arm gripper.urdf model.json payload.json --name part --output patched.urdf"
    f" {LOOSE} --lock finger_left=0.02 --lock finger_right=0.02",
    # Contacts and guiding
    "collisions model.json loaded.npz --payload payload.json --learn empty.npz --false-alarms 2"
    " --observer momentum --bandwidth 6 --picture contacts.png --report contacts.html",
    f"collisions model.json bare.csv --threshold 50 {TABLE}",
    f"collisions effort.json effort.csv --threshold 50 {COLUMNS}",
    "guide ur10 --payload ur10_payload.json --mass-true 2 --speed 0.1 --centre 0.6,0,0.3"
    " --sides 0.02,0.02 --friction-share 0.9 --unsteadiness 0.05 --seed 2 --picture guide.png"
    " --report guide.html --flange flange",
    "guide ur10 --payload ur10_payload.json --payload-true ur10_payload.json --speed 0.1"
    " --sides 0.02,0.02",
    # Wrist sensor
    f"weigh-wrist at-rest rest.parquet {ON_UR10} --level --output wrist.json --report wrist.html",
    f"weigh-wrist at-rest table.csv {SENSOR}",
    f"weigh-wrist in-motion move.parquet {ON_UR10} --method ml --cutoff 15 --level"
    " --output moved.json --report moved.html",
    f"weigh-wrist both rest.parquet move.parquet {ON_UR10} --method ml --cutoff 15 --level"
    " --drift-again --output both.json --report both.html",
    "contact both.json move.parquet --robot ur10 --frame base --rezero start --cutoff 15"
    " --output forces.parquet --picture forces.png --report forces.html --flange flange",
    f"track-wrist move.parquet {ON_UR10} --level --cutoff 15 --accuracy 5 --save-state wrist_state"
    ".json --output tracked_wrist.json --picture tracked_wrist.png --report tracked_wrist.html",
    f"track-wrist move.parquet {ON_UR10} --level --cutoff 15 --resume wrist_state.json",
    f"export ft-yaml both.json --tool-frame 0,0,0.01,0,0,0 --output ft.yaml {SURE}",
    f"export gravity-filter both.json --tool-frame 0,0,0.01,0,0,0 --output gf.yaml {SURE}",
    f"export cartesian-controllers both.json --tool-frame 0,0,0.01,0,0,0 --output cc.yaml {SURE}",
    # Picks and fleet
    "simulate ur10e --cycle cycle.toml -o shift.parquet",
    "picks log.parquet --model picks_model.json --gripper gripper --parts parts.csv --expect"
    " housing --known 1=2.0 --closed auto --threshold 0.5 --false-alarms 2 --margin 0.2"
    " --output picks.json --report picks.html --follow --tool left --on-alarm true",
    "picks log.parquet --model picks_model.json --dry log.parquet",
    "picks-preview log.parquet --model picks_model.json --parts parts.csv --gripper gripper"
    " --closed high --threshold 0.5 --false-alarms 2 --margin 0.2",
    "fleet build catalogue.csv --output store --robot tiny.urdf --friction linear --workers 1",
    "fleet identify store --since 2026-03-01 --until 2026-04-01 --workers 1",
    "fleet weigh store --output weighed.csv --workers 1",
    "fleet trend store --rate 0.1 --output trend.csv --report trend.html --workers 1",
    "fleet picks picks.json picks.json --rate 0.1 --output trends.csv --report trends.html",
    # First steps
    "demo --picture demo.png --report demo.html --seed 1",
]


def every_option():
    """(command, option) of the whole program."""
    for name, command in get_command(_app("")).commands.items():
        if name in LEFT_OUT:
            continue
        for step, leaf in getattr(command, "commands", {"": command}).items():
            for parameter in leaf.params:
                spellings = {o for o in parameter.opts if o.startswith("-")}
                if spellings and not spellings & (HIDDEN | STREAMS | BAGS | ELSEWHERE | {"--json"}):
                    yield (
                        f"{name} {step}".strip(),
                        frozenset({*spellings, *parameter.secondary_opts}),
                    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the rows read but do not write."""
    path = tmp_path_factory.mktemp("options")
    (path / "gripper.urdf").write_text(TINY["gripper"])
    (path / "examples").mkdir()
    (path / "limits.toml").write_text("")
    (path / "bounds.toml").write_text("m1 = [0, 50]\n")
    write_tables(path)
    write_wrist_recordings(path)
    run = sy.read(path / "rest.parquet")
    names = [*(f"q_{k}" for k in range(6)), "fx", "fy", "fz", "tx", "ty", "tz"]
    table = np.column_stack([run.t, run.q, run.wrench])
    header = ",".join(["t", *names])
    np.savetxt(path / "wrench.csv", table, delimiter=",", header=header, comments="")
    body = InertialParameters.from_com(3.0, [0, 0.02, 0.06], 0.02 * np.eye(3), "flange")
    verdict = Verdict("all ten were excited")
    Payload(body, body, 1e-4 * np.eye(10), np.ones(6), verdict).save(path / "ur10_payload.json")
    model().save(path / "picks_model.json")
    sy.write(faulty()[0], path / "log.parquet")
    (path / "parts.csv").write_text("name,mass,tolerance\nhousing,2.0,0.02\n")
    (path / "cycle.toml").write_text(
        f"carry = {CARRY}\ncarry_s = 0.8\nback_s = 0.8\ncycles = 1\n"
        '[[parts]]\nname = "a"\nmass = 1.0\n'
    )
    tiny_fleet(path)
    return path


def write_tables(path):
    """Tables of an arm of two joints: without names and time in degrees, and with efforts."""
    for name, mass in (("bare", 0), ("bare_loaded", 1.5)):
        words = f"simulate gripper.urdf -o {name}.npz --mass {mass} --seed 5 {ARM}"
        steelyard(*shlex.split(words), cwd=path)
        run = sy.read(path / f"{name}.npz")
        table = np.column_stack([np.degrees(run.q), run.tau])
        np.savetxt(path / f"{name}.csv", table, delimiter=",")
    names = [f"{kind}_{joint}" for kind in ("q", "effort") for joint in (0, 1)]
    table = np.column_stack([run.t, run.q, run.tau])
    header = ",".join(["t", *names])
    np.savetxt(path / "effort.csv", table, delimiter=",", header=header, comments="")


def test_every_option_works_once(folder):
    used = set()
    failed = []
    for row in ROWS:
        words = shlex.split(row)
        done = steelyard(*words, cwd=folder)
        if done.returncode not in (0, 1):
            failed.append(f"{row}\n  {done.stderr.strip().splitlines()[-1]}")
        used |= {(command, word) for command in (words[0], " ".join(words[:2])) for word in words}
    words_used = {word for _, word in used}
    unused = [
        f"{command} {min(spellings)}"
        for command, spellings in every_option()
        if not any((command, spelling) in used for spelling in spellings)
        and not any(spelling in SHARED and spelling in words_used for spelling in spellings)
    ]
    assert not failed, "\n".join(failed)
    assert not unused, "\n".join(unused)
