"""Foreign names: which column is which signal, and what is refused rather than guessed."""

import pytest

from steelyard.errors import UnknownName, UnreadableFile
from steelyard.recording._columns import Requested, expanded_names, find_layout


def layout(names, **requests):
    return find_layout(names.split(), Requested(**requests), "folder/log.csv")


@pytest.mark.parametrize("form", ["q_{}", "q{}", "q[{}]", "q.{}", "actual_q_{}", "actual_q{}"])
@pytest.mark.parametrize("first", [0, 1])
def test_indices_in_every_form_are_sorted(form, first):
    names = [form.format(first + k) for k in (2, 0, 1, *range(3, 11))]
    found = find_layout(["t", *names], Requested(), "log.csv")
    assert found.columns["q"] == tuple(form.format(first + k) for k in range(11))


@pytest.mark.parametrize("word", ["t", "time", "timestamp", "t_s", "time_s", "Time", "Timestamp"])
def test_words_for_time(word):
    assert layout(f"{word} q").columns == {"t": (word,), "q": ("q",)}


def test_the_names_of_rtde():
    words = {
        "actual_q": "q",
        "actual_qd": "v",
        "actual_current": "current",
        "target_q": "q_commanded",
        "target_qd": "v_commanded",
        "target_qdd": "a_commanded",
        "target_current": "current_target",
        "target_moment": "tau_target",
    }
    names = ["timestamp", *(f"{word}_{k}" for word in words for k in range(6))]
    names += [f"actual_TCP_force_{k}" for k in range(6)] + [
        f"actual_current_as_torque_{k}" for k in range(6)
    ]
    found = find_layout([*names, "robot_mode"], Requested(), "log.csv")
    for word, channel in words.items():
        assert found.columns[channel] == tuple(f"{word}_{k}" for k in range(6))
    assert set(found.columns) == {"t", *words.values()}
    force, torque, unknown = found.facts["notes"]
    assert force.startswith(
        "not read: actual_TCP_force, because the controller reports it in the base frame"
    )
    assert torque.startswith(
        "not read: actual_current_as_torque, because the controller has subtracted gravity"
    )
    assert unknown == "not read, unknown name: robot_mode"


def test_the_names_of_ros_and_what_effort_is_must_be_said():
    found = layout("stamp position_0 velocity_0 effort_0")
    assert found.columns == {"t": ("stamp",), "q": ("position_0",), "v": ("velocity_0",)}
    assert found.facts["notes"] == (
        "not read: effort is a torque on some arms, a motor current on a UR: read the file with"
        " `columns={'tau': 'effort'}` or `columns={'current': 'effort'}`",
    )
    assert layout("stamp position_0 effort_0", columns={"tau": "effort"}).columns["tau"] == (
        "effort_0",
    )


def test_some_columns_of_an_array():
    names = " ".join(["t", *(f"pose[{k}]" for k in range(7))])
    assert layout(names, columns={"q": "pose[3:5]"}).columns["q"] == ("pose[3]", "pose[4]")
    with pytest.raises(
        UnknownName, match=r"there is no column 'pose\[7\]' for q; there are t, pose"
    ):
        layout(names, columns={"q": "pose[5:9]"})


def test_names_of_a_table_without_them():
    assert expanded_names("t, q*2,current*2 ,x") == (
        "t",
        "q_0",
        "q_1",
        "current_0",
        "current_1",
        "x",
    )
    for text in ("t,,q", "q*", "q*x", "q*0", "*3", "q*99999999"):
        with pytest.raises(
            UnknownName, match=r"names of columns look like t,q\*6,current\*6; '.*' does not"
        ):
            expanded_names(text)


def test_the_names_of_libfranka():
    found = layout("time q_0 dq_0 tau_J_0 q_d_0 dq_d_0 ddq_d_0 tau_J_d_0")
    assert found.columns["tau"] == ("tau_J_0",)
    assert found.columns["v"] == ("dq_0",)
    assert found.columns["a_commanded"] == ("ddq_d_0",)
    assert found.facts["notes"] == (
        "not read: tau_J_d, because it does not contain gravity; use tau_J",
    )


def test_case_matters():
    assert "v" not in layout("t q_0 V_0").columns


def test_columns_named_one_by_one_and_by_their_beginning():
    found = layout(
        "stamp pos_a pos_b eff_b eff_a",
        columns={"t": "stamp", "q": "pos_", "tau": ["eff_a", "eff_b"]},
    )
    assert found.columns == {"t": ("stamp",), "q": ("pos_a", "pos_b"), "tau": ("eff_a", "eff_b")}
    assert found.facts["joint_names"] == ("a", "b")
    assert layout("t pos_2 pos_1", columns={"q": "pos_"}).columns["q"] == ("pos_1", "pos_2")


def test_a_word_with_others_that_begin_alike():
    found = layout("t q_0 actual_q_0 qd_0 q_des_0", columns={"q": "q"})
    assert found.columns["q"] == ("q_0",)
    assert found.facts["notes"] == ("not read, as requested: actual_q",)


def test_joints_by_name_follow_the_order_of_q():
    found = layout("t q.b q.a tau.a tau.b qd.a qd.b")
    assert found.columns["tau"] == ("tau.b", "tau.a")
    assert found.columns["v"] == ("qd.b", "qd.a")
    assert found.facts["joint_names"] == ("b", "a")


AXES = "wrench.Tx wrench.Ty wrench.Tz wrench.Fx wrench.Fy wrench.Fz"


