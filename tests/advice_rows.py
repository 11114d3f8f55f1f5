"""Advice of the program: who gets it, and what to do then; see `cli/test_advice.py`.

A row has words of the message as they stand in the sources, a command that gets it, and the command
that does what it says. `ELSEWHERE` names tests that follow other advice.
"""

from typing import NamedTuple


class Row(NamedTuple):
    """A piece of advice.

    Attributes:
        advice: words of the message as in the sources, with ... for values
        wrong: the command that gets it
        followed: the command that does what it says
        ends: the final words, where that does not end well
    """

    advice: str
    wrong: str
    followed: str
    ends: str = ""


GUIDE = "guide ur10 --payload ur10_payload.json --sides 0.02,0.02 --speed 0.1"
TRUTH = "--mass-true 2"
BOTH_TRUTHS = "--mass-true 2 --payload-true ur10_payload.json"
WEIGH = "weigh model.json loaded.csv"
EXPORT = "export ur payload.json -o payload.script"
DEGREES = "check empty_degrees.csv"
CHECK_UNTIMED = "check empty_untimed.csv --rate 100"
COLLISIONS = "collisions model.json empty.csv"
IDENTIFY = "identify tiny.urdf empty.csv -o other.json --friction linear"
FORMATS = [
    Row("--between is FROM,TO", "check empty.csv --between 3", "check empty.csv --between 0,3.1"),
    Row(
        "the second time must be the later one",
        "check empty.csv --between 3.1,0",
        "check empty.csv --between 0,3.1",
    ),
    Row("--fourier is PERIOD", f"{IDENTIFY} --fourier x", f"{IDENTIFY} --fourier 10,5"),
    Row(
        "--gains mass=KG:FILE needs a mass and a loaded recording",
        f"{IDENTIFY} --gains mass=1",
        f"{IDENTIFY} --gains mass=1.5:loaded.csv",
        "a known mass corrects drive gains: the recordings need motor currents",
    ),
    Row("--gains is auto, robot", f"{IDENTIFY} --gains some", f"{IDENTIFY} --gains auto"),
    Row("--lag is a number [s] or auto", f"{IDENTIFY} --lag x", f"{IDENTIFY} --lag 0.002"),
    Row("--cutoff is a number [Hz] or auto", f"{IDENTIFY} --cutoff x", f"{IDENTIFY} --cutoff auto"),
    Row("--gravity is X,Y,Z", f"{IDENTIFY} --gravity 9.81", f"{IDENTIFY} --gravity 0,0,-9.81"),
    Row(
        "--trust is ...",
        f"{IDENTIFY} --trust x",
        f"{IDENTIFY} --trust effort=torque",
        "name yours with --column tau=NAME",
    ),
    Row("--lock is JOINT=NUMBER", "robot held.urdf --lock wrist", "robot held.urdf --lock wrist=0"),
    Row(
        "--column is SIGNAL=NAME",
        "check empty_effort.csv --column effort",
        "check empty_effort.csv --column tau=effort",
    ),
    Row("--fix is NAME=NUMBER", f"{WEIGH} --fix mass", f"{WEIGH} --fix mass=1.5"),
    Row(
        "--com is X,Y,Z [m]",
        "simulate tiny.urdf -o run.npz --mass 1 --com 0",
        "simulate tiny.urdf -o run.npz --mass 1 --com 0,0,0.05",
    ),
    Row(
        "--com and --size describe a payload",
        "simulate tiny.urdf -o run.npz --com 0,0,0.05",
        "simulate tiny.urdf -o run.npz --com 0,0,0.05 --mass 1",
    ),
    Row(
        "a payload needs --mass and --size above 0",
        "simulate tiny.urdf -o run.npz --mass 1 --size 0",
        "simulate tiny.urdf -o run.npz --mass 1 --size 0.05",
    ),
    Row(
        "--tool-frame is 'x y z roll pitch yaw'",
        f"{EXPORT} --tool-frame 1",
        f"{EXPORT} --tool-frame '0 0 0.1 0 0 90'",
    ),
    Row(
        "give --tool-frame or --as-mounted, not both",
        f"{EXPORT} --as-mounted --tool-frame '0 0 0.1 0 0 90'",
        f"{EXPORT} --tool-frame '0 0 0.1 0 0 90'",
    ),
    Row("--as-mounted is for wrist sensors", f"{EXPORT} --as-mounted", EXPORT),
    Row(
        "--workers is a number of processes or an address",
        "fleet build logs -o store --robot tiny.urdf --workers x",
        "fleet build logs -o store --robot tiny.urdf --workers 1",
    ),
    Row(
        "--workers 0: give at least one process",
        "fleet build logs -o store --robot tiny.urdf --workers 0",
        "fleet build logs -o store --robot tiny.urdf --workers 1",
    ),
    Row(
        "--lock and --flange are for an arm given by --robot",
        "fleet build logs -o store --robot model.json --flange hand --workers 1",
        "fleet build logs -o store --robot tiny.urdf --flange hand --workers 1",
    ),
    Row(
        "a folder of logs does not say what its arms are",
        "fleet build logs -o store --workers 1",
        "fleet build logs -o store --robot tiny.urdf --workers 1",
    ),
    Row(
        "(`robot` stands for a missing 'model')",
        "fleet build catalogue.csv -o store --workers 1",
        "fleet build catalogue.csv -o store --robot tiny.urdf --workers 1",
    ),
]
"""Options in a wrong format, and options that exclude or need each other."""

