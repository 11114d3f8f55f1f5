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
UR_BAG = "identify ur10 ur_bag -o other.json --friction linear"
EFFORT = IDENTIFY.replace("empty", "empty_effort")
CURRENTS = IDENTIFY.replace("empty", "current")
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
        f"{UR_BAG} --trust x",
        f"{UR_BAG} --trust effort=torque",
    ),
    Row(
        "--trust ... and --column tau= exclude each other",
        f"{UR_BAG} --trust effort=torque --column tau=effort",
        f"{UR_BAG} --trust effort=torque",
    ),
    Row(
        "the effort of bags is trusted as a torque, this file names its columns",
        f"{EFFORT} --trust effort=torque",
        f"{EFFORT} --column tau=effort",
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
    Row(
        "the clock counts milliseconds; name its column with",
        "check milliseconds.csv",
        "check milliseconds.csv --column t_ms=t",
    ),
    Row(
        "both name the clock: give one",
        "check milliseconds.csv --column t_ms=t --column t=t",
        "check milliseconds.csv --column t_ms=t",
    ),
    Row("read the file with `degrees=True`", DEGREES, f"{DEGREES} --degrees"),
    Row(
        "a torque on some arms, a motor current on a UR: read the file with",
        f"{IDENTIFY.replace('empty', 'empty_effort')}",
        f"{IDENTIFY.replace('empty', 'empty_effort')} --column tau=effort",
    ),
    Row("do not give `rate_hz`", "check empty.csv --rate 100", "check empty.csv"),
    Row(
        "leave the column out with ...",
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
    Row(
        "are not the joints of the arm; give",
        f"{WEIGH} --joints a,b,c",
        f"{WEIGH} --joints shoulder,elbow,wrist",
    ),
    Row(
        "if a column holds them, name it with",
        IDENTIFY.replace("empty", "empty_moment"),
        IDENTIFY.replace("empty", "empty_moment") + " --column tau=moment",
    ),
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
        "weights single rows, which are not kept: use",
        f"{IDENTIFY} --method huber --no-offsets",
        f"{IDENTIFY} --method ordinary --no-offsets",
    ),
    Row(
        "the recordings hold motor currents without the controller's targets",
        "identify tiny.urdf current.csv -o other.json --friction linear",
        "identify tiny.urdf current.csv -o other.json --friction linear --gains 1,1,1",
    ),
    Row(
        "a known mass corrects gains that are roughly known, and neither the robot file nor the",
        f"{CURRENTS} --gains mass=1.5:current_loaded.csv",
        f"{CURRENTS} --gains 1,1,1",
    ),
    Row(
        "not exported: ...; weigh or identify again, or use --force",
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
    Row(
        "not exported: ...; weigh or identify again, or use --force",
        "export-arm urdf upside.json -o upside.urdf",
        "export-arm urdf upside.json -o upside.urdf --force",
    ),
    Row(
        "state `gravity_base=(..., ..., ...)`",
        "export-arm urdf upside.json -o upside.urdf",
        IDENTIFY.replace("other.json", "upright.json") + " --gravity 0,0,-9.81",
    ),
    Row(
        "already has a body '...' that is not a payload",
        "patch payload tiny.xml payload.json -o patched.xml --name hand",
        "patch payload tiny.xml payload.json -o patched.xml --name part",
    ),
    Row(
        "rows at ... Hz are too few for a low-pass at ... Hz; increase",
        "weigh-wrist in-motion moving.csv --robot tiny.urdf --sensor sensor.toml --cutoff 1",
        "weigh-wrist in-motion moving.csv --robot tiny.urdf --sensor sensor.toml --cutoff 20",
    ),
    Row("--payload-true or --mass-true, not both", f"{GUIDE} {BOTH_TRUTHS}", f"{GUIDE} {TRUTH}"),
    Row(
        "--lock and --flange are for a robot; an identified arm has its own",
        "guide model.json --payload payload.json --flange hand",
        "guide model.json --payload payload.json",
        "cannot reach this pose of its flange",
    ),
    Row("--mass-true must be positive", f"{GUIDE} --mass-true 0", f"{GUIDE} {TRUTH}"),
]

TINY_MOTION = "export-motion motion.json --to csv --robot tiny.urdf"
AT_WORK = "serve ur10e --rtde 127.0.0.1:0 --seconds 0.1"
MOTIONS = [
    Row(
        "does not say which arm it is for: give --robot",
        "export-motion motion.json --to csv",
        f"{TINY_MOTION} --from home",
    ),
    Row(
        "which is not a bundled arm: give its file with --robot",
        "export-motion own.json --to csv --from home",
        "export-motion own.json --to csv --from home --robot tiny.urdf",
    ),
    Row(
        "the motion does not start and end at rest: give the posture of the arm with",
        TINY_MOTION,
        f"{TINY_MOTION} --from home",
    ),
    Row("--from is q1,...,qn", f"{TINY_MOTION} --from x", f"{TINY_MOTION} --from 0.1,0,0.2"),
    Row(
        "--posture takes numbers as 1,2,3",
        "postures-around tiny.urdf --posture x",
        "postures-around tiny.urdf --posture 0.1,0.2,0.3",
    ),
    Row("--rtde is [HOST:]PORT", "serve ur10e --rtde x", AT_WORK),
    Row("--fault is S=NAME", f"{AT_WORK} --fault x", f"{AT_WORK} --fault 12=skip:5"),
    Row(
        "--payload-at is S=KGkg:X,Y,Z",
        f"{AT_WORK} --payload-at x",
        f"{AT_WORK} --payload-at 10=2.5kg:0,0,0.05",
    ),
]
"""Motions for controllers, and a simulated one."""

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
        "columns of numbers without names are not a time and blocks of",
        "start odd.csv tiny.urdf --yes --is-empty",
        "start odd.csv tiny.urdf --yes --is-empty --names t,q*3,tau*3,other",
    ),
    Row(
        "the log has no time column: give its --rate",
        "start empty_untimed.csv tiny.urdf --yes --is-empty",
        "start empty_untimed.csv tiny.urdf --yes --is-empty --rate 100",
    ),
]
"""`steelyard start` in a script."""