def test_a_wrench_by_its_axes_where_one_is_expected():
    names = "t q TX TY TZ FX FY FZ"
    facts = {"wrench_frame": "sensor", "wrench_convention": "load_on_sensor"}
    assert layout(names, **facts).columns["wrench"] == ("FX", "FY", "FZ", "TX", "TY", "TZ")
    assert "wrench" not in layout(names).columns
    with pytest.raises(
        UnreadableFile, match=r"has a wrench \(TX, \.\.\.\), but not its frame and convention"
    ):
        layout(names, wrench_frame="sensor")


def test_a_wrench_with_frame_and_convention():
    found = layout(f"t q {AXES}", wrench_frame="tool0", wrench_convention="load_on_sensor")
    assert found.columns["wrench"][:2] == ("wrench.Fx", "wrench.Fy")
    assert found.facts["wrench_frame"] == "tool0"
    assert found.facts["wrench_convention"] == "load_on_sensor"


def test_a_wrench_may_be_left_out():
    found = layout(f"t q {AXES}", columns={"wrench": []})
    assert "wrench" not in found.columns
    assert found.facts["notes"] == ("not read, as requested: wrench",)


def test_the_force_at_the_tcp_only_by_wish_and_with_a_note():
    names = " ".join(f"actual_TCP_force_{k}" for k in range(6))
    requests = {"wrench_frame": "base", "wrench_convention": "load_on_sensor"}
    found = layout(f"t q {names}", columns={"wrench": "actual_TCP_force"}, **requests)
    assert found.columns["wrench"] == tuple(names.split())
    assert found.facts["notes"][0].startswith("the wrench is actual_TCP_force as requested, but")


@pytest.mark.parametrize(
    ("names", "requests", "message"),
    [
        (
            "q_0 x",
            {},
            r"folder/log\.csv: no time column \(t, time, .*there are: q, x\. Name yours with"
            r" `columns",
        ),
        ("t x_0 x_1", {}, r"no position column \(q, actual_q, .*pos\); there are: t, x\."),
        (
            "t q_0 actual_q_0",
            {},
            r"both mean q; choose with `columns=\{'q': 'actual_q'\}`",
        ),
        ("t q_0 q_2", {}, r"columns of q \(q_0, q_2\) are not numbered from 0 or 1 without a gap"),
        ("t q_2 q_3", {}, r"columns of q \(q_2, q_3\) are not numbered"),
        ("t q q_0", {}, r"columns of q \(q, q_0\) are not numbered"),
        ("t q_1 q1", {}, r"columns of q \(q_1, q1\) are not numbered"),
        ("t q_0 q_1 tau_0", {}, r"tau has 1 columns, but 2 are needed"),
        ("t q.a q.b tau.a tau.c", {}, r"tau has columns for a, c, but needs a, b"),
        ("t q q", {}, r"the column 'q' exists or is used more than once; rename one"),
        ("t q x", {"columns": {"tau": ["q"]}}, r"no position column"),
        (
            "t a b",
            {"columns": {"q": ["a"], "tau": ["a"]}},
            r"the column 'a' exists or is used more than once",
        ),
        (
            f"t q {AXES}",
            {},
            r"has a wrench \(wrench\.Tx, \.\.\.\), but not its frame and convention; give"
            r" `wrench_frame`",
        ),
        (
            f"t q {AXES}",
            {"wrench_frame": "tool0"},
            r"out with `columns=\{'wrench': \[\]\}`",
        ),
        ("t q", {"wrench_frame": "tool0"}, r"there is no wrench .* is given; name its columns"),
        ("t q wrench_0 wrench_1", {}, r"wrench has 2 columns, but 6 are needed"),
        (
            "t q.a q.b",
            {"joint_names": ("b", "a")},
            r"those of the file in another order, .*the file has a, b",
        ),
        (
            "t q_0 actual_current_as_torque_0",
            {"columns": {"tau": "actual_current_as_torque_"}},
            r"actual_current_as_torque cannot serve as tau: the controller has subtracted gravity",
        ),
    ],
)
def test_refusals(names, requests, message):
    with pytest.raises(UnreadableFile, match=message):
        layout(names, **requests)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"torque": "tau"}, r"there is no channel 'torque'; known are t, q, v, tau, current"),
        ({"q": "pos_"}, r"log\.csv: there is no column 'pos_' for q; there are t, q, tau"),
        ({"tau": ["tau_0", "tau_1"]}, r"there is no column 'tau_1' for tau"),
    ],
)
def test_names_that_do_not_exist(columns, message):
    with pytest.raises(UnknownName, match=message):
        layout("t q_0 tau_0", columns=columns)


@pytest.mark.parametrize("form", ["{word}_{joint}", "{joint}_{word}", "{word}/{joint}"])
def test_columns_that_name_joints_are_found_in_the_order_of_positions(form):
    signals = [
        ("position", "wrist"),
        ("position", "elbow"),
        ("torque", "elbow"),
        ("torque", "wrist"),
    ]
    names = [form.format(word=word, joint=joint) for word, joint in signals]
    found = find_layout(["t", *names, "v_bus", "v_limit"], Requested(), "log.csv")
    assert found.facts["joint_names"] == ("wrist", "elbow")
    assert found.columns["q"] == tuple(names[:2])
    assert found.columns["tau"] == (names[3], names[2])
    assert "v" not in found.columns
    assert found.facts["notes"] == ("not read, unknown name: v_bus, v_limit",)


def test_an_effort_that_names_joints_is_chosen_by_its_word():
    names = "t j1_pos j2_pos j1_effort j2_effort"
    assert "tau" not in layout(names).columns
    assert layout(names, columns={"tau": "effort"}).columns["tau"] == ("j1_effort", "j2_effort")


def test_one_column_tells_nothing_about_joints():
    with pytest.raises(UnreadableFile, match="no position column"):
        layout("t q_limit tau_limit")