READING = [
    Row(
        "it has no header but ... columns of numbers...; name each of them",
        "check empty_bare.csv",
        "check empty_bare.csv --names t,q_0,q_1,q_2,tau_0,tau_1,tau_2",
    ),
    Row(
        "or give the rows per second of a table without time",
        "check empty_untimed.csv",
        "check empty_untimed.csv --rate 100",
    ),
    Row("read the file with `degrees=True`", DEGREES, f"{DEGREES} --degrees"),
    Row(
        "a torque on some arms, a motor current on a UR: choose with",
        f"{IDENTIFY.replace('empty', 'empty_effort')}",
        f"{IDENTIFY.replace('empty', 'empty_effort')} --column tau=effort",
    ),
    Row("do not give `rate_hz`", "check empty.csv --rate 100", "check empty.csv"),
    Row(
        "or leave the column out with ...",
        "check empty.csv --rate 100",
        "check empty.csv --rate 100 --column t=",
    ),
    Row("do not give `names`", "check empty.csv --names t,q*3,tau*3", "check empty.csv"),
    Row(
        "`names` are for text tables without a header",
        "check empty.npz --names t,q*3,tau*3",
        "check empty.npz",
    ),
    Row("there is no channel '...'", "check empty.csv --column x=q_0", "check empty.csv"),
    Row(
        "steelyard wrote this file, which describes its own columns",
        "check written.parquet --degrees",
        "check written.parquet",
    ),
    Row(
        "give a file, or name a file for each signal",
        "check signals",
        "check signals --column q=q.txt --column tau=tau.txt --rate 100",
    ),
    Row(
        "some `columns` are files, but not ...",
        "check signals --column q=q.txt --column tau=tau --rate 100",
        "check signals --column q=q.txt --column tau=tau.txt --rate 100",
    ),
    Row(
        "it has a wrench (..., ...), but not its frame and convention",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor convention.toml",
    ),
    Row(
        "the sensor's description does not say which columns are the wrench",
        "weigh-wrist at-rest wrench.csv --sensor convention.toml",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor convention.toml",
    ),
    Row(
        "the pose of the sensor on the flange was not given",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor convention.toml",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor sensor.toml",
    ),
    Row(
        "state the other convention, `wrench_convention='sensor_on_load'`",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor reversed.toml",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor sensor.toml",
    ),
    Row(
        "the load weighs ... kg: the sign of the wrench is not as stated",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor reversed.toml",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor sensor.toml",
    ),
    Row(
        "has no time, so its rows are postures at rest",
        "weigh-wrist in-motion wrench.csv --robot tiny.urdf --sensor sensor.toml",
        "weigh-wrist at-rest wrench.csv --robot tiny.urdf --sensor sensor.toml",
    ),
    Row(
        "joint '...' of the arm follows '...' (<mimic>)",
        "robot mimic.urdf",
        "robot mimic.urdf --lock elbow=0.0",
    ),
]
"""Files whose meaning is open."""