ROWS = [*FORMATS, *READING, *WEIGHING, *OTHERS, *MOTIONS, *STARTING]

ELSEWHERE = {
    "live/test_setting.py::test_the_verb_sets_both_kinds": ("...: state its number with `serial`",),
    "live/test_stopping.py::test_the_question_says_which_surroundings_were_checked": (
        "The surroundings of the arm (floor, walls) were not checked; --limits describes them",
    ),
    "live/test_stopping.py::test_a_running_program_is_replaced_only_on_request": (
        "stop it first, or let the motion replace it with `replace_program`",
    ),
    "picking/test_picks.py::test_wrong_options_are_refused": (
        "`expect` names parts of a table: give the table as `parts`",
    ),
    "io/test_recordings.py::test_joints_go_into_the_order_of_the_arm_by_their_stated_names": (
        "are not the joints of the arm; give ... in the order of the columns as `joint_names`",
    ),
    "control/test_contact_force.py::test_tables_that_do_not_fit": (
        "`joint_names` are for recordings with joints: give the arm as `robot`, or leave them out",
    ),
    "wrist/test_recording.py::test_a_clock_in_milliseconds_is_named": (
        "single postures, or a clock in milliseconds? Give [scale] t = 0.001",
    ),
    "live/test_live_picks.py::test_the_page_shows_each_pick_and_its_alarms": (
        "--page is [HOST:]PORT, say 8080",
    ),
    "live/test_ros2_node.py::test_picks_are_published_as_json_with_their_status": (
        "--publish is ros2://HOST[:PORT] or ros2-node:",
    ),
    "../papers/tests/test_reproduce.py::test_weigh_wrist_runs_the_two_stages_as_printed": (
        "needs postures at rest and a motion: give `static` and `dynamic`",
    ),
    "../papers/tests/test_xu2024_online.py::"
    "test_the_command_tracks_a_stream_with_it_and_refuses_a_filter": (
        "takes rows as they come, without a filter: leave --cutoff out",
    ),
    "architecture/test_readme.py::"
    "test_commands_run_in_their_order_and_the_example_weighs_the_payload": (
        "steelyard weigh model.json ... --report page.html",
        "steelyard weigh ... LOADED... -o payload.json",
        "-o payload.json keeps it, --report page.html shows it",
    ),
    "cli/test_advice.py::test_what_narrows_an_interval_is_a_command_that_runs": (
        "record a faster, wider motion: steelyard design ROBOT",
        "calibrate the gains with a known mass: steelyard identify ROBOT",
        "choose the cut-off automatically: steelyard identify ROBOT",
        "give the gravity of your place, such as 9.8127 m/s^2: steelyard identify ROBOT",
    ),
    "cli/test_design.py::test_advice_on_designs_is_followed": (
        "--start takes numbers as 1,2,3",
        "--joints: ... has no joint",
        "has no limit of velocity or acceleration: state one in `limits`",
    ),
    "torque/test_shortest.py::test_a_search_without_any_motion_asks_for_a_longer_one": (
        "no motion was found that respects all limits: widen the limits, or increase `longest_s`",
    ),
    "cli/test_start.py::test_answers_that_lead_elsewhere_say_where": (
        "for an arm on a wall give the direction of fall in its base frame",
        "there is no file ...; a payload is weighed against the empty arm",
    ),
    "cli/test_track.py::test_a_saved_state_is_resumed_and_knows_more": (
        "was saved with another model or sensor; start without `resume`",
    ),
    "cli/test_start.py::test_a_loaded_log_is_weighed_against_the_empty_one": (
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
    "export/test_export.py::test_doubtful_payloads_need_force_and_the_text_says_so": (
        "not exported: ...; weigh again, or give `force=True`",
    ),
    "export/test_export.py::test_a_sphere_stands_in_for_an_inertia_that_is_not_to_be_used": (
        "(`inertia='sphere'` writes the inertia of a sphere instead)",
    ),
    "identification/test_gains.py::"
    "test_gains_of_a_file_are_compared_with_the_controllers_targets": (
        "check that the file is that of this arm, then state `gains` as 'targets' or 'robot'",
    ),
    "io/test_into.py::test_a_joint_below_the_arm_is_held_still_where_it_is_locked": (
        "but is not a joint of the robot model; hold it still with",
    ),
    "io/test_urdf.py::test_a_link_that_no_body_can_be_is_refused_unless_allowed": (
        "or write it anyway with `allow_unphysical=True`",
    ),
    "io/test_rosbag.py::test_a_bag_with_joints_becomes_a_wrench_recording": (
        "a wrench in a bag has no orientation; give a `robot`",
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
    "live/test_commands.py::test_what_is_requested_acts_on_a_given_motion": (
        "give a larger `reach` or another motion",
    ),
    "live/test_page.py::test_the_verb_opens_a_page_and_says_where": (
        "--page is [HOST:]PORT[,URDF], say 8080",
    ),
    "live/test_wrist.py::test_streams_that_cannot_be_weighed_say_why": (
        "sends joints: give the arm with `robot` or `model`",
    ),
    "live/test_wrist.py::test_rows_without_joints_have_no_page": (
        "sends no joints, and a page shows the arm: leave out `page`",
    ),
    "picking/test_picks.py::test_another_part_of_the_table_is_named": (
        "`expect`: there is no part '...' in the table",
    ),
    "picking/test_picks_command.py::test_known_picks_and_a_dry_run_are_for_a_log": (
        "--known is PICK=MASS, say 5=0.512",
        "--known gives the mass of pick ... twice",
    ),
    "signals/test_streams.py::test_a_state_that_ends_in_the_future_is_refused": (
        "ends in the future (... s); start without `resume`",
    ),
    "torque/test_shortest.py::test_the_command_asks_as_python_does_and_prints_writes_and_draws": (
        "--accuracy is mass=1% or 20g",
        "--accuracy ... is given twice: give it once",
        "--typical is KGkg:X,Y,Z",
        "--noise takes numbers as 1,2,3",
    ),
    "torque/test_shortest.py::test_a_model_of_another_arm_is_refused_and_a_model_brings_its_rate": (
        "states noise and gravity: leave --noise and --gravity out",
    ),
    "wrist/test_static.py::test_a_wrong_frame_is_named": (
        "were already rotated into the base frame: use `frame='base'`",
    ),
    "picking/test_picks.py::test_polarity_is_found_and_may_be_given": (
        "it is not clear which value of the gripper means closed",
        "stretches with an open gripper the arm seems to carry a part",
        "--closed is auto, high or low",
        "`closed` is auto, high or low",
    ),
    "picking/test_picks_command.py::test_a_stream_gives_the_picks_of_the_log": (
        "a stream needs `closed='high'`",
    ),
    "fleet/test_fleet.py::test_a_cycle_that_ends_before_it_begins_is_corrected": (
        "correct `start_s` or `end_s` in the catalogue",
    ),
    "fleet/test_trend.py::test_a_fleet_says_what_has_changed": (
        "logs are undated, give their `time` in a catalogue",
    ),
    "picking/test_picks_command.py::test_the_position_of_a_gripper_in_a_stream_needs_a_threshold": (
        "not 0 or 1: give the value between open and closed as `threshold`",
    ),
    "picking/test_picks_command.py::test_a_threshold_on_one_side_of_the_gripper_is_refused": (
        "on one side of the `threshold` ... throughout",
        "`threshold` must be a finite number",
        "`threshold` is for a position; a `bit` is 0 or 1 already",
    ),
    "picking/test_picks_command.py::test_a_simulated_shift_from_a_plan": (
        "--cycle holds the motion and the parts",
    ),
}
"""Tests that follow advice with an arm on the network, a bag or a longer computation."""

NOT_ADVICE = (
    "`seconds` must not be negative",
    "`rate` must lie between 0 and 1",
    "`shifts` is empty: there is nothing to compare",
    "(see steelyard... --help)",
    "Exit code 1, and no file",
    "Its angles are in degrees (--degrees).",
    "Its clock counts milliseconds (--column t_ms).",
    "It has no header; its columns are read as",
    "Gravity: as for an arm on the floor",
    "warning: --on-alarm, pick",
    "warning: --on-alarm: '...' still runs",
    "another program, `other_program`, is started",
)
"""Texts that name an option or a function without advising its use."""