WEIGHING = [
    Row("is a robot, not an identified model", "weigh tiny.urdf loaded.csv", IDENTIFY),
    Row("is a robot, not an identified model", "track loaded.csv --model tiny.urdf", IDENTIFY),
    Row(
        "needs no empty runs: leave `empty` out, or choose `method` ...",
        f"{WEIGH} --empty empty.csv --method direct",
        f"{WEIGH} --empty empty.csv --method auto",
    ),
    Row(
        "are too few to choose a friction law by prediction",
        "identify tiny.urdf short.csv -o other.json",
        "identify tiny.urdf short.csv -o other.json --friction linear",
    ),
    Row(
        "the recordings hold motor currents without the controller's targets",
        "identify tiny.urdf current.csv -o other.json --friction linear",
        "identify tiny.urdf current.csv -o other.json --friction linear --gains 1,1,1",
    ),
    Row(
        "not exported: ...; weigh again, or use --force",
        "export ur doubtful.json -o x.script",
        "export ur doubtful.json -o x.script --force",
    ),
    Row(
        "thresholds are learned or fixed: give `learn` or `threshold`, not both",
        f"{COLLISIONS} --learn empty.csv --threshold 1",
        f"{COLLISIONS} --threshold 20",
    ),
    Row(
        "for which there is no default threshold: give `threshold` or `learn`",
        f"{COLLISIONS} --observer energy",
        f"{COLLISIONS} --observer energy --threshold 50",
    ),
    Row(
        "--false-alarms sets thresholds with --learn",
        f"{COLLISIONS} --false-alarms 1",
        f"{COLLISIONS} --false-alarms 1 --learn loaded.csv --payload payload.json",
    ),
    Row(
        "explains the torques better, with residuals",
        f"{IDENTIFY} --gravity 0,0,9.81",
        f"{IDENTIFY} --gravity 0,0,-9.81",
    ),
]
"""Answers that are refused or doubted."""

WRIST = "weigh-wrist at-rest wrench.csv --robot tiny.urdf"
OTHERS = [
    Row(
        "was weighed in the frame of a wrist sensor",
        "export ur wrist.json -o wrist.script",
        "export ur wrist.json -o wrist.script --as-mounted",
    ),
    Row(
        "--lock and --flange are for an arm: name it with --robot",
        "weigh-wrist at-rest wrench.csv --sensor sensor.toml --flange hand",
        f"{WRIST} --sensor sensor.toml --flange hand",
    ),
    Row(
        "were measured in the sensor frame and not rotated",
        f"{WRIST} --sensor turned.toml",
        f"{WRIST} --sensor sensor.toml",
    ),
    Row("`inertia` must be one of ...", f"{EXPORT} --inertia x", f"{EXPORT} --inertia sphere"),
    Row(
        "already has a link '...' that is not a payload",
        "patch payload tiny.urdf payload.json -o patched.urdf --name hand",
        "patch payload tiny.urdf payload.json -o patched.urdf --name part",
    ),
    Row("--payload-true or --mass-true, not both", f"{GUIDE} {BOTH_TRUTHS}", f"{GUIDE} {TRUTH}"),
    Row("--mass-true must be positive", f"{GUIDE} --mass-true 0", f"{GUIDE} {TRUTH}"),
]

START = "start empty.csv tiny.urdf --yes"
STARTING = [
    Row("say what the arm carries: --is-empty for nothing", START, f"{START} --is-empty"),
    Row(
        "--is-empty and --empty exclude each other",
        f"{START} --is-empty --empty empty.csv",
        f"{START} --is-empty",
    ),
    Row(
        "say whether the last columns are torques",
        "start empty_bare.csv tiny.urdf --yes --is-empty",
        "start empty_bare.csv tiny.urdf --yes --is-empty --names t,q*3,tau*3",
    ),
    Row(
        "say what '...' is: --column tau=... for torques",
        "start empty_effort.csv tiny.urdf --yes --is-empty",
        "start empty_effort.csv tiny.urdf --yes --is-empty --column tau=effort",
    ),
    Row(
        "the log has no time column: give its --rate",
        "start empty_untimed.csv tiny.urdf --yes --is-empty",
        "start empty_untimed.csv tiny.urdf --yes --is-empty --rate 100",
    ),
]
"""`steelyard start` in a script."""

ROWS = [*FORMATS, *READING, *WEIGHING, *OTHERS, *STARTING]

ELSEWHERE = {
    "architecture/test_readme.py::"
    "test_commands_run_in_their_order_and_the_example_weighs_the_payload": (
        "steelyard weigh model.json ... --report page.html",
        "steelyard weigh ... LOADED... -o payload.json",
        "-o payload.json keeps it, --report page.html shows it",
    ),
    "cli/test_start.py::test_a_loaded_log_is_weighed_against_the_empty_one": (
        "steelyard start LOADED ... --empty ...",
        "give --empty FILE, a recording of the empty arm or its model",
    ),
    "cli/test_start.py::test_a_log_without_effort_ends_with_a_final_word": (
        "has neither torques, motor currents nor a wrench",
    ),
    "cli/test_start.py::test_a_wrist_table_gets_a_description_with_the_right_sign": (
        "the log does not say how the sensor is mounted",
    ),
    "cli/test_weigh_wrist.py::test_a_tilted_base_asks_for_its_mount_once_and_gravity_answers": (
        "the base appears to be tilted by ... degrees",
    ),
    "io/test_rosbag.py::test_what_effort_is_must_be_said": (
        "`columns={'tau': 'effort'}` for a torque [Nm]",
    ),
    "io/test_rosbag.py::test_the_effort_of_a_ur_is_no_torque": (
        "a Universal Robots arm publishes motor currents",
        "these are the joints of a Universal Robots arm",
    ),
    "io/test_rosbag.py::test_degrees_are_refused": ("a JointState is in radians (REP 103)",),
    "io/test_rosbag.py::test_the_topic_is_named_where_there_are_several": (
        "choose one with `columns=",
    ),
    "io/test_rosbag.py::test_some_of_the_joints": (
        "Name the joints in the order of the arm with",
        "choose joints, in the order of the arm, with",
    ),
    "io/test_rosbag.py::test_the_wrench_needs_its_convention_and_one_frame": (
        "a WrenchStamped does not state its sign",
        "frames (...) instead of one; give `wrench_frame`",
    ),
    "live/test_commands.py::test_the_verb_shows_asks_sets_and_undoes": (
        "Nothing was sent; --yes sends it.",
        "(--undo restores it)",
    ),
    "live/test_commands.py::test_the_command_move_records_the_motion": (
        "nothing was moved: --yes moves the arm",
    ),
    "picking/test_picks.py::test_polarity_is_found_and_may_be_given": (
        "the gripper column has hardly any edges",
        "it is not clear which value of the gripper means closed",
        "--closed is auto, high or low",
        "`closed` is auto, high or low",
    ),
    "picking/test_picks_command.py::test_a_stream_gives_the_picks_of_the_log": (
        "a stream needs `closed='high'`",
        "--record and --seconds are for streams",
    ),
    "picking/test_picks_command.py::test_a_simulated_shift_from_a_plan": (
        "--cycle holds the motion and the parts",
    ),
}
"""Tests that follow advice with an arm on the network, a bag or a longer computation."""

NOT_ADVICE = (
    "(see steelyard... --help)",
    "Exit code 1, and no file",
    "Its angles are in degrees (--degrees).",
    "It has no header; its columns are read as",
    "Gravity: as for an arm on the floor",
    "warning: --on-alarm, pick",
    "about the value that `identify` prints",
    "the 95 % intervals that `weigh` will report",
    "another program, `other_program`, is started",
)
"""Texts that name an option or a function without advising its use."""
